/* Learning: figures, export, and jobs to run, forget, void and rebuild. For
 * admins. */
#include "api/internal.h"

#include <assert.h>
#include <stdio.h>

#include "learn/learning.h"

static void learning_write_figures(struct json_out *out,
                                   const struct learning_stats *s)
{
    json_open(out, '{');
    json_member_int(out, "agents", (int64_t)s->learn.agents);
    json_member_int(out, "types", (int64_t)s->learn.types);
    json_member_int(out, "agent_types", (int64_t)s->learn.agent_types);
    json_member_int(out, "examples", (int64_t)s->learn.examples);
    json_member_int(out, "applied", s->learn.applied_total);
    json_member_int(out, "last_outcome", s->newest);
    json_member_int(out, "written_up_to", s->written);
    json_member_int(out, "not_written", s->behind);
    json_member_int(out, "runs", s->runs_total);
    json_member_int(out, "judged", s->judged_total);
    json_member_bool(out, "is_running", s->is_running);
    json_member_bool(out, "is_rebuilding", s->is_rebuilding);
    json_close(out, '}');
}

void call_learning_get(struct call *c)
{
    struct learning_stats s = learning_stats(c->api->learning);
    struct json_out out = json_out(c->body);

    learning_write_figures(&out, &s);
    call_answer_json(c, 200);
}

void call_learning_export(struct call *c)
{
    learn_export(learning_learn(c->api->learning), c->body);
    call_answer(c, 200, STR("application/x-ndjson"));
}

/* Jobs. */

/* NULL: an error was answered. */
static struct request *learning_request_new(struct call *c)
{
    return call_has_no_body(c) ? request_of_call(c, NULL) : NULL;
}

static void learning_answer_count(struct request *o, enum err e,
                                  const char *key, int64_t n)
{
    struct json_out out = request_json(o);

    if (!request_back(o))
        return;
    if (e) {
        request_fail(o, e);
        return;
    }
    json_open(&out, '{');
    json_member_int(&out, key, n);
    json_close(&out, '}');
    request_answer(o, 200);
}

static void on_learning_run(void *ctx, enum err e, int64_t n)
{
    learning_answer_count(ctx, e, "judged", n);
}

static void on_learning_rebuilt(void *ctx, enum err e, int64_t n)
{
    learning_answer_count(ctx, e, "outcomes", n);
}

static void on_learning_reset(void *ctx, enum err e)
{
    struct request *o = ctx;

    if (!request_back(o))
        return;
    if (e)
        request_fail(o, e);
    else
        request_answer_nothing(o);
}

void call_learning_run(struct call *c)
{
    struct request *o = learning_request_new(c);

    if (!o)
        return;
    request_out(o);
    learning_run(c->api->learning, on_learning_run, o);
}

void call_learning_rebuild(struct call *c)
{
    struct request *o = learning_request_new(c);

    if (!o)
        return;
    request_out(o);
    learning_rebuild(c->api->learning, on_learning_rebuilt, o);
}

/* A removed agent can be forgotten, too. */
static bool learning_knows_agent(const struct api *c, struct str agent)
{
    struct agents all = registry_agents(c->registry);

    return agent_find(&all, agent) ||
           learn_knows(learning_learn(c->learning), agent);
}

void call_learning_reset(struct call *c)
{
    struct why why = {""};
    struct str agent;
    enum err e =
        speak_learning_reset(&c->api->scratch, c->rq->body, &agent, &why);
    struct request *o;

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (agent.n && !learning_knows_agent(c->api, agent)) {
        call_refuse_agent(c, agent);
        return;
    }
    o = request_of_call(c, NULL);
    if (!o)
        return;
    request_out(o);
    learning_forget(c->api->learning, agent, caller_name(&c->caller),
                    on_learning_reset, o);
}

static void on_learning_voided(void *ctx, enum err e, int64_t n,
                               int64_t n_voided)
{
    struct request *o = ctx;
    struct json_out out = request_json(o);

    if (!request_back(o))
        return;
    if (e) {
        request_fail(o, e);
        return;
    }
    json_open(&out, '{');
    json_member_int(&out, "voided", n_voided);
    json_member_int(&out, "outcomes", n);
    json_close(&out, '}');
    request_answer(o, 200);
}

/* A removed user can be voided, too. */
void call_learning_void(struct call *c)
{
    struct why why = {""};
    struct speak_void said;
    char target[PRINCIPAL_NAME_MAX + 8];
    enum err e =
        speak_learning_void(&c->api->scratch, c->rq->body, &said, &why);
    struct request *o;
    int n;

    if (!e && !principal_name_is_valid(said.name))
        e = why_err(&why, ERR_BAD_REQUEST,
                    "\"%s\" is not the name of a user: letters, digits and "
                    ". _ @ -, and a letter or digit first",
                    said.is_owner ? "owner" : "user");
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = request_of_call(c, NULL);
    if (!o)
        return;
    n = snprintf(target, sizeof(target), "%s:%.*s",
                 said.is_owner ? "owner" : "user", STR_ARG(said.name));
    assert(n > 0 && (size_t)n < sizeof(target));
    request_out(o);
    learning_void(c->api->learning, (struct str){target, (size_t)n},
                  caller_name(&c->caller), on_learning_voided, o);
}
