#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

/* What the files of config share and nobody else sees: the rows (table.c), how
 * each type of value is read, compared and written (types.c, reach.c,
 * provider.c, program.c, agents.c, bindings.c, routing.c), what programs and
 * models agents are made of (roads.c), how they are shown (show.c,
 * reference.c), how a value gets from where it is written to its field
 * (apply.c), and the words for what is wrong (report.c). */

#include "base/json.h"
#include "config/config.h"

struct setting;

/* What a type can do. A new type (a file, a secret) is one more of these. */
struct setting_type {
    /* Put v into the field. ERR_BAD_CONFIG: v is none of this type or beyond
     * its limits, and the field is untouched; the words for it come from
     * `allowed`. ERR_NOMEM: the arena is full. NULL for lists, and for what
     * is only kept until all sources were read (agents.c, bindings.c). */
    enum err (*read)(const struct setting *s, struct arena *a,
                     const struct json *v, void *field);
    bool (*is_same)(const struct setting *s, const void *a, const void *b);
    void (*write)(const struct setting *s, struct json_out *o,
                  const void *field);
    /* What is allowed, to stand behind "must be". */
    void (*allowed)(const struct setting *s, struct buf *out);
    enum json_type json; /* what a value on the command line is tried as */
    bool is_path;        /* relative ones in the file begin at the file */
};

extern const struct setting_type type_bool, type_int, type_real, type_enum,
    type_folder, type_file, type_rules, type_address, type_name, type_host,
    type_origin, type_range, type_proxy, type_text, type_endpoint,
    type_variable, type_list, type_map, type_choice, type_word, type_workspace,
    type_env, type_env_name, type_real_or_none, type_cards, type_defaults,
    type_name_or_none, type_bindings, type_layers, type_real_or_auto;

extern const char *const model_kind_names[]; /* by enum model_kind */

struct setting_table;

/* What a list is made of. */
struct setting_elements {
    const struct setting_table *table; /* the members of an object, or one row
                                        * without a name */
    size_t bytes;                      /* of the struct that one fills */
    size_t min, max;
    bool is_plain; /* values, no objects */
    /* Of an object by name: what may be one, to stand behind "must be". The
     * name is the first member of the struct. */
    bool (*is_name)(struct str name);
    const char *name_allowed;
};

/* The field of every list, whatever is in it. */
struct setting_list {
    const void *list;
    size_t n;
};

struct setting_list setting_list_get(const void *field);

/* What agents are made of. */
extern const struct setting_elements process_elements, model_elements;

/* Who answers where. */
extern const struct setting_elements binding_elements;

/* As struct setting has it. */
void setting_explain_range(struct str text, struct why *why);
void setting_explain_proxy(struct str text, struct why *why);
void setting_explain_endpoint(struct str text, struct why *why);
void setting_explain_variable(struct str text, struct why *why);
void setting_complain_env(const struct setting *s, const struct json *v,
                          struct why *why);
void setting_complain_layers(const struct setting *s, const struct json *v,
                             struct why *why);

/* For every type whose field is a struct str. */
enum err setting_str_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field);
bool setting_str_is_same(const struct setting *s, const void *a, const void *b);
void setting_str_write(const struct setting *s, struct json_out *o,
                       const void *field);

/* One row. Everything is constant. */
struct setting {
    const char *path; /* "http.maxBodyBytes" */
    size_t offset;    /* of the field in the struct it fills */
    const struct setting_type *type;
    const char *preset;       /* the default, as JSON; NULL: it is needed */
    int64_t min, max;         /* numbers; max: of a text, its bytes */
    const char *unit;         /* integers: "bytes", "milliseconds" */
    const char *const *names; /* enums: in the order of their numbers, NULL
                               * at the end */
    const struct setting_elements *elements; /* lists */
    bool is_portless;                        /* ranges: of any port */
    const char *flag;                        /* a flag of its own, "--listen" */
    bool needs_restart;
    /* What is wrong with a string that was not read, in better words than what
     * would have been right, or nothing; NULL: there are none. */
    void (*explain)(struct str text, struct why *why);
    /* The same of any value, the name of the setting included. */
    void (*complain)(const struct setting *s, const struct json *v,
                     struct why *why);
    const char *what; /* a sentence */
};

/* The rows that fill one struct. The walk over a document is given one, since
 * the elements of a list have a table of their own. */
struct setting_table {
    const struct setting *rows;
    size_t n;
};

