#ifndef MODEL_CALLER_H
#define MODEL_CALLER_H

/* caller: the authenticated caller, from the token and never from the body. */

#include "base/id.h"
#include "base/str.h"

/* The store keeps the numbers of roles and scopes. */
enum role { ROLE_ADMIN = 1, ROLE_USER = 2, ROLE_AGENT = 3 };

enum scope {
    SCOPE_SEND = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_AGENTS = 1 << 2,
    SCOPE_ESCALATIONS = 1 << 3,
    SCOPE_LEDGER = 1 << 4,
    SCOPE_ADMIN = 1 << 5,   /* everything else: users, tokens, configuration */
    SCOPE_CREATOR = 1 << 6, /* an agent's connection speaks as the agent's
                             * creator; only in tokens that requested it */
    SCOPE_METRICS = 1 << 7, /* /metrics where it is not public; likewise */
    SCOPE_ALL = (1 << 8) - 1,

    SCOPE_ASKED = SCOPE_CREATOR | SCOPE_METRICS,
};

enum { N_SCOPES = 8, PRINCIPAL_NAME_MAX = 128 };

/* [A-Za-z0-9][A-Za-z0-9._@-]{0,127}: users and orgs. */
bool principal_name_is_valid(struct str name);

struct str role_name(enum role r);
enum role role_of(struct str name); /* zero: unknown name */
unsigned role_scopes(enum role r);  /* default scopes of a token with that
                                     * role */
unsigned role_may(enum role r);     /* the most that it can have */

struct str scope_name(enum scope s);
unsigned scope_of(struct str name); /* zero: unknown name */

/* Small enough to be copied into every waiting object. */
struct caller {
    struct id token_id;                     /* tok_…; empty: no caller */
    char principal[PRINCIPAL_NAME_MAX + 1]; /* the caller's name */
    char owner[PRINCIPAL_NAME_MAX + 1];     /* agents: the user it acts for, or
                                             * empty */
    char org[PRINCIPAL_NAME_MAX + 1];       /* the owner's if there is one; may
                                             * be empty */
    enum role role;
    unsigned scopes;
    int64_t expires_ms; /* Unix time; zero: never */
};

static inline struct str caller_name(const struct caller *c)
{
    return str_of(c->principal);
}

static inline bool caller_is_admin(const struct caller *c)
{
    return c->role == ROLE_ADMIN && (c->scopes & SCOPE_ADMIN);
}

#endif
