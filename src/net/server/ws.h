#ifndef NET_SERVER_WS_H
#define NET_SERVER_WS_H

/* ws: WebSocket (RFC 6455) as bytes, without sockets: the opening handshake of
 * both sides, frames in, frames out.
 *
 * The reader is strict. Its rules:
 *
 *   mask         from a client every frame is masked, from a server none is
 *   reserved     bits and opcodes without a meaning are rejected: no extension
 *                is ever agreed on
 *   lengths      in the shortest form; the highest bit of 64 is zero
 *   control      whole, of up to 125 bytes, also between fragments
 *   fragments    a first, any number of continuations within the limits; never
 *                a continuation of nothing, nor a new message inside another
 *   text         UTF-8, checked as it comes: a bad byte is rejected before the
 *                rest of its message arrives, across any cut into fragments
 *   close        empty, or a code that may be sent and a reason in UTF-8
 *
 * An error comes with its close code (1002, 1007, 1009).
 *
 * Owns nothing: slices point into the caller's bytes. Threads: any; there is
 * no state here. */

#include "base/buf.h"
#include "base/str.h"
#include "base/xor.h"
#include "net/server/http.h"

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
    WS_REASON_BYTES = 123,         /* of the reason in a close */
    WS_HEAD_BYTES = 14,            /* the longest head of a frame */
    WS_FRAGMENTS_MAX = 128 * 1024, /* of one message, including empty ones */
};

/* The opening handshake. */

enum {
    WS_KEY_BYTES = 24,
    WS_ACCEPT_BYTES = 28,
    WS_PROTOCOLS_MAX = 32, /* that one client may offer */
};

/* A client's request. protocols points into it. */
struct ws_hello {
    char accept[WS_ACCEPT_BYTES + 1]; /* the answer to its key */
    struct str protocols;             /* "a, b"; empty: none were offered. If
                                       * they are in several headers, this is
                                       * the first; ws_offers checks all.
                                       * Unchanged, so also "a,, b," */
};

/* Whether a request asks to become a WebSocket (its Upgrade header names
 * websocket); if so ws_hello_read checks it. */
bool ws_is_asked(const struct http_request *rq);

/* Check a client's request: ERR_BAD_REQUEST with a message, or ERR_UPGRADE for
 * a version other than 13, which the answer must name (a request without
 * version is a bad one). ERR_INTERNAL: the answer to its key could not be
 * computed. Well-formed extensions may be offered; they are never agreed on. */
MUST_USE enum err ws_hello_read(const struct http_request *rq,
                                struct ws_hello *out, struct why *why);

/* Whether the client offered that subprotocol, in a request that ws_hello_read
 * accepted. Compares with case. */
bool ws_offers(const struct http_request *rq, struct str protocol);

/* The answer to key, including NUL. ERR_INTERNAL: SHA-1 is not available. */
MUST_USE enum err ws_accept_of(const char key[WS_KEY_BYTES],
                               char out[WS_ACCEPT_BYTES + 1]);

/* Write a client's complete request. key is 24 bytes of base64 of 16 random
 * ones. ERR_USAGE: a header or the target could break the framing, or is a
 * header that only we may set; ERR_LIMIT: it does not fit into out. Then
 * nothing was added. */
struct ws_ask {
    struct str host;   /* as in the URL, with a port that is not the usual */
    struct str target; /* "/path?query" */
    struct str key;
    struct str protocol; /* empty: none */
    const struct http_header *headers;
    size_t n_headers;
};
MUST_USE enum err ws_ask_write(struct buf *out, const struct ws_ask *ask);

enum ws_step { WS_MORE, WS_MESSAGE, WS_PING, WS_PONG, WS_CLOSE, WS_BAD };

/* A server's answer. */
struct ws_answer {
    int status;          /* if it is not 101; else zero */
    const char *what;    /* after WS_BAD: why; a constant */
    struct str protocol; /* agreed on; empty: none */
    size_t used;         /* bytes of the answer, after WS_MESSAGE */
};

