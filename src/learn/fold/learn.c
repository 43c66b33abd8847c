/* The fold. An outcome is first planned: everything that it needs is found or
 * made while the state does not change, so a failure leaves it as it was. Then
 * it is carried out, which cannot fail.
 *
 * Nothing here depends on the order of rows in memory; nor on the present
 * model, except that its vectors may have two parts: vectors know their model
 * and are only compared with vectors of the same one. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/mem.h"

enum { NAMES_MAX = 1 << 22 };

struct learn_settings learn_defaults(void)
{
    return (struct learn_settings){
        .rate = 0.1,
        .agent_lean = 5,
        .max_types = 256,
        .type_likeness = 0.6,
        .examples_per_agent = 64,
        .max_examples = 20 * 1000,
        .max_agents = 50 * 1000,
    };
}

struct learn *learn_new(const struct learn_settings *s, struct str model_hash,
                        size_t quick, const uint64_t seed[2])
{
    struct learn *l = mem_new(sizeof(*l));

    model_hash = str_head(model_hash, HASH_MAX);
    if (model_hash.n)
        memcpy(l->model_hash_bytes, model_hash.p, model_hash.n);
    l->model_hash = (struct str){l->model_hash_bytes, model_hash.n};
    l->quick = quick <= LEARN_QUICK_MAX ? quick : 0;
    map_init(&l->things, NAMES_MAX, seed);
    memcpy(l->names.seed, seed, sizeof(l->names.seed));
    map_init(&l->shelves, NAMES_MAX, seed);
    map_init(&l->groups, NAMES_MAX, seed);
    list_init(&l->dirty);
    list_init(&l->writing);
    list_init(&l->renowned);
    learn_set(l, s);
    return l;
}

void learn_free(struct learn *l)
{
    const struct map_slot *slot;
    size_t at;

    if (!l)
        return;
    for (at = 0; (slot = map_next(&l->things, &at));)
        thing_free(slot->value);
    agent_names_fini(&l->names);
    for (at = 0; (slot = map_next(&l->shelves, &at));)
        shelf_free(slot->value);
    for (at = 0; (slot = map_next(&l->groups, &at));)
        free(slot->value);
    map_fini(&l->things);
    map_fini(&l->shelves);
    map_fini(&l->groups);
    for (int kind = 0; kind < N_KINDS; kind++)
        free(l->heaps[kind].p);
    free(l);
}

/* A vector that joins a type must be similar to it, or the mean could become
 * zero. */
void learn_set(struct learn *l, const struct learn_settings *s)
{
    l->settings = *s;
    if (!(l->settings.type_likeness >= 0.01))
        l->settings.type_likeness = 0.01;
    if (!(l->settings.agent_lean >= 0))
        l->settings.agent_lean = 0;
    l->settings.max_pairs = s->max_pairs ? s->max_pairs : LEARN_PAIRS_MAX;
    l->settings.max_views = s->max_views ? s->max_views : LEARN_VIEWS_MAX;
    l->settings.max_ratings =
        s->max_ratings ? s->max_ratings : LEARN_RATINGS_MAX;
    l->settings.max_scopes = s->max_scopes ? s->max_scopes : LEARN_SCOPES_MAX;
    l->settings.max_all_types =
        s->max_all_types ? s->max_all_types : LEARN_TYPES_MAX;
}

int64_t learn_version(const struct learn *l)
{
    return l->version;
}

struct learn_stats learn_stats(const struct learn *l)
{
    return (struct learn_stats){
        .agents = l->heaps[THING_AGENT].n,
        .types = l->heaps[THING_TYPE].n,
        .agent_types = l->heaps[THING_PAIR].n,
        .examples = l->heaps[THING_EXAMPLE].n,
        .views = l->heaps[THING_VIEW].n,
        .ratings = l->heaps[THING_RATING].n,
        .scopes = l->heaps[THING_SCOPE].n,
        .applied_total = l->applied_total,
    };
}

/* Planning. */

/* The effect of an outcome on one agent's rating. */
struct plan_vote {
    struct agent_name *agent; /* a reference; NULL: nothing */
    struct rating *rating;
    bool is_new;
    int64_t sign;
};

struct plan {
    const struct outcome *o;
    struct vec_packed v;
    struct type_vector of_type; /* with has_type: the part for its type */
    bool has_vector, has_type, is_judged;

