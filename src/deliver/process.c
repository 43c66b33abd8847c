/* The road "process:NAME": a child of the pool of that name takes the task.
 *
 * What waits goes by priority and by place, as at the desk. Who of the children
 * takes it:
 *
 *   1. the one that has had its conversation, also when it has to wait for it;
 *   2. a free one of the same agent, or one that is nobody's yet. Where a child
 *      can remember one conversation alone, one that remembers none;
 *   3. a new one, as long as there are fewer than `max`;
 *   4. where a child remembers one conversation: of the same agent's the one
 *      that is free longest, which forgets what it had;
 *   5. a new one in the place of a free one of another agent, which goes;
 *   6. else it waits until one of these is there.
 *
 * A conversation whose child is gone gets another one, which does not know of
 * it. */
#include <stdlib.h>

#include "deliver/pool.h"

enum { LINE_MAX_BYTES = 8 * MSG_TEXT_MAX };

static struct carried *carried_of(struct delivery *y)
{
    return LIST_OF(y, struct carried, delivery);
}

static enum err process_reaches(const struct deliver *d, const struct agent *a,
                                const struct agent_url *url, struct why *why)
{
    if (d->pools && pool_find(d->pools, url->id))
        return OK;
    return why_err(why, ERR_NOT_FOUND,
                   "the agent \"%.*s\" is run by the process \"%.*s\", and "
                   "there is none of that name in the configuration",
                   STR_ARG(a->name), STR_ARG(str_head(url->id, 64)));
}

static bool process_is_dead(const struct deliver *d, const struct agent *a,
                            const struct agent_url *url, bool has_details,
                            struct why *why)
{
    const struct pool *p = d->pools ? pool_find(d->pools, url->id) : NULL;

    if (!p)
        return process_reaches(d, a, url, why) != OK;
    if (!p->missing.text[0])
        return false;
    why_err(why, OK, "%s",
            has_details ? p->missing.text
                        : "the program that runs it cannot be started where "
                          "the server is; its owner sees why");
    return true;
}

/* What waits. */

static bool goes_before(const struct carried *a, const struct carried *b)
{
    return a->priority != b->priority ? a->priority < b->priority
                                      : a->place < b->place;
}

/* Most come in order: looked for from the end. */
static void wait_in_order(struct pool *p, struct carried *c)
{
    struct list_node *at = p->waiting.head.prev;

    while (at != &p->waiting.head &&
           goes_before(c, LIST_OF(at, struct carried, node)))
        at = at->prev;
    list_insert_before(at->next, &c->node);
    p->n_waiting++;
    c->pool = p;
    pool_due(p);
}

static void stop_waiting(struct carried *c)
{
    struct pool *p = c->pool;

    if (p->next_to_look_at == &c->node)
        p->next_to_look_at = list_next(&p->waiting, &c->node);
    list_remove(&c->node);
    p->n_waiting--;
}

/* A delivery. */

static char *add(char *to, struct str s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return to + s.n + 1;
}

static struct carried *carried_new(const struct task *t, const struct agent *a)
{
    size_t n = a->name.n + t->root_user.n + t->conversation_id.n + 3;
    struct carried *c =
        FAULT("deliver.process") ? NULL : calloc(1, sizeof(*c) + n);
    char *end;

    if (!c)
        return NULL;
    end = add(c->key, a->name);
    end = add(end, t->root_user);
    add(end, t->conversation_id);
    c->n_agent = a->name.n;
    c->n_key = n;
    c->has_conversation = t->conversation_id.n > 0;
    c->priority = t->priority;
    c->place = t->place;
    buf_init(&c->line, LINE_MAX_BYTES);
    return c;
}

static enum err process_start(struct deliver *d, const struct task *t,
                              const struct agent *a,
                              const struct agent_url *url,
                              struct delivery **out)
{
    struct pool *p = d->pools ? pool_find(d->pools, url->id) : NULL;
    struct carried *c;

    if (!p || a->name.n > AGENT_NAME_MAX)
        return ERR_NOT_FOUND;
    c = carried_new(t, a);
    if (!c)
        return ERR_NOMEM;
    p->dialect->word(&c->line, t);
    if (c->line.over) {
        buf_fini(&c->line);
        free(c);
        return ERR_NOMEM;
    }
    c->delivery.sees_details =
        d->opts.sees_details &&
        d->opts.sees_details(d->opts.ctx, t->root_user, a);
    wait_in_order(p, c);
    *out = &c->delivery;
    return OK;
}

static void process_stop(struct delivery *y, enum stop_why why)
{
    struct carried *c = carried_of(y);

    if (list_has(&c->node))
        stop_waiting(c);
    else if (c->stint)
        hand_leave(c, why);
}

static enum err process_answer(struct delivery *y, struct str handle,
                               const struct input_answer *a)
{
    struct stint *s = carried_of(y)->stint;

    if (!s || s->hand->state != HAND_READY || !s->hand->pool->dialect->answer)
        return ERR_GONE;
    return s->hand->pool->dialect->answer(s->hand, handle, a);
}

