#ifndef TASK_TASK_H
#define TASK_TASK_H

/* task: after the gate, before delivery. Creates tasks, conversations and
 * idempotency keys, is the only place that moves a task's status, and owns
 * their order, deadlines and listeners.
 *
 * The row in the store is the truth. Memory holds unfinished tasks and
 * finished ones that still have listeners. It changes only when a commit is
 * reported, except for the moves that are never written (task_move,
 * task_carry).
 *
 *     task_create -> (commit) -> task_settle      a message becomes a task
 *     task_change_new -> (commit) -> task_changed a task moves
 *
 * Order: tasks with the same order_key run one after the other, in the order
 * of acceptance (`place`). Only the first one is handed to on_ready; the next
 * follows when it is over. A held or escalated task keeps its place. While it
 * waits, neither its deadline nor the deadlines behind it run; those start when
 * no earlier task waits any more.
 *
 * Attempts: each delivery of a turn has a larger number than any before, across
 * restarts too. A start takes the row's number plus one for each start since
 * the row was written, so the first attempt in a life needs no write. Before a
 * second one in the same life the number is written. After a crash the row also
 * counts each attempt before it begins (task_load.c).
 *
 * Owns: the tasks in memory, their events and its tables in the store.
 * Borrows: loop, log, store. Threads: loop thread only. */

#include "access/access.h"
#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "model/input.h"
#include "model/msg.h"
#include "model/query.h"
#include "model/task.h"
#include "store/store.h"

struct tasks;

/* The answer of on_ready. */
enum ready {
    READY_TAKEN,    /* it was dispatched */
    READY_LATER,    /* a resource is missing: offered again a second later */
    READY_OFFERED,  /* it waits in its agent's queue, which will dispatch it */
    READY_NO_AGENT, /* no agent can take it: waits for tasks_offer_again */
    READY_NOT_YET,  /* its first input is being read: waits for task_offer or
                     * tasks_offer_again */
    READY_NO_TURN,  /* the delegating agent has enough running: waits for
                     * task_offer, and until then does not count as load of the
                     * receiving agent */
};

/* Limits on unfinished tasks; acceptance is rejected beyond them. Bytes are
 * those of texts, metadata and sources. While the server is full, a user may
 * hold less than max_per_user (task_share.c). */
struct tasks_limits {
    size_t max_unfinished, max_unfinished_bytes;
    size_t max_per_user, max_bytes_per_user; /* zero: no limit per user */
    int64_t timeout_ms;                      /* for a task that sets none */
    int64_t input_ms; /* an input request without listeners waits this long */
};

struct tasks_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct id_maker *ids;
    struct str node; /* the name of this server */
    uint64_t seed[2];
    struct tasks_limits limits;
    struct access *access; /* for the orgs of users; NULL: no user has one */

    /* t is queued and the first of its order. Called at the end of a loop turn,
     * a bounded number of times. */
    enum ready (*on_ready)(void *ctx, const struct task *t);
    /* The deadline of t has passed; t is unchanged. False: it could not be
     * handled now, call again in a second. Not called while an answer of the
     * agent is on its way to the disk (task_change_new). */
    bool (*on_deadline)(void *ctx, const struct task *t);

    /* t has moved, in memory or on disk, to a status that is not an end.
     * task_carry may be called. May be NULL. */
    void (*on_moved)(void *ctx, const struct task *t);

    /* An input request is over, with its outcome set. Its texts are freed after
     * the call. Must not call into this module. May be NULL. */
    void (*on_input_over)(void *ctx, const struct input *in);
    void *ctx;
};

/* Never NULL. */
MUST_USE struct tasks *tasks_new(const struct tasks_opts *opts);
void tasks_free(struct tasks *ts);

/* Limits may change while running. */
void tasks_set_limits(struct tasks *ts, const struct tasks_limits *limits);

/* Load every unfinished task, in order, and resume it; the last attempt counts
 * as failed. Call once, before the loop runs. */
