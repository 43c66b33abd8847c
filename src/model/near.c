/* Comparing two names costs a microsecond or so: those whose length alone puts
 * them out of reach are not compared, and there is an end to it. */
#include "model/near.h"

#include <stdio.h>

static void near_add(struct near *near, struct str name, unsigned distance)
{
    size_t at = near->n;

    while (at && near->distances[at - 1] > distance)
        at--;
    if (at == NEAR_MAX)
        return;
    near->n += near->n < NEAR_MAX;
    for (size_t i = near->n - 1; i > at; i--) {
        near->names[i] = near->names[i - 1];
        near->distances[i] = near->distances[i - 1];
    }
    near->names[at] = name;
    near->distances[at] = distance;
}

struct near near_find(const struct agents *all, const struct eyes *eyes,
                      struct str written)
{
    /* Wider than str_guess: names grow numbers, and "echo" is near "echo07". */
    unsigned too_far = written.n > 64 ? 0 : 2 + (unsigned)(written.n / 4);
    struct near near = {0};
    size_t n_looks = 0;

    for (size_t i = 0; i < all->n && n_looks < NEAR_LOOKS_MAX; i++) {
        struct str name = all->list[i]->name;
        size_t apart =
            name.n > written.n ? name.n - written.n : written.n - name.n;
        unsigned distance;

        if ((near.sees_any && apart >= too_far) ||
            !agent_is_visible(all->list[i], eyes))
            continue;
        near.sees_any = true;
        if (apart >= too_far)
            continue;
        n_looks++;
        distance = str_distance(written, name);
        if (distance < too_far)
            near_add(&near, name, distance);
    }
    return near;
}

/* What was asked for, fit to be shown: short, and without what could steer a
 * terminal. */
static void show(struct str name, char out[NEAR_SHOWN_MAX + 4])
{
    struct str shown = str_head(name, NEAR_SHOWN_MAX);

    snprintf(out, NEAR_SHOWN_MAX + 4, "%.*s%s", STR_ARG(shown),
             shown.n < name.n ? "..." : "");
    str_tame(out, strlen(out));
}

enum err near_say(const struct near *near, struct str written, struct why *why)
{
    char shown[NEAR_SHOWN_MAX + 4];
    char names[NEAR_MAX * (NEAR_SHOWN_MAX + 8)] = "";
    size_t at = 0;

    show(written, shown);
    if (!near->sees_any)
        return why_err(why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%s\", nor any other; register "
                       "one, or put some into agents.list of the "
                       "configuration",
                       shown);
    if (!near->n)
        return why_err(why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%s\", nor one with a name like "
                       "it",
                       shown);
    /* None of them is longer than what can be shown: the others are too far. */
    for (size_t i = 0; i < near->n; i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s\"%.*s\"",
                               i == 0             ? ""
                               : i + 1 == near->n ? " or "
                                                  : ", ",
                               STR_ARG(near->names[i]));
    return why_err(why, ERR_AGENT_NOT_FOUND,
                   "there is no agent \"%s\"; did you mean %s?", shown, names);
}
