#ifndef EMBED_JOBS_H
#define EMBED_JOBS_H

/* What is done with the models, whichever they are:
 *
 *   cache.c      vectors of queries
 *   breaker.c    whether a provider that fails is asked again
 *   reply.c      what a provider says -> vectors
 *   http.c       the provider; ask.c: one request to it
 *   worker.c     a model on a thread of its own
 *   inline.c     the table, on the loop
 *   embed.c      jobs, limits, ids: what embed.h promises */

#include "base/list.h"
#include "embed/internal.h"

/* ---- cache: text -> vector, the least recently used goes ----
 *
 * A text is known by 128 bits of keyed hash and its length: nobody outside can
 * choose two that are taken for one. The memory for all entries is there from
 * cache_set on, so that neither a hit nor a new entry allocates. */

enum { CACHE_BYTES_MAX = 64 << 20 }; /* of vectors, whatever they are */

struct cache_entry {
    uint64_t hash[2];
    size_t text_bytes;
    uint32_t newer, older; /* in the order of use */
    uint32_t next;         /* in its bucket */
};

struct cache {
    uint64_t seed[2][2];
    struct cache_entry *entries; /* cap of them; NULL: nothing is kept */
    uint32_t *buckets;
    float *vectors;
    uint32_t cap, n, mask, dims;
    uint32_t newest, oldest;
};

void cache_init(struct cache *c, const uint64_t seed[2]);
void cache_fini(struct cache *c);

/* Empty, with room for so many vectors of so many numbers, or as many as
 * CACHE_BYTES_MAX holds. Zero of either, and no memory: nothing is kept. Must
 * be called whenever the model is another one. */
void cache_set(struct cache *c, size_t entries, uint32_t dims);

/* Borrowed until the next call; NULL: not there. */
const float *cache_get(struct cache *c, struct str text);
void cache_put(struct cache *c, struct str text, const float *vector);

/* Every entry is found by its hash and is in the order once. For tests. */
bool cache_check(const struct cache *c);

/* ---- breaker: who fails again and again is left alone for a while ----
 *
 *              as often as may be in a row, or it asked for a pause
 *     CLOSED ------------------------------------------------------> OPEN
 *        ^                                                            |  ^
 *        | the probe was answered                    the pause is over|  |
 *        '------------------------- PROBING <-------------------------'  |
 *                                      '---------------------------------'
 *                                                it was not
 *
 * Pure; the time is an argument. */

enum { BREAKER_PAUSE_MAX_MS = 10 * 60 * 1000 };

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

struct breaker {
    int max_failures;
    int64_t pause_ms;
    enum breaker_state state;
    bool is_probed; /* PROBING: somebody is out */
    int n_failures; /* in a row */
    int64_t until_ms;
};

/* Whether something may be asked now. */
bool breaker_may(struct breaker *b, int64_t now_ms);

/* Whether breaker_may would say no, for those who only look. */
bool breaker_is_shut(const struct breaker *b, int64_t now_ms);

/* It is; true: and that is the probe. */
bool breaker_ask(struct breaker *b);

/* What became of it. retry_ms: the pause that was asked for; zero: none was.
 * True where the breaker opened or closed by this. */
bool breaker_good(struct breaker *b, bool is_probe);
bool breaker_bad(struct breaker *b, bool is_probe, int64_t now_ms,
                 int64_t retry_ms);

/* Nobody waits for the answer any more. */
void breaker_forget(struct breaker *b, bool is_probe);

/* ---- reply: what a provider says ---- */

struct reply {
    uint32_t dims;
    float *vectors; /* n times dims, each one long */
    bool *is_good;  /* n; the others are all zero */
    size_t n_good;
    bool has_lengths; /* others than dims */
    struct why why;   /* what is wrong with the last one that is not good */
};

/* Read what should be the vectors of n texts, of so many numbers each; dims
 * zero: of as many as there are. ERR_BAD_REQUEST with words: it cannot be used
 * at all; ERR_NOMEM. On an error there is nothing to free. */
MUST_USE enum err reply_read(struct str body, size_t n, uint32_t dims,
                             struct reply *out, struct why *why);
void reply_fini(struct reply *r);

/* What it says is wrong, in the shapes that are about: one line that fits
 * `size` with its NUL, with `secret` in it blotted out. Empty: it says nothing
 * that we understand. */
void reply_message(struct str body, struct str secret, char *out, size_t size);

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

extern const struct embed_ops embed_inline_ops, embed_worker_ops,
    embed_http_ops;

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
