/* The connection, and who asks. */
#include "base/fault.h"
#include "test/lib/sbc_stage.h"

static void never(void *ctx, struct sbc_task *t)
{
    (void)ctx;
    (void)t;
    T_FAIL("nothing was to run");
}

TEST(pauses_double_and_differ_and_have_a_limit)
{
    int most = SBC_PAUSE_MS;

    for (unsigned n = 1; n < 40; n++) {
        CHECK_INT(sbc_pause_ms(n, 0), most / 2);
        for (uint32_t c = 0; c < 100000; c += 777)
            CHECK(sbc_pause_ms(n, c) >= most / 2 && sbc_pause_ms(n, c) <= most);
        most = most * 2 > SBC_PAUSE_MAX_MS ? SBC_PAUSE_MAX_MS : most * 2;
    }
    CHECK_INT(sbc_pause_ms(1000000, SBC_PAUSE_MAX_MS / 2), SBC_PAUSE_MAX_MS);
}

TEST(urls_are_read_and_the_path_is_the_hubs)
{
    static const struct {
        const char *url, *host, *port, *target;
        bool is_tls;
    } good[] = {
        {"http://127.0.0.1:8090", "127.0.0.1", "8090", "/hub", false},
        {"http://box/", "box", "80", "/hub", false},
        {"https://box.example", "box.example", "443", "/hub", true},
        {"wss://box/x/hub?a=1", "box", "443", "/x/hub?a=1", true},
        {"ws://[::1]:7", "::1", "7", "/hub", false},
    };
    static const char *const bad[] = {"",          "box",    "ftp://box",
                                      "http://",   "http:/", "http://a b",
                                      "http://x:0"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sbc *s = sbc_open(good[i].url, "t");
        CHECK(s != NULL);
        CHECK(strcmp(s->host, good[i].host) == 0);
        CHECK(strcmp(s->port, good[i].port) == 0);
        CHECK_STR(s->target, good[i].target);
        CHECK(s->url.is_tls == good[i].is_tls);
        sbc_close(s);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!sbc_open(bad[i], "t"));
}

TEST(without_a_url_it_is_the_server_here)
{
    struct sbc *s;

    unsetenv("SIGNALBOX_URL");
    for (int i = 0; i < 2; i++) {
        s = sbc_open(NULL, NULL);
        CHECK(s && strcmp(s->host, "127.0.0.1") == 0);
        CHECK(strcmp(s->port, "8787") == 0);
        sbc_close(s);
        setenv("SIGNALBOX_URL", "", 1);
    }
    setenv("SIGNALBOX_URL", "http://box", 1);
    s = sbc_open(NULL, NULL);
    CHECK(s && strcmp(s->host, "box") == 0);
    sbc_close(s);
}

TEST(a_card_is_an_object_with_a_name)
{
    struct sbc *s = sbc_open("http://box", "t");

    CHECK_INT(sbc_register(s, "[]", never, NULL), SBC_USAGE);
    CHECK_INT(sbc_register(s, "{\"title\":1}", never, NULL), SBC_USAGE);
    CHECK_INT(sbc_register(s, "{\"name\":\"a\"", never, NULL), SBC_USAGE);
    CHECK_INT(sbc_register(s, NULL, never, NULL), SBC_USAGE);
    CHECK_INT(sbc_register(s, "{\"name\":\"a\"}", never, NULL), SBC_OK);
    CHECK_INT(sbc_trust(s, "/nowhere"), SBC_USAGE);
    sbc_close(s);
    sbc_close(NULL);
}

/* The handshake is answered with that status, and no more. */
static void refuse(struct stage *st, int status)
{
    char text[64];

    CHECK(stage_accept(st));
    snprintf(text, sizeof(text), "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n",
             status);
    stage_bytes(st, text, strlen(text));
    for (int i = 0; i < STAGE_TURNS && st->s->link.state != LINK_DOWN; i++)
        st->last = sbc_turn(st->s, 1);
}

TEST(a_bad_token_ends_it_and_a_busy_server_does_not)
{
    struct stage *st = stage_new();

    st->s = sbc_open(stage_url(st), "secret");
    CHECK_INT(sbc_register(st->s, "{\"name\":\"a\"}", never, st), SBC_OK);
    refuse(st, 503);
    CHECK_INT(st->s->fatal, SBC_OK);
    CHECK_INT(st->s->link.n_failures, 1);
    refuse(st, 404);
    CHECK_INT(st->s->link.n_failures, 2);
    CHECK(stage_join(st));
    for (int i = 0; i < STAGE_TURNS && !st->s->is_registered; i++)
        stage_turn(st);
    CHECK_INT(st->s->link.n_failures, 0);
    refuse(st, 401);
    CHECK_INT(sbc_run(st->s), SBC_REFUSED);
    CHECK(strstr(sbc_why(st->s), "token"));
    stage_free(st);
}

