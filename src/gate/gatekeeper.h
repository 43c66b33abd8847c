#ifndef GATE_GATEKEEPER_H
#define GATE_GATEKEEPER_H

/* gatekeeper: asks the rules (gate/rules) about messages, and keeps the state
 * that the rules need.
 *
 *   events       what happened for a reference, and what was let in lately
 *   holds        held messages: what each waits for, until when, in which order
 *   escalations  messages that a person must see, and their replies
 *   SLAs         which answer is due when
 *   outages      dead agents are restarted, or replaced by a backup
 *
 *     gatekeeper_ask -> (task_create) -> gatekeeper_record -> commit
 *         -> gatekeeper_settle
 *     a key changes -> on_ripe(task) = walk_resume -> gatekeeper_ask_again
 *         -> (task_pass_new) -> gatekeeper_record_release -> commit
 *         -> gatekeeper_settle_release
 *
 * Everything durable is written in the tx of its task; memory follows when the
 * tx is settled. Owns: its tables, holds, timers. Borrows: everything in its
 * options. Threads: loop thread only. */

#include "access/access.h"
#include "base/log.h"
#include "base/loop.h"
#include "gate/rules/rules.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

struct gatekeeper;

extern const struct schema gatekeeper_schema;

enum {
    GATEKEEPER_PER_TURN = 64,    /* held messages looked at in one turn */
    GATEKEEPER_LOOK_MS = 30000,  /* between looks at holds without a wait key */
    GATEKEEPER_STATES_MS = 1000, /* between looks at the states of agents */
    GATEKEEPER_COMMENT_MAX = 2000,
};

struct gatekeeper_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct id_maker *ids;
    uint64_t seed[2];
    const struct gate_rules *rules; /* borrowed until gatekeeper_set_rules */
    int64_t max_age_ms; /* limit on the age of timestamps besides the rules';
                           zero: none */

    struct tasks *tasks;
    struct access *access;
    struct registry *registry; /* NULL: every agent may be seen, and be a
                                  backup (tests) */

    /* The state of an agent for the gate: state, queue, limits. */
    void (*agent)(void *ctx, struct str name, struct gate_agent *out);

    /* A waiting task must be decided again: walk_resume. */
    void (*on_ripe)(void *ctx, struct str task_id);

    /* End a task: walk_end. A held task has expired, a batch has ended it, or a
     * person has. done, which may be NULL, is called once the change is
     * settled, unless this returns an error. */
    enum err (*end)(void *ctx, struct str task_id,
                    const struct task_result *result,
                    void (*done)(void *ctx, struct str task_id, enum err e),
                    void *done_ctx);

    /* A new message: walk_message. */
    void (*send)(void *ctx, struct msg *m,
                 void (*done)(struct msg *m, void *ctx), void *done_ctx);

    /* Restart an agent: its program, its wake url or its restart command. Calls
     * done once, from the loop. */
    void (*restart)(void *ctx, struct str agent,
                    void (*done)(void *ctx, enum err e, const struct why *why),
                    void *done_ctx);

    /* Stop or resume new deliveries to an agent. */
    enum err (*pause)(void *ctx, struct str agent, bool is_paused,
                      struct str by, int64_t at_ms);
    void *ctx;
};

/* Never NULL. */
MUST_USE struct gatekeeper *gatekeeper_new(const struct gatekeeper_opts *opts);

/* Call after the store has returned every tx and query. */
void gatekeeper_free(struct gatekeeper *b);

/* Load events, holds, escalations and SLAs. Call once, after the tasks were
 * loaded and before the loop runs. Every hold is looked at soon after. */
MUST_USE enum err gatekeeper_load(struct gatekeeper *b, struct why *why);

/* Use other rules; all holds are looked at again. */
void gatekeeper_set_rules(struct gatekeeper *b, const struct gate_rules *rules);
const struct gate_rules *gatekeeper_rules(const struct gatekeeper *b);

/* The age limit for timestamps; and all limits for accepting an envelope: those
 * of the rules, with the smaller of both ages. */
void gatekeeper_set_max_age(struct gatekeeper *b, int64_t ms);
struct gate_limits gatekeeper_limits(const struct gatekeeper *b);
void gatekeeper_stop(struct gatekeeper *b);

