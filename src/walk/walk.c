/* The story of one message, from top to bottom: it is accepted, carried, and
 * its result is stored. No answer is sent and nothing in memory changes before
 * it is durable.
 *
 *     walk_message -> route -> accept_message
 *       -> delegation_ask -> gatekeeper_ask -> ledger_ask -> task_create
 *       -> (commit) -> on_message_committed -> done
 *       -> (rejected) -> walk_ask_for_key (rejection.c)
 *            -> no agent gets it: its decision -> (commit) -> done
 *     walk_resume (resume.c): a waiting task is judged again and released
 *     on_task_ready -> deliver_offer, on_go
 *     deliver -> on_chunk
 *             -> on_delivery_retry -> task_retry -> on_task_ready ...
 *             -> on_delivery_result       \
 *             -> walk_on_unmatched_result  \
 *     walk_cancel          > change -> (commit) -> on_changed -> receipt
 *     on_task_deadline    /
 *
 * If two ends of the same task meet, both go to the store, and the guard on the
 * task's version lets the first win.
 *
 * A result is accepted from the task's agent as long as the turn is not over,
 * whichever attempt it is of: work that was done while the agent was away
 * counts. A result after the end is reported in the feed and otherwise ignored
 * (late_result.c). An agent that wants to know whether its result was stored
 * gives a receipt, and is told once that is certain.
 *
 * An end that cannot be written because the disk is full waits
 * (retry_commit.c) and is tried again: an agent's work is not thrown away for
 * lack of space. A caller who sent a message or a cancellation gets an error
 * instead. */
#include "walk/internal.h"

#include "base/json.h"

enum {
    ROUTE_TRIES = 5, /* for a conversation that others change meanwhile */
};

/* The stages, in the order in which they add to a tx and settle it. */
void walk_line_up(struct walk *w)
{
    const struct stage stages[] = {
        {.module = w->tasks, .settle = task_settle},
        /* on_message_committed settles it last: a message that is routed again
         * keeps its place in the conversation. */
        {.module = w->opts.router,
         .record = route_record,
         .leave = route_leave},
        {.module = w->gatekeeper,
         .record = gatekeeper_record,
         .settle = gatekeeper_settle,
         .leave = gatekeeper_leave,
         .record_end = gatekeeper_record_end,
         .settle_end = gatekeeper_settle_end,
         .record_pass = gatekeeper_record_release,
         .settle_pass = gatekeeper_settle_release},
        {.module = w->delegations,
         .record = delegation_record,
         .refused = delegation_refused,
         .settle = delegation_settle,
         .leave = delegation_leave,
         .record_end = delegation_record_end,
         .settle_end = delegation_settle_end},
        {.module = w->opts.learning, .record_end = learning_record_end},
        {.module = w, .record_end = walk_record_told},
        {.module = w->ledger,
         .record = ledger_record,
         .refused = ledger_refused,
         .record_end = ledger_record_end},
    };

    _Static_assert(sizeof(stages) <= sizeof(w->stages), "STAGES_MAX");
    memcpy(w->stages, stages, sizeof(stages));
    w->n_stages = sizeof(stages) / sizeof(*stages);
}

/* A message comes in. */

/* The requester of a repeat also wants the result, after the answer: it may
 * have been reported before the requester could know of it. */
void walk_finish(struct msg *m)
{
    struct delegations *delegations = m->way.walk->delegations;
    struct id key = m->delegation.is_repeat && !m->err ? m->delegation.key
                                                       : (struct id){""};

    m->way.done(m, m->way.ctx);
    if (key.text[0])
        delegation_tell_again(delegations, str_of(key.text));
}

void walk_on_refused(struct loop_job *job)
{
    struct walk *w = LIST_OF(job, struct walk, refuse_job);
    struct list_node *n;

    while ((n = list_pop(&w->refused)))
        walk_finish(LIST_OF(n, struct msg, way.node));
}

