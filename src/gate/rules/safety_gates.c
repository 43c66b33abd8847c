/* Safety gates and escalation rules. */
#include "gate/rules/evaluation.h"

static void say_gated(struct evaluation *ev, const struct gate_agent *of)
{
    if (of->is_known)
        SAY(&ev->reason, of->name, STR(" is "), agent_state_name(of->state));
    else if (of->is_foreign)
        SAY(&ev->reason, of->name,
            STR(" is not an agent of the operator's that the sender may see, "
                "which counts as DEAD"));
    else
        SAY(&ev->reason, of->name,
            STR(" is not known here, which counts as DEAD"));
    SAY(&ev->reason, STR(", and nothing of the kind "), ev->e->type,
        STR(" goes before it is back"));
}

static void trace_open_gate(struct evaluation *ev, const struct rule *r,
                            const struct gate_agent *of)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    SAY(&w, of->name, STR(" is "), agent_state_name(of->state));
    eval_trace(ev, section_name(SECTION_SAFETY_GATES), r, false,
               (struct str){w.p, w.n});
}

/* Whether the gate's agent is in one of the gate's states, or not the agent
 * that the rules mean, and the rule's condition holds. If the condition cannot
 * be evaluated the message is escalated; an approval by a person then still
 * does not open the gate. */
static bool gate_is_shut(struct evaluation *ev, const struct rule *r,
                         struct gate_agent *of)
{
    enum holds h;

    eval_agent(ev, r->gate.agent, of);
    if (!of->is_foreign && !(r->gate.states >> of->state & 1)) {
        if (ev->trace)
            trace_open_gate(ev, r, of);
        return false;
    }
    h = rule_holds(ev, r);
    if (h == HOLDS_YES || (h == HOLDS_FAILED && ev->e->is_approved))
        return true;
    if (h == HOLDS_FAILED && !ev->unjudged)
        ev->unjudged = r;
    eval_trace(ev, section_name(SECTION_SAFETY_GATES), r, false,
               h == HOLDS_NO ? STR("its condition does not hold")
                             : STR("its condition cannot be evaluated"));
    return false;
}

bool gate_is_gated(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_SAFETY_GATES);
    const struct rule *r;

    while ((r = each_match(&i))) {
        struct gate_agent of;

        if (!gate_is_shut(ev, r, &of))
            continue;
        say_gated(ev, &of);
        ev->out->gate_agent = r->gate.agent;
        eval_wait(ev,
                  (struct wait_key){.kind = WAIT_AGENT, .name = r->gate.agent});
        eval_trace(ev, section_name(SECTION_SAFETY_GATES), r, true,
                   str_of(ev->out->reason));
        return eval_hold(ev, GATE_PAUSE, PASS_GATED, r, SECTION_SAFETY_GATES);
    }
    return false;
}

bool gate_is_escalated(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_ESCALATIONS);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_seen seen;

        if (!r->like.n_same) {
            SAY(&ev->reason, STR("the rule "), r->name,
                STR(" says that a person must see it"));
        } else if (gate_is_about_the_same(ev, r, &seen)) {
            SAY(&ev->reason, STR("it is about the same as "),
                seen.message_id.n ? seen.message_id : STR("one"), STR(", "));
            phrase_add_age(&ev->reason, eval_age(ev, seen.at_ms));
            SAY(&ev->reason, STR(" ago ("), r->name,
                STR("): a person must see it"));
            ev->out->repeats = seen.message_id;
        } else {
            continue;
        }
        eval_trace(ev, section_name(SECTION_ESCALATIONS), r, true,
                   str_of(ev->out->reason));
        return eval_answer(ev, GATE_ESCALATE, PASS_RULE, r);
    }
    return false;
}