MUST_USE enum err tasks_load(struct tasks *ts, int64_t now_ms, struct why *why);

/* The tables, for store_open, listings and backups. */
extern const struct schema task_schema;
extern const struct table task_table, turn_table, conversation_table, key_table;

/* The columns of task_table; a new one comes last. task_schema.c says what the
 * words mean: ONCE is written with a new task, TURN replaced by each turn, END
 * is NULL until the turn has ended, READ is written by its own code. */
#define TASK_COLUMNS(C)                                                  \
    C(TASK_SEQ, "seq", 1, READ(seq))                                     \
    C(TASK_ID, "id", 1, ONCE(id))                                        \
    C(TASK_PLACE, "place", 1, TURN(place))                               \
    C(TASK_MESSAGE_ID, "message_id", 1, TURN(message_id))                \
    C(TASK_CONVERSATION_ID, "conversation_id", 1, ONCE(conversation_id)) \
    C(TASK_REQUESTER, "requester", 1, ONCE(requester))                   \
    C(TASK_ROOT_USER, "root_user", 1, ONCE(root_user))                   \
    C(TASK_AGENT, "agent", 1, ONCE(agent))                               \
    C(TASK_SKILL, "skill", 1, TURN(skill), OR_NULL)                      \
    C(TASK_ORDER_KEY, "order_key", 1, ONCE(order_key))                   \
    C(TASK_PRIORITY, "priority", 1, TURN(priority))                      \
    C(TASK_STATUS, "status", 1, TURN(status))                            \
    C(TASK_VERSION, "version", 1, TURN(version))                         \
    C(TASK_TURN, "turn", 1, TURN(turn))                                  \
    C(TASK_ATTEMPT, "attempt", 1, TURN(attempt))                         \
    C(TASK_TEXT, "text", 1, TURN(text))                                  \
    C(TASK_METADATA, "metadata", 1, TURN(metadata), OR_NULL)             \
    C(TASK_SOURCE, "source", 1, TURN(source), OR_NULL)                   \
    C(TASK_CREATED_MS, "created_ms", 1, ONCE(created_ms))                \
    C(TASK_UPDATED_MS, "updated_ms", 1, TURN(updated_ms))                \
    C(TASK_DEADLINE_MS, "deadline_ms", 1, TURN(deadline_ms))             \
    C(TASK_FINISHED_MS, "finished_ms", 1, END(finished_ms))              \
    C(TASK_BUDGET_MS, "budget_ms", 1, TURN(budget_ms))                   \
    C(TASK_PARENT_ID, "parent_id", 1, TURN(parent_id), OR_NULL)          \
    C(TASK_DEPTH, "depth", 1, TURN(depth))                               \
    C(TASK_OWNER_NODE, "owner_node", 1, TURN(owner_node), OR_NULL)       \
    C(TASK_EPOCH, "epoch", 1, TURN(epoch))                               \
    C(TASK_LEASE_UNTIL_MS, "lease_until_ms", 1, READ(lease_until_ms))    \
    C(TASK_RESULT_TEXT, "result_text", 1, END(result.text))              \
    C(TASK_RESULT_METADATA, "result_metadata", 1, END(result.metadata))  \
    C(TASK_ERROR_CODE, "error_code", 1, END(result.error_code))          \
    C(TASK_ERROR, "error", 1, END(result.error))                         \
    C(TASK_ENVELOPE, "envelope", 4, TURN(is_envelope), OR_NULL)          \
    C(TASK_BY_AGENT, "by_agent", 5, TURN(by_agent), OR_NULL)             \
    C(TASK_ROOT_ID, "root_id", 5, TURN(root_id), OR_NULL)                \
    C(TASK_CHAIN, "chain", 5, TURN(chain), OR_NULL)                      \
    C(TASK_PRICE_MICROS, "price_micros", 5, TURN(price_micros), OR_NULL) \
    C(TASK_PAYEE, "payee", 5, TURN(payee), OR_NULL)                      \
    /* also NULL: it was never dispatched */                             \
    C(TASK_STARTED_MS, "started_ms", 5, END(started_ms))                 \
    C(TASK_TRACE, "trace", 5, TURN(trace), OR_NULL)                      \
    C(TASK_DECISION_ID, "decision_id", 6, TURN(decision_id), OR_NULL)    \
    /* task_session; NULL: older than the column */                      \
    C(TASK_SESSION, "session", 7, COLUMN_TEXT)                           \
    C(TASK_PAYER_ORG, "payer_org", 8, TURN(payer_org), OR_NULL)          \
    C(TASK_PRICED_AGENT, "priced_agent", 8, TURN(priced_agent), OR_NULL) \
    C(TASK_TREE, "tree", 9, TURN(tree), OR_NULL)                         \
    C(TASK_CEILING_MICROS, "ceiling_micros", 9, TURN(ceiling_micros))    \
    C(TASK_TALK, "talk", 10, TURN(talk), OR_NULL)                        \
    C(TASK_INTERRUPTED, "interrupted", 11, TURN(interrupted))

