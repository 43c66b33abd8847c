/* The desks: what waits for each agent, and who may go next.
 *
 * At one desk the higher priority goes first, and among equals whoever was
 * accepted first. That alone would let a stream of urgent work starve the rest,
 * so whoever has waited at the desk longest is passed by DESK_PASSED_MAX others
 * in a row at most, and then goes. An errand is in two structures for this: the
 * heap of its priority, by place, and the list of arrivals.
 *
 * Among desks the higher priority of the agent goes first and equals take
 * turns, one errand each: this matters while fewer may go than want to, because
 * of the limit of all in flight or because the turn's share is used up. A desk
 * is in d->ready as long as it may have something to do. One that has found
 * that it cannot do it (its agent is away, as much is in flight as may be, the
 * breaker is open) leaves, and whoever changes that calls desk_wake; so an
 * event costs the same however many desks there are.
 *
 * Limits, priority and address are the agent's as it is when its desk is
 * served. Agents that change are therefore nothing to hurry about: after a
 * change all desks are looked at once, a bounded number at a time. */
#include "deliver/desk.h"

#include <assert.h>
#include <stdlib.h>

enum {
    GO_PER_TURN = 256,
    LOOK_MS = 1000, /* after a change of the agents */
    LOOK_AT_ONCE = 256,
    LOOK_ON_MS = 10, /* and then the next ones */
    NOTHING_MS = 3600 * 1000,
};

/* Finding and making. */

static struct str key_of(struct str name, char out[DESK_NAME_BYTES])
{
    return str_lowered(name, out, AGENT_NAME_MAX);
}

struct desk *desk_find(const struct deliver *d, struct str agent)
{
    char key[DESK_NAME_BYTES];

    return map_get(&d->desks, key_of(agent, key));
}

static void on_pause_over(struct timer *t);

struct desk *desk_named(struct deliver *d, struct str agent)
{
    struct desk *k = desk_find(d, agent);

    if (k)
        return k;
    k = FAULT("deliver.desk") ? NULL : calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    if (map_put(&d->desks, key_of(agent, k->name), k) != OK) {
        free(k);
        return NULL;
    }
    for (int p = 0; p < DESK_PRIORITIES; p++)
        timers_init(&k->waiting[p]);
    list_init(&k->arrivals);
    list_init(&k->below);
    k->deliver = d;
    k->pause.fire = on_pause_over;
    list_append(&d->all_desks, &k->node);
    return k;
}

struct desk *desk_of(struct deliver *d, const struct agent *a)
{
    struct desk *k = desk_named(d, a->name);

    if (!k)
        return NULL;
    k->priority = a->limits.priority;
    desk_show(d, k); /* from its first task on */
    return k;
}

const struct agent *desk_agent(const struct deliver *d, const struct desk *k)
{
    return d->opts.agent_of(d->opts.ctx, str_of(k->name));
}

static void desk_free(struct deliver *d, struct desk *k)
{
    wakes_forget(d, str_of(k->name));
    map_take(&d->desks, str_of(k->name));
    loop_timer_cancel(d->opts.loop, &k->pause);
    list_remove(&k->node);
    list_remove(&k->ready);
    for (int p = 0; p < DESK_PRIORITIES; p++)
        timers_fini(&k->waiting[p]);
    if (k->is_open)
        d->stats.breakers_open--;
    desk_hide(d, k);
    patron_leave(d, k->patron);
    free(k->doom);
    free(k->past);
    hour_free(k);
    free(k);
}

static void free_if_unused(struct deliver *d, struct desk *k)
{
    if (!k->n_waiting && !k->n_in_flight && !k->n_holds && !desk_agent(d, k))
        desk_free(d, k);
}

void desk_hold(struct desk *k)
{
    k->n_holds++;
}

/* If it was the last to be in the way, the next look finds it. */
void desk_release(struct desk *k)
{
    assert(k->n_holds > 0);
    k->n_holds--;
}

/* Those with something to do. */

static void ready_add(struct ready_desks *r, struct desk *k)
{
    int64_t at = AGENT_PRIORITY_MAX - k->priority; /* the first is highest */

    if (at < 0)
        at = 0;
    if (at >= READY_LISTS)
        at = READY_LISTS - 1;
    list_append(&r->lists[at], &k->ready);
    r->is_used[at / 64] |= UINT64_C(1) << (at % 64);
}

static struct desk *ready_first(struct ready_desks *r)
{
    for (size_t w = 0; w < sizeof(r->is_used) / sizeof(*r->is_used); w++)
        while (r->is_used[w]) {
            unsigned bit = (unsigned)__builtin_ctzll(r->is_used[w]);
            struct list_node *n = list_first(&r->lists[w * 64 + bit]);

            if (n)
                return LIST_OF(n, struct desk, ready);
            r->is_used[w] &= ~(UINT64_C(1) << bit);
        }
    return NULL;
}

