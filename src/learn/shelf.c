/* Vectors that are compared with the same query lie side by side, high bytes
 * in one plane and low ones in another, so that looking through all of them is
 * one walk over memory (as in index/). Their order means nothing: whatever is
 * added up over a shelf is whole numbers. */
#include "learn/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { ALIGN = 64, FIRST_ROWS = 8 };

bool vector_open(struct vec_packed *v, struct str packed)
{
    size_t n = packed.n >= 8 ? (packed.n - 8) / 2 : 0;

    return n > 0 && n <= DIMS_MAX &&
           vec_packed_open(v, (const uint8_t *)packed.p, packed.n, n) &&
           v->scale > 0;
}

bool has_two_parts(const struct learn *l, struct str model_hash, size_t dims)
{
    return l->quick && dims > l->quick && str_eq(model_hash, l->model_hash);
}

/* Lengths in front, so that no two run into each other. */
static size_t key_of(char *out, enum thing_kind kind, struct str scope,
                     struct str hash, size_t dims)
{
    uint32_t head[3] = {(uint32_t)scope.n,
                        (uint32_t)hash.n | (kind == THING_TYPE ? 1U << 31 : 0),
                        (uint32_t)dims};

    memcpy(out, head, sizeof(head));
    if (scope.n)
        memcpy(out + sizeof(head), scope.p, scope.n);
    if (hash.n)
        memcpy(out + sizeof(head) + scope.n, hash.p, hash.n);
    return sizeof(head) + scope.n + hash.n;
}

enum { SHELF_KEY_MAX = 12 + SCOPE_MAX + HASH_MAX };

struct shelf *shelf_find(const struct learn *l, enum thing_kind kind,
                         struct str scope, struct str model_hash, size_t dims)
{
    char key[SHELF_KEY_MAX];

    if (scope.n > SCOPE_MAX || model_hash.n > HASH_MAX)
        return NULL;
    return map_get(&l->shelves, (struct str){key, key_of(key, kind, scope,
                                                         model_hash, dims)});
}

static struct shelf *shelf_new(enum thing_kind kind, struct str scope,
                               struct str hash, size_t dims)
{
    struct shelf *s =
        FAULT("learn.shelf") ? NULL : calloc(1, sizeof(*s) + SHELF_KEY_MAX);
    char *p = s ? (char *)(s + 1) : NULL;

    if (!s)
        return NULL;
    s->kind = kind;
    s->key = (struct str){p, key_of(p, kind, scope, hash, dims)};
    s->scope = (struct str){p + 12, scope.n};
    s->model_hash = (struct str){p + 12 + scope.n, hash.n};
    s->dims = dims;
    s->stride = (dims ? dims + ALIGN - 1 : ALIGN) / ALIGN * ALIGN;
    return s;
}

void shelf_free(struct shelf *s)
{
    if (!s)
        return;
    free(s->high);
    free(s->scale);
    free(s->heard);
    free(s);
}

static void move_planes(struct shelf *s, int8_t *planes, size_t cap)
{
    if (s->n) {
        memcpy(planes, s->high, s->n * s->stride);
        memcpy(planes + cap * s->stride, s->low, s->n * s->stride);
    }
    free(s->high);
    s->high = planes;
    s->low = planes + cap * s->stride;
}

static void move_rest(struct shelf *s, float *scale, int64_t *heard, size_t cap)
{
    struct thing **owner = (struct thing **)(void *)(heard + cap);
    struct who **right = (struct who **)(void *)(owner + cap);
    struct who **wrong = right + cap;
    bool *is_quick = (bool *)(void *)(wrong + cap);

    if (s->n) {
        memcpy(scale, s->scale, s->n * sizeof(*scale));
        memcpy(scale + cap, s->slack, s->n * sizeof(*scale));
        memcpy(heard, s->heard, s->n * sizeof(*heard));
        memcpy(owner, s->owner, s->n * sizeof(*owner));
        memcpy(right, s->right, s->n * sizeof(*right));
        memcpy(wrong, s->wrong, s->n * sizeof(*wrong));
        memcpy(is_quick, s->is_quick, s->n * sizeof(*is_quick));
    }
    free(s->scale);
    free(s->heard);
    s->scale = scale;
    s->slack = scale + cap;
    s->heard = heard;
    s->owner = owner;
    s->right = right;
    s->wrong = wrong;
    s->is_quick = is_quick;
}

