/* Who waits for which key, and whose turn it is to be looked at again.
 *
 * A key has two heaps by place: those that wait, and, once it has changed,
 * those that are still to be looked at because of it. A change costs nothing
 * but exchanging the two, however many wait; then each turn of the loop looks
 * at BROKER_PER_TURN of them, over all keys the first by place first. Whoever
 * stays held is back among those that wait.
 *
 *     waiting --(the key changes)--> ripe --(its turn)--> looked at
 *        ^-------------------------------------(still held)--+
 *
 * Of those that wait for room at an agent no more are looked at than find
 * some: the first that stays ends it. They are kept apart by the rule that
 * held them, since another rule may leave more room.
 *
 * Only the first of an order is looked at (hold_is_first): what is behind it
 * could not be carried before it, and would only take room at the agent from
 * those that could. When the first is let go the next one has its turn.
 *
 * Whoever cannot be put into a heap for want of memory is looked at every
 * BROKER_LOOK_MS instead, like those whose condition no key tells of. */
#include "broker/internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    STATES_AT_ONCE = 256, /* agents whose state is looked at in one go */
    /* One byte of kind, reference and type, or agent and rule. */
    KEY_TEXT_MAX = 1024,
};

/* URGENT first, then by place. */
static int64_t turn_of(const struct hold *h)
{
    return h->priority == PRIORITY_URGENT ? h->place - INT64_MAX / 2 : h->place;
}

/* Whether it is in this heap: its slot says where, and the heap who is there.
 */
static bool is_in(const struct timers *ts, const struct timer *t)
{
    return timer_is_set(t) && t->slot <= ts->n && ts->heap[t->slot - 1] == t;
}

static void run_soon(struct broker *b)
{
    if (!b->is_stopping)
        loop_at_end(b->opts.loop, &b->holds.job);
}

/* Keys. */

static void add(char *out, size_t *n, struct str s, bool is_lower)
{
    if (s.n > KEY_TEXT_MAX - 1 - *n)
        s.n = KEY_TEXT_MAX - 1 - *n;
    for (size_t i = 0; i < s.n; i++)
        out[(*n)++] = is_lower ? str_lower(s.p[i]) : s.p[i];
    out[(*n)++] = '\0';
}

/* The parts of a key cannot have a NUL in them: names have none, and what has
 * one in a reference only shares its key with another. */
static struct str key_text(char *out, enum wait_kind kind, struct str a,
                           struct str b)
{
    size_t n = 0;

    out[n++] = (char)('0' + kind);
    add(out, &n, a, kind != WAIT_EVENT);
    if (kind == WAIT_QUEUE || kind == WAIT_EVENT)
        add(out, &n, b, false);
    return (struct str){out, n};
}

static struct key *key_find(const struct broker *b, enum wait_kind kind,
                            struct str x, struct str y)
{
    char text[KEY_TEXT_MAX + 4];

    return map_get(&b->holds.keys, key_text(text, kind, x, y));
}

static void see(struct broker *b, struct str name, struct gate_agent *out)
{
    *out = (struct gate_agent){.name = name};
    b->opts.agent(b->opts.ctx, name, out);
}

static void start_states(struct broker *b);

static struct key *key_new(struct hold *h, const struct wait_key *k,
                           struct str text)
{
    struct broker *b = h->broker;
    struct key *key =
        FAULT("broker.key") ? NULL : calloc(1, sizeof(*key) + text.n);

    if (!key)
        return NULL;
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
        see(b, key->name, &key->was);
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
    key = map_get(&h->broker->holds.keys, s);
    return key ? key : key_new(h, k, s);
}

static void key_release(struct broker *b, struct key *key)
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

/* Among the ripe keys it has the turn of its first. Without memory for that
 * everything is looked at with the next regular look. */
