/* Hostile servers. After each, a good request gets a good answer. */
#include "net/client/fetch.h"

#include "test/lib/fetch_stage.h"

#define HEAD(headers) "HTTP/1.1 200 OK\r\n" headers "\r\n"
#define CHUNKS        "2\r\nok\r\n0\r\n\r\n"

/* Bytes and then the end of the connection: e is what comes of it. */
struct script {
    const char *bytes;
    enum err e;
    int status;
    const char *body;
};

static void play(struct stage *s, const struct script *c, size_t n, bool keeps)
{
    struct peer *p = &s->peers[0];
    struct told *t = start(s, request_to(url_at(p, "/")), &whole);
    int before = p->n_asked;
    struct guest *g;

    UNTIL(s, p->n_asked == before + 1);
    g = last_guest(p);
    guest_say(g, c->bytes, n);
    UNTIL(s, g->n_to_send == 0 || g->is_eof);
    if (!keeps)
        shutdown(g->fd, SHUT_WR);
    UNTIL(s, t->n_done);
    if (t->e != c->e || t->status != c->status ||
        (c->body && !str_eq(buf_str(&t->body), str_of(c->body))))
        T_FAIL("after %zu bytes of \"%.60s\": error %d (%s), status %d, body "
               "\"%.*s\"",
               n, c->bytes, t->e, t->why, t->status,
               STR_ARG(buf_str(&t->body)));
    CHECK(fetch_stats(s->fetch).open == 0);
    guest_hang_up(g);
    told_free(t);
}

static const struct script scripts[] = {
    /* Fine, in ways that some find hard. */
    {HEAD("Content-Length: 2\r\n") "ok", OK, 200, "ok"},
    {HEAD("") "until the end", OK, 200, "until the end"},
    {"HTTP/1.0 200 OK\r\n\r\nold", OK, 200, "old"},
    {"HTTP/1.1 204 No Content\r\n\r\n", OK, 204, ""},
    {"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nbad", OK, 500, "bad"},
    {HEAD("Transfer-Encoding: chunked\r\n") "2\r\nok\r\n0\r\n\r\n", OK, 200,
     "ok"},
    {HEAD("Transfer-Encoding: chunked\r\n") "2;x=y\r\nok\r\n0\r\nT: x\r\n\r\n",
     OK, 200, "ok"},
    {"HTTP/1.1 100 Continue\r\n\r\n" HEAD("Content-Length: 2\r\n") "ok", OK,
     200, "ok"},
    {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" HEAD(
         "Content-Length: 2\r\n") "ok",
     OK, 200, "ok"},
    {"HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nok", OK,
     301, "ok"},
    {HEAD("Content-Encoding: gzip\r\nContent-Length: 2\r\n") "\x1f\x8b", OK,
     200, "\x1f\x8b"},

    /* No answer, or half of one. */
    {"", ERR_BAD_REQUEST, 0, NULL},
    {"H", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 2", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 200 OK\r\nA: b", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 200 OK\r\nA: b\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 100 Continue\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},

    /* Lies about lengths. */
    {HEAD("Content-Length: 10\r\n") "short", ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Content-Length: 2\r\n") "okHTTP/1.1 200 OK\r\n\r\nmore", OK, 200,
     "ok"},
    {HEAD("Content-Length: 0\r\n") "more", OK, 200, ""},
    {HEAD("Content-Length: 9223372036854775807\r\n") "x", ERR_LIMIT, 200, NULL},
    {HEAD("Content-Length: 1048577\r\n") "x", ERR_LIMIT, 200, NULL},
    {HEAD("Content-Length: 1048576\r\n") "x", ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Content-Length: 99999999999999999999\r\n") "x", ERR_BAD_REQUEST, 200,
     NULL},
    {HEAD("Content-Length: 1\r\nContent-Length: 2\r\n") "xx", ERR_BAD_REQUEST,
     200, NULL},
    {HEAD("Content-Length: 1\r\nContent-Length: 1\r\n") "x", OK, 200, "x"},
    {HEAD("Content-Length: -5\r\n") "x", ERR_BAD_REQUEST, 0, NULL},
    {HEAD("Content-Length: 0x10\r\n") "x", ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n") CHUNKS,
     ERR_BAD_REQUEST, 200, NULL},
    {HEAD("transfer-encoding: CHUNKED\r\ncontent-length: 12\r\n") CHUNKS,
     ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Content-Length: 2\r\nTransfer-Encoding: identity\r\n") "ok",
     ERR_BAD_REQUEST, 200, NULL},
    {"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 2\r\n"
     "Transfer-Encoding: chunked\r\n\r\n" CHUNKS,
     ERR_BAD_REQUEST, 302, NULL},

    /* Chunks that are none. */
    {HEAD("Transfer-Encoding: chunked\r\n") "5\r\nab", ERR_BAD_REQUEST, 200,
     NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "2\r\nok\r\n", ERR_BAD_REQUEST, 200,
     NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "zz\r\nok\r\n", ERR_BAD_REQUEST,
     200, NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "-1\r\nok\r\n", ERR_BAD_REQUEST,
     200, NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "ffffffffffffffffff\r\nok",
     ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "2\r\nokXX0\r\n\r\n",
     ERR_BAD_REQUEST, 200, NULL},
    {HEAD("Transfer-Encoding: chunked\r\n") "0\r\nT: x\r\n", ERR_BAD_REQUEST,
     200, NULL},

    /* Not HTTP, or not ours. */
    {"garbage\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"\x16\x03\x01\x02\x00\x01", ERR_BAD_REQUEST, 0, NULL},
    {"220 mail.example ESMTP\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/0.9 200 OK\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/2 200\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 99999 OK\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 OK\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nstuff",
     ERR_BAD_REQUEST, 0, NULL},
    {"<html>", ERR_BAD_REQUEST, 0, NULL},
    {"\n\n\n\n", ERR_BAD_REQUEST, 0, NULL},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ERR_BAD_REQUEST, 0, NULL},
};

