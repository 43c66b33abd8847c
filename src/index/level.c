/* How high a card scores for messages that are not meant for it: the median
 * and the 95th percentile of its cosines with the reference texts. The cosines
 * are those of routing (near.c), so that a level and a message's score lie on
 * one scale, whatever the model.
 *
 * A level depends on the card and the model alone, on no other card. It is
 * computed when the card enters the index; and for all cards, some at a time,
 * once the reference vectors are there, which a provider may take its time for.
 *
 * A card costs its documents times the reference texts times the length of a
 * vector. Where that is more than LEVEL_WORK_MAX numbers, only every second,
 * third … block of 64 texts is compared; and where one block is too much, only
 * every second, third … skill too. The profile always is. So no card costs more
 * than LEVEL_WORK_MAX, nor do the cards of a turn of the loop together. */
#include "index/data.h"

#include <stdlib.h>

#include "base/fault.h"

enum {
    BLOCK = 64, /* texts that are compared at once */
    TURN_CARDS = 8,
};

static const double HIGH = 0.95;

/* The rank-th smallest of n numbers of zero or more, which sort as their bits
 * do: found byte by byte, in the same time whatever they are. */
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

enum err index_set_reference(struct index *x, const uint8_t *packed, size_t n)
{
    size_t each = vec_packed_bytes(x->vectors.dims);
    enum err e;

    index_vecs_reset(&x->reference, x->vectors.dims);
    x->n_reference = 0;
    n = n < INDEX_REFERENCE_MAX ? n : INDEX_REFERENCE_MAX;
    e = index_vecs_reserve(&x->reference, (n + 63) / 64 * 64);
    if (e)
        return e;
    for (uint32_t i = 0; i < n; i++)
        index_vecs_set(&x->reference, i, packed + i * each);
    x->n_reference = n;
    x->next_level = 0;
    return OK;
}

size_t index_references(const struct index *x)
{
    return x->n_reference;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

_Static_assert(LEVEL_WORK_MAX / (BLOCK * INDEX_DIMS_MAX) >= 2,
               "the profile and a skill can be compared");

/* `most`: how many blocks may be compared, all documents together. */
struct level_plan level_plan(const struct index *x, const struct index_entry *e)
{
    size_t block = BLOCK * x->reference.stride, most = LEVEL_WORK_MAX / block;
    size_t n_blocks = divide_up(x->n_reference, BLOCK);
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

/* The cosines of every step-th block of reference texts with a document. */
static void compare(const struct index *x, const struct vec_packed *q,
                    size_t step, float *out)
{
    for (size_t i = 0; i < x->n_reference; i += BLOCK * step, out += BLOCK)
        index_vecs_likeness_64(&x->reference, q, (uint32_t)i, out);
}

struct card_level level_compute(const struct index *x,
                                const struct index_entry *e)
{
    float best[INDEX_REFERENCE_MAX], like[INDEX_REFERENCE_MAX];
    struct vec_packed profile, skill;
    struct level_plan plan;
    size_t n = 0;

    if (!e->has_vectors || !x->n_reference)
        return (struct card_level){-1, -1};
    plan = level_plan(x, e);
    profile = index_vecs_row(&x->profiles.vecs, e->slot);
    compare(x, &profile, plan.block_step, like);
    for (size_t i = 0; i < x->n_reference; i += BLOCK * plan.block_step)
        n += x->n_reference - i < BLOCK ? x->n_reference - i : BLOCK;
    memcpy(best, like, n * sizeof(*best));
    for (size_t k = 1; k < e->n_docs; k += plan.skill_step) {
        float own[INDEX_REFERENCE_MAX];

        skill = index_vecs_row(&x->vectors, e->docs[k]);
        compare(x, &skill, plan.block_step, own);
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

static bool level_some(struct index *x, size_t max, size_t work_max)
{
    size_t work = 0;

    for (; x->n_reference && x->next_level < x->agents_end; x->next_level++) {
        const struct index_entry *e = x->agents[x->next_level];

        if (!e || !e->has_vectors || x->profiles.level[e->slot].high >= 0)
            continue;
        work += level_plan(x, e).work;
        if (!max-- || work > work_max)
            return true;
        x->profiles.level[e->slot] = level_compute(x, e);
        x->profiles.is_stale = true;
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

struct card_level index_level(const struct index *x, uint32_t number)
{
    const struct index_entry *e =
        number < x->agents_end ? x->agents[number] : NULL;

    return e ? x->profiles.level[e->slot] : (struct card_level){-1, -1};
}
