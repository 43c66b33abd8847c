#include "model/msg.h"
#include "test/t.h"
#include "wire/wire.h"

/* task.execute. */

static struct task some_task(void)
{
    return (struct task){.id = {"task_01j00000000000000000000000"},
                         .turn = 1,
                         .attempt = 2,
                         .text = STR("hi"),
                         .conversation_id = STR("c-1"),
                         .requester = STR("anna"),
                         .root_user = STR("anna"),
                         .priority = PRIORITY_NORMAL,
                         .metadata = STR("{\"a\":\n1}"),
                         .source = STR("{}"),
                         .deadline_ms = 1763169000000};
}

TEST(an_order_is_one_line_with_the_senders_words_apart)
{
    struct task t = some_task();
    struct json_out o;
    struct buf out;

    buf_init(&out, 4096);
    o = json_out(&out);
    wire_execute(&o, &t);
    CHECK_STR(buf_str(&out),
              "{\"task_id\":\"task_01j00000000000000000000000\",\"turn\":1,"
              "\"attempt\":2,\"message\":\"hi\",\"skill_id\":null,"
              "\"session_id\":\"c-1\",\"deadline_ms\":1763169000000,"
              "\"metadata\":{\"requester\":\"anna\",\"root_user\":\"anna\","
              "\"depth\":0,\"chain\":[],\"priority\":\"NORMAL\","
              "\"user\":{\"a\": 1},\"source\":{}}}");
    buf_fini(&out);
}

static bool has(const struct buf *b, struct str part)
{
    return memmem(b->p, b->n, part.p, part.n) != NULL;
}

TEST(an_envelope_is_in_the_order_as_it_was_sent_and_in_words)
{
    struct task t = some_task();
    struct json_out o;
    struct buf out;

    t.is_envelope = true;
    t.text = STR("{\"from\":\"Jay\",\n\"type\":\"ASK\", \"reference\":\"L1\","
                 "\"payload\":{\"n\":1.50}}");
    buf_init(&out, 4096);
    o = json_out(&out);
    wire_execute(&o, &t);
    CHECK(has(&out, STR("\"message\":\"ASK from Jay about L1\",\"envelope\":"
                        "{\"from\":\"Jay\", \"type\":\"ASK\", "
                        "\"reference\":\"L1\",\"payload\":{\"n\":1.50}},"
                        "\"skill_id\"")));
    buf_clear(&out);
    t.text = STR("{\"from\":\"Jay\",\"context\":\"a \\\"word\\\"\"}");
    o = json_out(&out);
    wire_execute(&o, &t);
    CHECK(has(&out, STR("\"message\":\"a \\\"word\\\"\",")));
    buf_fini(&out);
}

TEST(the_id_of_an_order_tells_the_attempt_and_the_turn)
{
    char id[WIRE_EXECUTE_ID_BYTES];
    struct task t = some_task();

    CHECK_STR(wire_execute_id(&t, id), "task_01j00000000000000000000000:2");
    t.turn = 3;
    CHECK_STR(wire_execute_id(&t, id), "task_01j00000000000000000000000:3.2");
}

/* Chunks and results. */

struct heard {
    struct arena arena;
    struct wire_word word;
    struct why why;
    enum err e;
};

static struct heard *hear_chunk(struct heard *h, const char *text)
{
    struct json *v;

    arena_init(&h->arena, 8 << 20);
    v = json_parse(&h->arena, str_of(text), 0, NULL);
    h->why.text[0] = 0;
    h->e = wire_chunk_read(v, &h->word, &h->why);
    return h;
}

static struct heard *hear_result(struct heard *h, const char *text)
{
    struct json *v;

    arena_init(&h->arena, 8 << 20);
    v = json_parse(&h->arena, str_of(text), 0, NULL);
    h->why.text[0] = 0;
    h->e = wire_result_read(&h->arena, v, &h->word, &h->why);
    return h;
}

TEST(a_chunk_is_read)
{
    struct heard h;

    CHECK_INT(hear_chunk(&h, "{\"task_id\":\"task_7\",\"text\":\"h\\u0069\","
                             "\"turn\":2,\"attempt\":3,\"more\":[]}")
                  ->e,
              OK);
    CHECK_STR(h.word.task_id, "task_7");
    CHECK_STR(h.word.text, "hi");
    CHECK_INT(h.word.turn, 2);
    CHECK_INT(h.word.attempt, 3);
    arena_fini(&h.arena);
    CHECK_INT(hear_chunk(&h, "{\"text\":\"\",\"turn\":null}")->e, OK);
    CHECK(h.word.has_text && !h.word.turn);
    arena_fini(&h.arena);
}

static void refuses(bool is_chunk, const char *text, enum err e,
                    const char *word)
{
    struct heard h;

    (is_chunk ? hear_chunk : hear_result)(&h, text);
    CHECK_INT(h.e, e);
    if (!strstr(h.why.text, word))
        T_FAIL("\"%s\" does not say \"%s\"", h.why.text, word);
    arena_fini(&h.arena);
}

TEST(a_chunk_that_is_none_is_refused_by_the_name_of_what_is_wrong)
{
    refuses(true, "[]", ERR_BAD_REQUEST, "params");
    refuses(true, "{}", ERR_BAD_REQUEST, "text");
    refuses(true, "{\"text\":1}", ERR_BAD_REQUEST, "text");
    refuses(true, "{\"text\":\"\",\"turn\":0}", ERR_BAD_REQUEST, "turn");
    refuses(true, "{\"text\":\"\",\"attempt\":\"1\"}", ERR_BAD_REQUEST,
            "attempt");
    refuses(true, "{\"text\":\"\",\"task_id\":7}", ERR_BAD_REQUEST, "task_id");
    refuses(true,
            "{\"text\":\"\",\"task_id\":\"task_01j000000000000000000000000000"
            "000000000000\"}",
            ERR_LIMIT, "task_id");
}

