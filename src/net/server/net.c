/* Options, the table of connections, and stopping.
 *
 * A request's id is a running number and the slot of its connection in the
 * table. The connection remembers the id of its open request, so an old id, of
 * an answered request or of a client that left, finds another number in the
 * slot, or an empty slot. The running number has 40 bits: at 100 000 requests
 * a second it repeats after four months, and would then have to meet the same
 * slot and an owner that still holds the old id. */
#include "net/server/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { NO_SLOT = (1 << SLOT_BITS) - 1, FIRST_SLOTS = 64 };

static bool net_is_empty(const struct net *n)
{
    return n->n_conns == 0 && n->n_listeners == 0 && n->n_errands == 0;
}

static void cut_all(struct net *n)
{
    for (uint32_t i = 0; i < n->n_slots; i++)
        if (n->slots[i].c)
            conn_cut_for(n->slots[i].c, CUT_STOP);
}

static void on_grace_over(struct timer *t)
{
    cut_all(LIST_OF(t, struct net, grace));
}

/* All connections are closed, or without a timer for the grace they must be.
 * done is called once; n may be freed in it. */
static void on_net_stopped(struct loop_job *job)
{
    struct net *n = LIST_OF(job, struct net, done_job);
    void (*done)(void *ctx) = n->done;

    if (!net_is_empty(n)) {
        cut_all(n);
        return;
    }
    n->done = NULL;
    if (done)
        done(n->done_ctx);
}

struct net *net_new(struct loop *loop, struct log *log,
                    const struct net_opts *opts,
                    const struct net_handler *handler)
{
    struct net *n = mem_new(sizeof(*n));

    n->loop = loop;
    n->log = log;
    n->on = *handler;
    n->first_free = NO_SLOT;
    n->grace.fire = on_grace_over;
    n->done_job.run = on_net_stopped;
    n->getaddrinfo = uv_getaddrinfo;
    n->masks_at = MASK_POOL_BYTES;
    list_init(&n->listeners);
    list_init(&n->shakes);
    list_init(&n->silent);
    list_init(&n->idle);
    list_init(&n->guests);
    list_init(&n->cas);
    n->max_shakes = TLS_SHAKES_MAX;
    shares_init(&n->crowds, sizeof(struct share), NO_SLOT, opts->seed);
    net_set_opts(n, opts);
    return n;
}

void net_set_opts(struct net *n, const struct net_opts *opts)
{
    n->opts = *opts;
    snprintf(n->keep_alive, sizeof(n->keep_alive),
             "Connection: keep-alive\r\nKeep-Alive: timeout=%lld\r\n",
             (long long)(opts->idle_timeout_ms / 1000));
}

const char *net_url(const struct net *n)
{
    return n->url;
}

const char *net_tls_url(const struct net *n)
{
    return n->tls_url;
}

const char *net_side_url(const struct net *n)
{
    return n->side_url;
}

/* The table of connections. */

static enum err net_grow_slots(struct net *n)
{
    uint32_t cap = n->n_slots ? n->n_slots * 2 : FIRST_SLOTS;
    struct slot *slots;

    if (cap > NO_SLOT)
        cap = NO_SLOT;
    if (cap == n->n_slots)
        return ERR_LIMIT;
    slots =
        FAULT("net.slots") ? NULL : reallocarray(n->slots, cap, sizeof(*slots));
    if (!slots)
        return ERR_NOMEM;
    n->slots = slots;
    for (uint32_t i = cap; i-- > n->n_slots;) {
        slots[i] = (struct slot){NULL, n->first_free};
        n->first_free = i;
    }
    n->n_slots = cap;
    return OK;
}

enum err net_slot_take(struct net *n, struct conn *c)
{
    if (n->first_free == NO_SLOT) {
        enum err e = net_grow_slots(n);

        if (e)
            return e;
    }
    c->slot = n->first_free;
    n->first_free = n->slots[c->slot].next_free;
    n->slots[c->slot].c = c;
    return OK;
}

void net_slot_give(struct net *n, struct conn *c)
{
    n->slots[c->slot] = (struct slot){NULL, n->first_free};
    n->first_free = c->slot;
}

uint64_t net_next_id(struct net *n, const struct conn *c)
{
    n->n_ids++;
    if (n->n_ids << SLOT_BITS == 0)
        n->n_ids++; /* zero is invalid */
    return n->n_ids << SLOT_BITS | c->slot;
}

struct conn *net_find(const struct net *n, uint64_t id)
{
    uint64_t slot = id & NO_SLOT;

