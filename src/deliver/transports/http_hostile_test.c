/* Agents over HTTP that mean no good, or are broken: whatever they send, the
 * task has one end, with words, within its limits. */
#include "base/fault.h"
#include "deliver/transports/exchange.h"
#include "test/lib/web_stage.h"

static struct peer *open_agent(const char *reply)
{
    static char url[64];
    struct peer *p;

    web_open();
    p = peer_open(web.s, reply);
    p->closes = true;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", p->port);
    web.agent.url = str_of(url);
    return p;
}

static void expect_failed(const char *code, const char *words)
{
    if (web.status != TASK_FAILED)
        T_FAIL("%s: %s", web.words, web.because);
    CHECK_STR(str_of(web.error_code), code);
    if (!strstr(web.error, words))
        T_FAIL("\"%s\" is not in: %s", words, web.error);
}

static void expect_again(const char *words)
{
    CHECK(is_heard_of('a') && !is_heard_of('r'));
    if (!strstr(web.because, words))
        T_FAIL("\"%s\" is not in: %s", words, web.because);
}

/* The answers. */

TEST(what_is_compressed_is_called_so)
{
    struct peer *p = open_agent(NULL);

    p->reply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
               "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
               "\x1f\x8b\x08\x01";
    carry_once();
    expect_failed("bad_answer", "is compressed (gzip), which was not asked");
    p->reply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
               "Content-Encoding: identity\r\nContent-Length: 14\r\n\r\n"
               "{\"text\":\"hi\"} ";
    carry_once();
    CHECK_STR(str_of(web.words), "wr");
    CHECK(web.status == TASK_COMPLETED);
    web_close();
}

TEST(what_is_no_result_is_final_and_says_why)
{
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"", "answer cannot be understood: it is not valid JSON"},
        {"<html>", "it is not valid JSON"},
        {"{\"text\":\"a", "it is not valid JSON"},
        {"{\"text\":\"\xff\"}", "it is not valid JSON"},
        {"{\"text\":\"a\",\"text\":\"b\"}", "it is not valid JSON"},
        {"[]", "it is no JSON object"},
        {"\"hi\"", "it is no JSON object"},
        {"{\"text\":7}", "text must be a string"},
        {"{\"status\":\"working\"}", "status must be"},
        {"{\"status\":1}", "status must be"},
        {"{\"metadata\":[]}", "metadata must be an object"},
        {"{\"task_id\":\"task_b\",\"text\":\"x\"}", "it is about another task"},
        {"{\"turn\":2,\"text\":\"x\"}", "it is about another turn"},
        {"{\"turn\":0}", "turn must be"},
        {"{\"status\":\"completed\",\"error\":\"but\"}", "has no error"},
    };
    struct peer *p = open_agent(NULL);
    static char body[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        p->reply = OK_JSON(cases[i].body);
        carry_once();
        CHECK_STR(str_of(web.words), "wr");
        expect_failed("bad_answer", cases[i].words);
        if (strchr(cases[i].body, '\n'))
            continue;
        snprintf(body, sizeof(body), SSE_HEAD "event: result\ndata: %s\n\n",
                 cases[i].body);
        p->reply = body;
        if (!cases[i].body[0]) /* without data there is no event */
            continue;
        carry_once();
        expect_failed("bad_answer", "event \"result\" cannot be understood");
    }
    web_close();
}

TEST(chunks_that_are_none_are_final_too)
{
    static const char *const data[] = {
        "hello",
        "{}",
        "{\"text\":1}",
        "[]",
        "{\"text\":\"x\",\"task_id\":\"task_b\"}",
        "{\"text\":\"x\",\"turn\":9}"};
    struct peer *p = open_agent(NULL);
    static char body[512];

    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        snprintf(body, sizeof(body),
                 SSE_HEAD "event: chunk\ndata: %s\n\n"
                          "event: result\ndata: {}\n\n",
                 data[i]);
        p->reply = body;
        carry_once();
        CHECK_STR(str_of(web.words), "wr");
        expect_failed("bad_answer", "event \"chunk\" cannot be understood");
    }
    web_close();
}

