/* A well-behaved provider: the requests it gets, how many, and for which
 * caller. embed_hostile_test.c has the others. */
#include "test/lib/embed_stage.h"

TEST(vectors_come_to_who_asked_for_them)
{
    struct estage *st = estage_new();
    struct owner *a = ASK(st, "apple", "pear", "plum");
    struct owner *b = TELL(st, "a fruit");
    struct embed_stamp stamp;

    CHECK_INT(embed_stats(st->embed).waiting, 4);
    CHECK_INT(embed_stamp(st->embed).dims, 0);
    AWAIT(st, a->n_done && b->n_done);
    stamp = embed_stamp(st->embed);
    CHECK(a->e == OK && b->e == OK && a->n == 3 && b->n == 1);
    CHECK_INT(stamp.dims, TEST_DIMS);
    CHECK(embed_stamp_is(&a->stamp, &stamp));
    CHECK(is_vector_of(a->vectors, TEST_DIMS, "apple"));
    CHECK(is_vector_of(a->vectors + TEST_DIMS, TEST_DIMS, "pear"));
    CHECK(is_vector_of(a->vectors + 2 * (size_t)TEST_DIMS, TEST_DIMS, "plum"));
    CHECK(is_vector_of(b->vectors, TEST_DIMS, "a fruit"));
    CHECK_INT(embed_stats(st->embed).texts_total, 4);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    owner_free(a);
    owner_free(b);
    estage_free(st);
}

TEST(a_request_is_what_openai_takes)
{
    struct estage *st = estage_begin();
    struct owner *o;
    struct seat *s;

    st->peer->respond = NULL;
    st->opts.http.dims = TEST_DIMS;
    st->opts.http.query_prefix = STR("query: ");
    st->opts.http.document_prefix = STR("passage:\n");
    estage_open(st);
    o = ASK(st, "say \"hi\"", "to\tall");
    AWAIT(st, (s = waiting_seat(st->peer)));
    CHECK_STR(s->body, "{\"model\":\"small \\\"one\\\"\",\"input\":["
                       "\"query: say \\\"hi\\\"\",\"query: to\\tall\"],"
                       "\"encoding_format\":\"float\",\"dimensions\":8}");
    buf_add_char(&st->peer->heads, '\0');
    CHECK(strstr(st->peer->heads.p, "POST /v1/embeddings HTTP/1.1\r\n"));
    CHECK(strstr(st->peer->heads.p, "\r\nContent-Type: application/json\r\n"));
    CHECK(
        strstr(st->peer->heads.p, "\r\nAuthorization: Bearer sk-secret-1234"));
    respond_well(st->peer, s);
    AWAIT(st, o->n_done);
    CHECK(o->e == OK);
    owner_free(o);
    o = TELL(st, "all");
    AWAIT(st, (s = waiting_seat(st->peer)));
    CHECK(seat_heard(s, "[\"passage:\\nall\"]"));
    respond_well(st->peer, s);
    AWAIT(st, o->n_done);
    owner_free(o);
    estage_free(st);
}

TEST(what_is_no_utf8_and_what_is_long_is_sent_as_text_all_the_same)
{
    struct estage *st = estage_begin();
    char longest[300];
    struct owner *o;
    struct seat *s;

    st->peer->respond = NULL;
    estage_open(st);
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 99, "\xc3\xa9", 2); /* the limit is within this one */
    longest[299] = '\0';
    o = ASK(st,
            "a\xff"
            "b",
            longest);
    AWAIT(st, (s = waiting_seat(st->peer)));
    CHECK(seat_heard(s, "[\"a\xef\xbf\xbd"
                        "b\",\"xxx"));
    longest[99] = '\0';
    CHECK(seat_heard(s, longest) && !seat_heard(s, "\xc3"));
    respond_well(st->peer, s);
    AWAIT(st, o->n_done);
    CHECK(o->e == OK);
    owner_free(o);
    estage_free(st);
}

TEST(no_key_is_sent_where_there_is_none)
{
    struct estage *st = estage_begin();
    struct owner *o;

    st->opts.http.key = STR("");
    estage_open(st);
    o = ASK(st, "a");
    AWAIT(st, o->n_done);
    CHECK(o->e == OK);
    buf_add_char(&st->peer->heads, '\0');
    CHECK(!strstr(st->peer->heads.p, "Authorization"));
    owner_free(o);
    estage_free(st);
}

