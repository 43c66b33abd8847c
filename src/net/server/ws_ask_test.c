/* The client's side of the handshake: what it writes, and a table of answers,
 * each read whole, byte by byte and cut in two everywhere. */
#include "base/fault.h"
#include "net/server/ws.h"
#include "test/t.h"

#define SAMPLE "dGhlIHNhbXBsZSBub25jZQ=="
#define LINE   "HTTP/1.1 101 Switching Protocols\r\n"
#define UP     "Upgrade: websocket\r\n"
#define CON    "Connection: Upgrade\r\n"
#define ACC    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define ALL    LINE UP CON ACC
#define PROTO  "Sec-WebSocket-Protocol: "
#define END    "\r\n"

enum { MOST = 400 };

static void describe(enum ws_step step, const struct ws_answer *a, char *out,
                     size_t room)
{
    if (step == WS_MORE)
        snprintf(out, room, "...");
    else if (step == WS_MESSAGE)
        snprintf(out, room, "ok %zu [%.*s]", a->used, STR_ARG(a->protocol));
    else
        snprintf(out, room, "%d: %s", a->status, a->what);
}

/* From memory that ends where the bytes end, as they come in pieces. */
static bool reads(const char *bytes, size_t n, const char *protocol,
                  const char *as)
{
    for (size_t cut = 0; cut <= n; cut++) {
        struct ws_answer a;
        char said[200] = "...";
        enum ws_step step = WS_MORE;
        size_t ends[2] = {cut, n};

        for (int i = 0; i < 2 && step == WS_MORE; i++) {
            char *exact = malloc(ends[i] ? ends[i] : 1);

            memcpy(exact, bytes, ends[i]);
            step = ws_answer_read((struct str){exact, ends[i]}, STR(SAMPLE),
                                  str_of(protocol), MOST, &a);
            CHECK(step == WS_MORE || step == WS_MESSAGE || step == WS_BAD);
            CHECK(step != WS_MESSAGE || a.used <= ends[i]);
            describe(step, &a, said, sizeof(said));
            free(exact);
        }
        if (strcmp(said, as) != 0) {
            fprintf(stderr, "cut at %zu: %s\nwanted: %s\nfrom: %s\n", cut, said,
                    as, bytes);
            return false;
        }
    }
    return true;
}

struct row {
    const char *bytes, *as;
};

static void check_rows(const struct row *rows, size_t n, const char *protocol)
{
    int n_wrong = 0;

    for (size_t i = 0; i < n; i++)
        n_wrong +=
            !reads(rows[i].bytes, strlen(rows[i].bytes), protocol, rows[i].as);
    CHECK(n_wrong == 0);
}

#define CHECK_ROWS(rows, protocol) \
    check_rows(rows, sizeof(rows) / sizeof((rows)[0]), protocol)

TEST(an_agreement_is_read)
{
    static const struct row rows[] = {
        {ALL END, "ok 129 []"},
        {ALL END "\x81\x05hello", "ok 129 []"},
        {LINE ACC CON UP END, "ok 129 []"},
        {"HTTP/1.1 101 \r\n" UP CON ACC END, "ok 110 []"},
        {"HTTP/1.1 101 \xc3\xa9 ja\r\n" UP CON ACC END, "ok 115 []"},
        {LINE "UPGRADE: WebSocket\r\n" CON ACC END, "ok 129 []"},
        {LINE UP "Connection: a , upgrade\r\n" ACC END, "ok 133 []"},
        {LINE UP "Connection: a\r\n" CON ACC END, "ok 144 []"},
        {ALL "Server: x\r\nA:\r\n" END, "ok 144 []"},
        {ALL "Content-Length: 0\r\n" END, "ok 148 []"},
        {"", "..."},
        {"HTT", "..."},
        {LINE, "..."},
        {ALL, "..."},
        {ALL "\r", "..."},
    };

    CHECK_ROWS(rows, "");
}

TEST(another_status_is_told)
{
    static const char no[] = "the server did not agree to a WebSocket";
    static const struct {
        const char *line;
        int status;
    } rows[] = {
        {"HTTP/1.1 200 OK", 200},        {"HTTP/1.1 400 ", 400},
        {"HTTP/1.0 404 Not Found", 404}, {"HTTP/1.1 426 Upgrade Required", 426},
        {"HTTP/1.1 301 Moved", 301},     {"HTTP/1.1 100 Continue", 100},
        {"HTTP/1.1 102 x", 102},         {"HTTP/1.1 999 x", 999},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[100], as[100];

        /* The rest of it is not awaited. */
        snprintf(bytes, sizeof(bytes), "%s\r\n", rows[i].line);
        snprintf(as, sizeof(as), "%d: %s", rows[i].status, no);
        CHECK(reads(bytes, strlen(bytes), "", as));
    }
}