/* When the job waits for the next turn, this one's share is used up. */
static void go_soon(struct deliver *d)
{
    if (!list_has(&d->go_job.node) && !d->is_stopping)
        loop_at_end(d->opts.loop, &d->go_job);
}

void desk_wake(struct deliver *d, struct desk *k)
{
    if (!list_has(&k->ready))
        ready_add(&d->ready, k);
    go_soon(d);
}

void desk_look(struct deliver *d, struct desk *k)
{
    list_remove(&k->ready);
    desk_wake(d, k);
}

static void on_pause_over(struct timer *t)
{
    struct desk *k = LIST_OF(t, struct desk, pause);

    desk_wake(k->deliver, k);
}

static void look_in(struct deliver *d, int64_t delay_ms)
{
    enum err set;

    if (d->again.at_ms <= loop_mono_ms(d->opts.loop) + delay_ms)
        return; /* sooner than that */
    set = loop_timer_set(d->opts.loop, &d->again, delay_ms);
    assert(set == OK); /* it has its place, or has just left it */
    (void)set;
}

void desk_wake_later(struct deliver *d, struct desk *k)
{
    list_remove(&k->ready);
    list_append(&d->stuck, &k->ready);
    look_in(d, LOOK_MS);
}

/* Without memory for the timer of its own it is looked at a second later. */
static void wake_in(struct deliver *d, struct desk *k, int64_t delay_ms)
{
    if (loop_timer_set(d->opts.loop, &k->pause, delay_ms) != OK)
        desk_wake_later(d, k);
}

/* What waits. */

enum err desk_add(struct deliver *d, struct desk *k, struct errand *e)
{
    /* `place` of the task is its order in the heap. */
    enum err err =
        timers_set(&k->waiting[e->priority], &e->place, e->place.at_ms);

    if (err)
        return err;
    e->desk = k;
    e->state = ERRAND_WAITING;
    e->offered_ms = loop_mono_ms(d->opts.loop);
    list_append(&k->arrivals, &e->arrival);
    k->n_waiting++;
    d->stats.waiting++;
    if (e->is_below) {
        list_append(&k->below, &e->below);
        list_remove(&k->ready); /* it may be put away: this one may go */
    }
    desk_wake(d, k);
    return OK;
}

void desk_take(struct deliver *d, struct errand *e)
{
    struct desk *k = e->desk;

    if (list_first(&k->arrivals) == &e->arrival)
        k->n_passed = 0;
    timers_cancel(&k->waiting[e->priority], &e->place);
    list_remove(&e->arrival);
    list_remove(&e->below);
    e->state = ERRAND_RESTING;
    e->desk = NULL;
    k->n_waiting--;
    d->stats.waiting--;
}

/* Who goes next; NULL when nobody waits. */
static struct errand *next_of(struct desk *k)
{
    struct list_node *oldest = list_first(&k->arrivals);
    int p = 0;

    if (!oldest)
        return NULL;
    if (k->n_passed >= DESK_PASSED_MAX)
        return LIST_OF(oldest, struct errand, arrival);
    while (!k->waiting[p].n)
        p++;
    if (errand_at(&k->waiting[p], 0) != LIST_OF(oldest, struct errand, arrival))
        k->n_passed++;
    return errand_at(&k->waiting[p], 0);
}

void desk_begun(struct delivery *y)
{
    struct desk *k = y->errand->desk;

    k->n_in_flight++;
    y->is_probe = breaker_ask(&k->breaker);
    patron_begun(y, k->patron);
}

void desk_done(struct desk *k, struct delivery *y)
{
    assert(k->n_in_flight > 0);
    k->n_in_flight--;
    desk_wake(k->deliver, k);
    patron_done(k->deliver, y->patron);
    y->patron = NULL;
}

/* What waits for an agent that did not come. */

static struct desk_doom *doom_new(int64_t before_ms,
                                  const struct delivery_failure *f)
{
    struct desk_doom *m = FAULT("deliver.doom")
                              ? NULL
                              : malloc(sizeof(*m) + f->code.n + f->words.n);

    if (!m)
        return NULL;
    m->before_ms = before_ms;
    m->failure = *f;
    if (f->code.n)
        memcpy(m->strings, f->code.p, f->code.n);
    if (f->words.n)
        memcpy(m->strings + f->code.n, f->words.p, f->words.n);
    m->failure.code.p = m->strings;
    m->failure.words.p = m->strings + f->code.n;
    return m;
}

