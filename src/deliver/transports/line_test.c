/* Lines: how a task goes over one, and what becomes of it when the line goes,
 * is taken over, or has no room. */
#include "deliver/transports/line.h"
#include "test/lib/line_stage.h"

TEST(a_task_goes_over_the_line_of_its_agent)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("Echo", "ws-agent://Echo");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    CHECK_INT(p->n_said, 1);
    CHECK(strstr(p->said[0], "\"method\":\"task.execute\""));
    CHECK(strstr(p->said[0], id_of(x)) && strstr(p->said[0], ":1\""));
    CHECK(strstr(p->said[0], "\"message\":\"hello\""));
    CHECK(hear_working(p, x) == OK && x->n_working == 1);
    CHECK(hear_working(p, x) == OK && x->n_working == 1); /* said before */
    CHECK(hear_chunk(p, x, "one ") == OK && hear_chunk(p, x, "two") == OK);
    CHECK_STR(str_of(x->chunks), "one two");
    CHECK(hear_result(p, x, "three", 42) == OK);
    CHECK(x->n_results == 1 && x->receipt == 42);
    CHECK_STR(str_of(x->text), "three");
    CHECK(!deliver_has(st.d, str_of(id_of(x))));
    CHECK_INT(p->n_said, 1); /* nothing was cancelled */
    deliver_recorded(st.d, 42, OK);
    CHECK(st.recorded == 42 && st.recorded_as == OK);
    stage_close();
}

TEST(chunks_are_the_text_where_the_result_has_none)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    CHECK(hear_chunk(p, x, "one ") == OK && hear_chunk(p, x, "two") == OK);
    CHECK_INT(x->n_working, 1); /* who speaks works */
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\",\"status\":\"completed\"}}",
               id_of(x)) == OK);
    CHECK_STR(str_of(x->text), "one two");
    stage_close();
}

TEST(who_has_its_result_at_once_may_answer_with_it)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"result\":{\"status\":"
               "\"completed\",\"text\":\"at once\"}}",
               id_of(x)) == OK);
    CHECK(x->n_results == 1);
    CHECK_STR(str_of(x->text), "at once");
    stage_close();
}

TEST(a_refusal_is_the_end_unless_it_asks_for_another_try)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    y = offer(2, a);
    turns(1);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"error\":{\"code\":"
               "-32000,\"message\":\"too hard\",\"data\":{\"code\":\"hard\"}}}",
               id_of(x)) == OK);
    CHECK(x->result.status == TASK_FAILED && x->n_results == 1);
    CHECK_STR(str_of(x->code), "hard");
    CHECK_STR(str_of(x->error), "too hard");
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"error\":{\"code\":"
               "-32000,\"message\":\"busy\",\"data\":{\"retry_after_ms\":"
               "777}}}",
               id_of(y)) == OK);
    CHECK(y->n_results == 0 && y->n_retries == 1 && y->retry_ms >= 777);
    turns(2);
    later(777);
    CHECK(strstr(last_said(p), ":2\"")); /* its second attempt */
    CHECK(hear_result(p, y, "done", 0) == OK && y->n_results == 1);
    stage_close();
}

/* Lines may answer only for their tasks. */

TEST(nobody_speaks_for_anothers_task)
{
    struct stage_task *x;
    struct agent *a, *b;
    struct peer *pa, *pb;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    b = stage_agent("eve", "ws-agent://eve");
    pa = attach(0, a);
    pb = attach(1, b);
    x = offer(1, a);
    turns(1);
    CHECK(hear_working(pb, x) == ERR_NOT_FOUND);
    CHECK(hear_chunk(pb, x, "mine") == ERR_NOT_FOUND);
    CHECK(strstr(heard_why.text, id_of(x)));
    /* As of one that is not there: it is looked for. */
    CHECK(hear_result(pb, x, "mine", 9) == OK);
    CHECK(st.n_strays == 1 && x->n_working == 0 && x->n_results == 0);
    CHECK(hear_result(pa, x, "right", 0) == OK && x->n_results == 1);
    stage_close();
}

