/* The interface of learning: the job (judge.h), the learned state and its rows
 * (learnt.h), and users' verdicts, which are here. */
#include "learn/learning.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "choose/layers/choose.h"
#include "learn/judge.h"
#include "learn/learnt.h"
#include "watch/watch.h"

enum { FEED_DATA_MAX = 1024 };

struct waiter {
    void (*done)(void *ctx, enum err e, int64_t n);
    void *ctx;
};

struct waiters {
    struct waiter list[LEARNING_WAITING_MAX];
    size_t n;
};

struct learning {
    struct learning_opts opts;
    char model_hash[128];
    struct judge judge;
    struct learnt learnt;
    struct timer timer;       /* of the next run */
    struct waiters now, then; /* for the present run; for the next one */
    size_t n_forgetting;
    struct voiding *voiding; /* in progress; NULL: none */
    int64_t newest_decision;
    int64_t runs_total, judged_total, outcomes_total;
    bool is_stopping;
};

/* The job. */

static void wait_for_next(struct learning *l)
{
    int64_t every_ms = l->opts.settings.every_ms;

    loop_timer_cancel(l->opts.loop, &l->timer);
    if (every_ms && !l->is_stopping)
        loop_timer_set(l->opts.loop, &l->timer, every_ms);
}

static void begin_run(struct learning *l)
{
    l->now = l->then;
    l->then.n = 0;
    judge_run(&l->judge);
}

static void call_waiters(struct waiters *all, enum err e, int64_t n)
{
    struct waiters waiters = *all;

    all->n = 0;
    for (size_t i = 0; i < waiters.n; i++)
        waiters.list[i].done(waiters.list[i].ctx, e, n);
}

static void learning_on_over(void *ctx, enum err e, int64_t n)
{
    struct learning *l = ctx;

    l->runs_total++;
    l->judged_total += n;
    if (e && e != ERR_STOPPING)
        log_warn(l->opts.log, "learning.not_judged",
                 LOG_C("because", err_row(e)->wording));
    else if (n)
        log_info(l->opts.log, "learning.judged", LOG_I("decisions", n));
    call_waiters(&l->now, e, n);
    if (l->is_stopping)
        call_waiters(&l->then, ERR_STOPPING, 0);
    else if (l->then.n && !l->judge.is_running)
        begin_run(l);
    wait_for_next(l);
}

static void learning_on_timer(struct timer *t)
{
    struct learning *l = LIST_OF(t, struct learning, timer);

    if (!l->judge.is_running)
        begin_run(l);
}

void learning_run(struct learning *l,
                  void (*done)(void *ctx, enum err e, int64_t n), void *ctx)
{
    if (l->is_stopping || l->then.n == LEARNING_WAITING_MAX) {
        done(ctx, l->is_stopping ? ERR_STOPPING : ERR_OVERLOADED, 0);
        return;
    }
    l->then.list[l->then.n++] = (struct waiter){done, ctx};
    if (!l->judge.is_running)
        begin_run(l);
}

/* Verdicts of users. */

struct str learning_scope(const struct caller *c,
                          char out[PRINCIPAL_NAME_MAX + 8])
{
    return judge_scope(str_of(c->org), caller_name(c), out);
}

/* Guarded: the decision is still as in d. */
static struct tx_op *decision_update(struct tx *tx, const struct decision *d)
{
    struct tx_op *op = tx_update(tx, &decision_table);

    tx_if(op, DECISION_ID, IS, value_text(str_of(d->id.text)));
    tx_if(op, DECISION_VERDICT, IS,
          d->verdict ? value_int(d->verdict) : value_null());
    tx_if(op, DECISION_OVERRIDDEN_TO, IS, value_text_or_null(d->overridden_to));
    return op;
}

static void mark_overridden(struct tx *tx, const struct learning_word *w)
{
    struct tx_op *op = decision_update(tx, w->decision);

    tx_set(op, DECISION_VERDICT, value_int(VERDICT_NEGATIVE));
    tx_set(op, DECISION_VERDICT_MS, value_int(w->at_ms));
    tx_set(op, DECISION_OVERRIDDEN_TO, value_text(w->right));
    tx_set(op, DECISION_OVERRIDDEN_BY, value_text(w->by));
    tx_set(op, DECISION_OVERRIDDEN_MS, value_int(w->at_ms));
}

