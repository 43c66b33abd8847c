/* Several messages that waited for room at one agent, released as one task.
 *
 * When there is room for the first of them, those behind it that may go too,
 * from the same requester and sender, become items of one envelope of kind
 * BATCH. It is a message like any other and takes the same walk. Its tx marks
 * the holds of its members, so that a crash leaves all of it or nothing. A
 * member's row stays held, so that it is not carried beside its batch. The
 * member is shown as queued or dispatched, like the batch, and no longer counts
 * as held. It ends with its batch, by reading the batch's row, which also finds
 * a batch that ended before a restart.
 *
 *     batch_begin -> send -> gatekeeper_ask, gatekeeper_record -> (commit)
 *         -> batch_settle -> … the batch is over -> wait_batch
 *         -> batch_look -> (read) -> end of each member
 *
 * After a failed batch its members go one by one. */
#include "gate/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SCAN_MAX = 1000,          /* holds searched for members */
    ITEMS_BYTES = 512 * 1024, /* of all envelopes in a batch */
    ITEM_BYTES = 64,          /* of each, besides its text */
    MEMBERS_MAX = 100,
};

struct batch {
    struct gatekeeper *gatekeeper;
    struct target *target; /* reserves room here until it is committed */
    struct gate_result gate_result; /* of the first member */
    size_t n;
    struct id members[MEMBERS_MAX];
};

static struct hold *batch_member(const struct batch *x, size_t i)
{
    return hold_find(x->gatekeeper, str_of(x->members[i].text));
}

/* A hold whose time is over goes alone, if at all. */
static bool can_share_batch(const struct hold *h, const struct hold *first)
{
    return h->state == HOLD_WAITS && h->target == first->target &&
           h->why->cause == PASS_CAPACITY && !h->batch.text[0] &&
           !h->is_single && !h->is_due && h->priority != PRIORITY_URGENT &&
           str_eq(h->why->rule, first->why->rule) &&
           str_eq(h->requester, first->requester) &&
           str_eq_nocase(h->from, first->from);
}

/* The envelope as its sender wrote it, plus its task id, so that the agent can
 * give a result for each item. */
static void add_item(const struct task *t, struct buf *items)
{
    if (items->n)
        buf_add_char(items, ',');
    buf_addf(items, "{\"task_id\":\"%s\",", t->id.text);
    buf_add_str(items, (struct str){t->text.p + 1, t->text.n - 1});
}

/* Whether h may go too, and fits. Only the first of its order: a batch has an
 * order of its own, which does not wait for theirs. */
static bool may_join(struct batch *x, struct hold *h, struct buf *items)
{
    struct gatekeeper *b = x->gatekeeper;
    const struct task *t = task_find(b->opts.tasks, str_of(h->task_id.text));
    struct arena arena;
    struct gate_result gate_result;
    bool may_go;

    if (!t || !t->is_envelope || t->text.n < 3 || t->text.p[0] != '{' ||
        items->n + t->text.n + ITEM_BYTES > ITEMS_BYTES || !hold_is_first(h) ||
        !task_is_first(t))
        return false;
    arena_init(&arena, 8 * 1024 * 1024);
    may_go = decide_again(b, t, h, &arena, &gate_result) &&
             gate_result.answer == GATE_ROUTE;
    arena_fini(&arena);
    if (!may_go)
        return false;
    add_item(t, items);
    return !items->over;
}

static void gather_members(struct batch *x, struct hold *first,
                           struct buf *items)
{
    const struct list *all = &x->gatekeeper->holds.by_place;
    size_t most = (size_t)first->why->batch_most, seen = 0;

    if (most > MEMBERS_MAX)
        most = MEMBERS_MAX;
    for (struct list_node *n = &first->place_node;
         n && x->n < most && seen++ < SCAN_MAX; n = list_next(all, n)) {
        struct hold *h = LIST_OF(n, struct hold, place_node);

        if (can_share_batch(h, first) && may_join(x, h, items))
            x->members[x->n++] = h->task_id;
        if (!x->n)
            return; /* none goes before the first */
    }
}

static struct str batch_text(struct msg *m, const struct hold *first,
                             struct str items, struct str *payload)
{
    struct buf text;
    struct json_out o;
    size_t at;
    char *copy;

