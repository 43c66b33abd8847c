/* Waking agents: those with a wake.url whose seat is empty.
 *
 * A sleeper is an agent with waiting jobs and no line on its seat. A request
 * goes to its wake.url and is repeated with growing pauses if it fails, until
 * the time of the wake is over. All waiting jobs share one wake. When a line
 * takes the seat, all its sleepers are dropped and their queues woken.
 *
 *     RESTING   jobs wait without a wake: no wake.url, or the line is full
 *     QUEUED    WAKES_AT_ONCE agents are being woken already
 *     WAKING    a request was sent, or will be repeated
 *
 * If the agent does not come, the jobs that had waited since before the wake
 * began fail, and later jobs cause another wake. The number of failures in a
 * row is kept: after DEAD_AFTER the agent counts as dead, but new work still
 * wakes it. */
#include <stdlib.h>

#include "deliver/transports/line.h"

enum {
    WAKES_AT_ONCE = 64,
    WAKE_MS = 30 * 1000, /* if neither card nor settings have one */
    ASK_MS = 10 * 1000,  /* for one request */
    PAUSE_MS = 500,      /* after the first failure; doubled each time */
    PAUSE_MAX_MS = 8 * 1000,
    ANSWER_MAX = 64 * 1024,
    DEAD_AFTER = 3, /* failed wakes in a row */
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
    int64_t began_ms, again_ms; /* again_ms: INT64_MAX: never */
    int n_requests;
    uint64_t request; /* zero: none */
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

static struct str sleeper_name(const struct sleeper *s)
{
    return (struct str){s->name, s->n_name};
}

static struct sleeper *sleeper_find(const struct deliver *d, struct str agent)
{
    char name[AGENT_NAME_MAX];

    return map_get(&d->wakes->by_name,
                   str_lowered(agent, name, AGENT_NAME_MAX));
}

/* Requests. */

static int64_t wake_ends_ms(const struct sleeper *s)
{
    return s->began_ms + s->timeout_ms;
}

static void wake_set_timer(struct sleeper *s);
static void wakes_begin_next(struct deliver *d);

/* End the wake: cancel its request and its timer. */
static void wake_settle(struct sleeper *s)
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

static void sleeper_forget(struct sleeper *s);

static void sleeper_come(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    struct agent_queue *k = agent_queue_find(d, sleeper_name(s));

    sleeper_forget(s);
    if (k)
        agent_queue_look(d, k);
    wakes_begin_next(d);
}

static void wake_failed(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    struct agent_queue *k = agent_queue_find(d, sleeper_name(s));
    int64_t before_ms = s->began_ms + 1;
    struct why words;

    wake_settle(s);
    deliver_stir(d, sleeper_name(s));
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
        agent_queue_fail(d, k, before_ms,
                         &(struct delivery_failure){
                             .code = str_of(err_row(ERR_NOT_AWAKE)->code),
                             .words = str_of(words.text),
                             .is_final = true});
        agent_queue_wake(d, k);
    }
    wakes_begin_next(d);
}

static void wake_pause(struct sleeper *s)
{
    int64_t pause_ms = PAUSE_MS;

    for (int i = 1; i < s->n_requests && pause_ms < PAUSE_MAX_MS; i++)
        pause_ms *= 2;
    s->again_ms = loop_mono_ms(s->deliver->opts.loop) + pause_ms;
    wake_set_timer(s);
}

static void wake_on_answer(void *ctx, uint64_t id, enum err e,
                           const struct fetch_answer *a, const struct why *why)
{
    struct sleeper *s = ctx;

    (void)id;
    s->request = 0;
    s->because.text[0] = '\0';
    if (!e && a->status >= 200 && a->status < 300)
        return; /* it is waking up */
    if (e)
        why_err(&s->because, e, "the request to wake it failed: %.300s",
                why->text);
    else
        why_err(&s->because, e, "the request to wake it was answered with %d",
                a->status);
    if (e != ERR_ADDRESS && e != ERR_STOPPING)
        wake_pause(s);
}

