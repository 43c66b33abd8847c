/* The questions, in the order of one table; the first that answers decides.
 *
 * Every question is asked of the rules of its section and of what is known,
 * writes its reason where the answer will be, and leaves nothing behind when it
 * does not answer. Nothing is allocated on the way, but where a condition looks
 * at more than fits the stack. */
#include "gate/asked.h"

#include <stdalign.h>

#define DAY_MS INT64_C(86400000)

bool asked_answer(struct asked *a, enum gate_answer answer,
                  enum pass_cause cause, const struct rule *r)
{
    a->out->answer = answer;
    a->out->cause = cause;
    if (r)
        a->out->rule = r->name;
    return true;
}

static bool is_same_key(const struct wait_key *a, const struct wait_key *b)
{
    return a->kind == b->kind && a->at_ms == b->at_ms &&
           str_eq_nocase(a->name, b->name) && str_eq(a->type, b->type);
}

/* More than fit: then it is looked at every now and then, which is slower and
 * misses nothing. */
void asked_wait(struct asked *a, struct wait_key k)
{
    struct pass *out = a->out;

    for (size_t i = 0; i < out->n_keys; i++)
        if (is_same_key(&out->keys[i], &k))
            return;
    if (out->n_keys < PASS_KEYS_MAX)
        out->keys[out->n_keys++] = k;
    else
        out->keys[PASS_KEYS_MAX - 1] = (struct wait_key){.kind = WAIT_LOOK};
}

/* Whether a rule of a section, or one that would make it URGENT, could say
 * something else tomorrow although no key has changed. */
static bool could_change(struct asked *a, enum section s)
{
    struct each i = each_of(a, s);
    const struct rule *r;

    while ((r = each_any(&i)))
        if (r->when && rule_may_change(r))
            return true;
    return false;
}

static bool could_be_raised(struct asked *a)
{
    bool is_so;

    a->pick.priority = a->e->priority; /* as when they were asked */
    is_so = could_change(a, SECTION_PRIORITIES);
    a->pick.priority = a->out->priority;
    return is_so;
}

bool asked_hold(struct asked *a, enum gate_answer what, enum pass_cause cause,
                const struct rule *r, enum section section)
{
    const struct gate_limits *limits = &a->rules->about.limits;
    int64_t ms = r && r->hold_ms > 0 ? r->hold_ms : limits->expire_ms;

    if (ms <= 0)
        ms = DAY_MS;
    if (__builtin_add_overflow(a->now_ms, ms, &a->out->held_until_ms))
        a->out->held_until_ms = INT64_MAX;
    a->out->on_expiry = r ? r->on_expiry : limits->on_expiry;
    if (could_change(a, section) || could_be_raised(a))
        asked_wait(a, (struct wait_key){.kind = WAIT_LOOK});
    return asked_answer(a, what, cause, r);
}

int64_t asked_age(const struct asked *a, int64_t at_ms)
{
    int64_t age;

    if (__builtin_sub_overflow(a->now_ms, at_ms, &age))
        age = a->now_ms < at_ms ? -INT64_MAX : INT64_MAX;
    return age;
}

void asked_tell(struct asked *a, struct str section, const struct rule *r,
                bool has_fired, struct str why)
{
    if (a->trace)
        a->trace->line(a->trace->ctx, section, r ? r->name : STR(""), has_fired,
                       why);
}

/* The first question is how much of a hurry it is in: rules may raise that,
 * never lower it. */
static void raise_priority(struct asked *a)
{
    struct each i = each_of(a, SECTION_PRIORITIES);
    enum task_priority to = a->e->priority;
    const struct rule *r;

    while ((r = each_next(&i))) {
        asked_tell(a, section_name(SECTION_PRIORITIES), r, r->raises_to < to,
                   r->raises_to < to ? STR("it is raised")
                                     : STR("it is as high already"));
        if (r->raises_to < to) {
            to = r->raises_to;
            a->raised_by = r;
        }
    }
    a->out->priority = to;
    a->pick.priority = to;
}

/* What could not be worked out is for a person to see; but who approved it has
 * seen it. */
bool gate_is_unjudged(struct asked *a)
{
    if (!a->unjudged || a->e->is_approved)
        return false;
    a->out->n_keys = 0;
    a->out->held_until_ms = 0;
    a->out->batch_most = 0;
    a->out->sla_ms = 0;
    a->out->sla[0] = '\0';
    a->reason = phrase_in(a->out->reason, sizeof(a->out->reason));
    SAY(&a->reason, STR("the condition of the rule "), a->unjudged->name,
        STR(" cannot be worked out for it: a person must see it"));
    return asked_answer(a, GATE_ESCALATE, PASS_UNJUDGED, a->unjudged);
}

