/* Deciding again on a task that waited: it moves, stays or ends. Everything
 * starts from its row, from which the envelope is made afresh. */
#include "gate/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum { ENVELOPE_BYTES = 8 * 1024 * 1024 };

static void open_envelope_arena(struct arena *a)
{
    arena_init(a, ENVELOPE_BYTES);
}

static void write_expired_reason(const struct hold *h, struct gate_result *out)
{
    struct str was = str_head(h->why->reason, PASS_REASON_MAX - 64);

    snprintf(out->reason, sizeof(out->reason),
             "it was held for the longest time allowed: %.*s", STR_ARG(was));
}

/* The condition that held it counts as met, and no other does. */
static void skip_waited_condition(const struct hold *h,
                                  const struct envelope *e, struct viewer *a)
{
    if (h->why->cause == PASS_CAPACITY)
        a->has_room = e->to;
    if (h->why->cause == PASS_TARGET_ERROR)
        a->may_try = e->to;
}

/* No person has seen the message: the result must not say that it was approved,
 * and if its agent is dead it is escalated. */
static void correct_expired_result(const struct hold *h,
                                   struct gate_result *out)
{
    if (out->answer == GATE_ROUTE) {
        out->cause = PASS_EXPIRED;
        out->rule = h->why->rule;
        write_expired_reason(h, out);
    } else if (out->cause == PASS_TARGET_DEAD) {
        out->answer = GATE_ESCALATE;
        out->n_keys = 0;
        out->held_until_ms = 0;
        snprintf(out->reason, sizeof(out->reason),
                 "%.*s is DEAD, and it was held for the longest time allowed",
                 STR_ARG(h->agent));
    }
}

static bool is_same_hold(const struct hold *h, const struct gate_result *p)
{
    return p->answer == h->why->answer && p->cause == h->why->cause &&
           str_eq(p->rule, h->why->rule);
}

bool decide_again(struct gatekeeper *b, const struct task *t,
                  const struct hold *h, struct arena *arena,
                  struct gate_result *out)
{
    struct viewer a = {.gatekeeper = b,
                       .requester = t->requester,
                       .now_ms = loop_wall_ms(b->opts.loop)};
    struct str redirected_to = {NULL, 0};
    char scope[SCOPE_BYTES];
    bool is_approved;
    struct envelope e;

    if (envelope_of_task(t, arena, &e) != OK)
        return false;
    e.has_entered = true;
    is_approved =
        escalation_approves(b, t, &redirected_to) || (h && h->is_approved);
    e.is_approved = is_approved || (h && h->has_run_out);
    if (redirected_to.n)
        e.to = redirected_to;
    e.scope = h ? h->scope : event_scope(b, t->requester, scope);
    a.scope = e.scope;
    if (h && h->has_run_out && h->is_due)
        skip_waited_condition(h, &e, &a);
    gatekeeper_decide(&a, &e, out, NULL);
    if (e.is_approved && !is_approved)
        correct_expired_result(h, out);
    out->agent = redirected_to;
    name_approver(b, str_of(t->id.text), out);
    return gate_result_keep(out, arena);
}

void note_task_time(const struct gatekeeper *b, const struct task *t,
                    struct gate_result *p)
{
    const struct gate_limits *l = &gate_rules_about(b->opts.rules)->limits;
    struct envelope e;
    struct arena arena;

    open_envelope_arena(&arena);
    if (t->is_envelope && envelope_of_task(t, &arena, &e) == OK)
        gate_note_time(l, e.at_ms, loop_wall_ms(b->opts.loop), p);
    arena_fini(&arena);
}

static void escalate_expired(const struct hold *h, const struct task *t,
                             struct gate_result *out)
{
    *out = (struct gate_result){.answer = GATE_ESCALATE,
                                .cause = PASS_EXPIRED,
                                .rule = h->why->rule,
                                .priority = h->priority,
                                .channel = out->channel};
    note_task_time(h->gatekeeper, t, out);
    write_expired_reason(h, out);
}

