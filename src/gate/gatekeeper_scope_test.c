/* Events count in the scope of their requester, and events of the platform's
 * own agents count for every scope; and the limits of the history. */
#include "test/lib/gatekeeper_stage.h"

static const char rules[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}},"
    "'duplicates': [{'rule': 'again', 'match': {'type': 'REQUEST'}, 'same':"
    " ['type', 'reference'], 'within': '10m'}],"
    "'dependencies': [{'rule': 'order', 'match': {'to': 'Rick', 'type':"
    " 'ORDER'}, 'after': [{'type': 'RESULT', 'from': 'Z', 'approved': true}],"
    " 'hold_for': '2h'}]}";

static void open_all(void)
{
    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick")->queue_max = 1000;
    stage_open(rules);
}

TEST(whose_a_message_is)
{
    static const char *const expected[][2] = {
        {"ann", "user:ann"},  {"ann-bot", "user:ann"},
        {"carl", "org:acme"}, {"gone", "user:gone"},
        {"free", ""},         {"root", ""},
    };
    char scope[SCOPE_BYTES];

    open_all();
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        CHECK_STR(event_scope(stage.gatekeeper, str_of(expected[i][0]), scope),
                  expected[i][1]);
    stage_close();
}

/* Whether an approval requested by `who` releases an order of ann's. */
static bool lets_go(const char *who, const char *whose_order)
{
    static int n;
    struct sent order, asked;
    char reference[16];

    snprintf(reference, sizeof(reference), "R-%d", n++);
    order = sent(whose_order, "Rick", "ORDER", reference);
    CHECK_INT(status_of(&order.id), TASK_HELD);
    asked = sent(who, "Z", "CHECK", reference);
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":true}");
    return status_of(&order.id) == TASK_QUEUED;
}

TEST(a_reference_of_somebody_else_is_another_one)
{
    open_all();
    CHECK(lets_go("ann", "ann"));
    CHECK(lets_go("ann-bot", "ann"));
    CHECK(!lets_go("bob", "ann"));
    CHECK(!lets_go("carl", "ann"));
    CHECK(lets_go("dora", "carl"));
    CHECK(!lets_go("ann", "root")); /* nor for the platform */
    stage_close();
}

TEST(what_the_platform_says_counts_for_everybody)
{
    struct sent s;

    open_all();
    CHECK(lets_go("root", "ann"));
    CHECK(lets_go("free", "carl"));
    /* And for later messages, across a restart. */
    s = sent("free", "Z", "CHECK", "late");
    ends(&s.id, TASK_COMPLETED, "{\"approved\":true}");
    stage_stop();
    stage_start();
    s = sent("bob", "Rick", "ORDER", "late");
    CHECK_INT(s.gate_result.answer, GATE_ROUTE);
    stage_close();
}

TEST(a_repeat_is_one_within_its_scope)
{
    open_all();
    CHECK_INT(sent("ann", "Z", "REQUEST", "R").gate_result.answer, GATE_ROUTE);
    CHECK_INT(sent("bob", "Z", "REQUEST", "R").gate_result.answer, GATE_ROUTE);
    CHECK_INT(sent("ann-bot", "Z", "REQUEST", "R").gate_result.answer,
              GATE_DROP);
    stage_close();
}

TEST(a_reference_that_is_talked_about_a_lot_keeps_its_approval)
{
    struct sent s;

    open_all();
    s = sent("ann", "Z", "CHECK", "R");
    ends(&s.id, TASK_COMPLETED, "{\"approved\":true}");
    for (int i = 0; i < 3 * GATE_EVENTS_MAX; i++) {
        s = sent(i % 2 ? "ann" : "free", "Z", "NOTE", "R");
        CHECK_INT(s.gate_result.answer, GATE_ROUTE);
    }
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).events, 2 * GATE_EVENTS_MAX);
    s = sent("ann", "Rick", "ORDER", "R");
    CHECK_INT(s.gate_result.answer, GATE_ROUTE);
    stage_close();
}

TEST(however_many_rules_match_each_knows_a_repeat)
{
    static char text[16 * 1024];
    size_t n = 0;
    struct letter l = {.from = "Jay",
                       .to = "Z",
                       .type = "X",
                       .reference = "R",
                       .payload = "{\"n\":1}",
                       .priority = PRIORITY_NORMAL};

    stage_agent("Jay");
    stage_agent("Z");
    n += (size_t)snprintf(text, sizeof(text),
                          "{'agents': {'Jay': {}, 'Z': {}}, 'duplicates': [");
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "{'rule': 'd%d', 'same': ['payload'], 'within':"
                              " '10m'},",
                              i);
    snprintf(text + n, sizeof(text) - n,
             "{'rule': 'last', 'same': ['from', 'reference'], 'within':"
             " '10m'}]}");
    stage_open(text);
    CHECK_INT(send_letter(&l).gate_result.answer, GATE_ROUTE);
    CHECK_INT(rows_of(&event_table), 41);
    l.payload = "{\"n\":2}";
    CHECK_INT(send_letter(&l).gate_result.answer, GATE_DROP);
    stage_stop();
    stage_start();
    CHECK_INT(send_letter(&l).gate_result.answer, GATE_DROP);
    stage_close();
}
