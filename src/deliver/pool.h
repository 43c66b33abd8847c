#ifndef DELIVER_POOL_H
#define DELIVER_POOL_H

/* What the files of the road "process:" share.
 *
 *     process.c   the road: what is carried, and who takes it
 *     pool.c      the children of one definition: how many, when, until when
 *     keep.c      which conversation has which child
 *     hand.c      one child, from its start to its end
 *     box.c       what it is kept from
 *     dialect_*.c what is said to it, and how it answers
 *     pi_ask.c    what pi asks of people
 *     pi_tools.c  the tools that pi has of us
 *
 * A hand is a child. A stint is a task that it has in hand, one at a time
 * unless it says more; it outlives its delivery when that was cancelled and the
 * child is yet to say that it has stopped. A hand belongs
 * to no agent until its first task, and to that one's agent for good: what it
 * asks of us is asked by somebody, and what it remembers stays there. */

#include "deliver/internal.h"

enum {
    HAND_STINTS_MAX = 16,
    KEEPS_MAX = 4096, /* conversations of one pool that have a child;
                       * the one longest unused is forgotten */
    STARTING_MAX = 8, /* of one pool at once */
    RESTART_MS = 200, /* the pause after the first bad end of a child,
                       * doubled each time */
    RESTART_MAX_MS = 30 * 1000,
    SEEK_MS = 5000,     /* between looks for a program that is missing */
    GARBAGE_MAX = 100,  /* lines in a row that are none of its dialect's */
    GARBAGE_LOGGED = 8, /* times that this is in the log */
    CHATTER_MS = 1000,  /* a program that has never spoken its dialect may print
                         * other lines for so long before its first message */
    FIRST_LINE_MAX = 80, /* bytes of such a line that are told */
    UNSENT_MAX = 16 * 1024 * 1024,
    STDERR_KEPT = 4096,
    DIALECT_ARGS_MAX = 8,
};

struct hand;
struct carried;
struct pool;

/* A task that a child has. */
struct stint {
    struct hand *hand;
    bool is_taken;
    struct carried *carried; /* NULL: cancelled; it is asked to stop */
    struct delivery_id id;
    struct timer patience; /* until it must have stopped */
};

/* One row per dialect. */
struct dialect {
    const char *name, *form; /* as the configuration has it; how it looks */

    /* It remembers one conversation; for another it is made to forget. */
    bool has_one_mind;

    /* Words behind the command's own; how many. */
    size_t (*more_args)(const struct process_def *def,
                        struct str out[DIALECT_ARGS_MAX]);

    /* A file that it is handed as CHILD_FILE: a descriptor, zero where there
     * is none. NULL: there never is. */
    enum err (*file)(struct pool *p, int *file, struct why *why);

    /* The line by which t is given. */
    void (*word)(struct buf *out, const struct task *t);

    /* It runs: find out when it is ready. */
    enum err (*greet)(struct hand *h);

    /* Give it the task of s. `is_other`: it had another conversation before. */
    enum err (*give)(struct hand *h, struct stint *s, bool is_other);

    /* The delivery of s is over. Cancelled: ask it to stop working on it. */
    void (*leave)(struct hand *h, struct stint *s, enum stop_why why);

    /* One line of its output. */
    void (*heard)(struct hand *h, struct str line);

    /* What people said to what it asked. NULL: it asks nothing. */
    enum err (*answer)(struct hand *h, struct str handle,
                       const struct input_answer *a);

    /* There is room for what it could not be sent. May be NULL. */
    void (*room)(struct hand *h);

    /* What it kept for h. NULL: nothing. */
    void (*forget)(struct hand *h);
};

extern const struct dialect dialect_own, dialect_pi;

enum hand_state {
    HAND_STARTING, /* has not said yet that it is ready */
    HAND_READY,
    HAND_ENDING, /* was asked to end: nothing it says counts any more */
};

struct hand {
    struct pool *pool;
    struct list_node node; /* of pool->hands */
    uint64_t child;
    enum hand_state state;
    struct timer timer; /* STARTING: until it is ready; idle: until it goes */
    size_t n_stints, n_taken;
    struct stint stints[HAND_STINTS_MAX];
    char agent[AGENT_NAME_MAX + 1]; /* whose it is; empty: nobody's yet */
    struct list keeps;              /* struct keep */
    int64_t idle_since_ms;
    int n_garbage; /* lines in a row */
    int n_garbage_logged;
    char first_line[FIRST_LINE_MAX + 1]; /* the first that was no message */
    int64_t n_results;
    bool is_counted_free;  /* in pool->n_free */
    bool has_failed_start; /* it did not become ready in time */
    void *mind;            /* the dialect's */
};

