/* The creator of the agent that did the work earns the price less the fee, even
 * if users are created or removed meanwhile. */
#include "test/lib/control.h"
#include "test/lib/ledger_stage.h"
#include "test/lib/walk_agents.h"

static void open_with_creators(void)
{
    money_open();
    stage_put("carl", "quick",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "\",\"pricing\":{\"amount_"
              "micros\":1001},"
              "\"skills\":[{\"id\":\"dear\",\"name\":\"dear\","
              "\"pricing\":{\"amount_micros\":5000}},"
              "{\"id\":\"gift\",\"name\":\"gift\","
              "\"pricing\":{\"amount_micros\":0}},"
              "{\"id\":\"plain\",\"name\":\"plain\"}]}");
    stage_put("carl", "lazy",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "1000\",\"pricing\":{"
              "\"amount_micros\":1001}}");
    stage_put("dora", "other",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "1000\",\"pricing\":{"
              "\"amount_micros\":7}}");
    give("p1", "anna", 100000);
}

static int64_t price(const char *agent, const char *skill)
{
    struct agents agents = registry_agents(stage.registry);

    return ledger_price(agent_find(&agents, str_of(agent)), str_of(skill));
}

TEST(a_skill_s_price_else_the_agent_s_else_nothing)
{
    open_with_creators();
    CHECK_INT(price("quick", "dear"), 5000);
    CHECK_INT(price("quick", "gift"), 0);
    CHECK_INT(price("quick", "plain"), 1001);
    CHECK_INT(price("quick", "unknown"), 1001);
    CHECK_INT(price("quick", ""), 1001);
    stage_close();
}

TEST(the_fee_is_rounded_down_and_the_rest_is_the_creator_s)
{
    open_with_creators();
    money_set((struct ledger_settings){.fee_ppm = 1000});
    CHECK_INT(sent((struct letter){.to = "quick"}).err, OK);
    pass_ms(10);
    CHECK_INT(balance("platform"), 1);
    CHECK_INT(balance("creator:carl"), 1000);
    money_set((struct ledger_settings){.fee_ppm = 1000000});
    CHECK_INT(sent((struct letter){.to = "quick"}).err, OK);
    pass_ms(10);
    CHECK_INT(balance("platform"), 1002);
    CHECK_INT(balance("creator:carl"), 1000);
    money_check();
    stage_close();
}

TEST(a_creator_is_paid_out_no_more_than_there_is)
{
    struct why why;

    open_with_creators();
    CHECK_INT(sent((struct letter){.to = "quick"}).err, OK);
    pass_ms(10);
    CHECK_INT(money_order(ENTRY_PAYOUT, "o1", "carl", 1002, &why), ERR_FUNDS);
    CHECK_INT(money_order(ENTRY_PAYOUT, "o1", "carl", 1001, &why), OK);
    CHECK_INT(balance("creator:carl"), 0);
    CHECK_INT(balance("outside"), -100000 + 1001);
    money_check();
    stage_close();
}

TEST(a_card_that_changes_meanwhile_changes_nothing)
{
    struct told t;

    open_with_creators();
    t = sent((struct letter){.to = "lazy"});
    CHECK_INT(t.err, OK);
    stage_put("carl", "lazy",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "1000\",\"pricing\":{"
              "\"amount_micros\":99999}}");
    pass_ms(1000);
    pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("creator:carl"), 1001);
    CHECK_INT(balance("user:anna"), 100000 - 1001);
    money_check();
    stage_close();
}

TEST(an_agent_that_went_has_earned_what_it_did)
{
    struct told t;

    open_with_creators();
    t = sent((struct letter){.to = "lazy"});
    pass_ms(10);
    stage_take_away("carl", "lazy");
    stage_put("dora", "lazy",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "1000\"}");
    pass_ms(1000);
    pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("creator:carl"), 1001);
    CHECK_INT(balance("creator:dora"), 0);
    money_check();
    stage_close();
}

