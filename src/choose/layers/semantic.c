/* Four signals of every candidate, one score each, and the best.
 *
 *     semantic = 3/4 of the cosine above the card's usual one, and 1/4 of the
 *                text score
 *                + 0.20 of what was learned
 *                - the discount; the result is kept within 0..1
 *
 * A card's usual cosine is its median over the reference texts. Subtracting it
 * puts the right agent first for 4 points more of messages on fleets of 10 to
 * 22 cards, with both models, and costs no public set any. Only `auto` does so,
 * and only with our own models: with a fixed threshold, and with a provider,
 * the cosine is left as it is.
 *
 * The quarter (routing.textBlend) and the fifth were found on public sets; with
 * text blended in none of them loses, and sealtools, where names decide, gains
 * seventeen points. Learning comes from corrections: each counts for the right
 * agent and against the wrong one, by the cube of the similarity between this
 * text and its own. docs/quality.md has the figures.
 *
 * An agent without a vector, or a text without one, is compared by words alone,
 * which are on the same scale. */
#include "choose/layers/internal.h"

#include <stdio.h>

#define LEARNED_PART 0.20

double choose_score(const struct signal_weights *w, const struct signals *s)
{
    return w->semantic * (double)s->semantic +
           w->performance * (double)s->performance +
           w->keyword * (double)s->keyword + w->recency * (double)s->recency;
}

struct choose_settings choose_by_words(const struct choose_settings *s)
{
    struct choose_settings out = *s;
    double both = s->weights.semantic + s->weights.keyword;

    if (!s->is_seed && s->weights.semantic > 0 && s->weights.keyword > 0)
        out.weights.semantic = out.weights.keyword = both / 2;
    return out;
}

float choose_semantic(const struct choose_settings *settings,
                      const struct signals *s, const struct card_level *level)
{
    bool counts = settings->weights.semantic > 0; /* else it is left out */
    double b = s->cosine < 0 ? 1 : settings->text_blend;
    double usual =
        settings->is_centred && level->high >= 0 ? (double)level->mid : 0;
    double near = (1 - b) * ((double)s->cosine - usual) + b * (double)s->text;
    double sum = near + LEARNED_PART * (double)s->learned - (double)s->discount;

    return counts && sum > 0 ? (sum < 1 ? (float)sum : 1) : 0;
}

float choose_discount(const struct choose_settings *settings, float cosine_over,
                      float text_over, float other)
{
    double b = settings->text_blend;

    return (float)((1 - b) * (double)cosine_over + b * (double)text_over +
                   (double)other);
}

/* The reason. */

/* The signals in words: "by meaning (0.362) and its keyword "code"". */
static void say_signals(const struct candidate *c, char *out, size_t room)
{
    const struct signals *s = &c->signals;
    const char *parts[4];
    size_t n = 0, at;
    char keyword[AGENT_KEYWORD_MAX + 32];

    if (c->keyword.n && s->keyword > 0) {
        snprintf(keyword, sizeof(keyword), "its keyword \"%.*s\"",
                 STR_ARG(c->keyword));
        parts[n++] = keyword;
    }
    if (s->learned > 0.1F)
        parts[n++] = "what it was right for before";
    if (s->performance > 0.6F)
        parts[n++] = "how well it has done";
    if (s->recency > 0.5F)
        parts[n++] = "a success a short while ago";
    at = (size_t)snprintf(out, room, "by %s (%.3f)",
                          s->cosine < 0 ? "its words" : "meaning",
                          (double)s->semantic);
    for (size_t i = 0; i < n && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s %s",
                               i + 1 < n ? "," : " and", parts[i]);
}

static enum err take_best(struct msg *m, const struct agent *a,
                          const struct candidate *best)
{
    const char *tipped =
        m->choice.is_by_example ? "; corrections of similar texts decided" : "";
    char signals[DECISION_REASON_MAX / 2];

    if (best->is_taught)
        return choose_take(m, a,
                           "a correction says that this very text is for it");
    say_signals(best, signals, sizeof(signals));
    if (m->choice.n_candidates < 2)
        return choose_take(m, a, "it is the only one %s, %s: %.3f",
                           m->known.n_seen < 2 ? "there is"
                                               : "that can be reached now",
                           signals, best->score);
    if (best > m->choice.candidates)
        return choose_take(m, a,
                           "its score of %.3f is the best of those that are "
                           "sure, of %lld, %s%s",
                           best->score, (long long)m->choice.n_considered,
                           signals, tipped);
    return choose_take(m, a,
                       "its score of %.3f is the best of %lld, %.3f ahead of "
                       "%.*s, %s%s",
                       best->score, (long long)m->choice.n_considered,
                       m->choice.margin, STR_ARG(best[1].agent), signals,
                       tipped);
}

