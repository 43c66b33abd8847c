/* What must have happened first, and how old data may be. */
#include "gate/asked.h"

void asked_events(struct asked *a)
{
    if (a->has_events)
        return;
    a->has_events = true;
    if (a->e->reference.n && a->view->events)
        a->n_events = a->view->events(a->view->ctx, a->e->reference, a->events,
                                      GATE_EVENTS_MAX);
}

static bool is_wanted(const struct need *n, const struct gate_event *v)
{
    return match_has(n->type, v->type) &&
           (!n->from.n || match_has_name(n->from, v->from)) &&
           (!n->to.n || match_has_name(n->to, v->to)) &&
           (n->wants == APPROVAL_NONE || v->approved != APPROVAL_NONE);
}

/* The last word counts: who approved and then thought better of it has not
 * approved. One that says neither leaves it as it was. */
const struct gate_event *need_newest(struct asked *a, const struct need *n)
{
    asked_events(a);
    for (size_t i = a->n_events; i > 0; i--)
        if (is_wanted(n, &a->events[i - 1]))
            return &a->events[i - 1];
    return NULL;
}

static bool is_in_time(const struct asked *a, int64_t at_ms, int64_t within_ms)
{
    return within_ms <= 0 || asked_age(a, at_ms) <= within_ms;
}

bool need_is_met(const struct asked *a, const struct need *n,
                 const struct gate_event *v)
{
    return v && (n->wants == APPROVAL_NONE || v->approved == n->wants) &&
           is_in_time(a, v->at_ms, n->within_ms);
}

/* "SUBMITTED from Jay", "RESULT from Z that approves". */
void need_say(struct phrase *w, const struct need *n)
{
    phrase_add_list(w, n->type, STR("anything"));
    phrase_add(w, STR(" from "));
    phrase_add_list(w, n->from, STR("anybody"));
    if (n->to.n) {
        phrase_add(w, STR(" to "));
        phrase_add_list(w, n->to, STR("anybody"));
    }
    if (n->wants == APPROVED)
        phrase_add(w, STR(" that approves"));
    if (n->wants == DISAPPROVED)
        phrase_add(w, STR(" that disapproves"));
}

/* "Jay SUBMITTED 2 minutes ago". */
static void say_event(struct asked *a, struct phrase *w,
                      const struct gate_event *v)
{
    SAY(w, v->from, STR(" "), v->type, STR(" "));
    phrase_add_age(w, asked_age(a, v->at_ms));
    phrase_add(w, STR(" ago"));
    if (v->approved == APPROVED)
        phrase_add(w, STR(", approved"));
    if (v->approved == DISAPPROVED)
        phrase_add(w, STR(", disapproved"));
}

/* What was there and would not do: the reason is more than that it lacks. */
static void say_unmet(struct asked *a, struct phrase *w, const struct need *n,
                      const struct gate_event *v)
{
    need_say(w, n);
    if (!v)
        return;
    phrase_add(w, STR(" (so far: "));
    say_event(a, w, v);
    if (!is_in_time(a, v->at_ms, n->within_ms)) {
        phrase_add(w, STR(", which may be no more than "));
        phrase_add_exactly(w, n->within_ms);
    }
    phrase_add(w, STR(")"));
}

static void wait_for_need(struct asked *a, const struct need *n)
{
    for (size_t i = 0; i < n->type.n; i++)
        asked_wait(a, (struct wait_key){.kind = WAIT_EVENT,
                                        .name = a->e->reference,
                                        .type = n->type.list[i]});
    if (!n->type.n)
        asked_wait(a, (struct wait_key){.kind = WAIT_LOOK});
}

static void tell_met(struct asked *a, const struct rule *r)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct gate_event *v = need_newest(a, &r->after.needs[i]);

        if (i)
            phrase_add(&w, STR(", "));
        if (v)
            say_event(a, &w, v);
    }
    asked_tell(a, section_name(SECTION_DEPENDENCIES), r, false,
               (struct str){w.p, w.n});
}

static size_t unmet(struct asked *a, const struct rule *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->after.n_needs; i++)
        n += !need_is_met(a, &r->after.needs[i],
                          need_newest(a, &r->after.needs[i]));
    return n;
}

/* Nobody can tell what has happened for something that has no name, and
 * waiting would never end. */
static bool has_no_reference(struct asked *a, const struct rule *r)
{
    phrase_add(&a->reason, STR("it names no reference, so nobody can tell "
                               "whether it may go, which takes "));
    need_say(&a->reason, &r->after.needs[0]);
    phrase_add(&a->reason, STR(": a person must see it, or send it again with "
                               "one"));
    return asked_answer(a, GATE_ESCALATE, PASS_PREREQUISITE, r);
}

