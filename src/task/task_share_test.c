/* Shares of the capacity for tasks: at the limit nothing happens, one beyond it
 * does, and others do not notice. Shares shrink as the capacity fills. */
#include "test/lib/task_stage.h"

static enum err try_one(const char *who, const char *text)
{
    struct msg *m = message(who, "", text);
    enum err e = accept_turn(m, NULL);

    CHECK((e == ERR_TOO_MANY_TASKS) ==
          (strstr(m->why.text, "tasks.maxUnfinishedPerUser: 3") != NULL));
    CHECK(tasks_check(stage.tasks));
    msg_free(m);
    return e;
}

static void open_three_each(void)
{
    stage_ground();
    stage.limits.max_per_user = 3;
    stage.limits.max_bytes_per_user = 100;
    stage_start();
}

/* Anna takes all she can; then another comes. */
static enum err another_after_many(void)
{
    int n = 0;

    while (n < 100 && try_one("anna", "x") == OK)
        n++;
    CHECK_INT(n, 3);
    return try_one("bert", "x");
}

TEST(one_user_at_the_limit_leaves_room_for_others)
{
    open_three_each();
    CHECK_INT(another_after_many(), OK);
    stage_close();
}

TEST(the_test_above_would_notice_one_share_for_all)
{
    open_three_each();
    fault_arm_at("task.one_share", 1);
    CHECK_INT(another_after_many(), ERR_TOO_MANY_TASKS);
    stage_close();
}

TEST(claims_count_and_what_is_over_makes_room)
{
    struct msg *m[4];
    struct id id;

    open_three_each();
    for (int i = 0; i < 4; i++)
        m[i] = message("anna", "", "x");
    for (int i = 0; i < 4; i++)
        CHECK_INT(task_create(stage.tasks, m[i], NULL),
                  i < 3 ? OK : ERR_TOO_MANY_TASKS);
    CHECK(!m[3]->task.claim && m[3]->tx.n_ops == 0);
    task_settle(stage.tasks, m[2]); /* never submitted: refused */
    CHECK_INT(accept_turn(m[3], NULL), OK);
    submit_message(m[0]);
    submit_message(m[1]);
    store_turn(stage.store);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    id = m[0]->task.id;
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    CHECK_INT(try_one("anna", "x"), OK);
    for (int i = 0; i < 4; i++)
        msg_free(m[i]);
    stage_close();
}

TEST(bytes_are_shared_too)
{
    char text[101];

    memset(text, 'x', 100);
    text[100] = '\0';
    open_three_each();
    CHECK_INT(try_one("anna", text + 1), OK);
    CHECK_INT(try_one("anna", "12"), ERR_TOO_MANY_TASKS);
    CHECK_INT(try_one("anna", "1"), OK);
    CHECK_INT(try_one("bert", text), OK);
    stage.limits.max_bytes_per_user = 0; /* as many as there may be */
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(try_one("anna", text), OK);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    stage.limits.max_per_user = 0;
    tasks_set_limits(stage.tasks, &stage.limits);
    for (int i = 0; i < 20; i++)
        CHECK_INT(try_one("anna", text), OK);
    stage_close();
}

TEST(what_was_accepted_is_taken_up_however_small_the_share_is_now)
{
    open_three_each();
    for (int i = 0; i < 3; i++)
        CHECK_INT(try_one("anna", "x"), OK);
    stage.limits.max_per_user = 1;
    stage_restart();
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], 3);
    stage.limits.max_per_user = 3; /* for the words in try_one */
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    CHECK_INT(try_one("bert", "x"), OK);
    stage_close();
}

TEST(a_further_turn_counts_for_whose_task_it_is)
{
    struct task before;
    struct query q;
    struct msg *m;
    struct id id;

    open_three_each();
    id = accepted("anna", "", "x");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(try_one("anna", "x"), OK);
    m = message("anna", "", "again");
    before = row_of(&q, &id);
    CHECK_INT(accept_turn(m, &before), ERR_TOO_MANY_TASKS);
    query_fini(&q);
    msg_free(m);
    stage_close();
}

/* As many as are taken from that user, at most so many. */
static int take_all(const char *who, int most)
{
    int n = 0;
    enum err e = OK;

    while (!e && n < most) {
        struct msg *m = message(who, "", "x");

        e = task_create(stage.tasks, m, NULL);
        if (!e) {
            submit_message(m);
            store_turn(stage.store);
            e = m->err;
        }
        n += e == OK;
        msg_free(m);
    }
    CHECK(tasks_check(stage.tasks));
    return n;
}

static enum err try_as(const char *who, enum role role, const char *parent)
{
    struct msg *m = message(who, "", "x");
    enum err e;

    m->in.caller.role = role;
    m->in.caller.scopes |= role == ROLE_ADMIN ? SCOPE_ADMIN : 0;
    if (parent) {
        m->delegation.agent = STR("helper");
        m->delegation.parent_id = str_of(parent);
        m->delegation.root_user = str_of(who);
        m->in.caller.role = ROLE_AGENT;
        snprintf(m->in.caller.principal, sizeof(m->in.caller.principal),
                 "helper");
    }
    e = accept_turn(m, NULL);
    msg_free(m);
    return e;
}

/* A hundredth of the defaults. */
static void open_as_by_default(void)
{
    stage_ground();
    stage.limits.max_unfinished = 1000;
    stage.limits.max_per_user = 500;
    stage_start();
}

/* Two take all they can; how many of those who come next are accepted. */
static int others_after_two(void)
{
    int n = 0;

    take_all("mallory", 1000);
    take_all("oscar", 1000);
    for (int i = 0; i < 50; i++) {
        char who[16];

        snprintf(who, sizeof(who), "user%d", i);
        n += try_as(who, ROLE_USER, NULL) == OK;
    }
    return n;
}

