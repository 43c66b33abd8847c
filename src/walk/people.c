/* Callbacks of the gatekeeper about people and dead agents: ending a task,
 * restarting or pausing an agent, and which user may see which agent. */
#include "base/json.h"
#include "walk/internal.h"

enum { CHAIN_BYTES = 64 * 1024 };

/* The JSON string without its quotes: user names need no escaping. */
static struct str plain_string(struct str json)
{
    return json.n > 2 && json.p[0] == '"' ? str_sub(json, 1, json.n - 1)
                                          : (struct str){NULL, 0};
}

enum err walk_for_user(struct walk *w, struct msg *m, struct str *out)
{
    const struct str key = STR("user_id");
    struct str found = {NULL, 0}, name;
    struct access_user user;

    *out = (struct str){NULL, 0};
    if (!m->call.metadata.n ||
        json_scan(m->call.metadata, &key, 1, &found, NULL) != OK || !found.n)
        return OK;
    name = plain_string(found);
    if (!name.n || !w->opts.access ||
        !access_user_find(w->opts.access, name, &user))
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "metadata.user_id in an admin's message names the user "
                       "it is for, and there is no user %.*s",
                       STR_ARG(str_head(found, 64)));
    return arena_keep(&m->arena, str_of(user.name), out) ? OK : ERR_NOMEM;
}

/* done may be called before this returns, if nothing is started. */
void walk_restart_agent(void *ctx, struct str name,
                        void (*done)(void *ctx, enum err e,
                                     const struct why *why),
                        void *done_ctx)
{
    struct walk *w = ctx;
    const struct agent *a = walk_agent_of(w, name);
    struct why why;
    enum err e =
        a ? deliver_restart(w->deliver, a, done, done_ctx, &why)
          : why_err(&why, ERR_NOT_FOUND, "there is no agent of that name");

    if (e)
        done(done_ctx, e, &why);
}

enum err walk_end_for(void *ctx, struct str task_id,
                      const struct task_result *result,
                      void (*done)(void *ctx, struct str task_id, enum err e),
                      void *done_ctx)
{
    return walk_end(ctx, task_id, result, done, done_ctx);
}

bool walk_sees_agent(void *ctx, struct str requester, struct str agent)
{
    struct walk *w = ctx;
    const struct agent *a = walk_agent_of(w, agent);
    struct eyes eyes = {.user = requester,
                        .now_ms = loop_wall_ms(w->opts.loop)};
    struct access_user user;

    if (!a || !w->opts.access)
        return a != NULL;
    if (access_user_find(w->opts.access, requester, &user)) {
        eyes.org = str_of(user.org);
        eyes.sees_all = user.role == ROLE_ADMIN;
        if (user.role == ROLE_AGENT && user.owner[0])
            eyes.user = str_of(user.owner);
    }
    return agent_is_visible(a, &eyes);
}

/* A card's backup must be of the same creator, of the same org, or configured.
 * Otherwise an agent registered under a name that a card mentions would get the
 * messages of that card's agent. */
bool walk_may_back(void *ctx, struct str agent, struct str backup)
{
    struct walk *w = ctx;
    const struct agent *a = walk_agent_of(w, agent);
    const struct agent *b = walk_agent_of(w, backup);
    struct eyes eyes;

    if (!b || !registry_is_meant(w->opts.registry, b))
        return false;
    if (!a ||
        str_eq_nocase(
            gate_revival_of(gatekeeper_rules(w->gatekeeper), agent).backup,
            backup))
        return true; /* named in the rules */
    eyes = (struct eyes){.user = a->creator, .org = a->org};
    return a->is_configured || !agent_is_outsider(b, &eyes);
}

/* If the chain cannot be parsed, assume that it is above. */
bool walk_is_above(void *ctx, struct str task_id, struct str agent)
{
    const struct walk *w = ctx;
    const struct task *t = task_find(w->tasks, task_id);
    struct json *chain;
    struct arena a;
    bool is_above;

    if (!t || !t->chain.n)
        return false;
    arena_init(&a, CHAIN_BYTES);
    chain = json_parse(&a, t->chain, 0, NULL);
    is_above = !chain;
    if (chain) {
        JSON_EACH(kid, chain)
        is_above = is_above || str_eq_nocase(kid->s, agent);
    }
    arena_fini(&a);
    return is_above;
}

enum err walk_pause_agent(void *ctx, struct str agent, bool is_paused,
                          struct str by, int64_t at_ms)
{
    struct walk *w = ctx;

    if (is_paused)
        return deliver_pause(w->deliver, agent, by, at_ms);
    deliver_resume(w->deliver, agent);
    return OK;
}