TEST(a_result_is_read)
{
    struct heard h;

    CHECK_INT(hear_result(&h, "{\"task_id\":\"t\",\"status\":\"completed\","
                              "\"text\":\"hi\",\"metadata\":{ \"a\" : [1] }}")
                  ->e,
              OK);
    CHECK_INT(h.word.result.status, TASK_COMPLETED);
    CHECK_STR(h.word.result.text, "hi");
    CHECK_STR(h.word.result.metadata, "{\"a\":[1]}");
    CHECK(h.word.has_text && !h.word.result.error.n);
    arena_fini(&h.arena);
    CHECK_INT(hear_result(&h, "{}")->e, OK);
    CHECK_INT(h.word.result.status, TASK_COMPLETED);
    CHECK(!h.word.has_text);
    arena_fini(&h.arena);
}

TEST(a_failure_always_has_a_code_and_words)
{
    struct heard h;

    CHECK_INT(hear_result(&h, "{\"status\":\"failed\"}")->e, OK);
    CHECK_STR(h.word.result.error_code, "agent_failed");
    CHECK(h.word.result.error.n > 0);
    arena_fini(&h.arena);
    CHECK_INT(hear_result(&h, "{\"error\":\"no ink\"}")->e, OK);
    CHECK_INT(h.word.result.status, TASK_FAILED);
    CHECK_STR(h.word.result.error, "no ink");
    arena_fini(&h.arena);
    CHECK_INT(hear_result(&h, "{\"error\":{\"code\":\"ink\",\"message\":"
                              "\"no ink\"}}")
                  ->e,
              OK);
    CHECK_STR(h.word.result.error_code, "ink");
    CHECK_STR(h.word.result.error, "no ink");
    arena_fini(&h.arena);
    CHECK_INT(hear_result(&h, "{\"error\":{\"code\":-3,\"message\":\"x\"}}")->e,
              OK);
    CHECK_STR(h.word.result.error_code, "agent_failed");
    arena_fini(&h.arena);
    CHECK_INT(hear_result(&h, "{\"status\":\"cancelled\"}")->e, OK);
    CHECK_STR(h.word.result.error_code, "cancelled");
    arena_fini(&h.arena);
}

TEST(a_result_that_is_none_is_refused_by_the_name_of_what_is_wrong)
{
    refuses(false, "3", ERR_BAD_REQUEST, "params");
    refuses(false, "{\"status\":\"queued\"}", ERR_BAD_REQUEST, "status");
    refuses(false, "{\"status\":1}", ERR_BAD_REQUEST, "status");
    refuses(false, "{\"status\":\"completed\",\"error\":\"x\"}",
            ERR_BAD_REQUEST, "completed");
    refuses(false, "{\"error\":[]}", ERR_BAD_REQUEST, "error");
    refuses(false, "{\"error_code\":5}", ERR_BAD_REQUEST, "error_code");
    refuses(false, "{\"metadata\":[]}", ERR_BAD_REQUEST, "metadata");
    refuses(false, "{\"text\":{}}", ERR_BAD_REQUEST, "text");
}

/* {"KEY":"xxx…"} with n of them. */
static enum err read_long(bool is_chunk, const char *head, size_t n,
                          const char *tail, struct heard *h)
{
    struct buf text;

    buf_init(&text, 4 << 20);
    buf_add_str(&text, str_of(head));
    for (size_t i = 0; i < n; i++)
        buf_add_char(&text, 'x');
    buf_add_str(&text, str_of(tail));
    buf_add_char(&text, 0);
    (is_chunk ? hear_chunk : hear_result)(h, text.p);
    arena_fini(&h->arena);
    buf_fini(&text);
    return h->e;
}

TEST(what_is_said_has_limits)
{
    const char *text = "{\"text\":\"", *code = "{\"error_code\":\"";
    const char *about = "{\"metadata\":{\"a\":\"", *end = "\"}";
    struct heard h;

    CHECK_INT(read_long(true, text, MSG_TEXT_MAX, end, &h), OK);
    CHECK_INT(read_long(true, text, MSG_TEXT_MAX + 1, end, &h), ERR_LIMIT);
    CHECK_INT(read_long(false, text, MSG_TEXT_MAX, end, &h), OK);
    CHECK_INT(read_long(false, text, MSG_TEXT_MAX + 1, end, &h), ERR_LIMIT);
    CHECK_INT(read_long(false, code, WIRE_ERROR_CODE_MAX, end, &h), OK);
    /* A failure with an unusable code is still a failure. */
    CHECK_INT(read_long(false, code, WIRE_ERROR_CODE_MAX + 1, end, &h), OK);
    CHECK_STR(h.word.result.error_code, "agent_failed");
    CHECK(h.word.result.status == TASK_FAILED);
    CHECK_INT(read_long(false, about, MSG_METADATA_MAX - 8, "\"}}", &h), OK);
    CHECK_INT(read_long(false, about, MSG_METADATA_MAX - 7, "\"}}", &h),
              ERR_LIMIT);
    CHECK_INT(read_long(false, "{\"error\":\"", WIRE_ERROR_MAX + 1, end, &h),
              OK);
    CHECK_INT(h.word.result.error.n, WIRE_ERROR_MAX);
}

TEST(a_code_is_a_word_or_it_is_ours)
{
    CHECK_STR(wire_error_code(STR("out_of_ink")), "out_of_ink");
    CHECK_STR(wire_error_code(STR("a\nb")), "agent_failed");
    CHECK_STR(wire_error_code(STR("")), "agent_failed");
}