enum task_column { TASK_COLUMNS(COLUMN_NUMBER) N_TASK_COLUMNS };

/* The columns of turn_table: the turns before the one in the task's row, held
 * by a struct task too. They are deleted with the task, so their key begins
 * with its key, the seq. */
#define TURN_COLUMNS(C)                                                   \
    C(TURN_TASK_SEQ, "task_seq", 1, TURN(seq), .child_of = &task_table)   \
    C(TURN_NUMBER, "number", 1, TURN(turn))                               \
    C(TURN_MESSAGE_ID, "message_id", 1, TURN(message_id))                 \
    C(TURN_SKILL, "skill", 1, TURN(skill), OR_NULL)                       \
    C(TURN_TEXT, "text", 1, TURN(text))                                   \
    C(TURN_METADATA, "metadata", 1, TURN(metadata), OR_NULL)              \
    C(TURN_SOURCE, "source", 1, TURN(source), OR_NULL)                    \
    C(TURN_STATUS, "status", 1, TURN(status))                             \
    C(TURN_ATTEMPT, "attempt", 1, TURN(attempt))                          \
    C(TURN_BEGAN_MS, "began_ms", 1, COLUMN_INT)                           \
    C(TURN_FINISHED_MS, "finished_ms", 1, TURN(finished_ms))              \
    C(TURN_RESULT_TEXT, "result_text", 1, READ(result.text))              \
    C(TURN_RESULT_METADATA, "result_metadata", 1, TURN(result.metadata),  \
      OR_NULL)                                                            \
    C(TURN_ERROR_CODE, "error_code", 1, TURN(result.error_code), OR_NULL) \
    C(TURN_ERROR, "error", 1, TURN(result.error), OR_NULL)                \
    C(TURN_PRICE_MICROS, "price_micros", 5, TURN(price_micros), OR_NULL)

enum turn_column { TURN_COLUMNS(COLUMN_NUMBER) N_TURN_COLUMNS };

/* The columns of conversation_table. The owner is part of the key, since two
 * people may both call a conversation "c-1". */
#define CONVERSATION_COLUMNS(C)                                              \
    C(CONVERSATION_OWNER, "owner", 1, COLUMN_TEXT)                           \
    C(CONVERSATION_ID, "id", 1, COLUMN_TEXT)                                 \
    C(CONVERSATION_AGENT, "agent", 1, COLUMN_TEXT)                           \
    C(CONVERSATION_CREATED_MS, "created_ms", 1, COLUMN_INT)                  \
    C(CONVERSATION_USED_MS, "used_ms", 1, COLUMN_INT)                        \
    /* that chose the agent; NULL: not known */                              \
    C(CONVERSATION_DECISION_ID, "decision_id", 2, COLUMN_TEXT)               \
    /* when this agent was last chosen, to tell it from a later agent of the \
     * same name; NULL: when it was used */                                  \
    C(CONVERSATION_MEANT_MS, "meant_ms", 3, COLUMN_INT)                      \
    /* of its last message; NULL: not known */                               \
    C(CONVERSATION_PRICE_MICROS, "price_micros", 9, COLUMN_INT)

