/* The items of a request go their own way, and the last one to end ends the
 * request:
 *
 *     LOOKING   its sessionKey is looked up in memory or in the store
 *     OUT       with the walk
 *     WAITING   for its result: from delegation/, for a person from the task
 *     OVER      its part of the answer is written
 *
 * The texts are freed when the walk has copied them. During the wait only small
 * state and the answers are kept. */
#include "walk/delegation_request_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "speak/speak.h"

/* Life. */

static void delegation_request_free(struct delegation_request *c)
{
    for (size_t i = 0; i < c->n; i++) {
        piece_stop_waiting(&c->pieces[i]);
        if (c->pieces[i].has_query)
            query_fini(&c->pieces[i].query);
        buf_fini(&c->pieces[i].answer);
        buf_fini(&c->pieces[i].details);
    }
    loop_not_at_end(&c->done_job);
    list_remove(&c->node);
    arena_fini(&c->arena);
    free(c->pieces);
    free(c);
}

void walk_delegation_requests_free(struct walk *w)
{
    struct list_node *n;

    while ((n = list_first(&w->delegation_requests)))
        delegation_request_free(LIST_OF(n, struct delegation_request, node));
}

void delegation_request_leave(struct delegation_request *c)
{
    c->is_left = true;
    for (size_t i = 0; i < c->n; i++)
        piece_stop_waiting(&c->pieces[i]);
    loop_not_at_end(&c->done_job);
    if (!c->n_out && !c->is_beginning)
        loop_at_end(c->opts.walk->opts.loop, &c->done_job);
}

/* Call done, or free the request: at the end of a turn, when no caller uses
 * it. */
static void on_request_done(struct loop_job *job)
{
    struct delegation_request *c =
        LIST_OF(job, struct delegation_request, done_job);

    if (!c->is_left)
        c->opts.done(c->opts.ctx);
    else if (!c->n_out)
        delegation_request_free(c);
}

/* The answer of the walk. */

/* In two-phase mode an offline agent is a failed task. */
static void piece_end_if_offline(struct piece *p, const struct msg *m)
{
    const struct delegation_request_opts *o = &p->delegation_request->opts;
    struct agents all = registry_agents(o->walk->opts.registry);
    const struct agent *a = agent_find(&all, m->choice.agent);
    struct why why, none = {""};

    if (m->delegation.wish.mode != DELEGATION_TWO_PHASE ||
        m->delegation.is_repeat || !a ||
        deliver_reaches(walk_deliver(o->walk), a, &none) != ERR_AGENT_OFFLINE)
        return;
    why_err(&why, OK, "Agent '%.*s' is offline", STR_ARG(a->name));
    if (walk_end(o->walk, str_of(m->task.id.text),
                 &(struct task_result){.status = TASK_FAILED,
                                       .error_code = STR("agent_offline"),
                                       .error = str_of(why.text)},
                 NULL, NULL) != OK)
        log_info(o->walk->opts.log, "commission.not_ended",
                 LOG_C("task_id", m->task.id.text));
}

/* The connection was lost while the item was on its way. */
static void piece_end_left(struct piece *p)
{
    const struct delegation_request_opts *o = &p->delegation_request->opts;

    if (p->is_accepted && p->ends_with_line && !p->is_repeat &&
        walk_cancel(o->walk, str_of(p->ids.task_id.text), str_of(p->by), NULL,
                    NULL) != OK)
        log_info(o->walk->opts.log, "commission.not_cancelled",
                 LOG_C("task_id", p->ids.task_id.text));
}