TEST(a_refusal_is_read_when_it_is_whole)
{
    static const char said[] =
        "HTTP/1.1 401 No\r\nX: y\r\nContent-LENGTH:  37\r\n\r\n"
        "{\"error\":{\"message\":\"who are\\nyou?\"}}";
    static const char *const others[] = {
        "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 401 No\r\nContent-Length: -9\r\n\r\n",
        "HTTP/1.1 401 No\r\nContent-Length\r\n\r\n<p>",
        "HTTP/1.1 401 No\r\n\r\n{\"error\":7}",
    };
    char words[16];

    for (size_t n = 0; n < sizeof(said) - 1; n++)
        CHECK(!sbc_refusal_is_whole((struct str){said, n}));
    CHECK(sbc_refusal_is_whole(str_of(said)));
    CHECK(sbc_refusal_read(str_of(said), words, sizeof(words)));
    CHECK(strcmp(words, "who are?you?") == 0);
    CHECK(sbc_refusal_read(str_of(said), words, 4));
    CHECK(strcmp(words, "who") == 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        CHECK(sbc_refusal_is_whole(str_of(others[i])));
        CHECK(!sbc_refusal_read(str_of(others[i]), words, sizeof(words)));
    }
}

static void answer_register(struct stage *st, const char *code)
{
    CHECK(stage_agree(st));
    HEAR(st, "agent.register");
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":\"%ld\",\"error\":{\"code\":-32000,"
              "\"message\":\"words\",\"data\":{\"code\":\"%s\"}}}",
              stage_id(st), code);
    for (int i = 0; i < STAGE_TURNS && st->s->link.state != LINK_DOWN; i++)
        st->last = sbc_turn(st->s, 1);
}

TEST(a_card_that_is_refused_ends_it)
{
    struct stage *st = stage_new();

    st->s = sbc_open(stage_url(st), "secret");
    CHECK_INT(sbc_register(st->s, "{\"name\":\"a\"}", never, st), SBC_OK);
    answer_register(st, "overloaded");
    CHECK_INT(st->s->fatal, SBC_OK);
    answer_register(st, "not_allowed");
    CHECK_INT(sbc_run(st->s), SBC_REFUSED);
    CHECK(strcmp(sbc_why(st->s), "words") == 0);
    CHECK(strcmp(sbc_code(st->s), "not_allowed") == 0);
    stage_free(st);
}

TEST(being_taken_over_ends_it_and_a_restart_does_not)
{
    struct stage *st = stage_agent(never);

    stage_frame(st, 8,
                "\x03\xe9"
                "bye",
                5); /* 1001 */
    CHECK(stage_join(st));
    stage_frame(
        st, 8,
        (char[]){SBC_CLOSE_TAKEN_OVER >> 8, (char)(SBC_CLOSE_TAKEN_OVER & 255)},
        2);
    CHECK_INT(sbc_run(st->s), SBC_TAKEN_OVER);
    stage_free(st);
}

TEST(nonsense_of_the_hub_is_a_lost_connection)
{
    static const char *const nonsense[] = {
        "[1,2]",
        "7",
        "{",
        "{\"id\":{}}",
        "{\"method\":\"task.execute\",\"params\":{}}",
        "{\"method\":\"task.execute\",\"params\":{\"task_id\":7}}",
    };
    static const char *const harmless[] = {
        "{}",
        "[]",
        "{\"id\":99,\"result\":1}",
        "{\"id\":\"x\",\"result\":1}",
        "{\"method\":\"news\"}",
        "{\"method\":\"task.cancel\",\"params\":{\"task_id\":\"task_9\"}}",
        "{\"method\":\"task.chunk\",\"params\":{\"task_id\":\"task_9\"}}",
        "{\"method\":\"task.result\"}",
    };
    struct stage *st = stage_agent(never);

    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        stage_say(st, "%s", nonsense[i]);
        CHECK(stage_join(st));
    }
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        stage_say(st, "%s", harmless[i]);
    stage_say(st, "{\"id\":\"a\\\"b\",\"method\":\"what\"}");
    HEAR(st, "\"id\":\"a\\\"b\",\"error\":{\"code\":-32601");
    stage_free(st);
}

