/* budgets: what users, orgs and agents may cost in a day or a month. People
 * write and read units; micro-units are for the wire and for --json. */
#include <stdio.h>

#include "cli/list.h"
#include "cli/price.h"

enum { BODY_MAX = 16 * 1024 };

const struct arg_option cli_budgets_options[] = {
    {"user", "NAME", "of this user; else your own", false},
    {"org", "ORG", "of all users of this org together", false},
    {"agent", "NAME", "of all work of this agent together", false},
    {"limit", "N", "list at most so many; 1000 if not given", false},
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

static int64_t percent_of(int64_t used, int64_t limit)
{
    return limit ? (int64_t)((__int128)used * 100 / limit) : 100;
}

/* "user anna"; of one's own "anna, by themselves". */
static void add_whose(struct buf *out, const struct json *b)
{
    struct str kind = cli_field(b, STR("kind"));
    struct str name = cli_field(b, STR("name"));

    if (str_eq(kind, STR("self")))
        buf_addf(out, "user %.*s, by themselves", STR_ARG(name));
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
    struct buf whose;

    buf_init(&whose, 1024);
    add_whose(&whose, item);
    snprintf(percent, sizeof(percent), "%lld%%",
             (long long)percent_of(used, limit));
    grid_add(&l->grid,
             (struct str[]){buf_str(&whose), cli_field(item, STR("period")),
                            str_of(most.text), str_of(so_far.text),
                            str_of(percent), str_of(left.text), str_of(at.text),
                            cli_field(item, STR("by"))});
    buf_fini(&whose);
}

static enum exit_status list(struct cli *c, struct str operand)
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

/* Which one: --user, --org or --agent, or one's own. */
static bool read_whose(struct cli *c, enum exit_status *status)
{
    int n = args_has(&c->args, "user") + args_has(&c->args, "org") +
            args_has(&c->args, "agent");
    struct str period = c->args.operands[1];

    if (n > 1)
        *status =
            cli_error(c, ERR_USAGE, "--user, --org or --agent, one of them");
    else if (!str_eq(period, STR("day")) && !str_eq(period, STR("month")))
        *status =
            cli_error(c, ERR_USAGE, "\"%.*s\" is no period: write day or month",
                      STR_ARG(str_head(period, 64)));
    else
        return true;
    return false;
}

static void show_budget(struct cli *c, const struct json *b)
{
    struct buf whose;

    if (c->json) {
        cli_json_line(&c->out, b);
        return;
    }
    buf_init(&whose, 1024);
    add_whose(&whose, b);
    buf_addf(&c->out, "%.*s: %s a %.*s; ",
             STR_ARG(cli_tamed(c, buf_str(&whose))),
             amount_write(cli_field_int(b, STR("limit_micros"))).text,
             STR_ARG(cli_field(b, STR("period"))));
    buf_addf(&c->out, "%s is used, until %s\n",
             amount_write(cli_field_int(b, STR("used_micros"))).text,
             cli_time(cli_field_int(b, STR("resets_ms"))).text);
    buf_fini(&whose);
}

/* Nothing may be spent: a limit too, which amount_read does not take. */
static bool read_limit(struct cli *c, int64_t *out, enum exit_status *status)
{
    struct str text = c->args.operands[2];
    struct why why = {""};

    *out = 0;
    if (str_eq(text, STR("0")) || amount_read(text, out, &why) == OK)
        return true;
    *status = cli_error(c, ERR_USAGE, "%s", why.text);
    return false;
}

static enum exit_status set(struct cli *c, struct str period)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct json_out o;
    struct buf body;
    int64_t limit;

    if (!read_whose(c, &status) || !read_limit(c, &limit, &status) ||
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

static void add_option(struct cli *c, struct buf *path, const char *name)
{
    if (args_has(&c->args, name))
        client_add_query(path, name, args_get(&c->args, name));
}

static enum exit_status do_remove(struct cli *c, struct str period)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct buf path;

    if (!read_whose(c, &status) || !(cl = client_new(c, &status)))
        return status;
    buf_init(&path, BODY_MAX);
    buf_add_str(&path, STR("/api/budgets"));
    client_add_query(&path, "period", period);
    add_option(c, &path, "user");
    add_option(c, &path, "org");
    add_option(c, &path, "agent");
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
    {"list", NULL, "limit", list},
    {"set", "PERIOD AMOUNT", "user org agent", set},
    {"remove", "PERIOD", "user org agent", do_remove},
    {0},
};

enum exit_status cli_budgets(struct cli *c)
{
    return cli_sub(c, cli_budgets_subs);
}
