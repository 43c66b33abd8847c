#ifndef POSTING_H
#define POSTING_H

/* posting: what the rules say of channels, told to watch; the figures; and the
 * audit, once an hour. Borrows the rooms. Threads: the loop's. */

#include "broker/audit.h"
#include "gate/gate.h"
#include "watch/watch.h"

struct posting {
    struct loop *loop;
    struct store *store;
    struct channels *channels;
    struct figures *figures;
    struct audit *audit;
    bool has_stopped;
};

struct posting_opts {
    struct log *log;
    struct feed *feed;
    struct fetch *fetch;
    const char *folder;
    uint64_t seed[2];
    struct tasks *tasks;
    struct broker *broker;
    int64_t retention_ms, retention_rows;
};

/* loop and store are filled in. After an error too, posting_close follows. */
MUST_USE enum err posting_open(struct posting *p,
                               const struct posting_opts *opts,
                               struct why *why);

/* Channels as these rules have them, from now on. */
void posting_set(struct posting *p, const struct gate_rules *rules);

/* Turns the loop until nothing is under way and the cursors are with the
 * store; before fetch and store are closed. */
void posting_stop(struct posting *p);

/* After the store, before the feed. */
void posting_close(struct posting *p);

#endif
