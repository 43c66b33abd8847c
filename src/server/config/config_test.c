#include "server/config/config.h"

#include "base/json.h"
#include "model/delegation.h"
#include "test/lib/config_stage.h"

TEST(defaults_are_what_the_manual_says)
{
    struct config *c = load_text("{}");

    CHECK(c && report.n_warnings == 0 && report.text[0] == '\0');
    CHECK(str_eq(c->listen, STR("127.0.0.1:8787")));
    CHECK(str_eq(c->data, STR("signalbox-data")));
    CHECK(!c->allow_plaintext);
    CHECK(c->stop_grace_ms == 10000);
    CHECK(c->log.level == LOG_INFO && c->log.format == LOG_AUTO);
    CHECK(c->http.max_connections == 8192);
    CHECK(c->http.max_request_line_bytes == 8192);
    CHECK(c->http.max_header_bytes == 16384);
    CHECK(c->http.max_headers == 100);
    CHECK(c->http.max_body_bytes == 2 << 20);
    CHECK(c->http.max_unsent_bytes == 1 << 20);
    CHECK(c->http.max_buffered_bytes == 256 << 20);
    CHECK(c->http.header_timeout_ms == 10000);
    CHECK(c->http.body_timeout_ms == 30000);
    CHECK(c->http.idle_timeout_ms == 75000);
    CHECK(c->http.reply_timeout_ms == 120000);
    CHECK(c->http.write_timeout_ms == 30000);
    CHECK(c->http.heartbeat_ms == 15000);
    CHECK(c->tasks.max_unfinished == 100000);
    CHECK(c->tasks.max_unfinished_bytes == 256 << 20);
    CHECK(c->tasks.timeout_ms == 600000);
    CHECK(c->retention.days == 30 && c->retention.rows == 1000000);
    CHECK(c->delegation.timeout_ms == DELEGATION_TIMEOUT_MS);
    CHECK(c->delegation.max_depth == 5 && c->delegation.max_concurrent == 16);
    CHECK(c->delegation.max_waiting == 1000);
    CHECK(c->delegation.max_per_root == DELEGATION_PER_ROOT);
    CHECK(c->delegation.max_open == 100000);
    CHECK(c->delegation.max_unacked == 1000);
    CHECK(c->delegation.keep_ms == 86400000);
    CHECK(c->delegation.on_disconnect == CONFIG_DISCONNECT_KEEP);
    CHECK(!c->ledger.fee_ppm && !c->ledger.per_day);
    CHECK(!c->ledger.per_conversation && !c->ledger.per_root);
    CHECK(c->ledger.delegation_allowance == 100000);
    CHECK(str_eq(c->node, STR("main")));
    CHECK(c->n_from_file + c->n_from_env + c->n_from_flags == 0);
    config_free(c);
    config_free(NULL);
}

/* A document and a part of the report; NULL: it is accepted. */
#define TLS(listen)                                                            \
    "\"tls\": {\"listen\": \"" listen "\", \"certFile\": \"c\", \"keyFile\": " \
    "\"k\"}"

