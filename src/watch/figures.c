/* The gate's figures: a ring of five-minute boxes that covers a day, filled
 * from the feed. A restart only reads the last day again (at most the newest
 * FIGURES_ENTRIES). So nothing is written for the sake of counting, and two
 * servers on one store would count the same.
 *
 * A message without a matching rule leaves no gate.* entry, only its
 * task.accepted. Both are in one tx and so near each other in the feed: the
 * last few tasks are remembered, and each counts once.
 *
 * A hold lasts from its first gate.held (or gate.paused) to its gate.released
 * or gate.expired. The beginnings of up to FIGURES_HELD current holds are kept
 * by task. A hold that began before the ring, or beyond that number, is not
 * counted.
 *
 * Rejected: a query over the decisions (a day of them for every scrape of
 * /metrics), and a table of counters (one more row for every message). */
#include "watch/watch.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
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
    bool recent_counts[RECENT]; /* counted as routed */
    size_t at;
    bool is_stopped;
};

static struct gate_figures *box_of(struct figures *f, int64_t at_ms)
{
    int64_t number = at_ms / BOX_MS, now = loop_wall_ms(f->loop) / BOX_MS;
    struct box *b = &f->boxes[number % BOXES];

    /* Clocks jump: entries of another day, or of the future, do not count. */
    if (at_ms < 0 || number > now || number <= now - BOXES)
        return NULL;
    if (b->number != number)
        *b = (struct box){.number = number};
    return &b->n;
}

/* The task's index among the last few; RECENT: it is not there. */
static size_t recent_find(const struct figures *f, struct str id)
{
    size_t i = 0;

    while (i < RECENT && !str_eq(str_of(f->recent[i].text), id))
        i++;
    return i;
}

static void recent_add(struct figures *f, struct str id, bool counts)
{
    f->recent[f->at % RECENT] = id_from(id);
    f->recent_counts[f->at % RECENT] = counts;
    f->at++;
}

static void figures_count_decision(struct figures *f, struct gate_figures *n,
                                   const struct feed_entry *e, bool is_routed)
{
    size_t i = recent_find(f, e->task_id);

    if (i == RECENT) {
        n->routed += is_routed;
        recent_add(f, e->task_id, is_routed);
    } else if (f->recent_counts[i] && !is_routed) {
        n->routed--;
        f->recent_counts[i] = false;
    }
}

/* Whether a member of the entry's data is that JSON text. */
static bool data_member_is(const struct feed_entry *e, struct str key,
                           struct str text)
{
    struct str value = {NULL, 0};

    return json_scan(e->data, &key, 1, &value, NULL) == OK &&
           str_eq(value, text);
}

static void figures_hold_begin(struct figures *f, const struct feed_entry *e)
{
    struct hold_seen *h;

    if (!e->task_id.n || map_get(&f->held, e->task_id))
        return;
    h = mem_new(sizeof(*h));
    *h = (struct hold_seen){
        id_from(e->task_id), e->at_ms,
        data_member_is(e, STR("priority"), STR("\"NORMAL\""))};
    if (map_put(&f->held, str_of(h->task_id.text), h) != OK)
        free(h);
}

static void figures_hold_end(struct figures *f, struct gate_figures *n,
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

static void figures_count_gate(struct figures *f, struct gate_figures *n,
                               const struct feed_entry *e, struct str what)
{
    struct gate_figures nowhere = {.routed = 0};
    bool is_hold = str_eq(what, STR("held")) || str_eq(what, STR("paused"));

    n = n ? n : &nowhere;
    if (str_eq(what, STR("released"))) {
        n->routed++;
        n->released++;
        figures_hold_end(f, n, e, n != &nowhere);
        return;
    }
    if (str_eq(what, STR("expired"))) {
        n->expired++;
        figures_hold_end(f, n, e, n != &nowhere);
        return;
    }
    /* A batch of held messages: each of them counts as routed and the batch
     * does not, but the batch is a decision like theirs. */
    if (str_eq(what, STR("routed")) &&
        data_member_is(e, STR("type"), STR("\"BATCH\""))) {
        n->decisions[FIGURE_ROUTED]++;
        figures_count_decision(f, n, e, false);
        return;
    }
    n->decisions[str_eq(what, STR("routed"))      ? FIGURE_ROUTED
                 : str_eq(what, STR("held"))      ? FIGURE_HELD
                 : str_eq(what, STR("paused"))    ? FIGURE_PAUSED
                 : str_eq(what, STR("escalated")) ? FIGURE_ESCALATED
                                                  : FIGURE_DROPPED]++;
    figures_count_decision(f, n, e, str_eq(what, STR("routed")));
    if (is_hold)
        figures_hold_begin(f, e);
    else
        figures_hold_end(f, n, e, false);
}

static void figures_count_entry(struct figures *f, const struct feed_entry *e)
{
    struct gate_figures *n = box_of(f, e->at_ms);

    if (str_starts(e->type, STR("gate."))) {
        figures_count_gate(f, n, e, str_sub(e->type, 5, e->type.n));
        return;
    }
    if (str_eq(e->type, STR("task.cancelled")) ||
        str_eq(e->type, STR("task.expired")))
        figures_hold_end(f, n, e, true);
    if (!n)
        return;
    if (str_eq(e->type, STR("task.late")))
        n->late++;
    if (!str_eq(e->type, STR("task.accepted")) ||
        recent_find(f, e->task_id) < RECENT)
        return;
    n->routed++;
    recent_add(f, e->task_id, true);
}

static void figures_read(struct figures *f)
{
    struct feed_entry e;
    int steps = STEPS_PER_TURN;

    while (!f->is_stopped && steps && feed_next(f->feed, &f->reader, &e)) {
        figures_count_entry(f, &e);
        steps--;
    }
    if (!steps)
        loop_next_turn(f->loop, &f->again);
}

static void on_figures_news(struct feed_reader *r)
{
    figures_read(LIST_OF(r, struct figures, reader));
}

static void on_figures_turn(struct loop_job *job)
{
    figures_read(LIST_OF(job, struct figures, again));
}

struct figures *figures_new(struct loop *loop, struct feed *feed,
                            const uint64_t seed[2])
{
    struct figures *f = mem_new(sizeof(*f));
    struct caller admin = {.role = ROLE_ADMIN,
                           .scopes = role_scopes(ROLE_ADMIN)};
    int64_t newest = feed_newest(feed);

    f->loop = loop;
    f->feed = feed;
    f->again.run = on_figures_turn;
    f->reader.on_news = on_figures_news;
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

static void figures_sum(struct gate_figures *sum, const struct gate_figures *n)
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
            figures_sum(&sum, &f->boxes[i].n);
    }
    return sum;
}
