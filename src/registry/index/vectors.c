/* Vectors by document. The guess of a product is one product of bytes with a
 * known maximal error (vec.h), so an upper bound of the similarity of every
 * document costs one read of one byte per number. Only documents that could be
 * among the best are computed exactly. Floats computed here are only bounds;
 * the figures of an answer are made of integers and one rounding. */
#include "registry/index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/pages.h"

enum { ALIGN = 64, GROUP = 64 /* rows that lie together */ };
_Static_assert((int)FIRST_DOCS % (int)GROUP == 0, "blocks are whole groups");

/* The bound is computed in floats, in half a dozen steps on numbers of two at
 * most, each with an error of 2^-23 or less. */
static const float ROUNDING = 2e-6F;

static size_t vecs_block_bytes(const struct index_vecs *v, size_t n_docs)
{
    return n_docs * (2 * v->stride + 4 * sizeof(float));
}

static size_t aligned_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

void index_vecs_reset(struct index_vecs *v, uint32_t dims, uint32_t quick)
{
    for (size_t i = 0; i < v->n_blocks; i++)
        pages_free(v->blocks[i].high, vecs_block_bytes(v, v->blocks[i].n_docs));
    free(v->blocks);
    quick = quick < dims ? quick : 0;
    *v = (struct index_vecs){
        .ops = vec_ops(),
        .dims = dims,
        .quick = quick,
        .most_docs = FIRST_DOCS,
        .head = aligned_up(quick ? quick : dims),
        .tail = quick ? aligned_up(dims - quick) : 0,
    };
    v->stride = v->width = v->head + v->tail;
    while (dims > 0 && 2 * v->most_docs * v->stride <= PLANE_BYTES)
        v->most_docs *= 2;
}

/* Index of the block of a document, whether or not it exists. */
static size_t vecs_block_index(const struct index_vecs *v, uint32_t doc)
{
    size_t small = 0; /* blocks before those of the largest size */

    for (uint32_t n = FIRST_DOCS; n <= v->most_docs; n *= 2, small++)
        if (doc < n)
            return small;
    return small + (doc - v->most_docs) / v->most_docs;
}

static bool vecs_add_block(struct index_vecs *v)
{
    const struct vec_block *last = v->blocks + v->n_blocks - 1;
    uint32_t first = v->n_blocks ? last->first + last->n_docs : 0;
    uint32_t n = first < FIRST_DOCS     ? FIRST_DOCS
                 : first < v->most_docs ? first
                                        : v->most_docs;
    int8_t *high = pages_new(vecs_block_bytes(v, n));
    float *numbers;

    if (!high)
        return false;
    numbers = (float *)(high + 2 * n * v->stride);
    v->blocks[v->n_blocks++] = (struct vec_block){
        .first = first,
        .n_docs = n,
        .high = high,
        .low = high + n * v->stride,
        .scale = numbers,
        .slack = numbers + n,
        .quick_slack = numbers + 2 * n,
        .quick = numbers + 3 * n,
    };
    return true;
}

enum err index_vecs_reserve(struct index_vecs *v, size_t n)
{
    size_t need = v->dims && n ? vecs_block_index(v, (uint32_t)n - 1) + 1 : 0;

    if (need > v->cap) {
        size_t more = need + need / 2 + 8;

        if (!INDEX_GROW(v->blocks, more))
            return ERR_NOMEM;
        v->cap = more;
    }
    while (v->n_blocks < need)
        if (!vecs_add_block(v))
            return ERR_NOMEM;
    return OK;
}

/* NULL: no vector can be there. */
static struct vec_block *vecs_find_block(const struct index_vecs *v,
                                         uint32_t doc)
{
    size_t at = v->n_blocks ? vecs_block_index(v, doc) : 0;

    return at < v->n_blocks ? &v->blocks[at] : NULL;
}

/* Start of a row in a plane, and of its tail. */
static int8_t *row_head(const struct index_vecs *v, int8_t *plane, size_t at)
{
    return plane + at / GROUP * GROUP * v->stride + at % GROUP * v->head;
}