TEST(another_type_is_final_and_named_without_what_steers)
{
    struct peer *p = open_agent(answer_of(
        "200 OK", "Content-Type: text/html; charset=x\r\n", "<html>Welcome"));

    carry_once();
    expect_failed("bad_answer", "of the type \"text/html\", and must be");
    p->reply =
        answer_of("200 OK", "Content-Type: \xe2\x80\xaex\x1b[2J\r\n", "");
    carry_once();
    expect_failed(web.error_code, "");
    CHECK(!strchr(web.error, '\x1b') && !strstr(web.error, "\xe2\x80\xae"));
    web_close();
}

/* How they break off. */

TEST(whoever_closes_at_any_byte_is_asked_again_and_never_believed)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\n" JSON_TYPE
        "Content-Length: 13\r\n\r\n{\"text\":\"hi\"}",
        "HTTP/1.1 200 OK\r\n" SSE_TYPE "Transfer-Encoding: chunked\r\n\r\n"
        "1b\r\nevent: result\ndata: {}\n\n : \r\n0\r\n\r\n"};
    /* The event is whole some bytes before the answer is. */
    static const size_t whole_at[] = {68, 97};
    static char part[256];

    for (size_t k = 0; k < 2; k++)
        for (size_t n = 0; n < strlen(answers[k]); n++) {
            struct peer *p = open_agent(NULL);

            if (k == 1 && n >= whole_at[k])
                n = strlen(answers[k]) - 1;
            memcpy(part, answers[k], n);
            part[n] = '\0';
            p->reply = part;
            offer();
            UNTIL(web.s, IS_OVER);
            if (k == 1 && n >= whole_at[k])
                CHECK_INT(web.status, TASK_COMPLETED);
            else if (!is_heard_of('a') || is_heard_of('r'))
                T_FAIL("answer %zu, %zu bytes: %s %s", k, n, web.words,
                       web.error);
            web_close();
        }
}

TEST(a_reset_is_as_good_as_a_close)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD "event: chunk\ndata: {\"text\":\"x\"}\n\n");
    UNTIL(web.s, is_heard_of('c'));
    guest_reset(last_guest(p));
    UNTIL(web.s, IS_OVER);
    expect_again("");
    web_close();
}

TEST(a_stream_that_ends_without_a_result_is_asked_again)
{
    struct peer *p = open_agent(
        SSE_HEAD "event: chunk\ndata: {\"text\":\"x\"}\n\n"
                 "event: result\ndata: {\"text\":\"not finished\"}\n");

    carry_once();
    expect_again("without the event \"result\"");
    p->reply = SSE_HEAD;
    carry_once();
    expect_again("without the event \"result\"");
    p->reply = SSE_HEAD "data: {\"text\":\"hi\"}\n\n";
    carry_once();
    expect_again("without the event \"result\"");
    web_close();
}

TEST(lies_about_lengths_do_not_make_a_result)
{
    struct peer *p =
        open_agent("HTTP/1.1 200 OK\r\n" JSON_TYPE
                   "Content-Length: 1000\r\n\r\n{\"text\":\"hi\"}");

    carry_once();
    expect_again("broke off");
    p->reply = "HTTP/1.1 200 OK\r\n" JSON_TYPE
               "Content-Length: 5\r\n\r\n{\"text\":\"hi\"}";
    carry_once();
    expect_failed("bad_answer", "not valid JSON");
    p->reply = "HTTP/1.1 200 OK\r\n" JSON_TYPE
               "Content-Length: -1\r\n\r\n{\"text\":\"hi\"}";
    carry_once();
    CHECK(is_heard_of('a') || web.status == TASK_FAILED);
    p->reply = "HTTP/1.1 200 OK\r\n" JSON_TYPE
               "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{\"text\":\"hi\"}";
    carry_once();
    expect_again("broke off");
    p->reply = "HTTP/1.1 200 OK\r\n" JSON_TYPE
               "Content-Length: 99999999999\r\n\r\n{\"text\":\"hi\"}";
    carry_once();
    expect_failed("too_large", "more than the limit");
    web_close();
}

