#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

/* table: what a kind of record looks like, without knowing where it is kept.
 *
 * A room that owns records describes them once, as constant tables in a
 * schema, and hands the schema to the store when that is opened. The store
 * makes what is missing: everything whose `since` is above the version it
 * finds comes new, nothing is ever taken away or changed. So a later version
 * of a room adds tables, columns (which begin as NULL) and indexes, with the
 * next number as their `since`, and that is its migration. Threads: any;
 * everything here is constant. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_BLOB };

struct column {
    const char *name; /* lower case, digits and underscores */
    enum column_type type;
    unsigned since; /* zero: as old as its table */
    /* Set: the key of this table, of one column, and the row goes when that
     * one goes. Only in the table's first version, and only for the first
     * column or one that an index begins with. */
    const struct table *child_of;
};

enum { TABLE_COLUMNS_MAX = 64, TABLE_INDEX_COLUMNS = 4 };

/* Where several would do for a question, the first declared is walked: so the
 * one whose values are in the fewest rows comes first. */
struct table_index {
    const char *name; /* unique among all indexes */
    uint8_t columns[TABLE_INDEX_COLUMNS];
    uint8_t n_columns;
    bool is_unique; /* NULLs are all different */
    unsigned since;
};

struct table {
    const char *name;
    const struct column *columns;
    size_t n_columns;
    size_t n_key;    /* the first so many columns are the primary key */
    bool is_counted; /* the key is one integer that the store gives out: each
                      * larger than any before, and never given again */
    const struct table_index *indexes;
    size_t n_indexes;
    unsigned since; /* zero counts as one */
};

struct schema {
    const char *room; /* who owns it */
    unsigned version; /* the highest `since` in it; at least one */
    const struct table *const *tables;
    size_t n_tables;
};

/* One field of a record. */
enum value_type { VALUE_NULL, VALUE_INT, VALUE_TEXT, VALUE_BLOB };

struct value {
    enum value_type type;
    int64_t i;
    struct str s;
};

static inline struct value value_null(void)
{
    return (struct value){.type = VALUE_NULL};
}

static inline struct value value_int(int64_t i)
{
    return (struct value){.type = VALUE_INT, .i = i};
}

static inline struct value value_text(struct str s)
{
    return (struct value){.type = VALUE_TEXT, .s = s};
}

static inline struct value value_blob(struct str s)
{
    return (struct value){.type = VALUE_BLOB, .s = s};
}

/* NULL for an empty string: most optional fields. */
static inline struct value value_text_or_null(struct str s)
{
    return s.n ? value_text(s) : value_null();
}

enum compare {
    IS,     /* also NULL */
    IS_NOT, /* also NULL: a NULL field is not "x" */
    IS_LESS,
    IS_AT_MOST,
    IS_MORE,
    IS_AT_LEAST,
    IS_OR_ALL, /* it, or "*"; of texts, never NULL */
};

/* field COMPARE value. With an order (less, more, …) a NULL field never
 * fits. */
struct condition {
    struct condition *next;
    uint8_t columns[TABLE_INDEX_COLUMNS]; /* any one of these */
    uint8_t n_columns;
    enum compare compare;
    struct value value;
};

#endif
