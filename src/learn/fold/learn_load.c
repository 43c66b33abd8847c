/* Reads rows at start. They are our own, but the disk may have damaged them:
 * every length, number and vector is checked before it counts, and references
 * between rows must be valid.
 *
 * Before ROW_FORM all scopes shared the types of query. Such rows tell one
 * scope about the queries of others, so they are ignored: the outcomes that are
 * kept are folded again. Examples belonged to one scope then too, and those
 * whose outcomes retention has removed would be lost: they are read. */
#include "learn/fold/internal.h"

#include <math.h>

static const int64_t COUNT_MAX = INT64_C(1) << 53;

/* An invalid value sets is_bad and reads as zero or empty. */

struct reader {
    struct str rest;
    uint8_t form;
    bool is_bad;
};

static void load_read_bytes(struct reader *r, void *to, size_t n)
{
    if (r->rest.n < n) {
        r->is_bad = true;
        memset(to, 0, n);
        return;
    }
    if (n)
        memcpy(to, r->rest.p, n);
    r->rest = str_sub(r->rest, n, r->rest.n);
}

static int64_t load_read_number(struct reader *r)
{
    int64_t v;

    load_read_bytes(r, &v, sizeof(v));
    r->is_bad |= v < 0;
    return v;
}

/* A number that will be incremented. */
static int64_t load_read_count(struct reader *r)
{
    int64_t v = load_read_number(r);

    if (v >= 0 && v <= COUNT_MAX)
        return v;
    r->is_bad = true;
    return 0;
}

static double load_read_rate(struct reader *r)
{
    double v;

    load_read_bytes(r, &v, sizeof(v));
    r->is_bad |= !(v >= 0 && v <= 1);
    return v;
}

/* A sum of weights of at most n verdicts. */
static double load_read_weight(struct reader *r, int64_t n)
{
    double v;

    load_read_bytes(r, &v, sizeof(v));
    r->is_bad |= !(v >= 0 && v <= (double)n);
    return v;
}

static struct str load_read_short(struct reader *r, size_t max)
{
    uint16_t n;
    struct str s;

    load_read_bytes(r, &n, sizeof(n));
    if (n > r->rest.n || n > max)
        r->is_bad = true;
    if (r->is_bad)
        return (struct str){NULL, 0};
    s = str_sub(r->rest, 0, n);
    r->rest = str_sub(r->rest, n, r->rest.n);
    return s;
}

static bool load_is_done(const struct reader *r)
{
    return !r->is_bad && r->rest.n == 0;
}

/* Add to the state, with a row that is in the table. */
static void load_thing_add(struct learn *l, struct thing *t, int64_t touched)
{
    thing_add(l, t, touched);
    list_remove(&t->row);
    t->state = ROW_CLEAN;
    t->has_row = true;
}

static bool is_lower_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (str_lower(name.p[i]) != name.p[i])
            return false;
    return name.n > 0 && name.n <= AGENT_NAME_MAX;
}

static enum err load_known(struct learn *l, struct str key, struct reader *r,
                           int64_t touched)
{
    struct known k = {.rate = load_read_rate(r)}, *to;

    k.n_good = load_read_count(r);
    k.n_bad = load_read_count(r);
    k.public_rate = load_read_rate(r);
    k.weight = load_read_weight(r, k.n_good + k.n_bad);
    k.outside_rate = load_read_rate(r);
    k.outside_weight = load_read_weight(r, k.n_good + k.n_bad);
    if (!load_is_done(r) || !is_lower_name(key))
        return ERR_SYNTAX;
    to = thing_new(THING_AGENT, key);
    to->agent = agent_name_take(l, key);
    to->rate = k.rate;
    to->n_good = k.n_good;
    to->n_bad = k.n_bad;
    to->public_rate = k.public_rate;
    to->weight = k.weight;
    to->outside_rate = k.outside_rate;
    to->outside_weight = k.outside_weight;
    to->agent->known = to;
    load_thing_add(l, &to->thing, touched);
    return OK;
}

static void load_read_words(struct reader *r, struct type *t)
{
    while (!r->is_bad && r->rest.n) {
        struct telling *w = &t->words[t->n_words];
        struct str stem, word;

        if (t->n_words == TELLING_WORDS) {
            r->is_bad = true;
            return;
        }
        load_read_bytes(r, &w->count, sizeof(w->count));
        stem = load_read_short(r, TELLING_BYTES);
        word = load_read_short(r, TELLING_BYTES);
        if (!stem.n || !word.n)
            r->is_bad = true;
        if (r->is_bad)
            return;
        memcpy(w->stem, stem.p, w->n_stem = (uint8_t)stem.n);
        memcpy(w->word, word.p, w->n_word = (uint8_t)word.n);
        t->n_words++;
    }
}

