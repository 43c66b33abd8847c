#include "base/rate.h"

#include "base/clock.h"
#include "test/t.h"

static const uint64_t seed[2] = {3, 4};

/* "k17" */
static struct str key_of(size_t i)
{
    static char text[32];

    snprintf(text, sizeof(text), "k%zu", i);
    return str_of(text);
}

/* Take until one is rejected; returns how many were taken. */
static int64_t drain(struct rates *r, struct str key,
                     const struct rate_limit *l, int64_t now_ms)
{
    int64_t n = 0;

    while (rates_take(r, key, l, now_ms) == 0 && n < 1000000)
        n++;
    return n;
}

TEST(a_bucket_gives_its_burst_and_then_what_comes_in)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit l = {.per_minute = 120, .burst = 5};

    CHECK(r);
    CHECK_INT(drain(r, STR("a"), &l, 1000), 5);
    CHECK_INT(rates_take(r, STR("a"), &l, 1000), 500);
    CHECK_INT(rates_take(r, STR("a"), &l, 1499), 1);
    CHECK_INT(rates_take(r, STR("a"), &l, 1500), 0);
    CHECK_INT(rates_take(r, STR("a"), &l, 1500), 500);
    CHECK_INT(drain(r, STR("b"), &l, 1500), 5);
    CHECK_INT(drain(r, STR("a"), &l, 1000 * 1000), 5);
    rates_free(r);
}

TEST(a_wait_is_never_shorter_nor_longer_than_it_need_be)
{
    struct rate_limit l = {.per_minute = 7, .burst = 3};
    struct rates *r = rates_new(16, seed);

    CHECK_INT(drain(r, STR("a"), &l, 0), 3);
    for (int64_t now_ms = 0, i = 0; i < 1000; i++) {
        int64_t wait_ms = rates_take(r, STR("a"), &l, now_ms);

        CHECK(wait_ms > 0);
        CHECK_INT(rates_take(r, STR("a"), &l, now_ms + wait_ms - 1), 1);
        now_ms += wait_ms;
        CHECK_INT(rates_take(r, STR("a"), &l, now_ms), 0);
        /* Fractions are not lost: 7 in every minute, exactly. */
        CHECK_INT((i + 1) * 60000 / 7 + ((i + 1) * 60000 % 7 != 0), now_ms);
    }
    rates_free(r);
}

/* The slow reference: one millisecond after the other. */
struct truth {
    int64_t parts, at_ms;
};

static int64_t truth_take(struct truth *t, const struct rate_limit *l,
                          int64_t now_ms)
{
    int64_t most = l->burst * 60000, wait_ms = 0;

    for (; t->at_ms < now_ms; t->at_ms++)
        t->parts =
            t->parts + l->per_minute < most ? t->parts + l->per_minute : most;
    t->at_ms = now_ms; /* also back */
    if (t->parts > most)
        t->parts = most;
    while (t->parts + wait_ms * l->per_minute < 60000)
        wait_ms++;
    if (!wait_ms)
        t->parts -= 60000;
    return wait_ms;
}

TEST(random_steps_agree_with_counting_the_milliseconds)
{
    enum { KEYS = 40, STEPS = 200000 };
    struct rand_seeded state = {11};
    struct rand chance = rand_seeded(&state);
    struct rates *r = rates_new(KEYS * 16, seed); /* no key is evicted */
    struct rate_limit l = {.per_minute = 600, .burst = 4};
    struct truth truths[KEYS];
    int64_t now_ms = 5000, n_refused = 0;

    for (size_t i = 0; i < KEYS; i++)
        truths[i] = (struct truth){.parts = l.burst * 60000, .at_ms = now_ms};
    for (int step = 0; step < STEPS; step++) {
        size_t k = rand_u64(chance) % KEYS;
        int64_t want;

        switch (rand_u64(chance) % 64) {
        case 0: now_ms += (int64_t)(rand_u64(chance) % 2000); break;
        case 1: now_ms -= (int64_t)(rand_u64(chance) % 300); break;
        case 2: now_ms += (int64_t)(rand_u64(chance) % 7); break;
        default: break; /* it stands still */
        }
        want = truth_take(&truths[k], &l, now_ms);
        CHECK_INT(rates_take(r, key_of(k), &l, now_ms), want);
        n_refused += want > 0;
    }
    CHECK(n_refused > STEPS / 10 && n_refused < STEPS * 9 / 10);
    CHECK(rates_n_keys(r) <= KEYS);
    rates_free(r);
}

