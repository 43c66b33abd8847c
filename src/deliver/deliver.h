#ifndef DELIVER_DELIVER_H
#define DELIVER_DELIVER_H

/* deliver: after task. Carries a task to its agent over the road that the
 * agent's url names, and brings back what the agent says.
 *
 * One table has a row per road; a road is one file. Every agent has a desk: a
 * queue by priority, a limit of what is in flight, a breaker, and figures from
 * which its state is told. What fails on the way and may be tried again is,
 * with a growing pause, until it was tried often enough or its time is over.
 *
 *     deliver_offer -> waits at its desk -> on_go -> road -> on_working
 *                            ^                          -> on_chunk …
 *                            '--- on_retry, pause <-----+
 *                                                       -> on_result
 *
 * Whatever comes back carries task, turn and attempt, so that a late word can
 * be told from one that is awaited. Owns: what waits and what is on its way,
 * lines and children. Borrows: fetch, children's loop. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "child/child.h"
#include "fetch/fetch.h"
#include "model/agent.h"
#include "model/input.h"
#include "model/roads.h"
#include "model/task.h"
#include "wire/wire.h"

struct deliver;

/* Which delivery a word belongs to. */
struct delivery_id {
    struct id task_id;
    int64_t turn, attempt;
};

/* What a reload may change. Lists are borrowed until the next settings. */
struct deliver_settings {
    size_t max_in_flight; /* of all agents together */
    int64_t in_flight;    /* of one whose card does not say */
    int64_t queue;        /* unfinished tasks of one, likewise */
    int max_attempts;     /* that came to nothing, before the task fails */
    int64_t retry_ms;     /* the first pause, roughly; doubled each time */
    int64_t retry_max_ms;
    int breaker_failures; /* in a row */
    int64_t breaker_pause_ms;
    int64_t wake_ms;        /* for an agent whose card does not say */
    bool holds_for_offline; /* else who is offline gets no new work */
    int64_t silence_ms;     /* of an agent reached by HTTP, within an answer */
    size_t max_gathered_bytes; /* of chunks, until their result is here */
    const struct process_def *processes;
    size_t n_processes;
    const struct model_def *models;
    size_t n_models;
    struct strs usual_env; /* "NAME=value": of restart commands */
    struct strs closed; /* paths that no program opens; the first: the data */
};

/* What a program of a definition is kept from, with room for its parts. */
struct deliver_box {
    struct child_box box;
    struct str own;
    char own_path[PATH_MAX];
    struct str others[ROADS_MAX];
};

/* Borrows d and s. NULL: it has no sandbox. */
const struct child_box *deliver_box_of(const struct process_def *d,
                                       const struct deliver_settings *s,
                                       struct deliver_box *out);

/* What was said in a conversation, for agents that remember nothing
 * themselves. */
typedef void deliver_heard_history(void *ctx, enum err e,
                                   const struct task_said *list, size_t n);

/* What came of a tool, as the model is told. */
typedef void deliver_tool_done(void *ctx, struct str text);

struct deliver_opts {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch;       /* NULL: no road needs it (tests) */
    struct children *children; /* likewise */
    uint64_t seed[2];
    struct deliver_settings settings;

    /* The agent of that name as it is now, lent for the call. NULL: there is
     * none. */
    const struct agent *(*agent_of)(void *ctx, struct str name);

    /* Its turn has come: move it to dispatched, and lend task and agent for
     * the call. False: it is not to be carried any more, and is forgotten. */
    bool (*on_go)(void *ctx, struct str task_id, const struct task **t,
                  const struct agent **a);

    /* All from the loop, never before deliver_offer has returned. */
    void (*on_working)(void *ctx, const struct delivery_id *d);
    void (*on_chunk)(void *ctx, const struct delivery_id *d, struct str text);

    /* This attempt came to nothing; another follows after delay_ms, when the
     * task is offered again. */
    void (*on_retry)(void *ctx, const struct delivery_id *d, int64_t delay_ms,
                     struct str because);

    /* The last word. `r` is borrowed for the call. `receipt`: who wants to
     * hear by deliver_recorded that it was kept; zero: nobody. */
    void (*on_result)(void *ctx, const struct delivery_id *d,
                      const struct task_result *r, uint64_t receipt);

