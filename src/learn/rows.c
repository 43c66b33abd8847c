/* Rows. Everything that changed goes into one tx with the number of the last
 * outcome, so that the two are never apart. Only where that is too much for one
 * tx (what was made anew) does it come in pieces; the first of them says that
 * the table is not whole, and a start that finds it so takes nothing from it
 * and reads the outcomes from the first on.
 *
 * Numbers lie in the order of bytes of this machine, as packed vectors do. */
#include "learn/internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    FORM = 1, /* of the bytes */
    ALL_ROWS = 1 << 24,
    TX_BYTES = TX_BYTES_MAX / 4, /* one tx takes this much and a row more */
};

static const int64_t COUNT_MAX = INT64_C(1) << 53;

/* Writing. */

static void add_i64(struct buf *b, int64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_f64(struct buf *b, double v)
{
    buf_add(b, &v, sizeof(v));
}

/* A string and its length, of two bytes. */
static void add_short(struct buf *b, struct str s)
{
    uint16_t n = (uint16_t)s.n;

    buf_add(b, &n, sizeof(n));
    buf_add_str(b, s);
}

static void write_known(const struct known *k, struct buf *b)
{
    add_f64(b, k->rate);
    add_i64(b, k->n_good);
    add_i64(b, k->n_bad);
    add_i64(b, k->good_ms);
}

static void write_type(const struct type *t, struct buf *b)
{
    uint32_t dims = (uint32_t)t->shelf->dims;

    add_i64(b, t->n);
    add_short(b, t->shelf->model_hash);
    buf_add(b, &dims, sizeof(dims));
    buf_add(b, t->mean, dims * sizeof(*t->mean));
    for (size_t i = 0; i < t->n_words; i++) {
        const struct telling *w = &t->words[i];

        buf_add(b, &w->count, sizeof(w->count));
        add_short(b, (struct str){w->stem, w->n_stem});
        add_short(b, (struct str){w->word, w->n_word});
    }
}

static void write_pair(const struct pair *p, struct buf *b)
{
    add_f64(b, p->rate);
    add_i64(b, p->n);
}

static void write_example(const struct example *x, struct buf *b)
{
    const struct shelf *s = x->shelf;
    const struct who *right = s->right[x->row], *wrong = s->wrong[x->row];
    struct vec_packed v = shelf_at(s, x->row);

    add_i64(b, x->at_ms);
    add_short(b, s->scope);
    add_short(b, s->model_hash);
    add_short(b, right ? right->name : STR(""));
    add_short(b, wrong ? wrong->name : STR(""));
    add_short(b, (struct str){x->text, x->n_text});
    buf_add(b, &v.scale, sizeof(v.scale));
    buf_add(b, &v.slack, sizeof(v.slack));
    buf_add(b, v.high, v.n);
    buf_add(b, v.low, v.n);
}

static void write_thing(const struct thing *t, struct buf *b)
{
    buf_add_char(b, FORM);
    add_i64(b, t->heard);
    if (t->kind == THING_AGENT)
        write_known((const struct known *)t, b);
    else if (t->kind == THING_TYPE)
        write_type((const struct type *)t, b);
    else if (t->kind == THING_PAIR)
        write_pair((const struct pair *)t, b);
    else
        write_example((const struct example *)t, b);
}

static void put_row(struct tx *tx, enum thing_kind kind, struct str key,
                    const struct buf *bytes)
{
    struct tx_op *op = tx_put(tx, &learn_table);

    tx_set(op, LEARN_KIND, value_int(kind));
    tx_set(op, LEARN_KEY, value_text(key));
    tx_set(op, LEARN_BYTES, value_blob(buf_str(bytes)));
    if (bytes->over)
        tx->build_error = ERR_NOMEM;
}

static void end_row(struct tx *tx, enum thing_kind kind, struct str key)
{
    struct tx_op *op = tx_prune(tx, &learn_table, 1);

    tx_if(op, LEARN_KIND, IS, value_int(kind));
    tx_if(op, LEARN_KEY, IS, value_text(key));
}

static void put_number(const struct learn *l, struct tx *tx, bool is_whole,
                       struct buf *b)
{
    buf_clear(b);
    buf_add_char(b, FORM);
    buf_add_char(b, is_whole);
    add_i64(b, is_whole ? l->version : 0);
    add_i64(b, is_whole ? l->applied_total : 0);
    put_row(tx, THING_NUMBER, STR("number"), b);
}

static void fly(struct learn *l, struct tx *tx, struct thing *t, struct buf *b)
{
    struct str key = str_sub(t->key, 1, t->key.n);

    list_remove(&t->row);
    list_append(&l->flying, &t->row);
    t->state = ROW_FLYING;
    t->is_written = !t->is_gone;
    if (t->is_gone) {
        end_row(tx, t->kind, key);
        return;
    }
    buf_clear(b);
    write_thing(t, b);
    put_row(tx, t->kind, key, b);
}

static struct thing *first_of(const struct list *list)
{
    struct list_node *n = list_first(list);

    return n ? LIST_OF(n, struct thing, row) : NULL;
}

static bool is_written(const struct learn *l)
{
    return list_is_empty(&l->dirty) && l->version == l->written &&
           !l->must_clear && !l->is_in_pieces;
}

bool learn_dirty(struct learn *l, struct tx *tx, size_t max, bool *is_last)
{
    struct buf b;
    struct thing *t;

    *is_last = true;
    if (l->is_flying || is_written(l))
        return false;
    buf_init(&b, 16 + 6 * (size_t)DIMS_MAX + 4096);
    l->is_flying = true;
    l->is_clearing = l->must_clear;
    l->must_clear = false;
    if (l->is_clearing)
        tx_prune(tx, &learn_table, ALL_ROWS);
    for (; max > 0 && tx->arena.used < TX_BYTES && (t = first_of(&l->dirty));
         max--)
        fly(l, tx, t, &b);
    *is_last = list_is_empty(&l->dirty);
    put_number(l, tx, *is_last, &b);
    l->is_last_flying = *is_last;
    l->flying_version = l->version;
    buf_fini(&b);
    return true;
}

static void land(struct learn *l, struct thing *t, bool is_committed)
{
    list_remove(&t->row);
    t->state = ROW_CLEAN;
    if (is_committed)
        t->has_row = t->is_written;
    if (t->is_again || !is_committed) {
        t->is_again = false;
        thing_dirty(l, t);
    }
    if (t->is_gone && !t->has_row) {
        list_remove(&t->row);
        map_take(&l->things, t->key);
        thing_free(t);
    }
}

void learn_written(struct learn *l, bool is_committed)
{
    struct thing *t;

    if (!l->is_flying)
        return;
    l->is_flying = false;
    while ((t = first_of(&l->flying)))
        land(l, t, is_committed);
    if (!is_committed) {
        l->must_clear |= l->is_clearing;
        return;
    }
    l->is_in_pieces = !l->is_last_flying;
    if (l->is_last_flying)
        l->written = l->flying_version;
}

/* What is on its way comes down by itself. */
void rows_clear(struct learn *l)
{
    struct list_node *n = list_first(&l->dirty), *next;

    l->must_clear = true;
    for (; n; n = next) {
        struct thing *t = LIST_OF(n, struct thing, row);

        next = list_next(&l->dirty, n);
        if (t->is_gone) {
            list_remove(&t->row);
            map_take(&l->things, t->key);
            thing_free(t);
        }
    }
}

void learn_rewrite(struct learn *l)
{
    const struct map_slot *slot;
    size_t at = 0;

    rows_clear(l);
    while ((slot = map_next(&l->things, &at))) {
        struct thing *t = slot->value;

        t->has_row = false;
        thing_dirty(l, t);
    }
}

/* Reading. What is not as it should be sets is_bad, and is zero or empty. */

struct reader {
    struct str rest;
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

    r->is_bad |= v > COUNT_MAX;
    return v;
}

static double read_rate(struct reader *r)
{
    double v;

    read_bytes(r, &v, sizeof(v));
    r->is_bad |= !(v >= 0 && v <= 1);
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
    k.good_ms = read_number(r);
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
    to->good_ms = k.good_ms;
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

static enum err fill_type(struct learn *l, struct type *t, struct str hash,
                          uint32_t dims, struct reader *r, int64_t heard)
{
    struct shelf *s;

    read_bytes(r, t->mean, dims * sizeof(*t->mean));
    read_words(r, t);
    for (size_t i = 0; i < dims; i++)
        r->is_bad |= !(fabsf(t->mean[i]) <= 1.01F);
    if (!is_done(r) || !is_in_order(t))
        return ERR_SYNTAX;
    s = shelf_take(l, STR(""), hash, dims);
    if (!s)
        return ERR_NOMEM;
    if (!type_shelve(l, t, s, heard)) {
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

static enum err load_type(struct learn *l, struct str key, struct reader *r,
                          int64_t heard)
{
    int64_t n = read_count(r), id;
    struct str hash = read_short(r, HASH_MAX);
    uint32_t dims;
    struct type *t;
    enum err e;

    read_bytes(r, &dims, sizeof(dims));
    if (r->is_bad || dims < 1 || dims > DIMS_MAX || n < 1 ||
        r->rest.n < dims * sizeof(float) || !read_id(key, &id))
        return ERR_SYNTAX;
    t = type_new(id, dims);
    if (!t)
        return ERR_NOMEM;
    t->n = n;
    e = fill_type(l, t, hash, dims, r, heard);
    if (e)
        thing_free(&t->thing);
    return e;
}

static enum err load_pair(struct learn *l, struct str key, struct reader *r,
                          int64_t heard)
{
    struct str name = key, number = str_cut(&name, '/');
    double rate = read_rate(r);
    int64_t n = read_count(r), id;
    struct type *t = read_id(number, &id) ? type_of(l, id) : NULL;
    struct who *w = is_low(name) ? who_find(l, name) : NULL;
    struct pair *p;

    if (!is_done(r) || !t || !w || !w->known || n < 1)
        return ERR_SYNTAX;
    p = thing_new(THING_PAIR, key);
    if (!p)
        return ERR_NOMEM;
    p->rate = rate;
    p->n = n;
    pair_link(p, w, t);
    settle(l, &p->thing, heard);
    return OK;
}

/* NULL where there is none; false: memory is gone. */
static bool take_name(struct learn *l, struct str name, struct who **out)
{
    *out = name.n ? who_take(l, name) : NULL;
    return *out || !name.n;
}

struct example_row {
    int64_t at_ms;
    struct str scope, hash, right, wrong, text;
    struct vec_packed v;
};

static bool read_example(struct reader *r, struct example_row *x)
{
    read_bytes(r, &x->at_ms, sizeof(x->at_ms));
    x->scope = read_short(r, SCOPE_MAX);
    x->hash = read_short(r, HASH_MAX);
    x->right = read_short(r, AGENT_NAME_MAX);
    x->wrong = read_short(r, AGENT_NAME_MAX);
    x->text = read_short(r, EXAMPLE_TEXT_MAX);
    return !r->is_bad && x->scope.n && (x->right.n || x->wrong.n) &&
           (!x->right.n || is_low(x->right)) &&
           (!x->wrong.n || is_low(x->wrong)) && vector_open(&x->v, r->rest);
}

static enum err load_example(struct learn *l, struct str key, struct reader *r,
                             int64_t heard)
{
    struct example_row row;
    struct who *right = NULL, *wrong = NULL;
    struct example *x = NULL;
    struct shelf *s;

    if (!read_example(r, &row) || key.n > ID_BYTES + SCOPE_MAX)
        return ERR_SYNTAX;
    s = shelf_take(l, row.scope, row.hash, row.v.n);
    if (s && take_name(l, row.right, &right) && take_name(l, row.wrong, &wrong))
        x = thing_new(THING_EXAMPLE, key);
    if (!x) {
        who_release(l, right);
        who_release(l, wrong);
        shelf_tidy(l, s);
        return ERR_NOMEM;
    }
    x->at_ms = row.at_ms;
    if (row.text.n)
        memcpy(x->text, row.text.p, row.text.n);
    x->n_text = row.text.n;
    example_shelve(x, s, right, wrong, &row.v, heard);
    settle(l, &x->thing, heard);
    return OK;
}

static enum err load_number(struct learn *l, struct str key, struct reader *r)
{
    uint8_t is_whole;
    int64_t version, total;

    read_bytes(r, &is_whole, 1);
    version = read_number(r);
    total = read_count(r);
    if (!is_done(r) || is_whole > 1 || l->has_number ||
        !str_eq(key, STR("number")))
        return ERR_SYNTAX;
    l->has_number = true;
    l->is_void = l->must_clear = !is_whole;
    l->version = l->written = version;
    l->applied_total = total;
    return OK;
}

typedef enum err load_thing(struct learn *l, struct str key, struct reader *r,
                            int64_t heard);

enum err learn_load_row(struct learn *l, const struct row *row)
{
    static load_thing *const loads[N_KINDS] = {NULL, load_known, load_type,
                                               load_pair, load_example};
    struct reader r = {.rest = row_str(row, LEARN_BYTES)};
    struct str key = row_str(row, LEARN_KEY);
    int64_t kind = row_int(row, LEARN_KIND), heard;
    uint8_t form;

    read_bytes(&r, &form, 1);
    if (r.is_bad || form != FORM || kind < 0 || kind >= N_KINDS)
        return ERR_SYNTAX;
    if (kind == THING_NUMBER)
        return load_number(l, key, &r);
    if (!l->has_number)
        return ERR_SYNTAX;
    if (l->is_void)
        return OK;
    l->changes++;
    heard = read_number(&r);
    if (r.is_bad || heard > l->version ||
        thing_find(l, (enum thing_kind)kind, key))
        return ERR_SYNTAX;
    if (things_reserve(l))
        return ERR_NOMEM;
    return loads[kind](l, key, &r, heard);
}