/* The task was given to another agent, which is paid at the agreed price. */
TEST(who_a_task_was_given_to_earns_it)
{
    struct task_change *c;
    struct told t;
    enum err e;

    open_with_creators();
    t = sent((struct letter){.to = "lazy"});
    c = task_pass_new(walk_tasks(stage.walk), str_of(t.task_id.text),
                      &(struct task_release){.status = TASK_QUEUED,
                                             .agent = STR("other"),
                                             .priority = PRIORITY_NORMAL},
                      &e);
    CHECK(c);
    money_commit(&c->tx);
    task_changed(walk_tasks(stage.walk), c);
    deliver_cancel(walk_deliver(stage.walk), str_of(t.task_id.text));
    CHECK_INT(c->err, OK);
    task_change_free(c);
    for (int i = 0; i < 4; i++)
        pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("creator:dora"), 1001);
    CHECK_INT(balance("creator:carl"), 0);
    money_check();
    stage_close();
}

static void settle(struct access_change *c, enum err want)
{
    struct why why = {""};

    money_commit(&c->tx);
    CHECK_INT(access_settle(stage.access, c, &why), want);
    access_change_fini(c);
}

static void make_user(const char *name, enum err want)
{
    struct access_change c;
    struct why why = {""};
    enum err e;

    access_change_init(&c);
    e = access_user_create(stage.access, &c, str_of(name),
                           &(struct access_wish){.role = ROLE_USER},
                           STR("admin"), loop_wall_ms(&stage.loop), &why);
    CHECK_INT(e, OK);
    settle(&c, want);
}

/* A name is never given again, in any case, so no user inherits the balance of
 * a removed one. A removed user's tasks still end correctly. */
