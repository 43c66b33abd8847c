#ifndef MODEL_CARD_INTERNAL_H
#define MODEL_CARD_INTERNAL_H

/* What the files of the card share:
 *
 *   card_fields.c   the table: each field once, with its limits and who may
 *   card_read.c     a tree by the table, with all that is wrong with it
 *   card_value.c    the types: a string, a number, an object kept as it is
 *   card_list.c     more types: lists of strings, skills, fields in a group
 *   card_show.c     a value in words, or its type where that is private
 *   card_letters.c  what may stand in a text
 *   card_write.c    the table the other way; what differs
 *   card_merge.c    a tree over a tree
 *   card_texts.c    what is made into vectors
 *   card_about.c    the table in words
 */

#include "model/card.h"

struct card_field;
struct card_fields;

/* Where something stands, up to the whole. On the stack: most of them are
 * never put into words. */
struct card_spot {
    const struct card_spot *up; /* NULL: the whole */
    struct str key;             /* of a member; without p: */
    size_t i;                   /* an element */
    size_t at;                  /* in the text */
};

struct card_reader {
    struct arena *arena;
    const struct card_opts *opts;
    struct card_problems *problems;
    bool is_stored; /* our own words: nothing is required of them */
    bool is_out_of_memory;
};

/* What is wrong there, to stand behind the field's name. */
void card_problem(struct card_reader *r, const struct card_spot *s,
                  const char *fmt, ...) PRINTF_LIKE(3, 4);
void card_forbid(struct card_reader *r, const struct card_spot *s,
                 const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Into the arena; nothing, and is_out_of_memory, when that is full. */
struct str card_copy(struct card_reader *r, struct str s);
void *card_array(struct card_reader *r, size_t n, size_t bytes);

/* A value in a few words, for behind "not". */
struct card_shown {
    char text[128];
};
struct card_shown card_show(const struct json *v);
/* Of what is private, or has such a thing in it, the type alone. */
struct card_shown card_show_as(const struct card_field *f,
                               const struct json *v);

/* How a field is read, asked after, compared and written. `field` points at
 * what the table's offset says; of a group at the whole. */
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
    card_name,                           /* an agent's */
    card_skill_id,                       /* the same letters */
    card_principal,                      /* a user's or an org's */
    card_org,                            /* an agent's; empty: its creator's */
    card_url,                            /* a road */
    card_web,                            /* http or https */
    card_int,                            /* min to max */
    card_micros,                         /* a struct price */
    card_amount,                         /* the same in units, as a number or
                                          * text; read only */
    card_currency,                       /* what these are of; read only */
    card_unless,                         /* a bool that is kept the other way
                                          * round */
    card_visibility, card_kind,          /* their names */
    card_object,  /* kept as it is; `inner`: what is known of
                   * it */
    card_strs,    /* a list; `inner`: of what, one field */
    card_allow,   /* the same, and empty is not the same as not
                   * given */
    card_group,   /* fields of the same struct */
    card_pricing, /* the same: micros, or an amount and its currency */
    card_skills,  /* a list of objects of their own */
    card_stamp,   /* a number that is written and not read */
    card_passed;  /* neither: others write it */

struct card_field {
    const char *name; /* on the wire; in the configuration in camelCase, or: */
    const char *config_name;
    const struct card_type *type;
    size_t at;                       /* of the field in its struct */
    int64_t min, max;                /* bytes, or numbers */
    int64_t unset;                   /* the number that is "not given" */
    size_t most;                     /* elements of a list */
    const struct card_fields *inner; /* of a group, an object, a list */
    unsigned needs;                  /* one of enum card_right; zero: none */
    /* Whether this value needs it; NULL: each does. */
    bool (*is_needed)(const struct agent *a);
    const char *needs_words; /* "only an admin may …" */
    const char *about;       /* a sentence for the manual */
    bool is_required;        /* though not in the configuration if: */
    bool is_config_optional;
    bool is_private;     /* its creator and admins see it */
    bool is_ours;        /* what the server says of it: no part of the card */
    bool is_wire_only;   /* none of the configuration's */
    bool is_config_only; /* none of anybody else's; read by config/ */
    const char *allowed; /* what it must be, in words of its own */
};

struct card_fields {
    const char *what; /* "a card": what has no such field */
    const struct card_field *list;
    size_t n;
    size_t bytes;    /* of the struct they fill */
    bool is_open;    /* may have others, of any type */
    bool is_unique;  /* a list: no two alike, whatever their case */
    const char *key; /* a list of objects: the field that no two share */
};

extern const struct card_fields card_fields, card_skill_fields;

/* The field that is spelt so; NULL: there is none. */
const struct card_field *card_find(const struct card_reader *r,
                                   const struct card_fields *t, struct str key);

/* Every member of v by the table into *base. */
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

/* As it is spelt there. */
enum { CARD_KEY_BYTES = 64 };
struct str card_key(const struct card_field *f, enum card_dialect d,
                    char out[CARD_KEY_BYTES]);

/* A character that may not stand in a text. */
struct card_letter {
    uint32_t number;  /* U+… */
    size_t at;        /* which byte, from zero */
    const char *what; /* "a mark that turns the direction of writing" */
};

/* The first one; false: all are fine. With lines: their ends and tabs are. */
bool card_letter_find(struct str s, bool has_lines, struct card_letter *out);

/* Whether there is anything to be seen. */
bool card_has_ink(struct str s);

#endif
