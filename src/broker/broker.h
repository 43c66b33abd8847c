#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

/* broker: the second question of the walk, asked with what is known, and the
 * memory and patience that the gate itself does not have.
 *
 *   past         what happened for a reference, and what was let in lately
 *   holds        what waits, for what, until when; let go in order
 *   escalations  what a person must see, and what they said
 *   expected     whose answer is due when
 *   revive       agents that are dead are brought back, or stood in for
 *
 *     broker_ask -> (task_create) -> broker_record -> commit -> broker_settle
 *     a key changes -> on_ripe(task) = walk_resume -> broker_ask_again
 *         -> (task_pass_new) -> broker_record_pass -> commit ->
 *         broker_settle_pass
 *
 * Everything durable is written in the tx of the task it is about; memory
 * follows in the settle. Owns: its tables, what waits, its timers. Borrows
 * every room. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "gate/gate.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

struct broker;

extern const struct schema broker_schema;

enum {
    BROKER_PER_TURN = 64,    /* held messages looked at in one turn */
    BROKER_LOOK_MS = 30000,  /* what cannot be told by a key */
    BROKER_STATES_MS = 1000, /* the states of agents that are waited for */
    BROKER_COMMENT_MAX = 2000,
};

struct broker_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;
    struct id_maker *ids;
    uint64_t seed[2];
    const struct gate_rules *rules; /* borrowed until the next ones */
    int64_t max_age_ms; /* of an envelope's timestamp, beside what the rules
                         * say; zero: any */

    /* How an agent is, for the gate: state, queue, limits. */
    void (*agent)(void *ctx, struct str name, struct gate_agent *out);

    /* Something has changed for a task that waits: walk_resume. */
    void (*on_ripe)(void *ctx, struct str task_id);

    /* It was held for as long as it may be, or a person said so. `result` is
     * how it is to end. */
    void (*on_end)(void *ctx, struct str task_id,
                   const struct task_result *result);

    /* A task in memory; who a requester is (false: nobody, any more) and their
     * org; and a message on its walk: walk_message. For batches, and so that
     * what happened for others counts for nobody else. */
    const struct task *(*task)(void *ctx, struct str id);
    bool (*caller)(void *ctx, struct str name, struct caller *out);
    struct str (*org)(void *ctx, struct str name);
    void (*send)(void *ctx, struct msg *m,
                 void (*done)(struct msg *m, void *ctx), void *done_ctx);

    /* A held task that goes with a batch is where that is: task_carry. */
    void (*carry)(void *ctx, struct str task_id, enum task_status as);

    /* An agent is to be started again: its program, its wake url or its
     * restart command. done once, from the loop. */
    void (*restart)(void *ctx, struct str agent,
                    void (*done)(void *ctx, enum err e, const struct why *why),
                    void *done_ctx);

    /* The same as on_end for a person: done once, after the change was
     * settled, with why it did not come to be; not when this says so. */
    enum err (*end)(void *ctx, struct str task_id,
                    const struct task_result *result,
                    void (*done)(void *ctx, struct str task_id, enum err e),
                    void *done_ctx);

    /* Whether who asked may see that agent. NULL: everybody sees all. */
    bool (*sees)(void *ctx, struct str requester, struct str agent);

    /* Whether that agent is one of those that the task is done for: it is not
     * given what it asked for. NULL: nobody is. */
    bool (*is_above)(void *ctx, struct str task_id, struct str agent);

    /* Whether `backup`, which the card of `agent` or the rules name, may be
     * given what was meant for that: not where a stranger holds the name. NULL:
     * whoever is named may. */
    bool (*may_back)(void *ctx, struct str agent, struct str backup);

    /* Nothing new is to be carried to it, or again. */
    enum err (*pause)(void *ctx, struct str agent, bool is_paused,
                      struct str by, int64_t at_ms);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct broker *broker_new(const struct broker_opts *opts);

/* After the store has given everything back. */
void broker_free(struct broker *b);

/* What was kept: past, holds, escalations, expected. Once, after the tasks
 * were loaded and before the loop runs; every hold is looked at soon. */
MUST_USE enum err broker_load(struct broker *b, struct why *why);

