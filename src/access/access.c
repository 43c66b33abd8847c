/* The mirror of users and tokens, and authentication against it.
 *
 * A presented token is hashed and the hash is looked up. No secret is kept and
 * none is compared byte by byte, so the time that a rejection takes reveals
 * nothing about existing tokens. The scopes of a token are computed when it is
 * presented (its own, cut to the role of today), so a change of role need not
 * touch any token.
 *
 * A user or token whose commit is pending is already in the maps, invisible:
 * this reserves the name and makes settling infallible. The mirror keeps only
 * the org of removed users; the store rejects their names. */
#include "access/access.h"

#include <stdlib.h>

#include "access/internal.h"
#include "base/fault.h"
#include "base/mem.h"

/* Names. */

struct str name_fold(struct str name, char out[PRINCIPAL_NAME_MAX + 1])
{
    bool keeps_case = PLANTED("access.keep_case");

    for (size_t i = 0; i < name.n; i++)
        out[i] = keeps_case ? name.p[i] : str_lower(name.p[i]);
    out[name.n] = '\0';
    return (struct str){out, name.n};
}

void name_copy(char out[PRINCIPAL_NAME_MAX + 1], struct str name)
{
    assert(name.n <= PRINCIPAL_NAME_MAX);
    if (name.n)
        memcpy(out, name.p, name.n);
    out[name.n] = '\0';
}

/* The mirror. */

static struct str access_user_key(const struct user *u)
{
    return str_of(u->key);
}

static struct str access_token_hash(const struct token *t)
{
    return (struct str){t->hash, sizeof(t->hash)};
}

struct user *user_get(const struct access *a, struct str name)
{
    char key[PRINCIPAL_NAME_MAX + 1];

    return principal_name_is_valid(name)
               ? map_get(&a->users, name_fold(name, key))
               : NULL;
}

struct user *user_add(struct access *a, struct str shown, enum role role,
                      struct str org)
{
    struct user *u = FAULT("access.user") ? NULL : calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    name_fold(shown, u->key);
    name_copy(u->shown, shown);
    name_copy(u->org, org);
    u->role = role;
    list_init(&u->tokens);
    list_init(&u->agents);
    if (map_put(&a->users, access_user_key(u), u) != OK) {
        free(u);
        return NULL;
    }
    list_append(&a->all_users, &u->node);
    return u;
}

void user_arrive(struct access *a, struct user *u)
{
    u->state = USER_THERE;
    a->n_users++;
    user_set_role(a, u, u->role);
}

void user_set_role(struct access *a, struct user *u, enum role role)
{
    list_remove(&u->admin_node);
    u->role = role;
    if (role == ROLE_ADMIN)
        list_append(&a->admins, &u->admin_node);
}

void user_leave(struct access *a, struct user *u)
{
    map_take(&a->users, access_user_key(u));
    list_remove(&u->admin_node);
    user_set_owner(a, u, STR(""));
    a->n_users -= u->state == USER_THERE;
    u->state = USER_GONE;
}

void user_release(struct user *u)
{
    if (u->state != USER_GONE || u->n_tokens || u->is_changing)
        return;
    assert(!u->n_agents && !u->n_claims);
    list_remove(&u->node);
    free(u);
}

static bool access_enter_token(struct access *a, struct token *t)
{
    if (map_put(&a->by_hash, access_token_hash(t), t) != OK)
        return false;
    if (map_put(&a->by_id, str_of(t->id.text), t) == OK) {
        if (t->expires_ms)
            timers_set(&a->ends, &t->end, t->expires_ms);
        return true;
    }
    map_take(&a->by_hash, access_token_hash(t));
    return false;
}

struct token *token_add(struct access *a, struct user *u, const struct id *id,
                        const char hash[TOKEN_HASH_BYTES], int64_t expires_ms)
{
    struct token *t = FAULT("access.token") ? NULL : calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->id = *id;
    memcpy(t->hash, hash, sizeof(t->hash));
    t->user = u;
    t->expires_ms = expires_ms;
    if (!access_enter_token(a, t)) {
        free(t);
        return NULL;
    }
    list_append(&u->tokens, &t->node);
    u->n_tokens++;
    return t;
}

void token_arrive(struct access *a, struct token *t)
{
    t->is_there = true;
    a->n_tokens++;
}

void token_drop(struct access *a, struct token *t)
{
    map_take(&a->by_hash, access_token_hash(t));
    map_take(&a->by_id, str_of(t->id.text));
    timers_cancel(&a->ends, &t->end);
    list_remove(&t->node);
    t->user->n_tokens--;
    a->n_tokens -= t->is_there;
    free(t);
}

/* Judging. */

bool user_can_call(const struct user *u)
{
    if (u->state != USER_THERE)
        return false;
    return !u->owner[0] || (u->owned_by && u->owned_by->state == USER_THERE);
}

static bool access_token_is_live(const struct token *t, int64_t now_ms)
{
    return t && t->is_there && user_can_call(t->user) &&
           (t->expires_ms == 0 || now_ms < t->expires_ms);
}

unsigned token_scopes(const struct token *t)
{
    return t->scopes & role_may(t->user->role);
}

