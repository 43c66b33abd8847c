/* Waking, restarting, pausing and resuming an agent: for its creator and
 * admins. */
#include "api/internal.h"

#include <stdio.h>

/* The agent, if the caller may do that. NULL: an error was answered. */
static const struct agent *agent_owned_by_caller(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    struct agents all = registry_agents(c->api->registry);
    const struct agent *a = agent_find(&all, c->param);

    if (!call_has_no_body(c))
        return NULL;
    if (!a || !agent_is_visible(a, &eyes)) {
        call_refuse_agent(c, c->param);
        return NULL;
    }
    if (agent_is_owned(a, &eyes))
        return a;
    call_refuse(c, ERR_NOT_ALLOWED,
                STR("only the creator of an agent and admins may do that"));
    return NULL;
}

/* Answer the state of the agent. */
static void answer_agent_state(struct request *o)
{
    struct json_out out = request_json(o);
    struct agents all = registry_agents(o->api->registry);
    const struct agent *a = agent_find(&all, str_of(o->own));

    if (!a) {
        request_fail(o, ERR_AGENT_NOT_FOUND);
        return;
    }
    json_open(&out, '{');
    json_member_text(&out, "agent", a->name);
    json_member_text(&out, "state",
                     agent_state_name(walk_state(o->api->walk, a)));
    json_member_bool(&out, "paused",
                     deliver_is_paused(walk_deliver(o->api->walk), a->name));
    json_close(&out, '}');
    request_answer(o, 200);
}

static void on_agent_action_done(void *ctx, enum err e, const struct why *why)
{
    struct request *o = ctx;

    if (!request_back(o))
        return;
    if (e)
        request_refuse(o, e, str_of(why->text), STR(""));
    else
        answer_agent_state(o);
}

static struct request *agent_request_new(struct call *c, const struct agent *a)
{
    static const struct request_state name = {.bytes = AGENT_NAME_MAX + 1};
    struct request *o = request_of_call(c, &name);

    if (o)
        snprintf(o->own, name.bytes, "%.*s", STR_ARG(a->name));
    return o;
}

static void agent_start(struct call *c, bool is_wake)
{
    const struct agent *a = agent_owned_by_caller(c);
    struct request *o = a ? agent_request_new(c, a) : NULL;
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    request_out(o);
    e = (is_wake ? deliver_wake : deliver_restart)(
        walk_deliver(c->api->walk), a, on_agent_action_done, o, &why);
    if (e)
        on_agent_action_done(o, e, &why);
}

void call_agents_wake(struct call *c)
{
    agent_start(c, true);
}

void call_agents_restart(struct call *c)
{
    agent_start(c, false);
}

static void agent_set_paused(struct call *c, bool is_paused)
{
    const struct agent *a = agent_owned_by_caller(c);
    struct request *o = a ? agent_request_new(c, a) : NULL;

    if (!o)
        return;
    request_out(o);
    gatekeeper_pause(walk_gatekeeper(c->api->walk), a->name, is_paused,
                     caller_name(&c->caller), on_agent_action_done, o);
}

void call_agents_pause(struct call *c)
{
    agent_set_paused(c, true);
}

void call_agents_resume(struct call *c)
{
    agent_set_paused(c, false);
}
