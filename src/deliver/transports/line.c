/* Lines, and the transport ws-agent:// over them.
 *
 * A delivery is in the list of its line from its task.execute until it is over.
 * When the line goes, its deliveries fail and are repeated over the next line
 * of the seat. The same happens when another line takes the seat, but as an
 * innocent failure, so no attempt is counted.
 *
 * A line without room keeps pending messages and is full until they are sent. A
 * full line takes no work: jobs of a slow agent wait in its queue, where
 * priorities apply and a cancel is cheap. Besides the one task.execute that
 * found no room, only cancels and answers are pending, and these are limited.
 *
 * A line's memory stays until the end of the loop turn, even if its owner
 * closes or replaces it from inside `send` or a callback. */
#include "deliver/transports/line.h"

#include <assert.h>
#include <stdlib.h>

/* Seats. */

/* A routing id has no line feed, so no two pairs share a key. */
struct str seat_key(const struct agent *a, const struct agent_url *url,
                    char out[SEAT_KEY_MAX])
{
    struct str id = url->transport == TRANSPORT_HUB ? url->id : a->name;
    size_t n;

    if (id.n > AGENT_URL_MAX || a->creator.n > PRINCIPAL_NAME_MAX)
        return (struct str){0};
    n = str_lowered(id, out, AGENT_URL_MAX).n;
    out[n++] = '\n';
    n += str_lowered(a->creator, out + n, PRINCIPAL_NAME_MAX).n;
    return (struct str){out, n};
}

struct seat *seat_find(const struct deliver *d, struct str key)
{
    return key.n ? map_get(&d->lines->seats, key) : NULL;
}

struct seat *seat_of(struct deliver *d, struct str key)
{
    struct seat *s = seat_find(d, key);

    if (s || !key.n)
        return s;
    s = mem_new(sizeof(*s) + key.n);
    list_init(&s->sleepers);
    s->n = key.n;
    memcpy(s->key, key.p, key.n);
    if (map_put(&d->lines->seats, (struct str){s->key, s->n}, s) == OK)
        return s;
    free(s);
    return NULL;
}

void seat_leave(struct deliver *d, struct seat *s)
{
    if (s->line || !list_is_empty(&s->sleepers))
        return;
    map_take(&d->lines->seats, (struct str){s->key, s->n});
    free(s);
}

/* The line of a; NULL: it is not connected. */
static struct line *line_of_agent(const struct deliver *d,
                                  const struct agent *a,
                                  const struct agent_url *url)
{
    char key[SEAT_KEY_MAX];
    struct seat *s = seat_find(d, seat_key(a, url, key));

    return s ? s->line : NULL;
}

bool deliver_shares_line(const struct agent *a, const struct agent *b)
{
    char key[2][SEAT_KEY_MAX];
    struct agent_url url[2];

    return agent_url_read(a->url, &url[0], NULL) == OK &&
           agent_url_read(b->url, &url[1], NULL) == OK &&
           url[0].transport == TRANSPORT_HUB &&
           url[1].transport == TRANSPORT_HUB &&
           str_eq(seat_key(a, &url[0], key[0]), seat_key(b, &url[1], key[1]));
}

/* Send. */

static bool line_is_full(const struct line *l)
{
    return !list_is_empty(&l->unsaid);
}

static void unsaid_drop(struct unsaid *u)
{
    list_remove(&u->node);
    u->line->unsaid_bytes -= u->n;
    if (u->delivery)
        u->delivery->unsaid = NULL;
    free(u);
}

static enum err unsaid_keep(struct line *l, struct str text, struct delivery *y)
{
    struct unsaid *u;