/* A caller that is still inside walk_message is answered at the end of the
 * turn. */
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

static void on_message_committed(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;
    struct walk *w = m->way.walk;
    bool is_overtaken = route_is_overtaken(m) || gatekeeper_is_overtaken(m);
    enum err e = OK;

    STAGES_EACH(s, w)
    {
        if (!e && s->refused)
            e = s->refused(s->module, m);
    }
    retry_commit_note(w, tx);
    STAGES_EACH(s, w)
    {
        if (s->settle)
            s->settle(s->module, m);
    }
    if (e)
        m->err = e;
    if (is_overtaken && m->way.route_tries++ < ROUTE_TRIES) {
        /* It keeps its place: later messages of the conversation wait. */
        walk_begin(m);
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

/* Check that an agent can be reached at all. For an envelope that is the gate's
 * matter: it is held, or shown to a person, until its agent is there. In
 * two-phase mode the requester is told in the second phase. */
static enum err reaches(struct walk *w, struct msg *m, const struct agent *a)
{
    enum err e =
        m->call.envelope ? OK : deliver_reaches(w->deliver, a, &m->why);

    if (e != ERR_AGENT_OFFLINE ||
        m->delegation.wish.mode != DELEGATION_TWO_PHASE)
        return e;
    m->why.text[0] = '\0';
    return OK;
}

/* An agent repeats a request: the original answer is sent once it is
 * durable. */
static void answer_repeat(struct msg *m)
{
    if (!m->delegation.is_behind)
        walk_refuse(m, OK);
}

void walk_on_original_known(struct msg *m)
{
    m->err = OK;
    if (m->delegation.is_repeat)
        walk_finish(m);
    else
        walk_begin(m);
}

/* The agent is chosen. `before` is the task that this is a further turn of:
 * same agent, same conversation. */
static void accept_message(struct msg *m, enum err e, const struct task *before)
{
    struct walk *w = m->way.walk;
    const struct agent *chosen =
        e ? NULL : registry_agent(w->opts.registry, m->choice.agent);

    if (!e)
        e = delegation_ask(w->delegations, m, chosen, before);
    if (!e && m->delegation.is_repeat) {
        route_leave(w->opts.router, m);
        answer_repeat(m);
        return;
    }
    if (!e)
        e = reaches(w, m, chosen);
    if (!e)
        e = walk_check_skill(m, chosen);
    if (!e)
        e = gatekeeper_ask(w->gatekeeper, m, chosen);
    if (!e)
        e = ledger_ask(w->ledger, m, chosen, before);
    if (!e)
        e = walk_find_org(w, m);
    if (!e)
        e = task_create(w->tasks, m, before);
    if (e) {
        for (size_t i = w->n_stages; i-- > 0;)
            if (w->stages[i].leave)
                w->stages[i].leave(w->stages[i].module, m);
        walk_ask_for_key(m, e);
        return;
    }
    STAGES_EACH(s, w)
    {
        if (s->record)
            s->record(s->module, m);
    }
    store_submit(w->opts.store, &m->tx, on_message_committed, m);
}

static void on_message_routed(struct msg *m, enum err e, void *ctx)
{
    (void)ctx;
    accept_message(m, e, NULL);
}

/* A caller who may not see the task gets "not found". An admin may see it, but
 * only its user may speak in it, and pays. */
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
            m,
            why_err(&m->why, ERR_NOT_ALLOWED,
                    "the task belongs to %.*s, and only they can continue it",
                    STR_ARG(before->requester)));
}

static void on_earlier_task_row(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query row = *q; /* the message may reuse it, or be gone */
    struct task before;

    if (row.err) {
        walk_refuse(m, row.err);
    } else if (!row.rows) { /* unknown, or removed by retention */
        walk_ask_for_key(m, ERR_NOT_FOUND);
    } else {
        task_from_row(&before, row.rows);
        accept_turn(m, &before);
    }
    query_fini(&row);
}