TEST(whatever_is_answered_ends_well_or_with_a_reason)
{
    struct stage *s = stage_new(test_opts());

    peer_open(s, NULL);
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        play(s, &scripts[i], strlen(scripts[i].bytes), false);
    check_alive(s);
    stage_free(s);
}

TEST(an_answer_with_two_ends_would_be_noticed)
{
    const struct script taken = {
        HEAD("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n") CHUNKS, OK,
        200, "ok"};
    struct stage *s = stage_new(test_opts());

    peer_open(s, NULL);
    fault_arm_at("fetch.two_ends", 1);
    play(s, &taken, strlen(taken.bytes), false);
    stage_free(s);
}

TEST(an_answer_cut_anywhere_is_never_taken_for_a_whole_one)
{
    static const char *const answers[] = {
        HEAD("Content-Length: 7\r\nX-Test: a\r\n") "content",
        /* libcurl does not wait for the last LF, when all is said. */
        HEAD("Transfer-Encoding: chunked\r\n") "4\r\nabcd\r\n3\r\nxyz\r\n0\r\n"
                                               "\r",
    };
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);

    for (size_t i = 0; i < 2; i++)
        for (size_t n = 0; n < strlen(answers[i]); n++) {
            struct script c = {answers[i], ERR_BAD_REQUEST, 0, NULL};
            const char *end = strstr(answers[i], "\r\n\r\n") + 4;

            c.status = n >= (size_t)(end - answers[i]) ? 200 : 0;
            play(s, &c, n, false);
            p->n_guests = 0; /* they have hung up */
            buf_fini(&p->guests[0].heard);
        }
    check_alive(s);
    stage_free(s);
}

TEST(what_comes_behind_an_answer_is_nobodys)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, HEAD("Content-Length: 2\r\n") "ok" HEAD(
                                      "Content-Length: 6\r\n") "forged");
    struct told *t;

    for (int i = 0; i < 3; i++) {
        t = get(s, p, "/");
        CHECK_STR(buf_str(&t->body), "ok");
        told_free(t);
    }
    CHECK(p->n_guests == 3); /* none of them was kept */
    stage_free(s);
}

TEST(a_reset_is_a_reason_too)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);

    for (int at = 0; at < 3; at++) {
        struct told *t = start(s, request_to(url_at(p, "/")), &whole);

        UNTIL(s, p->n_asked == at + 1);
        if (at > 0)
            peer_say(p, HEAD("Content-Length: 10\r\n"));
        UNTIL(s, at == 0 || t->n_heads);
        if (at > 1)
            peer_say(p, "half");
        turn(s, 5);
        guest_reset(last_guest(p));
        UNTIL(s, t->n_done);
        CHECK_INT(t->e, ERR_BAD_REQUEST);
        if (!strstr(t->why, "reset"))
            T_FAIL("%s", t->why);
        told_free(t);
    }
    check_alive(s);
    stage_free(s);
}

