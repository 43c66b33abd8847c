#include "base/fault.h"
#include "model/query.h"
#include "test/t.h"

enum { ID, N, DATA };
static const struct column columns[] = {
    {.name = "id", .type = COLUMN_TEXT},
    {.name = "n", .type = COLUMN_INT},
    {.name = "data", .type = COLUMN_TEXT},
};
static const struct table table = {
    .name = "t", .columns = columns, .n_columns = 3, .n_key = 1};

TEST(conditions_are_copied_and_stay_in_order)
{
    static const uint8_t either[] = {ID, DATA};
    char bytes[] = "abc";
    struct query q;

    query_init(&q, &table, 7);
    CHECK(q.limit == 7 && q.order_by == -1 && !q.conditions);
    query_if(&q, N, IS_LESS, value_int(5));
    query_if_any(&q, either, 2, IS, value_text((struct str){bytes, 3}));
    query_order(&q, N, true);
    memset(bytes, 'x', 3);
    CHECK(q.conditions->columns[0] == N && q.conditions->compare == IS_LESS);
    CHECK(q.conditions->next->n_columns == 2);
    CHECK_STR(q.conditions->next->value.s, "abc");
    CHECK(q.order_by == N && q.is_descending && q.build_error == OK);
    query_fini(&q);
}

TEST(a_query_that_lacks_memory_says_so)
{
    long nth = 0;

    do {
        struct query q;

        fault_arm(++nth);
        query_init(&q, &table, 1);
        for (int i = 0; i < 30; i++)
            query_if(&q, ID, IS, value_text(STR("some words")));
        CHECK((q.build_error == ERR_NOMEM) == fault_fired());
        query_fini(&q);
    } while (fault_fired());
    CHECK(nth > 30);
}

TEST(a_row_gives_what_it_has)
{
    struct value values[] = {value_text(STR("id")), value_int(4), value_null()};
    struct row row = {.values = values};

    CHECK_STR(row_str(&row, ID), "id");
    CHECK(row_int(&row, N) == 4 && row_int(&row, ID) == 0);
    CHECK(row_is_null(&row, DATA) && !row_is_null(&row, N));
    CHECK(row_str(&row, DATA).n == 0 && row_str(&row, N).n == 0);
}

TEST(what_is_quick_does_not_wait_behind_lists)
{
    struct query q;

    query_init(&q, &table, 1);
    CHECK(query_is_lookup(&q));
    query_order(&q, 0, false);
    CHECK(!query_is_lookup(&q));
    q.is_quick = true;
    CHECK(query_is_lookup(&q));
    query_fini(&q);
    query_init(&q, &table, 2);
    CHECK(!query_is_lookup(&q));
    query_fini(&q);
}