TEST(texts_of_one_turn_travel_together)
{
    struct estage *st = estage_new();
    struct owner *o[9];
    char text[9][8];

    for (int i = 0; i < 9; i++) {
        snprintf(text[i], sizeof(text[i]), "text %d", i);
        o[i] = ASK(st, text[i]);
    }
    for (int i = 0; i < 9; i++)
        AWAIT(st, o[i]->n_done);
    CHECK_INT(st->peer->n_asked, 3); /* of four, four and one */
    CHECK_INT(st->peer->largest, 4);
    CHECK_INT(embed_stats(st->embed).requests_total, 3);
    for (int i = 0; i < 9; i++) {
        CHECK(o[i]->e == OK);
        CHECK(is_vector_of(o[i]->vectors, TEST_DIMS, text[i]));
        owner_free(o[i]);
    }
    estage_free(st);
}

TEST(a_request_has_a_limit_of_bytes)
{
    enum { EACH = 400 * 1024 };
    struct estage *st = estage_begin();
    char *large = malloc(EACH + 1);
    struct owner *o;

    st->opts.http.max_text_bytes = EACH;
    st->opts.max_waiting_bytes = 8 << 20;
    estage_open(st);
    memset(large, 'x', EACH);
    large[EACH] = '\0';
    o = TELL(st, large, large, large);
    AWAIT(st, o->n_done);
    CHECK(o->e == OK && st->peer->largest == 2 && st->peer->n_asked == 2);
    owner_free(o);
    free(large);
    estage_free(st);
}

TEST(a_request_has_a_limit_of_numbers)
{
    struct estage *st = estage_begin();
    const char *texts[41] = {0};
    struct owner *o;

    st->opts.http.batch = 64;
    st->opts.max_waiting_bytes = 8 << 20;
    st->peer->dims = 1024;
    estage_open(st);
    for (int i = 0; i < 40; i++)
        texts[i] = "x";
    o = start_texts(st->embed, EMBED_QUERY, texts);
    AWAIT(st, o->n_done);
    CHECK_INT(o->e, OK);
    /* The length was unknown at first; some was requested. */
    CHECK_INT(st->peer->largest, 32);
    owner_free(o);
    st->peer->largest = 0;
    o = start_texts(st->embed, EMBED_DOCUMENT, texts);
    AWAIT(st, o->n_done);
    CHECK(o->e == OK && st->peer->largest == ASK_NUMBERS_MAX / 1024);
    owner_free(o);
    estage_free(st);
}

TEST(so_many_requests_are_under_way_and_one_is_kept_for_queries)
{
    struct estage *st = estage_new();
    struct owner *docs[3], *ask, *late;

    st->peer->respond = NULL;
    docs[0] = TELL(st, "a", "b", "c", "d");
    docs[1] = TELL(st, "e", "f", "g", "h");
    docs[2] = TELL(st, "i");
    AWAIT(st, n_waiting_seats(st->peer) == 1);
    eturns(st, 20);
    CHECK_INT(n_waiting_seats(st->peer), 1); /* one of two is reserved */
    ask = ASK(st, "who?");
    AWAIT(st, n_waiting_seats(st->peer) == 2);
    late = ASK(st, "and who else?");
    eturns(st, 20);
    CHECK_INT(n_waiting_seats(st->peer), 2); /* the maximum */
    /* Whichever ends first: the query is next. */
    respond_well(st->peer, waiting_seat(st->peer));
    AWAIT(st, docs[0]->n_done && n_waiting_seats(st->peer) == 2);
    st->peer->respond = respond_well;
    while (waiting_seat(st->peer)) {
        CHECK(!seat_heard(waiting_seat(st->peer), "\"e\""));
        respond_well(st->peer, waiting_seat(st->peer));
    }
    AWAIT(st,
          ask->n_done && late->n_done && docs[1]->n_done && docs[2]->n_done);
    for (int i = 0; i < 3; i++)
        owner_free(docs[i]);
    owner_free(ask);
    owner_free(late);
    estage_free(st);
}

/* Rejects documents with an 'X', one request at a time. */
static void respond_without_x(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "X"))
        say_text(s, 400, "{\"error\":{\"message\":\"X is too long\"}}");
    else
        respond_well(p, s);
}

