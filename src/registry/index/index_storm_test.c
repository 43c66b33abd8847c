/* The search gives what computing everything would give, bit for bit, while
 * agents come, change and go; and a bound that is too tight is noticed.
 *
 * STRESS=full T_LIMIT_S=3000 build/index_storm_test: 10 000 queries over 20 000
 * skills. */
#include "test/t.h"

#include "test/lib/index_stage.h"

#include "base/fault.h"

struct storm {
    uint32_t agents, dims;
    int queries;
    uint32_t quick; /* vectors of two parts */
};

static bool is_full(void)
{
    return getenv("STRESS") && strcmp(getenv("STRESS"), "full") == 0;
}

static void fill(struct world *w)
{
    for (uint32_t i = 0; i < w->n_numbers; i++)
        put_any(w, i);
}

static size_t skills(const struct world *w)
{
    struct index_stats s = index_stats(w->x);

    return s.documents - s.agents;
}

/* How many of so many answers were not what they should be. */
static int storm(struct storm s, uint64_t seed)
{
    struct world *w = world_of_parts(s.agents, s.dims, s.quick, seed);
    size_t least = SIZE_MAX;
    int wrong = 0;

    fill(w);
    for (int i = 0; i < s.queries; i++) {
        for (uint32_t k = any(w, 6); k > 0; k--)
            any_change(w);
        /* A few, or all there are. */
        wrong += !search_is_exact(w->x, any_query(w),
                                  any(w, 8) ? 1 + any(w, 30) : s.agents);
        least = skills(w) < least ? skills(w) : least;
    }
    CHECK(!is_full() || s.agents < 10000 || least > 20 * 1000);
    CHECK(index_check(w->x));
    world_free(w);
    return wrong;
}

TEST(search_is_exact_while_agents_come_and_go)
{
    static const struct storm some[] = {
        {150, 32, 400, 0}, {60, 1, 150, 0},    {60, 255, 100, 0},
        {60, 384, 100, 0}, {400, 256, 200, 0}, {12, 4096, 20, 0},
        {0, 8, 4, 0},
    };

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        CHECK_INT(storm(some[i], i + 1), 0);
}

TEST(search_is_exact_where_vectors_have_two_parts)
{
    static const struct storm some[] = {
        {150, 32, 400, 16},   {60, 255, 100, 100}, {100, 640, 150, 256},
        {60, 8, 150, 1},      {60, 65, 100, 64},   {60, 2, 100, 1},
        {40, 1024, 40, 1023},
    };

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        CHECK_INT(storm(some[i], i + 11), 0);
}

/* On average two of three numbers are taken, and an agent has three skills. */
TEST(search_is_exact_over_20_000_skills)
{
    struct storm s = {10500, 256, 10 * 1000, 0};

    if (!is_full())
        s = (struct storm){2000, 64, 120, 0};
    CHECK_INT(storm(s, 77), 0);
}

/* The control. */
TEST(half_the_bound_is_not_enough)
{
    fault_arm_at("index.tight_bound", 1);
    CHECK(storm((struct storm){150, 32, 60, 0}, 1) > 0);
    CHECK(fault_fired());
    fault_arm(0);
}

TEST(nor_is_it_where_vectors_have_two_parts)
{
    fault_arm_at("index.tight_bound", 1);
    CHECK(storm((struct storm){150, 64, 600, 32}, 1) > 0);
    CHECK(fault_fired());
    fault_arm(0);
}

TEST(every_level_of_the_processor_finds_the_same)
{
    for (uint32_t quick = 0; quick < 100; quick += 33) {
        struct world *w = world_of_parts(150, 100, quick, 5);

        fill(w);
        for (int i = 0; i < 60; i++) {
            const struct index_query *q = any_query(w);

            for (int l = 0; l <= (int)cpu_level(); l++) {
                w->x->vectors.ops = vec_ops_of((enum cpu_level)l);
                CHECK(search_is_exact(w->x, q, 20));
            }
        }
        world_free(w);
    }
}

/* Scores above zero do not depend on the history of the documents. */
TEST(an_index_that_was_built_at_once_answers_the_same)
{
    struct world *w = world_new(120, 16, 9), *fresh = world_new(120, 16, 9);
    struct index_hit a[20], b[20];

    for (uint32_t i = 0; i < 300; i++) { /* comes and goes */
        put_any(w, any(w, 120));
        index_drop(w->x, any(w, 120));
    }
    w->rand = fresh->rand = 4242;
    fill(w);
    fill(fresh);
    for (int i = 0; i < 40; i++) {
        const struct index_query *q = any_query(w);
        size_t n = search_hits(w->x, q, a, 20);

        CHECK_INT(search_hits(fresh->x, q, b, 20), n);
        for (size_t k = 0; k < n; k++)
            CHECK(hits_are_same(&a[k], &b[k]));
    }
    world_free(w);
    world_free(fresh);
}
