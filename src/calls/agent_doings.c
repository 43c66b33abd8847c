/* What can be done to an agent: it is woken, started again, paused and resumed.
 * For its creator, and for admins. */
#include "calls/internal.h"

#include <stdio.h>

/* The agent, if it is theirs to do that to. NULL: it was refused. */
static const struct agent *owned(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    struct agents all = registry_agents(c->calls->registry);
    const struct agent *a = agent_find(&all, c->param);
    struct why why = {""};
    enum err e = speak_nothing(c->rq->body, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return NULL;
    }
    if (!a || !agent_is_visible(a, &eyes)) {
        calls_refuse_agent(c->calls, c->id, &c->caller, c->param);
        return NULL;
    }
    if (agent_is_owned(a, &eyes))
        return a;
    call_refuse(c, ERR_NOT_ALLOWED,
                STR("only its creator and admins can do that to an agent"));
    return NULL;
}

/* As it is now. */
static void answer(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    struct agents all = registry_agents(o->calls->registry);
    const struct agent *a = agent_find(&all, str_of(o->agent));

    if (!a) {
        open_refuse(o, ERR_AGENT_NOT_FOUND, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    json_member_text(&out, "agent", a->name);
    json_member_text(&out, "state",
                     agent_state_name(walk_state(o->calls->walk, a)));
    json_member_bool(&out, "paused",
                     deliver_is_paused(walk_deliver(o->calls->walk), a->name));
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_done(void *ctx, enum err e, const struct why *why)
{
    struct open *o = ctx;

    if (!open_back(o))
        return;
    if (e)
        open_refuse(o, e, str_of(why->text), STR(""));
    else
        answer(o);
}

static struct open *begin(struct call *c, const struct agent *a)
{
    struct open *o = open_new(c);

    if (o)
        snprintf(o->agent, sizeof(o->agent), "%.*s", STR_ARG(a->name));
    return o;
}

static void start(struct call *c, bool is_wake)
{
    const struct agent *a = owned(c);
    struct open *o = a ? begin(c, a) : NULL;
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    open_out(o);
    e = (is_wake ? deliver_wake : deliver_restart)(walk_deliver(c->calls->walk),
                                                   a, on_done, o, &why);
    if (e)
        on_done(o, e, &why);
}

void call_agents_wake(struct call *c)
{
    start(c, true);
}

void call_agents_restart(struct call *c)
{
    start(c, false);
}

static void set_paused(struct call *c, bool is_paused)
{
    const struct agent *a = owned(c);
    struct open *o = a ? begin(c, a) : NULL;

    if (!o)
        return;
    open_out(o);
    broker_pause(walk_broker(c->calls->walk), a->name, is_paused,
                 caller_name(&c->caller), on_done, o);
}

void call_agents_pause(struct call *c)
{
    set_paused(c, true);
}

void call_agents_resume(struct call *c)
{
    set_paused(c, false);
}
