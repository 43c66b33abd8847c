#ifndef EMBED_EMBED_H
#define EMBED_EMBED_H

/* embed: text -> vector, so that texts that mean the same lie close together.
 *
 * Five kinds behind this one header:
 *   builtin      both models inside the binary, as two parts of one vector: the
 *                table's part at once, the transformer's from a thread
 *   table        the table inside the binary alone: microseconds
 *   transformer  the small transformer inside the binary alone: half a
 *                millisecond, on a thread of its own
 *   minilm       all-MiniLM-L6-v2 by our own C: milliseconds, on a thread of
 *                its own; its weights are a file that `signalbox model install`
 *                makes
 *   http         whatever speaks OpenAI's /v1/embeddings
 *
 * Vectors of builtin are quick or full. A quick one has only the table's part,
 * the rest is zero; a full one has both. Both are one long, and both may be
 * compared with both: vec_likeness of base/vec.h has the rule.
 *
 * A vector is one long (or all zero: the text has nothing in it that means
 * anything) and is worth something only beside others of the same model: its
 * stamp goes wherever it is kept. Vectors of queries are cached.
 *
 * Owns: the models, the thread, the cache, what is under way. Others hold an
 * id; an id that is over is nobody. Threads: the loop's; any, for what has no
 * struct embed: the names and stamps, embed_check, and models as
 * things to look at. */

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
    EMBED_HASH_CHARS = 64, /* of a SHA-256, in hex */
    EMBED_DIMS_MAX = 8192,
    EMBED_BATCH_MAX = 2048, /* texts of one call */
    EMBED_PATIENCE = 10,    /* documents let all queries go first */
    EMBED_TEXT_MAX = 65536, /* bytes of a text that count, if the model reads
                             * that far: the rest is cut off */
};

/* Which model made a vector. Two vectors may be compared if their stamps are
 * the same. */
struct embed_stamp {
    char name[EMBED_NAME_MAX]; /* that of the kind; of http, the provider's
                                * model */
    char hash[EMBED_HASH_CHARS + 1]; /* SHA-256. Of a model: the one that
                                      * stands in its file, over everything
                                      * from byte 40 on; so not what sha256sum
                                      * says of the file. Of builtin: of both
                                      * models' and of how much each counts. Of
                                      * a provider: of its URL, model,
                                      * dimensions and prefixes */
    uint32_t dims; /* zero: a provider that has not answered yet and was not
                    * told how many. embed_now has nothing then; whoever needs
                    * the length asks for a vector and takes that of the result.
                    * Once known it stays until a restart */
    uint32_t quick_dims; /* so many numbers, the first, are those of a quick
                          * vector; zero: this model has none. Follows from the
                          * rest, so it is kept nowhere */
};
bool embed_stamp_is(const struct embed_stamp *a, const struct embed_stamp *b);

struct embed_http_opts {
    struct str url;   /* ".../v1/embeddings" */
    struct str model; /* "text-embedding-3-small" */
    struct str key;   /* a secret; empty: none is sent */
    uint32_t dims;    /* asked for, and required; zero: whatever it gives, and
                       * that from then on */
    struct str query_prefix, document_prefix; /* some models want them */
    size_t batch;                             /* texts of one request */
    size_t max_requests;   /* at the same time; one of several is kept for
                            * queries */
    size_t max_text_bytes; /* instead of EMBED_TEXT_MAX, without the prefix */
    size_t max_answer_bytes;
    int64_t timeout_ms;
    int breaker_failures; /* in a row, until it is left alone */
    int64_t breaker_pause_ms;
};

/* Borrowed for the call. */
struct embed_opts {
    enum embed_kind kind;
    const char *model_file; /* of minilm */
    struct embed_http_opts http;
    size_t cache_entries; /* vectors of queries; zero: none are kept. Those of
                           * the table never are: they are made as fast */
    size_t max_waiting;   /* texts that wait; more: ERR_BUSY. Documents have
                           * three quarters of it, and of the bytes */
    size_t max_waiting_bytes; /* of them and of their vectors */
    int64_t timeout_ms; /* of a call for queries, from embed_start to the end;
                         * one for documents has EMBED_PATIENCE times that */
    uint64_t seed[2];   /* of tables */
};

