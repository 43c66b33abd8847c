/* The lines of an account, newest first, and the list of accounts. The CSV is
 * the same as the server's. It is made here, because a long statement arrives
 * in pages, and each is written as soon as it arrives. */
#include "cli/ledger.h"

#include <stdio.h>

#include "cli/price.h"
#include "cli/span.h"
#include "speak/speak.h"

enum {
    LINES_MAX = 1000 * 1000,
    LINES = 20,
    NARROW = 110, /* columns; fewer have no ACCOUNT */
    FLUSH_BYTES = 64 * 1024,
};

static const char *amount_colour(struct str amount)
{
    if (amount.n && amount.p[0] == '-')
        return "\033[31m";
    return str_eq(amount, STR("0.00")) ? "" : "\033[32m";
}

/* With all accounts, the account is half of the information. */
static bool ledger_is_narrow(const struct cli *c)
{
    return c->window && c->window < NARROW &&
           !str_eq(args_get(&c->args, "account"), STR("all"));
}

/* The subject of a line: a task and its agent, or an admin and a note. */
static void ledger_add_subject(struct buf *out, const struct json *item)
{
    struct str task = cli_field(item, STR("task_id"));
    struct str note = cli_field(item, STR("note"));
    struct str by = cli_field(item, STR("by"));
    struct str agent = cli_field(item, STR("agent"));
    struct str skill = cli_field(item, STR("skill"));

    if (agent.n)
        buf_addf(out, "%.*s%s%.*s ", STR_ARG(agent), skill.n ? "/" : "",
                 STR_ARG(skill));
    if (task.n)
        buf_addf(out, "%.*s", STR_ARG(task));
    if (task.n && cli_field_int(item, STR("turn")) > 1)
        buf_addf(out, " turn %lld",
                 (long long)cli_field_int(item, STR("turn")));
    if (by.n)
        buf_addf(out, "%sby %.*s", task.n ? " " : "", STR_ARG(by));
    if (note.n)
        buf_addf(out, ": %.*s", STR_ARG(note));
}

/* A reservation that was paid is a charge. */
static struct str ledger_line_kind(const struct json *item)
{
    return str_eq(cli_field(item, STR("state")), STR("charged"))
               ? STR("charge")
               : cli_field(item, STR("kind"));
}

static void ledger_add_row(struct listing *l, const struct json *item)
{
    struct cli_time at = cli_time(cli_field_int(item, STR("at_ms")));
    struct price_text amount =
        amount_write(cli_field_int(item, STR("amount_micros")));
    struct buf about;

    buf_init(&about, 16 * 1024);
    ledger_add_subject(&about, item);
    if (ledger_is_narrow(l->c))
        grid_add(&l->grid,
                 (struct str[]){str_of(at.text), str_of(amount.text),
                                ledger_line_kind(item), buf_str(&about)});
    else
        grid_add(&l->grid, (struct str[]){str_of(at.text), str_of(amount.text),
                                          ledger_line_kind(item),
                                          cli_field(item, STR("account")),
                                          buf_str(&about)});
    buf_fini(&about);
}

static bool ledger_put_path(struct cli *c, struct buf *path, struct str user,
                            enum exit_status *status)
{
    buf_add_str(path, STR("/api/ledger/statement"));
    if (c->args.n_operands > 1)
        client_add_query(path, "user", user);
    if (args_has(&c->args, "account"))
        client_add_query(path, "account", args_get(&c->args, "account"));
    return client_add_time(c, path, "since", "after_ms", status) &&
           client_add_time(c, path, "until", "before_ms", status);
}

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
    static const struct grid_head heads[] = {{"WHEN", NULL},
                                             {"AMOUNT", amount_colour},
                                             {"KIND", NULL},
                                             {"ACCOUNT", NULL},
                                             {"ABOUT", NULL}};
    static const struct grid_head few[] = {{"WHEN", NULL},
                                           {"AMOUNT", amount_colour},
                                           {"KIND", NULL},
                                           {"ABOUT", NULL}};
    struct list_kind kind = {.heads = ledger_is_narrow(c) ? few : heads,
                             .n_heads = ledger_is_narrow(c) ? 4 : 5,
                             .add = ledger_add_row,
                             .most = LINES_MAX,
                             .preset = LINES,
                             .none = "This account has no lines.\n",
                             .tells_of_further = true,
                             .points = 1U << 1};
    enum exit_status status = EXIT_DONE;
    bool is_csv = args_has(&c->args, "csv");
    struct buf path;

    if (c->json && is_csv)
        return cli_error(c, ERR_USAGE, "give --json or --csv, not both");
    buf_init(&path, 32 * 1024);
    if (ledger_put_path(c, &path, user, &status)) {
        kind.path = buf_str(&path);
        status = is_csv ? statement_export(c, kind.path) : cli_list(c, &kind);
    }
    buf_fini(&path);
    return status;
}

/* Accounts. */

static void add_account(struct listing *l, const struct json *item)
{
    struct price_text amount =
        amount_write(cli_field_int(item, STR("balance_micros")));
    struct cli_time at = cli_time(cli_field_int(item, STR("updated_ms")));

    grid_add(&l->grid, (struct str[]){cli_field(item, STR("account")),
                                      str_of(amount.text), str_of(at.text)});
}

enum exit_status cli_ledger_accounts(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {
        {"ACCOUNT", NULL}, {"BALANCE", amount_colour}, {"CHANGED", NULL}};
    static const struct list_kind kind = {
        .path = STR("/api/ledger/accounts"),
        .heads = heads,
        .n_heads = 3,
        .add = add_account,
        .most = 1000 * 1000,
        .preset = 1000,
        .none = "No accounts yet. signalbox ledger topup USER AMOUNT adds "
                "money to a user's\nbalance.\n",
        .tells_of_further = true,
        .points = 1U << 1};

    (void)operand;
    return cli_list(c, &kind);
}
