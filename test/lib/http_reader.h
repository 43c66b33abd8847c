#ifndef TEST_LIB_HTTP_READER_H
#define TEST_LIB_HTTP_READER_H

/* A reader for the parser's tests: what comes of some bytes, in words. Every
 * case is read whole, byte by byte and in every way to cut it in two, from
 * memory that moves each time and ends where the bytes end; all must come out
 * the same. */

#include "net/server/http.h"
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

static inline void add(struct reader *r, const char *text)
{
    size_t at = strlen(r->out);

    snprintf(r->out + at, sizeof(r->out) - at, "%s", text);
}

/* "bad_request: the Host header is missing", "too_large: ... (20)" */
static inline void add_refusal(struct reader *r)
{
    char text[200], limit[32] = "";

    CHECK(r->parse.what != NULL);
    if (r->parse.limit)
        snprintf(limit, sizeof(limit), " (%zu)", r->parse.limit);
    snprintf(text, sizeof(text), "%s: %s%s", err_row(r->parse.bad)->code,
             r->parse.what, limit);
    add(r, text);
}

/* "GET /a?b [body] {name=value} keep; " */
static inline void add_request(struct reader *r, const struct http_request *rq)
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

static inline void feed(struct reader *r, const char *p, size_t n)
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
            add_refusal(r);
            break;
        }
        add_request(r, &rq);
        r->n -= used;
        memmove(r->bytes, r->bytes + used, r->n);
        r->parse = (struct http_parse){.phase = HTTP_HEAD};
    }
}

static inline void end(struct reader *r)
{
    if (!r->is_bad && (r->n || r->parse.n_blank || r->parse.phase != HTTP_HEAD))
        add(r, "...");
    free(r->bytes);
    r->bytes = NULL;
}

static inline void read_in_two(const char *p, size_t n, size_t cut,
                               struct reader *r)
{
    *r = (struct reader){.n = 0};
    feed(r, p, cut);
    feed(r, p + cut, n - cut);
    end(r);
}

static inline void read_by_byte(const char *p, size_t n, struct reader *r)
{
    *r = (struct reader){.n = 0};
    for (size_t i = 0; i < n; i++)
        feed(r, p + i, 1);
    end(r);
}

static inline bool comes_out(const char *p, size_t n, const char *as)
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
#define H         "Host: h\r\n"
#define BAD(what) "bad_request: " what

static inline void check_rows(const struct row *rows, size_t n)
{
    int n_wrong = 0;

    for (size_t i = 0; i < n; i++)
        n_wrong += !comes_out(rows[i].in, rows[i].n, rows[i].as);
    CHECK(n_wrong == 0);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* One text made of a head, n times a byte, and a tail. */
static inline bool with_n(const char *head, char c, size_t n, const char *tail,
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

#define POST     "POST / HTTP/1.1\r\n" H
#define CHUNKED  POST "Transfer-Encoding: chunked\r\n\r\n"
#define IS(body) "POST / [" body "] {Transfer-Encoding=chunked} keep; "

#endif
