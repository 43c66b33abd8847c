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

/* "echo:" or "echo:250". */
static enum err read_echo(struct str rest, struct agent_url *out)
{
    int64_t delay_ms = 0;

    /* A minus is in no delay, not even before a zero. */
    if (rest.n && (rest.p[0] == '-' || str_to_i64(rest, &delay_ms) != OK))
        return ERR_SYNTAX;
    if (delay_ms > ECHO_DELAY_MAX_MS)
        return ERR_SYNTAX;
    *out = (struct agent_url){.road = ROAD_ECHO, .delay_ms = delay_ms};
    return OK;
}

enum err agent_url_read(struct str url, struct agent_url *out, struct why *why)
{
    static const struct str echo = {"echo:", 5};

    (void)why;

    if (url.n > AGENT_URL_MAX)
        return ERR_SYNTAX;
    if (str_starts(url, echo))
        return read_echo(str_sub(url, echo.n, url.n), out);
    return ERR_SYNTAX;
}

struct str agent_url_allowed(void)
{
    _Static_assert(ECHO_DELAY_MAX_MS == 3600000, "the words below say so");
    return STR("\"echo:\" or \"echo:MILLISECONDS\" with up to 3600000 of "
               "them");
}
