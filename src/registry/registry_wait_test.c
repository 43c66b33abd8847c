/* Searches that wait for their vector: the limit, cancelling, stopping, and
 * every way in which a model can fail. */
#include "test/lib/find_stage.h"

static struct find *with_one(void)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->opts.http.dims = TEST_DIMS;
    f->e->opts.cache_entries = 0;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    return f;
}

TEST(a_search_waits_for_its_vector_and_is_answered_once)
{
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    char text[] = "wood", user[] = "anna";
    struct found o;

    f->e->peer->respond = NULL;
    s.text = str_of(text);
    s.eyes.user = str_of(user);
    CHECK(find_try(f, &s, &o) == OK && o.id && !o.n_done);
    memset(text, 'x', 4); /* the query is copied */
    memset(user, 'x', 4);
    AWAIT(f->e, waiting_seat(f->e->peer));
    CHECK(!o.n_done && seat_heard(waiting_seat(f->e->peer), "\"wood\""));
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, o.n_done);
    CHECK(o.err == OK && o.n == 1 && o.mode == INDEX_HYBRID);
    CHECK(o.hits[0].matches[0].text > 0);
    find_free(f);
}

static int64_t a_second_later(void *ctx)
{
    (void)ctx;
    return FIND_WALL_MS + 1000;
}

/* A grant counts when there is an answer, not when there was a question. */
TEST(a_grant_that_expires_meanwhile_does_not_count)
{
    struct find *f = with_one();
    struct search s = find_query("cleo", "paints");
    int64_t at_ms = FIND_WALL_MS + 1000;
    struct found o;

    PUT(f, "anna.acme", card("shar", "Paints", "shared", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    CHECK(find_grant(f, "anna.acme", "shar", "cleo", "", at_ms) == OK);
    find_search(f, &s, &o);
    CHECK(o.n == 1);
    f->e->peer->respond = NULL;
    CHECK(find_try(f, &s, &o) == OK && o.id && !o.n_done);
    AWAIT(f->e, waiting_seat(f->e->peer));
    f->e->s->loop.clock.wall_ms = a_second_later;
    eturns(f->e, 2);
    CHECK(!o.n_done);
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, o.n_done);
    CHECK(o.err == OK && o.n == 0);
    find_free(f);
}

TEST(so_many_may_wait_and_one_more_is_told)
{
    enum { N = SEARCH_WAITING_MAX };
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    struct found *o = calloc(N, sizeof(*o)), one;

    CHECK(o);
    f->e->peer->respond = NULL;
    for (int i = 0; i < N; i++)
        CHECK(find_try(f, &s, &o[i]) == OK && o[i].id);
    CHECK_INT(find_try(f, &s, &one), ERR_OVERLOADED);
    CHECK(strstr(f->why.text, "1000 searches wait") && !one.n_done);
    s.mode = INDEX_TEXT; /* which need not wait */
    find_search(f, &s, &one);
    CHECK_INT(one.n, 1);
    s.mode = INDEX_HYBRID;
    registry_search_cancel(f->r, o[7].id);
    CHECK(find_try(f, &s, &one) == OK);
    f->e->peer->respond = respond_well;
    while (waiting_seat(f->e->peer))
        respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, one.n_done);
    for (int i = 0; i < N; i++)
        CHECK_INT(o[i].n_done, i != 7);
    free(o);
    find_free(f);
}

TEST(nobody_hears_of_a_search_that_was_cancelled)
{
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    struct found a, b;

    f->e->peer->respond = NULL;
    CHECK(find_try(f, &s, &a) == OK && find_try(f, &s, &b) == OK);
    registry_search_cancel(f->r, a.id);
    registry_search_cancel(f->r, a.id);
    registry_search_cancel(f->r, 0);
    registry_search_cancel(f->r, 12345);
    f->e->peer->respond = respond_well;
    AWAIT(f->e, b.n_done);
    eturns(f->e, 20);
    CHECK(!a.n_done);
    registry_search_cancel(f->r, b.id); /* it is over */
    find_free(f);
}

