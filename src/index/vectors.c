/* The guess of a product is one product of bytes, and how far it may be off is
 * known (vec.h): so an upper bound of every document's likeness costs one read
 * of one byte a number, and only what could be among the best is computed
 * finely. Floats that come out of this are bounds and nothing else; what an
 * answer says is made of whole numbers and one rounding. */
#include "index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/pages.h"

enum { ALIGN = 64 };

/* The bound is reckoned in floats, in half a dozen steps on numbers of two at
 * most, each wrong by 2^-23 or less. */
static const float ROUNDING = 2e-6F;

static size_t block_bytes(const struct index_vecs *v, size_t n_docs)
{
    return n_docs * (2 * v->stride + 4 * sizeof(float));
}

static void blocks_free(struct index_vecs *v)
{
    for (size_t i = 0; i < v->n_blocks; i++)
        pages_free(v->blocks[i].high, block_bytes(v, v->blocks[i].n_docs));
    free(v->blocks);
}

void index_vecs_reset(struct index_vecs *v, uint32_t dims, uint32_t quick)
{
    blocks_free(v);
    *v = (struct index_vecs){
        .ops = vec_ops(),
        .dims = dims,
        .quick = quick < dims ? quick : 0,
        .most_docs = FIRST_DOCS,
        .stride = (size_t)(dims + ALIGN - 1) / ALIGN * ALIGN,
    };
    v->width = v->stride;
    while (dims > 0 && 2 * v->most_docs * v->stride <= PLANE_BYTES)
        v->most_docs *= 2;
}

/* The block that a document is in, whether or not it is there. */
static size_t block_of(const struct index_vecs *v, uint32_t doc)
{
    size_t small = 0; /* blocks before those of the largest size */

    for (uint32_t n = FIRST_DOCS; n <= v->most_docs; n *= 2, small++)
        if (doc < n)
            return small;
    return small + (doc - v->most_docs) / v->most_docs;
}

static bool add_block(struct index_vecs *v)
{
    const struct vec_block *last = v->blocks + v->n_blocks - 1;
    uint32_t first = v->n_blocks ? last->first + last->n_docs : 0;
    uint32_t n = first < FIRST_DOCS     ? FIRST_DOCS
                 : first < v->most_docs ? first
                                        : v->most_docs;
    int8_t *high = pages_new(block_bytes(v, n));
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
    size_t need = v->dims && n ? block_of(v, (uint32_t)n - 1) + 1 : 0;

    if (need > v->cap) {
        size_t more = need + need / 2 + 8;
        void *p = index_grow(v->blocks, more, sizeof(*v->blocks));

        if (!p)
            return ERR_NOMEM;
        v->blocks = p;
        v->cap = more;
    }
    while (v->n_blocks < need)
        if (!add_block(v))
            return ERR_NOMEM;
    return OK;
}

/* NULL: no vector can be there. */
static struct vec_block *find_block(const struct index_vecs *v, uint32_t doc)
{
    size_t at = v->n_blocks ? block_of(v, doc) : 0;

    return at < v->n_blocks ? &v->blocks[at] : NULL;
}

static void set_row(struct index_vecs *v, struct vec_block *b, size_t at,
                    const struct vec_packed *p)
{
    b->scale[at] = p->scale;
    b->slack[at] = p->slack;
    b->quick_slack[at] = p->high && v->quick ? vec_slack_of(p, v->quick) : 0;
    b->quick[at] = p->high && vec_packed_is_quick(p, v->quick);
    if (p->high) {
        memcpy(b->high + at * v->stride, p->high, v->dims);
        memcpy(b->low + at * v->stride, p->low, v->dims);
    } else {
        memset(b->high + at * v->stride, 0, v->dims);
        memset(b->low + at * v->stride, 0, v->dims);
    }
}

void index_vecs_set(struct index_vecs *v, uint32_t doc, const uint8_t *packed)
{
    struct vec_block *b = find_block(v, doc);
    struct vec_packed p = {0};

    assert(b || !packed);
    if (!b)
        return;
    if (packed &&
        !vec_packed_open(&p, packed, vec_packed_bytes(v->dims), v->dims))
        p = (struct vec_packed){0}; /* what is none counts as all zero */
    set_row(v, b, doc - b->first, &p);
}

struct vec_query index_vecs_row(const struct index_vecs *v, uint32_t doc)
{
    const struct vec_block *b = find_block(v, doc);
    size_t at;

