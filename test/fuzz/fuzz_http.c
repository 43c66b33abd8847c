/* Any bytes as HTTP requests. The first byte chooses the limits and the
 * second how the rest is cut into reads. Read whole and read in pieces must
 * come out the same: the same requests with the same bodies, then the same
 * refusal or the same wait. Sizes stay within their limits all along. */
#include <assert.h>
#include <stdlib.h>

#include "net/server/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_HEADERS = 64 };

struct reader {
    struct http_limits limits;
    struct http_parse parse;
    struct http_header *slots; /* exactly as many as allowed */
    char *bytes;
    size_t n;
    uint64_t n_requests, sum; /* of everything that came out */
    bool is_bad;
};

static void mix(struct reader *r, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        r->sum = (r->sum ^ (uint8_t)s.p[i]) * 0x100000001b3;
    r->sum = (r->sum ^ s.n) * 0x100000001b3;
}

static bool is_clean(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

static void take(struct reader *r, const struct http_request *rq)
{
    assert(rq->method.n > 0 && rq->method.n <= HTTP_METHOD_BYTES);
    assert(rq->path.n > 0 && (rq->path.p[0] == '/' || rq->path.p[0] == '*'));
    assert(rq->body.n <= r->limits.max_body_bytes);
    assert(rq->n_headers <= r->limits.max_headers);
    assert(is_clean(rq->method) && is_clean(rq->path) && is_clean(rq->query));
    mix(r, rq->method);
    mix(r, rq->path);
    mix(r, rq->query);
    mix(r, rq->body);
    for (size_t i = 0; i < rq->n_headers; i++) {
        assert(rq->headers[i].name.n > 0);
        assert(is_clean(rq->headers[i].name));
        assert(is_clean(rq->headers[i].value));
        mix(r, rq->headers[i].name);
        mix(r, rq->headers[i].value);
    }
    r->sum += r->parse.keeps_alive + 2 * r->parse.expects_continue +
              4 * r->parse.is_head;
    r->n_requests++;
}

/* The bytes move every time and end where the allocation ends. */
static void feed(struct reader *r, const uint8_t *p, size_t n)
{
    char *moved = malloc(r->n + n + !(r->n + n));

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
            http_parse(&r->parse, &r->limits, r->bytes, &r->n, r->slots, &rq);
        size_t used = r->parse.head_bytes + r->parse.body_bytes;

        assert(used <= r->n);
        if (step == HTTP_MORE)
            break;
        r->is_bad = step == HTTP_BAD;
        if (r->is_bad)
            break;
        take(r, &rq);
        r->n -= used;
        memmove(r->bytes, r->bytes + used, r->n);
        r->parse = (struct http_parse){.phase = HTTP_HEAD};
    }
    /* What waits is a request within its limits and one line of framing. */
    assert(r->is_bad || r->n <= r->limits.max_request_line_bytes +
                                    2 * r->limits.max_header_bytes +
                                    r->limits.max_body_bytes + 8 +
                                    HTTP_CHUNK_LINE_BYTES);
}

static void begin(struct reader *r, uint8_t choice)
{
    *r = (struct reader){.limits = {
                             .max_request_line_bytes = choice & 1 ? 30 : 200,
                             .max_header_bytes = choice & 2 ? 40 : 400,
                             .max_headers = choice & 4 ? 3 : MAX_HEADERS,
                             .max_body_bytes = choice & 8 ? 10 : 300,
                         }};
    r->slots = malloc(r->limits.max_headers * sizeof(*r->slots));
}

static void finish(struct reader *r)
{
    free(r->bytes);
    free(r->slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader whole, parts;
    uint64_t step;

    if (size < 2)
        return 0;
    begin(&whole, data[0]);
    begin(&parts, data[0]);
    step = data[1];
    data += 2;
    size -= 2;
    feed(&whole, data, size);
    for (size_t at = 0; at < size;) {
        size_t n = 1 + (step & 15 ? step % 7 : step / 16 * 5);

        if (n > size - at)
            n = size - at;
        feed(&parts, data + at, n);
        at += n;
        step = (step * 5 + 1) & 255;
    }
    assert(whole.n_requests == parts.n_requests && whole.sum == parts.sum);
    assert(whole.is_bad == parts.is_bad);
    assert(whole.parse.bad == parts.parse.bad);
    assert(whole.is_bad == (whole.parse.what != NULL));
    assert(whole.parse.what == parts.parse.what);
    assert(whole.parse.limit == parts.parse.limit);
    if (!whole.is_bad) {
        /* An empty line that came alone is not among the bytes. */
        assert(whole.n + whole.parse.n_blank == parts.n + parts.parse.n_blank);
        assert(whole.parse.phase == parts.parse.phase);
        assert(whole.parse.body_bytes == parts.parse.body_bytes);
    }
    finish(&whole);
    finish(&parts);
    return 0;
}
