#ifndef REGISTRY_INDEX_INDEX_H
#define REGISTRY_INDEX_INDEX_H

/* index: in-memory search by vector and by words, over what the requester may
 * see.
 *
 * A mirror of the registry, agent by agent: each skill is a document, and the
 * agent itself one more. A document has words (name, description, tags,
 * examples; with less weight the name and description of its agent) and,
 * optionally, a vector.
 *
 *     combined = 0.7 * semantic + 0.3 * text
 *     semantic   cosine with the vector of the query, clipped to 0..1
 *     text       BM25 over stemmed words without English stop words, divided
 *                by the score of a document with every word of the query
 *
 * The score of an agent is that of its best document. Visibility is applied
 * before ranking, so a limit is filled with visible agents. Words are weighed
 * by the statistics of just the classes that the requester sees, so no answer
 * depends on what another user keeps private.
 *
 * Vectors are guessed by one product of bytes, and only those that could be
 * among the best are computed exactly. The error bound of the guess is stored
 * with each vector, so the result equals computing all of them, and is the same
 * on every processor. Non-finite numbers neither get in nor out.
 *
 * Owns copies of everything it is given. Pure: no clock, no socket, no store.
 * Threads: one at a time. */

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
    INDEX_QUERY_TERMS_MAX = 64, /* distinct terms; further ones are ignored */
    INDEX_DOC_TERMS_MAX = 2048, /* words of a document that count */
};
#define INDEX_AGENT                                                            \
    UINT32_MAX /* in place of the number of a skill: the document of the agent \
                * itself */

/* Visibility classes; each has its own statistics. Agents that are put aside
 * are visible only to a requester who sees all, and cost other requesters next
 * to nothing. */
enum index_class_kind { INDEX_PUBLIC, INDEX_ORG, INDEX_CREATOR, INDEX_ASIDE };

struct index_class {
    enum index_class_kind kind;
    struct str name; /* of the org or the creator; else empty */
};

/* The class of an agent by its visibility, org and creator: public, shared with
 * an org, or else its creator's. */
struct index_class index_class_of(const struct agent *a);

/* NULL: no memory for max_docs documents (INDEX_DOCS_MAX or less), which
 * include those of prepared changes. */
MUST_USE struct index *index_new(size_t max_docs, const uint64_t seed[2]);
void index_free(struct index *x);

/* Switch the model: all vectors are dropped, the words stay. Initially dims is
 * zero and there are no vectors. dims is cut to INDEX_DIMS_MAX. */
void index_set_dims(struct index *x, uint32_t dims);
uint32_t index_dims(const struct index *x);

/* The same for a model whose vectors have two parts (vec.h), the first with
 * `quick` numbers. Each vector, of an agent or a query, is quick or full, which
 * is visible from the vector itself. Any two are comparable by that rule. A
 * quick query costs no more than if vectors had only the first part. */
void index_set_parts(struct index *x, uint32_t dims, uint32_t quick);
uint32_t index_quick(const struct index *x);

/* Agents are identified by numbers below max_docs, which the caller gives and
 * reuses.
 *
 * A change is prepared, which may fail, and then put, which cannot: so it takes
 * effect with its commit. Several may be prepared at a time, also for one
 * agent; they are put or forgotten in any order. */
struct index_change;

/* Prepare to put agent a, which is copied. vectors: packed (vec_pack), dims of
 * the index each, first the agent's own and then one for each skill; NULL:
 * none. A vector that vec_pack did not make counts as all zero. ERR_LIMIT: too
 * many documents (the replaced ones count until then) or distinct words;
 * ERR_NOMEM. *out is then NULL. */
MUST_USE enum err index_prepare(struct index *x, const struct agent *a,
                                const uint8_t *vectors,
                                struct index_change **out);

/* Set the profile, the vector that the agent as a whole is routed by, packed.
 * The default is its own vector. Ignored without vectors. */
void index_change_profile(struct index *x, struct index_change *c,
                          const uint8_t *packed);

/* The vectors are quick ones, until the full ones arrive. */
void index_change_for_now(struct index_change *c);

/* Replace the agent of this number. Vectors of another length than that of the
 * index by now are dropped. Takes the change. */
void index_put(struct index *x, uint32_t number, struct index_change *c);

/* Move an agent to another class; words and vectors stay. Does nothing for an
 * unknown number. ERR_NOMEM: nothing has changed. */
MUST_USE enum err index_move(struct index *x, uint32_t number,
                             struct index_class cls);