/* Opens and checks the model's file: ERR_IO or ERR_BAD_CONFIG with words that
 * say what to do. A provider is not asked yet. `fetch` may be NULL unless kind
 * is http, and must outlive it. */
MUST_USE enum err embed_new(struct embed **out, struct loop *loop,
                            struct log *log, struct fetch *fetch,
                            const struct embed_opts *opts, struct why *why);

/* Whether embed_new would take these: the model's file is there and good, the
 * URL is one. Fills in the stamp. */
MUST_USE enum err embed_check(const struct embed_opts *opts,
                              struct embed_stamp *stamp, struct why *why);

/* Other limits: those above, and of a provider its batch, requests, answer,
 * time-out and breaker. What makes the vectors stays what it is. */
void embed_set(struct embed *e, const struct embed_opts *opts);

struct embed_stamp embed_stamp(const struct embed *e);

/* The reference texts: messages of all kinds that people send, fixed in the
 * binary, which cards are compared with to see how high they score for messages
 * of others. How many there are. (reference.c) */
enum { EMBED_REFERENCE_MAX = 1024 };
size_t embed_reference(struct str out[EMBED_REFERENCE_MAX]);

enum embed_use {
    EMBED_QUERY,    /* somebody asks: cached */
    EMBED_DOCUMENT, /* something to be found: kept by whoever asks */
};

/* The vector of a text, if it can be had without waiting: from the table, or
 * from the cache. `out` has room for stamp.dims numbers. False: embed_start. Of
 * builtin this is a full one. */
bool embed_now(struct embed *e, struct str text, enum embed_use use,
               float *out);
/* The same of a user's question: only questions of the same scope, which is an
 * org or a user without one, find it in the cache later. */
bool embed_now_for(struct embed *e, struct str scope, struct str text,
                   float *out);

/* The quick vector of a text, always at once: stamp.dims numbers, of which
 * those from stamp.quick_dims on are zero. False: this model has none. */
bool embed_quick(struct embed *e, struct str text, float *out);

struct embed_result {
    struct embed_stamp stamp; /* dims are zero where no text had anything in it
                               * and a provider has not answered yet */
    size_t n;
    const float *vectors; /* n times stamp.dims, in the order of the texts */
};

/* Called once for every embed_start that returned OK, later than that; never
 * after embed_cancel. e: OK, and then all of them are there; ERR_UNREACHABLE;
 * ERR_TIMEOUT: of the provider, or of the call; ERR_BAD_REQUEST: what the
 * provider answered cannot be used, or it does not take the text;
 * ERR_NOT_ALLOWED: it does not take our key; ERR_OVERLOADED: it has failed too
 * often, or asked for a pause, and is left alone for now, or it refused all
 * that a text was sent with; ERR_NOMEM; ERR_STOPPING. `why` has no secrets, and
 * of other callers' texts nothing; `r` is NULL on an error. */
typedef void (*embed_done)(void *ctx, uint64_t id, enum err e,
                           const struct embed_result *r, const struct why *why);

/* Copies the texts. ERR_BUSY: too many wait. ERR_LIMIT: more than
 * EMBED_BATCH_MAX, or than could ever wait. ERR_OVERLOADED: at once, the
 * provider is left alone for now. On an error nothing was begun. Works for
 * every kind. Queries go before documents. Texts travel together whoever asked
 * for them, so whoever can do with some of several asks for each by itself. */
MUST_USE enum err embed_start(struct embed *e, const struct str *texts,
                              size_t n, enum embed_use use, embed_done done,
                              void *ctx, uint64_t *id, struct why *why);
/* As embed_now_for. */
MUST_USE enum err embed_start_for(struct embed *e, struct str scope,
                                  const struct str *texts, size_t n,
                                  embed_done done, void *ctx, uint64_t *id,
                                  struct why *why);
void embed_cancel(struct embed *e, uint64_t id);

