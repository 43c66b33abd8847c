/* Held messages, from the claim at acceptance until they are let go, end or are
 * escalated. The function that moves a task also writes the row of its hold;
 * memory follows the commit.
 *
 *     CLAIMED --(commit)--> WAITS <--(not committed, or held on)--> MOVES
 *
 * The time of a hold is measured on the monotonic clock, and across a restart
 * on the wall clock; if that was set back, the hold gets at most its whole time
 * again. A different decision gives it the time of the new one, but the total
 * never exceeds the longest single time, so that a message that alternates
 * between two causes is not held forever. */
#include "gate/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    AGAIN_MS = 1000,      /* before another attempt to move it */
    TIME_LEAST_MS = 1000, /* minimum between looks for a WAIT_TIME key */
};

const struct target *target_find(const struct gatekeeper *b, struct str agent)
{
    char name[ENVELOPE_NAME_MAX];

    return map_get(&b->holds.targets, str_lowered(agent, name, sizeof(name)));
}

static struct target *target_get(struct gatekeeper *b, struct str agent)
{
    char lower[ENVELOPE_NAME_MAX];
    struct str name = str_lowered(agent, lower, sizeof(lower));
    struct target *t = map_get(&b->holds.targets, name);

    if (t)
        return t;
    t = mem_new(sizeof(*t) + name.n);
    list_init(&t->queues);
    t->name_bytes = name.n;
    if (name.n)
        memcpy(t->name, name.p, name.n);
    if (map_put(&b->holds.targets, (struct str){t->name, name.n}, t) == OK)
        return t;
    free(t);
    return NULL;
}

/* Room in the maps for one more claim, so that hold_begin cannot fail. */
static enum err hold_reserve(struct gatekeeper *b)
{
    size_t n = b->holds.n_claims + 1;
    enum err e = map_reserve(&b->holds.by_task, n);

    return e ? e : map_reserve(&b->holds.lanes, n);
}

void target_release(struct gatekeeper *b, struct target *t)
{
    if (t->n_held || t->n_going)
        return;
    map_take(&b->holds.targets, (struct str){t->name, t->name_bytes});
    free(t);
}

enum err hold_claim(struct gatekeeper *b, struct str agent, struct target **out)
{
    const struct gate_limits *l = &gate_rules_about(b->opts.rules)->limits;
    struct target *t = target_get(b, agent);

    if (!t)
        return ERR_NOMEM;
    if (b->stats.held + (int64_t)b->holds.n_claims >= l->most ||
        (int64_t)(t->n_held - t->n_batched) >= l->most_per_agent) {
        target_release(b, t);
        return ERR_AGENT_BUSY;
    }
    if (hold_reserve(b) != OK) {
        target_release(b, t);
        return ERR_NOMEM;
    }
    t->n_held++;
    b->holds.n_claims++;
    *out = t;
    return OK;
}

struct hold *hold_admit(struct gatekeeper *b, const struct hold *like,
                        struct hold_why *why)
{
    struct target *t = target_get(b, like->agent);

    if (t && hold_reserve(b) == OK) {
        t->n_held++;
        b->holds.n_claims++;
        return hold_new(b, like, why, t);
    }
    if (t)
        target_release(b, t);
    free(why);
    return NULL;
}

static void lane_join(struct hold *h)
{
    struct map *lanes = &h->gatekeeper->holds.lanes;
    struct lane *l = map_get(lanes, h->order_key);
    struct list_node *n;

    if (!l) {
        l = mem_new(sizeof(*l) + h->order_key.n);
        list_init(&l->holds);
        l->key_bytes = h->order_key.n;
        if (h->order_key.n)
            memcpy(l->key, h->order_key.p, h->order_key.n);
        if (map_put(lanes, (struct str){l->key, l->key_bytes}, l) != OK)
            abort(); /* the claim reserved it */
    }
    h->lane = l;
    for (n = l->holds.head.prev; n != &l->holds.head; n = n->prev)
        if (LIST_OF(n, struct hold, lane_node)->place <= h->place)
            break;
    list_insert_before(n->next, &h->lane_node);
}

