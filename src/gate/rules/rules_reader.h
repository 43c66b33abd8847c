#ifndef GATE_RULES_RULES_READER_H
#define GATE_RULES_RULES_READER_H

/* Shared by the files that read rules: the position in the file, the wording of
 * problems (rules_problems.c), values (rule_values.c), and tables of the fields
 * that an object may have. */

#include "gate/rules/internal.h"

struct reader {
    struct gate_rules *rules;
    struct arena *arena; /* of the rules */
    struct str text;     /* the file */
    struct gate_problems *problems;
    bool is_out_of_memory;
    struct map agents; /* lower case name -> struct agent_line */
    struct map names;  /* rule name -> struct rule */
    const char *what;  /* what is being read: "a safety gate" */
    struct str rule;   /* the rule's name; empty: not in a rule, or unknown */
};

/* The declaration of an agent. */
struct agent_line {
    struct str name;
    struct str folded; /* in lower case: the key */
    struct gate_revival revival;
};

/* Report a problem. `at` is an offset in the text. */
void problem_add(struct reader *rd, size_t at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void problem_end(struct gate_problems *p);

/* Further problems are only counted, so a caller can skip costly wording. */
static inline bool problem_is_full(const struct reader *rd)
{
    return rd->problems->n >= GATE_PROBLEMS_MAX;
}

/* A user's text as JSON, shortened, so that it stays on its line. */
struct quoted {
    char text[48 * 6 + 8];
};
struct quoted quote_text(struct str s);
struct quoted quote_value(const struct json *v);

/* The offset of a member's name. */
size_t member_offset(const struct reader *rd, const struct json *member);

/* A field that an object may have, and how it is read into a struct. */
struct field {
    const char *name;
    enum {
        FIELD_READ, /* by `read`, unless that is NULL */
        FIELD_INT,
        FIELD_DURATION,
        FIELD_DURATION_OR_NEVER, /* zero is allowed */
        FIELD_AGENT,
        FIELD_AGENTS,
        FIELD_KINDS,
        FIELD_EXPIRY,
    } kind;
    size_t offset;    /* of its value in the struct; unused by FIELD_READ */
    int64_t min, max; /* FIELD_INT */
    void (*read)(struct reader *rd, const struct json *v, void *into);
    const char *needed; /* hint when it is missing; NULL: it is optional */
};

void read_fields(struct reader *rd, const struct json *v, void *into,
                 const struct field *fields, size_t n);
#define READ_FIELDS(rd, v, into, fields) \
    read_fields(rd, v, into, fields, sizeof(fields) / sizeof(*(fields)))

/* Check that v is an object, then read its fields. `what` names it in
 * problems. */
void read_object(struct reader *rd, const struct json *v, void *into,
                 const char *what, const struct field *fields, size_t n);
#define READ_OBJECT(rd, v, into, what, fields) \
    read_object(rd, v, into, what, fields, sizeof(fields) / sizeof(*(fields)))

/* Values. Each function reports a problem and leaves *out unchanged if v is
 * invalid. */

bool is_object(struct reader *rd, const struct json *v, const char *what);
void *reader_array(struct reader *rd, size_t n, size_t size);
bool keep_str(struct reader *rd, struct str s, struct str *out);

void read_text_value(struct reader *rd, const struct json *v, size_t max,
                     struct str *out);
/* *out: the index of the name. */
bool read_choice_value(struct reader *rd, const struct json *v,
                       const struct str *names, size_t n, size_t *out);
void read_agent_value(struct reader *rd, const struct json *v, struct str *out);

/* A bit for the index of each name. */
void read_bits_value(struct reader *rd, const struct json *v,
                     const struct str *names, size_t n, uint8_t *out);
/* The closest of `names` to `text`, and all of them as "A, B" in `all`. Empty
 * names are skipped. */
struct str_guess guess_name(struct str text, const struct str *names, size_t n,
                            char *all, size_t size);

/* The parts of the file. */
void read_agents_section(struct reader *rd, const struct json *v);
void read_channels(struct reader *rd, const struct json *v);
void read_about(struct reader *rd, const struct json *root);
void read_rule_sections(struct reader *rd, const struct json *root);
/* Conditions. */
void read_when(struct reader *rd, const struct json *v,
               const struct logic **out);
/* Report dependencies that wait for each other. */
void find_cycles(struct reader *rd);

#endif
