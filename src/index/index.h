#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

/* index: search in memory, by meaning and by words, over what somebody may
 * see.
 *
 * A mirror of the registry, agent by agent: each skill is a document, and the
 * agent itself one more. A document has words (name, description, tags,
 * examples; with less weight its agent's name and description) and, where
 * there is one, a vector.
 *
 *     combined = 0.7 * semantic + 0.3 * text
 *     semantic   cosine with the query's vector, clipped to 0..1
 *     text       BM25 over stemmed words without English stop words, divided
 *                by what a document holding every word of the query would get
 *
 * An agent's score is that of its best document. Who may see what is applied
 * inside, before anything is ranked, so a limit is filled with what the
 * requester sees; and words are weighed by the statistics of just the classes
 * that the requester sees, so that nothing in an answer depends on what
 * somebody else keeps private.
 *
 * Vectors are guessed by one product of bytes and only those that could be
 * among the best are computed finely; the bound of the guess is kept with each,
 * so what comes out is exactly what computing all of them would give, the same
 * on every processor. Numbers that are not finite do not get in or out.
 *
 * Pure: no clock, no socket, no store. Threads: one at a time. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/agent.h"
#include "model/level.h"

struct index;

enum {
    INDEX_DOCS_MAX = 2 * 1000 * 1000,
    INDEX_DIMS_MAX = 4096,
    INDEX_TERM_MAX = 64,        /* bytes of a stem; longer ones are cut */
    INDEX_QUERY_TERMS_MAX = 64, /* different ones; further ones are left out */
    INDEX_DOC_TERMS_MAX = 2048, /* words of a document that count */
};
#define INDEX_AGENT                                         \
    UINT32_MAX /* the document of the agent itself, where a \
                * skill's number stands */

/* Who sees the whole of it; statistics are kept for each. */
enum index_class_kind { INDEX_PUBLIC, INDEX_ORG, INDEX_CREATOR };

struct index_class {
    enum index_class_kind kind;
    struct str name; /* of the org or the creator; empty for public */
};

/* The class that an agent's visibility, org and creator put it in: public;
 * shared by an org; and everything else is its creator's. */
struct index_class index_class_of(const struct agent *a);

/* NULL: memory is gone. max_docs: documents at most, INDEX_DOCS_MAX or less;
 * those of changes that are prepared count too. */
MUST_USE struct index *index_new(size_t max_docs, const uint64_t seed[2]);
void index_free(struct index *x);

/* Another model: all vectors go, the words stay. At first dims is zero, and
 * there are none; more than INDEX_DIMS_MAX counts as that. */
void index_set_dims(struct index *x, uint32_t dims);
uint32_t index_dims(const struct index *x);

/* The same for a model whose vectors have two parts (vec.h), the first of
 * `quick` numbers: each vector, of an agent or a query, is quick or full, and
 * that is seen from itself. All are compared with all by that rule; a quick
 * query costs no more than if vectors had the first part alone. */
void index_set_parts(struct index *x, uint32_t dims, uint32_t quick);
uint32_t index_quick(const struct index *x);

/* Agents have numbers, given by whoever keeps them: below max_docs, and used
 * again.
 *
 * A change is prepared, which may fail, and then made, which cannot: so that
 * it takes effect with its commit. Several may be prepared at a time, also of
 * one agent; they are made or dropped in any order. */
struct index_change;

/* a: all of it is copied as far as it is needed. vectors: packed (vec_pack),
 * dims of the index each, first the agent's own and then one for each skill;
 * NULL: it has none. One that vec_pack did not make counts as all zero.
 * ERR_LIMIT: there are too many documents (those of the agent that will be
 * replaced count as long as they are there) or different words; ERR_NOMEM. *out
 * is then NULL. */
MUST_USE enum err index_prepare(struct index *x, const struct agent *a,
                                const uint8_t *vectors,
                                struct index_change **out);

/* What the agent is routed by as a whole, packed like the others. Without it
 * that is its own vector; where it has none, this is left alone. */
void index_change_profile(struct index *x, struct index_change *c,
                          const uint8_t *packed);

/* Its vectors are quick ones that stand there until the full ones come. */
void index_change_for_now(struct index_change *c);

/* Put it in place of whatever has this number. Vectors of another length than
 * the index has by now are left out. Takes the change. */
void index_put(struct index *x, uint32_t number, struct index_change *c);

/* Its class is another one now, words and vectors stay. Harmless where there is
 * none. ERR_NOMEM: it is as it was. */
MUST_USE enum err index_move(struct index *x, uint32_t number,
                             struct index_class cls);

