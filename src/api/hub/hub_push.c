/* Notifications to a peer about the tasks it listens to: status, chunks, gaps
 * and the result, each sent when net accepts it.
 *
 * For a peer that does not read, only the one message that net rejected is
 * kept: the position in the events of a task is enough to write the rest when
 * there is space again. Events that have left the ring meanwhile are reported
 * as a gap, and the result comes whole in any case. A finished task is not held
 * in memory for a slow reader: its result is then read from the store. */
#include <stdio.h>
#include <stdlib.h>

#include "api/hub/internal.h"

static void hearing_end(struct hearing *g)
{
    struct hub *h = g->peer->hub;

    if (g->is_listening)
        task_unlisten(walk_tasks(h->api->walk), &g->listener);
    g->is_listening = false;
    list_remove(&g->ready_node);
    list_remove(&g->node);
    list_append(&h->over_hearings, &g->node);
    g->peer->n_hearings--;
    peer_reap(h);
}

void push_reap(struct hub *h)
{
    struct list_node *n;

    while ((n = list_pop(&h->over_hearings)))
        free(LIST_OF(n, struct hearing, node));
}

void push_end_all(struct peer *p)
{
    struct list_node *n, *next;

    for (n = list_first(&p->hearings); n; n = next) {
        next = list_next(&p->hearings, n);
        hearing_end(LIST_OF(n, struct hearing, node));
    }
    for (n = list_first(&p->requests); n; n = list_next(&p->requests, n))
        hub_seat(LIST_OF(n, struct request, node))->hearing = NULL;
    p->is_looking = false;
}

static bool hearing_is_of(const struct hearing *g, const struct id *task_id)
{
    return strcmp(g->task_id.text, task_id->text) == 0;
}

bool push_has(const struct peer *p, const struct id *task_id)
{
    for (struct list_node *n = list_first(&p->hearings); n;
         n = list_next(&p->hearings, n))
        if (hearing_is_of(LIST_OF(n, struct hearing, node), task_id))
            return true;
    return false;
}

/* The lookup of its result is not for this hearing any more. */
static void hearing_stop_looking(struct hearing *g)
{
    struct list *all = &g->peer->requests;

    for (struct list_node *n = list_first(all); n; n = list_next(all, n)) {
        struct hub_seat *seat = hub_seat(LIST_OF(n, struct request, node));

        if (seat->hearing != g)
            continue;
        seat->hearing = NULL;
        g->peer->is_looking = false;
    }
}

void push_stop(struct peer *p, const struct task *t)
{
    struct list_node *n, *next;

    for (n = list_first(&p->hearings); n; n = next) {
        struct hearing *g = LIST_OF(n, struct hearing, node);

        next = list_next(&p->hearings, n);
        if (!hearing_is_of(g, &t->id) ||
            strcmp(g->message_id.text, t->message_id.text) != 0)
            continue;
        hearing_stop_looking(g);
        hearing_end(g);
    }
}

/* The peer listens to a task but cannot be told: it is closed, after its
 * answer, so that it connects and listens again. */
static void push_lose(struct peer *p, const struct id *task_id,
                      struct gather *behind)
{
    log_warn(p->hub->api->log, "hub.not_pushed",
             LOG_C("task_id", task_id->text));
    p->is_lost = true;
    if (!behind)
        peer_shut(p, WS_TRY_LATER,
                  STR("events of your tasks were lost; connect and listen "
                      "again"));
}

/* Notifications. */

static struct json_out push_open(struct hearing *g, struct str method,
                                 int64_t turn, int64_t number, int64_t at_ms)
{
    struct hub *h = g->peer->hub;
    struct speak_place place = {store_epoch(h->api->store), number};
    char text[SPEAK_PLACE_BYTES];
    struct json_out o;

    hub_clear(&h->out);
    o = wire_call_open(&h->out, STR(""), method);
    json_open(&o, '{');
    json_member_text(&o, "task_id", str_of(g->task_id.text));
    json_member_int(&o, "turn", turn);
    if (number)
        json_member_text(&o, "event_id", speak_place_write(&place, text));
    json_member_int(&o, "at_ms", at_ms);
    return o;
}

