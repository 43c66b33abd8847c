/* Sources: the file, variables and flags; which one wins, and where relative
 * paths start. */
#include "server/config/config.h"

#include "test/lib/config_stage.h"

TEST(variables_ignore_case_and_underscores_within_a_level)
{
    static const char *const spellings[] = {
        "SIGNALBOX_HTTP__MAX_BODY_BYTES=77",
        "SIGNALBOX_HTTP__MAXBODYBYTES=77",
        "SIGNALBOX_http__maxBodyBytes=77",
        "SIGNALBOX_H_T_TP__MAX_BODY_BYTES_=77",
        "SIGNALBOX_HTTP={\"maxBodyBytes\": 77}",
    };

    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        char entry[64];
        char *env[] = {entry, NULL};
        struct config *c;

        snprintf(entry, sizeof(entry), "%s", spellings[i]);
        c = load_env(env);
        CHECK(c && c->http.max_body_bytes == 77 && c->n_from_env == 1);
        CHECK(report.n_warnings == 0);
        config_free(c);
    }
}

/* A variable and the report; NULL: it is empty. `warns`: only a warning. */
static const struct {
    const char *entry, *words;
    bool warns;
} variables[] = {
    {"SIGNALBOX_URL=http://x", NULL, false},
    {"SIGNALBOX_TOKEN=secret", NULL, false},
    {"SIGNALBOX_CONFIG=/nowhere", NULL, false},
    {"SIGNALBOX=1", NULL, false},
    {"SIGNALBOXES__A=1", NULL, false},
    {"signalbox_log__level=loud", NULL, false},
    {"SIGNALBOX_LISTEN=", NULL, false},
    {"SIGNALBOX_LOG__LEVEL", NULL, false},
    {"SIGNALBOX_LOG__LEVEL=debug", NULL, false},
    {"SIGNALBOX_LOG__LEVEL=\"debug\"", NULL, false},
    {"SIGNALBOX_ALLOW_PLAINTEXT=true", NULL, false},
    {"SIGNALBOX_STOP_GRACE_MS= 5 ", NULL, false},
    {"SIGNALBOX_PORT=tcp://10.0.0.1:80",
     "SIGNALBOX_PORT: warning: ignored, there is no such setting\n", true},
    {"SIGNALBOX_PORT_8787_TCP_ADDR=10.0.0.1", "warning: ", true},
    {"SIGNALBOX_LISTN=127.0.0.1:1", "did you mean SIGNALBOX_LISTEN?", true},
    {"SIGNALBOX_=1", "SIGNALBOX_: warning: ", true},
    {"SIGNALBOX___=1", "SIGNALBOX___: there is no such setting", false},
    {"SIGNALBOX_HTTP__MAX_BODY_BYTE=5",
     "SIGNALBOX_HTTP__MAX_BODY_BYTE: there is no such setting; did you mean "
     "SIGNALBOX_HTTP__MAX_BODY_BYTES?",
     false},
    {"SIGNALBOX_HTTP__=5", "SIGNALBOX_HTTP__: there is no such", false},
    {"SIGNALBOX_HTTP__LISTEN__X=5", "there is no such setting", false},
    {"SIGNALBOX_ZEBRA__STRIPES=5", "signalbox help config lists all", false},
    {"SIGNALBOX_HTTP=5", "http is a group of settings", false},
    {"SIGNALBOX_HTTP={\"zebra\": 1}",
     "SIGNALBOX_HTTP: unknown setting \"http.zebra\"", false},
    {"SIGNALBOX_LOG__LEVEL=loud",
     "SIGNALBOX_LOG__LEVEL: log.level must be \"debug\"", false},
    {"SIGNALBOX_ALLOW_PLAINTEXT=yes", "true or false, not \"yes\"", false},
    {"SIGNALBOX_STOP_GRACE_MS=5s", "not \"5s\"", false},
    {"SIGNALBOX_STOP_GRACE_MS=600001", "not 600001", false},
    {"SIGNALBOX_LISTEN=0.0.0.0:80",
     "SIGNALBOX_LISTEN: 0.0.0.0:80 can be reached", false},
};

TEST(variables_are_taken_or_refused_by_name)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        char entry[128];
        char *env[] = {(char[]){"PATH=/bin"}, entry, NULL};
        bool is_bad = variables[i].words && !variables[i].warns;
        struct config *c;

        snprintf(entry, sizeof(entry), "%s", variables[i].entry);
        c = load_env(env);
        if ((c == NULL) != is_bad)
            fprintf(stderr, "%s\n  %s", variables[i].entry, report.text);
        CHECK((c == NULL) == is_bad);
        CHECK((report.n_warnings > 0) == variables[i].warns);
        CHECK(says(c, variables[i].words ? variables[i].words : ""));
        CHECK(variables[i].words || report.text_bytes == 0);
        config_free(c);
    }
}