    if (!b)
        return (struct vec_query){.is_quick = false};
    at = doc - b->first;
    return (struct vec_query){{b->scale[at], b->slack[at],
                               b->high + at * v->stride,
                               b->low + at * v->stride, v->dims},
                              b->quick[at] > 0};
}

void index_vecs_get(const struct index_vecs *v, uint32_t doc, uint8_t *packed)
{
    struct vec_packed p = index_vecs_row(v, doc).v;

    assert(p.high);
    memcpy(packed, &p.scale, 4);
    memcpy(packed + 4, &p.slack, 4);
    memcpy(packed + 8, p.high, v->dims);
    memcpy(packed + 8 + v->dims, p.low, v->dims);
}

size_t index_vecs_bytes(const struct index_vecs *v)
{
    size_t bytes = v->cap * sizeof(*v->blocks);

    for (size_t i = 0; i < v->n_blocks; i++)
        bytes += block_bytes(v, v->blocks[i].n_docs);
    return bytes;
}

static float clip_likeness(double likeness)
{
    float f = (float)likeness;

    return f > 0 ? (f < 1 ? f : 1) : 0;
}

float index_vecs_likeness(const struct index_vecs *v, const struct vec_query *q,
                          uint32_t doc)
{
    struct vec_query row = index_vecs_row(v, doc);
    size_t n = q->is_quick || row.is_quick ? v->quick : v->dims;

    return row.v.high ? clip_likeness(vec_packed_dot_of(&q->v, &row.v, n) *
                                      vec_gain(q->is_quick, row.is_quick))
                      : 0;
}

void index_vecs_add(const struct index_vecs *v, uint32_t doc, double *sum)
{
    struct vec_query row = index_vecs_row(v, doc);
    const struct vec_packed *p = &row.v;
    double by = v->quick ? vec_gain(true, row.is_quick) : 1;

    /* Doubles hold whole numbers of 53 bits, a million vectors of 31. */
    for (size_t i = 0; p->high && i < index_vecs_reach(v); i++)
        sum[i] += rint((double)p->scale * 0x1p30 *
                       (256 * (double)p->high[i] + (double)p->low[i]) * by);
}

void index_vecs_likeness_64(const struct index_vecs *v,
                            const struct vec_query *q, uint32_t first,
                            float *out)
{
    const struct vec_block *b = find_block(v, first);
    const int8_t *high, *low;
    int32_t hh[64], hl[64], lh[64], ll[64];
    size_t at, n = vec_query_reach(v, q);

    if (!b) {
        memset(out, 0, 64 * sizeof(*out));
        return;
    }
    at = first - b->first;
    high = b->high + at * v->stride;
    low = b->low + at * v->stride;
    v->ops->dots_i8(high, v->stride, 64, q->v.high, n, hh);
    v->ops->dots_i8(low, v->stride, 64, q->v.high, n, hl);
    v->ops->dots_i8(high, v->stride, 64, q->v.low, n, lh);
    v->ops->dots_i8(low, v->stride, 64, q->v.low, n, ll);
    for (size_t i = 0; i < 64; i++) {
        int64_t product =
            65536 * (int64_t)hh[i] + 256 * ((int64_t)hl[i] + lh[i]) + ll[i];
        double likeness =
            (double)q->v.scale * (double)b->scale[at + i] * (double)product;

        out[i] = clip_likeness(likeness *
                               vec_gain(q->is_quick, b->quick[at + i] > 0));
    }
}

/* Of a.b the guess is off by at most a.slack * |b| + |a_high| * b.slack, and
 * |a_high| is at most |a| + a.slack: that is a.slack times `by`, and `more`.
 * Where one is quick, all of that is about first parts, and the row's slack is
 * that of its own. Both sides are then multiplied by the gain, which is one
 * where the row is of the query's kind, and `gain` where it is not. */
static void bounds_of(const struct index_vecs *v, const struct vec_block *b,
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

void index_vecs_bound_64(const struct index_vecs *v, const struct vec_query *q,
                         uint32_t first, float *out)
{
    const struct vec_block *b = find_block(v, first);
    int32_t products[64];
    size_t at;

    if (!b) {
        memset(out, 0, 64 * sizeof(*out));
        return;
    }
    at = first - b->first;
    v->ops->dots_i8(b->high + at * v->stride, v->stride, 64, q->v.high,
                    vec_query_reach(v, q), products);
    bounds_of(v, b, at, q, products, out);
}
