/* A misbehaving provider: nothing crashes, every caller gets one error with a
 * message, and a good answer after that is used. */
#include "test/lib/embed_stage.h"

/* Its next answer. */
static const char *bad_body, *bad_headers = "", *bad_bytes;
static int bad_status;

static void respond_badly(struct provider_peer *p, struct seat *s)
{
    (void)p;
    if (bad_bytes) {
        say_bytes(s, str_of(bad_bytes));
        seat_step(p, s); /* it disconnects */
        seat_close(s);
    } else {
        say(s, bad_status, bad_headers, str_of(bad_body));
    }
}

/* Ask once; the owner is the caller's to free. */
static struct owner *ask_once(struct estage *st, const char *text)
{
    struct owner *o = ASK(st, text);

    AWAIT(st, o->n_done);
    return o;
}

static void check_well(struct estage *st, const char *text)
{
    struct owner *o;

    st->peer->respond = respond_well;
    o = ask_once(st, text);
    CHECK_INT(o->e, OK);
    CHECK(is_vector_of(o->vectors, TEST_DIMS, text));
    owner_free(o);
}

#define ONE "{\"data\":[{\"index\":0,\"embedding\":"

TEST(whatever_it_says_is_told_in_words)
{
    static const struct {
        int status;
        const char *body;
        enum err e;
        const char *words;
    } cases[] = {
        {200, "", ERR_BAD_REQUEST, "the answer is empty"},
        {200, "<html>Sign in</html>", ERR_BAD_REQUEST, "web page"},
        {200, "{\"data\":[", ERR_BAD_REQUEST, "ends too early"},
        {200, "{\"data\":[]}", ERR_BAD_REQUEST, "0 vectors came where 1"},
        {200, ONE "[1]},{\"index\":1,\"embedding\":[1]}]}", ERR_BAD_REQUEST,
         "more vectors"},
        {200, ONE "[1,NaN]}]}", ERR_BAD_REQUEST, "not a JSON"},
        {200, ONE "[1,2,3,4,5,6,7,null]}]}", ERR_BAD_REQUEST, "no number"},
        {200, ONE "[0,0,0,0,0,0,0,0]}]}", ERR_BAD_REQUEST, "all zero"},
        {200, ONE "[1,2,3,4,5,6,7,8,9]}]}", ERR_BAD_REQUEST,
         "9 numbers where 8"},
        {201, ONE "[1,2,3,4,5,6,7,8]}]}", ERR_BAD_REQUEST, "status 201"},
        {400,
         "{\"error\":{\"message\":\"This model's maximum context length "
         "is 8192 tokens\"}}",
         ERR_BAD_REQUEST, "maximum context length"},
        {401,
         "{\"error\":{\"message\":\"Incorrect API key provided: "
         "sk-secret-1234.\"}}",
         ERR_NOT_ALLOWED, "embed.http.keyVariable"},
        {401,
         "{\"error\":{\"message\":\"Incorrect API key provided: "
         "sk-secre*1234.\"}}",
         ERR_NOT_ALLOWED, "embed.http.keyVariable"},
        {403, "no", ERR_NOT_ALLOWED, "embed.http.keyVariable"},
        {404, "{\"error\":\"model \\\"x\\\" not found\"}", ERR_BAD_REQUEST,
         "embed.http.model"},
        {308, "", ERR_BAD_REQUEST, "elsewhere"},
        {429, "{\"error\":{\"message\":\"slow down\"}}", ERR_OVERLOADED,
         "slow down"},
        {500, "<html>", ERR_UNREACHABLE, "status 500"},
        {503, "{\"error\":\"loading model\"}", ERR_UNREACHABLE,
         "loading model"},
    };
    struct estage *st = estage_begin();

    st->opts.http.dims = TEST_DIMS;
    st->opts.http.breaker_failures = 1000;
    st->opts.cache_entries = 0;
    estage_open(st);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct owner *o;

        st->peer->respond = respond_badly;
        bad_status = cases[i].status;
        bad_body = cases[i].body;
        o = ask_once(st, "text");
        if (o->e != cases[i].e || !strstr(o->why, cases[i].words) ||
            strstr(o->why, "sk-"))
            T_FAIL("%d %s: %d, %s", cases[i].status, cases[i].body, o->e,
                   o->why);
        CHECK(strstr(o->why, "127.0.0.1:"));
        owner_free(o);
        check_well(st, "text");
    }
    CHECK_INT(embed_stats(st->embed).failed_total,
              sizeof(cases) / sizeof(cases[0]));
    estage_free(st);
}

