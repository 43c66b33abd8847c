/* For load balancers. Neither needs a token, so neither tells more than that
 * the server is there. */
#include "base/json.h"
#include "calls/internal.h"
#include "speak/speak.h"

void call_healthz(struct call *c)
{
    struct calls *calls = c->calls;
    struct json_out o = json_out(c->body);

    json_open(&o, '{');
    json_member_text(&o, "status", STR("ok"));
    json_member_text(&o, "version", STR(SIGNALBOX_VERSION));
    json_member_int(&o, "uptime_ms",
                    loop_mono_ms(calls->loop) - calls->started_mono_ms);
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
