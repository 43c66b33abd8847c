#ifndef TEST_LIB_PEOPLE_STAGE_H
#define TEST_LIB_PEOPLE_STAGE_H

/* The stage on which escalations, answers that are due and revivals are tested:
 * a real store, inline, a loop under a fake clock, and in the place of walk and
 * tasks a few lines that do what those promise: a task has a version, every
 * move is guarded by it, and the parts of the broker write in the same tx.
 * PEOPLE_STAGE's world can be taken down and built again on the same folder. */

#include <fcntl.h>
#include <ftw.h>

#include "gate/escalations.h"
#include "gate/rules/internal.h"
#include "test/t.h"

enum { ACTS_MAX = 64 };

/* A task as the walk would have it. */
struct act {
    struct task t;
    struct gate_result next; /* what the gate says when it is asked again */
    bool is_over;
    char agent[64], error_code[32], error[256], by[64];
};

struct world {
    struct clock_fake time;
    struct rand_seeded chance;
    struct id_maker ids;
    struct loop loop;
    struct log log;
    char path[64];
    struct store_folder folder;
    struct store *store;
    struct gatekeeper b;
    struct gate_rules rules;
    struct gate_revival revivals[2];
    struct act acts[ACTS_MAX];
    int n_acts;
    /* Agents by name: how they are. */
    struct gate_agent agents[4];
    int n_restarts, n_paused;
    char paused_by[32];
    int64_t paused_ms;
    enum err restarts_with; /* what becomes of them */
    void (*restarted)(void *ctx, enum err e, const struct why *why);
    void *restarted_ctx;
    int n_resumed;
    bool is_fatal;   /* the store has failed: only a restart helps */
    char feed[4096]; /* the types of its entries, with '|' behind each */
};

