#ifndef TEST_LIB_LESSONS_STAGE_H
#define TEST_LIB_LESSONS_STAGE_H

/* Decisions, tasks and what is learnt from them on a real store, inline, with a
 * clock that is turned by hand. Decisions and tasks are written as rows; the
 * rest is as in the server. A stage can be taken down, with or without its last
 * words, and opened again on the same folder. */

#include <fcntl.h>

#include "base/fault.h"
#include "base/vec.h"
#include "choose/layers/choose.h"
#include "learn/judge.h"
#include "learn/learning.h"
#include "task/task.h"
#include "test/lib/folder.h"
#include "test/t.h"
#include "watch/watch.h"

enum {
    MINUTE_MS = 60 * 1000,
    WINDOW_MS = 30 * MINUTE_MS,
    DIMS = 8,
    PACKED = 8 + 2 * DIMS,
    STAGE_EXPORT_MAX = 16 * 1024 * 1024,
};

static struct {
    char root[64];
    struct store_folder folder;
    struct clock_fake now;
    struct loop loop;
    struct log log;
    struct store *store;
    struct learning *learning;
    struct id_maker ids;
    struct rand_seeded seed;
    struct learning_settings settings;
    struct str going_on;             /* this task is */
    enum learning_standing standing; /* of everybody to every agent */
    void (*meanwhile)(void); /* called when the job looks at a decision */
    const char *by;          /* who corrects; NULL: ann */
    bool ignores_voids;      /* of export_fold */
    int n_fatal;
    int n_txs; /* given back */
    enum tx_result result;
} stage;

static inline void stage_remove(void)
{
    folder_remove(stage.root);
}

static void stage_on_committed(void *ctx, const struct tx *tx)
{
    (void)ctx;
    if (stage.learning)
        learning_committed(stage.learning, tx);
}

static void stage_on_fatal(void *ctx, const struct why *why)
{
    (void)ctx;
    (void)why;
    stage.n_fatal++;
}

static bool stage_is_going_on(void *ctx, struct str task_id)
{
    (void)ctx;
    if (stage.meanwhile)
        stage.meanwhile();
    return str_eq(task_id, stage.going_on);
}

static enum learning_standing stage_stands(void *ctx, const struct decision *d)
{
    (void)ctx;
    (void)d;
    return stage.standing;
}

static inline enum err stage_try_start(struct why *why)
{
    static const struct schema *const schemas[] = {
        &task_schema, &watch_schema, &choose_schema, &learn_schema};
    struct store_opts opts = {.folder = stage.root,
                              .schemas = schemas,
                              .n_schemas = 4,
                              .max_waiting = 1000,
                              .is_inline = true,
                              .loop = &stage.loop,
                              .on_committed = stage_on_committed,
                              .on_fatal = stage_on_fatal};
    enum err e = store_open(&stage.store, &opts, why);

    stage.n_fatal = 0;
    if (e)
        return e;
    stage.learning =
        learning_new(&(struct learning_opts){.loop = &stage.loop,
                                             .log = &stage.log,
                                             .store = stage.store,
                                             .model_hash = STR("model"),
                                             .is_going_on = stage_is_going_on,
                                             .stands = stage_stands,
                                             .seed = {1, 2},
                                             .settings = stage.settings});
    return stage.learning ? learning_load(stage.learning, why) : ERR_NOMEM;
}

static inline void stage_start(void)
{
    struct why why = {""};

    if (stage_try_start(&why) != OK)
        T_FAIL("%s", why.text);
}

/* The store commits what it has; without its last words nothing more is
 * submitted, as if there had been no time. */
static inline void stage_stop(bool has_last_words)
{
    if (!has_last_words)
        fault_arm_at("learnt.last_words", 1);
    learning_stop(stage.learning);
    fault_arm(0);
    store_close(stage.store);
    stage.store = NULL;
    learning_free(stage.learning);
    stage.learning = NULL;
}

static inline void stage_restart(bool has_last_words)
{
    stage_stop(has_last_words);
    stage_start();
}

