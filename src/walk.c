/* The story of one message, from top to bottom: it is accepted, carried, and
 * what comes back is kept. Nobody hears of anything, and nothing in memory
 * changes, before it is durable.
 *
 *     walk_message -> route -> accept_message
 *                     -> hire_ask -> broker_ask -> ledger_ask -> task_create
 *                     -> (commit) -> on_accepted -> done
 *                     -> (refused) -> walk_ask_for_key (walk_repeat.c)
 *                        -> no agent gets it: its decision -> (commit) -> done
 *     walk_resume (walk_gate.c): what waited is asked about again, and let go
 *     on_ready -> deliver_offer, on_go
 *     deliver -> on_chunk
 *             -> on_retry -> task_retry -> on_ready …
 *             -> on_result  \
 *             -> on_stray    \    (walk_stray.c)
 *     walk_cancel            > change -> (commit) -> on_changed -> receipt
 *     on_deadline           /
 *
 * Two things that want to end the same task are not told apart here: both go
 * to the store, and the guard on the task's version lets the first win.
 *
 * A result is taken from the task's agent as long as the turn is not over,
 * whichever attempt it is of: work that was done while the agent was away
 * counts. What comes after the end is told in the feed and otherwise ignored
 * (stray.c). An agent that wants to know whether its result was kept gives a
 * receipt, and hears of it once that is certain.
 *
 * What cannot be written because the disk is full waits (walk_again.c) and is
 * tried again: an agent's work is not thrown away for want of space. Whoever
 * asked for something (a message, a cancel) is told so instead. */
#include "walk_internal.h"

enum {
    ROUTE_TRIES = 5, /* a conversation that others change meanwhile */
};

/* A message comes in. */

/* Who repeats a request wants its result too, behind the answer: it may have
 * been told while they knew nothing of it. */
void walk_finish(struct msg *m)
{
    struct hires *hires = m->way.walk->hires;
    struct id key =
        m->hire.is_repeat && !m->err ? m->hire.key : (struct id){""};

    m->way.done(m, m->way.ctx);
    if (key.text[0])
        hire_tell_again(hires, str_of(key.text));
}

void walk_on_refused(struct loop_job *job)
{
    struct walk *w = LIST_OF(job, struct walk, refuse_job);
    struct list_node *n;

    while ((n = list_pop(&w->refused)))
        walk_finish(LIST_OF(n, struct msg, way.node));
}

/* Whoever is still inside walk_message hears of it at the end of the turn. */
void walk_refuse(struct msg *m, enum err e)
{
    m->err = e;
    if (!m->way.is_beginning) {
        walk_finish(m);
        return;
    }
    list_append(&m->way.walk->refused, &m->way.node);
    loop_at_end(m->way.walk->opts.loop, &m->way.walk->refuse_job);
}

static void on_accepted(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;
    struct walk *w = m->way.walk;
    bool is_overtaken = route_is_overtaken(m) || broker_is_overtaken(m);
    enum err e = hire_refused(w->hires, m);

    if (!e)
        e = ledger_refused(w->ledger, m);
    unwritten_note(&w->unwritten, tx);
    task_settle(w->tasks, m);
    broker_settle(w->broker, m);
    hire_settle(w->hires, m);
    if (e)
        m->err = e;
    if (is_overtaken && m->way.route_tries++ < ROUTE_TRIES) {
        walk_begin(m); /* in its place: those behind it wait on */
        return;
    }
    route_settle(w->opts.router, m);
    if (tx->result == TX_COMMITTED)
        walk_look_at_budgets(w, m);
    if (tx->result == TX_COMMITTED || tx->result == TX_FATAL)
        walk_finish(m);
    else if (e == ERR_FUNDS || e == ERR_BUDGET || e == ERR_CEILING)
        walk_ask_what_is_left(m);
    else
        walk_ask_for_key(m, m->err == ERR_EXISTS ? OK : m->err);
}

/* Whether it can be carried at all. Of an envelope that is the gate's matter:
 * it is held, or a person sees it, until its agent is there. Who asks in two
 * phases hears of it in the second. */
static enum err reaches(struct walk *w, struct msg *m, const struct agent *a)
{
    enum err e =
        m->call.envelope ? OK : deliver_reaches(w->deliver, a, &m->why);

    if (e != ERR_AGENT_OFFLINE || m->hire.wish.mode != DELEGATION_TWO_PHASE)
        return e;
    m->why.text[0] = '\0';
    return OK;
}