static bool words_are_sorted(const struct type *t)
{
    for (size_t i = 1; i < t->n_words; i++) {
        const struct telling *a = &t->words[i - 1], *b = &t->words[i];

        if (str_cmp((struct str){a->stem, a->n_stem},
                    (struct str){b->stem, b->n_stem}) >= 0)
            return false;
    }
    return true;
}

static enum err load_type_shelve(struct learn *l, struct type *t,
                                 struct tenant *scope, struct str hash,
                                 uint32_t dims, struct reader *r,
                                 int64_t touched)
{
    struct shelf *s;

    load_read_bytes(r, t->mean, dims * sizeof(*t->mean));
    load_read_words(r, t);
    for (size_t i = 0; i < dims; i++)
        r->is_bad |= !(fabsf(t->mean[i]) <= 1.01F);
    if (!load_is_done(r) || !words_are_sorted(t))
        return ERR_SYNTAX;
    s = shelf_take(l, THING_TYPE, tenant_name(scope), hash, dims);
    if (!s)
        return ERR_NOMEM;
    if (!type_shelve(l, t, scope, s, touched)) {
        shelf_tidy(l, s);
        return ERR_SYNTAX;
    }
    list_remove(&t->thing.row);
    t->thing.state = ROW_CLEAN;
    t->thing.has_row = true;
    return OK;
}

static bool load_read_id(struct str key, int64_t *id)
{
    char again[24];

    return !str_to_i64(key, id) && *id > 0 && str_eq(type_key(*id, again), key);
}

static struct tenant *load_read_scope(struct learn *l, struct reader *r)
{
    struct str name = load_read_short(r, SCOPE_MAX);

    return name.n ? (struct tenant *)thing_live(l, THING_SCOPE, name) : NULL;
}

static enum err load_type(struct learn *l, struct str key, struct reader *r,
                          int64_t touched)
{
    int64_t n = load_read_count(r), id;
    struct tenant *scope = load_read_scope(l, r);
    struct str hash = load_read_short(r, HASH_MAX);
    uint32_t dims;
    struct type *t;
    enum err e;

    load_read_bytes(r, &dims, sizeof(dims));
    if (r->is_bad || !scope || dims < 1 || dims > DIMS_MAX || n < 1 ||
        r->rest.n < dims * sizeof(float) || !load_read_id(key, &id))
        return ERR_SYNTAX;
    t = type_new(id, dims);
    t->n = n;
    e = load_type_shelve(l, t, scope, hash, dims, r, touched);
    if (e)
        thing_free(&t->thing);
    return e;
}

static enum err load_pair(struct learn *l, struct str key, struct reader *r,
                          int64_t touched)
{
    struct str name = key, number = str_cut(&name, '/');
    struct pair was = {.rate = load_read_rate(r)}, *p;
    int64_t id;
    struct type *t = load_read_id(number, &id) ? type_of(l, id) : NULL;
    char view[VIEW_KEY_MAX];
    struct view *v =
        t && is_lower_name(name)
            ? (struct view *)thing_live(
                  l, THING_VIEW,
                  scope_view_key(name, tenant_name(t->scope), view))
            : NULL;

    was.n = load_read_count(r);
    was.outside_rate = load_read_rate(r);
    was.outside_n = load_read_count(r);
    if (!load_is_done(r) || !v || was.n < 1 || was.n > v->n ||
        was.outside_n > was.n)
        return ERR_SYNTAX;
    p = thing_new(THING_PAIR, key);
    p->rate = was.rate;
    p->n = was.n;
    p->outside_rate = was.outside_rate;
    p->outside_n = was.outside_n;
    pair_link(p, v, t);
    load_thing_add(l, &p->thing, touched);
    return OK;
}

