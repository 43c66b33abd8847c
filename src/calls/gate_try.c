/* POST /api/gate: whether an envelope might go now, and why. Asked with the
 * rules and all that the server knows; nothing is recorded, nobody is told. */
#include "calls/internal.h"
#include "calls/share.h"
#include "trial.h"

struct try_call {
    struct str envelope;
    bool with_trace;
};

static enum err read_trace(struct str raw, bool *out, struct why *why)
{
    *out = str_eq(raw, STR("true"));
    if (*out || !raw.n || str_eq(raw, STR("false")))
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "trace must be true or false");
}

/* {"envelope": {…}, "trace": true}, and nothing else. */
static enum err read_call(struct str body, struct try_call *out,
                          struct why *why)
{
    static const struct str keys[] = {STR("envelope"), STR("trace")};
    struct json_error where = {0};
    struct str values[2];
    struct arena a;
    const struct json *v;
    enum err e;

    arena_init(&a, 16 * 1024 * 1024);
    v = json_parse(&a, body, 0, &where);
    if (!v)
        e = why_err(why, ERR_SYNTAX, "line %u, column %u: %s", where.line,
                    where.col, where.what);
    else
        e = json_scan(body, keys, 2, values, NULL);
    if (e == ERR_SYNTAX && v)
        e = why_err(why, ERR_BAD_REQUEST, "the body must be an object");
    if (!e && v->kids.n != (size_t)(values[0].n > 0) + (values[1].n > 0))
        e = why_err(why, ERR_BAD_REQUEST,
                    "the body has \"envelope\" and, if you like, \"trace\", "
                    "and nothing else");
    if (!e && !values[0].n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "envelope is missing: the message that it is about");
    if (!e) {
        out->envelope = values[0];
        e = read_trace(values[1], &out->with_trace, why);
    }
    arena_fini(&a);
    return e;
}

static void answer(struct call *c, struct msg *m, const struct try_call *t)
{
    struct trial trial;
    enum err e;

    trial_init(&trial, t->with_trace);
    e = broker_look(walk_broker(c->calls->walk), m, trial_trace(&trial));
    if (!e && !trial_write(&trial, &m->gate.envelope, t->envelope,
                           &m->gate.pass, c->now_ms, c->body))
        e = ERR_NOMEM;
    if (e) {
        buf_clear(c->body);
        call_refuse(c, e, STR(""));
    } else {
        buf_add_char(c->body, '\n');
        call_answer(c, 200, STR(""));
    }
    trial_fini(&trial);
}

void call_gate_post(struct call *c)
{
    struct share_sender by = {.registry = c->calls->registry,
                              .access = c->calls->access,
                              .limits =
                                  broker_limits(walk_broker(c->calls->walk))};
    struct msg *m = msg_new(&c->caller, c->now_ms);
    struct eyes eyes = call_eyes(c);
    struct try_call t;
    enum err e = m ? read_call(c->rq->body, &t, &m->why) : ERR_NOMEM;

    if (!e)
        e = share_envelope(m, t.envelope, &by);
    if (e)
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
    else if (!registry_find(c->calls->registry, m->call.envelope->to, &eyes))
        calls_refuse_agent(c->calls, c->id, &c->caller, m->call.envelope->to);
    else
        answer(c, m, &t);
    msg_free(m);
}
