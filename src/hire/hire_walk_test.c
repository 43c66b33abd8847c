/* What a delegation meets on its walk beside this room: whose work it is part
 * of where nobody says, a gate that drops it, and orders as roads give them. */
#include "test/lib/hire_stage.h"
#include "test/lib/walk_gate_stage.h"

static const struct task *parent_of(const char *agent, const char *given,
                                    const char *session, enum err expected)
{
    const struct task *t;
    struct why why;

    CHECK_INT(hire_parent(firm_hires(), str_of(agent), or_empty(given),
                          or_empty(session), &t, &why),
              expected);
    return t;
}

TEST(whose_work_it_is_part_of)
{
    struct told first, second;

    firm_open();
    CHECK(!parent_of("a", NULL, NULL, OK));
    first = sent((struct letter){.to = "a", .conversation = "s-1"});
    CHECK_STR(str_of(parent_of("A", NULL, NULL, OK)->id.text),
              first.task_id.text); /* its only one */
    CHECK(!parent_of("b", NULL, NULL, OK));
    CHECK_STR(str_of(parent_of("a", NULL, "other", OK)->id.text),
              first.task_id.text);
    second = sent((struct letter){.to = "a", .conversation = "s-2"});
    CHECK(!parent_of("a", NULL, NULL, ERR_BAD_REQUEST)); /* which? */
    CHECK(!parent_of("a", NULL, "other", ERR_BAD_REQUEST));
    CHECK_STR(str_of(parent_of("a", NULL, "s-1", OK)->id.text),
              first.task_id.text);
    CHECK_STR(str_of(parent_of("a", NULL, "s-2", OK)->id.text),
              second.task_id.text);
    CHECK_STR(str_of(parent_of("a", second.task_id.text, "s-1", OK)->id.text),
              second.task_id.text);
    CHECK(!parent_of("b", second.task_id.text, NULL, ERR_BAD_REQUEST));
    CHECK(!parent_of("a", "task_no", NULL, ERR_BAD_REQUEST));
    CHECK_INT(firm_end(&second.task_id, TASK_COMPLETED, "x"), OK);
    CHECK(!parent_of("a", second.task_id.text, NULL, ERR_BAD_REQUEST));
    CHECK_STR(str_of(parent_of("a", NULL, "s-2", OK)->id.text),
              first.task_id.text);
    firm_close();
}

/* A conversation's name is each user's own: where two have the same, the agent
 * has to say for whom it asks, or the one would pay for the other. */
TEST(a_session_of_two_users_is_nobodys)
{
    const struct task *t;
    struct told of_anna, of_berta;
    struct why why;

    firm_open();
    of_berta = sent(
        (struct letter){.from = "berta", .to = "a", .conversation = "c1"});
    CHECK_STR(str_of(parent_of("a", NULL, "c1", OK)->id.text),
              of_berta.task_id.text);
    of_anna = sent((struct letter){.to = "a", .conversation = "c1"});
    CHECK_INT(
        hire_parent(firm_hires(), STR("a"), STR(""), STR("c1"), &t, &why),
        ERR_BAD_REQUEST);
    CHECK_STR(str_of(why.text), "say parent_task_id: a works on 2 tasks");
    CHECK(!t);
    CHECK_STR(str_of(parent_of("a", of_berta.task_id.text, "c1", OK)->id.text),
              of_berta.task_id.text);
    fault_arm_at("hire.any_parent", 1);
    CHECK_STR(str_of(parent_of("a", NULL, "c1", OK)->id.text),
              of_anna.task_id.text);
    fault_arm(0);
    CHECK_INT(firm_end(&of_anna.task_id, TASK_COMPLETED, "x"), OK);
    CHECK_STR(str_of(parent_of("a", NULL, "c1", OK)->id.text),
              of_berta.task_id.text);
    firm_close();
}

/* Of a further turn that says the same again nothing is made; who asked hears
 * so, after the answer, and has to say that they have it. */
TEST(what_the_gate_drops_is_told_like_any_other_end)
{
    struct gotten first, again;

    firm_ground();
    stage_use_rules("{\"agents\": {\"a\": {}, \"b\": {}},"
                    " \"duplicates\": [{\"rule\": \"again\", \"match\":"
                    " {\"type\": \"MESSAGE\"}, \"within\": \"10m\"}]}");
    stage_start();
    firm_come();
    first = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&first.task, TASK_COMPLETED, "x"), OK);
    firm.n_heard = 0;
    again = hired((struct wanted){
        .by = "a", .to = "b", .id = "2", .task_id = first.task.text});
    CHECK(again.turn < 0);
    CHECK_INT(firm_row(&again.key), DELEGATION_READY);
    pass_ms(0);
    CHECK_INT(firm_told(&again.key), 1);
    CHECK_INT(firm.heard[0].status, TASK_DROPPED);
    CHECK_INT(stored(&first.task, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(hire_stats(firm_hires()).open, 0);
    firm_restart();
    firm.n_heard = 0;
    hire_agent_came(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK(firm_told(&first.key) == 1 && firm_told(&again.key) == 1);
    CHECK_INT(firm_had("a", "2"), OK);
    CHECK_INT(firm_had("a", "1"), OK);
    CHECK(hire_check(firm_hires()));
    stage_close_gate();
}
