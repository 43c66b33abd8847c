/* How high a card scores for messages that are not meant for it: the median
 * and the 95th percentile of its cosines with the reference texts. The cosines
 * are those of routing (near.c), so that a level and a message's score lie on
 * one scale, whatever the model.
 *
 * A level depends on the card and the model alone, on no other card. It is
 * computed when the card enters the index; and for all cards, some at a time,
 * once the reference vectors are there, which a provider may take its time for.
 *
 * A card costs its documents times the reference texts. Large cards, and long
 * vectors, are compared with every second, third … text only, so that no card
 * costs more than WORK_MAX numbers. */
#include "index/data.h"

#include <stdlib.h>

#include "base/fault.h"

enum { WORK_MAX = 8 * 1024 * INDEX_REFERENCE_MAX };

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

/* The cosines of every step-th block of 64 reference texts with a document. */
static void compare(const struct index *x, const struct vec_packed *q,
                    size_t step, float *out)
{
    for (size_t i = 0; i < x->n_reference; i += 64 * step, out += 64)
        index_vecs_likeness_64(&x->reference, q, (uint32_t)i, out);
}

struct card_level level_compute(const struct index *x,
                                const struct index_entry *e)
{
    float best[INDEX_REFERENCE_MAX], like[INDEX_REFERENCE_MAX];
    size_t work = x->n_reference * x->vectors.dims * e->n_docs;
    size_t step = work / WORK_MAX + 1, n = 0;
    struct vec_packed profile, skill;

    if (!e->has_vectors || !x->n_reference)
        return (struct card_level){-1, -1};
    profile = index_vecs_row(&x->profiles.vecs, e->slot);
    compare(x, &profile, step, like);
    for (size_t i = 0; i < x->n_reference; i += 64 * step)
        n += x->n_reference - i < 64 ? x->n_reference - i : 64;
    memcpy(best, like, n * sizeof(*best));
    for (size_t k = 1; k < e->n_docs; k++) {
        float own[INDEX_REFERENCE_MAX];

        skill = index_vecs_row(&x->vectors, e->docs[k]);
        compare(x, &skill, step, own);
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

bool index_level_some(struct index *x, size_t max)
{
    for (; x->n_reference && x->next_level < x->agents_end; x->next_level++) {
        const struct index_entry *e = x->agents[x->next_level];

        if (!e || !e->has_vectors || x->profiles.level[e->slot].high >= 0)
            continue;
        if (!max--)
            return true;
        x->profiles.level[e->slot] = level_compute(x, e);
        x->profiles.is_stale = true;
    }
    return false;
}

struct card_level index_level(const struct index *x, uint32_t number)
{
    const struct index_entry *e =
        number < x->agents_end ? x->agents[number] : NULL;

    return e ? x->profiles.level[e->slot] : (struct card_level){-1, -1};
}
