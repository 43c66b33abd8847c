#ifndef TASK_INTERNAL_H
#define TASK_INTERNAL_H

/* Declarations shared by the files of task/.
 *
 * An entry is one turn of a task in memory. It is in exactly one of the lists
 * of struct tasks, which is its state:
 *
 *     CLAIMED -> GOING_ON -> OVER <-> GONE -> freed at the end of the turn
 *
 * A CLAIMED entry is on its way to the disk and invisible. Everything it will
 * need is allocated then, so that nothing can fail after the commit. OVER has
 * listeners, GONE has none.
 *
 * Entries that are GOING_ON stand in their lane, ordered by place. The first of
 * a lane is in one of the lists of `heads` if it is queued. */

#include "base/buf.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/share.h"
#include "model/record.h"
#include "task/task.h"
#include "watch/watch.h"

/* The columns of key_table. */
#define KEY_COLUMNS(C)                                        \
    C(KEY_PRINCIPAL, "principal", 1, COLUMN_TEXT)             \
    C(KEY_KEY, "key", 1, COLUMN_TEXT)                         \
    C(KEY_BODY_HASH, "body_hash", 1, COLUMN_BLOB)             \
    C(KEY_TASK_ID, "task_id", 1, COLUMN_TEXT)                 \
    C(KEY_MESSAGE_ID, "message_id", 1, COLUMN_TEXT)           \
    C(KEY_CONVERSATION_ID, "conversation_id", 1, COLUMN_TEXT) \
    C(KEY_EXPIRES_MS, "expires_ms", 1, COLUMN_INT)            \
    /* NULL: not known */                                     \
    C(KEY_DECISION_ID, "decision_id", 2, COLUMN_TEXT)

enum key_column { KEY_COLUMNS(COLUMN_NUMBER) N_KEY_COLUMNS };

/* When a column of a task is written. */
enum task_part {
    TASK_ONCE = 1,     /* with a new task */
    TASK_PER_TURN = 2, /* with each turn */
    TASK_AT_END = 4,   /* with the end of a turn; cleared by the next */
};

/* Events as bytes: appended at the end, dropped at the start; ring.c. An offset
 * counts from the very first byte ever added, so it stays valid. */
struct ring {
    struct list blocks;
    uint64_t end;
    size_t bytes; /* of memory */
};

/* Deadline timer of a task that waits, or stands behind one that does. */
enum { WAITS_MS = 1000 * 3600 * 24 * 20 };

enum entry_state { CLAIMED, GOING_ON, OVER, GONE, N_ENTRY_STATES };

/* Why the queued head of a lane waits. */
enum head_state {
    HEAD_NONE,
    HEAD_READY,   /* to be handed to on_ready */
    HEAD_WRITING, /* an attempt is being written first */
    HEAD_LATER,   /* could not be offered or written: the shared timer offers
                   * it */
    HEAD_PAUSED,  /* its attempt failed: its own timer offers it */
    HEAD_OFFERED, /* in its agent's queue, until it is moved */
    HEAD_WAITING, /* for tasks_offer_again or task_offer */
    HEAD_NO_TURN, /* for task_offer; does not count as load of its agent */
    N_HEAD_STATES,
};

struct task_entry {
    struct tasks *ts;
    struct task t;
    char *strings;        /* of t, in one allocation */
    char *agent_string;   /* t.agent, after a handover */
    char *result_strings; /* of t.result; NULL before the end */
    size_t bytes;         /* counted against the limit */
    enum entry_state state;
    struct list_node node;  /* ts->entries[state] */
    bool is_due;            /* its deadline passed before the commit */
    bool has_waited;        /* for an agent; logged once */
    unsigned n_handed_over; /* handovers in this life of the server */

    int64_t written_attempt; /* that a restart would derive from the row */
    bool must_count; /* before it is dispatched: an earlier life may have ended
                      * while it was */

    /* Shares it counts in while CLAIMED or GOING_ON: of its root user, of the
     * user's org (NULL: none), and of its agent. */
    struct task_share *share, *org, *load;
    struct list_node working_node; /* of load->working */
    struct lane *lane;
    struct list_node lane_node;
    bool is_behind; /* a held or escalated task in its lane: it cannot run,
                     * its deadline stands still, and it does not count as load
                     * of its agent */
    bool is_time_unwritten; /* its time began later than its row says */
    enum head_state head;
    struct list_node head_node; /* ts->heads[head] */
    struct timer deadline;
    struct timer pause;         /* HEAD_PAUSED */
    struct timer began;         /* its node in ts->began; never fires */
    struct list answers;        /* struct task_change, not on disk yet */
    const struct tx_op *insert; /* CLAIMED, a first turn: has the seq */

    struct ring ring;
    int64_t last_number; /* of an event */
    struct list listeners;
    struct list idle; /* listeners that have read everything */

    struct list inputs; /* struct task_input with this root, open or over */
    struct list asks;   /* open ones that this task asked */
    size_t n_hearers;   /* listeners with hears_inputs */
    size_t n_asked;     /* accepted requests of this attempt */
    size_t n_unasked;   /* rejected ones */
};

