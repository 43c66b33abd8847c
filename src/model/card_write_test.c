/* Writing: the views, the stored form, and the differences between two
 * cards. */
#include "test/lib/card_stage.h"

static const char text[] =
    "{\"url\":\"https://h/\",\"name\":\"engineer\",\"description\":\"d\","
    "\"visibility\":\"shared\",\"title\":null,\"version\":\"\","
    "\"authentication\":{\"credentials\":\"s3cret\",\"schemes\":[\"b\"],"
    "\"x\":{\"credentials\":1}},"
    "\"skills\":[{\"name\":\"S\",\"id\":\"s\",\"tags\":[],"
    "\"pricing\":{\"amount_micros\":0}}],"
    "\"routing\":{\"system_prompt\":\"pr0mpt\",\"routable\":true},"
    "\"wake\":{\"timeout_ms\":5,\"url\":\"https://w/\"},"
    "\"restart\":{\"command\":[\"c0mmand\"]},"
    "\"backup\":\"b4ckup\","
    "\"limits\":{},\"delegation\":{\"allowAgents\":[]}}";

#define CARD_OF(proof)                                                       \
    "{\"name\":\"engineer\",\"description\":\"d\",\"url\":\"https://h/\","   \
    "\"visibility\":\"shared\",\"authentication\":{\"credentials\":\"" proof \
    "\","                                                                    \
    "\"schemes\":[\"b\"],\"x\":{\"credentials\":1}},"                        \
    "\"skills\":[{\"id\":\"s\",\"name\":\"S\","                              \
    "\"pricing\":{\"amount_micros\":0}}],"                                   \
    "\"routing\":{\"system_prompt\":\"pr0mpt\"},"                            \
    "\"wake\":{\"url\":\"https://w/\",\"timeout_ms\":5},"                    \
    "\"restart\":{\"command\":[\"c0mmand\"]},"                               \
    "\"backup\":\"b4ckup\","                                                 \
    "\"delegation\":{\"allowAgents\":[]}}"

static const char stored[] = CARD_OF("s3cret");
static const char shown[] = CARD_OF(CARD_IS_SET);

TEST(one_form_is_kept_whatever_the_order_was)
{
    struct stage s;
    struct buf out;

    stage_init(&s);
    buf_init(&out, 1 << 16);
    stage_read(&s, str_of(text));
    CHECK_INT(s.e, OK);
    s.agent.creator = STR("anna");
    s.agent.revision = 7;
    stage_write(&s.agent, CARD_STORED, &out);
    CHECK_STR(buf_str(&out), stored);
    buf_fini(&out);
    stage_fini(&s);
}

TEST(its_creator_sees_all_but_credentials_and_what_the_server_says)
{
    static const char tail[] =
        ",\"creator_id\":\"anna\",\"org\":null,\"kind\":\"managed\","
        "\"revision\":7,\"created_ms\":1,\"updated_ms\":2}";
    struct stage s;
    struct buf out;

    stage_init(&s);
    buf_init(&out, 1 << 16);
    stage_read(&s, str_of(text));
    s.agent.creator = STR("anna");
    s.agent.kind = AGENT_MANAGED;
    s.agent.revision = 7;
    s.agent.created_ms = 1;
    s.agent.updated_ms = 2;
    stage_write(&s.agent, CARD_ALL, &out);
    CHECK(str_starts(buf_str(&out),
                     str_sub(str_of(shown), 0, sizeof(shown) - 2)));
    CHECK_STR(str_sub(buf_str(&out), sizeof(shown) - 2, out.n), tail);
    buf_fini(&out);
    stage_fini(&s);
}

TEST(others_see_no_query_of_its_url)
{
    struct stage s;
    struct buf out;

    stage_init(&s);
    buf_init(&out, 1 << 16);
    stage_read(&s, STR("{\"name\":\"a\",\"description\":\"d\",\"url\":"
                       "\"https://h/p?key=s3cret\"}"));
    stage_write(&s.agent, CARD_OTHERS, &out);
    CHECK(stage_has(buf_str(&out), STR("\"https://h/p?not-shown\"")));
    CHECK(!stage_has(buf_str(&out), STR("s3cret")));
    buf_fini(&out);
    buf_init(&out, 1 << 16);
    stage_write(&s.agent, CARD_ALL, &out);
    CHECK(stage_has(buf_str(&out), STR("?key=s3cret")));
    buf_fini(&out);
    stage_fini(&s);
}

