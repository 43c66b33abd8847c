/* A correction is kept as an example: this text is for one agent, and not for
 * another. There is one for each decision and scope, so a user's second
 * correction replaces the first. One without a vector is kept for the hash of
 * its text only.
 *
 * Their number is limited for each agent and scope, and in total. The least
 * useful is evicted: the one that has not been near a text that its agent was
 * right for, for the longest time. Above the total limit the scope with the
 * most gives one up, so that no scope can evict the examples of others. */
#include "learn/fold/internal.h"

#include <stdio.h>

static const double NEAR_ENOUGH = 0.5; /* to have been useful */

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

void example_shelve(struct example *x, struct shelf *s,
                    struct agent_name *right, struct agent_name *wrong,
                    const struct vec_packed *v, int64_t touched)
{
    x->shelf = s;
    x->row = shelf_add(s, &x->thing, v);
    s->touched[x->row] = touched;
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

        if (!latest || x->from_outcome > latest->from_outcome ||
            (x->from_outcome == latest->from_outcome &&
             str_cmp(x->thing.key, latest->thing.key) > 0))
            latest = x;
    }
    return latest;
}

void example_touch_nearest(struct learn *l, const struct outcome *o,
                           const struct agent_name *right,
                           const struct vec_packed *v)
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
        s->touched[nearest->row] = nearest->thing.touched;
    }
}

static bool is_older(const struct shelf *s, size_t a, size_t b)
{
    return s->touched[a] != s->touched[b]
               ? s->touched[a] < s->touched[b]
               : str_cmp(s->owner[a]->key, s->owner[b]->key) < 0;
}

/* The least useful of an agent's on the shelf, or of all; *n: how many. */
static struct example *least_useful(const struct shelf *s, bool is_of_all,
                                    const struct agent_name *right, size_t *n)
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

/* Shelves of types are skipped. */
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

void examples_bound(struct learn *l, struct shelf *s,
                    const struct agent_name *right)
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

/* True: the example was only about this agent. */
static bool example_forget(struct learn *l, struct example *x,
                           const struct agent_name *agent)
{
    struct shelf *s = x->shelf;
    struct agent_name **right = &s->right[x->row], **wrong = &s->wrong[x->row];

    if (*right == agent || (*wrong == agent && !*right))
        return true;
    if (*wrong == agent) {
        agent_name_release(l, *wrong);
        *wrong = NULL;
        thing_dirty(l, &x->thing);
    }
    return false;
}

/* Dropping one moves others in the heap, also to visited places: repeat until
 * none goes. */
void examples_forget(struct learn *l, const struct agent_name *agent)
{
    const struct heap *h = &l->heaps[THING_EXAMPLE];
    bool is_again;

    do {
        is_again = false;
        for (size_t i = 0; i < h->n; i++) {
            struct example *x = (struct example *)h->p[i];

            if (example_forget(l, x, agent)) {
                example_drop(l, x);
                is_again = true;
            }
        }
    } while (is_again);
}
