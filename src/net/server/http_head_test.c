/* The parser alone: request lines and headers. */
#include "test/lib/http_reader.h"

/* Words that many rows share. */
#define NO_METHOD     BAD("it does not begin with a method")
#define NO_SPACE      BAD("the method is not a word and one space")
#define SPACES        BAD("the request line has not exactly two spaces")
#define NO_CR         BAD("a line ends without CR")
#define NO_BYTE       BAD("the target has a byte that must be encoded")
#define NO_TARGET     BAD("the target must begin with / or http://")
#define NO_VERSION    BAD("the version is not written like HTTP/1.1")
#define OTHER_VERSION "http_version: the request names another"
#define NO_CONNECT    "not_implemented: the method CONNECT"
#define LONG_URI      "uri_too_long: it is longer than http.maxRequestLineBytes (40)"
#define NO_HOST       BAD("the Host header is missing")
#define BAD_HOST      BAD("the Host header is not a valid host")
#define TWO_HOSTS     BAD("there are two Host headers")
#define OTHER_HOST    BAD("the target and the Host header differ")
#define NO_HEADER     BAD("a header line is not a name, a colon and a value")
#define FOLDED        BAD("a header line is folded")
#define CONTROL       BAD("a control character in a header")
#define LONG_HEADERS \
    "headers_too_large: they are larger than http.maxHeaderBytes (100)"

TEST(good_requests_are_read)
{
    static const struct row rows[] = {
        ROW("", ""),
        ROW("GET / HTTP/1.1\r\n" H "\r\n", "GET / [] keep; "),
        ROW("GET /a/b?c=d&e HTTP/1.1\r\n" H "\r\n", "GET /a/b?c=d&e [] keep; "),
        ROW("GET /a? HTTP/1.1\r\n" H "\r\n", "GET /a [] keep; "),
        ROW("GET /a?b?c HTTP/1.1\r\n" H "\r\n", "GET /a?b?c [] keep; "),
        ROW("GET // HTTP/1.1\r\n" H "\r\n", "GET // [] keep; "),
        ROW("GET /%00%zz HTTP/1.1\r\n" H "\r\n", "GET /%00%zz [] keep; "),
        ROW("GET /\"<>\\^`{|} HTTP/1.1\r\n" H "\r\n",
            "GET /\"<>\\^`{|} [] keep; "),
        ROW("HEAD / HTTP/1.1\r\n" H "\r\n", "HEAD / [] keep; "),
        ROW("M-SEARCH!#$%&'*+.^_`|~ / HTTP/1.1\r\n" H "\r\n",
            "M-SEARCH!#$%&'*+.^_`|~ / [] keep; "),
        ROW("get / HTTP/1.1\r\n" H "\r\n", "get / [] keep; "),
        ROW("OPTIONS * HTTP/1.1\r\n" H "\r\n", "OPTIONS * [] keep; "),
        ROW("TRACE / HTTP/1.1\r\n" H "\r\n", "TRACE / [] keep; "),
        ROW("\r\nGET / HTTP/1.1\r\n" H "\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHOST:h\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nhost: \t h \t \r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\n" H "A:\r\n\r\n", "GET / [] {A=} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "A: \t \r\n\r\n", "GET / [] {A=} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "a: b: c\td\r\n\r\n",
            "GET / [] {a=b: c\td} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "a: \xc3\xa9\xff\r\n\r\n",
            "GET / [] {a=\xc3\xa9\xff} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "a: 1\r\na: 2\r\n\r\n",
            "GET / [] {a=1} {a=2} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "!#$%&'*+-.^_`|~: x\r\n\r\n",
            "GET / [] {!#$%&'*+-.^_`|~=x} keep; "),
    };

    CHECK_ROWS(rows);
}

