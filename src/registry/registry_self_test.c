/* Agents that register themselves: which caller may be which agent, and what
 * their cards cannot set. */
#include "test/lib/registry_stage.h"

static const struct caller robot = {.token_id = {"tok_8"},
                                    .principal = "robot",
                                    .owner = "anna",
                                    .org = "acme",
                                    .role = ROLE_AGENT,
                                    .scopes = SCOPE_SEND | SCOPE_READ};
static const struct caller stranger = {.token_id = {"tok_9"},
                                       .principal = "echo",
                                       .role = ROLE_AGENT,
                                       .scopes = SCOPE_SEND | SCOPE_READ};

static enum err put_self(struct stage *s, const struct caller *c,
                         const char *card)
{
    struct registry_by by = stage_by(s, c);

    by.is_self = true;
    return stage_put_if(s, "", card, &by);
}

static enum err may_be(struct stage *s, const struct caller *c,
                       const char *name, const struct agent **out)
{
    struct registry_by by = stage_by(s, c);

    s->why.text[0] = '\0';
    return registry_self(s->r, str_of(name), &by, out, &s->why);
}

TEST(a_new_one_is_private_self_hosted_and_its_owners)
{
    const struct agent *a;
    struct stage s;

    stage_open(&s);
    CHECK(may_be(&s, &robot, "new", &a) == OK && !a);
    CHECK(put_self(&s, &robot, "{\"name\":\"new\"}") == OK);
    a = stage_find(&s, NULL, "new");
    CHECK(a->visibility == VISIBILITY_PRIVATE && a->kind == AGENT_SELF_HOSTED);
    CHECK_STR(a->creator, "anna");
    CHECK_STR(a->url, "ws-agent://new");
    CHECK(put_self(&s, &stage_admin, "{\"name\":\"admins\"}") == OK);
    a = stage_find(&s, NULL, "admins");
    CHECK(a->visibility == VISIBILITY_PRIVATE && a->kind == AGENT_SELF_HOSTED);
    CHECK_STR(a->creator, "admin");
    stage_close(&s);
}

TEST(visibility_counts_with_the_scope_agents_only)
{
    const char *card = "{\"name\":\"seen\",\"visibility\":\"public\"}";
    struct stage s;

    stage_open(&s);
    CHECK(put_self(&s, &robot, card) == ERR_NOT_ALLOWED);
    CHECK_INT(s.problems.n, 1);
    CHECK(put_self(&s, &stage_anna, card) == OK);
    CHECK(stage_find(&s, NULL, "seen")->visibility == VISIBILITY_PUBLIC);
    CHECK(put_self(&s, &robot, card) == OK); /* said as it is there */
    CHECK(s.is_same);
    stage_close(&s);
}

TEST(what_runs_and_whose_it_is_are_not_for_such_a_card)
{
    static const char *const cards[] = {
        "{\"name\":\"x\",\"restart\":{\"command\":[\"rm\"]}}",
        "{\"name\":\"x\",\"url\":\"process:rm\"}",
        "{\"name\":\"x\",\"creator_id\":\"bob\"}",
        "{\"name\":\"x\",\"kind\":\"platform\"}",
    };
    struct stage s;

    stage_open(&s);
    for (size_t i = 0; i < sizeof(cards) / sizeof(*cards); i++) {
        CHECK(put_self(&s, &stage_anna, cards[i]) == ERR_NOT_ALLOWED);
        CHECK(put_self(&s, &stage_admin, cards[i]) == ERR_NOT_ALLOWED);
    }
    CHECK(put_self(&s, &stage_anna,
                   "{\"name\":\"x\",\"url\":\"https://example.com/a\"}") == OK);
    CHECK_STR(stage_find(&s, NULL, "x")->url, "ws-agent://x");
    CHECK(put_self(&s, &stage_anna,
                   "{\"name\":\"x\",\"url\":\"ws-agent://y\"}") == OK);
    CHECK_STR(stage_find(&s, NULL, "x")->url, "ws-agent://y");
    stage_close(&s);
}