TEST(others_see_no_secrets)
{
    struct stage s;
    struct buf out;

    stage_init(&s);
    buf_init(&out, 1 << 16);
    stage_read(&s, str_of(text));
    stage_write(&s.agent, CARD_OTHERS, &out);
    CHECK_STR(buf_str(&out), "{\"name\":\"engineer\",\"description\":\"d\","
                             "\"url\":\"https://h/\",\"visibility\":\"shared\","
                             "\"authentication\":{\"schemes\":[\"b\"],"
                             "\"x\":{\"credentials\":1}},"
                             "\"skills\":[{\"id\":\"s\",\"name\":\"S\","
                             "\"pricing\":{\"amount_micros\":0}}],"
                             "\"creator_id\":null,"
                             "\"org\":null,\"revision\":0,\"created_ms\":0,"
                             "\"updated_ms\":0}");
    buf_fini(&out);
    stage_fini(&s);
}

/* However early the text is cut off. */
TEST(no_fault_shows_a_secret)
{
    struct stage s;
    bool is_over = true;

    stage_init(&s);
    stage_read(&s, str_of(text));
    for (size_t limit = 0; is_over; limit++)
        for (int i = 0; i < 2; i++) {
            struct json_out o;
            struct buf out;

            buf_init(&out, limit);
            o = json_out(&out);
            card_write(&o, &s.agent, i ? CARD_OTHERS : CARD_ALL);
            CHECK(!stage_has(buf_str(&out), STR("s3cret")));
            is_over = out.over;
            buf_fini(&out);
        }
    stage_fini(&s);
}

TEST(members_go_into_an_object_that_is_open)
{
    static const struct str tag[] = {STR("t")};
    const struct skill skill = {
        .id = STR("i"), .name = STR("n"), .tags = {tag, 1}, .price = {true, 3}};
    struct agent a = {.name = STR("x"),
                      .url = STR("echo:"),
                      .delegation = {.max_concurrent = -1, .max_depth = -1}};
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = json_out(&out);
    json_open(&o, '{');
    json_key(&o, STR("score"));
    json_put_int(&o, 1);
    card_write_skill_members(&o, &skill);
    json_close(&o, '}');
    CHECK_STR(buf_str(&out), "{\"score\":1,\"id\":\"i\",\"name\":\"n\","
                             "\"tags\":[\"t\"],"
                             "\"pricing\":{\"amount_micros\":3}}");
    buf_clear(&out);
    o = json_out(&out);
    json_open(&o, '{');
    card_write_members(&o, &a, CARD_STORED);
    json_key(&o, STR("state"));
    json_put_str(&o, STR("IDLE"));
    json_close(&o, '}');
    CHECK_STR(buf_str(&out), "{\"name\":\"x\",\"url\":\"echo:\",\"skills\":[],"
                             "\"state\":\"IDLE\"}");
    buf_fini(&out);
}

TEST(what_is_not_a_card_was_not_stored)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{}",
                                      "{\"name\":\"a\",\"zebra\":1}",
                                      "{\"name\":\"a\"} ",
                                      "{\"name\":\"a b\"}"};
    struct agent a;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (i != 5)
            CHECK(card_read_stored(&arena, str_of(bad[i]), &a) == ERR_SYNTAX);
    /* An agent of the configuration may have no description. */
    CHECK(card_read_stored(&arena, STR("{\"name\":\"a\"}"), &a) == OK);
    CHECK_STR(a.url, "ws-agent://a");
    CHECK(card_read_stored(&arena, str_of(stored), &a) == OK);
    CHECK_STR(a.restart.list[0], "c0mmand");
    arena_fini(&arena);
}

/* Differences. */

static void differ(const struct agent *a, const struct agent *b,
                   const char *names)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = json_out(&out);
    card_diff(&o, a, b);
    CHECK_STR(buf_str(&out), names);
    buf_fini(&out);
}

TEST(fields_that_differ_are_named)
{
    struct str words[] = {STR("c0mmand")};
    struct stage s;
    struct agent b;
    struct skill skill;

    stage_init(&s);
    stage_read(&s, str_of(text));
    b = s.agent;
    b.revision = 9;
    b.updated_ms = 5;
    b.restart = (struct strs){words, 1};
    differ(&s.agent, &b, "[]");
    b.url = STR("echo:");
    b.wake.timeout_ms = 6;
    b.delegation.is_limited = false;
    differ(&s.agent, &b, "[\"url\",\"wake\",\"delegation\"]");
    b = s.agent;
    skill = s.agent.skills[0];
    skill.price.micros++;
    b.skills = &skill;
    b.creator = STR("eve");
    b.kind = AGENT_MANAGED;
    differ(&s.agent, &b, "[\"skills\",\"creator_id\",\"kind\"]");
    b = (struct agent){.name = STR("engineer")};
    differ(&s.agent, &b,
           "[\"description\",\"url\",\"visibility\",\"authentication\","
           "\"skills\",\"routing\",\"wake\",\"restart\",\"backup\","
           "\"delegation\"]");
    stage_fini(&s);
}
