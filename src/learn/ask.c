/* A query is looked at once: its type's pairs are handed to their agents, and
 * every example of the scope speaks for the agent that was right and against
 * the one that was not, with the cube of its likeness: near ones much, far ones
 * hardly. What they say is added up in whole numbers (2^-40), so the sum is the
 * same in whatever order they lie.
 *
 * The high bytes give a good guess of the likeness; where it is worth anything
 * the low ones are looked at too, a few rows at once. Both are whole numbers
 * until the last step, so every processor says the same. Of a quick query only
 * the first part is looked at: the rest is zero. */
#include "learn/internal.h"

#include <math.h>

enum { AT_ONCE = 16 }; /* of which one that is near makes all fine */

static const double ONE = 1099511627776.0; /* 2^40 */
static const double FINE = 0.7; /* from here on the low bytes count too */

static const struct type *type_of_query(const struct learn *l,
                                        const struct vec_packed *v)
{
    struct type_vector first;

    return type_vector_of(l, l->model_hash, v, &first)
               ? type_near(l, l->model_hash, &first.v)
               : NULL;
}

int64_t learn_type(const struct learn *l, struct str vector)
{
    struct vec_packed v;
    const struct type *t =
        vector_open(&v, vector) ? type_of_query(l, &v) : NULL;

    return t ? t->id : 0;
}

/* Once each, before it is marked. */
static void note_told(struct learn *l, struct who *w)
{
    if (w->told == l->asked)
        return;
    w->told = l->asked;
    w->next_told = l->told;
    l->told = w;
}

static void hand_out_pairs(struct learn *l, const struct type *t)
{
    for (struct list_node *n = list_first(&t->pairs); n;
         n = list_next(&t->pairs, n)) {
        struct pair *p = LIST_OF(n, struct pair, of_type);

        note_told(l, p->who);
        p->who->pair = p;
        p->who->paired = l->asked;
    }
}

/* The scope's own view of the pairs. */
static void hand_out_views(struct learn *l, const struct type *t,
                           struct str scope)
{
    const struct group *g = group_find(l, GROUP_VIEWS, t->id, scope);
    struct list_node *n = g ? list_first(&g->things) : NULL;

    for (; n; n = list_next(&g->things, n)) {
        const struct view *v = LIST_OF(n, struct view, of_group);

        v->pair->who->view = v;
        v->pair->who->viewed = l->asked;
    }
}

/* The agent that the latest correction of this very text names. */
static void hear_correction(struct learn *l, const struct learn_query *q)
{
    const struct group *g =
        q->text_hash
            ? group_find(l, GROUP_TEXT, (int64_t)q->text_hash, q->scope)
            : NULL;
    const struct example *x = g ? example_latest(g) : NULL;
    struct who *right = x ? x->shelf->right[x->row] : NULL;

    if (!right)
        return;
    note_told(l, right);
    right->taught = l->asked;
}

static void hear_ratings(struct learn *l, struct str scope)
{
    const struct group *g = group_find(l, GROUP_RATINGS, 0, scope);
    struct list_node *n = g ? list_first(&g->things) : NULL;

    for (; n; n = list_next(&g->things, n)) {
        const struct rating *r = LIST_OF(n, struct rating, of_group);

        if (rating_net(r) <= 0)
            continue;
        note_told(l, r->who);
        r->who->rated = l->asked;
    }
}

/* By the plain formula an agent's own figures count for every query. */
static void tell_of_all(struct learn *l)
{
    const struct heap *h = &l->heaps[THING_AGENT];

    for (size_t i = 0; i < h->n; i++)
        note_told(l, ((struct known *)h->p[i])->who);
}

static void speak(struct learn *l, struct who *w, int64_t what)
{
    if (!w)
        return;
    if (w->asked != l->asked) {
        note_told(l, w);
        w->asked = l->asked;
        w->sum = 0;
    }
    w->sum += what;
}

static void hear_row(struct learn *l, const struct shelf *s, size_t row,
                     double likeness)
{
    int64_t what;

    likeness = fmax(0, fmin(1, likeness));
    what = (int64_t)(likeness * likeness * likeness * ONE + 0.5);
    speak(l, s->right[row], what);
    speak(l, s->wrong[row], -what);
}

static void hear_examples(struct learn *l, const struct shelf *s,
                          const struct vec_packed *v)
{
    bool is_quick = vec_packed_is_quick(v, s->quick);
    size_t dims = is_quick ? s->quick : s->dims;
    double gains[2] = {vec_gain(is_quick, false), vec_gain(is_quick, true)};
    double unit = 65536 * (double)v->scale;

    for (size_t at = 0; at < s->n; at += AT_ONCE) {
        size_t n = s->n - at < AT_ONCE ? s->n - at : AT_ONCE;
        const int8_t *high = s->high + at * s->stride;
        double guess[AT_ONCE];
        bool is_near = false;
        int32_t products[AT_ONCE];
        int64_t fine[AT_ONCE];

        vec_ops()->dots_i8(high, s->stride, n, v->high, dims, products);
        for (size_t i = 0; i < n; i++) {
            guess[i] = products[i] * (unit * gains[s->is_quick[at + i]] *
                                      (double)s->scale[at + i]);
            is_near |= guess[i] >= FINE;
        }
        if (is_near)
            vec_packed_products(high, s->low + at * s->stride, s->stride, n, v,
                                dims, fine);
        for (size_t i = 0; i < n; i++) {
            double scales = (double)s->scale[at + i] * (double)v->scale;

            if (guess[i] >= FINE)
                guess[i] =
                    scales * (double)fine[i] * gains[s->is_quick[at + i]];
            if (products[i] > 0)
                hear_row(l, s, at + i, guess[i]);
        }
    }
}

