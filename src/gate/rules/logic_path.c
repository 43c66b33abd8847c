/* var and missing: the data at a path.
 *
 * A path is split at its points. It leads into objects by key, into lists and
 * texts by index, and both have a `length`. The data's callback receives the
 * first part, and may build that tree only then. */
#include <stdio.h>

#include "base/utf8.h"
#include "gate/rules/logic_internal.h"

enum { WALK_PER_STEP = 8 }; /* members passed */

static const struct json *tree_root(void *ctx, struct str first)
{
    const struct json *tree = ctx;

    return first.n == 0 ? tree : json_get(tree, first);
}

struct logic_data logic_data_of(const struct json *tree)
{
    return (struct logic_data){tree_root, (void *)tree};
}

/* The number in a key, as JavaScript reads it: "7", never "07". */
static bool is_index(struct str key, size_t *out)
{
    size_t v = 0;

    if (key.n == 0 || key.n > 9 || (key.n > 1 && key.p[0] == '0'))
        return false;
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] < '0' || key.p[i] > '9')
            return false;
        v = v * 10 + (size_t)(key.p[i] - '0');
    }
    *out = v;
    return true;
}

static bool step_into_object(struct run *r, struct val *v, struct str key,
                             bool *found)
{
    size_t passed = 0;

    JSON_EACH(kid, v->node)
    {
        if (str_eq(kid->key, key)) {
            *v = val_of(kid);
            *found = true;
            break;
        }
        passed++;
    }
    return logic_count(r, passed / WALK_PER_STEP);
}

static bool step_into_list(struct run *r, struct val *v, struct str key,
                           bool *found)
{
    const struct json *list = v->node;
    const struct json *kid = list->kids.first;
    size_t i;

    if (str_eq(key, STR("length"))) {
        *v = (struct val){.type = JSON_INT, .i = (int64_t)list->kids.n};
        *found = true;
        return true;
    }
    if (!is_index(key, &i) || i >= list->kids.n)
        return true;
    if (!logic_count(r, i / WALK_PER_STEP))
        return false;
    while (i-- > 0)
        kid = kid->next;
    *v = val_of(kid);
    *found = true;
    return true;
}

/* Every byte that is not a tail byte begins a character. */
static bool step_into_text(struct run *r, struct val *v, struct str key,
                           bool *found)
{
    bool is_length = str_eq(key, STR("length"));
    size_t wanted = SIZE_MAX, n = 0, at = 0;

    if (!is_length && !is_index(key, &wanted))
        return true;
    if (!logic_count(r, v->s.n / 64))
        return false;
    for (; at < v->s.n; at++) {
        if (utf8_is_tail((unsigned char)v->s.p[at]))
            continue;
        if (n++ == wanted)
            break;
    }
    if (is_length) {
        *v = (struct val){.type = JSON_INT, .i = (int64_t)n};
        *found = true;
    } else if (at < v->s.n) {
        size_t bytes = utf8_one(v->s.p + at, v->s.p + v->s.n);

        v->s = str_sub(v->s, at, at + (bytes ? bytes : 1));
        *found = true;
    }
    return true;
}

static bool path_step(struct run *r, struct val *v, struct str key, bool *found)
{
    *found = false;
    if (v->type == JSON_OBJ)
        return step_into_object(r, v, key, found);
    if (v->type == JSON_ARR)
        return step_into_list(r, v, key, found);
    if (v->type == JSON_STR)
        return step_into_text(r, v, key, found);
    return true;
}

/* Follow the first part of a path. */
static bool path_first(struct run *r, const struct scope *s, struct str key,
                       struct val *out, bool *found)
{
    const struct json *tree;

    if (s->kind == SCOPE_ELEMENT) {
        *out = s->element;
        return path_step(r, out, key, found);
    }
    if (s->kind == SCOPE_REDUCE) {
        *found = true;
        if (str_eq(key, STR("current")))
            *out = s->element;
        else if (str_eq(key, STR("accumulator")))
            *out = s->accumulator;
        else
            *found = false;
        return true;
    }
    /* The data may be a list or a text, and "" may be a key of it. */
    if (key.n == 0 || r->data->root == tree_root) {
        tree = r->data->root(r->data->ctx, (struct str){"", 0});
        *found = false;
        if (!tree)
            return true;
        *out = val_of(tree);
        return path_step(r, out, key, found);
    }
    tree = r->data->root(r->data->ctx, key);
    *found = tree;
    if (tree)
        *out = val_of(tree);
    return true;
}

/* Follow a path. *found: whether something is there. */
static bool path_find(struct run *r, const struct scope *s,
                      const struct str *path, size_t n, struct val *out,
                      bool *found)
{
    if (!path_first(r, s, path[0], out, found))
        return false;
    for (size_t i = 1; i < n && *found; i++)
        if (!path_step(r, out, path[i], found))
            return false;
    return true;
}

/* The pair of reduce as one object, as in the reference. */
static bool reduce_pair(struct run *r, const struct scope *s, struct val *out)
{
    struct json *node = NULL;

    *out = (struct val){.type = JSON_OBJ, .node = *s->pair};
    if (!*s->pair)
        node = logic_alloc(r, 3 * sizeof(*node));
    if (!node)
        return *s->pair;
    node[0].type = JSON_OBJ;
    node[0].kids.first = &node[1];
    node[0].kids.n = 2;
    node[1].key = STR("current");
    node[1].next = &node[2];
    node[2].key = STR("accumulator");
    val_put(&s->element, &node[1]);
    val_put(&s->accumulator, &node[2]);
    *s->pair = out->node = node;
    return true;
}

