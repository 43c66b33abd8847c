#ifndef DELIVER_INTERNAL_H
#define DELIVER_INTERNAL_H

/* What the files of deliver/ share.
 *
 * An errand is what is known of a task from its first offer until it is over:
 * how often it came to nothing outlives a single attempt. It is in one of
 * these states:
 *
 *     RESTING   with the task room: it will be offered (again)
 *     WAITING   at its agent's desk
 *     GOING     there is a delivery
 *
 * A delivery is one attempt. A road embeds struct delivery in a struct of its
 * own. Whatever ends a delivery (its result, its failure, or a cancel, also one
 * from inside a callback) takes it off its errand and calls the road's `stop`;
 * its memory goes at the end of the turn, so a road may look at it after every
 * callback. */

#include "base/breaker.h"
#include "base/fault.h"
#include "base/map.h"
#include "deliver/deliver.h"
#include "model/msg.h"

struct delivery;
struct errand;
struct desk;
struct line;
struct patron;

/* Why a delivery is stopped. */
enum stop_why {
    STOP_OVER,      /* it had its last word, or failed: nothing to tell */
    STOP_CANCELLED, /* the agent is to be told */
    STOP_CLOSING,   /* the server ends */
};

enum presence {
    AWAY,
    FULL, /* there, but it takes nothing just now */
    PRESENT,
};

struct road_row {
    /* Whether new work may be accepted for a. NULL: always. */
    enum err (*reaches)(const struct deliver *d, const struct agent *a,
                        const struct agent_url *url, struct why *why);

    /* Whether it can be given work this moment (a line is there; a process or
     * an address is always). NULL: always. While it cannot, its desk waits;
     * `desk_wake` is called when that may have changed. `call` is called when
     * something waits and it cannot: to wake it up. */
    enum presence (*presence)(const struct deliver *d, const struct agent *a,
                              const struct agent_url *url);
    void (*call)(struct deliver *d, struct desk *k, const struct agent *a,
                 const struct agent_url *url);

    /* For its state: it is neither there nor can it be woken up (any more),
     * and why, if `why` is not NULL; has_details is deliver_state_reason's.
     * NULL: never. */
    bool (*is_dead)(const struct deliver *d, const struct agent *a,
                    const struct agent_url *url, bool has_details,
                    struct why *why);

    /* Begin: *out is a delivery of this road's own kind, zeroed but for what
     * the road put there. On error nothing was begun. ERR_NOMEM, ERR_BUSY,
     * ERR_OVERLOADED, ERR_GONE (it is not present after all): tried again
     * after a pause, and no fault of the agent's. Any other: the task fails
     * with that code. */
    enum err (*start)(struct deliver *d, const struct task *t,
                      const struct agent *a, const struct agent_url *url,
                      struct delivery **out);
    /* Say what people said to what it asked. NULL: its agents ask nothing. */
    enum err (*answer)(struct delivery *y, struct str handle,
                       const struct input_answer *a);
    /* No callback any more: let go of timers, lists, sockets. */
    void (*stop)(struct delivery *y, enum stop_why why);
    /* The memory itself, after stop. */
    void (*free)(struct delivery *y);
};

struct delivery {
    struct deliver *deliver;
    const struct road_row *road;
    struct errand *errand; /* NULL: it is over */
    struct delivery_id id;
    int64_t deadline_ms;   /* Unix time, the task's */
    int64_t began_ms;      /* loop's monotonic time */
    struct list_node node; /* among those on their way, or those to be freed */
    bool is_over;
    bool is_working;       /* and was told */
    bool is_probe;         /* its desk's breaker waits for what becomes of it */
    bool sees_details;     /* its root user may see a failure's `detail` */
    struct patron *patron; /* for whom it counts; NULL: nobody */
    struct buf gathered;   /* its chunks: the text if the result has none */
    enum { LOST_NOTHING, LOST_TOO_LARGE, LOST_NO_ROOM } lost; /* of them */

