/* The skill that is sent to the agent is the skill that is paid for. */
#include "test/lib/ledger_stage.h"
#include "test/lib/walk_agents.h"

#define CARD(rest)                                                             \
    "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:\"," rest \
    "}"
#define SKILL(id, price)                \
    "{\"id\":\"" id "\",\"name\":\"" id \
    "\",\"pricing\":{\"amount_micros\":" price "}}"
#define BOTH "\"skills\":[" SKILL("cheap", "100") "," SKILL("dear", "5000") "]"

static void open_with_skills(void)
{
    money_open();
    stage_put("carl", "two", CARD(BOTH));
    stage_put("carl", "one", CARD("\"skills\":[" SKILL("only", "700") "]"));
    stage_put("carl", "own", CARD("\"pricing\":{\"amount_micros\":30}," BOTH));
    stage_put("carl", "free",
              CARD("\"skills\":[{\"id\":\"gift\",\"name\":\"gift\"}]"));
    stage_put("carl", "any", CARD("\"pricing\":{\"amount_micros\":40}"));
    give("p1", "anna", 100000);
}

/* The message's cost; the task's row has the skill. */
static int64_t costs(struct letter l, const char *skill)
{
    int64_t before = balance("user:anna");
    struct told t = sent(l);
    struct query q;

    if (t.err)
        T_FAIL("%s: %s", l.to, t.why.text);
    query_init(&q, &task_table, 2);
    query_if(&q, TASK_ID, IS, value_text(str_of(t.task_id.text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    CHECK_STR(row_str(q.rows, TASK_SKILL), skill);
    query_fini(&q);
    pass_ms(10);
    money_check();
    return before - balance("user:anna");
}

TEST(the_skill_that_is_run_is_the_one_that_is_paid_for)
{
    open_with_skills();
    CHECK_INT(costs((struct letter){.to = "two", .skill = "cheap"}, "cheap"),
              100);
    CHECK_INT(costs((struct letter){.to = "two"}, "dear"), 5000);
    CHECK_INT(costs((struct letter){.to = "one"}, "only"), 700);
    CHECK_INT(costs((struct letter){.to = "own"}, ""), 30);
    CHECK_INT(costs((struct letter){.to = "own", .skill = "dear"}, "dear"),
              5000);
    CHECK_INT(costs((struct letter){.to = "free"}, ""), 0);
    CHECK_INT(costs((struct letter){.to = "any", .skill = "x"}, "x"), 40);
    stage_close();
}

TEST(whoever_finds_the_agent_otherwise_pays_as_well)
{
    open_with_skills();
    CHECK_INT(
        costs((struct letter){.is_plain = true, .text = "/two go"}, "dear"),
        5000);
    CHECK_INT(costs((struct letter){.to = "one", .conversation = "c"}, "only"),
              700);
    CHECK_INT(
        costs((struct letter){.is_plain = true, .conversation = "c"}, "only"),
        700);
    stage_close();
}

TEST(a_further_turn_runs_the_same_skill_unless_it_says_another)
{
    struct told t;

    open_with_skills();
    t = sent((struct letter){.to = "two", .skill = "cheap"});
    CHECK_INT(t.err, OK);
    pass_ms(10);
    CHECK_INT(
        costs((struct letter){.is_plain = true, .task_id = t.task_id.text},
              "cheap"),
        100);
    CHECK_INT(costs((struct letter){.is_plain = true,
                                    .task_id = t.task_id.text,
                                    .skill = "dear"},
                    "dear"),
              5000);
    /* The skill was removed. */
    stage_put("carl", "two",
              CARD("\"skills\":[" SKILL("new", "9") "," SKILL("old", "8") "]"));
    CHECK_INT(
        costs((struct letter){.is_plain = true, .task_id = t.task_id.text},
              "new"),
        9);
    stage_close();
}

TEST(a_skill_that_the_agent_does_not_have_is_refused)
{
    struct told t;

    open_with_skills();
    t = sent((struct letter){.to = "two", .skill = "DEAR"});
    CHECK_INT(t.err, ERR_BAD_REQUEST);
    CHECK_STR(str_of(t.why.text),
              "two has no skill \"DEAR\"; it has cheap, dear");
    t = sent((struct letter){.to = "free", .skill = "nonsense"});
    CHECK_INT(t.err, ERR_BAD_REQUEST);
    t = sent((struct letter){.is_plain = true, .text = "/two x", .skill = "y"});
    CHECK_INT(t.err, ERR_BAD_REQUEST);
    CHECK_INT(balance("user:anna"), 100000);
    stage_close();
}