static void rank_key(struct broker *b, struct key *key)
{
    if (!key->ripe.n)
        timers_cancel(&b->holds.ripe, &key->turn);
    else if (timers_set(&b->holds.ripe, &key->turn, key->ripe.heap[0]->at_ms) ==
             OK)
        run_soon(b);
    else
        b->holds.has_missed = true;
}

static void swap_heaps(struct key *key)
{
    struct timers ripe = key->waiting;

    key->waiting = key->ripe;
    key->ripe = ripe;
}

static void key_changed(struct broker *b, struct key *key)
{
    if (key->ripe.n) {
        key->is_again = true;
    } else {
        swap_heaps(key);
        rank_key(b, key);
    }
}

/* The rest of them need not be asked: all are waiting again. */
static void key_is_done(struct broker *b, struct key *key)
{
    bool is_again = key->is_again;

    while (key->waiting.n) {
        struct timer *t = key->waiting.heap[0];

        timers_cancel(&key->waiting, t);
        /* There was room for it a moment ago, in the larger of the two. */
        if (timers_set(&key->ripe, t, t->at_ms) != OK)
            wait_look(LIST_OF(t, struct waiter, turn)->hold);
    }
    swap_heaps(key);
    timers_cancel(&b->holds.ripe, &key->turn);
    key->is_again = false;
    if (is_again)
        key_changed(b, key);
}

/* Holds. */

void wait_look_regularly(struct hold *h)
{
    struct broker *b = h->broker;

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
            continue; /* its timer's */
        key = k->kind == WAIT_LOOK ? NULL : key_get(h, k);
        if (!key) {
            wait_look_regularly(h);
            continue;
        }
        if (timers_set(&key->waiting, &w->turn, turn_of(h)) == OK) {
            w->key = key;
        } else {
            key_release(h->broker, key);
            wait_look_regularly(h);
        }
    }
}

/* A walk along a list must not stand on what is taken out of it. */
static void step_over(struct list_node **at, const struct list *l,
                      const struct list_node *n)
{
    if (*at == n)
        *at = list_next(l, n);
}

void wait_leave(struct hold *h)
{
    struct broker *b = h->broker;

    for (size_t i = 0; i < h->why->n_keys; i++) {
        struct waiter *w = &h->why->waiters[i];
        struct key *key = w->key;

        if (!key)
            continue;
        if (is_in(&key->ripe, &w->turn)) {
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
    step_over(&h->broker->holds.sweep, &h->broker->holds.by_place,
              &h->place_node);
}

void wait_look(struct hold *h)
{
    if (timers_set(&h->broker->holds.direct, &h->direct, turn_of(h)) == OK)
        run_soon(h->broker);
    else
        wait_look_regularly(h);
}

void wait_agent(struct broker *b, struct str agent)
{
    struct key *key = key_find(b, WAIT_AGENT, agent, agent);

    if (!key)
        return;
    see(b, key->name, &key->was);
    key_changed(b, key);
}

static void queues_changed(struct broker *b, const struct target *t)
{
    for (struct list_node *n = list_first(&t->queues); n;
         n = list_next(&t->queues, n))
        key_changed(b, LIST_OF(n, struct key, node));
}

void wait_queue(struct broker *b, struct str agent)
{
    const struct target *t = target_find(b, agent);

    if (t)
        queues_changed(b, t);
}

void wait_queues(struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->holds.targets, &at)))
        queues_changed(b, slot->value);
}

/* Whoever waits for it, in whatever scope: those it does not count for stay. */
void wait_event(struct broker *b, struct str reference, struct str type)
{
    struct key *key = key_find(b, WAIT_EVENT, reference, type);

    if (key)
        key_changed(b, key);
}

void wait_batch(struct broker *b, struct str task_id)
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

void wait_carry(struct broker *b, struct str task_id)
{
    const struct key *key = key_find(b, WAIT_BATCH, task_id, task_id);

    if (!key)
        return;
    carry_all(&key->waiting);
    carry_all(&key->ripe);
}