/* Sums over the CLAIMED and GOING_ON entries of one user, org or agent;
 * task_share.c. Only those of agents have n_waiting, n_behind and working. */
struct task_share {
    struct share share; /* of the entries, and of those that are coming */
    size_t bytes;
    size_t n_waiting;    /* entries that are held or escalated */
    size_t n_behind;     /* entry_is_kept_back */
    size_t n_coming;     /* handovers to this agent that are not committed */
    struct list working; /* struct task_entry, dispatched or working, in the
                          * order of dispatch */
};

/* Tasks with the same order key, which run one after the other. */
struct lane {
    struct list entries;
    size_t n_claims; /* CLAIMED entries that will join it */
    size_t key_bytes;
    char key[];
};

static inline bool entry_is_first(const struct task_entry *e)
{
    return e->lane && e->lane->entries.head.next == &e->lane_node;
}

/* The agent cannot run it yet, so it is no load of the agent. */
static inline bool entry_is_kept_back(const struct task_entry *e)
{
    return e->is_behind || e->head == HEAD_NO_TURN;
}

struct tasks {
    struct tasks_opts opts;
    char *node;
    int64_t epoch;
    bool was_stopped; /* the previous run was stopped in order */
    int64_t next_place;
    int64_t newest_seq;
    int64_t high_number; /* largest event number of a finished turn */

    struct list entries[N_ENTRY_STATES];
    size_t n_entries[N_ENTRY_STATES];
    struct list heads[N_HEAD_STATES];
    struct map by_id; /* the latest turn of each task; no CLAIMED ones */
    struct map lanes;
    struct shares users; /* struct task_share, by root user */
    struct shares orgs;  /* by the user's org at acceptance */
    struct shares loads; /* by agent, in lower case */
    struct timers began; /* entries CLAIMED or GOING_ON, the oldest first */
    size_t bytes;        /* of the same entries */
    size_t n_writing;

    struct list news; /* struct task_listener */
    bool is_telling;
    struct loop_job ready_job, news_job, free_job;
    struct timer again; /* for HEAD_LATER */
    bool is_again_soon;
    struct tasks_stats stats;
};

/* tasks.c: entries and their states. */

/* A CLAIMED entry for a copy of *t, counted in its lane, with its deadline
 * running. This is where a task is admitted, so it may fail: NULL if memory
 * runs out. */
MUST_USE struct task_entry *
task_entry_new(struct tasks *ts, const struct task *t, int64_t remaining_ms);

/* Free a CLAIMED entry. */
void entry_drop(struct task_entry *e);

/* The time that e has if it begins at began_ms: no more than its parent, which
 * waits for it, has left. A parent that is over or whose deadline stands still
 * does not limit it. */
int64_t entry_budget_ms(const struct task_entry *e, int64_t began_ms);

/* CLAIMED -> GOING_ON: it can be found and stands in its lane. */
void entry_begin(struct task_entry *e);

/* GOING_ON -> OVER or GONE. Takes the strings. */
void entry_end(struct task_entry *e, const struct task_result *r,
               char *strings);

/* Move a finished entry between OVER and GONE by whether it has listeners. */
void entry_look_for_listeners(struct task_entry *e);

struct task_entry *task_entry_find(const struct tasks *ts, struct str id);

/* Offer the HEAD_LATER entries a second from now. */
void offer_later_soon(struct tasks *ts);

static inline bool entry_is_over(const struct task_entry *e)
{
    return e->state == OVER || e->state == GONE;
}

static inline struct task_entry *entry_of_node(struct list_node *n)
{
    return LIST_OF(n, struct task_entry, node);
}

/* When its turn was accepted, by the wall clock. */
static inline int64_t task_began_ms(const struct task *t)
{
    return t->deadline_ms - t->budget_ms;
}

/* The time left after a restart. Only the wall clock is known then, but a clock
 * that was set back gives no task more than its budget. */
