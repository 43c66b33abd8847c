/* Changes of users and tokens: prepared here, committed by the store, settled
 * in settle.c.
 *
 * Several changes may be pending at the same time. This must not lead to:
 *
 *   the same name twice     the first change holds the name in the mirror, and
 *                           the insert is guarded
 *   no admin left           a user has at most one pending change
 *                           (is_changing), so the mirror is right about all
 *                           others. A change that costs an admin (is_leaving)
 *                           or an admin's token (n_revoking) counts at once;
 *                           one that adds an admin or such a token counts only
 *                           after its commit
 *   a token that outlives   making a token expects its user to exist, and
 *   its user                removing a user removes all token rows with the
 *                           user's name: in either order none is left
 *   revoking twice          the update is guarded: the second finds no row
 *
 * The row of a removed user stays, so that the name is never given again;
 * removed tokens remain visible in the feed. Rejected: a version number in each
 * row, because conflicts would be found only at the commit. */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "access/internal.h"
#include "base/fault.h"
#include "base/json.h"
#include "watch/watch.h"

void access_change_init(struct access_change *c)
{
    *c = (struct access_change){.is_open = false};
    tx_init(&c->tx);
}

void access_change_fini(struct access_change *c)
{
    assert(!c->is_open); /* or its claims would never end */
    tx_fini(&c->tx);
}

/* Mark the change as prepared. u is the user as it will be. */
static void change_mark_open(struct access_change *c,
                             enum access_change_kind kind, const struct user *u,
                             int64_t now_ms)
{
    assert(!c->is_open);
    c->kind = kind;
    c->is_open = true;
    c->at_ms = now_ms;
    c->role = u->role;
    memcpy(c->user, u->shown, sizeof(c->user));
    memcpy(c->org, u->org, sizeof(c->org));
    memcpy(c->owner, u->owner, sizeof(c->owner));
}

static struct value change_user_key(const struct user *u)
{
    return value_text(str_of(u->key));
}

static void change_append_feed(struct access_change *c, const char *type,
                               struct str by, bool has_token)
{
    struct buf data;
    struct json_out o;

    buf_init(&data, 1024);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_text(&o, "user", str_of(c->user));
    json_member_str(&o, "by", by);
    if (has_token)
        json_member_text(&o, "token_id", str_of(c->token_id.text));
    json_close(&o, '}');
    feed_append_data(
        &c->tx, &data,
        &(struct feed_entry){.at_ms = c->at_ms, .type = str_of(type)});
}

/* Checks of the request. */

static enum err change_check_name(struct str name, const char *what,
                                  struct why *why)
{
    if (principal_name_is_valid(name))
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "%s must be 1 to %d letters, digits, ., _, @ or -, and "
                   "begin with a letter or digit",
                   what, PRINCIPAL_NAME_MAX);
}

static enum err change_check_role(enum role role, struct why *why)
{
    if (role_scopes(role))
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "role must be admin, user or agent");
}

static enum err change_check_org(struct str org, struct why *why)
{
    return org.n ? change_check_name(org, "org", why) : OK;
}

/* Find an existing user. */
static enum err change_find_user(const struct access *a, struct str name,
                                 struct user **out, struct why *why)
{
    *out = user_get(a, name);
    if (*out && (*out)->state == USER_THERE)
        return OK;
    *out = NULL;
    return why_err(why, ERR_NOT_FOUND, "there is no user of that name");
}

/* Find a user and make sure that no pending change concerns it. */
static enum err change_find_idle_user(const struct access *a, struct str name,
                                      struct user **out, struct why *why)
{
    enum err e = change_find_user(a, name, out, why);
    const struct user *u = *out;

    if (e)
        return e;
    if (u->is_changing)
        return why_err(why, ERR_BUSY,
                       "this user is being changed right now; try again");
    if (u->n_claims || (u->owned_by && u->owned_by->is_changing))
        return why_err(why, ERR_BUSY,
                       "the %s of this user is being changed right now; try "
                       "again",
                       u->n_claims ? "agent" : "owner");
    return OK;
}

/* Users. */

static enum err change_check_new_user(const struct access *a, struct str name,
                                      const struct access_wish *wish,
                                      struct why *why)
{
    const struct user *there = user_get(a, name);
    enum err e = change_check_name(name, "name", why);

    if (!e)
        e = change_check_role(wish->role, why);
    if (!e)
        e = change_check_org(wish->org, why);
    if (e)
        return e;
    if (there && there->state == USER_COMING)
        return why_err(why, ERR_BUSY,
                       "a user of that name is being created right now");
    if (there)
        return why_err(why, ERR_EXISTS, "there is a user of that name");
    if (a->users.n >= a->opts.max_users)
        return why_err(why, ERR_LIMIT,
                       "there are %zu users, which is the limit; remove some "
                       "first",
                       a->users.n);
    return OK;
}

