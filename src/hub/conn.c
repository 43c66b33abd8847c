/* The life of a connection.
 *
 * Nothing grows without end: a peer that has as many requests open as it may,
 * or does not read its answers, or speaks more often than it may, is not read
 * from until that has changed. Nothing that was said is thrown away for it.
 * Should answers gather all the same (to what it asked before), it is closed
 * once they are more than HUB_UNSENT_BYTES.
 *
 * Tokens: twice a second, and when one was revoked, all peers are looked at,
 * some thousand in a turn, as calls/ does. */
#include <stdlib.h>

#include "hub/internal.h"

enum { SWEEP_MS = 500, SWEEP_AT_ONCE = 4096 };

static struct str key_of(const uint64_t *id)
{
    return (struct str){(const char *)id, sizeof(*id)};
}

bool peer_is_gone(const struct peer *p)
{
    return (!p->id && !p->child) || p->is_shut;
}

bool peer_is_stuck(const struct peer *p)
{
    return !list_is_empty(&p->unsent);
}

/* Saying. */

static void unsent_free(struct peer *p, struct unsent *u)
{
    list_remove(&u->node);
    p->unsent_bytes -= u->n;
    free(u);
}

static void keep(struct peer *p, struct str message)
{
    struct unsent *u = NULL;

    if (p->unsent_bytes + message.n <= HUB_UNSENT_BYTES || !p->unsent_bytes)
        u = FAULT("hub.unsent") ? NULL : malloc(sizeof(*u) + message.n);
    if (!u) {
        net_ws_close(p->hub->opts.net, p->id, WS_TRY_LATER,
                     STR("too much of what you asked for was not read"));
        return;
    }
    *u = (struct unsent){.n = message.n};
    memcpy(u->bytes, message.p, message.n);
    list_append(&p->unsent, &u->node);
    p->unsent_bytes += u->n;
    peer_pace(p);
}

void peer_send(struct peer *p, struct str message)
{
    struct hub *h = p->hub;

    if (p->child) {
        if (deliver_say(walk_deliver(h->opts.walk), p->child, message) != OK)
            log_info(h->opts.log, "hub.child_not_told");
        return;
    }
    if (!p->id || p->is_shut)
        return;
    if (peer_is_stuck(p) ||
        net_ws_send(h->opts.net, p->id, WS_TEXT, message) == ERR_BUSY)
        keep(p, message);
}

/* Reading, or not. */

void peer_pace(struct peer *p)
{
    bool is_paused = p->is_slowed || peer_is_stuck(p) ||
                     p->n_asks >= p->hub->opts.settings.max_open;

    if (!p->id || is_paused == p->is_paused)
        return;
    p->is_paused = is_paused;
    net_ws_pause(p->hub->opts.net, p->id, is_paused);
}

/* What was said is taken all the same, be it a whole batch; what follows has
 * to wait until that is paid for. Who leaves owes it still: their user waits
 * for it elsewhere. Milliseconds until more can be paid; zero: all is. */
static int64_t pay(struct peer *p)
{
    struct hub *h = p->hub;
    int64_t now_ms = loop_mono_ms(h->opts.loop), wait_ms = 0, user_ms = 0;

    while (p->owed && !wait_ms) {
        wait_ms = rates_take(h->rates, key_of(&p->id),
                             &h->opts.settings.messages, now_ms);
        p->owed -= !wait_ms;
    }
    while (p->owed_user && !user_ms) {
        user_ms = throttle_message(h->opts.throttle, &p->caller, now_ms);
        p->owed_user -= !user_ms;
    }
    return wait_ms > user_ms ? wait_ms : user_ms;
}

static void slow_down(struct peer *p)
{
    int64_t wait_ms = pay(p);

    p->is_slowed =
        wait_ms && loop_timer_set(p->hub->opts.loop, &p->slowed, wait_ms) == OK;
    if (!p->is_slowed) /* or there is no memory to wait with */
        p->owed = p->owed_user = 0;
    peer_pace(p);
}

static void on_slowed(struct timer *t)
{
    struct peer *p = LIST_OF(t, struct peer, slowed);

    slow_down(p);
    if (!p->is_slowed && !p->id)
        peer_reap(p->hub);
}

/* What net tells us. */

static void refuse_message(struct peer *p, enum err e, const struct why *why)
{
    struct reply r = {.peer = p, .is_awaited = true};

    if (e == ERR_SYNTAX)
        reply_bad(&r, WIRE_PARSE_ERROR, str_of(why->text), STR(""));
    else if (e == ERR_BAD_REQUEST)
        reply_bad(&r, WIRE_INVALID_REQUEST, str_of(why->text), STR(""));
    else
        reply_refuse(&r, e, str_of(why->text), STR(""));
}