/* Append the packed vectors of an agent to `out`, in the order of
 * index_prepare. False: none, or no room. */
bool index_vectors(const struct index *x, uint32_t number, struct buf *out);

/* Append its profile to `out`, likewise. */
bool index_profile(const struct index *x, uint32_t number, struct buf *out);

/* Remove an agent. Does nothing for an unknown number. */
void index_drop(struct index *x, uint32_t number);

/* Remove all agents. */
void index_clear(struct index *x);

/* The agent of a number: its name, borrowed until the next change, and the
 * number of its documents, itself included. False: unknown number. */
bool index_agent(const struct index *x, uint32_t number, struct str *name,
                 size_t *n_docs);

void index_forget(struct index *x, struct index_change *c);

/* The unused part of the score is zero for every document. */
enum index_mode { INDEX_HYBRID, INDEX_SEMANTIC, INDEX_TEXT };

/* INDEX_WEIGHTED   semantic_weight * semantic + text_weight * text
 * INDEX_RRF        reciprocal rank fusion: visible and admitted documents are
 *                  in two lists, by semantic and by text, from the best to the
 *                  worst above zero. The best 200 of each count, ties in the
 *                  order of answers. Equal documents share the rank of the
 *                  first of them, and so does a document of the other list
 *                  that equals the last. A document at ranks r and s scores
 *
 *                      (1 / (60 + r) + 1 / (60 + s)) / (2 / 61)
 *
 *                  so 1 is first in both, and about a half first in one; a list
 *                  without it adds nothing. A search by one part has one list,
 *                  whose first document scores 1. */
enum index_fusion { INDEX_WEIGHTED, INDEX_RRF };

/* Borrowed until index_search_end. */
struct index_query {
    struct str text;
    const float *vector; /* dims of the index. NULL, or a vector without
                          * direction: by words only, whatever the mode */
    enum index_mode mode;
    enum index_fusion fusion;
    float semantic_weight,
        text_weight; /* of INDEX_HYBRID. Both zero: 0.7 and 0.3. A sum above one
                      * is scaled to one; negative and non-finite weights count
                      * as zero */

    /* The requester sees all of these classes: public, this org, this creator;
     * an empty name: none. */
    struct str org, creator;
    bool sees_all;
    bool leaves_aside;       /* except for what is put aside */
    const uint32_t *granted; /* agents that are visible besides */
    size_t n_granted;
    /* Whether a document counts. Asked only for visible documents, not for all
     * of them, and perhaps twice for one, so it must be consistent. NULL: all
     * count. skill may be INDEX_AGENT. */
    bool (*admits)(void *ctx, uint32_t number, uint32_t skill);
    void *ctx;

    bool is_plain; /* routing: the cosine is the largest of profile and skills,
                    * however few words a skill has */
};

/* A document in an answer. text and semantic are 0..1 with every fusion; score
 * is the rank criterion, 0..1 too. */
struct index_match {
    uint32_t skill; /* or INDEX_AGENT */
    float score, semantic, text;
};

enum { INDEX_MATCHES_MAX = 8 };

struct index_hit {
    uint32_t number;
    float score; /* of the best match */
    /* best first, above zero; ties in the order of the card, the agent
     * itself last */
    struct index_match matches[INDEX_MATCHES_MAX];
    size_t n_matches;
};

/* Begin a search. index_next returns agents one by one, best first; ties by
 * name, ignoring case. Agents with a score of zero are left out. Do not change
 * the index meanwhile; one search at a time. ERR_NOMEM. */
MUST_USE enum err index_search_begin(struct index *x,
                                     const struct index_query *q);
bool index_next(struct index *x, struct index_hit *out);

/* How many agents have at least that score in all, returned or not; far cheaper
 * than returning them. */
size_t index_count(struct index *x, double least);

void index_search_end(struct index *x);

/* Routing: the similarity of a text to every agent. */

struct index_near {
    bool is_seen;
    bool is_fine; /* else cosine is a guess, and skill is unset */
    /* its best skill, as in a hybrid search; INDEX_AGENT: none */
    uint32_t skill;
    /* with its profile, plus most of the lead of its nearest skill
     * (is_plain: all of it), 0..1; negative: nothing to compare */
    float cosine;
    float text;    /* of its best document, 0..1 */
    float generic; /* 0 to 0.15: how much more generic its profile is than those
                    * of public agents, by first parts where vectors have two */
    struct card_level level; /* the level for quick queries, if this is one or
                              * the vectors of the agent are quick */
};

/* The rest, apart from the guesses of thousands of agents, which stay
 * contiguous. */
