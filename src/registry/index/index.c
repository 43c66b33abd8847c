/* Agents, their documents, and their classes.
 *
 * Document numbers are dense, because a number is an index in every array; free
 * numbers are reused first. Preparing a change reserves what it needs: there is
 * always room for
 *
 *     n_docs + max(n_promised - n_free, 0)
 *
 * documents, and putting, dropping and forgetting keep it so. The agent that a
 * change replaces still counts until then, so at the very limit there must be
 * room for both. */
#include "registry/index/data.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

void *index_grow(void *p, size_t n, size_t size)
{
    return FAULT("index.grow") ? NULL : reallocarray(p, n, size);
}

struct index *index_new(size_t max_docs, const uint64_t seed[2])
{
    struct index *x = mem_new(sizeof(*x));

    x->max_docs = max_docs < INDEX_DOCS_MAX ? max_docs : INDEX_DOCS_MAX;
    /* Each agent has a class and an owner class. */
    map_init(&x->by_class, 2 * x->max_docs + 2, seed);
    x->agents = FAULT("index.agents")
                    ? NULL
                    : calloc(x->max_docs + 1, sizeof(struct index_entry *));
    x->text = text_new(x->max_docs, seed);
    if (x->agents)
        return x;
    index_free(x);
    return NULL;
}

void index_free(struct index *x)
{
    struct index_search *s;

    if (!x)
        return;
    for (size_t i = 0; i < x->agents_end; i++)
        free(x->agents[i]);
    generic_reset(x);
    for (size_t i = 0; i < x->n_classes; i++)
        free(x->classes[i]);
    index_vecs_reset(&x->vectors, 0, 0);
    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        index_vecs_reset(&x->reference[t], 0, 0);
    profiles_fini(x);
    text_free(x->text);
    map_fini(&x->by_class);
    s = &x->search;
    free(s->query);
    free(s->visible);
    free(s->bounds);
    free(s->best_of_64);
    free(s->texts);
    free(s->touched);
    free(s->seen);
    free(s->counted);
    free(s->heap);
    free(s->near);
    free(s->near_seen);
    free(s->near_profile);
    free(s->near_fine);
    free(x->agents);
    free(x->docs);
    free(x->doc_class);
    free(x->free_docs);
    free(x->classes);
    free(x->free_classes);
    free(x);
}

void index_set_dims(struct index *x, uint32_t dims)
{
    index_set_parts(x, dims, 0);
}

void index_set_parts(struct index *x, uint32_t dims, uint32_t quick)
{
    dims = dims < INDEX_DIMS_MAX ? dims : INDEX_DIMS_MAX;
    assert(!x->search.is_open);
    index_vecs_reset(&x->vectors, dims, quick);
    index_vecs_reset(&x->profiles.vecs, dims, quick);
    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++) {
        index_vecs_reset(&x->reference[t], dims, quick);
        x->n_reference[t] = 0;
    }
    generic_reset(x);
    x->epoch++;
    x->n_vectors = 0;
    for (size_t i = 0; i < x->agents_end; i++)
        if (x->agents[i])
            x->agents[i]->has_vectors = false;
    for (size_t i = 0; i < x->profiles.n; i++) {
        x->profiles.has_vector[i] = x->profiles.is_quick[i] = false;
        x->profiles.level[i] = NO_LEVELS;
    }
}

uint32_t index_dims(const struct index *x)
{
    return x->vectors.dims;
}

uint32_t index_quick(const struct index *x)
{
    return x->vectors.quick;
}

/* Room for n more documents than are promised. */
static enum err index_docs_room(struct index *x, size_t n)
{
    size_t promised = x->n_promised + n;
    size_t used = x->n_docs - x->n_free;
    size_t need = x->n_docs + (promised > x->n_free ? promised - x->n_free : 0);
    size_t more = (need + need / 2 + 64) / 64 * 64;
    enum err e;