TEST(what_is_no_http_is_asked_again)
{
    static const char *const garbage[] = {
        "hello\r\n\r\n", "\x16\x03\x01\x02\x03\x04\x05", "SSH-2.0-x\r\n",
        "HTTP/1.1 abc\r\n\r\n", "{\"text\":\"hi\"}"};
    struct peer *p = open_agent(NULL);

    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        p->reply = garbage[i];
        carry_once();
        expect_again("broke off its answer, or does not speak HTTP");
    }
    web_close();
}

/* How much they send. */

static char *big;

static char *big_text(size_t n, const char *head, const char *tail)
{
    size_t n_head = strlen(head), n_tail = strlen(tail);

    free(big);
    big = malloc(n_head + n + n_tail + 1);
    CHECK(big);
    memcpy(big, head, n_head);
    memset(big + n_head, 'x', n);
    memcpy(big + n_head + n, tail, n_tail + 1);
    return big;
}

#define JSON_HEAD "HTTP/1.1 200 OK\r\n" JSON_TYPE "Connection: close\r\n\r\n"

/* A reply that is larger than the kernel takes at once must not be closed. */
static void carry_big(struct peer *p, const char *text)
{
    clear_words();
    p->reply = NULL;
    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, text);
    UNTIL(web.s, !last_guest(p)->n_to_send || last_guest(p)->is_eof || IS_OVER);
    guest_hang_up(last_guest(p));
    UNTIL(web.s, IS_OVER);
    CHECK(on_the_way() == 0 && web.d->exchange_bytes == 0);
    deliver_cancel(web.d, str_of(web.task.id.text));
    p->n_asked = 0;
}

TEST(an_answer_may_be_as_large_as_the_limit_and_no_larger)
{
    struct peer *p = open_agent(NULL);

    carry_big(p, big_text(MSG_TEXT_MAX, JSON_HEAD "{\"text\":\"", "\"}"));
    CHECK_INT(web.status, TASK_COMPLETED);
    CHECK_INT(web.result.n, MSG_TEXT_MAX);
    carry_big(p, big_text(MSG_TEXT_MAX + 1, JSON_HEAD "{\"text\":\"", "\"}"));
    expect_failed("too_large", "text is longer than 1048576 bytes");
    carry_big(p,
              big_text(EXCHANGE_ANSWER_MAX, JSON_HEAD "{\"more\":\"", "\"}"));
    expect_failed("too_large", "more than the limit");
    carry_big(p, big_text(MSG_TEXT_MAX,
                          SSE_HEAD "event: result\ndata: {\"text\":\"",
                          "\"}\n\n"));
    CHECK_INT(web.result.n, MSG_TEXT_MAX);
    carry_big(p, big_text(EXCHANGE_ANSWER_MAX + 100,
                          SSE_HEAD "event: x\ndata: ", "\n\n"));
    expect_failed("too_large", "more than the limit");
    web_close();
    free(big);
    big = NULL;
}

TEST(megabyte_chunks_are_taken_and_only_the_text_is_limited)
{
    static char twice[3 << 20];
    struct peer *p = open_agent(NULL);
    const char *one =
        big_text(MSG_TEXT_MAX, "event: chunk\ndata: {\"text\":\"", "\"}\n\n");

    snprintf(twice, sizeof(twice), SSE_HEAD "%sevent: result\ndata: {}\n\n",
             one);
    carry_big(p, twice);
    CHECK_INT(web.status, TASK_COMPLETED);
    CHECK(web.result.n == MSG_TEXT_MAX && web.text.n == MSG_TEXT_MAX);
    snprintf(twice, sizeof(twice), SSE_HEAD "%s%sevent: result\ndata: {}\n\n",
             one, one);
    carry_big(p, twice);
    expect_failed("too_large", "larger than the limit");
    snprintf(twice, sizeof(twice),
             SSE_HEAD "%s%sevent: result\ndata: {\"text\":\"short\"}\n\n", one,
             one);
    carry_big(p, twice);
    CHECK_STR(buf_str(&web.result), "short");
    web_close();
    free(big);
    big = NULL;
}

/* The same bytes again and again, until it is over. */
static void carry_endless(struct peer *p, const char *piece)
{
    clear_words();
    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD);
    for (int i = 0; i < 100000 && !IS_OVER; i++) {
        if (last_guest(p)->fd >= 0 && !last_guest(p)->n_to_send)
            peer_say(p, piece);
        turn_once(web.s);
    }
    CHECK(IS_OVER && on_the_way() == 0 && web.d->exchange_bytes == 0);
}

