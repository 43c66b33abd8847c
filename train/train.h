#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

/* train: texts and a teacher -> the table of the built-in model.
 *
 *   gz.c          a compressed file, and the hash of it
 *   corpus.c      texts, normalised, each once
 *   texts.c       the two files of texts -> corpus
 *   grammar.c     how people ask; utterances.txt is its file
 *   lexicon.c     things and doings, out of the texts
 *   utterances.c  what people might say, by both
 *   augment.c     more texts out of all of these
 *   vocabulary.c  what gets a row of its own
 *   teacher.c     text -> the teacher's vector, kept in a file for the next run
 *   pca.c         the teacher's many numbers -> the table's fewer
 *   samples.c     texts -> rows
 *   student.c     rows -> rows that come nearer to the teacher
 *   losses.c      what "nearer" means
 *   figures.c     how near they came
 *   quantise.c    floats -> bytes with a scale
 *   make.c        all of it in order; card.c: what there is to say about it
 *
 * Same texts, same teacher, same recipe: same bytes, on every processor and
 * with any number of threads. So nothing here depends on which thread did
 * what, every sum has one order, chance comes from the seed, and what libm may
 * do differently elsewhere is done here (floats.h).
 *
 * A tool, not a server: when memory runs out it says so and ends. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "train/recipe.h"

/* ---- memory, chance, threads ---- */

/* For want of memory. */
__attribute__((noreturn)) void train_end(const char *what);

/* Zeroed; never NULL. */
void *train_alloc(size_t n, size_t size);
void *train_grow(void *p, size_t n, size_t *cap, size_t size);

enum { HASH_CHARS = 64 };
void train_hash(struct str bytes, char out[HASH_CHARS + 1]);

/* The i-th number of a stream; none depends on another. */
uint64_t chance_at(uint64_t seed, uint64_t stream, uint64_t i);

/* From 0 to below n; of n = 0: 0. */
size_t chance_below(uint64_t chance, size_t n);

/* From 0 to below 1. */
double chance_real(uint64_t chance);

/* Threads that do one thing at a time together. `work` is called with parts of
 * 0..n, each of at most `grain`, and must give the same whichever way it is
 * cut. */
struct crew;
typedef void (*crew_work)(void *ctx, unsigned worker, size_t from, size_t to);
enum { CREW_MAX = 64 };
struct crew *crew_new(unsigned n_threads);
void crew_free(struct crew *c);
unsigned crew_size(const struct crew *c);
void crew_run(struct crew *c, size_t n, size_t grain, crew_work work,
              void *ctx);

/* ---- a line about how far it is, with the time left, on a terminal or every
 * half minute ---- */

struct progress {
    const char *doing;
    int64_t began_ms, shown_ms;
    bool is_quiet, is_terminal;
};
void progress_begin(struct progress *p, const char *doing, bool is_quiet);
void progress_show(struct progress *p, size_t done, size_t of,
                   const char *figure);
void progress_end(struct progress *p, const char *figure);

/* ---- texts ---- */

enum { TEXT_MAX_BYTES = 4000 };

/* Where a text comes from: a file, or out of those that do. */
enum text_group {
    GROUP_READ,
    GROUP_CARDS,      /* "name: description", as of an agent */
    GROUP_REQUESTS,   /* "can you ..." around a text */
    GROUP_JOINS,      /* two or three in one */
    GROUP_UTTERANCES, /* what people might say */
    GROUP_CROPS,      /* windows of words */
    N_GROUPS
};
const char *text_group_name(enum text_group g);

struct text {
    struct str s;   /* normalised words with one space between them */
    uint8_t source; /* number of its name in corpus.sources */
    uint8_t group;
    bool is_held; /* never trained on */
};

struct pair {
    uint32_t a, b; /* texts */
    uint8_t source;
};

enum { MAX_SOURCES = 64, SOURCE_NAME_MAX = 32 };

struct corpus {
    struct text *texts;
    size_t n_texts, cap_texts;
    size_t n_read; /* of the texts: those from files, which are first */
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    char sources[MAX_SOURCES][SOURCE_NAME_MAX];
    size_t n_sources, n_of_source[MAX_SOURCES], n_of_group[N_GROUPS];
    size_t max_words; /* of a text from a file: the first */
    size_t n_offered; /* texts, those that were there already counted */
    struct map by_text;
    struct arena bytes;
};

void corpus_init(struct corpus *c, const struct recipe *r);
void corpus_fini(struct corpus *c);

/* The number of a source, by its name; those beyond MAX_SOURCES share the
 * last. */
uint8_t corpus_source(struct corpus *c, struct str name);

/* The number of a text, as long as corpus_settle is not called; NO_TEXT where
 * nothing is left of it. */
#define NO_TEXT UINT32_MAX
uint32_t corpus_add(struct corpus *c, uint8_t source, struct str text);

/* One that was made of others, normalised already. False: there is such. */
bool corpus_add_made(struct corpus *c, enum text_group group, uint8_t source,
                     struct str words);

/* The same for one that is not. */
bool corpus_make(struct corpus *c, enum text_group group, uint8_t source,
                 struct str text);

void corpus_pair(struct corpus *c, uint32_t a, uint32_t b, uint8_t source);

