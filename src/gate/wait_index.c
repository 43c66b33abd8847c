/* Finds the holds to look at again when a key changes, and their order.
 *
 * A key has two heaps in order of place: holds that wait, and, after a change,
 * holds that are still to be looked at. A change only exchanges the two,
 * however many wait. Each turn of the loop then looks at GATEKEEPER_PER_TURN
 * holds, over all keys in order of place. A hold that stays held goes back to
 * the waiting heap.
 *
 *     waiting --(the key changes)--> ripe --(its turn)--> looked at
 *        ^-------------------------------------(still held)--+
 *
 * Among holds that wait for room at an agent, the first that stays held ends
 * the round, since those behind it find no room either. They have one key per
 * rule, because another rule may leave more room.
 *
 * Only the first hold of an order is looked at (hold_is_first): one behind it
 * could not be carried before it, and would only take room at the agent from
 * others. When the first is let go the next gets its turn.
 *
 * A hold with a condition that no key covers, or with a key that no longer fits
 * in the map, is looked at every GATEKEEPER_LOOK_MS. */
#include "gate/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    STATES_AT_ONCE = 256, /* agents whose state is checked at once */
    /* Kind (one byte), then reference and type, or agent and rule. */
    KEY_TEXT_MAX = 1024,
};

/* URGENT first, then by place. */
static int64_t hold_turn(const struct hold *h)
{
    return h->priority == PRIORITY_URGENT ? h->place - INT64_MAX / 2 : h->place;
}

/* Whether the timer is in this heap and not in the other one. */
static bool is_in_heap(const struct timers *ts, const struct timer *t)
{
    return timer_is_set(t) && t->slot <= ts->n && ts->heap[t->slot - 1] == t;
}

static void run_soon(struct gatekeeper *b)
{
    if (!b->is_stopping)
        loop_at_end(b->opts.loop, &b->holds.job);
}

static void add_key_part(char *out, size_t *n, struct str s, bool is_lower)
{
    if (s.n > KEY_TEXT_MAX - 1 - *n)
        s.n = KEY_TEXT_MAX - 1 - *n;
    for (size_t i = 0; i < s.n; i++)
        out[(*n)++] = is_lower ? str_lower(s.p[i]) : s.p[i];
    out[(*n)++] = '\0';
}

/* Parts are separated by NUL. Names have none; a reference with a NUL only
 * shares its key with another. */
static struct str key_text(char *out, enum wait_kind kind, struct str a,
                           struct str b)
{
    size_t n = 0;

    out[n++] = (char)('0' + kind);
    add_key_part(out, &n, a, kind != WAIT_EVENT);
    if (kind == WAIT_QUEUE || kind == WAIT_EVENT)
        add_key_part(out, &n, b, false);
    return (struct str){out, n};
}

static struct key *key_find(const struct gatekeeper *b, enum wait_kind kind,
                            struct str x, struct str y)
{
    char text[KEY_TEXT_MAX + 4];

    return map_get(&b->holds.keys, key_text(text, kind, x, y));
}

static void look_up_agent(struct gatekeeper *b, struct str name,
                          struct gate_agent *out)
{
    *out = (struct gate_agent){.name = name};
    b->opts.agent(b->opts.ctx, name, out);
}

static void start_states(struct gatekeeper *b);

static struct key *key_new(struct hold *h, const struct wait_key *k,
                           struct str text)
{
    struct gatekeeper *b = h->gatekeeper;
    struct key *key = mem_new(sizeof(*key) + text.n);

    key->kind = k->kind;
    key->key_bytes = text.n;
    memcpy(key->text, text.p, text.n);
    if (map_put(&b->holds.keys, (struct str){key->text, text.n}, key) != OK) {
        free(key);
        return NULL;
    }
    key->name = (struct str){key->text + 1, k->name.n};
    if (k->kind == WAIT_QUEUE)
        list_append(&h->target->queues, &key->node);
    if (k->kind == WAIT_AGENT) {
        list_append(&b->holds.agents, &key->node);
        look_up_agent(b, key->name, &key->was);
        start_states(b);
    }
    return key;
}

static struct key *key_get(struct hold *h, const struct wait_key *k)
{
    static const struct str none = {NULL, 0};
    char text[KEY_TEXT_MAX + 4];
    struct str s;
    struct key *key;

    if (k->kind == WAIT_EVENT)
        s = key_text(text, k->kind, k->name, k->type);
    else if (k->kind == WAIT_QUEUE)
        s = key_text(text, k->kind, h->agent, h->why->rule);
    else
        s = key_text(text, k->kind, k->name, none);
    key = map_get(&h->gatekeeper->holds.keys, s);
    return key ? key : key_new(h, k, s);
}

