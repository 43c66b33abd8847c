/* The gate's figures, from the feed: a ring of five-minute boxes that covers a
 * day. What is in it is what the feed says, so a restart only reads the last
 * day again (FIGURES_ENTRIES of it at most, the newest): nothing is written for
 * the sake of counting, and two servers on one store would count the same.
 *
 * A message that no rule has to do with leaves no gate.* entry behind, only its
 * task.accepted. Both stand in one tx, so they are near each other: the last
 * few tasks are remembered, and each counts once.
 *
 * How long something was held is from its first gate.held (or gate.paused) to
 * its gate.released or gate.expired. The times of what is held now are kept by
 * task, FIGURES_HELD of them; what began before the ring does, or beyond that
 * many, is let go uncounted.
 *
 * Turned down: counting by a query over the decisions (a day of them for every
 * look at /metrics), and a table of counters (a row more for every message). */
#include "watch/watch.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "watch/internal.h"

enum {
    BOX_MS = 5 * 60 * 1000,
    BOXES = 24 * 12,
    BOXES_OF_HOUR = 12,
    FIGURES_ENTRIES = 200 * 1000,
    FIGURES_HELD = 200 * 1000,
    STEPS_PER_TURN = 500,
    RECENT = 64,
};

struct box {
    int64_t number; /* at_ms / BOX_MS */
    struct gate_figures n;
};

struct hold_seen {
    struct id task_id;
    int64_t at_ms;
    bool is_normal;
};

struct figures {
    struct loop *loop;
    struct feed *feed;
    struct feed_reader reader;
    struct loop_job again;
    struct box boxes[BOXES];
    struct map held; /* struct hold_seen, by task */
    struct id recent[RECENT];
    bool recent_counts[RECENT]; /* as routed */
    size_t at;
    bool is_stopped;
};

static struct gate_figures *box_of(struct figures *f, int64_t at_ms)
{
    int64_t number = at_ms / BOX_MS, now = loop_wall_ms(f->loop) / BOX_MS;
    struct box *b = &f->boxes[number % BOXES];

    /* A clock that jumped: what is of another day, or ahead, counts nowhere. */
    if (at_ms < 0 || number > now || number <= now - BOXES)
        return NULL;
    if (b->number != number)
        *b = (struct box){.number = number};
    return &b->n;
}

/* Where the task is among the last few; RECENT: it is not. */
static size_t recently(const struct figures *f, struct str id)
{
    size_t i = 0;

    while (i < RECENT && !str_eq(str_of(f->recent[i].text), id))
        i++;
    return i;
}

static void remember(struct figures *f, struct str id, bool counts)
{
    f->recent[f->at % RECENT] = id_from(id);
    f->recent_counts[f->at % RECENT] = counts;
    f->at++;
}

static void count_accepted(struct figures *f, struct gate_figures *n,
                           const struct feed_entry *e)
{
    if (recently(f, e->task_id) < RECENT)
        return;
    n->routed++;
    remember(f, e->task_id, true);
}

static void count_decision(struct figures *f, struct gate_figures *n,
                           const struct feed_entry *e, bool is_routed)
{
    size_t i = recently(f, e->task_id);

    if (i == RECENT) {
        n->routed += is_routed;
        remember(f, e->task_id, is_routed);
    } else if (f->recent_counts[i] && !is_routed) {
        n->routed--;
        f->recent_counts[i] = false;
    }
}

static bool is_normal(const struct feed_entry *e)
{
    static const struct str keys[] = {STR("priority")};
    struct str value = {NULL, 0};

    return json_scan(e->data, keys, 1, &value, NULL) == OK &&
           str_eq(value, STR("\"NORMAL\""));
}

/* Several that waited, as one: each of those counts as routed, and it does not;
 * but it is a decision like those. */
static bool is_batch(const struct feed_entry *e)
{
    static const struct str keys[] = {STR("type")};
    struct str value = {NULL, 0};

    return json_scan(e->data, keys, 1, &value, NULL) == OK &&
           str_eq(value, STR("\"BATCH\""));
}

static void hold_begins(struct figures *f, const struct feed_entry *e)
{
    struct hold_seen *h;

    if (!e->task_id.n || map_get(&f->held, e->task_id))
        return;
    h = FAULT("watch.hold_seen") ? NULL : malloc(sizeof(*h));
    if (!h)
        return;
    *h = (struct hold_seen){id_from(e->task_id), e->at_ms, is_normal(e)};
    if (map_put(&f->held, str_of(h->task_id.text), h) != OK)
        free(h);
}

static void hold_ends(struct figures *f, struct gate_figures *n,
                      const struct feed_entry *e, bool counts)
{
    struct hold_seen *h = map_get(&f->held, e->task_id);
    int64_t ms;

    if (!h)
        return;
    ms = e->at_ms > h->at_ms ? e->at_ms - h->at_ms : 0;
    if (counts && n) {
        n->holds++;
        n->hold_ms += ms;
        if (ms > n->hold_max_ms)
            n->hold_max_ms = ms;
        n->normal_holds += h->is_normal;
        n->normal_hold_ms += h->is_normal ? ms : 0;
    }
    map_take(&f->held, e->task_id);
    free(h);
}

