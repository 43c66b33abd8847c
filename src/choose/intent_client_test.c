/* The classifier's client, with servers that are sockets and say what they are
 * told to. choose/layers/intent_test.c tests the meaning of answers, and
 * test/flow/intent_test.py both together. */
#include "choose/intent_client.h"

#include "test/lib/fetch_stage.h"

enum { LIMIT_MS = 500 };

/* The result of one question. */
struct heard {
    struct intent *intent;
    int n;
    struct intent_reply reply;
    char body[256];
    bool asks_again, stops, cancels_other;
    uint64_t other;
};

static void on_heard(void *ctx, const struct intent_reply *r)
{
    struct heard *h = ctx;

    CHECK(++h->n == 1);
    CHECK(!r->err == !r->why.text[0]);
    h->reply = *r;
    snprintf(h->body, sizeof(h->body), "%.*s", STR_ARG(r->body));
    if (h->asks_again) {
        static struct heard next;

        next = (struct heard){.intent = h->intent};
        h->other = intent_ask(h->intent, STR("{}"), on_heard, &next);
    }
    if (h->cancels_other)
        intent_cancel(h->intent, h->other);
    if (h->stops)
        intent_stop(h->intent);
}

static struct intent *intent_at(struct stage *s, const char *endpoint)
{
    struct intent *in =
        intent_new(&(struct intent_opts){&s->loop,
                                         &s->log,
                                         s->fetch,
                                         {.endpoint = str_of(endpoint),
                                          .key = STR("k-123"),
                                          .timeout_ms = LIMIT_MS}});

    CHECK(in);
    return in;
}

static struct heard asked(struct stage *s, struct intent *in)
{
    struct heard h = {.intent = in};

    intent_ask(in, STR("{\"q\":1}"), on_heard, &h);
    UNTIL(s, h.n);
    return h;
}

static void finish(struct stage *s, struct intent *in)
{
    intent_stop(in);
    CHECK_INT(intent_stats(in).out, 0);
    intent_free(in);
    stage_free(s);
}

static bool logged(struct stage *s, const char *text)
{
    static char all[65536];
    ssize_t n = pread(s->log.fd, all, sizeof(all) - 1, 0);

    CHECK(n >= 0);
    all[n] = '\0';
    return strstr(all, text) != NULL;
}

TEST(a_question_is_a_post_with_our_key)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct intent *in = intent_at(s, url_at(p, "/v1/chat/completions"));
    struct heard h = asked(s, in);

    CHECK_INT(h.reply.err, OK);
    CHECK(strcmp(h.body, "fine") == 0);
    CHECK(peer_heard(p, "POST /v1/chat/completions HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "\r\nAuthorization: Bearer k-123\r\n"));
    CHECK(peer_heard(p, "\r\nContent-Type: application/json\r\n"));
    CHECK(peer_heard(p, "\r\n\r\n{\"q\":1}"));
    CHECK_INT(intent_stats(in).asked_total, 1);
    CHECK_INT(intent_stats(in).failed_total, 0);
    finish(s, in);
}

TEST(an_endpoint_may_be_written_short)
{
    static const struct {
        const char *path, *line;
    } cases[] = {
        {"/v1", "POST /v1/chat/completions HTTP"},
        {"/v1/", "POST /v1/chat/completions HTTP"},
        {"", "POST /chat/completions HTTP"},
        {"/x/chat/completions/", "POST /x/chat/completions HTTP"},
        {"/d/chat/completions?api-version=7",
         "POST /d/chat/completions?api-version=7 HTTP"},
        {"/v2?a=/b", "POST /v2/chat/completions?a=/b HTTP"},
    };
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct intent *in = intent_at(s, url_at(p, cases[i].path));

        CHECK_INT(asked(s, in).reply.err, OK);
        if (!peer_heard(p, cases[i].line))
            T_FAIL("%s is not asked so: %s", cases[i].path, cases[i].line);
        intent_stop(in);
        intent_free(in);
    }
    stage_free(s);
}

