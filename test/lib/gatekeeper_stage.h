#ifndef TEST_LIB_BROKER_STAGE_H
#define TEST_LIB_BROKER_STAGE_H

/* The broker over real tasks, a real store, inline, and real rules, with a
 * clock that is turned by hand. The walk between them is played here in its
 * simplest form: a message is asked about and accepted, a task that is ripe is
 * asked about again and moved, one whose time is over ends. Agents are what the
 * stage says they are. */

#include "gate/internal.h"
#include "test/lib/folder.h"
#include "test/lib/rules_stage.h"
#include "test/lib/users_stage.h"

enum { STAGE_AGENTS_MAX = 8 };

struct stage_user {
    const char *name, *org, *owner; /* NULL: none */
    enum role role;
};

static const struct stage_user stage_users[] = {
    {"Jay", NULL, NULL, ROLE_USER},
    {"Leroy", NULL, NULL, ROLE_USER},
    {"Stranger", "elsewhere", NULL, ROLE_USER},
    /* Users without an org, an agent of ann's, an agent without an owner, an
     * admin, and two of one org. */
    {"ann", NULL, NULL, ROLE_USER},
    {"bob", NULL, NULL, ROLE_USER},
    {"ann-bot", NULL, "ann", ROLE_AGENT},
    {"free", NULL, NULL, ROLE_AGENT},
    {"root", NULL, NULL, ROLE_ADMIN},
    {"carl", "acme", NULL, ROLE_USER},
    {"dora", "acme", NULL, ROLE_USER},
};

static struct {
    char root[64];
    struct store_folder folder;
    struct clock_fake now;
    struct loop loop;
    struct log log;
    struct store *store;
    struct access *access;
    struct id_maker ids;
    struct rand_seeded seed;
    struct tasks *tasks;
    struct gatekeeper *gatekeeper;
    struct gate_rules *rules; /* NULL: none */
    struct gate_agent agents[STAGE_AGENTS_MAX];
    size_t n_agents;

    struct id ready[100]; /* the first that on_ready was called for */
    size_t n_ready;
    size_t n_moving;
    size_t n_asked;   /* calls of on_ripe */
    enum err why_not; /* of the last change that did not come to be */
} stage;

static inline void stage_remove(void)
{
    folder_remove(stage.root);
}

static enum ready stage_on_ready(void *ctx, const struct task *t)
{
    (void)ctx;
    if (stage.n_ready < 100)
        stage.ready[stage.n_ready] = t->id;
    stage.n_ready++;
    return READY_NO_AGENT;
}

static bool stage_on_deadline(void *ctx, const struct task *t)
{
    (void)ctx, (void)t;
    return true;
}

static inline struct gate_agent *stage_agent(const char *name)
{
    for (size_t i = 0; i < stage.n_agents; i++)
        if (str_eq_nocase(stage.agents[i].name, str_of(name)))
            return &stage.agents[i];
    CHECK(stage.n_agents < STAGE_AGENTS_MAX);
    stage.agents[stage.n_agents] = (struct gate_agent){
        .name = str_of(name), .is_known = true, .state = AGENT_IDLE};
    return &stage.agents[stage.n_agents++];
}

static void stage_see(void *ctx, struct str name, struct gate_agent *out)
{
    (void)ctx;
    for (size_t i = 0; i < stage.n_agents; i++) {
        if (!str_eq_nocase(stage.agents[i].name, name))
            continue;
        *out = stage.agents[i];
        out->queue = (int64_t)tasks_of_agent(stage.tasks, name);
    }
}

/* A task moves. */

struct moving {
    struct task_change *change;
    struct arena arena;
    struct gate_result gate_result;
    bool is_end;
};

static void stage_moved(struct tx *tx, void *ctx)
{
    struct moving *x = ctx;
    struct task_change *c = x->change;
    const struct task *t = task_find(stage.tasks, str_of(c->task_id.text));
    bool is_committed = tx->result == TX_COMMITTED;

    stage.n_moving--;
    if (!is_committed)
        stage.why_not = tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err;
    if (!x->is_end && t)
        gatekeeper_settle_release(stage.gatekeeper, t, &x->gate_result,
                                  is_committed);
    else if (is_committed)
        gatekeeper_settle_end(
            stage.gatekeeper,
            &(struct turn_end){.task = t, .result = &c->result});
    task_changed(stage.tasks, c);
    task_change_free(c);
    arena_fini(&x->arena);
    free(x);
}

