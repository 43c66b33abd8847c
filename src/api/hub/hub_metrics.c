/* The metrics of the hub. */
#include "api/hub/internal.h"

void hub_metrics(const struct hub *h, struct buf *out)
{
    const struct hub_stats *s = &h->stats;

    metric_gauge(out, "signalbox_hub_connections", "Open connections to /hub.",
                 s->connections);
    metric_gauge(out, "signalbox_hub_agents",
                 "Open connections to /hub that belong to an agent.",
                 s->agents);
    metric_counter(out, "signalbox_hub_messages_total",
                   "Messages received on /hub.", s->messages_total);
    metric_counter(out, "signalbox_hub_errors_total",
                   "Answers on /hub that were errors.", s->errors_total);
    metric_counter(out, "signalbox_hub_pushed_total",
                   "Notifications about tasks, sent to their users.",
                   s->pushed_total);
    metric_counter(out, "signalbox_hub_rate_limited_total",
                   "Times a connection was slowed down by a rate limit.",
                   s->rate_limited_total);
    metric_counter(out, "signalbox_hub_foreign_total",
                   "Answers without a request, ignored.", s->foreign_total);
}
