/* One map finds a thing by its kind and key, and a heap of each kind has the
 * least recently touched first. If two were touched by the same outcome the key
 * decides, so evictions do not depend on the order in which things came into
 * memory.
 *
 * A dropped thing stays until its row is removed from the table, so that a new
 * thing with the same key does not conflict with its past. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

static const size_t sizes[N_KINDS] = {
    [THING_AGENT] = sizeof(struct known),
    [THING_TYPE] = sizeof(struct type),
    [THING_PAIR] = sizeof(struct pair),
    [THING_EXAMPLE] = sizeof(struct example),
    [THING_VIEW] = sizeof(struct view),
    [THING_RATING] = sizeof(struct rating),
    [THING_SCOPE] = sizeof(struct tenant),
};

enum { KEY_MAX = 1 + 320 };

void *thing_new(enum thing_kind kind, struct str key)
{
    struct thing *t = mem_new(sizes[kind] + 1 + key.n);
    char *p = (char *)t + sizes[kind];

    p[0] = (char)('0' + kind);
    if (key.n)
        memcpy(p + 1, key.p, key.n);
    t->kind = kind;
    t->key = (struct str){p, 1 + key.n};
    return t;
}

void thing_free(struct thing *t)
{
    if (t && t->kind == THING_TYPE)
        free(((struct type *)t)->mean);
    free(t);
}

struct thing *thing_find(const struct learn *l, enum thing_kind kind,
                         struct str key)
{
    char bytes[KEY_MAX];

    if (key.n >= sizeof(bytes))
        return NULL;
    bytes[0] = (char)('0' + kind);
    if (key.n)
        memcpy(bytes + 1, key.p, key.n);
    return map_get(&l->things, (struct str){bytes, 1 + key.n});
}

struct thing *thing_live(const struct learn *l, enum thing_kind kind,
                         struct str key)
{
    struct thing *t = thing_find(l, kind, key);

    return t && !t->is_gone ? t : NULL;
}

/* The heap: the least recently touched is first. */

static bool is_evicted_before(const struct thing *a, const struct thing *b)
{
    return a->touched != b->touched ? a->touched < b->touched
                                    : str_cmp(a->key, b->key) < 0;
}

static void heap_set(struct heap *h, size_t at, struct thing *t)
{
    h->p[at] = t;
    t->slot = at;
}

static void things_sift_up(struct heap *h, struct thing *t)
{
    size_t at = t->slot;

    for (; at > 0 && is_evicted_before(t, h->p[(at - 1) / 2]);
         at = (at - 1) / 2)
        heap_set(h, at, h->p[(at - 1) / 2]);
    heap_set(h, at, t);
}

static void things_sift_down(struct heap *h, struct thing *t)
{
    size_t at = t->slot, kid;

    while ((kid = 2 * at + 1) < h->n) {
        kid += kid + 1 < h->n && is_evicted_before(h->p[kid + 1], h->p[kid]);
        if (!is_evicted_before(h->p[kid], t))
            break;
        heap_set(h, at, h->p[kid]);
        at = kid;
    }
    heap_set(h, at, t);
}

static void heap_take(struct heap *h, struct thing *t)
{
    struct thing *last = h->p[--h->n];

    if (last == t)
        return;
    heap_set(h, t->slot, last);
    things_sift_up(h, last);
    things_sift_down(h, last);
}

static enum err heap_reserve(struct heap *h)
{
    size_t cap = h->cap ? 2 * h->cap : 64;
    void *p;

    if (h->n + 2 <= h->cap) /* an outcome can add two ratings */
        return OK;
    p = FAULT("learn.heap") ? NULL
                            : realloc(h->p, cap * sizeof(struct thing *));
    if (!p)
        return ERR_NOMEM;
    h->p = p;
    h->cap = cap;
    return OK;
}

/* An outcome names two agents and touches one group of each kind and one shelf
 * of each kind. */
enum err learn_reserve(struct learn *l)
{
    enum err e = map_reserve(&l->things, N_KINDS + 1);

    if (!e)
        e = map_reserve(&l->groups, 2);
    if (!e)
        e = map_reserve(&l->shelves, 2);
    if (!e)
        e = agent_names_reserve(&l->names, 2);
    for (int kind = 0; !e && kind < N_KINDS; kind++)
        e = heap_reserve(&l->heaps[kind]);
    return e;
}

struct thing *things_oldest(const struct learn *l, enum thing_kind kind)
{
    return l->heaps[kind].n ? l->heaps[kind].p[0] : NULL;
}

/* Rows. */

void thing_dirty(struct learn *l, struct thing *t)
{
    if (t->state == ROW_WRITING)
        t->is_again = true;
    if (t->state != ROW_CLEAN)
        return;
    t->state = ROW_DIRTY;
    list_append(&l->dirty, &t->row);
}