TEST(bad_status_lines_are_refused)
{
    static const char no_http[] = "0: the answer does not begin with HTTP/1.1";
    static const char no_line[] = "0: the status line is malformed";
    static const struct row rows[] = {
        {"\r\n" ALL END, no_http},
        {"HTTP/2 101 x\r\n", no_http},
        {"HTTP/1.2 101 x\r\n", no_http},
        {"HTTP/2.0 101 x\r\n", no_http},
        {"http/1.1 101 x\r\n", no_http},
        {"HTTP/1.1\t101 x\r\n", no_http},
        {" HTTP/1.1 101 x\r\n", no_http},
        {"ICY 200 OK\r\n", no_http},
        {"SSH-2.0-x\r\n", no_http},
        {"\r\n", no_http},
        {"HTTP/1.0 101 x\r\n", "0: the answer is HTTP/1.0"},
        {"HTTP/1.1 101\r\n", no_line},
        {"HTTP/1.1  101 x\r\n", no_line},
        {"HTTP/1.1 10 x\r\n", no_line},
        {"HTTP/1.1 1\r\n", no_line},
        {"HTTP/1.1 \r\n", no_line},
        {"HTTP/1.1 1010 x\r\n", no_line},
        {"HTTP/1.1 +10 x\r\n", no_line},
        {"HTTP/1.1 1a1 x\r\n", no_line},
        {"HTTP/1.1 000 x\r\n", no_line},
        {"HTTP/1.1 099 x\r\n", no_line},
        {"HTTP/1.1 101\tx\r\n", no_line},
        {"HTTP/1.1 101 a\rb\r\n", no_line},
        {"HTTP/1.1 101 a\x01\r\n", no_line},
        {"HTTP/1.1 101 x\n", "0: a line ends without CR"},
        {"\n", "0: a line ends without CR"},
    };

    CHECK_ROWS(rows, "");
}

TEST(bad_answers_are_refused)
{
    static const char no_up[] = "0: the Upgrade header does not say websocket";
    static const char no_con[] =
        "0: the Connection header does not name Upgrade";
    static const char no_acc[] =
        "0: Sec-WebSocket-Accept is not the answer to our key";
    static const char no_ext[] =
        "0: the server agreed to an extension that was not requested";
    static const char no_name[] =
        "0: a header line is not a name, a colon and a value";
    static const char body[] = "0: the answer has a body";
    static const struct row rows[] = {
        {LINE CON ACC END, no_up},
        {LINE "Upgrade:\r\n" CON ACC END, no_up},
        {LINE "Upgrade: h2c\r\n" CON ACC END, no_up},
        {LINE "Upgrade: websocket, h2c\r\n" CON ACC END, no_up},
        {LINE "Upgrade: websockets\r\n" CON ACC END, no_up},
        {LINE UP UP CON ACC END, "0: there are two Upgrade headers"},
        {LINE UP ACC END, no_con},
        {LINE UP "Connection: close\r\n" ACC END, no_con},
        {LINE UP "Connection: upgraded\r\n" ACC END, no_con},
        {LINE UP CON END, no_acc},
        {LINE UP CON "Sec-WebSocket-Accept:\r\n" END, no_acc},
        {LINE UP CON "Sec-WebSocket-Accept: " SAMPLE "\r\n" END, no_acc},
        {LINE UP CON
         "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" END,
         no_acc},
        {LINE UP CON
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo\r\n" END,
         no_acc},
        {LINE UP CON
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=x\r\n" END,
         no_acc},
        {ALL ACC, "0: there are two Sec-WebSocket-Accept headers"},
        {ALL "Sec-WebSocket-Extensions: permessage-deflate\r\n", no_ext},
        {ALL "sec-websocket-extensions:\r\n", no_ext},
        {ALL PROTO "chat\r\n" END,
         "0: the server agreed to a protocol that was not requested"},
        {ALL PROTO "\r\n" END,
         "0: the server agreed to a protocol that was not requested"},
        {ALL "Content-Length: 1\r\n" END "x", body},
        {ALL "Content-Length: 00\r\n" END, body},
        {ALL "Transfer-Encoding: chunked\r\n" END, body},
        {ALL "Content-Length: 0\r\nContent-Length: 0\r\n",
         "0: there are two Content-Length headers"},
        {ALL "no colon\r\n", no_name},
        {ALL "a : b\r\n", no_name},
        {ALL ": b\r\n", no_name},
        {ALL "a: b\r\n c\r\n", "0: a header line is folded"},
        {ALL "a: b\x01\r\n", "0: a control character in a header"},
        {ALL "a: b\rc\r\n", "0: a control character in a header"},
        {ALL "a: b\n", "0: a line ends without CR"},
        {ALL "\n", "0: a line ends without CR"},
    };

    CHECK_ROWS(rows, "");
    CHECK(reads(ALL "a: \0b\r\n", sizeof(ALL "a: \0b\r\n") - 1, "",
                "0: a control character in a header"));
}

