#include "model/value.h"

#include <assert.h>

#include "base/fault.h"

bool value_fits(const struct table *t, uint8_t column, struct value v)
{
    static const enum column_type of[] = {
        [VALUE_INT] = COLUMN_INT,
        [VALUE_TEXT] = COLUMN_TEXT,
        [VALUE_BLOB] = COLUMN_BLOB,
    };

    return column < t->n_columns &&
           (v.type == VALUE_NULL || of[v.type] == t->columns[column].type);
}

bool value_keep(struct arena *a, struct value *v)
{
    char *copy;

    if (v->type < VALUE_TEXT)
        return true;
    copy = FAULT("model.value") ? NULL : arena_strdup(a, v->s);
    if (!copy)
        return false;
    v->s.p = copy;
    return true;
}

bool condition_add(struct arena *a, struct condition ***last,
                   const struct table *t, const uint8_t *columns, size_t n,
                   enum compare compare, struct value v)
{
    struct condition *c = arena_alloc(a, sizeof(*c));

    assert(n > 0 && n <= TABLE_INDEX_COLUMNS);
    if (!c || !value_keep(a, &v))
        return false;
    for (size_t i = 0; i < n; i++) {
        assert(value_fits(t, columns[i], v));
        c->columns[i] = columns[i];
    }
    c->n_columns = (uint8_t)n;
    c->compare = compare;
    c->value = v;
    **last = c;
    *last = &c->next;
    return true;
}