TEST(a_clock_that_stands_still_brings_nothing)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit l = {.per_minute = 60000, .burst = 10};

    CHECK_INT(drain(r, STR("a"), &l, INT64_MIN), 10);
    for (int i = 0; i < 100; i++)
        CHECK_INT(rates_take(r, STR("a"), &l, INT64_MIN), 1);
    rates_free(r);
}

TEST(a_clock_that_goes_back_neither_gives_nor_locks_out)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit l = {.per_minute = 60, .burst = 2};

    CHECK_INT(drain(r, STR("a"), &l, 1000 * 1000), 2);
    CHECK_INT(rates_take(r, STR("a"), &l, 500), 1000);
    CHECK_INT(rates_take(r, STR("a"), &l, 1500), 0);
    CHECK_INT(rates_take(r, STR("a"), &l, INT64_MIN), 1000);
    CHECK_INT(rates_take(r, STR("a"), &l, INT64_MIN + 1000), 0);
    rates_free(r);
}

TEST(the_largest_numbers_do_not_overflow)
{
    static const int64_t sizes[] = {1,
                                    2,
                                    59999,
                                    60000,
                                    60001,
                                    INT64_MAX / 60000,
                                    INT64_MAX / 60000 + 1,
                                    INT64_MAX - 1,
                                    INT64_MAX};
    static const int64_t times[] = {INT64_MIN,     -1,       0, 1,
                                    INT64_MAX - 1, INT64_MAX};
    enum { N = sizeof(sizes) / sizeof(*sizes), T = sizeof(times) / 8 };
    struct rates *r = rates_new(16, seed);

    for (size_t i = 0; i < N * N * T * T; i++) {
        struct rate_limit l = {sizes[i % N], sizes[i / N % N]};
        int64_t a = times[i / N / N % T], b = times[i / N / N / T];

        CHECK(rates_take(r, key_of(i), &l, a) == 0);
        for (int k = 0; k < 3; k++)
            CHECK(rates_take(r, key_of(i), &l, b) >= 0);
    }
    rates_free(r);
}

TEST(no_limit_is_no_limit_and_costs_no_place)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit none = {.per_minute = 0, .burst = 1};

    for (int i = 0; i < 1000; i++)
        CHECK_INT(rates_take(r, STR("a"), &none, 0), 0);
    CHECK_INT(rates_n_keys(r), 0);
    rates_free(r);
}

TEST(a_burst_below_one_is_one)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit l = {.per_minute = 60, .burst = -5};

    CHECK_INT(drain(r, STR("a"), &l, 0), 1);
    rates_free(r);
}

TEST(a_limit_that_changes_counts_at_once)
{
    struct rates *r = rates_new(16, seed);
    struct rate_limit wide = {.per_minute = 60, .burst = 1000},
                      narrow = {.per_minute = 60, .burst = 3};

    CHECK_INT(drain(r, STR("a"), &wide, 0), 1000);
    /* A bucket that lacks more than its capacity counts as empty. */
    CHECK_INT(rates_take(r, STR("a"), &narrow, 0), 1000);
    CHECK_INT(drain(r, STR("a"), &narrow, 3000), 3);
    CHECK_INT(drain(r, STR("a"), &wide, 3000), 1000 - 3);
    rates_free(r);
}

TEST(a_full_table_forgets_strangers_before_who_is_over)
{
    enum { MAX = 64, STRANGERS = 100000 };
    struct rates *r = rates_new(MAX, seed);
    struct rate_limit l = {.per_minute = 60, .burst = 10};

    CHECK_INT(drain(r, STR("greedy"), &l, 0), 10);
    for (size_t i = 0; i < STRANGERS; i++) {
        CHECK_INT(rates_take(r, key_of(i), &l, 0), 0);
        CHECK(rates_n_keys(r) <= MAX);
        if (i % 100 == 0)
            CHECK_INT(rates_take(r, STR("greedy"), &l, 0), 1000);
    }
    CHECK_INT(rates_n_keys(r), MAX);
    CHECK_INT(rates_take(r, STR("greedy"), &l, 0), 1000);
    rates_free(r);
}