/* URGENT goes before what would hold it, and says so. */
static bool overtakes(struct asked *a)
{
    struct pass *out = a->out;
    char why[PASS_REASON_MAX];

    memcpy(why, out->reason, sizeof(why));
    out->n_keys = 0;
    out->held_until_ms = 0;
    out->on_expiry = EXPIRY_EXPIRE;
    out->batch_most = 0;
    out->rule = a->raised_by ? a->raised_by->name : STR("");
    a->unjudged = NULL;
    a->reason = phrase_in(out->reason, sizeof(out->reason));
    SAY(&a->reason, STR("priority is URGENT, so it goes at once; otherwise: "),
        str_of(why));
    return asked_answer(a, GATE_ROUTE, PASS_URGENT, NULL);
}

static void say_free(struct asked *a)
{
    struct phrase *w = &a->reason;

    if (a->e->is_approved)
        phrase_add(w, STR("a person approved it, "));
    if (a->has_fresh) {
        SAY(w, a->fresh.name, STR(" has fresh data ("));
        phrase_add_age(w, asked_age(a, a->fresh.data_at_ms));
        phrase_add(w, STR(" old)"));
    } else if (a->target.is_known) {
        SAY(w, a->e->to, STR(" is "), agent_state_name(a->target.state));
    } else {
        SAY(w, a->e->to, STR(" is not known"));
    }
    if (!a->e->is_approved)
        phrase_add(w, STR(", no dependency violations"));
    SAY(w, STR(", priority is "), task_priority_name(a->out->priority));
    if (a->raised_by)
        SAY(w, STR(" (raised by "), a->raised_by->name, STR(")"));
}

static bool may_go(struct asked *a)
{
    say_free(a);
    return asked_answer(a, GATE_ROUTE,
                        a->e->is_approved ? PASS_APPROVED : PASS_FREE, NULL);
}

enum { ALWAYS = 0, NOT_WAITED = 1 << 0, NOT_APPROVED = 1 << 1 };

struct asking {
    question *ask;
    unsigned when;
};

/* What is asked of everything. */
static const struct asking firsts[] = {
    {gate_is_repeated, NOT_WAITED | NOT_APPROVED},
    {gate_is_superseded, NOT_WAITED | NOT_APPROVED},
    {gate_is_gated, ALWAYS},
    {gate_must_be_seen, NOT_APPROVED},
    {gate_is_unjudged, ALWAYS},
    {gate_is_target_dead, ALWAYS},
};

/* What URGENT does not wait for. */
static const struct asking waits[] = {
    {gate_lacks_input, NOT_APPROVED},
    {gate_is_stale, NOT_APPROVED},
    {gate_is_target_in_error, ALWAYS},
    {gate_has_enough, ALWAYS},
};

static bool is_asked(const struct asked *a, unsigned when)
{
    return !(when & NOT_WAITED && a->e->has_entered) &&
           !(when & NOT_APPROVED && a->e->is_approved);
}

static bool is_answered(struct asked *a)
{
    for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++)
        if (is_asked(a, firsts[i].when) && firsts[i].ask(a))
            return true;
    return false;
}

static bool must_wait(struct asked *a)
{
    bool is_urgent = a->out->priority == PRIORITY_URGENT, has_answer = false;

    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits) && !has_answer; i++)
        if (is_asked(a, waits[i].when))
            has_answer = waits[i].ask(a) || (!is_urgent && gate_is_unjudged(a));
    if (is_urgent)
        a->unjudged = NULL;
    if (is_urgent && has_answer)
        overtakes(a);
    else if (has_answer)
        gate_is_unjudged(a);
    return has_answer && !is_urgent;
}

static void ask_all(struct asked *a)
{
    raise_priority(a);
    if (is_answered(a) || must_wait(a))
        return;
    if (!a->out->answer)
        may_go(a);
    gate_find_sla(a);
    gate_is_unjudged(a);
}

void gate_decide(const struct gate_rules *r, const struct gate_view *v,
                 const struct envelope *e, int64_t now_ms, struct pass *out,
                 const struct gate_trace *trace)
{
    alignas(max_align_t) char bytes[SCRATCH_BYTES];
    struct gate_event events[GATE_EVENTS_MAX];
    struct arena scratch;
    struct asked a = {.rules = r,
                      .view = v,
                      .e = e,
                      .now_ms = now_ms,
                      .trace = trace,
                      .out = out,
                      .events = events,
                      .scratch = &scratch,
                      .room = ASKED_ROOM};

    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    *out = (struct pass){.priority = e->priority, .channel = r->feed_channel};
    gate_note_time(&r->about.limits, e->at_ms, now_ms, out);
    rules_pick(&a.pick, r, e);
    a.reason = phrase_in(out->reason, sizeof(out->reason));
    asked_target(&a);
    ask_all(&a);
    arena_fini(&scratch);
}
