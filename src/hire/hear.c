/* Who asked hears what came of it: when it ends, and again whenever they come
 * back, until they say that they have it.
 *
 * A result that was over before they came is not in memory any more; it is read
 * from the task's row, or from that of its turn if there was a further one, one
 * after the other. */
#include "hire/internal.h"

#include <stdlib.h>

#include "watch/watch.h"

/* They have it. */

struct had {
    struct tx tx;
    struct hires *h;
    struct id key;
    const struct tx_op *note; /* NULL: they have it otherwise */
    void (*done)(void *ctx, enum err e);
    void *ctx;
};

static void tell_later(struct hire *x);

/* A row that is gone was had, or too old: nobody is told of it either way. */
static void on_had(struct tx *tx, void *ctx)
{
    struct had *had = ctx;
    struct hires *h = had->h;
    struct hire *x = hire_of_key(h, str_of(had->key.text));
    bool is_had = tx->result == TX_COMMITTED || tx->result == TX_GUARD_FAILED;
    enum err e = is_had                   ? OK
                 : tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN
                                          : tx->err;

    if (is_had && x) {
        if (had->note && tx->result == TX_COMMITTED)
            h->opts.on_noted(h->opts.ctx, &x->d,
                             tx_value(had->note, NOTE_TEXT).s);
        h->stats.had_total++;
        hire_drop(x);
    } else if (x) {
        x->is_had = false; /* told once more, rather than never */
        if (had->note && e != ERR_STOPPING)
            tell_later(x);
    }
    if (had->done)
        had->done(had->ctx, e);
    else if (e)
        log_warn(h->opts.log, "hire.not_had", LOG_C("key", had->key.text),
                 LOG_C("because", err_row(e)->wording));
    tx_fini(tx);
    free(had);
}

static struct had *had_new(struct hire *x, void (*done)(void *ctx, enum err e),
                           void *ctx)
{
    struct hires *h = x->h;
    struct had *had = FAULT("hire.had") ? NULL : calloc(1, sizeof(*had));
    struct tx_op *op;

    if (!had)
        return NULL;
    had->h = h;
    had->key = x->d.key;
    had->done = done;
    had->ctx = ctx;
    tx_init(&had->tx);
    op = tx_update(&had->tx, &delegation_table);
    tx_if(op, DELEGATION_KEY, IS, value_text(str_of(x->d.key.text)));
    if (PLANTED("hire.forgets_acks")) {
        tx_set(op, DELEGATION_STATE, value_int(DELEGATION_READY));
    } else {
        tx_set(op, DELEGATION_STATE, value_int(DELEGATION_HAD));
        tx_set(op, DELEGATION_EXPIRES_MS,
               value_int(loop_wall_ms(h->opts.loop)));
    }
    return had;
}

static void submit(struct hire *x, struct had *had)
{
    list_remove(&x->tell_node);
    x->is_had = true;
    store_submit(x->h->opts.store, &had->tx, on_had, had);
}

static enum err submit_had(struct hire *x, void (*done)(void *ctx, enum err e),
                           void *ctx)
{
    struct had *had = had_new(x, done, ctx);

    if (!had)
        return ERR_NOMEM;
    submit(x, had);
    return OK;
}

enum err hire_note(struct hires *h, struct str key, struct str text,
                   const struct feed_entry *news)
{
    struct hire *x = hire_of_key(h, key);
    struct had *had;

    if (!x || x->is_had || !x->d.conversation.n)
        return ERR_NOT_FOUND;
    had = had_new(x, NULL, NULL);
    if (!had)
        return ERR_NOMEM;
    had->note = hire_write_note(x, text, &had->tx);
    feed_append(&had->tx, news);
    submit(x, had);
    return OK;
}

void hire_is_had(struct hire *x)
{
    enum err e = submit_had(x, NULL, NULL);

    if (e)
        log_warn(x->h->opts.log, "hire.not_had", LOG_C("key", x->d.key.text),
                 LOG_C("because", err_row(e)->wording));
}

