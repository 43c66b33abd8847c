/* The agents of the configuration: what differs between its list and what is
 * there of it now, as one change.
 *
 * A configured agent is a record like all others, so that tasks, the feed and
 * the index know only one kind. It has no creator. A name that somebody else
 * has registered becomes the configuration's, with nothing left of what its
 * owner had said but the revision, which goes on: the operator's word counts,
 * and whoever held the name learns it from the feed. */
#include "base/fault.h"
#include "registry/internal.h"

enum { NAMES_BYTES = 64 };

static enum err check_one(const struct agent *a, struct map *seen,
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
    key_of(a->name, lower);
    key = (struct str){lower, a->name.n};
    same = map_get(seen, key);
    if (same)
        return why_err(why, ERR_EXISTS,
                       "there are two agents called \"%.*s\" and \"%.*s\"; "
                       "names must differ in more than their case",
                       STR_ARG(same->name), STR_ARG(a->name));
    return map_put(seen, key, (void *)a);
}

static enum err make_one(struct registry *r, const struct agent *a,
                         const struct entry *before, int64_t now_ms,
                         struct entry **out)
{
    struct agent full = *a;

    full.creator = (struct str){NULL, 0};
    full.is_configured = true;
    if (!full.visibility)
        full.visibility = VISIBILITY_PUBLIC;
    if (!full.kind)
        full.kind = AGENT_PLATFORM;
    return entry_make(r, &full, before, now_ms, out);
}

/* What goes makes room for what comes. */
struct leaving {
    size_t n, n_skills;
    const struct registry_limits *limits;
};

static enum err put_one(struct registry *r, struct registry_change *c,
                        const struct agent *a, const struct leaving *leaving,
                        int64_t now_ms, struct why *why)
{
    struct step_put p = {.before = entry_find(r, a->name),
                         .limits = leaving->limits,
                         .n_leaving = leaving->n,
                         .n_skills_leaving = leaving->n_skills};
    bool is_same = false;
    enum err e = make_one(r, a, p.before, now_ms, &p.entry);

    if (!e && p.before)
        e = entry_is_same(p.before, p.entry, &is_same);
    if (e || is_same) {
        entry_free(r, p.entry);
        return e;
    }
    p.keeps_grants = p.before && p.before->agent.is_configured;
    if (p.before && !p.keeps_grants)
        log_warn(r->opts.log, "registry.taken_over",
                 LOG_S("agent", p.before->agent.name),
                 LOG_S("creator", p.before->agent.creator));
    return step_put(r, c, &p, why);
}

static enum err remove_others(struct registry *r, struct registry_change *c,
                              const struct map *seen, struct leaving *leaving,
                              int64_t now_ms, struct why *why)
{
    enum err e = OK;

    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = entry_of(r->list[i]);

        if (!one->agent.is_configured || map_get(seen, one->key))
            continue;
        e = step_remove(r, c, one, (struct str){NULL, 0}, now_ms, why);
        leaving->n++;
        leaving->n_skills += one->agent.n_skills;
    }
    return e;
}

static enum err put_all(struct registry *r, struct registry_change *c,
                        const struct agent *list, size_t n, struct map *seen,
                        const struct registry_limits *limits, int64_t now_ms,
                        struct why *why)
{
    struct leaving leaving = {.limits = limits};
    struct arena scratch;
    enum err e = OK;

    arena_init(&scratch, (n + 1) * (AGENT_NAME_MAX + NAMES_BYTES));
    for (size_t i = 0; i < n && !e; i++)
        e = check_one(&list[i], seen, &scratch, why);
    if (!e)
        e = remove_others(r, c, seen, &leaving, now_ms, why);
    for (size_t i = 0; i < n && !e; i++)
        e = put_one(r, c, &list[i], &leaving, now_ms, why);
    arena_fini(&scratch);
    return e;
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
    e = put_all(r, c, list, n, &seen, &full, now_ms, why);
    map_fini(&seen);
    if (e)
        return change_refuse(r, c, e, why);
    c->is_same = !c->steps;
    if (!c->is_same)
        seq_append(r, &c->tx);
    return change_open(c, (struct str){NULL, 0}, 0);
}
