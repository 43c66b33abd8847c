/* All requests that are open for longer than a turn are one struct in one
 * table, by request id. So one place handles a client that left, space in a
 * stream, a revoked token, and the end.
 *
 * The store or the walk may still have something of a request whose client has
 * left, and give it back by pointer: the request waits in `gone` until then.
 * Finished requests are freed at the end of the turn, so that a module that is
 * calling its listeners never finds one freed.
 *
 * Tokens: twice a second, and when one was revoked, all open requests are
 * checked, SWEEP_AT_ONCE in a turn. An index by token would find them sooner,
 * but expired tokens must be looked for anyway. */
#include "api/internal.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    SWEEP_MS = 500,
    SWEEP_AT_ONCE = 4096,
    LISTS_MAX = 8,   /* of one token at a time */
    STUDIES_MAX = 4, /* of one token, besides its lists */
    PAGE_COPIES = 4,
    PAGES_OWED = 16, /* pages for a client that has closed its sending side */
};

/* Life. */

void open_drop_queries(struct open *o)
{
    if (o->has_query)
        query_fini(&o->query);
    if (o->has_turns)
        query_fini(&o->turns);
    o->has_query = o->has_turns = false;
}

static void open_free(struct open *o)
{
    list_remove(&o->node);
    list_remove(&o->listing);
    open_drop_queries(o);
    if (o->change)
        access_change_fini(o->change);
    free(o->change);
    OPENSSL_cleanse(&o->secret, sizeof(o->secret));
    if (o->registering)
        registry_change_fini(o->registering);
    free(o->registering);
    free(o->search.text);
    free(o->message.decision);
    verdict_free(o->word);
    call_reply_free(o->say);
    analytics_query_free(o->study);
    decision_scan_free(o->scan);
    books_free(o->books);
    tree_look_free(o->tree);
    call_input_free(o->input);
    free(o);
}

static void open_free_all(struct list *l)
{
    struct list_node *n;

    while ((n = list_first(l)) != NULL)
        open_free(LIST_OF(n, struct open, node));
}

static void open_reap(struct loop_job *job)
{
    struct api *c = LIST_OF(job, struct api, reap_job);

    open_free_all(&c->dead);
    if (!c->n_by_kind[OPEN_EVENTS]) /* no stream is left that needs it */
        buf_fini(&c->result.text);
}

static struct str open_key(const uint64_t *id)
{
    return (struct str){(const char *)id, sizeof(*id)};
}

static struct open *open_find(const struct api *c, uint64_t id)
{
    return map_get(&c->by_id, open_key(&id));
}

/* The key of the table is in o->id, so o leaves the table before the id
 * changes. */
static void open_leave(struct open *o)
{
    struct api *c = o->api;

    map_take(&c->by_id, open_key(&o->id));
    o->id = 0;
    throttle_release(c->throttle, o->place);
    o->place = NULL;
    c->n_by_kind[o->kind]--;
    list_remove(&o->node);
    list_append(o->is_out ? &c->gone : &c->dead, &o->node);
    if (!o->is_out)
        loop_at_end(c->loop, &c->reap_job);
    else if (o->asked)
        store_forget(c->store, o->asked);
}

void open_quiet(struct open *o)
{
    if (o->is_listening)
        task_unlisten(walk_tasks(o->api->walk), &o->listener);
    if (o->feed.is_reading)
        feed_leave(o->api->feed, &o->feed.reader);
    if (o->search.id)
        registry_search_cancel(o->api->registry, o->search.id);
    verdict_quiet(o);
    o->is_listening = o->feed.is_reading = false;
    o->search.id = 0;
    if (o->delegation_request)
        delegation_request_leave(o->delegation_request);
    o->delegation_request = NULL;
    loop_timer_cancel(o->api->loop, &o->timer);
}

void open_end(struct open *o)
{
    if (!o->id)
        return;
    open_quiet(o);
    open_leave(o);
}

void open_out(struct open *o)
{
    assert(!o->is_out);
    o->is_out = true;
}

bool open_back(struct open *o)
{
    assert(o->is_out);
    o->is_out = false;
    if (o->id)
        return true;
    list_remove(&o->node);
    list_append(&o->api->dead, &o->node);
    loop_at_end(o->api->loop, &o->api->reap_job);
    return false;
}

static void open_keep_sweeping(struct api *c)
{
    if (!timer_is_set(&c->sweep_timer))
        loop_timer_set(c->loop, &c->sweep_timer, SWEEP_MS);
}

struct open *open_new(struct call *call)
{
    struct api *c = call->api;
    struct open *o = FAULT("calls.open") ? NULL : calloc(1, sizeof(*o));
    enum err e = ERR_NOMEM;

