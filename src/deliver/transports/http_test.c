/* Agents over HTTP: what they are sent, what they may answer. */
#include "test/lib/web_stage.h"

static struct peer *open_agent(const char *reply)
{
    static char url[64];
    struct peer *p;

    web_open();
    p = peer_open(web.s, reply);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/run?x=1", p->port);
    web.agent.url = str_of(url);
    return p;
}

static void expect_completed(const char *text)
{
    if (web.status != TASK_COMPLETED)
        T_FAIL("%s: %s %s %s", web.words, web.error_code, web.error,
               web.because);
    CHECK_STR(buf_str(&web.result), text);
    CHECK(!web.error_code[0] && !web.error[0]);
}

static void expect_failed(const char *code, const char *words)
{
    CHECK_INT(web.status, TASK_FAILED);
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

/* The request. */

TEST(an_agent_is_sent_its_task_and_answers_in_json)
{
    struct peer *p =
        open_agent(OK_JSON("{\"status\":\"completed\",\"text\":\"hi\","
                           "\"metadata\":{\"n\": 1},\"more\":[]}"));

    web.task.attempt = 3;
    web.task.turn = 2;
    carry();
    CHECK_STR(str_of(web.words), "wr");
    expect_completed("hi");
    CHECK_STR(buf_str(&web.metadata), "{\"n\":1}");
    CHECK_INT(p->n_asked, 1);
    CHECK(peer_heard(p, "POST /run?x=1 HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "\r\nContent-Type: application/json\r\n"));
    CHECK(peer_heard(p, "\r\nAccept: application/json, text/event-stream\r\n"));
    CHECK(peer_heard(p, "\r\nIdempotency-Key: task_a:2\r\n"));
    CHECK(peer_heard(p, "\r\nX-Signalbox-Task: task_a\r\n"));
    CHECK(peer_heard(p, "\r\nX-Signalbox-Attempt: 3\r\n"));
    CHECK(peer_heard(p, "\r\nX-Signalbox-Deadline-Ms: 784112277000\r\n"));
    CHECK(!peer_heard(p, "Authorization"));
    CHECK(peer_heard(p, "{\"task_id\":\"task_a\",\"turn\":2,\"attempt\":3,"
                        "\"message\":\"hello \\\"you\\\"\""));
    web_close();
}

TEST(what_may_be_left_out_may_be)
{
    static const struct {
        const char *body, *text;
    } cases[] = {{"{}", ""},
                 {"{\"text\":\"\"}", ""},
                 {"{\"text\":\"hi\"}", "hi"},
                 {"{\"text\":null,\"status\":null}", ""},
                 {"{\"task_id\":\"task_a\",\"turn\":1,\"text\":\"hi\"}", "hi"},
                 /* of another attempt: the same turn, so it counts */
                 {"{\"attempt\":99,\"text\":\"hi\"}", "hi"}};
    struct peer *p = open_agent(NULL);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        p->reply = OK_JSON(cases[i].body);
        carry();
        expect_completed(cases[i].text);
    }
    web_close();
}

TEST(types_of_json_go_by_several_names)
{
    static const char *const types[] = {
        "", "Content-Type: application/json; charset=utf-8\r\n",
        "content-type: APPLICATION/JSON\r\n",
        "Content-Type: application/problem+json\r\n"};
    struct peer *p = open_agent(NULL);

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        p->reply = answer_of("200 OK", types[i], "{\"text\":\"hi\"}");
        carry();
        expect_completed("hi");
    }
    p->reply = answer_of("201 Created", JSON_TYPE, "{\"text\":\"hi\"}");
    carry();
    expect_completed("hi");
    web_close();
}

TEST(an_agent_that_says_it_failed_has_failed)
{
    struct peer *p = open_agent(OK_JSON("{\"status\":\"failed\",\"error_code\":"
                                        "\"no_disk\",\"error\":\"full\"}"));

    carry();
    CHECK_STR(str_of(web.words), "wr");
    expect_failed("no_disk", "full");
    p->reply = OK_JSON("{\"error\":{\"code\":\"x\",\"message\":\"y\"}}");
    carry();
    expect_failed("x", "y");
    web_close();
}

/* Streams. */

TEST(a_stream_comes_piece_by_piece)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD ": here I am\n\n");
    UNTIL(web.s, is_heard_of('w'));
    CHECK_STR(str_of(web.words), "w");
    peer_say(p, "event: chunk\ndata: {\"text\":\"one \"}\n\nevent: chu");
    UNTIL(web.s, is_heard_of('c'));
    CHECK_STR(buf_str(&web.text), "one ");
    peer_say(p, "nk\ndata: {\"text\":\"two\"}\n\n"
                "event: chunk\ndata: {\"text\":\"\"}\n\n"
                "event: else\ndata: not even JSON\n\n"
                "data: {\"text\":\"lost\"}\n\n");
    UNTIL(web.s, web.text.n == 7);
    peer_say(p, "event: result\ndata: {\"status\":\"completed\",\n"
                "data: \"metadata\":{\"k\":2}}\n\n"
                "event: chunk\ndata: {\"text\":\"behind the end\"}\n\n"
                "event: result\ndata: {\"text\":\"a second one\"}\n\n");
    UNTIL(web.s, IS_OVER);
    CHECK_STR(str_of(web.words), "wccr");
    expect_completed("one two"); /* the chunks are the text */
    CHECK_STR(buf_str(&web.metadata), "{\"k\":2}");
    /* Nothing may follow: the connection is closed. */
    UNTIL(web.s, last_guest(p)->is_eof);
    CHECK_INT(deliver_stats(web.d).results_total, 1);
    web_close();
}

