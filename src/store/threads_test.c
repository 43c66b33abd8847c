/* What happens only with threads: they are started and stopped, die, and are
 * kept busy from both sides. */
#include "store/internal.h"
#include "test/lib/store_stage.h"

static void stage_opts(struct store_opts *opts)
{
    (void)opts;
}

TEST(opening_with_threads_survives_every_fault)
{
    struct why why;
    long nth = 0;
    bool has_fired;

    if (access("/dev/shm", W_OK) == 0)
        stage_above = "/dev/shm";
    stage_folder();
    do {
        enum err e;

        why.text[0] = '\0';
        fault_arm(++nth);
        e = try_open(schemas_v1, 1, &why);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired ? e != OK && why.text[0] && !store : e == OK);
        if (!e)
            close_store();
    } while (has_fired);
    CHECK(nth > 30);
    loop_fini(&loop);
}

TEST(a_writer_that_dies_tells_the_loop)
{
    static struct tx txs[20];
    char path[256];

    open_store();
    make_thing("a", 1);
    snprintf(path, sizeof(path), "%s/%s", stage_root, DB_NAME);
    CHECK(unlink(path) == 0);
    for (int i = 0; i < 20; i++) {
        tx_init(&txs[i]);
        submit(&txs[i]);
        if (i == 9)
            wait_for(n_done + 10);
    }
    wait_for(n_done + 10);
    for (int i = 0; i < 20; i++) {
        CHECK(txs[i].result == TX_FATAL);
        tx_fini(&txs[i]);
    }
    CHECK_INT(n_fatal_seen, 1);
    leave();
}

/* Closing does not wait for somebody who reads for long. */
TEST(closing_cuts_reading_short)
{
    static struct query queries[200];
    int n_stopped = 0;

    open_store();
    tx_init(&single);
    for (int i = 0; i < 5000; i++) {
        char id[8];

        snprintf(id, sizeof(id), "%d", i);
        add_thing(&single, id, i);
    }
    CHECK_INT(end(), TX_COMMITTED);
    for (int i = 0; i < 200; i++) {
        query_init(&queries[i], &thing, 1);
        query_if(&queries[i], THING_N, IS, value_int(-1));
        ask(&queries[i]);
    }
    close_store();
    CHECK_INT(n_done, 201);
    for (int i = 0; i < 200; i++) {
        CHECK(queries[i].err == OK || queries[i].err == ERR_STOPPING);
        n_stopped += queries[i].err == ERR_STOPPING;
        query_fini(&queries[i]);
    }
    CHECK(n_stopped > 0);
    loop_fini(&loop);
}

/* Writers and readers at once, each again from its callback. */
enum { EACH = 300, LANES = 16 };

struct lane {
    struct tx tx;
    struct query q;
    int nr, n_left;
};

static struct lane lanes[LANES];
static int n_lanes_left;

static void write_next(struct lane *l);

static void on_read(struct query *q, void *ctx)
{
    struct lane *l = ctx;

    CHECK(q->err == OK && q->n_rows == 1);
    CHECK_INT(row_int(q->rows, THING_N), EACH - l->n_left);
    query_fini(q);
    if (l->n_left > 0)
        write_next(l);
    else if (--n_lanes_left == 0)
        loop_stop(&loop);
}

static struct value lane_id(const struct lane *l, char id[8])
{
    snprintf(id, 8, "%d", l->nr);
    return value_text(str_of(id));
}

static void on_written(struct tx *tx, void *ctx)
{
    struct lane *l = ctx;
    char id[8];

    CHECK(tx->result == TX_COMMITTED);
    tx_fini(tx);
    l->n_left--;
    query_init(&l->q, &thing, 2);
    query_if(&l->q, THING_ID, IS, lane_id(l, id));
    store_read(store, &l->q, on_read, l);
}

static void write_next(struct lane *l)
{
    struct tx_op *op;
    char id[8];

    tx_init(&l->tx);
    op = tx_add(&l->tx, &thing, THING_N, 1, 0);
    tx_if(op, THING_ID, IS, lane_id(l, id));
    op = tx_insert(&l->tx, &feed);
    tx_set(op, FEED_WHAT, lane_id(l, id));
    store_submit(store, &l->tx, on_written, l);
}

TEST(each_sees_its_own_writes_with_many_at_work)
{
    static const struct store_sabotage eager = {.synchronous = "OFF",
                                                .checkpoint_pages = 50};

    store_sabotage(&eager);
    open_store();
    for (int i = 0; i < LANES; i++) {
        char id[8];

        lanes[i].nr = i;
        lanes[i].n_left = EACH;
        lane_id(&lanes[i], id);
        make_thing(id, 0);
    }
    n_lanes_left = LANES;
    for (int i = 0; i < LANES; i++)
        write_next(&lanes[i]);
    while (n_lanes_left)
        loop_run(&loop);
    CHECK_INT(count(&feed), EACH * LANES);
    CHECK(store_stats(store).batches_total < EACH * LANES);
    leave();
}
