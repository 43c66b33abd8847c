/* Results of delegations for their requester: delegation.result, and
 * delegation.chunk as the text comes.
 *
 * delegation/ keeps a result until it is acknowledged, so for a peer that does
 * not read only the keys of due results are kept here; they are read from the
 * store later. Each is sent once when it is over, and once more whenever its
 * agent registers again.
 *
 *     over -> the peer of the agent -> no answer before it, and space: sent
 *                                   -> otherwise a telling, until there is
 *          -> the connection of a child process, if it made the request */
#include <stdlib.h>

#include "api/hub/internal.h"
#include "base/mem.h"

/* The child process that made the request: an agent with a pool has many. */
struct child_wait {
    struct id key;
    uint64_t line;
};

static struct peer *peer_of_agent(const struct hub *h, struct str agent)
{
    char low[AGENT_NAME_MAX];

    return map_get(&h->by_agent, str_lowered(agent, low, sizeof(low)));
}

/* Messages. */

static struct str tell_write_result(struct hub *h, const struct delegation *d,
                                    const struct task *t)
{
    struct json_out o;

    hub_clear(&h->out);
    o = wire_call_open(&h->out, STR(""), STR("delegation.result"));
    json_open(&o, '{');
    speak_delegation_result(&o, str_of(d->key.text), d->original_id, t);
    json_close(&o, '}');
    wire_close(&o);
    return h->out.over ? STR("") : buf_str(&h->out);
}

static struct str tell_write_chunk(struct hub *h, const struct delegation *d,
                                   struct str agent, struct str text)
{
    bool has_id = d->original_id.n > 0;
    struct json_out o;

    hub_clear(&h->out);
    o = wire_call_open(&h->out, STR(""), STR("delegation.chunk"));
    json_open(&o, '{');
    json_key(&o, has_id ? STR("original_id") : STR("sessionKey"));
    json_put_str(&o, has_id ? d->original_id : str_of(d->key.text));
    json_member_text(&o, "task_id", str_of(d->task_id.text));
    json_member_text(&o, "agent", agent);
    json_member_text(&o, "text", text);
    json_close(&o, '}');
    wire_close(&o);
    return h->out.over ? STR("") : buf_str(&h->out);
}

/* The result could not be written or read: delegation/ passes it on again. */
static void tell_later_again(struct hub *h, const struct id *key)
{
    log_warn(h->api->log, "hub.not_told_yet", LOG_C("key", key->text));
    delegation_not_told(walk_delegations(h->api->walk), str_of(key->text));
}

static void tell_result(struct peer *p, const struct delegation *d,
                        const struct task *t)
{
    struct hub *h = p->hub;
    struct str message = tell_write_result(h, d, t);

    if (!message.n) {
        tell_later_again(h, &d->key);
        return;
    }
    h->stats.pushed_total++;
    peer_send(p, message);
    delegation_told(walk_delegations(h->api->walk), str_of(d->key.text));
}

/* Tellings. */

static void telling_free(struct telling *l)
{
    list_remove(&l->node);
    free(l);
}

static struct telling *telling_of(const struct peer *p, const struct id *key)
{
    for (struct list_node *n = list_first(&p->tellings); n;
         n = list_next(&p->tellings, n)) {
        struct telling *l = LIST_OF(n, struct telling, node);

        if (strcmp(l->key.text, key->text) == 0)
            return l;
    }
    return NULL;
}

static struct telling *telling_new(struct peer *p, const struct id *key,
                                   struct gather *behind)
{
    struct telling *l = mem_new(sizeof(*l));

    l->key = *key;
    l->behind = behind;
    list_append(&p->tellings, &l->node);
    return l;
}

void tell_end_all(struct peer *p)
{
    struct list_node *n;

    while ((n = list_first(&p->tellings)))
        telling_free(LIST_OF(n, struct telling, node));
    p->came_in = NULL;
}

static struct telling *telling_next_ready(const struct peer *p)
{
    for (struct list_node *n = list_first(&p->tellings); n;
         n = list_next(&p->tellings, n)) {
        struct telling *l = LIST_OF(n, struct telling, node);

        if (l->is_ready && !l->behind)
            return l;
    }
    return NULL;
}

static void on_delegation_task(struct request *o, enum err e,
                               const struct task *t)
{
    struct peer *p = peer_of(o);
    struct str key = str_of(delegation_of(o)->key.text);
    const struct delegation *d =
        delegation_find(walk_delegations(o->api->walk), key);
    struct task gone;

    if (!e && d && task_is_over(t->status)) {
        tell_result(p, d, t);
    } else if (e == ERR_NOT_FOUND && d) {
        gone = delegation_gone(d);
        tell_result(p, d, &gone);
    } else if (e && d) {
        tell_later_again(p->hub, &d->key);
    }
    p->is_telling = false;
    request_end(o);
    tell_go(p);
}

/* True: a lookup was started, and on_delegation_task continues. */
static bool telling_start(struct peer *p, const struct telling *l)
{
    const struct delegation *d = delegation_find(
        walk_delegations(p->hub->api->walk), str_of(l->key.text));
    struct request *o;

    if (!d || d->state != DELEGATION_READY)
        return false;
    o = hub_request_new(p, &delegation_look_state);
    if (!o) {
        tell_later_again(p->hub, &l->key);
        return false;
    }
    p->is_telling = true;
    o->task_id = d->task_id;
    o->sees_task = true;
    delegation_of(o)->key = d->key;
    delegation_of(o)->turn = d->turn;
    delegation_look_task(o, on_delegation_task);
    return true;
}