TEST(a_question_does_not_wait_for_parts_of_documents)
{
    struct estage *st = estage_begin();
    struct owner *docs[4], *ask;

    st->opts.http.max_requests = 1;
    st->peer->respond = NULL;
    estage_open(st);
    for (int i = 0; i < 4; i++)
        docs[i] = TELL(st, "X");
    AWAIT(st, waiting_seat(st->peer));
    ask = ASK(st, "who?");
    eturns(st, 4);
    respond_without_x(st->peer, waiting_seat(st->peer));
    AWAIT(st, waiting_seat(st->peer));
    CHECK(seat_heard(waiting_seat(st->peer), "who?"));
    st->peer->respond = respond_without_x;
    respond_without_x(st->peer, waiting_seat(st->peer));
    AWAIT(st, ask->n_done);
    CHECK_INT(ask->e, OK);
    owner_free(ask);
    for (int i = 0; i < 4; i++) {
        AWAIT(st, docs[i]->n_done);
        owner_free(docs[i]);
    }
    estage_free(st);
}

/* The cache. */

TEST(a_query_is_asked_for_once)
{
    struct estage *st = estage_new();
    struct owner *o = ASK(st, "apple", "pear");
    float v[TEST_DIMS];
    struct embed_stats s;

    CHECK(!embed_now(st->embed, STR("apple"), EMBED_QUERY, v));
    AWAIT(st, o->n_done);
    owner_free(o);
    CHECK(embed_now(st->embed, STR("apple"), EMBED_QUERY, v));
    CHECK(is_vector_of(v, TEST_DIMS, "apple"));
    CHECK(!embed_now(st->embed, STR("apple"), EMBED_DOCUMENT, v));
    CHECK(!embed_now(st->embed, STR("appl"), EMBED_QUERY, v));
    o = ASK(st, "pear", "plum", "apple");
    AWAIT(st, o->n_done);
    CHECK(is_vector_of(o->vectors, TEST_DIMS, "pear"));
    CHECK(is_vector_of(o->vectors + TEST_DIMS, TEST_DIMS, "plum"));
    CHECK(is_vector_of(o->vectors + 2 * (size_t)TEST_DIMS, TEST_DIMS, "apple"));
    s = embed_stats(st->embed);
    CHECK_INT(s.texts_total, 3);
    CHECK_INT(s.cache_hits_total, 3);
    CHECK_INT(s.cache_misses_total, 3);
    CHECK_INT(s.cache_entries, 3);
    owner_free(o);
    estage_free(st);
}

/* While the provider is down too. */
TEST(a_question_of_one_org_is_known_to_no_other)
{
    struct estage *st = estage_new();
    struct owner *o = ASK(st, "apple");
    float v[TEST_DIMS];

    AWAIT(st, o->n_done); /* of no scope */
    owner_free(o);
    CHECK(embed_now_for(st->embed, STR(""), STR("apple"), v));
    CHECK(!embed_now_for(st->embed, STR("org:acme"), STR("apple"), v));
    estage_free(st);
}

TEST(what_is_all_in_the_cache_comes_later_all_the_same)
{
    struct estage *st = estage_new();
    struct owner *o = ASK(st, "apple");

    AWAIT(st, o->n_done);
    owner_free(o);
    o = ASK(st, "apple"); /* which checks that it was not called yet */
    eturn(st);
    CHECK(o->n_done && is_vector_of(o->vectors, TEST_DIMS, "apple"));
    CHECK_INT(st->peer->n_asked, 1);
    owner_free(o);
    estage_free(st);
}

TEST(documents_are_not_kept_and_a_cache_may_be_none)
{
    struct estage *st = estage_new();
    struct owner *o = TELL(st, "apple");
    struct embed_opts other = st->opts;
    float v[TEST_DIMS];

    AWAIT(st, o->n_done);
    owner_free(o);
    CHECK(!embed_now(st->embed, STR("apple"), EMBED_QUERY, v));
    other.cache_entries = 0;
    embed_set(st->embed, &other);
    o = ASK(st, "apple");
    AWAIT(st, o->n_done);
    owner_free(o);
    CHECK(!embed_now(st->embed, STR("apple"), EMBED_QUERY, v));
    CHECK_INT(embed_stats(st->embed).cache_misses_total, 0);
    estage_free(st);
}

