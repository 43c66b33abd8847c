#include "server/config/internal.h"
#include "test/lib/config_stage.h"

TEST(both_models_inside_are_the_default)
{
    struct config *c = load_text("{}");

    CHECK(c && c->embed.kind == CONFIG_EMBED_BUILTIN);
    CHECK(c->embed.second_margin == 3);
    CHECK_STR(c->embed.model_file, "");
    CHECK_STR(c->embed.http.url, "");
    CHECK(!c->embed.http.key.p);
    config_free(c);
}

/* The value of "embed", and a part of the report; NULL: it is accepted. */
static const struct {
    const char *text, *words;
} embed[] = {
    {"\"kind\": \"minilm\"", NULL},
    {"\"kind\": \"table\"", NULL},
    {"\"kind\": \"transformer\"", NULL},
    {"\"second\": \"minilm\"", "the setting \"embed.second\" was removed; "
                               "leave it out: embed.kind \"builtin\""},
    {"\"second\": \"none\"", "was removed"},
    {"\"kind\": \"bm25\"", "\"builtin\", \"table\", \"transformer\", "
                           "\"minilm\" or \"http\""},
    {"\"kind\": \"http\"", "set embed.http.url"},
    {"\"kind\": \"http\"", "t.jsonc:1:20: \"http\" needs a provider"},
    {"\"kind\": \"http\", \"http\": {\"url\": \"https://a/v1\"}",
     "embed.http.model"},
    {"\"kind\": \"http\", \"http\": {\"url\": \"https://a/v1\", \"model\": "
     "\"m\"}",
     NULL},
    {"\"http\": {\"url\": \"ws://a/\"}", "https:// or http://"},
    {"\"http\": {\"url\": \"http://u:p@a/\"}", "embed.http.url: "},
    {"\"http\": {\"url\": 7}", "a URL with http or https"},
    {"\"http\": {\"queryPrefix\": \"Instruct: x\\nQuery: \"}", NULL},
    {"\"http\": {\"model\": 7}", "a text of up to 127 bytes"},
    {"\"http\": {\"keyVariable\": \"OPENAI_API_KEY\"}", NULL},
    {"\"http\": {\"keyVariable\": \"SIGNALBOX_KEY\"}", "choose another"},
    {"\"http\": {\"keyVariable\": \"1A\"}", "in capitals"},
    {"\"http\": {\"dimensions\": 8193}", "from 0 to 8192"},
    {"\"http\": {\"batch\": 0}", "from 1 to 2048"},
    {"\"secondMargin\": 0", NULL},
    {"\"secondMargin\": 10", NULL},
    {"\"secondMargin\": 1e-3", NULL},
    {"\"secondMargin\": 10.1", "a number from 0 to 10, not 10.1"},
    {"\"secondMargin\": -0.1", "a number from 0 to 10"},
    {"\"secondMargin\": \"0.1\"", "a number from 0 to 10"},
};

TEST(what_is_written_is_looked_at)
{
    for (size_t i = 0; i < sizeof(embed) / sizeof(embed[0]); i++) {
        char text[512];
        struct config *c;

        snprintf(text, sizeof(text), "{\"embed\": {%s}}", embed[i].text);
        c = load_text(text);
        if (embed[i].words)
            CHECK(!c && says(c, embed[i].words));
        else
            CHECK(says(c, "") && c && !report.n_warnings);
        config_free(c);
    }
}

TEST(fractions_may_stand_in_a_variable_or_a_flag)
{
    char margin[] = "SIGNALBOX_EMBED__SECOND_MARGIN=0.125";
    char *env[] = {margin, NULL};
    struct str sets[] = {STR("embed.secondMargin=1"),
                         STR("embed.http.breakerPauseMs=100")};
    struct config *c = load_env(env), *other;
    struct buf out;

    CHECK(says(c, "") && c && c->embed.second_margin == 0.125);
    other = load_sets(2, sets);
    CHECK(says(other, "") && other && other->embed.second_margin == 1);
    CHECK_INT(other->embed.http.breaker_pause_ms, 100);
    buf_init(&out, 64 * 1024);
    config_write_json(c, &out);
    buf_add_char(&out, '\0');
    CHECK(strstr(out.p, "\"secondMargin\":0.125"));
    CHECK(strstr(out.p, "\"http\":{\"url\":\"\",\"model\":\"\""));
    buf_clear(&out);
    config_restart_needed(c, other, &out);
    CHECK_INT(out.n, 0);
    buf_fini(&out);
    config_free(c);
    config_free(other);
}

