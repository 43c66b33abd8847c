/* Moves a written value into its field.
 *
 * Every source ends in setting_apply(), which takes a path, a JSON value and
 * its position. Text from the environment and the command line becomes JSON
 * first. A setting with an error keeps its earlier value, so that later checks
 * see something sensible and do not report the same mistake twice. The elements
 * of a list are walked like a file of their own, each with a position that
 * names the element. */
#include <stdio.h>

#include "server/config/internal.h"

enum { PATH_BYTES = 256 /* a dotted path */ };

const struct setting *setting_find(const struct setting_table *t,
                                   struct str path)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(str_of(t->rows[i].path), path))
            return &t->rows[i];
    return NULL;
}

/* Whether some rows lie below this path. */
static bool is_section(const struct setting_table *t, struct str path)
{
    for (size_t i = 0; i < t->n; i++) {
        struct str row = str_of(t->rows[i].path);

        if (row.n > path.n && str_starts(row, path) && row.p[path.n] == '.')
            return true;
    }
    return false;
}

static struct str path_last_part(struct str path)
{
    size_t from = path.n;

    while (from && path.p[from - 1] != '.')
        from--;
    return str_sub(path, from, path.n);
}

/* The row or section that was probably meant; empty when nothing is near. The
 * last part is compared alone too: "maxBodyBytes" outside "http" is a likely
 * slip. */
static struct str setting_nearest(const struct setting_table *t,
                                  struct str written)
{
    struct str_guess g = str_guess(path_last_part(written));

    for (size_t i = 0; i < t->n; i++) {
        struct str path = str_of(t->rows[i].path);
        struct str section = str_sub(path, 0, str_find(path, '.', 0));

        str_guess_offer(&g, section, str_distance(written, section));
        str_guess_offer(&g, path, str_distance(written, path));
        str_guess_offer(
            &g, path,
            str_distance(path_last_part(written), path_last_part(path)) + 1);
    }
    return g.name;
}

/* The path as a user writes it: "agents.list[2].url". */
struct full_path {
    char text[PATH_BYTES + 64];
};

static struct full_path full_path(struct value_pos at, struct str path)
{
    /* An element without a name passes its error text, with a blank in front.
     */
    bool is_path = path.n && path.p[0] != ' ';
    struct full_path s;

    snprintf(s.text, sizeof(s.text), "%.*s%s%.*s", STR_ARG(at.inside),
             at.inside.n && is_path ? "." : "", STR_ARG(path));
    return s;
}

