/* The mirror: every agent by its name, in the order of names, and by its
 * number in the index.
 *
 *     by_name    "echo" -> entry      every message looks up its agent
 *     list       sorted, pointers     lists and routing
 *     by_number  3 -> entry           results of the index
 *
 * Numbers are small and reused, since the arrays of the index are as long as
 * the largest. They are stored in the rows, so that a snapshot of the index
 * still refers to the same agents at the next start.
 *
 * Putting in and taking out cannot fail: room was reserved when the change was
 * taken. Rejected: a tree instead of a sorted list. Ten thousand pointers move
 * in microseconds, and all readers walk over plain memory. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    AGENTS_DEFAULT = 10000,
    SKILLS_DEFAULT = 100000,
    MIRROR_MAX = INDEX_DOCS_MAX,
    GRANTS_MAX = INT32_MAX, /* AGENT_GRANTS_MAX per agent is the real limit */
};

struct registry *registry_new(const struct registry_opts *opts)
{
    struct registry *r = mem_new(sizeof(*r));

    r->opts = *opts;
    list_init(&r->reports);
    r->share = SIZE_MAX;
    map_init(&r->by_name, MIRROR_MAX, opts->seed);
    shares_init(&r->owners, sizeof(struct owner), MIRROR_MAX, opts->seed);
    shares_init(&r->orgs, sizeof(struct org_count), MIRROR_MAX, opts->seed);
    map_init(&r->grants, GRANTS_MAX, opts->seed);
    map_init(&r->claims, MIRROR_MAX, opts->seed);
    registry_set_limits(r, &opts->limits);
    r->index = index_new(INDEX_DOCS_MAX, opts->seed);
    pace_open(r);
    search_open(r);
    if (!r->index || keywords_open(r) != OK) {
        registry_free(r);
        return NULL;
    }
    vectors_open(r);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    assert(r->claims.n == 0); /* every change was settled */
    for (size_t i = 0; i < r->n; i++) {
        vectors_forget(r, agent_entry(r->list[i]));
        agent_entry_free(r, agent_entry(r->list[i]));
    }
    assert(r->owners.by_key.n == 0 && r->orgs.by_key.n == 0 &&
           r->grants.n == 0);
    search_close(r);
    vectors_close(r);
    keywords_close(r);
    reports_close(r);
    pace_close(r);
    map_fini(&r->by_name);
    shares_fini(&r->owners);
    shares_fini(&r->orgs);
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
    if (r->is_loaded)
        front_settle(r);
}

void registry_set_currency(struct registry *r, struct str currency)
{
    snprintf(r->currency, sizeof(r->currency), "%.*s", STR_ARG(currency));
}

struct entry *entry_find(const struct registry *r, struct str name)
{
    char key[AGENT_NAME_MAX + 1];

    if (name.n == 0 || name.n > AGENT_NAME_MAX)
        return NULL;
    agent_key(name, key);
    return map_get(&r->by_name, (struct str){key, name.n});
}

void *registry_grow(void *p, size_t n, size_t size)
{
    return FAULT("registry.grow") ? NULL : reallocarray(p, n, size);
}

enum err mirror_reserve(struct registry *r, size_t n)
{
    size_t coming = r->n_coming + n;
    size_t agents = r->cap ? r->cap : 16;
    size_t numbers = r->numbers_cap ? r->numbers_cap : 16;

    while (agents < r->n + coming)
        agents *= 2;
    while (numbers < r->n_numbers + n)
        numbers *= 2;
    if (agents > r->cap && !REGISTRY_GROW(r->list, agents))
        return ERR_NOMEM;
    r->cap = agents;
    if (numbers > r->numbers_cap && (!REGISTRY_GROW(r->by_number, numbers) ||
                                     !REGISTRY_GROW(r->free_numbers, numbers)))
        return ERR_NOMEM;
    r->numbers_cap = numbers;
    return map_reserve(&r->by_name, coming);
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

/* Index of a name in the list, or where it would be. */
static size_t mirror_index(const struct registry *r, struct str name)
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

static void mirror_count(struct registry *r, const struct agent *a, int64_t by)
{
    r->stats.agents += by;
    r->stats.skills += by * (int64_t)a->n_skills;
    r->stats.grants += by * (int64_t)a->n_grants;
    r->stats.by_visibility[a->visibility & 3] += by;
    r->stats.by_review[a->review ? a->review->state & 3 : 0] += by;
}

struct entry *mirror_take(struct registry *r, struct str key)
{
    size_t at = mirror_index(r, key);
    struct entry *e = map_take(&r->by_name, key);

    if (!e)
        return NULL;
    assert(at < r->n && r->list[at] == &e->agent);
    memmove(r->list + at, r->list + at + 1, (--r->n - at) * sizeof(*r->list));
    r->by_number[e->number] = NULL;
    r->n_moves++;
    keywords_take(r, e);
    front_take(r, e);
    list_remove(&e->owned);
    mirror_count(r, &e->agent, -1);
    return e;
}

/* The key is in the entry, so the previous one is taken out, not only
 * replaced. */
struct entry *mirror_put(struct registry *r, struct entry *e)
{
    struct entry *before = mirror_take(r, e->key);
    size_t at = mirror_index(r, e->agent.name);
    enum err put = map_put(&r->by_name, e->key, e);

    assert(put == OK && r->n < r->cap);
    memmove(r->list + at + 1, r->list + at, (r->n++ - at) * sizeof(*r->list));
    r->list[at] = &e->agent;
    r->by_number[e->number] = e;
    r->n_moves++;
    keywords_put(r, e);
    if (e->owner)
        list_append(&e->owner->entries, &e->owned);
    front_add(r, e);
    mirror_count(r, &e->agent, 1);
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

struct agents registry_agents(const struct registry *r)
{
    return (struct agents){r->list, r->n, &r->by_name};
}

const struct agent *registry_agent(const struct registry *r, struct str name)
{
    struct agents all = registry_agents(r);

    return agent_find(&all, name);
}

const struct agent *registry_agent_for(const struct registry *r,
                                       const struct task *t)
{
    const struct agent *a = registry_agent(r, t->agent);

    return a && (a->created_ms <= t->created_ms || a->is_configured ||
                 str_eq_nocase(a->creator, t->requester) ||
                 str_eq_nocase(a->creator, t->root_user))
               ? a
               : NULL;
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

/* Without state_of, an agent that must connect to us and cannot be woken counts
 * as dead. */
enum agent_state registry_state(const struct registry *r, const struct agent *a)
{
    struct agent_url url;

    if (r->state_of)
        return r->state_of(r->state_ctx, a);
    if (agent_url_read(a->url, &url, NULL) == OK &&
        url.transport == TRANSPORT_HUB && !a->wake.url.n)
        return AGENT_DEAD;
    return AGENT_IDLE;
}

bool registry_is_embedded(const struct registry *r, const struct agent *a)
{
    return agent_entry(a)->is_embedded ||
           index_is_for_now(r->index, agent_entry(a)->number);
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
