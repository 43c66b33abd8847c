/* Held messages are let go when their condition is met: in order, once, and
 * across restarts. */
#include "test/lib/gatekeeper_stage.h"

static const char em[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"
    "'duplicates': [{'rule': 'again', 'within': '10m'}],"
    "'safety_gates': [{'rule': 'z-gate', 'agent': 'Z', 'match':"
    " {'type': 'SUBMISSION'}, 'hold_for': '1h', 'on_expiry': 'route'}],"
    "'dependencies': [{'rule': 'order', 'match': {'to': 'Rick', 'type':"
    " 'ORDER'}, 'after': [{'type': 'SUBMITTED', 'from': 'Jay'}, {'type':"
    " 'RESULT', 'from': 'Z', 'approved': true}], 'hold_for': '2h'}],"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Leroy'}, 'queue': 2,"
    " 'hold_for': '1h'}],"
    "'holds': {'most': 6, 'most_per_agent': 5}}";

static void agents(void)
{
    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_agent("Leroy");
}

static void open_em(void)
{
    agents();
    stage_open(em);
}

TEST(a_message_that_may_go_is_carried_and_nothing_is_held)
{
    struct sent s;

    open_em();
    s = sent("Jay", "Z", "REQUEST", "R-1");
    CHECK_INT(s.gate_result.answer, GATE_ROUTE);
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    CHECK_INT(rows_of(&hold_table), 0);
    CHECK_INT(feed_of("gate.routed"), 1);
    stage_close();
}

TEST(a_plain_message_without_rules_writes_no_row_of_the_broker)
{
    struct sent s;

    agents();
    stage_open(NULL);
    s = send_letter(&(struct letter){
        .from = "ann", .to = "Z", .is_plain = true, .priority = 2});
    CHECK_INT(s.err, OK);
    CHECK_INT(rows_of(&hold_table) + rows_of(&event_table), 0);
    CHECK_INT(feed_of("gate.routed"), 0);
    stage_close();
}

TEST(what_must_have_happened_lets_it_go_when_it_has)
{
    struct sent order, asked, submitted;

    open_em();
    order = sent("Jay", "Rick", "ORDER", "R-1");
    CHECK_INT(order.gate_result.answer, GATE_HOLD_INPUT);
    CHECK_INT(status_of(&order.id), TASK_HELD);
    CHECK_INT(rows_of(&hold_table), 1);
    submitted = sent("Jay", "Leroy", "SUBMITTED", "R-1");
    CHECK_INT(submitted.gate_result.answer, GATE_ROUTE);
    rest();
    CHECK_INT(status_of(&order.id), TASK_HELD);
    asked = sent("Jay", "Z", "REQUEST", "R-1");
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":true}");
    CHECK_INT(status_of(&order.id), TASK_QUEUED);
    CHECK_INT(rows_of(&hold_table), 0);
    CHECK_INT(feed_of("gate.released"), 1);
    stage_close();
}

TEST(a_result_that_disapproves_lets_nothing_go)
{
    struct sent order, asked;

    open_em();
    sent("Jay", "Leroy", "SUBMITTED", "R-1");
    order = sent("Jay", "Rick", "ORDER", "R-1");
    asked = sent("Jay", "Z", "REQUEST", "R-1");
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":false}");
    CHECK_INT(status_of(&order.id), TASK_HELD);
    asked = sent("Jay", "Z", "REQUEST", "R-1b");
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":true}");
    CHECK_INT(status_of(&order.id), TASK_HELD); /* of another reference */
    asked = sent("Jay", "Z", "CHECK", "R-1");
    ends(&asked.id, TASK_COMPLETED, "{\"payload\":{\"approved\":true}}");
    CHECK_INT(status_of(&order.id), TASK_QUEUED);
    stage_close();
}

