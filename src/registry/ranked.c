/* Ranked hits: visibility, filters, and the order of the first ten.
 *
 * The index returns agents best first and only visible ones, so nothing is
 * discarded here. From the third agent of one creator on, each is held back
 * until agents of others with nearly its score have places:
 *
 *     hits, best first     a1 a2 a3 b1 a4 c1 d1   (a: all of one creator, d1
 *                                                  has half of a3's score)
 *     places               a1 a2 b1 c1 a3 a4 d1
 *
 * A held hit came before the ones after it, so its score is better: once ten
 * places are taken, held hits come first, and from there on the order is that
 * of the scores.
 *
 * A requester sees the classes public, own org and own agents, and besides them
 * agents shared by a grant, and own agents that an admin has given to another
 * org. Those are few and are listed; the list is rebuilt when the registry has
 * changed. */
#include <stdlib.h>

#include "base/mem.h"
#include "registry/internal.h"

static bool entry_may_be_granted(const struct entry *e)
{
    const struct agent *a = &e->agent;

    return a->visibility == VISIBILITY_SHARED &&
           (a->n_grants || (e->has_own_org && a->creator.n));
}

static void ranked_list_shared(struct registry *r)
{
    struct searches *all = r->searches;
    size_t n = 0;

    if (all->besides_seq == r->seq)
        return;
    for (size_t i = 0; i < r->n; i++)
        n += entry_may_be_granted(agent_entry(r->list[i]));
    all->besides = mem_resize(all->besides, n, sizeof(*all->besides));
    all->n_besides = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = agent_entry(r->list[i]);

        if (entry_may_be_granted(e))
            all->besides[all->n_besides++] = e->number;
    }
    all->besides_seq = r->seq;
}

/* Fill `out` with those of `besides` that these eyes see. */
static size_t ranked_list_granted(const struct registry *r,
                                  const struct eyes *eyes, uint32_t *out)
{
    const struct searches *all = r->searches;
    size_t n = 0;

    if (eyes->sees_all)
        return 0;
    for (size_t i = 0; i < all->n_besides; i++) {
        const struct agent *a = &r->by_number[all->besides[i]]->agent;

        if (!(eyes->org.n && str_eq(a->org, eyes->org)) &&
            agent_is_visible(a, eyes))
            out[n++] = all->besides[i];
    }
    return n;
}

struct filter {
    const struct registry *r;
    const struct search *s;
    const struct entry *self; /* the asking agent; NULL: none */
};

/* Whether one of its skills, or the agent itself if it has none, costs at most
 * max. */
static bool agent_is_within_price(const struct agent *a, int64_t max)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (agent_price(a, &a->skills[i]) <= max)
            return true;
    return !a->n_skills && agent_price(a, NULL) <= max;
}

static bool filter_admits(void *ctx, uint32_t number, uint32_t nth)
{
    const struct filter *f = ctx;
    const struct search *s = f->s;
    const struct entry *e = f->r->by_number[number];
    const struct agent *a = &e->agent;
    const struct skill *skill = nth == INDEX_AGENT ? NULL : &a->skills[nth];

    if (e == f->self)
        return false;
    if (s->tag.n &&
        !(skill ? skill_has_tag(skill, s->tag) : agent_has_tag(a, s->tag)))
        return false;
    if (s->org.n && !str_eq(a->org, s->org))
        return false;
    if (s->max_price >= 0 && !(skill ? agent_price(a, skill) <= s->max_price
                                     : agent_is_within_price(a, s->max_price)))
        return false;
    return !s->state || registry_state(f->r, a) == s->state;
}

static bool has_filter(const struct filter *f)
{
    const struct search *s = f->s;

    return f->self || s->tag.n || s->org.n || s->state || s->max_price >= 0;
}

static bool search_is_spread(const struct registry *r, const struct search *s)
{
    if (s->has_order)
        return !s->is_plain;
    return !s->eyes.sees_all && !r->searches->ranking.is_plain;
}

/* Whether its creator already has as many places as one may have by score
 * alone. */
static bool places_are_crowded(const struct places *p, const struct agent *a)
{
    const struct eyes *eyes = &p->s->eyes;
    size_t n = 0;

    if (!agent_is_outsider(a, eyes))
        return false;
    for (size_t i = 0; i < p->n; i++)
        n += agent_is_outsider(p->hits[i].agent, eyes) &&
             str_eq_nocase(p->hits[i].agent->creator, a->creator);
    return n >= SEARCH_PER_CREATOR;
}

/* Place held hits, as long as `next` does not have nearly their score; NULL: no
 * further hit. */
static void places_release_held(struct places *p, const struct search_hit *next)
{
    size_t n = 0;

    while (n < p->n_held && p->n < p->s->limit &&
           (!next || p->n >= SEARCH_CROWD ||
            next->score < SEARCH_NEARLY * p->held[n].score))
        p->hits[p->n++] = p->held[n++];
    p->n_held -= n;
    memmove(p->held, p->held + n, p->n_held * sizeof(*p->held));
}

