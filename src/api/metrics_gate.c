/* Metrics of the gate, its channels and the audit. */
#include "api/internal.h"
#include "gate/notifiers.h"

#include <stdio.h>

static void write_decisions(struct buf *out, const struct gatekeeper_stats *b)
{
    metric_family(out, "signalbox_gate_decisions_total", "counter",
                  "Decisions of the gate, by kind.");
    for (int i = GATE_ROUTE; i < N_GATE_ANSWERS; i++) {
        char label[64];

        snprintf(label, sizeof(label), "decision=\"%.*s\"",
                 STR_ARG(gate_answer_name((enum gate_answer)i)));
        metric_int(out, "signalbox_gate_decisions_total", label,
                   b->by_answer[i]);
    }
}

static void write_holds(struct buf *out, const struct gatekeeper_stats *b)
{
    int64_t ended = b->released_total + b->expired_total;

    metric_gauge(out, "signalbox_gate_held", "Held messages.", b->held);
    metric_family(out, "signalbox_gate_hold_seconds", "summary",
                  "How long messages were held.");
    metric_real(out, "signalbox_gate_hold_seconds_sum", NULL,
                (double)b->hold_ms_total / 1000);
    metric_int(out, "signalbox_gate_hold_seconds_count", NULL, ended);
    metric_family(out, "signalbox_gate_hold_seconds_max", "gauge",
                  "The longest hold since the start.");
    metric_real(out, "signalbox_gate_hold_seconds_max", NULL,
                (double)b->hold_ms_max / 1000);
    metric_counter(out, "signalbox_gate_released_total",
                   "Held messages that were released.", b->released_total);
    metric_counter(out, "signalbox_gate_expired_total",
                   "Held messages that expired.", b->expired_total);
}

static void write_people(struct buf *out, const struct gatekeeper_stats *b)
{
    static const char *const kinds[] = {NULL, "kind=\"rule\"", "kind=\"dead\"",
                                        "kind=\"late\"", "kind=\"expired\""};

    metric_gauge(out, "signalbox_gate_escalations_open", "Open escalations.",
                 b->escalations_open);
    metric_family(out, "signalbox_gate_escalations_total", "counter",
                  "Escalations, by kind.");
    for (size_t i = 1; i < sizeof(kinds) / sizeof(*kinds); i++)
        metric_int(out, "signalbox_gate_escalations_total", kinds[i],
                   b->escalations_total[i]);
    metric_counter(out, "signalbox_gate_late_total",
                   "Answers after the deadline of a rule.", b->late_total);
}

static void write_audit(struct buf *out, const struct audit_report *r)
{
    /* Unknown until an audit has ended. */
    metric_family(out, "signalbox_gate_lost", "gauge",
                  "Losses found by the last audit; -1 before the first.");
    metric_int(out, "signalbox_gate_lost", NULL,
               r->ended_ms && !r->err ? r->lost : -1);
    metric_family(out, "signalbox_gate_audit_timestamp_seconds", "gauge",
                  "When the last audit ended.");
    metric_int(out, "signalbox_gate_audit_timestamp_seconds", NULL,
               r->ended_ms / 1000);
}

/* The operator names channels: quotes and the like are escaped. */
static void channel_label(const struct channel_stats *s, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "channel=\"");

    for (size_t i = 0; i < s->name.n && n + 24 < size; i++) {
        char c = s->name.p[i];

        if (c == '"' || c == '\\')
            out[n++] = '\\';
        out[n++] = (unsigned char)c < ' ' ? ' ' : c;
    }
    snprintf(out + n, size - n, "\",place=\"%s\"",
             s->is_file ? "file" : "webhook");
}

static void write_channels(struct buf *out, const struct channels *channels)
{
    static const struct {
        const char *name, *type, *help;
        size_t at;
    } families[] = {
        {"signalbox_channel_backlog", "gauge",
         "Entries of the feed that the channel has not read.",
         offsetof(struct channel_stats, backlog)},
        {"signalbox_channel_written_total", "counter",
         "Entries written or posted.",
         offsetof(struct channel_stats, written_total)},
        {"signalbox_channel_failures_total", "counter",
         "Failed writes and posts, which are retried.",
         offsetof(struct channel_stats, failures_total)},
        {"signalbox_channel_missed_total", "counter",
         "Entries that retention removed before the channel read them.",
         offsetof(struct channel_stats, missed_total)},
    };
    struct channel_stats list[2 * CHANNELS_MAX];
    size_t n = channels_stats(channels, list, 2 * CHANNELS_MAX);

    for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
        metric_family(out, families[f].name, families[f].type,
                      families[f].help);
        for (size_t i = 0; i < n; i++) {
            char label[2 * CHANNEL_NAME_MAX + 64];
            int64_t v;

            memcpy(&v, (const char *)&list[i] + families[f].at, sizeof(v));
            channel_label(&list[i], label, sizeof(label));
            metric_int(out, families[f].name, label, v);
        }
    }
}

void metrics_gate(struct buf *out, struct api *api)
{
    struct gatekeeper_stats b = gatekeeper_stats(walk_gatekeeper(api->walk));

    write_decisions(out, &b);
    write_holds(out, &b);
    write_people(out, &b);
    if (!api->notifiers)
        return;
    write_audit(out, audit_report(api->notifiers->audit));
    write_channels(out, api->notifiers->channels);
}
