/* The HTTP front end. All its requests are in one table, by the id of net's
 * request. So one place handles a client that left, space in a stream, a
 * revoked token, and the end.
 *
 * Tokens: twice a second, and when one was revoked, all open requests are
 * checked, SWEEP_AT_ONCE in a turn. An index by token would find them sooner,
 * but expired tokens must be looked for anyway. */
#include "api/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { SWEEP_MS = 500, SWEEP_AT_ONCE = 4096 };

static struct str request_key(const uint64_t *id)
{
    return (struct str){(const char *)id, sizeof(*id)};
}

static struct request *request_find(const struct api *c, uint64_t id)
{
    return map_get(&c->by_id, request_key(&id));
}

static void requests_reap(struct loop_job *job)
{
    struct api *c = LIST_OF(job, struct api, reap_job);

    requests_free(&c->dead);
    if (!c->n_by_kind[REQUEST_EVENTS]) /* no stream is left that needs it */
        buf_fini(&c->result.text);
}

/* The front end. */

static bool http_is_welcome(struct request *o)
{
    int64_t now_ms = loop_wall_ms(o->api->loop);

    if (o->kind != REQUEST_ASKING ||
        access_is_good(o->api->access, &o->caller, now_ms))
        return true;
    request_refuse_revoked(o, now_ms);
    return false;
}

static bool http_is_shut(const struct request *o)
{
    return net_is_shut(o->api->net, o->id);
}

static struct json_out http_begin(struct request *o)
{
    return json_out(&o->api->body);
}

static void http_answer(struct request *o, int status)
{
    buf_add_char(&o->api->body, '\n');
    api_answer_with(o->api, o->id, status, SPEAK_JSON, NULL, 0);
}

static void http_refuse(struct request *o, enum err e, struct str words,
                        struct str details)
{
    if (e == ERR_NOT_FOUND && !words.n)
        words = str_of(http_seat(o)->missing);
    api_refuse(o->api, o->id, e, words, details);
}

/* The key of the table is in o->id. */
static void http_leave(struct request *o)
{
    struct api *c = o->api;

    map_take(&c->by_id, request_key(&o->id));
    throttle_release(c->throttle, http_seat(o)->place);
    http_seat(o)->place = NULL;
    c->n_by_kind[o->kind]--;
}

static const struct front_end http_front_end = {.seat_bytes =
                                                    sizeof(struct http_seat),
                                                .is_shut = http_is_shut,
                                                .is_welcome = http_is_welcome,
                                                .begin = http_begin,
                                                .answer = http_answer,
                                                .refuse = http_refuse,
                                                .leave = http_leave};

void request_answer_nothing(struct request *o)
{
    api_answer(o->api, o->id, 204, STR(""));
    request_end(o);
}

static void requests_keep_sweeping(struct api *c)
{
    if (!timer_is_set(&c->sweep_timer))
        loop_timer_set(c->loop, &c->sweep_timer, SWEEP_MS);
}

struct request *request_of_call(struct call *call,
                                const struct request_state *state)
{
    struct api *c = call->api;
    struct request *o =
        FAULT("calls.open") ? NULL : request_alloc(c, &http_front_end, state);
    struct http_seat *seat;
    enum err e;

    if (!o) {
        call_refuse(call, ERR_NOMEM, STR(""));
        return NULL;
    }
    o->id = call->id;
    o->caller = call->caller;
    seat = http_seat(o);
    call_word_missing(call, seat->missing);
    seat->answers_inputs =
        str_eq(http_header(call->rq, STR("Signalbox-Answers")), STR("input"));
    seat->place = throttle_hold(c->throttle, &o->caller);
    e = seat->place ? map_put(&c->by_id, request_key(&o->id), o) : ERR_BUSY;
    if (e) {
        throttle_release(c->throttle, seat->place);
        o->state = NULL; /* the noun has not seen it */
        request_drop(o);
        call_refuse(call, e == ERR_NOMEM ? ERR_NOMEM : ERR_OVERLOADED,
                    e == ERR_BUSY ? STR(THROTTLE_HELD_WORDS) : STR(""));
        return NULL;
    }
    list_append(&c->open, &o->node);
    c->n_by_kind[o->kind]++;
    requests_keep_sweeping(c);
    return o;
}

void request_becomes(struct request *o, enum request_kind kind)
{
    o->api->n_by_kind[o->kind]--;
    o->kind = kind;
    o->api->n_by_kind[kind]++;
}

/* Streams. */

/* A client with bytes waiting needs no heartbeat, and an event that is sent in
 * part must not contain a comment. */
static void on_stream_heartbeat(struct timer *t)
{
    struct request *o = LIST_OF(t, struct request, timer);

    if (!http_seat(o)->is_within &&
        net_stream_send(o->api->net, o->id, STR(":\n\n")) == ERR_GONE) {
        request_end(o);
        return;
    }
    loop_timer_set(o->api->loop, &o->timer, o->api->settings.heartbeat_ms);
}

bool request_stream(struct request *o, enum request_kind kind,
                    void (*pump)(struct request *o))
{
    static const struct http_header headers[] = {
        {STR("Cache-Control"), STR("no-store")},
        {STR("X-Content-Type-Options"), STR("nosniff")},
        {STR("Vary"), STR("Origin")}};
    struct http_reply r = {.status = 200,
                           .content_type = SPEAK_EVENTS,
                           .headers = headers,
                           .n_headers = 3};

    request_becomes(o, kind);
    http_seat(o)->pump = pump;
    loop_timer_cancel(o->api->loop, &o->timer);
    o->timer.fire = on_stream_heartbeat;
    if (net_stream_open(o->api->net, o->id, &r) != OK) {
        request_end(o);
        return false;
    }
    loop_timer_set(o->api->loop, &o->timer, o->api->settings.heartbeat_ms);
    return true;
}

