/* Rows, read again when the server starts. They are our own, but a disk may
 * have been at them: every length, number and vector is looked at before it
 * counts, and what one row says of another must be there.
 *
 * Before ROW_FORM all scopes had the same types of query. Such rows tell one
 * scope what others asked, so none of that is read: the outcomes that are kept
 * are folded again. Examples were of one scope then too, and those whose
 * outcomes retention has removed would be lost: they are read. */
#include "learn/internal.h"

#include <math.h>

static const int64_t COUNT_MAX = INT64_C(1) << 53;

/* What is not as it should be sets is_bad, and is zero or empty. */

struct reader {
    struct str rest;
    uint8_t form;
    bool is_bad;
};

static void read_bytes(struct reader *r, void *to, size_t n)
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

static int64_t read_number(struct reader *r)
{
    int64_t v;

    read_bytes(r, &v, sizeof(v));
    r->is_bad |= v < 0;
    return v;
}

/* What is counted on from there. */
static int64_t read_count(struct reader *r)
{
    int64_t v = read_number(r);

    if (v >= 0 && v <= COUNT_MAX)
        return v;
    r->is_bad = true;
    return 0;
}

static double read_rate(struct reader *r)
{
    double v;

    read_bytes(r, &v, sizeof(v));
    r->is_bad |= !(v >= 0 && v <= 1);
    return v;
}

/* A sum of weights, of at most so many verdicts. */
static double read_weight(struct reader *r, int64_t n)
{
    double v;

    read_bytes(r, &v, sizeof(v));
    r->is_bad |= !(v >= 0 && v <= (double)n);
    return v;
}

static struct str read_short(struct reader *r, size_t max)
{
    uint16_t n;
    struct str s;

    read_bytes(r, &n, sizeof(n));
    if (n > r->rest.n || n > max)
        r->is_bad = true;
    if (r->is_bad)
        return (struct str){NULL, 0};
    s = str_sub(r->rest, 0, n);
    r->rest = str_sub(r->rest, n, r->rest.n);
    return s;
}

static bool is_done(const struct reader *r)
{
    return !r->is_bad && r->rest.n == 0;
}

/* Into the state, as a row that is there. */
static void settle(struct learn *l, struct thing *t, int64_t heard)
{
    thing_add(l, t, heard);
    list_remove(&t->row);
    t->state = ROW_CLEAN;
    t->has_row = true;
}

static bool is_low(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (str_lower(name.p[i]) != name.p[i])
            return false;
    return name.n > 0 && name.n <= AGENT_NAME_MAX;
}

static enum err load_known(struct learn *l, struct str key, struct reader *r,
                           int64_t heard)
{
    struct known k = {.rate = read_rate(r)}, *to;
    struct who *w;

    k.n_good = read_count(r);
    k.n_bad = read_count(r);
    k.public_rate = read_rate(r);
    k.weight = read_weight(r, k.n_good + k.n_bad);
    k.outside_rate = read_rate(r);
    k.outside_weight = read_weight(r, k.n_good + k.n_bad);
    if (!is_done(r) || !is_low(key))
        return ERR_SYNTAX;
    w = who_take(l, key);
    to = w ? thing_new(THING_AGENT, key) : NULL;
    if (!to) {
        who_release(l, w);
        return ERR_NOMEM;
    }
    to->who = w;
    to->rate = k.rate;
    to->n_good = k.n_good;
    to->n_bad = k.n_bad;
    to->public_rate = k.public_rate;
    to->weight = k.weight;
    to->outside_rate = k.outside_rate;
    to->outside_weight = k.outside_weight;
    w->known = to;
    settle(l, &to->thing, heard);
    return OK;
}

static void read_words(struct reader *r, struct type *t)
{
    while (!r->is_bad && r->rest.n) {
        struct telling *w = &t->words[t->n_words];
        struct str stem, word;

        if (t->n_words == TELLING_WORDS) {
            r->is_bad = true;
            return;
        }
        read_bytes(r, &w->count, sizeof(w->count));
        stem = read_short(r, TELLING_BYTES);
        word = read_short(r, TELLING_BYTES);
        if (!stem.n || !word.n)
            r->is_bad = true;
        if (r->is_bad)
            return;
        memcpy(w->stem, stem.p, w->n_stem = (uint8_t)stem.n);
        memcpy(w->word, word.p, w->n_word = (uint8_t)word.n);
        t->n_words++;
    }
}