static inline void stage_ground(void)
{
    struct why why;

    snprintf(stage.root, sizeof(stage.root), "%s/signalbox-test-XXXXXX",
             t_above());
    CHECK(mkdtemp(stage.root));
    atexit(stage_remove);
    stage.now = (struct clock_fake){.wall_ms = 1000000000, .mono_ms = 5000};
    CHECK(loop_init(&stage.loop, clock_fake(&stage.now)) == OK);
    log_init(&stage.log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_TEXT, clock_fake(&stage.now));
    stage.seed.state = 7;
    id_maker_init(&stage.ids, rand_seeded(&stage.seed));
    stage.settings = (struct learning_settings){.learn = learn_defaults(),
                                                .follow_up_ms = WINDOW_MS,
                                                .substantial = 200,
                                                .uselessly_short = 20};
    if (store_folder_open(&stage.folder, str_of(stage.root), &why) != OK)
        T_FAIL("%s", why.text);
}

static inline void stage_open(void)
{
    stage_ground();
    stage_start();
}

static inline void stage_close(void)
{
    stage_stop(true);
    loop_fini(&stage.loop);
    store_folder_close(&stage.folder);
}

static inline void pass_ms(int64_t ms)
{
    stage.now.wall_ms += ms;
    stage.now.mono_ms += ms;
    for (int i = 0; i < 20; i++)
        loop_turn(&stage.loop);
}

/* Writing rows. */

static void stage_on_tx(struct tx *tx, void *ctx)
{
    (void)ctx;
    stage.n_txs++;
    stage.result = tx->result;
    tx_fini(tx);
    free(tx);
}

static inline struct tx *stage_tx(void)
{
    struct tx *tx = malloc(sizeof(*tx));

    CHECK(tx);
    tx_init(tx);
    return tx;
}

static inline enum tx_result submit(struct tx *tx)
{
    int n = stage.n_txs;

    store_submit(stage.store, tx, stage_on_tx, NULL);
    for (int i = 0; i < 20 && stage.n_txs == n; i++)
        loop_turn(&stage.loop);
    CHECK(stage.n_txs > n);
    return stage.result;
}

/* A direction for each number; -1: none. */
static inline struct str vector_of(int number, uint8_t out[PACKED])
{
    float v[DIMS] = {0};

    if (number < 0)
        return (struct str){NULL, 0};
    v[number % DIMS] = 1;
    v[(number / DIMS) % DIMS] += 0.3F;
    CHECK(vec_pack(v, DIMS, out));
    return (struct str){(const char *)out, PACKED};
}

/* What was asked and what came of it; the rest as usual. */
struct asked {
    const char *conversation, *agent, *text, *by, *org;
    enum layer layer;        /* semantic */
    int about;               /* the vector's number */
    enum task_status status; /* completed; queued: not over */
    int chars;               /* of the answer */
    const char *error_code;
    int64_t took_ms;
    struct id task_id; /* a further turn of this one */
    int64_t turn;
    bool has_no_task;
};

static inline void write_task(struct tx *tx, const struct decision *d,
                              const struct asked *a, const char *answer)
{
    struct tx_op *op = tx_insert(tx, &task_table);
    enum task_status status = a->status ? a->status : TASK_COMPLETED;

    tx_set(op, TASK_ID, value_text(str_of(d->task_id.text)));
    tx_set(op, TASK_PLACE, value_int(1));
    tx_set(op, TASK_MESSAGE_ID, value_text(STR("m")));
    tx_set(op, TASK_CONVERSATION_ID, value_text(d->conversation_id));
    tx_set(op, TASK_REQUESTER, value_text(d->requester));
    tx_set(op, TASK_ROOT_USER, value_text(d->requester));
    tx_set(op, TASK_AGENT, value_text(d->agent));
    tx_set(op, TASK_ORDER_KEY, value_text(STR("k")));
    tx_set(op, TASK_STATUS, value_int(status));
    tx_set(op, TASK_VERSION, value_int(1));
    tx_set(op, TASK_TURN, value_int(d->turn));
    tx_set(op, TASK_TEXT, value_text(d->text));
    tx_set(op, TASK_CREATED_MS, value_int(d->at_ms));
    tx_set(op, TASK_RESULT_TEXT, value_text(str_of(answer)));
    if (a->error_code)
        tx_set(op, TASK_ERROR_CODE, value_text(str_of(a->error_code)));
    if (task_is_over(status))
        tx_set(op, TASK_FINISHED_MS, value_int(d->at_ms + a->took_ms));
}

