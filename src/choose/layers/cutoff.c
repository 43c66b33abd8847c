/* When to trust the best candidate, without labels and for every model.
 *
 * A card's level tells how high it scores for unrelated messages: the median
 * and the 95th percentile of its cosines with the reference texts
 * (data/reference.txt). `high - mid` is its unit. A choice is confident if the
 * candidate is `reach` units above its median; its lead over the next candidate
 * lowers that by up to half a unit, and being behind raises it:
 *
 *     (semantic - mid) / unit + clamp(lead / unit, 0.5)  >=  reach(n)
 *
 *     reach(n) = 0.63 + 0.112 ln(n)^2 + min(0.7, 29 / n^2)
 *                + 0.37 ln(0.2 / alpha)
 *
 *     low(n)   = max(0.05, -0.45 + 0.08 ln(n)^2)
 *
 * The best of n unrelated cards scores higher the more there are, so the reach
 * grows with n. With a handful of cards the wrong one is often the best
 * available, so the reach is higher again for small n. alpha is about the share
 * of out-of-scope messages that pass; a card's scores fall off exponentially
 * above their 95th percentile, 0.37 units for each factor of e (fleets of 3 to
 * 8 000 cards, both models). The other figures were fitted by hand on the
 * fleets of test/quality and on CLINC150; docs/quality.md shows their results
 * elsewhere. The 0.63 belongs to the models in data/: refit it when they
 * change.
 *
 * A card without content ("------") resembles no reference text: its unit would
 * be zero, and every message would be good enough for it. So a unit has a lower
 * bound, a little below that of cards of a few words; and a card that no signal
 * supports is out of scope.
 *
 * A card gets small talk (small_talk.c) only from SMALL_TALK_REACH on, whatever
 * its lead; below, the message is out of scope for it.
 *
 * A choice by the table alone (tier.c) is clear if it would be confident with
 * cutoffs that are `second_margin` units higher. If routing.threshold is a
 * number, that many units are added to the number.
 *
 * Every card has cutoffs of its own. A card that copies the reference texts
 * raises its own level and no other card's; one number for the whole fleet
 * would move with it.
 *
 * Rejected: the empirical quantile 1 - alpha / n (the reference texts about the
 * card's own subject are its tail, so it punishes good cards), mean and
 * standard deviation (too lenient with many cards), and subtracting the
 * message's mean score over a cohort of cards (better for agents of one trade,
 * worse for small talk). */
#include "choose/layers/internal.h"

#include <math.h>

#define ALPHA            0.2
#define TAIL             0.37
#define LEAD_MOST        0.5F
#define LEAST            0.05 /* units: a score of zero is out of scope */
#define SMALL_TALK_REACH 2.5  /* units, whatever n */
#define UNIT_OWN         0.10 /* least unit of a card, with our own models */
#define UNIT_HTTP        0.01 /* and with a provider, whose scale may be narrow */
#define N_MOST           400.0 /* more cards make no choice harder */

/* Cutoffs of the text score, if only words could be compared. */
static const float WORDS_FLOOR = 0.5F, WORDS_LOW = 0.05F;

static double log_cards(const struct decision_rules *r)
{
    double n = r->n > 1 ? (double)r->n : 1;

    return log(n < N_MOST ? n : N_MOST);
}

static double cutoff_reach(const struct decision_rules *r)
{
    double n = r->n > 1 ? (double)r->n : 1, few = 29 / (n * n);

    return 0.63 + 0.112 * log_cards(r) * log_cards(r) +
           (few < 0.7 ? few : 0.7) + TAIL * log(ALPHA / r->alpha);
}

static double cutoff_low(const struct decision_rules *r)
{
    double low = -0.45 + 0.08 * log_cards(r) * log_cards(r);

    return low > LEAST ? low : LEAST;
}

static double card_unit(const struct decision_rules *r,
                        const struct card_level *l)
{
    double unit = (double)l->high - (double)l->mid;
    double least = r->is_centred ? UNIT_OWN : UNIT_HTTP;

    return unit > least ? unit : least;
}

/* `units` above the median, on the scale of `semantic`. */
static float cut_at(const struct decision_rules *r, const struct card_level *l,
                    double units)
{
    double mid = r->is_centred ? 0 : (double)l->mid;
    double cut = mid + units * card_unit(r, l);

    return (float)((1 - r->text_blend) * cut);
}

/* A routing keyword is the operator's decision about a text. A stranger's
 * keyword counts half: it adds to the score but makes no choice confident. If
 * routing.threshold is a number, only the score is compared, and half a keyword
 * may tip it. */
static bool has_own_keyword(const struct candidate *c)
{
    return c->signals.keyword > 0 && !c->is_half;
}

/* Small talk goes to an agent only if its card is very near by meaning, or it
 * has a keyword in the text. A common word ("ok") is not enough: the cutoff
 * rises by as much as words add to the score. */
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

/* An agent that is excluded for its price makes no other less sure. */
static bool counts_for_lead(const struct candidate *c, bool is_any_paid)
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
    while (best + 1 < n && !counts_for_lead(&list[best], is_any_paid))
        best++;
    for (size_t i = best + 1; i < n; i++)
        if (counts_for_lead(&list[i], is_any_paid) &&
            list[i].signals.semantic > list[best].signals.semantic)
            best = i;
    for (size_t i = 0; i < n; i++)
        if (i != best && counts_for_lead(&list[i], is_any_paid) &&
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
            c->low = 0; /* level not known yet: never more than unsure */
        } else {
            c->floor = cut_at(r, &c->level, cutoff_reach(r));
            c->low = cut_at(r, &c->level, cutoff_low(r));
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

/* A card's unit, on the scale of `semantic`. */
static float unit_on_scale(const struct decision_rules *r,
                           const struct candidate *c)
{
    return (float)((1 - r->text_blend) * card_unit(r, &c->level));
}

/* Confident, by `units` of the card more than necessary. */
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
