/* Messages about tasks on a line: too large, malformed, and of other turns and
 * attempts. */
#include "deliver/transports/line.h"
#include "test/lib/line_stage.h"

/* The same message with {…,"text":"xxx…"}, n of them, as its params or its
 * result. */
static enum err hear_with(struct peer *p, struct wire_message *m,
                          const struct stage_task *x, size_t n)
{
    char *text = malloc(n + 1);
    struct json *params;
    struct buf doc;
    struct arena arena;
    enum err e;

    CHECK(text);
    memset(text, 'x', n);
    text[n] = '\0';
    buf_init(&doc, n + 1000);
    buf_addf(&doc,
             "{\"text\":\"%s\",\"task_id\":\"%s\",\"status\":\"completed\"}",
             text, id_of(x));
    arena_init(&arena, 4 << 20);
    params = json_parse(&arena, buf_str(&doc), 0, NULL);
    CHECK(params);
    m->params = m->result = params;
    e = deliver_heard(st.d, p->line, m, 0, &heard_why);
    arena_fini(&arena);
    buf_fini(&doc);
    free(text);
    return e;
}

static enum err hear_long(struct peer *p, const char *method,
                          const struct stage_task *x, size_t n)
{
    struct wire_message m = {.kind = WIRE_NOTIFICATION,
                             .method = str_of(method)};

    return hear_with(p, &m, x, n);
}

static enum err answer_long(struct peer *p, const struct stage_task *x,
                            size_t n)
{
    char id[WIRE_EXECUTE_ID_BYTES];
    struct wire_message m = {.kind = WIRE_RESULT};

    m.id.text = wire_execute_id(&x->task, id);
    return hear_with(p, &m, x, n);
}

TEST(an_answer_over_the_limit_is_the_end_of_its_task)
{
    struct stage_task *x, *y, *z;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    y = offer(2, a);
    z = offer(3, a);
    turns(1);
    CHECK(hear_long(p, "task.result", x, MSG_TEXT_MAX) == OK);
    CHECK(x->result.status == TASK_COMPLETED);
    CHECK(hear_long(p, "task.result", y, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(y->n_results == 1 && y->result.status == TASK_FAILED);
    CHECK_STR(str_of(y->code), "too_large");
    CHECK(hear_long(p, "task.chunk", z, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(z->n_results == 1 && z->result.status == TASK_FAILED);
    CHECK_STR(str_of(z->code), "too_large");
    CHECK(hear_long(p, "task.result", z, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    stage_close();
}

TEST(who_says_too_much_is_told_to_stop_and_others_are_not)
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
    CHECK(hear_long(p, "task.chunk", x, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(x->n_results == 1 && n_said(p, "task.cancel") == 1);
    CHECK(strstr(last_said(p), id_of(x)));
    CHECK(hear_long(p, "task.result", y, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(y->n_results == 1 && n_said(p, "task.cancel") == 1); /* it is done */
    x = offer(3, a);
    x->task.turn = 2;
    turns(1);
    CHECK(hear_long(p, "task.chunk", x, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(x->n_results == 0); /* that was of the first turn */
    deliver_cancel(st.d, str_of(id_of(x)));
    stage_close();
}

/* It would wait for its deadline otherwise. */
TEST(an_answer_that_is_no_result_is_the_end_of_its_task)
{
    char meta[6000];
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
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"result\":{\"status\":"
               "\"completed\",\"text\":7}}",
               id_of(x)) == ERR_BAD_REQUEST);
    CHECK(strstr(heard_why.text, "text"));
    CHECK(x->n_results == 1 && x->result.status == TASK_FAILED);
    CHECK_STR(str_of(x->code), "bad_answer");
    CHECK(strstr(x->error, "text must be a string"));
    memset(meta, 'x', sizeof(meta));
    meta[sizeof(meta) - 1] = '\0';
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"result\":{\"status\":"
               "\"expired\",\"text\":\"%s\"}}",
               id_of(y), meta) == ERR_BAD_REQUEST);
    CHECK(y->n_results == 1);
    CHECK_INT(p->n_said, 2); /* no agent is told to stop */
    stage_close();
}

TEST(an_answer_over_the_limit_fails_and_one_without_memory_is_tried_again)
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
    CHECK(answer_long(p, x, MSG_TEXT_MAX + 1) == ERR_LIMIT);
    CHECK(x->n_results == 1 && x->result.status == TASK_FAILED);
    CHECK_STR(str_of(x->code), "too_large");
    arena_fini(&st.d->lines->scratch);
    arena_init(&st.d->lines->scratch, 1);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"result\":{\"status\":"
               "\"completed\",\"metadata\":{\"a\":1}}}",
               id_of(y)) == ERR_NOMEM);
    CHECK(y->n_results == 0 && y->n_retries == 1);
    stage_close();
}

TEST(who_does_not_say_which_turn_means_the_first)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    x->task.turn = 2;
    turns(1);
    CHECK(hear_chunk(p, x, "late") == ERR_NOT_FOUND);
    CHECK(hear_result(p, x, "late", 3) == OK);
    CHECK(x->n_results == 0 && st.n_strays == 1);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\",\"turn\":2,\"text\":\"x\"}}",
               id_of(x)) == OK);
    CHECK(x->n_results == 1);
    stage_close();
}

TEST(the_answer_to_an_earlier_attempt_is_nobodys)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    detach(p);
    p = attach(1, a);
    turns(3);
    CHECK_INT(x->task.attempt, 2);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"error\":{\"code\":1,"
               "\"message\":\"no\"}}",
               id_of(x)) == ERR_NOT_FOUND);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\",\"params\":{"
               "\"task_id\":\"%s\",\"text\":\"x\",\"attempt\":1}}",
               id_of(x)) == ERR_NOT_FOUND);
    CHECK(strstr(heard_why.text, "attempt 2"));
    CHECK(x->n_working == 0 && !x->chunks[0]);
    /* But its result is as good as any. */
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\",\"status\":\"completed\",\"text\":\"x\","
               "\"attempt\":1}}",
               id_of(x)) == OK);
    CHECK_INT(x->n_results, 1);
    stage_close();
}

TEST(what_is_about_something_else_is_said_to_be)
{
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("echo", "ws-agent://echo");
    p = attach(0, a);
    CHECK(hear(p, 0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}") ==
          ERR_METHOD);
    CHECK(hear(p, 0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}") ==
          ERR_METHOD);
    CHECK(hear(p, 0,
               "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\",\"params\":{"
               "\"task_id\":5}}") == ERR_BAD_REQUEST);
    CHECK(heard_why.text[0]);
    detach(p);
    CHECK(hear(p, 0, "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\"}") ==
          ERR_NOT_FOUND);
    stage_close();
}
