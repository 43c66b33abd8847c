/* Programs and models that agents run on, in the configuration. */
#include "server/config/internal.h"
#include "test/lib/config_stage.h"

static const struct agent *agent_of(const struct config *c, const char *name)
{
    for (size_t i = 0; c && i < c->agents.n; i++)
        if (str_eq(c->agents.list[i].name, str_of(name)))
            return &c->agents.list[i];
    CHECK(!"no such agent");
    return NULL;
}

static const struct process_def *process_of(const struct config *c,
                                            const char *name)
{
    for (size_t i = 0; c && i < c->processes.n; i++)
        if (str_eq(c->processes.list[i].name, str_of(name)))
            return &c->processes.list[i];
    CHECK(!"no such process");
    return NULL;
}

static bool has(const struct strs *list, const char *word)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->list[i], str_of(word)))
            return true;
    return false;
}

static struct config *load_with(const char *text, char *const *env)
{
    return config_load_text("t.jsonc", str_of(text),
                            &(struct config_source){.environ = env}, &report);
}

TEST(deliver_and_hub_have_their_defaults)
{
    struct config *c = load_text("{}");

    CHECK(c && c->deliver.max_in_flight == 10000 && c->deliver.in_flight == 64);
    CHECK(c->deliver.queue == 10000 && c->deliver.max_attempts == 8);
    CHECK(c->deliver.retry_ms == 500 && c->deliver.retry_max_ms == 30000);
    CHECK(c->deliver.breaker_failures == 5);
    CHECK(c->deliver.breaker_pause_ms == 10000 && c->deliver.wake_ms == 30000);
    CHECK(c->deliver.on_offline == CONFIG_OFFLINE_REFUSE);
    CHECK(c->deliver.silence_ms == 60000 && c->deliver.input_ms == 30000);
    CHECK(c->deliver.max_gathered_bytes == 256 * 1024 * 1024);
    CHECK(c->hub.max_open == 256 && c->hub.max_listening == 1024);
    CHECK(!c->hub.messages_per_second && c->ws.timeout_ms == 90000);
    CHECK(!c->processes.n && !c->models.n);
    config_free(c);
    c = load_text("{\"deliver\": {\"onOffline\": \"hold\"}}");
    CHECK(c && c->deliver.on_offline == CONFIG_OFFLINE_HOLD);
    config_free(c);
}

TEST(a_program_has_all_of_its_parts)
{
    struct config *c = load_text(
        "{\"processes\": {\"coder\": {\"command\": [\"pi\", \"--mode\", "
        "\"rpc\"],"
        "\"dialect\": \"pi\", \"workspace\": \"/w\", \"env\": {\"A\": \"1=2\"},"
        "\"envAllowed\": [\"KEY\", \"_x1\"], \"model\": \"a/b\", \"min\": 1,"
        "\"max\": 2, \"idleMs\": 11, \"startMs\": 12, \"stopGraceMs\": 13,"
        "\"onCancel\": \"ask\", \"maxLineBytes\": 2048, \"memoryBytes\": 5,"
        "\"cpuSeconds\": 6, \"files\": 7, \"processes\": 8},"
        "\"plain\": {\"command\": [\"./run\"]}}}");
    const struct process_def *d = process_of(c, "coder");

    CHECK(says(c, "") && c->processes.n == 2);
    CHECK(d->command.n == 3 && d->dialect == DIALECT_PI);
    CHECK_STR(d->command.list[2], "rpc");
    CHECK_STR(d->workspace, "/w");
    CHECK_STR(d->env.list[0], "A=1=2");
    CHECK_STR(d->env_allowed.list[1], "_x1");
    CHECK_STR(d->model, "a/b");
    CHECK(d->min == 1 && d->max == 2 && d->idle_ms == 11 && d->start_ms == 12);
    CHECK(d->stop_grace_ms == 13 && d->cancel == CANCEL_ASKS);
    CHECK(d->max_line_bytes == 2048 && d->memory_bytes == 5);
    CHECK(d->cpu_s == 6 && d->files == 7 && d->processes == 8);
    d = process_of(c, "plain");
    CHECK(d->dialect == DIALECT_SIGNALBOX && d->cancel == CANCEL_STOPS);
    CHECK(!d->workspace.n && !d->env.n && d->max == 4 && !d->min);
    config_free(c);
}

