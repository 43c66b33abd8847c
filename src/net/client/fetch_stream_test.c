/* Answers as they come: bytes, events, pauses. */
#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

#define STREAM_HEAD                                               \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; c=u\r\n" \
    "X-Test: yes\r\n\r\n"

static struct told *open_stream(struct stage *s, struct peer *p,
                                struct fetch_request rq)
{
    struct told *t = start(s, rq, &as_events);
    int before = p->n_asked;

    UNTIL(s, p->n_asked == before + 1);
    peer_say(p, STREAM_HEAD);
    UNTIL(s, t->n_heads);
    return t;
}

TEST(bytes_come_as_they_are_sent)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_to(url_at(p, "/")), &as_bytes);

    UNTIL(s, p->n_asked == 1);
    peer_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
    UNTIL(s, t->n_heads == 1);
    CHECK(t->status == 200 && !t->n_bytes_calls);
    peer_say(p, "abc");
    UNTIL(s, t->n_bytes_calls == 1);
    CHECK_STR(buf_str(&t->body), "abc");
    peer_say(p, "def");
    UNTIL(s, t->n_done);
    CHECK_STR(buf_str(&t->body), "abcdef");
    CHECK(t->e == OK);
    told_free(t);
    stage_free(s);
}

TEST(events_are_taken_apart_wherever_they_are_cut)
{
    static const char text[] = "\xef\xbb\xbfid: 1\r\ndata: a\r\n\r\n"
                               ": still here\n\nevent: x\ndata: b\ndata: c\n\n"
                               "data: half";
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);

    for (size_t cut = 0; cut < sizeof(text); cut++) {
        struct told *t = open_stream(s, p, request_to(url_at(p, "/")));
        int64_t before = fetch_stats(s->fetch).bytes_in_total;

        guest_say(last_guest(p), text, cut);
        UNTIL(s, fetch_stats(s->fetch).bytes_in_total == before + (int64_t)cut);
        guest_say(last_guest(p), text + cut, sizeof(text) - 1 - cut);
        shutdown(last_guest(p)->fd, SHUT_WR);
        UNTIL(s, t->n_done);
        CHECK(t->e == OK && t->n_bytes_calls == 0);
        CHECK_STR(buf_str(&t->events), "1|message|a;1|x|b\nc;");
        told_free(t);
        guest_hang_up(last_guest(p));
        buf_fini(&last_guest(p)->heard);
        p->n_guests--;
    }
    stage_free(s);
}

TEST(events_of_who_does_not_ask_for_them_are_bytes)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, STREAM_HEAD "data: a\n\n");
    struct told *t;

    p->closes = true;
    t = get(s, p, "/");
    CHECK_STR(buf_str(&t->body), "data: a\n\n");
    told_free(t);
    /* And what is no stream is none. */
    p->reply = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: a\n\n";
    t = start(s, request_to(url_at(p, "/")), &as_events);
    UNTIL(s, t->n_done);
    CHECK(t->n_events == 0 && t->n_bytes_calls == 1);
    told_free(t);
    stage_free(s);
}

TEST(an_event_has_a_limit_and_so_has_the_stream)
{
    static char line[70000];
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t = open_stream(s, p, rq);

    memset(line, 'x', sizeof(line));
    memcpy(line, "data: ", 6);
    guest_say(last_guest(p), line, 6 + (1 << 16));
    UNTIL(s, !last_guest(p)->n_to_send);
    peer_say(p, "\n\n");
    UNTIL(s, t->n_events == 1);
    CHECK_INT(t->events.n, strlen("|message|;") + (1 << 16));
    guest_say(last_guest(p), line, 6 + (1 << 16) + 10);
    UNTIL(s, t->n_done);
    CHECK(t->e == ERR_LIMIT && strstr(t->why, "event"));
    told_free(t);

    rq.max_body_bytes = 30;
    t = open_stream(s, p, rq);
    peer_say(p, "data: a\n\ndata: b\n\n");
    UNTIL(s, t->n_events == 2);
    peer_say(p, "data: c\n\ndata: d\n\n");
    UNTIL(s, t->n_done);
    CHECK(t->e == ERR_LIMIT);
    told_free(t);
    stage_free(s);
}

TEST(a_paused_stream_says_no_event_more)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = open_stream(s, p, request_to(url_at(p, "/")));

    /* Three in one piece; each is followed by a pause. */
    t->pauses_at_event = true;
    peer_say(p, "data: a\n\ndata: b\r\n\r\ndata: c\n\n");
    shutdown(last_guest(p)->fd, SHUT_WR);
    for (int i = 1; i <= 3; i++) {
        UNTIL(s, t->n_events == i);
        turn(s, 10);
        CHECK(t->n_events == i);
        CHECK(!t->n_done); /* the end waits, too */
        fetch_pause(s->fetch, t->id, false);
    }
    UNTIL(s, t->n_done);
    CHECK(t->e == OK);
    CHECK_STR(buf_str(&t->events), "|message|a;|message|b;|message|c;");
    CHECK_INT(fetch_stats(s->fetch).bytes_in_total, strlen(STREAM_HEAD) + 29);
    told_free(t);
    stage_free(s);
}

