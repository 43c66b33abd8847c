/* Waking agents that sleep: those with a wake.url whose seat is empty.
 *
 * A sleeper is an agent for whom something waits while nobody sits where it is
 * looked for. One request asks its wake.url; where that fails it is asked
 * again, with growing pauses, until its time is over. However many tasks wait,
 * they share one wake. When somebody takes the seat all sleepers of it are
 * forgotten, and their desks told.
 *
 *     RESTING   a desk waits, nobody is asked: no wake.url, or the line is full
 *     QUEUED    so many are being woken already
 *     WAKING    asked, or to be asked again, until it comes or its time is over
 *
 * Who did not come: what had waited since before the wake began fails, and
 * what came later is reason for another wake. How often in a row that was is
 * remembered, since after the third time the agent counts as dead; it is woken
 * all the same when there is work for it. */
#include <stdlib.h>

#include "deliver/line.h"

enum {
    WAKES_AT_ONCE = 64,
    WAKE_MS = 30 * 1000, /* where neither card nor settings say */
    ASK_MS = 10 * 1000,  /* for one request */
    PAUSE_MS = 500,      /* after the first that failed; doubled each time */
    PAUSE_MAX_MS = 8 * 1000,
    ANSWER_MAX = 64 * 1024,
    DEAD_AFTER = 3, /* wakes in a row that came to nothing */
};

enum sleeper_state { RESTING, QUEUED, WAKING };

struct sleeper {
    struct deliver *deliver;
    struct seat *seat;
    struct list_node node;  /* of the seat's */
    struct list_node queue; /* QUEUED */
    enum sleeper_state state;
    int n_failures; /* in a row */

    /* From QUEUED on. */
    char *url;
    bool is_trusted;
    int64_t timeout_ms;

    /* WAKING. */
    int64_t began_ms, again_ms; /* again_ms: INT64_MAX: no more */
    int n_asked;
    uint64_t request; /* zero: none is under way */
    struct timer timer;
    struct why because; /* why the last request failed */

    size_t n_name;
    char name[AGENT_NAME_MAX + 1]; /* lower case */
    char shown[AGENT_NAME_MAX + 1];
};

struct wakes {
    struct deliver *deliver;
    struct deliver_part part;
    struct map by_name; /* struct sleeper */
    struct list queue;
    size_t n_waking;
};

static struct str name_of(const struct sleeper *s)
{
    return (struct str){s->name, s->n_name};
}

static struct sleeper *sleeper_find(const struct deliver *d, struct str agent)
{
    char name[AGENT_NAME_MAX];

    return map_get(&d->wakes->by_name,
                   str_lowered(agent, name, AGENT_NAME_MAX));
}

/* There was no memory: its desk asks again in a while. */
static void try_again(struct sleeper *s)
{
    struct desk *k = desk_find(s->deliver, name_of(s));

    if (k)
        desk_wake_later(s->deliver, k);
}

/* Asking. */

static int64_t ends_ms(const struct sleeper *s)
{
    return s->began_ms + s->timeout_ms;
}

static void arm(struct sleeper *s);
static void begin_next(struct deliver *d);

/* Neither asked nor waited for any more. */
static void settle(struct sleeper *s)
{
    struct deliver *d = s->deliver;

    list_remove(&s->queue);
    loop_timer_cancel(d->opts.loop, &s->timer);
    if (s->request)
        fetch_cancel(d->opts.fetch, s->request);
    s->request = 0;
    if (s->state == WAKING)
        d->wakes->n_waking--;
    s->state = RESTING;
    free(s->url);
    s->url = NULL;
}

static void forget(struct sleeper *s);

/* It sits somewhere else meanwhile, or is reached by another road. */
static bool has_come(const struct sleeper *s)
{
    const struct deliver *d = s->deliver;
    const struct agent *a = d->opts.agent_of(d->opts.ctx, name_of(s));

    return a && agent_presence(d, a) != AWAY;
}

static void come(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    struct desk *k = desk_find(d, name_of(s));

    forget(s);
    if (k)
        desk_look(d, k);
    begin_next(d);
}