    if (id == 0 || slot >= n->n_slots || !n->slots[slot].c ||
        n->slots[slot].c->id != id)
        return NULL;
    return n->slots[slot].c;
}

bool net_is_shut(const struct net *n, uint64_t id)
{
    const struct conn *c = net_find(n, id);

    return c && c->has_eof;
}

/* Memory is measured once a turn, and again after a few megabytes of input. */
bool net_is_short(struct net *n)
{
    enum net_memory before = n->memory;
    uint64_t turn = loop_turn_number(n->loop) + 1;

    if (!n->on.memory || PLANTED("net.ignores_memory"))
        return false;
    if (n->memory_turn == turn && n->unchecked_bytes < MEMORY_STEP_BYTES)
        return n->memory != NET_MEMORY_OK;
    n->memory_turn = turn;
    n->unchecked_bytes = 0;
    n->memory = n->on.memory(n->on.ctx);
    if (before == NET_MEMORY_OK && n->memory != NET_MEMORY_OK)
        log_warn(n->log, "net.memory_short",
                 LOG_C("because", "little memory is left; requests with a body "
                                  "are refused"),
                 LOG_I("connections", (int64_t)n->n_conns));
    else if (before != NET_MEMORY_OK && n->memory == NET_MEMORY_OK)
        log_info(n->log, "net.memory_enough",
                 LOG_I("connections", (int64_t)n->n_conns));
    return n->memory != NET_MEMORY_OK;
}

/* Stopping. */

void net_check_stopped(struct net *n)
{
    if (n->is_stopping && net_is_empty(n) && n->done) {
        loop_timer_cancel(n->loop, &n->grace);
        loop_at_end(n->loop, &n->done_job);
    }
}

/* A connection between two requests need not wait for another, and no request
 * behind unread replies is started. */
static void net_let_go(struct conn *c)
{
    if (c->state == CONN_WS)
        ws_say_close(c, WS_GOING_AWAY, STR("the server is stopping"));
    else if (c->is_dialled && c->ws.dial)
        conn_lose(c, CUT_STOP);
    if (c->is_dialled || (c->state != CONN_IDLE && c->state != CONN_TLS))
        return;
    if (c->state == CONN_TLS || conn_is_quiet(c))
        conn_cut(c);
    else
        conn_drain(c);
}

void net_stop(struct net *n, int64_t grace_ms, void (*done)(void *ctx),
              void *ctx)
{
    if (!n->is_stopping) {
        n->is_stopping = true;
        n->done = done;
        n->done_ctx = ctx;
        listen_close_all(n);
        for (uint32_t i = 0; i < n->n_slots; i++)
            if (n->slots[i].c)
                net_let_go(n->slots[i].c);
    }
    /* Cutting calls the owner, which must not happen inside its own call. */
    loop_timer_set(n->loop, &n->grace, grace_ms > 0 ? grace_ms : 0);
    net_check_stopped(n);
}

void net_free(struct net *n)
{
    if (!n)
        return;
    assert(net_is_empty(n));
    loop_timer_cancel(n->loop, &n->grace);
    loop_not_at_end(&n->done_job);
    while (n->n_spares)
        free(n->spares[--n->n_spares].p);
    assert(n->crowds.by_key.n == 0);
    shares_fini(&n->crowds);
    cert_free_all(n);
    tls_fini(n);
    free(n->slots);
    free(n->headers);
    free(n);
}

struct net_stats net_stats(const struct net *n)
{
    struct net_stats s = n->stats;

    s.connections = (int64_t)n->n_conns;
    s.unsent_bytes = (int64_t)n->unsent_bytes;
    s.buffered_bytes = (int64_t)n->held_bytes;
    s.tls_cert_ends_s = cert_ends_s(n);
    return s;
}

bool net_check(const struct net *n)
{
    size_t held = 0, unsent = 0, crowded = 0, shaking = 0;

    for (uint32_t i = 0; i < n->n_slots; i++)
        if (n->slots[i].c) {
            held += conn_held_bytes(n->slots[i].c);
            unsent += conn_unsent_bytes(n->slots[i].c);
            crowded += n->slots[i].c->crowd != NULL;
            shaking += list_has(&n->slots[i].c->shake);
        }
    return held == n->held_bytes && unsent == n->unsent_bytes &&
           shaking == n->n_shakes && shaking <= n->max_shakes &&
           shares_check(&n->crowds, crowded) && evict_check(n);
}
