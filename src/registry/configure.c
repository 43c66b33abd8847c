/* The agents of the configuration: applies the difference between its list and
 * the present ones as one change.
 *
 * A configured agent is a record like all others, so tasks, the feed and the
 * index know only one kind. It has no creator. A name that a user has
 * registered stays with the user: a slip in a file must not cost anyone an
 * agent with its prompt and grants. An operator who wants the name can remove
 * that agent first; the log says so.
 *
 * The limits that users fill up do not apply to it, or users could keep the
 * server from starting; the list alone must be within them. */
#include <stdio.h>

#include "base/fault.h"
#include "registry/internal.h"

enum { NAMES_BYTES = 64 };

static enum err config_check_agent(const struct agent *a, struct map *seen,
                                   struct arena *scratch, struct why *why)
{
    struct str shown = str_sub(a->name, 0, AGENT_NAME_MAX);
    const struct agent *same;
    struct str key;
    char *lower;

    if (!agent_name_is_valid(a->name) || !a->url.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "\"%.*s\" is no agent: its name or url is not a valid "
                       "one",
                       STR_ARG(shown));
    lower = arena_alloc(scratch, AGENT_NAME_MAX + 1);
    if (!lower)
        return ERR_NOMEM;
    agent_key(a->name, lower);
    key = (struct str){lower, a->name.n};
    same = map_get(seen, key);
    if (same)
        return why_err(why, ERR_EXISTS,
                       "there are two agents called \"%.*s\" and \"%.*s\"; "
                       "names must differ in more than their case",
                       STR_ARG(same->name), STR_ARG(a->name));
    return map_put(seen, key, (void *)a);
}

/* Registered by a user: the configuration does not take it. */
static bool is_owned_by_user(const struct entry *e)
{
    return e && !e->agent.is_configured;
}

static enum err config_put_agent(struct registry *r, struct registry_change *c,
                                 const struct agent *a, int64_t now_ms,
                                 struct why *why)
{
    struct step_put p = {
        .before = entry_find(r, a->name), .now_ms = now_ms, .is_unbound = true};
    bool is_same = false;
    enum err e;
    struct agent full = *a;

    if (is_owned_by_user(p.before))
        return OK;
    full.creator = (struct str){NULL, 0};
    full.is_configured = true;
    if (!full.visibility)
        full.visibility = VISIBILITY_PUBLIC;
    if (!full.kind)
        full.kind = AGENT_PLATFORM;
    e = entry_make(r, &full, p.before, now_ms, &p.entry);
    if (!e && p.before)
        e = entry_is_same(p.before, p.entry, &is_same);
    if (e || is_same) {
        agent_entry_free(r, p.entry);
        return e;
    }
    return step_put(r, c, &p, why);
}

static enum err config_remove_others(struct registry *r,
                                     struct registry_change *c,
                                     const struct map *seen, int64_t now_ms,
                                     struct why *why)
{
    enum err e = OK;

    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = agent_entry(r->list[i]);

        if (one->agent.is_configured && !map_get(seen, one->key))
            e = step_remove(r, c, one, (struct str){NULL, 0}, now_ms, why);
    }
    return e;
}

static enum err config_check_size(const struct registry_limits *l,
                                  const struct agent *list, size_t n,
                                  struct why *why)
{
    size_t n_skills = 0;

    for (size_t i = 0; i < n; i++)
        n_skills += list[i].n_skills;
    if (n > l->max_agents)
        return why_err(why, ERR_LIMIT,
                       "agents.list has %zu agents, and the limit is %zu "
                       "(registry.maxAgents)",
                       n, l->max_agents);
    if (n_skills > l->max_skills)
        return why_err(why, ERR_LIMIT,
                       "the agents of agents.list have %zu skills, and the "
                       "limit for all together is %zu (registry.maxSkills)",
                       n_skills, l->max_skills);
    return OK;
}

static enum err config_put_agents(struct registry *r, struct registry_change *c,
                                  const struct agent *list, size_t n,
                                  struct map *seen,
                                  const struct registry_limits *limits,
                                  int64_t now_ms, struct why *why)
{
    struct arena scratch;
    enum err e = config_check_size(limits, list, n, why);

    arena_init(&scratch, (n + 1) * (AGENT_NAME_MAX + NAMES_BYTES));
    for (size_t i = 0; i < n && !e; i++)
        e = config_check_agent(&list[i], seen, &scratch, why);
    if (!e)
        e = config_remove_others(r, c, seen, now_ms, why);
    for (size_t i = 0; i < n && !e; i++)
        e = config_put_agent(r, c, &list[i], now_ms, why);
    arena_fini(&scratch);
    return e;
}

static void config_log_rejected(const struct registry *r,
                                const struct agent *list, size_t n)
{
    struct why words;

    for (size_t i = 0; i < n; i++) {
        const struct entry *e = entry_find(r, list[i].name);
        struct str owner;

        if (!is_owned_by_user(e))
            continue;
        owner = e->agent.creator.n ? e->agent.creator : STR("another user");
        snprintf(words.text, sizeof(words.text),
                 "agents.list: %.*s is skipped: %.*s registered that name; "
                 "remove that agent (signalbox agents remove %.*s) and "
                 "reload, or choose another id",
                 STR_ARG(list[i].name), STR_ARG(owner), STR_ARG(e->agent.name));
        log_error(r->opts.log, "registry.not_taken",
                  LOG_S("agent", list[i].name), LOG_C("why", words.text));
    }
}

enum err registry_configure(struct registry *r, struct registry_change *c,
                            const struct agent *list, size_t n,
                            const struct registry_limits *limits,
                            int64_t now_ms, struct why *why)
{
    struct registry_limits full;
    struct map seen;
    enum err e;

    assert(!c->is_open);
    full = limits ? limits_fill(limits) : r->opts.limits;
    map_init(&seen, n + 1, r->opts.seed);
    e = config_put_agents(r, c, list, n, &seen, &full, now_ms, why);
    map_fini(&seen);
    if (e)
        return change_refuse(r, c, e, why);
    config_log_rejected(r, list, n);
    c->is_same = !c->steps;
    if (!c->is_same)
        seq_append(r, &c->tx);
    return change_open(c, (struct str){NULL, 0}, 0);
}
