#ifndef DELIVER_DELIVER_H
#define DELIVER_DELIVER_H

/* deliver: after task. Delivers a task to its agent over the transport that the
 * agent's url names, and returns the answer.
 *
 * One table has a row per transport; a transport is one file. Every agent has a
 * queue by priority, a limit in flight, a breaker, and figures from which its
 * state is derived. A delivery that fails is repeated after a growing pause,
 * until its attempts or its time are used up.
 *
 *     deliver_offer -> agent queue -> on_go -> transport -> on_working
 *                            ^                       -> on_chunk …
 *                            '--- on_retry, pause <--+
 *                                                    -> on_result
 *
 * Every callback names task, turn and attempt, so that a late one can be
 * recognized. Owns: waiting jobs, deliveries, lines and children. Borrows:
 * fetch, children. Threads: loop thread only. */

#include "access/access.h"
#include "base/log.h"
#include "base/loop.h"
#include "model/agent.h"
#include "model/input.h"
#include "model/task.h"
#include "model/transports.h"
#include "net/child/child.h"
#include "net/client/fetch.h"
#include "wire/wire.h"

struct deliver;

/* Identifies a delivery. */
struct delivery_id {
    struct id task_id;
    int64_t turn, attempt;
};

/* Settings that a reload may change. Lists are borrowed until the next ones. */
struct deliver_settings {
    size_t max_in_flight; /* of all agents together */
    int64_t in_flight;    /* of an agent whose card has no limit */
    int64_t queue;        /* unfinished tasks of an agent, likewise */
    int max_attempts;     /* failed ones, before the task fails */
    int64_t retry_ms;     /* bound of the first pause; doubled each time */
    int64_t retry_max_ms;
    int breaker_failures; /* in a row */
    int64_t breaker_pause_ms;
    int64_t wake_ms;           /* for an agent whose card has none */
    bool holds_for_offline;    /* false: offline agents get no new work */
    int64_t silence_ms;        /* allowed within an answer over HTTP */
    size_t max_gathered_bytes; /* of chunks before their result */
    const struct process_def *processes;
    size_t n_processes;
    const struct model_def *models;
    size_t n_models;
    struct strs usual_env; /* "NAME=value", for restart commands */
    struct strs closed;    /* paths closed to programs; the first: the data */
};

/* The sandbox of a program definition, with storage for its parts. */
struct deliver_box {
    struct child_box box;
    struct str own;
    char own_path[PATH_MAX];
    struct str others[TRANSPORTS_MAX];
};

/* Borrows d and s. NULL: the definition has no sandbox. */
const struct child_box *deliver_box_of(const struct process_def *d,
                                       const struct deliver_settings *s,
                                       struct deliver_box *out);

/* The earlier messages of a conversation, for agents without a memory. */
typedef void deliver_heard_history(void *ctx, enum err e,
                                   const struct task_said *list, size_t n);

/* The output of a tool, as text for the model. */
typedef void deliver_tool_done(void *ctx, struct str text);

struct deliver_opts {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch;       /* NULL: no transport needs it (tests) */
    struct children *children; /* likewise */
    struct access *access;     /* NULL: no user is an admin (tests) */
    uint64_t seed[2];
    struct deliver_settings settings;

    /* The agent of that name as it is now, lent for the call; or NULL. */
    const struct agent *(*agent_of)(void *ctx, struct str name);

    /* The task may go: move it to dispatched, and lend task and agent for the
     * call. False: it is not delivered now, and its job is dropped. */
    bool (*on_go)(void *ctx, struct str task_id, const struct task **t,
                  const struct agent **a);

    /* All come from the loop, never before deliver_offer has returned. */
    void (*on_working)(void *ctx, const struct delivery_id *d);
    void (*on_chunk)(void *ctx, const struct delivery_id *d, struct str text);

    /* The attempt failed; offer the task again after delay_ms. */
    void (*on_retry)(void *ctx, const struct delivery_id *d, int64_t delay_ms,
                     struct str because);

    /* The result, borrowed for the call. The agent waits for deliver_recorded
     * with this receipt; zero: it does not wait. */
    void (*on_result)(void *ctx, const struct delivery_id *d,
                      const struct task_result *r, uint64_t receipt);

