#ifndef STORE_CONFORM_LIFE_H
#define STORE_CONFORM_LIFE_H

/* See store_conform.h: limits, the order of events, life and death,
 * versions. */

#include "test/lib/store_stage.h"

TEST(more_than_may_wait_are_refused_at_once)
{
    static struct tx txs[1003];
    static struct query queries[1003];
    int n_refused = 0;

    open_store(); /* a thousand may wait */
    for (int i = 0; i < 1003; i++) {
        tx_init(&txs[i]);
        submit(&txs[i]);
        query_init(&queries[i], &thing, 1);
        ask(&queries[i]);
    }
    wait_for(n_done + 2006);
    for (int i = 0; i < 1003; i++) {
        CHECK_INT(txs[i].result, i < 1000 ? TX_COMMITTED : TX_REFUSED);
        CHECK(i < 1000 || txs[i].err == ERR_OVERLOADED);
        n_refused += queries[i].err == ERR_OVERLOADED;
        CHECK(queries[i].err == OK || queries[i].err == ERR_OVERLOADED);
        tx_fini(&txs[i]);
        query_fini(&queries[i]);
    }
    CHECK_INT(n_refused, 3);
    make_thing("a", 1); /* and then there is room again */
    CHECK_INT(n_of("a"), 1);
    leave();
}

static void on_done_after_committed(struct tx *tx, void *ctx)
{
    CHECK(last_committed == tx);
    on_tx(tx, ctx);
}

TEST(who_sees_all_commits_sees_each_before_its_own_callback)
{
    struct tx tx;

    open_store();
    tx_init(&tx);
    add_thing(&tx, "a", 1);
    store_submit(store, &tx, on_done_after_committed, NULL);
    wait_for(n_done + 1);
    tx_fini(&tx);
    CHECK_INT(n_committed_seen, 1);
    tx_init(&single);
    add_thing(&single, "a", 1);
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(n_committed_seen, 1);
    leave();
}

static struct tx follow_up;

static void on_first(struct tx *tx, void *ctx)
{
    store_submit(store, &follow_up, on_tx, NULL);
    on_tx(tx, ctx);
}

TEST(a_callback_may_submit_the_next_one)
{
    struct tx tx;

    open_store();
    tx_init(&tx);
    tx_init(&follow_up);
    add_thing(&tx, "a", 1);
    add_thing(&follow_up, "b", 2);
    store_submit(store, &tx, on_first, NULL);
    wait_for(n_done + 2);
    CHECK(follow_up.result == TX_COMMITTED);
    tx_fini(&tx);
    tx_fini(&follow_up);
    CHECK_INT(n_of("b"), 2);
    leave();
}

TEST(closing_commits_what_was_submitted_and_gives_all_back)
{
    static struct tx txs[100];
    struct query q;

    open_store();
    for (int i = 0; i < 100; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        tx_init(&txs[i]);
        add_thing(&txs[i], id, i);
        submit(&txs[i]);
    }
    query_init(&q, &thing, 1);
    ask(&q);
    close_store();
    CHECK_INT(n_done, 101);
    for (int i = 0; i < 100; i++) {
        CHECK(txs[i].result == TX_COMMITTED);
        tx_fini(&txs[i]);
    }
    CHECK(q.err == OK || q.err == ERR_STOPPING);
    query_fini(&q);
    open_store();
    CHECK_INT(count(&thing), 100);
    leave();
}

TEST(what_is_submitted_while_closing_is_refused)
{
    struct tx tx;

    open_store();
    tx_init(&tx);
    tx_init(&follow_up);
    add_thing(&tx, "a", 1);
    add_thing(&follow_up, "b", 2);
    store_submit(store, &tx, on_first, NULL);
    close_store();
    CHECK(tx.result == TX_COMMITTED);
    CHECK(follow_up.result == TX_REFUSED && follow_up.err == ERR_STOPPING);
    tx_fini(&tx);
    tx_fini(&follow_up);
    store_close(NULL);
    open_store();
    CHECK_INT(n_of("b"), -1);
    leave();
}

TEST(every_opening_is_counted)
{
    int64_t first;

    open_store();
    first = store_epoch(store);
    CHECK(first == 1);
    close_store();
    open_store();
    CHECK(store_epoch(store) == 2);
    close_store();
    open_store();
    CHECK(store_epoch(store) == 3);
    leave();
}

