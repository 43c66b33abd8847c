/* A language model's answer, if one is configured: always, or if the signals
 * leave the choice open. It names one of the candidates and counts if its
 * confidence is high enough. Any other answer, and any failure, leaves the
 * message to the next layers.
 *
 * A classifier takes a thousand times longer than the transformer, so if the
 * table leaves the choice open, the transformer is asked first.
 *
 * So the worst effect of a prompt injection is another agent that its sender
 * may see, and could have named. */
#include "choose/layers/internal.h"

/* No agent is good enough by the signals, or two are nearly equal. */
static bool signals_leave_open(const struct choose_view *v, const struct msg *m)
{
    const struct candidate *c = m->choice.candidates;
    struct decision_rules r = choose_cutoff_rules(v->settings, m);

    return choose_band(&r, &c[0]) != BAND_CONFIDENT ||
           (m->choice.n_candidates > 1 && !c[1].is_unpaid &&
            c[0].score - c[1].score < v->settings->close_margin);
}

const struct candidate *choose_asked(const struct msg *m, struct str name)
{
    for (size_t i = 0; i < m->choice.n_candidates; i++)
        if (str_eq_nocase(m->choice.candidates[i].agent, name) &&
            !m->choice.candidates[i].is_unpaid)
            return &m->choice.candidates[i];
    return NULL;
}

static enum err intent_take(const struct choose_view *v, struct msg *m)
{
    const struct intent_answer *answer = &m->known.intent;
    const struct candidate *c = choose_asked(m, answer->agent);
    const struct agent *a = c ? choose_seen(v, c->agent) : NULL;

    if (!a) /* gone meanwhile */
        return ERR_NO_ROUTE;
    m->choice.score = answer->confidence;
    m->choice.skill = c->skill;
    return choose_take(m, a,
                       "a language model chose it with a confidence of "
                       "%.2f%s%.*s",
                       answer->confidence, answer->reasoning.n ? ": " : "",
                       STR_ARG(answer->reasoning));
}

enum err choose_intent(const struct choose_view *v, struct msg *m)
{
    const struct choose_settings *s = v->settings;
    const struct intent_answer *answer = &m->known.intent;
    enum err e;

    if (!s->intent.is_on)
        return ERR_NO_ROUTE;
    if (!m->known.has_candidates)
        return choose_needs(m, NEEDS_CANDIDATES);
    e = choose_rank(v, m);
    if (e)
        return e;
    if (!m->choice.n_candidates || m->choice.candidates->is_unpaid)
        return ERR_NO_ROUTE;
    if (m->choice.candidates->is_taught && !s->is_off[LAYER_SEMANTIC])
        return ERR_NO_ROUTE; /* a person has decided about this text */
    if (choose_wants_full(v, m) ||
        (s->intent.when == INTENT_AMBIGUOUS && signals_leave_open(v, m) &&
         choose_may_ask_full(v, m)))
        return choose_needs(m, NEEDS_FULL_VECTOR);
    if (s->intent.when == INTENT_AMBIGUOUS && !signals_leave_open(v, m))
        return ERR_NO_ROUTE;
    if (!m->known.has_intent)
        return choose_needs(m, NEEDS_INTENT);
    if (!answer->is_good || !(answer->confidence > s->intent.threshold))
        return ERR_NO_ROUTE;
    return intent_take(v, m);
}
