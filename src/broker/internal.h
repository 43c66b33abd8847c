#ifndef BROKER_INTERNAL_H
#define BROKER_INTERNAL_H

/* What the files of broker/ share.
 *
 *     broker.c   asks the gate, and what follows from its answer
 *     again.c    the same for a task that waited
 *     past.c     events of references, and keys of what was let in lately
 *     holds.c    what is held, and its life
 *     waits.c    who waits for which key, and whose turn it is
 *     batch.c    several that waited for room as one
 *     tell.c     decisions in the feed
 *     load.c     a start
 *     graph.c    the rules, to be drawn
 *     people.c, late.c, revive.c   escalations, answers that are due, agents
 *                that are brought back; reached by their hooks below */

#include "broker/broker.h"

#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

/* The past. */

enum {
    PAST_EVENTS_MAX = 1000 * 1000,       /* in memory; beyond, the oldest is
                                          * forgotten until the next start */
    BROKER_HOLDS_MAX = 10 * 1000 * 1000, /* whatever the rules say */
    PAST_KEYS_MAX = 1000 * 1000,         /* likewise: a repeat of one that was
                                          * forgotten is let in */
};

enum { PAST_SPARE = 16 }; /* events that no want of memory makes forgotten */

struct past {
    struct map references; /* struct reference, by scope and name */
    struct map keys;       /* struct mark */
    struct list events;    /* the oldest first */
    struct timers ends;    /* of marks */
    struct list spare;     /* memory put by */
    size_t n_spare;
    size_t n_events, max_events, max_keys;
    int64_t forgotten_total;
};

/* A message on its way to the disk that has a key. */
struct mark_claim {
    struct list_node node;
    struct mark *mark;
    const struct msg *m;
    struct mark_seen *seen; /* what the mark says once it is there */
};

void past_init(struct past *p, const uint64_t seed[2]);
void past_fini(struct past *p);

struct past_event {
    struct str scope, reference; /* no scope: the platform's */
    struct gate_event e;
};

/* Before an event is written: memory to remember it with. */
MUST_USE enum err past_stock(struct past *p);

/* It has happened, until_ms it counts. ERR_NOMEM: it is as if it had not until
 * the next start. */
MUST_USE enum err past_add(struct past *p, const struct past_event *event,
                           int64_t until_ms);

/* Those of a scope and of the platform's, which count for everybody. */
size_t past_events(const struct past *p, struct str scope, struct str reference,
                   struct gate_event *out, size_t max);

/* A key of m is claimed from now until it is confirmed or given up. */
MUST_USE enum err past_claim(struct past *p, struct mark_claim *c,
                             const struct gate_key *key, const struct msg *m,
                             int64_t until_ms);
void past_confirm(struct past *p, struct mark_claim *c);
void past_give_up(struct past *p, struct mark_claim *c);
bool past_seen(const struct past *p, const struct gate_key *key, int64_t now_ms,
               struct gate_seen *out);
/* Who has claimed it last, and is still on its way; NULL: nobody. */
const struct msg *past_claimant(const struct past *p,
                                const struct gate_key *key);

/* One of an earlier life. */
MUST_USE enum err past_mark(struct past *p, const struct gate_key *key,
                            int64_t at_ms, int64_t until_ms,
                            struct str message_id, struct str reference);

/* What no longer counts goes, so many of each at most. */
void past_forget(struct past *p, int64_t now_ms, size_t limit);
bool past_check(const struct past *p);

/* What waits. */

/* Somebody who waits for a key, which is one of its hold's. */
struct waiter {
    struct timer turn; /* in a heap of the key's, by whose turn it is */
    struct key *key;   /* NULL: it has none */
    struct hold *hold;
};

struct key {
    struct timers waiting, ripe; /* who was not asked since it changed; whoever
                                  * is still to be */
    struct timer turn;           /* among the keys that are ripe, by the first
                                  * of theirs */
    struct list_node node; /* of the agents' keys; or of a target's queues */
    enum wait_kind kind;
    bool is_again; /* it has changed since it was ripe */
    /* WAIT_AGENT: how it was. */
    struct gate_agent was;
    struct str name; /* of the agent */
    size_t key_bytes;
    char text[];
};