    if (o) {
        o->api = c;
        o->id = call->id;
        o->caller = call->caller;
        call_word_missing(call, o->missing);
        o->answers_inputs = str_eq(
            http_header(call->rq, STR("Signalbox-Answers")), STR("input"));
        o->place = throttle_hold(c->throttle, &o->caller);
        e = o->place ? map_put(&c->by_id, open_key(&o->id), o) : ERR_BUSY;
    }
    if (e) {
        throttle_release(c->throttle, o ? o->place : NULL);
        free(o);
        call_refuse(call, e == ERR_NOMEM ? ERR_NOMEM : ERR_OVERLOADED,
                    e == ERR_BUSY ? STR(THROTTLE_HELD_WORDS) : STR(""));
        return NULL;
    }
    list_append(&c->open, &o->node);
    c->n_by_kind[o->kind]++;
    open_keep_sweeping(c);
    return o;
}

void open_becomes(struct open *o, enum open_kind kind)
{
    o->api->n_by_kind[o->kind]--;
    o->kind = kind;
    o->api->n_by_kind[kind]++;
}

/* Reads. */

/* Errors of the store, as a client can use them: try later, or our fault. */
static enum err client_error_of(enum err e)
{
    if (e == ERR_BUSY)
        return ERR_OVERLOADED;
    return e == ERR_LIMIT ? ERR_INTERNAL : e;
}

static void on_open_read(struct query *q, void *ctx)
{
    struct open *o = ctx;

    o->asked = NULL;
    if (q->err && q->err != ERR_GONE)
        log_warn(o->api->log, "calls.not_read", LOG_C("table", q->table->name),
                 LOG_C("because", err_row(q->err)->wording));
    q->err = client_error_of(q->err);
    if (!open_back(o))
        return;
    if (o->kind == OPEN_ASKING &&
        !access_is_good(o->api->access, &o->caller, loop_wall_ms(o->api->loop)))
        open_refuse_revoked(o, loop_wall_ms(o->api->loop));
    else
        o->then(o);
}

struct query *open_query(struct open *o, const struct table *t, size_t limit)
{
    if (o->has_query)
        query_fini(&o->query);
    query_init(&o->query, t, limit);
    o->has_query = true;
    return &o->query;
}

bool open_query_ok(struct open *o)
{
    if (!o->query.err)
        return true;
    open_fail(o, o->query.err);
    return false;
}

void open_read(struct open *o, struct query *q, void (*then)(struct open *o))
{
    o->then = then;
    o->asked = q;
    open_out(o);
    store_read(o->api->store, q, on_open_read, o);
}

/* The number of these that a token has. There are few in all, so they are
 * counted by a search. */
static size_t open_count_of_token(const struct list *all,
                                  const struct id *token)
{
    size_t n = 0;

    for (struct list_node *l = list_first(all); l; l = list_next(all, l))
        n += strcmp(LIST_OF(l, struct open, listing)->caller.token_id.text,
                    token->text) == 0;
    return n;
}

/* Enter a list for the whole life of o: a read that has started is not rejected
 * half way. */
static bool open_enter_list(struct open *o, struct list *all, size_t most,
                            struct str words)
{
    if (open_count_of_token(all, &o->caller.token_id) >= most) {
        open_refuse(o, ERR_OVERLOADED, words, STR(""));
        return false;
    }
    list_append(all, &o->listing);
    return true;
}

bool open_analytics(struct open *o)
{
    return open_enter_list(
        o, &o->api->studies, STUDIES_MAX,
        STR("four analytics queries of this token are running; wait for "
            "one of them"));
}

/* A page is in memory several times: its rows, the answer, and the answer in
 * the connection's buffer, which doubles. There must be enough memory for that beside
 * the lists that are being read, or small allocations would find nothing and
 * stop the server. A short list is the way out when memory is short: it
 * finds the tasks to cancel. */
static bool open_has_memory(struct open *o, const struct query *q)
{
    struct watch_memory *memory = o->api->memory;
    int64_t bytes = PAGE_BYTES, needed;

    if (q->limit < PAGE_BYTES / MSG_TEXT_MAX)
        bytes = (int64_t)q->limit * MSG_TEXT_MAX;
    o->page_bytes = PAGE_COPIES * bytes;
    if (!memory)
        return true;
    needed = o->page_bytes + memory->reserve_bytes / 4;
    for (struct list_node *l = list_first(&o->api->listings); l;
         l = list_next(&o->api->listings, l))
        needed += LIST_OF(l, struct open, listing)->page_bytes;
    if (watch_memory_left(memory, loop_mono_ms(o->api->loop)) >= needed)
        return true;
    open_refuse(o, ERR_OVERLOADED,
                STR("it has too little memory left for a list of this length"),
                STR(""));
    return false;
}

