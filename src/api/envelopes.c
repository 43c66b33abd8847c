/* POST /api/envelopes: accepts an envelope, and answers with the result of the
 * gate once that is durable. The outcome belongs to the task, by its id. */
#include "api/internal.h"
#include "api/share.h"

static void on_envelope_accepted(struct msg *m, void *ctx)
{
    struct open *o = ctx;
    struct json_out out;

    if (!open_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
    } else {
        out = json_out(&o->api->body);
        json_open(&out, '{');
        share_gate_result(&out, m);
        json_close(&out, '}');
        open_answer(o, 200);
    }
    msg_free(m);
}

void call_envelopes_post(struct call *c)
{
    struct api *api = c->api;
    struct share_sender by = {
        .registry = api->registry,
        .access = api->access,
        .limits = gatekeeper_limits(walk_gatekeeper(api->walk))};
    struct msg *m = msg_new(&c->caller, c->now_ms);
    enum err e = m ? share_envelope(m, c->rq->body, &by) : ERR_NOMEM;
    struct open *o = NULL;

    if (e)
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
    else
        o = open_new(c);
    if (!o) {
        msg_free(m);
        return;
    }
    open_out(o);
    walk_message(api->walk, m, on_envelope_accepted, o);
}
