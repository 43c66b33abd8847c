#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

/* table: the form of a kind of record, independent of storage.
 *
 * A module that owns records describes them once, as constant tables in a
 * schema, and passes the schema to the store when that is opened. The store
 * creates what is missing: everything whose `since` is above the version it
 * finds; nothing is ever removed or changed. A later version of the module adds
 * tables, columns (which begin as NULL) and indexes with the next number as
 * their `since`: that is its migration. Threads: any; constant. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_BLOB };

struct column {
    const char *name; /* lower case, digits and underscores */
    enum column_type type;
    unsigned since; /* zero: as old as its table */
    /* If set: this column holds the key of that table (one column), and the row
     * is deleted with that one. Only in the first version of a table, and only
     * for its first column or one that an index begins with. */
    const struct table *child_of;
};

enum { TABLE_COLUMNS_MAX = 64, TABLE_INDEX_COLUMNS = 4 };

/* If several indexes fit a query, the first declared is used: declare the most
 * selective one first. */
struct table_index {
    const char *name; /* unique among all indexes */
    uint8_t columns[TABLE_INDEX_COLUMNS];
    uint8_t n_columns;
    bool is_unique; /* NULLs are distinct */
    unsigned since;
};

struct table {
    const char *name;
    const struct column *columns;
    size_t n_columns;
    size_t n_key;    /* the first columns, so many, are the primary key */
    bool is_counted; /* the key is one integer from the store: each larger
                      * than all before, and never reused */
    const struct table_index *indexes;
    size_t n_indexes;
    unsigned since; /* zero: one */
};

struct schema {
    const char *room; /* the owner */
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

/* NULL for an empty string, for optional fields. */
static inline struct value value_text_or_null(struct str s)
{
    return s.n ? value_text(s) : value_null();
}

enum compare {
    IS,     /* also NULL */
    IS_NOT, /* also true for NULL */
    IS_LESS,
    IS_AT_MOST,
    IS_MORE,
    IS_AT_LEAST,
    IS_OR_ALL, /* equal, or "*"; for texts, never NULL */
};

/* field COMPARE value. A NULL field never matches an ordered comparison (less,
 * more, …). */
struct condition {
    struct condition *next;
    uint8_t columns[TABLE_INDEX_COLUMNS]; /* any of these */
    uint8_t n_columns;
    enum compare compare;
    struct value value;
};

#endif