/* An agent that something is held for, or let go to. */
struct target {
    size_t n_held;      /* held for it, claims included */
    size_t n_room;      /* of those, for want of room */
    size_t n_batched;   /* and those that are let go as part of a batch */
    size_t n_going;     /* let go, and not yet on the disk */
    struct list queues; /* struct key, WAIT_QUEUE */
    size_t name_bytes;
    char name[]; /* in lower case */
};

struct lane {
    struct list holds; /* by place */
    size_t key_bytes;
    char key[];
};

enum hold_state {
    HOLD_CLAIMED, /* on its way to the disk for the first time */
    HOLD_WAITS,
    HOLD_MOVES, /* a change of it is on its way */
};

/* The strings that change with every answer. */
struct hold_why {
    enum gate_answer answer;
    enum pass_cause cause;
    struct str rule, reason;
    int64_t until_ms;
    enum pass_expiry on_expiry;
    int64_t batch_most;
    size_t n_keys;
    struct wait_key *keys;
    struct waiter *waiters; /* one for each key */
};

struct hold {
    struct broker *broker;
    enum hold_state state;
    struct id task_id, message_id;
    int64_t turn, place;
    enum task_priority priority;
    struct str agent, order_key, from, type, reference, scope;
    struct str requester, root_user;
    int64_t since_ms;
    int64_t longest_ms; /* that one of its answers gave it */
    int64_t due_mono_ms;
    bool is_approved;
    bool has_run_out; /* its time was over, and it was to go then: what it had
                       * waited for is not asked about again */
    bool is_to_move;  /* it was judged so, and nothing has followed yet */
    bool is_going;    /* counted in the target's n_going */
    bool is_due;      /* its time is over */
    bool is_again;    /* something changed while it moved */
    bool is_single;   /* a batch could not be made of it */
    bool is_reading;  /* what became of its batch */
    bool is_to_read;  /* that, once more */
    struct id batch;  /* that it is part of; empty: none */

    struct hold_why *why;
    struct hold_why *next; /* while it moves: once that is committed */
    const struct hold_move *move;

    struct target *target;
    struct lane *lane; /* NULL: no memory, and then nobody is before it */
    struct list_node lane_node;
    struct list_node place_node; /* of all, by place */
    struct list_node look_node;
    struct timer timer;  /* of its time, and of what it waits for until then */
    struct timer direct; /* it is to be looked at, whatever it waits for */
    char strings[];
};

struct holds {
    struct map by_task; /* struct hold, those that wait or move */
    struct map keys, targets, lanes;
    struct list by_place; /* all but claims */
    struct list agents;   /* keys of agents */
    struct list looked;   /* holds that no key tells of */
    struct timers direct, ripe;
    struct loop_job job;
    uint64_t turn; /* of the loop, in which n_taken were looked at */
    size_t n_taken;
    bool has_missed; /* a key that changed could not be ranked */
    struct timer states_timer, look_timer;
    struct list_node *sweep, *look_next; /* where walks along all of by_place
                                          * and looked are; NULL: nowhere */
    struct list arriving; /* holds of tasks that were escalated, claimed */
    struct list moves;    /* struct hold_move */
    size_t n_claims;
    size_t n_batched; /* of by_task: let go, as part of a batch */
};

/* A task that waited, on its way to the disk with another answer: what was
 * written of it is what is so once it is there, whatever the rules say by
 * then. */
struct hold_move {
    struct list_node node;
    const struct pass *pass; /* that it is, while it is on its way */
    struct hold *comes;      /* it is held for the first time */
    bool has_event;
    struct past_event event;
    char strings[];
};

/* What a message holds from being asked about to its settling. */
struct broker_claim {
    struct gate_marks marks;
    struct mark_claim *claims; /* one for each of the marks */
    size_t n_claims;           /* of those, claimed */
    bool has_event;
    struct past_event event;
    struct target *held; /* it is held for, and not yet a hold */
    struct hold *hold;
    struct id first; /* the task that it repeats, if that was on its way */
    const struct tx_op *expects; /* and that it gets there */
};

struct broker {
    struct broker_opts opts;
    struct broker_stats stats;
    struct past past;
    struct holds holds;
    bool is_stopping;
    struct people *people; /* people.c's own, and so on */
    struct late *late;
    struct revive *revive;
};

