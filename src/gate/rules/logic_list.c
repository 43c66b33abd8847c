/* Operators over lists. The function in map and the like sees only one element,
 * and in reduce only its pair: nothing of the surrounding data. */
#include "gate/rules/logic_internal.h"

/* The elements of the first argument; NULL if it is not a list. */
static bool list_elements(struct run *r, const struct logic *l,
                          const struct scope *s, const struct json **out)
{
    struct val v;

    if (!logic_eval(r, &l->args[0], s, &v))
        return false;
    *out = v.type == JSON_ARR ? v.node : NULL;
    return true;
}

static bool eval_for_element(struct run *r, const struct logic *l,
                             const struct json *element, struct val *out)
{
    struct scope inner = {.kind = SCOPE_ELEMENT, .element = val_of(element)};

    return logic_eval(r, l, &inner, out);
}

bool logic_list(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    struct val_list list;

    if (!val_list_begin(r, &list))
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        struct val v;

        if (!logic_eval(r, &l->args[i], s, &v) || !val_list_add(r, &list, &v))
            return false;
    }
    *out = val_list_end(&list);
    return true;
}

static bool map_or_filter(struct run *r, const struct logic *l,
                          const struct scope *s, bool is_filter,
                          struct val *out)
{
    const struct json *from;
    struct val_list list;

    if (!list_elements(r, l, s, &from) || !val_list_begin(r, &list))
        return false;
    for (const struct json *k = from ? from->kids.first : NULL; k;
         k = k->next) {
        struct val v, element = val_of(k);

        if (!eval_for_element(r, &l->args[1], k, &v))
            return false;
        if (is_filter && !val_truthy(&v))
            continue;
        if (!val_list_add(r, &list, is_filter ? &element : &v))
            return false;
    }
    *out = val_list_end(&list);
    return true;
}

bool logic_map(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    return map_or_filter(r, l, s, false, out);
}

bool logic_filter(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    return map_or_filter(r, l, s, true, out);
}

bool logic_reduce(struct run *r, const struct logic *l, const struct scope *s,
                  struct val *out)
{
    const struct json *from, *pair;
    struct scope inner = {
        .kind = SCOPE_REDUCE, .accumulator = val_null(), .pair = &pair};

    if (!list_elements(r, l, s, &from))
        return false;
    if (l->n > 2 && !logic_eval(r, &l->args[2], s, &inner.accumulator))
        return false;
    for (const struct json *k = from ? from->kids.first : NULL; k;
         k = k->next) {
        struct val v;

        inner.element = val_of(k);
        pair = NULL;
        if (!logic_eval(r, &l->args[1], &inner, &v))
            return false;
        inner.accumulator = v;
    }
    *out = inner.accumulator;
    return true;
}

/* Whether the result for some element is `wanted`; stops at the first. */
static bool find_element(struct run *r, const struct logic *l,
                         const struct json *from, bool wanted, bool *out)
{
    *out = false;
    for (const struct json *k = from ? from->kids.first : NULL; k && !*out;
         k = k->next) {
        struct val v;

        if (!eval_for_element(r, &l->args[1], k, &v))
            return false;
        *out = val_truthy(&v) == wanted;
    }
    return true;
}

/* False for an empty list. */
bool logic_all(struct run *r, const struct logic *l, const struct scope *s,
               struct val *out)
{
    const struct json *from;
    bool found;

    if (!list_elements(r, l, s, &from) ||
        !find_element(r, l, from, false, &found))
        return false;
    *out = val_bool(from && from->kids.n && !found);
    return true;
}

bool logic_some(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    const struct json *from;
    bool found;

    if (!list_elements(r, l, s, &from) ||
        !find_element(r, l, from, true, &found))
        return false;
    *out = val_bool(found);
    return true;
}

bool logic_none(struct run *r, const struct logic *l, const struct scope *s,
                struct val *out)
{
    if (!logic_some(r, l, s, out))
        return false;
    *out = val_bool(!out->b);
    return true;
}

bool logic_merge(struct run *r, const struct logic *l, const struct scope *s,
                 struct val *out)
{
    struct val_list list;

    if (!val_list_begin(r, &list))
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        struct val v;

        if (!logic_eval(r, &l->args[i], s, &v))
            return false;
        if (v.type != JSON_ARR) {
            if (!val_list_add(r, &list, &v))
                return false;
            continue;
        }
        JSON_EACH(kid, v.node)
        {
            struct val element = val_of(kid);

            if (!logic_count(r, 1) || !val_list_add(r, &list, &element))
                return false;
        }
    }
    *out = val_list_end(&list);
    return true;
}

/* Whether a text contains a text, or a list an identical element. */
bool logic_in(struct run *r, const struct logic *l, const struct scope *s,
              struct val *out)
{
    struct val what, where;
    struct str part;
    size_t passed = 0;

    if (!logic_eval(r, &l->args[0], s, &what) ||
        !logic_eval(r, &l->args[1], s, &where))
        return false;
    *out = val_bool(false);
    if (where.type == JSON_STR) {
        if (where.s.n == 0)
            return true;
        if (!val_to_str(r, &what, &part) || !logic_count(r, where.s.n / 64))
            return false;
        out->b = part.n == 0 || memmem(where.s.p, where.s.n, part.p, part.n);
        return true;
    }
    if (where.type != JSON_ARR)
        return true;
    JSON_EACH(kid, where.node)
    {
        struct val element = val_of(kid);

        if (val_same(&what, &element)) {
            out->b = true;
            break;
        }
        passed++;
    }
    return logic_count(r, passed / 4);
}