static int64_t time_after(int64_t at_ms, int64_t ms)
{
    int64_t then;

    return __builtin_add_overflow(at_ms, ms, &then) || then == INT64_MAX
               ? INT64_MAX
               : then + 1;
}

/* Until they are there; and what has happened may become too old meanwhile,
 * which makes what is said of it untrue. */
static bool waits_for_needs(struct asked *a, const struct rule *r)
{
    size_t said = 0;

    SAY(&a->reason, STR("waits for "));
    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct need *n = &r->after.needs[i];
        const struct gate_event *v = need_newest(a, n);

        if (need_is_met(a, n, v)) {
            if (n->within_ms > 0)
                asked_wait(a, (struct wait_key){
                                  .kind = WAIT_TIME,
                                  .at_ms = time_after(v->at_ms, n->within_ms)});
            continue;
        }
        phrase_add(&a->reason, said++ ? STR(" and ") : STR(""));
        say_unmet(a, &a->reason, n, v);
        wait_for_need(a, n);
    }
    SAY(&a->reason, STR(", for "), a->e->reference);
    return asked_hold(a, GATE_HOLD_INPUT, PASS_PREREQUISITE, r,
                      SECTION_DEPENDENCIES);
}

bool gate_lacks_input(struct asked *a)
{
    struct each i = each_of(a, SECTION_DEPENDENCIES);
    const struct rule *r;

    while ((r = each_next(&i))) {
        if (!unmet(a, r)) {
            if (a->trace)
                tell_met(a, r);
            continue;
        }
        if (a->e->reference.n)
            waits_for_needs(a, r);
        else
            has_no_reference(a, r);
        asked_tell(a, section_name(SECTION_DEPENDENCIES), r, true,
                   str_of(a->out->reason));
        return true;
    }
    return false;
}

static void say_data(struct asked *a, struct phrase *w, struct str name,
                     int64_t at_ms)
{
    if (!at_ms) {
        SAY(w, name, STR(" has not said how old its data is"));
        return;
    }
    SAY(w, name, STR("'s data is "));
    phrase_add_age(w, asked_age(a, at_ms));
    phrase_add(w, STR(" old"));
}

static bool is_too_old(struct asked *a, const struct rule *r,
                       const struct gate_agent *of)
{
    char text[WHY_MAX];
    struct phrase w;
    bool is_old =
        !of->data_at_ms || asked_age(a, of->data_at_ms) > r->fresh.within_ms;

    if (a->trace) {
        w = phrase_in(text, sizeof(text));
        say_data(a, &w, of->name, of->data_at_ms);
        asked_tell(a, section_name(SECTION_FRESHNESS), r, is_old,
                   (struct str){w.p, w.n});
    }
    return is_old;
}

bool gate_is_stale(struct asked *a)
{
    struct each i = each_of(a, SECTION_FRESHNESS);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_agent of = a->target;

        if (r->fresh.agent.n)
            asked_agent(a, r->fresh.agent, &of);
        if (!is_too_old(a, r, &of)) {
            if (!a->has_fresh)
                a->fresh = of;
            a->has_fresh = true;
            continue;
        }
        say_data(a, &a->reason, of.name, of.data_at_ms);
        phrase_add(&a->reason, STR("; it waits for data that is "));
        phrase_add_exactly(&a->reason, r->fresh.within_ms);
        phrase_add(&a->reason, STR(" old at most"));
        asked_wait(a, (struct wait_key){.kind = WAIT_AGENT, .name = of.name});
        return asked_hold(a, GATE_HOLD_INPUT, PASS_STALE, r, SECTION_FRESHNESS);
    }
    return false;
}

/* Conditions may look at the history: then anything may be of interest. */
bool gate_is_event(const struct gate_rules *r, const struct envelope *e)
{
    if (!e->reference.n)
        return false;
    for (size_t i = 0; i < r->n_rules; i++)
        if (r->rules[i].when)
            return true;
    for (size_t i = r->first[SECTION_DEPENDENCIES];
         i < r->first[SECTION_DEPENDENCIES + 1]; i++) {
        const struct rule *d = &r->rules[i];

        for (size_t n = 0; n < d->after.n_needs; n++)
            if (match_has(d->after.needs[n].type, e->type) ||
                match_has(d->after.needs[n].type, ENVELOPE_RESULT))
                return true;
    }
    return false;
}
