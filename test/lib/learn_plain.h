#ifndef TEST_LIB_LEARN_PLAIN_H
#define TEST_LIB_LEARN_PLAIN_H

/* What learn/ does, said plainly: everything in lists, all of it looked through
 * each time. Include after learn_stage.h. */

enum { N_AGENTS = 7, N_PLAIN_SCOPES = 3, MOST = 64, DIMS = STAGE_DIMS };

static const char *const agents[N_AGENTS] = {"ann",  "Bob", "cy", "d.e-f_g",
                                             "EVE9", "fay", "gus"};
static const char *const scopes[N_PLAIN_SCOPES] = {"org:a", "org:b",
                                                   "user:ann"};
static const char *const models[2] = {"model", "other"};

struct plain_agent {
    bool is_there;
    double rate;
    int64_t heard;
    double public_rate, outside_rate; /* by weight */
    double weight, outside_weight;
};

/* What the type's scope has seen of an agent with it. */
struct plain_pair {
    int agent;
    int64_t type, n;
    double rate;
    int64_t outside_n;
    double outside_rate;
};

/* What one scope has seen of an agent. */
struct plain_view {
    int agent, scope;
    int64_t n, good_ms, outside_good_ms;
    double weight, outside_weight;
};

struct plain_vote {
    int agent, scope, sign;
    char voter[80];
};

struct plain_type {
    int64_t id, n, heard;
    int model, scope;
    float mean[DIMS];
};

struct plain_example {
    char key[64];
    int scope, model, right, wrong; /* model 2: no vector */
    int64_t heard, said;
    uint64_t text_hash;
    uint8_t packed[STAGE_PACKED];
};

struct plain {
    struct learn_settings s;
    struct plain_agent agents[N_AGENTS];
    struct plain_pair pairs[N_AGENTS * MOST];
    struct plain_type types[MOST];
    struct plain_example examples[MOST];
    struct plain_view views[N_PLAIN_SCOPES * N_AGENTS];
    struct plain_vote votes[N_PLAIN_SCOPES * N_AGENTS * LEARN_RATING_VOTES];
    struct str owners[N_PLAIN_SCOPES][LEARN_SCOPE_OWNERS];
    size_t n_owners[N_PLAIN_SCOPES];
    size_t n_pairs, n_types, n_examples, n_views, n_votes;
};

static inline struct vec_packed open_plain(const uint8_t *packed)
{
    struct vec_packed v;

    CHECK(vec_packed_open(&v, packed, STAGE_PACKED, DIMS));
    return v;
}

static inline int agent_of(struct str name)
{
    for (int i = 0; i < N_AGENTS; i++)
        if (str_eq_nocase(name, str_of(agents[i])))
            return i;
    return -1;
}

static inline int among(const char *const *names, int n, struct str name)
{
    for (int i = 0; i < n; i++)
        if (str_eq(name, str_of(names[i])))
            return i;
    T_FAIL("%.*s", STR_ARG(name));
}

static inline int plain_near(const struct plain *p, int scope, int model,
                             const struct vec_packed *v)
{
    double best = p->s.type_likeness;
    int nearest = -1;

    for (size_t i = 0; i < p->n_types; i++) {
        const struct plain_type *t = &p->types[i];
        uint8_t packed[STAGE_PACKED];
        struct vec_packed mean;
        double likeness;

        if (t->model != model || t->scope != scope)
            continue;
        CHECK(vec_pack(t->mean, DIMS, packed));
        mean = open_plain(packed);
        likeness = vec_packed_guess(v, &mean);
        if (likeness > best || (likeness == best && nearest < 0)) {
            best = likeness;
            nearest = (int)i;
        }
    }
    return nearest;
}

static inline const struct plain_type *plain_type(const struct plain *p,
                                                  int64_t id)
{
    for (size_t i = 0; i < p->n_types; i++)
        if (p->types[i].id == id)
            return &p->types[i];
    return NULL;
}

/* Those of the type, and those whose view is not there. */
static inline void plain_drop_pairs(struct plain *p, int agent, int64_t type)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_pairs; i++)
        if (p->pairs[i].agent != agent && p->pairs[i].type != type)
            p->pairs[n++] = p->pairs[i];
    p->n_pairs = n;
    n = 0;
    for (size_t i = 0; i < p->n_views; i++)
        if (p->views[i].agent != agent)
            p->views[n++] = p->views[i];
    p->n_views = n;
}

