#include "learn/fold/thresholds.h"

#include <math.h>
#include <stdio.h>

#include "base/fault.h"
#include "test/t.h"

/* Above its score the default agent gets it, else the engineer. */
static const struct decision_step scored_47[] = {
    {0.47, true, {"engineer", 8}, LAYER_SEMANTIC},
    {(double)INFINITY, true, {"main", 4}, LAYER_DEFAULT},
};

static struct decision made(enum layer layer, struct str agent)
{
    static const struct candidate best = {.agent = {"engineer", 8},
                                          .score = 0.47};

    return (struct decision){.layer = layer,
                             .agent = agent,
                             .text = STR("fix it"),
                             .at_ms = 7,
                             .candidates = &best,
                             .n_candidates = 1};
}

TEST(a_threshold_keeps_up_to_the_score_and_changes_above_it)
{
    struct decision d = made(LAYER_SEMANTIC, STR("engineer"));
    struct thresholds *t = thresholds_new((double)NAN);
    const struct threshold_row *rows;
    size_t n;

    CHECK(t);
    d.verdict = VERDICT_POSITIVE;
    CHECK_INT(thresholds_add(t, &d, scored_47), OK);
    rows = thresholds_rows(t);
    CHECK(rows[0].same == 1 && rows[0].by_score == 1 && !rows[0].changed);
    CHECK(rows[47].same == 1); /* the score itself is enough */
    CHECK(rows[48].changed == 1 && rows[48].to_default == 1);
    CHECK(rows[48].by_default == 1 && !rows[48].by_score && !rows[48].same);
    CHECK(rows[100].by_hindsight[HINDSIGHT_WORSE] == 1);
    CHECK(thresholds_changes(t, &n) && n == 0);
    thresholds_free(t);
}

TEST(what_went_to_the_default_would_go_to_an_agent)
{
    struct decision d = made(LAYER_DEFAULT, STR("main"));
    struct thresholds *t = thresholds_new(0.2);
    const struct threshold_change *c;
    const struct threshold_row *rows;
    size_t n;

    CHECK(t);
    d.overridden_to = STR("engineer");
    CHECK_INT(thresholds_add(t, &d, scored_47), OK);
    rows = thresholds_rows(t);
    CHECK(rows[20].to_agent == 1 && rows[20].changed == 1);
    CHECK(rows[20].by_hindsight[HINDSIGHT_BETTER] == 1);
    CHECK(rows[60].same == 1 && !rows[60].changed);
    c = thresholds_changes(t, &n);
    CHECK_INT(n, 1);
    CHECK_STR(c->from, "main");
    CHECK_STR(c->to, "engineer");
    CHECK(c->hindsight == HINDSIGHT_BETTER && c->score == 0.47);
    CHECK(c->from_layer == LAYER_DEFAULT && c->to_layer == LAYER_SEMANTIC);
    thresholds_free(t);
}

/* By a classifier, which is asked if no score is enough. */
TEST(what_another_layer_gave_to_somebody_was_not_the_defaults)
{
    struct decision d = made(LAYER_INTENT, STR("writer"));
    struct thresholds *t = thresholds_new((double)NAN);
    const struct threshold_row *rows;

    CHECK(t);
    CHECK_INT(thresholds_add(t, &d, scored_47), OK);
    rows = thresholds_rows(t);
    CHECK(rows[20].changed == 1 && rows[20].by_score == 1);
    CHECK(!rows[20].to_agent && !rows[20].to_default && !rows[20].to_nobody);
    thresholds_free(t);
}

