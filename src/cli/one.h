#ifndef CLI_ONE_H
#define CLI_ONE_H

/* one: something of the server's, by what it is called: it is asked for, or
 * something is done to it, and the answer is shown: to people in words, with
 * --json as it came. Threads: the main one. */

#include "cli/client.h"

struct one {
    const char *method; /* "GET" */
    const char *folder; /* "/api/tasks/" */
    struct str id;
    const char *what;   /* behind it: "/cancel"; NULL: nothing */
    const char *called; /* what the id is for people: "ID" or "name" */
    struct str body;
    int64_t timeout_ms; /* as in client_request */
    void (*say)(struct cli *c, const struct one *o, const struct json *answer);
    const void *ctx; /* for say */
};

enum exit_status cli_one(struct cli *c, const struct one *o);

#endif
