/* Answers that are due, and agents that are restarted or replaced. */
#include "test/lib/people_stage.h"

static struct world w;

static struct act *let_go_with(int64_t sla_ms)
{
    return act_begin(&w, &(struct gate_result){.answer = GATE_ROUTE,
                                               .cause = PASS_FREE,
                                               .rule = STR("another-rule"),
                                               .sla_rule = STR("z-answers"),
                                               .sla_ms = sla_ms});
}

/* Its deadline passes within a turn. */
static void due_now(struct str task_id)
{
    struct timer *t = sla_timer(&w.b, task_id);

    CHECK(t && timer_is_set(t));
    loop_timer_cancel(&w.loop, t);
    t->fire(t);
}

static void answer(struct act *a)
{
    CHECK(world_end(&w, str_of(a->t.id.text),
                    &(struct task_result){.status = TASK_COMPLETED}, NULL,
                    NULL) == OK);
    turns(&w, 3);
}

TEST(a_late_answer_is_asked_about_once_and_the_work_goes_on)
{
    struct act *a;
    struct shown s;
    struct buf metadata;

    world_open(&w);
    a = let_go_with(60000);
    later(&w, 59999);
    CHECK_INT(row_of(&w, a, 0).n, 0);
    later(&w, 1);
    s = row_of(&w, a, ESCALATION_LATE);
    CHECK(s.n == 1 && s.status == ESCALATION_OPEN && !a->is_over);
    CHECK(!strcmp(s.rule, "z-answers") && strstr(w.feed, "task.late|"));
    world_again(&w); /* reported once, not again */
    later(&w, 60000);
    CHECK_INT(row_of(&w, a, 0).n, 1);
    buf_init(&metadata, 4096);
    CHECK(gatekeeper_late(&w.b, &a->t, STR("{\"a\":1}"), &metadata));
    CHECK(str_eq(buf_str(&metadata), STR("{\"a\":1,\"late_ms\":60000}")));
    buf_clear(&metadata);
    CHECK(gatekeeper_late(&w.b, &a->t, STR(""), &metadata));
    CHECK(str_eq(buf_str(&metadata), STR("{\"late_ms\":60000}")));
    buf_clear(&metadata);
    CHECK(gatekeeper_late(&w.b, &a->t, STR("{ }"), &metadata));
    CHECK(str_eq(buf_str(&metadata), STR("{\"late_ms\":60000}")));
    buf_fini(&metadata);
    answer(a);
    s = row_of(&w, a, 0);
    CHECK(s.status == ESCALATION_RESOLVED);
    CHECK(strstr(s.comment, "answered after all, 1 minute late"));
    world_close(&w);
}

TEST(the_clock_of_what_waits_for_its_turn_stands_and_begins_with_it)
{
    struct act *a;
    struct str id;

    world_open(&w);
    a = let_go_with(60000);
    id = str_of(a->t.id.text);
    later(&w, 59999);
    gatekeeper_put_off(&w.b, &a->t);
    CHECK(sla_check(&w.b));
    later(&w, 600000);
    CHECK(row_of(&w, a, 0).n == 0 && sla_late_ms(&w.b, id) == 0);
    gatekeeper_turn_came(&w.b, id);
    CHECK(sla_check(&w.b));
    later(&w, 30000);
    gatekeeper_turn_came(&w.b, id); /* it has come: no clock restarts */
    world_again(&w);                /* and a start knows the new time */
    later(&w, 29999);
    CHECK_INT(row_of(&w, a, 0).n, 0);
    later(&w, 1);
    CHECK_INT(row_of(&w, a, ESCALATION_LATE).n, 1);
    world_close(&w);
}

TEST(an_answer_in_time_is_nobodys_business)
{
    struct act *a;
    struct buf metadata;

    world_open(&w);
    a = let_go_with(60000);
    world_again(&w);
    buf_init(&metadata, 4096);
    CHECK(!gatekeeper_late(&w.b, &a->t, STR("{}"), &metadata) && !metadata.n);
    buf_fini(&metadata);
    answer(a);
    later(&w, 600000);
    world_again(&w);
    later(&w, 600000);
    CHECK(row_of(&w, a, 0).n == 0 && !strstr(w.feed, "late"));
    world_close(&w);
}