static bool is_in_order(const struct type *t)
{
    for (size_t i = 1; i < t->n_words; i++) {
        const struct telling *a = &t->words[i - 1], *b = &t->words[i];

        if (str_cmp((struct str){a->stem, a->n_stem},
                    (struct str){b->stem, b->n_stem}) >= 0)
            return false;
    }
    return true;
}

static enum err fill_type(struct learn *l, struct type *t, struct tenant *scope,
                          struct str hash, uint32_t dims, struct reader *r,
                          int64_t heard)
{
    struct shelf *s;

    read_bytes(r, t->mean, dims * sizeof(*t->mean));
    read_words(r, t);
    for (size_t i = 0; i < dims; i++)
        r->is_bad |= !(fabsf(t->mean[i]) <= 1.01F);
    if (!is_done(r) || !is_in_order(t))
        return ERR_SYNTAX;
    s = shelf_take(l, THING_TYPE, tenant_name(scope), hash, dims);
    if (!s)
        return ERR_NOMEM;
    if (!type_shelve(l, t, scope, s, heard)) {
        shelf_tidy(l, s);
        return ERR_SYNTAX;
    }
    list_remove(&t->thing.row);
    t->thing.state = ROW_CLEAN;
    t->thing.has_row = true;
    return OK;
}

static bool read_id(struct str key, int64_t *id)
{
    char again[24];

    return !str_to_i64(key, id) && *id > 0 && str_eq(type_key(*id, again), key);
}

static struct tenant *read_scope(struct learn *l, struct reader *r)
{
    struct str name = read_short(r, SCOPE_MAX);

    return name.n ? (struct tenant *)thing_live(l, THING_SCOPE, name) : NULL;
}

static enum err load_type(struct learn *l, struct str key, struct reader *r,
                          int64_t heard)
{
    int64_t n = read_count(r), id;
    struct tenant *scope = read_scope(l, r);
    struct str hash = read_short(r, HASH_MAX);
    uint32_t dims;
    struct type *t;
    enum err e;

    read_bytes(r, &dims, sizeof(dims));
    if (r->is_bad || !scope || dims < 1 || dims > DIMS_MAX || n < 1 ||
        r->rest.n < dims * sizeof(float) || !read_id(key, &id))
        return ERR_SYNTAX;
    t = type_new(id, dims);
    if (!t)
        return ERR_NOMEM;
    t->n = n;
    e = fill_type(l, t, scope, hash, dims, r, heard);
    if (e)
        thing_free(&t->thing);
    return e;
}

static struct view *view_of(const struct learn *l, struct str name,
                            const struct tenant *s)
{
    char key[VIEW_KEY_MAX];

    return (struct view *)thing_live(l, THING_VIEW,
                                     view_key(name, tenant_name(s), key));
}

static enum err load_pair(struct learn *l, struct str key, struct reader *r,
                          int64_t heard)
{
    struct str name = key, number = str_cut(&name, '/');
    struct pair was = {.rate = read_rate(r)}, *p;
    int64_t id;
    struct type *t = read_id(number, &id) ? type_of(l, id) : NULL;
    struct view *v = t && is_low(name) ? view_of(l, name, t->scope) : NULL;

    was.n = read_count(r);
    was.outside_rate = read_rate(r);
    was.outside_n = read_count(r);
    if (!is_done(r) || !v || was.n < 1 || was.n > v->n || was.outside_n > was.n)
        return ERR_SYNTAX;
    p = thing_new(THING_PAIR, key);
    if (!p)
        return ERR_NOMEM;
    p->rate = was.rate;
    p->n = was.n;
    p->outside_rate = was.outside_rate;
    p->outside_n = was.outside_n;
    pair_link(p, v, t);
    settle(l, &p->thing, heard);
    return OK;
}

