#ifndef GATE_INTERNAL_H
#define GATE_INTERNAL_H

/* Shared by the files of gate/:
 *
 *     gatekeeper.c     asks the gate, and records what follows
 *     ask_again.c      the same for a task that waited
 *     event_history.c  events of references, and keys of what was let in
 *     holds.c          held messages, from claim to release
 *     wait_index.c     the holds to look at when a key changes, and their order
 *     batch_release.c  several messages that waited for room, as one task
 *     gate_feed.c      decisions in the feed
 *     gate_load.c      loading at a start
 *     gate_graph.c     the rules as a graph
 *
 * escalations.c, sla.c, outage.c and revive.c handle escalations, answers that
 * are due, and agents that are out. They are called through the hooks below. */

#include "gate/gatekeeper.h"

#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"
#include "model/record.h"

/* The event history. */

enum {
    PAST_EVENTS_MAX = 1000 * 1000, /* in memory; beyond that the oldest is
                                      forgotten until the next start */
    GATEKEEPER_HOLDS_MAX = 10 * 1000 * 1000, /* whatever the rules say */
    PAST_KEYS_MAX =
        1000 * 1000, /* likewise; a repeat of a forgotten message is let in */
};

enum { PAST_RESERVE = 16 }; /* references for which past_reserve makes room */

struct past {
    struct map references; /* struct reference, by scope and name */
    struct map keys;       /* struct mark */
    struct list events;    /* oldest first */
    struct timers ends;    /* the ends of marks */

    size_t n_events, max_events, max_keys;
    int64_t forgotten_total;
};

/* A key of a message that is not committed yet. */
struct mark_claim {
    struct list_node node;
    struct mark *mark;
    const struct msg *m;
    /* Becomes the mark's when the message is committed. */
    struct mark_seen *seen;
};

void past_init(struct past *p, const uint64_t seed[2]);
void past_fini(struct past *p);

struct past_event {
    struct str scope, reference; /* an empty scope is the platform's */
    struct gate_event e;
};

/* Call before an event is written: makes room to remember it. ERR_NOMEM. */
MUST_USE enum err past_reserve(struct past *p);

/* Remember an event that happened and counts until until_ms. ERR_NOMEM: it is
 * forgotten until the next start. */
MUST_USE enum err past_add_event(struct past *p, const struct past_event *event,
                                 int64_t until_ms);

/* The events of a scope and those of the platform, which count for every
 * scope. */
size_t past_events(const struct past *p, struct str scope, struct str reference,
                   struct gate_event *out, size_t max);

/* Claim a key for m until past_confirm or past_give_up. ERR_NOMEM. */
MUST_USE enum err past_claim(struct past *p, struct mark_claim *c,
                             const struct gate_key *key, const struct msg *m,
                             int64_t until_ms);
void past_confirm(struct past *p, struct mark_claim *c);
void past_give_up(struct past *p, struct mark_claim *c);
bool past_seen(const struct past *p, const struct gate_key *key, int64_t now_ms,
               struct gate_seen *out);
/* The message that claimed the key last and is not committed yet; NULL:
 * none. */
const struct msg *past_claimant(const struct past *p,
                                const struct gate_key *key);

/* Load a key of an earlier life of the server. ERR_NOMEM. */
MUST_USE enum err past_mark(struct past *p, const struct gate_key *key,
                            int64_t at_ms, int64_t until_ms,
                            struct str message_id, struct str reference);

/* Forget what no longer counts, at most `limit` events and as many keys. */
void past_forget(struct past *p, int64_t now_ms, size_t limit);
bool past_check(const struct past *p);

/* A hold that waits for one of its keys. */
struct waiter {
    struct timer turn; /* in one of the key's heaps, in the order in which holds
                          are looked at */
    struct key *key;   /* NULL: none */
    struct hold *hold;
};

struct key {
    /* Holds not to be looked at until the key changes; holds still to be looked
     * at since it changed. */
    struct timers waiting, ripe;
    struct timer turn; /* among the ripe keys, by the first of its ripe holds */
    struct list_node node; /* in holds.agents, or in a target's queues */
    enum wait_kind kind;
    bool is_again; /* changed again while it was ripe */
    /* WAIT_AGENT: the last known state. */
    struct gate_agent was;
    struct str name; /* the agent's name */
    size_t key_bytes;
    char text[];
};

/* An agent for which messages are held or being let go. */
struct target {
    size_t n_held;      /* held for it, including claims */
    size_t n_room;      /* of these, for want of room */
    size_t n_batched;   /* of these, let go as part of a batch */
    size_t n_going;     /* let go, and not committed yet */
    struct list queues; /* struct key, WAIT_QUEUE */
    size_t name_bytes;
    char name[]; /* in lower case */
};