TEST(who_does_not_answer_in_time_has_not_answered)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h = {.intent = in};

    CHECK(intent_ask(in, STR("{}"), on_heard, &h));
    UNTIL(s, p->n_asked == 1);
    /* Half an answer is none. */
    peer_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"");
    turn(s, 20);
    CHECK(!h.n);
    later(s, LIMIT_MS + 1);
    UNTIL(s, h.n);
    CHECK_INT(h.reply.err, ERR_TIMEOUT);
    CHECK(strcmp(h.reply.why.text,
                 "the classifier did not answer within 500 ms") == 0);
    CHECK(h.reply.took_ms >= LIMIT_MS);
    CHECK_INT(intent_stats(in).failed_total, 1);
    finish(s, in);
}

#define STATUS(n, more)                                          \
    "HTTP/1.1 " #n " X\r\n" more                                 \
    "Content-Length: 46\r\n\r\n{\"error\":{\"message\":\"words " \
    "with k-123 in it\"}}"

TEST(a_status_is_said_in_words_without_the_key)
{
    static const struct {
        const char *reply;
        enum err e;
        const char *why;
    } cases[] = {
        {STATUS(400, ""), ERR_BAD_REQUEST,
         "the classifier answered with status 400: words with [the key] in it"},
        {STATUS(401, ""), ERR_NOT_ALLOWED,
         "the classifier answered with status 401; it does not take our key"},
        {STATUS(429, ""), ERR_OVERLOADED, NULL},
        {STATUS(529, ""), ERR_OVERLOADED, NULL},
        {STATUS(500, ""), ERR_UNREACHABLE, NULL},
        {STATUS(404, ""), ERR_UNREACHABLE, NULL},
        {STATUS(307, "Location: http://127.0.0.1/\r\n"), ERR_UNREACHABLE,
         "the classifier answered with status 307: words with [the key] in it; "
         "it redirects"},
        {STATUS(204, ""), ERR_UNREACHABLE, NULL},
        {"garbage\r\n\r\n", ERR_BAD_REQUEST, NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(test_opts());
        struct peer *p = peer_open(s, cases[i].reply);
        struct intent *in = intent_at(s, url_at(p, "/v1"));
        struct heard h = asked(s, in);

        CHECK_INT(h.reply.err, cases[i].e);
        CHECK(!strstr(h.reply.why.text, "k-123"));
        if (cases[i].why && strcmp(h.reply.why.text, cases[i].why) != 0)
            T_FAIL("%s", h.reply.why.text);
        CHECK(!h.reply.body.n);
        CHECK(!logged(s, "k-123") && !logged(s, "words with"));
        CHECK_INT(p->n_asked, 1);
        finish(s, in);
    }
}

TEST(too_long_an_answer_is_cut_off)
{
    static char reply[INTENT_ANSWER_MAX + 200];
    struct stage *s = stage_new(test_opts());
    int n = snprintf(reply, sizeof(reply),
                     "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
                     INTENT_ANSWER_MAX + 1);
    struct peer *p = peer_open(s, reply);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h;

    memset(reply + n, 'x', INTENT_ANSWER_MAX + 1);
    h = asked(s, in);
    CHECK_INT(h.reply.err, ERR_BAD_REQUEST);
    CHECK(strcmp(h.reply.why.text,
                 "the classifier's answer has more than 65536 bytes") == 0);
    finish(s, in);
}

TEST(nobody_there_is_not_named_to_who_asked)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h;

    peer_leave(p);
    h = asked(s, in);
    CHECK_INT(h.reply.err, ERR_UNREACHABLE);
    CHECK(strcmp(h.reply.why.text, "the classifier could not be reached") == 0);
    finish(s, in);
}

