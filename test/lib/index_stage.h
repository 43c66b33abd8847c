#ifndef TEST_INDEX_STAGE_H
#define TEST_INDEX_STAGE_H

/* A made-up world for the index: agents with words and vectors, seen by few or
 * by all, drawn from a seed; questions of all kinds; and the comparison of the
 * search with the slow one. Anyone who includes it says what CHECK is: test/t.h
 * does, and a fuzz target, which has no such main, has assert. */

#include "registry/index/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STAGE_WORDS = 400,
    STAGE_SKILLS = 12,
    STAGE_TEXT = 256,
    STAGE_CENTRES = 24,
    STAGE_USERS = 6,
    STAGE_ORGS = 3,
    STAGE_DIMS_MAX = 4096,
};

static const uint64_t stage_seed[2] = {11, 22};

struct world {
    struct index *x;
    uint32_t n_numbers, dims;
    uint32_t quick; /* numbers of the first part; zero: vectors have one */
    uint64_t rand;
    float centres[STAGE_CENTRES][STAGE_DIMS_MAX];
    /* The agent that was made last. */
    struct agent agent;
    struct skill skills[STAGE_SKILLS];
    char texts[2 * STAGE_SKILLS + 2][STAGE_TEXT];
    char name[32];
    uint8_t *vectors;
    /* The question that was made last. */
    struct index_query query;
    char text[STAGE_TEXT];
    float vector[STAGE_DIMS_MAX];
    uint32_t granted[8];
    unsigned passes; /* of 16 documents, the filter lets so many pass */
};

static inline uint32_t any(struct world *w, uint32_t below)
{
    w->rand ^= w->rand << 13;
    w->rand ^= w->rand >> 7;
    w->rand ^= w->rand << 17;
    return below ? (uint32_t)((w->rand >> 20) % below) : 0;
}

static inline float any_part(struct world *w)
{
    return (float)any(w, 2000001) / 1e6F - 1;
}

static inline struct world *world_new(uint32_t n_numbers, uint32_t dims,
                                      uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));

    CHECK(w);
    w->n_numbers = n_numbers;
    w->dims = dims;
    w->rand = seed * 0x9e3779b97f4a7c15 + 1;
    w->x = index_new((size_t)(n_numbers + 2) * (STAGE_SKILLS + 1), stage_seed);
    w->vectors = malloc((STAGE_SKILLS + 1) * vec_packed_bytes(dims));
    CHECK(w->x && w->vectors);
    index_set_dims(w->x, dims);
    for (size_t i = 0; i < STAGE_CENTRES; i++)
        for (size_t k = 0; k < dims; k++)
            w->centres[i][k] = any_part(w);
    return w;
}

/* Vectors have two parts, and half of them are quick. */
static inline struct world *world_of_parts(uint32_t n_numbers, uint32_t dims,
                                           uint32_t quick, uint64_t seed)
{
    struct world *w = world_new(n_numbers, dims, seed);

    w->quick = quick;
    index_set_parts(w->x, dims, quick);
    return w;
}

static inline void world_free(struct world *w)
{
    index_free(w->x);
    free(w->vectors);
    free(w);
}

/* Common words are more common: half of what is said are a few of them. */
static inline void any_words(struct world *w, char *out, uint32_t n)
{
    static const char *const parts[] = {"ba", "ke", "li", "mo", "nu",
                                        "ra", "se", "ti", "vo", "zu"};
    size_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t u = any(w, 1000), word;

        word = (uint32_t)((uint64_t)u * u * u / 1000000 * STAGE_WORDS / 1000);
        at += (size_t)snprintf(out + at, STAGE_TEXT - at, "%s%s%sx ",
                               parts[word % 10], parts[word / 10 % 10],
                               parts[word / 100 % 10]);
    }
    out[at] = 0;
}

/* Near a centre, or where the guess is off as far as it can be: all of its
 * likeness in the bytes that the guess leaves out. */