/* broker.c */
struct asking { /* the view's ctx */
    struct broker *broker;
    struct str scope;
    struct str requester; /* whose eyes count; empty: everybody's */
    bool is_new;          /* then those that wait for room are before it */
    int64_t now_ms;
    /* The target of one that has waited for it for long enough: as if it had
     * room, or could be tried. */
    struct str has_room, may_try;
};
struct gate_view broker_view(const struct asking *a); /* borrows it */
void broker_decide(const struct asking *a, const struct envelope *e,
                   struct pass *out, const struct gate_trace *trace);

/* Whose it is: what happened for others does not count for them. "org:acme",
 * where the user or their owner has an org; else "user:ann", of that user or
 * owner; empty for admins and for agents that are nobody's, who speak for the
 * platform. */
enum { SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str whose(const struct broker *b, struct str requester,
                 char out[SCOPE_BYTES]);
/* The strings of a pass into the arena; false: it is full. */
MUST_USE bool pass_keep(struct pass *p, struct arena *arena);
/* That it was let go as an event; false: nobody may need it. */
bool event_of(const struct broker *b, const struct envelope *e,
              const struct id *task_id, const struct id *message_id,
              int64_t at_ms, struct past_event *out);
void event_record(struct broker *b, const struct past_event *e, struct tx *tx);
void event_happened(struct broker *b, const struct past_event *e);
enum approval approval_of(struct str object);

/* holds.c */
MUST_USE enum err holds_init(struct broker *b);
void holds_stop(struct broker *b);
void holds_fini(struct broker *b);
bool holds_check(const struct broker *b);
MUST_USE enum err hold_claim(struct broker *b, struct str agent,
                             struct target **out);
MUST_USE struct target *target_get(struct broker *b, struct str agent);
const struct target *target_find(const struct broker *b, struct str agent);
void target_release(struct broker *b, struct target *t);
struct hold *hold_find(const struct broker *b, struct str task_id);

/* A hold that is not there yet. NULL: memory is gone. `like` lends its
 * strings. Takes why and the claim on its target. */
MUST_USE struct hold *hold_new(struct broker *b, const struct hold *like,
                               struct hold_why *why, struct target *t);
MUST_USE struct hold_why *hold_why_of(const struct pass *p);
void hold_bound(struct hold *h, struct hold_why *why, int64_t now_ms);

/* Its row: whole, as it is for another reason, and not any more. */
void hold_write(const struct hold *h, struct tx *tx);
void hold_write_why(const struct hold *h, const struct hold_why *w,
                    struct tx *tx);
void hold_write_batch(const struct hold *h, const struct hold_why *w,
                      struct id batch, struct tx *tx);
void hold_unwrite(struct str task_id, struct tx *tx);

void hold_begin(struct hold *h); /* it is on the disk; never fails */
void hold_join_batch(struct hold *h, struct id batch);
void hold_free(struct hold *h);                        /* whatever it is */
void hold_rekey(struct hold *h, struct hold_why *why); /* takes why */
void hold_later(struct hold *h); /* it could not be moved: again in a moment */
void hold_on_timer(struct timer *t);
bool hold_is_first(const struct hold *h);
/* It is its turn: ends it if its time is over, else asks again. */
void hold_look(struct broker *b, struct str task_id);
/* The answer that holds it, with its strings. */
void hold_pass(const struct hold *h, const struct hold_why *why,
               struct pass *out);
void hold_envelope(const struct hold *h, struct envelope *out);

/* waits.c */
MUST_USE enum err waits_init(struct broker *b);
void waits_stop(struct broker *b);
void waits_fini(struct broker *b);
void wait_join(struct hold *h); /* for all its keys */
void wait_leave(struct hold *h);
void wait_gone(struct hold *h);           /* it leaves the list of all */
void wait_look(struct hold *h);           /* it is to be looked at soon */
void wait_look_regularly(struct hold *h); /* every BROKER_LOOK_MS */
void wait_agent(struct broker *b, struct str agent); /* it has changed */
void wait_queue(struct broker *b, struct str agent); /* it has less to do */
void wait_queues(struct broker *b); /* some agent has, nobody knows which */
void wait_event(struct broker *b, struct str reference, struct str type);
void wait_batch(struct broker *b, struct str task_id); /* it is over */
void wait_carry(struct broker *b, struct str task_id); /* it was moved */
void wait_states(struct broker *b); /* agents may have changed */
void wait_all(struct broker *b);    /* every hold is looked at once */
bool waits_check(const struct broker *b);

/* again.c */
MUST_USE bool judge_again(struct broker *b, const struct task *t,
                          const struct hold *h, struct arena *arena,
                          struct pass *out);
/* What a pass that the gate did not make says of the task's timestamp. */
void note_time(const struct broker *b, const struct task *t, struct pass *p);
void moves_fini(struct broker *b);
void hold_count_release(struct broker *b, const struct hold *h);

/* batch.c: whether what may go goes as a part of a batch instead; the batch on
 * its walk; and what came of it, for a member. */
bool batch_begin(struct broker *b, struct hold *first, const struct pass *p);
void batch_ask(struct msg *m, struct pass *out);
void batch_record(struct broker *b, struct msg *m);
void batch_settle(struct broker *b, struct msg *m);
void batch_look(struct hold *h);
void batch_carry(struct hold *h); /* it is where its batch is */

/* tell.c */
struct told {
    struct str type; /* of the entry: "gate.held" */
    struct str task_id, message_id, conversation_id, requester, root_user;
    bool is_no_tasks; /* the entry is: task_id is another message's */
    const struct envelope *envelope;
    struct str envelope_text; /* as it was sent; empty: it is as `envelope` */
    struct str target;        /* who has it now */
    const struct pass *pass;
    struct str escalation_id; /* empty: nobody was asked */
    struct str status;        /* of the task */
    int64_t at_ms;
};
void tell_decision(struct tx *tx, const struct told *t);
struct str tell_type(enum gate_answer a); /* "gate.routed" */
/* The escalation that keeps a task, or that it is let go by; empty: none. */
struct str tell_asked(const struct broker *b, struct str task_id);
/* The reason of what a person let go says who did, and for whom. */
void tell_who(const struct broker *b, struct str task_id, struct pass *p);

/* load.c */
MUST_USE enum err past_load(struct broker *b, struct why *why);
MUST_USE enum err holds_load(struct broker *b, struct why *why);

/* Hooks of people.c, late.c and revive.c, in the order of a life. What is
 * appended to a tx may set its build_error; what settles cannot fail. */
#define BROKER_HOOKS(X) X(people) X(late) X(revive)
#define BROKER_HOOK(part)                                                   \
    MUST_USE enum err part##_init(struct broker *b);                        \
    void part##_fini(struct broker *b);                                     \
    MUST_USE enum err part##_load(struct broker *b, struct why *why);       \
    void part##_stop(struct broker *b);                                     \
    void part##_rules(struct broker *b); /* there are others */             \
    /* A message, accepted with m->gate.pass. */                            \
    void part##_record(struct broker *b, struct msg *m);                    \
    void part##_settle(struct broker *b, struct msg *m, bool is_committed); \
    /* A task that waited goes another way. */                              \
    void part##_record_pass(struct broker *b, const struct task *t,         \
                            const struct envelope *e, const struct pass *p, \
                            struct tx *tx);                                 \
    void part##_settle_pass(struct broker *b, const struct task *t,         \
                            const struct pass *p, bool is_committed);       \
    /* A task is over. */                                                   \
    void part##_record_end(struct broker *b, const struct task *t,          \
                           const struct task_result *r, struct tx *tx);     \
    void part##_settle_end(struct broker *b, const struct task *t,          \
                           const struct task_result *r);                    \
    void part##_agent_changed(struct broker *b, struct str agent);          \
    void part##_prune(struct broker *b, struct tx *tx, int64_t before_ms,   \
                      int64_t rows, size_t limit);                          \
    bool part##_check(const struct broker *b);
BROKER_HOOKS(BROKER_HOOK)
#undef BROKER_HOOK

/* revive.c: one is held as before; whose agent holds it up is seen to. */
void revive_look(struct broker *b, const struct pass *p);

/* people.c: whether a person has let t go, for the gate to know; and where it
 * is to go, empty: where it was meant to. Asked while a task that is escalated
 * or held is asked about again. */
bool people_let_go(const struct broker *b, const struct task *t,
                   struct str *redirected_to);

/* late.c */

/* Its clock stands; and begins anew, if it stood. */
void late_put_off(struct broker *b, struct str task_id);
void late_turn(struct broker *b, struct str task_id);

#endif
