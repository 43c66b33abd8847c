/* Vectors that cannot be had at once: agents wait in a list, some are out.
 *
 *     todo -> job: texts to the model, some at a time -> row -> index
 *      ^       |
 *      |       +-- one of its own texts is refused -> later, by its own time
 *      +-----------anything else, and then all wait: the provider is down, too
 *                  much waits, the disk is full
 *
 * What comes back is written under the guard that the card is still that of
 * the revision it was made from, and only then put into the index: so a change
 * that came between wins, and its agent is in the list anew. A job knows its
 * entry until that goes (vectors_forget); then it ends as soon as it can and
 * does nothing any more.
 *
 * Waits grow from a second to five minutes, with some chance in them so that
 * several servers do not come back together. After a failure one agent goes
 * first and the others follow once its row is written. Where one agent after
 * the other is refused it is hardly their texts: then one is tried a second,
 * so that nobody is flooded and whoever is fine has its turn all the same.
 *
 * The log says when trouble begins and when it is over, never how often it was
 * tried; and how far it is, every ten seconds in which something was done,
 * where there was a backlog to begin with.
 *
 * Turned down: giving up on an agent whose texts are refused. Models and their
 * limits change without anybody telling us. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

enum {
    JOBS_MAX = 16,
    TEXTS_OUT_MAX = 256, /* of all jobs, to begin another */
    BATCH_TEXTS = 64,
    BATCH_BYTES = 128 * 1024, /* and one text more */
    TEXTS_BYTES_MAX = 8 * 1024 * 1024,

    WAIT_FIRST_MS = 1000,
    WAIT_MAX_MS = 5 * 60 * 1000,
    REFUSED_MAX = 8, /* in a row; from there on one a second */
    PROGRESS_MS = 10 * 1000,
};

static_assert((int)BATCH_TEXTS <= (int)EMBED_BATCH_MAX,
              "one call takes a batch");

struct vectors_job {
    struct list_node node;
    struct vectors *all;
    struct entry *entry; /* NULL: it has gone, or another took its place */
    uint64_t round;      /* how often all had failed when it began */
    struct arena arena;
    struct strs texts;
    size_t at;       /* the first text that has not been asked for */
    size_t n_asked;  /* that are out */
    size_t batch;    /* so many at a time */
    uint64_t ask_id; /* of embed; zero: none */
    struct buf packed;
    struct index_change *change;
    char org[PRINCIPAL_NAME_MAX + 1]; /* that the change was made for */
    struct tx tx;
    bool is_written; /* the store has the tx */
};

static int64_t now_ms(const struct vectors *v)
{
    return loop_mono_ms(v->r->opts.loop);
}

static void kick(struct vectors *v)
{
    if (v->is_begun)
        loop_at_end(v->r->opts.loop, &v->kick);
}

/* Lists. */

static void put_todo(struct vectors *v, struct entry *e)
{
    list_append(&v->todo, &e->todo);
    v->n_todo++;
    kick(v);
}

static void put_later(struct vectors *v, struct entry *e, int64_t due_ms)
{
    e->due_ms = due_ms;
    if (due_ms < v->later_ms)
        v->later_ms = due_ms;
    list_append(&v->later, &e->todo);
    v->n_later++;
    kick(v);
}

/* Whichever of the two it is in. */
static void take_out(struct vectors *v, struct entry *e)
{
    if (e->due_ms)
        v->n_later--;
    else
        v->n_todo--;
    e->due_ms = 0;
    list_remove(&e->todo);
}

static void move_due(struct vectors *v, int64_t now)
{
    struct list_node *n = list_first(&v->later), *next;

    if (now < v->later_ms)
        return;
    v->later_ms = INT64_MAX;
    for (; n; n = next) {
        struct entry *e = LIST_OF(n, struct entry, todo);

        next = list_next(&v->later, n);
        if (e->due_ms <= now) {
            take_out(v, e);
            put_todo(v, e);
        } else if (e->due_ms < v->later_ms) {
            v->later_ms = e->due_ms;
        }
    }
}

/* Jobs. */

static struct vectors_job *job_new(struct vectors *v, struct entry *e)
{
    struct vectors_job *j = FAULT("vectors.job") ? NULL : calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->all = v;
    j->entry = e;
    j->round = v->round;
    j->batch = BATCH_TEXTS;
    arena_init(&j->arena, TEXTS_BYTES_MAX);
    buf_init(&j->packed, VECTORS_BYTES_MAX);
    tx_init(&j->tx);
    list_append(&v->jobs, &j->node);
    v->n_jobs++;
    e->job = j;
    return j;
}