/* The first of its turns that is not had yet is what a task's id stands for. */
static struct hire *oldest_of_task(const struct hires *h, struct str id)
{
    struct hire *x = hire_of_task(h, id);

    while (x && x->older)
        x = x->older;
    return x;
}

static struct hire *find_any(const struct hires *h, struct str agent,
                             struct str which)
{
    struct hire *all[] = {
        hire_of_key(h, which), oldest_of_task(h, which),
        which.n <= DELEGATION_ID_MAX ? hire_of_request(h, agent, which) : NULL};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i] && !all[i]->is_claimed &&
            str_eq_nocase(all[i]->d.agent, agent) && hire_is_own(h, &all[i]->d))
            return all[i];
    return NULL;
}

enum err hire_had(struct hires *h, struct str agent, struct str which,
                  void (*done)(void *ctx, enum err e), void *ctx)
{
    struct hire *x = find_any(h, agent, which);

    if (!x)
        return ERR_NOT_FOUND;
    if (x->d.state == DELEGATION_OPEN || !list_is_empty(&x->waiters))
        return ERR_TASK_NOT_OVER; /* who waits is about to be given it */
    return submit_had(x, done, ctx);
}

/* They ask again. */

bool hire_is_known(const struct hires *h, struct str agent,
                   struct str original_id,
                   const uint8_t body_hash[MSG_BODY_HASH_BYTES])
{
    const struct hire *x = hire_of_request(h, agent, original_id);

    return x && !x->is_claimed && hire_is_own(h, &x->d) &&
           !PLANTED("hire.no_repeats") &&
           memcmp(x->body_hash, body_hash, MSG_BODY_HASH_BYTES) == 0;
}

bool hire_gives_way(const struct hire *x)
{
    return x->d.state == DELEGATION_READY && (x->is_told || x->is_had);
}

/* They are told. */

static void tell_now(struct hire *x, const struct task *t)
{
    struct hires *h = x->h;

    if (hire_tell_waiters(x, t))
        hire_is_had(x);
    else if (h->opts.on_ready && hire_is_own(h, &x->d) &&
             !PLANTED("hire.silent"))
        h->opts.on_ready(h->opts.ctx, &x->d, t);
}

static bool has_result(const struct hire *x, const struct task *t)
{
    return t && t->turn == x->d.turn && task_is_over(t->status);
}

struct task hire_gone(const struct delegation *d)
{
    return (struct task){
        .id = d->task_id,
        .turn = d->turn,
        .status = TASK_FAILED,
        .result = {.status = TASK_FAILED,
                   .error_code = STR("result_gone"),
                   .error = STR("it is over, but its result is not kept any "
                                "more (result_gone)")}};
}

/* Retention was there before them, or the database is not what it was. */
static void tell_gone(struct hire *x)
{
    struct task gone = hire_gone(&x->d);

    log_warn(x->h->opts.log, "hire.result_gone", LOG_C("key", x->d.key.text),
             LOG_C("task_id", x->d.task_id.text));
    tell_now(x, &gone);
}

static void read_done(struct hires *h)
{
    query_fini(&h->task_query);
    h->is_reading = false;
    if (!list_is_empty(&h->telling))
        loop_at_end(h->opts.loop, &h->tell_job);
}

/* Behind the others, and all of them after a while: what stands in the way of
 * one mostly does in that of the next, too. */
static void tell_later(struct hire *x)
{
    struct hires *h = x->h;

    if (x->is_had || list_has(&x->tell_node))
        return;
    list_append(&h->telling, &x->tell_node);
    h->is_tired = true;
    hire_try_again(h);
}

static void not_read(struct hires *h, struct hire *x, enum err e)
{
    if (e == ERR_STOPPING)
        return;
    log_warn(h->opts.log, "hire.not_told_yet", LOG_C("key", h->read_key.text),
             LOG_C("because", err_row(e)->wording));
    if (x)
        tell_later(x);
}