/* Blank texts. */

TEST(blank_texts_are_nothing_and_nobody_is_asked)
{
    struct estage *st = estage_new();
    struct owner *o = ASK(st, "", " \t\n");
    float v[TEST_DIMS] = {1};

    AWAIT(st, o->n_done);
    CHECK(o->e == OK && o->n == 2 && o->stamp.dims == 0);
    CHECK_INT(st->peer->n_asked, 0);
    owner_free(o);
    o = ASK(st, "", "plum", "   ");
    AWAIT(st, o->n_done);
    CHECK(o->e == OK && o->stamp.dims == TEST_DIMS);
    CHECK(is_vector_of(o->vectors + TEST_DIMS, TEST_DIMS, "plum"));
    CHECK(o->vectors[0] == 0 && o->vectors[2 * TEST_DIMS] == 0);
    owner_free(o);
    CHECK(embed_now(st->embed, STR(" "), EMBED_QUERY, v) && v[0] == 0);
    estage_free(st);
}

TEST(no_texts_have_no_vectors)
{
    struct estage *st = estage_new();
    struct owner *o =
        start_texts(st->embed, EMBED_QUERY, (const char *const[]){NULL});

    AWAIT(st, o->n_done);
    CHECK(o->e == OK && o->n == 0);
    owner_free(o);
    estage_free(st);
}

/* Limits. */

TEST(there_is_a_limit_to_what_waits)
{
    struct estage *st = estage_begin();
    struct why why;
    struct owner *a, *b;
    enum err e;

    st->opts.max_waiting = 4;
    st->opts.max_waiting_bytes = 100;
    st->peer->respond = NULL;
    estage_open(st);
    a = TELL(st, "a", "b", "c"); /* three quarters are theirs */
    CHECK(!try_start(st->embed, EMBED_DOCUMENT, TEXTS("d"), &e, &why));
    CHECK(e == ERR_BUSY && strstr(why.text, "3 texts of 3 bytes"));
    b = ASK(st, "d");
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("e"), &e, &why));
    CHECK_INT(e, ERR_BUSY);
    CHECK_INT(embed_stats(st->embed).waiting, 4);
    st->peer->respond = respond_well;
    AWAIT(st, a->n_done && b->n_done);
    owner_free(a);
    owner_free(b);
    a = ASK(st, "again");
    AWAIT(st, a->n_done);
    owner_free(a);
    estage_free(st);
}

TEST(there_is_a_limit_to_the_bytes_that_wait)
{
    struct estage *st = estage_begin();
    struct why why;
    struct owner *a;
    enum err e;

    st->opts.max_waiting_bytes = 8;
    estage_open(st);
    a = ASK(st, "1234567");
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("12"), &e, &why));
    CHECK_INT(e, ERR_BUSY);
    AWAIT(st, a->n_done);
    owner_free(a);
    estage_free(st);
}

TEST(what_can_never_wait_is_said_to_be_too_much)
{
    struct estage *st = estage_begin();
    struct why why;
    enum err e;

    st->opts.max_waiting = 4;
    st->opts.max_waiting_bytes = 8;
    estage_open(st);
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("123456789"), &e, &why));
    CHECK(e == ERR_LIMIT && strstr(why.text, "embed.maxWaitingBytes"));
    CHECK(!try_start(st->embed, EMBED_DOCUMENT, TEXTS("1234567"), &e, &why));
    CHECK(e == ERR_LIMIT && strstr(why.text, "embed.maxWaitingBytes"));
    CHECK(!try_start(st->embed, EMBED_DOCUMENT, TEXTS("a", "b", "c", "d"), &e,
                     &why));
    CHECK(e == ERR_LIMIT && strstr(why.text, "embed.maxWaiting,"));
    estage_free(st);
}

