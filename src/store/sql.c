/* Operations and queries as SQL.
 *
 * The text depends on the shape only: the table, the fields that are set, the
 * conditions, and which values are NULL. Values are always bound. So a server
 * that does the same few things a million times prepares a few dozen
 * statements, once.
 *
 * Names come from constant tables and contain letters, digits and underscores.
 * They are quoted because "order" and "key" are column names.
 *
 * A listing with a condition on any of several columns, in the order of the
 * key, is a merge. Each column has an index in that order, so the first keys of
 * each are found without reading the rest, and the first keys of all are among
 * them:
 *
 *     SELECT … WHERE key IN (SELECT key FROM (SELECT key … WHERE a = ?1 …
 *                                             ORDER BY key LIMIT ?2) AS m0
 *                  UNION ALL SELECT key FROM (… WHERE b = ?1 …) AS m1)
 *     ORDER BY key LIMIT ?2
 *
 * "a = ?1 OR b = ?1" is equivalent, but makes the database find all rows and
 * then sort: seconds for a user with a million rows.
 *
 * Rejected: handwritten statements beside each table. They are not measurably
 * faster, and every module would need SQL. */
#include "store/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

enum { STMTS_MAX = 256, SHAPE_BYTES_MAX = 4096, SQL_BYTES_MAX = 64 * 1024 };

/* The kind of a query in a shape. */
enum { SHAPE_QUERY = TX_PRUNE + 1 };

struct stmt {
    struct list_node node; /* in by_age */
    sqlite3_stmt *sql;
    size_t n_shape;
    char shape[];
};

/* The common parts of an operation and a query. */
struct ask {
    int kind;
    const struct table *table;
    const struct tx_set *sets;
    const struct condition *conditions;
    uint8_t add_column;
    int order_by;
    bool is_descending;
};

void stmts_init(struct stmts *st, sqlite3 *db)
{
    /* Shapes come from our own modules, so a fixed seed is safe. */
    static const uint64_t seed[2] = {0x5349474e, 0x414c424f};

    *st = (struct stmts){.db = db};
    map_init(&st->by_shape, STMTS_MAX, seed);
    list_init(&st->by_age);
    buf_init(&st->shape, SHAPE_BYTES_MAX);
}

static void stmts_drop(struct stmts *st, struct stmt *s)
{
    map_take(&st->by_shape, (struct str){s->shape, s->n_shape});
    list_remove(&s->node);
    sqlite3_finalize(s->sql);
    free(s);
}

void stmts_fini(struct stmts *st)
{
    struct list_node *n;

    if (!st->db)
        return;
    while ((n = list_first(&st->by_age)))
        stmts_drop(st, LIST_OF(n, struct stmt, node));
    map_fini(&st->by_shape);
    buf_fini(&st->shape);
    st->db = NULL;
}

static void shape_write(struct buf *b, const struct ask *a)
{
    buf_clear(b);
    buf_add(b, &a->table, sizeof(a->table));
    buf_add_char(b, (char)a->kind);
    buf_add_char(b, (char)a->add_column);
    buf_add_char(b, (char)a->order_by);
    buf_add_char(b, (char)a->is_descending);
    for (const struct tx_set *s = a->sets; s; s = s->next)
        buf_add_char(b, (char)(s->column | (s->is_new_only ? 0x80 : 0)));
    buf_add_char(b, (char)0xff); /* no column has this number */
    for (const struct condition *c = a->conditions; c; c = c->next) {
        buf_add_char(b, (char)c->compare);
        buf_add_char(b, (char)(c->value.type == VALUE_NULL));
        buf_add_char(b, (char)c->n_columns);
        buf_add(b, c->columns, c->n_columns);
    }
}

/* The text of a statement. Parameters are numbered in the order of binding:
 * addition, fields, conditions, limits. */
struct text {
    struct buf b;
    int n_params;
};

static void text_add(struct text *t, const char *words)
{
    buf_add_str(&t->b, str_of(words));
}

static void text_add_name(struct text *t, const char *name)
{
    buf_addf(&t->b, "\"%s\"", name);
}

static void text_add_column(struct text *t, const struct table *table,
                            uint8_t column)
{
    text_add_name(t, table->columns[column].name);
}