/* The same request of an agent again: its answer is that of then, once that is
 * durable. */
static void answer_repeat(struct msg *m)
{
    if (!m->hire.is_behind)
        walk_refuse(m, OK);
}

void walk_on_original_known(struct msg *m)
{
    m->err = OK;
    if (m->hire.is_repeat)
        walk_finish(m);
    else
        walk_begin(m);
}

/* It is known who gets it. `before` is the task that this is a further turn of:
 * the same agent does it, in the same conversation. */
static void accept_message(struct msg *m, enum err e, const struct task *before)
{
    struct walk *w = m->way.walk;
    struct agents agents = registry_agents(w->opts.registry);
    const struct agent *chosen =
        e ? NULL : agent_find(&agents, m->choice.agent);

    if (!e)
        e = hire_ask(w->hires, m, chosen, before);
    if (!e && m->hire.is_repeat) {
        route_leave(w->opts.router, m);
        answer_repeat(m);
        return;
    }
    if (!e)
        e = reaches(w, m, chosen);
    if (!e)
        e = walk_check_skill(m, chosen);
    if (!e)
        e = broker_ask(w->broker, m, chosen);
    if (!e)
        e = ledger_ask(w->ledger, m, chosen, before);
    if (!e)
        e = walk_find_org(w, m);
    if (!e)
        e = task_create(w->tasks, m, before);
    if (e) {
        hire_leave(w->hires, m);
        broker_leave(w->broker, m);
        route_leave(w->opts.router, m);
        walk_ask_for_key(m, e);
        return;
    }
    route_record(w->opts.router, m);
    broker_record(w->broker, m);
    hire_record(w->hires, m);
    ledger_record(w->ledger, m);
    store_submit(w->opts.store, &m->tx, on_accepted, m);
}

static void on_routed(struct msg *m, enum err e, void *ctx)
{
    (void)ctx;
    accept_message(m, e, NULL);
}

/* For who may not see it, the task is not there. An admin may see it; but who
 * speaks in it, and pays, is who it belongs to. */
static void accept_turn(struct msg *m, const struct task *before)
{
    struct str who = caller_name(&m->in.caller);

    if (!task_is_for(before, &m->in.caller))
        walk_refuse(m, ERR_NOT_FOUND);
    else if (str_eq(who, before->requester) || str_eq(who, before->root_user))
        accept_message(m, route_turn(m->way.walk->opts.router, m, before),
                       before);
    else
        walk_refuse(
            m, why_err(&m->why, ERR_NOT_ALLOWED,
                       "the task is %.*s's, and only they can go on with it",
                       STR_ARG(before->requester)));
}

static void on_task_row(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query row = *q; /* the message may need another, or be gone */
    struct task before;

    if (row.err) {
        walk_refuse(m, row.err);
    } else if (!row.rows) { /* never there, or retention was */
        walk_ask_for_key(m, ERR_NOT_FOUND);
    } else {
        task_from_row(&before, row.rows);
        accept_turn(m, &before);
    }
    query_fini(&row);
}

/* A person's message is for themselves, unless an admin says for whom. */
static enum err take_user(struct msg *m)
{
    if (m->hire.agent.n || m->gate.batch || !caller_is_admin(&m->in.caller))
        return OK;
    return walk_for_user(m->way.walk, m, &m->hire.root_user);
}

void walk_begin(struct msg *m)
{
    struct str id = m->call.task_id;
    const struct task *before = id.n ? task_find(m->way.walk->tasks, id) : NULL;
    enum err e = hire_repeat(m->way.walk->hires, m);

    if (!e)
        e = take_user(m);
    if (!e)
        e = ledger_take_quote(m->way.walk->ledger, m);
    tx_fini(&m->tx);
    tx_init(&m->tx);
    if (e == ERR_QUOTE) {
        walk_ask_for_key(m, e); /* it was good when this was sent first */
    } else if (e) {
        walk_refuse(m, e);
    } else if (m->hire.is_repeat) {
        answer_repeat(m);
    } else if (m->hire.session.n) {
        walk_check_session(m); /* and begins anew */
    } else if (m->hire.n_parents && !m->hire.parent_id.n) {
        walk_choose_parent(m); /* and begins anew */
    } else if (!id.n) {
        route_message(m->way.walk->opts.router, m, on_routed, NULL);
    } else if (before) {
        accept_turn(m, before);
    } else {
        query_init(&m->way.query, &task_table, 1);
        query_if(&m->way.query, TASK_ID, IS, value_text(id));
        store_read(m->way.walk->opts.store, &m->way.query, on_task_row, m);
    }
}

