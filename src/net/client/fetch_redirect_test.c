/* Redirects come from strangers: their targets are guarded, headers are
 * chosen, and they end. */
#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

static const char *redirect(int status, const char *to)
{
    static char text[8][1024];
    static int at;
    char *out = text[at++ % 8];

    snprintf(out, sizeof(text[0]),
             "HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 4\r\n\r\ngone",
             status, to);
    return out;
}

static struct fetch_request follow(const struct peer *p, const char *path)
{
    struct fetch_request rq = request_to(url_at(p, path));

    rq.max_redirects = 5;
    return rq;
}

TEST(a_redirect_is_followed_with_one_answer_at_the_end)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    struct told *t;

    a->reply = redirect(302, url_at(b, "/there?x=y#z"));
    t = ask(s, follow(a, "/here"));
    CHECK(t->e == OK && t->status == 200 && t->n_heads == 1);
    CHECK_STR(buf_str(&t->body), "fine");
    CHECK(strcmp(t->url, url_at(b, "/there?x=y")) == 0);
    CHECK(peer_heard(b, "GET /there?x=y HTTP/1.1\r\n"));
    told_free(t);
    stage_free(s);
}

TEST(places_are_seen_from_where_they_were_said)
{
    static const struct {
        const char *location, *asked;
    } cases[] = {
        {"/abs", "GET /abs HTTP"},       {"rel", "GET /dir/rel HTTP"},
        {"../up", "GET /up HTTP"},       {"?q=1", "GET /dir/page?q=1 HTTP"},
        {"./x/../y", "GET /dir/y HTTP"},
    };
    struct stage *s = stage_new(test_opts());

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = peer_open(s, redirect(307, cases[i].location));
        struct told *t = start(s, follow(p, "/dir/page"), &whole);

        UNTIL(s, p->n_asked == 1);
        p->reply = FINE;
        UNTIL(s, t->n_done);
        CHECK(t->e == OK && peer_heard(p, cases[i].asked));
        CHECK(p->n_guests == 1); /* its body was read: the connection stays */
        told_free(t);
        peer_close(p);
        s->n_peers--;
    }
    stage_free(s);
}

TEST(without_leave_a_redirect_is_an_answer)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, redirect(302, "/other"));
    struct told *t = get(s, p, "/");

    CHECK(t->e == OK && t->status == 302 && p->n_asked == 1);
    CHECK_STR(buf_str(&t->body), "gone");
    told_free(t);
    /* So are those that lead nowhere. */
    p->reply = "HTTP/1.1 302 Go\r\nContent-Length: 0\r\n\r\n";
    t = ask(s, follow(p, "/"));
    CHECK(t->e == OK && t->status == 302);
    told_free(t);
    p->reply = redirect(304, "/x");
    t = ask(s, follow(p, "/"));
    CHECK(t->e == OK && t->status == 304);
    told_free(t);
    p->reply = redirect(300, "/x");
    t = ask(s, follow(p, "/"));
    CHECK(t->e == OK && t->status == 300);
    told_free(t);
    stage_free(s);
}

struct change {
    int status;
    const char *method, *then;
    bool keeps_body;
};

static const struct change changes[] = {
    {301, "POST", "GET", false},  {302, "POST", "GET", false},
    {303, "POST", "GET", false},  {307, "POST", "POST", true},
    {308, "POST", "POST", true},  {301, "PUT", "PUT", true},
    {303, "PUT", "GET", false},   {302, "DELETE", "DELETE", true},
    {303, "HEAD", "HEAD", false}, {302, "HEAD", "HEAD", false},
};

enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

/* With method, and a body if it may have one, from `from` to `to`. Keeps only
 * the second request. */
static struct told *redirected(struct stage *s, struct peer *from,
                               struct peer *to, const struct change *c)
{
    static const struct fetch_header headers[] = {
        {STR("Content-Type"), STR("text/x")},
        {STR("Accept"), STR("text/y")},
    };
    bool is_head = strcmp(c->method, "HEAD") == 0;
    struct fetch_request rq = follow(from, "/");
    static char text[256];
    struct told *t;

