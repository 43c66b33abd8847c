#ifndef STORE_CONFORM_WRITE_H
#define STORE_CONFORM_WRITE_H

/* See store_conform.h: operations and their guards. */

#include "test/lib/store_stage.h"

/* Values. */

TEST(every_kind_of_value_comes_back_as_it_was)
{
    static const char nul[] = "a\0b";
    struct query q;
    struct tx tx;
    struct tx_op *op;

    open_store();
    tx_init(&tx);
    op = add_thing(&tx, "low", INT64_MIN);
    tx_set(op, THING_NOTE, value_text(STR("")));
    tx_set(op, THING_DATA, value_blob(STR("")));
    op = add_thing(&tx, "top", INT64_MAX);
    tx_set(op, THING_NOTE, value_text((struct str){nul, 3}));
    tx_set(op, THING_DATA, value_blob(STR("\xff\x00\x80")));
    op = tx_insert(&tx, &thing);
    tx_set(op, THING_ID, value_text(STR("")));
    CHECK(commit(&tx) == TX_COMMITTED);
    tx_fini(&tx);

    query_init(&q, &thing, 10);
    query_order(&q, THING_ID, false);
    CHECK(find(&q) == OK && q.n_rows == 3);
    const struct row *r = q.rows;
    CHECK_STR(row_str(r, THING_ID), "");
    CHECK(row_is_null(r, THING_N) && row_is_null(r, THING_NOTE) &&
          row_is_null(r, THING_DATA));
    r = r->next;
    CHECK(row_int(r, THING_N) == INT64_MIN);
    CHECK(r->values[THING_NOTE].type == VALUE_TEXT &&
          row_str(r, THING_NOTE).n == 0);
    CHECK(r->values[THING_DATA].type == VALUE_BLOB &&
          row_str(r, THING_DATA).n == 0);
    r = r->next;
    CHECK(row_int(r, THING_N) == INT64_MAX);
    CHECK(str_eq(row_str(r, THING_NOTE), (struct str){nul, 3}));
    CHECK(str_eq(row_str(r, THING_DATA), STR("\xff\x00\x80")));
    CHECK(!r->next);
    query_fini(&q);
    leave();
}

/* Operations and their guards. */

TEST(a_key_is_there_once)
{
    struct tx tx;
    const struct tx_op *second;

    open_store();
    make_thing("a", 1);
    tx_init(&tx);
    add_thing(&tx, "b", 2);
    second = add_thing(&tx, "a", 3);
    add_thing(&tx, "c", 4);
    CHECK(commit(&tx) == TX_GUARD_FAILED);
    CHECK(tx.failed_op == second);
    tx_fini(&tx);
    CHECK_INT(n_of("a"), 1);
    CHECK_INT(n_of("b"), -1); /* nothing of it is left */
    CHECK_INT(n_of("c"), -1);
    leave();
}

TEST(those_beside_a_failed_one_are_committed)
{
    static struct tx txs[50];
    int before;

    open_store();
    before = n_done;
    for (int i = 0; i < 50; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%d", i % 10 == 3 ? 0 : i);
        tx_init(&txs[i]);
        add_thing(&txs[i], id, i);
        submit(&txs[i]);
    }
    CHECK(store_stats(store).waiting == 50);
    wait_for(before + 50);
    CHECK(store_stats(store).waiting == 0);
    for (int i = 0; i < 50; i++) {
        CHECK_INT(txs[i].result, i % 10 == 3 ? TX_GUARD_FAILED : TX_COMMITTED);
        tx_fini(&txs[i]);
    }
    CHECK_INT(count(&thing), 45);
    leave();
}

static struct tx *in_order[64];
static int n_in_order;

static void on_in_order(struct tx *tx, void *ctx)
{
    in_order[n_in_order++] = tx;
    on_tx(tx, ctx);
}