/* The hold's time is over, and the task is not to end. If it is to go it is
 * decided once more: safety gates, dead agents and every condition that did not
 * hold it so far still apply, and may hold it for as long as all decisions
 * together allow. After that, or when the same condition would hold it again,
 * it is escalated. */
static bool decide_expired(struct gatekeeper *b, const struct task *t,
                           struct hold *h, struct arena *arena,
                           struct gate_result *out)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    int64_t longest_ms = h->longest_ms;

    *out = (struct gate_result){.channel = {NULL, 0}};
    if (h->why->on_expiry == EXPIRY_ESCALATE) {
        escalate_expired(h, t, out);
        return gate_result_keep(out, arena);
    }
    h->has_run_out = true;
    if (!decide_again(b, t, h, arena, out))
        return false;
    if (!gate_result_is_hold(out->answer))
        return true;
    if (out->held_until_ms - now_ms > longest_ms)
        longest_ms = out->held_until_ms - now_ms;
    if (h->since_ms + longest_ms <= now_ms || is_same_hold(h, out))
        escalate_expired(h, t, out);
    return gate_result_keep(out, arena);
}

static bool has_equal_key(const struct wait_key *a, const struct wait_key *b)
{
    return a->kind == b->kind && a->at_ms == b->at_ms &&
           str_eq(a->name, b->name) && str_eq(a->type, b->type);
}

static bool has_same_keys(const struct hold_why *w, const struct gate_result *p)
{
    if (w->n_keys != p->n_keys)
        return false;
    for (size_t i = 0; i < p->n_keys; i++)
        if (!has_equal_key(&w->keys[i], &p->keys[i]))
            return false;
    return true;
}

/* Held as before by the same rule, so there is nothing to write. Its keys may
 * differ; only memory has them. */
static bool stays_held(struct hold *h, const struct gate_result *p)
{
    struct hold_why *why;

    if (!gate_result_is_hold(p->answer) || !is_same_hold(h, p))
        return false;
    if (has_same_keys(h->why, p))
        return true;
    why = hold_why_of(p);
    why->until_ms = h->why->until_ms;
    why->on_expiry = h->why->on_expiry;
    hold_rekey(h, why);
    return true;
}

bool gatekeeper_ask_again(struct gatekeeper *b, const struct task *t,
                          struct arena *arena, struct gate_result *out)
{
    struct hold *h = hold_find(b, str_of(t->id.text));

    if (h && (h->state == HOLD_MOVES || h->batch.text[0]))
        return false;
    if (h && h->is_due && h->why->on_expiry != EXPIRY_EXPIRE)
        return decide_expired(b, t, h, arena, out);
    if (!decide_again(b, t, h, arena, out))
        return false;
    if (h && out->answer == GATE_ROUTE && batch_begin(b, h, out))
        return false;
    if (!h || !stays_held(h, out))
        return true;
    h->is_to_move = false;
    revive_look(b, out);
    return false;
}

static struct hold_move *move_new(struct gatekeeper *b,
                                  const struct gate_result *p,
                                  const struct past_event *x)
{
    struct hold_move *mv =
        mem_new(sizeof(*mv) + (x ? record_bytes(x, &event_table, 1) : 0));
    char *at = mv->strings;

    mv->gate_result = p;
    if (x) {
        mv->has_event = true;
        mv->event = *x;
        record_pack(&mv->event, &event_table, 1, &at);
    }
    list_append(&b->holds.moves, &mv->node);
    return mv;
}

static void move_free(struct hold_move *mv)
{
    if (!mv)
        return;
    list_remove(&mv->node);
    free(mv);
}

/* NULL: the move was not even begun. */
static struct hold_move *move_find(const struct gatekeeper *b,
                                   const struct gate_result *p)
{
    const struct list *l = &b->holds.moves;

    for (struct list_node *n = list_first(l); n; n = list_next(l, n))
        if (LIST_OF(n, struct hold_move, node)->gate_result == p)
            return LIST_OF(n, struct hold_move, node);
    return NULL;
}

