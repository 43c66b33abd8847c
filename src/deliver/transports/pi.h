#ifndef DELIVER_TRANSPORTS_PI_H
#define DELIVER_TRANSPORTS_PI_H

/* Declarations shared by the files of the dialect pi: dialect_pi.c, pi_ask.c
 * and pi_tools.c. */

#include "deliver/transports/pool.h"

enum {
    PI_USES_MAX = 16,    /* calls of tools at once */
    PI_CALLS_MAX = 1000, /* of one task */
    PI_RESULT_BYTES = 2 * 1024 * 1024,
};

/* One call of a tool. */
struct pi_use {
    struct pool_worker *pool_worker;
    enum { USE_NONE, USE_RUNS, USE_WAITS /* to send its answer */ } state;
    void *handle; /* USE_RUNS: of deliver_opts.on_tool */
    struct buf answer;
    size_t n_id;
    char id[WIRE_ID_MAX]; /* pi's id, raw JSON */
};

/* The calls of the current task. */
struct pi_uses {
    struct pi_use list[PI_USES_MAX];
    size_t n_calls; /* in all */
};

/* pi_ask.c */
void pi_asked(struct pool_worker *h, struct pi_uses *uses,
              struct arena *scratch, struct str line);
enum err pi_answer(struct pool_worker *h, struct str handle,
                   const struct input_answer *a);

/* The line that answers pi's request `handle`. */
void pi_put_answer(struct buf *out, struct str handle,
                   const struct input_answer *a);

/* pi_tools.c */

/* The file that makes pi offer the tools; zero: this pi gets none. */
enum err pi_tools_file(struct pool *p, int *file, struct why *why);

/* A call in the form of pi_tools.js. False: it cannot be run, and pi got no
 * answer. */
MUST_USE bool pi_used(struct pool_worker *h, struct pi_uses *all,
                      struct arena *scratch, struct str id, struct str call);
void pi_uses_room(struct pi_uses *all);
void pi_uses_stop(struct pool_worker *h,
                  struct pi_uses *all); /* the task is over */

#endif
