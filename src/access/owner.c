/* Links: agents to their owners, users to their orgs, and removed users to the
 * org they had.
 *
 * An agent acts for its owner, so it may see what the owner may see, and its
 * tokens end with the owner. The agent still names a removed owner, which shows
 * why its tokens are gone.
 *
 * Pending changes must not lead to an agent that gets tokens from a removed
 * owner. Removing an owner removes the tokens of all their agents. So while an
 * agent of theirs, or one that is about to be theirs, is changed (n_claims),
 * the owner cannot be changed, and while the owner is changed (is_changing),
 * neither can the agents. A new token expects the owner that it was prepared
 * with.
 *
 * The org of a removed user is remembered when the removal is prepared, so that
 * settling cannot fail. Nothing reads it while the name is still in use.
 *
 * One level is enough: an agent cannot own agents. Rejected: looking up the
 * orgs of removed users on demand, because the store answers later and the
 * callers of access_org_of cannot wait. */
#include <stdlib.h>

#include "access/internal.h"
#include "base/mem.h"

void user_set_owner(struct access *a, struct user *u, struct str owner)
{
    struct user *next = owner.n ? user_get(a, owner) : NULL;

    if (u->owned_by)
        u->owned_by->n_agents--;
    list_remove(&u->owned_node);
    name_copy(u->owner, owner);
    u->owned_by = next && next->state == USER_THERE ? next : NULL;
    if (!u->owned_by)
        return;
    list_append(&u->owned_by->agents, &u->owned_node);
    u->owned_by->n_agents++;
}

/* Removed users. */

static const struct former *former_find(const struct access *a, struct str name)
{
    char key[PRINCIPAL_NAME_MAX + 1];

    return principal_name_is_valid(name)
               ? map_get(&a->formers, name_fold(name, key))
               : NULL;
}

static struct str former_org(const struct former *f)
{
    return f ? str_of(f->text + f->org_at) : STR("");
}

enum err former_keep(struct access *a, struct str key, struct str org)
{
    struct former *f;

    if (!org.n)
        return OK;
    f = mem_new(sizeof(*f) + key.n + org.n + 2);
    memcpy(f->text, key.p, key.n);
    f->org_at = key.n + 1;
    memcpy(f->text + f->org_at, org.p, org.n);
    if (map_put(&a->formers, str_of(f->text), f) != OK) {
        free(f);
        return ERR_NOMEM;
    }
    list_append(&a->all_formers, &f->node);
    return OK;
}

void former_drop(struct access *a, struct str key)
{
    struct former *f = map_take(&a->formers, key);

    if (!f)
        return;
    list_remove(&f->node);
    free(f);
}

void formers_free(struct access *a)
{
    struct list_node *node;

    while ((node = list_first(&a->all_formers))) {
        list_remove(node);
        free(LIST_OF(node, struct former, node));
    }
    map_fini(&a->formers);
}

/* Orgs. */

struct str user_org(const struct access *a, const struct user *u)
{
    if (!u->owner[0])
        return str_of(u->org);
    if (u->owned_by)
        return str_of(u->owned_by->org);
    return former_org(former_find(a, str_of(u->owner)));
}

struct str access_org_of(struct access *a, struct str user)
{
    const struct user *u = user_get(a, user);

    if (u && u->state == USER_THERE)
        return user_org(a, u);
    return former_org(former_find(a, user));
}

/* Owners. */

static enum err owner_find_next(const struct access *a, struct str name,
                                struct str wanted, struct user **out,
                                struct why *why)
{
    struct user *o = user_get(a, wanted);

    if (str_eq_nocase(name, wanted))
        return why_err(why, ERR_BAD_REQUEST, "owner must be another user");
    if (!o || o->state != USER_THERE)
        return why_err(why, ERR_BAD_REQUEST, "owner must be an existing user");
    if (o->role == ROLE_AGENT)
        return why_err(why, ERR_BAD_REQUEST,
                       "owner must be of role user or admin: an agent cannot "
                       "own agents");
    if (o->is_changing)
        return why_err(why, ERR_BUSY,
                       "the owner is being changed right now; try again");
    if (o->n_agents + o->n_claims >= a->opts.max_owned)
        return why_err(why, ERR_LIMIT,
                       "this owner has %zu agents, which is the limit; "
                       "remove some first",
                       o->n_agents + o->n_claims);
    *out = o;
    return OK;
}

enum err owner_check(const struct access *a, struct str name,
                     const struct access_wish *wish, struct user **owner,
                     struct why *why)
{
    const struct user *u = user_get(a, name);
    bool stays = u && str_eq_nocase(str_of(u->owner), wish->owner);

    *owner = NULL;
    if (wish->role == ROLE_AGENT && u && (u->n_agents || u->n_claims))
        return why_err(why, ERR_NOT_ALLOWED,
                       "this user owns agents, and an agent cannot: give "
                       "them another owner first");
    if (!wish->owner.n)
        return OK;
    if (wish->role != ROLE_AGENT)
        return why_err(why, ERR_BAD_REQUEST,
                       "only a user of role agent can have an owner");
    if (wish->org.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "an agent that has an owner belongs to the owner's org "
                       "and can have none of its own");
    return stays ? OK : owner_find_next(a, name, wish->owner, owner, why);
}

void owner_claim(const struct user *u, struct user *next)
{
    if (u->owned_by)
        u->owned_by->n_claims++;
    if (next)
        next->n_claims++;
}

void owner_release(const struct user *u, struct user *next)
{
    if (u->owned_by)
        u->owned_by->n_claims--;
    if (next)
        next->n_claims--;
}
