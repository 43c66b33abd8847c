#include "choose/choose.h"

#include "base/fault.h"
#include "test/t.h"

/* Agents of these names, in order; at most a few. */
struct stage {
    struct agent list[8];
    const struct agent *ptrs[8];
    char lower[8][AGENT_NAME_MAX];
    struct map by_name;
    struct agents all;
    struct msg *m;
};

static struct stage stage;

static void stage_of(size_t n, const char *const *names)
{
    const uint64_t seed[2] = {1, 2};
    struct stage *s = &stage;

    map_init(&s->by_name, 8, seed);
    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(names[i]);

        s->list[i] = (struct agent){.name = name, .url = STR("echo:")};
        s->ptrs[i] = &s->list[i];
        for (size_t k = 0; k < name.n; k++)
            s->lower[i][k] = str_lower(name.p[k]);
        CHECK(map_put(&s->by_name, (struct str){s->lower[i], name.n},
                      &s->list[i]) == OK);
    }
    s->all = (struct agents){s->ptrs, n, &s->by_name};
    s->m = msg_new(&(struct caller){0}, 5);
    CHECK(s->m);
}

#define STAGE(...)                                                         \
    stage_of(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
             (const char *[]){__VA_ARGS__})

static enum err ask(const char *name)
{
    struct choose_settings settings = choose_defaults();

    settings.is_off[LAYER_SEMANTIC] = true;
    stage.m->call.executor = str_of(name);
    return choose_agent(&(struct choose_view){&settings, &stage.all,
                                              &(struct eyes){.sees_all = true}},
                        stage.m);
}

static void leave(void)
{
    msg_free(stage.m);
    map_fini(&stage.by_name);
}

static bool says(const char *words)
{
    if (strcmp(stage.m->why.text, words) == 0)
        return true;
    fprintf(stderr, "wanted: %s\ngot:    %s\n", words, stage.m->why.text);
    return false;
}

TEST(who_is_named_gets_it)
{
    STAGE("anna", "Echo");
    CHECK(ask("echo") == OK);
    CHECK_STR(stage.m->choice.agent, "Echo");
    CHECK_INT(stage.m->choice.layer, LAYER_EXPLICIT);
    CHECK_STR(stage.m->choice.reason, "the message names it as its executor");
    CHECK(stage.m->choice.n_nearest == 0);
    /* It outlives the agents, which are borrowed for the call. */
    CHECK(stage.m->choice.agent.p != stage.list[1].name.p);
    leave();
}

TEST(nobody_named_is_no_route)
{
    STAGE("echo");
    CHECK(ask("") == ERR_NO_ROUTE);
    CHECK(says("nobody is named to take this message; name an agent as "
               "executor.name (GET /api/agents lists those there are)"));
    CHECK(!stage.m->choice.agent.n && !stage.m->choice.layer);
    leave();
}

TEST(a_name_that_nobody_has_offers_the_nearest)
{
    STAGE("Echo", "echo2", "ecks", "zebra");
    CHECK(ask("ecko") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"ecko\"; did you mean \"Echo\", \"ecks\" "
               "or \"echo2\"?"));
    CHECK_INT(stage.m->choice.n_nearest, 3);
    CHECK_STR(stage.m->choice.nearest[0], "Echo");
    CHECK_STR(stage.m->choice.nearest[1], "ecks");
    CHECK_STR(stage.m->choice.nearest[2], "echo2");
    CHECK(!stage.m->choice.agent.n && !stage.m->choice.layer);
    leave();
}

TEST(two_that_are_near_are_joined_by_or)
{
    STAGE("echo", "zebra", "zebras");
    CHECK(ask("zebrax") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"zebrax\"; did you mean \"zebra\" or "
               "\"zebras\"?"));
    leave();
}

TEST(at_most_three_are_offered_by_distance_and_then_by_name)
{
    STAGE("name11", "name2", "name3", "name4", "name5", "nome");
    CHECK(ask("name") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"name\"; did you mean \"name2\", \"name3\" "
               "or \"name4\"?"));
    CHECK(ask("name1") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"name1\"; did you mean \"name11\", "
               "\"name2\" or \"name3\"?"));
    leave();
    STAGE("aaaa2222", "aaaa111", "aaaa11", "aaaa1", "bbbb1");
    CHECK(ask("aaaa") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"aaaa\"; did you mean \"aaaa1\" or "
               "\"aaaa11\"?"));
    leave();
}

TEST(nothing_near_says_where_to_look)
{
    STAGE("echo");
    CHECK(ask("translator") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"translator\", nor one with a name like "
               "it"));
    CHECK(stage.m->choice.n_nearest == 0);
    leave();
    stage_of(0, NULL);
    CHECK(ask("echo") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"echo\", nor any other; register one, "
               "or put some into agents.list of the configuration"));
    leave();
}

/* The longest words there can be fit. */
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
    CHECK(says(words));
    written[64] = 'n';
    CHECK(ask(written) == ERR_AGENT_NOT_FOUND);
    CHECK(stage.m->choice.n_nearest == 0);
    leave();
}

TEST(a_name_that_is_none_is_shown_short_and_tame)
{
    static char written[100];
    char words[512];

    STAGE("echo");
    CHECK(ask("e\x1b[31m\n\"") == ERR_AGENT_NOT_FOUND);
    CHECK(says("there is no agent \"e?[31m?\"\", nor one with a name like "
               "it"));
    memset(written, 'x', sizeof(written) - 1);
    memcpy(written + 63, "\xc3\xa4", 2); /* cut through a character */
    CHECK(ask(written) == ERR_AGENT_NOT_FOUND);
    snprintf(words, sizeof(words),
             "there is no agent \"%.63s...\", nor one with a name like "
             "it",
             written);
    CHECK(says(words));
    leave();
}

TEST(asking_again_forgets_the_last_answer)
{
    STAGE("echo");
    CHECK(ask("ecko") == ERR_AGENT_NOT_FOUND);
    CHECK(stage.m->choice.n_nearest == 1);
    CHECK(ask("echo") == OK && stage.m->choice.n_nearest == 0);
    CHECK(ask("") == ERR_NO_ROUTE && !stage.m->choice.agent.n);
    leave();
}

TEST(choosing_survives_every_fault)
{
    static const char *const names[] = {"echo", "ecko"};

    for (size_t i = 0; i < 2; i++) {
        bool has_fired = true;

        for (long nth = 1; has_fired; nth++) {
            enum err e, right = i ? ERR_AGENT_NOT_FOUND : OK;

            STAGE("echo", "echo2");
            fault_arm(nth);
            e = ask(names[i]);
            has_fired = fault_fired();
            fault_arm(0);
            CHECK(has_fired ? e == ERR_NOMEM : e == right);
            CHECK(e != ERR_NOMEM || !stage.m->choice.n_nearest);
            CHECK(e == OK || !stage.m->choice.agent.n);
            CHECK(has_fired || nth > 1);
            leave();
        }
    }
}
