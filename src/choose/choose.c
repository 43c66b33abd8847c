/* One table of layers, asked in order. A layer answers (m->choice is filled),
 * has nothing to say (ERR_NO_ROUTE, ask the next), or refuses. */
#include "choose/choose.h"

#include "model/near.h"

static bool copy(struct msg *m, struct str from, struct str *to)
{
    char *p = arena_strdup(&m->arena, from);

    *to = (struct str){p, p ? from.n : 0};
    return p != NULL;
}

static enum err keep_near(struct msg *m, const struct near *near)
{
    struct str *names = arena_array(&m->arena, NEAR_MAX, sizeof(*names));

    if (!names)
        return ERR_NOMEM;
    for (size_t i = 0; i < near->n; i++)
        if (!copy(m, near->names[i], &names[i]))
            return ERR_NOMEM;
    m->choice.nearest = names;
    m->choice.n_nearest = near->n;
    return OK;
}

static enum err nobody_of_that_name(const struct agents *all,
                                    const struct eyes *eyes, struct msg *m)
{
    struct near near = near_find(all, eyes, m->call.executor);
    enum err e = keep_near(m, &near);

    return e ? e : near_say(&near, m->call.executor, &m->why);
}

/* The message names its executor. */
static enum err choose_explicit(const struct agents *all,
                                const struct eyes *eyes, struct msg *m)
{
    const struct agent *a;

    if (!m->call.executor.n)
        return ERR_NO_ROUTE;
    a = agent_find(all, m->call.executor);
    if (!a || !agent_is_visible(a, eyes))
        return nobody_of_that_name(all, eyes, m);
    if (!copy(m, a->name, &m->choice.agent))
        return ERR_NOMEM;
    m->choice.reason = STR("the message names it as its executor");
    return OK;
}

static const struct {
    struct str name;
    enum err (*ask)(const struct agents *all, const struct eyes *eyes,
                    struct msg *m);
} layers[] = {
    {{"explicit", 8}, choose_explicit},
};

enum err choose_agent(const struct agents *all, const struct eyes *eyes,
                      struct msg *m)
{
    enum err e = ERR_NO_ROUTE;

    memset(&m->choice, 0, sizeof(m->choice));
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        e = layers[i].ask(all, eyes, m);
        if (!e)
            m->choice.layer = layers[i].name;
        if (e != ERR_NO_ROUTE)
            return e;
    }
    return why_err(&m->why, e,
                   "nobody is named to take this message; name an agent as "
                   "executor.name (GET /api/agents lists those there are)");
}
