#ifndef REGISTRY_INDEX_INTERNAL_H
#define REGISTRY_INDEX_INTERNAL_H

/* Shared by the files of index/. From the bottom up:
 *
 *   terms.c           text -> stems, one after the other
 *   text.c            documents by words: postings, statistics per class;
 *                     text_doc.c makes a document of an agent or a skill
 *   text_query.c      BM25 over them
 *   vectors.c         documents by vector: the guess of all, the exact value of
 *                     some
 *   classes.c         visibility classes
 *   index.c           agents, documents and changes
 *   index_rank.c      documents best first, computing as few as possible
 *   index_search.c    visibility, and agents from ranked documents
 *   profiles.c        the vector of each agent as a whole; generic.c judges
 *                     them
 *   index_near.c      the similarity of a text to every agent
 *   level.c           how high a card scores for messages of others
 *   slow.c            a plain search that computes every document: for tests
 *   index_check.c     consistency checks, with text_check.c: for tests
 *   index_snapshot.c  the whole index as bytes
 *
 * A document has a dense number, which is reused, and which is its index in
 * every array. */

#include "base/words.h"
#include "registry/index/index.h"

/* ---- terms: the words that a text is found by, as stems ----
 *
 * Punctuation and English stop words are left out. */

struct sb_stemmer;

/* A stemmer serves one walk at a time, which needs no memory. */
MUST_USE struct sb_stemmer *stemmer_new(void);
void stemmer_free(struct sb_stemmer *s);

struct terms {
    struct words words;
    struct sb_stemmer *stemmer;
    struct str stem; /* up to INDEX_TERM_MAX bytes, until the next */
    struct str word; /* its word, in the text */
};

/* Borrows both until the last term is read. */
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
 * over the distinct words of the query. N documents of mean length L, of which
 * df have the word, are those of the visible classes; k1 is 1.2 and b is 0.75.
 * The ideal document has average length and contains the words of the query
 * twice, as a document about them does in its name and its description. For a
 * long query it has the TEXT_IDEAL_TERMS words that tell most, because no
 * description has all words of a request. Unknown words count in it as the
 * rarest. text_query.c explains how that was found.
 *
 * The weights of the parts of a document are integers, so the order of a sum
 * does not matter: its own word counts TEXT_OWN, one of its agent TEXT_AGENT.
 */

enum {
    TEXT_OWN = 4,
    TEXT_AGENT = 1,
    TEXT_LENGTH_MAX = INDEX_DOC_TERMS_MAX * TEXT_OWN,
    TEXT_IDEAL_TERMS = 3,
    TEXT_TERMS_PER_DOC =
        64, /* distinct terms for each of max_docs; beyond: ERR_LIMIT */
};
#define TEXT_K1 1.2f
#define TEXT_B  0.75f

struct text;

MUST_USE struct text *text_new(size_t max_docs, const uint64_t seed[2]);
void text_free(struct text *t);

/* Make room for documents and classes with numbers below these, as text_put and
 * text_move require. ERR_NOMEM. */
MUST_USE enum err text_room(struct text *t, uint32_t n_docs,
                            uint32_t n_classes);

/* Count and intern the words of a document, and reserve room in every list, so
 * that text_put cannot fail. s: its skill, or NULL for the agent itself.
 * ERR_LIMIT: too many distinct words; ERR_NOMEM: a list cannot grow. */
struct text_doc;
MUST_USE enum err text_prepare(struct text *t, const struct agent *a,
                               const struct skill *s, struct text_doc **out);
void text_forget(struct text *t, struct text_doc *d);

/* Takes d; no document has this number. cls: a class number of index.c, from
 * 0. */
void text_put(struct text *t, uint32_t doc, uint32_t cls, struct text_doc *d);
/* Whether the documents of a class, which has none yet, are put aside. */
void text_class_is_aside(struct text *t, uint32_t cls, bool is_aside);
void text_drop(struct text *t, uint32_t doc); /* harmless if there is none */

/* Move a document to another class. text_move_room makes room first and may
 * fail; call it for all documents that move to one class together. */
MUST_USE enum err text_move_room(struct text *t, uint32_t doc);
void text_move(struct text *t, uint32_t doc, uint32_t cls);

size_t text_bytes(const struct text *t);
size_t text_n_terms(const struct text *t); /* distinct terms */

/* Documents of a snapshot. Words have numbers below text_terms_end; the stem of
 * a free number is empty. */
struct text_word {
    uint32_t term;
    uint32_t count; /* including weights */
};
uint32_t text_terms_end(const struct text *t);
struct str text_stem(const struct text *t, uint32_t term);
/* Fills at most INDEX_DOC_TERMS_MAX distinct words; returns how many. */
size_t text_words(const struct text *t, uint32_t doc, struct text_word *out);
/* From distinct stems; words refer to their index in `stems`. ERR_BAD_REQUEST:
 * not a result of text_words. Else as text_prepare. */
MUST_USE enum err text_prepare_words(struct text *t, const struct str *stems,
                                     size_t n_stems,
                                     const struct text_word *words, size_t n,
                                     struct text_doc **out);

/* Whether a visible document contains the word, by its stem. granted: documents
 * visible besides their classes; NULL: none. */
bool text_says(const struct text *t, struct str word, const uint64_t *is_seen,
               size_t n_classes, const uint64_t *granted);

/* The words of a query with their weights by the statistics of the visible
 * classes (is_seen). Nothing in it depends on other classes, except the numbers
 * of terms. */
enum { TEXT_QUERY_BYTES = 16 * 1024 }; /* the rest is not read */
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

/* Add the score, 0..1, of each visible document that has a word of the query to
 * scores (an element per document, initially zero), and list each such document
 * once in `touched`; returns how many. */
size_t text_score_all(const struct text *t, const struct text_query *q,
                      const uint64_t *is_visible, bool is_aside_seen,
                      float *scores, uint32_t *touched);

/* The score of one document, from its own words: bit for bit that of
 * text_score_all. */
float text_score_one(const struct text *t, const struct text_query *q,
                     uint32_t doc);

/* Whether every list agrees with every other. For tests. */
bool text_check(const struct text *t);

/* ---- slow: the plain reference ---- */

/* All agents that index_next would return for q, in its order, at most max.
 * Computes every document exactly, without bounds or postings. *n: how many. */
MUST_USE enum err index_search_slow(struct index *x,
                                    const struct index_query *q,
                                    struct index_hit *out, size_t max,
                                    size_t *n);

/* index_check.c: whether the index is consistent. */
bool index_check(const struct index *x);

#endif
