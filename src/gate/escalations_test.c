/* Escalations: replies, which one wins, and their effect; reminders and expiry;
 * across restarts, and with any step failing. */
#include "test/lib/control.h"
#include "test/lib/people_stage.h"

static struct world w;

TEST(what_is_approved_goes_on)
{
    struct act *a;
    struct heard h;
    struct shown s;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    s = row_of(&w, a, 0);
    CHECK(s.n == 1 && s.status == ESCALATION_OPEN && s.kind == ESCALATION_RULE);
    CHECK_INT(w.b.stats.escalations_open, 1);
    says(&w, s.id, "bob", ESCALATION_APPROVED, "", &h);
    turns(&w, 3);
    CHECK(h.n == 1 && h.err == OK && a->t.status == TASK_QUEUED);
    s = row_of(&w, a, 0);
    CHECK(s.status == ESCALATION_APPROVED && !strcmp(s.by, "bob") &&
          !strcmp(s.comment, "as I said"));
    CHECK(strstr(w.feed, "escalation.approved|"));
    CHECK_INT(w.b.stats.escalations_open, 0);
    world_close(&w);
}

TEST(what_is_rejected_is_cancelled_and_says_by_whom)
{
    struct act *a;
    struct heard h;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    says(&w, row_of(&w, a, 0).id, "bob", ESCALATION_REJECTED, "", &h);
    turns(&w, 3);
    CHECK(h.n == 1 && h.err == OK && a->t.status == TASK_CANCELLED);
    CHECK(!strcmp(a->error_code, "rejected") && !strcmp(a->by, "bob"));
    CHECK(strstr(a->error, "bob has rejected it: as I said"));
    CHECK(row_of(&w, a, 0).status == ESCALATION_REJECTED);
    world_close(&w);
}

TEST(what_is_redirected_goes_to_another_that_may_have_it)
{
    struct act *a;
    struct heard h;
    struct shown s;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    s = row_of(&w, a, 0);
    says(&w, s.id, "bob", ESCALATION_REDIRECTED, "Jay", &h);
    CHECK(h.err == ERR_BAD_REQUEST && strstr(h.words, "Jay sent it"));
    says(&w, s.id, "bob", ESCALATION_REDIRECTED, "rick", &h);
    CHECK(h.err == ERR_BAD_REQUEST);
    says(&w, s.id, "bob", ESCALATION_REDIRECTED, "unknown", &h);
    CHECK(h.err == ERR_AGENT_NOT_FOUND);
    says(&w, s.id, "bob", ESCALATION_REDIRECTED, "Leroy", &h);
    turns(&w, 3);
    CHECK(h.err == OK && h.n == 1 && !strcmp(a->agent, "Leroy"));
    s = row_of(&w, a, 0);
    CHECK(s.status == ESCALATION_REDIRECTED && !strcmp(s.to, "Leroy"));
    world_close(&w);
}

TEST(of_two_people_the_first_decides_and_the_other_hears_who_it_was)
{
    struct act *a;
    struct heard bob, eve;
    struct shown s;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    s = row_of(&w, a, 0);
    says(&w, s.id, "bob", ESCALATION_REJECTED, "", &bob);
    says(&w, s.id, "eve", ESCALATION_APPROVED, "", &eve);
    CHECK(!bob.n && !eve.n); /* at once */
    turns(&w, 4);
    CHECK(bob.n == 1 && bob.err == OK);
    CHECK(eve.n == 1 && eve.err == ERR_EXISTS);
    CHECK(strstr(eve.words, "bob") && strstr(eve.words, "rejected"));
    says(&w, s.id, "eve", ESCALATION_APPROVED, "", &eve);
    turns(&w, 4);
    CHECK(eve.n == 1 && eve.err == ERR_EXISTS);
    CHECK(strstr(eve.words, "bob") && strstr(eve.words, "rejected"));
    CHECK(a->t.status == TASK_CANCELLED);
    says(&w, "esc_00000000000000000000000000", "eve", ESCALATION_APPROVED, "",
         &eve);
    turns(&w, 4);
    CHECK(eve.err == ERR_NOT_FOUND);
    world_close(&w);
}

/* Another writer changes the row, as another server would. */
static void decide_behind_our_back(const char *id)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_update(&tx, &escalation_table);
    tx_if(op, ESCALATION_ID, IS, value_text(str_of(id)));
    tx_set(op, ESCALATION_STATUS, value_int(ESCALATION_APPROVED));
    tx_set(op, ESCALATION_BY, value_text(STR("eve")));
    tx_set(op, ESCALATION_DECIDED_MS, value_int(1));
    store_submit(w.store, &tx, on_accepted, NULL);
    turns(&w, 2);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

static void decide_twice(enum escalation_status status, struct heard *h)
{
    struct act *a;
    struct shown s;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    s = row_of(&w, a, 0);
    decide_behind_our_back(s.id);
    says(&w, s.id, "bob", status, "", h);
    turns(&w, 5);
}

