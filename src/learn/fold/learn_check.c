/* Checks the invariants of internal.h. For tests: it visits everything. */
#include "learn/fold/internal.h"

static bool heap_is_in_order(const struct heap *h, enum thing_kind kind)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct thing *t = h->p[i], *up = h->p[i ? (i - 1) / 2 : 0];

        if (t->slot != i || t->kind != kind || t->is_gone ||
            up->touched > t->touched)
            return false;
    }
    return true;
}

static bool row_is_in_order(const struct thing *t)
{
    bool is_listed = list_has(&t->row);

    if (is_listed != (t->state != ROW_CLEAN))
        return false;
    if (t->is_again && t->state != ROW_WRITING)
        return false;
    return !t->is_gone || is_listed;
}

static bool known_is_in_order(const struct known *k)
{
    return k->agent->known == k && k->rate >= 0 && k->rate <= 1 &&
           list_has(&k->renown) == (k->agent->n_views > 1) &&
           list_length(&k->agent->views) == k->agent->n_views;
}

static bool type_is_in_order(const struct type *t)
{
    return t->shelf->owner[t->row] == &t->thing && t->n > 0 &&
           t->shelf->kind == THING_TYPE && t->row < t->shelf->n &&
           str_eq(t->shelf->scope, tenant_name(t->scope)) &&
           list_has(&t->of_scope) && !t->scope->thing.is_gone;
}

static bool pair_is_in_order(const struct pair *p)
{
    return list_has(&p->of_view) && list_has(&p->of_type) && p->n > 0 &&
           p->outside_n <= p->n && p->outside_n >= 0 && p->n <= p->view->n &&
           p->view->scope == p->type->scope && !p->type->thing.is_gone &&
           !p->view->thing.is_gone;
}

static bool view_is_in_order(const struct view *v)
{
    return list_has(&v->of_who) && list_has(&v->of_scope) && v->n > 0 &&
           v->weight >= 0 && v->weight <= (double)v->n && v->agent->known &&
           v->outside_good_ms <= v->good_ms && !v->scope->thing.is_gone;
}

static bool rating_is_in_order(const struct rating *r)
{
    return list_has(&r->of_who) && list_has(&r->of_group) && r->n > 0 &&
           r->n <= LEARN_RATING_VOTES && r->group->n > 0 &&
           r->group->n <= LEARN_RATINGS_PER_SCOPE;
}

static bool scope_is_in_order(const struct tenant *s)
{
    return s->n <= LEARN_SCOPE_OWNERS && list_length(&s->types) == s->n_types;
}

static bool example_is_in_order(const struct example *x)
{
    const struct shelf *s = x->shelf;

    return s->owner[x->row] == &x->thing && x->row < s->n && s->scope.n > 0 &&
           s->kind == THING_EXAMPLE &&
           (x->text_hash != 0) == (x->group != NULL) &&
           (s->dims || x->text_hash) &&
           s->touched[x->row] == x->thing.touched &&
           (s->right[x->row] || s->wrong[x->row]);
}

static bool thing_is_in_order(const struct thing *t)
{
    switch (t->kind) {
    case THING_AGENT: return known_is_in_order((const struct known *)t);
    case THING_TYPE: return type_is_in_order((const struct type *)t);
    case THING_PAIR: return pair_is_in_order((const struct pair *)t);
    case THING_EXAMPLE: return example_is_in_order((const struct example *)t);
    case THING_VIEW: return view_is_in_order((const struct view *)t);
    case THING_RATING: return rating_is_in_order((const struct rating *)t);
    case THING_SCOPE: return scope_is_in_order((const struct tenant *)t);
    case THING_NUMBER:
    case N_KINDS: break;
    }
    return false;
}

/* Every reference to a name is accounted for. */
static bool refs_are_right(const struct learn *l)
{
    const struct map_slot *slot;
    size_t n = 0, n_refs = 0, at = 0;

    for (size_t i = 0; i < l->names.cap; i++)
        n_refs += l->names.slots[i] ? l->names.slots[i]->n_refs : 0;
    n = l->heaps[THING_AGENT].n + l->heaps[THING_VIEW].n +
        l->heaps[THING_RATING].n;
    while ((slot = map_next(&l->shelves, &at))) {
        const struct shelf *s = slot->value;

        if (!s->n)
            return false;
        for (size_t i = 0; i < s->n; i++)
            n += s->owner[i]->kind == THING_EXAMPLE
                     ? (size_t)(s->right[i] != NULL) + (s->wrong[i] != NULL)
                     : 0;
    }
    return n == n_refs;
}

/* Every group has as many things as it says, and none is empty. */
static bool groups_are_right(const struct learn *l)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&l->groups, &at))) {
        const struct group *g = slot->value;

        if (!g->n || list_length(&g->things) != g->n)
            return false;
    }
    return map_check(&l->groups);
}

bool learn_check(const struct learn *l)
{
    const struct map_slot *slot;
    size_t at = 0, n = 0, n_live = 0;

    if (!map_check(&l->things) || !map_check(&l->shelves) ||
        !agent_names_check(&l->names))
        return false;
    for (enum thing_kind kind = THING_AGENT; kind < N_KINDS; kind++) {
        if (!heap_is_in_order(&l->heaps[kind], kind))
            return false;
        n += l->heaps[kind].n;
    }
    while ((slot = map_next(&l->things, &at))) {
        const struct thing *t = slot->value;

        n_live += !t->is_gone;
        if (!row_is_in_order(t) || (!t->is_gone && !thing_is_in_order(t)))
            return false;
    }
    return n == n_live && refs_are_right(l) && groups_are_right(l);
}