void walk_message(struct walk *w, struct msg *m,
                  void (*done)(struct msg *m, void *ctx), void *ctx)
{
    m->way.walk = w;
    m->way.done = done;
    m->way.ctx = ctx;
    m->way.is_beginning = true;
    walk_begin(m);
    m->way.is_beginning = false;
}

void walk_refused(struct walk *w, struct msg *m, enum err e,
                  void (*done)(struct msg *m, void *ctx), void *ctx)
{
    m->way.walk = w;
    m->way.done = done;
    m->way.ctx = ctx;
    m->way.is_beginning = true;
    walk_ask_for_key(m, e);
    m->way.is_beginning = false;
}

/* It is carried. */

/* A name that was given up may be somebody else's by now, and what was meant
 * for its owner before is not for them. */
static bool is_meant(const struct task *t, const struct agent *a)
{
    return a->created_ms <= t->created_ms || a->is_configured ||
           str_eq_nocase(a->creator, t->requester) ||
           str_eq_nocase(a->creator, t->root_user);
}

const struct agent *walk_agent_for(const struct walk *w, const struct task *t)
{
    struct agents agents = registry_agents(w->opts.registry);
    const struct agent *a = agent_find(&agents, t->agent);

    return a && is_meant(t, a) ? a : NULL;
}

/* An agent that has gone may come back: until its deadline the task waits. So
 * does what an agent gave while it has enough going. */
static enum ready on_ready(void *ctx, const struct task *t)
{
    struct walk *w = ctx;
    const struct agent *a = walk_agent_for(w, t);
    enum ready not_yet;

    if (!hire_come_up(w->hires, t))
        return READY_NO_TURN;
    if (!a)
        return READY_NO_AGENT;
    if (!walk_recall(w, t, &not_yet))
        return not_yet;
    return deliver_offer(w->deliver, t, a) ? READY_LATER : READY_OFFERED;
}

const struct agent *walk_agent_of(void *ctx, struct str name)
{
    struct walk *w = ctx;
    struct agents agents = registry_agents(w->opts.registry);

    return agent_find(&agents, name);
}

/* Its turn at its agent's desk has come. */
static bool on_go(void *ctx, struct str task_id, const struct task **t,
                  const struct agent **a)
{
    struct walk *w = ctx;

    *t = task_find(w->tasks, task_id);
    if (!*t || (*t)->status != TASK_QUEUED)
        return false;
    *a = walk_agent_for(w, *t);
    if (!*a) {
        task_put_back(w->tasks, task_id);
        return false;
    }
    task_move(w->tasks, task_id, TASK_DISPATCHED);
    *t = walk_with_notes(w, *t);
    return true;
}

/* Whether the word is about the attempt that is going on. */
static bool is_awaited(const struct walk *w, const struct delivery_id *d)
{
    const struct task *t = task_find(w->tasks, str_of(d->task_id.text));

    return t && !task_is_over(t->status) && t->turn == d->turn &&
           t->attempt == d->attempt;
}

static void on_working(void *ctx, const struct delivery_id *d)
{
    struct walk *w = ctx;
    const struct task *t = task_find(w->tasks, str_of(d->task_id.text));

    if (is_awaited(w, d) && t->status == TASK_DISPATCHED)
        task_move(w->tasks, str_of(d->task_id.text), TASK_WORKING);
}

static void on_chunk(void *ctx, const struct delivery_id *d, struct str text)
{
    struct walk *w = ctx;
    struct str id = str_of(d->task_id.text);

    if (task_chunk(w->tasks, id, d->turn, d->attempt, text))
        walk_chunk_up(w, task_find(w->tasks, id), text);
}

static void on_retry(void *ctx, const struct delivery_id *d, int64_t delay_ms,
                     struct str because)
{
    struct walk *w = ctx;

    if (!is_awaited(w, d))
        return;
    log_warn(w->opts.log, "walk.not_carried", LOG_C("task_id", d->task_id.text),
             LOG_I("attempt", d->attempt), LOG_I("again_in_ms", delay_ms),
             LOG_S("because", because));
    walk_give_up_attempt(w, str_of(d->task_id.text));
    task_retry(w->tasks, str_of(d->task_id.text), delay_ms);
}

