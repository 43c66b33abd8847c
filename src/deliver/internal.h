#ifndef DELIVER_INTERNAL_H
#define DELIVER_INTERNAL_H

/* What the roads share: one delivery as deliver.c sees it, and how a road
 * tells what its agent says.
 *
 * A road embeds struct delivery in a struct of its own. Whatever ends a
 * delivery (its result, or a cancel, also one from inside a callback) takes it
 * out of the table and calls the road's `stop`; its memory goes at the end of
 * the turn, so a road may look at it after every callback. */

#include "deliver/deliver.h"

struct delivery;

struct road_row {
    /* Begin: *out is a delivery of this road's own kind, zeroed but for what
     * the road put there. ERR_NOMEM: nothing was begun. */
    enum err (*start)(struct deliver *d, const struct task *t,
                      const struct agent_url *url, struct delivery **out);
    /* No callback any more: let go of timers, lists, sockets. */
    void (*stop)(struct delivery *y);
    /* The memory itself, after stop. */
    void (*free)(struct delivery *y);
};

struct delivery {
    struct deliver *deliver;
    const struct road_row *road;
    struct delivery_id id;
    struct list_node node; /* among those on their way, or those to be freed */
    bool is_over;
};

/* The deliveries of echo.c that have something to say. */
struct echoes {
    struct loop *loop;
    struct list ready;
    struct loop_job job;
    uint64_t turn; /* in which was said: */
    unsigned n_words;
    size_t n_bytes;
};

struct deliver {
    struct deliver_opts opts;
    struct map by_task; /* task id -> delivery */
    struct list on_the_way, over;
    struct loop_job reaper;
    struct echoes echoes;
    int64_t started_total, results_total, cancelled_total;
};

/* Each tells the owner; false when it cancelled the delivery meanwhile, so
 * that there is no more to say. */
MUST_USE bool delivery_working(struct delivery *y);
MUST_USE bool delivery_chunk(struct delivery *y, struct str text);

/* The last word: the delivery is over before the owner hears of it, so that
 * the same task may be started again from inside the callback. `r` may lie in
 * the delivery. */
void delivery_result(struct delivery *y, const struct task_result *r);

extern const struct road_row road_echo;

void echoes_init(struct echoes *e, struct loop *loop);
void echoes_fini(struct echoes *e);

#endif
