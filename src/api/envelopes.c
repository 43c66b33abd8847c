/* POST /api/envelopes: accepts an envelope, and answers with the result of the
 * gate once that is durable. The outcome belongs to the task, by its id. */
#include "api/internal.h"
#include "api/share.h"

static void on_envelope_accepted(struct msg *m, void *ctx)
{
    struct request *o = ctx;
    struct json_out out;

    if (!request_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
    } else {
        out = request_json(o);
        json_open(&out, '{');
        share_gate_result(&out, m);
        json_close(&out, '}');
        request_answer(o, 200);
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
    struct request *o = NULL;

    if (e)
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
    else
        o = request_of_call(c, NULL);
    if (!o) {
        msg_free(m);
        return;
    }
    request_out(o);
    walk_message(api->walk, m, on_envelope_accepted, o);
}