static bool access_admin_can_call(const struct user *u, int64_t now_ms)
{
    for (struct list_node *n = list_first(&u->tokens); n;
         n = list_next(&u->tokens, n)) {
        const struct token *t = LIST_OF(n, struct token, node);

        if (access_token_is_live(t, now_ms) && !t->n_revoking &&
            (token_scopes(t) & SCOPE_ADMIN))
            return true;
    }
    return false;
}

bool admin_is_there_besides(const struct access *a, const struct user *u,
                            int64_t now_ms)
{
    for (struct list_node *n = list_first(&a->admins); n;
         n = list_next(&a->admins, n)) {
        const struct user *other = LIST_OF(n, struct user, admin_node);

        if (other != u && !other->is_leaving &&
            access_admin_can_call(other, now_ms))
            return true;
    }
    return false;
}

/* The token in "Bearer TOKEN". */
static enum err access_read_header(struct str header, struct str *token,
                                   struct why *why)
{
    struct str bearer = STR("Bearer ");

    if (header.n == 0)
        return why_err(why, ERR_UNAUTHENTICATED, "%s",
                       err_row(ERR_UNAUTHENTICATED)->wording);
    if (!str_eq_nocase(str_sub(header, 0, bearer.n), bearer))
        return why_err(why, ERR_UNAUTHENTICATED,
                       "the Authorization header must be \"Bearer TOKEN\"");
    *token = str_sub(header, bearer.n, header.n);
    if (!token_is_well_formed(*token))
        return why_err(
            why, ERR_UNAUTHENTICATED,
            "this is not a token: a token is sbx_ and %d letters, digits, - "
            "or _, after one space; perhaps it was cut off",
            ACCESS_TOKEN_CHARS - 4);
    return OK;
}

static enum err access_judge_token(struct access *a, struct str header,
                                   int64_t now_ms, struct caller *out,
                                   struct why *why)
{
    char hash[TOKEN_HASH_BYTES];
    struct str text;
    const struct token *t;
    enum err e = access_read_header(header, &text, why);

    if (e)
        return e;
    e = token_hash(a, text, hash);
    if (e)
        return why_err(why, e, "%s", err_row(e)->wording);
    t = map_get(&a->by_hash, (struct str){hash, sizeof(hash)});
    if (!access_token_is_live(t, now_ms))
        return why_err(why, ERR_UNAUTHENTICATED,
                       "this token is unknown, has expired or was revoked");
    out->token_id = t->id;
    name_copy(out->principal, str_of(t->user->shown));
    name_copy(out->org, user_org(a, t->user));
    name_copy(out->owner, str_of(t->user->owner));
    out->role = t->user->role;
    out->scopes = token_scopes(t);
    out->expires_ms = t->expires_ms;
    return OK;
}

enum err access_judge(struct access *a, struct str header, int64_t now_ms,
                      struct caller *out, struct why *why)
{
    enum err e;

    *out = (struct caller){.scopes = 0};
    e = access_judge_token(a, header, now_ms, out, why);
    a->refused_total += e != OK;
    return e;
}

bool access_is_good(const struct access *a, const struct caller *c,
                    int64_t now_ms)
{
    const struct token *t = map_get(&a->by_id, str_of(c->token_id.text));

    return access_token_is_live(t, now_ms) && t->user->role == c->role &&
           token_scopes(t) == c->scopes &&
           strcmp(t->user->owner, c->owner) == 0 &&
           str_eq(user_org(a, t->user), str_of(c->org));
}

static void access_describe_user(const struct access *a, const struct user *u,
                                 struct access_user *out)
{
    name_copy(out->name, str_of(u->shown));
    name_copy(out->org, user_org(a, u));
    name_copy(out->owner, str_of(u->owner));
    out->role = u->role;
    out->created_ms = u->created_ms;
}

bool access_token_is_good(const struct access *a, const struct caller *c,
                          int64_t now_ms)
{
    return access_token_is_live(map_get(&a->by_id, str_of(c->token_id.text)),
                                now_ms);
}

bool access_user_find(const struct access *a, struct str name,
                      struct access_user *out)
{
    const struct user *u = user_get(a, name);

    *out = (struct access_user){.created_ms = 0};
    if (!u || u->state != USER_THERE)
        return false;
    access_describe_user(a, u, out);
    return true;
}

bool access_caller(const struct access *a, struct str name, struct caller *out)
{
    struct access_user user;

    if (!access_user_find(a, name, &user))
        return false;
    *out = (struct caller){.role = user.role, .scopes = SCOPE_SEND};
    snprintf(out->principal, sizeof(out->principal), "%.*s", STR_ARG(name));
    memcpy(out->owner, user.owner, sizeof(out->owner));
    memcpy(out->org, user.org, sizeof(out->org));
    return true;
}

void access_each_user(const struct access *a,
                      void (*each)(void *ctx, struct str name, struct str org),
                      void *ctx)
{
    for (struct list_node *node = list_first(&a->all_users); node;
         node = list_next(&a->all_users, node)) {
        const struct user *u = LIST_OF(node, struct user, node);

        if (u->state == USER_THERE)
            each(ctx, str_of(u->shown), user_org(a, u));
    }
}

