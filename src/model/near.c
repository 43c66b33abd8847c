/* Comparing two names of 64 letters takes about 20 us: 4096 pairs of letters.
 * Names whose length, or whose set of letters, puts them out of reach are not
 * compared, and the work ends after about 10 ms, since the whole server waits
 * meanwhile. */
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

static size_t near_letter(char c)
{
    return (unsigned char)str_lower(c);
}

/* A lower bound: each letter of the longer name that the other lacks costs one
 * edit. A swap of two changes no letters. */
static size_t near_least_distance(struct near_hunt *h, struct str name)
{
    size_t n_common = 0;

    for (size_t i = 0; i < name.n; i++)
        n_common += h->left[near_letter(name.p[i])]-- > 0;
    for (size_t i = 0; i < name.n; i++)
        h->left[near_letter(name.p[i])]++;
    return (name.n > h->written.n ? name.n : h->written.n) - n_common;
}

/* The distance from which a name is not among the nearest. */
static unsigned near_too_far(const struct near *near, struct str written)
{
    if (near->n == NEAR_MAX)
        return near->distances[NEAR_MAX - 1];
    /* Wider than str_guess: names grow numbers, and "echo" should suggest
     * "echo07". */
    return written.n > 64 ? 0 : 2 + (unsigned)(written.n / 4);
}

static bool is_long_enough(const struct near_hunt *h, struct str name)
{
    size_t n = h->written.n;

    return (name.n > n ? name.n - n : n - name.n) <
           near_too_far(&h->near, h->written);
}

void near_begin(struct near_hunt *h, struct str written)
{
    *h = (struct near_hunt){.written = written};
    for (size_t i = 0; i < written.n; i++)
        h->left[near_letter(written.p[i])]++;
}

void near_offer(struct near_hunt *h, struct str name)
{
    struct near *near = &h->near;
    unsigned distance;

    near->sees_any = true;
    if (near->work >= NEAR_WORK_MAX || !is_long_enough(h, name))
        return;
    for (size_t i = 0; i < near->n; i++)
        if (str_eq(near->names[i], name))
            return;
    near->work += name.n;
    if (near_least_distance(h, name) >= near_too_far(near, h->written))
        return;
    near->work += name.n * h->written.n;
    distance = str_distance(h->written, name);
    if (distance < near_too_far(near, h->written))
        near_add(near, name, distance);
}

struct near near_find(const struct agents *all, const struct eyes *eyes,
                      struct str written)
{
    struct near_hunt h;

    near_begin(&h, written);
    for (size_t i = 0; i < all->n && h.near.work < NEAR_WORK_MAX; i++) {
        struct str name = all->list[i]->name;

        if ((h.near.sees_any && !is_long_enough(&h, name)) ||
            !agent_is_visible(all->list[i], eyes))
            continue;
        near_offer(&h, name);
    }
    return h.near;
}

/* The requested name for display: truncated, and without terminal controls. */
static void near_show_name(struct str name, char out[NEAR_SHOWN_MAX + 4])
{
    struct str shown = str_head(name, NEAR_SHOWN_MAX);

    snprintf(out, NEAR_SHOWN_MAX + 4, "%.*s%s", STR_ARG(shown),
             shown.n < name.n ? "..." : "");
    str_tame(out, strlen(out));
}

static enum err near_say_what(const struct near *near, const char *what,
                              enum err e, struct str written, struct why *why)
{
    char shown[NEAR_SHOWN_MAX + 4];
    char names[NEAR_MAX * (NEAR_SHOWN_MAX + 8)] = "";
    size_t at = 0;

    near_show_name(written, shown);
    if (!near->n)
        return why_err(why, e,
                       "there is no %s \"%s\", nor one with a name like it",
                       what, shown);
    /* Each fits: longer names are too far away. */
    for (size_t i = 0; i < near->n; i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s\"%.*s\"",
                               i == 0             ? ""
                               : i + 1 == near->n ? " or "
                                                  : ", ",
                               STR_ARG(near->names[i]));
    return why_err(why, e, "there is no %s \"%s\"; did you mean %s?", what,
                   shown, names);
}

enum err near_say(const struct near *near, struct str written, struct why *why)
{
    char shown[NEAR_SHOWN_MAX + 4];

    if (near->sees_any)
        return near_say_what(near, "agent", ERR_AGENT_NOT_FOUND, written, why);
    near_show_name(written, shown);
    return why_err(why, ERR_AGENT_NOT_FOUND,
                   "there is no agent \"%s\", nor any other; register one, or "
                   "put some into agents.list of the configuration",
                   shown);
}

enum err near_say_other(const struct near *near, const char *what,
                        struct str written, struct why *why)
{
    return near_say_what(near, what, ERR_NOT_FOUND, written, why);
}
