/* A piece of a commission comes to its end: refused, begun, over or not waited
 * for long enough. The last one's is that of the whole. */
#include "commission_internal.h"

void piece_stop_waiting(struct piece *p)
{
    const struct commission_opts *o = &p->commission->opts;

    if (p->is_waiter)
        hire_unwait(walk_hires(o->walk), &p->waiter);
    if (p->is_listening)
        task_unlisten(walk_tasks(o->walk), &p->listener);
    p->is_waiter = p->is_listening = false;
    loop_timer_cancel(o->loop, &p->timer);
}

/* A piece comes to its end. */

void commission_check(struct commission *c)
{
    if (c->is_left) {
        if (!c->n_out && !c->is_beginning)
            loop_at_end(c->opts.loop, &c->done_job);
        return;
    }
    if (c->n_open)
        return;
    if (c->is_beginning)
        loop_at_end(c->opts.loop, &c->done_job);
    else
        c->opts.done(c->opts.ctx);
}

static void end_piece(struct piece *p)
{
    piece_stop_waiting(p);
    p->state = PIECE_OVER;
    p->commission->n_open--;
    commission_check(p->commission);
}

static struct json_out open_answer(struct piece *p)
{
    struct json_out o = json_out(&p->answer);

    json_open(&o, '{');
    return o;
}

static void close_answer(struct piece *p, struct json_out *o)
{
    json_close(o, '}');
    end_piece(p);
}

static struct str key_of(const struct piece *p)
{
    return p->ids.key.text[0] ? str_of(p->ids.key.text)
                              : str_of(p->ids.task_id.text);
}

void piece_refuse(struct piece *p, enum err e, const struct why *why)
{
    struct json_out o = open_answer(p);

    p->err = e;
    if (why)
        p->why = *why;
    speak_delegation_refused(&o, e, str_of(p->why.text));
    close_answer(p, &o);
}

void piece_accepted(struct piece *p)
{
    struct json_out o = open_answer(p);

    p->is_begun = true;
    /* In two phases it is the task that is named, and the request's own id. */
    speak_delegation_accepted(
        &o, p->commission->original_id[0] ? STR("") : key_of(p),
        str_of(p->ids.task_id.text));
    close_answer(p, &o);
}

static void timed_out(struct piece *p)
{
    struct json_out o = open_answer(p);

    speak_delegation_timeout(&o, key_of(p), str_of(p->ids.task_id.text),
                             p->wait_ms);
    close_answer(p, &o);
}

static void over(struct piece *p, const struct task *t)
{
    struct json_out o = open_answer(p);

    speak_delegated(&o, key_of(p), t);
    close_answer(p, &o);
}

void piece_dropped(struct piece *p, const struct msg *m)
{
    struct task t = {.id = m->task.id,
                     .status = TASK_DROPPED,
                     .result = {.status = TASK_DROPPED,
                                .error_code = STR("dropped"),
                                .error = str_of(m->gate.pass.reason)}};

    over(p, &t);
}

/* Waiting. */

static void on_over(struct hire_waiter *w, enum err e,
                    const struct delegation *d, const struct task *t)
{
    struct piece *p = LIST_OF(w, struct piece, waiter);

    (void)d;
    p->is_waiter = false;
    if (e || !t)
        timed_out(p);
    else
        over(p, t);
}

static void on_news(struct task_listener *l)
{
    struct piece *p = LIST_OF(l, struct piece, listener);
    const struct task *t = task_heard(l);
    struct task_event event;

    while (task_next(walk_tasks(p->commission->opts.walk), l, &event))
        ;
    if (task_is_over(t->status))
        over(p, t);
}

/* A person's: an agent's are ended by hire. */
static void on_late(struct timer *t)
{
    struct piece *p = LIST_OF(t, struct piece, timer);
    struct commission *c = p->commission;

    if (p->ends_late && walk_cancel(c->opts.walk, str_of(p->ids.task_id.text),
                                    caller_name(&c->caller), NULL, NULL) != OK)
        log_info(c->opts.log, "commission.not_cancelled",
                 LOG_C("task_id", p->ids.task_id.text));
    timed_out(p);
}

/* No memory to wait with is no reason to refuse: it is kept. */
void piece_wait(struct piece *p)
{
    const struct commission_opts *o = &p->commission->opts;
    enum err e;

    p->state = PIECE_WAITING;
    if (p->ids.key.text[0]) {
        p->waiter = (struct hire_waiter){.on_over = on_over};
        e = hire_wait(walk_hires(o->walk), str_of(p->ids.key.text), p->wait_ms,
                      &p->waiter);
        p->is_waiter = e == OK;
    } else {
        p->timer.fire = on_late;
        p->listener = (struct task_listener){.on_news = on_news};
        e = loop_timer_set(o->loop, &p->timer, p->wait_ms);
        if (!e)
            e = task_listen(walk_tasks(o->walk), str_of(p->ids.task_id.text),
                            &p->listener, 0);
        p->is_listening = e == OK;
    }
    if (e)
        piece_accepted(p);
}

void commission_hurry(struct commission *c)
{
    c->opts.waits_for_nothing = true;
    c->is_beginning = true; /* done comes later, and once */
    for (size_t i = 0; i < c->n; i++)
        if (c->pieces[i].state == PIECE_WAITING)
            piece_accepted(&c->pieces[i]);
    c->is_beginning = false;
}

/* The answer. */

enum err commission_refused(const struct commission *c, struct str *words,
                            struct str *details)
{
    const struct piece *p = &c->pieces[0];

    if (c->is_many || !p->err)
        return OK;
    *words = str_of(p->why.text);
    *details = p->details.over ? STR("") : buf_str(&p->details);
    return p->err;
}

static struct str answer_of(const struct piece *p)
{
    return p->answer.over
               ? STR("{\"status\":\"error\",\"error\":\"out of memory\"}")
               : buf_str(&p->answer);
}

bool commission_is_over(const struct commission *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->pieces[i].is_begun)
            return false;
    return true;
}

void commission_write(const struct commission *c, struct json_out *o)
{
    if (!c->is_many) {
        json_put_raw(o, answer_of(&c->pieces[0]));
        return;
    }
    json_open(o, '{');
    json_key(o, STR("results"));
    json_open(o, '[');
    for (size_t i = 0; i < c->n; i++)
        json_put_raw(o, answer_of(&c->pieces[i]));
    json_close(o, ']');
    json_close(o, '}');
}

bool commission_piece(const struct commission *c, size_t i,
                      struct commission_piece *out)
{
    if (i >= c->n || !c->pieces[i].is_accepted)
        return false;
    *out = c->pieces[i].ids;
    out->is_open = c->pieces[i].is_begun;
    return true;
}

bool commission_is_piece(const struct commission *c, size_t i)
{
    return i < c->n;
}