static enum err reserve_one(struct shelf *s)
{
    size_t cap = s->cap ? s->cap + s->cap / 2 : FIRST_ROWS;
    int8_t *planes;
    float *scale;
    int64_t *heard;

    if (s->n < s->cap)
        return OK;
    if (FAULT("learn.rows"))
        return ERR_NOMEM;
    planes = aligned_alloc(ALIGN, 2 * cap * s->stride);
    scale = malloc(cap * 2 * sizeof(*scale));
    heard = malloc(cap * (sizeof(*heard) + 3 * sizeof(void *) + sizeof(bool)));
    if (!planes || !scale || !heard) {
        free(planes);
        free(scale);
        free(heard);
        return ERR_NOMEM;
    }
    move_planes(s, planes, cap);
    move_rest(s, scale, heard, cap);
    s->cap = cap;
    return OK;
}

struct shelf *shelf_take(struct learn *l, enum thing_kind kind,
                         struct str scope, struct str model_hash, size_t dims)
{
    struct shelf *s = shelf_find(l, kind, scope, model_hash, dims);
    bool is_new = !s;

    if (scope.n > SCOPE_MAX || model_hash.n > HASH_MAX)
        return NULL;
    if (!s)
        s = shelf_new(kind, scope, model_hash, dims);
    if (!s)
        return NULL;
    if (is_new && has_two_parts(l, model_hash, dims))
        s->quick = l->quick;
    if (reserve_one(s) || (is_new && map_put(&l->shelves, s->key, s))) {
        if (is_new)
            shelf_free(s);
        return NULL;
    }
    return s;
}

void shelf_tidy(struct learn *l, struct shelf *s)
{
    if (!s || s->n)
        return;
    map_take(&l->shelves, s->key);
    shelf_free(s);
}

void shelf_set(struct shelf *s, size_t row, const struct vec_packed *v)
{
    int8_t *high = s->high + row * s->stride, *low = s->low + row * s->stride;

    if (s->dims) {
        memcpy(high, v->high, s->dims);
        memcpy(low, v->low, s->dims);
    }
    memset(high + s->dims, 0, s->stride - s->dims);
    memset(low + s->dims, 0, s->stride - s->dims);
    s->scale[row] = v->scale;
    s->slack[row] = v->slack;
    s->is_quick[row] = vec_packed_is_quick(v, s->quick);
}

size_t shelf_add(struct shelf *s, struct thing *owner,
                 const struct vec_packed *v)
{
    size_t row = s->n++;

    shelf_set(s, row, v);
    s->heard[row] = 0;
    s->owner[row] = owner;
    s->right[row] = s->wrong[row] = NULL;
    return row;
}

void shelf_remove(struct shelf *s, size_t row)
{
    size_t last = --s->n;
    struct vec_packed v = shelf_at(s, last);
    struct thing *t = s->owner[last];

    if (row == last)
        return;
    shelf_set(s, row, &v);
    s->heard[row] = s->heard[last];
    s->owner[row] = t;
    s->right[row] = s->right[last];
    s->wrong[row] = s->wrong[last];
    if (t->kind == THING_TYPE)
        ((struct type *)t)->row = row;
    else
        ((struct example *)t)->row = row;
}

struct vec_packed shelf_at(const struct shelf *s, size_t row)
{
    return (struct vec_packed){s->scale[row], s->slack[row],
                               s->high + row * s->stride,
                               s->low + row * s->stride, s->dims};
}