static int8_t *row_tail(const struct index_vecs *v, int8_t *plane, size_t at)
{
    return plane + at / GROUP * GROUP * v->stride + GROUP * v->head +
           at % GROUP * v->tail;
}

/* The number of vector elements in the head. */
static size_t row_head_numbers(const struct index_vecs *v)
{
    return v->quick ? v->quick : v->dims;
}

static void row_set_plane(const struct index_vecs *v, int8_t *plane, size_t at,
                          const int8_t *from)
{
    size_t n = row_head_numbers(v);

    if (from) {
        memcpy(row_head(v, plane, at), from, n);
        memcpy(row_tail(v, plane, at), from + n, v->dims - n);
    } else {
        memset(row_head(v, plane, at), 0, n);
        memset(row_tail(v, plane, at), 0, v->dims - n);
    }
}

static void row_get_plane(const struct index_vecs *v, int8_t *plane, size_t at,
                          uint8_t *to)
{
    size_t n = row_head_numbers(v);

    memcpy(to, row_head(v, plane, at), n);
    memcpy(to + n, row_tail(v, plane, at), v->dims - n);
}

void index_vecs_set(struct index_vecs *v, uint32_t doc, const uint8_t *packed)
{
    struct vec_block *b = vecs_find_block(v, doc);
    struct vec_packed p = {0};
    size_t at;

    assert(b || !packed);
    if (!b)
        return;
    at = doc - b->first;
    if (packed &&
        !vec_packed_open(&p, packed, vec_packed_bytes(v->dims), v->dims))
        p = (struct vec_packed){0}; /* an invalid vector counts as all zero */
    b->scale[at] = p.scale;
    b->slack[at] = p.slack;
    b->quick_slack[at] = p.high && v->quick ? vec_slack_of(&p, v->quick) : 0;
    b->quick[at] = p.high && vec_packed_is_quick(&p, v->quick);
    row_set_plane(v, b->high, at, p.high);
    row_set_plane(v, b->low, at, p.low);
}

struct vec_query index_vecs_lay(const struct index_vecs *v,
                                const struct vec_packed *p, int8_t *planes)
{
    size_t n = row_head_numbers(v) < p->n ? row_head_numbers(v) : p->n;
    int8_t *low = planes + v->stride;

    memset(planes, 0, 2 * v->stride);
    memcpy(planes, p->high, n);
    memcpy(low, p->low, n);
    memcpy(planes + v->head, p->high + n, p->n - n);
    memcpy(low + v->head, p->low + n, p->n - n);
    return (struct vec_query){
        {p->scale, p->slack, planes, low, v->stride},
        v->quick && (p->n == n || vec_packed_is_quick(p, v->quick))};
}

struct vec_query index_vecs_row(const struct index_vecs *v, uint32_t doc,
                                int8_t *planes)
{
    const struct vec_block *b = vecs_find_block(v, doc);
    int8_t *low = planes + v->stride;
    size_t at;

    memset(planes, 0, 2 * v->stride);
    if (!b)
        return (struct vec_query){{0, 0, planes, low, v->stride}, false};
    at = doc - b->first;
    memcpy(planes, row_head(v, b->high, at), v->head);
    memcpy(planes + v->head, row_tail(v, b->high, at), v->tail);
    memcpy(low, row_head(v, b->low, at), v->head);
    memcpy(low + v->head, row_tail(v, b->low, at), v->tail);
    return (struct vec_query){
        {b->scale[at], b->slack[at], planes, low, v->stride}, b->quick[at] > 0};
}

bool index_vecs_is_quick(const struct index_vecs *v, uint32_t doc)
{
    const struct vec_block *b = vecs_find_block(v, doc);

    return b && b->quick[doc - b->first] > 0;
}

