/* The rows of `processes` and `models`, the definitions of programs and models
 * that agents run on. */
#include "base/url.h"
#include "server/config/internal.h"

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

static const struct setting word_row = {"", .type = &type_word,
                                        .preset = "\"\""};
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
               "the field of a list");

/* Programs. */

#define AT(field) .offset = offsetof(struct process_def, field)

static const struct setting process_rows[] = {
    {"command", AT(command), .type = &type_list, .elements = &words,
     .what = "The program and its arguments. A name is searched in the "
             "folders of `PATH`; a relative path starts at the workspace."},
    {"dialect", AT(dialect), .type = &type_choice, .preset = "\"signalbox\"",
     .names = dialect_names,
     .what = "Its protocol, one message per line: the hub's methods "
             "(`signalbox`), or that of `pi --mode rpc` (`pi`)."},
    {"workspace", AT(workspace), .type = &type_workspace, .preset = "\"\"",
     .what = "Its working folder; created if it does not exist and its "
             "parent does."},
    {"env", AT(env), .type = &type_env, .preset = "{}",
     .complain = setting_complain_env,
     .what = "Variables with their values, which are never shown."},
    {"envAllowed", AT(env_allowed), .type = &type_list, .preset = "[]",
     .elements = &env_names,
     .what = "Variables that it inherits from the server, in addition to "
             "`PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TMPDIR`, `TZ`, "
             "`LANG` and `LC_…`; no others are passed."},
    {"model", AT(model), .type = &type_text, .preset = "\"\"", .max = 255,
     .what = "The model that `pi` uses, as `PROVIDER/MODEL`; empty: its own "
             "default."},
    {"tools", AT(tools), .type = &type_bool, .preset = "true",
     .what = "Offer `pi` the tools `delegate_to_agent` and `agent_search`; "
             "an agent without the permission is rejected. They are passed "
             "as `--extension /proc/self/fd/4`, a file that is open in the "
             "program that `command` starts."},
    {"min", AT(min), .type = &type_int, .preset = "0", .min = 0,
     .max = PROCESS_POOL_MAX, .what = "Processes that are kept ready."},
    {"max", AT(max), .type = &type_int, .preset = "4", .min = 1,
     .max = PROCESS_POOL_MAX,
     .what = "Processes at once; each works on one task at a time."},
    {"idleMs", AT(idle_ms), .type = &type_int, .preset = "300000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long a process beyond `min` may be idle before it is "
             "stopped."},
    {"startMs", AT(start_ms), .type = &type_int, .preset = "30000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long it may take from its start to its first line."},
    {"stopGraceMs", AT(stop_grace_ms), .type = &type_int, .preset = "5000",
     .min = SHORTEST_MS, .max = 10 * 60 * SECOND_MS, .unit = "milliseconds",
     .what = "How long it may take to stop on request; then it and all its "
             "child processes are killed."},
    {"onCancel", AT(cancel), .type = &type_choice, .preset = "\"stop\"",
     .names = cancel_names,
     .what = "What happens to it when a task is cancelled: `stop` stops it; "
             "`ask` keeps it if it reports within `stopGraceMs` that it has "
             "cancelled the task."},
    {"maxLineBytes", AT(max_line_bytes), .type = &type_int,
     .preset = "16777216", .min = KIB, .max = 256 * MIB, .unit = "bytes",
     .what = "The longest line it may write; a longer one stops it."},
    {"memoryBytes", AT(memory_bytes), .type = &type_int, .preset = "0",
     .min = 0, .max = 64LL * KIB * KIB * MIB, .unit = "bytes",
     .what = "Its address space. 0: no limit. With a cgroup, also the memory "
             "of it and all its child processes together."},
    {"cpuSeconds", AT(cpu_s), .type = &type_int, .preset = "0", .min = 0,
     .max = 365 * 24 * 3600, .unit = "seconds",
     .what = "Its processor time. 0: no limit."},
    {"files", AT(files), .type = &type_int, .preset = "0", .min = 0,
     .max = 1000 * 1000,
     .what = "Files it may have open. 0: the system's default."},
    {"processes", AT(processes), .type = &type_int, .preset = "0", .min = 0,
     .max = 1000 * 1000,
     .what = "Processes and threads of the server's user in all, above which "
             "it may start no more (does not apply to root). 0: no limit. "
             "With a cgroup, also its own in all."},
    {"sandbox", AT(sandbox), .type = &type_bool, .preset = "true",
     .what = "Isolate it from the server, its data and other agents' files, "
             "as far as the kernel allows. It then sees the system's "
             "folders, its own command, the workspace, and `read` and "
             "`write`."},
    {"read", AT(read), .type = &type_list, .preset = "[]",
     .elements = &process_paths,
     .what = "Further files and folders that it may read in its sandbox."},
    {"write", AT(write), .type = &type_list, .preset = "[]",
     .elements = &process_paths,
     .what = "Files and folders that it may change in its sandbox, in "
             "addition to the workspace. `pi` always has its own folder, "
             "`~/.pi` or `PI_CODING_AGENT_DIR`."},
    {"user", AT(user), .type = &type_text, .preset = "\"\"", .max = 64,
     .what = "The user of this machine that it runs as; requires a server "
             "that runs as root. Empty: the server's user."},
};