TEST(what_is_full_again_makes_room_first)
{
    struct rates *r = rates_new(8, seed); /* one set */
    struct rate_limit l = {.per_minute = 60, .burst = 10};

    for (size_t i = 0; i < 8; i++) /* the first lacks the least */
        for (size_t n = 0; n <= i; n++)
            CHECK_INT(rates_take(r, key_of(i), &l, 0), 0);
    CHECK_INT(drain(r, key_of(8), &l, 1000), 10); /* in the place of k0 */
    for (size_t i = 2; i < 8; i++)                /* one second came in */
        CHECK_INT(drain(r, key_of(i), &l, 1000), 10 - (int64_t)i);
    CHECK_INT(drain(r, key_of(1), &l, 1000), 9);
    CHECK_INT(rates_n_keys(r), 8);
    rates_free(r);
}

TEST(hostile_keys_are_keys_like_any_other)
{
    static char zeros[300], large[100000];
    struct rates *r = rates_new(1024, seed);
    struct rate_limit l = {.per_minute = 60, .burst = 3};

    for (size_t n = 0; n < sizeof(zeros); n++) /* differ in length alone */
        CHECK_INT(drain(r, (struct str){zeros, n}, &l, 0), 3);
    for (size_t n = 0; n < 256; n++) { /* and in one byte */
        large[n * 300] ^= 1;
        CHECK_INT(drain(r, (struct str){large, sizeof(large)}, &l, 0), 3);
    }
    CHECK_INT(drain(r, (struct str){NULL, 0}, &l, 0), 0); /* as "" above */
    rates_free(r);
}

/* An attacker without the seed cannot aim at a set: keys that share one set
 * under one seed are spread by another. */
TEST(keys_that_meet_under_one_seed_are_spread_by_another)
{
    static const uint64_t other[2] = {5, 6};
    struct rates *r = rates_new(4096, seed), *s = rates_new(4096, other);
    struct rate_limit l = {.per_minute = 60, .burst = 3};
    size_t n = 0;

    for (size_t i = 0; n < 64; i++) {
        size_t before = rates_n_keys(r);

        CHECK_INT(rates_take(r, key_of(i), &l, 0), 0);
        if (rates_n_keys(r) > before)
            continue; /* it needed no eviction */
        n++;
        CHECK_INT(rates_take(s, key_of(i), &l, 0), 0);
    }
    CHECK_INT(rates_n_keys(s), 64);
    rates_free(r);
    rates_free(s);
}

TEST(what_is_given_back_can_be_taken_again)
{
    struct rates *r = rates_new(64, seed);
    struct rate_limit l = {.per_minute = 60, .burst = 2};

    for (int i = 0; i < 10; i++) {
        CHECK_INT(rates_take(r, key_of(1), &l, 0), 0);
        rates_give_back(r, key_of(1));
        CHECK_INT(rates_n_keys(r), 0);
    }
    rates_give_back(r, key_of(1)); /* not more than there was */
    CHECK_INT(rates_take(r, key_of(1), &l, 0), 0);
    CHECK_INT(rates_take(r, key_of(1), &l, 0), 0);
    CHECK_INT(rates_take(r, key_of(1), &l, 0), 1000);
    rates_free(r);
}

TEST(several_are_taken_together_or_not_at_all)
{
    struct rate_limit l = {.per_minute = 60, .burst = 10};
    static const uint64_t keys[2] = {1, 2};
    struct rates *r = rates_new(16, keys);

    CHECK(r && rates_take_many(r, STR("a"), 7, &l, 0) == 0);
    CHECK_INT(rates_take_many(r, STR("a"), 5, &l, 0), 2000);
    CHECK_INT(rates_take_many(r, STR("a"), 3, &l, 0), 0);
    CHECK_INT(rates_take(r, STR("a"), &l, 0), 1000);
    rates_give_back_many(r, STR("a"), 4);
    CHECK_INT(rates_take_many(r, STR("a"), 4, &l, 0), 0);
    /* More than the burst: all of it. */
    CHECK_INT(rates_take_many(r, STR("a"), 100, &l, 9999), 1);
    CHECK_INT(rates_take_many(r, STR("a"), 100, &l, 10000), 0);
    rates_give_back_many(r, STR("a"), 100);
    CHECK_INT(rates_n_keys(r), 0);
    rates_free(r);
}