enum conversation_column {
    CONVERSATION_COLUMNS(COLUMN_NUMBER) N_CONVERSATION_COLUMNS
};

/* A row of task_table as a task. Its strings are borrowed from the row. */
void task_from_row(struct task *t, const struct row *r);

/* Overwrite the fields of a turn in t with a row of turn_table. */
void task_of_turn(struct task *t, const struct row *r);

enum {
    TASK_KEY_MS = 24 * 3600 * 1000, /* how long an idempotency key is kept */
    TASK_ERROR_CODE_MAX = 64,
    TASK_ERROR_MAX = 2048,
};

/* Acceptance. */

/* Append to m->tx the rows that make m a task (task, conversation, idempotency
 * key, feed entry) and fill m->task. `before` is the current state of the task
 * that m continues with a further turn, or NULL; the caller has checked that
 * this is allowed. Claims capacity, which task_settle confirms or returns:
 * task_settle must follow whatever becomes of the tx, and txs must be submitted
 * in the order of these calls. On error nothing is claimed: ERR_OVERLOADED (the
 * server's limit), ERR_TOO_MANY_TASKS (the limit of the user or org),
 * ERR_TASK_NOT_OVER, ERR_NOT_ALLOWED (`before` was dropped), ERR_NOMEM. */
MUST_USE enum err task_create(struct tasks *ts, struct msg *m,
                              const struct task *before);

/* m->tx has a result. Committed: m->err is OK and the task exists and runs.
 * Otherwise m->err is the reason: ERR_EXISTS when the key is taken
 * (task_key_query finds its task), ERR_TASK_NOT_OVER when another turn came
 * first, ERR_BUSY when the task differs from `before` in another way. */
void task_settle(void *tasks, struct msg *m);

/* Look up an idempotency key: fill q, then interpret its answer for m. OK: m is
 * a repeat and m->task is the original task (is_repeat).
 * ERR_IDEMPOTENCY_MISMATCH. ERR_BUSY: the key is free (again) and m can be
 * retried. Otherwise the query's own error. */
void task_key_query(const struct msg *m, struct query *q);
MUST_USE enum err task_key_answer(struct tasks *ts, struct msg *m,
                                  const struct query *q);

/* Moving. */

/* The task in memory; NULL when it is unknown, or over without listeners.
 * Borrowed until the loop turn ends. */
const struct task *task_find(const struct tasks *ts, struct str id);

/* The moves that are not written: to dispatched (one more attempt), to working,
 * and back to queued, to be offered again a second later. Asserts that it is
 * one of these. No effect on a task that is over or unknown. Listeners are
 * told.
 *
 * False: the task may have been dispatched when an earlier life of the server
 * ended, so this attempt is first counted in the row. The task is offered again
 * when the count is durable. */
bool task_move(struct tasks *ts, struct str id, enum task_status to);

/* Move a dispatched or working task back to queued. It is offered again
 * delay_ms later, once the attempt is written. Also delays a task that is
 * READY_OFFERED; no effect on one that waits for something else. */
void task_retry(struct tasks *ts, struct str id, int64_t delay_ms);

/* A task that is READY_OFFERED has no agent after all: it waits for
 * tasks_offer_again. */
void task_put_back(struct tasks *ts, struct str id);

/* A held task is delivered as part of a batch: show it with the status of the
 * batch, queued or dispatched, and tell its listeners. Nothing else changes: it
 * uses no capacity of its agent and its deadline does not run, because the
 * batch accounts for both. */
void task_carry(struct tasks *ts, struct str id, enum task_status as);

/* Offer a task that is READY_NOT_YET or READY_NO_TURN again. No effect on
 * others. */
void task_offer(struct tasks *ts, struct str id);

/* The target of a move that is not an end. */
struct task_release {
    enum task_status status; /* TASK_QUEUED, TASK_HELD or TASK_ESCALATED */
    struct str agent;        /* the new agent; empty: as before */
    enum task_priority priority;
};

