/* A slow host does not take the capacity of the others: each host and port has
 * a share of max_open. fetch_name_test.c tests the same for endless name
 * lookups. */
#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

enum { SHARE = 4 }; /* of opts() */

static struct fetch_opts opts(void)
{
    struct fetch_opts o = test_opts();

    o.max_open = 4 * SHARE;
    o.max_per_host = 2;
    return o;
}

static void check_full(struct stage *s, const char *url, const char *word)
{
    struct fetch_request rq = request_to(url);
    struct why why = {""};
    uint64_t id = 7;

    CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, &why), ERR_BUSY);
    CHECK(id == 7);
    if (!strstr(why.text, word))
        T_FAIL("%s", why.text);
}

/* So many requests to url, none of them answered. */
static void crowd(struct stage *s, struct told **t, int n, const char *url)
{
    for (int i = 0; i < n; i++)
        t[i] = start(s, request_to(url), &whole);
}

static void disperse(struct told **t, int n, enum err e)
{
    for (int i = 0; i < n; i++) {
        CHECK(t[i]->n_done == 1 && t[i]->e == e);
        told_free(t[i]);
    }
}

TEST(a_slow_host_leaves_room_for_the_others)
{
    struct stage *s = stage_new(opts());
    struct peer *slow = peer_open(s, NULL), *quick = peer_open(s, FINE);
    struct told *t[SHARE];

    crowd(s, t, SHARE, url_at(slow, "/"));
    UNTIL(s, slow->n_asked == 2); /* two are in flight, the others wait */
    check_full(s, url_at(slow, "/another"), "127.0.0.1:");
    told_free(get(s, quick, "/"));
    slow->reply = FINE;
    guest_say(&slow->guests[0], FINE, strlen(FINE));
    guest_say(&slow->guests[1], FINE, strlen(FINE));
    UNTIL(s, fetch_stats(s->fetch).open == 0);
    disperse(t, SHARE, OK);
    /* And it has its share again, all of it. */
    slow->reply = NULL;
    crowd(s, t, SHARE, url_at(slow, "/"));
    check_full(s, url_at(slow, "/another"), "127.0.0.1:");
    stage_free(s);
    disperse(t, SHARE, ERR_STOPPING);
}

TEST(all_places_together_have_max_open)
{
    struct stage *s = stage_new(opts());
    struct told *t[4][SHARE];
    struct peer *p = NULL;

    for (int i = 0; i < 4; i++) {
        p = peer_open(s, NULL);
        crowd(s, t[i], SHARE, url_at(p, "/"));
    }
    check_full(s, "http://127.0.0.1:1/", "16 outgoing requests");
    stage_free(s);
    for (int i = 0; i < 4; i++)
        disperse(t[i], SHARE, ERR_STOPPING);
}

TEST(a_share_is_never_less_than_the_connections_of_a_host)
{
    struct fetch_opts o = opts();
    struct told *t[SHARE * 4];
    struct stage *s;
    struct peer *p;

    o.max_per_host = SHARE + 3;
    s = stage_new(o);
    p = peer_open(s, NULL);
    crowd(s, t, SHARE + 3, url_at(p, "/"));
    check_full(s, url_at(p, "/"), "one host and port");
    stage_free(s);
    disperse(t, SHARE + 3, ERR_STOPPING);
    o.max_per_host = 1000; /* nor more than there may be at all */
    s = stage_new(o);
    p = peer_open(s, NULL);
    crowd(s, t, SHARE * 4, url_at(p, "/"));
    check_full(s, url_at(p, "/"), "16 outgoing requests");
    stage_free(s);
    disperse(t, SHARE * 4, ERR_STOPPING);
}

TEST(a_host_is_one_place_however_it_is_written)
{
    struct stage *s = stage_new(opts());
    struct told *t[SHARE];

    crowd(s, t, SHARE, "http://LocalHost/a");
    check_full(s, "http://localhost:80/b", "localhost");
    check_full(s, "http://LOCALHOST:80/", "LOCALHOST");
    for (int i = 0; i < SHARE; i++) {
        fetch_cancel(s->fetch, t[i]->id);
        told_free(t[i]);
    }
    /* What was given back is there at once. */
    crowd(s, t, SHARE, "http://localhost/");
    for (int i = 0; i < SHARE; i++) {
        fetch_cancel(s->fetch, t[i]->id);
        told_free(t[i]);
    }
    stage_free(s);
}

/* Or a redirector could fill the rest of max_open with one host. */
TEST(who_is_redirected_counts_where_it_is_sent)
{
    struct stage *s = stage_new(opts());
    struct peer *slow = peer_open(s, NULL), *door = peer_open(s, NULL);
    struct told *t[SHARE], *sent;
    struct fetch_request rq = request_to(url_at(door, "/"));
    char moved[256];

    snprintf(moved, sizeof(moved),
             "HTTP/1.1 302 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_at(slow, "/"));
    door->reply = moved;
    rq.max_redirects = 1;
    for (int i = 0; i < SHARE; i++) {
        t[i] = start(s, rq, &whole);
        UNTIL(s, door->n_asked == i + 1);
    }
    UNTIL(s, slow->n_asked == 2);
    turn(s, 10);
    check_full(s, url_at(slow, "/"), "one host and port");
    sent = ask(s, rq); /* the door is free: it begins, and ends there */
    CHECK(sent->e == ERR_BUSY && strstr(sent->why, "one host and port"));
    CHECK(door->n_asked == SHARE + 1 && slow->n_asked == 2);
    told_free(sent);
    stage_free(s);
    disperse(t, SHARE, ERR_STOPPING);
}
