/* When the table's choice is enough.
 *
 * A model of two tiers makes a quick vector at once, by its table, and a full
 * one in half a millisecond, by its transformer. The candidates are first
 * compared by the quick vector. If the choice among them is clear (cutoff.c has
 * the rule), it stands. Otherwise the full vector is fetched, and the
 * candidates are fetched and ranked again with it.
 *
 * The transformer is not asked if it could change nothing:
 *
 *     a correction    names the agent for this very text
 *     one agent       that the requester trusts gets every message; but if it
 *                     has several skills, the skill may change
 *     no candidates   exist
 *     no weight       on `semantic`: no vector counts
 *
 * nor for small talk: it requests no work, so its cutoffs are high for every
 * card, and it is the most frequent message that no agent gets. */
#include "choose/layers/internal.h"

/* The only agent gets the message, whatever the vectors say. */
static bool is_for_one_alone(const struct choose_view *v, const struct msg *m,
                             const struct decision_rules *r)
{
    const struct candidate *c = m->choice.candidates;
    const struct agent *a = agent_find(v->agents, c->agent);

    return r->is_auto && r->n == 1 && c->is_trusted && !c->is_unpaid &&
           (!a || a->n_skills < 2);
}

bool choose_may_ask_full(const struct choose_view *v, const struct msg *m)
{
    struct decision_rules r;

    if (!m->known.may_ask_full || !m->choice.n_candidates ||
        m->known.is_small_talk || !(v->settings->weights.semantic > 0))
        return false;
    r = choose_cutoff_rules(v->settings, m);
    return !m->choice.candidates->is_taught && !is_for_one_alone(v, m, &r);
}

bool choose_wants_full(const struct choose_view *v, const struct msg *m)
{
    struct decision_rules r;
    enum band band;
    size_t at;

    if (!choose_may_ask_full(v, m))
        return false;
    r = choose_cutoff_rules(v->settings, m);
    band = choose_judge(m, &r, &at);
    return band != BAND_CONFIDENT ||
           !choose_is_clear(&r, &m->choice.candidates[at]);
}