    /* A late result: the agent has no delivery of that task (it was away
     * meanwhile, or sends a second result). */
    void (*on_unmatched_result)(void *ctx, struct str agent,
                                const struct wire_word *w, uint64_t receipt);

    /* A call of a child with our own dialect that is not about its task: answer
     * with deliver_say. The message is borrowed. */
    void (*on_call)(void *ctx, uint64_t line, struct str agent,
                    const struct wire_message *m);

    /* An input request of the agent's program, which waits for deliver_answer
     * with that handle. Borrowed. False: it cannot be shown, and the program is
     * told at once that it was cancelled. NULL: never shown. */
    bool (*on_ask)(void *ctx, const struct delivery_id *d,
                   const struct input_ask *q);

    /* A result with the receipt given to deliver_heard was kept, or the reason
     * why not: ERR_TASK_IS_OVER; ERR_NOT_FOUND: not a task of this agent;
     * ERR_GONE: the result had no text and its chunks are lost, so the task is
     * delivered again; ERR_NOMEM, ERR_BUSY, …: send it again. May come before
     * deliver_heard has returned. */
    void (*on_recorded)(void *ctx, uint64_t receipt, enum err e);

    /* Read the conversation of t before this turn, oldest first, limited in
     * messages and bytes; `done` comes once, perhaps before this returns. May
     * be NULL. */
    void (*history)(void *ctx, const struct task *t, size_t max_n,
                    size_t max_bytes, deliver_heard_history *done,
                    void *done_ctx, void **handle);
    void (*history_cancel)(void *ctx, void *handle);

    /* Whether the model a may use tools for t. NULL: never. */
    bool (*has_tools)(void *ctx, const struct task *t, const struct agent *a);

    /* An agent that is a model, or pi, uses a tool in a delivery and waits;
     * `done` comes once, perhaps before this returns, unless it was cancelled
     * by *handle. Errors become text for the model. The arguments are a JSON
     * object, borrowed for the call. */
    void (*on_tool)(void *ctx, const struct delivery_id *d, struct str agent,
                    enum wire_tool tool, struct str arguments,
                    deliver_tool_done *done, void *done_ctx, void **handle);
    void (*tool_cancel)(void *ctx, void *handle);

    /* The state of that agent may be about to change. May be NULL. */
    void (*on_stir)(void *ctx, struct str agent);
    void *ctx;
};

/* Never NULL. */
MUST_USE struct deliver *deliver_new(const struct deliver_opts *opts);

/* Drop all deliveries without callbacks. Children are stopped by
 * deliver_stop. */
void deliver_free(struct deliver *d);

/* End children, lines and requests; done comes once, from the loop. No further
 * delivery starts, and unfinished tasks keep their state. */
void deliver_stop(struct deliver *d, void (*done)(void *ctx), void *ctx);

void deliver_set(struct deliver *d, const struct deliver_settings *s);

/* Whether a new task may be accepted for a. ERR_AGENT_OFFLINE: it must be
 * running. ERR_NOT_FOUND: its process or model is not configured. Explained in
 * *why. */
MUST_USE enum err deliver_reaches(const struct deliver *d,
                                  const struct agent *a, struct why *why);

/* Whether a can delegate only with tools, because it is a model or pi and has
 * no line. Results that it did not wait for reach it as notes. */
bool deliver_uses_tools(const struct deliver *d, const struct agent *a);

/* Queue t for a. on_go comes when it may go, at the end of this loop turn at
 * the earliest. No effect if t is queued or being delivered already. ERR_NOMEM:
 * it was not queued. */
MUST_USE enum err deliver_offer(struct deliver *d, const struct task *t,
                                const struct agent *a);

/* For tests: whether the task is queued or being delivered. */
bool deliver_has(const struct deliver *d, struct str task_id);

/* The task is over: drop its job, stop its delivery and tell the agent.
 * on_result will not come. No effect if there is no job. */
void deliver_cancel(struct deliver *d, struct str task_id);

/* Send the answer of an input request to the program. ERR_GONE: the attempt or
 * the program has ended. ERR_NOMEM, ERR_BUSY, ERR_LIMIT: not sent. */