static void text_add_param(struct text *t)
{
    buf_addf(&t->b, "?%d", ++t->n_params);
}

/* "= NULL" is never true, and with "IS ?" SQLite does not recognize a given
 * key. So NULL has its own operator, chosen by the shape. */
static const char *compare_words(const struct condition *c)
{
    static const char *const words[] = {
        [IS] = " = ",
        [IS_NOT] = " IS NOT ",
        [IS_LESS] = " < ",
        [IS_AT_MOST] = " <= ",
        [IS_MORE] = " > ",
        [IS_AT_LEAST] = " >= ",
        [IS_OR_ALL] = " IN ('*', ",
    };

    if (c->compare == IS && c->value.type == VALUE_NULL)
        return " IS ";
    return words[c->compare];
}

/* One branch of a merge: only column number `which` of `split`. */
struct branch {
    const struct ask *ask;
    const struct condition *split; /* NULL: there is no merge */
    uint8_t which;
};

/* The column of a condition; -1: any of several. */
static int branch_column(const struct branch *b, const struct condition *c)
{
    if (c == b->split)
        return c->columns[b->which];
    return c->n_columns == 1 ? c->columns[0] : -1;
}

static bool branch_is_given(const struct branch *b, uint8_t column)
{
    for (const struct condition *c = b->ask->conditions; c; c = c->next)
        if (c->compare == IS && branch_column(b, c) == column)
            return true;
    return false;
}

static size_t branch_n_given(const struct branch *b, const uint8_t *columns,
                             size_t n)
{
    size_t i = 0;

    while (i < n &&
           (columns ? branch_is_given(b, columns[i]) : branch_is_given(b, i)))
        i++;
    return i;
}

/* The index to use: the first declared one with all columns given, or else the
 * first with some. NULL: none, or the key, which is better than any. */
static const struct table_index *branch_index(const struct branch *b)
{
    const struct table *t = b->ask->table;
    const struct table_index *some = NULL;

    if (b->ask->kind != SHAPE_QUERY ||
        branch_n_given(b, NULL, t->n_key) == t->n_key)
        return NULL;
    for (size_t i = 0; i < t->n_indexes; i++) {
        const struct table_index *x = &t->indexes[i];
        size_t n = branch_n_given(b, x->columns, x->n_columns);

        if (n == x->n_columns)
            return x;
        if (n && !some)
            some = x;
    }
    return some;
}

/* Whether a condition must be kept from selecting another index than x. SQLite
 * has no statistics, so it guesses and prefers the narrowest index: the one by
 * status, which has only a few values. */
static bool branch_is_aside(const struct branch *b, const struct condition *c,
                            const struct table_index *x)
{
    const struct table *t = b->ask->table;
    bool leads = false;

    if (!x || c->compare != IS || branch_column(b, c) < 0)
        return false;
    for (uint8_t i = 0; i < x->n_columns; i++)
        if (x->columns[i] == branch_column(b, c))
            return false;
    for (size_t i = 0; i < t->n_indexes; i++)
        leads |= t->indexes[i].columns[0] == branch_column(b, c);
    return leads;
}

static void sql_add_where_in(struct text *t, const struct branch *b)
{
    const struct table_index *x = branch_index(b);
    const char *before = " WHERE ";

    for (const struct condition *c = b->ask->conditions; c; c = c->next) {
        uint8_t from = c == b->split ? b->which : 0;
        uint8_t to = c == b->split ? b->which + 1 : c->n_columns;
        int param = ++t->n_params;

        text_add(t, before);
        before = " AND ";
        text_add(t, branch_is_aside(b, c, x) ? "(+" : "(");
        for (uint8_t i = from; i < to; i++) {
            text_add(t, i > from ? " OR " : "");
            text_add_column(t, b->ask->table, c->columns[i]);
            buf_addf(&t->b, "%s?%d%s", compare_words(c), param,
                     c->compare == IS_OR_ALL ? ")" : "");
        }
        text_add(t, ")");
    }
}

static void sql_add_where(struct text *t, const struct ask *a)
{
    sql_add_where_in(t, &(struct branch){.ask = a});
}

