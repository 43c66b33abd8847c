/* POST /api/gate: whether an envelope would pass now, and why. Uses the rules
 * and everything the server knows; nothing is recorded or reported. */
#include "api/internal.h"
#include "gate/dry_run.h"

struct try_call {
    struct str envelope;
    bool with_trace;
};

/* {"envelope": {…}, "trace": true} and no other fields. */
static enum err gate_try_read(struct str body, struct try_call *out,
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
    if (!v && where.err == ERR_NOMEM)
        e = ERR_NOMEM;
    else if (!v)
        e = why_err(why, ERR_SYNTAX, "line %u, column %u: %s", where.line,
                    where.col, where.what);
    else
        e = json_scan(body, keys, 2, values, NULL);
    if (e == ERR_SYNTAX && v)
        e = why_err(why, ERR_BAD_REQUEST, "the body must be an object");
    if (!e && v->kids.n != (size_t)(values[0].n > 0) + (values[1].n > 0))
        e = why_err(why, ERR_BAD_REQUEST,
                    "the body may only have \"envelope\" and, optionally, "
                    "\"trace\"");
    if (!e && !values[0].n)
        e = why_err(why, ERR_BAD_REQUEST, "envelope is missing");
    if (!e) {
        out->envelope = values[0];
        out->with_trace = str_eq(values[1], STR("true"));
        if (values[1].n && !out->with_trace && !str_eq(values[1], STR("false")))
            e = why_err(why, ERR_BAD_REQUEST, "trace must be true or false");
    }
    arena_fini(&a);
    return e;
}

static void gate_try_answer(struct call *c, struct msg *m,
                            const struct try_call *t)
{
    struct dry_run dry_run;
    enum err e;

    dry_run_init(&dry_run, t->with_trace);
    e = gatekeeper_look(walk_gatekeeper(c->api->walk), m,
                        dry_run_trace(&dry_run));
    if (!e && !dry_run_write(&dry_run, &m->gate.envelope, t->envelope,
                             &m->gate.gate_result, c->now_ms, c->body))
        e = ERR_NOMEM;
    if (e) {
        buf_clear(c->body);
        call_refuse(c, e, STR(""));
    } else {
        buf_add_char(c->body, '\n');
        call_answer(c, 200, SPEAK_JSON);
    }
    dry_run_fini(&dry_run);
}

void call_gate_post(struct call *c)
{
    struct msg *m = msg_new(&c->caller, c->now_ms);
    struct eyes eyes = call_eyes(c);
    struct try_call t;
    enum err e = m ? gate_try_read(c->rq->body, &t, &m->why) : ERR_NOMEM;

    if (!e)
        e = envelope_read(c->api, m, t.envelope, STR(""));
    if (e)
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
    else if (!registry_find(c->api->registry, m->call.envelope->to, &eyes))
        call_refuse_agent(c, m->call.envelope->to);
    else
        gate_try_answer(c, m, &t);
    msg_free(m);
}
