/* All thresholds at once. A threshold is only ever compared with scores that
 * are in the record: that of the best, and of those so close behind it that
 * exploring may pick them. Between two of these every threshold decides alike,
 * so one replay for each piece says it for all of them, and there are two
 * pieces where nobody explores. In one of these lies the threshold of then, and
 * of that the record is the answer (again_test.c): most take one replay. */
#include "choose/choose.h"

#include <math.h>

static bool depends(const struct decision *d)
{
    return d->turn <= 1 && d->layer >= LAYER_BINDING && d->n_candidates;
}

/* The candidates' scores as a server with a number has them, best first: there
 * `semantic` does not count from the card's median. */
static size_t scores_by_number(const struct decision *d,
                               double out[DECISION_CANDIDATES_MAX])
{
    size_t n = 0;

    struct choose_settings by = {.weights = d->weights,
                                 .text_blend = d->rules.text_blend};

    for (size_t i = 0; i < d->n_candidates; i++) {
        const struct candidate *c = &d->candidates[i];
        struct signals s = c->signals;
        double score = c->score;
        size_t at = n;

        if (c->is_unpaid)
            continue;
        n++;
        if (d->rules.is_centred) {
            s.semantic = choose_semantic(&by, &s, &c->level);
            score = choose_score(&d->weights, &s);
        }
        for (; at > 0 && out[at - 1] < score; at--)
            out[at] = out[at - 1];
        out[at] = score;
    }
    return n;
}

/* How many of the scores, from the best, a threshold is compared with. */
static size_t n_compared(const struct decision *d, const double *scores,
                         size_t n_scores)
{
    size_t n = n_scores ? 1 : 0;

    if (d->rules.chance < d->rules.explore)
        while (n && n < n_scores &&
               scores[0] - scores[n] < d->rules.close_margin)
            n++;
    return n;
}

static void set_threshold(void *ctx, struct choose_settings *own)
{
    own->is_auto = own->is_centred = false;
    own->threshold = *(double *)ctx;
}

/* What thresholds above `from` up to `upto` decide. */
static enum err step_at(double from, double upto, const struct decision *d,
                        struct arena *a, struct decision_step *out)
{
    bool is_own = !d->rules.is_auto && d->rules.threshold > from &&
                  d->rules.threshold <= upto;
    struct decision now;
    enum err e =
        is_own ? OK : choose_again_but(set_threshold, &upto, d, a, &now);

    *out = (struct decision_step){.upto = upto, .is_known = e != ERR_NOT_FOUND};
    if (!e || e == ERR_NO_ROUTE) {
        out->agent = is_own ? d->agent : now.agent;
        out->layer = is_own ? d->layer : now.layer;
    }
    return e == ERR_NOMEM ? e : OK;
}

static bool is_alike(const struct decision_step *a,
                     const struct decision_step *b)
{
    return a->is_known == b->is_known && a->layer == b->layer &&
           str_eq(a->agent, b->agent);
}

/* Puts it behind the last; where that decides alike, it goes on up to here. */
static void add_step(struct decision_step *steps, size_t *n,
                     const struct decision_step *one)
{
    if (*n && is_alike(&steps[*n - 1], one))
        steps[*n - 1].upto = one->upto;
    else
        steps[(*n)++] = *one;
}

enum err choose_sweep(const struct decision *d, struct arena *a,
                      struct decision_step out[DECISION_STEPS_MAX], size_t *n)
{
    double scores[DECISION_CANDIDATES_MAX], from = -(double)INFINITY;
    size_t left = 0;
    struct decision_step one;
    enum err e = OK;

    *n = 0;
    if (depends(d)) {
        left = scores_by_number(d, scores);
        left = n_compared(d, scores, left);
    }
    if (!left) {
        out[(*n)++] =
            (struct decision_step){(double)INFINITY, true, d->agent, d->layer};
        return OK;
    }
    while (!e && left) {
        e = step_at(from, scores[--left], d, a, &one);
        if (!e)
            add_step(out, n, &one);
        from = one.upto;
    }
    if (!e)
        e = step_at(from, (double)INFINITY, d, a, &one);
    if (!e)
        add_step(out, n, &one);
    return e;
}
