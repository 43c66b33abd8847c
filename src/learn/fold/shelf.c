/* Vectors that are compared with the same query are stored side by side, high
 * bytes in one plane and low ones in another, so a search is one pass over
 * memory (as in index/). Their order has no meaning: sums over a shelf are of
 * whole numbers. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

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

/* Lengths first, so that different parts never give the same key. */
static size_t shelf_key(char *out, enum thing_kind kind, struct str scope,
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
    return map_get(&l->shelves, (struct str){key, shelf_key(key, kind, scope,
                                                            model_hash, dims)});
}

void shelf_free(struct shelf *s)
{
    if (!s)
        return;
    free(s->high);
    free(s->scale);
    free(s->touched);
    free(s);
}

static void shelf_move_arrays(struct shelf *s, float *scale, int64_t *touched,
                              size_t cap)
{
    struct thing **owner = (struct thing **)(void *)(touched + cap);
    struct agent_name **right = (struct agent_name **)(void *)(owner + cap);
    struct agent_name **wrong = right + cap;
    bool *is_quick = (bool *)(void *)(wrong + cap);

    if (s->n) {
        memcpy(scale, s->scale, s->n * sizeof(*scale));
        memcpy(scale + cap, s->slack, s->n * sizeof(*scale));
        memcpy(touched, s->touched, s->n * sizeof(*touched));
        memcpy(owner, s->owner, s->n * sizeof(*owner));
        memcpy(right, s->right, s->n * sizeof(*right));
        memcpy(wrong, s->wrong, s->n * sizeof(*wrong));
        memcpy(is_quick, s->is_quick, s->n * sizeof(*is_quick));
    }
    free(s->scale);
    free(s->touched);
    s->scale = scale;
    s->slack = scale + cap;
    s->touched = touched;
    s->owner = owner;
    s->right = right;
    s->wrong = wrong;
    s->is_quick = is_quick;
}

static enum err shelf_reserve(struct shelf *s)
{
    size_t cap = s->cap ? s->cap + s->cap / 2 : FIRST_ROWS;
    int8_t *planes;
    float *scale;
    int64_t *touched;

    if (s->n < s->cap)
        return OK;
    if (FAULT("learn.rows"))
        return ERR_NOMEM;
    planes = aligned_alloc(ALIGN, 2 * cap * s->stride);
    scale = malloc(cap * 2 * sizeof(*scale));
    touched =
        malloc(cap * (sizeof(*touched) + 3 * sizeof(void *) + sizeof(bool)));
    if (!planes || !scale || !touched) {
        free(planes);
        free(scale);
        free(touched);
        return ERR_NOMEM;
    }
    if (s->n) {
        memcpy(planes, s->high, s->n * s->stride);
        memcpy(planes + cap * s->stride, s->low, s->n * s->stride);
    }
    free(s->high);
    s->high = planes;
    s->low = planes + cap * s->stride;
    shelf_move_arrays(s, scale, touched, cap);
    s->cap = cap;
    return OK;
}

struct shelf *shelf_take(struct learn *l, enum thing_kind kind,
                         struct str scope, struct str model_hash, size_t dims)
{
    struct shelf *s = shelf_find(l, kind, scope, model_hash, dims);
    char *p;

    if (scope.n > SCOPE_MAX || model_hash.n > HASH_MAX)
        return NULL;
    if (!s) {
        s = mem_new(sizeof(*s) + SHELF_KEY_MAX);
        p = (char *)(s + 1);
        s->kind = kind;
        s->key = (struct str){p, shelf_key(p, kind, scope, model_hash, dims)};
        s->scope = (struct str){p + 12, scope.n};
        s->model_hash = (struct str){p + 12 + scope.n, model_hash.n};
        s->dims = dims;
        s->stride = (dims ? dims + ALIGN - 1 : ALIGN) / ALIGN * ALIGN;
        s->quick = has_two_parts(l, model_hash, dims) ? l->quick : 0;
        if (map_put(&l->shelves, s->key, s))
            abort(); /* learn_reserve has made room */
    }
    if (shelf_reserve(s)) {
        shelf_tidy(l, s);
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
    s->touched[row] = 0;
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
    s->touched[row] = s->touched[last];
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
