/* A message that no agent gets, with the real modules: the record it leaves,
 * and how many records one user can leave. */
#include "choose/routing.h"
#include "test/lib/walk_stage.h"

#define HOUR_MS (INT64_C(3600) * 1000)

static void open_with_a_cook(void)
{
    stage_ground();
    stage.agents[0] = (struct agent){.name = STR("cook"),
                                     .url = STR("echo:"),
                                     .description = STR("bread recipes")};
    stage.agents[1] = (struct agent){.name = STR("engineer"),
                                     .url = STR("echo:"),
                                     .description = STR("debugging programs")};
    stage.n_agents = 2;
    stage.routing.choose.is_auto = false;
    stage.routing.choose.threshold = 0.15;
    stage.routing.choose.text_blend = 1;
    stage_start();
}

static const struct letter nonsense = {.text = "zzz", .is_plain = true};

static size_t n_rows(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 1000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static size_t n_refused_by(const char *name)
{
    struct query q;
    size_t n;

    query_init(&q, &decision_table, 1000);
    query_if(&q, DECISION_REQUESTER, IS, value_text(str_of(name)));
    query_if(&q, DECISION_LAYER, IS, value_int(LAYER_NONE));
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

TEST(a_refusal_leaves_a_decision_and_an_entry_and_nothing_else)
{
    struct letter l = nonsense;
    struct decision d, again;
    struct arena a;
    struct query q;
    struct told t;

    open_with_a_cook();
    arena_init(&a, 1 << 20);
    l.conversation = "c";
    t = sent(l);
    CHECK_INT(t.err, ERR_NO_ROUTE);
    query_init(&q, &decision_table, 2);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    CHECK_INT(decision_from_row(&a, q.rows, &d), OK);
    CHECK_STR(str_of(t.decision_id.text), d.id.text);
    CHECK_INT(d.layer, LAYER_NONE);
    CHECK_STR(d.text, "zzz");
    CHECK_STR(d.conversation_id, "c");
    CHECK_STR(d.reason, t.why.text);
    CHECK(!d.agent.n && !d.task_id.text[0] && d.n_candidates == 2);
    /* The job need not look for a task that never existed. */
    CHECK(!row_is_null(q.rows, DECISION_FOLLOWED));
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &again), ERR_NO_ROUTE);
    CHECK(str_eq(d.reason, again.reason) && d.band == again.band);
    query_fini(&q);
    CHECK_INT(told_in_feed("message.refused", NULL), 1);
    CHECK_INT(n_rows(&task_table), 0);
    CHECK_INT(n_rows(&conversation_table), 0);
    CHECK_INT(router_stats(stage.router).by_layer[LAYER_NONE], 1);
    arena_fini(&a);
    stage_close();
}

TEST(a_name_that_no_agent_has_leaves_a_decision_too)
{
    struct told t;

    open_with_a_cook();
    t = sent((struct letter){.to = "kook"});
    CHECK_INT(t.err, ERR_AGENT_NOT_FOUND);
    CHECK(t.decision_id.text[0]);
    CHECK_INT(n_refused_by("anna"), 1);
    CHECK_INT(told_in_feed("message.refused", NULL), 1);
    CHECK_INT(n_rows(&task_table), 0);
    /* The control: a further turn of a removed task is not routed. */
    t = sent((struct letter){.task_id = "task_00000000000000000000000000"});
    CHECK_INT(t.err, ERR_NOT_FOUND);
    CHECK_INT(n_refused_by("anna"), 1);
    stage_close();
}

TEST(the_key_of_a_refused_message_is_free)
{
    struct letter l = {.text = "zzz", .key = "k", .is_plain = true};
    struct told t;

    open_with_a_cook();
    CHECK_INT(sent(l).err, ERR_NO_ROUTE);
    CHECK_INT(sent(l).err, ERR_NO_ROUTE); /* routed once more */
    CHECK_INT(n_refused_by("anna"), 2);
    l.text = "bread recipes";
    t = sent(l);
    CHECK(t.err == OK && !t.is_repeat);
    /* And the repeat of one that was accepted is answered by its task, even
     * where it would be refused now. */
    stage.routing.choose.threshold = 1;
    router_set(stage.router, &stage.routing);
    t = sent(l);
    CHECK(t.err == OK && t.is_repeat);
    CHECK_INT(n_refused_by("anna"), 2);
    CHECK_INT(told_in_feed("message.refused", NULL), 2);
    stage_close();
}

