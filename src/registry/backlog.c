/* Vectors that cannot be made at once: agents wait in a list, some have a job.
 *
 *     todo -> job: a slice of its texts to the model -> row -> index
 *      ^       |   ^                              |
 *      |       |   +------- ready for the next ---+
 *      |       +-- one of its own texts is rejected -> later, by its own time
 *      +-----------any other failure, and then all wait: the provider is down,
 *                  its queue is full, the disk is full
 *
 * vectors_job.c does the work for one agent.
 *
 * Owners take turns, one slice each, so that the only card of one owner does
 * not wait for the thousands of skills that others have just registered: it is
 * next after one slice of each waiting owner. An owner without a job may begin
 * one even when the others have as many as are allowed.
 *
 * A local model gets small slices, since two of them keep its thread busy; a
 * provider gets slices that make a request of a good size.
 *
 * Pauses grow from a second to five minutes, with some jitter so that several
 * servers do not come back together. After a failure one agent goes first, and
 * the others follow once its row is written. If one agent after the other is
 * rejected, their texts are hardly the reason: then one is tried per second,
 * which floods neither provider nor log, and healthy agents still get a turn.
 *
 * The log says when trouble begins and when it is over, not how often it was
 * retried. If there was a backlog at the start, it also reports progress, every
 * ten seconds with progress.
 *
 * Rejected: giving up on an agent whose texts are rejected. Models and their
 * limits change without notice. */
#include "base/fault.h"
#include "registry/internal.h"

enum {
    JOBS_MAX = 16,
    JOBS_MOST = 64, /* with the first jobs of further owners */
    TURNS_AT_ONCE = 64,

    WAIT_FIRST_MS = 1000,
    WAIT_MAX_MS = 5 * 60 * 1000,
    REFUSED_MAX = 8, /* in a row; from then on one a second */
    PROGRESS_MS = 10 * 1000,
};

static int64_t backlog_now_ms(const struct vectors *v)
{
    return loop_mono_ms(v->r->opts.loop);
}

static void backlog_wake(struct vectors *v)
{
    if (v->is_begun)
        loop_at_end(v->r->opts.loop, &v->kick);
}

void backlog_turn_init(struct backlog_turn *t)
{
    list_init(&t->todo);
    list_init(&t->ready);
}

static struct backlog_turn *backlog_turn(struct vectors *v,
                                         const struct entry *e)
{
    return e->owner && !PLANTED("backlog.one_turn") ? &e->owner->turn
                                                    : &v->nobodys;
}

/* The owner has work. */
static void turn_wait(struct vectors *v, struct backlog_turn *t)
{
    if (!list_has(&t->node))
        list_append(&v->turns, &t->node);
    backlog_wake(v);
}

static void turn_rest(struct backlog_turn *t)
{
    if (list_is_empty(&t->todo) && list_is_empty(&t->ready))
        list_remove(&t->node);
}

void backlog_ready(struct vectors *v, struct vectors_job *j)
{
    struct backlog_turn *t = backlog_turn(v, j->entry);

    list_append(&t->ready, &j->ready);
    v->n_ready++;
    turn_wait(v, t);
}

static struct vectors_job *turn_take_ready(struct vectors *v,
                                           struct backlog_turn *t)
{
    struct list_node *n = list_pop(&t->ready);

    if (!n)
        return NULL;
    v->n_ready--;
    turn_rest(t);
    return LIST_OF(n, struct vectors_job, ready);
}

void backlog_joined(struct vectors *v, struct entry *e)
{
    backlog_turn(v, e)->n_jobs++;
}

void backlog_left(struct vectors *v, struct entry *e, struct vectors_job *j)
{
    struct backlog_turn *t = backlog_turn(v, e);

    t->n_jobs--;
    if (!list_has(&j->ready))
        return;
    list_remove(&j->ready);
    v->n_ready--;
    turn_rest(t);
}

static void backlog_put_todo(struct vectors *v, struct entry *e)
{
    struct backlog_turn *t = backlog_turn(v, e);

    list_append(&t->todo, &e->todo);
    v->n_todo++;
    turn_wait(v, t);
}

static void backlog_put_later(struct vectors *v, struct entry *e,
                              int64_t due_ms)
{
    e->due_ms = due_ms;
    if (due_ms < v->later_ms)
        v->later_ms = due_ms;
    list_append(&v->later, &e->todo);
    v->n_later++;
    backlog_wake(v);
}

/* Remove it from the list it is in. */
static void backlog_take_out(struct vectors *v, struct entry *e)
{
    bool is_later = e->due_ms != 0;

    e->due_ms = 0;
    list_remove(&e->todo);
    if (is_later) {
        v->n_later--;
        return;
    }
    v->n_todo--;
    turn_rest(backlog_turn(v, e));
}

static void backlog_move_due(struct vectors *v, int64_t now)
{
    struct list_node *n = list_first(&v->later), *next;

    if (now < v->later_ms)
        return;
    v->later_ms = INT64_MAX;
    for (; n; n = next) {
        struct entry *e = LIST_OF(n, struct entry, todo);

        next = list_next(&v->later, n);
        if (e->due_ms <= now) {
            backlog_take_out(v, e);
            backlog_put_todo(v, e);
        } else if (e->due_ms < v->later_ms) {
            v->later_ms = e->due_ms;
        }
    }
}

