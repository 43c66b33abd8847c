#ifndef WALK_TIDY_H
#define WALK_TIDY_H

/* tidy: removes expired rows from the store, a little at a time, for every
 * module that stores something. Unfinished work is never removed.
 *
 * Borrows the modules in its options. Threads: loop thread only. */

#include "access/access.h"
#include "delegation/delegation.h"
#include "gate/gatekeeper.h"
#include "learn/learning.h"
#include "ledger/ledger.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

struct tidy_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct learning *learning; /* may be NULL: its rows are kept */
    struct tasks *tasks;
    struct gatekeeper *gatekeeper;
    struct delegations *delegations;
    int64_t retention_ms, retention_rows;
};

struct tidy {
    struct tidy_opts opts;
    struct timer timer;
    int64_t at_ms; /* Unix time of the last start */
    struct query oldest;
    struct tasks_keep keep;
    struct learning_keep learning_keep;
    struct tx tx;
};

/* Start; it runs by itself from now on. */
void tidy_init(struct tidy *t, const struct tidy_opts *opts);

/* Call after the store has given everything back. Harmless if *t is zero. */
void tidy_fini(struct tidy *t);
void tidy_set(struct tidy *t, int64_t retention_ms, int64_t retention_rows);

#endif
