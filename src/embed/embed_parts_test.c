/* The pure parts: the cache, and others. */
#include "test/t.h"

#include <malloc.h>
#include <math.h>

#include "base/clock.h"
#include "base/fault.h"
#include "embed/jobs.h"

static const uint64_t seed[2] = {7, 8};

/* The cache. */

enum { DIMS = 3 };

static struct str name_of(unsigned i)
{
    static char text[4][32];
    char *out = text[i % 4];

    snprintf(out, sizeof(text[0]), "text number %u", i);
    return str_of(out);
}

static void put(struct cache *c, unsigned i)
{
    float v[DIMS] = {(float)i, (float)i + 1, -(float)i};

    cache_put(c, cache_scope(c, STR("")), name_of(i), v);
}

static bool has_for(struct cache *c, const char *scope, unsigned i)
{
    const float *v = cache_get(c, cache_scope(c, str_of(scope)), name_of(i));

    CHECK(!v || (v[0] == (float)i && v[1] == (float)i + 1));
    return v != NULL;
}

static bool has(struct cache *c, unsigned i)
{
    return has_for(c, "", i);
}

TEST(what_one_scope_has_asked_no_other_finds)
{
    struct cache c;
    float v[DIMS] = {1, 2, -1};

    cache_init(&c, seed);
    cache_set(&c, 3, DIMS);
    cache_put(&c, cache_scope(&c, STR("org:acme")), name_of(1), v);
    CHECK(has_for(&c, "org:acme", 1));
    CHECK(!has_for(&c, "org:other", 1) && !has_for(&c, "user:acme", 1));
    CHECK(!has(&c, 1));
    fault_arm_at("embed.one_cache", 1); /* the control */
    cache_put(&c, cache_scope(&c, STR("org:acme")), name_of(2), v);
    CHECK(cache_get(&c, cache_scope(&c, STR("org:other")), name_of(2)));
    fault_arm(0);
    CHECK(cache_check(&c));
    cache_fini(&c);
}

TEST(the_least_recently_used_goes)
{
    struct cache c;

    cache_init(&c, seed);
    CHECK(!has(&c, 1));
    put(&c, 1); /* no room yet: no effect */
    cache_set(&c, 3, DIMS);
    for (unsigned i = 1; i <= 3; i++)
        put(&c, i);
    CHECK(has(&c, 1)); /* used */
    put(&c, 4);
    CHECK(has(&c, 1) && !has(&c, 2) && has(&c, 3) && has(&c, 4));
    put(&c, 1); /* again: used too */
    put(&c, 5);
    CHECK(has(&c, 1) && !has(&c, 3) && c.n == 3);
    CHECK(cache_check(&c));
    cache_fini(&c);
}

TEST(one_entry_is_a_cache_too)
{
    struct cache c;

    cache_init(&c, seed);
    cache_set(&c, 1, DIMS);
    for (unsigned i = 0; i < 10; i++) {
        put(&c, i);
        CHECK(has(&c, i) && (i == 0 || !has(&c, i - 1)) && cache_check(&c));
    }
    cache_fini(&c);
}

TEST(another_model_finds_nothing_of_the_one_before)
{
    struct cache c;

    cache_init(&c, seed);
    cache_set(&c, 8, DIMS);
    put(&c, 1);
    cache_set(&c, 8, DIMS);
    CHECK(!has(&c, 1) && c.n == 0 && cache_check(&c));
    put(&c, 1);
    cache_set(&c, 0, DIMS);
    put(&c, 2);
    CHECK(!has(&c, 1) && !has(&c, 2));
    cache_set(&c, 8, 0);
    put(&c, 2);
    CHECK(!has(&c, 2));
    cache_fini(&c);
}

TEST(memory_has_a_limit_whatever_the_entries)
{
    struct cache c;

    cache_init(&c, seed);
    cache_set(&c, 1000 * 1000, EMBED_DIMS_MAX);
    CHECK_INT(c.cap, CACHE_BYTES_MAX / (EMBED_DIMS_MAX * sizeof(float)));
    cache_set(&c, 4096, 384);
    CHECK_INT(c.cap, 4096);
    cache_fini(&c);
}

/* Compared with an array in the order of use. */
TEST(it_is_what_a_list_would_be)
{
    enum { CAP = 17, TEXTS = 40, STEPS = 20000 };
    struct rand_seeded chance = {5};
    struct rand r = rand_seeded(&chance);
    unsigned order[CAP + 1], n = 0;
    struct cache c;

    cache_init(&c, seed);
    cache_set(&c, CAP, DIMS);
    for (int step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)(rand_u64(r) % TEXTS), at = 0;
        bool is_put = rand_u64(r) % 3 == 0;

        while (at < n && order[at] != i)
            at++;
        if (is_put)
            put(&c, i);
        else
            CHECK(has(&c, i) == (at < n));
        if (at < n || is_put) {
            if (at == n)
                n = n < CAP ? n + 1 : CAP;
            at = at < n ? at : n - 1;
            memmove(order + 1, order, at * sizeof(order[0]));
            order[0] = i;
        }
        if (step % 100 == 0)
            CHECK(cache_check(&c) && c.n == n);
    }
    cache_fini(&c);
}

TEST(neither_a_hit_nor_a_new_entry_allocates)
{
    struct cache c;
    size_t before;

    cache_init(&c, seed);
    cache_set(&c, 64, DIMS);
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (unsigned i = 0; i < 1000; i++) {
        put(&c, i);
        CHECK(has(&c, i));
    }
    CHECK_INT(mallinfo2().uordblks + mallinfo2().hblkhd, before);
    cache_fini(&c);
}

TEST(without_memory_there_is_none)
{
    struct cache c;

    cache_init(&c, seed);
    fault_arm_at("embed.cache", 1);
    cache_set(&c, 8, DIMS);
    CHECK(fault_fired());
    put(&c, 1);
    CHECK(!has(&c, 1));
    cache_fini(&c);
}

/* The others. */

TEST(stamps_are_the_same_in_all_or_not_at_all)
{
    struct embed_stamp a, b;

    embed_stamp_set(&a, STR("m"), "00ff", 3);
    b = a;
    CHECK(embed_stamp_is(&a, &b));
    b.dims = 4;
    CHECK(!embed_stamp_is(&a, &b));
    embed_stamp_set(&b, STR("n"), "00ff", 3);
    CHECK(!embed_stamp_is(&a, &b));
    embed_stamp_set(&b, STR("m"), "00fe", 3);
    CHECK(!embed_stamp_is(&a, &b));
}

TEST(kinds_have_names)
{
    CHECK(strcmp(embed_kind_name(EMBED_BUILTIN), "builtin") == 0);
    CHECK(strcmp(embed_kind_name(EMBED_TABLE), "table") == 0);
    CHECK(strcmp(embed_kind_name(EMBED_TRANSFORMER), "transformer") == 0);
    CHECK(strcmp(embed_kind_name(EMBED_MINILM), "minilm") == 0);
    CHECK(strcmp(embed_kind_name(EMBED_HTTP), "http") == 0);
}
