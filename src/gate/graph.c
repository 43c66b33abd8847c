/* The rules as a graph. What blocks a message is asked of gate_decide itself,
 * so that what is drawn never says otherwise than what was decided; an edge is
 * then looked at by the same questions that needs.c and gates.c ask.
 *
 * Those of rules that are for the message come first, so that whoever draws
 * only so many edges has them. */
#include "gate/asked.h"

#include <stdalign.h>

static const enum section edged[] = {SECTION_SAFETY_GATES, SECTION_DEPENDENCIES,
                                     SECTION_FRESHNESS};
enum { N_EDGED = sizeof(edged) / sizeof(*edged) };

struct drawing {
    struct asked a;
    bool has_message; /* else only what happened, and how agents are */
    const struct gate_graph *to;
};

/* "SUBMISSION_REQUEST from Jay to Rick". */
static void say_held(struct phrase *w, const struct match *m)
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
static void say_states(struct phrase *w, const struct rule *r)
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

/* Whether it is as the edge wants it. */
static void judge_agent(struct drawing *d, const struct rule *r,
                        struct gate_edge *edge)
{
    struct str name = edge->from.n ? edge->from.list[0] : d->a.e->to;
    struct gate_agent of;
    bool is_met;

    if (!name.n)
        return; /* the target's, and there is none */
    if (edge->from.n)
        asked_agent(&d->a, name, &of);
    else
        of = d->a.target;
    if (r->section == SECTION_SAFETY_GATES)
        is_met = !of.is_foreign && !(r->gate.states >> of.state & 1);
    else
        is_met = of.data_at_ms &&
                 asked_age(&d->a, of.data_at_ms) <= r->fresh.within_ms;
    edge->state = is_met ? GATE_EDGE_MET : GATE_EDGE_UNMET;
}

static void judge_need(struct drawing *d, const struct need *n,
                       struct gate_edge *edge)
{
    const struct gate_event *v;

    if (!d->a.e->reference.n)
        return; /* nobody can tell */
    v = need_newest(&d->a, n);
    if (v)
        edge->event = *v;
    edge->state = need_is_met(&d->a, n, v) ? GATE_EDGE_MET : GATE_EDGE_UNMET;
}

static void tell(struct drawing *d, const struct rule *r, struct gate_edge *e)
{
    const struct pass *p = d->a.out;

    e->is_for_it = d->has_message && rule_is_for(&d->a, r) &&
                   rule_holds(&d->a, r) != HOLDS_NO;
    e->is_blocking = e->is_for_it && e->state == GATE_EDGE_UNMET &&
                     pass_is_hold(p->answer) && str_eq(p->rule, r->name);
    d->to->edge(d->to->ctx, e);
}

/* The words live as long as the call. */
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
        judge_need(d, n, &one);
        tell(d, r, &one);
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
        say_states(&w, r);
    } else {
        edge.kind = GATE_EDGE_FRESHNESS;
        edge.within_ms = r->fresh.within_ms;
        SAY(&w, name.n ? name : STR("its target"), STR("'s data is "));
        phrase_add_exactly(&w, r->fresh.within_ms);
        phrase_add(&w, STR(" old at most"));
    }
    edge.words = (struct str){w.p, w.n};
    judge_agent(d, r, &edge);
    tell(d, r, &edge);
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

    say_held(&w, &r->match);
    edge.held_words = (struct str){w.p, w.n};
    if (r->section == SECTION_DEPENDENCIES)
        draw_needs(d, r, edge);
    else
        draw_agent(d, r, edge);
}

/* Those that are for it, or those that are not. */
static void draw(struct drawing *d, bool of_it)
{
    const struct gate_rules *r = d->a.rules;

    for (size_t s = 0; s < N_EDGED; s++)
        for (size_t i = r->first[edged[s]]; i < r->first[edged[s] + 1]; i++)
            if ((d->has_message && rule_is_for(&d->a, &r->rules[i])) == of_it)
                draw_rule(d, &r->rules[i]);
}

void gate_graph(const struct gate_rules *r, const struct gate_view *v,
                const struct envelope *e, int64_t now_ms, struct pass *out,
                const struct gate_graph *to)
{
    alignas(max_align_t) char bytes[SCRATCH_BYTES];
    struct gate_event events[GATE_EVENTS_MAX];
    struct arena scratch;
    struct drawing d = {.a = {.rules = r,
                              .view = v,
                              .e = e,
                              .now_ms = now_ms,
                              .out = out,
                              .events = events,
                              .scratch = &scratch,
                              .room = ASKED_ROOM},
                        .has_message = e->type.n > 0,
                        .to = to};

    *out = (struct pass){.priority = e->priority};
    if (d.has_message)
        gate_decide(r, v, e, now_ms, out, NULL);
    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    rules_pick(&d.a.pick, r, e);
    d.a.pick.priority = out->priority;
    asked_target(&d.a);
    if (d.has_message)
        draw(&d, true);
    draw(&d, false);
    arena_fini(&scratch);
}
