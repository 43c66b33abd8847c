/* Listeners of a task and their events.
 *
 * Events are not queued per listener: a listener has the number of its next
 * event and an offset in the ring, and reads when it likes. An event that was
 * dropped from the ring, or never fitted, leaves a hole in the numbers, which
 * is reported as one gap. The result is not in the ring: it is the last number
 * of a finished entry, so it cannot be lost.
 *
 *     idle (the entry's list) -> news (the module's list) -> called (no list)
 *       ^                                                      |
 *       +------------- task_next has returned false -----------+
 *
 * An event moves all idle listeners in one step, regardless of their number;
 * calling them is spread over as many loop turns as needed. */
#include "task/internal.h"

#include <assert.h>

#include "model/agent.h"

enum {
    NEWS_PER_TURN = 512,
    CHUNK_BYTES = 4 * 1024, /* a longer chunk becomes several events */
    CHUNK_BYTES_SCARCE = 1024,
};

static void events_schedule(struct tasks *ts)
{
    if (!list_is_empty(&ts->news) && !ts->is_telling)
        loop_at_end(ts->opts.loop, &ts->news_job);
}

void events_on_end_of_turn(struct loop_job *job)
{
    struct tasks *ts = LIST_OF(job, struct tasks, news_job);
    struct list_node *n;

    ts->is_telling = true;
    for (int i = 0; i < NEWS_PER_TURN && (n = list_pop(&ts->news)); i++) {
        struct task_listener *l = LIST_OF(n, struct task_listener, news_node);

        l->on_news(l);
    }
    ts->is_telling = false;
    if (!list_is_empty(&ts->news))
        loop_next_turn(ts->opts.loop, &ts->news_job);
}

static void listeners_wake(struct task_entry *e)
{
    list_append_all(&e->ts->news, &e->idle);
    events_schedule(e->ts);
}

static void event_add(struct task_entry *e, enum task_event_kind kind,
                      struct str agent, struct str text)
{
    struct tasks *ts = e->ts;
    size_t total = (size_t)ts->stats.ring_bytes;
    struct ring_event ev = {.number = ++e->last_number,
                            .at_ms = loop_wall_ms(ts->opts.loop),
                            .kind = kind,
                            .status = task_shown(&e->t),
                            .agent = agent,
                            .text = text};

    if (!ring_add(&e->ring, &ev, &total))
        log_debug(ts->opts.log, "task.event_lost",
                  LOG_C("task_id", e->t.id.text));
    ts->stats.ring_bytes = (int64_t)total;
}

void event_status(struct task_entry *e)
{
    event_add(e, TASK_EVENT_STATUS, STR(""), STR(""));
    listeners_wake(e);
}

void event_result(struct task_entry *e)
{
    assert(entry_is_over(e));
    e->last_number++;
    listeners_wake(e);
}

void event_input(struct task_entry *e, enum task_event_kind kind,
                 struct str agent, struct str text)
{
    if (text.n)
        event_add(e, kind, agent, text);
    else
        e->last_number++;
    listeners_wake(e);
}

static void event_add_chunks(struct task_entry *e, struct str agent,
                             struct str text)
{
    size_t most = e->ts->stats.ring_bytes > TASK_RINGS_BYTES
                      ? CHUNK_BYTES_SCARCE
                      : CHUNK_BYTES;

    while (text.n) {
        struct str piece = str_head(text, most);

        event_add(e, TASK_EVENT_CHUNK, agent, piece);
        text = str_sub(text, piece.n, text.n);
    }
    listeners_wake(e);
}

bool task_chunk(struct tasks *ts, struct str id, int64_t turn, int64_t attempt,
                struct str text)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (!e || entry_is_over(e) || e->t.turn != turn ||
        e->t.attempt != attempt || !text.n ||
        (e->t.status != TASK_DISPATCHED && e->t.status != TASK_WORKING))
        return false;
    event_add_chunks(e, STR(""), text);
    return true;
}

void task_tell_delegated(struct tasks *ts, struct str id, struct str text)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (!e || entry_is_over(e))
        return;
    event_add(e, TASK_EVENT_DELEGATED, STR(""), text);
    listeners_wake(e);
}

bool task_chunk_of(struct tasks *ts, struct str id, struct str agent,
                   struct str text)
{
    struct task_entry *e = task_entry_find(ts, id);

