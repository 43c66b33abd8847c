/* The remote view of a running configuration: every setting with its source,
 * the changes that wait for a restart, and no secret anywhere. */
#include "base/json.h"
#include "test/lib/config_stage.h"

enum { ACCOUNT_BYTES = 1 << 20 };

struct account {
    struct buf text;
    struct arena arena;
    const struct json *root; /* settings, and the lists */
};

static void account_init(struct account *a, const struct config *built_from,
                         const struct config *now)
{
    struct json_out o;

    buf_init(&a->text, ACCOUNT_BYTES);
    arena_init(&a->arena, 16 << 20);
    o = json_out(&a->text);
    json_open(&o, '{');
    json_key(&o, STR("settings"));
    config_write_settings(&o, built_from, now);
    config_write_lists(&o, now);
    json_close(&o, '}');
    a->root = json_parse(&a->arena, buf_str(&a->text), 0, NULL);
    CHECK(a->root);
}

static void account_fini(struct account *a)
{
    arena_fini(&a->arena);
    buf_fini(&a->text);
}

static const struct json *named(const struct account *a, const char *name)
{
    const struct json *all = json_get(a->root, STR("settings"));

    JSON_EACH(kid, all)
    if (str_eq(json_str_or(json_get(kid, STR("name")), STR("")), str_of(name)))
        return kid;
    T_FAIL("no %s", name);
    return NULL;
}

static struct str text_of(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR(""));
}

static int64_t int_of(const struct json *v, const char *key)
{
    return json_int_or(json_get(v, str_of(key)), -1);
}

static const struct json *source(const struct account *a, const char *name)
{
    return json_get(named(a, name), STR("source"));
}

TEST(every_setting_is_there_once_with_its_default_and_its_sentence)
{
    struct config *c = load_text("{}");
    struct config_setting row;
    struct account a;
    size_t n = 0;

    account_init(&a, c, c);
    for (; config_setting(n, &row); n++) {
        const struct json *s = json_at(json_get(a.root, STR("settings")), n);

        CHECK(str_eq(text_of(s, "name"), str_of(row.path)));
        CHECK(str_eq(text_of(s, "what"), str_of(row.what)));
        CHECK(str_eq(text_of(s, "allowed"), str_of(row.allowed)));
        CHECK(str_eq(text_of(s, "variable"), str_of(row.variable)));
        CHECK(json_get(s, STR("default")));
        CHECK(str_eq(text_of(s, "taken_over_by"),
                     row.needs_restart ? STR("restart") : STR("reload")));
        CHECK(str_eq(text_of(json_get(s, STR("source")), "kind"),
                     STR("default")));
        CHECK(!json_get(s, STR("after_restart")));
    }
    CHECK(n > 100);
    CHECK_INT(json_get(a.root, STR("settings"))->kids.n, n);
    account_fini(&a);
    config_free(c);
}

TEST(each_source_is_named)
{
    char env[] = "SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=5000";
    char *environ_of[] = {env, NULL};
    struct str sets[] = {STR("log.level=debug"), STR("listen=127.0.0.1:0")};
    struct config_source src = {
        .environ = environ_of, .sets = sets, .n_sets = 2};
    struct config *c = config_load_text(
        "t.jsonc", STR("{\n  \"http\": { \"maxBodyBytes\": 10 }\n}"), &src,
        &report);
    struct account a;

    CHECK(c);
    account_init(&a, c, c);
    CHECK_INT(int_of(named(&a, "http.maxBodyBytes"), "value"), 10);
    CHECK_INT(int_of(named(&a, "http.maxBodyBytes"), "default"), 2097152);
    CHECK(
        str_eq(text_of(source(&a, "http.maxBodyBytes"), "kind"), STR("file")));
    CHECK(str_eq(text_of(source(&a, "http.maxBodyBytes"), "name"),
                 STR("t.jsonc")));
    CHECK_INT(int_of(source(&a, "http.maxBodyBytes"), "line"), 2);
    CHECK_INT(int_of(source(&a, "http.maxBodyBytes"), "col"), 29);
    CHECK(str_eq(text_of(source(&a, "http.idleTimeoutMs"), "kind"),
                 STR("environment")));
    CHECK(str_eq(text_of(source(&a, "http.idleTimeoutMs"), "name"),
                 STR("SIGNALBOX_HTTP__IDLE_TIMEOUT_MS")));
    CHECK(
        str_eq(text_of(source(&a, "log.level"), "kind"), STR("command_line")));
    CHECK(str_eq(text_of(source(&a, "log.level"), "name"),
                 STR("--set log.level")));
    CHECK(str_eq(text_of(source(&a, "listen"), "name"), STR("--listen")));
    account_fini(&a);
    config_free(c);
}