static void push_close(struct hearing *g, struct json_out *o)
{
    struct hub *h = g->peer->hub;

    json_close(o, '}');
    wire_close(o);
    if (h->out.over) {
        push_lose(g->peer, &g->task_id, NULL);
        return;
    }
    h->stats.pushed_total++;
    peer_send(g->peer, buf_str(&h->out));
}

static void push_event(struct hearing *g, const struct task_event *e)
{
    char method[32];
    struct json_out out;

    snprintf(method, sizeof(method), "task.%s", event_name(e->kind));
    out = push_open(g, str_of(method), g->turn, e->number, e->at_ms);
    event_put_members(&out, e);
    if (e->kind == TASK_EVENT_GAP)
        g->needs_gap = false;
    else if (e->number &&
             (e->kind == TASK_EVENT_INPUT || e->kind == TASK_EVENT_INPUT_OVER))
        g->inputs_told = e->number;
    push_close(g, &out);
}

/* As in api/events.c. Listeners here are sent questions but do not keep one
 * waiting (hears_inputs): they are programs, and few of them ask a person. */
static void push_missed_inputs(struct hearing *g)
{
    struct tasks *tasks = walk_tasks(g->peer->hub->api->walk);
    struct task_event event;
    struct buf text;

    buf_init(&text, EVENT_INPUT_BYTES);
    while (!g->only_result &&
           event_of_input(tasks, &g->listener, &g->inputs_told, &text, &event))
        push_event(g, &event);
    buf_fini(&text);
}

/* The result, and the end of the hearing. */
static void push_result(struct hearing *g, const struct task *t)
{
    struct hub *h = g->peer->hub;
    struct json_out o;

    if (g->needs_gap)
        push_event(g,
                   &(struct task_event){.kind = TASK_EVENT_GAP,
                                        .at_ms = loop_wall_ms(h->api->loop)});
    hub_clear(&h->out);
    o = wire_call_open(&h->out, STR(""), STR("task.result"));
    json_open(&o, '{');
    speak_result(&o, t);
    json_member_int(&o, "at_ms", t->finished_ms);
    push_close(g, &o);
    hearing_end(g);
}

/* A result that is not in memory any more. */

static void on_result_read(struct request *o, enum err e, const struct task *t)
{
    struct hearing *g = hub_seat(o)->hearing;
    struct peer *p = peer_of(o);

    if (!g) { /* the hearing ended meanwhile */
        request_end(o);
        return;
    }
    p->is_looking = false;
    if (e || !task_is_over(t->status))
        hearing_end(g); /* removed by retention, or not visible to this user */
    else
        push_result(g, t);
    request_end(o);
    push_go(p);
}

static void hearing_read_result(struct hearing *g)
{
    struct request *o = hub_request_new(g->peer, NULL);

    if (!o) {
        push_lose(g->peer, &g->task_id, NULL);
        hearing_end(g);
        return;
    }
    list_remove(&g->ready_node);
    g->peer->is_looking = true;
    hub_seat(o)->hearing = g;
    o->task_id = g->task_id;
    o->message_id = g->message_id;
    look_turn(o, on_result_read);
}

/* Sending. */

/* True: there may be more. */
static bool push_next(struct hearing *g)
{
    struct tasks *tasks = walk_tasks(g->peer->hub->api->walk);
    struct task_event e;

    if (!g->has_begun)
        push_missed_inputs(g);
    g->has_begun = true;
    if (!task_next(tasks, &g->listener, &e)) {
        list_remove(&g->ready_node);
        return false;
    }
    if (e.kind == TASK_EVENT_RESULT)
        push_result(g, task_heard(&g->listener));
    else if (e.kind == TASK_EVENT_GAP) {
        push_event(g, &e);
        push_missed_inputs(g);
    } else if (!g->only_result)
        push_event(g, &e);
    return e.kind != TASK_EVENT_RESULT;
}

static void push_all(struct peer *p)
{
    struct list_node *n;

    while (!peer_is_stuck(p) && p->id && (n = list_first(&p->ready))) {
        struct hearing *g = LIST_OF(n, struct hearing, ready_node);

        if (g->is_at_result) {
            if (p->is_looking)
                return;
            hearing_read_result(g);
            continue;
        }
        while (push_next(g))
            if (peer_is_stuck(p) || !p->id)
                return;
    }
}

