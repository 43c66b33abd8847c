/* The rules as a graph. gate_decide itself says which rule blocks a message, so
 * the graph never contradicts the decision. Each edge is then judged with the
 * functions of dependencies.c and safety_gates.c.
 *
 * Edges of rules that apply to the message come first, so that a caller that
 * draws only a limited number has them. */
#include "gate/rules/evaluation.h"

#include <stdalign.h>

static const enum section edged[] = {SECTION_SAFETY_GATES, SECTION_DEPENDENCIES,
                                     SECTION_FRESHNESS};
enum { N_EDGED = sizeof(edged) / sizeof(*edged) };

struct drawing {
    struct evaluation ev;
    bool has_message; /* false: only events and agents are judged */
    const struct gate_graph *to;
};

/* "SUBMISSION_REQUEST from Jay to Rick". */
static void say_held_messages(struct phrase *w, const struct match *m)
{
    phrase_add_list(w, m->type, STR("anything"));
    if (m->from.n) {
        phrase_add(w, STR(" from "));
        phrase_add_list(w, m->from, STR(""));
    }
    if (m->to.n) {
        phrase_add(w, STR(" to "));
        phrase_add_list(w, m->to, STR(""));
    }
}

/* "Z is not DEAD or ERROR". */
static void say_gate_states(struct phrase *w, const struct rule *r)
{
    bool is_next = false;

    SAY(w, r->gate.agent, STR(" is not "));
    for (int s = AGENT_ACTIVE; s <= AGENT_DEAD; s++)
        if (r->gate.states >> s & 1) {
            SAY(w, is_next ? STR(" or ") : STR(""),
                agent_state_name((enum agent_state)s));
            is_next = true;
        }
}

/* Judge an edge that depends on an agent's state or data. */
static void judge_agent_edge(struct drawing *d, const struct rule *r,
                             struct gate_edge *edge)
{
    struct str name = edge->from.n ? edge->from.list[0] : d->ev.e->to;
    struct gate_agent of;
    bool is_met;

    if (!name.n)
        return; /* the target's, and there is no target */
    if (edge->from.n)
        eval_agent(&d->ev, name, &of);
    else
        of = d->ev.target;
    if (r->section == SECTION_SAFETY_GATES)
        is_met = !of.is_foreign && !(r->gate.states >> of.state & 1);
    else
        is_met = of.data_at_ms &&
                 eval_age(&d->ev, of.data_at_ms) <= r->fresh.within_ms;
    edge->state = is_met ? GATE_EDGE_MET : GATE_EDGE_UNMET;
}

static void judge_need_edge(struct drawing *d, const struct need *n,
                            struct gate_edge *edge)
{
    const struct gate_event *v;

    if (!d->ev.e->reference.n)
        return; /* no reference: unknown */
    v = need_newest(&d->ev, n);
    if (v)
        edge->event = *v;
    edge->state = need_is_met(&d->ev, n, v) ? GATE_EDGE_MET : GATE_EDGE_UNMET;
}

static void send_edge(struct drawing *d, const struct rule *r,
                      struct gate_edge *e)
{
    const struct gate_result *p = d->ev.out;

    e->is_for_it = d->has_message && rule_is_for(&d->ev, r) &&
                   rule_holds(&d->ev, r) != HOLDS_NO;
    e->is_blocking = e->is_for_it && e->state == GATE_EDGE_UNMET &&
                     gate_result_is_hold(p->answer) && str_eq(p->rule, r->name);
    d->to->edge(d->to->ctx, e);
}

/* The words live for the duration of the callback. */
static void draw_needs(struct drawing *d, const struct rule *r,
                       struct gate_edge edge)
{
    char text[WHY_MAX];

    for (size_t i = 0; i < r->after.n_needs; i++) {
        const struct need *n = &r->after.needs[i];
        struct phrase w = phrase_in(text, sizeof(text));
        struct gate_edge one = edge;

        one.kind = GATE_EDGE_DEPENDENCY;
        one.from = n->from;
        one.said = n->type;
        one.said_to = n->to;
        one.wants = n->wants;
        one.within_ms = n->within_ms;
        need_say(&w, n);
        one.words = (struct str){w.p, w.n};
        judge_need_edge(d, n, &one);
        send_edge(d, r, &one);
    }
}

static void draw_agent(struct drawing *d, const struct rule *r,
                       struct gate_edge edge)
{
    bool is_gate = r->section == SECTION_SAFETY_GATES;
    struct str name = is_gate ? r->gate.agent : r->fresh.agent;
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    edge.from = (struct strs){&name, name.n > 0};
    if (is_gate) {
        edge.kind = GATE_EDGE_SAFETY;
        edge.states = r->gate.states;
        say_gate_states(&w, r);
    } else {
        edge.kind = GATE_EDGE_FRESHNESS;
        edge.within_ms = r->fresh.within_ms;
        SAY(&w, name.n ? name : STR("its target"), STR("'s data is "));
        phrase_add_exactly(&w, r->fresh.within_ms);
        phrase_add(&w, STR(" old at most"));
    }
    edge.words = (struct str){w.p, w.n};
    judge_agent_edge(d, r, &edge);
    send_edge(d, r, &edge);
}

static void draw_rule(struct drawing *d, const struct rule *r)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));
    struct gate_edge edge = {.rule = r->name,
                             .sender = r->match.from,
                             .to = r->match.to,
                             .type = r->match.type,
                             .has_condition = r->when != NULL,
                             .hold_ms = r->hold_ms};

    say_held_messages(&w, &r->match);
    edge.held_words = (struct str){w.p, w.n};
    if (r->section == SECTION_DEPENDENCIES)
        draw_needs(d, r, edge);
    else
        draw_agent(d, r, edge);
}

/* Draw the rules that apply to the message, or the others. */
static void draw_rules(struct drawing *d, bool of_it)
{
    const struct gate_rules *r = d->ev.rules;

    for (size_t s = 0; s < N_EDGED; s++)
        for (size_t i = r->first[edged[s]]; i < r->first[edged[s] + 1]; i++)
            if ((d->has_message && rule_is_for(&d->ev, &r->rules[i])) == of_it)
                draw_rule(d, &r->rules[i]);
}

void gate_graph(const struct gate_rules *r, const struct gate_view *v,
                const struct envelope *e, int64_t now_ms,
                struct gate_result *out, const struct gate_graph *to)
{
    alignas(max_align_t) char bytes[SCRATCH_BYTES];
    struct gate_event events[GATE_EVENTS_MAX];
    struct arena scratch;
    struct drawing d = {.ev = {.rules = r,
                               .view = v,
                               .e = e,
                               .now_ms = now_ms,
                               .out = out,
                               .events = events,
                               .scratch = &scratch,
                               .room = EVAL_ROOM},
                        .has_message = e->type.n > 0,
                        .to = to};

    *out = (struct gate_result){.priority = e->priority};
    if (d.has_message)
        gate_decide(r, v, e, now_ms, out, NULL);
    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    rules_pick(&d.ev.pick, r, e);
    d.ev.pick.priority = out->priority;
    eval_target(&d.ev);
    if (d.has_message)
        draw_rules(&d, true);
    draw_rules(&d, false);
    arena_fini(&scratch);
}
