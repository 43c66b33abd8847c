/* An agent's side: tasks, chunks, results, and connections that break. */
#include "base/fault.h"
#include "test/lib/sbc_stage.h"

static void echo(void *ctx, struct sbc_task *t)
{
    stage_ran(ctx, t);
    CHECK(strcmp(t->text, "hi é") == 0 && t->text_bytes == 5);
    CHECK(!t->skill && strcmp(t->conversation, "c-1") == 0);
    CHECK(strcmp(t->metadata, "{\"requester\":\"anna\",\"depth\":0}") == 0);
    CHECK_INT(t->deadline_ms, 17);
    sbc_chunk(t, "you said ");
    sbc_chunk(t, t->text);
}

static void quiet(void *ctx, struct sbc_task *t)
{
    stage_ran(ctx, t);
    CHECK_INT(sbc_done(t, "done", "{\"tokens\":3}"), SBC_OK);
}

/* Kept, for the test to go on with. */
static struct sbc_task *kept[4];
static void keeper(void *ctx, struct sbc_task *t)
{
    struct stage *st = ctx;

    kept[st->n_ran % 4] = t;
    stage_ran(st, t);
    sbc_keep(t);
}

static void recorded(struct stage *st)
{
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"recorded\":true}}",
              stage_id(st));
}

/* Turn until nothing is kept any more. */
static void until_told(struct stage *st)
{
    for (int i = 0; i < STAGE_TURNS && st->s->n_jobs > 0; i++)
        stage_turn(st);
    CHECK_INT(st->s->n_jobs, 0);
    CHECK_INT(st->s->kept_bytes, 0);
}

TEST(a_task_is_acknowledged_streamed_and_answered)
{
    struct stage *st = stage_agent(echo);

    CHECK(strstr(st->head, "GET /hub HTTP/1.1"));
    CHECK(strstr(st->head, "Authorization: Bearer secret"));
    stage_execute(st, "task_1", 1);
    HEAR(st, "{\"jsonrpc\":\"2.0\",\"id\":\"task_1:1\",\"result\":{\"status\":"
             "\"working\"}}");
    HEAR(st, "\"method\":\"task.chunk\",\"params\":{\"task_id\":\"task_1\","
             "\"turn\":1,\"attempt\":1,\"text\":\"you said \"}");
    HEAR(st, "\"text\":\"hi é\"");
    HEAR(st, "\"method\":\"task.result\",\"params\":{\"task_id\":\"task_1\","
             "\"turn\":1,\"attempt\":1,\"status\":\"completed\"}");
    CHECK_INT(st->s->n_jobs, 1);
    recorded(st);
    until_told(st);
    stage_free(st);
}

TEST(a_failure_has_a_code_and_words)
{
    struct stage *st = stage_agent(keeper);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    CHECK_INT(st->n_ran, 1);
    CHECK_INT(sbc_fail(kept[0], "no_city", "there is no such city"), SBC_OK);
    HEAR(st, "\"status\":\"failed\",\"error_code\":\"no_city\",\"error\":"
             "\"there is no such city\"");
    recorded(st);
    until_told(st);
    stage_free(st);
}

static void refuse(struct stage *st)
{
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32602,"
              "\"message\":\"metadata is no object\",\"data\":{\"code\":"
              "\"bad_request\"}}}",
              stage_id(st));
}

TEST(a_result_that_is_refused_is_a_failed_task)
{
    struct stage *st = stage_agent(quiet);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "\"text\":\"done\"");
    refuse(st);
    HEAR(st, "\"status\":\"failed\",\"error_code\":\"agent_failed\",\"error\":"
             "\"the answer was not taken: metadata is no object\"");
    CHECK_INT(st->s->n_jobs, 1);
    refuse(st); /* that too: there is nothing left to say */
    until_told(st);
    stage_free(st);
}

TEST(a_result_that_is_not_answered_is_a_failed_task_in_the_end)
{
    struct stage *st = stage_agent(quiet);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "\"text\":\"done\"");
    stage_say(st, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                  "\"message\":\"what?\"}}");
    for (int i = 0; i < 3; i++) {
        for (struct list_node *n = list_first(&st->s->jobs[SBC_TOLD]); n;
             n = list_next(&st->s->jobs[SBC_TOLD], n))
            LIST_OF(n, struct sbc_job, node)->answer_until_ms = 0;
        HEAR(st, i < 2 ? "\"text\":\"done\"" : "\"status\":\"failed\"");
    }
    recorded(st);
    until_told(st);
    stage_free(st);
}

