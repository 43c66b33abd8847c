/* Reports results to the requesting agent: when the task ends, and again
 * whenever the agent comes back, until it acknowledges.
 *
 * A result that ended before the agent came is not in memory. It is read from
 * the row of the task, or of its turn if there was a further one, one result
 * after the other. */
#include "delegation/internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "watch/watch.h"

/* Acknowledgement. */

struct acknowledgement {
    struct tx tx;
    struct delegations *h;
    struct id key;
    const struct tx_op *note; /* NULL: not acknowledged by a note */
    void (*done)(void *ctx, enum err e);
    void *ctx;
};

static void delegation_tell_later(struct live_delegation *x);

/* A row that is gone was acknowledged or has expired: in both cases there is
 * nothing to report. */
static void on_acknowledged(struct tx *tx, void *ctx)
{
    struct acknowledgement *ack = ctx;
    struct delegations *h = ack->h;
    struct live_delegation *x = delegation_of_key(h, str_of(ack->key.text));
    bool is_had = tx->result == TX_COMMITTED || tx->result == TX_GUARD_FAILED;
    enum err e = is_had                   ? OK
                 : tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN
                                          : tx->err;

    if (is_had && x) {
        if (ack->note && tx->result == TX_COMMITTED)
            h->opts.on_noted(h->opts.ctx, &x->d,
                             tx_value(ack->note, NOTE_TEXT).s);
        h->stats.had_total++;
        delegation_drop(x);
    } else if (x) {
        x->is_had = false; /* reported once more, rather than never */
        if (ack->note && e != ERR_STOPPING)
            delegation_tell_later(x);
    }
    if (ack->done)
        ack->done(ack->ctx, e);
    else if (e)
        log_warn(h->opts.log, "hire.not_had", LOG_C("key", ack->key.text),
                 LOG_C("because", err_row(e)->wording));
    tx_fini(tx);
    free(ack);
}

static struct acknowledgement *
acknowledgement_new(struct live_delegation *x,
                    void (*done)(void *ctx, enum err e), void *ctx)
{
    struct delegations *h = x->h;
    struct acknowledgement *ack = mem_new(sizeof(*ack));
    struct tx_op *op;

    ack->h = h;
    ack->key = x->d.key;
    ack->done = done;
    ack->ctx = ctx;
    tx_init(&ack->tx);
    op = tx_update(&ack->tx, &delegation_table);
    tx_if(op, DELEGATION_KEY, IS, value_text(str_of(x->d.key.text)));
    if (PLANTED("hire.forgets_acks")) {
        tx_set(op, DELEGATION_STATE, value_int(DELEGATION_READY));
    } else {
        tx_set(op, DELEGATION_STATE, value_int(DELEGATION_HAD));
        tx_set(op, DELEGATION_EXPIRES_MS,
               value_int(loop_wall_ms(h->opts.loop)));
    }
    return ack;
}

static void acknowledgement_submit(struct live_delegation *x,
                                   struct acknowledgement *ack)
{
    list_remove(&x->tell_node);
    x->is_had = true;
    store_submit(x->h->opts.store, &ack->tx, on_acknowledged, ack);
}

enum err delegation_note(struct delegations *h, struct str key, struct str text,
                         const struct feed_entry *news)
{
    struct live_delegation *x = delegation_of_key(h, key);
    struct acknowledgement *ack;

    if (!x || x->is_had || !x->d.conversation.n)
        return ERR_NOT_FOUND;
    ack = acknowledgement_new(x, NULL, NULL);
    ack->note = delegation_write_note(x, text, &ack->tx);
    feed_append(&ack->tx, news);
    acknowledgement_submit(x, ack);
    return OK;
}

void delegation_is_had(struct live_delegation *x)
{
    acknowledgement_submit(x, acknowledgement_new(x, NULL, NULL));
}

/* A task's id means its oldest turn that is not acknowledged. */
static struct live_delegation *
delegation_oldest_of_task(const struct delegations *h, struct str id)
{
    struct live_delegation *x = delegation_of_task(h, id);

    while (x && x->older)
        x = x->older;
    return x;
}