static const struct {
    const char *text, *words;
} documents[] = {
    {"{}", NULL},
    {"{ } // nothing", NULL},
    {"\xef\xbb\xbf{}", NULL},
    {"// above\n{ /* inside */ \"listen\": \"127.0.0.1:1\", }", NULL},
    {"{\"log\": {\"level\": \"debug\",},}", NULL},
    {"{\"http\": {}}", NULL},
    {"", "t.jsonc: is empty; write {} to keep all defaults"},
    {" \n\t\r ", "t.jsonc: is empty"},
    {"// only words", "t.jsonc:1:14: "},
    {"[]", "t.jsonc:1:1: a configuration is an object, { ... }, not a list"},
    {"\n 5", "t.jsonc:2:2: a configuration is an object, { ... }, not 5"},
    {"\"x\"", "not \"x\""},
    {"null", "not null"},
    {"{", "t.jsonc:1:2: "},
    {"{\n  \"listen\": \"127.0.0.1:1\"\n  \"data\": \"d\"\n}", "t.jsonc:3:3: "},
    {"{\"data\": \"a\", \"data\": \"b\"}", "t.jsonc:1:15: "},
    {"{} {}", "t.jsonc:1:4: "},
    {"{\"data\": \"\xff\"}", "t.jsonc:1:11: "},

    /* Names. */
    {"{\n  \"http\": {\n    \"maxBodyByte\": 5\n  }\n}",
     "t.jsonc:3:5: unknown setting \"http.maxBodyByte\"; did you mean "
     "\"http.maxBodyBytes\"?\n"},
    {"{\"maxBodyBytes\": 5}", "did you mean \"http.maxBodyBytes\"?"},
    {"{\"http\": {\"maxbodybytes\": 5}}",
     "did you mean \"http.maxBodyBytes\"?"},
    {"{\"http\": {\"max_body_bytes\": 5}}",
     "did you mean \"http.maxBodyBytes\"?"},
    {"{\"http\": {\"listen\": \"127.0.0.1:1\"}}", "did you mean \"listen\"?"},
    {"{\"htpp\": {\"maxHeaders\": 5}}", "did you mean \"http\"?"},
    {"{\"lisen\": \"127.0.0.1:1\"}", "1:2: unknown setting \"lisen\"; did "},
    {"{\"LISTEN\": \"127.0.0.1:1\"}", "did you mean \"listen\"?"},
    {"{\"logging\": {\"level\": 1}}", "unknown setting \"logging\""},
    {"{\"zebra\": 1}", "unknown setting \"zebra\"; signalbox help config"},
    {"{\"\": 1}", "unknown setting \"\""},
    {"{\"li\\u0073ten\": \"127.0.0.1:1\"}", NULL},
    {"{\"zeb\\u0072a\": 1}", "t.jsonc:1:16: unknown setting \"zebra\""},
    {"{\"http.maxHeaders\": 5}", "\"http.maxHeaders\" has a dot in it"},
    {"{\"a\\nb\": 5}", "unknown setting \"a\\nb\""},
    {"{\"gr\xc3\xb6\xc3\x9f"
     "e\": 5}",
     "unknown setting \"gr\xc3\xb6\xc3\x9f"
     "e\""},
    {"{\"http\": 5}", "t.jsonc:1:10: http is a group of settings"},
    {"{\"http\": []}", "http is a group of settings, { ... }, not a list"},
    {"{\"log\": \"debug\"}", "log is a group of settings, { ... }, not \"de"},

    /* Values. */
    {"{\"allowPlaintext\": true}", NULL},
    {"{\"allowPlaintext\": \"true\"}",
     "t.jsonc:1:20: allowPlaintext must be true or false, not \"true\""},
    {"{\"allowPlaintext\": 1}", "must be true or false, not 1"},
    {"{\"allowPlaintext\": null}", "must be true or false, not null"},
    {"{\"stopGraceMs\": \"5\"}",
     "stopGraceMs must be a whole number of milliseconds from 0 to 600000, "
     "not \"5\""},
    {"{\"stopGraceMs\": 5.5}", "not 5.5"},
    {"{\"stopGraceMs\": 1e3}", "without point or exponent: 1000"},
    {"{\"stopGraceMs\": true}", "not true"},
    {"{\"stopGraceMs\": {}}", "not an object"},
    {"{\"stopGraceMs\": -0}", NULL},
    {"{\"http\": {\"maxHeaders\": 99999999999999999999}}", "t.jsonc:1:25: "},
    {"{\"log\": {\"level\": \"loud\"}}",
     "t.jsonc:1:19: log.level must be \"debug\", \"info\", \"warn\" or "
     "\"error\", not \"loud\""},
    {"{\"log\": {\"level\": \"INFO\"}}", "not \"INFO\""},
    {"{\"log\": {\"level\": \"\"}}", "not \"\""},
    {"{\"log\": {\"level\": 1}}", "log.level must be"},
    {"{\"delegation\": {\"maxDepth\": 0, \"maxConcurrent\": 0}}", NULL},
    {"{\"delegation\": {\"maxDepth\": 32, \"maxConcurrent\": 1000}}", NULL},
    {"{\"delegation\": {\"maxDepth\": 33}}", "from 0 to 32, not 33"},
    {"{\"delegation\": {\"maxConcurrent\": 1001}}", "from 0 to 1000"},
    {"{\"delegation\": {\"maxWaiting\": 0}}", NULL},
    {"{\"delegation\": {\"maxWaiting\": -1}}", "from 0 to 1000000, not -1"},
    {"{\"delegation\": {\"maxWaiting\": 1000001}}", "from 0 to 1000000"},
    {"{\"delegation\": {\"maxPerRoot\": 0}}", "from 1 to 1000000, not 0"},
    {"{\"delegation\": {\"keepMs\": 999}}", "from 1000 to 2592000000"},
    {"{\"delegation\": {\"timeoutMs\": -1}}", "from 10 to 86400000"},
    {"{\"delegation\": {\"onDisconnect\": \"stop\"}}",
     "must be \"keep\" or \"cancel\", not \"stop\""},
    {"{\"log\": {\"format\": \"xml\"}}",
     "must be \"auto\", \"text\" or \"json\""},
    {"{\"log\": {\"level\": \"warn\", \"format\": \"json\"}}", NULL},
    {"{\"data\": \"\"}", "data must be the path of a folder"},
    {"{\"data\": \"a\\u0000b\"}", "data must be the path of a folder"},
    {"{\"data\": [\"a\"]}", "not a list"},
    {"{\"data\": \"~/x\"}", "begins with ~ but HOME is not set"},
    {"{\"data\": \"~x\"}", NULL},

    /* Addresses. */
    {"{\"listen\": \"127.0.0.1:0\"}", NULL},
    {"{\"listen\": \"127.0.0.1:65535\"}", NULL},
    {"{\"listen\": \"127.8.9.1:80\"}", NULL},
    {"{\"listen\": \"[::1]:8787\"}", NULL},
    {"{\"listen\": \"[::ffff:127.0.0.1]:8787\"}", "listen must be"},
    {"{\"listen\": \"localhost:8787\"}", NULL},
    {"{\"listen\": \"127.0.0.1:65536\"}", "listen must be \"HOST:PORT\""},
    {"{\"listen\": \"127.0.0.1:-1\"}", "listen must be"},
    {"{\"listen\": \"127.0.0.1:000080\"}", "listen must be"},
    {"{\"listen\": \"127.0.0.1:\"}", "listen must be"},
    {"{\"listen\": \"127.0.0.1\"}", "listen must be"},
    {"{\"listen\": \":8787\"}", "listen must be"},
    {"{\"listen\": \"\"}", "listen and tls.listen are both empty"},
    {"{\"listen\": 8787}", "not 8787"},
    {"{\"listen\": \"::1:8787\"}", "listen must be"},
    {"{\"listen\": \"[127.0.0.1]:8787\"}", "listen must be"},
    {"{\"listen\": \"[]:8787\"}", "listen must be"},
    {"{\"listen\": \"[::1:8787\"}", "listen must be"},
    {"{\"listen\": \"example.org:80\"}", "listen must be"},
    {"{\"listen\": \"127.0.0.1\\u0000:80\"}", "listen must be"},
    {"{\"listen\": \"0.0.0.0:80\"}",
     "t.jsonc:1:12: 0.0.0.0:80 can be reached from other machines"},
    {"{\"listen\": \"[::]:80\"}", "can be reached from other machines"},
    {"{\"metrics\": {\"public\": false, \"listen\": \"10.0.0.1:9464\"}}", NULL},
    {"{\"metrics\": {\"public\": \"no\"}}",
     "metrics.public must be true or false"},
    {"{\"metrics\": {\"listen\": \"0.0.0.0:8787\"}}",
     "metrics.listen (0.0.0.0:8787) and listen (127.0.0.1:8787) overlap"},
    {"{\"listen\": \"10.0.0.1:80\", \"allowPlaintext\": false}",
     "set allowPlaintext to true"},
    {"{\"listen\": \"0.0.0.0:80\", \"allowPlaintext\": true}", NULL},
    {"{\"listen\": \"0.0.0.0:80\"}", "use tls.listen instead"},
    {"{\"listen\": \"0.0.0.0:80\", " TLS("[::]:1") "}",
     "use tls.listen instead"},
    {"{\"listen\": \"\", " TLS("0.0.0.0:1") "}", NULL},
    {"{" TLS("[::]:0") "}", NULL},
    {"{" TLS("443") "}", "tls.listen must be"},
    {"{\"tls\": {\"listen\": \"[::]:1\"}}", "tls.listen needs a certificate"},
    {"{\"tls\": {\"listen\": \"[::]:1\", \"certFile\": \"c\"}}",
     "t.jsonc:1:20: tls.listen needs a certificate"},
    {"{\"tls\": {\"listen\": \"[::]:1\", \"keyFile\": \"c\"}}",
     "set tls.certFile and tls.keyFile"},
    {"{\"tls\": {\"certFile\": 1}}", "tls.certFile must be the path of a file"},
    {"{\"tls\": {\"keyFile\": \"a\\u0000b\"}}", "tls.keyFile must be the path"},
    {"{\"tls\": {\"more\": [{\"certFile\": \"a\"}]}}",
     "tls.more[0] has no \"keyFile\""},
    {"{\"tls\": {\"more\": [{\"certFile\": \"a\", \"keyFile\": \"\"}]}}",
     "tls.more[0].keyFile must be the path of a file, 1 to 4096 bytes, not"},
};

