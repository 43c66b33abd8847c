/* A task that waited is asked about again, and moves, stays or ends. Everything
 * starts from its row: the envelope is made of it anew. */
#include "broker/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { ENVELOPE_BYTES = 8 * 1024 * 1024 };

/* The arena of one envelope, gone with the call. */
static void open_arena(struct arena *a)
{
    arena_init(a, ENVELOPE_BYTES);
}

static void say_run_out(const struct hold *h, struct pass *out)
{
    struct str was = str_head(h->why->reason, PASS_REASON_MAX - 64);

    snprintf(out->reason, sizeof(out->reason),
             "it was held for as long as it may be: %.*s", STR_ARG(was));
}

/* What has held it counts as come; and nothing else does. */
static void waited_enough(const struct hold *h, const struct envelope *e,
                          struct asking *a)
{
    if (h->why->cause == PASS_CAPACITY)
        a->has_room = e->to;
    if (h->why->cause == PASS_TARGET_ERROR)
        a->may_try = e->to;
}

/* Nobody has seen it yet: it is not said to be approved, and one whose agent is
 * dead is for a person to see. */
static void of_run_out(const struct hold *h, struct pass *out)
{
    if (out->answer == GATE_ROUTE) {
        out->cause = PASS_EXPIRED;
        out->rule = h->why->rule;
        say_run_out(h, out);
    } else if (out->cause == PASS_TARGET_DEAD) {
        out->answer = GATE_ESCALATE;
        out->n_keys = 0;
        out->held_until_ms = 0;
        snprintf(out->reason, sizeof(out->reason),
                 "%.*s is DEAD, and it was held for as long as it may be",
                 STR_ARG(h->agent));
    }
}

static bool is_same_hold(const struct hold *h, const struct pass *p)
{
    return p->answer == h->why->answer && p->cause == h->why->cause &&
           str_eq(p->rule, h->why->rule);
}

bool judge_again(struct broker *b, const struct task *t, const struct hold *h,
                 struct arena *arena, struct pass *out)
{
    struct asking a = {.broker = b,
                       .requester = t->requester,
                       .now_ms = loop_wall_ms(b->opts.loop)};
    struct str redirected_to = {NULL, 0};
    char scope[SCOPE_BYTES];
    bool is_approved;
    struct envelope e;

    if (envelope_of_task(t, arena, &e) != OK)
        return false;
    e.has_entered = true;
    is_approved = people_let_go(b, t, &redirected_to) || (h && h->is_approved);
    e.is_approved = is_approved || (h && h->has_run_out);
    if (redirected_to.n)
        e.to = redirected_to;
    e.scope = h ? h->scope : whose(b, t->requester, scope);
    a.scope = e.scope;
    if (h && h->has_run_out && h->is_due)
        waited_enough(h, &e, &a);
    broker_decide(&a, &e, out, NULL);
    if (e.is_approved && !is_approved)
        of_run_out(h, out);
    out->agent = redirected_to;
    tell_who(b, str_of(t->id.text), out);
    return pass_keep(out, arena);
}

void note_time(const struct broker *b, const struct task *t, struct pass *p)
{
    const struct gate_limits *l = &gate_rules_about(b->opts.rules)->limits;
    struct envelope e;
    struct arena arena;

    open_arena(&arena);
    if (t->is_envelope && envelope_of_task(t, &arena, &e) == OK)
        gate_note_time(l, e.at_ms, loop_wall_ms(b->opts.loop), p);
    arena_fini(&arena);
}

static void must_be_seen(const struct hold *h, const struct task *t,
                         struct pass *out)
{
    *out = (struct pass){.answer = GATE_ESCALATE,
                         .cause = PASS_EXPIRED,
                         .rule = h->why->rule,
                         .priority = h->priority,
                         .channel = out->channel};
    note_time(h->broker, t, out);
    say_run_out(h, out);
}

/* It was held for as long as it may be, and is not to end. One that is to go
 * is asked about once more: gates, the dead, and whatever else it did not wait
 * for have their say, and it is held on by those for as long as all its answers
 * together may hold it; after that, and where the gate that paused it still
 * would, a person must see it. */
