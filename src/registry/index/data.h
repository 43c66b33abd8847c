#ifndef REGISTRY_INDEX_DATA_H
#define REGISTRY_INDEX_DATA_H

/* The data structures of the index: agents with their documents, packed
 * vectors, and one search. */

#include "base/map.h"
#include "registry/index/internal.h"

/* ---- vectors: documents by vector ----
 *
 * The two planes of bytes of packed vectors (vec.h) are stored apart, so that
 * the guess of all reads only the one it needs, row after row. Blocks of
 * documents never move: growing copies nothing. The first two hold FIRST_DOCS,
 * each further one as many as all before it, until a plane is two megabytes;
 * from then on all have that size. */

/* A row of two parts may need some more bytes than its numbers. */
enum { INDEX_STRIDE_MAX = INDEX_DIMS_MAX + 128 };

enum { FIRST_DOCS = 256, PLANE_BYTES = 2 * 1024 * 1024 };

struct vec_block {
    uint32_t first, n_docs;
    float *scale, *slack; /* zero: no vector */
    float *quick_slack;   /* of the first part only */
    float *quick;         /* one: quick, zero: full, or of one part */
    int8_t *high, *low;   /* `stride` bytes a row, see index_vecs */
};

struct index_vecs {
    const struct vec_ops *ops; /* for this processor; tests use others */
    uint32_t dims;
    uint32_t quick;     /* length of the first part; zero: one part only */
    uint32_t most_docs; /* in a block: a power of two */
    /* Bytes of a row in a plane: its first part and the rest, each padded to 64
     * with zeroes. With one part, that is the head. The heads of 64 rows are
     * contiguous, and then their tails, so that a quick query reads heads one
     * after the other. */
    size_t head, tail;
    size_t stride; /* head + tail */
    size_t width;  /* bytes that are not zero in all rows: the stride, or the
                    * head if the writer knows that tails are zero */
    struct vec_block *blocks;
    size_t n_blocks, cap;
};

/* Compared with rows: a packed vector, its planes laid out as a row, head and
 * tail. */
struct vec_query {
    struct vec_packed v;
    bool is_quick;
};

/* Lay p out in planes of `stride` bytes each, one after the other. p may have
 * only the first part. */
struct vec_query index_vecs_lay(const struct index_vecs *v,
                                const struct vec_packed *p, int8_t *planes);

/* Drop all vectors and set the dims and the length of the first part. */
void index_vecs_reset(struct index_vecs *v, uint32_t dims, uint32_t quick);
/* Make room for documents with numbers below n. ERR_NOMEM. */
MUST_USE enum err index_vecs_reserve(struct index_vecs *v, size_t n);
/* NULL: no vector. Needs room for doc. */
void index_vecs_set(struct index_vecs *v, uint32_t doc, const uint8_t *packed);
void index_vecs_get(const struct index_vecs *v, uint32_t doc, uint8_t *packed);
size_t index_vecs_bytes(const struct index_vecs *v);

/* The vector of a document as a query, laid out in planes; all zero if it has
 * none. */
struct vec_query index_vecs_row(const struct index_vecs *v, uint32_t doc,
                                int8_t *planes);
bool index_vecs_is_quick(const struct index_vecs *v, uint32_t doc);

/* The exact similarity of a document to q by the rule of vec.h, 0..1. */
float index_vecs_likeness(const struct index_vecs *v, const struct vec_query *q,
                          uint32_t doc);

/* The same for 64 documents from `first` on; the planes of q are those of
 * index_vecs_lay. */
void index_vecs_likeness_64(const struct index_vecs *v,
                            const struct vec_query *q, uint32_t first,
                            float *out);

/* The length of the sums of index_vecs_add: the first part, where there are
 * two. */
static inline size_t index_vecs_reach(const struct index_vecs *v)
{
    return v->quick ? v->quick : v->dims;
}

/* Add the vector of a document to sum, in integers. A full vector with two
 * parts adds its first part, scaled as if it were quick. */
void index_vecs_add(const struct index_vecs *v, uint32_t doc, double *sum);