/* One durable move on its way to the disk. */
struct task_change {
    struct tx tx;
    struct id task_id;
    struct task_result result; /* its strings are the change's */
    char *strings;
    int64_t turn, at_ms;
    int64_t version; /* the version it moves from */
    enum err err;    /* after task_changed: why it was not committed */
    /* For the use of the submitter. */
    struct walk *walk;
    struct list_node node;
    void (*done)(void *ctx, struct str task_id, enum err e);
    void *ctx;
    uint64_t receipt;  /* of the agent to be told the outcome; zero: none */
    bool is_unmatched; /* came without a delivery; may still be in time */
    bool is_deadline;  /* the deadline passed; no user asked for this end */
    bool is_unpaid;    /* the ledger is inconsistent: ends without payment */
    /* The module's: the entry that counts it as the agent's answer. */
    struct task_entry *entry;
    struct list_node answer_node;
    unsigned n_handed_over; /* of the entry, when the change was made */
    /* The module's, for a move that is not an end (task_pass_new). */
    bool is_pass;
    struct task_release release;
    int64_t attempt, budget_ms;
    struct tasks *tasks;
    struct task_share *load;
};

/* Prepare the move of a task in memory to result->status, an end. c->tx has the
 * guarded update and its feed entry. NULL with *e set: ERR_NOT_FOUND,
 * ERR_TASK_IS_OVER, ERR_NOT_ALLOWED (no such move from its status), ERR_NOMEM.
 * The strings of the result are copied; the caller has limited them to
 * MSG_TEXT_MAX and MSG_METADATA_MAX. Error texts are cut to
 * TASK_ERROR_CODE_MAX and TASK_ERROR_MAX, and tamed (str_tame).
 *
 * While a change to completed or failed exists, the agent answered in time and
 * the deadline waits: however often the change is refused, expiry does not
 * overtake it. Freeing the change uncommitted puts the deadline back in force.
 * A cancellation may still come first. */
MUST_USE struct task_change *task_change_new(struct tasks *ts, struct str id,
                                             const struct task_result *result,
                                             enum err *e);

/* Prepare the same end again, after the store refused it or the task moved
 * meanwhile (ERR_BUSY). ERR_TASK_IS_OVER, ERR_NOT_ALLOWED: no longer possible.
 * ERR_NOT_FOUND: the answer is from an agent that no longer has the task. */
MUST_USE enum err task_change_again(struct tasks *ts, struct task_change *c);

/* c->tx has a result. Committed: memory follows, listeners get the result, and
 * the next task of the same order gets its turn. Otherwise c->err is the
 * reason: ERR_TASK_IS_OVER when another end came first, ERR_OUTCOME_UNKNOWN
 * when the store has failed, or the store's reason for refusing it. */
void task_changed(struct tasks *ts, struct task_change *c);
void task_change_free(struct task_change *c);

/* Prepare a durable move of a task in memory to a status that is not an end:
 * released, held or escalated, perhaps for another agent. The submitter may
 * append to c->tx, and task_changed follows. A released task gets its whole
 * time from then on, but no more than an unfinished parent has left; the
 * deadline of a waiting task does not run. A task is taken from an agent that
 * has it only to give it to another one, and the submitter must then cancel the
 * delivery. NULL with *e as for task_change_new. */
MUST_USE struct task_change *task_pass_new(struct tasks *ts, struct str id,
                                           const struct task_release *release,
                                           enum err *e);

/* Whether t, a task in memory, is the first of its order. */
bool task_is_first(const struct task *t);

/* Iterate over the tasks of the agent that are dispatched or working: the first
 * one, or the one behind `after`, which an earlier call in this loop turn
 * returned. NULL: no more. Borrowed as from task_find. */
const struct task *tasks_working(const struct tasks *ts, struct str agent,
                                 const struct task *after);