static void sql_add_insert(struct text *t, const struct ask *a)
{
    text_add(t, "INSERT INTO ");
    text_add_name(t, a->table->name);
    if (!a->sets) {
        text_add(t, " DEFAULT VALUES");
        return;
    }
    for (const struct tx_set *s = a->sets; s; s = s->next) {
        text_add(t, s == a->sets ? "(" : ",");
        text_add_column(t, a->table, s->column);
    }
    text_add(t, ") VALUES ");
    for (const struct tx_set *s = a->sets; s; s = s->next) {
        text_add(t, s == a->sets ? "(" : ",");
        text_add_param(t);
    }
    text_add(t, ")");
}

static void sql_add_put(struct text *t, const struct ask *a)
{
    const struct table *table = a->table;
    bool is_first = true;

    sql_add_insert(t, a);
    for (uint8_t i = 0; i < table->n_key; i++) {
        text_add(t, i ? "," : " ON CONFLICT(");
        text_add_column(t, table, i);
    }
    text_add(t, ") DO UPDATE SET ");
    for (const struct tx_set *s = a->sets; s; s = s->next) {
        if (s->column < table->n_key || s->is_new_only)
            continue;
        text_add(t, is_first ? "" : ",");
        is_first = false;
        text_add_column(t, table, s->column);
        text_add(t, "=excluded.");
        text_add_column(t, table, s->column);
    }
    if (is_first) { /* nothing to change, but the guard must be checked */
        text_add_column(t, table, 0);
        text_add(t, "=excluded.");
        text_add_column(t, table, 0);
    }
    sql_add_where(t, a);
}

static void sql_add_sets(struct text *t, const struct ask *a,
                         const char *before)
{
    for (const struct tx_set *s = a->sets; s; s = s->next) {
        text_add(t, before);
        before = ",";
        text_add_column(t, a->table, s->column);
        text_add(t, "=");
        text_add_param(t);
    }
}

static void sql_add_update(struct text *t, const struct ask *a)
{
    text_add(t, "UPDATE ");
    text_add_name(t, a->table->name);
    text_add(t, " SET ");
    if (!a->sets) { /* no change, but the guards must be checked */
        text_add_column(t, a->table, 0);
        text_add(t, "=");
        text_add_column(t, a->table, 0);
    }
    sql_add_sets(t, a, "");
    sql_add_where(t, a);
}

static void sql_add_delete(struct text *t, const struct ask *a)
{
    text_add(t, "DELETE FROM ");
    text_add_name(t, a->table->name);
    sql_add_where(t, a);
}

static void sql_add_expect(struct text *t, const struct ask *a)
{
    text_add(t, "SELECT 1 FROM ");
    text_add_name(t, a->table->name);
    sql_add_where(t, a);
    text_add(t, " LIMIT 1");
}

/* The guard is a range of the present number, because a sum beyond 64 bits
 * becomes a fraction in SQLite. */
static void sql_add_addition(struct text *t, const struct ask *a)
{
    text_add(t, "UPDATE ");
    text_add_name(t, a->table->name);
    text_add(t, " SET ");
    text_add_column(t, a->table, a->add_column);
    text_add(t, "=");
    text_add_column(t, a->table, a->add_column);
    text_add(t, "+");
    text_add_param(t);
    sql_add_sets(t, a, ",");
    sql_add_where(t, a);
    text_add(t, a->conditions ? " AND " : " WHERE ");
    text_add_column(t, a->table, a->add_column);
    text_add(t, " BETWEEN ");
    text_add_param(t);
    text_add(t, " AND ");
    text_add_param(t);
}

static void sql_add_prune(struct text *t, const struct ask *a)
{
    text_add(t, "DELETE FROM ");
    text_add_name(t, a->table->name);
    text_add(t, " WHERE rowid IN (SELECT rowid FROM ");
    text_add_name(t, a->table->name);
    sql_add_where(t, a);
    text_add(t, " LIMIT ");
    text_add_param(t);
    text_add(t, ")");
}

static void sql_add_order(struct text *t, const struct ask *a)
{
    if (a->order_by < 0)
        return;
    text_add(t, " ORDER BY ");
    text_add_column(t, a->table, (uint8_t)a->order_by);
    text_add(t, a->is_descending ? " DESC" : "");
}

