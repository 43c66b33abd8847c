/* The earlier messages that an agent without memory gets. */
#include "test/lib/control.h"
#include "test/lib/task_stage.h"

/* The history received, as "u:…|a:…|". */
static struct {
    int n_done;
    enum err e;
    size_t n;
    struct buf text;
} heard;

static void on_history(void *ctx, enum err e, const struct task_said *list,
                       size_t n)
{
    CHECK(ctx == &heard && (!e || !n));
    heard.n_done++;
    heard.e = e;
    heard.n = n;
    for (size_t i = 0; i < n; i++)
        buf_addf(&heard.text, "%c:%.*s|", list[i].is_agents ? 'a' : 'u',
                 STR_ARG(list[i].text));
}

static void begin_hearing(void)
{
    buf_fini(&heard.text);
    memset(&heard, 0, sizeof(heard));
    buf_init(&heard.text, 64 << 20);
}

/* The history of a task, up to so much. */
static struct str history(const struct id *id, size_t max_n, size_t max_bytes)
{
    begin_hearing();
    CHECK(task_history_new(stage.tasks, found(id), max_n, max_bytes, on_history,
                           &heard));
    store_turn(stage.store);
    CHECK_INT(heard.n_done, 1);
    CHECK_INT(heard.e, OK);
    return buf_str(&heard.text);
}

/* One turn that went well; the text and the answer to it. */
static struct id said(const char *from, const char *conversation,
                      const char *text, const char *answer)
{
    struct id id = accepted(from, conversation, text);

    CHECK_INT(ended(&id, TASK_COMPLETED, answer), OK);
    pass_ms(1000);
    return id;
}

/* A further turn of a task that is over, which goes on. */
static void go_on(const struct id *id, const char *text)
{
    struct msg *m = message("alice", "c-1", text);
    struct query q;
    struct task before = row_of(&q, id);

    m->call.task_id = str_of(id->text);
    CHECK_INT(accept_turn(m, &before), OK);
    query_fini(&q);
    msg_free(m);
}

TEST(a_conversation_that_begins_has_no_history)
{
    struct id id;

    stage_open();
    id = accepted("alice", "c-1", "hello");
    CHECK_STR(history(&id, 10, 1000), "");
    stage_close();
}

TEST(what_was_said_comes_oldest_first)
{
    struct id id;

    stage_open();
    said("alice", "c-1", "one", "1");
    said("alice", "c-1", "two", "2");
    id = accepted("alice", "c-1", "three");
    CHECK_STR(history(&id, 10, 1000), "u:one|a:1|u:two|a:2|");
    /* A later turn is not part of it. */
    accepted("alice", "c-1", "four");
    CHECK_STR(history(&id, 10, 1000), "u:one|a:1|u:two|a:2|");
    stage_close();
}

static void check_whose(void)
{
    struct id id, other;
    struct msg *m;

    stage_open();
    said("alice", "c-1", "mine", "yours");
    said("bob", "c-1", "bob's secret", "kept");
    said("alice", "c-2", "elsewhere", "there");
    m = message("alice", "c-1", "to another");
    m->choice.agent = STR("other");
    CHECK_INT(accept_turn(m, NULL), OK);
    other = m->task.id;
    msg_free(m);
    CHECK_STR(history(&other, 10, 1000), "");
    CHECK_INT(ended(&other, TASK_COMPLETED, "its answer"), OK);
    id = accepted("alice", "c-1", "again");
    CHECK_STR(history(&id, 10, 1000), "u:mine|a:yours|");
    stage_close();
}

TEST(nothing_of_others_conversations_or_other_agents_is_in_it)
{
    check_whose();
}

TEST(the_control_with_anybodys_history_is_caught)
{
    check_control("task.anybodys_history", check_whose);
}

TEST(what_came_to_nothing_is_left_out)
{
    struct id id;

    stage_open();
    said("alice", "c-1", "one", "1");
    id = accepted("alice", "c-1", "two");
    CHECK_INT(ended(&id, TASK_FAILED, "half an answer"), OK);
    id = accepted("alice", "c-1", "three");
    CHECK_INT(ended(&id, TASK_CANCELLED, ""), OK);
    said("alice", "c-1", "four", ""); /* no answer is none */
    said("alice", "c-1", "five", "5");
    id = accepted("alice", "c-1", "six");
    CHECK_STR(history(&id, 10, 1000), "u:one|a:1|u:five|a:5|");
    stage_close();
}

TEST(turns_of_one_task_and_several_tasks_come_in_the_order_of_time)
{
    struct id first, id;

    stage_open();
    first = said("alice", "c-1", "one", "1");
    said("alice", "c-1", "two", "2");
    go_on(&first, "three");
    CHECK_INT(ended(&first, TASK_COMPLETED, "3"), OK);
    pass_ms(1000);
    said("alice", "c-1", "four", "4");
    go_on(&first, "five");
    CHECK_STR(history(&first, 10, 1000),
              "u:one|a:1|u:two|a:2|u:three|a:3|u:four|a:4|");
    CHECK_INT(ended(&first, TASK_FAILED, ""), OK);
    pass_ms(1000);
    id = accepted("alice", "c-1", "six");
    CHECK_STR(history(&id, 10, 1000),
              "u:one|a:1|u:two|a:2|u:three|a:3|u:four|a:4|");
    stage_restart();
    CHECK_STR(history(&id, 4, 1000), "u:three|a:3|u:four|a:4|");
    stage_close();
}

