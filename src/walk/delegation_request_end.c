/* The end of an item: rejected, started, over, or not waited for long enough.
 * The last one ends the request. */
#include "walk/delegation_request_internal.h"

void piece_stop_waiting(struct piece *p)
{
    const struct delegation_request_opts *o = &p->delegation_request->opts;

    if (p->is_waiter)
        delegation_unwait(walk_delegations(o->walk), &p->waiter);
    if (p->is_listening)
        task_unlisten(walk_tasks(o->walk), &p->listener);
    p->is_waiter = p->is_listening = false;
    loop_timer_cancel(o->walk->opts.loop, &p->timer);
}

/* Ends. */

void delegation_request_check(struct delegation_request *c)
{
    if (c->is_left) {
        if (!c->n_out && !c->is_beginning)
            loop_at_end(c->opts.walk->opts.loop, &c->done_job);
        return;
    }
    if (c->n_open)
        return;
    if (c->is_beginning)
        loop_at_end(c->opts.walk->opts.loop, &c->done_job);
    else
        c->opts.done(c->opts.ctx);
}

static void piece_end(struct piece *p)
{
    piece_stop_waiting(p);
    p->state = PIECE_OVER;
    p->delegation_request->n_open--;
    delegation_request_check(p->delegation_request);
}

static struct json_out piece_open_answer(struct piece *p)
{
    struct json_out o = json_out(&p->answer);

    json_open(&o, '{');
    return o;
}

static void piece_close_answer(struct piece *p, struct json_out *o)
{
    json_close(o, '}');
    piece_end(p);
}

static struct str piece_key(const struct piece *p)
{
    return p->ids.key.text[0] ? str_of(p->ids.key.text)
                              : str_of(p->ids.task_id.text);
}

void piece_refuse(struct piece *p, enum err e, const struct why *why)
{
    struct json_out o = piece_open_answer(p);

    p->err = e;
    if (why)
        p->why = *why;
    speak_delegation_refused(&o, e, str_of(p->why.text),
                             p->details.over ? STR("") : buf_str(&p->details));
    piece_close_answer(p, &o);
}

void piece_accepted(struct piece *p)
{
    struct json_out o = piece_open_answer(p);

    p->is_begun = true;
    /* In two-phase mode the answer names the task and the original id. */
    speak_delegation_accepted(
        &o, p->delegation_request->original_id[0] ? STR("") : piece_key(p),
        str_of(p->ids.task_id.text));
    piece_close_answer(p, &o);
}

static void piece_timed_out(struct piece *p)
{
    struct json_out o = piece_open_answer(p);

    speak_delegation_timeout(&o, piece_key(p), str_of(p->ids.task_id.text),
                             p->wait_ms);
    piece_close_answer(p, &o);
}

static void piece_over(struct piece *p, const struct task *t)
{
    struct json_out o = piece_open_answer(p);

    speak_delegated(&o, piece_key(p), t);
    piece_close_answer(p, &o);
}

void piece_dropped(struct piece *p, const struct msg *m)
{
    struct task t = {.id = m->task.id,
                     .status = TASK_DROPPED,
                     .result = {.status = TASK_DROPPED,
                                .error_code = STR("dropped"),
                                .error = str_of(m->gate.gate_result.reason)}};

    piece_over(p, &t);
}

/* Waiting. */

static void on_piece_result(struct delegation_waiter *w, enum err e,
                            const struct delegation *d, const struct task *t)
{
    struct piece *p = LIST_OF(w, struct piece, waiter);

    (void)d;
    p->is_waiter = false;
    if (e || !t)
        piece_timed_out(p);
    else
        piece_over(p, t);
}

static void on_piece_news(struct task_listener *l)
{
    struct piece *p = LIST_OF(l, struct piece, listener);
    const struct task *t = task_heard(l);
    struct task_event event;

    while (task_next(walk_tasks(p->delegation_request->opts.walk), l, &event))
        ;
    if (task_is_over(t->status))
        piece_over(p, t);
}

/* For a person; delegation/ ends those of agents. */
static void on_piece_timeout(struct timer *t)
{
    struct piece *p = LIST_OF(t, struct piece, timer);
    struct delegation_request *c = p->delegation_request;

    if (p->ends_late && walk_cancel(c->opts.walk, str_of(p->ids.task_id.text),
                                    caller_name(&c->caller), NULL, NULL) != OK)
        log_info(c->opts.walk->opts.log, "commission.not_cancelled",
                 LOG_C("task_id", p->ids.task_id.text));
    piece_timed_out(p);
}

