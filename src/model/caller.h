#ifndef MODEL_CALLER_H
#define MODEL_CALLER_H

/* caller: who asks, as the token says and never as the body says. */

#include "base/id.h"
#include "base/str.h"

/* The numbers of roles and scopes are kept in the store. */
enum role { ROLE_ADMIN = 1, ROLE_USER = 2, ROLE_AGENT = 3 };

enum scope {
    SCOPE_SEND = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_AGENTS = 1 << 2,
    SCOPE_ESCALATIONS = 1 << 3,
    SCOPE_LEDGER = 1 << 4,
    SCOPE_ADMIN = 1 << 5,   /* what is left: users, tokens, configuration */
    SCOPE_CREATOR = 1 << 6, /* an agent's line speaks as who made the agent; in
                             * no token whose maker did not ask for it */
    SCOPE_METRICS = 1 << 7, /* /metrics where it is not public; likewise */
    SCOPE_ALL = (1 << 8) - 1,

    SCOPE_ASKED = SCOPE_CREATOR | SCOPE_METRICS,
};

enum { N_SCOPES = 8, PRINCIPAL_NAME_MAX = 128 };

/* [A-Za-z0-9][A-Za-z0-9._@-]{0,127}: users, and orgs too. */
bool principal_name_is_valid(struct str name);

struct str role_name(enum role r);
enum role role_of(struct str name); /* zero: there is none of that name */
unsigned role_scopes(enum role r);  /* what a token of that role has if its
                                     * maker asked for nothing in particular */
unsigned role_may(enum role r);     /* and the most that it can have */

struct str scope_name(enum scope s);
unsigned scope_of(struct str name); /* zero: there is none of that name */

/* Small enough to be copied along with whatever waits. */
struct caller {
    struct id token_id;                     /* tok_…; empty: nobody */
    char principal[PRINCIPAL_NAME_MAX + 1]; /* the name of who calls */
    char owner[PRINCIPAL_NAME_MAX + 1]; /* of an agent: the user it acts for;
                                         * empty: nobody */
    char org[PRINCIPAL_NAME_MAX + 1];   /* the owner's where there is one;
                                         * empty: none */
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
