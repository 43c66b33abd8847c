/* Everyone in order: the best of many, of equals the first name, and what a
 * crowd of one creator gets. */
#include "test/lib/score_stage.h"

#include <math.h>

static struct score_stage s;

static const struct candidate *top(size_t i)
{
    CHECK(i < s.m->choice.n_candidates);
    return &s.m->choice.candidates[i];
}

static void ask(void)
{
    s.settings.threshold = 0;
    CHECK(score_stage_ask(&s) == OK);
}

TEST(equal_scores_go_to_the_first_name)
{
    score_stage_init(&s);
    score_stage_near(&s, "Anna", "", .5F);
    score_stage_near(&s, "ben", "", .5F);
    score_stage_near(&s, "Cleo", "", .5F);
    ask();
    CHECK_STR(s.m->choice.agent, "Anna");
    CHECK_STR(top(1)->agent, "ben");
    CHECK_STR(top(2)->agent, "Cleo");
    CHECK(s.m->choice.margin == 0);
    score_stage_fini(&s);
}

TEST(the_best_32_of_many_are_kept)
{
    static char names[SCORE_STAGE_MAX][8];

    score_stage_init(&s);
    for (int i = 0; i < SCORE_STAGE_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "a%02d", i);
        /* Each twice, in no order. */
        score_stage_near(&s, names[i], "", (float)(i * 37 % 32) / 32);
    }
    ask();
    CHECK_INT(s.m->choice.n_candidates, DECISION_CANDIDATES_MAX);
    CHECK_INT(s.m->choice.n_considered, SCORE_STAGE_MAX);
    for (size_t i = 0; i < DECISION_CANDIDATES_MAX; i++) {
        int place = top(i)->agent.p[1] * 10 + top(i)->agent.p[2] - '0' * 11;

        CHECK_INT(place * 37 % 32, 31 - (int)(i / 2));
        CHECK(place < 32 ? i % 2 == 0 : i % 2 == 1);
    }
    /* What is kept outlives the candidates. */
    CHECK(top(0)->agent.p != s.candidates[0].agent.p);
    score_stage_fini(&s);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 5e-7;
}

TEST(many_of_one_creator_from_outside_count_less)
{
    score_stage_init(&s);
    score_stage_near(&s, "honest", "anna", .50F);
    score_stage_near(&s, "x1", "eve", .52F);
    score_stage_near(&s, "x2", "Eve", .515F);
    score_stage_near(&s, "x3", "eve", .45F);
    ask();
    CHECK_STR(s.m->choice.agent, "honest");
    CHECK(top(0)->signals.discount == 0);
    CHECK_STR(top(1)->agent, "x1");
    CHECK(is_near((double)top(1)->signals.discount, .02));
    CHECK(is_near((double)top(1)->signals.semantic, .50)); /* and a bit less */
    CHECK(is_near((double)top(3)->signals.discount, .02));
    /* The candidates themselves are as they were: asked again, the same. */
    CHECK(s.candidates[1].signals.discount == 0);
    ask();
    CHECK(is_near((double)top(1)->signals.discount, .02));
    score_stage_fini(&s);
}

TEST(one_card_costs_nothing_nor_do_those_of_the_house)
{
    static const struct {
        enum agent_kind kind;
        const char *creator, *org;
        double discount;
    } rows[] = {
        {AGENT_SELF_HOSTED, "eve", "evil", .01},
        {AGENT_SELF_HOSTED, "eve", "", .01},
        {AGENT_MANAGED, "eve", "", .01},
        {AGENT_SELF_HOSTED, "dora", "cine", 0}, /* of the requester's org */
        {AGENT_SELF_HOSTED, "cleo", "", 0},     /* their own */
        {AGENT_PLATFORM, "eve", "", 0},         /* the admins' */
        {AGENT_SELF_HOSTED, "", "", 0},         /* the configuration's */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        score_stage_init(&s);
        for (int k = 0; k < 2; k++) {
            score_stage_near(&s, k ? "b" : "a", rows[i].creator, .5F);
            s.list[k].kind = rows[i].kind;
            s.list[k].org = str_of(rows[i].org);
        }
        score_stage_near(&s, "c", "ben", .5F); /* one of his */
        ask();
        for (size_t k = 0; k < 3; k++)
            CHECK(is_near((double)top(k)->signals.discount,
                          str_eq(top(k)->agent, STR("c")) ? 0
                                                          : rows[i].discount));
        score_stage_fini(&s);
    }
}