    snprintf(text, sizeof(text), "HTTP/1.1 %d Go\r\nLocation: %s\r\n%s\r\n",
             c->status, url_at(to, "/to"),
             is_head ? "" : "Content-Length: 0\r\n");
    from->reply = text;
    rq.method = str_of(c->method);
    rq.body = is_head ? STR("") : STR("the body");
    rq.headers = headers;
    rq.n_headers = 2;
    t = start(s, rq, &whole);
    UNTIL(s, from->n_asked == 1);
    buf_clear(&from->asked);
    to->reply = is_head ? "HTTP/1.1 200 OK\r\n\r\n" : FINE;
    UNTIL(s, t->n_done);
    return t;
}

static void forget_peers(struct stage *s)
{
    while (s->n_peers)
        peer_close(&s->peers[--s->n_peers]);
}

/* Which method comes out, with or without a body. */
TEST(a_post_becomes_a_get_where_browsers_do_it)
{
    struct stage *s = stage_new(test_opts());

    for (size_t i = 0; i < CHANGES; i++) {
        const struct change *c = &changes[i];
        struct peer *p = peer_open(s, NULL);
        struct told *t = redirected(s, p, p, c);
        char line[64];

        snprintf(line, sizeof(line), "%s /to HTTP", c->then);
        CHECK(t->e == OK && t->status == 200 && peer_heard(p, line));
        CHECK(peer_heard(p, "the body") == c->keeps_body);
        CHECK(peer_heard(p, "text/y"));
        CHECK(peer_heard(p, "text/x") ==
              (c->keeps_body || strcmp(c->method, "HEAD") == 0));
        told_free(t);
        forget_peers(s);
    }
    stage_free(s);
}

/* Where the body would go along it is not gone to, whatever the status. */
TEST(a_body_is_not_for_another_origin)
{
    struct stage *s = stage_new(test_opts());

    for (size_t i = 0; i < CHANGES; i++) {
        const struct change *c = &changes[i];
        struct peer *a = peer_open(s, NULL), *b = peer_open(s, NULL);
        struct told *t = redirected(s, a, b, c);

        CHECK_INT(t->e, c->keeps_body ? ERR_ADDRESS : OK);
        CHECK(b->n_asked == !c->keeps_body && b->n_guests == b->n_asked);
        CHECK(!peer_heard(b, "the body"));
        CHECK(!c->keeps_body || strstr(t->why, "body"));
        told_free(t);
        forget_peers(s);
    }
    stage_free(s);
}

/* Without one it is. */
TEST(a_method_without_a_body_goes_to_another_origin)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    struct fetch_request rq = follow(a, "/");
    struct told *t;

    a->reply = redirect(307, url_at(b, "/to"));
    rq.method = STR("DELETE");
    t = ask(s, rq);
    CHECK(t->e == OK && peer_heard(b, "DELETE /to HTTP"));
    told_free(t);
    stage_free(s);
}

static const struct fetch_header many[] = {
    {STR("authorization"), STR("one")},  {STR("Cookie"), STR("two=2")},
    {STR("X-Api-Key"), STR("three")},    {STR("Private-Token"), STR("four")},
    {STR("X-Open"), STR("five")},        {STR("accept"), STR("six")},
    {STR("Accept-Language"), STR("de")}, {STR("User-Agent"), STR("seven")},
    {STR("traceparent"), STR("eight")},  {STR("tracestate"), STR("nine")},
};

static void check_few(const struct peer *p)
{
    CHECK(!peer_heard(p, "one") && !peer_heard(p, "two=2"));
    CHECK(!peer_heard(p, "three") && !peer_heard(p, "four"));
    CHECK(!peer_heard(p, "five") && !peer_heard(p, "X-Open"));
    CHECK(peer_heard(p, "accept: six") && peer_heard(p, "Language: de"));
    CHECK(peer_heard(p, "seven") && peer_heard(p, "traceparent: eight"));
    CHECK(peer_heard(p, "tracestate: nine"));
}

/* Secret headers cannot be listed; so only those known to be harmless are
 * sent. */
TEST(few_headers_go_to_another_origin)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, NULL);
    struct fetch_request rq = follow(a, "/");
    struct told *t;

    rq.headers = many;
    rq.n_headers = sizeof(many) / sizeof(many[0]);
    a->reply = redirect(307, "/same"); /* once, then */
    t = start(s, rq, &whole);
    UNTIL(s, a->n_asked == 1);
    a->reply = redirect(307, url_at(b, "/abroad"));
    UNTIL(s, a->n_asked == 2);
    CHECK(peer_heard(a, "GET /same "));
    buf_drop(&a->asked, a->asked.n / 2); /* what was said the second time */
    CHECK(peer_heard(a, "n: one") && peer_heard(a, "X-Api-Key: three"));
    buf_clear(&a->asked);
    a->reply = FINE;
    /* And back again: it is the stranger who asks now. */
    b->reply = redirect(307, url_at(a, "/home"));
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && peer_heard(b, "GET /abroad "));
    CHECK(peer_heard(a, "GET /home "));
    check_few(a);
    check_few(b);
    told_free(t);
    stage_free(s);
}

