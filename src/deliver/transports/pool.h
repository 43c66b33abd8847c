#ifndef DELIVER_TRANSPORTS_POOL_H
#define DELIVER_TRANSPORTS_POOL_H

/* Declarations shared by the files of the transport "process:".
 *
 *     process.c          the transport: waiting tasks and the choice of a child
 *     pool.c             the children of one definition: their number and time
 *     affinity.c         the child of each conversation
 *     worker.c           one child, from its start to its end
 *     program_sandbox.c  the sandbox of a child
 *     dialect_*.c        the messages to and from a child
 *     pi_ask.c           input requests of pi
 *     pi_tools.c         the tools that the server gives to pi
 *
 * A worker is a child process. A stint is a task that the worker has, one at a
 * time unless the worker allows more. A stint outlives its delivery if that was
 * cancelled and the child has not stopped yet. A worker belongs to no agent
 * until its first task, and to that task's agent from then on, because its
 * calls must come from an agent and its memory must stay with one. */

#include "deliver/internal.h"

enum {
    POOL_WORKER_STINTS_MAX = 16,
    AFFINITIES_MAX = 4096, /* conversations with a child, per pool; the one
                            * unused longest is dropped */
    STARTING_MAX = 8,      /* of one pool at once */
    RESTART_MS = 200,      /* the pause after the first failure of a child,
                            * doubled each time */
    RESTART_MAX_MS = 30 * 1000,
    SEEK_MS = 5000,     /* between searches for a missing program */
    GARBAGE_MAX = 100,  /* lines in a row that are not of its dialect */
    GARBAGE_LOGGED = 8, /* log entries about them */
    CHATTER_MS = 1000,  /* a program that has never spoken its dialect may print
                         * other lines this long before its first message */
    FIRST_LINE_MAX = 80, /* bytes of such a line in the error message */
    UNSENT_MAX = 16 * 1024 * 1024,
    STDERR_KEPT = 4096,
    DIALECT_ARGS_MAX = 8,
};

struct pool_worker;
struct carried;
struct pool;

/* A task that a child has. */
struct stint {
    struct pool_worker *pool_worker;
    bool is_taken;
    struct carried *carried; /* NULL: cancelled, asked to stop */
    struct delivery_id id;
    struct timer patience; /* until it must have stopped */
};

/* One row per dialect. */
struct dialect {
    const char *name, *form; /* as configured; a description for messages */

    /* A child remembers one conversation, and forgets it for another one. */
    bool has_one_mind;

    /* Further arguments of the command; returns their number. */
    size_t (*more_args)(const struct process_def *def,
                        struct str out[DIALECT_ARGS_MAX]);

    /* A descriptor passed as CHILD_FILE; zero: none. NULL: never one. */
    enum err (*file)(struct pool *p, int *file, struct why *why);

    /* The line that gives t to the child. */
    void (*word)(struct buf *out, const struct task *t);

    /* The child runs: find out when it is ready. */
    enum err (*greet)(struct pool_worker *h);

    /* Give the task of s. is_other: the child had another conversation. */
    enum err (*give)(struct pool_worker *h, struct stint *s, bool is_other);

    /* The delivery of s is over. If cancelled, ask the child to stop. */
    void (*leave)(struct pool_worker *h, struct stint *s, enum stop_why why);

    /* One line of its output. */
    void (*heard)(struct pool_worker *h, struct str line);

    /* Send the answer of an input request. NULL: there are none. */
    enum err (*answer)(struct pool_worker *h, struct str handle,
                       const struct input_answer *a);

    /* There is room for pending messages. May be NULL. */
    void (*room)(struct pool_worker *h);

    /* Free the dialect's state of h. NULL: none. */
    void (*forget)(struct pool_worker *h);
};

extern const struct dialect dialect_own, dialect_pi;

enum pool_worker_state {
    POOL_WORKER_STARTING, /* not ready yet */
    POOL_WORKER_READY,
    POOL_WORKER_ENDING, /* asked to end: its messages are ignored */
};

struct pool_worker {
    struct pool *pool;
    struct list_node node; /* of pool->workers */
    uint64_t child;
    enum pool_worker_state state;
    struct timer timer; /* STARTING: its deadline; idle: until it ends */
    size_t n_stints, n_taken;
    struct stint stints[POOL_WORKER_STINTS_MAX];
    char agent[AGENT_NAME_MAX + 1]; /* empty: none yet */
    struct list affinities;         /* struct affinity */
    int64_t idle_since_ms;
    int n_garbage; /* lines in a row */
    int n_garbage_logged;
    char first_line[FIRST_LINE_MAX + 1]; /* the first that is no message */
    int64_t n_results;
    bool is_counted_free;  /* in pool->n_free */
    bool has_failed_start; /* it did not become ready in time */
    void *mind;            /* state of the dialect */
};

