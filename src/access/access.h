#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

/* access: users (the principals), their tokens, and what each token allows.
 *
 * A token is 256 random bits behind "sbx_". Only its SHA-256 is stored, so a
 * reader of the database cannot make calls. All tokens are in memory, mirrored
 * from the store, so a request is authenticated without waiting. A change goes
 * into a tx and takes effect when that tx is committed. on_revoked then reports
 * a revoked token, and each token of a removed user, so that the caller can
 * close what it has open.
 *
 * A user's name is their identity in tasks and in the feed, forever. The name
 * of a removed user is therefore never given again. Lookup ignores case; the
 * spelling in which the name was first written is the caller's principal.
 * Nothing else is, so other modules may compare principals byte by byte.
 *
 * Owns: its tables and their mirror. Borrows: store, rand, ids. Threads: loop
 * thread only. */

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "model/caller.h"
#include "model/query.h"
#include "model/tx.h"
#include "store/store.h"

struct access;

extern const struct schema access_schema;
extern const struct table user_table, token_table;

#define USER_COLUMNS(C)                                  \
    /* lower case: the key, since lookup ignores case */ \
    C(USER_NAME, "name", 1, COLUMN_TEXT)                 \
    /* as it was written: the principal */               \
    C(USER_SHOWN, "shown", 1, COLUMN_TEXT)               \
    C(USER_ROLE, "role", 1, COLUMN_INT)                  \
    C(USER_ORG, "org", 1, COLUMN_TEXT) /* NULL: none */  \
    C(USER_CREATED_MS, "created_ms", 1, COLUMN_INT)      \
    /* NULL: the user exists */                          \
    C(USER_REMOVED_MS, "removed_ms", 1, COLUMN_INT)      \
    /* spelled as in USER_SHOWN; NULL: none */           \
    C(USER_OWNER, "owner", 2, COLUMN_TEXT)

enum user_column { USER_COLUMNS(COLUMN_NUMBER) N_USER_COLUMNS };

#define TOKEN_COLUMNS(C)                                                   \
    C(TOKEN_ID, "id", 1, COLUMN_TEXT)                                      \
    C(TOKEN_HASH, "hash", 1, COLUMN_BLOB)   /* SHA-256, 32 bytes */        \
    C(TOKEN_USER, "user", 1, COLUMN_TEXT)   /* spelled as in USER_SHOWN */ \
    C(TOKEN_LABEL, "label", 1, COLUMN_TEXT) /* NULL: none */               \
    C(TOKEN_SCOPES, "scopes", 1, COLUMN_INT)                               \
    C(TOKEN_CREATED_MS, "created_ms", 1, COLUMN_INT)                       \
    C(TOKEN_EXPIRES_MS, "expires_ms", 1, COLUMN_INT) /* NULL: never */     \
    C(TOKEN_REVOKED_MS, "revoked_ms", 1, COLUMN_INT) /* NULL: not revoked */

enum token_column { TOKEN_COLUMNS(COLUMN_NUMBER) N_TOKEN_COLUMNS };

enum {
    ACCESS_SECRET_BYTES = 32,
    ACCESS_TOKEN_CHARS = 4 + 43, /* "sbx_" and base64url */
    ACCESS_USERS_MAX = 100000,
    ACCESS_TOKENS_MAX = 200000,    /* not revoked */
    ACCESS_USER_TOKENS_MAX = 1000, /* so that one user cannot take them all */
    ACCESS_OWNED_MAX = 1000, /* agents of one owner: their tokens go with it */
    ACCESS_LABEL_MAX = 128,
};

struct access_token {
    char text[ACCESS_TOKEN_CHARS + 1];
};

struct access_opts {
    struct log *log;
    struct store *store;
    struct rand rand;
    struct id_maker *ids;
    uint64_t seed[2];
    size_t max_users, max_tokens, max_user_tokens,
        max_owned; /* zero: the limit above */
    /* This token is no longer good. Called once for each. May be NULL. */
    void (*on_revoked)(void *ctx, const struct id *token_id);
    /* A committed change gave this user a different access_org_of. When the
     * user owns agents, it is called for each of them too. The name is borrowed
     * for the call, and no change may be settled inside it. May be NULL. */
    void (*on_moved)(void *ctx, struct str user);
    void *ctx;
};

/* NULL: libcrypto has no SHA-256. */
MUST_USE struct access *access_new(const struct access_opts *opts);
void access_free(struct access *a);

/* Read users and tokens. Call once, before the loop runs. ERR_BAD_CONFIG: a row
 * that this version does not understand; ERR_IO, … */
MUST_USE enum err access_load(struct access *a, struct why *why);

/* No user exists yet: this is the first start. */
bool access_is_new(const struct access *a);