TEST(a_model_has_all_of_its_parts)
{
    struct config *c = load_text(
        "{\"models\": {\"a/b:c\": {\"baseUrl\": \"https://x/v1\", \"model\": "
        "\"m\", \"keyVariable\": \"\", \"systemPrompt\": \"Be\\nkind.\","
        "\"maxTokens\": 9, \"temperature\": 0, \"historyMessages\": 0,"
        "\"historyBytes\": 3, \"timeoutMs\": 20, \"silenceMs\": 21,"
        "\"tools\": false},"
        "\"d\": {\"baseUrl\": \"http://127.0.0.1:11434/v1\"}}}");
    const struct model_def *d;

    CHECK(says(c, "") && c && c->models.n == 2 && !report.n_warnings);
    d = &c->models.list[0];
    CHECK_STR(d->name, "a/b:c");
    CHECK_STR(d->base_url, "https://x/v1");
    CHECK_STR(d->system_prompt, "Be\nkind.");
    CHECK(d->max_tokens == 9 && d->temperature == 0 && !d->history_messages);
    CHECK(d->history_bytes == 3 && d->timeout_ms == 20 && d->silence_ms == 21);
    CHECK(d[1].temperature < 0 && !d[1].model.n && !d[1].key.n);
    CHECK(d[1].history_messages == 40 && d[1].history_bytes == 65536);
    CHECK(!d[0].tools && d[1].tools);
    config_free(c);
}

/* A whole file, and part of the report; NULL: it is empty. */
static const struct {
    const char *text, *words;
} cases[] = {
    {"{\"processes\": 5}", "an object with up to 1024 objects by name, not 5"},
    {"{\"processes\": {\"a b\": {}}}",
     "t.jsonc:1:16: processes has the name \"a b\"; it must be 1 to 128"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"]}, \"A\": {\"command\": "
     "[\"x\"]}}}",
     "differs only in case"},
    {"{\"processes\": {\"a\": 5}}",
     "t.jsonc:1:21: processes.a must be an object, { ... }, not 5"},
    {"{\"processes\": {\"a\": {}}}", "processes.a has no \"command\""},
    {"{\"processes\": {\"a\": {\"command\": []}}}",
     "processes.a.command must have at least 1 element"},
    {"{\"processes\": {\"a\": {\"command\": \"x\"}}}",
     "processes.a.command must be a list"},
    {"{\"processes\": {\"a\": {\"command\": [\"\"]}}}",
     "the process \"a\" has no program"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\", 1]}}}",
     "processes.a.command[1] must be a text"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"dialct\": \"pi\"}}}",
     "did you mean \"processes.a.dialect\"?"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"dialect\": \"tcp\"}}}",
     "processes.a.dialect must be \"signalbox\" or \"pi\", not \"tcp\""},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"onCancel\": \"kill\"}}}",
     "\"stop\" or \"ask\""},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"max\": 257}}}",
     "from 1 to 256, not 257"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"min\": 5}}}",
     "the process \"a\" has min 5 and max 4"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"env\": {\"A-B\": "
     "\"\"}}}}",
     "processes.a.env has the name \"A-B\""},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"env\": {\"A\": 5}}}}",
     "processes.a.env.A must be a text"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"envAllowed\": "
     "[\"A=B\"]}}}",
     "processes.a.envAllowed[0] must be the name of a variable"},
    {"{\"processes\": {\"a\": {\"command\": [\"x\"], \"workspace\": \"~/x\"}}}",
     "HOME is not set"},
    {"{\"models\": {\"a\": {}}}", "models.a has no \"baseUrl\""},
    {"{\"models\": {\"a\": {\"baseUrl\": \"\"}}}", "a URL with http or https"},
    {"{\"models\": {\"a\": {\"baseUrl\": \"https://x\", \"kind\": "
     "\"claude\"}}}",
     "\"openai\" or \"anthropic\""},
    {"{\"models\": {\"a\": {\"baseUrl\": \"ftp://x\"}}}",
     "https:// or http://"},
    {"{\"models\": {\"a\": {\"baseUrl\": \"https://x\", \"temperature\": 3}}}",
     "a number from 0 to 2, or null, not 3"},
    {"{\"models\": {\"-\": {\"baseUrl\": \"https://x\"}}}",
     "models has the name \"-\""},

    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": \"codr\"}]},"
     "\"processes\": {\"coder\": {\"command\": [\"x\"]}}}",
     "agents.list[0].process names the process \"codr\", and processes has no "
     "entry of that name; did you mean \"coder\"?"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"process:codr\"}]},"
     "\"processes\": {\"coder\": {\"command\": [\"x\"]}}}",
     "t.jsonc:1:41: agents.list[0].url names the process \"codr\""},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"model:x\"}]}}",
     "agents.list[0].url names the model \"x\", and models has neither"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"model\": \"opnai/x\"}]},"
     "\"models\": {\"openai\": {\"baseUrl\": \"https://x\"}}}",
     "nor \"opnai\"; did you mean \"openai\"?"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"model\": \"openai\"}]},"
     "\"models\": {\"openai\": {\"baseUrl\": \"https://x\"}}}",
     "write \"openai/MODEL\" here"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"model\": \"a b\"}]}}",
     "agents.list[0].model must have a model's name"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"model\": 5}]}}",
     "agents.list[0].model must be the name of a model, not 5"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": 5}]}}",
     "must be an object or a name in processes, not 5"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": {}}]}}",
     "agents.list[0].process has no \"command\""},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": {\"command\": "
     "[\"x\"], \"maxx\": 1}}]}}",
     "did you mean \"agents.list[0].process.max\"?"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"workspce\": \"x\"}]}}",
     "workspace"},
    {"{\"agents\": {\"defaults\": {\"process\": {\"maxx\": 1}}, \"list\": "
     "[{\"id\": \"a\"}, {\"id\": \"b\"}]}}",
     "did you mean \"agents.defaults.process.max\"?"},
    {"{\"agents\": {\"defaults\": {\"workspace\": 1}, \"list\": "
     "[{\"id\": \"a\"}]}}",
     "agents.defaults.workspace must be a text, not 1"},
    {"{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": {\"command\": "
     "[\"x\"]}}, {\"id\": \"b\", \"process\": \"a\"}]}}",
     "agents.list[1].process names the process \"a\""},
    {"{\"agents\": {\"list\": [{\"id\": \"A\", \"process\": {\"command\": "
     "[\"x\"]}}]}, \"processes\": {\"a\": {\"command\": [\"x\"]}}}",
     "processes already has one with the name \"A\""},
};

