#ifndef EMBED_JOBS_H
#define EMBED_JOBS_H

/* What is done with the models, whichever they are:
 *
 *   cache.c      vectors of queries
 *   base/breaker whether a provider that fails is asked again
 *   reply.c      what a provider says -> vectors
 *   http.c       the provider; ask.c: one request to it
 *   worker.c     a model on a thread of its own
 *   onthread.c   which: minilm, the transformer, the transformer and the table
 *   inline.c     the table, on the loop
 *   jobs.c       who waits for what: calls of embed_start, and their ids
 *   embed.c      limits, life and death: what embed.h promises */

#include "base/list.h"
#include "embed/cache.h"
#include "embed/internal.h"

/* ---- jobs: one per embed_start ---- */

struct embed_job;
struct ask;

struct embed_text {
    struct list_node node; /* where it waits */
    struct embed_job *job;
    struct str text; /* as long as it may be */
    struct ask *ask; /* of http.c: the request that it is in */
    bool is_pending; /* its kind has it, and it is wanted */
    bool is_dropped; /* its kind has it, and it is not */
};

struct embed_job {
    struct list_node node;
    struct embed *embed;
    uint64_t id; /* zero: nobody waits for it */
    uint32_t slot;
    bool is_over;    /* nothing more is to happen to it but being freed */
    bool is_counted; /* in what waits */
    int64_t timeout_ms;
    enum embed_use use;
    struct cache_scope by; /* who asks */
    embed_done done;
    void *ctx;
    struct timer deadline;
    size_t n, n_left, n_bytes; /* texts; bytes with their vectors */
    size_t n_hits;             /* that the cache had */
    size_t n_out;              /* dropped, and not back yet */
    float *vectors; /* n times stamp.dims; NULL while those are not known */
    enum err e;
    struct why why;
    struct embed_text texts[];
};

/* What a kind can do. Texts are known by their place; none of this allocates
 * per text but in http, where it may fail the text. */
struct embed_ops {
    enum err (*open)(struct embed *e, const struct embed_opts *opts,
                     struct why *why);
    void (*close)(struct embed *e);

    /* Whether open would do, and the stamp it would give. */
    enum err (*check)(const struct embed_opts *opts, struct embed_stamp *stamp,
                      struct why *why);

    /* At once; NULL: it never can. */
    void (*now)(struct embed *e, struct str text, float *out);

    /* The quick vector at once; NULL: it has none. */
    void (*quick)(struct embed *e, struct str text, float *out);

    /* Whether texts can be taken now; NULL: always. */
    enum err (*may)(struct embed *e, struct why *why);

    /* Whether it is left alone for now; NULL: never. */
    bool (*is_paused)(const struct embed *e);

    /* Begin, and sooner or later say embed_made or embed_failed; never from
     * inside this call. */
    void (*take)(struct embed *e, struct embed_text *t);

    /* It is not wanted any more. False: it is being worked on, and embed_back
     * follows. */
    bool (*drop)(struct embed *e, struct embed_text *t);

    /* Other limits; NULL: it has none. */
    void (*set)(struct embed *e, const struct embed_opts *opts);

    /* Nothing more will be taken; embed_down follows, perhaps at once. */
    void (*stop)(struct embed *e);
};

extern const struct embed_ops embed_inline_ops, embed_builtin_ops,
    embed_transformer_ops, embed_minilm_ops, embed_http_ops;

/* What worker.c runs: make() is called from its thread alone, with at most
 * WORKER_BATCH texts. Takes ctx, also where it could not be started. */
enum { WORKER_BATCH = 8, WORKER_DOCUMENTS = 2 /* of those */ };

struct worker_model {
    void (*make)(void *ctx, const struct str *texts, size_t n, float *out);
    void (*close)(void *ctx); /* may be NULL */
    void *ctx;
    uint32_t dims;
};

MUST_USE enum err worker_start(struct embed *e,
                               const struct worker_model *model,
                               struct why *why);

