/* Every setting reaches its module. */
#include "server/settings.h"

#include "test/lib/config_stage.h"

TEST(without_a_file_agents_are_chosen_as_choose_has_it)
{
    struct config *c = load_text("{}");
    struct choose_settings got, own = choose_defaults();

    CHECK(c);
    got = settings_route(c).choose;
    CHECK(memcmp(got.is_off, own.is_off, sizeof(got.is_off)) == 0);
    CHECK(memcmp(&got.weights, &own.weights, sizeof(got.weights)) == 0);
    CHECK(got.threshold == own.threshold && got.explore == own.explore);
    CHECK(got.close_margin == own.close_margin);
    CHECK(got.second_margin == own.second_margin);
    CHECK(got.text_blend == own.text_blend);
    CHECK_INT(got.recency_ms, own.recency_ms);
    CHECK(!got.bindings.n && !got.default_agent.n);
    CHECK(got.intent.is_on == own.intent.is_on);
    CHECK(got.intent.threshold == own.intent.threshold);
    CHECK(got.intent.when == own.intent.when);
    CHECK(got.intent.overrides == own.intent.overrides);
    config_free(c);
}

static struct choose_settings chosen_by(const char *text)
{
    struct config *c = load_text(text);
    struct choose_settings s;

    CHECK(c);
    s = settings_route(c).choose;
    config_free(c);
    return s;
}

TEST(what_is_set_beside_a_preset_counts)
{
    struct choose_settings s =
        chosen_by("{\"routing\": {\"preset\": \"seed\"}}");

    CHECK(s.is_seed && !s.is_auto && !s.is_centred && s.threshold == 0.30);
    CHECK(s.text_blend == 0);
    s = chosen_by("{\"routing\": {\"preset\": \"seed\", \"threshold\": "
                  "\"auto\", \"textBlend\": \"auto\"}}");
    CHECK(s.is_seed && s.is_auto && s.is_centred);
    CHECK(s.text_blend == choose_defaults().text_blend);
    s = chosen_by("{\"routing\": {\"preset\": \"seed\", \"threshold\": "
                  "0.4, \"textBlend\": 0.1}}");
    CHECK(s.is_seed && !s.is_auto && s.threshold == 0.4);
    CHECK(s.text_blend == 0.1);
}

TEST(every_setting_of_delegation_arrives)
{
    struct config *c = load_text(
        "{\"delegation\": {\"timeoutMs\": 1000, \"maxDepth\": 2, "
        "\"maxConcurrent\": 3, \"maxWaiting\": 8, \"maxPerRoot\": 4, "
        "\"maxOpen\": 5, "
        "\"maxUnacked\": 7, \"keepMs\": 6000, \"onDisconnect\": \"cancel\"}}");
    static struct server s;
    struct delegation_settings h;

    CHECK(c);
    h = settings_walk(&s, c).delegation;
    CHECK(h.timeout_ms == 1000 && h.max_depth == 2 && h.max_concurrent == 3 &&
          h.max_waiting == 8);
    CHECK(h.max_per_root == 4 && h.max_open == 5 && h.max_unacked == 7 &&
          h.keep_ms == 6000);
    CHECK(h.ends_with_line);
    config_free(c);
}

TEST(every_setting_of_the_ledger_arrives)
{
    struct config *c =
        load_text("{\"ledger\": {\"feePpm\": 25000, \"perDay\": 1, "
                  "\"perConversation\": 2, \"perRoot\": 3}}");
    static struct server s;
    struct ledger_settings l;

    CHECK(c);
    l = settings_walk(&s, c).ledger;
    CHECK(l.fee_ppm == 25000 && l.per_day == 1);
    CHECK(l.per_conversation == 2 && l.per_root == 3);
    config_free(c);
}

static const char routing[] =
    "{\"agents\": {\"default\": \"a\", \"list\": [{\"id\": \"a\"}]},"
    "\"bindings\": [{\"agentId\": \"a\", \"match\": {\"channel\": \"x\"}}],"
    "\"routing\": {\"layers\": [\"explicit\", \"binding\", \"intent\", "
    "\"semantic\", \"default\"], \"threshold\": 0.4, \"textBlend\": 0.5, "
    "\"closeMargin\": 0.1, \"explore\": 0.2, \"recencyMs\": 5000, "
    "\"weights\": {\"semantic\": 0.5, \"performance\": 0.25, \"keyword\": "
    "0.125, \"recency\": 0}, \"intentClassifier\": {\"enabled\": true, "
    "\"endpoint\": \"https://m/v1/chat/completions\", \"model\": \"small\", "
    "\"kind\": \"anthropic\", \"keyVariable\": \"KEY\", \"timeoutMs\": 250, "
    "\"threshold\": 0.7, "
    "\"when\": \"ambiguous\", \"overrides\": \"bindings\"}}}";

TEST(every_setting_of_routing_arrives)
{
    char key[] = "KEY=secret";
    char *env[] = {key, NULL};
    struct config_source src = {.environ = env};
    struct config *c =
        config_load_text("t.jsonc", str_of(routing), &src, &report);
    struct route_settings s;

    CHECK(says(c, "") && c);
    s = settings_route(c);
    CHECK(s.choose.is_off[LAYER_PREFIX] && s.choose.is_off[LAYER_STICKY]);
    CHECK(!s.choose.is_off[LAYER_EXPLICIT] && !s.choose.is_off[LAYER_DEFAULT]);
    CHECK(s.choose.threshold == 0.4 && s.choose.text_blend == 0.5);
    CHECK(s.choose.close_margin == 0.1 && s.choose.explore == 0.2);
    CHECK_INT(s.choose.recency_ms, 5000);
    CHECK(s.choose.weights.semantic == 0.5 && s.choose.weights.recency == 0);
    CHECK(s.choose.weights.performance == 0.25);
    CHECK(s.choose.weights.keyword == 0.125);
    CHECK(s.choose.bindings.n == 1);
    CHECK_STR(s.choose.default_agent, "a");
    CHECK(s.choose.intent.is_on && s.choose.intent.threshold == 0.7);
    CHECK(s.choose.intent.when == INTENT_AMBIGUOUS);
    CHECK(s.choose.intent.overrides == INTENT_OVER_BINDINGS);
    CHECK_STR(s.intent.endpoint, "https://m/v1/chat/completions");
    CHECK_INT(s.intent.kind, MODEL_ANTHROPIC);
    CHECK_STR(s.intent.model, "small");
    CHECK_STR(s.intent.key, "secret");
    CHECK_INT(s.intent.timeout_ms, 250);
    config_free(c);
}

TEST(every_setting_of_learning_arrives)
{
    struct config *c = load_text(
        "{\"learning\": {\"everyMs\": 1, \"followUpMs\": 2, "
        "\"substantialChars\": 40, \"shortChars\": 4, \"rate\": 0.5, \"lean\": "
        "6, \"typeLikeness\": 0.75, \"maxTypes\": 8, \"examplesPerAgent\": 9, "
        "\"maxExamples\": 10}, \"registry\": {\"maxAgents\": 1111}}");
    struct learning_settings s;

    CHECK(c);
    s = settings_learning(c);
    CHECK(s.every_ms == 1 && s.follow_up_ms == 2);
    CHECK(s.substantial == 40 && s.uselessly_short == 4);
    CHECK(s.learn.rate == 0.5 && s.learn.agent_lean == 6);
    CHECK(s.learn.type_likeness == 0.75 && s.learn.max_types == 8);
    CHECK(s.learn.examples_per_agent == 9 && s.learn.max_examples == 10);
    CHECK(s.learn.max_agents == 1111);
    config_free(c);
}