/* Read an answer, from its first byte each time. WS_MORE: it is incomplete.
 * WS_MESSAGE: the server agreed; frames begin at out->used. WS_BAD: out says
 * why. It must be complete within max_bytes, and is read as strictly as http.h
 * reads requests. It may agree only to asked_protocol (empty: none), or leave
 * it out, and to no extension. The result does not depend on how the bytes
 * were split into calls. */
MUST_USE enum ws_step ws_answer_read(struct str bytes, struct str key,
                                     struct str asked_protocol,
                                     size_t max_bytes, struct ws_answer *out);

/* Frames in. */

/* A value at the limit is accepted; one byte more is rejected. Control frames
 * have fixed limits. Limits may change between calls; a frame that was begun
 * stays accepted. */
struct ws_limits {
    size_t max_frame_bytes;
    size_t max_message_bytes;
};

/* The state of one connection's input. Zeroed at the beginning, except
 * is_client. Small: every connection has one. */
struct ws_parse {
    bool is_client; /* we are the client: frames come unmasked */
    uint8_t kind;   /* of the partial message; zero: none */
    bool is_final, is_in_frame;
    uint8_t mask[4];
    uint8_t mask_at;  /* rotates with the bytes of the frame */
    uint16_t code;    /* after WS_BAD: the close code */
    const char *what; /* its message; a constant */
    uint32_t n_fragments;
    uint32_t utf8;        /* state of the check across fragments */
    uint64_t frame_left;  /* bytes of this frame still to come */
    size_t message_bytes; /* at the front, unmasked and checked */
    size_t gap_bytes;     /* behind them, of frames already read */
};

/* The event. payload of a message, a ping or a pong; of a close its reason,
 * and code (WS_NO_CODE when it was empty). */
struct ws_event {
    enum ws_kind kind;
    uint16_t code;
    struct str payload;
    size_t used; /* bytes from the front that may be dropped now */
};

/* Read on. `bytes` holds *n: first p->message_bytes of a partial message, then
 * newer bytes; between calls the caller appends to it, drops used bytes from
 * its front, and may move it. Heads of frames are removed in place, which
 * makes *n smaller.
 *
 * WS_MESSAGE, WS_PING, WS_PONG and WS_CLOSE fill `out`; its payload lies in
 * bytes until the caller touches them. Drop out->used from the front and call
 * again: there may be more. With a ping between fragments the payload lies
 * behind the message's bytes and used is zero. WS_MORE: nothing complete is
 * left. WS_BAD: p->code and p->what say why, and reading cannot go on. After
 * WS_CLOSE the peer has nothing more to send, and reading must stop. The
 * result does not depend on how the bytes were split into calls.
 *
 * A complete message in one frame is not moved, and no byte is moved more than
 * once in any sequence of frames. */
MUST_USE enum ws_step ws_parse(struct ws_parse *p,
                               const struct ws_limits *limits, char *bytes,
                               size_t *n, struct ws_event *out);

/* Frames out. */

enum { WS_OP_CLOSE = 8, WS_OP_PING = 9, WS_OP_PONG = 10 };

/* Write one frame with FIN set; a kind is its opcode. mask: NULL as a server;
 * as a client four bytes, unpredictable for each frame. If it does not fit,
 * nothing is written, and out is over. Room: payload.n + WS_HEAD_BYTES at
 * most. */
void ws_write(struct buf *out, uint8_t opcode, struct str payload,
              const uint8_t mask[4]);

/* A code that may be sent, or WS_NO_CODE for an empty close. The reason is cut
 * to WS_REASON_BYTES between characters, and left out if it is not UTF-8. */
void ws_write_close(struct buf *out, uint16_t code, struct str reason,
                    const uint8_t mask[4]);

/* Whether a close frame may have that code. */
bool ws_code_may_be_sent(uint16_t code);

/* XOR n bytes with mask, beginning with mask[at & 3]; to may be from, or lie
 * before it. With the widest vectors of this processor. */
static inline void ws_mask(char *to, const char *from, size_t n,
                           const uint8_t mask[4], size_t at)
{
    xor_four(to, from, n, mask, at);
}

#endif
