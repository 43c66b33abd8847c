#include "lab/eval_score.h"

#include <math.h>

#include "base/fault.h"
#include "test/t.h"

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

#define CHECK_NEAR(a, b)                                    \
    do {                                                    \
        double t_a = (a), t_b = (b);                        \
        if (!is_near(t_a, t_b))                             \
            T_FAIL("%s is %.12g, not %.12g", #a, t_a, t_b); \
    } while (0)

/* A query that was answered with `chosen`, then `second`. */
static struct eval_outcome asked(const uint32_t *expected, size_t n,
                                 uint32_t chosen, uint32_t second, float score)
{
    struct eval_outcome o = {expected, n, {.n = 2}};

    o.ranked.agents[0] = chosen;
    o.ranked.agents[1] = second;
    o.ranked.scores[0] = score;
    o.ranked.scores[1] = score / 2;
    return o;
}

static const uint32_t names[] = {0, 1, 2, 3};

TEST(the_best_ten_come_in_order)
{
    static const float scores[] = {0.1F, 0.7F,  -0.5F, 0.3F,  0.9F,  0.2F,
                                   0.8F, 0.05F, 0.04F, 0.03F, 0.02F, 0.01F};
    static const uint32_t expected[] = {4, 6, 1, 3, 5, 0, 7, 8, 9, 10};
    struct eval_ranked r;

    eval_rank(scores, 12, &r);
    CHECK_INT(r.n, 10);
    for (size_t i = 0; i < 10; i++) {
        CHECK_INT(r.agents[i], expected[i]);
        CHECK(r.scores[i] == scores[expected[i]]);
    }
}

TEST(equal_scores_go_to_the_name_that_sorts_first)
{
    static const float scores[] = {0.2F, 0.5F, 0.5F, 0.2F, 0.5F, 0.2F, 0.2F};
    static const uint32_t expected[] = {1, 2, 4, 0, 3};
    struct eval_ranked r;

    eval_rank(scores, 7, &r);
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(r.agents[i], expected[i]);
}

TEST(a_score_that_is_no_number_is_zero)
{
    static const float scores[] = {NAN, 0.1F, INFINITY, -0.1F};
    static const uint32_t expected[] = {1, 0, 2, 3};
    struct eval_ranked r;

    eval_rank(scores, 4, &r);
    CHECK_INT(r.n, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(r.agents[i], expected[i]);
    CHECK(r.scores[1] == 0 && r.scores[2] == 0);
    eval_rank(scores, 0, &r);
    CHECK_INT(r.n, 0);
}

TEST(any_ranking_agrees_with_sorting_everything)
{
    uint64_t state = 1;

    for (int round = 0; round < 2000; round++) {
        float scores[12];
        struct eval_ranked r;
        size_t n = (size_t)round % 13;

        for (size_t i = 0; i < n; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            scores[i] = (float)(state >> 61);
        }
        eval_rank(scores, n, &r);
        CHECK_INT(r.n, n < EVAL_TOP ? n : EVAL_TOP);
        for (size_t k = 0; k < r.n; k++) {
            size_t n_before = 0;

            for (size_t i = 0; i < n; i++)
                n_before +=
                    scores[i] > scores[r.agents[k]] ||
                    (scores[i] == scores[r.agents[k]] && i < r.agents[k]);
            CHECK_INT(n_before, k);
        }
    }
}

/* By hand. Agents 0, 1, 2; expected -> chosen:
 *   0 -> 0, 0 -> 0, 0 -> 1, 1 -> 1, 2 -> 1 (2 is second)
 * F1: agent 0: 2*2/(4+0+1) = 0.8; agent 1: 2*1/(2+2+0) = 0.5; agent 2: 0.
 * Agent 3 was neither right nor chosen. */
TEST(one_label_a_query)
{
    struct eval_outcome all[] = {
        asked(&names[0], 1, 0, 1, 0.9F), asked(&names[0], 1, 0, 1, 0.8F),
        asked(&names[0], 1, 1, 2, 0.7F), asked(&names[1], 1, 1, 0, 0.6F),
        asked(&names[2], 1, 1, 2, 0.5F),
    };
    struct eval_score s;

    CHECK(eval_score(all, 5, 4, &s) == OK);
    CHECK_INT(s.n, 5);
    CHECK_INT(s.n_out, 0);
    CHECK_NEAR(eval_accuracy(&s, 1), 3 / 5.0);
    CHECK_NEAR(eval_accuracy(&s, 2), 4 / 5.0);
    CHECK_NEAR(eval_accuracy(&s, 3), 4 / 5.0);
    CHECK_NEAR(eval_accuracy(&s, 5), 4 / 5.0);
    CHECK_NEAR(eval_f1(&s.tallies[0]), 0.8);
    CHECK_NEAR(eval_f1(&s.tallies[1]), 0.5);
    CHECK_NEAR(eval_f1(&s.tallies[2]), 0);
    CHECK(isnan(eval_f1(&s.tallies[3])));
    CHECK_NEAR(s.macro_f1, 1.3 / 3);
    CHECK(isnan(s.auroc) && isnan(s.out_f1) && isnan(s.scoped_right));
    CHECK_INT(s.n_mixups, 2);
    CHECK_INT(s.mixups[0].expected, 0);
    CHECK_INT(s.mixups[0].chosen, 1);
    CHECK_INT(s.mixups[0].example, 2);
    CHECK_INT(s.mixups[1].expected, 2);
    eval_score_fini(&s);
}

/* A query with right agents in the places `right`, from 1. */
static struct eval_outcome standing(const uint32_t *expected, size_t n,
                                    const unsigned *right)
{
    struct eval_outcome o = {expected, n, {.n = EVAL_TOP}};

    for (unsigned k = 0; k < EVAL_TOP; k++) {
        o.ranked.agents[k] = 10 + k; /* these agents are wrong */
        o.ranked.scores[k] = 1 - 0.1F * (float)k;
    }
    for (size_t i = 0; i < n; i++)
        if (right[i])
            o.ranked.agents[right[i] - 1] = expected[i];
    return o;
}

/* By hand. One right agent each, in places 1, 3, 10, and nowhere:
 *   recall at 1: 1/4; at 3 and 5: 2/4; at 10: 3/4
 *   worth of place 3: 1/log2 4 = 1/2; of place 10: 1/log2 11 = .28906483
 *   NDCG at 1: 1/4; at 3 and 5: 1.5/4; at 10: 1.78906483/4
 *   MRR: (1 + 1/3 + 1/10)/4 */
TEST(places_of_one_right_agent)
{
    struct eval_outcome all[] = {
        standing(&names[0], 1, (unsigned[]){1}),
        standing(&names[1], 1, (unsigned[]){3}),
        standing(&names[2], 1, (unsigned[]){10}),
        standing(&names[3], 1, (unsigned[]){0}),
    };
    struct eval_score s;

    CHECK(eval_score(all, 4, 20, &s) == OK);
    CHECK_NEAR(s.recall_at[0], 0.25);
    CHECK_NEAR(s.recall_at[1], 0.25);
    CHECK_NEAR(s.recall_at[2], 0.5);
    CHECK_NEAR(s.recall_at[4], 0.5);
    CHECK_NEAR(s.recall_at[8], 0.5);
    CHECK_NEAR(s.recall_at[9], 0.75);
    CHECK_NEAR(s.ndcg_at[0], 0.25);
    CHECK_NEAR(s.ndcg_at[2], 0.375);
    CHECK_NEAR(s.ndcg_at[4], 0.375);
    CHECK(fabs(s.ndcg_at[9] - 1.78906483 / 4) < 1e-8);
    CHECK_NEAR(s.mrr, (1 + 1 / 3.0 + 0.1) / 4);
    for (unsigned k = 1; k <= EVAL_TOP; k++)
        CHECK_NEAR(s.recall_at[k - 1], eval_accuracy(&s, k));
    eval_score_fini(&s);
}

/* By hand. Three right agents in places 2, 4 and nowhere; worth of the places:
 * 1, .63092975, .5, .43067656. The best order is worth 1 at 1, 1.63092975 at
 * 2, and 2.13092975 from 3 on.
 *   recall at 1: 0; at 3: 1/3; at 5: 2/3
 *   NDCG at 1: 0; at 3: .63092975/2.13092975; at 5 and 10:
 *   1.06160631/2.13092975
 *   MRR 1/2
 * And a second query with two right ones in places 1 and 2: all of them 1, but
 * recall at 1, which is 1/2. */
TEST(places_of_several_right_agents)
{
    struct eval_outcome all[] = {
        standing(names, 3, (unsigned[]){4, 0, 2}),
        standing(names, 2, (unsigned[]){2, 1}),
    };
    struct eval_score s;

    CHECK(eval_score(all, 2, 20, &s) == OK);
    CHECK_NEAR(s.recall_at[0], 0.25);
    CHECK_NEAR(s.recall_at[2], (1 / 3.0 + 1) / 2);
    CHECK_NEAR(s.recall_at[4], (2 / 3.0 + 1) / 2);
    CHECK_NEAR(s.recall_at[9], (2 / 3.0 + 1) / 2);
    CHECK_NEAR(s.ndcg_at[0], 0.5);
    CHECK(fabs(s.ndcg_at[2] - (0.63092975 / 2.13092975 + 1) / 2) < 1e-8);
    CHECK(fabs(s.ndcg_at[4] - (1.06160631 / 2.13092975 + 1) / 2) < 1e-8);
    CHECK(fabs(s.ndcg_at[9] - s.ndcg_at[4]) < 1e-12);
    CHECK_NEAR(s.mrr, 0.75);
    eval_score_fini(&s);
}

/* Any named agent is right; a miss is shared. {0,1} -> 1 right for 1;
 * {0,1} -> 2: half a miss each for 0 and 1, and 2 took it.
 * F1: 0: 0/(0+0+.5) = 0; 1: 2/(2+0+.5) = .8; 2: 0/(0+1) = 0. */
TEST(more_than_one_may_be_right)
{
    struct eval_outcome all[] = {asked(names, 2, 1, 2, 0.9F),
                                 asked(names, 2, 2, 0, 0.8F)};
    struct eval_score s;

    CHECK(eval_score(all, 2, 3, &s) == OK);
    CHECK_NEAR(eval_accuracy(&s, 1), 0.5);
    CHECK_NEAR(eval_accuracy(&s, 2), 1);
    CHECK_NEAR(eval_f1(&s.tallies[1]), 0.8);
    CHECK_NEAR(s.macro_f1, 0.8 / 3);
    CHECK_INT(s.n_mixups, 1);
    CHECK_INT(s.mixups[0].expected, 0);
    CHECK_INT(s.mixups[0].chosen, 2);
    eval_score_fini(&s);
}

TEST(the_most_frequent_mixup_comes_first)
{
    struct eval_outcome all[] = {
        asked(&names[0], 1, 1, 0, 0.9F),
        asked(&names[2], 1, 1, 0, 0.9F),
        asked(&names[0], 1, 3, 0, 0.9F),
        asked(&names[2], 1, 1, 0, 0.9F),
    };
    struct eval_score s;

    CHECK(eval_score(all, 4, 4, &s) == OK);
    CHECK_INT(s.n_mixups, 3);
    CHECK_INT(s.mixups[0].expected, 2);
    CHECK_INT(s.mixups[0].n, 2);
    CHECK_INT(s.mixups[0].example, 1);
    CHECK_INT(s.mixups[1].chosen, 1);
    CHECK_INT(s.mixups[2].chosen, 3);
    eval_score_fini(&s);
}

TEST(a_text_without_a_vector_is_wrong_and_chose_nobody)
{
    struct eval_outcome all[] = {{&names[0], 1, {.n = 0}},
                                 asked(&names[1], 1, 1, 0, 0.9F)};
    struct eval_score s;

    CHECK(eval_score(all, 2, 2, &s) == OK);
    CHECK_NEAR(eval_accuracy(&s, 5), 0.5);
    CHECK_NEAR(s.ndcg_at[9], 0.5);
    CHECK_NEAR(s.mrr, 0.5);
    CHECK_NEAR(s.macro_f1, 0.5);
    CHECK_INT(s.n_mixups, 1);
    CHECK(s.mixups[0].chosen == EVAL_NOBODY);
    CHECK(eval_best(&all[0]) == 0);
    CHECK_INT(eval_place(&all[0]), 0);
    eval_score_fini(&s);
}

/* In scope .9 (right), .6 (wrong), .3 (right); out of scope .5, .3, .1.
 * AUROC: .9 beats 3, .6 beats 3, .3 beats 1 and ties 1: 7.5 of 9.
 * Thresholds: above .1: F1 = 2/(1+0+3) = .5; above .3: 2*2/(2+1+3) = 2/3;
 * above .5: 2*3/(3+1+3) = 6/7; above .6: 6/8. So above .5, halfway to .6;
 * there 3 out of scope and .9 are right: 4 of 6. */
TEST(scope_is_judged_by_the_best_score)
{
    struct eval_outcome all[] = {
        asked(&names[0], 1, 0, 1, 0.9F), asked(&names[0], 1, 1, 0, 0.6F),
        asked(&names[1], 1, 1, 0, 0.3F), asked(NULL, 0, 1, 0, 0.5F),
        asked(NULL, 0, 1, 0, 0.3F),      asked(NULL, 0, 0, 1, 0.1F),
    };
    struct eval_score s;

    CHECK(eval_score(all, 6, 2, &s) == OK);
    CHECK_INT(s.n, 3);
    CHECK_INT(s.n_out, 3);
    CHECK_NEAR(s.auroc, 7.5 / 9);
    CHECK_NEAR(s.out_f1, 6 / 7.0);
    CHECK(s.threshold > 0.5F && s.threshold < 0.6F);
    CHECK_NEAR(s.scoped_right, 4 / 6.0);
    eval_score_fini(&s);
}

TEST(scores_that_are_all_equal_tell_nothing_of_scope)
{
    struct eval_outcome all[] = {asked(&names[0], 1, 0, 1, 0.5F),
                                 asked(NULL, 0, 0, 1, 0.5F)};
    struct eval_score s;

    CHECK(eval_score(all, 2, 2, &s) == OK);
    CHECK_NEAR(s.auroc, 0.5);
    CHECK_NEAR(s.out_f1, 2 / 3.0);
    CHECK(s.threshold > 0.5F);
    CHECK_NEAR(s.scoped_right, 0.5);
    eval_score_fini(&s);
}

TEST(without_queries_there_are_no_figures)
{
    struct eval_outcome out = asked(NULL, 0, 0, 1, 0.5F);
    struct eval_score s;

    CHECK(eval_score(NULL, 0, 2, &s) == OK);
    CHECK(isnan(eval_accuracy(&s, 1)) && isnan(s.macro_f1));
    CHECK(isnan(s.recall_at[9]) && isnan(s.ndcg_at[0]) && isnan(s.mrr));
    eval_score_fini(&s);
    CHECK(eval_score(&out, 1, 2, &s) == OK);
    CHECK_INT(s.n_out, 1);
    CHECK(isnan(eval_accuracy(&s, 1)) && isnan(s.auroc));
    eval_score_fini(&s);
}

TEST(scoring_survives_every_fault)
{
    struct eval_outcome one = asked(&names[0], 1, 0, 1, 0.9F);
    long nth = 0;

    do {
        struct eval_score s;
        enum err e;

        fault_arm(++nth);
        e = eval_score(&one, 1, 2, &s);
        CHECK(fault_fired() ? e == ERR_NOMEM && !s.tallies : e == OK);
        eval_score_fini(&s);
    } while (fault_fired());
}
