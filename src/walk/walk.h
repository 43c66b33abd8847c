#ifndef WALK_WALK_H
#define WALK_WALK_H

/* walk: takes one message from acceptance to its result, and is the only module
 * where the stages meet. Messages, delegations, cancellations, answers to
 * agents and releases enter here; results and chunks enter through the
 * callbacks of deliver.
 *
 * Owns: messages on their way, and the stages that it builds. Borrows: the
 * modules in its options. Threads: loop thread only. */

#include "access/access.h"
#include "choose/layers/choose.h"
#include "choose/route.h"
#include "delegation/delegation.h"
#include "deliver/deliver.h"
#include "gate/gatekeeper.h"
#include "ledger/ledger.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

struct walk;

struct walk_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct router *router;
    struct learning *learning; /* for retention; may be NULL */
    struct id_maker *ids;
    struct fetch *fetch;       /* for deliver's transports; may be NULL */
    struct children *children; /* likewise */
    struct traces *traces;     /* gets every turn that is over; may be NULL */
    struct deliver_settings deliver;
    uint64_t seed[2];
    struct str node;
    struct tasks_limits limits;
    const struct gate_rules *rules; /* of the gatekeeper; NULL: none */
    int64_t max_age_ms; /* limit on the age of timestamps; zero: none */
    struct delegation_settings delegation;
    struct ledger_settings ledger;
    int64_t retention_ms, retention_rows;
};

/* Build the stages and load what the store has. NULL with words in why. */
MUST_USE struct walk *walk_new(const struct walk_opts *opts, struct why *why);

/* Call after the store has given everything back. */
void walk_free(struct walk *w);

/* Apply new settings. */
void walk_set(struct walk *w, const struct walk_opts *opts);

/* Replace the rules of the gate. The old rules are not used after this. */
void walk_set_rules(struct walk *w, const struct gate_rules *rules);

/* An agent has connected: tasks that wait for one are offered. */
void walk_agent_came(struct walk *w);

/* Agents were added, changed or removed. */
void walk_agents_changed(struct walk *w);

/* That agent is removed, durably. A new agent of the same name does not inherit
 * its pause. */
void walk_agent_gone(struct walk *w, struct str name);

/* The server stops: do not report that its agents lose their connection. */
void walk_stopping(struct walk *w);

/* The state of an agent. */
enum agent_state walk_state(const struct walk *w, const struct agent *a);

/* The hub: gets the outcome of results that came on its connections, and calls
 * of agents that are not about tasks; see deliver_opts. Callbacks may be NULL.
 */
struct walk_hub {
    void (*on_recorded)(void *ctx, uint64_t receipt, enum err e);
    void (*on_call)(void *ctx, uint64_t line, struct str agent,
                    const struct wire_message *m);
    /* A delegation is over: on_ready of delegation_opts. */
    void (*on_delegated)(void *ctx, const struct delegation *d,
                         const struct task *t);
    /* A chunk of a streamed delegation, or of a streamed one below it. agent
     * wrote it. Valid during the call. */
    void (*on_delegated_chunk)(void *ctx, const struct delegation *d,
                               struct str agent, struct str text);
    void *ctx;
};
void walk_set_hub(struct walk *w, const struct walk_hub *hub);

/* The stages, borrowed. */
struct deliver *walk_deliver(struct walk *w);
struct gatekeeper *walk_gatekeeper(struct walk *w);
struct delegations *walk_delegations(struct walk *w);
struct ledger *walk_ledger(struct walk *w);
struct router *walk_router(struct walk *w);
struct tasks *walk_tasks(struct walk *w);

/* Walk a decoded message. Takes m; done gives it back exactly once, from the
 * loop and never before this has returned. m->err is OK, and m->task is its
 * durable task, or the error, with words in m->why (empty: the default words of
 * the error). */
void walk_message(struct walk *w, struct msg *m,
                  void (*done)(struct msg *m, void *ctx), void *ctx);

