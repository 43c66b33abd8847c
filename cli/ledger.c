/* ledger: balances, and the transfers of admins. People write and read units;
 * the API and --json have micro-units. Every transfer carries a key, which is
 * made here if none is given, so that a repeated request moves money once. */
#include "cli/ledger.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/offline.h"
#include "cli/price.h"

enum {
    BODY_MAX = 16 * 1024,
    WHOLE_COLUMNS = 8, /* before the point, at least */
};

const struct arg_option cli_ledger_options[] = {
    {"task", "ID", "refund: the charge for this task", false},
    {"amount", "AMOUNT", "refund of a task: only this part of the charge",
     false},
    {"turn", "N", "with --task: this turn (default: the last that was paid)",
     false},
    {"note", "TEXT", "a note for the statement", false},
    {"key", "KEY", "the same key never moves money a second time", false},
    {"account", "ACCOUNT",
     "statement: creator; for admins any account, like platform, or all",
     false},
    {"since", "WHEN", "only from this time on: a span like 7d, or Unix ms",
     false},
    {"until", "WHEN", "only before this time, in the same format", false},
    {"csv", NULL, "statement: all lines as CSV, for a spreadsheet", false},
    {"limit", "N", "show at most N (default: 20 lines, 1000 accounts)", false},
    OFFLINE_OPTIONS,
    CLIENT_OPTIONS,
    {0},
};

/* Balances. */

static void show_amount(struct cli *c, const char *name, int64_t micros,
                        const char *besides)
{
    struct price_text amount = amount_write(micros);
    int whole = (int)str_find(str_of(amount.text), '.', 0);

    /* Align the decimal points. */
    buf_addf(&c->out, "  %-13s %*s%-*s%s\n", name,
             whole < WHOLE_COLUMNS ? WHOLE_COLUMNS - whole : 0, "",
             *besides ? whole + 7 : 0, amount.text, besides);
}

/* Budgets from the settings; budgets may be NULL. */
static void show_budgets(struct cli *c, const struct json *budgets)
{
    const struct json *day = json_get(budgets, STR("per_day_micros"));
    int64_t talk = cli_field_int(budgets, STR("per_conversation_micros"));
    int64_t root = cli_field_int(budgets, STR("per_root_micros"));
    char of[64];

    if (day && day->type == JSON_INT) {
        snprintf(of, sizeof(of), "  of %s a day",
                 amount_write(json_int_or(day, 0)).text);
        show_amount(c, "left today",
                    cli_field_int(budgets, STR("left_today_micros")), of);
    }
    if (talk)
        show_amount(c, "at most", talk, "  for one conversation");
    if (root)
        show_amount(c, "at most", root,
                    "  for one message with all delegated work");
}

/* "of 25.00 a day, for the org acme" */
static void show_limit(struct cli *c, const struct json *b)
{
    struct str kind = cli_field(b, STR("kind"));
    struct str tame;
    struct buf of;

    buf_init(&of, 1024);
    buf_addf(&of, "  of %s a %.*s",
             amount_write(cli_field_int(b, STR("limit_micros"))).text,
             STR_ARG(cli_field(b, STR("period"))));
    if (str_eq(kind, STR("org")))
        buf_addf(&of, ", for the org %.*s", STR_ARG(cli_field(b, STR("name"))));
    else if (str_eq(kind, STR("self")))
        buf_add_str(&of, STR(", own"));
    tame = cli_tamed(c, buf_str(&of));
    if (tame.p)
        show_amount(c, "left", cli_field_int(b, STR("left_micros")), tame.p);
    buf_fini(&of);
}