static bool run_out(struct broker *b, const struct task *t, struct hold *h,
                    struct arena *arena, struct pass *out)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    int64_t longest_ms = h->longest_ms;

    *out = (struct pass){.channel = {NULL, 0}};
    if (h->why->on_expiry == EXPIRY_ESCALATE) {
        must_be_seen(h, t, out);
        return pass_keep(out, arena);
    }
    h->has_run_out = true;
    if (!judge_again(b, t, h, arena, out))
        return false;
    if (!pass_is_hold(out->answer))
        return true;
    if (out->held_until_ms - now_ms > longest_ms)
        longest_ms = out->held_until_ms - now_ms;
    if (h->since_ms + longest_ms <= now_ms || is_same_hold(h, out))
        must_be_seen(h, t, out);
    return pass_keep(out, arena);
}

static bool is_same_key(const struct wait_key *a, const struct wait_key *b)
{
    return a->kind == b->kind && a->at_ms == b->at_ms &&
           str_eq(a->name, b->name) && str_eq(a->type, b->type);
}

static bool has_same_keys(const struct hold_why *w, const struct pass *p)
{
    if (w->n_keys != p->n_keys)
        return false;
    for (size_t i = 0; i < p->n_keys; i++)
        if (!is_same_key(&w->keys[i], &p->keys[i]))
            return false;
    return true;
}

/* Held as before, by the same rule: nobody need be told. What it waits for may
 * be other things, which only memory knows. */
static bool stays(struct hold *h, const struct pass *p)
{
    struct hold_why *why;

    if (!pass_is_hold(p->answer) || !is_same_hold(h, p))
        return false;
    if (has_same_keys(h->why, p))
        return true;
    why = hold_why_of(p);
    if (!why) {
        wait_look_regularly(h);
        return true;
    }
    why->until_ms = h->why->until_ms;
    why->on_expiry = h->why->on_expiry;
    hold_rekey(h, why);
    return true;
}

bool broker_ask_again(struct broker *b, const struct task *t,
                      struct arena *arena, struct pass *out)
{
    struct hold *h = hold_find(b, str_of(t->id.text));

    if (h && (h->state == HOLD_MOVES || h->batch.text[0]))
        return false;
    if (h && h->is_due && h->why->on_expiry != EXPIRY_EXPIRE)
        return run_out(b, t, h, arena, out);
    if (!judge_again(b, t, h, arena, out))
        return false;
    if (h && out->answer == GATE_ROUTE && batch_begin(b, h, out))
        return false;
    if (!h || !stays(h, out))
        return true;
    h->is_to_move = false;
    revive_look(b, out);
    return false;
}

/* The move. */