/* A delegation request, as a transport read it. It becomes a message and takes
 * the same walk. Borrowed for the call. */
struct walk_order {
    struct str
        by; /* the requesting agent, known by its connection or its task */
    const struct caller *caller; /* the requester if the agent works for no user
                                    and has no creator; NULL: unknown */
    struct str parent_id, session_id, task_id; /* empty: not given */
    struct str task_session; /* session of the parent task; empty: not given */
    struct str agent, skill, message, metadata;
    struct str idempotency_key; /* as in a message, per user */
    int64_t timeout_ms;         /* zero: the default */
    bool has_max_cost;          /* the price must be at most max_cost_micros */
    int64_t max_cost_micros;
    struct delegation_wish wish;
};

/* Hash that identifies the request for an idempotency key or an original id.
 * ERR_NOMEM. */
MUST_USE enum err walk_order_hash(const struct walk_order *o,
                                  uint8_t out[MSG_BODY_HASH_BYTES]);

/* Delegate. done gets the message, as in walk_message, and frees it. An error
 * means that nothing was started, with words. A further turn (task_id) must be
 * of a task that this agent delegated for the same user, else ERR_NOT_FOUND. In
 * two-phase mode an offline agent is not an error here: the requester is told
 * in the second phase. */
MUST_USE enum err walk_delegate(struct walk *w, const struct walk_order *o,
                                void (*done)(struct msg *m, void *ctx),
                                void *ctx, struct why *why);

/* Walk a message that an agent sends on its own connection. It is a delegation,
 * part of the task parent_id or of one that the agent works on in that
 * conversation (delegation_parents). The result goes to the listeners of its
 * task; no result is kept for the agent. Otherwise as walk_message. */
void walk_agent_message(struct walk *w, struct msg *m, struct str by,
                        struct str parent_id,
                        void (*done)(struct msg *m, void *ctx), void *ctx);

/* Cancel a task that is in memory. ERR_NOT_FOUND, ERR_TASK_IS_OVER, ERR_NOMEM:
 * nothing was started. Otherwise done is called exactly once, as above, with OK
 * or the reason: ERR_TASK_IS_OVER (another end came first), ERR_NO_SPACE,
 * ERR_OUTCOME_UNKNOWN, and others. */
MUST_USE enum err
walk_cancel(struct walk *w, struct str task_id, struct str by,
            void (*done)(void *ctx, struct str task_id, enum err e), void *ctx);

/* End a task that is in memory, with a result that does not come from its
 * agent; otherwise as walk_cancel. done may be NULL. */
MUST_USE enum err
walk_end(struct walk *w, struct str task_id, const struct task_result *r,
         void (*done)(void *ctx, struct str task_id, enum err e), void *ctx);

/* Answer a question of an agent (model/input.h), by the id of the task or of
 * its root. The caller has checked that the user may answer. *out is the
 * question, borrowed as task_find's, or NULL if there is none. ERR_NOT_FOUND;
 * ERR_INPUT_IS_OVER (another answer or end came first); ERR_BAD_REQUEST or
 * ERR_LIMIT (not a valid answer), each with words; ERR_NOMEM or ERR_BUSY,
 * without words: it was not delivered. */
MUST_USE enum err walk_answer(struct walk *w, struct str task_id,
                              struct str input_id, const struct input_answer *a,
                              struct str by, const struct input **out,
                              struct why *why);

/* Something has changed for a waiting task, or a person has decided about it:
 * ask the gate again and move the task by its result. OK: it moves, or need
 * not. */
MUST_USE enum err walk_resume(struct walk *w, struct str task_id);

struct walk_stats {
    struct tasks_stats tasks;
    struct deliver_stats deliver;
    int64_t
        results_waiting; /* results and other ends that wait for disk space */
};

struct walk_stats walk_stats(const struct walk *w);

#endif