TEST(what_is_wrong_is_said_with_its_place)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c = load_text(cases[i].text);

        CHECK(!c && says(c, cases[i].words));
        CHECK_INT(report.n_errors, 1);
        config_free(c);
    }
}

TEST(an_agent_is_the_program_or_model_it_names)
{
    struct config *c = load_text(
        "{\"agents\": {\"list\": ["
        "{\"id\": \"shared\", \"process\": \"Coder\"},"
        "{\"id\": \"own\", \"process\": {\"command\": [\"x\"]}},"
        "{\"id\": \"apart\", \"process\": \"coder\", \"workspace\": \"/w\"},"
        "{\"id\": \"talk\", \"model\": \"openai/gpt:1\"},"
        "{\"id\": \"exact\", \"model\": \"a/b\"},"
        "{\"id\": \"both\", \"url\": \"echo:\", \"process\": \"coder\"},"
        "{\"id\": \"hub\"}]},"
        "\"processes\": {\"coder\": {\"command\": [\"c\"], \"dialect\": "
        "\"pi\"}},"
        "\"models\": {\"openai\": {\"baseUrl\": \"https://x\"}, \"a/b\": "
        "{\"baseUrl\": \"https://y\", \"model\": \"m\"}}}");

    CHECK(says(c, "agents.list[5].process is not used: the agent has a url"));
    CHECK(c && report.n_warnings == 1);
    CHECK_STR(agent_of(c, "shared")->url, "process:coder");
    CHECK_STR(agent_of(c, "own")->url, "process:own");
    CHECK_STR(agent_of(c, "apart")->url, "process:apart");
    CHECK_STR(agent_of(c, "talk")->url, "model:openai/gpt:1");
    CHECK_STR(agent_of(c, "exact")->url, "model:a/b");
    CHECK_STR(agent_of(c, "both")->url, "echo:");
    CHECK_STR(agent_of(c, "hub")->url, "ws-agent://hub");
    CHECK_INT(c->processes.n, 3);
    CHECK_STR(process_of(c, "apart")->workspace, "/w");
    CHECK_STR(process_of(c, "apart")->command.list[0], "c");
    CHECK(!process_of(c, "coder")->workspace.n);
    config_free(c);
}

