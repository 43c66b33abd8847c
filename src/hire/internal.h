#ifndef HIRE_INTERNAL_H
#define HIRE_INTERNAL_H

/* What the files of hire/ share.
 *
 * A hire is one delegation in memory: from the commit that accepts it until
 * who asked has its result, or it is too old. It is in exactly one list of
 * struct hires, by its state; while its task is not over it also stands with
 * its parent, and counts for its agent. */

#include "base/fault.h"
#include "base/map.h"
#include "hire/hire.h"

struct hirer {
    size_t n_open;    /* its delegations that are not over */
    size_t n_claimed; /* that are to be */
    size_t name_bytes;
    char name[]; /* in lower case */
};

/* The children of one task. */
struct kids {
    struct list list; /* struct hire */
    size_t n_claimed; /* that are to be */
    size_t id_bytes;
    char id[];
};

struct hire {
    struct hires *h;
    struct delegation d;
    uint8_t body_hash[MSG_BODY_HASH_BYTES];
    struct list_node node; /* of h->by_state */
    struct hirer *hirer;   /* while it is open */
    struct kids *kids;     /* likewise, of its parent */
    struct list_node kid_node;
    struct list_node ending_node; /* of h->ending */
    struct str request;           /* its key in by_request */
    bool is_claimed;              /* it is not entered yet */
    char strings[];
};

enum { HIRES_MAX = 10 * 1000 * 1000 }; /* settings have a limit before */

struct hires {
    struct hire_opts opts;
    struct map by_key;     /* key -> hire */
    struct map by_task;    /* task id -> hire, of its last turn */
    struct map by_request; /* agent, line end, original id -> hire */
    struct map hirers;     /* agent -> hirer */
    struct map kids;       /* parent's id -> kids */
    struct list by_state[DELEGATION_HAD + 1];
    size_t n, n_claimed;
    struct list ending; /* struct hire: to be ended, as their parent was */
    struct loop_job end_job;
};

/* hire.c */

/* One that nothing refers to yet; freed by hire_drop. NULL: memory is gone. */
MUST_USE struct hire *hire_make(struct hires *h, const struct delegation *d);
/* Room for it, and it counts for who asks: hire_enter cannot fail after that,
 * and hire_unclaim gives all back, also what a failed one took. */
MUST_USE enum err hire_claim(struct hire *x);
void hire_unclaim(struct hire *x);
void hire_enter(struct hire *x);
void hire_move(struct hire *x, enum delegation_state to);
void hire_drop(struct hire *x);
MUST_USE struct hirer *hirer_of(struct hires *h, struct str agent);
void hirer_look(struct hires *h, struct hirer *r);
struct hire *hire_of_task(const struct hires *h, struct str task_id);
struct hire *hire_of_request(const struct hires *h, struct str agent,
                             struct str original_id);

/* down.c: what hangs on a task that came to no good end. */
void hire_end_below(struct hires *h, struct str task_id);
void hire_on_ending(struct loop_job *job);

#endif
