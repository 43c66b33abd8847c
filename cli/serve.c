/* serve: hand over to the server. */
#include "cli/cli.h"

#include "server/server.h"

const struct arg_option cli_serve_options[] = {
    CLI_SOURCE_OPTIONS,
    {"from-scratch", NULL,
     "start with an empty database if the one in the data folder is gone",
     false},
    {0}};

enum exit_status cli_serve(struct cli *c)
{
    struct server_opts opts = {
        .json = c->json, .from_scratch = args_has(&c->args, "from-scratch")};

    cli_source(c, &opts.source);
    return server_run(&opts);
}