TEST(the_text_of_a_result_goes_before_that_of_the_chunks)
{
    struct peer *p =
        open_agent(SSE_HEAD "event: chunk\ndata: {\"text\":\"thinking\"}\n\n"
                            "event: result\ndata: {\"text\":\"done\"}\n\n");

    p->closes = true;
    carry();
    expect_completed("done");
    CHECK_STR(buf_str(&web.text), "thinking");
    web_close();
}

/* Time. */

TEST(before_its_head_an_agent_may_think_as_long_as_its_task)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    later(web.s, 499 * 1000);
    CHECK(!IS_OVER && on_the_way() == 1);
    later(web.s, 3 * 1000);
    UNTIL(web.s, IS_OVER);
    expect_again("did not answer in time");
    UNTIL(web.s, last_guest(p)->is_eof);
    web_close();
}

TEST(within_its_answer_it_may_not_fall_silent)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    later(web.s, 100 * 1000);
    peer_say(p, SSE_HEAD);
    UNTIL(web.s, is_heard_of('w'));
    for (int i = 0; i < 6; i++) { /* even a comment shows that it is there */
        later(web.s, 49 * 1000);
        peer_say(p, ":\n");
        turn(web.s, 20);
    }
    CHECK(!IS_OVER);
    later(web.s, 51 * 1000);
    UNTIL(web.s, IS_OVER);
    expect_again("fell silent in the middle of its answer for 50000 ms");
    UNTIL(web.s, last_guest(p)->is_eof);
    web_close();
}

TEST(who_trickles_is_ended_with_the_time_of_the_task)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD);
    UNTIL(web.s, is_heard_of('w'));
    for (int i = 0; i < 30 && !IS_OVER; i++) {
        if (last_guest(p)->fd >= 0)
            peer_say(p, "d");
        turn(web.s, 10);
        later(web.s, 20 * 1000);
    }
    expect_again("did not answer in time");
    web_close();
}

TEST(a_task_whose_time_is_over_is_still_asked_and_let_go)
{
    struct peer *p = open_agent(NULL);

    web.task.deadline_ms = 1000;
    offer();
    UNTIL(web.s, p->n_asked == 1);
    later(web.s, 2000);
    UNTIL(web.s, IS_OVER);
    expect_again("in time");
    web_close();
}

/* Cancelling. */

