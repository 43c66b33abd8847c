#include "base/clock.h"
#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "test/t.h"

static const uint64_t seed[2] = {1, 2};

TEST(the_hash_is_siphash_1_3)
{
    /* Reference values of SipHash-1-3 with key 00 01 … 0f over 0, 1 … n-1. */
    static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    static const uint64_t expected[] = {0xabac0158050fc4dc, 0xc9f49bf37d57ca93,
                                        0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb};
    char bytes[4] = {0, 1, 2, 3};

    for (size_t n = 0; n < 4; n++)
        CHECK(hash_bytes((struct str){bytes, n}, key) == expected[n]);
}

TEST(a_map_agrees_with_an_array)
{
    enum { KEYS = 200, STEPS = 20000 };
    static char names[KEYS][8];
    bool there[KEYS] = {false};
    struct rand_seeded state = {42};
    struct rand r = rand_seeded(&state);
    struct map m;
    size_t n = 0;

    map_init(&m, KEYS, seed);
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof(names[i]), "k%d", i);
    for (int step = 0; step < STEPS; step++) {
        size_t k = rand_u64(r) % KEYS;
        struct str key = str_of(names[k]);

        CHECK(map_get(&m, key) == (there[k] ? names[k] : NULL));
        if (rand_u64(r) % 2) {
            CHECK(map_put(&m, key, names[k]) == OK);
            n += !there[k];
            there[k] = true;
        } else {
            CHECK(map_take(&m, key) == (there[k] ? names[k] : NULL));
            n -= there[k];
            there[k] = false;
        }
        CHECK(m.n == n);
        if (step % 100 == 0)
            CHECK(map_check(&m));
    }
    map_fini(&m);
}

TEST(the_limit_refuses_the_next_but_not_a_replacement)
{
    int a = 1, b = 2;
    struct map m;

    map_init(&m, 1, seed);
    CHECK(map_put(&m, STR("a"), &a) == OK);
    CHECK(map_put(&m, STR("b"), &b) == ERR_LIMIT);
    CHECK(map_put(&m, STR("a"), &b) == OK && map_get(&m, STR("a")) == &b);
    CHECK(map_take(&m, STR("a")) == &b && map_take(&m, STR("a")) == NULL);
    CHECK(map_put(&m, STR("b"), &b) == OK);
    map_fini(&m);
}

TEST(what_was_reserved_can_be_put_without_memory)
{
    enum { N = 100 };
    static char names[N][8];
    struct map m;

    map_init(&m, N, seed);
    for (int i = 0; i < N; i++)
        snprintf(names[i], sizeof(names[i]), "k%d", i);
    CHECK(map_put(&m, str_of(names[0]), names[0]) == OK);
    CHECK(map_reserve(&m, N) == ERR_LIMIT);
    CHECK(map_reserve(&m, SIZE_MAX) == ERR_LIMIT);
    CHECK(map_reserve(&m, N - 1) == OK && m.n == 1 && map_check(&m));
    fault_arm_at("mem", 1);
    for (int i = 1; i < N; i++)
        CHECK(map_put(&m, str_of(names[i]), names[i]) == OK);
    CHECK(map_reserve(&m, 0) == OK);
    CHECK(!fault_fired() && map_check(&m));
    for (int i = 0; i < N; i++)
        CHECK(map_get(&m, str_of(names[i])) == names[i]);
    map_fini(&m);
}

TEST(a_large_table_without_memory_stays_as_it_was)
{
    static char name[] = "k";
    struct map m;

    map_init(&m, 1 << 20, seed);
    CHECK(map_put(&m, str_of(name), name) == OK);
    fault_arm(1);
    CHECK(map_reserve(&m, 1 << 17) == ERR_NOMEM);
    CHECK(fault_fired() && m.n == 1 && map_check(&m));
    CHECK(map_reserve(&m, 1 << 17) == OK && map_get(&m, str_of(name)) == name);
    map_fini(&m);
}

TEST(a_list_keeps_its_order)
{
    struct list l;
    struct list_node a = {NULL, NULL}, b = a, c = a;

    list_init(&l);
    CHECK(list_is_empty(&l) && !list_first(&l) && !list_pop(&l));
    list_append(&l, &a);
    list_append(&l, &b);
    list_append(&l, &c);
    list_remove(&b);
    list_remove(&b);
    CHECK(list_first(&l) == &a && list_next(&l, &a) == &c);
    CHECK(list_next(&l, &c) == NULL);
    list_append(&l, &b);
    CHECK(list_pop(&l) == &a && list_pop(&l) == &c && list_pop(&l) == &b);
    CHECK(list_is_empty(&l));
}
