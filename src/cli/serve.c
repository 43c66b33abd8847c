/* serve: hand over to the server. */
#include "cli/cli.h"

#include <sys/resource.h>

#include "server.h"

const struct arg_option cli_serve_options[] = {CLI_SOURCE_OPTIONS, {0}};

/* Every connection is a file descriptor, and the usual soft limit of 1024 is
 * there for programs that use select(). Take what the hard limit gives, up to
 * more than http.maxConnections can ask for. */
static void raise_file_limit(void)
{
    enum { ENOUGH = 1 << 20 };
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= ENOUGH)
        return;
    lim.rlim_cur = lim.rlim_max < ENOUGH ? lim.rlim_max : ENOUGH;
    /* Should it fail, the limit stays what it was, and doctor says so. */
    (void)setrlimit(RLIMIT_NOFILE, &lim);
}

enum exit_status cli_serve(struct cli *c)
{
    struct server_opts opts = {.json = c->json};
    enum exit_status status;

    if (!cli_source(c, &opts.source, &status))
        return status;
    raise_file_limit();
    return server_run(&opts);
}
