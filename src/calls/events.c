/* The events of a turn of a task as a stream. The room of the tasks keeps a
 * ring of them; we are a cursor in it that sends as fast as the client reads.
 * What fell out of the ring, or was in another life of the server, is a `gap`.
 *
 * Whoever listens stays with their turn, whatever has begun since, so the
 * result is always theirs. Only a turn that was over before we came is read
 * from the store.
 *
 * Nothing is kept for a client who does not read: its place says what comes
 * next, and that is written when there is room for it. A result can be of some
 * megabytes and have ten thousand who watch. So it is sent in parts, and
 * written again (or read again) for each of them that finds room later; the
 * one that was written last is kept, since in a crowd it is the next one's
 * too. Turned down: holding what did not fit, which is a result for each of
 * them. */
#include "calls/internal.h"
#include "calls/share.h"

enum { BATCH_BYTES = 64 * 1024 }; /* and a part of a result */

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
    json_member_int(out, "at_ms", at_ms);
    return e;
}

static void event_close(const struct speak_event *e, struct json_out *out)
{
    json_close(out, '}');
    speak_event_close(e);
}

static void put_task(struct open *o, struct json_out *out, int64_t turn)
{
    json_member_text(out, "task_id", str_of(o->task_id.text));
    json_member_int(out, "turn", turn);
}

static void write_gap(struct open *o, int64_t number, int64_t at_ms)
{
    struct json_out out;
    struct speak_event e = event_open(o, &out, "gap", number, at_ms);

    put_task(o, &out, o->turn);
    event_close(&e, &out);
    o->events.needs_gap = false;
}

static void write_input(struct open *o, const char *type, int64_t number,
                        int64_t at_ms, struct str input)
{
    struct json_out out;
    struct speak_event e = event_open(o, &out, type, number, at_ms);

    put_task(o, &out, o->turn);
    json_key(&out, STR("input"));
    json_put_raw(&out, input);
    event_close(&e, &out);
}

/* What is asked and not over, of what it has missed or comes too late for: as
 * events without a number, which are no place to go on from. */
static void write_missed_inputs(struct open *o)
{
    const struct input *list[TASK_INPUTS_MAX];
    size_t n =
        task_inputs(walk_tasks(o->calls->walk), str_of(o->task_id.text), list);

    for (size_t i = 0; i < n; i++) {
        const struct input *in = list[i];
        int64_t number = input_number(in, &o->task_id);
        struct json_out out;
        struct buf text;

        if (number <= o->events.inputs_told || number >= o->listener.next)
            continue;
        buf_init(&text, 8 * INPUT_BYTES_MAX);
        out = json_out(&text);
        input_write(&out, in);
        if (!text.over) /* without memory GET /api/tasks/ID has it */
            write_input(o, "input", 0, in->at_ms, buf_str(&text));
        buf_fini(&text);
        o->events.inputs_told = number;
    }
}

static void write_delegated(struct open *o, const struct task_event *event)
{
    struct json_out out;
    struct speak_event e =
        event_open(o, &out, "delegated", event->number, event->at_ms);

    put_task(o, &out, event->turn);
    json_member_raw(&out, "delegated", event->text);
    event_close(&e, &out);
}

static void write_event(struct open *o, const struct task_event *event)
{
    bool is_chunk = event->kind == TASK_EVENT_CHUNK;
    struct json_out out;
    struct speak_event e;

    if (event->kind == TASK_EVENT_DELEGATED) {
        write_delegated(o, event);
        return;
    }
    if (event->kind == TASK_EVENT_INPUT ||
        event->kind == TASK_EVENT_INPUT_OVER) {
        write_input(o, event->kind == TASK_EVENT_INPUT ? "input" : "input_over",
                    event->number, event->at_ms, event->text);
        o->events.inputs_told = event->number;
        return;
    }
    e = event_open(o, &out, is_chunk ? "chunk" : "status", event->number,
                   event->at_ms);

    put_task(o, &out, event->turn);
    json_key(&out, is_chunk ? STR("text") : STR("status"));
    json_put_str(&out,
                 is_chunk ? event->text : task_status_name(event->status));
    json_member_some(&out, "agent", event->agent);
    event_close(&e, &out);
}

/* The end. */

static void go_on_with_result(struct open *o);

static bool is_kept(const struct open *o)
{
    const struct calls_result *r = &o->calls->result;

    return r->text.n && r->number == o->events.result_number &&
           strcmp(r->message_id.text, o->message_id.text) == 0 &&
           r->has_decision == (o->message.decision != NULL);
}

static void write_result(struct open *o, const struct task *t)
{
    struct calls *c = o->calls;
    struct calls_result *r = &c->result;
    struct buf body = c->body;
    struct json_out out;
    struct speak_event e;

    buf_clear(&r->text);
    c->body = r->text; /* where everything is written */
    e = event_open(o, &out, "result", o->events.result_number, t->finished_ms);
    write_answer(o, &out, t);
    event_close(&e, &out);
    r->text = c->body;
    c->body = body;
    r->number = o->events.result_number;
    r->message_id = o->message_id;
    r->has_decision = o->message.decision != NULL;
}

/* One of another size than before would be told with a seam in it. */
static bool is_as_before(struct open *o)
{
    size_t n = o->calls->result.text.n;

    if (!o->events.result_bytes)
        o->events.result_bytes = n;
    return n == o->events.result_bytes && !o->calls->result.text.over;
}