TEST(what_is_paused_goes_in_order_when_the_agent_is_back)
{
    struct sent a, b, c, other;

    open_em();
    stage_agent("Z")->state = AGENT_DEAD;
    a = sent("Jay", "Rick", "SUBMISSION", "R-1");
    b = sent("Jay", "Rick", "SUBMISSION", "R-2");
    c = sent("Jay", "Leroy", "SUBMISSION", "R-3");
    other = sent("Jay", "Rick", "NOTE", "R-4");
    CHECK_INT(a.gate_result.answer, GATE_PAUSE);
    CHECK_INT(other.gate_result.answer, GATE_ROUTE);
    pass_ms(5000);
    CHECK_INT(status_of(&a.id), TASK_HELD);
    stage.n_ready = 0;
    stage_agent("Z")->state = AGENT_IDLE;
    pass_ms(GATEKEEPER_STATES_MS);
    CHECK_INT(stage.n_ready, 3);
    CHECK_STR(str_of(stage.ready[0].text), a.id.text);
    CHECK_STR(str_of(stage.ready[1].text), b.id.text);
    CHECK_STR(str_of(stage.ready[2].text), c.id.text);
    CHECK_INT(rows_of(&hold_table), 0);
    stage_close();
}

TEST(only_as_many_are_let_go_as_there_is_room_for)
{
    struct sent s[7];
    char reference[8];

    open_em();
    for (int i = 0; i < 7; i++) {
        snprintf(reference, sizeof(reference), "R-%d", i);
        s[i] = sent("Jay", "Leroy", "REQUEST", reference);
        CHECK_INT(s[i].gate_result.answer,
                  i < 2 ? GATE_ROUTE : GATE_HOLD_CAPACITY);
    }
    rest();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 5);
    ends(&s[1].id, TASK_COMPLETED, "");
    CHECK_INT(status_of(&s[2].id), TASK_QUEUED);
    CHECK_INT(status_of(&s[3].id), TASK_HELD);
    ends(&s[0].id, TASK_FAILED, "");
    CHECK_INT(status_of(&s[3].id), TASK_QUEUED);
    CHECK_INT(status_of(&s[4].id), TASK_HELD);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).released_total, 2);
    stage_close();
}

TEST(whoever_comes_new_does_not_overtake_who_waits_for_room)
{
    struct sent first, second, waits, late;

    open_em();
    first = sent("Jay", "Leroy", "REQUEST", "R-1");
    second = sent("Jay", "Leroy", "REQUEST", "R-2");
    waits = sent("Jay", "Leroy", "REQUEST", "R-3");
    rest();
    stage_on_end(NULL, str_of(first.id.text),
                 &(struct task_result){.status = TASK_COMPLETED});
    store_turn(stage.store); /* there is room, and no look yet */
    late = sent("Jay", "Leroy", "REQUEST", "R-4");
    CHECK_INT(late.gate_result.answer, GATE_HOLD_CAPACITY);
    rest();
    CHECK_INT(status_of(&waits.id), TASK_QUEUED);
    CHECK_INT(status_of(&late.id), TASK_HELD);
    (void)second;
    stage_close();
}

TEST(an_urgent_one_is_behind_nobody)
{
    struct sent s;

    open_em();
    for (int i = 0; i < 3; i++)
        sent("Jay", "Leroy", "REQUEST", i == 0 ? "a" : i == 1 ? "b" : "c");
    s = send_letter(&(struct letter){.from = "Jay",
                                     .to = "Leroy",
                                     .type = "REQUEST",
                                     .reference = "c",
                                     .payload = "{\"x\":1}",
                                     .priority = PRIORITY_URGENT});
    CHECK_INT(s.gate_result.answer, GATE_ROUTE);
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    rest();
    CHECK(stage.n_ready == 3); /* two of three, and this one */
    stage_close();
}