/* The load of an agent (its name in any case): unfinished tasks that are not
 * held or escalated, not behind such a task of their order, and not
 * READY_NO_TURN. And the number that is held or escalated. */
size_t tasks_of_agent(const struct tasks *ts, struct str agent);
size_t tasks_held_of_agent(const struct tasks *ts, struct str agent);

/* The agents have changed: offer again what is READY_LATER, READY_NO_AGENT or
 * READY_NOT_YET. */
void tasks_offer_again(struct tasks *ts);

/* Events of one turn of a task. They are numbered from 1 in each life of the
 * server (a further turn continues with larger numbers) and kept in a ring of
 * TASK_RING_BYTES. A listener that falls behind the ring gets one gap and
 * continues with what is left. The result is the last event; it is never
 * dropped. A listener of one turn gets no events of the next. */

enum {
    TASK_RING_BYTES = 256 * 1024,
    /* All rings together. Beyond it, each keeps only its last
     * TASK_RING_BYTES_MIN. */
    TASK_RINGS_BYTES = 64 * 1024 * 1024,
    TASK_RING_BYTES_MIN = 4 * 1024,
};

enum task_event_kind {
    TASK_EVENT_STATUS,     /* the status of the task at that time */
    TASK_EVENT_CHUNK,      /* a piece of the answer, or of another agent's */
    TASK_EVENT_INPUT,      /* an input request: text is input_write's */
    TASK_EVENT_INPUT_OVER, /* an input request is over: text likewise */
    TASK_EVENT_DELEGATED,  /* a delegation that the agent did not wait for is
                            * over: text is a JSON object */
    TASK_EVENT_GAP,        /* some events are missing */
    TASK_EVENT_RESULT,     /* the result of task_heard(l); nothing follows */
};

struct task_event {
    enum task_event_kind kind;
    int64_t number;
    int64_t at_ms;
    int64_t turn;
    enum task_status status;
    struct str text;  /* TASK_EVENT_CHUNK, and JSON of others */
    struct str agent; /* the source; empty in a chunk: the task's own agent */
};

/* A listener; embedded in the struct of its owner. */
struct task_listener {
    struct list_node node, news_node; /* these four belong to the module */
    struct task_entry *entry;
    uint64_t at;
    struct id task_id;
    int64_t next;      /* the number of the event it gets next */
    bool hears_inputs; /* it shows input requests to a person */
    void (*on_news)(struct task_listener *l);
};

/* Listen from event `from` on (1: from the oldest kept event, without a gap for
 * dropped ones; 0: from now on). A finished task gives at least its result.
 * on_news comes at the end of a loop turn when there are events, once, until
 * task_next has returned false; at most a bounded number of calls in one turn.
 * ERR_NOT_FOUND when the task is not in memory. */
MUST_USE enum err task_listen(struct tasks *ts, struct str id,
                              struct task_listener *l, int64_t from);

/* No effect when it does not listen. */
void task_unlisten(struct tasks *ts, struct task_listener *l);

/* The task in the turn that it listens to, as it is now; NULL when it does not
 * listen. Borrowed as from task_find. */
const struct task *task_heard(const struct task_listener *l);

/* The next event; false when there is none yet. Its strings live until the
 * next call into this module. */
MUST_USE bool task_next(struct tasks *ts, struct task_listener *l,
                        struct task_event *out);

/* A piece of the answer. False: it is not from the current attempt and was
 * ignored. A long piece becomes several events. */
bool task_chunk(struct tasks *ts, struct str id, int64_t turn, int64_t attempt,
                struct str text);

/* A piece of the answer of another agent, which works on behalf of this
 * unfinished task. Listeners get it between the task's own chunks; it is not
 * part of the task's answer. False: the task is over or unknown. */
bool task_chunk_of(struct tasks *ts, struct str id, struct str agent,
                   struct str text);

/* Tell the listeners of an unfinished task the outcome of a delegation, a JSON
 * object. */
void task_tell_delegated(struct tasks *ts, struct str id, struct str text);