enum err learn_begin(struct learn *l, const struct learn_query *q)
{
    const struct shelf *s;
    const struct type *t;
    struct vec_packed v;

    l->asked++;
    l->told = l->next = NULL;
    l->now_ms = q->now_ms;
    l->recency_ms = q->recency_ms;
    hear_correction(l, q);
    hear_ratings(l, q->scope);
    if (l->settings.is_plain)
        tell_of_all(l);
    if (vector_open(&v, q->vector)) {
        if ((t = type_of_query(l, &v))) {
            hand_out_pairs(l, t);
            hand_out_views(l, t, q->scope);
        }
        if ((s = shelf_find(l, q->scope, l->model_hash, v.n)))
            hear_examples(l, s, &v);
    }
    l->next = l->told;
    return OK;
}

/* A scope's own verdicts in full, and those of all others by their weight. Few
 * of them lean on the middle, not on the agent's own figure: an agent that is
 * often right with some queries is not more often right with others. */
struct weighed {
    double sum, n;
};

static struct weighed own_and_others(double own_rate, int64_t own_n,
                                     double rate, double others)
{
    struct weighed w = {(double)own_n * own_rate, (double)own_n};

    if (others > 1e-9) { /* less is what rounding leaves */
        w.n += others;
        w.sum += others * rate;
    }
    return w;
}

static double performance(const struct learn *l, struct weighed w)
{
    double lean = l->settings.agent_lean;

    return w.n > 0 ? (w.sum + lean * 0.5) / (w.n + lean) : 0.5;
}

/* From one, at a success just now, down to zero. */
static double freshness(const struct learn *l, int64_t good_ms)
{
    double age;

    if (!good_ms || l->recency_ms <= 0)
        return 0;
    age = ((double)l->now_ms - (double)good_ms) / (double)l->recency_ms;
    return age <= 0 ? 1 : age >= 1 ? 0 : 1 - age;
}

/* A success counts as far as the agent is known for queries of this type. To
 * count it for all queries was measured to take 2 points of first places from
 * two of five sets (docs/quality.md): agents that did well with something else
 * would win what is nearly even. */
static double recency(const struct learn *l, int64_t good_ms, struct weighed w)
{
    return w.n > 0
               ? freshness(l, good_ms) * w.n / (w.n + l->settings.agent_lean)
               : 0;
}

static void look_at_pair(const struct learn *l, const struct who *w,
                         struct learn_hint *out)
{
    static const struct view nothing;
    const struct view *own = w->viewed == l->asked ? w->view : &nothing;
    const struct pair *p = w->pair;
    struct weighed all =
        own_and_others(own->rate, own->n, p->rate, p->weight - own->weight);
    struct weighed outside =
        own_and_others(own->outside_rate, own->outside_n, p->outside_rate,
                       p->outside_weight - own->outside_weight);

    out->performance = (float)performance(l, all);
    out->recency = (float)recency(l, w->known->good_ms, all);
    out->has_inside =
        p->outside_n != p->n || w->known->outside_good_ms != w->known->good_ms;
    out->outside_performance = (float)performance(l, outside);
    out->outside_recency =
        (float)recency(l, w->known->outside_good_ms, outside);
}

/* DESIGN.md, "Learning": the type's average leans on the agent's. */
static void look_plainly(const struct learn *l, const struct who *w,
                         struct learn_hint *out)
{
    const struct pair *p = w->paired == l->asked ? w->pair : NULL;
    double n = p ? (double)p->n : 0, lean = l->settings.agent_lean;

    out->performance =
        (float)(p ? (n * p->plain_rate + lean * w->known->rate) / (n + lean)
                  : w->known->rate);
    out->recency = (float)freshness(l, w->known->good_ms);
    out->outside_performance = out->performance;
    out->outside_recency = out->recency;
}

void learn_outside(struct learn_hint *h)
{
    h->performance = h->outside_performance;
    h->recency = h->outside_recency;
}

static struct learn_hint hint_of(const struct learn *l, const struct who *w)
{
    struct learn_hint hint = {.performance = 0.5F, .outside_performance = 0.5F};

    if (w && l->settings.is_plain && w->known)
        look_plainly(l, w, &hint);
    else if (w && w->paired == l->asked)
        look_at_pair(l, w, &hint);
    hint.is_taught = w && w->taught == l->asked;
    hint.is_rated = w && w->rated == l->asked;
    if (w && w->asked == l->asked)
        hint.learned = (float)((double)w->sum / ONE);
    return hint;
}

bool learn_knows(const struct learn *l, struct str agent)
{
    return l->whos.n && who_find(l, agent);
}

void learn_look(struct learn *l, struct str agent, struct learn_hint *out)
{
    *out = hint_of(l, l->whos.n ? who_find(l, agent) : NULL);
}

bool learn_next(struct learn *l, struct learn_told *out)
{
    struct who *w = l->next;

    if (!w)
        return false;
    l->next = w->next_told;
    if (l->next)
        __builtin_prefetch(l->next->next_told);
    *out = (struct learn_told){w->name, hint_of(l, w), &w->note};
    return true;
}