    if (n > x->max_docs || used + promised > x->max_docs)
        return ERR_LIMIT;
    e = index_vecs_reserve(&x->vectors, need);
    if (!e)
        e = text_room(x->text, (uint32_t)need, 0);
    if (e || need <= x->docs_cap)
        return e;
    if (!INDEX_GROW(x->docs, more) || !INDEX_GROW(x->free_docs, more) ||
        !INDEX_GROW(x->doc_class, more))
        return ERR_NOMEM;
    for (; x->docs_cap < more; x->docs_cap++)
        x->doc_class[x->docs_cap] = NO_CLASS;
    return OK;
}

static uint32_t index_doc_take(struct index *x)
{
    if (x->n_free > 0)
        return x->free_docs[--x->n_free];
    assert(x->n_docs < x->docs_cap);
    return (uint32_t)x->n_docs++;
}

int index_doc_order(const struct index *x, uint32_t a, uint32_t b)
{
    const struct doc *da = &x->docs[a], *db = &x->docs[b];
    int names = 0;

    if (da->number != db->number) {
        struct str na = x->agents[da->number]->name;
        struct str nb = x->agents[db->number]->name;

        names = str_cmp_nocase(na, nb);
        if (names == 0)
            names = da->number < db->number ? -1 : 1;
    }
    if (names != 0)
        return names;
    return da->skill < db->skill ? -1 : da->skill > db->skill;
}

static enum err entry_take_classes(struct index *x, struct index_entry *e,
                                   struct index_class cls, struct str owner)
{
    struct index_class creator = {INDEX_CREATOR, owner};
    enum err err = index_class_take(x, cls, &e->cls);

    e->owner = NO_CLASS;
    if (err || !owner.n)
        return err;
    err = index_class_take(x, creator, &e->owner);
    if (err)
        index_class_leave(x, e->cls);
    return err;
}

static void entry_leave_classes(struct index *x, const struct index_entry *e)
{
    index_class_leave(x, e->cls);
    if (e->owner != NO_CLASS)
        index_class_leave(x, e->owner);
}

static void change_free(struct index_change *c)
{
    free(c->vectors);
    free(c->texts);
    free(c);
}

enum err index_change_new(struct index *x, struct str name,
                          struct index_class cls, struct str owner,
                          size_t n_docs, struct index_change **out)
{
    struct index_change *c;
    enum err e = index_docs_room(x, n_docs);
    size_t head = sizeof(struct index_entry) + n_docs * sizeof(uint32_t);
    struct index_entry *entry;

    *out = NULL;
    if (!e)
        e = profiles_promise(x);
    if (e)
        return e;
    c = FAULT("index.change") ? NULL : calloc(1, sizeof(*c));
    if (!c) {
        profiles_forget(x);
        return ERR_NOMEM;
    }
    entry = mem_new(head + name.n);
    entry->n_docs = n_docs;
    if (name.n > 0)
        memcpy((char *)entry + head, name.p, name.n);
    entry->name = (struct str){(char *)entry + head, name.n};
    c->entry = entry;
    c->texts = mem_array(n_docs, sizeof(struct text_doc *));
    e = entry_take_classes(x, c->entry, cls, owner);
    if (e) {
        profiles_forget(x);
        free(c->entry);
        change_free(c);
        return e;
    }
    x->n_promised += n_docs;
    *out = c;
    return OK;
}

enum err index_change_vectors(struct index *x, struct index_change *c,
                              const uint8_t *vectors)
{
    size_t each = vec_packed_bytes(x->vectors.dims);
    size_t bytes = c->entry->n_docs * each;

    c->vectors = FAULT("index.vectors") ? NULL : malloc(bytes + each);
    if (!c->vectors)
        return ERR_NOMEM;
    memcpy(c->vectors, vectors, bytes);
    memcpy(c->vectors + bytes, vectors, each);
    c->epoch = x->epoch;
    return OK;
}