TEST(an_answer_that_crosses_the_word_that_it_is_late_resolves_it_all_the_same)
{
    struct act *a;

    world_open(&w);
    a = let_go_with(1000);
    w.time.mono_ms += 1000;
    w.time.wall_ms += 1000;
    due_now(str_of(a->t.id.text)); /* not committed yet */
    answer(a);
    turns(&w, 4);
    CHECK(a->is_over && row_of(&w, a, 0).n == 1);
    CHECK_INT(row_of(&w, a, 0).status, ESCALATION_RESOLVED);
    CHECK_INT(w.b.stats.escalations_open, 0);
    world_close(&w);
}

TEST(one_told_as_late_while_the_server_ended_is_resolved_when_it_is_back)
{
    struct act *a;

    world_open(&w);
    a = let_go_with(1000);
    w.time.mono_ms += 1000;
    w.time.wall_ms += 1000;
    due_now(str_of(a->t.id.text));
    CHECK(world_end(&w, str_of(a->t.id.text),
                    &(struct task_result){.status = TASK_COMPLETED}, NULL,
                    NULL) == OK);
    world_down(&w); /* both are committed, and nothing after them */
    world_up(&w);
    w.b.opts.tasks = tasks_new(&(struct tasks_opts){
        .loop = &w.loop, .log = &w.log, .store = w.store, .ids = &w.ids});
    world_load(&w); /* its task is not in memory */
    CHECK(a->is_over && row_of(&w, a, 0).n == 1);
    later(&w, ESCALATION_RETRY_MS);
    CHECK_INT(row_of(&w, a, 0).status, ESCALATION_RESOLVED);
    CHECK_INT(w.b.stats.escalations_open, 0);
    CHECK_INT(row_of(&w, a, 0).reminded, 0);
    tasks_free(w.b.opts.tasks);
    world_close(&w);
}

TEST(a_clock_that_is_set_makes_nobody_late_or_punctual)
{
    struct act *a;

    world_open(&w);
    a = let_go_with(60000);
    w.time.wall_ms -= 24 * 3600 * 1000;
    later(&w, 59999);
    CHECK_INT(row_of(&w, a, 0).n, 0);
    later(&w, 1);
    CHECK_INT(row_of(&w, a, 0).n, 1);
    world_close(&w);
}

TEST(a_redirect_that_comes_after_the_answer_leaves_nothing_behind)
{
    struct act *a;
    struct heard h;

    world_open(&w);
    a = let_go_with(1000);
    later(&w, 1000);
    a->next = (struct gate_result){.answer = GATE_ROUTE, .sla_ms = 5000};
    CHECK(world_end(&w, str_of(a->t.id.text),
                    &(struct task_result){.status = TASK_COMPLETED}, NULL,
                    NULL) == OK);
    says(&w, row_of(&w, a, 0).id, "bob", ESCALATION_REDIRECTED, "Leroy", &h);
    turns(&w, 6);
    CHECK(h.n == 1 && h.err == ERR_EXISTS && a->is_over);
    CHECK(!sla_timer(&w.b, str_of(a->t.id.text)));
    world_close(&w);
}

TEST(one_that_is_late_is_seen_rejected_or_redirected)
{
    static const enum escalation_status all[] = {
        ESCALATION_APPROVED, ESCALATION_REJECTED, ESCALATION_REDIRECTED};

    for (int i = 0; i < 3; i++) {
        struct heard h;
        struct act *a;

        world_open(&w);
        a = let_go_with(1000);
        later(&w, 1000);
        says(&w, row_of(&w, a, 0).id, "bob", all[i], i == 2 ? "Leroy" : "", &h);
        turns(&w, 5);
        CHECK(h.n == 1 && h.err == OK);
        CHECK_INT(row_of(&w, a, 0).status, all[i]);
        CHECK(a->is_over == (i == 1));
        CHECK(strcmp(a->agent, i == 2 ? "Leroy" : "Rick") == 0);
        later(&w, 5000); /* once */
        CHECK_INT(row_of(&w, a, 0).n, 1);
        world_close(&w);
    }
}

TEST(what_runs_late_is_told_whatever_fails)
{
    long nth = 0;
    bool has_fired;

    do {
        struct act *a;

        world_open(&w);
        a = let_go_with(1000);
        fault_arm(++nth);
        later(&w, 1000);
        has_fired = fault_fired();
        fault_arm(0);
        if (w.is_fatal)
            world_again(&w);
        later(&w, ESCALATION_RETRY_MS);
        CHECK_INT(row_of(&w, a, ESCALATION_LATE).n, 1);
        CHECK(sla_check(&w.b) && escalations_check(&w.b));
        answer(a);
        CHECK_INT(w.b.stats.escalations_open, 0);
        world_close(&w);
    } while (has_fired);
    CHECK(nth > 3);
}

