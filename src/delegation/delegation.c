/* Delegations in memory: indexed by key, task and request, counted per
 * requesting agent, linked to their parent. */
#include "delegation/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/agent.h"

enum { REQUEST_MAX = AGENT_NAME_MAX + 1 + DELEGATION_ID_MAX };

struct delegations *delegation_new(const struct delegation_opts *opts)
{
    struct delegations *h = mem_new(sizeof(*h));

    h->opts = *opts;
    map_init(&h->by_key, DELEGATIONS_MAX, opts->seed);
    map_init(&h->by_task, DELEGATIONS_MAX, opts->seed);
    map_init(&h->by_request, DELEGATIONS_MAX, opts->seed);
    shares_init(&h->delegators, sizeof(struct delegator), DELEGATIONS_MAX,
                opts->seed);
    shares_init(&h->children, sizeof(struct children), DELEGATIONS_MAX,
                opts->seed);
    for (int i = 0; i <= DELEGATION_HAD; i++)
        list_init(&h->by_state[i]);
    list_init(&h->crowded);
    list_init(&h->ending);
    list_init(&h->telling);
    h->end_job.run = delegation_on_ending;
    h->tell_job.run = delegation_on_telling;
    h->again.fire = delegation_on_again;
    loop_timer_set(opts->loop, &h->again, DELEGATION_NOTHING_MS);
    return h;
}

void delegation_set(struct delegations *h, const struct delegation_settings *s)
{
    h->opts.settings = *s;
    delegation_look_at_turns(h);
}

const struct delegation_settings *
delegation_settings(const struct delegations *h)
{
    return &h->opts.settings;
}

/* delegation_claim has reserved the space. */
static void delegation_map_put(struct map *m, struct str key, void *value)
{
    enum err e = map_put(m, key, value);

    assert(!e);
    (void)e;
}

const struct delegator *delegator_find(const struct delegations *h,
                                       struct str agent)
{
    char low[AGENT_NAME_MAX];

    return share_find(&h->delegators, str_lowered(agent, low, sizeof(low)));
}

/* Create and look up. */

static struct str delegation_request_key(struct str agent, struct str id,
                                         char out[REQUEST_MAX])
{
    struct str low = str_lowered(agent, out, AGENT_NAME_MAX);

    out[low.n] = '\n';
    if (id.n)
        memcpy(out + low.n + 1, id.p, id.n);
    return (struct str){out, low.n + 1 + id.n};
}

struct live_delegation *delegation_make(struct delegations *h,
                                        const struct delegation *d)
{
    const unsigned all = DELEGATION_PLAIN | DELEGATION_BY_RULE;
    char key[REQUEST_MAX];
    struct str request = delegation_request_key(d->agent, d->original_id, key);
    struct live_delegation *x = mem_new(
        sizeof(*x) + record_bytes(d, &delegation_table, all) + request.n);
    char *at = x->strings;

    x->h = h;
    x->d = *d;
    list_init(&x->waiters);
    list_init(&x->behind);
    record_pack(&x->d, &delegation_table, all, &at);
    x->request = str_pack(&at, request);
    return x;
}

struct live_delegation *delegation_of_key(const struct delegations *h,
                                          struct str key)
{
    return map_get(&h->by_key, key);
}

struct live_delegation *delegation_of_task(const struct delegations *h,
                                           struct str task_id)
{
    return map_get(&h->by_task, task_id);
}

struct live_delegation *delegation_of_request(const struct delegations *h,
                                              struct str agent,
                                              struct str original_id)
{
    char key[REQUEST_MAX];

    return original_id.n
               ? map_get(&h->by_request,
                         delegation_request_key(agent, original_id, key))
               : NULL;
}

/* Indexes. */

static void delegation_map_take(struct map *m, struct str key,
                                const struct live_delegation *x)
{
    if (map_get(m, key) == x)
        map_take(m, key);
}

/* A task may have a further turn while the result of the one before is still
 * kept: by_task has the newest. */
static void delegation_link_task(struct live_delegation *x)
{
    struct str id = str_of(x->d.task_id.text);
    struct live_delegation *newer = NULL, *older = delegation_of_task(x->h, id);

    while (older && older->d.turn > x->d.turn) {
        newer = older;
        older = older->older;
    }
    x->newer = newer;
    x->older = older;
    if (older)
        older->newer = x;
    if (newer)
        newer->older = x;
    else
        delegation_map_put(&x->h->by_task, id, x);
}

static void delegation_unlink_task(struct live_delegation *x)
{
    struct map *by_task = &x->h->by_task;

    if (x->newer)
        x->newer->older = x->older;
    else if (x->older)
        delegation_map_put(by_task, str_of(x->older->d.task_id.text), x->older);
    else
        delegation_map_take(by_task, str_of(x->d.task_id.text), x);
    if (x->older)
        x->older->newer = x->newer;
}

static void leave_siblings(struct live_delegation *x)
{
    list_remove(&x->child_node);
    share_give(&x->h->children, x->siblings);
    x->siblings = NULL;
}

/* States. */

/* A request that an earlier owner of the name made loses its original id to a
 * new one. If x itself is such a request, the other keeps the id. */
