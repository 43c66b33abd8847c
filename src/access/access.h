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
 * that was removed is not given again. It is found whatever its case, and kept
 * as it was first written: that, and nothing else, is a caller's principal, so
 * that others may compare principals byte by byte.
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
    USER_SHOWN, /* as it was written: the principal */
    USER_ROLE,
    USER_ORG, /* NULL: none */
    USER_CREATED_MS,
    USER_REMOVED_MS, /* NULL: still there */
    USER_OWNER,      /* as in USER_SHOWN; NULL: none */
    N_USER_COLUMNS,
};

enum token_column {
    TOKEN_ID,
    TOKEN_HASH,  /* SHA-256, 32 bytes */
    TOKEN_USER,  /* as in USER_SHOWN */
    TOKEN_LABEL, /* NULL: none */
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
    ACCESS_TOKENS_MAX = 200000,    /* not revoked */
    ACCESS_USER_TOKENS_MAX = 1000, /* so that nobody takes them all */
    ACCESS_OWNED_MAX = 1000,       /* agents of one owner: they go together */
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
    size_t max_users, max_tokens, max_user_tokens, max_owned; /* zero: as
                                                               * above */
    /* This token is good no more; once for each. May be NULL. */
    void (*on_revoked)(void *ctx, const struct id *token_id);
    /* access_org_of says something else of this user now, by a change that is
     * committed: of an owner, and then of each of their agents. Borrowed for
     * the call, in which no change may be settled. May be NULL. */
    void (*on_moved)(void *ctx, struct str user);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct access *access_new(const struct access_opts *opts);
void access_free(struct access *a);

/* Read users and tokens. Once, before the loop runs. ERR_BAD_CONFIG: there is
 * one that this version does not understand; ERR_NOMEM, ERR_IO, … */
MUST_USE enum err access_load(struct access *a, struct why *why);

/* No user is there yet: this is the first start. */
bool access_is_new(const struct access *a);

/* Judge "Bearer sbx_…", the Authorization header's value: "Bearer" in any
 * case, one space, the token, nothing else. ERR_UNAUTHENTICATED with words in
 * why: missing, not of that form, unknown, expired or revoked (the last three
 * are told alike, so that nobody can find out which tokens there once were).
 * ERR_NOMEM: it could not be judged. *out is then nobody. */
MUST_USE enum err access_judge(struct access *a, struct str header,
                               int64_t now_ms, struct caller *out,
                               struct why *why);

/* Whether the token that the caller came with is still good and allows what
 * it did: not when the user's role, owner or org (of an owned agent: the
 * owner's) has changed since. Cheap enough to ask every second for everything
 * that is open. */
bool access_is_good(const struct access *a, const struct caller *c,
                    int64_t now_ms);

/* Whether it is still good, whatever it allows by now. */
bool access_token_is_good(const struct access *a, const struct caller *c,
                          int64_t now_ms);

/* What calls need to know of a user who is there. */
struct access_user {
    char name[PRINCIPAL_NAME_MAX + 1];  /* as shown */
    char org[PRINCIPAL_NAME_MAX + 1];   /* as access_org_of; empty: none */
    char owner[PRINCIPAL_NAME_MAX + 1]; /* as shown; empty: none. Perhaps one
                                         * who was removed */
    enum role role;
    int64_t created_ms;
};

/* Find a user, whatever the case of the name. False: nobody. */
MUST_USE bool access_user_find(const struct access *a, struct str name,
                               struct access_user *out);

/* The org of a user, whatever the case of the name: of an agent that has an
 * owner the owner's. Of one who was removed what it was then, so that what
 * they left behind stays where it was. Empty: none, or nobody ever had that
 * name. Borrowed until the next change is settled. */
struct str access_org_of(struct access *a, struct str user);

/* The admins there are, up to `max` of them into `out`; how many, in all. */
MUST_USE size_t access_admins(const struct access *a, struct access_user *out,
                              size_t max);

/* What a caller may put into a new token: admins anything for anybody, others
 * for themselves no more than the token they came with, and no longer.
 * *scopes and *expires_ms are what was asked for (zero: as much as may be, and
 * never) and become what to hand to access_token_create. ERR_NOT_ALLOWED. */
MUST_USE enum err access_grant(const struct caller *by, struct str user,
                               unsigned *scopes, int64_t *expires_ms,
                               struct why *why);

/* Changes: each appends to tx what it takes, and an entry of the feed
 * ("user.created", "token.revoked", …, for admins). One change per tx. What
 * they refuse they say in why, and then nothing more is to be done. Once one
 * was taken, access_settle makes memory follow, and must be called whatever
 * became of the tx (also when it was never submitted), before the change's
 * end. `by` is the name of who does it; empty: nobody, the server itself.
 *
 * While a change is on its way others see what was before, but cannot undo
 * what it counts on: the same user cannot be changed a second time, nor the
 * same name taken (ERR_BUSY: try again), and an admin who is about to go, or
 * whose token is, counts as gone for whoever wants to be the next.
 *
 * The last admin stays: none is removed or becomes something else unless
 * another is left who can call, with a token of scope admin that is good now.
 * That token may still be revoked, or expire: a token that has leaked must go,
 * whatever else it was good for. Whoever may write the data folder then makes
 * another (signalbox token create --offline). */
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
    char user[PRINCIPAL_NAME_MAX + 1];  /* as shown */
    char org[PRINCIPAL_NAME_MAX + 1];   /* what the user will have */
    char owner[PRINCIPAL_NAME_MAX + 1]; /* likewise, as shown */
    enum role role;
    unsigned scopes; /* what the token will have */
    int64_t at_ms, expires_ms;
    bool is_open; /* taken, and not settled yet */
    void *ctx;    /* whoever submits it may use this */
};

