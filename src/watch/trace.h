#ifndef WATCH_TRACE_H
#define WATCH_TRACE_H

/* traces: spans of finished work for an OpenTelemetry collector: OTLP/HTTP
 * with JSON bodies.
 *
 *     a turn of a task ends -> traces_task -> waiting -> a batch, posted
 *
 * Each turn of an agent has one span. The trace belongs to the root task, and
 * a span's parent is its task's parent, so a collector draws the same tree as
 * GET /api/tasks/ID/tree. Ids are computed from the tasks' ids: nothing is
 * stored for them, and they stay the same after a restart. A message sent with
 * a W3C traceparent header joins that trace. A span contains no message text
 * and no name of a user.
 *
 * Tasks never wait for traces. The queue is bounded: beyond that the oldest
 * spans are dropped, and counted. A failed post is repeated with growing
 * pauses. Spans that the collector rejects are dropped, and counted. Nothing
 * survives a restart. Without an endpoint nothing is done.
 *
 * Owns waiting spans, and copies of its settings. Borrows fetch. Threads: the
 * loop's. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "model/task.h"
#include "net/client/fetch.h"

enum {
    TRACE_ID_HEX = 32,
    SPAN_ID_HEX = 16,
    TRACE_HEADERS_MAX = 16,
    TRACE_SPAN_MAX = 16 * 1024,  /* bytes of one */
    TRACE_BODY_MAX = 512 * 1024, /* a batch larger than this takes no further
                                  * span */
    TRACE_LAST_MS = 2000,        /* for waiting spans when the server stops */
};

/* Settings that a reload may change. Copied. */
struct traces_settings {
    struct str endpoint; /* empty: off */
    struct str headers; /* a secret: "name=value,name=value", values with %XX */
    struct str service, node;
    int64_t max_waiting, batch; /* spans */
    int64_t delay_ms;           /* before a batch that is not full is posted */
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

MUST_USE struct traces *traces_new(const struct traces_opts *opts);

/* Another endpoint, or none: waiting spans go there, or are dropped. */
void traces_set(struct traces *tr, const struct traces_settings *s);

/* Record the turn of t that r ends at at_ms. `parent` is the task that
 * delegated it if that is in memory, else NULL. Borrows all for the call. */
void traces_task(struct traces *tr, const struct task *t,
                 const struct task_result *r, int64_t at_ms,
                 const struct task *parent);

/* Post waiting spans once more, for at most TRACE_LAST_MS; then call done,
 * once, from the loop. Call it before fetch is stopped. */
void traces_stop(struct traces *tr, void (*done)(void *ctx), void *ctx);
void traces_free(struct traces *tr); /* NULL is fine */

struct traces_stats {
    bool is_on;
    int64_t waiting;        /* spans, including those in flight */
    int64_t sent_total;     /* spans that were accepted */
    int64_t dropped_total;  /* the oldest of too many, or too large */
    int64_t refused_total;  /* spans that the collector rejected */
    int64_t failures_total; /* posts that are repeated */
};
struct traces_stats traces_stats(const struct traces *tr);

/* trace_span.c: the format. Pure. */

/* The trace id of a root task, and the span id of a task's turn; with a NUL. */
void trace_id_of(struct str root_id, char out[TRACE_ID_HEX + 1]);
void span_id_of(struct str task_id, int64_t turn, char out[SPAN_ID_HEX + 1]);

/* One span. */
void trace_span(struct buf *out, const struct task *t,
                const struct task_result *r, int64_t at_ms,
                const struct task *parent);

/* The text before the spans of a request, which commas separate, and behind
 * them. */
void trace_head(struct buf *out, struct str service, struct str node);
void trace_tail(struct buf *out);

#endif
