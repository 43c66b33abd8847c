/* The order of candidates: the best of many, the first name of equals, and the
 * discount on a crowd of one creator. */
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

/* Nothing supports any of them; three are offered, so the order counts. */
TEST(equal_scores_of_nothing_go_to_the_nearer_card)
{
    score_stage_init(&s);
    s.settings.is_centred = true;
    score_stage_near(&s, "Anna", "", .10F);
    score_stage_near(&s, "ben", "", .15F);
    score_stage_near(&s, "Cleo", "", .15F);
    score_stage_near(&s, "Dora", "", .19F);
    for (size_t i = 0; i < 4; i++) {
        s.candidates[i].level = (struct card_level){.mid = .2F, .high = .4F};
        s.candidates[i].signals.text = 0;
    }
    s.candidates[3].level.high = -1; /* not known yet */
    s.candidates[3].signals.cosine = 0;
    ask();
    CHECK(top(0)->score <= top(3)->score && top(0)->score >= top(3)->score);
    CHECK_STR(top(0)->agent, "ben");
    CHECK_STR(top(1)->agent, "Cleo");
    CHECK_STR(top(2)->agent, "Anna");
    CHECK_STR(top(3)->agent, "Dora");
    score_stage_fini(&s);
}

TEST(the_best_32_of_many_are_kept)
{
    static char names[SCORE_STAGE_MAX][8];

    score_stage_init(&s);
    for (int i = 0; i < SCORE_STAGE_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "a%02d", i);
        /* Each twice, in random order. */
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
    /* The kept strings outlive the candidates. */
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
    /* The candidates did not change: asked again, the result is the same. */
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

/* Otherwise those beyond the tenth place would come first in the end. */
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
    /* The last, behind the 32, was not checked and counts. */
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

/* The only agent of a fleet gets every message; the last one that is left of a
 * fleet during an outage does not. */
TEST(dead_agents_still_count_for_the_cutoffs)
{
    for (int n_dead = 0; n_dead < 4; n_dead++) {
        static const char *const names[] = {"00a", "01x", "02x", "03x"};
        int n_asked = 0;

        score_stage_init(&s);
        for (int i = 0; i <= n_dead; i++) {
            struct candidate *c = score_stage_near(&s, names[i], "cleo", .05F);

            c->is_trusted = true;
            c->level = (struct card_level){.1F, .3F};
        }
        s.m->known.is_there = is_not_dead;
        s.m->known.is_there_ctx = &n_asked;
        s.settings.is_auto = s.settings.is_centred = true;
        CHECK_INT(score_stage_ask(&s), n_dead ? ERR_NO_ROUTE : OK);
        CHECK_INT(s.m->choice.n_candidates, 1);
        CHECK_INT(s.m->choice.band,
                  n_dead ? BAND_OUT_OF_SCOPE : BAND_CONFIDENT);
        score_stage_fini(&s);
    }
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

TEST(a_correction_of_this_very_text_goes_before_every_score)
{
    score_stage_init(&s);
    score_stage_near(&s, "anna", "", .9F);
    score_stage_near(&s, "ben", "", .8F);
    score_stage_near(&s, "zoe", "", .01F);
    s.candidates[2].is_taught = true;
    s.settings.threshold = 0.5;
    CHECK(score_stage_ask(&s) == OK);
    CHECK_STR(s.m->choice.agent, "zoe");
    CHECK_STR(s.m->choice.reason,
              "a correction says that this very text is for it");
    CHECK(s.m->choice.is_by_example && s.m->choice.band == BAND_CONFIDENT);
    CHECK(s.m->choice.margin == 0);
    CHECK_STR(top(1)->agent, "anna");
    score_stage_fini(&s);
}

TEST(an_example_decided_where_another_would_have_won_without_it)
{
    for (int i = 0; i < 2; i++) {
        score_stage_init(&s);
        score_stage_near(&s, "anna", "", .50F);
        score_stage_near(&s, "ben", "", i ? .30F : .49F);
        s.candidates[0].signals.learned = i ? .5F : 0;
        s.candidates[1].signals.learned = i ? .1F : .5F;
        ask();
        CHECK_STR(s.m->choice.agent, i ? "anna" : "ben");
        CHECK_INT(s.m->choice.is_by_example, !i);
        CHECK_INT(memmem(s.m->choice.reason.p, s.m->choice.reason.n,
                         "corrections of similar texts", 28) != NULL,
                  !i);
        score_stage_fini(&s);
    }
}

/* Strangers. */

static const struct candidate *place_of(const char *name)
{
    for (size_t i = 0; i < s.m->choice.n_candidates; i++)
        if (str_eq(top(i)->agent, str_of(name)))
            return top(i);
    return NULL;
}

TEST(where_scores_are_close_those_that_are_trusted_come_first)
{
    for (int i = 0; i < 2; i++) {
        score_stage_init(&s);
        score_stage_near(&s, "own", "cleo", .50F)->is_trusted = true;
        score_stage_near(&s, "strange", "eve", i ? .54F : .52F);
        ask();
        CHECK_STR(top(0)->agent, i ? "strange" : "own");
        CHECK(is_near((double)place_of("strange")->signals.discount, .03));
        CHECK(place_of("own")->signals.discount == 0);
        score_stage_fini(&s);
    }
    /* Among strangers only, there is no discount. */
    score_stage_init(&s);
    score_stage_near(&s, "other", "ben", .50F);
    score_stage_near(&s, "strange", "eve", .52F);
    ask();
    CHECK_STR(top(0)->agent, "strange");
    CHECK(top(0)->signals.discount == 0);
    score_stage_fini(&s);
}

TEST(nothing_is_taken_off_an_agent_that_is_trusted_or_taught)
{
    for (int i = 0; i < 3; i++) {
        struct candidate *c;

        score_stage_init(&s);
        score_stage_near(&s, "own", "cleo", .50F)->is_trusted = true;
        c = score_stage_near(&s, "rated", "eve", .52F);
        c->signals.discount = .1F;
        c->is_trusted = i == 1;
        c->is_taught = i == 2;
        ask();
        CHECK_STR(top(0)->agent, i ? "rated" : "own");
        CHECK(is_near((double)place_of("rated")->signals.discount, i ? 0 : .1));
        score_stage_fini(&s);
    }
}

TEST(strangers_that_had_their_share_come_behind_and_are_sure_of_nothing)
{
    for (int is_spent = 0; is_spent < 2; is_spent++) {
        struct candidate *c;

        score_stage_init(&s);
        c = score_stage_near(&s, "own", "cleo", .2F);
        c->is_trusted = true;
        c->level = (struct card_level){.1F, .3F};
        c = score_stage_near(&s, "strange", "eve", .9F);
        c->level = (struct card_level){.1F, .2F};
        s.settings.is_auto = true;
        s.m->known.is_share_spent = is_spent;
        ask();
        CHECK_STR(top(0)->agent, is_spent ? "own" : "strange");
        c = (struct candidate *)place_of("strange");
        CHECK((c->signals.semantic >= c->floor) == !is_spent);
        CHECK_STR(s.m->choice.agent, is_spent ? "own" : "strange");
        /* The discount is in the record and does not apply twice. */
        memcpy(s.candidates, s.m->choice.candidates, 2 * sizeof(*c));
        s.m->choice.candidates = NULL;
        s.m->known.is_recorded = true;
        ask();
        CHECK_STR(top(0)->agent, is_spent ? "own" : "strange");
        score_stage_fini(&s);
    }
}

static double score_with_keyword(bool is_half, bool is_spent)
{
    struct candidate *c;
    double score;

    score_stage_init(&s);
    score_stage_near(&s, "own", "cleo", .50F)->is_trusted = true;
    c = score_stage_near(&s, "strange", "eve", .40F);
    c->keyword = STR("laravel");
    c->is_half = is_half;
    s.m->known.is_share_spent = is_spent;
    ask();
    c = (struct candidate *)place_of("strange");
    CHECK((c->keyword.n > 0) == !is_spent);
    CHECK(is_near((double)c->signals.keyword, is_spent ? 0 : is_half ? .5 : 1));
    score =
        c->score - s.settings.weights.semantic * (double)c->signals.semantic;
    score_stage_fini(&s);
    return score;
}

TEST(the_keyword_of_a_stranger_counts_half_and_not_at_all_behind_its_share)
{
    double none = score_with_keyword(false, true);

    CHECK(is_near(score_with_keyword(true, true), none));
    CHECK(is_near(score_with_keyword(true, false), none + .075));
    CHECK(is_near(score_with_keyword(false, false), none + .15));
}

TEST(a_crowd_of_strangers_leaves_the_trusted_their_places)
{
    static char names[SCORE_STAGE_MAX][8];
    size_t n_trusted = 0;

    score_stage_init(&s);
    for (int i = 0; i < SCORE_STAGE_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "a%02d", i);
        score_stage_near(&s, names[i], i % 4 ? "eve" : "cleo",
                         i % 4 ? .9F : .1F)
            ->is_trusted = i % 4 == 0;
    }
    ask();
    CHECK_INT(s.m->choice.n_candidates, DECISION_CANDIDATES_MAX);
    for (size_t i = 0; i < DECISION_CANDIDATES_MAX; i++)
        n_trusted += top(i)->is_trusted;
    CHECK_INT(n_trusted, 8);
    score_stage_fini(&s);
}

TEST(the_seed_takes_nothing_off_anyone)
{
    score_stage_init(&s);
    s.settings.is_seed = true;
    s.m->known.is_share_spent = true;
    score_stage_near(&s, "own", "cleo", .50F)->is_trusted = true;
    score_stage_near(&s, "x1", "eve", .51F)->signals.discount = .1F;
    score_stage_near(&s, "x2", "eve", .505F)->signals.discount = .1F;
    ask();
    CHECK_STR(top(0)->agent, "x1");
    CHECK_STR(top(1)->agent, "x2");
    CHECK(top(0)->signals.discount == 0 && top(1)->signals.discount == 0);
    score_stage_fini(&s);
}