TEST(txs_happen_and_are_reported_in_the_order_they_were_submitted)
{
    static struct tx txs[40];
    struct tx_op *op;

    open_store();
    make_thing("a", 0);
    for (int i = 0; i < 40; i++) {
        tx_init(&txs[i]);
        op = tx_update(&txs[i], &thing);
        tx_if(op, THING_N, IS, value_int(i)); /* what the one before made */
        tx_set(op, THING_N, value_int(i + 1));
        store_submit(store, &txs[i], on_in_order, NULL);
    }
    wait_for(n_done + 40);
    for (int i = 0; i < 40; i++) {
        CHECK(in_order[i] == &txs[i] && txs[i].result == TX_COMMITTED);
        tx_fini(&txs[i]);
    }
    CHECK_INT(n_of("a"), 40);
    leave();
}

TEST(an_update_is_of_exactly_one_row)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    make_thing("b", 1);
    op = begin(tx_update, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    tx_set(op, THING_N, value_int(5));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_update, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    tx_if(op, THING_N, IS, value_int(1));
    tx_set(op, THING_N, value_int(6));
    CHECK_INT(end(), TX_GUARD_FAILED);
    make_thing("c", 1);
    op = begin(tx_update, &thing);
    tx_if(op, THING_N, IS, value_int(1));
    tx_set(op, THING_N, value_int(7));
    CHECK_INT(end(), TX_GUARD_FAILED);
    /* Without anything to set, the guard is all there is to it. */
    op = begin(tx_update, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(n_of("a"), 5);
    CHECK_INT(n_of("b"), 1);
    CHECK_INT(n_of("c"), 1);
    leave();
}

TEST(a_delete_is_of_exactly_one_row)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    make_thing("b", 1);
    make_thing("c", 2);
    op = begin(tx_delete, &thing);
    tx_if(op, THING_N, IS, value_int(1));
    CHECK_INT(end(), TX_GUARD_FAILED);
    op = begin(tx_delete, &thing);
    tx_if(op, THING_N, IS, value_int(3));
    CHECK_INT(end(), TX_GUARD_FAILED);
    op = begin(tx_delete, &thing);
    tx_if(op, THING_N, IS, value_int(2));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(count(&thing), 2);
    CHECK_INT(n_of("c"), -1);
    leave();
}

TEST(a_put_makes_or_changes)
{
    struct tx_op *op;
    struct query q;

    open_store();
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    tx_set(op, THING_N, value_int(1));
    tx_set(op, THING_NOTE, value_text(STR("kept")));
    CHECK_INT(end(), TX_COMMITTED);
    /* The guard is for a row that is there. */
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("b")));
    tx_set(op, THING_N, value_int(9));
    tx_if(op, THING_N, IS, value_int(77));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    tx_set(op, THING_N, value_int(2));
    tx_if(op, THING_N, IS, value_int(1));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    tx_set(op, THING_N, value_int(3));
    tx_if(op, THING_N, IS, value_int(1));
    CHECK_INT(end(), TX_GUARD_FAILED);
    /* Only a key. */
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_put, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    tx_if(op, THING_N, IS, value_int(1));
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(n_of("a"), 2);
    CHECK_INT(n_of("b"), 9);
    query_init(&q, &thing, 1);
    query_if(&q, THING_ID, IS, value_text(STR("a")));
    CHECK(find(&q) == OK && q.n_rows == 1);
    CHECK_STR(row_str(q.rows, THING_NOTE), "kept"); /* was not set again */
    query_fini(&q);
    leave();
}

TEST(what_a_put_sets_for_new_rows_stays_in_old_ones)
{
    struct query q;

    open_store();
    for (int64_t n = 1; n <= 3; n++) {
        struct tx_op *op = begin(tx_put, &thing);

        tx_set(op, THING_ID, value_text(STR("a")));
        tx_set_new(op, THING_N, value_int(n));
        if (n < 3) /* and once there is nothing to change at all */
            tx_set(op, THING_NOTE, value_text(n == 1 ? STR("x") : STR("y")));
        CHECK_INT(end(), TX_COMMITTED);
    }
    query_init(&q, &thing, 10);
    CHECK(find(&q) == OK && q.n_rows == 1);
    CHECK_INT(row_int(q.rows, THING_N), 1);
    CHECK_STR(row_str(q.rows, THING_NOTE), "y");
    query_fini(&q);
    leave();
}

