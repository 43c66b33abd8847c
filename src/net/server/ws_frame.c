/* Frames are read from a buffer that begins with the partial message, followed
 * by raw bytes:
 *
 *     | message_bytes | gap_bytes | at: a frame, perhaps incomplete ...
 *
 * The payload of a fragment is unmasked to the end of the message; the gap is
 * where its head was. A ping between fragments stays in the gap. The gap is
 * closed only when there is nothing more to read, and then less than one
 * control frame lies behind it, so a flood of the smallest frames costs no
 * more per byte than one large frame. A message in one frame, the usual case,
 * is unmasked in place.
 *
 * Every decision depends on the bytes from the front up to some point and
 * never on where a read ended: a head is rejected at its first wrong byte,
 * text byte by byte, a control frame when it is complete. */
#include "net/server/ws.h"

#include <assert.h>

#include "base/utf8.h"

enum { OP_CONTINUATION = 0, OP_TEXT = WS_TEXT, OP_BINARY = WS_BINARY };

enum { BIT_FINAL = 0x80, BITS_RESERVED = 0x70, BITS_OPCODE = 0x0f };
enum { BIT_MASKED = 0x80, BITS_LENGTH = 0x7f };
enum { LENGTH_IS_16 = 126, LENGTH_IS_64 = 127 };

struct head {
    uint8_t opcode;
    bool is_final;
    uint64_t n;         /* bytes of its payload */
    const uint8_t *key; /* NULL: not masked */
    size_t bytes;       /* of the head itself */
};

static enum ws_step frame_reject(struct ws_parse *p, enum ws_code code,
                                 const char *what)
{
    p->code = (uint16_t)code;
    p->what = what;
    return WS_BAD;
}

static bool is_control(uint8_t opcode)
{
    return opcode >= WS_OP_CLOSE;
}

/* Why a data frame may not come now; NULL: it may. */
static const char *frame_misplaced(const struct ws_parse *p, uint8_t opcode)
{
    if (opcode > OP_BINARY)
        return "the opcode has no meaning";
    if (opcode == OP_CONTINUATION)
        return p->kind ? NULL : "a continuation of nothing";
    return p->kind ? "a new message inside another" : NULL;
}

static enum ws_step head_read_first(struct ws_parse *p, uint8_t b,
                                    struct head *h)
{
    const char *what = NULL;

    h->opcode = b & BITS_OPCODE;
    h->is_final = b & BIT_FINAL;
    if (b & BITS_RESERVED)
        what = "a reserved bit is set";
    else if (!is_control(h->opcode))
        what = frame_misplaced(p, h->opcode);
    else if (h->opcode > WS_OP_PONG)
        what = "the opcode has no meaning";
    else if (!h->is_final)
        what = "a control frame in fragments";
    if (what)
        return frame_reject(p, WS_PROTOCOL_ERROR, what);
    if (!is_control(h->opcode) && p->n_fragments >= WS_FRAGMENTS_MAX)
        return frame_reject(p, WS_TOO_LARGE,
                            "the message has too many fragments");
    return WS_MESSAGE;
}

/* The second byte; h->bytes becomes the end of the length. */
static enum ws_step head_read_second(struct ws_parse *p, uint8_t b,
                                     struct head *h)
{
    h->n = b & BITS_LENGTH;
    h->bytes = h->n == LENGTH_IS_16 ? 4 : h->n == LENGTH_IS_64 ? 10 : 2;
    if (p->is_client && b & BIT_MASKED)
        return frame_reject(p, WS_PROTOCOL_ERROR,
                            "the server has masked a frame");
    if (!p->is_client && !(b & BIT_MASKED))
        return frame_reject(p, WS_PROTOCOL_ERROR, "a frame is not masked");
    if (is_control(h->opcode) && h->n > WS_CONTROL_BYTES)
        return frame_reject(p, WS_PROTOCOL_ERROR,
                            "a control frame of more than 125 bytes");
    return WS_MESSAGE;
}

static enum ws_step head_read_length(struct ws_parse *p,
                                     const struct ws_limits *l,
                                     const uint8_t *b, struct head *h)
{
    uint64_t n = 0;

    if (h->bytes > 2) {
        for (size_t i = 2; i < h->bytes; i++)
            n = n << 8 | b[i];
        if (n >> 63)
            return frame_reject(p, WS_PROTOCOL_ERROR,
                                "a length of more than 63 bits");
        if (n <= (h->n == LENGTH_IS_16 ? WS_CONTROL_BYTES : UINT16_MAX))
            return frame_reject(p, WS_PROTOCOL_ERROR,
                                "a length is not in its shortest form");
        h->n = n;
    }
    if (is_control(h->opcode))
        return WS_MESSAGE;
    if (h->n > l->max_frame_bytes)
        return frame_reject(p, WS_TOO_LARGE,
                            "the frame is larger than the limit");
    if (h->n > l->max_message_bytes ||
        p->message_bytes > l->max_message_bytes - h->n)
        return frame_reject(p, WS_TOO_LARGE,
                            "the message is larger than the limit");
    return WS_MESSAGE;
}

