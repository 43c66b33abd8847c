/* holds: what is held, what it waits for, and until when. */
#include "cli/list.h"
#include "cli/span.h"

enum {
    NARROW = 160 /* columns; below them only what tells one from another */
};

const struct arg_option cli_holds_options[] = {
    {"agent", "AGENT", "only what is for this agent", false},
    {"rule", "RULE", "only what this rule holds", false},
    {"reference", "REFERENCE", "only what is about this", false},
    {"limit", "N", "show at most so many; 50 if not given", false},
    CLIENT_OPTIONS,
    {0},
};

/* "agent:Z queue:Rick". */
static void add_keys(struct buf *out, const struct json *keys)
{
    for (size_t i = 0; json_at(keys, i); i++) {
        if (i)
            buf_add_char(out, ' ');
        buf_add_str(out, json_str_or(json_at(keys, i), STR("")));
    }
}

static bool is_narrow(const struct cli *c)
{
    return c->window && c->window < NARROW;
}

static void add_one(struct listing *l, const struct json *item)
{
    int64_t since = json_int_or(json_get(item, STR("since_ms")), 0);
    int64_t until = json_int_or(json_get(item, STR("held_until_ms")), 0);
    struct span_text age = span_write(l->now_ms - since);
    struct span_text left = span_left(until - l->now_ms);
    struct buf keys;

    if (is_narrow(l->c)) {
        grid_add(&l->grid, (struct str[]){cli_field(item, STR("task_id")),
                                          cli_field(item, STR("agent")),
                                          str_of(left.text),
                                          cli_field(item, STR("reason"))});
        return;
    }
    buf_init(&keys, 16 * 1024);
    add_keys(&keys, json_get(item, STR("waits_for")));
    grid_add(&l->grid,
             (struct str[]){cli_field(item, STR("task_id")),
                            cli_field(item, STR("from")),
                            cli_field(item, STR("agent")),
                            cli_field(item, STR("reference")), str_of(age.text),
                            str_of(left.text), buf_str(&keys),
                            cli_field(item, STR("reason"))});
    buf_fini(&keys);
}

static void add_filter(struct cli *c, struct buf *path, const char *name)
{
    struct str value = args_get(&c->args, name);

    if (value.n)
        client_add_query(path, name, value);
}

enum exit_status cli_holds(struct cli *c)
{
    static const struct grid_head heads[] = {
        {"TASK", NULL},      {"FROM", NULL},  {"TO", NULL},
        {"REFERENCE", NULL}, {"AGE", NULL},   {"LEFT", NULL},
        {"WAITS FOR", NULL}, {"REASON", NULL}};
    static const struct grid_head few[] = {
        {"TASK", NULL}, {"TO", NULL}, {"LEFT", NULL}, {"REASON", NULL}};
    struct list_kind kind = {.heads = is_narrow(c) ? few : heads,
                             .n_heads = is_narrow(c) ? 4 : 8,
                             .add = add_one,
                             .most = 100000,
                             .preset = 50,
                             .none = "Nothing is held.\n",
                             .tells_of_further = true};
    enum exit_status status;
    struct buf path;

    buf_init(&path, 16 * 1024);
    buf_add_str(&path, STR("/api/holds"));
    add_filter(c, &path, "agent");
    add_filter(c, &path, "rule");
    add_filter(c, &path, "reference");
    kind.path = buf_str(&path);
    status = cli_list(c, &kind);
    buf_fini(&path);
    return status;
}