TEST(it_is_its_creators_and_of_who_acts_for_them)
{
    const struct agent *a;
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"hers\"}") == OK);
    CHECK(may_be(&s, &stage_anna, "hers", &a) == OK && a);
    CHECK(may_be(&s, &robot, "hers", &a) == OK && a);
    CHECK(may_be(&s, &stage_admin, "hers", &a) == OK && a);
    /* In their own words, and no more than that it is taken. */
    CHECK(may_be(&s, &stage_bob, "HERS", &a) == ERR_EXISTS && !a);
    CHECK(strcmp(s.why.text, "the name \"HERS\" is taken") == 0);
    CHECK(put_self(&s, &stage_bob, "{\"name\":\"hers\"}") == ERR_EXISTS);
    CHECK(stage_patch(&s, &stage_anna, "hers", "{\"visibility\":\"public\"}") ==
          OK);
    CHECK(may_be(&s, &stage_bob, "hers", &a) == ERR_NOT_ALLOWED && !a);
    CHECK(strstr(s.why.text, "creator"));
    CHECK(put_self(&s, &stage_bob, "{\"name\":\"hers\"}") == ERR_NOT_ALLOWED);
    stage_close(&s);
}

TEST(a_name_in_another_case_is_told_how_it_is_written)
{
    const struct agent *a;
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"Writer\"}") == OK);
    CHECK(may_be(&s, &stage_anna, "writer", &a) == ERR_EXISTS && !a);
    CHECK(strstr(s.why.text, "Writer"));
    CHECK(may_be(&s, &stage_anna, "Writer", &a) == OK && a);
    CHECK(may_be(&s, &stage_anna, "", &a) == ERR_BAD_REQUEST);
    stage_close(&s);
}

TEST(the_configurations_agents_are_admins_and_their_namesakes)
{
    static const struct agent list[] = {
        {.name = STR("echo"), .url = STR("ws-agent://echo")}};
    const struct agent *a;
    struct stage s;

    stage_open(&s);
    CHECK(stage_configure(&s, list, 1) == OK);
    CHECK(may_be(&s, &stranger, "echo", &a) == OK && a && a->is_configured);
    CHECK(may_be(&s, &stage_admin, "echo", &a) == OK && a);
    CHECK(may_be(&s, &stage_anna, "echo", &a) == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "configuration"));
    CHECK(may_be(&s, &robot, "echo", &a) == ERR_NOT_ALLOWED);
    CHECK(put_self(&s, &stranger, "{\"name\":\"echo\"}") == ERR_NOT_ALLOWED);
    stage_close(&s);
}

TEST(delegation_is_only_made_tighter)
{
    const struct agent *a;
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"boss\",\"delegation\":{\"allowAgents\":"
                    "[\"a\",\"b\"],\"maxConcurrent\":2,\"maxDepth\":1}}") ==
          OK);
    CHECK(put_self(&s, &robot, "{\"name\":\"boss\"}") == OK);
    a = stage_find(&s, NULL, "boss");
    CHECK(a->delegation.is_limited && a->delegation.allow.n == 2);
    CHECK(a->delegation.max_concurrent == 2 && a->delegation.max_depth == 1);
    CHECK(put_self(&s, &robot,
                   "{\"name\":\"boss\",\"delegation\":{\"allowAgents\":"
                   "[\"B\",\"c\"],\"maxConcurrent\":5,\"maxDepth\":0}}") == OK);
    a = stage_find(&s, NULL, "boss");
    CHECK_INT(a->delegation.allow.n, 1);
    CHECK_STR(a->delegation.allow.list[0], "B");
    CHECK(a->delegation.max_concurrent == 2 && a->delegation.max_depth == 0);
    CHECK(stage_patch(&s, &stage_anna, "boss",
                      "{\"delegation\":{\"maxDepth\":3}}") == OK);
    CHECK_INT(stage_find(&s, NULL, "boss")->delegation.max_depth, 3);
    stage_close(&s);
}

TEST(registering_itself_survives_every_fault)
{
    const char *before = "{\"name\":\"x\",\"delegation\":{\"allowAgents\":"
                         "[\"a\"]}}";
    const char *card = "{\"name\":\"x\",\"title\":\"y\",\"url\":\"echo:\","
                       "\"delegation\":{\"allowAgents\":[\"a\"]}}";
    long nth = 0;
    bool fired;

    do {
        struct stage s;
        enum err e;

        stage_open(&s);
        CHECK(stage_put(&s, &stage_anna, before) == OK);
        fault_arm(++nth);
        e = put_self(&s, &robot, card);
        fired = fault_fired();
        CHECK(fired || e == OK);
        fault_arm(0);
        if (e == ERR_OUTCOME_UNKNOWN) { /* memory is behind, and is to go */
            stage_end(&s);
            stage_leave(&s);
        } else {
            stage_close(&s);
        }
    } while (fired);
    CHECK(nth > 3);
}