enum err walk_for_user(struct walk *w, struct msg *m, struct str *out)
{
    const struct str key = STR("user_id");
    struct str found = {NULL, 0}, name = {NULL, 0};
    struct access_user user;

    *out = (struct str){NULL, 0};
    if (!m->call.metadata.n ||
        json_scan(m->call.metadata, &key, 1, &found, NULL) != OK || !found.n)
        return OK;
    if (found.n > 2 && found.p[0] == '"') /* user names need no escaping */
        name = str_sub(found, 1, found.n - 1);
    if (!name.n || !access_user_find(w->opts.access, name, &user))
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "metadata.user_id in an admin's message names the user "
                       "it is for, and there is no user %.*s",
                       STR_ARG(str_head(found, 64)));
    return arena_keep(&m->arena, str_of(user.name), out) ? OK : ERR_NOMEM;
}

void walk_begin(struct msg *m)
{
    struct str id = m->call.task_id;
    const struct task *before = id.n ? task_find(m->way.walk->tasks, id) : NULL;
    enum err e = delegation_repeat(m->way.walk->delegations, m);

    /* A person's message is for that person, unless an admin names another. */
    if (!e && !m->delegation.agent.n && !m->gate.batch &&
        caller_is_admin(&m->in.caller))
        e = walk_for_user(m->way.walk, m, &m->delegation.root_user);
    if (!e)
        e = ledger_take_quote(m->way.walk->ledger, m);
    tx_fini(&m->tx);
    tx_init(&m->tx);
    if (e == ERR_QUOTE) {
        /* The quote was valid when the message was sent first. */
        walk_ask_for_key(m, e);
    } else if (e) {
        walk_refuse(m, e);
    } else if (m->delegation.is_repeat) {
        answer_repeat(m);
    } else if (m->delegation.session.n) {
        walk_check_session(m); /* then walk_begin again */
    } else if (m->delegation.n_parents && !m->delegation.parent_id.n) {
        walk_choose_parent(m); /* then walk_begin again */
    } else if (!id.n) {
        route_message(m->way.walk->opts.router, m, on_message_routed, NULL);
    } else if (before) {
        accept_turn(m, before);
    } else {
        query_init(&m->way.query, &task_table, 1);
        query_if(&m->way.query, TASK_ID, IS, value_text(id));
        store_read(m->way.walk->opts.store, &m->way.query, on_earlier_task_row,
                   m);
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

/* Carrying the task. */

/* Until its deadline a task waits for an agent that has gone. A delegation also
 * waits while its requester has enough active ones. */
static enum ready on_task_ready(void *ctx, const struct task *t)
{
    struct walk *w = ctx;
    const struct agent *a = registry_agent_for(w->opts.registry, t);
    enum ready not_yet;

    if (!delegation_come_up(w->delegations, t))
        return READY_NO_TURN;
    if (!a)
        return READY_NO_AGENT;
    if (!walk_recall(w, t, &not_yet))
        return not_yet;
    return deliver_offer(w->deliver, t, a) ? READY_LATER : READY_OFFERED;
}

static const struct agent *agent_of(void *ctx, struct str name)
{
    const struct walk *w = ctx;

    return registry_agent(w->opts.registry, name);
}

/* Its turn in the queue of its agent has come. */
static bool on_go(void *ctx, struct str task_id, const struct task **t,
                  const struct agent **a)
{
    struct walk *w = ctx;

    *t = task_find(w->tasks, task_id);
    if (!*t || (*t)->status != TASK_QUEUED)
        return false;
    *a = registry_agent_for(w->opts.registry, *t);
    if (!*a) {
        task_put_back(w->tasks, task_id);
        return false;
    }
    if (!task_move(w->tasks, task_id, TASK_DISPATCHED))
        return false;
    *t = walk_with_notes(w, *t);
    return true;
}

/* The message is about the current attempt. */
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

static void on_delivery_retry(void *ctx, const struct delivery_id *d,
                              int64_t delay_ms, struct str because)
{
    struct walk *w = ctx;

    if (!is_awaited(w, d))
        return;
    log_warn(w->opts.log, "walk.not_carried", LOG_C("task_id", d->task_id.text),
             LOG_I("attempt", d->attempt), LOG_I("again_in_ms", delay_ms),
             LOG_S("because", because));
    delegation_attempt_failed(w->delegations, str_of(d->task_id.text));
    task_retry(w->tasks, str_of(d->task_id.text), delay_ms);
}

/* Ends: by a result, a cancellation, or the deadline. */

static void on_changed(struct tx *tx, void *ctx)
{
    struct task_change *c = ctx;
    struct walk *w = c->walk;
    struct str id = str_of(c->task_id.text);
    struct task gone = {.id = c->task_id, .turn = c->turn};
    struct turn_end end = {.result = &c->result};
    const struct task *t;

    retry_commit_note(w, tx);
    if (tx->result == TX_COMMITTED)
        walk_watch_end(w, c);
    task_changed(w->tasks, c);
    t = task_find(w->tasks, id);
    if (tx->result == TX_COMMITTED) {
        deliver_cancel(w->deliver, id);
        walk_recall_over(w, id);
        end.task = t ? t : &gone;
        STAGES_EACH(s, w)
        {
            if (s->settle_end)
                s->settle_end(s->module, &end);
        }
    } else if (retry_commit_at_once(w, c)) {
        return;
    }
    if (c->done) {
        c->done(c->ctx, str_of(c->task_id.text), c->err);
    } else if (c->err && retry_commit_later(w, c)) {
        return;
    } else if (c->err) {
        log_info(w->opts.log, "walk.not_ended",
                 LOG_C("task_id", c->task_id.text),
                 LOG_S("wanted", task_status_name(c->result.status)),
                 LOG_C("because", err_row(c->err)->wording));
    }
    deliver_recorded(w->deliver, c->receipt, c->err);
    task_change_free(c);
}

void walk_submit(struct walk *w, struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));
    const struct agent *a = registry_agent_for(w->opts.registry, t);
    /* The owner of the agent that did the work is paid, which may not be the
     * first one chosen. A new owner of the name has not done it. */
    struct turn_end end = {.task = t,
                           .result = &c->result,
                           .payee = a ? a->creator : t->payee,
                           .at_ms = c->at_ms,
                           .is_unpaid = c->is_unpaid};

    c->walk = w;
    STAGES_EACH(s, w)
    {
        if (s->record_end)
            s->record_end(s->module, &end, &c->tx);
    }
    store_submit(w->opts.store, &c->tx, on_changed, c);
}