/* The packed vectors that an agent has in the index, in the order of
 * index_prepare, into `out`; false: it has none, or they do not fit. */
bool index_vectors(const struct index *x, uint32_t number, struct buf *out);

/* And what it is routed by as a whole, behind what is in `out`. */
bool index_profile(const struct index *x, uint32_t number, struct buf *out);

/* There is no agent of that number any more. Harmless where there was none. */
void index_drop(struct index *x, uint32_t number);

/* None of any number. */
void index_clear(struct index *x);

/* Who has the number: the name, borrowed until the next change, and how many
 * documents, itself included. False: nobody. */
bool index_agent(const struct index *x, uint32_t number, struct str *name,
                 size_t *n_docs);

void index_forget(struct index *x, struct index_change *c);

/* Searching. */

/* Of the part that is not searched by, each document has zero. */
enum index_mode { INDEX_HYBRID, INDEX_SEMANTIC, INDEX_TEXT };

/* INDEX_WEIGHTED   semantic_weight * semantic + text_weight * text
 * INDEX_RRF        by places: documents that are seen and admitted stand in two
 *                  lists, by semantic and by text, each from the best to the
 *                  worst above zero; the best 200 of each count, of equals
 *                  the first in the order of answers. Equals have one place,
 *                  that of the first of them, and so has what is in the other
 *                  list and equals the last. A document at places r and s has
 *
 *                      (1 / (60 + r) + 1 / (60 + s)) / (2 / 61)
 *
 *                  so 1 is first in both, and about a half first in one; a list
 *                  that it is not in adds nothing. Searched by one part alone
 *                  there is one list, and its first has 1. */
enum index_fusion { INDEX_WEIGHTED, INDEX_RRF };

/* Borrowed until index_search_end. */
struct index_query {
    struct str text;
    const float *vector; /* dims of the index. NULL, or one that has no
                          * direction: by words alone, whatever the mode */
    enum index_mode mode;
    enum index_fusion fusion;
    float semantic_weight, text_weight; /* of INDEX_HYBRID. Zero both: 0.7 and
                                         * 0.3. Together above one, they are
                                         * made one; below zero or not finite
                                         * counts as zero */

    /* Who asks. Classes they see the whole of: public, this org, this creator;
     * an empty name: no such. */
    struct str org, creator;
    bool sees_all;
    const uint32_t *granted; /* numbers of agents they see besides */
    size_t n_granted;
    /* Whether a document counts, asked only for those that they may see, and
     * not for all of them; for one perhaps twice, so it says the same each
     * time. NULL: all count. skill may be INDEX_AGENT. */
    bool (*admits)(void *ctx, uint32_t number, uint32_t skill);
    void *ctx;

    bool is_plain; /* routing: the cosine is the largest of the profile's and
                    * the skills', however little a skill says */
};

/* A document's part in an answer. text and semantic are 0..1 whatever the
 * fusion; score is what it is ranked by, 0..1 too. */
struct index_match {
    uint32_t skill; /* or INDEX_AGENT */
    float score, semantic, text;
};

enum { INDEX_MATCHES_MAX = 8 };

struct index_hit {
    uint32_t number;
    float score;                                   /* of the best match */
    struct index_match matches[INDEX_MATCHES_MAX]; /* best first, above zero;
                                                    * of equals the earlier in
                                                    * the card, the agent
                                                    * itself last */
    size_t n_matches;
};

/* Agents one after the other, best first; of equal ones that whose name sorts
 * first, whatever its case. Those with nothing above zero do not come. The
 * index does not change meanwhile; one search at a time. ERR_NOMEM. */
MUST_USE enum err index_search_begin(struct index *x,
                                     const struct index_query *q);
bool index_next(struct index *x, struct index_hit *out);

/* How many come in all with that score or a better one, however many of them
 * have come; for a fraction of the time that it would take to have them come.
 */
size_t index_count(struct index *x, double least);

void index_search_end(struct index *x);

/* Routing: every agent, and how near a text is to each. */

struct index_near {
    bool is_seen;
    bool is_fine;   /* else cosine is a guess, and skill is not there yet */
    uint32_t skill; /* its best skill, as a hybrid search has it;
                     * INDEX_AGENT: it has none */
    float cosine;   /* with its profile, and nearer by most of what the nearest
                     * of its skills is nearer (is_plain: by all of it), 0..1;
                     * below zero: there is nothing to compare */
    float text;     /* of its best document, 0..1 */
    float generic;  /* 0 to 0.15: how much more like everything its profile is
                     * than those of public agents are, by first parts where
                     * vectors have two */
    struct card_level level; /* that for quick queries, if this is one or the
                              * agent's own vectors are quick */
};

