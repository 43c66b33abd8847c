/* One table of layers, asked in order. A layer answers (m->choice is filled),
 * has nothing to say (ERR_NO_ROUTE, ask the next), or refuses.
 *
 * Names that were probably meant are looked for among all agents, which costs
 * some microseconds each; those whose length alone puts them out of reach are
 * not compared. */
#include "choose/choose.h"

#include <stdio.h>

enum {
    NEAREST_MAX = 3,
    SHOWN_MAX = 64, /* of a name that nobody has, this much is shown */
};

static bool copy(struct msg *m, struct str from, struct str *to)
{
    char *p = arena_strdup(&m->arena, from);

    *to = (struct str){p, p ? from.n : 0};
    return p != NULL;
}

/* The nearest names so far, the best first. Agents come in the order of their
 * names, so of two that are equally near the first stays before. */
struct near {
    struct str names[NEAREST_MAX];
    unsigned distances[NEAREST_MAX];
    size_t n;
};

static void near_add(struct near *near, struct str name, unsigned distance)
{
    size_t at = near->n;

    while (at && near->distances[at - 1] > distance)
        at--;
    if (at == NEAREST_MAX)
        return;
    near->n += near->n < NEAREST_MAX;
    for (size_t i = near->n - 1; i > at; i--) {
        near->names[i] = near->names[i - 1];
        near->distances[i] = near->distances[i - 1];
    }
    near->names[at] = name;
    near->distances[at] = distance;
}

static struct near find_near(const struct agents *all, const struct eyes *eyes,
                             struct str written)
{
    unsigned too_far = str_guess(written).distance;
    struct near near = {0};

    for (size_t i = 0; i < all->n; i++) {
        struct str name = all->list[i]->name;
        size_t apart =
            name.n > written.n ? name.n - written.n : written.n - name.n;
        unsigned distance;

        if (apart >= too_far || !agent_is_visible(all->list[i], eyes))
            continue;
        distance = str_distance(written, name);
        if (distance < too_far)
            near_add(&near, name, distance);
    }
    return near;
}

static enum err keep_near(struct msg *m, const struct near *near)
{
    struct str *names = arena_array(&m->arena, NEAREST_MAX, sizeof(*names));

    if (!names)
        return ERR_NOMEM;
    for (size_t i = 0; i < near->n; i++)
        if (!copy(m, near->names[i], &names[i]))
            return ERR_NOMEM;
    m->choice.nearest = names;
    m->choice.n_nearest = near->n;
    return OK;
}

/* What was asked for, fit to be shown: short, and without what could steer a
 * terminal. */
static void show(struct str name, char out[SHOWN_MAX + 4])
{
    struct str shown = str_head(name, SHOWN_MAX);

    snprintf(out, SHOWN_MAX + 4, "%.*s%s", STR_ARG(shown),
             shown.n < name.n ? "..." : "");
    str_tame(out, strlen(out));
}

static bool sees_any(const struct agents *all, const struct eyes *eyes)
{
    for (size_t i = 0; i < all->n; i++)
        if (agent_is_visible(all->list[i], eyes))
            return true;
    return false;
}

static enum err nobody_of_that_name(const struct agents *all,
                                    const struct eyes *eyes, struct msg *m)
{
    struct near near = find_near(all, eyes, m->call.executor);
    char shown[SHOWN_MAX + 4], names[NEAREST_MAX * (SHOWN_MAX + 8)] = "";
    enum err e = keep_near(m, &near);
    size_t at = 0;

    if (e)
        return e;
    show(m->call.executor, shown);
    if (!sees_any(all, eyes))
        return why_err(&m->why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%s\", nor any other; put some "
                       "into agents.list of the configuration",
                       shown);
    if (!near.n)
        return why_err(&m->why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%s\"; GET /api/agents lists those "
                       "there are",
                       shown);
    /* None of them is longer than SHOWN_MAX: the others are too far. */
    for (size_t i = 0; i < near.n; i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s\"%.*s\"",
                               i == 0            ? ""
                               : i + 1 == near.n ? " or "
                                                 : ", ",
                               STR_ARG(near.names[i]));
    return why_err(&m->why, ERR_AGENT_NOT_FOUND,
                   "there is no agent \"%s\"; did you mean %s?", shown, names);
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
