/* One queue per agent, and the choice of the next job.
 *
 * Within a queue the higher priority goes first, then the order of acceptance.
 * A stream of urgent work must not starve the rest, so the job that has waited
 * longest is passed by at most AGENT_QUEUE_PASSED_MAX others in a row. For this
 * a job is in two structures: the heap of its priority, by place, and the list
 * of arrivals.
 *
 * Among queues the higher priority of the agent goes first, and equals take
 * turns, one job each. This matters while the limit on all deliveries or the
 * share of the loop turn is used up. A queue is in d->ready as long as it may
 * have something to do. One that is blocked (agent away, limit reached, breaker
 * open) leaves, and the code that unblocks it calls agent_queue_wake; so the
 * cost of an event does not depend on the number of queues.
 *
 * Limits, priority and address are read from the agent when its queue is
 * served. So changes of agents are not urgent: after one, all queues are
 * checked once, a bounded number at a time. */
#include "deliver/queue/agent_queue.h"

#include <assert.h>
#include <stdlib.h>

enum {
    GO_PER_TURN = 256,
    LOOK_MS = 1000, /* after a change of the agents */
    LOOK_AT_ONCE = 256,
    LOOK_ON_MS = 10, /* and then the next ones */
    NOTHING_MS = 3600 * 1000,
};

/* Find, create and free. */

static struct str agent_queue_key(struct str name,
                                  char out[AGENT_QUEUE_NAME_BYTES])
{
    return str_lowered(name, out, AGENT_NAME_MAX);
}

struct agent_queue *agent_queue_find(const struct deliver *d, struct str agent)
{
    char key[AGENT_QUEUE_NAME_BYTES];

    return map_get(&d->agent_queues, agent_queue_key(agent, key));
}

static void agent_queue_on_pause_over(struct timer *t);

struct agent_queue *agent_queue_named(struct deliver *d, struct str agent)
{
    struct agent_queue *k = agent_queue_find(d, agent);

    if (k)
        return k;
    k = mem_new(sizeof(*k));
    if (map_put(&d->agent_queues, agent_queue_key(agent, k->name), k) != OK) {
        free(k);
        return NULL;
    }
    for (int p = 0; p < AGENT_QUEUE_PRIORITIES; p++)
        timers_init(&k->waiting[p]);
    list_init(&k->arrivals);
    list_init(&k->below);
    k->deliver = d;
    k->pause.fire = agent_queue_on_pause_over;
    list_append(&d->all_queues, &k->node);
    return k;
}

struct agent_queue *agent_queue_of(struct deliver *d, const struct agent *a)
{
    struct agent_queue *k = agent_queue_named(d, a->name);

    if (!k)
        return NULL;
    k->priority = a->limits.priority;
    agent_queue_show(d, k); /* from its first task on */
    return k;
}

const struct agent *agent_queue_agent(const struct deliver *d,
                                      const struct agent_queue *k)
{
    return d->opts.agent_of(d->opts.ctx, str_of(k->name));
}

static void agent_queue_free(struct deliver *d, struct agent_queue *k)
{
    wakes_forget(d, str_of(k->name));
    map_take(&d->agent_queues, str_of(k->name));
    loop_timer_cancel(d->opts.loop, &k->pause);
    list_remove(&k->node);
    list_remove(&k->ready);
    for (int p = 0; p < AGENT_QUEUE_PRIORITIES; p++)
        timers_fini(&k->waiting[p]);
    if (k->is_open)
        d->stats.breakers_open--;
    agent_queue_hide(d, k);
    share_give(&d->owner_quotas, k->owner_quota);
    free(k->doom);
    free(k->past);
    last_hour_free(k);
    free(k);
}

void agent_queue_hold(struct agent_queue *k)
{
    k->n_holds++;
}

/* If this was the last reference, the next check of all queues frees it. */
void agent_queue_release(struct agent_queue *k)
{
    assert(k->n_holds > 0);
    k->n_holds--;
}

/* Queues with something to do. */

static void ready_queues_add(struct ready_queues *r, struct agent_queue *k)
{
    int64_t at = AGENT_PRIORITY_MAX - k->priority; /* highest first */

    if (at < 0)
        at = 0;
    if (at >= READY_LISTS)
        at = READY_LISTS - 1;
    list_append(&r->lists[at], &k->ready);
    r->is_used[at / 64] |= UINT64_C(1) << (at % 64);
}

static struct agent_queue *ready_queues_first(struct ready_queues *r)
{
    for (size_t w = 0; w < sizeof(r->is_used) / sizeof(*r->is_used); w++)
        while (r->is_used[w]) {
            unsigned bit = (unsigned)__builtin_ctzll(r->is_used[w]);
            struct list_node *n = list_first(&r->lists[w * 64 + bit]);

            if (n)
                return LIST_OF(n, struct agent_queue, ready);
            r->is_used[w] &= ~(UINT64_C(1) << bit);
        }
    return NULL;
}

