/* Answers, single or as the array that answers a batch. They are written into
 * one buffer of the hub and sent at once; what net cannot take, the peer
 * keeps. */
#include <stdlib.h>

#include "api/hub/internal.h"
#include "base/mem.h"

void hub_clear(struct buf *b)
{
    size_t limit = b->limit;

    if (b->cap > HUB_KEEP_BYTES) {
        buf_fini(b);
        buf_init(b, limit);
    }
    buf_clear(b);
}

void hub_reset(struct arena *a)
{
    size_t cap = a->cap;

    if (a->used > HUB_KEEP_BYTES) {
        arena_fini(a);
        arena_init(a, cap);
    }
    arena_reset(a);
}

/* Batches. */

struct gather *gather_new(struct peer *p)
{
    struct gather *g = mem_new(sizeof(*g));

    g->peer = p;
    g->is_being_read = true;
    buf_init(&g->out, HUB_ANSWER_BYTES);
    return g;
}

static void gather_check(struct gather *g)
{
    if (g->n_open || g->is_being_read)
        return;
    if (g->out.over) {
        log_warn(g->peer->hub->api->log, "hub.batch_too_large");
        if (g->peer->id)
            net_ws_close(g->peer->hub->api->net, g->peer->id, WS_TRY_LATER,
                         STR("the answer to a batch is too large"));
    } else if (g->out.n) {
        buf_add_char(&g->out, ']');
        peer_send(g->peer, buf_str(&g->out));
    }
    push_after(g);
    tell_after(g);
    buf_fini(&g->out);
    free(g);
}

void gather_read(struct gather *g)
{
    g->is_being_read = false;
    gather_check(g);
}

void gather_less(struct gather *g)
{
    g->n_open--;
    gather_check(g);
}

/* Single answers. */

static void reply_flush(const struct reply *r)
{
    struct buf *out = &r->peer->hub->out;

    if (r->is_awaited && r->gather) {
        buf_add_char(&r->gather->out, r->gather->out.n ? ',' : '[');
        buf_add_str(&r->gather->out, buf_str(out));
    } else if (r->is_awaited) {
        peer_send(r->peer, buf_str(out));
    }
    hub_clear(out);
}

struct json_out reply_open(const struct reply *r)
{
    hub_clear(&r->peer->hub->out);
    return wire_result_open(&r->peer->hub->out, &r->id);
}

void reply_close(const struct reply *r)
{
    struct json_out o = json_out(&r->peer->hub->out);

    wire_close(&o);
    if (o.out->over)
        reply_refuse(r, ERR_NOMEM, STR(""), STR(""));
    else
        reply_flush(r);
}

void reply_bad(const struct reply *r, enum wire_code code, struct str words,
               struct str data)
{
    struct hub *h = r->peer->hub;

    h->stats.errors_total++;
    hub_clear(&h->out);
    wire_error_of(&h->out, &r->id, code, words, data);
    if (h->out.over) /* not even the error fits: no answer */
        hub_clear(&h->out);
    else
        reply_flush(r);
}

void reply_refuse(const struct reply *r, enum err e, struct str words,
                  struct str details)
{
    struct hub *h = r->peer->hub;
    struct buf *out = &h->out;

    h->stats.errors_total++;
    hub_clear(out);
    if (e == ERR_BAD_REQUEST) /* has its own code in JSON-RPC */
        wire_invalid_params(out, &r->id, words, details);
    else
        wire_error(out, &r->id, e, words, details);
    if (out->over)
        hub_clear(out);
    else
        reply_flush(r);
}
