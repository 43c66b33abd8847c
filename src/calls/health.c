/* For load balancers, for Prometheus, and for whoever opens the address in a
 * browser to see whether anything is there. None of these needs a token, so
 * none of them tells more than that. */
#include "base/json.h"
#include "calls/internal.h"
#include "speak/speak.h"

void call_front(struct call *c)
{
    buf_addf(c->body,
             "Signalbox " SIGNALBOX_VERSION " is running.\n\n"
             "  /healthz   is it there\n"
             "  /readyz    does it take work\n"
             "  /metrics   figures for Prometheus\n\n"
             "With a token (Authorization: Bearer sbx_...), in JSON:\n\n"
             "  POST   /api/messages           give an agent something to do\n"
             "  GET    /api/tasks              what there is to do; ?status= "
             "?agent= ?conversation_id=\n"
             "  GET    /api/tasks/ID           how far it is, what came of it\n"
             "  GET    /api/tasks/ID/events    the same as it happens\n"
             "  POST   /api/tasks/ID/cancel    no more of it\n"
             "  GET    /api/conversations/ID   who has it\n"
             "  GET    /api/agents             who there is\n"
             "  GET    /api/feed               what happened; ?after=\n"
             "  GET    /api/me                 who you are\n"
             "  GET, POST /api/tokens   DELETE /api/tokens/ID\n"
             "  GET, POST /api/users    PATCH, DELETE /api/users/NAME\n");
    call_answer(c, 200, STR("text/plain; charset=utf-8"));
}

void call_healthz(struct call *c)
{
    struct calls *calls = c->calls;
    struct json_out o = json_out(c->body);

    json_open(&o, '{');
    json_key(&o, STR("status"));
    json_put_str(&o, STR("ok"));
    json_key(&o, STR("version"));
    json_put_str(&o, STR(SIGNALBOX_VERSION));
    json_key(&o, STR("uptime_ms"));
    json_put_int(&o, loop_mono_ms(calls->loop) - calls->started_mono_ms);
    json_close(&o, '}');
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

void call_readyz(struct call *c)
{
    if (!c->calls->is_ready) {
        call_refuse(c, ERR_STOPPING, STR(""));
        return;
    }
    buf_add_str(c->body, STR("{\"ready\":true}\n"));
    call_answer(c, 200, SPEAK_JSON);
}
