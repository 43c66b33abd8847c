/* Pairs are searched linearly: there is one per pair of agents that messages
 * moved between, usually a few dozen. */
#include "lab/tally.h"

#include <stdlib.h>

#include "base/mem.h"

enum { NAMES_BYTES = 4 * 1024 * 1024 };

void tally_init(struct tally *t)
{
    *t = (struct tally){.pairs = mem_array(TALLY_PAIRS_MAX, sizeof(*t->pairs))};
    arena_init(&t->arena, NAMES_BYTES);
}

void tally_fini(struct tally *t)
{
    free(t->pairs);
    arena_fini(&t->arena);
}

static struct tally_pair *tally_pair_find(struct tally *t, struct str from,
                                          struct str to)
{
    struct tally_pair *p = t->pairs;

    for (; p < t->pairs + t->n_pairs; p++)
        if (str_eq_nocase(p->from, from) && str_eq_nocase(p->to, to))
            return p;
    if (t->n_pairs == TALLY_PAIRS_MAX)
        return NULL;
    if (!arena_keep(&t->arena, from, &p->from) ||
        !arena_keep(&t->arena, to, &p->to))
        return NULL;
    t->n_pairs++;
    return p;
}

enum hindsight tally_add(struct tally *t, const struct decision *was,
                         struct str to)
{
    enum hindsight w = hindsight_of(was, to);
    struct tally_pair *p = tally_pair_find(t, was->agent, to);

    t->changed++;
    t->by_word[w]++;
    if (!p) {
        t->left_out++;
        return w;
    }
    p->n++;
    p->by_word[w]++;
    return w;
}

static int tally_compare_counts(const void *a, const void *b)
{
    const struct tally_pair *x = a, *y = b;
    int c;

    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    c = str_cmp_nocase(x->from, y->from);
    return c ? c : str_cmp_nocase(x->to, y->to);
}

void tally_sort(struct tally *t)
{
    if (t->n_pairs)
        qsort(t->pairs, t->n_pairs, sizeof(*t->pairs), tally_compare_counts);
}
