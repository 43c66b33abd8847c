/* Acceptance, ends, keys, turns, retention and starts, on a real store. */
#include "test/lib/task_stage.h"

#include <sqlite3.h>

/* Acceptance. */

TEST(a_plain_task_costs_five_rows_in_its_whole_life)
{
    struct store_stats before, after;
    struct id id;

    stage_open();
    before = store_stats(stage.store);
    id = accepted("anna", "c-1", "hello");
    turn();
    CHECK_INT(stage.n_ready, 1);
    move(&id, TASK_DISPATCHED);
    move(&id, TASK_WORKING);
    CHECK_INT(ended(&id, TASK_COMPLETED, "hello"), OK);
    after = store_stats(stage.store);
    CHECK_INT(stage.n_ops, 5);
    CHECK_INT(after.rows_written_total - before.rows_written_total, 5);
    CHECK_INT(rows_of(&task_table), 1);
    CHECK_INT(rows_of(&conversation_table), 1);
    CHECK_INT(rows_of(&key_table), 0);
    CHECK_INT(rows_of(&turn_table), 0);
    CHECK_INT(rows_of(&feed_table), 2);
    stage_close();
}

TEST(with_a_key_it_costs_six)
{
    struct store_stats before, after;
    struct msg *m;
    struct id id;

    stage_open();
    before = store_stats(stage.store);
    m = message("anna", "c-1", "hello");
    m->call.idempotency_key = STR("k");
    CHECK_INT(accept_turn(m, NULL), OK);
    id = m->task.id;
    msg_free(m);
    CHECK_INT(ended(&id, TASK_CANCELLED, ""), OK);
    after = store_stats(stage.store);
    CHECK_INT(after.rows_written_total - before.rows_written_total, 6);
    stage_close();
}

TEST(nothing_is_there_before_it_is_committed)
{
    struct msg *m;

    stage_open();
    m = message("anna", "c-1", "hello");
    CHECK_INT(task_create(stage.tasks, m, NULL), OK);
    CHECK(id_is_valid(str_of(m->task.id.text), "task"));
    CHECK(id_is_valid(str_of(m->task.message_id.text), "msg"));
    CHECK(!found(&m->task.id) && rows_of(&task_table) == 0);
    loop_turn(&stage.loop);
    CHECK_INT(stage.n_ready, 0);
    submit_message(m);
    CHECK(!found(&m->task.id));
    store_turn(stage.store);
    CHECK(found(&m->task.id) && m->err == OK);
    CHECK_INT(found(&m->task.id)->seq, 1);
    CHECK_INT(status_in_store(&m->task.id), TASK_QUEUED);
    CHECK_INT(stage.n_ready, 0); /* at the end of the turn */
    turn();
    CHECK_INT(stage.n_ready, 1);
    msg_free(m);
    stage_close();
}

TEST(the_row_says_what_was_asked)
{
    struct query q;
    struct task t;
    struct msg *m;

    stage_open();
    m = message("anna", "c-1", "hello");
    m->ledger.skill = STR("say");
    m->call.metadata = STR("{\"a\":1}");
    m->call.source = STR("{\"b\":2}");
    m->call.priority = PRIORITY_HIGH;
    m->call.timeout_ms = 1234;
    CHECK_INT(accept_turn(m, NULL), OK);
    t = row_of(&q, &m->task.id);
    CHECK_STR(t.conversation_id, "c-1");
    CHECK_STR(t.requester, "anna");
    CHECK_STR(t.root_user, "anna");
    CHECK_STR(t.agent, "echo");
    CHECK_STR(t.skill, "say");
    CHECK_STR(t.order_key, "anna/c-1");
    CHECK_STR(t.text, "hello");
    CHECK_STR(t.metadata, "{\"a\":1}");
    CHECK_STR(t.source, "{\"b\":2}");
    CHECK_STR(t.owner_node, "here");
    CHECK_INT(t.priority, PRIORITY_HIGH);
    CHECK_INT(t.version, 1);
    CHECK_INT(t.turn, 1);
    CHECK_INT(t.attempt, 0);
    CHECK_INT(t.created_ms, 1000000);
    CHECK_INT(t.deadline_ms, 1001234);
    CHECK_INT(t.budget_ms, 1234);
    CHECK_INT(t.finished_ms, 0);
    CHECK_INT(t.epoch, store_epoch(stage.store));
    CHECK(row_is_null(q.rows, TASK_FINISHED_MS));
    CHECK(row_is_null(q.rows, TASK_RESULT_TEXT));
    CHECK(row_is_null(q.rows, TASK_PARENT_ID));
    query_fini(&q);

    query_init(&q, &feed_table, 10);
    look(&q);
    CHECK_INT(q.n_rows, 1);
    CHECK_STR(row_str(q.rows, FEED_TYPE), "task.accepted");
    CHECK_STR(row_str(q.rows, FEED_TASK_ID), m->task.id.text);
    CHECK_STR(row_str(q.rows, FEED_DATA),
              "{\"status\":\"queued\",\"priority\":\"HIGH\",\"turn\":1}");
    query_fini(&q);
    msg_free(m);
    stage_close();
}

