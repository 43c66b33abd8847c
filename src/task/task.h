#ifndef TASK_TASK_H
#define TASK_TASK_H

/* task: after choosing, before delivery. Tasks, conversations, idempotency
 * keys: how they are made, the one mover of their status, their order, their
 * deadlines, and those who wait for them.
 *
 * The truth is the row in the store; in memory are the tasks that are not
 * over, and those that somebody still listens to. Memory changes only when a
 * commit is reported, but for the moves to dispatched and working, which are
 * nowhere else.
 *
 *     task_create -> (commit) -> task_settle      a message becomes a task
 *     task_change_new -> (commit) -> task_changed a task moves
 *
 * Order: tasks with the same order_key go one after the other, in the order of
 * their acceptance (`place`). Only the first of them is handed to on_ready;
 * when it is over the next one is. What is held or escalated stands in its
 * place; neither its time runs nor that of those behind it: theirs begins when
 * nobody before them waits any more.
 *
 * Attempts: each delivery of a turn has a larger number than any before, over
 * restarts too, although hardly any is written. In each life of the server one
 * attempt may be unwritten, and every start adds one for each life since the
 * row was written; before another attempt in the same life the room writes
 * down how many there were, and only then offers the task again.
 *
 * Owns: the tasks in memory, their events and its tables in the store.
 * Borrows: loop, log, store. Threads: the loop's. */

#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "model/input.h"
#include "model/msg.h"
#include "model/query.h"
#include "model/task.h"
#include "store/store.h"

struct tasks;

/* What became of a task that was handed to on_ready. */
enum ready {
    READY_TAKEN,    /* it was moved on */
    READY_LATER,    /* not now, for want of something: offered again by itself,
                     * a second later */
    READY_OFFERED,  /* it waits at its agent's desk, and will be moved on from
                     * there */
    READY_NO_AGENT, /* nobody is there to carry it: waits for
                     * tasks_offer_again */
    READY_NOT_YET,  /* what it begins with is being read: waits for task_offer,
                     * or tasks_offer_again */
    READY_NO_TURN,  /* who gave it has enough going: waits for task_offer, and
                     * is no load of its agent's until then */
};

/* What is not over; acceptance is refused beyond. Bytes are those of texts,
 * metadata and sources. A user may hold less than max_per_user while the
 * server is full (share.c). */
struct tasks_limits {
    size_t max_unfinished, max_unfinished_bytes;
    size_t max_per_user, max_bytes_per_user; /* of them one user's; zero: as
                                              * many as there may be */
    int64_t timeout_ms;                      /* of a task that names none */
    int64_t input_ms; /* that what an agent asks waits while nobody listens */
};

struct tasks_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct id_maker *ids;
    struct str node; /* the name of this server */
    uint64_t seed[2];
    struct tasks_limits limits;

    /* The org of a user; empty: none. Borrowed for the call. NULL: nobody has
     * one. */
    struct str (*org_of)(void *ctx, struct str user);

    /* t is the first of its order and waits to be carried: `queued`. Called
     * at the end of a turn, a bounded number of times. */
    enum ready (*on_ready)(void *ctx, const struct task *t);
    /* Its time is over; it is still as it was. False: it could not be dealt
     * with for now, and is asked again a second later. Not called while an
     * answer of its agent is on the way to the disk (task_change_new). */
    bool (*on_deadline)(void *ctx, const struct task *t);

    /* It was moved to something that is no end, in memory or on the disk, and
     * is there. task_carry may be called. May be NULL. */
    void (*on_moved)(void *ctx, const struct task *t);

    /* What was asked is over, as it says, and its words go after the call. No
     * call into this room meanwhile. May be NULL. */
    void (*on_input_over)(void *ctx, const struct input *in);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct tasks *tasks_new(const struct tasks_opts *opts);
void tasks_free(struct tasks *ts);

/* Limits may change while running. */
void tasks_set_limits(struct tasks *ts, const struct tasks_limits *limits);