TEST(vectors_count_among_the_bytes_that_wait)
{
    enum { EACH = 1 + TEST_DIMS * sizeof(float) };
    struct estage *st = estage_begin();
    struct owner *a, *b;
    struct why why;
    enum err e;

    st->opts.max_waiting_bytes = 2 * EACH;
    st->opts.cache_entries = 0;
    estage_open(st);
    a = ASK(st, "a", "b", "c"); /* their length is still unknown */
    AWAIT(st, a->n_done);
    owner_free(a);
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("a", "b", "c"), &e, &why));
    CHECK_INT(e, ERR_LIMIT);
    a = ASK(st, "a");
    b = ASK(st, "b");
    CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("c"), &e, &why));
    CHECK_INT(e, ERR_BUSY);
    AWAIT(st, a->n_done && b->n_done);
    owner_free(a);
    owner_free(b);
    a = ASK(st, "a", "b");
    AWAIT(st, a->n_done);
    owner_free(a);
    estage_free(st);
}

TEST(nobody_waits_for_ever)
{
    struct estage *st = estage_begin();
    struct owner *ask, *behind, *docs;

    st->opts.timeout_ms = 1000 * 1000;
    st->opts.http.timeout_ms = INT32_MAX;
    st->opts.http.max_requests = 1;
    st->peer->respond = NULL;
    estage_open(st);
    ask = ASK(st, "a", "b", "c", "d");
    behind = ASK(st, "e");
    docs = TELL(st, "f");
    AWAIT(st, waiting_seat(st->peer));
    elater(st, 500 * 1000);
    CHECK(!ask->n_done && !behind->n_done);
    elater(st, 500 * 1000);
    CHECK(ask->e == ERR_TIMEOUT && behind->e == ERR_TIMEOUT);
    CHECK(strstr(behind->why, "embed.timeoutMs") && !docs->n_done);
    AWAIT(st, waiting_seat(st->peer));
    elater(st, st->opts.timeout_ms * EMBED_PATIENCE);
    CHECK_INT(docs->e, ERR_TIMEOUT);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    owner_free(ask);
    owner_free(behind);
    owner_free(docs);
    estage_free(st);
}

TEST(one_call_has_a_limit)
{
    struct estage *st = estage_begin();
    static struct str texts[EMBED_BATCH_MAX + 1];
    struct owner *o = calloc(1, sizeof(*o));
    struct why why;

    st->opts.max_waiting = 10000;
    st->opts.http.batch = EMBED_BATCH_MAX;
    st->opts.http.dims = TEST_DIMS;
    estage_open(st);
    for (size_t i = 0; i <= EMBED_BATCH_MAX; i++)
        texts[i] = STR("x");
    CHECK(embed_start(st->embed, texts, EMBED_BATCH_MAX + 1, EMBED_DOCUMENT,
                      owner_done, o, &o->id, &why) == ERR_LIMIT);
    CHECK(embed_start(st->embed, texts, EMBED_BATCH_MAX, EMBED_DOCUMENT,
                      owner_done, o, &o->id, &why) == OK);
    AWAIT(st, o->n_done);
    CHECK(o->e == OK && o->n == EMBED_BATCH_MAX && st->peer->n_asked == 1);
    owner_free(o);
    estage_free(st);
}

/* All of fetch is busy with other requests. */
TEST(who_finds_no_room_in_fetch_tries_again_but_not_for_ever)
{
    struct estage *st = estage_begin();
    struct fetch_opts busy = test_opts();
    struct peer *other = peer_open(st->s, NULL);
    struct told *t;
    struct owner *o, *behind;

    busy.max_open = 1;
    CHECK(fetch_set(st->s->fetch, &busy, NULL) == OK);
    estage_open(st);
    stage_allow(st->s, "127.0.0.0/8");
    busy.guard = st->s->opts.guard;
    CHECK(fetch_set(st->s->fetch, &busy, NULL) == OK);
    t = start(st->s, request_to(url_at(other, "/")), &whole);
    o = ASK(st, "a");
    eturns(st, 8);
    CHECK(!o->n_done && !st->peer->n_asked);
    elater(st, BUSY_RETRY_MS);
    CHECK(!o->n_done);
    UNTIL(st->s, other->n_asked);
    peer_say(other, FINE);
    UNTIL(st->s, t->n_done);
    elater(st, BUSY_RETRY_MS);
    AWAIT(st, o->n_done);
    CHECK_INT(o->e, OK);
    owner_free(o);
    told_free(t);
    t = start(st->s, request_to(url_at(other, "/")), &whole);
    o = ASK(st, "b", "c", "d", "e");
    behind = ASK(st, "f"); /* in a request of its own */
    eturns(st, 8);
    elater(st, st->opts.http.timeout_ms);
    AWAIT(st, o->n_done);
    CHECK(o->e == ERR_UNREACHABLE && strstr(o->why, "under way"));
    CHECK(behind->n_done && behind->e == ERR_UNREACHABLE);
    owner_free(o);
    owner_free(behind);
    fetch_cancel(st->s->fetch, t->id);
    told_free(t);
    estage_free(st);
}