/* A walk along all of them, so many a turn: no heap has them all at once. */
void wait_all(struct broker *b)
{
    b->holds.sweep = list_first(&b->holds.by_place);
    if (b->holds.sweep)
        run_soon(b);
}

/* Keys that could not be ranked when they changed; and everything once, for
 * whatever else did not get its turn. */
static void wait_missed(struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->holds.keys, &at))) {
        struct key *key = slot->value;

        if (key->ripe.n && !timer_is_set(&key->turn))
            rank_key(b, key);
    }
    wait_all(b);
}

/* Looking. */

static void look_at(struct hold *h)
{
    struct broker *b = h->broker;
    struct id id = h->task_id; /* it may be gone in a moment */

    if (h->state == HOLD_MOVES) {
        h->is_again = true;
        return;
    }
    /* Whether or not there was memory for the timer that would have said so. */
    if (!h->batch.text[0] && loop_mono_ms(b->opts.loop) >= h->due_mono_ms)
        h->is_due = true;
    if (!h->is_due && !h->batch.text[0] && !hold_is_first(h))
        return;
    hold_look(b, str_of(id.text));
}

static void take_direct(struct broker *b)
{
    struct timers *direct = &b->holds.direct;
    struct hold *h = LIST_OF(direct->heap[0], struct hold, direct);

    timers_cancel(direct, &h->direct);
    look_at(h);
}

static void take_swept(struct broker *b)
{
    struct hold *h = LIST_OF(b->holds.sweep, struct hold, place_node);

    b->holds.sweep = list_next(&b->holds.by_place, b->holds.sweep);
    look_at(h);
}

static void take_looked(struct broker *b)
{
    struct hold *h = LIST_OF(b->holds.look_next, struct hold, look_node);

    b->holds.look_next = list_next(&b->holds.looked, b->holds.look_next);
    look_at(h);
}

/* Still held, and for want of room: those behind it have none either. */
static bool finds_no_room(struct broker *b, struct str task_id)
{
    const struct hold *h = hold_find(b, task_id);

    return h && h->state == HOLD_WAITS && h->why->cause == PASS_CAPACITY;
}

static void take_of_key(struct broker *b)
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
    if (timers_set(&key->waiting, &w->turn, turn_of(h)) != OK) {
        w->key = NULL;
        wait_look_regularly(h);
    }
    rank_key(b, key);
    if (!key->ripe.n && key->is_again) {
        key->is_again = false;
        key_changed(b, key);
    }
    memcpy(text, key->text, key->key_bytes);
    key_release(b, key);
    look_at(h);
    if (kind != WAIT_QUEUE || !is_first || !finds_no_room(b, str_of(id.text)))
        return;
    key = map_get(&b->holds.keys, name);
    if (key && key->ripe.n)
        key_is_done(b, key);
}

/* The one whose turn it is, by place; those of a walk along all come last. */
static bool take_one(struct broker *b)
{
    struct holds *hs = &b->holds;

    if (hs->direct.n &&
        (!hs->ripe.n || hs->direct.heap[0]->at_ms <= hs->ripe.heap[0]->at_ms))
        take_direct(b);
    else if (hs->ripe.n)
        take_of_key(b);
    else if (hs->sweep)
        take_swept(b);
    else if (hs->look_next)
        take_looked(b);
    else
        return false;
    return true;
}

/* So many in one turn, however often somebody asks for it in that. */
static void on_turn(struct loop_job *job)
{
    struct holds *hs = LIST_OF(job, struct holds, job);
    struct broker *b = LIST_OF(hs, struct broker, holds);
    uint64_t turn = loop_turn_number(b->opts.loop);

    if (hs->turn != turn)
        hs->n_taken = 0;
    hs->turn = turn;
    while (hs->n_taken < BROKER_PER_TURN && take_one(b))
        hs->n_taken++;
    loop_not_at_end(job);
    if (hs->n_taken == BROKER_PER_TURN && !b->is_stopping)
        loop_next_turn(b->opts.loop, job);
}

