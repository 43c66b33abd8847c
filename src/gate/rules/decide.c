/* The questions, in the order of one table; the first that answers decides.
 *
 * Every question looks at the rules of its section and at the view, writes its
 * reason where the answer will be, and leaves nothing behind when it does not
 * answer. Nothing is allocated, except where a condition reads more data than
 * fits the stack. */
#include "gate/rules/evaluation.h"

#include <stdalign.h>

#define DAY_MS INT64_C(86400000)

bool eval_answer(struct evaluation *ev, enum gate_answer answer,
                 enum gate_cause cause, const struct rule *r)
{
    ev->out->answer = answer;
    ev->out->cause = cause;
    if (r)
        ev->out->rule = r->name;
    return true;
}

static bool wait_key_equals(const struct wait_key *a, const struct wait_key *b)
{
    return a->kind == b->kind && a->at_ms == b->at_ms &&
           str_eq_nocase(a->name, b->name) && str_eq(a->type, b->type);
}

/* When the keys do not fit, the message is looked at periodically: slower, but
 * nothing is missed. */
void eval_wait(struct evaluation *ev, struct wait_key k)
{
    struct gate_result *out = ev->out;

    for (size_t i = 0; i < out->n_keys; i++)
        if (wait_key_equals(&out->keys[i], &k))
            return;
    if (out->n_keys < PASS_KEYS_MAX)
        out->keys[out->n_keys++] = k;
    else
        out->keys[PASS_KEYS_MAX - 1] = (struct wait_key){.kind = WAIT_LOOK};
}

/* Whether a rule of the section could give another result later although no
 * wait key has changed. */
static bool section_may_change(struct evaluation *ev, enum section s)
{
    struct each i = each_of(ev, s);
    const struct rule *r;

    while ((r = each_any(&i)))
        if (r->when && rule_may_change(r))
            return true;
    return false;
}

bool eval_hold(struct evaluation *ev, enum gate_answer what,
               enum gate_cause cause, const struct rule *r,
               enum section section)
{
    const struct gate_limits *limits = &ev->rules->about.limits;
    int64_t ms = r && r->hold_ms > 0 ? r->hold_ms : limits->expire_ms;
    bool may_change = section_may_change(ev, section);

    if (ms <= 0)
        ms = DAY_MS;
    if (__builtin_add_overflow(ev->now_ms, ms, &ev->out->held_until_ms))
        ev->out->held_until_ms = INT64_MAX;
    ev->out->on_expiry = r ? r->on_expiry : limits->on_expiry;
    ev->pick.priority = ev->e->priority; /* as when they were evaluated */
    may_change = may_change || section_may_change(ev, SECTION_PRIORITIES);
    ev->pick.priority = ev->out->priority;
    if (may_change)
        eval_wait(ev, (struct wait_key){.kind = WAIT_LOOK});
    return eval_answer(ev, what, cause, r);
}

void eval_trace(struct evaluation *ev, struct str section, const struct rule *r,
                bool has_fired, struct str why)
{
    if (ev->trace)
        ev->trace->line(ev->trace->ctx, section, r ? r->name : STR(""),
                        has_fired, why);
}

/* Rules may raise the priority, never lower it. */
static void raise_priority(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_PRIORITIES);
    enum task_priority to = ev->e->priority;
    const struct rule *r;

    while ((r = each_next(&i))) {
        eval_trace(ev, section_name(SECTION_PRIORITIES), r, r->raises_to < to,
                   r->raises_to < to ? STR("it is raised")
                                     : STR("it is as high already"));
        if (r->raises_to < to) {
            to = r->raises_to;
            ev->raised_by = r;
        }
    }
    ev->out->priority = to;
    ev->pick.priority = to;
}

/* A rule that could not be evaluated escalates the message, unless a person has
 * already approved it. */
static bool gate_is_unjudged(struct evaluation *ev)
{
    if (!ev->unjudged || ev->e->is_approved)
        return false;
    ev->out->n_keys = 0;
    ev->out->held_until_ms = 0;
    ev->out->batch_most = 0;
    ev->out->sla_ms = 0;
    ev->out->sla[0] = '\0';
    ev->reason = phrase_in(ev->out->reason, sizeof(ev->out->reason));
    SAY(&ev->reason, STR("the condition of the rule "), ev->unjudged->name,
        STR(" cannot be evaluated for it: a person must see it"));
    return eval_answer(ev, GATE_ESCALATE, PASS_UNJUDGED, ev->unjudged);
}