/* Read every task that is not over, in order, and go on with it: the last
 * attempt counts as one that failed. Once, before the loop runs. */
MUST_USE enum err tasks_load(struct tasks *ts, int64_t now_ms, struct why *why);

/* The tables: for store_open, for listings, and for backups to know. */
extern const struct schema task_schema;
extern const struct table task_table, turn_table, conversation_table, key_table;

/* Columns of task_table, in the order of the row. */
enum task_column {
    TASK_SEQ,
    TASK_ID,
    TASK_PLACE,
    TASK_MESSAGE_ID,
    TASK_CONVERSATION_ID,
    TASK_REQUESTER,
    TASK_ROOT_USER,
    TASK_AGENT,
    TASK_SKILL,
    TASK_ORDER_KEY,
    TASK_PRIORITY,
    TASK_STATUS,
    TASK_VERSION,
    TASK_TURN,
    TASK_ATTEMPT,
    TASK_TEXT,
    TASK_METADATA,
    TASK_SOURCE,
    TASK_CREATED_MS,
    TASK_UPDATED_MS,
    TASK_DEADLINE_MS,
    TASK_FINISHED_MS, /* NULL while it is not over */
    TASK_BUDGET_MS,
    TASK_PARENT_ID,
    TASK_DEPTH,
    TASK_OWNER_NODE,
    TASK_EPOCH,
    TASK_LEASE_UNTIL_MS,
    TASK_RESULT_TEXT,
    TASK_RESULT_METADATA,
    TASK_ERROR_CODE,
    TASK_ERROR,
    TASK_ENVELOPE, /* 1: the text is one, as JSON; NULL: a message */
    TASK_BY_AGENT, /* these are NULL in a task that a person sent … */
    TASK_ROOT_ID,
    TASK_CHAIN,
    TASK_PRICE_MICROS, /* … and these where nothing is to be paid */
    TASK_PAYEE,
    TASK_STARTED_MS, /* of the turn that is over; NULL: nobody was given it */
    TASK_TRACE,
    TASK_DECISION_ID, /* NULL in a turn from before it was kept */
    TASK_SESSION,     /* task_session; NULL in one from before it was kept */
    TASK_PAYER_ORG,
    TASK_PRICED_AGENT, /* NULL in one from before it was kept */
    TASK_TREE,         /* NULL in a turn from before it was kept */
    TASK_CEILING_MICROS,
    N_TASK_COLUMNS,
};

/* Columns of turn_table: the turns before the one in the task's row. They go
 * when the task goes, so they hang on its key, the seq. */
enum turn_column {
    TURN_TASK_SEQ,
    TURN_NUMBER,
    TURN_MESSAGE_ID,
    TURN_SKILL,
    TURN_TEXT,
    TURN_METADATA,
    TURN_SOURCE,
    TURN_STATUS,
    TURN_ATTEMPT,
    TURN_BEGAN_MS,
    TURN_FINISHED_MS,
    TURN_RESULT_TEXT,
    TURN_RESULT_METADATA,
    TURN_ERROR_CODE,
    TURN_ERROR,
    TURN_PRICE_MICROS, /* NULL: nothing was to be paid */
    N_TURN_COLUMNS,
};

/* Columns of conversation_table. Whose it is is part of the key: two people
 * may well both call theirs "c-1". */
enum conversation_column {
    CONVERSATION_OWNER,
    CONVERSATION_ID,
    CONVERSATION_AGENT,
    CONVERSATION_CREATED_MS,
    CONVERSATION_USED_MS,
    CONVERSATION_DECISION_ID,  /* that gave it its agent; NULL: not known */
    CONVERSATION_MEANT_MS,     /* when that agent was last meant, and not who
                                * had its name later; NULL: when it was used */
    CONVERSATION_PRICE_MICROS, /* of its last message; NULL: not known */
    N_CONVERSATION_COLUMNS,
};