    /* line.c: for roads whose deliveries go over a line. */
    struct line *line;        /* NULL: it is on none */
    struct list_node on_line; /* among its line's */
    struct unsaid *unsaid;    /* its task.execute, while the line is full */
};

/* Each tells the owner; false when it cancelled the delivery meanwhile, so
 * that there is no more to say. Who says twice that it works, or speaks before
 * it has said so, works. */
bool delivery_working(struct delivery *y);
bool delivery_chunk(struct delivery *y, struct str text);

/* The last word of the agent: the delivery is over before the owner hears of
 * it, so that the same task may be offered again from inside the callback. `r`
 * may lie in the delivery. An r completed with `has_text` false is given the
 * chunks as its text. */
void delivery_result(struct delivery *y, const struct task_result *r,
                     bool has_text, uint64_t receipt);

/* The attempt came to nothing: tried again, or the task fails. */
struct delivery_failure {
    struct str code; /* "unreachable": the task's error_code, if it fails */
    struct str words;
    struct str detail;  /* replaces `words` for the agent's owner and admins;
                         * empty: there is no more to say */
    bool is_final;      /* trying again would be of no use. The breaker takes it
                         * for an answer: somebody is there */
    int64_t retry_ms;   /* the agent asked for this pause; zero: it did not */
    bool is_innocent;   /* not the agent's fault: neither counted as an attempt
                         * nor by the breaker (it was taken over, we stop) */
    bool is_to_be_told; /* it still works on it: told to stop, as by a cancel */
};
void delivery_failed(struct delivery *y, const struct delivery_failure *f);

/* How it is may change now: before that, so that it can be seen how it was. */
void deliver_stir(struct deliver *d, struct str agent);

enum {
    DELIVER_ERRANDS_MAX = 10 * 1000 * 1000, /* tasks are bounded long before */
    DELIVER_DESKS_MAX = 10 * 1000 * 1000,   /* and agents */
};

enum errand_state { ERRAND_RESTING, ERRAND_WAITING, ERRAND_GOING };

struct errand {
    struct id task_id;
    int64_t turn, attempt; /* when it was offered last */
    int64_t deadline_ms;   /* Unix time */
    enum errand_state state;
    enum task_priority priority;
    struct desk *desk;         /* WAITING and GOING: whose it is */
    struct timer place;        /* WAITING: its place there; never fires */
    struct list_node arrival;  /* WAITING: among all of the desk */
    bool is_below;             /* part of other work */
    struct list_node below;    /* WAITING and is_below: among those of it */
    int64_t offered_ms;        /* WAITING: since then, loop's monotonic time */
    struct delivery *delivery; /* GOING */
    int n_failures; /* attempts that came to nothing by their agent */
    int n_pauses;   /* after those, and after what was nobody's fault */
};

/* deliver.c */
const struct road_row *road_of(const struct agent_url *url);
enum presence agent_presence(const struct deliver *d, const struct agent *a);

/* e was taken off its desk, and its time has come. */
void errand_go(struct deliver *d, struct errand *e, struct desk *k);

/* One that waited and will not be carried. */
void errand_fail(struct deliver *d, struct errand *e,
                 const struct delivery_failure *f);

/* Off its errand; nothing is heard of it any more. */
void delivery_end(struct delivery *y, enum stop_why why);

/* The deliveries of echo.c that have something to say. */
struct echoes {
    struct loop *loop;
    struct list ready;
    struct loop_job job;
    uint64_t turn; /* in which was said: */
    unsigned n_words;
    size_t n_bytes;
};

/* desk.c: one per agent that has been given work. A desk lives as long as its
 * agent is there, something is on it, or somebody holds it. */
MUST_USE struct desk *desk_of(struct deliver *d, const struct agent *a);
MUST_USE struct desk *desk_named(struct deliver *d, struct str agent);
struct desk *desk_find(const struct deliver *d, struct str agent);

/* Who keeps a desk past a call holds it meanwhile. */
void desk_hold(struct desk *k);
void desk_release(struct desk *k);

