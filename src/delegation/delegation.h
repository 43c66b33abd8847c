#ifndef DELEGATION_DELEGATION_H
#define DELEGATION_DELEGATION_H

/* delegation: agents that give work to agents.
 *
 * A delegation is a task like any other and takes the same walk. This module
 * decides whether it is allowed, records on whose behalf it runs, and reports
 * its result to the requesting agent until the agent acknowledges it.
 *
 *   limits   allowAgents, maxDepth, no agent twice in a chain, maxPerRoot
 *            tasks under one root; all are checked before anything starts
 *   turns    maxConcurrent delegations of one agent run at once; maxWaiting
 *            more wait in the order of their acceptance
 *   chain    the agents above a task: the server keeps it, tells it to the
 *            agent, and does not trust an agent's own account
 *   rows     one per delegation, until its result is acknowledged or expires
 *   tree     when a task fails, is cancelled or expires, its children end
 *
 *   delegation_ask -> (task_create) -> delegation_record -> commit
 *     -> delegation_settle ... the task ends
 *     -> delegation_record_end -> commit -> delegation_settle_end
 *          -> on_ready(delegation)   again whenever the requester comes back,
 *                                    until delegation_had
 *          -> end(child) ...
 *
 * Everything durable is in the tx of the task it is about. Owns: its tables,
 * the delegations in memory, its timers. Borrows the modules in its options.
 * Threads: loop thread only. */

#include "base/log.h"
#include "base/loop.h"
#include "gate/gatekeeper.h"
#include "model/delegation.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"

struct delegations;

extern const struct schema delegation_schema;
extern const struct table delegation_table, tree_table, note_table;

#define DELEGATION_COLUMNS(C)                                               \
    C(DELEGATION_KEY, "key", 1, BOTH(key)) /* del_… */                    \
    C(DELEGATION_AGENT, "agent", 1, BOTH(agent))                            \
    /* NULL unless the mode is two-phase */                                 \
    C(DELEGATION_ORIGINAL_ID, "original_id", 1, BOTH(original_id), OR_NULL) \
    C(DELEGATION_TASK_ID, "task_id", 1, BOTH(task_id))                      \
    C(DELEGATION_TURN, "turn", 1, BOTH(turn))                               \
    /* NULL: it has no parent task */                                       \
    C(DELEGATION_PARENT_ID, "parent_id", 1, BOTH(parent_id), OR_NULL)       \
    C(DELEGATION_ROOT_ID, "root_id", 1, READ(root_id))                      \
    C(DELEGATION_MODE, "mode", 1, BOTH(mode))                               \
    /* 1 stream, 2 ends_with_line, 4 goes_on */                             \
    C(DELEGATION_FLAGS, "flags", 1, COLUMN_INT)                             \
    C(DELEGATION_STATE, "state", 1, BOTH(state))                            \
    /* identifies a repeated request */                                     \
    C(DELEGATION_BODY_HASH, "body_hash", 1, COLUMN_BLOB)                    \
    C(DELEGATION_CREATED_MS, "created_ms", 1, BOTH(created_ms))             \
    /* when an unfetched result is removed */                               \
    C(DELEGATION_EXPIRES_MS, "expires_ms", 1, READ(expires_ms))             \
    /* of the requesting agent at that time; NULL: no user */               \
    C(DELEGATION_CREATOR, "creator", 2, BOTH(creator), OR_NULL)             \
    /* requester of the parent task */                                      \
    C(DELEGATION_OWNER, "owner", 4, BOTH(owner), OR_NULL)                   \
    /* of the parent task; NULL: none */                                    \
    C(DELEGATION_CONVERSATION, "conversation", 4, BOTH(conversation), OR_NULL)

enum delegation_column {
    DELEGATION_COLUMNS(COLUMN_NUMBER) N_DELEGATION_COLUMNS
};

/* The tasks under a root. */
#define TREE_COLUMNS(C)                                    \
    C(TREE_ROOT_ID, "root_id", 1, COLUMN_TEXT)             \
    C(TREE_N_TASKS, "n_tasks", 1, COLUMN_INT)              \
    C(TREE_UPDATED_MS, "updated_ms", 1, COLUMN_INT)        \
    /* user of the root; NULL in rows of older versions */ \
    C(TREE_ROOT_USER, "root_user", 3, COLUMN_TEXT)

enum tree_column { TREE_COLUMNS(COLUMN_NUMBER) N_TREE_COLUMNS };