/* Exploring. */

/* The index of the runner-up to explore, by chance among those that are close
 * to the best; zero: none. */
static size_t pick_close(const struct choose_view *v, const struct msg *m,
                         const struct decision_rules *r)
{
    const struct candidate *all = m->choice.candidates;
    double often = v->settings->explore, chance = m->known.chance;
    size_t n = 0, at;

    while (chance < often && n + 1 < m->choice.n_candidates &&
           !all[n + 1].is_unpaid &&
           choose_band(r, &all[n + 1]) == BAND_CONFIDENT &&
           all[0].score - all[n + 1].score < v->settings->close_margin)
        n++;
    if (!n)
        return 0;
    at = (size_t)(chance / often * (double)n);
    return 1 + (at < n ? at : n - 1);
}

static enum err explore_candidate(const struct choose_view *v, struct msg *m,
                                  const struct candidate *c)
{
    const struct agent *a = choose_seen(v, c->agent);

    if (!a)
        return ERR_NO_ROUTE;
    m->choice.score = c->score;
    m->choice.skill = c->skill;
    m->choice.is_explored = true;
    return choose_take(m, a,
                       "to see how it does: its score of %.3f is only %.3f "
                       "behind that of %.*s, the best of %lld",
                       c->score, m->choice.candidates[0].score - c->score,
                       STR_ARG(m->choice.candidates[0].agent),
                       (long long)m->choice.n_considered);
}

/* The bands. */

struct decision_rules choose_cutoff_rules(const struct choose_settings *s,
                                          const struct msg *m)
{
    return (struct decision_rules){.is_auto = s->is_auto,
                                   .threshold = s->threshold,
                                   .is_centred = s->is_centred,
                                   .alpha = s->alpha,
                                   .text_blend = s->text_blend,
                                   .second_margin = s->second_margin,
                                   .n = m->known.n_seen,
                                   .is_small_talk = m->known.is_small_talk};
}

/* The distance to the next candidate, or to zero without one. */
static double margin_of(const struct msg *m, const struct candidate *c)
{
    size_t at = (size_t)(c - m->choice.candidates);
    double margin =
        at + 1 < m->choice.n_candidates ? c->score - c[1].score : c->score;

    return margin > 0 ? margin
                      : 0; /* a correction may precede a higher score */
}

/* While a card's level is unknown, no score is sure. */
static double sure_from(const struct candidate *c)
{
    return c->floor < 1 ? (double)c->floor : 1;
}

/* The first confident candidate in the order of scores; else the best band. A
 * single agent that the requester trusts gets every message. */
enum band choose_judge(const struct msg *m, const struct decision_rules *r,
                       size_t *at)
{
    const struct candidate *all = m->choice.candidates;
    enum band nearest = BAND_OUT_OF_SCOPE;

    *at = 0;
    if (r->is_auto && r->n == 1 && all->is_trusted && !all->is_unpaid)
        return BAND_CONFIDENT;
    for (size_t i = 0; i < m->choice.n_candidates && !all[i].is_unpaid; i++) {
        enum band b = choose_band(r, &all[i]);

        if (b < nearest) {
            nearest = b;
            *at = i;
        }
        if (b == BAND_CONFIDENT)
            break;
    }
    return nearest;
}

enum unsure_policy choose_unsure(const struct choose_view *v)
{
    const struct choose_settings *s = v->settings;
    const struct agent *a = choose_meant(v, s->default_agent);

    if (s->unsure != UNSURE_AUTO)
        return s->unsure;
    return a && !choose_is_self(v, a) && !s->is_off[LAYER_DEFAULT]
               ? UNSURE_DEFAULT
               : UNSURE_BEST;
}

/* Whether corrections decided: one of this very text, or those of similar texts
 * if another candidate would have been chosen without them. */