enum err walk_take_result(struct walk *w, struct str task_id,
                          const struct task_result *r, bool is_unmatched,
                          uint64_t receipt)
{
    static const struct task_result too_large = {
        .status = TASK_FAILED,
        .error_code = STR("too_large"),
        .error = STR("the agent's answer is larger than the limit"),
    };
    const struct task *t = task_find(w->tasks, task_id);
    struct task_result given = *r;
    struct task_change *c;
    struct buf metadata;
    enum err e;

    buf_init(&metadata, MSG_METADATA_MAX);
    if (r->text.n > MSG_TEXT_MAX || r->metadata.n > MSG_METADATA_MAX)
        given = too_large;
    else if (t && gatekeeper_late(w->gatekeeper, t, r->metadata, &metadata))
        given.metadata = buf_str(&metadata);
    c = task_change_new(w->tasks, task_id, &given, &e);
    if (c) {
        c->is_unmatched = is_unmatched;
        c->receipt = receipt;
        walk_submit(w, c);
    }
    buf_fini(&metadata);
    return c ? OK : e;
}

static void on_delivery_result(void *ctx, const struct delivery_id *d,
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
    deliver_recorded(w->deliver, receipt, e);
}

static void on_result_recorded(void *ctx, uint64_t receipt, enum err e)
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

