/* A checker of all invariants: it recounts the sums that the module maintains.
 * Slow on purpose; tests call it after every step. */
#include "deliver/queue/agent_queue.h"

struct sums {
    size_t waiting, going, gathered;
};

static bool deliver_job_is_right(const struct deliver_job *e, struct sums *s)
{
    bool is_waiting = e->state == DELIVER_JOB_WAITING;

    if (timer_is_set(&e->place) != is_waiting ||
        list_has(&e->arrival) != is_waiting ||
        list_has(&e->below) != (is_waiting && e->is_below) ||
        (e->delivery != NULL) != (e->state == DELIVER_JOB_GOING) ||
        (e->agent_queue == NULL) != (e->state == DELIVER_JOB_RESTING))
        return false;
    s->waiting += is_waiting;
    s->going += e->state == DELIVER_JOB_GOING;
    return !e->delivery ||
           (e->delivery->deliver_job == e && !e->delivery->is_over);
}

static bool deliver_jobs_are_right(const struct deliver *d, struct sums *s)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&d->deliver_jobs, &at)))
        if (!deliver_job_is_right(slot->value, s))
            return false;
    return map_check(&d->deliver_jobs);
}

static bool deliveries_are_right(const struct deliver *d, struct sums *s)
{
    for (struct list_node *at = list_first(&d->on_the_way); at;
         at = list_next(&d->on_the_way, at)) {
        const struct delivery *y = LIST_OF(at, struct delivery, node);

        if (!y->deliver_job || y->deliver_job->delivery != y || y->deliver != d)
            return false;
        s->gathered += y->gathered.n;
    }
    return list_length(&d->on_the_way) == d->n_on_the_way;
}

static bool queue_is_right(const struct agent_queue *k)
{
    size_t n = 0;

    for (int p = 0; p < AGENT_QUEUE_PRIORITIES; p++) {
        if (!timers_check(&k->waiting[p]))
            return false;
        for (size_t i = 0; i < k->waiting[p].n; i++) {
            const struct deliver_job *e = deliver_job_at(&k->waiting[p], i);

            if (e->agent_queue != k || (int)e->priority != p)
                return false;
        }
        n += k->waiting[p].n;
    }
    return n == k->n_waiting && list_length(&k->arrivals) == n &&
           k->n_passed <= AGENT_QUEUE_PASSED_MAX;
}

/* A queue with waiting jobs is in a list, or an event will wake it: the end of
 * a delivery, its breaker's timer, the transport if the agent is away, or the
 * end of a pause. */
static bool is_not_forgotten(const struct agent_queue *k)
{
    return !k->n_waiting || list_has(&k->ready) || k->n_in_flight ||
           timer_is_set(&k->pause) || k->is_called || k->is_paused;
}

static bool agent_queues_are_right(const struct deliver *d, struct sums *s)
{
    size_t n = 0, n_shown = 0;
    int64_t n_open = 0;

    s->gathered = d->gathered_bytes;
    for (struct list_node *at = list_first(&d->all_queues); at;
         at = list_next(&d->all_queues, at)) {
        const struct agent_queue *k = LIST_OF(at, struct agent_queue, node);

        if (k->deliver != d || agent_queue_find(d, str_of(k->name)) != k ||
            !queue_is_right(k) || !is_not_forgotten(k) ||
            k->is_open != (k->breaker.state != BREAKER_CLOSED) ||
            k->n_waiting > s->waiting || k->n_in_flight > s->going)
            return false;
        s->waiting -= k->n_waiting;
        s->going -= k->n_in_flight;
        s->gathered -= k->gathered_bytes;
        n_open += k->is_open;
        n_shown += k->is_shown;
        n++;
    }
    return n == d->agent_queues.n && !s->waiting && !s->going && !s->gathered &&
           n_shown == d->n_shown && list_length(&d->shown) == n_shown &&
           n_open == d->stats.breakers_open && map_check(&d->agent_queues);
}

/* A list that is not empty is marked. */
static bool is_marked(const struct ready_queues *r, size_t *n)
{
    for (size_t i = 0; i < READY_LISTS; i++) {
        bool is_used = r->is_used[i / 64] & (UINT64_C(1) << (i % 64));

        *n += list_length(&r->lists[i]);
        if (!is_used && !list_is_empty(&r->lists[i]))
            return false;
    }
    return true;
}

/* Ready queues will be served; able ones unless the limit on all is reached. */
static bool ready_is_right(const struct deliver *d)
{
    bool comes_by = d->is_stopping || list_has(&d->go_job.node);
    size_t n_ready = 0, n_able = 0;

    return is_marked(&d->ready, &n_ready) && is_marked(&d->able, &n_able) &&
           (!n_ready || comes_by) &&
           (!n_able || comes_by ||
            d->n_on_the_way >= d->opts.settings.max_in_flight);
}

/* Deliveries count for their owner's quota, and a queue waits for a quota only
 * while that has deliveries. */
static bool owner_quotas_are_right(const struct deliver *d)
{
    size_t n_going = 0, n_of_quotas = 0, at = 0;
    const struct map_slot *slot;

    for (struct list_node *n = list_first(&d->on_the_way); n;
         n = list_next(&d->on_the_way, n))
        n_going += LIST_OF(n, struct delivery, node)->owner_quota != NULL;
    while ((slot = map_next(&d->owner_quotas.by_key, &at))) {
        const struct owner_quota *o = slot->value;

        if (!o->share.n || (!list_is_empty(&o->held) && !o->n_in_flight &&
                            !list_has(&d->go_job.node)))
            return false;
        n_of_quotas += o->n_in_flight;
    }
    return n_going == n_of_quotas && map_check(&d->owner_quotas.by_key);
}

bool deliver_check(const struct deliver *d)
{
    struct sums s = {0};

    return deliver_jobs_are_right(d, &s) && deliveries_are_right(d, &s) &&
           (int64_t)s.waiting == d->stats.waiting &&
           s.going == d->n_on_the_way && s.gathered == d->gathered_bytes &&
           agent_queues_are_right(d, &s) && ready_is_right(d) &&
           owner_quotas_are_right(d) && timer_is_set(&d->again);
}