/* Dead agents. */

static void dead_world(int64_t attempts, const char *backup, bool is_auto)
{
    world_open(&w);
    w.agents[0].state = AGENT_DEAD;
    w.revivals[0] = (struct gate_revival){.agent = STR("rick"),
                                          .attempts = attempts,
                                          .pause_ms = 10000,
                                          .backup = str_of(backup),
                                          .is_auto = is_auto};
    w.rules.revivals = w.revivals;
    w.rules.n_revivals = 1;
}

TEST(who_is_dead_is_restarted_once_for_all_and_what_waits_goes_on_in_order)
{
    struct act *a[3];

    dead_world(3, "", false);
    for (int i = 0; i < 3; i++)
        a[i] = act_begin(&w, TARGET_IS_DEAD);
    CHECK_INT(w.n_restarts, 1);
    CHECK(row_of(&w, a[0], 0).kind == ESCALATION_DEAD);
    restart_ends(&w, OK);
    w.agents[0].state = AGENT_IDLE;
    for (int i = 0; i < 3; i++)
        a[i]->next = *MAY_GO;
    later(&w, GATEKEEPER_STATES_MS);
    for (int i = 0; i < 3; i++) {
        CHECK(a[i]->t.status == TASK_QUEUED);
        CHECK(row_of(&w, a[i], 0).status == ESCALATION_RESOLVED &&
              strstr(row_of(&w, a[i], 0).comment, "the agent is back"));
    }
    CHECK_INT(w.n_restarts, 1);
    CHECK(strstr(w.feed, "agent.restarting|") &&
          strstr(w.feed, "agent.restarted|"));
    later(&w, 100000);
    CHECK_INT(w.n_restarts, 1);
    world_close(&w);
}

TEST(pauses_between_restarts_are_doubled_and_end_with_the_last_attempt)
{
    struct act *a;

    dead_world(3, "", false);
    a = act_begin(&w, TARGET_IS_DEAD);
    restart_ends(&w, ERR_IO);
    later(&w, 9000);
    CHECK_INT(w.n_restarts, 1);
    later(&w, 1000);
    CHECK_INT(w.n_restarts, 2);
    restart_ends(&w, ERR_IO);
    later(&w, 19000);
    CHECK_INT(w.n_restarts, 2);
    later(&w, 1000);
    CHECK_INT(w.n_restarts, 3);
    restart_ends(&w, ERR_IO);
    for (int i = 0; i < 100; i++)
        later(&w, 10000);
    CHECK_INT(w.n_restarts, 3);
    CHECK(row_of(&w, a, 0).status == ESCALATION_OPEN && !a->is_over);
    CHECK_INT(w.b.stats.restarts_failed_total, 3);
    world_close(&w);
}

static void give_up(void)
{
    restart_ends(&w, ERR_NOT_FOUND); /* nothing to restart it with */
    later(&w, GATEKEEPER_STATES_MS);
    CHECK_INT(w.n_restarts, 1);
}

TEST(the_backup_takes_over_by_itself_where_the_rules_say_so)
{
    struct act *a, *b;

    dead_world(3, "Leroy", true);
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    CHECK(!strcmp(a->agent, "Leroy") && a->t.status == TASK_QUEUED);
    CHECK(row_of(&w, a, 0).status == ESCALATION_REDIRECTED &&
          !strcmp(row_of(&w, a, 0).by, "signalbox"));
    CHECK_INT(w.b.stats.takeovers_total, 1);
    b = act_begin(&w, TARGET_IS_DEAD); /* in the same outage or the next */
    later(&w, GATEKEEPER_STATES_MS);
    if (w.restarted)
        restart_ends(&w, ERR_NOT_FOUND);
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(!strcmp(b->agent, "Leroy"));
    world_close(&w);
}

TEST(the_backup_is_offered_where_nobody_said_otherwise)
{
    struct act *a;

    dead_world(3, "Leroy", false);
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(row_of(&w, a, 0).status == ESCALATION_OPEN &&
          !strcmp(row_of(&w, a, 0).offer, "Leroy"));
    CHECK(strstr(w.feed, "agent.restart_failed|"));
    world_close(&w);
}

