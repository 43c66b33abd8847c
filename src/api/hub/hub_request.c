/* The front end of the hub: a request of a peer is answered as its JSON-RPC
 * message asks, perhaps as a part of a batch.
 *
 * The store and the walk give a request back by its pointer, so a peer stays
 * until its last request has ended. One that is out when its peer closes ends
 * when it comes back. */
#include "api/hub/internal.h"

static struct str hub_receipt_key(const uint64_t *number)
{
    return (struct str){(const char *)number, sizeof(*number)};
}

static bool hub_is_there(const struct request *o)
{
    return !peer_is_gone(peer_of(o));
}

static struct json_out hub_begin(struct request *o)
{
    return reply_open(&hub_seat(o)->reply);
}

static void hub_answer(struct request *o, int status)
{
    (void)status;
    reply_close(&hub_seat(o)->reply);
}

static void hub_refuse(struct request *o, enum err e, struct str words,
                       struct str details)
{
    struct why missing;

    if (e == ERR_NOT_FOUND && !words.n && o->task_id.text[0]) {
        hub_word_no_task(str_of(o->task_id.text), &missing);
        words = str_of(missing.text);
    }
    reply_refuse(&hub_seat(o)->reply, e, words, details);
}

static void hub_leave(struct request *o)
{
    struct hub_seat *seat = o->seat;
    struct peer *p = seat->reply.peer;

    if (seat->is_claim)
        p->n_claims--;
    map_take(&p->hub->receipts, hub_receipt_key(&o->id));
    p->n_requests--;
    peer_reap(p->hub);
    if (seat->reply.gather)
        gather_less(seat->reply.gather);
    peer_pace(p);
}

static const struct front_end hub_front_end = {.seat_bytes =
                                                   sizeof(struct hub_seat),
                                               .is_there = hub_is_there,
                                               .begin = hub_begin,
                                               .answer = hub_answer,
                                               .refuse = hub_refuse,
                                               .leave = hub_leave};

struct request *hub_request_new(struct peer *p,
                                const struct request_state *state)
{
    struct hub *h = p->hub;
    struct request *o =
        FAULT("hub.ask") ? NULL : request_alloc(h->api, &hub_front_end, state);

    if (!o)
        return NULL;
    o->id = ++h->last_number;
    o->caller = p->caller;
    hub_seat(o)->reply.peer = p;
    if (map_put(&h->receipts, hub_receipt_key(&o->id), o) != OK) {
        o->state = NULL; /* the noun has not seen it */
        request_drop(o);
        return NULL;
    }
    list_append(&p->requests, &o->node);
    p->n_requests++;
    return o;
}

struct request *hub_request(struct hub_call *c,
                            const struct request_state *state)
{
    struct request *o = hub_request_new(c->peer, state);
    struct hub_seat *seat;

    if (!o) {
        reply_refuse(&c->reply, ERR_NOMEM, STR(""), STR(""));
        return NULL;
    }
    seat = o->seat;
    seat->reply = c->reply;
    if (c->reply.id.raw.n) {
        memcpy(seat->id, c->reply.id.raw.p, c->reply.id.raw.n);
        seat->reply.id.raw.p = seat->id;
    }
    seat->reply.id.text = (struct str){NULL, 0};
    if (seat->reply.gather)
        seat->reply.gather->n_open++;
    peer_pace(c->peer);
    return o;
}
