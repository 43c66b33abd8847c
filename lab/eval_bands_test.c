#include "lab/eval_bands.h"

#include <math.h>

#include "test/t.h"

static const uint32_t names[] = {0, 1, 2, 3};

/* A query for agent 0 whose candidates are `first`, `second` and `third`. */
static struct eval_outcome asked(uint32_t first, uint32_t second,
                                 uint32_t third)
{
    struct eval_outcome o = {names, 1, {.n = 3}};

    o.ranked.agents[0] = first;
    o.ranked.agents[1] = second;
    o.ranked.agents[2] = third;
    return o;
}

static struct eval_decided confident(uint32_t agent)
{
    return (struct eval_decided){BAND_CONFIDENT, agent, false};
}

static struct eval_decided unsure(uint32_t agent)
{
    return (struct eval_decided){BAND_UNSURE, agent, agent != EVAL_NOBODY};
}

static const struct eval_decided refused = {BAND_OUT_OF_SCOPE, EVAL_NOBODY,
                                            false};

static void count(struct eval_bands *b, struct eval_outcome o,
                  struct eval_decided d)
{
    eval_bands_count(b, &o, &d);
}

TEST(every_query_in_scope_is_in_one_of_four_groups)
{
    struct eval_bands b = {.n = 0};

    count(&b, asked(0, 1, 2), confident(0));
    count(&b, asked(1, 0, 2), confident(1));
    count(&b, asked(0, 1, 2), unsure(0));
    count(&b, asked(0, 1, 2), refused);
    CHECK_INT(b.n, 4);
    CHECK_INT(b.n_confident_right, 1);
    CHECK_INT(b.n_confident_wrong, 1);
    CHECK_INT(b.n_unsure, 1);
    CHECK_INT(b.n_refused, 1);
    CHECK_INT(b.n_first, 3);
    CHECK(fabs(eval_confident_share(&b) - 1.0 / 3) < 1e-9);
    CHECK(isnan(eval_detected_share(&b)));
}

TEST(an_unsure_query_counts_by_where_its_right_agent_stands)
{
    struct eval_bands b = {.n = 0};

    count(&b, asked(0, 1, 2), unsure(0));
    count(&b, asked(1, 2, 0), unsure(1));
    count(&b, asked(1, 2, 3), unsure(1));
    CHECK_INT(b.n_unsure, 3);
    CHECK_INT(b.n_unsure_right, 1);
    CHECK_INT(b.n_unsure_three, 2);
}

TEST(a_refused_unsure_query_counts_as_if_its_best_candidate_had_got_it)
{
    struct eval_bands b = {.n = 0};

    count(&b, asked(0, 1, 2), unsure(EVAL_NOBODY));
    count(&b, asked(1, 0, 2), unsure(EVAL_NOBODY));
    CHECK_INT(b.n_unsure_right, 1);
    /* The best candidate may be a stranger, and the next agent gets the
     * message. */
    count(&b, asked(1, 0, 2), unsure(0));
    CHECK_INT(b.n_unsure_right, 2);
}

TEST(out_of_scope_is_detected_unless_the_choice_is_confident)
{
    struct eval_bands b = {.n = 0};
    struct eval_outcome o = asked(0, 1, 2);

    o.n_expected = 0;
    count(&b, o, confident(0));
    count(&b, o, unsure(0));
    count(&b, o, refused);
    count(&b, o, refused);
    CHECK_INT(b.n, 0);
    CHECK_INT(b.n_out, 4);
    CHECK_INT(b.n_out_confident, 1);
    CHECK_INT(b.n_out_unsure, 1);
    CHECK(eval_detected_share(&b) == 0.75);
    CHECK(isnan(eval_confident_share(&b)));
}

TEST(a_confident_choice_behind_top_1_does_not_raise_the_share)
{
    struct eval_bands b = {.n = 0};

    count(&b, asked(0, 1, 2), confident(0));
    count(&b, asked(1, 0, 2), confident(0));
    CHECK_INT(b.n_confident_right, 2);
    CHECK_INT(b.n_first, 1);
    CHECK(eval_confident_share(&b) == 1);
}