static inline const char *or_else(const char *s, const char *otherwise)
{
    return s ? s : otherwise;
}

/* A decision, and its task as it is by now. */
static inline struct id ask(struct asked a)
{
    struct tx *tx = stage_tx();
    uint8_t packed[PACKED];
    char answer[2048];
    struct decision d = {
        .id = id_make(&stage.ids, "dec", stage.now.wall_ms),
        .at_ms = stage.now.wall_ms,
        .task_id = a.task_id.text[0]
                       ? a.task_id
                       : id_make(&stage.ids, "task", stage.now.wall_ms),
        .turn = a.turn ? a.turn : 1,
        .conversation_id = str_of(or_else(a.conversation, "c")),
        .requester = str_of(or_else(a.by, "ann")),
        .org = str_of(or_else(a.org, "acme")),
        .text = str_of(or_else(a.text, "why does this segfault")),
        .layer = a.layer ? a.layer : LAYER_SEMANTIC,
        .agent = str_of(or_else(a.agent, "writer")),
        .vector = vector_of(a.about, packed),
        .model_hash = STR("model"),
    };

    CHECK(a.chars < (int)sizeof(answer) - 1);
    memset(answer, 'x', sizeof(answer));
    answer[a.chars] = '\0';
    if (!a.has_no_task)
        write_task(tx, &d, &a, answer);
    choose_record(tx, &d);
    CHECK(submit(tx) == TX_COMMITTED);
    return d.id;
}

/* Reading. */

/* The row of a decision; q is the caller's to fini. */
static inline const struct row *find_decision(struct query *q,
                                              const struct id *id)
{
    query_init(q, &decision_table, 1);
    query_if(q, DECISION_ID, IS, value_text(str_of(id->text)));
    CHECK(store_look(stage.store, q) == OK && q->n_rows == 1);
    return q->rows;
}

static inline int64_t decided(const struct id *id, uint8_t column)
{
    struct query q;
    const struct row *r = find_decision(&q, id);
    int64_t v = row_is_null(r, column) ? -99 : row_int(r, column);

    query_fini(&q);
    return v;
}

static inline enum verdict verdict_of(const struct id *id)
{
    int64_t v = decided(id, DECISION_VERDICT);

    return v == -99 ? VERDICT_OPEN : (enum verdict)v;
}

static inline bool is_overridden_to(const struct id *id, const char *agent)
{
    struct query q;
    const struct row *r = find_decision(&q, id);
    bool is_so = str_eq(row_str(r, DECISION_OVERRIDDEN_TO), str_of(agent));

    query_fini(&q);
    return is_so;
}

static inline int64_t count_rows(const struct table *t)
{
    struct query q;
    int64_t n;

    query_init(&q, t, 100000);
    CHECK(store_look(stage.store, &q) == OK && !q.has_more);
    n = (int64_t)q.n_rows;
    query_fini(&q);
    return n;
}

/* All that is learnt, as text. */
static inline void export_now(struct buf *out)
{
    buf_init(out, STAGE_EXPORT_MAX);
    learn_export(learning_learn(stage.learning), out);
    CHECK(!out->over);
}

/* The plain truth: what all outcomes that are kept come to, without those that
 * are voided. */
