/* Whoever is there for everything that nobody else was chosen for; and, where
 * there is no such agent either, what to say. */
#include "choose/internal.h"

enum err choose_default(const struct choose_view *v, struct msg *m)
{
    struct str name = v->settings->default_agent;
    const struct agent *a = name.n ? choose_seen(v, name) : NULL;

    if (!a || choose_is_self(v, a))
        return ERR_NO_ROUTE;
    return choose_take(m, a,
                       "nothing spoke clearly for anybody else, and it is the "
                       "default agent");
}

/* What was asked for and not there: agents.default may name an agent that this
 * sender does not see, and that is not theirs to know. */
static const char *what_to_do(const struct choose_view *v)
{
    if (v->settings->is_off[LAYER_PREFIX])
        return "name one as executor.name, or have agents.default set";
    return "name one as executor.name, begin the text with \"/NAME\", or have "
           "agents.default set";
}

/* Where only the words were compared, a score says less, and why. */
static const char *what_was_missing(const struct msg *m, struct why *room)
{
    if (!m->known.no_vector.text[0])
        return "";
    (void)why_err(room, OK, " (what it means could not be compared: %s)",
                  m->known.no_vector.text);
    return room->text;
}

/* A score that is too low by less than three digits show must not read as if
 * it were enough. */
static double too_low(double score, double threshold)
{
    enum { DIGITS = 1000 };

    return score + 0.5 / DIGITS < threshold ? score : score - 0.5 / DIGITS;
}

enum err choose_no_route(const struct choose_view *v, struct msg *m)
{
    const struct candidate *best = m->choice.candidates;
    struct why missing;

    if (m->choice.n_candidates)
        return why_err(&m->why, ERR_NO_ROUTE,
                       "no agent fits this message: the best, \"%.*s\", has a "
                       "score of %.3f, and %.3f is needed%s; %s",
                       STR_ARG(best->agent),
                       too_low(best->score, v->settings->threshold),
                       v->settings->threshold, what_was_missing(m, &missing),
                       what_to_do(v));
    if (m->known.has_candidates && m->known.n_candidates == 1)
        return why_err(&m->why, ERR_NO_ROUTE,
                       "the only agent that messages are routed to cannot be "
                       "reached now; try again once it is back, or %s",
                       what_to_do(v));
    if (m->known.has_candidates && m->known.n_candidates)
        return why_err(&m->why, ERR_NO_ROUTE,
                       "none of the %zu agents that messages are routed to can "
                       "be reached now; try again once one is back, or %s",
                       m->known.n_candidates, what_to_do(v));
    if (m->known.has_candidates)
        return why_err(&m->why, ERR_NO_ROUTE,
                       "no agent is there that messages are routed to; %s",
                       what_to_do(v));
    return why_err(&m->why, ERR_NO_ROUTE,
                   "nobody is named to take this message; name an agent as "
                   "executor.name (GET /api/agents lists those there are)");
}
