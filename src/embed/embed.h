#ifndef EMBED_EMBED_H
#define EMBED_EMBED_H

/* embed: text -> vector, such that texts of similar meaning are close.
 *
 * Five kinds behind one header:
 *   builtin      both models inside the binary, as two parts of one vector: the
 *                table's part at once, the transformer's from a thread
 *   table        only the table inside the binary: microseconds
 *   transformer  only the small transformer inside the binary: half a
 *                millisecond, on its own thread
 *   minilm       all-MiniLM-L6-v2 in our own C: milliseconds, on its own
 *                thread; `signalbox model install` makes its file
 *   http         any server of OpenAI's /v1/embeddings
 *
 * Vectors of builtin are quick or full. A quick one has only the table's part,
 * the rest is zero; a full one has both. Both have unit length and can be
 * compared with each other: vec_likeness of base/vec.h has the rule.
 *
 * A vector has unit length, or is all zero if the text has no meaningful
 * content. It is comparable only with vectors of the same model, so its stamp
 * is stored wherever it is stored. Vectors of queries are cached.
 *
 * Owns: the models, the thread, the cache, jobs in progress. Callers hold an
 * id; the id of an ended job matches nothing. Threads: the loop's; any for
 * functions without struct embed: the names and stamps, embed_check, and
 * inspecting models. */

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"

struct fetch;
struct embed;

enum embed_kind {
    EMBED_BUILTIN,
    EMBED_TABLE,
    EMBED_TRANSFORMER,
    EMBED_MINILM,
    EMBED_HTTP,
    N_EMBED_KINDS
};

/* "builtin", "table", "transformer", "minilm", "http". */
const char *embed_kind_name(enum embed_kind kind);

enum {
    EMBED_NAME_MAX = 128,
    EMBED_HASH_CHARS = 64, /* of a SHA-256 in hex */
    EMBED_DIMS_MAX = 8192,
    EMBED_BATCH_MAX = 2048, /* texts of one call */
    EMBED_PATIENCE = 10,    /* documents may take so many times as long */
    EMBED_TEXT_MAX = 65536, /* bytes of a text that count, if the model reads
                             * that far; the rest is cut off */
};

/* Identifies the model of a vector. Two vectors may be compared if their stamps
 * are equal. */
struct embed_stamp {
    char name[EMBED_NAME_MAX]; /* of the kind; for http, of the provider's
                                * model */
    /* SHA-256. A model has the hash in its file, over everything from byte 40
     * on, so it differs from sha256sum. The hash of builtin covers both models
     * and their weights; a provider's covers its URL, model, dimensions and
     * prefixes. */
    char hash[EMBED_HASH_CHARS + 1];
    /* zero: a provider that has not answered yet, without configured
     * dimensions. embed_now then has nothing; to learn the length, ask for a
     * vector and take the one in the result. Once known it is constant until
     * a restart */
    uint32_t dims;
    uint32_t quick_dims; /* length of a quick vector, the first numbers of a
                          * full one; zero: this model has none. Follows from
                          * the rest, so it is not stored */
};
bool embed_stamp_is(const struct embed_stamp *a, const struct embed_stamp *b);

struct embed_http_opts {
    struct str url;   /* ".../v1/embeddings" */
    struct str model; /* "text-embedding-3-small" */
    struct str key;   /* a secret; may be empty */
    uint32_t dims;    /* requested and required; zero: the provider's,
                       * constant from its first answer on */
    struct str query_prefix, document_prefix; /* some models require them */
    size_t batch;                             /* texts of one request */
    size_t max_requests;   /* at the same time; if more than one, one is
                            * reserved for queries */
    size_t max_text_bytes; /* replaces EMBED_TEXT_MAX; without the prefix */
    size_t max_answer_bytes;
    int64_t timeout_ms;
    int breaker_failures; /* consecutive failures that open the breaker */
    int64_t breaker_pause_ms;
};

