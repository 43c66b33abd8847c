/* How high a card scores for messages that are not meant for it: the median and
 * the 95th percentile of its cosines with the reference texts. These cosines
 * are those of routing (index_near.c), so a level and the score of a message
 * are on one scale, whatever the model.
 *
 * Where vectors have two parts, a card has two levels: one for quick queries,
 * from the quick reference vectors, and one for full queries. The first uses
 * only first parts, so apart from rounding it does not depend on whether the
 * vectors of the card are quick or full.
 *
 * A level depends only on the card and the model. It is computed when the card
 * enters the index, and for all cards in steps once the reference vectors are
 * there, which a provider may take its time for.
 *
 * The cost of a card is its documents times the reference texts times the
 * length of a vector. Beyond LEVEL_WORK_MAX numbers, only every second, third …
 * block of 64 texts is compared, and if one block is too much, only every
 * second, third … skill. The profile always is. So LEVEL_WORK_MAX limits the
 * cost of one card, and of the cards of one turn of the loop. */
#include "registry/index/data.h"

#include <stdlib.h>

#include "base/fault.h"

enum {
    BLOCK = 64, /* texts compared at once */
    TURN_CARDS = 8,
};

static const double HIGH = 0.95;

/* The rank-th smallest of n non-negative numbers, which sort like their bits.
 * Found byte by byte, in a time that does not depend on the values. */
