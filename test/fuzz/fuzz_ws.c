/* Any bytes as frames. The first byte chooses the side and the limits, the
 * second how the rest is cut into reads. Read whole and read in pieces must
 * come out the same: the same messages, the same pings, then the same close,
 * refusal or wait. Whatever came out is good by the rules, and is read as the
 * same again when it is written as a frame. */
#include <assert.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "net/server/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reader {
    struct ws_limits limits;
    struct ws_parse parse;
    char *bytes;
    size_t n;
    uint64_t n_events, sum; /* of everything that came out */
    enum ws_step last;
};

static void mix(struct reader *r, uint64_t v)
{
    r->sum = (r->sum ^ v) * 0x100000001b3;
}

/* The whole frame that was written, and nothing else, is read back from it. */
static void read_back(struct reader *r, enum ws_step step,
                      const struct ws_event *e, struct buf *frame)
{
    struct ws_parse p = {.is_client = r->parse.is_client};
    struct ws_event again;

    assert(!frame->over);
    assert(ws_parse(&p, &r->limits, frame->p, &frame->n, &again) == step);
    assert(str_eq(again.payload, e->payload) && again.code == e->code);
    assert(again.kind == e->kind && again.used == frame->n);
}

static void write_again(struct reader *r, enum ws_step step,
                        const struct ws_event *e)
{
    static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    const uint8_t *mask = r->parse.is_client ? NULL : key;
    uint8_t opcode = step == WS_PING   ? WS_OP_PING
                     : step == WS_PONG ? WS_OP_PONG
                                       : (uint8_t)e->kind;
    struct buf frame;

    buf_init(&frame, e->payload.n + WS_HEAD_BYTES + 2);
    if (step == WS_CLOSE)
        ws_write_close(&frame, e->code, e->payload, mask);
    else
        ws_write(&frame, opcode, e->payload, mask);
    if (step != WS_MESSAGE || e->payload.n <= r->limits.max_frame_bytes)
        read_back(r, step, e, &frame);
    buf_fini(&frame);
}

static void take(struct reader *r, enum ws_step step, const struct ws_event *e)
{
    struct str s = e->payload;

    assert(e->used <= r->n);
    assert(s.p >= r->bytes && s.p + s.n <= r->bytes + r->n);
    if (step == WS_MESSAGE) {
        assert(s.n <= r->limits.max_message_bytes);
        assert(e->kind == WS_BINARY || utf8_is_valid(s));
    } else {
        assert(s.n <= WS_CONTROL_BYTES);
    }
    if (step == WS_CLOSE) {
        assert(e->code == WS_NO_CODE || ws_code_may_be_sent(e->code));
        assert(s.n <= WS_REASON_BYTES && utf8_is_valid(s));
    }
    mix(r, step);
    mix(r, e->code);
    mix(r, e->kind);
    mix(r, s.n);
    for (size_t i = 0; i < s.n; i++)
        mix(r, (uint8_t)s.p[i]);
    r->n_events++;
    write_again(r, step, e);
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
    while (r->last != WS_BAD && r->last != WS_CLOSE) {
        struct ws_event e;

        r->last = ws_parse(&r->parse, &r->limits, r->bytes, &r->n, &e);
        if (r->last == WS_BAD || r->last == WS_MORE)
            break;
        take(r, r->last, &e);
        r->n -= e.used;
        memmove(r->bytes, r->bytes + e.used, r->n);
    }
    assert((r->last == WS_BAD) == (r->parse.code != 0));
    assert((r->last == WS_BAD) == (r->parse.what != NULL));
    /* What waits is a message within its limit and part of a head or of a
     * control frame. */
    assert(r->last != WS_MORE ||
           (r->parse.message_bytes <= r->limits.max_message_bytes &&
            r->n < r->parse.message_bytes + WS_HEAD_BYTES + WS_CONTROL_BYTES));
}

static void begin(struct reader *r, uint8_t choice)
{
    *r = (struct reader){.parse = {.is_client = choice & 1},
                         .limits = {
                             .max_frame_bytes = choice & 2 ? 20 : 70000,
                             .max_message_bytes = choice & 4 ? 50 : 100000,
                         }};
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
    assert(whole.n_events == parts.n_events && whole.sum == parts.sum);
    assert(whole.last == parts.last || size == 0);
    assert(whole.parse.code == parts.parse.code);
    assert(whole.parse.what == parts.parse.what);
    if (whole.last == WS_MORE) {
        assert(whole.n == parts.n);
        assert(whole.parse.message_bytes == parts.parse.message_bytes);
        assert(whole.parse.frame_left == parts.parse.frame_left);
        assert(whole.parse.utf8 == parts.parse.utf8);
    }
    free(whole.bytes);
    free(parts.bytes);
    return 0;
}