static void key_release(struct gatekeeper *b, struct key *key)
{
    if (key->waiting.n || key->ripe.n)
        return;
    timers_cancel(&b->holds.ripe, &key->turn);
    map_take(&b->holds.keys, (struct str){key->text, key->key_bytes});
    list_remove(&key->node);
    timers_fini(&key->waiting);
    timers_fini(&key->ripe);
    free(key);
}

/* A ripe key is ranked by its first hold. */
static void rank_key(struct gatekeeper *b, struct key *key)
{
    if (key->ripe.n) {
        timers_set(&b->holds.ripe, &key->turn, key->ripe.heap[0]->at_ms);
        run_soon(b);
    } else {
        timers_cancel(&b->holds.ripe, &key->turn);
    }
}

static void swap_heaps(struct key *key)
{
    struct timers ripe = key->waiting;

    key->waiting = key->ripe;
    key->ripe = ripe;
}

static void key_changed(struct gatekeeper *b, struct key *key)
{
    if (key->ripe.n) {
        key->is_again = true;
    } else {
        swap_heaps(key);
        rank_key(b, key);
    }
}

/* Skip the remaining ripe holds: all wait again. */
static void key_is_done(struct gatekeeper *b, struct key *key)
{
    bool is_again = key->is_again;

    while (key->waiting.n) {
        struct timer *t = key->waiting.heap[0];

        timers_cancel(&key->waiting, t);
        timers_set(&key->ripe, t, t->at_ms);
    }
    swap_heaps(key);
    timers_cancel(&b->holds.ripe, &key->turn);
    key->is_again = false;
    if (is_again)
        key_changed(b, key);
}

/* Look at it every GATEKEEPER_LOOK_MS. */
static void wait_look_regularly(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;

    if (!list_has(&h->look_node))
        list_append(&b->holds.looked, &h->look_node);
}

void wait_join(struct hold *h)
{
    struct hold_why *why = h->why;

    for (size_t i = 0; i < why->n_keys; i++) {
        const struct wait_key *k = &why->keys[i];
        struct waiter *w = &why->waiters[i];
        struct key *key;

        *w = (struct waiter){.hold = h};
        if (k->kind == WAIT_TIME)
            continue; /* its own timer handles it */
        key = k->kind == WAIT_LOOK ? NULL : key_get(h, k);
        if (!key) {
            wait_look_regularly(h);
            continue;
        }
        timers_set(&key->waiting, &w->turn, hold_turn(h));
        w->key = key;
    }
}

/* A position in a list must not stay on a node that leaves. */
static void step_over(struct list_node **at, const struct list *l,
                      const struct list_node *n)
{
    if (*at == n)
        *at = list_next(l, n);
}

void wait_leave(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;

    for (size_t i = 0; i < h->why->n_keys; i++) {
        struct waiter *w = &h->why->waiters[i];
        struct key *key = w->key;

        if (!key)
            continue;
        if (is_in_heap(&key->ripe, &w->turn)) {
            timers_cancel(&key->ripe, &w->turn);
            rank_key(b, key);
            if (!key->ripe.n && key->is_again) {
                key->is_again = false;
                key_changed(b, key);
            }
        } else {
            timers_cancel(&key->waiting, &w->turn);
        }
        w->key = NULL;
        key_release(b, key);
    }
    step_over(&b->holds.look_next, &b->holds.looked, &h->look_node);
    list_remove(&h->look_node);
    timers_cancel(&b->holds.direct, &h->direct);
}

void wait_gone(struct hold *h)
{
    step_over(&h->gatekeeper->holds.sweep, &h->gatekeeper->holds.by_place,
              &h->place_node);
}

void wait_look(struct hold *h)
{
    timers_set(&h->gatekeeper->holds.direct, &h->direct, hold_turn(h));
    run_soon(h->gatekeeper);
}

void wait_agent(struct gatekeeper *b, struct str agent)
{
    struct key *key = key_find(b, WAIT_AGENT, agent, agent);

    if (!key)
        return;
    look_up_agent(b, key->name, &key->was);
    key_changed(b, key);
}

static void queues_changed(struct gatekeeper *b, const struct target *t)
{
    for (struct list_node *n = list_first(&t->queues); n;
         n = list_next(&t->queues, n))
        key_changed(b, LIST_OF(n, struct key, node));
}

void wait_queue(struct gatekeeper *b, struct str agent)
{
    const struct target *t = target_find(b, agent);

    if (t)
        queues_changed(b, t);
}

void wait_queues(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->holds.targets, &at)))
        queues_changed(b, slot->value);
}

/* Holds of any scope: an event that does not count for a hold leaves it
 * held. */