TEST(where_none_is_configured_nobody_is_asked)
{
    struct stage *s = stage_new(test_opts());
    struct intent *in = intent_at(s, "");
    struct heard h = {.intent = in};

    CHECK_INT(intent_ask(in, STR("{}"), on_heard, &h), 0);
    CHECK_INT(h.reply.err, ERR_UNREACHABLE);
    CHECK_INT(intent_stats(in).unasked_total, 1);
    CHECK_INT(intent_stats(in).asked_total, 0);
    finish(s, in);
}

/* An address that fetch rejects: an error like any other, and not for ever. */
TEST(an_endpoint_that_is_none_is_an_error_of_its_own)
{
    struct stage *s = stage_new(test_opts());
    struct intent *in = intent_at(s, "ftp://x");
    struct peer *p = peer_open(s, FINE);
    struct heard h = {.intent = in};

    CHECK_INT(intent_ask(in, STR("{}"), on_heard, &h), 0);
    CHECK_INT(h.reply.err, ERR_UNREACHABLE);
    /* The address is only logged. */
    CHECK_STR(str_of(h.reply.why.text),
              "the classifier cannot be asked as it is configured");
    CHECK(logged(s, "intent.classifier_unusable"));
    CHECK_INT(intent_set(in, &(struct intent_settings){.endpoint = str_of(
                                                           url_at(p, "/v1")),
                                                       .timeout_ms = LIMIT_MS}),
              OK);
    CHECK_INT(asked(s, in).reply.err, OK);
    CHECK(!peer_heard(p, "Authorization"));
    finish(s, in);
}

TEST(more_than_may_be_under_way_are_turned_away)
{
    struct fetch_opts opts = test_opts();
    struct stage *s;
    struct peer *p;
    struct intent *in;
    static struct heard h[INTENT_OUT_MAX + 2];

    opts.max_open = 4 * (INTENT_OUT_MAX + 1);
    opts.max_per_host = INTENT_OUT_MAX + 1;
    s = stage_new(opts);
    p = peer_open(s, NULL);
    in = intent_at(s, url_at(p, "/v1"));
    for (int i = 0; i < INTENT_OUT_MAX + 1; i++) {
        uint64_t id = intent_ask(in, STR("{}"), on_heard, &h[i]);

        CHECK(!id == (i == INTENT_OUT_MAX));
        h[i].other = id;
    }
    CHECK_INT(h[INTENT_OUT_MAX].reply.err, ERR_BUSY);
    CHECK_INT(intent_stats(in).out, INTENT_OUT_MAX);
    /* One that is cancelled makes room for another. */
    intent_cancel(in, h[0].other);
    intent_cancel(in, h[0].other);
    CHECK_INT(intent_stats(in).out, INTENT_OUT_MAX - 1);
    CHECK(intent_ask(in, STR("{}"), on_heard, &h[INTENT_OUT_MAX + 1]));
    intent_stop(in);
    CHECK(h[0].n == 0);
    for (int i = 1; i < INTENT_OUT_MAX; i++)
        CHECK(h[i].n == 1 && h[i].reply.err == ERR_STOPPING);
    finish(s, in);
}

/* fetch has limits of its own, for all its users. */
TEST(a_full_fetch_is_no_fault_of_the_classifier)
{
    struct fetch_opts opts = test_opts();
    struct stage *s;
    struct peer *p;
    struct intent *in;
    struct heard first = {0}, second = {0};

    opts.max_open = 1;
    opts.max_per_host = 1;
    s = stage_new(opts);
    p = peer_open(s, NULL);
    in = intent_at(s, url_at(p, "/v1"));
    CHECK(intent_ask(in, STR("{}"), on_heard, &first));
    CHECK(!intent_ask(in, STR("{}"), on_heard, &second));
    CHECK_INT(second.reply.err, ERR_BUSY);
    CHECK(!intent_stats(in).is_paused);
    finish(s, in);
}

/* The breaker. */

