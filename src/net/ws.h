#ifndef NET_WS_H
#define NET_WS_H

/* ws: WebSocket (RFC 6455) as bytes, without sockets: the opening handshake of
 * both sides, frames in, frames out.
 *
 * The reader is strict. What it decides:
 *
 *   mask         from a client every frame is masked, from a server none is
 *   reserved     bits and opcodes without a meaning are refused: no extension
 *                is ever agreed on
 *   lengths      in the shortest form; the highest bit of 64 is zero
 *   control      whole, of up to 125 bytes, also between fragments
 *   fragments    a first, any number of continuations within the limits; never
 *                a continuation of nothing, nor a new message inside another
 *   text         UTF-8, checked as it comes: a bad byte is refused before the
 *                rest of its message is here, across any cut into fragments
 *   close        empty, or a code that may be sent and a reason in UTF-8
 *
 * What is wrong comes with the close code that says it (1002, 1007, 1009).
 *
 * Owns nothing: slices point into the caller's bytes. Threads: any; nothing
 * here keeps state of its own. */

#include "base/buf.h"
#include "base/str.h"
#include "net/http.h"

enum ws_kind { WS_TEXT = 1, WS_BINARY = 2 };

enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL_ERROR = 1002,
    WS_UNSUPPORTED = 1003,
    WS_NO_CODE = 1005,  /* never sent: the close frame was empty */
    WS_NO_CLOSE = 1006, /* never sent: it ended without a close frame */
    WS_BAD_TEXT = 1007,
    WS_POLICY = 1008,
    WS_TOO_LARGE = 1009,
    WS_INTERNAL = 1011,
    WS_TRY_LATER = 1013,
};

enum {
    WS_CONTROL_BYTES = 125,        /* of a ping, a pong or a close */
    WS_REASON_BYTES = 123,         /* of the words in a close */
    WS_HEAD_BYTES = 14,            /* the longest head of a frame */
    WS_FRAGMENTS_MAX = 128 * 1024, /* of one message, empty ones too */
};

/* The opening handshake. */

enum { WS_KEY_BYTES = 24, WS_ACCEPT_BYTES = 28 };

/* What a client asked for. protocols points into the request. */
struct ws_hello {
    char accept[WS_ACCEPT_BYTES + 1]; /* the answer to its key */
    struct str protocols;             /* "a, b"; empty when it named none */
};

/* Whether a request asks to become a WebSocket at all (its Upgrade header
 * names websocket); if so it is for ws_hello_read to judge. */
bool ws_is_asked(const struct http_request *rq);

/* Judge the request of a client: ERR_BAD_REQUEST with words, or
 * ERR_UPGRADE when its version is not 13, which the answer has to name. */
MUST_USE enum err ws_hello_read(const struct http_request *rq,
                                struct ws_hello *out, struct why *why);

/* The answer to key, NUL included. */
void ws_accept_of(const char key[WS_KEY_BYTES], char out[WS_ACCEPT_BYTES + 1]);

/* What a client writes first: the request, complete. key is 24 bytes of base64
 * made from 16 random ones. ERR_USAGE when a header or part of the target
 * could break the framing, or is one that only we may say. */
struct ws_ask {
    struct str host;   /* as in the URL, with a port that is not the usual */
    struct str target; /* "/path?query" */
    struct str key;
    struct str protocol; /* empty: none */
    const struct http_header *headers;
    size_t n_headers;
};
MUST_USE enum err ws_ask_write(struct buf *out, const struct ws_ask *ask);

/* What a server answered; read like http_parse does. WS_MORE: not whole yet.
 * WS_MESSAGE: it agreed; *used bytes were the answer. WS_BAD: p says why, and
 * status is what it answered instead of 101, zero when that is not it. */
struct ws_answer {
    int status;
    const char *what;
    struct str protocol;
    size_t used;
};

/* Frames in. */

struct ws_limits {
    size_t max_frame_bytes;
    size_t max_message_bytes;
};

enum ws_step { WS_MORE, WS_MESSAGE, WS_PING, WS_PONG, WS_CLOSE, WS_BAD };

MUST_USE enum ws_step ws_answer_read(struct str bytes, struct str key,
                                     struct str asked_protocol,
                                     size_t max_bytes, struct ws_answer *out);

/* How far one connection's input has come. Zeroed but for is_client it is at
 * the beginning. Small: there is one in every connection. */
struct ws_parse {
    bool is_client; /* we are the client: frames come unmasked */
    uint8_t opcode; /* of the frame being read */
    uint8_t kind;   /* of the message being gathered; zero: none */
    bool is_final, is_in_frame;
    uint8_t mask[4];
    uint8_t mask_at;  /* rotates with the bytes of the frame */
    uint16_t code;    /* after WS_BAD: the close code */
    const char *what; /* and in words; a constant */
    uint32_t n_fragments;
    uint32_t utf8;        /* state of the check over fragments */
    uint64_t frame_left;  /* bytes of this frame still to come */
    size_t message_bytes; /* gathered at the front, unmasked and checked */
};

/* What was read. payload of a message, a ping or a pong; of a close its
 * reason, and code (WS_NO_CODE when it was empty). */
struct ws_event {
    enum ws_kind kind;
    uint16_t code;
    struct str payload;
    size_t used; /* bytes from the front that may be dropped now */
};

/* Read on. `bytes` holds *n: first p->message_bytes of a message not yet
 * whole, then what came since; between calls the caller appends to it, drops
 * what was used from its front, and may move it. Frames' heads are taken out
 * in place, which makes *n smaller.
 *
 * WS_MESSAGE, WS_PING, WS_PONG and WS_CLOSE fill `out`; its payload lies in
 * bytes until the caller touches them. Drop out->used from the front and call
 * again: there may be more. With a ping between fragments the payload lies
 * behind the message's bytes and used is zero. WS_MORE: nothing whole is left.
 * WS_BAD: p->code and p->what say why, and there is no way on. The outcome
 * does not depend on how the bytes were cut into calls. */
MUST_USE enum ws_step ws_parse(struct ws_parse *p,
                               const struct ws_limits *limits, char *bytes,
                               size_t *n, struct ws_event *out);

/* Frames out. */

/* Write one frame with FIN set. mask: NULL as a server; as a client four
 * bytes, unpredictable for each frame. Room: payload.n + WS_HEAD_BYTES. */
void ws_write(struct buf *out, uint8_t opcode, struct str payload,
              const uint8_t mask[4]);
void ws_write_close(struct buf *out, uint16_t code, struct str reason,
                    const uint8_t mask[4]);

enum { WS_OP_CLOSE = 8, WS_OP_PING = 9, WS_OP_PONG = 10 };

/* Whether that code may stand in a close frame. */
bool ws_code_may_be_sent(uint16_t code);

/* XOR n bytes with mask, beginning with mask[at & 3]; from may be to. With
 * the widest vectors this processor has. */
void ws_mask(char *to, const char *from, size_t n, const uint8_t mask[4],
             size_t at);

#endif