static inline void export_fold(struct buf *out)
{
    const uint64_t seed[2] = {3, 4};
    struct learn *plain =
        learn_new(&stage.settings.learn, STR("model"), 0, seed);
    struct learn_voids *voids = learn_voids_new(seed);
    struct query q;

    CHECK(plain && voids);
    query_init(&q, &outcome_table, 100000);
    query_order(&q, OUTCOME_SEQ, false);
    CHECK(store_look(stage.store, &q) == OK && !q.has_more);
    QUERY_EACH(r, &q)
    {
        struct outcome o;

        outcome_from_row(r, &o);
        if (o.kind == OUTCOME_VOID && !stage.ignores_voids)
            CHECK(learn_voids_add(voids, &o) == OK);
    }
    QUERY_EACH(r, &q)
    {
        struct outcome o;
        bool is_void;

        outcome_from_row(r, &o);
        CHECK(learn_voids_judge(voids, &o, &is_void) == OK);
        if (!is_void)
            CHECK(learn_apply(plain, &o) == OK);
    }
    query_fini(&q);
    buf_init(out, STAGE_EXPORT_MAX);
    learn_export(plain, out);
    CHECK(!out->over);
    learn_voids_free(voids);
    learn_free(plain);
}

static inline void check_learnt(void)
{
    struct buf is, should;

    export_now(&is);
    export_fold(&should);
    if (!str_eq(buf_str(&is), buf_str(&should)))
        T_FAIL("learnt:\n%.*s\nnot:\n%.*s", STR_ARG(buf_str(&is)),
               STR_ARG(buf_str(&should)));
    buf_fini(&is);
    buf_fini(&should);
}

/* Doing. */

struct heard {
    int n;
    enum err err;
    int64_t judged, voided;
};

static void on_heard(void *ctx, enum err e, int64_t n)
{
    struct heard *h = ctx;

    h->n++;
    h->err = e;
    h->judged = n;
}

static void on_forgot(void *ctx, enum err e)
{
    on_heard(ctx, e, 0);
}

static void on_voided(void *ctx, enum err e, int64_t n, int64_t n_voided)
{
    on_heard(ctx, e, n);
    ((struct heard *)ctx)->voided = n_voided;
}

static inline struct heard run_job(void)
{
    struct heard h = {0};

    learning_run(stage.learning, on_heard, &h);
    for (int i = 0; i < 20000 && !h.n; i++)
        loop_turn(&stage.loop);
    CHECK_INT(h.n, 1);
    return h;
}

static inline struct heard rebuild(void)
{
    struct heard h = {0};

    learning_rebuild(stage.learning, on_heard, &h);
    for (int i = 0; i < 20000 && !h.n; i++)
        pass_ms(1);
    CHECK_INT(h.n, 1);
    return h;
}

static inline struct heard forget(const char *agent)
{
    struct heard h = {0};

    learning_forget(stage.learning, str_of(agent), STR("admin"), on_forgot, &h);
    for (int i = 0; i < 20 && !h.n; i++)
        loop_turn(&stage.loop);
    CHECK_INT(h.n, 1);
    return h;
}

static inline struct heard void_of(const char *target)
{
    struct heard h = {0};

    learning_void(stage.learning, str_of(target), STR("admin"), on_voided, &h);
    for (int i = 0; i < 20000 && !h.n; i++)
        pass_ms(1);
    CHECK_INT(h.n, 1);
    return h;
}

/* Someone says that it should have been `right`, or (NULL) what v says; as of
 * what is in the row now, or as of `was`. */
static inline enum tx_result say_as(const struct id *id, const char *right,
                                    enum verdict v, bool is_switch)
{
    struct tx *tx = stage_tx();
    struct arena arena;
    struct decision d;
    struct query q;
    const struct row *r = find_decision(&q, id);

    arena_init(&arena, 1 << 20);
    CHECK(decision_from_row(&arena, r, &d) == OK);
    learning_append(
        stage.learning, tx,
        &(struct learning_word){.decision = &d,
                                .right = str_of(right ? right : ""),
                                .verdict = v,
                                .by = str_of(stage.by ? stage.by : "ann"),
                                .at_ms = stage.now.wall_ms,
                                .is_switch = is_switch});
    arena_fini(&arena);
    query_fini(&q);
    return submit(tx);
}

static inline enum tx_result correct(const struct id *id, const char *right)
{
    return say_as(id, right, VERDICT_NEGATIVE, false);
}

#endif
