/* Several that waited for room at one agent, let go as one task.
 *
 * When there is room again for the first of them, those behind it that may go
 * too, of the same requester and sender, become items of one envelope of the
 * kind BATCH. It is a message like any other and takes the same walk; in its
 * tx its members' holds are marked as part of it, so that after a crash either
 * all of that is so or none. A member's row stays held, so that nobody carries
 * it beside its batch; it is shown as queued or dispatched, as the batch is,
 * and counts as held no more. It ends with its batch, by a look at the batch's
 * row: which also finds what was over before a restart.
 *
 *     batch_begin -> send -> broker_ask, broker_record -> (commit)
 *         -> batch_settle -> … the batch is over -> wait_batch
 *         -> batch_look -> (read) -> on_end of each member
 *
 * A batch that cannot be made is not tried again: its members go singly. */
#include "broker/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SCAN_MAX = 1000,          /* holds looked through for members */
    ITEMS_BYTES = 512 * 1024, /* of all envelopes of a batch */
    ITEM_BYTES = 64,          /* of each, beside what its sender wrote */
    MEMBERS_MAX = 100,
};

struct batch {
    struct broker *broker;
    struct target *target; /* that it takes room at until it is there */
    struct pass pass;      /* of its first member */
    size_t n;
    struct id members[MEMBERS_MAX];
};

static struct hold *member(const struct batch *x, size_t i)
{
    return hold_find(x->broker, str_of(x->members[i].text));
}

/* Making one. */

/* One whose time is over goes singly, if it goes. */
static bool is_like(const struct hold *h, const struct hold *first)
{
    return h->state == HOLD_WAITS && h->target == first->target &&
           h->why->cause == PASS_CAPACITY && !h->batch.text[0] &&
           !h->is_single && !h->is_due && h->priority != PRIORITY_URGENT &&
           str_eq(h->why->rule, first->why->rule) &&
           str_eq(h->requester, first->requester) &&
           str_eq_nocase(h->from, first->from);
}

/* The envelope as its sender wrote it, and which task it is, so that the agent
 * can say what came of each. */
static void add_item(const struct task *t, struct buf *items)
{
    if (items->n)
        buf_add_char(items, ',');
    buf_addf(items, "{\"task_id\":\"%s\",", t->id.text);
    buf_add_str(items, (struct str){t->text.p + 1, t->text.n - 1});
}

/* Whether it may go too, and fits. Only the first of its order: a batch is a
 * task of an order of its own, which waits for nobody in theirs. */
static bool may_join(struct batch *x, struct hold *h, struct buf *items)
{
    struct broker *b = x->broker;
    const struct task *t = b->opts.task(b->opts.ctx, str_of(h->task_id.text));
    struct arena arena;
    struct pass pass;
    bool may_go;

    if (!t || !t->is_envelope || t->text.n < 3 || t->text.p[0] != '{' ||
        items->n + t->text.n + ITEM_BYTES > ITEMS_BYTES || !hold_is_first(h) ||
        !task_is_first(t))
        return false;
    arena_init(&arena, 8 * 1024 * 1024);
    may_go = judge_again(b, t, h, &arena, &pass) && pass.answer == GATE_ROUTE;
    arena_fini(&arena);
    if (!may_go)
        return false;
    add_item(t, items);
    return !items->over;
}

static void gather(struct batch *x, struct hold *first, struct buf *items)
{
    const struct list *all = &x->broker->holds.by_place;
    size_t most = (size_t)first->why->batch_most, seen = 0;

    if (most > MEMBERS_MAX)
        most = MEMBERS_MAX;
    for (struct list_node *n = &first->place_node;
         n && x->n < most && seen++ < SCAN_MAX; n = list_next(all, n)) {
        struct hold *h = LIST_OF(n, struct hold, place_node);

        if (is_like(h, first) && may_join(x, h, items))
            x->members[x->n++] = h->task_id;
        if (!x->n)
            return; /* nobody goes before the first */
    }
}