TEST(a_result_for_what_is_not_on_its_way_is_for_others_to_judge)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    CHECK(hear_result(p, x, "first", 1) == OK);
    CHECK(hear_result(p, x, "second", 2) == OK);
    CHECK(x->n_results == 1 && st.n_strays == 1 && st.late_result_receipt == 2);
    CHECK_STR(str_of(st.late_result_agent), "echo");
    CHECK_STR(str_of(st.late_result_task), id_of(x));
    CHECK_STR(str_of(st.late_result_text), "second");
    CHECK(hear_chunk(p, x, "late") == ERR_NOT_FOUND);
    CHECK(hear(p, 3,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.result\","
               "\"params\":{\"task_id\":\"nonsense\",\"status\":"
               "\"completed\"}}") == ERR_NOT_FOUND);
    CHECK_INT(st.n_strays, 1);
    stage_close();
}

TEST(a_routing_id_serves_the_agents_of_one_creator)
{
    struct stage_task *x, *y;
    struct agent *a, *other, *eve;
    struct peer *p, *pe;

    stage_open();
    a = stage_agent("front", "ws-agent://Desk");
    other = stage_agent("night", "ws-agent://desk");
    eve = stage_agent("eve", "ws-agent://desk");
    other->creator = STR("ANNA");
    eve->creator = STR("eve");
    CHECK(deliver_shares_line(a, other) && !deliver_shares_line(a, eve));
    p = attach(0, a);
    CHECK(deliver_reaches(st.d, other, NULL) == OK);
    CHECK(deliver_reaches(st.d, eve, NULL) == ERR_AGENT_OFFLINE);
    x = offer(1, other);
    y = offer(2, eve);
    turns(2);
    CHECK(p->n_said == 1 && n_said(p, id_of(x)) == 1);
    pe = attach(1, eve); /* a seat of its own: no line is replaced */
    turns(2);
    CHECK(p->n_taken_over == 0 && n_said(pe, id_of(y)) == 1);
    CHECK(hear_result(p, x, "x", 0) == OK && hear_result(pe, y, "y", 0) == OK);
    stage_close();
}

/* Lines that go. */

TEST(who_is_not_there_must_be_running)
{
    struct agent *a;
    struct why why;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    CHECK(deliver_reaches(st.d, a, &why) == ERR_AGENT_OFFLINE);
    CHECK(strstr(why.text, "\"echo\"") && strstr(why.text, "must be running"));
    p = attach(0, a);
    CHECK(deliver_reaches(st.d, a, &why) == OK);
    detach(p);
    CHECK(deliver_reaches(st.d, a, &why) == ERR_AGENT_OFFLINE);
    st.d->opts.settings.holds_for_offline = true;
    CHECK(deliver_reaches(st.d, a, &why) == OK);
    stage_close();
}

TEST(what_was_on_its_way_is_carried_again_over_the_next_line)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    y = offer(2, a);
    turns(1);
    CHECK(hear_chunk(p, x, "half") == OK);
    detach(p);
    CHECK(x->n_retries == 1 && y->n_retries == 1);
    turns(3);
    CHECK_INT(deliver_stats(st.d).waiting, 2);
    CHECK_INT(deliver_stats(st.d).lines, 0);
    p = attach(1, a);
    turns(2);
    CHECK(p->n_said == 2 && x->task.attempt == 2 && y->task.attempt == 2);
    CHECK(strstr(p->said[0], id_of(x)) && strstr(p->said[0], ":2\""));
    CHECK(hear_chunk(p, x, "whole") == OK);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\",\"status\":\"completed\"}}",
               id_of(x)) == OK);
    CHECK_STR(str_of(x->text), "whole"); /* of this attempt alone */
    deliver_detach(st.d, p->line, STR(""));
    deliver_detach(st.d, p->line, STR("")); /* harmless */
    stage_close();
}

TEST(who_drops_it_too_often_fails_it)
{
    struct stage_task *x;
    struct agent *a;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    x = offer(1, a);
    for (int i = 0; i < 4; i++) {
        struct peer *p = attach(i, a);

        turns(2);
        CHECK_INT(p->n_said, 1);
        detach(p);
        turns(1);
    }
    CHECK(x->n_results == 1 && x->result.status == TASK_FAILED);
    CHECK_STR(str_of(x->code), "agent_disconnected");
    CHECK(strstr(x->error, "connection was lost before"));
    stage_close();
}