/* The condition to merge by. Only with a key of one column and in its order,
 * because that column alone identifies the row. */
static const struct condition *ask_find_split(const struct ask *a)
{
    const struct condition *c = NULL;

    if (a->table->n_key == 1 && a->order_by == 0)
        for (c = a->conditions; c && c->n_columns < 2; c = c->next)
            ;
    return c;
}

/* Every branch has the same parameters, and the statement has no others. */
static void sql_add_merge(struct text *t, const struct ask *a,
                          const struct condition *split)
{
    int n_before = t->n_params;

    text_add(t, " WHERE ");
    text_add_column(t, a->table, 0);
    for (uint8_t i = 0; i < split->n_columns; i++) {
        t->n_params = n_before;
        text_add(t, i ? " UNION ALL SELECT " : " IN (SELECT ");
        text_add_column(t, a->table, 0);
        text_add(t, " FROM (SELECT ");
        text_add_column(t, a->table, 0);
        text_add(t, " FROM ");
        text_add_name(t, a->table->name);
        sql_add_where_in(t, &(struct branch){a, split, i});
        sql_add_order(t, a);
        text_add(t, " LIMIT ");
        text_add_param(t);
        buf_addf(&t->b, ") AS m%d", i);
    }
    text_add(t, ")");
    t->n_params--; /* the limit, which is used again */
}

static void sql_add_query(struct text *t, const struct ask *a)
{
    const struct condition *split = ask_find_split(a);

    for (size_t i = 0; i < a->table->n_columns; i++) {
        text_add(t, i ? "," : "SELECT ");
        text_add_column(t, a->table, (uint8_t)i);
    }
    text_add(t, " FROM ");
    text_add_name(t, a->table->name);
    if (split)
        sql_add_merge(t, a, split);
    else
        sql_add_where(t, a);
    sql_add_order(t, a);
    text_add(t, " LIMIT ");
    text_add_param(t);
}

static void (*const writers[])(struct text *t, const struct ask *a) = {
    [TX_INSERT] = sql_add_insert,  [TX_PUT] = sql_add_put,
    [TX_UPDATE] = sql_add_update,  [TX_AMEND] = sql_add_update,
    [TX_DELETE] = sql_add_delete,  [TX_EXPECT] = sql_add_expect,
    [TX_ADD] = sql_add_addition,   [TX_PRUNE] = sql_add_prune,
    [SHAPE_QUERY] = sql_add_query,
};

static int stmts_prepare(struct stmts *st, const struct ask *a,
                         sqlite3_stmt **out)
{
    struct text t = {.n_params = 0};
    int code;

    *out = NULL;
    buf_init(&t.b, SQL_BYTES_MAX);
    writers[a->kind](&t, a);
    if (t.b.over || FAULT("store.prepare"))
        code = SQLITE_NOMEM;
    else
        code = sqlite3_prepare_v3(st->db, t.b.p, (int)t.b.n,
                                  SQLITE_PREPARE_PERSISTENT, out, NULL);
    buf_fini(&t.b);
    return code;
}

/* Prepare a statement for the shape in st->shape, and cache it. */
static int stmts_make(struct stmts *st, const struct ask *a, struct stmt **out)
{
    struct str shape = buf_str(&st->shape);
    struct stmt *s;
    int code;

    if (st->by_shape.n >= STMTS_MAX)
        stmts_drop(st, LIST_OF(list_first(&st->by_age), struct stmt, node));
    s = mem_new(sizeof(*s) + shape.n);
    memcpy(s->shape, shape.p, shape.n);
    s->n_shape = shape.n;
    code = stmts_prepare(st, a, &s->sql);
    if (code == SQLITE_OK &&
        map_put(&st->by_shape, (struct str){s->shape, shape.n}, s) != OK) {
        sqlite3_finalize(s->sql);
        code = SQLITE_NOMEM;
    }
    if (code == SQLITE_OK)
        *out = s;
    else
        free(s);
    return code;
}

