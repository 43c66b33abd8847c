#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

/* What config.c, table.c and report.c share and nobody else sees: the rows,
 * how each type of value is read, compared and written, and the words for what
 * is wrong. */

#include "base/json.h"
#include "config/config.h"

struct setting;

/* What a type can do. A new type (a list, a file) is one more of these. */
struct setting_type {
    /* Put v into the field. ERR_BAD_CONFIG: v is none of this type or beyond
     * its limits, and the field is untouched; the words for it come from
     * setting_allowed. ERR_NOMEM: the arena is full. */
    enum err (*read)(const struct setting *s, struct arena *a,
                     const struct json *v, void *field);
    bool (*is_same)(const void *a, const void *b);
    void (*write)(const struct setting *s, struct json_out *o,
                  const void *field);
    /* What is allowed, to stand behind "must be". */
    void (*allowed)(const struct setting *s, struct buf *out);
    enum json_type json; /* what a value on the command line is tried as */
    bool is_folder;      /* relative paths in the file begin at the file */
};

/* One row. Everything is constant. */
struct setting {
    const char *path; /* "http.maxBodyBytes" */
    size_t offset;    /* of the field in the struct it fills */
    const struct setting_type *type;
    const char *preset;       /* the default, as JSON */
    int64_t min, max;         /* integers */
    const char *unit;         /* integers: "bytes", "milliseconds" */
    const char *const *names; /* enums: in the order of their numbers, NULL
                               * at the end */
    const char *flag;         /* a flag of its own, "--listen" */
    bool needs_restart;
    const char *what; /* a sentence */
};

/* The rows that fill one struct. The walk over a document is given one, so
 * that the elements of a list can have a table of their own. */
struct setting_table {
    const struct setting *rows;
    size_t n;
};

enum {
    SETTINGS_MAX = 128,     /* rows in a table */
    SETTING_STR_MAX = 4096, /* bytes in a string value */
    SETTING_VARIABLE_BYTES = sizeof(((struct config_setting *)0)->variable),
};

extern const struct setting_table config_settings;

/* "SIGNALBOX_HTTP__MAX_BODY_BYTES" for "http.maxBodyBytes"; cut when it does
 * not fit. */
void setting_variable(struct str path, char out[SETTING_VARIABLE_BYTES]);

static inline void *setting_field(const struct setting *s, void *base)
{
    return (char *)base + s->offset;
}

static inline const void *setting_look(const struct setting *s,
                                       const void *base)
{
    return (const char *)base + s->offset;
}

/* The report. */

enum origin { FROM_DEFAULT, FROM_FILE, FROM_ENV, FROM_FLAG };

/* Where a value stands. */
struct place {
    enum origin from;
    struct str name; /* the file, the variable or the flag */
    bool has_line;
    size_t at, key_at; /* the value and its name, in the text of the file */
};

/* Collects problems; out is the caller's. */
struct reporter {
    struct config_report *out;
    struct str text;     /* of the file, to find lines in */
    unsigned n_left_out; /* problems there was no room for */
};

enum {
    REPORT_WORDS_BYTES = 512, /* one problem, without its place */
    QUOTED_MAX = 48,          /* of a value that is wrong, this much is shown */
};

void report_error(struct reporter *r, struct place at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void report_warning(struct reporter *r, struct place at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* From here on problems are only counted: no need to look for good words. A
 * file of a million mistakes must not take an hour. */
bool report_is_full(const struct reporter *r);

void report_no_memory(struct reporter *r, struct place at);

/* Say how many did not fit. Once, at the end. */
void report_end(struct reporter *r);

/* A string as JSON, shortened; and any value in a few words. */
struct quoted {
    char text[QUOTED_MAX * 6 + 8]; /* each byte may become \u0000 */
};

struct quoted quote(struct str s);
struct quoted value_words(const struct json *v);

#endif
