/* A column, a line and a gap in a sentence differ only in where the value goes,
 * so they share the functions that write one. Values are appended to a buffer:
 * the cells of a row lie in it one after another until the grid copies them. */
#include "cli/cells.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/client.h"
#include "cli/price.h"
#include "cli/span.h"

enum { VALUE_BYTES = 64 * 1024, FLAT_DEPTH = 2 };

const struct json *cli_member(const struct json *v, const char *path)
{
    struct str rest = str_of(path);

    while (v && rest.n)
        v = json_get(v, str_cut(&rest, '.'));
    return v && v->type != JSON_NULL ? v : NULL;
}

const struct json *cli_items(const struct json *v, const char *path)
{
    static const struct json none = {.type = JSON_ARR};
    const struct json *list = cli_member(v, path);

    return list && list->type == JSON_ARR ? list : &none;
}

static void add_flat(struct buf *out, const struct json *v, unsigned depth)
{
    struct json_out o = json_out(out);
    size_t n = 0;

    if (v->type == JSON_STR) {
        buf_add_str(out, v->s);
    } else if ((v->type != JSON_ARR && v->type != JSON_OBJ) ||
               depth > FLAT_DEPTH) {
        json_put(&o, v);
    } else {
        JSON_EACH(kid, v)
        {
            if (n++)
                buf_add_str(out, STR(", "));
            if (v->type == JSON_OBJ)
                buf_addf(out, "%.*s ", STR_ARG(kid->key));
            add_flat(out, kid, depth + 1);
        }
    }
}

void cli_flat(struct buf *out, const struct json *v)
{
    if (v && v->type != JSON_NULL)
        add_flat(out, v, 0);
}

/* How a value is written. */

static int64_t cell_int(const struct cell *cell)
{
    return json_int_or(cell->v, 0);
}

void as_age(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, str_of(span_write(cell->now_ms - cell_int(cell)).text));
}

void as_ago(const struct cell *cell, struct buf *out)
{
    if (cell_int(cell))
        buf_addf(out, "%s, %s ago", cli_time(cell_int(cell)).text,
                 span_write(cell->now_ms - cell_int(cell)).text);
}

void as_amount(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, str_of(amount_write(cell_int(cell)).text));
}

static void add_joined(struct buf *out, const struct json *list, char between)
{
    for (size_t i = 0; json_at(list, i); i++) {
        if (i)
            buf_add_char(out, between);
        buf_add_str(out, json_str_or(json_at(list, i), STR("")));
    }
}

void as_commas(const struct cell *cell, struct buf *out)
{
    add_joined(out, cell->v, ',');
}

void as_words(const struct cell *cell, struct buf *out)
{
    add_joined(out, cell->v, ' ');
}

void as_count(const struct cell *cell, struct buf *out)
{
    cli_put_count(out, cell_int(cell));
}

void cli_put_count(struct buf *out, int64_t v)
{
    char digits[32];
    int n = snprintf(digits, sizeof(digits), "%" PRId64, v);

    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-')
            buf_add_char(out, ',');
        buf_add_char(out, digits[i]);
    }
}

void as_left(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, str_of(span_left(cell_int(cell) - cell->now_ms).text));
}

void as_expiry(const struct cell *cell, struct buf *out)
{
    if (!cell_int(cell))
        buf_add_str(out, STR("never"));
    else if (cell_int(cell) <= cell->now_ms)
        buf_add_str(out, STR("expired"));
    else
        as_left(cell, out);
}

void as_length(const struct cell *cell, struct buf *out)
{
    buf_addf(out, "%zu",
             cell->v && cell->v->type == JSON_ARR ? (size_t)cell->v->kids.n
                                                  : (size_t)0);
}

void as_price(const struct cell *cell, struct buf *out)
{
    if (cell_int(cell) > 0)
        buf_add_str(out, str_of(price_write(cell_int(cell)).text));
}

void as_score(const struct cell *cell, struct buf *out)
{
    if (cell->v)
        buf_addf(out, "%.3f", json_real_or(cell->v, 0));
    else
        buf_add_char(out, '-');
}

void as_time(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, str_of(cli_time(cell_int(cell)).text));
}

/* Sentences. */

/* Members have their unit in their names. */
static bool has_unit(struct str member, struct str unit)
{
    return member.n > unit.n &&
           str_eq(str_sub(member, member.n - unit.n, member.n), unit);
}

