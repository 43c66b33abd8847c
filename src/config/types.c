/* The types of values: how each is read, compared, written, and put into words.
 * A string that is more than a string (an address, a name, an origin) is a type
 * of its own, so that what is wrong is found here, with a line, and not where
 * it is used. */
#include <math.h>

#include "base/addr.h"
#include "config/internal.h"
#include "model/agent.h"

/* Booleans. */

static enum err bool_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    (void)s, (void)a;
    if (v->type != JSON_BOOL)
        return ERR_BAD_CONFIG;
    *(bool *)field = v->b;
    return OK;
}

static bool bool_is_same(const struct setting *s, const void *a, const void *b)
{
    (void)s;
    return *(const bool *)a == *(const bool *)b;
}

static void bool_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    (void)s;
    json_put_bool(o, *(const bool *)field);
}

static void bool_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("true or false"));
}

const struct setting_type type_bool = {bool_read,    bool_is_same, bool_write,
                                       bool_allowed, JSON_BOOL,    false};

/* Whole numbers between two limits. */

static enum err int_read(const struct setting *s, struct arena *a,
                         const struct json *v, void *field)
{
    (void)a;
    if (v->type != JSON_INT || v->i < s->min || v->i > s->max)
        return ERR_BAD_CONFIG;
    *(int64_t *)field = v->i;
    return OK;
}

static bool int_is_same(const struct setting *s, const void *a, const void *b)
{
    (void)s;
    return *(const int64_t *)a == *(const int64_t *)b;
}

static void int_write(const struct setting *s, struct json_out *o,
                      const void *field)
{
    (void)s;
    json_put_int(o, *(const int64_t *)field);
}

static void int_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a whole number%s%s from %lld to %lld", s->unit ? " of " : "",
             s->unit ? s->unit : "", (long long)s->min, (long long)s->max);
}

const struct setting_type type_int = {int_read,    int_is_same, int_write,
                                      int_allowed, JSON_INT,    false};

/* Numbers, whole or not. */

static enum err real_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    double d = json_real_or(v, NAN);

    (void)a;
    if (!(d >= (double)s->min && d <= (double)s->max))
        return ERR_BAD_CONFIG;
    *(double *)field = d;
    return OK;
}

static bool real_is_same(const struct setting *s, const void *a, const void *b)
{
    (void)s;
    return *(const double *)a == *(const double *)b;
}

static void real_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    (void)s;
    json_put_real(o, *(const double *)field);
}

static void real_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a number from %lld to %lld", (long long)s->min,
             (long long)s->max);
}

const struct setting_type type_real = {real_read,    real_is_same, real_write,
                                       real_allowed, JSON_REAL,    false};

/* One of a few names; the field holds its place in the row's list. */

static enum err enum_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    (void)a;
    if (v->type != JSON_STR)
        return ERR_BAD_CONFIG;
    for (int64_t i = 0; s->names[i]; i++)
        if (str_eq(v->s, str_of(s->names[i]))) {
            *(int64_t *)field = i;
            return OK;
        }
    return ERR_BAD_CONFIG;
}

static void enum_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    json_put_str(o, str_of(s->names[*(const int64_t *)field]));
}

static void enum_allowed(const struct setting *s, struct buf *out)
{
    for (size_t i = 0; s->names[i]; i++) {
        if (i)
            buf_add_str(out, s->names[i + 1] ? STR(", ") : STR(" or "));
        buf_addf(out, "\"%s\"", s->names[i]);
    }
}

const struct setting_type type_enum = {enum_read,    int_is_same, enum_write,
                                       enum_allowed, JSON_STR,    false};

/* Strings: a folder, an address. */

enum err setting_str_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    (void)s;
    /* A zero byte would end the string early for everybody who hands it on to
     * the system. */
    if (v->type != JSON_STR || v->s.n == 0 || v->s.n > SETTING_STR_MAX ||
        memchr(v->s.p, 0, v->s.n))
        return ERR_BAD_CONFIG;
    return arena_keep(a, v->s, field) ? OK : ERR_NOMEM;
}

bool setting_str_is_same(const struct setting *s, const void *a, const void *b)
{
    (void)s;
    return str_eq(*(const struct str *)a, *(const struct str *)b);
}

void setting_str_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    (void)s;
    json_put_str(o, *(const struct str *)field);
}

static void folder_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "the path of a folder, 1 to %d bytes", SETTING_STR_MAX);
}

