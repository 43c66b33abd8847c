/* routing and learning: defaults, limits, and settings that conflict. */
#include "server/config/internal.h"
#include "test/lib/config_stage.h"

TEST(routing_has_the_defaults_of_the_design)
{
    struct config *c = load_text("{}");

    CHECK(says(c, "") && c);
    for (size_t i = 0; i < N_LAYERS; i++)
        CHECK(!c->routing.layer_is_off[i]);
    CHECK(c->routing.weights.semantic == 0.60);
    CHECK(c->routing.weights.performance == 0.20);
    CHECK(c->routing.weights.keyword == 0.15);
    CHECK(c->routing.weights.recency == 0.05);
    CHECK(c->routing.threshold < 0 && c->routing.text_blend < 0 &&
          c->routing.close_margin == 0.05);
    CHECK(c->routing.explore == 0);
    CHECK_INT(c->routing.recency_ms, 48LL * 3600 * 1000);
    CHECK(!c->routing.intent.is_on && c->routing.intent.threshold == 0.8);
    CHECK_INT(c->routing.intent.timeout_ms, 500);
    CHECK(c->routing.intent.when == CONFIG_WHEN_ALWAYS);
    CHECK(c->routing.intent.overrides == CONFIG_OVERRIDES_DEFAULT);
    CHECK_INT(c->learning.every_ms, 600000);
    CHECK_INT(c->learning.follow_up_ms, 1800000);
    CHECK_INT(c->learning.substantial_chars, 200);
    CHECK_INT(c->learning.short_chars, 20);
    CHECK(c->learning.rate == 0.1 && c->learning.lean == 5);
    CHECK_INT(c->learning.max_types, 256);
    CHECK_INT(c->learning.examples_per_agent, 64);
    CHECK_INT(c->learning.max_examples, 20000);
    config_free(c);
}

#define INTENT(more)                                                         \
    "\"routing\": {\"intentClassifier\": {\"enabled\": true, \"endpoint\": " \
    "\"https://a/v1/chat/completions\", \"model\": \"m\"" more "}}"