TEST(pings_are_answered_and_silence_is_asked_about)
{
    struct stage *st = stage_agent(never);
    struct sbc_link *l = &st->s->link;

    stage_frame(st, 9, "abc", 3);
    CHECK_INT(stage_hear(st), 10);
    CHECK(strcmp(st->heard, "abc") == 0);
    l->seen_ms -= st->s->heartbeat_ms / 3;
    CHECK_INT(stage_hear(st), 9);
    stage_frame(st, 10, NULL, 0);
    for (int i = 0; i < STAGE_TURNS && l->is_pinged; i++)
        stage_turn(st);
    CHECK(!l->is_pinged);
    l->seen_ms -= st->s->heartbeat_ms;
    CHECK(stage_join(st));
    stage_free(st);
}

static struct sbc *to_stop;
static void on_signal(int n)
{
    (void)n;
    sbc_stop(to_stop);
}

TEST(a_signal_may_stop_it)
{
    struct stage *st = stage_agent(never);

    to_stop = st->s;
    signal(SIGALRM, on_signal);
    alarm(1);
    CHECK_INT(sbc_run(st->s), SBC_OK);
    CHECK_INT(sbc_turn(st->s, 1000), SBC_STOPPED);
    CHECK(!sbc_call(st->s, "x", NULL));
    stage_free(st);
}

/* Who asks. */

static void hears(void *ctx, const struct sbc_news *n)
{
    static const char *const kinds[] = {"accepted", "chunk", "gap", "result",
                                        "failed"};
    char *said = ctx;
    size_t at = strlen(said);

    CHECK(n->json[0] == '{');
    snprintf(said + at, 1024 - at, "%s(%s %s %s %s) ", kinds[n->kind],
             n->task_id, n->status, n->text, n->code);
}

static struct stage *asker(void)
{
    struct stage *st = stage_new();

    st->s = sbc_open(stage_url(st), "secret");
    CHECK(stage_agree(st));
    return st;
}

static void until_heard(struct stage *st, const char *said, const char *all)
{
    for (int i = 0; i < STAGE_TURNS && strcmp(said, all) != 0; i++)
        stage_turn(st);
    if (strcmp(said, all) != 0)
        T_FAIL("heard \"%s\", not \"%s\"", said, all);
}

TEST(a_message_is_heard_of_until_its_result)
{
    struct stage *st = asker();
    struct sbc_message m = {.text = "hi", .to = "b", .conversation = "c"};
    char said[1024] = "", key[64];

    CHECK_INT(sbc_send(st->s, &m, hears, said), SBC_OK);
    HEAR(st, "\"method\":\"message.send\",\"params\":{\"text\":\"hi\","
             "\"executor\":{\"name\":\"b\"},\"conversation_id\":\"c\","
             "\"idempotency_key\":\"");
    snprintf(key, sizeof(key), "%.32s", strstr(st->heard, "_key\":\"") + 7);
    /* The connection is lost: the same once more. */
    CHECK(stage_agree(st));
    HEAR(st, key);
    stage_say(st,
              "{\"id\":%ld,\"result\":{\"task_id\":\"task_1\",\"status\":"
              "\"queued\"}}",
              stage_id(st));
    stage_say(st, "{\"method\":\"task.chunk\",\"params\":{\"task_id\":"
                  "\"task_1\",\"text\":\"a\"}}");
    stage_say(st, "{\"method\":\"task.result\",\"params\":{\"task_id\":"
                  "\"task_1\",\"status\":\"failed\",\"error\":{\"code\":\"x\","
                  "\"message\":\"y\"}}}");
    stage_say(st, "{\"method\":\"task.chunk\",\"params\":{\"task_id\":"
                  "\"task_1\",\"text\":\"behind the end\"}}");
    until_heard(st, said,
                "accepted(task_1 queued  ) chunk(task_1  a ) "
                "result(task_1 failed  x) ");
    CHECK_INT(sbc_waiting(st->s), 0);
    stage_free(st);
}

TEST(a_message_that_is_refused_has_failed)
{
    struct stage *st = asker();
    struct sbc_message m = {.text = "hi", .key = "k"};
    char said[1024] = "";

    CHECK_INT(sbc_send(st->s, &m, hears, said), SBC_OK);
    HEAR(st, "\"idempotency_key\":\"k\"");
    stage_say(st,
              "{\"id\":%ld,\"error\":{\"code\":-32000,\"message\":\"w\","
              "\"data\":{\"code\":\"no_route\"}}}",
              stage_id(st));
    until_heard(st, said, "failed(   no_route) ");
    /* One that was done before is over at once. */
    CHECK_INT(sbc_send(st->s, &m, hears, said), SBC_OK);
    HEAR(st, "message.send");
    said[0] = '\0';
    stage_say(st,
              "{\"id\":%ld,\"result\":{\"task_id\":\"t\",\"status\":"
              "\"completed\",\"text\":\"done\"}}",
              stage_id(st));
    until_heard(st, said,
                "accepted(t completed done ) result(t completed done ) ");
    stage_free(st);
}

