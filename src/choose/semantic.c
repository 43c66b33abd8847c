/* Four signals of everyone who could get it, one score each, and the best.
 *
 *     semantic = 3/4 of the cosine and 1/4 of the text score
 *                + 0.20 of what was learnt
 *                - what is to be taken off, and all of it kept within 0..1
 *
 * The quarter (routing.textBlend) and the fifth were found on public sets; with
 * another part of text none of them loses, and sealtools, where names decide,
 * gains seventeen points. What was learnt are corrections: each counts for the
 * agent that was right and against the one that was not, by the cube of how
 * like this text its own was. docs/quality.md has the figures.
 *
 * An agent without a vector, or a text without one, is compared by words
 * alone, which are on the same scale. */
#include "choose/internal.h"

#include <stdio.h>

#define LEARNED_PART 0.20

double choose_score(const struct signal_weights *w, const struct signals *s)
{
    return w->semantic * (double)s->semantic +
           w->performance * (double)s->performance +
           w->keyword * (double)s->keyword + w->recency * (double)s->recency;
}

float choose_semantic(const struct choose_settings *settings,
                      const struct signals *s)
{
    double b = s->cosine < 0 ? 1 : settings->text_blend;
    double said = (1 - b) * (double)s->cosine + b * (double)s->text;
    double sum = said + LEARNED_PART * (double)s->learned - (double)s->discount;

    return sum > 0 ? (sum < 1 ? (float)sum : 1) : 0;
}

/* The reason. */

/* What speaks for it, in words: "by meaning (0.362) and its keyword "code"". */
static void say_signals(const struct candidate *c, char *out, size_t room)
{
    const struct signals *s = &c->signals;
    const char *parts[4];
    size_t n = 0, at;
    char keyword[AGENT_KEYWORD_MAX + 32];

    if (c->keyword.n) {
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
    char signals[DECISION_REASON_MAX / 2];

    say_signals(best, signals, sizeof(signals));
    if (m->choice.n_candidates < 2)
        return choose_take(m, a, "it is the only one there is, %s: %.3f",
                           signals, best->score);
    return choose_take(m, a,
                       "its score of %.3f is the best of %lld, %.3f ahead of "
                       "%.*s, %s",
                       best->score, (long long)m->choice.n_considered,
                       m->choice.margin, STR_ARG(best[1].agent), signals);
}

/* Exploring. */

/* Those that are so near the best that it could as well be them. */
static size_t n_close(const struct choose_view *v, const struct msg *m)
{
    const struct candidate *all = m->choice.candidates;
    size_t n = 1;

    while (n < m->choice.n_candidates &&
           all[n].score >= v->settings->threshold &&
           all[0].score - all[n].score < v->settings->close_margin)
        n++;
    return n - 1;
}

/* Of the runners-up, the one whose turn it is by chance; zero: none's. */
static size_t pick_close(const struct choose_view *v, const struct msg *m)
{
    double often = v->settings->explore, chance = m->known.chance;
    size_t n = chance < often ? n_close(v, m) : 0, at;

    if (!n)
        return 0;
    at = (size_t)(chance / often * (double)n);
    return 1 + (at < n ? at : n - 1);
}

static enum err explore(const struct choose_view *v, struct msg *m,
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

enum err choose_semantic_best(const struct choose_view *v, struct msg *m)
{
    const struct candidate *best;
    const struct agent *a;
    size_t other;
    enum err e;

    if (!m->known.has_candidates)
        return choose_needs(m, NEEDS_CANDIDATES);
    e = choose_rank(v, m);
    if (e)
        return e;
    best = m->choice.candidates;
    if (!m->choice.n_candidates || best->score < v->settings->threshold)
        return ERR_NO_ROUTE;
    a = choose_seen(v, best->agent);
    if (!a)
        return ERR_NO_ROUTE;
    m->choice.margin =
        m->choice.n_candidates > 1 ? best->score - best[1].score : best->score;
    other = pick_close(v, m);
    if (other)
        return explore(v, m, best + other);
    m->choice.score = best->score;
    m->choice.skill = best->skill;
    return take_best(m, a, best);
}
