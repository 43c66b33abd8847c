#ifndef TEST_LIB_TASK_STAGE_H
#define TEST_LIB_TASK_STAGE_H

/* The room of tasks on a real store, inline, with a clock that is turned by
 * hand: what tests of task/ share. A stage can be taken down and opened again
 * on the same folder, which is what a restart is. */

#include "base/fault.h"
#include "task/task.h"
#include "test/lib/folder.h"
#include "test/lib/users_stage.h"
#include "test/t.h"
#include "watch/watch.h"

enum { STAGE_CALLS_MAX = 20000 };

static struct {
    char root[64];
    struct store_folder folder;
    struct clock_fake now;
    struct loop loop;
    struct log log;
    struct store *store;
    struct id_maker ids;
    struct rand_seeded seed;
    struct tasks *tasks;

    bool has_users; /* tasks ask access for their orgs; else no user has one */
    struct access *access;

    struct tasks_limits limits;
    bool is_deadline_refused;
    bool is_starved; /* on_ready says later; else, that there is no agent */

    /* What on_ready and on_deadline were called for, in order. */
    struct id ready[STAGE_CALLS_MAX], due[STAGE_CALLS_MAX];
    int n_ready, n_due;
    char inputs[256]; /* what came of what was asked: "unheard " */
    int n_ops;        /* in txs that were committed */
} stage;

static inline void stage_remove(void)
{
    folder_remove(stage.root);
}

static enum ready stage_on_ready(void *ctx, const struct task *t)
{
    (void)ctx;
    CHECK(stage.n_ready < STAGE_CALLS_MAX && t->status == TASK_QUEUED);
    stage.ready[stage.n_ready++] = t->id;
    return stage.is_starved ? READY_LATER : READY_NO_AGENT;
}

static bool stage_on_deadline(void *ctx, const struct task *t)
{
    (void)ctx;
    CHECK(stage.n_due < STAGE_CALLS_MAX && !task_is_over(t->status));
    stage.due[stage.n_due++] = t->id;
    return !stage.is_deadline_refused;
}

static void stage_on_input_over(void *ctx, const struct input *in)
{
    size_t n = strlen(stage.inputs);

    (void)ctx;
    snprintf(stage.inputs + n, sizeof(stage.inputs) - n, "%.*s:%.*s ",
             STR_ARG(input_outcome_name(in->outcome)), STR_ARG(in->ask.handle));
}

static void stage_on_committed(void *ctx, const struct tx *tx)
{
    (void)ctx;
    stage.n_ops += (int)tx->n_ops;
}

static inline enum err stage_open_store(struct why *why)
{
    static const struct schema *const schemas[] = {&task_schema, &watch_schema,
                                                   &access_schema};
    enum err e = store_folder_open(&stage.folder, str_of(stage.root), why);

    if (e)
        return e;
    e = store_open(&stage.store,
                   &(struct store_opts){.folder = stage.root,
                                        .schemas = schemas,
                                        .n_schemas = 3,
                                        .max_waiting = 100000,
                                        .is_inline = true,
                                        .on_committed = stage_on_committed},
                   why);
    if (e)
        store_folder_close(&stage.folder);
    return e;
}

static inline struct tasks *stage_new_tasks(void)
{
    return tasks_new(&(struct tasks_opts){
        .loop = &stage.loop,
        .log = &stage.log,
        .store = stage.store,
        .ids = &stage.ids,
        .access = stage.access,
        .node = STR("here"),
        .seed = {1, 2},
        .limits = stage.limits,
        .on_ready = stage_on_ready,
        .on_deadline = stage_on_deadline,
        .on_input_over = stage_on_input_over,
    });
}

/* A start of the server, on what is there already. */
static inline void stage_start(void)
{
    struct why why = {""};

    if (stage_open_store(&why) != OK)
        T_FAIL("%s", why.text);
    if (stage.has_users &&
        users_stage_open(&stage.access, &stage.log, stage.store, &why))
        T_FAIL("%s", why.text);
    stage.tasks = stage_new_tasks();
    CHECK(stage.tasks);
    if (tasks_load(stage.tasks, loop_wall_ms(&stage.loop), &why) != OK)
        T_FAIL("%s", why.text);
    CHECK(tasks_check(stage.tasks));
}

static inline void stage_stop(void)
{
    store_close(stage.store);
    stage.store = NULL;
    tasks_free(stage.tasks);
    stage.tasks = NULL;
    access_free(stage.access);
    stage.access = NULL;
    store_folder_close(&stage.folder);
}

static inline void stage_restart(void)
{
    stage_stop();
    stage_start();
}

/* The ground without store and tasks. */
static inline void stage_ground(void)
{
    snprintf(stage.root, sizeof(stage.root), "%s/signalbox-test-XXXXXX",
             t_above());
    CHECK(mkdtemp(stage.root));
    atexit(stage_remove);
    stage.now = (struct clock_fake){.wall_ms = 1000000, .mono_ms = 5000};
    CHECK(loop_init(&stage.loop, clock_fake(&stage.now)) == OK);
    log_init(&stage.log, 2, LOG_ERROR, LOG_TEXT, clock_fake(&stage.now));
    stage.seed.state = 7;
    id_maker_init(&stage.ids, rand_seeded(&stage.seed));
    stage.limits = (struct tasks_limits){.max_unfinished = 100000,
                                         .max_unfinished_bytes = 256 << 20,
                                         .timeout_ms = 600000,
                                         .input_ms = 30000};
}

