/* A query is looked at once: the pairs of its type in the scope are handed to
 * their agents, and every example of the scope speaks for the agent that was
 * right and against the one that was not, with the cube of its likeness: near
 * ones much, far ones hardly. What they say is added up in whole numbers
 * (2^-40), so the sum is the same in whatever order they lie.
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

/* What all others say of an agent counts as this part of the middle at most. An
 * agent that does well with their queries need not with these. */
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
        struct who *w = p->view->who;

        note_told(l, w);
        w->pair = p;
        w->paired = l->asked;
        w->view = p->view;
        w->viewed = l->asked;
    }
}

/* What others say of an agent is without what the scope itself says of it, and
 * by the plain formula its last success counts for every query. */
static void hand_out_views(struct learn *l, struct str scope)
{
    const struct tenant *s =
        (const struct tenant *)thing_live(l, THING_SCOPE, scope);
    struct list_node *n = s ? list_first(&s->views) : NULL;

    for (; n; n = list_next(&s->views, n)) {
        const struct view *v = LIST_OF(n, struct view, of_scope);

        v->who->view = v;
        v->who->viewed = l->asked;
    }
}

static void tell_of_renowned(struct learn *l)
{
    for (struct list_node *n = list_first(&l->renowned); n;
         n = list_next(&l->renowned, n))
        note_told(l, LIST_OF(n, struct known, renown)->who);
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
    if (l->settings.is_plain || !list_is_empty(&l->renowned))
        hand_out_views(l, q->scope);
    if (l->settings.is_plain)
        tell_of_all(l);
    else
        tell_of_renowned(l);
    if (vector_open(&v, q->vector)) {
        if ((t = type_of_query(l, q->scope, &v)))
            hand_out_pairs(l, t);
        s = shelf_find(l, THING_EXAMPLE, q->scope, l->model_hash, v.n);
        if (s)
            hear_examples(l, s, &v);
    }
    l->next = l->told;
    return OK;
}

/* A scope's own verdicts of this type in full, and those of all others about
 * the agent by their weight. Few of them lean on the middle, not on the agent's
 * own figure: an agent that is often right with some queries is not more often
 * right with others. */
static double performance(const struct learn *l, double rate, int64_t n,
                          double others_rate, double others)
{
    double lean = l->settings.agent_lean;
    double sum = (double)n * rate, all = (double)n;

    if (others > OTHERS * lean)
        others = OTHERS * lean;
    if (others > 1e-9) { /* less is what rounding leaves */
        all += others;
        sum += others * others_rate;
    }
    return all > 0 ? (sum + lean * 0.5) / (all + lean) : 0.5;
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
static double recency(const struct learn *l, int64_t good_ms, int64_t n)
{
    return n > 0 ? freshness(l, good_ms) * (double)n /
                       ((double)n + l->settings.agent_lean)
                 : 0;
}

static void look_closely(const struct learn *l, const struct who *w,
                         struct learn_hint *out)
{
    static const struct view unseen;
    static const struct pair untried;
    static const struct known unknown;
    const struct view *own = w->viewed == l->asked ? w->view : &unseen;
    const struct pair *p = w->paired == l->asked ? w->pair : &untried;
    const struct known *k =
        w->known && list_has(&w->known->renown) ? w->known : &unknown;

    out->performance = (float)performance(l, p->rate, p->n, k->public_rate,
                                          k->weight - own->weight);
    out->recency = (float)recency(l, own->good_ms, p->n);
    out->outside_performance =
        (float)performance(l, p->outside_rate, p->outside_n, k->outside_rate,
                           k->outside_weight - own->outside_weight);
    out->outside_recency =
        (float)recency(l, own->outside_good_ms, p->outside_n);
    out->has_inside = out->performance != out->outside_performance ||
                      out->recency != out->outside_recency;
}

/* DESIGN.md, "Learning": the type's average leans on the agent's. Types and the
 * last success are the scope's. */
static void look_plainly(const struct learn *l, const struct who *w,
                         struct learn_hint *out)
{
    const struct pair *p = w->paired == l->asked ? w->pair : NULL;
    int64_t good_ms = w->viewed == l->asked ? w->view->good_ms : 0;
    double n = p ? (double)p->n : 0, lean = l->settings.agent_lean;

    out->performance =
        (float)(p ? (n * p->rate + lean * w->known->rate) / (n + lean)
                  : w->known->rate);
    out->recency = (float)freshness(l, good_ms);
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
    else if (w && !l->settings.is_plain)
        look_closely(l, w, &hint);
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