TEST(going_in_circles_comes_to_an_end)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, NULL);
    struct told *t;

    a->reply = redirect(302, "/again");
    t = ask(s, follow(a, "/"));
    CHECK(t->e == ERR_LIMIT && a->n_asked == 6);
    told_free(t);
    a->reply = redirect(302, url_at(b, "/"));
    b->reply = redirect(302, url_at(a, "/"));
    t = ask(s, follow(a, "/"));
    CHECK(t->e == ERR_LIMIT && a->n_asked + b->n_asked == 12);
    told_free(t);
    stage_free(s);
}

TEST(all_of_them_together_have_one_deadline)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = follow(p, "/");
    struct told *t;

    rq.max_redirects = 100;
    rq.timeout_ms = 500 * 1000;
    t = start(s, rq, &whole);
    for (int i = 0; i < 5; i++) {
        UNTIL(s, p->n_asked == i + 1);
        CHECK(!t->n_done);
        later(s, 100 * 1000);
        if (!t->n_done)
            peer_say(p, redirect(302, "/on"));
    }
    UNTIL(s, t->n_done);
    CHECK(t->e == ERR_TIMEOUT);
    told_free(t);
    stage_free(s);
}

TEST(places_that_are_none_are_not_gone_to)
{
    static const char *const places[] = {
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ws://127.0.0.1/",
        "http://",
        "http://user@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1\\@x/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://exa mple/",
        "http://%31%32%37.0.0.1/",
        "//[::1",
        "gopher://127.0.0.1:6379/_x",
        "http://\xef\xbc\x91/",
        "unix:/var/run/x",
    };
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct told *t;

        p->reply = redirect(302, places[i]);
        t = ask(s, follow(p, "/"));
        if (t->e != ERR_BAD_REQUEST)
            T_FAIL("%s: %d %s", places[i], t->e, t->why);
        told_free(t);
    }
    CHECK(p->n_asked == (int)(sizeof(places) / sizeof(places[0])));
    p->reply = "HTTP/1.1 302 Go\r\nLocation: /a\r\nLocation: /b\r\n"
               "Content-Length: 0\r\n\r\n";
    told_free(ask(s, follow(p, "/")));
    CHECK(!peer_heard(p, "GET /a") && !peer_heard(p, "GET /b"));
    stage_free(s);
}

TEST(the_body_of_a_redirect_is_nobodys)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    struct fetch_request rq = follow(a, "/");
    static char large[1 << 20];
    struct told *t;

    memset(large, 'x', sizeof(large));
    rq.max_body_bytes = 10; /* does not count here */
    for (int i = 0; i < 2; i++) {
        char head[256];
        struct guest *g;

        t = start(s, rq, &as_bytes);
        UNTIL(s, a->n_asked == i + 1);
        g = last_guest(a);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 302 Go\r\nLocation: %s\r\n%s\r\n", url_at(b, "/"),
                 i ? "Content-Length: 1000000000\r\n" : "");
        guest_say(g, head, strlen(head));
        UNTIL(s, !g->n_to_send);
        if (!i)
            guest_say(g, large, sizeof(large));
        else
            guest_hang_up(g); /* in the middle of it */
        UNTIL(s, t->n_done);
        CHECK(t->e == OK && t->n_heads == 1);
        CHECK_STR(buf_str(&t->body), "fine");
        told_free(t);
    }
    stage_free(s);
}

TEST(cancelled_between_two_of_them_it_does_not_go_on)
{
    struct stage *s = stage_new(test_opts());
    struct peer *a = peer_open(s, NULL), *b = peer_open(s, FINE);
    struct told *t = start(s, follow(a, "/"), &whole);

    UNTIL(s, a->n_asked == 1);
    peer_say(a, redirect(302, url_at(b, "/")));
    fetch_cancel(s->fetch, t->id);
    turn(s, 20);
    CHECK(!t->n_done && b->n_asked == 0);
    told_free(t);
    stage_free(s);
}
