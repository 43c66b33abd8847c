#ifndef SPEAK_FIELDS_H
#define SPEAK_FIELDS_H

/* The fields of a request, as rows: the members of a body, or the arguments of
 * a query. A row is read by fields.c and shown by GET /openapi.json, so a limit
 * is written once. */

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum field_type {
    FIELD_NAME, /* a string of min..max bytes without control characters */
    FIELD_TEXT, /* a string of min..max bytes; beyond: ERR_LIMIT */
    FIELD_WORD, /* one of the words in `of` */
    FIELD_INT,  /* a whole number from min to max */
    FIELD_REAL, /* a number from min to max */
    FIELD_BOOL, /* true or false */
    FIELD_OBJ,  /* an object of up to max bytes, verbatim from the body; beyond:
                 * ERR_LIMIT */
    FIELD_ARR,  /* an array of up to max bytes, in the same way */
};

struct field {
    const char *name; /* NULL ends a list of arguments */
    enum field_type type;
    int64_t min, max;
    size_t at; /* offset of the struct str, int64_t, double or bool to fill */
    bool null_is_empty; /* null means an empty string, not "absent" */
    /* The words, "a|b|c"; or the type of an object or array, in the notation of
     * shapes.h. For a name, the words are only told: its reader checks them. */
    const char *of;
    bool any_case;       /* of the words */
    const char *must;    /* "NAME must be …"; NULL: from the type */
    const char *missing; /* the field is required: "NAME is missing: …" */
    const char *unset;   /* the default, as JSON; NULL: none */
    const char *about;   /* what it means; NULL: the name says it */
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

/* Check one decoded argument of a query against its row; to is as large as the
 * row's type needs. Arguments are never objects or arrays. */
MUST_USE enum err field_arg(const struct field *f, struct str value, void *to,
                            struct why *why);

/* Decode a JSON string of a document and check it against one row. */
MUST_USE enum err field_string(struct arena *a, const char *prefix,
                               const struct field *f, struct str raw,
                               struct str *out, struct why *why);

/* The bodies. */
extern const struct fields speak_message_fields, speak_executor_fields,
    speak_envelope_fields, speak_delegate_fields, speak_orders_fields,
    speak_send_fields, speak_search_fields, speak_approval_fields,
    speak_objection_fields, speak_report_fields, speak_grant_fields,
    speak_user_fields, speak_user_patch_fields, speak_token_fields,
    speak_money_fields, speak_refund_fields, speak_budget_fields,
    speak_decided_fields, speak_redirect_fields, speak_input_fields,
    speak_override_fields, speak_feedback_fields, speak_reset_fields,
    speak_void_fields;

/* Those of a search, as a list of arguments. */
extern const struct field speak_search_args[];

#endif