static enum err load_view(struct learn *l, struct str key, struct reader *r,
                          int64_t heard)
{
    struct str name = read_short(r, AGENT_NAME_MAX);
    struct tenant *scope = read_scope(l, r);
    struct view was = {.n = read_count(r)}, *v;
    struct who *w = is_low(name) ? who_find(l, name) : NULL;
    char again[VIEW_KEY_MAX];

    was.weight = read_weight(r, was.n);
    was.outside_weight = read_weight(r, was.n);
    was.good_ms = read_number(r);
    was.outside_good_ms = read_number(r);
    if (!is_done(r) || !scope || !w || !w->known || was.n < 1 ||
        was.n > w->known->n_good + w->known->n_bad ||
        was.outside_good_ms > was.good_ms ||
        !str_eq(key, view_key(name, tenant_name(scope), again)))
        return ERR_SYNTAX;
    v = thing_new(THING_VIEW, key);
    if (!v)
        return ERR_NOMEM;
    v->n = was.n;
    v->weight = was.weight;
    v->outside_weight = was.outside_weight;
    v->good_ms = was.good_ms;
    v->outside_good_ms = was.outside_good_ms;
    view_link(l, v, w, scope);
    settle(l, &v->thing, heard);
    return OK;
}

static bool read_votes(struct reader *r, struct rating *out)
{
    while (!r->is_bad && r->rest.n) {
        struct vote v = {.sign = -1};
        uint8_t is_good;

        read_bytes(r, &v.voter, sizeof(v.voter));
        read_bytes(r, &is_good, sizeof(is_good));
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
                            int64_t heard)
{
    struct str name = read_short(r, AGENT_NAME_MAX);
    struct str scope = read_short(r, SCOPE_MAX);
    struct rating was = {.n = 0}, *to;
    char again[VIEW_KEY_MAX];
    struct group *g;
    struct who *w;

    if (!is_low(name) || !scope.n || !read_votes(r, &was) ||
        !str_eq(key, view_key(name, scope, again)))
        return ERR_SYNTAX;
    g = group_take(l, GROUP_RATINGS, 0, scope);
    if (g && g->n == LEARN_RATINGS_PER_SCOPE)
        return ERR_SYNTAX;
    w = g ? who_take(l, name) : NULL;
    to = w ? thing_new(THING_RATING, key) : NULL;
    if (!to) {
        who_release(l, w);
        group_tidy(l, g);
        return ERR_NOMEM;
    }
    memcpy(to->votes, was.votes, sizeof(was.votes));
    to->n = was.n;
    rating_link(to, w, g);
    settle(l, &to->thing, heard);
    return OK;
}

static enum err load_scope(struct learn *l, struct str key, struct reader *r,
                           int64_t heard)
{
    size_t n = r->rest.n / sizeof(uint64_t);
    struct tenant *s;

    if (!is_scope(key) || n > LEARN_SCOPE_OWNERS ||
        r->rest.n != n * sizeof(uint64_t))
        return ERR_SYNTAX;
    s = tenant_new(key);
    if (!s)
        return ERR_NOMEM;
    read_bytes(r, s->owners, n * sizeof(uint64_t));
    s->n = n;
    settle(l, &s->thing, heard);
    return OK;
}

/* NULL where there is none; false: memory is gone. */
static bool take_name(struct learn *l, struct str name, struct who **out)
{
    *out = name.n ? who_take(l, name) : NULL;
    return *out || !name.n;
}

struct example_row {
    int64_t at_ms, said;
    uint64_t text_hash;
    struct str scope, hash, right, wrong, text;
    struct vec_packed v;
};

static bool read_example(struct reader *r, struct example_row *x)
{
    read_bytes(r, &x->at_ms, sizeof(x->at_ms));
    x->said = r->form == ROW_FORM_OLD ? 0 : read_number(r);
    x->text_hash = 0;
    if (r->form != ROW_FORM_OLD)
        read_bytes(r, &x->text_hash, sizeof(x->text_hash));
    x->scope = read_short(r, SCOPE_MAX);
    x->hash = read_short(r, HASH_MAX);
    x->right = read_short(r, AGENT_NAME_MAX);
    x->wrong = read_short(r, AGENT_NAME_MAX);
    x->text = read_short(r, EXAMPLE_TEXT_MAX);
    x->v = (struct vec_packed){.n = 0};
    if (r->is_bad || !x->scope.n || !(x->right.n || x->wrong.n) ||
        (x->right.n && !is_low(x->right)) || (x->wrong.n && !is_low(x->wrong)))
        return false;
    if (vector_open(&x->v, r->rest))
        return true;
    /* Kept for the hash of its text: no vector, whose scale and slack are 0. */
    x->v = (struct vec_packed){.n = 0};
    return x->text_hash && !x->hash.n && r->rest.n == 2 * sizeof(float);
}

/* Its outcome will not be applied again. */
static bool is_only_here(const struct learn *l, int64_t said)
{
    return !l->kept_from || said < l->kept_from;
}

static enum err load_example(struct learn *l, struct str key, struct reader *r,
                             int64_t heard)
{
    struct example_row row;
    struct who *right = NULL, *wrong = NULL;
    struct example *x = NULL;
    struct group *same = NULL;
    struct shelf *s;

    if (!read_example(r, &row) || key.n > ID_BYTES + SCOPE_MAX)
        return ERR_SYNTAX;
    if (l->is_shared && !is_only_here(l, row.said ? row.said : heard))
        return OK;
    if (l->is_shared && l->kept_from && heard >= l->kept_from)
        heard = l->kept_from - 1; /* it will be heard of again */
    s = shelf_take(l, THING_EXAMPLE, row.scope, row.hash, row.v.n);
    if (row.text_hash)
        same = group_take(l, GROUP_TEXT, (int64_t)row.text_hash, row.scope);
    if (s && (same || !row.text_hash) && take_name(l, row.right, &right) &&
        take_name(l, row.wrong, &wrong))
        x = thing_new(THING_EXAMPLE, key);
    if (!x) {
        group_tidy(l, same);
        who_release(l, right);
        who_release(l, wrong);
        shelf_tidy(l, s);
        return ERR_NOMEM;
    }
    x->at_ms = row.at_ms;
    x->said = row.said;
    x->text_hash = row.text_hash;
    if (row.text.n)
        memcpy(x->text, row.text.p, row.text.n);
    x->n_text = row.text.n;
    example_shelve(x, s, right, wrong, &row.v, heard);
    if (same)
        example_group(x, same);
    settle(l, &x->thing, heard);
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

    read_bytes(r, &is_whole, 1);
    version = read_number(r);
    total = read_count(r);
    counted = r->form == ROW_FORM_OLD ? version : read_number(r);
    if (!is_done(r) || counted > version || is_whole > 1 || l->has_number ||
        !str_eq(key, STR("number")))
        return ERR_SYNTAX;
    l->has_number = true;
    l->is_void = l->must_clear = !is_whole;
    l->is_shared = r->form != ROW_FORM;
    if (l->is_shared) {
        l->must_clear = true;
        return OK; /* with no number: all outcomes that are kept will come */
    }
    l->version = l->written = version;
    l->counted = counted;
    l->applied_total = total;
    return OK;
}

typedef enum err load_thing(struct learn *l, struct str key, struct reader *r,
                            int64_t heard);

static enum err load_shared(struct learn *l, int64_t kind, struct str key,
                            struct reader *r, int64_t heard)
{
    struct thing *t;
    enum err e = OK;

    if (kind != THING_EXAMPLE)
        return OK;
    e = load_example(l, key, r, heard);
    t = thing_live(l, THING_EXAMPLE, key);
    if (e || !t)
        return e;
    t->has_row = false; /* all rows go, and this one comes again */
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
    int64_t kind = row_int(row, LEARN_KIND), heard;

    read_bytes(&r, &r.form, 1);
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
    heard = read_number(&r);
    if (r.is_bad || (heard > l->version && !l->is_shared) ||
        thing_find(l, (enum thing_kind)kind, key))
        return ERR_SYNTAX;
    if (things_reserve(l))
        return ERR_NOMEM;
    if (l->is_shared)
        return load_shared(l, kind, key, &r, heard);
    return loads[kind](l, key, &r, heard);
}
