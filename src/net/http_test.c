/* The parser alone. Every case is read whole, byte by byte and in every way to
 * cut it in two, from memory that moves each time and ends where the bytes
 * end; all must come out the same. */
#include "net/http.h"

#include "test/t.h"

static const struct http_limits limits = {
    .max_request_line_bytes = 40,
    .max_header_bytes = 100,
    .max_headers = 5,
    .max_body_bytes = 20,
};

struct reader {
    struct http_parse parse;
    struct http_header slots[5];
    char *bytes;
    size_t n;
    bool is_bad;
    char out[512]; /* what came of it, in words */
};

static void add(struct reader *r, const char *text)
{
    size_t at = strlen(r->out);

    snprintf(r->out + at, sizeof(r->out) - at, "%s", text);
}

/* "GET /a?b [body] {name=value} keep; " */
static void add_request(struct reader *r, const struct http_request *rq)
{
    char text[400];
    int n =
        snprintf(text, sizeof(text), "%.*s %.*s%s%.*s [%.*s]",
                 STR_ARG(rq->method), STR_ARG(rq->path), rq->query.n ? "?" : "",
                 STR_ARG(rq->query), STR_ARG(rq->body));

    for (size_t i = 0; i < rq->n_headers; i++)
        if (!str_eq_nocase(rq->headers[i].name, STR("host")))
            n += snprintf(text + n, sizeof(text) - (size_t)n, " {%.*s=%.*s}",
                          STR_ARG(rq->headers[i].name),
                          STR_ARG(rq->headers[i].value));
    snprintf(text + n, sizeof(text) - (size_t)n, " %s%s%s; ",
             r->parse.keeps_alive ? "keep" : "close",
             r->parse.is_http_10 ? " 1.0" : "",
             r->parse.expects_continue ? " 100" : "");
    add(r, text);
}

static void feed(struct reader *r, const char *p, size_t n)
{
    char *moved = malloc(r->n + n ? r->n + n : 1);

    if (r->n)
        memcpy(moved, r->bytes, r->n);
    if (n)
        memcpy(moved + r->n, p, n);
    free(r->bytes);
    r->bytes = moved;
    r->n += n;
    while (r->n && !r->is_bad) {
        struct http_request rq;
        enum http_step step =
            http_parse(&r->parse, &limits, r->bytes, &r->n, r->slots, &rq);
        size_t used = r->parse.head_bytes + r->parse.body_bytes;

        CHECK(r->parse.body_bytes <= limits.max_body_bytes);
        if (step == HTTP_MORE)
            break;
        r->is_bad = step == HTTP_BAD;
        if (r->is_bad) {
            add(r, err_row(r->parse.bad)->code);
            break;
        }
        add_request(r, &rq);
        r->n -= used;
        memmove(r->bytes, r->bytes + used, r->n);
        r->parse = (struct http_parse){.phase = HTTP_HEAD};
    }
}

static void end(struct reader *r)
{
    if (!r->is_bad && (r->n || r->parse.n_blank || r->parse.phase != HTTP_HEAD))
        add(r, "...");
    free(r->bytes);
    r->bytes = NULL;
}

static void read_in_two(const char *p, size_t n, size_t cut, struct reader *r)
{
    *r = (struct reader){.n = 0};
    feed(r, p, cut);
    feed(r, p + cut, n - cut);
    end(r);
}

static void read_by_byte(const char *p, size_t n, struct reader *r)
{
    *r = (struct reader){.n = 0};
    for (size_t i = 0; i < n; i++)
        feed(r, p + i, 1);
    end(r);
}

static bool comes_out(const char *p, size_t n, const char *as)
{
    struct reader r;

    read_by_byte(p, n, &r);
    if (strcmp(r.out, as) != 0) {
        fprintf(stderr, "by byte: %s\nwanted:  %s\nfrom: %s\n", r.out, as, p);
        return false;
    }
    for (size_t cut = 0; cut <= n; cut++) {
        read_in_two(p, n, cut, &r);
        if (strcmp(r.out, as) != 0) {
            fprintf(stderr, "cut at %zu: %s\nwanted: %s\nfrom: %s\n", cut,
                    r.out, as, p);
            return false;
        }
    }
    return true;
}