/* Borrowed for the call. */
struct embed_opts {
    enum embed_kind kind;
    const char *model_file; /* of minilm */
    struct embed_http_opts http;
    size_t cache_entries;     /* cached vectors of queries; zero: none. Vectors
                               * of the table are never cached: making one is as
                               * fast */
    size_t max_waiting;       /* waiting texts; beyond that ERR_BUSY. Documents
                               * have three quarters of it and of the bytes */
    size_t max_waiting_bytes; /* of texts and vectors */
    int64_t timeout_ms;       /* of a call for queries, from embed_start to the
                               * end; for documents EMBED_PATIENCE times that */
    uint64_t seed[2];         /* of hash tables */
};

/* Open and check the model's file: ERR_IO or ERR_BAD_CONFIG with a message that
 * says what to do. Does not contact a provider. `fetch` may be NULL unless kind
 * is http, and must outlive it. */
MUST_USE enum err embed_new(struct embed **out, struct loop *loop,
                            struct log *log, struct fetch *fetch,
                            const struct embed_opts *opts, struct why *why);

/* Whether embed_new would accept these options: the model's file exists and is
 * valid, the URL is valid. Fills in the stamp. */
MUST_USE enum err embed_check(const struct embed_opts *opts,
                              struct embed_stamp *stamp, struct why *why);

/* Change the limits above, and for a provider its batch, requests, answer size,
 * time-out and breaker. The model itself stays. */
void embed_set(struct embed *e, const struct embed_opts *opts);

struct embed_stamp embed_stamp(const struct embed *e);

/* The reference texts: messages of all kinds that people send, fixed in the
 * binary. Cards are compared with them to learn how high they score for
 * messages that are meant for others. Returns their number. (reference.c) */
enum { EMBED_REFERENCE_MAX = 1024 };
size_t embed_reference(struct str out[EMBED_REFERENCE_MAX]);

enum embed_use {
    EMBED_QUERY,    /* a question: cached */
    EMBED_DOCUMENT, /* a text to be found: the caller stores the vector */
    N_EMBED_USES
};

/* The vector of a text if no wait is needed: from the table or the cache. `out`
 * has room for stamp.dims numbers. False: use embed_start. For builtin this is
 * a full vector. */
bool embed_now(struct embed *e, struct str text, enum embed_use use,
               float *out);
/* The same for a user's question: the cache returns it later only to the same
 * scope, which is an org or a user without one. */
bool embed_now_for(struct embed *e, struct str scope, struct str text,
                   float *out);

/* The quick vector of a text, always at once: stamp.dims numbers, zero from
 * stamp.quick_dims on. False: this model has none. */
bool embed_quick(struct embed *e, struct str text, float *out);

struct embed_result {
    struct embed_stamp stamp; /* dims are zero if all texts were blank and a
                               * provider has not answered yet */
    size_t n;
    const float *vectors; /* n times stamp.dims, in the order of the texts */
};

/* Called once for every embed_start that returned OK, after it returned, and
 * never after embed_cancel. e: OK with all vectors; ERR_UNREACHABLE;
 * ERR_TIMEOUT of the provider or of the call; ERR_BAD_REQUEST: the provider's
 * answer is unusable, or it rejects the text; ERR_NOT_ALLOWED: it rejects our
 * key; ERR_OVERLOADED: the breaker is open after failures or a requested pause,
 * or the provider rejected every request that contained the text; ERR_NOMEM;
 * ERR_STOPPING. `why` contains no secrets and nothing of other callers' texts.
 * `r` is NULL on an error. */
typedef void (*embed_done)(void *ctx, uint64_t id, enum err e,
                           const struct embed_result *r, const struct why *why);

/* Copies the texts. ERR_BUSY: too many are waiting. ERR_LIMIT: more than
 * EMBED_BATCH_MAX, or more than could ever wait. ERR_OVERLOADED: the breaker is
 * open. On an error nothing was started. Works for every kind. Queries go
 * before documents. Texts of different callers share requests; a caller that
 * can use some of the vectors should start each text separately. */
MUST_USE enum err embed_start(struct embed *e, const struct str *texts,
                              size_t n, enum embed_use use, embed_done done,
                              void *ctx, uint64_t *id, struct why *why);
/* As embed_now_for. */
MUST_USE enum err embed_start_for(struct embed *e, struct str scope,
                                  const struct str *texts, size_t n,
                                  embed_done done, void *ctx, uint64_t *id,
                                  struct why *why);
