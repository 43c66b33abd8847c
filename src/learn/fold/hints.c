/* A query is evaluated once: the pairs of its type in the scope are noted at
 * their agents, and every example of the scope counts for the agent that was
 * right and against the one that was wrong, with the cube of its similarity:
 * near ones much, far ones hardly. These are added in whole numbers (2^-40), so
 * the sum does not depend on their order.
 *
 * The high bytes give a good estimate of the similarity; if it is high enough
 * the low bytes are used too, a few rows at once. Both are whole numbers until
 * the last step, so every processor gets the same result. Only the first part
 * of a quick query is used: the rest is zero. */
#include "learn/fold/internal.h"

#include <math.h>

enum {
    AT_ONCE = 16,
    FINE_AT_ONCE = 4, /* one that is near makes all of these fine */
};

static const double ONE = 1099511627776.0; /* 2^40 */
static const double FINE = 0.7; /* from here on the low bytes are used */

/* The weight of other scopes' verdicts is limited to this part of the middle's:
 * an agent that does well with their queries need not do well with these. */
static const double OTHERS = 0.5;

static const struct type *type_of_query(const struct learn *l, struct str scope,
                                        const struct vec_packed *v)
{
    struct type_vector first;

    return type_vector_of(l, l->model_hash, v, &first)
               ? type_near(l, scope, l->model_hash, &first.v)
               : NULL;
}

int64_t learn_type(const struct learn *l, struct str scope, struct str vector)
{
    struct vec_packed v;
    const struct type *t =
        vector_open(&v, vector) ? type_of_query(l, scope, &v) : NULL;

    return t ? t->id : 0;
}

int64_t learn_type_asked(const struct learn *l)
{
    return l->type;
}

/* Once for each query, before the agent is marked. */
static void hint_agent(struct learn *l, struct agent_name *w)
{
    if (w->hinted == l->query_number)
        return;
    w->hinted = l->query_number;
    w->next_hinted = l->hinted;
    l->hinted = w;
}

static void hint_pairs(struct learn *l, const struct type *t)
{
    for (struct list_node *n = list_first(&t->pairs); n;
         n = list_next(&t->pairs, n)) {
        struct pair *p = LIST_OF(n, struct pair, of_type);
        struct agent_name *w = p->view->agent;

        hint_agent(l, w);
        w->pair = p;
        w->paired = l->query_number;
        w->view = p->view;
        w->viewed = l->query_number;
    }
}

/* Other scopes' verdicts exclude those of the scope itself; and by the plain
 * formula an agent's last success counts for every query. */
static void hint_views(struct learn *l, struct str scope)
{
    const struct tenant *s =
        (const struct tenant *)thing_live(l, THING_SCOPE, scope);
    struct list_node *n = s ? list_first(&s->views) : NULL;

    for (; n; n = list_next(&s->views, n)) {
        const struct view *v = LIST_OF(n, struct view, of_scope);

        v->agent->view = v;
        v->agent->viewed = l->query_number;
    }
}

/* The agent that the latest correction of this very text names. */
static void hint_correction(struct learn *l, const struct learn_query *q)
{
    const struct group *g =
        q->text_hash
            ? group_find(l, GROUP_TEXT, (int64_t)q->text_hash, q->scope)
            : NULL;
    const struct example *x = g ? example_latest(g) : NULL;
    struct agent_name *right = x ? x->shelf->right[x->row] : NULL;

    if (!right)
        return;
    hint_agent(l, right);
    right->taught = l->query_number;
}

static void hint_ratings(struct learn *l, struct str scope)
{
    const struct group *g = group_find(l, GROUP_RATINGS, 0, scope);
    struct list_node *n = g ? list_first(&g->things) : NULL;

    for (; n; n = list_next(&g->things, n)) {
        const struct rating *r = LIST_OF(n, struct rating, of_group);

        if (rating_net(r) <= 0)
            continue;
        hint_agent(l, r->agent);
        r->agent->rated = l->query_number;
    }
}

static void hint_add(struct learn *l, struct agent_name *w, int64_t what)
{
    if (!w)
        return;
    if (w->summed != l->query_number) {
        hint_agent(l, w);
        w->summed = l->query_number;
        w->sum = 0;
    }
    w->sum += what;
}

