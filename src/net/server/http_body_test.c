/* The parser alone: how long a body is and how it comes. */
#include "test/lib/http_reader.h"

/* Words that many rows share. */
#define NO_NUMBER   BAD("Content-Length is not one number")
#define TAB         BAD("a tab beside the length or the coding")
#define TWO_LENGTHS BAD("there are two Content-Length headers")
#define TOO_LARGE   "too_large: the body is larger than http.maxBodyBytes (20)"
#define NO_CODING   "not_implemented: a Transfer-Encoding other than chunked"
#define NO_EXPECT   "expectation_failed: the Expect header says another"
#define NO_HEX      BAD("a chunk size is not hexadecimal")
#define NO_EXT      BAD("a chunk has a broken extension")
#define NO_CR       BAD("a line ends without CR")
#define NO_END      BAD("a chunk is not followed by CRLF")
#define NO_TRAILER  BAD("a trailer that belongs into the headers")
#define NO_HEADER   BAD("a header line is not a name, a colon and a value")
#define LONG_LINE   BAD("the line of a chunk is over 256 bytes")
#define LONG_TRAILERS                                                      \
    "headers_too_large: the trailers are larger than http.maxHeaderBytes " \
    "(100)"

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
        ROW(POST "Content-Length:\r\n\r\n", BAD("Content-Length is empty")),
        ROW(POST "Content-Length: -1\r\n\r\n", NO_NUMBER),
        ROW(POST "Content-Length: +1\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 0x1\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1a\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1234567890123456789a\r\n\r\n", NO_NUMBER),
        ROW(POST "Content-Length: 1 1\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1,1\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1, 1\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1.0\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1;\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: \"1\"\r\n\r\na", NO_NUMBER),
        ROW(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
            TWO_LENGTHS),
        ROW(POST "Content-Length: 1\r\ncontent-length: 2\r\n\r\na",
            TWO_LENGTHS),
        ROW(POST "Content-Length: 18446744073709551616\r\n\r\n",
            BAD("Content-Length has more than 18 digits")),
        ROW(POST "Content-Length: 9223372036854775808\r\n\r\n",
            BAD("Content-Length has more than 18 digits")),
        ROW(POST "Content-Length: 999999999999999999\r\n\r\n", TOO_LARGE),
        ROW(POST "Content-Length : 1\r\n\r\na", NO_HEADER),
        ROW(POST "Content-Length:\t1\r\n\r\na", TAB),
        ROW(POST "Content-Length: 1 \t\r\n\r\na", TAB),
        ROW(POST "Content-Length:  1  \r\n\r\na",
            "POST / [a] {Content-Length=1} keep; "),
        ROW(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n", TAB),
    };

    CHECK_ROWS(rows);
}