static inline int world_unlink(const char *path, const struct stat *st,
                               int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline void world_committed(void *ctx, const struct tx *tx)
{
    struct world *w = ctx;
    size_t n = strlen(w->feed);

    TX_EACH(op, tx)
    if (op->table == &feed_table && op->kind == TX_INSERT)
        n += (size_t)snprintf(w->feed + n, sizeof(w->feed) - n, "%.*s|",
                              STR_ARG(tx_value(op, FEED_TYPE).s));
}

static inline void world_fatal(void *ctx, const struct why *why)
{
    (void)why;
    ((struct world *)ctx)->is_fatal = true;
}

static inline struct act *act_of(struct world *w, struct str id)
{
    for (int i = 0; i < w->n_acts; i++)
        if (str_eq(str_of(w->acts[i].t.id.text), id))
            return &w->acts[i];
    T_FAIL("there is no task %.*s", STR_ARG(id));
}

static inline void world_agent(void *ctx, struct str name,
                               struct gate_agent *out)
{
    struct world *w = ctx;

    for (size_t i = 0; i < 4; i++)
        if (str_eq_nocase(w->agents[i].name, name)) {
            *out = w->agents[i];
            out->is_known = true;
        }
}

/* A move of a task on its way. */
struct move {
    struct tx tx;
    struct world *w;
    struct act *a;
    struct gate_result p;
    struct task_result r;
    char to[64];
    void (*done)(void *ctx, struct str task_id, enum err e);
    void *ctx;
};

static inline void guard(struct tx *tx, const struct act *a)
{
    struct tx_op *op = tx_update(tx, &task_table);

    tx_if(op, TASK_ID, IS, value_text(str_of(a->t.id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(a->t.version));
    tx_set(op, TASK_VERSION, value_int(a->t.version + 1));
}

static inline void on_passed(struct tx *tx, void *ctx)
{
    struct move *m = ctx;
    struct gatekeeper *b = &m->w->b;
    bool is_committed = tx->result == TX_COMMITTED;

    if (is_committed) {
        m->a->t.version++;
        m->a->t.status = gate_result_status(m->p.answer);
        if (m->to[0])
            snprintf(m->a->agent, sizeof(m->a->agent), "%s", m->to);
        m->a->t.agent = str_of(m->a->agent);
    }
    escalations_settle_pass(b, &m->a->t, &m->p, is_committed);
    sla_settle_pass(b, &m->a->t, &m->p, is_committed);
    revive_settle_pass(b, &m->a->t, &m->p, is_committed);
    tx_fini(&m->tx);
    free(m);
}

/* walk_resume. */
static inline void world_ripe(void *ctx, struct str task_id)
{
    struct world *w = ctx;
    struct act *a = act_of(w, task_id);
    struct move *m;
    struct str to;
    bool is_let_go = escalation_approves(&w->b, &a->t, &to);

    w->n_resumed++;
    if (a->is_over || (!is_let_go && !a->next.answer))
        return;
    m = calloc(1, sizeof(*m));
    CHECK(m);
    *m = (struct move){.w = w, .a = a, .p = a->next};
    if (!m->p.answer)
        m->p =
            (struct gate_result){.answer = GATE_ROUTE, .cause = PASS_APPROVED};
    snprintf(m->to, sizeof(m->to), "%.*s", STR_ARG(to));
    tx_init(&m->tx);
    guard(&m->tx, a);
    escalations_record_pass(&w->b, &a->t, NULL, &m->p, &m->tx);
    sla_record_pass(&w->b, &a->t, NULL, &m->p, &m->tx);
    revive_record_pass(&w->b, &a->t, NULL, &m->p, &m->tx);
    store_submit(w->store, &m->tx, on_passed, m);
}

static inline void on_over(struct tx *tx, void *ctx)
{
    struct move *m = ctx;
    struct gatekeeper *b = &m->w->b;
    enum err e = tx->result == TX_COMMITTED      ? OK
                 : tx->result == TX_GUARD_FAILED ? ERR_TASK_IS_OVER
                                                 : tx->err;

    if (!e) {
        m->a->is_over = true;
        m->a->t.version++;
        m->a->t.status = m->r.status;
        escalations_settle_end(b, &m->a->t);
        sla_settle_end(b, &m->a->t);
    }
    if (m->done)
        m->done(m->ctx, str_of(m->a->t.id.text), e);
    tx_fini(&m->tx);
    free(m);
}

static inline enum err
world_end(void *ctx, struct str task_id, const struct task_result *r,
          void (*done)(void *ctx, struct str task_id, enum err e),
          void *done_ctx)
{
    struct world *w = ctx;
    struct act *a = act_of(w, task_id);
    struct move *m;

    if (a->is_over)
        return ERR_TASK_IS_OVER;
    m = calloc(1, sizeof(*m));
    CHECK(m);
    snprintf(a->error_code, 32, "%.*s", STR_ARG(r->error_code));
    snprintf(a->error, 256, "%.*s", STR_ARG(r->error));
    snprintf(a->by, 64, "%.*s", STR_ARG(r->by));
    *m = (struct move){.w = w, .a = a, .r = *r, .done = done, .ctx = done_ctx};
    m->r.error_code = str_of(a->error_code);
    m->r.by = str_of(a->by);
    tx_init(&m->tx);
    guard(&m->tx, a);
    escalations_record_end(&w->b, &a->t, &m->r, &m->tx);
    sla_record_end(&w->b, &a->t, &m->tx);
    store_submit(w->store, &m->tx, on_over, m);
    return OK;
}

static inline void world_restart(void *ctx, struct str agent,
                                 void (*done)(void *ctx, enum err e,
                                              const struct why *why),
                                 void *done_ctx)
{
    struct world *w = ctx;

    (void)agent;
    w->n_restarts++;
    w->restarted = done;
    w->restarted_ctx = done_ctx;
}

static inline enum err world_pause(void *ctx, struct str agent, bool is_paused,
                                   struct str by, int64_t at_ms)
{
    struct world *w = ctx;

    (void)agent;
    w->n_paused += is_paused ? 1 : -1;
    snprintf(w->paused_by, sizeof(w->paused_by), "%.*s", STR_ARG(by));
    w->paused_ms = at_ms;
    return OK;
}

static inline void turns(struct world *w, int n)
{
    while (n-- > 0)
        loop_turn(&w->loop);
}

static inline void later(struct world *w, int64_t ms)
{
    w->time.mono_ms += ms;
    w->time.wall_ms += ms;
    turns(w, 6);
}

/* What a restart came to. */
static inline void restart_ends(struct world *w, enum err e)
{
    struct why why;

    why_err(&why, e, "it did not want to");
    CHECK(w->restarted);
    w->restarted(w->restarted_ctx, e, &why);
    w->restarted = NULL;
    turns(w, 4);
}

static inline void world_up(struct world *w)
{
    static const struct schema *const schemas[] = {&gatekeeper_schema,
                                                   &watch_schema, &task_schema};
    struct why why = {""};

    CHECK(store_open(&w->store,
                     &(struct store_opts){.folder = w->folder.path,
                                          .schemas = schemas,
                                          .n_schemas = 3,
                                          .max_waiting = 1000,
                                          .is_inline = true,
                                          .loop = &w->loop,
                                          .on_committed = world_committed,
                                          .on_fatal = world_fatal,
                                          .ctx = w},
                     &why) == OK);
    w->b = (struct gatekeeper){.opts = {.loop = &w->loop,
                                        .log = &w->log,
                                        .store = w->store,
                                        .ids = &w->ids,
                                        .seed = {1, 2},
                                        .rules = &w->rules,
                                        .agent = world_agent,
                                        .on_ripe = world_ripe,
                                        .end = world_end,
                                        .restart = world_restart,
                                        .pause = world_pause,
                                        .ctx = w}};
    escalations_init(&w->b);
    sla_init(&w->b);
    revive_init(&w->b);
}

static inline void world_load(struct world *w)
{
    struct why why = {""};

    CHECK(escalations_load(&w->b, &why) == OK && sla_load(&w->b, &why) == OK &&
          revive_load(&w->b, &why) == OK);
}

static inline void world_down(struct world *w)
{
    escalations_stop(&w->b);
    sla_stop(&w->b);
    revive_stop(&w->b);
    store_close(w->store);
    revive_fini(&w->b);
    sla_fini(&w->b);
    escalations_fini(&w->b);
    turns(w, 3);
}

static inline void world_again(struct world *w)
{
    w->is_fatal = false;
    world_down(w);
    world_up(w);
    world_load(w);
    turns(w, 2);
}

static inline void world_open(struct world *w)
{
    struct why why = {""};

    *w = (struct world){.time = {.wall_ms = 1700000000000, .mono_ms = 1000},
                        .rules = *gate_rules_none()};
    w->agents[0] =
        (struct gate_agent){.name = STR("Rick"), .state = AGENT_IDLE};
    w->agents[1] = (struct gate_agent){.name = STR("Jay"), .state = AGENT_IDLE};
    w->agents[2] =
        (struct gate_agent){.name = STR("Leroy"), .state = AGENT_IDLE};
    id_maker_init(&w->ids, rand_seeded(&w->chance));
    CHECK(loop_init(&w->loop, clock_fake(&w->time)) == OK);
    log_init(&w->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_WARN,
             LOG_JSON, clock_fake(&w->time));
    snprintf(w->path, sizeof(w->path), "%s/signalbox-people-XXXXXX", t_above());
    CHECK(mkdtemp(w->path));
    CHECK(store_folder_open(&w->folder, str_of(w->path), &why) == OK);
    world_up(w);
    turns(w, 2);
}

static inline void world_close(struct world *w)
{
    CHECK(escalations_check(&w->b) && sla_check(&w->b) && revive_check(&w->b));
    world_down(w);
    store_folder_close(&w->folder);
    loop_fini(&w->loop);
    close(w->log.fd);
    nftw(w->path, world_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* A message from Jay to Rick that the gate answered like that, accepted; or
 * not, after a fault: NULL. */
static inline void on_accepted(struct tx *tx, void *ctx)
{
    (void)ctx;
    (void)tx;
}

static inline struct act *act_begin(struct world *w,
                                    const struct gate_result *p)
{
    struct caller caller = {.principal = "ann", .role = ROLE_USER};
    struct act *a = &w->acts[w->n_acts++];
    struct msg *m = msg_new(&caller, w->time.wall_ms);
    bool is_committed;
    struct tx_op *op;

    CHECK(w->n_acts <= ACTS_MAX);
    if (!m)
        return NULL;
    *a = (struct act){.agent = "Rick"};
    m->task.id = id_make(&w->ids, "task", w->time.wall_ms);
    m->task.turn = 1;
    m->choice.agent = STR("Rick");
    m->gate.gate_result = *p;
    m->gate.gate_result.priority = PRIORITY_NORMAL;
    m->gate.envelope = (struct envelope){.from = STR("Jay"),
                                         .to = STR("Rick"),
                                         .type = STR("REQUEST"),
                                         .reference = STR("R-1")};
    op = tx_insert(&m->tx, &task_table);
    tx_set(op, TASK_ID, value_text(str_of(m->task.id.text)));
    tx_set(op, TASK_VERSION, value_int(1));
    a->t = (struct task){.id = m->task.id,
                         .turn = 1,
                         .version = 1,
                         .status = gate_result_status(p->answer),
                         .priority = PRIORITY_NORMAL,
                         .requester = STR("ann"),
                         .root_user = STR("ann"),
                         .agent = str_of(a->agent)};
    escalations_record(&w->b, m);
    sla_record(&w->b, m);
    revive_record(&w->b, m);
    store_submit(w->store, &m->tx, on_accepted, NULL);
    turns(w, 2);
    is_committed = m->tx.result == TX_COMMITTED;
    escalations_settle(&w->b, m, is_committed);
    sla_settle(&w->b, m, is_committed);
    revive_settle(&w->b, m, is_committed);
    msg_free(m);
    turns(w, 2);
    return is_committed ? a : NULL;
}

#define MUST_BE_SEEN                                \
    (&(struct gate_result){.answer = GATE_ESCALATE, \
                           .cause = PASS_RULE,      \
                           .rule = STR("ban"),      \
                           .reason = "a ban"})
#define TARGET_IS_DEAD                                \
    (&(struct gate_result){.answer = GATE_ESCALATE,   \
                           .cause = PASS_TARGET_DEAD, \
                           .reason = "Rick is DEAD"})
#define MAY_GO (&(struct gate_result){.answer = GATE_ROUTE, .cause = PASS_FREE})

/* Of the row of an escalation. */
struct shown {
    int64_t status, kind, reminded, n;
    char by[64], comment[256], to[64], offer[64], id[64], rule[64];
};

static inline struct shown row_of(struct world *w, const struct act *a,
                                  int64_t kind)
{
    struct shown out = {.n = 0};
    struct query q;

    query_init(&q, &escalation_table, 100);
    query_if(&q, ESCALATION_TASK_ID, IS, value_text(str_of(a->t.id.text)));
    CHECK(store_look(w->store, &q) == OK);
    QUERY_EACH(r, &q)
    if (!kind || row_int(r, ESCALATION_KIND) == kind) {
        out.n++;
        out.status = row_int(r, ESCALATION_STATUS);
        out.kind = row_int(r, ESCALATION_KIND);
        out.reminded = row_int(r, ESCALATION_REMINDED);
        snprintf(out.by, 64, "%.*s", STR_ARG(row_str(r, ESCALATION_BY)));
        snprintf(out.comment, 256, "%.*s",
                 STR_ARG(row_str(r, ESCALATION_COMMENT)));
        snprintf(out.to, 64, "%.*s", STR_ARG(row_str(r, ESCALATION_TO)));
        snprintf(out.offer, 64, "%.*s", STR_ARG(row_str(r, ESCALATION_OFFER)));
        snprintf(out.rule, 64, "%.*s",
                 STR_ARG(row_str(r, ESCALATION_RULE_NAME)));
        snprintf(out.id, 64, "%.*s", STR_ARG(row_str(r, ESCALATION_ID)));
    }
    query_fini(&q);
    return out;
}

struct heard {
    int n;
    enum err err;
    char words[1024];
};

static inline void on_heard(void *ctx, enum err e, const struct why *why)
{
    struct heard *h = ctx;

    h->n++;
    h->err = e;
    snprintf(h->words, sizeof(h->words), "%s", why->text);
}

static inline void says(struct world *w, const char *id, const char *by,
                        enum escalation_status status, const char *agent,
                        struct heard *h)
{
    *h = (struct heard){.n = 0};
    gatekeeper_reply(&w->b,
                     &(struct escalation_reply){.id = str_of(id),
                                                .status = status,
                                                .agent = str_of(agent),
                                                .comment = STR("as I said"),
                                                .by = str_of(by)},
                     on_heard, h);
}

#endif
