/* The audit on a real walk: it finds nothing when nothing is lost, and finds
 * what was removed from the store directly. */
#include "gate/audit.h"
#include "store/internal.h"
#include "test/lib/walk_stage.h"

static struct audit *begin(void)
{
    struct audit *a = audit_new(&(struct audit_opts){
        .loop = &stage.loop,
        .log = &stage.log,
        .store = stage.store,
        .feed = stage.feed,
        .tasks = walk_tasks(stage.walk),
        .gatekeeper = walk_gatekeeper(stage.walk),
    });

    CHECK(a);
    return a;
}

static const struct audit_report *run(struct audit *a)
{
    audit_run(a);
    for (int i = 0; i < 500 && audit_is_running(a); i++)
        loop_turn(&stage.loop);
    CHECK(!audit_is_running(a));
    CHECK_INT(audit_report(a)->err, OK);
    return audit_report(a);
}

static int n_changed;

static void on_changed(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK(tx->result == TX_COMMITTED);
    tx_fini(tx);
    n_changed++;
}

/* Change the store without the walk. */
static void change(const struct id *id, bool removes, uint8_t column,
                   struct value v)
{
    struct tx tx;
    struct tx_op *op;
    int before = n_changed;

    tx_init(&tx);
    op = removes ? tx_delete(&tx, &task_table) : tx_update(&tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(id->text)));
    if (!removes)
        tx_set(op, column, v);
    store_submit(stage.store, &tx, on_changed, NULL);
    for (int i = 0; i < 100 && n_changed == before; i++)
        loop_turn(&stage.loop);
    CHECK_INT(n_changed, before + 1);
}

TEST(nothing_is_lost_where_nothing_is)
{
    const struct audit_report *r;
    struct audit *a;

    stage_open();
    a = begin();
    CHECK_INT(run(a)->accepted, 0);
    for (int i = 0; i < 120; i++) /* more than a page of each */
        CHECK_INT(sent((struct letter){.to = "echo", .text = "x"}).err, OK);
    pass_ms(1);
    CHECK_INT(sent((struct letter){.to = "slow", .text = "y"}).err, OK);
    r = run(a);
    CHECK_INT(r->accepted, 121);
    CHECK_INT(r->over, 120);
    CHECK_INT(r->unfinished, 1);
    CHECK_INT(r->lost, 0);
    audit_stop(a);
    audit_free(a);
    stage_close();
}

/* For as long as a sync takes, an accepted task is in the store and not in
 * memory. */
static int64_t lost_in_between(void)
{
    static const struct store_sabotage held = {.holds_reports = true};
    struct told t;
    struct audit *a;
    int64_t lost;

    stage_open();
    a = begin();
    store_sabotage(&held);
    CHECK(post((struct letter){.to = "slow", .text = "x"}, &t));
    audit_run(a);
    for (int i = 0; i < 500 && audit_is_running(a); i++)
        loop_turn(&stage.loop);
    CHECK(!t.is_back);
    store_sabotage(NULL);
    CHECK_INT(sent((struct letter){.to = "echo", .text = "y"}).err, OK);
    for (int i = 0; i < 500 && audit_is_running(a); i++)
        loop_turn(&stage.loop);
    CHECK(!audit_is_running(a) && t.is_back);
    CHECK_INT(audit_report(a)->err, OK);
    lost = audit_report(a)->lost;
    audit_stop(a);
    audit_free(a);
    stage_close();
    return lost;
}

TEST(what_is_committed_and_not_reported_yet_is_not_lost)
{
    CHECK_INT(lost_in_between(), 0);
}

/* The control: an audit without the second read. */
TEST(one_look_would_find_a_loss_where_there_is_none)
{
    fault_arm_at("audit.one_look", 1);
    CHECK_INT(lost_in_between(), 1);
    fault_arm(0);
}

TEST(a_row_that_is_gone_is_a_loss_and_named)
{
    const struct audit_report *r;
    struct audit *a;
    struct told t;

    stage_open();
    a = begin();
    t = sent((struct letter){.to = "echo", .text = "x"});
    CHECK_INT(sent((struct letter){.to = "echo", .text = "y"}).err, OK);
    pass_ms(1);
    change(&t.task_id, true, 0, value_null());
    r = run(a);
    CHECK_INT(r->lost, 1);
    CHECK(strcmp(r->losses[0].task_id.text, t.task_id.text) == 0);
    CHECK(strstr(r->losses[0].what, "has no row"));
    audit_stop(a);
    audit_free(a);
    stage_close();
}