/* Its entry, if it has one still, is nowhere then. */
static void job_free(struct vectors_job *j)
{
    struct vectors *v = j->all;

    assert(!j->ask_id && !j->is_written);
    if (j->entry)
        j->entry->job = NULL;
    list_remove(&j->node);
    v->n_jobs--;
    if (j->change)
        index_forget(v->r->index, j->change);
    tx_fini(&j->tx);
    buf_fini(&j->packed);
    arena_fini(&j->arena);
    free(j);
    kick(v);
}

static void job_unask(struct vectors_job *j)
{
    if (!j->ask_id)
        return;
    embed_cancel(j->all->r->opts.embed, j->ask_id);
    j->ask_id = 0;
    j->all->n_texts_out -= j->n_asked;
    j->n_asked = 0;
}

/* Failures. */

static int64_t wait_ms(struct vectors *v, unsigned nth)
{
    int64_t ms = WAIT_FIRST_MS;

    while (nth-- > 1 && ms < WAIT_MAX_MS)
        ms *= 2;
    v->chance = v->chance * UINT64_C(6364136223846793005) + 1442695040888963407;
    ms += (int64_t)((v->chance >> 33) % (uint64_t)(ms / 4));
    return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

/* It is not one agent's fault: all wait. Those that fail in the same wait say
 * nothing new. */
static void fail_all(struct vectors *v, enum err e, const char *why)
{
    int64_t now = now_ms(v);

    if (v->n_failures && now < v->again_ms)
        return;
    if (!v->n_failures++)
        log_warn(v->r->opts.log, "registry.vectors_wait",
                 LOG_C("error", err_row(e)->code), LOG_C("why", why),
                 LOG_I("agents", v->r->stats.unembedded));
    v->round++;
    v->again_ms = now + wait_ms(v, v->n_failures);
    kick(v);
}

static void fail_one(struct vectors *v, struct entry *e, const char *why)
{
    int64_t now = now_ms(v);

    if (!e->n_refusals++)
        log_warn(v->r->opts.log, "registry.vectors_refused",
                 LOG_S("agent", e->agent.name), LOG_C("why", why));
    if (++v->n_refused >= REFUSED_MAX && v->again_ms < now + WAIT_FIRST_MS)
        v->again_ms = now + WAIT_FIRST_MS;
    put_later(v, e, now + wait_ms(v, e->n_refusals));
}

static void fail_job(struct vectors_job *j, enum err err, const char *why)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    job_free(j);
    if (e && err == ERR_STOPPING) {
        put_later(v, e, now_ms(v) + WAIT_FIRST_MS);
        return;
    }
    v->r->stats.embed_failures_total++;
    if (e && (err == ERR_BAD_REQUEST || err == ERR_LIMIT)) {
        fail_one(v, e, why);
        return;
    }
    if (e)
        put_todo(v, e);
    fail_all(v, err, why);
}

static void fail_nomem(struct vectors_job *j)
{
    fail_job(j, ERR_NOMEM, err_row(ERR_NOMEM)->wording);
}

/* An agent's row is written: whatever was wrong with the provider or the store
 * is over, unless it began after this one had. */
static void all_is_well(struct vectors *v, struct entry *e, uint64_t round)
{
    if (e->n_refusals)
        log_info(v->r->opts.log, "registry.vectors_taken",
                 LOG_S("agent", e->agent.name));
    e->n_refusals = 0;
    v->n_refused = 0;
    if (round != v->round)
        return;
    if (v->n_failures)
        log_info(v->r->opts.log, "registry.vectors_again",
                 LOG_I("agents", v->r->stats.unembedded));
    v->n_failures = 0;
    v->again_ms = 0;
}

/* From the row into the index. */

/* Before the row is written, so that the index can follow the commit. False:
 * no memory. */
static bool prepare_index(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    const struct agent *a = &j->entry->agent;
    struct buf own;
    bool is_ready;

    buf_init(&own, VECTORS_BYTES_MAX);
    is_ready = vectors_for_index(r, a, buf_str(&j->packed), &own) &&
               !index_prepare(r->index, a, (const uint8_t *)own.p, &j->change);
    buf_fini(&own);
    snprintf(j->org, sizeof(j->org), "%.*s", STR_ARG(a->org));
    return is_ready;
}

static void put_into_index(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    struct entry *e = j->entry;

    index_put(r->index, e->number, j->change);
    j->change = NULL;
    if (str_eq(e->agent.org, str_of(j->org)))
        return;
    /* Its creator has moved meanwhile. Rather found by nobody than by whom it
     * is not for. */
    if (index_move(r->index, e->number, index_class_of(&e->agent)) != OK) {
        index_drop(r->index, e->number);
        log_error(r->opts.log, "registry.not_moved",
                  LOG_S("agent", e->agent.name));
    }
}

static void settle(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;
    uint64_t round = j->round;

    seq_settle(v->r);
    if (!e) {
        job_free(j);
        return;
    }
    put_into_index(j);
    job_free(j);
    e->is_embedded = true;
    v->r->stats.unembedded--;
    v->progress.done++;
    all_is_well(v, e, round);
}