    assert(agent.n && agent.n <= AGENT_NAME_MAX);
    if (!e || entry_is_over(e) || !text.n)
        return false;
    event_add_chunks(e, agent, text);
    return true;
}

/* Find the offset of the first event numbered `from` or higher. */
static void listener_seek(struct task_listener *l, int64_t from)
{
    const struct task_entry *e = l->entry;
    uint64_t at = ring_start(&e->ring);
    struct ring_event ev;

    do {
        l->at = at;
    } while (ring_read(&e->ring, &at, &ev) && ev.number < from);
    l->next = from;
}

static void listener_seek_first(struct task_listener *l)
{
    const struct task_entry *e = l->entry;
    struct ring_event ev;
    uint64_t at = 0;

    l->at = ring_start(&e->ring);
    if (ring_read(&e->ring, &at, &ev))
        l->next = ev.number;
    else
        l->next = e->last_number + !entry_is_over(e);
}

enum err task_listen(struct tasks *ts, struct str id, struct task_listener *l,
                     int64_t from)
{
    struct task_entry *e = task_entry_find(ts, id);

    assert(!l->entry && l->on_news && from >= 0);
    if (!e)
        return ERR_NOT_FOUND;
    l->entry = e;
    l->task_id = e->t.id;
    if (from == 1)
        listener_seek_first(l);
    else if (from == 0 || from > e->last_number)
        listener_seek(l, e->last_number + !entry_is_over(e));
    else
        listener_seek(l, from);
    list_append(&e->listeners, &l->node);
    ts->stats.listeners++;
    if (l->hears_inputs && !e->n_hearers++)
        inputs_heard(e);
    if (l->next <= e->last_number)
        list_append(&ts->news, &l->news_node);
    else
        list_append(&e->idle, &l->news_node);
    events_schedule(ts);
    entry_look_for_listeners(e);
    return OK;
}

static void listener_detach(struct tasks *ts, struct task_listener *l)
{
    if (l->hears_inputs && !--l->entry->n_hearers)
        inputs_heard(l->entry);
    list_remove(&l->node);
    list_remove(&l->news_node);
    l->entry = NULL;
    ts->stats.listeners--;
}

void task_unlisten(struct tasks *ts, struct task_listener *l)
{
    struct task_entry *e = l->entry;

    if (!e)
        return;
    listener_detach(ts, l);
    entry_look_for_listeners(e);
}

void entry_deafen(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->listeners)))
        listener_detach(e->ts, LIST_OF(n, struct task_listener, node));
}

const struct task *task_heard(const struct task_listener *l)
{
    return l->entry ? &l->entry->t : NULL;
}

static bool listener_give_event(struct task_listener *l,
                                enum task_event_kind kind,
                                const struct ring_event *ev,
                                struct task_event *out)
{
    *out = (struct task_event){.kind = kind,
                               .number = ev->number,
                               .at_ms = ev->at_ms,
                               .turn = l->entry->t.turn,
                               .status = ev->status,
                               .text = ev->text,
                               .agent = ev->agent};
    l->next = ev->number + 1;
    return true;
}

bool task_next(struct tasks *ts, struct task_listener *l,
               struct task_event *out)
{
    const struct task_entry *e = l->entry;
    struct ring_event ev;
    uint64_t at = l->at;
    bool is_in_ring;

    if (!e || l->next > e->last_number) {
        if (e && !list_has(&l->news_node))
            list_append(&l->entry->idle, &l->news_node);
        return false;
    }
    is_in_ring = ring_read(&e->ring, &at, &ev);
    if (!is_in_ring)
        ev = (struct ring_event){.number = e->last_number + !entry_is_over(e),
                                 .at_ms = entry_is_over(e)
                                              ? e->t.finished_ms
                                              : loop_wall_ms(ts->opts.loop),
                                 .status = e->t.status};
    if (l->next < ev.number) { /* its next event was dropped */
        ev = (struct ring_event){
            .number = ev.number - 1, .at_ms = ev.at_ms, .status = e->t.status};
        return listener_give_event(l, TASK_EVENT_GAP, &ev, out);
    }
    l->at = at;
    return listener_give_event(l, is_in_ring ? ev.kind : TASK_EVENT_RESULT, &ev,
                               out);
}