static enum err wake_send_request(struct sleeper *s, int64_t left_ms)
{
    static const struct fetch_handler handler = {.on_done = wake_on_answer};
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

static void wake_request(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    int64_t left_ms = wake_ends_ms(s) - loop_mono_ms(d->opts.loop);

    s->again_ms = INT64_MAX;
    s->n_requests++;
    if (d->opts.fetch && wake_send_request(s, left_ms) != OK) {
        s->request = 0;
        wake_pause(s);
    } else {
        wake_set_timer(s);
    }
}

static void wake_on_timer(struct timer *t)
{
    struct sleeper *s = LIST_OF(t, struct sleeper, timer);
    const struct deliver *d = s->deliver;
    const struct agent *a = d->opts.agent_of(d->opts.ctx, sleeper_name(s));

    if (a && agent_presence(d, a) != AWAY) /* on another seat or transport */
        sleeper_come(s);
    else if (loop_mono_ms(d->opts.loop) >= wake_ends_ms(s))
        wake_failed(s);
    else
        wake_request(s);
}

/* The timer fires for the next request or at the end of the wake. */
static void wake_set_timer(struct sleeper *s)
{
    struct deliver *d = s->deliver;
    int64_t at_ms =
        s->again_ms < wake_ends_ms(s) ? s->again_ms : wake_ends_ms(s);

    loop_timer_set(d->opts.loop, &s->timer, at_ms - loop_mono_ms(d->opts.loop));
}

static void wake_begin(struct sleeper *s)
{
    struct deliver *d = s->deliver;

    s->state = WAKING;
    d->wakes->n_waking++;
    d->stats.wakes_total++;
    s->began_ms = loop_mono_ms(d->opts.loop);
    s->n_requests = 0;
    s->because.text[0] = '\0';
    wake_request(s);
}

static void wakes_begin_next(struct deliver *d)
{
    struct list_node *n;

    while (!d->is_stopping && d->wakes->n_waking < WAKES_AT_ONCE &&
           (n = list_pop(&d->wakes->queue)))
        wake_begin(LIST_OF(n, struct sleeper, queue));
}

/* Sleepers. */

static void sleeper_forget(struct sleeper *s)
{
    struct deliver *d = s->deliver;

    wake_settle(s);
    map_take(&d->wakes->by_name, sleeper_name(s));
    list_remove(&s->node);
    seat_leave(d, s->seat);
    free(s);
}

void seat_taken(struct deliver *d, struct seat *seat)
{
    struct list_node *n;

    while ((n = list_first(&seat->sleepers))) {
        struct sleeper *s = LIST_OF(n, struct sleeper, node);
        struct agent_queue *k = agent_queue_find(d, sleeper_name(s));

        sleeper_forget(s);
        if (k)
            agent_queue_wake(d, k);
    }
    wakes_begin_next(d);
}

/* The agent may have moved to another seat since. */
static void sleeper_sit(struct sleeper *s, struct seat *seat)
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
    struct sleeper *s = mem_new(sizeof(*s));

    s->deliver = d;
    s->timer.fire = wake_on_timer;
    s->n_name = str_lowered(a->name, s->name, AGENT_NAME_MAX).n;
    memcpy(s->shown, a->name.p, s->n_name);
    if (map_put(&d->wakes->by_name, sleeper_name(s), s) == OK)
        return s;
    free(s);
    return NULL;
}

static struct sleeper *sleeper_for(struct deliver *d, const struct agent *a,
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
        sleeper_sit(s, seat);
    else
        seat_leave(d, seat);
    return s;
}

static void wake_enqueue(struct sleeper *s, const struct agent *a)
{
    struct deliver *d = s->deliver;
    int64_t ms =
        a->wake.timeout_ms ? a->wake.timeout_ms : d->opts.settings.wake_ms;

    s->url = mem_copy(a->wake.url.p, a->wake.url.n);
    s->is_trusted = a->is_configured;
    s->timeout_ms = ms > 0 ? ms : WAKE_MS;
    s->state = QUEUED;
    list_append(&d->wakes->queue, &s->queue);
    wakes_begin_next(d);
}

void sleeper_call(struct deliver *d, struct agent_queue *k,
                  const struct agent *a, const struct agent_url *url)
{
    struct sleeper *s = sleeper_for(d, a, url);

    (void)k;
    if (!s)
        agent_queues_look_again(d); /* a map cannot grow now */
    else if (s->state == RESTING && a->wake.url.n && !s->seat->line)
        wake_enqueue(s, a);
}

/* All wakes. */

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
    sleeper_forget(s);
    wakes_begin_next(d);
}

static void wakes_stop(struct deliver *d, struct deliver_part *p)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&d->wakes->by_name, &at)))
        wake_settle(slot->value);
    deliver_part_stopped(d, p);
}

struct wakes *wakes_new(struct deliver *d)
{
    struct wakes *w = mem_new(sizeof(*w));

    w->deliver = d;
    map_init(&w->by_name, DELIVER_QUEUES_MAX, d->opts.seed);
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
        sleeper_forget(slot->value);
    map_fini(&d->wakes->by_name);
    free(d->wakes);
    d->wakes = NULL;
}