TEST(a_conversation_is_made_when_none_is_named)
{
    struct query q;
    struct msg *m;

    stage_open();
    m = message("anna", "", "hello");
    CHECK_INT(accept_turn(m, NULL), OK);
    CHECK(id_is_valid(m->task.conversation_id, "conv"));
    CHECK(str_eq(found(&m->task.id)->conversation_id, m->task.conversation_id));
    query_init(&q, &conversation_table, 2);
    look(&q);
    CHECK(q.n_rows == 1 &&
          str_eq(row_str(q.rows, CONVERSATION_ID), m->task.conversation_id));
    query_fini(&q);
    msg_free(m);
    stage_close();
}

TEST(a_conversation_keeps_when_it_was_made_and_knows_when_it_was_used)
{
    struct query q;

    stage_open();
    accepted("anna", "c-1", "hello");
    pass_ms(500);
    accepted("anna", "c-1", "again");
    accepted("ben", "c-1", "another's");
    query_init(&q, &conversation_table, 10);
    query_if(&q, CONVERSATION_OWNER, IS, value_text(STR("anna")));
    look(&q);
    CHECK_INT(q.n_rows, 1);
    CHECK_STR(row_str(q.rows, CONVERSATION_AGENT), "echo");
    CHECK_INT(row_int(q.rows, CONVERSATION_CREATED_MS), 1000000);
    CHECK_INT(row_int(q.rows, CONVERSATION_USED_MS), 1000500);
    query_fini(&q);
    CHECK_INT(rows_of(&conversation_table), 2);
    stage_close();
}

TEST(claims_on_their_way_count_for_the_limit_of_tasks)
{
    struct msg *m[3];
    struct id id;

    stage_ground();
    stage.limits.max_unfinished = 2;
    stage_start();
    for (int i = 0; i < 3; i++)
        m[i] = message("anna", "", "hello");
    CHECK_INT(task_create(stage.tasks, m[0], NULL), OK);
    CHECK_INT(task_create(stage.tasks, m[1], NULL), OK);
    CHECK_INT(task_create(stage.tasks, m[2], NULL), ERR_OVERLOADED);
    CHECK(!m[2]->task.claim && m[2]->tx.n_ops == 0);
    submit_message(m[0]);
    submit_message(m[1]);
    store_turn(stage.store);
    CHECK_INT(accept_turn(m[2], NULL), ERR_OVERLOADED);
    id = m[0]->task.id;
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    CHECK_INT(accept_turn(m[2], NULL), OK);
    stage.limits.max_unfinished = 3;
    tasks_set_limits(stage.tasks, &stage.limits);
    id = accepted("anna", "", "one more");
    (void)id;
    for (int i = 0; i < 3; i++)
        msg_free(m[i]);
    stage_close();
}

