/* The life of a connection.
 *
 * Everything is bounded: a peer that has its limit of open requests, does not
 * read its answers, or exceeds a rate is not read from until that changes. No
 * received message is thrown away for it. If answers to earlier requests gather
 * all the same, the connection is closed once they exceed HUB_UNSENT_BYTES.
 *
 * Tokens: twice a second, and when one was revoked, all peers are checked,
 * SWEEP_AT_ONCE in a turn, as api/request_http.c does. */
#include <stdlib.h>

#include "api/hub/internal.h"

enum { SWEEP_MS = 500, SWEEP_AT_ONCE = 4096 };

static struct str peer_key(const uint64_t *id)
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

/* Sending. */

static void unsent_free(struct peer *p, struct unsent *u)
{
    list_remove(&u->node);
    p->unsent_bytes -= u->n;
    free(u);
}

static void peer_keep_unsent(struct peer *p, struct str message)
{
    struct unsent *u = NULL;

    if (p->unsent_bytes + message.n <= HUB_UNSENT_BYTES || !p->unsent_bytes)
        u = FAULT("hub.unsent") ? NULL : malloc(sizeof(*u) + message.n);
    if (!u) {
        net_ws_close(p->hub->api->net, p->id, WS_TRY_LATER,
                     STR("too many answers were not read"));
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
        if (deliver_say(walk_deliver(h->api->walk), p->child, message) != OK)
            log_info(h->api->log, "hub.child_not_told");
        return;
    }
    if (!p->id || p->is_shut)
        return;
    if (peer_is_stuck(p) ||
        net_ws_send(h->api->net, p->id, WS_TEXT, message) == ERR_BUSY)
        peer_keep_unsent(p, message);
}

/* Reading. */

void peer_pace(struct peer *p)
{
    bool is_paused = p->is_slowed || peer_is_stuck(p) ||
                     p->n_requests >= p->hub->settings.max_open;

    if (!p->id || is_paused == p->is_paused)
        return;
    p->is_paused = is_paused;
    net_ws_pause(p->hub->api->net, p->id, is_paused);
}

/* A message, or a whole batch, is accepted even if it exceeds a rate; the next
 * one waits until it is paid for. A peer that leaves still owes it, and its
 * user waits on other connections. Returns the milliseconds until more can be
 * paid; zero: all is. */
static int64_t peer_pay(struct peer *p)
{
    struct hub *h = p->hub;
    int64_t now_ms = loop_mono_ms(h->api->loop), wait_ms = 0, user_ms = 0;

    while (p->owed && !wait_ms) {
        wait_ms = rates_take(h->rates, peer_key(&p->id), &h->settings.messages,
                             now_ms);
        p->owed -= !wait_ms;
    }
    while (p->owed_user && !user_ms) {
        user_ms = throttle_message(h->api->throttle, &p->caller, now_ms);
        p->owed_user -= !user_ms;
    }
    return wait_ms > user_ms ? wait_ms : user_ms;
}

static void peer_slow_down(struct peer *p)
{
    int64_t wait_ms = peer_pay(p);

    p->is_slowed = wait_ms > 0;
    if (p->is_slowed)
        loop_timer_set(p->hub->api->loop, &p->slowed, wait_ms);
    peer_pace(p);
}

static void on_peer_slowed(struct timer *t)
{
    struct peer *p = LIST_OF(t, struct peer, slowed);

    peer_slow_down(p);
    if (!p->is_slowed && !p->id)
        peer_reap(p->hub);
}

/* Callbacks of net. */

static void peer_refuse_message(struct peer *p, enum err e,
                                const struct why *why)
{
    struct reply r = {.peer = p, .is_awaited = true};

    if (e == ERR_SYNTAX)
        reply_bad(&r, WIRE_PARSE_ERROR, str_of(why->text), STR(""));
    else if (e == ERR_BAD_REQUEST)
        reply_bad(&r, WIRE_INVALID_REQUEST, str_of(why->text), STR(""));
    else
        reply_refuse(&r, e, str_of(why->text), STR(""));
}

static void on_peer_message(void *ctx, uint64_t id, enum ws_kind kind,
                            struct str bytes)
{
    struct peer *p = ctx;
    struct hub *h = p->hub;
    struct gather *g;
    struct wire_batch b;
    struct why why = {""};
    enum err e;