/* The next hold of its order gets its turn. */
static void lane_leave(struct hold *h)
{
    struct lane *l = h->lane;
    struct list_node *first;

    list_remove(&h->lane_node);
    h->lane = NULL;
    first = list_first(&l->holds);
    if (first) {
        wait_look(LIST_OF(first, struct hold, lane_node));
        return;
    }
    map_take(&h->gatekeeper->holds.lanes, (struct str){l->key, l->key_bytes});
    free(l);
}

bool hold_is_first(const struct hold *h)
{
    return list_first(&h->lane->holds) == &h->lane_node;
}

struct hold_why *hold_why_of(const struct gate_result *p)
{
    struct str reason = str_of(p->reason);
    size_t n = p->rule.n + reason.n;
    struct hold_why *w;
    char *at;

    for (size_t i = 0; i < p->n_keys; i++)
        n += p->keys[i].name.n + p->keys[i].type.n;
    n += p->n_keys * (sizeof(struct wait_key) + sizeof(struct waiter));
    w = mem_new(sizeof(*w) + n);
    w->answer = p->answer;
    w->cause = p->cause;
    w->until_ms = p->held_until_ms;
    w->on_expiry = p->on_expiry;
    w->batch_most = p->batch_most;
    w->n_keys = p->n_keys;
    w->keys = (struct wait_key *)(void *)(w + 1);
    w->waiters = (struct waiter *)(void *)(w->keys + p->n_keys);
    at = (char *)(w->waiters + p->n_keys);
    w->rule = str_pack(&at, p->rule);
    w->reason = str_pack(&at, reason);
    for (size_t i = 0; i < p->n_keys; i++) {
        w->keys[i] = p->keys[i];
        w->keys[i].name = str_pack(&at, p->keys[i].name);
        w->keys[i].type = str_pack(&at, p->keys[i].type);
    }
    return w;
}

struct hold *hold_new(struct gatekeeper *b, const struct hold *like,
                      struct hold_why *why, struct target *t)
{
    struct hold *h = mem_new(sizeof(*h) + record_bytes(like, &hold_table, 1));
    char *at = h->strings;

    *h = *like;
    record_pack(h, &hold_table, 1, &at);
    h->gatekeeper = b;
    h->state = HOLD_CLAIMED;
    h->why = why;
    h->target = t;
    h->longest_ms = why->until_ms - like->since_ms;
    h->timer.fire = hold_on_timer;
    return h;
}

static struct value keys_value(const struct hold_why *w, struct buf *text)
{
    for (size_t i = 0; i < w->n_keys; i++) {
        if (i)
            buf_add_char(text, '\n');
        wait_key_write(&w->keys[i], text);
    }
    return value_text_or_null(buf_str(text));
}

static void why_to_row(const struct hold *h, const struct hold_why *w,
                       struct tx_op *op)
{
    struct buf text;

    buf_init(&text, 64 * 1024);
    tx_set(op, HOLD_ANSWER, value_int(w->answer));
    tx_set(op, HOLD_CAUSE, value_int(w->cause));
    tx_set(op, HOLD_RULE, value_text_or_null(w->rule));
    tx_set(op, HOLD_REASON, value_text(w->reason));
    tx_set(op, HOLD_KEYS, keys_value(w, &text));
    tx_set(op, HOLD_UNTIL_MS, value_int(w->until_ms));
    tx_set(op, HOLD_ON_EXPIRY, value_int(w->on_expiry));
    tx_set(op, HOLD_APPROVED, value_int(h->is_approved | h->has_run_out << 1));
    tx_set(op, HOLD_BATCH_MOST, value_int(w->batch_most));
    tx_set(op, HOLD_BATCH, value_text_or_null(str_of(h->batch.text)));
    if (text.over)
        op->tx->build_error = ERR_NOMEM;
    buf_fini(&text);
}