TEST(who_is_removed_meanwhile_leaves_the_account_to_nobody)
{
    struct told done, gone;
    struct access_change c;
    struct why why = {""};

    open_with_creators();
    make_user("zoe", OK);
    give("p2", "zoe", 10000);
    done =
        sent((struct letter){.from = "zoe", .to = "lazy", .conversation = "a"});
    gone =
        sent((struct letter){.from = "zoe", .to = "lazy", .conversation = "b"});
    access_change_init(&c);
    CHECK_INT(access_user_remove(stage.access, &c, STR("zoe"), STR("admin"),
                                 loop_wall_ms(&stage.loop), &why),
              OK);
    settle(&c, OK);
    CHECK_INT(walk_cancel(stage.walk, str_of(gone.task_id.text), STR("admin"),
                          NULL, NULL),
              OK);
    pass_ms(1000);
    pass_ms(0);
    CHECK_INT(stored(&done.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(stored(&gone.task_id, NULL, NULL), TASK_CANCELLED);
    CHECK_INT(balance("user:zoe"), 10000 - 1001);
    CHECK_INT(balance("creator:carl"), 1001);
    make_user("zoe", ERR_EXISTS);
    make_user("ZOE", ERR_EXISTS);
    CHECK_INT(money_order(ENTRY_REFUND, "r1", "zoe", 10000 - 1001, &why), OK);
    money_check();
    stage_close();
}

/* A user who may see a task but does not pay for it cannot spend the payer's
 * money by continuing it. */
TEST(a_further_turn_is_for_who_pays)
{
    struct told t;

    open_with_creators();
    give("p3", "bob", 10000);
    t = sent((struct letter){.to = "quick"});
    pass_ms(10);
    CHECK(sent((struct letter){.from = "bob", .task_id = t.task_id.text}).err !=
          OK);
    CHECK(
        sent((struct letter){.from = "admin", .task_id = t.task_id.text}).err !=
        OK);
    CHECK_INT(balance("user:anna"), 100000 - 1001);
    CHECK_INT(balance("user:bob"), 10000);
    money_check();
    stage_close();
}

/* One agent delegates to another, for the task it works on. */
static struct told delegated(const char *by, const struct told *parent,
                             const char *to, const char *task_id)
{
    struct told t = {0};
    struct why why = {""};
    struct walk_order o = {.by = str_of(by),
                           .parent_id = str_of(parent->task_id.text),
                           .agent = str_of(to),
                           .task_id = str_of(task_id),
                           .message = STR("help"),
                           .wish = {.mode = DELEGATION_ASYNC}};

    if (walk_delegate(stage.walk, &o, stage_on_done, &t, &why) != OK)
        CHECK(strstr(why.text, "zoe, who would pay for this"));
    pass_ms(0);
    CHECK(t.is_back);
    return t;
}

TEST(the_root_user_pays_however_deep_and_within_the_root_s_budget)
{
    struct told root, child, grandchild, more;

    open_with_creators();
    money_set((struct ledger_settings){.per_root = 2 * 1001 + 7,
                                       .delegation_allowance = 100000});
    make_user("anna", OK);
    make_user("carl", OK);
    make_user("dora", OK);
    root = sent((struct letter){.to = "lazy"});
    CHECK_INT(root.err, OK);
    child = delegated("lazy", &root, "other", "");
    CHECK_INT(child.err, OK);
    CHECK_INT(balance("user:anna"), 100000 - 1001 - 7);
    grandchild = delegated("other", &child, "quick", "");
    CHECK_INT(grandchild.err, OK);
    CHECK_INT(balance("user:anna"), 100000 - 2 * 1001 - 7);
    more = delegated("lazy", &root, "slow", "");
    CHECK_INT(more.err, ERR_BUDGET);
    CHECK_STR(str_of(more.why.text), "slow costs 0.0003, and its payer has "
                                     "too little left of a budget");
    CHECK_INT(balance("user:carl") + balance("user:dora"), 0);
    for (int i = 0; i < 4; i++)
        pass_ms(1000);
    CHECK_INT(stored(&child.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("creator:carl"), 2 * 1001);
    CHECK_INT(balance("creator:dora"), 7);
    CHECK_INT(balance("reserved"), 0);
    money_check();
    stage_close();
}

/* A removed user pays for nothing that begins later, even within a task that
 * began before. */
static void gone_and_not_charged(void)
{
    struct told root, t = {0};
    struct access_change c;
    struct why why = {""};
    struct walk_order o;

    open_with_creators();
    make_user("zoe", OK);
    make_user("carl", OK);
    give("p2", "zoe", 10000);
    root = sent((struct letter){.from = "zoe", .to = "lazy"});
    access_change_init(&c);
    CHECK_INT(access_user_remove(stage.access, &c, STR("zoe"), STR("admin"),
                                 loop_wall_ms(&stage.loop), &why),
              OK);
    settle(&c, OK);
    o = (struct walk_order){.by = STR("lazy"),
                            .parent_id = str_of(root.task_id.text),
                            .agent = STR("quick"),
                            .message = STR("help"),
                            .wish = {.mode = DELEGATION_ASYNC}};
    CHECK_INT(walk_delegate(stage.walk, &o, stage_on_done, &t, &why),
              ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "zoe, who would pay for this"));
    for (int i = 0; i < 3; i++)
        pass_ms(1000);
    CHECK_INT(stored(&root.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("user:zoe"), 10000 - 1001);
    money_check();
    stage_close();
}

TEST(who_is_removed_pays_for_nothing_that_begins_then)
{
    gone_and_not_charged();
}

TEST(one_that_charges_who_is_gone_is_noticed)
{
    check_control("walk.gone_pays", gone_and_not_charged);
}

/* The agent's creator requested the work and may see it, but does not pay, so
 * they cannot continue it. */
TEST(who_delegated_cannot_go_on_at_another_s_expense)
{
    struct told root, child, more;

    open_with_creators();
    money_set((struct ledger_settings){.delegation_allowance = 100000});
    give("p2", "carl", 100000);
    make_user("anna", OK);
    make_user("carl", OK);
    make_user("dora", OK);
    root = sent((struct letter){.to = "lazy"});
    child = delegated("lazy", &root, "quick", "");
    CHECK_INT(child.err, OK);
    for (int i = 0; i < 4; i++)
        pass_ms(1000);
    CHECK_INT(stored(&child.task_id, NULL, NULL), TASK_COMPLETED);
    more = sent((struct letter){.from = "carl", .task_id = child.task_id.text});
    CHECK_INT(more.err, ERR_NOT_ALLOWED);
    CHECK(strstr(more.why.text, "another user pays for this task"));
    CHECK_INT(sent((struct letter){.task_id = child.task_id.text}).err, OK);
    CHECK_INT(balance("user:anna"), 100000 - 3 * 1001);
    CHECK_INT(balance("user:carl"), 100000);
    money_check();
    stage_close();
}
