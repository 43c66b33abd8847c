#include "server/config/internal.h"
#include "test/lib/config_stage.h"

TEST(nothing_within_is_open_by_default)
{
    struct config *c = load_text("{}");

    CHECK(c && c->outgoing.allow.n == 0);
    CHECK_STR(c->outgoing.proxy, "");
    CHECK_STR(c->outgoing.ca_file, "");
    CHECK_INT(c->outgoing.max_open, 256);
    CHECK_INT(c->outgoing.max_per_host, 16);
    CHECK_INT(c->outgoing.max_kept, 64);
    CHECK_INT(c->outgoing.connect_timeout_ms, 5000);
    CHECK_INT(c->outgoing.max_header_bytes, 64 * 1024);
    CHECK_INT(c->outgoing.max_body_bytes, 8 * 1024 * 1024);
    config_free(c);
}

TEST(ranges_come_ready_for_use)
{
    struct config *c = load_text("{\"outgoing\": {\"allow\": [\"10.0.0.0/8\", "
                                 "\"127.0.0.1:11434\", \"fd00::/8:443\"]}}");
    char text[GUARD_RANGE_BYTES];

    CHECK(c && c->outgoing.allow.n == 3 && c->n_from_file == 1);
    guard_range_write(&c->outgoing.allow.list[0], text);
    CHECK_STR(str_of(text), "10.0.0.0/8");
    guard_range_write(&c->outgoing.allow.list[1], text);
    CHECK_STR(str_of(text), "127.0.0.1:11434");
    guard_range_write(&c->outgoing.allow.list[2], text);
    CHECK_STR(str_of(text), "[fd00::]/8:443");
    config_free(c);
}

TEST(ranges_may_stand_in_a_variable_or_a_flag)
{
    char allow[] = "SIGNALBOX_OUTGOING__ALLOW=[\"10.0.0.0/8\"]";
    char *env[] = {allow, NULL};
    struct str set = STR("outgoing.allow=[\"[::1]:80\",\"10.0.0.0/8\"]");
    struct config *c = load_env(env);

    CHECK(says(c, "") && c && c->outgoing.allow.n == 1);
    config_free(c);
    c = load_sets(1, &set);
    CHECK(says(c, "") && c && c->outgoing.allow.n == 2);
    CHECK_INT(c->outgoing.allow.list[0].port, 80);
    config_free(c);
}

/* The value of "outgoing", and a part of the report; NULL: it is accepted. */
static const struct {
    const char *text, *words;
} outgoing[] = {
    {"\"allow\": []", NULL},
    {"\"allow\": [\"0.0.0.0/0\", \"::/0\"]", NULL},
    {"\"allow\": [\"10.0.0.1/8\"]",
     "t.jsonc:1:25: outgoing.allow[0]: 10.0.0.1/8 has bits beyond its prefix; "
     "write 10.0.0.0/8 for the range, 10.0.0.1 for the address alone\n"},
    {"\"allow\": [\"10.0.0.0/8\",\n \"::1\"]",
     "t.jsonc:2:2: outgoing.allow[1]: ::1: an IPv6 address must be in "
     "brackets, "
     "[::1] or [::1]:8080\n"},
    {"\"allow\": [\"localhost\"]",
     "outgoing.allow[0]: localhost: names are not looked up here; write "
     "127.0.0.1 and [::1]\n"},
    {"\"allow\": [\"10.0.0.0/33\"]", "is a number from 0 to 32\n"},
    {"\"allow\": [\"127.0.0.1:0\"]", "a port is a number from 1 to 65535\n"},
    {"\"allow\": [\"a\\nb\\u001b\"]", "a?b? is not an address"},
    {"\"allow\": [\"\"]",
     "t.jsonc:1:25: outgoing.allow[0] must be \"ADDRESS/PREFIX:PORT\" with or "
     "without the last two, like \"10.0.0.0/8\" or \"[::1]:8080\", not "
     "\"\"\n"},
    {"\"allow\": [5]", "outgoing.allow[0] must be \"ADDRESS/PREFIX"},
    {"\"allow\": [[]]", "not a list\n"},
    {"\"allow\": \"10.0.0.0/8\"",
     "outgoing.allow must be a list of up to 100 of \"ADDRESS/"},
    {"\"alow\": []", "did you mean \"outgoing.allow\"?"},

    {"\"proxy\": \"\"", NULL},
    {"\"proxy\": \"http://proxy:3128\"", NULL},
    {"\"proxy\": \"http://proxy:3128/\"", NULL},
    {"\"proxy\": \"http://[::1]:3128\"", NULL},
    {"\"proxy\": \"https://proxy:3128\"",
     "a proxy is spoken to in plain HTTP\n"},
    {"\"proxy\": \"http://127.0.0.1:3128\"", NULL},
    {"\"proxy\": \"proxy:3128\"",
     "t.jsonc:1:24: outgoing.proxy: must begin with http://, as in "},
    {"\"proxy\": \"socks5://proxy:1080\"", "must begin with http://, as in"},
    {"\"proxy\": \"ws://proxy/\"", "a proxy is spoken to in plain HTTP\n"},
    {"\"proxy\": \"http://proxy:3128/x\"",
     "a proxy has no path: http://HOST:PORT is all\n"},
    {"\"proxy\": \"http://proxy:3128#x\"", "a proxy has no path"},
    {"\"proxy\": \"http://proxy:0\"", "the port of the URL must be"},
    {"\"proxy\": 5",
     "outgoing.proxy must be \"http://HOST:PORT\" or empty, not 5\n"},
    {"\"proxy\": null", "outgoing.proxy must be"},

    {"\"caFile\": \"\"", NULL},
    {"\"caFile\": \"/etc/ca.pem\"", NULL},
    {"\"caFile\": 5",
     "outgoing.caFile must be the path of a file, 1 to 4096 bytes, or \"\" for "
     "none, not 5\n"},
    {"\"caFile\": \"a\\u0000b\"", "outgoing.caFile must be the path"},

    {"\"maxOpen\": 1, \"maxPerHost\": 1, \"maxKept\": 0", NULL},
    {"\"maxOpen\": 0", "outgoing.maxOpen must be a whole number from 1 to"},
    {"\"maxPerHost\": 0", "outgoing.maxPerHost must be"},
    {"\"maxKept\": -1", "outgoing.maxKept must be"},
    {"\"connectTimeoutMs\": 9", "must be a whole number of milliseconds from"},
    {"\"maxHeaderBytes\": 1023", "outgoing.maxHeaderBytes must be"},
    {"\"maxBodyBytes\": 0", "outgoing.maxBodyBytes must be"},
    {"\"maxBodyBytes\": 1073741824", NULL},
    {"\"maxBodyBytes\": 1073741825", "outgoing.maxBodyBytes must be"},
};