enum err access_user_create(struct access *a, struct access_change *c,
                            struct str name, const struct access_wish *wish,
                            struct str by, int64_t now_ms, struct why *why)
{
    enum err e = change_check_new_user(a, name, wish, why);
    struct user *u = NULL, *owner;
    struct tx_op *op;

    if (!e)
        e = owner_check(a, name, wish, &owner, why);
    if (!e)
        u = user_add(a, name, wish->role, wish->org);
    if (!e && !u)
        e = why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (e)
        return e;
    u->created_ms = now_ms;
    owner_claim(u, owner);
    change_mark_open(c, ACCESS_USER_CREATE, u, now_ms);
    if (owner)
        name_copy(c->owner, str_of(owner->shown));
    op = tx_insert(&c->tx, &user_table);
    tx_set(op, USER_NAME, change_user_key(u));
    tx_set(op, USER_SHOWN, value_text(name));
    tx_set(op, USER_ROLE, value_int(wish->role));
    tx_set(op, USER_ORG, value_text_or_null(wish->org));
    tx_set(op, USER_OWNER, value_text_or_null(str_of(c->owner)));
    tx_set(op, USER_CREATED_MS, value_int(now_ms));
    change_append_feed(c, "user.created", by, false);
    return OK;
}

/* Claim u for a change that may cost an admin. */
static enum err change_claim_user(const struct access *a, struct user *u,
                                  bool stays_admin, int64_t now_ms,
                                  struct why *why)
{
    bool costs_admin = u->role == ROLE_ADMIN && !stays_admin;

    if (costs_admin && !admin_is_there_besides(a, u, now_ms))
        return why_err(why, ERR_NOT_ALLOWED,
                       "this is the last admin: no other admin has a valid "
                       "token of scope admin. Make such a token first");
    u->is_leaving = costs_admin;
    u->is_changing = true;
    return OK;
}

void user_unclaim(struct user *u)
{
    u->is_leaving = false;
    u->is_changing = false;
}

static struct tx_op *change_update_user_row(struct access_change *c,
                                            const struct user *u)
{
    struct tx_op *op = tx_update(&c->tx, &user_table);

    tx_if(op, USER_NAME, IS, change_user_key(u));
    tx_if(op, USER_ROLE, IS, value_int(u->role));
    tx_if(op, USER_REMOVED_MS, IS, value_null());
    return op;
}

/* The wish, with the members that stay taken from u. */
static struct access_wish change_complete_wish(const struct user *u,
                                               const struct access_wish *wish)
{
    struct access_wish all = *wish;

    if (!all.role)
        all.role = u->role;
    if (!all.owner.p)
        all.owner = str_of(all.role == ROLE_AGENT ? u->owner : "");
    if (!all.org.p)
        all.org = str_of(all.owner.n ? "" : u->org);
    return all;
}

static enum err change_check_wish(const struct access *a, struct str name,
                                  const struct access_wish *wish,
                                  const struct access_wish *all,
                                  struct user **owner, struct why *why)
{
    enum err e = change_check_role(all->role, why);

    if (!wish->role && !wish->org.p && !wish->owner.p)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is nothing to change: give a role, an org or an "
                       "owner");
    if (!e)
        e = change_check_org(all->org, why);
    return e ? e : owner_check(a, name, all, owner, why);
}

enum err access_user_change(struct access *a, struct access_change *c,
                            struct str name, const struct access_wish *wish,
                            struct str by, int64_t now_ms, struct why *why)
{
    struct access_wish all = {.role = 0};
    struct user *u, *owner;
    struct tx_op *op;
    enum err e = change_find_idle_user(a, name, &u, why);

    if (!e) {
        all = change_complete_wish(u, wish);
        e = change_check_wish(a, name, wish, &all, &owner, why);
    }
    if (!e)
        e = change_claim_user(a, u, all.role == ROLE_ADMIN, now_ms, why);
    if (e)
        return e;
    owner_claim(u, owner);
    change_mark_open(c, ACCESS_USER_CHANGE, u, now_ms);
    op = change_update_user_row(c, u);
    c->role = all.role;
    name_copy(c->org, all.org);
    if (owner || !all.owner.n)
        name_copy(c->owner, owner ? str_of(owner->shown) : STR(""));
    tx_set(op, USER_ROLE, value_int(c->role));
    tx_set(op, USER_ORG, value_text_or_null(str_of(c->org)));
    tx_set(op, USER_OWNER, value_text_or_null(str_of(c->owner)));
    change_append_feed(c, "user.changed", by, false);
    return OK;
}