/* Removed settings, and what to do instead. */
static const char *removed_setting(const struct setting_table *t,
                                   struct str path)
{
    static const struct {
        const char *path, *instead;
    } rows[] = {
        {"embed.second",
         "leave it out: embed.kind \"builtin\", the default, runs its "
         "transformer where its table is unsure, and embed.secondMargin "
         "sets when; embed.kind selects any other model, which runs alone"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (t == &config_settings && str_eq(path, str_of(rows[i].path)))
            return rows[i].instead;
    return NULL;
}

static void report_unknown(struct load *l, const struct setting_table *t,
                           struct value_pos at, struct str path)
{
    struct quoted name = quote(str_of(full_path(at, path).text));
    const char *instead = removed_setting(t, path);
    struct str meant = {0};
    struct buf names;

    if (!instead && !report_is_full(&l->report))
        meant = setting_nearest(t, path);
    at.at = at.key_at;
    if (instead) {
        report_error(&l->report, at, "the setting %s was removed; %s",
                     name.text, instead);
    } else if (meant.n) {
        report_error(&l->report, at, "unknown setting %s; did you mean \"%s\"?",
                     name.text, full_path(at, meant).text);
    } else if (!at.inside.n) {
        report_error(&l->report, at,
                     "unknown setting %s; signalbox help config lists all of "
                     "them",
                     name.text);
    } else {
        buf_init(&names, REPORT_WORDS_BYTES);
        setting_add_names(t, &names);
        report_error(&l->report, at, "unknown setting %s; there are %.*s",
                     name.text, STR_ARG(buf_str(&names)));
        buf_fini(&names);
    }
}

/* Values. */

static bool real_is_integral(double d)
{
    return d >= -1e15 && d <= 1e15 && d == (double)(int64_t)d;
}

static void report_wrong_value(struct load *l, const struct setting *s,
                               struct value_pos at, const struct json *v)
{
    struct why why = {""};
    struct buf allowed;

    if (s->complain)
        s->complain(s, v, &why);
    if (why.text[0]) {
        report_error(&l->report, at, "%s",
                     full_path(at, str_of(why.text)).text);
        return;
    }
    if (s->explain && v->type == JSON_STR && v->s.n) {
        s->explain(v->s, &why);
        if (why.text[0]) {
            report_error(&l->report, at, "%s: %s",
                         full_path(at, str_of(s->path)).text, why.text);
            return;
        }
    }
    buf_init(&allowed, REPORT_WORDS_BYTES);
    s->type->allowed(s, &allowed);
    /* "must be a whole number, not 1000" does not help. */
    if (s->type->json == JSON_INT && v->type == JSON_REAL &&
        real_is_integral(v->d))
        report_error(&l->report, at,
                     "%s must be %.*s, written without point or exponent: "
                     "%.0f",
                     full_path(at, str_of(s->path)).text,
                     STR_ARG(buf_str(&allowed)), v->d);
    else
        report_error(&l->report, at, "%s must be %.*s, not %s",
                     full_path(at, str_of(s->path)).text,
                     STR_ARG(buf_str(&allowed)), value_words(v).text);
    buf_fini(&allowed);
}

struct str load_join(struct load *l, struct str head, struct str tail)
{
    char *p = arena_alloc(&l->scratch, head.n + tail.n + 1);

    if (!p)
        return (struct str){0};
    if (head.n)
        memcpy(p, head.p, head.n);
    if (tail.n)
        memcpy(p + head.n, tail.p, tail.n);
    return (struct str){p, head.n + tail.n};
}

bool load_keep(struct load *l, struct value_pos at, struct str text,
               struct str *out)
{
    bool is_kept = arena_keep(&l->c->arena, text, out);

    if (!is_kept)
        report_no_memory(&l->report, at);
    return is_kept;
}

bool load_path(struct load *l, struct value_pos at, struct str *path)
{
    const char *home = config_env(l->environ, "HOME");
    struct str whole = *path, folder = str_parent(at.name);

    if (path->n == 0)
        return true; /* the setting itself reports it */
    if (str_starts(*path, STR("~/")) || str_eq(*path, STR("~"))) {
        if (!home || !*home) {
            report_error(
                &l->report, at,
                "%s begins with ~ but HOME is not set; write the whole "
                "path",
                quote(*path).text);
            return false;
        }
        whole = load_join(l, str_of(home), str_sub(*path, 1, path->n));
    } else if (at.from == FROM_FILE && !str_starts(*path, STR("/")) &&
               !str_eq(folder, STR("."))) {
        whole = load_join(l, load_join(l, folder, STR("/")), *path);
    }
    if (!whole.p) {
        report_no_memory(&l->report, at);
        return false;
    }
    *path = whole;
    return true;
}

/* Reads one value of one row. True: it is in its field. */
static bool read_value(struct load *l, void *base, const struct setting *s,
                       struct value_pos at, const struct json *v)
{
    bool is_word = s->type == &type_rules && v->type == JSON_STR &&
                   str_eq(v->s, STR(CONFIG_RULES_AUTO));
    struct json resolved = *v;
    enum err e;

    if (s->type->is_path && v->type == JSON_STR && !is_word &&
        !load_path(l, at, &resolved.s))
        return false;
    e = s->type->read(s, &l->c->arena, &resolved, setting_field(s, base));
    if (e == ERR_BAD_CONFIG)
        report_wrong_value(l, s, at, v);
    else if (e)
        report_no_memory(&l->report, at);
    return !e;
}

/* The offset of a member's name. A name that was written with escapes is not
 * part of the text; its value's offset serves then. */
static size_t member_name_offset(struct str text, const struct json *member)
{
    uintptr_t from = (uintptr_t)text.p, key = (uintptr_t)member->key.p;

    return key > from && key < from + text.n ? key - from - 1 : member->at;
}

/* Lists. */

/* Whether the object has a value for the path, or another value in its way,
 * which has been reported. */
static bool path_is_written(const struct json *obj, struct str path)
{
    while (obj && obj->type == JSON_OBJ && path.n)
        obj = json_get(obj, str_cut(&path, '.'));
    return obj != NULL;
}

/* Gives missing members their defaults, and reports those without one. */
static void read_missing_members(struct load *l, const struct setting_table *t,
                                 void *base, struct value_pos at,
                                 const struct json *obj)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *s = &t->rows[i];

        if (path_is_written(obj, str_of(s->path)))
            continue;
        if (s->preset)
            load_one(l, t, base, str_of(s->path), at, str_of(s->preset));
        else
            report_error(&l->report, at, "%.*s has no \"%s\"",
                         STR_ARG(at.inside), s->path);
    }
}