struct row {
    const char *in;
    size_t n;
    const char *as;
};

#define ROW(in, as)            \
    {                          \
        in, sizeof(in) - 1, as \
    }
#define H   "Host: h\r\n"
#define BAD "bad_request"

static void check_rows(const struct row *rows, size_t n)
{
    int n_wrong = 0;

    for (size_t i = 0; i < n; i++)
        n_wrong += !comes_out(rows[i].in, rows[i].n, rows[i].as);
    CHECK(n_wrong == 0);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

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
        ROW("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("\nGET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("\rGET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW(" GET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("\tGET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("\0GET / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BAD),
        ROW("\x80", BAD),
        ROW("GET  / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET /  HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/1.1 \r\n" H "\r\n", BAD),
        ROW("GET\t/\tHTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET / a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET /\r\n", BAD),
        ROW("GET\r\n", BAD),
        ROW("GET HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("G(T / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("G\xc3\xa9T / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET: / HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/1.1\n" H "\r\n", BAD),
        ROW("GET / HTTP/1.1\r" H "\r\n", BAD),
        ROW("GET / HTTP/1.1\r\r\n" H "\r\n", BAD),
        ROW("GET /\0 HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET /\x7f HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET /a#b HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET ?a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET * HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("OPTIONS ** HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("OPTIONS *?a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("CONNECT h:80 HTTP/1.1\r\n" H "\r\n", "not_implemented"),
        ROW("CONNECT / HTTP/1.1\r\n" H "\r\n", "not_implemented"),
        ROW("ABCDEFGHIJKLMNOPQRSTUVWXYZ01234 / HTTP/1.1\r\n" H "\r\n",
            "uri_too_long"),
        ROW("GET / http/1.1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/1.1x\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/11\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/01.1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/a.b\r\n" H "\r\n", BAD),
        ROW("GET / XTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/0.9\r\n" H "\r\n", "http_version"),
        ROW("GET / HTTP/1.2\r\n" H "\r\n", "http_version"),
        ROW("GET / HTTP/2.0\r\n" H "\r\n", "http_version"),
        ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http_version"),
    };

    CHECK_ROWS(rows);
}

TEST(hosts_are_judged)
{
    static const struct row rows[] = {
        ROW("GET / HTTP/1.1\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost:\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", BAD),
        ROW("GET / HTTP/1.0\r\nHost: h\r\nhost: i\r\n\r\n", BAD),
        ROW("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: a.b-c_d~:80\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: h:65535\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h:099999\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h:\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h:8x\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h:80:80\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h%41\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h, i\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: h\xc3\xa9\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::ffff:1.2.3.4]\r\n\r\n",
            "GET / [] keep; "),
        ROW("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: []\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [abcd]\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\nHost: [::1%25a]\r\n\r\n", BAD),
        ROW("GET http://h/a HTTP/1.1\r\n" H "\r\n", "GET /a [] keep; "),
        ROW("GET HTTP://H/a?b HTTP/1.1\r\n" H "\r\n", "GET /a?b [] keep; "),
        ROW("GET http://h HTTP/1.1\r\n" H "\r\n", "GET / [] keep; "),
        ROW("GET http://h?b HTTP/1.1\r\n" H "\r\n", "GET /?b [] keep; "),
        ROW("GET http://h/a HTTP/1.0\r\n\r\n", "GET /a [] close 1.0; "),
        ROW("GET http://u@h/a HTTP/1.0\r\n\r\n", BAD),
        ROW("GET http://i/a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET http://h/a HTTP/1.1\r\n\r\n", BAD),
        ROW("GET http://h:80/a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET http:///a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET https://h/a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET ftp://h/a HTTP/1.1\r\n" H "\r\n", BAD),
        ROW("GET h:80 HTTP/1.1\r\n" H "\r\n", BAD),
    };

    CHECK_ROWS(rows);
}

TEST(bad_header_lines_are_refused)
{
    static const struct row rows[] = {
        ROW("GET / HTTP/1.1\r\n" H "a b: c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a : c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a\t: c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H ": c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "(a): c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a\xc3\xa9: c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a\0: c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: c\r\n d\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: c\r\n\td\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n a: c\r\n" H "\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H " \r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\0c\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x01\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x7f\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\x0b\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\rc\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\r\r\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "a: b\n\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "\r\r\n", BAD),
        ROW("GET / HTTP/1.1\r\n" H "\rx\n", BAD),
        ROW("GET / HTTP/1.1\n\n", BAD),
    };

    CHECK_ROWS(rows);
}

#define POST "POST / HTTP/1.1\r\n" H

TEST(lengths_are_judged)
{
    static const struct row rows[] = {
        ROW(POST "\r\n", "POST / [] keep; "),
        ROW(POST "Content-Length: 0\r\n\r\n",
            "POST / [] {Content-Length=0} keep; "),
        ROW(POST "Content-Length: 2\r\n\r\nab",
            "POST / [ab] {Content-Length=2} keep; "),
        ROW(POST "Content-Length: 002\r\n\r\nab",
            "POST / [ab] {Content-Length=002} keep; "),
        ROW("GET / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
            "GET / [ab] {Content-Length=2} close 1.0; "),
        ROW("POST / HTTP/1.0\r\n\r\n", "POST / [] close 1.0; "),
        ROW(POST "Content-Length: 3\r\n\r\nab", "..."),
        ROW(POST "Content-Length: 2\r\n\r\nabG",
            "POST / [ab] {Content-Length=2} keep; ..."),
        ROW(POST "content-length: 2\r\n\r\nab" POST "\r\n",
            "POST / [ab] {content-length=2} keep; POST / [] keep; "),
        ROW(POST "Content-Length:\r\n\r\n", BAD),
        ROW(POST "Content-Length: -1\r\n\r\n", BAD),
        ROW(POST "Content-Length: +1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 0x1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1a\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1 1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1,1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1, 1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1.0\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1;\r\n\r\na", BAD),
        ROW(POST "Content-Length: \"1\"\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1\r\ncontent-length: 2\r\n\r\na", BAD),
        ROW(POST "Content-Length: 18446744073709551616\r\n\r\n", BAD),
        ROW(POST "Content-Length: 9223372036854775808\r\n\r\n", BAD),
        ROW(POST "Content-Length: 999999999999999999\r\n\r\n", "too_large"),
        ROW(POST "Content-Length : 1\r\n\r\na", BAD),
        ROW(POST "Content-Length:\t1\r\n\r\na", BAD),
        ROW(POST "Content-Length: 1 \t\r\n\r\na", BAD),
        ROW(POST "Content-Length:  1  \r\n\r\na",
            "POST / [a] {Content-Length=1} keep; "),
        ROW(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n", BAD),
    };

    CHECK_ROWS(rows);
}

#define CHUNKED  POST "Transfer-Encoding: chunked\r\n\r\n"
#define IS(body) "POST / [" body "] {Transfer-Encoding=chunked} keep; "

TEST(codings_are_judged)
{
    static const struct row rows[] = {
        ROW(CHUNKED "0\r\n\r\n", IS("")),
        ROW(POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
            "POST / [] {Transfer-Encoding=Chunked} keep; "),
        ROW(POST "Transfer-Encoding: gzip\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: identity\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: chunked, chunked\r\n\r\n",
            "not_implemented"),
        ROW(POST "Transfer-Encoding: chunked,\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: chunked;q=1\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: xchunked\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding:\r\n\r\n", "not_implemented"),
        ROW(POST "Transfer-Encoding: \x0b"
                 "chunked\r\n\r\n",
            BAD),
        ROW(POST "Transfer-Encoding: chunked\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            BAD),
        ROW(POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            BAD),
        ROW(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            BAD),
        ROW("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", BAD),
        ROW(POST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na",
            "POST / [a] {Expect=100-continue} {Content-Length=1} keep 100; "),
        ROW(POST "Expect: 100-Continue\r\n\r\n",
            "POST / [] {Expect=100-Continue} keep 100; "),
        ROW("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
            "POST / [] {Expect=100-continue} close 1.0; "),
        ROW(POST "Expect: 200-ok\r\n\r\n", "expectation_failed"),
        ROW(POST "Expect:\r\n\r\n", "expectation_failed"),
        ROW(POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", BAD),
        ROW(POST "Expect: 100-continue\r\nContent-Length: 21\r\n\r\n",
            "too_large"),
    };

    CHECK_ROWS(rows);
}

TEST(chunks_are_judged)
{
    static const struct row rows[] = {
        ROW(CHUNKED "2\r\nab\r\n0\r\n\r\n", IS("ab")),
        ROW(CHUNKED "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", IS("abcde")),
        ROW(CHUNKED "a\r\n0123456789\r\n0\r\n\r\n", IS("0123456789")),
        ROW(CHUNKED "A\r\n0123456789\r\n00\r\n\r\n", IS("0123456789")),
        ROW(CHUNKED "0000000000000001\r\na\r\n0\r\n\r\n", IS("a")),
        ROW(CHUNKED "2\r\n\r\n\r\n0\r\n\r\n", IS("\r\n")),
        ROW(CHUNKED "2\r\nab\r\n0\r\n\r\n" CHUNKED "1\r\nc\r\n0\r\n\r\n",
            IS("ab") IS("c")),
        ROW(CHUNKED "1\r\na\r\n0\r\n\r\n"
                    "GET / HTTP/1.1\r\n" H "\r\n",
            IS("a") "GET / [] keep; "),
        ROW(CHUNKED "1;a=b;c=\"d e\"\r\nx\r\n0;e\r\n\r\n", IS("x")),
        ROW(CHUNKED "1;a;b=c;d=\"\"\r\nx\r\n0;e=\"\\\"\\\\\"\r\n\r\n", IS("x")),
        ROW(CHUNKED "1;\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;;a\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1; a\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a=\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a =b\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a=\"b\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a=\"b\\\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a=\"b\"c\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a=\"\x01\"\r\nx\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n", IS("a")),
        ROW(CHUNKED "1\r\na\r\n0\r\n\r\n\r\n", IS("a") "..."),
        ROW(CHUNKED "1\r\na\r\n0\r\n", "..."),
        ROW(CHUNKED "1\r\na\r\n0\r\n\r", "..."),
        ROW(CHUNKED "1\r\na\r\n", "..."),
        ROW(CHUNKED "5\r\nab", "..."),
        ROW(CHUNKED "\r\n", BAD),
        ROW(CHUNKED "-1\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "+1\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "0x1\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED " 1\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1 \r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1 ;a\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\t\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1g\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "g\r\n", BAD),
        ROW(CHUNKED "1,1\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\na\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\na0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\nab\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\na\r0\r\n\r\n", BAD),
        ROW(CHUNKED "1\r\na\r\n0\n\n", BAD),
        ROW(CHUNKED "1\r\na\r\n0\r\n\n", BAD),
        ROW(CHUNKED "1;\x01\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;\0\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "1;a\rb\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "00000000000000001\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "10000000000000001\r\na\r\n0\r\n\r\n", BAD),
        ROW(CHUNKED "ffffffffffffffff\r\na\r\n", "too_large"),
        ROW(CHUNKED "7fffffffffffffff\r\na\r\n", "too_large"),
        ROW(CHUNKED "1\r\na\r\nffffffffffffffff\r\n", "too_large"),
        ROW(CHUNKED "0\r\nConnection: x\r\n\r\n", IS("")),
        ROW(CHUNKED "0\r\nContent-Length: 0\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\ntransfer-encoding: chunked\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nHost: h\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nExpect: 100-continue\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nConnection: close\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nX y: z\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\n X: z\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nX: z\n\r\n", BAD),
        ROW(CHUNKED "0\r\nX: \0\r\n\r\n", BAD),
        ROW(CHUNKED "0\r\nX\r\n\r\n", BAD),
    };

    CHECK_ROWS(rows);
}

/* One text made of a head, n times a byte, and a tail. */
static bool with_n(const char *head, char c, size_t n, const char *tail,
                   const char *as)
{
    size_t n_head = strlen(head), n_tail = strlen(tail);
    char *text = malloc(n_head + n + n_tail + 1);
    bool is_so;

    memcpy(text, head, n_head);
    memset(text + n_head, c, n);
    memcpy(text + n_head + n, tail, n_tail + 1);
    is_so = comes_out(text, n_head + n + n_tail, as);
    free(text);
    return is_so;
}

TEST(the_request_line_has_a_limit)
{
    /* "GET /" and " HTTP/1.1" are 14 of 40. */
    CHECK(with_n("GET /", 'a', 26, " HTTP/1.1\r\n" H "\r\n",
                 "GET /aaaaaaaaaaaaaaaaaaaaaaaaaa [] keep; "));
    CHECK(with_n("GET /", 'a', 27, " HTTP/1.1\r\n" H "\r\n", "uri_too_long"));
    CHECK(with_n("\r\nGET /", 'a', 26, " HTTP/1.1\r\n" H "\r\n",
                 "GET /aaaaaaaaaaaaaaaaaaaaaaaaaa [] keep; "));
    CHECK(with_n("\r\nGET /", 'a', 27, " HTTP/1.1\r\n", "uri_too_long"));
    CHECK(with_n("GET /", 'a', 36, "", "..."));
    CHECK(with_n("GET /", 'a', 37, "", "uri_too_long"));
    CHECK(with_n("GET /", 'a', 5000, "", "uri_too_long"));
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
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 88, "\r\n\r\n",
                 "headers_too_large"));
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 87, "\r\nc:\r\n\r\n",
                 "headers_too_large"));
    CHECK(with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 88, "", "..."));
    CHECK(
        with_n("GET / HTTP/1.1\r\n" H "a:", 'b', 89, "", "headers_too_large"));
    CHECK(with_n("GET / HTTP/1.1\r\n", 'a', 5000, "", "headers_too_large"));
}

TEST(headers_have_a_limit_in_number)
{
    CHECK(comes_out("GET / HTTP/1.1\r\n" H "a:\r\nb:\r\nc:\r\nd:\r\n\r\n", 43,
                    "GET / [] {a=} {b=} {c=} {d=} keep; "));
    CHECK(comes_out("GET / HTTP/1.1\r\n" H "a:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n",
                    47, "headers_too_large"));
}

TEST(a_body_has_a_limit)
{
    CHECK(with_n(POST "Content-Length: 20\r\n\r\n", 'x', 20, "",
                 "POST / [xxxxxxxxxxxxxxxxxxxx] {Content-Length=20} keep; "));
    CHECK(with_n(POST "Content-Length: 21\r\n\r\n", 'x', 21, "", "too_large"));
    CHECK(with_n(CHUNKED "14\r\n", 'x', 20, "\r\n0\r\n\r\n",
                 IS("xxxxxxxxxxxxxxxxxxxx")));
    CHECK(with_n(CHUNKED "15\r\n", 'x', 21, "\r\n0\r\n\r\n", "too_large"));
    CHECK(with_n(CHUNKED "f\r\nyyyyyyyyyyyyyyy\r\n5\r\n", 'x', 5,
                 "\r\n0\r\n\r\n", IS("yyyyyyyyyyyyyyyxxxxx")));
    CHECK(with_n(CHUNKED "f\r\nyyyyyyyyyyyyyyy\r\n6\r\n", 'x', 6,
                 "\r\n0\r\n\r\n", "too_large"));
}

TEST(chunk_lines_and_trailers_have_limits)
{
    CHECK(with_n(CHUNKED "1;", 'e', 252, "\r\na\r\n0\r\n\r\n", IS("a")));
    CHECK(with_n(CHUNKED "1;", 'e', 253, "\r\na\r\n0\r\n\r\n", BAD));
    CHECK(with_n(CHUNKED "1;", 'e', 253, "", "..."));
    CHECK(with_n(CHUNKED "1;", 'e', 254, "", BAD));
    CHECK(with_n(CHUNKED "0\r\na:", 'b', 96, "\r\n\r\n", IS("")));
    CHECK(with_n(CHUNKED "0\r\na:", 'b', 97, "\r\n\r\n", "headers_too_large"));
    CHECK(with_n(CHUNKED "0\r\nc:\r\na:", 'b', 93, "\r\n\r\n",
                 "headers_too_large"));
    CHECK(with_n(CHUNKED "0\r\na:\r\nb:\r\nc:\r\nd:\r\n", 'e', 1, ":\r\n\r\n",
                 IS("")));
    CHECK(with_n(CHUNKED "0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\n", 'f', 1,
                 ":\r\n\r\n", "headers_too_large"));
}

TEST(all_extensions_of_a_body_have_a_limit)
{
    /* 20 chunks of one byte may carry 252 each; 4096 are all. */
    for (int last = 16; last <= 17; last++) {
        struct reader r = {.n = 0};
        char ext[252];

        memset(ext, 'e', sizeof(ext));
        feed(&r, CHUNKED, sizeof(CHUNKED) - 1);
        for (int i = 0; i < 16; i++) {
            feed(&r, "1;", 2);
            feed(&r, ext, sizeof(ext));
            feed(&r, "\r\nx\r\n", 5);
        }
        /* 16 * 253 = 4048 so far. */
        feed(&r, "1;", 2);
        feed(&r, ext, last == 16 ? 47 : 48);
        feed(&r, "\r\nx\r\n0\r\n\r\n", 10);
        end(&r);
        CHECK(strcmp(r.out, last == 16 ? IS("xxxxxxxxxxxxxxxxx") : BAD) == 0);
    }
}

/* Limits may fall while a request is on its way; its head was accepted. */
TEST(an_accepted_head_stays_accepted)
{
    char text[] =
        "POST / HTTP/1.1\r\n" H "a: b\r\nContent-Length: 4\r\n\r\nwxyz";
    struct http_limits none = {.max_body_bytes = 0};
    struct http_parse p = {.phase = HTTP_HEAD};
    struct http_header slots[5];
    struct http_request rq;
    size_t n = sizeof(text) - 3;

    CHECK(http_parse(&p, &limits, text, &n, slots, &rq) == HTTP_MORE);
    n = sizeof(text) - 1;
    CHECK(http_parse(&p, &none, text, &n, slots, &rq) == HTTP_DONE);
    CHECK(rq.n_headers == 3 && str_eq(rq.body, STR("wxyz")));
    CHECK(str_eq(http_header(&rq, STR("A")), STR("b")));
    CHECK(http_header(&rq, STR("c")).n == 0);
}

TEST(a_body_that_outgrew_a_lowered_limit_is_refused)
{
    static const char first[] = CHUNKED "a\r\n0123456789\r\n";
    struct http_limits low = limits;
    struct http_parse p = {.phase = HTTP_HEAD};
    struct http_header slots[5];
    struct http_request rq;
    char text[256];
    size_t n = sizeof(first) - 1;

    memcpy(text, first, n);
    CHECK(http_parse(&p, &limits, text, &n, slots, &rq) == HTTP_MORE);
    CHECK(p.body_bytes == 10);
    low.max_body_bytes = 9;
    memcpy(text + n, "1\r\nx\r\n", 6);
    n += 6;
    CHECK(http_parse(&p, &low, text, &n, slots, &rq) == HTTP_BAD);
    CHECK(p.bad == ERR_LIMIT);
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

/* Replies. */

static bool head_is(const struct http_reply *r, struct http_framing f,
                    size_t n_left_out, const char *text)
{
    struct buf out;
    bool is_so;

    buf_init(&out, 4096);
    f.date = STR("D");
    is_so = http_write_head(&out, r, &f) == n_left_out &&
            str_eq(buf_str(&out), str_of(text));
    if (!is_so)
        fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&out)));
    buf_fini(&out);
    return is_so;
}

TEST(heads_say_how_the_body_comes)
{
    struct http_reply r = {.status = 200, .body = STR("abc")};
    struct http_framing f = {.how = HTTP_LENGTH,
                             .connection = STR("Connection: close\r\n")};

    CHECK(head_is(&r, f, 0,
                  "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Length: 3\r\n"
                  "Connection: close\r\n\r\n"));
    f.how = HTTP_CHUNKED;
    f.connection = STR("");
    CHECK(head_is(&r, f, 0,
                  "HTTP/1.1 200 OK\r\nDate: D\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"));
    f.how = HTTP_UNTIL_CLOSE;
    CHECK(head_is(&r, f, 0, "HTTP/1.1 200 OK\r\nDate: D\r\n\r\n"));
    f.how = HTTP_LENGTH;
    r.status = 204;
    CHECK(head_is(&r, f, 0, "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n"));
    r.status = 304;
    CHECK(head_is(&r, f, 0, "HTTP/1.1 304 Not Modified\r\nDate: D\r\n\r\n"));
    r.status = 299;
    CHECK(head_is(&r, f, 0,
                  "HTTP/1.1 299 Unknown\r\nDate: D\r\nContent-Length: 3\r\n"
                  "\r\n"));
}

TEST(headers_that_would_break_the_head_are_left_out)
{
    const struct http_header hs[] = {
        {STR("X-Ok"), STR("a\tb \xc3\xa9")},
        {STR("X-Cr"), STR("a\rb")},
        {STR("X-Lf"), STR("a\r\nSet-Cookie: x")},
        {STR("X-Nul"), STR("a\0b")},
        {STR("X-Del"), STR("a\x7f")},
        {STR("X Space"), STR("a")},
        {STR("X:Colon"), STR("a")},
        {STR("X\r\nY"), STR("a")},
        {STR(""), STR("a")},
        {STR("content-length"), STR("5")},
        {STR("Transfer-Encoding"), STR("chunked")},
        {STR("Connection"), STR("close")},
        {STR("Keep-Alive"), STR("x")},
        {STR("DATE"), STR("now")},
        {STR("X-Empty"), STR("")},
    };
    struct http_reply r = {.status = 204, .headers = hs, .n_headers = 15};
    struct http_framing f = {.how = HTTP_LENGTH};

    CHECK(head_is(&r, f, 13,
                  "HTTP/1.1 204 No Content\r\nDate: D\r\n"
                  "X-Ok: a\tb \xc3\xa9\r\nX-Empty: \r\n\r\n"));
    r.n_headers = 0;
    r.content_type = STR("text/plain\r\nX: y");
    CHECK(head_is(&r, f, 1, "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n"));
}

TEST(every_error_has_a_status_that_can_be_said)
{
    for (int e = 1; e < N_ERR; e++) {
        struct http_reply r = {.status = err_row((enum err)e)->http_status};
        struct http_framing f = {.how = HTTP_LENGTH};
        struct buf out;

        buf_init(&out, 4096);
        CHECK(http_write_head(&out, &r, &f) == 0);
        buf_add(&out, "", 1);
        CHECK(strstr(out.p, "Unknown") == NULL);
        buf_fini(&out);
    }
}

static bool date_is(int64_t unix_s, const char *text)
{
    char out[HTTP_DATE_BYTES];

    http_date(unix_s, out);
    return strcmp(out, text) == 0;
}

TEST(dates_are_right)
{
    CHECK(date_is(0, "Thu, 01 Jan 1970 00:00:00 GMT"));
    CHECK(date_is(-5, "Thu, 01 Jan 1970 00:00:00 GMT"));
    CHECK(date_is(784111777, "Sun, 06 Nov 1994 08:49:37 GMT"));
    CHECK(date_is(951782400, "Tue, 29 Feb 2000 00:00:00 GMT"));
    CHECK(date_is(951868799, "Tue, 29 Feb 2000 23:59:59 GMT"));
    CHECK(date_is(951868800, "Wed, 01 Mar 2000 00:00:00 GMT"));
    CHECK(date_is(1735689599, "Tue, 31 Dec 2024 23:59:59 GMT"));
    CHECK(date_is(1735689600, "Wed, 01 Jan 2025 00:00:00 GMT"));
    CHECK(date_is(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"));
    CHECK(date_is(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"));
}
