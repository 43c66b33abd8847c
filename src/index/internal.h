#ifndef INDEX_INTERNAL_H
#define INDEX_INTERNAL_H

/* What the files of index/ share. From the bottom up:
 *
 *   terms.c     text -> stems, one after the other
 *   text.c      documents by words: postings, statistics per class, BM25
 *   vectors.c   documents by meaning: the guess of all, the fine value of some
 *   index.c     agents, documents and changes
 *   search.c    both together, best first
 *   slow.c      the same computed plainly for every document: for tests
 *   snapshot.c  all of it as bytes
 *
 * A document has a number, dense and used again, which is its place in every
 * array of the room. */

#include "index/index.h"

/* ---- terms ---- */

struct terms; /* terms.c: a walk over a text; holds a stemmer */

/* ---- text ----
 *
 * Weights of the parts of a document, in whole numbers so that sums have no
 * order: a word of its own counts TEXT_OWN, one of its agent TEXT_AGENT. */

struct text;

MUST_USE struct text *text_new(size_t max_docs, const uint64_t seed[2]);
void text_free(struct text *t);

/* A document's words, counted and interned; room for them is made in every
 * list they go into, so that text_put cannot fail. */
struct text_doc;
MUST_USE enum err text_prepare(struct text *t, const struct agent *a,
                               const struct skill *s, struct text_doc **out);
void text_forget(struct text *t, struct text_doc *d);

/* Takes d. cls is a class's number, from 0, given by index.c. */
void text_put(struct text *t, uint32_t doc, uint32_t cls, struct text_doc *d);
void text_drop(struct text *t, uint32_t doc);
size_t text_bytes(const struct text *t);

/* A query by its words: what each is worth by the statistics of the classes
 * for which is_seen has a bit, and what a document holding all would get. */
enum { TEXT_QUERY_BYTES = 16 * 1024 };
struct text_query {
    size_t n;
    struct text_query_term {
        uint32_t term; /* UINT32_MAX: no document has it */
        float weight;  /* idf, and how often it was said */
    } terms[INDEX_QUERY_TERMS_MAX];
    float ideal;       /* the most that can be had; zero: no words */
    float mean_length; /* of the documents that are seen */
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

/* ---- slow: the plain reference ---- */

/* All agents that index_next would give for q, in its order, at most max;
 * every document's fine value, no bound, no postings. Returns how many. */
MUST_USE enum err index_search_slow(struct index *x,
                                    const struct index_query *q,
                                    struct index_hit *out, size_t max,
                                    size_t *n);

#endif