/* The child of a conversation. */
struct affinity {
    struct pool_worker *pool_worker;
    struct list_node by_worker, by_use;
    size_t n;
    char key[];
};

struct pool {
    struct pools *all;
    struct list_node node; /* of pools->list or pools->retired */
    struct list_node due;  /* of pools->due */
    struct arena arena;    /* of def */
    struct process_def def;
    const struct dialect *dialect;
    struct list workers;
    size_t n_workers, n_starting, n_ending;
    size_t n_free;       /* pool_worker_is_free */
    struct list waiting; /* struct carried, by priority and place */
    size_t n_waiting;
    struct list_node *next_to_look_at; /* NULL: no pass is running */
    uint64_t n_looked_at;              /* waiting tasks, total */
    struct map affinities;             /* key -> struct affinity */
    struct list affinities_by_use;
    bool has_spoken; /* a child has spoken the dialect */
    int n_bad;       /* failed children in a row */
    int64_t not_before_ms;
    struct timer again; /* at that time */
    struct why missing; /* why no child can be started; empty: unknown or it
                         * can */
    struct timer seek;  /* while it is missing */
    bool is_retired;
    bool has_told_box; /* the sandbox was logged */
};

struct pools {
    struct deliver *deliver;
    struct list list, retired; /* struct pool */
    struct list due;           /* pools to be checked */
    struct loop_job job;
    uint64_t n_pauses;
    size_t n_workers;
    bool is_stopping;
    struct deliver_part part;
    int pi_tools; /* pi_tools.c: a descriptor; zero: none yet */
};

/* A delivery of this transport. */
struct carried {
    struct delivery delivery;
    struct pool *pool; /* while it waits or has a stint */
    struct list_node node;
    struct stint *stint; /* NULL: it waits */
    enum task_priority priority;
    int64_t place;
    struct buf line; /* the message that gives it to a child */
    size_t n_agent;  /* of key: the agent's name */
    size_t n_key;    /* zero behind the agent: no conversation */
    bool has_conversation;
    char key[];
};

static inline struct str carried_agent(const struct carried *c)
{
    return (struct str){c->key, c->n_agent};
}

static inline struct str carried_key(const struct carried *c)
{
    return (struct str){c->key, c->n_key};
}

/* pool.c */
struct pool *pool_find(const struct pools *all, struct str name);
void pool_due(struct pool *p); /* check it at the end of the loop turn */
void pool_bad(struct pool *p); /* a child failed: begin a pause */
void pool_worker_gone(struct pool *p);
void pool_respawn(struct pool *p); /* replace all children now */

/* process.c: give waiting tasks to children that can take them. Returns the
 * number of children that are missing. */
size_t pool_place(struct pool *p);
/* Fail one task that waits for a new child; all of them if the failure is
 * final. */
void pool_disappoint(struct pool *p, const struct delivery_failure *f);
void pool_send_back(struct pool *p); /* all waiting ones, as innocent */

/* program_sandbox.c: log once what the sandbox covers. */
void pool_tell_box(struct pool *p, unsigned held);

/* affinity.c */
struct pool_worker *affinity_find(struct pool *p, struct str key);
void affinity_put(struct pool *p, struct str key, struct pool_worker *h);
void affinities_drop(struct pool_worker *h);
void affinities_free(struct pool *p);

/* worker.c */
/* The child could not be started after all. */
void pool_cannot_start(struct pool *p, enum err e, const struct why *why);
MUST_USE enum err pool_worker_start(struct pool *p, struct why *why);
/* Whether the program and its needs are there. */
MUST_USE enum err pool_worker_seek(const struct pool *p, struct why *why);
void pool_worker_stop(struct pool_worker *h);
bool pool_worker_is_free(
    const struct pool_worker *h); /* READY, and can take one more */
void pool_worker_give(struct pool_worker *h, struct carried *c);

/* The delivery of c is over. */
void pool_worker_leave(struct carried *c, enum stop_why why);

/* The PATH of an environment, or the usual one. */
struct str program_path(const struct strs *env);

/* For the dialects. */
MUST_USE enum err pool_worker_send(struct pool_worker *h, struct str line);
void pool_worker_ready(struct pool_worker *h, size_t n_stints);
void pool_worker_garbage(struct pool_worker *h, struct str line);
void pool_worker_unheard(struct pool_worker *h); /* a message is lost */
struct deliver *pool_worker_deliver(struct pool_worker *h);

/* The child has sent a result, so it works. */
void pool_worker_answered(struct pool_worker *h);

/* Each ends in a callback that may do anything. Stint and worker stay valid,
 * but the stint may be over afterwards. Chunks of a cancelled stint are
 * ignored; its result or failure ends it. */
void stint_chunk(struct stint *s, struct str text);
void stint_result(struct stint *s, const struct task_result *r, bool has_text);
void stint_failed(struct stint *s, const struct delivery_failure *f);
void stint_empty(struct stint *s); /* a cancelled one has stopped */

#endif