void request_end_stream(struct request *o)
{
    net_stream_end(o->api->net, o->id);
    request_end(o);
}

/* Nothing is kept for a stream that net has no space for: its position is
 * enough to write the events again. Sending nothing asks net for space, and for
 * a call when there is some. */
bool request_has_room(struct request *o)
{
    enum err e = net_stream_send(o->api->net, o->id, STR(""));

    if (e && e != ERR_BUSY)
        request_end(o);
    return e == OK;
}

bool request_send_bytes(struct request *o, struct str bytes)
{
    enum err e = net_stream_send(o->api->net, o->id, bytes);

    assert(e != ERR_BUSY); /* request_has_room was true */
    if (e)
        request_end(o);
    return e == OK;
}

/* Clear the body: the rest would go to another client. */
bool request_send(struct request *o)
{
    struct api *c = o->api;
    bool is_sent = false;

    if (c->body.over) {
        log_error(c->log, "calls.event_too_large");
        request_end_stream(o);
    } else {
        is_sent = request_send_bytes(o, buf_str(&c->body));
    }
    buf_clear(&c->body);
    return is_sent;
}

void api_on_gone(struct api *c, uint64_t id)
{
    struct request *o = request_find(c, id);

    if (o)
        request_end(o);
}

void api_on_room(struct api *c, uint64_t id)
{
    struct request *o = request_find(c, id);

    if (o && http_seat(o)->pump)
        http_seat(o)->pump(o);
}

/* Revoked tokens and changed roles. */

void request_refuse_revoked(struct request *o, int64_t now_ms)
{
    if (access_token_is_good(o->api->access, &o->caller, now_ms))
        request_refuse(o, ERR_NOT_ALLOWED,
                       o->is_search
                           ? STR("your role or org has changed, and so have "
                                 "the results; the token is valid: search "
                                 "again")
                           : STR("your role or org has changed, so open "
                                 "requests were closed; the token is valid "
                                 "and the task goes on: ask for it again"),
                       STR(""));
    else
        request_refuse(o, ERR_UNAUTHENTICATED,
                       o->is_search
                           ? STR("the token is no longer valid")
                           : STR("the token is no longer valid; the task "
                                 "goes on"),
                       STR(""));
}

/* A request that only reads is checked when the read is back, which takes no
 * time. A search may wait for an outside model. */
static void request_shut_out(struct request *o, int64_t now_ms)
{
    if (o->kind == REQUEST_ASKING && !o->is_search)
        return;
    o->api->revoked_total++;
    if (o->kind == REQUEST_WAITING || o->is_search)
        request_refuse_revoked(o, now_ms);
    else
        request_end_stream(o);
}

static void requests_sweep(struct loop_job *job)
{
    struct api *c = LIST_OF(job, struct api, sweep_job);
    int64_t now_ms = loop_wall_ms(c->loop);
    struct list_node *n;

    for (size_t i = 0; i < SWEEP_AT_ONCE && c->n_sweep; i++, c->n_sweep--) {
        struct request *o;

        n = list_pop(&c->open);
        if (!n)
            break;
        list_append(&c->open, n);
        o = LIST_OF(n, struct request, node);
        if (!access_is_good(c->access, &o->caller, now_ms))
            request_shut_out(o, now_ms);
    }
    if (list_is_empty(&c->open))
        c->n_sweep = 0;
    if (c->n_sweep)
        loop_next_turn(c->loop, &c->sweep_job);
    else if (!list_is_empty(&c->open))
        requests_keep_sweeping(c);
}

static void requests_sweep_begin(struct api *c)
{
    c->n_sweep = c->by_id.n;
    loop_at_end(c->loop, &c->sweep_job);
}

static void on_requests_sweep_timer(struct timer *t)
{
    requests_sweep_begin(LIST_OF(t, struct api, sweep_timer));
}

void api_on_revoked(struct api *c, const struct id *token_id)
{
    (void)token_id; /* all open requests are checked, once a turn */
    requests_sweep_begin(c);
}

/* The end. */

void api_stop(struct api *c)
{
    struct list_node *n, *next;

    c->is_ready = false;
    for (n = list_first(&c->open); n; n = next) {
        struct request *o = LIST_OF(n, struct request, node);

        next = list_next(&c->open, n);
        if (o->kind ==
            REQUEST_WAITING) /* sees that the server stops, and answers 202 */
            o->timer.fire(&o->timer);
        else if (o->is_search)
            request_fail(o, ERR_STOPPING);
        else if (o->kind != REQUEST_ASKING)
            request_end_stream(o);
    }
}

void requests_init(struct api *c, const uint64_t seed[2])
{
    buf_init(&c->result.text, ANSWER_BYTES);
    map_init(&c->by_id, c->settings.max_open, seed);
    list_init(&c->open);
    list_init(&c->gone);
    list_init(&c->dead);
    list_init(&c->listings);
    list_init(&c->studies);
    c->sweep_timer.fire = on_requests_sweep_timer;
    c->sweep_job.run = requests_sweep;
    c->reap_job.run = requests_reap;
}

void requests_fini(struct api *c)
{
    struct list_node *n;

    while ((n = list_first(&c->open)) != NULL)
        request_end(LIST_OF(n, struct request, node));
    loop_timer_cancel(c->loop, &c->sweep_timer);
    loop_not_at_end(&c->sweep_job);
    loop_not_at_end(&c->reap_job);
    requests_free(&c->gone);
    requests_free(&c->dead);
    buf_fini(&c->result.text);
    map_fini(&c->by_id);
}