TEST(who_has_done_well_is_no_crowd)
{
    static const struct {
        float performance;
        double discount;
    } rows[] = {{.2F, .01}, {.5F, .01}, {.6F, .005}, {.7F, 0}, {1, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        score_stage_init(&s);
        score_stage_near(&s, "a", "eve", .5F)->signals.performance =
            rows[i].performance;
        score_stage_near(&s, "b", "eve", .5F)->signals.performance =
            rows[i].performance;
        ask();
        CHECK(is_near((double)top(0)->signals.discount, rows[i].discount));
        score_stage_fini(&s);
    }
}

/* Those beyond the tenth place would else be the first in the end. */
TEST(a_crowd_cannot_hide_behind_the_tenth_place)
{
    static char names[30][8];

    score_stage_init(&s);
    score_stage_near(&s, "honest", "anna", .46F);
    for (int i = 0; i < 30; i++) {
        snprintf(names[i], sizeof(names[i]), "x%02d", i);
        score_stage_near(&s, names[i], "eve", .5F);
    }
    ask();
    CHECK_STR(s.m->choice.agent, "honest");
    CHECK(is_near((double)top(1)->signals.discount, .09));
    CHECK(is_near((double)top(30)->signals.discount, .09));
    score_stage_fini(&s);
}

static bool is_not_dead(void *ctx, const struct agent *a)
{
    ++*(int *)ctx;
    return a->name.p[2] != 'x';
}

static bool is_there_all(void *ctx, const struct agent *a)
{
    (void)a;
    ++*(int *)ctx;
    return true;
}

TEST(who_is_dead_is_not_among_the_best_and_who_is_far_is_not_asked)
{
    static char names[SCORE_STAGE_MAX][8];
    int n_asked = 0;

    score_stage_init(&s);
    for (int i = 0; i < SCORE_STAGE_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "%02d%c", i, i % 2 ? 'x' : 'a');
        score_stage_near(&s, names[i], "", i < 40 ? .9F : .1F);
    }
    s.m->known.is_there = is_not_dead;
    s.m->known.is_there_ctx = &n_asked;
    ask();
    CHECK_INT(s.m->choice.n_candidates, 32);
    for (size_t i = 0; i < 32; i++)
        CHECK(top(i)->agent.p[2] == 'a');
    /* The last, behind the 32, was not asked about and counts. */
    CHECK_INT(s.m->choice.n_considered, SCORE_STAGE_MAX - 31);
    n_asked = 0;
    s.m->known.is_there = is_there_all;
    ask(); /* the first 32 are there, and the rest is no better */
    CHECK_INT(n_asked, 32);
    score_stage_fini(&s);
}

TEST(who_is_dead_is_not_counted)
{
    static const char *const names[] = {"00a", "01x", "02x", "03x",
                                        "04a", "05x", "06x"};
    int n_asked = 0;

    score_stage_init(&s);
    for (int i = 0; i < 7; i++)
        score_stage_near(&s, names[i], "", .9F - (float)i / 10);
    s.m->known.is_there = is_not_dead;
    s.m->known.is_there_ctx = &n_asked;
    ask();
    CHECK_INT(s.m->choice.n_candidates, 2);
    CHECK_INT(s.m->choice.n_considered, 2);
    CHECK(strstr(arena_strdup(&s.m->arena, s.m->choice.reason), "best of 2,"));
    score_stage_fini(&s);
}

TEST(what_was_taken_off_then_is_not_taken_off_again)
{
    score_stage_init(&s);
    score_stage_near(&s, "a", "eve", .5F)->signals.discount = .03F;
    score_stage_near(&s, "b", "eve", .5F)->signals.discount = .03F;
    s.m->known.is_recorded = true;
    ask();
    CHECK(is_near((double)top(0)->signals.discount, .03));
    score_stage_fini(&s);
}