void thing_add(struct learn *l, struct thing *t, int64_t touched)
{
    struct heap *h = &l->heaps[t->kind];
    struct thing *past = map_take(&l->things, t->key);

    if (past) {
        t->state = past->state;
        t->has_row = past->has_row;
        t->is_written = past->is_written;
        t->is_again = past->is_again;
        if (list_has(&past->row)) {
            list_insert_before(&past->row, &t->row);
            list_remove(&past->row);
        }
        thing_free(past);
    }
    if (map_put(&l->things, t->key, t))
        abort(); /* learn_reserve has made room */
    t->touched = touched;
    t->slot = h->n;
    h->p[h->n++] = t;
    things_sift_up(h, t);
    thing_dirty(l, t);
}

void thing_touch(struct learn *l, struct thing *t, int64_t touched)
{
    if (touched > t->touched) {
        t->touched = touched;
        things_sift_down(&l->heaps[t->kind], t);
    }
    thing_dirty(l, t);
}

void thing_drop(struct learn *l, struct thing *t)
{
    heap_take(&l->heaps[t->kind], t);
    t->is_gone = true;
    if (t->has_row || t->state == ROW_WRITING) {
        thing_dirty(l, t);
        return;
    }
    list_remove(&t->row);
    map_take(&l->things, t->key);
    thing_free(t);
}

static int thing_by_key(const void *a, const void *b)
{
    const struct thing *const *x = a, *const *y = b;

    return str_cmp((*x)->key, (*y)->key);
}

/* Decimal numbers of different lengths do not sort as text, so types are
 * compared by number. */
static int by_type(const void *a, const void *b)
{
    int64_t x = (*(const struct type *const *)a)->id;
    int64_t y = (*(const struct type *const *)b)->id;

    return (x > y) - (x < y);
}

struct thing **things_in_order(const struct learn *l, enum thing_kind kind,
                               size_t *n)
{
    const struct heap *h = &l->heaps[kind];
    struct thing **all = h->n ? malloc(h->n * sizeof(struct thing *)) : NULL;

    *n = all ? h->n : 0;
    if (!all)
        return NULL;
    memcpy(all, h->p, h->n * sizeof(struct thing *));
    qsort(all, h->n, sizeof(struct thing *),
          kind == THING_TYPE ? by_type : thing_by_key);
    return all;
}

/* Dropping with dependents. */

void pair_drop(struct learn *l, struct pair *p)
{
    list_remove(&p->of_view);
    list_remove(&p->of_type);
    p->view = NULL;
    p->type = NULL;
    thing_drop(l, &p->thing);
}

void known_drop(struct learn *l, struct known *k)
{
    struct agent_name *w = k->agent;
    struct list_node *n;

    w->n_refs++; /* its views may hold the last references */
    while ((n = list_first(&w->views)))
        view_drop(l, LIST_OF(n, struct view, of_who));
    w->known = NULL;
    k->agent = NULL;
    thing_drop(l, &k->thing);
    agent_name_release(l, w);
    agent_name_release(l, w);
}

void type_drop(struct learn *l, struct type *t)
{
    struct shelf *s = t->shelf;
    struct list_node *n;

    while ((n = list_first(&t->pairs)))
        pair_drop(l, LIST_OF(n, struct pair, of_type));
    list_remove(&t->of_scope);
    t->scope->n_types--;
    t->scope = NULL;
    shelf_remove(s, t->row);
    shelf_tidy(l, s);
    t->shelf = NULL;
    thing_drop(l, &t->thing);
}

void example_drop(struct learn *l, struct example *x)
{
    struct shelf *s = x->shelf;
    struct agent_name *right = s->right[x->row], *wrong = s->wrong[x->row];

    shelf_remove(s, x->row);
    shelf_tidy(l, s);
    group_remove(l, x->group, &x->same);
    x->shelf = NULL;
    x->group = NULL;
    thing_drop(l, &x->thing);
    agent_name_release(l, right);
    agent_name_release(l, wrong);
}

void drop_any(struct learn *l, struct thing *t)
{
    switch (t->kind) {
    case THING_AGENT: known_drop(l, (struct known *)t); break;
    case THING_TYPE: type_drop(l, (struct type *)t); break;
    case THING_PAIR: pair_drop(l, (struct pair *)t); break;
    case THING_EXAMPLE: example_drop(l, (struct example *)t); break;
    case THING_VIEW: view_drop(l, (struct view *)t); break;
    case THING_RATING: rating_drop(l, (struct rating *)t); break;
    case THING_SCOPE: tenant_drop(l, (struct tenant *)t); break;
    case THING_NUMBER:
    case N_KINDS: break;
    }
}
