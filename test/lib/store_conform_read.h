#ifndef STORE_CONFORM_READ_H
#define STORE_CONFORM_READ_H

/* See store_conform.h: questions. */

#include "test/lib/store_stage.h"

TEST(comparisons_do_what_they_say_also_with_null)
{
    struct tx_op *op;
    static const struct {
        enum compare compare;
        bool with_null;
        size_t want; /* of NULL, 1, 2, 3 */
    } rows[] = {
        {IS, false, 1},         {IS, true, 1},           {IS_NOT, false, 3},
        {IS_NOT, true, 3},      {IS_LESS, false, 1},     {IS_LESS, true, 0},
        {IS_AT_MOST, false, 2}, {IS_AT_MOST, true, 0},   {IS_MORE, false, 1},
        {IS_MORE, true, 0},     {IS_AT_LEAST, false, 2}, {IS_AT_LEAST, true, 0},
    };

    open_store();
    make_thing("1", 1);
    make_thing("2", 2);
    make_thing("3", 3);
    op = begin(tx_insert, &thing);
    tx_set(op, THING_ID, value_text(STR("null")));
    CHECK_INT(end(), TX_COMMITTED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct query q;
        struct value v = rows[i].with_null ? value_null() : value_int(2);

        query_init(&q, &thing, 10);
        query_if(&q, THING_N, rows[i].compare, v);
        CHECK(find(&q) == OK);
        CHECK_INT(q.n_rows, rows[i].want);
        query_fini(&q);
        op = begin(tx_expect, &thing);
        tx_if(op, THING_N, rows[i].compare, v);
        CHECK_INT(end(), rows[i].want ? TX_COMMITTED : TX_GUARD_FAILED);
    }
    leave();
}

TEST(a_text_or_what_is_for_all)
{
    static const uint8_t either[] = {PART_THING, PART_CODE};
    static const struct {
        const char *name;
        size_t n_code, n_either;
    } rows[] = {
        {"x", 2, 2}, {"y", 2, 2}, {"z", 1, 1}, {"a", 1, 4}, {"*", 1, 1}};
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    CHECK_INT(put_part(tx_insert, "a", 1, "x"), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 2, "y"), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 3, "*"), TX_COMMITTED);
    op = begin(tx_insert, &part); /* its code is NULL */
    tx_set(op, PART_THING, value_text(STR("a")));
    tx_set(op, PART_NR, value_int(4));
    CHECK_INT(end(), TX_COMMITTED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct value v = value_text(str_of(rows[i].name));
        struct query q;

        query_init(&q, &part, 10);
        query_if(&q, PART_CODE, IS_OR_ALL, v);
        CHECK(find(&q) == OK);
        CHECK_INT(q.n_rows, rows[i].n_code);
        query_fini(&q);
        query_init(&q, &part, 10);
        query_if_any(&q, either, 2, IS_OR_ALL, v);
        CHECK(find(&q) == OK);
        CHECK_INT(q.n_rows, rows[i].n_either);
        query_fini(&q);
    }
    leave();
}

TEST(any_of_several_columns_may_fit)
{
    struct tx_op *op;
    static const uint8_t either[] = {PART_THING, PART_CODE};
    struct query q;

    open_store();
    make_thing("a", 1);
    make_thing("x", 1);
    CHECK_INT(put_part(tx_insert, "a", 1, "x"), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 2, "y"), TX_COMMITTED);
    op = begin(tx_insert, &part);
    tx_set(op, PART_THING, value_text(STR("x")));
    tx_set(op, PART_NR, value_int(3));
    CHECK_INT(end(), TX_COMMITTED);
    query_init(&q, &part, 10);
    query_if_any(&q, either, 2, IS, value_text(STR("x")));
    query_order(&q, PART_NR, true);
    CHECK(find(&q) == OK && q.n_rows == 2);
    CHECK(row_int(q.rows, PART_NR) == 3 && row_int(q.rows->next, PART_NR) == 1);
    query_fini(&q);
    leave();
}

/* Sixty things, each with a note that is the id of one of the first seven. */
static inline void make_noted_things(void)
{
    tx_init(&single);
    for (int i = 0; i < 60; i++) {
        char id[8], note[8];

        snprintf(id, sizeof(id), "%02d", i);
        snprintf(note, sizeof(note), "%02d", i * i % 7);
        tx_set(add_thing(&single, id, i % 2), THING_NOTE,
               value_text(str_of(note)));
    }
    CHECK_INT(end(), TX_COMMITTED);
}

/* One page of those with this id or note, and an odd number if is_odd, behind
 * `after`; the last of them, or -1. */
