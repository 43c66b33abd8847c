/* Prerequisites, and the freshness of data. */
#include "gate/rules/evaluation.h"

void eval_events(struct evaluation *ev)
{
    if (ev->has_events)
        return;
    ev->has_events = true;
    if (ev->e->reference.n && ev->view->events)
        ev->n_events = ev->view->events(ev->view->ctx, ev->e->reference,
                                        ev->events, GATE_EVENTS_MAX);
}

static bool need_is_about(const struct need *n, const struct gate_event *v)
{
    return match_has(n->type, v->type) &&
           (!n->from.n || match_has_name(n->from, v->from)) &&
           (!n->to.n || match_has_name(n->to, v->to)) &&
           (n->wants == APPROVAL_NONE || v->approved != APPROVAL_NONE);
}

/* The newest event counts, so a later disapproval revokes an approval. An event
 * that says neither changes nothing. */
const struct gate_event *need_newest(struct evaluation *ev,
                                     const struct need *n)
{
    eval_events(ev);
    for (size_t i = ev->n_events; i > 0; i--)
        if (need_is_about(n, &ev->events[i - 1]))
            return &ev->events[i - 1];
    return NULL;
}

static bool is_in_time(const struct evaluation *ev, int64_t at_ms,
                       int64_t within_ms)
{
    return within_ms <= 0 || eval_age(ev, at_ms) <= within_ms;
}

bool need_is_met(const struct evaluation *ev, const struct need *n,
                 const struct gate_event *v)
{
    return v && (n->wants == APPROVAL_NONE || v->approved == n->wants) &&
           is_in_time(ev, v->at_ms, n->within_ms);
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
static void say_past_event(struct evaluation *ev, struct phrase *w,
                           const struct gate_event *v)
{
    SAY(w, v->from, STR(" "), v->type, STR(" "));
    phrase_add_age(w, eval_age(ev, v->at_ms));
    phrase_add(w, STR(" ago"));
    if (v->approved == APPROVED)
        phrase_add(w, STR(", approved"));
    if (v->approved == DISAPPROVED)
        phrase_add(w, STR(", disapproved"));
}

/* The event that did not suffice is part of the reason. */
static void say_unmet_need(struct evaluation *ev, struct phrase *w,
                           const struct need *n, const struct gate_event *v)
{
    need_say(w, n);
    if (!v)
        return;
    phrase_add(w, STR(" (so far: "));
    say_past_event(ev, w, v);
    if (!is_in_time(ev, v->at_ms, n->within_ms)) {
        phrase_add(w, STR(", which may be no more than "));
        phrase_add_exactly(w, n->within_ms);
    }
    phrase_add(w, STR(")"));
}

static void wait_for_need(struct evaluation *ev, const struct need *n)
{
    for (size_t i = 0; i < n->type.n; i++)
        eval_wait(ev, (struct wait_key){.kind = WAIT_EVENT,
                                        .name = ev->e->reference,
                                        .type = n->type.list[i]});
    if (!n->type.n)
        eval_wait(ev, (struct wait_key){.kind = WAIT_LOOK});
}

static void trace_met_needs(struct evaluation *ev, const struct rule *r)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct gate_event *v = need_newest(ev, &r->after.needs[i]);

        if (i)
            phrase_add(&w, STR(", "));
        if (v)
            say_past_event(ev, &w, v);
    }
    eval_trace(ev, section_name(SECTION_DEPENDENCIES), r, false,
               (struct str){w.p, w.n});
}

static size_t count_unmet_needs(struct evaluation *ev, const struct rule *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->after.n_needs; i++)
        n += !need_is_met(ev, &r->after.needs[i],
                          need_newest(ev, &r->after.needs[i]));
    return n;
}

/* Without a reference there are no events to wait for, and the wait would never
 * end. */
static bool escalate_without_reference(struct evaluation *ev,
                                       const struct rule *r)
{
    phrase_add(&ev->reason,
               STR("it names no reference, so the gate cannot tell "
                   "whether it may go, which takes "));
    need_say(&ev->reason, &r->after.needs[0]);
    phrase_add(&ev->reason, STR(": a person must see it, or send it again with "
                                "one"));
    return eval_answer(ev, GATE_ESCALATE, PASS_PREREQUISITE, r);
}

