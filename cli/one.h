#ifndef CLI_ONE_H
#define CLI_ONE_H

/* one: one request about one named object of the server. People get the answer
 * in words, --json prints it unchanged. Threads: the main one. */

#include "cli/client.h"

struct one {
    const char *method; /* "GET" */
    const char *folder; /* "/api/tasks/" */
    struct str id;
    const char *action; /* after the id: "/cancel"; NULL: nothing */
    const char *called; /* the id's name in errors: "ID" or "name" */
    struct str body;
    int64_t timeout_ms; /* as in client_request */
    void (*show)(struct cli *c, const struct one *o, const struct json *answer);
    const void *ctx; /* for show */
};

enum exit_status cli_one(struct cli *c, const struct one *o);

#endif
