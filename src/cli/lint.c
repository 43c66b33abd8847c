/* lint: what makes choosing harder than it need be. The rules are in
 * lint_rules.h; here is where the agents come from, and how it is said. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/finding.h"
#include "cli/lint_fleet.h"

const struct arg_option cli_lint_options[] = {
    {"server", NULL, "look at a server's agents, not the configuration's",
     false},
    {"twins", "LIKENESS", "how alike is too alike; 0.9 if not given", false},
    {"limit", "N", "findings of one kind at most; 20 if not given", false},
    {"quiet", NULL, "leave out what may well be as it should be", false},
    {"config", "FILE", "read this file instead of signalbox.jsonc", false},
    {"set", "NAME=VALUE", "any one setting; may be repeated", true},
    CLIENT_OPTIONS,
    {0},
};

struct linting {
    struct cli *c;
    int64_t limit;
    const char *check; /* that is being made */
    int64_t n_of_check, n_found, n_notes;
};

/* Saying it. */

static void put_finding(struct cli *c, const struct lint_finding *f)
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

static void on_finding(void *ctx, const struct lint_finding *f)
{
    struct linting *l = ctx;
    struct finding shown;

    if (f->is_note && args_has(&l->c->args, "quiet"))
        return;
    l->n_found += !f->is_note;
    l->n_notes += f->is_note;
    if (l->n_of_check++ >= l->limit)
        return;
    if (l->c->json) {
        put_finding(l->c, f);
        return;
    }
    found(&shown, f->is_note ? NOTED : DOUBTFUL, "%s", f->text);
    advise(&shown, "%s", f->advice);
    finding_show(l->c, f->check, &shown);
}

static void end_check(struct linting *l, const char *good)
{
    struct finding shown;

    if (l->c->json)
        return;
    shown.advice[0] = '\0';
    if (l->n_of_check > l->limit) {
        found(&shown, DOUBTFUL, "and %lld more; --limit shows them",
              (long long)(l->n_of_check - l->limit));
        finding_show(l->c, l->check, &shown);
    } else if (!l->n_of_check) {
        found(&shown, GOOD, "%s", good);
        finding_show(l->c, l->check, &shown);
    }
}

static enum err look(struct linting *l, const struct lint_fleet *fleet)
{
    static const struct {
        const char *name;
        enum err (*run)(const struct lint_fleet *fleet, lint_fn *each,
                        void *ctx);
        const char *good;
    } checks[] = {
        {"keywords", lint_keywords, "every keyword stands for one agent"},
        {"twins", lint_twins, "no two agents say the same of themselves"},
        {"reach", lint_reach,
         "everybody can be reached, and gets what their "
         "examples say"},
        {"bindings", lint_bindings, "no binding stands in another's way"},
        {"cards", lint_cards, "every card says enough and can be reached"},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        enum err e;

        l->check = checks[i].name;
        l->n_of_check = 0;
        if (checks[i].run == lint_bindings && !fleet->is_configured)
            continue; /* a server does not tell */
        e = checks[i].run(fleet, on_finding, l);
        if (e)
            return e;
        end_check(l, checks[i].good);
    }
    return OK;
}

/* Their cards are of another version, or there are too many agents. */
static void say_left_out(struct cli *c, const struct lint_house *h)
{
    size_t n = 0;

    buf_add_str(&c->out, STR("Left out:"));
    for (; n < LINT_LEFT_OUT_SHOWN && h->left_out[n].n; n++)
        buf_addf(&c->out, "%s %.*s", n ? "," : "",
                 STR_ARG(cli_tamed(c, h->left_out[n])));
    buf_add_str(&c->out, h->n_left_out > n ? STR(", ...\n") : STR("\n"));
}

static void sum_up(struct linting *l, const struct lint_house *h)
{
    struct cli *c = l->c;

    if (c->json)
        return;
    buf_addf(&c->out, "\n%zu agent%s looked at, %lld thing%s to mend", h->n,
             h->n == 1 ? "" : "s", (long long)l->n_found,
             l->n_found == 1 ? "" : "s");
    if (l->n_notes)
        buf_addf(&c->out, ", %lld to know", (long long)l->n_notes);
    if (h->n_left_out)
        buf_addf(&c->out, "; %zu agent%s left out", h->n_left_out,
                 h->n_left_out == 1 ? " was" : "s were");
    buf_add_char(&c->out, '\n');
    if (h->left_out[0].n)
        say_left_out(c, h);
}

static enum exit_status lint(struct linting *l, struct lint_house *h)
{
    struct why why = {""};
    enum err e;

    if (!h->n)
        return cli_error(l->c, ERR_USAGE, "%s",
                         h->fleet.is_configured
                             ? "the configuration has no agents to look at; "
                               "--server looks at those of a server"
                             : "the server has no agents that you may see");
    e = lint_house_close(h, &why);
    if (e)
        return cli_error(l->c, e, "%s", why.text);
    e = look(l, &h->fleet);
    if (e)
        return cli_error(l->c, e, "out of memory");
    sum_up(l, h);
    return l->n_found ? EXIT_FAILED : EXIT_DONE;
}

/* Where they come from. */

static bool on_card(void *ctx, const struct json *card)
{
    return lint_house_take(ctx, card);
}

/* The server's warnings are in the card of one agent, not in lists of them. An
 * agent that was removed meanwhile has none. */
static enum err fetch_warnings(struct client *cl, struct lint_house *h,
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
    if (!e && !lint_house_warn(
                  h, i, json_get(client_reply(cl)->json, STR("warnings"))))
        e = ERR_NOMEM;
    return e == ERR_AGENT_NOT_FOUND || e == ERR_NOT_FOUND ? OK : e;
}

static bool fetch_agents(struct cli *c, struct lint_house *h,
                         enum exit_status *status)
{
    struct client *cl = client_new(c, status);
    enum err e;
    bool more;

    if (!cl)
        return false;
    e = client_list(cl, STR("/api/agents"), LINT_AGENTS_MAX + 1, on_card, h,
                    &more);
    for (size_t i = 0; !e && i < h->n; i++)
        if (lint_house_needs_server(h, i))
            e = fetch_warnings(cl, h, i);
    if (e)
        *status =
            e == ERR_NOMEM ? cli_error(c, e, "out of memory") : client_fail(cl);
    client_free(cl);
    return !e;
}

static enum exit_status lint_with(struct cli *c, const struct config *cfg)
{
    struct linting l = {.c = c};
    enum exit_status status = EXIT_DONE;
    struct lint_house h;
    bool is_good;

    lint_house_init(&h, c, cfg);
    is_good =
        cli_number(c, "limit", 1, 1000000, 20, &l.limit, &status) &&
        cli_real(c, "twins", 0.5, 1, ADVICE_CLOSE, &h.fleet.twins, &status);
    if (is_good && args_has(&c->args, "server"))
        is_good = fetch_agents(c, &h, &status);
    else if (is_good && !lint_house_take_configured(&h))
        is_good = false, status = cli_error(c, ERR_NOMEM, "out of memory");
    if (is_good)
        status = lint(&l, &h);
    lint_house_fini(&h);
    return status;
}

enum exit_status cli_lint(struct cli *c)
{
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct config *cfg;

    if (!cli_source(c, &src, &status))
        return status;
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
                         "mend the configuration first; signalbox check "
                         "says the same of it");
    }
    status = lint_with(c, cfg);
    config_free(cfg);
    return status;
}