TEST(more_than_may_be_held_is_refused)
{
    char reference[8];
    struct sent s;

    open_em();
    for (int i = 0; i < 7; i++) {
        snprintf(reference, sizeof(reference), "R-%d", i);
        sent("Jay", "Leroy", "REQUEST", reference);
    }
    s = send_letter(&(struct letter){.from = "Jay",
                                     .to = "Leroy",
                                     .reference = "R-8",
                                     .priority = PRIORITY_NORMAL});
    CHECK_INT(s.err, ERR_AGENT_BUSY); /* five of one agent */
    sent("Jay", "Rick", "ORDER", "R-1");
    s = send_letter(&(struct letter){.from = "Jay",
                                     .to = "Rick",
                                     .type = "ORDER",
                                     .reference = "R-2",
                                     .priority = PRIORITY_NORMAL});
    CHECK_INT(s.err, ERR_AGENT_BUSY); /* six of all */
    CHECK(gatekeeper_check(stage.gatekeeper));
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held_most, 6);
    stage_close();
}

TEST(a_repeat_is_dropped_however_soon_it_comes)
{
    struct letter l = {.from = "Jay",
                       .to = "Z",
                       .reference = "R-1",
                       .priority = PRIORITY_NORMAL};
    struct msg *a, *b;

    open_em();
    a = letter(&l);
    b = letter(&l);
    CHECK_INT(begin_letter(a), OK);
    CHECK_INT(begin_letter(b), OK);
    CHECK_INT(b->gate.gate_result.answer, GATE_DROP);
    CHECK_STR(b->gate.gate_result.repeats, a->task.message_id.text);
    store_turn(stage.store);
    CHECK_INT(b->err, OK);
    CHECK_INT(status_of(&b->task.id), TASK_DROPPED);
    CHECK_INT(feed_of("gate.dropped"), 1);
    CHECK(gatekeeper_check(stage.gatekeeper));
    msg_free(a);
    msg_free(b);
    stage_close();
}

static void only_settle(struct tx *tx, void *ctx)
{
    struct msg *m = ctx;

    (void)tx;
    m->way.route_tries = gatekeeper_is_overtaken(m);
    task_settle(stage.tasks, m);
    gatekeeper_settle(stage.gatekeeper, m);
}

TEST(a_repeat_of_what_did_not_come_to_be_is_not_dropped)
{
    struct letter l = {.from = "Jay",
                       .to = "Z",
                       .reference = "R-1",
                       .priority = PRIORITY_NORMAL};
    struct msg *a, *b;
    struct agent z = {.name = STR("Z")};

    open_em();
    a = letter(&l);
    b = letter(&l);
    CHECK_INT(gatekeeper_ask(stage.gatekeeper, a, &z), OK);
    CHECK_INT(task_create(stage.tasks, a, NULL), OK);
    gatekeeper_record(stage.gatekeeper, a);
    a->tx.build_error = ERR_NOMEM;
    store_submit(stage.store, &a->tx, only_settle, a);
    CHECK_INT(gatekeeper_ask(stage.gatekeeper, b, &z), OK);
    CHECK_INT(b->gate.gate_result.answer, GATE_DROP);
    CHECK_INT(task_create(stage.tasks, b, NULL), OK);
    gatekeeper_record(stage.gatekeeper, b);
    store_submit(stage.store, &b->tx, only_settle, b);
    store_turn(stage.store);
    CHECK(a->err && b->err);
    CHECK(b->way.route_tries); /* it is decided again */
    CHECK(gatekeeper_check(stage.gatekeeper));
    CHECK_INT(gatekeeper_ask(stage.gatekeeper, b, &z), OK);
    CHECK_INT(b->gate.gate_result.answer, GATE_ROUTE);
    gatekeeper_leave(stage.gatekeeper, b);
    msg_free(a);
    msg_free(b);
    stage_close();
}

TEST(a_restart_knows_what_is_held_and_what_happened)
{
    struct sent order, asked, repeat;

    open_em();
    order = sent("Jay", "Rick", "ORDER", "R-1");
    sent("Jay", "Leroy", "SUBMITTED", "R-1");
    stage_stop();
    stage_start();
    rest();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 1);
    CHECK_INT(status_of(&order.id), TASK_HELD);
    repeat = sent("Jay", "Leroy", "SUBMITTED", "R-1");
    CHECK_INT(repeat.gate_result.answer, GATE_DROP);
    asked = sent("Jay", "Z", "REQUEST", "R-1");
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":true}");
    CHECK_INT(status_of(&order.id), TASK_QUEUED);
    stage_close();
}