struct lane {
    struct list holds; /* in order of place */
    size_t key_bytes;
    char key[];
};

enum hold_state {
    HOLD_CLAIMED, /* not committed yet */
    HOLD_WAITS,
    HOLD_MOVES, /* a change is not committed yet */
};

/* The part of a hold that changes with every decision. */
struct hold_why {
    enum gate_answer answer;
    enum gate_cause cause;
    struct str rule, reason;
    int64_t until_ms;
    enum gate_expiry on_expiry;
    int64_t batch_most;
    size_t n_keys;
    struct wait_key *keys;
    struct waiter *waiters; /* one for each key */
};

struct hold {
    struct gatekeeper *gatekeeper;
    enum hold_state state;
    struct id task_id, message_id;
    int64_t turn, place;
    enum task_priority priority;
    struct str agent, order_key, from, type, reference, scope;
    struct str requester, root_user;
    int64_t since_ms;
    int64_t longest_ms; /* the longest time that any decision gave it */
    int64_t due_mono_ms;
    bool is_approved;
    bool has_run_out; /* its time ran out and it was to be let go then; the
                         condition that held it is not checked again */
    bool is_to_move;  /* the gate decided to move it, and the walk has not moved
                         it yet */
    bool is_going;    /* counted in target->n_going */
    bool is_due;      /* its time is over */
    bool is_again;    /* a key changed during HOLD_MOVES */
    bool is_single;   /* a batch with it failed; it goes alone */
    bool is_reading;  /* a read of its batch's row is pending */
    bool is_to_read;  /* the row must be read once more */
    struct id batch;  /* the batch it is part of; empty: none */

    struct hold_why *why;
    /* During HOLD_MOVES: replaces `why` after the commit. */
    struct hold_why *next;
    const struct hold_move *move;

    struct target *target;
    struct lane *lane;
    struct list_node lane_node;
    struct list_node place_node; /* among all, in order of place */
    struct list_node look_node;
    struct timer timer;  /* its end, or an earlier WAIT_TIME key */
    struct timer direct; /* to be looked at, whatever it waits for */
    char strings[];
};

struct holds {
    struct map by_task; /* struct hold, in HOLD_WAITS or HOLD_MOVES */
    struct map keys, targets, lanes;
    struct list by_place; /* without claims */
    struct list agents;   /* keys of kind WAIT_AGENT */
    struct list looked;   /* holds that are looked at periodically */
    struct timers direct, ripe;
    struct loop_job job;
    uint64_t turn; /* the loop turn in which n_taken holds were looked at */
    size_t n_taken;

    struct timer states_timer, look_timer;
    /* Positions of the walks along by_place and looked; NULL: no walk. */
    struct list_node *sweep, *look_next;
    /* Claimed holds of tasks that were escalated before. */
    struct list arriving;
    struct list moves; /* struct hold_move */
    size_t n_claims;
    size_t n_batched; /* of by_task: let go as part of a batch */
};

/* A task that waited, until its next decision is committed. It keeps what was
 * written, since the rules may have changed by the commit. */
struct hold_move {
    struct list_node node;
    const struct gate_result *gate_result; /* identifies the move */
    struct hold *comes; /* the task is held for the first time */
    bool has_event;
    struct past_event event;
    char strings[];
};

/* Everything a message holds between gatekeeper_ask and its settlement. */
struct gatekeeper_claim {
    struct gate_marks marks;
    struct mark_claim *claims; /* one for each mark */
    size_t n_claims;           /* of these, claimed so far */
    bool has_event;
    struct past_event event;
    struct target *held; /* the target it is held for, until `hold` exists */
    struct hold *hold;
    /* The message that it repeats, if that is not committed yet. */
    struct id first;
    const struct tx_op *expects; /* the guard that expects that message */
};

struct gatekeeper {
    struct gatekeeper_opts opts;
    struct gatekeeper_stats stats;
    struct past past;
    struct holds holds;
    bool is_stopping;
    /* Private to escalations.c, sla.c, outage.c. */
    struct escalations *escalations;
    struct sla *sla;
    struct revive *revive;
};

/* The ctx of a gate_view. */
struct viewer {
    struct gatekeeper *gatekeeper;
    struct str scope;
    struct str requester; /* decides which agents are visible; empty: all */
    bool is_new; /* a new message: holds that wait for room go before it */
    int64_t now_ms;
    /* The target, for a message that has waited for it long enough: it counts
     * as having room, or may be tried again. */
    struct str has_room, may_try;
};
struct gate_view gatekeeper_view(const struct viewer *a); /* borrows a */
void gatekeeper_decide(const struct viewer *a, const struct envelope *e,
                       struct gate_result *out, const struct gate_trace *trace);

/* The scope in which events count for a requester: "org:acme" where the user or
 * the owner has an org; else "user:ann", the user or owner; empty, the
 * platform's, for admins and for agents without an owner. */