/* on_delegation_task calls this again, perhaps from inside, so a telling is
 * removed before its lookup. */
void tell_go(struct peer *p)
{
    struct telling *l;
    struct telling one;

    while (p->by_name[0] && !p->is_telling && !peer_is_stuck(p) &&
           (l = telling_next_ready(p))) {
        one = *l;
        telling_free(l);
        if (telling_start(p, &one))
            return;
    }
}

/* The batch is answered. */
void tell_after(struct gather *g)
{
    struct peer *p = g->peer;
    bool came = p->came_in == g;

    for (struct list_node *n = list_first(&p->tellings); n;
         n = list_next(&p->tellings, n)) {
        struct telling *l = LIST_OF(n, struct telling, node);

        if (l->behind == g)
            l->behind = NULL;
    }
    if (came)
        tell_came(p, NULL);
    tell_go(p);
}

void tell_came(struct peer *p, struct gather *behind)
{
    p->came_in = behind;
    if (!behind && p->by_name[0])
        delegation_agent_came(walk_delegations(p->hub->api->walk),
                              str_of(p->agent));
}

/* Child processes. */

static void child_wait_new(struct peer *p, const struct id *key)
{
    struct hub *h = p->hub;
    struct child_wait *w = mem_new(sizeof(*w));

    *w = (struct child_wait){*key, p->child};
    if (map_put(&h->by_key, str_of(w->key.text), w) == OK)
        return;
    free(w);
    log_warn(h->api->log, "hub.not_told", LOG_C("key", key->text));
}

void tell_forget_children(struct hub *h)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&h->by_key, &at)))
        free(slot->value);
}

static void tell_child_result(struct hub *h, const struct delegation *d,
                              const struct task *t)
{
    struct child_wait *w = map_take(&h->by_key, str_of(d->key.text));
    struct str message;

    if (!w)
        return;
    message = tell_write_result(h, d, t);
    if (message.n &&
        deliver_say(walk_deliver(h->api->walk), w->line, message) == OK)
        delegation_told(walk_delegations(h->api->walk), str_of(d->key.text));
    else
        log_info(h->api->log, "hub.child_not_told", LOG_C("key", d->key.text));
    free(w);
}

/* Remember the requester of each started delegation. */
void tell_begin(struct request *o)
{
    const struct delegation_request *r = delegation_request_of(o);
    struct gather *behind = hub_seat(o)->reply.gather;
    struct delegation_request_piece piece;

    for (size_t i = 0; i < delegation_request_n(r); i++) {
        if (!delegation_request_piece(r, i, &piece) || !piece.is_open)
            continue;
        if (peer_of(o)->child)
            child_wait_new(peer_of(o), &piece.key);
        else if (behind && !PLANTED("hub.told_before_answered"))
            (void)telling_new(peer_of(o), &piece.key, behind);
    }
}

/* Callbacks of the walk. */

void hub_on_delegated(struct hub *h, const struct delegation *d,
                      const struct task *t)
{
    struct peer *p = peer_of_agent(h, d->agent);
    struct telling *l = p ? telling_of(p, &d->key) : NULL;

    if (!p) {
        tell_child_result(h, d, t);
        return;
    }
    if (!l && !p->came_in && !p->is_telling && !peer_is_stuck(p) &&
        !telling_next_ready(p)) {
        tell_result(p, d, t);
        return;
    }
    if (!l && PLANTED("hub.not_told_later"))
        return;
    if (!l)
        l = telling_new(p, &d->key, p->came_in);
    l->is_ready = true;
    tell_go(p);
}

static bool request_waits_for(const struct request *o, const struct id *key)
{
    const struct delegation_request *r = delegation_request_of(o);
    struct delegation_request_piece piece;

    for (size_t i = 0; r && i < delegation_request_n(r); i++)
        if (delegation_request_piece(r, i, &piece) &&
            strcmp(piece.key.text, key->text) == 0)
            return true;
    return false;
}

/* The connection of the child process that made the request, whether it still
 * waits for the answer or not; zero: none. Few children wait at a time. */
static uint64_t child_line_of(const struct hub *h, const struct id *key)
{
    const struct child_wait *w = map_get(&h->by_key, str_of(key->text));
    struct list_node *n, *k;

    if (w)
        return w->line;
    for (n = list_first(&h->children); n; n = list_next(&h->children, n)) {
        const struct peer *p = LIST_OF(n, struct peer, node);

        for (k = list_first(&p->requests); k; k = list_next(&p->requests, k))
            if (request_waits_for(LIST_OF(k, struct request, node), key))
                return p->child;
    }
    return 0;
}

/* A peer that does not keep up gets no chunks, but the whole text in the
 * result. */
void hub_on_delegated_chunk(struct hub *h, const struct delegation *d,
                            struct str agent, struct str text)
{
    struct peer *p = peer_of_agent(h, d->agent);
    uint64_t line = p ? 0 : child_line_of(h, &d->key);
    struct str message;

    if (p ? peer_is_stuck(p) || telling_of(p, &d->key) : !line)
        return;
    message = tell_write_chunk(h, d, agent, text);
    if (!message.n)
        return;
    if (p)
        peer_send(p, message);
    else if (deliver_say(walk_deliver(h->api->walk), line, message) != OK)
        log_info(h->api->log, "hub.child_not_told", LOG_C("key", d->key.text));
}
