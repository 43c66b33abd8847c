/* A delegation on its walk: its parent if none is named, a gate that drops it,
 * and requests as transports give them. */
#include "test/lib/control.h"
#include "test/lib/delegation_stage.h"
#include "test/lib/walk_gate_stage.h"

static const struct task *parent_of(const char *agent, const char *given,
                                    const char *session, enum err expected)
{
    struct delegation_parents p;
    struct why why;

    CHECK_INT(delegation_parents(firm_hires(), str_of(agent), or_empty(given),
                                 or_empty(session), &p, &why),
              expected);
    CHECK(p.n <= 1);
    return p.n ? p.list[0] : NULL;
}

/* They would wait for tasks that they block themselves. */
TEST(parents_in_flight_do_not_keep_their_children_from_going)
{
    struct walk_opts opts;
    struct gotten b;
    struct id root;

    firm_open();
    opts = stage_walk_opts();
    opts.delegation = firm.settings;
    opts.deliver.max_in_flight = opts.deliver.in_flight = 2;
    walk_set(stage.walk, &opts);
    root = root_of("a");
    (void)root_of("c");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    pass_ms(10);
    CHECK(task_find(walk_tasks(stage.walk), str_of(b.task.text))->status !=
          TASK_QUEUED);
    firm_close();
}