static void row_decides(void)
{
    struct heard h;

    decide_twice(ESCALATION_APPROVED, &h);
    CHECK(h.n == 1 && h.err == ERR_EXISTS && strstr(h.words, "eve"));
    CHECK(w.acts[0].t.status == TASK_ESCALATED);
    CHECK_INT(w.b.stats.escalations_open, 0); /* it is known now */
    world_close(&w);
    decide_twice(ESCALATION_REJECTED, &h);
    CHECK(h.n == 1 && h.err == ERR_EXISTS && strstr(h.words, "eve"));
    CHECK(!w.acts[0].is_over);
    world_close(&w);
}

TEST(the_row_decides_whatever_memory_thinks)
{
    row_decides();
}

TEST(without_its_guard_two_people_would_decide)
{
    check_control("broker.decide_twice", row_decides);
}

TEST(a_task_that_ends_otherwise_needs_nobody_any_more)
{
    struct act *a;
    struct heard h;
    struct shown s;

    world_open(&w);
    a = act_begin(&w, MUST_BE_SEEN);
    s = row_of(&w, a, 0);
    CHECK(world_end(
              &w, str_of(a->t.id.text),
              &(struct task_result){.status = TASK_CANCELLED, .by = STR("ann")},
              NULL, NULL) == OK);
    says(&w, s.id, "bob", ESCALATION_APPROVED, "", &h); /* meanwhile */
    turns(&w, 5);
    CHECK(h.n == 1 && h.err == ERR_EXISTS);
    s = row_of(&w, a, 0);
    CHECK(s.status == ESCALATION_RESOLVED && !strcmp(s.by, "ann"));
    CHECK(strstr(s.comment, "cancelled"));
    world_close(&w);
}

TEST(people_are_reminded_so_often_and_no_more_also_after_a_restart)
{
    struct act *a;

    world_open(&w);
    w.rules.about.people =
        (struct gate_people){.remind_ms = 1000, .reminders = 3};
    a = act_begin(&w, MUST_BE_SEEN);
    later(&w, 999);
    CHECK_INT(row_of(&w, a, 0).reminded, 0);
    later(&w, 1);
    CHECK_INT(row_of(&w, a, 0).reminded, 1);
    world_again(&w);
    CHECK_INT(w.b.stats.escalations_open, 1);
    later(&w, 5000); /* one reminder, however long it was */
    CHECK_INT(row_of(&w, a, 0).reminded, 2);
    later(&w, 1000);
    CHECK_INT(row_of(&w, a, 0).reminded, 3);
    later(&w, 5000);
    CHECK_INT(row_of(&w, a, 0).reminded, 3);
    CHECK(strstr(w.feed, "escalation.reminded|escalation.reminded|"
                         "escalation.reminded|"));
    world_close(&w);
}

TEST(a_clock_that_is_set_moves_no_reminder)
{
    struct act *a;

    world_open(&w);
    w.rules.about.people = (struct gate_people){.remind_ms = 1000,
                                                .reminders = 9,
                                                .expire_ms = 10000,
                                                .on_expiry = PEOPLE_REJECT};
    a = act_begin(&w, MUST_BE_SEEN);
    w.time.wall_ms -= 24 * 3600 * 1000;
    later(&w, 1000);
    CHECK_INT(row_of(&w, a, 0).reminded, 1);
    world_again(&w); /* nor does one that was set while it was away */
    later(&w, 1000);
    CHECK_INT(row_of(&w, a, 0).reminded, 2);
    w.time.wall_ms += 48 * 3600 * 1000;
    later(&w, 999);
    CHECK_INT(row_of(&w, a, 0).reminded, 2);
    later(&w, 1);
    CHECK_INT(row_of(&w, a, 0).reminded, 3);
    later(&w, 10000);
    CHECK_INT(row_of(&w, a, 0).status, ESCALATION_RAN_OUT);
    world_close(&w);
}

static void run_out(enum people_expiry how, const char *backup)
{
    world_open(&w);
    w.agents[0].backup = str_of(backup);
    w.rules.about.people =
        (struct gate_people){.expire_ms = 60000, .on_expiry = how};
    CHECK(act_begin(&w, MUST_BE_SEEN));
    world_again(&w);
    later(&w, 59000);
    CHECK_INT(row_of(&w, &w.acts[0], 0).status, ESCALATION_OPEN);
    later(&w, 1000);
    CHECK_INT(row_of(&w, &w.acts[0], 0).status, ESCALATION_RAN_OUT);
    CHECK(strstr(w.feed, "escalation.expired|"));
}

TEST(what_nobody_answers_runs_out_as_the_rules_say)
{
    run_out(PEOPLE_REJECT, "");
    CHECK(w.acts[0].is_over && !strcmp(w.acts[0].error_code, "rejected"));
    world_close(&w);
    run_out(PEOPLE_APPROVE, "");
    CHECK(w.acts[0].t.status == TASK_QUEUED);
    world_close(&w);
    run_out(PEOPLE_REDIRECT, "Leroy");
    CHECK(w.acts[0].t.status == TASK_QUEUED &&
          !strcmp(w.acts[0].agent, "Leroy"));
    world_close(&w);
    run_out(PEOPLE_REDIRECT, ""); /* no backup */
    CHECK(w.acts[0].is_over);
    world_close(&w);
}