/* A positive verdict withdraws an override. */
static void mark_verdict(struct tx *tx, const struct learning_word *w)
{
    const struct decision *d = w->decision;
    struct tx_op *op = decision_update(tx, d);

    tx_set(op, DECISION_VERDICT, value_int(w->verdict));
    tx_set(op, DECISION_VERDICT_MS, value_int(w->at_ms));
    if (w->verdict == VERDICT_POSITIVE && d->overridden_to.n) {
        tx_set(op, DECISION_OVERRIDDEN_TO, value_null());
        tx_set(op, DECISION_OVERRIDDEN_BY, value_null());
        tx_set(op, DECISION_OVERRIDDEN_MS, value_null());
    }
}

static enum learning_standing learning_standing_of(void *ctx,
                                                   const struct decision *d)
{
    const struct learning *l = ctx;

    return l->opts.stands ? l->opts.stands(l->opts.ctx, d) : STANDS_OUTSIDE;
}

static struct str learning_owner_of(void *ctx, struct str agent)
{
    const struct learning *l = ctx;

    return l->opts.owner_of && agent.n ? l->opts.owner_of(l->opts.ctx, agent)
                                       : STR("");
}

void learning_append(struct learning *l, struct tx *tx,
                     const struct learning_word *w)
{
    const struct decision *d = w->decision;
    char scope[JUDGE_SCOPE_BYTES];
    struct outcome o = judge_outcome(d, scope);

    judge_stand(&o, learning_standing_of(l, d));
    if (d->verdict == VERDICT_POSITIVE || d->verdict == VERDICT_NEGATIVE)
        o.counts = COUNTS_NOT;
    o.at_ms = w->at_ms;
    o.by = w->by;
    o.owner = learning_owner_of(l, o.agent);
    o.right_owner = learning_owner_of(l, w->right);
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
    /* If a person, a rule or a habit chose the agent, a switch says nothing
     * about the text: it is recorded without anything to learn from. */
    if (w->is_switch && !layer_is_routed(d->layer)) {
        o.text = o.vector = (struct str){NULL, 0};
        o.text_hash = 0;
    }
    outcome_append(tx, &o);
}

/* Committed outcomes. */

static struct outcome committed_outcome(const struct tx_op *op)
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

void learning_committed(struct learning *l, const struct tx *tx)
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
        o = committed_outcome(op);
        l->outcomes_total++;
        learnt_take(&l->learnt, &o);
    }
}

/* Forgetting. */

struct forgetting {
    struct learning *learning;
    struct tx tx;
    void (*done)(void *ctx, enum err e);
    void *ctx;
};

void learning_agent_gone(struct tx *tx, struct str agent, int64_t at_ms)
{
    outcome_append(tx, &(struct outcome){.kind = OUTCOME_FORGET,
                                         .at_ms = at_ms,
                                         .agent = agent});
}

static void on_forgotten(struct tx *tx, void *ctx)
{
    struct forgetting *f = ctx;

    f->learning->n_forgetting--;
    f->done(f->ctx, tx->result == TX_COMMITTED ? OK : tx->err);
    tx_fini(tx);
    free(f);
}