/* A setting that needs a restart keeps its old value; others have the new one.
 */
TEST(what_waits_for_a_restart_is_told_beside_what_runs)
{
    struct config *then = load_text("{\"node\": \"a\"}");
    struct config *now =
        load_text("{\"node\": \"b\", \"retention\": {\"days\": 7}}");
    struct account a;

    account_init(&a, then, now);
    CHECK(str_eq(text_of(named(&a, "node"), "value"), STR("a")));
    CHECK(str_eq(text_of(named(&a, "node"), "after_restart"), STR("b")));
    CHECK_INT(int_of(named(&a, "retention.days"), "value"), 7);
    CHECK(!json_get(named(&a, "retention.days"), STR("after_restart")));
    account_fini(&a);
    config_free(then);
    config_free(now);
}

static void check_changed(const struct config *now, const struct config *then,
                          bool needs_restart, const char *wanted)
{
    struct json_out o;
    struct buf text;

    buf_init(&text, 4096);
    o = json_out(&text);
    config_write_changed(&o, now, then, needs_restart);
    if (!str_eq(buf_str(&text), str_of(wanted)))
        T_FAIL("%.*s, not %s", STR_ARG(buf_str(&text)), wanted);
    buf_fini(&text);
}

TEST(what_has_changed_is_named_and_what_of_it_needs_a_restart)
{
    struct config *then = load_text("{\"node\": \"a\"}");
    struct config *now =
        load_text("{\"node\": \"b\", \"retention\": {\"days\": 7}}");

    check_changed(then, now, false, "[\"node\",\"retention.days\"]");
    check_changed(then, now, true, "[\"node\"]");
    check_changed(now, now, false, "[]");
    config_free(then);
    config_free(now);
}

/* Every value that may be a secret is one, and all begin with the same word. */
static const char secretive[] =
    "{\"embed\": {\"kind\": \"http\", \"http\": {\"url\": "
    "\"https://e/v1?key=SECRET1\", \"model\": \"m\", \"keyVariable\": "
    "\"EMBED_KEY\"}},"
    "\"traces\": {\"endpoint\": \"https://t/v1?k=SECRET2\", "
    "\"headersVariable\": \"TRACE_HEADERS\"},"
    "\"routing\": {\"intentClassifier\": {\"enabled\": true, \"endpoint\": "
    "\"https://i/v1?k=SECRET3\", \"model\": \"m\", \"keyVariable\": "
    "\"INTENT_KEY\"}},"
    "\"models\": {\"m\": {\"baseUrl\": \"https://m/v1?k=SECRET4\", \"model\": "
    "\"x\", \"keyVariable\": \"MODEL_KEY\"}},"
    "\"processes\": {\"p\": {\"command\": [\"agent\", \"--key\", "
    "\"SECRET5\"], \"env\": {\"API_KEY\": \"SECRET6\"}, \"envAllowed\": "
    "[\"MODEL_KEY\"]}},"
    "\"agents\": {\"defaults\": {\"wake\": {\"url\": "
    "\"https://w/?k=SECRET7\"}}, \"list\": [{\"id\": \"a\", \"url\": "
    "\"https://a/x?k=SECRET8\"}, {\"id\": \"b\", \"process\": {\"command\": "
    "[\"x\", \"SECRET9\"]}}]}}";

