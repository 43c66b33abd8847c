/* The server so far: its configuration. */
#include "server.h"

#include <stdio.h>

enum exit_status server_run(const struct server_opts *opts)
{
    struct config_report report;
    struct config *c = config_load(&opts->source, &report);

    fputs(report.text, stderr);
    if (!c)
        return err_row(ERR_BAD_CONFIG)->exit_status;
    config_free(c);
    return EXIT_DONE;
}
