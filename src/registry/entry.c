/* One agent in memory, always made from the bytes that are, or will be, in its
 * row: so what memory shows is what the next start will show, however the card
 * came in.
 *
 * Grants are beside the card and not in it, so that letting somebody see an
 * agent copies no card; the org is a field of the entry, since it follows the
 * creator's and may change without the card.
 *
 * How much somebody has, agents and bytes of cards, is counted by their
 * entries, those on their way included: each holds its part of its owner's
 * counts, and a card that replaces another of the same owner takes that one's
 * part over. */
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

enum {
    ENTRY_BYTES_MAX = 16 * AGENT_CARD_MAX,
    STORED_BYTES_MAX = 2 * AGENT_CARD_MAX, /* what was escaped may grow */
};

void key_of(struct str name, char out[AGENT_NAME_MAX + 1])
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
    return out->over || FAULT("registry.write") ? ERR_NOMEM : OK;
}

static void set_org(struct entry *e, struct str org)
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
    set_org(e, org);
    keywords_put(r, e);
    org_move(r, e);
    return true;
}

static enum err fill(struct registry *r, struct entry *e, struct str stored,
                     struct str creator, struct str own_org)
{
    struct str key;
    char lower[AGENT_NAME_MAX + 1];
    enum err err = card_read_stored(&e->arena, stored, &e->agent);

    if (err)
        return err;
    if (!agent_name_is_valid(e->agent.name))
        return ERR_SYNTAX;
    key_of(e->agent.name, lower);
    key = (struct str){lower, e->agent.name.n};
    if (!arena_keep(&e->arena, key, &e->key) ||
        !arena_keep(&e->arena, creator, &e->agent.creator))
        return ERR_NOMEM;
    e->size = holding_of(r, &e->agent, stored.n);
    e->is_unroutable = e->agent.routing.is_unroutable;
    e->has_own_org = own_org.n > 0;
    set_org(e, e->has_own_org ? own_org : creators_org(r, e));
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
    err = fill(r, e, stored, creator, own_org);
    if (err)
        entry_free(r, e);
    else
        *out = e;
    return err;
}

/* Owners. */

static struct str lower_name(struct str name, char out[PRINCIPAL_NAME_MAX + 1])
{
    size_t n = name.n < PRINCIPAL_NAME_MAX ? name.n : PRINCIPAL_NAME_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = str_lower(name.p[i]);
    return (struct str){out, n};
}

struct owner *owner_find(const struct registry *r, struct str creator)
{
    char lower[PRINCIPAL_NAME_MAX + 1];

    return map_get(&r->owners, lower_name(creator, lower));
}

bool owner_is_same(const struct entry *a, const struct entry *b)
{
    return a->agent.creator.n && !a->agent.is_configured &&
           !b->agent.is_configured &&
           str_eq_nocase(a->agent.creator, b->agent.creator);
}

static struct owner *owner_new(struct registry *r, struct str creator)
{
    char lower[PRINCIPAL_NAME_MAX + 1];
    struct str name = lower_name(creator, lower);
    struct owner *o =
        FAULT("registry.owner") ? NULL : calloc(1, sizeof(*o) + name.n);

    if (!o)
        return NULL;
    list_init(&o->entries);
    o->name_bytes = name.n;
    memcpy(o->name, name.p, name.n);
    if (map_put(&r->owners, (struct str){o->name, name.n}, o) != OK) {
        free(o);
        return NULL;
    }
    return o;
}

enum err owner_take(struct registry *r, struct entry *e,
                    const struct entry *before)
{
    bool is_same = before && owner_is_same(before, e);
    struct owner *o;

    assert(!e->owner);
    if (!e->agent.creator.n || e->agent.is_configured)
        return OK;
    o = owner_find(r, e->agent.creator);
    if (!o)
        o = owner_new(r, e->agent.creator);
    if (!o)
        return ERR_NOMEM;
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
    if (o->held.of[HELD_AGENTS])
        return;
    map_take(&r->owners, (struct str){o->name, o->name_bytes});
    free(o);
}

void entry_free(struct registry *r, struct entry *e)
{
    if (!e)
        return;
    owner_drop(r, e);
    grants_free(r, e->grants);
    arena_fini(&e->arena);
    free(e);
}