TEST(no_secret_is_told_and_that_there_is_one_is)
{
    char one[] = "EMBED_KEY=SECRET_A", two[] = "TRACE_HEADERS=x=SECRET_B",
         three[] = "INTENT_KEY=SECRET_C", four[] = "MODEL_KEY=SECRET_D";
    char *env[] = {one, two, three, four, NULL};
    struct config_source src = {.environ = env};
    struct config *c =
        config_load_text("t.jsonc", str_of(secretive), &src, &report);
    const struct json *list;
    struct account a;

    if (!c)
        T_FAIL("%s", report.text);
    /* The secrets have been loaded. */
    CHECK(str_eq(c->models.list[0].key, STR("SECRET_D")));
    account_init(&a, c, c);
    if (memmem(a.text.p, a.text.n, "SECRET", 6))
        T_FAIL("a secret: %.60s",
               (const char *)memmem(a.text.p, a.text.n, "SECRET", 6) - 30);
    CHECK(str_eq(text_of(named(&a, "embed.http.keyVariable"), "secret"),
                 STR("…set…")));
    CHECK(str_eq(text_of(named(&a, "traces.headersVariable"), "secret"),
                 STR("…set…")));
    CHECK(str_eq(
        text_of(named(&a, "routing.intentClassifier.keyVariable"), "secret"),
        STR("…set…")));
    CHECK(str_eq(text_of(named(&a, "traces.endpoint"), "value"),
                 STR("https://t/v1?not-shown")));
    list = json_at(json_get(a.root, STR("models")), 0);
    CHECK(str_eq(text_of(list, "base_url"), STR("https://m/v1?not-shown")));
    CHECK(str_eq(text_of(list, "secret"), STR("…set…")));
    list = json_at(json_get(a.root, STR("processes")), 0);
    CHECK(str_eq(text_of(list, "program"), STR("agent")));
    CHECK_INT(int_of(list, "arguments"), 2);
    CHECK(str_eq(json_str_or(json_at(json_get(list, STR("env")), 0), STR("")),
                 STR("API_KEY")));
    CHECK_INT(int_of(named(&a, "agents.list"), "count"), 2);
    CHECK_INT(int_of(named(&a, "processes"), "count"), 2);
    account_fini(&a);
    config_free(c);
}

TEST(a_key_that_is_not_there_is_told_as_such)
{
    struct config *c = load_text(
        "{\"models\": {\"m\": {\"baseUrl\": \"https://m/v1\", \"model\": "
        "\"x\", \"kind\": \"anthropic\", \"keyVariable\": \"NOT_SET\"}}}");
    const struct json *m;
    struct account a;

    CHECK(c);
    account_init(&a, c, c);
    m = json_at(json_get(a.root, STR("models")), 0);
    CHECK(str_eq(text_of(m, "kind"), STR("anthropic")));
    CHECK(str_eq(text_of(m, "key_variable"), STR("NOT_SET")));
    CHECK(json_get(m, STR("secret"))->type == JSON_NULL);
    account_fini(&a);
    config_free(c);
}

TEST(a_problem_of_the_whole_is_one_of_the_file)
{
    struct config *c = load_text("{}");
    struct json_out o;
    struct buf text;

    buf_init(&text, 4096);
    config_report_whole(&report, c, "it does not fit");
    CHECK_INT(report.n_errors, 1);
    o = json_out(&text);
    json_open(&o, '{');
    config_report_write(&o, &report);
    json_close(&o, '}');
    CHECK(str_eq(buf_str(&text),
                 STR("{\"problems\":[{\"severity\":\"error\",\"where\":"
                     "\"signalbox\",\"message\":\"it does not fit\"}],"
                     "\"problems_left_out\":0}")));
    buf_fini(&text);
    config_free(c);
}
