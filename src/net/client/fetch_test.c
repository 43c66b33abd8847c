#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

TEST(an_answer_comes_whole)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t = get(s, p, "/a?b=c#d");

    CHECK_INT(t->e, OK);
    CHECK_INT(t->status, 200);
    CHECK_STR(buf_str(&t->body), "fine");
    CHECK_STR(str_of(t->header), "yes");
    CHECK(t->n_heads == 1 && t->n_done == 1 && t->n_headers == 2);
    CHECK(strcmp(t->url, url_at(p, "/a?b=c")) == 0);
    CHECK(peer_heard(p, "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:"));
    CHECK(peer_heard(p, "\r\nUser-Agent: signalbox/"));
    CHECK(!peer_heard(p, "Accept-Encoding") && !peer_heard(p, "Expect"));
    told_free(t);
    stage_free(s);
}

/* What is asked. */

TEST(a_body_goes_along_without_waiting_for_leave)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct fetch_request rq = request_to(url_at(p, "/post"));
    struct fetch_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("X-Empty"), STR("")},
        {STR("Authorization"), STR("Bearer abc")},
    };
    static char large[3 << 20];
    struct told *t;

    memset(large, 'b', sizeof(large));
    rq.method = STR("POST");
    rq.body = (struct str){large, sizeof(large)};
    rq.headers = headers;
    rq.n_headers = 3;
    t = ask(s, rq);
    CHECK(t->e == OK && p->n_asked == 1);
    CHECK(peer_heard(p, "POST /post HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "\r\nContent-Length: 3145728\r\n"));
    CHECK(peer_heard(p, "\r\nContent-Type: application/json\r\n"));
    CHECK(peer_heard(p, "\r\nX-Empty:\r\n"));
    CHECK(peer_heard(p, "\r\nAuthorization: Bearer abc\r\n"));
    CHECK(!peer_heard(p, "Expect"));
    CHECK(p->asked.n > sizeof(large) && p->asked.n < sizeof(large) + 1000);
    told_free(t);
    stage_free(s);
}

TEST(methods_are_said_as_they_are)
{
    static const char *const methods[] = {"PUT",   "DELETE", "OPTIONS",
                                          "PATCH", "POST",   "QUERY"};
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct fetch_request rq = request_to(url_at(p, "/"));
        struct told *t;
        char line[64];

        rq.method = str_of(methods[i]);
        t = ask(s, rq);
        snprintf(line, sizeof(line), "%s / HTTP/1.1\r\n", methods[i]);
        CHECK(t->e == OK && peer_heard(p, line));
        told_free(t);
    }
    /* Those that usually have a body say that there is none. */
    CHECK(peer_heard(p, "Content-Length: 0"));
    CHECK(!peer_heard(p, "Content-Type"));
    stage_free(s);
}

TEST(head_has_no_body_whatever_length_is_said)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p =
        peer_open(s, "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    rq.method = STR("HEAD");
    t = ask(s, rq);
    CHECK(t->e == OK && t->status == 200 && !t->body.n);
    told_free(t);
    stage_free(s);
}

static void check_not_begun(struct stage *s, struct fetch_request rq)
{
    struct why why = {""};
    uint64_t id = 7;

    CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, &why), ERR_SYNTAX);
    CHECK(why.text[0] && id == 7 && fetch_stats(s->fetch).open == 0);
}

TEST(what_is_no_request_is_not_begun)
{
    static const char *const urls[] = {
        "",          "x",           "ftp://a/",          "ws://a/",
        "wss://a/",  "file:///etc", "http://",           "http://u@a/",
        "gopher:/a", "http://a b/", "http://a/\r\nX: y",
    };
    static const char *const names[] = {
        "",
        "a b",
        "a:",
        "Host",
        "content-length",
        "\xc3\xa4",
        "a\r\n",
        "Expect",
        "Upgrade",
        "Connection",
        "transfer-encoding",
    };
    struct stage *s = stage_new(test_opts());
    struct fetch_header h = {STR("X"), STR("y")};
    static char longest[9000];
    struct fetch_request rq;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        check_not_begun(s, request_to(urls[i]));
    memset(longest, 'a', sizeof(longest) - 1);
    memcpy(longest, "http://a/", 9);
    check_not_begun(s, request_to(longest));
    rq = request_to("http://a/");
    rq.headers = &h;
    rq.n_headers = 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        h.name = str_of(names[i]);
        check_not_begun(s, rq);
    }
    h = (struct fetch_header){STR("X"), STR("a\r\nY: b")};
    check_not_begun(s, rq);
    h.value = STR("fine");
    rq.method = STR("GET / HTTP/1.1\r\n");
    check_not_begun(s, rq);
    rq.method = STR("HEAD");
    rq.body = STR("x");
    check_not_begun(s, rq);
    stage_free(s);
}