/* Agents that each have a workspace and a model are programs of one kind. */
TEST(a_model_beside_the_process_of_the_defaults_is_that_processs)
{
    struct config *c = load_text(
        "{\"agents\": {\"defaults\": {\"process\": {\"command\": [\"pi\"],"
        "\"dialect\": \"pi\", \"max\": 2}, \"model\": \"x/y\"}, \"list\": ["
        "{\"id\": \"code\", \"workspace\": \"/c\", \"model\": \"p/m\"},"
        "{\"id\": \"docs\", \"process\": {\"max\": 9}},"
        "{\"id\": \"echo\", \"url\": \"echo:\"},"
        "{\"id\": \"none\", \"process\": null, \"model\": null}]}}");

    CHECK(says(c, "") && c && !report.n_warnings && c->processes.n == 2);
    CHECK_STR(agent_of(c, "code")->url, "process:code");
    CHECK_STR(process_of(c, "code")->model, "p/m");
    CHECK_STR(process_of(c, "code")->workspace, "/c");
    CHECK(process_of(c, "code")->max == 2);
    CHECK(process_of(c, "docs")->max == 9);
    CHECK_STR(process_of(c, "docs")->model, "x/y");
    CHECK_STR(agent_of(c, "echo")->url, "echo:");
    CHECK_STR(agent_of(c, "none")->url, "ws-agent://none");
    config_free(c);
}

TEST(an_entrys_own_word_comes_before_the_url_of_the_defaults)
{
    struct config *c = load_text(
        "{\"agents\": {\"defaults\": {\"url\": \"echo:\"}, \"list\": ["
        "{\"id\": \"a\"}, {\"id\": \"b\", \"process\": {\"command\": "
        "[\"x\"]}}]}}");

    CHECK(says(c, "") && c);
    CHECK_STR(agent_of(c, "a")->url, "echo:");
    CHECK_STR(agent_of(c, "b")->url, "process:b");
    config_free(c);
}

TEST(what_is_not_used_is_warned_of)
{
    struct config *c = load_text(
        "{\"agents\": {\"list\": ["
        "{\"id\": \"a\", \"process\": {\"command\": [\"x\"]}, \"model\": "
        "\"m\"},"
        "{\"id\": \"b\", \"model\": \"m\", \"workspace\": \"/x\"},"
        "{\"id\": \"c\", \"workspace\": \"/x\"}]},"
        "\"models\": {\"m\": {\"baseUrl\": \"https://x\", \"model\": \"y\"}}}");

    CHECK(says(c, "agents.list[0].model is not used: its process does not"));
    CHECK(says(c, "agents.list[1].workspace is not used: a model has no"));
    CHECK(says(
        c, "agents.list[2].workspace is not used: the agent has no process"));
    CHECK(c && report.n_warnings == 3);
    config_free(c);
}