TEST(what_is_not_over_and_in_nobodys_hands_is_a_loss)
{
    const struct audit_report *r;
    struct audit *a;
    struct told t;

    stage_open();
    a = begin();
    t = sent((struct letter){.to = "echo", .text = "x"});
    pass_ms(1);
    change(&t.task_id, false, TASK_FINISHED_MS, value_null());
    r = run(a);
    CHECK_INT(r->lost, 1);
    CHECK(strstr(r->losses[0].what, "not in memory"));
    audit_stop(a);
    audit_free(a);
    stage_close();
}

TEST(a_hold_that_nobody_keeps_is_a_loss)
{
    const struct audit_report *r;
    struct audit *a;
    struct told t;

    stage_open();
    a = begin();
    t = sent((struct letter){.to = "slow", .text = "x"});
    change(&t.task_id, false, TASK_STATUS, value_int(TASK_HELD));
    r = run(a);
    CHECK_INT(r->held, 1);
    CHECK_INT(r->lost, 1);
    CHECK(strstr(r->losses[0].what, "has no hold in memory"));
    audit_stop(a);
    audit_free(a);
    stage_close();
}

static void put(struct tx *tx)
{
    int before = n_changed;

    store_submit(stage.store, tx, on_changed, NULL);
    for (int i = 0; i < 100 && n_changed == before; i++)
        loop_turn(&stage.loop);
    CHECK_INT(n_changed, before + 1);
}

static void leave_hold(const struct id *id, int64_t until_ms)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_put(&tx, &hold_table);
    tx_set(op, HOLD_TASK_ID, value_text(str_of(id->text)));
    tx_set(op, HOLD_UNTIL_MS, value_int(until_ms));
    put(&tx);
}

static void leave_asked(const struct id *id)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &escalation_table);
    tx_set(op, ESCALATION_ID, value_text(STR("esc_left")));
    tx_set(op, ESCALATION_TASK_ID, value_text(str_of(id->text)));
    tx_set(op, ESCALATION_STATUS, value_int(ESCALATION_OPEN));
    put(&tx);
}

TEST(what_was_left_behind_is_named_and_is_no_loss)
{
    const struct audit_report *r;
    struct audit *a;
    struct told t;

    stage_open();
    a = begin();
    t = sent((struct letter){.to = "echo", .text = "x"});
    pass_ms(1);
    CHECK_INT(run(a)->n_leftovers, 0);
    leave_hold(&t.task_id, 0);
    leave_asked(&t.task_id);
    r = run(a);
    CHECK(r->lost == 0 && r->n_leftovers == 2);
    CHECK(strstr(r->leftovers[0].what, "the row of a hold is left"));
    CHECK(strstr(r->leftovers[1].what, "an escalation of it is open"));
    CHECK(!strcmp(r->leftovers[1].task_id.text, t.task_id.text));
    audit_stop(a);
    audit_free(a);
    stage_close();
}

TEST(a_hold_whose_time_is_over_is_named)
{
    static const char text[] =
        "{\"agents\": {\"slow\": {}},"
        " \"capacity\": [{\"rule\": \"one\", \"queue\": 1}]}";
    const struct audit_report *r;
    struct gate_problems problems = {.n = 0};
    struct gate_rules *rules;
    struct audit *a;
    struct told t;

    CHECK(gate_rules_read(str_of(text), &rules, &problems) == OK);
    stage.rules = rules;
    stage_open();
    a = begin();
    t = sent((struct letter){.to = "slow", .text = "x"});
    t = sent((struct letter){.to = "slow", .text = "y"});
    CHECK_INT(gatekeeper_stats(walk_gatekeeper(stage.walk)).held, 1);
    CHECK_INT(run(a)->n_leftovers, 0);
    leave_hold(&t.task_id, loop_wall_ms(&stage.loop) - AUDIT_OVERDUE_MS - 1);
    r = run(a);
    CHECK(r->lost == 0 && r->n_leftovers == 1);
    CHECK(strstr(r->leftovers[0].what, "beyond its time"));
    audit_stop(a);
    audit_free(a);
    stage_close();
    stage.rules = NULL;
    gate_rules_free(rules);
}

TEST(it_runs_by_itself_every_hour)
{
    struct audit *a;
    int64_t first;

    stage_open();
    a = begin();
    CHECK_INT(audit_report(a)->ended_ms, 0);
    pass_ms(AUDIT_FIRST_MS);
    for (int i = 0; i < 50; i++)
        loop_turn(&stage.loop);
    first = audit_report(a)->ended_ms;
    CHECK(first > 0);
    pass_ms(AUDIT_MS);
    for (int i = 0; i < 50; i++)
        loop_turn(&stage.loop);
    CHECK(audit_report(a)->ended_ms > first);
    audit_stop(a);
    audit_free(a);
    stage_close();
}