enum {
    CONFIG_AGENTS_MAX = 1000,
    CONFIG_BYTES_MAX = 64 * 1024 * 1024, /* all that is kept of it */
    SETTINGS_MAX = 192,                  /* rows in a table */
    SETTING_STR_MAX = 4096,              /* bytes in a string value */
    SETTING_VARIABLE_BYTES = sizeof(((struct config_setting *)0)->variable),
};

extern const struct setting_table config_settings;

/* "id", "url" and "title" (optional). */
void setting_add_names(const struct setting_table *t, struct buf *out);

/* NULL when there is none of that path. */
const struct setting *setting_find(const struct setting_table *t,
                                   struct str path);

/* "embed.http" of "embed.http.url"; points into path. */
struct str setting_section(const char *path);

/* Leave and enter objects until *now is `to`. Both are dotted paths. */
void setting_move_to(struct json_out *o, struct str *now, struct str to);

/* "SIGNALBOX_HTTP__MAX_BODY_BYTES" for "http.maxBodyBytes"; cut when it does
 * not fit. */
void setting_variable(struct str path, char out[SETTING_VARIABLE_BYTES]);

static inline bool setting_is_later(const struct setting *s)
{
    return !s->type->read && s->type != &type_list && s->type != &type_map;
}

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
    struct str inside; /* of a list: "agents.list[2]" */
};

/* The same when the text is gone; one for each row. */
struct config_spot {
    enum origin from;
    struct str name;
    unsigned line, col; /* zero where there are none */
};

/* Collects problems; out is the caller's. */
struct reporter {
    struct config_report *out;
    struct str text; /* of the file, to find lines in */
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

/* Loading. */

struct load {
    struct config *c;
    struct reporter report;
    struct arena scratch;
    char *const *environ;
    struct buf file;
    struct place where[SETTINGS_MAX];       /* who set each row last */
    const struct json *later[SETTINGS_MAX]; /* to what, of what is read
                                             * at the end */
    bool has_bad_agents;               /* some of agents.list were not read */
    bool has_bad_roads;                /* and of processes or models */
    struct road_ref *roads;            /* of each agent */
    struct process_def *own_processes; /* c->processes.list, to be added to */
    size_t n_processes;                /* of them not agents' own */
};

/* Every member of obj is a setting of t, below prefix, and goes into base. */
void load_walk(struct load *l, const struct setting_table *t, void *base,
               struct str prefix, struct place at, const struct json *obj);

/* One setting, as it was written in a variable or on the command line. */
void load_one(struct load *l, const struct setting_table *t, void *base,
              struct str path, struct place at, struct str text);

/* An object by a table into base: what is not written gets its default, and
 * what has none is missed. */
void load_object(struct load *l, const struct setting_table *t, void *base,
                 struct place at, const struct json *v);

/* A path as it was written, as one that open() takes. False: that was said. */
bool load_path(struct load *l, struct place at, struct str *path);

/* What the sources say of agents. Once, after all of them. */
void load_agents(struct load *l);

/* agents.default and bindings: what they name, once agents are there. */
void load_bindings(struct load *l);

/* Where the entries of agents.list say `default`. */
void load_default(struct load *l, const struct json *list, struct place at);

/* What no row can know of routing, and its key. At the very end. */
void load_routing(struct load *l);

/* " in line 3", of an offset in what `at` is in; nothing where there are no
 * lines. */
void load_line(const struct load *l, struct place at, size_t offset,
               char out[32]);

/* The value of the variable that a setting names, into *key. */
void load_key(struct load *l, const char *setting, struct str variable,
              struct str *key);

/* Where the defaults and an entry of agents.list stand. */
struct entry {
    const struct json *v, *defaults; /* defaults may be NULL */
    struct place at, defaults_at;
    size_t i;
};

/* What an entry says of process, model and workspace, put into a->url and
 * c->processes. */
void load_road(struct load *l, const struct entry *e, struct agent *a);

/* Before the first of them: whether the defaults can be used at all. Makes room
 * for n agents' own. */
bool load_roads_begin(struct load *l, const struct json *defaults,
                      struct place at, size_t n);

/* After the last: whether every process and model that is named is there. */
void load_roads_end(struct load *l);

/* What no row can know of processes and models, and what they have from the
 * environment. At the very end. */
void load_road_rest(struct load *l);

/* Who set it last. */
struct place load_where(const struct load *l, const char *path);

/* In plain text beyond this machine, whoever listens has it all. */
bool load_is_exposed(struct str url);

/* Both in one, in the scratch; empty when memory ran out. */
struct str load_join(struct load *l, struct str head, struct str tail);

#endif