/* Decide on m, whose agent is chosen, into m->gate.gate_result. Claims its
 * keys, so that a concurrent repeat is recognized; gatekeeper_settle or
 * gatekeeper_leave must follow. ERR_AGENT_BUSY: it would be held, and the limit
 * of holds is reached; ERR_NOMEM. */
MUST_USE enum err gatekeeper_ask(struct gatekeeper *b, struct msg *m,
                                 const struct agent *chosen);

/* Decide without claiming anything, for information. ERR_NOMEM. */
MUST_USE enum err gatekeeper_look(struct gatekeeper *b, struct msg *m,
                                  const struct gate_trace *trace);

/* Write into m->tx, after task_create: hold, escalation, SLA, event, and the
 * decision in the feed. */
void gatekeeper_record(void *gatekeeper, struct msg *m);

/* Whether m was dropped as the repeat of a message that was then not committed,
 * so that m must be decided again. Call before gatekeeper_settle. */
bool gatekeeper_is_overtaken(const struct msg *m);

/* Settle m by the result of m->tx; or, gatekeeper_leave, without one. */
void gatekeeper_settle(void *gatekeeper, struct msg *m);
void gatekeeper_leave(void *gatekeeper, struct msg *m);

/* m is an envelope with an id that was accepted before (m->task names that
 * task): write its drop into m->gate and m->tx; and settle it. */
void gatekeeper_record_repeat(struct gatekeeper *b, struct msg *m);
void gatekeeper_settle_repeat(struct gatekeeper *b, struct msg *m);

/* Decide again on a task that waited. *out is in the arena. False: nothing has
 * changed. */
MUST_USE bool gatekeeper_ask_again(struct gatekeeper *b, const struct task *t,
                                   struct arena *arena,
                                   struct gate_result *out);

/* Write the resulting move into the task's tx; and settle it. */
void gatekeeper_record_release(void *gatekeeper, const struct task *t,
                               const struct gate_result *p, struct tx *tx);
void gatekeeper_settle_release(void *gatekeeper, const struct task *t,
                               const struct gate_result *p, bool is_committed);

/* Write the end of a task into its tx: its hold and escalations go, and its
 * result becomes an event. And settle it. */
void gatekeeper_record_end(void *gatekeeper, const struct turn_end *end,
                           struct tx *tx);
void gatekeeper_settle_end(void *gatekeeper, const struct turn_end *end);

/* A task moved to a status that is not an end; members of a batch follow. */
void gatekeeper_moved(struct gatekeeper *b, const struct task *t);

/* A task waits until its requester has fewer tasks running: the agent's queue
 * shrinks, and its SLA clock stops. turn_came: its turn has come; harmless if
 * it was not put off. */
void gatekeeper_put_off(struct gatekeeper *b, const struct task *t);
void gatekeeper_turn_came(struct gatekeeper *b, struct str task_id);

/* An agent has come, gone or changed; an empty name: any agent. */
void gatekeeper_agent_changed(struct gatekeeper *b, struct str agent);

enum escalation_kind {
    ESCALATION_RULE =
        1, /* by a rule, or because a condition could not be evaluated */
    ESCALATION_DEAD = 2,
    ESCALATION_LATE = 3,    /* the work continues */
    ESCALATION_EXPIRED = 4, /* held for too long */
};

enum escalation_status {
    ESCALATION_OPEN = 1,
    ESCALATION_APPROVED = 2,
    ESCALATION_REJECTED = 3,
    ESCALATION_REDIRECTED = 4,
    ESCALATION_RAN_OUT = 5,  /* no reply in time */
    ESCALATION_RESOLVED = 6, /* no longer needed */
};

struct str escalation_kind_name(enum escalation_kind k);
struct str escalation_status_name(enum escalation_status s);
enum escalation_kind escalation_kind_of(struct str name);     /* zero: none */
enum escalation_status escalation_status_of(struct str name); /* likewise */

/* Columns of escalation_table. */
extern const struct table escalation_table, hold_table, event_table,
    expected_table;

