/* Allowed addresses, checked on the socket and again on every kept connection;
 * and the proxy. test/e2e/guard_test.py tests the many ways to write an
 * address. */
#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

static struct fetch_request trusted(const struct peer *p, const char *path)
{
    struct fetch_request rq = request_to(url_at(p, path));

    rq.is_trusted = true;
    rq.max_redirects = 3;
    return rq;
}

static struct fetch_request guarded(const struct peer *p, const char *path)
{
    struct fetch_request rq = trusted(p, path);

    rq.is_trusted = false;
    return rq;
}

/* The request is refused, and the peer sees neither request nor connection. */
static void check_refused(struct stage *s, struct fetch_request rq,
                          struct peer *p)
{
    int n_asked = p->n_asked, n_guests = p->n_guests;
    int64_t n = fetch_stats(s->fetch).refused_by_guard_total;
    struct told *t = ask(s, rq);

    turn(s, 5);
    if (t->e != ERR_ADDRESS)
        T_FAIL("error %d: %s", t->e, t->why);
    CHECK(p->n_asked == n_asked && p->n_guests == n_guests);
    CHECK(fetch_stats(s->fetch).refused_by_guard_total == n + 1);
    CHECK(strstr(t->why, "loopback") || strstr(t->why, "this machine"));
    told_free(t);
}

static void check_fine(struct stage *s, struct fetch_request rq)
{
    struct told *t = ask(s, rq);

    if (t->e != OK || t->status != 200)
        T_FAIL("error %d: %s", t->e, t->why);
    told_free(t);
}

static void check_moved(struct stage *s, struct peer *p, const char *to)
{
    static char text[512];

    (void)s;
    snprintf(text, sizeof(text),
             "HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             to);
    p->reply = text;
}

TEST(loopback_is_refused_unless_it_is_listed)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    char text[64];

    stage_allow(s, NULL);
    check_refused(s, guarded(p, "/"), p);
    snprintf(text, sizeof(text), "127.0.0.1:%d", p->port + 1);
    stage_allow(s, text);
    check_refused(s, guarded(p, "/"), p);
    snprintf(text, sizeof(text), "127.0.0.1:%d", p->port);
    stage_allow(s, text);
    check_fine(s, guarded(p, "/"));
    stage_free(s);
}

TEST(what_the_operator_wrote_is_not_guarded)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    stage_allow(s, NULL);
    check_fine(s, trusted(p, "/"));
    stage_free(s);
}

/* The connection is there, kept, and to the same host and port. */
TEST(a_connection_of_a_trusted_request_is_none_for_a_guarded_one)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    stage_allow(s, NULL);
    check_fine(s, trusted(p, "/"));
    check_fine(s, trusted(p, "/"));
    CHECK(p->n_guests == 1 && p->n_asked == 2); /* it is kept indeed */
    check_refused(s, guarded(p, "/"), p);
    check_refused(s, guarded(p, "/"), p);
    check_fine(s, trusted(p, "/"));
    stage_free(s);
}

TEST(a_connection_under_an_older_list_is_none_under_a_newer)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    check_fine(s, guarded(p, "/"));
    stage_allow(s, NULL);
    check_refused(s, guarded(p, "/"), p);
    stage_free(s);
}

/* The same without a new pool of connections, as if the ranges had changed
 * under way: the second question is asked by itself. */
TEST(a_kept_connection_is_judged_by_what_holds_now)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    check_fine(s, guarded(p, "/"));
    check_fine(s, guarded(p, "/"));
    CHECK(p->n_guests == 1);
    s->allow[0].addr[15] = 99; /* 127.0.0.0/8 becomes 127.0.0.99/128 */
    s->allow[0].prefix = 128;
    check_refused(s, guarded(p, "/"), p);
    CHECK(p->n_guests == 1);
    stage_free(s);
}

TEST(a_redirect_inward_is_refused)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    char text[64];

    snprintf(text, sizeof(text), "127.0.0.1:%d", a->port);
    stage_allow(s, text);
    check_moved(s, a, url_at(b, "/"));
    check_refused(s, guarded(a, "/"), b);
    CHECK(a->n_asked == 1);
    stage_free(s);
}

TEST(trust_ends_at_the_origin)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    struct told *t;

    stage_allow(s, NULL);
    /* To another: guarded. */
    check_moved(s, a, url_at(b, "/"));
    check_refused(s, trusted(a, "/"), b);
    /* To the same: still trusted. */
    check_moved(s, a, "/same");
    t = start(s, trusted(a, "/"), &whole);
    UNTIL(s, a->n_asked == 2);
    a->reply = FINE;
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && a->n_asked == 3);
    told_free(t);
    stage_free(s);
}

