#ifndef ACCESS_INTERNAL_H
#define ACCESS_INTERNAL_H

/* The mirror, shared by the files of access/: access.c keeps it and judges,
 * load.c fills it, change.c changes it, owner.c knows who belongs to whom,
 * token.c what a token looks like. */

#include <openssl/evp.h>

#include "access/access.h"
#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

enum { TOKEN_HASH_BYTES = 32 };

enum user_state {
    USER_COMING, /* holds the name; nobody sees it yet */
    USER_THERE,
    USER_GONE, /* in no map; waits for tokens that are on their way */
};

struct user {
    struct list_node node;              /* in access.all_users */
    struct list_node admin_node;        /* in access.admins, if one and there */
    char key[PRINCIPAL_NAME_MAX + 1];   /* lower case */
    char shown[PRINCIPAL_NAME_MAX + 1]; /* as it was first written */
    char org[PRINCIPAL_NAME_MAX + 1];   /* its own: user_org says what counts */
    char owner[PRINCIPAL_NAME_MAX + 1]; /* as shown; of role agent only */
    enum role role;
    enum user_state state;
    bool is_changing; /* a change of it is on its way, or being settled */
    bool is_leaving;  /* and that change takes an admin away */
    int64_t created_ms;
    struct list tokens;
    size_t n_tokens;
    struct user *owned_by;       /* NULL: no owner, or one who was removed */
    struct list_node owned_node; /* in owned_by->agents */
    struct list agents;          /* whom it owns */
    size_t n_agents;
    size_t n_claims; /* changes on their way of agents that are, or will be,
                      * among them */
};

/* What is left of a user who was removed and had an org. */
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
    bool is_there;       /* committed: not before that may anybody use it */
    unsigned n_revoking; /* how many are about to revoke it */
};

struct access {
    struct access_opts opts;
    EVP_MD *sha256;
    EVP_MD_CTX *digest;
    struct list all_users;
    struct map users;          /* by key */
    struct map by_hash, by_id; /* tokens */
    struct list all_formers;
    struct map formers; /* by key; how many there are is for those to limit
                         * who remove users: 100 bytes or so for each */
    struct list admins; /* users who are there and are one */
    struct timers ends; /* of tokens, the first to expire first; only
                         * access_prune asks, and nothing fires */
    size_t n_users, n_tokens; /* there */
    int64_t refused_total;
};

/* The mirror (access.c). */

/* Add a user, or a token to one; expires_ms zero: never. Nobody sees it before
 * its state says so. NULL: memory is gone. */
MUST_USE struct user *user_add(struct access *a, struct str shown,
                               enum role role, struct str org);
MUST_USE struct token *token_add(struct access *a, struct user *u,
                                 const struct id *id,
                                 const char hash[TOKEN_HASH_BYTES],
                                 int64_t expires_ms);

/* From coming to there. */
void user_arrive(struct access *a, struct user *u);
void user_set_role(struct access *a, struct user *u, enum role role);
void token_arrive(struct access *a, struct token *t);

/* Out of the maps and the counts. A user is freed once nothing holds it. */
void user_leave(struct access *a, struct user *u);
void user_release(struct user *u);
void token_drop(struct access *a, struct token *t);

/* What it allows today: what it was made for, as far as the role goes. */
unsigned token_scopes(const struct token *t);
/* What may be in a token that is made with this one. */
unsigned caller_may_grant(const struct caller *by);

/* Whether an admin other than u (NULL: any) is there who can call as one: with
 * a token of that scope that has not expired and that nobody is about to
 * revoke. */
bool admin_is_there_besides(const struct access *a, const struct user *u,
                            int64_t now_ms);

/* The user of that name, whatever its case; also one that is coming. */
struct user *user_get(const struct access *a, struct str name);

/* Whether its tokens are good: it is there, and so is its owner, if it has
 * one. */
bool user_can_call(const struct user *u);

/* The end of the claim that a change has on it (change.c). */
void user_unclaim(struct user *u);

/* Names (access.c). */
struct str name_fold(struct str name, char out[PRINCIPAL_NAME_MAX + 1]);
void name_copy(char out[PRINCIPAL_NAME_MAX + 1], struct str name);

/* Owners (owner.c). */

/* Give u the owner of that name as it is shown, who may be gone; empty:
 * none. */
void user_set_owner(struct access *a, struct user *u, struct str owner);

/* What counts as the user's org. Borrowed. */
struct str user_org(const struct access *a, const struct user *u);

/* Whether the wish for the user `name`, who has no agents if the wish makes it
 * one, can be granted as far as its owner goes. *owner is who it is to be;
 * NULL: nobody, or as before. */
MUST_USE enum err owner_check(const struct access *a, struct str name,
                              const struct access_wish *wish,
                              struct user **owner, struct why *why);

/* While u is being changed, or made, nobody may change whoever owns it or is
 * about to (may be NULL). */
void owner_claim(const struct user *u, struct user *next);
void owner_release(const struct user *u, struct user *next);

/* Keep, or forget, what is left of a user who is removed; nothing unless they
 * have an org. ERR_NOMEM. */
MUST_USE enum err former_keep(struct access *a, struct str key, struct str org);
void former_drop(struct access *a, struct str key);
void formers_free(struct access *a);

/* Tokens as text (token.c). */

/* Make one. */
void token_make(struct rand rand, struct access_token *out);

/* Whether s is "sbx_" and the one way to write 32 bytes in base64url. */
bool token_is_well_formed(struct str s);

/* ERR_NOMEM: libcrypto could not. */
MUST_USE enum err token_hash(const struct access *a, struct str text,
                             char out[TOKEN_HASH_BYTES]);

#endif
