#ifndef BASE_SSE_H
#define BASE_SSE_H

/* sse: parses server-sent events from bytes in any chunks, as the HTML standard
 * does. An event without its final empty line does not count. Owns the bytes it
 * has gathered. Threads: one at a time. */

#include "base/buf.h"

struct sse_event {
    struct str id;   /* the latest one, possibly from an earlier event */
    struct str type; /* "message" if none was given */
    struct str data; /* without the final line end */
};

/* One event; its strings live for the call. False: send no more. */
typedef bool sse_fn(void *ctx, const struct sse_event *e);

enum { SSE_ID_MAX = 256 };

struct sse {
    struct buf line, data, type, id;
    bool was_cr;  /* LF may still belong to the last line end */
    bool is_data; /* there was a data field */
    bool is_begun;
    sse_fn *fn;
    void *ctx;
};

/* An event, and each of its lines, may have event_bytes at most. */
void sse_init(struct sse *s, size_t event_bytes, sse_fn *fn, void *ctx);
void sse_fini(struct sse *s);

/* A new connection begins: forget an unfinished event, keep the id. */
void sse_restart(struct sse *s);

/* The position of the CR or LF that ends the line at `from`; bytes.n if there
 * is none. */
size_t sse_line_end(struct str bytes, size_t from);

/* ERR_LIMIT: an event is too large. ERR_GONE: fn returned false. */
MUST_USE enum err sse_feed(struct sse *s, struct str bytes);

#endif