/* Upper bounds of index_vecs_likeness for the rows in `mask`, of 64 documents
 * from `first` on; zero without a vector. The other bounds are undefined. */
void index_vecs_bound_some(const struct index_vecs *v,
                           const struct vec_query *q, uint32_t first,
                           uint64_t mask, float *out);

/* Whether a similarity with that bound is certainly above zero; false:
 * unknown. */
bool index_vecs_is_above_zero(const struct index_vecs *v,
                              const struct vec_query *q, uint32_t doc,
                              float bound);

/* ---- levels, for each kind of query ---- */

enum query_kind {
    QUERY_FULL, /* also with vectors of one part */
    QUERY_QUICK,
    N_QUERY_KINDS,
};

struct levels_of {
    struct card_level of[N_QUERY_KINDS];
};
#define NO_LEVELS ((struct levels_of){{{-1, -1}, {-1, -1}}})

/* ---- agents ---- */

#define NO_CLASS UINT32_MAX

struct class
{
    size_t n_users; /* agents in it, and prepared changes that will add one */
    struct str key; /* its kind, one byte, and its name; stored after this */
    uint32_t number;

    /* generic.c: the vote of a creator. */
    size_t n_public; /* public agents with vectors */
    double *sum;     /* of their vectors. NULL: not needed yet */
    uint32_t slot;   /* of the only agent, while there is no sum */
    bool is_voting;  /* its vote is in the total */
    bool is_new;     /* its sum is being computed */
    int64_t likeness;
    float level; /* the lowest level of its agents in the tier that is computed;
                  * negative: unknown */
};

struct index_entry {
    uint32_t number, cls;
    uint32_t owner; /* the class of its creator; NO_CLASS: the platform */
    bool has_vectors, is_for_now;
    uint32_t slot;     /* of its profile */
    uint64_t shown_in; /* the last search that returned it */
    struct str name;   /* stored after docs */
    size_t n_docs;     /* itself and its skills */
    uint32_t docs[];
};

struct index_change {
    struct index_entry *entry; /* without number and docs yet */
    uint8_t *vectors; /* of its documents and its profile; NULL: none */
    uint64_t epoch;   /* of the vectors */
    bool is_for_now;
    bool has_level; /* from a snapshot: not computed again */
    struct levels_of level;
    struct text_doc **texts; /* one for each document */
};

/* The agent and skill of a document. */
struct doc {
    uint32_t number, skill;
    float part; /* weight of a skill in routing, see index_near.c */
};

/* ---- profiles: the vectors that agents are routed by ---- */

#define NO_AGENT UINT32_MAX

struct index_profiles {
    struct index_vecs vecs; /* by slot */
    uint32_t *agent;        /* agent number; NO_AGENT: free */
    bool *has_vector, *is_quick;
    bool *is_aside;          /* visible only to a requester who sees all */
    float *generic;          /* penalty for generic cards */
    struct levels_of *level; /* how high it scores for messages of others */
    uint32_t *free;
    size_t n, n_free, n_promised, cap;
    bool is_stale; /* `generic` is out of date */

    /* generic.c: the total of all public profiles. */
    double *total; /* sum of all votes, and scratch space. NULL: not needed
                    * yet */
    struct vec_query centre;     /* the total as a query; stored after total */
    float common[N_QUERY_KINDS]; /* the level that a third of the votes are
                                  * below; zero: unknown */
    float middle, spread; /* of the cosines with the total; spread is zero if
                           * there are no penalties */
};

/* Reserve a slot, so that profiles_put cannot fail; and release it.
 * ERR_NOMEM. */
MUST_USE enum err profiles_promise(struct index *x);
void profiles_forget(struct index *x);
/* packed: NULL: no vector. */
void profiles_put(struct index *x, struct index_entry *e,
                  const uint8_t *packed);
void profiles_drop(struct index *x, const struct index_entry *e);
/* Bits of 64 slots from i on: those in use; and of these, those that are not
 * put aside. */
uint64_t profiles_used(const struct index_profiles *p, size_t i);
uint64_t profiles_in_front(const struct index_profiles *p, size_t i);
void profiles_fini(struct index *x);
size_t profiles_bytes(const struct index *x);

