/* Agents that register themselves on the hub: which callers may be which agent,
 * and what their cards cannot set. */
#include <stdio.h>

#include "registry/internal.h"

/* Configured agents have no creator; the user of the same name and role agent
 * may be them. */
static bool is_namesake(const struct agent *a, const struct caller *c)
{
    return a->is_configured && c && c->role == ROLE_AGENT &&
           str_eq_nocase(caller_name(c), a->name);
}

enum err registry_self(const struct registry *r, struct str name,
                       const struct registry_by *by, const struct agent **out,
                       struct why *why)
{
    struct eyes eyes = by_eyes(by);
    const struct entry *e = entry_find(r, name);
    const struct agent *a = e ? &e->agent : NULL;

    *out = NULL;
    if (!name.n)
        return why_err(
            why, ERR_BAD_REQUEST,
            "the card has no name: {\"card\":{\"name\":\"echo\",…}}");
    if (!a)
        return OK;
    if (is_namesake(a, by->caller) || agent_is_owned(a, &eyes)) {
        *out = a;
    } else if (!agent_is_visible(a, &eyes)) {
        return why_err(why, ERR_EXISTS, "the name \"%.*s\" is taken",
                       STR_ARG(name));
    } else {
        if (a->is_configured)
            return why_err(
                why, ERR_NOT_ALLOWED,
                "\"%.*s\" comes from the configuration: only an admin may "
                "be it, and the user \"%.*s\" of role agent",
                STR_ARG(a->name), STR_ARG(a->name));
        return why_err(
            why, ERR_NOT_ALLOWED,
            "\"%.*s\" belongs to another user: only its creator may be it, "
            "a user of role agent with that owner, and admins",
            STR_ARG(a->name));
    }
    if (str_eq(name, a->name))
        return OK;
    *out = NULL;
    return why_err(why, ERR_EXISTS,
                   "there is \"%.*s\" already, and names must differ in "
                   "more than their case; use that spelling to be it",
                   STR_ARG(a->name));
}

static enum err self_fit_url(struct arena *scratch, struct agent *a)
{
    struct agent_url url;
    char *text;

    if (agent_url_read(a->url, &url, NULL) == OK &&
        url.transport == TRANSPORT_HUB)
        return OK;
    text = arena_alloc(scratch, a->name.n + sizeof("ws-agent://"));
    if (!text)
        return ERR_NOMEM;
    snprintf(text, a->name.n + sizeof("ws-agent://"), "ws-agent://%.*s",
             STR_ARG(a->name));
    a->url = str_of(text);
    return OK;
}

/* -1 is absent, which is the widest. */
static int64_t self_tighter_limit(int64_t wish, int64_t limit)
{
    if (limit < 0)
        return wish;
    return wish < 0 || wish > limit ? limit : wish;
}

static bool list_has_name(struct strs list, struct str name)
{
    for (size_t i = 0; i < list.n; i++)
        if (str_eq_nocase(list.list[i], name))
            return true;
    return false;
}

enum err self_fit(struct arena *scratch, struct agent *a,
                  const struct agent *before)
{
    enum err e = self_fit_url(scratch, a);
    struct strs *wish = &a->delegation.allow;
    struct str *kept;
    size_t n = 0;

    if (e || !before)
        return e;
    a->delegation.max_concurrent = self_tighter_limit(
        a->delegation.max_concurrent, before->delegation.max_concurrent);
    a->delegation.max_depth = self_tighter_limit(a->delegation.max_depth,
                                                 before->delegation.max_depth);
    /* The list, too, can only be tightened. */
    if (!before->delegation.is_limited)
        return OK;
    if (!a->delegation.is_limited) {
        *wish = before->delegation.allow;
        a->delegation.is_limited = true;
        return OK;
    }
    kept = arena_array(scratch, wish->n ? wish->n : 1, sizeof(*kept));
    if (!kept)
        return ERR_NOMEM;
    for (size_t i = 0; i < wish->n; i++)
        if (list_has_name(before->delegation.allow, wish->list[i]))
            kept[n++] = wish->list[i];
    *wish = (struct strs){kept, n};
    return OK;
}
