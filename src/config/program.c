/* The types of settings that say what programs and models are made of: words
 * of a command, the environment, a folder to work in. */
#include <math.h>
#include <stdio.h>

#include "config/internal.h"

static enum err empty(void *field)
{
    *(struct str *)field = (struct str){"", 0};
    return OK;
}

/* One of a few names, as an enum of its own. */

static enum err choice_read(const struct setting *s, struct arena *a,
                            const struct json *v, void *field)
{
    (void)a;
    for (unsigned i = 0; v->type == JSON_STR && s->names[i]; i++)
        if (str_eq(v->s, str_of(s->names[i]))) {
            *(unsigned *)field = i;
            return OK;
        }
    return ERR_BAD_CONFIG;
}

static bool choice_is_same(const struct setting *s, const void *a,
                           const void *b)
{
    (void)s;
    return *(const unsigned *)a == *(const unsigned *)b;
}

static void choice_write(const struct setting *s, struct json_out *o,
                         const void *field)
{
    json_put_str(o, str_of(s->names[*(const unsigned *)field]));
}

static void choice_allowed(const struct setting *s, struct buf *out)
{
    type_enum.allowed(s, out);
}

_Static_assert(sizeof(enum process_dialect) == sizeof(unsigned) &&
                   sizeof(enum process_cancel) == sizeof(unsigned),
               "choices are written as such");
const struct setting_type type_choice = {
    .read = choice_read,
    .is_same = choice_is_same,
    .write = choice_write,
    .allowed = choice_allowed,
    .json = JSON_STR,
};

/* A word of a command. */

static enum err word_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    if (v->type == JSON_STR && v->s.n == 0 && s->min == 0)
        return empty(field);
    return setting_str_read(s, a, v, field);
}

static void word_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a text of %lld to %d bytes, none of them zero",
             (long long)s->min, SETTING_STR_MAX);
}

const struct setting_type type_word = {
    .read = word_read,
    .is_same = setting_str_is_same,
    .write = setting_str_write,
    .allowed = word_allowed,
    .json = JSON_STR,
};

/* A folder, or ours. */

static void workspace_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "the path of a folder, or \"\" for the server's own");
}

static enum err workspace_read(const struct setting *s, struct arena *a,
                               const struct json *v, void *field)
{
    if (v->type == JSON_STR && v->s.n == 0)
        return empty(field);
    return setting_str_read(s, a, v, field);
}

const struct setting_type type_workspace = {
    .read = workspace_read,
    .is_same = setting_str_is_same,
    .write = setting_str_write,
    .allowed = workspace_allowed,
    .json = JSON_STR,
    .is_path = true,
};

/* The environment. */

enum { ENV_NAME_MAX = 128 };

static bool is_env_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = str_lower(s.p[i]);

        if (!(c >= 'a' && c <= 'z') && c != '_' && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s.n > 0 && s.n <= ENV_NAME_MAX;
}

static enum err env_name_read(const struct setting *s, struct arena *a,
                              const struct json *v, void *field)
{
    if (v->type != JSON_STR || !is_env_name(v->s))
        return ERR_BAD_CONFIG;
    return setting_str_read(s, a, v, field);
}

static void env_name_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "the name of a variable, of up to %d letters, digits and \"_\"",
             ENV_NAME_MAX);
}

const struct setting_type type_env_name = {
    .read = env_name_read,
    .is_same = setting_str_is_same,
    .write = setting_str_write,
    .allowed = env_name_allowed,
    .json = JSON_STR,
};

static bool is_env_value(const struct json *v)
{
    return v->type == JSON_STR && v->s.n <= SETTING_STR_MAX &&
           !(v->s.n && memchr(v->s.p, 0, v->s.n));
}

static bool is_env(const struct json *v)
{
    if (v->type != JSON_OBJ || v->kids.n > PROCESS_ENV_MAX)
        return false;
    JSON_EACH(kid, v)
    {
        if (!is_env_name(kid->key) || !is_env_value(kid))
            return false;
    }
    return true;
}

static enum err env_read(const struct setting *s, struct arena *a,
                         const struct json *v, void *field)
{
    struct strs got = {NULL, 0};
    struct str *list;

    (void)s;
    if (!is_env(v))
        return ERR_BAD_CONFIG;
    list = arena_array(a, v->kids.n + 1, sizeof(*list));
    if (!list)
        return ERR_NOMEM;
    JSON_EACH(kid, v)
    {
        size_t n = kid->key.n + 1 + kid->s.n;
        char *p = arena_alloc(a, n + 1);

        if (!p)
            return ERR_NOMEM;
        snprintf(p, n + 1, "%.*s=%.*s", STR_ARG(kid->key), STR_ARG(kid->s));
        list[got.n++] = (struct str){p, n};
    }
    got.list = list;
    *(struct strs *)field = got;
    return OK;
}

