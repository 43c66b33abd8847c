#include "base/arena.h"
#include "base/fault.h"
#include "base/mem.h"
#include "test/t.h"

#include <stdalign.h>

TEST(memory_is_zeroed_and_aligned)
{
    struct arena a;

    arena_init(&a, 1 << 20);
    for (size_t size = 0; size < 300; size++) {
        unsigned char *p = arena_alloc(&a, size);

        CHECK(p && (uintptr_t)p % alignof(max_align_t) == 0);
        for (size_t i = 0; i < size; i++)
            CHECK(p[i] == 0);
        memset(p, 0xff, size);
    }
    arena_fini(&a);
}

TEST(the_cap_is_kept_to_the_byte)
{
    struct arena a;

    arena_init(&a, 4096);
    CHECK(!arena_alloc(&a, 4097));
    CHECK(!arena_alloc(&a, SIZE_MAX));
    CHECK(!arena_array(&a, SIZE_MAX / 2, 4));
    while (arena_alloc(&a, 64))
        ;
    CHECK(a.used <= 4096 && a.used > 4096 - 128);
    arena_fini(&a);
}

TEST(a_reset_arena_starts_over_with_clean_memory)
{
    struct arena a;

    arena_init(&a, 1 << 20);
    for (int i = 0; i < 1000; i++)
        CHECK(arena_strdup(&a, STR("some text that fills blocks")));
    arena_reset(&a);
    CHECK(a.used == 0);
    CHECK(strcmp(arena_alloc(&a, 100), "") == 0);
    arena_fini(&a);
    arena_reset(&a);
    CHECK(strcmp(arena_strdup(&a, STR("again")), "again") == 0);
    arena_fini(&a);
}

TEST(a_string_is_kept_with_a_nul_behind_it)
{
    struct str s = STR("some"), kept;
    struct arena a;
    size_t used;

    arena_init(&a, 64);
    CHECK(arena_keep(&a, s, &kept));
    CHECK(str_eq(kept, s) && kept.p != s.p && kept.p[4] == 0);
    CHECK(arena_keep(&a, s, &s) && str_eq(s, kept) && s.p != kept.p);
    used = a.used;
    CHECK(arena_keep(&a, (struct str){NULL, 0}, &kept));
    CHECK(kept.n == 0 && kept.p[0] == 0 && a.used == used);
    arena_fini(&a);
}

TEST(what_does_not_fit_is_not_kept_and_leaves_nothing)
{
    static char text[256]; /* a sanitizer needs room around each piece */
    struct str s = {text, sizeof(text)}, kept = STR("before");
    struct arena a;

    arena_init(&a, sizeof(text));
    CHECK(!arena_keep(&a, s, &kept));
    CHECK(!kept.p && kept.n == 0);
    CHECK(arena_keep(&a, str_sub(s, 0, 128), &kept) && kept.n == 128);
    arena_fini(&a);
}

TEST(a_large_block_without_memory_is_refused)
{
    struct arena a;

    arena_init(&a, 4 * MEM_SMALL_BYTES);
    fault_arm(1);
    CHECK(!arena_alloc(&a, 2 * MEM_SMALL_BYTES));
    CHECK(fault_fired() && a.used == 0);
    CHECK(arena_alloc(&a, 2 * MEM_SMALL_BYTES));
    arena_fini(&a);
}

TEST(a_large_arena_without_memory_is_refused_and_keeps_what_it_has)
{
    struct arena a;
    size_t n = 0;
    char *first;

    arena_init(&a, SIZE_MAX);
    first = arena_strdup(&a, STR("first"));
    fault_arm_at("arena.block", 1);
    while (arena_alloc(&a, 1000))
        n += 1000;
    CHECK(fault_fired() && n > MEM_SMALL_BYTES / 2 && n < MEM_SMALL_BYTES);
    CHECK(str_eq(str_of(first), STR("first")));
    arena_fini(&a);
}
