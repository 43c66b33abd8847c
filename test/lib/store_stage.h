#ifndef STORE_STAGE_H
#define STORE_STAGE_H

/* A store on a stage of its own: tables of all kinds, a folder, a loop, and
 * short words for what tests of the store do. A test program defines
 *
 *     static void stage_opts(struct store_opts *opts);
 *
 * which says how its kind of store is to be opened; folder, tables and loop
 * are filled in already. */

#include "base/fault.h"
#include "base/loop.h"
#include "store/store.h"
#include "test/lib/folder.h"
#include "test/t.h"

static void stage_opts(struct store_opts *opts);

/* Tables of all kinds. */

enum { THING_ID, THING_N, THING_NOTE, THING_DATA, THING_EXTRA };
static const struct column thing_columns[] = {
    {.name = "id", .type = COLUMN_TEXT},
    {.name = "n", .type = COLUMN_INT},
    {.name = "note", .type = COLUMN_TEXT},
    {.name = "data", .type = COLUMN_BLOB},
};
static const struct table_index thing_indexes[] = {
    {.name = "thing_note", .columns = {THING_NOTE}, .n_columns = 1},
};
static const struct table thing = {
    .name = "thing",
    .columns = thing_columns,
    .n_columns = 4,
    .n_key = 1,
    .indexes = thing_indexes,
    .n_indexes = 1,
};

enum { PART_THING, PART_NR, PART_CODE };
static const struct column part_columns[] = {
    {.name = "thing", .type = COLUMN_TEXT, .child_of = &thing},
    {.name = "order", .type = COLUMN_INT}, /* a word of SQL, on purpose */
    {.name = "code", .type = COLUMN_TEXT},
};
static const struct table_index part_indexes[] = {
    {.name = "part_code",
     .columns = {PART_CODE},
     .n_columns = 1,
     .is_unique = true},
};
static const struct table part = {
    .name = "part",
    .columns = part_columns,
    .n_columns = 3,
    .n_key = 2,
    .indexes = part_indexes,
    .n_indexes = 1,
};

enum { FEED_SEQ, FEED_WHAT };
static const struct column feed_columns[] = {
    {.name = "seq", .type = COLUMN_INT},
    {.name = "what", .type = COLUMN_TEXT},
};
static const struct table feed = {
    .name = "feed",
    .columns = feed_columns,
    .n_columns = 2,
    .n_key = 1,
    .is_counted = true,
};

static const struct table *const all_tables[] = {&thing, &part, &feed};
static const struct schema things_v1 = {
    .room = "things", .tables = all_tables, .n_tables = 3};
static const struct schema *const schemas_v1[] = {&things_v1};

/* A store in a folder of its own, and a loop to turn. */

static char stage_root[64];
static struct loop loop;
static struct store *store;
static struct store_folder folder;
static int n_committed_seen, n_fatal_seen;
static struct why fatal_why;
static const struct tx *last_committed;

static void remove_root(void)
{
    folder_remove(stage_root);
}

static void on_committed(void *ctx, const struct tx *tx)
{
    (void)ctx;
    n_committed_seen++;
    last_committed = tx;
}

static void on_fatal(void *ctx, const struct why *why)
{
    (void)ctx;
    n_fatal_seen++;
    fatal_why = *why;
}

/* The folder of this test, made with the first call. */
static struct str stage_folder(void)
{
    if (!stage_root[0]) {
        snprintf(stage_root, sizeof(stage_root), "%s/signalbox-test-XXXXXX",
                 t_above());
        CHECK(mkdtemp(stage_root));
        atexit(remove_root);
        CHECK(loop_init(&loop, clock_system()) == OK);
    }
    return str_of(stage_root);
}

static enum err try_open(const struct schema *const *schemas, size_t n,
                         struct why *why)
{
    struct store_opts opts = {
        .folder = stage_folder().p,
        .schemas = schemas,
        .n_schemas = n,
        .max_waiting = 1000,
        .loop = &loop,
        .on_committed = on_committed,
        .on_fatal = on_fatal,
    };
    enum err e;

    stage_opts(&opts);
    e = store_folder_open(&folder, stage_folder(), why);
    if (!e)
        e = store_open(&store, &opts, why);
    if (e)
        store_folder_close(&folder);
    return e;
}