TEST(two_variables_for_one_setting_are_an_error)
{
    char *env[] = {(char[]){"SIGNALBOX_HTTP__MAX_HEADERS=5"},
                   (char[]){"SIGNALBOX_HTTP__MAXHEADERS=6"}, NULL};
    struct config *c = load_env(env);

    CHECK(!c && says(c, "SIGNALBOX_HTTP__MAXHEADERS: http.maxHeaders is set "
                        "by SIGNALBOX_HTTP__MAX_HEADERS too; keep one"));
}

TEST(config_env_finds_whole_names_only)
{
    char *env[] = {(char[]){"AB=1"}, (char[]){"A=2"}, (char[]){"E="}, NULL};

    CHECK(strcmp(config_env(env, "A"), "2") == 0);
    CHECK(strcmp(config_env(env, "E"), "") == 0);
    CHECK(config_env(env, "B") == NULL && config_env(NULL, "A") == NULL);
}

static const struct {
    const char *text, *words;
} sets[] = {
    {"http.maxHeaders=5", NULL},
    {"log.level=debug", NULL},
    {"log.level=\"debug\"", NULL},
    {"http={\"maxHeaders\": 5}", NULL},
    {"data=a=b", NULL},
    {"data=5", NULL},
    {"data=[", NULL},
    {"http.maxHeader=5", "--set http.maxHeader: unknown setting "
                         "\"http.maxHeader\"; did you mean "
                         "\"http.maxHeaders\"?"},
    {"http.maxHeaders", "write it as --set NAME=VALUE"},
    {"", "--set : write it as --set NAME=VALUE"},
    {"=5", "unknown setting \"\""},
    {"http.maxHeaders=", "--set http.maxHeaders: http.maxHeaders must be"},
    {"http.maxHeaders=lots", "not \"lots\""},
    {"http.maxHeaders=1.5", "not 1.5"},
    {"http.maxHeaders=0", "not 0"},
    {"http=5", "http is a group of settings"},
    {"listen=nowhere", "--listen: listen must be"},
    {"data=", "--data: data must be"},
    {"HTTP.maxHeaders=5", "did you mean \"http.maxHeaders\"?"},
};

TEST(sets_are_taken_or_refused_by_flag)
{
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct str set = str_of(sets[i].text);
        struct config *c = load_sets(1, &set);

        if ((c == NULL) != (sets[i].words != NULL))
            fprintf(stderr, "%s\n  %s", sets[i].text, report.text);
        CHECK((c == NULL) == (sets[i].words != NULL));
        CHECK(says(c, c ? "" : sets[i].words));
        config_free(c);
    }
}

TEST(bare_words_are_strings_and_quotes_are_optional)
{
    struct str set[] = {STR("data=5"), STR("listen=\"[::1]:1\"")};
    struct config *c = load_sets(2, set);

    CHECK(c && str_eq(c->data, STR("5")));
    CHECK(str_eq(c->listen, STR("[::1]:1")));
    config_free(c);
}

TEST(the_later_source_wins)
{
    char *env[] = {(char[]){"SIGNALBOX_HTTP__MAX_HEADERS=3"},
                   (char[]){"SIGNALBOX_STOP_GRACE_MS=3"}, NULL};
    struct str set[] = {STR("stopGraceMs=4"), STR("stopGraceMs=5")};
    struct config_source src = {.environ = env, .sets = set, .n_sets = 2};
    struct config *c = config_load_text(
        "t.jsonc",
        STR("{\"stopGraceMs\": 2, \"http\": {\"maxHeaders\": 2, "
            "\"maxBodyBytes\": 2}}"),
        &src, &report);

    CHECK(c && report.text_bytes == 0);
    CHECK(c->http.max_body_bytes == 2);
    CHECK(c->http.max_headers == 3);
    CHECK(c->stop_grace_ms == 5);
    CHECK(c->n_from_file == 3 && c->n_from_env == 2 && c->n_from_flags == 2);
    config_free(c);
}

TEST(later_sources_mend_nothing)
{
    struct str set = STR("stopGraceMs=4");
    struct config *c = config_load_text(
        "t.jsonc", STR("{\"stopGraceMs\": -2}"),
        &(struct config_source){.sets = &set, .n_sets = 1}, &report);

    CHECK(!c && says(c, "t.jsonc:1:17: stopGraceMs must be"));
}

