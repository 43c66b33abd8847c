/* Messages that waited for room go as one task, and each ends with the
 * batch. */
#include "test/lib/control.h"
#include "test/lib/gatekeeper_stage.h"

static const char rules[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}},"
    "'safety_gates': [{'rule': 'gate', 'agent': 'Z', 'match': {'type':"
    " 'SUBMISSION'}}],"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Rick'}, 'queue': 1,"
    " 'hold_for': '1h', 'batch': {'most': 3}}]}";

static struct sent first, members[5];

static void hold_five(void)
{
    static const char *const references[] = {"A", "B", "C", "D", "E"};

    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_open(rules);
    first = sent("Jay", "Rick", "REQUEST", "R-0");
    for (int i = 0; i < 5; i++) {
        members[i] = sent("Jay", "Rick", "REQUEST", references[i]);
        CHECK_INT(members[i].gate_result.answer, GATE_HOLD_CAPACITY);
    }
    rest();
}

/* The batch task: the newest that is ready. */
static struct id batch_of(const struct id *id)
{
    const struct hold *h = hold_find(stage.gatekeeper, str_of(id->text));

    CHECK(h && h->batch.text[0]);
    return h->batch;
}

TEST(those_that_waited_go_as_one_and_end_with_it)
{
    const struct task *t;
    struct id batch;

    hold_five();
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    CHECK_INT(status_of(&batch), TASK_QUEUED);
    CHECK_STR(str_of(batch_of(&members[2].id).text), batch.text);
    CHECK(!hold_find(stage.gatekeeper, str_of(members[3].id.text))
               ->batch.text[0]);
    CHECK_INT(status_of(&members[0].id), TASK_QUEUED);
    CHECK_INT(status_of(&members[3].id), TASK_HELD);
    t = task_find(stage.tasks, str_of(batch.text));
    CHECK(t->is_envelope && strstr(t->text.p, "\"type\":\"BATCH\""));
    CHECK(strstr(t->text.p, "\"reference\":\"C\""));
    ends(&batch, TASK_COMPLETED, "");
    rest();
    for (int i = 0; i < 3; i++)
        CHECK_INT(status_of(&members[i].id), TASK_COMPLETED);
    batch = batch_of(&members[3].id); /* and the next two */
    CHECK_INT(rows_of(&hold_table), 2);
    ends(&batch, TASK_FAILED, "");
    CHECK_INT(status_of(&members[3].id), TASK_FAILED);
    CHECK_INT(status_of(&members[4].id), TASK_FAILED);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 0);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).released_total, 5);
    stage_close();
}

static void check_members(enum task_status want)
{
    for (int i = 0; i < 3; i++)
        CHECK_INT(status_of(&members[i].id), want);
    CHECK(tasks_check(stage.tasks) && gatekeeper_check(stage.gatekeeper));
}

static void check_by_status(enum task_status s, int64_t want)
{
    CHECK_INT(tasks_stats(stage.tasks).by_status[s], want);
}

/* The status of the three members, and the statistics. */
static void follow_batch(void)
{
    struct id batch;
    struct str id;

    hold_five();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 5);
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    id = str_of(batch.text);
    check_members(TASK_QUEUED);
    check_by_status(TASK_HELD, 2);
    check_by_status(TASK_QUEUED, 4);
    task_move(stage.tasks, id, TASK_DISPATCHED);
    check_members(TASK_DISPATCHED);
    check_by_status(TASK_DISPATCHED, 4);
    CHECK_INT(status_of(&members[3].id), TASK_HELD);
    task_move(stage.tasks, id, TASK_WORKING);
    check_members(TASK_DISPATCHED);
    task_move(stage.tasks, id, TASK_QUEUED); /* it is tried again */
    check_members(TASK_QUEUED);
    rest();
    stage_stop();
    stage_start();
    check_members(TASK_QUEUED);
    rest();
    /* After a restart the attempt is counted before it begins. */
    CHECK(!task_move(stage.tasks, id, TASK_DISPATCHED));
    rest();
    CHECK(task_move(stage.tasks, id, TASK_DISPATCHED));
    check_members(TASK_DISPATCHED);
    ends(&members[1].id, TASK_CANCELLED, "");
    check_by_status(TASK_DISPATCHED, 3);
    ends(&batch, TASK_COMPLETED, "");
    rest();
    CHECK_INT(status_of(&members[0].id), TASK_COMPLETED);
    check_by_status(TASK_DISPATCHED, 0);
    stage_close();
}