/* Never the values: some are secrets, though those belong into our own
 * environment. */
void setting_complain_env(const struct setting *s, const struct json *v,
                          struct why *why)
{
    if (v->type != JSON_OBJ) {
        why_err(why, ERR_SYNTAX,
                "%s must be an object with a text for each variable (what is "
                "written there is not shown)",
                s->path);
        return;
    }
    JSON_EACH(kid, v)
    {
        if (!is_env_name(kid->key))
            why_err(why, ERR_SYNTAX,
                    "%s has the name %s; those of variables are up to %d "
                    "letters, digits and \"_\"",
                    s->path, quote(kid->key).text, ENV_NAME_MAX);
        else if (!is_env_value(kid))
            why_err(why, ERR_SYNTAX,
                    "%s.%.*s must be a text of up to %d bytes, none of them "
                    "zero",
                    s->path, STR_ARG(kid->key), SETTING_STR_MAX);
        else
            continue;
        return;
    }
    why_err(why, ERR_SYNTAX, "%s may have up to %d variables, not %zu", s->path,
            PROCESS_ENV_MAX, v->kids.n);
}

static bool env_is_same(const struct setting *s, const void *a, const void *b)
{
    const struct strs *x = a, *y = b;
    bool is_same = x->n == y->n;

    (void)s;
    for (size_t i = 0; is_same && i < x->n; i++)
        is_same = str_eq(x->list[i], y->list[i]);
    return is_same;
}

static void env_write(const struct setting *s, struct json_out *o,
                      const void *field)
{
    const struct strs *env = field;

    (void)s;
    json_open(o, '{');
    for (size_t i = 0; i < env->n; i++) {
        struct str value = env->list[i];

        json_key(o, str_cut(&value, '='));
        json_put_str(o, STR("not-shown"));
    }
    json_close(o, '}');
}

static void env_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "an object with a text for each of up to %d variables",
             PROCESS_ENV_MAX);
}

const struct setting_type type_env = {
    .read = env_read,
    .is_same = env_is_same,
    .write = env_write,
    .allowed = env_allowed,
    .json = JSON_OBJ,
};

/* A number, or none: below zero then. */

static enum err real_read(const struct setting *s, struct arena *a,
                          const struct json *v, void *field)
{
    if (v->type != JSON_NULL)
        return type_real.read(s, a, v, field);
    *(double *)field = -1;
    return OK;
}

static void real_write(const struct setting *s, struct json_out *o,
                       const void *field)
{
    if (*(const double *)field < 0)
        json_put_null(o);
    else
        type_real.write(s, o, field);
}

static bool real_is_same(const struct setting *s, const void *a, const void *b)
{
    return type_real.is_same(s, a, b);
}

static void real_allowed(const struct setting *s, struct buf *out)
{
    type_real.allowed(s, out);
    buf_add_str(out, STR(", or null"));
}

const struct setting_type type_real_or_none = {
    .read = real_read,
    .is_same = real_is_same,
    .write = real_write,
    .allowed = real_allowed,
    .json = JSON_NULL, /* its default; elements are never written alone */
};

/* Objects by name. Reading one is in apply.c, as with lists. */

static struct str name_in(const struct setting_elements *e, const void *list,
                          size_t i)
{
    return *(const struct str *)(const void *)((const char *)list +
                                               i * e->bytes);
}

static bool map_is_same(const struct setting *s, const void *a, const void *b)
{
    struct setting_list x = setting_list_get(a), y = setting_list_get(b);

    if (!type_list.is_same(s, a, b))
        return false;
    for (size_t i = 0; i < x.n; i++)
        if (!str_eq(name_in(s->elements, x.list, i),
                    name_in(s->elements, y.list, i)))
            return false;
    return true;
}

static void map_write(const struct setting *s, struct json_out *o,
                      const void *field)
{
    struct setting_list l = setting_list_get(field);
    const struct setting_elements *e = s->elements;

    json_open(o, '{');
    for (size_t i = 0; i < l.n; i++) {
        const char *base = (const char *)l.list + i * e->bytes;

        json_key(o, name_in(e, l.list, i));
        json_open(o, '{');
        for (size_t k = 0; k < e->table->n; k++) {
            const struct setting *m = &e->table->rows[k];

            json_key(o, str_of(m->path));
            m->type->write(m, o, setting_look(m, base));
        }
        json_close(o, '}');
    }
    json_close(o, '}');
}

static void map_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "an object with up to %zu objects by name", s->elements->max);
}

const struct setting_type type_map = {
    .is_same = map_is_same,
    .write = map_write,
    .allowed = map_allowed,
    .json = JSON_OBJ,
};