/* Count one more waiting agent, or one less. */
static void count_awaited(struct registry *r, const struct entry *e, int by)
{
    r->stats.unembedded += by;
    if (e->owner)
        e->owner->n_awaited += (size_t)by;
}

/* A waiting entry had vectors of another model. */
static void entry_outdated(struct registry *r, struct entry *e)
{
    if (!e->is_outdated)
        r->vectors->n_outdated++;
    e->is_outdated = true;
}

/* It has new vectors, or will not have them soon. */
static void entry_not_outdated(struct vectors *v, struct entry *e)
{
    if (e->is_outdated)
        v->n_outdated--;
    e->is_outdated = false;
}

static int64_t backlog_wait_ms(struct vectors *v, unsigned nth)
{
    int64_t ms = WAIT_FIRST_MS;

    while (nth-- > 1 && ms < WAIT_MAX_MS)
        ms *= 2;
    v->chance = v->chance * UINT64_C(6364136223846793005) + 1442695040888963407;
    ms += (int64_t)((v->chance >> 33) % (uint64_t)(ms / 4));
    return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

/* Not the fault of one agent: all wait. Further failures within the same pause
 * are not news. */
static void backlog_fail_all(struct vectors *v, enum err e, const char *why)
{
    int64_t now = backlog_now_ms(v);

    if (v->n_failures && now < v->again_ms)
        return;
    if (!v->n_failures++)
        log_warn(v->r->opts.log, "registry.vectors_wait",
                 LOG_C("error", err_row(e)->code), LOG_C("why", why),
                 LOG_I("agents", v->r->stats.unembedded));
    v->round++;
    v->again_ms = now + backlog_wait_ms(v, v->n_failures);
    backlog_wake(v);
}

void backlog_failed(struct vectors *v, struct entry *e, enum err err,
                    const char *why)
{
    if (err == ERR_STOPPING) {
        if (e)
            backlog_put_later(v, e, backlog_now_ms(v) + WAIT_FIRST_MS);
        return;
    }
    v->r->stats.embed_failures_total++;
    if (e && (err == ERR_BAD_REQUEST || err == ERR_LIMIT)) {
        int64_t now = backlog_now_ms(v);

        entry_not_outdated(v, e);
        if (!e->n_refusals++)
            log_warn(v->r->opts.log, "registry.vectors_refused",
                     LOG_S("agent", e->agent.name), LOG_C("why", why));
        if (++v->n_refused >= REFUSED_MAX && v->again_ms < now + WAIT_FIRST_MS)
            v->again_ms = now + WAIT_FIRST_MS;
        backlog_put_later(v, e, now + backlog_wait_ms(v, e->n_refusals));
        return;
    }
    if (e)
        backlog_put_todo(v, e);
    backlog_fail_all(v, err, why);
}

void backlog_overtaken(struct vectors *v, struct entry *e)
{
    if (e)
        backlog_put_later(v, e, backlog_now_ms(v) + WAIT_FIRST_MS);
    else
        backlog_wake(v);
}

/* The provider or the store has recovered, unless the failure began after this
 * job. */
static void backlog_recovered(struct vectors *v, struct entry *e,
                              uint64_t round)
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

void backlog_made(struct vectors *v, struct entry *e, uint64_t round)
{
    e->is_embedded = true;
    entry_not_outdated(v, e);
    count_awaited(v->r, e, -1);
    v->progress.done++;
    backlog_recovered(v, e, round);
    backlog_wake(v);
}

struct backlog_slices backlog_slices(const struct vectors *v)
{
    bool is_far = embed_stats(v->r->opts.embed).kind == EMBED_HTTP;

    return is_far ? (struct backlog_slices){64, 256}
                  : (struct backlog_slices){16, 32};
}

static bool turn_may_begin(const struct vectors *v,
                           const struct backlog_turn *t, int64_t now)
{
    size_t most = v->n_failures || v->n_refused >= REFUSED_MAX ? 1
                  : t->n_jobs                                  ? JOBS_MAX
                                                               : JOBS_MOST;

    return !list_is_empty(&t->todo) && v->n_jobs < most && now >= v->again_ms &&
           !vectors_obstacle(v->r);
}

/* Give a slice to the next owner that can use it; false: there is none. */
static bool backlog_take_turn(struct vectors *v, int64_t now)
{
    size_t texts_out = backlog_slices(v).texts_out;

    if (v->n_texts_out >= texts_out)
        return false;
    for (size_t i = 0; i < TURNS_AT_ONCE && !list_is_empty(&v->turns); i++) {
        struct backlog_turn *t =
            LIST_OF(list_pop(&v->turns), struct backlog_turn, node);
        struct vectors_job *j;

        list_append(&v->turns, &t->node);
        j = turn_take_ready(v, t);
        if (j)
            vectors_job_go_on(j);
        else if (turn_may_begin(v, t, now)) {
            struct entry *e = LIST_OF(list_first(&t->todo), struct entry, todo);

            backlog_take_out(v, e);
            vectors_job_begin(v, e);
        } else
            continue;
        return true;
    }
    /* The ready jobs belong to owners further down the list. */
    if (v->n_ready)
        loop_next_turn(v->r->opts.loop, &v->kick);
    return false;
}

static void backlog_log_progress(struct vectors *v, const char *event)
{
    log_info(v->r->opts.log, event, LOG_I("done", v->progress.done),
             LOG_I("total", v->progress.done + v->r->stats.unembedded),
             LOG_I("refused", (int64_t)v->n_later),
             LOG_C("model", v->stamp.name));
    v->progress.said = v->progress.done;
}

static void backlog_begin_progress(struct vectors *v, int64_t now)
{
    if (v->progress.is_on || !v->is_begun || !v->r->stats.unembedded)
        return;
    v->progress.is_on = true;
    v->progress.done = 0;
    v->progress.next_ms = now + PROGRESS_MS;
    backlog_log_progress(v, "registry.vectors_begun");
}

static void backlog_report_progress(struct vectors *v, int64_t now)
{
    if (!v->progress.is_on)
        return;
    if (!v->n_todo && !v->n_jobs) {
        backlog_log_progress(v, v->n_later ? "registry.vectors_made_in_part"
                                           : "registry.vectors_made");
        v->progress.is_on = false;
    } else if (now >= v->progress.next_ms) {
        if (v->progress.said != v->progress.done)
            backlog_log_progress(v, "registry.vectors_going_on");
        v->progress.next_ms = now + PROGRESS_MS;
    }
}

static void backlog_set_timer(struct vectors *v, int64_t now)
{
    int64_t at = v->later_ms;

    if (v->n_todo && v->again_ms > now && v->again_ms < at)
        at = v->again_ms;
    if (v->progress.is_on && v->progress.next_ms < at)
        at = v->progress.next_ms;
    if (at == INT64_MAX)
        loop_timer_cancel(v->r->opts.loop, &v->timer);
    else
        loop_timer_set(v->r->opts.loop, &v->timer, at > now ? at - now : 0);
}

static void backlog_on_wake(struct loop_job *job)
{
    struct vectors *v = LIST_OF(job, struct vectors, kick);
    int64_t now = backlog_now_ms(v);

    if (!v->is_begun)
        return;
    backlog_move_due(v, now);
    while (backlog_take_turn(v, now))
        ;
    backlog_report_progress(v, now);
    backlog_set_timer(v, now);
}

static void backlog_on_timer(struct timer *t)
{
    backlog_wake(LIST_OF(t, struct vectors, timer));
}

void vectors_want(struct registry *r, struct entry *e)
{
    if (!r->vectors || e->job || list_has(&e->todo))
        return;
    e->is_embedded = false;
    count_awaited(r, e, 1);
    backlog_put_todo(r->vectors, e);
}

void vectors_forget(struct registry *r, struct entry *e)
{
    struct vectors_job *j = e->job;

    if (!j && !list_has(&e->todo))
        return;
    count_awaited(r, e, -1);
    entry_not_outdated(r->vectors, e);
    if (list_has(&e->todo)) {
        backlog_take_out(r->vectors, e);
        backlog_wake(r->vectors);
        return;
    }
    backlog_left(r->vectors, e, j);
    e->job = NULL;
    j->entry = NULL;
    (void)vectors_job_drop(j);
    backlog_wake(r->vectors);
}

void vectors_want_all(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = agent_entry(r->list[i]);

        if (e->is_embedded) {
            vectors_want(r, e);
            entry_outdated(r, e);
        }
    }
    backlog_begin_progress(r->vectors, backlog_now_ms(r->vectors));
}