TEST(who_keeps_the_connection_is_read)
{
    static const struct row rows[] = {
        ROW("GET / HTTP/1.0\r\n\r\n", "GET / [] close 1.0; "),
        ROW("GET / HTTP/1.0\r\n" H "\r\n", "GET / [] close 1.0; "),
        ROW("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET / [] {Connection=keep-alive} keep 1.0; "),
        ROW("GET / HTTP/1.0\r\nConnection: Keep-Alive, close\r\n\r\n",
            "GET / [] {Connection=Keep-Alive, close} close 1.0; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
            "GET / [] {Connection=close} close; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection: a ,\tCLOSE,b\r\n\r\n",
            "GET / [] {Connection=a ,\tCLOSE,b} close; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n",
            "GET / [] {Connection=closed} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection: a\r\nConnection: close\r\n\r\n",
            "GET / [] {Connection=a} {Connection=close} close; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection:\r\n\r\n",
            "GET / [] {Connection=} keep; "),
        ROW("GET / HTTP/1.1\r\n" H "Connection: ,,\r\n\r\n",
            "GET / [] {Connection=,,} keep; "),
    };

    CHECK_ROWS(rows);
}

TEST(bad_request_lines_are_refused)
{
    static const struct row rows[] = {
        ROW("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
            BAD("there is more than one empty line before it")),
        ROW("\nGET / HTTP/1.1\r\n" H "\r\n", NO_CR),
        ROW("\rGET / HTTP/1.1\r\n" H "\r\n", BAD("a CR without LF")),
        ROW(" GET / HTTP/1.1\r\n" H "\r\n", NO_METHOD),
        ROW("\tGET / HTTP/1.1\r\n" H "\r\n", NO_METHOD),
        ROW("\0GET / HTTP/1.1\r\n" H "\r\n", NO_METHOD),
        ROW("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            BAD("it looks like TLS, and this port speaks plain HTTP: use "
                "http://, or the port of tls.listen")),
        ROW("\x80", NO_METHOD),
        ROW("GET  / HTTP/1.1\r\n" H "\r\n", SPACES),
        ROW("GET /  HTTP/1.1\r\n" H "\r\n", SPACES),
        ROW("GET / HTTP/1.1 \r\n" H "\r\n", SPACES),
        ROW("GET\t/\tHTTP/1.1\r\n" H "\r\n", NO_SPACE),
        ROW("GET / a HTTP/1.1\r\n" H "\r\n", SPACES),
        ROW("GET /\r\n", SPACES),
        ROW("GET\r\n", NO_SPACE),
        ROW("GET HTTP/1.1\r\n" H "\r\n", SPACES),
        ROW("G(T / HTTP/1.1\r\n" H "\r\n", NO_SPACE),
        ROW("G\xc3\xa9T / HTTP/1.1\r\n" H "\r\n", NO_SPACE),
        ROW("GET: / HTTP/1.1\r\n" H "\r\n", NO_SPACE),
        ROW("GET / HTTP/1.1\n" H "\r\n", NO_CR),
        ROW("GET / HTTP/1.1\r" H "\r\n", SPACES),
        ROW("GET / HTTP/1.1\r\r\n" H "\r\n", NO_VERSION),
        ROW("GET /\0 HTTP/1.1\r\n" H "\r\n", NO_BYTE),
        ROW("GET /\x7f HTTP/1.1\r\n" H "\r\n", NO_BYTE),
        ROW("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", NO_BYTE),
        ROW("GET /a#b HTTP/1.1\r\n" H "\r\n", NO_BYTE),
        ROW("GET a HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("GET ?a HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("GET * HTTP/1.1\r\n" H "\r\n",
            BAD("the target * is for OPTIONS alone")),
        ROW("OPTIONS ** HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("OPTIONS *?a HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("CONNECT h:80 HTTP/1.1\r\n" H "\r\n", NO_CONNECT),
        ROW("CONNECT / HTTP/1.1\r\n" H "\r\n", NO_CONNECT),
        ROW("ABCDEFGHIJKLMNOPQRSTUVWXYZ01234 / HTTP/1.1\r\n" H "\r\n",
            LONG_URI),
        ROW("GET / http/1.1\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/1.1x\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/11\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/1\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/01.1\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/a.b\r\n" H "\r\n", NO_VERSION),
        ROW("GET / XTTP/1.1\r\n" H "\r\n", NO_VERSION),
        ROW("GET / HTTP/0.9\r\n" H "\r\n", OTHER_VERSION),
        ROW("GET / HTTP/1.2\r\n" H "\r\n", OTHER_VERSION),
        ROW("GET / HTTP/2.0\r\n" H "\r\n", OTHER_VERSION),
        ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", OTHER_VERSION),
    };

    CHECK_ROWS(rows);
}

TEST(hosts_are_judged)
{
    static const struct row rows[] = {
        ROW("GET / HTTP/1.1\r\n\r\n", NO_HOST),
        ROW("GET / HTTP/1.1\r\nHost:\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", TWO_HOSTS),
        ROW("GET / HTTP/1.0\r\nHost: h\r\nhost: i\r\n\r\n", TWO_HOSTS),
        ROW("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: a.b-c_d~:80\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: h:65535\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h:099999\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h:\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h:8x\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h:80:80\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h%41\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h, i\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: h\xc3\xa9\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::ffff:1.2.3.4]\r\n\r\n",
            "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: []\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [abcd]\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", BAD_HOST),
        ROW("GET / HTTP/1.1\r\nHost: [::1%25a]\r\n\r\n", BAD_HOST),
        ROW("GET http://h/a HTTP/1.1\r\n" H "\r\n", "GET /a [] keep; "),
        ROW("GET HTTP://H/a?b HTTP/1.1\r\n" H "\r\n", "GET /a?b [] keep; "),
        ROW("GET http://h HTTP/1.1\r\n" H "\r\n", "GET / [] keep; "),
        ROW("GET http://h?b HTTP/1.1\r\n" H "\r\n", "GET /?b [] keep; "),
        ROW("GET http://h/a HTTP/1.0\r\n\r\n", "GET /a [] close 1.0; "),
        ROW("GET http://u@h/a HTTP/1.0\r\n\r\n",
            BAD("the target does not name a valid host")),
        ROW("GET http://i/a HTTP/1.1\r\n" H "\r\n", OTHER_HOST),
        ROW("GET http://h/a HTTP/1.1\r\n\r\n", NO_HOST),
        ROW("GET http://h:80/a HTTP/1.1\r\n" H "\r\n", OTHER_HOST),
        ROW("GET http:///a HTTP/1.1\r\n" H "\r\n",
            BAD("the target names no host")),
        ROW("GET https://h/a HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("GET ftp://h/a HTTP/1.1\r\n" H "\r\n", NO_TARGET),
        ROW("GET h:80 HTTP/1.1\r\n" H "\r\n", NO_TARGET),
    };

    CHECK_ROWS(rows);
}

TEST(bad_header_lines_are_refused)
{
    static const struct row rows[] = {
        ROW("GET / HTTP/1.1\r\n" H "a b: c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a : c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a\t: c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H ": c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "(a): c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a\xc3\xa9: c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a\0: c\r\n\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "a: c\r\n d\r\n\r\n", FOLDED),
        ROW("GET / HTTP/1.1\r\n" H "a: c\r\n\td\r\n\r\n", FOLDED),
        ROW("GET / HTTP/1.1\r\n a: c\r\n" H "\r\n", FOLDED),
        ROW("GET / HTTP/1.1\r\n" H " \r\n\r\n", FOLDED),
        ROW("GET / HTTP/1.1\r\n" H "a: b\0c\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x01\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x7f\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x0b\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\rc\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\r\r\n\r\n", CONTROL),
        ROW("GET / HTTP/1.1\r\n" H "a: b\n\r\n", NO_CR),
        ROW("GET / HTTP/1.1\r\n" H "\n", NO_CR),
        ROW("GET / HTTP/1.1\r\n" H "\r\r\n", NO_HEADER),
        ROW("GET / HTTP/1.1\r\n" H "\rx\n", NO_CR),
        ROW("GET / HTTP/1.1\n\n", NO_CR),
    };

    CHECK_ROWS(rows);
}

TEST(the_request_line_has_a_limit)
{
    /* "GET /" and " HTTP/1.1" are 14 of 40. */
    CHECK(with_n("GET /", 'a', 26, " HTTP/1.1\r\n" H "\r\n",
                 "GET /aaaaaaaaaaaaaaaaaaaaaaaaaa [] keep; "));
    CHECK(with_n("GET /", 'a', 27, " HTTP/1.1\r\n" H "\r\n", LONG_URI));
    CHECK(with_n("\r\nGET /", 'a', 26, " HTTP/1.1\r\n" H "\r\n",
                 "GET /aaaaaaaaaaaaaaaaaaaaaaaaaa [] keep; "));
    CHECK(with_n("\r\nGET /", 'a', 27, " HTTP/1.1\r\n", LONG_URI));
    CHECK(with_n("GET /", 'a', 36, "", "..."));
    CHECK(with_n("GET /", 'a', 37, "", LONG_URI));
    CHECK(with_n("GET /", 'a', 5000, "", LONG_URI));
    CHECK(with_n("", 'A', 28, " / HTTP/1.1\r\n" H "\r\n",
                 "AAAAAAAAAAAAAAAAAAAAAAAAAAAA / [] keep; "));
}

TEST(a_method_has_a_limit)
{
    struct http_limits wide = limits;
    struct http_parse p = {.phase = HTTP_HEAD};
    struct http_header slots[5];
    struct http_request rq;
    char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1\r\n" H "\r\n";
    char over[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1\r\n" H "\r\n";
    size_t n = sizeof(ok) - 1;

    wide.max_request_line_bytes = 100;
    CHECK(http_parse(&p, &wide, ok, &n, slots, &rq) == HTTP_DONE);
    CHECK(rq.method.n == 32);
    p = (struct http_parse){.phase = HTTP_HEAD};
    n = sizeof(over) - 1;
    CHECK(http_parse(&p, &wide, over, &n, slots, &rq) == HTTP_BAD);
    CHECK(p.bad == ERR_NOT_IMPLEMENTED);
    CHECK(strcmp(p.what, "a method of more than 32 bytes") == 0);
    CHECK(http_parse(&p, &wide, over, &n, slots, &rq) == HTTP_BAD);
}

TEST(headers_have_a_limit_in_bytes)
{
    /* "Host: h\r\n" is 9 of 100, "a:" and CRLF 4. */
    static const char *got =
        "GET / [] {a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        "} keep; ";

    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 87, "\r\n\r\n", got));
    CHECK(
        with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 88, "\r\n\r\n", LONG_HEADERS));
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 87, "\r\nc:\r\n\r\n",
                 LONG_HEADERS));
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 88, "", "..."));
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 89, "", LONG_HEADERS));
    CHECK(with_n("GET / HTTP/1.1\r\n", 'a', 5000, "", LONG_HEADERS));
}

TEST(headers_have_a_limit_in_number)
{
    CHECK(comes_out("GET / HTTP/1.1\r\n" H "a:\r\nb:\r\nc:\r\nd:\r\n\r\n", 43,
                    "GET / [] {a=} {b=} {c=} {d=} keep; "));
    CHECK(comes_out(
        "GET / HTTP/1.1\r\n" H "a:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n", 47,
        "headers_too_large: they are more than http.maxHeaders (5)"));
}

/* What came before it takes no memory while nothing follows. */
TEST(an_empty_line_alone_leaves_nothing_to_keep)
{
    struct http_parse p = {.phase = HTTP_HEAD};
    struct http_header slots[5];
    struct http_request rq;
    char text[64];
    size_t n = 1;

    memcpy(text, "\r", 1);
    CHECK(http_parse(&p, &limits, text, &n, slots, &rq) == HTTP_MORE);
    CHECK(n == 0);
    memcpy(text, "\n", n = 1);
    CHECK(http_parse(&p, &limits, text, &n, slots, &rq) == HTTP_MORE);
    CHECK(n == 0);
    memcpy(text, "\r", n = 1); /* one may come, not two */
    CHECK(http_parse(&p, &limits, text, &n, slots, &rq) == HTTP_BAD);
}