static void fail_often(struct stage *s, struct intent *in)
{
    for (int i = 0; i < INTENT_FAILURES_MAX; i++) {
        CHECK(!intent_stats(in).is_paused);
        CHECK(asked(s, in).reply.err != OK);
    }
    CHECK(intent_stats(in).is_paused);
}

TEST(who_fails_again_and_again_is_left_alone_for_a_while)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, STATUS(500, ""));
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h;

    fail_often(s, in);
    CHECK(logged(s, "intent.classifier_fails"));
    h = asked(s, in);
    CHECK_INT(h.reply.err, ERR_OVERLOADED);
    CHECK(strcmp(h.reply.why.text, "the classifier failed too often and is "
                                   "left alone for the next 10 s") == 0);
    CHECK_INT(h.reply.took_ms, 0);
    CHECK_INT(p->n_asked, INTENT_FAILURES_MAX);
    /* One probes, and the others do not wait for its result. */
    later(s, INTENT_PAUSE_MS);
    p->reply = NULL;
    h = (struct heard){.intent = in};
    CHECK(intent_ask(in, STR("{}"), on_heard, &h));
    CHECK_INT(asked(s, in).reply.err, ERR_OVERLOADED);
    UNTIL(s, p->n_asked == INTENT_FAILURES_MAX + 1);
    peer_say(p, FINE);
    UNTIL(s, h.n);
    CHECK_INT(h.reply.err, OK);
    CHECK(logged(s, "intent.classifier_back"));
    p->reply = FINE;
    CHECK_INT(asked(s, in).reply.err, OK);
    finish(s, in);
}

TEST(a_probe_that_is_given_up_leaves_its_place_to_another)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, STATUS(500, ""));
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h = {.intent = in};

    fail_often(s, in);
    later(s, INTENT_PAUSE_MS);
    p->reply = FINE;
    intent_cancel(in, intent_ask(in, STR("{}"), on_heard, &h));
    CHECK(!h.n);
    CHECK_INT(asked(s, in).reply.err, OK);
    finish(s, in);
}

TEST(a_pause_that_it_asks_for_is_kept)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, STATUS(429, "Retry-After: 2\r\n"));
    struct intent *in = intent_at(s, url_at(p, "/v1"));

    CHECK_INT(asked(s, in).reply.err, ERR_OVERLOADED);
    CHECK(intent_stats(in).is_paused);
    later(s, 1900);
    CHECK(intent_stats(in).is_paused);
    later(s, 200);
    p->reply = FINE;
    CHECK_INT(asked(s, in).reply.err, OK);
    finish(s, in);
}

/* No text can keep others from being asked about. */
TEST(texts_that_it_refuses_do_not_count_against_it)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, STATUS(400, ""));
    struct intent *in = intent_at(s, url_at(p, "/v1"));

    for (int i = 0; i < 3 * INTENT_FAILURES_MAX; i++)
        CHECK_INT(asked(s, in).reply.err, ERR_BAD_REQUEST);
    CHECK(!intent_stats(in).is_paused);
    CHECK(logged(s, "intent.classifier_refuses"));
    finish(s, in);
}

TEST(another_classifier_begins_anew)
{
    struct stage *s = stage_new(test_opts());
    struct peer *bad = peer_open(s, STATUS(500, ""));
    struct peer *slow = peer_open(s, NULL), *good = peer_open(s, FINE);
    struct intent *in = intent_at(s, url_at(bad, "/v1"));
    struct intent_settings next = {.endpoint = str_of(url_at(slow, "/v1")),
                                   .key = STR("k-123"),
                                   .timeout_ms = LIMIT_MS};
    static struct heard late[INTENT_FAILURES_MAX];

    fail_often(s, in);
    CHECK_INT(intent_set(in, &next), OK);
    CHECK(!intent_stats(in).is_paused);
    /* Results of the old classifier say nothing about the new one. */
    for (int i = 0; i < INTENT_FAILURES_MAX; i++)
        CHECK(intent_ask(in, STR("{}"), on_heard, &late[i]));
    next.endpoint = str_of(url_at(good, "/v1"));
    CHECK_INT(intent_set(in, &next), OK);
    later(s, LIMIT_MS + 1);
    for (int i = 0; i < INTENT_FAILURES_MAX; i++)
        UNTIL(s, late[i].n);
    CHECK(!intent_stats(in).is_paused);
    CHECK_INT(asked(s, in).reply.err, OK);
    /* The same one with another time limit keeps its pause. */
    next.endpoint = str_of(url_at(bad, "/v1"));
    CHECK_INT(intent_set(in, &next), OK);
    fail_often(s, in);
    next.timeout_ms = 100;
    CHECK_INT(intent_set(in, &next), OK);
    CHECK(intent_stats(in).is_paused);
    finish(s, in);
}

