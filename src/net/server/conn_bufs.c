/* The buffers of a connection: input that cannot be used yet, and unsent
 * output; their sizes, of each connection and of all together; and the
 * consequences for who may go on. No sockets here. */
#include "net/server/internal.h"

/* Buffers are reused: a reply needs one for a moment only. */
static void buf_lend(struct net *n, struct buf *b)
{
    if (!b->p && n->n_spares) {
        struct spare *s = &n->spares[--n->n_spares];

        b->p = s->p;
        b->cap = s->cap;
    }
}

static void buf_give_back(struct net *n, struct buf *b)
{
    if (b->p && b->cap <= SPARE_BUF_BYTES && n->n_spares < SPARE_BUFS) {
        n->spares[n->n_spares++] = (struct spare){b->p, b->cap};
        buf_init(b, b->limit);
    } else {
        buf_fini(b);
    }
}

size_t conn_held_bytes(const struct conn *c)
{
    return c->in.cap + c->out.cap + c->also.cap + c->tls_held_bytes;
}

size_t conn_unsent_bytes(const struct conn *c)
{
    return c->out.n - c->out_at;
}

bool conn_must_read_first(const struct conn *c)
{
    size_t unsent = conn_unsent_bytes(c);

    return unsent > c->net->opts.max_unsent_bytes ||
           (unsent && net_is_full(c->net));
}

bool conn_gives_room(struct conn *c)
{
    struct net *n = c->net;

    if (!c->wants_room || conn_must_read_first(c) ||
        conn_unsent_bytes(c) > n->opts.max_unsent_bytes / 2)
        return false;
    if (c->room_turn == loop_turn_number(n->loop)) {
        conn_kick_next_turn(c);
        return false;
    }
    c->room_turn = loop_turn_number(n->loop);
    c->wants_room = false;
    return true;
}

bool conn_has_taken(const struct conn *c, uint32_t n)
{
    return c->turn == loop_turn_number(c->net->loop) && c->n_taken >= n;
}

void conn_note_taken(struct conn *c)
{
    uint64_t turn = loop_turn_number(c->net->loop);

    c->n_taken = c->turn == turn ? c->n_taken + 1 : 1;
    c->turn = turn;
}

/* The only place that changes the counters over all connections. */
void conn_count(struct conn *c)
{
    struct net *n = c->net;
    size_t held = conn_held_bytes(c), unsent = conn_unsent_bytes(c);

    n->held_bytes += held - c->counted_held_bytes;
    n->unsent_bytes += unsent - c->counted_unsent_bytes;
    c->counted_held_bytes = held;
    c->counted_unsent_bytes = unsent;
}

bool conn_reserve(struct conn *c, size_t n)
{
    bool ok;

    buf_lend(c->net, &c->out);
    if (!c->out.p && n < FRESH_BUF_BYTES)
        n = FRESH_BUF_BYTES;
    ok = n == 0 || buf_reserve(&c->out, n) != NULL;
    conn_count(c);
    return ok;
}

bool conn_keep_input(struct conn *c, const char *p, size_t n)
{
    size_t limit = c->speech->max_input(c);

    if (c->in.n == 0)
        buf_clear(&c->in);
    if (c->in.n == 0 || c->in.limit < limit) /* it was raised */
        c->in.limit = limit;
    buf_lend(c->net, &c->in);
    buf_add(&c->in, p, n);
    c->net->unchecked_bytes += n;
    conn_count(c);
    return !c->in.over;
}

void conn_drop_input(struct conn *c, size_t n)
{
    buf_drop(&c->in, n);
    if (c->in.n == 0)
        buf_give_back(c->net, &c->in);
    else if (c->in.cap > SPARE_BUF_BYTES && c->in.n <= c->in.cap / 4)
        buf_shrink(&c->in); /* a large body was consumed */
    conn_count(c);
}

/* The rest moves to the front once it is the smaller part, so that each byte
 * moves at most once. */
static void conn_move_output(struct conn *c)
{
    if (c->out_at < c->out.n - c->out_at)
        return;
    buf_drop(&c->out, c->out_at);
    c->out_at = 0;
    if (c->out.n == 0)
        buf_give_back(c->net, &c->out);
    else if (c->out.cap > SPARE_BUF_BYTES && c->out.n <= c->out.cap / 4)
        buf_shrink(&c->out);
}

void conn_drop_output(struct conn *c, size_t n)
{
    c->out_at += n;
    conn_move_output(c);
    conn_count(c);
}

void conn_drop_buffers(struct conn *c)
{
    buf_give_back(c->net, &c->in);
    buf_give_back(c->net, &c->out);
    buf_fini(&c->also);
    c->out_at = 0;
    conn_count(c);
}
