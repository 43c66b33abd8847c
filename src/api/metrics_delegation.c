/* Metrics of delegations and traces. Those by agent are in metrics_agents.c. */
#include "api/internal.h"

static void write_refusals(struct buf *out, const struct delegation_stats *s)
{
    static const char *const reasons[N_DELEGATION_REFUSALS] = {
        [DELEGATION_NOT_ALLOWED] = "reason=\"not_allowed\"",
        [DELEGATION_TOO_MANY] = "reason=\"too_many\"",
        [DELEGATION_ID_IN_USE] = "reason=\"id_in_use\"",
        [DELEGATION_OTHERWISE] = "reason=\"other\""};

    metric_family(out, "signalbox_delegations_refused_total", "counter",
                  "Rejected delegations, by reason.");
    for (int i = 0; i < N_DELEGATION_REFUSALS; i++)
        metric_int(out, "signalbox_delegations_refused_total", reasons[i],
                   s->refused_by[i]);
}

static void write_traces(struct buf *out, const struct traces_stats *s)
{
    metric_gauge(out, "signalbox_traces_waiting",
                 "Spans that are not sent to the collector yet.", s->waiting);
    metric_counter(out, "signalbox_traces_sent_total",
                   "Spans accepted by the collector.", s->sent_total);
    metric_counter(out, "signalbox_traces_dropped_total",
                   "Spans dropped because too many waited.", s->dropped_total);
    metric_counter(out, "signalbox_traces_refused_total",
                   "Spans rejected by the collector.", s->refused_total);
    metric_counter(out, "signalbox_traces_failures_total",
                   "Failed requests to the collector, which are retried.",
                   s->failures_total);
}

void metrics_delegation(struct buf *out, const struct delegation_stats *s,
                        const struct traces *traces)
{
    metric_gauge(out, "signalbox_delegations_open", "Open delegations.",
                 s->open);
    metric_gauge(out, "signalbox_delegations_waiting",
                 "Open delegations that wait for their turn (maxConcurrent).",
                 s->waiting);
    metric_gauge(out, "signalbox_delegations_ready",
                 "Finished delegations whose result is not acknowledged.",
                 s->ready);
    metric_counter(out, "signalbox_delegations_total", "Accepted delegations.",
                   s->delegated_total);
    write_refusals(out, s);
    metric_counter(out, "signalbox_delegations_had_total",
                   "Acknowledged results of delegations.", s->had_total);
    metric_counter(out, "signalbox_delegations_expired_total",
                   "Results that expired without an acknowledgement.",
                   s->expired_total);
    metric_counter(out, "signalbox_delegations_ended_below_total",
                   "Delegations ended with their parent.",
                   s->ended_below_total);
    if (traces && traces_stats(traces).is_on) {
        struct traces_stats t = traces_stats(traces);

        write_traces(out, &t);
    }
}