TEST(a_stranger_does_not_lead_back_to_where_trust_was)
{
    struct stage *s = stage_new(test_opts());
    struct peer *home = peer_open(s, NULL), *stranger = peer_open(s, NULL);
    char text[64], there[512], back[512];
    struct told *t;

    snprintf(text, sizeof(text), "127.0.0.1:%d", stranger->port);
    stage_allow(s, text);
    snprintf(there, sizeof(there),
             "HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_at(stranger, "/"));
    snprintf(back, sizeof(back),
             "HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_at(home, "/delete-everything"));
    home->reply = there;
    stranger->reply = back;
    t = ask(s, trusted(home, "/"));
    CHECK(t->e == ERR_ADDRESS && home->n_asked == 1);
    told_free(t);
    stage_free(s);
}

TEST(the_environment_names_no_proxy)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE), *proxy = peer_open(s, FINE);
    static const char *const names[] = {
        "http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"};

    for (size_t i = 0; i < 5; i++)
        setenv(names[i], url_at(proxy, ""), 1);
    check_fine(s, guarded(p, "/"));
    CHECK(proxy->n_guests == 0 && p->n_asked == 1);
    stage_free(s);
}

static struct stage *stage_with_proxy(struct peer **proxy)
{
    struct stage *s = stage_new(test_opts());
    struct fetch_opts opts = s->opts;

    *proxy = peer_open(s, FINE);
    opts.guard = (struct guard){NULL, 0};
    opts.proxy = url_at(*proxy, "");
    CHECK(fetch_set(s->fetch, &opts, NULL) == OK);
    setenv("no_proxy", "*", 1);
    setenv("NO_PROXY", "public.example", 1);
    return s;
}

TEST(a_proxy_that_is_configured_is_asked)
{
    struct peer *proxy;
    struct stage *s = stage_with_proxy(&proxy);

    check_fine(s, request_to("http://public.example/x"));
    CHECK(peer_heard(proxy, "GET http://public.example/x HTTP/1.1\r\n"));
    check_fine(s, request_to("http://8.8.8.8/x"));
    CHECK(peer_heard(proxy, "GET http://8.8.8.8/x HTTP/1.1\r\n"));
    stage_free(s);
}

TEST(a_proxy_is_not_asked_for_what_is_written_as_an_inward_address)
{
    static const char *const urls[] = {
        "http://127.0.0.1/",    "http://10.1.2.3/",
        "http://[::1]/",        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",    "http://LOCALHOST:80/",
        "http://x.localhost/",  "http://localhost./",
        "https://192.168.1.1/", "http://169.254.169.254/latest/meta-data",
    };
    struct peer *proxy;
    struct stage *s = stage_with_proxy(&proxy);

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct told *t = ask(s, request_to(urls[i]));

        if (t->e != ERR_ADDRESS)
            T_FAIL("%s: error %d", urls[i], t->e);
        told_free(t);
    }
    CHECK(proxy->n_guests == 0);
    check_fine(s, request_to("http://notlocalhost/"));
    proxy->reply = "HTTP/1.1 302 Go\r\nLocation: http://10.0.0.1/\r\n"
                   "Content-Length: 0\r\n\r\n";
    {
        struct fetch_request rq = request_to("http://public.example/");
        struct told *t;

        rq.max_redirects = 1;
        t = ask(s, rq);
        CHECK(t->e == ERR_ADDRESS && proxy->n_asked == 2);
        told_free(t);
    }
    stage_free(s);
}

TEST(no_secret_is_for_the_proxy_and_a_tunnel_that_is_refused_is_unreachable)
{
    struct peer *proxy;
    struct stage *s = stage_with_proxy(&proxy);
    struct fetch_header h = {STR("Authorization"), STR("Bearer abc")};
    struct fetch_request rq = request_to("https://public.example/");
    struct told *t;

    proxy->reply = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
    rq.headers = &h;
    rq.n_headers = 1;
    t = ask(s, rq);
    CHECK_INT(t->e, ERR_UNREACHABLE);
    CHECK(peer_heard(proxy, "CONNECT public.example:443 HTTP/1.1\r\n"));
    CHECK(!peer_heard(proxy, "Bearer") && t->n_heads == 0);
    told_free(t);
    peer_leave(proxy);
    t = ask(s, request_to("http://public.example/"));
    CHECK(t->e == ERR_UNREACHABLE && strstr(t->why, "to the proxy: "));
    told_free(t);
    stage_free(s);
}