TEST(a_second_line_takes_over_and_nobody_is_to_blame)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p = NULL;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    x = offer(1, a);
    for (int i = 0; i < 8; i++) { /* more often than it may fail */
        struct peer *before = p;

        p = attach(i, a);
        CHECK(!before || before->n_taken_over == 1);
        turns(3);
        CHECK_INT(p->n_said, 1);
        CHECK_INT(x->task.attempt, i + 1);
        if (before) { /* it is no line any more */
            CHECK(hear_result(before, x, "old", 0) == ERR_NOT_FOUND);
            deliver_detach(st.d, before->line, STR(""));
        }
    }
    CHECK(hear_result(p, x, "new", 0) == OK && x->n_results == 1);
    CHECK(deliver_stats(st.d).lines == 1);
    CHECK(deliver_stats(st.d).taken_over_total == 7);
    stage_close();
}

TEST(a_cancel_is_told_once_and_says_why)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    y = offer(2, a);
    turns(1);
    x->is_over = y->is_over = true;
    deliver_cancel(st.d, str_of(id_of(x)));
    deliver_cancel(st.d, str_of(id_of(x)));
    CHECK_INT(n_said(p, "task.cancel"), 1);
    CHECK(strstr(last_said(p), id_of(x)));
    CHECK(strstr(last_said(p), "\"reason\":\"cancelled\""));
    CHECK(!strstr(last_said(p), "\"id\""));
    later(3600 * 1000);
    deliver_cancel(st.d, str_of(id_of(y)));
    CHECK(strstr(last_said(p), "\"reason\":\"expired\""));
    CHECK(hear_chunk(p, x, "late") == ERR_NOT_FOUND);
    stage_close();
}

/* Lines without room. */

TEST(a_full_line_gets_no_work_and_then_all_of_it_in_order)
{
    struct stage_task *x[4];
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    p->is_full = true;
    for (int i = 0; i < 4; i++)
        x[i] = offer(i, a);
    turns(3);
    CHECK(p->n_said == 0 && deliver_stats(st.d).waiting == 3);
    CHECK_INT(deliver_stats(st.d).on_the_way, 1); /* the one that found out */
    deliver_line_room(st.d, p->line);             /* but there is none */
    CHECK_INT(p->n_said, 0);
    x[2]->is_over = true;
    deliver_cancel(st.d, str_of(id_of(x[2]))); /* costs nothing */
    p->is_full = false;
    deliver_line_room(st.d, p->line);
    turns(2);
    CHECK_INT(p->n_said, 3);
    CHECK(strstr(p->said[0], id_of(x[0])) && strstr(p->said[1], id_of(x[1])));
    CHECK(strstr(p->said[2], id_of(x[3])));
    for (int i = 0; i < 4; i++)
        CHECK(i == 2 || (x[i]->task.attempt == 1 && !x[i]->n_retries));
    stage_close();
}

TEST(what_was_not_said_yet_need_not_be_cancelled)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    p->is_full = true;
    x = offer(1, a);
    turns(1);
    x->is_over = true;
    deliver_cancel(st.d, str_of(id_of(x)));
    p->is_full = false;
    y = offer(2, a);
    turns(2); /* without a report of room */
    CHECK(p->n_said == 1 && n_said(p, id_of(y)) == 1);
    stage_close();
}

TEST(what_waits_for_room_is_limited)
{
    static char text[LINE_UNSAID_MAX / 2 + 1];
    struct agent *a;
    struct peer *p;

    memset(text, 'x', sizeof(text));
    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    p->is_full = true;
    CHECK(deliver_say(st.d, p->line, (struct str){text, sizeof(text)}) == OK);
    CHECK(deliver_say(st.d, p->line, (struct str){text, sizeof(text)}) ==
          ERR_BUSY);
    CHECK(deliver_say(st.d, p->line, STR("small")) == OK);
    p->is_full = false;
    deliver_line_room(st.d, p->line);
    CHECK(p->n_said == 2);
    CHECK_STR(str_of(p->said[1]), "small");
    CHECK(deliver_say(st.d, p->line, STR("again")) == OK && p->n_said == 3);
    detach(p);
    CHECK(deliver_say(st.d, p->line, STR("gone")) == ERR_GONE);
    stage_close();
}

TEST(a_line_that_turns_out_to_be_gone_is_no_attempt)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    p->is_gone = true;
    x = offer(1, a);
    for (int i = 0; i < 10; i++)
        turns(2);
    CHECK(x->n_retries > 4 && x->n_results == 0);
    detach(p);
    p = attach(1, a);
    turns(3);
    CHECK(hear_result(p, x, "x", 0) == OK && x->n_results == 1);
    stage_close();
}

