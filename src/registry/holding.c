/* What the agents of one owner, and of one org, take of the registry: agents,
 * skills, bytes of cards, and bytes of the index.
 *
 * Every search and every choice looks at the documents of all who are seen, so
 * a few owners with very many skills would slow down everybody. Each entry
 * holds its part of its owner's counts and of its org's, those on their way
 * included: a card that replaces another of the same owner takes that one's
 * part over. An org's counts come with its first agent and go with its last. */
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

static size_t texts_bytes(struct strs list)
{
    size_t sum = 0;

    for (size_t i = 0; i < list.n; i++)
        sum += list.list[i].n;
    return sum;
}

/* About what the index needs: a vector for each document and for the whole, and
 * the words, where those of the agent stand in each skill's document too. */
static size_t index_bytes(const struct registry *r, const struct agent *a)
{
    size_t dims = index_dims(r->index),
           vector = dims ? vec_packed_bytes(dims) : 0;
    size_t own = a->name.n + a->title.n + a->description.n +
                 texts_bytes(a->routing.keywords) + vector;
    size_t sum = own + vector;

    for (size_t i = 0; i < a->n_skills; i++) {
        const struct skill *s = &a->skills[i];

        sum += own + s->name.n + s->description.n + texts_bytes(s->tags) +
               texts_bytes(s->examples);
    }
    return sum;
}

struct holding holding_of(const struct registry *r, const struct agent *a,
                          size_t card_bytes)
{
    return (struct holding){.of = {[HELD_AGENTS] = 1,
                                   [HELD_SKILLS] = a->n_skills,
                                   [HELD_CARD_BYTES] = card_bytes,
                                   [HELD_INDEX_BYTES] = index_bytes(r, a)}};
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

struct holding holding_beyond(const struct holding *size,
                              const struct holding *had)
{
    struct holding more = *size;

    for (int i = 0; had && i < N_HELD; i++)
        more.of[i] = size->of[i] > had->of[i] ? size->of[i] - had->of[i] : 0;
    return more;
}

/* Orgs. */

struct org_count *org_count_find(const struct registry *r, struct str org)
{
    return org.n ? map_get(&r->orgs, org) : NULL;
}

static struct org_count *org_count_new(struct registry *r, struct str org)
{
    struct org_count *o =
        FAULT("registry.org") ? NULL : calloc(1, sizeof(*o) + org.n);

    if (!o)
        return NULL;
    o->name_bytes = org.n;
    memcpy(o->name, org.p, org.n);
    if (map_put(&r->orgs, (struct str){o->name, org.n}, o) != OK) {
        free(o);
        return NULL;
    }
    return o;
}

enum err org_take(struct registry *r, struct entry *e,
                  const struct entry *before)
{
    struct str org = e->agent.org;
    struct org_count *o = org_count_find(r, org);

    assert(!e->in_org);
    if (!e->owner || !org.n)
        return OK;
    if (!o)
        o = org_count_new(r, org);
    if (!o)
        return ERR_NOMEM;
    e->in_org = o;
    e->org_counted = holding_beyond(
        &e->size, before && before->in_org == o ? &before->size : NULL);
    holding_add(&o->held, &e->org_counted);
    o->n_entries++;
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
    if (--o->n_entries)
        return;
    map_take(&r->orgs, (struct str){o->name, o->name_bytes});
    free(o);
}

/* Where memory is gone it counts for no org until the next start. */
void org_move(struct registry *r, struct entry *e)
{
    org_drop(r, e);
    if (org_take(r, e, NULL) != OK)
        log_warn(r->opts.log, "registry.org_uncounted",
                 LOG_S("agent", e->agent.name));
}

/* Limits. */

struct held_limit {
    size_t most; /* zero: no limit */
    const char *what, *setting;
};

static enum err check_held(const char *whose, const struct holding *held,
                           const struct holding *more,
                           const struct held_limit limits[N_HELD],
                           struct why *why)
{
    for (int i = 0; i < N_HELD; i++) {
        const struct held_limit *l = &limits[i];
        size_t has = held ? held->of[i] : 0;

        if (more->of[i] && l->most && has + more->of[i] > l->most)
            return why_err(why, ERR_LIMIT,
                           "%s may have %zu %s (registry.%s), and would have "
                           "more; remove or shorten some cards first",
                           whose, l->most, l->what, l->setting);
    }
    return OK;
}

static enum err check_user(const struct registry *r, const struct entry *e,
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

    return check_held("one user", o ? &o->held : NULL, &more, limits, why);
}

static enum err check_org(const struct registry *r, const struct entry *e,
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
    return check_held("the users of one org together", o ? &o->held : NULL,
                      &more, limits, why);
}

enum err holding_check(const struct registry *r, const struct entry *e,
                       const struct entry *before, struct why *why)
{
    enum err err = check_user(r, e, before, why);

    return err ? err : check_org(r, e, before, why);
}
