/* Our own dialect: the methods of the hub, one message a line, both ways.
 *
 *     we                               the child
 *     --                               ---------
 *     hello {"protocol":1,…}      ->
 *                                 <-   {"result":{"at_once":4}}
 *     task.execute {…}            ->
 *                                 <-   task.chunk, task.result, …
 *
 * Any message shows that the child is ready. `at_once` is the number of tasks
 * it takes at the same time, default one. An error as the answer to `hello`
 * counts too: a child without that method must answer so, and has shown that it
 * speaks the dialect. From its first task on a child has a line, on which it is
 * that task's agent. Before that it has no identity, and its calls are
 * rejected.
 *
 * Other lines are ignored once a child of the pool has spoken the dialect. A
 * program that has never spoken it and prints something else fails its tasks at
 * once: see pool_worker_garbage. */
#include <stdlib.h>

#include "deliver/transports/pool.h"

enum { HELLO_MAX = 4096, PROTOCOL = 1 };

struct own {
    struct line *line; /* NULL: no task yet */
    bool is_greeted;   /* hello was answered */
};

static void own_word(struct buf *out, const struct task *t)
{
    if (line_execute(t, out) != OK)
        out->over = true;
}

static enum err own_greet(struct pool_worker *h)
{
    struct json_out o;
    struct buf out;
    enum err e;

    h->mind = mem_new(sizeof(struct own));
    buf_init(&out, HELLO_MAX);
    o = wire_call_open(&out, STR("hello"), STR("hello"));
    json_open(&o, '{');
    json_member_int(&o, "protocol", PROTOCOL);
    json_member_text(&o, "process", h->pool->def.name);
    json_close(&o, '}');
    wire_close(&o);
    e = out.over ? ERR_NOMEM : pool_worker_send(h, buf_str(&out));
    buf_fini(&out);
    return e;
}

/* The line of the child. */

static enum err own_line_send(void *ctx, struct str message)
{
    return pool_worker_send(ctx, message);
}

static const struct line_ops own_line_ops = {.send = own_line_send};

static enum err own_give(struct pool_worker *h, struct stint *s, bool is_other)
{
    struct own *own = h->mind;

    (void)is_other; /* task.execute names the conversation */
    if (!own->line)
        own->line = line_open(pool_worker_deliver(h), str_of(h->agent),
                              &own_line_ops, h);
    if (!own->line)
        return ERR_NOMEM;
    return line_take(own->line, &s->carried->delivery,
                     buf_str(&s->carried->line));
}

static void own_leave(struct pool_worker *h, struct stint *s, enum stop_why why)
{
    (void)h;
    line_leave(&s->carried->delivery, why);
}

static void own_room(struct pool_worker *h)
{
    struct own *own = h->mind;

    if (own && own->line)
        deliver_line_room(pool_worker_deliver(h), line_id(own->line));
}

static void own_forget(struct pool_worker *h)
{
    struct own *own = h->mind;

    if (own && own->line)
        line_close(own->line, &(struct delivery_failure){
                                  .code = STR("agent_crashed"),
                                  .words = STR("the agent's process ended")});
    free(own);
}

/* Receive. */

static bool line_is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
            return false;
    return true;
}

static void own_reject_call(struct pool_worker *h, const struct wire_message *m)
{
    struct buf out;

    buf_init(&out, HELLO_MAX);
    wire_error(&out, &m->id, ERR_NOT_ALLOWED,
               STR("a process has no agent before its first task, and need not "
                   "register: wait for task.execute"),
               (struct str){0});
    if (out.over || pool_worker_send(h, buf_str(&out)) != OK)
        log_debug(pool_worker_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
    buf_fini(&out);
}

static bool message_is_answer(const struct wire_message *m)
{
    return m->kind == WIRE_RESULT || m->kind == WIRE_ERROR;
}

/* Whether m ends the task. */
static bool message_ends_task(const struct wire_message *m, struct str task_id)
{
    struct str rest = m->id.text;
    struct str status =
        json_str_or(json_get(m->result, STR("status")), STR("working"));

    if (message_is_answer(m))
        return str_eq(str_cut(&rest, ':'), task_id) &&
               (m->kind == WIRE_ERROR || task_is_over(task_status_of(status)));
    return str_eq(m->method, STR("task.result")) &&
           str_eq(json_str_or(json_get(m->params, STR("task_id")), STR("")),
                  task_id);
}

static bool stint_is_asked_to_stop(const struct stint *s)
{
    return s->is_taken && !s->carried;
}

static bool own_awaits_stop(const struct pool_worker *h)
{
    for (size_t i = 0; i < h->n_stints; i++)
        if (stint_is_asked_to_stop(&h->stints[i]))
            return true;
    return false;
}

static void own_note_stopped(struct pool_worker *h,
                             const struct wire_message *m)
{
    for (size_t i = 0; i < h->n_stints; i++) {
        struct stint *s = &h->stints[i];

        if (stint_is_asked_to_stop(s) &&
            message_ends_task(m, str_of(s->id.task_id.text)))
            stint_empty(s);
    }
}

/* Handle the part of m about the process itself. False: m is done. */
static bool own_look_into(struct pool_worker *h, const struct wire_message *m)
{
    struct own *own = h->mind;

    pool_worker_ready(h, 1);
    if (!own->is_greeted && message_is_answer(m) &&
        str_eq(m->id.text, STR("hello"))) {
        int64_t n = json_int_or(json_get(m->result, STR("at_once")), 1);

        own->is_greeted = true;
        pool_worker_ready(h, n < 1 ? 1 : (size_t)n);
        return false;
    }
    own_note_stopped(h, m);
    if (!own->line && m->kind == WIRE_REQUEST)
        own_reject_call(h, m);
    return own->line;
}

/* Parse the message before line_hear does; most need not be parsed twice.
 * False: it is done. */
static bool own_read_first(struct pool_worker *h, struct str text)
{
    struct wire_batch batch;
    struct arena scratch;
    bool is_more = false;
    enum err e;

    arena_init(&scratch, (size_t)h->pool->def.max_line_bytes * 8 + 65536);
    e = wire_read(&scratch, text, &batch, NULL);
    if (e == ERR_NOMEM || e == ERR_LIMIT) {
        pool_worker_unheard(h);
    } else if (e || batch.is_array || batch.list->kind == WIRE_BAD) {
        pool_worker_garbage(h, text);
    } else {
        h->n_garbage = 0;
        is_more = own_look_into(h, batch.list);
    }
    arena_fini(&scratch);
    return is_more;
}

static void own_heard(struct pool_worker *h, struct str text)
{
    struct own *own = h->mind;
    size_t n_taken;
    enum err e;

    if (line_is_blank(text))
        return;
    if (!str_starts(str_trim(text), STR("{"))) {
        pool_worker_garbage(h, text);
        return;
    }
    if ((!own->is_greeted || !own->line || own_awaits_stop(h)) &&
        !own_read_first(h, text))
        return;
    n_taken = h->n_taken;
    e = line_hear(pool_worker_deliver(h), line_id(own->line), text);
    if (e == ERR_NOMEM || e == ERR_LIMIT)
        pool_worker_unheard(h);
    else if (e)
        pool_worker_garbage(h, text);
    else
        h->n_garbage = 0;
    if (h->n_taken < n_taken)
        pool_worker_answered(h);
}

const struct dialect dialect_own = {
    .name = "signalbox",
    .form = "one JSON-RPC message a line",
    .word = own_word,
    .greet = own_greet,
    .give = own_give,
    .leave = own_leave,
    .heard = own_heard,
    .room = own_room,
    .forget = own_forget,
};
