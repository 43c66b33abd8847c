/* The mirror: every agent by its name, in the order of names, and by its
 * number in the index.
 *
 *     by_name    "echo" -> entry      every message asks for its agent
 *     list       sorted, pointers     lists, and whoever decides
 *     by_number  3 -> entry           what the index finds
 *
 * Numbers are small and used again, since the index's arrays are as long as
 * the largest. They are kept in the rows, so that a snapshot of the index
 * still means the same agents at the next start.
 *
 * Putting in and taking out cannot fail: room was made when the change was
 * taken. A sorted list costs a move of pointers for each new agent; turned
 * down: a tree, since ten thousand pointers are moved in microseconds and all
 * who read walk over plain memory. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum {
    AGENTS_DEFAULT = 10000,
    SKILLS_DEFAULT = 100000,
    MIRROR_MAX = INDEX_DOCS_MAX,
    GRANTS_MAX = INT32_MAX, /* AGENT_GRANTS_MAX of each is what bounds them */
};

struct registry *registry_new(const struct registry_opts *opts)
{
    struct registry *r = FAULT("registry.new") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->opts = *opts;
    map_init(&r->by_name, MIRROR_MAX, opts->seed);
    map_init(&r->owners, MIRROR_MAX, opts->seed);
    map_init(&r->orgs, MIRROR_MAX, opts->seed);
    map_init(&r->grants, GRANTS_MAX, opts->seed);
    map_init(&r->claims, MIRROR_MAX, opts->seed);
    registry_set_limits(r, &opts->limits);
    r->index = index_new(INDEX_DOCS_MAX, opts->seed);
    if (r->index && keywords_open(r) == OK && vectors_open(r) == OK &&
        search_open(r) == OK)
        return r;
    registry_free(r);
    return NULL;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    assert(r->claims.n == 0); /* every change was settled */
    for (size_t i = 0; i < r->n; i++) {
        vectors_forget(r, entry_of(r->list[i]));
        entry_free(r, entry_of(r->list[i]));
    }
    assert(r->owners.n == 0 && r->orgs.n == 0 && r->grants.n == 0);
    search_close(r);
    vectors_close(r);
    keywords_close(r);
    map_fini(&r->by_name);
    map_fini(&r->owners);
    map_fini(&r->orgs);
    map_fini(&r->grants);
    map_fini(&r->claims);
    index_free(r->index);
    free(r->list);
    free(r->by_number);
    free(r->free_numbers);
    free(r->near);
    free(r->near_marks);
    free(r);
}

void registry_begin(struct registry *r)
{
    vectors_begin(r);
    sealed_begin(r);
}

void registry_stop(struct registry *r)
{
    if (r->is_stopped)
        return;
    r->is_stopped = true;
    vectors_stop(r);
    search_stop(r);
    snapshot_save(r);
}

struct registry_limits limits_fill(const struct registry_limits *l)
{
    struct registry_limits full = *l;

    if (!l->max_agents)
        full.max_agents = AGENTS_DEFAULT;
    if (!l->max_skills)
        full.max_skills = SKILLS_DEFAULT;
    return full;
}

void registry_set_limits(struct registry *r, const struct registry_limits *l)
{
    r->opts.limits = limits_fill(l);
}

void registry_set_currency(struct registry *r, struct str currency)
{
    snprintf(r->currency, sizeof(r->currency), "%.*s", STR_ARG(currency));
}

/* The mirror. */

struct entry *entry_find(const struct registry *r, struct str name)
{
    char key[AGENT_NAME_MAX + 1];

    if (name.n == 0 || name.n > AGENT_NAME_MAX)
        return NULL;
    key_of(name, key);
    return map_get(&r->by_name, (struct str){key, name.n});
}

/* Make room for `n` things; *cap is how many there is room for. */
static enum err grow(void **list, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap ? *cap : 16;
    void *p;

    if (n <= *cap)
        return OK;
    while (more < n)
        more *= 2;
    p = FAULT("registry.grow") ? NULL : realloc(*list, more * size);
    if (!p)
        return ERR_NOMEM;
    *list = p;
    *cap = more;
    return OK;
}

/* Two arrays and one capacity, which is that of the smaller. */
static enum err grow_numbers(struct registry *r, size_t n)
{
    size_t cap = r->numbers_cap;
    void *entries = r->by_number, *free_ones = r->free_numbers;
    enum err e = grow(&entries, &cap, n, sizeof(*r->by_number));

    r->by_number = entries;
    if (e)
        return e;
    cap = r->numbers_cap;
    e = grow(&free_ones, &cap, n, sizeof(*r->free_numbers));
    r->free_numbers = free_ones;
    if (!e)
        r->numbers_cap = cap;
    return e;
}