/* A row of task_table as a task. Its strings are those of the row. */
void task_from_row(struct task *t, const struct row *r);

/* What a row of turn_table says of a turn, into a task that has the rest. */
void task_of_turn(struct task *t, const struct row *r);

enum {
    TASK_KEY_MS = 24 * 3600 * 1000, /* how long an idempotency key is kept */
    TASK_ERROR_CODE_MAX = 64,
    TASK_ERROR_MAX = 2048,
};

/* Acceptance. */

/* What makes m a task, into m->tx: task, conversation, idempotency key and an
 * entry of the feed; m->task is filled. `before` is the task that this is a
 * further turn of, as it is now, or NULL; whether the caller may do that has
 * been asked before. Claims room, which task_settle confirms or gives back: it
 * must follow whatever became of the tx, and txs be submitted in the order of
 * these calls. On error nothing is claimed: ERR_OVERLOADED (at the limit),
 * ERR_TOO_MANY_TASKS (at that of the user or org), ERR_TASK_NOT_OVER,
 * ERR_NOT_ALLOWED (`before` was dropped), ERR_NOMEM. */
MUST_USE enum err task_create(struct tasks *ts, struct msg *m,
                              const struct task *before);

/* What became of m->tx. Committed: m->err is OK, the task is there and goes
 * its way. Else m->err says why not: ERR_EXISTS when the key was taken
 * already, and task_key_query asks whose it is; ERR_TASK_NOT_OVER when another
 * turn was first; ERR_BUSY when the task is otherwise not as `before` said. */
void task_settle(struct tasks *ts, struct msg *m);

/* Whose key it is: fill q; and what that means for m: OK, and m->task is the
 * task of then (is_repeat); ERR_IDEMPOTENCY_MISMATCH; ERR_BUSY when the key
 * is nobody's (any more), and m can simply be tried again; or the query's own
 * error. */
void task_key_query(const struct msg *m, struct query *q);
MUST_USE enum err task_key_answer(struct tasks *ts, struct msg *m,
                                  const struct query *q);

/* Moving. */

/* The task in memory; NULL when it is over (and nobody listens) or never was.
 * Borrowed until the loop's turn ends. */
const struct task *task_find(const struct tasks *ts, struct str id);

/* The moves that are not written: dispatched (one more attempt), working, and
 * back to queued, to be offered again a second later. Any other is our own
 * mistake; a task that is over or not there stays so. Telling who listens. */
void task_move(struct tasks *ts, struct str id, enum task_status to);

/* Back to queued if it was moved on, to be offered again delay_ms later, the
 * attempt written down first. One that waits otherwise stays as it is. */
void task_retry(struct tasks *ts, struct str id, int64_t delay_ms);

/* One that was offered: nobody is there to carry it after all. It waits for
 * tasks_offer_again. */
void task_put_back(struct tasks *ts, struct str id);

/* One that is held goes as part of a batch: it is shown as that is, queued or
 * dispatched, and told to who listens. Nothing else changes: it takes no room
 * at its agent, and its time does not run, for the batch has both. */
void task_carry(struct tasks *ts, struct str id, enum task_status as);

/* What it waited for is there (READY_NOT_YET, READY_NO_TURN): it is offered
 * again. Harmless where it does not wait. */
void task_offer(struct tasks *ts, struct str id);

/* Where a task goes that does not end. */
struct task_pass {
    enum task_status status; /* TASK_QUEUED, TASK_HELD or TASK_ESCALATED */
    struct str agent;        /* who has it now; empty: as before */
    enum task_priority priority;
};