void moves_fini(struct gatekeeper *b)
{
    struct list_node *n;

    while ((n = list_first(&b->holds.moves)))
        move_free(LIST_OF(n, struct hold_move, node));
}

static void continue_hold(struct gatekeeper *b, struct hold *h,
                          const struct gate_result *p, struct tx *tx)
{
    free(h->next);
    h->next = hold_why_of(p);
    hold_bound(h, h->next, loop_wall_ms(b->opts.loop));
    hold_write_why(h, h->next, tx);
}

/* A task that was escalated is held for the first time. The limit of holds is
 * no reason to reject what was accepted long ago. */
static struct hold *hold_escalated_task(struct gatekeeper *b,
                                        const struct task *t,
                                        const struct envelope *e,
                                        const struct gate_result *p,
                                        struct tx *tx)
{
    struct str to = {NULL, 0};
    struct hold like = {
        .task_id = t->id,
        .message_id = t->message_id,
        .turn = t->turn,
        .place = t->place,
        .priority = p->priority,
        .agent = e->to,
        .order_key = t->order_key,
        .from = e->from,
        .type = e->type,
        .reference = e->reference,
        .scope = e->scope,
        .requester = t->requester,
        .root_user = t->root_user,
        .since_ms = loop_wall_ms(b->opts.loop),
        .is_approved = escalation_approves(b, t, &to),
    };
    struct hold *h = hold_admit(b, &like, hold_why_of(p));

    if (!h) {
        tx->build_error = ERR_NOMEM;
        return NULL;
    }
    list_append(&b->holds.arriving, &h->place_node);
    hold_write(h, tx);
    return h;
}

static void feed_new_decision(const struct gatekeeper *b, const struct task *t,
                              const struct envelope *e,
                              const struct gate_result *p, int64_t at_ms,
                              struct tx *tx)
{
    bool is_let_go = p->answer == GATE_ROUTE;

    feed_decision(tx,
                  &(struct decision_entry){
                      .type = is_let_go ? STR("gate.released")
                                        : decision_entry_type(p->answer),
                      .task_id = str_of(t->id.text),
                      .message_id = str_of(t->message_id.text),
                      .conversation_id = t->conversation_id,
                      .requester = t->requester,
                      .root_user = t->root_user,
                      .envelope = e,
                      .envelope_text = t->is_envelope ? t->text : STR(""),
                      .target = e->to,
                      .gate_result = p,
                      .escalation_id = escalation_id_of(b, str_of(t->id.text)),
                      .status = task_status_name(gate_result_status(p->answer)),
                      .at_ms = at_ms,
                  });
}

static void record_move(struct gatekeeper *b, const struct task *t,
                        struct hold *h, const struct envelope *e,
                        const struct gate_result *p, struct tx *tx)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    struct past_event event;
    bool has_event =
        p->answer == GATE_ROUTE &&
        event_from_envelope(b, e, &t->id, &t->message_id, now_ms, &event);
    struct hold_move *mv = move_new(b, p, has_event ? &event : NULL);

    if (h) {
        h->is_to_move = false;
        h->state = HOLD_MOVES;
        h->move = mv;
    }
    if (h && p->answer == GATE_ROUTE) {
        h->target->n_going++;
        h->is_going = true;
    }
    if (gate_result_is_hold(p->answer) && h)
        continue_hold(b, h, p, tx);
    else if (gate_result_is_hold(p->answer))
        mv->comes = hold_escalated_task(b, t, e, p, tx);
    else if (h)
        hold_unwrite(str_of(t->id.text), tx);
    if (has_event)
        event_record(b, &event, tx);
}

/* The envelope as the gate saw it. */
static bool envelope_now(struct gatekeeper *b, const struct task *t,
                         const struct hold *h, struct arena *arena,
                         char scope[SCOPE_BYTES], struct envelope *e)
{
    struct str to = {NULL, 0};

    if (envelope_of_task(t, arena, e) != OK)
        return false;
    if (escalation_approves(b, t, &to) && to.n)
        e->to = to;
    e->scope = h ? h->scope : event_scope(b, t->requester, scope);
    return true;
}

