/* Each scope has types of its own: what one org asks about changes nothing that
 * another can see, and no number here counts what others do.
 *
 * A query joins the type whose mean is nearest, if it is near enough, and is
 * the first of a new one otherwise. The mean moves by the share of the newest,
 * until MEAN_OF have joined; from then on it follows what is asked now.
 *
 * Likeness is the guess that the high bytes give: whole numbers, so the same
 * everywhere, and off by less than a hundredth, which is nothing for a line
 * that is drawn somewhere in the middle anyway.
 *
 * Where a scope has too many, one goes that few have joined, the one longest
 * not heard of; a stream of oddities so never washes out what is asked every
 * day. Only where all are well known does the oldest of those go. */
#include "learn/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum { MEAN_OF = 1000, FEW = 3, AT_ONCE = 64, ID_BITS = 40 };

struct str type_key(int64_t id, char out[24])
{
    return (struct str){out, (size_t)snprintf(out, 24, "%lld", (long long)id)};
}

/* Made of the decision alone: the same in every fold, and the number of the
 * outcome would tell how many others there are. Numbers of outcomes, which were
 * ids before types were of one scope, are all smaller. */
int64_t type_id(const struct learn *l, const struct outcome *o)
{
    static const uint64_t seed[2] = {0, 0};
    struct str of = str_of(o->decision_id.text);
    int64_t id;

    if (!of.n)
        of = (struct str){(const char *)&o->at_ms, sizeof(o->at_ms)};
    id = (int64_t)(hash_bytes(of, seed) >> (64 - ID_BITS)) | LEARN_TYPE_FIRST;
    while (type_of(l, id))
        id++;
    return id;
}

struct type *type_of(const struct learn *l, int64_t id)
{
    char key[24];

    return (struct type *)thing_live(l, THING_TYPE, type_key(id, key));
}

static bool is_better(double likeness, const struct type *t, double best,
                      const struct type *best_type)
{
    return likeness > best ||
           (likeness == best && best_type && t->id < best_type->id);
}

struct type *type_near(const struct learn *l, struct str scope,
                       struct str model_hash, const struct vec_packed *v)
{
    const struct shelf *s = shelf_find(l, THING_TYPE, scope, model_hash, v->n);
    double best = l->settings.type_likeness, unit = 65536 * (double)v->scale;
    struct type *nearest = NULL;
    int32_t products[AT_ONCE];

    for (size_t at = 0; s && at < s->n; at += AT_ONCE) {
        size_t n = s->n - at < AT_ONCE ? s->n - at : AT_ONCE;

        vec_ops()->dots_i8(s->high + at * s->stride, s->stride, n, v->high,
                           s->dims, products);
        for (size_t i = 0; i < n; i++) {
            double likeness = products[i] * (unit * (double)s->scale[at + i]);
            struct type *t = (struct type *)s->owner[at + i];

            if (nearest ? is_better(likeness, t, best, nearest)
                        : likeness >= best) {
                best = likeness;
                nearest = t;
            }
        }
    }
    return nearest;
}

struct type *type_new(int64_t id, size_t dims)
{
    char key[24];
    struct type *t = thing_new(THING_TYPE, type_key(id, key));

    if (!t)
        return NULL;
    t->id = id;
    t->mean = FAULT("learn.mean")
                  ? NULL
                  : calloc(1, dims * sizeof(*t->mean) + vec_packed_bytes(dims));
    if (!t->mean) {
        thing_free(&t->thing);
        return NULL;
    }
    list_init(&t->pairs);
    return t;
}

static double number_at(const struct vec_packed *v, size_t i)
{
    return (double)v->scale * (256 * v->high[i] + v->low[i]);
}

/* The mean as it is compared, packed a second time; there is room behind it.
 * What joined was more like it than not, so it is never nothing. */
static bool pack_mean(struct type *t, size_t n, struct vec_packed *out)
{
    uint8_t *bytes = (uint8_t *)(t->mean + n);

    return vec_pack(t->mean, n, bytes) &&
           vec_packed_open(out, bytes, vec_packed_bytes(n), n);
}

bool type_vector_of(const struct learn *l, struct str model_hash,
                    const struct vec_packed *v, struct type_vector *out)
{
    float first[LEARN_QUICK_MAX];

    if (!has_two_parts(l, model_hash, v->n)) {
        out->v = *v;
        return true;
    }
    for (size_t i = 0; i < l->quick; i++)
        first[i] = (float)number_at(v, i);
    return vec_pack(first, l->quick, out->bytes) &&
           vec_packed_open(&out->v, out->bytes, vec_packed_bytes(l->quick),
                           l->quick);
}

bool type_shelve(struct learn *l, struct type *t, struct tenant *scope,
                 struct shelf *s, int64_t heard)
{
    struct vec_packed p;

    if (!pack_mean(t, s->dims, &p))
        return false;
    t->shelf = s;
    t->row = shelf_add(s, &t->thing, &p);
    t->scope = scope;
    list_append(&scope->types, &t->of_scope);
    scope->n_types++;
    thing_add(l, &t->thing, heard);
    return true;
}

void type_begin(struct learn *l, struct type *t, struct tenant *scope,
                struct shelf *s, const struct vec_packed *v, int64_t seq)
{
    bool is_there;

    t->n = 1;
    for (size_t i = 0; i < v->n; i++)
        t->mean[i] = (float)number_at(v, i);
    is_there = type_shelve(l, t, scope, s, seq);
    assert(is_there);
}

void type_join(struct learn *l, struct type *t, const struct vec_packed *v,
               int64_t seq)
{
    struct vec_packed p;
    double share = 1 / (double)((t->n < MEAN_OF ? t->n : MEAN_OF - 1) + 1);

    for (size_t i = 0; i < v->n; i++) {
        double mean = (double)t->mean[i];

        t->mean[i] = (float)(mean + share * (number_at(v, i) - mean));
    }
    t->n++;
    if (pack_mean(t, v->n, &p))
        shelf_set(t->shelf, t->row, &p);
    thing_touch(l, &t->thing, seq);
}

static bool goes_first(const struct type *a, const struct type *b)
{
    bool few = a->n < FEW;

    return few != (b->n < FEW) ? few : a->thing.heard < b->thing.heard;
}

void types_bound(struct learn *l, struct tenant *s)
{
    while (s->n_types > l->settings.max_types) {
        struct list_node *n = list_first(&s->types);
        struct type *least = LIST_OF(n, struct type, of_scope);

        for (; n; n = list_next(&s->types, n))
            if (goes_first(LIST_OF(n, struct type, of_scope), least))
                least = LIST_OF(n, struct type, of_scope);
        type_drop(l, least);
    }
}
