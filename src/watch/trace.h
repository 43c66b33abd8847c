#ifndef WATCH_TRACE_H
#define WATCH_TRACE_H

/* traces: what was done under each root, as spans for a collector of
 * OpenTelemetry's: OTLP/HTTP with JSON bodies.
 *
 *     a turn of a task is over -> traces_task -> waiting -> a batch, posted
 *
 * One span for each turn that an agent had or should have had. The trace is the
 * root's, and each span has its parent's for a parent, so that a collector
 * draws the same tree as GET /api/tasks/ID/tree. Ids are computed from the
 * tasks' own: nothing has to be remembered for them, and after a restart they
 * are the same. Who sends a message with a W3C traceparent header has the root
 * in their own trace. No text of anybody is in a span, nor the name of a user.
 *
 * Nobody waits for it. What waits is bounded: beyond that the oldest are
 * dropped, and counted. What cannot be taken now is posted again later, with
 * pauses that grow; what the collector will never take is dropped, and counted.
 * Nothing is kept over a restart. Without an endpoint nothing is done at all.
 *
 * Owns what waits, and copies of its settings. Borrows fetch. Threads: the
 * loop's. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "fetch/fetch.h"
#include "model/task.h"

enum {
    TRACE_ID_HEX = 32,
    SPAN_ID_HEX = 16,
    TRACE_HEADERS_MAX = 16,
    TRACE_SPAN_MAX = 16 * 1024,  /* bytes of one */
    TRACE_BODY_MAX = 512 * 1024, /* no further span in a batch after this */
    TRACE_LAST_MS = 2000,        /* for what waits when the server ends */
};

/* What a reload may change. Copied. */
struct traces_settings {
    struct str endpoint; /* empty: off */
    struct str headers; /* a secret: "name=value,name=value", values with %XX */
    struct str service, node;
    int64_t max_waiting, batch; /* spans */
    int64_t delay_ms;           /* before a batch that is not full goes */
    int64_t timeout_ms;         /* of one post */
};

struct traces_opts {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch;
    struct rand rand; /* for jitter */
    struct traces_settings settings;
};

struct traces;

/* NULL: memory is gone. */
MUST_USE struct traces *traces_new(const struct traces_opts *opts);

/* Another endpoint, or none: what waits goes there, or nowhere. Without memory
 * for it, it is off, and that is logged. */
void traces_set(struct traces *tr, const struct traces_settings *s);

/* The turn of t that r ends, at that time. `parent` is the task it was
 * delegated from if that is in memory, else NULL. Borrows all for the call. */
void traces_task(struct traces *tr, const struct task *t,
                 const struct task_result *r, int64_t at_ms,
                 const struct task *parent);

/* What waits is posted once more, for TRACE_LAST_MS at most; then done, once,
 * from the loop. Before fetch is stopped. */
void traces_stop(struct traces *tr, void (*done)(void *ctx), void *ctx);
void traces_free(struct traces *tr); /* NULL is fine */

struct traces_stats {
    bool is_on;
    int64_t waiting;        /* spans, also those that are being posted */
    int64_t sent_total;     /* spans that were taken */
    int64_t dropped_total;  /* the oldest of too many, or memory was gone */
    int64_t refused_total;  /* spans that the collector would not have */
    int64_t failures_total; /* posts that are tried again */
};
struct traces_stats traces_stats(const struct traces *tr);

/* trace_span.c: what is sent. Pure. */

/* Of the root's id, and of a task's and its turn; with a NUL. */
void trace_id_of(struct str root_id, char out[TRACE_ID_HEX + 1]);
void span_id_of(struct str task_id, int64_t turn, char out[SPAN_ID_HEX + 1]);

/* One span. */
void trace_span(struct buf *out, const struct task *t,
                const struct task_result *r, int64_t at_ms,
                const struct task *parent);

/* What stands before the spans of a request, which are separated by commas, and
 * behind them. */
void trace_head(struct buf *out, struct str service, struct str node);
void trace_tail(struct buf *out);

#endif
