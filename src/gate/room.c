/* The one it is for: dead, in error, with enough to do; and when its answer is
 * due. */
#include "gate/asked.h"

static void look_up(struct asked *a, struct str name, struct gate_agent *out)
{
    *out = (struct gate_agent){.name = name};
    if (!a->view->agent(a->view->ctx, name, out))
        out->is_known = false;
    out->name = name;
    if (!out->is_known || out->state < AGENT_ACTIVE || out->state > AGENT_DEAD)
        out->state = AGENT_DEAD;
}

void asked_agent(struct asked *a, struct str name, struct gate_agent *out)
{
    look_up(a, name, out);
    if (out->is_foreign)
        *out = (struct gate_agent){
            .name = name, .state = AGENT_DEAD, .is_foreign = true};
}

void asked_target(struct asked *a)
{
    look_up(a, a->e->to, &a->target);
}

static void tell_state(struct asked *a, bool has_fired)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    if (!a->trace)
        return;
    SAY(&w, a->e->to, STR(" is "),
        a->target.is_known ? agent_state_name(a->target.state)
                           : STR("not known"));
    asked_tell(a, STR("target"), NULL, has_fired, (struct str){w.p, w.n});
}

static struct wait_key of_target(const struct asked *a, enum wait_kind kind)
{
    return (struct wait_key){.kind = kind, .name = a->e->to};
}

/* What a person sends to an agent that is not there is refused, or waits for
 * it, by the agent's own settings. */
bool gate_is_target_dead(struct asked *a)
{
    bool is_dead = a->target.state == AGENT_DEAD && !a->e->is_message;

    tell_state(a, is_dead);
    if (!is_dead)
        return false;
    if (a->target.is_known)
        SAY(&a->reason, a->e->to, STR(" is DEAD: "));
    else
        SAY(&a->reason, a->e->to, STR(" is not known here: "));
    if (a->e->is_approved) {
        phrase_add(&a->reason, STR("approved, it goes when the agent is back"));
        asked_wait(a, of_target(a, WAIT_AGENT));
        return asked_hold(a, GATE_HOLD_CAPACITY, PASS_TARGET_DEAD, NULL,
                          SECTION_CAPACITY);
    }
    phrase_add(&a->reason, STR("bring it back, send it to another, or reject "
                               "it"));
    return asked_answer(a, GATE_ESCALATE, PASS_TARGET_DEAD, NULL);
}

bool gate_is_target_in_error(struct asked *a)
{
    bool is_ill = a->target.state == AGENT_ERROR && !a->target.may_try;

    if (!is_ill)
        return false;
    SAY(&a->reason, a->e->to,
        STR(" is ERROR: it waits until the agent is well, or may be tried "
            "again"));
    tell_state(a, true);
    asked_wait(a, of_target(a, WAIT_AGENT));
    return asked_hold(a, GATE_HOLD_CAPACITY, PASS_TARGET_ERROR, NULL,
                      SECTION_CAPACITY);
}

/* "12 tasks wait for Rick, which takes no more than 10 at a time (depth)". */
static void say_room(struct asked *a, struct phrase *w, int64_t most,
                     const struct rule *r)
{
    phrase_add_int(w, a->target.queue);
    SAY(w,
        a->target.queue == 1 ? STR(" task waits for ")
                             : STR(" tasks wait for "),
        a->e->to, STR(", which takes no more than "));
    phrase_add_int(w, most);
    phrase_add(w, STR(" at a time"));
    if (r)
        SAY(w, STR(" ("), r->name, STR(")"));
}

/* The first rule that is for it has the say, then the card. */
bool gate_has_enough(struct asked *a)
{
    struct each i = each_of(a, SECTION_CAPACITY);
    const struct rule *r = each_next(&i);
    int64_t most = r && r->room.queue > 0 ? r->room.queue : a->target.queue_max;
    bool is_full = a->target.is_known && most > 0 && a->target.queue >= most;

    if (a->trace && (r || is_full)) {
        char text[WHY_MAX];
        struct phrase w = phrase_in(text, sizeof(text));

        say_room(a, &w, most, NULL);
        asked_tell(a, section_name(SECTION_CAPACITY), r, is_full,
                   (struct str){w.p, w.n});
    }
    if (!is_full)
        return false;
    say_room(a, &a->reason, most, r);
    phrase_add(&a->reason, STR(": it goes when there are fewer"));
    asked_wait(a, of_target(a, WAIT_QUEUE));
    if (r)
        a->out->batch_most = r->room.batch_most;
    return asked_hold(a, GATE_HOLD_CAPACITY, PASS_CAPACITY, r,
                      SECTION_CAPACITY);
}

/* The first that is for it: a file has the special ones before the general
 * ones. */
void gate_find_sla(struct asked *a)
{
    struct each i = each_of(a, SECTION_SLA);
    const struct rule *r = each_next(&i);
    struct phrase w;

    if (!r || r->sla.within_ms <= 0)
        return;
    a->out->sla_ms = r->sla.within_ms;
    a->out->sla_rule = r->name;
    w = phrase_in(a->out->sla, sizeof(a->out->sla));
    SAY(&w, STR("Expected "), str_head(a->e->to, 96), STR(" response within "));
    phrase_add_exactly(&w, r->sla.within_ms);
    asked_tell(a, section_name(SECTION_SLA), r, true, (struct str){w.p, w.n});
}