/* If the job waits for the next turn, the share of this one is used up. */
static void agent_queues_go_soon(struct deliver *d)
{
    if (!list_has(&d->go_job.node) && !d->is_stopping)
        loop_at_end(d->opts.loop, &d->go_job);
}

void agent_queue_wake(struct deliver *d, struct agent_queue *k)
{
    if (!list_has(&k->ready))
        ready_queues_add(&d->ready, k);
    agent_queues_go_soon(d);
}

void agent_queue_look(struct deliver *d, struct agent_queue *k)
{
    list_remove(&k->ready);
    agent_queue_wake(d, k);
}

static void agent_queue_on_pause_over(struct timer *t)
{
    struct agent_queue *k = LIST_OF(t, struct agent_queue, pause);

    agent_queue_wake(k->deliver, k);
}

static void agent_queues_look_in(struct deliver *d, int64_t delay_ms)
{
    if (d->again.at_ms > loop_mono_ms(d->opts.loop) + delay_ms)
        loop_timer_set(d->opts.loop, &d->again, delay_ms);
}

/* Waiting jobs. */

void agent_queue_add(struct deliver *d, struct agent_queue *k,
                     struct deliver_job *e)
{
    /* The heap is ordered by the place of the task. */
    timers_set(&k->waiting[e->priority], &e->place, e->place.at_ms);
    e->agent_queue = k;
    e->state = DELIVER_JOB_WAITING;
    e->offered_ms = loop_mono_ms(d->opts.loop);
    list_append(&k->arrivals, &e->arrival);
    k->n_waiting++;
    d->stats.waiting++;
    if (e->is_below) {
        list_append(&k->below, &e->below);
        list_remove(&k->ready); /* this job may pass the shared limits */
    }
    agent_queue_wake(d, k);
}

void agent_queue_take(struct deliver *d, struct deliver_job *e)
{
    struct agent_queue *k = e->agent_queue;

    if (list_first(&k->arrivals) == &e->arrival)
        k->n_passed = 0;
    timers_cancel(&k->waiting[e->priority], &e->place);
    list_remove(&e->arrival);
    list_remove(&e->below);
    e->state = DELIVER_JOB_RESTING;
    e->agent_queue = NULL;
    k->n_waiting--;
    d->stats.waiting--;
}

/* The next job; NULL: none waits. */
static struct deliver_job *agent_queue_next(struct agent_queue *k)
{
    struct list_node *oldest = list_first(&k->arrivals);
    int p = 0;

    if (!oldest)
        return NULL;
    if (k->n_passed >= AGENT_QUEUE_PASSED_MAX)
        return LIST_OF(oldest, struct deliver_job, arrival);
    while (!k->waiting[p].n)
        p++;
    if (deliver_job_at(&k->waiting[p], 0) !=
        LIST_OF(oldest, struct deliver_job, arrival))
        k->n_passed++;
    return deliver_job_at(&k->waiting[p], 0);
}

void agent_queue_begun(struct delivery *y)
{
    struct agent_queue *k = y->deliver_job->agent_queue;

    k->n_in_flight++;
    y->is_probe = breaker_ask(&k->breaker);
    owner_quota_begun(y, k->owner_quota);
}

void agent_queue_done(struct agent_queue *k, struct delivery *y)
{
    assert(k->n_in_flight > 0);
    k->n_in_flight--;
    agent_queue_wake(k->deliver, k);
    owner_quota_done(k->deliver, y->owner_quota);
    y->owner_quota = NULL;
}

/* Jobs of an agent that did not wake up. */

void agent_queue_fail(struct deliver *d, struct agent_queue *k,
                      int64_t before_ms, const struct delivery_failure *f)
{
    struct agent_queue_doom *m = mem_new(sizeof(*m) + f->code.n + f->words.n);
    char *end = m->strings;

    m->before_ms = before_ms;
    m->failure = *f;
    m->failure.code = str_pack(&end, f->code);
    m->failure.words = str_pack(&end, f->words);
    free(k->doom);
    k->doom = m;
    agent_queue_look(d, k);
}

/* Fail one doomed job. False: none is left. */
static bool agent_queue_fail_one(struct deliver *d, struct agent_queue *k)
{
    struct list_node *n = list_first(&k->arrivals);
    struct deliver_job *e = n ? LIST_OF(n, struct deliver_job, arrival) : NULL;

    if (!e || e->offered_ms >= k->doom->before_ms) {
        free(k->doom);
        k->doom = NULL;
        return false;
    }
    agent_queue_take(d, e);
    agent_queue_attempt_failed(k, &k->doom->failure, true);
    deliver_job_fail(d, e, &k->doom->failure);
    return true;
}