/* Raw bytes, and the behavior of the connection. */
TEST(what_is_no_http_is_no_answer_either)
{
    static const struct {
        const char *bytes;
        enum err e;
    } cases[] = {
        {"", ERR_BAD_REQUEST},
        {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\":[",
         ERR_BAD_REQUEST},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"dat",
         ERR_BAD_REQUEST},
        {"SSH-2.0-OpenSSH_9.2\r\n", ERR_BAD_REQUEST},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{",
         ERR_BAD_REQUEST},
    };
    struct estage *st = estage_begin();

    st->opts.http.breaker_failures = 1000;
    st->opts.cache_entries = 0;
    estage_open(st);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct owner *o;

        st->peer->respond = respond_badly;
        bad_bytes = cases[i].bytes;
        o = ask_once(st, "text");
        if (o->e != cases[i].e)
            T_FAIL("%s: %d, %s", cases[i].bytes, o->e, o->why);
        owner_free(o);
        bad_bytes = NULL;
        check_well(st, "text");
    }
    estage_free(st);
}

TEST(an_answer_that_is_too_large_is_cut_off)
{
    struct estage *st = estage_begin();
    char *large = malloc(4 << 20);
    struct owner *o;

    st->opts.http.max_answer_bytes = 65536;
    estage_open(st);
    memset(large, ' ', (4 << 20) - 1);
    large[(4 << 20) - 1] = '\0';
    st->peer->respond = respond_badly;
    bad_status = 200;
    bad_body = large;
    o = ask_once(st, "text");
    CHECK(o->e == ERR_BAD_REQUEST && strstr(o->why, "embed.http.batch"));
    owner_free(o);
    check_well(st, "text");
    free(large);
    estage_free(st);
}

/* Reading an answer takes the loop's time, so its size is limited to what the
 * request can need. */
TEST(an_answer_has_a_limit_by_what_was_asked_for)
{
    struct estage *st = estage_begin();
    char *large = malloc(1 << 20);
    struct owner *o;

    st->opts.http.max_answer_bytes = 64 << 20;
    estage_open(st);
    check_well(st, "first");
    memset(large, ' ', (1 << 20) - 1);
    large[(1 << 20) - 1] = '\0';
    st->peer->respond = respond_badly;
    bad_status = 200;
    bad_body = large;
    o = ask_once(st, "text");
    CHECK(o->e == ERR_BAD_REQUEST && strstr(o->why, "too large"));
    owner_free(o);
    free(large);
    estage_free(st);
}

TEST(nobody_there_is_unreachable_and_silence_a_timeout)
{
    struct estage *st = estage_new();
    struct owner *o;

    st->peer->respond = NULL;
    o = ASK(st, "text");
    AWAIT(st, waiting_seat(st->peer));
    elater(st, st->opts.http.timeout_ms);
    AWAIT(st, o->n_done);
    CHECK_INT(o->e, ERR_TIMEOUT);
    owner_free(o);
    embed_free(st->embed);
    st->opts.http.url = STR("http://127.0.0.1:1/v1/embeddings");
    estage_open(st);
    o = ask_once(st, "text");
    CHECK_INT(o->e, ERR_UNREACHABLE);
    owner_free(o);
    estage_free(st);
}

TEST(a_length_that_was_learnt_is_kept_to)
{
    struct estage *st = estage_new();
    struct owner *o;

    check_well(st, "first");
    st->peer->dims = TEST_DIMS * 2;
    o = ask_once(st, "second");
    CHECK(o->e == ERR_BAD_REQUEST && strstr(o->why, "16 numbers where 8"));
    CHECK(strstr(o->why, "set embed.http.dimensions and restart"));
    CHECK_INT(embed_stamp(st->embed).dims, TEST_DIMS);
    owner_free(o);
    st->peer->dims = TEST_DIMS;
    check_well(st, "first"); /* from the cache */
    check_well(st, "third");
    estage_free(st);
}