/* Other rules: whatever waits is looked at again by them. */
void broker_set_rules(struct broker *b, const struct gate_rules *rules);
const struct gate_rules *broker_rules(const struct broker *b);

/* How old a timestamp may be; and all limits by which an envelope is taken in:
 * those of the rules, or the shorter age of the two. */
void broker_set_max_age(struct broker *b, int64_t ms);
struct gate_limits broker_limits(const struct broker *b);
void broker_stop(struct broker *b);

/* Whether m, whose agent is chosen, may go now: into m->gate.pass. Claims what
 * makes a repeat of it known at once; broker_settle or broker_leave follow.
 * ERR_LIMIT as ERR_AGENT_BUSY: it would be held, and too much is; ERR_NOMEM. */
MUST_USE enum err broker_ask(struct broker *b, struct msg *m,
                             const struct agent *chosen);

/* The same for somebody who only wants to know: nothing is claimed. */
MUST_USE enum err broker_look(struct broker *b, struct msg *m,
                              const struct gate_trace *trace);

/* Into m->tx, after task_create: hold, escalation, expected answer, event, and
 * the decision in the feed. */
void broker_record(struct broker *b, struct msg *m);

/* Whether m was dropped as the repeat of one that then did not come to be: it
 * is to be judged anew. Before broker_settle. */
bool broker_is_overtaken(const struct msg *m);

/* What became of m->tx; or, broker_leave, it was not submitted. */
void broker_settle(struct broker *b, struct msg *m);
void broker_leave(struct broker *b, struct msg *m);

/* m is an envelope whose id was there before (m->task says of which task):
 * that it was dropped, into m->gate and m->tx; and what became of that. */
void broker_record_repeat(struct broker *b, struct msg *m);
void broker_settle_repeat(struct broker *b, struct msg *m);

/* A task that waited is asked about again: into *out, which is made in the
 * arena. False: nothing has changed for it. */
MUST_USE bool broker_ask_again(struct broker *b, const struct task *t,
                               struct arena *arena, struct pass *out);

/* The move that follows from it, in its tx; and what became of that. */
void broker_record_pass(struct broker *b, const struct task *t,
                        const struct pass *p, struct tx *tx);
void broker_settle_pass(struct broker *b, const struct task *t,
                        const struct pass *p, bool is_committed);

/* A task is about to be over, in this tx: what waits in its name goes, and its
 * result is an event; then, committed, it is. `late` is told to the result. */
void broker_record_end(struct broker *b, const struct task *t,
                       const struct task_result *r, struct tx *tx);
void broker_settle_end(struct broker *b, const struct task *t,
                       const struct task_result *r);

/* A task was moved to something that is no end: who is part of it follows. */
void broker_moved(struct broker *b, const struct task *t);

/* A task waits until who gave it has less going: its agent has as much less to
 * do, and is not late with it. And its turn has come, which may not have been
 * put off. */
void broker_put_off(struct broker *b, const struct task *t);
void broker_turn_came(struct broker *b, struct str task_id);

/* An agent has come, gone or changed; empty: somebody has. */
void broker_agent_changed(struct broker *b, struct str agent);

/* The decision on a message as an object, for answers and the feed, is speak's:
 * speak_pass. */

/* Escalations. */

enum escalation_kind {
    ESCALATION_RULE = 1, /* a rule, or what could not be judged */
    ESCALATION_DEAD = 2,
    ESCALATION_LATE = 3,    /* the work goes on meanwhile */
    ESCALATION_EXPIRED = 4, /* it was held too long */
};

enum escalation_status {
    ESCALATION_OPEN = 1,
    ESCALATION_APPROVED = 2,
    ESCALATION_REJECTED = 3,
    ESCALATION_REDIRECTED = 4,
    ESCALATION_RAN_OUT = 5,  /* nobody answered in time */
    ESCALATION_RESOLVED = 6, /* it is no longer needed */
};

struct str escalation_kind_name(enum escalation_kind k);
struct str escalation_status_name(enum escalation_status s);
enum escalation_kind escalation_kind_of(struct str name);     /* zero: none */
enum escalation_status escalation_status_of(struct str name); /* likewise */