/* Connections. */

TEST(a_connection_is_kept_for_the_next_request)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    for (int i = 0; i < 5; i++)
        told_free(get(s, p, "/"));
    CHECK(p->n_guests == 1 && p->n_asked == 5);
    CHECK(fetch_stats(s->fetch).connections_total == 1);
    CHECK(fetch_stats(s->fetch).started_total == 5);
    stage_free(s);
}

TEST(none_is_kept_where_none_may_be)
{
    struct fetch_opts opts = test_opts();
    struct stage *s;
    struct peer *p;

    opts.max_kept = 0;
    s = stage_new(opts);
    p = peer_open(s, FINE);
    told_free(get(s, p, "/"));
    told_free(get(s, p, "/"));
    CHECK(p->n_guests == 2);
    stage_free(s);
}

TEST(a_kept_connection_that_closed_meanwhile_is_not_used)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t;

    told_free(get(s, p, "/"));
    guest_hang_up(last_guest(p));
    t = get(s, p, "/");
    CHECK(t->e == OK && p->n_guests == 2 && p->n_asked == 2);
    told_free(t);
    stage_free(s);
}

/* libcurl would ask again on another connection. */
TEST(nothing_is_asked_twice)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct fetch_request rq = request_to(url_at(p, "/pay"));
    struct told *t;

    told_free(get(s, p, "/"));
    p->reply = NULL;
    rq.method = STR("POST");
    rq.body = STR("100");
    t = start(s, rq, &whole);
    UNTIL(s, p->n_asked == 2);
    CHECK(p->n_guests == 1); /* on the kept one */
    guest_hang_up(last_guest(p));
    p->reply = FINE;
    UNTIL(s, t->n_done);
    CHECK_INT(t->e, ERR_BAD_REQUEST);
    turn(s, 10);
    CHECK_INT(p->n_asked, 2);
    told_free(t);
    stage_free(s);
}

TEST(more_than_may_be_open_are_refused)
{
    struct fetch_opts opts = test_opts();
    struct told *t[4];
    struct stage *s;
    struct peer *p;
    struct fetch_request rq;
    struct why why;
    uint64_t id;

    opts.max_open = 4;
    s = stage_new(opts);
    p = peer_open(s, NULL);
    rq = request_to(url_at(p, "/"));
    for (int i = 0; i < 4; i++)
        t[i] = start(s, rq, &whole);
    CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, &why), ERR_BUSY);
    CHECK(fetch_stats(s->fetch).open == 4);
    fetch_cancel(s->fetch, t[0]->id);
    told_free(t[0]);
    t[0] = start(s, rq, &whole);
    UNTIL(s, p->n_asked == 4);
    for (int i = 0; i < 4; i++) {
        guest_say(&p->guests[i], FINE, strlen(FINE));
        UNTIL(s, fetch_stats(s->fetch).open == 3 - i);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(t[i]->n_done == 1 && t[i]->e == OK);
        told_free(t[i]);
    }
    stage_free(s);
}

TEST(who_has_no_connection_yet_waits_with_the_deadline_running)
{
    struct fetch_opts opts = test_opts();
    struct told *first, *second, *third;
    struct fetch_request rq;
    struct stage *s;
    struct peer *p;

    opts.max_per_host = 1;
    s = stage_new(opts);
    p = peer_open(s, NULL);
    rq = request_to(url_at(p, "/"));
    first = start(s, rq, &whole);
    UNTIL(s, p->n_asked == 1);
    rq.timeout_ms = 300 * 1000;
    second = start(s, rq, &whole);
    rq.timeout_ms = 500 * 1000;
    third = start(s, rq, &whole);
    turn(s, 10);
    CHECK(p->n_asked == 1 && p->n_guests == 1);
    /* Longer than connecting may take: they are not connecting. */
    later(s, 200 * 1000);
    CHECK(!second->n_done && !third->n_done);
    later(s, 100 * 1000);
    CHECK(second->n_done && second->e == ERR_TIMEOUT && !third->n_done);
    p->reply = FINE;
    peer_say(p, FINE);
    UNTIL(s, first->n_done && third->n_done);
    CHECK(first->e == OK && third->e == OK);
    CHECK(p->n_guests == 1 && p->n_asked == 2);
    told_free(first);
    told_free(second);
    told_free(third);
    stage_free(s);
}

TEST(nobody_there_is_unreachable)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t;

    peer_leave(p);
    t = get(s, p, "/");
    CHECK(t->e == ERR_UNREACHABLE && t->status == 0 && t->n_heads == 0);
    CHECK(fetch_stats(s->fetch).failed_total == 1);
    told_free(t);
    check_alive(s);
    stage_free(s);
}

/* Deadlines. */