void hold_write(const struct hold *h, struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &hold_table);

    record_to_tx(op, h, 1);
    why_to_row(h, h->why, op);
}

void hold_write_why(const struct hold *h, const struct hold_why *w,
                    struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &hold_table);

    tx_if(op, HOLD_TASK_ID, IS, value_text(str_of(h->task_id.text)));
    why_to_row(h, w, op);
}

void hold_write_batch(const struct hold *h, const struct hold_why *w,
                      struct id batch, struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &hold_table);

    tx_if(op, HOLD_TASK_ID, IS, value_text(str_of(h->task_id.text)));
    why_to_row(h, w, op);
    tx_set(op, HOLD_BATCH, value_text(str_of(batch.text)));
}

/* Without a guard: a missing row is fine. */
void hold_unwrite(struct str task_id, struct tx *tx)
{
    struct tx_op *op = tx_prune(tx, &hold_table, 1);

    tx_if(op, HOLD_TASK_ID, IS, value_text(task_id));
}

static void set_hold_timer(struct hold *h, int64_t delay_ms)
{
    struct gatekeeper *b = h->gatekeeper;

    if (!b->is_stopping)
        loop_timer_set(b->opts.loop, &h->timer, delay_ms);
}

/* The earlier of its end and its WAIT_TIME keys. */
static void start_timer(struct hold *h)
{
    struct loop *l = h->gatekeeper->opts.loop;
    int64_t in_ms = h->due_mono_ms - loop_mono_ms(l);
    const struct hold_why *w = h->why;

    if (h->batch.text[0]) {
        loop_timer_cancel(l, &h->timer);
        return;
    }
    for (size_t i = 0; i < w->n_keys; i++) {
        int64_t at_ms = w->keys[i].at_ms - loop_wall_ms(l);

        if (w->keys[i].kind != WAIT_TIME)
            continue;
        if (at_ms < TIME_LEAST_MS)
            at_ms = TIME_LEAST_MS;
        if (at_ms < in_ms)
            in_ms = at_ms;
    }
    set_hold_timer(h, in_ms > 0 ? in_ms : 0);
}

void hold_on_timer(struct timer *t)
{
    struct hold *h = LIST_OF(t, struct hold, timer);

    /* A member of a batch was let go; the batch has its own time. */
    if (!h->batch.text[0] &&
        loop_mono_ms(h->gatekeeper->opts.loop) >= h->due_mono_ms)
        h->is_due = true;
    else
        start_timer(h); /* in case it stays held */
    wait_look(h);
}

/* By the wall clock, the only one that survives a restart. */
static int64_t left_ms(const struct hold *h, int64_t now_ms)
{
    int64_t whole_ms = h->why->until_ms - h->since_ms;
    int64_t left = h->why->until_ms - now_ms;

    if (left > whole_ms)
        left = whole_ms;
    return left > 0 ? left : 0;
}

static void set_hold_due(struct hold *h)
{
    struct loop *l = h->gatekeeper->opts.loop;

    h->due_mono_ms = loop_mono_ms(l) + left_ms(h, loop_wall_ms(l));
    h->is_due = false;
    start_timer(h);
}

static void count_room(struct hold *h, int by)
{
    if (h->why->cause == PASS_CAPACITY)
        h->target->n_room += (size_t)by;
}

/* A member of a batch does not count as held, although its row says so. */
static void count_hold(struct hold *h, int by)
{
    struct gatekeeper *b = h->gatekeeper;

    if (h->batch.text[0]) {
        b->holds.n_batched += (size_t)by;
        h->target->n_batched += (size_t)by;
        return;
    }
    b->stats.held += by;
    if (b->stats.held > b->stats.held_most)
        b->stats.held_most = b->stats.held;
}

void hold_join_batch(struct hold *h, struct id batch)
{
    count_hold(h, -1);
    h->batch = batch;
    count_hold(h, 1);
    batch_carry(h);
}