static inline int64_t task_left_ms(const struct task *t, int64_t now_ms)
{
    int64_t left_ms;

    if (__builtin_sub_overflow(t->deadline_ms, now_ms, &left_ms))
        left_ms = t->deadline_ms > now_ms ? INT64_MAX : 0;
    if (left_ms > t->budget_ms)
        left_ms = t->budget_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* The bytes counted for max_unfinished_bytes. */
static inline size_t task_bytes(const struct task *t)
{
    return t->text.n + t->metadata.n + t->source.n;
}

/* task_rows.c */

/* Copy all strings of r into one allocation. NULL if memory runs out: texts may
 * be larger than MEM_SMALL_BYTES. */
MUST_USE char *result_keep(struct task_result *r);

void task_result_to_row(struct tx_op *op, const struct task_result *r);

/* The turn that t is in, as a row of turn_table. */
void turn_to_row(struct tx_op *op, const struct task *t);

/* A feed entry: t was accepted from m, or ended with result r. Exactly one of m
 * and r is given. */
void task_tell_feed(struct tx *tx, const struct task *t, int64_t at_ms,
                    const struct msg *m, const struct task_result *r);

/* Enough even if every byte of an error code and a name must be escaped. */
enum {
    TASK_FEED_DATA_MAX = 6 * (TASK_ERROR_CODE_MAX + PRINCIPAL_NAME_MAX) + 256,
};

/* task_share.c */

/* The kind of caller that a task is accepted for. Admins and delegating agents
 * may use the reserved part of the capacity. */
enum claimant { CLAIMANT_USER, CLAIMANT_AGENT, CLAIMANT_ADMIN };

struct task_claim {
    struct str user, org; /* it would count for these; org empty: none */
    enum claimant by;
    size_t bytes;
};

/* Whether there is capacity for one more task. ERR_OVERLOADED: none is free.
 * ERR_TOO_MANY_TASKS, explained in *why: the user or org has used its share. */
MUST_USE enum err share_ask(const struct tasks *ts, const struct task_claim *c,
                            struct why *why);

/* The user that t counts for. The org of a user; empty: none. */
struct str share_user(const struct task *t);
struct str share_org(const struct tasks *ts, struct str user);

/* Count e in and out of its shares. Removing is a no-op when it is not in. */
MUST_USE enum err share_add(struct task_entry *e);
void share_remove(struct task_entry *e);

/* Keep the share of an agent that is to get one more task, until load_move or
 * load_forget. NULL: the map cannot grow. */
MUST_USE struct task_share *load_expect(struct tasks *ts, struct str agent);
void load_forget(struct tasks *ts, struct task_share *s);

/* Account for e's change to status `to`, and to the agent of `other` unless
 * that is NULL. Call before the status changes. */
void load_move(struct task_entry *e, enum task_status to,
               struct task_share *other);

/* Add e to its agent's `working` list or remove it, by its new status. */
void load_work(struct task_entry *e);

/* For tests: whether the shares add up to these sums. */
bool task_shares_check(const struct tasks *ts, size_t n, size_t n_waiting,
                       size_t n_behind, size_t n_working, size_t bytes);

/* task_order.c */

/* The lane of a key, created if there is none. NULL: the map cannot grow. */
MUST_USE struct lane *lane_of_key(struct tasks *ts, struct str key);
void lane_release(struct tasks *ts, struct lane *l); /* if it is empty */
void lane_add(struct task_entry *e);
void lane_remove(struct task_entry *e);
/* The status of e has changed: update e and the entries behind it. */
void lane_moved(struct task_entry *e);
/* Whether an entry before e in its lane is held or escalated. */
bool lane_waits_before(const struct task_entry *e);
/* Append to tx, which ends e, the begin of the next entry's time if that is not
 * in its row. */
void lane_write_next(const struct task_entry *e, struct tx *tx, int64_t now_ms);
/* After e was loaded: its time began no earlier than that of the entry before
 * it, which may have waited. */
void lane_take_up(struct task_entry *e, int64_t now_ms);
/* Write the attempts so far; the task is offered again when they are durable.
 */
void entry_write_attempt(struct task_entry *e);
void head_move(struct task_entry *e, enum head_state to);
void head_pause(struct task_entry *e, int64_t delay_ms);
void head_on_pause_over(struct timer *t);
void heads_offer_all(struct tasks *ts, enum head_state from); /* all of them */
void order_on_end_of_turn(struct loop_job *job);

/* task_pass.c */

/* Apply the committed change c. */
void entry_pass(struct task_entry *e, struct task_change *c);

/* task_change.c */

/* Detach the unwritten answers of e, which is over or about to be freed. */
void entry_forget_answers(struct task_entry *e);

/* task_inputs.c */

/* The first listener of input requests came, or the last one left. */
void inputs_heard(struct task_entry *e);

/* The attempt is over: withdraw the open requests that it asked. */
void inputs_asked_end(struct task_entry *e);

/* The root is over: withdraw the open requests shown there. */
void inputs_told_end(struct task_entry *e);

void inputs_free(struct task_entry *e); /* without events */
bool inputs_check(const struct task_entry *e);

/* ring.c */

struct ring_event {
    int64_t number, at_ms;
    enum task_event_kind kind;
    enum task_status status;
    struct str text;
    struct str agent; /* at most AGENT_NAME_MAX */
};

void ring_init(struct ring *r);
void ring_fini(struct ring *r, size_t *total);

/* Append; *total is the memory of all rings together. False: the event is
 * larger than the limit and is lost. */
MUST_USE bool ring_add(struct ring *r, const struct ring_event *ev,
                       size_t *total);
uint64_t ring_start(const struct ring *r);

/* The event at offset *at, which moves behind it; false at the end. An offset
 * that was dropped counts as the start. */
MUST_USE bool ring_read(const struct ring *r, uint64_t *at,
                        struct ring_event *out);
bool ring_check(const struct ring *r);

/* task_events.c */
void event_status(struct task_entry *e);
void event_input(struct task_entry *e, enum task_event_kind kind,
                 struct str agent, struct str text);
void event_result(struct task_entry *e); /* e has just ended */
void entry_deafen(struct task_entry *e); /* detach all listeners */
void events_on_end_of_turn(struct loop_job *job);

#endif