static struct index_query ranked_query(const struct registry *r,
                                       const struct search *s,
                                       const float *vector)
{
    const struct registry_ranking *k = &r->searches->ranking;

    return (struct index_query){
        .text = s->text,
        .vector = vector,
        .mode = vector ? s->mode : INDEX_TEXT,
        .fusion = s->has_fusion ? s->fusion : k->fusion,
        .semantic_weight = (float)k->semantic_weight,
        .text_weight = (float)k->text_weight,
    };
}

/* Set what the requester sees. Free the returned list after the query. */
static uint32_t *ranked_set_requester(struct registry *r,
                                      const struct eyes *eyes,
                                      struct index_query *q)
{
    uint32_t *granted;

    ranked_list_shared(r);
    granted = mem_array(r->searches->n_besides, sizeof(*granted));
    q->org = eyes->org;
    q->creator = eyes->user;
    q->sees_all = eyes->sees_all;
    q->granted = granted;
    q->n_granted = ranked_list_granted(r, eyes, granted);
    return granted;
}

/* The quick part of a full vector; empty: none. */
static struct str packed_first_part(const struct registry *r, struct str packed,
                                    uint8_t *out)
{
    uint32_t dims = index_dims(r->index), quick = index_quick(r->index);
    float v[INDEX_DIMS_MAX] = {0};
    struct vec_packed p;

    if (!vec_packed_open(&p, (const uint8_t *)packed.p, packed.n, dims))
        return STR("");
    for (size_t i = 0; i < quick; i++)
        v[i] = p.scale * (float)(256 * p.high[i] + p.low[i]);
    if (!vec_pack(v, dims, out))
        return STR("");
    return (struct str){(const char *)out, vec_packed_bytes(dims)};
}

enum err ranked_near(struct registry *r, const struct registry_near_query *n,
                     const struct index_near **out, size_t *count)
{
    struct index_query q = {.text = n->words.n ? n->words : n->text,
                            .leaves_aside = true,
                            .is_plain = n->is_seed};
    uint8_t quick[8 + 2 * INDEX_DIMS_MAX];
    struct str vector = n->vector;
    uint32_t *granted = ranked_set_requester(r, &n->eyes, &q);
    enum err e;

    /* If only half of them had vectors, or full ones, their turn in the backlog
     * would decide. */
    if (vectors_have_quick(r) && !registry_has_full(r))
        vector = packed_first_part(r, vector, quick);
    else if (r->vectors && r->vectors->n_outdated && !vectors_have_quick(r))
        vector = STR("");
    e = index_near_guess(r->index, &q, vector, out, count);
    free(granted);
    return e;
}

bool registry_has_full(const struct registry *r)
{
    return vectors_have_quick(r) && !r->vectors->n_outdated &&
           (!r->opts.reference.n || r->stats.has_levels);
}

enum err registry_says(struct registry *r, const struct eyes *eyes,
                       const struct str *words, size_t n, bool *has_word)
{
    struct index_query q = {.text = STR("")};
    uint32_t *granted = ranked_set_requester(r, eyes, &q);
    enum err e = index_says(r->index, &q, words, n, has_word);

    free(granted);
    return e;
}

enum err ranked_look(struct registry *r, struct places *p, const float *vector)
{
    const struct search *s = p->s;
    struct index_query q = ranked_query(r, s, vector);
    struct filter filter = {.r = r,
                            .s = s,
                            .self = s->eyes.self.n ? entry_find(r, s->eyes.self)
                                                   : NULL};
    uint32_t *granted = ranked_set_requester(r, &s->eyes, &q);
    enum err e;

    if (has_filter(&filter)) {
        q.admits = filter_admits;
        q.ctx = &filter;
    }
    e = index_search_begin(r->index, &q);
    if (!e) {
        bool spread = search_is_spread(r, p->s);
        struct index_hit found;

        while (p->n < p->s->limit && index_next(r->index, &found) &&
               (double)found.score >= p->s->min_score) {
            struct search_hit h = {.agent = &r->by_number[found.number]->agent,
                                   .score = found.score,
                                   .n_matches = found.n_matches};

            memcpy(h.matches, found.matches,
                   found.n_matches * sizeof(found.matches[0]));
            places_release_held(p, &h);
            if (spread && p->n < SEARCH_CROWD &&
                places_are_crowded(p, h.agent)) {
                if (p->n_held < p->s->limit) /* else it never has a place */
                    p->held[p->n_held++] = h;
            } else if (p->n < p->s->limit)
                p->hits[p->n++] = h;
        }
        places_release_held(p, NULL);
        p->total = index_count(r->index, p->s->min_score);
        index_search_end(r->index);
    }
    free(granted);
    return e;
}
