/* The default agent, which gets all messages without another answer; and, if
 * there is none, the explanation of the rejection. */
#include "base/amount.h"
#include "choose/layers/internal.h"

enum err choose_default(const struct choose_view *v, struct msg *m)
{
    const struct agent *a = choose_meant(v, v->settings->default_agent);

    if (!a || choose_is_self(v, a))
        return ERR_NO_ROUTE;
    if (m->choice.band == BAND_UNSURE && choose_unsure(v) != UNSURE_DEFAULT)
        return ERR_NO_ROUTE; /* the sender chooses, or is rejected */
    return choose_take(m, a,
                       "nothing spoke clearly for another agent, and it is the "
                       "default agent");
}

/* A default agent that the sender does not see must not be revealed. */
static const char *what_to_do(const struct choose_view *v)
{
    bool has_default = choose_meant(v, v->settings->default_agent);

    if (v->settings->is_off[LAYER_PREFIX])
        return has_default
                   ? "name one as executor.name"
                   : "name one as executor.name, or have agents.default set";
    return has_default
               ? "name one as executor.name, or begin the text with \"/NAME\""
               : "name one as executor.name, begin the text with \"/NAME\", or "
                 "have agents.default set";
}

/* If only words were compared, the transformer was not asked, or agents were
 * left out, the result is less reliable; say why. */
static const char *what_was_missing(const struct msg *m, struct why *room)
{
    const char *words = m->known.no_vector.text[0] ? m->known.no_vector.text
                                                   : m->known.no_full.text;
    bool is_share_spent = false;

    /* Seen from the discounts, since a record has nothing else: a stranger's is
     * 1 once the share of strangers is spent. */
    for (size_t i = 0; i < m->choice.n_candidates; i++)
        is_share_spent |= m->choice.candidates[i].signals.discount >= 1;
    if (!*words && !is_share_spent)
        return "";
    (void)why_err(
        room, OK, " (%s%s%s)", words, *words && is_share_spent ? "; " : "",
        is_share_spent ? "agents of other orgs had their share of your org's "
                         "messages and were left out: name one to send to it, "
                         "and rate it"
                       : "");
    return room->text;
}

/* A score that is too low by less than three digits show must not be printed as
 * if it were enough. */
static double too_low(double score, double threshold)
{
    enum { DIGITS = 1000 };

    return score + 0.5 / DIGITS < threshold ? score : score - 0.5 / DIGITS;
}

/* Explain how near the nearest agent came. */
static void say_nearest(const struct choose_view *v, struct msg *m,
                        const struct candidate *best)
{
    struct why missing, nearest = {""};

    /* If nothing supports any agent, the first one is no nearer. */
    if (best->signals.semantic > 0 || best->signals.keyword > 0)
        why_err(&nearest, OK, "; the nearest is \"%.*s\"",
                STR_ARG(best->agent));
    if (!v->settings->is_auto)
        why_err(&m->why, ERR_NO_ROUTE,
                "no agent fits this message: the best, \"%.*s\", has a score "
                "of %.3f, and %.3f is needed%s; %s",
                STR_ARG(best->agent),
                too_low(best->score, v->settings->threshold),
                v->settings->threshold, what_was_missing(m, &missing),
                what_to_do(v));
    else if (m->choice.band == BAND_UNSURE)
        why_err(&m->why, ERR_NO_ROUTE,
                "it is not clear which agent this message is for%s%s; %s",
                nearest.text, what_was_missing(m, &missing), what_to_do(v));
    else
        why_err(&m->why, ERR_NO_ROUTE, "%s%s%s; %s",
                m->known.is_small_talk
                    ? "this message asks for nothing that an agent does"
                    : "no agent does what this message asks for",
                nearest.text, what_was_missing(m, &missing), what_to_do(v));
}

static void explain_no_route(const struct choose_view *v, struct msg *m)
{
    if (m->choice.n_candidates)
        say_nearest(v, m, m->choice.candidates);
    else if (m->known.has_candidates && m->known.n_candidates == 1)
        why_err(&m->why, ERR_NO_ROUTE,
                "the only agent that messages are routed to cannot be reached "
                "now; try again once it is back, or %s",
                what_to_do(v));
    else if (m->known.has_candidates && m->known.n_candidates)
        why_err(&m->why, ERR_NO_ROUTE,
                "none of the %zu agents that messages are routed to can be "
                "reached now; try again once one is back, or %s",
                m->known.n_candidates, what_to_do(v));
    else if (m->known.has_candidates)
        why_err(&m->why, ERR_NO_ROUTE,
                "there is no agent that messages are routed to; register one "
                "(POST /api/agents), or list it as agents.list in the "
                "configuration");
    else
        why_err(&m->why, ERR_NO_ROUTE,
                "the message names no agent; name one as executor.name (GET "
                "/api/agents lists those there are)");
}

enum err choose_no_route(const struct choose_view *v, struct msg *m)
{
    enum unsure_policy unsure = choose_unsure(v);
    const struct candidate *c = m->choice.unpaid;

    if (c) {
        why_err(&m->why, ERR_CEILING,
                "the agent that fits, \"%.*s\", is another user's and costs "
                "%s: name it as executor.name, or give max_cost_micros of %lld "
                "or more",
                STR_ARG(c->agent), amount_write(c->price_micros).text,
                (long long)c->price_micros);
        return choose_refused(m, ERR_CEILING);
    }
    explain_no_route(v, m);
    /* Without a trusted candidate `best` becomes `ask`. */
    m->choice.unsure = unsure == UNSURE_BEST ? UNSURE_ASK : unsure;
    return choose_refused(m, ERR_NO_ROUTE);
}