TEST(an_answer_that_never_comes_is_waited_for_until_the_deadline)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_to(url_at(p, "/")), &whole);

    UNTIL(s, p->n_asked == 1);
    later(s, 990 * 1000);
    CHECK(!t->n_done);
    later(s, 10 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT && t->status == 0);
    UNTIL(s, last_guest(p)->is_eof);
    told_free(t);
    stage_free(s);
}

TEST(silence_has_a_deadline_of_its_own)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    rq.silence_ms = 50 * 1000;
    t = start(s, rq, &as_bytes);
    UNTIL(s, p->n_asked == 1);
    later(s, 40 * 1000);
    peer_say(p, "HTTP/1.1 200 OK\r\n\r\n");
    UNTIL(s, t->n_heads);
    for (int i = 0; i < 5; i++) {
        later(s, 40 * 1000);
        peer_say(p, "x");
        UNTIL(s, t->n_bytes_calls == i + 1);
    }
    CHECK(!t->n_done);
    later(s, 50 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT && t->status == 200);
    told_free(t);
    stage_free(s);
}

TEST(who_trickles_runs_into_the_deadline)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;
    int n = 0;

    rq.timeout_ms = 300 * 1000;
    rq.silence_ms = 50 * 1000;
    t = start(s, rq, &as_bytes);
    UNTIL(s, p->n_asked == 1);
    peer_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    UNTIL(s, t->n_heads);
    while (!t->n_done) {
        peer_say(p, "x");
        UNTIL(s, t->n_done || t->n_bytes_calls == n + 1);
        n++;
        later(s, 40 * 1000);
    }
    CHECK(t->e == ERR_TIMEOUT && n <= 9);
    told_free(t);
    stage_free(s);
}

/* A backlog that is full makes connecting take for ever. */
TEST(connecting_has_a_deadline_of_its_own)
{
    struct stage *s = stage_new(test_opts());
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[8];
    socklen_t len = sizeof(a);
    struct told *t;
    char url[64];

    CHECK(bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 0) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    for (int i = 0; i < 8; i++) {
        fill[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(connect(fill[i], (struct sockaddr *)&a, len) == 0 ||
              errno == EINPROGRESS);
    }
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(a.sin_port));
    t = start(s, request_to(url), &whole);
    turn(s, 10);
    later(s, 90 * 1000);
    CHECK(!t->n_done);
    later(s, 10 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT);
    CHECK(strstr(t->why, "no connection"));
    told_free(t);
    for (int i = 0; i < 8; i++)
        close(fill[i]);
    close(fd);
    stage_free(s);
}

/* Leaving. */

TEST(cancelled_means_no_more_words_of_it)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *early = start(s, request_to(url_at(p, "/")), &whole);
    struct told *t;

    fetch_cancel(s->fetch, early->id); /* before libcurl has heard of it */
    fetch_cancel(s->fetch, early->id);
    turn(s, 5);
    CHECK(p->n_guests == 0);
    t = start(s, request_to(url_at(p, "/")), &as_bytes);
    UNTIL(s, p->n_asked == 1);
    peer_say(p, "HTTP/1.1 200 OK\r\n\r\nabc");
    UNTIL(s, t->n_bytes_calls == 1);
    fetch_cancel(s->fetch, t->id);
    fetch_pause(s->fetch, t->id, true);
    fetch_pause(s->fetch, t->id, false);
    CHECK(fetch_stats(s->fetch).open == 0);
    UNTIL(s, last_guest(p)->is_eof);
    CHECK(!early->n_done && !t->n_done);
    fetch_cancel(s->fetch, 0);
    fetch_cancel(s->fetch, UINT64_MAX);
    told_free(t);
    told_free(early);
    check_alive(s);
    stage_free(s);
}

TEST(cancelling_is_safe_inside_every_callback)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p =
        peer_open(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     "Content-Length: 22\r\n\r\ndata: a\n\ndata: b\n\nxxxx");

    for (int at = 0; at < 3; at++) {
        struct told *t = told_new(s);
        struct fetch_request rq = request_to(url_at(p, "/"));

        t->cancels_at_head = at == 0;
        t->cancels_at_bytes = at == 1;
        t->cancels_at_event = at == 2;
        CHECK(fetch_start(s->fetch, &rq, at == 1 ? &as_bytes : &as_events, t,
                          &t->id, NULL) == OK);
        UNTIL(s, p->n_asked == at + 1 && fetch_stats(s->fetch).open == 0);
        turn(s, 10);
        CHECK(t->n_done == 0 && t->n_heads == 1);
        CHECK(t->n_events == (at == 2) && t->n_bytes_calls == (at == 1));
        told_free(t);
    }
    check_alive(s);
    stage_free(s);
}

