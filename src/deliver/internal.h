#ifndef DELIVER_INTERNAL_H
#define DELIVER_INTERNAL_H

/* Declarations shared by the files of deliver/.
 *
 * A job is the state of a task from its first offer until it is over, because
 * the number of failures must outlive a single attempt. Its states:
 *
 *     RESTING   in the task module, which will offer it (again)
 *     WAITING   in its agent's queue
 *     GOING     a delivery exists
 *
 * A delivery is one attempt. A transport embeds struct delivery in a struct of
 * its own. The end of a delivery (its result, its failure, or a cancel, also
 * from inside a callback) detaches it from its job and calls the transport's
 * `stop`. Its memory is freed at the end of the loop turn, so a transport may
 * read it after every callback. */

#include "base/breaker.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/share.h"
#include "deliver/deliver.h"
#include "model/msg.h"

struct delivery;
struct deliver_job;
struct agent_queue;
struct line;
struct owner_quota;

/* Why a delivery is stopped. */
enum stop_why {
    STOP_OVER,      /* it has a result or failed: nothing to tell */
    STOP_CANCELLED, /* the agent must be told */
    STOP_CLOSING,   /* the server stops */
};

enum presence {
    AWAY,
    FULL, /* present, but cannot take more now */
    PRESENT,
};

struct transport_row {
    /* Whether new work may be accepted for a. NULL: always. */
    enum err (*reaches)(const struct deliver *d, const struct agent *a,
                        const struct agent_url *url, struct why *why);

    /* Whether the agent can take work now (it has a line; processes and
     * addresses always can). NULL: always. While it cannot, its queue waits,
     * and the transport calls agent_queue_wake when that may have changed.
     * `call` comes when jobs wait for an absent agent: wake it up. */
    enum presence (*presence)(const struct deliver *d, const struct agent *a,
                              const struct agent_url *url);
    void (*call)(struct deliver *d, struct agent_queue *k,
                 const struct agent *a, const struct agent_url *url);

    /* For the agent's state: it is absent and cannot be woken (any more). The
     * reason is in *why unless that is NULL; has_details as for
     * deliver_state_reason. NULL: never. */
    bool (*is_dead)(const struct deliver *d, const struct agent *a,
                    const struct agent_url *url, bool has_details,
                    struct why *why);

    /* Begin: *out is a delivery in the transport's own struct, zeroed except
     * for what the transport set. On error nothing was begun. ERR_NOMEM,
     * ERR_BUSY, ERR_OVERLOADED and ERR_GONE (not present after all) are retried
     * after a pause and do not count against the agent. On any other error the
     * task fails with that code. */
    enum err (*start)(struct deliver *d, const struct task *t,
                      const struct agent *a, const struct agent_url *url,
                      struct delivery **out);
    /* Send the answer of an input request. NULL: its agents ask nothing. */
    enum err (*answer)(struct delivery *y, struct str handle,
                       const struct input_answer *a);
    /* No more callbacks: release timers, lists and sockets. */
    void (*stop)(struct delivery *y, enum stop_why why);
    /* Free the memory, after stop. */
    void (*free)(struct delivery *y);
};

struct delivery {
    struct deliver *deliver;
    const struct transport_row *transport;
    struct deliver_job *deliver_job; /* NULL: it is over */
    struct delivery_id id;
    int64_t deadline_ms;   /* Unix time, the task's */
    int64_t began_ms;      /* loop's monotonic time */
    struct list_node node; /* of d->on_the_way or d->over */
    bool is_over;
    bool is_working;   /* on_working was called */
    bool is_probe;     /* the queue's breaker waits for its outcome */
    bool sees_details; /* its root user may see a failure's `detail` */
    struct owner_quota *owner_quota; /* that it counts for; NULL: none */
    struct buf gathered; /* its chunks: the text if the result has none */
    enum { LOST_NOTHING, LOST_TOO_LARGE, LOST_NO_ROOM } lost; /* chunks */

    /* line.c: for transports whose deliveries go over a line. */
    struct line *line;        /* NULL: it is on none */
    struct list_node on_line; /* among its line's */
    struct unsaid *unsaid;    /* its task.execute, while the line is full */
};

