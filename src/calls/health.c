/* For load balancers, for Prometheus, and for whoever opens the address in a
 * browser to see whether anything is there. None of these needs a token, so
 * none of them tells more than that. */
#include "base/json.h"
#include "calls/internal.h"
#include "speak/speak.h"
#include "watch/watch.h"

void call_front(struct call *c)
{
    buf_addf(c->body, "Signalbox " SIGNALBOX_VERSION " is running.\n\n"
                      "  /healthz   is it there\n"
                      "  /readyz    does it take work\n"
                      "  /metrics   figures for Prometheus\n");
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

static void write_http(struct buf *out, const struct net_stats *s)
{
    metric_gauge(out, "signalbox_http_connections", "Open connections.",
                 s->connections);
    metric_counter(out, "signalbox_http_connections_total",
                   "Connections taken.", s->connections_total);
    metric_counter(out, "signalbox_http_connections_refused_total",
                   "Connections turned away at the limit.", s->refused_total);
    metric_counter(out, "signalbox_http_requests_total",
                   "Requests read whole and handed over.", s->requests_total);
    metric_family(out, "signalbox_http_replies_total", "counter",
                  "Replies by class of status.");
    for (int digit = 1; digit <= 5; digit++) {
        char label[] = "status=\"?xx\"";

        label[8] = (char)('0' + digit);
        metric_int(out, "signalbox_http_replies_total", label,
                   s->replies_total[digit]);
    }
    metric_counter(out, "signalbox_http_bad_requests_total",
                   "Requests that broke the protocol or a limit.",
                   s->bad_requests_total);
    metric_counter(out, "signalbox_http_overloaded_total",
                   "Requests refused because all buffers were full.",
                   s->overloaded_total);
    metric_counter(out, "signalbox_http_timeouts_total",
                   "Connections cut because a phase took too long.",
                   s->timeouts_total);
    metric_counter(out, "signalbox_http_idle_closed_total",
                   "Connections closed because no request came.",
                   s->idle_closed_total);
    metric_counter(out, "signalbox_http_received_bytes_total",
                   "Bytes read from clients.", s->bytes_in_total);
    metric_counter(out, "signalbox_http_sent_bytes_total",
                   "Bytes written to clients.", s->bytes_out_total);
    metric_gauge(out, "signalbox_http_unsent_bytes",
                 "Bytes waiting for clients to take them.", s->unsent_bytes);
    metric_gauge(out, "signalbox_http_buffered_bytes",
                 "Memory held by the buffers of all connections.",
                 s->buffered_bytes);
}

void call_metrics(struct call *c)
{
    struct calls *calls = c->calls;
    struct net_stats stats = net_stats(calls->net);
    metric_family(c->body, "signalbox_build_info", "gauge",
                  "Constant 1, with the version as a label.");
    metric_int(c->body, "signalbox_build_info",
               "version=\"" SIGNALBOX_VERSION "\"", 1);
    write_http(c->body, &stats);
    metric_counter(c->body, "signalbox_config_reloads_total",
                   "Configurations taken over while running.",
                   calls->reloads_total);
    metric_counter(c->body, "signalbox_config_reloads_failed_total",
                   "Configurations turned down while running.",
                   calls->reloads_failed_total);
    metric_process(c->body, &calls->files, loop_mono_ms(calls->loop));
    call_answer(c, 200, WATCH_METRICS_TYPE);
}
