#ifndef MODEL_TASK_H
#define MODEL_TASK_H

/* task: one piece of work for one agent, and the transitions of its status.
 *
 *     accepted -> held | escalated | dropped
 *              -> queued -> dispatched -> working -> completed | failed |
 *                                            ^       cancelled | expired
 *                                      input_required
 *
 * Held and escalated tasks are queued later, or end. A task can be taken from
 * its agent and given to another: it is then queued, held or escalated again.
 *
 * A task has turns: a follow-up puts a finished task back to queued with the
 * next turn's message. The row holds the current or last turn; earlier turns
 * are rows of their own, written when a follow-up arrives, so the usual task of
 * one turn costs one row.
 *
 * dispatched and working exist only in memory: after a restart it is unknown
 * how far an attempt came, so it counts as failed. Threads: any; constants and
 * the caller's data only. */

#include "base/id.h"
#include "model/caller.h"
#include "model/table.h"

/* The store keeps the numbers: never change one, add at the end. */
enum task_status {
    TASK_ACCEPTED = 1,
    TASK_HELD = 2,
    TASK_ESCALATED = 3,
    TASK_DROPPED = 4,
    TASK_QUEUED = 5,
    TASK_DISPATCHED = 6,
    TASK_WORKING = 7,
    TASK_INPUT_REQUIRED = 8,
    TASK_COMPLETED = 9,
    TASK_FAILED = 10,
    TASK_CANCELLED = 11,
    TASK_EXPIRED = 12,
};

enum { N_TASK_STATUS = 13 };

/* "completed". */
struct str task_status_name(enum task_status s);

/* Zero if there is no such status. */
enum task_status task_status_of(struct str name);

/* The visible status: a member of a batch shows the status of the batch. */
struct task;
enum task_status task_shown(const struct task *t);

/* The task has ended; only a follow-up can change it. */
bool task_is_over(enum task_status s);

/* The gate holds it, or a person must look at it; its time limit is
 * suspended. */
static inline bool task_waits(enum task_status s)
{
    return s == TASK_HELD || s == TASK_ESCALATED;
}

/* Whether that transition is allowed. */
bool task_may_move(enum task_status from, enum task_status to);

/* Whether a transition to `to` is stored. The others change only memory and are
 * reported to the task's listeners. */
bool task_move_is_durable(enum task_status to);

enum task_priority {
    PRIORITY_URGENT = 0,
    PRIORITY_HIGH = 1,
    PRIORITY_NORMAL = 2,
    PRIORITY_LOW = 3,
};

struct str task_priority_name(enum task_priority p);
/* False if there is no such priority; *out is then untouched. */
MUST_USE bool task_priority_of(struct str name, enum task_priority *out);

/* The result of a turn. Borrowed strings. */
struct task_result {
    enum task_status status; /* completed, failed, cancelled or expired */
    struct str text;         /* the agent's answer */
    struct str metadata;     /* a raw JSON object; may be empty */
    struct str error_code;   /* "timeout"; empty if it succeeded */
    struct str error;        /* the message */
    struct str by;           /* the user who requested it, if any: reported
                              * in the feed, not stored */
};

/* The end of a turn, for the modules that add to its tx and settle it. */
struct task;
struct turn_end {
    const struct task *task; /* to settle: without a task in memory, the id and
                              * the turn only */
    const struct task_result *result;
    /* To add to the tx: */
    struct str payee; /* earns the price; empty: the platform */
    int64_t at_ms;
    bool is_unpaid; /* the ledger is inconsistent: no money moves */
};

/* One utterance of a conversation. */
struct task_said {
    bool is_agents; /* by the agent; otherwise by the user */
    struct str text;
    int64_t seq, turn; /* of its task */
};

/* The row, as in the store and in memory. The creator of the struct owns the
 * strings; missing ones are empty. */
struct task {
    int64_t seq;   /* assigned by the store: newer tasks have larger ones */
    int64_t place; /* order of acceptance of every turn; orders the queues */
    struct id id;  /* task_… */
    struct id message_id;  /* msg_… of the current turn */
    struct id decision_id; /* dec_… that chose the agent of this turn; empty
                            * in turns from before it was stored */
    struct str conversation_id;
    struct str requester; /* the sending principal */
    struct str root_user; /* the user it is for, and who pays */
    struct str agent;
    struct str skill;
    struct str order_key; /* tasks with the same key run one after the other */
    enum task_priority priority;
    enum task_status status;
    int64_t version; /* incremented by every durable transition: the guard */
    int64_t turn;    /* from 1 */
    int64_t attempt; /* of this turn, from 1; 0 before the first */
    int64_t interrupted; /* attempts of this turn that a server's end cut
                          * short, except the first one */
    struct str text;     /* the message */
    bool is_envelope;    /* the text is an envelope, as JSON */
    struct str metadata, source; /* raw JSON objects */
    int64_t created_ms, updated_ms, deadline_ms, finished_ms; /* Unix time */
    int64_t budget_ms;       /* deadline_ms minus the start of the turn */
    int64_t started_ms;      /* when an agent first got this turn; zero: not
                              * yet; stored once the turn has ended */
    struct str by_agent;     /* the delegating agent; empty: a person */
    struct str parent_id;    /* the delegating task */
    struct str root_id;      /* the task at the top, sent by a person; empty:
                              * this one */
    struct str chain;        /* JSON: the agents above it, ["first","next"] */
    int64_t depth;           /* its length */
    int64_t price_micros;    /* of this turn, at its acceptance */
    struct str payee;        /* the agent's creator then; empty: the platform */
    struct id tree;          /* msg_… at the top of this turn and all its
                              * delegations; empty in turns from before it
                              * was stored */
    int64_t ceiling_micros;  /* cost limit of that tree, once it has one */
    struct str talk;         /* of delegations: root_user's conversation with
                              * the message at the top of its tree; empty:
                              * not a delegation, or from before it was
                              * stored */
    struct str trace;        /* "TRACE-SPAN", if the root was sent with such
                              * a header; delegations inherit it */
    struct str payer_org;    /* root_user's at the acceptance of this turn:
                              * its budgets count it; empty: none, or no
                              * price */
    struct str priced_agent; /* likewise, the agent of that price: another
                              * may have got the task since */
    struct str owner_node;   /* the node that works on it; see epoch */
    int64_t epoch; /* the start of that node that wrote the row: every later
                    * start counts as one more attempt */
    int64_t lease_until_ms;
    /* status shown for a member of a batch: queued or dispatched, like the
     * batch; zero: not in a batch. In memory only: its own status is held */
    enum task_status carried;
    struct task_result result; /* status equals the task's once it has ended */
};

/* The session as the working agent knows it. The row of a delegation has
 * "AGENT@USER/SESSION", because sessions are private to an agent and a user. */
struct str task_session(const struct task *t);

/* The task at the top of its tree: itself, or the one that a person sent. */
static inline struct str task_root(const struct task *t)
{
    return t->root_id.n ? t->root_id : str_of(t->id.text);
}

/* Whether c may see it: its requester, its root user and admins may. For all
 * others it does not exist. */
bool task_is_for(const struct task *t, const struct caller *c);

#endif
