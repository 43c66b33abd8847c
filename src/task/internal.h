#ifndef TASK_INTERNAL_H
#define TASK_INTERNAL_H

/* What the files of task/ share.
 *
 * An entry is one turn of a task in memory. It is in exactly one of the lists
 * of struct tasks, which is its state:
 *
 *     CLAIMED -> GOING_ON -> OVER <-> GONE -> freed at the end of the turn
 *
 * CLAIMED is on its way to the disk and nobody can see it; everything it will
 * need is allocated then, so that nothing can fail once it is committed. OVER
 * has somebody who listens, GONE has nobody.
 *
 * Entries that are GOING_ON stand in their lane, by place. The first of a lane,
 * if it is queued, is in one of the lists of `heads`. */

#include "base/buf.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "task/task.h"
#include "watch/watch.h"

enum key_column {
    KEY_PRINCIPAL,
    KEY_KEY,
    KEY_BODY_HASH,
    KEY_TASK_ID,
    KEY_MESSAGE_ID,
    KEY_CONVERSATION_ID,
    KEY_EXPIRES_MS,
    KEY_DECISION_ID, /* NULL: not known */
    N_KEY_COLUMNS,
};

/* Events as bytes that only grow at the end and go at the beginning; ring.c.
 * A place in it is counted from the very first byte, so it stays right. */
struct ring {
    struct list blocks;
    uint64_t end;
    size_t bytes; /* of memory */
};

/* As far away as what waits, or stands behind it, has its deadline: the timer
 * keeps its place in the heap, so that the time can begin without memory. */
enum { WAITS_MS = 1000 * 3600 * 24 * 20 };

enum entry_state { CLAIMED, GOING_ON, OVER, GONE, N_ENTRY_STATES };

/* Where the head of a lane waits, when it is queued. */
enum head_state {
    HEAD_NONE,
    HEAD_READY,   /* to be handed to on_ready */
    HEAD_WRITING, /* its last attempt is being written first */
    HEAD_LATER,   /* could not be carried or written: the timer offers it */
    HEAD_PAUSED,  /* came to nothing: its own timer offers it */
    HEAD_OFFERED, /* at its agent's desk, until it is moved */
    HEAD_WAITING, /* for tasks_offer_again or task_offer */
    HEAD_NO_TURN, /* for its turn: task_offer offers it. Not its agent's load */
    N_HEAD_STATES,
};

struct task_entry {
    struct tasks *ts;
    struct task t;
    char *strings;        /* of t, in one piece */
    char *agent_string;   /* t.agent, if it was handed over */
    char *result_strings; /* of t.result; NULL before the end */
    size_t bytes;         /* that count for the limit */
    enum entry_state state;
    struct list_node node;  /* ts->entries[state] */
    bool is_due;            /* its time was over before it was committed */
    bool has_waited;        /* for an agent, and the log says so */
    unsigned n_handed_over; /* to other agents, in this life */

    int64_t written_attempt; /* as a restart would reckon for this life */

    /* That it counts in, while CLAIMED or GOING_ON: its root user's, that of
     * the user's org (NULL: none), and its agent's. */
    struct share *share, *org, *load;
    struct list_node working_node; /* of load->working */
    struct lane *lane;
    struct list_node lane_node;
    bool is_behind; /* one that is held or escalated, in its lane: it cannot go
                     * now, its time does not run, and it does not count as its
                     * agent's load */
    bool is_time_unwritten; /* it began later than its row says */
    enum head_state head;
    struct list_node head_node; /* ts->heads[head] */
    struct timer deadline;
    struct timer pause;         /* HEAD_PAUSED */
    struct timer began;         /* its place in ts->began; never fires */
    struct list answers;        /* struct task_change, not on the disk yet */
    const struct tx_op *insert; /* CLAIMED, a first turn: gives the seq */

    struct ring ring;
    int64_t last_number; /* of an event */
    struct list listeners;
    struct list idle; /* those of them who have read everything */

    struct list inputs; /* struct task_input, told here; some are over */
    struct list asks;   /* those that are asked by it, and open */
    size_t n_hearers;   /* of the listeners: who is told of inputs */
    size_t n_asked;     /* times that the attempt asked */
    size_t n_unasked;   /* and could not */
};

/* What one user, one org, or one agent, has of what is CLAIMED or GOING_ON;
 * share.c. */
