/* The hub's figures. */
#include "hub/internal.h"

void hub_metrics(const struct hub *h, struct buf *out)
{
    const struct hub_stats *s = &h->stats;

    metric_gauge(out, "signalbox_hub_connections",
                 "Connections to /hub that are open.", s->connections);
    metric_gauge(out, "signalbox_hub_agents",
                 "Connections to /hub that are an agent's.", s->agents);
    metric_counter(out, "signalbox_hub_messages_total",
                   "Messages that came on the hub.", s->messages_total);
    metric_counter(out, "signalbox_hub_errors_total",
                   "Answers on the hub that were errors.", s->errors_total);
    metric_counter(out, "signalbox_hub_pushed_total",
                   "Notifications about tasks to those who sent them.",
                   s->pushed_total);
    metric_counter(out, "signalbox_hub_rate_limited_total",
                   "Times that a connection was slowed down.",
                   s->rate_limited_total);
    metric_counter(out, "signalbox_hub_foreign_total",
                   "Answers to what was never asked, ignored.",
                   s->foreign_total);
}