void load_object(struct load *l, const struct setting_table *t, void *base,
                 struct value_pos at, const struct json *v)
{
    if (v->type != JSON_OBJ) {
        report_error(&l->report, at, "%.*s must be an object, { ... }, not %s",
                     STR_ARG(at.inside), value_words(v).text);
        return;
    }
    load_walk(l, t, base, (struct str){0}, at, v);
    read_missing_members(l, t, base, at, v);
}

/* Memory for all elements. NULL after a report: there are too many or too few,
 * or there is no memory. */
static char *elements_alloc(struct load *l, const struct setting *s,
                            struct value_pos at, const struct json *v)
{
    const struct setting_elements *e = s->elements;
    char *list = NULL;

    if (v->kids.n > e->max)
        report_error(&l->report, at, "%s may have up to %zu elements, not %zu",
                     full_path(at, str_of(s->path)).text, e->max, v->kids.n);
    else if (v->kids.n < e->min)
        report_error(&l->report, at, "%s must have at least %zu element%s",
                     full_path(at, str_of(s->path)).text, e->min,
                     e->min == 1 ? "" : "s");
    else if (!(list = arena_array(&l->c->arena, v->kids.n + 1, e->bytes)))
        report_no_memory(&l->report, at);
    return list;
}

static bool read_setting_list(struct load *l, void *base,
                              const struct setting *s, struct value_pos at,
                              const struct json *v)
{
    const struct setting_elements *e = s->elements;
    unsigned n_errors = l->report.out->n_errors;
    struct setting_list got = {NULL, 0};
    struct value_pos inner = at;
    char *list;

    if (v->type != JSON_ARR) {
        report_wrong_value(l, s, at, v);
        return false;
    }
    list = elements_alloc(l, s, at, v);
    if (!list)
        return false;
    JSON_EACH(kid, v)
    {
        char inside[PATH_BYTES + 96];
        char *to = list + got.n * e->bytes;

        snprintf(inside, sizeof(inside), "%s[%zu]",
                 full_path(at, str_of(s->path)).text, got.n++);
        inner.at = inner.key_at = kid->at;
        inner.inside = str_of(inside);
        if (e->is_plain)
            read_value(l, to, &e->table->rows[0], inner, kid);
        else
            load_object(l, e->table, to, inner, kid);
    }
    if (l->report.out->n_errors > n_errors)
        return false;
    got.list = list;
    memcpy(setting_field(s, base), &got, sizeof(got));
    return true;
}

/* Objects by name. */

static bool element_name_is_taken(const struct setting_elements *e,
                                  const char *list, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(*(const struct str *)(list + i * e->bytes), name))
            return true;
    return false;
}

/* Reads the name of an object into its first member. */
static bool read_element_name(struct load *l, const struct setting *s,
                              struct value_pos at, struct str key, char *list,
                              size_t n)
{
    const struct setting_elements *e = s->elements;
    struct str *name = (struct str *)(list + n * e->bytes);

    *name = STR("");
    at.at = at.key_at;
    if (!e->is_name(key))
        report_error(&l->report, at, "%s has the name %s; it must be %s",
                     s->path, quote(key).text, e->name_allowed);
    else if (element_name_is_taken(e, list, n, key))
        report_error(&l->report, at,
                     "%s has %s and another name that differs only in case",
                     s->path, quote(key).text);
    else
        return load_keep(l, at, key, name);
    return false;
}

static bool read_setting_map(struct load *l, void *base,
                             const struct setting *s, struct value_pos at,
                             const struct json *v)
{
    const struct setting_elements *e = s->elements;
    unsigned n_errors = l->report.out->n_errors;
    struct setting_list got = {NULL, 0};
    struct value_pos inner = at;
    char *list = NULL;

    if (v->type != JSON_OBJ)
        report_wrong_value(l, s, at, v);
    else
        list = elements_alloc(l, s, at, v);
    for (struct json *kid = list ? v->kids.first : NULL; kid; kid = kid->next) {
        char inside[PATH_BYTES];

        inner.at = kid->at;
        inner.key_at = member_name_offset(l->report.text, kid);
        if (read_element_name(l, s, inner, kid->key, list, got.n)) {
            snprintf(inside, sizeof(inside), "%s.%.*s", s->path,
                     STR_ARG(kid->key));
            inner.inside = str_of(inside);
            load_object(l, e->table, list + got.n * e->bytes, inner, kid);
        }
        got.n++;
    }
    if (!list || l->report.out->n_errors > n_errors) {
        l->has_bad_transports = true;
        return false;
    }
    got.list = list;
    memcpy(setting_field(s, base), &got, sizeof(got));
    return true;
}

/* Keeps a value until all sources have been read. Only its type is checked now.
 */
static bool defer_value(struct load *l, const struct setting *s,
                        struct value_pos at, const struct json *v)
{
    const struct json **kept = &l->deferred[s - config_settings.rows];