static void stage_on_ripe(void *ctx, struct str task_id)
{
    const struct task *t = task_find(stage.tasks, task_id);
    struct moving *x = calloc(1, sizeof(*x));
    struct task_release release;
    enum err e;

    (void)ctx;
    stage.n_asked++;
    arena_init(&x->arena, 8 << 20);
    if (t &&
        gatekeeper_ask_again(stage.gatekeeper, t, &x->arena, &x->gate_result)) {
        release = (struct task_release){
            .status = gate_result_status(x->gate_result.answer),
            .priority = x->gate_result.priority};
        x->change = task_pass_new(stage.tasks, task_id, &release, &e);
    }
    if (!x->change) {
        arena_fini(&x->arena);
        free(x);
        return;
    }
    gatekeeper_record_release(stage.gatekeeper, t, &x->gate_result,
                              &x->change->tx);
    stage.n_moving++;
    store_submit(stage.store, &x->change->tx, stage_moved, x);
}

static void stage_on_end(void *ctx, struct str task_id,
                         const struct task_result *r)
{
    const struct task *t = task_find(stage.tasks, task_id);
    struct moving *x = calloc(1, sizeof(*x));
    enum err e;

    (void)ctx;
    arena_init(&x->arena, 1 << 20);
    x->is_end = true;
    x->change = t ? task_change_new(stage.tasks, task_id, r, &e) : NULL;
    if (!x->change) {
        free(x);
        return;
    }
    gatekeeper_record_end(stage.gatekeeper,
                          &(struct turn_end){.task = t, .result = r},
                          &x->change->tx);
    stage.n_moving++;
    store_submit(stage.store, &x->change->tx, stage_moved, x);
}

static enum err
stage_end(void *ctx, struct str task_id, const struct task_result *r,
          void (*done)(void *ctx, struct str task_id, enum err e),
          void *done_ctx)
{
    (void)done, (void)done_ctx;
    stage_on_end(ctx, task_id, r);
    return OK;
}

static void stage_on_moved(void *ctx, const struct task *t)
{
    (void)ctx;
    if (stage.gatekeeper)
        gatekeeper_moved(stage.gatekeeper, t);
}

static void stage_sent(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    (void)tx;
    task_settle(stage.tasks, m);
    gatekeeper_settle(stage.gatekeeper, m);
    m->way.done(m, m->way.ctx);
}

static void stage_send(void *ctx, struct msg *m,
                       void (*done)(struct msg *m, void *ctx), void *done_ctx)
{
    struct agent chosen = {.name = m->call.executor};
    enum err e;

    (void)ctx;
    m->choice.agent = m->call.executor;
    m->way.done = done;
    m->way.ctx = done_ctx;
    e = gatekeeper_ask(stage.gatekeeper, m, &chosen);
    if (!e)
        e = task_create(stage.tasks, m, NULL);
    if (e) {
        gatekeeper_leave(stage.gatekeeper, m);
        m->err = e;
        done(m, done_ctx);
        return;
    }
    gatekeeper_record(stage.gatekeeper, m);
    store_submit(stage.store, &m->tx, stage_sent, m);
}

/* It is never there again by itself. */
static void stage_restart(void *ctx, struct str agent,
                          void (*done)(void *ctx, enum err e,
                                       const struct why *why),
                          void *done_ctx)
{
    (void)ctx, (void)agent, (void)done, (void)done_ctx;
}

/* A start of the server. */

static inline enum err stage_open_access(struct why *why)
{
    enum err e = users_stage_open(&stage.access, &stage.log, stage.store, why);

    if (e || !access_is_new(stage.access))
        return e;
    for (size_t i = 0; i < sizeof(stage_users) / sizeof(*stage_users); i++) {
        const struct stage_user *u = &stage_users[i];

        users_stage_add(
            stage.access, stage.store, loop_wall_ms(&stage.loop), u->name,
            &(struct access_wish){u->role, str_of(u->org), str_of(u->owner)});
    }
    return OK;
}

