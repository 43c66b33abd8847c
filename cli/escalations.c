/* escalations: messages that wait for a person's decision. */
#include "cli/list.h"
#include "cli/one.h"
#include "cli/span.h"

#include <stdio.h>

enum {
    NARROW = 132 /* columns; fewer have the most important fields only */
};

const struct arg_option cli_escalations_options[] = {
    {"status", "STATUS",
     "only this status: open (default), approved, rejected, redirected, "
     "expired, resolved, all",
     false},
    {"kind", "KIND", "only this kind: rule, dead, late, expired", false},
    {"agent", "AGENT", "only messages for this agent", false},
    {"limit", "N", "list at most N escalations (default 50)", false},
    {"comment", "TEXT", "the reason for the decision", false},
    CLIENT_OPTIONS,
    {0},
};

static const char *escalation_status_colour(struct str status)
{
    if (str_eq(status, STR("open")))
        return "\033[33m";
    if (str_eq(status, STR("rejected")) || str_eq(status, STR("expired")))
        return "\033[31m";
    return "\033[32m";
}

/* The list. */

static bool escalations_is_narrow(const struct cli *c)
{
    return c->window && c->window < NARROW;
}

static void escalations_add_row(struct listing *l, const struct json *item)
{
    struct span_text age =
        span_write(l->now_ms - cli_field_int(item, STR("at_ms")));
    struct str cells[] = {cli_field(item, STR("id")),
                          cli_field(item, STR("status")),
                          cli_field(item, STR("kind")),
                          cli_field(item, STR("from")),
                          cli_field(item, STR("agent")),
                          cli_field(item, STR("reference")),
                          str_of(age.text),
                          cli_field(item, STR("reason"))};
    bool has_status = args_has(&l->c->args, "status");
    struct str few[] = {cells[0], cells[has_status ? 1 : 4], cells[6],
                        cells[7]};

    grid_add(&l->grid, escalations_is_narrow(l->c) ? few : cells);
}

/* False: the error has been printed. */
static bool escalations_add_filters(struct cli *c, struct buf *path,
                                    enum exit_status *status)
{
    struct str which = STR("open"), kind = STR("");
    struct str agent = args_get(&c->args, "agent");

    if (!cli_one_of(c, "status", cli_words("escalations", "status"), &which,
                    status) ||
        !cli_one_of(c, "kind", cli_words("escalations", "kind"), &kind, status))
        return false;
    buf_add_str(path, STR("/api/escalations"));
    if (!str_eq(which, STR("all")))
        client_add_query(path, "status", which);
    if (kind.n)
        client_add_query(path, "kind", kind);
    if (agent.n)
        client_add_query(path, "agent", agent);
    return true;
}

static enum exit_status escalations_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {
        {"ID", NULL},   {"STATUS", escalation_status_colour},
        {"KIND", NULL}, {"FROM", NULL},
        {"TO", NULL},   {"REFERENCE", NULL},
        {"AGE", NULL},  {"REASON", NULL}};
    static const struct grid_head few[] = {
        {"ID", NULL}, {"TO", NULL}, {"AGE", NULL}, {"REASON", NULL}};
    static const struct grid_head any[] = {{"ID", NULL},
                                           {"STATUS", escalation_status_colour},
                                           {"AGE", NULL},
                                           {"REASON", NULL}};
    bool has_status = args_has(&c->args, "status");
    struct list_kind kind = {.heads = !escalations_is_narrow(c) ? heads
                                      : has_status              ? any
                                                                : few,
                             .n_heads = escalations_is_narrow(c) ? 4 : 8,
                             .add = escalations_add_row,
                             .most = 100000,
                             .preset = 50,
                             .none = "No open escalations.\n",
                             .tells_of_further = true};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    (void)operand;
    buf_init(&path, 16 * 1024);
    if (escalations_add_filters(c, &path, &status)) {
        if (has_status || args_has(&c->args, "agent") ||
            args_has(&c->args, "kind"))
            kind.none = "No escalation matches.\n";
        kind.path = buf_str(&path);
        status = cli_list(c, &kind);
    }
    buf_fini(&path);
    return status;
}

/* One of them. */

static void escalation_show_fields(struct cli *c, const struct one *o,
                                   const struct json *x)
{
    const struct json *task = json_get(x, STR("task"));

    (void)o;
    buf_addf(&c->out, "%.*s  %.*s\n",
             STR_ARG(cli_tamed(c, cli_field(x, STR("id")))),
             STR_ARG(cli_tamed(c, cli_field(x, STR("status")))));
    cli_named(c, "reason", cli_field(x, STR("reason")));
    cli_named(c, "kind", cli_field(x, STR("kind")));
    cli_named(c, "rule", cli_field(x, STR("rule")));
    cli_named(c, "from", cli_field(x, STR("from")));
    cli_named(c, "to", cli_field(x, STR("agent")));
    cli_named(c, "type", cli_field(x, STR("type")));
    cli_named(c, "reference", cli_field(x, STR("reference")));
    cli_named(c, "priority", cli_field(x, STR("priority")));
    cli_named(c, "task", cli_field(x, STR("task_id")));
    cli_named(c, "backup", cli_field(x, STR("offer")));
    cli_named_time(c, "created", cli_field_int(x, STR("at_ms")));
    cli_named_time(c, "expires", cli_field_int(x, STR("expires_ms")));
    cli_named_time(c, "decided", cli_field_int(x, STR("decided_ms")));
    cli_named(c, "by", cli_field(x, STR("by")));
    cli_named(c, "comment", cli_field(x, STR("comment")));
    cli_named(c, "redirected to", cli_field(x, STR("redirected_to")));
    cli_section(c, "Message", cli_field(task, STR("text")));
}

static void say_status(struct cli *c, const struct one *o, const struct json *x)
{
    buf_addf(&c->out, "%.*s is %.*s\n", STR_ARG(cli_tamed(c, o->id)),
             STR_ARG(cli_tamed(c, cli_field(x, STR("status")))));
}

static enum exit_status escalation_show(struct cli *c, struct str id)
{
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/escalations/",
                                    .id = id,
                                    .called = "ID",
                                    .show = escalation_show_fields});
}

/* approve, reject or redirect. */
static enum exit_status escalation_post_decision(struct cli *c, struct str id)
{
    struct str command = c->args.operands[0];
    struct str comment = args_get(&c->args, "comment");
    const char *action = str_eq(command, STR("approve"))  ? "/approve"
                         : str_eq(command, STR("reject")) ? "/reject"
                                                          : "/redirect";
    enum exit_status status;
    struct json_out o;
    struct buf body;

    buf_init(&body, 64 * 1024);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "agent", c->args.operands[2]);
    json_member_some(&o, "comment", comment);
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the comment is too long")
                       : cli_one(c, &(struct one){.method = "POST",
                                                  .folder = "/api/escalations/",
                                                  .id = id,
                                                  .action = action,
                                                  .called = "ID",
                                                  .body = buf_str(&body),
                                                  .show = say_status});
    buf_fini(&body);
    return status;
}

const struct sub cli_escalations_subs[] = {
    {"list", NULL, "status kind agent limit", escalations_list},
    {"show", "ID", "", escalation_show},
    {"approve", "ID", "comment", escalation_post_decision},
    {"reject", "ID", "comment", escalation_post_decision},
    {"redirect", "ID AGENT", "comment", escalation_post_decision},
    {0},
};

enum exit_status cli_escalations(struct cli *c)
{
    cli_show_alone(c, STR("esc_"));
    return cli_sub(c, cli_escalations_subs);
}
