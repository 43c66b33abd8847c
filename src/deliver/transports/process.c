/* The transport "process:NAME": a child of the pool of that name takes the
 * task.
 *
 * Waiting tasks are ordered by priority and place, as in the queue. The child
 * for a task is:
 *
 *   1. the one that had its conversation, even if the task must wait for it;
 *   2. a free one of the same agent, or one that has no agent yet. If children
 *      remember only one conversation, one that remembers none;
 *   3. a new one, as long as there are fewer than `max`;
 *   4. if children remember only one conversation: the one of the same agent
 *      that is idle longest, which forgets its conversation;
 *   5. a new one instead of an idle one of another agent, which ends;
 *   6. otherwise the task waits until one of these exists.
 *
 * A conversation whose child has ended gets another one without its memory. */
#include <stdlib.h>

#include "deliver/transports/pool.h"

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

/* Waiting tasks. */

/* Most come in order, so search from the end. */
static void pool_enqueue(struct pool *p, struct carried *c)
{
    struct list_node *at = p->waiting.head.prev;

    for (; at != &p->waiting.head; at = at->prev) {
        const struct carried *o = LIST_OF(at, struct carried, node);

        if (c->priority > o->priority ||
            (c->priority == o->priority && c->place >= o->place))
            break;
    }
    list_insert_before(at->next, &c->node);
    p->n_waiting++;
    c->pool = p;
    pool_due(p);
}

static void pool_dequeue(struct carried *c)
{
    struct pool *p = c->pool;

    if (p->next_to_look_at == &c->node)
        p->next_to_look_at = list_next(&p->waiting, &c->node);
    list_remove(&c->node);
    p->n_waiting--;
}

/* A delivery. */

static char *carried_add_str(char *to, struct str s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return to + s.n + 1;
}

static struct carried *carried_new(const struct task *t, const struct agent *a)
{
    size_t n = a->name.n + t->root_user.n + t->conversation_id.n + 3;
    struct carried *c = mem_new(sizeof(*c) + n);
    char *end;

    end = carried_add_str(c->key, a->name);
    end = carried_add_str(end, t->root_user);
    carried_add_str(end, t->conversation_id);
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
    struct eyes eyes = {.user = t->root_user};
    struct access_user user;
    struct carried *c;

    if (!p || a->name.n > AGENT_NAME_MAX)
        return ERR_NOT_FOUND;
    c = carried_new(t, a);
    p->dialect->word(&c->line, t);
    if (c->line.over) {
        buf_fini(&c->line);
        free(c);
        return ERR_NOMEM;
    }
    eyes.sees_all = d->opts.access &&
                    access_user_find(d->opts.access, t->root_user, &user) &&
                    user.role == ROLE_ADMIN;
    c->delivery.sees_details = agent_is_owned(a, &eyes);
    pool_enqueue(p, c);
    *out = &c->delivery;
    return OK;
}

static void process_stop(struct delivery *y, enum stop_why why)
{
    struct carried *c = carried_of(y);

    if (list_has(&c->node))
        pool_dequeue(c);
    else if (c->stint)
        pool_worker_leave(c, why);
}

static enum err process_answer(struct delivery *y, struct str handle,
                               const struct input_answer *a)
{
    struct stint *s = carried_of(y)->stint;

    if (!s || s->pool_worker->state != POOL_WORKER_READY ||
        !s->pool_worker->pool->dialect->answer)
        return ERR_GONE;
    return s->pool_worker->pool->dialect->answer(s->pool_worker, handle, a);
}

static void process_free(struct delivery *y)
{
    struct carried *c = carried_of(y);

    buf_fini(&c->line);
    free(c);
}

const struct transport_row transport_pool = {
    .reaches = process_reaches,
    .is_dead = process_is_dead,
    .start = process_start,
    .answer = process_answer,
    .stop = process_stop,
    .free = process_free,
};

/* Choose the child. */

static bool worker_is_of_agent(const struct pool_worker *h,
                               const struct carried *c)
{
    return str_eq_nocase(str_of(h->agent), carried_agent(c));
}

