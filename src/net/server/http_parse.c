/* A request is a head and perhaps a body; this file moves from one to the
 * other.
 *
 * Rejected: llhttp. It is as fast, but lenient about line ends, repeated
 * lengths, targets and Host, and it is a callback machine where slices into
 * one buffer are enough. */
#include "net/server/http_internal.h"

#include <assert.h>

/* Whether new bytes without a line end change nothing: no line has ended and
 * none has become too long. */
static bool head_must_wait(const struct http_parse *p,
                           const struct http_limits *l, struct str in)
{
    size_t room = p->line_at < p->headers_at || p->headers_at == 0
                      ? p->line_at + l->max_request_line_bytes + 2
                      : p->headers_at + l->max_header_bytes;

    return p->seen > p->line_at && in.n < room &&
           str_find(in, '\n', p->seen) == in.n;
}

/* Fill rq again from a head that was accepted in an earlier call: the caller
 * may have moved the bytes, and may use other limits by now. */
static void parse_head_again(const struct http_parse *p, char *bytes,
                             struct http_header *slots, struct http_request *rq)
{
    struct http_parse again = {.phase = HTTP_HEAD, .n_blank = p->n_blank};
    const struct http_limits none = {
        .max_request_line_bytes = p->head_bytes,
        .max_header_bytes = p->head_bytes,
        .max_headers = p->n_headers,
        .max_body_bytes = SIZE_MAX,
    };
    enum http_step step = http_read_head(
        &again, &none, (struct str){bytes, p->head_bytes}, slots, rq);

    assert(step == HTTP_DONE);
}

static enum http_step parse_body(struct http_parse *p, size_t n)
{
    size_t here = n - p->head_bytes - p->body_bytes;
    size_t part = here < p->left ? here : p->left;

    p->body_bytes += part;
    p->left -= part;
    return p->left ? HTTP_MORE : HTTP_DONE;
}

enum http_step http_parse(struct http_parse *p,
                          const struct http_limits *limits, char *bytes,
                          size_t *n, struct http_header *slots,
                          struct http_request *rq)
{
    bool has_head = p->phase != HTTP_HEAD;
    uint8_t n_blank = p->n_blank;
    struct str in = {bytes, *n};
    enum http_step step;

    if (p->bad)
        return HTTP_BAD;
    if (!has_head) {
        if (head_must_wait(p, limits, in)) {
            p->seen = in.n;
            return HTTP_MORE;
        }
        *rq = (struct http_request){.n_headers = 0};
        step = http_read_head(p, limits, in, slots, rq);
        if (step == HTTP_MORE && p->n_blank > n_blank)
            *n = 0; /* nothing except that empty line */
        if (step != HTTP_DONE)
            return step;
    }
    step = p->phase == HTTP_BODY ? parse_body(p, *n)
                                 : http_read_chunks(p, limits, bytes, n);
    if (step == HTTP_DONE) {
        if (has_head)
            parse_head_again(p, bytes, slots, rq);
        rq->body = (struct str){bytes + p->head_bytes, p->body_bytes};
        rq->is_http_10 = p->is_http_10;
    }
    return step;
}

struct str http_header(const struct http_request *rq, struct str name)
{
    for (size_t i = 0; i < rq->n_headers; i++)
        if (str_eq_nocase(rq->headers[i].name, name))
            return rq->headers[i].value;
    return (struct str){NULL, 0};
}