MUST_USE enum err deliver_answer(struct deliver *d,
                                 const struct delivery_id *id,
                                 struct str handle,
                                 const struct input_answer *a);

/* The outcome of a result with a receipt; OK: it is durable. A receipt of zero
 * is ignored. */
void deliver_recorded(struct deliver *d, uint64_t receipt, enum err e);

/* The agents have changed: jobs of removed ones are dropped (on_go returns
 * false), and so are their queues and departure notes; new limits and addresses
 * apply. This happens a moment later, so that a thousand changes cost no more
 * than one. */
void deliver_agents_changed(struct deliver *d);

/* Restart a with its process, the restart.command of its card (which only
 * admins and the configuration can set) or its wake.url; or only wake it. OK:
 * done comes once, from the loop, unless the server stops; OK in done means
 * that the command succeeded, not that the agent is there. ERR_NOT_FOUND: there
 * is no way to restart it. ERR_BUSY: a restart is running. ERR_OVERLOADED,
 * ERR_NOMEM, ERR_STOPPING, and those of child_start and fetch_start. Explained
 * in *why. */
typedef void deliver_restarted(void *ctx, enum err e, const struct why *why);
MUST_USE enum err deliver_restart(struct deliver *d, const struct agent *a,
                                  deliver_restarted *done, void *ctx,
                                  struct why *why);
MUST_USE enum err deliver_wake(struct deliver *d, const struct agent *a,
                               deliver_restarted *done, void *ctx,
                               struct why *why);

/* Start no new deliveries to the agent until it is resumed; running ones go on.
 * The agent need not exist yet. deliver_figures shows `by` and at_ms.
 * ERR_NOMEM. */
MUST_USE enum err deliver_pause(struct deliver *d, struct str agent,
                                struct str by, int64_t at_ms);
void deliver_resume(struct deliver *d, struct str agent);
bool deliver_is_paused(const struct deliver *d, struct str agent);

/* Lines: connections over which agents get their work. The hub has one per
 * WebSocket of an agent, a pool one per child. */

struct line_ops {
    /* Send one message. ERR_BUSY: not now, deliver_line_room will follow.
     * ERR_GONE. */
    enum err (*send)(void *ctx, struct str message);
    /* Another connection has replaced this one, which is no longer a line. */
    void (*taken_over)(void *ctx);
};

/* Make this the only line of a, and serve a's queue. Deliveries of the previous
 * line are repeated. ERR_NOMEM. */
MUST_USE enum err deliver_attach(struct deliver *d, const struct agent *a,
                                 const struct line_ops *ops, void *ctx,
                                 uint64_t *line);

/* The line is gone; its deliveries wait for the next one. `because` is for
 * deliver_state_reason and may be empty. No effect on an unknown line. */
void deliver_detach(struct deliver *d, uint64_t line, struct str because);
void deliver_line_room(struct deliver *d, uint64_t line);

/* Whether two agents share a line: same creator and routing id. */
bool deliver_shares_line(const struct agent *a, const struct agent *b);

/* A message from a line about tasks: task.chunk, task.result, or the answer to
 * a task.execute. ERR_METHOD: it is about something else. ERR_BAD_REQUEST: it
 * is malformed, explained in *why. ERR_NOT_FOUND: not a task of this agent. OK:
 * taken; on_recorded answers a result with a receipt. */
MUST_USE enum err deliver_heard(struct deliver *d, uint64_t line,
                                const struct wire_message *m, uint64_t receipt,
                                struct why *why);

/* Send another message on a line: the answer to on_call. */
MUST_USE enum err deliver_say(struct deliver *d, uint64_t line,
                              struct str message);

/* The state of an agent. The state that the agent reports, until it reports
 * another one or its line goes (zero: none). */
enum agent_state deliver_state(const struct deliver *d, const struct agent *a);
void deliver_report(struct deliver *d, struct str agent, enum agent_state s);

/* Why the agent is DEAD, in ERROR or SLOW; empty in other states. has_details
 * adds its last error and why its connection went, for its owner and admins. */
void deliver_state_reason(const struct deliver *d, const struct agent *a,
                          bool has_details, struct why *out);