void index_vecs_get(const struct index_vecs *v, uint32_t doc, uint8_t *packed)
{
    const struct vec_block *b = vecs_find_block(v, doc);
    size_t at;

    assert(b);
    at = doc - b->first;
    memcpy(packed, &b->scale[at], 4);
    memcpy(packed + 4, &b->slack[at], 4);
    row_get_plane(v, b->high, at, packed + 8);
    row_get_plane(v, b->low, at, packed + 8 + v->dims);
}

size_t index_vecs_bytes(const struct index_vecs *v)
{
    size_t bytes = v->cap * sizeof(*v->blocks);

    for (size_t i = 0; i < v->n_blocks; i++)
        bytes += vecs_block_bytes(v, v->blocks[i].n_docs);
    return bytes;
}

static float clip_likeness(double likeness)
{
    float f = (float)likeness;

    return f > 0 ? (f < 1 ? f : 1) : 0;
}

/* Whether tails count for a query. If not, they are not read. */
static bool query_has_tail(const struct index_vecs *v,
                           const struct vec_query *q)
{
    return !q->is_quick && v->width > v->head;
}

/* The product of a plane of one row with one of the query. */
static int64_t row_dot(const struct index_vecs *v, int8_t *plane, size_t at,
                       const int8_t *q, bool with_tail)
{
    int64_t product = v->ops->dot_i8(row_head(v, plane, at), q, v->head);

    if (with_tail)
        product += v->ops->dot_i8(row_tail(v, plane, at), q + v->head, v->tail);
    return product;
}

float index_vecs_likeness(const struct index_vecs *v, const struct vec_query *q,
                          uint32_t doc)
{
    const struct vec_block *b = vecs_find_block(v, doc);
    size_t at = b ? doc - b->first : 0;
    bool is_quick = b && b->quick[at] > 0;
    bool with_tail = query_has_tail(v, q) && !is_quick;
    int64_t product;

    if (!b)
        return 0;
    product = 65536 * row_dot(v, b->high, at, q->v.high, with_tail) +
              256 * (row_dot(v, b->high, at, q->v.low, with_tail) +
                     row_dot(v, b->low, at, q->v.high, with_tail)) +
              row_dot(v, b->low, at, q->v.low, with_tail);
    return clip_likeness((double)q->v.scale * (double)b->scale[at] *
                         (double)product * vec_gain(q->is_quick, is_quick));
}

void index_vecs_add(const struct index_vecs *v, uint32_t doc, double *sum)
{
    const struct vec_block *b = vecs_find_block(v, doc);
    size_t at = b ? doc - b->first : 0;
    const int8_t *high, *low;
    double by;

    if (!b)
        return;
    high = row_head(v, b->high, at);
    low = row_head(v, b->low, at);
    by = v->quick ? vec_gain(true, b->quick[at] > 0) : 1;
    /* Doubles hold integers of 53 bits: a million vectors of 31. */
    for (size_t i = 0; i < index_vecs_reach(v); i++)
        sum[i] += rint((double)b->scale[at] * 0x1p30 *
                       (256 * (double)high[i] + (double)low[i]) * by);
}

/* row_dot of 64 rows. */
static void rows_dot_64(const struct index_vecs *v, int8_t *plane, size_t at,
                        const int8_t *q, bool with_tail, int32_t out[GROUP])
{
    int32_t tails[GROUP];

    v->ops->dots_i8(row_head(v, plane, at), v->head, GROUP, q, v->head, out);
    if (!with_tail)
        return;
    v->ops->dots_i8(row_tail(v, plane, at), v->tail, GROUP, q + v->head,
                    v->tail, tails);
    for (size_t i = 0; i < GROUP; i++)
        out[i] += tails[i];
}