TEST(claims_on_their_way_count_for_the_limit_of_bytes)
{
    struct msg *a, *b, *c;
    struct id id;

    stage_ground();
    stage.limits.max_unfinished_bytes = 10;
    stage_start();
    a = message("anna", "", "123456");
    b = message("anna", "", "12345");
    c = message("anna", "", "12");
    c->call.metadata = STR("{}");
    CHECK_INT(task_create(stage.tasks, a, NULL), OK);
    CHECK_INT(task_create(stage.tasks, b, NULL), ERR_OVERLOADED);
    CHECK_INT(task_create(stage.tasks, c, NULL), OK); /* exactly ten */
    CHECK_INT(tasks_stats(stage.tasks).unfinished_bytes, 10);
    submit_message(a);
    task_settle(stage.tasks, c); /* never submitted: refused */
    CHECK(c->err != OK && !c->task.claim);
    store_turn(stage.store);
    CHECK_INT(tasks_stats(stage.tasks).unfinished_bytes, 6);
    id = a->task.id;
    CHECK_INT(ended(&id, TASK_FAILED, ""), OK);
    CHECK_INT(tasks_stats(stage.tasks).unfinished_bytes, 0);
    CHECK_INT(accept_turn(b, NULL), OK);
    msg_free(a);
    msg_free(b);
    msg_free(c);
    stage_close();
}

TEST(texts_of_the_largest_size_are_kept_whole)
{
    char *text = malloc(MSG_TEXT_MAX + 1);
    struct task_result r = {.status = TASK_COMPLETED};
    struct task_change *c;
    struct query q;
    struct msg *m;
    struct task t;
    enum err e;

    memset(text, 'x', MSG_TEXT_MAX);
    text[MSG_TEXT_MAX] = '\0';
    stage_open();
    m = message("anna", "c", text);
    CHECK_INT(accept_turn(m, NULL), OK);
    r.text = m->call.text;
    c = task_change_new(stage.tasks, str_of(m->task.id.text), &r, &e);
    CHECK(c);
    submit_change(c);
    store_turn(stage.store);
    CHECK_INT(c->err, OK);
    task_change_free(c);
    t = row_of(&q, &m->task.id);
    CHECK(t.text.n == MSG_TEXT_MAX && t.result.text.n == MSG_TEXT_MAX);
    query_fini(&q);
    msg_free(m);
    stage_close();
    free(text);
}

/* Keys. */

static struct msg *keyed(const char *from, const char *key, uint8_t body)
{
    struct msg *m = message(from, "c-1", "hello");

    m->call.idempotency_key = str_of(key);
    memset(m->call.body_hash, body, sizeof(m->call.body_hash));
    return m;
}

static enum err key_answer(struct msg *m)
{
    struct query q;
    enum err e;

    task_key_query(m, &q);
    look(&q);
    e = task_key_answer(stage.tasks, m, &q);
    query_fini(&q);
    return e;
}

TEST(the_same_key_gives_back_the_same_task)
{
    struct msg *first, *again, *other, *bens;

    stage_open();
    first = keyed("anna", "k", 1);
    again = keyed("anna", "k", 1);
    other = keyed("anna", "k", 2);
    bens = keyed("ben", "k", 2);
    CHECK_INT(key_answer(first), ERR_BUSY); /* still free */
    CHECK_INT(accept_turn(first, NULL), OK);
    CHECK_INT(accept_turn(again, NULL), ERR_EXISTS);
    CHECK_INT(key_answer(again), OK);
    CHECK(again->task.is_repeat && !first->task.is_repeat);
    CHECK_STR(str_of(again->task.id.text), first->task.id.text);
    CHECK_STR(str_of(again->task.message_id.text), first->task.message_id.text);
    CHECK_STR(again->task.conversation_id, "c-1");
    CHECK_INT(accept_turn(other, NULL), ERR_EXISTS);
    CHECK_INT(key_answer(other), ERR_IDEMPOTENCY_MISMATCH);
    CHECK(!other->task.is_repeat);
    CHECK_INT(accept_turn(bens, NULL), OK);
    CHECK_INT(rows_of(&task_table), 2);
    CHECK_INT(tasks_stats(stage.tasks).repeated_total, 1);
    CHECK_INT(tasks_stats(stage.tasks).accepted_total, 2);
    msg_free(first);
    msg_free(again);
    msg_free(other);
    msg_free(bens);
    stage_close();
}

TEST(two_with_the_same_key_in_one_batch_make_one_task)
{
    struct msg *a, *b;

    stage_open();
    a = keyed("anna", "k", 1);
    b = keyed("anna", "k", 1);
    CHECK_INT(task_create(stage.tasks, a, NULL), OK);
    CHECK_INT(task_create(stage.tasks, b, NULL), OK);
    submit_message(a);
    submit_message(b);
    turn();
    CHECK(a->err == OK && b->err == ERR_EXISTS);
    CHECK_INT(key_answer(b), OK);
    CHECK_STR(str_of(b->task.id.text), a->task.id.text);
    CHECK_INT(rows_of(&task_table), 1);
    CHECK_INT(rows_of(&feed_table), 1);
    msg_free(a);
    msg_free(b);
    stage_close();
}