/* The head of a frame from its first byte: WS_MESSAGE: it is complete. */
static enum ws_step frame_read_head(struct ws_parse *p,
                                    const struct ws_limits *l,
                                    const char *bytes, size_t n, struct head *h)
{
    const uint8_t *b = (const uint8_t *)bytes;
    enum ws_step step;

    if (n == 0)
        return WS_MORE;
    step = head_read_first(p, b[0], h);
    if (step != WS_MESSAGE)
        return step;
    if (n == 1)
        return WS_MORE;
    step = head_read_second(p, b[1], h);
    if (step != WS_MESSAGE)
        return step;
    if (n < h->bytes)
        return WS_MORE;
    step = head_read_length(p, l, b, h);
    h->key = NULL;
    if (!p->is_client) {
        h->key = b + h->bytes;
        h->bytes += 4;
    }
    return step == WS_MESSAGE && n < h->bytes ? WS_MORE : step;
}

/* Waiting bytes move up to the message. */
static enum ws_step message_need_more(struct ws_parse *p, char *bytes,
                                      size_t *n, size_t at)
{
    if (at != p->message_bytes && at != *n)
        memmove(bytes + p->message_bytes, bytes + at, *n - at);
    *n -= at - p->message_bytes;
    p->gap_bytes = 0;
    return WS_MORE;
}

static enum ws_step read_close(struct ws_parse *p, struct ws_event *out)
{
    const uint8_t *b = (const uint8_t *)out->payload.p;

    out->code = WS_NO_CODE;
    if (out->payload.n == 0)
        return WS_CLOSE;
    if (out->payload.n == 1)
        return frame_reject(p, WS_PROTOCOL_ERROR, "a close code of one byte");
    out->code = (uint16_t)(b[0] << 8 | b[1]);
    if (!ws_code_may_be_sent(out->code))
        return frame_reject(p, WS_PROTOCOL_ERROR,
                            "a close code that may not be sent");
    out->payload = str_sub(out->payload, 2, out->payload.n);
    if (!utf8_is_valid(out->payload))
        return frame_reject(p, WS_BAD_TEXT,
                            "the reason of a close is not UTF-8");
    return WS_CLOSE;
}

/* A complete control frame at `at`. */
static enum ws_step frame_read_control(struct ws_parse *p, const struct head *h,
                                       char *bytes, size_t at,
                                       struct ws_event *out)
{
    char *payload = bytes + at + h->bytes;
    size_t end = at + h->bytes + (size_t)h->n;

    if (h->key)
        ws_mask(payload, payload, (size_t)h->n, h->key, 0);
    *out = (struct ws_event){.payload = {payload, (size_t)h->n}};
    if (p->kind)
        p->gap_bytes = end - p->message_bytes;
    else
        out->used = end;
    if (h->opcode == WS_OP_CLOSE)
        return read_close(p, out);
    return h->opcode == WS_OP_PING ? WS_PING : WS_PONG;
}

#define NOT_UTF8 "the text is not UTF-8"
#define CUT_UTF8 "the text ends inside a character"

/* A complete message in one frame, at the front of the buffer. */
static enum ws_step frame_read_whole(struct ws_parse *p, const struct head *h,
                                     char *bytes, struct ws_event *out)
{
    struct str s = {bytes + h->bytes, (size_t)h->n};
    uint32_t utf8 = 0;

    if (h->key)
        ws_mask(bytes + h->bytes, s.p, s.n, h->key, 0);
    if (h->opcode == OP_TEXT && !utf8_check(&utf8, s))
        return frame_reject(p, WS_BAD_TEXT, NOT_UTF8);
    if (utf8)
        return frame_reject(p, WS_BAD_TEXT, CUT_UTF8);
    *out = (struct ws_event){h->opcode, 0, s, h->bytes + s.n};
    return WS_MESSAGE;
}

static void begin_frame(struct ws_parse *p, const struct head *h)
{
    if (h->opcode != OP_CONTINUATION)
        p->kind = h->opcode;
    p->is_final = h->is_final;
    p->is_in_frame = true;
    p->frame_left = h->n;
    p->mask_at = 0;
    p->n_fragments++;
    if (h->key)
        memcpy(p->mask, h->key, sizeof(p->mask));
}