TEST(a_message_that_is_too_large_for_the_hub_fails)
{
    struct stage *st = asker();
    struct sbc_message m = {.text = "hi"};
    char said[1024] = "";

    CHECK_INT(sbc_send(st->s, &m, hears, said), SBC_OK);
    HEAR(st, "message.send");
    stage_frame(st, 8, (char[]){WS_TOO_LARGE >> 8, (char)(WS_TOO_LARGE & 255)},
                2);
    until_heard(st, said, "failed(   too_large) ");
    stage_free(st);
}

TEST(so_many_messages_wait_and_no_more)
{
    struct sbc *s = sbc_open("http://box", "t");
    struct sbc_message m = {.text = "hi"};
    char *large = malloc(SBC_TEXT_MAX + 2);

    for (int i = 0; i < SBC_SENDS_MAX; i++)
        CHECK_INT(sbc_send(s, &m, NULL, NULL), SBC_OK);
    CHECK_INT(sbc_send(s, &m, NULL, NULL), SBC_LIMIT);
    sbc_close(s);
    s = sbc_open("http://box", "t");
    memset(large, 'x', SBC_TEXT_MAX + 1);
    large[SBC_TEXT_MAX + 1] = '\0';
    m.text = large;
    CHECK_INT(sbc_send(s, &m, NULL, NULL), SBC_LIMIT);
    m.text = large + 1;
    CHECK_INT(sbc_send(s, &m, NULL, NULL), SBC_OK);
    m.metadata = "{";
    CHECK_INT(sbc_send(s, &m, NULL, NULL), SBC_USAGE);
    free(large);
    sbc_close(s);
}

/* Calls wait, so the hub has answered before they are made. */
static void answer_next(struct stage *st, const char *answer)
{
    stage_say(st, "{\"id\":%lld,%s}", (long long)st->s->next_id + 1, answer);
}

TEST(a_call_gives_the_answer_or_says_why_not)
{
    struct stage *st = asker();
    char *answer;

    while (!sbc_is_ready(st->s))
        stage_turn(st);
    answer_next(st, "\"result\":{\"agents\":[]}");
    answer = sbc_search(st->s, "a \"b\"", 3);
    CHECK(answer && strcmp(answer, "{\"agents\":[]}") == 0);
    free(answer);
    HEAR(st, "\"method\":\"agent.search\",\"params\":{\"query\":\"a "
             "\\\"b\\\"\",\"limit\":3}");
    answer_next(st, "\"error\":{\"code\":-32601,\"message\":\"no such\"}");
    CHECK(!sbc_call(st->s, "x.y", "{}"));
    CHECK(strcmp(sbc_why(st->s), "no such") == 0);
    CHECK(!sbc_call(st->s, "x.y", "{"));
    stage_hang_up(st);
    CHECK(!sbc_call(st->s, "x.y", NULL) || true);
    stage_free(st);
}

/* `where` is NULL for every step, or the name of some. */
static void check_faults_at(const char *where)
{
    struct sbc_message m = {.text = "hi", .to = "b"};
    long nth = 0;

    do {
        struct stage *st = stage_new();
        char said[1024] = "";

        fault_arm_at(where, ++nth);
        st->s = sbc_open(stage_url(st), "secret");
        if (st->s && sbc_send(st->s, &m, hears, said) == SBC_OK) {
            for (int i = 0; i < 20 && !strstr(said, "result"); i++) {
                if (!stage_agree(st) || stage_hear(st) != 1)
                    continue;
                stage_say(st,
                          "{\"id\":%ld,\"result\":{\"task_id\":\"t\","
                          "\"status\":\"completed\",\"text\":\"done\"}}",
                          stage_id(st));
                for (int k = 0; k < 50 && !strstr(said, "result"); k++)
                    stage_turn(st);
            }
            if (!strstr(said, "result(t"))
                T_FAIL("lost after %s: %s", fault_name(), said);
        } else {
            CHECK(fault_fired());
        }
        if (!fault_fired())
            fault_arm(0);
        stage_free(st);
    } while (fault_fired());
    CHECK(nth > 10);
}

TEST(asking_survives_every_fault)
{
    check_faults_at(NULL);
}

TEST(asking_survives_every_failed_allocation)
{
    check_faults_at("mem");
}