TEST(those_behind_a_refused_message_go_on)
{
    struct letter l = {.text = "zzz", .conversation = "c", .is_plain = true};
    struct told t[3];

    open_with_a_cook();
    CHECK(post(l, &t[0]));
    l.text = "bread recipes";
    CHECK(post(l, &t[1]));
    l.text = "zzz";
    CHECK(post(l, &t[2]));
    pass_ms(0);
    CHECK(t[0].is_back && t[0].err == ERR_NO_ROUTE);
    CHECK(t[1].is_back && t[1].err == OK);
    CHECK(t[2].is_back && t[2].err == OK); /* the conversation has the cook */
    CHECK_INT(router_stats(stage.router).waiting, 0);
    stage_close();
}

TEST(one_user_leaves_so_many_refusals_an_hour_and_others_leave_theirs)
{
    struct letter l = nonsense;
    struct told t;

    open_with_a_cook();
    for (int i = 0; i < ROUTE_REFUSALS_PER_HOUR; i++)
        CHECK(sent(l).decision_id.text[0]);
    t = sent(l);
    CHECK_INT(t.err, ERR_NO_ROUTE);
    CHECK(!t.decision_id.text[0]);
    CHECK_INT(n_refused_by("anna"), ROUTE_REFUSALS_PER_HOUR);
    CHECK_INT(told_in_feed("message.refused", NULL), ROUTE_REFUSALS_PER_HOUR);
    CHECK_INT(router_stats(stage.router).refusals_unrecorded_total, 1);
    CHECK_INT(router_stats(stage.router).no_route_total,
              ROUTE_REFUSALS_PER_HOUR + 1);
    /* A delivered message is not counted, and is recorded as usual. */
    l.text = "bread recipes";
    CHECK_INT(sent(l).err, OK);
    l = nonsense;
    l.from = "ben";
    CHECK(sent(l).decision_id.text[0]);
    CHECK_INT(n_refused_by("ben"), 1);
    pass_ms(HOUR_MS);
    CHECK(sent(nonsense).decision_id.text[0]);
    CHECK_INT(n_refused_by("anna"), ROUTE_REFUSALS_PER_HOUR + 1);
    stage_close();
}

TEST(old_refusals_go_with_other_decisions)
{
    struct learning_keep keep = {.first_decision = 1, .limit = 100};
    bool is_back = false;
    struct tx tx;

    open_with_a_cook();
    CHECK(sent(nonsense).decision_id.text[0]);
    pass_ms(HOUR_MS);
    CHECK(sent(nonsense).decision_id.text[0]);
    keep.before_ms = keep.unfinished_ms = stage.now.wall_ms;
    tx_init(&tx);
    learning_prune(stage.learning, &tx, &keep);
    store_submit(stage.store, &tx, stage_on_user, &is_back);
    pass_ms(0);
    CHECK(is_back);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
    CHECK_INT(n_refused_by("anna"), 1);
    stage_close();
}

TEST(where_the_store_is_full_the_refusal_is_answered_without_a_record)
{
    struct told t;

    open_with_a_cook();
    fault_arm_at("store.op.full", 1);
    t = sent(nonsense);
    CHECK(fault_fired());
    fault_arm(0);
    CHECK_INT(t.err, ERR_NO_ROUTE);
    CHECK(t.why.text[0] && !t.decision_id.text[0]);
    CHECK_INT(n_refused_by("anna"), 0);
    CHECK_INT(told_in_feed("message.refused", NULL), 0);
    CHECK_INT(router_stats(stage.router).refusals_unrecorded_total, 1);
    CHECK_INT(router_stats(stage.router).by_layer[LAYER_NONE], 0);
    /* The control: with space there is a record. */
    CHECK(sent(nonsense).decision_id.text[0]);
    CHECK_INT(n_refused_by("anna"), 1);
    stage_close();
}

TEST(a_refusal_survives_every_fault)
{
    long nth = 0;
    bool has_fired = true;

    open_with_a_cook();
    while (has_fired) {
        struct told t;

        fault_arm(++nth);
        if (!post(nonsense, &t)) {
            has_fired = fault_fired();
            CHECK(has_fired);
            continue;
        }
        pass_ms(0);
        has_fired = fault_fired();
        fault_arm(0);
        pass_ms(1000);
        CHECK(t.is_back && t.err != OK);
        CHECK(has_fired || t.err == ERR_NO_ROUTE);
    }
    fault_arm(0);
    CHECK_INT(n_rows(&task_table), 0);
    CHECK_INT(n_rows(&decision_table), told_in_feed("message.refused", NULL));
    stage_close();
}