/* Authenticate the value of the Authorization header, "Bearer sbx_…": "Bearer"
 * in any case, one space, the token, nothing else. ERR_UNAUTHENTICATED, with an
 * explanation in why: missing, malformed, or unknown, expired or revoked. The
 * last three read the same, so that a caller cannot find out which tokens once
 * existed. ERR_NOMEM: libcrypto failed. After an error *out is the empty
 * caller. */
MUST_USE enum err access_judge(struct access *a, struct str header,
                               int64_t now_ms, struct caller *out,
                               struct why *why);

/* Whether the caller's token is still good and allows the same as before: false
 * when the user's role, owner or org has changed (for an owned agent, the
 * owner's org). Cheap enough to check every second for everything that is
 * open. */
bool access_is_good(const struct access *a, const struct caller *c,
                    int64_t now_ms);

/* Whether the token is still good, whatever it allows now. */
bool access_token_is_good(const struct access *a, const struct caller *c,
                          int64_t now_ms);

/* An existing user, as other modules see one. */
struct access_user {
    char name[PRINCIPAL_NAME_MAX + 1]; /* as shown */
    char org[PRINCIPAL_NAME_MAX + 1];  /* as access_org_of; empty: none */
    char owner[PRINCIPAL_NAME_MAX +
               1]; /* as shown; empty: none. The owner may have been removed */
    enum role role;
    int64_t created_ms;
};

/* Find a user; case is ignored. False: no such user. */
MUST_USE bool access_user_find(const struct access *a, struct str name,
                               struct access_user *out);

/* The user of that name as a caller who sends messages. False: no such user. */
MUST_USE bool access_caller(const struct access *a, struct str name,
                            struct caller *out);

/* The org of a user; case is ignored. An owned agent has its owner's org. A
 * removed user keeps the org they had, so that what they left behind stays
 * where it was. Empty: none, or the name never existed. Borrowed until the next
 * change is settled. */
struct str access_org_of(struct access *a, struct str user);

/* Every existing user in the order of creation, with access_org_of. The strings
 * are borrowed until the next change is settled. */
void access_each_user(const struct access *a,
                      void (*each)(void *ctx, struct str name, struct str org),
                      void *ctx);

/* Write the existing admins, at most `max`, to `out`. Returns how many
 * exist. */
MUST_USE size_t access_admins(const struct access *a, struct access_user *out,
                              size_t max);

/* Limit what a caller may put into a new token. Admins may make any token for
 * any user; others only tokens for themselves that allow no more, and last no
 * longer, than the one they came with. *scopes and *expires_ms hold the request
 * (zero: as much as possible, and never) and become the arguments for
 * access_token_create. ERR_NOT_ALLOWED. */
MUST_USE enum err access_grant(const struct caller *by, struct str user,
                               unsigned *scopes, int64_t *expires_ms,
                               struct why *why);

/* Changes. Each function appends its operations to tx, and an entry for the
 * feed ("user.created", "token.revoked", …, visible to admins). One change per
 * tx. On an error, why explains it and there is nothing to undo. After OK the
 * caller must call access_settle whatever becomes of the tx (even if it is
 * never submitted) and before access_change_fini. `by` is the name of the user
 * who makes the change; empty: the server itself.
 *
 * Until a change is settled others see the state before it, but cannot break
 * what it relies on: the same user cannot be changed a second time, nor the
 * same name taken (ERR_BUSY: try again), and an admin who is about to go, or
 * whose token is, no longer counts as an admin.
 *
 * The last admin stays. A user is only removed or demoted if another admin
 * remains who can call, with a good token of scope admin. That token may still
 * be revoked, or expire: a leaked token must go, whatever else depends on it. A
 * person with write access to the data folder can then make another (signalbox
 * token create --offline). */
struct access_change {
    struct tx tx;
    enum access_change_kind {
        ACCESS_USER_CREATE,
        ACCESS_USER_CHANGE,
        ACCESS_USER_REMOVE,
        ACCESS_TOKEN_CREATE,
        ACCESS_TOKEN_REVOKE,
    } kind;
    struct id token_id;
    char user[PRINCIPAL_NAME_MAX + 1]; /* as shown */
    char org[PRINCIPAL_NAME_MAX + 1];  /* the org that the user will have */
    char owner[PRINCIPAL_NAME_MAX +
               1]; /* the owner that the user will have, as shown */
    enum role role;
    unsigned scopes; /* the scopes that the token will have */
    int64_t at_ms, expires_ms;
    bool is_open; /* prepared and not settled yet */
    void *ctx;    /* for the code that submits the tx */
};

void access_change_init(struct access_change *c);
void access_change_fini(struct access_change *c);

/* The state that a user is to have. A user of role agent may have an owner,
 * another user who is not an agent. The agent then acts for its owner, belongs
 * to the owner's org and can have none of its own. */
struct access_wish {
    enum role role;
    struct str org, owner; /* empty: none */
};

