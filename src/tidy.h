#ifndef TIDY_H
#define TIDY_H

/* tidy: what is old is removed from the store, a little at a time: of every
 * room that keeps something. Nothing unfinished ever goes.
 *
 * Borrows the rooms. Threads: the loop's. */

#include "access/access.h"
#include "broker/broker.h"
#include "hire/hire.h"
#include "ledger/ledger.h"
#include "lessons/lessons.h"
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
    struct lessons *lessons; /* may be NULL: then none of its rows go */
    struct tasks *tasks;
    struct broker *broker;
    struct hires *hires;
    int64_t retention_ms, retention_rows;
    void (*on_tidy)(void *ctx); /* it begins, once in a minute */
    void *ctx;
};

struct tidy {
    struct tidy_opts opts;
    struct timer timer;
    int64_t at_ms; /* Unix time, when it began last */
    struct query oldest;
    struct tasks_keep keep;
    struct lessons_keep lessons_keep;
    struct tx tx;
};

/* From now on, by itself. */
void tidy_init(struct tidy *t, const struct tidy_opts *opts);

/* After the store has given back everything. Harmless for one that is zero. */
void tidy_fini(struct tidy *t);
void tidy_set(struct tidy *t, int64_t retention_ms, int64_t retention_rows);

#endif