void embed_cancel(struct embed *e, uint64_t id);

/* End all jobs with ERR_STOPPING and call done from the loop once nothing is
 * left. If called again, only the later `done` counts, even after the first was
 * called. May be called from an embed_done. Then call embed_free; without
 * embed_stop it calls no one back, and waits for the thread. */
void embed_stop(struct embed *e, void (*done)(void *ctx), void *ctx);
void embed_free(struct embed *e);

struct embed_stats {
    enum embed_kind kind;
    int64_t texts_total;  /* embedded, without cache hits */
    int64_t quick_total;  /* quick vectors, not included above */
    int64_t failed_total; /* texts */
    int64_t waiting;      /* texts */
    int64_t cache_hits_total, cache_misses_total, cache_entries;
    int64_t requests_total; /* to the provider */
    int64_t is_paused;      /* 1: the breaker is open */
};
struct embed_stats embed_stats(const struct embed *e);

/* ---- typing mistakes ----
 *
 * Corrects words of a message that neither the built-in model nor the cards
 * know. Pure except for speller_new; may be shared by threads. */

struct buf;
struct speller;

enum {
    SPELL_WORD_MIN = 4, /* letters of the shortest word that is corrected */
    SPELL_WORD_MAX = 24,
    SPELL_UNKNOWN_MAX = 32, /* a text with more unknown words is left alone */
    SPELL_FIXED_MAX = 8,    /* corrected words per text */
    SPELL_TEXT_MAX = 4096,  /* bytes of a text; the rest is dropped */
};

/* Reports for each of n words whether a card that the requester sees contains
 * it. The words are in lower case. */
typedef void spell_said(void *ctx, const struct str *words, size_t n,
                        bool *is_said);

MUST_USE enum err speller_new(struct speller **out, struct why *why);
void speller_free(struct speller *s);

/* Append the text with its misspelt words corrected and return their number.
 * Zero: nothing was appended, because the text is fine or `out` is full. `said`
 * may be NULL. The same text and cards always give the same result.
 * (spell.c) */
size_t speller_correct(const struct speller *s, struct str text,
                       spell_said *said, void *ctx, struct buf *out);

/* Whether a text is only keys struck at random ("asdkjh qwlekj"): none of its
 * words is known to the model or a card, and none looks like a word of another
 * language. `said` may be NULL. (spell.c) */
bool speller_is_gibberish(const struct speller *s, struct str text,
                          spell_said *said, void *ctx);

/* ---- inspecting and installing models: for `signalbox model` ---- */

#define EMBED_MINILM_FILE "minilm.sbm" /* in DATA/models */
enum { EMBED_FILE_MAX = 256 * 1024 * 1024 };

struct embed_about {
    struct embed_stamp stamp;
    uint64_t bytes; /* of its file, or of the part inside the binary */
};

/* A model inside the binary: builtin (both of them), table, transformer. */
MUST_USE enum err embed_inside_about(enum embed_kind kind,
                                     struct embed_about *out, struct why *why);

/* The end of messages if another file would help. Callers that know the data
 * folder add it. */
#define EMBED_ADVICE "get it with: signalbox model install minilm"

/* A file, opened and checked as a server does, including its hash.
 * ERR_NOT_FOUND: it does not exist; ERR_BAD_CONFIG: it is invalid, and the
 * message says how to get another; ERR_IO, ERR_NOT_ALLOWED, ERR_NOMEM: it
 * cannot be read. */
MUST_USE enum err embed_minilm_about(const char *path, struct embed_about *out,
                                     struct why *why);

/* Make our file from the published ones: the weights (safetensors) and the
 * vocabulary (tokenizer.json). The same input always gives the same bytes. */
MUST_USE enum err embed_minilm_make(struct str safetensors,
                                    struct str tokenizer, struct buf *out,
                                    struct why *why);

/* The tokens of each of n texts: pieces of words with spaces between, one
 * buffer for each text. Unknown for a provider. */
MUST_USE enum err embed_pieces(enum embed_kind kind, const char *model_file,
                               const struct str *texts, size_t n,
                               struct buf *out, struct why *why);

#endif
