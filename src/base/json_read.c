/* Access to the tree. All functions accept NULL and the wrong type. Members
 * form a list in the order of the text and are searched linearly: the objects
 * of a protocol have a dozen members, and an index would cost more than it
 * saves. */
#include "base/json.h"

#include "base/json_internal.h"

struct json *json_parse(struct arena *a, struct str text, unsigned flags,
                        struct json_error *err)
{
    struct json_walk w;

    json_walk_init(&w);
    if (json_walk(&w, text, flags, a))
        return w.root;
    json_walk_error(&w, err);
    return NULL;
}

void json_where(struct str text, size_t at, unsigned *line, unsigned *col)
{
    size_t begin = 0;

    if (at > text.n)
        at = text.n;
    *line = 1;
    for (;;) {
        size_t end = str_find(text, '\n', begin);

        if (end >= at)
            break;
        begin = end + 1;
        ++*line;
    }
    *col = (unsigned)(at - begin) + 1;
}

struct json *json_get(const struct json *v, struct str key)
{
    if (!v || v->type != JSON_OBJ)
        return NULL;
    JSON_EACH(kid, v)
    if (str_eq(kid->key, key))
        return kid;
    return NULL;
}

struct json *json_at(const struct json *v, size_t i)
{
    if (!v || v->type != JSON_ARR)
        return NULL;
    JSON_EACH(kid, v)
    if (i-- == 0)
        return kid;
    return NULL;
}

struct str json_str_or(const struct json *v, struct str fallback)
{
    return v && v->type == JSON_STR ? v->s : fallback;
}

int64_t json_int_or(const struct json *v, int64_t fallback)
{
    return v && v->type == JSON_INT ? v->i : fallback;
}

double json_real_or(const struct json *v, double fallback)
{
    if (v && v->type == JSON_INT)
        return (double)v->i;
    return v && v->type == JSON_REAL ? v->d : fallback;
}

bool json_bool_or(const struct json *v, bool fallback)
{
    return v && v->type == JSON_BOOL ? v->b : fallback;
}