TEST(figures_are_kept)
{
    struct store_stats st;

    open_store();
    make_thing("a", 1);
    tx_init(&single);
    add_thing(&single, "b", 1);
    add_thing(&single, "a", 1);
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(n_of("a"), 1);
    st = store_stats(store);
    CHECK_INT(st.txs_total[TX_COMMITTED], 1);
    CHECK_INT(st.txs_total[TX_GUARD_FAILED], 1);
    CHECK_INT(st.rows_written_total, 1);
    CHECK_INT(st.queries_total, 1);
    CHECK(st.batches_total == 2 && st.data_bytes > 0 && st.waiting == 0);
    CHECK(st.batch_us_total >= st.sync_us_total && !st.is_full);
    leave();
}

/* Versions. */

static const struct column thing_columns_v2[] = {
    {.name = "id", .type = COLUMN_TEXT},
    {.name = "n", .type = COLUMN_INT},
    {.name = "note", .type = COLUMN_TEXT},
    {.name = "data", .type = COLUMN_BLOB},
    {.name = "extra", .type = COLUMN_INT, .since = 2},
};
static const struct table_index thing_indexes_v2[] = {
    {.name = "thing_note", .columns = {THING_NOTE}, .n_columns = 1},
    {.name = "thing_extra",
     .columns = {THING_EXTRA, THING_N},
     .n_columns = 2,
     .is_unique = true,
     .since = 2},
};
static const struct table thing_v2 = {
    .name = "thing",
    .columns = thing_columns_v2,
    .n_columns = 5,
    .n_key = 1,
    .indexes = thing_indexes_v2,
    .n_indexes = 2,
};
static const struct column pair_columns[] = {{.name = "a", .type = COLUMN_INT},
                                             {.name = "b", .type = COLUMN_INT}};
static const struct table pair = {.name = "pair",
                                  .columns = pair_columns,
                                  .n_columns = 2,
                                  .n_key = 2,
                                  .since = 2};
static const struct table *const all_tables_v2[] = {&thing_v2, &part, &feed,
                                                    &pair};
static const struct schema things_v2 = {
    .room = "things", .tables = all_tables_v2, .n_tables = 4};
static const struct schema *const schemas_v2[] = {&things_v2};

static const struct table *const pair_alone[] = {&pair};
static const struct schema other_room = {
    .room = "other", .tables = pair_alone, .n_tables = 1};
static const struct schema *const two_rooms[] = {&things_v1, &other_room};

TEST(a_later_version_adds_what_it_needs_and_keeps_the_rest)
{
    struct tx_op *op;
    struct why why = {""};
    struct query q;

    open_store();
    make_thing("old", 7);
    close_store();
    for (int i = 0; i < 2; i++) {
        CHECK(try_open(schemas_v2, 1, &why) == OK);
        CHECK_INT(store_epoch(store), 2 + i);
        close_store();
    }
    CHECK(try_open(schemas_v2, 1, &why) == OK);
    query_init(&q, &thing_v2, 5);
    CHECK(find(&q) == OK && q.n_rows == 1);
    CHECK(row_int(q.rows, THING_N) == 7 && row_is_null(q.rows, THING_EXTRA));
    query_fini(&q);
    op = begin(tx_insert, &pair);
    tx_set(op, 0, value_int(1));
    tx_set(op, 1, value_int(2));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_update, &thing_v2);
    tx_set(op, THING_EXTRA, value_int(1));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_insert, &thing_v2);
    tx_set(op, THING_ID, value_text(STR("new")));
    tx_set(op, THING_N, value_int(7));
    tx_set(op, THING_EXTRA, value_int(1));
    CHECK_INT(end(), TX_GUARD_FAILED);
    leave();
}

TEST(a_database_of_a_newer_version_is_left_alone)
{
    struct why why = {""};

    CHECK(try_open(schemas_v2, 1, &why) == OK);
    close_store();
    CHECK(try_open(schemas_v1, 1, &why) == ERR_BAD_CONFIG);
    CHECK(!store);
    CHECK(strstr(why.text, "newer") && strstr(why.text, "\"things\""));
    CHECK(strstr(why.text, "version 2") && strstr(why.text, "up to 1"));
    CHECK(try_open(schemas_v2, 1, &why) == OK);
    CHECK_INT(store_epoch(store), 2); /* the refused one did not count */
    leave();
}

TEST(a_room_that_is_not_known_makes_a_database_newer)
{
    struct why why = {""};

    CHECK(try_open(two_rooms, 2, &why) == OK);
    close_store();
    CHECK(try_open(schemas_v1, 1, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "newer") && strstr(why.text, "\"other\""));
    CHECK(try_open(two_rooms, 2, &why) == OK);
    leave();
}

#endif
