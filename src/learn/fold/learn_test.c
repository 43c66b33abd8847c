/* Learning from outcomes, one rule at a time. */
#include "test/t.h"

#include "test/lib/learn_stage.h"

#include <math.h>

TEST(nothing_known_is_the_middle)
{
    struct stage *s = stage_new();
    struct learn_hint h = ask(s, "org:acme", 1, "engineer");

    CHECK(h.performance == 0.5F && h.recency == 0 && h.learned == 0);
    CHECK_INT(learn_version(s->l), 0);
    CHECK_INT(learn_type(s->l, STR("org:acme"), vector_of(s, 1)), 0);
    stage_free(s);
}

TEST(performance_moves_by_the_rate_within_the_type)
{
    struct stage *s = stage_new();
    double rate = 0.5;

    for (int i = 0; i < 3; i++) {
        judge(s, "Engineer", 1, VERDICT_POSITIVE);
        rate += 0.1 * (1 - rate);
    }
    judge(s, "engineer", 1, VERDICT_NEUTRAL);
    judge(s, "engineer", 1, VERDICT_NEGATIVE);
    rate += 0.1 * (0 - rate);
    CHECK(ask(s, "org:acme", 1, "ENGINEER").performance ==
          (float)((4 * rate + 5 * 0.5) / 9));
    CHECK(ask(s, "org:acme", 2, "engineer").performance == 0.5F);
    CHECK_INT(learn_stats(s->l).agents, 1);
    CHECK_INT(learn_stats(s->l).agent_types, 1);
    CHECK_INT(learn_stats(s->l).applied_total, 5);
    stage_free(s);
}

TEST(only_semantic_and_intent_decisions_are_judged)
{
    struct stage *s = stage_new();

    for (enum layer layer = 0; layer <= LAYER_DEFAULT; layer++) {
        struct outcome o = judged(s, "engineer", 1, VERDICT_NEGATIVE);

        o.layer = layer;
        apply(s, &o);
        CHECK_INT(learn_stats(s->l).agents, layer >= LAYER_INTENT);
    }
    CHECK(strstr(exported(s), "\"negative\":2"));
    stage_free(s);
}

TEST(recency_falls_from_the_last_good_one)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "engineer", 1, VERDICT_POSITIVE);
    float sure = 2.0F / 7; /* two queries of this type, and 5 that lean */

    o.at_ms = 1000;
    apply(s, &o);
    o = judged(s, "engineer", 1, VERDICT_NEGATIVE);
    o.at_ms = 1500;
    apply(s, &o);
    CHECK(ask_at(s, 1000, 400, "engineer").recency == sure);
    CHECK(ask_at(s, 900, 400, "engineer").recency == sure);
    CHECK(fabsf(ask_at(s, 1100, 400, "engineer").recency - 0.75F * sure) <
          1e-6F);
    CHECK(ask_at(s, 1400, 400, "engineer").recency == 0);
    CHECK(ask_at(s, 1100, 0, "engineer").recency == 0);
    stage_free(s);
}

TEST(a_success_with_other_queries_is_none_with_these)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "engineer", 1, VERDICT_POSITIVE);

    o.at_ms = 5000;
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "engineer").recency > 0);
    CHECK(ask(s, "org:acme", 500, "engineer").recency == 0);
    stage_free(s);
}

TEST(a_correction_speaks_for_one_and_against_the_other_within_its_scope)
{
    struct stage *s = stage_new();

    correct(s, "engineer", "Writer", "org:acme", 1);
    CHECK(ask(s, "org:acme", 1, "writer").learned == 1);
    CHECK(ask(s, "org:acme", 1, "engineer").learned == -1);
    CHECK(ask(s, "org:acme", 1, "other").learned == 0);
    CHECK(ask(s, "org:other", 1, "writer").learned == 0);
    CHECK(ask(s, "user:ann", 1, "writer").learned == 0);
    correct(s, "engineer", "writer", "org:acme", 1);
    CHECK(ask(s, "org:acme", 1, "writer").learned == 2);
    stage_free(s);
}

TEST(learned_is_the_cube_of_the_likeness)
{
    struct stage *s = stage_new();
    struct vec_packed a, b;
    double c;

    correct(s, "engineer", "writer", "org:acme", 1);
    for (int other = 2; other < 40; other++) {
        struct learn_hint h = ask(s, "org:acme", other, "writer");

        CHECK(opened(s, 1, &a) && opened(s, other, &b));
        c = vec_packed_dot(&a, &b);
        c = c > 0 ? c : 0;
        CHECK(fabs((double)h.learned - c * c * c) < 0.003);
        if (c > 0.45)
            CHECK(fabs((double)h.learned - c * c * c) < 1e-7);
    }
    stage_free(s);
}