TEST(what_is_wrong_has_a_place_and_words)
{
    for (size_t i = 0; i < sizeof(outgoing) / sizeof(outgoing[0]); i++) {
        char text[512];
        struct config *c;

        snprintf(text, sizeof(text), "{\"outgoing\": {%s}}", outgoing[i].text);
        c = load_text(text);
        CHECK(says(c, outgoing[i].words ? outgoing[i].words : ""));
        CHECK((c != NULL) == (outgoing[i].words == NULL));
        config_free(c);
    }
}

/* A password in the wrong setting must not be shown. */
TEST(a_password_in_a_proxy_is_not_repeated)
{
    struct config *c = load_text(
        "{\"outgoing\": {\"proxy\": \"http://me:hunter2@proxy:3128\"}}");

    CHECK(says(c, "outgoing.proxy: a URL may have no user or password"));
    CHECK(!strstr(report.text, "hunter2"));
}

TEST(a_list_of_ranges_has_its_limit)
{
    static char text[8192];

    for (size_t n = 100; n <= 101; n++) {
        size_t used = (size_t)snprintf(text, sizeof(text),
                                       "{\"outgoing\": {\"allow\": [");
        struct config *c;

        for (size_t i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "%s\"10.0.%zu.0/24\"", i ? "," : "", i);
        snprintf(text + used, sizeof(text) - used, "]}}");
        c = load_text(text);
        CHECK(says(c, n == 100 ? ""
                               : "outgoing.allow may have up to 100 elements, "
                                 "not 101"));
        CHECK((c != NULL) == (n == 100));
        config_free(c);
    }
}

TEST(the_path_of_a_file_begins_at_its_configuration)
{
    char home[] = "HOME=/home/box", *env[] = {home, NULL};
    struct config_source src = {.environ = env};
    struct config *c = config_load_text(
        "/etc/signalbox/t.jsonc",
        STR("{\"outgoing\": {\"caFile\": \"ca.pem\"}}"), &src, &report);

    CHECK(c);
    CHECK_STR(c->outgoing.ca_file, "/etc/signalbox/ca.pem");
    config_free(c);
    c = config_load_text("/etc/signalbox/t.jsonc",
                         STR("{\"outgoing\": {\"caFile\": \"~/ca.pem\"}}"),
                         &src, &report);
    CHECK(c);
    CHECK_STR(c->outgoing.ca_file, "/home/box/ca.pem");
    config_free(c);
}

TEST(what_is_printed_can_be_read_again)
{
    struct config *c = load_text(
        "{\"outgoing\": {\"allow\": [\"fd00::/8\", \"127.0.0.1:80\"], "
        "\"proxy\": \"http://proxy:3128\", \"caFile\": \"/ca.pem\"}}");
    struct config *again;
    struct buf out;

    CHECK(c);
    buf_init(&out, 64 * 1024);
    config_write_json(c, &out);
    CHECK(memmem(out.p, out.n, "[\"[fd00::]/8\",\"127.0.0.1:80\"]", 29));
    again = config_load_text("again", buf_str(&out), &(struct config_source){0},
                             &report);
    CHECK(again && again->outgoing.allow.n == 2);
    CHECK(memcmp(again->outgoing.allow.list, c->outgoing.allow.list,
                 2 * sizeof(struct guard_range)) == 0);
    CHECK_STR(again->outgoing.proxy, "http://proxy:3128");
    buf_fini(&out);
    config_free(again);
    config_free(c);
}

/* No restart is needed, so the rows are compared here. */
TEST(a_change_of_ranges_is_seen)
{
    static const char *const lists[] = {
        "[]", "[\"10.0.0.0/8\"]", "[\"10.0.0.0/9\"]", "[\"10.0.0.0/8:80\"]",
        "[\"10.0.0.0/8\",\"[::1]\"]"};
    const struct setting *s =
        setting_find(&config_settings, STR("outgoing.allow"));

    CHECK(s && !s->needs_restart);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++) {
            char text[128];
            struct config *a, *b;

            snprintf(text, sizeof(text), "{\"outgoing\": {\"allow\": %s}}",
                     lists[i]);
            a = load_text(text);
            snprintf(text, sizeof(text), "{\"outgoing\": {\"allow\": %s}}",
                     lists[k]);
            b = load_text(text);
            CHECK(a && b);
            CHECK(s->type->is_same(s, setting_look(s, a), setting_look(s, b)) ==
                  (i == k));
            config_free(a);
            config_free(b);
        }
}