static inline void any_vector(struct world *w, float *v)
{
    const float *centre = w->centres[any(w, STAGE_CENTRES)];
    uint32_t kind = any(w, 20);

    for (size_t k = 0; k < w->dims; k++)
        if (kind == 0)
            v[k] = 0;
        else if (kind < 4)
            v[k] = k ? copysignf(120, centre[k]) : 32512;
        else
            v[k] = centre[k] + (kind < 7 ? 0 : any_part(w));
    if (w->quick && any(w, 2))
        memset(v + w->quick, 0, (w->dims - w->quick) * sizeof(*v));
    else if (w->quick && any(w, 2))
        (void)vec_join(v, w->dims, w->quick);
}

static inline void any_vectors(struct world *w)
{
    float v[STAGE_DIMS_MAX];

    for (size_t i = 0; i <= w->agent.n_skills; i++) {
        any_vector(w, v);
        vec_pack(v, w->dims, w->vectors + i * vec_packed_bytes(w->dims));
    }
}

static inline struct str user_name(uint32_t i)
{
    static const char *const names[] = {"ann", "bob", "cyd",
                                        "dan", "eve", "fay"};
    return str_of(names[i % STAGE_USERS]);
}

static inline struct str org_name(uint32_t i)
{
    static const char *const names[] = {"acme", "bolt", "cord"};
    return str_of(names[i % STAGE_ORGS]);
}

static inline void any_agent(struct world *w, uint32_t number)
{
    struct agent *a = &w->agent;
    bool is_plain = any(w, 10) == 0; /* says what others say, too */

    *a = (struct agent){.skills = w->skills};
    snprintf(w->name, sizeof(w->name), "%c-%u", 'a' + number * 7 % 26, number);
    a->name = str_of(w->name);
    any_words(w, w->texts[0], is_plain ? 0 : any(w, 8));
    a->description = str_of(w->texts[0]);
    a->visibility = 1 + any(w, 3);
    a->creator = user_name(any(w, STAGE_USERS));
    a->kind = any(w, 2) ? AGENT_PLATFORM : AGENT_MANAGED;
    a->org = any(w, 4) ? org_name(any(w, STAGE_ORGS)) : STR("");
    a->n_skills = any(w, any(w, 4) ? 5 : STAGE_SKILLS + 1);
    for (size_t i = 0; i < a->n_skills; i++) {
        char *name = w->texts[1 + 2 * i], *text = w->texts[2 + 2 * i];

        any_words(w, name, is_plain ? 1 : 1 + any(w, 2));
        any_words(w, text, is_plain ? 0 : 2 + any(w, 12));
        w->skills[i] =
            (struct skill){.name = str_of(name), .description = str_of(text)};
    }
    any_vectors(w);
}

static inline void put_any(struct world *w, uint32_t number)
{
    struct index_change *c;

    any_agent(w, number);
    CHECK(index_prepare(w->x, &w->agent, any(w, 8) ? w->vectors : NULL, &c) ==
          OK);
    index_put(w->x, number, c);
}

/* Something changes, or nearly. */
static inline void any_change(struct world *w)
{
    uint32_t number = any(w, w->n_numbers + 1);
    struct index_change *c;

    switch (any(w, 8)) {
    case 0:
    case 1: index_drop(w->x, number); break;
    case 2:
        any_agent(w, number);
        CHECK(index_move(w->x, number, index_class_of(&w->agent)) == OK);
        break;
    case 3:
        any_agent(w, number);
        CHECK(index_prepare(w->x, &w->agent, w->vectors, &c) == OK);
        index_forget(w->x, c);
        break;
    default: put_any(w, number);
    }
}

static inline bool stage_admits(void *ctx, uint32_t number, uint32_t skill)
{
    const struct world *w = ctx;

    return (number * 2654435761U + skill * 40503U) >> 7 & 1
               ? (number + skill) % 16 < w->passes
               : (number * 5 + skill) % 16 < w->passes;
}

