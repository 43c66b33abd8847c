#ifndef INDEX_DATA_H
#define INDEX_DATA_H

/* What index.c, classes.c, vectors.c, rank.c, search.c, slow.c and snapshot.c
 * know of each other: agents with their documents, packed vectors, and one
 * search. */

#include "base/map.h"
#include "index/internal.h"

/* ---- vectors: documents by meaning ----
 *
 * The two planes of bytes of packed vectors (vec.h) lie apart, so that the
 * guess of all reads only the one it needs, one row after the other. Blocks of
 * documents never move: growing copies nothing. The first two hold FIRST_DOCS,
 * each further one as many as all before it, until a plane is two megabytes:
 * then all are of that size. */

/* A row of two parts may need some more than its numbers. */
enum { INDEX_STRIDE_MAX = INDEX_DIMS_MAX + 128 };

enum { FIRST_DOCS = 256, PLANE_BYTES = 2 * 1024 * 1024 };

struct vec_block {
    uint32_t first, n_docs;
    float *scale, *slack; /* zero: it has no vector */
    float *quick_slack;   /* that of its first part alone */
    float *quick;       /* one: it is quick, zero: it is full, or of one part */
    int8_t *high, *low; /* `stride` bytes a row, see index_vecs */
};

struct index_vecs {
    const struct vec_ops *ops; /* those of this processor; tests take others */
    uint32_t dims;
    uint32_t quick;     /* of them the first part; zero: there is one part */
    uint32_t most_docs; /* of a block: a power of two */
    size_t head, tail;  /* bytes of a row in a plane: its first part and the
                         * rest, each up to the next 64; what is between is
                         * zero. Where vectors have one part, that is the head.
                         * Of 64 rows the heads lie together, and then the
                         * tails: a quick query reads one after the other */
    size_t stride;      /* both */
    size_t width;       /* what is beyond is zero in all rows: the stride, or
                         * the head if whoever fills it knows better */
    struct vec_block *blocks;
    size_t n_blocks, cap;
};

/* What rows are compared with: a packed vector, its planes laid out as a row,
 * head and tail. */
struct vec_query {
    struct vec_packed v;
    bool is_quick;
};

/* p, laid out in planes of `stride` bytes each, one behind the other. It may
 * have the first part alone. */
struct vec_query index_vecs_lay(const struct index_vecs *v,
                                const struct vec_packed *p, int8_t *planes);

/* No vectors, of dims from now on, of which the first part are `quick`. */
void index_vecs_reset(struct index_vecs *v, uint32_t dims, uint32_t quick);
/* Room for documents with numbers below n. */
MUST_USE enum err index_vecs_reserve(struct index_vecs *v, size_t n);
/* NULL: none. The room is there. */
void index_vecs_set(struct index_vecs *v, uint32_t doc, const uint8_t *packed);
void index_vecs_get(const struct index_vecs *v, uint32_t doc, uint8_t *packed);
size_t index_vecs_bytes(const struct index_vecs *v);

/* The document's vector as a query, laid out in planes; all zero where there is
 * none. */
struct vec_query index_vecs_row(const struct index_vecs *v, uint32_t doc,
                                int8_t *planes);
bool index_vecs_is_quick(const struct index_vecs *v, uint32_t doc);

/* A document's likeness to q by the rule of vec.h, 0..1: the fine value. */
float index_vecs_likeness(const struct index_vecs *v, const struct vec_query *q,
                          uint32_t doc);

/* Of 64 documents from `first` on, the same; q's planes are as q below. */
void index_vecs_likeness_64(const struct index_vecs *v,
                            const struct vec_query *q, uint32_t first,
                            float *out);

/* How many numbers index_vecs_add adds: those of the first part, where there
 * are two. */
static inline size_t index_vecs_reach(const struct index_vecs *v)
{
    return v->quick ? v->quick : v->dims;
}

/* sum[i] += what the document's vector has there, in whole numbers; of a full
 * one of two parts its first part counts, as long as if it were quick. */
void index_vecs_add(const struct index_vecs *v, uint32_t doc, double *sum);

/* Of 64 documents from `first` on: no less than index_vecs_likeness of each,
 * and zero where there is no vector. */
void index_vecs_bound_64(const struct index_vecs *v, const struct vec_query *q,
                         uint32_t first, float *out);

/* Whether a likeness with that bound is above zero for certain; false: it may
 * be. */
bool index_vecs_is_above_zero(const struct index_vecs *v,
                              const struct vec_query *q, uint32_t doc,
                              float bound);

/* ---- levels, for each kind of query ---- */

enum query_kind {
    QUERY_FULL,
    QUERY_QUICK,
    N_QUERY_KINDS
}; /* of one part: QUERY_FULL */

struct levels_of {
    struct card_level of[N_QUERY_KINDS];
};
#define NO_LEVELS ((struct levels_of){{{-1, -1}, {-1, -1}}})