/* One durable move on its way to the disk. */
struct task_change {
    struct tx tx;
    struct id task_id;
    struct task_result result; /* its strings are the change's */
    char *strings;
    int64_t turn, at_ms;
    int64_t version; /* that it moves from */
    enum err err;    /* after task_changed: why it did not come to be */
    /* Whoever submits it may use these. */
    struct walk *walk;
    struct list_node node;
    void (*done)(void *ctx, struct str task_id, enum err e);
    void *ctx;
    uint64_t receipt; /* of the agent that wants to hear of it; zero: none */
    bool is_stray;    /* and not of the attempt that is going on */
    bool is_deadline; /* nobody's wish: its time was over */
    bool is_unpaid;   /* the books are broken: it ends without them */
    /* The room's: where it is counted as the agent's answer. */
    struct task_entry *entry;
    struct list_node answer_node;
    unsigned n_handed_over; /* the task, when it was made */
    /* The room's, of a move that is no end (task_pass_new). */
    bool is_pass;
    struct task_pass pass;
    int64_t attempt, budget_ms;
    struct tasks *tasks;
    struct share *load;
};

/* Prepare the move of a task that is in memory to result->status, an end: the
 * guarded update and its entry in the feed are in c->tx. NULL: memory is gone,
 * or there is no such move from where it is now (*e says which:
 * ERR_NOT_FOUND, ERR_TASK_IS_OVER, ERR_NOT_ALLOWED, ERR_NOMEM). The strings of
 * the result are copied; the caller has seen to it that they are no longer
 * than MSG_TEXT_MAX and MSG_METADATA_MAX. Words of a failure are cut to
 * TASK_ERROR_CODE_MAX and TASK_ERROR_MAX, and tamed (str_tame).
 *
 * As long as there is a change to completed or failed, an answer that came in
 * time, its deadline waits: however often the change is refused, it is not
 * overtaken. Once it is freed without having come to be, the deadline counts
 * again. A wish to cancel may still be first. */
MUST_USE struct task_change *task_change_new(struct tasks *ts, struct str id,
                                             const struct task_result *result,
                                             enum err *e);

/* Prepare the same end once more, after it was refused, or ERR_BUSY: the task
 * moved meanwhile. ERR_TASK_IS_OVER, ERR_NOT_ALLOWED: it cannot come to be any
 * more. ERR_NOT_FOUND: the answer of an agent that it was taken from. */
MUST_USE enum err task_change_again(struct tasks *ts, struct task_change *c);

/* What became of c->tx. Committed: memory follows, listeners hear the result,
 * the next of its order gets its turn. Else c->err says why not:
 * ERR_TASK_IS_OVER when another end was first, ERR_OUTCOME_UNKNOWN when the
 * store has failed, or why the store refused it. */
void task_changed(struct tasks *ts, struct task_change *c);
void task_change_free(struct task_change *c);

/* A durable move of a task that is in memory to something that is no end: let
 * go, held, escalated, perhaps for another agent. One change like any other:
 * whoever submits it may append to c->tx, and task_changed follows. What is let
 * go has its whole time from then on, but no more than its parent has left, as
 * long as that is not over; the time of what waits does not run. What
 * an agent was given already is taken from it for another agent only: whoever
 * submits the change calls it back. NULL with *e as task_change_new. */
MUST_USE struct task_change *task_pass_new(struct tasks *ts, struct str id,
                                           const struct task_pass *pass,
                                           enum err *e);

/* Whether nobody of its order is before it; t is one of those in memory. */
bool task_is_first(const struct task *t);

/* The tasks that the agent has now, dispatched or working, one after the other:
 * the first, or the one behind `after`, which it gave before in this turn of
 * the loop. NULL: no more. Borrowed as task_find's. */
const struct task *tasks_working(const struct tasks *ts, struct str agent,
                                 const struct task *after);

/* How many tasks of that agent, whatever the case, are not over and not held
 * or escalated, nor stand behind one of their order that is, nor wait for
 * their turn (READY_NO_TURN); and how many are held or escalated. */
size_t tasks_of_agent(const struct tasks *ts, struct str agent);
size_t tasks_held_of_agent(const struct tasks *ts, struct str agent);

/* The agents have changed: offer to on_ready again whatever was handed out and
 * is still queued. */