static int64_t time_after(int64_t at_ms, int64_t ms)
{
    int64_t then;

    return __builtin_add_overflow(at_ms, ms, &then) || then == INT64_MAX
               ? INT64_MAX
               : then + 1;
}

/* Hold until the events are there. An event that already counts may become too
 * old meanwhile, which would make the reason wrong, so that time is a wait key
 * too. */
static bool hold_for_needs(struct evaluation *ev, const struct rule *r)
{
    size_t n_unmet = 0;

    SAY(&ev->reason, STR("waits for "));
    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct need *n = &r->after.needs[i];
        const struct gate_event *v = need_newest(ev, n);

        if (need_is_met(ev, n, v)) {
            if (n->within_ms > 0)
                eval_wait(ev, (struct wait_key){
                                  .kind = WAIT_TIME,
                                  .at_ms = time_after(v->at_ms, n->within_ms)});
            continue;
        }
        phrase_add(&ev->reason, n_unmet++ ? STR(" and ") : STR(""));
        say_unmet_need(ev, &ev->reason, n, v);
        wait_for_need(ev, n);
    }
    SAY(&ev->reason, STR(", for "), ev->e->reference);
    return eval_hold(ev, GATE_HOLD_INPUT, PASS_PREREQUISITE, r,
                     SECTION_DEPENDENCIES);
}

bool gate_lacks_input(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_DEPENDENCIES);
    const struct rule *r;

    while ((r = each_next(&i))) {
        if (!count_unmet_needs(ev, r)) {
            if (ev->trace)
                trace_met_needs(ev, r);
            continue;
        }
        if (ev->e->reference.n)
            hold_for_needs(ev, r);
        else
            escalate_without_reference(ev, r);
        eval_trace(ev, section_name(SECTION_DEPENDENCIES), r, true,
                   str_of(ev->out->reason));
        return true;
    }
    return false;
}

static void say_data_age(struct evaluation *ev, struct phrase *w,
                         struct str name, int64_t at_ms)
{
    if (!at_ms) {
        SAY(w, name, STR(" has not said how old its data is"));
        return;
    }
    SAY(w, name, STR("'s data is "));
    phrase_add_age(w, eval_age(ev, at_ms));
    phrase_add(w, STR(" old"));
}

static bool is_data_too_old(struct evaluation *ev, const struct rule *r,
                            const struct gate_agent *of)
{
    char text[WHY_MAX];
    struct phrase w;
    bool is_old =
        !of->data_at_ms || eval_age(ev, of->data_at_ms) > r->fresh.within_ms;

    if (ev->trace) {
        w = phrase_in(text, sizeof(text));
        say_data_age(ev, &w, of->name, of->data_at_ms);
        eval_trace(ev, section_name(SECTION_FRESHNESS), r, is_old,
                   (struct str){w.p, w.n});
    }
    return is_old;
}

bool gate_is_stale(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_FRESHNESS);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_agent of = ev->target;

        if (r->fresh.agent.n)
            eval_agent(ev, r->fresh.agent, &of);
        if (!is_data_too_old(ev, r, &of)) {
            if (!ev->has_fresh)
                ev->fresh = of;
            ev->has_fresh = true;
            continue;
        }
        say_data_age(ev, &ev->reason, of.name, of.data_at_ms);
        phrase_add(&ev->reason, STR("; it waits for data that is "));
        phrase_add_exactly(&ev->reason, r->fresh.within_ms);
        phrase_add(&ev->reason, STR(" old at most"));
        eval_wait(ev, (struct wait_key){.kind = WAIT_AGENT, .name = of.name});
        return eval_hold(ev, GATE_HOLD_INPUT, PASS_STALE, r, SECTION_FRESHNESS);
    }
    return false;
}

/* A condition may read the history, so then every message may matter. */
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
