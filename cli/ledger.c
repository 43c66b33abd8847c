/* ledger: balances, statements, the transfers of admins, and the audit. People
 * write and read units; the API and --json have micro-units. Every transfer
 * carries a key, which is made here if none is given, so that a repeated
 * request moves money once. */
#include "base/clock.h"
#include "base/id.h"
#include "cli/list.h"
#include "cli/offline.h"
#include "cli/price.h"
#include "speak/speak.h"
#include "walk/ledger_audit.h"

#include <stdio.h>

enum {
    BODY_MAX = 16 * 1024,
    WHOLE_COLUMNS = 8, /* before the point, at least */
    LINES_MAX = 1000 * 1000,
    LINES = 20,
    FLUSH_BYTES = 64 * 1024,
    CHECK_MS = 10 * 60 * 1000,
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
    json_member_some(&o, "note", args_get(&c->args, "note"));
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

/* The lines of an account, newest first, and the list of accounts. The CSV is
 * the same as the server's. It is made here, because a long statement arrives
 * in pages, and each is written as soon as it arrives. */

static const char *amount_colour(struct str amount)
{
    if (amount.n && amount.p[0] == '-')
        return "\033[31m";
    return str_eq(amount, STR("0.00")) ? "" : "\033[32m";
}

/* The subject of a line: a task and its agent, or an admin and a note. */
static void as_subject(const struct cell *cell, struct buf *out)
{
    const struct json *item = cell->item;
    bool has_task = cli_field(item, STR("task_id")).n > 0;

    cli_put_words(out, item,
                  cli_field(item, STR("skill")).n ? "[{agent}/{skill} ]"
                                                  : "[{agent} ]");
    cli_put_words(out, item, "[{task_id}]");
    if (has_task && cli_field_int(item, STR("turn")) > 1)
        cli_put_words(out, item, " turn {turn}");
    cli_put_words(out, item,
                  has_task ? "[ by {by}][: {note}]" : "[by {by}][: {note}]");
}

/* A reservation that was paid is a charge. */
static void as_kind(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, str_eq(cli_field(cell->item, STR("state")), STR("charged"))
                         ? STR("charge")
                         : json_str_or(cell->v, STR("")));
}

static const struct grid_column line_columns[] = {
    {"WHEN", "at_ms", as_time, KEPT, NULL},
    {"AMOUNT", "amount_micros", as_amount, KEPT, amount_colour},
    {"KIND", "kind", as_kind, KEPT, NULL},
    /* With all accounts, the account is half of the information. */
    {"ACCOUNT", "account", NULL, "account=all", NULL},
    {"ABOUT", "task_id", as_subject, KEPT, NULL},
    {0},
};

static const struct listing lines = {
    .path = "/api/ledger/statement",
    .columns = line_columns,
    .narrow = 110,
    .preset = LINES,
    .most = LINES_MAX,
    .none = "This account has no lines.\n",
};

/* CSV. */

struct csv_export {
    struct cli *c;
    struct sheet sheet;
    enum exit_status status;
};

static bool add_csv(void *ctx, const struct json *item)
{
    struct csv_export *x = ctx;
    struct speak_line l = {
        .seq = cli_field_int(item, STR("seq")),
        .at_ms = cli_field_int(item, STR("at_ms")),
        .posting = cli_field(item, STR("posting")),
        .kind = cli_field(item, STR("kind")),
        .account = cli_field(item, STR("account")),
        .amount_micros = cli_field_int(item, STR("amount_micros")),
        .task_id = cli_field(item, STR("task_id")),
        .turn = cli_field_int(item, STR("turn")),
        .agent = cli_field(item, STR("agent")),
        .skill = cli_field(item, STR("skill")),
        .by = cli_field(item, STR("by")),
        .note = cli_field(item, STR("note")),
        .state = cli_field(item, STR("state")),
    };

    speak_line(&x->sheet, &l);
    if (x->c->out.n < FLUSH_BYTES)
        return true;
    x->status = cli_flush(x->c, EXIT_DONE);
    return x->status == EXIT_DONE;
}

static enum exit_status statement_export(struct cli *c, struct str path)
{
    struct csv_export x = {.c = c, .status = EXIT_DONE};
    enum exit_status status;
    struct client *cl;
    int64_t limit;
    bool more;

    if (!cli_number(c, "limit", 1, LINES_MAX, LINES_MAX, &limit, &status) ||
        !(cl = client_new(c, &status)))
        return status;
    sheet_open(&x.sheet, &c->out, true, speak_line_columns(true));
    if (client_list(cl, path, limit, add_csv, &x, &more))
        x.status = client_fail(cl);
    else
        sheet_close(&x.sheet);
    client_free(cl);
    return x.status;
}

static enum exit_status ledger_statement(struct cli *c, struct str user)
{
    enum exit_status status = EXIT_DONE;
    bool is_csv = args_has(&c->args, "csv");
    struct buf path;

    if (c->json && is_csv)
        return cli_error(c, ERR_USAGE, "give --json or --csv, not both");
    buf_init(&path, 32 * 1024);
    buf_add_str(&path, str_of(lines.path));
    if (c->args.n_operands > 1)
        client_add_query(&path, "user", user);
    if (args_has(&c->args, "account"))
        client_add_query(&path, "account", args_get(&c->args, "account"));
    if (cli_add_filters(c, "since=after_ms until=before_ms", &path, &status))
        status = is_csv ? statement_export(c, buf_str(&path))
                        : cli_list_at(c, &lines, buf_str(&path));
    buf_fini(&path);
    return status;
}

