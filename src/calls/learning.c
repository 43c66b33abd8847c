/* What was learnt: figures, all of it, and from the beginning. For admins. */
#include "calls/internal.h"

#include <assert.h>
#include <stdio.h>

#include "lessons/lessons.h"

static void write_figures(struct json_out *out, const struct lessons_stats *s)
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
    struct lessons_stats s = lessons_stats(c->calls->lessons);
    struct json_out out = json_out(c->body);

    write_figures(&out, &s);
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

void call_learning_export(struct call *c)
{
    learn_export(lessons_learn(c->calls->lessons), c->body);
    call_answer(c, 200, STR("application/x-ndjson"));
}

/* What takes a while. */

/* NULL: refused. The body is empty, or {}. */
static struct open *begin(struct call *c)
{
    struct why why = {""};
    enum err e = speak_nothing(c->rq->body, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return NULL;
    }
    return open_new(c);
}

static void answer_count(struct open *o, enum err e, const char *key, int64_t n)
{
    struct json_out out = json_out(&o->calls->body);

    if (!open_back(o))
        return;
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    json_member_int(&out, key, n);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_run(void *ctx, enum err e, int64_t n)
{
    answer_count(ctx, e, "judged", n);
}

static void on_rebuilt(void *ctx, enum err e, int64_t n)
{
    answer_count(ctx, e, "outcomes", n);
}

static void on_reset(void *ctx, enum err e)
{
    struct open *o = ctx;

    if (!open_back(o))
        return;
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        change_answer_nothing(o);
}

void call_learning_run(struct call *c)
{
    struct open *o = begin(c);

    if (!o)
        return;
    open_out(o);
    lessons_run(c->calls->lessons, on_run, o);
}

void call_learning_rebuild(struct call *c)
{
    struct open *o = begin(c);

    if (!o)
        return;
    open_out(o);
    lessons_rebuild(c->calls->lessons, on_rebuilt, o);
}

/* An agent need not be there any more to be forgotten. */
static bool is_known(const struct calls *c, struct str agent)
{
    struct agents all = registry_agents(c->registry);

    return agent_find(&all, agent) ||
           learn_knows(lessons_learn(c->lessons), agent);
}

void call_learning_reset(struct call *c)
{
    struct why why = {""};
    struct str agent;
    enum err e =
        speak_learning_reset(&c->calls->scratch, c->rq->body, &agent, &why);
    struct open *o;

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (agent.n && !is_known(c->calls, agent)) {
        calls_refuse_agent(c->calls, c->id, &c->caller, agent);
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    open_out(o);
    lessons_forget(c->calls->lessons, agent, caller_name(&c->caller), on_reset,
                   o);
}

static void answer_voided(void *ctx, enum err e, int64_t n, int64_t n_voided)
{
    struct open *o = ctx;
    struct json_out out = json_out(&o->calls->body);

    if (!open_back(o))
        return;
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    json_member_int(&out, "voided", n_voided);
    json_member_int(&out, "outcomes", n);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* A user need not be there any more to be voided. */
void call_learning_void(struct call *c)
{
    struct why why = {""};
    struct speak_void said;
    char target[PRINCIPAL_NAME_MAX + 8];
    enum err e =
        speak_learning_void(&c->calls->scratch, c->rq->body, &said, &why);
    struct open *o;
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
    o = open_new(c);
    if (!o)
        return;
    n = snprintf(target, sizeof(target), "%s:%.*s",
                 said.is_owner ? "owner" : "user", STR_ARG(said.name));
    assert(n > 0 && (size_t)n < sizeof(target));
    open_out(o);
    lessons_void(c->calls->lessons, (struct str){target, (size_t)n},
                 caller_name(&c->caller), answer_voided, o);
}
