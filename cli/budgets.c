/* budgets: the limits for users, orgs and agents in a day or a month. People
 * write and read units; the API and --json have micro-units. */
#include <stdio.h>

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

/* "user anna", or "user anna, own" for a budget that the user set. */
static void budget_add_title(struct buf *out, const struct json *b)
{
    struct str kind = cli_field(b, STR("kind"));
    struct str name = cli_field(b, STR("name"));

    if (str_eq(kind, STR("self")))
        buf_addf(out, "user %.*s, own", STR_ARG(name));
    else
        buf_addf(out, "%.*s %.*s", STR_ARG(kind), STR_ARG(name));
}

static void add_budget(struct listing *l, const struct json *item)
{
    int64_t limit = cli_field_int(item, STR("limit_micros"));
    int64_t used = cli_field_int(item, STR("used_micros"));
    struct price_text most = amount_write(limit), so_far = amount_write(used);
    struct price_text left =
        amount_write(cli_field_int(item, STR("left_micros")));
    struct cli_time at = cli_time(cli_field_int(item, STR("resets_ms")));
    char percent[32];
    struct buf title;

    buf_init(&title, 1024);
    budget_add_title(&title, item);
    snprintf(percent, sizeof(percent), "%lld%%",
             (long long)(limit ? (__int128)used * 100 / limit : 100));
    grid_add(&l->grid,
             (struct str[]){buf_str(&title), cli_field(item, STR("period")),
                            str_of(most.text), str_of(so_far.text),
                            str_of(percent), str_of(left.text), str_of(at.text),
                            cli_field(item, STR("by"))});
    buf_fini(&title);
}

static enum exit_status budgets_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {
        {"BUDGET", NULL},  {"PERIOD", NULL}, {"LIMIT", NULL},  {"USED", NULL},
        {"", used_colour}, {"LEFT", NULL},   {"RESETS", NULL}, {"BY", NULL}};
    static const struct list_kind kind = {
        .path = STR("/api/budgets"),
        .heads = heads,
        .n_heads = 8,
        .add = add_budget,
        .most = 100000,
        .preset = 1000,
        .none = "No budgets. signalbox budgets set day 25 --user NAME lets a "
                "user spend 25 a day.\n",
        .tells_of_further = true,
        .points = 1U << 2 | 1U << 3 | 1U << 5};

    (void)operand;
    return cli_list(c, &kind);
}

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

static void show_budget(struct cli *c, const struct json *b)
{
    struct buf title;

    if (c->json) {
        cli_json_line(&c->out, b);
        return;
    }
    buf_init(&title, 1024);
    budget_add_title(&title, b);
    buf_addf(&c->out, "%.*s: %s a %.*s; ",
             STR_ARG(cli_tamed(c, buf_str(&title))),
             amount_write(cli_field_int(b, STR("limit_micros"))).text,
             STR_ARG(cli_field(b, STR("period"))));
    buf_addf(&c->out, "%s used; resets %s\n",
             amount_write(cli_field_int(b, STR("used_micros"))).text,
             cli_time(cli_field_int(b, STR("resets_ms"))).text);
    buf_fini(&title);
}

/* A limit may be zero, which price_read_amount refuses. */
static bool read_limit(struct cli *c, int64_t *out, enum exit_status *status)
{
    struct str text = c->args.operands[2];
    struct why why = {""};

    *out = 0;
    if (str_eq(text, STR("0")) || price_read_amount(text, out, &why) == OK)
        return true;
    *status = cli_error(c, ERR_USAGE, "%s", why.text);
    return false;
}

static enum exit_status budget_set(struct cli *c, struct str period)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct json_out o;
    struct buf body;
    int64_t limit;

    if (!budget_read_owner(c, &status) || !read_limit(c, &limit, &status) ||
        !(cl = client_new(c, &status)))
        return status;
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "user", args_get(&c->args, "user"));
    json_member_some(&o, "org", args_get(&c->args, "org"));
    json_member_some(&o, "agent", args_get(&c->args, "agent"));
    json_member_text(&o, "period", period);
    json_member_int(&o, "limit_micros", limit);
    json_close(&o, '}');
    if (body.over)
        status = cli_error(c, ERR_USAGE, "a name is too long");
    else if (client_call(cl,
                         &(struct client_request){.method = "PUT",
                                                  .path = STR("/api/budgets"),
                                                  .body = buf_str(&body)}))
        status = client_fail(cl);
    else
        show_budget(c, client_reply(cl)->json);
    buf_fini(&body);
    client_free(cl);
    return status;
}

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
    {"list", NULL, "limit", budgets_list},
    {"set", "PERIOD AMOUNT", "user org agent", budget_set},
    {"remove", "PERIOD", "user org agent own", budget_remove},
    {0},
};

enum exit_status cli_budgets(struct cli *c)
{
    return cli_sub(c, cli_budgets_subs);
}