static struct str write_text(struct msg *m, const struct hold *first,
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

/* From the requester, as if they had sent it. NULL: it cannot be. */
static struct msg *make(struct broker *b, const struct hold *first,
                        struct str items)
{
    struct caller caller = {.role = ROLE_USER};
    struct envelope *e;
    struct msg *m;

    if (!b->opts.caller(b->opts.ctx, first->requester, &caller))
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
    m->call.text = write_text(m, first, items, &e->payload);
    m->call.envelope = e;
    m->call.executor = e->to;
    m->call.priority = first->priority;
    if (m->call.text.n && e->from.n && e->to.n)
        return m;
    msg_free(m);
    return NULL;
}

/* Whatever did not become part of it goes singly. */
static void on_sent(struct msg *m, void *ctx)
{
    struct batch *x = ctx;
    struct broker *b = x->broker;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = member(x, i);

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
    struct broker *b = x->broker;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = member(x, i);

        h->state = HOLD_MOVES;
        h->is_to_move = false;
    }
    x->target->n_going++;
    m->gate.batch = x;
    b->opts.send(b->opts.ctx, m, on_sent, x);
}

bool batch_begin(struct broker *b, struct hold *first, const struct pass *p)
{
    struct batch *x;
    struct msg *m = NULL;
    struct buf items;

    if (!b->opts.send || !is_like(first, first) || first->why->batch_most < 2)
        return false;
    x = FAULT("broker.batch") ? NULL : calloc(1, sizeof(*x));
    if (!x)
        return false;
    *x = (struct batch){.broker = b, .target = first->target, .pass = *p};
    buf_init(&items, ITEMS_BYTES);
    gather(x, first, &items);
    if (x->n > 1)
        m = make(b, first, buf_str(&items));
    buf_fini(&items);
    if (!m) {
        free(x);
        return false;
    }
    send_batch(x, m);
    return true;
}

/* The walk of it. */

void batch_ask(struct msg *m, struct pass *out)
{
    const struct batch *x = m->gate.batch;

    *out = (struct pass){.answer = GATE_ROUTE,
                         .cause = PASS_BATCHED,
                         .priority = m->call.priority,
                         .sla_ms = x->pass.sla_ms};
    memcpy(out->sla, x->pass.sla, sizeof(out->sla));
    snprintf(out->reason, sizeof(out->reason),
             "%zu messages that waited for room, as one", x->n);
}

static struct hold_why *why_of(const struct hold *h, struct str task_id)
{
    struct pass p;

    hold_pass(h, h->why, &p);
    p.cause = PASS_BATCHED;
    p.n_keys = 1;
    p.keys[0] = (struct wait_key){.kind = WAIT_BATCH, .name = task_id};
    snprintf(p.reason, sizeof(p.reason), "it is part of the batch %.*s",
             STR_ARG(task_id));
    return hold_why_of(&p);
}

/* The events of those that are let go with it. */
static bool event_of_member(struct broker *b, const struct hold *h,
                            struct arena *arena, struct past_event *out,
                            enum err *err)
{
    const struct task *t = b->opts.task(b->opts.ctx, str_of(h->task_id.text));
    struct envelope e;

    *err = t ? envelope_of_task(t, arena, &e) : ERR_NOT_FOUND;
    if (*err)
        return false;
    e.scope = h->scope;
    return event_of(b, &e, &h->task_id, &h->message_id,
                    loop_wall_ms(b->opts.loop), out);
}

/* Each is told of as one that was let go: it is not held any more for want of
 * anything but the answer. */
static void tell_member(const struct hold *h, const struct task *t,
                        struct msg *m)
{
    struct envelope e;
    struct pass p = {.answer = GATE_ROUTE,
                     .cause = PASS_BATCHED,
                     .rule = h->why->rule,
                     .priority = h->priority,
                     .channel = m->gate.pass.channel};

    hold_envelope(h, &e);
    note_time(h->broker, t, &p);
    snprintf(p.reason, sizeof(p.reason), "there is room: it goes as part of %s",
             m->task.id.text);
    tell_decision(&m->tx, &(struct told){
                              .type = STR("gate.released"),
                              .task_id = str_of(h->task_id.text),
                              .message_id = str_of(h->message_id.text),
                              .conversation_id = t->conversation_id,
                              .requester = h->requester,
                              .root_user = h->root_user,
                              .envelope = &e,
                              .target = h->agent,
                              .pass = &p,
                              .status = task_status_name(TASK_QUEUED),
                              .at_ms = m->in.at_ms,
                          });
}