/* Lower is better; FIT_NONE cannot take the task. */
enum fit { FIT_KNOWN, FIT_NEW, FIT_NONE };

static enum fit worker_fit(const struct pool_worker *h, const struct carried *c)
{
    if (!pool_worker_is_free(h))
        return FIT_NONE;
    if (!h->agent[0])
        return FIT_NEW;
    if (!worker_is_of_agent(h, c))
        return FIT_NONE;
    return h->pool->dialect->has_one_mind && !list_is_empty(&h->affinities)
               ? FIT_NONE
               : FIT_KNOWN;
}

static struct pool_worker *pool_best_worker(struct pool *p,
                                            const struct carried *c)
{
    struct pool_worker *best = NULL;
    enum fit best_fit = FIT_NONE;

    for (struct list_node *n = list_first(&p->workers); n;
         n = list_next(&p->workers, n)) {
        struct pool_worker *h = LIST_OF(n, struct pool_worker, node);
        enum fit fit = worker_fit(h, c);

        if (fit < best_fit ||
            (fit == best_fit && best && h->n_taken < best->n_taken)) {
            best = h;
            best_fit = fit;
        }
    }
    return best;
}

/* The child that is idle longest, of c's agent or of another one. */
static struct pool_worker *
pool_longest_idle(struct pool *p, const struct carried *c, bool wants_agents)
{
    struct pool_worker *best = NULL;

    for (struct list_node *n = list_first(&p->workers); n;
         n = list_next(&p->workers, n)) {
        struct pool_worker *h = LIST_OF(n, struct pool_worker, node);

        if (h->state == POOL_WORKER_READY && !h->n_taken &&
            worker_is_of_agent(h, c) == wants_agents &&
            (!best || h->idle_since_ms < best->idle_since_ms))
            best = h;
    }
    return best;
}

static bool pool_has_room(const struct pool *p, size_t n_wanted)
{
    size_t n = p->n_workers - p->n_starting + n_wanted;

    return n < (size_t)p->def.max;
}

/* The child that takes c. NULL: c waits, and *n_wanted is the number of
 * children that are missing. */
static struct pool_worker *
pool_choose_worker(struct pool *p, const struct carried *c, size_t *n_wanted)
{
    struct pool_worker *h =
        c->has_conversation ? affinity_find(p, carried_key(c)) : NULL;

    if (h)
        return pool_worker_is_free(h) ? h : NULL;
    h = pool_best_worker(p, c);
    if (!h && !pool_has_room(p, *n_wanted) && p->dialect->has_one_mind)
        h = pool_longest_idle(p, c, true);
    if (h)
        return h;
    if (!pool_has_room(p, *n_wanted) && p->n_ending <= *n_wanted) {
        h = pool_longest_idle(p, c, false);
        if (h)
            pool_worker_stop(h);
    }
    ++*n_wanted;
    return NULL;
}

/* One pass over the waiting tasks, which may be many, so it stops when no child
 * is left. Callbacks may change everything: a task that leaves moves
 * next_to_look_at on, and for a new one the pool is scheduled again. */
size_t pool_place(struct pool *p)
{
    size_t n_wanted = 0;
    struct list_node *n;

    p->next_to_look_at = list_first(&p->waiting);
    while ((n = p->next_to_look_at) &&
           (p->n_free || pool_has_room(p, n_wanted))) {
        struct carried *c = LIST_OF(n, struct carried, node);
        struct pool_worker *h = pool_choose_worker(p, c, &n_wanted);

        p->n_looked_at++;
        p->next_to_look_at = list_next(&p->waiting, n);
        if (h) {
            pool_dequeue(c);
            pool_worker_give(h, c);
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
        if (c->has_conversation && affinity_find(p, carried_key(c)))
            continue; /* it waits for the child of its conversation */
        pool_dequeue(c);
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

        pool_dequeue(c);
        delivery_failed(&c->delivery,
                        &(struct delivery_failure){
                            .code = STR("agent_changed"),
                            .words = STR("the agent's process was configured "
                                         "again"),
                            .is_innocent = true});
    }
}