static void take_batch(struct peer *p, const struct wire_batch *b)
{
    struct gather *g = b->is_array ? gather_new(p) : NULL;

    if (b->is_array && !g) {
        refuse_message(p, ERR_NOMEM, &(struct why){""});
        return;
    }
    for (size_t i = 0; i < b->n; i++)
        hub_dispatch(p, &b->list[i], g);
    if (g)
        gather_read(g);
}

static void on_message(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes)
{
    struct peer *p = ctx;
    struct hub *h = p->hub;
    struct wire_batch b;
    struct why why = {""};
    enum err e;

    (void)id;
    if (peer_is_gone(p))
        return;
    if (kind != WS_TEXT) {
        net_ws_close(h->opts.net, p->id, WS_UNSUPPORTED,
                     STR("messages here are text: JSON-RPC 2.0"));
        return;
    }
    hub_reset(&h->tree);
    e = wire_read(&h->tree, bytes, &b, &why);
    if (e) {
        p->owed++;
        p->owed_user++;
        refuse_message(p, e, &why);
    } else {
        take_batch(p, &b);
    }
    slow_down(p);
    h->stats.rate_limited_total += p->is_slowed;
}

static void on_room(void *ctx, uint64_t id)
{
    struct peer *p = ctx;
    struct hub *h = p->hub;
    struct list_node *n;

    while ((n = list_first(&p->unsent))) {
        struct unsent *u = LIST_OF(n, struct unsent, node);
        enum err e =
            net_ws_send(h->opts.net, id, WS_TEXT, (struct str){u->bytes, u->n});

        if (e == ERR_BUSY)
            return;
        unsent_free(p, u);
    }
    peer_pace(p);
    push_go(p);
    tell_go(p);
    if (p->line && p->id && !peer_is_stuck(p))
        deliver_line_room(walk_deliver(h->opts.walk), p->line);
}

/* The peer's own words about its close are not repeated: they may be anything.
 */
static struct str why_left(const struct peer *p, const struct net_ws_end *end)
{
    if (end->is_ours && !p->is_shut)
        return end->code == WS_POLICY ? STR("it missed its heartbeat")
                                      : end->reason;
    if (end->is_ours)
        return STR("the server closed the connection");
    return end->code == WS_NO_CLOSE ? STR("the connection was lost")
                                    : STR("it closed the connection");
}

static void on_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct peer *p = ctx;

    (void)id;
    if (!p->id)
        return;
    log_info(p->hub->opts.log, "hub.left", LOG_C("user", p->caller.principal),
             LOG_C("agent", p->agent), LOG_I("code", end->code));
    agent_leave(p, why_left(p, end));
    conn_end(p);
}

static const struct net_ws_handler handler = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end};

/* Life and death. */

void peer_init(struct peer *p, struct hub *h)
{
    p->hub = h;
    list_init(&p->asks);
    list_init(&p->unsent);
    list_init(&p->hearings);
    list_init(&p->ready);
    list_init(&p->tellings);
    p->slowed.fire = on_slowed;
}

static struct peer *peer_new(struct hub *h, uint64_t id,
                             const struct caller *caller)
{
    struct peer *p = FAULT("hub.peer") ? NULL : calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    peer_init(p, h);
    p->id = id;
    p->caller = *caller;
    p->place = throttle_hold(h->opts.throttle, caller);
    if (!p->place || map_put(&h->by_id, key_of(&p->id), p) != OK) {
        throttle_release(h->opts.throttle, p->place);
        free(p);
        return NULL;
    }
    list_append(&h->peers, &p->node);
    h->stats.connections++;
    return p;
}

static void end_asks(struct peer *p)
{
    struct list_node *n, *next;

    for (n = list_first(&p->asks); n; n = next) {
        struct ask *a = LIST_OF(n, struct ask, node);

        next = list_next(&p->asks, n);
        if (!a->is_out)
            hub_ask_end(a);
        else if (a->asked)
            store_forget(p->hub->opts.store, a->asked);
    }
}

/* It is not told any more; what is out comes back first. */
void conn_end(struct peer *p)
{
    struct hub *h = p->hub;
    struct list_node *n;

    if (!p->id)
        return;
    map_take(&h->by_id, key_of(&p->id));
    p->id = 0;
    throttle_release(h->opts.throttle, p->place);
    p->place = NULL;
    h->stats.connections--;
    agent_leave(p, STR(""));
    push_end_all(p);
    tell_end_all(p);
    end_asks(p);
    while ((n = list_first(&p->unsent)))
        unsent_free(p, LIST_OF(n, struct unsent, node));
    p->owed = 0; /* its own bucket is nobody's now; its user's is not */
    list_remove(&p->node);
    list_append(&h->gone, &p->node);
    peer_reap(h);
}

/* What others do for it: an answer that it is not given any more must not count
 * as heard. */
