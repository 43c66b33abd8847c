/* Types of values: how each is read, compared, written and described.
 *
 * A string with a syntax (an address, a name, an origin) is a type of its own,
 * so that a mistake is reported with its line, and not where the value is used.
 * All strings are read by setting_str_read; a type adds only a predicate. */
#include <math.h>

#include "base/addr.h"
#include "model/agent.h"
#include "model/transports.h"
#include "server/config/internal.h"

/* Booleans. */

static enum err setting_bool_read(const struct setting *s, struct arena *a,
                                  const struct json *v, void *field)
{
    (void)s, (void)a;
    if (v->type != JSON_BOOL)
        return ERR_BAD_CONFIG;
    *(bool *)field = v->b;
    return OK;
}

static bool setting_bool_is_same(const struct setting *s, const void *a,
                                 const void *b)
{
    (void)s;
    return *(const bool *)a == *(const bool *)b;
}

static void setting_bool_write(const struct setting *s, struct json_out *o,
                               const void *field)
{
    (void)s;
    json_put_bool(o, *(const bool *)field);
}

static void setting_bool_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("true or false"));
}

const struct setting_type type_bool = {.read = setting_bool_read,
                                       .is_same = setting_bool_is_same,
                                       .write = setting_bool_write,
                                       .allowed = setting_bool_allowed,
                                       .json = JSON_BOOL};

/* Whole numbers between two limits. */

static enum err setting_int_read(const struct setting *s, struct arena *a,
                                 const struct json *v, void *field)
{
    (void)a;
    if (v->type != JSON_INT || v->i < s->min || v->i > s->max)
        return ERR_BAD_CONFIG;
    *(int64_t *)field = v->i;
    return OK;
}

static bool setting_int_is_same(const struct setting *s, const void *a,
                                const void *b)
{
    (void)s;
    return *(const int64_t *)a == *(const int64_t *)b;
}

static void setting_int_write(const struct setting *s, struct json_out *o,
                              const void *field)
{
    (void)s;
    json_put_int(o, *(const int64_t *)field);
}

static void setting_int_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a whole number%s%s from %lld to %lld", s->unit ? " of " : "",
             s->unit ? s->unit : "", (long long)s->min, (long long)s->max);
}

const struct setting_type type_int = {.read = setting_int_read,
                                      .is_same = setting_int_is_same,
                                      .write = setting_int_write,
                                      .allowed = setting_int_allowed,
                                      .json = JSON_INT};

/* Numbers, whole or not. */

static enum err setting_real_read(const struct setting *s, struct arena *a,
                                  const struct json *v, void *field)
{
    double d = json_real_or(v, NAN);

    (void)a;
    if (!(d >= (double)s->min && d <= (double)s->max))
        return ERR_BAD_CONFIG;
    *(double *)field = d;
    return OK;
}

static bool setting_real_is_same(const struct setting *s, const void *a,
                                 const void *b)
{
    (void)s;
    return *(const double *)a == *(const double *)b;
}

static void setting_real_write(const struct setting *s, struct json_out *o,
                               const void *field)
{
    (void)s;
    json_put_real(o, *(const double *)field);
}

static void setting_real_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a number from %lld to %lld", (long long)s->min,
             (long long)s->max);
}

const struct setting_type type_real = {.read = setting_real_read,
                                       .is_same = setting_real_is_same,
                                       .write = setting_real_write,
                                       .allowed = setting_real_allowed,
                                       .json = JSON_REAL};

/* A number or a special value, which is stored as -1. */

static enum err setting_real_or_none_read(const struct setting *s,
                                          struct arena *a, const struct json *v,
                                          void *field)
{
    if (v->type != JSON_NULL)
        return setting_real_read(s, a, v, field);
    *(double *)field = -1;
    return OK;
}

static void setting_real_or_none_write(const struct setting *s,
                                       struct json_out *o, const void *field)
{
    if (*(const double *)field < 0)
        json_put_null(o);
    else
        setting_real_write(s, o, field);
}

static void setting_real_or_none_allowed(const struct setting *s,
                                         struct buf *out)
{
    setting_real_allowed(s, out);
    buf_add_str(out, STR(", or null"));
}

const struct setting_type type_real_or_none = {
    .read = setting_real_or_none_read,
    .is_same = setting_real_is_same,
    .write = setting_real_or_none_write,
    .allowed = setting_real_or_none_allowed,
    .json = JSON_NULL, /* its default; elements are never written alone */
};

static enum err setting_real_or_auto_read(const struct setting *s,
                                          struct arena *a, const struct json *v,
                                          void *field)
{
    if (!str_eq(json_str_or(v, STR("")), STR("auto")))
        return setting_real_read(s, a, v, field);
    *(double *)field = -1;
    return OK;
}

static void setting_real_or_auto_write(const struct setting *s,
                                       struct json_out *o, const void *field)
{
    if (*(const double *)field < 0)
        json_put_str(o, STR("auto"));
    else
        setting_real_write(s, o, field);
}

static void setting_real_or_auto_allowed(const struct setting *s,
                                         struct buf *out)
{
    setting_real_allowed(s, out);
    buf_add_str(out, STR(", or \"auto\""));
}

const struct setting_type type_real_or_auto = {
    .read = setting_real_or_auto_read,
    .is_same = setting_real_is_same,
    .write = setting_real_or_auto_write,
    .allowed = setting_real_or_auto_allowed,
    .json = JSON_REAL,
};

/* One of a few names; the field holds its index in the row's list. */