void index_change_profile(struct index *x, struct index_change *c,
                          const uint8_t *packed)
{
    size_t each = vec_packed_bytes(x->vectors.dims);

    if (c->vectors && c->epoch == x->epoch)
        memcpy(c->vectors + c->entry->n_docs * each, packed, each);
}

void index_change_for_now(struct index_change *c)
{
    c->is_for_now = true;
}

enum err index_prepare(struct index *x, const struct agent *a,
                       const uint8_t *vectors, struct index_change **out)
{
    struct str owner = a->kind == AGENT_PLATFORM ? STR("") : a->creator;
    enum err e = index_change_new(x, a->name, index_class_of(a), owner,
                                  a->n_skills + 1, out);

    if (!e && vectors && x->vectors.dims > 0)
        e = index_change_vectors(x, *out, vectors);
    for (size_t i = 0; !e && i <= a->n_skills; i++)
        e = text_prepare(x->text, a, i ? &a->skills[i - 1] : NULL,
                         &(*out)->texts[i]);
    if (e && *out) {
        index_forget(x, *out);
        *out = NULL;
    }
    return e;
}

void index_forget(struct index *x, struct index_change *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->entry->n_docs; i++)
        text_forget(x->text, c->texts[i]);
    x->n_promised -= c->entry->n_docs;
    profiles_forget(x);
    entry_leave_classes(x, c->entry);
    free(c->entry);
    change_free(c);
}

void index_put(struct index *x, uint32_t number, struct index_change *c)
{
    struct index_entry *e = c->entry;
    size_t bytes = vec_packed_bytes(x->vectors.dims);

    assert(number < x->max_docs && !x->search.is_open);
    index_drop(x, number);
    e->number = number;
    e->has_vectors = c->vectors && c->epoch == x->epoch;
    e->is_for_now = c->is_for_now;
    for (size_t i = 0; i < e->n_docs; i++) {
        uint32_t doc = index_doc_take(x);

        e->docs[i] = doc;
        x->docs[doc] =
            (struct doc){e->number, i ? (uint32_t)i - 1 : INDEX_AGENT,
                         i ? near_part(c->texts[0], c->texts[i]) : 1};
        x->doc_class[doc] = e->cls;
        text_put(x->text, doc, e->cls, c->texts[i]);
        index_vecs_set(&x->vectors, doc,
                       e->has_vectors ? c->vectors + i * bytes : NULL);
    }
    profiles_put(x, e, e->has_vectors ? c->vectors + e->n_docs * bytes : NULL);
    x->n_promised -= e->n_docs;
    x->n_vectors += e->has_vectors ? e->n_docs : 0;
    if (e->has_vectors)
        x->profiles.level[e->slot] =
            c->has_level ? c->level : level_compute(x, e, NO_LEVELS);
    x->agents[number] = e;
    x->n_agents++;
    if (number >= x->agents_end)
        x->agents_end = (size_t)number + 1;
    change_free(c);
}

static struct index_entry *index_find_entry(const struct index *x,
                                            uint32_t number)
{
    return number < x->agents_end ? x->agents[number] : NULL;
}

void index_drop(struct index *x, uint32_t number)
{
    struct index_entry *e = index_find_entry(x, number);

    assert(!x->search.is_open);
    if (!e)
        return;
    for (size_t i = e->n_docs; i-- > 0;) {
        uint32_t doc = e->docs[i];

        text_drop(x->text, doc);
        index_vecs_set(&x->vectors, doc, NULL);
        x->doc_class[doc] = NO_CLASS;
        x->free_docs[x->n_free++] = doc;
    }
    x->n_vectors -= e->has_vectors ? e->n_docs : 0;
    profiles_drop(x, e);
    entry_leave_classes(x, e);
    x->agents[number] = NULL;
    x->n_agents--;
    free(e);
}

void index_clear(struct index *x)
{
    for (uint32_t i = 0; i < x->agents_end; i++)
        index_drop(x, i);
    x->agents_end = 0;
}

