#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

/* access: who may do what. Users (the principals), their tokens, and what a
 * token allows.
 *
 * A token is 256 random bits behind "sbx_"; only its SHA-256 is kept, so
 * whoever reads the database cannot call. All of them are in memory, mirrored
 * from the store, so that a request is judged without waiting. A change goes
 * into a tx and takes effect when that is committed; a revoked token, or the
 * tokens of a user who was removed, are then told to on_revoked at once, so
 * that what they had open can be closed.
 *
 * A user's name is who they are: in tasks, in the feed, for good. So a name
 * that was removed is not given again.
 *
 * Owns: its tables and their mirror. Borrows: store, rand, ids. Threads: the
 * loop's. */

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

enum user_column {
    USER_NAME,  /* lower case: the key, whatever the case */
    USER_SHOWN, /* as it was written */
    USER_ROLE,
    USER_ORG,
    USER_CREATED_MS,
    USER_REMOVED_MS, /* NULL: still there */
    N_USER_COLUMNS,
};

enum token_column {
    TOKEN_ID,
    TOKEN_HASH, /* SHA-256, 32 bytes */
    TOKEN_USER,
    TOKEN_LABEL,
    TOKEN_SCOPES,
    TOKEN_CREATED_MS,
    TOKEN_EXPIRES_MS, /* NULL: never */
    TOKEN_REVOKED_MS, /* NULL: still good */
    N_TOKEN_COLUMNS,
};

enum {
    ACCESS_SECRET_BYTES = 32,
    ACCESS_TOKEN_CHARS = 4 + 43, /* "sbx_" and base64url */
    ACCESS_USERS_MAX = 100000,
    ACCESS_TOKENS_MAX = 200000, /* not revoked */
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
    size_t max_users, max_tokens; /* zero: the limits above */
    /* This token is good no more; once for each. May be NULL. */
    void (*on_revoked)(void *ctx, const struct id *token_id);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct access *access_new(const struct access_opts *opts);
void access_free(struct access *a);

/* Read users and tokens. Once, before the loop runs. */
MUST_USE enum err access_load(struct access *a, struct why *why);

/* No user is there yet: this is the first start. */
bool access_is_new(const struct access *a);

/* Judge "Bearer sbx_…", the Authorization header's value. ERR_UNAUTHENTICATED
 * with words in why: missing, not of that form, unknown, expired or revoked
 * (the last three are told alike, so that nobody can find out which tokens
 * there once were). *out is then nobody. */
MUST_USE enum err access_judge(const struct access *a, struct str header,
                               int64_t now_ms, struct caller *out,
                               struct why *why);

/* Whether the token that the caller came with is still good. */
bool access_is_good(const struct access *a, const struct caller *c,
                    int64_t now_ms);

/* Changes: each appends to tx what it takes, and an entry of the feed
 * ("user.created", "token.revoked", …, for admins); access_settle makes memory
 * follow, and must be called whatever became of the tx. One change per tx.
 * What they refuse they say in why. */
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
    char user[PRINCIPAL_NAME_MAX + 1];
    void *ctx; /* whoever submits it may use this */
};

void access_change_init(struct access_change *c);
void access_change_fini(struct access_change *c);

/* Names: [A-Za-z0-9][A-Za-z0-9._@-]{0,127}; org the same, or empty.
 * ERR_EXISTS: the name is, or was, somebody's. ERR_BAD_REQUEST, ERR_LIMIT. */
MUST_USE enum err access_user_create(struct access *a, struct access_change *c,
                                     struct str name, enum role role,
                                     struct str org, struct str by,
                                     int64_t now_ms, struct why *why);

/* Another role or org; `role` zero and an org with a NULL pointer stay as
 * they are. The last admin stays one (ERR_NOT_ALLOWED). A user whose role
 * changes keeps tokens; what they allow is cut to the new role. */
MUST_USE enum err access_user_change(struct access *a, struct access_change *c,
                                     struct str name, enum role role,
                                     struct str org, struct str by,
                                     int64_t now_ms, struct why *why);

/* And all their tokens. Not the last admin. */
MUST_USE enum err access_user_remove(struct access *a, struct access_change *c,
                                     struct str name, struct str by,
                                     int64_t now_ms, struct why *why);

/* A token for a user who is there. `scopes` zero: all of the role; never more
 * than the role has (ERR_NOT_ALLOWED). The secret is in *out and nowhere
 * else. */
MUST_USE enum err access_token_create(struct access *a, struct access_change *c,
                                      struct str user, unsigned scopes,
                                      struct str label, int64_t expires_ms,
                                      struct str by, int64_t now_ms,
                                      struct access_token *out,
                                      struct why *why);

/* ERR_NOT_FOUND: none of that id, or `only_of` (a user; empty: anybody's) is
 * not whose it is. */
MUST_USE enum err access_token_revoke(struct access *a, struct access_change *c,
                                      struct str id, struct str only_of,
                                      struct str by, int64_t now_ms,
                                      struct why *why);

/* The user "admin" and a token, in one tx: for the first start. */
MUST_USE enum err access_first_admin(struct access *a, struct access_change *c,
                                     int64_t now_ms, struct access_token *out,
                                     struct why *why);

/* What became of c->tx. OK, or why it is not so: ERR_EXISTS and the like when
 * somebody else was first. */
MUST_USE enum err access_settle(struct access *a, struct access_change *c,
                                struct why *why);

/* Retention: rows of tokens that expired or were revoked before before_ms. */
void access_prune(struct access *a, struct tx *tx, int64_t before_ms,
                  size_t limit);

/* Whether a request may come in at all: Host is an address, localhost or one
 * of `hosts`; Origin, if there is one, is that Host's own, or one of
 * `origins`. ERR_FOREIGN_HOST, ERR_FOREIGN_ORIGIN. */
struct access_names {
    const struct str *hosts, *origins;
    size_t n_hosts, n_origins;
};

MUST_USE enum err access_names_check(const struct access_names *n,
                                     struct str host, struct str origin,
                                     struct why *why);

struct access_stats {
    int64_t users, tokens;
    int64_t refused_total;
};

struct access_stats access_stats(const struct access *a);

#endif
