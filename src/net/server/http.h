#ifndef NET_SERVER_HTTP_H
#define NET_SERVER_HTTP_H

/* http: HTTP/1.1 as bytes, without sockets: requests in, reply heads out.
 *
 * The reader is strict (RFC 9112, without its permissions to be lenient).
 * Input that two programs could read in two ways is rejected and the
 * connection closed, so that no proxy in front of us can be made to see
 * another request than we do. Its rules:
 *
 *   lines        end in CRLF; a bare CR or LF, NUL, or other control byte
 *                anywhere in a head is rejected, and so are folded lines
 *   before it    one empty line before a request is skipped, no more
 *   method       a token of up to 32 bytes; CONNECT is not supported (501)
 *   target       visible bytes without '#': "/path", "*" for OPTIONS alone, or
 *                "http://HOST/path" where HOST equals the Host header
 *   version      HTTP/1.0 or HTTP/1.1; others of that shape get 505
 *   Host         exactly one on 1.1, at most one on 1.0: a name, an address or
 *                [v6], with an optional port; no user, no percent
 *   length       one Content-Length of digits, or one Transfer-Encoding that
 *                is "chunked" (others 501, on 1.0 rejected), never both, and
 *                no tab in their lines
 *   chunks       hex digits, short well-formed extensions without spaces
 *                (ignored), trailers (checked and dropped, with the limits of
 *                headers but a count of their own; a header that decides
 *                about framing is rejected)
 *   Expect       100-continue alone (others 417); ignored on 1.0
 *
 * Owns nothing: slices point into the caller's bytes. Threads: any; there is
 * no state here. */

#include "base/buf.h"
#include "base/str.h"

enum {
    HTTP_METHOD_BYTES = 32,
    HTTP_CHUNK_LINE_BYTES = 256, /* size, extension and CRLF */
    HTTP_CHUNK_EXT_BYTES = 4096, /* all extensions of a body together */
    HTTP_DATE_BYTES = 30,        /* "Sun, 06 Nov 1994 08:49:37 GMT" and NUL */
};

struct http_header {
    struct str name, value;
};

/* Borrowed for the call that hands it over. Header names keep the client's
 * case; compare without case. The target is in origin form and is split at
 * '?', not decoded; query is empty when there is none. */
struct http_request {
    struct str method, path, query;
    const struct http_header *headers;
    size_t n_headers;
    struct str body;
    struct str peer;          /* "127.0.0.1:50312" */
    const uint8_t *peer_addr; /* as addr_bytes writes it */
    bool is_http_10;
    bool is_side; /* it came by net_listen_side */
};

/* The first header of that name; an empty str when there is none. */
struct str http_header(const struct http_request *rq, struct str name);

struct http_reply {
    int status;
    struct str content_type;
    const struct http_header *headers; /* besides what net adds itself */
    size_t n_headers;
    struct str body;
};

/* A value at the limit is accepted; one byte more is rejected. */
struct http_limits {
    size_t max_request_line_bytes; /* without CRLF */
    size_t max_header_bytes;       /* all header lines, each with its CRLF */
    size_t max_headers;
    size_t max_body_bytes; /* without the framing of chunks */
};

enum http_phase {
    HTTP_HEAD,
    HTTP_BODY,
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_DATA,
    HTTP_CHUNK_END,
    HTTP_TRAILER,
};

/* The state of reading one request. Zeroed at the beginning. */
struct http_parse {
    uint8_t phase; /* enum http_phase */
    bool is_http_10;
    bool keeps_alive;
    bool expects_continue;
    bool is_head;    /* the method is HEAD */
    uint8_t n_blank; /* bytes of the empty line before it, already removed */
    uint32_t n_headers;
    uint32_t n_trailers;
    enum err bad;      /* after HTTP_BAD: the error */
    const char *what;  /* its message; a constant without a full stop */
    size_t limit;      /* the value of the setting that the message ends in */
    size_t head_bytes; /* whole head, empty line included; 0 before its end */
    size_t body_bytes; /* of the body so far, framing taken out */
    size_t left;       /* bytes of the body or chunk still to come */
    size_t seen;       /* head: bytes examined. Else extensions, trailers */
    size_t line_at;    /* head: start of the unfinished line */
    size_t headers_at; /* head: start of the header lines */
};

enum http_step { HTTP_MORE, HTTP_DONE, HTTP_BAD };

/* Read on. `bytes` begins with the first byte of the request and holds *n;
 * between calls the caller appends to it and may move it. The framing of
 * chunks is removed in place, which makes *n smaller, and so is the empty line
 * before a request if nothing follows it yet: with HTTP_MORE and *n zero no
 * request has begun.
 *
 * HTTP_DONE fills rq, except its peer, with slices into bytes and slots; the
 * request took p->head_bytes + p->body_bytes, and bytes behind it belong to
 * the next. HTTP_BAD: p->bad and p->what say why, and reading cannot go on.
 * The result does not depend on how the bytes were split into calls.
 *
 * Limits may change between calls: an accepted head stays accepted, later
 * bytes are checked against the limits of their call. slots has room for
 * max_headers, also for those of the limits under which the request began. */
MUST_USE enum http_step
http_parse(struct http_parse *p, const struct http_limits *limits, char *bytes,
           size_t *n, struct http_header *slots, struct http_request *rq);

/* Parts of a reply's head that the reply itself does not have. */
struct http_framing {
    enum { HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE } how;
    struct str date;       /* from http_date */
    struct str connection; /* whole lines, each with its CRLF */
    struct str also;       /* the same, from http_write_header */
};

/* Whether a reply of that status has no body. */
static inline bool http_is_bodiless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

/* Write one header line. False: it would break the framing (a name with
 * anything except letters, digits, '-' and '_', a control byte in its value, a
 * header that only net may set), and was left out. */
bool http_write_header(struct buf *out, const struct http_header *h);

/* Write status line and headers, including the empty line. Headers that would
 * break the framing are left out; returns how many. */
size_t http_write_head(struct buf *out, const struct http_reply *r,
                       const struct http_framing *f);

/* Unix seconds in HTTP's format. */
void http_date(int64_t unix_s, char out[HTTP_DATE_BYTES]);

#endif