static void change_remove_token_rows(struct access_change *c,
                                     const struct user *u)
{
    struct tx_op *op = tx_prune(&c->tx, &token_table, INT32_MAX);

    tx_if(op, TOKEN_USER, IS, value_text(str_of(u->shown)));
}

/* Claim u and remember its org. */
static enum err claim_removal(struct access *a, struct user *u, int64_t now_ms,
                              struct why *why)
{
    enum err e = change_claim_user(a, u, false, now_ms, why);

    if (e)
        return e;
    if (former_keep(a, str_of(u->key), user_org(a, u)) == OK)
        return OK;
    user_unclaim(u);
    return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
}

enum err access_user_remove(struct access *a, struct access_change *c,
                            struct str name, struct str by, int64_t now_ms,
                            struct why *why)
{
    struct user *u;
    struct tx_op *op;
    enum err e = change_find_idle_user(a, name, &u, why);

    if (!e)
        e = claim_removal(a, u, now_ms, why);
    if (e)
        return e;
    owner_claim(u, NULL);
    change_mark_open(c, ACCESS_USER_REMOVE, u, now_ms);
    op = change_update_user_row(c, u);
    tx_set(op, USER_REMOVED_MS, value_int(now_ms));
    /* Fixed from now on, whatever becomes of the owner. */
    tx_set(op, USER_ORG, value_text_or_null(user_org(a, u)));
    change_remove_token_rows(c, u);
    for (struct list_node *n = list_first(&u->agents);
         n && !PLANTED("access.forget_owned"); n = list_next(&u->agents, n))
        change_remove_token_rows(c, LIST_OF(n, struct user, owned_node));
    change_append_feed(c, "user.removed", by, false);
    return OK;
}

/* Tokens. */

static enum err change_check_new_token(const struct access *a,
                                       const struct user *u, unsigned scopes,
                                       struct str label, int64_t expires_ms,
                                       int64_t now_ms, struct why *why)
{
    if (!user_can_call(u))
        return why_err(why, ERR_NOT_ALLOWED,
                       "the owner of this agent, %s, was removed: give the "
                       "agent another owner, or none, first",
                       u->owner);
    if (scopes & ~(unsigned)SCOPE_ALL)
        return why_err(why, ERR_BAD_REQUEST, "there is no such scope");
    if (scopes & ~role_may(u->role))
        return why_err(why, ERR_NOT_ALLOWED,
                       "a token cannot allow more than its user's role, "
                       "which is %.*s",
                       STR_ARG(role_name(u->role)));
    if (label.n > ACCESS_LABEL_MAX || str_has_any_control(label))
        return why_err(why, ERR_BAD_REQUEST,
                       "label must be at most %d bytes, without control "
                       "characters",
                       ACCESS_LABEL_MAX);
    if (expires_ms < 0 || (expires_ms && expires_ms <= now_ms))
        return why_err(why, ERR_BAD_REQUEST,
                       "a token must expire in the future");
    if (u->n_tokens >= a->opts.max_user_tokens)
        return why_err(why, ERR_LIMIT,
                       "this user has %zu tokens, which is the limit; "
                       "revoke some first",
                       u->n_tokens);
    if (a->by_id.n >= a->opts.max_tokens)
        return why_err(why, ERR_LIMIT,
                       "there are %zu tokens, which is the limit; revoke "
                       "some first",
                       a->by_id.n);
    return OK;
}

/* Make the token, add it to the mirror, where it is not visible yet, and add
 * its row to c. */
static enum err change_add_token(struct access *a, struct access_change *c,
                                 struct user *u, unsigned scopes,
                                 struct str label, int64_t expires_ms,
                                 struct str by, struct access_token *out)
{
    struct id id = id_make(a->opts.ids, "tok", c->at_ms);
    char hash[TOKEN_HASH_BYTES];
    struct tx_op *op;
    struct token *t = NULL;

    token_make(a->opts.rand, out);
    if (token_hash(a, str_of(out->text), hash) == OK)
        t = token_add(a, u, &id, hash, expires_ms);
    if (!t) {
        access_token_wipe(out);
        return ERR_NOMEM;
    }
    t->scopes = c->scopes = scopes;
    c->expires_ms = expires_ms;
    c->token_id = id;
    op = tx_insert(&c->tx, &token_table);
    tx_set(op, TOKEN_ID, value_text(str_of(id.text)));
    tx_set(op, TOKEN_HASH, value_blob((struct str){hash, sizeof(hash)}));
    tx_set(op, TOKEN_USER, value_text(str_of(u->shown)));
    tx_set(op, TOKEN_LABEL, value_text_or_null(label));
    tx_set(op, TOKEN_SCOPES, value_int(scopes));
    tx_set(op, TOKEN_CREATED_MS, value_int(c->at_ms));
    tx_set(op, TOKEN_EXPIRES_MS,
           expires_ms ? value_int(expires_ms) : value_null());
    change_append_feed(c, "token.created", by, true);
    return OK;
}