/* Results for an agent that reads them in its next turn. */
#define NOTE_COLUMNS(C)                                           \
    C(NOTE_KEY, "key", 1, COLUMN_TEXT) /* the delegation's key */ \
    C(NOTE_OWNER, "owner", 1, COLUMN_TEXT)                        \
    C(NOTE_CONVERSATION, "conversation", 1, COLUMN_TEXT)          \
    /* the requesting agent, in lower case */                     \
    C(NOTE_AGENT, "agent", 1, COLUMN_TEXT)                        \
    C(NOTE_TEXT, "text", 1, COLUMN_TEXT)                          \
    C(NOTE_AT_MS, "at_ms", 1, COLUMN_INT)                         \
    /* task whose turn was given the note; zero: none yet */      \
    C(NOTE_TOLD_SEQ, "told_seq", 1, COLUMN_INT)                   \
    C(NOTE_TOLD_TURN, "told_turn", 1, COLUMN_INT)

enum note_column { NOTE_COLUMNS(COLUMN_NUMBER) N_NOTE_COLUMNS };

enum { DELEGATION_PER_TURN = 64 }; /* children ended in one turn of the loop */

/* Settings that a reload may change. */
struct delegation_settings {
    int64_t timeout_ms;     /* default for a delegation: 180 s */
    int64_t max_depth;      /* default; a card may set another */
    int64_t max_concurrent; /* of one agent; default, a card may set another */
    int64_t max_waiting;    /* further delegations of one agent that may wait */
    int64_t max_per_root;   /* tasks */
    size_t max_open;        /* delegations kept, of all agents */
    size_t max_unacked;     /* unacknowledged results of one agent */
    int64_t keep_ms;        /* how long an unacknowledged result is kept */
    bool ends_with_line; /* default of onDisconnect, for the readers of requests
                          */
};

/* One delegation as it is now. Its strings are valid until the end of the
 * loop's turn. */
struct delegation {
    struct id key, task_id;
    struct str agent;   /* the requesting agent */
    struct str creator; /* creator of that agent at that time; empty: none */
    struct str original_id, parent_id, root_id;
    struct str owner, conversation; /* of the parent task; empty: none */
    int64_t turn;
    enum delegation_mode mode;
    enum delegation_state state;
    bool is_stream, ends_with_line, goes_on;
    int64_t created_ms, expires_ms;
};

struct delegation_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;
    struct tasks *tasks;
    struct gatekeeper *gatekeeper;
    struct id_maker *ids;
    uint64_t seed[2];
    struct delegation_settings settings;

    /* End a task that is in memory: walk_end. */
    enum err (*end)(void *ctx, struct str task_id, const struct task_result *r,
                    void (*done)(void *ctx, struct str task_id, enum err e),
                    void *done_ctx);

    /* The delegation is over, durably, and its result is not acknowledged.
     * Called when it ends and again as the functions below say. t has the
     * result and is valid during the call. */
    void (*on_ready)(void *ctx, const struct delegation *d,
                     const struct task *t);

    /* The outcome of the request that m repeats is known. If is_repeat is set,
     * it answers m; otherwise m starts over. */
    void (*on_known)(struct msg *m);

    /* The agent has no connection and reads results in its next turn. */
    bool (*hears_by_note)(void *ctx, struct str agent);

    /* The text given to delegation_note for d is durable. Valid during the
     * call. */
    void (*on_noted)(void *ctx, const struct delegation *d, struct str text);
    void *ctx;
};

/* opts are copied. */
MUST_USE struct delegations *delegation_new(const struct delegation_opts *opts);

/* After the store has given everything back. */
void delegation_free(struct delegations *h);
void delegation_set(struct delegations *h, const struct delegation_settings *s);
const struct delegation_settings *
delegation_settings(const struct delegations *h);

/* Load the stored delegations and schedule the end of children whose parent did
 * not complete. Call once, after the tasks are loaded and before the loop runs.
 * Errors come with words. */
MUST_USE enum err delegation_load(struct delegations *h, struct why *why);

/* Find the task that a delegation may be part of: `given`, if the agent is
 * working on it; otherwise the agent's tasks in `session`; otherwise all tasks
 * it is working on. The result may be empty. Several candidates have one payer;
 * walk/parent_task.c chooses among them. They are ordered by deadline, nearest
 * first, and cut to DELEGATION_PARENTS_MAX. ERR_BAD_REQUEST, with words: the
 * agent is not working on `given`, or the candidates have different payers. */