/* The facts that cards are checked against: the models and outgoing.allow.
 * Borrowed until the next settings. */
struct advice_against;
void deliver_against(const struct deliver *d, struct advice_against *out);

/* Whether an agent in ERROR, unless it reported that itself, may be tried
 * again. */
bool deliver_may_try(const struct deliver *d, struct str agent);

/* The age of its data as the agent reports it: Unix time; zero: not reported.
 */
void deliver_report_data(struct deliver *d, struct str agent, int64_t at_ms);
int64_t deliver_data_at(const struct deliver *d, struct str agent);

enum { DELIVER_BUCKETS = 12 }; /* of latency; the last has no bound */
extern const int64_t deliver_bucket_ms[DELIVER_BUCKETS - 1];

enum deliver_outcome {
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_EXPIRED,
    N_OUTCOMES,
};

/* The figures of one agent. */
struct agent_queue_stats {
    int64_t waiting, in_flight;
    int64_t completed_total, failed_total, cancelled_total, retries_total;
    int64_t chunks_total;
    int64_t latency_total[DELIVER_BUCKETS]; /* each bucket alone */
    int64_t latency_sum_ms;
    /* Finished delegations by this agent and to it, by enum deliver_outcome. */
    int64_t made_total[N_OUTCOMES], received_total[N_OUTCOMES];
    bool is_open; /* the breaker */
};
MUST_USE bool deliver_queue_stats(const struct deliver *d, struct str agent,
                                  struct agent_queue_stats *out);

/* The figures of an agent now and in the last hour, by minutes of the monotonic
 * clock, oldest first and the running one last. Kept in memory only. An agent
 * without work in the last hour has no hour, one without a queue has zeros. */
enum { DELIVER_HOUR = 60, DELIVER_MINUTE_MS = 60 * 1000 };
struct agent_queue_minute {
    uint32_t completed, failed, cancelled;
    uint32_t latency_sum_ms; /* of the completed ones */
};
struct agent_queue_figures {
    int64_t waiting, in_flight;
    int64_t completed_total, failed_total, cancelled_total, retries_total;
    int64_t latency_ms; /* median of the last answers; -1: none */
    int64_t usual_ms;   /* median of the week; zero: too few answers */
    int64_t failed_ms;  /* its last failure, retried or not, as Unix time; zero:
                         * none */
    struct str error_code, error; /* borrowed until the loop's turn ends */
    bool is_paused;
    struct str paused_by; /* borrowed likewise */
    int64_t paused_ms;
    bool has_hour;
    int64_t running_ms; /* elapsed part of the running minute */
    struct agent_queue_minute hour[DELIVER_HOUR];
};
void deliver_figures(const struct deliver *d, struct str agent,
                     struct agent_queue_figures *out);

/* Public figures: by name those of public agents that got work, and the sum of
 * all others. At most DELIVER_SHOWN_MAX are shown by name: an agent from its
 * first task on while there is room, later the most used ones when room becomes
 * free, and each as long as it exists and is public. A name has the counts
 * since it is shown, and the others have the rest: so the sum is right, and no
 * total shrinks. */
enum { DELIVER_SHOWN_MAX = 200 };
struct agent_queue_row {
    struct str agent; /* borrowed until the loop's turn ends */
    enum agent_state state;
    struct agent_queue_stats stats;
};
size_t deliver_shown(struct deliver *d,
                     struct agent_queue_row rows[DELIVER_SHOWN_MAX],
                     struct agent_queue_stats *others);

/* A delegation of one agent to another is over: count it for both. */
void deliver_delegated(struct deliver *d, struct str by, struct str to,
                       enum task_status s);

struct deliver_stats {
    int64_t waiting, on_the_way;
    int64_t started_total, results_total, cancelled_total;
    int64_t retries_total, failed_total; /* failed: after all retries */
    int64_t lines, lines_total, taken_over_total;
    int64_t wakes_total, wakes_failed_total;
    int64_t breakers_open;
    int64_t children; /* running */
    int64_t gathered_bytes;
};

struct deliver_stats deliver_stats(const struct deliver *d);

/* For tests: whether all invariants hold. */
bool deliver_check(const struct deliver *d);

#endif