TEST(a_protocol_is_the_one_asked_for_or_none)
{
    static const char other[] =
        "0: the server agreed to another protocol than asked for";
    static const struct row rows[] = {
        {ALL END, "ok 129 []"},
        {ALL PROTO "chat\r\n" END, "ok 159 [chat]"},
        {ALL PROTO "Chat\r\n" END, other},
        {ALL PROTO "chat, other\r\n" END, other},
        {ALL PROTO "other\r\n" END, other},
        {ALL PROTO "\r\n" END, other},
        {ALL PROTO "chat\r\n" PROTO "chat\r\n",
         "0: there are two Sec-WebSocket-Protocol headers"},
    };

    CHECK_ROWS(rows, "chat");
}

TEST(an_answer_has_a_limit)
{
    static const char long_one[] = "0: the answer is larger than allowed";

    for (int beyond = 0; beyond < 2; beyond++) {
        char bytes[600] = ALL "a: ", as[64] = "ok 400 []";
        size_t n = strlen(bytes);

        /* Whole with its last byte at the limit, and one beyond. */
        memset(bytes + n, 'x', MOST - n - 4 + (size_t)beyond);
        n = MOST - 4 + (size_t)beyond;
        memcpy(bytes + n, "\r\n\r\n", 4);
        CHECK(reads(bytes, n + 4, "", beyond ? long_one : as));
        /* A line that does not end: one byte more would not change it. */
        memset(bytes + n, 'x', 4);
        CHECK(reads(bytes, MOST - 1, "", "..."));
        CHECK(reads(bytes, MOST, "", long_one));
        memset(bytes, 'x', sizeof(bytes));
        CHECK(reads(bytes, MOST - 1, "", "..."));
        CHECK(reads(bytes, sizeof(bytes), "", long_one));
    }
}

TEST(an_answer_survives_every_fault)
{
    struct ws_answer a;
    long nth = 0;

    do {
        enum ws_step step;

        fault_arm(++nth);
        step = ws_answer_read(STR(ALL END), STR(SAMPLE), STR(""), MOST, &a);
        CHECK(step == (fault_fired() ? WS_BAD : WS_MESSAGE));
        CHECK((a.what != NULL) == (step == WS_BAD) && a.status == 0);
    } while (fault_fired());
    CHECK(nth > 1);
}

/* What is asked. */

static const struct ws_ask plain = {
    .host = {"h:8080", 6}, .target = {"/x?y=z", 6}, .key = {SAMPLE, 24}};

TEST(a_request_is_written_whole)
{
    static const struct http_header headers[] = {
        {STR("Authorization"), STR("Bearer t")},
        {STR("X-Empty"), STR("")},
    };
    struct ws_ask asked = plain;
    struct buf out;

    buf_init(&out, 1000);
    CHECK(ws_ask_write(&out, &asked) == OK);
    CHECK_STR(buf_str(&out), "GET /x?y=z HTTP/1.1\r\nHost: h:8080\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: " SAMPLE "\r\n\r\n");
    buf_clear(&out);
    asked.protocol = STR("chat");
    asked.headers = headers;
    asked.n_headers = 2;
    CHECK(ws_ask_write(&out, &asked) == OK);
    CHECK(strstr(out.p, "\r\nSec-WebSocket-Protocol: chat\r\n"
                        "Authorization: Bearer t\r\nX-Empty: \r\n\r\n"));
    buf_fini(&out);
}