static inline enum err stage_try_start(void)
{
    static const struct schema *const schemas[] = {
        &task_schema, &watch_schema, &gatekeeper_schema, &access_schema};
    struct why why = {""};
    enum err e = store_folder_open(&stage.folder, str_of(stage.root), &why);

    if (e)
        return e;
    e = store_open(&stage.store,
                   &(struct store_opts){.folder = stage.root,
                                        .schemas = schemas,
                                        .n_schemas = 4,
                                        .max_waiting = 200000,
                                        .is_inline = true},
                   &why);
    if (e) {
        store_folder_close(&stage.folder);
        return e;
    }
    e = stage_open_access(&why);
    if (e)
        return e;
    stage.tasks = tasks_new(&(struct tasks_opts){
        .loop = &stage.loop,
        .log = &stage.log,
        .store = stage.store,
        .ids = &stage.ids,
        .node = STR("here"),
        .seed = {1, 2},
        .limits = {.max_unfinished = 200000,
                   .max_unfinished_bytes = 256 << 20,
                   .timeout_ms = 600000},
        .on_ready = stage_on_ready,
        .on_deadline = stage_on_deadline,
        .on_moved = stage_on_moved,
    });
    stage.gatekeeper = gatekeeper_new(&(struct gatekeeper_opts){
        .loop = &stage.loop,
        .log = &stage.log,
        .store = stage.store,
        .ids = &stage.ids,
        .seed = {1, 2},
        .rules = stage.rules ? stage.rules : gate_rules_none(),
        .tasks = stage.tasks,
        .access = stage.access,
        .agent = stage_see,
        .on_ripe = stage_on_ripe,
        .end = stage_end,
        .restart = stage_restart,
        .send = stage_send,
    });
    e = stage.tasks && stage.gatekeeper
            ? tasks_load(stage.tasks, loop_wall_ms(&stage.loop), &why)
            : ERR_NOMEM;
    return e ? e : gatekeeper_load(stage.gatekeeper, &why);
}

static inline void stage_start(void)
{
    CHECK_INT(stage_try_start(), OK);
    CHECK(gatekeeper_check(stage.gatekeeper));
}

static inline void stage_stop(void)
{
    if (!stage.store)
        return;
    if (stage.gatekeeper)
        gatekeeper_stop(stage.gatekeeper);
    store_close(stage.store);
    stage.store = NULL;
    CHECK_INT(stage.n_moving, 0);
    gatekeeper_free(stage.gatekeeper);
    tasks_free(stage.tasks);
    access_free(stage.access);
    stage.access = NULL;
    stage.gatekeeper = NULL;
    stage.tasks = NULL;
    store_folder_close(&stage.folder);
}

static inline void stage_ground(const char *rules)
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
    if (rules)
        stage.rules = rules_of(rules);
}

static inline void stage_open(const char *rules)
{
    stage_ground(rules);
    stage_start();
}

static inline void stage_close(void)
{
    stage_stop();
    gate_rules_free(stage.rules);
    loop_fini(&stage.loop);
}

static inline void turn(void)
{
    store_turn(stage.store);
    loop_turn(&stage.loop);
    CHECK(gatekeeper_check(stage.gatekeeper));
    CHECK(tasks_check(stage.tasks));
}

/* Until nothing is left to do without time going on. */
/* All held messages behind `after`. */
static inline size_t stage_holds(int64_t after, struct held *out, size_t max)
{
    return gatekeeper_holds(stage.gatekeeper,
                            &(struct held_filter){.caller = NULL}, after, out,
                            max);
}

static inline void rest(void)
{
    for (int i = 0; i < 20; i++)
        turn();
}

static inline void pass_ms(int64_t ms)
{
    stage.now.wall_ms += ms;
    stage.now.mono_ms += ms;
    stage.loop.is_fresh = false;
    rest();
}

/* Messages. */

struct letter {
    const char *from, *to, *type, *reference, *payload;
    enum task_priority priority;
    bool is_plain; /* a person's message */
};