static inline void plain_bound_types(struct plain *p, int scope)
{
    for (;;) {
        size_t least = MOST, n = 0;

        for (size_t i = 0; i < p->n_types; i++) {
            bool few = p->types[i].n < 3, is_few;

            if (p->types[i].scope != scope)
                continue;
            n++;
            is_few = least < MOST && p->types[least].n < 3;
            if (least == MOST ||
                (few != is_few ? few
                               : p->types[i].heard < p->types[least].heard))
                least = i;
        }
        if (n <= p->s.max_types)
            return;
        plain_drop_pairs(p, -1, p->types[least].id);
        memmove(&p->types[least], &p->types[least + 1],
                (--p->n_types - least) * sizeof(p->types[0]));
    }
}

static inline int64_t plain_id(const struct plain *p, const struct outcome *o)
{
    static const uint64_t seed[2] = {0, 0};
    uint64_t hash = hash_bytes(str_of(o->decision_id.text), seed);
    int64_t id = (int64_t)(hash >> 24 | UINT64_C(1) << 39);

    while (plain_type(p, id))
        id++;
    return id;
}

static inline int64_t plain_join(struct plain *p, const struct outcome *o,
                                 int model, const struct vec_packed *v)
{
    int scope = among(scopes, N_PLAIN_SCOPES, o->scope);
    int at = plain_near(p, scope, model, v);
    struct plain_type *t;

    if (at < 0) {
        struct plain_type fresh = {
            .id = plain_id(p, o), .model = model, .scope = scope};

        t = &p->types[p->n_types++];
        *t = fresh;
    } else {
        t = &p->types[at];
    }
    for (size_t i = 0; i < DIMS; i++) {
        double x = (double)v->scale * (256 * v->high[i] + v->low[i]);
        double mean = (double)t->mean[i];

        t->mean[i] =
            (float)(at < 0 ? x : mean + 1 / (double)(t->n + 1) * (x - mean));
    }
    t->n++;
    t->heard = o->seq;
    return t->id;
}

static inline struct plain_view *plain_view(struct plain *p, int agent,
                                            int scope)
{
    for (size_t i = 0; i < p->n_views; i++)
        if (p->views[i].agent == agent && p->views[i].scope == scope)
            return &p->views[i];
    return NULL;
}

/* Half of the one before, and less where few owners were met. */
static inline double plain_weight(struct plain *p, const struct outcome *o,
                                  int scope, int64_t n_before)
{
    double weight = n_before < 30 ? ldexp(1, -(int)n_before) : 0;
    size_t others = 0, *n = &p->n_owners[scope];
    bool is_met = false;

    for (size_t i = 0; i < *n; i++) {
        others += !str_eq(p->owners[scope][i], o->owner);
        is_met |= str_eq(p->owners[scope][i], o->owner);
    }
    if (o->owner.n && !is_met && *n < LEARN_SCOPE_OWNERS)
        p->owners[scope][(*n)++] = o->owner;
    return o->owner.n ? weight * (double)others / (double)(others + 1) : weight;
}

static inline void plain_move(const struct plain *p, double *rate,
                              const struct outcome *o, double weight)
{
    *rate += p->s.rate * weight * ((o->verdict == VERDICT_POSITIVE) - *rate);
}

static inline void plain_judge_pair(struct plain *p, const struct outcome *o,
                                    int agent, int64_t type)
{
    struct plain_pair *pair = NULL;

    for (size_t i = 0; i < p->n_pairs; i++)
        if (p->pairs[i].agent == agent && p->pairs[i].type == type)
            pair = &p->pairs[i];
    if (!pair) {
        pair = &p->pairs[p->n_pairs++];
        *pair = (struct plain_pair){
            .agent = agent, .type = type, .rate = 0.5, .outside_rate = 0.5};
    }
    plain_move(p, &pair->rate, o, 1);
    pair->n++;
    if (o->counts == COUNTS_FOR_ALL) {
        plain_move(p, &pair->outside_rate, o, 1);
        pair->outside_n++;
    }
}