static void process_free(struct delivery *y)
{
    struct carried *c = carried_of(y);

    buf_fini(&c->line);
    free(c);
}

const struct road_row road_pool = {
    .reaches = process_reaches,
    .is_dead = process_is_dead,
    .start = process_start,
    .answer = process_answer,
    .stop = process_stop,
    .free = process_free,
};

/* Who takes it. */

static bool is_agents(const struct hand *h, const struct carried *c)
{
    return str_eq_nocase(str_of(h->agent), carried_agent(c));
}

static bool remembers(const struct hand *h)
{
    return h->pool->dialect->has_one_mind && !list_is_empty(&h->keeps);
}

/* The lower the better; nobody is worse than that. */
enum fit { FIT_KNOWN, FIT_NEW, FIT_NONE };

static enum fit fit_of(const struct hand *h, const struct carried *c)
{
    if (!hand_is_free(h))
        return FIT_NONE;
    if (!h->agent[0])
        return FIT_NEW;
    return is_agents(h, c) && !remembers(h) ? FIT_KNOWN : FIT_NONE;
}

static struct hand *best_of(struct pool *p, const struct carried *c)
{
    struct hand *best = NULL;
    enum fit best_fit = FIT_NONE;

    for (struct list_node *n = list_first(&p->hands); n;
         n = list_next(&p->hands, n)) {
        struct hand *h = LIST_OF(n, struct hand, node);
        enum fit fit = fit_of(h, c);

        if (fit < best_fit ||
            (fit == best_fit && best && h->n_taken < best->n_taken)) {
            best = h;
            best_fit = fit;
        }
    }
    return best;
}

/* The one that has had nothing to do for the longest time; c's agent's, or
 * another's. */
static struct hand *longest_idle(struct pool *p, const struct carried *c,
                                 bool wants_agents)
{
    struct hand *best = NULL;

    for (struct list_node *n = list_first(&p->hands); n;
         n = list_next(&p->hands, n)) {
        struct hand *h = LIST_OF(n, struct hand, node);

        if (h->state == HAND_READY && !h->n_taken &&
            is_agents(h, c) == wants_agents &&
            (!best || h->idle_since_ms < best->idle_since_ms))
            best = h;
    }
    return best;
}

static bool has_room(const struct pool *p, size_t n_wanted)
{
    size_t n = p->n_hands - p->n_starting + n_wanted;

    return n < (size_t)p->def.max;
}

/* The one that takes c. NULL: it waits, and *n_wanted counts those for whom
 * another child is needed. */
static struct hand *take_hand(struct pool *p, const struct carried *c,
                              size_t *n_wanted)
{
    struct hand *h = c->has_conversation ? keep_find(p, carried_key(c)) : NULL;

    if (h)
        return hand_is_free(h) ? h : NULL;
    h = best_of(p, c);
    if (!h && !has_room(p, *n_wanted) && p->dialect->has_one_mind)
        h = longest_idle(p, c, true);
    if (h)
        return h;
    if (!has_room(p, *n_wanted) && p->n_ending <= *n_wanted) {
        h = longest_idle(p, c, false);
        if (h)
            hand_stop(h);
    }
    ++*n_wanted;
    return NULL;
}

/* Whether nobody more can have a child, nor is another needed. */
static bool has_nothing_left(const struct pool *p, size_t n_wanted)
{
    return !p->n_free && !has_room(p, n_wanted);
}

/* In one go, and only as far as there is something to be had: many may wait.
 * Callbacks may change everything: who goes takes itself off the place where
 * this goes on, and for what is new the pool is looked at once more. */
size_t pool_place(struct pool *p)
{
    size_t n_wanted = 0;
    struct list_node *n;

    p->next_to_look_at = list_first(&p->waiting);
    while ((n = p->next_to_look_at) && !has_nothing_left(p, n_wanted)) {
        struct carried *c = LIST_OF(n, struct carried, node);
        struct hand *h = take_hand(p, c, &n_wanted);

        p->n_looked_at++;
        p->next_to_look_at = list_next(&p->waiting, n);
        if (h) {
            stop_waiting(c);
            hand_give(h, c);
        }
    }
    p->next_to_look_at = NULL;
    return n_wanted;
}

void pool_disappoint(struct pool *p, const struct delivery_failure *f)
{
    struct list_node *n = list_first(&p->waiting);

    while (n) {
        struct carried *c = LIST_OF(n, struct carried, node);

        n = list_next(&p->waiting, n);
        if (c->has_conversation && keep_find(p, carried_key(c)))
            continue; /* it waits for another */
        stop_waiting(c);
        delivery_failed(&c->delivery, f);
        if (!f->is_final)
            return;
        n = list_first(&p->waiting); /* callbacks may change everything */
    }
}

void pool_send_back(struct pool *p)
{
    struct list_node *n;

    while ((n = list_first(&p->waiting))) {
        struct carried *c = LIST_OF(n, struct carried, node);

        stop_waiting(c);
        delivery_failed(&c->delivery,
                        &(struct delivery_failure){
                            .code = STR("agent_changed"),
                            .words = STR("the agent's process was configured "
                                         "anew"),
                            .is_innocent = true});
    }
}
