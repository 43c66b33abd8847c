#ifndef GATE_AUDIT_H
#define GATE_AUDIT_H

/* audit: compares what was accepted with what exists. Every message that the
 * feed reports as accepted must have a row. A row that is not over must have
 * its task in memory, with a hold if it is held, or an open escalation if it is
 * escalated. Anything else is a loss, and is named. Leftovers are not lost, but
 * a person should look at them: the row of a hold whose task is not held, a
 * hold whose time is over, an open escalation whose task is over.
 *
 * Reads one page at a time and changes nothing. A suspect is read again before
 * it counts, once memory has caught up with the store: rows change during the
 * audit, and one that has changed meanwhile is not lost. Threads: loop thread
 * only. */

#include "gate/gatekeeper.h"

struct audit;

enum {
    AUDIT_MS = 60 * 60 * 1000,
    AUDIT_NAMES = 32, /* losses that are named; the others are counted */
};

struct audit_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct tasks *tasks;
    struct gatekeeper *gatekeeper;
    /* Feed entries that retention may be removing do not count: older than
     * retention_ms, or beyond retention_rows. Zero: no such limit. */
    int64_t retention_ms, retention_rows;
};

/* The first audit runs soon after the start, when every hold has been looked
 * at. */
enum { AUDIT_FIRST_MS = 5 * 1000, AUDIT_OVERDUE_MS = 60 * 1000 };

struct audit_loss {
    struct id task_id;
    const char *what;
};

struct audit_report {
    int64_t began_ms, ended_ms; /* zero: none has ended yet */
    int64_t accepted;           /* entries in the feed */
    int64_t over, unfinished;   /* of these: rows that are over, and not over */
    int64_t held, escalated;    /* of all rows that are not over */
    int64_t lost;
    struct audit_loss losses[AUDIT_NAMES];
    int64_t n_leftovers;
    struct audit_loss leftovers[AUDIT_NAMES];
    enum err err; /* why it was aborted; `lost` is then unknown */
};

/* An audit every AUDIT_MS. Never NULL. */
MUST_USE struct audit *audit_new(const struct audit_opts *opts);

/* Call before the store is closed; audit_free after. */
void audit_stop(struct audit *a);
void audit_free(struct audit *a);

/* Run now, unless one is running. */
void audit_run(struct audit *a);
bool audit_is_running(const struct audit *a);

/* The last audit that ended. */
const struct audit_report *audit_report(const struct audit *a);

#endif
