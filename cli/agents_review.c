/* Reviews of cards by admins, and reports by users. */
#include "cli/agents.h"
#include "cli/one.h"

enum { BODY_BYTES = 16 * 1024 };

static void add_changes(struct cli *c, const struct json *review,
                        const struct json *card)
{
    const struct json *changed = json_get(review, STR("changed"));
    const struct json *wanted = json_get(review, STR("card"));

    if (!changed || changed->type != JSON_ARR)
        return;
    JSON_EACH(field, changed)
    {
        struct buf was, will;

        buf_init(&was, AGENT_CARD_MAX);
        buf_init(&will, AGENT_CARD_MAX);
        agents_add_value(&was, json_get(card, field->s));
        agents_add_value(&will, json_get(wanted, field->s));
        buf_addf(&c->out, "  %.*s\n", STR_ARG(cli_tamed(c, field->s)));
        buf_add_str(&c->out, STR("    is      "));
        cli_wrapped(c, 12, 12, cli_tamed(c, was.n ? buf_str(&was) : STR("-")));
        buf_add_str(&c->out, STR("    wanted  "));
        cli_wrapped(c, 12, 12,
                    cli_tamed(c, will.n ? buf_str(&will) : STR("-")));
        buf_fini(&was);
        buf_fini(&will);
    }
}

void agents_show_review(struct cli *c, const struct json *card)
{
    const struct json *review = json_get(card, STR("review"));
    int64_t n_reports = json_int_or(json_get(card, STR("reports")), 0);
    struct str name = cli_field(card, STR("name"));
    struct str state = cli_field(review, STR("state"));

    if (n_reports)
        buf_addf(&c->out,
                 "\nReported by users: %lld. signalbox agents reports "
                 "%.*s\n",
                 (long long)n_reports, STR_ARG(cli_tamed(c, name)));
    if (!state.n)
        return;
    buf_add_char(&c->out, '\n');
    cli_coloured(c, BOLD, STR("Review"));
    buf_add_char(&c->out, '\n');
    cli_named(c, "state", state);
    cli_named(c, "by", cli_field(review, STR("by")));
    cli_named(c, "reason", cli_field(review, STR("reason")));
    cli_named_time(c, "since", cli_field_int(review, STR("at_ms")));
    add_changes(c, review, card);
    buf_addf(&c->out,
             "To approve it, an admin runs: signalbox agents approve "
             "%.*s --revision %lld\n",
             STR_ARG(cli_tamed(c, name)),
             (long long)cli_field_int(card, STR("revision")));
}

static void show_review_state(struct cli *c, const struct one *o,
                              const struct json *a)
{
    struct str state = cli_field(json_get(a, STR("review")), STR("state"));

    buf_addf(&c->out, "%.*s is %.*s\n", STR_ARG(cli_tamed(c, o->id)),
             STR_ARG(state.n ? cli_tamed(c, state) : STR("approved")));
}

static void show_reported(struct cli *c, const struct one *o,
                          const struct json *a)
{
    (void)a;
    buf_addf(&c->out, "%.*s is reported to the admins\n",
             STR_ARG(cli_tamed(c, o->id)));
}

static enum exit_status agent_review(
    struct cli *c, struct str name, const char *action, bool needs_revision,
    void (*show)(struct cli *, const struct one *, const struct json *))
{
    struct str given = args_get(&c->args, "revision");
    int64_t revision = 0;
    enum exit_status status;
    struct json_out o;
    struct buf body;

    if ((given.n || needs_revision) &&
        (!given.n || str_to_i64(given, &revision) || revision < 1))
        return cli_error(c, ERR_USAGE,
                         "give the revision that you have read, --revision N; "
                         "signalbox agents show %.*s prints it and the changes",
                         STR_ARG(str_head(name, AGENT_NAME_MAX)));
    buf_init(&body, BODY_BYTES);
    o = json_out(&body);
    json_open(&o, '{');
    if (revision)
        json_member_int(&o, "revision", revision);
    json_member_some(&o, "reason", args_get(&c->args, "reason"));
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the reason is too long")
                       : cli_one(c, &(struct one){.method = "POST",
                                                  .folder = "/api/agents/",
                                                  .id = name,
                                                  .action = action,
                                                  .called = "name",
                                                  .body = buf_str(&body),
                                                  .show = show});
    buf_fini(&body);
    return status;
}

enum exit_status agents_judge(struct cli *c, struct str name)
{
    struct str command = c->args.operands[0];
    bool is_approval = str_eq(command, STR("approve"));

    return agent_review(c, name,
                        is_approval                      ? "/approve"
                        : str_eq(command, STR("reject")) ? "/reject"
                                                         : "/hide",
                        is_approval, show_review_state);
}

/* Reports. */

enum exit_status agents_report(struct cli *c, struct str name)
{
    if (!args_get(&c->args, "reason").n)
        return cli_error(c, ERR_USAGE,
                         "describe the problem with --reason TEXT");
    return agent_review(c, name, "/report", false, show_reported);
}

static void show_reports(struct cli *c, const struct one *o,
                         const struct json *answer)
{
    const struct json *items = json_get(answer, STR("items"));

    if (!items || items->type != JSON_ARR || !items->kids.n) {
        buf_addf(&c->out, "%.*s has no reports\n",
                 STR_ARG(cli_tamed(c, o->id)));
        return;
    }
    JSON_EACH(item, items)
    {
        cli_coloured(c, BOLD, cli_tamed(c, cli_field(item, STR("user"))));
        buf_add_char(&c->out, '\n');
        cli_indented_text(c, 2, cli_field(item, STR("reason")));
        cli_named_time(c, "reported", cli_field_int(item, STR("at_ms")));
    }
}

enum exit_status agents_reports(struct cli *c, struct str name)
{
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .action = "/reports",
                                    .called = "name",
                                    .show = show_reports});
}

static void say_dismissed(struct cli *c, const struct one *o,
                          const struct json *a)
{
    (void)a;
    buf_addf(&c->out, "the reports about %.*s are removed\n",
             STR_ARG(cli_tamed(c, o->id)));
}

enum exit_status agents_dismiss(struct cli *c, struct str name)
{
    return cli_one(c, &(struct one){.method = "DELETE",
                                    .folder = "/api/agents/",
                                    .id = name,
                                    .action = "/reports",
                                    .called = "name",
                                    .show = say_dismissed});
}
