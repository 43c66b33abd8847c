#include "base/buf.h"
#include "base/fault.h"
#include "base/mem.h"
#include "test/t.h"

TEST(what_does_not_fit_is_not_added_at_all)
{
    struct buf b;

    buf_init(&b, 8);
    buf_add_str(&b, STR("12345"));
    buf_add_str(&b, STR("6789"));
    CHECK(b.over && str_eq(buf_str(&b), STR("12345")));
    buf_add_str(&b, STR("678"));
    CHECK(str_eq(buf_str(&b), STR("12345678")) && b.cap == 8);
    buf_add_char(&b, '9');
    CHECK(b.n == 8);
    buf_clear(&b);
    CHECK(!b.over && b.n == 0);
    buf_fini(&b);
}

TEST(a_limit_of_nothing_takes_nothing)
{
    struct buf b;

    buf_init(&b, 0);
    buf_add(&b, "", 0);
    CHECK(!b.over);
    buf_add_char(&b, 'x');
    CHECK(b.over && b.n == 0);
    buf_fini(&b);
}

TEST(a_limit_as_large_as_memory_does_not_wrap)
{
    struct buf b;

    buf_init(&b, SIZE_MAX);
    buf_add_char(&b, 'x');
    CHECK(!b.over);
    CHECK(buf_reserve(&b, SIZE_MAX) == NULL);
    CHECK(b.over && b.n == 1);
    buf_fini(&b);
}

TEST(formatting_takes_short_and_long)
{
    char word[1000];
    struct buf b;

    memset(word, 'w', sizeof(word));
    buf_init(&b, 4096);
    buf_addf(&b, "%d-%s|", 42, "x");
    buf_addf(&b, "%.*s", 1000, word);
    CHECK(b.n == 5 + 1000 && str_starts(buf_str(&b), STR("42-x|www")));
    buf_clear(&b);
    buf_addf(&b, "%.*s", 255, word);
    buf_addf(&b, "%.*s", 256, word);
    CHECK(b.n == 511);
    buf_fini(&b);
}

TEST(integers_are_written_to_the_edges)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add_i64(&b, INT64_MIN);
    buf_add_char(&b, ' ');
    buf_add_i64(&b, INT64_MAX);
    buf_add_char(&b, ' ');
    buf_add_i64(&b, 0);
    CHECK(str_eq(buf_str(&b), STR("-9223372036854775808 "
                                  "9223372036854775807 0")));
    buf_fini(&b);
}

TEST(dropping_keeps_what_is_behind)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add_str(&b, STR("headtail"));
    buf_drop(&b, 4);
    CHECK(str_eq(buf_str(&b), STR("tail")));
    buf_shrink(&b);
    CHECK(b.cap == 4 && str_eq(buf_str(&b), STR("tail")));
    buf_drop(&b, 4);
    buf_shrink(&b);
    CHECK(b.cap == 0 && b.p == NULL);
    buf_fini(&b);
}

TEST(a_large_buffer_without_memory_is_over)
{
    struct buf b;

    buf_init(&b, 4 * MEM_SMALL_BYTES);
    buf_add_str(&b, STR("kept"));
    fault_arm(1);
    CHECK(!buf_reserve(&b, 2 * MEM_SMALL_BYTES));
    CHECK(fault_fired() && b.over && str_eq(buf_str(&b), STR("kept")));
    CHECK(buf_reserve(&b, 2 * MEM_SMALL_BYTES));
    buf_fini(&b);
}