struct share {
    size_t n, bytes;
    size_t n_waiting;    /* of n: held or escalated; of agents only */
    size_t n_behind;     /* of n: entry_is_kept_back; likewise */
    size_t n_coming;     /* that are to be handed over to it */
    struct list working; /* struct task_entry, dispatched or working: in the
                          * order in which they were; likewise */
    size_t who_bytes;
    char who[];
};

/* Those who go one after the other. */
struct lane {
    struct list entries;
    size_t n_claims; /* CLAIMED entries that will come to stand here */
    size_t key_bytes;
    char key[];
};

static inline bool entry_is_first(const struct task_entry *e)
{
    return e->lane && e->lane->entries.head.next == &e->lane_node;
}

/* By another than its agent, which has nothing to do with it yet. */
static inline bool entry_is_kept_back(const struct task_entry *e)
{
    return e->is_behind || e->head == HEAD_NO_TURN;
}

struct tasks {
    struct tasks_opts opts;
    char *node;
    int64_t epoch;
    int64_t next_place;
    int64_t newest_seq;
    int64_t high_number; /* no event of a turn that is over has a larger one */

    struct list entries[N_ENTRY_STATES];
    size_t n_entries[N_ENTRY_STATES];
    struct list heads[N_HEAD_STATES];
    struct map by_id; /* the latest turn of each; not those CLAIMED */
    struct map lanes;
    struct map shares;   /* by root user */
    struct map orgs;     /* by that user's org, as it was at acceptance */
    struct map loads;    /* by agent, in lower case */
    struct timers began; /* entries CLAIMED or GOING_ON, the oldest first */
    size_t bytes;        /* of the same */
    size_t n_writing;

    struct list news; /* struct task_listener */
    bool is_telling;
    struct loop_job ready_job, news_job, free_job;
    struct timer again; /* for HEAD_LATER; always set, but seldom soon */
    bool is_again_soon;
    struct tasks_stats stats;
};

/* tasks.c: entries and their states. */

/* An entry for a copy of *t, CLAIMED, in its lane's count, its deadline
 * running. NULL: memory is gone. */
MUST_USE struct task_entry *
task_entry_new(struct tasks *ts, const struct task *t, int64_t remaining_ms);

/* For one that is CLAIMED. */
void entry_drop(struct task_entry *e);

/* How long it has if its time begins then: no longer than its parent has, which
 * waits for it, unless that is over, or its own time does not run. */
int64_t entry_budget_ms(const struct task_entry *e, int64_t began_ms);

/* CLAIMED -> GOING_ON: it can be found, stands in its lane, and is told. */
void entry_begin(struct task_entry *e);

/* GOING_ON -> OVER or GONE. Takes the strings. */
void entry_end(struct task_entry *e, const struct task_result *r,
               char *strings);

/* GONE once it is over and nobody listens; back again when somebody does. */
void entry_look(struct task_entry *e);

struct task_entry *task_entry_find(const struct tasks *ts, struct str id);

/* What is HEAD_LATER is offered a second from now. */
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

/* What a start leaves of its time: by the wall clock, which is all there is
 * then; but a clock that was set back gives nobody more than they had. */
