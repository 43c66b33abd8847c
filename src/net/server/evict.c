/* The connection to close when all are taken.
 *
 * A connection costs its client nothing, so many silent ones must not keep
 * others out. If there is no room for a new one, one of these is closed:
 *
 *     silent   no whole request has come yet, or only a part of the next one,
 *              or it has had its last reply: the oldest first
 *     idle     its requests are answered: the one that waits longest
 *
 * A connection with an open request, a stream or a WebSocket stays. If all are
 * such, a few more are accepted as guests: they get an answer to a request
 * that must always have one (net_handler.is_vital: health checks), and a
 * refusal otherwise. The oldest guest without a request makes room for the
 * next.
 *
 * Among the first few in a list, one with nothing in transit is preferred:
 * closing it loses nothing. A connection that was accepted just now, and whose
 * bytes could not be read yet, stays. */
#include "net/server/internal.h"

#include <sys/ioctl.h>

#include "base/fault.h"

enum { LOOKED_AT = 8 };

static struct list *queue_of(struct conn *c)
{
    bool waits = c->state == CONN_TLS || c->state == CONN_IDLE ||
                 c->state == CONN_HEAD || c->state == CONN_BODY ||
                 (c->state == CONN_LINGER && !c->is_away);

    if (!waits || c->is_dialled)
        return NULL;
    if (c->is_away)
        return c->is_guest ? &c->net->guests : NULL;
    return c->state == CONN_IDLE && c->has_asked ? &c->net->idle
                                                 : &c->net->silent;
}

void evict_place(struct conn *c)
{
    struct list *to = queue_of(c);

    if (to == c->queue)
        return;
    if (c->queue)
        list_remove(&c->waits);
    c->net->n_guests += to == &c->net->guests;
    c->net->n_guests -= c->queue == &c->net->guests;
    c->queue = to;
    c->placed_turn = loop_turn_number(c->net->loop);
    if (to)
        list_append(to, &c->waits);
}

static bool has_nothing_on_its_way(const struct conn *c)
{
    int n_unread = 0;

    return conn_unsent_bytes(c) == 0 &&
           ioctl(c->fd, FIONREAD, &n_unread) == 0 && n_unread == 0;
}

static struct conn *pick(const struct net *n, const struct list *queue)
{
    struct list_node *at = list_first(queue);
    struct conn *first = at ? LIST_OF(at, struct conn, waits) : NULL;

    for (int i = 0; i < LOOKED_AT && at; i++, at = list_next(queue, at))
        if (has_nothing_on_its_way(LIST_OF(at, struct conn, waits)))
            return LIST_OF(at, struct conn, waits);
    return first && first->placed_turn + 1 < loop_turn_number(n->loop) ? first
                                                                       : NULL;
}

bool evict_one(struct net *n)
{
    struct conn *c = pick(n, &n->silent);

    if (!c)
        c = pick(n, &n->idle);
    if (!c || PLANTED("net.no_eviction"))
        return false;
    n->stats.evicted_total++;
    n->n_evicted++;
    c->is_evicted = true;
    log_debug(n->log, "net.evicted", LOG_C("peer", c->peer),
              LOG_C("because", c->has_asked ? "it was idle" : "it was silent"));
    conn_cut(c);
    return true;
}

/* Closed at once if too many linger. */
void evict_guest(struct net *n)
{
    struct conn *c = LIST_OF(list_first(&n->guests), struct conn, waits);

    if (c->state != CONN_TLS) {
        serve_turn_away(c);
        if (c->state == CONN_CLOSED ||
            n->n_away - n->n_guests <= AWAY_MAX - GUESTS_MAX)
            return;
        conn_flush(c);
    }
    conn_cut(c);
}

bool evict_check(const struct net *n)
{
    size_t n_guests = 0, n_evicted = 0;

    for (uint32_t i = 0; i < n->n_slots; i++) {
        struct conn *c = n->slots[i].c;

        if (!c)
            continue;
        if (c->queue != queue_of(c) ||
            list_has(&c->waits) != (c->queue != NULL))
            return false;
        n_guests += c->queue == &n->guests;
        n_evicted += c->is_evicted;
    }
    return n_guests == n->n_guests && n_evicted == n->n_evicted;
}
