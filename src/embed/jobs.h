#ifndef EMBED_JOBS_H
#define EMBED_JOBS_H

/* The machinery around the models:
 *
 *   embed_cache.c   vectors of queries
 *   base/breaker    when to ask a failing provider again
 *   reply.c         a provider's answer -> vectors
 *   embed_http.c    the provider; embed_ask.c: one request to it
 *   embed_worker.c  a model on its own threads
 *   embed_thread.c  its models: minilm, the transformer, and the transformer
 *                   with the table
 *   embed_inline.c  the table, on the loop
 *   embed_jobs.c    calls of embed_start and their ids
 *   embed.c         limits, creation and freeing: the promises of embed.h
 */

#include "base/list.h"
#include "embed/cache.h"
#include "embed/internal.h"

/* ---- jobs: one per embed_start ---- */

struct embed_job;
struct ask;

struct embed_text {
    struct list_node node; /* the queue it is in */
    struct embed_job *job;
    struct str text; /* truncated to the limit */
    struct ask *ask; /* embed_http.c: the request that contains it */
    bool is_pending; /* with its kind, and wanted */
    bool is_dropped; /* with its kind, but no longer wanted */
};

struct embed_job {
    struct list_node node;
    struct embed *embed;
    uint64_t id; /* zero: it has no owner any more */
    uint32_t slot;
    bool is_over;    /* it only remains to be freed */
    bool is_counted; /* counted as waiting */
    int64_t timeout_ms;
    enum embed_use use;
    struct cache_scope by; /* the asking scope */
    embed_done done;
    void *ctx;
    struct timer deadline;
    size_t n, n_left, n_bytes; /* texts; bytes including vectors */
    size_t n_hits;             /* cache hits */
    size_t n_out;              /* dropped texts not yet returned */
    float *vectors; /* n times stamp.dims; NULL while dims are unknown */
    enum err e;
    struct why why;
    struct embed_text texts[];
};

/* The operations of a kind. Texts are identified by their address. Only http
 * allocates per text. */
struct embed_ops {
    enum err (*open)(struct embed *e, const struct embed_opts *opts,
                     struct why *why);
    void (*close)(struct embed *e);

    /* Whether open would succeed, and the stamp it would give. */
    enum err (*check)(const struct embed_opts *opts, struct embed_stamp *stamp,
                      struct why *why);

    /* Embed at once; NULL: impossible. */
    void (*now)(struct embed *e, struct str text, float *out);

    /* The quick vector at once; NULL: it has none. */
    void (*quick)(struct embed *e, struct str text, float *out);

    /* Whether texts are accepted now; NULL: always. */
    enum err (*may)(struct embed *e, struct why *why);

    /* Whether its breaker is open; NULL: never. */
    bool (*is_paused)(const struct embed *e);

    /* Start a text; report embed_made or embed_failed later, never from inside
     * this call. */
    void (*take)(struct embed *e, struct embed_text *t);

    /* The text is no longer wanted. False: it is being worked on, and
     * embed_back follows. */
    bool (*drop)(struct embed *e, struct embed_text *t);

    /* Change limits; NULL: it has none. */
    void (*set)(struct embed *e, const struct embed_opts *opts);

    /* No more texts will come; embed_down follows, perhaps at once. */
    void (*stop)(struct embed *e);
};

extern const struct embed_ops embed_inline_ops, embed_builtin_ops,
    embed_transformer_ops, embed_minilm_ops, embed_http_ops;

/* The model of embed_worker.c: make() is called with at most WORKER_BATCH
 * texts, for queries from one thread and for documents from another, at the
 * same time. Takes ctx, even if starting fails. */
enum { WORKER_BATCH = 8, WORKER_DOCUMENTS = 2 /* of documents */ };

struct worker_model {
    void (*make)(void *ctx, enum embed_use use, const struct str *texts,
                 size_t n, float *out);
    void (*close)(void *ctx); /* may be NULL */
    void *ctx;
    uint32_t dims;
};

MUST_USE enum err worker_start(struct embed *e,
                               const struct worker_model *model,
                               struct why *why);

/* Operations shared by all kinds on threads, and the model's ctx. */
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
    void *model; /* the kind's state */
    struct embed_stamp stamp;
    size_t max_waiting, max_waiting_bytes, cache_entries, max_text_bytes;
    int64_t timeout_ms;
    struct cache cache;

    struct list jobs;                  /* jobs with texts in progress */
    struct list ended;                 /* jobs whose owners will be called */
    size_t n_zombies;                  /* ended jobs with texts still out */
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

/* For tests: embed_new with other operations than the kind's. */
MUST_USE enum err embed_new_with(struct embed **out, struct loop *loop,
                                 struct log *log, struct fetch *fetch,
                                 const struct embed_opts *opts,
                                 const struct embed_ops *ops, struct why *why);

/* Truncated if it does not fit. */
void embed_stamp_set(struct embed_stamp *s, struct str name, const char *hash,
                     uint32_t dims);

/* The stamp of both models inside the binary. */
void embed_stamp_both(struct embed_stamp *s, const char *table_hash,
                      const char *transformer_hash);

/* ---- what embed.c does with jobs ---- */

enum {
    EMBED_SLOT_BITS = 24, /* of an id: the slot; the rest is a counter */
    EMBED_NO_SLOT = (1 << EMBED_SLOT_BITS) - 1,
};

/* The part of a text that counts. */
struct str embed_cut(const struct embed *e, struct str text);

/* The memory of n vectors; zero while their length is unknown. */
size_t embed_vector_bytes(const struct embed *e, size_t n);

/* Copies the texts; NULL: no memory. */
struct embed_job *embed_job_new(struct embed *e, const struct str *texts,
                                size_t n);
void embed_job_free(struct embed_job *j);

/* Assign an id and a deadline: ERR_BUSY, ERR_NOMEM. */
MUST_USE enum err job_take_slot(struct embed *e, struct embed_job *j);
void job_set_deadline(struct embed_job *j);

/* NULL: it has ended. */
struct embed_job *job_find(const struct embed *e, uint64_t id);

/* From now on it waits, and its kind has the pending texts. */
void job_begin(struct embed_job *j);

/* End it; its owner is called at the end of the turn. */
void job_end(struct embed_job *j, enum err err, const struct why *why);
void job_tell(struct embed_job *j);

/* End it without calling its owner; job_bury: if it has already ended. */
void job_cancel(struct embed_job *j);
void job_bury(struct embed_job *j);

/* The place of a text's vector. */
float *job_vector(struct embed_text *t);

/* ---- reports of the kinds ---- */

/* A text has its vector, of stamp.dims numbers. */
void embed_made(struct embed_text *t, const float *vector);

/* A text failed, which ends its job. */
void embed_failed(struct embed_text *t, enum err e, const struct why *why);

/* A dropped text has been returned. */
void embed_back(struct embed_text *t);

/* A provider answered for the first time. */
void embed_learn_dims(struct embed *e, uint32_t dims);

/* The kind has stopped. */
void embed_down(struct embed *e);

#endif