static void on_piece_accepted(struct msg *m, void *ctx)
{
    struct piece *p = ctx;
    struct delegation_request *c = p->delegation_request;

    c->n_out--;
    p->is_accepted = !m->err;
    if (p->is_accepted) {
        p->is_repeat = m->task.is_repeat;
        p->ids.key = p->is_repeat ? (struct id){""} : m->delegation.key;
        p->ids.task_id = m->task.id;
        p->ids.message_id = m->task.message_id;
        piece_end_if_offline(p, m);
    }
    if (c->is_left) {
        piece_end_left(p);
        delegation_request_check(c);
    } else if (m->err) {
        buf_init(&p->details, SPEAK_REFUSAL_MAX);
        speak_refusal_details(&p->details, m);
        piece_refuse(p, m->err, &m->why);
    } else if (gate_result_status(m->gate.gate_result.answer) == TASK_DROPPED &&
               p->wait_ms && !m->delegation.agent.n) {
        /* There is nothing to wait for; delegation/ knows it of an agent's. */
        piece_dropped(p, m);
    } else if (p->is_repeat) {
        piece_repeat(p);
    } else if (p->wait_ms && !c->opts.waits_for_nothing) {
        piece_wait(p);
    } else {
        piece_accepted(p);
    }
    msg_free(m);
}

/* On its way. */

static struct msg *piece_plain_message(struct delegation_request *c,
                                       const struct speak_order *o)
{
    struct msg *m = msg_new(&c->caller, loop_wall_ms(c->opts.walk->opts.loop));

    if (!m || !arena_keep(&m->arena, o->message, &m->call.text) ||
        !arena_keep(&m->arena, o->agent, &m->call.executor) ||
        !arena_keep(&m->arena, o->skill, &m->call.skill) ||
        !arena_keep(&m->arena, o->task_id, &m->call.task_id)) {
        msg_free(m);
        return NULL;
    }
    m->call.metadata = m->call.source = STR("{}");
    m->call.priority = PRIORITY_NORMAL;
    m->call.timeout_ms = o->timeout_ms;
    m->call.has_max_cost = o->max_cost >= 0;
    m->call.max_cost_micros = m->call.has_max_cost ? o->max_cost : 0;
    return m;
}

/* Each item's key is the batch key plus its index. */
static struct str piece_idempotency_key(const struct piece *p,
                                        const struct speak_order *o,
                                        char out[MSG_KEY_MAX + 8])
{
    const struct delegation_request *c = p->delegation_request;
    struct str all = c->orders->idempotency_key;

    if (o->idempotency_key.n || !all.n)
        return o->idempotency_key;
    snprintf(out, MSG_KEY_MAX + 8, "%.*s#%d", STR_ARG(all),
             (int)(p - c->pieces));
    return str_of(out);
}

/* The idempotency key of a person's item, and the hash that it identifies. */
static enum err piece_give_key(struct piece *p, const struct speak_order *o,
                               struct msg *m)
{
    char text[MSG_KEY_MAX + 8];
    struct str key = piece_idempotency_key(p, o, text);
    struct walk_order same = {.agent = o->agent,
                              .skill = o->skill,
                              .task_id = o->task_id,
                              .message = o->message,
                              .timeout_ms = o->timeout_ms,
                              .has_max_cost = o->max_cost >= 0,
                              .max_cost_micros = o->max_cost,
                              .wish = {.mode = o->mode,
                                       .is_stream = o->is_stream,
                                       .goes_on = o->goes_on}};

    if (!arena_keep(&m->arena, key, &m->call.idempotency_key))
        return ERR_NOMEM;
    return key.n ? walk_order_hash(&same, m->call.body_hash) : OK;
}

static enum err piece_send_plain(struct piece *p, const struct speak_order *o)
{
    struct msg *m = piece_plain_message(p->delegation_request, o);

    if (!m || piece_give_key(p, o, m) != OK) {
        msg_free(m);
        return ERR_NOMEM;
    }
    p->ends_late = !o->goes_on;
    walk_message(p->delegation_request->opts.walk, m, on_piece_accepted, p);
    return OK;
}