/* As in the design of multi-agent routing. */
TEST(a_model_with_a_workspace_is_run_by_pi)
{
    char home[] = "HOME=/h", key[] = "ANTHROPIC_API_KEY=k",
         other[] = "OPENAI_API_KEY=o", pi[] = "PI_CODING_AGENT_DIR=/p";
    char *env[] = {home, key, other, pi, NULL};
    struct config *c = load_with(
        "{\"agents\": {\"list\": [{\"id\": \"code\", \"workspace\": "
        "\"~/code-workspace\", \"model\": \"anthropic/claude-sonnet-4\"},"
        "{\"id\": \"bare\", \"workspace\": \"/w\", \"model\": "
        "\"claude\"}]}}",
        env);
    const struct process_def *d = process_of(c, "code");
    static const char *const words[] = {"pi", "--mode", "rpc", "--no-session"};

    CHECK(says(c, "") && c && !report.n_warnings);
    CHECK_STR(agent_of(c, "code")->url, "process:code");
    CHECK_INT(d->command.n, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(d->command.list[i], words[i]);
    CHECK(d->dialect == DIALECT_PI && d->tools && d->max == 4);
    CHECK_STR(d->workspace, "/h/code-workspace");
    CHECK_STR(d->model, "anthropic/claude-sonnet-4");
    CHECK(has(&d->whole_env, key) && has(&d->whole_env, pi));
    CHECK(!has(&d->whole_env, other)); /* the key of another provider */
    CHECK_STR(process_of(c, "bare")->model, "claude");
    CHECK(!has(&process_of(c, "bare")->whole_env, key));
    config_free(c);
}

TEST(which_key_pi_gets_is_told_by_the_provider)
{
    static const struct {
        const char *model, *entry;
    } keys[] = {
        {"anthropic/m", "ANTHROPIC_OAUTH_TOKEN=1"},
        {"google/m", "GEMINI_API_KEY=1"},
        {"minimax-cn/m", "MINIMAX_CN_API_KEY=1"},
        {"x.ai/m", "X_AI_API_KEY=1"},
    };
    char text[256], entry[64];
    char *env[] = {entry, NULL};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct config *c;

        snprintf(entry, sizeof(entry), "%s", keys[i].entry);
        snprintf(text, sizeof(text),
                 "{\"agents\": {\"list\": [{\"id\": \"a\", \"workspace\": "
                 "\"/w\", \"model\": \"%s\"}]}}",
                 keys[i].model);
        c = load_with(text, env);
        CHECK(says(c, "") && has(&process_of(c, "a")->whole_env, entry));
        config_free(c);
    }
}

TEST(an_entry_of_models_or_a_process_goes_before_pi)
{
    struct config *c = load_text(
        "{\"agents\": {\"list\": ["
        "{\"id\": \"a\", \"model\": \"m/x\", \"workspace\": \"/w\"},"
        "{\"id\": \"b\", \"model\": \"n/x\", \"workspace\": \"/w\","
        "\"process\": {\"command\": [\"my-pi\"], \"dialect\": \"pi\"}}]},"
        "\"models\": {\"m\": {\"baseUrl\": \"https://x\"}}}");

    CHECK(says(c, "agents.list[0].workspace is not used: a model has no"));
    CHECK_STR(agent_of(c, "a")->url, "model:m/x");
    CHECK_STR(process_of(c, "b")->command.list[0], "my-pi");
    CHECK_STR(process_of(c, "b")->model, "n/x");
    config_free(c);
    c = load_text("{\"agents\": {\"list\": [{\"id\": \"a\", \"model\": "
                  "\"anthropic/x\"}]}}");
    CHECK(says(c, "models has neither that nor \"anthropic\"; if the agent had "
                  "a workspace, pi would run it"));
    config_free(c);
}

TEST(paths_begin_at_the_file_or_at_home)
{
    char home[] = "HOME=/home/me";
    char *env[] = {home, NULL};
    struct config *c = config_load_text(
        "/etc/sb/t.jsonc",
        STR("{\"agents\": {\"list\": [{\"id\": \"a\", \"process\": \"p\", "
            "\"workspace\": \"~/w\"}]}, \"processes\": {\"p\": {\"command\": "
            "[\"./x\"], \"workspace\": \"w\"}}}"),
        &(struct config_source){.environ = env}, &report);

    CHECK(says(c, "") && c);
    CHECK_STR(process_of(c, "a")->workspace, "/home/me/w");
    CHECK_STR(process_of(c, "p")->workspace, "/etc/sb/w");
    CHECK_STR(process_of(c, "p")->command.list[0], "./x");
    config_free(c);
}