#define COMPLAINT(field)                                         \
    "HTTP/1.1 400 X\r\nContent-Type: application/json\r\n"       \
    "Connection: close\r\n\r\n{\"error\":{\"message\":\"'" field \
    "' is not known here\"}}"

TEST(what_it_does_not_know_is_left_out_the_next_time)
{
    static const char body[] =
        "{\"model\":\"m\",\"temperature\":0,\"response_format\":{\"type\":"
        "\"json_schema\"}}";
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, COMPLAINT("response_format.type"));
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h[3] = {{0}};

    p->closes = true;
    for (int i = 0; i < 3; i++) {
        buf_clear(&p->asked);
        intent_ask(in, str_of(body), on_heard, &h[i]);
        UNTIL(s, h[i].n);
        CHECK(peer_heard(p, "json_schema") == (i == 0));
        CHECK(peer_heard(p, "\"temperature\":0") == (i < 2));
        CHECK(peer_heard(p, "\"type\":\"text\"") == (i > 0));
        CHECK(peer_heard(p, "\"temperature\":1") == (i == 2));
        CHECK(peer_heard(p, "\"model\":\"m\""));
        p->reply = COMPLAINT("temperature");
    }
    finish(s, in);
}

/* A complaint that may quote a field's name from the text changes nothing:
 * other questions are asked as before. */
TEST(what_it_quotes_of_a_text_is_no_complaint)
{
    static const char body[] =
        "{\"temperature\":0,\"messages\":[{\"content\":\"is "
        "\\\"Temperature\\\" high?\"}]}",
                      plain[] = "{\"temperature\":0,\"messages\":[]}";
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, COMPLAINT("temperature"));
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h[2] = {{0}};

    p->closes = true;
    for (int i = 0; i < 2; i++) {
        buf_clear(&p->asked);
        intent_ask(in, str_of(i ? plain : body), on_heard, &h[i]);
        UNTIL(s, h[i].n);
        CHECK(peer_heard(p, "\"temperature\":0"));
    }
    finish(s, in);
}

#define PARAM(field)                                           \
    "HTTP/1.1 400 X\r\nContent-Type: application/json\r\n"     \
    "Connection: close\r\n\r\n{\"error\":{\"message\":\"no\"," \
    "\"param\":\"" field "\"}}"

/* The complaint names the field itself. After a while the field is sent again:
 * the endpoint may have been updated. */
TEST(the_field_that_it_names_is_left_out_for_a_while)
{
    static const char body[] =
        "{\"temperature\":0,\"messages\":[\"temperature\"]}";
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, PARAM("temperature"));
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h[4] = {{0}};

    p->closes = true;
    for (int i = 0; i < 4; i++) {
        buf_clear(&p->asked);
        intent_ask(in, str_of(body), on_heard, &h[i]);
        UNTIL(s, h[i].n);
        CHECK(peer_heard(p, "\"temperature\":0") == (i == 0 || i == 3));
        p->reply = PARAM("temperatures");
        later(s, i ? 1 + (i - 1) * (INTENT_HABIT_MS - 1) : 0);
    }
    finish(s, in);
}