/* A gap of a sentence. False: it has no value. */
static bool fill_gap(struct buf *out, struct str gap, struct str name,
                     const struct cell *cell)
{
    struct cell in = *cell;
    size_t from = out->n;
    struct cli_room room;
    char path[64];

    snprintf(path, sizeof(path), "%.*s", STR_ARG(gap));
    in.v = cli_member(cell->item, path);
    if (!gap.n)
        buf_add_str(out, cli_tame(&room, name));
    else if (in.v && in.v->type == JSON_STR)
        buf_add_str(out, cli_tame(&room, in.v->s));
    else if (in.v && has_unit(gap, STR("_micros")))
        as_amount(&in, out);
    else if (cell_int(&in) && has_unit(gap, STR("_ms")))
        as_time(&in, out);
    else if (!has_unit(gap, STR("_ms")))
        cli_flat(out, in.v);
    if (out->n == from)
        return false;
    out->n = from + str_tame(out->p + from, out->n - from);
    return true;
}

/* False: a gap has no value. */
static bool fill_words(struct buf *out, struct str words, struct str name,
                       const struct cell *cell)
{
    bool is_full = true;

    while (words.n) {
        char first = words.p[0];
        size_t before = out->n;
        struct str inner;

        if (first != '{' && first != '[') {
            buf_add_char(out, first);
            words = str_sub(words, 1, words.n);
            continue;
        }
        inner = str_cut(&words, first == '{' ? '}' : ']');
        inner = str_sub(inner, 1, inner.n);
        if (first == '{')
            is_full = fill_gap(out, inner, name, cell) && is_full;
        else if (!fill_words(out, inner, name, cell))
            out->n = before;
    }
    return is_full;
}

void cli_say(struct cli *c, struct str name, const struct json *v,
             const char *words)
{
    fill_words(&c->out, str_of(words), name, &(struct cell){.item = v});
}

void cli_put_words(struct buf *out, const struct json *v, const char *words)
{
    fill_words(out, str_of(words), STR(""), &(struct cell){.item = v});
}

/* Lines and tables. */

static void add_value(const struct cell *cell, const char *member, cell_fn *as,
                      struct buf *out)
{
    struct cell in = *cell;

    in.v = cli_member(cell->item, member);
    if (as)
        as(&in, out);
    else if (strchr(member, '{'))
        fill_words(out, str_of(member), STR(""), &in);
    else if (in.v && in.v->type == JSON_STR)
        buf_add_str(out, str_head(in.v->s, VALUE_BYTES / 2));
    else
        cli_flat(out, in.v);
}

void cli_fields(struct cli *c, const struct json *v, const struct field *rows)
{
    struct cell cell = {.item = v, .now_ms = cli_now_ms()};
    struct buf value;

    buf_init(&value, VALUE_BYTES);
    for (; rows->label; rows++) {
        buf_clear(&value);
        add_value(&cell, rows->member, rows->as, &value);
        cli_named(c, rows->label, buf_str(&value));
    }
    buf_fini(&value);
}

/* True if a narrow window has the column. */
static bool column_is_kept(const struct cli *c, const char *narrow)
{
    struct str value = str_of(narrow), option = str_cut(&value, '=');
    bool is_wanted = !str_starts(option, STR("!")), is_given = false;

    if (!option.n)
        return narrow;
    if (!is_wanted)
        option = str_sub(option, 1, option.n);
    for (size_t i = 0; i < c->args.n_options; i++)
        if (str_eq(str_of(c->args.options[i].option->name), option))
            is_given = !value.n || str_eq(c->args.options[i].value, value);
    return is_given == is_wanted;
}

void item_table_init(struct item_table *t, struct cli *c,
                     const struct grid_column *columns, unsigned narrow)
{
    size_t n = 0;

    *t = (struct item_table){.c = c,
                             .now_ms = cli_now_ms(),
                             .is_narrow = c->window && c->window < narrow};
    for (; columns->title; columns++)
        if (!t->is_narrow || column_is_kept(c, columns->narrow)) {
            t->columns[n] = columns;
            t->heads[n++] = (struct grid_head){columns->title, columns->colour};
        }
    grid_init(&t->grid, t->heads, n);
    for (size_t i = 0; i < n; i++)
        if (t->columns[i]->as == as_amount)
            t->grid.points |= 1U << i;
    buf_init(&t->row, GRID_COLUMNS_MAX * VALUE_BYTES);
}

void item_table_add(struct item_table *t, const struct json *item)
{
    struct cell cell = {
        .item = item, .now_ms = t->now_ms, .is_narrow = t->is_narrow};
    struct str cells[GRID_COLUMNS_MAX];
    size_t ends[GRID_COLUMNS_MAX + 1] = {0};

    buf_clear(&t->row);
    for (size_t i = 0; i < t->grid.n_columns; i++) {
        add_value(&cell, t->columns[i]->member, t->columns[i]->as, &t->row);
        ends[i + 1] = t->row.n;
    }
    /* Only now the buffer no longer moves. */
    for (size_t i = 0; i < t->grid.n_columns; i++)
        cells[i] = str_sub(buf_str(&t->row), ends[i], ends[i + 1]);
    grid_add(&t->grid, cells);
}

void item_table_fini(struct item_table *t)
{
    grid_fini(&t->grid);
    buf_fini(&t->row);
}