void index_vecs_likeness_64(const struct index_vecs *v,
                            const struct vec_query *q, uint32_t first,
                            float *out)
{
    const struct vec_block *b = vecs_find_block(v, first);
    int32_t hh[GROUP], hl[GROUP], lh[GROUP], ll[GROUP];
    bool with_tail = query_has_tail(v, q);
    size_t at;

    if (!b) {
        memset(out, 0, GROUP * sizeof(*out));
        return;
    }
    at = first - b->first;
    rows_dot_64(v, b->high, at, q->v.high, with_tail, hh);
    rows_dot_64(v, b->low, at, q->v.high, with_tail, hl);
    rows_dot_64(v, b->high, at, q->v.low, with_tail, lh);
    rows_dot_64(v, b->low, at, q->v.low, with_tail, ll);
    for (size_t i = 0; i < GROUP; i++) {
        int64_t product =
            65536 * (int64_t)hh[i] + 256 * ((int64_t)hl[i] + lh[i]) + ll[i];
        double likeness =
            (double)q->v.scale * (double)b->scale[at + i] * (double)product;

        out[i] = clip_likeness(likeness *
                               vec_gain(q->is_quick, b->quick[at + i] > 0));
    }
}

/* The guess of a.b is off by at most a.slack * |b| + |a_high| * b.slack, and
 * |a_high| is at most |a| + a.slack: that is a.slack times `by`, plus `more`.
 * If either vector is quick, this applies to the first parts, with the slack of
 * the first part of the row. Both sides are then multiplied by the gain: one
 * where the row is of the same kind as the query, else `gain`. */
static void rows_bound_64(const struct index_vecs *v, const struct vec_block *b,
                          size_t at, const struct vec_query *q,
                          const int32_t *restrict products, float *restrict out)
{
    const float *restrict scale = b->scale + at;
    const float *restrict slack =
        (q->is_quick ? b->quick_slack : b->slack) + at;
    const float *restrict quick = b->quick + at;
    float unit = 65536 * q->v.scale;
    float by = VEC_PACKED_LENGTH + q->v.slack;
    float more = VEC_PACKED_LENGTH * q->v.slack + ROUNDING;
    float gain = v->quick ? (float)vec_gain(true, false) * (1 + ROUNDING) : 1;
    float of_full = q->is_quick ? gain : 1, of_quick = q->is_quick ? 1 : gain;

    if (PLANTED("index.tight_bound")) {
        by /= 2;
        more /= 2;
    }
    for (size_t i = 0; i < 64; i++) {
        float most =
            (float)products[i] * (unit * scale[i]) + (slack[i] * by + more);

        most *= quick[i] > 0 ? of_quick : of_full;
        most = most > 0 ? most : 0;
        most = most < 1 ? most : 1;
        out[i] = scale[i] > 0 ? most : 0;
    }
}

void index_vecs_bound_some(const struct index_vecs *v,
                           const struct vec_query *q, uint32_t first,
                           uint64_t mask, float *out)
{
    const struct vec_block *b = vecs_find_block(v, first);
    int32_t products[GROUP] = {0};
    bool with_tail = query_has_tail(v, q);
    size_t at;

    if (!b) {
        memset(out, 0, GROUP * sizeof(*out));
        return;
    }
    at = first - b->first;
    if (__builtin_popcountll(mask) > SPARSE)
        rows_dot_64(v, b->high, at, q->v.high, with_tail, products);
    else
        for (; mask; mask &= mask - 1) {
            size_t k = (size_t)__builtin_ctzll(mask);

            products[k] =
                (int32_t)row_dot(v, b->high, at + k, q->v.high, with_tail);
        }
    rows_bound_64(v, b, at, q, products, out);
}

/* The guess is off by half of this in either direction. When in doubt, the
 * answer is no. */
bool index_vecs_is_above_zero(const struct index_vecs *v,
                              const struct vec_query *q, uint32_t doc,
                              float bound)
{
    const struct vec_block *b = vecs_find_block(v, doc);
    float gain = v->quick ? (float)vec_gain(true, false) : 1;
    float slack;

    if (!b)
        return false;
    slack = (q->is_quick ? b->quick_slack : b->slack)[doc - b->first];
    return bound > 2.1F * gain *
                       (slack * (VEC_PACKED_LENGTH + q->v.slack) +
                        VEC_PACKED_LENGTH * q->v.slack + ROUNDING);
}
