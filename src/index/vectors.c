/* The guess of a product is one product of bytes, and how far it may be off is
 * known (vec.h): so an upper bound of every document's likeness costs one read
 * of one byte a number, and only what could be among the best is computed
 * finely. Floats that come out of this are bounds and nothing else; what an
 * answer says is made of whole numbers and one rounding. */
#include "index/data.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

enum { ALIGN = 64 };

/* The bound is reckoned in floats, in half a dozen steps on numbers of two at
 * most, each wrong by 2^-23 or less. */
static const float ROUNDING = 2e-6F;

static void blocks_free(struct vectors *v)
{
    for (size_t i = 0; i < v->n_blocks; i++) {
        free(v->blocks[i]->memory);
        free(v->blocks[i]);
    }
    free(v->blocks);
}

void vectors_reset(struct vectors *v, uint32_t dims)
{
    blocks_free(v);
    *v = (struct vectors){
        .ops = vec_ops(),
        .dims = dims,
        .stride = (size_t)(dims + ALIGN - 1) / ALIGN * ALIGN,
    };
}

/* Large zeroed memory is given by the system page by page when it is touched:
 * a block of which little is used costs little. */
static struct vec_block *block_new(size_t stride)
{
    size_t plane = stride * BLOCK_DOCS;
    struct vec_block *b = FAULT("index.block") ? NULL : calloc(1, sizeof(*b));
    uintptr_t at;

    if (!b)
        return NULL;
    b->memory = FAULT("index.planes") ? NULL : calloc(1, 2 * plane + ALIGN);
    if (!b->memory) {
        free(b);
        return NULL;
    }
    at = ((uintptr_t)b->memory + ALIGN - 1) / ALIGN * ALIGN;
    b->high = (int8_t *)at;
    b->low = b->high + plane;
    return b;
}

enum err vectors_reserve(struct vectors *v, size_t n)
{
    size_t need = v->dims ? (n + BLOCK_DOCS - 1) / BLOCK_DOCS : 0;

    if (need > v->cap) {
        size_t more = need + need / 2 + 8;
        void *p = index_grow(v->blocks, more, sizeof(*v->blocks));

        if (!p)
            return ERR_NOMEM;
        v->blocks = p;
        v->cap = more;
    }
    while (v->n_blocks < need) {
        struct vec_block *b = block_new(v->stride);

        if (!b)
            return ERR_NOMEM;
        v->blocks[v->n_blocks++] = b;
    }
    return OK;
}

static void set_row(struct vectors *v, struct vec_block *b, size_t at,
                    const struct vec_packed *p)
{
    b->scale[at] = p->scale;
    b->slack[at] = p->slack;
    if (p->high) {
        memcpy(b->high + at * v->stride, p->high, v->dims);
        memcpy(b->low + at * v->stride, p->low, v->dims);
    } else {
        memset(b->high + at * v->stride, 0, v->dims);
        memset(b->low + at * v->stride, 0, v->dims);
    }
}

void vectors_set(struct vectors *v, uint32_t doc, const uint8_t *packed)
{
    struct vec_packed p = {0};

    if (doc / BLOCK_DOCS >= v->n_blocks) {
        assert(!packed);
        return;
    }
    if (packed &&
        !vec_packed_open(&p, packed, vec_packed_bytes(v->dims), v->dims))
        p = (struct vec_packed){0}; /* what is none counts as all zero */
    set_row(v, v->blocks[doc / BLOCK_DOCS], doc % BLOCK_DOCS, &p);
}

/* All zero where there is no room for one. */
static struct vec_packed row_of(const struct vectors *v, uint32_t doc)
{
    const struct vec_block *b;
    size_t at = doc % BLOCK_DOCS;

    if (doc / BLOCK_DOCS >= v->n_blocks)
        return (struct vec_packed){0};
    b = v->blocks[doc / BLOCK_DOCS];
    return (struct vec_packed){b->scale[at], b->slack[at],
                               b->high + at * v->stride,
                               b->low + at * v->stride, v->dims};
}

void vectors_get(const struct vectors *v, uint32_t doc, uint8_t *packed)
{
    struct vec_packed p = row_of(v, doc);

    assert(p.high);
    memcpy(packed, &p.scale, 4);
    memcpy(packed + 4, &p.slack, 4);
    memcpy(packed + 8, p.high, v->dims);
    memcpy(packed + 8 + v->dims, p.low, v->dims);
}

size_t vectors_bytes(const struct vectors *v)
{
    return v->cap * sizeof(*v->blocks) +
           v->n_blocks *
               (sizeof(struct vec_block) + 2 * v->stride * BLOCK_DOCS + ALIGN);
}

float vectors_likeness(const struct vectors *v, const struct vec_packed *q,
                       uint32_t doc)
{
    struct vec_packed p = row_of(v, doc);
    float likeness = (float)vec_packed_dot(q, &p);

    return likeness > 0 ? (likeness < 1 ? likeness : 1) : 0;
}

/* Of a.b the guess is off by at most a.slack * |b| + |a_high| * b.slack, and
 * |a_high| is at most |a| + a.slack: that is a.slack times `by`, and `more`. */
static void bounds_of(const struct vec_block *b, size_t at,
                      const struct vec_packed *q, const int32_t *products,
                      float *out)
{
    const float *scale = b->scale + at, *slack = b->slack + at;
    float unit = 65536 * q->scale;
    float by = VEC_PACKED_LENGTH + q->slack;
    float more = VEC_PACKED_LENGTH * q->slack + ROUNDING;

    if (PLANTED("index.tight_bound")) {
        by /= 2;
        more /= 2;
    }
    for (size_t i = 0; i < 64; i++) {
        float most =
            (float)products[i] * (unit * scale[i]) + (slack[i] * by + more);

        most = most > 0 ? most : 0;
        most = most < 1 ? most : 1;
        out[i] = scale[i] > 0 ? most : 0;
    }
}

void vectors_bound_64(const struct vectors *v, const struct vec_packed *q,
                      uint32_t first, float *out)
{
    const struct vec_block *b;
    size_t at = first % BLOCK_DOCS;
    int32_t products[64];

    if (first / BLOCK_DOCS >= v->n_blocks) {
        memset(out, 0, 64 * sizeof(*out));
        return;
    }
    b = v->blocks[first / BLOCK_DOCS];
    v->ops->dots_i8(b->high + at * v->stride, v->stride, 64, q->high, v->stride,
                    products);
    bounds_of(b, at, q, products, out);
}
