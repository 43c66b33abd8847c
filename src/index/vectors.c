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

enum { ALIGN = 64, GROUP = 64 /* rows that lie together */ };
_Static_assert((int)FIRST_DOCS % (int)GROUP == 0, "blocks are whole groups");

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

static size_t aligned_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

void index_vecs_reset(struct index_vecs *v, uint32_t dims, uint32_t quick)
{
    blocks_free(v);
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

/* Where a row begins in a plane, and where its tail does. */
static int8_t *head_of(const struct index_vecs *v, int8_t *plane, size_t at)
{
    return plane + at / GROUP * GROUP * v->stride + at % GROUP * v->head;
}

static int8_t *tail_of(const struct index_vecs *v, int8_t *plane, size_t at)
{
    return plane + at / GROUP * GROUP * v->stride + GROUP * v->head +
           at % GROUP * v->tail;
}

/* How many numbers of a vector are in the head. */
static size_t n_head(const struct index_vecs *v)
{
    return v->quick ? v->quick : v->dims;
}

static void set_plane(const struct index_vecs *v, int8_t *plane, size_t at,
                      const int8_t *from)
{
    size_t n = n_head(v);

    if (from) {
        memcpy(head_of(v, plane, at), from, n);
        memcpy(tail_of(v, plane, at), from + n, v->dims - n);
    } else {
        memset(head_of(v, plane, at), 0, n);
        memset(tail_of(v, plane, at), 0, v->dims - n);
    }
}

static void get_plane(const struct index_vecs *v, int8_t *plane, size_t at,
                      uint8_t *to)
{
    size_t n = n_head(v);

    memcpy(to, head_of(v, plane, at), n);
    memcpy(to + n, tail_of(v, plane, at), v->dims - n);
}

static void set_row(struct index_vecs *v, struct vec_block *b, size_t at,
                    const struct vec_packed *p)
{
    b->scale[at] = p->scale;
    b->slack[at] = p->slack;
    b->quick_slack[at] = p->high && v->quick ? vec_slack_of(p, v->quick) : 0;
    b->quick[at] = p->high && vec_packed_is_quick(p, v->quick);
    set_plane(v, b->high, at, p->high);
    set_plane(v, b->low, at, p->low);
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

struct vec_query index_vecs_lay(const struct index_vecs *v,
                                const struct vec_packed *p, int8_t *planes)
{
    size_t n = n_head(v) < p->n ? n_head(v) : p->n;
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
    const struct vec_block *b = find_block(v, doc);
    int8_t *low = planes + v->stride;
    size_t at;

    memset(planes, 0, 2 * v->stride);
    if (!b)
        return (struct vec_query){{0, 0, planes, low, v->stride}, false};
    at = doc - b->first;
    memcpy(planes, head_of(v, b->high, at), v->head);
    memcpy(planes + v->head, tail_of(v, b->high, at), v->tail);
    memcpy(low, head_of(v, b->low, at), v->head);
    memcpy(low + v->head, tail_of(v, b->low, at), v->tail);
    return (struct vec_query){
        {b->scale[at], b->slack[at], planes, low, v->stride}, b->quick[at] > 0};
}

bool index_vecs_is_quick(const struct index_vecs *v, uint32_t doc)
{
    const struct vec_block *b = find_block(v, doc);

    return b && b->quick[doc - b->first] > 0;
}

void index_vecs_get(const struct index_vecs *v, uint32_t doc, uint8_t *packed)
{
    const struct vec_block *b = find_block(v, doc);
    size_t at;

    assert(b);
    at = doc - b->first;
    memcpy(packed, &b->scale[at], 4);
    memcpy(packed + 4, &b->slack[at], 4);
    get_plane(v, b->high, at, packed + 8);
    get_plane(v, b->low, at, packed + 8 + v->dims);
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

/* Whether tails count for a query; where they do not, they are not touched. */
static bool has_tails(const struct index_vecs *v, const struct vec_query *q)
{
    return !q->is_quick && v->width > v->head;
}

/* The product of a plane of one row with one of a query's. */
static int64_t dot_row(const struct index_vecs *v, int8_t *plane, size_t at,
                       const int8_t *q, bool with_tail)
{
    int64_t product = v->ops->dot_i8(head_of(v, plane, at), q, v->head);

    if (with_tail)
        product += v->ops->dot_i8(tail_of(v, plane, at), q + v->head, v->tail);
    return product;
}

float index_vecs_likeness(const struct index_vecs *v, const struct vec_query *q,
                          uint32_t doc)
{
    const struct vec_block *b = find_block(v, doc);
    size_t at = b ? doc - b->first : 0;
    bool is_quick = b && b->quick[at] > 0;
    bool with_tail = has_tails(v, q) && !is_quick;
    int64_t product;

    if (!b)
        return 0;
    product = 65536 * dot_row(v, b->high, at, q->v.high, with_tail) +
              256 * (dot_row(v, b->high, at, q->v.low, with_tail) +
                     dot_row(v, b->low, at, q->v.high, with_tail)) +
              dot_row(v, b->low, at, q->v.low, with_tail);
    return clip_likeness((double)q->v.scale * (double)b->scale[at] *
                         (double)product * vec_gain(q->is_quick, is_quick));
}

void index_vecs_add(const struct index_vecs *v, uint32_t doc, double *sum)
{
    const struct vec_block *b = find_block(v, doc);
    size_t at = b ? doc - b->first : 0;
    const int8_t *high, *low;
    double by;

    if (!b)
        return;
    high = head_of(v, b->high, at);
    low = head_of(v, b->low, at);
    by = v->quick ? vec_gain(true, b->quick[at] > 0) : 1;
    /* Doubles hold whole numbers of 53 bits, a million vectors of 31. */
    for (size_t i = 0; i < index_vecs_reach(v); i++)
        sum[i] += rint((double)b->scale[at] * 0x1p30 *
                       (256 * (double)high[i] + (double)low[i]) * by);
}

/* dot_row of 64 rows. */
static void dot_rows(const struct index_vecs *v, int8_t *plane, size_t at,
                     const int8_t *q, bool with_tail, int32_t out[GROUP])
{
    int32_t tails[GROUP];

    v->ops->dots_i8(head_of(v, plane, at), v->head, GROUP, q, v->head, out);
    if (!with_tail)
        return;
    v->ops->dots_i8(tail_of(v, plane, at), v->tail, GROUP, q + v->head, v->tail,
                    tails);
    for (size_t i = 0; i < GROUP; i++)
        out[i] += tails[i];
}

void index_vecs_likeness_64(const struct index_vecs *v,
                            const struct vec_query *q, uint32_t first,
                            float *out)
{
    const struct vec_block *b = find_block(v, first);
    int32_t hh[GROUP], hl[GROUP], lh[GROUP], ll[GROUP];
    bool with_tail = has_tails(v, q);
    size_t at;

    if (!b) {
        memset(out, 0, GROUP * sizeof(*out));
        return;
    }
    at = first - b->first;
    dot_rows(v, b->high, at, q->v.high, with_tail, hh);
    dot_rows(v, b->low, at, q->v.high, with_tail, hl);
    dot_rows(v, b->high, at, q->v.low, with_tail, lh);
    dot_rows(v, b->low, at, q->v.low, with_tail, ll);
    for (size_t i = 0; i < GROUP; i++) {
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
    int32_t products[GROUP];
    size_t at;

    if (!b) {
        memset(out, 0, 64 * sizeof(*out));
        return;
    }
    at = first - b->first;
    dot_rows(v, b->high, at, q->v.high, has_tails(v, q), products);
    bounds_of(v, b, at, q, products, out);
}

/* The guess is off by half of this to either side. Doubts count as doubts. */
bool index_vecs_is_above_zero(const struct index_vecs *v,
                              const struct vec_query *q, uint32_t doc,
                              float bound)
{
    const struct vec_block *b = find_block(v, doc);
    float gain = v->quick ? (float)vec_gain(true, false) : 1;
    float slack;

    if (!b)
        return false;
    slack = (q->is_quick ? b->quick_slack : b->slack)[doc - b->first];
    return bound > 2.1F * gain *
                       (slack * (VEC_PACKED_LENGTH + q->v.slack) +
                        VEC_PACKED_LENGTH * q->v.slack + ROUNDING);
}