static void place_join(struct hold *h)
{
    struct list *all = &h->gatekeeper->holds.by_place;
    struct list_node *n;

    for (n = all->head.prev; n != &all->head; n = n->prev)
        if (LIST_OF(n, struct hold, place_node)->place <= h->place)
            break;
    list_insert_before(n->next, &h->place_node);
}

void hold_begin(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;

    assert(h->state == HOLD_CLAIMED);
    list_remove(&h->place_node); /* from holds.arriving */
    h->state = HOLD_WAITS;
    b->holds.n_claims--;
    if (map_put(&b->holds.by_task, str_of(h->task_id.text), h) != OK)
        abort(); /* the claim reserved it */
    place_join(h);
    lane_join(h);
    count_room(h, 1);
    count_hold(h, 1);
    wait_join(h);
    set_hold_due(h);
    wait_look(h);
    if (h->batch.text[0])
        batch_carry(h);
}

void hold_free(struct hold *h)
{
    struct gatekeeper *b;

    if (!h)
        return;
    b = h->gatekeeper;
    loop_timer_cancel(b->opts.loop, &h->timer);
    if (h->state == HOLD_CLAIMED) {
        list_remove(&h->place_node);
        b->holds.n_claims--;
    } else {
        map_take(&b->holds.by_task, str_of(h->task_id.text));
        wait_gone(h);
        list_remove(&h->place_node);
        wait_leave(h);
        count_room(h, -1);
        lane_leave(h);
        count_hold(h, -1);
    }
    h->target->n_going -= h->is_going;
    h->target->n_held--;
    target_release(b, h->target);
    free(h->next);
    free(h->why);
    free(h);
}

/* If the end stays the same, so does the deadline. */
void hold_rekey(struct hold *h, struct hold_why *why)
{
    bool is_same_end = why->until_ms == h->why->until_ms;

    wait_leave(h);
    count_room(h, -1);
    free(h->why);
    h->why = why;
    count_room(h, 1);
    wait_join(h);
    if (is_same_end)
        start_timer(h);
    else
        set_hold_due(h);
}

/* Cut the new end so that all decisions together hold it no longer than the
 * longest of them. */
void hold_bound(struct hold *h, struct hold_why *why, int64_t now_ms)
{
    int64_t gives_ms = why->until_ms - now_ms;

    if (gives_ms > h->longest_ms)
        h->longest_ms = gives_ms;
    if (why->until_ms > h->since_ms + h->longest_ms)
        why->until_ms = h->since_ms + h->longest_ms;
}

struct hold *hold_find(const struct gatekeeper *b, struct str task_id)
{
    return map_get(&b->holds.by_task, task_id);
}

void hold_later(struct hold *h)
{
    set_hold_timer(h, AGAIN_MS);
}

void hold_end_task(struct gatekeeper *b, const struct id *id,
                   const struct task_result *r)
{
    enum err e = b->opts.end(b->opts.ctx, str_of(id->text), r, NULL, NULL);

    if (e)
        log_warn(b->opts.log, "walk.not_ended", LOG_C("task_id", id->text),
                 LOG_C("because", err_row(e)->wording));
}

static void end_overdue(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;
    struct id id = h->task_id;
    struct why why;

    why_err(&why, OK, "it was held for the longest time allowed: %.*s",
            STR_ARG(h->why->reason));
    set_hold_timer(h, GATEKEEPER_LOOK_MS); /* in case it does not happen */
    hold_end_task(b, &id,
                  &(struct task_result){.status = TASK_EXPIRED,
                                        .error_code = STR("held_too_long"),
                                        .error = str_of(why.text)});
}