TEST(what_changed_while_nobody_looked_is_seen_after_a_restart)
{
    struct sent s;

    open_em();
    stage_agent("Z")->state = AGENT_ERROR;
    s = sent("Jay", "Rick", "SUBMISSION", "R-1");
    stage_stop();
    stage_agent("Z")->state = AGENT_IDLE;
    stage_start();
    rest();
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    stage_close();
}

TEST(a_hold_that_runs_out_ends_visibly)
{
    struct sent s;

    open_em();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    pass_ms(2 * 3600 * 1000 - 1);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    pass_ms(1);
    CHECK_INT(status_of(&s.id), TASK_EXPIRED);
    CHECK_INT(rows_of(&hold_table), 0);
    CHECK_INT(feed_of("gate.expired"), 1);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).expired_total, 1);
    stage_close();
}

TEST(waiting_for_long_does_not_pass_a_safety_gate)
{
    struct sent s;

    open_em();
    stage_agent("Z")->state = AGENT_DEAD;
    s = sent("Jay", "Rick", "SUBMISSION", "R-1");
    pass_ms(3600 * 1000);
    CHECK_INT(status_of(&s.id), TASK_ESCALATED);
    CHECK_INT(rows_of(&hold_table), 0);
    stage_close();
}

TEST(a_clock_that_is_set_back_gives_no_more_than_the_whole_time)
{
    struct sent s;

    open_em();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    stage_stop();
    stage.now.wall_ms -= 500000;
    stage.loop.is_fresh = false;
    stage_start();
    pass_ms(2 * 3600 * 1000 - 1);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    pass_ms(1);
    CHECK_INT(status_of(&s.id), TASK_EXPIRED);
    stage_close();
}

TEST(a_clock_that_jumps_while_running_changes_nothing)
{
    struct sent s;

    open_em();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    stage.now.wall_ms -= 900000;
    pass_ms(3600 * 1000);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    pass_ms(3600 * 1000);
    CHECK_INT(status_of(&s.id), TASK_EXPIRED);
    stage_close();
}

TEST(a_held_one_that_is_cancelled_is_gone_and_the_next_has_its_turn)
{
    struct sent a, b;

    open_em();
    a = sent("Jay", "Rick", "ORDER", "R-1");
    b = send_letter(&(struct letter){.from = "Jay",
                                     .to = "Rick",
                                     .type = "ORDER",
                                     .reference = "R-1",
                                     .payload = "{\"n\":2}",
                                     .priority = PRIORITY_NORMAL});
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 2);
    ends(&a.id, TASK_CANCELLED, "");
    CHECK_INT(status_of(&a.id), TASK_CANCELLED);
    CHECK_INT(status_of(&b.id), TASK_HELD);
    CHECK_INT(rows_of(&hold_table), 1);
    stage_close();
}

TEST(other_rules_look_at_everything_again)
{
    struct sent s;
    struct gate_rules *old;

    open_em();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    rest();
    old = stage.rules;
    stage.rules = rules_of("{'agents': {'Jay': {}}}");
    gatekeeper_set_rules(stage.gatekeeper, stage.rules);
    gate_rules_free(old);
    rest();
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    stage_close();
}

TEST(lists_go_by_place_and_say_what_each_waits_for)
{
    struct held held[4];
    struct buf key;

    open_em();
    sent("Jay", "Rick", "ORDER", "R-1");
    sent("Jay", "Rick", "ORDER", "R-2");
    CHECK_INT(stage_holds(0, held, 4), 2);
    CHECK_STR(held[0].reference, "R-1");
    CHECK_STR(held[0].rule, "order");
    CHECK(held[0].until_ms - held[0].since_ms == 2 * 3600 * 1000);
    CHECK(held[0].n_keys == 2);
    buf_init(&key, 100);
    wait_key_write(&held[0].keys[0], &key);
    CHECK_STR(buf_str(&key), "event:R-1:SUBMITTED");
    buf_fini(&key);
    CHECK_INT(stage_holds(held[0].place, held, 4), 1);
    CHECK_STR(held[0].reference, "R-2");
    stage_close();
}

