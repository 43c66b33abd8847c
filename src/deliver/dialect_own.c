/* Our own dialect: the hub's methods, one message a line, both ways.
 *
 *     we                               the child
 *     --                               ---------
 *     hello {"protocol":1,…}      ->
 *                                 <-   {"result":{"at_once":4}}
 *     task.execute {…}            ->
 *                                 <-   task.chunk, task.result, …
 *
 * Anything that is a message shows that it is ready; `at_once` says how many
 * tasks it takes together, one if it does not say.
 * An answer to `hello` that is an error counts too: whoever knows no such
 * method is to answer so, and has shown that it speaks. From its first task on
 * a child has a line, on which it is that task's agent; before that it is
 * nobody, and what it asks is refused.
 *
 * Other lines (a program's own chatter) are passed over once a child of the
 * pool has spoken the dialect. A program that has never spoken it and prints
 * something else fails its tasks at once: see hand_garbage. */
#include <stdlib.h>

#include "deliver/pool.h"

enum { HELLO_MAX = 4096, PROTOCOL = 1 };

struct own {
    struct line *line; /* NULL: it has had no task yet */
    bool is_greeted;   /* it has answered hello */
};

static void own_word(struct buf *out, const struct task *t)
{
    if (line_execute(t, out) != OK)
        out->over = true;
}

static enum err own_greet(struct hand *h)
{
    struct json_out o;
    struct buf out;
    enum err e;

    h->mind = FAULT("deliver.own") ? NULL : calloc(1, sizeof(struct own));
    if (!h->mind)
        return ERR_NOMEM;
    buf_init(&out, HELLO_MAX);
    o = wire_call_open(&out, STR("hello"), STR("hello"));
    json_open(&o, '{');
    json_member_int(&o, "protocol", PROTOCOL);
    json_member_text(&o, "process", h->pool->def.name);
    json_close(&o, '}');
    wire_close(&o);
    e = out.over ? ERR_NOMEM : hand_send(h, buf_str(&out));
    buf_fini(&out);
    return e;
}

/* Its line. */

static enum err line_send(void *ctx, struct str message)
{
    return hand_send(ctx, message);
}

static const struct line_ops line_ops = {.send = line_send};

static enum err own_give(struct hand *h, struct stint *s, bool is_other)
{
    struct own *own = h->mind;

    (void)is_other; /* it is told which conversation it is, each time */
    if (!own->line)
        own->line = line_open(hand_deliver(h), str_of(h->agent), &line_ops, h);
    if (!own->line)
        return ERR_NOMEM;
    return line_take(own->line, &s->carried->delivery,
                     buf_str(&s->carried->line));
}

static void own_leave(struct hand *h, struct stint *s, enum stop_why why)
{
    (void)h;
    line_leave(&s->carried->delivery, why);
}

static void own_room(struct hand *h)
{
    struct own *own = h->mind;

    if (own && own->line)
        deliver_line_room(hand_deliver(h), line_id(own->line));
}

static void own_forget(struct hand *h)
{
    struct own *own = h->mind;

    if (own && own->line)
        line_close(own->line, &(struct delivery_failure){
                                  .code = STR("agent_crashed"),
                                  .words = STR("the agent's process ended")});
    free(own);
}

/* Hearing. */

static bool is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
            return false;
    return true;
}

static bool may_be_message(struct str s)
{
    return str_trim(s).n && str_trim(s).p[0] == '{';
}

static void refuse(struct hand *h, const struct wire_message *m)
{
    struct buf out;

    buf_init(&out, HELLO_MAX);
    wire_error(
        &out, &m->id, ERR_NOT_ALLOWED,
        STR("a process is no agent's before its first task, and need not "
            "register: wait for task.execute"),
        (struct str){0});
    if (out.over || hand_send(h, buf_str(&out)) != OK)
        log_debug(hand_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
    buf_fini(&out);
}

static bool is_answer(const struct wire_message *m)
{
    return m->kind == WIRE_RESULT || m->kind == WIRE_ERROR;
}

/* Whether m is the last word on a task. */
static bool ends_task(const struct wire_message *m, struct str task_id)
{
    struct str rest = m->id.text;
    struct str status =
        json_str_or(json_get(m->result, STR("status")), STR("working"));

    if (is_answer(m))
        return str_eq(str_cut(&rest, ':'), task_id) &&
               (m->kind == WIRE_ERROR || task_is_over(task_status_of(status)));
    return str_eq(m->method, STR("task.result")) &&
           str_eq(json_str_or(json_get(m->params, STR("task_id")), STR("")),
                  task_id);
}

static bool is_asked_to_stop(const struct stint *s)
{
    return s->is_taken && !s->carried;
}

static bool awaits_stop(const struct hand *h)
{
    for (size_t i = 0; i < h->n_stints; i++)
        if (is_asked_to_stop(&h->stints[i]))
            return true;
    return false;
}

static void note_stopped(struct hand *h, const struct wire_message *m)
{
    for (size_t i = 0; i < h->n_stints; i++) {
        struct stint *s = &h->stints[i];

        if (is_asked_to_stop(s) && ends_task(m, str_of(s->id.task_id.text)))
            stint_empty(s);
    }
}

/* What is said about the process itself. False: there is no more to it. */
static bool look_into(struct hand *h, const struct wire_message *m)
{
    struct own *own = h->mind;

    hand_ready(h, 1);
    if (!own->is_greeted && is_answer(m) && str_eq(m->id.text, STR("hello"))) {
        int64_t n = json_int_or(json_get(m->result, STR("at_once")), 1);

        own->is_greeted = true;
        hand_ready(h, n < 1 ? 1 : (size_t)n);
        return false;
    }
    note_stopped(h, m);
    if (!own->line && m->kind == WIRE_REQUEST)
        refuse(h, m);
    return own->line;
}

/* Read here before anybody else does, which is not needed for most. */
static bool read_first(struct hand *h, struct str text)
{
    struct wire_batch batch;
    struct arena scratch;
    bool is_more = false;
    enum err e;

    arena_init(&scratch, (size_t)h->pool->def.max_line_bytes * 8 + 65536);
    e = wire_read(&scratch, text, &batch, NULL);
    if (e == ERR_NOMEM || e == ERR_LIMIT) {
        hand_unheard(h);
    } else if (e || batch.is_array || batch.list->kind == WIRE_BAD) {
        hand_garbage(h, text);
    } else {
        h->n_garbage = 0;
        is_more = look_into(h, batch.list);
    }
    arena_fini(&scratch);
    return is_more;
}

static void own_heard(struct hand *h, struct str text)
{
    struct own *own = h->mind;
    size_t n_taken;
    enum err e;

    if (is_blank(text))
        return;
    if (!may_be_message(text)) {
        hand_garbage(h, text);
        return;
    }
    if ((!own->is_greeted || !own->line || awaits_stop(h)) &&
        !read_first(h, text))
        return;
    n_taken = h->n_taken;
    e = line_read(hand_deliver(h), line_id(own->line), text);
    if (e == ERR_NOMEM || e == ERR_LIMIT)
        hand_unheard(h);
    else if (e)
        hand_garbage(h, text);
    else
        h->n_garbage = 0;
    if (h->n_taken < n_taken)
        hand_answered(h);
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
