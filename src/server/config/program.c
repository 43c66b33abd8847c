/* Types of the settings of programs and models: words of a command, a working
 * folder, the environment, and objects by name. */
#include <stdio.h>

#include "server/config/internal.h"

/* A word of a command. */

static void word_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a text of %lld to %d bytes, none of them zero",
             (long long)s->min, SETTING_STR_MAX);
}

const struct setting_type type_word = {
    SETTING_STR_TYPE, .allowed = word_allowed, .may_be_empty = true};

static void workspace_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "the path of a folder, or \"\" for the server's own");
}

const struct setting_type type_workspace = {
    SETTING_STR_TYPE, .allowed = workspace_allowed, .is_path = true,
    .may_be_empty = true};

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

static void env_name_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "the name of a variable, of up to %d letters, digits and \"_\"",
             ENV_NAME_MAX);
}

const struct setting_type type_env_name = {
    SETTING_STR_TYPE, .allowed = env_name_allowed, .is_valid = is_env_name};

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

/* Values are never shown, since some are secrets, although secrets belong into
 * the server's environment. */
void setting_complain_env(const struct setting *s, const struct json *v,
                          struct why *why)
{
    if (v->type != JSON_OBJ) {
        why_err(why, ERR_SYNTAX,
                "%s must be an object with a text for each variable (the value "
                "is not shown here)",
                s->path);
        return;
    }
    JSON_EACH(kid, v)
    {
        if (!is_env_name(kid->key))
            why_err(why, ERR_SYNTAX,
                    "%s has the name %s; the name of a variable is up to %d "
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

/* Objects by name. Like lists, they are read by apply.c. */

static struct str element_name(const struct setting_elements *e,
                               const void *list, size_t i)
{
    return *(const struct str *)(const void *)((const char *)list +
                                               i * e->bytes);
}

static bool map_is_same(const struct setting *s, const void *a, const void *b)
{
    struct setting_list x = setting_list_get(a), y = setting_list_get(b);

    if (!setting_list_is_same(s, a, b))
        return false;
    for (size_t i = 0; i < x.n; i++)
        if (!str_eq(element_name(s->elements, x.list, i),
                    element_name(s->elements, y.list, i)))
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
        json_key(o, element_name(e, l.list, i));
        setting_members_write(e->table, o, (const char *)l.list + i * e->bytes);
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