    *kept = v->type == s->type->json ? v : NULL;
    if (!*kept)
        report_wrong_value(l, s, at, v);
    return *kept != NULL;
}

static void setting_apply_row(struct load *l, const struct setting_table *t,
                              void *base, const struct setting *s,
                              struct value_pos at, const struct json *v)
{
    struct value_pos *where =
        t == &config_settings ? &l->where[s - t->rows] : NULL;
    bool is_read;

    if (where && at.from == FROM_ENV && where->from == FROM_ENV) {
        report_error(&l->report, at, "%s is set by %.*s too; keep one of them",
                     s->path, STR_ARG(where->name));
        return;
    }
    if (setting_is_deferred(s))
        is_read = defer_value(l, s, at, v);
    else if (s->type == &type_map)
        is_read = read_setting_map(l, base, s, at, v);
    else if (s->elements)
        is_read = read_setting_list(l, base, s, at, v);
    else
        is_read = read_value(l, base, s, at, v);
    if (!where)
        return; /* part of a list, which is one setting */
    if (is_read)
        *where = at;
    l->c->n_from_file += at.from == FROM_FILE;
    l->c->n_from_env += at.from == FROM_ENV;
    l->c->n_from_flags += at.from == FROM_FLAG;
}

static void setting_apply(struct load *l, const struct setting_table *t,
                          void *base, struct str path, struct value_pos at,
                          const struct json *v)
{
    const struct setting *s = setting_find(t, path);

    if (s)
        setting_apply_row(l, t, base, s, at, v);
    else if (!is_section(t, path))
        report_unknown(l, t, at, path);
    else if (v->type == JSON_OBJ)
        load_walk(l, t, base, path, at, v);
    else
        report_error(&l->report, at,
                     "%s is a group of settings, { ... }, not %s",
                     full_path(at, path).text, value_words(v).text);
}

/* Every member of an object is a setting or a group. Only groups of the table
 * are entered, which bounds the depth. */
void load_walk(struct load *l, const struct setting_table *t, void *base,
               struct str prefix, struct value_pos at, const struct json *obj)
{
    JSON_EACH(kid, obj)
    {
        char path[PATH_BYTES];
        int n;

        at.at = kid->at;
        at.key_at = member_name_offset(l->report.text, kid);
        if (str_find(kid->key, '.', 0) < kid->key.n &&
            (!at.inside.n || setting_find(t, kid->key))) {
            report_error(&l->report, at,
                         "%s has a dot in it; write groups as objects, "
                         "\"http\": { ... }",
                         quote(kid->key).text);
            continue;
        }
        n = snprintf(path, sizeof(path), "%.*s%s%.*s", STR_ARG(prefix),
                     prefix.n ? "." : "", STR_ARG(kid->key));
        if (n < 0 || (size_t)n >= sizeof(path))
            report_error(&l->report, at, "unknown setting %s",
                         quote(kid->key).text);
        else
            setting_apply(l, t, base, (struct str){path, (size_t)n}, at, kid);
    }
}

/* The text as JSON if that gives the wanted type, else as a string: --set
 * log.level=debug needs no quotes. NULL: out of memory. */
static struct json *json_from_text(struct load *l, enum json_type wanted,
                                   struct str text)
{
    struct json *v = json_parse(&l->scratch, text, 0, NULL);

    if (v &&
        (v->type == wanted || (v->type == JSON_REAL && wanted == JSON_INT) ||
         (v->type == JSON_INT && wanted == JSON_REAL) ||
         (v->type == JSON_STR && wanted == JSON_REAL)))
        return v;
    if (!v && json_check(text, NULL) == OK)
        return NULL;
    v = arena_alloc(&l->scratch, sizeof(*v));
    if (v)
        *v = (struct json){.type = JSON_STR, .s = text};
    return v;
}

void load_one(struct load *l, const struct setting_table *t, void *base,
              struct str path, struct value_pos at, struct str text)
{
    const struct setting *s = setting_find(t, path);
    struct json_error err = {0};
    struct json *v;

    /* A bare word cannot be a list. */
    if (s && (s->elements || setting_is_deferred(s)) &&
        json_check(text, &err) == ERR_SYNTAX) {
        report_error(&l->report, at, "%s must be JSON, %s: %s (character %zu)",
                     s->path, s->type->json == JSON_OBJ ? "{ ... }" : "[ ... ]",
                     err.what, err.at + 1);
        return;
    }
    v = json_from_text(l, s ? s->type->json : JSON_OBJ, text);
    if (v)
        setting_apply(l, t, base, path, at, v);
    else
        report_no_memory(&l->report, at);
}