/* The weight of a skill, from its words and those of its agent.
 * (index_near.c) */
float near_part(const struct text_doc *agent, const struct text_doc *skill);

/* The cosine of an agent, from that of its profile, p, and that of a skill, s.
 * Monotonic in s, also in floats; monotonic in p except for the last bits. */
static inline float near_lean(float p, float part, float s)
{
    return s > p ? p + part * (s - p) : p;
}

/* ---- level: how high a card scores for messages of others ---- */

/* Numbers compared for one card at most. */
enum { LEVEL_WORK_MAX = 8 * 1024 * INDEX_REFERENCE_MAX };

/* How much of a card is compared: every block_step-th block of 64 reference
 * texts, every skill_step-th skill; and how many numbers that are. Needs
 * reference texts. */
struct level_plan {
    size_t block_step, skill_step, work;
};
struct level_plan level_plan(const struct index *x, const struct index_entry *e,
                             enum query_kind tier);

/* The levels of e, whose vectors are in the index. A tier that has a level
 * keeps it. */
struct levels_of level_compute(const struct index *x,
                               const struct index_entry *e,
                               struct levels_of was);

/* The tier of levels that counts for a full query or for a quick one. */
enum query_kind level_tier(const struct index *x, uint32_t slot, bool is_quick);

/* The rank-th smallest of non-negative numbers. (level.c) */
float index_nth(const float *list, size_t n, size_t rank);

/* ---- generic: penalties for cards that resemble everything ---- */

/* e has its class, vector and slot: it is judged from now on, and votes if it
 * is public; or no longer. */
void generic_enter(struct index *x, const struct index_entry *e);
void generic_leave(struct index *x, const struct index_entry *e);
/* All vectors are dropped, or the index is freed. */
void generic_reset(struct index *x);
size_t generic_bytes(const struct index *x);

/* Bring profiles.generic up to date. ERR_NOMEM. */
MUST_USE enum err profiles_judge(struct index *x);

/* ---- one search ---- */

struct weights {
    float semantic, text;
};

/* A document in the heap, see index_rank.c. */
struct spot {
    float key;
    uint32_t doc; /* and IS_EXACT */
};
#define IS_EXACT (UINT32_C(1) << 31)

/* A document with its score. */
struct rated {
    float score;
    uint32_t doc;
};

enum { RRF_BEST = 200, RRF_K = 60 };

struct index_search {
    bool is_open;
    const struct index_query *q;
    struct weights weights;
    bool by_meaning, by_words;
    uint8_t *query; /* its packed vector, and planes of stride bytes */
    struct vec_query vector;
    struct text_query words;
    uint64_t serial;

    /* One per document, or per 64 of them; padded to whole words. */
    size_t cap;
    uint64_t *visible;
    float *bounds;
    float *best_of_64; /* the largest of 64 bounds */
    float *texts;      /* all zero between searches */
    uint32_t *touched;
    size_t n_touched;
    uint64_t *seen; /* of classes */
    size_t seen_cap;
    uint64_t *counted; /* of agents */
    size_t counted_cap;

    struct spot *heap;
    size_t n_heap;
    float floor; /* everything with a bound of at least that is or was in the
                  * heap */
    size_t layer;

    struct rated fused[2 * RRF_BEST];
    size_t n_fused, next_fused;

    struct index_near *near;      /* result of index_near.c, by agent number */
    uint64_t *near_seen;          /* a bit for each visible agent */
    struct index_fine *near_fine; /* of the exact ones */
    float *near_profile;          /* the guess of each profile */
    struct weights near_weights;
    bool near_is_plain; /* of index_query */
    size_t near_cap;
};

struct index {
    size_t max_docs;
    struct text *text;
    struct index_vecs vectors;
    struct index_profiles profiles;
    struct index_vecs reference[N_QUERY_KINDS]; /* level.c: reference texts */
    size_t n_reference[N_QUERY_KINDS];
    uint32_t next_level; /* agents below have their levels, where possible */
    uint64_t epoch;      /* incremented by index_set_dims */