#undef AT

static const struct setting_table process_table = {
    process_rows, sizeof(process_rows) / sizeof(process_rows[0])};

const struct setting_elements process_elements = {
    .table = &process_table,
    .bytes = sizeof(struct process_def),
    .max = TRANSPORTS_MAX,
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
     .what = "The URL of its API, up to `/v1`: `/chat/completions` or "
             "`/messages` is added. It may be on this machine or in a "
             "private network, regardless of `outgoing.allow`."},
    {"kind", AT(kind), .type = &type_choice, .preset = "\"openai\"",
     .names = model_kind_names,
     .what = "Its API: OpenAI's `/v1/chat/completions`, which most offer, or "
             "Anthropic's `/v1/messages`."},
    {"model", AT(model), .type = &type_text, .preset = "\"\"", .max = 255,
     .what = "Its name at the endpoint; empty: agents give it, as "
             "`NAME/MODEL`."},
    {"keyVariable", AT(key_variable), .type = &type_variable,
     .explain = setting_explain_variable, .preset = "\"\"",
     .what = "The name of the environment variable that holds the key; "
             "empty: no key is sent."},
    {"systemPrompt", AT(system_prompt), .type = &type_text, .preset = "\"\"",
     .max = AGENT_PROMPT_MAX,
     .what = "The system prompt for agents without `routing.systemPrompt`."},
    {"maxTokens", AT(max_tokens), .type = &type_int, .preset = "0", .min = 0,
     .max = 10 * 1000 * 1000,
     .what = "The longest answer. 0: the endpoint's default; with kind "
             "`anthropic`, which requires a value, 4096."},
    {"temperature", AT(temperature), .type = &type_real_or_none,
     .preset = "null", .min = 0, .max = 2,
     .what = "The sampling temperature; null: the endpoint's default."},
    {"historyMessages", AT(history_messages), .type = &type_int, .preset = "40",
     .min = 0, .max = 1000,
     .what = "Earlier messages of a conversation that are sent again."},
    {"historyBytes", AT(history_bytes), .type = &type_int, .preset = "65536",
     .min = 0, .max = 16 * MIB, .unit = "bytes",
     .what = "The size of their text, latest first."},
    {"timeoutMs", AT(timeout_ms), .type = &type_int, .preset = "600000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long one answer may take."},
    {"silenceMs", AT(silence_ms), .type = &type_int, .preset = "60000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long the endpoint may send nothing."},
    {"tools", AT(tools), .type = &type_bool, .preset = "true",
     .what = "Allow its agents to use the tools `delegate_to_agent` and "
             "`search_agents`, if they may delegate at all."},
};

static const struct setting_table model_table = {
    model_rows, sizeof(model_rows) / sizeof(model_rows[0])};

const struct setting_elements model_elements = {
    .table = &model_table,
    .bytes = sizeof(struct model_def),
    .max = TRANSPORTS_MAX,
    .is_name = is_model_name,
    .name_allowed = "1 to 128 letters, digits, \".\", \"_\", \"-\", \":\", "
                    "\"/\", \"@\" and \"+\" that begin with a letter or digit",
};

_Static_assert(offsetof(struct process_def, name) == 0 &&
                   offsetof(struct model_def, name) == 0,
               "the name is the first member");
