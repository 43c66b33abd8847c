/* The rules of examples/em as a graph, without a message and with one. */
#include "test/lib/gate_stage.h"

#define RULES                                                                  \
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"                \
    "'safety_gates': [{'rule': 'gate', 'agent': 'Z', 'match': {'type':"        \
    " ['SUBMISSION', 'SUBMISSION_REQUEST']}}],"                                \
    "'dependencies': [{'rule': 'order', 'match': {'to': 'Rick', 'type':"       \
    " 'SUBMISSION_REQUEST'}, 'hold_for': '1h', 'after': [{'type':"             \
    " 'SUBMISSION', 'from': 'Jay'}, {'type': 'RESULT', 'from': 'Z',"           \
    " 'approved': true, 'within': '7d'}]},"                                    \
    "{'rule': 'other', 'match': {'to': 'Leroy', 'from': 'Jay'}, 'when': {'>':" \
    " [{'var': 'message.payload.n'}, 1]}, 'after': [{'type': 'NOTE', 'to':"    \
    " 'Z'}]}],"                                                                \
    "'freshness': [{'rule': 'fresh', 'match': {'to': 'Z'}, 'within': '1h'}]}"

enum { EDGES_MAX = 16 };

struct seen_edges {
    struct gate_edge list[EDGES_MAX];
    char words[EDGES_MAX][100], held[EDGES_MAX][100];
    size_t n;
};

static void see_edge(void *ctx, const struct gate_edge *e)
{
    struct seen_edges *s = ctx;

    CHECK(s->n < EDGES_MAX);
    snprintf(s->words[s->n], 100, "%.*s", STR_ARG(e->words));
    snprintf(s->held[s->n], 100, "%.*s", STR_ARG(e->held_words));
    s->list[s->n++] = *e;
}

static struct seen_edges graph_of(const char *rules, struct world *w,
                                  const struct envelope *e,
                                  struct gate_result *out)
{
    struct gate_rules *r = rules_of(rules);
    struct gate_view view = world_view(w);
    struct seen_edges s = {.n = 0};

    gate_graph(r, &view, e, NOW, out, &(struct gate_graph){see_edge, &s});
    /* Strings that the test did not lend may not be read after this. */
    for (size_t i = 0; i < s.n; i++)
        s.list[i].words = s.list[i].held_words = s.list[i].rule = STR("");
    gate_rules_free(r);
    return s;
}

static size_t n_blocking(const struct seen_edges *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->list[i].is_blocking;
    return n;
}

TEST(the_rules_alone_are_a_graph_in_words)
{
    struct world w = em_world();
    struct gate_result p;
    struct seen_edges s =
        graph_of(RULES, &w, &(struct envelope){.priority = 0}, &p);

    CHECK_INT(s.n, 5);
    CHECK_STR(str_of(s.words[0]), "Z is not ERROR or DEAD");
    CHECK_STR(str_of(s.held[0]), "SUBMISSION or SUBMISSION_REQUEST");
    CHECK_INT(s.list[0].kind, GATE_EDGE_SAFETY);
    CHECK_INT(s.list[0].state, GATE_EDGE_MET); /* Z is well for any sender */
    CHECK_STR(str_of(s.words[1]), "SUBMISSION from Jay");
    CHECK_STR(str_of(s.held[1]), "SUBMISSION_REQUEST to Rick");
    CHECK_STR(str_of(s.words[2]), "RESULT from Z that approves");
    CHECK_INT(s.list[2].hold_ms, HOUR);
    CHECK_INT(s.list[2].within_ms, 7 * DAY);
    CHECK_INT(s.list[1].state, GATE_EDGE_UNASKED); /* no reference */
    CHECK_STR(str_of(s.words[3]), "NOTE from anybody to Z");
    CHECK_STR(str_of(s.held[3]), "anything from Jay to Leroy");
    CHECK(s.list[3].has_condition && !s.list[2].has_condition);
    CHECK_STR(str_of(s.words[4]), "its target's data is 1 hour old at most");
    CHECK_INT(s.list[4].state, GATE_EDGE_UNASKED); /* no target */
    for (size_t i = 0; i < s.n; i++)
        CHECK(!s.list[i].is_for_it && !s.list[i].is_blocking);
    CHECK_INT(p.answer, 0);
}

TEST(a_reference_tells_what_has_happened_for_it)
{
    struct world w = em_world();
    struct gate_result p;
    struct seen_edges s;

    world_event(&w, "S-1", "Jay", "SUBMISSION", APPROVAL_NONE, NOW - MINUTE);
    world_event(&w, "S-1", "Z", "RESULT", DISAPPROVED, NOW - SECOND);
    s = graph_of(RULES, &w, &(struct envelope){.reference = STR("S-1")}, &p);
    CHECK_INT(s.list[1].state, GATE_EDGE_MET);
    CHECK_INT(s.list[1].event.at_ms, NOW - MINUTE);
    CHECK_STR(s.list[1].event.from, "Jay");
    CHECK_INT(s.list[2].state, GATE_EDGE_UNMET);
    CHECK_INT(s.list[2].event.approved, DISAPPROVED); /* so far */
    CHECK_INT(s.list[3].state, GATE_EDGE_UNMET);
    CHECK(!s.list[3].event.type.n);
    CHECK_INT(n_blocking(&s), 0);
}

