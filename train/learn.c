/* Epochs: everything once, in an order of chance, at a rate that falls in a
 * straight line. What does not fill a batch at the end of an epoch waits for
 * the next, in which it stands elsewhere. */
#include "train/learn.h"

#include <stdio.h>
#include <stdlib.h>

enum stream { SHUFFLE = 100, SHUFFLE_PAIRS, DROP, DROP_PAIRS };

/* One number of chance for each place of an epoch. */
static uint64_t chance_of(const struct recipe *r, enum stream stream,
                          size_t epoch, size_t i)
{
    return chance_at((uint64_t)r->seed, (uint64_t)stream << 32 | epoch, i);
}

static double rate_at(const struct recipe *r, double most, size_t step,
                      size_t n_steps)
{
    double left = 1 - (double)step / (double)n_steps;
    double warm = r->warm_up ? (double)(step + 1) / (double)r->warm_up : 1;

    return most * (warm < 1 ? warm : 1) *
           (left > r->rate_end ? left : r->rate_end);
}

/* How the last part of the steps went, for the line of progress. */
struct pace {
    struct progress progress;
    size_t step, n_steps;
    double loss;
};

static void pace_step(struct pace *p, double loss)
{
    char figure[64];

    p->loss = p->step ? 0.99 * p->loss + 0.01 * loss : loss;
    p->step++;
    snprintf(figure, sizeof(figure), "loss %.4f", p->loss);
    progress_show(&p->progress, p->step, p->n_steps, figure);
}

static void pace_end(struct pace *p)
{
    char figure[64];

    snprintf(figure, sizeof(figure), "%zu steps, loss %.4f", p->n_steps,
             p->loss);
    progress_end(&p->progress, figure);
}

static size_t units(size_t n, size_t unit)
{
    return n / unit * unit;
}

void learn_vectors(struct student *s, const struct samples *all,
                   uint32_t *order, size_t n, const struct recipe *r,
                   struct crew *crew, bool is_quiet)
{
    size_t size =
        units((size_t)r->batch < n ? (size_t)r->batch : n, BATCH_UNIT);
    struct pace pace = {.n_steps = size ? n / size * (size_t)r->epochs : 0};
    struct batch b;

    if (!pace.n_steps)
        return;
    batch_init(&b, all, s->n_rows, size, crew);
    b.n = size;
    progress_begin(&pace.progress, "vectors", is_quiet);
    for (size_t epoch = 0; epoch < (size_t)r->epochs; epoch++) {
        for (size_t i = n; i > 1; i--) {
            size_t j = chance_below(chance_of(r, SHUFFLE, epoch, i), i);
            uint32_t swap = order[i - 1];

            order[i - 1] = order[j];
            order[j] = swap;
        }
        for (size_t at = 0; at + size <= n; at += size) {
            memcpy(b.which, order + at, size * sizeof(order[0]));
            b.chance = chance_of(r, DROP, 0, pace.step);
            b.drop = pace.step % 2 ? r->drop : 0;
            student_up(s, &b);
            if (r->cosine > 0)
                loss_cosine(&b, r->cosine);
            if (r->relation > 0)
                loss_relation(&b, r->relation, (size_t)r->relation_block);
            student_down(s, &b, r,
                         rate_at(r, r->rate, pace.step, pace.n_steps));
            pace_step(&pace, b.loss);
        }
    }
    pace_end(&pace);
    batch_fini(&b);
}

void learn_pairs(struct student *s, const struct samples *all,
                 struct pair *pairs, size_t n, const struct recipe *r,
                 struct crew *crew, bool is_quiet)
{
    size_t size = units((size_t)r->pair_batch < n ? (size_t)r->pair_batch : n,
                        BATCH_UNIT);
    struct pace pace = {.n_steps =
                            size ? n / size * (size_t)r->pair_epochs : 0};
    struct batch b;

    if (!pace.n_steps)
        return;
    student_rest(s);
    batch_init(&b, all, s->n_rows, 2 * size, crew);
    b.n = 2 * size;
    b.drop = r->drop;
    progress_begin(&pace.progress, "pairs", is_quiet);
    for (size_t epoch = 0; epoch < (size_t)r->pair_epochs; epoch++) {
        for (size_t i = n; i > 1; i--) {
            size_t j = chance_below(chance_of(r, SHUFFLE_PAIRS, epoch, i), i);
            struct pair swap = pairs[i - 1];

            pairs[i - 1] = pairs[j];
            pairs[j] = swap;
        }
        for (size_t at = 0; at + size <= n; at += size) {
            for (size_t i = 0; i < size; i++) {
                b.which[i] = pairs[at + i].a;
                b.which[size + i] = pairs[at + i].b;
            }
            b.chance = chance_of(r, DROP_PAIRS, 0, pace.step);
            student_up(s, &b);
            loss_pairs(&b, r->pair_heat);
            if (r->pair_cosine > 0)
                loss_cosine(&b, r->pair_cosine);
            student_down(s, &b, r,
                         rate_at(r, r->pair_rate, pace.step, pace.n_steps));
            pace_step(&pace, b.loss);
        }
    }
    pace_end(&pace);
    batch_fini(&b);
}
