#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

/* watch: what can be seen from outside of what happens inside.
 *
 * Metrics are Prometheus text (version 0.0.4), written when asked for from
 * figures that the rooms keep themselves. Threads: the loop's. */

#include "base/buf.h"
#include "base/str.h"

#define WATCH_METRICS_TYPE STR("text/plain; version=0.0.4; charset=utf-8")

enum { WATCH_FILES_MS = 1000 };

/* One family: its help and type line; then its samples, one by one. Names and
 * help are ours and constant. */
void metric_family(struct buf *out, const char *name, const char *type,
                   const char *help);

/* labels: `status="2xx",kind="x"` or NULL; ours too, and as they are. */
void metric_int(struct buf *out, const char *name, const char *labels,
                int64_t value);
void metric_real(struct buf *out, const char *name, const char *labels,
                 double value);

/* A family with one sample, the usual case. */
void metric_counter(struct buf *out, const char *name, const char *help,
                    int64_t value);
void metric_gauge(struct buf *out, const char *name, const char *help,
                  int64_t value);

/* The open files as last counted. Counting them takes a step for each, which
 * whoever may ask often must not cost every time. Zeroed at the beginning. */
struct watch_files {
    bool is_known;
    int64_t n, counted_at_ms;
};

/* The process_* families that Prometheus's own clients have: CPU time, memory,
 * open files (counted at most once in WATCH_FILES_MS), start time. What cannot
 * be read is left out. */
void metric_process(struct buf *out, struct watch_files *files, int64_t now_ms);

#endif
