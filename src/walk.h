#ifndef WALK_H
#define WALK_H

/* walk: the walk of one message, and the only file where the rooms of the walk
 * meet. Five entries: a message comes in, a result, a chunk, a wish to cancel,
 * and events (a deadline, agents that changed, time to tidy up).
 *
 * Owns nothing but what is on its way through. Borrows every room. Threads:
 * the loop's. */

#include "access/access.h"
#include "broker/broker.h"
#include "choose/choose.h"
#include "deliver/deliver.h"
#include "hire/hire.h"
#include "ledger/ledger.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "route/route.h"
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
    struct lessons *lessons; /* for what is old; may be NULL */
    struct id_maker *ids;
    struct fetch *fetch;       /* for deliver's roads; may be NULL */
    struct children *children; /* likewise */
    struct traces *traces;     /* hears of every turn that is over; likewise */
    struct deliver_settings deliver;
    uint64_t seed[2];
    struct str node;
    struct tasks_limits limits;
    const struct gate_rules *rules; /* of the broker; NULL: none */
    int64_t max_age_ms;             /* likewise; zero: any */
    struct hire_settings hire;
    struct ledger_settings ledger;
    int64_t retention_ms, retention_rows;
};

/* Builds the rooms of the walk, and takes up what the store remembers. NULL
 * with words in why. */
MUST_USE struct walk *walk_new(const struct walk_opts *opts, struct why *why);

/* After the store has given back everything. */
void walk_free(struct walk *w);

/* New limits. */
void walk_set(struct walk *w, const struct walk_opts *opts);

/* Other rules of the gate; those before are not used any more. */
void walk_set_rules(struct walk *w, const struct gate_rules *rules);

/* An agent has come: what waits for one may have it now. */
void walk_agent_came(struct walk *w);

/* Agents have come, changed or gone. */
void walk_agents_changed(struct walk *w);

/* That agent is removed, durably: whoever takes its name next is not paused
 * for it. */
void walk_agent_gone(struct walk *w, struct str name);

/* The server ends: that its agents lose it is no news of them. */
void walk_stopping(struct walk *w);

/* How an agent is. */
enum agent_state walk_state(const struct walk *w, const struct agent *a);

/* Who hears what lines say that is not about tasks, and what became of results
 * that came over them: see deliver_opts. NULL: nobody. */
struct walk_hub {
    void (*on_recorded)(void *ctx, uint64_t receipt, enum err e);
    void (*on_call)(void *ctx, uint64_t line, struct str agent,
                    const struct wire_message *m);
    /* A delegation is over: hire_opts' on_ready. */
    void (*on_delegated)(void *ctx, const struct delegation *d,
                         const struct task *t);
    /* Words of one that is streamed, or of one below it that is streamed as
     * well, as they come; agent is who says them. Lent for the call. */
    void (*on_delegated_chunk)(void *ctx, const struct delegation *d,
                               struct str agent, struct str text);
    void *ctx;
};
void walk_set_hub(struct walk *w, const struct walk_hub *hub);

/* For the hub: lines are its. Borrowed. */
struct deliver *walk_deliver(struct walk *w);

/* For who asks what waits, and says what is to become of it. */
struct broker *walk_broker(struct walk *w);

/* For who delegates, and asks what came of it. */
struct hires *walk_hires(struct walk *w);

/* For who asks what it costs. */
struct ledger *walk_ledger(struct walk *w);

/* For those who only want to know who would get a message, and for figures. */
struct router *walk_router(struct walk *w);

/* For those who wait and list: calls/. */
struct tasks *walk_tasks(struct walk *w);

/* A message, decoded, on its walk. Takes m; done gives it back exactly once,
 * from the loop and never before this has returned. m->err: OK and m->task
 * says what it became, durably; else why it was refused, m->why in words
 * (empty: the error's own). */
void walk_message(struct walk *w, struct msg *m,
                  void (*done)(struct msg *m, void *ctx), void *ctx);

