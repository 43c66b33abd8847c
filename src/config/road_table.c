/* The rows of `processes` and `models`: what a program or a model is made of
 * that agents are. */
#include "base/url.h"
#include "config/internal.h"

enum {
    KIB = 1024,
    MIB = 1024 * 1024,
    SECOND_MS = 1000,
    HOUR_MS = 3600 * SECOND_MS,
    SHORTEST_MS = 10,
};

static const char *const dialect_names[] = {
    [DIALECT_SIGNALBOX] = "signalbox", [DIALECT_PI] = "pi", NULL};
static const char *const cancel_names[] = {
    [CANCEL_STOPS] = "stop", [CANCEL_ASKS] = "ask", NULL};

const char *const model_kind_names[] = {
    [MODEL_OPENAI] = "openai", [MODEL_ANTHROPIC] = "anthropic", NULL};

/* Lists of strings. */

static const struct setting word_row = {"", .type = &type_word};
static const struct setting_table word_table = {&word_row, 1};
static const struct setting_elements words = {
    .table = &word_table,
    .bytes = sizeof(struct str),
    .min = 1,
    .max = AGENT_COMMAND_MAX,
    .is_plain = true,
};

static const struct setting env_name_row = {"", .type = &type_env_name};
static const struct setting_table env_name_table = {&env_name_row, 1};
static const struct setting_elements env_names = {
    .table = &env_name_table,
    .bytes = sizeof(struct str),
    .max = PROCESS_ENV_MAX,
    .is_plain = true,
};

static const struct setting path_row = {"", .type = &type_file};
static const struct setting_table path_table = {&path_row, 1};
static const struct setting_elements process_paths = {
    .table = &path_table,
    .bytes = sizeof(struct str),
    .max = PROCESS_PATHS_MAX,
    .is_plain = true,
};

_Static_assert(sizeof(struct strs) == sizeof(struct setting_list) &&
                   offsetof(struct strs, n) == offsetof(struct setting_list, n),
               "a list like the others");

/* Programs. */

#define AT(field) .offset = offsetof(struct process_def, field)

static const struct setting process_rows[] = {
    {"command", AT(command), .type = &type_list, .elements = &words,
     .what = "The program and its arguments. A name is looked for in the "
             "folders of `PATH`; a path begins at the workspace."},
    {"dialect", AT(dialect), .type = &type_choice, .preset = "\"signalbox\"",
     .names = dialect_names,
     .what = "What it speaks, a line a message: the hub's methods, or what "
             "`pi --mode rpc` does."},
    {"workspace", AT(workspace), .type = &type_workspace, .preset = "\"\"",
     .what = "The folder it works in; made when it is not there, within one "
             "that is."},
    {"env", AT(env), .type = &type_env, .preset = "{}",
     .complain = setting_complain_env,
     .what = "Variables it gets, with their values, which are never shown."},
    {"envAllowed", AT(env_allowed), .type = &type_list, .preset = "[]",
     .elements = &env_names,
     .what = "Variables it gets as the server has them, beside `PATH`, `HOME`, "
             "`USER`, `LOGNAME`, `SHELL`, `TMPDIR`, `TZ`, `LANG` and `LC_…`; "
             "others it does not get."},
    {"model", AT(model), .type = &type_text, .preset = "\"\"", .max = 255,
     .what = "The model that `pi` uses, as `PROVIDER/MODEL`; empty: its own "
             "choice."},
    {"tools", AT(tools), .type = &type_bool, .preset = "true",
     .what = "Whether `pi` is offered the tools `delegate_to_agent` and "
             "`agent_search`; what its agents may not do is refused. It takes "
             "them as `--extension /proc/self/fd/4`, a file that is open in "
             "what `command` starts."},
    {"min", AT(min), .type = &type_int, .preset = "0", .min = 0,
     .max = PROCESS_POOL_MAX, .what = "How many are kept ready."},
    {"max", AT(max), .type = &type_int, .preset = "4", .min = 1,
     .max = PROCESS_POOL_MAX,
     .what = "How many there may be at once; each works on one task at a "
             "time."},
    {"idleMs", AT(idle_ms), .type = &type_int, .preset = "300000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long one beyond `min` may have nothing to do before it is "
             "ended."},
    {"startMs", AT(start_ms), .type = &type_int, .preset = "30000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long it may take from its start to its first word."},
    {"stopGraceMs", AT(stop_grace_ms), .type = &type_int, .preset = "5000",
     .min = SHORTEST_MS, .max = 10 * 60 * SECOND_MS, .unit = "milliseconds",
     .what = "How long it may take to end when it is asked to; then it and all "
             "that it started are killed."},
    {"onCancel", AT(cancel), .type = &type_choice, .preset = "\"stop\"",
     .names = cancel_names,
     .what = "What a cancelled task does to it: `stop` ends it, `ask` lets it "
             "go on if it says within `stopGraceMs` that it has stopped."},
    {"maxLineBytes", AT(max_line_bytes), .type = &type_int,
     .preset = "16777216", .min = KIB, .max = 256 * MIB, .unit = "bytes",
     .what = "The longest line it may write; a longer one ends it."},
    {"memoryBytes", AT(memory_bytes), .type = &type_int, .preset = "0",
     .min = 0, .max = 64LL * KIB * KIB * MIB, .unit = "bytes",
     .what = "Its address space. 0: no limit. Where it has a cgroup, also the "
             "memory of all that it started, together."},
    {"cpuSeconds", AT(cpu_s), .type = &type_int, .preset = "0", .min = 0,
     .max = 365 * 24 * 3600, .unit = "seconds",
     .what = "Its processor time. 0: no limit."},
    {"files", AT(files), .type = &type_int, .preset = "0", .min = 0,
     .max = 1000 * 1000, .what = "Files it may have open. 0: as usual."},
    {"processes", AT(processes), .type = &type_int, .preset = "0", .min = 0,
     .max = 1000 * 1000,
     .what = "Processes and threads of the server's user in all, beyond which "
             "it may start no more (not for root). 0: no limit. Where it has a "
             "cgroup, also its own in all."},
    {"sandbox", AT(sandbox), .type = &type_bool, .preset = "true",
     .what =
         "Whether it is kept from the server, its data and other agents' "
         "files, as far as the kernel can do that. It then sees the system's "
         "folders, its own command, the workspace and `read` and `write`."},
    {"read", AT(read), .type = &type_list, .preset = "[]",
     .elements = &process_paths,
     .what = "Files and folders that it may read beside those, in its "
             "sandbox."},
    {"write", AT(write), .type = &type_list, .preset = "[]",
     .elements = &process_paths,
     .what = "Files and folders that it may change beside the workspace, in "
             "its sandbox. `pi` has its own folder, `~/.pi` or "
             "`PI_CODING_AGENT_DIR`, by itself."},
    {"user", AT(user), .type = &type_text, .preset = "\"\"", .max = 64,
     .what = "The user of this machine that it runs as; only a server that "
             "runs as root can do that. Empty: the server's own."},
};