enum { SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str event_scope(const struct gatekeeper *b, struct str requester,
                       char out[SCOPE_BYTES]);
/* Whether the requester may see that agent. */
bool requester_sees(const struct gatekeeper *b, struct str requester,
                    struct str agent);
/* The agent is above the task in its delegation chain, so that it must not
 * receive its own request. If the chain cannot be parsed, assume that it is. */
bool is_above_task(const struct gatekeeper *b, struct str task_id,
                   struct str agent);
/* Copy the strings of a result into the arena; false: it is full. */
MUST_USE bool gate_result_keep(struct gate_result *p, struct arena *arena);
/* The event that an envelope becomes when it is let go; false: no rule can need
 * it. */
bool event_from_envelope(const struct gatekeeper *b, const struct envelope *e,
                         const struct id *task_id, const struct id *message_id,
                         int64_t at_ms, struct past_event *out);
void event_record(struct gatekeeper *b, const struct past_event *e,
                  struct tx *tx);
void event_happened(struct gatekeeper *b, const struct past_event *e);

/* In holds.c. */
void holds_init(struct gatekeeper *b);
void holds_stop(struct gatekeeper *b);
void holds_fini(struct gatekeeper *b);
bool holds_check(const struct gatekeeper *b);
MUST_USE enum err hold_claim(struct gatekeeper *b, struct str agent,
                             struct target **out);
const struct target *target_find(const struct gatekeeper *b, struct str agent);
void target_release(struct gatekeeper *b, struct target *t);
struct hold *hold_find(const struct gatekeeper *b, struct str task_id);

/* A claimed hold. Copies the strings of `like`. Takes why and the claim on the
 * target. */
MUST_USE struct hold *hold_new(struct gatekeeper *b, const struct hold *like,
                               struct hold_why *why, struct target *t);
MUST_USE struct hold_why *hold_why_of(const struct gate_result *p);
/* The same, with the claim, for a task that was accepted before; limits do not
 * apply. Takes why. NULL: the maps are full. */
MUST_USE struct hold *hold_admit(struct gatekeeper *b, const struct hold *like,
                                 struct hold_why *why);
void hold_bound(struct hold *h, struct hold_why *why, int64_t now_ms);

/* Write the row: whole; its changed reason; its batch; its removal. */
void hold_write(const struct hold *h, struct tx *tx);
void hold_write_why(const struct hold *h, const struct hold_why *w,
                    struct tx *tx);
void hold_write_batch(const struct hold *h, const struct hold_why *w,
                      struct id batch, struct tx *tx);
void hold_unwrite(struct str task_id, struct tx *tx);

void hold_begin(struct hold *h); /* after the commit; cannot fail */
void hold_join_batch(struct hold *h, struct id batch);
void hold_free(struct hold *h);                        /* in any state */
void hold_rekey(struct hold *h, struct hold_why *why); /* takes why */
void hold_later(struct hold *h); /* try to move it again after a moment */
void hold_end_task(struct gatekeeper *b, const struct id *id,
                   const struct task_result *r); /* borrowed */
void hold_on_timer(struct timer *t);
bool hold_is_first(const struct hold *h);
/* Look at a hold whose turn it is: end it if its time is over, else decide
 * again. */
void hold_look(struct gatekeeper *b, struct str task_id);
/* The result that holds it, borrowing its strings. */
void hold_result(const struct hold *h, const struct hold_why *why,
                 struct gate_result *out);
void hold_envelope(const struct hold *h, struct envelope *out);

/* In wait_index.c. */
void waits_init(struct gatekeeper *b);
void waits_stop(struct gatekeeper *b);
void waits_fini(struct gatekeeper *b);
void wait_join(struct hold *h); /* enter it under all its keys */
void wait_leave(struct hold *h);
void wait_gone(struct hold *h); /* before it leaves by_place */
void wait_look(struct hold *h); /* look at it soon */
void wait_agent(struct gatekeeper *b, struct str agent); /* the agent changed */
/* The agent has fewer tasks. */
void wait_queue(struct gatekeeper *b, struct str agent);
void wait_queues(struct gatekeeper *b); /* any agent may have fewer tasks */
void wait_event(struct gatekeeper *b, struct str reference, struct str type);
/* The batch is over. */
void wait_batch(struct gatekeeper *b, struct str task_id);
void wait_carry(struct gatekeeper *b, struct str task_id); /* the batch moved */
void wait_states(struct gatekeeper *b); /* agents may have changed */
void wait_all(struct gatekeeper *b);    /* look at every hold once */
bool waits_check(const struct gatekeeper *b);

/* In ask_again.c. */
MUST_USE bool decide_again(struct gatekeeper *b, const struct task *t,
                           const struct hold *h, struct arena *arena,
                           struct gate_result *out);
/* Set is_stale and warning of a result that the gate did not make, from the
 * task's timestamp. */
void note_task_time(const struct gatekeeper *b, const struct task *t,
                    struct gate_result *p);
void moves_fini(struct gatekeeper *b);
void hold_count_release(struct gatekeeper *b, const struct hold *h);

/* In batch_release.c: whether a hold that may go goes as part of a batch
 * instead; the walk of the batch; and its end, for a member. */
bool batch_begin(struct gatekeeper *b, struct hold *first,
                 const struct gate_result *p);
void batch_ask(struct msg *m, struct gate_result *out);
void batch_record(struct gatekeeper *b, struct msg *m);
void batch_settle(struct gatekeeper *b, struct msg *m);
void batch_look(struct hold *h);
void batch_carry(struct hold *h); /* give a member the status of its batch */

/* In gate_feed.c. */
struct decision_entry {
    struct str type; /* type of the entry: "gate.held" */
    struct str task_id, message_id, conversation_id, requester, root_user;
    bool is_no_tasks; /* the entry belongs to no task: task_id is another
                         message's */
    const struct envelope *envelope;
    /* As the sender wrote it; empty: like `envelope`. */
    struct str envelope_text;
    struct str target; /* the agent that has it now */
    const struct gate_result *gate_result;
    struct str escalation_id; /* empty: no escalation */
    struct str status;        /* of the task */
    int64_t at_ms;
};
void feed_decision(struct tx *tx, const struct decision_entry *t);
struct str decision_entry_type(enum gate_answer a); /* "gate.routed" */
/* The id of the escalation that keeps a task, or by which it is let go; empty:
 * none. */
struct str escalation_id_of(const struct gatekeeper *b, struct str task_id);
/* When a person let the task go, name the person, and the new agent, in the
 * reason. */
void name_approver(const struct gatekeeper *b, struct str task_id,
                   struct gate_result *p);

/* In gate_load.c. */
MUST_USE enum err past_load(struct gatekeeper *b, struct why *why);
MUST_USE enum err holds_load(struct gatekeeper *b, struct why *why);

/* Hooks of escalations.c, sla.c and outage.c (revive), in the order of a life.
 * record and settle are about a message that was accepted with
 * m->gate.gate_result, record_pass and settle_pass about a task that waited and
 * has another result. A record may set the build_error of its tx; a settle
 * cannot fail. */
#define GATEKEEPER_HOOKS(X) X(escalations) X(sla) X(revive)
#define GATEKEEPER_HOOK(part)                                                \
    void part##_init(struct gatekeeper *b);                                  \
    void part##_fini(struct gatekeeper *b);                                  \
    MUST_USE enum err part##_load(struct gatekeeper *b, struct why *why);    \
    void part##_stop(struct gatekeeper *b);                                  \
    void part##_record(struct gatekeeper *b, struct msg *m);                 \
    void part##_settle(struct gatekeeper *b, struct msg *m,                  \
                       bool is_committed);                                   \
    void part##_record_pass(struct gatekeeper *b, const struct task *t,      \
                            const struct envelope *e,                        \
                            const struct gate_result *p, struct tx *tx);     \
    void part##_settle_pass(struct gatekeeper *b, const struct task *t,      \
                            const struct gate_result *p, bool is_committed); \
    bool part##_check(const struct gatekeeper *b);
