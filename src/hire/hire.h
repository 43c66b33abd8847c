#ifndef HIRE_HIRE_H
#define HIRE_HIRE_H

/* hire: agents that give work to agents. Beside the walk, as broker is: a
 * delegation is a task like any other and takes the same walk; this room says
 * whether it may be at all, on whose behalf it is, and sees to it that who
 * asked hears what came of it, exactly once.
 *
 *   limits    allowAgents, maxDepth, nobody twice in a chain, so many tasks
 *             under one root; all before anything is started
 *   turns     maxConcurrent of one agent go at once, as many as may wait do so
 *             in the order in which they were accepted
 *   chain     who on whose behalf, kept here and told to the agent; what an
 *             agent says of it is not believed
 *   kept      delegations whose result nobody has yet: a row each, until they
 *             have it or it is too old
 *   tree      who is whose child: what fails, is cancelled or expires takes
 *             what hangs on it with it
 *
 *     hire_ask -> (task_create) -> hire_record -> commit -> hire_settle
 *     (the task ends) -> hire_record_end -> commit -> hire_settle_end
 *         -> on_ready(delegation)         who asked is told, again whenever
 *         -> end_task(child) …            it comes back, until hire_had
 *
 * Everything durable is in the tx of the task it is about. Owns: its tables,
 * its delegations in memory, its timers. Borrows every room. Threads: the
 * loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "model/delegation.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"

struct hires;

extern const struct schema hire_schema;
extern const struct table delegation_table, tree_table, note_table;

enum delegation_column {
    DELEGATION_KEY, /* del_… */
    DELEGATION_AGENT,
    DELEGATION_ORIGINAL_ID, /* NULL: it was not asked for in two phases */
    DELEGATION_TASK_ID,
    DELEGATION_TURN,
    DELEGATION_PARENT_ID, /* NULL: of no task */
    DELEGATION_ROOT_ID,
    DELEGATION_MODE,
    DELEGATION_FLAGS, /* of the wish: 1 stream, 2 ends_with_line, 4 goes_on */
    DELEGATION_STATE,
    DELEGATION_BODY_HASH, /* a repeat of the request is known by it */
    DELEGATION_CREATED_MS,
    DELEGATION_EXPIRES_MS, /* of a result that nobody fetches */
    DELEGATION_CREATOR,    /* whose agent it was then; NULL: nobody's */
    DELEGATION_OWNER, /* of the task that it is part of: its requester … */
    DELEGATION_CONVERSATION, /* … and its conversation; NULL: of none */
    N_DELEGATION_COLUMNS,
};

/* What hangs on a root. */
enum tree_column {
    TREE_ROOT_ID,
    TREE_N_TASKS,
    TREE_UPDATED_MS,
    TREE_ROOT_USER, /* whose it is; NULL: of before it was kept */
    N_TREE_COLUMNS,
};

/* What a delegation came to, for an agent that is told with its next turn. */
enum note_column {
    NOTE_KEY, /* the delegation's */
    NOTE_OWNER,
    NOTE_CONVERSATION,
    NOTE_AGENT, /* who asked, in lower case */
    NOTE_TEXT,
    NOTE_AT_MS,
    NOTE_TOLD_SEQ, /* the turn that had it; zero: none yet */
    NOTE_TOLD_TURN,
    N_NOTE_COLUMNS,
};

enum { HIRE_PER_TURN = 64 }; /* children ended in one turn of the loop */

/* What a reload may change. */
struct hire_settings {
    int64_t timeout_ms;     /* of a delegation that says nothing: 180 s */
    int64_t max_depth;      /* where no card says less */
    int64_t max_concurrent; /* likewise, of one agent */
    int64_t max_waiting; /* beyond that, of one agent, until it is their turn */
    int64_t max_per_root; /* tasks */
    size_t max_open;      /* delegations that are kept, of all */
    size_t max_unacked;   /* results that one agent has not acknowledged */
    int64_t keep_ms;      /* a result that nobody has had */
    bool ends_with_line;  /* onDisconnect of a wish that says nothing; for who
                           * reads wishes */
};

/* One delegation as it is now. Strings are lent until the loop's turn ends. */
struct delegation {
    struct id key, task_id;
    struct str agent;   /* who asked */
    struct str creator; /* whose that agent was then; empty: nobody's */
    struct str original_id, parent_id, root_id;
    struct str owner, conversation; /* of the task parent_id; empty: none */
    int64_t turn;
    enum delegation_mode mode;
    enum delegation_state state;
    bool is_stream, ends_with_line, goes_on;
    int64_t created_ms, expires_ms;
};