static inline void plain_judge(struct plain *p, const struct outcome *o,
                               int64_t type)
{
    int agent = agent_of(o->agent);
    int scope = among(scopes, N_PLAIN_SCOPES, o->scope);
    struct plain_agent *a = &p->agents[agent];
    struct plain_view *view = plain_view(p, agent, scope);
    bool is_good = o->verdict == VERDICT_POSITIVE;
    bool is_outside = o->counts == COUNTS_FOR_ALL;
    double weight;

    if (!a->is_there)
        *a = (struct plain_agent){.is_there = true,
                                  .rate = 0.5,
                                  .public_rate = 0.5,
                                  .outside_rate = 0.5};
    if (!view) {
        view = &p->views[p->n_views++];
        *view = (struct plain_view){.agent = agent, .scope = scope};
    }
    weight = plain_weight(p, o, scope, view->n);
    plain_move(p, &a->rate, o, 1);
    plain_move(p, &a->public_rate, o, weight);
    a->weight += weight;
    a->heard = o->seq;
    view->n++;
    view->weight += weight;
    if (is_good && o->at_ms > view->good_ms)
        view->good_ms = o->at_ms;
    if (is_outside) {
        plain_move(p, &a->outside_rate, o, weight);
        a->outside_weight += weight;
        view->outside_weight += weight;
        if (is_good && o->at_ms > view->outside_good_ms)
            view->outside_good_ms = o->at_ms;
    }
    if (type)
        plain_judge_pair(p, o, agent, type);
}

/* Votes. */

static inline void plain_vote(struct plain *p, int agent, int scope,
                              const char *voter, int sign)
{
    size_t n = 0, first = 0;

    for (size_t i = 0; i < p->n_votes; i++) /* take back the one before */
        if (p->votes[i].agent != agent || p->votes[i].scope != scope ||
            strcmp(p->votes[i].voter, voter) != 0)
            p->votes[n++] = p->votes[i];
    p->n_votes = n;
    if (!sign)
        return;
    n = 0;
    for (size_t i = p->n_votes; i-- > 0;)
        if (p->votes[i].agent == agent && p->votes[i].scope == scope) {
            n++;
            first = i;
        }
    if (n == LEARN_RATING_VOTES)
        memmove(&p->votes[first], &p->votes[first + 1],
                (--p->n_votes - first) * sizeof(p->votes[0]));
    p->votes[p->n_votes] =
        (struct plain_vote){.agent = agent, .scope = scope, .sign = sign};
    snprintf(p->votes[p->n_votes++].voter, 80, "%s", voter);
}

static inline bool plain_is_rated(const struct plain *p, int scope, int agent)
{
    int net = 0;

    for (size_t i = 0; i < p->n_votes; i++)
        if (p->votes[i].agent == agent && p->votes[i].scope == scope)
            net += p->votes[i].sign;
    return net > 0;
}

static inline void plain_drop_example(struct plain *p, size_t i)
{
    memmove(&p->examples[i], &p->examples[i + 1],
            (--p->n_examples - i) * sizeof(p->examples[0]));
}

static inline void plain_key(const struct outcome *o, char out[64])
{
    snprintf(out, 64, "%s %.*s", o->decision_id.text, STR_ARG(o->scope));
}

static inline void plain_take_back(struct plain *p, const struct outcome *o)
{
    char key[64];

    plain_key(o, key);
    for (size_t i = 0; i < p->n_examples; i++) {
        const struct plain_example *x = &p->examples[i];
        int good = agent_of(o->right_agent.n                 ? o->right_agent
                            : o->verdict == VERDICT_POSITIVE ? o->agent
                                                             : STR(""));
        char voter[80];

        if (strcmp(x->key, key) != 0)
            continue;
        snprintf(voter, sizeof(voter), "%s %.*s", o->decision_id.text,
                 STR_ARG(o->by));
        if (x->right >= 0 && x->right != good && x->right != agent_of(o->agent))
            plain_vote(p, x->right, x->scope, voter, 0);
        plain_drop_example(p, i--);
    }
}

/* A person's word on who was right, and who was not. */
static inline void plain_votes(struct plain *p, const struct outcome *o)
{
    int agent = agent_of(o->agent), right = agent_of(o->right_agent);
    int scope = among(scopes, N_PLAIN_SCOPES, o->scope);
    char voter[80];

    if (o->kind == OUTCOME_VERDICT || !o->by.n || !(o->text.n || o->vector.n))
        return;
    snprintf(voter, sizeof(voter), "%s %.*s", o->decision_id.text,
             STR_ARG(o->by));
    if (right < 0 && o->verdict == VERDICT_POSITIVE)
        right = agent;
    if (right >= 0)
        plain_vote(p, right, scope, voter, 1);
    if (o->verdict == VERDICT_NEGATIVE && agent != right)
        plain_vote(p, agent, scope, voter, -1);
}

/* Whose a text is by its latest correction; -1: not said. */
static inline int plain_taught(const struct plain *p, int scope,
                               uint64_t text_hash)
{
    const struct plain_example *latest = NULL;

    for (size_t i = 0; i < p->n_examples; i++) {
        const struct plain_example *x = &p->examples[i];

        if (text_hash && x->text_hash == text_hash && x->scope == scope &&
            (!latest || x->said > latest->said))
            latest = x;
    }
    return latest ? latest->right : -1;
}