static enum err setting_enum_read(const struct setting *s, struct arena *a,
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

static void setting_enum_write(const struct setting *s, struct json_out *o,
                               const void *field)
{
    json_put_str(o, str_of(s->names[*(const int64_t *)field]));
}

static void setting_enum_allowed(const struct setting *s, struct buf *out)
{
    for (size_t i = 0; s->names[i]; i++) {
        if (i)
            buf_add_str(out, s->names[i + 1] ? STR(", ") : STR(" or "));
        buf_addf(out, "\"%s\"", s->names[i]);
    }
}

const struct setting_type type_enum = {.read = setting_enum_read,
                                       .is_same = setting_int_is_same,
                                       .write = setting_enum_write,
                                       .allowed = setting_enum_allowed,
                                       .json = JSON_STR};

/* The same in a field that is an enum. */

static enum err setting_choice_read(const struct setting *s, struct arena *a,
                                    const struct json *v, void *field)
{
    int64_t i;
    enum err e = setting_enum_read(s, a, v, &i);

    if (!e)
        *(unsigned *)field = (unsigned)i;
    return e;
}

static bool setting_choice_is_same(const struct setting *s, const void *a,
                                   const void *b)
{
    (void)s;
    return *(const unsigned *)a == *(const unsigned *)b;
}

static void setting_choice_write(const struct setting *s, struct json_out *o,
                                 const void *field)
{
    json_put_str(o, str_of(s->names[*(const unsigned *)field]));
}

_Static_assert(sizeof(enum process_dialect) == sizeof(unsigned) &&
                   sizeof(enum process_cancel) == sizeof(unsigned),
               "choices are written as unsigned");
const struct setting_type type_choice = {
    .read = setting_choice_read,
    .is_same = setting_choice_is_same,
    .write = setting_choice_write,
    .allowed = setting_enum_allowed,
    .json = JSON_STR,
};

/* Strings. */

enum err setting_str_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    /* Without a default the setting is needed, and "" does not count. */
    if (v->type == JSON_STR && v->s.n == 0 && s->type->may_be_empty &&
        s->preset) {
        *(struct str *)field = (struct str){"", 0};
        return OK;
    }
    /* A zero byte would end the string early in every system call. */
    if (v->type != JSON_STR || v->s.n == 0 || v->s.n > SETTING_STR_MAX ||
        memchr(v->s.p, 0, v->s.n) ||
        (s->type->is_valid && !s->type->is_valid(v->s)))
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

const struct setting_type type_folder = {
    SETTING_STR_TYPE, .allowed = folder_allowed, .is_path = true};

static void file_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "the path of a file, 1 to %d bytes%s", SETTING_STR_MAX,
             s->preset ? ", or \"\" for none" : "");
}

const struct setting_type type_file = {SETTING_STR_TYPE,
                                       .allowed = file_allowed, .is_path = true,
                                       .may_be_empty = true};

static void rules_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "the path of a file, 1 to %d bytes, \"auto\", or \"\" for none",
             SETTING_STR_MAX);
}

const struct setting_type type_rules = {SETTING_STR_TYPE,
                                        .allowed = rules_allowed,
                                        .is_path = true, .may_be_empty = true};

static bool is_listen_address(struct str text)
{
    struct addr addr;

    return addr_parse(text, &addr) == OK;
}

static void address_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("\"HOST:PORT\" with localhost or a numeric address "
                         "as HOST, [::1] in brackets, and a PORT up to 65535, "
                         "or \"\" for none"));
}

const struct setting_type type_address = {
    SETTING_STR_TYPE, .allowed = address_allowed, .is_valid = is_listen_address,
    .may_be_empty = true};

/* A name like an agent's. */

static void agent_name_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "a name of 1 to %d letters, digits, \".\", \"_\" and \"-\" that "
             "begins with a letter or digit",
             AGENT_NAME_MAX);
}

const struct setting_type type_name = {SETTING_STR_TYPE,
                                       .allowed = agent_name_allowed,
                                       .is_valid = agent_name_is_valid};

static void agent_name_or_none_allowed(const struct setting *s, struct buf *out)
{
    agent_name_allowed(s, out);
    buf_add_str(out, STR(", or \"\" for none"));
}

const struct setting_type type_name_or_none = {
    SETTING_STR_TYPE, .allowed = agent_name_or_none_allowed,
    .is_valid = agent_name_is_valid, .may_be_empty = true};

/* Values of the headers Host and Origin. */

enum { HOST_MAX = 255 };

static bool is_ascii_alnum(char c)
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
        if (!is_ascii_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' &&
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
        if (!is_ascii_alnum(s.p[i]) && s.p[i] != '+' && s.p[i] != '-' &&
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

static void host_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "\"HOST\" or \"HOST:PORT\" without a scheme, 1 to %d bytes",
             HOST_MAX);
}

const struct setting_type type_host = {
    SETTING_STR_TYPE, .allowed = host_allowed, .is_valid = is_host};

static void origin_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "\"SCHEME://HOST\" or \"SCHEME://HOST:PORT\" without a path, 1 to "
             "%d bytes",
             HOST_MAX);
}

const struct setting_type type_origin = {
    SETTING_STR_TYPE, .allowed = origin_allowed, .is_valid = is_origin};

/* Lists. apply.c reads them, since it reports each element with its own place.
 */

bool setting_list_is_same(const struct setting *s, const void *a, const void *b)
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

/* Writes an element that is an object. A name may be in a group:
 * "match.channel". */
void setting_members_write(const struct setting_table *t, struct json_out *o,
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

void setting_list_write(const struct setting *s, struct json_out *o,
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
            setting_members_write(e->table, o, base);
    }
    json_close(o, ']');
}

static void setting_list_allowed(const struct setting *s, struct buf *out)
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

const struct setting_type type_list = {.is_same = setting_list_is_same,
                                       .write = setting_list_write,
                                       .allowed = setting_list_allowed,
                                       .json = JSON_ARR};

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