/* A call that found no room and gave up does not affect the next one. */
TEST(how_long_fetch_was_busy_begins_anew_with_who_waits)
{
    struct estage *st = estage_begin();
    struct fetch_opts busy = test_opts();
    struct peer *other = peer_open(st->s, NULL);
    struct told *t;
    struct owner *o;

    busy.max_open = 1;
    CHECK(fetch_set(st->s->fetch, &busy, NULL) == OK);
    estage_open(st);
    stage_allow(st->s, "127.0.0.0/8");
    busy.guard = st->s->opts.guard;
    CHECK(fetch_set(st->s->fetch, &busy, NULL) == OK);
    t = start(st->s, request_to(url_at(other, "/")), &whole);
    o = ASK(st, "a");
    eturns(st, 8);
    CHECK(!o->n_done && !st->peer->n_asked);
    embed_cancel(st->embed, o->id);
    owner_free(o);
    elater(st, BUSY_RETRY_MS);
    fetch_cancel(st->s->fetch, t->id);
    told_free(t);
    elater(st, 2 * st->opts.http.timeout_ms);
    t = start(st->s, request_to(url_at(other, "/")), &whole);
    o = ASK(st, "b");
    eturns(st, 8);
    CHECK(!o->n_done && !st->peer->n_asked); /* it waits */
    fetch_cancel(st->s->fetch, t->id);
    told_free(t);
    elater(st, BUSY_RETRY_MS);
    AWAIT(st, o->n_done);
    CHECK_INT(o->e, OK);
    owner_free(o);
    estage_free(st);
}

/* Cancelling. */

TEST(who_cancels_is_told_nothing_and_the_others_are)
{
    struct estage *st = estage_new();
    struct owner *a, *b, *c;

    st->peer->respond = NULL;
    a = ASK(st, "a");
    b = ASK(st, "b");
    c = TELL(st, "c", "d", "e", "f", "g");
    embed_cancel(st->embed, a->id); /* before it was asked */
    AWAIT(st, n_waiting_seats(st->peer) == 2);
    CHECK(!seat_heard(&st->peer->seats[0], "\"a\"") &&
          !seat_heard(&st->peer->seats[1], "\"a\""));
    embed_cancel(st->embed, c->id); /* half of it is in progress */
    embed_cancel(st->embed, c->id);
    embed_cancel(st->embed, 12345);
    st->peer->respond = respond_well;
    for (int i = 0; i < 2; i++)
        if (st->peer->seats[i].is_waiting)
            respond_well(st->peer, &st->peer->seats[i]);
    AWAIT(st, b->n_done);
    eturns(st, 20);
    CHECK(b->e == OK && !a->n_done && !c->n_done);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    CHECK_INT(fetch_stats(st->s->fetch).open, 0);
    owner_free(a);
    owner_free(b);
    owner_free(c);
    estage_free(st);
}

TEST(owners_may_cancel_and_start_when_they_are_told)
{
    struct estage *st = estage_new();
    struct owner *a = ASK(st, "a"), *b = ASK(st, "b");
    struct owner *more = calloc(1, sizeof(*more));

    a->cancels = b; /* which has ended too, but was not reported yet */
    b->cancels = a;
    a->starts = b->starts = more;
    AWAIT(st, more->n_done);
    CHECK_INT(a->n_done + b->n_done, 1);
    CHECK(is_vector_of(more->vectors, TEST_DIMS, "one more"));
    owner_free(a);
    owner_free(b);
    owner_free(more);
    estage_free(st);
}