void gatekeeper_record_release(void *gatekeeper, const struct task *t,
                               const struct gate_result *p, struct tx *tx)
{
    struct gatekeeper *b = gatekeeper;
    struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct envelope e;
    struct arena arena;

    assert(!h || h->state == HOLD_WAITS);
    open_envelope_arena(&arena);
    if (envelope_now(b, t, h, &arena, scope, &e)) {
        record_move(b, t, h, &e, p, tx);
        escalations_record_pass(b, t, &e, p, tx);
        feed_new_decision(b, t, &e, p, loop_wall_ms(b->opts.loop), tx);
        sla_record_pass(b, t, &e, p, tx);
        revive_record_pass(b, t, &e, p, tx);
    } else {
        tx->build_error = ERR_NOMEM;
    }
    arena_fini(&arena);
}

void hold_count_release(struct gatekeeper *b, const struct hold *h)
{
    int64_t ms = loop_wall_ms(b->opts.loop) - h->since_ms;

    if (ms < 0)
        ms = 0;
    b->stats.released_total++;
    b->stats.hold_ms_total += ms;
    if (ms > b->stats.hold_ms_max)
        b->stats.hold_ms_max = ms;
    if (h->priority == PRIORITY_NORMAL) {
        b->stats.held_normal_total++;
        b->stats.hold_normal_ms_total += ms;
    }
}

/* The task is as before, and is tried again later. The room that it would have
 * taken is free for others. */
static void hold_did_not_move(struct gatekeeper *b, struct hold *h)
{
    bool was_going = h->is_going;

    h->target->n_going -= was_going;
    h->is_going = false;
    h->state = HOLD_WAITS;
    free(h->next);
    h->next = NULL;
    hold_later(h);
    if (was_going)
        wait_queue(b, h->agent);
}

static void hold_did_move(struct gatekeeper *b, struct hold *h,
                          const struct gate_result *p)
{
    if (gate_result_is_hold(p->answer)) {
        struct hold_why *why = h->next;

        h->next = NULL;
        h->state = HOLD_WAITS;
        hold_rekey(h, why);
        wait_look(h);
        return;
    }
    if (p->answer == GATE_ROUTE)
        hold_count_release(b, h);
    hold_free(h);
}

void gatekeeper_settle_release(void *gatekeeper, const struct task *t,
                               const struct gate_result *p, bool is_committed)
{
    struct gatekeeper *b = gatekeeper;
    struct hold *h = hold_find(b, str_of(t->id.text));
    struct hold_move *mv = move_find(b, p);
    bool is_its = h && mv && h->state == HOLD_MOVES && h->move == mv;

    if (is_committed)
        b->stats.by_answer[p->answer] += !h;
    if (mv && mv->comes && is_committed)
        hold_begin(mv->comes);
    else if (mv && mv->comes)
        hold_free(mv->comes);
    if (mv && mv->has_event && is_committed)
        event_happened(b, &mv->event);
    if (is_its)
        h->move = NULL;
    if (is_its && is_committed)
        hold_did_move(b, h, p);
    else if (is_its)
        hold_did_not_move(b, h);
    if (is_committed && p->agent.n)
        wait_queues(b); /* the previous agent has one task less */
    move_free(mv);
    escalations_settle_pass(b, t, p, is_committed);
    sla_settle_pass(b, t, p, is_committed);
    revive_settle_pass(b, t, p, is_committed);
}

/* Whether the agent still exists, where the rules name it: otherwise the owner
 * of the name is unknown. */
static bool has_known_agent(const struct gatekeeper *b, const struct task *t)
{
    struct gate_agent a = {.name = t->agent};
    struct str owner;

    if (!gate_rules_name(b->opts.rules, t->agent, &owner))
        return true;
    b->opts.agent(b->opts.ctx, t->agent, &a);
    return a.is_known;
}

