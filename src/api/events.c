/* The events of a turn of a task as a stream. task/ keeps a ring of them, and
 * the stream is a cursor in it that sends as fast as the client reads. Events
 * that left the ring, or were before a restart, are a `gap`.
 *
 * A stream stays with its turn, whatever starts later, so the result is always
 * of that turn. Only a turn that was over before is read from the store.
 *
 * Nothing is kept for a client that does not read: its position says which
 * event is next, and that is written when there is space. A result can have
 * some megabytes and ten thousand watchers. So it is sent in parts, and written
 * (or read) again for each watcher that finds space later; the last written
 * result is kept, since in a crowd the next watcher needs the same. Rejected:
 * keeping the unsent rest, which is a result for each watcher. */
#include "api/internal.h"

enum { BATCH_BYTES = 64 * 1024 }; /* and of one part of a result */

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

/* Start an event: its id and the members that all have. A zero number is left
 * out. */
static struct speak_event event_open(struct request *o, struct json_out *out,
                                     const char *type, int64_t number,
                                     int64_t at_ms)
{
    struct speak_place p = {store_epoch(o->api->store), number};
    char id[SPEAK_PLACE_BYTES];
    struct speak_event e = speak_event_open(
        &o->api->body, number ? speak_place_write(&p, id) : STR(""),
        str_of(type));

    *out = json_out(&o->api->body);
    json_open(out, '{');
    json_member_int(out, "at_ms", at_ms);
    return e;
}

static void event_close(const struct speak_event *e, struct json_out *out)
{
    json_close(out, '}');
    speak_event_close(e);
}

static void events_put_task(struct request *o, struct json_out *out,
                            int64_t turn)
{
    json_member_text(out, "task_id", str_of(o->task_id.text));
    json_member_int(out, "turn", turn);
}

const char *event_name(enum task_event_kind kind)
{
    static const char *const names[] = {[TASK_EVENT_STATUS] = "status",
                                        [TASK_EVENT_CHUNK] = "chunk",
                                        [TASK_EVENT_GAP] = "gap",
                                        [TASK_EVENT_RESULT] = "result",
                                        [TASK_EVENT_DELEGATED] = "delegated",
                                        [TASK_EVENT_INPUT] = "input",
                                        [TASK_EVENT_INPUT_OVER] = "input_over"};

    return names[kind];
}

void event_put_members(struct json_out *out, const struct task_event *e)
{
    switch (e->kind) {
    case TASK_EVENT_DELEGATED:
        json_member_raw(out, "delegated", e->text);
        break;
    case TASK_EVENT_INPUT:
    case TASK_EVENT_INPUT_OVER: json_member_raw(out, "input", e->text); break;
    case TASK_EVENT_CHUNK:
        json_member_text(out, "text", e->text);
        json_member_some(out, "agent", e->agent);
        break;
    case TASK_EVENT_STATUS:
        json_member_text(out, "status", task_status_name(e->status));
        json_member_some(out, "agent", e->agent);
        break;
    case TASK_EVENT_GAP:
    case TASK_EVENT_RESULT: break;
    }
}

bool event_of_input(struct tasks *tasks, const struct task_listener *l,
                    int64_t *told, struct buf *text, struct task_event *out)
{
    const struct input *list[TASK_INPUTS_MAX];
    size_t n = task_inputs(tasks, str_of(l->task_id.text), list);

    for (size_t i = 0; i < n; i++) {
        int64_t number = input_number(list[i], &l->task_id);
        struct json_out json = json_out(text);

        if (number <= *told || number >= l->next)
            continue;
        *told = number;
        buf_clear(text);
        input_write(&json, list[i]);
        if (text->over) /* GET /api/tasks/ID has it */
            continue;
        *out = (struct task_event){.kind = TASK_EVENT_INPUT,
                                   .at_ms = list[i]->at_ms,
                                   .text = buf_str(text)};
        return true;
    }
    return false;
}

static void events_write(struct request *o, const struct task_event *event)
{
    struct json_out out;
    struct speak_event e = event_open(o, &out, event_name(event->kind),
                                      event->number, event->at_ms);

    events_put_task(o, &out, o->turn);
    event_put_members(&out, event);
    event_close(&e, &out);
    if (event->kind == TASK_EVENT_GAP)
        message_of(o)->needs_gap = false;
    else if (event->number && (event->kind == TASK_EVENT_INPUT ||
                               event->kind == TASK_EVENT_INPUT_OVER))
        message_of(o)->inputs_told = event->number;
}