    struct agent_name *agent, *right,
        *wrong; /* a reference each; NULL: not needed */
    struct known *known;
    struct type *type;
    struct shelf *type_shelf;
    struct pair *pair;
    struct view *view;
    struct tenant *scope;
    struct example *example;
    struct shelf *shelf;
    struct group *same, *ratings;
    struct plan_vote votes[2]; /* for and against */
    bool is_known_new, is_type_new, is_pair_new, is_view_new, is_scope_new;
    struct text_words words;
};

static void plan_fini(struct learn *l, struct plan *p)
{
    if (p->is_known_new)
        thing_free(&p->known->thing);
    if (p->is_type_new)
        thing_free(&p->type->thing);
    if (p->is_pair_new)
        thing_free(&p->pair->thing);
    if (p->is_view_new)
        thing_free(&p->view->thing);
    if (p->is_scope_new)
        thing_free(&p->scope->thing);
    if (p->example)
        thing_free(&p->example->thing);
    for (int i = 0; i < 2; i++) {
        if (p->votes[i].is_new)
            thing_free(&p->votes[i].rating->thing);
        agent_name_release(l, p->votes[i].agent);
    }
    group_tidy(l, p->same);
    group_tidy(l, p->ratings);
    shelf_tidy(l, p->type_shelf);
    shelf_tidy(l, p->shelf);
    agent_name_release(l, p->agent);
    agent_name_release(l, p->right);
    agent_name_release(l, p->wrong);
}

bool is_scope(struct str scope)
{
    return scope.n > 0 && scope.n <= SCOPE_MAX;
}

/* Whether the outcome judges the agent. */
static bool outcome_judges(const struct outcome *o)
{
    return (o->layer == LAYER_SEMANTIC || o->layer == LAYER_INTENT) &&
           (o->verdict == VERDICT_POSITIVE || o->verdict == VERDICT_NEGATIVE) &&
           o->counts != COUNTS_NOT && is_agent_name(o->agent);
}

/* Whether a user said something about a text. A switch away from an agent that
 * the router did not choose has no text: it says nothing. */
static bool outcome_is_user_said(const struct outcome *o)
{
    return (o->kind == OUTCOME_CORRECTION || o->kind == OUTCOME_FEEDBACK) &&
           is_scope(o->scope) && (o->text.n || o->vector.n);
}

/* Whether it teaches the right agent of a text, or at least a wrong one. */
static bool outcome_teaches(const struct outcome *o)
{
    if (!outcome_is_user_said(o))
        return false;
    if (o->right_agent.n)
        return is_agent_name(o->right_agent) &&
               !str_eq_nocase(o->agent, o->right_agent);
    return o->verdict == VERDICT_NEGATIVE && is_agent_name(o->agent);
}

static void plan_agent(struct learn *l, struct plan *p)
{
    p->agent = agent_name_take(l, p->o->agent);
    p->known = p->agent->known;
    p->is_known_new = !p->known;
    if (!p->known)
        p->known = thing_new(THING_AGENT, p->agent->name);
}

static enum err plan_type(struct learn *l, struct plan *p)
{
    words_of(p->o->text, &p->words);
    p->type = type_near(l, p->o->scope, p->o->model_hash, &p->of_type.v);
    if (p->type)
        return OK;
    p->type_shelf = shelf_take(l, THING_TYPE, p->o->scope, p->o->model_hash,
                               p->of_type.v.n);
    if (!p->type_shelf)
        return ERR_NOMEM;
    p->type = type_new(type_id(l, p->o), p->of_type.v.n);
    p->is_type_new = true;
    return OK;
}

static struct pair *find_pair(const struct view *v, const struct type *t)
{
    for (struct list_node *n = list_first(&v->pairs); n;
         n = list_next(&v->pairs, n)) {
        struct pair *p = LIST_OF(n, struct pair, of_view);

        if (p->type == t)
            return p;
    }
    return NULL;
}

struct str pair_key(int64_t type, struct str name, char out[PAIR_KEY_MAX])
{
    size_t n = type_key(type, out).n;

    out[n++] = '/';
    memcpy(out + n, name.p, name.n);
    return (struct str){out, n + name.n};
}

static void plan_pair(struct plan *p)
{
    char key[PAIR_KEY_MAX];

    p->pair =
        p->is_type_new || p->is_view_new ? NULL : find_pair(p->view, p->type);
    p->is_pair_new = !p->pair;
    if (!p->pair)
        p->pair =
            thing_new(THING_PAIR, pair_key(p->type->id, p->agent->name, key));
}

static void plan_scope(struct learn *l, struct plan *p)
{
    p->scope = (struct tenant *)thing_live(l, THING_SCOPE, p->o->scope);
    p->is_scope_new = !p->scope;
    if (!p->scope)
        p->scope = tenant_new(p->o->scope);
}

