#ifndef SERVER_CONFIG_INTERNAL_H
#define SERVER_CONFIG_INTERNAL_H

/* Shared by the files of config only:
 *
 *     table.c, choosing_rows.inc, transport_table.c   the rows
 *     types.c, config_reach.c, provider.c, program.c  types of values
 *     apply.c                                         from a value to its field
 *     config_agents.c, config_bindings.c, routing.c   agents and routing
 *     transports.c, transport_rest.c                  processes and models
 *     config_show.c, account.c, reference.c           output
 *     report.c                                        problems */

#include "base/json.h"
#include "server/config/config.h"

struct setting;

/* A type of values. A new type (a file, a secret) is one more of these. */
struct setting_type {
    /* Put v into the field. ERR_BAD_CONFIG: v is not of this type or beyond
     * its limits, and the field is untouched; `allowed` describes what is
     * right. ERR_NOMEM: the arena is full. NULL for lists and maps, and for
     * values that are deferred until all sources have been read
     * (config_agents.c, config_bindings.c). */
    enum err (*read)(const struct setting *s, struct arena *a,
                     const struct json *v, void *field);
    bool (*is_same)(const struct setting *s, const void *a, const void *b);
    void (*write)(const struct setting *s, struct json_out *o,
                  const void *field);
    /* Describes the allowed values, to follow "must be". */
    void (*allowed)(const struct setting *s, struct buf *out);
    enum json_type json; /* tried for a value on the command line */
    bool is_path;        /* a relative path in the file starts at the file */
    /* Strings: whether a nonempty text is valid (NULL: any is), and whether ""
     * stands for none in a row with a default. */
    bool (*is_valid)(struct str text);
    bool may_be_empty;
};

/* The common part of types whose field is a struct str. */
#define SETTING_STR_TYPE                                      \
    .read = setting_str_read, .is_same = setting_str_is_same, \
    .write = setting_str_write, .json = JSON_STR

extern const struct setting_type type_bool, type_int, type_real, type_enum,
    type_folder, type_file, type_rules, type_address, type_name, type_host,
    type_origin, type_range, type_proxy, type_text, type_endpoint,
    type_variable, type_list, type_map, type_choice, type_word, type_workspace,
    type_env, type_env_name, type_real_or_none, type_cards, type_defaults,
    type_name_or_none, type_bindings, type_layers, type_real_or_auto;

extern const char *const model_kind_names[]; /* by enum model_kind */

struct setting_table;

/* The elements of a list or map. */
struct setting_elements {
    const struct setting_table *table; /* the members of an object, or one row
                                        * without a name */
    size_t bytes;                      /* of the struct that one fills */
    size_t min, max;
    bool is_plain; /* values, not objects */
    /* Maps: whether a name is valid, and the description of valid names, to
     * follow "must be". The name is the first member of the struct. */
    bool (*is_name)(struct str name);
    const char *name_allowed;
};

/* The field of every list, whatever its elements are. */
struct setting_list {
    const void *list;
    size_t n;
};

struct setting_list setting_list_get(const void *field);

/* Programs and models that agents run on. */
extern const struct setting_elements process_elements, model_elements;

extern const struct setting_elements binding_elements;

/* For the members `explain` and `complain` of struct setting. */
void setting_explain_range(struct str text, struct why *why);
void setting_explain_proxy(struct str text, struct why *why);
void setting_explain_endpoint(struct str text, struct why *why);
void setting_explain_variable(struct str text, struct why *why);
void setting_complain_env(const struct setting *s, const struct json *v,
                          struct why *why);
void setting_complain_layers(const struct setting *s, const struct json *v,
                             struct why *why);

enum err setting_str_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field);
bool setting_str_is_same(const struct setting *s, const void *a, const void *b);
void setting_str_write(const struct setting *s, struct json_out *o,
                       const void *field);
bool setting_list_is_same(const struct setting *s, const void *a,
                          const void *b);
void setting_list_write(const struct setting *s, struct json_out *o,
                        const void *field);

/* An object with all members of a table, from the struct at base. */
void setting_members_write(const struct setting_table *t, struct json_out *o,
                           const void *base);

/* One row. Everything is constant. */
struct setting {
    const char *path; /* "http.maxBodyBytes" */
    size_t offset;    /* of the field in the struct it fills */
    const struct setting_type *type;
    const char *preset;       /* the default, as JSON; NULL: required */
    int64_t min, max;         /* of numbers; of a text, in bytes */
    const char *unit;         /* integers: "bytes", "milliseconds" */
    const char *const *names; /* enums: in the order of their numbers, NULL
                               * at the end */
    const struct setting_elements *elements; /* lists */
    bool is_portless;                        /* ranges without a port */
    const char *flag;                        /* a flag of its own, "--listen" */
    bool needs_restart;
    /* Explains why a string was rejected, or leaves why empty. May be NULL;
     * then the message says only what is allowed. */
    void (*explain)(struct str text, struct why *why);
    /* The same for any value, including the name of the setting. */
    void (*complain)(const struct setting *s, const struct json *v,
                     struct why *why);
    const char *what; /* a sentence */
};

/* The rows that fill one struct. The elements of a list have a table of their
 * own. */
struct setting_table {
    const struct setting *rows;
    size_t n;
};