    if (line_is_full(l) && (text.n > LINE_UNSAID_MAX ||
                            l->unsaid_bytes > LINE_UNSAID_MAX - text.n))
        return ERR_BUSY;
    u = FAULT("deliver.unsaid") ? NULL : malloc(sizeof(*u) + text.n);
    if (!u)
        return ERR_NOMEM;
    *u = (struct unsaid){.line = l, .delivery = y, .n = text.n};
    memcpy(u->text, text.p, text.n);
    list_append(&l->unsaid, &u->node);
    l->unsaid_bytes += u->n;
    if (y)
        y->unsaid = u;
    return OK;
}

static enum err line_send_or_keep(struct line *l, struct str text,
                                  struct delivery *y)
{
    enum err e;

    if (l->is_gone)
        return ERR_GONE;
    e = line_is_full(l) ? ERR_BUSY : l->ops.send(l->ctx, text);
    if (l->is_gone)
        return ERR_GONE;
    return e == ERR_BUSY ? unsaid_keep(l, text, y) : e;
}

enum err line_say(struct line *l, struct str text)
{
    return line_send_or_keep(l, text, NULL);
}

enum err deliver_say(struct deliver *d, uint64_t line, struct str message)
{
    struct line *l = line_by_id(d, line);

    return l ? line_send_or_keep(l, message, NULL) : ERR_GONE;
}

static const struct delivery_failure line_lost = {
    .code = STR("agent_disconnected"),
    .words = STR("the agent's connection was lost before it had answered"),
};

void deliver_line_room(struct deliver *d, uint64_t line)
{
    struct line *l = line_by_id(d, line);
    struct delivery *y;

    while (l && !l->is_gone && line_is_full(l)) {
        struct unsaid *u = LIST_OF(list_first(&l->unsaid), struct unsaid, node);
        enum err e = l->ops.send(l->ctx, (struct str){u->text, u->n});

        if (e == ERR_BUSY || l->is_gone)
            return;
        y = u->delivery;
        unsaid_drop(u);
        if (e && y) /* a failed task.execute; other messages are dropped */
            delivery_failed(y, &line_lost);
    }
    if (l && l->seat)
        seat_taken(d, l->seat);
}

/* Deliveries on a line. */

enum err line_execute(const struct task *t, struct buf *out)
{
    char id[WIRE_EXECUTE_ID_BYTES];
    struct json_out o =
        wire_call_open(out, wire_execute_id(t, id), STR("task.execute"));

    wire_execute(&o, t);
    wire_close(&o);
    return out->over ? ERR_NOMEM : OK;
}

enum err line_take(struct line *l, struct delivery *y, struct str execute)
{
    enum err e = line_send_or_keep(l, execute, y);

    if (e)
        return e;
    y->line = l;
    list_append(&l->deliveries, &y->on_line);
    return OK;
}

/* Tell the agent to stop. If that fails, it finds out when it sends its
 * result. */
static void line_send_cancel(struct line *l, const struct delivery *y)
{
    bool is_late =
        y->deadline_ms && y->deadline_ms <= loop_wall_ms(l->deliver->opts.loop);
    struct json_out o;
    struct buf out;

    buf_init(&out, 1024);
    o = wire_call_open(&out, (struct str){0}, STR("task.cancel"));
    json_open(&o, '{');
    json_member_text(&o, "task_id", str_of(y->id.task_id.text));
    json_member_text(&o, "reason", is_late ? STR("expired") : STR("cancelled"));
    json_close(&o, '}');
    wire_close(&o);
    if (out.over || line_say(l, buf_str(&out)) != OK)
        log_info(l->deliver->opts.log, "deliver.cancel_unsaid",
                 LOG_C("task_id", y->id.task_id.text));
    buf_fini(&out);
}

void line_leave(struct delivery *y, enum stop_why why)
{
    struct line *l = y->line;
    bool was_said = !y->unsaid;

    if (!l)
        return;
    y->line = NULL;
    if (l->last == y)
        l->last = NULL;
    list_remove(&y->on_line);
    if (y->unsaid)
        unsaid_drop(y->unsaid);
    if (why == STOP_CANCELLED && was_said)
        line_send_cancel(l, y);
    else if (why != STOP_CLOSING && !was_said && !line_is_full(l))
        deliver_line_room(l->deliver, l->id);
}

