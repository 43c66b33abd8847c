/* serve: hand over to the server. */
#include "cli/cli.h"

#include "server.h"

const struct arg_option cli_serve_options[] = {
    CLI_SOURCE_OPTIONS,
    {"from-scratch", NULL,
     "begin with nothing where the data folder's database is gone", false},
    {0}};

enum exit_status cli_serve(struct cli *c)
{
    struct server_opts opts = {
        .json = c->json, .from_scratch = args_has(&c->args, "from-scratch")};
    enum exit_status status;

    if (!cli_source(c, &opts.source, &status))
        return status;
    return server_run(&opts);
}
