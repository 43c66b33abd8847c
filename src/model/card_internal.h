#ifndef MODEL_CARD_INTERNAL_H
#define MODEL_CARD_INTERNAL_H

/* Shared by the card files:
 *
 *   card_fields.c   the table: each field once, with its limits and rights
 *   card_read.c     reads a tree by the table and collects all problems
 *   card_value.c    the types: a string, a number, an object kept unchanged
 *   card_list.c     more types: lists of strings, skills, fields in a group
 *   card_show.c     a value as text, or its type if it is private
 *   card_letters.c  the characters that a text may contain
 *   card_write.c    writes by the table; differences
 *   card_merge.c    merges two trees
 *   card_texts.c    the texts that are embedded as vectors
 *   card_about.c    the table as text
 */

#include "model/card.h"

struct card_field;
struct card_fields;

/* A position in the tree, linked to its parents. On the stack: most positions
 * are never written out. */
struct card_spot {
    const struct card_spot *up; /* NULL: the whole card */
    struct str key;             /* of a member; if p is NULL: */
    size_t i;                   /* index of an element */
    size_t at;                  /* offset in the text */
};

struct card_reader {
    struct arena *arena;
    const struct card_opts *opts;
    struct card_problems *problems;
    bool is_stored; /* written by ourselves: nothing is required */
    bool is_out_of_memory;
};

/* Note a problem at s; the message completes the field's name. */
void card_problem(struct card_reader *r, const struct card_spot *s,
                  const char *fmt, ...) PRINTF_LIKE(3, 4);
void card_forbid(struct card_reader *r, const struct card_spot *s,
                 const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Copy into the arena; empty, with is_out_of_memory set, if that is full. */
struct str card_copy(struct card_reader *r, struct str s);
void *card_array(struct card_reader *r, size_t n, size_t bytes);

/* A value in a few words, to follow "not". */
struct card_shown {
    char text[128];
};
struct card_shown card_show(const struct json *v);
/* The same, but only the type of a field that is private or has private
 * members. */
struct card_shown card_show_as(const struct card_field *f,
                               const struct json *v);

/* How a field is read, tested, compared and written. `field` points to the
 * table's offset in the struct; for a group, to the struct itself. */
struct card_type {
    void (*read)(struct card_reader *r, const struct card_field *f,
                 const struct json *v, const struct card_spot *s, void *field);
    bool (*is_given)(const struct card_field *f, const void *field,
                     enum card_view v);
    bool (*is_same)(const struct card_field *f, const void *a, const void *b);
    void (*write)(struct json_out *o, const struct card_field *f,
                  const void *field, enum card_view v);
};

extern const struct card_type card_line, /* one line of text */
    card_text,                           /* with line ends and tabs */
    card_name,                           /* of an agent */
    card_skill_id,                       /* the same characters */
    card_principal,                      /* of a user or an org */
    card_org,                            /* of an agent; empty: its creator's */
    card_url,                            /* a transport */
    card_web,                            /* http or https */
    card_int,                            /* min to max */
    card_micros,                         /* a struct price */
    card_amount,   /* the same in units, as number or text; read only */
    card_currency, /* the currency of that; read only */
    card_unless,   /* a bool that is stored negated */
    card_visibility, card_kind, /* their names */
    card_object,                /* kept unchanged; `inner`: known members */
    card_strs,                  /* a list; `inner`: its elements, one field */
    card_allow,   /* the same, but an empty list counts as given */
    card_group,   /* fields of the same struct */
    card_pricing, /* the same: micros, or amount and currency */
    card_skills,  /* a list of objects */
    card_stamp,   /* a number that is written, not read */
    card_passed;  /* neither: other code writes it */

struct card_field {
    const char *name; /* on the wire; in the configuration its camelCase, or: */
    const char *config_name;
    const struct card_type *type;
    size_t at;                       /* offset of the field in its struct */
    int64_t min, max;                /* in bytes, or as numbers */
    int64_t unset;                   /* the number that means "not given" */
    size_t most;                     /* elements of a list */
    const struct card_fields *inner; /* of a group, an object or a list */
    unsigned needs;                  /* an enum card_right; zero: none */
    /* Whether this value needs the right; NULL: every value does. */
    bool (*is_needed)(const struct agent *a);
    const char *needs_words; /* "only an admin may …" */
    const char *about;       /* a sentence for the manual */
    bool is_required;        /* but not in the configuration if: */
    bool is_config_optional;
    bool is_private;     /* only its creator and admins see it */
    bool is_ours;        /* assigned by the server, not part of the card */
    bool is_wire_only;   /* not in the configuration */
    bool is_config_only; /* only there; read by config/ */
    const char *allowed; /* the accepted values, in its own words */
};

struct card_fields {
    const char *what; /* "a card": for messages about unknown fields */
    const struct card_field *list;
    size_t n;
    size_t bytes;    /* of the struct that they fill */
    bool is_open;    /* other members of any type are allowed */
    bool is_unique;  /* a list without duplicates, ignoring case */
    const char *key; /* a list of objects: the unique field */
};

extern const struct card_fields card_fields, card_skill_fields;

/* The field with that spelling, or NULL. */
const struct card_field *card_find(const struct card_reader *r,
                                   const struct card_fields *t, struct str key);

/* Read all members of v by the table into *base. */
void card_read_members(struct card_reader *r, const struct card_fields *t,
                       const struct json *v, const struct card_spot *s,
                       void *base);
void card_write_fields(struct json_out *o, const struct card_fields *t,
                       const void *base, enum card_view v, bool with_ours);
bool card_is_any_given(const struct card_fields *t, const void *base,
                       enum card_view v);

static inline void *card_field_at(const struct card_field *f, void *base)
{
    return (char *)base + f->at;
}

static inline const void *card_look_at(const struct card_field *f,
                                       const void *base)
{
    return (const char *)base + f->at;
}

/* The spelling in that dialect. */
enum { CARD_KEY_BYTES = 64 };
struct str card_key(const struct card_field *f, enum card_dialect d,
                    char out[CARD_KEY_BYTES]);

/* A character that is not allowed in a text. */
struct card_letter {
    uint32_t number;  /* U+… */
    size_t at;        /* byte offset */
    const char *what; /* "a mark that turns the direction of writing" */
};

/* Find the first one; false if there is none. has_lines allows line ends and
 * tabs. */
bool card_letter_find(struct str s, bool has_lines, struct card_letter *out);

/* Whether anything in it is visible. */
bool card_has_ink(struct str s);

/* The tests of a struct str, for further types. */
bool card_str_is_given(const struct card_field *f, const void *field,
                       enum card_view v);
bool card_str_is_same(const struct card_field *f, const void *a, const void *b);

#endif
