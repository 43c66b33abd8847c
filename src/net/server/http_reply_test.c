/* Heads of replies and dates, as they are written. */
#include "net/server/http.h"

#include "test/t.h"

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
