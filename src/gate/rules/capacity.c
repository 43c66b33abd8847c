/* The target: dead, in error, or full; and when its answer is due. */
#include "gate/rules/evaluation.h"

static void find_view_agent(struct evaluation *ev, struct str name,
                            struct gate_agent *out)
{
    *out = (struct gate_agent){.name = name};
    if (!ev->view->agent(ev->view->ctx, name, out))
        out->is_known = false;
    out->name = name;
    if (!out->is_known || out->state < AGENT_ACTIVE || out->state > AGENT_DEAD)
        out->state = AGENT_DEAD;
}

void eval_agent(struct evaluation *ev, struct str name, struct gate_agent *out)
{
    find_view_agent(ev, name, out);
    if (out->is_foreign)
        *out = (struct gate_agent){
            .name = name, .state = AGENT_DEAD, .is_foreign = true};
}

void eval_target(struct evaluation *ev)
{
    find_view_agent(ev, ev->e->to, &ev->target);
}

static void trace_target(struct evaluation *ev, bool has_fired)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    if (!ev->trace)
        return;
    SAY(&w, ev->e->to, STR(" is "),
        ev->target.is_known ? agent_state_name(ev->target.state)
                            : STR("not known"));
    eval_trace(ev, STR("target"), NULL, has_fired, (struct str){w.p, w.n});
}

static struct wait_key target_key(const struct evaluation *ev,
                                  enum wait_kind kind)
{
    return (struct wait_key){.kind = kind, .name = ev->e->to};
}

/* A person's message to an agent that is dead is rejected, or waits, by the
 * agent's own settings. */
bool gate_is_target_dead(struct evaluation *ev)
{
    bool is_dead = ev->target.state == AGENT_DEAD && !ev->e->is_message;

    trace_target(ev, is_dead);
    if (!is_dead)
        return false;
    if (ev->target.is_known)
        SAY(&ev->reason, ev->e->to, STR(" is DEAD: "));
    else
        SAY(&ev->reason, ev->e->to, STR(" is not known here: "));
    if (ev->e->is_approved) {
        phrase_add(&ev->reason,
                   STR("approved, it goes when the agent is back"));
        eval_wait(ev, target_key(ev, WAIT_AGENT));
        return eval_hold(ev, GATE_HOLD_CAPACITY, PASS_TARGET_DEAD, NULL,
                         SECTION_CAPACITY);
    }
    phrase_add(&ev->reason, STR("bring it back, send it to another, or reject "
                                "it"));
    return eval_answer(ev, GATE_ESCALATE, PASS_TARGET_DEAD, NULL);
}

bool gate_is_target_in_error(struct evaluation *ev)
{
    bool is_ill = ev->target.state == AGENT_ERROR && !ev->target.may_try;

    if (!is_ill)
        return false;
    SAY(&ev->reason, ev->e->to,
        STR(" is ERROR: it waits until the agent is well, or may be tried "
            "again"));
    trace_target(ev, true);
    eval_wait(ev, target_key(ev, WAIT_AGENT));
    return eval_hold(ev, GATE_HOLD_CAPACITY, PASS_TARGET_ERROR, NULL,
                     SECTION_CAPACITY);
}

/* "12 tasks wait for Rick, which takes no more than 10 at a time (depth)". */
static void say_room(struct evaluation *ev, struct phrase *w, int64_t most,
                     const struct rule *r)
{
    phrase_add_int(w, ev->target.queue);
    SAY(w,
        ev->target.queue == 1 ? STR(" task waits for ")
                              : STR(" tasks wait for "),
        ev->e->to, STR(", which takes no more than "));
    phrase_add_int(w, most);
    phrase_add(w, STR(" at a time"));
    if (r)
        SAY(w, STR(" ("), r->name, STR(")"));
}

/* The first matching rule decides, else the card. */
bool gate_is_target_full(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_CAPACITY);
    const struct rule *r = each_next(&i);
    int64_t most =
        r && r->room.queue > 0 ? r->room.queue : ev->target.queue_max;
    bool is_full = ev->target.is_known && most > 0 && ev->target.queue >= most;

    if (ev->trace && (r || is_full)) {
        char text[WHY_MAX];
        struct phrase w = phrase_in(text, sizeof(text));

        say_room(ev, &w, most, NULL);
        eval_trace(ev, section_name(SECTION_CAPACITY), r, is_full,
                   (struct str){w.p, w.n});
    }
    if (!is_full)
        return false;
    say_room(ev, &ev->reason, most, r);
    phrase_add(&ev->reason, STR(": it goes when there are fewer"));
    eval_wait(ev, target_key(ev, WAIT_QUEUE));
    if (r)
        ev->out->batch_most = r->room.batch_most;
    return eval_hold(ev, GATE_HOLD_CAPACITY, PASS_CAPACITY, r,
                     SECTION_CAPACITY);
}

/* The first matching rule: a file has special rules before general ones. */
void gate_find_sla(struct evaluation *ev)
{
    struct each i = each_of(ev, SECTION_SLA);
    const struct rule *r = each_next(&i);
    struct phrase w;

    if (!r || r->sla.within_ms <= 0)
        return;
    ev->out->sla_ms = r->sla.within_ms;
    ev->out->sla_rule = r->name;
    w = phrase_in(ev->out->sla, sizeof(ev->out->sla));
    SAY(&w, STR("Expected "), str_head(ev->e->to, 96),
        STR(" response within "));
    phrase_add_exactly(&w, r->sla.within_ms);
    eval_trace(ev, section_name(SECTION_SLA), r, true, (struct str){w.p, w.n});
}