TEST(an_expectation_changes_nothing)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    make_thing("b", 1);
    op = begin(tx_expect, &thing);
    tx_if(op, THING_N, IS, value_int(1));
    add_thing(&single, "c", 3);
    CHECK_INT(end(), TX_COMMITTED);
    op = begin(tx_expect, &thing);
    tx_if(op, THING_N, IS, value_int(2));
    add_thing(&single, "d", 3);
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(count(&thing), 3);
    leave();
}

TEST(an_addition_stays_at_or_above_its_floor)
{
    open_store();
    make_thing("a", 10);
    CHECK_INT(add_to_a(-11, 0), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(-10, 0), TX_COMMITTED);
    CHECK_INT(add_to_a(-1, 0), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(-5, -5), TX_COMMITTED);
    CHECK_INT(add_to_a(-1, -5), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(0, -5), TX_COMMITTED);
    CHECK_INT(add_to_a(0, -4), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(5, 0), TX_COMMITTED);
    CHECK_INT(n_of("a"), 0);
    leave();
}

TEST(an_addition_never_leaves_the_range_of_its_numbers)
{
    open_store();
    make_thing("a", INT64_MAX - 1);
    CHECK_INT(add_to_a(1, INT64_MIN), TX_COMMITTED);
    CHECK_INT(add_to_a(1, INT64_MIN), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(INT64_MAX, INT64_MIN), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(1, INT64_MAX), TX_GUARD_FAILED);
    CHECK(n_of("a") == INT64_MAX);
    CHECK_INT(add_to_a(-INT64_MAX, INT64_MIN), TX_COMMITTED);
    CHECK_INT(add_to_a(INT64_MIN, INT64_MIN), TX_COMMITTED);
    CHECK(n_of("a") == INT64_MIN);
    CHECK_INT(add_to_a(-1, INT64_MIN), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(INT64_MIN, INT64_MIN), TX_GUARD_FAILED);
    CHECK_INT(add_to_a(INT64_MAX, INT64_MIN), TX_COMMITTED);
    CHECK(n_of("a") == -1);
    leave();
}

TEST(nothing_can_be_added_to_a_number_that_is_not_there)
{
    struct tx_op *op;

    open_store();
    make_thing("b", 1);
    CHECK_INT(add_to_a(1, 0), TX_GUARD_FAILED); /* there is no "a" */
    op = begin(tx_insert, &thing);
    tx_set(op, THING_ID, value_text(STR("a")));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(add_to_a(1, 0),
              TX_GUARD_FAILED); /* and then its number is NULL */
    /* Fields may be set along with it. */
    tx_init(&single);
    op = tx_add(&single, &thing, THING_N, 4, 0);
    tx_if(op, THING_ID, IS, value_text(STR("b")));
    tx_set(op, THING_NOTE, value_text(STR("paid")));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(n_of("b"), 5);
    leave();
}

TEST(many_who_draw_on_one_account_get_exactly_what_is_there)
{
    static struct tx txs[160];
    int n_granted = 0;

    open_store();
    make_thing("account", 50 * 7 + 6);
    for (int i = 0; i < 160; i++) {
        struct tx_op *op;

        tx_init(&txs[i]);
        op = tx_add(&txs[i], &thing, THING_N, -7, 0);
        tx_if(op, THING_ID, IS, value_text(STR("account")));
        submit(&txs[i]);
    }
    wait_for(n_done + 160);
    for (int i = 0; i < 160; i++) {
        n_granted += txs[i].result == TX_COMMITTED;
        tx_fini(&txs[i]);
    }
    CHECK_INT(n_granted, 50);
    CHECK_INT(n_of("account"), 6);
    leave();
}

/* What it is for goes through with the rest of the tx, row or no row. */
TEST(amending_changes_what_fits_and_guards_nothing)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    make_thing("b", 2);
    op = begin(tx_amend, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    tx_set(op, THING_N, value_int(7));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(n_of("a"), 7);
    CHECK_INT(n_of("b"), 2);
    op = begin(tx_amend, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("c")));
    tx_set(op, THING_N, value_int(9));
    op = tx_update(&single, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("b")));
    tx_set(op, THING_N, value_int(3));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(n_of("b"), 3);
    CHECK_INT(count(&thing), 2);
    /* Nothing of it where another guard fails. */
    op = begin(tx_amend, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    tx_set(op, THING_N, value_int(8));
    op = tx_update(&single, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("c")));
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(n_of("a"), 7);
    leave();
}