/* The key has changed since, so the endpoint's words are not shown. */
TEST(what_the_one_before_says_is_not_repeated)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h = {.intent = in};

    intent_ask(in, STR("{}"), on_heard, &h);
    UNTIL(s, p->n_asked == 1);
    CHECK_INT(intent_set(in, &(struct intent_settings){.endpoint = str_of(
                                                           url_at(p, "/v1")),
                                                       .key = STR("k-456"),
                                                       .timeout_ms = 900}),
              OK);
    peer_say(p, STATUS(400, ""));
    UNTIL(s, h.n);
    CHECK_STR(str_of(h.reply.why.text),
              "the classifier answered with status 400");
    finish(s, in);
}

TEST(a_limit_is_that_of_the_time_it_was_asked)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard h = {.intent = in};

    intent_ask(in, STR("{}"), on_heard, &h);
    UNTIL(s, p->n_asked == 1);
    CHECK_INT(intent_set(in, &(struct intent_settings){.endpoint = str_of(
                                                           url_at(p, "/v1")),
                                                       .key = STR("k-123"),
                                                       .timeout_ms = 900}),
              OK);
    later(s, LIMIT_MS + 1);
    UNTIL(s, h.n);
    CHECK_STR(str_of(h.reply.why.text),
              "the classifier did not answer within 500 ms");
    finish(s, in);
}

/* Calls from inside `done`. */

TEST(who_hears_may_ask_cancel_and_stop)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct intent *in = intent_at(s, url_at(p, "/v1"));
    struct heard a = {.intent = in, .asks_again = true};
    struct heard b = {.intent = in, .cancels_other = true};
    struct heard c = {.intent = in}, d = {.intent = in, .stops = true};
    struct heard e = {.intent = in}, f = {.intent = in};

    intent_ask(in, STR("{}"), on_heard, &a);
    UNTIL(s, a.n && intent_stats(in).out == 0);
    p->reply = NULL;
    b.other = intent_ask(in, STR("{}"), on_heard, &c);
    UNTIL(s, p->n_asked == 3);
    p->reply = FINE;
    intent_ask(in, STR("{}"), on_heard, &b);
    UNTIL(s, b.n);
    CHECK(!c.n && intent_stats(in).out == 0);
    intent_ask(in, STR("{}"), on_heard, &d);
    intent_ask(in, STR("{}"), on_heard, &e);
    UNTIL(s, d.n && e.n);
    CHECK_INT(intent_ask(in, STR("{}"), on_heard, &f), 0);
    CHECK_INT(f.reply.err, ERR_STOPPING);
    finish(s, in);
}

TEST(asking_survives_every_fault)
{
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        struct stage *s = stage_new(test_opts());
        struct peer *p = peer_open(s, COMPLAINT("temperature"));
        const char *url = url_at(p, "/v1");
        struct intent_opts opts = {
            &s->loop,
            &s->log,
            s->fetch,
            {.endpoint = str_of(url), .key = STR("k"), .timeout_ms = 1000000}};
        struct heard h[2] = {{0}};
        struct intent *in;

        p->closes = true;
        fault_arm(nth);
        in = intent_new(&opts);
        for (int i = 0; i < 2 && in; i++) {
            intent_ask(in, STR("{\"temperature\":0}"), on_heard, &h[i]);
            UNTIL(s, h[i].n);
        }
        if (in && intent_set(in, &opts.settings) == OK) {
            struct heard last = {0};

            p->reply = FINE;
            intent_ask(in, STR("{}"), on_heard, &last);
            UNTIL(s, last.n);
        }
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(in || has_fired);
        if (in) {
            p->reply = FINE;
            CHECK_INT(asked(s, in).reply.err, OK);
            intent_stop(in);
            CHECK_INT(intent_stats(in).out, 0);
        }
        intent_free(in);
        stage_free(s);
    }
}
