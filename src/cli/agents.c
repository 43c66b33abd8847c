/* agents: who can be given work. */
#include "cli/client.h"
#include "cli/grid.h"

const struct arg_option cli_agents_options[] = {
    {"limit", "N", "show at most so many; 1000 if not given", false},
    CLIENT_OPTIONS,
    {0},
};

struct listing {
    struct cli *c;
    struct grid grid;
};

static bool add_agent(void *ctx, const struct json *item)
{
    struct listing *l = ctx;
    struct str cells[] = {
        json_str_or(json_get(item, STR("name")), STR("")),
        json_str_or(json_get(item, STR("url")), STR("")),
    };

    if (l->c->json)
        cli_json_line(&l->c->out, item);
    else
        grid_add(&l->grid, cells);
    return true;
}

static enum exit_status list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"NAME", NULL}, {"URL", NULL}};
    struct listing l = {.c = c};
    enum exit_status status = EXIT_DONE;
    struct client *cl = NULL;
    int64_t limit;
    bool more;

    (void)operand;
    if (!cli_number(c, "limit", 1, 100000, 1000, &limit, &status) ||
        !(cl = client_new(c, &status)))
        return status;
    grid_init(&l.grid, heads, 2);
    if (client_list(cl, STR("/api/agents"), limit, add_agent, &l, &more))
        status = client_fail(cl);
    else if (!c->json && !l.grid.n_rows)
        buf_add_str(
            &c->out,
            STR("There are no agents yet. One to try things out with, in the "
                "server's\nsignalbox.jsonc, which it takes over by itself:\n"
                "  { \"agents\": { \"list\": [ { \"id\": \"echo\", "
                "\"url\": \"echo:\" } ] } }\n"));
    else if (!c->json)
        grid_write(&l.grid, &c->out, c->width, c->colour, c->unicode);
    grid_fini(&l.grid);
    client_free(cl);
    return status;
}

enum exit_status cli_agents(struct cli *c)
{
    static const struct sub subs[] = {{"list", NULL, "limit", list}, {0}};

    return cli_sub(c, subs);
}