static void on_turn_row(struct query *q, void *ctx)
{
    struct hires *h = ctx;
    struct hire *x = hire_of_key(h, str_of(h->read_key.text));
    struct task t;

    if (q->err) {
        not_read(h, x, q->err);
    } else if (x && q->rows) {
        task_from_row(&t, h->task_query.rows);
        task_of_turn(&t, q->rows);
        t.turn = x->d.turn;
        tell_now(x, &t);
    } else if (x) {
        tell_gone(x);
    }
    query_fini(q);
    read_done(h);
}

static void read_turn(struct hires *h, const struct hire *x,
                      const struct task *t)
{
    query_init(&h->turn_query, &turn_table, 1);
    query_if(&h->turn_query, TURN_TASK_SEQ, IS, value_int(t->seq));
    query_if(&h->turn_query, TURN_NUMBER, IS, value_int(x->d.turn));
    store_read(h->opts.store, &h->turn_query, on_turn_row, h);
}

static void on_task_row(struct query *q, void *ctx)
{
    struct hires *h = ctx;
    struct hire *x = hire_of_key(h, str_of(h->read_key.text));
    struct task t;

    if (q->err) {
        not_read(h, x, q->err);
    } else if (x && q->rows) {
        task_from_row(&t, q->rows);
        if (!has_result(x, &t)) {
            read_turn(h, x, &t);
            return;
        }
        tell_now(x, &t);
    } else if (x) {
        tell_gone(x);
    }
    read_done(h);
}

static void tell_one(struct hires *h, struct hire *x)
{
    struct str id = str_of(x->d.task_id.text);
    const struct task *t = task_find(h->opts.tasks, id);

    if (has_result(x, t)) {
        tell_now(x, t);
        return;
    }
    h->is_reading = true;
    h->read_key = x->d.key;
    query_init(&h->task_query, &task_table, 1);
    query_if(&h->task_query, TASK_ID, IS, value_text(id));
    store_read(h->opts.store, &h->task_query, on_task_row, h);
}

void hire_on_telling(struct loop_job *job)
{
    struct hires *h = LIST_OF(job, struct hires, tell_job);
    struct list_node *n;

    for (int i = 0; i < HIRE_PER_TURN && !h->is_reading && !h->is_tired; i++) {
        n = list_pop(&h->telling);
        if (!n)
            return;
        tell_one(h, LIST_OF(n, struct hire, tell_node));
    }
    if (!h->is_reading && !h->is_tired)
        loop_next_turn(h->opts.loop, &h->tell_job);
}

void hire_tell(struct hire *x)
{
    struct hires *h = x->h;

    if (list_has(&x->tell_node) || x->is_had)
        return;
    list_append(&h->telling, &x->tell_node);
    loop_at_end(h->opts.loop, &h->tell_job);
}

void hire_told(struct hires *h, struct str key)
{
    struct hire *x = hire_of_key(h, key);

    if (x)
        x->is_told = true;
}

void hire_tell_again(struct hires *h, struct str key)
{
    struct hire *x = hire_of_key(h, key);

    if (x && x->d.state == DELEGATION_READY)
        hire_tell(x);
}

void hire_not_told(struct hires *h, struct str key)
{
    struct hire *x = hire_of_key(h, key);

    if (x && x->d.state == DELEGATION_READY)
        tell_later(x);
}

void hire_agent_came(struct hires *h, struct str agent)
{
    const struct hirer *r = hirer_find(h, agent);

    if (!r)
        return;
    for (struct list_node *n = list_first(&r->ready); n;
         n = list_next(&r->ready, n))
        hire_tell(LIST_OF(n, struct hire, hirer_node));
}

void hire_agent_gone(struct hires *h, struct str agent)
{
    const struct hirer *r = hirer_find(h, agent);

    if (!r)
        return;
    for (struct list_node *n = list_first(&r->ready); n;
         n = list_next(&r->ready, n)) {
        struct hire *x = LIST_OF(n, struct hire, hirer_node);

        if (list_is_empty(&x->waiters))
            list_remove(&x->tell_node);
    }
    for (struct list_node *n = list_first(&r->open); n;
         n = list_next(&r->open, n)) {
        struct hire *x = LIST_OF(n, struct hire, hirer_node);

        if (x->d.ends_with_line)
            hire_end(x, FOR_LINE);
    }
}
