#ifndef SPEAK_INTERNAL_H
#define SPEAK_INTERNAL_H

#include "speak/speak.h"

/* fields.c: the members of one object, read by a table. */

enum field_type {
    FIELD_NAME, /* a string of min..max bytes without control characters */
    FIELD_TEXT, /* a string of min..max bytes; beyond: ERR_LIMIT */
    FIELD_INT,  /* a whole number from min to max */
    FIELD_REAL, /* a number from min to max */
    FIELD_BOOL, /* true or false */
    FIELD_OBJ,  /* an object of up to max bytes, as it stands in the body;
                 * beyond: ERR_LIMIT */
    FIELD_ARR,  /* an array of up to max bytes, the same way */
};

struct field {
    const char *name;
    enum field_type type;
    int64_t min, max;
    size_t at;          /* of the struct str, int64_t, double or bool it goes
                         * to */
    bool null_is_empty; /* null is an empty string, not "not given" */
};

struct fields {
    const char *prefix; /* "executor."; what error words put before a name */
    const struct field *list;
    size_t n;
};

/* Read the object `body` into *out by the table; what is not given stays as
 * it was. Strings go into the arena, objects and arrays stay slices of body.
 * ERR_SYNTAX, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM, with words in why. */
MUST_USE enum err fields_read(struct arena *a, struct str body,
                              const struct fields *f, void *out,
                              struct why *why);

/* Hold one argument of a query, decoded, against the row of its name and put
 * it into *out. Objects and arrays cannot be given so. */
MUST_USE enum err fields_arg(const struct fields *f, const char *name,
                             struct str value, void *out, struct why *why);

/* Decode a string as it stands in a document and hold it against one row. */
MUST_USE enum err field_string(struct arena *a, const char *prefix,
                               const struct field *f, struct str raw,
                               struct str *out, struct why *why);

/* Add a document without the space between its tokens. */
void compact_json(struct buf *out, struct str document);

#endif