/* Two tasks of one user; the one with the nearer deadline comes first. */
static void may_be(const char *agent, const char *session,
                   const struct told *first, const struct told *second)
{
    struct delegation_parents p;
    struct why why;

    CHECK_INT(delegation_parents(firm_hires(), str_of(agent), STR(""),
                                 or_empty(session), &p, &why),
              OK);
    CHECK_INT((int)p.n, 2);
    CHECK_STR(str_of(p.list[0]->id.text), first->task_id.text);
    CHECK_STR(str_of(p.list[1]->id.text), second->task_id.text);
    CHECK(p.list[0]->deadline_ms <= p.list[1]->deadline_ms);
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
    may_be("a", NULL, &first, &second);
    may_be("a", "other", &first, &second);
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

/* DELEGATION_PARENTS_MAX and one more: the one with the furthest deadline is
 * left out. */
TEST(of_very_many_the_most_urgent_may_be_meant)
{
    struct told told[DELEGATION_PARENTS_MAX + 1];
    struct delegation_parents p;
    struct walk_opts opts;
    struct why why;
    char name[16];

    firm_open();
    opts = stage_walk_opts();
    opts.delegation = firm.settings;
    opts.deliver.max_in_flight = opts.deliver.in_flight = 1000;
    walk_set(stage.walk, &opts);
    for (int i = 0; i <= DELEGATION_PARENTS_MAX; i++) {
        CHECK_INT(delegation_parents(firm_hires(), STR("a"), STR(""), STR(""),
                                     &p, &why),
                  OK);
        CHECK_INT((int)p.n, i);
        snprintf(name, sizeof(name), "s-%d", i);
        told[i] = sent((struct letter){
            .to = "a", .conversation = name, .timeout_ms = 500000 - 1000 * i});
        pass_ms(1);
    }
    CHECK_INT(
        delegation_parents(firm_hires(), STR("a"), STR(""), STR(""), &p, &why),
        OK);
    CHECK_INT((int)p.n, DELEGATION_PARENTS_MAX);
    for (size_t i = 0; i < p.n; i++)
        CHECK_STR(str_of(p.list[i]->id.text),
                  told[DELEGATION_PARENTS_MAX - i].task_id.text);
    CHECK_STR(str_of(parent_of("a", NULL, "s-0", OK)->id.text),
              told[0].task_id.text);
    firm_close();
}

/* Conversation names are per user. If two users have the same, the agent must
 * say which task it means, or one user would pay for the other. */
TEST(a_session_of_two_users_is_nobodys)
{
    struct told of_anna, of_berta;
    struct delegation_parents p;
    struct why why;

    firm_open();
    of_berta =
        sent((struct letter){.from = "berta", .to = "a", .conversation = "c1"});
    CHECK_STR(str_of(parent_of("a", NULL, "c1", OK)->id.text),
              of_berta.task_id.text);
    of_anna = sent((struct letter){.to = "a", .conversation = "c1"});
    CHECK_INT(delegation_parents(firm_hires(), STR("a"), STR(""), STR("c1"), &p,
                                 &why),
              ERR_BAD_REQUEST);
    CHECK_STR(str_of(why.text),
              "a is working for several users: give the session_id "
              "(conversation_id in message.send) of the task this is part "
              "of, or parent_task_id if two of them have the same");
    CHECK(!p.n);
    CHECK_STR(str_of(parent_of("a", of_berta.task_id.text, "c1", OK)->id.text),
              of_berta.task_id.text);
    fault_arm_at("hire.any_payer", 1);
    may_be("a", "c1", &of_berta, &of_anna);
    fault_arm(0);
    CHECK_INT(firm_end(&of_anna.task_id, TASK_COMPLETED, "x"), OK);
    CHECK_STR(str_of(parent_of("a", NULL, "c1", OK)->id.text),
              of_berta.task_id.text);
    firm_close();
}

/* The stage's agents are configured; this one has an owner. */
static void a_is_of(const char *creator, int64_t created_ms)
{
    struct agents all = registry_agents(stage.registry);
    struct agent *a = (struct agent *)(uintptr_t)agent_find(&all, STR("a"));

    CHECK(a);
    a->is_configured = false;
    a->creator = str_of(creator);
    a->created_ms = created_ms;
}

/* anna gave up the name of her agent, and it is berta's now: delegations by the
 * old agent and tasks for it are not berta's. */
static void name_goes_to_berta(void)
{
    struct gotten b;
    struct id root;

    firm_open();
    root = root_of("a");
    a_is_of("anna", 0);
    b = hired((struct wanted){.by = "a", .to = "b", .id = "42"});
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "secret"), OK);
    pass_ms(10);
    firm_restart();
    a_is_of("berta", loop_wall_ms(&stage.loop));
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK_INT(firm_told(&b.key), 0);
    CHECK_INT(firm_had("a", "42"), ERR_NOT_FOUND);
    CHECK_INT(firm_had("a", b.key.text), ERR_NOT_FOUND);
    CHECK(!delegation_is_own(
        firm_hires(), delegation_find(firm_hires(), str_of(b.key.text))));
    CHECK(!parent_of("a", root.text, NULL, ERR_BAD_REQUEST));
    CHECK(!parent_of("a", NULL, NULL, OK));
    CHECK_INT(asked((struct wanted){
                        .by = "a", .to = "b", .parent = &root, .user = "berta"})
                  .err,
              ERR_DELEGATION);
}

TEST(a_name_that_is_somebody_elses_now_has_nothing_of_before)
{
    struct gotten again;

    name_goes_to_berta();
    /* The new agent has its own ids. */
    again = hired((struct wanted){
        .by = "a", .to = "b", .id = "42", .text = "other", .user = "berta"});
    CHECK_INT(firm_end(&again.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_told(&again.key), 1);
    CHECK_INT(firm_had("a", "42"), OK);
    /* anna has the name again. */
    a_is_of("Anna", loop_wall_ms(&stage.loop));
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK_INT(firm.n_heard, 1);
    CHECK_INT(firm_had("a", firm.heard[0].key.text), OK);
    firm_close();
}

TEST(control_of_who_has_the_name)
{
    check_control("hire.any_owner", name_goes_to_berta);
}

/* A repeated further turn creates nothing. The requester is told so after the
 * answer, and must acknowledge it. */
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
    CHECK_INT(delegation_stats(firm_hires()).open, 0);
    firm_restart();
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK(firm_told(&first.key) == 1 && firm_told(&again.key) == 1);
    CHECK_INT(firm_had("a", "2"), OK);
    CHECK_INT(firm_had("a", "1"), OK);
    CHECK(delegation_check(firm_hires()));
    stage_close_gate();
}