/* Another card is there: its entry has come, or comes any moment. */
static void step_back(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    job_free(j);
    if (e)
        put_later(v, e, now_ms(v) + WAIT_FIRST_MS);
}

static void on_written(struct tx *tx, void *ctx)
{
    struct vectors_job *j = ctx;

    j->is_written = false;
    switch (tx->result) {
    case TX_COMMITTED: settle(j); break;
    case TX_GUARD_FAILED: step_back(j); break;
    case TX_REFUSED:
    case TX_FATAL: fail_job(j, tx->err, err_row(tx->err)->wording); break;
    }
}

static void write_row(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    const struct agent *a = &j->entry->agent;
    struct tx_op *op;

    if (!prepare_index(j)) {
        fail_nomem(j);
        return;
    }
    op = tx_expect(&j->tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(j->entry->key));
    tx_if(op, AGENT_REVISION, IS, value_int(a->revision));
    vectors_append(r, &j->tx, a, buf_str(&j->packed));
    seq_append(r, &j->tx);
    j->is_written = true;
    store_submit(r->opts.store, &j->tx, on_written, j);
}

/* From texts to the row. */

static void on_vectors(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why);

/* Where it is not known yet how long they are, a batch is never too many. */
static size_t n_wanted(const struct vectors_job *j)
{
    uint32_t dims = j->all->stamp.dims;

    return dims ? vectors_kept(&j->entry->agent, dims) : j->texts.n;
}

static size_t next_batch(const struct vectors_job *j)
{
    size_t most = n_wanted(j) - j->at, bytes = 0, n = 0;

    if (most > j->batch)
        most = j->batch;
    while (n < most && bytes < BATCH_BYTES)
        bytes += j->texts.list[j->at + n++].n;
    return n;
}

static void ask(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct why why = {""};
    enum err e;

    for (;;) {
        j->n_asked = next_batch(j);
        e = embed_start(v->r->opts.embed, j->texts.list + j->at, j->n_asked,
                        EMBED_DOCUMENT, on_vectors, j, &j->ask_id, &why);
        if (e != ERR_LIMIT || j->n_asked < 2)
            break;
        j->batch = j->n_asked / 2; /* so many could never wait */
    }
    if (e) {
        j->ask_id = 0;
        fail_job(j, e, why.text);
        return;
    }
    v->n_texts_out += j->n_asked;
}

/* What came is of the length that the index has. */
static bool is_usable(const struct vectors *v, const struct embed_result *r)
{
    return r->stamp.dims && r->stamp.dims == v->stamp.dims;
}

static void on_vectors(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why)
{
    struct vectors_job *j = ctx;
    struct vectors *v = j->all;
    uint32_t dims;

    (void)id;
    j->ask_id = 0;
    v->n_texts_out -= j->n_asked;
    if (e) {
        fail_job(j, e, why->text);
        return;
    }
    vectors_learn(v->r);
    dims = v->stamp.dims;
    if (vectors_obstacle(v->r) || !is_usable(v, r)) {
        fail_job(j, ERR_BAD_REQUEST, "its vectors are of no use");
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!vectors_pack(&j->packed, r->vectors + i * dims, dims)) {
            fail_nomem(j);
            return;
        }
    j->at += j->n_asked;
    j->n_asked = 0;
    if (j->at < n_wanted(j))
        ask(j);
    else
        write_row(j);
}

/* False: nothing more is to be begun now. */
static bool begin_one(struct vectors *v)
{
    struct entry *e = LIST_OF(list_first(&v->todo), struct entry, todo);
    struct vectors_job *j = job_new(v, e);

    if (!j) {
        fail_all(v, ERR_NOMEM, err_row(ERR_NOMEM)->wording);
        return false;
    }
    take_out(v, e);
    if (vectors_texts(&j->arena, &e->agent, &j->texts))
        fail_nomem(j);
    else
        ask(j);
    return true;
}

/* When. */

static bool may_begin(const struct vectors *v, int64_t now)
{
    size_t most = v->n_failures || v->n_refused >= REFUSED_MAX ? 1 : JOBS_MAX;

    return v->n_todo && v->n_jobs < most && v->n_texts_out < TEXTS_OUT_MAX &&
           now >= v->again_ms && !vectors_obstacle(v->r);
}

static void say_progress(struct vectors *v, const char *event)
{
    log_info(v->r->opts.log, event, LOG_I("done", v->progress.done),
             LOG_I("total", v->progress.done + v->r->stats.unembedded),
             LOG_C("model", v->stamp.name));
    v->progress.said = v->progress.done;
}