/* A socket with an error, too, is read to its end first. */
TEST(what_came_before_a_reset_counts)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_to(url_at(p, "/")), &as_bytes);

    UNTIL(s, p->n_asked == 1);
    peer_say(p, HEAD("Content-Length: 4\r\n") "fine");
    guest_reset(last_guest(p)); /* before it was read */
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && t->status == 200);
    CHECK_STR(buf_str(&t->body), "fine");
    told_free(t);
    stage_free(s);
}

TEST(what_is_not_http_is_called_so)
{
    static const char *const replies[] = {"\x15\x03\x01\x01\x02\x02\x46",
                                          "SSH-2.0-OpenSSH_9\r\n\r\n",
                                          "220 mail ready\r\n\r\n"};
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);

    p->closes = true;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        struct told *t;

        p->reply = replies[i];
        t = get(s, p, "/");
        CHECK_INT(t->e, ERR_BAD_REQUEST);
        if (!strstr(t->why, "not HTTP"))
            T_FAIL("%s", t->why);
        told_free(t);
    }
    stage_free(s);
}

/* Too much. */

/* Says `piece` again and again until it is cut off, and how it ended. */
static void flood(struct stage *s, const char *first, const char *piece,
                  size_t n, enum err e, size_t most)
{
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_to(url_at(p, "/")), &whole);
    struct guest *g;
    size_t sent = 0;

    UNTIL(s, p->n_asked == 1);
    g = last_guest(p);
    guest_say(g, first, strlen(first));
    while (!t->n_done && sent < (64u << 20)) {
        if (!g->n_to_send) {
            guest_say(g, piece, n);
            sent += n;
        }
        turn_once(s);
    }
    CHECK(t->n_done);
    if (t->e != e)
        T_FAIL("%.20s: %s", piece, t->why);
    /* What was not taken is not in memory either. */
    CHECK(t->body.n == 0 || t->body.n <= (1 << 20));
    CHECK(fetch_stats(s->fetch).bytes_in_total <= (int64_t)most);
    told_free(t);
    peer_close(p);
    s->n_peers--;
    check_alive(s);
    peer_close(&s->peers[--s->n_peers]);
}

TEST(endless_bodies_are_cut_off_at_the_limit)
{
    static char piece[1 << 20];
    struct stage *s = stage_new(test_opts());

    memset(piece, 'x', sizeof(piece));
    flood(s, HEAD(""), piece, sizeof(piece), ERR_LIMIT, (1 << 20) + 65536);
    stage_free(s);
}

TEST(endless_chunks_are_cut_off_at_the_limit)
{
    static char piece[0x1000 + 8];
    struct stage *s = stage_new(test_opts());

    memset(piece, 'x', sizeof(piece));
    memcpy(piece, "1000\r\n", 6);
    memcpy(piece + sizeof(piece) - 2, "\r\n", 2);
    flood(s, HEAD("Transfer-Encoding: chunked\r\n"), piece, sizeof(piece),
          ERR_LIMIT, (1 << 20) + 65536);
    stage_free(s);
}

TEST(a_gigabyte_is_refused_when_it_is_announced)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, HEAD("Content-Length: 1073741824\r\n") "xxx");
    struct told *t = start(s, request_to(url_at(p, "/")), &as_bytes);

    UNTIL(s, t->n_done);
    CHECK(t->e == ERR_LIMIT && t->n_bytes_calls == 0 && t->n_heads == 0);
    UNTIL(s, last_guest(p)->is_eof);
    told_free(t);
    stage_free(s);
}

TEST(a_body_of_just_the_limit_is_taken)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, HEAD("") "12345678");
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    p->closes = true;
    rq.max_body_bytes = 8;
    t = ask(s, rq);
    CHECK(t->e == OK && t->body.n == 8);
    told_free(t);
    rq.max_body_bytes = 7;
    t = ask(s, rq);
    CHECK(t->e == ERR_LIMIT && t->status == 200);
    told_free(t);
    rq.max_body_bytes = 0;
    t = ask(s, rq);
    CHECK(t->e == ERR_LIMIT);
    told_free(t);
    p->reply = HEAD("Content-Length: 0\r\n");
    t = ask(s, rq);
    CHECK(t->e == OK && t->body.n == 0);
    told_free(t);
    stage_free(s);
}

