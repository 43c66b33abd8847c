#ifndef ACCESS_INTERNAL_H
#define ACCESS_INTERNAL_H

/* Shared by the files of access: access.c keeps the mirror and authenticates,
 * access_load.c fills the mirror, change.c changes it, owner.c links agents to
 * owners and users to orgs, token.c knows the text of a token. */

#include <openssl/evp.h>

#include "access/access.h"
#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

enum { TOKEN_HASH_BYTES = 32 };

enum user_state {
    USER_COMING, /* holds the name; not visible yet */
    USER_THERE,
    USER_GONE, /* in no map; waits for pending tokens */
};

struct user {
    struct list_node node;       /* in access.all_users */
    struct list_node admin_node; /* in access.admins, for an existing admin */
    char key[PRINCIPAL_NAME_MAX + 1];   /* lower case */
    char shown[PRINCIPAL_NAME_MAX + 1]; /* as it was first written */
    char org[PRINCIPAL_NAME_MAX + 1];   /* the user's own; user_org decides */
    char owner[PRINCIPAL_NAME_MAX + 1]; /* as shown; of role agent only */
    enum role role;
    enum user_state state;
    bool is_changing; /* a change of this user is not settled yet */
    bool is_leaving;  /* and that change costs an admin */
    int64_t created_ms;
    struct list tokens;
    size_t n_tokens;
    struct user *owned_by;       /* NULL: no owner, or one who was removed */
    struct list_node owned_node; /* in owned_by->agents */
    struct list agents;          /* the agents that this user owns */
    size_t n_agents;
    size_t n_claims; /* pending changes of agents that belong, or will belong,
                        to this user */
};

/* A removed user who had an org. */
struct former {
    struct list_node node; /* in access.all_formers */
    size_t org_at;         /* in text */
    char text[];           /* the key and the org, each with its zero */
};

struct token {
    struct list_node node; /* in user.tokens */
    struct id id;
    char hash[TOKEN_HASH_BYTES];
    struct user *user;
    unsigned scopes;
    int64_t expires_ms;  /* zero: never */
    struct timer end;    /* in access.ends, unless it never expires */
    bool is_there;       /* committed; not usable before */
    unsigned n_revoking; /* pending revocations */
};

struct access {
    struct access_opts opts;
    EVP_MD *sha256;
    EVP_MD_CTX *digest;
    struct list all_users;
    struct map users;          /* by key */
    struct map by_hash, by_id; /* tokens */
    struct list all_formers;
    struct map formers; /* by key. Modules that remove users limit their number;
                           each takes about 100 bytes */
    struct list admins; /* existing users of role admin */
    struct timers ends; /* of tokens, the first to expire first; only
                           access_prune looks, nothing fires */
    size_t n_users, n_tokens; /* existing ones */
    int64_t refused_total;
};

/* The mirror (access.c). */

/* Add a user, or a token to one; expires_ms zero: never. Not visible before it
 * has arrived. */
MUST_USE struct user *user_add(struct access *a, struct str shown,
                               enum role role, struct str org);
MUST_USE struct token *token_add(struct access *a, struct user *u,
                                 const struct id *id,
                                 const char hash[TOKEN_HASH_BYTES],
                                 int64_t expires_ms);

/* The commit happened: make it visible. */
void user_arrive(struct access *a, struct user *u);
void user_set_role(struct access *a, struct user *u, enum role role);
void token_arrive(struct access *a, struct token *t);

/* Take it out of the maps and counts. A user is freed once nothing holds it. */
void user_leave(struct access *a, struct user *u);
void user_release(struct user *u);
void token_drop(struct access *a, struct token *t);

/* The scopes of the token today: those it was made for, cut to the user's
 * role. */
unsigned token_scopes(const struct token *t);
/* The scopes that a token made with this one may have. */
unsigned caller_may_grant(const struct caller *by);

/* Whether an admin other than u (NULL: any) exists who can call as one: with a
 * token of scope admin that has not expired and has no pending revocation. */
bool admin_is_there_besides(const struct access *a, const struct user *u,
                            int64_t now_ms);

/* The user of that name, ignoring case; may be one that has not arrived. */
struct user *user_get(const struct access *a, struct str name);

/* Whether the user's tokens are good: the user exists, and so does the owner,
 * if there is one. */
bool user_can_call(const struct user *u);

/* End the claim of a change on this user (change.c). */
void user_unclaim(struct user *u);

/* Names (access.c). */
struct str name_fold(struct str name, char out[PRINCIPAL_NAME_MAX + 1]);
void name_copy(char out[PRINCIPAL_NAME_MAX + 1], struct str name);

/* Owners (owner.c). */

/* Set u's owner, named as shown; the owner may be removed. Empty: none. */
void user_set_owner(struct access *a, struct user *u, struct str owner);

/* The org that counts for this user. Borrowed. */
struct str user_org(const struct access *a, const struct user *u);

/* Whether the owner in the wish for user `name` is allowed. *owner is the new
 * owner; NULL: none, or unchanged. */
MUST_USE enum err owner_check(const struct access *a, struct str name,
                              const struct access_wish *wish,
                              struct user **owner, struct why *why);

/* While u is being created or changed, its owner and the next one (may be NULL)
 * cannot be changed. */
void owner_claim(const struct user *u, struct user *next);
void owner_release(const struct user *u, struct user *next);

/* Remember, or forget, the org of a removed user; nothing is kept for one
 * without an org. */
MUST_USE enum err former_keep(struct access *a, struct str key, struct str org);
void former_drop(struct access *a, struct str key);
void formers_free(struct access *a);

/* Tokens as text (token.c). */

/* Make one. */
void token_make(struct rand rand, struct access_token *out);

/* Whether s is "sbx_" and the canonical base64url of 32 bytes. */
bool token_is_well_formed(struct str s);

/* ERR_NOMEM: libcrypto failed. */
MUST_USE enum err token_hash(const struct access *a, struct str text,
                             char out[TOKEN_HASH_BYTES]);

#endif
