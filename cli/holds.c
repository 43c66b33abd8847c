/* holds: the held messages, their conditions and deadlines. */
#include "cli/list.h"
#include "cli/span.h"

enum {
    NARROW = 160 /* columns; fewer have the most important fields only */
};

const struct arg_option cli_holds_options[] = {
    {"agent", "AGENT", "only messages for this agent", false},
    {"rule", "RULE", "only messages that this rule holds", false},
    {"reference", "REFERENCE", "only messages with this reference", false},
    {"limit", "N", "list at most N messages (default 50)", false},
    CLIENT_OPTIONS,
    {0},
};

static bool holds_is_narrow(const struct cli *c)
{
    return c->window && c->window < NARROW;
}

static void holds_add_row(struct listing *l, const struct json *item)
{
    int64_t since = json_int_or(json_get(item, STR("since_ms")), 0);
    int64_t until = json_int_or(json_get(item, STR("held_until_ms")), 0);
    struct span_text age = span_write(l->now_ms - since);
    struct span_text left = span_left(until - l->now_ms);
    const struct json *waits_for = json_get(item, STR("waits_for"));
    struct buf keys; /* "agent:Z queue:Rick" */

    if (holds_is_narrow(l->c)) {
        grid_add(&l->grid, (struct str[]){cli_field(item, STR("task_id")),
                                          cli_field(item, STR("agent")),
                                          str_of(left.text),
                                          cli_field(item, STR("reason"))});
        return;
    }
    buf_init(&keys, 16 * 1024);
    for (size_t i = 0; json_at(waits_for, i); i++)
        buf_addf(&keys, "%s%.*s", i ? " " : "",
                 STR_ARG(json_str_or(json_at(waits_for, i), STR(""))));
    grid_add(&l->grid,
             (struct str[]){cli_field(item, STR("task_id")),
                            cli_field(item, STR("from")),
                            cli_field(item, STR("agent")),
                            cli_field(item, STR("reference")), str_of(age.text),
                            str_of(left.text), buf_str(&keys),
                            cli_field(item, STR("reason"))});
    buf_fini(&keys);
}

enum exit_status cli_holds(struct cli *c)
{
    static const struct grid_head heads[] = {
        {"TASK", NULL},      {"FROM", NULL},  {"TO", NULL},
        {"REFERENCE", NULL}, {"AGE", NULL},   {"LEFT", NULL},
        {"WAITS FOR", NULL}, {"REASON", NULL}};
    static const struct grid_head few[] = {
        {"TASK", NULL}, {"TO", NULL}, {"LEFT", NULL}, {"REASON", NULL}};
    struct list_kind kind = {.heads = holds_is_narrow(c) ? few : heads,
                             .n_heads = holds_is_narrow(c) ? 4 : 8,
                             .add = holds_add_row,
                             .most = 100000,
                             .preset = 50,
                             .none = "No held messages.\n",
                             .tells_of_further = true};
    static const char *const filters[] = {"agent", "rule", "reference"};
    enum exit_status status;
    struct buf path;

    buf_init(&path, 16 * 1024);
    buf_add_str(&path, STR("/api/holds"));
    for (size_t i = 0; i < 3; i++)
        if (args_get(&c->args, filters[i]).n)
            client_add_query(&path, filters[i], args_get(&c->args, filters[i]));
    kind.path = buf_str(&path);
    status = cli_list(c, &kind);
    buf_fini(&path);
    return status;
}