static void plan_view(struct learn *l, struct plan *p)
{
    char key[VIEW_KEY_MAX];
    struct str id = scope_view_key(p->agent->name, p->o->scope, key);

    p->view = (struct view *)thing_live(l, THING_VIEW, id);
    p->is_view_new = !p->view;
    if (!p->view)
        p->view = thing_new(THING_VIEW, id);
}

static void plan_vote(struct learn *l, struct plan *p, struct plan_vote *to,
                      struct str agent, int64_t sign)
{
    char key[VIEW_KEY_MAX];
    struct str id;

    to->agent = agent_name_take(l, agent);
    to->sign = sign;
    id = scope_view_key(to->agent->name, p->o->scope, key);
    to->rating = (struct rating *)thing_live(l, THING_RATING, id);
    to->is_new = !to->rating;
    if (to->rating)
        return;
    to->rating = thing_new(THING_RATING, id);
    if (!p->ratings)
        p->ratings = group_take(l, GROUP_RATINGS, 0, p->o->scope);
}

/* A user's verdict about the agents: which was right, and which was wrong. */
static void plan_votes(struct learn *l, struct plan *p)
{
    const struct outcome *o = p->o;
    struct str good = o->right_agent;

    if (!outcome_is_user_said(o) || !o->by.n || !o->decision_id.text[0])
        return;
    if (!good.n && o->verdict == VERDICT_POSITIVE)
        good = o->agent;
    if (is_agent_name(good))
        plan_vote(l, p, &p->votes[0], good, 1);
    if (o->verdict == VERDICT_NEGATIVE && is_agent_name(o->agent) &&
        !str_eq_nocase(good, o->agent))
        plan_vote(l, p, &p->votes[1], o->agent, -1);
}

static enum err plan_example(struct learn *l, struct plan *p)
{
    const struct outcome *o = p->o;
    char key[ID_BYTES + SCOPE_MAX];
    struct str text = str_head(o->text, EXAMPLE_TEXT_MAX);

    p->shelf = shelf_take(l, THING_EXAMPLE, o->scope,
                          p->has_vector ? o->model_hash : STR(""), p->v.n);
    if (!p->shelf)
        return ERR_NOMEM;
    p->right = agent_name_take(l, o->right_agent);
    p->wrong = agent_name_take(l, o->agent);
    if (o->text_hash)
        p->same = group_take(l, GROUP_TEXT, (int64_t)o->text_hash, o->scope);
    p->example = thing_new(THING_EXAMPLE, example_key(o, key));
    p->example->at_ms = o->at_ms;
    p->example->from_outcome = o->seq;
    p->example->text_hash = o->text_hash;
    if (text.n)
        memcpy(p->example->text, text.p, text.n);
    p->example->n_text = text.n;
    return OK;
}

static enum err plan_all(struct learn *l, struct plan *p)
{
    const struct outcome *o = p->o;
    enum err e = learn_reserve(l);

    if (e)
        return e;
    p->is_judged = outcome_judges(o);
    p->has_vector = o->model_hash.n <= HASH_MAX && o->scope.n <= SCOPE_MAX &&
                    vector_open(&p->v, o->vector);
    if (!p->has_vector)
        p->v = (struct vec_packed){.n = 0};
    p->has_type = p->has_vector && is_scope(o->scope) &&
                  o->counts != COUNTS_NOT &&
                  type_vector_of(l, o->model_hash, &p->v, &p->of_type);
    if (p->is_judged)
        plan_agent(l, p);
    if ((p->is_judged || p->has_type) && is_scope(o->scope))
        plan_scope(l, p);
    if (p->scope && p->is_judged)
        plan_view(l, p);
    if (p->has_type)
        e = plan_type(l, p);
    if (!e && p->type && p->view)
        plan_pair(p);
    if (!e)
        plan_votes(l, p);
    if (!e && (p->has_vector || o->text_hash) && outcome_teaches(o))
        e = plan_example(l, p);
    return e;
}

/* Carrying it out. */

static void move_rate(const struct learn *l, double *rate, bool is_good,
                      double weight)
{
    *rate += l->settings.rate * weight * ((is_good ? 1 : 0) - *rate);
}

/* The scope counts what it has met only for its next verdict. */
static double count_scope(struct learn *l, struct plan *p)
{
    double weight = scope_weight(p->scope, p->view, p->o->owner);

    if (p->is_judged && p->o->owner.n)
        scope_add_owner(p->scope, p->o->owner);
    if (p->is_scope_new)
        thing_add(l, &p->scope->thing, p->o->seq);
    else
        thing_touch(l, &p->scope->thing, p->o->seq);
    p->is_scope_new = false;
    return weight;
}