TEST(a_cancel_closes_the_connection_at_once)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    deliver_cancel(web.d, STR("task_a"));
    UNTIL(web.s, last_guest(p)->is_eof);
    CHECK_INT(web.n_words, 0);
    CHECK(on_the_way() == 0 && fetch_stats(web.s->fetch).open == 0);
    web_close();
}

TEST(it_can_be_cancelled_from_inside_every_callback)
{
    static const char words[] = "wcra";
    static const char *const heard[] = {"w", "wc", "wcccr", "a"};

    for (size_t i = 0; i < 4; i++) {
        struct peer *p =
            open_agent(SSE_HEAD "event: chunk\ndata: {\"text\":\"1\"}\n\n"
                                "event: chunk\ndata: {\"text\":\"2\"}\n\n"
                                "event: chunk\ndata: {\"text\":\"3\"}\n\n"
                                "event: result\ndata: {}\n\n");

        if (words[i] == 'a')
            p->reply = answer_of("503 No", "", "");
        web.cancels_at = words[i];
        offer();
        UNTIL(web.s, web.n_words == strlen(heard[i]));
        turn(web.s, 20);
        CHECK_STR(str_of(web.words), heard[i]);
        CHECK(on_the_way() == 0 && !deliver_has(web.d, STR("task_a")));
        web_close();
    }
}

TEST(what_is_on_its_way_at_the_end_is_dropped)
{
    struct peer *p = open_agent(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD "event: chunk\ndata: {");
    turn(web.s, 20);
    web_close();
}

/* Statuses. */