struct hire_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;
    struct tasks *tasks;
    struct id_maker *ids;
    uint64_t seed[2];
    struct hire_settings settings;

    /* The agent of that name as it is now; NULL: there is none. */
    const struct agent *(*agent)(void *ctx, struct str name);

    /* End a task that is in memory: walk_end. */
    enum err (*end_task)(void *ctx, struct str task_id,
                         const struct task_result *r);

    /* It is over, durably, and who asked does not have it yet: told when it
     * ends. t has the result; lent for the call. */
    void (*on_ready)(void *ctx, const struct delegation *d,
                     const struct task *t);

    /* The turn of that task has come: it may be offered. Before that, that it
     * has to wait for it. */
    void (*on_turn)(void *ctx, struct str task_id);
    void (*on_wait)(void *ctx, const struct task *t);

    /* What became of the request that m repeats is known: is_repeat says
     * whether m is answered by it; else m is to begin anew. */
    void (*on_known)(struct msg *m);

    /* Whether that agent has no line, and is told with its next turn. */
    bool (*hears_by_note)(void *ctx, struct str agent);

    /* What hire_note was given for d is kept, durably; lent for the call. */
    void (*on_noted)(void *ctx, const struct delegation *d, struct str text);

    /* Whether who works on t can go on with it after its line, or we, were
     * away: else its attempt is over then, and what hangs on it too. */
    bool (*comes_back)(void *ctx, const struct task *t);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct hires *hire_new(const struct hire_opts *opts);

/* After the store has given everything back. */
void hire_free(struct hires *h);
void hire_set(struct hires *h, const struct hire_settings *s);
const struct hire_settings *hire_settings(const struct hires *h);

/* What was kept; children whose parent is over otherwise than well are ended
 * soon. Once, after the tasks were loaded and before the loop runs. */
MUST_USE enum err hire_load(struct hires *h, struct why *why);

/* The work that a delegation may be part of: the task `given` says, if it is
 * the agent's own and not over; else those it works on in that session; else
 * all that it works on. None: it works on nothing. Several have one payer;
 * which of them is the parent walk_parent.c says. They stand in the order of
 * their deadlines, the nearest first; of more than HIRE_PARENTS_MAX these are
 * the first. ERR_BAD_REQUEST: `given` is nothing that it works on, or they have
 * different payers; with words. */
enum { HIRE_PARENTS_MAX = 64 };
struct hire_parents {
    const struct task *list[HIRE_PARENTS_MAX];
    size_t n;
    bool is_of_session; /* all of them are, or none was said */
};
MUST_USE enum err hire_parents(struct hires *h, struct str agent,
                               struct str given, struct str session,
                               struct hire_parents *out, struct why *why);

/* How many tasks hang on that root: a row of tree_table, or none. */
void hire_tree_query(struct query *q, struct str root_id);

/* Whether m is a request that was made before and is kept, by its original id:
 * m->hire.is_repeat, with the task and the key of then; or, where that one is
 * not durable yet, is_behind too: then on_known comes, once. ERR_ID_IN_USE: it
 * was another request; unless they were told what came of that: then this one
 * takes the id over, and that one counts as had once hire_ask was OK. */
MUST_USE enum err hire_repeat(struct hires *h, struct msg *m);

/* Whether hire_repeat would say that it is, and nothing is to be waited for. */
bool hire_is_known(const struct hires *h, struct str agent,
                   struct str original_id,
                   const uint8_t body_hash[MSG_BODY_HASH_BYTES]);

/* Whether m->hire.agent may give m to `chosen`, and on whose behalf: fills
 * m->hire and sets m->call.timeout_ms so that it ends no later than its parent.
 * Claims what the limits count; hire_settle or hire_leave follow. Nothing
 * happens where no agent asks. ERR_DELEGATION, ERR_DELEGATIONS, ERR_ID_IN_USE,
 * ERR_OVERLOADED (as many as may are kept of all), ERR_NOT_FOUND (`before` is
 * not of the same agent, for the same user), ERR_NOMEM, with words.
 * m->hire.is_repeat: as hire_repeat, and nothing is to be made of it. */
MUST_USE enum err hire_ask(struct hires *h, struct msg *m,
                           const struct agent *chosen,
                           const struct task *before);

/* Whether t may be carried: it is no delegation, or its turn among those of who
 * asked has come (max_concurrent). Else on_turn comes. */
bool hire_may_go(const struct hires *h, const struct task *t);

/* The same of one that could be carried now: from then on it has a place, or
 * stands in line for one. And t is where it was moved to: what is held or
 * escalated gives up either, until it comes up again. */
bool hire_come_up(struct hires *h, const struct task *t);
void hire_moved(struct hires *h, const struct task *t);

/* Cards have changed: more may go. */
void hire_look_at_turns(struct hires *h);

/* Into m->tx, after task_create: the delegation, and one more under its
 * root. */
void hire_record(struct hires *h, struct msg *m);

/* Why a tx was not committed: OK, it was not for a limit of this room's;
 * ERR_DELEGATIONS with words in m->why. Before hire_settle. */
MUST_USE enum err hire_refused(struct hires *h, struct msg *m);

/* What became of m->tx; or, hire_leave, it was not submitted. */
void hire_settle(struct hires *h, struct msg *m);
void hire_leave(struct hires *h, struct msg *m);

/* The end of a turn, into its tx; and once that is committed. */
void hire_record_end(struct hires *h, const struct task *t, struct tx *tx);
void hire_settle_end(struct hires *h, const struct task *t,
                     const struct task_result *r);

