/* What happens only with threads: they are started and stopped, die, and are
 * kept busy from both sides. */
#include "store/internal.h"
#include "test/lib/store_stage.h"

#include <sys/stat.h>

static void stage_opts(struct store_opts *opts)
{
    (void)opts;
}

TEST(opening_with_threads_survives_every_fault)
{
    struct why why;
    long nth = 0;
    bool has_fired;

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

/* Closing does not wait for a long read. */
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

/* A long read. */

/* Make reads of the feed take this many steps (0: forever). */
static void make_long(int n_steps)
{
    char path[256], text[512];
    sqlite3 *sql;

    snprintf(text, sizeof(text),
             "DROP TABLE feed; CREATE VIEW feed AS WITH RECURSIVE "
             "f(seq, what) AS (SELECT 1, 'x' UNION ALL SELECT seq + 1, 'x' "
             "FROM f WHERE seq <> %d) SELECT seq, what FROM f, thing",
             n_steps);
    snprintf(path, sizeof(path), "%s/%s", stage_root, DB_NAME);
    CHECK(sqlite3_open(path, &sql) == SQLITE_OK);
    CHECK(db_exec(sql, text) == SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
}

static void open_endless(void)
{
    static const struct store_sabotage patient = {
        .read_ms = 1000 * 1000, .checkpoint_pages = 10, .restart_pages = 20};

    store_sabotage(&patient);
    open_store();
    make_thing("a", 1);
    make_long(0);
}

static enum err endless_err; /* OK: it is not back */

static void on_endless(struct query *q, void *ctx)
{
    (void)ctx;
    CHECK(q->err);
    endless_err = q->err;
    query_fini(q);
    loop_stop(&loop);
}

static void ask_endless(struct query *q)
{
    query_init(q, &feed, 5);
    query_if(q, FEED_WHAT, IS, value_text(STR("y")));
    store_read(store, q, on_endless, NULL);
}

/* n of the thing "a", by a look-up. */
static int64_t look_up(void)
{
    int64_t n = -1;
    struct query q;

    query_init(&q, &thing, 1);
    query_if(&q, THING_ID, IS, value_text(STR("a")));
    CHECK(find(&q) == OK);
    if (q.n_rows)
        n = row_int(q.rows, THING_N);
    query_fini(&q);
    return n;
}

TEST(a_listing_without_end_holds_up_neither_look_ups_nor_writing)
{
    struct query endless;

    open_endless();
    ask_endless(&endless);
    for (int i = 1; i < 100; i++) { /* the log should restart */
        CHECK_INT(look_up(), i);
        CHECK_INT(add_to_a(1, 0), TX_COMMITTED);
    }
    CHECK(store_stats(store).log_bytes > 20 * DB_PAGE_BYTES);
    store_forget(store, &endless);
    while (!endless_err)
        loop_run(&loop);
    CHECK_INT(endless_err, ERR_GONE);
    /* Without readers it does, and listings go on. */
    CHECK_INT(n_of("a"), 100);
    CHECK(store_stats(store).log_bytes < 20 * DB_PAGE_BYTES);
    leave();
}

TEST(who_left_is_not_read_for_even_behind_a_listing_without_end)
{
    static struct query others[10];
    struct query endless;
    int n;

    open_endless();
    ask_endless(&endless);
    CHECK_INT(look_up(), 1);
    for (int i = 0; i < 10; i++) {
        query_init(&others[i], &thing, 5);
        ask(&others[i]);
    }
    CHECK_INT(look_up(), 1); /* they are handed over by now */
    n = n_done;
    for (int i = 0; i < 10; i++)
        store_forget(store, &others[i]);
    wait_for(n + 10); /* and the endless one still goes on */
    CHECK_INT(endless_err, OK);
    for (int i = 0; i < 10; i++) {
        CHECK(others[i].err == ERR_GONE && others[i].n_rows == 0);
        query_fini(&others[i]);
    }
    close_store();
    CHECK_INT(endless_err, ERR_STOPPING);
    loop_fini(&loop);
}

/* The log, while both lanes are never empty. Each tx waits for a listing that
 * came back, so how fast anybody is does not matter. */
enum { READERS = 6, LOG_TXS = 30, LOG_TX_BYTES = 100 * 1024 };

static struct query readers[READERS];
static struct tx log_tx;
static int n_log_txs;
static int64_t n_lists, n_lists_at_tx, longest_log;
static bool is_log_tx_out;

static void read_again(int i);
static void write_more(void);

static int64_t log_file_bytes(void)
{
    char path[256];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s-wal", stage_root, DB_NAME);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void on_read_again(struct query *q, void *ctx)
{
    bool is_list = !query_is_lookup(q);

    (void)ctx;
    CHECK_INT(q->err, OK);
    query_fini(q);
    if (n_log_txs == LOG_TXS) {
        if (--n_lanes_left == 0)
            loop_stop(&loop);
        return;
    }
    n_lists += is_list;
    if (!is_log_tx_out && n_lists > n_lists_at_tx)
        write_more();
    read_again((int)(q - readers));
}

/* The first half of them are listings, the others look-ups; all of them are
 * long. */
static void read_again(int i)
{
    query_init(&readers[i], &feed, i < READERS / 2 ? 5 : 1);
    query_if(&readers[i], FEED_WHAT, IS, value_text(STR("y")));
    store_read(store, &readers[i], on_read_again, NULL);
}

static void on_log_tx(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK_INT(tx->result, TX_COMMITTED);
    tx_fini(tx);
    is_log_tx_out = false;
    n_log_txs++;
    if (log_file_bytes() > longest_log)
        longest_log = log_file_bytes();
}

static void write_more(void)
{
    static char bytes[LOG_TX_BYTES];
    struct tx_op *op;

    memset(bytes, n_log_txs, sizeof(bytes)); /* or nothing were changed */
    is_log_tx_out = true;
    n_lists_at_tx = n_lists;
    tx_init(&log_tx);
    op = tx_update(&log_tx, &thing);
    tx_if(op, THING_ID, IS, value_text(STR("0")));
    tx_set(op, THING_DATA, value_blob((struct str){bytes, sizeof(bytes)}));
    store_submit(store, &log_tx, on_log_tx, NULL);
}

/* How long the log became. */
static int64_t read_and_write(bool never_pauses)
{
    struct store_sabotage how = {.synchronous = "OFF",
                                 .checkpoint_pages = 50,
                                 .restart_pages = 150,
                                 .never_pauses = never_pauses};

    store_sabotage(&how);
    open_store();
    make_thing("0", 0);
    make_long(50000);
    n_lanes_left = READERS;
    for (int i = 0; i < READERS; i++)
        read_again(i);
    while (n_lanes_left)
        loop_run(&loop);
    leave();
    return longest_log;
}

enum { LOG_BOUND = 400 * DB_PAGE_BYTES };

TEST(the_log_stays_bounded_while_everybody_keeps_reading)
{
    CHECK(read_and_write(false) < LOG_BOUND);
}

TEST(and_would_not_if_nobody_made_way)
{
    CHECK(read_and_write(true) > LOG_BOUND);
}