    (void)id;
    if (peer_is_gone(p))
        return;
    if (kind != WS_TEXT) {
        net_ws_close(h->api->net, p->id, WS_UNSUPPORTED,
                     STR("messages must be text: JSON-RPC 2.0"));
        return;
    }
    hub_reset(&h->tree);
    e = wire_read(&h->tree, bytes, &b, &why);
    if (e) {
        p->owed++;
        p->owed_user++;
        peer_refuse_message(p, e, &why);
    } else {
        g = b.is_array ? gather_new(p) : NULL;
        for (size_t i = 0; i < b.n; i++)
            hub_dispatch(p, &b.list[i], g);
        if (g)
            gather_read(g);
    }
    peer_slow_down(p);
    h->stats.rate_limited_total += p->is_slowed;
}

static void on_peer_space(void *ctx, uint64_t id)
{
    struct peer *p = ctx;
    struct hub *h = p->hub;
    struct list_node *n;

    while ((n = list_first(&p->unsent))) {
        struct unsent *u = LIST_OF(n, struct unsent, node);
        enum err e =
            net_ws_send(h->api->net, id, WS_TEXT, (struct str){u->bytes, u->n});

        if (e == ERR_BUSY)
            return;
        unsent_free(p, u);
    }
    peer_pace(p);
    push_go(p);
    tell_go(p);
    if (p->line && p->id && !peer_is_stuck(p))
        deliver_line_room(walk_deliver(h->api->walk), p->line);
}

/* The peer's own reason for its close is not repeated: it may contain
 * anything. */
static struct str peer_close_reason(const struct peer *p,
                                    const struct net_ws_end *end)
{
    if (end->is_ours && !p->is_shut)
        return end->code == WS_POLICY ? STR("it missed its heartbeat")
                                      : end->reason;
    if (end->is_ours)
        return STR("the server closed the connection");
    return end->code == WS_NO_CLOSE ? STR("the connection was lost")
                                    : STR("it closed the connection");
}

static void on_peer_end(void *ctx, uint64_t id, const struct net_ws_end *end)
{
    struct peer *p = ctx;

    (void)id;
    if (!p->id)
        return;
    log_info(p->hub->api->log, "hub.left", LOG_C("user", p->caller.principal),
             LOG_C("agent", p->agent), LOG_I("code", end->code));
    agent_leave(p, peer_close_reason(p, end));
    peer_end(p);
}

static const struct net_ws_handler handler = {.on_message = on_peer_message,
                                              .on_room = on_peer_space,
                                              .on_end = on_peer_end};

/* Life. */

void peer_init(struct peer *p, struct hub *h)
{
    p->hub = h;
    list_init(&p->requests);
    list_init(&p->unsent);
    list_init(&p->hearings);
    list_init(&p->ready);
    list_init(&p->tellings);
    p->slowed.fire = on_peer_slowed;
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
    p->place = throttle_hold(h->api->throttle, caller);
    if (!p->place || map_put(&h->by_id, peer_key(&p->id), p) != OK) {
        throttle_release(h->api->throttle, p->place);
        free(p);
        return NULL;
    }
    list_append(&h->peers, &p->node);
    h->stats.connections++;
    return p;
}

static void peer_end_requests(struct peer *p)
{
    struct list_node *n, *next;

    for (n = list_first(&p->requests); n; n = next) {
        struct request *o = LIST_OF(n, struct request, node);

        next = list_next(&p->requests, n);
        if (!o->is_out)
            request_end(o);
        else if (o->asked)
            store_forget(o->api->store, o->asked);
    }
}

/* The peer is not sent anything any more. It is freed when the store and the
 * walk have given its requests back. */
void peer_end(struct peer *p)
{
    struct hub *h = p->hub;
    struct list_node *n;

    if (!p->id)
        return;
    map_take(&h->by_id, peer_key(&p->id));
    p->id = 0;
    throttle_release(h->api->throttle, p->place);
    p->place = NULL;
    h->stats.connections--;
    agent_leave(p, STR(""));
    push_end_all(p);
    tell_end_all(p);
    peer_end_requests(p);
    while ((n = list_first(&p->unsent)))
        unsent_free(p, LIST_OF(n, struct unsent, node));
    p->owed = 0; /* its own rate limit is gone, its user's is not */
    list_remove(&p->node);
    list_append(&h->gone, &p->node);
    peer_reap(h);
}

/* Leave its delegation requests: an answer that cannot be sent must not count
 * as acknowledged. */