static void show_balance(struct cli *c, const struct json *is)
{
    const struct json *budgets = json_get(is, STR("budgets")), *items;

    if (c->json) {
        cli_json_line(&c->out, is);
        return;
    }
    cli_coloured(c, BOLD, cli_tamed(c, cli_field(is, STR("user"))));
    buf_add_char(&c->out, '\n');
    show_amount(c, "balance", cli_field_int(is, STR("balance_micros")), "");
    show_amount(c, "reserved", cli_field_int(is, STR("reserved_micros")),
                "  for open tasks");
    show_amount(c, "earned", cli_field_int(is, STR("earned_micros")),
                "  by their agents, not paid out yet");
    if (cli_field_int(is, STR("owed_micros")))
        show_amount(c, "owed", cli_field_int(is, STR("owed_micros")),
                    "  for refunds, deducted from later earnings");
    show_amount(c, "spent today",
                cli_field_int(budgets, STR("spent_today_micros")),
                "  since 00:00 UTC");
    show_budgets(c, budgets);
    items = json_get(budgets, STR("items"));
    if (items && items->type == JSON_ARR) {
        JSON_EACH(b, items)
        {
            show_limit(c, b);
        }
    }
}

static enum exit_status balance(struct cli *c, struct str user)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    struct buf path;

    if (!cl)
        return status;
    buf_init(&path, 32 * 1024);
    buf_add_str(&path, STR("/api/ledger/balance"));
    if (c->args.n_operands > 1)
        client_add_query(&path, "user", user);
    if (client_call(cl, &(struct client_request){.method = "GET",
                                                 .path = buf_str(&path)}))
        status = client_fail(cl);
    else
        show_balance(c, client_reply(cl)->json);
    buf_fini(&path);
    client_free(cl);
    return status;
}

/* Moving money. */

struct move {
    const char *path;
    struct str user, task, key;
    struct id made_key;
    int64_t amount, turn; /* zero: not given */
};

static void ledger_put_body(struct cli *c, struct buf *body,
                            const struct move *m)
{
    struct json_out o = json_out(body);

    json_open(&o, '{');
    json_member_some(&o, "user", m->user);
    if (m->amount)
        json_member_int(&o, "amount_micros", m->amount);
    json_member_some(&o, "task_id", m->task);
    if (m->turn)
        json_member_int(&o, "turn", m->turn);
    json_member_some(&o, "note", args_get(&c->args, "note"));
    json_member_some(&o, "idempotency_key", m->key);
    json_close(&o, '}');
}

static void show_move(struct cli *c, const struct json *is)
{
    struct str kind = cli_field(is, STR("kind"));
    struct str task = cli_field(is, STR("task_id"));
    struct str user = cli_tamed(c, cli_field(is, STR("user")));
    struct price_text amount =
        amount_write(cli_field_int(is, STR("amount_micros")));
    struct price_text now =
        amount_write(cli_field_int(is, STR("balance_micros")));
    const struct json *again = json_get(is, STR("is_repeat"));

    if (c->json) {
        cli_json_line(&c->out, is);
        return;
    }
    if (task.n)
        buf_addf(&c->out, "refunded %s for %.*s to %.*s", amount.text,
                 STR_ARG(cli_tamed(c, task)), STR_ARG(user));
    else if (str_eq(kind, STR("topup")))
        buf_addf(&c->out, "%.*s got %s", STR_ARG(user), amount.text);
    else if (str_eq(kind, STR("refund")))
        buf_addf(&c->out, "paid back %s from the balance of %.*s", amount.text,
                 STR_ARG(user));
    else
        buf_addf(&c->out, "paid out %s of the earnings of %.*s", amount.text,
                 STR_ARG(user));
    buf_addf(&c->out, "; the %s now %s (%.*s)\n",
             str_eq(kind, STR("payout")) ? "remaining earnings are"
                                         : "balance is",
             now.text, STR_ARG(cli_tamed(c, cli_field(is, STR("posting")))));
    if (again && json_bool_or(again, false))
        buf_add_str(&c->out, STR("This was done before; no money has moved "
                                 "now.\n"));
}

/* The transfer may or may not have happened. */
static enum exit_status ledger_report_unknown(struct cli *c, struct client *cl,
                                              const struct move *m)
{
    const struct client_reply *r = client_reply(cl);

    if (!r->was_sent ||
        (r->err != ERR_UNREACHABLE && r->err != ERR_OUTCOME_UNKNOWN))
        return client_fail(cl);
    return cli_error(c, r->err,
                     "%.300s. The transfer may or may not have happened: "
                     "repeat the command with --key %.*s, which never does it "
                     "a second time",
                     r->why.text, STR_ARG(str_head(m->key, 255)));
}

