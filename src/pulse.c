/* Nobody is asked how they are as long as nothing stirs: a fleet that sleeps
 * costs nothing. Who stirs is remembered with the state they had before that,
 * and looked at by a timer until they have been well, and untold of, for long
 * enough. What cannot be told (no memory, a store that refuses) is not told
 * again: whoever must know asks the agent's card. Turned down: telling at once,
 * since an agent on a bad network would write the feed. */
#include "pulse.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "watch/watch.h"

enum { LOOKS_PER_TURN = 1000, DATA_MAX = 256 };

struct watched {
    struct list_node node;
    enum agent_state told; /* or, before that, as it was when it stirred */
    unsigned n_told;
    int64_t told_ms[PULSE_PER_SPAN]; /* the last times, by n_told; the loop's
                                      * monotonic time */
    size_t n;
    char name[AGENT_NAME_MAX]; /* lower case */
};

struct pulse {
    struct pulse_opts opts;
    struct map by_name;
    struct list all; /* who was looked at longest ago first */
    struct timer timer;
    size_t n_telling;
    bool is_stopped;
};

struct telling {
    struct pulse *pulse;
    struct tx tx;
};

static bool is_well(enum agent_state s)
{
    return s < AGENT_SLOW;
}

static bool is_news(enum agent_state from, enum agent_state to)
{
    return from != to && !(is_well(from) && is_well(to));
}

static struct str why_of(enum agent_state from, enum agent_state to)
{
    switch ((int)to) {
    case AGENT_DEAD: return STR("gone");
    case AGENT_ERROR: return STR("failing");
    case AGENT_SLOW: return STR("slow");
    }
    return from == AGENT_DEAD ? STR("came") : STR("recovered");
}

/* Telling. */

static void on_told(struct tx *tx, void *ctx)
{
    struct telling *l = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(l->pulse->opts.log, "walk.state_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    l->pulse->n_telling--;
    tx_fini(tx);
    free(l);
}

static struct telling *telling_new(struct pulse *p)
{
    struct telling *l = FAULT("pulse.tell") ? NULL : calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->pulse = p;
    tx_init(&l->tx);
    p->n_telling++;
    return l;
}

static void append(struct telling *l, struct str written, enum agent_state from,
                   enum agent_state to)
{
    struct json_out o;
    struct buf data;

    buf_init(&data, DATA_MAX);
    o = json_out(&data);
    json_open(&o, '{');
    json_key(&o, STR("from"));
    json_put_str(&o, agent_state_name(from));
    json_key(&o, STR("to"));
    json_put_str(&o, agent_state_name(to));
    json_key(&o, STR("why"));
    json_put_str(&o, why_of(from, to));
    json_close(&o, '}');
    if (data.over)
        l->tx.build_error = ERR_NOMEM;
    else
        feed_append(&l->tx, &(struct feed_entry){
                                .at_ms = loop_wall_ms(l->pulse->opts.loop),
                                .type = STR("agent.state"),
                                .agent = written,
                                .data = buf_str(&data),
                                .is_for_seers = true});
    buf_fini(&data);
}

/* Looking. */

static void forget(struct pulse *p, struct watched *w)
{
    map_take(&p->by_name, (struct str){w->name, w->n});
    list_remove(&w->node);
    free(w);
}

/* Whether it was told of less than n times in this span. */
static bool is_less_than(const struct watched *w, unsigned n, int64_t now_ms)
{
    return w->n_told < n ||
           now_ms - w->told_ms[(w->n_told - n) % PULSE_PER_SPAN] >=
               PULSE_SPAN_MS;
}

/* One of them: told of, left for later, or forgotten. */
static void look_at(struct pulse *p, struct watched *w, struct telling **l,
                    size_t *n_left)
{
    int64_t now_ms = loop_mono_ms(p->opts.loop);
    struct str written = {NULL, 0};
    enum agent_state to =
        p->opts.state_of(p->opts.ctx, (struct str){w->name, w->n}, &written);

    if (to && is_news(w->told, to)) {
        if (!is_less_than(w, PULSE_PER_SPAN, now_ms) || !*n_left)
            return;
        --*n_left;
        if (!*l)
            *l = telling_new(p);
        if (*l)
            append(*l, written, w->told, to);
        w->told = to;
        w->told_ms[w->n_told++ % PULSE_PER_SPAN] = now_ms;
        return;
    }
    /* Who is slow is so until time has passed, and does not stir again. */
    if (!to || (is_less_than(w, 1, now_ms) && to != AGENT_SLOW))
        forget(p, w);
}

/* Without even the memory for a timer, the next to stir has to do. */
static void look_soon(struct pulse *p)
{
    if (!timer_is_set(&p->timer) && !list_is_empty(&p->all) &&
        loop_timer_set(p->opts.loop, &p->timer, PULSE_LOOK_MS) != OK)
        log_warn(p->opts.log, "walk.state_not_told",
                 LOG_C("because", "out of memory"));
}

static void look(struct timer *t)
{
    struct pulse *p = LIST_OF(t, struct pulse, timer);
    size_t n_left = PULSE_PER_LOOK, n = p->by_name.n;
    struct telling *l = NULL;

    if (n > LOOKS_PER_TURN)
        n = LOOKS_PER_TURN;
    for (struct list_node *at; n > 0 && (at = list_pop(&p->all)); n--) {
        list_append(&p->all, at);
        look_at(p, LIST_OF(at, struct watched, node), &l, &n_left);
    }
    if (l)
        store_submit(p->opts.store, &l->tx, on_told, l);
    look_soon(p);
}

void pulse_stir(struct pulse *p, struct str agent)
{
    char name[AGENT_NAME_MAX];
    struct str key = str_lowered(agent, name, sizeof(name)), written;
    struct watched *w;
    enum agent_state s;

    if (p->is_stopped || map_get(&p->by_name, key))
        return;
    s = p->opts.state_of(p->opts.ctx, key, &written);
    w = !s || FAULT("pulse.stir") ? NULL : calloc(1, sizeof(*w));
    if (!w)
        return;
    w->told = s;
    w->n = key.n;
    memcpy(w->name, key.p, key.n);
    if (map_put(&p->by_name, (struct str){w->name, w->n}, w) != OK) {
        free(w);
        return;
    }
    list_append(&p->all, &w->node);
    look_soon(p);
}

/* Life. */

struct pulse *pulse_new(const struct pulse_opts *opts)
{
    struct pulse *p = FAULT("pulse.new") ? NULL : calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->opts = *opts;
    map_init(&p->by_name, PULSE_WATCHED_MAX, opts->seed);
    list_init(&p->all);
    p->timer.fire = look;
    return p;
}

void pulse_stop(struct pulse *p)
{
    struct list_node *n;

    p->is_stopped = true;
    loop_timer_cancel(p->opts.loop, &p->timer);
    while ((n = list_first(&p->all)))
        forget(p, LIST_OF(n, struct watched, node));
}

void pulse_free(struct pulse *p)
{
    if (!p)
        return;
    assert(!p->n_telling);
    pulse_stop(p);
    map_fini(&p->by_name);
    free(p);
}