/* A client that closed its sending side cannot be told from one that has gone,
 * and still gets an answer. But reading on and on for clients that have gone
 * (each new page of the dashboard leaves one) would block all others. */
static bool open_may_read_on(struct open *o)
{
    if (o->n_pages < PAGES_OWED || !net_is_shut(o->api->net, o->id))
        return true;
    open_refuse(o, ERR_BAD_REQUEST,
                STR("the connection was closed while many records were being "
                    "read; keep it open until the answer"),
                STR(""));
    return false;
}

void open_read_list(struct open *o, struct query *q,
                    void (*then)(struct open *o))
{
    bool has_entered = list_has(&o->listing);

    if (has_entered ? !open_may_read_on(o)
                    : !open_has_memory(o, q) ||
                          !open_enter_list(
                              o, &o->api->listings, LISTS_MAX,
                              STR("eight lists are being read for this token; "
                                  "wait for one of them")))
        return;
    o->n_pages++;
    open_read(o, q, then);
}

/* Answers. */

void open_answer(struct open *o, int status)
{
    buf_add_char(&o->api->body, '\n');
    api_answer(o->api, o->id, status, SPEAK_JSON);
    open_end(o);
}

void open_refuse(struct open *o, enum err e, struct str message,
                 struct str details)
{
    if (e == ERR_NOT_FOUND && !message.n)
        message = str_of(o->missing);
    api_refuse(o->api, o->id, e, message, details);
    open_end(o);
}

void open_answer_list(struct open *o, struct json_out *out, int64_t cursor)
{
    char digits[32] = "";

    if (cursor)
        snprintf(digits, sizeof(digits), "%lld", (long long)cursor);
    speak_list_close(out, str_of(digits));
    open_answer(o, 200);
}

void open_fail(struct open *o, enum err e)
{
    open_refuse(o, e, STR(""), STR(""));
}

void open_answer_nothing(struct open *o)
{
    api_answer(o->api, o->id, 204, STR(""));
    open_end(o);
}

/* Streams. */

/* A client with bytes waiting needs no heartbeat, and an event that is sent in
 * part must not contain a comment. */
static void on_stream_heartbeat(struct timer *t)
{
    struct open *o = LIST_OF(t, struct open, timer);

    if (!o->is_within &&
        net_stream_send(o->api->net, o->id, STR(":\n\n")) == ERR_GONE) {
        open_end(o);
        return;
    }
    loop_timer_set(o->api->loop, &o->timer, o->api->settings.heartbeat_ms);
}

bool open_stream(struct open *o, enum open_kind kind,
                 void (*pump)(struct open *o))
{
    static const struct http_header headers[] = {
        {STR("Cache-Control"), STR("no-store")},
        {STR("X-Content-Type-Options"), STR("nosniff")},
        {STR("Vary"), STR("Origin")}};
    struct http_reply r = {.status = 200,
                           .content_type = SPEAK_EVENTS,
                           .headers = headers,
                           .n_headers = 3};

    open_becomes(o, kind);
    o->pump = pump;
    loop_timer_cancel(o->api->loop, &o->timer);
    o->timer.fire = on_stream_heartbeat;
    if (net_stream_open(o->api->net, o->id, &r) != OK) {
        open_end(o);
        return false;
    }
    loop_timer_set(o->api->loop, &o->timer, o->api->settings.heartbeat_ms);
    return true;
}

void open_end_stream(struct open *o)
{
    net_stream_end(o->api->net, o->id);
    open_end(o);
}

/* Nothing is kept for a stream that net has no space for: its position is
 * enough to write the events again. Sending nothing asks net for space, and for
 * a call when there is some. */
bool open_has_room(struct open *o)
{
    enum err e = net_stream_send(o->api->net, o->id, STR(""));

    if (e && e != ERR_BUSY)
        open_end(o);
    return e == OK;
}

bool open_send_bytes(struct open *o, struct str bytes)
{
    enum err e = net_stream_send(o->api->net, o->id, bytes);

    assert(e != ERR_BUSY); /* open_has_room was true */
    if (e)
        open_end(o);
    return e == OK;
}

/* Clear the body: the rest would go to another client. */
bool open_send(struct open *o)
{
    struct api *c = o->api;
    bool is_sent = false;

    if (c->body.over) {
        log_error(c->log, "calls.event_too_large");
        open_end_stream(o);
    } else {
        is_sent = open_send_bytes(o, buf_str(&c->body));
    }
    buf_clear(&c->body);
    return is_sent;
}