/* Columns of escalation_table. */
extern const struct table escalation_table, hold_table, event_table,
    expected_table;

enum escalation_column {
    ESCALATION_SEQ,
    ESCALATION_ID, /* esc_… */
    ESCALATION_TASK_ID,
    ESCALATION_TURN,
    ESCALATION_KIND,
    ESCALATION_STATUS,
    ESCALATION_AT_MS,
    ESCALATION_AGENT, /* that it was meant for */
    ESCALATION_REQUESTER,
    ESCALATION_ROOT_USER,
    ESCALATION_FROM,
    ESCALATION_TYPE,
    ESCALATION_REFERENCE,
    ESCALATION_PRIORITY,
    ESCALATION_RULE_NAME,
    ESCALATION_REASON,
    ESCALATION_OFFER,      /* the backup that could have it; NULL: none */
    ESCALATION_REMINDED,   /* how often */
    ESCALATION_REMIND_MS,  /* when next; NULL: not any more */
    ESCALATION_EXPIRES_MS, /* NULL: never */
    ESCALATION_DECIDED_MS, /* NULL while it is open, like the rest */
    ESCALATION_BY,
    ESCALATION_COMMENT,
    ESCALATION_TO, /* who has it instead */
    N_ESCALATION_COLUMNS,
};

/* Columns of hold_table; the key is the task. */
enum hold_column {
    HOLD_TASK_ID,
    HOLD_TURN,
    HOLD_PLACE,
    HOLD_ANSWER,
    HOLD_CAUSE,
    HOLD_AGENT,
    HOLD_RULE,
    HOLD_REASON,
    HOLD_KEYS, /* "agent:Z\nqueue:Rick" */
    HOLD_SINCE_MS,
    HOLD_UNTIL_MS,
    HOLD_ON_EXPIRY,
    HOLD_APPROVED, /* 1: a person let it go before; 2: its time was over, and
                    * it was to go then */
    HOLD_BATCH_MOST,
    HOLD_BATCH, /* the task that it is part of; NULL: none */
    HOLD_MESSAGE_ID,
    HOLD_ORDER_KEY,
    HOLD_PRIORITY,
    HOLD_FROM,
    HOLD_TYPE,
    HOLD_REFERENCE,
    HOLD_SCOPE,
    HOLD_REQUESTER,
    HOLD_ROOT_USER,
    N_HOLD_COLUMNS,
};

/* Columns of event_table: what happened for a reference, and, where there is a
 * key, that a message with that key was let in. */
enum event_column {
    EVENT_SEQ,
    EVENT_AT_MS,
    EVENT_UNTIL_MS, /* counts until then */
    EVENT_KEY,      /* 16 bytes; NULL: it is an event */
    EVENT_SCOPE,
    EVENT_REFERENCE,
    EVENT_FROM,
    EVENT_TO,
    EVENT_TYPE,
    EVENT_MESSAGE_ID,
    EVENT_APPROVED, /* enum approval */
    EVENT_TASK_ID,  /* whose it was; NULL: of before it was kept */
    N_EVENT_COLUMNS,
};

/* Columns of expected_table: whose answer is due when. The key is the task. */
enum expected_column {
    EXPECTED_TASK_ID,
    EXPECTED_TURN,
    EXPECTED_AGENT,
    EXPECTED_SINCE_MS, /* it was let go */
    EXPECTED_DUE_MS,
    EXPECTED_RULE,
    EXPECTED_IS_LATE, /* somebody was told */
    EXPECTED_FROM,
    EXPECTED_TYPE,
    EXPECTED_REFERENCE,
    EXPECTED_PRIORITY,
    EXPECTED_REQUESTER,
    EXPECTED_ROOT_USER,
    N_EXPECTED_COLUMNS,
};

/* What somebody says to an escalation. */
struct escalation_word {
    struct str id;
    enum escalation_status status; /* approved, rejected or redirected */
    struct str agent;              /* redirected: to whom */
    struct str comment, by;
};

/* done once, perhaps before this returns: OK; ERR_NOT_FOUND; ERR_TASK_IS_OVER
 * as ERR_EXISTS with words who was first; ERR_AGENT_NOT_FOUND; the store's. */