TEST(a_key_is_kept_for_a_day_to_the_millisecond)
{
    struct msg *m[3];

    stage_open();
    m[0] = keyed("anna", "k", 1);
    CHECK_INT(accept_turn(m[0], NULL), OK);
    pass_ms(TASK_KEY_MS - 1);
    m[1] = keyed("anna", "k", 1);
    CHECK_INT(accept_turn(m[1], NULL), ERR_EXISTS);
    CHECK_INT(key_answer(m[1]), OK);
    pass_ms(1);
    m[2] = keyed("anna", "k", 2);
    CHECK_INT(key_answer(m[2]), ERR_BUSY);
    CHECK_INT(accept_turn(m[2], NULL), OK); /* and replaces the old one */
    CHECK(strcmp(m[2]->task.id.text, m[0]->task.id.text) != 0);
    CHECK_INT(rows_of(&key_table), 1);
    for (int i = 0; i < 3; i++)
        msg_free(m[i]);
    stage_close();
}

/* Ends. */

TEST(a_task_ends_once)
{
    struct task_change *a, *b;
    struct task_result late = {.status = TASK_COMPLETED};
    struct id id;
    enum err e;

    stage_open();
    id = accepted("anna", "c", "hello");
    a = change(&id, TASK_COMPLETED, "done");
    b = change(&id, TASK_CANCELLED, "");
    submit_change(b);
    submit_change(a);
    store_turn(stage.store);
    CHECK_INT(b->err, OK);
    CHECK_INT(a->err, ERR_TASK_IS_OVER);
    CHECK_INT(status_in_store(&id), TASK_CANCELLED);
    CHECK_INT(rows_of(&feed_table), 2);
    CHECK_INT(task_change_again(stage.tasks, a), ERR_TASK_IS_OVER);
    CHECK(!task_change_new(stage.tasks, str_of(id.text), &late, &e) &&
          e == ERR_TASK_IS_OVER);
    turn(); /* no listener: freed */
    CHECK(!found(&id));
    CHECK(!task_change_new(stage.tasks, str_of(id.text), &late, &e) &&
          e == ERR_NOT_FOUND);
    CHECK_INT(tasks_stats(stage.tasks).late_total, 3);
    CHECK_INT(tasks_stats(stage.tasks).over_total[TASK_CANCELLED], 1);
    task_change_free(a);
    task_change_free(b);
    stage_close();
}

TEST(what_was_said_and_nothing_are_told_apart)
{
    struct query q;
    struct id id[2];

    stage_open();
    id[0] = accepted("anna", "a", "hello");
    id[1] = accepted("anna", "b", "hello");
    CHECK_INT(ended(&id[0], TASK_COMPLETED, ""), OK);
    CHECK_INT(ended(&id[1], TASK_EXPIRED, ""), OK);
    row_of(&q, &id[0]);
    CHECK(!row_is_null(q.rows, TASK_RESULT_TEXT));
    CHECK(row_str(q.rows, TASK_RESULT_TEXT).n == 0);
    CHECK(row_is_null(q.rows, TASK_ERROR_CODE));
    query_fini(&q);
    row_of(&q, &id[1]);
    CHECK(row_is_null(q.rows, TASK_RESULT_TEXT));
    CHECK_STR(row_str(q.rows, TASK_ERROR_CODE), "because");
    query_fini(&q);
    stage_close();
}