static bool is_by_example(const struct choose_view *v, const struct msg *m,
                          const struct decision_rules *r,
                          const struct candidate *chosen)
{
    struct candidate without[DECISION_CANDIDATES_MAX];
    size_t n = m->choice.n_candidates, best = n;
    enum band best_band = BAND_OUT_OF_SCOPE;
    bool is_any = false;

    if (chosen->is_taught || r->n == 1)
        return chosen->is_taught;
    for (size_t i = 0; i < n; i++) {
        struct candidate *c = &without[i];

        *c = m->choice.candidates[i];
        is_any |= c->signals.learned > 0 || c->signals.learned < 0;
        c->signals.learned = 0;
        c->signals.semantic =
            choose_semantic(v->settings, &c->signals, &c->level);
        c->score = choose_score(&v->settings->weights, &c->signals);
    }
    if (!is_any)
        return false;
    choose_cutoffs(r, without, n);
    for (size_t i = 0; i < n; i++) {
        enum band band = choose_band(r, &without[i]);
        bool may_get_it = !without[i].is_unpaid &&
                          (band == BAND_CONFIDENT ||
                           (band == BAND_UNSURE && m->choice.is_unsure &&
                            without[i].is_trusted));

        if (may_get_it && (best == n || band < best_band ||
                           (band == best_band &&
                            choose_is_better(&without[i], &without[best])))) {
            best = i;
            best_band = band;
        }
    }
    return best == n || &m->choice.candidates[best] != chosen;
}

/* The best candidate that the requester has reason to trust: private text must
 * not go to the most generic stranger. */
static const struct candidate *best_trusted(const struct msg *m,
                                            const struct decision_rules *r)
{
    for (size_t i = 0; i < m->choice.n_candidates; i++) {
        const struct candidate *c = &m->choice.candidates[i];

        if (c->is_trusted && !c->is_unpaid && choose_band(r, c) == BAND_UNSURE)
            return c;
    }
    return NULL;
}

static enum err take_unsure(const struct choose_view *v, struct msg *m,
                            const struct decision_rules *r)
{
    const struct candidate *c =
        choose_unsure(v) == UNSURE_BEST && !m->choice.unpaid
            ? best_trusted(m, r)
            : NULL; /* the sender may agree to pay the one that fits */
    const struct agent *a = c ? choose_seen(v, c->agent) : NULL;

    if (!a)
        return ERR_NO_ROUTE;
    m->choice.is_unsure = true;
    m->choice.is_by_example = is_by_example(v, m, r, c);
    m->choice.score = c->score;
    m->choice.skill = c->skill;
    m->choice.margin = margin_of(m, c);
    m->choice.threshold = sure_from(c);
    return choose_take(m, a,
                       "it came nearest of %lld, but %s to be sure: %.3f by "
                       "meaning, and %.3f is sure",
                       (long long)m->choice.n_considered,
                       c->signals.semantic >= c->floor
                           ? "the next one is too near"
                           : "not near enough",
                       (double)c->signals.semantic, sure_from(c));
}

/* The best candidate that fits but is excluded for its price. */
static const struct candidate *best_unpaid(const struct msg *m,
                                           const struct decision_rules *r)
{
    for (size_t i = 0; i < m->choice.n_candidates; i++) {
        const struct candidate *c = &m->choice.candidates[i];

        if (c->is_unpaid && choose_band(r, c) == BAND_CONFIDENT)
            return c;
    }
    return NULL;
}

enum err choose_semantic_best(const struct choose_view *v, struct msg *m)
{
    const struct candidate *best;
    struct decision_rules r;
    const struct agent *a;
    size_t at, other;
    enum err e;

    if (!m->known.has_candidates)
        return choose_needs(m, NEEDS_CANDIDATES);
    e = choose_rank(v, m);
    if (e)
        return e;
    m->choice.threshold = v->settings->threshold;
    if (!m->choice.n_candidates)
        return ERR_NO_ROUTE;
    r = choose_cutoff_rules(v->settings, m);
    if (choose_wants_full(v, m))
        return choose_needs(m, NEEDS_FULL_VECTOR);
    m->choice.band = choose_judge(m, &r, &at);
    m->choice.unpaid = best_unpaid(m, &r);
    best = m->choice.candidates + at;
    if (r.is_auto)
        m->choice.threshold = sure_from(best);
    if (m->choice.band == BAND_UNSURE)
        return take_unsure(v, m, &r);
    if (m->choice.band != BAND_CONFIDENT)
        return ERR_NO_ROUTE;
    a = choose_seen(v, best->agent);
    if (!a)
        return ERR_NO_ROUTE;
    if (m->choice.unpaid && m->choice.unpaid->score <= best->score)
        m->choice.unpaid = NULL;
    m->choice.margin = margin_of(m, best);
    other = at || best->is_taught ? 0 : pick_close(v, m, &r);
    if (other)
        return explore_candidate(v, m, best + other);
    m->choice.score = best->score;
    m->choice.skill = best->skill;
    m->choice.is_by_example = is_by_example(v, m, &r, best);
    return take_best(m, a, best);
}
