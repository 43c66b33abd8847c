/* lint: finds cards that make choosing an agent harder. The rules are in
 * lint_rules.h; this file reads the agents and prints the findings. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/finding.h"
#include "lab/lint_fleet.h"

const struct arg_option cli_lint_options[] = {
    {"server", NULL, "check a server's agents, not the configuration's", false},
    {"twins", "SIMILARITY", "report agents at least this similar; default: 0.9",
     false},
    {"limit", "N", "the most findings of one kind; default: 20", false},
    {"quiet", NULL, "leave out findings that may be intended", false},
    {"config", "FILE", "read this file instead of signalbox.jsonc", false},
    {"set", "NAME=VALUE", "any one setting; may be repeated", true},
    CLIENT_OPTIONS,
    {0},
};

struct lint_run {
    struct cli *c;
    int64_t limit;
    const char *check; /* the current one */
    int64_t n_of_check, n_found, n_notes;
};

/* Output. */

static void lint_put_finding(struct cli *c, const struct lint_finding *f)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_member_text(&o, "check", str_of(f->check));
    json_member_text(&o, "rule", str_of(f->rule));
    json_member_text(&o, "status", f->is_note ? STR("note") : STR("warning"));
    json_key(&o, STR("agents"));
    json_open(&o, '[');
    for (size_t i = 0; i < f->n_agents; i++)
        json_put_str(&o, f->agents[i]);
    json_close(&o, ']');
    json_member_some(&o, "keyword", f->keyword);
    json_member_text(&o, "message", str_of(f->text));
    json_member_text(&o, "advice", str_of(f->advice));
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

static void lint_on_finding(void *ctx, const struct lint_finding *f)
{
    struct lint_run *l = ctx;
    struct finding shown;

    if (f->is_note && args_has(&l->c->args, "quiet"))
        return;
    l->n_found += !f->is_note;
    l->n_notes += f->is_note;
    if (l->n_of_check++ >= l->limit)
        return;
    if (l->c->json) {
        lint_put_finding(l->c, f);
        return;
    }
    finding_set(&shown, f->is_note ? NOTED : DOUBTFUL, "%s", f->text);
    finding_advise(&shown, "%s", f->advice);
    finding_show(l->c, f->check, &shown);
}

static void lint_end_check(struct lint_run *l, const char *good)
{
    struct finding shown;

    if (l->c->json)
        return;
    shown.advice[0] = '\0';
    if (l->n_of_check > l->limit) {
        finding_set(&shown, DOUBTFUL, "and %lld more; --limit shows them",
                    (long long)(l->n_of_check - l->limit));
        finding_show(l->c, l->check, &shown);
    } else if (!l->n_of_check) {
        finding_set(&shown, GOOD, "%s", good);
        finding_show(l->c, l->check, &shown);
    }
}

static enum err lint_run_rules(struct lint_run *l,
                               const struct lint_fleet *fleet)
{
    static const struct {
        const char *name;
        enum err (*run)(const struct lint_fleet *fleet, lint_fn *each,
                        void *ctx);
        const char *good;
    } checks[] = {
        {"keywords", lint_keywords, "every keyword belongs to one agent"},
        {"twins", lint_twins, "no two agents have similar descriptions"},
        {"reach", lint_reach,
         "every agent can be reached, and gets its examples"},
        {"bindings", lint_bindings, "no binding hides another"},
        {"cards", lint_cards, "every card is complete and can be reached"},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        enum err e;

        l->check = checks[i].name;
        l->n_of_check = 0;
        if (checks[i].run == lint_bindings && !fleet->is_configured)
            continue; /* a server does not list them */
        e = checks[i].run(fleet, lint_on_finding, l);
        if (e)
            return e;
        lint_end_check(l, checks[i].good);
    }
    return OK;
}

/* Agents whose cards are of another version, or beyond the limit. */
static void lint_print_left_out(struct cli *c, const struct lint_agents *h)
{
    size_t n = 0;

    buf_add_str(&c->out, STR("Left out:"));
    for (; n < LINT_LEFT_OUT_SHOWN && h->left_out[n].n; n++)
        buf_addf(&c->out, "%s %.*s", n ? "," : "",
                 STR_ARG(cli_tamed(c, h->left_out[n])));
    buf_add_str(&c->out, h->n_left_out > n ? STR(", ...\n") : STR("\n"));
}

