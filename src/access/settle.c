/* Settles a change: the mirror follows the outcome of the commit. Nothing here
 * can fail: preparing the change (change.c) already did everything that can. */
#include "access/internal.h"
#include "base/fault.h"

#define NO_USER_OR_OWNER \
    "there is no user of that name any more, or no longer with that owner"
#define CHANGED_MEANWHILE \
    "this user was changed at the same time; look, and try again"
#define CHANGED_MEANWHILE \
    "this user was changed at the same time; look, and try again"

static enum err settle_outcome(const struct access_change *c, struct why *why)
{
    static const struct {
        enum err err;
        const char *words;
    } beaten[] = {
        [ACCESS_USER_CREATE] = {ERR_EXISTS,
                                "the name is or was in use, and names are "
                                "not given again"},
        [ACCESS_USER_CHANGE] = {ERR_BUSY, CHANGED_MEANWHILE},
        [ACCESS_USER_REMOVE] = {ERR_BUSY, CHANGED_MEANWHILE},
        [ACCESS_TOKEN_CREATE] = {ERR_NOT_FOUND, NO_USER_OR_OWNER},
        [ACCESS_TOKEN_REVOKE] = {ERR_NOT_FOUND,
                                 "there is no token of that id any more"},
    };

    switch (c->tx.result) {
    case TX_COMMITTED: return OK;
    case TX_GUARD_FAILED:
        return why_err(why, beaten[c->kind].err, "%s", beaten[c->kind].words);
    case TX_FATAL:
        return why_err(why, ERR_OUTCOME_UNKNOWN,
                       "the store failed, and it is unknown whether the change "
                       "was saved; check once the server is back");
    case TX_REFUSED: break;
    }
    return why_err(why, c->tx.err, "%s", err_row(c->tx.err)->wording);
}

/* The revocation is committed, or the token's user is gone. */
static void settle_revoke(struct access *a, struct token *t)
{
    struct id id = t->id;

    token_drop(a, t);
    if (a->opts.on_revoked)
        a->opts.on_revoked(a->opts.ctx, &id);
}

/* The owner that c claimed for u. */
static struct user *settle_next_owner(const struct access *a,
                                      const struct user *u,
                                      const struct access_change *c)
{
    if (!c->owner[0] || strcmp(u->owner, c->owner) == 0)
        return NULL;
    return user_get(a, str_of(c->owner));
}

static void settle_user_create(struct access *a, const struct access_change *c,
                               bool is_committed)
{
    struct user *u = user_get(a, str_of(c->user));
    struct token *t = map_get(&a->by_id, str_of(c->token_id.text));

    assert(u && u->state == USER_COMING);
    owner_release(u, settle_next_owner(a, u, c));
    if (is_committed) {
        user_arrive(a, u);
        user_set_owner(a, u, str_of(c->owner));
        if (t)
            token_arrive(a, t);
        return;
    }
    if (t)
        token_drop(a, t);
    user_leave(a, u);
    user_release(u);
}

static void settle_report_moved(const struct access *a, const struct user *u)
{
    if (!a->opts.on_moved)
        return;
    a->opts.on_moved(a->opts.ctx, str_of(u->shown));
    for (struct list_node *n = list_first(&u->agents); n;
         n = list_next(&u->agents, n))
        a->opts.on_moved(a->opts.ctx,
                         str_of(LIST_OF(n, struct user, owned_node)->shown));
}

static void settle_user_change(struct access *a, const struct access_change *c,
                               bool is_committed)
{
    struct user *u = user_get(a, str_of(c->user));
    char before[PRINCIPAL_NAME_MAX + 1];

    assert(u && u->is_changing);
    user_unclaim(u);
    owner_release(u, settle_next_owner(a, u, c));
    if (!is_committed)
        return;
    name_copy(before, user_org(a, u));
    user_set_role(a, u, c->role);
    memcpy(u->org, c->org, sizeof(u->org));
    user_set_owner(a, u, str_of(c->owner));
    if (!str_eq(user_org(a, u), str_of(before)))
        settle_report_moved(a, u);
}

/* on_revoked may call back into access, so each round starts from the first
 * token. */
static void settle_revoke_all(struct access *a, const struct user *u)
{
    struct list_node *node = list_first(&u->tokens);

    while (node) {
        struct token *t = LIST_OF(node, struct token, node);

        if (t->is_there) {
            settle_revoke(a, t);
            node = list_first(&u->tokens);
        } else {
            node = list_next(&u->tokens, node); /* its own change settles it */
        }
    }
}

/* is_changing keeps the user in memory until the end, and also the agents,
 * which cannot change while their owner does. An agent goes on naming its
 * owner. */
static void settle_user_remove(struct access *a, const struct access_change *c,
                               bool is_committed)
{
    struct user *u = user_get(a, str_of(c->user));
    struct list_node *node;

    assert(u && u->is_changing);
    owner_release(u, NULL);
    if (is_committed) {
        user_leave(a, u);
        settle_revoke_all(a, u);
        while ((node = list_first(&u->agents))) {
            struct user *agent = LIST_OF(node, struct user, owned_node);

            if (!PLANTED("access.keep_owned"))
                settle_revoke_all(a, agent);
            user_set_owner(a, agent, str_of(c->user));
        }
    } else {
        former_drop(a, str_of(u->key));
    }
    user_unclaim(u);
    user_release(u);
}

static enum err settle_token_create(struct access *a,
                                    const struct access_change *c,
                                    bool is_committed, struct why *why)
{
    struct token *t = map_get(&a->by_id, str_of(c->token_id.text));
    struct user *u;

    assert(t && !t->is_there);
    u = t->user;
    if (is_committed && user_can_call(u)) {
        token_arrive(a, t);
        return OK;
    }
    token_drop(a, t);
    user_release(u);
    /* The commit succeeded, but the next commit removed the user or the owner.
     */
    return is_committed ? why_err(why, ERR_NOT_FOUND, NO_USER_OR_OWNER) : OK;
}

static void settle_token_revoke(struct access *a, const struct access_change *c,
                                bool is_committed)
{
    struct token *t = map_get(&a->by_id, str_of(c->token_id.text));

    if (!t) /* removed with its user, or revoked by another change */
        return;
    t->n_revoking--;
    if (is_committed && !PLANTED("access.keep_revoked"))
        settle_revoke(a, t);
}

enum err access_settle(struct access *a, struct access_change *c,
                       struct why *why)
{
    enum err e = settle_outcome(c, why), late = OK;

    assert(c->is_open);
    c->is_open = false;
    switch (c->kind) {
    case ACCESS_USER_CREATE: settle_user_create(a, c, !e); break;
    case ACCESS_USER_CHANGE: settle_user_change(a, c, !e); break;
    case ACCESS_USER_REMOVE: settle_user_remove(a, c, !e); break;
    case ACCESS_TOKEN_CREATE: late = settle_token_create(a, c, !e, why); break;
    case ACCESS_TOKEN_REVOKE: settle_token_revoke(a, c, !e); break;
    }
    return e ? e : late;
}
