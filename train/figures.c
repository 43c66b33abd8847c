/* How near the table comes to its teacher on texts that it has never seen: the
 * cosine, and whether the two halves of a pair find each other among a
 * thousand, which is what the table is for. */
#include "train/samples.h"

#include <stdlib.h>

#include "train/floats.h"

enum { PAIRS_MAX = 1024 };

static void take_cosine(struct figures *f, const struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        f->cosine += (double)float_dot(b->u + i * b->dims,
                                       b->targets + i * b->dims, b->dims);
        f->n_held++;
    }
}

/* How many of the first half have their other half as the nearest. */
static size_t found(const float *vectors, size_t n, size_t dims)
{
    size_t hits = 0;

    for (size_t i = 0; i < n; i++) {
        const float *a = vectors + i * dims;
        float right = float_dot(a, vectors + (n + i) * dims, dims);
        bool is_best = true;

        for (size_t j = 0; j < n && is_best; j++)
            is_best =
                j == i || float_dot(a, vectors + (n + j) * dims, dims) <= right;
        hits += is_best;
    }
    return hits;
}

/* Spread over all there are, since they are in the order of their bytes. */
static void fill_pairs(struct batch *b, const struct corpus *c)
{
    size_t n = 0, n_held = 0, seen = 0, step;

    for (size_t i = 0; i < c->n_pairs; i++)
        n_held += c->texts[c->pairs[i].a].is_held;
    step = n_held / PAIRS_MAX + 1;
    for (size_t i = 0; i < c->n_pairs; i++) {
        struct pair p = c->pairs[i];

        if (c->texts[p.a].is_held && seen++ % step == 0) {
            b->which[n] = p.a;
            b->which[PAIRS_MAX + n++] = p.b;
        }
    }
    memmove(b->which + n, b->which + PAIRS_MAX, n * sizeof(b->which[0]));
    b->n = 2 * n;
}

void figures_take(struct figures *f, struct student *st,
                  const struct samples *s, const struct corpus *c,
                  struct crew *crew)
{
    struct batch b;

    *f = (struct figures){0};
    batch_init(&b, s, st->n_rows, 2 * PAIRS_MAX, crew);
    for (size_t i = 0; i < c->n_read; i++) {
        if (c->texts[i].is_held)
            b.which[b.n++] = (uint32_t)i;
        if (b.n == PAIRS_MAX || i + 1 == c->n_read) {
            student_up(st, &b);
            take_cosine(f, &b);
            b.n = 0;
        }
    }
    f->cosine = f->n_held ? f->cosine / (double)f->n_held : 0;
    fill_pairs(&b, c);
    student_up(st, &b);
    f->n_pairs = b.n / 2;
    if (f->n_pairs) {
        f->pairs_student =
            (double)found(b.u, f->n_pairs, b.dims) / (double)f->n_pairs;
        f->pairs_teacher =
            (double)found(b.targets, f->n_pairs, b.dims) / (double)f->n_pairs;
    }
    batch_fini(&b);
}
