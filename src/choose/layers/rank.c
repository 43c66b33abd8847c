/* Score every candidate and sort the best.
 *
 * A user who wants first places has three ways: to put everything on one
 * card, to have many cards, and to have many names. The registry detects the
 * first two, since it knows all cards (signals.discount comes from there). Two
 * more rules are here:
 *
 *   strangers  agents that the requester has no reason to trust: not their own,
 *              their org's, the platform's or rated well in their org. At a
 *              distance in score below CLOSE, others rank before them. Once
 *              strangers have used up their share of the org's messages
 *              (choose_share.c), nothing on their cards counts.
 *   the crowd  best ten    a  x1 x2  b  x3  c ...   x: all of one stranger's
 *              each x      loses CROWD_STEP of its semantic for each other x
 *                          among the ten; then they are sorted once more
 *
 * The loss is in signals.discount, and so in the record. The rule of the crowd
 * spares agents that have done well: with a performance of CROWD_TRUSTED or
 * more they lose nothing.
 *
 * Rejected: to admit only two of a creator to the ten, which still leaves them
 * the first place; and to rank strangers last whenever another is confident,
 * which takes two thirds of an honest stranger's messages.
 *
 * The state of an agent costs more to find out than its score, so it is only
 * checked for those that would be among the best. */
#include "choose/layers/internal.h"

enum { CROWD = 10, TRUSTED_PLACES = 8 };

#define CLOSE         0.03F
#define CROWD_STEP    0.01
#define CROWD_TRUSTED 0.7

/* Cosine and text, except for strangers that are ranked behind. */
static float nearness(const struct candidate *c)
{
    return c->signals.discount > 0 ? -1 : c->signals.cosine + c->signals.text;
}

/* Best first. Candidates that the sender has not agreed to pay come last. A
 * correction of this very text precedes every score. Scores are equal if
 * nothing supports either candidate; then the nearer one comes first, since
 * three are offered to the user, and then the name that sorts first. */
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

static void candidate_score(const struct choose_view *v, struct candidate *c)
{
    if (c->keyword.n)
        c->signals.keyword = choose_keyword(c->is_half);
    if (!(v->settings->weights.keyword > 0))
        c->signals.keyword = 0; /* also left out of the cutoffs */
    c->signals.semantic = choose_semantic(v->settings, &c->signals, &c->level);
    c->score = choose_score(&v->settings->weights, &c->signals);
}

static void rank_insert(struct candidate *top, size_t at,
                        const struct candidate *c)
{
    for (; at > 0 && choose_is_better(c, &top[at - 1]); at--)
        top[at] = top[at - 1];
    top[at] = *c;
}

static bool candidate_is_reachable(const struct choose_view *v,
                                   const struct msg *m,
                                   const struct candidate *c)
{
    const struct agent *a =
        m->known.is_there ? agent_find(v->agents, c->agent) : NULL;

    return !m->known.is_there ||
           (a && m->known.is_there(m->known.is_there_ctx, a));
}

/* Find the best strangers, or the best of all others. Returns how many; *n_dead
 * counts those that cannot be reached. */
static size_t rank_best(const struct choose_view *v, struct msg *m,
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
        candidate_score(v, c);
        if (n == DECISION_CANDIDATES_MAX && !choose_is_better(c, &top[n - 1]))
            continue;
        if (!candidate_is_reachable(v, m, c)) {
            ++*n_dead;
            continue;
        }
        if (n < DECISION_CANDIDATES_MAX)
            n++;
        rank_insert(top, n - 1, c);
    }
    return n;
}

/* The crowd. */

/* How many of the best ten have the creator of this one, if an outsider. */
static size_t n_of_its_kind(const struct agent *const *outsiders, size_t n,
                            size_t i)
{
    size_t same = 0;

    for (size_t k = 0; outsiders[i] && k < n && k < CROWD; k++)
        same += outsiders[k] &&
                str_eq_nocase(outsiders[k]->creator, outsiders[i]->creator);
    return same;
}

static double candidate_trust(const struct candidate *c)
{
    double earned =
        ((double)c->signals.performance - 0.5) / (CROWD_TRUSTED - 0.5);

    return earned < 0 ? 0 : earned > 1 ? 1 : earned;
}

static void discount_crowds(const struct choose_view *v, struct candidate *top,
                            size_t n)
{
    const struct agent *outsiders[DECISION_CANDIDATES_MAX];
    bool is_any = false;

    for (size_t i = 0; i < n; i++) {
        const struct agent *a = agent_find(v->agents, top[i].agent);

        outsiders[i] = a && agent_is_outsider(a, v->eyes) ? a : NULL;
    }
    for (size_t i = 0; i < n; i++) {
        size_t same = n_of_its_kind(outsiders, n, i);

        if (same < 2)
            continue;
        top[i].signals.discount += (float)(CROWD_STEP * (double)(same - 1) *
                                           (1 - candidate_trust(&top[i])));
        candidate_score(v, &top[i]);
        is_any = true;
    }
    for (size_t i = 1; is_any && i < n; i++) {
        struct candidate c = top[i];

        rank_insert(top, i, &c);
    }
}

/* Strangers. */

bool choose_is_stranger(const struct candidate *c)
{
    return !c->is_trusted && !c->is_taught;
}

/* Once their share is spent, nothing on strangers' cards counts. */
static void rank_strangers_behind(const struct choose_view *v,
                                  const struct msg *m,
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
        candidate_score(v, &c);
        rank_insert(strangers, i, &c);
    }
}

/* Merge both lists, with places reserved for a few trusted candidates. */
static size_t rank_merge(struct candidate *top, const struct candidate *trusted,
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
    n_trusted = rank_best(v, m, false, trusted, &n_dead);
    n_strangers = rank_best(v, m, true, strangers, &n_dead);
    if (!m->known.is_recorded) {
        m->known.is_small_talk = choose_is_small_talk(m->call.text);
        m->known.n_seen =
            (int64_t)m->known.n_candidates + m->known.n_unrecorded;
    }
    /* A record has the discounts of its time. */
    if (!m->known.is_recorded && !v->settings->is_seed) {
        discount_crowds(v, strangers, n_strangers);
        if (n_trusted && n_strangers)
            rank_strangers_behind(v, m, strangers, n_strangers);
    }
    n = rank_merge(top, trusted, n_trusted, strangers, n_strangers);
    for (size_t i = 0; i < n; i++)
        if (!arena_keep(&m->arena, top[i].agent, &top[i].agent) ||
            !arena_keep(&m->arena, top[i].skill, &top[i].skill) ||
            !arena_keep(&m->arena, top[i].keyword, &top[i].keyword))
            return ERR_NOMEM;
    m->choice.candidates = top;
    m->choice.n_candidates = n;
    m->choice.n_considered =
        (int64_t)m->known.n_candidates - n_dead + m->known.n_unrecorded;
    rules = choose_cutoff_rules(v->settings, m);
    choose_cutoffs(&rules, top, n);
    return OK;
}
