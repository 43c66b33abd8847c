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

#include "base/id.h"
#include "base/str.h"

enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_BLOB };

/* The type of the member that holds a column in the struct of the record. */
enum member_type {
    MEMBER_NONE,
    MEMBER_INT,  /* int64_t or uint64_t */
    MEMBER_BOOL, /* 1 or 0 */
    MEMBER_ENUM, /* its number, or an int */
    MEMBER_STR,
    MEMBER_ID,
};

struct column {
    const char *name; /* lower case, digits and underscores */
    enum column_type type;
    unsigned since; /* at least that of the column before; if at most that of
                     * the table, the column is as old as the table */
    /* If set: this column holds the key of that table (one column), and the row
     * is deleted with that one. Only in the first version of a table, and only
     * for its first column or one that an index begins with. */
    const struct table *child_of;

    /* For record.h, set by MEMBER. */
    enum member_type member;
    uint32_t offset;
    unsigned part; /* bits of the owner's choice: when it is written */
    bool or_null;  /* an empty string or a zero is NULL */
};

/* The columns of a table are one list, which gives both their numbers and their
 * description, and for a record also the members that hold them:
 *
 *     #define THING_COLUMNS(C)                    \
 *         C(THING_ID, "id", 1, MEMBER(struct thing, id)) \
 *         C(THING_NOTE, "note", 2, COLUMN_TEXT)
 *
 *     enum thing_column { THING_COLUMNS(COLUMN_NUMBER) N_THING_COLUMNS };
 *     static const struct column columns[] = {THING_COLUMNS(COLUMN_ROW)};
 *
 * After the name comes the version of the schema that added the column, then
 * its type, or MEMBER and the member. Other fields of struct column may follow.
 */
#define COLUMN_NUMBER(number, label, version, ...) number,
#define COLUMN_ROW(number, label, version, ...) \
    {.name = label, .since = version, .type = __VA_ARGS__},

#define OR_NULL .or_null = true

/* The types of the column and of the member follow from the struct. */
#define MEMBER(record, field)      MEMBER_AS(record, field, COLUMN_TEXT)
#define MEMBER_BLOB(record, field) MEMBER_AS(record, field, COLUMN_BLOB)
/* clang-format off */
#define MEMBER_AS(record, field, of_str)     \
    _Generic(((record *)0)->field,           \
        struct str: of_str,                  \
        struct id: COLUMN_TEXT,              \
        default: COLUMN_INT),                \
    .offset = offsetof(record, field),       \
    .member = _Generic(((record *)0)->field, \
        int64_t: MEMBER_INT,                 \
        uint64_t: MEMBER_INT,                \
        bool: MEMBER_BOOL,                   \
        int: MEMBER_ENUM,                    \
        unsigned: MEMBER_ENUM,               \
        struct str: MEMBER_STR,              \
        struct id: MEMBER_ID)
/* clang-format on */

enum { TABLE_COLUMNS_MAX = 64, TABLE_INDEX_COLUMNS = 4 };

/* If several indexes fit a query, the first declared is used: declare the most
 * selective one first. */
#define INDEX_ON(...)         \
    .columns = {__VA_ARGS__}, \
    .n_columns = sizeof((const uint8_t[]){__VA_ARGS__})

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

/* Its version is the highest `since` in it. */
struct schema {
    const char *room; /* the owner */
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