static bool path_whole(struct run *r, const struct scope *s, struct val *out)
{
    const struct json *tree;

    if (s->kind == SCOPE_REDUCE)
        return reduce_pair(r, s, out);
    if (s->kind == SCOPE_ELEMENT) {
        *out = s->element;
        return true;
    }
    tree = r->data->root(r->data->ctx, (struct str){"", 0});
    *out = tree ? val_of(tree) : val_null();
    return true;
}

bool path_cut(struct run *r, struct str text, struct str *parts, size_t max,
              size_t *n)
{
    struct str rest = text;

    *n = 0;
    for (;;) {
        size_t at = str_find(rest, '.', 0);

        if (*n == max)
            return logic_fail(r, "it makes a path of too many parts");
        parts[(*n)++] = str_sub(rest, 0, at);
        if (at >= rest.n)
            return true;
        rest = str_sub(rest, at + 1, rest.n);
    }
}

/* Follow the path in `name`. */
static bool path_find_named(struct run *r, const struct scope *s,
                            const struct val *name, struct val *out,
                            bool *found)
{
    struct str parts[LOGIC_PATH_MAX], text;
    size_t n;

    if (name->type == JSON_NULL || (name->type == JSON_STR && !name->s.n)) {
        *found = true;
        return path_whole(r, s, out);
    }
    return val_to_str(r, name, &text) && logic_count(r, text.n / 64) &&
           path_cut(r, text, parts, LOGIC_PATH_MAX, &n) &&
           path_find(r, s, parts, n, out, found);
}

/* The operators. */

static bool eval_default(struct run *r, const struct logic *l,
                         const struct scope *s, struct val *out)
{
    if (l)
        return logic_eval(r, l, s, out);
    *out = val_null();
    return true;
}

bool logic_var_known(struct run *r, const struct logic *l,
                     const struct scope *s, struct val *out)
{
    bool found;

    return path_find(r, s, l->path, l->n, out, &found) &&
           (found || eval_default(r, l->args, s, out));
}

bool logic_var_whole(struct run *r, const struct logic *l,
                     const struct scope *s, struct val *out)
{
    (void)l;
    return path_whole(r, s, out);
}

bool logic_var(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    struct val name;
    bool found;

    return logic_eval(r, &l->args[0], s, &name) &&
           path_find_named(r, s, &name, out, &found) &&
           (found || eval_default(r, l->n > 1 ? &l->args[1] : NULL, s, out));
}

/* Whether the data has nothing at a key. A key that is a list is a path and its
 * default, like the arguments of var. */
static bool is_missing(struct run *r, const struct scope *s, struct val key,
                       bool *out)
{
    struct val value, fallback = val_null();
    bool found;

    if (key.type == JSON_ARR) {
        const struct json *first = key.node->kids.first;

        if (first && first->next)
            fallback = val_of(first->next);
        key = first ? val_of(first) : val_null();
    }
    if (!logic_count(r, 1) || !path_find_named(r, s, &key, &value, &found))
        return false;
    if (!found)
        value = fallback;
    *out = value.type == JSON_NULL || (value.type == JSON_STR && !value.s.n);
    return true;
}

/* Add the missing ones among the keys of a list. */
static bool add_missing(struct run *r, const struct scope *s,
                        const struct json *keys, struct val_list *out)
{
    JSON_EACH(kid, keys)
    {
        struct val key = val_of(kid);
        bool missing;

        if (!is_missing(r, s, key, &missing) ||
            (missing && !val_list_add(r, out, &key)))
            return false;
    }
    return true;
}

bool logic_missing(struct run *r, const struct logic *l, const struct scope *s,
                   struct val *out)
{
    struct val_list list;

    if (!val_list_begin(r, &list))
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        struct val key;
        bool missing;

        if (!logic_eval(r, &l->args[i], s, &key))
            return false;
        if (i == 0 && key.type == JSON_ARR) {
            if (!add_missing(r, s, key.node, &list))
                return false;
            break; /* a list of keys replaces all arguments */
        }
        if (!is_missing(r, s, key, &missing) ||
            (missing && !val_list_add(r, &list, &key)))
            return false;
    }
    *out = val_list_end(&list);
    return true;
}

/* The number of keys, as `length` gives it. */
static bool missing_count(struct run *r, const struct val *keys,
                          struct val *out)
{
    bool found = false;

    *out = *keys;
    if (keys->type == JSON_NULL)
        return logic_fail(r, "missing_some is given null for its keys");
    if (keys->type == JSON_OBJ || !path_step(r, out, STR("length"), &found))
        found = false;
    if (!found)
        *out = val_number(__builtin_nan(""));
    return !r->why;
}

bool logic_missing_some(struct run *r, const struct logic *l,
                        const struct scope *s, struct val *out)
{
    struct val need, keys, n;
    struct val_list list;
    double have;
    int order;
    bool missing;

    if (!logic_eval(r, &l->args[0], s, &need) ||
        !logic_eval(r, &l->args[1], s, &keys) || !missing_count(r, &keys, &n) ||
        !val_list_begin(r, &list))
        return false;
    if (keys.type == JSON_ARR) {
        const struct json *first = keys.node->kids.first;
        bool is_nested = first && first->type == JSON_ARR;

        if (!add_missing(r, s, is_nested ? first : keys.node, &list))
            return false;
    } else if (!is_missing(r, s, keys, &missing) ||
               (missing && !val_list_add(r, &list, &keys))) {
        return false;
    }
    val_to_number(r, &n, &have);
    n = val_number(have - (double)list.node->kids.n);
    if (!val_compare(r, &n, &need, &order))
        return false;
    if ((order == 0 || order == 1) && !val_list_begin(r, &list))
        return false;
    *out = val_list_end(&list);
    return true;
}