TEST(a_full_line_that_goes_takes_nothing_with_it)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    p->is_full = true;
    x = offer(1, a);
    turns(1);
    CHECK(deliver_say(st.d, p->line, STR("answer")) == OK);
    p->is_full = false;
    p->is_gone = true; /* and it was not told so */
    deliver_line_room(st.d, p->line);
    CHECK_INT(x->n_retries, 1);
    detach(p);
    p = attach(1, a);
    turns(3);
    CHECK(hear_result(p, x, "x", 0) == OK && x->n_results == 1);
    stage_close();
}

/* From inside a callback. */

static struct peer *inside_peer;
static char inside_at;

static void detach_in_word(struct stage_task *x, char word)
{
    (void)x;
    if (word == inside_at && inside_peer->is_there)
        detach(inside_peer);
}

static void take_over_in_word(struct stage_task *x, char word)
{
    if (word == inside_at && inside_peer->is_there)
        attach(5, x->agent);
}

TEST(a_line_may_go_from_inside_every_callback)
{
    static void (*const words[])(struct stage_task *,
                                 char) = {detach_in_word, take_over_in_word};

    for (int i = 0; i < 6; i++) {
        struct stage_task *x, *y;
        struct agent *a;
        struct peer *p;

        stage_open();
        a = stage_agent("echo", "ws-agent://echo");
        p = inside_peer = attach(0, a);
        inside_at = "wcr"[i % 3];
        st.on_word = words[i / 3];
        x = offer(1, a);
        y = offer(2, a);
        turns(1);
        (void)hear_working(p, x);
        (void)hear_chunk(p, x, "x");
        (void)hear_result(p, x, "x", 0);
        CHECK(!p->is_there);
        turns(1);
        st.on_word = NULL;
        p = st.peers[5].is_there ? &st.peers[5] : attach(6, a);
        turns(4);
        if (!x->is_over)
            CHECK(hear_result(p, x, "again", 0) == OK);
        CHECK(hear_result(p, y, "y", 0) == OK);
        CHECK(x->n_results == 1 && y->n_results == 1);
        stage_close();
    }
}

/* A child's line. */

static struct line *child(struct peer *p)
{
    struct line *l;

    p->is_there = true;
    l = line_open(st.d, STR("pip"), &peer_ops, p);
    CHECK(l);
    p->line = line_id(l);
    return l;
}

/* A delivery of the line transport: the same as that of a pool. */
static struct stage_task *given_to(struct line *l, struct agent *a)
{
    struct stage_task *x = offer(1, a);
    struct delivery *y;
    struct buf text;
    struct deliver_job *e;

    turns(1);
    e = map_get(&st.d->deliver_jobs, str_of(id_of(x)));
    CHECK(e && e->delivery);
    y = e->delivery;
    line_leave(y, STOP_OVER);
    buf_init(&text, 1 << 20);
    CHECK(line_execute(&x->task, &text) == OK);
    CHECK(line_take(l, y, buf_str(&text)) == OK);
    buf_fini(&text);
    CHECK_INT(list_length(&l->deliveries), 1);
    return x;
}

TEST(a_child_has_its_results_answered_when_they_are_kept)
{
    struct peer *p = &st.peers[3];
    struct stage_task *x;
    struct agent *a;
    struct line *l;
    char text[512];

    stage_open();
    a = stage_agent("pip", "ws-agent://pip");
    attach(0, a);
    l = child(p);
    CHECK(line_by_id(st.d, p->line) == l);
    x = given_to(l, a);
    CHECK(p->n_said == 1 && strstr(p->said[0], "task.execute"));
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":\"r1\",\"method\":\"task.result\","
             "\"params\":{\"task_id\":\"%s\",\"status\":\"completed\","
             "\"text\":\"done\"}}",
             id_of(x));
    line_hear(st.d, p->line, str_of(text));
    CHECK(x->n_results == 1 && x->receipt && p->n_said == 1);
    deliver_recorded(st.d, x->receipt, OK);
    CHECK_INT(st.recorded, 0); /* it was none of the hub's */
    CHECK_STR(str_of(last_said(p)), "{\"jsonrpc\":\"2.0\",\"id\":\"r1\","
                                    "\"result\":{\"recorded\":true}}");
    deliver_recorded(st.d, x->receipt, OK); /* answered already */
    CHECK_INT(p->n_said, 2);
    line_hear(st.d, p->line, str_of(text)); /* the same again */
    CHECK(st.n_strays == 1 && st.late_result_receipt);
    deliver_recorded(st.d, st.late_result_receipt, ERR_TASK_IS_OVER);
    CHECK(strstr(last_said(p), "\"recorded\":false"));
    line_close(l, &(struct delivery_failure){.words = STR("it ended")});
    deliver_recorded(st.d, st.late_result_receipt, OK); /* the line is gone */
    stage_close();
}