enum err mirror_reserve(struct registry *r, size_t n)
{
    size_t more = r->n_coming + n;
    void *list = r->list;
    enum err e = grow(&list, &r->cap, r->n + more, sizeof(*r->list));

    r->list = list;
    if (!e)
        e = grow_numbers(r, r->n_numbers + n);
    if (!e)
        e = map_reserve(&r->by_name, more);
    return e;
}

uint32_t number_claim(struct registry *r)
{
    if (r->n_free)
        return r->free_numbers[--r->n_free];
    assert(r->n_numbers < r->numbers_cap);
    r->by_number[r->n_numbers] = NULL;
    return (uint32_t)r->n_numbers++;
}

void number_release(struct registry *r, uint32_t number)
{
    assert(!r->by_number[number] && r->n_free < r->numbers_cap);
    r->free_numbers[r->n_free++] = number;
}

/* Where a name is in the list, or would be. */
static size_t place_of(const struct registry *r, struct str name)
{
    size_t from = 0, to = r->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (str_cmp_nocase(r->list[mid]->name, name) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void count(struct registry *r, const struct agent *a, int64_t by)
{
    r->stats.agents += by;
    r->stats.skills += by * (int64_t)a->n_skills;
    r->stats.grants += by * (int64_t)a->n_grants;
    r->stats.by_visibility[a->visibility & 3] += by;
}

struct entry *mirror_take(struct registry *r, struct str key)
{
    size_t at = place_of(r, key);
    struct entry *e = map_take(&r->by_name, key);

    if (!e)
        return NULL;
    assert(at < r->n && r->list[at] == &e->agent);
    memmove(r->list + at, r->list + at + 1, (--r->n - at) * sizeof(*r->list));
    r->by_number[e->number] = NULL;
    r->n_moves++;
    keywords_take(r, e);
    list_remove(&e->owned);
    count(r, &e->agent, -1);
    return e;
}

/* The key lies in the entry: so it is taken out with the one before, and not
 * only replaced. */
struct entry *mirror_put(struct registry *r, struct entry *e)
{
    struct entry *before = mirror_take(r, e->key);
    size_t at = place_of(r, e->agent.name);
    enum err put = map_put(&r->by_name, e->key, e);

    assert(put == OK && r->n < r->cap);
    memmove(r->list + at + 1, r->list + at, (r->n++ - at) * sizeof(*r->list));
    r->list[at] = &e->agent;
    r->by_number[e->number] = e;
    r->n_moves++;
    keywords_put(r, e);
    if (e->owner)
        list_append(&e->owner->entries, &e->owned);
    count(r, &e->agent, 1);
    return before;
}

void registry_user_moved(struct registry *r, struct str user)
{
    const struct owner *o = owner_find(r, user);

    index_retry(r);
    for (struct list_node *n = o ? list_first(&o->entries) : NULL; n;
         n = list_next(&o->entries, n)) {
        struct entry *e = LIST_OF(n, struct entry, owned);

        if (entry_refresh_org(r, e))
            index_follow(r, e);
    }
}

/* Looking. */

struct agents registry_agents(const struct registry *r)
{
    return (struct agents){r->list, r->n, &r->by_name};
}

const struct agent *registry_find(const struct registry *r, struct str name,
                                  const struct eyes *eyes)
{
    const struct entry *e = entry_find(r, name);

    return e && agent_is_visible(&e->agent, eyes) ? &e->agent : NULL;
}

void registry_set_state_of(struct registry *r,
                           enum agent_state (*state_of)(void *ctx,
                                                        const struct agent *a),
                           void *ctx)
{
    r->state_of = state_of;
    r->state_ctx = ctx;
}

/* While nobody knows better: one that must come to us and cannot be called is
 * not there. */
enum agent_state registry_state(const struct registry *r, const struct agent *a)
{
    struct agent_url url;

    if (r->state_of)
        return r->state_of(r->state_ctx, a);
    if (agent_url_read(a->url, &url, NULL) == OK && url.road == ROAD_HUB &&
        !a->wake.url.n)
        return AGENT_DEAD;
    return AGENT_IDLE;
}

bool registry_is_embedded(const struct registry *r, const struct agent *a)
{
    return entry_of(a)->is_embedded ||
           index_is_for_now(r->index, entry_of(a)->number);
}

struct registry_stats registry_stats(const struct registry *r)
{
    struct registry_stats s = r->stats;

    s.seq = r->seq;
    s.is_ready = !vectors_obstacle(r) && !s.unembedded &&
                 (!r->opts.reference.n || s.has_levels);
    s.index = index_stats(r->index);
    return s;
}
