/* A person gives a task to another agent: the first agent is free for the
 * next. */
#include "gate/gatekeeper.h"
#include "test/lib/delegation_stage.h"
#include "test/lib/walk_gate_stage.h"

static struct gate_rules *rules;

static void open_it(void)
{
    static const char text[] =
        "{ \"agents\": {\"echo\": {}, \"slow\": {}, \"Jay\": {}},"
        "  \"capacity\": [{\"rule\": \"room\", \"match\": {\"to\": \"slow\"},"
        "     \"queue\": 1, \"hold_for\": \"30d\"}],"
        "  \"sla\": [{\"rule\": \"soon\", \"match\": {\"to\": \"slow\"},"
        "     \"within\": \"5s\"}]}";
    struct gate_problems problems = {.n = 0};
    struct walk_opts opts;

    if (gate_rules_read(str_of(text), &rules, &problems) != OK)
        T_FAIL("%s", problems.text);
    stage.rules = rules;
    stage_ground();
    stage.agents[0].url = STR("echo:60000");
    stage.agents[1].url = STR("echo:60000");
    stage_start();
    opts = stage_walk_opts();
    opts.limits.timeout_ms = 3600 * 1000;
    walk_set(stage.walk, &opts);
}

static struct id envelope_to_slow(const char *reference)
{
    struct caller c = caller_named("Jay");
    struct msg *m = msg_new(&c, loop_wall_ms(&stage.loop));
    struct envelope *e = arena_alloc(&m->arena, sizeof(*e));
    struct told t = {0};
    char text[256];

    snprintf(text, sizeof(text),
             "{\"from\":\"Jay\",\"to\":\"slow\",\"type\":\"X\","
             "\"priority\":\"NORMAL\",\"reference\":\"%s\"}",
             reference);
    m->call.text = str_of(arena_strdup(&m->arena, str_of(text)));
    m->call.executor = STR("slow");
    m->call.priority = PRIORITY_NORMAL;
    m->call.metadata = m->call.source = STR("{}");
    *e = (struct envelope){.from = STR("Jay"),
                           .to = STR("slow"),
                           .type = STR("X"),
                           .reference = str_of(reference),
                           .priority = m->call.priority,
                           .at_ms = m->in.at_ms};
    m->call.envelope = e;
    walk_message(stage.walk, m, stage_on_done, &t);
    pass_ms(0);
    CHECK(t.is_back);
    CHECK_INT(t.err, OK);
    return t.task_id;
}

static void heard(void *ctx, enum err e, const struct why *why)
{
    (void)why;
    *(enum err *)ctx = e;
}

static enum err redirect_the_late_one(const char *agent)
{
    struct query q;
    enum err e = ERR_BUSY;

    query_init(&q, &escalation_table, 10);
    query_if(&q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    gatekeeper_reply(
        walk_gatekeeper(stage.walk),
        &(struct escalation_reply){.id = row_str(q.rows, ESCALATION_ID),
                                   .status = ESCALATION_REDIRECTED,
                                   .agent = str_of(agent),
                                   .by = STR("ann")},
        heard, &e);
    query_fini(&q);
    pass_ms(0);
    return e;
}

TEST(who_had_a_task_has_room_when_it_is_another_s)
{
    struct id a, b;

    open_it();
    a = envelope_to_slow("r1");
    b = envelope_to_slow("r2");
    CHECK_INT(status_of(&b), TASK_HELD);
    for (int i = 0; i < 6; i++)
        pass_ms(1000);
    CHECK_INT(status_of(&b), TASK_HELD);
    CHECK_INT(redirect_the_late_one("echo"), OK);
    pass_ms(0);
    CHECK(status_of(&a) != TASK_HELD);
    CHECK(status_of(&b) != TASK_HELD);
    CHECK_INT(tasks_of_agent(walk_tasks(stage.walk), STR("slow")), 1);
    CHECK_INT(tasks_of_agent(walk_tasks(stage.walk), STR("echo")), 1);
    stage_close();
}

TEST(nobody_is_handed_what_is_done_for_them)
{
    struct id root;
    struct gotten b, c;

    firm_ground();
    stage_use_rules(
        "{\"agents\": {\"a\": {}, \"b\": {}, \"c\": {}},"
        " \"sla\": [{\"rule\": \"soon\", \"match\": {\"to\": \"c\"},"
        " \"within\": \"5s\"}]}");
    stage_start();
    firm_come();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    c = hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    for (int i = 0; i < 6; i++)
        pass_ms(1000);
    CHECK_INT(redirect_the_late_one("a"), ERR_BAD_REQUEST);
    CHECK_INT(redirect_the_late_one("B"), ERR_BAD_REQUEST);
    CHECK_INT(redirect_the_late_one("d"), OK);
    CHECK_STR(task_find(walk_tasks(stage.walk), str_of(c.task.text))->agent,
              "d");
    stage_close_gate();
}