void api_on_gone(struct api *c, uint64_t id)
{
    struct open *o = open_find(c, id);

    if (o)
        open_end(o);
}

void api_on_room(struct api *c, uint64_t id)
{
    struct open *o = open_find(c, id);

    if (o && o->pump)
        o->pump(o);
}

/* Revoked tokens and changed roles. */

void open_refuse_revoked(struct open *o, int64_t now_ms)
{
    bool is_search = o->search.text != NULL;

    if (access_token_is_good(o->api->access, &o->caller, now_ms))
        open_refuse(o, ERR_NOT_ALLOWED,
                    is_search ? STR("your role or org has changed, and so have "
                                    "the results; the token is valid: search "
                                    "again")
                              : STR("your role or org has changed, so open "
                                    "requests were closed; the token is valid "
                                    "and the task goes on: ask for it again"),
                    STR(""));
    else
        open_refuse(o, ERR_UNAUTHENTICATED,
                    is_search ? STR("the token is no longer valid")
                              : STR("the token is no longer valid; the task "
                                    "goes on"),
                    STR(""));
}

/* A request that only reads is checked when the read is back, which takes no
 * time. A search may wait for an outside model. */
static void open_shut_out(struct open *o, int64_t now_ms)
{
    if (o->kind == OPEN_ASKING && !o->search.id)
        return;
    o->api->revoked_total++;
    if (o->kind == OPEN_WAITING || o->search.id)
        open_refuse_revoked(o, now_ms);
    else
        open_end_stream(o);
}

static void open_sweep(struct loop_job *job)
{
    struct api *c = LIST_OF(job, struct api, sweep_job);
    int64_t now_ms = loop_wall_ms(c->loop);
    struct list_node *n;

    for (size_t i = 0; i < SWEEP_AT_ONCE && c->n_sweep; i++, c->n_sweep--) {
        struct open *o;

        n = list_pop(&c->open);
        if (!n)
            break;
        list_append(&c->open, n);
        o = LIST_OF(n, struct open, node);
        if (!access_is_good(c->access, &o->caller, now_ms))
            open_shut_out(o, now_ms);
    }
    if (list_is_empty(&c->open))
        c->n_sweep = 0;
    if (c->n_sweep)
        loop_next_turn(c->loop, &c->sweep_job);
    else if (!list_is_empty(&c->open))
        open_keep_sweeping(c);
}

static void open_sweep_begin(struct api *c)
{
    c->n_sweep = c->by_id.n;
    loop_at_end(c->loop, &c->sweep_job);
}

static void on_open_sweep_timer(struct timer *t)
{
    open_sweep_begin(LIST_OF(t, struct api, sweep_timer));
}

void api_on_revoked(struct api *c, const struct id *token_id)
{
    (void)token_id; /* all open requests are checked, once a turn */
    open_sweep_begin(c);
}

/* The end. */

void api_stop(struct api *c)
{
    struct list_node *n, *next;

    c->is_ready = false;
    for (n = list_first(&c->open); n; n = next) {
        struct open *o = LIST_OF(n, struct open, node);

        next = list_next(&c->open, n);
        if (o->kind ==
            OPEN_WAITING) /* sees that the server stops, and answers 202 */
            o->timer.fire(&o->timer);
        else if (o->search.id)
            open_fail(o, ERR_STOPPING);
        else if (o->kind != OPEN_ASKING)
            open_end_stream(o);
    }
}

void open_requests_init(struct api *c, const uint64_t seed[2])
{
    buf_init(&c->result.text, ANSWER_BYTES);
    map_init(&c->by_id, c->settings.max_open, seed);
    list_init(&c->open);
    list_init(&c->gone);
    list_init(&c->dead);
    list_init(&c->listings);
    list_init(&c->studies);
    list_init(&c->delegation_requests);
    c->sweep_timer.fire = on_open_sweep_timer;
    c->sweep_job.run = open_sweep;
    c->reap_job.run = open_reap;
}

void open_requests_fini(struct api *c)
{
    struct list_node *n;

    while ((n = list_first(&c->open)) != NULL)
        open_end(LIST_OF(n, struct open, node));
    loop_timer_cancel(c->loop, &c->sweep_timer);
    loop_not_at_end(&c->sweep_job);
    loop_not_at_end(&c->reap_job);
    delegation_requests_free(&c->delegation_requests);
    open_free_all(&c->gone);
    open_free_all(&c->dead);
    buf_fini(&c->result.text);
    map_fini(&c->by_id);
}