TEST(what_blocks_a_message_is_what_decided_of_it)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION_REQUEST");
    struct gate_result p;
    struct seen_edges s = graph_of(RULES, &w, &e, &p);

    CHECK_INT(p.answer, GATE_HOLD_INPUT);
    CHECK(s.list[0].is_for_it && !s.list[0].is_blocking);
    CHECK(s.list[1].is_blocking && s.list[2].is_blocking);
    CHECK_INT(n_blocking(&s), 2);
    world_event(&w, "SUBM-C042-001", "Jay", "SUBMISSION", APPROVAL_NONE, NOW);
    s = graph_of(RULES, &w, &e, &p);
    CHECK(!s.list[1].is_blocking && s.list[2].is_blocking);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", APPROVED, NOW - 8 * DAY);
    s = graph_of(RULES, &w, &e, &p);
    CHECK(s.list[2].is_blocking); /* it was, and is too old */
    CHECK_INT(s.list[2].event.approved, APPROVED);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", APPROVED, NOW - 7 * DAY);
    s = graph_of(RULES, &w, &e, &p);
    CHECK_INT(p.answer, GATE_ROUTE);
    CHECK_INT(n_blocking(&s), 0);
    world_find(&w, "Z")->state = AGENT_DEAD;
    s = graph_of(RULES, &w, &e, &p);
    CHECK(s.list[0].is_blocking);
    CHECK_INT(n_blocking(&s), 1);
}

TEST(an_urgent_one_and_an_approved_one_are_not_blocked_by_what_they_overtake)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION_REQUEST");
    struct gate_result p;
    struct seen_edges s;

    e.is_approved = true;
    s = graph_of(RULES, &w, &e, &p);
    CHECK(s.list[1].state == GATE_EDGE_UNMET && !s.list[1].is_blocking);
    e.is_approved = false;
    e.priority = PRIORITY_URGENT;
    s = graph_of(RULES, &w, &e, &p);
    CHECK(s.list[1].state == GATE_EDGE_UNMET && !s.list[1].is_blocking);
}

TEST(those_of_its_rules_come_first_and_conditions_are_asked)
{
    struct world w = em_world();
    struct envelope e = message_of("Jay", "Leroy", "NOTE");
    struct gate_result p;
    struct seen_edges s;

    e.payload = STR("{\"n\": 2}");
    s = graph_of(RULES, &w, &e, &p);
    CHECK_STR(str_of(s.words[0]), "NOTE from anybody to Z");
    CHECK(s.list[0].is_for_it && s.list[0].is_blocking);
    CHECK(!s.list[1].is_for_it);
    e.payload = STR("{\"n\": 1}");
    s = graph_of(RULES, &w, &e, &p);
    CHECK(!s.list[0].is_for_it && !s.list[0].is_blocking);
    e = message_of("Jay", "Z", "REQUEST");
    s = graph_of(RULES, &w, &e, &p);
    CHECK_INT(s.list[0].kind, GATE_EDGE_FRESHNESS);
    CHECK(s.list[0].is_blocking); /* two hours old */
    world_find(&w, "Z")->data_at_ms = NOW - HOUR;
    s = graph_of(RULES, &w, &e, &p);
    CHECK(s.list[0].state == GATE_EDGE_MET && !s.list[0].is_blocking);
}

TEST(a_persons_message_is_not_for_rules_that_do_not_name_it)
{
    struct world w = em_world();
    struct envelope e = message_of("ann", "Leroy", "MESSAGE");
    struct gate_result p;
    struct seen_edges s;

    e.is_message = true;
    e.reference = STR("");
    s = graph_of("{'agents': {'Leroy': {}, 'Z': {}}, 'dependencies': [{'rule':"
                 "'a', 'match': {'to': 'Leroy'}, 'after': [{'type': 'NOTE',"
                 "'to': 'Z'}]}]}",
                 &w, &e, &p);
    CHECK_INT(s.n, 1);
    CHECK(!s.list[0].is_for_it && !s.list[0].is_blocking);
    CHECK_INT(s.list[0].state, GATE_EDGE_UNASKED);
}

TEST(no_rules_are_no_edges)
{
    struct world w = em_world();
    struct envelope e = seed_message();
    struct gate_result p;
    struct seen_edges s = graph_of("{}", &w, &e, &p);

    CHECK_INT(s.n, 0);
    CHECK_INT(p.answer, GATE_ROUTE);
}