/* Pauses. */

enum err deliver_pause(struct deliver *d, struct str agent, struct str by,
                       int64_t at_ms)
{
    struct agent_queue *k = agent_queue_named(d, agent);

    if (!k)
        return ERR_NOMEM;
    if (!k->is_paused)
        agent_queue_hold(k);
    k->is_paused = true;
    last_hour_paused(k, by, at_ms);
    return OK;
}

void deliver_resume(struct deliver *d, struct str agent)
{
    struct agent_queue *k = agent_queue_find(d, agent);

    if (!k || !k->is_paused)
        return;
    k->is_paused = false;
    agent_queue_release(k);
    agent_queue_look(d, k);
}

bool deliver_is_paused(const struct deliver *d, struct str agent)
{
    const struct agent_queue *k = agent_queue_find(d, agent);

    return k && k->is_paused;
}

/* Serving. */

static void agent_queue_call(struct deliver *d, struct agent_queue *k,
                             const struct agent *a)
{
    struct agent_url url;

    if (k->n_waiting && agent_url_read(a->url, &url, NULL) == OK &&
        transport_of(&url)->call)
        transport_of(&url)->call(d, k, a, &url);
}

/* An agent that was away and is back, over any transport, need not be woken,
 * and its doomed jobs are saved. A full agent is not away: its earlier failures
 * still count. */
static enum presence agent_queue_look_for(struct deliver *d,
                                          struct agent_queue *k,
                                          const struct agent *a)
{
    enum presence p = agent_presence(d, a);

    if (p != AWAY && k->is_away) {
        wakes_forget(d, str_of(k->name));
        free(k->doom);
        k->doom = NULL;
        agent_queue_arrived(k);
    }
    k->is_away = p == AWAY;
    return p;
}

bool agent_queue_is_full(const struct deliver *d, const struct agent_queue *k,
                         const struct agent *a)
{
    int64_t most =
        a->limits.in_flight ? a->limits.in_flight : d->opts.settings.in_flight;

    return (int64_t)k->n_in_flight >= most ||
           k->n_in_flight >= agent_in_flight_max(d);
}

static bool agent_queue_is_shut(struct deliver *d, struct agent_queue *k)
{
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (breaker_may(&k->breaker, now_ms))
        return false;
    if (k->breaker.state == BREAKER_OPEN)
        loop_timer_set(d->opts.loop, &k->pause, k->breaker.until_ms - now_ms);
    return true; /* otherwise the pending probe will wake it */
}

enum served {
    SERVED_ALL,  /* nothing to do until it is woken */
    SERVED_SOME, /* there may be more */
    PUT_AWAY,    /* it waits in another list */
};

/* Put k away while a shared limit is reached. */
static bool agent_queue_is_put_away(struct deliver *d, struct agent_queue *k)
{
    if (owner_quota_holds(d, k))
        return true;
    if (d->n_on_the_way < d->opts.settings.max_in_flight)
        return false;
    ready_queues_add(&d->able, k);
    return true;
}

/* The job that may go now; NULL: none. A job that is part of other work may
 * exceed the shared limits, because tasks that wait for it would otherwise
 * block it. The number of such jobs is limited at acceptance. */
static struct deliver_job *agent_queue_able(struct deliver *d,
                                            struct agent_queue *k,
                                            const struct agent *a)
{
    struct list_node *n = list_first(&k->below);

    if (k->is_called || k->is_paused || agent_queue_is_full(d, k, a) ||
        agent_queue_is_shut(d, k))
        return NULL;
    owner_quota_take(d, k, a);
    if (!agent_queue_is_put_away(d, k))
        return agent_queue_next(k);
    if (n)
        list_remove(&k->ready);
    return n ? LIST_OF(n, struct deliver_job, below) : NULL;
}

/* Serve one job of k. The presence of its agent is checked also if no job waits
 * but failures are remembered, because a return of the agent clears them, and
 * before a job fails because of its absence. */
static enum served agent_queue_serve(struct deliver *d, struct agent_queue *k)
{
    const struct agent *a;
    struct deliver_job *e;