enum {
    CONFIG_AGENTS_MAX = 1000,
    CONFIG_BYTES_MAX = 64 * 1024 * 1024, /* memory of one configuration */
    SETTINGS_MAX = 192,                  /* rows in a table */
    SETTING_STR_MAX = 4096,              /* bytes in a string value */
    SETTING_VARIABLE_BYTES = sizeof(((struct config_setting *)0)->variable),
};

extern const struct setting_table config_settings;

/* Appends the names: "id", "url" and "title" (optional). */
void setting_add_names(const struct setting_table *t, struct buf *out);

/* NULL: there is no such path. */
const struct setting *setting_find(const struct setting_table *t,
                                   struct str path);

/* "embed.http" of "embed.http.url"; points into path. */
struct str setting_section(const char *path);

/* Close and open JSON objects until *now is `to`. Both are dotted paths. */
void setting_move_to(struct json_out *o, struct str *now, struct str to);

/* "SIGNALBOX_HTTP__MAX_BODY_BYTES" for "http.maxBodyBytes"; truncated when it
 * does not fit. */
void setting_variable(struct str path, char out[SETTING_VARIABLE_BYTES]);

/* Read only after all sources. */
static inline bool setting_is_deferred(const struct setting *s)
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

/* The position of a value. */
struct value_pos {
    enum origin from;
    struct str name; /* the file, the variable or the flag */
    bool has_line;
    size_t at, key_at; /* the value and its name, in the text of the file */
    struct str inside; /* the list element: "agents.list[2]" */
};

/* The position of a row's value, once the text is gone. */
struct config_pos {
    enum origin from;
    struct str name;
    unsigned line, col; /* zero: none */
};

/* Collects problems in out, which is borrowed. */
struct reporter {
    struct config_report *out;
    struct str text; /* the file, to find lines in */
};

enum {
    REPORT_WORDS_BYTES = 512, /* one problem, without its position */
    QUOTED_MAX = 48,          /* bytes shown of a wrong value */
};

void report_error(struct reporter *r, struct value_pos at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void report_warning(struct reporter *r, struct value_pos at, const char *fmt,
                    ...) PRINTF_LIKE(3, 4);
/* Further problems are only counted, so callers can skip the search for a good
 * message. A file of a million mistakes must not take an hour. */
bool report_is_full(const struct reporter *r);

void report_no_memory(struct reporter *r, struct value_pos at);

/* Report how many did not fit. Called once, at the end. */
void report_end(struct reporter *r);

/* quote: a string as JSON, shortened. value_words: any value, in a few words.
 */
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
    struct value_pos where[SETTINGS_MAX];      /* where each row was set last */
    const struct json *deferred[SETTINGS_MAX]; /* values read at the end */
    bool has_bad_agents;     /* some of agents.list were not read */
    bool has_bad_transports; /* some of processes or models were not read */
    struct transport_ref *transports;  /* of each agent */
    struct process_def *own_processes; /* c->processes.list while it grows */
    size_t n_processes;                /* defined in `processes` */
};

/* Read every member of obj, a setting of t below prefix, into base. */
void load_walk(struct load *l, const struct setting_table *t, void *base,
               struct str prefix, struct value_pos at, const struct json *obj);

/* Read one setting from the text of a variable or of the command line. */
void load_one(struct load *l, const struct setting_table *t, void *base,
              struct str path, struct value_pos at, struct str text);

/* Read an object into base. A missing member gets its default; without one it
 * is reported. */
void load_object(struct load *l, const struct setting_table *t, void *base,
                 struct value_pos at, const struct json *v);

/* Copy text into the configuration, with a NUL behind it. False after a report:
 * there is no memory. */
bool load_keep(struct load *l, struct value_pos at, struct str text,
               struct str *out);

/* Make a written path one that open() takes. False after a report. */
bool load_path(struct load *l, struct value_pos at, struct str *path);

/* Read the agents. Called once, after all sources. */
void load_agents(struct load *l);

/* Read the bindings, and resolve the agents that they and agents.default name.
 */
void load_bindings(struct load *l);

/* Read `default` in the entries of agents.list. */
void load_default(struct load *l, const struct json *list, struct value_pos at);

/* Check routing across rows, and read its key. Called at the end. */
void load_routing(struct load *l);

/* " in line 3" for an offset in the text of `at`; empty for a source without
 * lines. */
void load_line(const struct load *l, struct value_pos at, size_t offset,
               char out[32]);

/* Read a secret into *key: from the variable that a setting names, never from
 * the file. */
void load_secret(struct load *l, const char *setting, struct str variable,
                 struct str *key);

/* An entry of agents.list, and agents.defaults. */
struct entry {
    const struct json *v, *defaults; /* defaults may be NULL */
    struct value_pos at, defaults_at;
    size_t i;
};

/* Put an entry's process, model and workspace into a->url and c->processes. */
void load_transport(struct load *l, const struct entry *e, struct agent *a);

/* Called before the first. Makes room for n definitions of agents' own. False:
 * the defaults cannot be used. */
bool load_transports_begin(struct load *l, const struct json *defaults,
                           struct value_pos at, size_t n);

/* Called after the last: checks that every named process and model exists. */
void load_transports_end(struct load *l);

/* Check processes and models across rows, and read what they get from the
 * environment. Called at the end. */
void load_definitions(struct load *l);

/* Where a setting was set last. */
struct value_pos load_where(const struct load *l, const char *path);

/* Whether requests to the URL leave this machine in plain text. */
bool load_is_exposed(struct str url);

/* The concatenation, in the scratch arena; empty when it is full. */
struct str load_join(struct load *l, struct str head, struct str tail);

#endif