#define ESCALATION_COLUMNS(C)                                                  \
    C(ESCALATION_SEQ, "seq", 1, COLUMN_INT)                                    \
    C(ESCALATION_ID, "id", 1, ESCALATION(id)) /* esc_… */                    \
    C(ESCALATION_TASK_ID, "task_id", 1, ESCALATION(subject.task_id))           \
    C(ESCALATION_TURN, "turn", 1, ESCALATION(subject.turn))                    \
    C(ESCALATION_KIND, "kind", 1, ESCALATION(kind))                            \
    C(ESCALATION_STATUS, "status", 1, COLUMN_INT)                              \
    C(ESCALATION_AT_MS, "at_ms", 1, ESCALATION(at_ms))                         \
    /* the intended agent */                                                   \
    C(ESCALATION_AGENT, "agent", 1, ESCALATION(subject.agent))                 \
    C(ESCALATION_REQUESTER, "requester", 1, ESCALATION(subject.requester))     \
    C(ESCALATION_ROOT_USER, "root_user", 1, ESCALATION(subject.root_user),     \
      OR_NULL)                                                                 \
    C(ESCALATION_FROM, "from_name", 1, ESCALATION(subject.from), OR_NULL)      \
    C(ESCALATION_TYPE, "type", 1, ESCALATION(subject.type), OR_NULL)           \
    C(ESCALATION_REFERENCE, "reference", 1, ESCALATION(subject.reference),     \
      OR_NULL)                                                                 \
    C(ESCALATION_PRIORITY, "priority", 1, ESCALATION(subject.priority))        \
    C(ESCALATION_RULE_NAME, "rule", 1, COLUMN_TEXT)                            \
    C(ESCALATION_REASON, "reason", 1, COLUMN_TEXT)                             \
    /* a backup that could take it; NULL: none */                              \
    C(ESCALATION_OFFER, "offer", 1, COLUMN_TEXT)                               \
    /* number of reminders */                                                  \
    C(ESCALATION_REMINDED, "reminded", 1, ESCALATION(reminded))                \
    /* the next reminder; NULL: none */                                        \
    C(ESCALATION_REMIND_MS, "remind_ms", 1, ESCALATION(remind_ms), OR_NULL)    \
    /* NULL: never */                                                          \
    C(ESCALATION_EXPIRES_MS, "expires_ms", 1, ESCALATION(expires_ms), OR_NULL) \
    /* NULL while open, like those below */                                    \
    C(ESCALATION_DECIDED_MS, "decided_ms", 1, COLUMN_INT)                      \
    C(ESCALATION_BY, "decided_by", 1, COLUMN_TEXT)                             \
    C(ESCALATION_COMMENT, "comment", 1, COLUMN_TEXT)                           \
    /* the agent that has it instead */                                        \
    C(ESCALATION_TO, "redirected_to", 1, COLUMN_TEXT)

enum escalation_column {
    ESCALATION_COLUMNS(COLUMN_NUMBER) N_ESCALATION_COLUMNS
};

/* Columns of hold_table; the key is the task. */
#define HOLD_COLUMNS(C)                                                 \
    C(HOLD_TASK_ID, "task_id", 1, HOLD(task_id))                        \
    C(HOLD_TURN, "turn", 1, HOLD(turn))                                 \
    C(HOLD_PLACE, "place", 1, HOLD(place))                              \
    C(HOLD_ANSWER, "answer", 1, COLUMN_INT)                             \
    C(HOLD_CAUSE, "cause", 1, COLUMN_INT)                               \
    C(HOLD_AGENT, "agent", 1, HOLD(agent))                              \
    C(HOLD_RULE, "rule", 1, COLUMN_TEXT)                                \
    C(HOLD_REASON, "reason", 1, COLUMN_TEXT)                            \
    C(HOLD_KEYS, "keys", 1, COLUMN_TEXT) /* "agent:Z\nqueue:Rick" */    \
    C(HOLD_SINCE_MS, "since_ms", 1, HOLD(since_ms))                     \
    C(HOLD_UNTIL_MS, "until_ms", 1, COLUMN_INT)                         \
    C(HOLD_ON_EXPIRY, "on_expiry", 1, COLUMN_INT)                       \
    /* 1: a person let it go; 2: its time ran out, and it was to be let \
     * go then */                                                       \
    C(HOLD_APPROVED, "approved", 1, COLUMN_INT)                         \
    C(HOLD_BATCH_MOST, "batch_most", 1, COLUMN_INT)                     \
    /* the batch it is part of; NULL: none */                           \
    C(HOLD_BATCH, "batch", 1, HOLD_READ(batch))                         \
    C(HOLD_MESSAGE_ID, "message_id", 1, HOLD(message_id))               \
    C(HOLD_ORDER_KEY, "order_key", 1, HOLD(order_key))                  \
    C(HOLD_PRIORITY, "priority", 1, HOLD(priority))                     \
    C(HOLD_FROM, "from_name", 1, HOLD(from))                            \
    C(HOLD_TYPE, "type", 1, HOLD(type))                                 \
    C(HOLD_REFERENCE, "reference", 1, HOLD(reference), OR_NULL)         \
    C(HOLD_SCOPE, "scope", 1, HOLD(scope), OR_NULL)                     \
    C(HOLD_REQUESTER, "requester", 1, HOLD(requester))                  \
    C(HOLD_ROOT_USER, "root_user", 1, HOLD(root_user))

