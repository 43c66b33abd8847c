/* For load balancers, for Prometheus, and for whoever opens the address in a
 * browser to see whether anything is there. None of these needs a token, so
 * none of them tells more than that. */
#include "base/json.h"
#include "calls/internal.h"
#include "speak/speak.h"

/* ":id" is shown as ID. */
static void add_call(struct buf *out, const struct call_info *row)
{
    bool is_part = false;

    buf_addf(out, "  %-6.*s ", STR_ARG(row->method));
    for (size_t i = 0; i < row->path.n; i++) {
        char ch = row->path.p[i];

        if (ch == ':') {
            is_part = true;
            continue;
        }
        is_part = is_part && ch != '/';
        buf_add_char(out, is_part ? (char)(ch & ~0x20) : ch);
    }
    buf_add_char(out, '\n');
}

void call_front(struct call *c)
{
    struct call_info row;

    buf_addf(c->body,
             "Signalbox " SIGNALBOX_VERSION " is running.\n\n"
             "  /healthz   is it there\n"
             "  /readyz    does it take work\n"
             "  /metrics   figures for Prometheus\n\n"
             "With a token (Authorization: Bearer sbx_...), in JSON:\n\n");
    for (size_t i = 0; calls_row(i, &row); i++)
        if (!row.is_public)
            add_call(c->body, &row);
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