const struct setting_type type_folder = {setting_str_read,  setting_str_is_same,
                                         setting_str_write, folder_allowed,
                                         JSON_STR,          true};

/* Empty where the default is: there is none then. */

static enum err file_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    if (s->preset && v->type == JSON_STR && v->s.n == 0) {
        *(struct str *)field = (struct str){"", 0};
        return OK;
    }
    return setting_str_read(s, a, v, field);
}

static void file_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "the path of a file, 1 to %d bytes%s", SETTING_STR_MAX,
             s->preset ? ", or \"\" for none" : "");
}

const struct setting_type type_file = {file_read,         setting_str_is_same,
                                       setting_str_write, file_allowed,
                                       JSON_STR,          true};

/* One that is looked for where it usually is. */

static void rules_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "the path of a file, 1 to %d bytes, \"auto\", or \"\" for none",
             SETTING_STR_MAX);
}

const struct setting_type type_rules = {.read = file_read,
                                        .is_same = setting_str_is_same,
                                        .write = setting_str_write,
                                        .allowed = rules_allowed,
                                        .json = JSON_STR,
                                        .is_path = true};

/* Empty where nobody is to connect. */

static enum err address_read(const struct setting *s, struct arena *a,
                             const struct json *v, void *field)
{
    struct addr addr;

    if (v->type == JSON_STR && v->s.n == 0) {
        *(struct str *)field = (struct str){"", 0};
        return OK;
    }
    if (v->type != JSON_STR || addr_parse(v->s, &addr) != OK)
        return ERR_BAD_CONFIG;
    return setting_str_read(s, a, v, field);
}

static void address_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("\"HOST:PORT\" with localhost or a numeric address "
                         "as HOST, [::1] in brackets, and a PORT up to 65535, "
                         "or \"\" for none"));
}

const struct setting_type type_address = {
    address_read,      setting_str_is_same,
    setting_str_write, address_allowed,
    JSON_STR,          false};

/* A name like an agent's. */

static enum err name_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    if (v->type != JSON_STR || !agent_name_is_valid(v->s))
        return ERR_BAD_CONFIG;
    return setting_str_read(s, a, v, field);
}

static void name_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "a name of 1 to %d letters, digits, \".\", \"_\" and \"-\" that "
             "begins with a letter or digit",
             AGENT_NAME_MAX);
}

const struct setting_type type_name = {name_read,         setting_str_is_same,
                                       setting_str_write, name_allowed,
                                       JSON_STR,          false};

static enum err name_or_none_read(const struct setting *s, struct arena *a,
                                  const struct json *v, void *field)
{
    if (v->type != JSON_STR || v->s.n)
        return name_read(s, a, v, field);
    *(struct str *)field = (struct str){"", 0};
    return OK;
}

static void name_or_none_allowed(const struct setting *s, struct buf *out)
{
    name_allowed(s, out);
    buf_add_str(out, STR(", or \"\" for none"));
}

const struct setting_type type_name_or_none = {
    name_or_none_read, setting_str_is_same,
    setting_str_write, name_or_none_allowed,
    JSON_STR,          false};

/* What browsers put into Host and Origin. */

enum { HOST_MAX = 255 };

static bool is_alnum(char c)
{
    c = str_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_port(struct str s)
{
    int64_t port;

    return s.n >= 1 && s.n <= 5 && s.p[0] != '-' &&
           str_to_i64(s, &port) == OK && port >= 1 && port <= 65535;
}

/* "[::1]": the brackets and what may stand between them. */
static bool is_bracketed(struct str s)
{
    struct addr addr;
    char text[64];
    size_t n = s.n;

    if (n < 4 || n > sizeof(text) - 2 || s.p[0] != '[' || s.p[n - 1] != ']')
        return false;
    memcpy(text, s.p, n);
    memcpy(text + n, ":1", 2);
    return addr_parse((struct str){text, n + 2}, &addr) == OK;
}

static bool is_host_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' &&
            s.p[i] != '.')
            return false;
    return s.n > 0 && s.p[0] != '.' && s.p[0] != '-';
}

/* "example.org", "example.org:8443", "[::1]:8443". */
static bool is_host(struct str s)
{
    size_t end =
        s.n && s.p[0] == '[' ? str_find(s, ']', 0) + 1 : str_find(s, ':', 0);
    struct str name = str_sub(s, 0, end);

    if (s.n > HOST_MAX || (!is_host_name(name) && !is_bracketed(name)))
        return false;
    return end >= s.n || (s.p[end] == ':' && is_port(str_sub(s, end + 1, s.n)));
}