TEST(documents_are_taken_or_refused_with_words)
{
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        struct config *c = load_text(documents[i].text);

        check_report(c);
        if ((c == NULL) != (documents[i].words != NULL))
            fprintf(stderr, "%s\n  %s", documents[i].text, report.text);
        CHECK((c == NULL) == (documents[i].words != NULL));
        CHECK(c || says(c, documents[i].words));
        config_free(c);
    }
}

/* Makes {"http": {"maxHeaders": 5}} from "http.maxHeaders" and 5. */
static void make_document(const char *path, int64_t value, struct buf *out)
{
    struct str rest = str_of(path);
    unsigned depth = 0;

    buf_clear(out);
    while (rest.n) {
        struct str key = str_cut(&rest, '.');

        buf_addf(out, "{\"%.*s\": ", STR_ARG(key));
        depth++;
    }
    buf_add_i64(out, value);
    while (depth--)
        buf_add_char(out, '}');
    CHECK(!out->over);
}

static bool takes(const char *path, int64_t value)
{
    struct config *c;
    struct buf text;

    buf_init(&text, 512);
    make_document(path, value, &text);
    c = config_load_text("t.jsonc", buf_str(&text), &(struct config_source){0},
                         &report);
    CHECK(c || (says(c, path) && report.n_errors == 1));
    buf_fini(&text);
    config_free(c);
    return report.n_errors == 0;
}