/* Bring texts and pairs into the one order that does not depend on that of the
 * files, and mark those that are held out. */
void corpus_settle(struct corpus *c, const struct recipe *r);

/* The words of a text as they are normalised, one space between them; of more
 * than max_words, the first. */
void text_normalise(struct str text, size_t max_words, struct buf *out);

/* ---- how people ask ---- */

enum grammar_list {
    GRAMMAR_REQUESTS,
    GRAMMAR_UTTERANCES,
    GRAMMAR_PLACES,
    GRAMMAR_TIMES,
    GRAMMAR_LANGUAGES,
    GRAMMAR_NUMBERS,
    GRAMMAR_VERBS,
    N_GRAMMAR_LISTS
};

struct grammar {
    struct str_list {
        struct str *all;
        size_t n, cap;
    } lists[N_GRAMMAR_LISTS];
    struct buf bytes;
    char hash[HASH_CHARS + 1];
};

/* ERR_SYNTAX with the line where there is an unknown heading or slot; a list
 * without anything in it is one, too. */
MUST_USE enum err grammar_read(struct grammar *g, const char *path,
                               struct why *why);
void grammar_fini(struct grammar *g);

/* ---- things and doings ---- */

enum lexicon_kind {
    LEXICON_NOUNS,
    LEXICON_COMPOUNDS, /* of two words */
    LEXICON_ADJECTIVES,
    LEXICON_DOINGS, /* "pay the bill" */
    N_LEXICON_KINDS
};

struct lexicon {
    struct lexicon_word {
        struct str s;
        double upto; /* weights of it and all before */
    } * words[N_LEXICON_KINDS];
    size_t n[N_LEXICON_KINDS], cap[N_LEXICON_KINDS];
    struct map seen;
    struct arena bytes;
};

void lexicon_init(struct lexicon *l);
void lexicon_fini(struct lexicon *l);

/* A pair as it stands in the file. */
void lexicon_offer(struct lexicon *l, const struct grammar *g,
                   struct str source, struct str a, struct str b);

/* After the last: sort, leave out what is too rare, weigh. */
void lexicon_settle(struct lexicon *l, const struct corpus *c);

/* One by chance, frequent ones oftener; empty where there is none. */
struct str lexicon_pick(const struct lexicon *l, enum lexicon_kind kind,
                        uint64_t chance);

/* About n of them. */
void utterances_make(struct corpus *c, const struct recipe *r,
                     const struct grammar *g, const struct lexicon *l);

/* pairs.jsonl.gz and texts.jsonl.gz of a folder. Unless `any` their hashes must
 * be those that texts.c knows. Fills `hash` with that of both. Corpus and
 * lexicon are settled. */
MUST_USE enum err texts_read(struct corpus *c, struct lexicon *l,
                             const struct grammar *g, const struct recipe *r,
                             const char *folder, bool any,
                             char hash[HASH_CHARS + 1], struct why *why);

void augment(struct corpus *c, const struct recipe *r, const struct grammar *g,
             const struct lexicon *l);

/* Whole file; unpacked if its name ends in ".gz". */
MUST_USE enum err file_read(const char *path, struct buf *out, struct why *why);
MUST_USE enum err gz_unpack(struct str packed, struct buf *out,
                            struct why *why);

/* ---- the teacher ---- */

enum { TEACHER_DIMS = 384 };

struct vocab;

/* A model, behind a few functions, so that a test can bring a small one. */
struct teacher {
    void *ctx;
    char hash[HASH_CHARS + 1];
    const struct vocab *vocab;
    void *(*scratch_new)(void *ctx); /* for one thread */
    void (*scratch_free)(void *ctx, void *scratch);
    void (*embed)(void *ctx, void *scratch, const struct str *texts, size_t n,
                  float *out); /* n times TEACHER_DIMS */
};

/* Vectors are kept as whole numbers of this part of one: half the memory, and
 * what the last bits of a processor do differently is mostly gone. */
#define TEACHER_ONE 32767

/* The vectors of n texts, n times TEACHER_DIMS; `folder`: where those of
 * earlier runs are, NULL: nowhere. */
MUST_USE enum err teacher_embed(const struct teacher *t, struct crew *crew,
                                const char *folder, const struct str *texts,
                                size_t n, int16_t *out, bool is_quiet,
                                struct why *why);

/* ---- fewer numbers ---- */

struct pca {
    size_t dims;
    float mean[TEACHER_DIMS];
    float *axes; /* TEACHER_DIMS times dims, strongest first */
    double kept; /* of the variance, 0 to 1 */
};

void pca_fit(struct pca *p, size_t dims, double centre, struct crew *crew,
             const int16_t *vectors, size_t n);
void pca_fini(struct pca *p);

/* n vectors, each one long or all zero. */
void pca_project(const struct pca *p, struct crew *crew, const int16_t *vectors,
                 size_t n, float *out);

/* Eigenvalues, largest first, and vectors (rows of `vectors`) of a symmetric
 * matrix of n times n, which is destroyed. Of each vector the number that is
 * largest without its sign is positive. */
void eigen_symmetric(double *a, size_t n, double *values, double *vectors);

#endif