/* Members of the file, and a part of the report; NULL: the report is empty. */
static const struct {
    const char *text, *words;
} cases[] = {
    {"\"routing\": {\"layers\": [\"semantic\", \"explicit\"]}", NULL},
    {"\"routing\": {\"layers\": \"semantic\"}",
     "routing.layers must be a list with one or more of \"explicit\", "
     "\"prefix\", \"sticky\", \"binding\", \"intent\", \"semantic\" and "
     "\"default\", not \"semantic\"\n"},
    {"\"routing\": {\"layers\": []}",
     "routing.layers is empty, so no agent would get a message"},
    {"\"routing\": {\"layers\": [\"semantics\"]}",
     "routing.layers has \"semantics\", which is not a layer; did you mean "
     "\"semantic\"?\n"},
    {"\"routing\": {\"layers\": [7]}",
     "routing.layers has 7, which is not a layer; there are \"explicit\", "},
    {"\"routing\": {\"layers\": [\"sticky\", \"sticky\"]}",
     "routing.layers has \"sticky\" twice\n"},

    {"\"routing\": {\"weights\": {\"semantic\": 1, \"keyword\": 0}}", NULL},
    {"\"routing\": {\"weights\": {\"semantic\": 1.5}}",
     "routing.weights.semantic must be a number from 0 to 1, not 1.5\n"},
    {"\"routing\": {\"weights\": [1, 2]}",
     "routing.weights is a group of settings, { ... }, not a list\n"},
    {"\"routing\": {\"weights\": {\"semantic\": 0, \"performance\": 0,\n"
     "\"keyword\": 0, \"recency\": 0}}",
     "t.jsonc:2:26: routing.weights are all 0, so all agents would have the "
     "same score; "},
    {"\"routing\": {\"layers\": [\"explicit\"], \"weights\": {\"semantic\": 0, "
     "\"performance\": 0, \"keyword\": 0, \"recency\": 0}}",
     NULL},
    {"\"routing\": {\"threshold\": 0}", NULL},
    {"\"routing\": {\"threshold\": 1}", NULL},
    {"\"routing\": {\"threshold\": -1}",
     "a number from 0 to 1, or \"auto\", not -1\n"},
    {"\"routing\": {\"threshold\": \"auto\"}", NULL},
    {"\"routing\": {\"threshold\": \"high\"}", "a number from 0 to 1"},
    {"\"routing\": {\"explore\": 0.05, \"closeMargin\": 0.1}", NULL},
    {"\"routing\": {\"explore\": 2}", "routing.explore must be a number"},
    {"\"routing\": {\"treshold\": 0.3}",
     "unknown setting \"routing.treshold\"; did you mean "
     "\"routing.threshold\"?\n"},
    {"\"routing\": {\"recencyMs\": 10}", "from 1000 to 31536000000, not 10\n"},

    {INTENT(""), NULL},
    {INTENT(", \"when\": \"ambiguous\", \"overrides\": \"bindings\""), NULL},
    {INTENT(", \"when\": \"never\""),
     "routing.intentClassifier.when must be \"always\" or \"ambiguous\", not "
     "\"never\"\n"},
    {INTENT(", \"kind\": \"anthropic\""), NULL},
    {INTENT(", \"kind\": \"claude\""),
     "routing.intentClassifier.kind must be \"openai\" or \"anthropic\", not "
     "\"claude\"\n"},
    {INTENT(", \"timeoutMs\": 60001"), "from 10 to 60000, not 60001\n"},
    {INTENT(", \"keyVariable\": \"sk-abc\""), "the value is not shown"},
    {"\"routing\": {\"intentClassifier\": {\"enabled\": false}}", NULL},
    {"\"routing\": {\"intentClassifier\": {\"enabled\": true}}",
     "t.jsonc:1:46: routing.intentClassifier needs a provider: set its "
     "endpoint and its model\n"},
    {"\"routing\": {\"intentClassifier\": {\"enabled\": true, \"endpoint\": "
     "\"https://a/\"}}",
     "and its model\n"},
    {"\"routing\": {\"intentClassifier\": true}",
     "routing.intentClassifier is a group of settings, { ... }, not true\n"},

    {"\"learning\": {\"everyMs\": 0}", NULL},
    {"\"learning\": {\"rate\": 1, \"lean\": 0.5}", NULL},
    {"\"learning\": {\"rate\": 1.1}", "learning.rate must be a number from 0"},
    {"\"learning\": {\"maxTypes\": 0}", "from 1 to 10000, not 0\n"},
};

TEST(what_is_written_of_routing_is_looked_at)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        struct config *c;

        snprintf(text, sizeof(text), "{%s}", cases[i].text);
        c = load_text(text);
        if (cases[i].words)
            CHECK(!c && says(c, cases[i].words));
        else
            CHECK(says(c, "") && c && !report.n_warnings);
        config_free(c);
    }
}