bool index_agent(const struct index *x, uint32_t number, struct str *name,
                 size_t *n_docs)
{
    const struct index_entry *e = index_find_entry(x, number);

    if (!e)
        return false;
    *name = e->name;
    *n_docs = e->n_docs;
    return true;
}

enum err index_move(struct index *x, uint32_t number, struct index_class cls)
{
    struct index_entry *e = index_find_entry(x, number);
    uint32_t to, was;
    enum err err;

    assert(!x->search.is_open);
    if (!e)
        return OK;
    err = index_class_take(x, cls, &to);
    if (err)
        return err;
    for (size_t i = 0; !err && i < e->n_docs; i++)
        err = text_move_room(x->text, e->docs[i]);
    if (err) {
        index_class_leave(x, to);
        return err;
    }
    for (size_t i = 0; i < e->n_docs; i++) {
        text_move(x->text, e->docs[i], to);
        x->doc_class[e->docs[i]] = to;
    }
    generic_leave(x, e);
    was = e->cls;
    e->cls = to;
    x->profiles.is_aside[e->slot] = index_class_is_aside(x, to);
    generic_enter(x, e);
    index_class_leave(x, was);
    return OK;
}

bool index_vectors(const struct index *x, uint32_t number, struct buf *out)
{
    const struct index_entry *e = index_find_entry(x, number);
    size_t bytes = vec_packed_bytes(x->vectors.dims);
    char *p;

    if (!e || !e->has_vectors)
        return false;
    p = buf_reserve(out, e->n_docs * bytes);
    if (!p)
        return false;
    for (size_t i = 0; i < e->n_docs; i++)
        index_vecs_get(&x->vectors, e->docs[i], (uint8_t *)p + i * bytes);
    buf_commit(out, e->n_docs * bytes);
    return true;
}

bool index_is_for_now(const struct index *x, uint32_t number)
{
    const struct index_entry *e = index_find_entry(x, number);

    return e && e->has_vectors && e->is_for_now;
}

static size_t index_own_bytes(const struct index *x)
{
    size_t per_doc =
        sizeof(*x->docs) + sizeof(*x->doc_class) + sizeof(*x->free_docs);
    size_t bytes = sizeof(*x) + x->docs_cap * per_doc +
                   x->agents_end * sizeof(struct index_entry *);
    const struct index_search *s = &x->search;

    for (size_t i = 0; i < x->agents_end; i++)
        if (x->agents[i])
            bytes += sizeof(struct index_entry) + x->agents[i]->name.n +
                     x->agents[i]->n_docs * sizeof(uint32_t);
    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            bytes += sizeof(struct class) + x->classes[i]->key.n;
    bytes += x->classes_cap * (sizeof(struct class *) + sizeof(uint32_t)) +
             x->by_class.cap * sizeof(*x->by_class.slots);
    bytes += profiles_bytes(x) + generic_bytes(x) + s->near_cap / 8 +
             s->near_cap * (sizeof(*s->near) + sizeof(*s->near_fine) +
                            sizeof(*s->near_profile));
    return bytes + s->cap / 64 * (sizeof(uint64_t) + sizeof(float)) +
           s->cap * (2 * sizeof(float) + sizeof(uint32_t) + sizeof(*s->heap)) +
           s->seen_cap * sizeof(*s->seen) +
           s->counted_cap * sizeof(*s->counted);
}

struct index_stats index_stats(const struct index *x)
{
    struct index_stats s = x->stats;

    s.agents = x->n_agents;
    s.documents = x->n_docs - x->n_free;
    s.vectors = x->n_vectors;
    s.terms = text_n_terms(x->text);
    s.vector_bytes = index_vecs_bytes(&x->vectors) +
                     index_vecs_bytes(&x->profiles.vecs) +
                     index_vecs_bytes(&x->reference[QUERY_FULL]) +
                     index_vecs_bytes(&x->reference[QUERY_QUICK]);
    s.bytes = index_own_bytes(x) + s.vector_bytes + text_bytes(x->text);
    return s;
}