enum { DELEGATION_PARENTS_MAX = 64 };
struct delegation_parents {
    const struct task *list[DELEGATION_PARENTS_MAX];
    size_t n;
    bool is_of_session; /* all are in the session, or none was given */
};
MUST_USE enum err delegation_parents(struct delegations *h, struct str agent,
                                     struct str given, struct str session,
                                     struct delegation_parents *out,
                                     struct why *why);

/* Query the number of tasks under a root: one row of tree_table, or none. */
void delegation_tree_query(struct query *q, struct str root_id);

/* Find out whether m repeats a stored request with the same original id. If so,
 * m->delegation.is_repeat is set, with the task and key of that request. If
 * that request is not durable yet, is_behind is set too and on_known is called
 * once. ERR_ID_IN_USE: the id belongs to a different request. If that request's
 * result was already sent to the requester, m takes over its id instead, and
 * the old result counts as acknowledged once delegation_ask has returned OK. */
MUST_USE enum err delegation_repeat(struct delegations *h, struct msg *m);

/* delegation_repeat would find a durable repeat. */
bool delegation_is_known(const struct delegations *h, struct str agent,
                         struct str original_id,
                         const uint8_t body_hash[MSG_BODY_HASH_BYTES]);

/* Check that m->delegation.agent may give m to `chosen`, and fill
 * m->delegation. m->call.timeout_ms is cut so that the task ends no later than
 * its parent. Claims its share of every limit, so delegation_settle or
 * delegation_leave must follow. Does nothing if no agent is asking. With
 * m->delegation.is_repeat set, as delegation_repeat says, no task is to be
 * created.
 *
 * With words: ERR_DELEGATION, ERR_DELEGATIONS, ERR_ID_IN_USE, ERR_OVERLOADED
 * (maxOpen is reached), ERR_NOT_FOUND (`before` is not of the same agent for
 * the same user), ERR_NOMEM. */
MUST_USE enum err delegation_ask(struct delegations *h, struct msg *m,
                                 const struct agent *chosen,
                                 const struct task *before);

/* t is ready: it may be carried if it is not a delegation, or if its turn has
 * come (max_concurrent). Otherwise it waits for its turn and is offered again
 * then. */
bool delegation_come_up(struct delegations *h, const struct task *t);

/* t has changed its state. A held or escalated task gives up its turn, or its
 * place in the queue, until it comes up again. */
void delegation_moved(struct delegations *h, const struct task *t);

/* Cards have changed: start waiting delegations that are now within the
 * limit. */
void delegation_look_at_turns(struct delegations *h);

/* Add to m->tx, after task_create: the delegation, and one more task under its
 * root. */
void delegation_record(void *delegations, struct msg *m);

/* Why m->tx was not committed: ERR_DELEGATIONS with words in m->why for
 * maxPerRoot; OK: another reason. Call before delegation_settle. */
MUST_USE enum err delegation_refused(void *delegations, struct msg *m);

/* delegation_settle: m->tx has its result. delegation_leave: it was not
 * submitted. */
void delegation_settle(void *delegations, struct msg *m);
void delegation_leave(void *delegations, struct msg *m);

/* Add the end of a turn to its tx; settle once that is committed. */
void delegation_record_end(void *delegations, const struct turn_end *end,
                           struct tx *tx);
void delegation_settle_end(void *delegations, const struct turn_end *end);

/* An attempt of that task was given up for good: its children end. */
void delegation_attempt_over(struct delegations *h, struct str task_id);

/* The attempt failed, and the next one starts from the beginning: its children
 * end. Not if the agent can continue the attempt after a reconnect. */
void delegation_attempt_failed(struct delegations *h, struct str task_id);

/* Reporting results. */

/* A stored delegation, or NULL. Valid until the end of the loop's turn. */
const struct delegation *delegation_find(const struct delegations *h,
                                         struct str key);
const struct delegation *delegation_find_task(const struct delegations *h,
                                              struct str task_id);

/* d belongs to the current agent of that name. A name can pass to another
 * owner, and the new agent must not be told, acknowledge or fetch results of
 * the old one. */
bool delegation_is_own(const struct delegations *h, const struct delegation *d);

