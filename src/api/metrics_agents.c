/* Metrics of delivery, and of single agents. They are public, so only public
 * agents have their names in them, a bounded number; the rest are summed up as
 * agent="other" (deliver_shown). */
#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct rows {
    struct agent_queue_row
        list[DELIVER_SHOWN_MAX + 1]; /* the last one is the sum */
    size_t n;
};

static void agent_label(char *to, size_t size, const struct agent_queue_row *r,
                        const char *more)
{
    snprintf(to, size, "agent=\"%.*s\"%s", STR_ARG(r->agent), more);
}

static void agent_metrics_states(struct buf *out, const struct rows *rows)
{
    char label[AGENT_NAME_MAX + 64], more[32];

    metric_family(out, "signalbox_agent_state", "gauge",
                  "Constant 1, with the state of the agent as a label.");
    for (size_t i = 0; i + 1 < rows->n; i++) {
        const struct agent_queue_row *r = &rows->list[i];

        snprintf(more, sizeof(more), ",state=\"%.*s\"",
                 STR_ARG(agent_state_name(r->state)));
        agent_label(label, sizeof(label), r, more);
        metric_int(out, "signalbox_agent_state", label, 1);
    }
}

static void agent_metrics_figures(struct buf *out, const struct rows *rows)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } families[] = {
#define ROW(name, type, field, help)      \
    {"signalbox_agent_" name, type, help, \
     offsetof(struct agent_queue_stats, field)}
        ROW("waiting", "gauge", waiting, "Tasks that wait for their agent."),
        ROW("in_flight", "gauge", in_flight, "Tasks that their agent has."),
        ROW("completed_total", "counter", completed_total, "Tasks completed."),
        ROW("failed_total", "counter", failed_total,
            "Tasks that failed, by their agent or because it was not reached."),
        ROW("cancelled_total", "counter", cancelled_total,
            "Tasks that ended otherwise while their agent had them."),
        ROW("retries_total", "counter", retries_total,
            "Failed attempts that were retried."),
        ROW("chunks_total", "counter", chunks_total, "Chunks of answers."),
#undef ROW
    };

    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        metric_family(out, families[k].name, families[k].type,
                      families[k].help);
        for (size_t i = 0; i < rows->n; i++) {
            char label[AGENT_NAME_MAX + 16];
            int64_t v;

            agent_label(label, sizeof(label), &rows->list[i], "");
            memcpy(&v, (const char *)&rows->list[i].stats + families[k].offset,
                   sizeof(v));
            metric_int(out, families[k].name, label, v);
        }
    }
}

static void write_outcomes(struct buf *out, const struct rows *rows,
                           const char *name, const char *help, size_t offset)
{
    static const char *const outcomes[N_OUTCOMES] = {
        [OUTCOME_COMPLETED] = ",outcome=\"completed\"",
        [OUTCOME_FAILED] = ",outcome=\"failed\"",
        [OUTCOME_CANCELLED] = ",outcome=\"cancelled\"",
        [OUTCOME_EXPIRED] = ",outcome=\"expired\""};

    metric_family(out, name, "counter", help);
    for (size_t i = 0; i < rows->n; i++) {
        const struct agent_queue_row *r = &rows->list[i];
        int64_t v[N_OUTCOMES];

        memcpy(v, (const char *)&r->stats + offset, sizeof(v));
        for (int k = 0; k < N_OUTCOMES; k++) {
            char label[AGENT_NAME_MAX + 64];

            agent_label(label, sizeof(label), r, outcomes[k]);
            metric_int(out, name, label, v[k]);
        }
    }
}

static void write_histogram(struct buf *out, const struct agent_queue_row *r)
{
    char label[AGENT_NAME_MAX + 64], more[32];
    int64_t n = 0;

    for (int b = 0; b < DELIVER_BUCKETS; b++) {
        if (b < DELIVER_BUCKETS - 1)
            snprintf(more, sizeof(more), ",le=\"%g\"",
                     (double)deliver_bucket_ms[b] / 1000);
        else
            snprintf(more, sizeof(more), ",le=\"+Inf\"");
        n += r->stats.latency_total[b];
        agent_label(label, sizeof(label), r, more);
        metric_int(out, "signalbox_agent_latency_seconds_bucket", label, n);
    }
    agent_label(label, sizeof(label), r, "");
    metric_real(out, "signalbox_agent_latency_seconds_sum", label,
                (double)r->stats.latency_sum_ms / 1000);
    metric_int(out, "signalbox_agent_latency_seconds_count", label, n);
}

void metrics_agents(struct buf *out, struct deliver *d)
{
    struct rows *rows = mem_new(sizeof(*rows));

    rows->n =
        deliver_shown(d, rows->list, &rows->list[DELIVER_SHOWN_MAX].stats);
    rows->list[rows->n].stats = rows->list[DELIVER_SHOWN_MAX].stats;
    rows->list[rows->n++].agent = STR("other");
    agent_metrics_states(out, rows);
    agent_metrics_figures(out, rows);
    write_outcomes(out, rows, "signalbox_agent_delegations_made_total",
                   "Finished delegations that the agent requested, by outcome.",
                   offsetof(struct agent_queue_stats, made_total));
    write_outcomes(out, rows, "signalbox_agent_delegations_received_total",
                   "Finished delegations that the agent was given, by outcome.",
                   offsetof(struct agent_queue_stats, received_total));
    metric_family(out, "signalbox_agent_latency_seconds", "histogram",
                  "Time from the start of an attempt to its completed answer.");
    for (size_t i = 0; i < rows->n; i++)
        write_histogram(out, &rows->list[i]);
    free(rows);
}

void metrics_deliver(struct buf *out, const struct deliver_stats *s)
{
    metric_gauge(out, "signalbox_deliveries",
                 "Tasks on their way to an agent, or with one.", s->on_the_way);
    metric_gauge(out, "signalbox_deliveries_waiting",
                 "Tasks that wait for their agent.", s->waiting);
    metric_counter(out, "signalbox_deliveries_started_total",
                   "Tasks delivered to an agent.", s->started_total);
    metric_counter(out, "signalbox_deliveries_results_total",
                   "Results of agents.", s->results_total);
    metric_counter(out, "signalbox_deliveries_cancelled_total",
                   "Deliveries stopped on the way.", s->cancelled_total);
    metric_counter(out, "signalbox_deliveries_retried_total",
                   "Failed attempts that were retried.", s->retries_total);
    metric_counter(out, "signalbox_deliveries_failed_total",
                   "Tasks that failed because they could not be delivered.",
                   s->failed_total);
    metric_gauge(out, "signalbox_breakers_open",
                 "Agents paused by their breaker after repeated failures.",
                 s->breakers_open);
    metric_gauge(out, "signalbox_gathered_bytes",
                 "Bytes of chunks kept until their result.", s->gathered_bytes);
    metric_gauge(out, "signalbox_lines",
                 "Connections of agents that take tasks.", s->lines);
    metric_counter(out, "signalbox_lines_total",
                   "Connections of agents since the start.", s->lines_total);
    metric_counter(out, "signalbox_lines_taken_over_total",
                   "Connections of agents that a newer one took over.",
                   s->taken_over_total);
    metric_counter(out, "signalbox_wakes_total", "Wake requests to agents.",
                   s->wakes_total);
    metric_counter(
        out, "signalbox_wakes_failed_total",
        "Wake requests after which the agent did not connect in time.",
        s->wakes_failed_total);
    metric_gauge(out, "signalbox_children", "Running programs of agents.",
                 s->children);
}
