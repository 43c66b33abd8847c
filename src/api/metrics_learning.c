/* Metrics of learning. */
#include "api/internal.h"

void metrics_learning(struct buf *out, const struct learning_stats *s)
{
    metric_counter(out, "signalbox_learning_runs_total",
                   "Runs of the learning job.", s->runs_total);
    metric_counter(out, "signalbox_learning_judged_total",
                   "Decisions judged by the learning job.", s->judged_total);
    metric_counter(out, "signalbox_learning_outcomes_total",
                   "Committed outcomes: verdicts, corrections, feedback and "
                   "requests to forget.",
                   s->outcomes_total);
    metric_gauge(out, "signalbox_learning_not_written",
                 "Outcomes whose effect is only in memory yet.", s->behind);
    metric_gauge(out, "signalbox_learning_agents", "Agents with learned data.",
                 (int64_t)s->learn.agents);
    metric_gauge(out, "signalbox_learning_types", "Types of query.",
                 (int64_t)s->learn.types);
    metric_gauge(out, "signalbox_learning_examples",
                 "Corrections that are kept as examples.",
                 (int64_t)s->learn.examples);
}