    struct index_entry **agents; /* by number, max_docs of them; the system
                                  * commits only touched pages */
    size_t n_agents, agents_end;

    /* Documents by number. Used and free ones are below n_docs; there is room
     * for all promised ones. */
    struct doc *docs;
    uint32_t *doc_class; /* NO_CLASS: free; padded to the next 64 */
    uint32_t *free_docs;
    size_t n_docs, n_free, n_promised, docs_cap;
    size_t n_vectors;

    struct map by_class;
    struct class **classes; /* by number */
    uint32_t *free_classes;
    size_t n_classes, n_free_classes, classes_cap;

    struct index_search search;
    struct index_stats stats; /* the counters */
};

/* Resize p to n elements of `size`. These arrays have an element per document,
 * agent or class, so they may be large: NULL without memory, p is unchanged. */
void *index_grow(void *p, size_t n, size_t size);

/* The same for an array in a variable; false without memory. */
#define INDEX_GROW(array, n)                                            \
    ({                                                                  \
        void *index_grown = index_grow((array), (n), sizeof(*(array))); \
                                                                        \
        if (index_grown)                                                \
            (array) = index_grown;                                      \
        index_grown != NULL;                                            \
    })

/* Order of documents in answers: the name of the agent, then the position of
 * the skill in its card (the agent itself last). */
int index_doc_order(const struct index *x, uint32_t a, uint32_t b);

/* A change of n_docs documents without their words yet; reserves room for them.
 * owner: the creator, empty for the platform. ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err index_change_new(struct index *x, struct str name,
                                   struct index_class cls, struct str owner,
                                   size_t n_docs, struct index_change **out);

/* Copy the packed vectors of all its documents into the change. ERR_NOMEM. */
MUST_USE enum err index_change_vectors(struct index *x, struct index_change *c,
                                       const uint8_t *vectors);

/* The number of a class, NO_CLASS if there is none. */
uint32_t index_class_find(const struct index *x, struct index_class cls);
/* Find or create the class and count one more member; one less. ERR_LIMIT,
 * ERR_NOMEM. */
MUST_USE enum err index_class_take(struct index *x, struct index_class cls,
                                   uint32_t *out);
void index_class_leave(struct index *x, uint32_t number);
bool index_class_is_aside(const struct index *x, uint32_t number);

/* Begin of every search: make room, and mark the documents and classes that the
 * requester of q sees. ERR_NOMEM. */
MUST_USE enum err search_see(struct index *x, const struct index_query *q);

/* Read the packed vector of the query, with planes as long as a row. False:
 * malformed. */
bool search_take_packed(struct index *x, const uint8_t *packed, size_t n);

/* The weights of the parts of a score. */
struct weights search_weights(const struct index_query *q, bool has_vector);
bool search_admits(const struct index_query *q, const struct index *x,
                   uint32_t doc);
static inline bool search_sees_aside(const struct index_query *q)
{
    return q->sees_all && !q->leaves_aside;
}

/* Up to so many of 64 rows are compared one by one, so that a few visible rows
 * among many others do not cost a full pass. */
enum { SPARSE = 32 };

/* The definitions of a score. Both are monotonic in every part, so upper bounds
 * of the parts give an upper bound. */
static inline float weighted_score(struct weights w, float semantic, float text)
{
    float sum = w.semantic * semantic + w.text * text;

    return sum < 1 ? sum : 1;
}

/* Ranks count from one; zero: not in that list. */
static inline float rrf_score(size_t semantic, size_t text, size_t n_lists)
{
    double sum = (semantic ? 1.0 / (double)(RRF_K + semantic) : 0) +
                 (text ? 1.0 / (double)(RRF_K + text) : 0);

    return (float)(sum * (RRF_K + 1) / (double)n_lists);
}

/* ---- rank: documents best first ---- */

/* Rank by these weights from now on. */
void rank_begin(struct index *x, struct weights w);
/* The next best visible and admitted document above zero. Documents of agents
 * that this search has already returned may be left out. */
bool rank_next(struct index *x, struct rated *out);
float rank_score(struct index *x, uint32_t doc, struct weights w,
                 struct index_match *parts);

#endif
