/* gate: the gate's decision about an envelope and its reasons, the gate's
 * figures with their targets, and a check for lost messages. A decision is made
 * here with local rules and a local state, or by the server. Nothing is sent or
 * stored. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/rfc3339.h"
#include "cli/list.h"
#include "cli/slurp.h"
#include "cli/span.h"
#include "gate/dry_run.h"

const struct arg_option cli_gate_options[] = {
    {"rules", "FILE", "decide without a server, by these rules", false},
    {"state", "FILE", "decide without a server, with these agents and history",
     false},
    {"now", "TIME", "decide as of this time: 2025-02-15T09:00:00Z", false},
    CLIENT_OPTIONS,
    {0},
};

/* A decision. */

enum {
    ENVELOPE_FILE_MAX = 2 * 1024 * 1024,
    DECISION_BYTES = 32 * 1024 * 1024,
};

/* A file, or standard input for "-". False: the error has been printed. */
static bool gate_try_read_file(struct cli *c, struct str path, size_t most,
                               struct buf *out, enum exit_status *status)
{
    char name[4096];
    bool is_stdin = str_eq(path, STR("-"));
    enum err e = ERR_IO;
    int fd = -1;

    buf_init(out, most + SLURP_BYTES);
    if (path.n < sizeof(name)) {
        memcpy(name, path.p, path.n);
        name[path.n] = '\0';
        fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    } else {
        errno = ENAMETOOLONG;
    }
    if (fd >= 0)
        e = slurp(fd, out, most);
    if (e == ERR_LIMIT || out->over)
        *status = cli_error(c, ERR_LIMIT, "%.*s is larger than %zu bytes",
                            STR_ARG(path), most);
    else if (e)
        *status = cli_error(c, ERR_IO, "cannot read %.*s: %s", STR_ARG(path),
                            strerror(errno));
    if (fd > STDIN_FILENO)
        close(fd);
    return !e && !out->over;
}

static enum colour colour_of(struct str decision)
{
    switch (gate_answer_of(decision)) {
    case GATE_ROUTE: return GREEN;
    case GATE_ESCALATE:
    case GATE_PAUSE: return RED;
    case GATE_HOLD_INPUT:
    case GATE_HOLD_CAPACITY:
    case GATE_DROP: break;
    }
    return YELLOW;
}

static void as_rule(const struct cell *cell, struct buf *out)
{
    struct str rule = json_str_or(cell->v, STR(""));

    buf_add_str(out, rule.n ? rule : STR("-"));
}

static void as_yes_or_no(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, json_bool_or(cell->v, false) ? STR("yes") : STR("no"));
}

static const struct grid_column trace_columns[] = {
    {"CHECK", "section", NULL, KEPT, NULL},
    {"RULE", "rule", as_rule, KEPT, NULL},
    {"FIRED", "fired", as_yes_or_no, KEPT, NULL},
    {"WHY", "why", NULL, KEPT, NULL},
    {0},
};

static const struct field decision_fields[] = {
    {"from", "original_from", NULL},    {"to", "original_to", NULL},
    {"reason", "reason", NULL},         {"rule", "rule", NULL},
    {"priority", "priority", NULL},     {"sla", "sla", NULL},
    {"held until", "held_until", NULL}, {"waits for", "waits_for", NULL},
    {"warning", "warnings", NULL},      {0},
};

static void gate_show_decision(struct cli *c, const struct json *d)
{
    struct str decision = cli_tamed(c, cli_field(d, STR("routing_decision")));
    struct item_table t;

    if (c->json) {
        cli_json_line(&c->out, d);
        return;
    }
    cli_coloured(c, colour_of(decision), decision);
    buf_add_char(&c->out, '\n');
    cli_fields(c, d, decision_fields);
    item_table_init(&t, c, trace_columns, 0);
    JSON_EACH(check, cli_items(d, "trace"))
    item_table_add(&t, check);
    if (t.grid.n_rows) {
        buf_add_char(&c->out, '\n');
        grid_write(&t.grid, &c->out, c->window, c->colour, c->unicode);
    }
    item_table_fini(&t);
}

/* Local decisions. */