enum hold_column { HOLD_COLUMNS(COLUMN_NUMBER) N_HOLD_COLUMNS };

/* Columns of event_table. With a key, a row is a message that was let in;
 * without, an event of a reference. */
#define EVENT_COLUMNS(C)                                                   \
    C(EVENT_SEQ, "seq", 1, COLUMN_INT)                                     \
    C(EVENT_AT_MS, "at_ms", 1, PAST(e.at_ms))                              \
    C(EVENT_UNTIL_MS, "until_ms", 1, COLUMN_INT) /* end of its effect */   \
    C(EVENT_KEY, "key", 1, COLUMN_BLOB) /* 16 bytes; NULL: an event */     \
    C(EVENT_SCOPE, "scope", 1, PAST(scope), OR_NULL)                       \
    C(EVENT_REFERENCE, "reference", 1, PAST(reference), OR_NULL)           \
    C(EVENT_FROM, "from_name", 1, PAST(e.from))                            \
    C(EVENT_TO, "to_name", 1, PAST(e.to), OR_NULL)                         \
    C(EVENT_TYPE, "type", 1, PAST(e.type))                                 \
    C(EVENT_MESSAGE_ID, "message_id", 1, PAST(e.message_id), OR_NULL)      \
    C(EVENT_APPROVED, "approved", 1, PAST(e.approved)) /* enum approval */ \
    /* of the message; NULL: an old row without it */                      \
    C(EVENT_TASK_ID, "task_id", 2, PAST(e.task_id), OR_NULL)

enum event_column { EVENT_COLUMNS(COLUMN_NUMBER) N_EVENT_COLUMNS };

/* Columns of expected_table: the answers that are due. The key is the task. */
#define EXPECTED_COLUMNS(C)                                                \
    C(EXPECTED_TASK_ID, "task_id", 1, DUE(subject.task_id))                \
    C(EXPECTED_TURN, "turn", 1, DUE(subject.turn))                         \
    C(EXPECTED_AGENT, "agent", 1, DUE(subject.agent))                      \
    C(EXPECTED_SINCE_MS, "since_ms", 1,                                    \
      DUE(since_ms)) /* when it was let go */                              \
    C(EXPECTED_DUE_MS, "due_ms", 1, DUE(due_ms))                           \
    C(EXPECTED_RULE, "rule", 1, DUE(rule), OR_NULL)                        \
    C(EXPECTED_IS_LATE, "is_late", 1, DUE(is_late)) /* reported as late */ \
    C(EXPECTED_FROM, "from_name", 1, DUE(subject.from), OR_NULL)           \
    C(EXPECTED_TYPE, "type", 1, DUE(subject.type), OR_NULL)                \
    C(EXPECTED_REFERENCE, "reference", 1, DUE(subject.reference), OR_NULL) \
    C(EXPECTED_PRIORITY, "priority", 1, DUE(subject.priority))             \
    C(EXPECTED_REQUESTER, "requester", 1, DUE(subject.requester))          \
    C(EXPECTED_ROOT_USER, "root_user", 1, DUE(subject.root_user), OR_NULL)

enum expected_column { EXPECTED_COLUMNS(COLUMN_NUMBER) N_EXPECTED_COLUMNS };

/* A reply to an escalation. */
struct escalation_reply {
    struct str id;
    enum escalation_status status; /* approved, rejected or redirected */
    struct str agent;              /* redirected: the new agent */
    struct str comment, by;
};

/* Carry out a reply. Calls done once, perhaps before returning: OK;
 * ERR_NOT_FOUND; ERR_EXISTS if it was already decided, with the name of who
 * did; ERR_AGENT_NOT_FOUND; or the store's error. */
