/* The verdicts of each scope, and how much they count elsewhere.
 *
 * A public average of plain verdicts belongs to the user who gives the most of
 * them: one user, one org, or an owner with ten accounts. So the k-th verdict
 * of a scope about a pair weighs 2^-k, and a scope that has judged agents of
 * one owner only weighs nothing: it has compared that owner with no other.
 * Accounts that exist to praise one owner's agents then change no other scope's
 * figures. To have judged agents of the platform, which have no owner, compares
 * nothing: one verdict about such an agent would be enough to be heard. Within
 * its own scope every verdict counts in full.
 *
 * Tried and rejected: 1 / (1 + k), whose sum has no bound, and to remember a
 * fixed number of scopes of each pair, which the first comers would fill. */
#include "learn/internal.h"

enum { HALVINGS = 30 }; /* after which a verdict weighs nothing */

static const uint64_t HASH_SEED[2] = {0, 0};

/* Views. */

struct str view_key(int64_t type, struct str name, struct str scope,
                    char out[VIEW_KEY_MAX])
{
    char pair[PAIR_KEY_MAX];
    struct str front = pair_key(type, name, pair);
    size_t n = front.n;

    memcpy(out, front.p, n);
    out[n++] = ' ';
    memcpy(out + n, scope.p, scope.n);
    return (struct str){out, n + scope.n};
}

void view_link(struct view *v, struct pair *p, struct group *g)
{
    v->pair = p;
    v->group = g;
    list_append(&p->views, &v->of_pair);
    group_add(g, &v->of_group);
}

void view_drop(struct learn *l, struct view *v)
{
    list_remove(&v->of_pair);
    group_remove(l, v->group, &v->of_group);
    v->pair = NULL;
    v->group = NULL;
    thing_drop(l, &v->thing);
}

/* Owners. */

static uint64_t owner_hash(struct str owner)
{
    char lower[SCOPE_MAX];

    return hash_bytes(str_lowered(owner, lower, sizeof(lower)), HASH_SEED);
}

void scope_meets(struct scope_owners *s, struct str owner)
{
    uint64_t hash = owner_hash(owner);

    for (size_t i = 0; i < s->n; i++)
        if (s->owners[i] == hash)
            return;
    if (s->n < LEARN_SCOPE_OWNERS)
        s->owners[s->n++] = hash;
}

double scope_weight(const struct scope_owners *s, const struct view *v,
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

struct str rating_key(struct str name, struct str scope,
                      char out[RATING_KEY_MAX])
{
    memcpy(out, name.p, name.n);
    out[name.n] = ' ';
    memcpy(out + name.n + 1, scope.p, scope.n);
    return (struct str){out, name.n + 1 + scope.n};
}

void rating_link(struct rating *r, struct who *w, struct group *g)
{
    r->who = w;
    r->group = g;
    list_append(&w->ratings, &r->of_who);
    group_add(g, &r->of_group);
}

void rating_drop(struct learn *l, struct rating *r)
{
    struct who *w = r->who;

    list_remove(&r->of_who);
    group_remove(l, r->group, &r->of_group);
    r->who = NULL;
    r->group = NULL;
    thing_drop(l, &r->thing);
    who_release(l, w);
}

uint64_t voter_of(const struct outcome *o)
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

            if (r->thing.heard < oldest->thing.heard ||
                (r->thing.heard == oldest->thing.heard &&
                 str_cmp(r->thing.key, oldest->thing.key) < 0))
                oldest = r;
        }
        rating_drop(l, oldest);
    }
}
