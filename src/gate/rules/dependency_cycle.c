/* Dependencies that wait for each other, so that none of their messages would
 * ever go:
 *
 *     SUBMISSION waits for APPROVAL, and APPROVAL for SUBMISSION
 *
 * A rule leads to every dependency that could hold up the messages it waits
 * for: one for the same kind, sender and target, as far as both name them.
 * Conditions are ignored: rules that wait for each other only sometimes still
 * do. An agent's RESULT is held up only by a rule that holds everything sent to
 * that agent, since any of its answers will do.
 *
 * The search is depth first, over rules found by their kinds, each visited
 * once. It keeps its own stack, because a chain can be as long as there are
 * rules. */
#include "gate/rules/rules_reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

struct node {
    uint32_t nth;     /* index of the next kind to look up */
    uint32_t at, end; /* the candidates for the previous kind */
    uint32_t from;    /* the rule that led here */
    enum { NODE_NEW, NODE_OPEN, NODE_DONE } state;
};

struct kind {
    struct str type;
    uint32_t rule;
};

struct graph {
    const struct rule *rules;
    uint32_t n;
    struct node *nodes;
    struct kind *kinds; /* sorted */
    size_t n_kinds;
};

static bool lists_overlap(const struct strs *a, const struct strs *b,
                          bool has_case)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            if (has_case ? str_eq(a->list[i], b->list[k])
                         : str_eq_nocase(a->list[i], b->list[k]))
                return true;
    return !a->n || !b->n;
}

static bool holds_up(const struct rule *rule, const struct need *need)
{
    const struct match *m = &rule->match;

    if (match_has(need->type, ENVELOPE_RESULT))
        return need->type.n == 1 && need->from.n == 1 && !m->type.n &&
               !m->from.n && !m->priorities && !rule->when && m->to.n &&
               lists_overlap(&m->to, &need->from, false);
    return lists_overlap(&m->type, &need->type, true) &&
           lists_overlap(&m->from, &need->from, false) &&
           lists_overlap(&m->to, &need->to, false);
}

static bool rule_leads_to(const struct rule *a, const struct rule *b)
{
    for (size_t i = 0; i < a->after.n_needs; i++)
        if (holds_up(b, &a->after.needs[i]))
            return true;
    return false;
}

/* "A -> B -> A", beginning at the rule to which the last one leads back. */
static void name_cycle(struct reader *rd, const struct rule *rules,
                       const struct node *nodes, uint32_t last, uint32_t back)
{
    char text[480] = "";
    uint32_t chain[8], at = last;
    size_t n = 0, len, i;

    for (; at != back && n < 8; at = nodes[at].from)
        chain[n++] = at;
    len = (size_t)snprintf(text, sizeof(text), "%.*s",
                           STR_ARG(str_head(rules[back].name, 40)));
    if (at != back)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " -> ...");
    for (i = n; i-- > 0;)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " -> %.*s",
                                STR_ARG(str_head(rules[chain[i]].name, 40)));
    snprintf(text + len, sizeof(text) - len, " -> %.*s",
             STR_ARG(str_head(rules[back].name, 40)));
    if (last == back)
        problem_add(rd, rules[back].at,
                    "it waits for messages that it holds up itself (%s); use "
                    "\"from\" or \"to\" to say which ones it waits for",
                    text);
    else
        problem_add(rd, rules[back].at,
                    "dependencies wait for each other: %s; remove one of them",
                    text);
}

static int compare_kinds(const void *pa, const void *pb)
{
    const struct kind *a = pa, *b = pb;
    int order = str_cmp(a->type, b->type);

    return order ? order : (a->rule > b->rule) - (a->rule < b->rule);
}

static void add_kind(struct graph *g, struct str type, uint32_t rule)
{
    if (g->kinds)
        g->kinds[g->n_kinds] = (struct kind){type, rule};
    g->n_kinds++;
}

/* Enter every rule under each of its kinds, and a rule for any kind under the
 * empty one, which no message has. Without g->kinds they are only counted. */
static void add_kinds(struct graph *g)
{
    g->n_kinds = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct strs *types = &g->rules[i].match.type;

        for (size_t k = 0; k < types->n; k++)
            add_kind(g, types->list[k], i);
        if (!types->n)
            add_kind(g, STR(""), i);
    }
}

static size_t first_of_kind(const struct graph *g, struct str type)
{
    size_t from = 0, to = g->n_kinds;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (str_cmp(g->kinds[mid].type, type) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* The nth kind that a rule waits for, after the empty one. False: no more. */
static bool nth_kind(const struct rule *rule, uint32_t nth, struct str *out)
{
    *out = STR("");
    if (nth-- == 0)
        return true;
    for (size_t i = 0; i < rule->after.n_needs; i++) {
        const struct strs *types = &rule->after.needs[i].type;

        if (nth < types->n) {
            *out = types->list[nth];
            return true;
        }
        nth -= (uint32_t)types->n;
    }
    return false;
}

/* The next rule that this one may lead to; g->n: none. */
static uint32_t next_candidate(struct graph *g, uint32_t at)
{
    struct node *node = &g->nodes[at];
    struct str type;

    for (;;) {
        if (node->at < node->end)
            return g->kinds[node->at++].rule;
        if (!nth_kind(&g->rules[at], node->nth++, &type))
            return g->n;
        node->at = node->end = (uint32_t)first_of_kind(g, type);
        while (node->end < g->n_kinds && str_eq(g->kinds[node->end].type, type))
            node->end++;
    }
}

static void walk_from(struct reader *rd, struct graph *g, uint32_t root)
{
    struct node *nodes = g->nodes;
    uint32_t at = root;

    nodes[root].state = NODE_OPEN;
    nodes[root].from = UINT32_MAX;
    while (at != UINT32_MAX && !problem_is_full(rd)) {
        uint32_t to = next_candidate(g, at);

        if (to == g->n) {
            nodes[at].state = NODE_DONE;
            at = nodes[at].from;
        } else if (nodes[to].state != NODE_DONE &&
                   rule_leads_to(&g->rules[at], &g->rules[to])) {
            if (nodes[to].state == NODE_OPEN) {
                name_cycle(rd, g->rules, nodes, at, to);
            } else {
                nodes[to].state = NODE_OPEN;
                nodes[to].from = at;
                at = to;
            }
        }
    }
}

void find_cycles(struct reader *rd)
{
    const struct gate_rules *r = rd->rules;
    struct graph g = {
        .rules = r->rules + r->first[SECTION_DEPENDENCIES],
        .n = (uint32_t)(r->first[SECTION_DEPENDENCIES + 1] -
                        r->first[SECTION_DEPENDENCIES]),
    };

    if (!g.n)
        return;
    add_kinds(&g);
    if (!FAULT("gate.cycles")) {
        g.nodes = calloc(g.n, sizeof(*g.nodes));
        g.kinds = calloc(g.n_kinds, sizeof(*g.kinds));
    }
    if (g.nodes && g.kinds) {
        add_kinds(&g);
        qsort(g.kinds, g.n_kinds, sizeof(*g.kinds), compare_kinds);
        for (uint32_t i = 0; i < g.n && !problem_is_full(rd); i++)
            if (g.nodes[i].state == NODE_NEW)
                walk_from(rd, &g, i);
    } else {
        rd->is_out_of_memory = true;
    }
    free(g.kinds);
    free(g.nodes);
}