static void begin_progress(struct vectors *v, int64_t now)
{
    if (v->progress.is_on || !v->is_begun || !v->r->stats.unembedded)
        return;
    v->progress.is_on = true;
    v->progress.done = 0;
    v->progress.next_ms = now + PROGRESS_MS;
    say_progress(v, "registry.vectors_begun");
}

static void report(struct vectors *v, int64_t now)
{
    if (!v->progress.is_on)
        return;
    if (!v->n_todo && !v->n_jobs) {
        say_progress(v, "registry.vectors_made");
        v->progress.is_on = false;
    } else if (now >= v->progress.next_ms) {
        if (v->progress.said != v->progress.done)
            say_progress(v, "registry.vectors_going_on");
        v->progress.next_ms = now + PROGRESS_MS;
    }
}

static void set_timer(struct vectors *v, int64_t now)
{
    int64_t at = v->later_ms;

    if (v->n_todo && v->again_ms > now && v->again_ms < at)
        at = v->again_ms;
    if (v->progress.is_on && v->progress.next_ms < at)
        at = v->progress.next_ms;
    if (at == INT64_MAX)
        loop_timer_cancel(v->r->opts.loop, &v->timer);
    else if (loop_timer_set(v->r->opts.loop, &v->timer,
                            at > now ? at - now : 0))
        loop_next_turn(v->r->opts.loop, &v->kick);
}

static void on_kick(struct loop_job *job)
{
    struct vectors *v = LIST_OF(job, struct vectors, kick);
    int64_t now = now_ms(v);

    if (!v->is_begun)
        return;
    move_due(v, now);
    while (may_begin(v, now) && begin_one(v))
        ;
    report(v, now);
    set_timer(v, now);
}

static void on_timer(struct timer *t)
{
    kick(LIST_OF(t, struct vectors, timer));
}

/* What others ask for. */

void vectors_want(struct registry *r, struct entry *e)
{
    if (!r->vectors || e->job || list_has(&e->todo))
        return;
    e->is_embedded = false;
    r->stats.unembedded++;
    put_todo(r->vectors, e);
}

void vectors_forget(struct registry *r, struct entry *e)
{
    struct vectors_job *j = e->job;

    if (!j && !list_has(&e->todo))
        return;
    r->stats.unembedded--;
    if (list_has(&e->todo)) {
        take_out(r->vectors, e);
        kick(r->vectors);
        return;
    }
    e->job = NULL;
    j->entry = NULL;
    job_unask(j);
    if (!j->is_written)
        job_free(j);
}

void vectors_want_all(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = entry_of(r->list[i]);

        if (e->is_embedded)
            vectors_want(r, e);
    }
    begin_progress(r->vectors, now_ms(r->vectors));
}

void vectors_begin(struct registry *r)
{
    struct vectors *v = r->vectors;

    if (!v)
        return;
    if (!v->stamp.dims) /* of a snapshot, whose model is this one */
        v->stamp.dims = index_dims(r->index);
    v->is_begun = true;
    v->timer.fire = on_timer;
    v->kick.run = on_kick;
    begin_progress(v, now_ms(v));
    kick(v);
}

/* Rows that the store has are given back by it, whenever that is. */
void vectors_stop(struct registry *r)
{
    struct vectors *v = r->vectors;
    struct list_node *n, *next;

    if (!v || !v->is_begun)
        return;
    v->is_begun = false;
    loop_timer_cancel(r->opts.loop, &v->timer);
    loop_not_at_end(&v->kick);
    for (n = list_first(&v->jobs); n; n = next) {
        struct vectors_job *j = LIST_OF(n, struct vectors_job, node);
        struct entry *e = j->entry;

        next = list_next(&v->jobs, n);
        job_unask(j);
        if (j->is_written)
            continue;
        job_free(j);
        if (e)
            put_todo(v, e);
    }
}

static size_t count_visible(const struct list *l, const struct eyes *eyes)
{
    size_t n = 0;

    for (struct list_node *at = list_first(l); at; at = list_next(l, at)) {
        const struct agent *a = &LIST_OF(at, struct entry, todo)->agent;

        n += agent_is_visible(a, eyes) && !str_eq_nocase(a->name, eyes->self);
    }
    return n;
}

size_t vectors_awaited(const struct registry *r, const struct eyes *eyes)
{
    const struct vectors *v = r->vectors;
    struct list_node *n;
    size_t count;

    if (!v)
        return 0;
    count = count_visible(&v->todo, eyes) + count_visible(&v->later, eyes);
    for (n = list_first(&v->jobs); n; n = list_next(&v->jobs, n)) {
        const struct entry *e = LIST_OF(n, struct vectors_job, node)->entry;

        count += e && agent_is_visible(&e->agent, eyes) &&
                 !str_eq_nocase(e->agent.name, eyes->self);
    }
    return count;
}