TEST(stopping_ends_whatever_waits)
{
    /* After so many turns: queued, sent, answered in part. */
    for (int turns = 0; turns < 12; turns++) {
        struct estage *st = estage_new();
        struct owner *a = ASK(st, "a", "b", "c", "d", "e");
        struct owner *b = TELL(st, "f");
        struct why why;
        enum err e;

        eturns(st, turns);
        embed_stop(st->embed, estage_stopped, st);
        CHECK(!try_start(st->embed, EMBED_QUERY, TEXTS("g"), &e, &why));
        CHECK_INT(e, ERR_STOPPING);
        AWAIT(st, st->n_stopped);
        CHECK(a->n_done && b->n_done);
        CHECK(a->e == OK || a->e == ERR_STOPPING);
        CHECK(b->e == OK || b->e == ERR_STOPPING);
        CHECK(turns || (a->e && b->e));
        owner_free(a);
        owner_free(b);
        estage_free(st);
    }
}

static void stop_when_told(void *ctx, uint64_t id, enum err e,
                           const struct embed_result *r, const struct why *why)
{
    struct estage *st = ctx;

    (void)id, (void)e, (void)r, (void)why;
    embed_stop(st->embed, estage_stopped, st);
}

TEST(whoever_is_told_may_stop_it_and_stopping_twice_is_answered_twice)
{
    struct estage *st = estage_new();
    struct str text = STR("a");
    uint64_t id;

    CHECK(embed_start(st->embed, &text, 1, EMBED_QUERY, stop_when_told, st, &id,
                      NULL) == OK);
    AWAIT(st, st->n_stopped == 1);
    embed_stop(st->embed, estage_stopped, st);
    AWAIT(st, st->n_stopped == 2);
    estage_free(st);
}

TEST(freeing_without_stopping_tells_nobody)
{
    for (int turns = 0; turns < 12; turns++) {
        struct estage *st = estage_new();
        struct owner *a = ASK(st, "a", "b", "c", "d", "e");
        struct owner *b = TELL(st, "f");
        int n_done;

        eturns(st, turns);
        n_done = a->n_done + b->n_done;
        embed_free(st->embed);
        st->embed = NULL;
        eturns(st, 10);
        CHECK_INT(a->n_done + b->n_done, n_done);
        owner_free(a);
        owner_free(b);
        estage_free(st);
    }
}

/* Errors before any request. */
TEST(settings_that_cannot_be_are_said)
{
    static const struct {
        struct str url, key;
        const char *words;
    } cases[] = {
        {STR(""), STR("k"), "embed.http.url"},
        {STR("ws://127.0.0.1/"), STR("k"), "https:// or http://"},
        {STR("http://a:b@c/"), STR("k"), "embed.http.url"},
        {STR("http://c/"), STR("k\n"), "embed.http.keyVariable"},
        {STR("http://c/"), STR("\xc3\xa4"), "embed.http.keyVariable"},
    };
    struct estage *st = estage_begin();
    struct why why;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        st->opts.http.url = cases[i].url;
        st->opts.http.key = cases[i].key;
        CHECK(embed_new(&st->embed, &st->s->loop, &st->s->log, st->s->fetch,
                        &st->opts, &why) == ERR_BAD_CONFIG);
        CHECK(!st->embed && strstr(why.text, cases[i].words));
    }
    estage_free(st);
}

/* The same settings are the same model; another URL, prefix or length is
 * another model. */
TEST(the_stamp_of_a_provider_says_what_its_vectors_depend_on)
{
    struct estage *st = estage_begin();
    struct embed_stamp stamps[7];
    struct embed_opts plain = st->opts;

    for (size_t i = 0; i < 7; i++) {
        st->opts = plain;
        switch (i) {
        case 1: st->opts.http.key = STR("another"); break;
        case 2:
            st->opts.http.url = STR("http://127.0.0.1:1/v1/embeddings");
            break;
        case 3: st->opts.http.model = STR("other"); break;
        case 4: st->opts.http.dims = 8; break;
        case 5: st->opts.http.query_prefix = STR("q"); break;
        case 6: st->opts.http.document_prefix = STR("q"); break;
        default: break;
        }
        estage_open(st);
        stamps[i] = embed_stamp(st->embed);
        CHECK_INT(strlen(stamps[i].hash), EMBED_HASH_CHARS);
        embed_free(st->embed);
        st->embed = NULL;
    }
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < 7; k++)
            CHECK(embed_stamp_is(&stamps[i], &stamps[k]) ==
                  (i == k || (i < 2 && k < 2)));
    estage_free(st);
}
