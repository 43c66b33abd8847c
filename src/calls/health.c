/* For load balancers. Neither needs a token, so neither tells more than that
 * the server is there. */
#include "base/fault.h"
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

/* Why no change can be written; empty: it can, as far as is known. */
static struct str obstacle(const struct store_stats *s)
{
    if (s->is_dead)
        return STR("the database has failed");
    if (s->is_full)
        return STR("the disk is full");
    return s->is_locked ? STR("another program holds the database") : STR("");
}

/* By the last change that was tried: one that needs no space is, once a minute,
 * so whoever is asked nothing else finds its way back. */
void call_readyz(struct call *c)
{
    struct store_stats stats = store_stats(c->calls->store);
    struct str reason = obstacle(&stats);

    if (!c->calls->is_ready) {
        call_refuse(c, ERR_STOPPING, STR(""));
        return;
    }
    if (reason.n && !PLANTED("calls.always_ready")) {
        struct json_out o = json_out(c->body);

        json_open(&o, '{');
        json_member_bool(&o, "ready", false);
        json_member_text(&o, "reason", reason);
        json_close(&o, '}');
        buf_add_char(c->body, '\n');
        call_answer(c, 503, SPEAK_JSON);
        return;
    }
    buf_add_str(c->body, STR("{\"ready\":true}\n"));
    call_answer(c, 200, SPEAK_JSON);
}