static void in_bytes(void *ctx, struct sbc_task *t)
{
    static const char text[] = "a\xe2\x82\xac\xf0\x9f\xa6\x9c\xff\xc3";

    stage_ran(ctx, t);
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        sbc_chunk_bytes(t, text + i, 1);
}

TEST(letters_are_whole_and_what_is_none_is_replaced)
{
    struct stage *st = stage_agent(in_bytes);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "\"text\":\"a\"");
    HEAR(st, "\"text\":\"\xe2\x82\xac\"");
    HEAR(st, "\"text\":\"\xf0\x9f\xa6\x9c\"");
    HEAR(st, "\"text\":\"\xef\xbf\xbd\""); /* as no letter begins so */
    HEAR(st, "\"status\":\"completed\",\"text\":\"a\xe2\x82\xac"
             "\xf0\x9f\xa6\x9c\xef\xbf\xbd\xef\xbf\xbd\"");
    recorded(st);
    until_told(st);
    stage_free(st);
}

TEST(one_that_comes_again_is_not_run_twice)
{
    struct stage *st = stage_agent(keeper);

    stage_execute(st, "task_1", 1);
    HEAR(st, "task_1:1");
    CHECK_INT(sbc_chunk(kept[0], "one "), SBC_OK);
    HEAR(st, "one ");
    CHECK(stage_join(st)); /* hangs up first */
    CHECK_INT(sbc_chunk(kept[0], "two "), SBC_OK);
    stage_execute(st, "task_1", 2);
    for (;;) { /* the chunk may be before or behind the acknowledgement */
        CHECK_INT(stage_hear(st), 1);
        if (strstr(st->heard, "task_1:2"))
            break;
    }
    CHECK_INT(sbc_done(kept[0], NULL, NULL), SBC_OK);
    /* The hub has not heard all of it: the result says it. */
    HEAR(st, "\"attempt\":2,\"status\":\"completed\",\"text\":\"one two \"");
    CHECK_INT(st->n_ran, 1);
    recorded(st);
    until_told(st);
    stage_free(st);
}

TEST(a_result_is_kept_until_it_is_answered)
{
    struct stage *st = stage_agent(quiet);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "\"text\":\"done\",\"metadata\":{\"tokens\":3}");
    CHECK(stage_join(st));
    HEAR(st, "\"text\":\"done\"");
    CHECK(stage_join(st));
    HEAR(st, "\"text\":\"done\"");
    /* Delivered again it is said again, and not run. */
    stage_execute(st, "task_1", 3);
    HEAR(st, "task_1:3");
    HEAR(st, "\"text\":\"done\"");
    recorded(st);
    until_told(st);
    CHECK_INT(st->n_ran, 1);
    CHECK(stage_join(st));
    stage_execute(st, "task_2", 1);
    HEAR(st, "task_2:1");
    stage_free(st);
}

TEST(what_the_hub_cannot_keep_now_is_said_again)
{
    struct stage *st = stage_agent(quiet);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "task.result");
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32000,"
              "\"message\":\"full\",\"data\":{\"code\":\"no_space\"}}}",
              stage_id(st));
    HEAR(st, "task.result");
    /* What it does not want at all is not: that it failed is, once. */
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32000,"
              "\"message\":\"no\",\"data\":{\"code\":\"not_found\"}}}",
              stage_id(st));
    HEAR(st, "\"status\":\"failed\"");
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32000,"
              "\"message\":\"no\",\"data\":{\"code\":\"not_found\"}}}",
              stage_id(st));
    until_told(st);
    stage_free(st);
}

TEST(what_was_cancelled_stops_or_never_runs)
{
    struct stage *st = stage_agent(keeper);

    stage_execute(st, "task_1", 1);
    HEAR(st, "task_1:1");
    stage_say(st, "{\"jsonrpc\":\"2.0\",\"method\":\"task.cancel\",\"params\":"
                  "{\"task_id\":\"task_1\",\"reason\":\"cancelled\"}}");
    for (int i = 0; i < STAGE_TURNS && !sbc_is_cancelled(kept[0]); i++)
        stage_turn(st);
    CHECK_INT(sbc_chunk(kept[0], "x"), SBC_CANCELLED);
    /* Under the same name it is another task now. */
    stage_execute(st, "task_1", 2);
    HEAR(st, "task_1:2");
    CHECK_INT(st->n_ran, 2);
    CHECK_INT(sbc_done(kept[0], "too late", NULL), SBC_OK);
    CHECK_INT(st->s->n_jobs, 1);
    CHECK_INT(sbc_done(kept[1], "in time", NULL), SBC_OK);
    HEAR(st, "in time");
    recorded(st);
    until_told(st);
    stage_free(st);
}