/* Say what net takes of the result that is kept. */
static void say_result(struct open *o)
{
    struct str all = buf_str(&o->calls->result.text);
    size_t *said = &o->events.result_said;

    if (!is_as_before(o)) {
        log_error(o->calls->log, "calls.result_not_told");
        buf_clear(&o->calls->result.text);
        open_end_stream(o);
        return;
    }
    while (*said < all.n) {
        struct str part = str_sub(all, *said, *said + BATCH_BYTES);

        if (!open_has_room(o) || !open_send_bytes(o, part))
            return;
        *said += part.n;
        o->is_within = *said < all.n;
    }
    open_end_stream(o);
}

/* What it has cost, before the result: that is the same for all who hear it,
 * and this is for the payer and admins. False: later. */
static bool tell_cost(struct open *o, const struct task *t)
{
    struct json_out out;
    struct speak_event e;

    if (o->events.is_cost_told)
        return true;
    if (answer_needs_cost(o, t, go_on_with_result))
        return false;
    if (!o->message.cost.tree && !o->message.cost.conversation) {
        o->events.is_cost_told = true;
        return true;
    }
    if (!open_has_room(o))
        return false;
    buf_clear(&o->calls->body);
    e = event_open(o, &out, "cost", 0, t->finished_ms);
    put_task(o, &out, t->turn);
    share_cost_say(&out, &o->message.cost, t);
    event_close(&e, &out);
    o->events.is_cost_told = true;
    return open_send(o);
}

static void send_result(struct open *o, const struct task *t)
{
    if (!tell_cost(o, t))
        return;
    if (o->events.needs_gap) {
        if (!open_has_room(o))
            return;
        buf_clear(&o->calls->body);
        write_gap(o, 0, loop_wall_ms(o->calls->loop));
        if (!open_send(o))
            return;
    }
    if (!is_kept(o))
        write_result(o, t);
    say_result(o);
}

/* What is left to say when there is none cannot be said in a stream. */
static void on_result(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_end_stream(o);
    else
        send_result(o, t);
    if (!o->is_out)
        open_drop_queries(o); /* a slow reader does not hold them */
}

static void on_look_again(struct open *o, enum err e, const struct task *t)
{
    if (e || look_is_current(o, t))
        on_result(o, e, t);
    else
        look_past(o, t, on_result);
}

static void go_on_with_result(struct open *o)
{
    if (o->is_out)
        return;
    if (!open_has_room(o)) {
        /* Whoever is slow to take it does not hold the task in memory. */
        if (o->is_listening)
            task_unlisten(walk_tasks(o->calls->walk), &o->listener);
        o->is_listening = false;
        return;
    }
    if (o->is_listening)
        send_result(o, task_heard(&o->listener));
    else if (is_kept(o) && !o->events.needs_gap && o->events.is_cost_told)
        say_result(o);
    else
        look_task(o, on_look_again);
}

/* On the way. */

/* Write a batch of events, up to the result if that is next. */
static void write_batch(struct open *o)
{
    struct tasks *tasks = walk_tasks(o->calls->walk);
    struct task_event event;

    while (o->calls->body.n < BATCH_BYTES &&
           task_next(tasks, &o->listener, &event)) {
        if (event.kind == TASK_EVENT_GAP) {
            write_gap(o, event.number, event.at_ms);
            write_missed_inputs(o);
            continue;
        }
        if (event.kind == TASK_EVENT_RESULT) {
            o->events.is_at_result = true;
            o->events.result_number = event.number;
            return;
        }
        if (o->events.needs_gap)
            write_gap(o, 0, event.at_ms);
        write_event(o, &event);
    }
}

static void pump(struct open *o)
{
    while (!o->events.is_at_result) {
        if (!open_has_room(o))
            return;
        buf_clear(&o->calls->body);
        if (!o->events.has_begun)
            write_missed_inputs(o);
        o->events.has_begun = true;
        write_batch(o);
        if (!o->calls->body.n && !o->events.is_at_result)
            return;
        if (!open_send(o))
            return;
    }
    go_on_with_result(o);
}

static void on_news(struct task_listener *l)
{
    pump(LIST_OF(l, struct open, listener));
}

/* From which event on. */
static int64_t begin_at(struct open *o)
{
    if (!o->events.has_place)
        return 1;
    if (o->events.place.epoch == store_epoch(o->calls->store))
        return o->events.place.number + 1;
    o->events.needs_gap = true;
    return 1;
}

static enum err begin_to_listen(struct open *o, const struct task *t)
{
    int64_t from = begin_at(o);
    enum err e;

    o->turn = t->turn;
    o->listener = (struct task_listener){.on_news = on_news,
                                         .hears_inputs = o->answers_inputs};
    e = task_listen(walk_tasks(o->calls->walk), str_of(o->task_id.text),
                    &o->listener, from);
    o->is_listening = e == OK;
    /* A place that no event has been at yet is of another task, or made up.
     * The result is given again to who has it. */
    if (!e && from > o->listener.next + task_is_over(t->status))
        o->events.needs_gap = true;
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
    if (is_current) /* and stays the one that is meant */
        o->message_id = t->message_id;
    if (!open_stream(o, OPEN_EVENTS, pump))
        return;
    if (o->is_listening) {
        open_drop_queries(o);
        pump(o);
        return;
    }
    o->events.needs_gap = o->events.has_place;
    o->events.is_at_result = true;
    if (is_current)
        on_result(o, OK, t);
    else
        look_past(o, t, on_result);
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
    o->events.has_place = place.p != NULL;
    o->events.place = p;
    look_task(o, on_look);
}