/* NULL: memory is gone. */
static struct hold_move *move_new(struct broker *b, const struct pass *p,
                                  const struct past_event *x)
{
    size_t n = x ? x->scope.n + x->reference.n + x->e.from.n + x->e.to.n +
                       x->e.type.n + x->e.message_id.n + x->e.task_id.n
                 : 0;
    struct hold_move *mv =
        FAULT("broker.move") ? NULL : calloc(1, sizeof(*mv) + n);
    char *at;

    if (!mv)
        return NULL;
    mv->pass = p;
    if (x) {
        at = mv->strings;
        mv->has_event = true;
        mv->event = *x;
        mv->event.scope = str_pack(&at, x->scope);
        mv->event.reference = str_pack(&at, x->reference);
        mv->event.e.from = str_pack(&at, x->e.from);
        mv->event.e.to = str_pack(&at, x->e.to);
        mv->event.e.type = str_pack(&at, x->e.type);
        mv->event.e.message_id = str_pack(&at, x->e.message_id);
        mv->event.e.task_id = str_pack(&at, x->e.task_id);
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

/* NULL: it was not even begun. */
static struct hold_move *move_find(const struct broker *b, const struct pass *p)
{
    const struct list *l = &b->holds.moves;

    for (struct list_node *n = list_first(l); n; n = list_next(l, n))
        if (LIST_OF(n, struct hold_move, node)->pass == p)
            return LIST_OF(n, struct hold_move, node);
    return NULL;
}

void moves_fini(struct broker *b)
{
    struct list_node *n;

    while ((n = list_first(&b->holds.moves)))
        move_free(LIST_OF(n, struct hold_move, node));
}

static void hold_on(struct broker *b, struct hold *h, const struct pass *p,
                    struct tx *tx)
{
    free(h->next);
    h->next = hold_why_of(p);
    if (!h->next) {
        tx->build_error = ERR_NOMEM;
        return;
    }
    hold_bound(h, h->next, loop_wall_ms(b->opts.loop));
    hold_write_why(h, h->next, tx);
}

/* One that a person had before them: it is held for the first time, and the
 * limit of holds is no reason to refuse what was accepted long ago. */
static struct hold *hold_anew(struct broker *b, const struct task *t,
                              const struct envelope *e, const struct pass *p,
                              struct tx *tx)
{
    struct target *target = target_get(b, e->to);
    struct hold_why *why = hold_why_of(p);
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
        .is_approved = people_let_go(b, t, &to),
    };
    struct hold *h = NULL;

    if (target && why &&
        map_reserve(&b->holds.by_task, b->holds.n_claims + 1) == OK)
        h = hold_new(b, &like, why, target);
    if (!h) {
        if (target)
            target_release(b, target);
        free(why);
        tx->build_error = ERR_NOMEM;
        return NULL;
    }
    target->n_held++;
    b->holds.n_claims++;
    list_append(&b->holds.arriving, &h->place_node);
    hold_write(h, tx);
    return h;
}

static void tell_pass(const struct broker *b, const struct task *t,
                      const struct envelope *e, const struct pass *p,
                      int64_t at_ms, struct tx *tx)
{
    bool is_let_go = p->answer == GATE_ROUTE;

    tell_decision(
        tx, &(struct told){
                .type = is_let_go ? STR("gate.released") : tell_type(p->answer),
                .task_id = str_of(t->id.text),
                .message_id = str_of(t->message_id.text),
                .conversation_id = t->conversation_id,
                .requester = t->requester,
                .root_user = t->root_user,
                .envelope = e,
                .envelope_text = t->is_envelope ? t->text : STR(""),
                .target = e->to,
                .pass = p,
                .escalation_id = tell_asked(b, str_of(t->id.text)),
                .status = task_status_name(pass_status(p->answer)),
                .at_ms = at_ms,
            });
}

static void record_move(struct broker *b, const struct task *t, struct hold *h,
                        const struct envelope *e, const struct pass *p,
                        struct tx *tx)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    struct past_event event;
    bool has_event = p->answer == GATE_ROUTE &&
                     event_of(b, e, &t->id, &t->message_id, now_ms, &event);
    struct hold_move *mv = move_new(b, p, has_event ? &event : NULL);

    if (!mv) {
        tx->build_error = ERR_NOMEM;
        return;
    }
    if (h) {
        h->is_to_move = false;
        h->state = HOLD_MOVES;
        h->move = mv;
    }
    if (h && p->answer == GATE_ROUTE) {
        h->target->n_going++;
        h->is_going = true;
    }
    if (pass_is_hold(p->answer) && h)
        hold_on(b, h, p, tx);
    else if (pass_is_hold(p->answer))
        mv->comes = hold_anew(b, t, e, p, tx);
    else if (h)
        hold_unwrite(str_of(t->id.text), tx);
    if (has_event)
        event_record(b, &event, tx);
}

/* As the gate saw it. */
static bool envelope_now(struct broker *b, const struct task *t,
                         const struct hold *h, struct arena *arena,
                         char scope[SCOPE_BYTES], struct envelope *e)
{
    struct str to = {NULL, 0};

    if (envelope_of_task(t, arena, e) != OK)
        return false;
    if (people_let_go(b, t, &to) && to.n)
        e->to = to;
    e->scope = h ? h->scope : whose(b, t->requester, scope);
    return true;
}

void broker_record_pass(struct broker *b, const struct task *t,
                        const struct pass *p, struct tx *tx)
{
    struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct envelope e;
    struct arena arena;

    assert(!h || h->state == HOLD_WAITS);
    open_arena(&arena);
    if (envelope_now(b, t, h, &arena, scope, &e)) {
        record_move(b, t, h, &e, p, tx);
        people_record_pass(b, t, &e, p, tx);
        tell_pass(b, t, &e, p, loop_wall_ms(b->opts.loop), tx);
        late_record_pass(b, t, &e, p, tx);
        revive_record_pass(b, t, &e, p, tx);
    } else {
        tx->build_error = ERR_NOMEM;
    }
    arena_fini(&arena);
}

void hold_count_release(struct broker *b, const struct hold *h)
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

/* It is still as it was, and is tried again. The room that it would have taken
 * is there for others. */
static void did_not_move(struct broker *b, struct hold *h)
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