enum err access_token_create(struct access *a, struct access_change *c,
                             struct str user, unsigned scopes, struct str label,
                             int64_t expires_ms, struct str by, int64_t now_ms,
                             struct access_token *out, struct why *why)
{
    struct user *u;
    struct tx_op *op;
    enum err e = change_find_user(a, user, &u, why);

    *out = (struct access_token){{0}};
    if (!e)
        e = change_check_new_token(a, u, scopes, label, expires_ms, now_ms,
                                   why);
    if (e)
        return e;
    if (!scopes)
        scopes = role_scopes(u->role);
    change_mark_open(c, ACCESS_TOKEN_CREATE, u, now_ms);
    op = tx_expect(&c->tx, &user_table);
    tx_if(op, USER_NAME, IS, change_user_key(u));
    tx_if(op, USER_REMOVED_MS, IS, value_null());
    tx_if(op, USER_OWNER, IS, value_text_or_null(str_of(u->owner)));
    if (u->owned_by) {
        op = tx_expect(&c->tx, &user_table);
        tx_if(op, USER_NAME, IS, change_user_key(u->owned_by));
        tx_if(op, USER_REMOVED_MS, IS, value_null());
    }
    e = change_add_token(a, c, u, scopes, label, expires_ms, by, out);
    if (e) {
        c->is_open = false;
        return why_err(why, e, "%s", err_row(e)->wording);
    }
    return OK;
}

static enum err change_may_revoke(const struct token *t,
                                  const struct caller *by, struct why *why)
{
    bool is_own = t && str_eq(str_of(t->user->shown), caller_name(by));

    if (!t || !t->is_there || (!is_own && !caller_is_admin(by)))
        return why_err(why, ERR_NOT_FOUND, "there is no token of that id");
    if (caller_is_admin(by) || strcmp(t->id.text, by->token_id.text) == 0 ||
        !(token_scopes(t) & ~caller_may_grant(by)))
        return OK;
    return why_err(why, ERR_NOT_ALLOWED,
                   "that token allows more than yours: use it, or one that "
                   "allows as much, or ask an admin");
}

bool access_revokes_last_admin(struct access *a, struct str id,
                               const struct caller *by, int64_t now_ms)
{
    struct token *t = map_get(&a->by_id, id);
    bool is_last;

    if (change_may_revoke(t, by, NULL) != OK ||
        !admin_is_there_besides(a, NULL, now_ms) ||
        PLANTED("access.last_is_like_any"))
        return false;
    t->n_revoking++;
    is_last = !admin_is_there_besides(a, NULL, now_ms);
    t->n_revoking--;
    return is_last;
}

enum err access_token_revoke(struct access *a, struct access_change *c,
                             struct str id, const struct caller *by,
                             int64_t now_ms, struct why *why)
{
    struct token *t = map_get(&a->by_id, id);
    enum err e = change_may_revoke(t, by, why);
    struct tx_op *op;

    if (e)
        return e;
    change_mark_open(c, ACCESS_TOKEN_REVOKE, t->user, now_ms);
    c->token_id = t->id;
    t->n_revoking++;
    op = tx_update(&c->tx, &token_table);
    tx_if(op, TOKEN_ID, IS, value_text(id));
    tx_if(op, TOKEN_REVOKED_MS, IS, value_null());
    tx_set(op, TOKEN_REVOKED_MS,
           PLANTED("access.forget_revoked") ? value_null() : value_int(now_ms));
    change_append_feed(c, "token.revoked", caller_name(by), true);
    return OK;
}

enum err access_first_admin(struct access *a, struct access_change *c,
                            int64_t now_ms, struct access_token *out,
                            struct why *why)
{
    struct str by_server = STR("");
    struct user *u;
    enum err e;

    *out = (struct access_token){{0}};
    if (!access_is_new(a))
        return why_err(why, ERR_EXISTS, "there are users already");
    e = access_user_create(a, c, STR("admin"),
                           &(struct access_wish){.role = ROLE_ADMIN}, by_server,
                           now_ms, why);
    if (e)
        return e;
    u = user_get(a, STR("admin"));
    e = change_add_token(a, c, u, role_scopes(ROLE_ADMIN), STR("first start"),
                         0, by_server, out);
    if (e) {
        c->is_open = false;
        user_leave(a, u);
        user_release(u);
        return why_err(why, e, "%s", err_row(e)->wording);
    }
    return OK;
}