/* "routing_rules.json:12:7: …", one line each; one error in JSON. */
static enum exit_status bad_rules(struct cli *c, struct str path, enum err e,
                                  const struct gate_problems *p)
{
    struct str rest = {p->text, p->n_bytes};
    enum exit_status status = EXIT_USAGE;
    struct buf words;

    if (!rest.n)
        return cli_error(c, e, "%.*s: %s", STR_ARG(path), err_row(e)->wording);
    buf_init(&words, 64 * 1024);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        buf_addf(&words, "%s%.*s:%.*s", words.n ? "; " : "", STR_ARG(path),
                 STR_ARG(line));
        if (c->json && rest.n)
            continue;
        status = cli_error(c, ERR_BAD_CONFIG, "%.*s", STR_ARG(buf_str(&words)));
        buf_clear(&words);
    }
    buf_fini(&words);
    return status;
}

static enum exit_status decide_here(struct cli *c,
                                    const struct dry_run_papers *in)
{
    enum exit_status status = EXIT_DONE;
    struct why why = {""};
    struct arena arena;
    struct buf out;
    enum err e;

    buf_init(&out, DECISION_BYTES);
    arena_init(&arena, 4 * (size_t)DECISION_BYTES);
    e = dry_run_decide(in, &out, &why);
    if (e) {
        status = cli_error(c, e, "%s", why.text);
    } else {
        const struct json *d = json_parse(&arena, buf_str(&out), 0, NULL);

        if (d)
            gate_show_decision(c, d);
        else
            status = cli_error(c, ERR_NOMEM, "out of memory");
    }
    buf_fini(&out);
    arena_fini(&arena);
    return status;
}

static enum exit_status with_rules(struct cli *c, struct dry_run_papers *in)
{
    static struct gate_problems problems;
    struct str path = args_get(&c->args, "rules");
    enum exit_status status = EXIT_DONE;
    struct gate_rules *own = NULL;
    struct buf text;
    enum err e;

    in->rules = gate_rules_none();
    if (!args_has(&c->args, "rules"))
        return decide_here(c, in);
    if (gate_try_read_file(c, path, GATE_RULES_BYTES, &text, &status)) {
        e = gate_rules_read(buf_str(&text), &own, &problems);
        in->rules = own;
        status = e ? bad_rules(c, path, e, &problems) : decide_here(c, in);
    }
    buf_fini(&text);
    gate_rules_free(own);
    return status;
}

static enum exit_status try_here(struct cli *c, struct str envelope)
{
    struct dry_run_papers in = {
        .envelope = envelope, .state = STR("{}"), .with_trace = true};
    enum exit_status status = EXIT_DONE;
    struct str now = args_get(&c->args, "now");
    struct buf state;

    in.now_ms = cli_now_ms();
    if (args_has(&c->args, "now") && !rfc3339_read(now, &in.now_ms))
        return cli_error(c, ERR_USAGE,
                         "--now must be a time like 2025-02-15T09:00:00Z, not "
                         "\"%.*s\"",
                         STR_ARG(now));
    if (!args_has(&c->args, "state"))
        return with_rules(c, &in);
    if (gate_try_read_file(c, args_get(&c->args, "state"), GATE_STATE_BYTES,
                           &state, &status)) {
        in.state = buf_str(&state);
        status = with_rules(c, &in);
    }
    buf_fini(&state);
    return status;
}

static bool put_envelope(struct cli *c, struct json_out *o,
                         enum exit_status *status)
{
    struct buf envelope;
    bool is_good = gate_try_read_file(c, c->args.operands[0], ENVELOPE_FILE_MAX,
                                      &envelope, status);

    if (is_good && args_has(&c->args, "now"))
        *status = cli_error(c, ERR_USAGE,
                            "--now needs --rules or --state: a server uses its "
                            "own clock");
    else if (is_good && json_check(buf_str(&envelope), NULL))
        *status = cli_error(c, ERR_USAGE, "the envelope is not valid JSON");
    else if (is_good) {
        json_member_bool(o, "trace", true);
        json_member_raw(o, "envelope", buf_str(&envelope));
    }
    buf_fini(&envelope);
    return !*status;
}

static enum exit_status gate_fail(struct cli *c, struct client *cl)
{
    (void)c;
    return client_fail_to(cl);
}

static enum exit_status gate_try(struct cli *c, struct str path)
{
    static const struct one decision = {.method = "POST",
                                        .path = "/api/gate",
                                        .notice = "Deciding",
                                        .put = put_envelope,
                                        .show = gate_show_decision,
                                        .fail = gate_fail};
    enum exit_status status = EXIT_DONE;
    struct buf envelope;