/* Accepted with a warning. */
static const struct {
    const char *text, *words;
} warned[] = {
    {"\"routing\": {\"threshold\": 0.9, \"weights\": {\"semantic\": 0.2}}",
     "routing.threshold is 0.9, and the sum of the weights, which no score can "
     "exceed, is 0.6: no agent is ever chosen by score\n"},
    {"\"routing\": {\"layers\": [\"prefix\", \"semantic\"]}",
     "t.jsonc:1:24: warning: routing.layers is without \"explicit\": a message "
     "that names its agent is routed by the other layers\n"},
    {"\"routing\": {\"layers\": [\"explicit\"]}, \"agents\": {\"default\": "
     "\"a\", \"list\": [{\"id\": \"a\"}]}",
     "routing.layers is without \"default\", so agents.default has no "
     "effect\n"},
    {"\"routing\": {\"layers\": [\"explicit\"]}, \"agents\": {\"list\": "
     "[{\"id\": \"a\"}]}, \"bindings\": [{\"agentId\": \"a\", \"match\": "
     "{\"channel\": \"x\"}}]",
     "routing.layers is without \"binding\", so the binding has no effect\n"},
    {"\"routing\": {\"layers\": [\"explicit\"], \"intentClassifier\": "
     "{\"enabled\": true, \"endpoint\": \"https://a/\", \"model\": \"m\"}}",
     "routing.layers is without \"intent\", so routing.intentClassifier is not "
     "used\n"},
    {"\"routing\": {\"intentClassifier\": {\"enabled\": true, \"endpoint\": "
     "\"http://example.org/\", \"model\": \"m\", \"keyVariable\": \"K\"}}",
     "the key and all texts are sent to routing.intentClassifier.endpoint in "
     "plain text; use https\n"},
    {"\"learning\": {\"shortChars\": 300}",
     "t.jsonc:1:29: warning: learning.shortChars (300) is more than "
     "learning.substantialChars (200): an answer between them counts against "
     "its agent\n"},
};

TEST(what_has_no_effect_is_warned_of)
{
    for (size_t i = 0; i < sizeof(warned) / sizeof(warned[0]); i++) {
        char text[1024];
        struct config *c;

        snprintf(text, sizeof(text), "{%s}", warned[i].text);
        c = load_text(text);
        CHECK(c && report.n_warnings == 1 && says(c, warned[i].words));
        config_free(c);
    }
}

TEST(layers_that_are_left_out_are_off)
{
    struct str sets[] = {STR("routing.layers=[\"default\",\"explicit\"]")};
    struct config *c = load_sets(1, sets), *again;
    struct buf out;

    CHECK(says(c, "") && c);
    for (unsigned i = 1; i < LAYER_NONE; i++)
        CHECK(c->routing.layer_is_off[i] ==
              (i != LAYER_EXPLICIT && i != LAYER_DEFAULT));
    buf_init(&out, 1 << 20);
    config_write_json(c, &out);
    buf_add_char(&out, '\0');
    CHECK(strstr(out.p, "\"layers\":[\"explicit\",\"default\"]"));
    out.n--;
    again = config_load_text("p.jsonc", buf_str(&out),
                             &(struct config_source){0}, &report);
    CHECK(says(again, "") && again);
    CHECK(memcmp(c->routing.layer_is_off, again->routing.layer_is_off,
                 sizeof(c->routing.layer_is_off)) == 0);
    config_free(again);
    config_free(c);
    buf_fini(&out);
}

TEST(the_classifier_s_key_is_the_variable_s_and_is_never_shown)
{
    char key[] = "INTENT_KEY=hush-hush", all[] = "SIGNALBOX_ROUTING__INTENT_"
                                                 "CLASSIFIER__KEY_VARIABLE="
                                                 "INTENT_KEY";
    char *env[] = {key, all, NULL};
    struct config *c = load_env(env);
    struct buf out;

    CHECK(says(c, "") && c);
    CHECK_STR(c->routing.intent.key, "hush-hush");
    buf_init(&out, 1 << 20);
    config_write_json(c, &out);
    CHECK(!memmem(out.p, out.n, "hush", 4));
    CHECK(memmem(out.p, out.n, "INTENT_KEY", 10));
    config_free(c);
    buf_fini(&out);
}

TEST(a_running_server_takes_all_of_it)
{
    struct config_setting s;

    for (size_t i = 0; config_setting(i, &s); i++)
        if (str_starts(str_of(s.path), STR("routing.")) ||
            str_starts(str_of(s.path), STR("learning.")) ||
            str_eq(str_of(s.path), STR("bindings")) ||
            str_eq(str_of(s.path), STR("agents.default")))
            CHECK(!s.needs_restart);
}