/* The agent has the result ("had", delegation.ack): it is not reported again.
 * `which` is the key, the task's id (the oldest unacknowledged turn) or the
 * original id. ERR_NOT_FOUND: the agent has no such delegation (it may have
 * been acknowledged before); ERR_TASK_NOT_OVER. Otherwise done is called once,
 * when the acknowledgement is durable, or with the error. done may be NULL. */
MUST_USE enum err delegation_had(struct delegations *h, struct str agent,
                                 struct str which,
                                 void (*done)(void *ctx, enum err e),
                                 void *ctx);

/* delegation_agent_came: an agent can be told again; on_ready follows for each
 * of its unacknowledged results, a bounded number per turn.
 * delegation_agent_gone: it cannot be told any more; delegations that are to
 * end with its connection do. */
void delegation_agent_came(struct delegations *h, struct str agent);
void delegation_agent_gone(struct delegations *h, struct str agent);

/* The result was sent on a connection of the requester. Only delegation_had
 * proves that it arrived, but the requester may use its original id again. */
void delegation_told(struct delegations *h, struct str key);

/* Call on_ready again soon, if it is over: its request was repeated. */
void delegation_tell_again(struct delegations *h, struct str key);

/* The requester could not be told because the result could not be read:
 * on_ready is called again in a second. */
void delegation_not_told(struct delegations *h, struct str key);

/* Report the result in the next turn of the requester in its conversation: text
 * is stored until then, the delegation counts as acknowledged, and `news` is
 * added to the feed, all in one commit. If the commit fails, on_ready comes
 * again. ERR_NOT_FOUND: it has no conversation, or is acknowledged. */
struct feed_entry;
MUST_USE enum err delegation_note(struct delegations *h, struct str key,
                                  struct str text,
                                  const struct feed_entry *news);

/* Fill q with the notes for t's conversation and agent: those that no turn was
 * given, oldest first, or those that one was given, newest first. */
void delegation_notes(struct query *q, const struct task *t, bool is_told,
                      size_t limit);

/* Add to the tx that completes t: this turn was given the note. */
void delegation_record_told(struct delegations *h, const struct task *t,
                            struct str key, struct tx *tx);

/* The result to report when the task's row is gone: failed, "result_gone".
 * Valid as long as d. */
struct task delegation_gone(const struct delegation *d);

/* Waits for a result; embedded in the caller's struct. on_over is called once,
 * from the loop: with OK and t, which has the result (perhaps at once), or with
 * ERR_TIMEOUT after wait_ms. A timeout ends the task unless the request asked
 * to continue. A result given to a waiter counts as acknowledged.
 * ERR_NOT_FOUND, ERR_TASK_IS_OVER (acknowledged before): on_over will not be
 * called. */
struct delegation_waiter {
    struct list_node node; /* private, like the next two */
    struct live_delegation *delegation;
    struct timer timer;
    void (*on_over)(struct delegation_waiter *w, enum err e,
                    const struct delegation *d, const struct task *t);
};
MUST_USE enum err delegation_wait(struct delegations *h, struct str key,
                                  int64_t wait_ms, struct delegation_waiter *w);
/* Harmless if it is not waiting. */
void delegation_unwait(struct delegations *h, struct delegation_waiter *w);

/* Unacknowledged results are in the rows of their tasks: tasks that ended since
 * this time must not be pruned. INT64_MAX: all may be. */
int64_t delegation_needed_ms(const struct delegations *h);

/* Add to tx the removal of acknowledged and expired rows; as tasks_prune. */
void delegation_prune(struct delegations *h, struct tx *tx, int64_t now_ms,
                      int64_t before_ms, size_t limit);

/* Why a delegation was rejected. */
enum delegation_refusal {
    DELEGATION_NOT_ALLOWED, /* ERR_DELEGATION */
    DELEGATION_TOO_MANY,    /* ERR_DELEGATIONS */
    DELEGATION_ID_IN_USE,
    DELEGATION_OTHERWISE, /* overloaded, out of memory, and so on */
    N_DELEGATION_REFUSALS,
};

struct delegation_stats {
    int64_t open, waiting, ready; /* now; waiting ones are open too */
    int64_t refused_by[N_DELEGATION_REFUSALS]; /* refused_total by reason */
    int64_t delegated_total, refused_total, had_total, expired_total;
    int64_t ended_below_total; /* ended because of their parent */
};
struct delegation_stats delegation_stats(const struct delegations *h);

/* All tables agree with each other. For tests. */
bool delegation_check(const struct delegations *h);

#endif