/* URGENT overrides a hold, and the reason says so. */
static void override_hold(struct evaluation *ev)
{
    struct gate_result *out = ev->out;
    char why[PASS_REASON_MAX];

    memcpy(why, out->reason, sizeof(why));
    out->n_keys = 0;
    out->held_until_ms = 0;
    out->on_expiry = EXPIRY_EXPIRE;
    out->batch_most = 0;
    out->rule = ev->raised_by ? ev->raised_by->name : STR("");
    ev->unjudged = NULL;
    ev->reason = phrase_in(out->reason, sizeof(out->reason));
    SAY(&ev->reason, STR("priority is URGENT, so it goes at once; otherwise: "),
        str_of(why));
    eval_answer(ev, GATE_ROUTE, PASS_URGENT, NULL);
}

static void answer_route(struct evaluation *ev)
{
    struct phrase *w = &ev->reason;

    if (ev->e->is_approved)
        phrase_add(w, STR("a person approved it, "));
    if (ev->has_fresh) {
        SAY(w, ev->fresh.name, STR(" has fresh data ("));
        phrase_add_age(w, eval_age(ev, ev->fresh.data_at_ms));
        phrase_add(w, STR(" old)"));
    } else if (ev->target.is_known) {
        SAY(w, ev->e->to, STR(" is "), agent_state_name(ev->target.state));
    } else {
        SAY(w, ev->e->to, STR(" is not known"));
    }
    if (!ev->e->is_approved)
        phrase_add(w, STR(", no dependency violations"));
    SAY(w, STR(", priority is "), task_priority_name(ev->out->priority));
    if (ev->raised_by)
        SAY(w, STR(" (raised by "), ev->raised_by->name, STR(")"));
    eval_answer(ev, GATE_ROUTE, ev->e->is_approved ? PASS_APPROVED : PASS_FREE,
                NULL);
}

enum { ALWAYS = 0, NOT_HELD_BEFORE = 1 << 0, NOT_APPROVED = 1 << 1 };

struct question_row {
    gate_question *ask;
    unsigned when;
};

/* Asked of every message. */
static const struct question_row first_questions[] = {
    {gate_is_repeated, NOT_HELD_BEFORE | NOT_APPROVED},
    {gate_is_superseded, NOT_HELD_BEFORE | NOT_APPROVED},
    {gate_is_gated, ALWAYS},
    {gate_is_escalated, NOT_APPROVED},
    {gate_is_unjudged, ALWAYS},
    {gate_is_target_dead, ALWAYS},
};

/* Overridden by URGENT. */
static const struct question_row hold_questions[] = {
    {gate_lacks_input, NOT_APPROVED},
    {gate_is_stale, NOT_APPROVED},
    {gate_is_target_in_error, ALWAYS},
    {gate_is_target_full, ALWAYS},
};

static bool is_question_due(const struct evaluation *ev, unsigned when)
{
    return !(when & NOT_HELD_BEFORE && ev->e->has_entered) &&
           !(when & NOT_APPROVED && ev->e->is_approved);
}

static bool is_held(struct evaluation *ev)
{
    size_t n = sizeof(hold_questions) / sizeof(*hold_questions);
    bool is_urgent = ev->out->priority == PRIORITY_URGENT, has_answer = false;

    for (size_t i = 0; i < n && !has_answer; i++)
        if (is_question_due(ev, hold_questions[i].when))
            has_answer = hold_questions[i].ask(ev) ||
                         (!is_urgent && gate_is_unjudged(ev));
    if (is_urgent)
        ev->unjudged = NULL;
    if (is_urgent && has_answer)
        override_hold(ev);
    else if (has_answer)
        gate_is_unjudged(ev);
    return has_answer && !is_urgent;
}

static void ask_questions(struct evaluation *ev)
{
    size_t n = sizeof(first_questions) / sizeof(*first_questions);

    raise_priority(ev);
    for (size_t i = 0; i < n; i++)
        if (is_question_due(ev, first_questions[i].when) &&
            first_questions[i].ask(ev))
            return;
    if (is_held(ev))
        return;
    if (!ev->out->answer)
        answer_route(ev);
    gate_find_sla(ev);
    gate_is_unjudged(ev);
}

void gate_decide(const struct gate_rules *r, const struct gate_view *v,
                 const struct envelope *e, int64_t now_ms,
                 struct gate_result *out, const struct gate_trace *trace)
{
    alignas(max_align_t) char bytes[SCRATCH_BYTES];
    struct gate_event events[GATE_EVENTS_MAX];
    struct arena scratch;
    struct evaluation ev = {.rules = r,
                            .view = v,
                            .e = e,
                            .now_ms = now_ms,
                            .trace = trace,
                            .out = out,
                            .events = events,
                            .scratch = &scratch,
                            .room = EVAL_ROOM};

    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    *out = (struct gate_result){.priority = e->priority,
                                .channel = r->feed_channel};
    gate_note_time(&r->about.limits, e->at_ms, now_ms, out);
    rules_pick(&ev.pick, r, e);
    ev.reason = phrase_in(out->reason, sizeof(out->reason));
    eval_target(&ev);
    ask_questions(&ev);
    arena_fini(&scratch);
}
