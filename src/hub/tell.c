/* What came of a delegation, told to who asked: delegation.result, and
 * delegation.chunk as the words come.
 *
 * hire keeps the result until it is acknowledged, so nothing need be kept here
 * for one that does not read but which results are due; they are then read from
 * the store. Each is told once when it is over, and once more whenever its
 * agent registers again.
 *
 *     over -> its agent's peer -> no answer before it, and room: said
 *                              -> else a telling, until there is
 *          -> a child's line, if it was a child of a pool that asked
 */
#include <stdlib.h>

#include "hub/internal.h"

/* Which child asked: a pool has many, and their agent is all of them. */
struct child_wait {
    struct id key;
    uint64_t line;
};

static struct peer *peer_of(const struct hub *h, struct str agent)
{
    char low[AGENT_NAME_MAX];

    return map_get(&h->by_agent, str_lowered(agent, low, sizeof(low)));
}

/* Words. */

static struct str write_result(struct hub *h, const struct delegation *d,
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

static struct str write_chunk(struct hub *h, const struct delegation *d,
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

/* For want of memory, or it could not be read: hire gives it to us again. */
static void not_told(struct hub *h, const struct id *key)
{
    log_warn(h->opts.log, "hub.not_told_yet", LOG_C("key", key->text));
    hire_not_told(walk_hires(h->opts.walk), str_of(key->text));
}

static void say(struct peer *p, const struct delegation *d,
                const struct task *t)
{
    struct hub *h = p->hub;
    struct str message = write_result(h, d, t);

    if (!message.n) {
        not_told(h, &d->key);
        return;
    }
    h->stats.pushed_total++;
    peer_send(p, message);
    hire_told(walk_hires(h->opts.walk), str_of(d->key.text));
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

/* NULL: no memory. */
static struct telling *telling_new(struct peer *p, const struct id *key,
                                   struct gather *behind)
{
    struct telling *l = FAULT("hub.telling") ? NULL : calloc(1, sizeof(*l));

    if (!l)
        return NULL;
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

static struct telling *next_ready(const struct peer *p)
{
    for (struct list_node *n = list_first(&p->tellings); n;
         n = list_next(&p->tellings, n)) {
        struct telling *l = LIST_OF(n, struct telling, node);

        if (l->is_ready && !l->behind)
            return l;
    }
    return NULL;
}

static void on_task(struct ask *a, enum err e, const struct task *t)
{
    struct peer *p = a->peer;
    struct str key = str_of(a->delegation.key.text);
    const struct delegation *d = hire_find(walk_hires(a->hub->opts.walk), key);
    struct task gone;

    if (!e && t->turn != a->delegation.turn && !a->has_turns) {
        hub_look_number(a, t, a->delegation.turn, on_task);
        return;
    }
    if (!e && d && task_is_over(t->status)) {
        say(p, d, t);
    } else if (e == ERR_NOT_FOUND && d) {
        gone = hire_gone(d);
        say(p, d, &gone);
    } else if (e && d) {
        not_told(a->hub, &d->key);
    }
    p->is_telling = false;
    hub_ask_end(a);
    tell_go(p);
}

/* Says whether it looks for it: then on_task goes on. */
static bool look(struct peer *p, const struct telling *l)
{
    const struct delegation *d =
        hire_find(walk_hires(p->hub->opts.walk), str_of(l->key.text));
    struct ask *a;

    if (!d || d->state != DELEGATION_READY)
        return false;
    a = hub_ask_silent(p);
    if (!a) {
        not_told(p->hub, &l->key);
        return false;
    }
    p->is_telling = true;
    a->task_id = d->task_id;
    a->delegation.key = d->key;
    a->delegation.turn = d->turn;
    a->delegation.is_own = true;
    hub_look_task(a, on_task);
    return true;
}

/* on_task calls this again, from within, where the task is in memory: so one
 * is taken off before it is looked for. */
void tell_go(struct peer *p)
{
    struct telling *l;
    struct telling one;

    while (p->by_name[0] && !p->is_telling && !peer_is_stuck(p) &&
           (l = next_ready(p))) {
        one = *l;
        telling_free(l);
        if (look(p, &one))
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
        hire_agent_came(walk_hires(p->hub->opts.walk), str_of(p->agent));
}

/* Children. */

static void remember_child(struct peer *p, const struct id *key)
{
    struct hub *h = p->hub;
    struct child_wait *w = FAULT("hub.child_wait") ? NULL : malloc(sizeof(*w));

    if (w) {
        *w = (struct child_wait){*key, p->child};
        if (map_put(&h->by_key, str_of(w->key.text), w) == OK)
            return;
    }
    free(w);
    log_warn(h->opts.log, "hub.not_told", LOG_C("key", key->text));
}

void tell_forget_children(struct hub *h)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&h->by_key, &at)))
        free(slot->value);
}

static void tell_child(struct hub *h, const struct delegation *d,
                       const struct task *t)
{
    struct child_wait *w = map_take(&h->by_key, str_of(d->key.text));
    struct str message;

    if (!w)
        return;
    message = write_result(h, d, t);
    if (message.n &&
        deliver_say(walk_deliver(h->opts.walk), w->line, message) == OK)
        hire_told(walk_hires(h->opts.walk), str_of(d->key.text));
    else
        log_info(h->opts.log, "hub.child_not_told", LOG_C("key", d->key.text));
    free(w);
}

/* Who is to be told of what a has begun. */
void tell_begin(struct ask *a)
{
    struct commission_piece piece;

    for (size_t i = 0; commission_is_piece(a->commission, i); i++) {
        if (!commission_piece(a->commission, i, &piece) || !piece.is_open)
            continue;
        if (a->peer->child)
            remember_child(a->peer, &piece.key);
        else if (a->reply.gather && !PLANTED("hub.told_before_answered"))
            (void)telling_new(a->peer, &piece.key, a->reply.gather);
    }
}

/* From the walk. */

void hub_on_delegated(struct hub *h, const struct delegation *d,
                      const struct task *t)
{
    struct peer *p = peer_of(h, d->agent);
    struct telling *l = p ? telling_of(p, &d->key) : NULL;

    if (!p) {
        tell_child(h, d, t);
        return;
    }
    if (!l && !p->came_in && !p->is_telling && !peer_is_stuck(p) &&
        !next_ready(p)) {
        say(p, d, t);
        return;
    }
    if (!l && PLANTED("hub.not_told_later"))
        return;
    if (!l)
        l = telling_new(p, &d->key, p->came_in);
    if (l)
        l->is_ready = true;
    else
        not_told(h, &d->key);
    tell_go(p);
}

static bool waits_for(const struct ask *a, const struct id *key)
{
    struct commission_piece piece;

    for (size_t i = 0; a->commission && commission_is_piece(a->commission, i);
         i++)
        if (commission_piece(a->commission, i, &piece) &&
            strcmp(piece.key.text, key->text) == 0)
            return true;
    return false;
}

/* The line of the child that asked for it, whether it waits for the answer or
 * has had that. There are a few that wait, or none. Zero: nobody's. */
static uint64_t child_line(const struct hub *h, const struct id *key)
{
    const struct child_wait *w = map_get(&h->by_key, str_of(key->text));
    struct list_node *n, *k;

    if (w)
        return w->line;
    for (n = list_first(&h->children); n; n = list_next(&h->children, n)) {
        const struct peer *p = LIST_OF(n, struct peer, node);

        for (k = list_first(&p->asks); k; k = list_next(&p->asks, k))
            if (waits_for(LIST_OF(k, struct ask, node), key))
                return p->child;
    }
    return 0;
}

/* Who does not read as fast as words come has the whole of them later. */
void hub_on_delegated_chunk(struct hub *h, const struct delegation *d,
                            struct str agent, struct str text)
{
    struct peer *p = peer_of(h, d->agent);
    uint64_t line = p ? 0 : child_line(h, &d->key);
    struct str message;

    if (p ? peer_is_stuck(p) || telling_of(p, &d->key) : !line)
        return;
    message = write_chunk(h, d, agent, text);
    if (!message.n)
        return;
    if (p)
        peer_send(p, message);
    else if (deliver_say(walk_deliver(h->opts.walk), line, message) != OK)
        log_info(h->opts.log, "hub.child_not_told", LOG_C("key", d->key.text));
}
