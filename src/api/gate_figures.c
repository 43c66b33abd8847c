/* The state of the gate: each figure with its target, the rules, the channels
 * and the audit. Every reader is told how many of their own messages wait; the
 * totals, and the files and their problems, are for admins. */
#include "api/internal.h"
#include "base/json.h"
#include "gate/notifiers.h"
#include "gate/rules_file.h"

static void open_figure(struct json_out *o, const char *key, int64_t value,
                        int64_t target, bool is_met)
{
    json_key(o, str_of(key));
    json_open(o, '{');
    json_member_int(o, "value", value);
    json_member_int(o, "target", target);
    json_member_bool(o, "is_met", is_met);
}

static int64_t average(int64_t sum, int64_t n)
{
    return n ? sum / n : 0;
}

static void put_decisions(struct json_out *o, const struct gate_figures *day)
{
    static const char *const names[N_FIGURES] = {[FIGURE_ROUTED] = "immediate",
                                                 [FIGURE_HELD] = "hold",
                                                 [FIGURE_PAUSED] = "pause",
                                                 [FIGURE_ESCALATED] =
                                                     "escalate",
                                                 [FIGURE_DROPPED] = "drop"};

    json_key(o, STR("decisions_24h"));
    json_open(o, '{');
    for (int i = 0; i < N_FIGURES; i++)
        json_member_int(o, names[i], day->decisions[i]);
    json_close(o, '}');
}

/* Unknown until an audit has ended. */
static void put_lost(struct json_out *o, const struct audit_report *audit,
                     int64_t target)
{
    bool is_known = audit->ended_ms && !audit->err;

    if (is_known) {
        open_figure(o, "lost", audit->lost, target, audit->lost <= target);
    } else {
        json_key(o, STR("lost"));
        json_open(o, '{');
        json_member_null(o, "value");
        json_member_int(o, "target", target);
        json_member_null(o, "is_met");
    }
    json_member_int(o, "audited_ms", is_known ? audit->ended_ms : 0);
    json_close(o, '}');
}

/* If fewer messages came in the hour than the target, the gate cannot be called
 * slow. */
static void put_routed(struct json_out *o, const struct gate_figures *hour,
                       const struct gate_figures *day, int64_t target)
{
    int64_t came =
        hour->routed - hour->released + hour->decisions[FIGURE_HELD] +
        hour->decisions[FIGURE_PAUSED] + hour->decisions[FIGURE_ESCALATED];
    int64_t tenths =
        (day->routed * 10 + 12) / 24; /* tenths of a message per hour */
    bool is_met = hour->routed >= target;

    json_key(o, STR("routed_per_hour"));
    json_open(o, '{');
    json_member_int(o, "value", hour->routed);
    json_member_int(o, "target", target);
    if (is_met || came >= target)
        json_member_bool(o, "is_met", is_met);
    else
        json_member_null(o, "is_met");
    json_member_int(o, "came", came > 0 ? came : 0);
    json_member_real(o, "average_24h", (double)tenths / 10);
    json_close(o, '}');
}

static void gate_put_figures(struct json_out *o, struct notifiers *p,
                             const struct gate_targets *t)
{
    struct gate_figures hour = figures_of(p->figures, true),
                        day = figures_of(p->figures, false);
    const struct audit_report *audit = audit_report(p->audit);
    int64_t hold = average(day.normal_hold_ms, day.normal_holds);

    json_key(o, STR("figures"));
    json_open(o, '{');
    put_routed(o, &hour, &day, t->routed_per_hour);
    put_decisions(o, &day);
    json_key(o, STR("hold_ms"));
    json_open(o, '{');
    json_member_int(o, "value", hold);
    json_member_int(o, "target", t->hold_ms);
    if (day.normal_holds)
        json_member_bool(o, "is_met", hold <= t->hold_ms);
    else
        json_member_null(o, "is_met"); /* no holds, no mean */
    json_member_int(o, "of_all", average(day.hold_ms, day.holds));
    json_member_int(o, "longest", day.hold_max_ms);
    json_member_int(o, "holds", day.holds);
    json_close(o, '}');
    open_figure(o, "escalations_per_day", day.decisions[FIGURE_ESCALATED],
                t->escalations_per_day,
                day.decisions[FIGURE_ESCALATED] < t->escalations_per_day ||
                    !t->escalations_per_day);
    json_close(o, '}');
    put_lost(o, audit, t->lost);
    json_member_int(o, "released_24h", day.released);
    json_member_int(o, "expired_24h", day.expired);
    json_member_int(o, "late_24h", day.late);
    json_close(o, '}');
}