static void record_member(struct broker *b, struct hold *h, struct msg *m)
{
    const struct task *t = b->opts.task(b->opts.ctx, str_of(h->task_id.text));
    struct past_event event;
    struct arena arena;
    enum err e;

    free(h->next);
    h->next = why_of(h, str_of(m->task.id.text));
    if (!h->next || !t) {
        m->tx.build_error = ERR_NOMEM;
        return;
    }
    hold_write_batch(h, h->next, m->task.id, &m->tx);
    tell_member(h, t, m);
    arena_init(&arena, 8 * 1024 * 1024);
    if (event_of_member(b, h, &arena, &event, &e))
        event_record(b, &event, &m->tx);
    else if (e)
        m->tx.build_error = ERR_NOMEM;
    arena_fini(&arena);
}

void batch_record(struct broker *b, struct msg *m)
{
    struct batch *x = m->gate.batch;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = member(x, i);

        if (h) /* else cancelled meanwhile: what comes of it is nobody's */
            record_member(b, h, m);
    }
}

static void join(struct broker *b, struct hold *h, struct id batch)
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
    wait_look(h); /* it may be over already */
    arena_init(&arena, 8 * 1024 * 1024);
    if (event_of_member(b, h, &arena, &event, &e))
        event_happened(b, &event);
    else if (e) /* it is on the disk; who waits for it is looked at among all */
        wait_all(b);
    arena_fini(&arena);
}

void batch_settle(struct broker *b, struct msg *m)
{
    struct batch *x = m->gate.batch;

    for (size_t i = 0; i < x->n; i++) {
        struct hold *h = member(x, i);

        if (h && h->state == HOLD_MOVES && h->next)
            join(b, h, m->task.id);
    }
}

/* Where it is. */

static bool is_with_agent(enum task_status s)
{
    return s == TASK_DISPATCHED || s == TASK_WORKING ||
           s == TASK_INPUT_REQUIRED;
}

/* Of a batch that is over it stays as it was, until it ends as well. */
void batch_carry(struct hold *h)
{
    struct broker *b = h->broker;
    const struct task *t = b->opts.task(b->opts.ctx, str_of(h->task_id.text));
    const struct task *batch = b->opts.task(b->opts.ctx, str_of(h->batch.text));
    bool goes_on = batch && !task_is_over(batch->status);

    if (PLANTED("broker.batch_stays_held") || !t || (t->carried && !goes_on))
        return;
    b->opts.carry(b->opts.ctx, str_of(h->task_id.text),
                  goes_on && is_with_agent(batch->status) ? TASK_DISPATCHED
                                                          : TASK_QUEUED);
}

/* The end of it. */

struct batch_read {
    struct query query;
    struct broker *broker;
    struct id member;
};

/* "results": {"task_…": "text" or {"text", "metadata", "error"}}, where the
 * agent says of each what came of it. */
static void of_member(const struct hold *h, const struct task_result *whole,
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
    struct broker *b = h->broker;
    struct id id = h->task_id;
    struct task_result r;
    struct arena arena;

    arena_init(&arena, 8 * 1024 * 1024);
    of_member(h, whole, &arena, &r);
    hold_later(h); /* should it not come to be */
    b->opts.on_end(b->opts.ctx, str_of(id.text), &r);
    arena_fini(&arena);
}

static void on_row(struct query *q, void *ctx)
{
    static const struct task_result gone = {
        .status = TASK_FAILED,
        .error_code = STR("batch_gone"),
        .error = STR("the batch that it was part of is no longer there"),
    };
    struct batch_read *r = ctx;
    struct broker *b = r->broker;
    struct hold *h = hold_find(b, str_of(r->member.text));
    struct task t;

    if (h)
        h->is_reading = false;
    if (!h || b->is_stopping) {
        /* nobody waits for it */
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
            batch_look(h); /* it was read before it was over, perhaps */
    }
    query_fini(q);
    free(r);
}

void batch_look(struct hold *h)
{
    struct broker *b = h->broker;
    struct batch_read *r;

    batch_carry(h);
    h->is_to_read = h->is_reading;
    if (h->is_reading || !b->opts.on_end)
        return;
    r = FAULT("broker.batch_read") ? NULL : calloc(1, sizeof(*r));
    if (!r) {
        hold_later(h);
        return;
    }
    r->broker = b;
    r->member = h->task_id;
    h->is_reading = true;
    query_init(&r->query, &task_table, 1);
    query_if(&r->query, TASK_ID, IS, value_text(str_of(h->batch.text)));
    store_read(b->opts.store, &r->query, on_row, r);
}