/* End what is under way with ERR_STOPPING; done, from the loop, once nothing
 * is left. Asked again, the later `done` counts, also where the first was told.
 * May be called from an embed_done. Then embed_free; without embed_stop, it
 * tells nobody anything and waits for what the thread is at. */
void embed_stop(struct embed *e, void (*done)(void *ctx), void *ctx);
void embed_free(struct embed *e);

struct embed_stats {
    enum embed_kind kind;
    int64_t texts_total;  /* made into vectors, the cache's not counted */
    int64_t quick_total;  /* made into quick ones, which are not among those */
    int64_t failed_total; /* texts */
    int64_t waiting;      /* texts */
    int64_t cache_hits_total, cache_misses_total, cache_entries;
    int64_t requests_total; /* to the provider */
    int64_t is_paused;      /* 1: the provider is left alone */
};
struct embed_stats embed_stats(const struct embed *e);

/* ---- typing mistakes ----
 *
 * Corrects words of a message that neither the built-in model nor the cards
 * know. Pure but for speller_new; may be shared by threads. */

struct buf;
struct speller;

enum {
    SPELL_WORD_MIN = 4, /* letters of a word that is corrected */
    SPELL_WORD_MAX = 24,
    SPELL_UNKNOWN_MAX = 32, /* a text with more unknown words is left alone */
    SPELL_FIXED_MAX = 8,    /* words of one text that are corrected */
    SPELL_TEXT_MAX = 4096,  /* bytes of a text; the rest is dropped */
};

/* Says of each of n words whether a card has it that the requester sees. The
 * words are small letters. */
typedef void spell_said(void *ctx, const struct str *words, size_t n,
                        bool *is_said);

MUST_USE enum err speller_new(struct speller **out, struct why *why);
void speller_free(struct speller *s);

/* Appends the text with its misspelt words corrected, and returns how many
 * there were. Zero: nothing was appended, the text is fine as it is or `out` is
 * full. `said` may be NULL. The same text and cards always give the same
 * answer. (spell.c) */
size_t speller_correct(const struct speller *s, struct str text,
                       spell_said *said, void *ctx, struct buf *out);

/* Whether a text is nothing but keys struck at random ("asdkjh qwlekj"): no
 * word in it is known to the model or said by a card, and none looks like a
 * word of another language. `said` may be NULL. (spell.c) */
bool speller_is_gibberish(const struct speller *s, struct str text,
                          spell_said *said, void *ctx);

/* ---- models as things to look at and to keep: for `signalbox model` ---- */

#define EMBED_MINILM_FILE "minilm.sbm" /* in DATA/models */
enum { EMBED_FILE_MAX = 256 * 1024 * 1024 };

struct embed_about {
    struct embed_stamp stamp;
    uint64_t bytes; /* of its file; of what is inside the binary */
};

/* One that is inside the binary: builtin (both of them), table, transformer. */
MUST_USE enum err embed_inside_about(enum embed_kind kind,
                                     struct embed_about *out, struct why *why);

/* How words end where another file would help. Who knows the data folder adds
 * it. */
#define EMBED_ADVICE "get it with: signalbox model install minilm"

/* A file, opened and checked as a server does, its hash included.
 * ERR_NOT_FOUND: there is none; ERR_BAD_CONFIG: it is no good, the words say
 * how to get another; ERR_IO, ERR_NOT_ALLOWED, ERR_NOMEM: it cannot be read. */
MUST_USE enum err embed_minilm_about(const char *path, struct embed_about *out,
                                     struct why *why);

/* A file from what is published: the weights (safetensors) and the vocabulary
 * (tokenizer.json). The same input always makes the same bytes. */
MUST_USE enum err embed_minilm_make(struct str safetensors,
                                    struct str tokenizer, struct buf *out,
                                    struct why *why);

/* What each of n texts is read as, pieces of words with blanks between, into
 * one buffer each; of a provider nothing is known. */
MUST_USE enum err embed_pieces(enum embed_kind kind, const char *model_file,
                               const struct str *texts, size_t n,
                               struct buf *out, struct why *why);

#endif