TEST(every_number_has_limits_and_keeps_to_them)
{
    struct config_setting s;
    unsigned n_numbers = 0;

    for (size_t i = 0; config_setting(i, &s); i++) {
        long long min, max;
        const char *from = strstr(s.allowed, " from ");

        if (strncmp(s.allowed, "a whole number", 14) != 0)
            continue;
        CHECK(from && sscanf(from, " from %lld to %lld", &min, &max) == 2);
        CHECK(min < max);
        CHECK(takes(s.path, min) && !takes(s.path, min - 1));
        CHECK(takes(s.path, max) && !takes(s.path, max + 1));
        CHECK(!takes(s.path, INT64_MIN) && !takes(s.path, INT64_MAX));
        n_numbers++;
    }
    CHECK(n_numbers == 104);
}

TEST(every_row_is_in_order)
{
    struct config_setting s, other;
    size_t n = 0;

    for (; config_setting(n, &s); n++) {
        CHECK(s.path && s.what && s.preset && s.allowed[0]);
        CHECK(s.what[strlen(s.what) - 1] == '.');
        CHECK(strncmp(s.variable, "SIGNALBOX_", 10) == 0);
        CHECK(strlen(s.variable) < sizeof(s.variable) - 1);
        CHECK(strlen(s.allowed) < sizeof(s.allowed) - 1);
        for (size_t k = 0; k < n; k++) {
            CHECK(config_setting(k, &other));
            CHECK(strcmp(other.path, s.path) != 0);
            CHECK(strcmp(other.variable, s.variable) != 0);
        }
    }
    CHECK_INT(n, 177);
    CHECK(!config_setting(n, &s) && !config_setting(SIZE_MAX, &s));
}