TEST(codings_are_judged)
{
    static const struct row rows[] = {
        ROW(CHUNKED "0\r\n\r\n", IS("")),
        ROW(POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
            "POST / [] {Transfer-Encoding=Chunked} keep; "),
        ROW(POST "Transfer-Encoding: gzip\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: identity\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: chunked, chunked\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: chunked,\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: chunked;q=1\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: xchunked\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding:\r\n\r\n", NO_CODING),
        ROW(POST "Transfer-Encoding: \x0b"
                 "chunked\r\n\r\n",
            BAD("a control character in a header")),
        ROW(POST "Transfer-Encoding: chunked\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            BAD("there are two Transfer-Encoding headers")),
        ROW(POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            BAD("both Content-Length and Transfer-Encoding")),
        ROW(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            BAD("both Content-Length and Transfer-Encoding")),
        ROW("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            BAD("Transfer-Encoding is not in HTTP/1.0")),
        ROW(POST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na",
            "POST / [a] {Expect=100-continue} {Content-Length=1} keep 100; "),
        ROW(POST "Expect: 100-Continue\r\n\r\n",
            "POST / [] {Expect=100-Continue} keep 100; "),
        ROW("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
            "POST / [] {Expect=100-continue} close 1.0; "),
        ROW(POST "Expect: 200-ok\r\n\r\n", NO_EXPECT),
        ROW(POST "Expect:\r\n\r\n", NO_EXPECT),
        ROW(POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
            BAD("there are two Expect headers")),
        ROW(POST "Expect: 100-continue\r\nContent-Length: 21\r\n\r\n",
            TOO_LARGE),
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
        ROW(CHUNKED "1;\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;;a\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1; a\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a=\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a =b\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a=\"b\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a=\"b\\\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a=\"b\"c\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a=\"\x01\"\r\nx\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n", IS("a")),
        ROW(CHUNKED "1\r\na\r\n0\r\n\r\n\r\n", IS("a") "..."),
        ROW(CHUNKED "1\r\na\r\n0\r\n", "..."),
        ROW(CHUNKED "1\r\na\r\n0\r\n\r", "..."),
        ROW(CHUNKED "1\r\na\r\n", "..."),
        ROW(CHUNKED "5\r\nab", "..."),
        ROW(CHUNKED "\r\n", NO_HEX),
        ROW(CHUNKED "-1\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "+1\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "0x1\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED " 1\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "1 \r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "1 ;a\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "1\t\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "1g\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "g\r\n", NO_HEX),
        ROW(CHUNKED "1,1\r\na\r\n0\r\n\r\n", NO_HEX),
        ROW(CHUNKED "1\na\r\n0\r\n\r\n", NO_CR),
        ROW(CHUNKED "1\r\na\n0\r\n\r\n", NO_END),
        ROW(CHUNKED "1\r\na0\r\n\r\n", NO_END),
        ROW(CHUNKED "1\r\nab\r\n0\r\n\r\n", NO_END),
        ROW(CHUNKED "1\r\na\r0\r\n\r\n", NO_END),
        ROW(CHUNKED "1\r\na\r\n0\n\n", NO_CR),
        ROW(CHUNKED "1\r\na\r\n0\r\n\n", NO_CR),
        ROW(CHUNKED "1;\x01\r\na\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;\0\r\na\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "1;a\rb\r\na\r\n0\r\n\r\n", NO_EXT),
        ROW(CHUNKED "00000000000000001\r\na\r\n0\r\n\r\n",
            BAD("a chunk size has more than 16 digits")),
        ROW(CHUNKED "10000000000000001\r\na\r\n0\r\n\r\n",
            BAD("a chunk size has more than 16 digits")),
        ROW(CHUNKED "ffffffffffffffff\r\na\r\n", TOO_LARGE),
        ROW(CHUNKED "7fffffffffffffff\r\na\r\n", TOO_LARGE),
        ROW(CHUNKED "1\r\na\r\nffffffffffffffff\r\n", TOO_LARGE),
        ROW(CHUNKED "0\r\nConnection: x\r\n\r\n", IS("")),
        ROW(CHUNKED "0\r\nContent-Length: 0\r\n\r\n", NO_TRAILER),
        ROW(CHUNKED "0\r\ntransfer-encoding: chunked\r\n\r\n", NO_TRAILER),
        ROW(CHUNKED "0\r\nHost: h\r\n\r\n", NO_TRAILER),
        ROW(CHUNKED "0\r\nExpect: 100-continue\r\n\r\n", NO_TRAILER),
        ROW(CHUNKED "0\r\nConnection: close\r\n\r\n", NO_TRAILER),
        ROW(CHUNKED "0\r\nX y: z\r\n\r\n", NO_HEADER),
        ROW(CHUNKED "0\r\n X: z\r\n\r\n", BAD("a header line is folded")),
        ROW(CHUNKED "0\r\nX: z\n\r\n", NO_CR),
        ROW(CHUNKED "0\r\nX: \0\r\n\r\n",
            BAD("a control character in a header")),
        ROW(CHUNKED "0\r\nX\r\n\r\n", NO_HEADER),
    };

    CHECK_ROWS(rows);
}

TEST(a_body_has_a_limit)
{
    CHECK(with_n(POST "Content-Length: 20\r\n\r\n", 'x', 20, "",
                 "POST / [xxxxxxxxxxxxxxxxxxxx] {Content-Length=20} keep; "));
    CHECK(with_n(POST "Content-Length: 21\r\n\r\n", 'x', 21, "", TOO_LARGE));
    CHECK(with_n(CHUNKED "14\r\n", 'x', 20, "\r\n0\r\n\r\n",
                 IS("xxxxxxxxxxxxxxxxxxxx")));
    CHECK(with_n(CHUNKED "15\r\n", 'x', 21, "\r\n0\r\n\r\n", TOO_LARGE));
    CHECK(with_n(CHUNKED "f\r\nyyyyyyyyyyyyyyy\r\n5\r\n", 'x', 5,
                 "\r\n0\r\n\r\n", IS("yyyyyyyyyyyyyyyxxxxx")));
    CHECK(with_n(CHUNKED "f\r\nyyyyyyyyyyyyyyy\r\n6\r\n", 'x', 6,
                 "\r\n0\r\n\r\n", TOO_LARGE));
}

TEST(chunk_lines_and_trailers_have_limits)
{
    CHECK(with_n(CHUNKED "1;", 'e', 252, "\r\na\r\n0\r\n\r\n", IS("a")));
    CHECK(with_n(CHUNKED "1;", 'e', 253, "\r\na\r\n0\r\n\r\n", LONG_LINE));
    CHECK(with_n(CHUNKED "1;", 'e', 253, "", "..."));
    CHECK(with_n(CHUNKED "1;", 'e', 254, "", LONG_LINE));
    CHECK(with_n(CHUNKED "0\r\na:", 'b', 96, "\r\n\r\n", IS("")));
    CHECK(with_n(CHUNKED "0\r\na:", 'b', 97, "\r\n\r\n", LONG_TRAILERS));
    CHECK(with_n(CHUNKED "0\r\nc:\r\na:", 'b', 93, "\r\n\r\n", LONG_TRAILERS));
    CHECK(with_n(CHUNKED "0\r\na:\r\nb:\r\nc:\r\nd:\r\n", 'e', 1, ":\r\n\r\n",
                 IS("")));
    CHECK(with_n(
        CHUNKED "0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\n", 'f', 1, ":\r\n\r\n",
        "headers_too_large: the trailers are more than http.maxHeaders (5)"));
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
        CHECK(
            strcmp(r.out,
                   last == 16
                       ? IS("xxxxxxxxxxxxxxxxx")
                       : BAD("the extensions of chunks are over 4096 bytes")) ==
            0);
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