TEST(members_are_where_their_batch_is)
{
    follow_batch();
}

TEST(members_that_stay_held_are_noticed)
{
    check_control("broker.batch_stays_held", follow_batch);
}

TEST(what_was_let_go_counts_as_held_no_more)
{
    struct caller user = {.role = ROLE_USER};
    struct held list[8];
    struct id batch;

    hold_five();
    snprintf(user.principal, sizeof(user.principal), "%.*s",
             STR_ARG(hold_find(stage.gatekeeper, str_of(members[0].id.text))
                         ->requester));
    ends(&first.id, TASK_COMPLETED, "");
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 2);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).released_total, 3);
    CHECK_INT(gatekeeper_held_for(stage.gatekeeper, STR("Rick")), 2);
    CHECK_INT(stage_holds(0, list, 8), 2);
    CHECK_STR(str_of(list[0].task_id.text), members[3].id.text);
    CHECK_INT(gatekeeper_waiting(stage.gatekeeper, &user).held, 2);
    stage_stop();
    stage_start();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 2);
    CHECK_INT(gatekeeper_held_for(stage.gatekeeper, STR("Rick")), 2);
    rest();
    batch = batch_of(&members[0].id);
    ends(&batch, TASK_COMPLETED, "");
    rest();
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 0); /* the next two */
    CHECK_INT(gatekeeper_held_for(stage.gatekeeper, STR("Rick")), 0);
    stage_close();
}

/* holds.most_per_agent limits what is held; members of a batch are not. */
TEST(members_leave_room_for_others_to_be_held)
{
    struct sent s;

    stage_agent("Jay");
    stage_agent("Rick");
    stage_open("{'agents': {'Jay': {}, 'Rick': {}}, 'holds':"
               " {'most_per_agent': 2}, 'capacity': [{'rule': 'room', 'match':"
               " {'to': 'Rick'}, 'queue': 1, 'hold_for': '1h', 'batch':"
               " {'most': 3}}]}");
    first = sent("Jay", "Rick", "REQUEST", "R-0");
    members[0] = sent("Jay", "Rick", "REQUEST", "A");
    members[1] = sent("Jay", "Rick", "REQUEST", "B");
    rest();
    ends(&first.id, TASK_COMPLETED, "");
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 0);
    for (int i = 0; i < 2; i++) {
        s = sent("Jay", "Rick", "REQUEST", i ? "C" : "D");
        CHECK_INT(s.gate_result.answer, GATE_HOLD_CAPACITY);
    }
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 2);
    stage_close();
}

TEST(each_is_told_of_as_let_go_and_knows_its_batch)
{
    struct query q;
    struct id batch;
    size_t n = 0;

    hold_five();
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    query_init(&q, &feed_table, 100);
    query_if(&q, FEED_TYPE, IS, value_text(STR("gate.released")));
    query_order(&q, FEED_SEQ, false);
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    {
        struct str data = row_str(r, FEED_DATA);

        CHECK_STR(row_str(r, FEED_TASK_ID), members[n++].id.text);
        CHECK(memmem(data.p, data.n, batch.text, strlen(batch.text)));
        CHECK(memmem(data.p, data.n, "\"status\":\"queued\"", 17));
    }
    CHECK_INT(n, 3);
    query_fini(&q);
    ends(&batch, TASK_EXPIRED, ""); /* this ends no hold a second time */
    CHECK_INT(status_of(&members[0].id), TASK_EXPIRED);
    CHECK_INT(feed_of("gate.expired"), 0);
    CHECK_INT(gatekeeper_stats(stage.gatekeeper).expired_total, 0);
    stage_close();
}