/* Without memory they go on waiting, and their agent is called once more. */
void desk_fail(struct deliver *d, struct desk *k, int64_t before_ms,
               const struct delivery_failure *f)
{
    struct desk_doom *m = doom_new(before_ms, f);

    if (m) {
        free(k->doom);
        k->doom = m;
    }
    desk_look(d, k);
}

/* Whether one of them failed just now. */
static bool fail_one(struct deliver *d, struct desk *k)
{
    struct list_node *n = list_first(&k->arrivals);
    struct errand *e = n ? LIST_OF(n, struct errand, arrival) : NULL;

    if (!e || e->offered_ms >= k->doom->before_ms) {
        free(k->doom);
        k->doom = NULL;
        return false;
    }
    desk_take(d, e);
    desk_attempt_failed(k, &k->doom->failure, true);
    errand_fail(d, e, &k->doom->failure);
    return true;
}

/* Pauses. */

enum err deliver_pause(struct deliver *d, struct str agent, struct str by,
                       int64_t at_ms)
{
    struct desk *k = desk_named(d, agent);

    if (!k)
        return ERR_NOMEM;
    if (!k->is_paused)
        desk_hold(k);
    k->is_paused = true;
    hour_paused(k, by, at_ms);
    return OK;
}

void deliver_resume(struct deliver *d, struct str agent)
{
    struct desk *k = desk_find(d, agent);

    if (!k || !k->is_paused)
        return;
    k->is_paused = false;
    desk_release(k);
    desk_look(d, k);
}

bool deliver_is_paused(const struct deliver *d, struct str agent)
{
    const struct desk *k = desk_find(d, agent);

    return k && k->is_paused;
}

/* Serving. */

/* It was away and has come, by whichever road: nobody need be woken any more,
 * and what was to fail for that need not. */
static void arrive(struct deliver *d, struct desk *k)
{
    k->is_away = false;
    wakes_forget(d, str_of(k->name));
    free(k->doom);
    k->doom = NULL;
    desk_arrived(k);
}

static void call(struct deliver *d, struct desk *k, const struct agent *a)
{
    struct agent_url url;

    if (k->n_waiting && agent_url_read(a->url, &url, NULL) == OK &&
        road_of(&url)->call)
        road_of(&url)->call(d, k, a, &url);
}

/* Who is full for a moment is not away: what it failed before counts. */
static enum presence look_for(struct deliver *d, struct desk *k,
                              const struct agent *a)
{
    enum presence p = agent_presence(d, a);

    if (p == AWAY)
        k->is_away = true;
    else if (k->is_away)
        arrive(d, k);
    return p;
}

bool desk_is_full(const struct deliver *d, const struct desk *k,
                  const struct agent *a)
{
    int64_t most =
        a->limits.in_flight ? a->limits.in_flight : d->opts.settings.in_flight;

    return (int64_t)k->n_in_flight >= most ||
           k->n_in_flight >= share_of_agent(d);
}

static bool is_shut(struct deliver *d, struct desk *k)
{
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (breaker_may(&k->breaker, now_ms))
        return false;
    if (k->breaker.state == BREAKER_OPEN)
        wake_in(d, k, k->breaker.until_ms - now_ms);
    return true; /* else what is out comes back, and wakes it */
}

enum served {
    SERVED_ALL,  /* nothing to do here until somebody wakes it */
    SERVED_SOME, /* there may be more */
    PUT_AWAY,    /* it waits in a list of somebody else's */
};

/* k is put away while others have all that may be on its way. */
static bool is_put_away(struct deliver *d, struct desk *k)
{
    if (patron_holds(d, k))
        return true;
    if (d->n_on_the_way < d->opts.settings.max_in_flight)
        return false;
    ready_add(&d->able, k);
    return true;
}

/* Who may go now; NULL: something is in the way. What is part of other work
 * goes beyond the limits that are shared, else those who wait for it would keep
 * it from going: how much there is of it is limited where it is accepted. */
static struct errand *able_of(struct deliver *d, struct desk *k,
                              const struct agent *a)
{
    struct list_node *n = list_first(&k->below);

    if (k->is_called || k->is_paused || desk_is_full(d, k, a) || is_shut(d, k))
        return NULL;
    patron_take(d, k, a);
    if (!is_put_away(d, k))
        return next_of(k);
    if (n)
        list_remove(&k->ready);
    return n ? LIST_OF(n, struct errand, below) : NULL;
}

/* One errand of k, if it may go. Whether its agent is there is asked also when
 * nothing waits but failures are remembered: those were before it went away;
 * and before anything fails because it is not. */
static enum served serve(struct deliver *d, struct desk *k)
{
    const struct agent *a;
    struct errand *e;