/* ---- agents ---- */

#define NO_CLASS UINT32_MAX

struct class
{
    size_t n_users; /* agents in it, and changes that will put one there */
    struct str key; /* its kind, a byte, and its name; lies behind this */
    uint32_t number;

    /* generic.c: the vote of a creator. */
    size_t n_public; /* agents that are public and have vectors */
    double *sum;     /* of their vectors. NULL: it was not needed yet */
    uint32_t slot;   /* of the only one, while there is no sum */
    bool is_voting;  /* its vote is in the total */
    bool is_new;     /* its sum is being made */
    int64_t likeness;
    float level; /* the lowest of their levels; below zero: none is known. Of
                  * the tier that is being looked at */
};

struct index_entry {
    uint32_t number, cls;
    uint32_t owner; /* the class of its creator; NO_CLASS: the platform's */
    bool has_vectors, is_for_now;
    uint32_t slot;     /* of its profile */
    uint64_t shown_in; /* the search that gave it last */
    struct str name;   /* lies behind docs */
    size_t n_docs;     /* itself, and its skills */
    uint32_t docs[];
};

struct index_change {
    struct index_entry *entry; /* without number and docs yet */
    uint8_t *vectors; /* of its documents and its profile; NULL: none */
    uint64_t epoch;   /* they are of */
    bool is_for_now;
    bool has_level; /* a snapshot's: it need not be computed */
    struct levels_of level;
    struct text_doc **texts; /* one for each document */
};

/* Where a document belongs. */
struct doc {
    uint32_t number, skill;
    float part; /* of a skill: what it counts for in routing, see near.c */
};

/* ---- profiles: what agents are routed by ---- */

#define NO_AGENT UINT32_MAX

struct index_profiles {
    struct index_vecs vecs; /* by slot */
    uint32_t *agent;        /* whose it is; NO_AGENT: nobody's */
    bool *has_vector, *is_quick;
    float *generic;          /* how like everything it is */
    struct levels_of *level; /* how high it scores for messages of others */
    uint32_t *free;
    size_t n, n_free, n_promised, cap;
    bool is_stale; /* `generic` is of those that were there before */

    /* generic.c: what all public ones say together. */
    double *total; /* of all votes, and room besides. NULL: it was not needed
                    * yet */
    struct vec_query midst;      /* the same, as a query; lies behind total */
    float common[N_QUERY_KINDS]; /* the level that a third of the votes lie
                                  * below; zero: it is not known */
    float middle, spread;        /* of the cosines with it; spread is zero where
                                  * nobody is marked down */
};

/* Room for one more, so that profiles_put cannot fail; and not after all.
 * ERR_NOMEM. */
MUST_USE enum err profiles_promise(struct index *x);
void profiles_forget(struct index *x);
/* packed: NULL: it has no vector. */
void profiles_put(struct index *x, struct index_entry *e,
                  const uint8_t *packed);
void profiles_drop(struct index *x, const struct index_entry *e);
void profiles_fini(struct index *x);
size_t profiles_bytes(const struct index *x);

/* What a skill counts for, from its words and those of its agent. (near.c) */
float near_part(const struct text_doc *agent, const struct text_doc *skill);

/* An agent's cosine, from that of its profile, p, and that of a skill, s. Never
 * less where s is more, also in floats; where p is more, but for the last bits.
 */
static inline float near_lean(float p, float part, float s)
{
    return s > p ? p + part * (s - p) : p;
}

/* ---- level: how high a card scores for messages of others ---- */

/* Numbers that are compared for one card at most. */
enum { LEVEL_WORK_MAX = 8 * 1024 * INDEX_REFERENCE_MAX };

/* How much of a card is compared: every block_step-th block of 64 reference
 * texts, and every skill_step-th skill; and how many numbers that are. The
 * reference texts are there. */
struct level_plan {
    size_t block_step, skill_step, work;
};
struct level_plan level_plan(const struct index *x, const struct index_entry *e,
                             enum query_kind tier);

/* The levels of e, whose vectors are in the index; of a tier that was there
 * already, as it was. */
struct levels_of level_compute(const struct index *x,
                               const struct index_entry *e,
                               struct levels_of was);

/* Which of its levels counts for a full query or for a quick one. */
enum query_kind level_tier(const struct index *x, uint32_t slot, bool is_quick);

/* The rank-th smallest of numbers of zero or more. (level.c) */
float index_nth(const float *list, size_t n, size_t rank);

/* ---- generic: who is like everything ---- */

/* e has its class, its vector and its slot: from now on it is judged, and has a
 * say if it is public; or no longer. */
void generic_enter(struct index *x, const struct index_entry *e);
void generic_leave(struct index *x, const struct index_entry *e);
/* No vector is there any more, or the index goes. */
void generic_reset(struct index *x);
size_t generic_bytes(const struct index *x);

/* Make profiles.generic right. ERR_NOMEM. */
MUST_USE enum err profiles_judge(struct index *x);

