/* Ranked hits: what somebody sees, what they asked for of it, and the order of
 * the first ten.
 *
 * The index hands out agents best first and only those that the requester may
 * see, so nothing is thrown away here. From the third agent of one creator on,
 * each is held until those of others that have nearly its score have places:
 *
 *     hits, best first     a1 a2 a3 b1 a4 c1 d1   (a: all of one creator, d1
 *                                                  has half of a3's score)
 *     places               a1 a2 b1 c1 a3 a4 d1
 *
 * Whatever is held was handed out before what is not, so its score is better:
 * once ten places are taken, those that are held come first, and the order is
 * that of the scores from there on.
 *
 * What somebody sees are the classes of the index, public, their org's, their
 * own, and besides: agents shared with them by a grant, and their own that an
 * admin has given to another org. Those are few and are listed; the list is
 * made anew when the registry has changed. */
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

/* What somebody sees. */

static bool is_beside(const struct entry *e)
{
    const struct agent *a = &e->agent;

    return a->visibility == VISIBILITY_SHARED &&
           (a->n_grants || (e->has_own_org && a->creator.n));
}

static enum err list_besides(struct registry *r)
{
    struct searches *all = r->searches;
    size_t n = 0;

    if (all->besides_seq == r->seq)
        return OK;
    for (size_t i = 0; i < r->n; i++)
        n += is_beside(entry_of(r->list[i]));
    if (n > all->besides_cap) {
        uint32_t *more = FAULT("search.besides")
                             ? NULL
                             : realloc(all->besides, n * sizeof(*more));

        if (!more)
            return ERR_NOMEM;
        all->besides = more;
        all->besides_cap = n;
    }
    all->n_besides = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = entry_of(r->list[i]);

        if (is_beside(e))
            all->besides[all->n_besides++] = e->number;
    }
    all->besides_seq = r->seq;
    return OK;
}

/* Those of `besides` that these eyes see, into `out`. */
static size_t see_besides(const struct registry *r, const struct eyes *eyes,
                          uint32_t *out)
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

/* Filters. */

struct filter {
    const struct registry *r;
    const struct search *s;
    const struct entry *self; /* who asks; NULL: no agent */
};

/* Whether it can be had for no more than max: one of its skills, or it, where
 * it has none. */
static bool is_within(const struct agent *a, int64_t max)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (agent_price(a, &a->skills[i]) <= max)
            return true;
    return !a->n_skills && agent_price(a, NULL) <= max;
}

static bool admits(void *ctx, uint32_t number, uint32_t nth)
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
                                     : is_within(a, s->max_price)))
        return false;
    return !s->state || registry_state(f->r, a) == s->state;
}

static bool has_filter(const struct filter *f)
{
    const struct search *s = f->s;

    return f->self || s->tag.n || s->org.n || s->state || s->max_price >= 0;
}

/* The order of the first ten. */

static bool is_spread(const struct registry *r, const struct search *s)
{
    if (s->has_order)
        return !s->is_plain;
    return !s->eyes.sees_all && !r->searches->ranking.is_plain;
}

/* Whether as many of its creator have a place as may by their score alone. */
static bool is_crowded(const struct places *p, const struct agent *a)
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

static void hold(struct places *p, const struct search_hit *h)
{
    if (p->n_held < p->s->limit) /* else there never is a place for it */
        p->held[p->n_held++] = *h;
}

/* Places for those that are held, as long as `next` is no better than they need
 * it to be; NULL: nobody comes any more. */
static void release_held(struct places *p, const struct search_hit *next)
{
    size_t n = 0;

    while (n < p->n_held && p->n < p->s->limit &&
           (!next || p->n >= SEARCH_CROWD ||
            next->score < SEARCH_NEARLY * p->held[n].score))
        p->hits[p->n++] = p->held[n++];
    p->n_held -= n;
    memmove(p->held, p->held + n, p->n_held * sizeof(*p->held));
}

static void take_hit(struct places *p, const struct search_hit *h, bool spread)
{
    release_held(p, h);
    if (spread && p->n < SEARCH_CROWD && is_crowded(p, h->agent))
        hold(p, h);
    else if (p->n < p->s->limit)
        p->hits[p->n++] = *h;
}

/* The search itself. */

static struct index_query query_of(const struct registry *r,
                                   const struct search *s, const float *vector)
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

static void gather(struct registry *r, struct places *p)
{
    bool spread = is_spread(r, p->s);
    struct index_hit found;

    while (p->n < p->s->limit && index_next(r->index, &found) &&
           (double)found.score >= p->s->min_score) {
        struct search_hit h = {.agent = &r->by_number[found.number]->agent,
                               .score = found.score,
                               .n_matches = found.n_matches};

        memcpy(h.matches, found.matches,
               found.n_matches * sizeof(found.matches[0]));
        take_hit(p, &h, spread);
    }
    release_held(p, NULL);
    p->total = index_count(r->index, p->s->min_score);
}

/* Room for those that are seen besides; NULL where there can be none. */
static enum err see(struct registry *r, const struct eyes *eyes,
                    struct index_query *q, uint32_t **granted)
{
    enum err e = list_besides(r);

    *granted = NULL;
    q->org = eyes->org;
    q->creator = eyes->user;
    q->sees_all = eyes->sees_all;
    if (e || !r->searches->n_besides)
        return e;
    *granted = FAULT("search.granted")
                   ? NULL
                   : calloc(r->searches->n_besides, sizeof(**granted));
    if (!*granted)
        return ERR_NOMEM;
    q->granted = *granted;
    q->n_granted = see_besides(r, eyes, *granted);
    return OK;
}

/* What is quick of a full vector; empty: there is nothing. */
static struct str first_part(const struct registry *r, struct str packed,
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
                            .is_plain = n->is_seed};
    uint8_t quick[8 + 2 * INDEX_DIMS_MAX];
    struct str vector = n->vector;
    uint32_t *granted;
    enum err e = see(r, &n->eyes, &q, &granted);

    /* Half of them with vectors, or with full ones, would be ranked by who had
     * their turn first. */
    if (vectors_have_quick(r) && !registry_has_full(r))
        vector = first_part(r, vector, quick);
    else if (r->vectors && r->vectors->n_anew && !vectors_have_quick(r))
        vector = STR("");
    if (!e)
        e = index_near_guess(r->index, &q, vector, out, count);
    free(granted);
    return e;
}

bool registry_has_full(const struct registry *r)
{
    return vectors_have_quick(r) && !r->vectors->n_anew &&
           (!r->opts.reference.n || r->stats.has_levels);
}

enum err registry_says(struct registry *r, const struct eyes *eyes,
                       const struct str *words, size_t n, bool *is_said)
{
    struct index_query q = {.text = STR("")};
    uint32_t *granted;
    enum err e = see(r, eyes, &q, &granted);

    memset(is_said, 0, n * sizeof(*is_said));
    if (!e)
        e = index_says(r->index, &q, words, n, is_said);
    free(granted);
    return e;
}

enum err ranked_look(struct registry *r, struct places *p, const float *vector)
{
    const struct search *s = p->s;
    struct index_query q = query_of(r, s, vector);
    struct filter filter = {.r = r,
                            .s = s,
                            .self = s->eyes.self.n ? entry_find(r, s->eyes.self)
                                                   : NULL};
    uint32_t *granted;
    enum err e = see(r, &s->eyes, &q, &granted);

    if (has_filter(&filter)) {
        q.admits = admits;
        q.ctx = &filter;
    }
    if (!e)
        e = index_search_begin(r->index, &q);
    if (!e) {
        gather(r, p);
        index_search_end(r->index);
    }
    free(granted);
    return e;
}
