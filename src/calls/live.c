/* Everything that is open longer than a turn is one struct in one table, by
 * the id of its request. So there is one place that hears of a client who
 * left, of room in a stream, of a token that was revoked, and of the end.
 *
 * A request that has left may still have something out with the store or the
 * walk, which will come back with a pointer to it: such a one waits in `gone`
 * until then. What is over is freed by a job at the end of the turn, so that a
 * room which is just telling its news never finds a listener freed under it.
 *
 * Tokens: twice a second, and when one was revoked, all that is open is looked
 * at, some thousand in a turn: whose token is good no more is closed. An index
 * by token would find them sooner, but what expires must be looked for anyway.
 */
#include "calls/internal.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    SWEEP_MS = 500,
    SWEEP_AT_ONCE = 4096,
    LISTS_MAX = 8,   /* for one token at a time: the others want to read too */
    STUDIES_MAX = 4, /* likewise, and its lists beside them */
    PAGES_OWED = 16, /* to who may only have shut its sending side */
};

/* Life and death. */

void open_drop_queries(struct open *o)
{
    if (o->has_query)
        query_fini(&o->query);
    if (o->has_turns)
        query_fini(&o->turns);
    o->has_query = o->has_turns = false;
}

static void free_change(struct open *o)
{
    if (o->change)
        access_change_fini(o->change);
    free(o->change);
    OPENSSL_cleanse(&o->secret, sizeof(o->secret));
}

static void open_free(struct open *o)
{
    list_remove(&o->node);
    list_remove(&o->listing);
    open_drop_queries(o);
    free_change(o);
    if (o->registering)
        registry_change_fini(o->registering);
    free(o->registering);
    free(o->search.text);
    free(o->message.decision);
    word_free(o->word);
    say_free(o->say);
    study_free(o->study);
    hunt_free(o->hunt);
    books_free(o->books);
    tree_look_free(o->tree);
    input_word_free(o->input);
    free(o);
}

static void free_all(struct list *l)
{
    struct list_node *n;

    while ((n = list_first(l)) != NULL)
        open_free(LIST_OF(n, struct open, node));
}

static void reap(struct loop_job *job)
{
    struct calls *c = LIST_OF(job, struct calls, reap_job);

    free_all(&c->dead);
    if (!c->n_by_kind[OPEN_EVENTS]) /* nobody is left to tell it to */
        buf_fini(&c->result.text);
}

static struct str key_of(const uint64_t *id)
{
    return (struct str){(const char *)id, sizeof(*id)};
}

static struct open *open_find(const struct calls *c, uint64_t id)
{
    return map_get(&c->by_id, key_of(&id));
}

/* The table's key lies in o->id, so o leaves it before the id does. */
static void leave(struct open *o)
{
    struct calls *c = o->calls;

    map_take(&c->by_id, key_of(&o->id));
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
        task_unlisten(walk_tasks(o->calls->walk), &o->listener);
    if (o->feed.is_reading)
        feed_leave(o->calls->feed, &o->feed.reader);
    if (o->search.id)
        registry_search_cancel(o->calls->registry, o->search.id);
    word_quiet(o);
    o->is_listening = o->feed.is_reading = false;
    o->search.id = 0;
    if (o->commission)
        commission_leave(o->commission);
    o->commission = NULL;
    loop_timer_cancel(o->calls->loop, &o->timer);
}

void open_end(struct open *o)
{
    if (!o->id)
        return;
    open_quiet(o);
    leave(o);
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
    list_append(&o->calls->dead, &o->node);
    loop_at_end(o->calls->loop, &o->calls->reap_job);
    return false;
}

static void keep_sweeping(struct calls *c)
{
    if (!timer_is_set(&c->sweep_timer) &&
        loop_timer_set(c->loop, &c->sweep_timer, SWEEP_MS) != OK)
        log_warn(
            c->log, "calls.no_sweep",
            LOG_C("because", "out of memory; the next request asks again"));
}

struct open *open_new(struct call *call)
{
    struct calls *c = call->calls;
    struct open *o = FAULT("calls.open") ? NULL : calloc(1, sizeof(*o));
    enum err e = ERR_NOMEM;