void vectors_begin(struct registry *r)
{
    struct vectors *v = r->vectors;

    if (!v)
        return;
    if (!v->stamp.dims) /* of a snapshot, whose model is this one */
        v->stamp.dims = index_dims(r->index);
    v->is_begun = true;
    v->timer.fire = backlog_on_timer;
    v->kick.run = backlog_on_wake;
    backlog_begin_progress(v, backlog_now_ms(v));
    backlog_wake(v);
    levels_begin(r);
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
    levels_stop(r);
    for (n = list_first(&v->jobs); n; n = next) {
        struct vectors_job *j = LIST_OF(n, struct vectors_job, node);
        struct entry *e = j->entry;

        next = list_next(&v->jobs, n);
        if (vectors_job_drop(j) && e)
            backlog_put_todo(v, e);
    }
}

/* Only what is theirs counts, and is counted where it changes: so a search does
 * not walk over what others wait for, nor tell of it. */
size_t vectors_awaited(const struct registry *r, const struct eyes *eyes)
{
    const struct owner *o = owner_find(r, eyes->user);
    const struct entry *self = entry_find(r, eyes->self);
    size_t n = eyes->sees_all ? (size_t)r->stats.unembedded
               : o            ? o->n_awaited
                              : 0;

    if (n && self && (self->job || list_has(&self->todo)) &&
        (eyes->sees_all || self->owner == o))
        n--;
    return n;
}
