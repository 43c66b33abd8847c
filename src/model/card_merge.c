/* RFC 7396: an object is merged member by member, null removes a member, and
 * any other value replaces the target.
 *
 * The members of the patch are sorted and searched: both sides come from
 * outside, and a patch of a hundred thousand names over an object of a thousand
 * must not cost a hundred million comparisons. The recursion is as deep as the
 * JSON reader allows. */
#include "model/card.h"

#include <stdlib.h>

/* One member of the patch. */
struct member_patch {
    const struct json *value;
    bool is_done; /* the target has the member */
};

static int member_patch_cmp(const void *a, const void *b)
{
    return str_cmp(((const struct member_patch *)a)->value->key,
                   ((const struct member_patch *)b)->value->key);
}

static struct member_patch *member_patch_find(struct member_patch *list,
                                              size_t n, struct str key)
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

/* Building trees. */

static struct json *json_copy_bare(struct arena *a, const struct json *v)
{
    struct json *c = arena_alloc(a, sizeof(*c));

    if (!c)
        return NULL;
    *c = *v;
    c->next = NULL;
    if (json_has_kids(v)) {
        c->kids.first = NULL;
        c->kids.n = 0;
    }
    return c;
}

/* Append a child; false if kid is NULL because the arena is full. */
static bool json_append_kid(struct json *to, struct json ***tail,
                            struct json *kid)
{
    if (!kid)
        return false;
    **tail = kid;
    *tail = &kid->next;
    to->kids.n++;
    return true;
}

static struct json *json_copy(struct arena *a, const struct json *v)
{
    struct json *c = json_copy_bare(a, v);
    struct json **tail;

    if (!c || !json_has_kids(v))
        return c;
    tail = &c->kids.first;
    JSON_EACH(kid, v)
    {
        if (!json_append_kid(c, &tail, json_copy(a, kid)))
            return NULL;
    }
    return c;
}

/* First the members of the target, in its order, then the new ones, in the
 * order of the patch. */
static bool card_merge_members(struct arena *a, struct json *out,
                               const struct json *target,
                               const struct json *patch,
                               struct member_patch *patches)
{
    struct json **tail = &out->kids.first;
    const struct json *first =
        target && target->type == JSON_OBJ ? target->kids.first : NULL;

    for (const struct json *kid = first; kid; kid = kid->next) {
        struct member_patch *w =
            member_patch_find(patches, patch->kids.n, kid->key);

        if (w)
            w->is_done = true;
        if (w && w->value->type == JSON_NULL)
            continue;
        if (!json_append_kid(out, &tail,
                             w ? card_merge(a, kid, w->value)
                               : json_copy(a, kid)))
            return false;
    }
    JSON_EACH(kid, patch)
    {
        if (kid->type == JSON_NULL ||
            member_patch_find(patches, patch->kids.n, kid->key)->is_done)
            continue;
        if (!json_append_kid(out, &tail, card_merge(a, NULL, kid)))
            return false;
    }
    return true;
}

struct json *card_merge(struct arena *a, const struct json *card,
                        const struct json *patch)
{
    struct member_patch *patches;
    struct json *out;
    size_t n = 0;

    if (patch->type != JSON_OBJ)
        return json_copy(a, patch);
    out = json_copy_bare(a, patch);
    patches = arena_array(a, patch->kids.n + 1, sizeof(*patches));
    if (!out || !patches)
        return NULL;
    JSON_EACH(kid, patch)
    {
        patches[n++].value = kid;
    }
    qsort(patches, n, sizeof(*patches), member_patch_cmp);
    return card_merge_members(a, out, card, patch, patches) ? out : NULL;
}