TEST(every_default_can_be_set_by_variable_and_flag)
{
    struct config_setting s;

    for (size_t i = 0; config_setting(i, &s); i++) {
        char entry[256], text[256];
        char *env[] = {entry, NULL};
        struct config *c;
        struct str set;

        snprintf(entry, sizeof(entry), "%s=%s", s.variable, s.preset);
        snprintf(text, sizeof(text), "%s=%s", s.path, s.preset);
        set = str_of(text);
        c = load_env(env);
        CHECK(c && c->n_from_env == 1 && report.n_warnings == 0);
        config_free(c);
        c = load_sets(1, &set);
        CHECK(c && c->n_from_flags == 1 && report.n_warnings == 0);
        config_free(c);
    }
}

TEST(one_look_finds_all)
{
    struct config *c = load_text("{\n"
                                 "  \"lisen\": \"127.0.0.1:1\",\n"
                                 "  \"stopGraceMs\": -1,\n"
                                 "  \"http\": { \"maxHeaders\": \"many\",\n"
                                 "    \"idle\": 5 },\n"
                                 "  \"log\": { \"level\": \"loud\" }\n"
                                 "}\n");

    CHECK(!c && report.n_errors == 5 && report.n_problems == 5);
    CHECK(says(c, "t.jsonc:2:3: "));
    CHECK(says(c, "\nt.jsonc:3:18: "));
    CHECK(says(c, "\nt.jsonc:4:27: "));
    CHECK(says(c, "\nt.jsonc:5:5: "));
    CHECK(says(c, "\nt.jsonc:6:21: "));
    CHECK(report.problems[1].line == 3 && report.problems[1].col == 18);
    CHECK(str_eq(report.problems[1].where, STR("t.jsonc")));
    CHECK(str_starts(report.problems[1].what, STR("stopGraceMs must be")));
    CHECK(!report.problems[1].is_warning);
}

TEST(a_report_that_is_full_says_how_many_more)
{
    struct config *c;
    struct buf text;
    unsigned n_shown;
    char tail[64];

    buf_init(&text, 65536);
    buf_add_char(&text, '{');
    for (int i = 0; i < 500; i++)
        buf_addf(&text, "\"zebra%d\": 1,\n", i);
    buf_add_char(&text, '}');
    c = config_load_text("t.jsonc", buf_str(&text), &(struct config_source){0},
                         &report);
    CHECK(!c && report.n_errors == 500);
    n_shown = report.n_problems;
    CHECK(n_shown > 10 && n_shown < 500);
    snprintf(tail, sizeof(tail), "\nand %u more\n", 500 - n_shown);
    CHECK(says(c, tail));
    buf_fini(&text);
}

TEST(a_crowd_of_warnings_leaves_room_for_what_is_wrong)
{
    struct config_source none = {0};
    struct config *c = config_load_text("t.jsonc", STR("{}"), &none, &report);
    char words[600];

    CHECK(c);
    for (size_t n = 20; n < sizeof(words); n++) {
        unsigned shown;

        memset(words, 'w', n);
        words[n] = '\0';
        memset(&report, 0, sizeof(report));
        for (int i = 0; i < 100; i++)
            config_report_add(&report, c, "listen", true, words);
        config_report_whole(&report, c, "the rules are no good");
        shown = report.n_problems;
        CHECK(report.n_warnings == 100 && report.n_errors == 1);
        CHECK(!report.problems[shown - 1].is_warning);
        CHECK(str_eq(report.problems[shown - 1].what,
                     STR("the rules are no good")));
        for (int i = 0; i < 100; i++)
            config_report_whole(&report, c, words);
        CHECK(report.n_errors == 101 && report.n_problems > shown);
        CHECK(report.text_bytes < sizeof(report.text));
        CHECK(strlen(report.text) == report.text_bytes);
    }
    config_free(c);
}

TEST(long_names_and_values_are_cut)
{
    char name[600], text[700], where[600];
    struct config *c;

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    snprintf(text, sizeof(text), "{\"%s\": 1}", name);
    c = load_text(text);
    CHECK(says(c, "unknown setting \"nnn") && report.text_bytes < 200);
    snprintf(text, sizeof(text), "{\"log\": {\"level\": \"\xc3\xb6%s\"}}",
             name);
    c = load_text(text);
    CHECK(says(c, "n\"...") && report.text_bytes < 400);

    memset(where, 'w', sizeof(where));
    memcpy(where + sizeof(where) - 5, "e\nnd", 5);
    c = config_load_text(where, STR("5"), &(struct config_source){0}, &report);
    CHECK(says(c, "we?nd:1:1: a configuration") && report.text_bytes < 400);
    CHECK(str_starts(report.problems[0].where, STR("...www")));
}

