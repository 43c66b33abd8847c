/* When to trust the best candidate, without labels and for every model.
 *
 * A card's level says how high it scores for messages that are not meant for
 * it: the median and the 95th percentile of its cosines with the reference
 * texts (data/reference.txt). `high - mid` is its unit. A choice is confident
 * if the candidate is `reach` units above its median; its lead over the next
 * candidate lowers that by up to half a unit, and being behind raises it:
 *
 *     (semantic - mid) / unit + clamp(lead / unit, 0.5)  >=  reach(n)
 *
 *     reach(n) = 0.63 + 0.112 ln(n)^2 + min(0.7, 29 / n^2)
 *                + 0.37 ln(0.2 / alpha)
 *
 *     low(n)   = max(0.05, -0.45 + 0.08 ln(n)^2)
 *
 * The best of n unrelated cards scores higher the more there are, so the reach
 * grows with n. With a handful of cards the wrong one is often the best there
 * is, so there it is higher again. alpha is about the share of out-of-scope
 * messages that pass; a card's scores fall off exponentially above their 95th
 * percentile, 0.37 units for each factor of e (fleets of 3 to 8 000 cards, both
 * models). The other figures were fitted on the fleets of test/quality and on
 * CLINC150, by hand; docs/quality.md shows what they give elsewhere. The 0.63
 * belongs to the models in data/: refit it when they change.
 *
 * A card that says nothing ("------") is like no reference text: its unit would
 * be zero, and every message good enough for it. So a unit has a lower bound,
 * a little less than cards of a few words have; and where nothing speaks for a
 * card, it is out of scope.
 *
 * Small talk (small_talk.c) is for a card only from SMALL_TALK_REACH on,
 * whatever its lead, and out of scope for it below.
 *
 * A choice by the table alone (tier.c) is clear if it would be confident with
 * cutoffs that are `second_margin` units higher. Where routing.threshold is a
 * number, that many units are added to the number.
 *
 * Every card has cutoffs of its own. A card that holds the reference texts
 * raises its own level and moves no other card's, which one number for the
 * whole fleet would do.
 *
 * Tried and rejected: the empirical quantile 1 - alpha / n (the reference texts
 * about the card's own subject are its tail, so that good cards are punished
 * for them), mean and standard deviation (too lenient with many cards), and
 * subtracting the message's mean score over a cohort of cards (better with
 * agents of one trade, worse with small talk). */
#include "choose/internal.h"

#include <math.h>

#define ALPHA            0.2
#define TAIL             0.37
#define LEAD_MOST        0.5F
#define LEAST            0.05 /* units: a score of nothing is out of scope */
#define SMALL_TALK_REACH 2.5  /* units, whatever n */
#define UNIT_OWN         0.10 /* of a card, with our own models, at least */
#define UNIT_HTTP        0.01 /* and with a provider, whose scale may be narrow */
#define N_MOST           400.0 /* cards beyond make no choice harder */

/* Cutoffs of the text score, where only words could be compared. */
static const float WORDS_FLOOR = 0.5F, WORDS_LOW = 0.05F;

static double log_n(const struct decision_rules *r)
{
    double n = r->n > 1 ? (double)r->n : 1;

    return log(n < N_MOST ? n : N_MOST);
}

static double reach_of(const struct decision_rules *r)
{
    double n = r->n > 1 ? (double)r->n : 1, few = 29 / (n * n);

    return 0.63 + 0.112 * log_n(r) * log_n(r) + (few < 0.7 ? few : 0.7) +
           TAIL * log(ALPHA / r->alpha);
}

static double low_of(const struct decision_rules *r)
{
    double low = -0.45 + 0.08 * log_n(r) * log_n(r);

    return low > LEAST ? low : LEAST;
}

static double unit_of(const struct decision_rules *r,
                      const struct card_level *l)
{
    double unit = (double)l->high - (double)l->mid;
    double least = r->is_centred ? UNIT_OWN : UNIT_HTTP;

    return unit > least ? unit : least;
}

/* So many units above the median, on the scale of `semantic`. */
static float cut_at(const struct decision_rules *r, const struct card_level *l,
                    double units)
{
    double mid = r->is_centred ? 0 : (double)l->mid;
    double cut = mid + units * unit_of(r, l);

    return (float)((1 - r->text_blend) * cut);
}

