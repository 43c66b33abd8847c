/* Rows. All changes go into one tx with the number of the last outcome, so the
 * two always match. Only if there are too many for one tx (after a rebuild) are
 * they split; the first tx then says that the table is incomplete, and a start
 * that finds it so ignores the table and applies all outcomes.
 *
 * Numbers have the byte order of this machine, as packed vectors do. */
#include "learn/fold/internal.h"

enum {
    ALL_ROWS = 1 << 24,
    TX_BYTES = TX_BYTES_MAX / 4, /* a tx has at most this plus one row */
};

/* Writing. */

static void add_i64(struct buf *b, int64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_f64(struct buf *b, double v)
{
    buf_add(b, &v, sizeof(v));
}

/* A string after its length in two bytes. */
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
    add_f64(b, k->public_rate);
    add_f64(b, k->weight);
    add_f64(b, k->outside_rate);
    add_f64(b, k->outside_weight);
}

static void write_type(const struct type *t, struct buf *b)
{
    uint32_t dims = (uint32_t)t->shelf->dims;

    add_i64(b, t->n);
    add_short(b, tenant_name(t->scope));
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
    add_f64(b, p->outside_rate);
    add_i64(b, p->outside_n);
}

static void write_view(const struct view *v, struct buf *b)
{
    add_short(b, v->agent->name);
    add_short(b, tenant_name(v->scope));
    add_i64(b, v->n);
    add_f64(b, v->weight);
    add_f64(b, v->outside_weight);
    add_i64(b, v->good_ms);
    add_i64(b, v->outside_good_ms);
}

static void write_rating(const struct rating *r, struct buf *b)
{
    add_short(b, r->agent->name);
    add_short(b, group_scope(r->group));
    for (size_t i = 0; i < r->n; i++) {
        buf_add(b, &r->votes[i].voter, sizeof(r->votes[i].voter));
        buf_add_char(b, r->votes[i].sign > 0);
    }
}

static void write_tenant(const struct tenant *s, struct buf *b)
{
    buf_add(b, s->owners, s->n * sizeof(*s->owners));
}

static void write_example(const struct example *x, struct buf *b)
{
    const struct shelf *s = x->shelf;
    const struct agent_name *right = s->right[x->row],
                            *wrong = s->wrong[x->row];
    struct vec_packed v = shelf_at(s, x->row);

    add_i64(b, x->at_ms);
    add_i64(b, x->from_outcome);
    buf_add(b, &x->text_hash, sizeof(x->text_hash));
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
    buf_add_char(b, ROW_FORM);
    add_i64(b, t->touched);
    switch (t->kind) {
    case THING_AGENT: write_known((const struct known *)t, b); break;
    case THING_TYPE: write_type((const struct type *)t, b); break;
    case THING_PAIR: write_pair((const struct pair *)t, b); break;
    case THING_EXAMPLE: write_example((const struct example *)t, b); break;
    case THING_VIEW: write_view((const struct view *)t, b); break;
    case THING_RATING: write_rating((const struct rating *)t, b); break;
    case THING_SCOPE: write_tenant((const struct tenant *)t, b); break;
    case THING_NUMBER:
    case N_KINDS: break;
    }
}

static void row_put(struct tx *tx, enum thing_kind kind, struct str key,
                    const struct buf *bytes)
{
    struct tx_op *op = tx_put(tx, &learn_table);

    tx_set(op, LEARN_KIND, value_int(kind));
    tx_set(op, LEARN_KEY, value_text(key));
    tx_set(op, LEARN_BYTES, value_blob(buf_str(bytes)));
    if (bytes->over)
        tx->build_error = ERR_NOMEM;
}

static void put_number(const struct learn *l, struct tx *tx, bool is_whole,
                       struct buf *b)
{
    buf_clear(b);
    buf_add_char(b, ROW_FORM);
    buf_add_char(b, is_whole);
    add_i64(b, is_whole ? l->version : 0);
    add_i64(b, is_whole ? l->applied_total : 0);
    add_i64(b, is_whole ? l->counted : 0);
    row_put(tx, THING_NUMBER, STR("number"), b);
}

static void row_submit(struct learn *l, struct tx *tx, struct thing *t,
                       struct buf *b)
{
    struct str key = str_sub(t->key, 1, t->key.n);
    struct tx_op *op;

    list_remove(&t->row);
    list_append(&l->writing, &t->row);
    t->state = ROW_WRITING;
    t->is_written = !t->is_gone;
    if (t->is_gone) {
        op = tx_prune(tx, &learn_table, 1);
        tx_if(op, LEARN_KIND, IS, value_int(t->kind));
        tx_if(op, LEARN_KEY, IS, value_text(key));
        return;
    }
    buf_clear(b);
    write_thing(t, b);
    row_put(tx, t->kind, key, b);
}

static struct thing *first_row(const struct list *list)
{
    struct list_node *n = list_first(list);

    return n ? LIST_OF(n, struct thing, row) : NULL;
}

bool learn_dirty(struct learn *l, struct tx *tx, size_t max, bool *is_last)
{
    struct buf b;
    struct thing *t;

    *is_last = true;
    if (l->is_writing ||
        (list_is_empty(&l->dirty) && l->version == l->written &&
         !l->must_clear && !l->is_in_pieces))
        return false;
    buf_init(&b, 16 + 6 * (size_t)DIMS_MAX + 4096);
    l->is_writing = true;
    l->is_clearing = l->must_clear;
    l->must_clear = false;
    if (l->is_clearing)
        tx_prune(tx, &learn_table, ALL_ROWS);
    for (; max > 0 && tx->arena.used < TX_BYTES && (t = first_row(&l->dirty));
         max--)
        row_submit(l, tx, t, &b);
    *is_last = list_is_empty(&l->dirty);
    put_number(l, tx, *is_last, &b);
    l->is_last_writing = *is_last;
    l->writing_version = l->version;
    buf_fini(&b);
    return true;
}

static void row_settle(struct learn *l, struct thing *t, bool is_committed)
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

    if (!l->is_writing)
        return;
    l->is_writing = false;
    while ((t = first_row(&l->writing)))
        row_settle(l, t, is_committed);
    if (!is_committed) {
        l->must_clear |= l->is_clearing;
        return;
    }
    l->is_in_pieces = !l->is_last_writing;
    if (l->is_last_writing)
        l->written = l->writing_version;
}

/* Pending rows are settled by learn_written. */
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