/* Changes. */

static const char *restart_for(const char *then_text)
{
    static char names[256];
    struct config *now = load_text("{}"), *then = load_text(then_text);
    struct buf out;

    CHECK(now && then);
    buf_init(&out, sizeof(names) - 1);
    config_restart_needed(now, then, &out);
    CHECK(!out.over);
    snprintf(names, sizeof(names), "%.*s", STR_ARG(buf_str(&out)));
    buf_fini(&out);
    config_free(now);
    config_free(then);
    return names;
}

TEST(only_what_differs_and_cannot_be_reloaded_needs_a_restart)
{
    CHECK(strcmp(restart_for("{}"), "") == 0);
    CHECK(strcmp(restart_for("{\"listen\": \"127.0.0.1:8787\"}"), "") == 0);
    CHECK(strcmp(restart_for("{\"listen\": \"127.0.0.1:1\"}"), "listen") == 0);
    CHECK(strcmp(restart_for("{\"data\": \"d\"}"), "data") == 0);
    CHECK(strcmp(restart_for("{\"allowPlaintext\": true, \"data\": \"d\", "
                             "\"listen\": \"127.0.0.1:1\"}"),
                 "listen, data, allowPlaintext") == 0);
    CHECK(strcmp(restart_for("{\"stopGraceMs\": 1, \"log\": {\"level\": "
                             "\"warn\"}, \"http\": {\"maxHeaders\": 2}}"),
                 "") == 0);
}

/* Writing. */

TEST(what_is_written_reads_back_the_same)
{
    struct config *c = load_text("{\"data\": \"\xc3\xb6 \\\"x\\\"\", "
                                 "\"allowPlaintext\": true, "
                                 "\"listen\": \"0.0.0.0:1\", "
                                 "\"log\": {\"format\": \"json\"}, "
                                 "\"http\": {\"maxHeaders\": 7}}");
    struct buf first, second;
    struct config *again;

    CHECK(c);
    buf_init(&first, 65536);
    buf_init(&second, 65536);
    config_write_json(c, &first);
    again = config_load_text("t.jsonc", buf_str(&first),
                             &(struct config_source){0}, &report);
    CHECK(again && again->n_from_file == 177);
    config_write_json(again, &second);
    CHECK(!second.over && str_eq(buf_str(&first), buf_str(&second)));
    CHECK(again->http.max_headers == 7 && again->log.format == LOG_JSON);
    config_free(c);
    config_free(again);
    buf_fini(&first);
    buf_fini(&second);
}

/* A file of the repository. */
static char *repo_file(const char *path)
{
    char text[512];
    char *p = calloc(1, 1 << 20);
    FILE *f;

    snprintf(text, sizeof(text), SOURCE_ROOT "/%s", path);
    f = fopen(text, "r");
    CHECK(p && f);
    CHECK(fread(p, 1, (1 << 20) - 1, f) > 0 && fclose(f) == 0);
    return p;
}

TEST(the_manual_is_what_the_table_says)
{
    char *manual = repo_file("docs/config.md");
    struct buf out;

    buf_init(&out, 1 << 20);
    config_write_reference(&out);
    CHECK(!out.over && str_eq(buf_str(&out), str_of(manual)));
    buf_fini(&out);
    free(manual);
}

TEST(the_manual_names_every_setting)
{
    struct config_setting s;
    struct buf out;

    buf_init(&out, 1 << 20);
    config_write_reference(&out);
    buf_add_char(&out, '\0');
    for (size_t i = 0; config_setting(i, &s); i++) {
        char row[128];

        snprintf(row, sizeof(row), "\n| `%s` | `%s`", s.path, s.preset);
        CHECK(strstr(out.p, row));
    }
    buf_fini(&out);
}