TEST(a_backup_that_is_dead_or_has_sent_it_is_none)
{
    struct act *a;

    dead_world(3, "Leroy", true);
    w.agents[2].state = AGENT_DEAD;
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    CHECK(!strcmp(a->agent, "Rick") && !row_of(&w, a, 0).offer[0]);
    w.agents[2].state = AGENT_IDLE; /* until it is there */
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(!strcmp(a->agent, "Leroy"));
    world_close(&w);
    dead_world(3, "Jay", true);
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    CHECK(!strcmp(a->agent, "Rick"));
    world_close(&w);
}

/* Without a backup in the rules the card names one, as an offer. */
TEST(the_backup_of_the_card_is_offered_and_the_rules_win_over_it)
{
    struct act *a;

    dead_world(3, "", true);
    w.agents[0].backup = STR("Leroy");
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(row_of(&w, a, 0).status == ESCALATION_OPEN &&
          !strcmp(row_of(&w, a, 0).offer, "Leroy"));
    world_close(&w);
    dead_world(3, "Zoe", true);
    w.agents[0].backup = STR("Leroy");
    w.agents[3] = (struct gate_agent){.name = STR("Zoe"), .state = AGENT_IDLE};
    a = act_begin(&w, TARGET_IS_DEAD);
    give_up();
    CHECK(!strcmp(a->agent, "Zoe"));
    world_close(&w);
}

TEST(one_that_is_back_and_must_be_seen_all_the_same_is_asked_about_anew_once)
{
    struct act *a;
    struct shown s;
    int64_t version;

    dead_world(3, "", false);
    a = act_begin(&w, TARGET_IS_DEAD);
    w.agents[0].state = AGENT_IDLE;
    a->next = *MUST_BE_SEEN;
    restart_ends(&w, OK);
    later(&w, GATEKEEPER_STATES_MS);
    s = row_of(&w, a, 0);
    version = a->t.version;
    CHECK(s.n == 1 && s.status == ESCALATION_OPEN &&
          s.kind == ESCALATION_RULE && !strcmp(s.rule, "ban"));
    for (int i = 0; i < 60; i++)
        later(&w, GATEKEEPER_STATES_MS);
    CHECK_INT(a->t.version, version);
    CHECK_INT(row_of(&w, a, 0).n, 1);
    world_again(&w);
    later(&w, 60000);
    CHECK_INT(a->t.version, version);
    world_close(&w);
}

/* Once: the agent comes back, takes the message, and dies again. */
static struct act *flap(void)
{
    struct act *a;

    w.agents[0].state = AGENT_DEAD;
    a = act_begin(&w, TARGET_IS_DEAD);
    a->next = *MAY_GO;
    for (int i = 0; i < 100 && !w.restarted && !strcmp(a->agent, "Rick"); i++)
        later(&w, 1000);
    if (w.restarted) {
        w.agents[0].state = AGENT_IDLE;
        restart_ends(&w, OK);
        later(&w, GATEKEEPER_STATES_MS);
        CHECK(a->t.status == TASK_QUEUED);
    }
    return a;
}

TEST(one_that_dies_with_each_message_is_not_restarted_for_ever)
{
    int64_t began_ms;
    struct act *a;

    dead_world(3, "Leroy", true);
    began_ms = w.time.mono_ms;
    for (int i = 1; i <= 3; i++) {
        flap();
        CHECK_INT(w.n_restarts, i);
    }
    CHECK(w.time.mono_ms - began_ms >= 30000); /* 10 s, and 20 */
    a = flap();
    CHECK_INT(w.n_restarts, 3);
    CHECK(!strcmp(a->agent, "Leroy")); /* no escalation waits for it */
    w.agents[0].state = AGENT_IDLE;
    later(&w, 1000);
    later(&w, 80000); /* well for a while: the outage is forgotten */
    flap();
    CHECK_INT(w.n_restarts, 4);
    world_close(&w);
}

static struct act *paused(void)
{
    return act_begin(&w, &(struct gate_result){.answer = GATE_PAUSE,
                                               .cause = PASS_GATED,
                                               .gate_agent = STR("Rick")});
}

static int times(const char *type)
{
    int n = 0;

    for (const char *at = w.feed; (at = strstr(at, type)); at++)
        n++;
    return n;
}