static bool on_task_deadline(void *ctx, const struct task *t)
{
    struct walk *w = ctx;
    struct task_change *c;
    struct why why;
    enum err e;

    why_err(&why, OK, "the task was not done within %lld ms",
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

static enum err
end_task(void *ctx, struct str task_id, const struct task_result *r,
         void (*done)(void *ctx, struct str task_id, enum err e),
         void *done_ctx)
{
    return walk_end(ctx, task_id, r, done, done_ctx);
}

static void on_moved(void *ctx, const struct task *t)
{
    struct walk *w = ctx;

    delegation_moved(w->delegations, t);
    gatekeeper_moved(w->gatekeeper, t);
}

static void on_agent_stirs(void *ctx, struct str agent)
{
    struct walk *w = ctx;

    presence_stir(w->presence, agent);
}

/* Results come up here. A module calls those below it by itself; these are for
 * what only the walk, or a module above the caller, can know or do. */
const struct walk_results walk_results = {
    .tasks =
        {
            /* It is the first of its order: deliver offers it to its agent. */
            .on_ready = on_task_ready,
            .on_deadline = on_task_deadline,
            /* It was released, held or escalated, or begins to be delivered:
             * delegations give up their turn, batches follow. */
            .on_moved = on_moved,
            /* deliver takes the question back from the program. */
            .on_input_over = walk_on_input_over,
        },
    .deliver =
        {
            /* The registry's agent. deliver knows no registry, so that its
             * tests run without one and without a store. */
            .agent_of = agent_of,
            /* The state of an agent is about to change: presence.c. */
            .on_stir = on_agent_stirs,
            /* The queue lets the task go: it is dispatched, with its notes. */
            .on_go = on_go,
            /* How the attempt goes: a status, a piece of the answer, a pause
             * before the next attempt, the result. */
            .on_working = on_working,
            .on_chunk = on_chunk,
            .on_retry = on_delivery_retry,
            .on_result = on_delivery_result,
            /* A result without a delivery: late_result.c. */
            .on_unmatched_result = walk_on_unmatched_result,
            /* To the hub: a call that is not about a task, and the outcome of a
             * result with a receipt. */
            .on_call = on_call,
            .on_recorded = on_result_recorded,
            /* The program asks a person: input.c. */
            .on_ask = walk_on_ask,
            /* The conversation as the agent knows it: delegation_notes.c adds
             * the notes of earlier turns. */
            .history = walk_history,
            .history_cancel = walk_history_cancel,
            /* A model delegates or searches: model_tools.c. */
            .has_tools = walk_has_tools,
            .on_tool = walk_on_tool,
            .tool_cancel = walk_tool_cancel,
        },
    .gatekeeper =
        {
            /* Its state and its queue, which deliver knows. */
            .agent = walk_see_agent,
            /* A waiting task is decided again: resume.c. */
            .on_ripe = walk_on_ripe,
            /* A task ends: held for too long, with its batch, by a person. */
            .end = end_task,
            /* A batch is a message. */
            .send = walk_send,
            /* deliver starts the program again, or stops giving it work. */
            .restart = walk_restart_agent,
            .pause = walk_pause_agent,
        },
    .delegation =
        {
            /* A delegation ends with its parent, its connection or its wait. */
            .end = end_task,
            /* The result is there: delegation_notes.c tells the hub, or stores
             * a note for an agent without a connection. */
            .on_ready = walk_on_delegation_ready,
            .hears_by_note = walk_hears_by_note,
            /* The note is durable: turns that have not started take it along.
             */
            .on_noted = walk_on_noted,
            /* A repeat that waited for its original is answered, or begins. */
            .on_known = walk_on_original_known,
        },
};