/* The rest, kept apart: the guesses of thousands of agents lie side by side. */
struct index_fine {
    float over;        /* by how much its level is above those of a third of
                        * the public agents */
    float profile;     /* the cosine without its skills; below zero: none */
    float own_text;    /* of its own document alone, without its skills' */
    uint32_t n_skills; /* it was the best of so many */
    uint32_t n_cards;  /* public ones of its creator; the platform's: 1 */
};

/* By the agents' numbers, *n of them; borrowed until the next call or change.
 * Of q the text and who asks count; vector: packed, of
 * the index's length; empty, or none that vec_pack made: by words alone.
 * ERR_NOMEM. */
MUST_USE enum err index_near(struct index *x, const struct index_query *q,
                             struct str vector, const struct index_near **out,
                             size_t *n);

/* The same for a fraction of the time: cosine is no less than it is, until
 * index_near_fine has made it that, in place; before the next search or
 * change. */
MUST_USE enum err index_near_guess(struct index *x, const struct index_query *q,
                                   struct str vector,
                                   const struct index_near **out, size_t *n);
const struct index_fine *index_near_fine(struct index *x, uint32_t number);

/* Levels: how high each card scores for messages that are not meant for it. */

enum { INDEX_REFERENCE_MAX = 1024 }; /* texts that count */

/* The vectors of the reference texts, packed, n of them, of the index's length.
 * Cards that come from now on have a level; those that are there get theirs by
 * index_level_some. index_set_dims forgets them. ERR_NOMEM: no card gets one.
 */
MUST_USE enum err index_set_reference(struct index *x, const uint8_t *packed,
                                      size_t n);

/* The quick vectors of the same texts, where vectors have two parts: cards then
 * have a level for quick queries too. */
MUST_USE enum err index_set_quick_reference(struct index *x,
                                            const uint8_t *packed, size_t n);

/* How many there are; of quick ones. */
size_t index_references(const struct index *x);
size_t index_quick_references(const struct index *x);

/* Compute the levels of up to `max` cards that lack them. False: none is left.
 */
bool index_level_some(struct index *x, size_t max);

/* The same for one turn of the loop: a few cards, and fewer where they are
 * large. */
bool index_level_turn(struct index *x);

/* Both are below zero where it is not known. The one for full queries, which of
 * an agent whose vectors are quick is the other one; and the one for quick
 * queries. */
struct card_level index_level(const struct index *x, uint32_t number);
struct card_level index_quick_level(const struct index *x, uint32_t number);

/* Whether the agent has vectors, and only for now. */
bool index_is_for_now(const struct index *x, uint32_t number);

/* Whether a document that q's requester sees has each of n words (by its
 * stem); not all of a document's words count, see INDEX_DOC_TERMS_MAX. Stop
 * words are in none. ERR_NOMEM, and then none is. */
MUST_USE enum err index_says(struct index *x, const struct index_query *q,
                             const struct str *words, size_t n, bool *is_said);

/* What a text is searched by, after stop words and stems: to show which words
 * matched. `each` gets the place of the word in the text, and its stem. False:
 * memory is gone, and it was not called. */
bool index_terms(struct str text,
                 void (*each)(void *ctx, struct str word, struct str stem),
                 void *ctx);

/* A snapshot. `stamp` says what it is of, and must be the same when it is read
 * back: what the registry makes of its sequence and its model. Numbers of
 * agents are kept; searches then answer the same to the last bit. ERR_IO: write
 * said no; ERR_NOMEM. */
enum { INDEX_STAMP_BYTES = 64 };

MUST_USE enum err index_save(const struct index *x,
                             const uint8_t stamp[INDEX_STAMP_BYTES],
                             bool (*write)(void *ctx, struct str bytes),
                             void *ctx);

/* Into an index that is empty; it then has the dims of the snapshot. Nothing in
 * the bytes is believed. ERR_BAD_CONFIG: they are none, damaged, or of another
 * stamp, version or make; ERR_LIMIT, ERR_NOMEM. The index is then empty, with
 * the dims it had, and why (may be NULL) says why. */
MUST_USE enum err index_restore(struct index *x,
                                const uint8_t stamp[INDEX_STAMP_BYTES],
                                struct str bytes, struct why *why);

struct index_stats {
    size_t agents, documents, vectors, terms;
    size_t bytes;        /* all of it */
    size_t vector_bytes; /* of that, with what is there for more of them */
    int64_t searches_total;
    int64_t scanned_total; /* documents that were guessed, all searches */
    int64_t refined_total; /* and computed finely */
};

struct index_stats index_stats(const struct index *x);

#endif
