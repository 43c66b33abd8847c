/* A set of agents is built whole, in an arena of its own, and put in the place
 * of the one before only when it is complete: so an error leaves everything as
 * it was, and nothing is ever taken out one by one.
 *
 *     arena: [agents, sorted] [names, urls, titles, lower-case names]
 *     map:   lower-case name -> agent
 *
 * Turned down: a binary search over the sorted list instead of the map. Every
 * message asks for its agent. */
#include "registry/registry.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/fault.h"

enum { REGISTRY_AGENTS_MAX = 10000 };

enum {
    /* An agent with everything in it, its second name and the padding. */
    AGENT_BYTES = sizeof(struct agent) + sizeof(void *) + 2 * AGENT_NAME_MAX +
                  AGENT_URL_MAX + AGENT_TITLE_MAX + 128,
};

struct set {
    struct arena arena;
    struct agent *list;
    const struct agent **ptrs;
    size_t n;
    struct map by_name;
};

struct registry {
    uint64_t seed[2];
    struct set now;
};

static void set_init(struct set *s, size_t n, const uint64_t seed[2])
{
    *s = (struct set){.n = n};
    arena_init(&s->arena, (n + 1) * AGENT_BYTES);
    map_init(&s->by_name, REGISTRY_AGENTS_MAX, seed);
}

static void set_fini(struct set *s)
{
    map_fini(&s->by_name);
    arena_fini(&s->arena);
}

static int by_name_without_case(const void *a, const void *b)
{
    return str_cmp_nocase(((const struct agent *)a)->name,
                          ((const struct agent *)b)->name);
}

static bool copy_str(struct arena *a, struct str from, struct str *to)
{
    *to = (struct str){arena_strdup(a, from), from.n};
    return to->p != NULL;
}

static bool copy_agent(struct arena *a, const struct agent *from,
                       struct agent *to)
{
    return copy_str(a, from->name, &to->name) &&
           copy_str(a, from->url, &to->url) &&
           copy_str(a, from->title, &to->title);
}

/* Fill s->list, sorted. */
static enum err copy_all(struct set *s, const struct agent *list,
                         struct why *why)
{
    struct agent_url url;

    s->list = arena_array(&s->arena, s->n, sizeof(*s->list));
    s->ptrs = arena_array(&s->arena, s->n, sizeof(*s->ptrs));
    if (!s->list || !s->ptrs)
        return ERR_NOMEM;
    for (size_t i = 0; i < s->n; i++) {
        struct str shown = str_sub(list[i].name, 0, AGENT_NAME_MAX);

        if (!agent_name_is_valid(list[i].name) ||
            agent_url_read(list[i].url, &url, NULL) != OK ||
            list[i].title.n > AGENT_TITLE_MAX)
            return why_err(why, ERR_BAD_REQUEST,
                           "\"%.*s\" is no agent: its name, url or title is "
                           "not a valid one",
                           STR_ARG(shown));
        if (!copy_agent(&s->arena, &list[i], &s->list[i]))
            return ERR_NOMEM;
    }
    if (s->n)
        qsort(s->list, s->n, sizeof(*s->list), by_name_without_case);
    for (size_t i = 0; i < s->n; i++)
        s->ptrs[i] = &s->list[i];
    return OK;
}

static enum err index_one(struct set *s, struct agent *a, struct why *why)
{
    char *lower = arena_strdup(&s->arena, a->name);
    struct str key = {lower, a->name.n};
    const struct agent *same;

    if (!lower)
        return ERR_NOMEM;
    for (size_t i = 0; i < key.n; i++)
        lower[i] = str_lower(lower[i]);
    same = map_get(&s->by_name, key);
    if (same)
        return why_err(why, ERR_EXISTS,
                       "there are two agents called \"%.*s\" and \"%.*s\"; "
                       "names must differ in more than their case",
                       STR_ARG(same->name), STR_ARG(a->name));
    return map_put(&s->by_name, key, a);
}

struct registry *registry_new(const struct registry_opts *opts)
{
    struct registry *r = FAULT("registry.new") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    memcpy(r->seed, opts->seed, sizeof(r->seed));
    set_init(&r->now, 0, r->seed);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    set_fini(&r->now);
    free(r);
}

enum err registry_set(struct registry *r, const struct agent *list, size_t n,
                      struct why *why)
{
    struct set next;
    enum err e;

    if (n > REGISTRY_AGENTS_MAX)
        return why_err(why, ERR_LIMIT, "at most %d agents are kept, not %zu",
                       REGISTRY_AGENTS_MAX, n);
    set_init(&next, n, r->seed);
    e = copy_all(&next, list, why);
    for (size_t i = 0; !e && i < n; i++)
        e = index_one(&next, &next.list[i], why);
    if (e) {
        set_fini(&next);
        return e;
    }
    set_fini(&r->now);
    r->now = next;
    return OK;
}

struct agents registry_agents(const struct registry *r)
{
    return (struct agents){r->now.ptrs, r->now.n, &r->now.by_name};
}
