/* A loop over the columns with a switch. Rejected: generated code per record.
 * It saves a few nanoseconds of the microseconds that reading a row costs. */
#include "model/record.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

void record_from_row(void *record, const struct table *t, const struct row *r)
{
    for (uint8_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        void *at = (char *)record + c->offset;

        switch (c->member) {
        case MEMBER_NONE: break;
        case MEMBER_INT: *(int64_t *)at = row_int(r, i); break;
        case MEMBER_BOOL: *(bool *)at = row_int(r, i) != 0; break;
        case MEMBER_ENUM: *(unsigned *)at = (unsigned)row_int(r, i); break;
        case MEMBER_STR: *(struct str *)at = row_str(r, i); break;
        case MEMBER_ID: *(struct id *)at = id_from(row_str(r, i)); break;
        }
    }
}

static struct value member_value(const struct column *c, const void *record)
{
    const void *at = (const char *)record + c->offset;
    struct str s = {NULL, 0};
    int64_t i = 0;

    switch (c->member) {
    case MEMBER_NONE: assert(!"a column of a part has a member"); break;
    case MEMBER_INT: i = *(const int64_t *)at; break;
    case MEMBER_BOOL: i = *(const bool *)at; break;
    case MEMBER_ENUM: i = *(const unsigned *)at; break;
    case MEMBER_STR: s = *(const struct str *)at; break;
    case MEMBER_ID: s = str_of(((const struct id *)at)->text); break;
    }
    if (c->or_null && !i && !s.n)
        return value_null();
    return c->type == COLUMN_INT    ? value_int(i)
           : c->type == COLUMN_TEXT ? value_text(s)
                                    : value_blob(s);
}

void record_to_tx(struct tx_op *op, const void *record, unsigned parts)
{
    for (uint8_t i = 0; i < op->table->n_columns; i++)
        if (op->table->columns[i].part & parts)
            tx_set(op, i, member_value(&op->table->columns[i], record));
}

void record_clear(struct tx_op *op, unsigned parts)
{
    for (uint8_t i = 0; i < op->table->n_columns; i++)
        if (op->table->columns[i].part & parts)
            tx_set(op, i, value_null());
}

char *record_keep(void *record, const struct table *t, unsigned parts)
{
    struct str *strs[TABLE_COLUMNS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];

        if (c->member == MEMBER_STR && c->part & parts)
            strs[n++] = (struct str *)(void *)((char *)record + c->offset);
    }
    return strs_keep(strs, n);
}

char *strs_keep(struct str *const *strs, size_t n)
{
    size_t bytes = 1; /* never an allocation of nothing */
    char *all, *at;

    for (size_t i = 0; i < n; i++)
        bytes += strs[i]->n;
    all = at = FAULT("model.keep") ? NULL : malloc(bytes);
    if (!all)
        return NULL;
    for (size_t i = 0; i < n; i++)
        *strs[i] = str_pack(&at, *strs[i]);
    return all;
}
