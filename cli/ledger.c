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
    struct str kind = cli_field(b, STR("kind")), tame;
    struct buf of;

    buf_init(&of, 4096);
    cli_put_words(&of, b,
                  str_eq(kind, STR("org"))
                      ? "  of {limit_micros} a {period}, for the org {name}"
                  : str_eq(kind, STR("self"))
                      ? "  of {limit_micros} a {period}, own"
                      : "  of {limit_micros} a {period}");
    tame = cli_tamed(c, buf_str(&of));
    if (tame.p)
        show_amount(c, "left", cli_field_int(b, STR("left_micros")), tame.p);
    buf_fini(&of);
}

static void show_balance(struct cli *c, const struct json *is)
{
    const struct json *budgets = json_get(is, STR("budgets"));

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
    JSON_EACH(b, cli_items(budgets, "items"))
    show_limit(c, b);
}

static enum exit_status balance(struct cli *c, struct str user)
{
    static const struct one own = {
        .method = "GET", .path = "/api/ledger/balance", .show = show_balance};
    static const struct one other = {.method = "GET",
                                     .path = "/api/ledger/balance?user=",
                                     .called = "name",
                                     .show = show_balance};

    return cli_one(c, c->args.n_operands > 1 ? &other : &own, user);
}

/* Moving money. */

struct move {
    const char *path;
    struct str user, task, key;
    struct id made_key;
    int64_t amount, turn; /* zero: not given */
};

static void show_move(struct cli *c, const struct json *is)
{
    struct str kind = cli_field(is, STR("kind"));

    cli_say(c, STR(""), is,
            cli_field(is, STR("task_id")).n
                ? "refunded {amount_micros} for {task_id} to {user}"
            : str_eq(kind, STR("topup")) ? "{user} got {amount_micros}"
            : str_eq(kind, STR("refund"))
                ? "paid back {amount_micros} from the balance of {user}"
                : "paid out {amount_micros} of the earnings of {user}");
    cli_say(c, STR(""), is,
            str_eq(kind, STR("payout"))
                ? "; the remaining earnings are now {balance_micros} "
                  "({posting})\n"
                : "; the balance is now {balance_micros} ({posting})\n");
    if (json_bool_or(json_get(is, STR("is_repeat")), false))
        buf_add_str(&c->out, STR("This was done before; no money has moved "
                                 "now.\n"));
}

static enum exit_status ledger_move(struct cli *c, struct move *m)
{
    enum exit_status status = EXIT_DONE;
    struct clock clock = clock_system();
    struct client *cl = client_new(c, &status);
    const struct client_reply *r;
    struct id_maker ids;
    struct json_out o;
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
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "user", m->user);
    if (m->amount)
        json_member_int(&o, "amount_micros", m->amount);
    json_member_some(&o, "task_id", m->task);
    if (m->turn)
        json_member_int(&o, "turn", m->turn);
    cli_put_options(c, &o, "note");
    json_member_some(&o, "idempotency_key", m->key);
    json_close(&o, '}');
    r = client_reply(cl);
    if (body.over)
        status = cli_error(c, ERR_USAGE, "a name, note or key is too long");
    else if (client_call(cl, &(struct client_request){.method = "POST",
                                                      .path = str_of(m->path),
                                                      .body = buf_str(&body)}))
        /* The transfer may or may not have happened. */
        status = r->was_sent && (r->err == ERR_UNREACHABLE ||
                                 r->err == ERR_OUTCOME_UNKNOWN)
                     ? cli_error(c, r->err,
                                 "%.300s. The transfer may or may not have "
                                 "happened: repeat the command with --key "
                                 "%.*s, which never does it a second time",
                                 r->why.text, STR_ARG(str_head(m->key, 255)))
                     : client_fail(cl);
    else if (c->json)
        cli_json_line(&c->out, r->json);
    else
        show_move(c, r->json);
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

static enum exit_status refund(struct cli *c, struct str user)
{
    struct move m = {.path = "/api/ledger/refund",
                     .task = args_get(&c->args, "task")};
    struct str amount = args_get(&c->args, "amount");
    bool has_task = m.task.n > 0;
    struct why why = {""};
    enum exit_status status;

    if (!has_task && c->args.n_operands == 2 && id_is_valid(user, "task"))
        m.task = user;
    if (!cli_number(c, "turn", 1, INT32_MAX, 0, &m.turn, &status))
        return status;
    if (has_task && c->args.n_operands > 1)
        return cli_error(c, ERR_USAGE,
                         "give either a task or USER AMOUNT: a task's charge "
                         "goes back to the user who paid it, and --amount "
                         "gives a part of it");
    if (m.task.n)
        return amount.n && price_read_amount(amount, &m.amount, &why)
                   ? cli_error(c, ERR_USAGE, "%s", why.text)
                   : ledger_move(c, &m);
    if (m.turn || amount.n)
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
    {"balance", "[USER]", "", .run = balance},
    {"statement", "[USER]", "account since until csv limit",
     .run = cli_ledger_statement},
    {"topup", "USER AMOUNT", "note key", .run = ledger_move_amount},
    {"refund", "[TASK|USER] [AMOUNT]", "task turn amount note key",
     .run = refund},
    {"payout", "USER AMOUNT", "note key", .run = ledger_move_amount},
    {"accounts", NULL, NULL, .list = &cli_ledger_accounts},
    {"check", NULL, "offline config data", .run = cli_ledger_check},
    {0},
};