    /* An agent has a result for a task that is not on its way to it (it was
     * away meanwhile, or this is its second one). */
    void (*on_stray)(void *ctx, struct str agent, const struct wire_word *w,
                     uint64_t receipt);

    /* A child that speaks our dialect asks for something that is not about
     * its task: answer with deliver_say. The message is borrowed. */
    void (*on_call)(void *ctx, uint64_t line, struct str agent,
                    const struct wire_message *m);

    /* The agent's program asks people something, and waits for deliver_answer
     * with that handle. Borrowed. False: nobody is there, and it is told at
     * once that it was cancelled. NULL: nobody ever is. */
    bool (*on_ask)(void *ctx, const struct delivery_id *d,
                   const struct input_ask *q);

    /* It was kept, or why not: ERR_TASK_IS_OVER; ERR_NOT_FOUND: no task of
     * this agent's; ERR_GONE: it said no text, and its chunks are lost, so
     * that the task will be carried again; ERR_NOMEM, ERR_BUSY, …: send it
     * again. By what was given to deliver_heard, perhaps before that has
     * returned. */
    void (*on_recorded)(void *ctx, uint64_t receipt, enum err e);

    /* The conversation of t before this turn, oldest first, up to so many and
     * so much; `done` once, perhaps before this returns. False: no memory. May
     * be NULL. */
    bool (*history)(void *ctx, const struct task *t, size_t max_n,
                    size_t max_bytes, deliver_heard_history *done,
                    void *done_ctx, void **handle);
    void (*history_cancel)(void *ctx, void *handle);

    /* Whether the model that a is may use tools for t. NULL: none may. */
    bool (*has_tools)(void *ctx, const struct task *t, const struct agent *a);

    /* An agent that is a model, or pi, uses a tool while it works on that task,
     * and waits; `done` once, perhaps before this returns, unless it was
     * cancelled. Whatever goes wrong is said to the model. The arguments are a
     * JSON object, borrowed for the call; *handle is what to cancel it by.
     * False: no memory. */
    bool (*on_tool)(void *ctx, const struct delivery_id *d, struct str agent,
                    enum wire_tool tool, struct str arguments,
                    deliver_tool_done *done, void *done_ctx, void **handle);
    void (*tool_cancel)(void *ctx, void *handle);

    /* How that agent is may change in a moment. May be NULL. */
    void (*on_stir)(void *ctx, struct str agent);