static void end_commissions(struct peer *p)
{
    struct list_node *n, *next;

    for (n = list_first(&p->asks); n; n = next) {
        struct ask *a = LIST_OF(n, struct ask, node);

        next = list_next(&p->asks, n);
        if (a->commission && !PLANTED("hub.shut_out_and_heard"))
            hub_ask_end(a);
    }
}

/* Once: whatever comes of this, it is the last word. */
void conn_shut(struct peer *p, uint16_t code, struct str words)
{
    if (!p->id || p->is_shut)
        return;
    p->is_shut = true;
    end_commissions(p);
    net_ws_close(p->hub->opts.net, p->id, code, words);
}

void conn_free(struct peer *p)
{
    tell_end_all(p);
    if (p->child)
        map_take(&p->hub->by_child, key_of(&p->child));
    loop_timer_cancel(p->hub->opts.loop, &p->slowed);
    list_remove(&p->node);
    free(p);
}

enum err hub_take(struct hub *h, uint64_t id, const struct http_request *rq,
                  const struct caller *caller, struct why *why)
{
    struct str protocol = STR("signalbox");
    struct ws_hello hello;
    struct peer *p;
    enum err e;

    if (h->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (!ws_is_asked(rq))
        return why_err(why, ERR_UPGRADE,
                       "/hub speaks WebSocket, version 13, and JSON-RPC 2.0 "
                       "on it: connect with Upgrade: websocket");
    e = ws_hello_read(rq, &hello, why);
    if (e)
        return e;
    if (!ws_offers(rq, protocol))
        protocol = STR("");
    p = peer_new(h, id, caller);
    if (!p)
        return why_err(why, ERR_OVERLOADED, THROTTLE_HELD_WORDS);
    /* Gone already: as good as answered. */
    if (net_ws_accept(h->opts.net, id, &hello, protocol, &handler, p) != OK)
        conn_end(p);
    return OK;
}

/* Tokens that are good no more. */

static void shut_out(struct peer *p, int64_t now_ms)
{
    bool is_good =
        access_token_is_good(p->hub->opts.access, &p->caller, now_ms);

    /* No more work from here on, whenever it says goodbye. */
    agent_leave(p, is_good ? STR("its user's role or org has changed")
                           : STR("its token is no longer valid"));
    push_end_all(p);
    conn_shut(p, WS_POLICY,
              is_good ? STR("your role or org has changed; connect again")
                      : STR("the token is good no more"));
}

static void sweep(struct loop_job *job)
{
    struct hub *h = LIST_OF(job, struct hub, sweep_job);
    int64_t now_ms = loop_wall_ms(h->opts.loop);

    for (size_t i = 0; i < SWEEP_AT_ONCE && h->n_sweep; i++, h->n_sweep--) {
        struct list_node *n = list_pop(&h->peers);
        struct peer *p;

        if (!n) {
            h->n_sweep = 0;
            break;
        }
        list_append(&h->peers, n);
        p = LIST_OF(n, struct peer, node);
        if (!p->is_shut && !access_is_good(h->opts.access, &p->caller, now_ms))
            shut_out(p, now_ms);
    }
    if (h->n_sweep)
        loop_next_turn(h->opts.loop, &h->sweep_job);
}

static void begin_sweep(struct hub *h)
{
    h->n_sweep = h->by_id.n;
    loop_at_end(h->opts.loop, &h->sweep_job);
}

static void on_sweep_timer(struct timer *t)
{
    struct hub *h = LIST_OF(t, struct hub, sweep_timer);

    begin_sweep(h);
    conn_sweep_soon(h);
}

void conn_sweep_soon(struct hub *h)
{
    h->sweep_timer.fire = on_sweep_timer;
    h->sweep_job.run = sweep;
    if (loop_timer_set(h->opts.loop, &h->sweep_timer, SWEEP_MS) != OK)
        log_warn(h->opts.log, "hub.no_sweep",
                 LOG_C("because", "out of memory; what is revoked is still "
                                  "closed"));
}

void hub_on_revoked(struct hub *h, const struct id *token_id)
{
    (void)token_id;
    begin_sweep(h);
}

void conn_stop(struct hub *h)
{
    struct list_node *n;

    loop_timer_cancel(h->opts.loop, &h->sweep_timer);
    loop_not_at_end(&h->sweep_job);
    while ((n = list_first(&h->peers)))
        conn_end(LIST_OF(n, struct peer, node));
    while ((n = list_pop(&h->children)))
        list_append(&h->gone, n);
    while ((n = list_first(&h->gone))) {
        struct peer *p = LIST_OF(n, struct peer, node);

        /* What is out will not come back: the store has closed. */
        while ((n = list_first(&p->asks))) {
            struct ask *a = LIST_OF(n, struct ask, node);

            a->is_out = false;
            hub_ask_end(a);
        }
        conn_free(p);
    }
}