TEST(the_example_is_accepted_and_shows_every_setting)
{
    char *text = repo_file("examples/signalbox.jsonc");
    struct config *c = load_text(text);
    struct config_setting s;

    CHECK(says(c, "") && c && report.n_warnings == 0);
    for (size_t i = 0; config_setting(i, &s); i++) {
        const char *dot = strrchr(s.path, '.');
        char key[128];

        snprintf(key, sizeof(key), "\"%s\":", dot ? dot + 1 : s.path);
        CHECK(strstr(text, key));
    }
    config_free(c);
    free(text);
}

/* The agents in its comments are valid too. */
TEST(the_example_s_agents_are_accepted)
{
    char *text = repo_file("examples/signalbox.jsonc");
    const char *from = strstr(text, "  //     \"agents\": {\n");
    struct config *c;
    struct buf out;

    CHECK(from);
    buf_init(&out, 65536);
    buf_add_char(&out, '{');
    while (strncmp(from, "  //     ", 9) == 0) {
        size_t n = strcspn(from, "\n") + 1;

        buf_add(&out, from + 9, n - 9);
        from += n;
    }
    buf_add_char(&out, '}');
    c = config_load_text("t.jsonc", buf_str(&out), &(struct config_source){0},
                         &report);
    CHECK(says(c, "") && c && c->agents.n == 3);
    CHECK(c->agents.list[1].n_skills == 2);
    CHECK(c->agents.list[1].visibility == VISIBILITY_SHARED);
    CHECK(c->agents.list[2].visibility == VISIBILITY_PUBLIC);
    config_free(c);
    buf_fini(&out);
    free(text);
}

/* Search. */

TEST(search_and_the_registry_have_their_defaults_and_limits)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"\"search\": {\"semanticWeight\": 0}", NULL},
        {"\"search\": {\"textWeight\": 0, \"semanticWeight\": 1}", NULL},
        {"\"search\": {\"fusion\": \"rrf\"}", NULL},
        {"\"registry\": {\"maxAgentsPerUser\": 0}", NULL},
        {"\"search\": {\"semanticWeight\": 1.5}",
         "search.semanticWeight must be a number from 0 to 1, not 1.5\n"},
        {"\"search\": {\"textWeight\": -0.1}", "a number from 0 to 1"},
        {"\"search\": {\"fusion\": \"sum\"}",
         "search.fusion must be \"weighted\" or \"rrf\", not \"sum\"\n"},
        {"\"search\": {\"order\": \"plain\"}", NULL},
        {"\"search\": {\"order\": \"fair\"}",
         "search.order must be \"spread\" or \"plain\", not \"fair\"\n"},
        {"\"search\": {\"textWeight\": 0,\n\"semanticWeight\": 0.0}",
         "search.semanticWeight and search.textWeight are both 0, so a search "
         "would find nothing; set one of them\n"},
        {"\"search\": {\"weight\": 1}", "unknown setting \"search.weight\""},
        {"\"registry\": {\"maxAgents\": 0}", "from 1 to 1000000, not 0"},
        {"\"registry\": {\"maxSkils\": 1}",
         "did you mean \"registry.maxSkills\"?"},
    };
    struct config *c = load_text("{}");

    CHECK(c && c->registry.max_agents == 100000);
    CHECK(c->registry.max_skills == 500000);
    CHECK(c->registry.max_agents_per_user == 1000);
    CHECK(c->registry.max_skills_per_user == 2000);
    CHECK(c->registry.max_skills_per_org == 10000);
    CHECK(c->registry.skills_per_minute == 3000);
    CHECK(c->registry.max_searched == 4096);
    CHECK(c->search.semantic_weight == 0.7 && c->search.text_weight == 0.3);
    CHECK(c->search.fusion == CONFIG_FUSION_WEIGHTED);
    CHECK(c->search.order == CONFIG_ORDER_SPREAD);
    config_free(c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];

        snprintf(text, sizeof(text), "{%s}", cases[i].text);
        c = load_text(text);
        CHECK((c == NULL) == (cases[i].words != NULL));
        CHECK(c || says(c, cases[i].words));
        config_free(c);
    }
    c = load_text("{\"registry\": {\"maxAgents\": 10}}");
    CHECK(c &&
          says(c,
               "registry.maxAgentsPerUser is 1000 by default and "
               "registry.maxAgents 10: one user can use up the limit for all"));
    config_free(c);
}