    if (o) {
        o->calls = c;
        o->id = call->id;
        o->caller = call->caller;
        call_word_missing(call, o->missing);
        o->answers_inputs = str_eq(
            http_header(call->rq, STR("Signalbox-Answers")), STR("input"));
        o->place = throttle_hold(c->throttle, &o->caller);
        e = o->place ? map_put(&c->by_id, key_of(&o->id), o) : ERR_BUSY;
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
    keep_sweeping(c);
    return o;
}

void open_becomes(struct open *o, enum open_kind kind)
{
    o->calls->n_by_kind[o->kind]--;
    o->kind = kind;
    o->calls->n_by_kind[kind]++;
}

/* Asking the store. */

/* How the store puts it is about rows and reading; what a client can make of
 * it is that now is not the moment, or that it is our fault. */
static enum err as_told(enum err e)
{
    if (e == ERR_BUSY)
        return ERR_OVERLOADED;
    return e == ERR_LIMIT ? ERR_INTERNAL : e;
}

static void on_read(struct query *q, void *ctx)
{
    struct open *o = ctx;

    o->asked = NULL;
    if (q->err && q->err != ERR_GONE)
        log_warn(o->calls->log, "calls.not_read",
                 LOG_C("table", q->table->name),
                 LOG_C("because", err_row(q->err)->wording));
    q->err = as_told(q->err);
    if (!open_back(o))
        return;
    if (o->kind == OPEN_ASKING && !access_is_good(o->calls->access, &o->caller,
                                                  loop_wall_ms(o->calls->loop)))
        refuse_to_wait(o, loop_wall_ms(o->calls->loop));
    else
        o->then(o);
}

void open_read(struct open *o, struct query *q, void (*then)(struct open *o))
{
    o->then = then;
    o->asked = q;
    open_out(o);
    store_read(o->calls->store, q, on_read, o);
}

/* How many of these a token has. There are a few of them in all, or the store
 * is at its limit: they are counted where they are. */
static size_t n_of_token(const struct list *all, const struct id *token)
{
    size_t n = 0;

    for (struct list_node *l = list_first(all); l; l = list_next(all, l))
        n += strcmp(LIST_OF(l, struct open, listing)->caller.token_id.text,
                    token->text) == 0;
    return n;
}

/* For the whole of its life: what has begun is not refused half way. */
static bool enter(struct open *o, struct list *all, size_t most,
                  struct str words)
{
    if (n_of_token(all, &o->caller.token_id) >= most) {
        open_refuse(o, ERR_OVERLOADED, words, STR(""));
        return false;
    }
    list_append(all, &o->listing);
    return true;
}

bool open_study(struct open *o)
{
    return enter(o, &o->calls->studies, STUDIES_MAX,
                 STR("four studies of many records are being made for this "
                     "token; wait for one of them"));
}

/* Somebody who closed cannot be told from somebody who only says no more (net),
 * and is owed an answer. But to go on and on for nobody, each time that one
 * turns to another page of the dashboard, would shut out everybody else. */
static bool may_go_on(struct open *o)
{
    if (o->n_pages < PAGES_OWED || !net_is_shut(o->calls->net, o->id))
        return true;
    open_refuse(o, ERR_BAD_REQUEST,
                STR("you closed your side while many records were being read; "
                    "keep the connection open until the answer is there"),
                STR(""));
    return false;
}

void open_list(struct open *o, struct query *q, void (*then)(struct open *o))
{
    bool has_entered = list_has(&o->listing);

    if (has_entered ? !may_go_on(o)
                    : !enter(o, &o->calls->listings, LISTS_MAX,
                             STR("eight lists are being read for this token; "
                                 "wait for one of them")))
        return;
    o->n_pages++;
    open_read(o, q, then);
}

/* Answers. */

void open_answer(struct open *o, int status)
{
    calls_answer(o->calls, o->id, status, SPEAK_JSON);
    open_end(o);
}

void open_refuse(struct open *o, enum err e, struct str message,
                 struct str details)
{
    if (e == ERR_NOT_FOUND && !message.n)
        message = str_of(o->missing);
    calls_refuse(o->calls, o->id, e, message, details);
    open_end(o);
}

/* Streams. */

static void beat_later(struct open *o)
{
    struct calls *c = o->calls;

    if (loop_timer_set(c->loop, &o->timer, c->settings.heartbeat_ms) != OK)
        log_warn(c->log, "calls.no_heartbeat", LOG_C("because", "no memory"));
}

/* Whoever has bytes waiting needs no sign of life, and an event that is half
 * said must not have a comment in it. */
static void on_beat(struct timer *t)
{
    struct open *o = LIST_OF(t, struct open, timer);

    if (!o->is_within &&
        net_stream_send(o->calls->net, o->id, STR(":\n\n")) == ERR_GONE) {
        open_end(o);
        return;
    }
    beat_later(o);
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
    loop_timer_cancel(o->calls->loop, &o->timer);
    o->timer.fire = on_beat;
    if (net_stream_open(o->calls->net, o->id, &r) != OK) {
        open_end(o);
        return false;
    }
    beat_later(o);
    return true;
}

void open_end_stream(struct open *o)
{
    net_stream_end(o->calls->net, o->id);
    open_end(o);
}

/* Nothing is kept for a stream that net has no room for: its place in the
 * events is enough to write them again. Sending nothing asks net whether it
 * would take something, and to say so when it will. */
bool open_has_room(struct open *o)
{
    enum err e = net_stream_send(o->calls->net, o->id, STR(""));

    if (e && e != ERR_BUSY)
        open_end(o);
    return e == OK;
}

bool open_send_bytes(struct open *o, struct str bytes)
{
    enum err e = net_stream_send(o->calls->net, o->id, bytes);

    assert(e != ERR_BUSY); /* there was room */
    if (e)
        open_end(o);
    return e == OK;
}

/* Whoever is answered next, in this turn or a later one, begins with nothing:
 * what is left in the body would be somebody else's. */
bool open_send(struct open *o)
{
    struct calls *c = o->calls;
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

void calls_on_gone(struct calls *c, uint64_t id)
{
    struct open *o = open_find(c, id);

    if (o)
        open_end(o);
}

void calls_on_room(struct calls *c, uint64_t id)
{
    struct open *o = open_find(c, id);

    if (o && o->pump)
        o->pump(o);
}

/* Tokens that are good no more, or allow something else than they did. */

void refuse_to_wait(struct open *o, int64_t now_ms)
{
    bool is_search = o->search.text != NULL;

    if (access_token_is_good(o->calls->access, &o->caller, now_ms))
        open_refuse(o, ERR_NOT_ALLOWED,
                    is_search ? STR("your role or org has changed, so what "
                                    "you may find has too; the token is good: "
                                    "search again")
                              : STR("your role or org has changed, so what was "
                                    "open was closed; the token is good and "
                                    "the task goes on: ask for it again"),
                    STR(""));
    else
        open_refuse(o, ERR_UNAUTHENTICATED,
                    is_search ? STR("the token is good no more")
                              : STR("the token is good no more; the task goes "
                                    "on"),
                    STR(""));
}

/* Who is only asking the store is looked at when what they asked for has been
 * read: that takes no time. A search may wait for somebody else's model. */
static void shut_out(struct open *o, int64_t now_ms)
{
    if (o->kind == OPEN_ASKING && !o->search.id)
        return;
    o->calls->revoked_total++;
    if (o->kind == OPEN_WAITING || o->search.id)
        refuse_to_wait(o, now_ms);
    else
        open_end_stream(o);
}

static void sweep(struct loop_job *job)
{
    struct calls *c = LIST_OF(job, struct calls, sweep_job);
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
            shut_out(o, now_ms);
    }
    if (list_is_empty(&c->open))
        c->n_sweep = 0;
    if (c->n_sweep)
        loop_next_turn(c->loop, &c->sweep_job);
    else if (!list_is_empty(&c->open))
        keep_sweeping(c);
}

static void begin_sweep(struct calls *c)
{
    c->n_sweep = c->by_id.n;
    loop_at_end(c->loop, &c->sweep_job);
}

static void on_sweep_timer(struct timer *t)
{
    begin_sweep(LIST_OF(t, struct calls, sweep_timer));
}

void calls_on_revoked(struct calls *c, const struct id *token_id)
{
    (void)token_id; /* all that are open are looked at, once a turn */
    begin_sweep(c);
}

/* The end. */

void calls_stop(struct calls *c)
{
    struct list_node *n, *next;

    c->is_ready = false;
    for (n = list_first(&c->open); n; n = next) {
        struct open *o = LIST_OF(n, struct open, node);

        next = list_next(&c->open, n);
        if (o->kind == OPEN_WAITING) /* sees that we stop, and says 202 */
            o->timer.fire(&o->timer);
        else if (o->search.id)
            open_refuse(o, ERR_STOPPING, STR(""), STR(""));
        else if (o->kind != OPEN_ASKING)
            open_end_stream(o);
    }
}

void live_init(struct calls *c, const uint64_t seed[2])
{
    buf_init(&c->result.text, ANSWER_BYTES);
    map_init(&c->by_id, c->settings.max_open, seed);
    list_init(&c->open);
    list_init(&c->gone);
    list_init(&c->dead);
    list_init(&c->listings);
    list_init(&c->studies);
    list_init(&c->commissions);
    c->sweep_timer.fire = on_sweep_timer;
    c->sweep_job.run = sweep;
    c->reap_job.run = reap;
}

void live_fini(struct calls *c)
{
    struct list_node *n;

    while ((n = list_first(&c->open)) != NULL)
        open_end(LIST_OF(n, struct open, node));
    loop_timer_cancel(c->loop, &c->sweep_timer);
    loop_not_at_end(&c->sweep_job);
    loop_not_at_end(&c->reap_job);
    commissions_free(&c->commissions);
    free_all(&c->gone);
    free_all(&c->dead);
    buf_fini(&c->result.text);
    map_fini(&c->by_id);
}
