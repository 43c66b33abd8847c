/* Health checks for load balancers. They need no token, so they tell no more
 * than that the server is there. */
#include "api/internal.h"
#include "base/fault.h"
#include "base/json.h"
#include "speak/speak.h"

void call_healthz(struct call *c)
{
    struct api *api = c->api;
    struct json_out o = json_out(c->body);

    json_open(&o, '{');
    json_member_text(&o, "status", STR("ok"));
    json_member_text(&o, "version", STR(SIGNALBOX_VERSION));
    json_member_int(&o, "uptime_ms",
                    loop_mono_ms(api->loop) - api->started_mono_ms);
    json_close(&o, '}');
    call_answer_json(c, 200);
}

/* Why nothing can be written; empty: it can, as far as is known. */
static struct str obstacle(const struct store_stats *s)
{
    if (s->is_dead)
        return STR("the database has failed");
    if (s->is_full)
        return STR("the disk is full");
    return s->is_locked ? STR("another program holds the database") : STR("");
}

/* By the result of the last write. A small one is tried once a minute, so even
 * an idle server becomes ready again. */
void call_readyz(struct call *c)
{
    struct store_stats stats = store_stats(c->api->store);
    struct str reason = obstacle(&stats);

    if (!c->api->is_ready) {
        call_refuse(c, ERR_STOPPING, STR(""));
        return;
    }
    if (reason.n && !PLANTED("calls.always_ready")) {
        struct json_out o = json_out(c->body);

        json_open(&o, '{');
        json_member_bool(&o, "ready", false);
        json_member_text(&o, "reason", reason);
        json_close(&o, '}');
        call_answer_json(c, 503);
        return;
    }
    buf_add_str(c->body, STR("{\"ready\":true}"));
    call_answer_json(c, 200);
}