    buf_init(&text, MSG_TEXT_MAX);
    o = json_out(&text);
    json_open(&o, '{');
    json_member_text(&o, "from", first->from);
    json_member_text(&o, "to", first->agent);
    json_member_text(&o, "type", ENVELOPE_BATCH);
    json_member_text(&o, "priority", task_priority_name(first->priority));
    json_key(&o, STR("payload"));
    at = text.n;
    buf_addf(&text, "{\"items\":[");
    buf_add_str(&text, items);
    buf_add_str(&text, STR("]}"));
    copy = text.over ? NULL : arena_alloc(&m->arena, text.n + 1);
    if (copy) {
        memcpy(copy, text.p, text.n);
        copy[text.n] = '}';
        *payload = (struct str){copy + at, text.n - at};
    }
    at = text.n + 1;
    buf_fini(&text);
    return (struct str){copy, copy ? at : 0};
}

/* A message in the name of the requester. NULL: it cannot be made. */
static struct msg *batch_message(struct gatekeeper *b, const struct hold *first,
                                 struct str items)
{
    struct caller caller = {.role = ROLE_USER};
    struct envelope *e;
    struct msg *m;

    if (!access_caller(b->opts.access, first->requester, &caller))
        return NULL;
    m = msg_new(&caller, loop_wall_ms(b->opts.loop));
    e = m ? arena_alloc(&m->arena, sizeof(*e)) : NULL;
    if (!e) {
        msg_free(m);
        return NULL;
    }
    *e = (struct envelope){.from = str_of(arena_strdup(&m->arena, first->from)),
                           .to = str_of(arena_strdup(&m->arena, first->agent)),
                           .type = ENVELOPE_BATCH,
                           .priority = first->priority,
                           .at_ms = m->in.at_ms,
                           .scope = {NULL, 0}};
    m->call.text = batch_text(m, first, items, &e->payload);
    m->call.envelope = e;
    m->call.executor = e->to;
    m->call.priority = first->priority;
    if (m->call.text.n && e->from.n && e->to.n)
        return m;
    msg_free(m);
    return NULL;
}

/* Members that are not part of the batch now go alone. */
static void on_batch_sent(struct msg *m, void *ctx)
{
    struct batch *x = ctx;
    struct gatekeeper *b = x->gatekeeper;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = batch_member(x, i);

        if (!h || h->batch.text[0] || h->state != HOLD_MOVES)
            continue;
        h->state = HOLD_WAITS;
        h->is_single = true;
        free(h->next);
        h->next = NULL;
        hold_later(h);
    }
    if (m->err)
        log_info(b->opts.log, "broker.no_batch",
                 LOG_I("members", (int64_t)x->n),
                 LOG_C("because", err_row(m->err)->wording));
    x->target->n_going--;
    target_release(b, x->target);
    msg_free(m);
    free(x);
}

static void send_batch(struct batch *x, struct msg *m)
{
    struct gatekeeper *b = x->gatekeeper;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = batch_member(x, i);

        h->state = HOLD_MOVES;
        h->is_to_move = false;
    }
    x->target->n_going++;
    m->gate.batch = x;
    b->opts.send(b->opts.ctx, m, on_batch_sent, x);
}

bool batch_begin(struct gatekeeper *b, struct hold *first,
                 const struct gate_result *p)
{
    struct batch *x;
    struct msg *m = NULL;
    struct buf items;

    if (!b->opts.send || !can_share_batch(first, first) ||
        first->why->batch_most < 2)
        return false;
    x = mem_new(sizeof(*x));
    *x = (struct batch){
        .gatekeeper = b, .target = first->target, .gate_result = *p};
    buf_init(&items, ITEMS_BYTES);
    gather_members(x, first, &items);
    if (x->n > 1)
        m = batch_message(b, first, buf_str(&items));
    buf_fini(&items);
    if (!m) {
        free(x);
        return false;
    }
    send_batch(x, m);
    return true;
}

void batch_ask(struct msg *m, struct gate_result *out)
{
    const struct batch *x = m->gate.batch;

    *out = (struct gate_result){.answer = GATE_ROUTE,
                                .cause = PASS_BATCHED,
                                .priority = m->call.priority,
                                .sla_ms = x->gate_result.sla_ms};
    memcpy(out->sla, x->gate_result.sla, sizeof(out->sla));
    snprintf(out->reason, sizeof(out->reason),
             "%zu messages that waited for room, as one", x->n);
}

