/* Whether everything is where it says it is: counts what the room only keeps
 * sums of. Slow on purpose; tests ask after every step. */
#include "deliver/desk.h"

struct sums {
    size_t waiting, going, gathered;
};

static bool errand_is_right(const struct errand *e, struct sums *s)
{
    bool is_waiting = e->state == ERRAND_WAITING;

    if (timer_is_set(&e->place) != is_waiting ||
        list_has(&e->arrival) != is_waiting ||
        list_has(&e->below) != (is_waiting && e->is_below) ||
        (e->delivery != NULL) != (e->state == ERRAND_GOING) ||
        (e->desk == NULL) != (e->state == ERRAND_RESTING))
        return false;
    s->waiting += is_waiting;
    s->going += e->state == ERRAND_GOING;
    return !e->delivery || (e->delivery->errand == e && !e->delivery->is_over);
}

static bool errands_are_right(const struct deliver *d, struct sums *s)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&d->errands, &at)))
        if (!errand_is_right(slot->value, s))
            return false;
    return map_check(&d->errands);
}

static bool deliveries_are_right(const struct deliver *d, struct sums *s)
{
    for (struct list_node *at = list_first(&d->on_the_way); at;
         at = list_next(&d->on_the_way, at)) {
        const struct delivery *y = LIST_OF(at, struct delivery, node);

        if (!y->errand || y->errand->delivery != y || y->deliver != d)
            return false;
        s->gathered += y->gathered.n;
    }
    return list_length(&d->on_the_way) == d->n_on_the_way;
}

static bool queue_is_right(const struct desk *k)
{
    size_t n = 0;

    for (int p = 0; p < DESK_PRIORITIES; p++) {
        if (!timers_check(&k->waiting[p]))
            return false;
        for (size_t i = 0; i < k->waiting[p].n; i++) {
            const struct errand *e = errand_at(&k->waiting[p], i);

            if (e->desk != k || (int)e->priority != p)
                return false;
        }
        n += k->waiting[p].n;
    }
    return n == k->n_waiting && list_length(&k->arrivals) == n &&
           k->n_passed <= DESK_PASSED_MAX;
}

/* Who waits with nothing in the way is ready; so the desk is found in one of
 * the lists, or something else wakes it: what is in flight, its pause, or the
 * road, if its agent is away, or who has paused it. */
static bool is_not_forgotten(const struct desk *k)
{
    return !k->n_waiting || list_has(&k->ready) || k->n_in_flight ||
           timer_is_set(&k->pause) || k->is_called || k->is_paused;
}

static bool desks_are_right(const struct deliver *d, struct sums *s)
{
    size_t n = 0, n_shown = 0;
    int64_t n_open = 0;

    s->gathered = d->gathered_bytes;
    for (struct list_node *at = list_first(&d->all_desks); at;
         at = list_next(&d->all_desks, at)) {
        const struct desk *k = LIST_OF(at, struct desk, node);

        if (k->deliver != d || desk_find(d, str_of(k->name)) != k ||
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
    return n == d->desks.n && !s->waiting && !s->going && !s->gathered &&
           n_shown == d->n_shown && list_length(&d->shown) == n_shown &&
           n_open == d->stats.breakers_open && map_check(&d->desks);
}

/* A list with somebody in it is marked. */
static bool is_marked(const struct ready_desks *r, size_t *n)
{
    for (size_t i = 0; i < READY_LISTS; i++) {
        bool is_used = r->is_used[i / 64] & (UINT64_C(1) << (i % 64));

        *n += list_length(&r->lists[i]);
        if (!is_used && !list_is_empty(&r->lists[i]))
            return false;
    }
    return true;
}

/* Somebody will come by; for those who are able, unless as much is on the way
 * as may be. */
static bool ready_is_right(const struct deliver *d)
{
    bool comes_by = d->is_stopping || list_has(&d->go_job.node);
    size_t n_ready = 0, n_able = 0;

    return is_marked(&d->ready, &n_ready) && is_marked(&d->able, &n_able) &&
           (!n_ready || comes_by) &&
           (!n_able || comes_by ||
            d->n_on_the_way >= d->opts.settings.max_in_flight);
}

/* What is in flight is of its patron; and who is held up for that is so for a
 * reason. */
static bool patrons_are_right(const struct deliver *d)
{
    size_t n_going = 0, n_of_patrons = 0, at = 0;
    const struct map_slot *slot;

    for (struct list_node *n = list_first(&d->on_the_way); n;
         n = list_next(&d->on_the_way, n))
        n_going += LIST_OF(n, struct delivery, node)->patron != NULL;
    while ((slot = map_next(&d->patrons, &at))) {
        const struct patron *o = slot->value;

        if (!o->n_users || (!list_is_empty(&o->held) && !o->n_in_flight &&
                            !list_has(&d->go_job.node)))
            return false;
        n_of_patrons += o->n_in_flight;
    }
    return n_going == n_of_patrons && map_check(&d->patrons);
}

bool deliver_check(const struct deliver *d)
{
    struct sums s = {0};

    return errands_are_right(d, &s) && deliveries_are_right(d, &s) &&
           (int64_t)s.waiting == d->stats.waiting &&
           s.going == d->n_on_the_way && s.gathered == d->gathered_bytes &&
           desks_are_right(d, &s) && ready_is_right(d) &&
           patrons_are_right(d) && timer_is_set(&d->again);
}
