#include "base/arena.h"
#include "base/fault.h"
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

TEST(allocation_survives_every_fault)
{
    long nth = 0;

    do {
        struct arena a;
        int got = 0;

        arena_init(&a, 1 << 20);
        fault_arm(++nth);
        for (int i = 0; i < 100; i++)
            got += arena_alloc(&a, 100) != NULL;
        CHECK(fault_fired() ? got == 99 : got == 100);
        arena_fini(&a);
    } while (fault_fired());
    CHECK(nth > 2);
}
