/* ledger: who has what, and what an admin puts in and takes out. People write
 * and read units; micro-units are for the wire and for --json. Whatever moves
 * money carries a key, made here if none was given, so that it can be asked
 * for again and happens once. */
#include "cli/ledger.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/offline.h"
#include "cli/price.h"

enum {
    BODY_MAX = 16 * 1024,
    WHOLE_COLUMNS = 8, /* before the point; more where it takes more */
};

const struct arg_option cli_ledger_options[] = {
    {"task", "ID", "refund: what this task was charged", false},
    {"amount", "AMOUNT", "refund of a task: only so much of its charge", false},
    {"turn", "N", "with --task: this turn; else the last that was paid for",
     false},
    {"note", "TEXT", "what it is for, for the statement", false},
    {"key", "KEY", "the same key never moves money a second time", false},
    {"account", "ACCOUNT",
     "statement: creator, or for admins any, like platform; all for all",
     false},
    {"since", "WHEN", "only lines since: a span like 7d, or Unix time in ms",
     false},
    {"until", "WHEN", "only lines before that, given in the same way", false},
    {"csv", NULL, "statement: all lines as CSV, for a spreadsheet", false},
    {"limit", "N", "show at most so many; 20 lines, 1000 accounts", false},
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

    /* The points below each other. */
    buf_addf(&c->out, "  %-13s %*s%-*s%s\n", name,
             whole < WHOLE_COLUMNS ? WHOLE_COLUMNS - whole : 0, "",
             *besides ? whole + 7 : 0, amount.text, besides);
}

/* Those that there are: NULL where there is none. */
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
                    "  for one message and all that comes of it");
}

static void show_balance(struct cli *c, const struct json *is)
{
    const struct json *budgets = json_get(is, STR("budgets"));

    if (c->json) {
        cli_json_line(&c->out, is);
        return;
    }
    cli_coloured(c, BOLD, cli_tamed(c, cli_field(is, STR("user"))));
    buf_add_char(&c->out, '\n');
    show_amount(c, "balance", cli_field_int(is, STR("balance_micros")), "");
    show_amount(c, "reserved", cli_field_int(is, STR("reserved_micros")),
                "  for work that goes on");
    show_amount(c, "earned", cli_field_int(is, STR("earned_micros")),
                "  by their agents, not paid out");
    if (cli_field_int(is, STR("owed_micros")))
        show_amount(c, "owed", cli_field_int(is, STR("owed_micros")),
                    "  for refunds; later earnings pay it");
    show_amount(c, "spent today",
                cli_field_int(budgets, STR("spent_today_micros")),
                "  since 00:00 UTC");
    show_budgets(c, budgets);
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
    int64_t amount, turn; /* zero: not said */
};

static void put_number(struct json_out *o, const char *key, int64_t value)
{
    if (!value)
        return;
    json_member_int(o, key, value);
}

static void put_body(struct cli *c, struct buf *body, const struct move *m)
{
    struct json_out o = json_out(body);

    json_open(&o, '{');
    json_member_some(&o, "user", m->user);
    put_number(&o, "amount_micros", m->amount);
    json_member_some(&o, "task_id", m->task);
    put_number(&o, "turn", m->turn);
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
        buf_addf(&c->out, "%s for %.*s is back in %.*s's balance", amount.text,
                 STR_ARG(cli_tamed(c, task)), STR_ARG(user));
    else if (str_eq(kind, STR("topup")))
        buf_addf(&c->out, "%.*s got %s", STR_ARG(user), amount.text);
    else if (str_eq(kind, STR("refund")))
        buf_addf(&c->out, "%s of %.*s's balance is paid back to them",
                 amount.text, STR_ARG(user));
    else
        buf_addf(&c->out, "%s of what %.*s has earned is paid out", amount.text,
                 STR_ARG(user));
    buf_addf(&c->out, ": %s is %s now (%.*s)\n",
             str_eq(kind, STR("payout")) ? "what is left" : "the balance",
             now.text, STR_ARG(cli_tamed(c, cli_field(is, STR("posting")))));
    if (again && json_bool_or(again, false))
        buf_add_str(&c->out, STR("That was done before; nothing has moved "
                                 "now.\n"));
}