TEST(a_program_gets_what_it_is_allowed_of_the_environment)
{
    char path[] = "PATH=/bin", lang[] = "LC_TIME=C", key[] = "KEY=sk-1",
         token[] = "TOKEN=t-1", home[] = "HOME=/h";
    char *env[] = {path, lang, key, token, home, NULL}, *none[] = {NULL};
    static const char text[] =
        "{\"processes\": {\"p\": {\"command\": [\"x\"], \"env\": {\"HOME\": "
        "\"/x\", \"E\": \"\"}, \"envAllowed\": [\"KEY\", \"GONE\"]}}}";
    struct config *c = load_with(text, env);
    const struct strs *got = &process_of(c, "p")->whole_env;

    CHECK(says(c, "") && got->n == 5);
    CHECK(has(got, "PATH=/bin") && has(got, "LC_TIME=C") &&
          has(got, "KEY=sk-1") && has(got, "HOME=/x") && has(got, "E="));
    config_free(c);
    c = load_with(text, none);
    got = &process_of(c, "p")->whole_env;
    CHECK(got->n == 3 && has(got, "PATH=/usr/local/bin:/usr/bin:/bin"));
    config_free(c);
}

TEST(a_program_has_a_sandbox_and_its_lists)
{
    struct config *c = load_text(
        "{\"data\": \"/not/there/data\", \"processes\": {\"p\": {\"command\": "
        "[\"x\"], \"workspace\": \"/not/there/w\", \"read\": [\"/r\"], "
        "\"write\": [\"/v\", \"/w\"], \"user\": \"u\"}, \"q\": {\"command\": "
        "[\"x\"], \"sandbox\": false, \"workspace\": \"/not\"}}}");
    const struct process_def *p = c ? process_of(c, "p") : NULL;

    CHECK(says(c, "") && c);
    CHECK(p->sandbox && p->read.n == 1 && p->write.n == 2);
    CHECK_STR(p->write.list[1], "/w");
    CHECK_STR(p->user, "u");
    CHECK(!process_of(c, "q")->sandbox);
    CHECK_STR(c->closed.list[0], "/not/there/data");
    config_free(c);
}

TEST(a_path_that_holds_the_data_folder_is_an_error)
{
    static const char *const bad[] = {
        "\"workspace\": \"/not/there\"",
        "\"workspace\": \"/not/there/data/w\"",
        "\"read\": [\"/usr\", \"/\"]",
        "\"write\": [\"/not\"]",
    };
    char text[256];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"data\": \"/not/there/data\", \"processes\": {\"p\": "
                 "{\"command\": [\"x\"], %s}}}",
                 bad[i]);
        CHECK(says(load_text(text), "the server's data folder"));
        CHECK(report.n_errors == 1);
    }
    CHECK(says(load_text("{\"processes\": {\"p\": {\"command\": [\"x\"], "
                         "\"user\": \"u\", \"sandbox\": false}}}"),
               "only the sandbox can change the user"));
}

/* The limit, and one more. */
TEST(lists_of_paths_have_a_limit)
{
    for (size_t n = PROCESS_PATHS_MAX; n <= PROCESS_PATHS_MAX + 1; n++) {
        struct config *c;
        struct buf text;

        buf_init(&text, 64 * 1024);
        buf_addf(&text, "{\"processes\": {\"p\": {\"command\": [\"x\"], "
                        "\"read\": [");
        for (size_t i = 0; i < n; i++)
            buf_addf(&text, "%s\"/r%zu\"", i ? "," : "", i);
        buf_addf(&text, "]}}}");
        buf_add_char(&text, '\0');
        c = load_text(text.p);
        CHECK((c != NULL) == (n == PROCESS_PATHS_MAX));
        config_free(c);
        buf_fini(&text);
    }
}

TEST(keys_and_values_are_never_shown)
{
    char key[] = "MY_KEY=sk-abc123";
    char *env[] = {key, NULL}, *none[] = {NULL};
    static const char text[] =
        "{\"models\": {\"m\": {\"baseUrl\": \"http://10.0.0.1/v1?k=sk-abc123\","
        "\"keyVariable\": \"MY_KEY\"}}, \"processes\": {\"p\": {\"command\": "
        "[\"x\"], \"env\": {\"T\": \"sk-abc123\"}, \"envAllowed\": "
        "[\"MY_KEY\"]}}}";
    struct config *c = load_with(text, env);
    struct buf out;

    CHECK(says(
        c,
        "the key and all requests to the model \"m\" are sent in plain text"));
    CHECK(c && report.n_warnings == 1);
    CHECK_STR(c->models.list[0].key, "sk-abc123");
    buf_init(&out, 64 * 1024);
    config_write_json(c, &out);
    CHECK(out.n && !out.over && !memmem(out.p, out.n, "sk-abc123", 9));
    CHECK(memmem(out.p, out.n, "\"T\":\"not-shown\"", 15));
    buf_fini(&out);
    config_free(c);
    c = load_with(text, none);
    CHECK(says(c, "is expected in MY_KEY, which is not set"));
    CHECK(c && !c->models.list[0].key.n);
    config_free(c);
    c = load_text("{\"processes\": {\"p\": {\"command\": [\"x\"], \"env\": "
                  "\"T=sk-abc123\"}}}");
    CHECK(says(c, "processes.p.env must be an object"));
    CHECK(!strstr(report.text, "abc123"));
    config_free(c);
}

