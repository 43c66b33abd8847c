/* What is learnt, in figures. */
#include "calls/internal.h"

void metrics_learning(struct buf *out, const struct lessons_stats *s)
{
    metric_counter(out, "signalbox_learning_runs_total",
                   "Times that open decisions were looked at.", s->runs_total);
    metric_counter(out, "signalbox_learning_judged_total",
                   "Decisions that were judged by that.", s->judged_total);
    metric_counter(out, "signalbox_learning_outcomes_total",
                   "Outcomes that were committed: verdicts, corrections, "
                   "feedback, and what was to be forgotten.",
                   s->outcomes_total);
    metric_gauge(out, "signalbox_learning_not_written",
                 "Outcomes whose effect is in memory and not on the disk yet.",
                 s->behind);
    metric_gauge(out, "signalbox_learning_agents",
                 "Agents of whom something is known.",
                 (int64_t)s->learn.agents);
    metric_gauge(out, "signalbox_learning_types", "Types of query.",
                 (int64_t)s->learn.types);
    metric_gauge(out, "signalbox_learning_examples",
                 "Corrections that are kept as examples.",
                 (int64_t)s->learn.examples);
}