/* A provider that echoes its request also echoes the texts of other callers. */
TEST(words_of_the_provider_go_to_who_was_alone_in_the_request)
{
    struct estage *st = estage_begin();
    struct owner *a, *b;
    struct why why;
    enum err e;

    st->opts.http.breaker_failures = 1;
    estage_open(st);
    st->peer->respond = respond_badly;
    bad_status = 503;
    bad_body = "{\"error\":\"cannot do 'my diary'\"}";
    a = ASK(st, "my diary", "a");
    b = ASK(st, "b");
    AWAIT(st, a->n_done && b->n_done);
    CHECK(strstr(a->why, "status 503") && !strstr(a->why, "diary"));
    CHECK(strstr(b->why, "status 503") && !strstr(b->why, "diary"));
    owner_free(a);
    owner_free(b);
    elater(st, st->opts.http.breaker_pause_ms);
    a = ASK(st, "my diary", "c");
    AWAIT(st, a->n_done);
    CHECK(strstr(a->why, "diary"));
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("d"), &e, &why));
    CHECK(e == ERR_OVERLOADED && strstr(why.text, "status 503") &&
          !strstr(why.text, "diary") && strstr(why.text, "500 s"));
    CHECK(!strstr(log_text(st), "diary"));
    CHECK(strstr(log_text(st), "embed.provider_fails"));
    owner_free(a);
    estage_free(st);
}

/* A text given up after it was sent was still part of the request. */
TEST(who_was_alone_only_since_another_left_was_not_alone)
{
    struct estage *st = estage_new();
    struct owner *a, *b;

    st->peer->respond = NULL;
    a = ASK(st, "my diary");
    b = ASK(st, "b");
    AWAIT(st, waiting_seat(st->peer));
    embed_cancel(st->embed, a->id);
    say_text(waiting_seat(st->peer), 503, "{\"error\":\"'my diary'\"}");
    AWAIT(st, b->n_done);
    CHECK(strstr(b->why, "status 503") && !strstr(b->why, "diary"));
    owner_free(a);
    owner_free(b);
    estage_free(st);
}

/* A text that is too long for it. */

/* Rejects requests with a text that contains an 'X'. */
static void respond_without_x(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "X"))
        say_text(s, 400, "{\"error\":{\"message\":\"X is too long\"}}");
    else
        respond_well(p, s);
}

TEST(a_text_that_is_refused_does_not_take_its_neighbours_along)
{
    struct estage *st = estage_begin();
    struct owner *o[16];
    char text[16][8];

    st->opts.http.batch = 16;
    st->opts.http.dims = TEST_DIMS;
    st->peer->respond = respond_without_x;
    estage_open(st);
    for (int i = 0; i < 16; i++) {
        snprintf(text[i], sizeof(text[i]), "%s%d", i == 5 ? "X" : "t", i);
        o[i] = ASK(st, text[i]);
    }
    for (int i = 0; i < 16; i++)
        AWAIT(st, o[i]->n_done);
    for (int i = 0; i < 16; i++) {
        if (i == 5)
            CHECK(o[i]->e == ERR_BAD_REQUEST && strstr(o[i]->why, "X is too"));
        else
            CHECK(o[i]->e == OK &&
                  is_vector_of(o[i]->vectors, TEST_DIMS, text[i]));
        owner_free(o[i]);
    }
    CHECK_INT(st->peer->n_asked, 1 + 2 * 4);
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

/* Send so many texts of as many callers in one request. Returns how many
 * failed; every text with an X did. */
static int ask_many(struct estage *st, int n, int every_nth_is_x)
{
    struct owner *o[64];
    int n_failed = 0;

    CHECK(n <= 64);
    for (int i = 0; i < n; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%s%d",
                 i % every_nth_is_x == 0 ? "X" : "t", i);
        o[i] = TELL(st, text);
    }
    for (int i = 0; i < n; i++) {
        AWAIT(st, o[i]->n_done);
        CHECK(i % every_nth_is_x || o[i]->e);
        n_failed += o[i]->e != OK;
        owner_free(o[i]);
    }
    return n_failed;
}

TEST(however_many_are_refused_the_others_have_their_vectors)
{
    struct estage *st = estage_begin();

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->opts.max_waiting = 200;
    st->opts.cache_entries = 0;
    st->peer->respond = respond_without_x;
    estage_open(st);
    CHECK_INT(ask_many(st, 60, 12), 5);
    st->peer->n_asked = 0;
    CHECK_INT(ask_many(st, 60, 10), 6);
    CHECK(st->peer->n_asked < 60); /* as cheap as each text alone */
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

/* llama.cpp: a text that is too long is a 500. */
static void respond_as_llama(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "X"))
        say_text(s, 500,
                 "{\"error\":{\"code\":500,\"message\":\"input is too large "
                 "to process. increase the physical batch size\"}}");
    else
        respond_well(p, s);
}

