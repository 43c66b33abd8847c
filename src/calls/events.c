/* The events of a turn of a task as a stream. The room of the tasks keeps a
 * ring of them; we are a cursor in it that sends as fast as the client reads.
 * What fell out of the ring, or was in another life of the server, is a `gap`.
 *
 * Whoever listens stays with their turn, whatever has begun since, so the
 * result is always theirs. Only a turn that was over before we came is read
 * from the store. */
#include "calls/internal.h"

enum { BATCH_BYTES = 64 * 1024 };

bool call_task_id(struct call *c, struct id *out)
{
    if (!id_is_valid(c->param, "task")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return false;
    }
    memcpy(out->text, c->param.p, c->param.n);
    out->text[c->param.n] = '\0';
    return true;
}

/* One event, from its id to the members that all of them have. Zero: it has
 * no number. */
static struct speak_event event_open(struct open *o, struct json_out *out,
                                     const char *type, int64_t number,
                                     int64_t at_ms)
{
    struct speak_place p = {store_epoch(o->calls->store), number};
    char id[SPEAK_PLACE_BYTES];
    struct speak_event e = speak_event_open(
        &o->calls->body, number ? speak_place_write(&p, id) : STR(""),
        str_of(type));

    *out = json_out(&o->calls->body);
    json_open(out, '{');
    json_key(out, STR("at_ms"));
    json_put_int(out, at_ms);
    return e;
}

static void event_close(const struct speak_event *e, struct json_out *out)
{
    json_close(out, '}');
    speak_event_close(e);
}

static void put_task(struct open *o, struct json_out *out, int64_t turn)
{
    json_key(out, STR("task_id"));
    json_put_str(out, str_of(o->task_id.text));
    json_key(out, STR("turn"));
    json_put_int(out, turn);
}

static void write_gap(struct open *o, int64_t number, int64_t at_ms)
{
    struct json_out out;
    struct speak_event e = event_open(o, &out, "gap", number, at_ms);

    put_task(o, &out, o->turn);
    event_close(&e, &out);
    o->needs_gap = false;
}

static void write_result(struct open *o, const struct task *t, int64_t number)
{
    struct json_out out;
    struct speak_event e =
        event_open(o, &out, "result", number, t->finished_ms);

    write_answer(o, &out, t);
    event_close(&e, &out);
}

static void write_event(struct open *o, const struct task_event *event)
{
    bool is_chunk = event->kind == TASK_EVENT_CHUNK;
    struct json_out out;
    struct speak_event e = event_open(o, &out, is_chunk ? "chunk" : "status",
                                      event->number, event->at_ms);

    put_task(o, &out, event->turn);
    json_key(&out, is_chunk ? STR("text") : STR("status"));
    json_put_str(&out,
                 is_chunk ? event->text : task_status_name(event->status));
    event_close(&e, &out);
}

/* The end. */

static void send_result(struct open *o, const struct task *t, int64_t number)
{
    if (o->needs_gap)
        write_gap(o, 0, loop_wall_ms(o->calls->loop));
    write_result(o, t, number);
    open_send_last(o);
}

static void on_past(struct open *o, enum err e, const struct task *t)
{
    buf_clear(&o->calls->body);
    if (e) { /* what is left to say cannot be said in a stream */
        net_stream_end(o->calls->net, o->id);
        open_end(o);
        return;
    }
    send_result(o, t, 0);
}

/* On the way. */

/* Write a batch of events. True: the result is next, as event *last. */
static bool write_batch(struct open *o, int64_t *last)
{
    struct tasks *tasks = walk_tasks(o->calls->walk);
    struct task_event event;

    while (o->calls->body.n < BATCH_BYTES &&
           task_next(tasks, &o->listener, &event)) {
        if (event.kind == TASK_EVENT_GAP) {
            write_gap(o, event.number, event.at_ms);
            continue;
        }
        *last = event.number;
        if (event.kind == TASK_EVENT_RESULT)
            return true;
        if (o->needs_gap)
            write_gap(o, 0, event.at_ms);
        write_event(o, &event);
    }
    return false;
}

static void pump(struct open *o)
{
    struct calls *c = o->calls;

    for (;;) {
        int64_t last = 0;

        if (!o->is_listening)
            return; /* the result is being read */
        buf_clear(&c->body);
        if (write_batch(o, &last)) {
            send_result(o, task_heard(&o->listener), last);
            return;
        }
        if (!c->body.n || !open_send(o))
            return;
    }
}

static void on_news(struct task_listener *l)
{
    struct open *o = LIST_OF(l, struct open, listener);

    if (!o->held.n) /* else net says when to go on */
        pump(o);
}

/* From which event on. */
static int64_t begin_at(struct open *o)
{
    if (!o->has_place)
        return 1;
    if (o->place.epoch == store_epoch(o->calls->store))
        return o->place.number + 1;
    o->needs_gap = true;
    return 1;
}

static enum err begin_to_listen(struct open *o, const struct task *t)
{
    int64_t from = begin_at(o);
    enum err e;

    o->turn = t->turn;
    o->listener = (struct task_listener){.on_news = on_news};
    e = task_listen(walk_tasks(o->calls->walk), str_of(o->task_id.text),
                    &o->listener, from);
    o->is_listening = e == OK;
    /* A place that no event has been at yet is of another task, or made up.
     * The result is given again to who has it. */
    if (!e && from > o->listener.next + task_is_over(t->status))
        o->needs_gap = true;
    return e;
}

void events_begin(struct open *o, const struct task *t)
{
    bool is_current = look_is_current(o, t);
    enum err e = is_current ? begin_to_listen(o, t) : ERR_NOT_FOUND;

    if (e && e != ERR_NOT_FOUND) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    if (!open_stream(o, OPEN_EVENTS, pump))
        return;
    buf_clear(&o->calls->body);
    if (o->is_listening) {
        pump(o);
        return;
    }
    o->needs_gap = o->has_place;
    if (is_current)
        send_result(o, t, 0);
    else
        look_past(o, t, on_past);
}

/* GET /api/tasks/ID/events */

static void on_look(struct open *o, enum err e, const struct task *t)
{
    if (!e && !o->calls->is_ready)
        e = ERR_STOPPING;
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        events_begin(o, t);
}

void call_tasks_events(struct call *c)
{
    struct str place = http_header(c->rq, STR("Last-Event-ID"));
    struct speak_place p = {0, 0};
    struct open *o;
    struct id id;

    if (!place.n)
        place = call_arg(c, "after");
    if (place.p && speak_place_read(place, &p)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("after, or Last-Event-ID, must be the id of an event "
                        "of this task, like 3-14"));
        return;
    }
    if (!call_task_id(c, &id) || !(o = open_new(c)))
        return;
    o->task_id = id;
    o->has_place = place.p != NULL;
    o->place = p;
    look_task(o, on_look);
}