/* How agents are. */

static bool is_same(const struct gate_agent *a, const struct gate_agent *b)
{
    return a->is_known == b->is_known && a->state == b->state &&
           a->may_try == b->may_try && a->data_at_ms == b->data_at_ms &&
           a->is_foreign == b->is_foreign && a->version == b->version;
}

static void start_states(struct broker *b)
{
    struct timer *t = &b->holds.states_timer;

    if (!timer_is_set(t) && !b->is_stopping &&
        loop_timer_set(b->opts.loop, t, BROKER_STATES_MS) != OK)
        log_warn(b->opts.log, "broker.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

/* Whoever was looked at goes behind the others, so that all have their turn
 * however many there are. */
void wait_states(struct broker *b)
{
    struct holds *hs = &b->holds;
    struct list_node *last = hs->agents.head.prev;

    for (int i = 0; i < STATES_AT_ONCE && !list_is_empty(&hs->agents); i++) {
        struct key *key = LIST_OF(list_first(&hs->agents), struct key, node);
        bool is_last = &key->node == last;
        struct gate_agent is;

        list_remove(&key->node);
        list_append(&hs->agents, &key->node);
        see(b, key->name, &is);
        if (!is_same(&is, &key->was)) {
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
    struct broker *b = LIST_OF(hs, struct broker, holds);

    wait_states(b);
    if (!list_is_empty(&hs->agents))
        start_states(b);
}

/* Always comes again: there is room for the timer that has just fired. */
static void on_look(struct timer *t)
{
    struct holds *hs = LIST_OF(t, struct holds, look_timer);
    struct broker *b = LIST_OF(hs, struct broker, holds);

    hs->look_next = list_first(&hs->looked);
    if (hs->look_next)
        run_soon(b);
    if (hs->has_missed) {
        hs->has_missed = false;
        wait_missed(b);
    }
    if (!list_is_empty(&hs->agents))
        start_states(b);
    if (loop_timer_set(b->opts.loop, t, BROKER_LOOK_MS) != OK)
        log_error(b->opts.log, "broker.no_timer",
                  LOG_C("because", err_row(ERR_NOMEM)->wording));
}

enum err waits_init(struct broker *b)
{
    struct holds *hs = &b->holds;

    list_init(&hs->agents);
    list_init(&hs->looked);
    timers_init(&hs->direct);
    timers_init(&hs->ripe);
    hs->job.run = on_turn;
    hs->states_timer.fire = on_states;
    hs->look_timer.fire = on_look;
    return loop_timer_set(b->opts.loop, &hs->look_timer, BROKER_LOOK_MS);
}

void waits_stop(struct broker *b)
{
    loop_not_at_end(&b->holds.job);
    loop_timer_cancel(b->opts.loop, &b->holds.states_timer);
    loop_timer_cancel(b->opts.loop, &b->holds.look_timer);
}

/* The keys went with their last waiter. */
void waits_fini(struct broker *b)
{
    assert(!b->holds.keys.n);
    waits_stop(b);
    timers_fini(&b->holds.direct);
    timers_fini(&b->holds.ripe);
}

static bool key_check(const struct broker *b, const struct key *key)
{
    return key->waiting.n + key->ripe.n > 0 && timers_check(&key->waiting) &&
           timers_check(&key->ripe) && (key->ripe.n || !key->is_again) &&
           (is_in(&b->holds.ripe, &key->turn)
                ? key->ripe.n && key->turn.at_ms == key->ripe.heap[0]->at_ms
                : !key->ripe.n || b->holds.has_missed);
}

bool waits_check(const struct broker *b)
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

            if (w->key && !is_in(&w->key->waiting, &w->turn) &&
                !is_in(&w->key->ripe, &w->turn))
                return false;
            n_waiters += w->key != NULL;
        }
    }
    return n == n_waiters && timers_check(&b->holds.direct) &&
           timers_check(&b->holds.ripe) && map_check(&b->holds.keys);
}