/* A nested call returns at once: the outer one continues. */
void push_go(struct peer *p)
{
    if (p->is_pushing)
        return;
    p->is_pushing = true;
    push_all(p);
    p->is_pushing = false;
}

static void hearing_be_ready(struct hearing *g)
{
    if (!g->behind && !list_has(&g->ready_node))
        list_append(&g->peer->ready, &g->ready_node);
}

/* Events before the result were not sent. */
static bool hearing_has_missed(struct hearing *g)
{
    struct task_event e;

    return !g->only_result &&
           task_next(walk_tasks(g->peer->hub->api->walk), &g->listener, &e) &&
           e.kind != TASK_EVENT_RESULT;
}

/* A slow reader must not hold the task in memory. */
static void hearing_leave_memory(struct hearing *g)
{
    const struct task *t = task_heard(&g->listener);

    if (!t || !task_is_over(t->status))
        return;
    g->needs_gap |= hearing_has_missed(g);
    task_unlisten(walk_tasks(g->peer->hub->api->walk), &g->listener);
    g->is_listening = false;
    g->is_at_result = true;
}

static void on_task_news(struct task_listener *l)
{
    struct hearing *g = LIST_OF(l, struct hearing, listener);

    hearing_be_ready(g);
    if (g->behind)
        return;
    if (peer_is_stuck(g->peer))
        hearing_leave_memory(g);
    else
        push_go(g->peer);
}

/* The batch with its request is answered. */
void push_after(struct gather *g)
{
    struct peer *p = g->peer;

    for (struct list_node *n = list_first(&p->hearings); n;
         n = list_next(&p->hearings, n)) {
        struct hearing *one = LIST_OF(n, struct hearing, node);

        if (one->behind != g)
            continue;
        one->behind = NULL;
        hearing_be_ready(one);
    }
    if (p->is_lost)
        push_lose(p, &(struct id){""}, NULL);
    if (p->id)
        push_go(p);
}

/* Start. */

static int64_t push_begin_at(const struct request *o, struct hearing *g)
{
    const struct hub_seat *seat = o->seat;

    if (!seat->has_place)
        return 1;
    if (seat->place.epoch == store_epoch(o->api->store))
        return seat->place.number + 1;
    g->needs_gap = true;
    return 1;
}

/* A question may be open although no event comes. */
static void push_open_inputs(struct hearing *g)
{
    const struct input *list[TASK_INPUTS_MAX];

    if (g->behind || !task_inputs(walk_tasks(g->peer->hub->api->walk),
                                  str_of(g->task_id.text), list))
        return;
    hearing_be_ready(g);
    push_go(g->peer);
}

/* Listen to t from now on, after the answer to o. A second request replaces the
 * first. */
void push_begin(struct request *o, const struct task *t)
{
    struct hub_seat *seat = o->seat;
    struct gather *behind = seat->reply.gather;
    struct peer *p = peer_of(o);
    struct hearing *g = FAULT("hub.hearing") ? NULL : calloc(1, sizeof(*g));

    if (!g) {
        push_lose(p, &t->id, behind);
        return;
    }
    push_stop(p, t);
    g->peer = p;
    g->task_id = t->id;
    g->message_id = t->message_id;
    g->turn = t->turn;
    g->only_result = seat->listen == LISTEN_RESULT;
    g->behind = behind;
    g->listener.on_news = on_task_news;
    list_append(&p->hearings, &g->node);
    p->n_hearings++;
    g->is_listening = look_is_current(o, t) &&
                      task_listen(walk_tasks(o->api->walk), str_of(t->id.text),
                                  &g->listener, push_begin_at(o, g)) == OK;
    g->is_at_result = !g->is_listening;
    if (g->is_listening) {
        push_open_inputs(g);
        return; /* events will come */
    }
    if (!task_is_over(t->status)) {
        push_lose(p, &t->id, behind);
        hearing_end(g);
    } else if (!g->behind) {
        push_result(g, t);
    }
}
