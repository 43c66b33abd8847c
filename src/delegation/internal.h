#ifndef DELEGATION_INTERNAL_H
#define DELEGATION_INTERNAL_H

/* Declarations shared by the files of delegation/.
 *
 * struct live_delegation is a delegation in memory, from the commit that
 * accepts it until its result is acknowledged or expires. It is in exactly one
 * list of struct delegations, by its state. While its task is not over it is
 * also in the list of its parent and counts for the requesting agent. */

#include <assert.h>

#include "base/fault.h"
#include "base/share.h"
#include "delegation/delegation.h"
#include "model/record.h"

/* Columns that hold their member, and columns with a rule of their own. */
enum delegation_part { DELEGATION_PLAIN = 1, DELEGATION_BY_RULE = 2 };

/* A requesting agent, as long as it has delegations. */
struct delegator {
    struct share share;      /* by its name in lower case */
    struct list open, ready; /* struct live_delegation */
    struct list waiting;     /* those of `open` that wait for their turn */
    struct list_node
        crowd_node;   /* of h->crowded, while `waiting` is not empty */
    size_t n_open;    /* not over */
    size_t n_ready;   /* over and not acknowledged */
    size_t n_claimed; /* claimed, not entered yet */
    size_t n_active;  /* open ones whose turn has come */
};

/* The children of one task. */
struct children {
    struct share share; /* by the id of the task */
    struct list list;   /* struct live_delegation, open */
    struct list claims; /* claimed, not entered yet */
};

/* Why the server ends a delegation. */
enum ending { FOR_PARENT, FOR_LINE, FOR_TIME, FOR_ATTEMPT, N_ENDINGS };

struct live_delegation {
    struct delegations *h;
    struct delegation d;
    uint8_t body_hash[MSG_BODY_HASH_BYTES];
    struct list_node node; /* of h->by_state */
    struct delegator *delegator;
    struct list_node delegator_node; /* of its `open` or `ready` */
    struct children *siblings; /* while open: the children of its parent */
    struct list_node child_node;
    struct live_delegation *older,
        *newer;                   /* of the same task, ordered by turn */
    struct list_node ending_node; /* of h->ending */
    enum ending ending_for;
    struct list_node turn_node; /* of its delegator's `waiting` */
    struct list_node tell_node; /* of h->telling */
    struct list waiters;        /* struct delegation_waiter */
    struct list behind; /* struct msg: repeats that wait for the outcome */
    struct str request; /* key in by_request */
    bool is_claimed;    /* not entered yet */
    bool is_active;     /* open, and its turn has come */
    bool is_doomed;     /* the parent ended before this was entered */
    bool is_ending;     /* it ends before its turn came, so it must not start */
    bool is_unwanted;   /* the waiting requester gave up */
    bool is_displaced;  /* another request has its original id now */
    bool is_told;       /* sent on a connection, since the start */
    bool is_had;        /* acknowledged; the commit is under way */
    char strings[];
};

enum {
    DELEGATIONS_MAX = 10 * 1000 * 1000, /* settings have lower limits */
    DELEGATION_NOTHING_MS = 3600 * 1000,
};

struct delegations {
    struct delegation_opts opts;
    struct map by_key;     /* key -> delegation */
    struct map by_task;    /* task id -> delegation of its last turn */
    struct map by_request; /* agent, newline, original id -> delegation, claimed
                              ones too */
    struct shares delegators, children;
    struct list by_state[DELEGATION_HAD + 1];
    size_t n, n_open, n_claimed, n_waiting;
    struct list crowded; /* struct delegator with waiting delegations */
    struct list ending;  /* struct live_delegation to end */
    struct loop_job end_job;
    struct timer again; /* retries `ending` and `telling`; always set */
    struct list
        telling; /* struct live_delegation whose result is to be reported */
    struct loop_job tell_job;
    bool is_tired;   /* no report before `again` fires */
    bool is_reading; /* reading the result of read_key */
    struct id read_key;
    struct query task_query, turn_query;
    struct delegation_stats stats;
};

/* permission.c */
void delegation_count_refusal(struct delegations *h, enum err e);

/* delegation.c */

/* A copy of *d that is in no table yet; freed by delegation_drop or
 * delegation_unclaim. */
MUST_USE struct live_delegation *delegation_make(struct delegations *h,
                                                 const struct delegation *d);
/* Reserve everything that delegation_enter needs, so that it cannot fail, count
 * x for its agent, and index its request. ERR_NOMEM: nothing is reserved.
 * delegation_unclaim releases it all and frees x; it may follow a failed
 * claim. */
MUST_USE enum err delegation_claim(struct live_delegation *x);
void delegation_unclaim(struct live_delegation *x);
void delegation_enter(struct live_delegation *x);
void delegation_ready(struct live_delegation *x); /* from DELEGATION_OPEN */
void delegation_drop(struct live_delegation *x);
const struct delegator *delegator_find(const struct delegations *h,
                                       struct str agent);
struct live_delegation *delegation_of_key(const struct delegations *h,
                                          struct str key);
struct live_delegation *delegation_of_task(const struct delegations *h,
                                           struct str task_id);
struct live_delegation *delegation_of_request(const struct delegations *h,
                                              struct str agent,
                                              struct str original_id);

/* delegation_record.c */
void delegation_from_row(struct delegation *d, const struct row *r);

/* cancel_tree.c: delegations that the server ends. */

/* The agent of t can continue it after its connection or the server was
 * away. */
bool delegation_agent_comes_back(const struct delegations *h,
                                 const struct task *t);
void delegation_end(struct live_delegation *x, enum ending why);
void delegation_end_below(struct delegations *h, struct str task_id,
                          enum ending why);
void delegation_on_ending(struct loop_job *job);
void delegation_on_again(struct timer *t);
/* Retry in a second. */
void delegation_try_again(struct delegations *h);

/* result_note.c */
const struct tx_op *delegation_write_note(const struct live_delegation *x,
                                          struct str text, struct tx *tx);
void delegation_tell_by_notes(struct delegations *h);

/* delegation_turn.c */

/* maxConcurrent for that agent; NULL: an agent that is gone. */
int64_t delegation_max_active(const struct delegations *h,
                              const struct agent *by);
/* A delegation of that depth may wait for its turn. */
bool delegation_may_wait(int64_t depth);
/* delegation_give_up_turn: x gives up its turn or its place in the queue.
 * delegation_turn_is_over: and the next one starts. */
void delegation_give_up_turn(struct live_delegation *x);
void delegation_turn_is_over(struct live_delegation *x);

/* report_result.c */

/* Report the result soon. */
void delegation_tell(struct live_delegation *x);
void delegation_on_telling(struct loop_job *job);
/* Another request may take its original id: the requester was told the
 * result. */
bool delegation_gives_way(const struct live_delegation *x);
/* Mark it acknowledged, without waiting for the commit. */
void delegation_is_had(struct live_delegation *x);

/* result_wait.c */

/* Give the result to all waiters; false: there were none. */
bool delegation_tell_waiters(struct live_delegation *x, const struct task *t);
/* Remove the waiters without calling them. */
void delegation_forget_waiters(struct live_delegation *x);

#endif
