/* gate stats and gate audit: the gate's figures with their targets, and a check
 * for lost messages. */
#include <stdio.h>
#include <time.h>

#include "cli/client.h"
#include "cli/gate.h"
#include "cli/list.h"
#include "cli/span.h"

enum { AUDIT_TRIES = 600, AUDIT_PAUSE_MS = 100 };

static int64_t gate_stats_number(const struct json *v, const char *key)
{
    return cli_field_int(v, str_of(key));
}

/* "        12  escalated in a day            missed the target: under 5". */
static void gate_stats_show_line(struct cli *c, const struct json *figure,
                                 const char *value, const char *words,
                                 const char *target)
{
    bool is_met = json_bool_or(cli_member(figure, "is_met"), true);

    buf_addf(&c->out, "%10s  %-26s ", value, words);
    if (is_met)
        buf_addf(&c->out, "target: %s\n", target);
    else
        buf_addf(&c->out, "%smissed the target: %s%s\n",
                 c->colour ? "\033[31m" : "", target,
                 c->colour ? "\033[0m" : "");
}

static void show_figure(struct cli *c, const struct json *figure,
                        const char *words, const char *sign)
{
    char value[32], target[64];

    snprintf(value, sizeof(value), "%lld",
             (long long)gate_stats_number(figure, "value"));
    snprintf(target, sizeof(target), "%s %lld", sign,
             (long long)gate_stats_number(figure, "target"));
    gate_stats_show_line(c, figure, value, words, target);
}

static void show_hold(struct cli *c, const struct json *figure)
{
    struct span_text value = span_write(gate_stats_number(figure, "value")),
                     target = span_write(gate_stats_number(figure, "target")),
                     longest = span_write(gate_stats_number(figure, "longest"));
    char most[64];

    snprintf(most, sizeof(most), "at most %s", target.text);
    gate_stats_show_line(c, figure, value.text, "average hold, NORMAL", most);
    buf_addf(&c->out, "%10s  longest hold\n", longest.text);
}

/* The messages of all users: for admins. */
static void gate_stats_show(struct cli *c, const struct json *f)
{
    static const char *const names[] = {"immediate", "hold", "pause",
                                        "escalate", "drop"};
    const struct json *decisions = cli_member(f, "decisions_24h");
    const struct json *routed = cli_member(f, "routed_per_hour");

    show_figure(c, routed, "routed in the last hour", "at least");
    buf_addf(&c->out, "%10.1f  an hour, over a day\n",
             json_real_or(cli_member(routed, "average_24h"), 0));
    show_hold(c, cli_member(f, "hold_ms"));
    show_figure(c, cli_member(f, "escalations_per_day"), "escalated in a day",
                "under");
    /* Before the first audit the number is not known. */
    if (gate_stats_number(cli_member(f, "lost"), "audited_ms"))
        show_figure(c, cli_member(f, "lost"), "lost", "at most");
    else
        buf_addf(&c->out, "%10s  lost: no audit has finished yet\n", "?");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        buf_addf(&c->out, "%10lld  decisions in a day: %s\n",
                 (long long)gate_stats_number(decisions, names[i]), names[i]);
}

static void show_stats(struct cli *c, const struct json *is)
{
    const struct json *f = cli_member(is, "figures");

    if (f && f->type == JSON_OBJ)
        gate_stats_show(c, f);
    buf_addf(&c->out, "%10lld  held now\n%10lld  waiting for a person\n",
             (long long)json_int_or(cli_member(is, "now.held"), 0),
             (long long)json_int_or(cli_member(is, "now.escalations_open"), 0));
}

static const struct one stats = {
    .method = "GET", .path = "/api/gate", .show = show_stats};

static enum exit_status show_audit(struct cli *c, const struct json *is)
{
    bool is_known = !cli_field(is, STR("problem")).n;

    if (c->json) {
        cli_json_line(&c->out, is);
    } else {
        buf_addf(&c->out, "%10lld  accepted\n%10lld  finished\n",
                 (long long)gate_stats_number(is, "accepted"),
                 (long long)gate_stats_number(is, "over"));
        buf_addf(&c->out, "%10lld  unfinished\n%10lld  lost\n",
                 (long long)gate_stats_number(is, "unfinished"),
                 (long long)gate_stats_number(is, "lost"));
        JSON_EACH(loss, cli_items(is, "losses"))
        cli_say(c, STR(""), loss, "{task_id}: {what}\n");
    }
    return is_known && !gate_stats_number(is, "lost") ? EXIT_DONE : EXIT_FAILED;
}

/* The report of an audit that began after `before`; NULL: not finished yet. */
static const struct json *audit_newer(struct client *cl, int64_t before)
{
    const struct json *is = client_reply(cl)->json;

    return gate_stats_number(is, "began_ms") > before &&
                   gate_stats_number(is, "ended_ms")
               ? is
               : NULL;
}

static enum exit_status gate_audit(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    const struct json *is = NULL;
    int64_t before = 0;

    (void)operand;
    if (!cl)
        return status;
    for (int i = 0; i < AUDIT_TRIES && !is && !status; i++) {
        struct timespec pause = {0, AUDIT_PAUSE_MS * 1000000L};

        if (client_call(
                cl, &(struct client_request){.method = i ? "GET" : "POST",
                                             .path = STR("/api/gate/audit")}))
            status = client_fail(cl);
        else if (!i)
            before = gate_stats_number(client_reply(cl)->json, "began_ms");
        else if (!(is = audit_newer(cl, before)))
            nanosleep(&pause, NULL);
    }
    if (is)
        status = show_audit(c, is);
    else if (!status)
        status = cli_error(c, ERR_TOO_SLOW,
                           "the audit takes longer than a minute; run the "
                           "command again");
    client_free(cl);
    return status;
}

const struct sub cli_gate_subs[] = {
    {"stats", NULL, "", .one = &stats},
    {"audit", NULL, "", .run = gate_audit},
    {0},
};
