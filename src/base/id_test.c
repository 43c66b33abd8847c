#include "base/id.h"
#include "test/t.h"

static struct rand_seeded state = {7};

TEST(ids_look_as_promised)
{
    struct id_maker m;
    struct id id;

    id_maker_init(&m, rand_seeded(&state));
    id = id_make(&m, "task", 1469918176385);
    /* The time part of the ULID specification's example. */
    CHECK(strncmp(id.text, "task_01aryz6s41", 15) == 0);
    CHECK(strlen(id.text) == 5 + ID_ULID_CHARS);
    CHECK(id_is_valid(str_of(id.text), "task"));
}

TEST(ids_sort_in_the_order_they_were_made)
{
    struct id_maker m;
    struct id last, next;
    int64_t now_ms = 1000;

    id_maker_init(&m, rand_seeded(&state));
    last = id_make(&m, "m", now_ms);
    for (int i = 0; i < 10000; i++) {
        /* Sometimes forward, sometimes backward, mostly standing still. */
        now_ms += i % 100 == 0 ? 5 : i % 77 == 0 ? -3 : 0;
        next = id_make(&m, "m", now_ms);
        CHECK(strcmp(last.text, next.text) < 0);
        last = next;
    }
}

TEST(the_first_id_of_a_moment_stands_before_all_of_it_and_behind_all_before)
{
    struct id_maker m;
    struct id before, first = id_first("task", 1469918176385), one;

    id_maker_init(&m, rand_seeded(&state));
    before = id_make(&m, "task", 1469918176384);
    CHECK(id_is_valid(str_of(first.text), "task"));
    CHECK_INT(id_time_ms(&first), 1469918176385);
    CHECK(strcmp(before.text, first.text) < 0);
    for (int i = 0; i < 1000; i++) {
        id_maker_init(&m, rand_seeded(&state));
        one = id_make(&m, "task", 1469918176385);
        CHECK(strcmp(first.text, one.text) <= 0);
    }
    /* A time beyond the range of ids sorts after all of them. */
    first = id_first("task", INT64_MAX);
    CHECK(id_is_valid(str_of(first.text), "task"));
    CHECK(strcmp(one.text, first.text) < 0);
    CHECK_STR(str_of(id_first("task", 0).text),
              "task_00000000000000000000000000");
}

TEST(counting_up_carries_over_bytes)
{
    struct id_maker m;
    struct id a, b;

    id_maker_init(&m, rand_seeded(&state));
    a = id_make(&m, "m", 1);
    memset(m.last + 1, 0xff, 9);
    m.last[0] = 0x7e;
    a = id_make(&m, "m", 1);
    b = id_make(&m, "m", 1);
    CHECK(strcmp(a.text, b.text) < 0);
    CHECK(m.last[0] == 0x7f && m.last[9] == 1);
}

TEST(what_is_no_id_is_not_valid)
{
    CHECK(!id_is_valid(STR(""), "task"));
    CHECK(!id_is_valid(STR("task_"), "task"));
    CHECK(!id_is_valid(STR("task_01aryz6s410000000000000000x"), "task"));
    CHECK(!id_is_valid(STR("task_01aryz6s41000000000000000u"), "task"));
    CHECK(!id_is_valid(STR("task_01ARYZ6S410000000000000000"), "task"));
    CHECK(!id_is_valid(STR("task_81aryz6s410000000000000000"), "task"));
    CHECK(!id_is_valid(STR("msg_01aryz6s410000000000000000"), "task"));
    CHECK(id_is_valid(STR("task_01aryz6s410000000000000000"), "task"));
    CHECK(id_is_valid(STR("task_7zzzzzzzzzzzzzzzzzzzzzzzzz"), "task"));
}

TEST(an_id_says_when_it_was_made)
{
    static const int64_t times[] = {0, 1, 1469918176385,
                                    (INT64_C(1) << 48) - 1};
    static const char *const none[] = {"",
                                       "task",
                                       "task_",
                                       "task_01aryz6s41",
                                       "task_81aryz6s41aaaaaaaaaaaaaaaa",
                                       "task_u1aryz6s41aaaaaaaaaaaaaaaa"};
    struct id id;

    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        struct id_maker m;

        id_maker_init(&m, rand_seeded(&state));
        id = id_make(&m, "msg", times[i]);
        CHECK_INT(id_time_ms(&id), times[i]);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        id = id_from(str_of(none[i]));
        CHECK_INT(id_time_ms(&id), 0);
    }
}
