#ifndef MODEL_TASK_H
#define MODEL_TASK_H

/* task: one piece of work for one agent, and how its status may move.
 *
 *     accepted -> held | escalated | dropped
 *              -> queued -> dispatched -> working -> completed | failed |
 *                                            ^       cancelled | expired
 *                                      input_required
 *
 * held and escalated ones come to be queued, or end. What an agent has may be
 * taken from it for another: it is then queued, held or escalated again.
 *
 * A task has turns: a follow-up puts a finished task back to queued with the
 * next turn's message. The row holds the turn that is going on, or was the
 * last; those before it are rows of their own, written when a follow-up
 * comes, so that the usual task of one turn costs one row.
 *
 * dispatched and working are in memory only: after a restart nobody knows how
 * far an attempt came, so it counts as one that failed. Threads: any;
 * everything here is constant or the caller's. */

#include "base/id.h"
#include "model/caller.h"
#include "model/table.h"

/* The numbers are kept in the store: never change one, add at the end. */
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

/* Zero when there is no such status. */
enum task_status task_status_of(struct str name);

/* The status that others are told: what is part of a batch is where that is. */
struct task;
enum task_status task_shown(const struct task *t);

/* Nothing more happens to it, unless a follow-up comes. */
bool task_is_over(enum task_status s);

/* It is kept back, by the gate or until a person has seen it; its time does
 * not run. */
static inline bool task_waits(enum task_status s)
{
    return s == TASK_HELD || s == TASK_ESCALATED;
}

/* Whether the one mover may take it from there to here. */
bool task_may_move(enum task_status from, enum task_status to);

/* Whether the move is written down. The others change memory only, and are
 * told to whoever listens to the task. */
bool task_move_is_durable(enum task_status to);

enum task_priority {
    PRIORITY_URGENT = 0,
    PRIORITY_HIGH = 1,
    PRIORITY_NORMAL = 2,
    PRIORITY_LOW = 3,
};

struct str task_priority_name(enum task_priority p);
/* False when there is no such priority; *out is then untouched. */
MUST_USE bool task_priority_of(struct str name, enum task_priority *out);

/* What came of a turn. Borrowed strings. */
struct task_result {
    enum task_status status; /* completed, failed, cancelled or expired */
    struct str text;         /* what the agent said */
    struct str metadata;     /* a JSON object as it stands; may be empty */
    struct str error_code;   /* "timeout"; empty when it went well */
    struct str error;        /* in words */
    struct str by;           /* who wished it, when somebody did: told in the
                              * feed, not kept with the task */
};

/* One of the two who speak in a conversation, and what they said. */
struct task_said {
    bool is_agents; /* else the user's */
    struct str text;
    int64_t seq, turn; /* of the task that it was said in */
};

/* The row, as it is in the store and in memory. Strings belong to whoever
 * made the struct; optional ones are empty when they are not there. */
struct task {
    int64_t seq;          /* given by the store: newer tasks have larger ones */
    int64_t place;        /* order of acceptance, of every turn: what waits for
                           * the same goes by this */
    struct id id;         /* task_… */
    struct id message_id; /* msg_… of the turn that is going on */
    struct id decision_id; /* dec_… that gave this turn to the agent; empty: of
                            * a turn from before it was kept */
    struct str conversation_id;
    struct str requester; /* the principal who sent it */
    struct str root_user; /* on whose behalf, and who pays */
    struct str agent;
    struct str skill;
    struct str order_key; /* tasks with the same one go one after the other */
    enum task_priority priority;
    enum task_status status;
    int64_t version;  /* one more with every durable move: the guard */
    int64_t turn;     /* from 1 */
    int64_t attempt;  /* of this turn, from 1; 0 before the first */
    struct str text;  /* the message */
    bool is_envelope; /* its text is one, as JSON */
    struct str metadata, source; /* JSON objects as they stand */
    int64_t created_ms, updated_ms, deadline_ms, finished_ms; /* Unix time */
    int64_t budget_ms;       /* deadline_ms counted from when the turn began */
    int64_t started_ms;      /* an agent was first given this turn; zero: none
                              * was; in the row once the turn is over */
    struct str by_agent;     /* who delegated it; empty: a person sent it */
    struct str parent_id;    /* the task it was delegated from */
    struct str root_id;      /* the first of all, which a person sent; empty: it
                              * is that itself */
    struct str chain;        /* JSON: the agents above it, ["first","next"] */
    int64_t depth;           /* how many they are */
    int64_t price_micros;    /* of this turn, as it was when it was accepted */
    struct str payee;        /* the agent's creator, then; empty: the house */
    struct id tree;          /* msg_… that this turn and all that is delegated
                              * because of it come from; empty: of a turn from
                              * before it was kept */
    int64_t ceiling_micros;  /* what that tree may cost, once it has one */
    struct str trace;        /* "TRACE-SPAN", of who sent the root with such a
                              * header; those below have it too */
    struct str payer_org;    /* root_user's when this turn was accepted: whose
                              * budgets count it; empty: none, or no price */
    struct str priced_agent; /* likewise, whose price it is: it may have been
                              * given to another since */
    struct str owner_node;   /* who works on it; see epoch */
    int64_t epoch; /* the start of that node which wrote the row: every
                    * later start counts as one more attempt */
    int64_t lease_until_ms;
    enum task_status carried; /* part of a batch: as what it is shown, queued or
                               * dispatched as the batch is; zero: it is none.
                               * In memory only: its own status is held */
    struct task_result result; /* status repeats the task's once it is over */
};

/* The session as who works on it knows it. That of a delegation is its agent's
 * with that user and nobody else's: the row has "AGENT@USER/SESSION". */
struct str task_session(const struct task *t);

/* The task at the top of its tree: itself, or the one a person sent. */
static inline struct str task_root(const struct task *t)
{
    return t->root_id.n ? t->root_id : str_of(t->id.text);
}

/* Whether c may know of it: who asked, on whose behalf it is, and admins. For
 * all others it is not there. */
bool task_is_for(const struct task *t, const struct caller *c);

#endif