static enum err piece_send_order(struct piece *p, const struct speak_order *o,
                                 struct why *why)
{
    struct delegation_request *c = p->delegation_request;
    char key[MSG_KEY_MAX + 8];
    struct walk_order w = {
        .by = str_of(p->by),
        .caller = c->opts.caller,
        .parent_id = c->parent_id[0] ? str_of(c->parent_id) : o->parent_id,
        .session_id = o->session_id,
        .task_session = o->task_session,
        .task_id = o->task_id,
        .agent = o->agent,
        .skill = o->skill,
        .message = o->message,
        .metadata = o->metadata,
        .idempotency_key = piece_idempotency_key(p, o, key),
        .timeout_ms = o->timeout_ms,
        .has_max_cost = o->max_cost >= 0,
        .max_cost_micros = o->max_cost,
        .wish = {.mode = o->mode,
                 .original_id = str_of(c->original_id),
                 .is_stream = o->is_stream,
                 .ends_with_line = p->ends_with_line,
                 .goes_on = o->goes_on,
                 .wait_ms = o->wait_ms},
    };

    return walk_delegate(c->opts.walk, &w, on_piece_accepted, p, why);
}

static void send_piece(struct piece *p)
{
    struct delegation_request *c = p->delegation_request;
    const struct speak_order *o = &c->orders->list[p - c->pieces];
    struct why why = {""};
    enum err e;

    p->state = PIECE_OUT;
    c->n_out++;
    e = p->by[0] ? piece_send_order(p, o, &why) : piece_send_plain(p, o);
    if (!e)
        return;
    c->n_out--;
    piece_refuse(p, e, &why);
}

/* The walk has copied them. */
static void request_forget_texts(struct delegation_request *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->pieces[i].state == PIECE_LOOKING)
            return;
    arena_fini(&c->arena);
    arena_init(&c->arena, DELEGATION_REQUEST_TEXT_BYTES);
    c->orders = NULL;
}

/* A sessionKey names a delegation of that agent to continue. */

static void piece_found_key(struct piece *p, struct str agent,
                            struct str task_id)
{
    struct speak_order *o =
        &p->delegation_request->orders->list[p - p->delegation_request->pieces];
    struct why why;

    if (str_eq_nocase(agent, str_of(p->by)) &&
        arena_keep(&p->delegation_request->arena, task_id, &o->task_id)) {
        send_piece(p);
        return;
    }
    why_err(&why, OK, "you have no delegation with that sessionKey");
    piece_refuse(p, ERR_NOT_FOUND, &why);
}

static void on_session_key_row(struct query *q, void *ctx)
{
    struct piece *p = ctx;
    struct delegation_request *c = p->delegation_request;
    struct query row = *q;
    struct why none = {""};

    c->n_out--;
    p->has_query = false;
    if (c->is_left)
        delegation_request_check(c);
    else if (row.err)
        piece_refuse(p, row.err == ERR_BUSY ? ERR_OVERLOADED : row.err, &none);
    else if (!row.rows)
        piece_found_key(p, STR(""), STR(""));
    else
        piece_found_key(p, row_str(row.rows, DELEGATION_AGENT),
                        row_str(row.rows, DELEGATION_TASK_ID));
    if (!c->is_left)
        request_forget_texts(c);
    query_fini(&row);
}

static void piece_look_for_key(struct piece *p, struct str key)
{
    struct delegation_request *c = p->delegation_request;
    const struct delegation *d =
        delegation_find(walk_delegations(c->opts.walk), key);

    if (d) {
        piece_found_key(p, d->agent, str_of(d->task_id.text));
        return;
    }
    p->state = PIECE_LOOKING;
    p->has_query = true;
    query_init(&p->query, &delegation_table, 1);
    query_if(&p->query, DELEGATION_KEY, IS, value_text(key));
    c->n_out++;
    store_read(c->opts.walk->opts.store, &p->query, on_session_key_row, p);
}

/* On whose behalf. */

/* A person acts for the agent that works on the parent task. */
static enum err piece_act_for(struct piece *p, struct str parent_id,
                              struct why *why)
{
    struct delegation_request *c = p->delegation_request;
    const struct task *t = task_find(walk_tasks(c->opts.walk), parent_id);
    struct registry_by by = {.caller = &c->caller,
                             .now_ms = loop_wall_ms(c->opts.walk->opts.loop)};
    const struct agent *a = NULL;
    struct why none = {""};