/* Report progress. False: the callback has cancelled the delivery, so there is
 * nothing more to report. Repeated reports of work are ignored, and a chunk
 * implies work. */
bool delivery_working(struct delivery *y);
bool delivery_chunk(struct delivery *y, struct str text);

/* Report the result. The delivery is over before the callback, so that the same
 * task may be offered again inside it. `r` may lie in the delivery. A completed
 * r with has_text false gets the chunks as its text. */
void delivery_result(struct delivery *y, const struct task_result *r,
                     bool has_text, uint64_t receipt);

/* The attempt failed: it is repeated, or the task fails. */
struct delivery_failure {
    struct str code; /* "unreachable": the task's error_code, if it fails */
    struct str words;
    struct str detail;  /* replaces `words` for the agent's owner and admins;
                         * empty: use `words` */
    bool is_final;      /* a retry is useless. The breaker counts it as an
                         * answer, since the agent is there */
    int64_t retry_ms;   /* the pause that the agent asked for; zero: none */
    bool is_innocent;   /* not the agent's fault (line replaced, server stops):
                         * counts neither as an attempt nor for the breaker */
    bool is_to_be_told; /* the agent still works on it and must be told to
                         * stop, as by a cancel */
};
void delivery_failed(struct delivery *y, const struct delivery_failure *f);

/* Call before an event that may change the agent's state, so that the old state
 * can still be read. */
void deliver_stir(struct deliver *d, struct str agent);

enum {
    DELIVER_JOBS_MAX = 10 * 1000 * 1000,   /* far above the limits of tasks */
    DELIVER_QUEUES_MAX = 10 * 1000 * 1000, /* and of agents */
};

enum deliver_job_state {
    DELIVER_JOB_RESTING,
    DELIVER_JOB_WAITING,
    DELIVER_JOB_GOING
};

struct deliver_job {
    struct id task_id;
    int64_t turn, attempt; /* as when it was last offered */
    int64_t deadline_ms;   /* Unix time */
    enum deliver_job_state state;
    enum task_priority priority;
    struct agent_queue *agent_queue; /* WAITING and GOING */
    struct timer place;        /* WAITING: node in its heap; never fires */
    struct list_node arrival;  /* WAITING: of the queue's arrivals */
    bool is_below;             /* part of other work */
    struct list_node below;    /* WAITING and is_below: of the queue's below */
    int64_t offered_ms;        /* WAITING: since then; monotonic */
    struct delivery *delivery; /* GOING */
    int n_failures; /* attempts that failed through their agent, or that the end
                     * of the server interrupted */
    int n_pauses;   /* after any failed attempt, innocent or not */
};

/* deliver.c */
const struct transport_row *transport_of(const struct agent_url *url);
enum presence agent_presence(const struct deliver *d, const struct agent *a);

/* Deliver e, which was just taken from its queue. */
void deliver_job_go(struct deliver *d, struct deliver_job *e,
                    struct agent_queue *k);

/* Fail a job that has no delivery. */
void deliver_job_fail(struct deliver *d, struct deliver_job *e,
                      const struct delivery_failure *f);

/* Detach a delivery from its job and stop it; no more callbacks. */
void delivery_end(struct delivery *y, enum stop_why why);

/* The deliveries of echo.c with something to send. */
struct echoes {
    struct loop *loop;
    struct list ready;
    struct loop_job job;
    uint64_t turn; /* in which the following was sent: */
    unsigned n_words;
    size_t n_bytes;
};

/* agent_queue.c: one per agent that got work. A queue lives while its agent
 * exists, it has jobs or deliveries, or it is held. NULL: the map cannot
 * grow. */
MUST_USE struct agent_queue *agent_queue_of(struct deliver *d,
                                            const struct agent *a);
MUST_USE struct agent_queue *agent_queue_named(struct deliver *d,
                                               struct str agent);
struct agent_queue *agent_queue_find(const struct deliver *d, struct str agent);

/* Hold a queue to keep a pointer to it past a call. */
void agent_queue_hold(struct agent_queue *k);
void agent_queue_release(struct agent_queue *k);