TEST(what_is_too_long_is_that_with_status_500_too)
{
    struct estage *st = estage_begin();

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->opts.max_waiting = 200;
    st->peer->respond = respond_as_llama;
    estage_open(st);
    for (int i = 0; i < 10; i++) {
        struct owner *o = ask_once(st, "X");

        CHECK(o->e == ERR_BAD_REQUEST && strstr(o->why, "too large"));
        owner_free(o);
    }
    CHECK_INT(ask_many(st, 60, 30), 2);
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

static void respond_broken_by_x(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "X"))
        say_text(s, 500, "{\"error\":\"CUDA error\"}");
    else
        respond_well(p, s);
}

TEST(a_text_that_breaks_it_does_not_take_its_neighbours_along)
{
    struct estage *st = estage_begin();

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->opts.max_waiting = 200;
    st->peer->respond = respond_broken_by_x;
    estage_open(st);
    for (int i = 0; i < 10; i++)
        CHECK_INT(ask_many(st, 16, 16), 1);
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

TEST(one_that_is_broken_is_not_asked_for_ever)
{
    struct estage *st = estage_begin();

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->opts.max_waiting = 200;
    st->peer->respond = respond_broken_by_x;
    estage_open(st);
    for (int i = 0; i < st->opts.http.breaker_failures; i++) {
        CHECK(!embed_stats(st->embed).is_paused);
        CHECK_INT(ask_many(st, 60, 1), 60);
        CHECK_INT(st->peer->n_asked, (i + 1) * (1 + PARTS_BROKEN_MAX));
    }
    CHECK(embed_stats(st->embed).is_paused);
    estage_free(st);
}

TEST(one_that_refuses_everything_is_left_alone)
{
    struct estage *st = estage_begin();

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->opts.max_waiting = 200;
    st->peer->respond = respond_without_x;
    estage_open(st);
    for (int i = 0; i < st->opts.http.breaker_failures; i++) {
        CHECK(!embed_stats(st->embed).is_paused);
        CHECK_INT(ask_many(st, 60, 1), 60);
    }
    CHECK(embed_stats(st->embed).is_paused);
    CHECK(strstr(log_text(st), "embed.provider_refuses"));
    /* Its probe is rejected part by part, one at a time. */
    elater(st, st->opts.http.breaker_pause_ms);
    st->peer->n_asked = 0;
    CHECK_INT(ask_many(st, 60, 1), 60);
    CHECK_INT(st->peer->n_asked, 1 + PARTS_BLIND_MAX);
    CHECK(embed_stats(st->embed).is_paused);
    elater(st, st->opts.http.breaker_pause_ms);
    CHECK_INT(ask_many(st, 60, 20), 3);
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

TEST(a_refusal_is_logged_once_in_a_while)
{
    struct estage *st = estage_new();
    const char *first;

    st->peer->respond = respond_without_x;
    for (int i = 0; i < 4; i++)
        owner_free(ask_once(st, "X"));
    first = strstr(log_text(st), "embed.provider_refuses");
    CHECK(first && !strstr(first + 1, "embed.provider_refuses"));
    CHECK(!strstr(first, "too long"));
    elater(st, REFUSED_LOG_MS);
    owner_free(ask_once(st, "X"));
    first = strstr(log_text(st), "embed.provider_refuses");
    CHECK(first && strstr(first + 1, "embed.provider_refuses"));
    estage_free(st);
}

TEST(where_all_is_refused_it_is_not_asked_for_ever)
{
    enum { TEXTS = 60 };
    struct estage *st = estage_begin();
    struct owner *o[TEXTS];

    st->opts.http.batch = 64;
    st->opts.http.dims = TEST_DIMS;
    st->peer->respond = respond_without_x;
    estage_open(st);
    for (int i = 0; i < TEXTS; i++)
        o[i] = ASK(st, "X");
    for (int i = 0; i < TEXTS; i++) {
        AWAIT(st, o[i]->n_done);
        CHECK_INT(o[i]->e, ERR_OVERLOADED); /* not tried alone */
        owner_free(o[i]);
    }
    CHECK_INT(st->peer->n_asked, 1 + PARTS_BLIND_MAX);
    estage_free(st);
}

TEST(of_one_call_all_fail_with_the_first)
{
    struct estage *st = estage_begin();
    struct owner *o, *other;

    st->opts.http.batch = 8;
    st->opts.http.dims = TEST_DIMS;
    st->peer->respond = respond_without_x;
    estage_open(st);
    o = ASK(st, "a", "b", "X", "d", "e");
    other = ASK(st, "f");
    AWAIT(st, o->n_done && other->n_done);
    CHECK(o->e == ERR_BAD_REQUEST && other->e == OK);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    owner_free(o);
    owner_free(other);
    estage_free(st);
}

TEST(parts_may_be_given_up_too)
{
    struct estage *st = estage_begin();
    struct owner *o[4];

    st->opts.http.max_requests = 1;
    st->peer->respond = NULL;
    estage_open(st);
    for (int i = 0; i < 4; i++)
        o[i] = ASK(st, i < 2 ? "X" : "y");
    AWAIT(st, waiting_seat(st->peer));
    respond_without_x(st->peer, waiting_seat(st->peer));
    AWAIT(st, waiting_seat(st->peer)); /* one half; the other waits */
    embed_cancel(st->embed, o[3]->id);
    embed_cancel(st->embed, o[2]->id);
    st->peer->respond = respond_without_x;
    respond_without_x(st->peer, waiting_seat(st->peer));
    AWAIT(st, o[0]->n_done && o[1]->n_done);
    CHECK(!o[2]->n_done && !o[3]->n_done);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    check_well(st, "z");
    for (int i = 0; i < 4; i++)
        owner_free(o[i]);
    estage_free(st);
}

/* The breaker, as seen by owners. */

static void fail_until_open(struct estage *st)
{
    st->peer->respond = respond_badly;
    bad_status = 500;
    bad_body = "{\"error\":\"broken\"}";
    for (int i = 0; i < st->opts.http.breaker_failures; i++) {
        struct owner *o;

        CHECK(!embed_stats(st->embed).is_paused);
        o = ask_once(st, "text");
        CHECK_INT(o->e, ERR_UNREACHABLE);
        owner_free(o);
    }
    CHECK(embed_stats(st->embed).is_paused);
}

TEST(who_fails_again_and_again_is_left_alone_and_then_tried_once)
{
    struct estage *st = estage_new();
    int n_asked;
    struct owner *o, *second;
    struct why why;
    enum err e;

    check_well(st, "kept");
    fail_until_open(st);
    n_asked = st->peer->n_asked;
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("text"), &e, &why));
    CHECK(e == ERR_OVERLOADED && strstr(why.text, "status 500"));
    o = ask_once(st, "kept"); /* the cache still works */
    CHECK_INT(o->e, OK);
    owner_free(o);
    elater(st, st->opts.http.breaker_pause_ms - 1000);
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("text"), &e, &why));
    CHECK_INT(
        embed_stats(st->embed).cache_misses_total,
        1 + st->opts.http.breaker_failures); /* a rejected call is not one */
    CHECK(embed_stats(st->embed).is_paused);
    elater(st, 1000);
    CHECK(!embed_stats(st->embed).is_paused); /* though no call was made */
    /* One probe: calls of the same turn wait for it, later ones fail. */
    st->peer->respond = NULL;
    o = ASK(st, "a", "b", "c", "d", "e");
    AWAIT(st, waiting_seat(st->peer));
    eturns(st, 10);
    CHECK_INT(st->peer->n_asked, n_asked + 1);
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("text"), &e, &why));
    CHECK_INT(e, ERR_OVERLOADED);
    say_text(waiting_seat(st->peer), 500, "{\"error\":\"still broken\"}");
    AWAIT(st, o->n_done);
    CHECK(o->e == ERR_UNREACHABLE && embed_stats(st->embed).is_paused);
    owner_free(o);
    elater(st, st->opts.http.breaker_pause_ms);
    o = ASK(st, "a", "b", "c", "d", "e");
    second = ASK(st, "f");
    AWAIT(st, waiting_seat(st->peer));
    st->peer->respond = respond_well;
    respond_well(st->peer, waiting_seat(st->peer));
    AWAIT(st, o->n_done && second->n_done);
    CHECK(o->e == OK && second->e == OK && !embed_stats(st->embed).is_paused);
    owner_free(o);
    owner_free(second);
    estage_free(st);
}