TEST(two_users_who_take_all_they_can_leave_room_for_others)
{
    open_as_by_default();
    CHECK_INT(others_after_two(), 50);
    CHECK_INT(try_as("root", ROLE_ADMIN, NULL), OK);
    stage_close();
}

TEST(the_test_above_would_notice_shares_that_do_not_shrink)
{
    open_as_by_default();
    fault_arm_at("task.fixed_shares", 1);
    CHECK_INT(others_after_two(), 0);
    stage_close();
}

/* With f = 2 and a fiftieth kept back: n + 1 <= 2 * (980 - others - n). */
TEST(a_share_is_twice_of_what_is_free)
{
    struct msg *m;

    open_as_by_default();
    CHECK_INT(take_all("anna", 1000), 500); /* alone: the fixed limit */
    CHECK_INT(take_all("bert", 1000), 320);
    CHECK_INT(take_all("carl", 1000), 107);
    CHECK_INT(take_all("bert", 1000), 0);
    m = message("bert", "", "x");
    CHECK_INT(accept_turn(m, NULL), ERR_TOO_MANY_TASKS);
    CHECK(strstr(m->why.text, "your share of its capacity is used up with 320 "
                              "unfinished tasks of 320 bytes; wait until some "
                              "are over, or cancel some"));
    msg_free(m);
    stage_close();
}

TEST(a_user_without_a_fixed_limit_has_all_but_the_reserve)
{
    open_as_by_default();
    stage.limits.max_per_user = 0;
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(take_all("anna", 2000), 980);
    CHECK_INT(try_as("bert", ROLE_USER, NULL), ERR_OVERLOADED);
    stage_close();
}

/* Users up to the reserve, admins up to the last; then none. */
static int admin_on_a_full_server(void)
{
    int n = 0;

    open_as_by_default();
    stage.limits.max_per_user = 0;
    tasks_set_limits(stage.tasks, &stage.limits);
    take_all("anna", 2000);
    while (try_as("root", ROLE_ADMIN, NULL) == OK)
        n++;
    CHECK_INT(try_as("root", ROLE_ADMIN, NULL), ERR_OVERLOADED);
    CHECK_INT(try_as("anna", ROLE_USER, "task_p"), ERR_OVERLOADED);
    stage_close();
    return n;
}

TEST(a_reserve_is_kept_for_admins)
{
    CHECK_INT(admin_on_a_full_server(), 20);
}

TEST(the_test_above_would_notice_that_nothing_is_kept)
{
    fault_arm_at("task.no_reserve", 1);
    CHECK_INT(admin_on_a_full_server(), 0);
}

TEST(an_admin_has_the_fixed_limit_alone)
{
    int n = 0;

    open_as_by_default();
    take_all("anna", 1000);
    take_all("bert", 1000);
    while (n < 1000 && try_as("root", ROLE_ADMIN, NULL) == OK)
        n++;
    CHECK_INT(n, 180);
    stage_close();
}

TEST(what_agents_delegate_counts_for_the_user_and_may_be_more)
{
    int n = 0;

    open_as_by_default();
    stage.limits.max_per_user = 1000;
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(take_all("anna", 1000), 654);
    while (n < 1000 && try_as("anna", ROLE_USER, "task_p") == OK)
        n++;
    CHECK_INT(n, 146); /* n + 1 <= 4 * (1000 - n) at 799 */
    CHECK_INT(try_as("helper", ROLE_AGENT, NULL), OK); /* on its own account */
    CHECK_INT(try_as("bert", ROLE_USER, "task_p"), OK);
    CHECK_INT(try_as("bert", ROLE_USER, NULL), OK);
    stage_close();
}

static void user_of_org(const char *name, const char *org)
{
    users_stage_add(stage.access, stage.store, loop_wall_ms(&stage.loop), name,
                    &(struct access_wish){ROLE_USER, str_of(org), STR("")});
}

TEST(an_org_has_four_times_of_what_is_free)
{
    struct msg *m;
    int n = 0;

    stage.has_users = true;
    open_as_by_default();
    user_of_org("new@acme", "acme");
    user_of_org("new@zeta", "zeta");
    for (int i = 0; i < 100; i++) {
        char who[32];

        snprintf(who, sizeof(who), "user%d@acme", i);
        user_of_org(who, "acme");
        n += take_all(who, 20);
    }
    CHECK_INT(n, 784); /* n + 1 <= 4 * (980 - n) at 783 */
    m = message("new@acme", "", "x");
    CHECK_INT(accept_turn(m, NULL), ERR_TOO_MANY_TASKS);
    CHECK(strstr(m->why.text, "your org's share"));
    msg_free(m);
    CHECK_INT(try_as("new@zeta", ROLE_USER, NULL), OK);
    CHECK_INT(try_as("loner", ROLE_USER, NULL), OK);
    stage_restart(); /* the same counts */
    CHECK_INT(try_as("new@acme", ROLE_USER, NULL), ERR_TOO_MANY_TASKS);
    stage_close();
}

TEST(shares_of_bytes_shrink_too)
{
    char text[101];
    int n = 0;

    memset(text, 'x', 100);
    text[100] = '\0';
    stage_ground();
    stage.limits.max_unfinished_bytes = 10000;
    stage.limits.max_bytes_per_user = 10000;
    stage_start();
    for (enum err e = OK; !e; n += e == OK) {
        struct msg *m = message("anna", "", text);

        e = accept_turn(m, NULL);
        msg_free(m);
    }
    CHECK_INT(n, 66); /* held + 100 <= 2 * (9800 - held) */
    CHECK_INT(try_as("bert", ROLE_USER, NULL), OK);
    stage_close();
}
