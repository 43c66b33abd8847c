#ifndef GATE_READER_H
#define GATE_READER_H

/* What the files that read rules share: where we are in the file, the words for
 * what is wrong with it (problem.c), values (values.c), and tables of fields
 * that say what an object may have in it. */

#include "gate/internal.h"

struct reader {
    struct gate_rules *rules;
    struct arena *arena; /* of the rules */
    struct str text;     /* the file */
    struct gate_problems *problems;
    bool is_out_of_memory;
    struct map agents; /* lower case -> its declaration, a struct agent_line */
    struct map names;  /* of rules -> struct rule */
    const char *what;  /* being read: "a safety gate" */
    struct str rule;   /* its name; empty: no rule, or none is known */
};

/* An agent as it is declared. */
struct agent_line {
    struct str name;
    struct str folded; /* in lower case: the key */
    struct gate_revival revival;
    size_t at, backup_at;
};

/* Problems. `at` is an offset in the text. */
void problem_add(struct reader *rd, size_t at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void problem_end(struct gate_problems *p);

/* Nobody reads more of them: good words need not be looked for. */
static inline bool problem_is_full(const struct reader *rd)
{
    return rd->problems->n >= GATE_PROBLEMS_MAX;
}

/* What somebody wrote, as JSON and shortened: it stays on its line. */
struct shown {
    char text[48 * 6 + 8];
};
struct shown show(struct str s);
struct shown show_value(const struct json *v);

/* Where the name of a member stands. */
size_t key_at(const struct reader *rd, const struct json *member);

/* Fields: what an object may have in it. `read` puts one into `into`. */
struct field {
    const char *name;
    void (*read)(struct reader *rd, const struct json *v, void *into);
    const char *needed; /* what to do where it is missing; NULL: it may be */
};

void read_fields(struct reader *rd, const struct json *v, void *into,
                 const struct field *fields, size_t n);
#define READ_FIELDS(rd, v, into, fields) \
    read_fields(rd, v, into, fields, sizeof(fields) / sizeof(*(fields)))

/* Values. Each says what is wrong and leaves *out as it is where v is none. */

bool is_object(struct reader *rd, const struct json *v, const char *what);
void *reader_array(struct reader *rd, size_t n, size_t size);
bool keep_str(struct reader *rd, struct str s, struct str *out);

void read_text(struct reader *rd, const struct json *v, size_t max,
               struct str *out);
void read_int(struct reader *rd, const struct json *v, int64_t min, int64_t max,
              int64_t *out);
enum duration_zero { ZERO_IS_WRONG, ZERO_IS_NEVER };
void read_duration(struct reader *rd, const struct json *v,
                   enum duration_zero zero, int64_t *out);
/* The number of the name that it is. */
bool read_choice(struct reader *rd, const struct json *v,
                 const struct str *names, size_t n, size_t *out);
void read_agent(struct reader *rd, const struct json *v, struct str *out);
/* One string or a list of them. */
void read_agents(struct reader *rd, const struct json *v, struct strs *out);
void read_kinds(struct reader *rd, const struct json *v, struct strs *out);
/* A bit for the number of each name. */
void read_bits(struct reader *rd, const struct json *v, const struct str *names,
               size_t n, uint8_t *out);
void read_expiry(struct reader *rd, const struct json *v,
                 enum pass_expiry *out);

struct str rules_section(enum section s); /* "safety_gates" */

/* The parts of the file. */
void read_agents_section(struct reader *rd, const struct json *v);
void read_channels(struct reader *rd, const struct json *v);
void read_about(struct reader *rd, const struct json *root);
void read_rules(struct reader *rd, const struct json *root);
/* Conditions. */
void read_when(struct reader *rd, const struct json *v,
               const struct logic **out);
/* Dependencies that wait for each other. */
void find_cycles(struct reader *rd);

#endif