static void hint_example(struct learn *l, const struct shelf *s, size_t row,
                         double likeness)
{
    int64_t what;

    likeness = likeness < 1 ? likeness : 1;
    likeness = likeness > 0 ? likeness : 0;
    what = (int64_t)(likeness * likeness * likeness * ONE + 0.5);
    hint_add(l, s->right[row], what);
    hint_add(l, s->wrong[row], -what);
}

/* If one of the rows from `at` on is near, compute all of their similarities
 * exactly; `products` are those of the high bytes. */
static void refine_similarity(const struct shelf *s, const struct vec_packed *v,
                              size_t at, size_t n, size_t dims,
                              const int32_t *products, const double *gains,
                              double *likeness)
{
    size_t from = at * s->stride;
    int64_t fine[FINE_AT_ONCE];
    bool is_near = false;

    for (size_t i = 0; i < n; i++)
        is_near |= likeness[i] >= FINE;
    if (!is_near)
        return;
    vec_packed_products(s->high + from, s->low + from, s->stride, n, v, dims,
                        products, fine);
    for (size_t i = 0; i < n; i++)
        if (likeness[i] >= FINE)
            likeness[i] = (double)s->scale[at + i] * (double)v->scale *
                          (double)fine[i] * gains[s->is_quick[at + i]];
}

static void hint_examples(struct learn *l, const struct shelf *s,
                          const struct vec_packed *v)
{
    const struct vec_ops *ops = vec_ops();
    bool is_quick = vec_packed_is_quick(v, s->quick);
    size_t dims = is_quick ? s->quick : s->dims;
    double gains[2] = {vec_gain(is_quick, false), vec_gain(is_quick, true)};
    double unit = 65536 * (double)v->scale;

    for (size_t at = 0; at < s->n; at += AT_ONCE) {
        size_t n = s->n - at < AT_ONCE ? s->n - at : AT_ONCE;
        double likeness[AT_ONCE];
        int32_t products[AT_ONCE];

        ops->dots_i8(s->high + at * s->stride, s->stride, n, v->high, dims,
                     products);
        for (size_t i = 0; i < n; i++)
            likeness[i] = products[i] * (unit * gains[s->is_quick[at + i]] *
                                         (double)s->scale[at + i]);
        for (size_t i = 0; i < n; i += FINE_AT_ONCE)
            refine_similarity(s, v, at + i,
                              n - i < FINE_AT_ONCE ? n - i : FINE_AT_ONCE, dims,
                              products + i, gains, likeness + i);
        for (size_t i = 0; i < n; i++)
            if (products[i] > 0)
                hint_example(l, s, at + i, likeness[i]);
    }
}

void learn_begin(struct learn *l, const struct learn_query *q)
{
    const struct heap *h = &l->heaps[THING_AGENT];
    struct list_node *n = list_first(&l->renowned);
    const struct shelf *s;
    const struct type *t;
    struct vec_packed v;

    l->query_number++;
    l->hinted = l->next = NULL;
    l->type = 0;
    l->now_ms = q->now_ms;
    l->recency_ms = q->recency_ms;
    hint_correction(l, q);
    hint_ratings(l, q->scope);
    if (l->settings.is_plain || n)
        hint_views(l, q->scope);
    /* By the plain formula an agent's own figures count for every query. */
    for (size_t i = 0; l->settings.is_plain && i < h->n; i++)
        hint_agent(l, ((struct known *)h->p[i])->agent);
    for (; !l->settings.is_plain && n; n = list_next(&l->renowned, n))
        hint_agent(l, LIST_OF(n, struct known, renown)->agent);
    if (vector_open(&v, q->vector)) {
        t = type_of_query(l, q->scope, &v);
        if (t) {
            l->type = t->id;
            hint_pairs(l, t);
        }
        s = shelf_find(l, THING_EXAMPLE, q->scope, l->model_hash, v.n);
        if (s)
            hint_examples(l, s, &v);
    }
    l->next = l->hinted;
}

/* A scope's own verdicts of this type count in full, those of all others about
 * the agent by their weight. A few verdicts are pulled to the middle, not to
 * the agent's own average: an agent that is often right with some queries is
 * not more often right with others. */