void broker_say(struct broker *b, const struct escalation_word *word,
                void (*done)(void *ctx, enum err e, const struct why *why),
                void *ctx);

/* Nothing new is carried to the agent until it is resumed, over restarts too.
 * done as above. */
void broker_pause(struct broker *b, struct str agent, bool is_paused,
                  struct str by,
                  void (*done)(void *ctx, enum err e, const struct why *why),
                  void *ctx);

/* An agent is removed by this tx, and its pause with it: who takes the name
 * next was not meant. */
void broker_agent_gone(struct tx *tx, struct str agent);

/* An answer to t that is later than was expected says so in its metadata:
 * "late_ms". False: it is not late, or the metadata has no room for it; *out is
 * then untouched. */
MUST_USE bool broker_late(const struct broker *b, const struct task *t,
                          struct str metadata, struct buf *out);

/* What is held, for lists: by place, behind `after` (zero: from the first), up
 * to max; borrowed until the loop's turn ends. */
struct held {
    struct id task_id, message_id;
    int64_t place;
    enum gate_answer answer;
    enum pass_cause cause;
    enum task_priority priority;
    struct str agent, rule, reason;
    struct str from, type, reference;
    struct str requester, root_user; /* besides admins, these may see it */
    int64_t since_ms, until_ms;
    enum pass_expiry on_expiry;
    bool is_behind; /* another of its order goes first; then it is looked at */
    const struct wait_key *keys;
    size_t n_keys;
};
size_t broker_holds(const struct broker *b, int64_t after, struct held *out,
                    size_t max);

/* The same for those that fit. Empty strings, and a NULL caller: whichever.
 * Names of agents whatever their case. */
struct held_filter {
    struct str agent, rule, reference, task_id;
    const struct caller *caller; /* who may see it */
};
size_t broker_holds_like(const struct broker *b, const struct held_filter *f,
                         int64_t after, struct held *out, size_t max);

/* How much waits that the caller may see, for rules and for people: as many as
 * their lists have. */
struct broker_waiting {
    int64_t held, escalations_open;
};
struct broker_waiting broker_waiting(const struct broker *b,
                                     const struct caller *caller);

/* How many are held for that agent. */
size_t broker_held_for(const struct broker *b, struct str agent);

/* The rules as a graph (gate_graph), with what is known: of a task, as if it
 * were asked about now; without one (NULL) of a reference, which may be empty,
 * within the scope of that requester. */
struct graph_about {
    const struct task *task;
    struct str requester, reference;
};
struct graph_known {
    struct envelope envelope; /* what was asked about; no type: no message */
    struct gate_event events[GATE_EVENTS_MAX]; /* of its reference */
    size_t n_events;
};
/* ERR_SYNTAX: the task has an envelope that cannot be read; ERR_NOMEM. The
 * strings are the task's, the arena's and, lent for the loop's turn, the
 * past's. */
MUST_USE enum err broker_graph(struct broker *b,
                               const struct graph_about *about,
                               struct arena *arena, const struct gate_graph *to,
                               struct graph_known *out);

/* How an agent is, for the gate; one that nobody knows is DEAD. */
struct gate_agent broker_agent(const struct broker *b, struct str name);

/* Old events and escalations go: for tidy. */
void broker_prune(struct broker *b, struct tx *tx, int64_t before_ms,
                  int64_t rows, size_t limit);

/* Figures, since the start unless it says otherwise. */
struct broker_stats {
    int64_t by_answer[N_GATE_ANSWERS];
    int64_t held, held_most; /* now, and at once at most */
    int64_t released_total, expired_total;
    int64_t hold_ms_total, hold_ms_max;
    int64_t held_normal_total, hold_normal_ms_total; /* of priority NORMAL */
    int64_t escalations_open, escalations_total[5];  /* by kind */
    int64_t late_total;
    int64_t restarts_total, restarts_failed_total, takeovers_total;
    int64_t events, keys;    /* of the past, in memory */
    int64_t forgotten_total; /* of those, for want of room */
    int64_t looks_total;     /* held messages asked about again */
};
struct broker_stats broker_stats(const struct broker *b);

/* Everything is where it says it is. For tests. */
bool broker_check(const struct broker *b);

#endif