static void delegation_index_request(struct live_delegation *x)
{
    struct delegations *h = x->h;
    struct live_delegation *other =
        delegation_of_request(h, x->d.agent, x->d.original_id);

    if (!x->d.original_id.n)
        return;
    if (other && !delegation_is_own(h, &x->d)) {
        x->is_displaced = true;
        return;
    }
    delegation_map_put(&h->by_request, x->request, x);
    if (other)
        other->is_displaced = true;
}

enum err delegation_claim(struct live_delegation *x)
{
    struct delegations *h = x->h;
    size_t n = h->n_claimed + 1;
    char low[AGENT_NAME_MAX];

    if (FAULT("hire.room") || map_reserve(&h->by_key, n) ||
        map_reserve(&h->by_task, n) || map_reserve(&h->by_request, 1) ||
        map_reserve(&h->delegators.by_key, 1) ||
        map_reserve(&h->children.by_key, 1))
        return ERR_NOMEM;
    x->delegator =
        share_take(&h->delegators, str_lowered(x->d.agent, low, sizeof(low)));
    if (x->delegator->share.n == 1) {
        list_init(&x->delegator->open);
        list_init(&x->delegator->waiting);
        list_init(&x->delegator->ready);
    }
    x->delegator->n_claimed++;
    if (x->d.parent_id.n) {
        x->siblings = share_take(&h->children, x->d.parent_id);
        if (x->siblings->share.n == 1) {
            list_init(&x->siblings->list);
            list_init(&x->siblings->claims);
        }
        list_append(&x->siblings->claims, &x->child_node);
    }
    delegation_index_request(x);
    h->n_claimed++;
    x->is_claimed = true;
    return OK;
}

void delegation_unclaim(struct live_delegation *x)
{
    if (x->is_claimed) {
        x->h->n_claimed--;
        delegation_map_take(&x->h->by_request, x->request, x);
        leave_siblings(x);
        x->delegator->n_claimed--;
        share_give(&x->h->delegators, x->delegator);
    }
    free(x);
}

static void delegation_enter_open(struct live_delegation *x)
{
    x->h->n_open++;
    x->delegator->n_open++;
    list_append(&x->delegator->open, &x->delegator_node);
    if (x->siblings) {
        list_remove(&x->child_node);
        list_append(&x->siblings->list, &x->child_node);
    }
    if (x->is_doomed && !PLANTED("hire.late_child"))
        delegation_end(x, FOR_PARENT);
}

void delegation_enter(struct live_delegation *x)
{
    struct delegations *h = x->h;

    h->n_claimed--;
    x->is_claimed = false;
    x->delegator->n_claimed--;
    delegation_map_put(&h->by_key, str_of(x->d.key.text), x);
    delegation_link_task(x);
    h->n++;
    list_append(&h->by_state[x->d.state], &x->node);
    if (x->d.state == DELEGATION_OPEN) {
        delegation_enter_open(x);
        return;
    }
    x->delegator->n_ready++;
    list_append(&x->delegator->ready, &x->delegator_node);
    leave_siblings(x);
}

void delegation_ready(struct live_delegation *x)
{
    struct delegations *h = x->h;

    assert(x->d.state == DELEGATION_OPEN);
    list_remove(&x->node);
    x->d.state = DELEGATION_READY;
    list_append(&h->by_state[DELEGATION_READY], &x->node);
    list_remove(&x->delegator_node);
    x->delegator->n_open--;
    h->n_open--;
    x->delegator->n_ready++;
    list_append(&x->delegator->ready, &x->delegator_node);
    list_remove(&x->ending_node); /* it would end the next turn of the task */
    leave_siblings(x);
    delegation_turn_is_over(x);
}

void delegation_drop(struct live_delegation *x)
{
    struct delegations *h = x->h;

    delegation_forget_waiters(x);
    leave_siblings(x);
    list_remove(&x->delegator_node);
    delegation_give_up_turn(x);
    if (x->d.state == DELEGATION_OPEN) {
        x->delegator->n_open--;
        h->n_open--;
    } else {
        x->delegator->n_ready--;
    }
    share_give(&h->delegators, x->delegator);
    delegation_map_take(&h->by_key, str_of(x->d.key.text), x);
    delegation_unlink_task(x);
    delegation_map_take(&h->by_request, x->request, x);
    list_remove(&x->node);
    list_remove(&x->ending_node);
    list_remove(&x->tell_node);
    h->n--;
    free(x);
}

void delegation_free(struct delegations *h)
{
    struct list_node *n;

    if (!h)
        return;
    assert(!h->n_claimed &&
           !h->is_reading); /* a claim or a read would come back */
    loop_not_at_end(&h->end_job);
    loop_not_at_end(&h->tell_job);
    loop_timer_cancel(h->opts.loop, &h->again);
    for (int i = 0; i <= DELEGATION_HAD; i++)
        while ((n = list_first(&h->by_state[i])))
            delegation_drop(LIST_OF(n, struct live_delegation, node));
    map_fini(&h->by_key);
    map_fini(&h->by_task);
    map_fini(&h->by_request);
    shares_fini(&h->delegators);
    shares_fini(&h->children);
    free(h);
}

struct delegation_stats delegation_stats(const struct delegations *h)
{
    struct delegation_stats s = h->stats;

    s.open = (int64_t)h->n_open;
    s.waiting = (int64_t)h->n_waiting;
    s.ready = (int64_t)h->n - s.open;
    return s;
}