TEST(one_that_is_let_go_and_must_be_seen_is_asked_about)
{
    struct act *a;

    world_open(&w);
    a = act_begin(&w, &(struct gate_result){.answer = GATE_HOLD_INPUT});
    CHECK_INT(row_of(&w, a, 0).n, 0);
    a->next =
        (struct gate_result){.answer = GATE_ESCALATE, .cause = PASS_EXPIRED};
    world_ripe(&w, str_of(a->t.id.text));
    turns(&w, 3);
    CHECK(row_of(&w, a, 0).kind == ESCALATION_EXPIRED &&
          a->t.status == TASK_ESCALATED);
    CHECK_INT(w.b.stats.escalations_open, 1);
    world_close(&w);
}

TEST(so_many_are_open_and_what_comes_beyond_is_refused)
{
    struct escalation *all = calloc(ESCALATIONS_OPEN_MAX, sizeof(*all));
    struct act *a;

    CHECK(all);
    world_open(&w);
    for (int i = 0; i < ESCALATIONS_OPEN_MAX - 1; i++) {
        snprintf(all[i].id.text, sizeof(all[i].id.text), "esc_%d", i);
        CHECK(map_put(&w.b.escalations->by_id, str_of(all[i].id.text),
                      &all[i]) == OK);
    }
    a = act_begin(&w, MUST_BE_SEEN);
    CHECK(a && !act_begin(&w, MUST_BE_SEEN));
    for (int i = 0; i < ESCALATIONS_OPEN_MAX - 1; i++)
        map_take(&w.b.escalations->by_id, str_of(all[i].id.text));
    CHECK(act_begin(&w, MUST_BE_SEEN));
    world_close(&w);
    free(all);
}

TEST(so_many_words_are_on_their_way_for_one)
{
    struct heard h[ESCALATION_REPLIES_MAX + 1];
    struct shown s;

    world_open(&w);
    s = row_of(&w, act_begin(&w, MUST_BE_SEEN), 0);
    for (int i = 0; i <= ESCALATION_REPLIES_MAX; i++)
        says(&w, s.id, "bob", ESCALATION_APPROVED, "", &h[i]);
    CHECK(h[ESCALATION_REPLIES_MAX].n == 1 &&
          h[ESCALATION_REPLIES_MAX].err == ERR_BUSY);
    turns(&w, 5);
    CHECK(h[0].err == OK && h[ESCALATION_REPLIES_MAX - 1].err == ERR_EXISTS);
    world_close(&w);
}

TEST(pauses_outlive_a_restart)
{
    struct heard h = {.n = 0};
    int64_t at_ms;

    world_open(&w);
    gatekeeper_pause(&w.b, STR("Rick"), true, STR("bob"), on_heard, &h);
    turns(&w, 2);
    CHECK(h.err == OK && w.n_paused == 1);
    CHECK_STR(str_of(w.paused_by), "bob");
    at_ms = w.paused_ms;
    CHECK(at_ms == loop_wall_ms(&w.loop));
    w.n_paused = 0;
    w.paused_by[0] = '\0';
    w.paused_ms = 0;
    world_again(&w);
    CHECK_INT(w.n_paused, 1);
    CHECK_STR(str_of(w.paused_by), "bob");
    CHECK(w.paused_ms == at_ms);
    gatekeeper_pause(&w.b, STR("rick"), false, STR("bob"), on_heard, &h);
    turns(&w, 2);
    CHECK_INT(w.n_paused, 0);
    world_again(&w);
    CHECK_INT(w.n_paused, 0);
    CHECK(strstr(w.feed, "agent.paused|agent.resumed|"));
    world_close(&w);
}

/* Whatever fails: a reported decision is real, and others can be retried. */
TEST(any_step_of_deciding_can_fail)
{
    long nth = 0;
    bool has_fired;

    do {
        struct act *a;
        struct heard h;
        struct shown s;
        enum escalation_status status =
            nth % 2 ? ESCALATION_APPROVED : ESCALATION_REJECTED;

        world_open(&w);
        fault_arm(++nth);
        a = act_begin(&w, MUST_BE_SEEN);
        if (a) {
            snprintf(s.id, sizeof(s.id), "%s",
                     escalation_of(&w.b, str_of(a->t.id.text))->id.text);
            says(&w, s.id, "bob", status, "", &h);
            turns(&w, 6);
            has_fired = fault_fired();
            fault_arm(0);
            CHECK(h.n == 1 && (h.err == OK || has_fired));
            if (w.is_fatal) {
                world_again(&w); /* whatever was decided is complete */
                world_close(&w);
                continue;
            }
            if (h.err) {
                says(&w, s.id, "bob", status, "", &h);
                turns(&w, 6);
                CHECK(h.n == 1 && h.err == OK);
            }
            CHECK_INT(row_of(&w, a, 0).status, status);
            CHECK(a->t.status != TASK_ESCALATED);
        } else {
            has_fired = fault_fired();
            fault_arm(0);
            CHECK(has_fired);
        }
        CHECK_INT(w.b.stats.escalations_open, 0);
        world_close(&w);
    } while (has_fired);
    CHECK(nth > 6);
}