static struct hold_why *batch_hold_why(const struct hold *h, struct str task_id)
{
    struct gate_result p;

    hold_result(h, h->why, &p);
    p.cause = PASS_BATCHED;
    p.n_keys = 1;
    p.keys[0] = (struct wait_key){.kind = WAIT_BATCH, .name = task_id};
    snprintf(p.reason, sizeof(p.reason), "it is part of the batch %.*s",
             STR_ARG(task_id));
    return hold_why_of(&p);
}

/* The event of a member that is let go with the batch. */
static bool event_of_member(struct gatekeeper *b, const struct hold *h,
                            struct arena *arena, struct past_event *out,
                            enum err *err)
{
    const struct task *t = task_find(b->opts.tasks, str_of(h->task_id.text));
    struct envelope e;

    *err = t ? envelope_of_task(t, arena, &e) : ERR_NOT_FOUND;
    if (*err)
        return false;
    e.scope = h->scope;
    return event_from_envelope(b, &e, &h->task_id, &h->message_id,
                               loop_wall_ms(b->opts.loop), out);
}

/* The feed reports each member as released, since it only waits for the answer
 * now. */
static void feed_member_released(const struct hold *h, const struct task *t,
                                 struct msg *m)
{
    struct envelope e;
    struct gate_result p = {.answer = GATE_ROUTE,
                            .cause = PASS_BATCHED,
                            .rule = h->why->rule,
                            .priority = h->priority,
                            .channel = m->gate.gate_result.channel};

    hold_envelope(h, &e);
    note_task_time(h->gatekeeper, t, &p);
    snprintf(p.reason, sizeof(p.reason), "there is room: it goes as part of %s",
             m->task.id.text);
    feed_decision(&m->tx, &(struct decision_entry){
                              .type = STR("gate.released"),
                              .task_id = str_of(h->task_id.text),
                              .message_id = str_of(h->message_id.text),
                              .conversation_id = t->conversation_id,
                              .requester = h->requester,
                              .root_user = h->root_user,
                              .envelope = &e,
                              .target = h->agent,
                              .gate_result = &p,
                              .status = task_status_name(TASK_QUEUED),
                              .at_ms = m->in.at_ms,
                          });
}

static void record_member(struct gatekeeper *b, struct hold *h, struct msg *m)
{
    const struct task *t = task_find(b->opts.tasks, str_of(h->task_id.text));
    struct past_event event;
    struct arena arena;
    enum err e;

    free(h->next);
    h->next = batch_hold_why(h, str_of(m->task.id.text));
    if (!t) {
        m->tx.build_error = ERR_NOMEM;
        return;
    }
    hold_write_batch(h, h->next, m->task.id, &m->tx);
    feed_member_released(h, t, m);
    arena_init(&arena, 8 * 1024 * 1024);
    if (event_of_member(b, h, &arena, &event, &e))
        event_record(b, &event, &m->tx);
    else if (e)
        m->tx.build_error = ERR_NOMEM;
    arena_fini(&arena);
}

void batch_record(struct gatekeeper *b, struct msg *m)
{
    struct batch *x = m->gate.batch;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = batch_member(x, i);

        if (h) /* otherwise it was cancelled, and the batch's result for it is
                  ignored */
            record_member(b, h, m);
    }
}

static void member_join_batch(struct gatekeeper *b, struct hold *h,
                              struct id batch)
{
    struct hold_why *why = h->next;
    struct past_event event;
    struct arena arena;
    enum err e;

    hold_count_release(b, h);
    h->next = NULL;
    h->state = HOLD_WAITS;
    hold_join_batch(h, batch);
    hold_rekey(h, why);
    wait_look(h); /* the batch may be over already */
    arena_init(&arena, 8 * 1024 * 1024);
    if (event_of_member(b, h, &arena, &event, &e))
        event_happened(b, &event);
    else if (e) /* the event is on disk; look at all holds instead of those that
                   wait for it */
        wait_all(b);
    arena_fini(&arena);
}