TEST(an_endless_stream_has_an_end)
{
    struct peer *p = open_agent(NULL);

    carry_endless(p, big_text(1 << 20, ": ", "\n"));
    expect_failed("too_large", "more than the limit");
    web_close();
    free(big);
    big = NULL;
}

TEST(an_event_without_an_end_has_one)
{
    struct peer *p = open_agent(NULL);

    carry_endless(p, big_text(1 << 20, "data: ", "\n"));
    expect_failed("too_large", "more than the limit");
    web_close();
    free(big);
    big = NULL;
}

TEST(all_answers_together_have_a_limit_too)
{
    struct deliver_settings s;
    struct peer *p = open_agent(NULL);

    s = web.opts.settings;
    s.max_gathered_bytes = 100 * 1000;
    deliver_set(web.d, &s);
    carry_big(p, big_text(100 * 1000 - 50, JSON_HEAD "{\"text\":\"", "\"}"));
    CHECK_INT(web.status, TASK_COMPLETED);
    carry_big(p, big_text(100 * 1000, JSON_HEAD "{\"text\":\"", "\"}"));
    expect_again("too many requests are running");
    web_close();
    free(big);
    big = NULL;
}

TEST(headers_without_an_end_are_refused)
{
    struct peer *p = open_agent(NULL);

    carry_big(p,
              big_text(100 * 1000, "HTTP/1.1 200 OK\r\nX-A: ", "\r\n\r\n{}"));
    expect_failed("too_large", "more than the limit");
    web_close();
    free(big);
    big = NULL;
}

/* When something of ours breaks. */

static void check_faults(const char *reply)
{
    bool has_fired = true;
    long nth = 0;

    while (has_fired && nth < 500) {
        struct peer *p = open_agent(reply);

        web.agent.authentication =
            STR("{\"schemes\":[\"basic\"],\"credentials\":\"a:b\"}");
        has_fired = carry_with_fault(++nth);
        CHECK(has_fired || web.status == TASK_COMPLETED);
        /* The next task is served. */
        carry();
        CHECK_INT(web.status, TASK_COMPLETED);
        CHECK_STR(buf_str(&web.result), "hi");
        CHECK(p->n_asked <= 2);
        web_close();
    }
    CHECK(!has_fired && nth > 15);
}

TEST(a_whole_answer_survives_every_fault)
{
    check_faults("HTTP/1.1 200 OK\r\n" JSON_TYPE
                 "Content-Length: 13\r\n\r\n{\"text\":\"hi\"}");
}

TEST(a_stream_survives_every_fault)
{
    check_faults(SSE_HEAD "event: chunk\ndata: {\"text\":\"hi\"}\n\n"
                          "event: result\ndata: {\"metadata\":{\"a\":1}}\n\n");
}

TEST(a_refusal_survives_every_fault)
{
    bool has_fired = true;
    long nth = 0;

    while (has_fired && nth < 500) {
        open_agent(answer_of("400 Bad", JSON_TYPE, "{\"error\":\"no\"}"));
        has_fired = carry_with_fault(++nth);
        CHECK(has_fired || web.status == TASK_FAILED);
        web_close();
    }
    CHECK(!has_fired && nth > 10);
}

/* The agent has done its work: short memory must not make its answer bad, which
 * would fail the task for good. */
TEST(an_answer_without_memory_to_read_it_is_not_a_bad_one)
{
    static const struct delivery_id id;
    struct why why = {""};
    struct wire_word w;
    struct arena arena;
    struct buf b;

    buf_init(&b, 1 << 20);
    buf_add_str(&b, STR("{\"text\":\"hi\",\"metadata\":{\"a\":[0"));
    for (int i = 0; i < 50000; i++)
        buf_add_str(&b, STR(",0"));
    buf_add_str(&b, STR("]}}"));
    arena_init(&arena, 64 << 20);
    fault_arm_at("arena.block", 1);
    CHECK(answer_read(&arena, buf_str(&b), &id, false, &w, &why) == ERR_NOMEM);
    CHECK(fault_fired());
    arena_fini(&arena);
    buf_fini(&b);
}
