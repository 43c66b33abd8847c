/* Comparing two names of 64 letters costs some 20 us: 4096 pairs of letters.
 * Those whose length, or whose letters in any order, put them out of reach are
 * not compared; and there is an end to the work, some 10 ms, since everybody
 * else waits meanwhile. */
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

/* How often each letter stands in what was written. */
struct letters {
    int left[256];
};

static size_t letter(char c)
{
    return (unsigned char)str_lower(c);
}

/* At least so far apart are they: each letter of the longer one that the other
 * does not have takes a step. A swap of two takes none of these. */
static size_t least_distance(struct letters *l, struct str written,
                             struct str name)
{
    size_t n_common = 0;

    for (size_t i = 0; i < name.n; i++)
        n_common += l->left[letter(name.p[i])]-- > 0;
    for (size_t i = 0; i < name.n; i++)
        l->left[letter(name.p[i])]++;
    return (name.n > written.n ? name.n : written.n) - n_common;
}

/* From what distance on a name is none of the nearest. */
static unsigned too_far(const struct near *near, struct str written)
{
    if (near->n == NEAR_MAX)
        return near->distances[NEAR_MAX - 1];
    /* Wider than str_guess: names grow numbers, and "echo" is near "echo07". */
    return written.n > 64 ? 0 : 2 + (unsigned)(written.n / 4);
}

static void look(struct near *near, struct letters *l, struct str written,
                 struct str name)
{
    unsigned distance;

    near->work += name.n;
    if (least_distance(l, written, name) >= too_far(near, written))
        return;
    near->work += name.n * written.n;
    distance = str_distance(written, name);
    if (distance < too_far(near, written))
        near_add(near, name, distance);
}

struct near near_find(const struct agents *all, const struct eyes *eyes,
                      struct str written)
{
    struct near near = {0};
    struct letters letters = {{0}};

    for (size_t i = 0; i < written.n; i++)
        letters.left[letter(written.p[i])]++;
    for (size_t i = 0; i < all->n && near.work < NEAR_WORK_MAX; i++) {
        struct str name = all->list[i]->name;
        size_t apart =
            name.n > written.n ? name.n - written.n : written.n - name.n;
        bool is_near = apart < too_far(&near, written);

        if ((near.sees_any && !is_near) ||
            !agent_is_visible(all->list[i], eyes))
            continue;
        near.sees_any = true;
        if (is_near)
            look(&near, &letters, written, name);
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