size_t access_admins(const struct access *a, struct access_user *out,
                     size_t max)
{
    size_t n = 0;

    for (struct list_node *node = list_first(&a->admins); node;
         node = list_next(&a->admins, node)) {
        if (n < max)
            access_describe_user(a, LIST_OF(node, struct user, admin_node),
                                 &out[n]);
        n++;
    }
    return n;
}

/* A caller who may make agents may let them speak as their creator. An agent's
 * own token cannot give itself that scope. */
unsigned caller_may_grant(const struct caller *by)
{
    return by->scopes & SCOPE_AGENTS ? by->scopes | SCOPE_CREATOR : by->scopes;
}

/* A caller whose token allows nothing (it was made for scopes that the role has
 * lost) must be rejected here: zero scopes would be read as all. */
enum err access_grant(const struct caller *by, struct str user,
                      unsigned *scopes, int64_t *expires_ms, struct why *why)
{
    if (caller_is_admin(by))
        return OK;
    if (!str_eq_nocase(user, caller_name(by)))
        return why_err(why, ERR_NOT_ALLOWED,
                       "only an admin may make tokens for other users");
    if (by->scopes == 0)
        return why_err(
            why, ERR_NOT_ALLOWED,
            "your token no longer allows anything, and neither would "
            "one made with it: ask an admin for another");
    if (*scopes & ~caller_may_grant(by))
        return why_err(why, ERR_NOT_ALLOWED,
                       "a token made with yours cannot allow more than yours "
                       "does");
    if (*scopes == 0)
        *scopes = by->scopes;
    if (by->expires_ms && (*expires_ms == 0 || *expires_ms > by->expires_ms))
        *expires_ms = by->expires_ms;
    return OK;
}

bool access_is_new(const struct access *a)
{
    return a->n_users == 0;
}

struct access_stats access_stats(const struct access *a)
{
    return (struct access_stats){
        .users = (int64_t)a->n_users,
        .tokens = (int64_t)a->n_tokens,
        .refused_total = a->refused_total,
    };
}

/* The row is deleted with the commit. The mirror need not wait for it: a token
 * that expired this long ago is as good as unknown. One that has not arrived
 * will still be settled; a later call drops it. */
void access_prune(struct access *a, struct tx *tx, int64_t before_ms,
                  size_t limit)
{
    struct tx_op *revoked = tx_prune(tx, &token_table, limit);
    struct tx_op *expired = tx_prune(tx, &token_table, limit);

    tx_if(revoked, TOKEN_REVOKED_MS, IS_LESS, value_int(before_ms));
    tx_if(expired, TOKEN_EXPIRES_MS, IS_LESS, value_int(before_ms));
    for (; limit && timers_next_ms(&a->ends) < before_ms; limit--) {
        struct token *t = LIST_OF(a->ends.heap[0], struct token, end);

        if (!t->is_there)
            break;
        token_drop(a, t);
    }
}

/* Create and free. */

static size_t access_limit_or(size_t given, size_t otherwise)
{
    return given ? given : otherwise;
}

struct access *access_new(const struct access_opts *opts)
{
    struct access *a = mem_new(sizeof(*a));

    a->opts = *opts;
    a->opts.max_users = access_limit_or(opts->max_users, ACCESS_USERS_MAX);
    a->opts.max_tokens = access_limit_or(opts->max_tokens, ACCESS_TOKENS_MAX);
    a->opts.max_user_tokens =
        access_limit_or(opts->max_user_tokens, ACCESS_USER_TOKENS_MAX);
    a->opts.max_owned = access_limit_or(opts->max_owned, ACCESS_OWNED_MAX);
    list_init(&a->all_users);
    list_init(&a->all_formers);
    list_init(&a->admins);
    /* The limits apply to new users and tokens. Existing rows are always
     * loaded, so that a lower limit locks no user out. */
    map_init(&a->users, SIZE_MAX, opts->seed);
    map_init(&a->formers, SIZE_MAX, opts->seed);
    map_init(&a->by_hash, SIZE_MAX, opts->seed);
    map_init(&a->by_id, SIZE_MAX, opts->seed);
    timers_init(&a->ends);
    a->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    a->digest = EVP_MD_CTX_new();
    if (FAULT("access.crypto") || !a->sha256 || !a->digest) {
        access_free(a);
        return NULL;
    }
    return a;
}

void access_free(struct access *a)
{
    struct list_node *node;

    if (!a)
        return;
    while ((node = list_first(&a->all_users))) {
        struct user *u = LIST_OF(node, struct user, node);
        struct list_node *token;

        while ((token = list_first(&u->tokens)))
            token_drop(a, LIST_OF(token, struct token, node));
        list_remove(&u->node);
        free(u);
    }
    formers_free(a);
    map_fini(&a->users);
    map_fini(&a->by_hash);
    map_fini(&a->by_id);
    timers_fini(&a->ends);
    EVP_MD_CTX_free(a->digest);
    EVP_MD_free(a->sha256);
    free(a);
}