/* Open and close. */

static struct str line_id_key(const uint64_t *id)
{
    return (struct str){(const char *)id, sizeof(*id)};
}

struct line *line_by_id(const struct deliver *d, uint64_t id)
{
    return map_get(&d->lines->by_id, line_id_key(&id));
}

uint64_t line_id(const struct line *l)
{
    return l->id;
}

struct line *line_open(struct deliver *d, struct str agent,
                       const struct line_ops *ops, void *ctx)
{
    struct line *l = mem_new(sizeof(*l));

    l->deliver = d;
    l->id = ++d->lines->last_id;
    l->ops = *ops;
    l->ctx = ctx;
    list_init(&l->deliveries);
    list_init(&l->unsaid);
    list_init(&l->calls);
    agent = str_sub(agent, 0, AGENT_NAME_MAX);
    l->n_agent = agent.n;
    if (agent.n)
        memcpy(l->agent, agent.p, agent.n);
    if (map_put(&d->lines->by_id, line_id_key(&l->id), l) == OK)
        return l;
    free(l);
    return NULL;
}

static void line_free(struct line *l)
{
    while (!list_is_empty(&l->unsaid))
        unsaid_drop(LIST_OF(list_first(&l->unsaid), struct unsaid, node));
    line_calls_drop(l);
    free(l);
}

static void lines_free_gone(struct lines *all)
{
    struct list_node *n;

    while ((n = list_pop(&all->gone)))
        line_free(LIST_OF(n, struct line, node));
}

static void lines_reap(struct loop_job *job)
{
    lines_free_gone(LIST_OF(job, struct lines, reaper));
}

void line_close(struct line *l, const struct delivery_failure *f)
{
    struct deliver *d = l->deliver;
    struct list_node *n;

    if (l->is_gone)
        return;
    l->is_gone = true;
    map_take(&d->lines->by_id, line_id_key(&l->id));
    list_append(&d->lines->gone, &l->node);
    loop_at_end(d->opts.loop, &d->lines->reaper);
    if (l->seat) {
        struct seat *s = l->seat;
        struct agent_queue *k = agent_queue_find(d, str_of(l->agent));

        deliver_stir(d, str_of(l->agent));
        l->seat = NULL;
        d->stats.lines--;
        if (s->line == l)
            s->line = NULL;
        seat_leave(d, s);
        deliver_report(d, str_of(l->agent), 0); /* forget its own report */
        if (k)
            agent_queue_look(d, k);
    }
    while ((n = list_first(&l->deliveries)))
        delivery_failed(LIST_OF(n, struct delivery, on_line), f);
}

static void line_take_over(struct deliver *d, struct line *old)
{
    static const struct delivery_failure f = {
        .code = STR("agent_disconnected"),
        .words = STR("another connection of the agent took over"),
        .is_innocent = true,
    };

    d->stats.taken_over_total++;
    line_close(old, &f);
    old->ops.taken_over(old->ctx);
}

enum err deliver_attach(struct deliver *d, const struct agent *a,
                        const struct line_ops *ops, void *ctx, uint64_t *line)
{
    char key[SEAT_KEY_MAX];
    struct agent_url url;
    struct seat *s;
    struct line *l, *old;

    deliver_stir(d, a->name);
    if (agent_url_read(a->url, &url, NULL) != OK)
        url = (struct agent_url){.transport = N_TRANSPORTS};
    s = seat_of(d, seat_key(a, &url, key));
    if (!s)
        return ERR_NOMEM;
    l = line_open(d, a->name, ops, ctx);
    if (!l) {
        seat_leave(d, s);
        return ERR_NOMEM;
    }
    old = s->line;
    s->line = l;
    l->seat = s;
    *line = l->id;
    departure_forget(d, a->name);
    d->stats.lines++;
    d->stats.lines_total++;
    if (old)
        line_take_over(d, old);
    if (!l->is_gone)
        seat_taken(d, s);
    if (agent_queue_find(d, a->name))
        agent_queue_wake(d, agent_queue_find(d, a->name));
    return OK;
}