static enum err load_view(struct learn *l, struct str key, struct reader *r,
                          int64_t touched)
{
    struct str name = load_read_short(r, AGENT_NAME_MAX);
    struct tenant *scope = load_read_scope(l, r);
    struct view was = {.n = load_read_count(r)}, *v;
    struct agent_name *w =
        is_lower_name(name) ? agent_name_find(l, name) : NULL;
    char again[VIEW_KEY_MAX];

    was.weight = load_read_weight(r, was.n);
    was.outside_weight = load_read_weight(r, was.n);
    was.good_ms = load_read_number(r);
    was.outside_good_ms = load_read_number(r);
    if (!load_is_done(r) || !scope || !w || !w->known || was.n < 1 ||
        was.n > w->known->n_good + w->known->n_bad ||
        was.outside_good_ms > was.good_ms ||
        !str_eq(key, scope_view_key(name, tenant_name(scope), again)))
        return ERR_SYNTAX;
    v = thing_new(THING_VIEW, key);
    v->n = was.n;
    v->weight = was.weight;
    v->outside_weight = was.outside_weight;
    v->good_ms = was.good_ms;
    v->outside_good_ms = was.outside_good_ms;
    view_link(l, v, w, scope);
    load_thing_add(l, &v->thing, touched);
    return OK;
}

static bool load_read_votes(struct reader *r, struct rating *out)
{
    while (!r->is_bad && r->rest.n) {
        struct vote v = {.sign = -1};
        uint8_t is_good;

        load_read_bytes(r, &v.voter, sizeof(v.voter));
        load_read_bytes(r, &is_good, sizeof(is_good));
        if (is_good)
            v.sign = 1;
        if (is_good > 1 || out->n == LEARN_RATING_VOTES)
            return false;
        for (size_t i = 0; i < out->n; i++)
            r->is_bad |= out->votes[i].voter == v.voter;
        out->votes[out->n++] = v;
    }
    return !r->is_bad && out->n > 0;
}

static enum err load_rating(struct learn *l, struct str key, struct reader *r,
                            int64_t touched)
{
    struct str name = load_read_short(r, AGENT_NAME_MAX);
    struct str scope = load_read_short(r, SCOPE_MAX);
    struct rating was = {.n = 0}, *to;
    char again[VIEW_KEY_MAX];
    struct group *g;

    if (!is_lower_name(name) || !scope.n || !load_read_votes(r, &was) ||
        !str_eq(key, scope_view_key(name, scope, again)))
        return ERR_SYNTAX;
    g = group_take(l, GROUP_RATINGS, 0, scope);
    if (g->n == LEARN_RATINGS_PER_SCOPE)
        return ERR_SYNTAX;
    to = thing_new(THING_RATING, key);
    memcpy(to->votes, was.votes, sizeof(was.votes));
    to->n = was.n;
    rating_link(to, agent_name_take(l, name), g);
    load_thing_add(l, &to->thing, touched);
    return OK;
}

static enum err load_scope(struct learn *l, struct str key, struct reader *r,
                           int64_t touched)
{
    size_t n = r->rest.n / sizeof(uint64_t);
    struct tenant *s;

    if (!is_scope(key) || n > LEARN_SCOPE_OWNERS ||
        r->rest.n != n * sizeof(uint64_t))
        return ERR_SYNTAX;
    s = tenant_new(key);
    load_read_bytes(r, s->owners, n * sizeof(uint64_t));
    s->n = n;
    load_thing_add(l, &s->thing, touched);
    return OK;
}

struct example_row {
    int64_t at_ms, from_outcome;
    uint64_t text_hash;
    struct str scope, hash, right, wrong, text;
    struct vec_packed v;
};

static bool load_read_example(struct reader *r, struct example_row *x)
{
    load_read_bytes(r, &x->at_ms, sizeof(x->at_ms));
    x->from_outcome = r->form == ROW_FORM_OLD ? 0 : load_read_number(r);
    x->text_hash = 0;
    if (r->form != ROW_FORM_OLD)
        load_read_bytes(r, &x->text_hash, sizeof(x->text_hash));
    x->scope = load_read_short(r, SCOPE_MAX);
    x->hash = load_read_short(r, HASH_MAX);
    x->right = load_read_short(r, AGENT_NAME_MAX);
    x->wrong = load_read_short(r, AGENT_NAME_MAX);
    x->text = load_read_short(r, EXAMPLE_TEXT_MAX);
    x->v = (struct vec_packed){.n = 0};
    if (r->is_bad || !x->scope.n || !(x->right.n || x->wrong.n) ||
        (x->right.n && !is_lower_name(x->right)) ||
        (x->wrong.n && !is_lower_name(x->wrong)))
        return false;
    if (vector_open(&x->v, r->rest))
        return true;
    /* Kept for the hash of its text: a vector of only scale and slack, both
     * 0. */
    x->v = (struct vec_packed){.n = 0};
    return x->text_hash && !x->hash.n && r->rest.n == 2 * sizeof(float);
}

/* Its outcome is not kept, so it will not be applied again. */
static bool is_outcome_removed(const struct learn *l, int64_t from_outcome)
{
    return !l->kept_from || from_outcome < l->kept_from;
}

