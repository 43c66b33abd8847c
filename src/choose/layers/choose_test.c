#include "choose/layers/choose.h"

#include "test/lib/choose_stage.h"
#include "test/t.h"

static enum err ask(const char *name)
{
    stage.m->call.executor = str_of(name);
    return stage_ask();
}

TEST(who_is_named_gets_it)
{
    STAGE("anna", "Echo");
    CHECK(ask("echo") == OK);
    CHECK_STR(stage.m->choice.agent, "Echo");
    CHECK_INT(stage.m->choice.layer, LAYER_EXPLICIT);
    CHECK_STR(stage.m->choice.reason, "the message names it as its executor");
    CHECK(stage.m->choice.n_nearest == 0);
    /* The choice outlives the agents, which are borrowed for the call. */
    CHECK(stage.m->choice.agent.p != stage.list[1].name.p);
    stage_leave();
}

TEST(nobody_named_is_no_route)
{
    STAGE("echo");
    CHECK(ask("") == ERR_NO_ROUTE);
    CHECK(stage_says("the message names no agent; name one as executor.name "
                     "(GET /api/agents lists those there are)"));
    CHECK(!stage.m->choice.agent.n && stage.m->choice.layer == LAYER_NONE);
    stage_leave();
}

TEST(a_name_that_nobody_has_offers_the_nearest)
{
    STAGE("Echo", "echo2", "ecks", "zebra");
    CHECK(ask("ecko") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says(
        "there is no agent \"ecko\"; did you mean \"Echo\", \"ecks\" "
        "or \"echo2\"?"));
    CHECK_INT(stage.m->choice.n_nearest, 3);
    CHECK_STR(stage.m->choice.nearest[0], "Echo");
    CHECK_STR(stage.m->choice.nearest[1], "ecks");
    CHECK_STR(stage.m->choice.nearest[2], "echo2");
    CHECK(!stage.m->choice.agent.n);
    CHECK_INT(stage.m->choice.layer, LAYER_NONE);
    CHECK_STR(stage.m->choice.reason, stage.m->why.text);
    stage_leave();
}

TEST(two_that_are_near_are_joined_by_or)
{
    STAGE("echo", "zebra", "zebras");
    CHECK(ask("zebrax") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("there is no agent \"zebrax\"; did you mean \"zebra\" or "
                     "\"zebras\"?"));
    stage_leave();
}

TEST(at_most_three_are_offered_by_distance_and_then_by_name)
{
    STAGE("name11", "name2", "name3", "name4", "name5", "nome");
    CHECK(ask("name") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says(
        "there is no agent \"name\"; did you mean \"name2\", \"name3\" "
        "or \"name4\"?"));
    CHECK(ask("name1") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("there is no agent \"name1\"; did you mean \"name11\", "
                     "\"name2\" or \"name3\"?"));
    stage_leave();
    STAGE("aaaa2222", "aaaa111", "aaaa11", "aaaa1", "bbbb1");
    CHECK(ask("aaaa") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("there is no agent \"aaaa\"; did you mean \"aaaa1\" or "
                     "\"aaaa11\"?"));
    stage_leave();
}

TEST(nothing_near_says_where_to_look)
{
    STAGE("echo");
    CHECK(ask("translator") == ERR_AGENT_NOT_FOUND);
    CHECK(
        stage_says("there is no agent \"translator\", nor one with a name like "
                   "it"));
    CHECK(stage.m->choice.n_nearest == 0);
    stage_leave();
    stage_of(0, NULL);
    CHECK(ask("echo") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("there is no agent \"echo\", nor any other; register one, "
                     "or put some into agents.list of the configuration"));
    stage_leave();
}

/* The longest strings fit. */
TEST(long_names_are_near_up_to_64_bytes)
{
    static char a[3][65], written[66];
    char words[512];

    for (int i = 0; i < 3; i++) {
        memset(a[i], 'n', 64);
        a[i][63] = (char)('1' + i);
    }
    memset(written, 'n', 64);
    STAGE(a[0], a[1], a[2]);
    CHECK(ask(written) == ERR_AGENT_NOT_FOUND);
    snprintf(words, sizeof(words),
             "there is no agent \"%s\"; did you mean \"%s\", \"%s\" or "
             "\"%s\"?",
             written, a[0], a[1], a[2]);
    CHECK(stage_says(words));
    written[64] = 'n';
    CHECK(ask(written) == ERR_AGENT_NOT_FOUND);
    CHECK(stage.m->choice.n_nearest == 0);
    stage_leave();
}

TEST(a_name_that_is_none_is_shown_short_and_tame)
{
    static char written[100];
    char words[512];

    STAGE("echo");
    CHECK(ask("e\x1b[31m\n\"") == ERR_AGENT_NOT_FOUND);
    CHECK(
        stage_says("there is no agent \"e?[31m?\"\", nor one with a name like "
                   "it"));
    memset(written, 'x', sizeof(written) - 1);
    memcpy(written + 63, "\xc3\xa4", 2); /* cut through a character */
    CHECK(ask(written) == ERR_AGENT_NOT_FOUND);
    snprintf(words, sizeof(words),
             "there is no agent \"%.63s...\", nor one with a name like "
             "it",
             written);
    CHECK(stage_says(words));
    stage_leave();
}

TEST(asking_again_forgets_the_last_answer)
{
    STAGE("echo");
    CHECK(ask("ecko") == ERR_AGENT_NOT_FOUND);
    CHECK(stage.m->choice.n_nearest == 1);
    CHECK(ask("echo") == OK && stage.m->choice.n_nearest == 0);
    CHECK(ask("") == ERR_NO_ROUTE && !stage.m->choice.agent.n);
    stage_leave();
}
