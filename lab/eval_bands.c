/* A choice may be confident without being top-1: each card has its own floor,
 * and the best candidate above its floor wins. Such a choice counts as
 * confident and right, but not in the share of the right top-1 choices, which
 * could otherwise exceed one. */
#include "lab/eval_bands.h"

#include <math.h>

void eval_bands_count(struct eval_bands *b, const struct eval_outcome *o,
                      const struct eval_decided *d)
{
    unsigned place = eval_place(o);
    bool is_confident = d->band == BAND_CONFIDENT;
    bool is_good = eval_outcome_names(o, d->agent);

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

double eval_confident_share(const struct eval_bands *b)
{
    return eval_share(b->n_first_confident, b->n_first);
}

double eval_detected_share(const struct eval_bands *b)
{
    return eval_share(b->n_out - b->n_out_confident, b->n_out);
}