TEST(there_are_so_many_tasks_and_no_more)
{
    struct stage *st = stage_agent(keeper);
    char id[32];

    for (int i = 0; i < SBC_TASKS_MAX; i++) {
        snprintf(id, sizeof(id), "task_%d", i);
        stage_execute(st, id, 1);
        HEAR(st, "working");
    }
    stage_execute(st, "task_more", 1);
    HEAR(st, "\"code\":\"agent_busy\",\"retry_after_ms\":1000");
    CHECK_INT(sbc_done(kept[0], "x", NULL), SBC_OK);
    HEAR(st, "task.result");
    recorded(st);
    for (int i = 0; i < STAGE_TURNS && st->s->n_jobs == SBC_TASKS_MAX; i++)
        stage_turn(st);
    stage_execute(st, "task_more", 2);
    HEAR(st, "working");
    stage_free(st);
}

static void too_much(void *ctx, struct sbc_task *t)
{
    char *text = malloc(SBC_TEXT_MAX + 2);

    stage_ran(ctx, t);
    memset(text, 'x', SBC_TEXT_MAX + 1);
    text[SBC_TEXT_MAX + 1] = '\0';
    CHECK_INT(sbc_chunk(t, text), SBC_LIMIT);
    CHECK_INT(sbc_done(t, text, NULL), SBC_LIMIT);
    CHECK_INT(sbc_done(t, "x", "[]"), SBC_USAGE);
    CHECK_INT(sbc_done(t, "x", "{"), SBC_USAGE);
    CHECK_INT(sbc_done(t, text + 1, NULL), SBC_OK);
    CHECK_INT(sbc_done(t, "again", NULL), SBC_USAGE);
    CHECK_INT(sbc_chunk(t, "behind the end"), SBC_USAGE);
    free(text);
}

TEST(an_answer_has_a_limit_and_one_end)
{
    struct stage *st = stage_agent(too_much);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "task.result");
    recorded(st);
    until_told(st);
    stage_free(st);
}

TEST(a_result_that_is_too_large_for_the_hub_fails)
{
    struct stage *st = stage_agent(quiet);

    stage_execute(st, "task_1", 1);
    HEAR(st, "working");
    HEAR(st, "\"completed\"");
    stage_frame(st, 8, (char[]){WS_TOO_LARGE >> 8, (char)(WS_TOO_LARGE & 255)},
                2);
    CHECK(stage_join(st));
    HEAR(st, "\"status\":\"failed\",\"error_code\":\"too_large\"");
    recorded(st);
    until_told(st);
    stage_free(st);
}

/* Whatever breaks, the result arrives in the end, once per answer of ours. */
static bool carried(struct stage *st)
{
    bool is_told = false;

    for (int i = 0; i < 20 && !is_told; i++) {
        if (st->s->fatal || !stage_join(st))
            continue;
        stage_execute(st, "task_1", i + 1);
        while (!is_told && stage_hear(st) == 1)
            is_told = strstr(st->heard, "task.result") &&
                      strstr(st->heard, "completed");
    }
    return is_told;
}

/* `where` is NULL for every step, or the name of some. */
static void check_faults_at(const char *where)
{
    long nth = 0;

    do {
        struct stage *st = stage_new();

        fault_arm_at(where, ++nth);
        st->s = sbc_open(stage_url(st), "secret");
        if (st->s &&
            sbc_register(st->s, "{\"name\":\"a\"}", echo, st) == SBC_OK) {
            do {
                if (!carried(st))
                    T_FAIL("lost after %s", fault_name());
                recorded(st);
                for (int i = 0; i < 100 && st->s->n_jobs > 0; i++)
                    stage_turn(st);
            } while (st->s->n_jobs > 0);
        } else {
            CHECK(fault_fired());
        }
        if (!fault_fired())
            fault_arm(0);
        stage_free(st);
    } while (fault_fired());
    CHECK(nth > 20);
}

TEST(a_task_survives_every_fault)
{
    check_faults_at(NULL);
}

TEST(a_task_survives_every_failed_allocation)
{
    check_faults_at("mem");
}