/* A conversation's child. */
struct keep {
    struct hand *hand;
    struct list_node by_hand, by_use;
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
    struct list hands;
    size_t n_hands, n_starting, n_ending;
    size_t n_free;       /* hand_is_free */
    struct list waiting; /* struct carried, by priority and place */
    size_t n_waiting;
    struct list_node *next_to_look_at; /* NULL: nobody is looking */
    uint64_t n_looked_at;              /* of those waiting, in all */
    struct map keeps;                  /* key -> struct keep */
    struct list keeps_by_use;
    bool has_spoken; /* a child of it has once spoken its dialect */
    int n_bad;       /* children in a row that came to nothing */
    int64_t not_before_ms;
    struct timer again; /* at that time */
    struct why missing; /* why no child can be started; empty: one can be, as
                         * far as is known */
    struct timer seek;  /* while it is so */
    bool is_retired;
    bool has_told_box; /* what holds of it is in the log */
};

struct pools {
    struct deliver *deliver;
    struct list list, retired; /* struct pool */
    struct list due;           /* pools to be looked at */
    struct loop_job job;
    uint64_t n_pauses;
    size_t n_hands;
    bool is_stopping;
    struct deliver_part part;
    int pi_tools; /* pi_tools.c: a descriptor; zero: not made yet */
};

/* One delivery of this road. */
struct carried {
    struct delivery delivery;
    struct pool *pool; /* while it waits there, or has a stint */
    struct list_node node;
    struct stint *stint; /* NULL: it waits */
    enum task_priority priority;
    int64_t place;
    struct buf line; /* by which it is given */
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
void pool_due(struct pool *p); /* look at it at the end of the turn */
void pool_bad(struct pool *p); /* a child came to nothing: a pause */
void pool_hand_gone(struct pool *p);
void pool_respawn(struct pool *p); /* all its children anew, and at once */

/* process.c: those waiting that can have a child, have it; how many are left
 * for which one must be started. */
size_t pool_place(struct pool *p);
/* One who waits for a child to be started hears that it cannot be; all of
 * them, when that is for good. */
void pool_disappoint(struct pool *p, const struct delivery_failure *f);
void pool_send_back(struct pool *p); /* all who wait, without blame */

/* box.c: say in the log what holds, and what does not, once. */
void pool_tell_box(struct pool *p, unsigned held);

/* keep.c */
struct hand *keep_find(struct pool *p, struct str key);
void keep_put(struct pool *p, struct str key, struct hand *h);
void keeps_drop(struct hand *h);
void keeps_free(struct pool *p);

/* hand.c */
MUST_USE enum err hand_start(struct pool *p, struct why *why);
/* Whether what is needed for that is there. */
MUST_USE enum err hand_seek(const struct pool *p, struct why *why);
void hand_stop(struct hand *h);
bool hand_is_free(const struct hand *h); /* READY, and can take one more */
void hand_give(struct hand *h, struct carried *c);

/* c's delivery is over; why says what its child must hear. */
void hand_leave(struct carried *c, enum stop_why why);

/* For the dialects. */
MUST_USE enum err hand_send(struct hand *h, struct str line);
void hand_ready(struct hand *h, size_t n_stints);
void hand_garbage(struct hand *h, struct str line);
void hand_unheard(struct hand *h); /* there was no memory for what it said */
struct deliver *hand_deliver(struct hand *h);

/* It has brought something: it is a good one. */
void hand_answered(struct hand *h);

/* Each ends in a callback that may do anything; stint and hand stay where
 * they are, but the stint may be over afterwards. A chunk of one that was
 * cancelled is passed over; its result or failure is its end. */
void stint_chunk(struct stint *s, struct str text);
void stint_result(struct stint *s, const struct task_result *r, bool has_text);
void stint_failed(struct stint *s, const struct delivery_failure *f);
void stint_empty(struct stint *s); /* one that was cancelled has stopped */

#endif
