#ifndef GATE_NOTIFIERS_H
#define GATE_NOTIFIERS_H

/* notifiers: the channels of the rules, the key figures, and the hourly audit.
 * Borrows: everything in its options. Threads: loop thread only. */

#include "gate/audit.h"
#include "gate/rules/rules.h"
#include "watch/watch.h"

struct notifiers {
    struct loop *loop;
    struct store *store;
    struct channels *channels;
    struct figures *figures;
    struct audit *audit;
    bool has_stopped;
};

struct notifiers_opts {
    struct log *log;
    struct feed *feed;
    struct fetch *fetch;
    const char *folder;
    uint64_t seed[2];
    struct tasks *tasks;
    struct gatekeeper *gatekeeper;
    int64_t retention_ms, retention_rows;
};

/* The caller has set loop and store. */
void notifiers_open(struct notifiers *p, const struct notifiers_opts *opts);

/* Use the channels of these rules from now on. */
void notifiers_set(struct notifiers *p, const struct gate_rules *rules);

/* Runs the loop until nothing is pending and the cursors are stored. Call
 * before fetch and store are closed. */
void notifiers_stop(struct notifiers *p);

/* Call after the store and before the feed is closed. */
void notifiers_close(struct notifiers *p);

#endif