void hold_look(struct gatekeeper *b, struct str task_id)
{
    struct hold *h = hold_find(b, task_id);

    b->stats.looks_total++;
    if (h->batch.text[0]) {
        batch_look(h);
    } else if (h->is_due && h->why->on_expiry == EXPIRY_EXPIRE) {
        if (b->opts.end)
            end_overdue(h);
    } else if (b->opts.on_ripe) {
        struct id id = id_from(task_id);

        h->is_to_move = true;
        b->opts.on_ripe(b->opts.ctx, str_of(id.text));
        h = hold_find(b, str_of(id.text));
        if (h && h->is_to_move) /* out of memory */
            hold_later(h);
    }
}

void hold_result(const struct hold *h, const struct hold_why *why,
                 struct gate_result *out)
{
    *out = (struct gate_result){.answer = why->answer,
                                .cause = why->cause,
                                .rule = why->rule,
                                .priority = h->priority,
                                .held_until_ms = why->until_ms,
                                .on_expiry = why->on_expiry,
                                .batch_most = why->batch_most,
                                .n_keys = why->n_keys};
    if (why->reason.n)
        memcpy(out->reason, why->reason.p, why->reason.n);
    for (size_t i = 0; i < why->n_keys; i++)
        out->keys[i] = why->keys[i];
}

void hold_envelope(const struct hold *h, struct envelope *out)
{
    *out = (struct envelope){.from = h->from,
                             .to = h->agent,
                             .type = h->type,
                             .reference = h->reference,
                             .scope = h->scope,
                             .priority = h->priority,
                             .at_ms = h->since_ms,
                             .has_entered = true,
                             .is_approved = h->is_approved};
}

void holds_init(struct gatekeeper *b)
{
    struct holds *hs = &b->holds;

    map_init(&hs->by_task, GATEKEEPER_HOLDS_MAX, b->opts.seed);
    map_init(&hs->keys, (size_t)GATEKEEPER_HOLDS_MAX * PASS_KEYS_MAX,
             b->opts.seed);
    map_init(&hs->targets, GATEKEEPER_HOLDS_MAX, b->opts.seed);
    map_init(&hs->lanes, GATEKEEPER_HOLDS_MAX, b->opts.seed);
    list_init(&hs->by_place);
    list_init(&hs->arriving);
    list_init(&hs->moves);
    waits_init(b);
}

void holds_stop(struct gatekeeper *b)
{
    waits_stop(b);
    for (struct list_node *n = list_first(&b->holds.by_place); n;
         n = list_next(&b->holds.by_place, n))
        loop_timer_cancel(b->opts.loop,
                          &LIST_OF(n, struct hold, place_node)->timer);
}

void holds_fini(struct gatekeeper *b)
{
    struct holds *hs = &b->holds;
    struct list_node *n;

    b->is_stopping = true;
    moves_fini(b);
    while ((n = list_first(&hs->arriving)))
        hold_free(LIST_OF(n, struct hold, place_node));
    while ((n = hs->by_place.head.prev) != &hs->by_place.head)
        hold_free(LIST_OF(n, struct hold, place_node));
    waits_fini(b);
    assert(!hs->targets.n && !hs->lanes.n && !hs->n_claims);
    map_fini(&hs->by_task);
    map_fini(&hs->keys);
    map_fini(&hs->targets);
    map_fini(&hs->lanes);
}

bool holds_check(const struct gatekeeper *b)
{
    const struct holds *hs = &b->holds;
    int64_t place = INT64_MIN;
    size_t n = 0;

    for (struct list_node *at = list_first(&hs->by_place); at;
         at = list_next(&hs->by_place, at), n++) {
        const struct hold *h = LIST_OF(at, struct hold, place_node);

        if (hold_find(b, str_of(h->task_id.text)) != h || h->place < place ||
            h->state == HOLD_CLAIMED || !h->target->n_held)
            return false;
        place = h->place;
    }
    return n == hs->by_task.n &&
           (int64_t)(n - hs->n_batched) == b->stats.held &&
           map_check(&hs->by_task) && map_check(&hs->targets) &&
           map_check(&hs->lanes) && waits_check(b);
}
