/* The score of every candidate, and the best of them in order.
 *
 * A user who wants first places has three ways: to say everything on one card,
 * to have many cards, and to have many names. The registry sees the first two,
 * since it knows all cards (signals.discount comes from there). Two more rules
 * are here:
 *
 *   strangers  agents that the requester has no reason to trust: not their own,
 *              their org's, the platform's or rated well in their org. Where
 *              scores are closer than CLOSE, others come first. And once
 *              strangers have had their share of the org's messages (share.c),
 *              nothing that their cards say counts.
 *   the crowd  best ten   a  x1 x2  b  x3  c ...    x: all of one stranger's
 *              each x     its semantic less CROWD_STEP for each other x among
 *                         the ten, and then once more in order
 *
 * The amount is in signals.discount, and so in the record. The crowd's rule
 * spares agents that have done well: from a performance of CROWD_TRUSTED on
 * nothing is taken off.
 *
 * Tried and rejected: to let only two of a creator be among the ten, which
 * still leaves them the first place; and to put strangers behind whenever
 * another is confident, which takes two thirds of an honest stranger's
 * messages.
 *
 * The state of an agent costs more to find out than its score, so it is asked
 * of those that would be among the best. */
#include "choose/internal.h"

enum { CROWD = 10, TRUSTED_PLACES = 8 };

#define CLOSE         0.03F
#define CROWD_STEP    0.01
#define CROWD_TRUSTED 0.7

/* Meaning and words as they are, but for strangers that are put behind. */
static float nearness(const struct candidate *c)
{
    return c->signals.discount > 0 ? -1 : c->signals.cosine + c->signals.text;
}

/* Best first. Whom the sender has not agreed to pay comes last. A correction of
 * this very text goes before every score. Scores
 * are equal where nothing speaks for either: of those the nearer one, since
 * three are offered to a user who is asked, then the name that sorts first. */
bool choose_is_better(const struct candidate *a, const struct candidate *b)
{
    float near_a = nearness(a), near_b = nearness(b);

    if (a->is_unpaid != b->is_unpaid)
        return b->is_unpaid;
    if (a->is_taught != b->is_taught)
        return a->is_taught;
    if (a->score > b->score || a->score < b->score)
        return a->score > b->score;
    if (near_a > near_b || near_a < near_b)
        return near_a > near_b;
    return str_cmp_nocase(a->agent, b->agent) < 0;
}

float choose_keyword(bool is_half)
{
    return is_half ? 0.5F : 1;
}

static void score(const struct choose_view *v, struct candidate *c)
{
    if (c->keyword.n)
        c->signals.keyword = choose_keyword(c->is_half);
    if (!(v->settings->weights.keyword > 0))
        c->signals.keyword = 0; /* left out, of the cutoffs too */
    c->signals.semantic = choose_semantic(v->settings, &c->signals, &c->level);
    c->score = choose_score(&v->settings->weights, &c->signals);
}

static void put_in_order(struct candidate *top, size_t at,
                         const struct candidate *c)
{
    for (; at > 0 && choose_is_better(c, &top[at - 1]); at--)
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

/* The best of the strangers, or of all others: how many. *n_dead: how many were
 * turned away. */
static size_t find_best(const struct choose_view *v, struct msg *m,
                        bool is_stranger, struct candidate *top,
                        int64_t *n_dead)
{
    bool is_free =
        (!is_stranger || v->settings->is_seed) && !m->known.is_recorded;
    size_t n = 0;

    for (size_t i = 0; i < m->known.n_candidates; i++) {
        struct candidate *c = &m->known.candidates[i];

        if (choose_is_stranger(c) != is_stranger)
            continue;
        if (is_free)
            c->signals.discount = 0;
        score(v, c);
        if (n == DECISION_CANDIDATES_MAX && !choose_is_better(c, &top[n - 1]))
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

/* Strangers. */

bool choose_is_stranger(const struct candidate *c)
{
    return !c->is_trusted && !c->is_taught;
}

/* Once their share is spent, nothing that strangers say of themselves counts.
 */
static void put_behind(const struct choose_view *v, const struct msg *m,
                       struct candidate *strangers, size_t n)
{
    float least = m->known.is_share_spent ? 1 : CLOSE;

    for (size_t i = 0; i < n; i++) {
        struct candidate c = strangers[i];

        if (c.signals.discount < least)
            c.signals.discount = least;
        if (m->known.is_share_spent) {
            c.keyword = STR("");
            c.signals.keyword = 0;
            c.is_half = false;
        }
        score(v, &c);
        put_in_order(strangers, i, &c);
    }
}

/* The best of both, with places for a few that are trusted. */
static size_t merge(struct candidate *top, const struct candidate *trusted,
                    size_t n_trusted, const struct candidate *strangers,
                    size_t n_strangers)
{
    size_t kept = n_trusted < TRUSTED_PLACES ? n_trusted : TRUSTED_PLACES;
    size_t most = DECISION_CANDIDATES_MAX - kept, n = 0, i = 0, k = 0;

    n_strangers = n_strangers < most ? n_strangers : most;
    while (n < DECISION_CANDIDATES_MAX && (i < n_trusted || k < n_strangers))
        top[n++] =
            k == n_strangers || (i < n_trusted &&
                                 choose_is_better(&trusted[i], &strangers[k]))
                ? trusted[i++]
                : strangers[k++];
    return n;
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
    struct candidate *top, *trusted, *strangers;
    size_t n, n_trusted, n_strangers;
    struct decision_rules rules;
    int64_t n_dead = 0;

    if (m->choice.candidates)
        return OK;
    top = arena_array(&m->arena, 3 * DECISION_CANDIDATES_MAX, sizeof(*top));
    if (!top)
        return ERR_NOMEM;
    trusted = top + DECISION_CANDIDATES_MAX;
    strangers = trusted + DECISION_CANDIDATES_MAX;
    n_trusted = find_best(v, m, false, trusted, &n_dead);
    n_strangers = find_best(v, m, true, strangers, &n_dead);
    if (!m->known.is_recorded) {
        m->known.is_small_talk = choose_is_small_talk(m->call.text);
        m->known.n_seen =
            (int64_t)m->known.n_candidates + m->known.n_unrecorded;
    }
    /* The record has the discounts of the time. */
    if (!m->known.is_recorded && !v->settings->is_seed) {
        thin_out(v, strangers, n_strangers);
        if (n_trusted && n_strangers)
            put_behind(v, m, strangers, n_strangers);
    }
    n = merge(top, trusted, n_trusted, strangers, n_strangers);
    if (!keep_strings(m, top, n))
        return ERR_NOMEM;
    m->choice.candidates = top;
    m->choice.n_candidates = n;
    m->choice.n_considered =
        (int64_t)m->known.n_candidates - n_dead + m->known.n_unrecorded;
    rules = choose_cutoff_rules(v->settings, m);
    choose_cutoffs(&rules, top, n);
    return OK;
}
