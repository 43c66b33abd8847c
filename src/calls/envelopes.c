/* POST /api/envelopes: an envelope in, and what was decided of it out, once
 * that is durable. What comes of it is the task's, by its id. */
#include "calls/internal.h"
#include "calls/share.h"

static void on_accepted(struct msg *m, void *ctx)
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
        out = json_out(&o->calls->body);
        json_open(&out, '{');
        share_passed(&out, m);
        json_close(&out, '}');
        buf_add_char(&o->calls->body, '\n');
        open_answer(o, 200);
    }
    msg_free(m);
}

void call_envelopes_post(struct call *c)
{
    struct calls *calls = c->calls;
    struct share_sender by = {.registry = calls->registry,
                              .access = calls->access,
                              .limits =
                                  broker_limits(walk_broker(calls->walk))};
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
    walk_message(calls->walk, m, on_accepted, o);
}