static void gate_put_rules(struct json_out *o, const struct rules_file *b,
                           bool is_admin)
{
    json_key(o, STR("rules"));
    json_open(o, '{');
    json_member_int(o, "count", (int64_t)gate_rules_count(rules_file_rules(b)));
    json_member_str(o, "state",
                    !b->path        ? STR("none")
                    : b->problems.n ? STR("bad")
                                    : STR("good"));
    if (is_admin) {
        json_member_str(o, "file", str_of(b->path));
        json_member_int(o, "read_at_ms", b->read_at_ms);
        json_member_str(
            o, "problem",
            b->problems.n ? (struct str){b->problems.text, b->problems.n_bytes}
                          : STR(""));
    }
    json_close(o, '}');
}

static void gate_put_channels(struct json_out *o,
                              const struct channels *channels)
{
    struct channel_stats list[2 * CHANNELS_MAX];
    size_t n = channels_stats(channels, list, 2 * CHANNELS_MAX);

    json_key(o, STR("channels"));
    json_open(o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(o, '{');
        json_member_str(o, "name", list[i].name);
        json_member_str(o, "place",
                        list[i].is_file ? STR("file") : STR("webhook"));
        json_member_int(o, "cursor", list[i].cursor);
        json_member_int(o, "backlog", list[i].backlog);
        json_member_int(o, "written", list[i].written_total);
        json_member_int(o, "failures", list[i].failures_total);
        json_member_int(o, "missed", list[i].missed_total);
        json_member_int(o, "failing_ms", list[i].failing_ms);
        json_member_str(o, "problem", str_of(list[i].problem));
        json_close(o, '}');
    }
    json_close(o, ']');
}

void call_gate_get(struct call *c)
{
    struct api *api = c->api;
    struct json_out o = json_out(c->body);
    struct gatekeeper_waiting b =
        gatekeeper_waiting(walk_gatekeeper(api->walk), &c->caller);
    const struct gate_about *about =
        gate_rules_about(rules_file_rules(api->rules_file));
    bool is_admin = caller_is_admin(&c->caller);

    json_open(&o, '{');
    if (is_admin)
        gate_put_figures(&o, api->notifiers, &about->targets);
    else
        json_member_null(&o, "figures");
    json_key(&o, STR("now"));
    json_open(&o, '{');
    json_member_int(&o, "held", b.held);
    json_member_int(&o, "escalations_open", b.escalations_open);
    json_close(&o, '}');
    gate_put_rules(&o, api->rules_file, is_admin);
    if (is_admin)
        gate_put_channels(&o, api->notifiers->channels);
    json_close(&o, '}');
    call_answer_json(c, 200);
}

static void gate_put_losses(struct json_out *o, const char *key,
                            const struct audit_loss *list, int64_t n)
{
    json_key(o, str_of(key));
    json_open(o, '[');
    for (int64_t i = 0; i < n && i < AUDIT_NAMES; i++) {
        json_open(o, '{');
        json_member_str(o, "task_id", str_of(list[i].task_id.text));
        json_member_str(o, "what", str_of(list[i].what));
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* The last audit that ended. A POST starts another, which is not waited for: a
 * client polls until began_ms changes. */
static void answer_audit(struct call *c, int status)
{
    struct audit *a = c->api->notifiers->audit;
    const struct audit_report *r = audit_report(a);
    struct json_out o = json_out(c->body);
    bool is_there = r->ended_ms && !r->err;

    json_open(&o, '{');
    json_member_bool(&o, "is_running", audit_is_running(a));
    json_member_int(&o, "began_ms", r->began_ms);
    json_member_int(&o, "ended_ms", r->ended_ms);
    json_member_str(&o, "problem",
                    r->err ? str_of(err_row(r->err)->wording) : STR(""));
    json_member_int(&o, "accepted", r->accepted);
    json_member_int(&o, "over", r->over);
    json_member_int(&o, "unfinished", r->unfinished);
    json_member_int(&o, "held", r->held);
    json_member_int(&o, "escalated", r->escalated);
    json_member_known(&o, "lost", is_there, r->lost);
    gate_put_losses(&o, "losses", r->losses, r->lost);
    json_member_int(&o, "stray", r->n_leftovers);
    gate_put_losses(&o, "strays", r->leftovers, r->n_leftovers);
    json_close(&o, '}');
    call_answer_json(c, status);
}

void call_gate_audit_get(struct call *c)
{
    answer_audit(c, 200);
}

void call_gate_audit_post(struct call *c)
{
    audit_run(c->api->notifiers->audit);
    answer_audit(c, 202);
}