/* The output is a valid file, including agents' own programs. */
TEST(what_is_printed_comes_to_the_same)
{
    struct config
        *c = load_text(
            "{\"agents\": {\"list\": [{\"id\": \"own\", \"process\": "
            "{\"command\": "
            "[\"x\"], \"max\": 7}}, {\"id\": \"m\", \"model\": \"o/x\"}]},"
            "\"models\": {\"o\": {\"baseUrl\": \"https://x/v1\", "
            "\"temperature\": "
            "0.5}}}"),
        *again;
    struct buf out, second;

    CHECK(says(c, "") && c);
    buf_init(&out, 64 * 1024);
    buf_init(&second, 64 * 1024);
    config_write_json(c, &out);
    again = config_load_text("t.jsonc", buf_str(&out),
                             &(struct config_source){0}, &report);
    CHECK(says(again, "") && again);
    config_write_json(again, &second);
    CHECK(str_eq(buf_str(&out), buf_str(&second)));
    CHECK(process_of(again, "own")->max == 7);
    buf_fini(&out);
    buf_fini(&second);
    config_free(c);
    config_free(again);
}

TEST(definitions_may_come_from_a_variable_or_a_flag)
{
    char text[] = "SIGNALBOX_PROCESSES={\"p\":{\"command\":[\"x\"]}}",
         bad[] = "SIGNALBOX_MODELS=openai";
    char *env[] = {text, NULL}, *wrong[] = {bad, NULL};
    struct config *c = load_env(env);

    CHECK(says(c, "") && c && c->processes.n == 1);
    config_free(c);
    c = load_env(wrong);
    CHECK(!c && says(c, "models must be JSON, { ... }"));
}

/* One definition more than the limit, including agents' own. */
TEST(there_is_a_limit_of_programs)
{
    struct buf text;
    struct config *c;

    for (int more = 0; more < 2; more++) {
        buf_init(&text, 1024 * 1024);
        buf_addf(&text, "{\"processes\": {");
        for (int i = 0; i < TRANSPORTS_MAX - 1; i++)
            buf_addf(&text, "\"p%d\": {\"command\": [\"x\"]},", i);
        buf_addf(&text, "}, \"agents\": {\"list\": [");
        for (int i = 0; i < 1 + more; i++)
            buf_addf(&text,
                     "{\"id\": \"a%d\", \"process\": {\"command\": "
                     "[\"x\"]}},",
                     i);
        buf_addf(&text, "]}}");
        c = config_load_text("t.jsonc", buf_str(&text),
                             &(struct config_source){0}, &report);
        if (more)
            CHECK(!c && says(c, "there may be up to 1024 processes"));
        else
            CHECK(says(c, "") && c && c->processes.n == TRANSPORTS_MAX);
        config_free(c);
        buf_fini(&text);
    }
}

/* Agents are discarded after an error, but their references are still checked.
 */
TEST(one_look_finds_all)
{
    struct config *c = load_text(
        "{\"node\": 5, \"agents\": {\"list\": ["
        "{\"id\": \"a\", \"process\": {\"command\": [\"x\"], \"min\": 9}},"
        "{\"id\": \"b\", \"url\": \"process:absent\"},"
        "{\"id\": \"c\", \"model\": \"nothing\"}]}}");

    CHECK(says(c, "t.jsonc:1:10: node must be"));
    CHECK(says(c, "agents.list[1].url names the process \"absent\""));
    CHECK(says(c, "agents.list[2].model names the model \"nothing\""));
    CHECK(says(c, "the process \"a\" has min 9 and max 4"));
    CHECK_INT(report.n_errors, 4);
}
