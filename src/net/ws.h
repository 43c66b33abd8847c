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
#include "base/xor.h"
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

enum {
    WS_KEY_BYTES = 24,
    WS_ACCEPT_BYTES = 28,
    WS_PROTOCOLS_MAX = 32, /* that one client may offer */
};

/* What a client asked for. protocols points into the request. */
struct ws_hello {
    char accept[WS_ACCEPT_BYTES + 1]; /* the answer to its key */
    struct str protocols;             /* "a, b"; empty when it named none. They
                                         may be in more than one header: this
                                         is the first, ws_offers knows all.
                                         As it came, also "a,, b," */
};

/* Whether a request asks to become a WebSocket at all (its Upgrade header
 * names websocket); if so it is for ws_hello_read to judge. */
bool ws_is_asked(const struct http_request *rq);

/* Judge the request of a client: ERR_BAD_REQUEST with words, or ERR_UPGRADE
 * when its version is not 13, which the answer has to name (a request without
 * any is a bad one). ERR_INTERNAL when the answer to its key could not be made.
 * Extensions may be offered, as long as they are well written; they are never
 * agreed on. */
MUST_USE enum err ws_hello_read(const struct http_request *rq,
                                struct ws_hello *out, struct why *why);

/* Whether the client offered that subprotocol, in a request that
 * ws_hello_read found good. They are compared with their case. */
bool ws_offers(const struct http_request *rq, struct str protocol);

/* The answer to key, NUL included. ERR_INTERNAL when SHA-1 is not to be had. */
MUST_USE enum err ws_accept_of(const char key[WS_KEY_BYTES],
                               char out[WS_ACCEPT_BYTES + 1]);

/* What a client writes first: the request, complete. key is 24 bytes of base64
 * made from 16 random ones. ERR_USAGE when a header or part of the target
 * could break the framing, or is one that only we may say; ERR_LIMIT when it
 * does not fit into out. Then nothing was added. */
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

/* What a server answered. */
struct ws_answer {
    int status;          /* instead of 101; zero when that is not it */
    const char *what;    /* after WS_BAD: why; a constant */
    struct str protocol; /* what it agreed on; empty: none */
    size_t used;         /* bytes of the answer, after WS_MESSAGE */
};

/* Read it, from its first byte each time. WS_MORE: it is not whole yet.
 * WS_MESSAGE: it agreed; what lies behind out->used are frames. WS_BAD: out
 * says why. It must be whole within max_bytes, and it is read as strictly as
 * http.h reads requests. Only what was asked for may be agreed on: no
 * extension, and no protocol but asked_protocol (empty: none), which it may
 * also leave out. The outcome does not depend on how the bytes were cut into
 * calls. */
MUST_USE enum ws_step ws_answer_read(struct str bytes, struct str key,
                                     struct str asked_protocol,
                                     size_t max_bytes, struct ws_answer *out);

/* Frames in. */

/* A limit counts what may just be there: one byte more is refused. Those of
 * control frames are fixed. They may change between calls; a frame that was
 * begun stays accepted. */
struct ws_limits {
    size_t max_frame_bytes;
    size_t max_message_bytes;
};

/* How far one connection's input has come. Zeroed but for is_client it is at
 * the beginning. Small: there is one in every connection. */
struct ws_parse {
    bool is_client; /* we are the client: frames come unmasked */
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
    size_t gap_bytes;     /* behind them, of frames that were read */
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
 * WS_BAD: p->code and p->what say why, and there is no way on. After WS_CLOSE
 * the peer has nothing more to say, and nobody is to read on. The outcome does
 * not depend on how the bytes were cut into calls.
 *
 * A message in one frame that is here whole is not moved, and no byte is moved
 * more than once whatever the frames are. */
MUST_USE enum ws_step ws_parse(struct ws_parse *p,
                               const struct ws_limits *limits, char *bytes,
                               size_t *n, struct ws_event *out);

/* Frames out. */

enum { WS_OP_CLOSE = 8, WS_OP_PING = 9, WS_OP_PONG = 10 };

/* Write one frame with FIN set; a kind is its opcode. mask: NULL as a server;
 * as a client four bytes, unpredictable for each frame. What does not fit is
 * not begun, and out is over. Room: payload.n + WS_HEAD_BYTES at most. */
void ws_write(struct buf *out, uint8_t opcode, struct str payload,
              const uint8_t mask[4]);

/* A code that may be sent, or WS_NO_CODE for a close that is empty. The reason
 * is cut to WS_REASON_BYTES between characters, and left out when it is not
 * UTF-8. */
void ws_write_close(struct buf *out, uint16_t code, struct str reason,
                    const uint8_t mask[4]);

/* Whether that code may stand in a close frame. */
bool ws_code_may_be_sent(uint16_t code);

/* XOR n bytes with mask, beginning with mask[at & 3]; to may be from, or lie
 * before it. With the widest vectors this processor has. */
static inline void ws_mask(char *to, const char *from, size_t n,
                           const uint8_t mask[4], size_t at)
{
    xor_four(to, from, n, mask, at);
}

#endif