static bool is_scheme(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '+' && s.p[i] != '-' &&
            s.p[i] != '.')
            return false;
    return s.n > 0 && str_lower(s.p[0]) >= 'a' && str_lower(s.p[0]) <= 'z';
}

/* "https://example.org". */
static bool is_origin(struct str s)
{
    struct str rest = s, scheme = str_cut(&rest, ':');

    return s.n <= HOST_MAX && is_scheme(scheme) &&
           str_starts(rest, STR("//")) && is_host(str_sub(rest, 2, rest.n));
}

static enum err host_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    if (v->type != JSON_STR || !is_host(v->s))
        return ERR_BAD_CONFIG;
    return setting_str_read(s, a, v, field);
}

static void host_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "\"HOST\" or \"HOST:PORT\" without a scheme, 1 to %d bytes",
             HOST_MAX);
}

const struct setting_type type_host = {host_read,         setting_str_is_same,
                                       setting_str_write, host_allowed,
                                       JSON_STR,          false};

static enum err origin_read(const struct setting *s, struct arena *a,
                            const struct json *v, void *field)
{
    if (v->type != JSON_STR || !is_origin(v->s))
        return ERR_BAD_CONFIG;
    return setting_str_read(s, a, v, field);
}

static void origin_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "\"SCHEME://HOST\" or \"SCHEME://HOST:PORT\" without a path, 1 to "
             "%d bytes",
             HOST_MAX);
}

const struct setting_type type_origin = {origin_read,       setting_str_is_same,
                                         setting_str_write, origin_allowed,
                                         JSON_STR,          false};

/* Lists. Reading one is in apply.c: what is wrong with an element is said with
 * the element's own place. */

static bool list_is_same(const struct setting *s, const void *a, const void *b)
{
    struct setting_list x = setting_list_get(a), y = setting_list_get(b);
    const struct setting_table *t = s->elements->table;

    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++)
        for (size_t k = 0; k < t->n; k++) {
            const struct setting *m = &t->rows[k];
            size_t at = i * s->elements->bytes + m->offset;

            if (!m->type->is_same(m, (const char *)x.list + at,
                                  (const char *)y.list + at))
                return false;
        }
    return true;
}

/* One that is an object; names may be those of groups, "match.channel". */
static void write_members(const struct setting_table *t, struct json_out *o,
                          const void *base)
{
    struct str group = {0};

    json_open(o, '{');
    for (size_t k = 0; k < t->n; k++) {
        const struct setting *m = &t->rows[k];
        struct str name = str_of(m->path);

        setting_move_to(o, &group, setting_section(m->path));
        json_key(o, str_sub(name, group.n + (group.n > 0), name.n));
        m->type->write(m, o, setting_look(m, base));
    }
    setting_move_to(o, &group, (struct str){0});
    json_close(o, '}');
}

static void list_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    struct setting_list l = setting_list_get(field);
    const struct setting_elements *e = s->elements;

    json_open(o, '[');
    for (size_t i = 0; i < l.n; i++) {
        const char *base = (const char *)l.list + i * e->bytes;

        if (e->is_plain)
            e->table->rows[0].type->write(&e->table->rows[0], o, base);
        else
            write_members(e->table, o, base);
    }
    json_close(o, ']');
}

static void list_allowed(const struct setting *s, struct buf *out)
{
    const struct setting_elements *e = s->elements;

    buf_addf(out, "a list of up to %zu ", e->max);
    if (e->is_plain) {
        buf_add_str(out, STR("of "));
        e->table->rows[0].type->allowed(&e->table->rows[0], out);
        return;
    }
    buf_add_str(out, STR("objects with "));
    setting_add_names(e->table, out);
}

const struct setting_type type_list = {NULL,         list_is_same, list_write,
                                       list_allowed, JSON_ARR,     false};

struct setting_list setting_list_get(const void *field)
{
    struct setting_list l;

    memcpy(&l, field, sizeof(l));
    return l;
}

void setting_add_names(const struct setting_table *t, struct buf *out)
{
    for (size_t i = 0; i < t->n; i++) {
        if (i)
            buf_add_str(out, i + 1 < t->n ? STR(", ") : STR(" and "));
        buf_addf(out, "\"%s\"%s", t->rows[i].path,
                 t->rows[i].preset ? " (optional)" : "");
    }
}