static void failed(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    struct desk *k = desk_find(d, name_of(s));
    int64_t before_ms = s->began_ms + 1;
    struct why words;

    settle(s);
    deliver_stir(d, name_of(s));
    s->n_failures++;
    d->stats.wakes_failed_total++;
    why_err(&words, OK,
            "the agent did not connect within %lld ms of being "
            "woken%s%.300s",
            (long long)s->timeout_ms, s->because.text[0] ? ": " : "",
            s->because.text);
    log_warn(d->opts.log, "deliver.not_awake", LOG_C("agent", s->shown),
             LOG_I("in_a_row", s->n_failures), LOG_C("because", words.text));
    if (k) {
        desk_fail(d, k, before_ms,
                  &(struct delivery_failure){
                      .code = str_of(err_row(ERR_NOT_AWAKE)->code),
                      .words = str_of(words.text),
                      .is_final = true});
        desk_wake(d, k);
    }
    begin_next(d);
}

/* Asked again after a while. */
static void pause_asking(struct sleeper *s)
{
    int64_t pause_ms = PAUSE_MS;

    for (int i = 1; i < s->n_asked && pause_ms < PAUSE_MAX_MS; i++)
        pause_ms *= 2;
    s->again_ms = loop_mono_ms(s->deliver->opts.loop) + pause_ms;
    arm(s);
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why)
{
    struct sleeper *s = ctx;

    (void)id;
    s->request = 0;
    s->because.text[0] = '\0';
    if (!e && a->status >= 200 && a->status < 300)
        return; /* it wakes up */
    if (e)
        why_err(&s->because, e, "the request to wake it failed: %.300s",
                why->text);
    else
        why_err(&s->because, e, "the request to wake it was answered with %d",
                a->status);
    if (e != ERR_ADDRESS && e != ERR_STOPPING)
        pause_asking(s);
}

static enum err send_request(struct sleeper *s, int64_t left_ms)
{
    static const struct fetch_handler handler = {.on_done = on_done};
    static const struct fetch_header type = {STR("Content-Type"),
                                             STR("application/json")};
    struct fetch_request rq = {
        .method = STR("POST"),
        .url = str_of(s->url),
        .headers = &type,
        .n_headers = 1,
        .is_trusted = s->is_trusted,
        .timeout_ms = left_ms < ASK_MS ? left_ms : ASK_MS,
        .max_body_bytes = ANSWER_MAX,
    };
    struct json_out o;
    struct buf body;
    enum err e;

    buf_init(&body, 1024);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_text(&o, "agent", str_of(s->shown));
    json_member_text(&o, "reason", STR("task"));
    json_close(&o, '}');
    rq.body = buf_str(&body);
    e = body.over ? ERR_NOMEM
                  : fetch_start(s->deliver->opts.fetch, &rq, &handler, s,
                                &s->request, &s->because);
    buf_fini(&body);
    return e;
}

static void ask(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    int64_t left_ms = ends_ms(s) - loop_mono_ms(d->opts.loop);

    s->again_ms = INT64_MAX;
    s->n_asked++;
    if (d->opts.fetch && send_request(s, left_ms) != OK) {
        s->request = 0;
        pause_asking(s);
    } else {
        arm(s);
    }
}

static void on_timer(struct timer *t)
{
    struct sleeper *s = LIST_OF(t, struct sleeper, timer);

    if (has_come(s))
        come(s);
    else if (loop_mono_ms(s->deliver->opts.loop) >= ends_ms(s))
        failed(s);
    else
        ask(s);
}

/* Its timer rings when it is to be asked again, or its time is over. Where
 * none can be set nobody waits: the desk asks for it anew. */
static void arm(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    int64_t at_ms = s->again_ms < ends_ms(s) ? s->again_ms : ends_ms(s);

    if (!FAULT("deliver.wake_timer") &&
        loop_timer_set(d->opts.loop, &s->timer,
                       at_ms - loop_mono_ms(d->opts.loop)) == OK)
        return;
    settle(s);
    try_again(s);
}

static void begin(struct sleeper *s)
{
    struct deliver *d = s->deliver;

    s->state = WAKING;
    d->wakes->n_waking++;
    d->stats.wakes_total++;
    s->began_ms = loop_mono_ms(d->opts.loop);
    s->n_asked = 0;
    s->because.text[0] = '\0';
    ask(s);
}

static void begin_next(struct deliver *d)
{
    struct list_node *n;

    while (!d->is_stopping && d->wakes->n_waking < WAKES_AT_ONCE &&
           (n = list_pop(&d->wakes->queue)))
        begin(LIST_OF(n, struct sleeper, queue));
}

/* Who sleeps. */

static void forget(struct sleeper *s)
{
    struct deliver *d = s->deliver;

    settle(s);
    map_take(&d->wakes->by_name, name_of(s));
    list_remove(&s->node);
    seat_leave(d, s->seat);
    free(s);
}

