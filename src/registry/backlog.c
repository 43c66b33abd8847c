/* Vectors that cannot be had at once: agents wait in a list, some are out.
 *
 *     todo -> job: texts to the model, some at a time -> row -> index
 *      ^       |
 *      |       +-- one of its own texts is refused -> later, by its own time
 *      +-----------anything else, and then all wait: the provider is down, too
 *                  much waits, the disk is full
 *
 * vectors_job.c does what is done for one agent.
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
#include "registry/internal.h"

enum {
    JOBS_MAX = 16,
    TEXTS_OUT_MAX = 256, /* of all jobs, to begin another */

    WAIT_FIRST_MS = 1000,
    WAIT_MAX_MS = 5 * 60 * 1000,
    REFUSED_MAX = 8, /* in a row; from there on one a second */
    PROGRESS_MS = 10 * 1000,
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

/* One more that waits, or one less. */
static void count_awaited(struct registry *r, const struct entry *e, int by)
{
    r->stats.unembedded += by;
    if (e->owner)
        e->owner->n_awaited += (size_t)by;
}

void vectors_anew(struct registry *r, struct entry *e)
{
    if (!e->is_anew)
        r->vectors->n_anew++;
    e->is_anew = true;
}

/* It has them, or will not have them soon. */
static void not_anew(struct vectors *v, struct entry *e)
{
    if (e->is_anew)
        v->n_anew--;
    e->is_anew = false;
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

    not_anew(v, e);
    if (!e->n_refusals++)
        log_warn(v->r->opts.log, "registry.vectors_refused",
                 LOG_S("agent", e->agent.name), LOG_C("why", why));
    if (++v->n_refused >= REFUSED_MAX && v->again_ms < now + WAIT_FIRST_MS)
        v->again_ms = now + WAIT_FIRST_MS;
    put_later(v, e, now + wait_ms(v, e->n_refusals));
}

void backlog_failed(struct vectors *v, struct entry *e, enum err err,
                    const char *why)
{
    if (err == ERR_STOPPING) {
        if (e)
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

void backlog_overtaken(struct vectors *v, struct entry *e)
{
    if (e)
        put_later(v, e, now_ms(v) + WAIT_FIRST_MS);
    else
        kick(v);
}

/* Whatever was wrong with the provider or the store is over, unless it began
 * after this one had. */
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

void backlog_made(struct vectors *v, struct entry *e, uint64_t round)
{
    e->is_embedded = true;
    not_anew(v, e);
    count_awaited(v->r, e, -1);
    v->progress.done++;
    all_is_well(v, e, round);
    kick(v);
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
             LOG_I("refused", (int64_t)v->n_later),
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
        say_progress(v, v->n_later ? "registry.vectors_made_in_part"
                                   : "registry.vectors_made");
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
    while (may_begin(v, now)) {
        struct entry *e = LIST_OF(list_first(&v->todo), struct entry, todo);

        take_out(v, e);
        vectors_job_begin(v, e);
    }
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
    count_awaited(r, e, 1);
    put_todo(r->vectors, e);
}

void vectors_forget(struct registry *r, struct entry *e)
{
    struct vectors_job *j = e->job;

    if (!j && !list_has(&e->todo))
        return;
    count_awaited(r, e, -1);
    not_anew(r->vectors, e);
    if (list_has(&e->todo)) {
        take_out(r->vectors, e);
        kick(r->vectors);
        return;
    }
    e->job = NULL;
    j->entry = NULL;
    (void)vectors_job_drop(j);
    kick(r->vectors);
}

void vectors_want_all(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = entry_of(r->list[i]);

        if (e->is_embedded) {
            vectors_want(r, e);
            vectors_anew(r, e);
        }
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
            put_todo(v, e);
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