TEST(who_thinks_better_of_it_replaces_what_they_said)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "engineer", "writer", "org:acme", 1);
    struct id id = o.decision_id;

    apply(s, &o);
    o = corrected(s, "engineer", "operator", "org:acme", 1);
    o.decision_id = id;
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "writer").learned == 0);
    CHECK(ask(s, "org:acme", 1, "operator").learned == 1);
    CHECK(ask(s, "org:acme", 1, "engineer").learned == -1);
    CHECK_INT(learn_stats(s->l).examples, 1);
    o = corrected(s, "engineer", "engineer", "org:acme", 1);
    o.decision_id = id;
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "engineer").learned == 0);
    CHECK_INT(learn_stats(s->l).examples, 0);
    stage_free(s);
}

TEST(feedback_that_it_was_wrong_speaks_against_it_alone)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "engineer", 1, VERDICT_NEGATIVE);

    o.kind = OUTCOME_FEEDBACK;
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "engineer").learned == -1);
    o.verdict = VERDICT_POSITIVE;
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "engineer").learned == 0);
    CHECK_INT(learn_stats(s->l).examples, 0);
    stage_free(s);
}

TEST(without_a_vector_only_the_agent_is_judged)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "engineer", "writer", "org:acme", 1);

    o.vector = STR("");
    apply(s, &o);
    o = judged(s, "engineer", 1, VERDICT_NEGATIVE);
    o.vector = STR("not a vector at all");
    apply(s, &o);
    CHECK_INT(learn_stats(s->l).agents, 1);
    CHECK_INT(learn_stats(s->l).types, 0);
    CHECK_INT(learn_stats(s->l).examples, 0);
    stage_free(s);
}

TEST(vectors_of_another_model_are_not_compared)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "engineer", "writer", "org:acme", 1);

    o.model_hash = STR("another");
    apply(s, &o);
    CHECK(ask(s, "org:acme", 1, "writer").learned == 0);
    CHECK_INT(learn_type(s->l, STR("org:acme"), vector_of(s, 1)), 0);
    CHECK_INT(learn_stats(s->l).examples, 1);
    CHECK_INT(learn_stats(s->l).types, 1);
    stage_free(s);
}

TEST(an_outcome_counts_once)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "engineer", 1, VERDICT_POSITIVE);
    float before;

    apply(s, &o);
    before = ask(s, "org:acme", 1, "engineer").performance;
    o.seq = learn_version(s->l);
    CHECK(learn_apply(s->l, &o) == OK);
    CHECK(ask(s, "org:acme", 1, "engineer").performance == before);
    CHECK_INT(learn_stats(s->l).applied_total, 1);
    stage_free(s);
}

TEST(an_agent_is_forgotten_and_nobody_else)
{
    struct stage *s = stage_new();

    judge(s, "engineer", 1, VERDICT_POSITIVE);
    judge(s, "writer", 2, VERDICT_POSITIVE);
    correct(s, "engineer", "writer", "org:acme", 3);
    correct(s, "writer", "engineer", "org:acme", 4);
    forget(s, "Engineer");
    CHECK(ask(s, "org:acme", 1, "engineer").performance == 0.5F);
    CHECK(ask(s, "org:acme", 2, "writer").performance > 0.5F);
    CHECK(ask(s, "org:acme", 3, "writer").learned > 0.9999F);
    CHECK(ask(s, "org:acme", 3, "engineer").learned == 0);
    CHECK(ask(s, "org:acme", 4, "engineer").learned == 0);
    CHECK_INT(learn_stats(s->l).examples, 1);
    forget(s, "");
    CHECK(ask(s, "org:acme", 2, "writer").performance == 0.5F);
    CHECK_INT(learn_stats(s->l).types, 0);
    CHECK_INT(learn_stats(s->l).examples, 0);
    CHECK_INT(learn_stats(s->l).agents, 0);
    stage_free(s);
}

TEST(types_are_named_by_what_tells_them_apart)
{
    struct stage *s = stage_new();
    int64_t flights, bugs;

    for (int i = 0; i < 4; i++) {
        struct outcome o = judged(s, "travel", 1, VERDICT_POSITIVE);

        o.text = i % 2 ? STR("Please book the flight to Rome in 2027")
                       : STR("please, can you book 2 flights?");
        apply(s, &o);
        o = judged(s, "engineer", 2, VERDICT_POSITIVE);
        o.text = STR("please debug the crash in my parser");
        apply(s, &o);
    }
    flights = learn_type(s->l, STR("org:acme"), vector_of(s, 1));
    bugs = learn_type(s->l, STR("org:acme"), vector_of(s, 2));
    CHECK(flights > 0 && bugs > 0 && flights != bugs);
    CHECK_STR(learn_type_name(s->l, flights), "book flight rome");
    CHECK_STR(learn_type_name(s->l, bugs), "crash debug parser");
    CHECK_STR(learn_type_name(s->l, 4711), "");
    stage_free(s);
}