void seat_taken(struct deliver *d, struct seat *seat)
{
    struct list_node *n;

    while ((n = list_first(&seat->sleepers))) {
        struct sleeper *s = LIST_OF(n, struct sleeper, node);
        struct desk *k = desk_find(d, name_of(s));

        forget(s);
        if (k)
            desk_wake(d, k);
    }
    begin_next(d);
}

/* The agent may have moved to another seat since. */
static void sit(struct sleeper *s, struct seat *seat)
{
    struct seat *before = s->seat;

    if (before == seat)
        return;
    list_remove(&s->node);
    s->seat = seat;
    list_append(&seat->sleepers, &s->node);
    if (before)
        seat_leave(s->deliver, before);
}

static struct sleeper *sleeper_new(struct deliver *d, const struct agent *a)
{
    struct sleeper *s = FAULT("deliver.sleeper") ? NULL : calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->deliver = d;
    s->timer.fire = on_timer;
    s->n_name = str_lowered(a->name, s->name, AGENT_NAME_MAX).n;
    memcpy(s->shown, a->name.p, s->n_name);
    if (map_put(&d->wakes->by_name, name_of(s), s) == OK)
        return s;
    free(s);
    return NULL;
}

static struct sleeper *sleeper_of(struct deliver *d, const struct agent *a,
                                  const struct agent_url *url)
{
    char key[SEAT_KEY_MAX];
    struct sleeper *s = sleeper_find(d, a->name);
    struct seat *seat = seat_of(d, seat_key(a, url, key));

    if (!seat)
        return NULL;
    if (!s)
        s = sleeper_new(d, a);
    if (s)
        sit(s, seat);
    else
        seat_leave(d, seat);
    return s;
}

static void wake(struct sleeper *s, const struct agent *a)
{
    struct deliver *d = s->deliver;
    int64_t ms =
        a->wake.timeout_ms ? a->wake.timeout_ms : d->opts.settings.wake_ms;

    s->url = FAULT("deliver.wake_url") ? NULL
                                       : strndup(a->wake.url.p, a->wake.url.n);
    if (!s->url) {
        try_again(s);
        return;
    }
    s->is_trusted = a->is_configured;
    s->timeout_ms = ms > 0 ? ms : WAKE_MS;
    s->state = QUEUED;
    list_append(&d->wakes->queue, &s->queue);
    begin_next(d);
}

void sleeper_call(struct deliver *d, struct desk *k, const struct agent *a,
                  const struct agent_url *url)
{
    struct sleeper *s = sleeper_of(d, a, url);

    if (!s)
        desk_wake_later(d, k);
    else if (s->state == RESTING && a->wake.url.n && !s->seat->line)
        wake(s, a);
}

/* All of them. */

bool wakes_have_failed(const struct deliver *d, struct str agent,
                       struct why *why)
{
    const struct sleeper *s = sleeper_find(d, agent);

    if (!s || s->n_failures < DEAD_AFTER)
        return false;
    if (why)
        why_err(why, OK,
                "it was woken %d times in a row and did not connect%s%.300s",
                s->n_failures, s->because.text[0] ? ": " : "", s->because.text);
    return true;
}

void wakes_forget(struct deliver *d, struct str agent)
{
    struct sleeper *s = d->wakes ? sleeper_find(d, agent) : NULL;

    if (!s)
        return;
    forget(s);
    begin_next(d);
}

static void wakes_stop(struct deliver *d, struct deliver_part *p)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&d->wakes->by_name, &at)))
        settle(slot->value);
    deliver_part_stopped(d, p);
}

struct wakes *wakes_new(struct deliver *d)
{
    struct wakes *w = FAULT("deliver.wakes") ? NULL : calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->deliver = d;
    map_init(&w->by_name, DELIVER_DESKS_MAX, d->opts.seed);
    list_init(&w->queue);
    w->part.stop = wakes_stop;
    deliver_part_add(d, &w->part);
    return w;
}

void wakes_free(struct deliver *d)
{
    const struct map_slot *slot;
    size_t at;

    if (!d->wakes)
        return;
    list_remove(&d->wakes->part.node);
    while ((at = 0, slot = map_next(&d->wakes->by_name, &at)))
        forget(slot->value);
    map_fini(&d->wakes->by_name);
    free(d->wakes);
    d->wakes = NULL;
}