/* What all kinds on the thread do alike, and what the model was given as. */
void worker_close(struct embed *e);
void worker_take(struct embed *e, struct embed_text *t);
bool worker_drop(struct embed *e, struct embed_text *t);
void worker_stop(struct embed *e);
void *worker_ctx(const struct embed *e);
#define WORKER_OPS                                                   \
    .close = worker_close, .take = worker_take, .drop = worker_drop, \
    .stop = worker_stop

struct embed_slot {
    struct embed_job *job; /* NULL: free */
    uint32_t next_free;
};

struct embed {
    struct loop *loop;
    struct log *log;
    struct fetch *fetch;
    enum embed_kind kind;
    const struct embed_ops *ops;
    void *model; /* the kind's own */
    struct embed_stamp stamp;
    size_t max_waiting, max_waiting_bytes, cache_entries, max_text_bytes;
    int64_t timeout_ms;
    struct cache cache;

    struct list jobs;                  /* that have texts on their way */
    struct list ended;                 /* to be told */
    size_t n_zombies;                  /* of which something is out */
    size_t n_waiting, n_waiting_bytes; /* texts */
    struct loop_job deliver;

    struct embed_slot *slots;
    uint32_t n_slots, first_free;
    uint64_t n_ids;

    struct embed_stats stats;
    bool is_stopping, is_down;
    void (*done)(void *ctx);
    void *done_ctx;
};

/* embed_new with other operations than the kind's, for tests. */
MUST_USE enum err embed_new_with(struct embed **out, struct loop *loop,
                                 struct log *log, struct fetch *fetch,
                                 const struct embed_opts *opts,
                                 const struct embed_ops *ops, struct why *why);

/* Cut where it does not fit. */
void embed_stamp_set(struct embed_stamp *s, struct str name, const char *hash,
                     uint32_t dims);

/* The stamp of both models inside the binary: false, OpenSSL has no hash. */
MUST_USE bool embed_stamp_both(struct embed_stamp *s, const char *table_hash,
                               const char *transformer_hash);

/* ---- what embed.c does with jobs ---- */

enum {
    EMBED_SLOT_BITS = 24, /* of an id: which slot; the rest counts */
    EMBED_NO_SLOT = (1 << EMBED_SLOT_BITS) - 1,
};

/* As much of a text as counts. */
struct str embed_cut(const struct embed *e, struct str text);

/* The memory of n vectors; zero while nobody knows how long they are. */
size_t embed_vector_bytes(const struct embed *e, size_t n);

/* Copies the texts; NULL: no memory. */
struct embed_job *job_new(struct embed *e, const struct str *texts, size_t n);
void job_free(struct embed_job *j);

/* An id, and a deadline: ERR_BUSY, ERR_NOMEM. */
MUST_USE enum err job_take_slot(struct embed *e, struct embed_job *j);
MUST_USE enum err job_set_deadline(struct embed_job *j);

/* NULL: there is none any more. */
struct embed_job *job_find(const struct embed *e, uint64_t id);

/* It waits from here on, and its kind has the texts that are pending. */
void job_begin(struct embed_job *j);

/* Its owner is told at the end of the turn. */
void job_end(struct embed_job *j, enum err err, const struct why *why);
void job_tell(struct embed_job *j);

/* Its owner is told nothing any more; job_bury: of one that is over. */
void job_cancel(struct embed_job *j);
void job_bury(struct embed_job *j);

/* Where the vector of a text goes. */
float *job_vector(struct embed_text *t);

/* ---- what kinds tell ---- */

/* A text has its vector, of stamp.dims numbers. */
void embed_made(struct embed_text *t, const float *vector);

/* A text has none: its job is over. */
void embed_failed(struct embed_text *t, enum err e, const struct why *why);

/* A text that was dropped while it was out is back. */
void embed_back(struct embed_text *t);

/* A provider has answered for the first time. */
void embed_learn_dims(struct embed *e, uint32_t dims);

/* The kind has stopped. */
void embed_down(struct embed *e);

#endif
