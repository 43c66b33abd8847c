#ifndef BROKER_AUDIT_H
#define BROKER_AUDIT_H

/* audit: what was accepted against what is there. Everything that the feed says
 * was accepted must be a row; a row that is not over must be looked after: its
 * task in memory, and where it is held a hold that waits, where it is escalated
 * an open escalation. Whatever is not so is a loss, and named. What nobody lost
 * but somebody must look at is a stray: the row of a hold whose task is not
 * held, a hold whose time is over, an open escalation whose task is over.
 *
 * Reads page by page, one at a time, and changes nothing. What seems wrong is
 * read again before it counts, when memory has caught up with the store: it is
 * read while things move, and a row that has moved meanwhile is not lost.
 * Threads: the loop's. */

#include "broker/broker.h"

struct audit;

enum {
    AUDIT_MS = 60 * 60 * 1000,
    AUDIT_NAMES = 32, /* losses that are named; the rest is counted */
};

struct audit_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct tasks *tasks;
    struct broker *broker;
    /* Entries that retention may be about to remove do not count: older than
     * so long, and beyond so many rows. Zero: no such rule. */
    int64_t retention_ms, retention_rows;
};

/* The first runs soon after the start, and what is held was looked at by then.
 */
enum { AUDIT_FIRST_MS = 5 * 1000, AUDIT_OVERDUE_MS = 60 * 1000 };

struct audit_loss {
    struct id task_id;
    const char *what;
};

struct audit_report {
    int64_t began_ms, ended_ms; /* zero: none has ended yet */
    int64_t accepted;           /* that the feed still tells of */
    int64_t over, unfinished;   /* of those: rows that are, and are not */
    int64_t held, escalated;    /* of all rows that are not over */
    int64_t lost;
    struct audit_loss losses[AUDIT_NAMES];
    int64_t stray;
    struct audit_loss strays[AUDIT_NAMES];
    enum err err; /* why it did not come to an end; then lost is unknown */
};

/* One every AUDIT_MS. NULL: memory. */
MUST_USE struct audit *audit_new(const struct audit_opts *opts);

/* Before the store is closed; audit_free after. */
void audit_stop(struct audit *a);
void audit_free(struct audit *a);

/* Run now, unless one is under way. */
void audit_run(struct audit *a);
bool audit_is_running(const struct audit *a);

/* The last that ended. */
const struct audit_report *audit_report(const struct audit *a);

#endif