MUST_USE enum err desk_add(struct deliver *d, struct desk *k, struct errand *e);
void desk_take(struct deliver *d, struct errand *e); /* WAITING -> RESTING */
void desk_begun(struct delivery *y);                 /* one more in flight */
void desk_done(struct desk *k, struct delivery *y);  /* one fewer */
void desks_on_end_of_turn(struct loop_job *job);
MUST_USE enum err desks_init(struct deliver *d);
void desks_free(struct deliver *d);
void desks_look_again(struct deliver *d); /* agents or settings have changed */

/* Its agent may be there now, or room be free. */
void desk_wake(struct deliver *d, struct desk *k);

/* The same, also when nobody may go: its agent may not be there any more. */
void desk_look(struct deliver *d, struct desk *k);

/* Memory is short: a second later. */
void desk_wake_later(struct deliver *d, struct desk *k);

/* What has waited in it since before that moment of the loop's monotonic time
 * fails for good: its agent did not wake up. What came later gets its own
 * chance. The failure is copied; they hear of it at the end of the turn, or of
 * those after it when they are many. */
void desk_fail(struct deliver *d, struct desk *k, int64_t before_ms,
               const struct delivery_failure *f);

/* figures.c: what became of a delivery of that desk, for its breaker and its
 * figures. Each before delivery_end. */
void desk_had_result(struct delivery *y, const struct task_result *r);
void desk_had_failure(struct delivery *y, const struct delivery_failure *f,
                      bool is_last);
void desk_had_cancel(struct delivery *y);
void desk_had_chunk(struct delivery *y);

/* A part that ends by itself: `stop` is called once, by deliver_stop, and
 * deliver_part_stopped follows, from inside it or later. */
struct deliver_part {
    struct list_node node;
    void (*stop)(struct deliver *d, struct deliver_part *p);
};
void deliver_part_add(struct deliver *d, struct deliver_part *p);
void deliver_part_stopped(struct deliver *d, struct deliver_part *p);

/* line.c: what deliveries go over. An agent's is found by its routing id
 * (deliver_attach); a child's belongs to its pool, and nobody finds it but by
 * its id. */

/* Says what agent its child is; no seat, no take-over. NULL: no memory. */
MUST_USE struct line *line_open(struct deliver *d, struct str agent,
                                const struct line_ops *ops, void *ctx);

/* No line any more: what is on its way on it fails like f. Its memory goes at
 * the end of the turn. */
void line_close(struct line *l, const struct delivery_failure *f);

uint64_t line_id(const struct line *l);
size_t line_n_deliveries(const struct line *l);
struct line *line_by_id(const struct deliver *d, uint64_t id); /* or NULL */

/* Write t's task.execute, so that it can be taken to a line later. */
MUST_USE enum err line_execute(const struct task *t, struct buf *out);

/* y goes over l from now on: its task.execute (written as above) is sent, or
 * waits until there is room. Also before the road's `start` has returned.
 * ERR_GONE, ERR_NOMEM, ERR_BUSY: it is not on it. */
MUST_USE enum err line_take(struct line *l, struct delivery *y,
                            struct str execute);

/* For `stop`: y is off its line, and the agent told when it was cancelled.
 * Harmless when it is on none. */
void line_leave(struct delivery *y, enum stop_why why);

/* One text that a child said: words about tasks go to their deliveries, other
 * calls to on_call, and what is wrong is answered. The line may be closed in
 * it. ERR_BAD_REQUEST: it was no message. ERR_NOMEM, ERR_LIMIT: it could not be
 * read, and may have been what somebody waits for. */
enum err line_read(struct deliver *d, uint64_t line, struct str text);

/* For deliver_recorded: whether the receipt was one of line_read's. */
MUST_USE bool lines_recorded(struct deliver *d, uint64_t receipt, enum err e);

/* wake.c: whether waking it came to nothing three times in a row: DEAD. `why`
 * (may be NULL) then says what came of the last time. */
bool wakes_have_failed(const struct deliver *d, struct str agent,
                       struct why *why);