static void peer_end_delegation_requests(struct peer *p)
{
    struct list_node *n, *next;

    for (n = list_first(&p->requests); n; n = next) {
        struct request *o = LIST_OF(n, struct request, node);

        next = list_next(&p->requests, n);
        if (delegation_request_of(o) && !PLANTED("hub.shut_out_and_heard"))
            request_end(o);
    }
}

/* Only the first close counts. */
void peer_shut(struct peer *p, uint16_t code, struct str words)
{
    if (!p->id || p->is_shut)
        return;
    p->is_shut = true;
    peer_end_delegation_requests(p);
    net_ws_close(p->hub->api->net, p->id, code, words);
}

void peer_free(struct peer *p)
{
    tell_end_all(p);
    if (p->child)
        map_take(&p->hub->by_child, peer_key(&p->child));
    loop_timer_cancel(p->hub->api->loop, &p->slowed);
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
                       "/hub needs a WebSocket, version 13, with JSON-RPC 2.0: "
                       "connect with Upgrade: websocket");
    e = ws_hello_read(rq, &hello, why);
    if (e)
        return e;
    if (!ws_offers(rq, protocol))
        protocol = STR("");
    p = peer_new(h, id, caller);
    if (!p)
        return why_err(why, ERR_OVERLOADED, THROTTLE_HELD_WORDS);
    /* If it has gone already, that counts as answered. */
    if (net_ws_accept(h->api->net, id, &hello, protocol, &handler, p) != OK)
        peer_end(p);
    return OK;
}

/* Revoked and expired tokens. */

static void peer_shut_out(struct peer *p, int64_t now_ms)
{
    bool is_good =
        access_token_is_good(p->hub->api->access, &p->caller, now_ms);

    /* No more work from now on, whenever the close is complete. */
    agent_leave(p, is_good ? STR("its user's role or org has changed")
                           : STR("its token is no longer valid"));
    push_end_all(p);
    peer_shut(p, WS_POLICY,
              is_good ? STR("your role or org has changed; connect again")
                      : STR("the token is no longer valid"));
}

static void peer_sweep(struct loop_job *job)
{
    struct hub *h = LIST_OF(job, struct hub, sweep_job);
    int64_t now_ms = loop_wall_ms(h->api->loop);

    for (size_t i = 0; i < SWEEP_AT_ONCE && h->n_sweep; i++, h->n_sweep--) {
        struct list_node *n = list_pop(&h->peers);
        struct peer *p;

        if (!n) {
            h->n_sweep = 0;
            break;
        }
        list_append(&h->peers, n);
        p = LIST_OF(n, struct peer, node);
        if (!p->is_shut && !access_is_good(h->api->access, &p->caller, now_ms))
            peer_shut_out(p, now_ms);
    }
    if (h->n_sweep)
        loop_next_turn(h->api->loop, &h->sweep_job);
}

static void peer_sweep_begin(struct hub *h)
{
    h->n_sweep = h->by_id.n;
    loop_at_end(h->api->loop, &h->sweep_job);
}

static void on_peer_sweep_timer(struct timer *t)
{
    struct hub *h = LIST_OF(t, struct hub, sweep_timer);

    peer_sweep_begin(h);
    peer_sweep_soon(h);
}

void peer_sweep_soon(struct hub *h)
{
    h->sweep_timer.fire = on_peer_sweep_timer;
    h->sweep_job.run = peer_sweep;
    loop_timer_set(h->api->loop, &h->sweep_timer, SWEEP_MS);
}

void hub_on_revoked(struct hub *h, const struct id *token_id)
{
    (void)token_id;
    peer_sweep_begin(h);
}

void peers_stop(struct hub *h)
{
    struct list_node *n;

    loop_timer_cancel(h->api->loop, &h->sweep_timer);
    loop_not_at_end(&h->sweep_job);
    while ((n = list_first(&h->peers)))
        peer_end(LIST_OF(n, struct peer, node));
    while ((n = list_pop(&h->children)))
        list_append(&h->gone, n);
    while ((n = list_first(&h->gone))) {
        struct peer *p = LIST_OF(n, struct peer, node);

        /* The store has closed and will not give anything back. */
        while ((n = list_first(&p->requests))) {
            struct request *o = LIST_OF(n, struct request, node);

            o->is_out = false;
            request_end(o);
        }
        peer_free(p);
    }
}
