/* A choice may be confident without being top-1: each card has a floor of its
 * own, and the best candidate above its floor wins. Such a choice counts as
 * confident and right, but not in the share of the right top-1 choices, which
 * would else exceed one. */
#include "cli/eval_bands.h"

#include <math.h>

static bool is_right(const struct eval_outcome *o, uint32_t agent)
{
    for (size_t i = 0; i < o->n_expected; i++)
        if (o->expected[i] == agent)
            return true;
    return false;
}

void eval_bands_count(struct eval_bands *b, const struct eval_outcome *o,
                      const struct eval_decided *d)
{
    unsigned place = eval_place(o);
    bool is_confident = d->band == BAND_CONFIDENT;
    bool is_good = is_right(o, d->agent);

    if (!o->n_expected) {
        b->n_out++;
        b->n_out_confident += is_confident;
        b->n_out_unsure += d->band == BAND_UNSURE;
        return;
    }
    b->n++;
    b->n_first += place == 1;
    if (is_confident) {
        b->n_confident_right += is_good;
        b->n_confident_wrong += !is_good;
        b->n_first_confident += is_good && place == 1;
    } else if (d->band == BAND_UNSURE) {
        b->n_unsure++;
        b->n_unsure_right += d->is_unsure ? is_good : place == 1;
        b->n_unsure_three += place >= 1 && place <= 3;
    } else {
        b->n_refused++;
    }
}

static double share(size_t n, size_t of)
{
    return of ? (double)n / (double)of : NAN;
}

double eval_confident_share(const struct eval_bands *b)
{
    return share(b->n_first_confident, b->n_first);
}

double eval_detected_share(const struct eval_bands *b)
{
    return share(b->n_out - b->n_out_confident, b->n_out);
}
