/* Each scope has types of its own: the queries of one org change nothing that
 * another org can see, and no id reveals how many queries others made.
 *
 * A query joins the type with the nearest mean, if it is near enough, and
 * begins a new one otherwise. The mean moves by the share of the newest member,
 * until MEAN_OF have joined; from then on it follows recent queries.
 *
 * Similarity is estimated from the high bytes: whole numbers, so the same on
 * every processor, and off by less than a hundredth, which does not matter for
 * a limit that is approximate anyway.
 *
 * If a scope has too many, a type with few members is evicted, the least
 * recently touched; so a stream of odd queries never displaces the common ones.
 * Only if all have many members does the oldest of those go. */
#include "learn/fold/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { MEAN_OF = 1000, FEW = 3, AT_ONCE = 64, ID_BITS = 40 };

struct str type_key(int64_t id, char out[24])
{
    return (struct str){out, (size_t)snprintf(out, 24, "%lld", (long long)id)};
}

/* Derived from the decision alone, so it is the same in every fold and reveals
 * no count of outcomes. Ids of shared types, in old rows, were numbers of
 * outcomes and are all smaller. */
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

            if (likeness > best ||
                (likeness == best && (!nearest || t->id < nearest->id))) {
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

    t->id = id;
    t->mean = mem_new(dims * sizeof(*t->mean) + vec_packed_bytes(dims));
    list_init(&t->pairs);
    return t;
}

static double number_at(const struct vec_packed *v, size_t i)
{
    return (double)v->scale * (256 * v->high[i] + v->low[i]);
}

/* Pack the mean for comparisons, into the room behind it. Members are similar
 * to it, so it is never zero. */
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
                 struct shelf *s, int64_t touched)
{
    struct vec_packed p;

    if (!pack_mean(t, s->dims, &p))
        return false;
    t->shelf = s;
    t->row = shelf_add(s, &t->thing, &p);
    t->scope = scope;
    list_append(&scope->types, &t->of_scope);
    scope->n_types++;
    thing_add(l, &t->thing, touched);
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

    return few != (b->n < FEW) ? few : a->thing.touched < b->thing.touched;
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