void wait_event(struct gatekeeper *b, struct str reference, struct str type)
{
    struct key *key = key_find(b, WAIT_EVENT, reference, type);

    if (key)
        key_changed(b, key);
}

void wait_batch(struct gatekeeper *b, struct str task_id)
{
    struct key *key = key_find(b, WAIT_BATCH, task_id, task_id);

    if (key)
        key_changed(b, key);
}

static void carry_all(const struct timers *waiters)
{
    for (size_t i = 0; i < waiters->n; i++)
        batch_carry(LIST_OF(waiters->heap[i], struct waiter, turn)->hold);
}

void wait_carry(struct gatekeeper *b, struct str task_id)
{
    const struct key *key = key_find(b, WAIT_BATCH, task_id, task_id);

    if (!key)
        return;
    carry_all(&key->waiting);
    carry_all(&key->ripe);
}

/* A walk along all holds, some in each turn, because no heap has them all. */
void wait_all(struct gatekeeper *b)
{
    b->holds.sweep = list_first(&b->holds.by_place);
    if (b->holds.sweep)
        run_soon(b);
}

static void look_at_hold(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;
    struct id id = h->task_id; /* looking may free h */

    if (h->state == HOLD_MOVES) {
        h->is_again = true;
        return;
    }
    /* The timer may not have fired yet. */
    if (!h->batch.text[0] && loop_mono_ms(b->opts.loop) >= h->due_mono_ms)
        h->is_due = true;
    if (!h->is_due && !h->batch.text[0] && !hold_is_first(h))
        return;
    hold_look(b, str_of(id.text));
}

/* It stays held for want of room, so those behind it find none either. */
static bool finds_no_room(struct gatekeeper *b, struct str task_id)
{
    const struct hold *h = hold_find(b, task_id);

    return h && h->state == HOLD_WAITS && h->why->cause == PASS_CAPACITY;
}

static void look_by_key(struct gatekeeper *b)
{
    struct key *key = LIST_OF(b->holds.ripe.heap[0], struct key, turn);
    struct waiter *w = LIST_OF(key->ripe.heap[0], struct waiter, turn);
    struct hold *h = w->hold;
    struct id id = h->task_id;
    bool is_first = hold_is_first(h);
    char text[KEY_TEXT_MAX + 4];
    struct str name = {text, key->key_bytes};
    enum wait_kind kind = key->kind;

    timers_cancel(&key->ripe, &w->turn);
    timers_set(&key->waiting, &w->turn, hold_turn(h));
    rank_key(b, key);
    if (!key->ripe.n && key->is_again) {
        key->is_again = false;
        key_changed(b, key);
    }
    memcpy(text, key->text, key->key_bytes);
    key_release(b, key);
    look_at_hold(h);
    if (kind != WAIT_QUEUE || !is_first || !finds_no_room(b, str_of(id.text)))
        return;
    key = map_get(&b->holds.keys, name);
    if (key && key->ripe.n)
        key_is_done(b, key);
}

/* Look at the next hold by place; a walk along all holds comes last. */
static bool look_at_next(struct gatekeeper *b)
{
    struct holds *hs = &b->holds;
    bool is_direct =
        hs->direct.n &&
        (!hs->ripe.n || hs->direct.heap[0]->at_ms <= hs->ripe.heap[0]->at_ms);
    struct hold *h;

    if (is_direct) {
        h = LIST_OF(hs->direct.heap[0], struct hold, direct);
        timers_cancel(&hs->direct, &h->direct);
    } else if (hs->ripe.n) {
        look_by_key(b);
        return true;
    } else if (hs->sweep) {
        h = LIST_OF(hs->sweep, struct hold, place_node);
        hs->sweep = list_next(&hs->by_place, hs->sweep);
    } else if (hs->look_next) {
        h = LIST_OF(hs->look_next, struct hold, look_node);
        hs->look_next = list_next(&hs->looked, hs->look_next);
    } else {
        return false;
    }
    look_at_hold(h);
    return true;
}

/* At most GATEKEEPER_PER_TURN in one turn, however often the job runs in it. */
static void on_wait_turn(struct loop_job *job)
{
    struct holds *hs = LIST_OF(job, struct holds, job);
    struct gatekeeper *b = LIST_OF(hs, struct gatekeeper, holds);
    uint64_t turn = loop_turn_number(b->opts.loop);

    if (hs->turn != turn)
        hs->n_taken = 0;
    hs->turn = turn;
    while (hs->n_taken < GATEKEEPER_PER_TURN && look_at_next(b))
        hs->n_taken++;
    loop_not_at_end(job);
    if (hs->n_taken == GATEKEEPER_PER_TURN && !b->is_stopping)
        loop_next_turn(b->opts.loop, job);
}

