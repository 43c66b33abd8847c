/* agents: who can be given work. */
#include "cli/list.h"

const struct arg_option cli_agents_options[] = {
    {"limit", "N", "show at most so many; 1000 if not given", false},
    CLIENT_OPTIONS,
    {0},
};

static void add_agent(struct listing *l, const struct json *item)
{
    struct str cells[] = {cli_field(item, STR("name")),
                          cli_field(item, STR("url"))};

    grid_add(&l->grid, cells);
}

static enum exit_status list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"NAME", NULL}, {"URL", NULL}};
    static const struct list_kind agents = {
        .path = STR("/api/agents"),
        .heads = heads,
        .n_heads = 2,
        .add = add_agent,
        .most = 100000,
        .preset = 1000,
        .none = "There are no agents yet. One to try things out with, in the "
                "server's\nsignalbox.jsonc, which it takes over by itself:\n"
                "  { \"agents\": { \"list\": [ { \"id\": \"echo\", "
                "\"url\": \"echo:\" } ] } }\n"};

    (void)operand;
    return cli_list(c, &agents);
}

enum exit_status cli_agents(struct cli *c)
{
    static const struct sub subs[] = {{"list", NULL, "limit", list}, {0}};

    return cli_sub(c, subs);
}