static inline int64_t task_left_ms(const struct task *t, int64_t now_ms)
{
    int64_t left_ms;

    if (__builtin_sub_overflow(t->deadline_ms, now_ms, &left_ms))
        left_ms = t->deadline_ms > now_ms ? INT64_MAX : 0;
    if (left_ms > t->budget_ms)
        left_ms = t->budget_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* What counts for max_unfinished_bytes. */
static inline size_t task_bytes(const struct task *t)
{
    return t->text.n + t->metadata.n + t->source.n;
}

/* rows.c */

/* All strings of t into one piece of memory. NULL: memory is gone. */
MUST_USE char *task_keep(struct task *t);
MUST_USE char *result_keep(struct task_result *r);

/* All columns but the seq and those of a result. */
void task_to_row(struct tx_op *op, const struct task *t);

/* What begins with every turn: in the row of a new task, and when a further
 * turn puts an old one back. */
void task_turn_to_row(struct tx_op *op, const struct task *t);
void task_result_to_row(struct tx_op *op, const struct task_result *r);
void task_clear_result(struct tx_op *op);

/* The turn that t is in, as a row of turn_table. */
void turn_to_row(struct tx_op *op, const struct task *t);

/* An entry of the feed: t was accepted as what m is, or is over with result
 * r. The other of the two is NULL. */
void task_tell_feed(struct tx *tx, const struct task *t, int64_t at_ms,
                    const struct msg *m, const struct task_result *r);

/* Even where every byte of an error code and a name had to be escaped. */
enum {
    TASK_FEED_DATA_MAX = 6 * (TASK_ERROR_CODE_MAX + PRINCIPAL_NAME_MAX) + 256,
};

/* share.c */

/* On whose word a task is accepted: admins and agents that delegate may use
 * what is kept back. */
enum claimant { CLAIMANT_USER, CLAIMANT_AGENT, CLAIMANT_ADMIN };

struct task_claim {
    struct str user, org; /* that it would count for; org empty: none */
    enum claimant by;
    size_t bytes;
};

/* Whether there is capacity for one more task. ERR_OVERLOADED: none is free.
 * ERR_TOO_MANY_TASKS: the user or the org has its share, as *why says. */
MUST_USE enum err share_ask(const struct tasks *ts, const struct task_claim *c,
                            struct why *why);

/* The user that t counts for, and the org of a user; empty: none. */
struct str share_user(const struct task *t);
struct str share_org(const struct tasks *ts, struct str user);

/* Count e in, and out again; out is harmless when it is not in. ERR_NOMEM. */
MUST_USE enum err share_add(struct task_entry *e);
void share_remove(struct task_entry *e);

/* A place among those of an agent that is to have one more, until load_move or
 * load_forget. NULL: memory is gone. */
MUST_USE struct share *load_expect(struct tasks *ts, struct str agent);
void load_forget(struct tasks *ts, struct share *s);

/* e is about to have that status, and to be the other agent's if there is one
 * that expects it. */
void load_move(struct task_entry *e, enum task_status to, struct share *other);

/* e has its status now: whether it is at work. */
void load_work(struct task_entry *e);

/* Whether all of them together are so much. */
bool shares_check(const struct tasks *ts, size_t n, size_t n_waiting,
                  size_t n_behind, size_t n_working, size_t bytes);

/* order.c */

/* The lane of a key, made if there is none. NULL: memory is gone. */
MUST_USE struct lane *lane_get(struct tasks *ts, struct str key);
void lane_release(struct tasks *ts, struct lane *l); /* if nobody needs it */
void lane_add(struct task_entry *e);
void lane_remove(struct task_entry *e);
/* e has another status than it had in its lane. */
void lane_moved(struct task_entry *e);
/* Whether anybody before it in its lane is held or escalated. */
bool lane_waits_before(const struct task_entry *e);
/* Append to the tx of the end of e when the time of the next began, or begins
 * with it. */
void lane_write_next(const struct task_entry *e, struct tx *tx, int64_t now_ms);
/* e was taken up by a start: its time began no earlier than that of the one
 * before it, who may have waited. */
void lane_take_up(struct task_entry *e, int64_t now_ms);
void head_move(struct task_entry *e, enum head_state to);
void head_pause(struct task_entry *e, int64_t delay_ms);
void head_on_pause_over(struct timer *t);
void heads_offer(struct tasks *ts, enum head_state from); /* all of them */
void order_on_end_of_turn(struct loop_job *job);

/* pass.c */

/* c is committed. */
void entry_pass(struct task_entry *e, struct task_change *c);

/* change.c */

/* No answer is awaited to be written any more: it is over, or goes. */
void entry_forget_answers(struct task_entry *e);

/* inputs.c */

/* Somebody listens who did not, or nobody does any more. */
void inputs_heard(struct task_entry *e);

/* The attempt that goes on is over: what it asked is withdrawn. */
void inputs_asked_end(struct task_entry *e);

/* Nobody can be told there any more. */
void inputs_told_end(struct task_entry *e);

void inputs_free(struct task_entry *e); /* telling nobody */
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

/* Append; *total is what all rings have together. False: there is no room for
 * it, or no memory, and it is lost. */
MUST_USE bool ring_add(struct ring *r, const struct ring_event *ev,
                       size_t *total);
uint64_t ring_start(const struct ring *r);

/* The event at *at, which moves behind it; false at the end. A place that is
 * gone counts as the start. */
MUST_USE bool ring_read(const struct ring *r, uint64_t *at,
                        struct ring_event *out);
bool ring_check(const struct ring *r);

/* events.c */
void event_status(struct task_entry *e);
void event_input(struct task_entry *e, enum task_event_kind kind,
                 struct str agent, struct str text);
void event_result(struct task_entry *e); /* e has just ended */
void entry_deafen(struct task_entry *e); /* nobody listens any more */
void events_on_end_of_turn(struct loop_job *job);

#endif