TEST(endless_heads_are_cut_off)
{
    static char line[1 << 16];
    struct stage *s = stage_new(test_opts());

    memset(line, 'h', sizeof(line));
    flood(s, "HTTP/1.1 200 OK\r\n", "A: b\r\n", 6, ERR_LIMIT, 8192);
    flood(s, "", "HTTP/1.1 100 Continue\r\n\r\n", 25, ERR_LIMIT, 2 * 8192);
    flood(s, "", "HTTP/1.1 102 P\r\nA: b\r\n\r\n", 24, ERR_LIMIT, 4 * 8192);
    /* A line that does not end. */
    flood(s, "HTTP/1.1 200 OK\r\nA: ", line, sizeof(line), ERR_LIMIT, 5 * 8192);
    flood(s, "", line, sizeof(line), ERR_BAD_REQUEST, 5 * 8192);
    /* Trailers. */
    flood(s, HEAD("Transfer-Encoding: chunked\r\n") "0\r\n", "T: x\r\n", 6,
          ERR_LIMIT, 6 * 8192);
    stage_free(s);
}

TEST(many_headers_are_too_many)
{
    struct fetch_opts opts = test_opts();
    struct stage *s;
    struct peer *p;
    struct told *t;
    char text[8192] = "HTTP/1.1 200 OK\r\n";

    opts.max_header_bytes = 1 << 20;
    s = stage_new(opts);
    for (int i = 0; i < 255; i++)
        strncat(text, "A: b\r\n", sizeof(text) - strlen(text) - 1);
    p = peer_open(s, text);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(text);

        snprintf(text + n, sizeof(text) - n,
                 i ? "A: b\r\nContent-Length: 0\r\n\r\n"
                   : "Content-Length: 0\r\n\r\n");
        t = get(s, p, "/");
        CHECK(i ? t->e == ERR_LIMIT : t->e == OK && t->n_headers == 256);
        text[n] = '\0';
        told_free(t);
    }
    stage_free(s);
}

/* libcurl reads a chunk's extension and does not report it; silence ends it. */
TEST(bytes_that_say_nothing_are_silence)
{
    static char line[1 << 16];
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    memset(line, 'x', sizeof(line));
    rq.silence_ms = 50 * 1000;
    t = start(s, rq, &whole);
    UNTIL(s, p->n_asked == 1);
    peer_say(p, HEAD("Transfer-Encoding: chunked\r\n") "5;");
    UNTIL(s, t->n_heads);
    for (int i = 0; i < 100 && !t->n_done; i++) {
        if (!last_guest(p)->n_to_send)
            guest_say(last_guest(p), line, sizeof(line));
        turn(s, 2);
    }
    CHECK(!t->n_done);
    later(s, 50 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT);
    told_free(t);
    stage_free(s);
}

TEST(a_folded_header_is_one)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(
        s, HEAD("X-Test: a\r\n   b\r\nno header\r\nContent-Length: 0\r\n"));
    struct told *t = get(s, p, "/");

    if (t->e == OK)
        CHECK_STR(str_of(t->header), "a b");
    else
        CHECK_INT(t->e, ERR_BAD_REQUEST);
    told_free(t);
    stage_free(s);
}

/* The peer reads nothing of a large body. */
TEST(a_peer_that_does_not_read_runs_into_the_deadline)
{
    static char large[8 << 20];
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    p->is_deaf = true;
    rq.method = STR("POST");
    rq.body = (struct str){large, sizeof(large)};
    t = start(s, rq, &whole);
    UNTIL(s, p->n_guests == 1);
    turn(s, 50);
    CHECK(!t->n_done);
    later(s, 1000 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT);
    told_free(t);
    stage_free(s);
}

/* An answer before the question is whole ends both. */
TEST(an_early_answer_is_an_answer)
{
    static char large[8 << 20];
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct fetch_request rq = request_to(url_at(p, "/"));
    struct told *t;

    p->is_deaf = true;
    rq.method = STR("POST");
    rq.body = (struct str){large, sizeof(large)};
    t = start(s, rq, &whole);
    UNTIL(s, p->n_guests == 1);
    peer_say(p, "HTTP/1.1 413 Too Large\r\nConnection: close\r\n"
                "Content-Length: 2\r\n\r\nno");
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && t->status == 413);
    CHECK_STR(buf_str(&t->body), "no");
    told_free(t);
    stage_free(s);
}
