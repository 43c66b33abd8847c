/* One agent in memory, always made from the bytes that are, or will be, in its
 * row: memory shows what the next start will show, however the card came in.
 *
 * Grants are kept beside the card, so a new grant copies no card. The org is a
 * field of the entry, because it follows the creator's and may change without
 * the card.
 *
 * The agents and card bytes of an owner are counted by its entries, pending
 * ones included: each entry holds its part of the owner's counts, and a card
 * that replaces another of the same owner takes over its part. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "registry/internal.h"

enum {
    ENTRY_BYTES_MAX = 32 * AGENT_CARD_MAX, /* its review has a card too */
    STORED_BYTES_MAX = 2 * AGENT_CARD_MAX, /* escaped text may grow */
};

void agent_key(struct str name, char out[AGENT_NAME_MAX + 1])
{
    size_t n = name.n < AGENT_NAME_MAX ? name.n : AGENT_NAME_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(name.p[i]);
    out[n] = '\0';
}

enum err entry_write(const struct agent *a, struct buf *out)
{
    struct json_out o;

    buf_init(out, STORED_BYTES_MAX);
    o = json_out(out);
    card_write(&o, a, CARD_STORED);
    return out->over ? ERR_NOMEM : OK;
}

static void entry_set_org(struct entry *e, struct str org)
{
    size_t n = org.n < PRINCIPAL_NAME_MAX ? org.n : PRINCIPAL_NAME_MAX;

    if (n)
        memcpy(e->org, org.p, n);
    e->org[n] = '\0';
    e->agent.org = (struct str){e->org, n};
}

static struct str creators_org(const struct registry *r, const struct entry *e)
{
    if (!e->agent.creator.n || !r->opts.org_of)
        return (struct str){NULL, 0};
    return r->opts.org_of(r->opts.ctx, e->agent.creator);
}

bool entry_refresh_org(struct registry *r, struct entry *e)
{
    struct str org;

    if (e->has_own_org)
        return false;
    org = creators_org(r, e);
    if (str_eq(org, e->agent.org))
        return false;
    keywords_take(r, e);
    entry_set_org(e, org);
    keywords_put(r, e);
    org_move(r, e);
    return true;
}

static enum err entry_fill(struct registry *r, struct entry *e,
                           struct str stored, struct str creator,
                           struct str own_org)
{
    struct str key;
    char lower[AGENT_NAME_MAX + 1];
    enum err err = card_read_stored(&e->arena, stored, &e->agent);

    if (err)
        return err;
    if (!agent_name_is_valid(e->agent.name))
        return ERR_SYNTAX;
    agent_key(e->agent.name, lower);
    key = (struct str){lower, e->agent.name.n};
    if (!arena_keep(&e->arena, key, &e->key) ||
        !arena_keep(&e->arena, creator, &e->agent.creator))
        return ERR_NOMEM;
    e->size = holding_of(r, &e->agent, stored.n);
    e->is_unroutable = e->agent.routing.is_unroutable;
    e->has_own_org = own_org.n > 0;
    entry_set_org(e, e->has_own_org ? own_org : creators_org(r, e));
    return keywords_make(r, e);
}

enum err entry_new(struct registry *r, struct str stored, struct str creator,
                   struct str own_org, struct entry **out)
{
    struct entry *e = FAULT("registry.entry") ? NULL : calloc(1, sizeof(*e));
    enum err err;

    *out = NULL;
    if (!e)
        return ERR_NOMEM;
    arena_init(&e->arena, ENTRY_BYTES_MAX);
    err = entry_fill(r, e, stored, creator, own_org);
    if (err)
        agent_entry_free(r, e);
    else
        *out = e;
    return err;
}

static struct str owner_key(struct str name, char out[PRINCIPAL_NAME_MAX + 1])
{
    size_t n = name.n < PRINCIPAL_NAME_MAX ? name.n : PRINCIPAL_NAME_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(name.p[i]);
    return (struct str){out, n};
}

struct owner *owner_find(const struct registry *r, struct str creator)
{
    char lower[PRINCIPAL_NAME_MAX + 1];

    return share_find(&r->owners, owner_key(creator, lower));
}

bool owner_is_same(const struct entry *a, const struct entry *b)
{
    return a->agent.creator.n && !a->agent.is_configured &&
           !b->agent.is_configured &&
           str_eq_nocase(a->agent.creator, b->agent.creator);
}

enum err owner_take(struct registry *r, struct entry *e,
                    const struct entry *before)
{
    bool is_same = before && owner_is_same(before, e);
    char lower[PRINCIPAL_NAME_MAX + 1];
    struct str name = owner_key(e->agent.creator, lower);
    struct owner *o;

    assert(!e->owner);
    if (!name.n || e->agent.is_configured)
        return OK;
    o = share_take(&r->owners, name);
    if (!o)
        return ERR_NOMEM;
    if (o->share.n == 1) {
        list_init(&o->entries);
        backlog_turn_init(&o->turn);
    }
    e->owner = o;
    e->counted = holding_beyond(&e->size, is_same ? &before->size : NULL);
    holding_add(&o->held, &e->counted);
    return org_take(r, e, before);
}

void owner_follow(struct entry *e, struct entry *before)
{
    org_follow(e, before);
    if (!e->owner || e->counted.of[HELD_AGENTS])
        return;
    holding_subtract(&e->owner->held, &e->counted);
    holding_subtract(&e->owner->held, &before->counted);
    holding_add(&e->owner->held, &e->size);
    e->counted = e->size;
    before->counted = (struct holding){0};
}

static void owner_drop(struct registry *r, struct entry *e)
{
    struct owner *o = e->owner;

    org_drop(r, e);
    if (!o)
        return;
    holding_subtract(&o->held, &e->counted);
    share_give(&r->owners, o);
}

void agent_entry_free(struct registry *r, struct entry *e)
{
    if (!e)
        return;
    owner_drop(r, e);
    grants_free(r, e->grants);
    arena_fini(&e->arena);
    free(e);
}
