#ifndef HIRE_INTERNAL_H
#define HIRE_INTERNAL_H

/* What the files of hire/ share.
 *
 * A hire is one delegation in memory: from the commit that accepts it until
 * who asked has its result, or it is too old. It is in exactly one list of
 * struct hires, by its state; while its task is not over it also stands with
 * its parent, and counts for its agent. */

#include <assert.h>

#include "base/fault.h"
#include "base/map.h"
#include "hire/hire.h"

/* Who asks, as long as it has anything here. */
struct hirer {
    struct list open, ready;     /* struct hire */
    struct list waiting;         /* those of `open` whose turn has not come */
    struct list_node crowd_node; /* of h->crowded, while some wait */
    size_t n_open;               /* its delegations that are not over */
    size_t n_ready;              /* that it has not acknowledged */
    size_t n_claimed;            /* that are to be */
    size_t n_going;              /* of the open ones, whose turn has come */
    size_t name_bytes;
    char name[]; /* in lower case */
};

/* The children of one task. */
struct kids {
    struct list list;   /* struct hire, open */
    struct list claims; /* those that are to be */
    size_t id_bytes;
    char id[];
};

/* Why one is ended that nobody asked to end. */
enum ending { FOR_PARENT, FOR_LINE, FOR_TIME, FOR_ATTEMPT, N_ENDINGS };

struct hire {
    struct hires *h;
    struct delegation d;
    uint8_t body_hash[MSG_BODY_HASH_BYTES];
    struct list_node node; /* of h->by_state */
    struct hirer *hirer;
    struct list_node hirer_node; /* of its list by state */
    struct kids *kids;           /* while it is open, of its parent */
    struct list_node kid_node;
    struct hire *older, *newer;   /* of the same task, by turn */
    struct list_node ending_node; /* of h->ending */
    enum ending ending_for;
    struct list_node turn_node; /* of its hirer's `waiting` */
    struct list_node tell_node; /* of h->telling */
    struct list waiters;        /* struct hire_waiter */
    struct list behind;         /* struct msg: repeats, until it is known what
                                 * became of it */
    struct str request;         /* its key in by_request */
    bool is_claimed;            /* it is not entered yet */
    bool is_going;              /* while it is open: its turn has come */
    bool is_doomed;             /* its parent ended before it was entered */
    bool is_ending;             /* before its turn came: it does not begin */
    bool is_unwanted;           /* who waited has given up, and it with them */
    bool is_displaced;          /* its request's id is another's by now */
    bool is_told;               /* on a line, in this life of ours */
    bool is_had; /* they have it, and that is on its way to the disk */
    char strings[];
};

enum {
    HIRES_MAX = 10 * 1000 * 1000, /* settings have a limit before */
    HIRE_NOTHING_MS = 3600 * 1000,
};

struct hires {
    struct hire_opts opts;
    struct map by_key;     /* key -> hire */
    struct map by_task;    /* task id -> hire, of its last turn */
    struct map by_request; /* agent, line end, original id -> hire, claimed ones
                            * too */
    struct map hirers;     /* agent -> hirer */
    struct map kids;       /* parent's id -> kids */
    struct list by_state[DELEGATION_HAD + 1];
    size_t n, n_open, n_claimed, n_waiting;
    struct list crowded; /* struct hirer: some of theirs wait */
    struct list ending;  /* struct hire: to be ended */
    struct loop_job end_job;
    struct timer again;  /* for those that could not be, and for those of
                          * `telling` likewise; always set */
    struct list telling; /* struct hire: who asked is to hear of it */
    struct loop_job tell_job;
    bool is_tired;   /* nobody is told before `again` */
    bool is_reading; /* the result of: */
    struct id read_key;
    struct query task_query, turn_query;
    struct hire_stats stats;
};

/* ask.c */
void hire_count_refusal(struct hires *h, enum err e);

/* hire.c */

/* One that nothing refers to yet; freed by hire_drop. NULL: memory is gone. */
MUST_USE struct hire *hire_make(struct hires *h, const struct delegation *d);
/* Room for it, and it counts for who asks, and its request is known:
 * hire_enter cannot fail after that, and hire_unclaim gives all back, also
 * what a failed one took. */
MUST_USE enum err hire_claim(struct hire *x);
void hire_unclaim(struct hire *x);
void hire_enter(struct hire *x);
void hire_ready(struct hire *x); /* from open */
void hire_drop(struct hire *x);
const struct hirer *hirer_find(const struct hires *h, struct str agent);
struct hire *hire_of_key(const struct hires *h, struct str key);
struct hire *hire_of_task(const struct hires *h, struct str task_id);
struct hire *hire_of_request(const struct hires *h, struct str agent,
                             struct str original_id);

/* record.c */
void hire_from_row(struct delegation *d, const struct row *r);

/* down.c: what is ended without anybody's wish. */
void hire_end(struct hire *x, enum ending why);
void hire_end_below(struct hires *h, struct str task_id, enum ending why);
void hire_on_ending(struct loop_job *job);
void hire_on_again(struct timer *t);
/* Soon, what could not be done now. */
void hire_try_again(struct hires *h);

/* note.c */
const struct tx_op *hire_write_note(const struct hire *x, struct str text,
                                    struct tx *tx);
void hire_tell_by_notes(struct hires *h);

/* turn.c */

/* How many of that agent's may go at once; NULL: of one that is not there. */
int64_t hire_max_going(const struct hires *h, const struct agent *by);
/* Whether one of that depth stands in line where there is no room. */
bool hire_may_wait(int64_t depth);
/* It is not to go (any more), and nobody goes for it yet; or the next does. */
void hire_give_up_turn(struct hire *x);
void hire_turn_is_over(struct hire *x);

/* hear.c */

/* It is to be told, soon. */
void hire_tell(struct hire *x);
void hire_on_telling(struct loop_job *job);
/* Its original id may be another request's by now: who asked was told, and
 * uses the id anew. */
bool hire_gives_way(const struct hire *x);
/* It counts as had, without anybody waiting for that to be written. */
void hire_is_had(struct hire *x);

/* wait.c */

/* Those who wait hear of it; false: nobody waited. */
bool hire_tell_waiters(struct hire *x, const struct task *t);
/* Nobody hears any more. */
void hire_forget_waiters(struct hire *x);

#endif