/* The event of an agent's answer to an envelope. False: it is no event or, with
 * *err, memory ran out. */
static bool event_from_result(const struct gatekeeper *b, const struct task *t,
                              const struct task_result *r, struct arena *arena,
                              char scope[SCOPE_BYTES], struct past_event *out,
                              enum err *err)
{
    struct envelope e;

    *err = OK;
    if (!t->is_envelope || r->status != TASK_COMPLETED ||
        !has_known_agent(b, t))
        return false;
    *err = envelope_of_task(t, arena, &e);
    if (*err)
        return false;
    e.to = e.from;
    e.from = t->agent;
    e.type = ENVELOPE_RESULT;
    e.scope = event_scope(b, t->requester, scope);
    e.payload = r->metadata;
    return event_from_envelope(b, &e, &t->id, &t->message_id,
                               loop_wall_ms(b->opts.loop), out);
}

static void feed_expired(const struct hold *h, const struct task *t,
                         int64_t at_ms, struct tx *tx)
{
    struct envelope e;
    struct gate_result p;

    hold_envelope(h, &e);
    hold_result(h, h->why, &p);
    note_task_time(h->gatekeeper, t, &p);
    feed_decision(tx, &(struct decision_entry){
                          .type = STR("gate.expired"),
                          .task_id = str_of(t->id.text),
                          .message_id = str_of(t->message_id.text),
                          .conversation_id = t->conversation_id,
                          .requester = t->requester,
                          .root_user = t->root_user,
                          .envelope = &e,
                          .envelope_text = t->is_envelope ? t->text : STR(""),
                          .target = t->agent,
                          .gate_result = &p,
                          .status = task_status_name(TASK_EXPIRED),
                          .at_ms = at_ms,
                      });
}

void gatekeeper_record_end(void *gatekeeper, const struct turn_end *end,
                           struct tx *tx)
{
    struct gatekeeper *b = gatekeeper;
    const struct task *t = end->task;
    const struct task_result *r = end->result;
    const struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct past_event event;
    struct arena arena;
    enum err e;

    open_envelope_arena(&arena);
    if (h)
        hold_unwrite(str_of(t->id.text), tx);
    if (h && !h->batch.text[0] && r->status == TASK_EXPIRED)
        feed_expired(h, t, loop_wall_ms(b->opts.loop), tx);
    if (event_from_result(b, t, r, &arena, scope, &event, &e))
        event_record(b, &event, tx);
    else if (e == ERR_NOMEM)
        tx->build_error = e;
    escalations_record_end(b, t, r, tx);
    sla_record_end(b, t, tx);
    arena_fini(&arena);
}

/* The event is on disk, and known after the next start. All holds are looked at
 * instead of those that wait for it. */
static void log_unknown_event(struct gatekeeper *b, struct str task_id)
{
    b->past.forgotten_total++;
    log_error(b->opts.log, "broker.event_forgotten", LOG_S("task_id", task_id),
              LOG_C("because", err_row(ERR_NOMEM)->wording));
    wait_all(b);
}

void gatekeeper_settle_end(void *gatekeeper, const struct turn_end *end)
{
    struct gatekeeper *b = gatekeeper;
    const struct task *t = end->task;
    const struct task_result *r = end->result;
    struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct past_event event;
    struct arena arena;
    enum err e;

    open_envelope_arena(&arena);
    if (h && !h->batch.text[0] && r->status == TASK_EXPIRED)
        b->stats.expired_total++;
    hold_free(h);
    if (event_from_result(b, t, r, &arena, scope, &event, &e))
        event_happened(b, &event);
    else if (e == ERR_NOMEM)
        log_unknown_event(b, str_of(t->id.text));
    if (t->is_envelope)
        wait_batch(b, str_of(t->id.text));
    wait_queue(b, t->agent);
    escalations_settle_end(b, t);
    sla_settle_end(b, t);
    arena_fini(&arena);
}
