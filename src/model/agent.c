#include "model/agent.h"

static bool is_alnum(char c)
{
    c = str_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool agent_name_is_valid(struct str name)
{
    if (name.n == 0 || name.n > AGENT_NAME_MAX || !is_alnum(name.p[0]))
        return false;
    for (size_t i = 1; i < name.n; i++) {
        char c = name.p[i];

        if (!is_alnum(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

const struct agent *agent_find(const struct agents *all, struct str name)
{
    char lower[AGENT_NAME_MAX];

    if (name.n == 0 || name.n > sizeof(lower))
        return NULL;
    for (size_t i = 0; i < name.n; i++)
        lower[i] = str_lower(name.p[i]);
    return map_get(all->by_name, (struct str){lower, name.n});
}