static void open_store(void)
{
    struct why why = {""};

    if (try_open(schemas_v1, 1, &why) != OK)
        T_FAIL("%s", why.text);
}

static void close_store(void)
{
    store_close(store);
    store = NULL;
    store_folder_close(&folder);
}

/* At the end of a test: nothing may be left. */
static inline void leave(void)
{
    close_store();
    loop_fini(&loop);
}

static int n_done;
static bool is_submitting;

static void on_tx(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
    CHECK(!is_submitting); /* never before the call has returned */
    n_done++;
    loop_stop(&loop);
}

static void on_query(struct query *q, void *ctx)
{
    (void)q;
    (void)ctx;
    CHECK(!is_submitting);
    n_done++;
    loop_stop(&loop);
}

static void submit(struct tx *tx)
{
    is_submitting = true;
    store_submit(store, tx, on_tx, NULL);
    is_submitting = false;
}

static void ask(struct query *q)
{
    is_submitting = true;
    store_read(store, q, on_query, NULL);
    is_submitting = false;
}

/* Turn until n in all have come back. */
static void wait_for(int n)
{
    while (n_done < n)
        loop_run(&loop);
}

/* Submit and wait. */
static enum tx_result commit(struct tx *tx)
{
    submit(tx);
    wait_for(n_done + 1);
    return tx->result;
}

static inline enum err find(struct query *q)
{
    ask(q);
    wait_for(n_done + 1);
    return q->err;
}

static struct tx_op *add_thing(struct tx *tx, const char *id, int64_t n)
{
    struct tx_op *op = tx_insert(tx, &thing);

    tx_set(op, THING_ID, value_text(str_of(id)));
    tx_set(op, THING_N, value_int(n));
    return op;
}

static inline void make_thing(const char *id, int64_t n)
{
    struct tx tx;

    tx_init(&tx);
    add_thing(&tx, id, n);
    CHECK(commit(&tx) == TX_COMMITTED);
    tx_fini(&tx);
}

/* n of a thing; -1 when it is not there. */
static inline int64_t n_of(const char *id)
{
    int64_t n = -1;
    struct query q;

    query_init(&q, &thing, 2);
    query_if(&q, THING_ID, IS, value_text(str_of(id)));
    CHECK(find(&q) == OK);
    CHECK(q.n_rows <= 1 && !q.has_more);
    if (q.n_rows)
        n = row_int(q.rows, THING_N);
    query_fini(&q);
    return n;
}

static inline size_t count(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 100000);
    CHECK(find(&q) == OK && !q.has_more);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

/* One operation by itself: begin, say what it does, and see what comes. */
static struct tx single;

typedef struct tx_op *stage_kind(struct tx *tx, const struct table *t);

static inline struct tx_op *begin(stage_kind *kind, const struct table *t)
{
    tx_init(&single);
    return kind(&single, t);
}

static inline enum tx_result end(void)
{
    enum tx_result r = commit(&single);

    tx_fini(&single);
    return r;
}

static inline enum tx_result put_part(stage_kind *kind, const char *of,
                                      int64_t nr, const char *code)
{
    struct tx_op *op = begin(kind, &part);

    tx_set(op, PART_THING, value_text(str_of(of)));
    tx_set(op, PART_NR, value_int(nr));
    tx_set(op, PART_CODE, value_text_or_null(str_of(code)));
    return end();
}

/* To the thing called "a". */
static inline enum tx_result add_to_a(int64_t delta, int64_t floor)
{
    struct tx_op *op;

    tx_init(&single);
    op = tx_add(&single, &thing, THING_N, delta, floor);
    tx_if(op, THING_ID, IS, value_text(STR("a")));
    return end();
}

/* The number it got. */
static inline int64_t append_feed(const char *what)
{
    struct tx tx;
    struct tx_op *op;
    int64_t seq;

    tx_init(&tx);
    op = tx_insert(&tx, &feed);
    if (what)
        tx_set(op, FEED_WHAT, value_text(str_of(what)));
    CHECK(commit(&tx) == TX_COMMITTED);
    seq = op->seq;
    tx_fini(&tx);
    return seq;
}

#endif
