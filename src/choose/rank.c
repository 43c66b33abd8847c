/* Everyone's score, and the best of them in order.
 *
 * Who looks for first places has two ways: to say everything on one card, and
 * to have many cards. The first is the registry's to see, which knows all
 * cards (signals.discount comes from there); the second is seen here:
 *
 *     best ten   a  x1 x2  b  x3  c ...     x: all of one creator from outside
 *     each x     its semantic less CROWD_STEP for each other x among the ten
 *
 * and then once more in order; whoever stands behind the ten has as much taken
 * off as the x among them. So many cards are worth less than one, and one costs
 * nothing. What an agent has earned by its work counts against it: from a
 * performance of CROWD_TRUSTED on nothing is taken off. (Tried and turned down:
 * to let only two of a creator be among the ten, which still leaves them the
 * first place; and a margin for all from outside, which costs honest ones more
 * than it costs the others.)
 *
 * How an agent is costs more to find out than its score: so it is asked of
 * those who would be among the best. Whoever is dead is not one of them and not
 * counted, but nobody knows of those further down. */
#include "choose/internal.h"

enum { CROWD = 10 };

#define CROWD_STEP    0.01
#define CROWD_TRUSTED 0.7

/* Best first; of equals the name that sorts first. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (a->score > b->score || a->score < b->score)
        return a->score > b->score;
    return str_cmp_nocase(a->agent, b->agent) < 0;
}

static void score(const struct choose_view *v, struct candidate *c)
{
    if (c->keyword.n)
        c->signals.keyword = 1;
    c->signals.semantic = choose_semantic(v->settings, &c->signals);
    c->score = choose_score(&v->settings->weights, &c->signals);
}

static void put_in_order(struct candidate *top, size_t at,
                         const struct candidate *c)
{
    for (; at > 0 && is_better(c, &top[at - 1]); at--)
        top[at] = top[at - 1];
    top[at] = *c;
}

static bool is_there(const struct choose_view *v, const struct msg *m,
                     const struct candidate *c)
{
    const struct agent *a =
        m->known.is_there ? agent_find(v->agents, c->agent) : NULL;

    return !m->known.is_there ||
           (a && m->known.is_there(m->known.is_there_ctx, a));
}

/* How many there are; *n_dead: how many were turned away. */
static size_t find_best(const struct choose_view *v, struct msg *m,
                        struct candidate *top, int64_t *n_dead)
{
    size_t n = 0;

    for (size_t i = 0; i < m->known.n_candidates; i++) {
        struct candidate *c = &m->known.candidates[i];

        score(v, c);
        if (n == DECISION_CANDIDATES_MAX && !is_better(c, &top[n - 1]))
            continue;
        if (!is_there(v, m, c)) {
            ++*n_dead;
            continue;
        }
        if (n < DECISION_CANDIDATES_MAX)
            n++;
        put_in_order(top, n - 1, c);
    }
    return n;
}

/* The crowd. */

/* How many of its creator are among the best ten, if that is an outsider. */
static size_t n_of_its_kind(const struct agent *const *who, size_t n, size_t i)
{
    size_t same = 0;

    for (size_t k = 0; who[i] && k < n && k < CROWD; k++)
        same += who[k] && str_eq_nocase(who[k]->creator, who[i]->creator);
    return same;
}

static double trust(const struct candidate *c)
{
    double earned =
        ((double)c->signals.performance - 0.5) / (CROWD_TRUSTED - 0.5);

    return earned < 0 ? 0 : earned > 1 ? 1 : earned;
}

static void thin_out(const struct choose_view *v, struct candidate *top,
                     size_t n)
{
    const struct agent *who[DECISION_CANDIDATES_MAX];
    bool is_any = false;

    for (size_t i = 0; i < n; i++) {
        const struct agent *a = agent_find(v->agents, top[i].agent);

        who[i] = a && agent_is_outsider(a, v->eyes) ? a : NULL;
    }
    for (size_t i = 0; i < n; i++) {
        size_t same = n_of_its_kind(who, n, i);

        if (same < 2)
            continue;
        top[i].signals.discount +=
            (float)(CROWD_STEP * (double)(same - 1) * (1 - trust(&top[i])));
        score(v, &top[i]);
        is_any = true;
    }
    for (size_t i = 1; is_any && i < n; i++) {
        struct candidate c = top[i];

        put_in_order(top, i, &c);
    }
}

static bool keep_strings(struct msg *m, struct candidate *top, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!arena_keep(&m->arena, top[i].agent, &top[i].agent) ||
            !arena_keep(&m->arena, top[i].skill, &top[i].skill) ||
            !arena_keep(&m->arena, top[i].keyword, &top[i].keyword))
            return false;
    return true;
}

enum err choose_rank(const struct choose_view *v, struct msg *m)
{
    struct candidate *top;
    int64_t n_dead = 0;
    size_t n;

    if (m->choice.candidates)
        return OK;
    top = arena_array(&m->arena, DECISION_CANDIDATES_MAX, sizeof(*top));
    if (!top)
        return ERR_NOMEM;
    n = find_best(v, m, top, &n_dead);
    if (!m->known.is_recorded) /* what was taken off then is in the record */
        thin_out(v, top, n);
    if (!keep_strings(m, top, n))
        return ERR_NOMEM;
    m->choice.candidates = top;
    m->choice.n_candidates = n;
    m->choice.n_considered =
        (int64_t)m->known.n_candidates - n_dead + m->known.n_unrecorded;
    return OK;
}