/* Whether it happened may not be known. */
static enum exit_status give_up(struct cli *c, struct client *cl,
                                const struct move *m)
{
    const struct client_reply *r = client_reply(cl);

    if (!r->was_sent ||
        (r->err != ERR_UNREACHABLE && r->err != ERR_OUTCOME_UNKNOWN))
        return client_fail(cl);
    return cli_error(c, r->err,
                     "%.300s. Whether it was done is not known: ask again with "
                     "--key %.*s, which never does it a second time",
                     r->why.text, STR_ARG(str_head(m->key, 255)));
}

static enum exit_status move(struct cli *c, struct move *m)
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
    put_body(c, &body, m);
    if (body.over)
        status = cli_error(c, ERR_USAGE, "a name, note or key is too long");
    else if (client_call(cl, &(struct client_request){.method = "POST",
                                                      .path = str_of(m->path),
                                                      .body = buf_str(&body)}))
        status = give_up(c, cl, m);
    else
        show_move(c, client_reply(cl)->json);
    buf_fini(&body);
    client_free(cl);
    return status;
}

/* USER AMOUNT. */
static enum exit_status move_amount(struct cli *c, const char *path)
{
    struct move m = {.path = path, .user = c->args.operands[1]};
    struct why why = {""};

    if (amount_read(c->args.operands[2], &m.amount, &why))
        return cli_error(c, ERR_USAGE, "%s", why.text);
    return move(c, &m);
}

static enum exit_status topup(struct cli *c, struct str user)
{
    (void)user;
    return move_amount(c, "/api/ledger/topup");
}

static enum exit_status payout(struct cli *c, struct str user)
{
    (void)user;
    return move_amount(c, "/api/ledger/payout");
}

/* --task ID, or a task's id alone. */
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
                         "either a task or USER AMOUNT: a task's charge goes "
                         "back to who paid it, and --amount says how much");
    if (args_has(&c->args, "amount") &&
        amount_read(args_get(&c->args, "amount"), &m->amount, &why))
        return cli_error(c, ERR_USAGE, "%s", why.text);
    return move(c, m);
}

static enum exit_status refund(struct cli *c, struct str user)
{
    struct move m = {.path = "/api/ledger/refund", .task = refunded_task(c)};
    enum exit_status status;

    (void)user;
    if (!cli_number(c, "turn", 1, INT32_MAX, 0, &m.turn, &status))
        return status;
    if (m.task.n)
        return refund_task(c, &m);
    if (m.turn || args_has(&c->args, "amount"))
        return cli_error(c, ERR_USAGE, "--%s is of a task: --task ID",
                         m.turn ? "turn" : "amount");
    if (c->args.n_operands < 3)
        return cli_error(c, ERR_USAGE,
                         "say which: signalbox ledger refund USER AMOUNT, or "
                         "signalbox ledger refund TASK");
    return move_amount(c, m.path);
}

const struct sub cli_ledger_subs[] = {
    {"balance", "[USER]", "", balance},
    {"statement", "[USER]", "account since until csv limit",
     cli_ledger_statement},
    {"topup", "USER AMOUNT", "note key", topup},
    {"refund", "[TASK|USER] [AMOUNT]", "task turn amount note key", refund},
    {"payout", "USER AMOUNT", "note key", payout},
    {"accounts", NULL, "limit", cli_ledger_accounts},
    {"check", NULL, "offline config data", cli_ledger_check},
    {0},
};

enum exit_status cli_ledger(struct cli *c)
{
    return cli_sub(c, cli_ledger_subs);
}