/* A verdict without a scope has no weight for others. */
static void count_known(struct learn *l, struct plan *p, double weight)
{
    struct known *k = p->known;
    bool is_good = p->o->verdict == VERDICT_POSITIVE;

    if (p->is_known_new) {
        k->rate = k->public_rate = k->outside_rate = 0.5;
        k->agent = p->agent;
        k->agent->n_refs++;
        k->agent->known = k;
        thing_add(l, &k->thing, p->o->seq);
        p->is_known_new = false;
    }
    move_rate(l, &k->rate, is_good, 1);
    k->n_good += is_good;
    k->n_bad += !is_good;
    move_rate(l, &k->public_rate, is_good, weight);
    k->weight += weight;
    if (p->o->counts == COUNTS_FOR_ALL) {
        move_rate(l, &k->outside_rate, is_good, weight);
        k->outside_weight += weight;
    }
    thing_touch(l, &k->thing, p->o->seq);
}

static void join_type(struct learn *l, struct plan *p)
{
    if (p->is_type_new)
        type_begin(l, p->type, p->scope, p->type_shelf, &p->of_type.v,
                   p->o->seq);
    else
        type_join(l, p->type, &p->of_type.v, p->o->seq);
    p->is_type_new = false;
    p->type_shelf = NULL;
    type_count_words(p->type, &p->words);
}

void pair_link(struct pair *p, struct view *v, struct type *t)
{
    p->view = v;
    p->type = t;
    list_append(&v->pairs, &p->of_view);
    list_append(&t->pairs, &p->of_type);
}

static void count_view(struct learn *l, struct plan *p, double weight)
{
    struct view *v = p->view;
    bool is_good = p->o->verdict == VERDICT_POSITIVE;
    bool is_outside = p->o->counts == COUNTS_FOR_ALL;

    if (p->is_view_new) {
        view_link(l, v, p->agent, p->scope);
        thing_add(l, &v->thing, p->o->seq);
        p->is_view_new = false;
    }
    v->n++;
    v->weight += weight;
    if (is_outside)
        v->outside_weight += weight;
    if (is_good && p->o->at_ms > v->good_ms)
        v->good_ms = p->o->at_ms;
    if (is_good && is_outside && p->o->at_ms > v->outside_good_ms)
        v->outside_good_ms = p->o->at_ms;
    thing_touch(l, &v->thing, p->o->seq);
}

static void count_pair(struct learn *l, struct plan *p)
{
    struct pair *pair = p->pair;
    bool is_good = p->o->verdict == VERDICT_POSITIVE;

    if (p->is_pair_new) {
        pair->rate = pair->outside_rate = 0.5;
        pair_link(pair, p->view, p->type);
        thing_add(l, &pair->thing, p->o->seq);
        p->is_pair_new = false;
    }
    move_rate(l, &pair->rate, is_good, 1);
    pair->n++;
    if (p->o->counts == COUNTS_FOR_ALL) {
        move_rate(l, &pair->outside_rate, is_good, 1);
        pair->outside_n++;
    }
    thing_touch(l, &pair->thing, p->o->seq);
}

static void count_votes(struct learn *l, struct plan *p)
{
    uint64_t voter = outcome_voter(p->o);

    for (int i = 0; i < 2; i++) {
        struct plan_vote *v = &p->votes[i];

        if (!v->rating)
            continue;
        rating_vote(v->rating, voter, v->sign);
        if (!v->is_new) {
            thing_touch(l, &v->rating->thing, p->o->seq);
            continue;
        }
        rating_link(v->rating, v->agent, p->ratings);
        thing_add(l, &v->rating->thing, p->o->seq);
        v->agent = NULL; /* the rating has the reference now */
        v->is_new = false;
    }
    if (p->ratings)
        ratings_bound(l, p->ratings);
    p->ratings = NULL;
}

/* A user now names another agent as right: the vote for the one before is
 * withdrawn. */
static void withdraw_vote(struct learn *l, const struct outcome *o,
                          const struct agent_name *before)
{
    struct str good = o->right_agent.n                 ? o->right_agent
                      : o->verdict == VERDICT_POSITIVE ? o->agent
                                                       : STR("");
    char key[VIEW_KEY_MAX];
    struct rating *r;

    if (!before || str_eq_nocase(before->name, good) ||
        str_eq_nocase(before->name, o->agent))
        return;
    r = (struct rating *)thing_live(
        l, THING_RATING, scope_view_key(before->name, o->scope, key));
    if (!r || !rating_withdraw(r, outcome_voter(o)))
        return;
    if (r->n)
        thing_touch(l, &r->thing, o->seq);
    else
        rating_drop(l, r);
}