TEST(the_feed_tells_how_it_ended_and_who_wished_it)
{
    struct task_result r = {.status = TASK_CANCELLED,
                            .error_code = STR("cancel\"led"),
                            .error = STR("by ben"),
                            .by = STR("ben")};
    struct task_change *c;
    struct query q;
    struct task t;
    struct id id;
    enum err e;

    stage_open();
    id = accepted("anna", "a", "hello");
    move(&id, TASK_DISPATCHED);
    pass_ms(70);
    c = task_change_new(stage.tasks, str_of(id.text), &r, &e);
    CHECK(c);
    submit_change(c);
    store_turn(stage.store);
    CHECK_INT(c->err, OK);
    task_change_free(c);
    t = row_of(&q, &id);
    CHECK_INT(t.version, 2);
    CHECK_INT(t.attempt, 1);
    CHECK_INT(t.finished_ms, 1000070);
    CHECK_INT(t.updated_ms, 1000070);
    CHECK_STR(t.result.error, "by ben");
    query_fini(&q);
    query_init(&q, &feed_table, 10);
    query_if(&q, FEED_TYPE, IS, value_text(STR("task.cancelled")));
    look(&q);
    CHECK_INT(q.n_rows, 1);
    CHECK_INT(row_int(q.rows, FEED_AT_MS), 1000070);
    CHECK_STR(row_str(q.rows, FEED_DATA),
              "{\"turn\":1,\"attempt\":1,\"error_code\":\"cancel\\\"led\","
              "\"by\":\"ben\"}");
    query_fini(&q);
    stage_close();
}

TEST(a_refused_end_can_be_tried_again)
{
    struct task_change *c;
    struct id id;

    stage_open();
    id = accepted("anna", "a", "hello");
    c = change(&id, TASK_COMPLETED, "done");
    fault_arm_at("store.op.full", 1);
    submit_change(c);
    store_turn(stage.store);
    CHECK(fault_fired());
    CHECK_INT(c->err, ERR_NO_SPACE);
    CHECK_INT(found(&id)->status, TASK_QUEUED);
    pass_ms(1000);
    CHECK_INT(task_change_again(stage.tasks, c), OK);
    submit_change(c);
    store_turn(stage.store);
    CHECK_INT(c->err, OK);
    CHECK_INT(status_in_store(&id), TASK_COMPLETED);
    task_change_free(c);
    stage_close();
}

/* Turns. */

TEST(a_further_turn_puts_a_task_back_and_keeps_the_one_before)
{
    struct query q;
    struct msg *m;
    struct task t, before;
    struct id id, first;

    stage_open();
    id = accepted("anna", "c", "one");
    first = found(&id)->message_id;
    move(&id, TASK_DISPATCHED);
    CHECK_INT(ended(&id, TASK_COMPLETED, "uno"), OK);
    turn();
    pass_ms(1000);
    before = row_of(&q, &id);
    m = message("anna", "ignored", "two");
    m->ledger.skill = STR("say");
    CHECK_INT(accept_turn(m, &before), OK);
    query_fini(&q);
    CHECK_STR(str_of(m->task.id.text), id.text);
    CHECK_STR(m->task.conversation_id, "c");
    t = row_of(&q, &id);
    CHECK_INT(t.status, TASK_QUEUED);
    CHECK_INT(t.seq, 1);
    CHECK_INT(t.turn, 2);
    CHECK_INT(t.version, 3);
    CHECK_INT(t.attempt, 0);
    CHECK_STR(t.text, "two");
    CHECK_STR(t.skill, "say");
    CHECK_STR(str_of(t.message_id.text), m->task.message_id.text);
    CHECK_INT(t.created_ms, 1000000);
    CHECK_INT(t.deadline_ms, 1001000 + 600000);
    CHECK(row_is_null(q.rows, TASK_FINISHED_MS));
    CHECK(row_is_null(q.rows, TASK_RESULT_TEXT));
    query_fini(&q);
    query_init(&q, &turn_table, 10);
    query_if(&q, TURN_TASK_SEQ, IS, value_int(1));
    look(&q);
    CHECK_INT(q.n_rows, 1);
    CHECK_INT(row_int(q.rows, TURN_NUMBER), 1);
    CHECK_STR(row_str(q.rows, TURN_MESSAGE_ID), first.text);
    CHECK_STR(row_str(q.rows, TURN_TEXT), "one");
    CHECK_STR(row_str(q.rows, TURN_RESULT_TEXT), "uno");
    CHECK_INT(row_int(q.rows, TURN_STATUS), TASK_COMPLETED);
    CHECK_INT(row_int(q.rows, TURN_ATTEMPT), 1);
    CHECK_INT(row_int(q.rows, TURN_BEGAN_MS), 1000000);
    CHECK_INT(row_int(q.rows, TURN_FINISHED_MS), 1000000);
    query_fini(&q);
    turn();
    CHECK_INT(stage.n_ready, 1);
    CHECK_STR(found(&id)->text, "two");
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, 1);
    CHECK_INT(ended(&id, TASK_COMPLETED, "due"), OK);
    msg_free(m);
    stage_close();
}