static void count_gate(struct figures *f, struct gate_figures *n,
                       const struct feed_entry *e, struct str what)
{
    struct gate_figures nowhere = {.routed = 0};
    bool is_hold = str_eq(what, STR("held")) || str_eq(what, STR("paused"));

    n = n ? n : &nowhere;
    if (str_eq(what, STR("released"))) {
        n->routed++;
        n->released++;
        hold_ends(f, n, e, n != &nowhere);
        return;
    }
    if (str_eq(what, STR("expired"))) {
        n->expired++;
        hold_ends(f, n, e, n != &nowhere);
        return;
    }
    if (str_eq(what, STR("routed")) && is_batch(e)) {
        n->decisions[FIGURE_ROUTED]++;
        count_decision(f, n, e, false);
        return;
    }
    n->decisions[str_eq(what, STR("routed"))      ? FIGURE_ROUTED
                 : str_eq(what, STR("held"))      ? FIGURE_HELD
                 : str_eq(what, STR("paused"))    ? FIGURE_PAUSED
                 : str_eq(what, STR("escalated")) ? FIGURE_ESCALATED
                                                  : FIGURE_DROPPED]++;
    count_decision(f, n, e, str_eq(what, STR("routed")));
    if (is_hold)
        hold_begins(f, e);
    else
        hold_ends(f, n, e, false);
}

static void count(struct figures *f, const struct feed_entry *e)
{
    struct gate_figures *n = box_of(f, e->at_ms);

    if (str_starts(e->type, STR("gate."))) {
        count_gate(f, n, e, str_sub(e->type, 5, e->type.n));
        return;
    }
    if (str_eq(e->type, STR("task.cancelled")) ||
        str_eq(e->type, STR("task.expired")))
        hold_ends(f, n, e, true);
    if (!n)
        return;
    if (str_eq(e->type, STR("task.accepted")))
        count_accepted(f, n, e);
    else if (str_eq(e->type, STR("task.late")))
        n->late++;
}

static void read_on(struct figures *f)
{
    struct feed_entry e;
    int steps = STEPS_PER_TURN;

    while (!f->is_stopped && steps && feed_next(f->feed, &f->reader, &e)) {
        count(f, &e);
        steps--;
    }
    if (!steps)
        loop_next_turn(f->loop, &f->again);
}

static void on_news(struct feed_reader *r)
{
    read_on(LIST_OF(r, struct figures, reader));
}

static void on_again(struct loop_job *job)
{
    read_on(LIST_OF(job, struct figures, again));
}

struct figures *figures_new(struct loop *loop, struct feed *feed,
                            const uint64_t seed[2])
{
    struct figures *f = FAULT("watch.figures") ? NULL : calloc(1, sizeof(*f));
    struct caller admin = {.role = ROLE_ADMIN,
                           .scopes = role_scopes(ROLE_ADMIN)};
    int64_t newest = feed_newest(feed);

    if (!f)
        return NULL;
    f->loop = loop;
    f->feed = feed;
    f->again.run = on_again;
    f->reader.on_news = on_news;
    f->reader.is_inside = true;
    map_init(&f->held, FIGURES_HELD, seed);
    feed_join(feed, &f->reader, &admin,
              newest > FIGURES_ENTRIES ? newest - FIGURES_ENTRIES : 0);
    return f;
}

void figures_stop(struct figures *f)
{
    if (!f || f->is_stopped)
        return;
    f->is_stopped = true;
    feed_leave(f->feed, &f->reader);
    loop_not_at_end(&f->again);
}

void figures_free(struct figures *f)
{
    const struct map_slot *slot;
    size_t at = 0;

    if (!f)
        return;
    figures_stop(f);
    while ((slot = map_next(&f->held, &at)))
        free(slot->value);
    map_fini(&f->held);
    free(f);
}

static void add(struct gate_figures *sum, const struct gate_figures *n)
{
    for (int i = 0; i < N_FIGURES; i++)
        sum->decisions[i] += n->decisions[i];
    sum->routed += n->routed;
    sum->released += n->released;
    sum->expired += n->expired;
    sum->late += n->late;
    sum->holds += n->holds;
    sum->hold_ms += n->hold_ms;
    sum->normal_holds += n->normal_holds;
    sum->normal_hold_ms += n->normal_hold_ms;
    if (n->hold_max_ms > sum->hold_max_ms)
        sum->hold_max_ms = n->hold_max_ms;
}

struct gate_figures figures_of(const struct figures *f, bool is_hour)
{
    int64_t now = loop_wall_ms(f->loop) / BOX_MS;
    struct gate_figures sum = {.routed = 0};

    for (int i = 0; i < BOXES; i++) {
        int64_t age = now - f->boxes[i].number;

        if (f->boxes[i].number && age >= 0 &&
            age < (is_hour ? BOXES_OF_HOUR : BOXES))
            add(&sum, &f->boxes[i].n);
    }
    return sum;
}
