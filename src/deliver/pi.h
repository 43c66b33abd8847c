#ifndef DELIVER_PI_H
#define DELIVER_PI_H

/* What the files of the dialect pi share: dialect_pi.c, pi_ask.c and
 * pi_tools.c. */

#include "deliver/pool.h"

enum {
    PI_USES_MAX = 16,    /* calls of tools at once */
    PI_CALLS_MAX = 1000, /* of one task */
    PI_RESULT_BYTES = 2 * 1024 * 1024,
};

/* One call of a tool. */
struct pi_use {
    struct hand *hand;
    enum { USE_NONE, USE_RUNS, USE_WAITS /* for room to be answered */ } state;
    void *handle; /* RUNS: deliver_opts.on_tool's */
    struct buf answer;
    size_t n_id;
    char id[WIRE_ID_MAX]; /* pi's own, as it stands */
};

/* Those of the task in hand. */
struct pi_uses {
    struct pi_use list[PI_USES_MAX];
    size_t n_calls; /* in all */
};

/* pi_ask.c */
void pi_asked(struct hand *h, struct pi_uses *uses, struct arena *scratch,
              struct str line);
enum err pi_answer(struct hand *h, struct str handle,
                   const struct input_answer *a);

/* The line by which what pi called `handle` is answered. */
void pi_put_answer(struct buf *out, struct str handle,
                   const struct input_answer *a);

/* pi_tools.c */

/* The file that makes pi offer them, for pools->pi_tools; zero: this pi is not
 * to. */
enum err pi_tools_file(struct pool *p, int *file, struct why *why);

/* One is called, in the words of pi_tools.js. False: there is nobody to do it,
 * and nothing was said to pi. */
MUST_USE bool pi_used(struct hand *h, struct pi_uses *all,
                      struct arena *scratch, struct str id, struct str call);
void pi_uses_room(struct pi_uses *all);
void pi_uses_stop(struct hand *h, struct pi_uses *all); /* the task is over */

#endif
