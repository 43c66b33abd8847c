/* Figures of delivery, and of agents one by one. Anybody may read them, so only
 * public agents have their names there, a bounded number of them; the rest are
 * summed as agent="other" (deliver_shown). */
#include "calls/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

struct rows {
    struct desk_row list[DELIVER_SHOWN_MAX + 1]; /* the last is the sum */
    size_t n;
};

static void label_of(char *to, size_t size, const struct desk_row *r,
                     const char *more)
{
    snprintf(to, size, "agent=\"%.*s\"%s", STR_ARG(r->agent), more);
}

static void write_states(struct buf *out, const struct rows *rows)
{
    char label[AGENT_NAME_MAX + 64], more[32];

    metric_family(out, "signalbox_agent_state", "gauge",
                  "Constant 1, with the state of the agent as a label.");
    for (size_t i = 0; i + 1 < rows->n; i++) {
        const struct desk_row *r = &rows->list[i];

        snprintf(more, sizeof(more), ",state=\"%.*s\"",
                 STR_ARG(agent_state_name(r->state)));
        label_of(label, sizeof(label), r, more);
        metric_int(out, "signalbox_agent_state", label, 1);
    }
}

static void write_figures(struct buf *out, const struct rows *rows)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } families[] = {
#define ROW(name, type, field, help) \
    {"signalbox_agent_" name, type, help, offsetof(struct desk_stats, field)}
        ROW("waiting", "gauge", waiting, "Tasks that wait for their agent."),
        ROW("in_flight", "gauge", in_flight, "Tasks that are with it."),
        ROW("completed_total", "counter", completed_total,
            "Tasks that it completed."),
        ROW("failed_total", "counter", failed_total,
            "Tasks that failed, by its word or because it was not reached."),
        ROW("cancelled_total", "counter", cancelled_total,
            "Tasks that ended otherwise while they were with it."),
        ROW("retries_total", "counter", retries_total,
            "Attempts that came to nothing and were followed by another."),
        ROW("chunks_total", "counter", chunks_total,
            "Parts of answers as they came."),
#undef ROW
    };

    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        metric_family(out, families[k].name, families[k].type,
                      families[k].help);
        for (size_t i = 0; i < rows->n; i++) {
            char label[AGENT_NAME_MAX + 16];
            int64_t v;

            label_of(label, sizeof(label), &rows->list[i], "");
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
        const struct desk_row *r = &rows->list[i];
        int64_t v[N_OUTCOMES];

        memcpy(v, (const char *)&r->stats + offset, sizeof(v));
        for (int k = 0; k < N_OUTCOMES; k++) {
            char label[AGENT_NAME_MAX + 64];

            label_of(label, sizeof(label), r, outcomes[k]);
            metric_int(out, name, label, v[k]);
        }
    }
}

static void write_histogram(struct buf *out, const struct desk_row *r)
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
        label_of(label, sizeof(label), r, more);
        metric_int(out, "signalbox_agent_latency_seconds_bucket", label, n);
    }
    label_of(label, sizeof(label), r, "");
    metric_real(out, "signalbox_agent_latency_seconds_sum", label,
                (double)r->stats.latency_sum_ms / 1000);
    metric_int(out, "signalbox_agent_latency_seconds_count", label, n);
}

void metrics_agents(struct buf *out, struct deliver *d)
{
    struct rows *rows =
        FAULT("calls.agent_rows") ? NULL : malloc(sizeof(*rows));

    if (!rows) /* the others are there all the same */
        return;
    rows->n =
        deliver_shown(d, rows->list, &rows->list[DELIVER_SHOWN_MAX].stats);
    rows->list[rows->n].stats = rows->list[DELIVER_SHOWN_MAX].stats;
    rows->list[rows->n++].agent = STR("other");
    write_states(out, rows);
    write_figures(out, rows);
    write_outcomes(out, rows, "signalbox_agent_delegations_made_total",
                   "Delegations that it made and that are over, by outcome.",
                   offsetof(struct desk_stats, made_total));
    write_outcomes(out, rows, "signalbox_agent_delegations_received_total",
                   "Delegations that it was given and that are over, by "
                   "outcome.",
                   offsetof(struct desk_stats, received_total));
    metric_family(out, "signalbox_agent_latency_seconds", "histogram",
                  "From the start of an attempt to its completed answer.");
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
                   "Tasks carried to an agent.", s->started_total);
    metric_counter(out, "signalbox_deliveries_results_total",
                   "Results that agents gave.", s->results_total);
    metric_counter(out, "signalbox_deliveries_cancelled_total",
                   "Deliveries stopped on the way.", s->cancelled_total);
    metric_counter(out, "signalbox_deliveries_retried_total",
                   "Attempts that came to nothing and were followed by "
                   "another.",
                   s->retries_total);
    metric_counter(out, "signalbox_deliveries_failed_total",
                   "Tasks that failed because they could not be carried.",
                   s->failed_total);
    metric_gauge(out, "signalbox_breakers_open",
                 "Agents left alone because they failed again and again.",
                 s->breakers_open);
    metric_gauge(out, "signalbox_gathered_bytes",
                 "Chunks kept until their result is here.", s->gathered_bytes);
    metric_gauge(out, "signalbox_lines",
                 "Connections by which agents take their work.", s->lines);
    metric_counter(out, "signalbox_lines_total",
                   "Such connections since the start.", s->lines_total);
    metric_counter(out, "signalbox_lines_taken_over_total",
                   "Of those, the ones that another one of the same agent "
                   "took over.",
                   s->taken_over_total);
    metric_counter(out, "signalbox_wakes_total",
                   "Agents that were asked to wake up.", s->wakes_total);
    metric_counter(out, "signalbox_wakes_failed_total",
                   "Of those, the ones that did not connect in time.",
                   s->wakes_failed_total);
    metric_gauge(out, "signalbox_children", "Programs of agents that run.",
                 s->children);
}