TEST(one_of_a_safety_gate_in_error_is_restarted_and_told_once_per_outage)
{
    dead_world(3, "", false);
    w.agents[0].state = AGENT_ERROR;
    for (int i = 0; i < 3; i++)
        CHECK(paused());
    CHECK(w.n_restarts == 1 && times("agent.out|") == 1);
    w.agents[0].state = AGENT_DEAD; /* the same one */
    restart_ends(&w, ERR_IO);
    world_again(&w);
    CHECK(paused() && times("agent.out|") == 1);
    later(&w, 12000);
    CHECK_INT(w.n_restarts, 2);
    w.agents[0].state = AGENT_IDLE;
    restart_ends(&w, OK);
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(strstr(w.feed, "agent.restarted|"));
    w.agents[0].state = AGENT_ERROR; /* the next one */
    CHECK(paused() && times("agent.out|") == 2);
    world_close(&w);
}

TEST(one_that_is_slow_holds_up_and_is_left_alone)
{
    dead_world(3, "", false);
    w.agents[0].state = AGENT_SLOW;
    CHECK(paused() && paused() && times("agent.out|") == 1);
    later(&w, 100000);
    CHECK(w.n_restarts == 0 && times("agent.out|") == 1);
    world_close(&w);
}

TEST(what_is_held_as_before_finds_its_gates_agent_dead)
{
    dead_world(3, "", false);
    revive_look(&w.b, &(struct gate_result){.answer = GATE_PAUSE,
                                            .gate_agent = STR("Rick")});
    turns(&w, 2);
    CHECK_INT(w.n_restarts, 1);
    world_close(&w);
}

TEST(a_restarted_server_goes_on_where_it_was)
{
    struct act *a;

    dead_world(2, "", false);
    a = act_begin(&w, TARGET_IS_DEAD);
    restart_ends(&w, ERR_IO);
    world_again(&w);
    later(&w, 9000);
    CHECK_INT(w.n_restarts, 1);
    later(&w, 2000);
    CHECK_INT(w.n_restarts, 2);
    restart_ends(&w, ERR_IO); /* it has given up */
    world_again(&w);
    later(&w, 100000);
    CHECK_INT(w.n_restarts, 2);
    w.agents[0].state = AGENT_IDLE;
    a->next = *MAY_GO;
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(a->t.status == TASK_QUEUED);
    world_close(&w);
}

TEST(the_agent_of_a_safety_gate_is_restarted_too)
{
    dead_world(3, "", false);
    CHECK(act_begin(&w, &(struct gate_result){.answer = GATE_PAUSE,
                                              .cause = PASS_GATED,
                                              .gate_agent = STR("Rick")}));
    CHECK_INT(w.n_restarts, 1);
    w.agents[0].state = AGENT_IDLE;
    restart_ends(&w, OK);
    later(&w, GATEKEEPER_STATES_MS);
    CHECK(strstr(w.feed, "agent.restarted|"));
    world_close(&w);
}

TEST(many_that_waited_for_one_go_a_few_at_a_time)
{
    dead_world(3, "", false);
    for (int i = 0; i < ACTS_MAX; i++)
        act_begin(&w, TARGET_IS_DEAD)->next = *MAY_GO;
    CHECK_INT(w.n_restarts, 1);
    w.agents[0].state = AGENT_IDLE;
    restart_ends(&w, OK);
    CHECK(w.n_resumed <= ESCALATIONS_PER_TURN);
    later(&w, GATEKEEPER_STATES_MS);
    CHECK_INT(w.b.stats.escalations_open, 0);
    world_close(&w);
}

TEST(a_revival_survives_any_fault)
{
    long nth = 0;
    bool has_fired, was_fatal;

    do {
        struct act *a;

        dead_world(3, "", false);
        a = act_begin(&w, TARGET_IS_DEAD);
        fault_arm(++nth);
        if (w.restarted)
            restart_ends(&w, OK);
        later(&w, GATEKEEPER_STATES_MS);
        w.agents[0].state = AGENT_IDLE;
        a->next = *MAY_GO;
        later(&w, GATEKEEPER_STATES_MS);
        has_fired = fault_fired();
        fault_arm(0);
        was_fatal = w.is_fatal; /* perhaps it was written, perhaps not */
        if (was_fatal)
            world_again(&w);
        later(&w, GATEKEEPER_STATES_MS);
        later(&w, GATEKEEPER_STATES_MS);
        CHECK(was_fatal || a->t.status == TASK_QUEUED);
        CHECK(revive_check(&w.b) && escalations_check(&w.b));
        world_close(&w);
    } while (has_fired);
    CHECK(nth > 2);
}