static void lint_sum_up(struct lint_run *l, const struct lint_agents *h)
{
    struct cli *c = l->c;

    if (c->json)
        return;
    buf_addf(&c->out, "\n%zu agent%s checked, %lld warning%s", h->n,
             h->n == 1 ? "" : "s", (long long)l->n_found,
             l->n_found == 1 ? "" : "s");
    if (l->n_notes)
        buf_addf(&c->out, ", %lld note%s", (long long)l->n_notes,
                 l->n_notes == 1 ? "" : "s");
    if (h->n_left_out)
        buf_addf(&c->out, "; %zu agent%s left out", h->n_left_out,
                 h->n_left_out == 1 ? " was" : "s were");
    buf_add_char(&c->out, '\n');
    if (h->left_out[0].n)
        lint_print_left_out(c, h);
}

static enum exit_status lint_all(struct lint_run *l, struct lint_agents *h)
{
    struct why why = {""};
    enum err e;

    if (!h->n)
        return cli_error(l->c, ERR_USAGE, "%s",
                         h->fleet.is_configured
                             ? "the configuration has no agents to check; "
                               "--server checks those of a server"
                             : "the server has no agents that you may see");
    e = lint_agents_build(h, &why);
    if (e)
        return cli_error(l->c, e, "%s", why.text);
    e = lint_run_rules(l, &h->fleet);
    if (e)
        return cli_error(l->c, e, "out of memory");
    lint_sum_up(l, h);
    return l->n_found ? EXIT_FAILED : EXIT_DONE;
}

/* The agents. */

static bool lint_on_card(void *ctx, const struct json *card)
{
    return lint_agents_add(ctx, card);
}

/* The warnings are only in the card of a single agent, not in lists. An agent
 * that was removed meanwhile has none. */
static enum err lint_fetch_warnings(struct client *cl, struct lint_agents *h,
                                    size_t i)
{
    struct buf path;
    enum err e;

    buf_init(&path, 4096);
    buf_add_str(&path, STR("/api/agents/"));
    client_add_part(&path, h->agents[i].name);
    e = client_call(cl, &(struct client_request){.method = "GET",
                                                 .path = buf_str(&path),
                                                 .notice = "Reading cards"});
    buf_fini(&path);
    if (!e && !lint_agents_warn(
                  h, i, json_get(client_reply(cl)->json, STR("warnings"))))
        e = ERR_NOMEM;
    return e == ERR_AGENT_NOT_FOUND || e == ERR_NOT_FOUND ? OK : e;
}

static bool lint_fetch_agents(struct cli *c, struct lint_agents *h,
                              enum exit_status *status)
{
    struct client *cl = client_new(c, status);
    enum err e;
    bool more;

    if (!cl)
        return false;
    e = client_list(cl, STR("/api/agents"), LINT_AGENTS_MAX + 1, lint_on_card,
                    h, &more);
    for (size_t i = 0; !e && i < h->n; i++)
        if (lint_agents_needs_server(h, i))
            e = lint_fetch_warnings(cl, h, i);
    if (e)
        *status =
            e == ERR_NOMEM ? cli_error(c, e, "out of memory") : client_fail(cl);
    client_free(cl);
    return !e;
}

static enum exit_status lint_with(struct cli *c, const struct config *cfg)
{
    struct lint_run l = {.c = c};
    enum exit_status status = EXIT_DONE;
    struct lint_agents h;
    bool is_good;

    lint_agents_init(&h, c, cfg);
    is_good =
        cli_number(c, "limit", 1, 1000000, 20, &l.limit, &status) &&
        cli_real(c, "twins", 0.5, 1, ADVICE_CLOSE, &h.fleet.twins, &status);
    if (is_good && args_has(&c->args, "server"))
        is_good = lint_fetch_agents(c, &h, &status);
    else if (is_good && !lint_agents_add_configured(&h))
        is_good = false, status = cli_error(c, ERR_NOMEM, "out of memory");
    if (is_good)
        status = lint_all(&l, &h);
    lint_agents_fini(&h);
    return status;
}

enum exit_status cli_lint(struct cli *c)
{
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct config *cfg;

    cli_source(c, &src);
    if (c->args.n_operands && (src.path || args_has(&c->args, "server")))
        return cli_error(c, ERR_USAGE,
                         "give FILE, --config FILE or --server, "
                         "and only one of them");
    if (c->args.n_operands)
        src.path = c->args.operands[0].p;
    cfg = config_load(&src, &report);
    if (!cfg) {
        fputs(report.text, stderr);
        return cli_error(c, ERR_BAD_CONFIG,
                         "the configuration has errors; signalbox check "
                         "reports them too");
    }
    status = lint_with(c, cfg);
    config_free(cfg);
    return status;
}
