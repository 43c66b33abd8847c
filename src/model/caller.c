#include "model/caller.h"

static const struct {
    struct str name;
    unsigned scopes;
} roles[] = {
    [ROLE_ADMIN] = {STR("admin"), SCOPE_ALL & ~(unsigned)SCOPE_ASKED},
    [ROLE_USER] = {STR("user"), SCOPE_SEND | SCOPE_READ | SCOPE_AGENTS},
    [ROLE_AGENT] = {STR("agent"), SCOPE_SEND | SCOPE_READ},
};

static const struct str scopes[N_SCOPES] = {
    STR("send"),   STR("read"),  STR("agents"),  STR("escalations"),
    STR("ledger"), STR("admin"), STR("creator"), STR("metrics"),
};

bool principal_name_is_valid(struct str name)
{
    return str_is_name(name, "._@-", PRINCIPAL_NAME_MAX);
}

struct str role_name(enum role r)
{
    return r >= ROLE_ADMIN && r <= ROLE_AGENT ? roles[r].name : STR("");
}

enum role role_of(struct str name)
{
    for (unsigned r = ROLE_ADMIN; r <= ROLE_AGENT; r++)
        if (str_eq(roles[r].name, name))
            return (enum role)r;
    return 0;
}

unsigned role_scopes(enum role r)
{
    return r >= ROLE_ADMIN && r <= ROLE_AGENT ? roles[r].scopes : 0;
}

unsigned role_may(enum role r)
{
    return role_scopes(r) ? role_scopes(r) | SCOPE_ASKED : 0;
}

struct str scope_name(enum scope s)
{
    for (unsigned i = 0; i < N_SCOPES; i++)
        if ((unsigned)s == 1U << i)
            return scopes[i];
    return STR("");
}

unsigned scope_of(struct str name)
{
    for (unsigned i = 0; i < N_SCOPES; i++)
        if (str_eq(scopes[i], name))
            return 1U << i;
    return 0;
}