TEST(what_happened_for_somebody_else_does_not_count)
{
    struct sent order, asked;

    open_em();
    order = sent("Jay", "Rick", "ORDER", "R-1");
    sent("Jay", "Leroy", "SUBMITTED", "R-1");
    asked = sent("Stranger", "Z", "REQUEST", "R-1");
    ends(&asked.id, TASK_COMPLETED, "{\"approved\":true}");
    CHECK_INT(status_of(&order.id), TASK_HELD);
    stage_close();
}

static struct past_event event_of_nr(int nr, char *reference)
{
    snprintf(reference, 16, "R-%d", nr);
    return (struct past_event){
        .reference = str_of(reference),
        .e = {.from = STR("Jay"), .type = STR("X"), .at_ms = nr}};
}

TEST(beyond_the_limit_the_oldest_events_are_forgotten)
{
    struct gate_event out[GATE_EVENTS_MAX];
    uint64_t seed[2] = {1, 2};
    char reference[16];
    struct past_event e;
    struct past p;

    past_init(&p, seed);
    p.max_events = 3;
    for (int i = 0; i < 4; i++) {
        e = event_of_nr(i, reference);
        CHECK_INT(past_add_event(&p, &e, 100), OK);
        CHECK(past_check(&p));
    }
    CHECK_INT(p.n_events, 3);
    CHECK_INT(p.forgotten_total, 1);
    CHECK_INT(past_events(&p, STR(""), STR("R-0"), out, GATE_EVENTS_MAX), 0);
    CHECK_INT(past_events(&p, STR(""), STR("R-3"), out, GATE_EVENTS_MAX), 1);
    past_forget(&p, 100, 2);
    CHECK_INT(p.n_events, 1);
    past_fini(&p);
}

TEST(of_one_reference_the_newest_count)
{
    struct gate_event out[GATE_EVENTS_MAX];
    uint64_t seed[2] = {1, 2};
    char reference[16];
    struct past_event e;
    struct past p;

    past_init(&p, seed);
    for (int i = 0; i < GATE_EVENTS_MAX + 5; i++) {
        e = event_of_nr(i, reference);
        e.reference = STR("same");
        CHECK_INT(past_add_event(&p, &e, 100), OK);
    }
    CHECK(past_check(&p));
    CHECK_INT(past_events(&p, STR(""), STR("same"), out, GATE_EVENTS_MAX),
              GATE_EVENTS_MAX);
    CHECK_INT(out[0].at_ms, 5);
    CHECK_INT(past_events(&p, STR(""), STR("same"), out, 2), 2);
    CHECK_INT(out[1].at_ms, GATE_EVENTS_MAX + 4);
    past_fini(&p);
}

TEST(beyond_the_limit_the_keys_that_end_first_are_forgotten)
{
    uint64_t seed[2] = {1, 2};
    struct gate_seen seen;
    struct past p;

    past_init(&p, seed);
    p.max_keys = 2;
    for (uint64_t i = 1; i <= 3; i++) {
        struct gate_key key = {.bits = {i, i}};

        CHECK_INT(
            past_mark(&p, &key, 10, 100 - (int64_t)i, STR("msg_1"), STR("R")),
            OK);
        CHECK(past_check(&p));
    }
    CHECK_INT(p.keys.n, 2);
    CHECK(past_seen(&p, &(struct gate_key){.bits = {1, 1}}, 20, &seen));
    CHECK(!past_seen(&p, &(struct gate_key){.bits = {2, 2}}, 20, &seen));
    CHECK(!past_seen(&p, &(struct gate_key){.bits = {1, 1}}, 99, &seen));
    past_forget(&p, 99, 10);
    CHECK_INT(p.keys.n, 0);
    past_fini(&p);
}