/* If the wait cannot start, the item is answered as started. */
void piece_wait(struct piece *p)
{
    const struct delegation_request_opts *o = &p->delegation_request->opts;
    enum err e;

    p->state = PIECE_WAITING;
    if (p->ids.key.text[0]) {
        p->waiter = (struct delegation_waiter){.on_over = on_piece_result};
        e = delegation_wait(walk_delegations(o->walk), str_of(p->ids.key.text),
                            p->wait_ms, &p->waiter);
        p->is_waiter = e == OK;
    } else {
        p->timer.fire = on_piece_timeout;
        p->listener = (struct task_listener){.on_news = on_piece_news};
        loop_timer_set(o->walk->opts.loop, &p->timer, p->wait_ms);
        e = task_listen(walk_tasks(o->walk), str_of(p->ids.task_id.text),
                        &p->listener, 0);
        p->is_listening = e == OK;
    }
    if (e)
        piece_accepted(p);
}

/* Repeats. */

/* t is still at the turn that this key started. */
static bool piece_is_turn_of(const struct piece *p, const struct task *t)
{
    return str_eq(str_of(t->message_id.text), str_of(p->ids.message_id.text));
}

static void piece_answer_repeat(struct piece *p, const struct task *t)
{
    if (!t || !piece_is_turn_of(p, t) || !p->wait_ms ||
        p->delegation_request->opts.waits_for_nothing)
        piece_accepted(p);
    else if (task_is_over(t->status))
        piece_over(p, t);
    else
        piece_wait(p);
}

static void on_piece_task_row(struct query *q, void *ctx)
{
    struct piece *p = ctx;
    struct delegation_request *c = p->delegation_request;
    struct query row = *q;
    struct task t;

    c->n_out--;
    p->has_query = false;
    if (row.rows)
        task_from_row(&t, row.rows);
    if (c->is_left)
        delegation_request_check(c);
    else
        piece_answer_repeat(p, row.rows ? &t : NULL);
    query_fini(&row);
}

void piece_repeat(struct piece *p)
{
    const struct delegation_request_opts *o = &p->delegation_request->opts;
    struct str id = str_of(p->ids.task_id.text);
    const struct task *t = task_find(walk_tasks(o->walk), id);
    const struct delegation *d =
        delegation_find_task(walk_delegations(o->walk), id);

    if (d && t && d->turn == t->turn && piece_is_turn_of(p, t))
        p->ids.key = d->key;
    if (t) {
        piece_answer_repeat(p, t);
        return;
    }
    p->has_query = true;
    query_init(&p->query, &task_table, 1);
    query_if(&p->query, TASK_ID, IS, value_text(id));
    p->delegation_request->n_out++;
    store_read(o->walk->opts.store, &p->query, on_piece_task_row, p);
}

void delegation_request_hurry(struct delegation_request *c)
{
    c->opts.waits_for_nothing = true;
    c->is_beginning = true; /* done is called later, once */
    for (size_t i = 0; i < c->n; i++)
        if (c->pieces[i].state == PIECE_WAITING)
            piece_accepted(&c->pieces[i]);
    c->is_beginning = false;
}

/* The answer. */

enum err delegation_request_refused(const struct delegation_request *c,
                                    struct str *words, struct str *details)
{
    const struct piece *p = &c->pieces[0];

    if (c->is_many || !p->err)
        return OK;
    *words = str_of(p->why.text);
    *details = p->details.over ? STR("") : buf_str(&p->details);
    return p->err;
}

bool delegation_request_is_two_phase(const struct delegation_request *c)
{
    return c->original_id[0];
}

static struct str piece_answer(const struct piece *p)
{
    return p->answer.over
               ? STR("{\"status\":\"error\",\"error\":\"out of memory\"}")
               : buf_str(&p->answer);
}

bool delegation_request_is_over(const struct delegation_request *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->pieces[i].is_begun)
            return false;
    return true;
}

void delegation_request_write(const struct delegation_request *c,
                              struct json_out *o)
{
    if (!c->is_many) {
        json_put_raw(o, piece_answer(&c->pieces[0]));
        return;
    }
    json_open(o, '{');
    json_key(o, STR("results"));
    json_open(o, '[');
    for (size_t i = 0; i < c->n; i++)
        json_put_raw(o, piece_answer(&c->pieces[i]));
    json_close(o, ']');
    json_close(o, '}');
}

bool delegation_request_piece(const struct delegation_request *c, size_t i,
                              struct delegation_request_piece *out)
{
    if (!c->pieces[i].is_accepted)
        return false;
    *out = c->pieces[i].ids;
    out->is_open = c->pieces[i].is_begun;
    return true;
}

size_t delegation_request_n(const struct delegation_request *c)
{
    return c->n;
}
