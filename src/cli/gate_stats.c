/* gate stats, gate audit: how the gate is doing beside what it should do, and
 * whether anything was lost. */
#include <stdio.h>
#include <time.h>

#include "cli/client.h"
#include "cli/gate.h"
#include "cli/span.h"

enum { AUDIT_TRIES = 600, AUDIT_PAUSE_MS = 100 };

static int64_t number(const struct json *v, const char *key)
{
    return json_int_or(json_get(v, str_of(key)), 0);
}

static const struct json *part(const struct json *v, const char *key)
{
    return json_get(v, str_of(key));
}

/* "        12  escalated in a day            should be under 5, and is not". */
static void show_line(struct cli *c, const struct json *figure,
                      const char *value, const char *words, const char *should)
{
    bool is_met = json_bool_or(part(figure, "is_met"), true);

    buf_addf(&c->out, "%10s  %-26s ", value, words);
    if (is_met)
        buf_addf(&c->out, "should be %s\n", should);
    else
        buf_addf(&c->out, "%sshould be %s, and is not%s\n",
                 c->colour ? "\033[31m" : "", should,
                 c->colour ? "\033[0m" : "");
}

static void show_figure(struct cli *c, const struct json *figure,
                        const char *words, const char *sign)
{
    char value[32], should[64];

    snprintf(value, sizeof(value), "%lld", (long long)number(figure, "value"));
    snprintf(should, sizeof(should), "%s %lld", sign,
             (long long)number(figure, "target"));
    show_line(c, figure, value, words, should);
}

static void show_hold(struct cli *c, const struct json *figure)
{
    struct span_text value = span_write(number(figure, "value")),
                     target = span_write(number(figure, "target")),
                     longest = span_write(number(figure, "longest"));
    char should[64];

    snprintf(should, sizeof(should), "at most %s", target.text);
    show_line(c, figure, value.text, "held on average, NORMAL", should);
    buf_addf(&c->out, "%10s  held at the longest\n", longest.text);
}

/* What nobody has looked for yet is not none. */
static void show_lost(struct cli *c, const struct json *figure)
{
    if (number(figure, "audited_ms"))
        show_figure(c, figure, "lost", "at most");
    else
        buf_addf(&c->out, "%10s  lost: no audit has ended yet\n", "?");
}

/* What everybody's messages did: for admins. */
static void show_figures(struct cli *c, const struct json *f)
{
    static const char *const names[] = {"immediate", "hold", "pause",
                                        "escalate", "drop"};
    const struct json *decisions = part(f, "decisions_24h");
    const struct json *routed = part(f, "routed_per_hour");

    show_figure(c, routed, "routed in the last hour", "at least");
    buf_addf(&c->out, "%10.1f  an hour, over a day\n",
             json_real_or(part(routed, "average_24h"), 0));
    show_hold(c, part(f, "hold_ms"));
    show_figure(c, part(f, "escalations_per_day"), "escalated in a day",
                "under");
    show_lost(c, part(f, "lost"));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        buf_addf(&c->out, "%10lld  decisions in a day: %s\n",
                 (long long)number(decisions, names[i]), names[i]);
}

static void show_stats(struct cli *c, const struct json *is)
{
    const struct json *f = part(is, "figures");

    if (f && f->type == JSON_OBJ)
        show_figures(c, f);
    buf_addf(&c->out, "%10lld  held now\n",
             (long long)number(part(is, "now"), "held"));
    buf_addf(&c->out, "%10lld  waiting for a person\n",
             (long long)number(part(is, "now"), "escalations_open"));
}

static enum exit_status stats(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);

    (void)operand;
    if (!cl)
        return status;
    if (client_call(cl, &(struct client_request){.method = "GET",
                                                 .path = STR("/api/gate")}))
        status = client_fail(cl);
    else if (c->json)
        cli_json_line(&c->out, client_reply(cl)->json);
    else
        show_stats(c, client_reply(cl)->json);
    client_free(cl);
    return status;
}

static enum exit_status show_audit(struct cli *c, const struct json *is)
{
    const struct json *losses = part(is, "losses");
    bool is_known = !json_str_or(part(is, "problem"), STR("")).n;

    if (c->json) {
        cli_json_line(&c->out, is);
    } else {
        buf_addf(&c->out, "%10lld  accepted\n%10lld  of them over\n",
                 (long long)number(is, "accepted"),
                 (long long)number(is, "over"));
        buf_addf(&c->out, "%10lld  unfinished\n%10lld  lost\n",
                 (long long)number(is, "unfinished"),
                 (long long)number(is, "lost"));
        JSON_EACH(loss, losses)
        {
            struct str id = json_str_or(part(loss, "task_id"), STR("")),
                       what = json_str_or(part(loss, "what"), STR(""));

            buf_addf(&c->out, "%.*s: %.*s\n", STR_ARG(id), STR_ARG(what));
        }
    }
    return is_known && !number(is, "lost") ? EXIT_DONE : EXIT_FAILED;
}

/* One that began after we asked has ended: its word, else NULL. */
static const struct json *newer(struct client *cl, int64_t before)
{
    const struct json *is = client_reply(cl)->json;

    return number(is, "began_ms") > before && number(is, "ended_ms") ? is
                                                                     : NULL;
}

static enum exit_status audit(struct cli *c, struct str operand)
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
            before = number(client_reply(cl)->json, "began_ms");
        else if (!(is = newer(cl, before)))
            nanosleep(&pause, NULL);
    }
    if (is)
        status = show_audit(c, is);
    else if (!status)
        status = cli_error(c, ERR_TOO_SLOW,
                           "the audit takes longer than a minute; ask again");
    client_free(cl);
    return status;
}

const struct sub cli_gate_subs[] = {
    {"stats", NULL, "", stats},
    {"audit", NULL, "", audit},
    {0},
};

enum exit_status cli_gate_how(struct cli *c)
{
    return cli_sub(c, cli_gate_subs);
}