/* A key in place of the name of its variable. */
TEST(a_key_in_the_wrong_place_is_not_shown)
{
    struct config *c =
        load_text("{\"embed\":{\"http\":{\"keyVariable\":\"sk-abc123\"}}}");

    CHECK(!c && says(c, "put the key itself into that variable"));
    CHECK(!strstr(report.text, "abc123"));
}

TEST(the_key_comes_from_the_environment_and_is_no_setting)
{
    char key[] = "MY_KEY=sk-abc123",
         name[] = "SIGNALBOX_EMBED__HTTP__KEY_VARIABLE=MY_KEY";
    char empty[] = "MY_KEY=";
    char *env[] = {key, name, NULL}, *without[] = {empty, name, NULL};
    struct config *c = load_env(env);
    struct buf out;

    CHECK(says(c, "") && c);
    CHECK_STR(c->embed.http.key, "sk-abc123");
    buf_init(&out, 64 * 1024);
    config_write_json(c, &out);
    CHECK(out.n && !memmem(out.p, out.n, "sk-abc123", 9));
    buf_fini(&out);
    config_free(c);
    c = load_env(without); /* its user reports it */
    CHECK(says(c, "") && c && !c->embed.http.key.p);
    config_free(c);
}

/* Texts are reported with and without a key. */
TEST(what_travels_in_plain_text_is_warned_of)
{
    static const struct {
        const char *url;
        bool is_exposed;
    } cases[] = {
        {"http://api.example.com/v1/embeddings", true},
        {"https://api.example.com/v1/embeddings", false},
        {"http://localhost:1234/", false},
        {"http://LOCALHOST:1234/", false},
        {"http://127.0.0.1:1234/", false},
        {"http://127.1.2.3/", false},
        {"http://127.evil.example/", true},
        {"http://127.0.0.1.evil.example/", true},
        {"http://[::1]:1234/", false},
        {"http://[::2]:1234/", true},
        {"http://10.0.0.1/", true},
    };

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_exposed = cases[i / 2].is_exposed, has_key = i % 2;
        char text[512];
        struct config *c;

        snprintf(text, sizeof(text),
                 "{\"embed\":{\"kind\":\"http\",\"http\":{\"url\":\"%s\","
                 "\"model\":\"m\",\"keyVariable\":\"%s\"}}}",
                 cases[i / 2].url, has_key ? "K" : "");
        c = load_text(text);
        if (!c || report.n_warnings != is_exposed)
            T_FAIL("%s: %d warnings", cases[i / 2].url, report.n_warnings);
        CHECK(says(c, !is_exposed ? ""
                      : has_key   ? "the key and all texts"
                                  : "all texts are sent"));
        config_free(c);
    }
}

/* The query holds a version for Azure, and the key for others. */
TEST(the_query_of_the_url_is_not_shown)
{
    struct config *c =
        load_text("{\"embed\":{\"http\":{\"url\":"
                  "\"https://a.example/v1/embeddings?api-key=hunter2&v=1\"}}}");
    struct buf out;

    CHECK(says(c, "") && c);
    CHECK(str_starts(c->embed.http.url, STR("https://a.example/")));
    CHECK(memmem(c->embed.http.url.p, c->embed.http.url.n, "hunter2", 7));
    buf_init(&out, 64 * 1024);
    config_write_json(c, &out);
    CHECK(memmem(out.p, out.n, "/v1/embeddings?not-shown\"", 25));
    CHECK(!memmem(out.p, out.n, "hunter2", 7));
    buf_fini(&out);
    config_free(c);
}