static bool is_same_agent(const struct gate_agent *a,
                          const struct gate_agent *b)
{
    return a->is_known == b->is_known && a->state == b->state &&
           a->may_try == b->may_try && a->data_at_ms == b->data_at_ms &&
           a->is_foreign == b->is_foreign && a->version == b->version;
}

static void start_states(struct gatekeeper *b)
{
    struct timer *t = &b->holds.states_timer;

    if (!timer_is_set(t) && !b->is_stopping)
        loop_timer_set(b->opts.loop, t, GATEKEEPER_STATES_MS);
}

/* Checked agents move to the end, so that all get their turn. */
void wait_states(struct gatekeeper *b)
{
    struct holds *hs = &b->holds;
    struct list_node *last = hs->agents.head.prev;

    for (int i = 0; i < STATES_AT_ONCE && !list_is_empty(&hs->agents); i++) {
        struct key *key = LIST_OF(list_first(&hs->agents), struct key, node);
        bool is_last = &key->node == last;
        struct gate_agent is;

        list_remove(&key->node);
        list_append(&hs->agents, &key->node);
        look_up_agent(b, key->name, &is);
        if (!is_same_agent(&is, &key->was)) {
            key->was = is;
            key_changed(b, key);
        }
        if (is_last)
            break;
    }
}

static void on_states(struct timer *t)
{
    struct holds *hs = LIST_OF(t, struct holds, states_timer);
    struct gatekeeper *b = LIST_OF(hs, struct gatekeeper, holds);

    wait_states(b);
    if (!list_is_empty(&hs->agents))
        start_states(b);
}

/* Always set again. */
static void on_regular_look(struct timer *t)
{
    struct holds *hs = LIST_OF(t, struct holds, look_timer);
    struct gatekeeper *b = LIST_OF(hs, struct gatekeeper, holds);

    hs->look_next = list_first(&hs->looked);
    if (hs->look_next)
        run_soon(b);
    if (!list_is_empty(&hs->agents))
        start_states(b);
    loop_timer_set(b->opts.loop, t, GATEKEEPER_LOOK_MS);
}

void waits_init(struct gatekeeper *b)
{
    struct holds *hs = &b->holds;

    list_init(&hs->agents);
    list_init(&hs->looked);
    timers_init(&hs->direct);
    timers_init(&hs->ripe);
    hs->job.run = on_wait_turn;
    hs->states_timer.fire = on_states;
    hs->look_timer.fire = on_regular_look;
    loop_timer_set(b->opts.loop, &hs->look_timer, GATEKEEPER_LOOK_MS);
}

void waits_stop(struct gatekeeper *b)
{
    loop_not_at_end(&b->holds.job);
    loop_timer_cancel(b->opts.loop, &b->holds.states_timer);
    loop_timer_cancel(b->opts.loop, &b->holds.look_timer);
}

/* The last waiter of a key removes the key. */
void waits_fini(struct gatekeeper *b)
{
    assert(!b->holds.keys.n);
    waits_stop(b);
    timers_fini(&b->holds.direct);
    timers_fini(&b->holds.ripe);
}

static bool key_check(const struct gatekeeper *b, const struct key *key)
{
    return key->waiting.n + key->ripe.n > 0 && timers_check(&key->waiting) &&
           timers_check(&key->ripe) && (key->ripe.n || !key->is_again) &&
           (is_in_heap(&b->holds.ripe, &key->turn)
                ? key->ripe.n && key->turn.at_ms == key->ripe.heap[0]->at_ms
                : !key->ripe.n);
}

bool waits_check(const struct gatekeeper *b)
{
    size_t at = 0, n = 0, n_waiters = 0;
    const struct map_slot *slot;

    while ((slot = map_next(&b->holds.keys, &at))) {
        const struct key *key = slot->value;

        if (!key_check(b, key))
            return false;
        n += key->waiting.n + key->ripe.n;
    }
    for (struct list_node *node = list_first(&b->holds.by_place); node;
         node = list_next(&b->holds.by_place, node)) {
        const struct hold *h = LIST_OF(node, struct hold, place_node);

        for (size_t i = 0; i < h->why->n_keys; i++) {
            const struct waiter *w = &h->why->waiters[i];

            if (w->key && !is_in_heap(&w->key->waiting, &w->turn) &&
                !is_in_heap(&w->key->ripe, &w->turn))
                return false;
            n_waiters += w->key != NULL;
        }
    }
    return n == n_waiters && timers_check(&b->holds.direct) &&
           timers_check(&b->holds.ripe) && map_check(&b->holds.keys);
}