static inline int page_of(int wanted, bool is_odd, int after, bool is_down,
                          size_t limit)
{
    static const uint8_t either[] = {THING_ID, THING_NOTE};
    int step = is_down ? -1 : 1, at = after, last = -1;
    char id[16], cursor[16];
    struct query q;
    size_t n = 0;

    snprintf(id, sizeof(id), "%02d", wanted);
    snprintf(cursor, sizeof(cursor), "%02d", after);
    query_init(&q, &thing, limit);
    query_if_any(&q, either, 2, IS, value_text(str_of(id)));
    if (is_odd)
        query_if(&q, THING_N, IS, value_int(1));
    if (after >= 0)
        query_if(&q, THING_ID, is_down ? IS_LESS : IS_MORE,
                 value_text(str_of(cursor)));
    query_order(&q, THING_ID, is_down);
    CHECK(find(&q) == OK);
    if (after < 0)
        at = is_down ? 60 : -1;
    QUERY_EACH(row, &q)
    {
        do /* the next that fits */
            at += step;
        while (!((at == wanted || at * at % 7 == wanted) &&
                 (!is_odd || at % 2 == 1)));
        snprintf(id, sizeof(id), "%02d", at);
        CHECK(at >= 0 && at < 60);
        CHECK(str_eq(row_str(row, THING_ID), str_of(id)));
        last = at;
        n++;
    }
    CHECK(n <= limit && (!q.has_more || n == limit));
    if (!q.has_more) /* no more fits */
        while ((at += step) >= 0 && at < 60)
            CHECK(!((at == wanted || at * at % 7 == wanted) &&
                    (!is_odd || at % 2 == 1)));
    last = q.has_more ? last : -1;
    query_fini(&q);
    return last;
}

TEST(any_of_several_columns_makes_one_list_page_by_page)
{
    open_store();
    make_noted_things();
    for (int ways = 0; ways < 4; ways++)
        for (int wanted = 0; wanted < 9; wanted++)
            for (size_t limit = 1; limit < 12; limit++) {
                int after = -1;

                do
                    after = page_of(wanted, ways & 1, after, ways & 2, limit);
                while (after >= 0);
            }
    leave();
}

TEST(a_listing_goes_on_behind_its_last_row)
{
    int64_t last = INT64_MAX, n_rows = 0, n_pages = 0;
    struct query q;
    bool has_more;

    open_store();
    for (int i = 0; i < 10; i++)
        append_feed("x");
    do {
        query_init(&q, &feed, 3);
        query_if(&q, FEED_SEQ, IS_LESS, value_int(last));
        query_order(&q, FEED_SEQ, true);
        CHECK(find(&q) == OK && q.n_rows <= 3);
        QUERY_EACH(row, &q)
        {
            CHECK(row_int(row, FEED_SEQ) < last);
            last = row_int(row, FEED_SEQ);
            n_rows++;
        }
        n_pages++;
        has_more = q.has_more;
        query_fini(&q);
    } while (has_more);
    CHECK(n_rows == 10 && n_pages == 4);
    leave();
}

TEST(a_page_of_exactly_the_limit_has_no_more)
{
    struct query q;

    open_store();
    for (int i = 0; i < 3; i++)
        append_feed("x");
    for (size_t limit = 0; limit < 5; limit++) {
        query_init(&q, &feed, limit);
        CHECK(find(&q) == OK);
        CHECK_INT(q.n_rows, limit < 3 ? limit : 3);
        CHECK(q.has_more == (limit < 3));
        query_fini(&q);
    }
    leave();
}

TEST(a_page_ends_with_the_row_that_fills_it)
{
    enum { EACH = 1024 * 1024 };
    char *bytes = calloc(1, EACH);
    struct query q;

    CHECK(bytes);
    open_store();
    for (int i = 0; i < 6; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        tx_init(&single);
        tx_set(add_thing(&single, id, i), THING_DATA,
               value_blob((struct str){bytes, EACH}));
        CHECK_INT(end(), TX_COMMITTED);
    }
    query_init(&q, &thing, 10);
    CHECK(find(&q) == OK && q.n_rows == 4 && q.has_more);
    query_fini(&q);
    free(bytes);
    leave();
}

TEST(one_row_may_be_larger_than_a_page)
{
    enum { LARGE = 64 * 1024 * 1024 };
    char *bytes = calloc(1, LARGE);
    struct query q;

    CHECK(bytes);
    bytes[LARGE - 1] = 'x';
    open_store();
    make_thing("0", 0);
    tx_init(&single);
    tx_set(add_thing(&single, "1", 1), THING_DATA,
           value_blob((struct str){bytes, LARGE}));
    CHECK_INT(end(), TX_COMMITTED);
    query_init(&q, &thing, 10);
    query_order(&q, THING_ID, false);
    CHECK(find(&q) == OK && q.n_rows == 2);
    CHECK(
        str_eq(row_str(q.rows->next, THING_DATA), (struct str){bytes, LARGE}));
    query_fini(&q);
    free(bytes);
    leave();
}

TEST(a_question_sees_what_was_reported_before_it)
{
    open_store();
    for (int i = 0; i < 100; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        make_thing(id, i);
        CHECK_INT(n_of(id), i);
    }
    leave();
}