void tasks_offer_again(struct tasks *ts);

/* Events of a turn of a task, for those who wait or watch. They are numbered
 * from 1 in each life of the server (a further turn goes on with larger
 * numbers) and kept in a ring of TASK_RING_BYTES. Whoever falls behind the
 * ring gets one gap, and goes on with what there is. The result is the last
 * one; it is never dropped, and whoever listens to a turn hears nothing of the
 * next. */

enum {
    TASK_RING_BYTES = 256 * 1024,
    /* Of all rings. Beyond it each keeps its last TASK_RING_BYTES_MIN only. */
    TASK_RINGS_BYTES = 64 * 1024 * 1024,
    TASK_RING_BYTES_MIN = 4 * 1024,
};

enum task_event_kind {
    TASK_EVENT_STATUS,     /* task->status, as it was then */
    TASK_EVENT_CHUNK,      /* words of the answer, or of another agent, as they
                            * come */
    TASK_EVENT_INPUT,      /* an agent asks something: text is input_write's */
    TASK_EVENT_INPUT_OVER, /* and it is over: likewise */
    TASK_EVENT_DELEGATED,  /* what its agent gave to another, and did not wait
                            * for, is over: text is an object */
    TASK_EVENT_GAP,        /* some events are gone */
    TASK_EVENT_RESULT,     /* the result of task_heard(l); nothing follows */
};

struct task_event {
    enum task_event_kind kind;
    int64_t number;
    int64_t at_ms;
    int64_t turn;
    enum task_status status;
    struct str text;  /* TASK_EVENT_CHUNK, and JSON of others */
    struct str agent; /* who said it; of chunks, empty: the task's own agent */
};

/* Somebody who listens; inside the listener's own struct. */
struct task_listener {
    struct list_node node, news_node; /* the room's, and these two */
    struct task_entry *entry;
    uint64_t at;
    struct id task_id;
    int64_t next;      /* the event it wants next */
    bool hears_inputs; /* it tells somebody of them, who may answer */
    void (*on_news)(struct task_listener *l);
};

/* Listen from event `from` on (1: from the first there is, without a gap for
 * what is no longer there; 0: from now on). A task that is over gives at least
 * its result. on_news comes at the end of a turn when there is something,
 * once, until task_next has said there is no more; a bounded number of them in
 * one turn. ERR_NOT_FOUND when the task is not in memory. */
MUST_USE enum err task_listen(struct tasks *ts, struct str id,
                              struct task_listener *l, int64_t from);

/* Harmless when it does not listen. */
void task_unlisten(struct tasks *ts, struct task_listener *l);

/* The task it listens to, in the turn it listens to, as it is now; NULL when
 * it does not listen. Borrowed as task_find's. */
const struct task *task_heard(const struct task_listener *l);

/* The next event; false when there is none yet. Its strings live until the
 * next call into this room. */
MUST_USE bool task_next(struct tasks *ts, struct task_listener *l,
                        struct task_event *out);

/* Words of the answer, from the attempt that is going on; others are
 * ignored: false. Long ones become several events. */
bool task_chunk(struct tasks *ts, struct str id, int64_t turn, int64_t attempt,
                struct str text);

/* Words that another agent says meanwhile, on behalf of a task that is not
 * over: for whoever listens to it, between its own; no part of its answer.
 * False: it is not there or over, and nobody is told. */
bool task_chunk_of(struct tasks *ts, struct str id, struct str agent,
                   struct str text);

/* What became of work that was given to another agent on behalf of a task that
 * is not over: an object, for whoever listens to it. */
void task_tell_delegated(struct tasks *ts, struct str id, struct str text);

/* What agents ask while they work. It is told on the streams of the asker's
 * task and of its root, and is over when it was answered, when nobody has
 * listened to either (hears_inputs) for limits.input_ms, when the agent does
 * not wait any more, or with the attempt, its task or the root's. In memory
 * alone. A root has TASK_INPUTS_MAX that are open, and the last
 * TASK_INPUTS_KEPT of those that are over are known; an attempt asks
 * TASK_ASKS_MAX times. */