TEST(those_that_wait_are_told_when_it_stops)
{
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    struct found a, b, c;

    f->e->peer->respond = NULL;
    CHECK(find_try(f, &s, &a) == OK && find_try(f, &s, &b) == OK);
    registry_stop(f->r);
    CHECK(a.n_done && b.n_done && a.err == ERR_STOPPING && a.n == 0);
    CHECK_INT(find_try(f, &s, &c), ERR_STOPPING);
    CHECK(f->why.text[0] && !c.n_done);
    find_free(f);
}

TEST(a_model_that_stops_first_stops_them_too)
{
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    struct found a;

    f->e->peer->respond = NULL;
    CHECK(find_try(f, &s, &a) == OK);
    embed_stop(f->e->embed, estage_stopped, f->e);
    AWAIT(f->e, f->e->n_stopped == 1);
    CHECK(a.n_done && a.err == ERR_STOPPING);
    find_free(f);
}

/* Failing. */

static void respond_500(struct provider_peer *p, struct seat *s)
{
    (void)p;
    say_text(s, 503, "");
}

static void respond_400(struct provider_peer *p, struct seat *s)
{
    (void)p;
    say_text(s, 400, "{\"error\":{\"message\":\"secret of theirs\"}}");
}

static void respond_401(struct provider_peer *p, struct seat *s)
{
    (void)p;
    say_text(s, 401, "");
}

static void hang_up(struct provider_peer *p, struct seat *s)
{
    (void)p;
    seat_close(s);
}

static void expect_words(struct find *f, const char *because)
{
    struct search s = find_query("anna", "wood");
    int64_t before = registry_stats(f->r).searches_by_words_total;
    struct found o;

    find_search(f, &s, &o);
    CHECK(o.err == OK && o.n == 1 && o.mode == INDEX_TEXT);
    CHECK(o.hits[0].matches[0].semantic == 0 && o.hits[0].score > 0);
    if (!strstr(o.note, "by words alone, because") || !strstr(o.note, because))
        T_FAIL("notes %s", o.note);
    CHECK(!strstr(o.note, "127.0.0.1") && !strstr(o.note, "secret"));
    CHECK_INT(registry_stats(f->r).searches_by_words_total, before + 1);
}

TEST(whatever_fails_it_is_searched_by_words_and_said_why)
{
    struct find *f = with_one();

    f->e->peer->respond = respond_500;
    expect_words(f, "cannot be reached");
    f->e->peer->respond = hang_up;
    expect_words(f, "no answer to this text");
    f->e->peer->respond = respond_400;
    expect_words(f, "no answer to this text");
    f->e->peer->respond = respond_401;
    expect_words(f, "does not take our key");
    find_free(f);
}

TEST(a_model_that_takes_too_long_is_not_waited_for)
{
    struct find *f = with_one();
    struct search s = find_query("anna", "wood");
    struct found o;

    f->e->peer->respond = NULL;
    CHECK(find_try(f, &s, &o) == OK);
    AWAIT(f->e, waiting_seat(f->e->peer));
    find_later(f, f->e->opts.timeout_ms);
    CHECK(o.n_done && o.n == 1 && o.mode == INDEX_TEXT);
    CHECK(strstr(o.note, "did not answer in time"));
    find_free(f);
}

TEST(a_provider_that_is_left_alone_is_not_asked)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->opts.http.breaker_failures = 1;
    f->e->opts.cache_entries = 0;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    f->e->peer->respond = respond_500;
    expect_words(f, "cannot be reached");
    expect_words(f, "left alone for now");
    find_free(f);
}

TEST(where_too_many_texts_wait_words_do)
{
    enum { N = 4 };
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("anna", "wood");
    struct found o[N];

    f->e->opts.max_waiting = N;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, registry_stats(f->r).unembedded == 0);
    f->e->peer->respond = NULL;
    for (int i = 0; i < N; i++)
        CHECK(find_try(f, &s, &o[i]) == OK && !o[i].n_done);
    expect_words(f, "too many texts wait");
    find_free(f);
}