static void did_move(struct broker *b, struct hold *h, const struct pass *p)
{
    if (pass_is_hold(p->answer)) {
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

void broker_settle_pass(struct broker *b, const struct task *t,
                        const struct pass *p, bool is_committed)
{
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
        did_move(b, h, p);
    else if (is_its)
        did_not_move(b, h);
    if (is_committed && p->agent.n)
        wait_queues(b); /* somebody has it no more */
    move_free(mv);
    people_settle_pass(b, t, p, is_committed);
    late_settle_pass(b, t, p, is_committed);
    revive_settle_pass(b, t, p, is_committed);
}

/* The end. */

/* Whether its agent still has the name, where the rules name it: nobody can
 * tell whose it was otherwise. */
static bool is_there(const struct broker *b, const struct task *t)
{
    struct gate_agent a = {.name = t->agent};
    struct str owner;

    if (!gate_rules_name(b->opts.rules, t->agent, &owner))
        return true;
    b->opts.agent(b->opts.ctx, t->agent, &a);
    return a.is_known;
}

/* An agent's answer to an envelope about something. False: it is no event, or,
 * with *err, what it is cannot be told. */
static bool result_of(const struct broker *b, const struct task *t,
                      const struct task_result *r, struct arena *arena,
                      char scope[SCOPE_BYTES], struct past_event *out,
                      enum err *err)
{
    struct envelope e;

    *err = OK;
    if (!t->is_envelope || r->status != TASK_COMPLETED || !is_there(b, t))
        return false;
    *err = envelope_of_task(t, arena, &e);
    if (*err)
        return false;
    e.to = e.from;
    e.from = t->agent;
    e.type = ENVELOPE_RESULT;
    e.scope = whose(b, t->requester, scope);
    e.payload = r->metadata;
    return event_of(b, &e, &t->id, &t->message_id, loop_wall_ms(b->opts.loop),
                    out);
}

static void tell_expired(const struct hold *h, const struct task *t,
                         int64_t at_ms, struct tx *tx)
{
    struct envelope e;
    struct pass p;

    hold_envelope(h, &e);
    hold_pass(h, h->why, &p);
    note_time(h->broker, t, &p);
    tell_decision(tx, &(struct told){
                          .type = STR("gate.expired"),
                          .task_id = str_of(t->id.text),
                          .message_id = str_of(t->message_id.text),
                          .conversation_id = t->conversation_id,
                          .requester = t->requester,
                          .root_user = t->root_user,
                          .envelope = &e,
                          .envelope_text = t->is_envelope ? t->text : STR(""),
                          .target = t->agent,
                          .pass = &p,
                          .status = task_status_name(TASK_EXPIRED),
                          .at_ms = at_ms,
                      });
}

void broker_record_end(struct broker *b, const struct task *t,
                       const struct task_result *r, struct tx *tx)
{
    const struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct past_event event;
    struct arena arena;
    enum err e;

    open_arena(&arena);
    if (h)
        hold_unwrite(str_of(t->id.text), tx);
    if (h && !h->batch.text[0] && r->status == TASK_EXPIRED)
        tell_expired(h, t, loop_wall_ms(b->opts.loop), tx);
    if (result_of(b, t, r, &arena, scope, &event, &e))
        event_record(b, &event, tx);
    else if (e == ERR_NOMEM)
        tx->build_error = e;
    people_record_end(b, t, r, tx);
    late_record_end(b, t, r, tx);
    revive_record_end(b, t, r, tx);
    arena_fini(&arena);
}

/* It is on the disk, and known after the next start. Who it was for is looked
 * at among all others. */
static void event_unknown(struct broker *b, struct str task_id)
{
    b->past.forgotten_total++;
    log_error(b->opts.log, "broker.event_forgotten", LOG_S("task_id", task_id),
              LOG_C("because", err_row(ERR_NOMEM)->wording));
    wait_all(b);
}

void broker_settle_end(struct broker *b, const struct task *t,
                       const struct task_result *r)
{
    struct hold *h = hold_find(b, str_of(t->id.text));
    char scope[SCOPE_BYTES];
    struct past_event event;
    struct arena arena;
    enum err e;

    open_arena(&arena);
    if (h && !h->batch.text[0] && r->status == TASK_EXPIRED)
        b->stats.expired_total++;
    hold_free(h);
    if (result_of(b, t, r, &arena, scope, &event, &e))
        event_happened(b, &event);
    else if (e == ERR_NOMEM)
        event_unknown(b, str_of(t->id.text));
    if (t->is_envelope)
        wait_batch(b, str_of(t->id.text));
    wait_queue(b, t->agent);
    people_settle_end(b, t, r);
    late_settle_end(b, t, r);
    revive_settle_end(b, t, r);
    arena_fini(&arena);
}