static inline void any_eyes(struct world *w)
{
    struct index_query *q = &w->query;

    q->creator = any(w, 3) ? user_name(any(w, STAGE_USERS)) : STR("");
    q->org = any(w, 3) ? org_name(any(w, STAGE_ORGS)) : STR("missing");
    q->sees_all = any(w, 6) == 0;
    q->granted = w->granted;
    q->n_granted = any(w, 3) ? 0 : any(w, 8);
    for (size_t i = 0; i < q->n_granted; i++)
        w->granted[i] = any(w, w->n_numbers + 5);
    w->passes = any(w, 3) ? 16 : any(w, 17);
    q->admits = w->passes == 16 ? NULL : stage_admits;
    q->ctx = w;
}

static inline const struct index_query *any_query(struct world *w)
{
    struct index_query *q = &w->query;

    *q = (struct index_query){.text = str_of(w->text)};
    any_words(w, w->text, any(w, 7));
    any_vector(w, w->vector);
    if (any(w, 6) == 0)
        w->vector[0] = 0;
    q->vector = any(w, 10) ? w->vector : NULL;
    q->mode = any(w, 3) ? INDEX_HYBRID : any(w, 3);
    q->fusion = any(w, 5) ? INDEX_WEIGHTED : INDEX_RRF;
    if (any(w, 4) == 0) {
        q->semantic_weight = (float)any(w, 12) / 10;
        q->text_weight = (float)any(w, 12) / 10;
    }
    any_eyes(w);
    return q;
}

static inline bool hits_are_same(const struct index_hit *a,
                                 const struct index_hit *b)
{
    if (a->number != b->number || a->n_matches != b->n_matches ||
        memcmp(&a->score, &b->score, sizeof(a->score)) != 0)
        return false;
    return memcmp(a->matches, b->matches,
                  a->n_matches * sizeof(a->matches[0])) == 0;
}

/* The best `limit` by the search; how many there are. */
static inline size_t search_hits(struct index *x, const struct index_query *q,
                                 struct index_hit *out, size_t limit)
{
    size_t n = 0;

    CHECK(index_search_begin(x, q) == OK);
    while (n < limit && index_next(x, &out[n]))
        n++;
    index_search_end(x);
    return n;
}

/* Whether as many are counted as come: of all, before any has come and behind
 * half of `hits`; and of those with the score of the middle one, or better. */
static inline bool count_is_exact(struct index *x, const struct index_query *q,
                                  const struct index_hit *hits, size_t n)
{
    double least = n ? (double)hits[n / 2].score : 0;
    size_t at_least = 0, all = 0, counted, counted_later, counted_least;
    struct index_hit h;

    CHECK(index_search_begin(x, q) == OK);
    counted = index_count(x, 0);
    for (size_t i = 0; i < n / 2; i++)
        CHECK(index_next(x, &h));
    counted_later = index_count(x, 0);
    counted_least = index_count(x, least);
    index_search_end(x);
    CHECK(index_search_begin(x, q) == OK);
    while (index_next(x, &h)) {
        at_least += (double)h.score >= least;
        all++;
    }
    index_search_end(x);
    return counted == all && counted_later == all && counted_least == at_least;
}

/* Whether both say the same, down to the last bit. */
static inline bool search_is_exact(struct index *x, const struct index_query *q,
                                   size_t limit)
{
    struct index_hit *fast = calloc(limit + 1, sizeof(*fast));
    struct index_hit *slow = calloc(limit + 1, sizeof(*slow));
    size_t n_fast, n_slow = 0;
    bool same;

    CHECK(fast && slow);
    n_fast = search_hits(x, q, fast, limit);
    CHECK(index_search_slow(x, q, slow, limit, &n_slow) == OK);
    same = n_fast == n_slow && count_is_exact(x, q, slow, n_slow);
    for (size_t i = 0; same && i < n_fast; i++)
        same = hits_are_same(&fast[i], &slow[i]);
    free(fast);
    free(slow);
    return same;
}

#endif
