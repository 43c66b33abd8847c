/* The resources of one owner, and of one org: agents, skills, bytes of cards,
 * and bytes of the index.
 *
 * Every search and every routing decision looks at all visible documents, so a
 * few owners with very many skills would slow down all users. Each entry holds
 * its part of the counts of its owner and of its org, pending ones included: a
 * card that replaces another of the same owner takes over its part. The counts
 * of an org live as long as it has agents. */
#include "registry/internal.h"

static size_t strs_bytes(struct strs list)
{
    size_t sum = 0;

    for (size_t i = 0; i < list.n; i++)
        sum += list.list[i].n;
    return sum;
}

/* An estimate of the index size: a vector for each document and for the whole,
 * and the words; those of the agent are in the document of each skill too. */
static size_t holding_index_bytes(const struct registry *r,
                                  const struct agent *a)
{
    size_t dims = index_dims(r->index),
           vector = dims ? vec_packed_bytes(dims) : 0;
    size_t own = a->name.n + a->title.n + a->description.n +
                 strs_bytes(a->routing.keywords) + vector;
    size_t sum = own + vector;

    for (size_t i = 0; i < a->n_skills; i++) {
        const struct skill *s = &a->skills[i];

        sum += own + s->name.n + s->description.n + strs_bytes(s->tags) +
               strs_bytes(s->examples);
    }
    return sum;
}

struct holding holding_of(const struct registry *r, const struct agent *a,
                          size_t card_bytes)
{
    return (struct holding){
        .of = {[HELD_AGENTS] = 1,
               [HELD_SKILLS] = a->n_skills,
               [HELD_CARD_BYTES] = card_bytes,
               [HELD_INDEX_BYTES] = holding_index_bytes(r, a)}};
}

bool holding_is(const struct holding *a, const struct holding *b)
{
    for (int i = 0; i < N_HELD; i++)
        if (a->of[i] != b->of[i])
            return false;
    return true;
}

void holding_add(struct holding *to, const struct holding *more)
{
    for (int i = 0; i < N_HELD; i++)
        to->of[i] += more->of[i];
}

void holding_subtract(struct holding *from, const struct holding *less)
{
    for (int i = 0; i < N_HELD; i++)
        from->of[i] -= less->of[i];
}

void holding_count_more(struct entry *e, size_t card_bytes)
{
    e->size.of[HELD_CARD_BYTES] += card_bytes;
    if (e->owner) {
        e->counted.of[HELD_CARD_BYTES] += card_bytes;
        e->owner->held.of[HELD_CARD_BYTES] += card_bytes;
    }
    if (e->in_org) {
        e->org_counted.of[HELD_CARD_BYTES] += card_bytes;
        e->in_org->held.of[HELD_CARD_BYTES] += card_bytes;
    }
}

struct holding holding_beyond(const struct holding *size,
                              const struct holding *had)
{
    struct holding more = *size;

    for (int i = 0; had && i < N_HELD; i++)
        more.of[i] = size->of[i] > had->of[i] ? size->of[i] - had->of[i] : 0;
    return more;
}

struct org_count *org_count_find(const struct registry *r, struct str org)
{
    return org.n ? share_find(&r->orgs, org) : NULL;
}

enum err org_take(struct registry *r, struct entry *e,
                  const struct entry *before)
{
    struct str org = e->agent.org;
    struct org_count *o;

    assert(!e->in_org);
    if (!e->owner || !org.n)
        return OK;
    o = share_take(&r->orgs, org);
    if (!o)
        return ERR_NOMEM;
    e->in_org = o;
    e->org_counted = holding_beyond(
        &e->size, before && before->in_org == o ? &before->size : NULL);
    holding_add(&o->held, &e->org_counted);
    return OK;
}

