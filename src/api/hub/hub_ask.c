/* Requests that are answered later, and their task lookups. The store and the
 * walk give a request back by its pointer, so an ask outlives its peer until
 * then, as in api/open_requests.c. */
#include <stdlib.h>

#include "api/hub/internal.h"
#include "api/share.h"

static struct str ask_key(const struct ask *a)
{
    return (struct str){(const char *)&a->number, sizeof(a->number)};
}

static struct ask *ask_make(struct peer *p)
{
    struct ask *a = FAULT("hub.ask") ? NULL : calloc(1, sizeof(*a));
    struct hub *h = p->hub;

    if (!a)
        return NULL;
    a->hub = h;
    a->peer = p;
    a->number = ++h->last_number;
    a->reply.peer = p;
    if (map_put(&h->receipts, ask_key(a), a) != OK) {
        free(a);
        return NULL;
    }
    list_append(&p->asks, &a->node);
    p->n_asks++;
    return a;
}

struct ask *hub_ask_new(struct hub_call *c)
{
    struct ask *a = ask_make(c->peer);

    if (!a) {
        reply_refuse(&c->reply, ERR_NOMEM, STR(""), STR(""));
        return NULL;
    }
    a->reply = c->reply;
    if (c->reply.id.raw.n) {
        memcpy(a->id, c->reply.id.raw.p, c->reply.id.raw.n);
        a->reply.id.raw.p = a->id;
    }
    a->reply.id.text = (struct str){NULL, 0};
    if (a->reply.gather)
        a->reply.gather->n_open++;
    peer_pace(c->peer);
    return a;
}

struct ask *hub_ask_silent(struct peer *p)
{
    return ask_make(p);
}

void hub_ask_drop_queries(struct ask *a)
{
    if (a->has_query)
        query_fini(&a->query);
    if (a->has_turns)
        query_fini(&a->turns);
    a->has_query = a->has_turns = false;
}

void hub_ask_end(struct ask *a)
{
    struct hub *h = a->hub;
    struct gather *g = a->reply.gather;

    if (a->is_over)
        return;
    a->is_over = true;
    if (a->search.id)
        registry_search_cancel(h->opts.registry, a->search.id);
    a->search.id = 0;
    if (a->delegation_request)
        delegation_request_leave(a->delegation_request);
    a->delegation_request = NULL;
    loop_timer_cancel(h->opts.loop, &a->card.again);
    if (a->is_claim)
        agent_unclaim(a->peer);
    map_take(&h->receipts, ask_key(a));
    list_remove(&a->node);
    list_append(&h->over, &a->node);
    a->peer->n_asks--;
    peer_reap(h);
    if (g)
        gather_less(g);
    peer_pace(a->peer);
}

static void hub_ask_free(struct ask *a)
{
    list_remove(&a->node);
    hub_ask_drop_queries(a);
    if (a->change)
        registry_change_fini(a->change);
    free(a->change);
    free(a->card.text);
    free(a->search.text);
    free(a->message.decision);
    free(a->message.passed);
    free(a);
}

void hub_ask_reap(struct hub *h)
{
    struct list_node *n;

    while ((n = list_first(&h->over)))
        hub_ask_free(LIST_OF(n, struct ask, node));
}

void hub_ask_refuse(struct ask *a, enum err e, struct str words,
                    struct str details)
{
    struct why missing;

    if (e == ERR_NOT_FOUND && !words.n && a->task_id.text[0]) {
        hub_word_no_task(str_of(a->task_id.text), &missing);
        words = str_of(missing.text);
    }
    reply_refuse(&a->reply, e, words, details);
    hub_ask_end(a);
}

void hub_ask_out(struct ask *a)
{
    assert(!a->is_out);
    a->is_out = true;
}

bool hub_ask_back(struct ask *a)
{
    assert(a->is_out);
    a->is_out = false;
    if (!peer_is_gone(a->peer))
        return true;
    hub_ask_end(a);
    return false;
}

/* Reads. */

static void on_ask_read(struct query *q, void *ctx)
{
    struct ask *a = ctx;

    a->asked = NULL;
    if (q->err == ERR_BUSY)
        q->err = ERR_OVERLOADED;
    else if (q->err == ERR_LIMIT)
        q->err = ERR_INTERNAL;
    if (hub_ask_back(a))
        a->then(a);
}

void hub_ask_read(struct ask *a, struct query *q, void (*then)(struct ask *))
{
    a->then = then;
    a->asked = q;
    hub_ask_out(a);
    store_read(a->hub->opts.store, q, on_ask_read, a);
}

/* A task in memory or its row; api/share_lookup.c says which counts. */

static void look_for_task(struct ask *a);

static void look_found(struct ask *a, const struct task *t)
{
    bool is_seen = a->delegation.is_own || task_is_for(t, &a->peer->caller);

    a->found(a, is_seen ? OK : ERR_NOT_FOUND, is_seen ? t : NULL);
}

static void on_task_looked_up(struct ask *a)
{
    const struct task *t;
    struct task row;
    enum err e = share_look_row(walk_tasks(a->hub->opts.walk), &a->query,
                                str_of(a->task_id.text), &a->n_looks, &row, &t);

    if (e)
        a->found(a, e, NULL);
    else if (t)
        look_found(a, t);
    else
        look_for_task(a);
}

static void look_for_task(struct ask *a)
{
    struct str id = str_of(a->task_id.text);
    const struct task *t = task_find(walk_tasks(a->hub->opts.walk), id);

    if (t) {
        look_found(a, t);
        return;
    }
    share_look_ask(&a->query, &a->has_query, id);
    hub_ask_read(a, &a->query, on_task_looked_up);
}

void hub_look_task(struct ask *a, ask_found *found)
{
    a->found = found;
    a->n_looks = 0;
    look_for_task(a);
}

bool hub_look_is_current(const struct ask *a, const struct task *t)
{
    return share_look_is_current(&a->message_id, t);
}

/* The task as it was in a past turn. */
static void look_found_past(struct ask *a, enum err e, const struct task *t)
{
    struct task past;

    if (e) {
        a->then_found(a, e, NULL);
        return;
    }
    past = share_turn(t, &a->turns, &a->message_id);
    a->then_found(a, OK, &past);
}

static void on_past_turn(struct ask *a)
{
    if (a->turns.err || !a->turns.rows)
        a->then_found(a, a->turns.err ? a->turns.err : ERR_NOT_FOUND, NULL);
    else
        hub_look_task(a, look_found_past);
}

void hub_look_past(struct ask *a, const struct task *t, ask_found *found)
{
    a->then_found = found;
    share_turn_ask(&a->turns, &a->has_turns, t, &a->message_id);
    hub_ask_read(a, &a->turns, on_past_turn);
}

/* The row of the turn names the message it started with. */
static void on_turn_by_number(struct ask *a)
{
    if (!a->turns.err && a->turns.rows)
        a->message_id = id_from(row_str(a->turns.rows, TURN_MESSAGE_ID));
    on_past_turn(a);
}

void hub_look_number(struct ask *a, const struct task *t, int64_t turn,
                     ask_found *found)
{
    a->then_found = found;
    share_number_ask(&a->turns, &a->has_turns, t, turn);
    hub_ask_read(a, &a->turns, on_turn_by_number);
}

static void look_found_either(struct ask *a, enum err e, const struct task *t)
{
    if (e || hub_look_is_current(a, t))
        a->then_found(a, e, t);
    else
        hub_look_past(a, t, a->then_found);
}

void hub_look_turn(struct ask *a, ask_found *found)
{
    a->then_found = found;
    hub_look_task(a, look_found_either);
}
