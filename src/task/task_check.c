/* A checker of all invariants: it recounts the sums that the module maintains.
 * Slow on purpose; tests call it after every step. */
#include "task/internal.h"

/* A listener without pending news that has read everything is idle. */
static bool listeners_are_right(const struct task_entry *e, int64_t *n)
{
    size_t n_idle = 0, n_hearers = 0;

    for (struct list_node *at = list_first(&e->listeners); at;
         at = list_next(&e->listeners, at)) {
        const struct task_listener *l = LIST_OF(at, struct task_listener, node);

        if (l->entry != e || strcmp(l->task_id.text, e->t.id.text) != 0)
            return false;
        n_idle += list_has(&l->news_node) && l->next > e->last_number;
        n_hearers += l->hears_inputs;
        (*n)++;
    }
    return list_length(&e->idle) <= n_idle && n_hearers == e->n_hearers;
}

static bool state_is_right(const struct tasks *ts, const struct task_entry *e)
{
    const struct task_entry *known = task_entry_find(ts, str_of(e->t.id.text));
    bool is_over = task_is_over(e->t.status);

    switch (e->state) {
    case CLAIMED: return known != e && e->lane && !list_has(&e->lane_node);
    case GOING_ON:
        return known == e && !is_over && list_has(&e->lane_node) &&
               !e->result_strings;
    case OVER:
    case GONE:
        return is_over && !e->lane && e->result_strings && e->bytes == 0 &&
               e->t.result.status == e->t.status &&
               list_is_empty(&e->listeners) == (e->state == GONE) &&
               !timer_is_set(&e->deadline);
    case N_ENTRY_STATES: break;
    }
    return false;
}

/* Only the first of a lane is a head, and it is one exactly while queued. */
static bool head_is_right(const struct task_entry *e)
{
    bool is_head =
        e->state == GOING_ON && entry_is_first(e) && e->t.status == TASK_QUEUED;

    if (e->state == GOING_ON && !entry_is_first(e) &&
        (e->t.status == TASK_DISPATCHED || e->t.status == TASK_WORKING))
        return false;
    return (e->head != HEAD_NONE) == is_head &&
           timer_is_set(&e->pause) == (e->head == HEAD_PAUSED) &&
           list_has(&e->head_node) == is_head &&
           e->t.attempt <= e->written_attempt + 1;
}

static bool lane_is_right(const struct tasks *ts, const struct lane *l,
                          size_t *n_entries, size_t *n_claims)
{
    int64_t place = -1;

    if (l->n_claims == 0 && list_is_empty(&l->entries))
        return false;
    for (struct list_node *n = list_first(&l->entries); n;
         n = list_next(&l->entries, n)) {
        const struct task_entry *e = LIST_OF(n, struct task_entry, lane_node);

        if (e->lane != l || e->t.place <= place ||
            !str_eq(e->t.order_key, (struct str){l->key, l->key_bytes}))
            return false;
        place = e->t.place;
        (*n_entries)++;
    }
    *n_claims += l->n_claims;
    (void)ts;
    return true;
}

static bool lanes_are_right(const struct tasks *ts)
{
    size_t at = 0, n_entries = 0, n_claims = 0;
    const struct map_slot *slot;

    if (!map_check(&ts->lanes) || !map_check(&ts->by_id))
        return false;
    while ((slot = map_next(&ts->lanes, &at)))
        if (!lane_is_right(ts, slot->value, &n_entries, &n_claims))
            return false;
    return n_entries == ts->n_entries[GOING_ON] &&
           n_claims == ts->n_entries[CLAIMED];
}

/* Sums over all entries. */
struct sums {
    size_t bytes, n_waiting, n_behind, n_working, ring_bytes,
        n_heads[N_HEAD_STATES];
    int64_t listeners, by_status[N_TASK_STATUS];
    int64_t held_result_bytes;
};

/* Only an unfinished entry may have answers that are not on disk. */
static bool answers_are_right(const struct task_entry *e, struct sums *s)
{
    for (struct list_node *n = list_first(&e->answers); n;
         n = list_next(&e->answers, n)) {
        const struct task_change *c =
            LIST_OF(n, struct task_change, answer_node);

        if (c->entry != e || c->turn != e->t.turn || e->state != GOING_ON)
            return false;
        s->held_result_bytes +=
            (int64_t)(c->result.text.n + c->result.metadata.n);
    }
    return true;
}

static bool entries_are_right(const struct tasks *ts, enum entry_state state,
                              struct sums *s)
{
    const struct list *l = &ts->entries[state];

    if (list_length(l) != ts->n_entries[state])
        return false;
    for (struct list_node *n = list_first(l); n; n = list_next(l, n)) {
        const struct task_entry *e = entry_of_node(n);

        if (e->state != state || e->ts != ts || !state_is_right(ts, e) ||
            !head_is_right(e) || !ring_check(&e->ring) || !inputs_check(e) ||
            !listeners_are_right(e, &s->listeners) || !answers_are_right(e, s))
            return false;
        if (timer_is_set(&e->began) != (state <= GOING_ON) ||
            (state <= GOING_ON && e->began.at_ms != task_began_ms(&e->t)))
            return false;
        if (state == GOING_ON && task_waits(e->t.status) &&
            !timer_is_set(&e->deadline))
            return false;
        if (state == GOING_ON &&
            e->is_behind != (lane_waits_before(e) && !task_waits(e->t.status)))
            return false;
        s->n_waiting += state <= GOING_ON && task_waits(e->t.status);
        s->n_behind += entry_is_kept_back(e);
        s->n_working += state == GOING_ON && (e->t.status == TASK_DISPATCHED ||
                                              e->t.status == TASK_WORKING);
        s->bytes += e->bytes;
        s->ring_bytes += e->ring.bytes;
        s->n_heads[e->head]++;
        if (state == GOING_ON)
            s->by_status[task_shown(&e->t)]++;
        if (state <= GOING_ON && e->bytes != task_bytes(&e->t))
            return false;
    }
    return true;
}

bool tasks_check(const struct tasks *ts)
{
    struct sums s = {0};

    for (int state = 0; state < N_ENTRY_STATES; state++)
        if (!entries_are_right(ts, (enum entry_state)state, &s))
            return false;
    for (int head = HEAD_READY; head < N_HEAD_STATES; head++)
        if (list_length(&ts->heads[head]) != s.n_heads[head])
            return false;
    if (!list_is_empty(&ts->heads[HEAD_READY]) &&
        !list_has(&ts->ready_job.node))
        return false;
    if (!timers_check(&ts->began) ||
        (!list_is_empty(&ts->heads[HEAD_LATER]) && !ts->is_again_soon))
        return false;
    if (!list_is_empty(&ts->news) && !list_has(&ts->news_job.node) &&
        !ts->is_telling)
        return false;
    return lanes_are_right(ts) && s.bytes == ts->bytes &&
           task_shares_check(ts,
                             ts->n_entries[CLAIMED] + ts->n_entries[GOING_ON],
                             s.n_waiting, s.n_behind, s.n_working, s.bytes) &&
           s.ring_bytes == (size_t)ts->stats.ring_bytes &&
           s.listeners == ts->stats.listeners &&
           s.held_result_bytes == ts->stats.held_result_bytes &&
           memcmp(s.by_status, ts->stats.by_status, sizeof(s.by_status)) == 0;
}