/* reason.c: when an agent's connection went, and why. Nothing is noted of an
 * agent that is removed. */
enum { LEFT_MAX = 200 * 1000 }; /* notes; further ones are not taken */
void left_note(struct deliver *d, struct str agent, struct str because);
void left_forget(struct deliver *d, struct str agent);
void left_say(const struct deliver *d, const struct agent *a, bool has_details,
              struct why *out);
/* Look through the notes that wait and forget those of removed agents, up to
 * `most` at a time. */
void lefts_look(struct deliver *d, size_t most);
void lefts_free(struct deliver *d);

/* Its desk has gone: it need not be woken. */
void wakes_forget(struct deliver *d, struct str agent);

MUST_USE struct lines *lines_new(struct deliver *d);
void lines_free(struct deliver *d); /* after the last delivery */
MUST_USE struct wakes *wakes_new(struct deliver *d);
void wakes_free(struct deliver *d); /* before the lines */

/* model.c: what an endpoint has shown that it does not know. */
enum { MODEL_HABITS = 64 };
struct model_habit {
    uint64_t key;
    bool is_used;
    bool has_no_usage; /* stream_options */
    bool has_no_tools;
    bool has_long_max_tokens; /* called max_completion_tokens there */
};
void models_forget(struct deliver *d); /* the definitions have changed */

/* pool.c: children of definitions. */
MUST_USE struct pools *pools_new(struct deliver *d);
void pools_free(struct deliver *d); /* before the lines, none running */
void pools_set(struct deliver *d);  /* the definitions have changed */
int64_t pools_n_children(const struct deliver *d);

struct lines; /* line.c */
struct wakes; /* wake.c */
struct pools; /* pool.c */

/* restart.c: agents that are being started again. */
struct restarts {
    struct list list;
    size_t n;
    bool is_stopping;
    struct deliver_part part;
};
void restarts_init(struct deliver *d);
void restarts_free(struct deliver *d);

/* Desks that may have something to do, the highest priority first and in
 * turns among equals. */
enum { READY_LISTS = 2 * AGENT_PRIORITY_MAX + 1 };
struct ready_desks {
    struct list lists[READY_LISTS];
    uint64_t is_used[(READY_LISTS + 63) / 64]; /* may be empty all the same */
};

struct deliver {
    struct deliver_opts opts;
    struct map errands; /* task id -> struct errand */
    struct map desks;   /* lower-case agent name -> struct desk */
    struct list on_the_way, over;
    size_t n_on_the_way;
    struct ready_desks ready; /* to be served */
    struct ready_desks able;  /* held up by the limit of all, and no more */
    struct map patrons;       /* lower-case creator -> struct patron */
    struct map left;          /* lower-case agent name -> struct left */
    struct list lefts;        /* the same, looked at longest ago first */
    size_t n_lefts_to_look_at;
    bool has_lost_left; /* a connection went, and that was not noted */
    struct loop_job go_job, reaper;
    uint64_t go_turn; /* in which were served: */
    unsigned n_gone;
    struct list all_desks; /* those looked at longest ago first */
    size_t n_to_look_at;
    struct list stuck;        /* desks whose timer could not be set */
    struct timer again;       /* for these two; always set, but seldom soon */
    uint64_t chance;          /* for jitter */
    struct desk_stats others; /* totals of desks that are not shown */
    struct list shown;        /* those that are */
    size_t n_shown;
    int64_t show_again_ms; /* not before that others are looked for */
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
    size_t asked_bytes; /* of answers over HTTP that are not whole yet */
    struct deliver_stats stats;
};

extern const struct road_row road_echo;  /* echo.c */
extern const struct road_row road_line;  /* line.c: ws-agent:// */
extern const struct road_row road_http;  /* http.c */
extern const struct road_row road_pool;  /* process.c */
extern const struct road_row road_model; /* model.c */

void echoes_init(struct echoes *e, struct loop *loop);
void echoes_fini(struct echoes *e);

#endif