/* A routing keyword is the operator's own word for whose a text is. A
 * stranger's, which counts half, adds to a score and makes nothing sure; but
 * where routing.threshold is a number the score alone is compared with it, and
 * what half a keyword adds may be what it takes. */
static bool has_own_keyword(const struct candidate *c)
{
    return c->signals.keyword > 0 && !c->is_half;
}

/* Small talk is for an agent whose card is very near to it by meaning, or that
 * has a keyword in it. A word in common ("ok") is not enough: the cutoff is
 * higher by as much as words add to the score. */
static void only_if_very_near(const struct decision_rules *r,
                              struct candidate *c)
{
    double words = r->text_blend * (double)c->signals.text;
    float very_near =
        c->level.high < 0
            ? WORDS_FLOOR
            : cut_at(r, &c->level, SMALL_TALK_REACH) + (float)words;

    if (has_own_keyword(c))
        return;
    if (c->floor < very_near)
        c->floor = very_near;
    c->low = c->floor;
}

/* An agent that will not be chosen for its price makes no other less sure. */
static bool has_a_say(const struct candidate *c, bool is_any_paid)
{
    return !c->is_unpaid || !is_any_paid;
}

void choose_cutoffs(const struct decision_rules *r, struct candidate *list,
                    size_t n)
{
    size_t best = 0;
    float second = 0;
    bool is_any_paid = false;

    for (size_t i = 0; i < n; i++)
        is_any_paid |= !list[i].is_unpaid;
    while (best + 1 < n && !has_a_say(&list[best], is_any_paid))
        best++;
    for (size_t i = best + 1; i < n; i++)
        if (has_a_say(&list[i], is_any_paid) &&
            list[i].signals.semantic > list[best].signals.semantic)
            best = i;
    for (size_t i = 0; i < n; i++)
        if (i != best && has_a_say(&list[i], is_any_paid) &&
            list[i].signals.semantic > second)
            second = list[i].signals.semantic;
    for (size_t i = 0; i < n; i++) {
        struct candidate *c = &list[i];

        c->lead = c->signals.semantic -
                  (i == best ? second : list[best].signals.semantic);
        c->floor = c->low = INFINITY;
        if (!r->is_auto || !(r->alpha > 0))
            continue;
        if (c->signals.cosine < 0) {
            c->floor = WORDS_FLOOR;
            c->low = WORDS_LOW;
        } else if (c->level.high < 0) {
            c->low = 0; /* its level is not known yet: unsure, come what may */
        } else {
            c->floor = cut_at(r, &c->level, reach_of(r));
            c->low = cut_at(r, &c->level, low_of(r));
        }
        if (r->is_small_talk)
            only_if_very_near(r, c);
    }
}

static bool says_nothing(const struct candidate *c)
{
    return !(c->signals.semantic > 0) && !has_own_keyword(c) &&
           c->level.high >= 0;
}

/* Its unit, on the scale of `semantic`. */
static float unit_on_scale(const struct decision_rules *r,
                           const struct candidate *c)
{
    return (float)((1 - r->text_blend) * unit_of(r, &c->level));
}

/* Confident, and above its cutoff by so many units of its card. */
static bool is_confident(const struct decision_rules *r,
                         const struct candidate *c, double units)
{
    float s = c->signals.semantic, lead = c->lead;
    float most = LEAD_MOST * unit_on_scale(r, c);
    float spare = (float)units * unit_on_scale(r, c);

    if (c->is_taught)
        return true;
    if (!r->is_auto)
        return c->score - (double)spare >= r->threshold;
    if (says_nothing(c))
        return false;
    if (c->signals.cosine < 0 || c->level.high < 0 || r->is_small_talk)
        lead = 0;
    else if (lead > most || lead < -most)
        lead = lead > 0 ? most : -most;
    return s + lead >= c->floor + spare ||
           (has_own_keyword(c) && s >= c->low + spare);
}

enum band choose_band(const struct decision_rules *r, const struct candidate *c)
{
    if (is_confident(r, c, 0))
        return BAND_CONFIDENT;
    return r->is_auto && !says_nothing(c) && c->signals.semantic >= c->low
               ? BAND_UNSURE
               : BAND_OUT_OF_SCOPE;
}

bool choose_is_clear(const struct decision_rules *r, const struct candidate *c)
{
    return is_confident(r, c, r->second_margin);
}
