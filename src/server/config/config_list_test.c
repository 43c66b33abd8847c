#include "server/config/internal.h"
#include "test/lib/config_stage.h"

TEST(lists_are_empty_by_default)
{
    struct config *c = load_text("{}");

    CHECK(c && c->agents.n == 0);
    CHECK(c->http.allowed_hosts.n == 0 && c->http.allowed_origins.n == 0);
    config_free(c);
}

TEST(names_of_hosts_are_read)
{
    struct config *c =
        load_text("{\"http\": {\"allowedHosts\": [\"x.org\", \"y:80\"], "
                  "\"allowedOrigins\": [\"https://z.org\"]}}");

    CHECK(c && c->http.allowed_hosts.n == 2 && c->n_from_file == 2);
    CHECK_STR(c->http.allowed_hosts.list[0], "x.org");
    CHECK_STR(c->http.allowed_hosts.list[1], "y:80");
    CHECK(c->http.allowed_origins.n == 1);
    CHECK_STR(c->http.allowed_origins.list[0], "https://z.org");
    config_free(c);
}

static bool takes_name(const char *setting, const char *name)
{
    struct config *c;
    char text[512];

    snprintf(text, sizeof(text), "{\"http\": {\"%s\": [\"ok\", \"%s\"]}}",
             setting, name);
    if (strcmp(setting, "allowedOrigins") == 0)
        snprintf(text, sizeof(text),
                 "{\"http\": {\"%s\": [\"x://ok\", \"%s\"]}}", setting, name);
    c = load_text(text);
    CHECK(c || (report.n_errors == 1 && says(c, setting) &&
                says(c, "[1] must be \"")));
    config_free(c);
    return c != NULL;
}