TEST(a_certificate_that_nobody_uses_is_warned_of)
{
    struct config *c = load_text("{\"tls\": {\"certFile\": \"a.pem\"}}");

    CHECK(c && says(c, "t.jsonc:1:22: warning: there is a certificate, but no "
                       "tls.listen to use it"));
    config_free(c);
}

TEST(what_only_a_user_finds_out_stands_in_the_report_too)
{
    struct config *c = load_text("{\"tls\": {\"certFile\": \"a.pem\"}}");

    CHECK(c);
    config_report_add(&report, c, "tls.certFile", false, "cannot read a.pem");
    CHECK(report.n_errors == 1 && report.n_problems == 2);
    CHECK(strstr(report.text,
                 "\nt.jsonc:1:22: tls.certFile: cannot read a.pem\n"));
    CHECK(report.problems[1].line == 1 && report.problems[1].col == 22);
    config_report_add(&report, c, "tls.more[3].keyFile", true, "x");
    CHECK(strstr(report.text, "\ndefault: warning: tls.more[3].keyFile: x\n"));
    CHECK(report.n_errors == 1 && report.n_warnings == 2);
    config_free(c);
}

TEST(limits_that_never_count_are_warned_of)
{
    static const struct {
        const char *text, *words; /* NULL: none */
    } cases[] = {
        {"{\"ws\": {\"maxFrameBytes\": 4000, \"maxMessageBytes\": 3000}}",
         "t.jsonc:1:26: warning: ws.maxFrameBytes is 4000 and "
         "ws.maxMessageBytes 3000: "},
        {"{\"ws\": {\"maxFrameBytes\": 3000, \"maxMessageBytes\": 3000}}",
         NULL},
        {"{\"ws\": {\"maxMessageBytes\": 3000}}", NULL},
        {"{\"http\": {\"maxConnections\": 5}}",
         "t.jsonc:1:29: warning: http.maxConnectionsPerAddress is 1024 by "
         "default and http.maxConnections 5: one address can take all"},
        {"{\"http\": {\"maxConnections\": 5, "
         "\"maxConnectionsPerAddress\": 0}}",
         NULL},
        {"{\"tasks\": {\"maxUnfinishedPerUser\": 100001}}",
         "tasks.maxUnfinishedPerUser is 100001 and tasks.maxUnfinished "
         "100000: one user"},
        {"{\"tasks\": {\"maxUnfinishedBytesPerUser\": 300000000}}",
         "tasks.maxUnfinishedBytesPerUser is 300000000 and "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c = load_text(cases[i].text);

        CHECK(c && report.n_warnings == (cases[i].words ? 1 : 0));
        CHECK(!cases[i].words || strstr(report.text, cases[i].words));
        config_free(c);
    }
}

TEST(two_listeners_need_two_places)
{
    static const struct {
        const char *plain, *tls;
        bool is_good;
    } cases[] = {
        {"127.0.0.1:8787", "127.0.0.1:8787", false},
        {"localhost:8787", "127.0.0.1:8787", false},
        {"127.0.0.1:8787", "0.0.0.0:8787", false},
        {"[::1]:8787", "[::]:8787", false},
        {"127.0.0.1:8787", "127.0.0.2:8787", true},
        {"127.0.0.1:8787", "127.0.0.1:8788", true},
        {"127.0.0.1:8787", "[::1]:8787", true},
        {"127.0.0.1:0", "127.0.0.1:0", true},
        {"", "127.0.0.1:8787", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        struct config *c;

        snprintf(text, sizeof(text),
                 "{\"listen\": \"%s\", \"tls\": {\"listen\": \"%s\", "
                 "\"certFile\": \"a\", \"keyFile\": \"b\"}}",
                 cases[i].plain, cases[i].tls);
        c = load_text(text);
        CHECK((c != NULL) == cases[i].is_good);
        CHECK(c || says(c, "overlap"));
        config_free(c);
    }
}

TEST(a_whole_number_is_written_as_one)
{
    struct config *c = load_text("{\"rate\": {\"perUser\": 1e3}}");

    CHECK(!c && says(c, "t.jsonc:1:22: rate.perUser must be a whole number of "
                        "requests a second from 0 to 1000000, written without "
                        "point or exponent: 1000\n"));
    c = load_text("{\"rate\": {\"perUser\": 1.5}}");
    CHECK(!c && says(c, "not 1.5\n"));
}