void agent_queue_add(struct deliver *d, struct agent_queue *k,
                     struct deliver_job *e);
void agent_queue_take(struct deliver *d,
                      struct deliver_job *e); /* WAITING -> RESTING */
void agent_queue_begun(struct delivery *y);   /* one more in flight */
void agent_queue_done(struct agent_queue *k,
                      struct delivery *y); /* one fewer */
void agent_queues_on_end_of_turn(struct loop_job *job);
void agent_queues_init(struct deliver *d);
void agent_queues_free(struct deliver *d);
void agent_queues_look_again(
    struct deliver *d); /* agents or settings have changed */

/* The agent may be present now, or capacity free: serve the queue. */
void agent_queue_wake(struct deliver *d, struct agent_queue *k);

/* The same, even if the queue waits for a shared limit: the agent may be gone.
 */
void agent_queue_look(struct deliver *d, struct agent_queue *k);

/* Fail the jobs that have waited since before before_ms (monotonic) for good,
 * because their agent did not wake up. Later jobs get their own chance. The
 * failure is copied. It is reported at the end of this loop turn and, if there
 * are many jobs, of the following ones. */
void agent_queue_fail(struct deliver *d, struct agent_queue *k,
                      int64_t before_ms, const struct delivery_failure *f);

/* agent_figures.c: count an outcome for the queue's breaker and figures. Call
 * before delivery_end. */
void agent_queue_had_result(struct delivery *y, const struct task_result *r);
void agent_queue_had_failure(struct delivery *y,
                             const struct delivery_failure *f, bool is_last);
void agent_queue_had_cancel(struct delivery *y);
void agent_queue_had_chunk(struct delivery *y);

/* A part that takes time to stop. deliver_stop calls `stop` once, and the part
 * calls deliver_part_stopped, inside it or later. */
struct deliver_part {
    struct list_node node;
    void (*stop)(struct deliver *d, struct deliver_part *p);
};
void deliver_part_add(struct deliver *d, struct deliver_part *p);
void deliver_part_stopped(struct deliver *d, struct deliver_part *p);

/* line.c: lines carry deliveries. An agent's line is found by its routing id
 * (deliver_attach); a child's line belongs to its pool and is found only by its
 * line id. */

/* A line for a child of that agent; it has no seat and cannot be replaced.
 * NULL: a limit is reached. */
MUST_USE struct line *line_open(struct deliver *d, struct str agent,
                                const struct line_ops *ops, void *ctx);

/* Close a line: its deliveries fail with f. Its memory is freed at the end of
 * the loop turn. */
void line_close(struct line *l, const struct delivery_failure *f);

uint64_t line_id(const struct line *l);
struct line *line_by_id(const struct deliver *d, uint64_t id); /* or NULL */

/* Write the task.execute of t, for line_take. */
MUST_USE enum err line_execute(const struct task *t, struct buf *out);

/* Put y on line l: its task.execute is sent, or waits until there is room. May
 * be called inside the transport's `start`. ERR_GONE, ERR_NOMEM, ERR_BUSY: it
 * is not on the line. */
MUST_USE enum err line_take(struct line *l, struct delivery *y,
                            struct str execute);

/* For `stop`: take y off its line, and tell the agent if it was cancelled. No
 * effect when it is on none. */
void line_leave(struct delivery *y, enum stop_why why);

/* Read one message of a child: messages about tasks go to their deliveries,
 * other calls to on_call, and errors are answered. This may close the line.
 * ERR_BAD_REQUEST: not a message. ERR_NOMEM, ERR_LIMIT: it could not be read,
 * and may have been an awaited one. */
enum err line_hear(struct deliver *d, uint64_t line, struct str text);

/* For deliver_recorded: whether the receipt came from line_hear. */
MUST_USE bool lines_recorded(struct deliver *d, uint64_t receipt, enum err e);

/* wake.c: whether waking the agent failed three times in a row: DEAD. *why, if
 * not NULL, then has the last error. */
bool wakes_have_failed(const struct deliver *d, struct str agent,
                       struct why *why);

/* state_reason.c: when an agent's connection went, and why. Removed agents have
 * no notes. */