    if (!k->n_waiting && !k->doom && !k->breaker.n_failures)
        return SERVED_ALL;
    a = desk_agent(d, k);
    if (a) {
        k->priority = a->limits.priority;
        k->is_called = look_for(d, k, a) != PRESENT;
    }
    if (k->doom && fail_one(d, k))
        return SERVED_SOME;
    if (a && k->is_called)
        call(d, k, a);
    if (!k->n_waiting)
        return SERVED_ALL;
    e = a ? able_of(d, k, a) : next_of(k);
    if (!e)
        return list_has(&k->ready) ? PUT_AWAY : SERVED_ALL;
    desk_take(d, e);
    errand_go(d, e, k); /* for an agent that is gone, on_go says no */
    return k->n_waiting || k->doom ? SERVED_SOME : SERVED_ALL;
}

static bool has_share(struct deliver *d)
{
    if (d->go_turn != loop_turn_number(d->opts.loop)) {
        d->go_turn = loop_turn_number(d->opts.loop);
        d->n_gone = 0;
    }
    return d->n_gone < GO_PER_TURN;
}

/* The limit of all is in the way of those alone that could go: what fails, or
 * whose agent is to be woken, is served all the same. */
static struct desk *next_desk(struct deliver *d)
{
    struct desk *k = ready_first(&d->ready), *able = NULL;

    if (d->n_on_the_way < d->opts.settings.max_in_flight)
        able = ready_first(&d->able);
    return able && (!k || able->priority >= k->priority) ? able : k;
}

static void serve_next(struct deliver *d, struct desk *k)
{
    struct patron *o = k->patron;
    enum served s;

    list_remove(&k->ready);
    desk_hold(k);
    if (o)
        o->n_users++;
    s = serve(d, k);
    if (s == SERVED_SOME && !list_has(&k->ready))
        ready_add(&d->ready, k);
    if (s != PUT_AWAY)
        patron_wake_one(d, o); /* it may have been woken instead of another */
    patron_leave(d, o);
    desk_release(k);
}

void desks_on_end_of_turn(struct loop_job *job)
{
    struct deliver *d = LIST_OF(job, struct deliver, go_job);
    struct desk *k;

    while (has_share(d) && (k = next_desk(d))) {
        d->n_gone++;
        serve_next(d, k);
    }
    loop_not_at_end(job);
    if (!has_share(d) && next_desk(d))
        loop_next_turn(d->opts.loop, job);
}

/* Looking at all of them. */

void desks_look_again(struct deliver *d)
{
    d->n_to_look_at = d->desks.n;
    d->n_lefts_to_look_at = d->left.n;
    if (!d->n_to_look_at && !d->n_lefts_to_look_at)
        return;
    look_in(d, LOOK_MS);
    go_soon(d); /* the limit of all may be another */
}

static void look_at(struct deliver *d, struct desk *k)
{
    list_remove(&k->node);
    list_append(&d->all_desks, &k->node);
    if (k->n_waiting)
        desk_look(d, k);
    else
        free_if_unused(d, k);
}

static void on_again(struct timer *t)
{
    struct deliver *d = LIST_OF(t, struct deliver, again);
    enum err set = loop_timer_set(d->opts.loop, t, NOTHING_MS);
    struct list_node *n;

    assert(set == OK); /* it has just left its place */
    (void)set;
    while ((n = list_pop(&d->stuck)))
        desk_wake(d, LIST_OF(n, struct desk, ready));
    for (int i = 0; i < LOOK_AT_ONCE && d->n_to_look_at; i++) {
        n = list_first(&d->all_desks);
        d->n_to_look_at--;
        if (n)
            look_at(d, LIST_OF(n, struct desk, node));
    }
    lefts_look(d, LOOK_AT_ONCE);
    if (d->n_to_look_at || d->n_lefts_to_look_at)
        look_in(d, LOOK_ON_MS);
}

enum err desks_init(struct deliver *d)
{
    for (int i = 0; i < READY_LISTS; i++) {
        list_init(&d->ready.lists[i]);
        list_init(&d->able.lists[i]);
    }
    list_init(&d->all_desks);
    list_init(&d->stuck);
    list_init(&d->shown);
    d->go_job.run = desks_on_end_of_turn;
    d->again.fire = on_again;
    return loop_timer_set(d->opts.loop, &d->again, NOTHING_MS);
}

void desks_free(struct deliver *d)
{
    const struct map_slot *slot;
    struct list_node *n;
    size_t at = 0;

    while ((n = list_first(&d->all_desks)))
        desk_free(d, LIST_OF(n, struct desk, node));
    while ((slot = map_next(&d->errands, &at))) /* which the desks had */
        free(slot->value);
    loop_timer_cancel(d->opts.loop, &d->again);
}