float index_nth(const float *list, size_t n, size_t rank)
{
    uint64_t found = 0;
    uint32_t bits;
    float out;

    for (int shift = 24; shift >= 0; shift -= 8) {
        size_t count[256] = {0}, at = 0;

        for (size_t i = 0; i < n; i++) {
            memcpy(&bits, &list[i], sizeof(bits));
            if ((uint64_t)bits >> (shift + 8) == found)
                count[bits >> shift & 255]++;
        }
        while (rank >= count[at])
            rank -= count[at++];
        found = found << 8 | at;
    }
    bits = (uint32_t)found;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

static enum err level_set_reference(struct index *x, enum query_kind tier,
                                    const uint8_t *packed, size_t n)
{
    struct index_vecs *to = &x->reference[tier];
    size_t each = vec_packed_bytes(x->vectors.dims);
    enum err e;

    index_vecs_reset(to, x->vectors.dims, x->vectors.quick);
    x->n_reference[tier] = 0;
    n = n < INDEX_REFERENCE_MAX ? n : INDEX_REFERENCE_MAX;
    e = index_vecs_reserve(to, (n + 63) / 64 * 64);
    if (e)
        return e;
    if (tier == QUERY_QUICK)
        to->width = to->head;
    for (uint32_t i = 0; i < n; i++) {
        index_vecs_set(to, i, packed + i * each);
        if (!index_vecs_is_quick(to, i))
            to->width = to->stride; /* not quick, as they should be */
    }
    x->n_reference[tier] = n;
    x->next_level = 0;
    return OK;
}

enum err index_set_reference(struct index *x, const uint8_t *packed, size_t n)
{
    return level_set_reference(x, QUERY_FULL, packed, n);
}

enum err index_set_quick_reference(struct index *x, const uint8_t *packed,
                                   size_t n)
{
    return level_set_reference(x, QUERY_QUICK, packed, n);
}

size_t index_references(const struct index *x)
{
    return x->n_reference[QUERY_FULL];
}

size_t index_quick_references(const struct index *x)
{
    return x->n_reference[QUERY_QUICK];
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

_Static_assert(LEVEL_WORK_MAX / (BLOCK * INDEX_DIMS_MAX) >= 2,
               "the profile and a skill can be compared");

/* `most`: the number of blocks that may be compared, for all documents
 * together. */
struct level_plan level_plan(const struct index *x, const struct index_entry *e,
                             enum query_kind tier)
{
    const struct index_vecs *reference = &x->reference[tier];
    size_t block = BLOCK * reference->width, most = LEVEL_WORK_MAX / block;
    size_t n_blocks = divide_up(x->n_reference[tier], BLOCK);
    size_t n_skills = e->n_docs - 1;
    struct level_plan p = {.block_step = n_blocks, .skill_step = 1};

    if (most >= e->n_docs)
        p.block_step = divide_up(n_blocks, most / e->n_docs);
    else
        p.skill_step = divide_up(n_skills, most - 1);
    p.work = block * divide_up(n_blocks, p.block_step) *
             (1 + divide_up(n_skills, p.skill_step));
    return p;
}

/* The cosines of a document with every step-th block of reference texts. */
static void level_compare(const struct index *x, enum query_kind tier,
                          const struct index_vecs *of, uint32_t doc,
                          size_t step, float *out)
{
    int8_t planes[2 * INDEX_STRIDE_MAX];
    struct vec_query q = index_vecs_row(of, doc, planes);

    for (size_t i = 0; i < x->n_reference[tier];
         i += BLOCK * step, out += BLOCK)
        index_vecs_likeness_64(&x->reference[tier], &q, (uint32_t)i, out);
}

static struct card_level level_compute_tier(const struct index *x,
                                            const struct index_entry *e,
                                            enum query_kind tier)
{
    float best[INDEX_REFERENCE_MAX], like[INDEX_REFERENCE_MAX];
    size_t n = 0, n_reference = x->n_reference[tier];
    struct level_plan plan = level_plan(x, e, tier);

    level_compare(x, tier, &x->profiles.vecs, e->slot, plan.block_step, like);
    for (size_t i = 0; i < n_reference; i += BLOCK * plan.block_step)
        n += n_reference - i < BLOCK ? n_reference - i : BLOCK;
    memcpy(best, like, n * sizeof(*best));
    for (size_t k = 1; k < e->n_docs; k += plan.skill_step) {
        float own[INDEX_REFERENCE_MAX];

        level_compare(x, tier, &x->vectors, e->docs[k], plan.block_step, own);
        for (size_t i = 0; i < n; i++) {
            float c = near_lean(like[i], x->docs[e->docs[k]].part, own[i]);

            best[i] = best[i] < c ? c : best[i];
        }
    }
    return (struct card_level){
        index_nth(best, n, n / 2),
        index_nth(best, n, (size_t)((double)n * HIGH)),
    };
}

/* Quick vectors can only be compared with the first parts of full ones, which
 * is what the other level says. */
static bool level_is_missing(const struct index *x, const struct index_entry *e,
                             const struct levels_of *l, enum query_kind tier)
{
    return e->has_vectors && x->n_reference[tier] && l->of[tier].high < 0 &&
           (tier == QUERY_QUICK || !x->profiles.is_quick[e->slot]);
}

struct levels_of level_compute(const struct index *x,
                               const struct index_entry *e,
                               struct levels_of was)
{
    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        if (level_is_missing(x, e, &was, t))
            was.of[t] = level_compute_tier(x, e, t);
    return was;
}

static bool level_some(struct index *x, size_t max, size_t work_max)
{
    struct index_profiles *p = &x->profiles;
    size_t work = 0;

    for (; x->next_level < x->agents_end; x->next_level++) {
        const struct index_entry *e = x->agents[x->next_level];
        size_t own = 0;

        for (enum query_kind t = 0; e && t < N_QUERY_KINDS; t++)
            if (level_is_missing(x, e, &p->level[e->slot], t))
                own += level_plan(x, e, t).work;
        if (!own)
            continue;
        work += own;
        /* A card that lacks both levels may take more than a turn, alone. */
        if (!max-- || (work > work_max && work > own))
            return true;
        p->level[e->slot] = level_compute(x, e, p->level[e->slot]);
        p->is_stale = true;
    }
    return false;
}

bool index_level_some(struct index *x, size_t max)
{
    return level_some(x, max, SIZE_MAX);
}

bool index_level_turn(struct index *x)
{
    return level_some(x, TURN_CARDS, LEVEL_WORK_MAX);
}

enum query_kind level_tier(const struct index *x, uint32_t slot, bool is_quick)
{
    return is_quick || x->profiles.is_quick[slot] ? QUERY_QUICK : QUERY_FULL;
}

static struct card_level level_for(const struct index *x, uint32_t number,
                                   bool is_quick)
{
    const struct index_entry *e =
        number < x->agents_end ? x->agents[number] : NULL;

    return e ? x->profiles.level[e->slot].of[level_tier(x, e->slot, is_quick)]
             : (struct card_level){-1, -1};
}

struct card_level index_level(const struct index *x, uint32_t number)
{
    return level_for(x, number, false);
}

struct card_level index_quick_level(const struct index *x, uint32_t number)
{
    return level_for(x, number, true);
}
