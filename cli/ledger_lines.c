/* The lines of an account, newest first, and the list of accounts. The CSV is
 * the same as the server's. It is made here, because a long statement arrives
 * in pages, and each is written as soon as it arrives. */
#include "cli/ledger.h"

#include "speak/speak.h"

enum {
    LINES_MAX = 1000 * 1000,
    LINES = 20,
    FLUSH_BYTES = 64 * 1024,
};

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

enum exit_status cli_ledger_statement(struct cli *c, struct str user)
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

const struct listing cli_ledger_accounts = {
    .path = "/api/ledger/accounts",
    .columns = account_columns,
    .preset = 1000,
    .most = 1000 * 1000,
    .none = "No accounts yet. signalbox ledger topup USER AMOUNT adds money to "
            "a user's\nbalance.\n",
};