void gatekeeper_reply(struct gatekeeper *b, const struct escalation_reply *word,
                      void (*done)(void *ctx, enum err e,
                                   const struct why *why),
                      void *ctx);

/* Pause or resume new deliveries to an agent, across restarts. done as
 * above. */
void gatekeeper_pause(
    struct gatekeeper *b, struct str agent, bool is_paused, struct str by,
    void (*done)(void *ctx, enum err e, const struct why *why), void *ctx);

/* Remove the pause of an agent that this tx removes: it must not apply to the
 * next holder of the name. */
void gatekeeper_agent_gone(struct tx *tx, struct str agent);

/* Add "late_ms" to the metadata of an answer that is overdue by its SLA. False:
 * it is not overdue, or the metadata has no room; *out is then untouched. */
MUST_USE bool gatekeeper_late(const struct gatekeeper *b, const struct task *t,
                              struct str metadata, struct buf *out);

/* A held message as lists show it. Borrowed until the end of the loop turn. */
struct held {
    struct id task_id, message_id;
    int64_t place;
    enum gate_answer answer;
    enum gate_cause cause;
    enum task_priority priority;
    struct str agent, rule, reason;
    struct str from, type, reference;
    struct str requester, root_user; /* besides admins, these may see it */
    int64_t since_ms, until_ms;
    enum gate_expiry on_expiry;
    bool is_behind; /* another task of its order goes first */
    const struct wait_key *keys;
    size_t n_keys;
};

/* Selects held messages. Empty strings and a NULL caller match all. Agent names
 * are compared ignoring case. */
struct held_filter {
    struct str agent, rule, reference, task_id;
    const struct caller *caller; /* must be allowed to see it */
};
/* The held messages that match, by place, behind `after` (zero: from the
 * first), at most max. */
size_t gatekeeper_holds(const struct gatekeeper *b, const struct held_filter *f,
                        int64_t after, struct held *out, size_t max);

/* Held messages and open escalations that the caller may see, as their lists
 * count them. */
struct gatekeeper_waiting {
    int64_t held, escalations_open;
};
struct gatekeeper_waiting gatekeeper_waiting(const struct gatekeeper *b,
                                             const struct caller *caller);

/* The number of messages held for that agent. */
size_t gatekeeper_held_for(const struct gatekeeper *b, struct str agent);

/* The rules as a graph (gate_graph): for a task, as if it were decided now; or
 * without a task for a reference, which may be empty, in the scope of the
 * requester. */
struct graph_about {
    const struct task *task;
    struct str requester, reference;
};
struct graph_known {
    /* The envelope of the task; without a type: none. */
    struct envelope envelope;
    struct gate_event events[GATE_EVENTS_MAX]; /* of its reference */
    size_t n_events;
};
/* ERR_SYNTAX: the task's envelope cannot be read; ERR_NOMEM. Strings belong to
 * the task, to the arena and, until the end of the loop turn, to the event
 * history. */
MUST_USE enum err gatekeeper_graph(struct gatekeeper *b,
                                   const struct graph_about *about,
                                   struct arena *arena,
                                   const struct gate_graph *to,
                                   struct graph_known *out);

/* The state of an agent for the gate; an unknown agent is DEAD. */
struct gate_agent gatekeeper_agent(const struct gatekeeper *b, struct str name);

/* Append the removal of old events and escalations to tx. */
void gatekeeper_prune(struct gatekeeper *b, struct tx *tx, int64_t before_ms,
                      size_t limit);

/* Statistics, since the start unless noted. */
struct gatekeeper_stats {
    int64_t by_answer[N_GATE_ANSWERS];
    int64_t held, held_most; /* now; maximum at once */
    int64_t released_total, expired_total;
    int64_t hold_ms_total, hold_ms_max;
    int64_t held_normal_total, hold_normal_ms_total; /* of priority NORMAL */
    int64_t escalations_open, escalations_total[5];  /* by kind */
    int64_t late_total;
    int64_t restarts_total, restarts_failed_total, takeovers_total;
    int64_t events, keys;    /* in memory */
    int64_t forgotten_total; /* for want of room */
    int64_t looks_total;     /* decisions about held messages */
};
struct gatekeeper_stats gatekeeper_stats(const struct gatekeeper *b);

/* For tests: all structures are consistent. */
bool gatekeeper_check(const struct gatekeeper *b);

#endif