enum { TASK_INPUTS_MAX = 8, TASK_INPUTS_KEPT = 16, TASK_ASKS_MAX = 256 };

/* The attempt asks. ERR_NOT_FOUND: it does not go on, or nobody can be told;
 * ERR_LIMIT, ERR_BAD_REQUEST, ERR_NOMEM: it is not asked. The log has the first
 * few of an attempt that were not. *out is borrowed as task_find's. */
MUST_USE enum err task_ask(struct tasks *ts, struct str id, int64_t turn,
                           int64_t attempt, const struct input_ask *q,
                           const struct input **out);

/* Those that are open: a root's, or what the task asks itself; the oldest
 * first, borrowed as task_find's. */
size_t task_inputs(const struct tasks *ts, struct str id,
                   const struct input *out[TASK_INPUTS_MAX]);

/* One of them, open or over, by the id of its root or of who asks. NULL: there
 * is none. */
const struct input *task_input_find(const struct tasks *ts, struct str id,
                                    struct str input_id);

/* One that is open is over; by: who said so. */
void task_input_end(struct tasks *ts, const struct input *in,
                    enum input_outcome outcome, struct str by);

/* A result came for an attempt that nobody waits for: it is counted. */
void task_late(struct tasks *ts);

/* What was said before t in its conversation between its requester and its
 * agent, for agents that remember nothing themselves: of the turns that were
 * completed the newest, so many messages (two each) and so many bytes at most,
 * given oldest first and lent for the call. Another person's conversation may
 * have the same id: nothing of theirs is in it. */
struct task_history;
typedef void task_history_done(void *ctx, enum err e,
                               const struct task_said *list, size_t n);

/* t is borrowed for the call. done once, perhaps before this returns, unless
 * it is cancelled before: then never. NULL: memory is gone. The store gives
 * every read back, so it must not be closed before the loop has run. */
MUST_USE struct task_history *
task_history_new(struct tasks *ts, const struct task *t, size_t max_n,
                 size_t max_bytes, task_history_done *done, void *ctx);
void task_history_cancel(struct task_history *h);

/* Retention. What is to be kept: */
struct tasks_keep {
    int64_t now_ms;
    int64_t before_ms; /* tasks that were over before that may go */
    int64_t rows;      /* and the oldest beyond so many; zero: however many */
    int64_t oldest_ms; /* created_ms of the oldest task there is, found by
                        * tasks_oldest, or now_ms if there is none; zero:
                        * unknown, and conversations stay */
    int64_t needed_ms; /* nothing that was over since then goes, whatever else
                        * is said; zero: there is no such time */
    size_t limit;      /* rows to remove at most, in each operation */
};

/* Fill q, which then finds the oldest task there is. */
void tasks_oldest(struct query *q);

/* Append to tx what removes tasks that need not be kept, conversations whose
 * tasks have gone, and keys that have expired. Nothing unfinished ever goes.
 * An operation whose n_rows is the limit once it is committed left some
 * behind. */
void tasks_prune(struct tasks *ts, struct tx *tx,
                 const struct tasks_keep *keep);

struct tasks_stats {
    int64_t by_status[N_TASK_STATUS]; /* in memory and not over */
    int64_t accepted_total;
    int64_t repeated_total; /* answered by an idempotency key */
    int64_t over_total[N_TASK_STATUS];
    int64_t late_total; /* results that came after the end, and were ignored */
    int64_t unfinished_bytes;
    int64_t held_result_bytes; /* of answers that are not on the disk yet */
    int64_t listeners;
    int64_t ring_bytes;
};

struct tasks_stats tasks_stats(const struct tasks *ts);

/* Everything is where it says it is. For tests. */
bool tasks_check(const struct tasks *ts);

#endif
