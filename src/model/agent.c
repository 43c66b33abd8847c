/* Names, roads, and who sees whom. What an agent says of itself is read and
 * written by card*.c.
 *
 * Users are the same whatever their case, as where they are kept (access/);
 * orgs are compared as they are written: they are nobody's but the admins' to
 * hand out, and two that look alike share nothing by accident. */
#include "model/agent.h"

#include <stdio.h>

#include "base/url.h"

static bool is_alnum(char c)
{
    c = str_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* A letter or digit, then those and what is in `more`. */
static bool is_word(struct str s, const char *more, size_t max)
{
    if (s.n == 0 || s.n > max || !is_alnum(s.p[0]))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!is_alnum(s.p[i]) && (!s.p[i] || !strchr(more, s.p[i])))
            return false;
    return true;
}

bool agent_name_is_valid(struct str name)
{
    return is_word(name, "._-", AGENT_NAME_MAX);
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

/* Names of numbers. */

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

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct str name_of(const struct str *names, size_t n, unsigned number)
{
    return number < n && number ? names[number] : STR("");
}

static unsigned number_of(const struct str *names, size_t n, struct str name)
{
    for (unsigned i = 1; i < n; i++)
        if (str_eq(names[i], name))
            return i;
    return 0;
}

struct str visibility_name(enum visibility v)
{
    return name_of(visibilities, COUNT(visibilities), v);
}

enum visibility visibility_of(struct str name)
{
    return number_of(visibilities, COUNT(visibilities), name);
}

struct str agent_kind_name(enum agent_kind k)
{
    return name_of(kinds, COUNT(kinds), k);
}

enum agent_kind agent_kind_of(struct str name)
{
    return number_of(kinds, COUNT(kinds), name);
}

struct str agent_state_name(enum agent_state s)
{
    return name_of(states, COUNT(states), s);
}

enum agent_state agent_state_of(struct str name)
{
    for (unsigned i = 1; i < COUNT(states); i++)
        if (str_eq_nocase(states[i], name))
            return i;
    return 0;
}

/* Roads. */

/* "echo:" or "echo:250". */
static enum err read_echo(struct str rest, struct agent_url *out,
                          struct why *why)
{
    int64_t delay_ms = 0;

    _Static_assert(ECHO_DELAY_MAX_MS == 3600000, "the words below say so");
    /* A minus is in no delay, not even before a zero. */
    if ((rest.n && (rest.p[0] == '-' || str_to_i64(rest, &delay_ms) != OK)) ||
        delay_ms > ECHO_DELAY_MAX_MS)
        return why_err(why, ERR_SYNTAX,
                       "must have a number of milliseconds up to 3600000 "
                       "behind \"echo:\", or nothing");
    out->delay_ms = delay_ms;
    return OK;
}

static enum err read_id(struct str rest, struct agent_url *out, struct why *why)
{
    if (!agent_name_is_valid(rest))
        return why_err(why, ERR_SYNTAX,
                       "must end in a name of 1 to %d letters, digits, \".\", "
                       "\"_\" and \"-\" that begins with a letter or digit",
                       AGENT_NAME_MAX);
    out->id = rest;
    return OK;
}

/* Models are called "llama3:8b" or "vendor/model" by who serves them. */
static enum err read_model(struct str rest, struct agent_url *out,
                           struct why *why)
{
    if (!is_word(rest, "._-:/@+", AGENT_NAME_MAX))
        return why_err(why, ERR_SYNTAX,
                       "must have a model's name behind \"model:\": 1 to %d "
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
        return why_err(why, ERR_SYNTAX, "is no web address: %s", what.text);
    if (str_find(text, '#', 0) < text.n)
        return why_err(why, ERR_SYNTAX,
                       "may have no fragment: what stands behind \"#\" is "
                       "never sent");
    return OK;
}

static const struct {
    struct str head;
    enum road road;
    enum err (*read)(struct str rest, struct agent_url *out, struct why *why);
} roads[] = {
    {STR("echo:"), ROAD_ECHO, read_echo},
    {STR("ws-agent://"), ROAD_HUB, read_id},
    {STR("process:"), ROAD_PROCESS, read_id},
    {STR("model:"), ROAD_MODEL, read_model},
};

static enum err read_url(struct str url, struct agent_url *out, struct why *why)
{
    if (url.n > AGENT_URL_MAX)
        return why_err(why, ERR_SYNTAX, "may have %d bytes, not %zu",
                       AGENT_URL_MAX, url.n);
    for (size_t i = 0; i < COUNT(roads); i++) {
        if (!str_starts(url, roads[i].head))
            continue;
        out->road = roads[i].road;
        return roads[i].read(str_sub(url, roads[i].head.n, url.n), out, why);
    }
    out->road = ROAD_HTTP;
    if (url_is_http(url))
        return agent_web_read(url, why);
    return why_err(why, ERR_SYNTAX, "must be %.*s",
                   STR_ARG(agent_url_allowed()));
}

enum err agent_url_read(struct str url, struct agent_url *out, struct why *why)
{
    struct agent_url got = {.id = STR("")};
    enum err e = read_url(url, &got, why);

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

/* Who sees whom. */

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

/* Nobody is nobody, twice over. */
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