TEST(nobody_and_what_cannot_be_said_are_counted_apart)
{
    static const struct decision_step no_agent[] = {
        {0.3, false, {NULL, 0}, (enum layer)0},
        {(double)INFINITY, true, {NULL, 0}, (enum layer)0},
    };
    struct decision d = made(LAYER_INTENT, STR("engineer"));
    struct thresholds *t = thresholds_new((double)NAN);
    const struct threshold_row *rows;

    CHECK(t);
    CHECK_INT(thresholds_add(t, &d, no_agent), OK);
    rows = thresholds_rows(t);
    CHECK(rows[30].unsaid == 1 && !rows[30].changed && !rows[30].same);
    CHECK(rows[31].to_nobody == 1 && rows[31].changed == 1);
    CHECK(!rows[31].to_default && !rows[31].to_agent);
    thresholds_free(t);
}

TEST(as_many_changes_are_kept_as_there_is_room_for)
{
    struct decision d = made(LAYER_SEMANTIC, STR("engineer"));
    struct thresholds *t = thresholds_new(0.9);
    char longest[THRESHOLD_TEXT_MAX + 2];
    const struct threshold_change *c;
    size_t n;

    CHECK(t);
    memset(longest, 'x', sizeof(longest));
    d.text = (struct str){longest, sizeof(longest)};
    for (int i = 0; i < THRESHOLD_CHANGES; i++) {
        CHECK(!thresholds_has_enough(t));
        d.at_ms = i;
        CHECK_INT(thresholds_add(t, &d, scored_47), OK);
    }
    CHECK(thresholds_has_enough(t));
    CHECK_INT(thresholds_add(t, &d, scored_47), OK);
    c = thresholds_changes(t, &n);
    CHECK_INT(n, THRESHOLD_CHANGES);
    CHECK(c[0].at_ms == 0 && c[n - 1].at_ms == THRESHOLD_CHANGES - 1);
    CHECK_INT(c[0].text.n, THRESHOLD_TEXT_MAX);
    CHECK_INT(thresholds_rows(t)[90].changed, THRESHOLD_CHANGES + 1);
    thresholds_free(t);
}

TEST(what_each_alpha_makes_of_decisions_is_counted)
{
    struct decision d = made(LAYER_SEMANTIC, STR("engineer"));
    struct decision_other others[ALPHAS];
    struct thresholds *t = thresholds_new(0.9);
    const struct alpha_row *rows;

    CHECK(t);
    for (int i = 0; i < ALPHAS; i++)
        others[i] =
            (struct decision_other){true, BAND_CONFIDENT, STR("Engineer")};
    others[0] =
        (struct decision_other){.is_known = true, .band = BAND_OUT_OF_SCOPE};
    others[1] = (struct decision_other){true, BAND_UNSURE, STR("writer")};
    others[2] = (struct decision_other){.is_known = false};
    thresholds_add_alphas(t, &d, others);
    thresholds_add_alphas(t, &d, others);
    rows = thresholds_alphas(t);
    CHECK_INT(rows[0].by_band[BAND_OUT_OF_SCOPE], 2);
    CHECK(rows[0].changed == 2 && rows[0].to_nobody == 2);
    CHECK_INT(rows[1].by_band[BAND_UNSURE], 2);
    CHECK(rows[1].changed == 2 && !rows[1].to_nobody && !rows[1].same);
    CHECK(rows[2].unsaid == 2 && !rows[2].changed && !rows[2].same);
    CHECK_INT(rows[ALPHAS - 1].by_band[BAND_CONFIDENT], 2);
    CHECK(rows[ALPHAS - 1].same == 2 && !rows[ALPHAS - 1].changed);
    thresholds_free(t);
}

TEST(without_memory_it_says_so)
{
    struct decision d = made(LAYER_SEMANTIC, STR("engineer"));
    long nth = 0;

    do {
        struct thresholds *t;
        enum err e;

        fault_arm(++nth);
        t = thresholds_new(0.9);
        e = t ? thresholds_add(t, &d, scored_47) : ERR_NOMEM;
        CHECK(fault_fired() ? e == ERR_NOMEM : e == OK);
        thresholds_free(t);
    } while (fault_fired());
    fault_arm(0);
    CHECK(nth > 3);
}