TEST(a_batch_overtakes_nobody_of_an_order)
{
    struct sent seen, behind, a, b;

    stage_agent("Jay");
    stage_agent("Rick");
    stage_open("{'agents': {'Jay': {}, 'Rick': {}}, 'escalations': [{'rule':"
               " 'low', 'match': {'type': 'LOW'}}], 'capacity': [{'rule':"
               " 'room', 'match': {'to': 'Rick'}, 'queue': 1, 'hold_for':"
               " '1h', 'batch': {'most': 3}}]}");
    first = sent("Jay", "Rick", "REQUEST", "R-0");
    seen = sent("Jay", "Rick", "LOW", "R-1");
    a = sent("Jay", "Rick", "REQUEST", "R-2");
    behind = sent("Jay", "Rick", "REQUEST", "R-1");
    b = sent("Jay", "Rick", "REQUEST", "R-3");
    CHECK_INT(status_of(&seen.id), TASK_ESCALATED);
    rest();
    ends(&first.id, TASK_COMPLETED, "");
    CHECK_STR(str_of(batch_of(&a.id).text), batch_of(&b.id).text);
    CHECK(!hold_find(stage.gatekeeper, str_of(behind.id.text))->batch.text[0]);
    stage_close();
}

static struct str result_text(const struct id *id, struct query *q)
{
    query_init(q, &task_table, 1);
    query_if(q, TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, q), OK);
    return row_str(q->rows, TASK_RESULT_TEXT);
}

/* The item's task id, as the agent of the batch sees it. */
static struct str task_of_item(const struct json *items, size_t i)
{
    JSON_EACH(item, items)
    {
        if (!i--)
            return json_str_or(json_get(item, STR("task_id")), STR(""));
    }
    return STR("");
}

TEST(an_agent_may_say_of_each_what_came_of_it)
{
    char metadata[400];
    const struct json *text, *items;
    struct arena arena;
    struct query q;
    struct id batch;

    hold_five();
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    arena_init(&arena, 1 << 20);
    text = json_parse(&arena, task_find(stage.tasks, str_of(batch.text))->text,
                      0, NULL);
    items = json_get(json_get(text, STR("payload")), STR("items"));
    CHECK_STR(task_of_item(items, 2), members[2].id.text);
    snprintf(metadata, sizeof(metadata),
             "{\"results\":{\"%.*s\":\"yours\",\"%.*s\":{\"error\":\"no\"}}}",
             STR_ARG(task_of_item(items, 0)), STR_ARG(task_of_item(items, 1)));
    arena_fini(&arena);
    ends(&batch, TASK_COMPLETED, metadata);
    rest();
    CHECK_STR(result_text(&members[0].id, &q), "yours");
    query_fini(&q);
    CHECK_INT(status_of(&members[1].id), TASK_FAILED);
    CHECK_STR(result_text(&members[2].id, &q),
              "done"); /* the result of the whole batch */
    query_fini(&q);
    stage_close();
}

TEST(a_restart_while_a_batch_is_out_and_when_it_is_over)
{
    struct id batch;

    hold_five();
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    stage_stop();
    stage_start();
    rest();
    CHECK_INT(status_of(&members[0].id), TASK_QUEUED);
    CHECK_STR(str_of(batch_of(&members[1].id).text), batch.text);
    pass_ms(2 * 3600 * 1000); /* the member's own deadline does not end it */
    CHECK_INT(status_of(&members[0].id), TASK_QUEUED);
    /* It ends, and the server stops before it is reported. */
    stage_on_end(
        NULL, str_of(batch.text),
        &(struct task_result){.status = TASK_COMPLETED, .text = STR("all")});
    store_turn(stage.store);
    CHECK_INT(status_of(&members[0].id), TASK_QUEUED);
    stage_stop();
    stage_start();
    rest();
    CHECK_INT(status_of(&members[0].id), TASK_COMPLETED);
    CHECK_INT(status_of(&members[2].id), TASK_COMPLETED);
    stage_close();
}