    /* Whether that user may see the details of why a failed: its owner and
     * admins may. NULL: no user may. */
    bool (*sees_details)(void *ctx, struct str user, const struct agent *a);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct deliver *deliver_new(const struct deliver_opts *opts);

/* Drops what is on its way; nobody hears of it. Children are stopped by
 * deliver_stop. */
void deliver_free(struct deliver *d);

/* Ends children, lines and requests; done once, from the loop. Nothing is
 * started any more, and what is on its way stays as it is. */
void deliver_stop(struct deliver *d, void (*done)(void *ctx), void *ctx);

void deliver_set(struct deliver *d, const struct deliver_settings *s);

/* Whether a new task may be accepted for a. ERR_AGENT_OFFLINE: it must be
 * running; ERR_NOT_FOUND: its process or model is not configured. With
 * words. */
MUST_USE enum err deliver_reaches(const struct deliver *d,
                                  const struct agent *a, struct why *why);

/* Whether a gives work to others by tools alone, being a model or pi: it has no
 * line to be told on. What it did not wait for it hears by a note. */
bool deliver_uses_tools(const struct deliver *d, const struct agent *a);

/* t waits to be carried to a: it is put on a's desk, and on_go comes when it
 * may go, at the end of this turn at the earliest. Offered twice it stays
 * where it is. ERR_NOMEM: it is not. */
MUST_USE enum err deliver_offer(struct deliver *d, const struct task *t,
                                const struct agent *a);

/* Whether t is at a desk, or on its way. */
bool deliver_has(const struct deliver *d, struct str task_id);

/* It is over: whatever waits is forgotten, and what is on its way is stopped,
 * the agent told. on_result will not come any more. Harmless when there is
 * nothing. */
void deliver_cancel(struct deliver *d, struct str task_id);

/* Say to the program what was said to what it asked. ERR_GONE: that attempt is
 * over, or its program. ERR_NOMEM, ERR_BUSY, ERR_LIMIT: it was not said. */
MUST_USE enum err deliver_answer(struct deliver *d,
                                 const struct delivery_id *id,
                                 struct str handle,
                                 const struct input_answer *a);

/* What became of a result with a receipt: OK, it is durable. */
void deliver_recorded(struct deliver *d, uint64_t receipt, enum err e);

/* The agents have changed: what waits for one who is gone is forgotten (on_go
 * says no), and its desk goes, as does the note of when its connection went;
 * limits and addresses count as they are now. A moment later, so that a
 * thousand changes cost no more than one. */
void deliver_agents_changed(struct deliver *d);

/* Starting a again by what there is: its process, the restart.command of its
 * card (which admins and the configuration alone can set) or its wake.url; or
 * only waking it. OK: done comes once, from the loop, unless the server stops;
 * OK there means that it was done, not that the agent is there. ERR_NOT_FOUND:
 * there is nothing to do it with; ERR_BUSY: it is being started already;
 * ERR_OVERLOADED, ERR_NOMEM, ERR_STOPPING, and those of child_start and
 * fetch_start. With words. */
typedef void deliver_restarted(void *ctx, enum err e, const struct why *why);
MUST_USE enum err deliver_restart(struct deliver *d, const struct agent *a,
                                  deliver_restarted *done, void *ctx,
                                  struct why *why);
MUST_USE enum err deliver_wake(struct deliver *d, const struct agent *a,
                               deliver_restarted *done, void *ctx,
                               struct why *why);

/* Nothing new is carried to it until it is resumed; what is on its way goes
 * on. By name, also of one that is not there yet; by whom and since when is
 * for deliver_figures. ERR_NOMEM. */
MUST_USE enum err deliver_pause(struct deliver *d, struct str agent,
                                struct str by, int64_t at_ms);
void deliver_resume(struct deliver *d, struct str agent);
bool deliver_is_paused(const struct deliver *d, struct str agent);

/* Lines: connections by which agents take their work. The hub has one for each
 * WebSocket that is an agent, a pool one for each of its children. */

struct line_ops {
    /* Send one message. ERR_BUSY: not now, deliver_line_room says when;
     * ERR_GONE. */
    enum err (*send)(void *ctx, struct str message);
    /* Another one is this agent's now: this one has nothing to do any more,
     * and is no line from here on. */
    void (*taken_over)(void *ctx);
};

/* a is reached by this from now on, and by no other: what waits for it goes.
 * What was on its way on the one before is carried again. ERR_NOMEM. */
MUST_USE enum err deliver_attach(struct deliver *d, const struct agent *a,
                                 const struct line_ops *ops, void *ctx,
                                 uint64_t *line);

/* It is gone; what was on its way waits for the next. `because`: for
 * deliver_state_reason, may be empty. Harmless for one that is none. */
void deliver_detach(struct deliver *d, uint64_t line, struct str because);
void deliver_line_room(struct deliver *d, uint64_t line);

/* Whether the line of one is the other's too: agents of one creator with the
 * same routing id. */
bool deliver_shares_line(const struct agent *a, const struct agent *b);

/* What is said on a line about tasks: task.chunk, task.result, and the answer
 * to a task.execute. ERR_METHOD: it is about something else. ERR_BAD_REQUEST:
 * malformed, with words. ERR_NOT_FOUND: no task of this agent's. OK: taken; a
 * result with a receipt is answered by on_recorded. */
MUST_USE enum err deliver_heard(struct deliver *d, uint64_t line,
                                const struct wire_message *m, uint64_t receipt,
                                struct why *why);

/* Say something else on a line: the answer to on_call. */
MUST_USE enum err deliver_say(struct deliver *d, uint64_t line,
                              struct str message);

/* How an agent is, as DESIGN has it; and what it says of itself, until it says
 * something else or its line goes (zero: nothing). */
enum agent_state deliver_state(const struct deliver *d, const struct agent *a);
void deliver_report(struct deliver *d, struct str agent, enum agent_state s);

/* Why it is DEAD, in ERROR or SLOW; empty in other states. has_details: with
 * what its last error said and why its connection went, which is for its owner
 * and admins. */
void deliver_state_reason(const struct deliver *d, const struct agent *a,
                          bool has_details, struct why *out);

/* The facts that cards are checked against: the models, and what outgoing.allow
 * opens. Borrowed until the next settings. */
struct advice_against;
void deliver_against(const struct deliver *d, struct advice_against *out);

/* One that is in ERROR, and not because it says so itself: whether it is time
 * to see if it does better. */
bool deliver_may_try(const struct deliver *d, struct str agent);

/* How old its data is, as it says: Unix time; zero: it has not said. */
void deliver_report_data(struct deliver *d, struct str agent, int64_t at_ms);
int64_t deliver_data_at(const struct deliver *d, struct str agent);

enum { DELIVER_BUCKETS = 12 };                               /* of latency */
extern const int64_t deliver_bucket_ms[DELIVER_BUCKETS - 1]; /* the last: all */

enum deliver_outcome {
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_EXPIRED,
    N_OUTCOMES,
};

/* The figures of one agent. */
struct desk_stats {
    int64_t waiting, in_flight;
    int64_t completed_total, failed_total, cancelled_total, retries_total;
    int64_t chunks_total;
    int64_t latency_total[DELIVER_BUCKETS]; /* each bucket alone */
    int64_t latency_sum_ms;
    /* Delegations that are over, by enum deliver_outcome: what it gave to
     * others, and what others gave to it. */
    int64_t made_total[N_OUTCOMES], received_total[N_OUTCOMES];
    bool is_open; /* the breaker */
};
MUST_USE bool deliver_desk(const struct deliver *d, struct str agent,
                           struct desk_stats *out);

/* How an agent does now and did in the last hour, by minutes of the monotonic
 * clock, the oldest first and the running one last. In memory: a start forgets
 * it. Who has not worked in that hour has none; who has no desk has zeros. */
enum { DELIVER_HOUR = 60, DELIVER_MINUTE_MS = 60 * 1000 };
struct desk_minute {
    uint32_t completed, failed, cancelled;
    uint32_t latency_sum_ms; /* of the completed ones */
};
struct desk_figures {
    int64_t waiting, in_flight;
    int64_t completed_total, failed_total, cancelled_total, retries_total;
    int64_t latency_ms; /* the median of its last answers; -1: there are none */
    int64_t usual_ms;   /* that of its week; zero: too few are known */
    int64_t failed_ms;  /* its last failure, tried again or not, as Unix time;
                         * zero: none. Its code and words are empty where there
                         * was no memory for them */
    struct str error_code, error; /* borrowed until the loop's turn ends */
    bool is_paused;
    struct str paused_by; /* borrowed likewise */
    int64_t paused_ms;
    bool has_hour;
    int64_t running_ms; /* of the last minute, so far */
    struct desk_minute hour[DELIVER_HOUR];
};
void deliver_figures(const struct deliver *d, struct str agent,
                     struct desk_figures *out);

/* The figures that anybody may see: by name those of public agents that have
 * been given work, and of all others together. At most DELIVER_SHOWN_MAX have
 * their name there: each from its first task on while there is room, of those
 * that had none the most used when there is some, and all for as long as they
 * are there and public. A name has what was done since it is there, all else is
 * the others': so the sum is right, and no total becomes smaller while it is
 * told. */
enum { DELIVER_SHOWN_MAX = 200 };
struct desk_row {
    struct str agent; /* borrowed until the loop's turn ends */
    enum agent_state state;
    struct desk_stats stats;
};
size_t deliver_shown(struct deliver *d, struct desk_row rows[DELIVER_SHOWN_MAX],
                     struct desk_stats *others);

/* What one agent had given to another is over: counted for both. */
void deliver_delegated(struct deliver *d, struct str by, struct str to,
                       enum task_status s);

struct deliver_stats {
    int64_t waiting, on_the_way;
    int64_t started_total, results_total, cancelled_total;
    int64_t retries_total, failed_total; /* by the road, for good */
    int64_t lines, lines_total, taken_over_total;
    int64_t wakes_total, wakes_failed_total;
    int64_t breakers_open;
    int64_t children; /* running */
    int64_t gathered_bytes;
};

struct deliver_stats deliver_stats(const struct deliver *d);

/* Everything is where it says it is. For tests. */
bool deliver_check(const struct deliver *d);

#endif