GATEKEEPER_HOOKS(GATEKEEPER_HOOK)
#undef GATEKEEPER_HOOK

/* A task is over. */
void escalations_record_end(struct gatekeeper *b, const struct task *t,
                            const struct task_result *r, struct tx *tx);
void escalations_settle_end(struct gatekeeper *b, const struct task *t);
void sla_record_end(struct gatekeeper *b, const struct task *t, struct tx *tx);
void sla_settle_end(struct gatekeeper *b, const struct task *t);

void escalations_prune(struct tx *tx, int64_t before_ms, size_t limit);

/* The rules, or an agent, have changed. */
void revive_rules(struct gatekeeper *b);
void revive_agent_changed(struct gatekeeper *b, struct str agent);

/* In outage.c: a message stays held; if an agent's safety gate holds it, see to
 * that agent. */
void revive_look(struct gatekeeper *b, const struct gate_result *p);

/* In escalations.c: whether a person has let t go, and to which agent instead
 * (empty: the original one). Used when an escalated or held task is decided
 * again. */
bool escalation_approves(const struct gatekeeper *b, const struct task *t,
                         struct str *redirected_to);

/* In sla.c. */

/* Stop the clock of an answer; and start it afresh, if it was stopped. */
void sla_put_off(struct gatekeeper *b, struct str task_id);
void sla_turn_came(struct gatekeeper *b, struct str task_id);

#endif