static const struct grid_column account_columns[] = {
    {"ACCOUNT", "account", NULL, KEPT, NULL},
    {"BALANCE", "balance_micros", as_amount, KEPT, amount_colour},
    {"CHANGED", "updated_ms", as_time, KEPT, NULL},
    {0},
};

static const struct listing accounts = {
    .path = "/api/ledger/accounts",
    .columns = account_columns,
    .preset = 1000,
    .most = 1000 * 1000,
    .none = "No accounts yet. signalbox ledger topup USER AMOUNT adds money to "
            "a user's\nbalance.\n",
};

/* The audit, on the server or in the data folder. */

static void show_count(struct cli *c, int64_t n, const char *one,
                       const char *many)
{
    buf_addf(&c->out, "%lld %s", (long long)n, n == 1 ? one : many);
}

static enum exit_status ledger_check_show(struct cli *c, const struct json *is)
{
    bool is_right = json_bool_or(json_get(is, STR("is_right")), false);
    struct cli_room room;

    if (c->json) {
        cli_json_line(&c->out, is);
        return is_right ? EXIT_DONE : EXIT_FAILED;
    }
    if (is_right) {
        cli_coloured(c, GREEN, STR("The ledger is consistent."));
        buf_add_char(&c->out, '\n');
    } else {
        cli_coloured(c, RED, STR("The ledger is inconsistent: "));
        show_count(c, cli_field_int(is, STR("problems_total")), "problem",
                   "problems");
        buf_add_str(&c->out, STR(".\n"));
        JSON_EACH(p, cli_items(is, "problems"))
        {
            buf_add_str(&c->out, STR("  "));
            cli_wrapped(c, 2, 4, cli_tame(&room, json_str_or(p, STR(""))));
        }
    }
    buf_add_str(&c->out, STR("  "));
    show_count(c, cli_field_int(is, STR("accounts")), "account, ",
               "accounts, ");
    show_count(c, cli_field_int(is, STR("postings")), "posting, ",
               "postings, ");
    show_count(c, cli_field_int(is, STR("entries")), "entry; ", "entries; ");
    buf_addf(&c->out, "%s is reserved, for ",
             amount_write(cli_field_int(is, STR("reserved_micros"))).text);
    show_count(c, cli_field_int(is, STR("reservations")), "turn\n", "turns\n");
    if (cli_field_int(is, STR("owed_micros")))
        buf_addf(&c->out,
                 "  %s is owed by creators, for refunds after a payout\n",
                 amount_write(cli_field_int(is, STR("owed_micros"))).text);
    return is_right ? EXIT_DONE : EXIT_FAILED;
}

/* Without a server. */

static enum exit_status ledger_check_store(struct cli *c, struct store *s)
{
    struct ledger_report r = {.n_problems = 0};
    enum err e = ledger_audit_store(s, &r);
    struct speak_books b = {
        .n_accounts = r.n_accounts,
        .n_entries = r.n_entries,
        .n_postings = r.n_postings,
        .n_turns = r.n_turns,
        .n_reserved = r.n_reserved,
        .reserved_micros = r.reserved,
        .owed_micros = r.owed,
        .n_problems = r.n_problems,
        .problems = r.problems,
        .n_shown = r.n_problems < LEDGER_PROBLEMS ? (size_t)r.n_problems
                                                  : LEDGER_PROBLEMS,
    };
    enum exit_status status;
    struct json *is;
    struct json_out o;
    struct buf doc;

    if (e)
        return cli_error(c, e, "the ledger cannot be read: %s",
                         err_row(e)->wording);
    buf_init(&doc, 256 * 1024);
    o = json_out(&doc);
    speak_books(&o, &b);
    is = json_parse(&c->arena, buf_str(&doc), 0, NULL);
    status = ledger_check_show(c, is);
    buf_fini(&doc);
    return status;
}

static enum exit_status ledger_check(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;

    (void)operand;
    if (cli_is_offline(c, &status))
        return cli_store_offline(c, ledger_check_store);
    if (status || !(cl = client_new(c, &status)))
        return status;
    if (client_call(cl,
                    &(struct client_request){.method = "GET",
                                             .path = STR("/api/ledger/check"),
                                             .timeout_ms = CHECK_MS,
                                             .notice = "Checking"}))
        status = client_fail(cl);
    else
        status = ledger_check_show(c, client_reply(cl)->json);
    client_free(cl);
    return status;
}

const struct sub cli_ledger_subs[] = {
    {"balance", "[USER]", "", .run = balance},
    {"statement", "[USER]", "account since until csv limit",
     .run = ledger_statement},
    {"topup", "USER AMOUNT", "note key", .run = ledger_move_amount},
    {"refund", "[TASK|USER] [AMOUNT]", "task turn amount note key",
     .run = refund},
    {"payout", "USER AMOUNT", "note key", .run = ledger_move_amount},
    {"accounts", NULL, NULL, .list = &accounts},
    {"check", NULL, "offline config data", .run = ledger_check},
    {0},
};