enum { DEPARTURES_MAX = 200 * 1000 }; /* notes; no further ones are taken */
void departure_note(struct deliver *d, struct str agent, struct str because);
void departure_forget(struct deliver *d, struct str agent);
void departure_describe(const struct deliver *d, const struct agent *a,
                        bool has_details, struct why *out);
/* Check up to `most` pending notes and drop those of removed agents. */
void departures_look(struct deliver *d, size_t most);
void departures_free(struct deliver *d);

/* The queue of the agent is gone: stop waking it. */
void wakes_forget(struct deliver *d, struct str agent);

struct lines *lines_new(struct deliver *d);
void lines_free(struct deliver *d); /* after the last delivery */
struct wakes *wakes_new(struct deliver *d);
void wakes_free(struct deliver *d); /* before the lines */

/* model.c: features that an endpoint has shown not to support. */
enum { MODEL_HABITS = 64 };
struct model_habit {
    uint64_t key;
    bool is_used;
    bool has_no_usage; /* stream_options */
    bool has_no_tools;
    bool has_long_max_tokens; /* wants max_completion_tokens */
};
void models_forget(struct deliver *d); /* the definitions have changed */

/* pool.c: children of definitions. */
struct pools *pools_new(struct deliver *d);
void pools_free(struct deliver *d); /* before the lines, none running */
void pools_set(struct deliver *d);  /* the definitions have changed */
int64_t pools_n_children(const struct deliver *d);

struct lines; /* line.c */
struct wakes; /* wake.c */
struct pools; /* pool.c */

/* restart.c: running restarts of agents. */
struct restarts {
    struct list list;
    size_t n;
    bool is_stopping;
    struct deliver_part part;
};
void restarts_init(struct deliver *d);
void restarts_free(struct deliver *d);

/* Queues that may have something to do, the highest priority first and in turns
 * among equals. */
enum { READY_LISTS = 2 * AGENT_PRIORITY_MAX + 1 };
struct ready_queues {
    struct list lists[READY_LISTS];
    uint64_t is_used[(READY_LISTS + 63) / 64]; /* a marked list may be empty */
};

struct deliver {
    struct deliver_opts opts;
    struct map deliver_jobs; /* task id -> struct deliver_job */
    struct map agent_queues; /* lower-case agent name -> struct agent_queue */
    struct list on_the_way, over;
    size_t n_on_the_way;
    struct ready_queues ready;  /* to be served */
    struct ready_queues able;   /* blocked only by the limit on all */
    struct shares owner_quotas; /* struct owner_quota, by lower-case creator */
    struct map departures;      /* lower-case agent name -> struct departure */
    struct list departure_list; /* the same, checked longest ago first */
    size_t n_departures_to_look_at;
    bool has_lost_departure; /* a connection went without a note */
    struct loop_job go_job, reaper;
    uint64_t go_turn; /* the loop turn that n_gone counts */
    unsigned n_gone;
    struct list all_queues; /* those checked longest ago first */
    size_t n_to_look_at;
    struct timer again; /* for the checks; always set, but seldom soon */
    uint64_t chance;    /* for jitter */
    struct agent_queue_stats others; /* totals of queues that are not shown */
    struct list shown;               /* queues that are */
    size_t n_shown;
    int64_t show_again_ms; /* earliest next selection of shown queues */
    struct list parts;     /* struct deliver_part */
    bool is_stopping;
    bool is_asked_to_stop; /* every part */
    struct loop_job stop_job;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    struct echoes echoes;
    struct lines *lines;
    struct wakes *wakes;
    struct pools *pools;
    struct restarts restarts;
    struct model_habit habits[MODEL_HABITS];
    size_t gathered_bytes;
    size_t exchange_bytes; /* of incomplete answers over HTTP */
    struct deliver_stats stats;
};

extern const struct transport_row transport_echo;  /* echo.c */
extern const struct transport_row transport_line;  /* line.c: ws-agent:// */
extern const struct transport_row transport_http;  /* http.c */
extern const struct transport_row transport_pool;  /* process.c */
extern const struct transport_row transport_model; /* model.c */

void echoes_init(struct echoes *e, struct loop *loop);
void echoes_fini(struct echoes *e);

#endif