TEST(what_else_a_child_says_is_asked_or_answered)
{
    static const char *const wrong[] = {"nonsense", "[]", "5",
                                        "[{\"jsonrpc\":\"2.0\"}]",
                                        "{\"jsonrpc\":\"2.0\"}"};
    struct peer *p = &st.peers[3];

    stage_open();
    child(p);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        line_hear(st.d, p->line, str_of(wrong[i]));
        CHECK_INT(p->n_said, (int)i + 1);
        CHECK(strstr(last_said(p), "\"error\""));
    }
    line_hear(
        st.d, p->line,
        STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.search\"}"));
    CHECK(st.n_calls == 1 && p->n_said == 5);
    CHECK_STR(str_of(st.call_method), "agent.search");
    st.d->opts.on_call = NULL;
    line_hear(
        st.d, p->line,
        STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.search\"}"));
    CHECK(strstr(last_said(p), "-32601"));
    line_hear(st.d, p->line, STR("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"));
    /* An answer is not answered: no endless loop. */
    line_hear(st.d, p->line, str_of(last_said(p)));
    line_hear(st.d, p->line,
              STR("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"));
    CHECK_INT(p->n_said, 6);
    line_hear(st.d, p->line,
              STR("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.chunk\","
                  "\"params\":{\"task_id\":\"task_x\",\"text\":\"x\"}}"));
    CHECK(strstr(last_said(p), "not_found"));
    line_hear(st.d, 999, STR("{}"));
    stage_close();
}

TEST(open_receipts_of_a_child_are_limited)
{
    struct peer *p = &st.peers[3];
    char text[512];

    stage_open();
    child(p);
    for (int i = 0; i < LINE_CALLS_MAX + 1; i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"task.result\","
                 "\"params\":{\"task_id\":\"task_%026d\",\"status\":"
                 "\"completed\"}}",
                 i, i);
        line_hear(st.d, p->line, str_of(text));
    }
    CHECK_INT(st.n_strays, LINE_CALLS_MAX);
    CHECK(p->n_said == 1 && strstr(p->said[0], "overloaded"));
    stage_close();
}

/* Whatever there is no memory for, nothing is lost by it. */
static bool with_fault(long nth)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_clear();
    a = stage_agent("echo", "ws-agent://echo");
    a->wake.url = STR("http://wake.example/");
    fault_arm(nth);
    st.d = stage_make(NULL);
    if (!st.d) {
        CHECK(fault_fired());
        stage_close();
        return true;
    }
    x = offer(1, a);
    turns(2);
    p = peer_attach(0, a) == OK ? &st.peers[0] : attach(1, a);
    turns(3);
    later(1000);
    p->is_full = true;
    y = offer(2, a);
    turns(3);
    p->is_full = false;
    deliver_line_room(st.d, p->line);
    later(1000);
    turns(3);
    CHECK(hear_chunk(p, x, "x") == OK);
    CHECK(hear_result(p, x, "x", 0) == OK);
    detach(p);
    p = peer_attach(2, a) == OK ? &st.peers[2] : attach(3, a);
    later(1000);
    turns(3);
    CHECK(hear_result(p, y, "y", 0) == OK);
    CHECK(x->n_results == 1 && y->n_results == 1);
    CHECK(x->result.status == TASK_COMPLETED);
    CHECK(y->result.status == TASK_COMPLETED);
    nth = fault_fired();
    fault_arm(0);
    stage_close();
    return nth;
}

TEST(lines_survive_every_fault)
{
    long nth = 0;

    while (with_fault(++nth))
        CHECK(nth < 200);
    CHECK(nth > 2);
}