TEST(a_look_needs_no_loop)
{
    struct query q;

    open_store();
    make_thing("a", 4);
    query_init(&q, &thing, 5);
    CHECK(store_look(store, &q) == OK && q.n_rows == 1);
    CHECK_INT(row_int(q.rows, THING_N), 4);
    query_fini(&q);
    make_thing("b", 5);
    query_init(&q, &thing, 5);
    CHECK(store_look(store, &q) == OK && q.n_rows == 2);
    query_fini(&q);
    leave();
}

TEST(a_question_that_is_forgotten_comes_back_once_and_unread)
{
    static struct query qs[20];

    open_store();
    make_thing("a", 1);
    n_done = 0;
    for (int i = 0; i < 20; i++) {
        query_init(&qs[i], &thing, i % 3 ? 5 : 1);
        ask(&qs[i]);
    }
    is_submitting = true; /* nothing comes before the call has returned */
    for (int i = 0; i < 20; i += 2) {
        store_forget(store, &qs[i]);
        store_forget(store, &qs[i]); /* twice is harmless */
    }
    is_submitting = false;
    CHECK_INT(n_done, 0);
    wait_for(20);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(qs[i].err, i % 2 ? OK : ERR_GONE);
        CHECK_INT(qs[i].n_rows, i % 2);
        query_fini(&qs[i]);
    }
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_done, 21);
    leave();
}

/* Forgotten at some moment or other: whichever side held it, it comes back
 * once. */
static struct query forgotten[64];
static int n_came[64];

static inline void on_forgotten(struct query *q, void *ctx)
{
    int i = (int)(q - forgotten);

    (void)ctx;
    n_came[i]++;
    CHECK(q->err == OK || q->err == ERR_GONE);
    for (int j = i + 1; j < 64; j += 2)
        if (!n_came[j])
            store_forget(store, &forgotten[j]);
    n_done++;
    loop_stop(&loop);
}

TEST(questions_may_be_forgotten_at_any_moment)
{
    open_store();
    make_noted_things();
    for (int round = 0; round < 20; round++) {
        n_done = 0;
        memset(n_came, 0, sizeof(n_came));
        for (int i = 0; i < 64; i++) {
            query_init(&forgotten[i], &thing, i % 3 ? 100 : 1);
            store_read(store, &forgotten[i], on_forgotten, NULL);
        }
        wait_for(64);
        for (int i = 0; i < 64; i++) {
            CHECK_INT(n_came[i], 1);
            query_fini(&forgotten[i]);
        }
    }
    CHECK_INT(n_of("07"), 1);
    leave();
}

TEST(what_closing_finds_forgotten_comes_back_too)
{
    struct query q;

    open_store();
    query_init(&q, &thing, 1);
    ask(&q);
    store_forget(store, &q);
    close_store();
    CHECK(n_done == 1 && q.err == ERR_GONE);
    query_fini(&q);
    loop_fini(&loop);
}

static int n_listed, n_listed_before_lookup;

static inline void on_listed(struct query *q, void *ctx)
{
    n_listed++;
    on_query(q, ctx);
}

static inline void on_looked_up(struct query *q, void *ctx)
{
    CHECK(q->err == OK && q->n_rows == 1);
    n_listed_before_lookup = n_listed;
    on_query(q, ctx);
}

TEST(a_look_up_does_not_wait_behind_listings)
{
    static struct query lists[400];
    struct query q;

    open_store();
    tx_init(&single);
    for (int i = 0; i < 5000; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        add_thing(&single, id, i);
    }
    CHECK_INT(end(), TX_COMMITTED);
    n_done = 0;
    for (int i = 0; i < 400; i++) {
        query_init(&lists[i], &thing, 50);
        query_if(&lists[i], THING_N, IS, value_int(-1)); /* has no index */
        store_read(store, &lists[i], on_listed, NULL);
    }
    query_init(&q, &thing, 1);
    query_if(&q, THING_ID, IS, value_text(STR("7")));
    store_read(store, &q, on_looked_up, NULL);
    wait_for(401);
    CHECK(n_listed == 400 && n_listed_before_lookup < 400);
    for (int i = 0; i < 400; i++)
        query_fini(&lists[i]);
    query_fini(&q);
    leave();
}

/* More shapes than anybody would keep statements for. */
TEST(any_number_of_different_operations_works)
{
    open_store();
    make_thing("a", 0);
    for (int mask = 0; mask < 600; mask++) {
        struct query q;

        query_init(&q, &thing, 10);
        for (int bit = 0; bit < 6; bit++)
            if (mask >> bit & 1)
                query_if(&q, THING_N, (enum compare)bit,
                         value_int(bit == IS           ? 0
                                   : bit == IS_LESS    ? 1
                                   : bit == IS_AT_MOST ? 0
                                   : bit == IS_MORE    ? -1
                                   : bit == IS_NOT     ? 7
                                                       : 0));
        if (mask >> 6)
            query_order(&q, (uint8_t)(mask >> 7 & 3), mask >> 6 & 1);
        CHECK(find(&q) == OK && q.n_rows == 1);
        query_fini(&q);
    }
    leave();
}

#endif
