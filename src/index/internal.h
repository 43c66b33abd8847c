#ifndef INDEX_INTERNAL_H
#define INDEX_INTERNAL_H

/* What the files of index/ share. From the bottom up:
 *
 *   terms.c     text -> stems, one after the other
 *   text.c      documents by words: postings, statistics per class;
 *               text_doc.c makes a document of an agent or a skill
 *   text_query.c  BM25 over them
 *   vectors.c   documents by meaning: the guess of all, the fine value of some
 *   classes.c   who sees the whole of what
 *   index.c     agents, documents and changes
 *   rank.c      documents best first, computing as few as will do
 *   search.c    who sees what, and the agents that come of it
 *   profiles.c  what each agent is routed by, and how like everything that is
 *   near.c      of every agent, how near a text is to it
 *   slow.c      the same computed plainly for every document: for tests
 *   check.c, text_check.c  whether it is in order: for tests
 *   snapshot.c  all of it as bytes
 *
 * A document has a number, dense and used again, which is its place in every
 * array of the room. */

#include "base/words.h"
#include "index/index.h"

/* ---- terms: the words that a text is found by, as stems ----
 *
 * Signs and English stop words are left out. */

struct sb_stemmer;

/* NULL: memory is gone. Whoever has one walks with it, one walk at a time; a
 * walk itself needs no memory. */
MUST_USE struct sb_stemmer *stemmer_new(void);
void stemmer_free(struct sb_stemmer *s);

struct terms {
    struct words words;
    struct sb_stemmer *stemmer;
    struct str stem;  /* up to INDEX_TERM_MAX bytes, until the next */
    struct str place; /* where its word stands in the text */
};

/* Both are borrowed until the last one was read. */
void terms_begin(struct terms *t, struct sb_stemmer *stemmer, struct str text);
bool terms_next(struct terms *t);

bool term_is_stop_word(struct str word); /* normalised */
bool term_stop_words_in_order(void);     /* for tests */

/* ---- text: documents by words ----
 *
 *     idf    ln(1 + (N - df + 0.5) / (df + 0.5))
 *     bm25   sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / L))
 *     x      bm25 / ideal, at most 1
 *     text   x * sqrt(x)
 *
 * over the words of the query, each once. N documents of mean length L, and
 * those of them that have the word (df), count in the classes that are seen;
 * k1 is 1.2 and b is 0.75. The ideal document has average length and holds the
 * words of the query twice, as one that is about them does in its name and in
 * its description; of a long query the TEXT_IDEAL_TERMS that tell most, since
 * no description says all that a request does. Words that nobody has count
 * there as the rarest. text_query.c says how that was found.
 *
 * Weights of the parts of a document are whole numbers, so that sums have no
 * order: a word of its own counts TEXT_OWN, one of its agent TEXT_AGENT. */

enum {
    TEXT_OWN = 4,
    TEXT_AGENT = 1,
    TEXT_LENGTH_MAX = INDEX_DOC_TERMS_MAX * TEXT_OWN,
    TEXT_IDEAL_TERMS = 3,
    TEXT_TERMS_PER_DOC = 64, /* different ones in all, for each of max_docs:
                              * beyond that ERR_LIMIT */
};
#define TEXT_K1 1.2f
#define TEXT_B  0.75f

struct text;

MUST_USE struct text *text_new(size_t max_docs, const uint64_t seed[2]);
void text_free(struct text *t);

/* Make room for documents and classes whose numbers are below these: text_put
 * and text_move take only such. ERR_NOMEM. */
MUST_USE enum err text_room(struct text *t, uint32_t n_docs,
                            uint32_t n_classes);

/* A document's words, counted and interned; room for them is made in every
 * list they go into, so that text_put cannot fail. s: the skill it is of, or
 * NULL for that of the agent itself. ERR_LIMIT: too many different words in
 * all; ERR_NOMEM. */
struct text_doc;
MUST_USE enum err text_prepare(struct text *t, const struct agent *a,
                               const struct skill *s, struct text_doc **out);
void text_forget(struct text *t, struct text_doc *d);

/* Takes d; there is no document of this number. cls is a class's number, from
 * 0, given by index.c. */
void text_put(struct text *t, uint32_t doc, uint32_t cls, struct text_doc *d);
void text_drop(struct text *t, uint32_t doc); /* harmless if there is none */

/* Into another class. Room for that is made first, which may fail, for as many
 * documents as go into one class together. */
MUST_USE enum err text_move_room(struct text *t, uint32_t doc);
void text_move(struct text *t, uint32_t doc, uint32_t cls);

size_t text_bytes(const struct text *t);
size_t text_n_terms(const struct text *t); /* different ones */

/* A document as it is kept, and back: for a snapshot. Words have numbers below
 * text_terms_end; of one that is free the stem is empty. */
struct text_word {
    uint32_t term;
    uint32_t count; /* weights and all */
};
uint32_t text_terms_end(const struct text *t);
struct str text_stem(const struct text *t, uint32_t term);
/* Up to INDEX_DOC_TERMS_MAX; returns how many. No two are the same. */
size_t text_words(const struct text *t, uint32_t doc, struct text_word *out);
/* From stems, none of them twice, by their places in `stems`. ERR_BAD_REQUEST:
 * what text_words cannot have given. Else as text_prepare. */
MUST_USE enum err text_prepare_words(struct text *t, const struct str *stems,
                                     size_t n_stems,
                                     const struct text_word *words, size_t n,
                                     struct text_doc **out);

/* Whether a document of the classes that are seen has the word, by its stem.
 * granted: documents that are seen besides; NULL: there are none. */
bool text_says(const struct text *t, struct str word, const uint64_t *is_seen,
               size_t n_classes, const uint64_t *granted);

/* A query by its words: what each is worth by the statistics of the classes
 * for which is_seen has a bit. Nothing in it depends on other classes, but for
 * the numbers of terms. */
enum { TEXT_QUERY_BYTES = 16 * 1024 }; /* what comes behind is not read */
struct text_query {
    size_t n;
    struct text_query_term {
        uint32_t term; /* UINT32_MAX: no document has it */
        float weight;  /* idf */
    } terms[INDEX_QUERY_TERMS_MAX];
    float ideal;       /* zero: no words */
    float base, slope; /* k1 * (1 - b + b * length / L), in parts of TEXT_OWN:
                        * base + slope * length */
};
void text_query(const struct text *t, struct str text, const uint64_t *is_seen,
                size_t n_classes, struct text_query *out);

/* Add to scores (one for each document, zero at the beginning) what each
 * document that has a word of the query gets, 0..1, and hand their numbers to
 * `touched`, each once; returns how many. Documents of which `is_visible` has
 * no bit are left out. */
size_t text_score_all(const struct text *t, const struct text_query *q,
                      const uint64_t *is_visible, float *scores,
                      uint32_t *touched);

/* The same for one document, by walking over its own words: bit for bit what
 * text_score_all gives. */
float text_score_one(const struct text *t, const struct text_query *q,
                     uint32_t doc);

/* Every list agrees with every other. For tests. */
bool text_check(const struct text *t);

/* ---- slow: the plain reference ---- */

/* All agents that index_next would give for q, in its order, at most max;
 * every document's fine value, no bound, no postings. Returns how many. */
MUST_USE enum err index_search_slow(struct index *x,
                                    const struct index_query *q,
                                    struct index_hit *out, size_t max,
                                    size_t *n);

/* check.c: everything agrees with everything else. */
bool index_check(const struct index *x);

#endif