void org_follow(struct entry *e, struct entry *before)
{
    struct org_count *o = e->in_org;

    if (!o)
        return;
    holding_subtract(&o->held, &e->org_counted);
    holding_add(&o->held, &e->size);
    e->org_counted = e->size;
    if (before->in_org != o)
        return;
    holding_subtract(&o->held, &before->org_counted);
    before->org_counted = (struct holding){0};
}

void org_drop(struct registry *r, struct entry *e)
{
    struct org_count *o = e->in_org;

    e->in_org = NULL;
    if (!o)
        return;
    holding_subtract(&o->held, &e->org_counted);
    e->org_counted = (struct holding){0};
    share_give(&r->orgs, o);
}

/* Without memory it counts for no org until the next start. */
void org_move(struct registry *r, struct entry *e)
{
    org_drop(r, e);
    if (org_take(r, e, NULL) != OK)
        log_warn(r->opts.log, "registry.org_uncounted",
                 LOG_S("agent", e->agent.name));
}

struct held_limit {
    size_t most; /* zero: no limit */
    const char *what, *setting;
};

static enum err holding_check_limits(const char *whose,
                                     const struct holding *held,
                                     const struct holding *more,
                                     const struct held_limit limits[N_HELD],
                                     struct why *why)
{
    for (int i = 0; i < N_HELD; i++) {
        const struct held_limit *l = &limits[i];
        size_t has = held ? held->of[i] : 0;

        if (more->of[i] && l->most && has + more->of[i] > l->most)
            return why_err(why, ERR_LIMIT,
                           "%s may have at most %zu %s (registry.%s); "
                           "remove or shorten some cards first",
                           whose, l->most, l->what, l->setting);
    }
    return OK;
}

static enum err holding_check_user(const struct registry *r,
                                   const struct entry *e,
                                   const struct entry *before, struct why *why)
{
    const struct registry_limits *l = &r->opts.limits;
    const struct held_limit limits[N_HELD] = {
        [HELD_AGENTS] = {l->max_agents_per_user, "agents", "maxAgentsPerUser"},
        [HELD_SKILLS] = {l->max_skills_per_user, "skills", "maxSkillsPerUser"},
        [HELD_CARD_BYTES] = {l->max_bytes_per_user, "bytes of cards",
                             "maxCardBytesPerUser"},
        [HELD_INDEX_BYTES] = {l->max_index_bytes_per_user, "bytes of the index",
                              "maxIndexBytesPerUser"},
    };
    const struct owner *o = owner_find(r, e->agent.creator);
    bool is_same = before && owner_is_same(before, e);
    struct holding more =
        holding_beyond(&e->size, is_same ? &before->size : NULL);

    return holding_check_limits("one user", o ? &o->held : NULL, &more, limits,
                                why);
}

static enum err holding_check_org(const struct registry *r,
                                  const struct entry *e,
                                  const struct entry *before, struct why *why)
{
    const struct registry_limits *l = &r->opts.limits;
    const struct held_limit limits[N_HELD] = {
        [HELD_AGENTS] = {l->max_agents_per_org, "agents", "maxAgentsPerOrg"},
        [HELD_SKILLS] = {l->max_skills_per_org, "skills", "maxSkillsPerOrg"},
        [HELD_CARD_BYTES] = {l->max_bytes_per_org, "bytes of cards",
                             "maxCardBytesPerOrg"},
        [HELD_INDEX_BYTES] = {l->max_index_bytes_per_org, "bytes of the index",
                              "maxIndexBytesPerOrg"},
    };
    const struct org_count *o = org_count_find(r, e->agent.org);
    bool is_same = before && o && before->in_org == o;
    struct holding more =
        holding_beyond(&e->size, is_same ? &before->size : NULL);

    if (!e->agent.org.n)
        return OK;
    return holding_check_limits("the users of one org together",
                                o ? &o->held : NULL, &more, limits, why);
}

enum err holding_check(const struct registry *r, const struct entry *e,
                       const struct entry *before, struct why *why)
{
    enum err err = holding_check_user(r, e, before, why);

    return err ? err : holding_check_org(r, e, before, why);
}
