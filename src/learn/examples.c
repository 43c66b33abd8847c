/* A correction is kept as an example: this text is that agent's, and not the
 * other's. There is one for each decision and scope, so a person who thinks
 * better of it replaces what was said before. One without a vector is kept for
 * the hash of its text alone.
 *
 * Only so many are kept of one agent and scope, and of all. The least useful
 * goes: the one that has longest not been near a text that its agent was right
 * for. Of all scopes, the one with the most gives one up, so that nobody can
 * push out what others taught. */
#include "learn/internal.h"

#include <stdio.h>

static const double NEAR_ENOUGH = 0.5; /* to have been of use */

struct str example_key(const struct outcome *o, char out[ID_BYTES + SCOPE_MAX])
{
    struct str id = str_of(o->decision_id.text);
    size_t n = 0;

    if (id.n)
        memcpy(out, id.p, n = id.n);
    else
        n = (size_t)snprintf(out, ID_BYTES, "#%lld", (long long)o->seq);
    out[n++] = ' ';
    if (o->scope.n)
        memcpy(out + n, o->scope.p, o->scope.n);
    return (struct str){out, n + o->scope.n};
}

void example_shelve(struct example *x, struct shelf *s, struct who *right,
                    struct who *wrong, const struct vec_packed *v,
                    int64_t heard)
{
    x->shelf = s;
    x->row = shelf_add(s, &x->thing, v);
    s->heard[x->row] = heard;
    s->right[x->row] = right;
    s->wrong[x->row] = wrong;
}

void example_group(struct example *x, struct group *g)
{
    x->group = g;
    group_add(g, &x->same);
}

const struct example *example_latest(const struct group *g)
{
    const struct example *latest = NULL;

    for (struct list_node *n = list_first(&g->things); n;
         n = list_next(&g->things, n)) {
        const struct example *x = LIST_OF(n, struct example, same);

        if (!latest || x->said > latest->said ||
            (x->said == latest->said &&
             str_cmp(x->thing.key, latest->thing.key) > 0))
            latest = x;
    }
    return latest;
}

void example_thank(struct learn *l, const struct outcome *o,
                   const struct who *right, const struct vec_packed *v)
{
    struct shelf *s =
        shelf_find(l, THING_EXAMPLE, o->scope, o->model_hash, v->n);
    struct example *nearest = NULL;
    double best = NEAR_ENOUGH;

    for (size_t i = 0; s && i < s->n; i++) {
        struct vec_packed p;
        struct example *x;
        double likeness;

        if (s->right[i] != right)
            continue;
        p = shelf_at(s, i);
        likeness = vec_likeness(&p, v, s->quick);
        x = (struct example *)s->owner[i];
        if (likeness < best || (nearest && likeness == best &&
                                str_cmp(x->thing.key, nearest->thing.key) > 0))
            continue;
        best = likeness;
        nearest = x;
    }
    if (nearest) {
        thing_touch(l, &nearest->thing, o->seq);
        s->heard[nearest->row] = nearest->thing.heard;
    }
}

static bool is_older(const struct shelf *s, size_t a, size_t b)
{
    return s->heard[a] != s->heard[b]
               ? s->heard[a] < s->heard[b]
               : str_cmp(s->owner[a]->key, s->owner[b]->key) < 0;
}

/* The least useful of an agent's on the shelf, or of all; and how many. */
static struct example *least_useful(const struct shelf *s, bool is_of_all,
                                    const struct who *right, size_t *n)
{
    size_t least = s->n;

    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_of_all && s->right[i] != right)
            continue;
        ++*n;
        if (least == s->n || is_older(s, i, least))
            least = i;
    }
    return least < s->n ? (struct example *)s->owner[least] : NULL;
}

/* Types lie on shelves too. */
static struct shelf *fullest(const struct learn *l)
{
    const struct map_slot *slot;
    struct shelf *most = NULL;
    size_t at = 0;

    while ((slot = map_next(&l->shelves, &at))) {
        struct shelf *s = slot->value;

        if (s->n && s->kind == THING_EXAMPLE &&
            (!most || s->n > most->n ||
             (s->n == most->n && str_cmp(s->key, most->key) < 0)))
            most = s;
    }
    return most;
}

void examples_bound(struct learn *l, struct shelf *s, const struct who *right)
{
    const struct heap *h = &l->heaps[THING_EXAMPLE];
    struct example *least;
    size_t n, n_left;

    do {
        least = least_useful(s, false, right, &n);
        n_left = s->n;
        if (n > l->settings.examples_per_agent)
            example_drop(l, least);
        else
            break;
    } while (n_left > 1); /* else the shelf is gone too */
    while (h->n > l->settings.max_examples)
        example_drop(l, least_useful(fullest(l), true, NULL, &n));
}

/* Whether it spoke of nobody else. */
static bool forget_in(struct learn *l, struct example *x, const struct who *who)
{
    struct shelf *s = x->shelf;
    struct who **right = &s->right[x->row], **wrong = &s->wrong[x->row];

    if (*right == who || (*wrong == who && !*right))
        return true;
    if (*wrong == who) {
        who_release(l, *wrong);
        *wrong = NULL;
        thing_dirty(l, &x->thing);
    }
    return false;
}

/* Dropping one moves others in the heap, also to places that were looked at:
 * so again, until none goes. */
void examples_forget(struct learn *l, const struct who *who)
{
    const struct heap *h = &l->heaps[THING_EXAMPLE];
    bool is_again;

    do {
        is_again = false;
        for (size_t i = 0; i < h->n; i++) {
            struct example *x = (struct example *)h->p[i];

            if (forget_in(l, x, who)) {
                example_drop(l, x);
                is_again = true;
            }
        }
    } while (is_again);
}