/* One org learns nothing from another's queries. */
TEST(types_of_one_scope_are_none_of_another)
{
    struct stage *s = stage_new();
    struct outcome o = judged(s, "lawyer", 1, VERDICT_POSITIVE);
    char *before;

    o.scope = STR("org:b");
    o.text = STR("draft the contract");
    apply(s, &o);
    before = strdup(exported(s));
    for (int i = 0; i < 5; i++) {
        o = judged(s, "lawyer", i % 2 ? 1 : 2, VERDICT_POSITIVE);
        o.scope = STR("org:a");
        o.text = STR("the Henderson merger");
        apply(s, &o);
    }
    CHECK_INT(learn_type(s->l, STR("org:b"), vector_of(s, 2)), 0);
    CHECK_INT(learn_type(s->l, STR("user:c"), vector_of(s, 1)), 0);
    CHECK(learn_type(s->l, STR("org:a"), vector_of(s, 1)) !=
          learn_type(s->l, STR("org:b"), vector_of(s, 1)));
    CHECK_INT(learn_stats(s->l).types, 3);
    /* Its mean, its words, its name and its number of queries. */
    CHECK(strstr(before, "\"type\""));
    *strstr(strstr(before, "{\"type\""), "\n") = '\0';
    CHECK(strstr(exported(s), strstr(before, "{\"type\"")));
    free(before);
    stage_free(s);
}

/* An id that counted outcomes would reveal how many others there were. */
TEST(a_types_number_is_of_its_own_decision)
{
    int64_t ids[2];

    for (int i = 0; i < 2; i++) {
        struct stage *s = stage_new();
        struct outcome o = judged(s, "lawyer", 1, VERDICT_POSITIVE), other;

        for (int n = 0; n < 7 * i; n++) {
            other = judged(s, "lawyer", n, VERDICT_POSITIVE);
            other.scope = STR("org:other");
            apply(s, &other);
        }
        apply(s, &o);
        ids[i] = learn_type(s->l, STR("org:acme"), vector_of(s, 1));
        CHECK(ids[i] > 0 && ids[i] < INT64_C(1) << 53);
        stage_free(s);
    }
    CHECK_INT(ids[0], ids[1]);
}

static struct outcome said_inside(struct stage *s, enum verdict verdict)
{
    struct outcome o = judged(s, "evil", 1, verdict);

    o.kind = OUTCOME_FEEDBACK;
    o.counts = COUNTS_INSIDE;
    o.at_ms = 4900;
    return o;
}

TEST(what_its_own_people_say_of_an_agent_is_not_for_others)
{
    struct stage *s = stage_new();
    struct learn_hint h;

    for (int i = 0; i < 30; i++) {
        struct outcome o = said_inside(s, VERDICT_POSITIVE);

        apply(s, &o);
    }
    h = ask(s, "org:acme", 1, "evil");
    CHECK(h.has_inside && h.performance > 0.85F && h.recency > 0.7F);
    learn_outside(&h);
    CHECK(h.performance == 0.5F && h.recency == 0);
    /* Results of other requesters count for all. */
    judge(s, "evil", 1, VERDICT_NEGATIVE);
    h = ask(s, "org:acme", 1, "evil");
    CHECK(h.performance > 0.75F);
    learn_outside(&h);
    CHECK(h.performance < 0.5F && h.recency == 0);
    stage_free(s);
}

TEST(what_has_counted_already_moves_nothing_but_its_example)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "cook", "tailor", "org:acme", 1);
    struct learn_stats stats;

    o.counts = COUNTS_NOT;
    apply(s, &o);
    stats = learn_stats(s->l);
    CHECK_INT(stats.agents, 0);
    CHECK_INT(stats.types, 0);
    CHECK_INT(stats.examples, 1);
    CHECK(ask(s, "org:acme", 1, "tailor").learned > 0.9F);
    o.kind = OUTCOME_FEEDBACK;
    o.verdict = VERDICT_POSITIVE;
    o.right_agent = STR("");
    apply(s, &o);
    CHECK_INT(learn_stats(s->l).examples, 0);
    CHECK(ask(s, "org:acme", 1, "cook").performance == 0.5F);
    CHECK(learn_check(s->l));
    stage_free(s);
}
