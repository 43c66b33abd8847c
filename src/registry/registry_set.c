/* These agents and no others, without a store: for as long as walk.c hands them
 * over whole. */
#include "registry/internal.h"

static void take_all_out(struct registry *r)
{
    while (r->n) {
        struct entry *e = mirror_take(r, entry_of(r->list[0])->key);

        index_drop(r->index, e->number);
        number_release(r, e->number);
        entry_free(r, e);
    }
}

static enum err check(const struct registry *r, const struct agent *list,
                      size_t n, struct why *why)
{
    struct agent_url url;

    if (n > r->opts.limits.max_agents)
        return why_err(why, ERR_LIMIT, "at most %zu agents are kept, not %zu",
                       r->opts.limits.max_agents, n);
    for (size_t i = 0; i < n; i++) {
        struct str shown = str_sub(list[i].name, 0, AGENT_NAME_MAX);

        if (!agent_name_is_valid(list[i].name) ||
            agent_url_read(list[i].url, &url, NULL) != OK ||
            list[i].title.n > AGENT_TITLE_MAX)
            return why_err(why, ERR_BAD_REQUEST,
                           "\"%.*s\" is no agent: its name, url or title is "
                           "not a valid one",
                           STR_ARG(shown));
    }
    return OK;
}

/* Through another registry: so an error leaves this one as it was. */
static enum err fill(struct registry *r, const struct agent *list, size_t n,
                     struct why *why)
{
    for (size_t i = 0; i < n; i++) {
        const struct entry *same = entry_find(r, list[i].name);
        struct agent full = list[i];
        struct entry *e;
        enum err err;

        if (same)
            return why_err(why, ERR_EXISTS,
                           "there are two agents called \"%.*s\" and "
                           "\"%.*s\"; names must differ in more than their "
                           "case",
                           STR_ARG(same->agent.name), STR_ARG(list[i].name));
        full.is_configured = true;
        if (!full.visibility)
            full.visibility = VISIBILITY_PUBLIC;
        err = entry_make(r, &full, NULL, 0, &e);
        if (!err)
            err = mirror_reserve(r, 1);
        if (err) {
            entry_free(r, e);
            return err;
        }
        e->number = number_claim(r);
        (void)mirror_put(r, e);
    }
    return OK;
}

enum err registry_set(struct registry *r, const struct agent *list, size_t n,
                      struct why *why)
{
    struct registry_opts opts = {.seed = {r->opts.seed[0], r->opts.seed[1]},
                                 .limits = r->opts.limits};
    struct registry *next;
    enum err e = check(r, list, n, why);

    if (e)
        return e;
    next = registry_new(&opts);
    e = next ? fill(next, list, n, why) : ERR_NOMEM;
    if (!e)
        e = mirror_reserve(r, n);
    if (!e)
        take_all_out(r);
    while (!e && next->n) {
        struct entry *one = mirror_take(next, entry_of(next->list[0])->key);

        one->number = number_claim(r);
        (void)mirror_put(r, one);
    }
    registry_free(next);
    return e;
}
