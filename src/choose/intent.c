/* A language model's word, where one is asked: always, or where the signals
 * leave it open. It names one of those that it was asked about, and counts if
 * it is sure enough; whatever else it says, and whatever keeps it from saying
 * something, leaves the message to the layers behind this one.
 *
 * A classifier takes a thousand times longer than the transformer, so that is
 * asked first where the table leaves it open.
 *
 * So the worst that a text can talk it into is another agent that its sender
 * may see, and could have named as well. */
#include "choose/internal.h"

/* No agent is good enough by the signals, or two are nearly as good. */
static bool is_open(const struct choose_view *v, const struct msg *m)
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

static enum err take(const struct choose_view *v, struct msg *m)
{
    const struct intent_answer *said = &m->known.intent;
    const struct candidate *c = choose_asked(m, said->agent);
    const struct agent *a = c ? choose_seen(v, c->agent) : NULL;

    if (!a) /* gone meanwhile */
        return ERR_NO_ROUTE;
    m->choice.score = said->confidence;
    m->choice.skill = c->skill;
    return choose_take(m, a,
                       "a language model chose it with a confidence of "
                       "%.2f%s%.*s",
                       said->confidence, said->reasoning.n ? ": " : "",
                       STR_ARG(said->reasoning));
}

enum err choose_intent(const struct choose_view *v, struct msg *m)
{
    const struct choose_settings *s = v->settings;
    const struct intent_answer *said = &m->known.intent;
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
        return ERR_NO_ROUTE; /* a person has said whose this text is */
    if (choose_wants_full(v, m) || (s->intent.when == INTENT_AMBIGUOUS &&
                                    is_open(v, m) && choose_may_ask_full(v, m)))
        return choose_needs(m, NEEDS_FULL_VECTOR);
    if (s->intent.when == INTENT_AMBIGUOUS && !is_open(v, m))
        return ERR_NO_ROUTE;
    if (!m->known.has_intent)
        return choose_needs(m, NEEDS_INTENT);
    if (!said->is_good || !(said->confidence > s->intent.threshold))
        return ERR_NO_ROUTE;
    return take(v, m);
}
