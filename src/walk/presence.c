/* An agent is looked at only after presence_stir, so idle agents cost nothing.
 * Its state before that is remembered, and a timer looks at it until it has
 * been well, and not reported, for long enough. A report that cannot be written
 * is not repeated: the agent's card shows the state. Rejected: reporting at
 * once, since an agent on a bad network would fill the feed. */
#include "walk/presence.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "watch/watch.h"

enum { LOOKS_PER_TURN = 1000, DATA_MAX = 256 };

struct watched {
    struct list_node node;
    enum agent_state
        told; /* reported last; before that, its state at presence_stir */
    unsigned n_told;
    int64_t told_ms[PRESENCE_PER_SPAN]; /* a ring of report times, monotonic */
    size_t n;
    char name[AGENT_NAME_MAX]; /* lower case */
};

struct presence {
    struct presence_opts opts;
    struct map by_name;
    struct list all; /* the one looked at longest ago first */
    struct timer timer;
    size_t n_telling;
    bool is_stopped;
};

struct presence_report {
    struct presence *presence;
    struct tx tx;
};

static bool state_is_well(enum agent_state s)
{
    return s < AGENT_SLOW;
}

static bool state_change_is_news(enum agent_state from, enum agent_state to)
{
    return from != to && !(state_is_well(from) && state_is_well(to));
}

static struct str state_change_reason(enum agent_state from,
                                      enum agent_state to)
{
    switch ((int)to) {
    case AGENT_DEAD: return STR("gone");
    case AGENT_ERROR: return STR("failing");
    case AGENT_SLOW: return STR("slow");
    }
    return from == AGENT_DEAD ? STR("came") : STR("recovered");
}

/* Reporting. */

static void on_presence_reported(struct tx *tx, void *ctx)
{
    struct presence_report *l = ctx;

    if (tx->result != TX_COMMITTED)
        log_warn(l->presence->opts.log, "walk.state_not_told",
                 LOG_C("because", err_row(tx->err)->wording));
    l->presence->n_telling--;
    tx_fini(tx);
    free(l);
}

static void presence_report_add(struct presence_report *l, struct str written,
                                enum agent_state from, enum agent_state to)
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
    json_put_str(&o, state_change_reason(from, to));
    json_close(&o, '}');
    feed_append_data(
        &l->tx, &data,
        &(struct feed_entry){.at_ms = loop_wall_ms(l->presence->opts.loop),
                             .type = STR("agent.state"),
                             .agent = written,
                             .is_for_seers = true});
}

/* Looking. */

static void watched_forget(struct presence *p, struct watched *w)
{
    map_take(&p->by_name, (struct str){w->name, w->n});
    list_remove(&w->node);
    free(w);
}

/* It was reported less than n times in the last PRESENCE_SPAN_MS. */
static bool watched_reported_less_than(const struct watched *w, unsigned n,
                                       int64_t now_ms)
{
    return w->n_told < n ||
           now_ms - w->told_ms[(w->n_told - n) % PRESENCE_PER_SPAN] >=
               PRESENCE_SPAN_MS;
}

/* Report it, leave it for later, or forget it. */
static void watched_look_at(struct presence *p, struct watched *w,
                            struct presence_report **l, size_t *n_left)
{
    int64_t now_ms = loop_mono_ms(p->opts.loop);
    struct str written = {NULL, 0};
    enum agent_state to =
        p->opts.state_of(p->opts.ctx, (struct str){w->name, w->n}, &written);

    if (to && state_change_is_news(w->told, to)) {
        if (!watched_reported_less_than(w, PRESENCE_PER_SPAN, now_ms) ||
            !*n_left)
            return;
        --*n_left;
        if (!*l) {
            *l = mem_new(sizeof(**l));
            (*l)->presence = p;
            tx_init(&(*l)->tx);
            p->n_telling++;
        }
        presence_report_add(*l, written, w->told, to);
        w->told = to;
        w->told_ms[w->n_told++ % PRESENCE_PER_SPAN] = now_ms;
        return;
    }
    /* A slow agent becomes well by time alone, without another
     * presence_stir. */
    if (!to || (watched_reported_less_than(w, 1, now_ms) && to != AGENT_SLOW))
        watched_forget(p, w);
}

static void presence_look_soon(struct presence *p)
{
    if (!timer_is_set(&p->timer) && !list_is_empty(&p->all))
        loop_timer_set(p->opts.loop, &p->timer, PRESENCE_LOOK_MS);
}

static void on_presence_look(struct timer *t)
{
    struct presence *p = LIST_OF(t, struct presence, timer);
    size_t n_left = PRESENCE_PER_LOOK, n = p->by_name.n;
    struct presence_report *l = NULL;

    if (n > LOOKS_PER_TURN)
        n = LOOKS_PER_TURN;
    for (struct list_node *at; n > 0 && (at = list_pop(&p->all)); n--) {
        list_append(&p->all, at);
        watched_look_at(p, LIST_OF(at, struct watched, node), &l, &n_left);
    }
    if (l)
        store_submit(p->opts.store, &l->tx, on_presence_reported, l);
    presence_look_soon(p);
}

void presence_stir(struct presence *p, struct str agent)
{
    char name[AGENT_NAME_MAX];
    struct str key = str_lowered(agent, name, sizeof(name)), written;
    struct watched *w;
    enum agent_state s;

    if (p->is_stopped || map_get(&p->by_name, key))
        return;
    s = p->opts.state_of(p->opts.ctx, key, &written);
    if (!s)
        return;
    w = mem_new(sizeof(*w));
    w->told = s;
    w->n = key.n;
    memcpy(w->name, key.p, key.n);
    if (map_put(&p->by_name, (struct str){w->name, w->n}, w) != OK) {
        free(w);
        return;
    }
    list_append(&p->all, &w->node);
    presence_look_soon(p);
}

/* Life. */

struct presence *presence_new(const struct presence_opts *opts)
{
    struct presence *p = mem_new(sizeof(*p));

    p->opts = *opts;
    map_init(&p->by_name, PRESENCE_WATCHED_MAX, opts->seed);
    list_init(&p->all);
    p->timer.fire = on_presence_look;
    return p;
}

void presence_stop(struct presence *p)
{
    struct list_node *n;

    p->is_stopped = true;
    loop_timer_cancel(p->opts.loop, &p->timer);
    while ((n = list_first(&p->all)))
        watched_forget(p, LIST_OF(n, struct watched, node));
}

void presence_free(struct presence *p)
{
    if (!p)
        return;
    assert(!p->n_telling);
    presence_stop(p);
    map_fini(&p->by_name);
    free(p);
}