static enum exit_status ledger_move(struct cli *c, struct move *m)
{
    enum exit_status status = EXIT_DONE;
    struct clock clock = clock_system();
    struct client *cl = client_new(c, &status);
    struct id_maker ids;
    struct buf body;

    if (!cl)
        return status;
    m->key = args_get(&c->args, "key");
    if (!m->key.n) {
        id_maker_init(&ids, rand_system());
        m->made_key = id_make(&ids, "cli", clock.wall_ms(clock.ctx));
        m->key = str_of(m->made_key.text);
    }
    buf_init(&body, BODY_MAX);
    ledger_put_body(c, &body, m);
    if (body.over)
        status = cli_error(c, ERR_USAGE, "a name, note or key is too long");
    else if (client_call(cl, &(struct client_request){.method = "POST",
                                                      .path = str_of(m->path),
                                                      .body = buf_str(&body)}))
        status = ledger_report_unknown(c, cl, m);
    else
        show_move(c, client_reply(cl)->json);
    buf_fini(&body);
    client_free(cl);
    return status;
}

/* topup, payout or refund with USER AMOUNT. */
static enum exit_status ledger_move_amount(struct cli *c, struct str user)
{
    struct str command = c->args.operands[0];
    struct move m = {.path = str_eq(command, STR("topup")) ? "/api/ledger/topup"
                             : str_eq(command, STR("payout"))
                                 ? "/api/ledger/payout"
                                 : "/api/ledger/refund",
                     .user = user};
    struct why why = {""};

    if (price_read_amount(c->args.operands[2], &m.amount, &why))
        return cli_error(c, ERR_USAGE, "%s", why.text);
    return ledger_move(c, &m);
}

/* --task ID, or a task ID as the only operand. */
static struct str refunded_task(struct cli *c)
{
    struct str task = args_get(&c->args, "task");

    if (!task.n && c->args.n_operands == 2 &&
        id_is_valid(c->args.operands[1], "task"))
        return c->args.operands[1];
    return task;
}

static enum exit_status refund_task(struct cli *c, struct move *m)
{
    struct why why = {""};

    if (args_has(&c->args, "task") && c->args.n_operands > 1)
        return cli_error(c, ERR_USAGE,
                         "give either a task or USER AMOUNT: a task's charge "
                         "goes back to the user who paid it, and --amount "
                         "gives a part of it");
    if (args_has(&c->args, "amount") &&
        price_read_amount(args_get(&c->args, "amount"), &m->amount, &why))
        return cli_error(c, ERR_USAGE, "%s", why.text);
    return ledger_move(c, m);
}

static enum exit_status refund(struct cli *c, struct str user)
{
    struct move m = {.path = "/api/ledger/refund", .task = refunded_task(c)};
    enum exit_status status;

    if (!cli_number(c, "turn", 1, INT32_MAX, 0, &m.turn, &status))
        return status;
    if (m.task.n)
        return refund_task(c, &m);
    if (m.turn || args_has(&c->args, "amount"))
        return cli_error(c, ERR_USAGE, "--%s needs --task ID",
                         m.turn ? "turn" : "amount");
    if (c->args.n_operands < 3)
        return cli_error(c, ERR_USAGE,
                         "give a user and an amount, or a task: signalbox "
                         "ledger refund USER AMOUNT, signalbox ledger refund "
                         "TASK");
    return ledger_move_amount(c, user);
}

const struct sub cli_ledger_subs[] = {
    {"balance", "[USER]", "", balance},
    {"statement", "[USER]", "account since until csv limit",
     cli_ledger_statement},
    {"topup", "USER AMOUNT", "note key", ledger_move_amount},
    {"refund", "[TASK|USER] [AMOUNT]", "task turn amount note key", refund},
    {"payout", "USER AMOUNT", "note key", ledger_move_amount},
    {"accounts", NULL, "limit", cli_ledger_accounts},
    {"check", NULL, "offline config data", cli_ledger_check},
    {0},
};

enum exit_status cli_ledger(struct cli *c)
{
    return cli_sub(c, cli_ledger_subs);
}