static void on_dropped(struct delegation_waiter *w, enum err e,
                       const struct delegation *d, const struct task *t)
{
    (void)w;
    CHECK(e == OK && d && t->status == TASK_DROPPED);
    firm.n_heard += 100;
}

static void on_done_wait(struct msg *m, void *ctx)
{
    CHECK_INT(m->err, OK);
    CHECK_INT(delegation_wait(firm_hires(), str_of(m->delegation.key.text),
                              1000, ctx),
              OK);
    msg_free(m);
}

/* A waiter is given that at once, and not told later. */
TEST(who_waits_for_what_the_gate_drops_is_given_its_end)
{
    struct caller anna = caller_named("anna");
    struct delegation_waiter w = {.on_over = on_dropped};
    struct walk_order o = {.by = STR("a"),
                           .caller = &anna,
                           .message = STR("do it"),
                           .wish.mode = DELEGATION_SYNC};
    struct gotten g;
    struct why why;

    firm_ground();
    stage_use_rules("{\"agents\": {\"a\": {}, \"b\": {}},"
                    " \"duplicates\": [{\"rule\": \"again\", \"match\":"
                    " {\"type\": \"MESSAGE\"}, \"within\": \"10m\"}]}");
    stage_start();
    firm_come();
    g = hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    firm.n_heard = 0;
    o.task_id = str_of(g.task.text);
    CHECK_INT(walk_delegate(stage.walk, &o, on_done_wait, &w, &why), OK);
    pass_ms(0);
    CHECK_INT(firm.n_heard, 100);
    CHECK(!w.delegation && delegation_stats(firm_hires()).had_total == 1);
    stage_close_gate();
}

static struct gotten ordered(const struct walk_order *o)
{
    struct gotten g = {0};
    enum err e = walk_delegate(stage.walk, o, firm_on_done, &g, &g.why);

    if (e)
        g.err = e;
    pass_ms(0);
    CHECK(g.is_back == !e && delegation_check(firm_hires()));
    return g;
}

static void on_people(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* anna comes, or is removed. */
static void anna(bool comes)
{
    struct access_wish wish = {ROLE_USER, STR(""), STR("")};
    struct access_change c;
    bool is_back = false;
    struct why why;

    access_change_init(&c);
    CHECK_INT(comes ? access_user_create(stage.access, &c, STR("anna"), &wish,
                                         STR("admin"), 1, &why)
                    : access_user_remove(stage.access, &c, STR("anna"),
                                         STR("admin"), 1, &why),
              OK);
    store_submit(stage.store, &c.tx, on_people, &is_back);
    pass_ms(0);
    CHECK(is_back && access_settle(stage.access, &c, NULL) == OK);
    access_change_fini(&c);
}

/* Otherwise the requester would believe it was never accepted, and it would be
 * paid twice. */
TEST(a_repeat_is_one_also_when_its_parent_is_over_and_who_pays_is_gone)
{
    struct gotten g, again;
    struct walk_order o = {
        .by = STR("a"),
        .agent = STR("b"),
        .message = STR("do it"),
        .wish = {.mode = DELEGATION_TWO_PHASE, .original_id = STR("7")}};
    struct id root;

    firm_open();
    anna(true);
    root = root_of("a");
    o.parent_id = str_of(root.text);
    g = ordered(&o);
    CHECK_INT(g.err, OK);
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    anna(false);
    for (int i = 0; i < 2; i++) {
        again = ordered(&o);
        CHECK(again.err == OK && again.is_repeat);
        CHECK_STR(str_of(again.task.text), g.task.text);
        if (!i)
            CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    }
    o.message = STR("do something else");
    CHECK_INT(ordered(&o).err, ERR_BAD_REQUEST);
    CHECK_INT(firm_rows(&delegation_table), 1);
    firm_close();
}
