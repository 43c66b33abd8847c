/* All thresholds at once. A threshold is only ever compared with scores that
 * are in the record: that of the best, and of those so close behind it that
 * they may be explored. Between two adjacent scores every threshold decides
 * alike, so one replay for each interval suffices; without exploring there are
 * two intervals. For the interval with the record's own threshold the record is
 * the answer (again_test.c), so most records take one replay. */
#include "choose/layers/choose.h"

#include <math.h>

/* The candidates' scores with a fixed threshold, best first: then `semantic` is
 * not relative to the card's median. */
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

/* How many of the scores, from the best, are compared with a threshold. */
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

/* The decision of thresholds above `from` up to `upto`. */
static enum err sweep_step(double from, double upto, const struct decision *d,
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

/* Append a step, or extend the last one if it decides alike. */
static void sweep_add_step(struct decision_step *steps, size_t *n,
                           const struct decision_step *one)
{
    struct decision_step *last = *n ? &steps[*n - 1] : NULL;

    if (last && last->is_known == one->is_known && last->layer == one->layer &&
        str_eq(last->agent, one->agent))
        last->upto = one->upto;
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
    if (d->turn <= 1 && d->layer >= LAYER_BINDING && d->n_candidates) {
        left = scores_by_number(d, scores);
        left = n_compared(d, scores, left);
    }
    if (!left) {
        out[(*n)++] =
            (struct decision_step){(double)INFINITY, true, d->agent, d->layer};
        return OK;
    }
    while (!e && left) {
        e = sweep_step(from, scores[--left], d, a, &one);
        if (!e)
            sweep_add_step(out, n, &one);
        from = one.upto;
    }
    if (!e)
        e = sweep_step(from, (double)INFINITY, d, a, &one);
    if (!e)
        sweep_add_step(out, n, &one);
    return e;
}
