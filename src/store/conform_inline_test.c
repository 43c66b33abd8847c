/* The promises of store.h, kept by SQLite without threads. */
#include "test/lib/store_conform.h"

static void stage_opts(struct store_opts *opts)
{
    opts->is_inline = true;
}

TEST(without_a_loop_nothing_happens_but_in_a_turn)
{
    struct store_opts opts = {.folder = stage_folder().p,
                              .schemas = schemas_v1,
                              .n_schemas = 1,
                              .max_waiting = 3,
                              .is_inline = true};
    struct why why = {""};
    struct tx tx;
    struct query q;

    CHECK(store_open(&store, &opts, &why) == OK);
    tx_init(&tx);
    tx_init(&follow_up);
    add_thing(&tx, "a", 1);
    add_thing(&follow_up, "b", 1);
    store_submit(store, &tx, on_first, NULL);
    CHECK_INT(n_done, 0);
    store_turn(store); /* what it causes too */
    CHECK_INT(n_done, 2);
    CHECK(tx.result == TX_COMMITTED && follow_up.result == TX_COMMITTED);
    query_init(&q, &thing, 5);
    ask(&q);
    CHECK_INT(n_done, 2);
    store_turn(store);
    CHECK(n_done == 3 && q.err == OK && q.n_rows == 2);
    query_fini(&q);
    tx_fini(&tx);
    tx_fini(&follow_up);
    store_close(store);
    loop_fini(&loop);
}