/* It ends: by its result, by a wish, or because its time is over. */

/* The agent hears what became of its result. */
void walk_tell_agent(struct walk *w, const struct task_change *c, enum err e)
{
    if (c->receipt)
        deliver_recorded(w->deliver, c->receipt, e);
}

void walk_too_late(struct walk *w, const struct task *t, int64_t turn,
                   int64_t attempt, uint64_t receipt)
{
    task_late(w->tasks);
    stray_tell(w->strays, t, turn, attempt);
    if (receipt)
        deliver_recorded(w->deliver, receipt, ERR_TASK_IS_OVER);
}

static void on_changed(struct tx *tx, void *ctx)
{
    struct task_change *c = ctx;
    struct walk *w = c->walk;
    struct str id = str_of(c->task_id.text);
    struct task gone = {.id = c->task_id, .turn = c->turn};
    const struct task *t;

    unwritten_note(&w->unwritten, tx);
    if (tx->result == TX_COMMITTED)
        walk_watch_end(w, c);
    task_changed(w->tasks, c);
    t = task_find(w->tasks, id);
    if (tx->result == TX_COMMITTED) {
        deliver_cancel(w->deliver, id);
        walk_recall_over(w, id);
        broker_settle_end(w->broker, t ? t : &gone, &c->result);
        hire_settle_end(w->hires, t ? t : &gone, &c->result);
    } else if (walk_ends_anew(w, c)) {
        return;
    }
    if (c->done) {
        c->done(c->ctx, str_of(c->task_id.text), c->err);
    } else if (unwritten_may_be(c->err) && !walk_is_outrun(w, c)) {
        walk_keep_unwritten(w, c);
        return;
    } else if (c->err) {
        log_info(w->opts.log, "walk.not_ended",
                 LOG_C("task_id", c->task_id.text),
                 LOG_S("wanted", task_status_name(c->result.status)),
                 LOG_C("because", err_row(c->err)->wording));
    }
    walk_tell_agent(w, c, c->err);
    task_change_free(c);
}

/* Whoever has the agent that did it: it may not be the one that was asked
 * first. Who took over a name meanwhile has not done it. */
static struct str payee_of(struct walk *w, const struct task *t)
{
    const struct agent *a = walk_agent_for(w, t);

    return a ? a->creator : t->payee;
}

void walk_submit(struct walk *w, struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));

    c->walk = w;
    broker_record_end(w->broker, t, &c->result, &c->tx);
    hire_record_end(w->hires, t, &c->tx);
    lessons_record_end(&c->tx, &t->decision_id, &c->result, c->at_ms);
    walk_record_told(w, t, c->result.status, &c->tx);
    if (!c->is_unpaid)
        ledger_record_end(w->ledger, t, payee_of(w, t), &c->result, c->at_ms,
                          &c->tx);
    store_submit(w->opts.store, &c->tx, on_changed, c);
}

static enum err keep_result(struct walk *w, struct str task_id,
                            const struct task_result *r, bool is_stray,
                            uint64_t receipt)
{
    static const struct task_result too_large = {
        .status = TASK_FAILED,
        .error_code = STR("too_large"),
        .error = STR("the agent's answer is larger than the limit"),
    };
    struct task_change *c;
    enum err e;

    if (r->text.n > MSG_TEXT_MAX || r->metadata.n > MSG_METADATA_MAX)
        r = &too_large;
    c = task_change_new(w->tasks, task_id, r, &e);
    if (!c)
        return e;
    c->is_stray = is_stray;
    c->receipt = receipt;
    walk_submit(w, c);
    return OK;
}

enum err walk_take_result(struct walk *w, struct str task_id,
                          const struct task_result *r, bool is_stray,
                          uint64_t receipt)
{
    const struct task *t = task_find(w->tasks, task_id);
    struct task_result late = *r;
    struct buf metadata;
    enum err e;

    buf_init(&metadata, MSG_METADATA_MAX);
    if (t && r->metadata.n <= MSG_METADATA_MAX &&
        broker_late(w->broker, t, r->metadata, &metadata))
        late.metadata = buf_str(&metadata);
    e = keep_result(w, task_id, &late, is_stray, receipt);
    buf_fini(&metadata);
    return e;
}