TEST(hosts_have_no_scheme_and_no_path)
{
    static const char *const good[] = {
        "x",         "x.org", "X-y_z.org", "1.2.3.4", "x.org:1",   "x:65535",
        "localhost", "[::1]", "[::1]:80",  "x.org.",  "xn--p1ai.x"};
    static const char *const bad[] = {
        "",       "http://x", "x/",  "x:",  "x:0",      "x:65536",
        "x:-1",   "x:80:80",  ":80", "x y", "x@y",      "*",
        "*.x",    "[::1",     "::1", "[]",  "[x]",      "[::1]80",
        "[::1]:", "\xc3\xa4", ".x",  "-x",  "x\\u0000", "x:00000001",
        "[::1]x", "x?",       "x#",  "\\n", "x:8o",     "[::1]:0"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(takes_name("allowedHosts", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!takes_name("allowedHosts", bad[i]));
}

/* Whether rate.exempt may be a list of this element, and how it is shown. */
static bool takes_network(const char *text, const char *shown)
{
    char json[160], all[160];
    struct config *c;
    struct buf out;
    bool is_shown;

    snprintf(json, sizeof(json), "{\"rate\": {\"exempt\": [%s]}}", text);
    c = load_text(json);
    if (!c)
        return false;
    buf_init(&out, 65536);
    config_write_json(c, &out);
    buf_add_char(&out, '\0');
    snprintf(all, sizeof(all), "\"exempt\":[\"%s\"]", shown);
    is_shown = strstr(out.p, all);
    buf_fini(&out);
    config_free(c);
    return is_shown;
}

TEST(networks_are_read_and_shown)
{
    static const struct {
        const char *text, *shown;
    } good[] = {
        {"\"10.0.0.0/8\"", "10.0.0.0/8"}, {"\"10.0.0.7\"", "10.0.0.7"},
        {"\"10.0.0.7/32\"", "10.0.0.7"},  {"\"0.0.0.0/0\"", "0.0.0.0/0"},
        {"\"[::1]\"", "[::1]"},           {"\"[fd00::]/8\"", "[fd00::]/8"},
        {"\"[::]/0\"", "[::]/0"}};
    static const char *const bad[] = {"\"\"",
                                      "\"10.0.0.0/33\"",
                                      "\"10.0.0.7:80\"",
                                      "\"10.0.0.1/8\"",
                                      "\"[::1]:80\"",
                                      "\"localhost\"",
                                      "7",
                                      "[]",
                                      "\"10.0.0.0/8:443\"",
                                      "null",
                                      "\"10.0.0.0/8 \"",
                                      "\"[::]/129\""};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK(takes_network(good[i].text, good[i].shown));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!takes_network(bad[i], ""));
    CHECK(!takes_network("\"10.0.0.7:80\"", ""));
    CHECK(says(NULL, "rate.exempt[0] must be an address or a network like "));
    CHECK(!takes_network("\"10.0.0.1/8\"", ""));
    CHECK(says(NULL, "rate.exempt[0]: 10.0.0.1/8 has bits beyond its prefix"));
}

TEST(origins_are_a_scheme_and_a_host)
{
    static const char *const good[] = {
        "http://x",      "https://x.org:8443",
        "HTTPS://X.org", "chrome-extension://abc",
        "a+b.c-d1://x",  "http://[::1]:80"};
    static const char *const bad[] = {
        "",          "null",       "*",
        "x.org",     "//x",        "://x",
        "http:/x",   "http:x",     "http://",
        "http://x/", "http://x/y", "1http://x",
        "http://x:", "http://x:0", "ht tp://x",
        "http//x",   "http://a@x", "http://x http://y",
        "http:///x", "http://*.x"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(takes_name("allowedOrigins", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!takes_name("allowedOrigins", bad[i]));
}

/* Limits. */

static struct buf text;

static struct config *load_made(void)
{
    CHECK(!text.over);
    return config_load_text("t.jsonc", buf_str(&text),
                            &(struct config_source){0}, &report);
}

static void add_many(char c, size_t n)
{
    while (n--)
        buf_add_char(&text, c);
}

static bool takes_hosts(const char *setting, const char *head, size_t n,
                        size_t bytes)
{
    struct config *c;

    buf_init(&text, 1 << 20);
    buf_addf(&text, "{\"http\": {\"%s\": [", setting);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&text, "\"%s", head);
        add_many('h', bytes - strlen(head));
        buf_add_str(&text, STR("\","));
    }
    buf_add_str(&text, STR("]}}"));
    c = load_made();
    CHECK(c || report.n_errors == 1);
    buf_fini(&text);
    config_free(c);
    return c != NULL;
}

TEST(hosts_and_origins_keep_to_their_limits)
{
    CHECK(takes_hosts("allowedHosts", "", 100, 255));
    CHECK(!takes_hosts("allowedHosts", "", 101, 1));
    CHECK(says(NULL, "http.allowedHosts may have up to 100 elements, not 101"));
    CHECK(takes_hosts("allowedHosts", "", 1, 1));
    CHECK(!takes_hosts("allowedHosts", "", 1, 256));
    CHECK(takes_hosts("allowedOrigins", "http://", 100, 255));
    CHECK(!takes_hosts("allowedOrigins", "http://", 101, 9));
    CHECK(!takes_hosts("allowedOrigins", "http://", 1, 256));
    CHECK(says(NULL, "http.allowedOrigins[0] must be"));
}

TEST(the_name_of_a_node_is_like_an_agents)
{
    struct config *c = load_text("{\"node\": \"eu-1.Main_2\"}");

    CHECK(c);
    CHECK_STR(c->node, "eu-1.Main_2");
    config_free(c);
    buf_init(&text, 1024);
    for (size_t n = 127; n < 130; n++) {
        buf_clear(&text);
        buf_add_str(&text, STR("{\"node\": \""));
        add_many('n', n);
        buf_add_str(&text, STR("\"}"));
        c = load_made();
        CHECK((c != NULL) == (n <= 128));
        config_free(c);
    }
    buf_fini(&text);
    CHECK(!load_text("{\"node\": \"\"}") && says(NULL, "node must be a name"));
    CHECK(!load_text("{\"node\": \"a b\"}"));
    CHECK(!load_text("{\"node\": 5}"));
}

/* Sources. */

TEST(lists_on_the_command_line_are_json)
{
    static const struct {
        const char *set, *words;
    } sets[] = {
        {"agents.list=[{\"id\":\"echo\",\"url\":\"echo:\"}]", NULL},
        {"agents.list= [ ] ", NULL},
        {"agents={\"list\": []}", NULL},
        {"http.allowedHosts=[\"x.org\"]", NULL},
        {"http.allowedHosts=x.org",
         "--set http.allowedHosts: http.allowedHosts must be JSON, [ ... ]: "},
        {"agents.list=", "agents.list must be JSON, [ ... ]: "},
        {"agents.list=[{\"id\":\"echo\"", " (character 14)"},
        {"agents.list=[{\"id\":\"a\",\"url\":\"echo:\"},]", " (character 27)"},
        {"agents.list={}", "agents.list must be a list of up to 1000"},
        {"agents.list=5", "not \"5\""},
        {"agents.list=[5]",
         "--set agents.list: agents.list[0] must be an object"},
        {"agents.list=[{\"id\":\"a\",\"ur\":\"echo:\"}]",
         "--set agents.list: agents.list[0].ur is not a field of a card; did "
         "you "
         "mean \"url\"?"},
        {"agents.list=[{\"id\":\"a\",\"url\":\"echo:\"},{\"id\":\"A\",\"url\":"
         "\"echo:\"}]",
         "--set agents.list: agents.list[1].id is \"A\", and that of "
         "agents.list[0] is \"a\"; they"},
        {"agents.list[0]=5", "unknown setting \"agents.list[0]\""},
    };

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct str set = str_of(sets[i].set);
        struct config *c = load_sets(1, &set);

        if ((c == NULL) != (sets[i].words != NULL))
            fprintf(stderr, "%s\n  %s", sets[i].set, report.text);
        CHECK((c == NULL) == (sets[i].words != NULL));
        CHECK(says(c, c ? "" : sets[i].words));
        CHECK(!c || c->n_from_flags == 1);
        config_free(c);
    }
}

