/* The face of what learns: the job (judge.h), what is learnt and how that is
 * kept (learnt.h), and what people say about decisions, which is here. */
#include "lessons/lessons.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "choose/choose.h"
#include "lessons/judge.h"
#include "lessons/learnt.h"
#include "watch/watch.h"

enum { FEED_DATA_MAX = 1024 };

struct waiter {
    void (*done)(void *ctx, enum err e, int64_t n);
    void *ctx;
};

struct waiters {
    struct waiter list[LESSONS_WAITING_MAX];
    size_t n;
};

struct lessons {
    struct lessons_opts opts;
    char model_hash[128];
    struct judge judge;
    struct learnt learnt;
    struct timer timer;       /* of the next run */
    struct waiters now, then; /* for the run that goes on; for the next */
    size_t n_forgetting;
    struct voiding *voiding; /* on its way; NULL: none is */
    int64_t newest_decision;
    int64_t runs_total, judged_total, outcomes_total;
    bool is_stopping;
};

/* The job. */

static void wait_for_next(struct lessons *l)
{
    int64_t every_ms = l->opts.settings.every_ms;

    loop_timer_cancel(l->opts.loop, &l->timer);
    if (every_ms && !l->is_stopping &&
        loop_timer_set(l->opts.loop, &l->timer, every_ms) != OK)
        log_warn(l->opts.log, "learning.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

static void begin_run(struct lessons *l)
{
    l->now = l->then;
    l->then.n = 0;
    judge_run(&l->judge);
}

static void tell(struct waiters *all, enum err e, int64_t n)
{
    struct waiters told = *all;

    all->n = 0;
    for (size_t i = 0; i < told.n; i++)
        told.list[i].done(told.list[i].ctx, e, n);
}

static void on_over(void *ctx, enum err e, int64_t n)
{
    struct lessons *l = ctx;

    l->runs_total++;
    l->judged_total += n;
    if (e && e != ERR_STOPPING)
        log_warn(l->opts.log, "learning.not_judged",
                 LOG_C("because", err_row(e)->wording));
    else if (n)
        log_info(l->opts.log, "learning.judged", LOG_I("decisions", n));
    tell(&l->now, e, n);
    if (l->is_stopping)
        tell(&l->then, ERR_STOPPING, 0);
    else if (l->then.n && !l->judge.is_running)
        begin_run(l);
    wait_for_next(l);
}

static void on_timer(struct timer *t)
{
    struct lessons *l = LIST_OF(t, struct lessons, timer);

    if (!l->judge.is_running)
        begin_run(l);
}

void lessons_run(struct lessons *l,
                 void (*done)(void *ctx, enum err e, int64_t n), void *ctx)
{
    if (l->is_stopping || l->then.n == LESSONS_WAITING_MAX) {
        done(ctx, l->is_stopping ? ERR_STOPPING : ERR_OVERLOADED, 0);
        return;
    }
    l->then.list[l->then.n++] = (struct waiter){done, ctx};
    if (!l->judge.is_running)
        begin_run(l);
}

/* What people say. */

struct str lessons_scope(const struct caller *c,
                         char out[PRINCIPAL_NAME_MAX + 8])
{
    return judge_scope(str_of(c->org), caller_name(c), out);
}

/* If it still is as d says. */
static struct tx_op *mark(struct tx *tx, const struct decision *d)
{
    struct tx_op *op = tx_update(tx, &decision_table);

    tx_if(op, DECISION_ID, IS, value_text(str_of(d->id.text)));
    tx_if(op, DECISION_VERDICT, IS,
          d->verdict ? value_int(d->verdict) : value_null());
    tx_if(op, DECISION_OVERRIDDEN_TO, IS, value_text_or_null(d->overridden_to));
    return op;
}

static void mark_overridden(struct tx *tx, const struct lessons_word *w)
{
    struct tx_op *op = mark(tx, w->decision);

    tx_set(op, DECISION_VERDICT, value_int(VERDICT_NEGATIVE));
    tx_set(op, DECISION_VERDICT_MS, value_int(w->at_ms));
    tx_set(op, DECISION_OVERRIDDEN_TO, value_text(w->right));
    tx_set(op, DECISION_OVERRIDDEN_BY, value_text(w->by));
    tx_set(op, DECISION_OVERRIDDEN_MS, value_int(w->at_ms));
}

/* That it was right after all takes back that it was overridden. */
static void mark_verdict(struct tx *tx, const struct lessons_word *w)
{
    const struct decision *d = w->decision;
    struct tx_op *op = mark(tx, d);

    tx_set(op, DECISION_VERDICT, value_int(w->verdict));
    tx_set(op, DECISION_VERDICT_MS, value_int(w->at_ms));
    if (w->verdict == VERDICT_POSITIVE && d->overridden_to.n) {
        tx_set(op, DECISION_OVERRIDDEN_TO, value_null());
        tx_set(op, DECISION_OVERRIDDEN_BY, value_null());
        tx_set(op, DECISION_OVERRIDDEN_MS, value_null());
    }
}

static enum lessons_standing stands(void *ctx, const struct decision *d)
{
    const struct lessons *l = ctx;

    return l->opts.stands ? l->opts.stands(l->opts.ctx, d) : STANDS_OUTSIDE;
}

static struct str owner_of(void *ctx, struct str agent)
{
    const struct lessons *l = ctx;

    return l->opts.owner_of && agent.n ? l->opts.owner_of(l->opts.ctx, agent)
                                       : STR("");
}

static bool has_counted(const struct decision *d)
{
    return d->verdict == VERDICT_POSITIVE || d->verdict == VERDICT_NEGATIVE;
}

void lessons_append(struct lessons *l, struct tx *tx,
                    const struct lessons_word *w)
{
    const struct decision *d = w->decision;
    char scope[JUDGE_SCOPE_BYTES];
    struct outcome o = judge_outcome(d, scope);

    judge_stand(&o, stands(l, d));
    if (has_counted(d))
        o.counts = COUNTS_NOT;
    o.at_ms = w->at_ms;
    o.by = w->by;
    o.owner = owner_of(l, o.agent);
    o.right_owner = owner_of(l, w->right);
    if (w->vector.n) {
        o.vector = w->vector;
        o.model_hash = w->model_hash;
    }
    if (w->right.n) {
        mark_overridden(tx, w);
        o.kind = OUTCOME_CORRECTION;
        o.verdict = VERDICT_NEGATIVE;
        o.right_agent = w->right;
    } else {
        mark_verdict(tx, w);
        o.kind = OUTCOME_FEEDBACK;
        o.verdict = w->verdict;
    }
    /* Of what was chosen by a person, a rule or habit, going elsewhere says
     * nothing about the text: recorded, with nothing in it to learn from. */
    if (w->is_switch && !layer_is_routed(d->layer)) {
        o.text = o.vector = (struct str){NULL, 0};
        o.text_hash = 0;
    }
    outcome_append(tx, &o);
}

/* What was committed. */

static struct outcome outcome_of(const struct tx_op *op)
{
    struct value values[N_OUTCOME_COLUMNS];
    struct row row = {.values = values};
    struct outcome o;

    for (int i = 0; i < N_OUTCOME_COLUMNS; i++)
        values[i] = tx_value(op, (uint8_t)i);
    values[OUTCOME_SEQ] = value_int(op->seq);
    outcome_from_row(&row, &o);
    return o;
}

void lessons_committed(struct lessons *l, const struct tx *tx)
{
    TX_EACH(op, tx)
    {
        struct outcome o;

        if (op->kind != TX_INSERT)
            continue;
        if (op->table == &decision_table)
            l->newest_decision = op->seq;
        if (op->table != &outcome_table)
            continue;
        o = outcome_of(op);
        l->outcomes_total++;
        learnt_take(&l->learnt, &o);
    }
}

/* Forgetting. */

struct forgetting {
    struct lessons *lessons;
    struct tx tx;
    void (*done)(void *ctx, enum err e);
    void *ctx;
};

void lessons_agent_gone(struct tx *tx, struct str agent, int64_t at_ms)
{
    outcome_append(tx, &(struct outcome){.kind = OUTCOME_FORGET,
                                         .at_ms = at_ms,
                                         .agent = agent});
}

static void on_forgotten(struct tx *tx, void *ctx)
{
    struct forgetting *f = ctx;

    f->lessons->n_forgetting--;
    f->done(f->ctx, tx->result == TX_COMMITTED ? OK : tx->err);
    tx_fini(tx);
    free(f);
}

void lessons_forget(struct lessons *l, struct str agent, struct str by,
                    void (*done)(void *ctx, enum err e), void *ctx)
{
    int64_t now_ms = loop_wall_ms(l->opts.loop);
    struct forgetting *f = FAULT("lessons.forget") ? NULL : malloc(sizeof(*f));

    if (!f || l->is_stopping) {
        free(f);
        done(ctx, l->is_stopping ? ERR_STOPPING : ERR_NOMEM);
        return;
    }
    *f = (struct forgetting){.lessons = l, .done = done, .ctx = ctx};
    tx_init(&f->tx);
    outcome_append(&f->tx, &(struct outcome){.kind = OUTCOME_FORGET,
                                             .at_ms = now_ms,
                                             .agent = agent,
                                             .by = by});
    feed_append(&f->tx, &(struct feed_entry){.at_ms = now_ms,
                                             .type = STR("learning.reset"),
                                             .agent = agent,
                                             .requester = by});
    l->n_forgetting++;
    store_submit(l->opts.store, &f->tx, on_forgotten, f);
}

void lessons_rebuild(struct lessons *l,
                     void (*done)(void *ctx, enum err e, int64_t n), void *ctx)
{
    enum err e = learnt_rebuild(&l->learnt, done, ctx);

    if (e)
        done(ctx, e, 0);
}

/* Voiding. A name that covers nothing is most likely misspelt, and must not
 * take one of the places there are: so the verdicts are counted before the void
 * is written.
 *
 *     read the voids -> read the outcomes, and count -> (commit) -> await the
 *     fold without them */

struct voiding {
    struct lessons *lessons;
    struct learn_voids *before; /* that there are */
    struct learn_voids *own;    /* this one alone */
    struct query query;
    struct tx tx;
    char target[PRINCIPAL_NAME_MAX + 8], by[PRINCIPAL_NAME_MAX + 1];
    int64_t n_voided;
    lessons_voided *done;
    void *ctx;
};

static void voiding_free(struct voiding *v)
{
    if (!v)
        return;
    learn_voids_free(v->before);
    learn_voids_free(v->own);
    free(v);
}

static void void_is_over(struct voiding *v, enum err e, int64_t n)
{
    lessons_voided *done = v->done;
    int64_t n_voided = e ? 0 : v->n_voided;
    void *ctx = v->ctx;

    if (v->lessons->voiding == v)
        v->lessons->voiding = NULL;
    voiding_free(v);
    done(ctx, e, n, n_voided);
}

static void on_refolded(void *ctx, enum err e, int64_t n)
{
    void_is_over(ctx, e, n);
}

/* The next void can begin while this one waits. */
static void await_fold(struct voiding *v)
{
    enum err e;

    v->lessons->voiding = NULL;
    e = learnt_await(&v->lessons->learnt, on_refolded, v);
    if (e)
        void_is_over(v, e, 0);
}

/* The fold without them began with the commit. */
static void on_voided(struct tx *tx, void *ctx)
{
    struct voiding *v = ctx;
    enum err e = tx->result == TX_COMMITTED ? OK : tx->err;

    tx_fini(tx);
    if (e)
        void_is_over(v, e, 0);
    else
        await_fold(v);
}

static void submit_void(struct voiding *v)
{
    struct lessons *l = v->lessons;
    int64_t now_ms = loop_wall_ms(l->opts.loop);
    struct outcome o = {.kind = OUTCOME_VOID,
                        .at_ms = now_ms,
                        .scope = str_of(v->target),
                        .by = str_of(v->by)};
    enum err e = learn_voids_add(v->before, &o);
    struct buf data;
    struct json_out out;

    if (e) {
        void_is_over(v, e, 0);
        return;
    }
    tx_init(&v->tx);
    outcome_append(&v->tx, &o);
    buf_init(&data, FEED_DATA_MAX);
    out = json_out(&data);
    json_open(&out, '{');
    json_member_text(&out, "of", o.scope);
    json_close(&out, '}');
    feed_append(&v->tx, &(struct feed_entry){.at_ms = now_ms,
                                             .type = STR("learning.voided"),
                                             .requester = o.by,
                                             .data = buf_str(&data)});
    buf_fini(&data);
    store_submit(l->opts.store, &v->tx, on_voided, v);
}

static void on_outcomes(struct query *q, void *ctx)
{
    struct voiding *v = ctx;
    struct lessons *l = v->lessons;
    bool has_more = q->has_more;
    enum err e = q->err;
    int64_t last = 0;

    for (const struct row *r = q->rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        last = o.seq;
        v->n_voided +=
            learn_voids_cover(v->own, &o) && !learn_voids_cover(v->before, &o);
    }
    query_fini(q);
    if (!e && l->is_stopping)
        e = ERR_STOPPING;
    if (e) {
        void_is_over(v, e, 0);
    } else if (has_more) {
        learnt_ask_outcomes(q, last);
        store_read(l->opts.store, q, on_outcomes, v);
    } else if (v->n_voided) {
        submit_void(v);
    } else {
        await_fold(v); /* that an earlier void may have begun */
    }
}

static void on_voids(struct query *q, void *ctx)
{
    struct voiding *v = ctx;
    struct lessons *l = v->lessons;
    bool has_more = q->has_more;
    enum err e = q->err;
    int64_t last = 0;

    for (const struct row *r = q->rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        last = o.seq;
        e = learn_voids_add(v->before, &o);
    }
    query_fini(q);
    if (!e && l->is_stopping)
        e = ERR_STOPPING;
    if (e) {
        void_is_over(v, e, 0);
    } else if (has_more) {
        learnt_ask_voids(q, last);
        store_read(l->opts.store, q, on_voids, v);
    } else {
        learnt_ask_outcomes(q, 0);
        store_read(l->opts.store, q, on_outcomes, v);
    }
}

int64_t lessons_voided_ms(const struct lessons *l)
{
    return l->learnt.voided_ms;
}

/* The target is "user:NAME" or "owner:NAME". NULL: memory is gone. */
static struct voiding *voiding_new(struct lessons *l, struct str target,
                                   struct str by)
{
    struct voiding *v = FAULT("lessons.void") ? NULL : calloc(1, sizeof(*v));
    struct outcome o = {.kind = OUTCOME_VOID, .seq = INT64_MAX};

    if (!v)
        return NULL;
    v->lessons = l;
    memcpy(v->target, target.p, target.n);
    memcpy(v->by, by.p, by.n);
    o.scope = str_of(v->target);
    v->before = learn_voids_new(l->opts.seed);
    v->own = learn_voids_new(l->opts.seed);
    if (v->before && v->own && learn_voids_add(v->own, &o) == OK)
        return v;
    voiding_free(v);
    return NULL;
}

void lessons_void(struct lessons *l, struct str target, struct str by,
                  lessons_voided *done, void *ctx)
{
    struct voiding *v = NULL;
    enum err e = OK;

    if (l->is_stopping)
        e = ERR_STOPPING;
    else if (l->voiding)
        e = ERR_BUSY;
    else if (target.n >= sizeof(v->target) || by.n >= sizeof(v->by))
        e = ERR_LIMIT;
    else if (!(v = voiding_new(l, target, by)))
        e = ERR_NOMEM;
    if (e) {
        done(ctx, e, 0, 0);
        return;
    }
    v->done = done;
    v->ctx = ctx;
    l->voiding = v;
    learnt_ask_voids(&v->query, 0);
    store_read(l->opts.store, &v->query, on_voids, v);
}

/* Removing what is old. */

void lessons_first(struct query *q, const struct table *t)
{
    query_init(q, t, 1);
    query_order(q, 0, false);
    q->is_quick = true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Numbers and times grow together, so that only the first so many need be
 * looked at, whatever the table holds. */
static void prune(struct tx *tx, const struct table *t, uint8_t at_column,
                  int64_t first, int64_t upto, int64_t before_ms, size_t limit)
{
    struct tx_op *op;

    if (!first || upto < first)
        return;
    op = tx_prune(tx, t, limit);
    tx_if(op, 0, IS_AT_MOST, value_int(least(upto, first + (int64_t)limit)));
    if (before_ms < INT64_MAX)
        tx_if(op, at_column, IS_LESS, value_int(before_ms));
}

void lessons_prune(const struct lessons *l, struct tx *tx,
                   const struct lessons_keep *k)
{
    int64_t written = l->learnt.written;

    prune(tx, &decision_table, DECISION_AT_MS, k->first_decision, INT64_MAX,
          least(k->before_ms, k->unfinished_ms), k->limit);
    prune(tx, &outcome_table, OUTCOME_AT_MS, k->first_outcome, written,
          k->before_ms, k->limit);
    if (k->rows <= 0)
        return;
    prune(tx, &decision_table, DECISION_AT_MS, k->first_decision,
          l->newest_decision - k->rows, k->unfinished_ms, k->limit);
    prune(tx, &outcome_table, OUTCOME_AT_MS, k->first_outcome,
          least(written, l->learnt.newest - k->rows), INT64_MAX, k->limit);
}

/* Life. */

static struct judge_rules rules_of(const struct lessons_settings *s)
{
    return (struct judge_rules){.follow_up_ms = s->follow_up_ms,
                                .substantial = s->substantial,
                                .uselessly_short = s->uselessly_short};
}

static bool is_going_on(void *ctx, struct str task_id)
{
    struct lessons *l = ctx;

    return l->opts.is_going_on(l->opts.ctx, task_id);
}

struct lessons *lessons_new(const struct lessons_opts *opts)
{
    struct lessons *l = FAULT("lessons.new") ? NULL : calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->opts = *opts;
    l->opts.model_hash = str_head(opts->model_hash, sizeof(l->model_hash));
    if (l->opts.model_hash.n)
        memcpy(l->model_hash, opts->model_hash.p, l->opts.model_hash.n);
    l->opts.model_hash.p = l->model_hash;
    l->timer.fire = on_timer;
    l->judge = (struct judge){.loop = opts->loop,
                              .log = opts->log,
                              .store = opts->store,
                              .is_going_on = is_going_on,
                              .stands = stands,
                              .owner_of = owner_of,
                              .on_over = on_over,
                              .ctx = l,
                              .rules = rules_of(&opts->settings)};
    judge_init(&l->judge);
    l->learnt = (struct learnt){.loop = opts->loop,
                                .log = opts->log,
                                .store = opts->store,
                                .settings = opts->settings.learn,
                                .model_hash = l->opts.model_hash,
                                .quick_dims = l->opts.quick_dims,
                                .seed = {opts->seed[0], opts->seed[1]}};
    if (learnt_init(&l->learnt) == OK)
        return l;
    lessons_free(l);
    return NULL;
}

void lessons_free(struct lessons *l)
{
    if (!l)
        return;
    assert(!l->n_forgetting && !l->voiding && !l->now.n && !l->then.n);
    loop_timer_cancel(l->opts.loop, &l->timer);
    judge_fini(&l->judge);
    learnt_fini(&l->learnt);
    free(l);
}

static enum err find_newest_decision(struct lessons *l)
{
    struct query q;
    enum err e;

    query_init(&q, &decision_table, 1);
    query_order(&q, DECISION_SEQ, true);
    e = store_look(l->opts.store, &q);
    if (!e && q.rows)
        l->newest_decision = row_int(q.rows, DECISION_SEQ);
    query_fini(&q);
    return e;
}

enum err lessons_load(struct lessons *l, struct why *why)
{
    enum err e = learnt_load(&l->learnt, why);

    if (e)
        return e;
    e = find_newest_decision(l);
    if (e)
        return why_err(why, e, "cannot read the decisions: %s",
                       err_row(e)->wording);
    wait_for_next(l);
    return OK;
}

void lessons_set(struct lessons *l, const struct lessons_settings *s)
{
    bool is_other = s->every_ms != l->opts.settings.every_ms;

    l->opts.settings = *s;
    l->judge.rules = rules_of(s);
    learnt_set(&l->learnt, &s->learn);
    if (is_other)
        wait_for_next(l);
}

void lessons_stop(struct lessons *l)
{
    l->is_stopping = true;
    loop_timer_cancel(l->opts.loop, &l->timer);
    judge_stop(&l->judge);
    learnt_stop(&l->learnt);
    tell(&l->now, ERR_STOPPING, 0);
    tell(&l->then, ERR_STOPPING, 0);
}

int64_t lessons_follow_up_ms(const struct lessons *l)
{
    return l->opts.settings.follow_up_ms;
}

struct learn *lessons_learn(struct lessons *l)
{
    return l->learnt.learn;
}

struct lessons_stats lessons_stats(const struct lessons *l)
{
    return (struct lessons_stats){
        .learn = learn_stats(l->learnt.learn),
        .runs_total = l->runs_total,
        .judged_total = l->judged_total,
        .outcomes_total = l->outcomes_total,
        .behind = l->learnt.behind,
        .newest = l->learnt.newest,
        .written = l->learnt.written,
        .is_running = l->judge.is_running,
        .is_rebuilding = l->learnt.is_rebuilding,
    };
}