TEST(a_task_that_is_not_over_takes_no_further_turn)
{
    struct msg *m;
    struct id id;
    struct task dropped = {.status = TASK_DROPPED};

    stage_open();
    id = accepted("anna", "c", "one");
    m = message("anna", "", "two");
    CHECK_INT(accept_turn(m, found(&id)), ERR_TASK_NOT_OVER);
    CHECK_INT(accept_turn(m, &dropped), ERR_NOT_ALLOWED);
    msg_free(m);
    stage_close();
}

TEST(of_two_further_turns_one_wins)
{
    struct msg *a, *b;
    struct task before;
    struct query q;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "one");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    turn();
    before = row_of(&q, &id);
    a = message("anna", "", "a");
    b = message("anna", "", "b");
    CHECK_INT(task_create(stage.tasks, a, &before), OK);
    CHECK_INT(task_create(stage.tasks, b, &before), OK);
    CHECK(tasks_check(stage.tasks));
    submit_message(a);
    submit_message(b);
    turn();
    CHECK(a->err == OK && b->err == ERR_TASK_NOT_OVER);
    CHECK_STR(found(&id)->text, "a");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    turn();
    tx_fini(&b->tx);
    tx_init(&b->tx);
    CHECK_INT(accept_turn(b, &before), ERR_BUSY); /* an old `before` */
    CHECK_INT(rows_of(&turn_table), 1);
    query_fini(&q);
    msg_free(a);
    msg_free(b);
    stage_close();
}

TEST(a_repeated_further_turn_is_known_by_its_key)
{
    struct msg *a, *b;
    struct task before;
    struct query q;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "one");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    before = row_of(&q, &id);
    a = keyed("anna", "k", 1);
    b = keyed("anna", "k", 1);
    CHECK_INT(task_create(stage.tasks, a, &before), OK);
    CHECK_INT(task_create(stage.tasks, b, &before), OK);
    submit_message(a);
    submit_message(b);
    turn();
    CHECK(a->err == OK && b->err == ERR_EXISTS);
    CHECK_INT(key_answer(b), OK);
    CHECK_STR(str_of(b->task.message_id.text), a->task.message_id.text);
    query_fini(&q);
    msg_free(a);
    msg_free(b);
    stage_close();
}

/* Retention. */

/* How many tasks are left. */
static size_t prune(int64_t before_ms, int64_t rows, size_t limit)
{
    struct tx tx;

    tx_init(&tx);
    tasks_prune(stage.tasks, &tx,
                &(struct tasks_keep){.now_ms = loop_wall_ms(&stage.loop),
                                     .before_ms = before_ms,
                                     .rows = rows,
                                     .oldest_ms = before_ms,
                                     .limit = limit});
    commit_tx(&tx);
    TX_EACH(op, &tx)
    {
        CHECK(op->kind == TX_PRUNE && op->n_rows <= limit);
    }
    tx_fini(&tx);
    return rows_of(&task_table);
}

TEST(what_has_been_over_for_long_goes_and_nothing_else)
{
    struct task before;
    struct query q;
    struct id id[3];
    struct msg *m;

    stage_open();
    id[0] = accepted("anna", "a", "over");
    id[1] = accepted("anna", "b", "over later");
    id[2] = accepted("anna", "c", "not over");
    CHECK_INT(ended(&id[0], TASK_COMPLETED, ""), OK);
    turn();
    before = row_of(&q, &id[0]);
    m = message("anna", "", "again");
    CHECK_INT(accept_turn(m, &before), OK);
    query_fini(&q);
    msg_free(m);
    CHECK_INT(ended(&id[0], TASK_COMPLETED, ""), OK);
    pass_ms(10);
    CHECK_INT(ended(&id[1], TASK_FAILED, ""), OK);
    turn();
    CHECK_INT(prune(1000000, 0, 100), 3);
    CHECK_INT(rows_of(&turn_table), 1);
    CHECK_INT(prune(1000010, 0, 100), 2);
    CHECK_INT(rows_of(&turn_table), 0); /* went with its task */
    CHECK_INT(prune(1000011, 0, 100), 1);
    CHECK_INT(prune(INT64_MAX, 1, 100), 1);
    CHECK_INT(status_in_store(&id[2]), TASK_QUEUED);
    stage_close();
}

