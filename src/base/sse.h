#ifndef BASE_SSE_H
#define BASE_SSE_H

/* sse: server-sent events out of bytes, however they arrive, as the HTML
 * standard reads them. What is not finished by an empty line does not count.
 * Owns what it has gathered. Threads: one at a time. */

#include "base/buf.h"

struct sse_event {
    struct str id;   /* the latest that came, maybe with an event before */
    struct str type; /* "message" when none was given */
    struct str data; /* without the line end behind it */
};

/* One event; its strings live for the call. False: no more of them. */
typedef bool sse_fn(void *ctx, const struct sse_event *e);

enum { SSE_ID_MAX = 256 };

struct sse {
    struct buf line, data, type, id;
    bool was_cr;  /* a line end that may go on with LF */
    bool is_data; /* there was a data field */
    bool is_begun;
    sse_fn *fn;
    void *ctx;
};

/* An event, and each of its lines, may have event_bytes at most. */
void sse_init(struct sse *s, size_t event_bytes, sse_fn *fn, void *ctx);
void sse_fini(struct sse *s);

/* Another connection begins: forget half an event, keep the id. */
void sse_restart(struct sse *s);

/* Where a line that begins at `from` ends: its CR or LF; bytes.n when neither
 * is there. */
size_t sse_line_end(struct str bytes, size_t from);

/* ERR_LIMIT: an event is too large. ERR_GONE: fn wants no more. */
MUST_USE enum err sse_feed(struct sse *s, struct str bytes);

#endif