void batch_settle(struct gatekeeper *b, struct msg *m)
{
    struct batch *x = m->gate.batch;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = batch_member(x, i);

        if (h && h->state == HOLD_MOVES && h->next)
            member_join_batch(b, h, m->task.id);
    }
}

/* When its batch is over the member keeps its status until it ends too. */
void batch_carry(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;
    const struct task *t = task_find(b->opts.tasks, str_of(h->task_id.text));
    const struct task *batch = task_find(b->opts.tasks, str_of(h->batch.text));
    bool goes_on = batch && !task_is_over(batch->status);
    bool is_with_agent = goes_on && (batch->status == TASK_DISPATCHED ||
                                     batch->status == TASK_WORKING ||
                                     batch->status == TASK_INPUT_REQUIRED);

    if (PLANTED("broker.batch_stays_held") || !t || (t->carried && !goes_on))
        return;
    task_carry(b->opts.tasks, str_of(h->task_id.text),
               is_with_agent ? TASK_DISPATCHED : TASK_QUEUED);
}

struct batch_read {
    struct query query;
    struct gatekeeper *gatekeeper;
    struct id member;
};

/* "results": {"task_…": "text" or {"text", "metadata", "error"}}: the agent's
 * result for each member. */
static void member_result(const struct hold *h, const struct task_result *whole,
                          struct arena *arena, struct task_result *out)
{
    struct str results = STR("results"), id = str_of(h->task_id.text), raw;
    static const struct str keys[] = {STR("text"), STR("metadata"),
                                      STR("error")};
    struct str values[3];

    *out = *whole;
    if (whole->status != TASK_COMPLETED || !whole->metadata.n ||
        json_scan(whole->metadata, &results, 1, &raw, NULL) != OK || !raw.n ||
        json_scan(raw, &id, 1, &raw, NULL) != OK || !raw.n)
        return;
    if (json_unquote(arena, raw, &out->text)) {
        out->metadata = STR("");
        return;
    }
    if (json_scan(raw, keys, 3, values, NULL) != OK)
        return;
    if (!json_unquote(arena, values[0], &out->text))
        out->text = STR("");
    out->metadata = values[1].n && *values[1].p == '{' ? values[1] : STR("");
    if (json_unquote(arena, values[2], &out->error) && out->error.n) {
        out->status = TASK_FAILED;
        out->error_code = STR("failed");
    }
}

static void end_member(struct hold *h, const struct task_result *whole)
{
    struct gatekeeper *b = h->gatekeeper;
    struct id id = h->task_id;
    struct task_result r;
    struct arena arena;

    arena_init(&arena, 8 * 1024 * 1024);
    member_result(h, whole, &arena, &r);
    hold_later(h); /* in case it does not happen */
    hold_end_task(b, &id, &r);
    arena_fini(&arena);
}

static void on_batch_row(struct query *q, void *ctx)
{
    static const struct task_result gone = {
        .status = TASK_FAILED,
        .error_code = STR("batch_gone"),
        .error = STR("its batch no longer exists"),
    };
    struct batch_read *r = ctx;
    struct gatekeeper *b = r->gatekeeper;
    struct hold *h = hold_find(b, str_of(r->member.text));
    struct task t;

    if (h)
        h->is_reading = false;
    if (!h || b->is_stopping) {
        /* nothing waits for it */
    } else if (q->err) {
        hold_later(h);
    } else if (!q->rows) {
        end_member(h, &gone);
    } else {
        task_from_row(&t, q->rows);
        t.result.status = t.status;
        if (task_is_over(t.status))
            end_member(h, &t.result);
        else if (h->is_to_read)
            batch_look(h); /* the row may have been read too early */
    }
    query_fini(q);
    free(r);
}

void batch_look(struct hold *h)
{
    struct gatekeeper *b = h->gatekeeper;
    struct batch_read *r;

    batch_carry(h);
    h->is_to_read = h->is_reading;
    if (h->is_reading || !b->opts.end)
        return;
    r = mem_new(sizeof(*r));
    r->gatekeeper = b;
    r->member = h->task_id;
    h->is_reading = true;
    query_init(&r->query, &task_table, 1);
    query_if(&r->query, TASK_ID, IS, value_text(str_of(h->batch.text)));
    store_read(b->opts.store, &r->query, on_batch_row, r);
}