static inline void plain_thank(struct plain *p, const struct outcome *o,
                               int model, const struct vec_packed *v)
{
    int who = agent_of(o->right_agent.n ? o->right_agent : o->agent);
    int scope = among(scopes, N_PLAIN_SCOPES, o->scope);
    struct plain_example *nearest = NULL;
    double best = 0.5;

    if (!o->right_agent.n && o->verdict != VERDICT_POSITIVE)
        return;
    for (size_t i = 0; i < p->n_examples; i++) {
        struct plain_example *x = &p->examples[i];
        struct vec_packed u;
        double likeness;

        if (x->right != who || x->scope != scope || x->model != model)
            continue;
        u = open_plain(x->packed);
        likeness = vec_packed_dot(&u, v);
        if (likeness < best)
            continue;
        if (nearest && likeness == best && strcmp(x->key, nearest->key) > 0)
            continue;
        best = likeness;
        nearest = x;
    }
    if (nearest)
        nearest->heard = o->seq;
}

/* What was thanked and what was new with it are of one age. */
static inline bool is_before(const struct plain_example *a,
                             const struct plain_example *b)
{
    return a->heard != b->heard ? a->heard < b->heard
                                : strcmp(a->key, b->key) < 0;
}

static inline size_t plain_least(const struct plain *p, int scope, int model,
                                 int right, size_t *n)
{
    size_t least = MOST;

    *n = 0;
    for (size_t i = 0; i < p->n_examples; i++) {
        const struct plain_example *x = &p->examples[i];

        if (x->scope != scope || x->model != model ||
            (right != -2 && x->right != right))
            continue;
        ++*n;
        if (least == MOST || is_before(x, &p->examples[least]))
            least = i;
    }
    return least;
}

static inline void plain_bound_examples(struct plain *p, int scope, int model,
                                        int right)
{
    size_t n, least;

    while ((least = plain_least(p, scope, model, right, &n)) < MOST &&
           n > p->s.examples_per_agent)
        plain_drop_example(p, least);
    while (p->n_examples > p->s.max_examples) {
        size_t most = 0, which = MOST;

        /* Shorter scopes, then shorter models, then their letters: the order
         * of the keys of shelves. That without vectors has no model. */
        static const int order[][2] = {{0, 2}, {1, 2}, {0, 0}, {0, 1}, {1, 0},
                                       {1, 1}, {2, 2}, {2, 0}, {2, 1}};

        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
            least = plain_least(p, order[i][0], order[i][1], -2, &n);
            if (n > most) {
                most = n;
                which = least;
            }
        }
        plain_drop_example(p, which);
    }
}

static inline void plain_keep(struct plain *p, const struct outcome *o,
                              int model)
{
    struct plain_example *x;

    plain_take_back(p, o);
    x = &p->examples[p->n_examples++];
    *x = (struct plain_example){
        .scope = among(scopes, N_PLAIN_SCOPES, o->scope),
        .model = model,
        .right = agent_of(o->right_agent),
        .wrong = agent_of(o->agent),
        .heard = o->seq,
        .said = o->seq,
        .text_hash = o->text_hash,
    };
    plain_key(o, x->key);
    if (o->vector.n)
        memcpy(x->packed, o->vector.p, STAGE_PACKED);
    plain_bound_examples(p, x->scope, x->model, x->right);
}

static inline bool plain_teaches(const struct outcome *o)
{
    if (o->kind != OUTCOME_CORRECTION && o->kind != OUTCOME_FEEDBACK)
        return false;
    if (o->right_agent.n)
        return agent_of(o->agent) != agent_of(o->right_agent);
    return o->verdict == VERDICT_NEGATIVE;
}

static inline void plain_bound_agents(struct plain *p)
{
    for (;;) {
        int oldest = -1;
        size_t n = 0;

        for (int i = 0; i < N_AGENTS; i++) {
            n += p->agents[i].is_there;
            if (p->agents[i].is_there &&
                (oldest < 0 || p->agents[i].heard < p->agents[oldest].heard))
                oldest = i;
        }
        if (n <= p->s.max_agents)
            return;
        p->agents[oldest].is_there = false;
        plain_drop_pairs(p, oldest, -1);
    }
}