TEST(our_server_agrees_to_what_our_client_asks)
{
    static const struct http_limits limits = {1000, 1000, 20, 0};
    struct http_header slots[20];
    struct http_parse p = {.phase = HTTP_HEAD};
    struct ws_ask asked = plain;
    struct http_request rq;
    struct ws_hello hello;
    struct ws_answer answer;
    struct buf out;

    buf_init(&out, 1000);
    asked.protocol = STR("chat");
    CHECK(ws_ask_write(&out, &asked) == OK);
    CHECK(http_parse(&p, &limits, out.p, &out.n, slots, &rq) == HTTP_DONE);
    CHECK(ws_hello_read(&rq, &hello, NULL) == OK);
    CHECK(ws_offers(&rq, STR("chat")));
    CHECK_STR(hello.protocols, "chat");
    buf_clear(&out);
    buf_addf(&out,
             LINE UP CON "Sec-WebSocket-Accept: %s\r\n" PROTO "chat\r\n" END,
             hello.accept);
    CHECK(ws_answer_read(buf_str(&out), asked.key, STR("chat"), 1000,
                         &answer) == WS_MESSAGE);
    CHECK(answer.used == out.n);
    buf_fini(&out);
}

static bool is_refused(struct ws_ask asked)
{
    struct buf out;
    bool is_so;

    buf_init(&out, 1000);
    buf_add_str(&out, STR("before"));
    is_so = ws_ask_write(&out, &asked) == ERR_USAGE &&
            str_eq(buf_str(&out), STR("before")) && !out.over;
    buf_fini(&out);
    return is_so;
}

TEST(what_could_break_a_request_is_refused)
{
    static const struct str hosts[] = {STR(""),          STR("a b"),
                                       STR("a\r\nb: c"), STR("u@h"),
                                       STR("h:99999"),   STR("h/x")};
    static const struct str targets[] = {
        STR(""),          STR("x"),    STR("/a b"),
        STR("/a\r\nb"),   STR("/a#b"), STR("/\xc3\xa9"),
        STR("http://h/"), STR("*"),    STR("/\0")};
    static const struct str keys[] = {STR(""), STR("x"),
                                      STR("dGhlIHNhbXBsZSBub25jZR==")};
    static const struct str protocols[] = {STR("a b"), STR("a,b"), STR("a\r\n"),
                                           STR("\xc3\xa9")};
    struct ws_ask asked;

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        asked = plain;
        asked.host = hosts[i];
        CHECK(is_refused(asked));
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        asked = plain;
        asked.target = targets[i];
        CHECK(is_refused(asked));
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        asked = plain;
        asked.key = keys[i];
        CHECK(is_refused(asked));
    }
    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        asked = plain;
        asked.protocol = protocols[i];
        CHECK(is_refused(asked));
    }
}

TEST(headers_that_are_ours_or_unsafe_are_refused)
{
    static const struct http_header headers[] = {
        {STR("Host"), STR("x")},
        {STR("upgrade"), STR("x")},
        {STR("Connection"), STR("close")},
        {STR("Keep-Alive"), STR("x")},
        {STR("Content-Length"), STR("5")},
        {STR("Transfer-Encoding"), STR("chunked")},
        {STR("TE"), STR("x")},
        {STR("Trailer"), STR("x")},
        {STR("Expect"), STR("100-continue")},
        {STR("Proxy-Connection"), STR("x")},
        {STR("Sec-WebSocket-Key"), STR("x")},
        {STR("sec-websocket-version"), STR("8")},
        {STR("Sec-WebSocket-Extensions"), STR("x")},
        {STR("Sec-WebSocket-Protocol"), STR("x")},
        {STR("Sec-WebSocket-Anything"), STR("x")},
        {STR(""), STR("x")},
        {STR("a b"), STR("x")},
        {STR("a:"), STR("x")},
        {STR("a\r\nb"), STR("x")},
        {STR("a"), STR("x\r\nb: c")},
        {STR("a"), STR("x\ny")},
        {STR("a"), STR("x\0y")},
        {STR("a"), STR("x\x7f")},
    };

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct ws_ask asked = plain;

        asked.headers = &headers[i];
        asked.n_headers = 1;
        CHECK(is_refused(asked));
    }
}

TEST(a_request_that_does_not_fit_is_not_begun)
{
    struct buf whole, out;

    buf_init(&whole, 1000);
    CHECK(ws_ask_write(&whole, &plain) == OK);
    for (size_t short_by = 0; short_by < 3; short_by++) {
        buf_init(&out, 5 + whole.n - short_by);
        buf_add_str(&out, STR("first"));
        CHECK(ws_ask_write(&out, &plain) == (short_by ? ERR_LIMIT : OK));
        CHECK(out.n == 5 + (short_by ? 0 : whole.n));
        buf_fini(&out);
    }
    buf_fini(&whole);
}