/* ---- one search ---- */

struct weights {
    float semantic, text;
};

/* A document on its way to the top, see rank.c. */
struct spot {
    float key;
    uint32_t doc; /* and IS_EXACT */
};
#define IS_EXACT (UINT32_C(1) << 31)

/* A document that has its score. */
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
    uint8_t *query; /* the packed vector of it, planes of stride bytes */
    struct vec_query vector;
    struct text_query words;
    uint64_t serial;

    /* One for each document, or 64 of them; words beyond the last are there. */
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
    float floor; /* what has a bound of that or more is or was in the heap */
    size_t layer;

    struct rated fused[2 * RRF_BEST];
    size_t n_fused, next_fused;

    struct index_near *near;      /* near.c's answer, by the agents' numbers */
    struct index_fine *near_fine; /* of those that are fine */
    float *near_profile;          /* the guess of each as a whole */
    struct weights near_weights;
    bool near_is_plain; /* index_query's */
    size_t near_cap;
};

struct index {
    size_t max_docs;
    struct text *text;
    struct index_vecs vectors;
    struct index_profiles profiles;
    struct index_vecs
        reference[N_QUERY_KINDS]; /* level.c: of the reference texts */
    size_t n_reference[N_QUERY_KINDS];
    uint32_t next_level; /* agents below have their levels, if they can */
    uint64_t epoch;      /* one more with every index_set_dims */

    struct index_entry **agents; /* by number, max_docs of them; the system
                                  * gives memory to what was touched */
    size_t n_agents, agents_end;

    /* Documents by number. Used and free ones lie below n_docs; there is room
     * for all that were promised. */
    struct doc *docs;
    uint32_t *doc_class; /* NO_CLASS: free; up to the next 64, too */
    uint32_t *free_docs;
    size_t n_docs, n_free, n_promised, docs_cap;
    size_t n_vectors;

    struct map by_class;
    struct class **classes; /* by number */
    uint32_t *free_classes;
    size_t n_classes, n_free_classes, classes_cap;

    struct index_search search;
    struct index_stats stats; /* the counters of it */
};

/* Room for n of them, of `size`, in place of p; NULL: memory is gone, and p is
 * as it was. */
void *index_grow(void *p, size_t n, size_t size);

/* Documents, from the best to the worst: the score, the agent's name, the place
 * of the skill in its card (the agent itself last). */
int index_doc_order(const struct index *x, uint32_t a, uint32_t b);

/* A change that holds no documents' words yet, of n_docs; promises them.
 * owner: the creator, empty for the platform's. */
MUST_USE enum err index_change_new(struct index *x, struct str name,
                                   struct index_class cls, struct str owner,
                                   size_t n_docs, struct index_change **out);

/* A copy of the packed vectors of all its documents into the change. */
MUST_USE enum err index_change_vectors(struct index *x, struct index_change *c,
                                       const uint8_t *vectors);

/* The number of a class, NO_CLASS if there is none. ERR_NOMEM. */
MUST_USE enum err index_class_find(const struct index *x,
                                   struct index_class cls, uint32_t *out);
/* The same for one more that is of it: made if there is none; and one less.
 * ERR_NOMEM. */
MUST_USE enum err index_class_take(struct index *x, struct index_class cls,
                                   uint32_t *out);
void index_class_leave(struct index *x, uint32_t number);

/* What every search begins with: room, and which documents and classes q's
 * requester sees. ERR_NOMEM. */
MUST_USE enum err search_see(struct index *x, const struct index_query *q);

/* The query's vector from its packed form, its planes as long as a row. */
bool search_take_packed(struct index *x, const uint8_t *packed, size_t n);

/* What the parts of a score count. */
struct weights search_weights(const struct index_query *q, bool has_vector);
bool search_admits(const struct index_query *q, const struct index *x,
                   uint32_t doc);

/* The definition of a score; both never go down when a part goes up, so what
 * they make of an upper bound is one. */
static inline float score_of(struct weights w, float semantic, float text)
{
    float sum = w.semantic * semantic + w.text * text;

    return sum < 1 ? sum : 1;
}

/* Places count from one; zero: it has none in that list. */
static inline float score_of_places(size_t semantic, size_t text,
                                    size_t n_lists)
{
    double sum = (semantic ? 1.0 / (double)(RRF_K + semantic) : 0) +
                 (text ? 1.0 / (double)(RRF_K + text) : 0);

    return (float)(sum * (RRF_K + 1) / (double)n_lists);
}

/* ---- rank: documents best first ---- */

/* Rank by these from now on. */
void rank_begin(struct index *x, struct weights w);
/* The next best one, above zero, of what is seen and admitted. Documents of
 * agents that were shown in this search may be left out. */
bool rank_next(struct index *x, struct rated *out);
float rank_score(struct index *x, uint32_t doc, struct weights w,
                 struct index_match *parts);

#endif