TEST(what_waits_behind_a_probe_that_fails_fails_with_it)
{
    struct estage *st = estage_new();
    struct owner *probe, *behind;

    fail_until_open(st);
    elater(st, st->opts.http.breaker_pause_ms);
    st->peer->respond = NULL;
    probe = ASK(st, "a", "b", "c", "d");
    behind = ASK(st, "e");
    AWAIT(st, waiting_seat(st->peer));
    say_text(waiting_seat(st->peer), 500, "");
    AWAIT(st, probe->n_done && behind->n_done);
    CHECK(probe->e == ERR_UNREACHABLE && behind->e == ERR_OVERLOADED);
    owner_free(probe);
    owner_free(behind);
    estage_free(st);
}

TEST(a_probe_that_is_given_up_leaves_room_for_another)
{
    struct estage *st = estage_new();
    struct owner *o;

    fail_until_open(st);
    elater(st, st->opts.http.breaker_pause_ms);
    st->peer->respond = NULL;
    o = ASK(st, "a");
    AWAIT(st, waiting_seat(st->peer));
    embed_cancel(st->embed, o->id);
    eturns(st, 4);
    owner_free(o);
    check_well(st, "b");
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

TEST(a_probe_that_is_too_long_was_answered)
{
    struct estage *st = estage_new();

    fail_until_open(st);
    elater(st, st->opts.http.breaker_pause_ms);
    st->peer->respond = respond_as_llama;
    owner_free(ask_once(st, "X"));
    CHECK(!embed_stats(st->embed).is_paused);
    check_well(st, "b");
    estage_free(st);
}

TEST(a_pause_that_it_asks_for_is_kept)
{
    struct estage *st = estage_new();
    struct owner *o;
    struct why why;
    enum err e;

    st->peer->respond = respond_badly;
    bad_status = 429;
    bad_body = "{}";
    bad_headers = "retry-after: 20\r\n";
    o = ask_once(st, "text");
    CHECK(o->e == ERR_OVERLOADED && embed_stats(st->embed).is_paused);
    owner_free(o);
    elater(st, 10 * 1000);
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("text"), &e, &why));
    CHECK_INT(e, ERR_OVERLOADED);
    elater(st, 10 * 1000);
    check_well(st, "text");
    /* At any length, in any spelling. */
    st->peer->respond = respond_badly;
    bad_headers = "Retry-After: 99999999999\r\n";
    o = ask_once(st, "other");
    owner_free(o);
    CHECK(embed_stats(st->embed).is_paused);
    elater(st, BREAKER_PAUSE_MAX_MS);
    check_well(st, "other");
    st->peer->respond = respond_badly;
    bad_headers = "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n";
    o = ask_once(st, "third");
    owner_free(o);
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

