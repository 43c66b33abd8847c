#ifndef CLI_CELLS_H
#define CLI_CELLS_H

/* cells: members of a JSON object as people read them: in the columns of a
 * table, in the lines about one object, and in sentences. All three are data,
 * so a new column is a new row. Threads: the main one. */

#include "base/json.h"
#include "cli/cli.h"
#include "cli/grid.h"

/* A value and its surroundings. */
struct cell {
    const struct json *item; /* the object */
    const struct json *v;    /* its member; NULL: missing, or null */
    int64_t now_ms;
    bool is_narrow; /* the table has only its most important columns */
};

/* Append a value to out; nothing if there is nothing to show. */
typedef void cell_fn(const struct cell *cell, struct buf *out);

cell_fn as_age,        /* "3h" since a time */
    as_ago,            /* the time, and "3h ago" */
    as_amount,         /* "1.50" of micro-units */
    as_commas,         /* a list, joined with commas */
    as_count,          /* 1,387 */
    as_expiry,         /* "3h" until a time, "never" or "expired" */
    as_left,           /* "3h" until a time */
    as_length,         /* of a list */
    as_price,          /* "1.5", or "free" */
    as_score,          /* "0.123", or "-" */
    as_time, as_words; /* a list, joined with blanks */

/* A member is named by its path, "result.text", or is a sentence with members,
 * as in cli_say. Without a function it is shown as it is. */
struct grid_column {
    const char *title;
    const char *member;
    cell_fn *as;
    const char *narrow; /* in a narrow window: KEPT, DROPPED, or kept with an
                         * option, "status", without it, "!status", or with a
                         * value, "account=all" */
    grid_colour_fn *colour;
};
#define KEPT    ""
#define DROPPED NULL

/* A line about an object. Empty values have no line. */
struct field {
    const char *label, *member;
    cell_fn *as;
};

/* A member, by its path; NULL: missing, or null. */
const struct json *cli_member(const struct json *v, const char *path);

/* A list; an empty one if it is missing, so that JSON_EACH can walk it. */
const struct json *cli_items(const struct json *v, const char *path);

/* Append a value of any type on one line, lists and objects flattened; NULL:
 * nothing. */
void cli_flat(struct buf *out, const struct json *v);

/* Append 1,387. */
void cli_put_count(struct buf *out, int64_t v);

/* Write a sentence: "{} is visible to {user}[ until {expires_ms}]\n". {} is
 * the name, and a part in brackets is left out if one of its members has no
 * value. Members that end in _micros are amounts, and in _ms times. Text is
 * tamed. */
void cli_say(struct cli *c, struct str name, const struct json *v,
             const char *words);

/* The same without a name, into a buffer. */
void cli_put_words(struct buf *out, const struct json *v, const char *words);

/* Write the lines about v. A row without a label ends the table. */
void cli_fields(struct cli *c, const struct json *v, const struct field *rows);

/* A table of objects. */
struct item_table {
    struct cli *c;
    struct grid grid;
    struct grid_head heads[GRID_COLUMNS_MAX];
    const struct grid_column *columns[GRID_COLUMNS_MAX];
    struct buf row;
    int64_t now_ms;
    bool is_narrow;
};

/* A row without a title ends the columns. In a window with fewer than `narrow`
 * columns only some of them are shown. */
void item_table_init(struct item_table *t, struct cli *c,
                     const struct grid_column *columns, unsigned narrow);
void item_table_add(struct item_table *t, const struct json *item);
void item_table_fini(struct item_table *t);

#endif