struct index_fine {
    float over;     /* how far its level is above that of a third of the public
                     * agents */
    float profile;  /* the cosine without its skills; negative: none */
    float own_text; /* of its own document, without its skills */
    uint32_t n_skills; /* number of its skills */
    uint32_t n_cards;  /* public agents of its creator; of the platform: 1 */
};

/* Results by agent number, *n of them; borrowed until the next call or change.
 * From q, the text and the requester count. vector: packed, dims of the index;
 * empty or malformed: by words only. ERR_NOMEM. */
MUST_USE enum err index_near(struct index *x, const struct index_query *q,
                             struct str vector, const struct index_near **out,
                             size_t *n);

/* A cheaper variant: cosine is an upper bound until index_near_fine makes it
 * exact in place, before the next search or change. */
MUST_USE enum err index_near_guess(struct index *x, const struct index_query *q,
                                   struct str vector,
                                   const struct index_near **out, size_t *n);
const struct index_fine *index_near_fine(struct index *x, uint32_t number);

/* Visible agents of that result, one bit each, 64 in a word. */
const uint64_t *index_near_seen(const struct index *x);

/* Levels: how high a card scores for messages that are not meant for it. */

enum { INDEX_REFERENCE_MAX = 1024 }; /* maximal number of texts */

/* Set the vectors of the reference texts, n of them, packed, dims of the index.
 * Cards that are put from now on have a level; present ones get theirs by
 * index_level_some. index_set_dims drops the reference. ERR_NOMEM: no card gets
 * a level. */
MUST_USE enum err index_set_reference(struct index *x, const uint8_t *packed,
                                      size_t n);

/* The quick vectors of the same texts, where vectors have two parts: cards then
 * have a level for quick queries too. */
MUST_USE enum err index_set_quick_reference(struct index *x,
                                            const uint8_t *packed, size_t n);

/* Number of reference texts; of quick ones. */
size_t index_references(const struct index *x);
size_t index_quick_references(const struct index *x);

/* Compute the levels of up to `max` cards that lack them. False: none is
 * left. */
bool index_level_some(struct index *x, size_t max);

/* The same for one turn of the loop: a few cards, fewer if they are large. */
bool index_level_turn(struct index *x);

/* The level for full queries (that for quick ones, if the vectors of the agent
 * are quick), and the level for quick queries. Negative: unknown. */
struct card_level index_level(const struct index *x, uint32_t number);
struct card_level index_quick_level(const struct index *x, uint32_t number);

/* Whether the agent has vectors, but only quick ones so far. */
bool index_is_for_now(const struct index *x, uint32_t number);

/* Whether a document that the requester of q sees contains each of n words (by
 * stem). Only the first INDEX_DOC_TERMS_MAX words of a document count, and no
 * stop words. ERR_NOMEM: all false. */
MUST_USE enum err index_says(struct index *x, const struct index_query *q,
                             const struct str *words, size_t n, bool *has_word);

/* Call `each` for every search term of a text, without stop words: the word in
 * the text, and its stem. Shows which words matched. */
void index_terms(struct str text,
                 void (*each)(void *ctx, struct str word, struct str stem),
                 void *ctx);

/* A snapshot. `stamp` identifies its contents and must be the same on restore:
 * the registry derives it from its sequence and its model. Agents keep their
 * numbers, and searches give the same answers to the last bit. ERR_IO: write
 * returned false; ERR_NOMEM. */
enum { INDEX_STAMP_BYTES = 64 };

MUST_USE enum err index_save(const struct index *x,
                             const uint8_t stamp[INDEX_STAMP_BYTES],
                             bool (*write)(void *ctx, struct str bytes),
                             void *ctx);

/* Restore into an empty index, which then has the dims of the snapshot. The
 * bytes are validated. ERR_BAD_CONFIG: not a snapshot, damaged, or of another
 * stamp, version or make; ERR_LIMIT, ERR_NOMEM. The index is then empty with
 * its previous dims, and why (may be NULL) has the reason. */
MUST_USE enum err index_restore(struct index *x,
                                const uint8_t stamp[INDEX_STAMP_BYTES],
                                struct str bytes, struct why *why);

struct index_stats {
    size_t agents, documents, vectors, terms;
    size_t bytes;        /* total */
    size_t vector_bytes; /* of that, including spare room */
    int64_t searches_total;
    int64_t scanned_total; /* documents guessed, in all searches */
    int64_t refined_total; /* documents computed exactly */
};

struct index_stats index_stats(const struct index *x);

#endif