/* Create a user. A name is [A-Za-z0-9][A-Za-z0-9._@-]{0,127}; org the same, or
 * empty. ERR_EXISTS: the name is taken; if only a removed user had it,
 * access_settle reports that. ERR_BUSY, ERR_BAD_REQUEST, ERR_LIMIT. */
MUST_USE enum err access_user_create(struct access *a, struct access_change *c,
                                     struct str name,
                                     const struct access_wish *wish,
                                     struct str by, int64_t now_ms,
                                     struct why *why);

/* Change role, org or owner. A `role` of zero, and a string whose pointer is
 * NULL, stay as they are. Setting an owner clears the org; losing the role
 * agent clears the owner. The last admin stays one, and a user who owns agents
 * cannot become one (ERR_NOT_ALLOWED). The user keeps all tokens; what they
 * allow is cut to the new role, and never exceeds what they were made for. An
 * owner and their agents are changed one at a time (ERR_BUSY). ERR_NOT_FOUND,
 * ERR_BAD_REQUEST, ERR_LIMIT. */
MUST_USE enum err access_user_change(struct access *a, struct access_change *c,
                                     struct str name,
                                     const struct access_wish *wish,
                                     struct str by, int64_t now_ms,
                                     struct why *why);

/* Remove a user, all their tokens, and those of the agents that they own. Such
 * an agent stays, but gets no token before it has another owner, or none.
 * Refused for the last admin. Errors as above. */
MUST_USE enum err access_user_remove(struct access *a, struct access_change *c,
                                     struct str name, struct str by,
                                     int64_t now_ms, struct why *why);

/* Make a token for an existing user. `scopes` zero: all scopes of the role. A
 * token never has more than the role, and an agent whose owner was removed gets
 * none (ERR_NOT_ALLOWED). `expires_ms` zero: never. The secret is in *out
 * (empty after an error) and nowhere else: call access_token_wipe once it is
 * sent. ERR_NOT_FOUND, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM (libcrypto
 * failed). */
MUST_USE enum err access_token_create(struct access *a, struct access_change *c,
                                      struct str user, unsigned scopes,
                                      struct str label, int64_t expires_ms,
                                      struct str by, int64_t now_ms,
                                      struct access_token *out,
                                      struct why *why);

void access_token_wipe(struct access_token *t);

/* Revoke a token. Admins may revoke any. Others may revoke the token they came
 * with and those of their own that allow no more than it (ERR_NOT_ALLOWED):
 * otherwise a stolen token of small scope could revoke the owner's others.
 * ERR_NOT_FOUND: no such token, or not theirs. */
MUST_USE enum err access_token_revoke(struct access *a, struct access_change *c,
                                      struct str id, const struct caller *by,
                                      int64_t now_ms, struct why *why);

/* Whether `by` would revoke the last token that can act as an admin. Ask before
 * revoking, so that it does not happen by mistake. */
bool access_revokes_last_admin(struct access *a, struct str id,
                               const struct caller *by, int64_t now_ms);

/* Make the user "admin" and a token in one tx, for the first start. ERR_EXISTS
 * when users already exist. */
MUST_USE enum err access_first_admin(struct access *a, struct access_change *c,
                                     int64_t now_ms, struct access_token *out,
                                     struct why *why);

/* Settle the change according to the result of c->tx. OK, or why it did not
 * take effect: ERR_EXISTS, ERR_NOT_FOUND or ERR_BUSY when another change came
 * first, ERR_OUTCOME_UNKNOWN when the store failed, or the error with which the
 * store refused the tx. */
MUST_USE enum err access_settle(struct access *a, struct access_change *c,
                                struct why *why);

/* Retention: append to tx the removal of up to `limit` tokens that expired, and
 * as many that were revoked, before before_ms. Nothing needs to be settled. */
void access_prune(struct access *a, struct tx *tx, int64_t before_ms,
                  size_t limit);

/* Whether a request may come in at all. Host must be an address, localhost or
 * one of `hosts` (an entry with a port allows that port, one without allows
 * any). Origin, if present, must be http:// or https:// plus that Host, or one
 * of `origins`. Case and a dot at the end of a name are ignored. A missing Host
 * and the origin "null" are always rejected. ERR_FOREIGN_HOST,
 * ERR_FOREIGN_ORIGIN. */
struct access_names {
    const struct str *hosts, *origins;
    size_t n_hosts, n_origins;
};

MUST_USE enum err access_names_check(const struct access_names *n,
                                     struct str host, struct str origin,
                                     struct why *why);

/* Whether origin is one of `origins`: false for the server's own and for
 * "null". */
bool access_origin_is_listed(const struct access_names *n, struct str origin);

struct access_stats {
    int64_t users, tokens;
    int64_t refused_total; /* by access_judge */
};

struct access_stats access_stats(const struct access *a);

#endif