static struct live_delegation *delegation_find_any(const struct delegations *h,
                                                   struct str agent,
                                                   struct str which)
{
    struct live_delegation *all[] = {
        delegation_of_key(h, which), delegation_oldest_of_task(h, which),
        which.n <= DELEGATION_ID_MAX ? delegation_of_request(h, agent, which)
                                     : NULL};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i] && !all[i]->is_claimed &&
            str_eq_nocase(all[i]->d.agent, agent) &&
            delegation_is_own(h, &all[i]->d))
            return all[i];
    return NULL;
}

enum err delegation_had(struct delegations *h, struct str agent,
                        struct str which, void (*done)(void *ctx, enum err e),
                        void *ctx)
{
    struct live_delegation *x = delegation_find_any(h, agent, which);

    if (!x)
        return ERR_NOT_FOUND;
    if (x->d.state == DELEGATION_OPEN || !list_is_empty(&x->waiters))
        return ERR_TASK_NOT_OVER; /* the waiter is about to be given it */
    acknowledgement_submit(x, acknowledgement_new(x, done, ctx));
    return OK;
}

/* Repeated requests. */

bool delegation_is_known(const struct delegations *h, struct str agent,
                         struct str original_id,
                         const uint8_t body_hash[MSG_BODY_HASH_BYTES])
{
    const struct live_delegation *x =
        delegation_of_request(h, agent, original_id);

    return x && !x->is_claimed && delegation_is_own(h, &x->d) &&
           !PLANTED("hire.no_repeats") &&
           memcmp(x->body_hash, body_hash, MSG_BODY_HASH_BYTES) == 0;
}

bool delegation_gives_way(const struct live_delegation *x)
{
    return x->d.state == DELEGATION_READY && (x->is_told || x->is_had);
}

/* Reporting. */

static void delegation_tell_now(struct live_delegation *x, const struct task *t)
{
    struct delegations *h = x->h;

    if (delegation_tell_waiters(x, t))
        delegation_is_had(x);
    else if (h->opts.on_ready && delegation_is_own(h, &x->d) &&
             !PLANTED("hire.silent"))
        h->opts.on_ready(h->opts.ctx, &x->d, t);
}

static bool task_has_result(const struct live_delegation *x,
                            const struct task *t)
{
    return t && t->turn == x->d.turn && task_is_over(t->status);
}

struct task delegation_gone(const struct delegation *d)
{
    return (struct task){
        .id = d->task_id,
        .turn = d->turn,
        .status = TASK_FAILED,
        .result = {.status = TASK_FAILED,
                   .error_code = STR("result_gone"),
                   .error = STR("the task is over, but its result is not kept "
                                "any more (result_gone)")}};
}

/* Retention removed the row first, or the database was changed. */
static void delegation_tell_gone(struct live_delegation *x)
{
    struct task gone = delegation_gone(&x->d);

    log_warn(x->h->opts.log, "hire.result_gone", LOG_C("key", x->d.key.text),
             LOG_C("task_id", x->d.task_id.text));
    delegation_tell_now(x, &gone);
}

static void delegation_read_done(struct delegations *h)
{
    query_fini(&h->task_query);
    h->is_reading = false;
    if (!list_is_empty(&h->telling))
        loop_at_end(h->opts.loop, &h->tell_job);
}

/* Put x behind the others, and retry all of them after a while: an obstacle for
 * one is mostly one for the next, too. */
static void delegation_tell_later(struct live_delegation *x)
{
    struct delegations *h = x->h;

    if (x->is_had || list_has(&x->tell_node))
        return;
    list_append(&h->telling, &x->tell_node);
    h->is_tired = true;
    delegation_try_again(h);
}

static void delegation_not_read(struct delegations *h,
                                struct live_delegation *x, enum err e)
{
    if (e == ERR_STOPPING)
        return;
    log_warn(h->opts.log, "hire.not_told_yet", LOG_C("key", h->read_key.text),
             LOG_C("because", err_row(e)->wording));
    if (x)
        delegation_tell_later(x);
}

static void on_delegation_turn_row(struct query *q, void *ctx)
{
    struct delegations *h = ctx;
    struct live_delegation *x = delegation_of_key(h, str_of(h->read_key.text));
    struct task t;

    if (q->err) {
        delegation_not_read(h, x, q->err);
    } else if (x && q->rows) {
        task_from_row(&t, h->task_query.rows);
        task_of_turn(&t, q->rows);
        t.turn = x->d.turn;
        delegation_tell_now(x, &t);
    } else if (x) {
        delegation_tell_gone(x);
    }
    query_fini(q);
    delegation_read_done(h);
}