TEST(another_may_be_cancelled_and_begun_when_one_is_done)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/next"));
    struct told *one, *two, *three = told_new(s);

    one = start(s, request_to(url_at(p, "/1")), &whole);
    two = start(s, request_to(url_at(p, "/2")), &whole);
    UNTIL(s, p->n_asked == 2);
    one->cancels_at_done = two->cancels_at_done = true;
    one->other = two;
    two->other = one;
    guest_say(&p->guests[0], FINE, strlen(FINE));
    guest_say(&p->guests[1], FINE, strlen(FINE));
    UNTIL(s, one->n_done || two->n_done);
    turn(s, 10);
    CHECK(one->n_done + two->n_done == 1);
    told_free(two);
    two = start(s, request_to(url_at(p, "/3")), &whole);
    two->starts_at_done = true;
    two->next = &rq;
    two->next_handler = &whole;
    two->other = three;
    p->reply = FINE;
    UNTIL(s, three->n_done);
    CHECK(three->e == OK && peer_heard(p, "GET /next "));
    told_free(one);
    told_free(two);
    told_free(three);
    stage_free(s);
}

TEST(stopping_ends_what_is_under_way)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *asked = start(s, request_to(url_at(p, "/")), &whole), *fresh;
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct why why;
    uint64_t id;

    UNTIL(s, p->n_asked == 1);
    fresh = start(s, rq, &whole);
    fetch_stop(s->fetch, stage_stopped, s);
    CHECK(!asked->n_done && !fresh->n_done && !s->n_stopped);
    CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, &why),
              ERR_STOPPING);
    UNTIL(s, s->n_stopped == 1);
    CHECK(asked->n_done && asked->e == ERR_STOPPING);
    CHECK(fresh->n_done && fresh->e == ERR_STOPPING);
    fetch_free(s->fetch);
    peer_close(p);
    loop_fini(&s->loop);
    close(s->log.fd);
    told_free(asked);
    told_free(fresh);
    free(s);
}

/* Options. */

TEST(new_options_are_for_the_next_request)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct fetch_opts opts = s->opts;
    struct why why = {""};
    struct told *t;

    told_free(get(s, p, "/"));
    p->reply = NULL;
    t = start(s, request_to(url_at(p, "/old")), &whole);
    UNTIL(s, p->n_asked == 2);
    opts.max_per_host = 1;
    CHECK(fetch_set(s->fetch, &opts, &why) == OK);
    p->reply = FINE;
    told_free(get(s, p, "/new"));
    CHECK(p->n_guests == 2); /* kept connections are not taken over */
    guest_say(&p->guests[0], FINE, strlen(FINE));
    UNTIL(s, t->n_done);
    CHECK(t->e == OK);
    told_free(t);
    /* The old ones are closed, with the last request on them. */
    UNTIL(s, p->guests[0].is_eof);
    CHECK(!p->guests[1].is_eof);
    stage_free(s);
}

TEST(options_that_are_none_change_nothing)
{
    struct stage *s = stage_new(test_opts());
    struct fetch_opts opts = s->opts;
    struct why why = {""};

    opts.ca_file = "/nowhere/ca.pem";
    CHECK_INT(fetch_set(s->fetch, &opts, &why), ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "/nowhere/ca.pem"));
    opts.ca_file = "/dev/null";
    CHECK_INT(fetch_set(s->fetch, &opts, &why), ERR_BAD_CONFIG);
    opts.ca_file = NULL;
    opts.proxy = "socks5://127.0.0.1:9";
    CHECK_INT(fetch_set(s->fetch, &opts, &why), ERR_BAD_CONFIG);
    opts.proxy = "https://proxy.example";
    CHECK_INT(fetch_set(s->fetch, &opts, &why), ERR_BAD_CONFIG);
    opts.proxy = "";
    opts.ca_file = "";
    CHECK_INT(fetch_set(s->fetch, &opts, &why), OK);
    check_alive(s);
    stage_free(s);
}

/* In two steps: nothing changes until the second. */
TEST(options_that_are_forgotten_never_counted)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct fetch_opts other = s->opts;
    struct told *t;

    other.guard = (struct guard){NULL, 0};
    CHECK(fetch_prepare(s->fetch, &other, NULL) == OK);
    turn(s, 4);
    t = get(s, p, "/");
    CHECK_INT(t->e, OK);
    told_free(t);
    fetch_forget(s->fetch);
    fetch_forget(s->fetch);
    turn(s, 4);
    t = get(s, p, "/");
    CHECK_INT(t->e, OK);
    told_free(t);
    CHECK(fetch_prepare(s->fetch, &other, NULL) == OK);
    CHECK(fetch_prepare(s->fetch, &other, NULL) == OK);
    fetch_commit(s->fetch);
    t = get(s, p, "/");
    CHECK_INT(t->e, ERR_ADDRESS);
    told_free(t);
    CHECK(fetch_prepare(s->fetch, &other, NULL) == OK); /* and no more */
    stage_free(s);
}