static void events_write_gap(struct request *o, int64_t at_ms)
{
    events_write(o,
                 &(struct task_event){.kind = TASK_EVENT_GAP, .at_ms = at_ms});
}

/* Open questions that the client has missed or came too late for. Their events
 * have no number, so they are no position to continue from. */
static void events_write_missed_inputs(struct request *o)
{
    struct tasks *tasks = walk_tasks(o->api->walk);
    struct task_event event;
    struct buf text;

    buf_init(&text, EVENT_INPUT_BYTES);
    while (event_of_input(tasks, &o->listener, &message_of(o)->inputs_told,
                          &text, &event))
        events_write(o, &event);
    buf_fini(&text);
}

/* The result. */

static void events_go_on_with_result(struct request *o);

static bool events_result_is_kept(const struct request *o)
{
    const struct api_result *r = &o->api->result;

    return r->text.n && r->number == message_of(o)->result_number &&
           strcmp(r->message_id.text, o->message_id.text) == 0 &&
           r->has_decision == (message_of(o)->decision.n > 0);
}

static void events_write_result(struct request *o, const struct task *t)
{
    struct api *c = o->api;
    struct api_result *r = &c->result;
    struct buf body = c->body;
    struct json_out out;
    struct speak_event e;

    buf_clear(&r->text);
    c->body = r->text; /* the writers use this buffer */
    e = event_open(o, &out, "result", message_of(o)->result_number,
                   t->finished_ms);
    write_answer(o, &out, t);
    event_close(&e, &out);
    r->text = c->body;
    c->body = body;
    r->number = message_of(o)->result_number;
    r->message_id = o->message_id;
    r->has_decision = message_of(o)->decision.n > 0;
}

/* A result of a different size could not be continued in the middle. */
static bool events_result_is_same_size(struct request *o)
{
    size_t n = o->api->result.text.n;

    if (!message_of(o)->result_bytes)
        message_of(o)->result_bytes = n;
    return n == message_of(o)->result_bytes && !o->api->result.text.over;
}

/* Send as much of the kept result as net accepts. */
static void events_send_kept_result(struct request *o)
{
    struct str all = buf_str(&o->api->result.text);
    size_t *said = &message_of(o)->result_said;

    if (!events_result_is_same_size(o)) {
        log_error(o->api->log, "calls.result_not_told");
        buf_clear(&o->api->result.text);
        request_end_stream(o);
        return;
    }
    while (*said < all.n) {
        struct str part = str_sub(all, *said, *said + BATCH_BYTES);

        if (!request_has_room(o) || !request_send_bytes(o, part))
            return;
        *said += part.n;
        http_seat(o)->is_within = *said < all.n;
    }
    request_end_stream(o);
}

/* The cost, before the result: the result is the same for all watchers, the
 * cost is for the payer and admins. False: later. */
static bool events_send_cost(struct request *o, const struct task *t)
{
    struct json_out out;
    struct speak_event e;

    if (message_of(o)->is_cost_told)
        return true;
    if (answer_needs_cost(o, t, events_go_on_with_result))
        return false;
    if (!message_of(o)->cost.tree && !message_of(o)->cost.conversation) {
        message_of(o)->is_cost_told = true;
        return true;
    }
    if (!request_has_room(o))
        return false;
    buf_clear(&o->api->body);
    e = event_open(o, &out, "cost", 0, t->finished_ms);
    events_put_task(o, &out, t->turn);
    write_task_cost(&out, &message_of(o)->cost, t);
    event_close(&e, &out);
    message_of(o)->is_cost_told = true;
    return request_send(o);
}

static void events_send_result(struct request *o, const struct task *t)
{
    if (!events_send_cost(o, t))
        return;
    if (message_of(o)->needs_gap) {
        if (!request_has_room(o))
            return;
        buf_clear(&o->api->body);
        events_write_gap(o, loop_wall_ms(o->api->loop));
        if (!request_send(o))
            return;
    }
    if (!events_result_is_kept(o))
        events_write_result(o, t);
    events_send_kept_result(o);
}

/* An error cannot be reported in a stream that has started. */
static void on_events_result(struct request *o, enum err e,
                             const struct task *t)
{
    if (e)
        request_end_stream(o);
    else
        events_send_result(o, t);
    if (!o->is_out)
        request_drop_queries(o); /* a slow reader must not hold them */
}

static void on_events_task_again(struct request *o, enum err e,
                                 const struct task *t)
{
    if (e || look_is_current(o, t))
        on_events_result(o, e, t);
    else
        look_past(o, t, on_events_result);
}