static int stmts_find(struct stmts *st, const struct ask *a, sqlite3_stmt **out)
{
    struct stmt *s;
    int code;

    shape_write(&st->shape, a);
    if (st->shape.over)
        return SQLITE_NOMEM;
    s = map_get(&st->by_shape, buf_str(&st->shape));
    if (!s) {
        code = stmts_make(st, a, &s);
        if (code != SQLITE_OK)
            return code;
    }
    list_remove(&s->node);
    list_append(&st->by_age, &s->node);
    *out = s->sql;
    return SQLITE_OK;
}

/* Borrows the bytes of v: the tx or query outlives the step, and the next use
 * of the statement binds all values again before its step. */
static int bind_value(sqlite3_stmt *s, int param, const struct value *v)
{
    const char *p = v->s.p ? v->s.p : "";

    switch (v->type) {
    case VALUE_NULL: return sqlite3_bind_null(s, param);
    case VALUE_INT: return sqlite3_bind_int64(s, param, v->i);
    case VALUE_TEXT:
        return sqlite3_bind_text64(s, param, p, v->s.n, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case VALUE_BLOB:
        return sqlite3_bind_blob64(s, param, p, v->s.n, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

static int bind_sets(sqlite3_stmt *s, int *param, const struct tx_set *set)
{
    int code = SQLITE_OK;

    for (; set && code == SQLITE_OK; set = set->next)
        code = bind_value(s, ++*param, &set->value);
    return code;
}

static int bind_conditions(sqlite3_stmt *s, int *param,
                           const struct condition *c)
{
    int code = SQLITE_OK;

    for (; c && code == SQLITE_OK; c = c->next)
        code = bind_value(s, ++*param, &c->value);
    return code;
}

static int bind_limit(sqlite3_stmt *s, int param, size_t limit)
{
    return sqlite3_bind_int64(s, param,
                              limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
}

/* The range of numbers that the addition is valid for. */
static void add_range(const struct tx_op *op, __int128 *low, __int128 *high)
{
    __int128 delta = op->delta;

    *low = op->floor - delta;
    if (*low < INT64_MIN)
        *low = INT64_MIN;
    *high = (__int128)INT64_MAX - delta;
    if (*high > INT64_MAX)
        *high = INT64_MAX;
}

bool add_fits_nothing(const struct tx_op *op)
{
    __int128 low, high;

    add_range(op, &low, &high);
    return low > high;
}

static int bind_range(sqlite3_stmt *s, int *param, const struct tx_op *op)
{
    __int128 low, high;
    int code;

    assert(!add_fits_nothing(op));
    add_range(op, &low, &high);
    code = sqlite3_bind_int64(s, ++*param, (int64_t)low);
    return code == SQLITE_OK ? sqlite3_bind_int64(s, ++*param, (int64_t)high)
                             : code;
}

int stmts_for_op(struct stmts *st, const struct tx_op *op, sqlite3_stmt **out)
{
    struct ask a = {.kind = (int)op->kind,
                    .table = op->table,
                    .sets = op->sets,
                    .conditions = op->conditions,
                    .add_column = op->add_column,
                    .order_by = -1};
    int param = 0, code;

    code = stmts_find(st, &a, out);
    if (code == SQLITE_OK && op->kind == TX_ADD)
        code = sqlite3_bind_int64(*out, ++param, op->delta);
    if (code == SQLITE_OK)
        code = bind_sets(*out, &param, op->sets);
    if (code == SQLITE_OK)
        code = bind_conditions(*out, &param, op->conditions);
    if (code == SQLITE_OK && op->kind == TX_ADD)
        code = bind_range(*out, &param, op);
    if (code == SQLITE_OK && op->kind == TX_PRUNE)
        code = bind_limit(*out, ++param, op->limit);
    return code;
}

int stmts_for_query(struct stmts *st, const struct query *q, sqlite3_stmt **out)
{
    struct ask a = {.kind = SHAPE_QUERY,
                    .table = q->table,
                    .conditions = q->conditions,
                    .order_by = q->order_by,
                    .is_descending = q->is_descending};
    int param = 0, code;

    code = stmts_find(st, &a, out);
    if (code == SQLITE_OK)
        code = bind_conditions(*out, &param, q->conditions);
    /* One more than requested, to know whether there is more. */
    if (code == SQLITE_OK)
        code = bind_limit(*out, ++param,
                          q->limit < SIZE_MAX ? q->limit + 1 : q->limit);
    return code;
}