/* Input requests of agents while they work. A request is shown on the streams
 * of the asking task and of its root. It is over when it is answered, when
 * neither stream had a listener (hears_inputs) for limits.input_ms, when the
 * agent stops waiting, or when its attempt, its task or the root ends. Kept in
 * memory only. A root has at most TASK_INPUTS_MAX open ones and remembers the
 * last TASK_INPUTS_KEPT finished ones; an attempt may ask TASK_ASKS_MAX
 * times. */
enum { TASK_INPUTS_MAX = 8, TASK_INPUTS_KEPT = 16, TASK_ASKS_MAX = 256 };

/* The attempt asks q. ERR_NOT_FOUND: it is not the current attempt, or the root
 * is over. ERR_LIMIT, ERR_BAD_REQUEST: q is rejected. The log has the first few
 * rejections of an attempt. *out is borrowed as from task_find. */
MUST_USE enum err task_ask(struct tasks *ts, struct str id, int64_t turn,
                           int64_t attempt, const struct input_ask *q,
                           const struct input **out);

/* The open input requests of a root, or those of the task itself; the oldest
 * first, borrowed as from task_find. */
size_t task_inputs(const struct tasks *ts, struct str id,
                   const struct input *out[TASK_INPUTS_MAX]);

/* An input request, open or over, by the id of its root or of the asking task.
 * NULL: not known. */
const struct input *task_input_find(const struct tasks *ts, struct str id,
                                    struct str input_id);

/* End an open input request; `by` is the person who ended it. */
void task_input_end(struct tasks *ts, const struct input *in,
                    enum input_outcome outcome, struct str by);

/* Count a result that came too late. */
void task_late(struct tasks *ts);

/* The conversation of t's requester with its agent before t, for agents without
 * a memory of their own: the newest completed turns, at most max_n messages
 * (two per turn) and max_bytes, oldest first, lent for the call. A conversation
 * of another user with the same id is not included. */
struct task_history;
typedef void task_history_done(void *ctx, enum err e,
                               const struct task_said *list, size_t n);

/* t is borrowed for the call. done comes once, perhaps before this returns, and
 * never after a cancel. Never NULL. The store returns every read, so it must
 * not be closed before the loop has run. */
MUST_USE struct task_history *
task_history_new(struct tasks *ts, const struct task *t, size_t max_n,
                 size_t max_bytes, task_history_done *done, void *ctx);
void task_history_cancel(struct task_history *h);

/* The retention policy. */
struct tasks_keep {
    int64_t now_ms;
    int64_t before_ms; /* tasks that finished earlier may be deleted */
    int64_t rows;      /* and the oldest beyond this number; zero: no limit */
    int64_t oldest_ms; /* created_ms of the oldest task, found with
                        * tasks_oldest, or now_ms if there is none; zero:
                        * unknown, and conversations stay */
    int64_t needed_ms; /* overrides the rest: tasks that finished since then
                        * stay; zero: no such time */
    size_t limit;      /* rows that each operation deletes at most */
};

/* Fill q with the query for the oldest task. */
void tasks_oldest(struct query *q);

/* Append to tx the deletion of tasks beyond the policy, conversations without
 * tasks, and expired keys. Unfinished tasks are never deleted. An operation
 * whose n_rows equals the limit after the commit has left some behind. */
void tasks_prune(struct tasks *ts, struct tx *tx,
                 const struct tasks_keep *keep);

struct tasks_stats {
    int64_t by_status[N_TASK_STATUS]; /* unfinished */
    int64_t accepted_total;
    int64_t repeated_total; /* answered by an idempotency key */
    int64_t over_total[N_TASK_STATUS];
    int64_t late_total; /* results ignored because the task was over */
    int64_t unfinished_bytes;
    int64_t held_result_bytes; /* of answers that are not on disk yet */
    int64_t listeners;
    int64_t ring_bytes;
};

struct tasks_stats tasks_stats(const struct tasks *ts);

/* For tests: whether all invariants hold. */
bool tasks_check(const struct tasks *ts);

#endif