/* What an agent wants another to do, as it was read: by whatever road, one
 * message on the same walk. Borrowed for the call. */
struct walk_order {
    struct str by; /* the agent who asks: by its line, or whose task it is */
    const struct caller *caller; /* who says so, for an agent without a
                                  * creator that works for nobody now. Else it
                                  * is its creator's, or whom it works for;
                                  * NULL: nobody */
    struct str parent_id, session_id, task_id; /* empty: not said */
    struct str task_session; /* that of the task it is part of, likewise */
    struct str agent, skill, message, metadata;
    struct str idempotency_key; /* as a message's, of whose name it is in */
    int64_t timeout_ms;         /* zero: the default */
    bool has_max_cost;          /* the price is to be at most this: */
    int64_t max_cost_micros;
    struct delegation_wish wish;
};

/* What a key, or an original id, stands for where it is o that is asked.
 * ERR_NOMEM. */
MUST_USE enum err walk_order_hash(const struct walk_order *o,
                                  uint8_t out[MSG_BODY_HASH_BYTES]);

/* As walk_message: done has the message, and frees it. An error: it was not
 * begun, with words. A further turn (task_id) is of what this agent gave before
 * for the same user, else ERR_NOT_FOUND. In two phases an agent that is offline
 * is no reason to refuse: who asks hears of it as of any failure. */
MUST_USE enum err walk_delegate(struct walk *w, const struct walk_order *o,
                                void (*done)(struct msg *m, void *ctx),
                                void *ctx, struct why *why);

/* A message that an agent sends on its own line: a delegation like any other,
 * part of the task parent_id names or of what it works on in that conversation
 * (hire_parents); but who hears of it is who listens to its task, and nothing
 * is kept for them. As walk_message. */
void walk_agent_message(struct walk *w, struct msg *m, struct str by,
                        struct str parent_id,
                        void (*done)(struct msg *m, void *ctx), void *ctx);

/* Cancel a task that is in memory. ERR_NOT_FOUND, ERR_TASK_IS_OVER, ERR_NOMEM:
 * nothing was begun. Else done is called exactly once, as above, with OK or
 * why it is not cancelled: ERR_TASK_IS_OVER (something else was first),
 * ERR_NO_SPACE, ERR_OUTCOME_UNKNOWN, … */
MUST_USE enum err
walk_cancel(struct walk *w, struct str task_id, struct str by,
            void (*done)(void *ctx, struct str task_id, enum err e), void *ctx);

/* End a task that is in memory otherwise: as walk_cancel, with a result that
 * somebody else than its agent gives it. done may be NULL. */
MUST_USE enum err
walk_end(struct walk *w, struct str task_id, const struct task_result *r,
         void (*done)(void *ctx, struct str task_id, enum err e), void *ctx);

/* Somebody says what an agent asked (model/input.h), by the task's id or that
 * of its root: who may is asked before. *out is what was asked, borrowed as
 * task_find's, and NULL where there is no such. ERR_NOT_FOUND;
 * ERR_INPUT_IS_OVER: somebody or something else was first; ERR_BAD_REQUEST,
 * ERR_LIMIT: that is no answer to it; ERR_NOMEM, ERR_BUSY: it was not said.
 * With words, but for these two. */
MUST_USE enum err walk_answer(struct walk *w, struct str task_id,
                              struct str input_id, const struct input_answer *a,
                              struct str by, const struct input **out,
                              struct why *why);

/* Something has changed for a task that waits, or a person has said something:
 * the gate is asked again, and the task moves by what it says. OK: it does, or
 * there is no need to. */
MUST_USE enum err walk_resume(struct walk *w, struct str task_id);

struct walk_stats {
    struct tasks_stats tasks;
    struct deliver_stats deliver;
    int64_t results_waiting; /* and other ends: not written for want of space */
};

struct walk_stats walk_stats(const struct walk *w);

#endif