void deliver_detach(struct deliver *d, uint64_t line, struct str because)
{
    struct line *l = line_by_id(d, line);

    if (!l)
        return;
    departure_note(d, str_of(l->agent), because);
    line_close(l, &line_lost);
}

/* All lines. */

struct lines *lines_new(struct deliver *d)
{
    struct lines *all = mem_new(sizeof(*all));

    map_init(&all->by_id, LINES_MAX, d->opts.seed);
    map_init(&all->seats, LINES_MAX + DELIVER_QUEUES_MAX, d->opts.seed);
    map_init(&all->calls, (size_t)LINES_MAX * LINE_CALLS_MAX, d->opts.seed);
    list_init(&all->gone);
    all->reaper.run = lines_reap;
    arena_init(&all->scratch, LINE_MESSAGE_MAX);
    return all;
}

void lines_free(struct deliver *d)
{
    struct lines *all = d->lines;
    const struct map_slot *slot;
    size_t at = 0;

    if (!all)
        return;
    loop_not_at_end(&all->reaper);
    lines_free_gone(all);
    while ((slot = map_next(&all->by_id, &at)))
        line_free(slot->value);
    for (at = 0; (slot = map_next(&all->seats, &at));)
        free(slot->value);
    map_fini(&all->by_id);
    map_fini(&all->seats);
    map_fini(&all->calls);
    arena_fini(&all->scratch);
    free(all);
}

/* The transport. */

static enum err line_reaches(const struct deliver *d, const struct agent *a,
                             const struct agent_url *url, struct why *why)
{
    if (line_of_agent(d, a, url) || a->wake.url.n ||
        d->opts.settings.holds_for_offline)
        return OK;
    return why_err(why, ERR_AGENT_OFFLINE,
                   "the agent \"%.*s\" is self-hosted and not connected; it "
                   "must be running to be given work",
                   STR_ARG(a->name));
}

static enum presence line_presence(const struct deliver *d,
                                   const struct agent *a,
                                   const struct agent_url *url)
{
    const struct line *l = line_of_agent(d, a, url);

    if (!l)
        return AWAY;
    return line_is_full(l) ? FULL : PRESENT;
}

static bool line_is_dead(const struct deliver *d, const struct agent *a,
                         const struct agent_url *url, bool has_details,
                         struct why *why)
{
    if (line_of_agent(d, a, url))
        return false;
    if (a->wake.url.n)
        return wakes_have_failed(d, a->name, why);
    if (why)
        departure_describe(d, a, has_details, why);
    return true;
}

static enum err line_start(struct deliver *d, const struct task *t,
                           const struct agent *a, const struct agent_url *url,
                           struct delivery **out)
{
    struct line *l = line_of_agent(d, a, url);
    struct delivery *y;
    struct buf text;
    enum err e;

    if (!l || line_is_full(l))
        return l ? ERR_BUSY : ERR_GONE;
    y = mem_new(sizeof(*y));
    buf_init(&text, LINE_MESSAGE_MAX);
    e = line_execute(t, &text);
    if (!e)
        e = line_take(l, y, buf_str(&text));
    buf_fini(&text);
    if (e)
        free(y);
    else
        *out = y;
    return e;
}

static void line_free_delivery(struct delivery *y)
{
    free(y);
}

const struct transport_row transport_line = {
    .reaches = line_reaches,
    .presence = line_presence,
    .call = sleeper_call,
    .is_dead = line_is_dead,
    .start = line_start,
    .stop = line_leave,
    .free = line_free_delivery,
};