    if (!t ||
        registry_self(c->opts.walk->opts.registry, t->agent, &by, &a, &none) !=
            OK ||
        !a)
        return why_err(why, ERR_BAD_REQUEST,
                       "parent_task_id must be a task that an agent of yours "
                       "is working on");
    snprintf(p->by, sizeof(p->by), "%.*s", STR_ARG(a->name));
    return OK;
}

static void piece_begin(struct piece *p)
{
    struct delegation_request *c = p->delegation_request;
    const struct speak_order *o = &c->orders->list[p - c->pieces];
    struct why why = {""};
    enum err e = OK;

    snprintf(p->by, sizeof(p->by), "%s", c->by);
    p->wait_ms = o->wait_ms;
    p->ends_with_line =
        o->says_line ? o->ends_with_line
                     : delegation_settings(walk_delegations(c->opts.walk))
                           ->ends_with_line;
    if (!c->by[0] && o->parent_id.n)
        e = piece_act_for(p, o->parent_id, &why);
    if (!e && !p->by[0] && o->session_key.n)
        e = why_err(&why, ERR_BAD_REQUEST,
                    "sessionKey continues a delegation of an agent: give "
                    "parent_task_id too");
    if (!e && !p->by[0] && o->task_session.n)
        e = why_err(&why, ERR_BAD_REQUEST,
                    "session_id is for agents: give parent_task_id to act for "
                    "one of yours");
    if (e)
        piece_refuse(p, e, &why);
    else if (o->session_key.n)
        piece_look_for_key(p, o->session_key);
    else
        send_piece(p);
}

static enum err request_read_orders(struct delegation_request *c,
                                    struct str body, struct why *why)
{
    enum err e;

    c->orders = arena_alloc(&c->arena, sizeof(*c->orders));
    if (!c->orders)
        return ERR_NOMEM;
    e = c->original_id[0] ? speak_send_task(&c->arena, body, c->orders, why)
                          : speak_delegate(&c->arena, body, c->orders, why);
    if (e)
        return e;
    c->is_many = c->orders->is_many;
    e = speak_key(&c->arena, c->opts.idempotency_key,
                  c->is_many ? &c->orders->idempotency_key
                             : &c->orders->list[0].idempotency_key,
                  why);
    c->opts.idempotency_key = (struct str){NULL, 0};
    if (e)
        return e;
    c->pieces = mem_array(c->orders->n, sizeof(*c->pieces));
    c->n = c->orders->n;
    for (size_t i = 0; i < c->n; i++) {
        c->pieces[i].delegation_request = c;
        buf_init(&c->pieces[i].answer, DELEGATION_REQUEST_ANSWER_BYTES);
    }
    return OK;
}

enum err delegation_request_new(const struct delegation_request_opts *opts,
                                struct str body,
                                struct delegation_request **out,
                                struct why *why)
{
    struct delegation_request *c = mem_new(sizeof(*c));
    enum err e;

    c->opts = *opts;
    if (opts->caller) {
        c->caller = *opts->caller;
        c->opts.caller = &c->caller;
    }
    snprintf(c->by, sizeof(c->by), "%.*s", STR_ARG(opts->by));
    snprintf(c->original_id, sizeof(c->original_id), "%.*s",
             STR_ARG(opts->original_id));
    snprintf(c->parent_id, sizeof(c->parent_id), "%.*s",
             STR_ARG(opts->parent_id));
    arena_init(&c->arena, DELEGATION_REQUEST_TEXT_BYTES);
    c->done_job.run = on_request_done;
    list_append(&opts->walk->delegation_requests, &c->node);
    e = request_read_orders(c, body, why);
    if (e) {
        delegation_request_free(c);
        c = NULL;
    }
    *out = c;
    return e;
}

void delegation_request_go(struct delegation_request *c)
{
    c->n_open = c->n;
    c->is_beginning = true;
    for (size_t i = 0; i < c->n; i++)
        piece_begin(&c->pieces[i]);
    c->is_beginning = false;
    request_forget_texts(c);
}
