/* Any bytes as server-sent events: the same events and the same end however
 * the bytes are cut, nothing beyond the limits, and what a plain reading of
 * the standard says. The first two bytes choose the cuts and the limit. */
#include <assert.h>
#include <stdlib.h>

#include "base/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT_MAX = 8 << 20 };

struct heard {
    struct buf text; /* lengths and bytes of all events */
    size_t max;      /* of the data of one */
    unsigned stop_after;
    bool is_stopped;
};

static void note(struct buf *text, struct str s)
{
    buf_addf(text, "%zu:", s.n);
    buf_add_str(text, s);
}

static bool hear(void *ctx, const struct sse_event *e)
{
    struct heard *h = ctx;

    assert(!h->is_stopped);
    assert(e->type.n > 0 && e->type.n <= SSE_ID_MAX && e->id.n <= SSE_ID_MAX);
    assert(e->data.n <= h->max);
    assert(str_find(e->id, '\0', 0) == e->id.n);
    assert(str_find(e->data, '\r', 0) == e->data.n);
    assert(str_find(e->id, '\n', 0) == e->id.n);
    note(&h->text, e->id);
    note(&h->text, e->type);
    note(&h->text, e->data);
    h->is_stopped = h->stop_after && --h->stop_after == 0;
    return !h->is_stopped;
}

/* Pieces of 1 to 8 bytes, as the seed says; zero: in one. */
static enum err feed(struct str bytes, size_t max, unsigned stop_after,
                     unsigned seed, struct heard *h)
{
    struct sse s;
    enum err e = OK;

    *h = (struct heard){.max = max, .stop_after = stop_after};
    buf_init(&h->text, TEXT_MAX);
    sse_init(&s, max, hear, h);
    while (bytes.n && !e) {
        size_t n = seed ? 1 + (seed >> 8) % 8 : bytes.n;

        seed = seed ? (seed * 1103515245 + 12345) | 1 : 0;
        e = sse_feed(&s, str_sub(bytes, 0, n));
        bytes = str_sub(bytes, n, bytes.n);
    }
    assert(e == OK || e == ERR_LIMIT || e == ERR_GONE);
    assert((e == ERR_GONE) == h->is_stopped);
    sse_fini(&s);
    return e;
}

/* The plain reading: one line after the other, without limits. */
struct plain {
    struct buf id, type, data, text;
    bool is_data;
};

static void plain_line(struct plain *p, struct str line)
{
    struct str name, value = line;

    if (!line.n) {
        if (p->is_data) {
            note(&p->text, buf_str(&p->id));
            note(&p->text, p->type.n ? buf_str(&p->type) : STR("message"));
            note(&p->text, str_sub(buf_str(&p->data), 0, p->data.n - 1));
        }
        buf_clear(&p->data);
        buf_clear(&p->type);
        p->is_data = false;
        return;
    }
    name = str_cut(&value, ':');
    if (value.n && value.p[0] == ' ')
        value = str_sub(value, 1, value.n);
    if (str_eq(name, STR("data"))) {
        buf_add_str(&p->data, value);
        buf_add_char(&p->data, '\n');
        p->is_data = true;
    } else if (str_eq(name, STR("event"))) {
        buf_clear(&p->type);
        buf_add_str(&p->type, value);
    } else if (str_eq(name, STR("id")) && str_find(value, '\0', 0) == value.n) {
        buf_clear(&p->id);
        buf_add_str(&p->id, value);
    }
}

static void read_plainly(struct str bytes, struct plain *p)
{
    buf_init(&p->id, TEXT_MAX);
    buf_init(&p->type, TEXT_MAX);
    buf_init(&p->data, TEXT_MAX);
    buf_init(&p->text, TEXT_MAX);
    p->is_data = false;
    if (str_starts(bytes, STR("\xef\xbb\xbf")))
        bytes = str_sub(bytes, 3, bytes.n);
    for (size_t at = 0, begin = 0; at < bytes.n; at++) {
        bool is_cr = bytes.p[at] == '\r';

        if (!is_cr && bytes.p[at] != '\n')
            continue;
        plain_line(p, str_sub(bytes, begin, at));
        if (is_cr && at + 1 < bytes.n && bytes.p[at + 1] == '\n')
            at++;
        begin = at + 1;
    }
}

static void plain_fini(struct plain *p)
{
    buf_fini(&p->id);
    buf_fini(&p->type);
    buf_fini(&p->data);
    buf_fini(&p->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str bytes = {(const char *)data + 2, n < 2 ? 0 : n - 2};
    struct heard whole, cut;
    struct plain plain;
    unsigned stop_after;
    size_t max;
    enum err e;

    if (n < 2)
        return 0;
    max = data[1] < 128 ? data[1] : 1 << 20;
    stop_after = data[0] & 3;
    e = feed(bytes, max, stop_after, 0, &whole);
    for (unsigned i = 1; i <= 4; i++) {
        assert(feed(bytes, max, stop_after, data[0] * 4u + i, &cut) == e);
        assert(str_eq(buf_str(&whole.text), buf_str(&cut.text)));
        buf_fini(&cut.text);
    }
    if (e == OK && !stop_after) {
        read_plainly(bytes, &plain);
        assert(str_eq(buf_str(&whole.text), buf_str(&plain.text)));
        plain_fini(&plain);
    }
    buf_fini(&whole.text);
    return 0;
}
