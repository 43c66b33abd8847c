#ifndef SPEAK_INTERNAL_H
#define SPEAK_INTERNAL_H

#include "speak/speak.h"

/* fields.c: read the members of one object by a table. */

enum field_type {
    FIELD_NAME, /* a string of min..max bytes without control characters */
    FIELD_TEXT, /* a string of min..max bytes; beyond: ERR_LIMIT */
    FIELD_INT,  /* a whole number from min to max */
    FIELD_REAL, /* a number from min to max */
    FIELD_BOOL, /* true or false */
    FIELD_OBJ,  /* an object of up to max bytes, verbatim from the body; beyond:
                 * ERR_LIMIT */
    FIELD_ARR,  /* an array of up to max bytes, in the same way */
};

struct field {
    const char *name;
    enum field_type type;
    int64_t min, max;
    size_t at; /* offset of the struct str, int64_t, double or bool to fill */
    bool null_is_empty; /* null means an empty string, not "absent" */
};

struct fields {
    const char *prefix; /* "executor."; precedes a name in error messages */
    const struct field *list;
    size_t n;
};

/* Read the object `body` into *out by the table. An absent field leaves its
 * member unchanged. Strings are copied into the arena; objects and arrays stay
 * slices of body. ERR_SYNTAX, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM (the arena
 * is full), explained in why. */
MUST_USE enum err fields_read(struct arena *a, struct str body,
                              const struct fields *f, void *out,
                              struct why *why);

/* Check one decoded argument of a query against the row of its name and put it
 * into *out. Arguments are never objects or arrays. */
MUST_USE enum err fields_arg(const struct fields *f, const char *name,
                             struct str value, void *out, struct why *why);

/* Decode a JSON string of a document and check it against one row. */
MUST_USE enum err field_string(struct arena *a, const char *prefix,
                               const struct field *f, struct str raw,
                               struct str *out, struct why *why);

/* Add s and its length. Fields written one after the other in a fixed order
 * then differ whenever their contents differ: the canonical form that an
 * idempotency key stands for. */
void canonical_add(struct buf *out, struct str s);

/* "error":{"code","message"}, or null for an empty code. */
void put_task_error(struct json_out *o, struct str code, struct str message);

/* Add a document without the whitespace between its tokens. */
void compact_json(struct buf *out, struct str document);

#endif