void learning_forget(struct learning *l, struct str agent, struct str by,
                     void (*done)(void *ctx, enum err e), void *ctx)
{
    int64_t now_ms = loop_wall_ms(l->opts.loop);
    struct forgetting *f;

    if (l->is_stopping) {
        done(ctx, ERR_STOPPING);
        return;
    }
    f = mem_new(sizeof(*f));
    *f = (struct forgetting){.learning = l, .done = done, .ctx = ctx};
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

void learning_rebuild(struct learning *l,
                      void (*done)(void *ctx, enum err e, int64_t n), void *ctx)
{
    enum err e = learnt_rebuild(&l->learnt, done, ctx);

    if (e)
        done(ctx, e, 0);
}

/* Voiding. A name that covers nothing is most likely misspelt, and must not use
 * up one of the limited voids: so the verdicts are counted before the void is
 * written.
 *
 *     read the voids -> read the outcomes, and count -> (commit) -> await the
 *     fold without them */

struct voiding {
    struct learning *learning;
    struct learn_voids *before; /* the existing voids */
    bool has_voids;             /* all of them are in `before` */
    struct learn_voids *own;    /* only this one */
    struct query query;
    struct tx tx;
    char target[PRINCIPAL_NAME_MAX + 8], by[PRINCIPAL_NAME_MAX + 1];
    int64_t n_voided;
    learning_voided *done;
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

static void voiding_end(struct voiding *v, enum err e, int64_t n)
{
    learning_voided *done = v->done;
    int64_t n_voided = e ? 0 : v->n_voided;
    void *ctx = v->ctx;

    if (v->learning->voiding == v)
        v->learning->voiding = NULL;
    voiding_free(v);
    done(ctx, e, n, n_voided);
}

static void on_refolded(void *ctx, enum err e, int64_t n)
{
    voiding_end(ctx, e, n);
}

/* The next void can begin while this one waits. */
static void await_fold(struct voiding *v)
{
    enum err e;

    v->learning->voiding = NULL;
    e = learnt_await(&v->learning->learnt, on_refolded, v);
    if (e)
        voiding_end(v, e, 0);
}

/* The fold without the outcomes began with the commit. */
static void on_voided(struct tx *tx, void *ctx)
{
    struct voiding *v = ctx;
    enum err e = tx->result == TX_COMMITTED ? OK : tx->err;

    tx_fini(tx);
    if (e)
        voiding_end(v, e, 0);
    else
        await_fold(v);
}

static void submit_void(struct voiding *v)
{
    struct learning *l = v->learning;
    int64_t now_ms = loop_wall_ms(l->opts.loop);
    struct outcome o = {.kind = OUTCOME_VOID,
                        .at_ms = now_ms,
                        .scope = str_of(v->target),
                        .by = str_of(v->by)};
    enum err e = learn_voids_add(v->before, &o);
    struct buf data;
    struct json_out out;

    if (e) {
        voiding_end(v, e, 0);
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

/* First the pages of the voids, then those of the outcomes. */
static void voiding_on_page(struct query *q, void *ctx)
{
    struct voiding *v = ctx;
    struct learning *l = v->learning;
    bool has_more = q->has_more;
    enum err e = q->err;
    int64_t last = 0;

    for (const struct row *r = q->rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        last = o.seq;
        if (!v->has_voids)
            e = learn_voids_add(v->before, &o);
        else
            v->n_voided += learn_voids_cover(v->own, &o) &&
                           !learn_voids_cover(v->before, &o);
    }
    query_fini(q);
    if (!e && l->is_stopping)
        e = ERR_STOPPING;
    if (e) {
        voiding_end(v, e, 0);
    } else if (has_more && !v->has_voids) {
        learnt_ask_voids(q, last);
        store_read(l->opts.store, q, voiding_on_page, v);
    } else if (has_more || !v->has_voids) {
        learnt_ask_outcomes(q, v->has_voids ? last : 0);
        v->has_voids = true;
        store_read(l->opts.store, q, voiding_on_page, v);
    } else if (v->n_voided) {
        submit_void(v);
    } else {
        await_fold(v); /* an earlier void may have begun it */
    }
}

int64_t learning_voided_ms(const struct learning *l)
{
    return l->learnt.voided_ms;
}

/* The target is "user:NAME" or "owner:NAME". NULL: it is neither. */
static struct voiding *voiding_new(struct learning *l, struct str target,
                                   struct str by)
{
    struct voiding *v = mem_new(sizeof(*v));
    struct outcome o = {.kind = OUTCOME_VOID, .seq = INT64_MAX};

    v->learning = l;
    memcpy(v->target, target.p, target.n);
    memcpy(v->by, by.p, by.n);
    o.scope = str_of(v->target);
    v->before = learn_voids_new(l->opts.seed);
    v->own = learn_voids_new(l->opts.seed);
    if (learn_voids_add(v->own, &o) == OK)
        return v;
    voiding_free(v);
    return NULL;
}

void learning_void(struct learning *l, struct str target, struct str by,
                   learning_voided *done, void *ctx)
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
    store_read(l->opts.store, &v->query, voiding_on_page, v);
}

/* Retention. */

void learning_first(struct query *q, const struct table *t)
{
    query_init(q, t, 1);
    query_order(q, 0, false);
    q->is_quick = true;
}

static int64_t lesser_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Numbers and times grow together, so only the first rows need to be checked,
 * however large the table is. */
static void learning_prune_table(struct tx *tx, const struct table *t,
                                 uint8_t at_column, int64_t first, int64_t upto,
                                 int64_t before_ms, size_t limit)
{
    struct tx_op *op;

    if (!first || upto < first)
        return;
    op = tx_prune(tx, t, limit);
    tx_if(op, 0, IS_AT_MOST,
          value_int(lesser_of(upto, first + (int64_t)limit)));
    if (before_ms < INT64_MAX)
        tx_if(op, at_column, IS_LESS, value_int(before_ms));
}

void learning_prune(const struct learning *l, struct tx *tx,
                    const struct learning_keep *k)
{
    int64_t written = l->learnt.written;

    learning_prune_table(tx, &decision_table, DECISION_AT_MS, k->first_decision,
                         INT64_MAX, lesser_of(k->before_ms, k->unfinished_ms),
                         k->limit);
    learning_prune_table(tx, &outcome_table, OUTCOME_AT_MS, k->first_outcome,
                         written, k->before_ms, k->limit);
    if (k->rows <= 0)
        return;
    learning_prune_table(tx, &decision_table, DECISION_AT_MS, k->first_decision,
                         l->newest_decision - k->rows, k->unfinished_ms,
                         k->limit);
    learning_prune_table(tx, &outcome_table, OUTCOME_AT_MS, k->first_outcome,
                         lesser_of(written, l->learnt.newest - k->rows),
                         INT64_MAX, k->limit);
}

/* Start and stop. */

static struct judge_rules judge_rules_from(const struct learning_settings *s)
{
    return (struct judge_rules){.follow_up_ms = s->follow_up_ms,
                                .substantial = s->substantial,
                                .uselessly_short = s->uselessly_short};
}

static bool learning_is_going_on(void *ctx, struct str task_id)
{
    struct learning *l = ctx;

    return l->opts.is_going_on(l->opts.ctx, task_id);
}

struct learning *learning_new(const struct learning_opts *opts)
{
    struct learning *l = mem_new(sizeof(*l));

    l->opts = *opts;
    l->opts.model_hash = str_head(opts->model_hash, sizeof(l->model_hash));
    if (l->opts.model_hash.n)
        memcpy(l->model_hash, opts->model_hash.p, l->opts.model_hash.n);
    l->opts.model_hash.p = l->model_hash;
    l->timer.fire = learning_on_timer;
    l->judge = (struct judge){.loop = opts->loop,
                              .log = opts->log,
                              .store = opts->store,
                              .is_going_on = learning_is_going_on,
                              .stands = learning_standing_of,
                              .owner_of = learning_owner_of,
                              .on_over = learning_on_over,
                              .ctx = l,
                              .rules = judge_rules_from(&opts->settings)};
    judge_init(&l->judge);
    l->learnt = (struct learnt){.loop = opts->loop,
                                .log = opts->log,
                                .store = opts->store,
                                .settings = opts->settings.learn,
                                .model_hash = l->opts.model_hash,
                                .quick_dims = l->opts.quick_dims,
                                .seed = {opts->seed[0], opts->seed[1]}};
    learnt_init(&l->learnt);
    return l;
}

void learning_free(struct learning *l)
{
    if (!l)
        return;
    assert(!l->n_forgetting && !l->voiding && !l->now.n && !l->then.n);
    loop_timer_cancel(l->opts.loop, &l->timer);
    judge_fini(&l->judge);
    learnt_fini(&l->learnt);
    free(l);
}

enum err learning_load(struct learning *l, struct why *why)
{
    struct query q;
    enum err e = learnt_load(&l->learnt, why);

    if (e)
        return e;
    query_init(&q, &decision_table, 1);
    query_order(&q, DECISION_SEQ, true);
    e = store_look(l->opts.store, &q);
    if (!e && q.rows)
        l->newest_decision = row_int(q.rows, DECISION_SEQ);
    query_fini(&q);
    if (e)
        return why_err(why, e, "cannot read the decisions: %s",
                       err_row(e)->wording);
    wait_for_next(l);
    return OK;
}

void learning_set(struct learning *l, const struct learning_settings *s)
{
    bool is_other = s->every_ms != l->opts.settings.every_ms;

    l->opts.settings = *s;
    l->judge.rules = judge_rules_from(s);
    learnt_set(&l->learnt, &s->learn);
    if (is_other)
        wait_for_next(l);
}

void learning_stop(struct learning *l)
{
    l->is_stopping = true;
    loop_timer_cancel(l->opts.loop, &l->timer);
    judge_stop(&l->judge);
    learnt_stop(&l->learnt);
    call_waiters(&l->now, ERR_STOPPING, 0);
    call_waiters(&l->then, ERR_STOPPING, 0);
}

int64_t learning_follow_up_ms(const struct learning *l)
{
    return l->opts.settings.follow_up_ms;
}

struct learn *learning_learn(struct learning *l)
{
    return l->learnt.learn;
}

struct learning_stats learning_stats(const struct learning *l)
{
    return (struct learning_stats){
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