static inline void stage_open(void)
{
    stage_ground();
    stage_start();
}

static inline void stage_close(void)
{
    stage_stop();
    loop_fini(&stage.loop);
}

/* One turn: the store does what waits, then the end of the turn. */
static inline void turn(void)
{
    if (stage.store)
        store_turn(stage.store);
    loop_turn(&stage.loop);
    CHECK(tasks_check(stage.tasks));
}

/* Time goes on, on both clocks. */
static inline void pass_ms(int64_t ms)
{
    stage.now.wall_ms += ms;
    stage.now.mono_ms += ms;
    stage.loop.is_fresh = false; /* a new turn begins now */
    turn();
}

/* Messages. */

static inline struct caller caller_named(const char *name)
{
    struct caller c = {.role = ROLE_USER, .scopes = SCOPE_SEND | SCOPE_READ};

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    return c;
}

static inline struct msg *message(const char *from, const char *conversation,
                                  const char *text)
{
    struct caller c = caller_named(from);
    struct msg *m = msg_new(&c, loop_wall_ms(&stage.loop));

    CHECK(m);
    m->call.text = str_of(text);
    m->call.conversation_id = str_of(conversation);
    m->call.priority = PRIORITY_NORMAL;
    m->choice.agent = STR("echo");
    return m;
}

static void stage_on_accepted(struct tx *tx, void *ctx)
{
    (void)tx;
    task_settle(stage.tasks, ctx);
}

static inline void submit_message(struct msg *m)
{
    store_submit(stage.store, &m->tx, stage_on_accepted, m);
}

/* Create, submit and settle; what came of it is returned and in m->err. */
static inline enum err accept_turn(struct msg *m, const struct task *before)
{
    m->err = task_create(stage.tasks, m, before);
    CHECK(tasks_check(stage.tasks));
    if (!m->err) {
        submit_message(m);
        store_turn(stage.store);
        CHECK(tasks_check(stage.tasks));
    }
    return m->err;
}

static inline struct id accepted(const char *from, const char *conversation,
                                 const char *text)
{
    struct msg *m = message(from, conversation, text);
    struct id id;

    CHECK_INT(accept_turn(m, NULL), OK);
    id = m->task.id;
    msg_free(m);
    return id;
}

static inline const struct task *found(const struct id *id)
{
    return task_find(stage.tasks, str_of(id->text));
}

static inline void move(const struct id *id, enum task_status to)
{
    while (!task_move(stage.tasks, str_of(id->text), to))
        turn(); /* the attempt is counted first */
    CHECK(tasks_check(stage.tasks));
}

/* Ends. */

static void stage_on_changed(struct tx *tx, void *ctx)
{
    (void)tx;
    task_changed(stage.tasks, ctx);
}

static inline struct task_change *change(const struct id *id,
                                         enum task_status to, const char *text)
{
    struct task_result r = {.status = to, .text = str_of(text)};
    struct task_change *c;
    enum err e;

    if (to != TASK_COMPLETED)
        r.error_code = STR("because");
    c = task_change_new(stage.tasks, str_of(id->text), &r, &e);
    CHECK(c && e == OK);
    return c;
}

static inline void submit_change(struct task_change *c)
{
    store_submit(stage.store, &c->tx, stage_on_changed, c);
}

static inline enum err ended(const struct id *id, enum task_status to,
                             const char *text)
{
    struct task_change *c = change(id, to, text);
    enum err e;

    submit_change(c);
    store_turn(stage.store);
    e = c->err;
    task_change_free(c);
    CHECK(tasks_check(stage.tasks));
    return e;
}

/* What is in the store. */

static void stage_on_tx(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK_INT(tx->result, TX_COMMITTED);
}

static inline void commit_tx(struct tx *tx)
{
    store_submit(stage.store, tx, stage_on_tx, NULL);
    store_turn(stage.store);
}

static inline void look(struct query *q)
{
    CHECK_INT(store_look(stage.store, q), OK);
}

static inline size_t rows_of(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 100000);
    look(&q);
    n = q.n_rows;
    CHECK(!q.has_more);
    query_fini(&q);
    return n;
}

/* The row of a task; q holds it. */
static inline struct task row_of(struct query *q, const struct id *id)
{
    struct task t;

    query_init(q, &task_table, 2);
    query_if(q, TASK_ID, IS, value_text(str_of(id->text)));
    look(q);
    CHECK_INT(q->n_rows, 1);
    task_from_row(&t, q->rows);
    return t;
}

static inline enum task_status status_in_store(const struct id *id)
{
    struct query q;
    struct task t = row_of(&q, id);

    query_fini(&q);
    return t.status;
}

#endif