static void events_go_on_with_result(struct request *o)
{
    if (o->is_out)
        return;
    if (!request_has_room(o)) {
        /* A slow reader must not hold the task in memory. */
        if (o->is_listening)
            task_unlisten(walk_tasks(o->api->walk), &o->listener);
        o->is_listening = false;
        return;
    }
    if (o->is_listening)
        events_send_result(o, task_heard(&o->listener));
    else if (events_result_is_kept(o) && !message_of(o)->needs_gap &&
             message_of(o)->is_cost_told)
        events_send_kept_result(o);
    else
        look_task(o, on_events_task_again);
}

/* Events. */

/* Write a batch of events, up to the result if that is next. */
static void events_write_batch(struct request *o)
{
    struct tasks *tasks = walk_tasks(o->api->walk);
    struct task_event event;

    while (o->api->body.n < BATCH_BYTES &&
           task_next(tasks, &o->listener, &event)) {
        if (event.kind == TASK_EVENT_GAP) {
            events_write(o, &event);
            events_write_missed_inputs(o);
            continue;
        }
        if (event.kind == TASK_EVENT_RESULT) {
            message_of(o)->is_at_result = true;
            message_of(o)->result_number = event.number;
            return;
        }
        if (message_of(o)->needs_gap)
            events_write_gap(o, event.at_ms);
        events_write(o, &event);
    }
}

static void events_pump(struct request *o)
{
    while (!message_of(o)->is_at_result) {
        if (!request_has_room(o))
            return;
        buf_clear(&o->api->body);
        if (!message_of(o)->has_begun)
            events_write_missed_inputs(o);
        message_of(o)->has_begun = true;
        events_write_batch(o);
        if (!o->api->body.n && !message_of(o)->is_at_result)
            return;
        if (!request_send(o))
            return;
    }
    events_go_on_with_result(o);
}

static void on_task_events(struct task_listener *l)
{
    events_pump(LIST_OF(l, struct request, listener));
}

/* The first event to send. */
static int64_t events_begin_at(struct request *o)
{
    if (!message_of(o)->has_place)
        return 1;
    if (message_of(o)->place.epoch == store_epoch(o->api->store))
        return message_of(o)->place.number + 1;
    message_of(o)->needs_gap = true;
    return 1;
}

static enum err events_listen(struct request *o, const struct task *t)
{
    int64_t from = events_begin_at(o);
    enum err e;

    o->turn = t->turn;
    o->listener =
        (struct task_listener){.on_news = on_task_events,
                               .hears_inputs = http_seat(o)->answers_inputs};
    e = task_listen(walk_tasks(o->api->walk), str_of(o->task_id.text),
                    &o->listener, from);
    o->is_listening = e == OK;
    /* A position that no event has had yet is of another task, or invented. A
     * client that has the result gets it again. */
    if (!e && from > o->listener.next + task_is_over(t->status))
        message_of(o)->needs_gap = true;
    return e;
}

void events_begin(struct request *o, const struct task *t)
{
    bool is_current = look_is_current(o, t);
    enum err e = is_current ? events_listen(o, t) : ERR_NOT_FOUND;

    if (e && e != ERR_NOT_FOUND) {
        request_fail(o, e);
        return;
    }
    if (is_current) /* the stream stays with this turn */
        o->message_id = t->message_id;
    if (!request_stream(o, REQUEST_EVENTS, events_pump))
        return;
    if (o->is_listening) {
        request_drop_queries(o);
        events_pump(o);
        return;
    }
    message_of(o)->needs_gap = message_of(o)->has_place;
    message_of(o)->is_at_result = true;
    if (is_current)
        on_events_result(o, OK, t);
    else
        look_past(o, t, on_events_result);
}

/* GET /api/tasks/ID/events */

static void on_events_task(struct request *o, enum err e, const struct task *t)
{
    if (!e && !o->api->is_ready)
        e = ERR_STOPPING;
    if (e)
        request_fail(o, e);
    else
        events_begin(o, t);
}

void call_tasks_events(struct call *c)
{
    struct str place = http_header(c->rq, STR("Last-Event-ID"));
    struct speak_place p = {0, 0};
    struct request *o;
    struct id id;

    if (!place.n)
        place = call_arg(c, "after");
    if (place.p && speak_place_read(place, &p)) {
        call_bad_request(c,
                         "after, or Last-Event-ID, must be the id of an event "
                         "of this task, like 3-14");
        return;
    }
    if (!call_task_id(c, &id) || !(o = request_of_call(c, &message_state)))
        return;
    o->task_id = id;
    message_of(o)->has_place = place.p != NULL;
    message_of(o)->place = p;
    look_task(o, on_events_task);
}