static void on_delegation_task_row(struct query *q, void *ctx)
{
    struct delegations *h = ctx;
    struct live_delegation *x = delegation_of_key(h, str_of(h->read_key.text));
    struct task t;

    if (q->err) {
        delegation_not_read(h, x, q->err);
    } else if (x && q->rows) {
        task_from_row(&t, q->rows);
        if (!task_has_result(x, &t)) {
            query_init(&h->turn_query, &turn_table, 1);
            query_if(&h->turn_query, TURN_TASK_SEQ, IS, value_int(t.seq));
            query_if(&h->turn_query, TURN_NUMBER, IS, value_int(x->d.turn));
            store_read(h->opts.store, &h->turn_query, on_delegation_turn_row,
                       h);
            return;
        }
        delegation_tell_now(x, &t);
    } else if (x) {
        delegation_tell_gone(x);
    }
    delegation_read_done(h);
}

static void delegation_tell_one(struct delegations *h,
                                struct live_delegation *x)
{
    struct str id = str_of(x->d.task_id.text);
    const struct task *t = task_find(h->opts.tasks, id);

    if (task_has_result(x, t)) {
        delegation_tell_now(x, t);
        return;
    }
    h->is_reading = true;
    h->read_key = x->d.key;
    query_init(&h->task_query, &task_table, 1);
    query_if(&h->task_query, TASK_ID, IS, value_text(id));
    store_read(h->opts.store, &h->task_query, on_delegation_task_row, h);
}

void delegation_on_telling(struct loop_job *job)
{
    struct delegations *h = LIST_OF(job, struct delegations, tell_job);
    struct list_node *n;

    for (int i = 0; i < DELEGATION_PER_TURN && !h->is_reading && !h->is_tired;
         i++) {
        n = list_pop(&h->telling);
        if (!n)
            return;
        delegation_tell_one(h, LIST_OF(n, struct live_delegation, tell_node));
    }
    if (!h->is_reading && !h->is_tired)
        loop_next_turn(h->opts.loop, &h->tell_job);
}

void delegation_tell(struct live_delegation *x)
{
    struct delegations *h = x->h;

    if (list_has(&x->tell_node) || x->is_had)
        return;
    list_append(&h->telling, &x->tell_node);
    loop_at_end(h->opts.loop, &h->tell_job);
}

void delegation_told(struct delegations *h, struct str key)
{
    struct live_delegation *x = delegation_of_key(h, key);

    if (x)
        x->is_told = true;
}

void delegation_tell_again(struct delegations *h, struct str key)
{
    struct live_delegation *x = delegation_of_key(h, key);

    if (x && x->d.state == DELEGATION_READY)
        delegation_tell(x);
}

void delegation_not_told(struct delegations *h, struct str key)
{
    struct live_delegation *x = delegation_of_key(h, key);

    if (x && x->d.state == DELEGATION_READY)
        delegation_tell_later(x);
}

void delegation_agent_came(struct delegations *h, struct str agent)
{
    const struct delegator *r = delegator_find(h, agent);

    if (!r)
        return;
    for (struct list_node *n = list_first(&r->ready); n;
         n = list_next(&r->ready, n))
        delegation_tell(LIST_OF(n, struct live_delegation, delegator_node));
}

void delegation_agent_gone(struct delegations *h, struct str agent)
{
    const struct delegator *r = delegator_find(h, agent);

    if (!r)
        return;
    for (struct list_node *n = list_first(&r->ready); n;
         n = list_next(&r->ready, n)) {
        struct live_delegation *x =
            LIST_OF(n, struct live_delegation, delegator_node);

        if (list_is_empty(&x->waiters))
            list_remove(&x->tell_node);
    }
    for (struct list_node *n = list_first(&r->open); n;
         n = list_next(&r->open, n)) {
        struct live_delegation *x =
            LIST_OF(n, struct live_delegation, delegator_node);

        if (x->d.ends_with_line)
            delegation_end(x, FOR_LINE);
    }
}