TEST(pruning_takes_what_fits_up_to_its_limit)
{
    struct tx tx;
    struct tx_op *op;
    static const struct {
        size_t limit, want;
    } steps[] = {{0, 0}, {4, 4}, {1, 1}, {100, 5}, {100, 0}};

    open_store();
    tx_init(&tx);
    for (int i = 0; i < 20; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        add_thing(&tx, id, i);
    }
    CHECK(commit(&tx) == TX_COMMITTED);
    tx_fini(&tx);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        tx_init(&tx);
        op = tx_prune(&tx, &thing, steps[i].limit);
        tx_if(op, THING_N, IS_LESS, value_int(10));
        CHECK(commit(&tx) == TX_COMMITTED);
        CHECK_INT(op->n_rows, steps[i].want);
        tx_fini(&tx);
    }
    CHECK_INT(count(&thing), 10);
    leave();
}

TEST(a_counted_key_is_never_given_twice)
{
    struct tx_op *op;
    int64_t a, b, c;

    open_store();
    a = append_feed("first");
    b = append_feed(NULL);
    CHECK(a >= 1 && b > a);
    op = begin(tx_delete, &feed);
    tx_if(op, FEED_SEQ, IS, value_int(b));
    CHECK_INT(end(), TX_COMMITTED);
    c = append_feed("third");
    CHECK(c > b);
    tx_init(&single);
    op = tx_prune(&single, &feed, 10);
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(count(&feed), 0);
    close_store();
    open_store();
    CHECK(append_feed("fourth") > c);
    leave();
}

TEST(a_unique_index_is_a_guard_and_nulls_are_all_different)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    CHECK_INT(put_part(tx_insert, "a", 1, "x"), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 2, "x"), TX_GUARD_FAILED);
    CHECK_INT(put_part(tx_put, "a", 2, "x"), TX_GUARD_FAILED);
    CHECK_INT(put_part(tx_insert, "a", 2, ""), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 3, ""), TX_COMMITTED);
    op = begin(tx_update, &part);
    tx_if(op, PART_NR, IS, value_int(3));
    tx_set(op, PART_CODE, value_text(STR("x")));
    CHECK_INT(end(), TX_GUARD_FAILED);
    CHECK_INT(count(&part), 3);
    leave();
}

TEST(rows_go_with_the_one_they_belong_to)
{
    struct tx_op *op;

    open_store();
    make_thing("a", 1);
    make_thing("b", 2);
    CHECK_INT(put_part(tx_insert, "a", 1, "x"), TX_COMMITTED);
    CHECK_INT(put_part(tx_insert, "a", 2, "y"), TX_COMMITTED);
    op = begin(tx_insert, &part);
    tx_set(op, PART_THING, value_text(STR("b")));
    tx_set(op, PART_NR, value_int(1));
    CHECK_INT(end(), TX_COMMITTED);
    /* None belongs to no one. */
    op = begin(tx_insert, &part);
    tx_set(op, PART_THING, value_text(STR("c")));
    tx_set(op, PART_NR, value_int(1));
    CHECK_INT(end(), TX_GUARD_FAILED);
    op = begin(tx_delete, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(count(&part), 1);
    tx_init(&single);
    op = tx_prune(&single, &thing, 5);
    CHECK_INT(end(), TX_COMMITTED);
    CHECK_INT(count(&part), 0);
    leave();
}

TEST(a_tx_without_operations_is_committed)
{
    open_store();
    tx_init(&single);
    CHECK_INT(end(), TX_COMMITTED);
    leave();
}

TEST(a_tx_that_could_not_be_built_is_refused)
{
    struct tx tx;

    open_store();
    tx_init(&tx);
    add_thing(&tx, "a", 1);
    fault_arm_at("model.tx_op", 1);
    add_thing(&tx, "b", 1);
    CHECK(fault_fired());
    CHECK(commit(&tx) == TX_REFUSED && tx.err == ERR_NOMEM);
    tx_fini(&tx);
    CHECK_INT(count(&thing), 0);
    leave();
}

#endif