static void on_result(void *ctx, const struct delivery_id *d,
                      const struct task_result *r, uint64_t receipt)
{
    struct walk *w = ctx;
    struct str id = str_of(d->task_id.text);
    const struct task *t = task_find(w->tasks, id);
    enum err e;

    if (!is_awaited(w, d)) {
        log_info(w->opts.log, "walk.late_result", LOG_S("task_id", id),
                 LOG_I("attempt", d->attempt));
        walk_too_late(w, t, d->turn, d->attempt, receipt);
        return;
    }
    e = walk_take_result(w, id, r, false, receipt);
    if (!e)
        return;
    walk_forget_attempt(w, id, e);
    if (receipt)
        deliver_recorded(w->deliver, receipt, e);
}

static void on_recorded(void *ctx, uint64_t receipt, enum err e)
{
    struct walk *w = ctx;

    if (w->hub.on_recorded)
        w->hub.on_recorded(w->hub.ctx, receipt, e);
}

static void on_call(void *ctx, uint64_t line, struct str agent,
                    const struct wire_message *m)
{
    struct walk *w = ctx;

    if (w->hub.on_call)
        w->hub.on_call(w->hub.ctx, line, agent, m);
}

static bool on_deadline(void *ctx, const struct task *t)
{
    struct walk *w = ctx;
    struct task_change *c;
    struct why why;
    enum err e;

    why_err(&why, OK, "it was not done within %lld ms",
            (long long)t->budget_ms);
    c = task_change_new(w->tasks, str_of(t->id.text),
                        &(struct task_result){.status = TASK_EXPIRED,
                                              .error_code = STR("expired"),
                                              .error = str_of(why.text)},
                        &e);
    if (c) {
        c->is_deadline = true;
        walk_submit(w, c);
    }
    return c || e != ERR_NOMEM;
}

enum err walk_end(struct walk *w, struct str task_id,
                  const struct task_result *r,
                  void (*done)(void *ctx, struct str task_id, enum err e),
                  void *ctx)
{
    enum err e;
    struct task_change *c = task_change_new(w->tasks, task_id, r, &e);

    if (!c)
        return e;
    c->done = done;
    c->ctx = ctx;
    walk_submit(w, c);
    return OK;
}

enum err walk_cancel(struct walk *w, struct str task_id, struct str by,
                     void (*done)(void *ctx, struct str task_id, enum err e),
                     void *ctx)
{
    struct why why;

    why_err(&why, OK, "cancelled by %.*s", STR_ARG(by));
    return walk_end(w, task_id,
                    &(struct task_result){.status = TASK_CANCELLED,
                                          .error_code = STR("cancelled"),
                                          .error = str_of(why.text),
                                          .by = by},
                    done, ctx);
}

/* It was held for as long as it may be. */
static void on_end(void *ctx, struct str task_id, const struct task_result *r)
{
    struct walk *w = ctx;
    enum err e = walk_end(w, task_id, r, NULL, NULL);

    if (e)
        log_warn(w->opts.log, "walk.not_ended", LOG_S("task_id", task_id),
                 LOG_C("because", err_row(e)->wording));
}

const struct tasks_opts walk_calls_of_tasks = {
    .org_of = walk_org_of,
    .on_ready = on_ready,
    .on_deadline = on_deadline,
    .on_moved = walk_on_moved,
    .on_input_over = walk_on_input_over,
};

const struct deliver_opts walk_calls_of_deliver = {
    .agent_of = walk_agent_of,
    .on_go = on_go,
    .on_working = on_working,
    .on_chunk = on_chunk,
    .on_retry = on_retry,
    .on_result = on_result,
    .on_stray = walk_on_stray,
    .on_call = on_call,
    .on_ask = walk_on_ask,
    .on_recorded = on_recorded,
    .history = walk_history,
    .history_cancel = walk_history_cancel,
    .has_tools = walk_has_tools,
    .on_tool = walk_on_tool,
    .tool_cancel = walk_tool_cancel,
};

const struct broker_opts walk_calls_of_broker = {
    .agent = walk_see_agent,
    .on_ripe = walk_on_ripe,
    .restart = walk_restart_agent,
    .end = walk_end_for,
    .sees = walk_sees_agent,
    .is_above = walk_is_above,
    .may_back = walk_may_back,
    .pause = walk_pause_agent,
    .on_end = on_end,
    .task = walk_task_of,
    .carry = walk_carry,
    .caller = walk_caller_of,
    .org = walk_org_of,
    .send = walk_send,
};
