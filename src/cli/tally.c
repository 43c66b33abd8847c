/* Pairs are found by walking all of them: there are as many as pairs of agents
 * that messages moved between, a few dozen where settings change a little. */
#include "cli/tally.h"

#include <stdlib.h>

enum { NAMES_BYTES = 4 * 1024 * 1024 };

enum err tally_init(struct tally *t)
{
    *t = (struct tally){0};
    arena_init(&t->arena, NAMES_BYTES);
    t->pairs = arena_array(&t->arena, TALLY_PAIRS_MAX, sizeof(*t->pairs));
    return t->pairs ? OK : ERR_NOMEM;
}

void tally_fini(struct tally *t)
{
    arena_fini(&t->arena);
}

static struct tally_pair *pair_of(struct tally *t, struct str from,
                                  struct str to)
{
    struct tally_pair *p = t->pairs;
    const char *names[2];

    for (; p < t->pairs + t->n_pairs; p++)
        if (str_eq_nocase(p->from, from) && str_eq_nocase(p->to, to))
            return p;
    if (t->n_pairs == TALLY_PAIRS_MAX)
        return NULL;
    names[0] = arena_strdup(&t->arena, from);
    names[1] = arena_strdup(&t->arena, to);
    if (!names[0] || !names[1])
        return NULL;
    p->from = (struct str){names[0], from.n};
    p->to = (struct str){names[1], to.n};
    t->n_pairs++;
    return p;
}

enum hindsight tally_add(struct tally *t, const struct decision *was,
                         struct str to)
{
    enum hindsight w = hindsight_of(was, to);
    struct tally_pair *p = pair_of(t, was->agent, to);

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

static int by_number(const void *a, const void *b)
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
        qsort(t->pairs, t->n_pairs, sizeof(*t->pairs), by_number);
}
