/* From a value as it is written to its field.
 *
 * Everything that was written ends in apply(), which has a path, a JSON value
 * and the place it stands in. Values from the environment and the command line
 * become JSON first. What went wrong in one setting leaves its earlier value,
 * so that later checks look at something sensible and do not cry over the same
 * mistake twice. The elements of a list are walked like a file of their own,
 * each with a place that says which it is. */
#include <stdio.h>

#include "config/internal.h"

enum { PATH_BYTES = 256 /* a dotted path */ };

/* Finding a setting. */

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

static struct str last_part(struct str path)
{
    size_t from = path.n;

    while (from && path.p[from - 1] != '.')
        from--;
    return str_sub(path, from, path.n);
}

static unsigned min2(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How far the path that was written is from one that exists. The last part
 * counts alone too: "maxBodyBytes" outside "http" is a likely slip. */
static unsigned how_far(struct str written, struct str path)
{
    return min2(str_distance(written, path),
                str_distance(last_part(written), last_part(path)) + 1);
}

/* The row or section that was probably meant; empty when nothing is near. */
static struct str nearest(const struct setting_table *t, struct str written)
{
    struct str_guess g = str_guess(last_part(written));

    for (size_t i = 0; i < t->n; i++) {
        struct str path = str_of(t->rows[i].path);
        struct str section = str_sub(path, 0, str_find(path, '.', 0));

        str_guess_offer(&g, section, str_distance(written, section));
        str_guess_offer(&g, path, how_far(written, path));
    }
    return g.name;
}

/* A setting's path as people know it: "agents.list[2].url". */
struct shown {
    char text[PATH_BYTES + 64];
};

static struct shown shown(struct place at, struct str path)
{
    /* What is said of a value that has no name of its own is no path. */
    bool is_path = path.n && path.p[0] != ' ';
    struct shown s;

    snprintf(s.text, sizeof(s.text), "%.*s%s%.*s", STR_ARG(at.inside),
             at.inside.n && is_path ? "." : "", STR_ARG(path));
    return s;
}

/* Settings that were there once, and what to do instead. */
static const char *removed_setting(const struct setting_table *t,
                                   struct str path)
{
    static const struct {
        const char *path, *instead;
    } rows[] = {
        {"embed.second",
         "leave it out: embed.kind \"builtin\", the default, asks its "
         "transformer where its table is not sure, and embed.secondMargin "
         "says when; another model is used alone, by embed.kind"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (t == &config_settings && str_eq(path, str_of(rows[i].path)))
            return rows[i].instead;
    return NULL;
}

static void unknown(struct load *l, const struct setting_table *t,
                    struct place at, struct str path)
{
    struct quoted name = quote(str_of(shown(at, path).text));
    const char *instead = removed_setting(t, path);
    struct str meant = {0};
    struct buf names;

    if (!instead && !report_is_full(&l->report))
        meant = nearest(t, path);
    at.at = at.key_at;
    if (instead) {
        report_error(&l->report, at, "%s is no setting any more; %s", name.text,
                     instead);
        return;
    }
    if (meant.n) {
        report_error(&l->report, at, "unknown setting %s; did you mean \"%s\"?",
                     name.text, shown(at, meant).text);
        return;
    }
    if (!at.inside.n) {
        report_error(
            &l->report, at,
            "unknown setting %s; signalbox help config lists all there "
            "are",
            name.text);
        return;
    }
    buf_init(&names, REPORT_WORDS_BYTES);
    setting_add_names(t, &names);
    report_error(&l->report, at, "unknown setting %s; there are %.*s",
                 name.text, STR_ARG(buf_str(&names)));
    buf_fini(&names);
}

/* Values. */

static bool is_whole(double d)
{
    return d >= -1e15 && d <= 1e15 && d == (double)(int64_t)d;
}

static void wrong_value(struct load *l, const struct setting *s,
                        struct place at, const struct json *v)
{
    struct why why = {""};
    struct buf allowed;

    if (s->complain)
        s->complain(s, v, &why);
    if (why.text[0]) {
        report_error(&l->report, at, "%s", shown(at, str_of(why.text)).text);
        return;
    }
    if (s->explain && v->type == JSON_STR && v->s.n) {
        s->explain(v->s, &why);
        if (why.text[0]) {
            report_error(&l->report, at, "%s: %s",
                         shown(at, str_of(s->path)).text, why.text);
            return;
        }
    }
    buf_init(&allowed, REPORT_WORDS_BYTES);
    s->type->allowed(s, &allowed);
    /* "must be a whole number, not 1000" is no help. */
    if (s->type->json == JSON_INT && v->type == JSON_REAL && is_whole(v->d))
        report_error(&l->report, at,
                     "%s must be %.*s, written without point or exponent: "
                     "%.0f",
                     shown(at, str_of(s->path)).text,
                     STR_ARG(buf_str(&allowed)), v->d);
    else
        report_error(&l->report, at, "%s must be %.*s, not %s",
                     shown(at, str_of(s->path)).text,
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

/* Turn a path as written into one that open() takes. */
bool load_path(struct load *l, struct place at, struct str *path)
{
    const char *home = config_env(l->environ, "HOME");
    struct str whole = *path, folder = str_parent(at.name);

    if (path->n == 0)
        return true; /* wrong, and for the setting to say so */
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

static void count(struct load *l, enum origin from)
{
    l->c->n_from_file += from == FROM_FILE;
    l->c->n_from_env += from == FROM_ENV;
    l->c->n_from_flags += from == FROM_FLAG;
}

/* One value of one row. True when it is in its field. */
static bool read_value(struct load *l, void *base, const struct setting *s,
                       struct place at, const struct json *v)
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
        wrong_value(l, s, at, v);
    else if (e)
        report_no_memory(&l->report, at);
    return !e;
}

/* Where a member's name stands. One that was written with escapes does not
 * lie in the text; then where its value stands must do. */
static size_t key_at(struct str text, const struct json *member)
{
    uintptr_t from = (uintptr_t)text.p, key = (uintptr_t)member->key.p;

    return key > from && key < from + text.n ? key - from - 1 : member->at;
}

/* Lists. */

/* Whether there is something to be read for a row, or something that stands in
 * its way, which was said. */
static bool is_said(const struct json *obj, struct str path)
{
    while (obj && obj->type == JSON_OBJ && path.n)
        obj = json_get(obj, str_cut(&path, '.'));
    return obj != NULL;
}

/* Give what was not written its default, and miss what has none. */
static void read_rest(struct load *l, const struct setting_table *t, void *base,
                      struct place at, const struct json *obj)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *s = &t->rows[i];

        if (is_said(obj, str_of(s->path)))
            continue;
        if (s->preset)
            load_one(l, t, base, str_of(s->path), at, str_of(s->preset));
        else
            report_error(&l->report, at, "%.*s has no \"%s\"",
                         STR_ARG(at.inside), s->path);
    }
}

void load_object(struct load *l, const struct setting_table *t, void *base,
                 struct place at, const struct json *v)
{
    if (v->type != JSON_OBJ) {
        report_error(&l->report, at, "%.*s must be an object, { ... }, not %s",
                     STR_ARG(at.inside), value_words(v).text);
        return;
    }
    load_walk(l, t, base, (struct str){0}, at, v);
    read_rest(l, t, base, at, v);
}

static void read_element(struct load *l, const struct setting_elements *e,
                         void *base, struct place at, const struct json *v)
{
    if (e->is_plain)
        read_value(l, base, &e->table->rows[0], at, v);
    else
        load_object(l, e->table, base, at, v);
}

/* Room for all of them; NULL: there are too many or too few, or there is no
 * memory, which was said. */
static char *elements_for(struct load *l, const struct setting *s,
                          struct place at, const struct json *v)
{
    const struct setting_elements *e = s->elements;
    char *list = NULL;

    if (v->kids.n > e->max)
        report_error(&l->report, at, "%s may have up to %zu elements, not %zu",
                     shown(at, str_of(s->path)).text, e->max, v->kids.n);
    else if (v->kids.n < e->min)
        report_error(&l->report, at, "%s must have at least %zu element%s",
                     shown(at, str_of(s->path)).text, e->min,
                     e->min == 1 ? "" : "s");
    else if (!(list = arena_array(&l->c->arena, v->kids.n + 1, e->bytes)))
        report_no_memory(&l->report, at);
    return list;
}

static bool read_list(struct load *l, void *base, const struct setting *s,
                      struct place at, const struct json *v)
{
    const struct setting_elements *e = s->elements;
    unsigned n_errors = l->report.out->n_errors;
    struct setting_list got = {NULL, 0};
    struct place inner = at;
    char *list;

    if (v->type != JSON_ARR) {
        wrong_value(l, s, at, v);
        return false;
    }
    list = elements_for(l, s, at, v);
    if (!list)
        return false;
    JSON_EACH(kid, v)
    {
        char inside[PATH_BYTES + 96];

        snprintf(inside, sizeof(inside), "%s[%zu]",
                 shown(at, str_of(s->path)).text, got.n);
        inner.at = inner.key_at = kid->at;
        inner.inside = str_of(inside);
        read_element(l, e, list + got.n++ * e->bytes, inner, kid);
    }
    if (l->report.out->n_errors > n_errors)
        return false;
    got.list = list;
    memcpy(setting_field(s, base), &got, sizeof(got));
    return true;
}

/* Objects by name. */

static bool name_is_taken(const struct setting_elements *e, const char *list,
                          size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(*(const struct str *)(list + i * e->bytes), name))
            return true;
    return false;
}

/* The name of one, into its first member. */
static bool read_name(struct load *l, const struct setting *s, struct place at,
                      struct str key, char *list, size_t n)
{
    const struct setting_elements *e = s->elements;
    char *copy = NULL;

    at.at = at.key_at;
    if (!e->is_name(key))
        report_error(&l->report, at, "%s has the name %s; it must be %s",
                     s->path, quote(key).text, e->name_allowed);
    else if (name_is_taken(e, list, n, key))
        report_error(&l->report, at,
                     "%s has %s and another name that differs in its case "
                     "only",
                     s->path, quote(key).text);
    else if (!(copy = arena_strdup(&l->c->arena, key)))
        report_no_memory(&l->report, at);
    *(struct str *)(list + n * e->bytes) =
        (struct str){copy ? copy : "", copy ? key.n : 0};
    return copy != NULL;
}

static bool read_map(struct load *l, void *base, const struct setting *s,
                     struct place at, const struct json *v)
{
    const struct setting_elements *e = s->elements;
    unsigned n_errors = l->report.out->n_errors;
    struct setting_list got = {NULL, 0};
    struct place inner = at;
    char *list = NULL;

    if (v->type != JSON_OBJ)
        wrong_value(l, s, at, v);
    else
        list = elements_for(l, s, at, v);
    for (struct json *kid = list ? v->kids.first : NULL; kid; kid = kid->next) {
        char inside[PATH_BYTES];

        inner.at = kid->at;
        inner.key_at = key_at(l->report.text, kid);
        if (read_name(l, s, inner, kid->key, list, got.n)) {
            snprintf(inside, sizeof(inside), "%s.%.*s", s->path,
                     STR_ARG(kid->key));
            inner.inside = str_of(inside);
            load_object(l, e->table, list + got.n * e->bytes, inner, kid);
        }
        got.n++;
    }
    if (!list || l->report.out->n_errors > n_errors) {
        l->has_bad_roads = true;
        return false;
    }
    got.list = list;
    memcpy(setting_field(s, base), &got, sizeof(got));
    return true;
}

/* Its type is all that can be looked at now. */
static bool keep_later(struct load *l, const struct setting *s, struct place at,
                       const struct json *v)
{
    const struct json **kept = &l->later[s - config_settings.rows];

    *kept = v->type == s->type->json ? v : NULL;
    if (!*kept)
        wrong_value(l, s, at, v);
    return *kept != NULL;
}

static void apply_row(struct load *l, const struct setting_table *t, void *base,
                      const struct setting *s, struct place at,
                      const struct json *v)
{
    struct place *where = t == &config_settings ? &l->where[s - t->rows] : NULL;
    bool is_read;

    if (where && at.from == FROM_ENV && where->from == FROM_ENV) {
        report_error(&l->report, at, "%s is set by %.*s too; keep one of them",
                     s->path, STR_ARG(where->name));
        return;
    }
    if (setting_is_later(s))
        is_read = keep_later(l, s, at, v);
    else if (s->type == &type_map)
        is_read = read_map(l, base, s, at, v);
    else
        is_read = (s->elements ? read_list : read_value)(l, base, s, at, v);
    if (!where)
        return; /* part of a list, which is one setting */
    if (is_read)
        *where = at;
    count(l, at.from);
}

static void apply(struct load *l, const struct setting_table *t, void *base,
                  struct str path, struct place at, const struct json *v)
{
    const struct setting *s = setting_find(t, path);

    if (s)
        apply_row(l, t, base, s, at, v);
    else if (!is_section(t, path))
        unknown(l, t, at, path);
    else if (v->type == JSON_OBJ)
        load_walk(l, t, base, path, at, v);
    else
        report_error(&l->report, at,
                     "%s is a group of settings, { ... }, not %s",
                     shown(at, path).text, value_words(v).text);
}

/* Every member of an object is a setting or a group of them. Only groups that
 * the table knows are entered, so the depth is the table's. */
void load_walk(struct load *l, const struct setting_table *t, void *base,
               struct str prefix, struct place at, const struct json *obj)
{
    JSON_EACH(kid, obj)
    {
        char path[PATH_BYTES];
        int n;

        at.at = kid->at;
        at.key_at = key_at(l->report.text, kid);
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
            apply(l, t, base, (struct str){path, (size_t)n}, at, kid);
    }
}

/* Values written as text. */

/* As JSON if that gives what the setting wants, else as the string it is:
 * --set log.level=debug needs no quotes. Empty when memory ran out. */
static struct json *value_of(struct load *l, enum json_type wanted,
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
              struct str path, struct place at, struct str text)
{
    const struct setting *s = setting_find(t, path);
    struct json_error err = {0};
    struct json *v;

    /* A list cannot be meant as a bare word. */
    if (s && (s->elements || setting_is_later(s)) &&
        json_check(text, &err) == ERR_SYNTAX) {
        report_error(&l->report, at, "%s must be JSON, %s: %s (character %zu)",
                     s->path, s->type->json == JSON_OBJ ? "{ ... }" : "[ ... ]",
                     err.what, err.at + 1);
        return;
    }
    v = value_of(l, s ? s->type->json : JSON_OBJ, text);
    if (v)
        apply(l, t, base, path, at, v);
    else
        report_no_memory(&l->report, at);
}
