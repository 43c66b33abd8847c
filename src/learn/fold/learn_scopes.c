/* The verdicts of each scope, and how much they count elsewhere.
 *
 * A public average of plain verdicts belongs to the user who gives the most of
 * them: one user, one org, or an owner with ten accounts. So the k-th verdict
 * of a scope about an agent weighs 2^-k, and a scope that has judged agents of
 * one owner only weighs nothing: it has compared that owner with no other.
 * Accounts that exist to praise one owner's agents then change no other scope's
 * figures. Judging agents of the platform, which have no owner, is no
 * comparison: otherwise one verdict about such an agent would suffice. Within
 * its own scope every verdict counts in full.
 *
 * An agent that only one scope has judged is invisible to other scopes: its
 * performance would reveal what that scope did. An agent is renowned from
 * RENOWNED_BY scopes on.
 *
 * If there are too many scopes, the least recently touched is evicted with all
 * its views and types; the same if all scopes together have too many types.
 * Examples and ratings have limits of their own.
 *
 * Rejected: 1 / (1 + k), whose sum has no bound, and remembering a fixed number
 * of scopes for each pair, which the first scopes would fill. */
#include "learn/fold/internal.h"

enum {
    HALVINGS = 30, /* after which a verdict weighs nothing */
    RENOWNED_BY = 2,
};

static const uint64_t HASH_SEED[2] = {0, 0};

/* Scopes. */

struct str tenant_name(const struct tenant *s)
{
    return str_sub(s->thing.key, 1, s->thing.key.n);
}

struct tenant *tenant_new(struct str scope)
{
    struct tenant *s = thing_new(THING_SCOPE, scope);

    list_init(&s->types);
    list_init(&s->views);
    s->counted = -1;
    return s;
}

void tenant_drop(struct learn *l, struct tenant *s)
{
    struct list_node *n;

    while ((n = list_first(&s->views)))
        view_drop(l, LIST_OF(n, struct view, of_scope));
    while ((n = list_first(&s->types)))
        type_drop(l, LIST_OF(n, struct type, of_scope));
    thing_drop(l, &s->thing);
}

void tenants_bound(struct learn *l)
{
    const struct heap *h = &l->heaps[THING_SCOPE];
    const struct heap *types = &l->heaps[THING_TYPE];

    while (h->n > l->settings.max_scopes ||
           (h->n > 1 && types->n > l->settings.max_all_types))
        tenant_drop(l, (struct tenant *)things_oldest(l, THING_SCOPE));
    while (types->n > l->settings.max_all_types)
        type_drop(l, (struct type *)things_oldest(l, THING_TYPE));
}

/* Views. */

struct str scope_view_key(struct str name, struct str scope,
                          char out[VIEW_KEY_MAX])
{
    memcpy(out, name.p, name.n);
    out[name.n] = ' ';
    memcpy(out + name.n + 1, scope.p, scope.n);
    return (struct str){out, name.n + 1 + scope.n};
}

void view_link(struct learn *l, struct view *v, struct agent_name *w,
               struct tenant *s)
{
    v->agent = w;
    v->scope = s;
    w->n_refs++;
    list_init(&v->pairs);
    list_append(&w->views, &v->of_who);
    list_append(&s->views, &v->of_scope);
    if (++w->n_views == RENOWNED_BY)
        list_append(&l->renowned, &w->known->renown);
}

void view_drop(struct learn *l, struct view *v)
{
    struct agent_name *w = v->agent;
    struct list_node *n;

    while ((n = list_first(&v->pairs)))
        pair_drop(l, LIST_OF(n, struct pair, of_view));
    list_remove(&v->of_who);
    list_remove(&v->of_scope);
    if (w->n_views-- == RENOWNED_BY)
        list_remove(&w->known->renown);
    v->agent = NULL;
    v->scope = NULL;
    thing_drop(l, &v->thing);
    agent_name_release(l, w);
}

/* Owners. */

static uint64_t owner_hash(struct str owner)
{
    char lower[SCOPE_MAX];

    return hash_bytes(str_lowered(owner, lower, sizeof(lower)), HASH_SEED);
}

void scope_add_owner(struct tenant *s, struct str owner)
{
    uint64_t hash = owner_hash(owner);

    for (size_t i = 0; i < s->n; i++)
        if (s->owners[i] == hash)
            return;
    if (s->n < LEARN_SCOPE_OWNERS)
        s->owners[s->n++] = hash;
}

double scope_weight(const struct tenant *s, const struct view *v,
                    struct str owner)
{
    int64_t k = v ? v->n : 0;
    double weight = k < HALVINGS ? 1.0 / (double)(INT64_C(1) << k) : 0;
    uint64_t hash = owner_hash(owner);
    size_t others = 0;

    if (!owner.n || !s)
        return weight;
    for (size_t i = 0; i < s->n; i++)
        others += s->owners[i] != hash;
    return weight * (double)others / (double)(others + 1);
}

/* Ratings. */

void rating_link(struct rating *r, struct agent_name *w, struct group *g)
{
    r->agent = w;
    r->group = g;
    list_append(&w->ratings, &r->of_who);
    group_add(g, &r->of_group);
}

void rating_drop(struct learn *l, struct rating *r)
{
    struct agent_name *w = r->agent;

    list_remove(&r->of_who);
    group_remove(l, r->group, &r->of_group);
    r->agent = NULL;
    r->group = NULL;
    thing_drop(l, &r->thing);
    agent_name_release(l, w);
}

uint64_t outcome_voter(const struct outcome *o)
{
    const uint64_t seed[2] = {
        hash_bytes(str_of(o->decision_id.text), HASH_SEED), 1};

    return hash_bytes(o->by, seed);
}

bool rating_withdraw(struct rating *r, uint64_t voter)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->votes[i].voter != voter)
            continue;
        memmove(&r->votes[i], &r->votes[i + 1],
                (r->n - i - 1) * sizeof(*r->votes));
        r->n--;
        return true;
    }
    return false;
}

void rating_vote(struct rating *r, uint64_t voter, int64_t sign)
{
    rating_withdraw(r, voter);
    if (r->n == LEARN_RATING_VOTES)
        rating_withdraw(r, r->votes[0].voter);
    r->votes[r->n++] = (struct vote){voter, sign};
}

int64_t rating_net(const struct rating *r)
{
    int64_t net = 0;

    for (size_t i = 0; i < r->n; i++)
        net += r->votes[i].sign;
    return net;
}

void ratings_bound(struct learn *l, struct group *g)
{
    while (g->n > LEARN_RATINGS_PER_SCOPE) {
        struct list_node *n = list_first(&g->things);
        struct rating *oldest = LIST_OF(n, struct rating, of_group);

        for (; n; n = list_next(&g->things, n)) {
            struct rating *r = LIST_OF(n, struct rating, of_group);

            if (r->thing.touched < oldest->thing.touched ||
                (r->thing.touched == oldest->thing.touched &&
                 str_cmp(r->thing.key, oldest->thing.key) < 0))
                oldest = r;
        }
        rating_drop(l, oldest);
    }
}