TEST(a_member_that_is_cancelled_leaves_the_batch_as_it_is)
{
    struct id batch;

    hold_five();
    ends(&first.id, TASK_COMPLETED, "");
    batch = batch_of(&members[0].id);
    ends(&members[1].id, TASK_CANCELLED, "");
    CHECK_INT(status_of(&members[1].id), TASK_CANCELLED);
    CHECK_INT(status_of(&batch), TASK_QUEUED);
    ends(&batch, TASK_COMPLETED, "");
    rest();
    CHECK_INT(status_of(&members[1].id), TASK_CANCELLED);
    CHECK_INT(status_of(&members[0].id), TASK_COMPLETED);
    stage_close();
}

TEST(others_and_the_last_one_go_singly)
{
    struct sent other, last;

    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_open(rules);
    first = sent("Jay", "Rick", "REQUEST", "R-0");
    other = sent("Leroy", "Rick", "REQUEST", "A");
    last = sent("Jay", "Rick", "REQUEST", "B");
    ends(&first.id, TASK_COMPLETED, "");
    CHECK_INT(status_of(&other.id), TASK_QUEUED); /* no other like it */
    CHECK_INT(status_of(&last.id), TASK_HELD);
    ends(&other.id, TASK_COMPLETED, "");
    CHECK_INT(status_of(&last.id), TASK_QUEUED);
    stage_close();
}

TEST(what_may_not_go_is_not_taken_along)
{
    struct sent gated, free_one, free_two;

    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_open(rules);
    first = sent("Jay", "Rick", "REQUEST", "R-0");
    free_one = sent("Jay", "Rick", "REQUEST", "A");
    gated = sent("Jay", "Rick", "SUBMISSION", "B");
    free_two = sent("Jay", "Rick", "REQUEST", "C");
    rest();
    stage_agent("Z")->state = AGENT_DEAD;
    ends(&first.id, TASK_COMPLETED, "");
    CHECK_STR(str_of(batch_of(&free_two.id).text), batch_of(&free_one.id).text);
    CHECK(!hold_find(stage.gatekeeper, str_of(gated.id.text))->batch.text[0]);
    stage_close();
}

static bool is_member(const struct id *id)
{
    const struct hold *h = hold_find(stage.gatekeeper, str_of(id->text));

    return h && h->batch.text[0];
}

/* One step towards the end of a member, if one is left. */
static void end_one(struct id *id)
{
    struct id batch;

    if (is_member(id)) {
        batch = batch_of(id);
        ends(&batch, TASK_COMPLETED, "");
    } else if (status_of(id) == TASK_QUEUED) {
        ends(id, TASK_COMPLETED, "");
    }
}

TEST(a_batch_survives_every_fault)
{
    bool has_fired;
    long step = T_SWEEP_STEP, nth = 1 - step;

    hold_five();
    do {
        fault_arm(nth += step);
        stage_on_end(NULL, str_of(first.id.text),
                     &(struct task_result){.status = TASK_COMPLETED});
        for (int i = 0; i < 4; i++) {
            store_turn(stage.store);
            loop_turn(&stage.loop);
        }
        has_fired = fault_fired();
        fault_arm(0);
        pass_ms(GATEKEEPER_LOOK_MS);
        stage_stop();
        stage_start();
        rest();
        if (status_of(&first.id) == TASK_QUEUED)
            ends(&first.id, TASK_COMPLETED, "");
        /* All members end, whatever failed. */
        for (int i = 0; i < 20; i++) {
            for (int k = 0; k < 5; k++)
                end_one(&members[k].id);
            rest();
        }
        CHECK_INT(rows_of(&hold_table), 0);
        CHECK_INT(gatekeeper_stats(stage.gatekeeper).held, 0);
        for (int k = 0; k < 5; k++)
            CHECK_INT(status_of(&members[k].id), TASK_COMPLETED);
        first = sent("Jay", "Rick", "REQUEST", "again");
        for (int k = 0; k < 5; k++)
            members[k] = sent("Jay", "Rick", "REQUEST",
                              (const char *[]){"A", "B", "C", "D", "E"}[k]);
        rest();
    } while (has_fired);
    stage_close();
}
