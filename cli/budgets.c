/* budgets: the limits for users, orgs and agents in a day or a month. People
 * write and read units; the API and --json have micro-units. */
#include "cli/list.h"
#include "cli/price.h"

enum { BODY_MAX = 16 * 1024 };

const struct arg_option cli_budgets_options[] = {
    {"user", "NAME", "the budget of this user (default: your own)", false},
    {"org", "ORG", "the budget of all users of this org together", false},
    {"agent", "NAME", "the budget of all work of this agent together", false},
    {"own", NULL,
     "for admins: remove the budget that the user set for themselves", false},
    {"limit", "N", "list at most N budgets (default 1000)", false},
    CLIENT_OPTIONS,
    {0},
};

static const char *used_colour(struct str used)
{
    int64_t percent = 0;

    while (used.n && used.p[0] == ' ')
        used = str_sub(used, 1, used.n);
    if (used.n)
        used.n--; /* "%" */
    if (str_to_i64(used, &percent) != OK || percent < 80)
        return "";
    return percent < 100 ? "\033[33m" : "\033[31m";
}

#define BUDGET_OF  "{kind} {name}"
#define OWN_BUDGET "user {name}, own" /* that the user set */
#define BUDGET_IS \
    ": {limit_micros} a {period}; {used_micros} used; resets {resets_ms}\n"

/* "user anna", or "user anna, own" for a budget that the user set. */
static void as_owner(const struct cell *cell, struct buf *out)
{
    bool is_own = str_eq(cli_field(cell->item, STR("kind")), STR("self"));

    cli_put_words(out, cell->item, is_own ? OWN_BUDGET : BUDGET_OF);
}

static void as_used(const struct cell *cell, struct buf *out)
{
    int64_t limit = cli_field_int(cell->item, STR("limit_micros"));
    int64_t used = json_int_or(cell->v, 0);

    buf_addf(out, "%lld%%",
             (long long)(limit ? (__int128)used * 100 / limit : 100));
}

static const struct grid_column columns[] = {
    {"BUDGET", "kind", as_owner, KEPT, NULL},
    {"PERIOD", "period", NULL, KEPT, NULL},
    {"LIMIT", "limit_micros", as_amount, KEPT, NULL},
    {"USED", "used_micros", as_amount, KEPT, NULL},
    {"", "used_micros", as_used, KEPT, used_colour},
    {"LEFT", "left_micros", as_amount, KEPT, NULL},
    {"RESETS", "resets_ms", as_time, KEPT, NULL},
    {"BY", "by", NULL, KEPT, NULL},
    {0},
};

static const struct listing budgets = {
    .path = "/api/budgets",
    .columns = columns,
    .preset = 1000,
    .none = "No budgets. signalbox budgets set day 25 --user NAME lets a user "
            "spend 25 a day.\n",
};

/* Check --user, --org and --agent; without them it is the caller's budget. */
static bool budget_read_owner(struct cli *c, enum exit_status *status)
{
    int n = args_has(&c->args, "user") + args_has(&c->args, "org") +
            args_has(&c->args, "agent");
    struct str period = c->args.operands[1];

    if (n > 1)
        *status =
            cli_error(c, ERR_USAGE, "give only one of --user, --org, --agent");
    else if (n && args_has(&c->args, "own") && !args_has(&c->args, "user"))
        *status = cli_error(c, ERR_USAGE, "--own needs --user");
    else if (!str_eq(period, STR("day")) && !str_eq(period, STR("month")))
        *status = cli_error(c, ERR_USAGE,
                            "unknown period \"%.*s\": write day or month",
                            STR_ARG(str_head(period, 64)));
    else
        return true;
    return false;
}

static bool put_budget(struct cli *c, struct json_out *o,
                       enum exit_status *status)
{
    struct str limit = c->args.operands[2];
    struct why why = {""};
    int64_t micros = 0;

    if (!budget_read_owner(c, status))
        return false;
    /* A limit may be zero, which price_read_amount refuses. */
    if (!str_eq(limit, STR("0")) && price_read_amount(limit, &micros, &why)) {
        *status = cli_error(c, ERR_USAGE, "%s", why.text);
        return false;
    }
    json_member_text(o, "period", c->args.operands[1]);
    json_member_int(o, "limit_micros", micros);
    return true;
}

static void show_budget(struct cli *c, const struct json *b)
{
    bool is_own = str_eq(cli_field(b, STR("kind")), STR("self"));

    cli_say(c, STR(""), b, is_own ? OWN_BUDGET BUDGET_IS : BUDGET_OF BUDGET_IS);
}

static const struct one setting = {.method = "PUT",
                                   .path = "/api/budgets",
                                   .put = put_budget,
                                   .options = "user org agent",
                                   .show = show_budget};

static enum exit_status budget_remove(struct cli *c, struct str period)
{
    static const char *const owners[] = {"user", "org", "agent"};
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct buf path;

    if (!budget_read_owner(c, &status) || !(cl = client_new(c, &status)))
        return status;
    buf_init(&path, BODY_MAX);
    buf_add_str(&path, STR("/api/budgets"));
    client_add_query(&path, "period", period);
    for (size_t i = 0; i < 3; i++)
        if (args_has(&c->args, owners[i]))
            client_add_query(&path, owners[i], args_get(&c->args, owners[i]));
    if (args_has(&c->args, "own"))
        client_add_query(&path, "kind", STR("self"));
    if (client_call(cl, &(struct client_request){.method = "DELETE",
                                                 .path = buf_str(&path)}))
        status = client_fail(cl);
    else if (!c->json)
        buf_add_str(&c->out, STR("removed\n"));
    buf_fini(&path);
    client_free(cl);
    return status;
}

const struct sub cli_budgets_subs[] = {
    {"list", NULL, NULL, .list = &budgets},
    {"set", "PERIOD AMOUNT", "user org agent", .one = &setting},
    {"remove", "PERIOD", "user org agent own", .run = budget_remove},
    {0},
};