TEST(lists_in_the_environment_are_json)
{
    char *env[] = {(char[]){"SIGNALBOX_AGENTS__LIST=[{\"id\":\"echo\","
                            "\"url\":\"echo:\"}]"},
                   (char[]){"SIGNALBOX_HTTP__ALLOWED_HOSTS=[\"a\",\"b\"]"},
                   NULL};
    char *bad[] = {(char[]){"SIGNALBOX_AGENTS__LIST=[{\"id\":5,\"url\":5}]"},
                   NULL};
    struct config *c = load_env(env);

    CHECK(c && c->agents.n == 1 && c->n_from_env == 2);
    CHECK_STR(c->agents.list[0].name, "echo");
    CHECK(c->http.allowed_hosts.n == 2);
    config_free(c);
    c = load_env(bad);
    CHECK(!c && says(c, "SIGNALBOX_AGENTS__LIST: agents.list[0].id must be"));
    CHECK(says(c, "SIGNALBOX_AGENTS__LIST: agents.list[0].url must be"));
}

TEST(a_later_list_replaces_the_one_before)
{
    struct str set = STR("agents.list=[{\"id\":\"c\",\"url\":\"echo:\"}]");
    struct config_source src = {.sets = &set, .n_sets = 1};
    struct config *c = config_load_text(
        "t.jsonc",
        STR("{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"echo:\"}, "
            "{\"id\": \"b\", \"url\": \"echo:\"}]}}"),
        &src, &report);

    CHECK(c && c->agents.n == 1);
    CHECK_STR(c->agents.list[0].name, "c");
    config_free(c);
    set = STR("agents.list=[]");
    c = config_load_text(
        "t.jsonc",
        STR("{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"echo:\"}]}}"),
        &src, &report);
    CHECK(c && c->agents.n == 0);
    config_free(c);
}

/* Comparing and writing. */

static const char everything[] =
    "{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"echo:5\", \"title\": "
    "\"\xc3\xa4 \\\"x\\\"\"}, {\"id\": \"B\", \"url\": \"echo:\"}]}, \"http\": "
    "{\"allowedHosts\": [\"x\", \"y:1\"], \"allowedOrigins\": [\"a://b\"]}}";