/* Add the available part of the frame to the message. False: not UTF-8. */
static bool message_gather(struct ws_parse *p, char *bytes, size_t n,
                           size_t *at)
{
    size_t here = n - *at;
    size_t part = here < p->frame_left ? here : (size_t)p->frame_left;
    char *to = bytes + p->message_bytes;

    if (!p->is_client)
        ws_mask(to, bytes + *at, part, p->mask, p->mask_at);
    else if (to != bytes + *at)
        memmove(to, bytes + *at, part);
    p->mask_at = (uint8_t)((p->mask_at + part) & 3);
    p->frame_left -= part;
    p->message_bytes += part;
    *at += part;
    p->is_in_frame = p->frame_left > 0;
    return p->kind != WS_TEXT || utf8_check(&p->utf8, (struct str){to, part});
}

/* A message whose last frame ends at `at`. */
static enum ws_step message_finish(struct ws_parse *p, const char *bytes,
                                   size_t at, struct ws_event *out)
{
    if (p->utf8)
        return frame_reject(p, WS_BAD_TEXT, CUT_UTF8);
    *out = (struct ws_event){p->kind, 0, {bytes, p->message_bytes}, at};
    p->kind = 0;
    p->n_fragments = 0;
    p->message_bytes = 0;
    p->gap_bytes = 0;
    return WS_MESSAGE;
}

enum ws_step ws_parse(struct ws_parse *p, const struct ws_limits *limits,
                      char *bytes, size_t *n, struct ws_event *out)
{
    size_t at = p->message_bytes + p->gap_bytes;

    if (p->code)
        return WS_BAD;
    assert(at <= *n);
    for (;;) {
        if (!p->is_in_frame) {
            struct head h;
            enum ws_step step =
                frame_read_head(p, limits, bytes + at, *n - at, &h);
            bool is_whole = step == WS_MESSAGE && h.n <= *n - at - h.bytes;

            if (step == WS_BAD)
                return step;
            if (step == WS_MORE || (is_control(h.opcode) && !is_whole))
                return message_need_more(p, bytes, n, at);
            if (is_control(h.opcode))
                return frame_read_control(p, &h, bytes, at, out);
            if (is_whole && h.is_final && !p->kind)
                return frame_read_whole(p, &h, bytes, out);
            begin_frame(p, &h);
            at += h.bytes;
        }
        if (!message_gather(p, bytes, *n, &at))
            return frame_reject(p, WS_BAD_TEXT, NOT_UTF8);
        if (p->is_in_frame)
            return message_need_more(p, bytes, n, at);
        if (p->is_final)
            return message_finish(p, bytes, at, out);
    }
}

/* Returns the length of the head. */
static size_t frame_write_head(uint8_t head[WS_HEAD_BYTES], uint8_t opcode,
                               uint64_t n, const uint8_t mask[4])
{
    size_t n_length = n <= WS_CONTROL_BYTES ? 0 : n <= UINT16_MAX ? 2 : 8;
    uint8_t length = n_length == 0   ? (uint8_t)n
                     : n_length == 2 ? LENGTH_IS_16
                                     : LENGTH_IS_64;

    head[0] = BIT_FINAL | opcode;
    head[1] = length | (mask ? BIT_MASKED : 0);
    for (size_t i = 0; i < n_length; i++)
        head[2 + i] = (uint8_t)(n >> (8 * (n_length - 1 - i)));
    if (mask)
        memcpy(head + 2 + n_length, mask, 4);
    return 2 + n_length + (mask ? 4 : 0);
}

void ws_write(struct buf *out, uint8_t opcode, struct str payload,
              const uint8_t mask[4])
{
    uint8_t head[WS_HEAD_BYTES];
    size_t n = frame_write_head(head, opcode, payload.n, mask);
    char *to = buf_reserve(out, n + payload.n);

    assert(!is_control(opcode) || payload.n <= WS_CONTROL_BYTES);
    if (!to)
        return;
    memcpy(to, head, n);
    if (mask)
        ws_mask(to + n, payload.p, payload.n, mask, 0);
    else if (payload.n)
        memcpy(to + n, payload.p, payload.n);
    buf_commit(out, n + payload.n);
}

void ws_write_close(struct buf *out, uint16_t code, struct str reason,
                    const uint8_t mask[4])
{
    char bytes[WS_CONTROL_BYTES];
    struct str cut = str_head(reason, WS_REASON_BYTES);
    size_t n = 0;

    assert(code == WS_NO_CODE || ws_code_may_be_sent(code));
    if (code != WS_NO_CODE) {
        bytes[n++] = (char)(code >> 8);
        bytes[n++] = (char)(code & 0xff);
        if (cut.n && utf8_is_valid(cut)) {
            memcpy(bytes + n, cut.p, cut.n);
            n += cut.n;
        }
    }
    ws_write(out, WS_OP_CLOSE, (struct str){bytes, n}, mask);
}

/* 1004 has no meaning; 1005, 1006 and 1015 stand for missing frames; those
 * from 1016 on are reserved. 3000 and more belong to applications. */
bool ws_code_may_be_sent(uint16_t code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}