static inline void plain_forget(struct plain *p, struct str name)
{
    int agent = agent_of(name);
    struct learn_settings s = p->s;
    size_t n = 0;

    if (!name.n) {
        memset(p, 0, sizeof(*p));
        p->s = s;
        return;
    }
    p->agents[agent].is_there = false;
    plain_drop_pairs(p, agent, -1);
    for (size_t i = 0; i < p->n_votes; i++)
        if (p->votes[i].agent != agent)
            p->votes[n++] = p->votes[i];
    p->n_votes = n;
    for (size_t i = 0; i < p->n_examples; i++) {
        struct plain_example *x = &p->examples[i];

        if (x->wrong == agent)
            x->wrong = -1;
        if (x->right == agent || (x->right < 0 && x->wrong < 0))
            plain_drop_example(p, i--);
    }
}

static inline void plain_apply(struct plain *p, const struct outcome *o)
{
    int model = 0;
    int64_t type = 0;
    struct vec_packed v;

    if (o->kind == OUTCOME_FORGET) {
        plain_forget(p, o->agent);
        return;
    }
    if (o->vector.n) {
        model = among(models, 2, o->model_hash);
        v = open_plain((const uint8_t *)o->vector.p);
    }
    if (o->vector.n && o->counts != COUNTS_NOT) {
        type = plain_join(p, o, model, &v);
        plain_thank(p, o, model, &v);
    }
    if ((o->layer == LAYER_SEMANTIC || o->layer == LAYER_INTENT) &&
        o->counts != COUNTS_NOT &&
        (o->verdict == VERDICT_POSITIVE || o->verdict == VERDICT_NEGATIVE))
        plain_judge(p, o, type);
    plain_votes(p, o);
    if ((o->vector.n || o->text_hash) && plain_teaches(o))
        plain_keep(p, o, o->vector.n ? model : 2);
    else if (o->kind != OUTCOME_VERDICT)
        plain_take_back(p, o);
    plain_bound_types(p, among(scopes, N_PLAIN_SCOPES, o->scope));
    plain_bound_agents(p);
}

static inline double plain_learned(const struct plain *p, int scope, int agent,
                                   const struct vec_packed *v)
{
    double sum = 0;

    for (size_t i = 0; i < p->n_examples; i++) {
        const struct plain_example *x = &p->examples[i];
        struct vec_packed u;
        double c;

        if (x->scope != scope || x->model != 0)
            continue;
        u = open_plain(x->packed);
        c = vec_packed_dot(&u, v);
        if (c <= 0)
            continue;
        sum += c * c * c * ((x->right == agent) - (x->wrong == agent));
    }
    return sum;
}

static inline const struct plain_pair *plain_pair(const struct plain *p,
                                                  int agent, int type)
{
    for (size_t i = 0; type >= 0 && i < p->n_pairs; i++)
        if (p->pairs[i].agent == agent && p->pairs[i].type == p->types[type].id)
            return &p->pairs[i];
    return NULL;
}

static inline double plain_performance(struct plain *p, int agent, int type,
                                       int scope, bool is_outside)
{
    const struct plain_pair *pair = plain_pair(p, agent, type), none = {0};
    const struct plain_view *view = plain_view(p, agent, scope), unseen = {0};
    const struct plain_agent *a = &p->agents[agent];
    double lean = p->s.agent_lean, n, sum, others;
    size_t n_scopes = 0;

    pair = pair ? pair : &none;
    view = view ? view : &unseen;
    for (int i = 0; i < N_PLAIN_SCOPES; i++)
        n_scopes += plain_view(p, agent, i) != NULL;
    n = (double)(is_outside ? pair->outside_n : pair->n);
    sum = n * (is_outside ? pair->outside_rate : pair->rate);
    others = is_outside ? a->outside_weight - view->outside_weight
                        : a->weight - view->weight;
    others = others > lean / 2 ? lean / 2 : others;
    if (n_scopes > 1 && others > 1e-9) {
        n += others;
        sum += others * (is_outside ? a->outside_rate : a->public_rate);
    }
    return n > 0 ? (sum + lean * 0.5) / (n + lean) : 0.5;
}

static inline double plain_recency(struct plain *p, int agent, int type,
                                   int scope, bool is_outside)
{
    const struct plain_pair *pair = plain_pair(p, agent, type);
    const struct plain_view *view = plain_view(p, agent, scope);
    double age, n;
    int64_t good_ms;

    if (!pair || !view)
        return 0;
    good_ms = is_outside ? view->outside_good_ms : view->good_ms;
    n = (double)(is_outside ? pair->outside_n : pair->n);
    age = good_ms ? (double)(5000 - good_ms) / 1000 : 1;
    return (age < 0 ? 1 : age > 1 ? 0 : 1 - age) * n / (n + p->s.agent_lean);
}

#endif
