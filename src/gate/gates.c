/* Safety gates, and what a person must see. */
#include "gate/asked.h"

static void say_gated(struct asked *a, const struct gate_agent *of)
{
    if (of->is_known)
        SAY(&a->reason, of->name, STR(" is "), agent_state_name(of->state));
    else if (of->is_foreign)
        SAY(&a->reason, of->name,
            STR(" is not an agent of the operator's that the sender may see, "
                "which counts as DEAD"));
    else
        SAY(&a->reason, of->name,
            STR(" is not known here, which counts as "
                "DEAD"));
    SAY(&a->reason, STR(", and nothing of the kind "), a->e->type,
        STR(" goes before it is back"));
}

static void tell_well(struct asked *a, const struct rule *r,
                      const struct gate_agent *of)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    SAY(&w, of->name, STR(" is "), agent_state_name(of->state));
    asked_tell(a, section_name(SECTION_SAFETY_GATES), r, false,
               (struct str){w.p, w.n});
}

/* Whether its agent is ill, or not the one that the rules mean, and its
 * condition holds. Where that cannot be worked
 * out a person must see the message; and one who has seen it still does not let
 * it through a gate. */
static bool stops(struct asked *a, const struct rule *r, struct gate_agent *of)
{
    enum holds h;

    asked_agent(a, r->gate.agent, of);
    if (!of->is_foreign && !(r->gate.states >> of->state & 1)) {
        if (a->trace)
            tell_well(a, r, of);
        return false;
    }
    h = rule_holds(a, r);
    if (h == HOLDS_YES || (h == HOLDS_FAILED && a->e->is_approved))
        return true;
    if (h == HOLDS_FAILED && !a->unjudged)
        a->unjudged = r;
    asked_tell(a, section_name(SECTION_SAFETY_GATES), r, false,
               h == HOLDS_NO ? STR("its condition does not hold")
                             : STR("its condition cannot be worked out"));
    return false;
}

bool gate_is_gated(struct asked *a)
{
    struct each i = each_of(a, SECTION_SAFETY_GATES);
    const struct rule *r;

    while ((r = each_match(&i))) {
        struct gate_agent of;

        if (!stops(a, r, &of))
            continue;
        say_gated(a, &of);
        a->out->gate_agent = r->gate.agent;
        asked_wait(
            a, (struct wait_key){.kind = WAIT_AGENT, .name = r->gate.agent});
        asked_tell(a, section_name(SECTION_SAFETY_GATES), r, true,
                   str_of(a->out->reason));
        return asked_hold(a, GATE_PAUSE, PASS_GATED, r, SECTION_SAFETY_GATES);
    }
    return false;
}

bool gate_must_be_seen(struct asked *a)
{
    struct each i = each_of(a, SECTION_ESCALATIONS);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_seen seen;

        if (!r->like.n_same) {
            SAY(&a->reason, STR("the rule "), r->name,
                STR(" says that a person must see it"));
        } else if (gate_is_about_the_same(a, r, &seen)) {
            SAY(&a->reason, STR("it is about the same as "),
                seen.message_id.n ? seen.message_id : STR("one"), STR(", "));
            phrase_add_age(&a->reason, asked_age(a, seen.at_ms));
            SAY(&a->reason, STR(" ago ("), r->name,
                STR("): a person must see it"));
            a->out->repeats = seen.message_id;
        } else {
            continue;
        }
        asked_tell(a, section_name(SECTION_ESCALATIONS), r, true,
                   str_of(a->out->reason));
        return asked_answer(a, GATE_ESCALATE, PASS_RULE, r);
    }
    return false;
}
