/* Figures of what agents give to agents, and of the traces that tell of it. By
 * agent they are with the other figures of agents (metrics_agents.c). */
#include "calls/internal.h"

static void write_refusals(struct buf *out, const struct hire_stats *s)
{
    static const char *const reasons[N_HIRE_REFUSALS] = {
        [HIRE_NOT_ALLOWED] = "reason=\"not_allowed\"",
        [HIRE_TOO_MANY] = "reason=\"too_many\"",
        [HIRE_ID_IN_USE] = "reason=\"id_in_use\"",
        [HIRE_OTHERWISE] = "reason=\"other\""};

    metric_family(out, "signalbox_delegations_refused_total", "counter",
                  "Delegations refused before they were begun, by why.");
    for (int i = 0; i < N_HIRE_REFUSALS; i++)
        metric_int(out, "signalbox_delegations_refused_total", reasons[i],
                   s->refused_by[i]);
}

static void write_traces(struct buf *out, const struct traces_stats *s)
{
    metric_gauge(out, "signalbox_traces_waiting",
                 "Spans that the collector does not have yet.", s->waiting);
    metric_counter(out, "signalbox_traces_sent_total",
                   "Spans that the collector has taken.", s->sent_total);
    metric_counter(out, "signalbox_traces_dropped_total",
                   "Spans dropped because too many waited.", s->dropped_total);
    metric_counter(out, "signalbox_traces_refused_total",
                   "Spans that the collector would not have.",
                   s->refused_total);
    metric_counter(out, "signalbox_traces_failures_total",
                   "Requests to the collector that are tried again.",
                   s->failures_total);
}

void metrics_hire(struct buf *out, const struct hire_stats *s,
                  const struct traces *traces)
{
    metric_gauge(out, "signalbox_delegations_open",
                 "Delegations that are not over.", s->open);
    metric_gauge(out, "signalbox_delegations_waiting",
                 "Of them those that wait for their turn (maxConcurrent).",
                 s->waiting);
    metric_gauge(out, "signalbox_delegations_ready",
                 "Delegations that are over, whose result nobody has had yet.",
                 s->ready);
    metric_counter(out, "signalbox_delegations_total",
                   "Delegations that were accepted.", s->delegated_total);
    write_refusals(out, s);
    metric_counter(out, "signalbox_delegations_had_total",
                   "Results of delegations that who asked has had.",
                   s->had_total);
    metric_counter(out, "signalbox_delegations_expired_total",
                   "Results that nobody wanted for too long.",
                   s->expired_total);
    metric_counter(out, "signalbox_delegations_ended_below_total",
                   "Delegations ended because of what they were part of.",
                   s->ended_below_total);
    if (traces && traces_stats(traces).is_on) {
        struct traces_stats t = traces_stats(traces);

        write_traces(out, &t);
    }
}
