/* Four signals of everyone who could get it, one score each, and the best. */
#include "choose/internal.h"

#include <stdlib.h>

double choose_score(const struct signal_weights *w, const struct signals *s)
{
    return w->semantic * (double)s->semantic +
           w->performance * (double)s->performance +
           w->keyword * (double)s->keyword + w->recency * (double)s->recency;
}

float choose_semantic(const struct choose_settings *settings,
                      const struct signals *s)
{
    double b = settings->text_blend;
    double zero = (1 - b) * (double)s->cosine + b * (double)s->text;

    return (float)zero;
}

/* Best first; of equals the name that sorts first, which stood first. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    return a->score > b->score;
}

static bool keep_best(struct msg *m, struct candidate *top, size_t *n)
{
    for (size_t i = 0; i < m->known.n_candidates; i++) {
        const struct candidate *c = &m->known.candidates[i];
        size_t at = *n;

        if (at == DECISION_CANDIDATES_MAX && !is_better(c, &top[at - 1]))
            continue;
        if (at < DECISION_CANDIDATES_MAX)
            (*n)++;
        else
            at--;
        for (; at > 0 && is_better(c, &top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = *c;
    }
    for (size_t i = 0; i < *n; i++)
        if (!choose_keep(m, top[i].agent, &top[i].agent) ||
            !choose_keep(m, top[i].skill, &top[i].skill) ||
            !choose_keep(m, top[i].keyword, &top[i].keyword))
            return false;
    return true;
}

enum err choose_rank(const struct choose_view *v, struct msg *m)
{
    struct candidate *top;
    size_t n = 0;

    if (m->choice.candidates)
        return OK;
    top = arena_array(&m->arena, DECISION_CANDIDATES_MAX, sizeof(*top));
    if (!top)
        return ERR_NOMEM;
    for (size_t i = 0; i < m->known.n_candidates; i++) {
        struct candidate *c = &m->known.candidates[i];

        c->signals.semantic = choose_semantic(v->settings, &c->signals);
        c->score = choose_score(&v->settings->weights, &c->signals);
    }
    if (!keep_best(m, top, &n))
        return ERR_NOMEM;
    m->choice.candidates = top;
    m->choice.n_candidates = n;
    m->choice.n_considered =
        (int64_t)m->known.n_candidates + m->known.n_unrecorded;
    return OK;
}

enum err choose_semantic_best(const struct choose_view *v, struct msg *m)
{
    const struct candidate *best;
    const struct agent *a;
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
    m->choice.score = best->score;
    m->choice.margin =
        m->choice.n_candidates > 1 ? best->score - best[1].score : best->score;
    m->choice.skill = best->skill;
    return choose_take(m, a, "its score of %.3f is the best of %lld",
                       best->score, (long long)m->choice.n_considered);
}