TEST(the_newest_within_the_limits_are_given_and_without_a_hole)
{
    struct id id;

    stage_open();
    said("alice", "c-1", "aaaa", "1111"); /* 8 bytes each */
    said("alice", "c-1", "a long one that is too much", "2");
    said("alice", "c-1", "cccc", "3333");
    said("alice", "c-1", "dddd", "4444");
    id = accepted("alice", "c-1", "now");
    CHECK_STR(history(&id, 0, 1000), "");
    CHECK_STR(history(&id, 1, 1000), ""); /* never half a turn */
    CHECK_STR(history(&id, 2, 1000), "u:dddd|a:4444|");
    CHECK_STR(history(&id, 3, 1000), "u:dddd|a:4444|");
    CHECK_STR(history(&id, 4, 1000), "u:cccc|a:3333|u:dddd|a:4444|");
    CHECK_STR(history(&id, 10, 7), "");
    CHECK_STR(history(&id, 10, 8), "u:dddd|a:4444|");
    CHECK_STR(history(&id, 10, 15), "u:dddd|a:4444|");
    CHECK_STR(history(&id, 10, 16), "u:cccc|a:3333|u:dddd|a:4444|");
    CHECK_STR(history(&id, 10, 24), "u:cccc|a:3333|u:dddd|a:4444|");
    CHECK_INT(history(&id, 10, 44).n,
              strlen("u:|a:|u:cccc|a:3333|u:dddd|a:4444|") + 28);
    history(&id, SIZE_MAX / 2, SIZE_MAX);
    CHECK_INT(heard.n, 8);
    stage_close();
}

/* Turns of a task may be older than the cut. */
TEST(a_hole_does_not_come_by_way_of_turns_either)
{
    struct id first, id;

    stage_open();
    first = said("alice", "c-1", "one", "1");
    said("alice", "c-1", "a long one that is too much", "2");
    go_on(&first, "three");
    CHECK_INT(ended(&first, TASK_COMPLETED, "3"), OK);
    pass_ms(1000);
    id = accepted("alice", "c-1", "now");
    CHECK_STR(history(&id, 10, 20), "u:three|a:3|");
    stage_close();
}

/* Many turns, in two commits. */
static void say_much(size_t n)
{
    struct msg **m = calloc(n, sizeof(struct msg *));
    struct task_change **c = calloc(n, sizeof(struct task_change *));
    char(*texts)[32] = calloc(n, sizeof(*texts));

    CHECK(m && c && texts);
    for (size_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%zu", i);
        m[i] = message("alice", "c-1", texts[i]);
        CHECK_INT(task_create(stage.tasks, m[i], NULL), OK);
        submit_message(m[i]);
    }
    store_turn(stage.store);
    for (size_t i = 0; i < n; i++) {
        c[i] = change(&m[i]->task.id, TASK_COMPLETED, "x");
        submit_change(c[i]);
    }
    store_turn(stage.store);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(c[i]->err, OK);
        task_change_free(c[i]);
        msg_free(m[i]);
    }
    free(texts);
    free(c);
    free(m);
}

TEST(a_long_conversation_costs_a_bounded_read)
{
    struct id id;

    stage_open();
    say_much(600);
    id = accepted("alice", "c-1", "now");
    history(&id, 1000, 1 << 20);
    CHECK_INT(heard.n, 1000);
    history(&id, 100000, 1 << 20);
    CHECK_INT(heard.n, 2 * 515); /* one of the 516 rows is its own */
    CHECK_STR(history(&id, 2, 1 << 20), "u:599|a:x|");
    stage_close();
}

TEST(who_has_left_hears_nothing)
{
    struct task_history *h;
    struct id id;

    stage_open();
    said("alice", "c-1", "one", "1");
    id = accepted("alice", "c-1", "now");
    begin_hearing();
    h = task_history_new(stage.tasks, found(&id), 10, 1000, on_history, &heard);
    task_history_cancel(h);
    store_turn(stage.store);
    CHECK_INT(heard.n_done, 0);
    h = task_history_new(stage.tasks, found(&id), 10, 1000, on_history, &heard);
    task_history_cancel(h);
    stage_close(); /* which gives it back */
    CHECK_INT(heard.n_done, 0);
}

TEST(history_survives_every_fault)
{
    struct id first, id;
    bool is_whole = false;
    long nth = 0;

    stage_open();
    first = said("alice", "c-1", "one", "1");
    go_on(&first, "two");
    CHECK_INT(ended(&first, TASK_COMPLETED, "2"), OK);
    pass_ms(1000);
    id = accepted("alice", "c-1", "now");
    while (!is_whole && nth < 200) {
        begin_hearing();
        fault_arm(++nth);
        CHECK(task_history_new(stage.tasks, found(&id), 10, 1000, on_history,
                               &heard));
        store_turn(stage.store);
        is_whole = !fault_fired();
        fault_arm(0);
        CHECK_INT(heard.n_done, 1);
        /* All of it, or none: never a part as if it were all. */
        if (!heard.e)
            CHECK_STR(buf_str(&heard.text), "u:one|a:1|u:two|a:2|");
        else
            CHECK(!is_whole);
    }
    CHECK(is_whole && nth > 4);
    buf_fini(&heard.text);
    stage_close();
}