void access_change_init(struct access_change *c);
void access_change_fini(struct access_change *c);

/* What a user is to be. Whoever is of role agent may have an owner, somebody
 * else who is not: it then acts for them, belongs to their org and can have
 * none of its own. */
struct access_wish {
    enum role role;
    struct str org, owner; /* empty: none */
};

/* Names: [A-Za-z0-9][A-Za-z0-9._@-]{0,127}; org the same, or empty.
 * ERR_EXISTS: the name is somebody's; was it so once, access_settle says it.
 * ERR_BUSY, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err access_user_create(struct access *a, struct access_change *c,
                                     struct str name,
                                     const struct access_wish *wish,
                                     struct str by, int64_t now_ms,
                                     struct why *why);

/* Another role, org or owner; `role` zero, and a string with a NULL pointer,
 * stay as they are. With an owner the org goes, and with the role agent the
 * owner. The last admin stays one, and whoever owns agents cannot become one
 * (ERR_NOT_ALLOWED). A user whose role changes keeps tokens; what they allow
 * is cut to the new role, and never more than they were made for. An owner
 * and their agents are changed one at a time (ERR_BUSY). ERR_NOT_FOUND,
 * ERR_BAD_REQUEST, ERR_LIMIT. */
MUST_USE enum err access_user_change(struct access *a, struct access_change *c,
                                     struct str name,
                                     const struct access_wish *wish,
                                     struct str by, int64_t now_ms,
                                     struct why *why);

/* And all their tokens, and those of the agents that they own: whoever acted
 * for them does so no more. Such an agent stays, and gets no token before it
 * has another owner, or none. Not the last admin. Errors as above. */
MUST_USE enum err access_user_remove(struct access *a, struct access_change *c,
                                     struct str name, struct str by,
                                     int64_t now_ms, struct why *why);

/* A token for a user who is there. `scopes` zero: all of the role; never more
 * than the role has, and none for an agent whose owner was removed
 * (ERR_NOT_ALLOWED). `expires_ms` zero: never. The secret is
 * in *out (empty after an error) and nowhere else: access_token_wipe it once
 * it was told. ERR_NOT_FOUND, ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err access_token_create(struct access *a, struct access_change *c,
                                      struct str user, unsigned scopes,
                                      struct str label, int64_t expires_ms,
                                      struct str by, int64_t now_ms,
                                      struct access_token *out,
                                      struct why *why);

void access_token_wipe(struct access_token *t);

/* Admins revoke anybody's. Others only the token they came with, and those of
 * their own that allow no more than it does (ERR_NOT_ALLOWED): or whoever got
 * hold of a small one could take the others from its owner. ERR_NOT_FOUND:
 * none of that id, or not theirs. */
MUST_USE enum err access_token_revoke(struct access *a, struct access_change *c,
                                      struct str id, const struct caller *by,
                                      int64_t now_ms, struct why *why);

/* Whether `by` would revoke the last token that can act as an admin: to be
 * asked before, so that nobody does it by mistake. */
bool access_revokes_last_admin(struct access *a, struct str id,
                               const struct caller *by, int64_t now_ms);

/* The user "admin" and a token, in one tx: for the first start. ERR_EXISTS
 * when there are users already. */
MUST_USE enum err access_first_admin(struct access *a, struct access_change *c,
                                     int64_t now_ms, struct access_token *out,
                                     struct why *why);

/* What became of c->tx. OK, or why it is not so: ERR_EXISTS, ERR_NOT_FOUND or
 * ERR_BUSY when somebody else was first, ERR_OUTCOME_UNKNOWN when the store
 * failed, or what it refused the tx for. */
MUST_USE enum err access_settle(struct access *a, struct access_change *c,
                                struct why *why);

/* Retention: rows of tokens that expired or were revoked before before_ms, up
 * to `limit` of either. Nothing needs to be settled. */
void access_prune(struct access *a, struct tx *tx, int64_t before_ms,
                  size_t limit);

/* Whether a request may come in at all: Host is an address, localhost or one
 * of `hosts` (with a port: only that; without: any); Origin, if there is one,
 * is http:// or https:// and that Host, or one of `origins`. Case does not
 * count, nor a dot at the end of a name. No Host, or the origin "null", never
 * fits. ERR_FOREIGN_HOST, ERR_FOREIGN_ORIGIN. */
struct access_names {
    const struct str *hosts, *origins;
    size_t n_hosts, n_origins;
};

MUST_USE enum err access_names_check(const struct access_names *n,
                                     struct str host, struct str origin,
                                     struct why *why);

/* Whether that is one of `origins`: not the server's own, and not "null". */
bool access_origin_is_listed(const struct access_names *n, struct str origin);

struct access_stats {
    int64_t users, tokens;
    int64_t refused_total; /* by access_judge */
};

struct access_stats access_stats(const struct access *a);

#endif