#undef AT

static const struct setting_table process_table = {
    process_rows, sizeof(process_rows) / sizeof(process_rows[0])};

const struct setting_elements process_elements = {
    .table = &process_table,
    .bytes = sizeof(struct process_def),
    .max = ROADS_MAX,
    .is_name = agent_name_is_valid,
    .name_allowed = "1 to 128 letters, digits, \".\", \"_\" and \"-\" that "
                    "begin with a letter or digit",
};

/* Models. */

static bool is_model_name(struct str name)
{
    char text[AGENT_NAME_MAX + 16];
    struct agent_url url;
    struct buf out;
    bool is_one;

    if (name.n > AGENT_NAME_MAX)
        return false;
    buf_init(&out, sizeof(text));
    buf_addf(&out, "model:%.*s", STR_ARG(name));
    is_one = agent_url_read(buf_str(&out), &url, NULL) == OK;
    buf_fini(&out);
    return is_one;
}

#define AT(field) .offset = offsetof(struct model_def, field)

static const struct setting model_rows[] = {
    {"baseUrl", AT(base_url), .type = &type_endpoint,
     .explain = setting_explain_endpoint,
     .what = "Where it is served, up to `/v1`: `/chat/completions` is added, "
             "or `/messages`. It may be on this machine or within, whatever "
             "`outgoing.allow` says."},
    {"kind", AT(kind), .type = &type_choice, .preset = "\"openai\"",
     .names = model_kind_names,
     .what = "What it speaks: OpenAI's `/v1/chat/completions`, as most do, or "
             "Anthropic's `/v1/messages`."},
    {"model", AT(model), .type = &type_text, .preset = "\"\"", .max = 255,
     .what = "What it is called there; empty: agents say, as `NAME/MODEL`."},
    {"keyVariable", AT(key_variable), .type = &type_variable,
     .explain = setting_explain_variable, .preset = "\"\"",
     .what = "The name of the environment variable that holds the key; empty: "
             "none is sent."},
    {"systemPrompt", AT(system_prompt), .type = &type_text, .preset = "\"\"",
     .max = AGENT_PROMPT_MAX,
     .what = "What it is told to be, where the agent has no "
             "`routing.systemPrompt`."},
    {"maxTokens", AT(max_tokens), .type = &type_int, .preset = "0", .min = 0,
     .max = 10 * 1000 * 1000,
     .what =
         "How long an answer may be. 0: as the endpoint has it; one of kind "
         "`anthropic`, which must be told, is told 4096."},
    {"temperature", AT(temperature), .type = &type_real_or_none,
     .preset = "null", .min = 0, .max = 2,
     .what = "How freely it answers; null: as the endpoint has it."},
    {"historyMessages", AT(history_messages), .type = &type_int, .preset = "40",
     .min = 0, .max = 1000,
     .what = "How much of a conversation it is told again: so many messages."},
    {"historyBytes", AT(history_bytes), .type = &type_int, .preset = "65536",
     .min = 0, .max = 16 * MIB, .unit = "bytes",
     .what = "And so much of their text, the latest first."},
    {"timeoutMs", AT(timeout_ms), .type = &type_int, .preset = "600000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long one answer may take."},
    {"silenceMs", AT(silence_ms), .type = &type_int, .preset = "60000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long nothing may come of it."},
    {"tools", AT(tools), .type = &type_bool, .preset = "true",
     .what = "Whether its agents may use tools, `delegate_to_agent` and "
             "`search_agents`, where they may delegate at all."},
};

static const struct setting_table model_table = {
    model_rows, sizeof(model_rows) / sizeof(model_rows[0])};

const struct setting_elements model_elements = {
    .table = &model_table,
    .bytes = sizeof(struct model_def),
    .max = ROADS_MAX,
    .is_name = is_model_name,
    .name_allowed = "1 to 128 letters, digits, \".\", \"_\", \"-\", \":\", "
                    "\"/\", \"@\" and \"+\" that begin with a letter or digit",
};

_Static_assert(offsetof(struct process_def, name) == 0 &&
                   offsetof(struct model_def, name) == 0,
               "where an object by name has it");