TEST(the_oldest_beyond_so_many_go_but_not_unfinished_ones)
{
    struct id id[6];

    stage_open();
    for (int i = 0; i < 6; i++)
        id[i] = accepted("anna", "", "hello");
    for (int i = 1; i < 6; i++)
        CHECK_INT(ended(&id[i], TASK_COMPLETED, ""), OK);
    turn();
    CHECK_INT(prune(0, 6, 100), 6);
    CHECK_INT(prune(0, 3, 1), 5); /* a bounded number at once */
    CHECK_INT(prune(0, 3, 100), 4);
    CHECK_INT(status_in_store(&id[0]), TASK_QUEUED);
    CHECK_INT(status_in_store(&id[3]), TASK_COMPLETED);
    stage_restart(); /* the newest is known after a start too */
    CHECK_INT(prune(0, 1, 100), 2);
    stage_close();
}

TEST(a_conversation_stays_while_something_in_it_goes_on)
{
    struct id id;

    stage_open();
    id = accepted("anna", "long", "hello");
    pass_ms(10);
    accepted("anna", "other", "hello");
    pass_ms(10);
    prune(INT64_MAX, 0, 100);
    CHECK_INT(rows_of(&conversation_table), 2);
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    turn();
    prune(INT64_MAX, 0, 100);
    CHECK_INT(rows_of(&conversation_table), 1);
    stage_close();
}

TEST(expired_keys_go)
{
    struct msg *m;

    stage_open();
    m = keyed("anna", "k", 1);
    CHECK_INT(accept_turn(m, NULL), OK);
    pass_ms(TASK_KEY_MS - 1);
    prune(0, 0, 100);
    CHECK_INT(rows_of(&key_table), 1);
    pass_ms(1);
    prune(0, 0, 100);
    CHECK_INT(rows_of(&key_table), 0);
    msg_free(m);
    stage_close();
}

/* Print the query plan; true when no table is scanned. */
static bool uses_index(const char *sql)
{
    char path[128], plan[512] = "";
    sqlite3_stmt *s;
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/signalbox.db", stage.root);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        T_FAIL("%s", sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW)
        snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan), "%s; ",
                 (const char *)sqlite3_column_text(s, 3));
    sqlite3_finalize(s);
    sqlite3_close(db);
    if (strstr(plan, "SEARCH") && !strstr(plan, "SCAN") &&
        !strstr(plan, "TEMP B-TREE"))
        return true;
    fprintf(stderr, "%s: %s\n", sql, plan);
    return false;
}

TEST(starts_and_retention_find_their_rows_by_an_index)
{
    stage_open();
    CHECK(uses_index("EXPLAIN QUERY PLAN SELECT * FROM task WHERE "
                     "(finished_ms IS ?1) AND (seq > ?2) ORDER BY seq "
                     "LIMIT ?3"));
    CHECK(uses_index("EXPLAIN QUERY PLAN SELECT rowid FROM task WHERE "
                     "(finished_ms < ?1) LIMIT ?2"));
    CHECK(uses_index("EXPLAIN QUERY PLAN SELECT rowid FROM task WHERE "
                     "(seq <= ?1) AND (finished_ms IS NOT ?2) LIMIT ?3"));
    CHECK(uses_index("EXPLAIN QUERY PLAN SELECT rowid FROM conversation WHERE "
                     "(used_ms < ?1) LIMIT ?2"));
    CHECK(uses_index("EXPLAIN QUERY PLAN SELECT rowid FROM idempotency_key "
                     "WHERE (expires_ms < ?1) LIMIT ?2"));
    CHECK(uses_index("EXPLAIN QUERY PLAN UPDATE task SET status = 9 WHERE "
                     "(id = ?1) AND (version = ?2)"));
    CHECK(!uses_index("EXPLAIN QUERY PLAN SELECT * FROM task WHERE "
                      "(depth = ?1)")); /* it can say no */
    stage_close();
}