static inline struct msg *letter(const struct letter *l)
{
    struct caller c = {.role = ROLE_USER, .scopes = SCOPE_SEND};
    struct msg *m;
    struct envelope *e;
    struct buf text;

    snprintf(c.principal, sizeof(c.principal), "%s", l->from);
    m = msg_new(&c, loop_wall_ms(&stage.loop));
    if (!m)
        return NULL;
    m->choice.agent = str_of(l->to);
    m->call.priority = l->priority;
    m->call.text = STR("hello");
    if (l->is_plain)
        return m;
    e = arena_alloc(&m->arena, sizeof(*e));
    if (!e) {
        msg_free(m);
        return NULL;
    }
    *e = (struct envelope){.from = str_of(l->from),
                           .to = str_of(l->to),
                           .type = str_of(l->type ? l->type : "REQUEST"),
                           .reference = str_of(l->reference),
                           .priority = l->priority,
                           .at_ms = m->in.at_ms,
                           .payload = str_of(l->payload ? l->payload : "{}")};
    buf_init(&text, 1 << 20);
    buf_addf(&text,
             "{\"from\":\"%s\",\"to\":\"%s\",\"type\":\"%.*s\",\"priority\":"
             "\"%.*s\",\"reference\":\"%s\",\"payload\":%.*s}",
             l->from, l->to, STR_ARG(e->type),
             STR_ARG(task_priority_name(l->priority)),
             l->reference ? l->reference : "", STR_ARG(e->payload));
    m->call.text =
        (struct str){arena_strdup(&m->arena, buf_str(&text)), text.n};
    m->call.envelope = e;
    if (text.over || !m->call.text.p) {
        msg_free(m);
        m = NULL;
    }
    buf_fini(&text);
    return m;
}

static void stage_settled(struct tx *tx, void *ctx)
{
    (void)tx;
    task_settle(stage.tasks, ctx);
    gatekeeper_settle(stage.gatekeeper, ctx);
}

/* Asked about and submitted; store_turn does the rest. */
static inline enum err begin_letter(struct msg *m)
{
    struct agent chosen = {.name = m->choice.agent};
    enum err e = gatekeeper_ask(stage.gatekeeper, m, &chosen);

    if (!e)
        e = task_create(stage.tasks, m, NULL);
    if (e) {
        gatekeeper_leave(stage.gatekeeper, m);
        return m->err = e;
    }
    gatekeeper_record(stage.gatekeeper, m);
    store_submit(stage.store, &m->tx, stage_settled, m);
    return OK;
}

struct sent {
    struct id id, message_id;
    enum err err;
    struct gate_result gate_result;
};

static inline struct sent send_letter(const struct letter *l)
{
    struct msg *m = letter(l);
    struct sent s = {.err = ERR_NOMEM};

    if (!m)
        return s;
    if (!begin_letter(m))
        store_turn(stage.store);
    s = (struct sent){.id = m->task.id,
                      .message_id = m->task.message_id,
                      .err = m->err,
                      .gate_result = m->gate.gate_result};
    msg_free(m);
    return s;
}

static inline struct sent sent(const char *from, const char *to,
                               const char *type, const char *reference)
{
    struct sent s = send_letter(&(struct letter){.from = from,
                                                 .to = to,
                                                 .type = type,
                                                 .reference = reference,
                                                 .priority = PRIORITY_NORMAL});

    CHECK_INT(s.err, OK);
    CHECK(gatekeeper_check(stage.gatekeeper));
    return s;
}

static inline enum task_status status_of(const struct id *id)
{
    const struct task *t = task_find(stage.tasks, str_of(id->text));
    enum task_status status;
    struct query q;

    if (t)
        return task_shown(t);
    query_init(&q, &task_table, 1);
    query_if(&q, TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    status = q.rows ? (enum task_status)row_int(q.rows, TASK_STATUS) : 0;
    query_fini(&q);
    return status;
}

/* The agent answers. */
static inline void ends(const struct id *id, enum task_status to,
                        const char *metadata)
{
    stage_on_end(NULL, str_of(id->text),
                 &(struct task_result){.status = to,
                                       .text = STR("done"),
                                       .metadata = str_of(metadata)});
    rest();
}

static inline size_t rows_of(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 100000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static inline size_t feed_of(const char *type)
{
    struct query q;
    size_t n;

    query_init(&q, &feed_table, 100000);
    query_if(&q, FEED_TYPE, IS, value_text(str_of(type)));
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

#endif