static double hint_performance(const struct learn *l, double rate, int64_t n,
                               double others_rate, double others)
{
    double lean = l->settings.agent_lean;
    double sum = (double)n * rate, all = (double)n;

    if (others > OTHERS * lean)
        others = OTHERS * lean;
    if (others > 1e-9) { /* less is rounding */
        all += others;
        sum += others * others_rate;
    }
    return all > 0 ? (sum + lean * 0.5) / (all + lean) : 0.5;
}

/* From one, for a success just now, down to zero. */
static double hint_freshness(const struct learn *l, int64_t good_ms)
{
    double age;

    if (!good_ms || l->recency_ms <= 0)
        return 0;
    age = ((double)l->now_ms - (double)good_ms) / (double)l->recency_ms;
    return age <= 0 ? 1 : age >= 1 ? 0 : 1 - age;
}

/* A success counts in proportion to the agent's experience with this type.
 * Counting it for all queries costs 2 points of first places on two of five
 * sets (docs/quality.md): agents that did well with something else would win
 * close decisions. */
static double hint_recency(const struct learn *l, int64_t good_ms, int64_t n)
{
    return n > 0 ? hint_freshness(l, good_ms) * (double)n /
                       ((double)n + l->settings.agent_lean)
                 : 0;
}

static void hint_from_scope(const struct learn *l, const struct agent_name *w,
                            struct learn_hint *out)
{
    static const struct view unseen;
    static const struct pair untried;
    static const struct known unknown;
    const struct view *own = w->viewed == l->query_number ? w->view : &unseen;
    const struct pair *p = w->paired == l->query_number ? w->pair : &untried;
    const struct known *k =
        w->known && list_has(&w->known->renown) ? w->known : &unknown;

    out->performance = (float)hint_performance(l, p->rate, p->n, k->public_rate,
                                               k->weight - own->weight);
    out->recency = (float)hint_recency(l, own->good_ms, p->n);
    out->outside_performance = (float)hint_performance(
        l, p->outside_rate, p->outside_n, k->outside_rate,
        k->outside_weight - own->outside_weight);
    out->outside_recency =
        (float)hint_recency(l, own->outside_good_ms, p->outside_n);
    out->has_inside = out->performance != out->outside_performance ||
                      out->recency != out->outside_recency;
}

/* Preset "seed": the type's average leans on the agent's. Types and the last
 * success are the scope's. */
static void hint_plainly(const struct learn *l, const struct agent_name *w,
                         struct learn_hint *out)
{
    const struct pair *p = w->paired == l->query_number ? w->pair : NULL;
    int64_t good_ms = w->viewed == l->query_number ? w->view->good_ms : 0;
    double n = p ? (double)p->n : 0, lean = l->settings.agent_lean;

    out->performance =
        (float)(p ? (n * p->rate + lean * w->known->rate) / (n + lean)
                  : w->known->rate);
    out->recency = (float)hint_freshness(l, good_ms);
    out->outside_performance = out->performance;
    out->outside_recency = out->recency;
}

void learn_outside(struct learn_hint *h)
{
    h->performance = h->outside_performance;
    h->recency = h->outside_recency;
}

static struct learn_hint learn_hint_of(const struct learn *l,
                                       const struct agent_name *w)
{
    struct learn_hint hint = {.performance = 0.5F, .outside_performance = 0.5F};

    if (w && l->settings.is_plain && w->known)
        hint_plainly(l, w, &hint);
    else if (w && !l->settings.is_plain)
        hint_from_scope(l, w, &hint);
    hint.is_taught = w && w->taught == l->query_number;
    hint.is_rated = w && w->rated == l->query_number;
    if (w && w->summed == l->query_number)
        hint.learned = (float)((double)w->sum / ONE);
    return hint;
}

bool learn_knows(const struct learn *l, struct str agent)
{
    return l->names.n && agent_name_find(l, agent);
}

void learn_look(struct learn *l, struct str agent, struct learn_hint *out)
{
    *out = learn_hint_of(l, l->names.n ? agent_name_find(l, agent) : NULL);
}

bool learn_next(struct learn *l, struct learn_agent_hint *out)
{
    struct agent_name *w = l->next;

    if (!w)
        return false;
    l->next = w->next_hinted;
    if (l->next)
        __builtin_prefetch(l->next->next_hinted);
    *out = (struct learn_agent_hint){w->name, learn_hint_of(l, w), &w->note};
    return true;
}
