#include "test/lib/card_stage.h"

static const struct str tags[] = {STR("research"), STR("papers"),
                                  STR("citations")};
static const struct str keywords[] = {STR("code"), STR("debug")};

static void searches_as(const struct agent *a, const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    card_search_text(&out, a);
    CHECK_STR(buf_str(&out), text);
    buf_fini(&out);
}

static void routes_as(const struct agent *a, const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    card_routing_text(&out, a);
    CHECK_STR(buf_str(&out), text);
    buf_fini(&out);
}

static void is_skill(const struct skill *s, const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    card_skill_text(&out, s);
    CHECK_STR(buf_str(&out), text);
    buf_fini(&out);
}

TEST(an_agent_is_its_name_or_title_and_its_description)
{
    struct agent a = {.name = STR("research-agent")};

    searches_as(&a, "research agent");
    a.description = STR("Deep research");
    searches_as(&a, "research agent: Deep research");
    a.title = STR("Dr. Research v2.1");
    searches_as(&a, "Dr. Research v2.1: Deep research");
    a.description = STR("dr. research V2.1");
    searches_as(&a, "Dr. Research v2.1");
}

TEST(for_routing_it_is_its_keywords_and_prompt_too)
{
    struct agent a = {.name = STR("engineer"), .description = STR("Builds")};

    routes_as(&a, "engineer: Builds");
    a.routing.system_prompt = STR("You are.");
    routes_as(&a, "engineer: Builds You are.");
    a.routing.keywords = (struct strs){keywords, 2};
    routes_as(&a, "engineer: Builds code debug You are.");
}

TEST(a_skill_is_its_name_description_and_tags)
{
    struct skill s = {.id = STR("topic"),
                      .name = STR("Topic Research"),
                      .description =
                          STR("Research any topic with source citations"),
                      .tags = {tags, 3}};

    is_skill(&s, "Topic Research: Research any topic with source citations "
                 "research papers citations");
    s.description = STR("");
    is_skill(&s, "Topic Research research papers citations");
    s.tags.n = 0;
    s.name = STR("Node.js");
    is_skill(&s, "Node.js");
    s.id = s.name = STR("Alarm_1.GetAlarms");
    is_skill(&s, "Get Alarms");
}