/* A user who says that the agent was right after all withdraws the
 * correction. */
static void withdraw_correction(struct learn *l, const struct outcome *o)
{
    char key[ID_BYTES + SCOPE_MAX];
    struct example *x;

    if (o->scope.n > SCOPE_MAX)
        return;
    x = (struct example *)thing_live(l, THING_EXAMPLE, example_key(o, key));
    if (!x)
        return;
    withdraw_vote(l, o, x->shelf->right[x->row]);
    example_drop(l, x);
}

static void keep_example(struct learn *l, struct plan *p)
{
    struct example *x = p->example;
    const struct agent_name *right = p->right;

    /* Linked before the old one is dropped, which may be the last of shelf and
     * group. */
    example_shelve(x, p->shelf, p->right, p->wrong, &p->v, p->o->seq);
    if (p->same)
        example_group(x, p->same);
    withdraw_correction(l, p->o);
    thing_add(l, &x->thing, p->o->seq);
    p->example = NULL;
    p->right = p->wrong = NULL; /* the shelf has the references now */
    p->same = NULL;
    examples_bound(l, p->shelf, right);
    p->shelf = NULL;
}

static void learn_evict_kind(struct learn *l, enum thing_kind kind, size_t max)
{
    while (l->heaps[kind].n > max)
        drop_any(l, things_oldest(l, kind));
}

static void learn_evict(struct learn *l, struct tenant *s)
{
    if (s)
        types_bound(l, s);
    learn_evict_kind(l, THING_AGENT, l->settings.max_agents);
    learn_evict_kind(l, THING_PAIR, l->settings.max_pairs);
    learn_evict_kind(l, THING_VIEW, l->settings.max_views);
    learn_evict_kind(l, THING_RATING, l->settings.max_ratings);
    tenants_bound(l);
}

static void plan_apply(struct learn *l, struct plan *p)
{
    double weight = p->scope ? count_scope(l, p) : 0;
    struct str right = p->o->right_agent.n                 ? p->o->right_agent
                       : p->o->verdict == VERDICT_POSITIVE ? p->o->agent
                                                           : STR("");
    const struct agent_name *agent;

    if (p->is_judged)
        count_known(l, p, weight);
    if (p->view)
        count_view(l, p, weight);
    if (p->type) {
        join_type(l, p);
        agent = agent_name_find(l, right);
        if (agent)
            example_touch_nearest(l, p->o, agent, &p->v);
    }
    if (p->pair)
        count_pair(l, p);
    count_votes(l, p);
    if (p->example)
        keep_example(l, p);
    else if (p->o->kind == OUTCOME_CORRECTION || p->o->kind == OUTCOME_FEEDBACK)
        withdraw_correction(l, p->o);
    learn_evict(l, p->scope);
}

static void forget_agent(struct learn *l, struct str name)
{
    struct agent_name *w = agent_name_find(l, name);
    struct list_node *n;

    if (!w)
        return;
    w->n_refs++;
    examples_forget(l, w);
    while ((n = list_first(&w->ratings)))
        rating_drop(l, LIST_OF(n, struct rating, of_who));
    if (w->known)
        known_drop(l, w->known);
    agent_name_release(l, w);
}

static void forget_all(struct learn *l)
{
    struct thing *t;

    for (enum thing_kind kind = N_KINDS - 1; kind >= THING_AGENT; kind--)
        while ((t = things_oldest(l, kind)))
            drop_any(l, t);
    rows_clear(l);
}

enum err learn_apply(struct learn *l, const struct outcome *o)
{
    struct plan p = {.o = o};
    enum err e = OK;

    if (o->seq <= l->version)
        return OK;
    if (o->kind == OUTCOME_VOID) {
        learn_skip(l, o->seq);
        return OK;
    }
    if (o->kind == OUTCOME_FORGET && !o->agent.n) {
        forget_all(l);
    } else if (o->kind == OUTCOME_FORGET) {
        forget_agent(l, o->agent);
    } else {
        e = plan_all(l, &p);
        if (!e)
            plan_apply(l, &p);
        plan_fini(l, &p);
    }
    if (e)
        return e;
    l->version = l->counted = o->seq;
    l->applied_total++;
    l->changes++;
    return OK;
}

void learn_skip(struct learn *l, int64_t seq)
{
    if (seq > l->version)
        l->version = seq;
}