static bool is_same(const char *path, const char *one, const char *other)
{
    const struct setting *s = setting_find(&config_settings, str_of(path));
    struct config *a = load_text(one), *b = load_text(other);
    bool same;

    CHECK(s && a && b);
    same = s->type->is_same(s, setting_look(s, a), setting_look(s, b));
    CHECK(same == s->type->is_same(s, setting_look(s, b), setting_look(s, a)));
    config_free(a);
    config_free(b);
    return same;
}

TEST(networks_are_the_same_however_they_are_written)
{
    static const char a[] = "{\"rate\": {\"exempt\": [\"10.0.0.7\"]}}",
                      b[] = "{\"rate\": {\"exempt\": [\"10.0.0.7/32\"]}}",
                      c[] = "{\"rate\": {\"exempt\": [\"10.0.0.8\"]}}",
                      d[] = "{\"rate\": {\"exempt\": [\"10.0.0.0/8\"]}}",
                      e[] = "{\"rate\": {\"exempt\": [\"10.0.0.0/9\"]}}";

    CHECK(is_same("rate.exempt", a, b) && !is_same("rate.exempt", a, c));
    CHECK(!is_same("rate.exempt", d, e) && is_same("rate.exempt", "{}", "{}"));
}

TEST(lists_are_the_same_when_all_in_them_is)
{
    static const char a[] = "{\"agents\": {\"list\": [{\"id\": \"a\", "
                            "\"url\": \"echo:\"}]}}";
    static const char *const others[] = {
        "{}", "{\"agents\": {\"list\": [{\"id\": \"A\", \"url\": \"echo:\"}]}}",
        "{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"echo:1\"}]}}",
        "{\"agents\": {\"list\": [{\"id\": \"a\", \"url\": \"echo:\", "
        "\"title\": \"t\"}]}}",
        everything};

    CHECK(is_same("agents.list", a, a) && is_same("agents.list", "{}", "{}"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(!is_same("agents.list", a, others[i]));
    CHECK(is_same("http.allowedHosts", everything, everything));
    CHECK(is_same("http.allowedHosts", "{}", a));
    CHECK(!is_same("http.allowedHosts", everything, a));
    CHECK(!is_same("http.allowedHosts",
                   "{\"http\": {\"allowedHosts\": [\"x\"]}}",
                   "{\"http\": {\"allowedHosts\": [\"y\"]}}"));
}

TEST(a_new_node_needs_a_restart_and_new_lists_none)
{
    struct config *now = load_text("{}"), *then = load_text(everything);
    struct config *moved = load_text("{\"node\": \"other\"}");
    struct buf out;

    CHECK(now && then && moved);
    buf_init(&out, 256);
    config_restart_needed(now, then, &out);
    CHECK(out.n == 0);
    config_restart_needed(now, moved, &out);
    CHECK_STR(buf_str(&out), "node");
    buf_fini(&out);
    config_free(now);
    config_free(then);
    config_free(moved);
}

TEST(lists_that_are_written_read_back_the_same)
{
    struct config *c = load_text(everything), *again;
    struct buf first, second;

    CHECK(c);
    buf_init(&first, 65536);
    buf_init(&second, 65536);
    config_write_json(c, &first);
    CHECK(memmem(first.p, first.n, "\"url\":\"echo:5\",", 15));
    CHECK(memmem(first.p, first.n, "[\"x\",\"y:1\"]", 11));
    again = config_load_text("t.jsonc", buf_str(&first),
                             &(struct config_source){0}, &report);
    CHECK(again && again->agents.n == 2);
    CHECK_STR(again->agents.list[0].title, "\xc3\xa4 \"x\"");
    config_write_json(again, &second);
    CHECK(!second.over && str_eq(buf_str(&first), buf_str(&second)));
    config_free(c);
    config_free(again);
    buf_fini(&first);
    buf_fini(&second);
}