TEST(a_text_that_is_refused_says_nothing_against_the_provider)
{
    struct estage *st = estage_new();

    st->peer->respond = respond_without_x;
    for (int i = 0; i < 10; i++) {
        struct owner *o = ask_once(st, "X");

        CHECK_INT(o->e, ERR_BAD_REQUEST);
        owner_free(o);
    }
    CHECK(!embed_stats(st->embed).is_paused);
    estage_free(st);
}

/* Messages about the provider, not about a text, although they look similar. */
TEST(a_provider_that_is_in_trouble_itself_is_left_alone)
{
    static const char *const bodies[] = {
        "{\"error\":\"do embedding request: context deadline exceeded\"}",
        "{\"error\":{\"message\":\"Too many requests\"}}",
        "{\"error\":{\"message\":\"quota exceeded\"}}",
    };

    for (size_t k = 0; k < sizeof(bodies) / sizeof(bodies[0]); k++) {
        struct estage *st = estage_new();

        st->peer->respond = respond_badly;
        bad_status = 500;
        bad_headers = "";
        bad_body = bodies[k];
        for (int i = 0; i < 50 && !embed_stats(st->embed).is_paused; i++) {
            char text[16];

            snprintf(text, sizeof(text), "q%d", i);
            owner_free(ask_once(st, text));
        }
        CHECK(embed_stats(st->embed).is_paused);
        CHECK(st->peer->n_asked < 50);
        estage_free(st);
    }
}

/* The opposite. */
TEST(every_way_to_say_too_long_is_about_the_text)
{
    static const char *const bodies[] = {
        "{\"error\":\"the input length exceeds the context length\"}",
        "{\"error\":\"larger than the available context size\"}",
        "{\"error\":\"This model's maximum context is 512\"}",
        "{\"error\":\"Too many tokens: 700, at most 512\"}",
        "{\"error\":\"input is too long\"}",
    };

    for (size_t k = 0; k < sizeof(bodies) / sizeof(bodies[0]); k++) {
        struct estage *st = estage_new();

        st->peer->respond = respond_badly;
        bad_status = 500;
        bad_headers = "";
        bad_body = bodies[k];
        for (int i = 0; i < 10; i++) {
            struct owner *o = ask_once(st, "X");

            CHECK_INT(o->e, ERR_BAD_REQUEST);
            owner_free(o);
        }
        CHECK(!embed_stats(st->embed).is_paused);
        estage_free(st);
    }
}