TEST(each_status_is_final_or_not)
{
    static const struct {
        const char *status, *headers, *body, *code, *words;
        int64_t retry_ms;
    } cases[] = {
        {"400 Bad", JSON_TYPE, "{\"error\":\"no such skill\"}", "agent_error",
         "status 400: no such skill", 0},
        {"400 Bad", "", "<html>", "agent_error", "status 400", 0},
        {"401 No", JSON_TYPE, "{\"error\":\"key 123\"}", "agent_error",
         "status 401: it does not take the authentication of its card", 0},
        {"403 No", "", "", "agent_error", "authentication", 0},
        {"404 No", "", "{\"detail\":\"x\\u001b[2J\"}", "agent_error",
         "status 404: x?[2J", 0},
        {"500 No", "", "", "agent_error", "status 500", 0},
        {"501 No", "", "", "agent_error", "status 501", 0},
        {"301 Moved", "Location: http://127.0.0.1:1/\r\n", "", "agent_error",
         "status 301: it wants to be called elsewhere", 0},
        {"307 Moved", "Location: http://169.254.169.254/\r\n", "",
         "agent_error", "url is to be the last address", 0},
        {"202 Later", "", "{}", "agent_error", "is to be 200", 0},
        {"204 Nothing", "", "", "agent_error", "is to be 200", 0},
        {"429 Slow", "Retry-After: 7\r\n", "", NULL, "status 429", 7000},
        {"503 Slow", "Retry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\n", "", NULL,
         "status 503", 3000},
        {"503 Slow", "Retry-After: 99999999\r\n", "", NULL, "status 503",
         500 * 1000}, /* as long as the task has */
        {"502 No", "", "{\"error\":\"upstream\"}", NULL, "502: upstream", 0},
        {"504 No", "", "", NULL, "status 504", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_agent(
            answer_of(cases[i].status, cases[i].headers, cases[i].body));

        p->closes = true; /* 204 has no body, and the stage gives a length */
        carry();
        CHECK(!is_heard_of('w'));
        if (cases[i].code)
            expect_failed(cases[i].code, cases[i].words);
        else
            expect_again(cases[i].words);
        if (cases[i].retry_ms && web.retry_ms < cases[i].retry_ms)
            T_FAIL("%s: again after %lld", cases[i].status,
                   (long long)web.retry_ms);
        web_close();
    }
}

TEST(it_is_tried_again_only_so_often)
{
    struct peer *p = open_agent(answer_of("503 No", "", ""));

    p->closes = true;
    for (int i = 0; i < 2; i++) {
        carry();
        expect_again("status 503");
        web.task.attempt++;
    }
    carry();
    expect_failed("agent_busy", "status 503");
    CHECK_INT(p->n_asked, 3);
    web_close();
}

/* Authentication. */

static const char *authorized(const char *authentication)
{
    static char said[8192];
    struct peer *p = open_agent(OK_JSON("{}"));
    const char *from, *to;

    web.agent.authentication = str_of(authentication);
    carry();
    said[0] = '\0';
    from = memmem(p->asked.p, p->asked.n, "\r\nAuthorization: ", 17);
    if (!from)
        from = memmem(p->asked.p, p->asked.n, "\r\nX-", 4);
    while (from && strncmp(from, "\r\nX-Signalbox-", 14) == 0)
        from = memmem(from + 4, p->asked.n - (size_t)(from + 4 - p->asked.p),
                      "\r\nX-", 4);
    if (web.status == TASK_FAILED) {
        CHECK_INT(p->n_asked, 0);
        CHECK(!IS_OVER || is_heard_of('r'));
        snprintf(said, sizeof(said), "%s: %s", web.error_code, web.error);
    } else if (from) {
        to = strstr(from + 2, "\r\n");
        CHECK(to);
        snprintf(said, sizeof(said), "%.*s", (int)(to - from - 2), from + 2);
    }
    web_close();
    return said;
}

TEST(the_card_says_how_to_prove_who_we_are)
{
    static const struct {
        const char *card, *header;
    } cases[] = {
        {"", ""},
        {"{}", ""},
        {"{\"schemes\":[\"bearer\"]}", ""},
        {"{\"credentials\":\"abc\"}", "Authorization: Bearer abc"},
        {"{\"schemes\":[],\"credentials\":\"abc\"}",
         "Authorization: Bearer abc"},
        {"{\"schemes\":[\"oauth2\",\"Bearer\",\"basic\"],\"credentials\":"
         "\"\\u0061bc\"}",
         "Authorization: Bearer abc"},
        {"{\"schemes\":[\"basic\"],\"credentials\":\"user:pass\"}",
         "Authorization: Basic dXNlcjpwYXNz"},
        {"{\"schemes\":[\"basic\"],\"credentials\":\"dXNlcjpwYXNz\"}",
         "Authorization: Basic dXNlcjpwYXNz"},
        {"{\"schemes\":[\"apiKey\"],\"credentials\":\"k 1\"}",
         "X-API-Key: k 1"},
        {"{\"schemes\":[\"APIKEY\"],\"credentials\":\"k\",\"header\":"
         "\"X-My-Key\"}",
         "X-My-Key: k"},
        {"{\"schemes\":[\"bearer\"],\"credentials\":\"k\",\"header\":\"X-No\"}",
         "Authorization: Bearer k"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_STR(str_of(authorized(cases[i].card)), cases[i].header);
}

TEST(what_cannot_be_sent_is_said_and_not_sent)
{
    static const struct {
        const char *card, *words;
    } cases[] = {
        {"{\"schemes\":[\"oauth2\"],\"credentials\":\"s3cret\"}",
         "none that this server knows"},
        {"{\"credentials\":\"s3cret\\r\\nX-Evil: 1\"}", "a line end"},
        {"{\"credentials\":\"s3cret\\n\"}", "a line end"},
        {"{\"credentials\":\"s3cret\\u0000\"}", "control character"},
        {"{\"credentials\":\"s3cret\\t\"}", "control character"},
        {"{\"schemes\":[\"apiKey\"],\"credentials\":\"s3cret\",\"header\":"
         "\"Host\"}",
         "authentication.header"},
        {"{\"schemes\":[\"apiKey\"],\"credentials\":\"s3cret\",\"header\":"
         "\"x-signalbox-task\"}",
         "authentication.header"},
        {"{\"schemes\":[\"apiKey\"],\"credentials\":\"s3cret\",\"header\":"
         "\"A: b\"}",
         "authentication.header"},
        {"{\"schemes\":[\"apiKey\"],\"credentials\":\"s3cret\",\"header\":"
         "\"X\\r\\nY\"}",
         "authentication.header"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *said = authorized(cases[i].card);

        if (strncmp(said, "unreachable: ", 13) != 0 ||
            !strstr(said, cases[i].words) || strstr(said, "s3cret"))
            T_FAIL("%s: %s", cases[i].card, said);
    }
}

TEST(acceptance_says_so_before)
{
    struct why why = {""};

    open_agent(NULL);
    CHECK(deliver_reaches(web.d, &web.agent, &why) == OK);
    web.agent.authentication = STR("{\"credentials\":\"s3cret\\n\"}");
    CHECK(deliver_reaches(web.d, &web.agent, &why) == ERR_UNREACHABLE);
    CHECK(strstr(why.text, "a line end") && !strstr(why.text, "s3cret"));
    web_close();
    web_begin();
    web_open_with(
        (struct deliver_opts){.loop = &web.s->loop, .agent_of = web_agent_of});
    web.agent.url = STR("https://example.com/");
    CHECK(deliver_reaches(web.d, &web.agent, &why) == ERR_NOT_IMPLEMENTED);
    web_close();
}

TEST(a_secret_that_comes_back_is_not_repeated)
{
    struct peer *p = open_agent(
        answer_of("400 Bad", JSON_TYPE,
                  "{\"error\":\"user:pass and dXNlcjpwYXNz are not good\"}"));

    web.agent.authentication =
        STR("{\"schemes\":[\"basic\"],\"credentials\":\"user:pass\"}");
    carry();
    CHECK_INT(p->n_asked, 1);
    expect_failed("agent_error", "[the key] and [the key] are not good");
    CHECK(!strstr(log_said(), "user:pass"));
    web_close();
}

/* The owner of the address. */

TEST(what_a_card_names_goes_through_the_guard)
{
    struct peer *p = open_agent(OK_JSON("{\"text\":\"inside\"}"));

    stage_allow(web.s, NULL); /* what is public alone */
    web.agent.is_configured = false;
    carry();
    CHECK_STR(str_of(web.words), "r");
    expect_failed("address_not_allowed", "not to be connected to");
    CHECK(p->n_asked == 0 && p->n_guests == 0);
    /* The control: the operator's own goes there. */
    web.agent.is_configured = true;
    carry();
    expect_completed("inside");
    web_close();
}

TEST(what_lies_at_the_operators_address_is_for_the_log)
{
    struct peer *p = open_agent(NULL);

    peer_leave(p);
    carry_once();
    expect_again("does not answer at its address");
    CHECK(!strstr(web.because, "127.0.0.1"));
    CHECK(strstr(log_said(), "127.0.0.1") &&
          strstr(log_said(), "deliver.not_asked"));
    web.agent.is_configured = false; /* the author of the card knows it */
    carry_once();
    expect_again("127.0.0.1");
    web_close();
}

TEST(an_address_that_is_none_is_final)
{
    open_agent(NULL);
    web.agent.url = STR("http://[::1/");
    clear_words();
    CHECK(deliver_reaches(web.d, &web.agent, NULL) != OK);
    web_close();
}

TEST(when_as_many_are_open_as_may_be_it_is_nobodys_fault)
{
    struct peer *p = open_agent(NULL);
    struct told *other[16];
    struct fetch_request rq;

    rq = request_to(url_at(p, "/"));
    for (int i = 0; i < 8; i++) /* as many as may be to one place */
        other[i] = start(web.s, rq, &whole);
    for (int i = 0; i < 10; i++) { /* more often than it may be tried */
        offer();
        UNTIL(web.s, IS_OVER);
        CHECK(is_heard_of('a'));
        clear_words();
        web.task.attempt++;
    }
    for (int i = 0; i < 8; i++) {
        fetch_cancel(web.s->fetch, other[i]->id);
        told_free(other[i]);
    }
    web_close();
}