    if (!args_has(&c->args, "rules") && !args_has(&c->args, "state"))
        return cli_one(c, &decision, path);
    if (gate_try_read_file(c, path, ENVELOPE_FILE_MAX, &envelope, &status))
        status = try_here(c, buf_str(&envelope));
    buf_fini(&envelope);
    return status;
}

/* Figures. */

enum { AUDIT_TRIES = 600, AUDIT_PAUSE_MS = 100 };

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
             (long long)cli_field_int(figure, STR("value")));
    snprintf(target, sizeof(target), "%s %lld", sign,
             (long long)cli_field_int(figure, STR("target")));
    gate_stats_show_line(c, figure, value, words, target);
}

/* The messages of all users: for admins. */
static void gate_stats_show(struct cli *c, const struct json *f)
{
    static const char *const names[] = {"immediate", "hold", "pause",
                                        "escalate", "drop"};
    const struct json *decisions = cli_member(f, "decisions_24h");
    const struct json *routed = cli_member(f, "routed_per_hour");
    const struct json *hold = cli_member(f, "hold_ms");
    char most[64];

    show_figure(c, routed, "routed in the last hour", "at least");
    buf_addf(&c->out, "%10.1f  an hour, over a day\n",
             json_real_or(cli_member(routed, "average_24h"), 0));
    snprintf(most, sizeof(most), "at most %s",
             span_write(cli_field_int(hold, STR("target"))).text);
    gate_stats_show_line(c, hold,
                         span_write(cli_field_int(hold, STR("value"))).text,
                         "average hold, NORMAL", most);
    buf_addf(&c->out, "%10s  longest hold\n",
             span_write(cli_field_int(hold, STR("longest"))).text);
    show_figure(c, cli_member(f, "escalations_per_day"), "escalated in a day",
                "under");
    /* Before the first audit the number is not known. */
    if (json_int_or(cli_member(f, "lost.audited_ms"), 0))
        show_figure(c, cli_member(f, "lost"), "lost", "at most");
    else
        buf_addf(&c->out, "%10s  lost: no audit has finished yet\n", "?");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        buf_addf(&c->out, "%10lld  decisions in a day: %s\n",
                 (long long)cli_field_int(decisions, str_of(names[i])),
                 names[i]);
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
                 (long long)cli_field_int(is, STR("accepted")),
                 (long long)cli_field_int(is, STR("over")));
        buf_addf(&c->out, "%10lld  unfinished\n%10lld  lost\n",
                 (long long)cli_field_int(is, STR("unfinished")),
                 (long long)cli_field_int(is, STR("lost")));
        JSON_EACH(loss, cli_items(is, "losses"))
        cli_say(c, STR(""), loss, "{task_id}: {what}\n");
    }
    return is_known && !cli_field_int(is, STR("lost")) ? EXIT_DONE
                                                       : EXIT_FAILED;
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
            before = cli_field_int(client_reply(cl)->json, STR("began_ms"));
        else {
            /* The report of an audit that began after `before`. */
            is = client_reply(cl)->json;
            if (cli_field_int(is, STR("began_ms")) > before &&
                cli_field_int(is, STR("ended_ms")))
                break;
            is = NULL;
            nanosleep(&pause, NULL);
        }
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

enum exit_status cli_gate(struct cli *c)
{
    struct str first = c->args.operands[0];
    bool is_slip = first.n > 0;

    /* A mistyped subcommand has lower-case letters, and is not a file. */
    for (size_t i = 0; i < first.n; i++)
        is_slip &= first.p[i] >= 'a' && first.p[i] <= 'z';
    if (c->args.n_operands &&
        (str_eq(first, STR("stats")) || str_eq(first, STR("audit"))))
        return cli_sub(c);
    if (c->args.n_operands == 1 && is_slip && access(first.p, F_OK) != 0)
        return cli_error(c, ERR_USAGE,
                         "\"%.*s\" is neither a file nor a command; known: "
                         "gate ENVELOPE, gate stats, gate audit, and the "
                         "commands holds and escalations",
                         STR_ARG(str_head(first, 64)));
    if (c->args.n_operands == 1)
        return gate_try(c, c->args.operands[0]);
    return cli_error(c, ERR_USAGE,
                     "name the file of an envelope, or - for standard input: "
                     "signalbox gate --rules routing_rules.json --state "
                     "state.json envelope.json");
}