/* A paused request costs only the kernel's buffers and a piece. */
TEST(a_pause_holds_back_the_peer)
{
    static char piece[1 << 16];
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t = told_new(s);
    size_t sent = 0, in_vain = 0;
    struct guest *g;

    memset(piece, 'x', sizeof(piece));
    rq.max_body_bytes = 64 << 20;
    t->pauses_at_bytes = true;
    CHECK(fetch_start(s->fetch, &rq, &as_bytes, t, &t->id, NULL) == OK);
    UNTIL(s, p->n_asked == 1);
    g = last_guest(p);
    peer_say(p, "HTTP/1.1 200 OK\r\n\r\n");
    while (in_vain < 50) {
        in_vain++;
        if (!g->n_to_send) {
            guest_say(g, piece, sizeof(piece));
            sent += sizeof(piece);
            in_vain = 0;
        }
        turn_once(s);
    }
    CHECK(t->n_bytes_calls == 1 && sent < (32u << 20));
    CHECK(t->body.n <= 16384);
    t->pauses_at_bytes = false;
    fetch_pause(s->fetch, t->id, false);
    UNTIL(s, !g->n_to_send);
    guest_hang_up(g);
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && t->body.n == sent);
    told_free(t);
    stage_free(s);
}

TEST(a_pause_stops_the_silence_and_not_the_deadline)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    rq.silence_ms = 50 * 1000;
    t = open_stream(s, p, rq);
    fetch_pause(s->fetch, t->id, true);
    fetch_pause(s->fetch, t->id, true);
    later(s, 400 * 1000);
    CHECK(!t->n_done);
    fetch_pause(s->fetch, t->id, false);
    later(s, 40 * 1000);
    CHECK(!t->n_done); /* counted from here */
    later(s, 10 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT);
    told_free(t);
    t = open_stream(s, p, rq);
    fetch_pause(s->fetch, t->id, true);
    later(s, 1000 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT);
    told_free(t);
    stage_free(s);
}

TEST(a_pause_from_the_beginning_holds)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t = start(s, request_to(url_at(p, "/")), &as_bytes);

    fetch_pause(s->fetch, t->id, true);
    UNTIL(s, t->n_heads);
    turn(s, 20);
    CHECK(!t->n_bytes_calls && !t->n_done);
    fetch_pause(s->fetch, t->id, false);
    UNTIL(s, t->n_done);
    CHECK_STR(buf_str(&t->body), "fine");
    told_free(t);
    stage_free(s);
}

/* Nothing is left but to say that it is over, and that waits. */
TEST(who_has_paused_does_not_hear_of_a_good_end)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t = told_new(s), *none;
    struct fetch_request rq = request_to(url_at(p, "/"));

    t->pauses_at_bytes = true;
    CHECK(fetch_start(s->fetch, &rq, &as_bytes, t, &t->id, NULL) == OK);
    UNTIL(s, t->n_bytes_calls == 1);
    turn(s, 20);
    CHECK(!t->n_done && fetch_stats(s->fetch).open == 1);
    told_free(get(s, p, "/")); /* its connection is free meanwhile */
    CHECK_INT(p->n_guests, 1);
    fetch_pause(s->fetch, t->id, false);
    fetch_pause(s->fetch, t->id, true);
    turn(s, 5);
    CHECK(!t->n_done);
    fetch_pause(s->fetch, t->id, false);
    CHECK(!t->n_done); /* not from inside it */
    turn(s, 5);
    CHECK(t->n_done == 1 && t->e == OK && t->status == 200);
    told_free(t);
    /* Also where there is no body to hold back. */
    p->reply = "HTTP/1.1 204 None\r\n\r\n";
    none = start(s, rq, &whole);
    fetch_pause(s->fetch, none->id, true);
    UNTIL(s, none->n_heads);
    turn(s, 20);
    CHECK(!none->n_done);
    later(s, 1000 * 1000); /* its deadline goes on */
    CHECK(none->n_done == 1 && none->e == ERR_TIMEOUT);
    told_free(none);
    stage_free(s);
}

TEST(what_is_held_back_may_be_cancelled_and_stopped)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t[2];

    for (int i = 0; i < 2; i++) {
        struct fetch_request rq = request_to(url_at(p, "/"));

        t[i] = told_new(s);
        t[i]->pauses_at_bytes = true;
        CHECK(fetch_start(s->fetch, &rq, &as_bytes, t[i], &t[i]->id, NULL) ==
              OK);
        UNTIL(s, t[i]->n_bytes_calls == 1);
        turn(s, 10);
    }
    fetch_pause(s->fetch, t[0]->id, false);
    fetch_cancel(s->fetch, t[0]->id);
    turn(s, 5);
    CHECK(!t[0]->n_done && fetch_stats(s->fetch).open == 1);
    stage_free(s);
    CHECK(!t[0]->n_done && t[1]->n_done == 1 && t[1]->e == ERR_STOPPING);
    told_free(t[0]);
    told_free(t[1]);
}

TEST(a_paused_request_may_be_cancelled)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = open_stream(s, p, request_to(url_at(p, "/")));

    t->pauses_at_event = true;
    peer_say(p, "data: a\n\ndata: b\n\n");
    UNTIL(s, t->n_events == 1);
    fetch_pause(s->fetch, t->id, false);
    fetch_cancel(s->fetch, t->id);
    UNTIL(s, last_guest(p)->is_eof);
    CHECK(t->n_events == 1 && !t->n_done);
    told_free(t);
    stage_free(s);
}
