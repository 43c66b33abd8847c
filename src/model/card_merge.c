/* RFC 7396: an object over an object, member by member, null for "take it
 * away"; anything else takes the place of what was there.
 *
 * Members are found in a sorted list of the patch's: both sides come from
 * outside, and a patch of a hundred thousand names over an object of a
 * thousand must not be a hundred million comparisons. Recursion is as deep as
 * the reader lets documents be. */
#include "model/card.h"

#include <stdlib.h>

/* What the patch says of one member. */
struct wish {
    const struct json *value;
    bool is_done; /* the target has it */
};

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct wish *)a)->value->key,
                   ((const struct wish *)b)->value->key);
}

static struct wish *sort(struct arena *a, const struct json *patch)
{
    size_t n = patch->kids.n, i = 0;
    struct wish *list = arena_array(a, n + 1, sizeof(*list));

    if (!list)
        return NULL;
    JSON_EACH(kid, patch)
    {
        list[i++].value = kid;
    }
    qsort(list, n, sizeof(*list), by_key);
    return list;
}

static struct wish *find(struct wish *list, size_t n, struct str key)
{
    size_t from = 0;

    while (from < n) {
        size_t mid = from + (n - from) / 2;
        int c = str_cmp(list[mid].value->key, key);

        if (c == 0)
            return &list[mid];
        if (c < 0)
            from = mid + 1;
        else
            n = mid;
    }
    return NULL;
}

/* Making trees. */

static bool has_kids(const struct json *v)
{
    return v->type == JSON_ARR || v->type == JSON_OBJ;
}

static struct json *copy_bare(struct arena *a, const struct json *v)
{
    struct json *c = arena_alloc(a, sizeof(*c));

    if (!c)
        return NULL;
    *c = *v;
    c->next = NULL;
    if (has_kids(v)) {
        c->kids.first = NULL;
        c->kids.n = 0;
    }
    return c;
}

/* Hang one more onto what is being made; false: there is none, memory is
 * gone. */
static bool hang(struct json *to, struct json ***tail, struct json *kid)
{
    if (!kid)
        return false;
    **tail = kid;
    *tail = &kid->next;
    to->kids.n++;
    return true;
}

static struct json *copy(struct arena *a, const struct json *v)
{
    struct json *c = copy_bare(a, v);
    struct json **tail;

    if (!c || !has_kids(v))
        return c;
    tail = &c->kids.first;
    JSON_EACH(kid, v)
    {
        if (!hang(c, &tail, copy(a, kid)))
            return NULL;
    }
    return c;
}

/* What the target has, in its order, then what is new, in the patch's. */
static bool fill(struct arena *a, struct json *out, const struct json *target,
                 const struct json *patch, struct wish *wishes)
{
    struct json **tail = &out->kids.first;
    const struct json *first =
        target && target->type == JSON_OBJ ? target->kids.first : NULL;

    for (const struct json *kid = first; kid; kid = kid->next) {
        struct wish *w = find(wishes, patch->kids.n, kid->key);

        if (w)
            w->is_done = true;
        if (w && w->value->type == JSON_NULL)
            continue;
        if (!hang(out, &tail, w ? card_merge(a, kid, w->value) : copy(a, kid)))
            return false;
    }
    JSON_EACH(kid, patch)
    {
        if (kid->type == JSON_NULL ||
            find(wishes, patch->kids.n, kid->key)->is_done)
            continue;
        if (!hang(out, &tail, card_merge(a, NULL, kid)))
            return false;
    }
    return true;
}

struct json *card_merge(struct arena *a, const struct json *card,
                        const struct json *patch)
{
    struct wish *wishes;
    struct json *out;

    if (patch->type != JSON_OBJ)
        return copy(a, patch);
    out = copy_bare(a, patch);
    wishes = sort(a, patch);
    return out && wishes && fill(a, out, card, patch, wishes) ? out : NULL;
}