static enum err load_example(struct learn *l, struct str key, struct reader *r,
                             int64_t touched)
{
    struct example_row row;
    struct example *x;
    struct shelf *s;

    if (!load_read_example(r, &row) || key.n > ID_BYTES + SCOPE_MAX)
        return ERR_SYNTAX;
    if (l->is_shared &&
        !is_outcome_removed(l, row.from_outcome ? row.from_outcome : touched))
        return OK;
    if (l->is_shared && l->kept_from && touched >= l->kept_from)
        touched = l->kept_from - 1; /* its outcome will touch it again */
    s = shelf_take(l, THING_EXAMPLE, row.scope, row.hash, row.v.n);
    if (!s)
        return ERR_NOMEM;
    x = thing_new(THING_EXAMPLE, key);
    x->at_ms = row.at_ms;
    x->from_outcome = row.from_outcome;
    x->text_hash = row.text_hash;
    if (row.text.n)
        memcpy(x->text, row.text.p, row.text.n);
    x->n_text = row.text.n;
    example_shelve(x, s, agent_name_take(l, row.right),
                   agent_name_take(l, row.wrong), &row.v, touched);
    if (row.text_hash)
        example_group(
            x, group_take(l, GROUP_TEXT, (int64_t)row.text_hash, row.scope));
    load_thing_add(l, &x->thing, touched);
    return OK;
}

void learn_kept_from(struct learn *l, int64_t first)
{
    l->kept_from = first;
}

bool learn_was_shared(const struct learn *l)
{
    return l->is_shared;
}

static enum err load_number(struct learn *l, struct str key, struct reader *r)
{
    uint8_t is_whole;
    int64_t version, total, counted;

    load_read_bytes(r, &is_whole, 1);
    version = load_read_number(r);
    total = load_read_count(r);
    counted = r->form == ROW_FORM_OLD ? version : load_read_number(r);
    if (!load_is_done(r) || counted > version || is_whole > 1 ||
        l->has_number || !str_eq(key, STR("number")))
        return ERR_SYNTAX;
    l->has_number = true;
    l->is_void = l->must_clear = !is_whole;
    l->is_shared = r->form != ROW_FORM;
    if (l->is_shared) {
        l->must_clear = true;
        return OK; /* no number: all outcomes that are kept will be applied */
    }
    l->version = l->written = version;
    l->counted = counted;
    l->applied_total = total;
    return OK;
}

typedef enum err load_thing(struct learn *l, struct str key, struct reader *r,
                            int64_t touched);

static enum err load_shared(struct learn *l, int64_t kind, struct str key,
                            struct reader *r, int64_t touched)
{
    struct thing *t;
    enum err e = OK;

    if (kind != THING_EXAMPLE)
        return OK;
    e = load_example(l, key, r, touched);
    t = thing_live(l, THING_EXAMPLE, key);
    if (e || !t)
        return e;
    t->has_row = false; /* all rows are removed, and this one written again */
    thing_dirty(l, t);
    return OK;
}

enum err learn_load_row(struct learn *l, const struct row *row)
{
    static load_thing *const loads[N_KINDS] = {
        [THING_AGENT] = load_known,  [THING_SCOPE] = load_scope,
        [THING_VIEW] = load_view,    [THING_EXAMPLE] = load_example,
        [THING_TYPE] = load_type,    [THING_PAIR] = load_pair,
        [THING_RATING] = load_rating};
    struct reader r = {.rest = row_str(row, LEARN_BYTES)};
    struct str key = row_str(row, LEARN_KEY);
    int64_t kind = row_int(row, LEARN_KIND), touched;

    load_read_bytes(&r, &r.form, 1);
    if (r.is_bad || r.form < ROW_FORM_OLD || r.form > ROW_FORM || kind < 0 ||
        kind >= N_KINDS)
        return ERR_SYNTAX;
    if (kind == THING_NUMBER)
        return load_number(l, key, &r);
    if (!l->has_number || l->is_shared != (r.form != ROW_FORM))
        return ERR_SYNTAX;
    if (l->is_void)
        return OK;
    l->changes++;
    touched = load_read_number(&r);
    if (r.is_bad || (touched > l->version && !l->is_shared) ||
        thing_find(l, (enum thing_kind)kind, key))
        return ERR_SYNTAX;
    if (learn_reserve(l))
        return ERR_NOMEM;
    if (l->is_shared)
        return load_shared(l, kind, key, &r, touched);
    return loads[kind](l, key, &r, touched);
}