TEST(the_word_for_plain_text_may_come_from_elsewhere)
{
    char *env[] = {(char[]){"SIGNALBOX_ALLOW_PLAINTEXT=true"}, NULL};
    struct config *c =
        config_load_text("t.jsonc", STR("{\"listen\": \"0.0.0.0:80\"}"),
                         &(struct config_source){.environ = env}, &report);

    CHECK(c && c->allow_plaintext);
    config_free(c);
}

/* Folders. */

static struct str data_of(const char *file, const char *text, const char *set)
{
    static struct config *c;
    char *env[] = {(char[]){"HOME=/home/anna"}, NULL};
    struct str sets_[1] = {str_of(set)};
    struct config_source src = {
        .environ = env, .sets = sets_, .n_sets = set ? 1 : 0};

    config_free(c);
    c = config_load_text(file, str_of(text), &src, &report);
    CHECK(c);
    CHECK(c->data.p[c->data.n] == '\0');
    return c->data;
}

TEST(relative_folders_begin_where_they_were_written)
{
    const char *d = "{\"data\": \"d\"}";

    CHECK(str_eq(data_of("c.jsonc", d, NULL), STR("d")));
    CHECK(str_eq(data_of("/etc/sb/c.jsonc", d, NULL), STR("/etc/sb/d")));
    CHECK(str_eq(data_of("../c.jsonc", d, NULL), STR("../d")));
    CHECK(
        str_eq(data_of("/etc/c.jsonc", "{\"data\": \"/d\"}", NULL), STR("/d")));
    CHECK(str_eq(data_of("/etc/c.jsonc", d, "data=e"), STR("e")));
    CHECK(str_eq(data_of("/etc/c.jsonc", "{}", NULL), STR("signalbox-data")));
}

TEST(an_empty_folder_is_refused_wherever_it_was_written)
{
    const struct config_source src = {0};
    struct str text = STR("{\"data\": \"\"}");

    CHECK(!config_load_text("t.jsonc", text, &src, &report));
    CHECK(!config_load_text("/etc/sb/t.jsonc", text, &src, &report));
    CHECK(says(NULL, "data must be the path of a folder"));
}

TEST(a_value_that_was_refused_is_not_blamed_for_the_one_that_stays)
{
    const struct str listen[] = {STR("listen=nonsense")};
    const struct config_source src = {.sets = listen, .n_sets = 1};
    struct config *c = config_load_text(
        "t.jsonc", STR("{\"listen\": \"0.0.0.0:1\"}"), &src, &report);

    CHECK(says(c, "--listen: listen must be"));
    CHECK(says(c, "t.jsonc:1:12: 0.0.0.0:1 can be reached"));
}

TEST(a_folder_may_begin_at_home)
{
    CHECK(str_eq(data_of("/etc/c.jsonc", "{\"data\": \"~/d\"}", NULL),
                 STR("/home/anna/d")));
    CHECK(str_eq(data_of("c.jsonc", "{}", "data=~"), STR("/home/anna")));
    CHECK(str_eq(data_of("c.jsonc", "{}", "data=~bob/d"), STR("~bob/d")));
}

TEST(a_folder_longer_than_any_path_is_refused)
{
    static char text[8192];
    struct str set;
    struct config *c;

    memset(text, 'x', sizeof(text));
    memcpy(text, "data=", 5);
    set = (struct str){text, 5 + 4096};
    c = load_sets(1, &set);
    CHECK(c && c->data.n == 4096);
    config_free(c);
    set.n++;
    c = load_sets(1, &set);
    CHECK(!c && says(c, "1 to 4096 bytes"));
}

TEST(files_of_certificates_begin_where_the_configuration_is)
{
    struct config *c = config_load_text(
        "etc/t.jsonc",
        STR("{\"tls\": {\"listen\": \"0.0.0.0:1\", \"certFile\": \"a.pem\", "
            "\"keyFile\": \"/k/a.key\", \"more\": [{\"certFile\": \"b.pem\", "
            "\"keyFile\": \"k/b.key\"}]}}"),
        &(struct config_source){0}, &report);

    CHECK(c && report.n_warnings == 0);
    CHECK(str_eq(c->tls.cert_file, STR("etc/a.pem")));
    CHECK(str_eq(c->tls.key_file, STR("/k/a.key")));
    CHECK(c->tls.more.n == 1);
    CHECK(str_eq(c->tls.more.list[0].cert_file, STR("etc/b.pem")));
    CHECK(str_eq(c->tls.more.list[0].key_file, STR("etc/k/b.key")));
    config_free(c);
}