    if (!k->n_waiting && !k->doom && !k->breaker.n_failures)
        return SERVED_ALL;
    a = agent_queue_agent(d, k);
    if (a) {
        k->priority = a->limits.priority;
        k->is_called = agent_queue_look_for(d, k, a) != PRESENT;
    }
    if (k->doom && agent_queue_fail_one(d, k))
        return SERVED_SOME;
    if (a && k->is_called)
        agent_queue_call(d, k, a);
    if (!k->n_waiting)
        return SERVED_ALL;
    e = a ? agent_queue_able(d, k, a) : agent_queue_next(k);
    if (!e)
        return list_has(&k->ready) ? PUT_AWAY : SERVED_ALL;
    agent_queue_take(d, e);
    deliver_job_go(d, e, k); /* on_go returns false for a removed agent */
    return k->n_waiting || k->doom ? SERVED_SOME : SERVED_ALL;
}

static bool agent_queues_have_share(struct deliver *d)
{
    if (d->go_turn != loop_turn_number(d->opts.loop)) {
        d->go_turn = loop_turn_number(d->opts.loop);
        d->n_gone = 0;
    }
    return d->n_gone < GO_PER_TURN;
}

/* The limit on all deliveries blocks only queues in d->able. Queues with jobs
 * to fail, or with an agent to wake, are served regardless. */
static struct agent_queue *agent_queues_next(struct deliver *d)
{
    struct agent_queue *k = ready_queues_first(&d->ready), *able = NULL;

    if (d->n_on_the_way < d->opts.settings.max_in_flight)
        able = ready_queues_first(&d->able);
    return able && (!k || able->priority >= k->priority) ? able : k;
}

static void agent_queues_serve_one(struct deliver *d, struct agent_queue *k)
{
    struct owner_quota *o = k->owner_quota;
    enum served s;

    list_remove(&k->ready);
    agent_queue_hold(k);
    if (o)
        o->share.n++;
    s = agent_queue_serve(d, k);
    if (s == SERVED_SOME && !list_has(&k->ready))
        ready_queues_add(&d->ready, k);
    if (s != PUT_AWAY)
        owner_quota_wake_one(d, o); /* k may have used up the wake-up */
    share_give(&d->owner_quotas, o);
    agent_queue_release(k);
}

void agent_queues_on_end_of_turn(struct loop_job *job)
{
    struct deliver *d = LIST_OF(job, struct deliver, go_job);
    struct agent_queue *k;

    while (agent_queues_have_share(d) && (k = agent_queues_next(d))) {
        d->n_gone++;
        agent_queues_serve_one(d, k);
    }
    loop_not_at_end(job);
    if (!agent_queues_have_share(d) && agent_queues_next(d))
        loop_next_turn(d->opts.loop, job);
}

/* Check all queues. */

void agent_queues_look_again(struct deliver *d)
{
    d->n_to_look_at = d->agent_queues.n;
    d->n_departures_to_look_at = d->departures.n;
    if (!d->n_to_look_at && !d->n_departures_to_look_at)
        return;
    agent_queues_look_in(d, LOOK_MS);
    agent_queues_go_soon(d); /* the limit on all may have changed */
}

static void agent_queue_look_at(struct deliver *d, struct agent_queue *k)
{
    list_remove(&k->node);
    list_append(&d->all_queues, &k->node);
    if (k->n_waiting)
        agent_queue_look(d, k);
    else if (!k->n_in_flight && !k->n_holds && !agent_queue_agent(d, k))
        agent_queue_free(d, k);
}

static void agent_queues_on_again(struct timer *t)
{
    struct deliver *d = LIST_OF(t, struct deliver, again);
    struct list_node *n;

    loop_timer_set(d->opts.loop, t, NOTHING_MS);
    for (int i = 0; i < LOOK_AT_ONCE && d->n_to_look_at; i++) {
        n = list_first(&d->all_queues);
        d->n_to_look_at--;
        if (n)
            agent_queue_look_at(d, LIST_OF(n, struct agent_queue, node));
    }
    departures_look(d, LOOK_AT_ONCE);
    if (d->n_to_look_at || d->n_departures_to_look_at)
        agent_queues_look_in(d, LOOK_ON_MS);
}

void agent_queues_init(struct deliver *d)
{
    for (int i = 0; i < READY_LISTS; i++) {
        list_init(&d->ready.lists[i]);
        list_init(&d->able.lists[i]);
    }
    list_init(&d->all_queues);
    list_init(&d->shown);
    d->go_job.run = agent_queues_on_end_of_turn;
    d->again.fire = agent_queues_on_again;
    loop_timer_set(d->opts.loop, &d->again, NOTHING_MS);
}

void agent_queues_free(struct deliver *d)
{
    const struct map_slot *slot;
    struct list_node *n;
    size_t at = 0;

    while ((n = list_first(&d->all_queues)))
        agent_queue_free(d, LIST_OF(n, struct agent_queue, node));
    while ((slot = map_next(&d->deliver_jobs, &at)))
        free(slot->value);
    loop_timer_cancel(d->opts.loop, &d->again);
}