/* An attempt of that task was given up, and nobody goes on with it: its
 * children end. */
void hire_attempt_over(struct hires *h, struct str task_id);

/* Hearing of it. */

/* That delegation, if it is still kept; NULL: it is not. Lent. */
const struct delegation *hire_find(const struct hires *h, struct str key);
const struct delegation *hire_find_task(const struct hires *h,
                                        struct str task_id);

/* Whether it is of the agent of that name as it is now: a name that was given
 * up may be somebody else's, and what was asked for before is not for them.
 * They are not told of it, and cannot acknowledge or fetch it. */
bool hire_is_own(const struct hires *h, const struct delegation *d);

/* The agent has the result of that one: it is not told again. Whatever it was
 * called: its key, its task's id (the first turn that it has not had), or the
 * original id. ERR_NOT_FOUND: it is no
 * delegation of this agent's that is kept (it may have been had before);
 * ERR_TASK_NOT_OVER; ERR_NOMEM. Else done once, when that is durable, or with
 * why not. done may be NULL. */
MUST_USE enum err hire_had(struct hires *h, struct str agent, struct str which,
                           void (*done)(void *ctx, enum err e), void *ctx);

/* An agent can be told again: on_ready for every result that it has not had, a
 * bounded number in each turn. And: it cannot any more; what was to end with
 * its line does. */
void hire_agent_came(struct hires *h, struct str agent);
void hire_agent_gone(struct hires *h, struct str agent);

/* It was said on a line of who asked: whether they understood is not known
 * before hire_had, but they may use its original id anew. */
void hire_told(struct hires *h, struct str key);

/* on_ready once more, soon, if it is over: its request was repeated. */
void hire_tell_again(struct hires *h, struct str key);

/* on_ready came, but who asked could not be told for want of memory or since
 * the result could not be read: it comes again, in a second. */
void hire_not_told(struct hires *h, struct str key);

/* on_ready came, and who asked is told with its next turn in the conversation
 * that it asked in: text is kept until then, durably, and the delegation counts
 * as had; `news` is in the feed, in the same commit. What cannot be written is
 * tried again, by on_ready. ERR_NOT_FOUND: it was not of a conversation, or is
 * had; ERR_NOMEM. */
struct feed_entry;
MUST_USE enum err hire_note(struct hires *h, struct str key, struct str text,
                            const struct feed_entry *news);

/* The notes of t's conversation and agent: those that no turn has had yet, the
 * oldest first, or those that one had, the newest first. Fills q. */
void hire_notes(struct query *q, const struct task *t, bool is_told,
                size_t limit);

/* Into the tx that completes t: this turn has had that note. */
void hire_record_told(struct hires *h, const struct task *t, struct str key,
                      struct tx *tx);

/* What is told of a result whose row is not there any more: that it failed,
 * "result_gone". Lent as d is. */
struct task hire_gone(const struct delegation *d);

/* Somebody who waits for one; inside their own struct. When it is over (as it
 * may be at once, by the gate), or wait_ms have passed, on_over comes once,
 * from the loop: e is OK and t has the result; or ERR_TIMEOUT: then the task
 * was ended unless the delegation goes on by its wish. A result that was given
 * to a waiter counts as had. ERR_NOT_FOUND, ERR_TASK_IS_OVER (and had),
 * ERR_NOMEM: nobody waits. */
struct hire_waiter {
    struct list_node node; /* the room's, and these */
    struct hire *hire;
    struct timer timer;
    void (*on_over)(struct hire_waiter *w, enum err e,
                    const struct delegation *d, const struct task *t);
};
MUST_USE enum err hire_wait(struct hires *h, struct str key, int64_t wait_ms,
                            struct hire_waiter *w);
/* Harmless when it does not wait. */
void hire_unwait(struct hires *h, struct hire_waiter *w);

/* Results that nobody has had are in the rows of their tasks: of tasks that
 * were over since then none may go. INT64_MAX: none is needed. */
int64_t hire_needed_ms(const struct hires *h);

/* What is over and had, or too old, into a tx that removes it; as
 * tasks_prune. */
void hire_prune(struct hires *h, struct tx *tx, int64_t now_ms,
                int64_t before_ms, size_t limit);

/* Why one was refused before it was begun. */
enum hire_refusal {
    HIRE_NOT_ALLOWED, /* ERR_DELEGATION */
    HIRE_TOO_MANY,    /* ERR_DELEGATIONS */
    HIRE_ID_IN_USE,
    HIRE_OTHERWISE, /* overloaded, out of memory */
    N_HIRE_REFUSALS,
};

struct hire_stats {
    int64_t open, waiting, ready;        /* now; `waiting` are open too */
    int64_t refused_by[N_HIRE_REFUSALS]; /* refused_total, by why */
    int64_t delegated_total, refused_total, had_total, expired_total;
    int64_t ended_below_total; /* because of their parent */
};
struct hire_stats hire_stats(const struct hires *h);

/* Everything is where it says it is. For tests. */
bool hire_check(const struct hires *h);

#endif
