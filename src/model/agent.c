/* Names, transports and visibility. card*.c reads and writes cards.
 *
 * User names are compared without case, as in access/. Orgs are compared
 * exactly: only admins assign them, and two that look alike must not share
 * anything by accident. */
#include "model/agent.h"

#include <stdio.h>

#include "base/url.h"

bool agent_name_is_valid(struct str name)
{
    return str_is_name(name, "._-", AGENT_NAME_MAX);
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

/* Names of enums. */

static const struct str visibilities[] = {
    [VISIBILITY_PRIVATE] = STR("private"),
    [VISIBILITY_SHARED] = STR("shared"),
    [VISIBILITY_PUBLIC] = STR("public"),
};

static const struct str kinds[] = {
    [AGENT_PLATFORM] = STR("platform"),
    [AGENT_MANAGED] = STR("managed"),
    [AGENT_SELF_HOSTED] = STR("self-hosted"),
};

static const struct str states[] = {
    [AGENT_ACTIVE] = STR("ACTIVE"), [AGENT_IDLE] = STR("IDLE"),
    [AGENT_BUSY] = STR("BUSY"),     [AGENT_SLOW] = STR("SLOW"),
    [AGENT_ERROR] = STR("ERROR"),   [AGENT_DEAD] = STR("DEAD"),
};

static const struct str reviews[] = {
    [REVIEW_WAITING] = STR("waiting"),
    [REVIEW_REJECTED] = STR("rejected"),
    [REVIEW_HIDDEN] = STR("hidden"),
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct str enum_name(const struct str *names, size_t n, unsigned number)
{
    return number < n && number ? names[number] : STR("");
}

struct str visibility_name(enum visibility v)
{
    return enum_name(visibilities, COUNT(visibilities), v);
}

enum visibility visibility_of(struct str name)
{
    return str_index(visibilities, COUNT(visibilities), name);
}

struct str agent_kind_name(enum agent_kind k)
{
    return enum_name(kinds, COUNT(kinds), k);
}

enum agent_kind agent_kind_of(struct str name)
{
    return str_index(kinds, COUNT(kinds), name);
}

struct str agent_state_name(enum agent_state s)
{
    return enum_name(states, COUNT(states), s);
}

enum agent_state agent_state_of(struct str name)
{
    for (unsigned i = 1; i < COUNT(states); i++)
        if (str_eq_nocase(states[i], name))
            return i;
    return 0;
}

struct str review_name(enum review_state s)
{
    return enum_name(reviews, COUNT(reviews), s);
}

enum review_state review_of(struct str name)
{
    return str_index(reviews, COUNT(reviews), name);
}

/* Transports. */

/* "echo:" or "echo:250". */
static enum err agent_url_read_echo(struct str rest, struct agent_url *out,
                                    struct why *why)
{
    int64_t delay_ms = 0;

    _Static_assert(ECHO_DELAY_MAX_MS == 3600000, "the words below say so");
    /* A minus is not allowed, not even before a zero. */
    if ((rest.n && (rest.p[0] == '-' || str_to_i64(rest, &delay_ms) != OK)) ||
        delay_ms > ECHO_DELAY_MAX_MS)
        return why_err(why, ERR_SYNTAX,
                       "must have a number of milliseconds up to 3600000 "
                       "after \"echo:\", or nothing");
    out->delay_ms = delay_ms;
    return OK;
}

static enum err agent_url_read_id(struct str rest, struct agent_url *out,
                                  struct why *why)
{
    if (!agent_name_is_valid(rest))
        return why_err(why, ERR_SYNTAX,
                       "must end in a name of 1 to %d letters, digits, \".\", "
                       "\"_\" and \"-\" that begins with a letter or digit",
                       AGENT_NAME_MAX);
    out->id = rest;
    return OK;
}

/* Providers name models "llama3:8b" or "vendor/model". */
static enum err agent_url_read_model(struct str rest, struct agent_url *out,
                                     struct why *why)
{
    if (!str_is_name(rest, "._-:/@+", AGENT_NAME_MAX))
        return why_err(why, ERR_SYNTAX,
                       "must have a model's name after \"model:\": 1 to %d "
                       "letters, digits, \".\", \"_\", \"-\", \":\", \"/\", "
                       "\"@\" and \"+\" that begin with a letter or digit",
                       AGENT_NAME_MAX);
    out->id = rest;
    return OK;
}

enum err agent_web_read(struct str text, struct why *why)
{
    struct url url;
    struct why what = {""};

    if (text.n > AGENT_URL_MAX)
        return why_err(why, ERR_SYNTAX, "may have %d bytes, not %zu",
                       AGENT_URL_MAX, text.n);
    if (!url_is_http(text))
        return why_err(why, ERR_SYNTAX,
                       "must begin with \"https://\" or \"http://\"");
    if (url_read(text, &url, &what))
        return why_err(why, ERR_SYNTAX, "is not a web address: %s", what.text);
    if (str_find(text, '#', 0) < text.n)
        return why_err(
            why, ERR_SYNTAX,
            "may not have a fragment: the part after \"#\" is never sent");
    return OK;
}

static const struct {
    struct str head;
    enum transport transport;
    enum err (*read)(struct str rest, struct agent_url *out, struct why *why);
} transports[] = {
    {STR("echo:"), TRANSPORT_ECHO, agent_url_read_echo},
    {STR("ws-agent://"), TRANSPORT_HUB, agent_url_read_id},
    {STR("process:"), TRANSPORT_PROCESS, agent_url_read_id},
    {STR("model:"), TRANSPORT_MODEL, agent_url_read_model},
};

static enum err agent_url_parse(struct str url, struct agent_url *out,
                                struct why *why)
{
    if (url.n > AGENT_URL_MAX)
        return why_err(why, ERR_SYNTAX, "may have %d bytes, not %zu",
                       AGENT_URL_MAX, url.n);
    for (size_t i = 0; i < COUNT(transports); i++) {
        if (!str_starts(url, transports[i].head))
            continue;
        out->transport = transports[i].transport;
        return transports[i].read(str_sub(url, transports[i].head.n, url.n),
                                  out, why);
    }
    out->transport = TRANSPORT_HTTP;
    if (url_is_http(url))
        return agent_web_read(url, why);
    return why_err(why, ERR_SYNTAX, "must be %.*s",
                   STR_ARG(agent_url_allowed()));
}

enum err agent_url_read(struct str url, struct agent_url *out, struct why *why)
{
    struct agent_url got = {.id = STR("")};
    enum err e = agent_url_parse(url, &got, why);

    if (!e)
        *out = got;
    return e;
}

struct str agent_url_allowed(void)
{
    return STR("\"https://…\", \"http://…\", \"ws-agent://ID\", "
               "\"process:NAME\", \"model:NAME\", \"echo:\" or "
               "\"echo:MILLISECONDS\"");
}

/* Visibility. */

struct eyes eyes_of(const struct caller *c, int64_t now_ms)
{
    bool is_agent = c->role == ROLE_AGENT;

    return (struct eyes){
        .user = is_agent && c->owner[0] ? str_of(c->owner) : caller_name(c),
        .org = str_of(c->org),
        .self = is_agent ? caller_name(c) : STR(""),
        .sees_all = caller_is_admin(c),
        .now_ms = now_ms,
    };
}

struct str eyes_scope(const struct eyes *e, char out[EYES_SCOPE_BYTES])
{
    struct str name = str_head(e->org.n ? e->org : e->user, PRINCIPAL_NAME_MAX);
    int n = snprintf(out, EYES_SCOPE_BYTES, "%s:%.*s",
                     e->org.n ? "org" : "user", STR_ARG(name));

    return (struct str){out, (size_t)n};
}

/* An empty name matches nothing, not even another empty name. */
static bool is_same_user(struct str a, struct str b)
{
    return a.n && str_eq_nocase(a, b);
}

static bool is_same_org(struct str a, struct str b)
{
    return a.n && str_eq(a, b);
}

static bool has_grant(const struct agent *a, const struct eyes *e)
{
    for (size_t i = 0; i < a->n_grants; i++) {
        const struct agent_grant *g = &a->grants[i];

        if (g->expires_ms && g->expires_ms <= e->now_ms)
            continue;
        if (is_same_user(g->user, e->user) || is_same_org(g->org, e->org))
            return true;
    }
    return false;
}

bool agent_is_owned(const struct agent *a, const struct eyes *e)
{
    return e->sees_all || is_same_user(a->creator, e->user);
}

bool agent_is_outsider(const struct agent *a, const struct eyes *e)
{
    return a->kind != AGENT_PLATFORM && a->creator.n &&
           !is_same_user(a->creator, e->user) && !is_same_org(a->org, e->org);
}

bool agent_is_meant(const struct agent *a, int64_t at_ms, struct str user)
{
    return a->created_ms <= at_ms || a->is_configured ||
           is_same_user(a->creator, user);
}

bool agent_is_visible(const struct agent *a, const struct eyes *e)
{
    if (agent_is_owned(a, e) || a->visibility == VISIBILITY_PUBLIC)
        return true;
    return a->visibility == VISIBILITY_SHARED &&
           (is_same_org(a->org, e->org) || has_grant(a, e));
}

struct agent agent_wanted(const struct agent *a)
{
    struct agent wanted = *a->review->wanted;

    wanted.creator = a->creator;
    wanted.org = a->org;
    wanted.kind = a->kind;
    wanted.is_configured = a->is_configured;
    wanted.revision = a->revision;
    wanted.created_ms = a->created_ms;
    wanted.updated_ms = a->updated_ms;
    return wanted;
}

/* Skills. */

int64_t agent_price(const struct agent *a, const struct skill *s)
{
    return s && s->price.is_given ? s->price.micros : a->price.micros;
}

const struct skill *agent_skill(const struct agent *a, struct str id)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (str_eq(a->skills[i].id, id))
            return &a->skills[i];
    return NULL;
}

bool skill_has_tag(const struct skill *s, struct str tag)
{
    for (size_t i = 0; i < s->tags.n; i++)
        if (str_eq_nocase(s->tags.list[i], tag))
            return true;
    return false;
}

bool agent_has_tag(const struct agent *a, struct str tag)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (skill_has_tag(&a->skills[i], tag))
            return true;
    return false;
}
