#ifndef CLI_LIST_H
#define CLI_LIST_H

/* list: a list from the server, as a table for people or as one line of JSON
 * per item; and one request about one object. A command that lists or shows
 * something is a table of these. Threads: the main one. */

#include "cli/cells.h"
#include "cli/client.h"

/* Pass up to `limit` items to `each`, until it returns false; *more: there are
 * others. Prints its own errors. */
typedef enum exit_status list_source(struct cli *c, int64_t limit,
                                     bool (*each)(void *ctx,
                                                  const struct json *item),
                                     void *ctx, bool *more);

struct listing {
    const char *path; /* of the API */
    const struct grid_column *columns;
    const char *filters; /* as in cli_add_filters */
    unsigned narrow;     /* windows with fewer columns are narrow */
    int64_t preset;      /* of --limit */
    int64_t most;        /* likewise; zero: 100000 */
    const char *none;    /* printed instead of an empty table; may be NULL */
    const char *none_matches; /* the same if there is a filter; or NULL */
    list_source *offline;     /* the source with --offline; may be NULL */
    bool cuts_first;          /* see grid */
};

enum exit_status cli_list(struct cli *c, const struct listing *list);

/* The same with a path that has the filters already. */
enum exit_status cli_list_at(struct cli *c, const struct listing *list,
                             struct str path);

/* Add the given options to a path, as the query arguments of their names:
 * "min-score conversation=conversation_id status:open" names the second one,
 * and the third is "open" if it is not given. The placeholder of an option says
 * how it is read: WHEN is a time, SCORE a number from 0 to 1, N a whole number;
 * without one it is "true". A value with known words must be one of them, and
 * "all" means no filter. False: the error has been printed. */
MUST_USE bool cli_add_filters(struct cli *c, const char *filters,
                              struct buf *path, enum exit_status *status);

/* One request, its body, and its answer in words; --json prints the answer
 * unchanged. */
struct one {
    const char *method; /* "GET" */
    const char *path;   /* "/api/config", or "/api/tasks/" before an id */
    const char *action; /* after the id: "/cancel"; NULL: nothing */
    const char *called; /* the id's name in errors: "ID" or "name" */
    int64_t timeout_ms; /* as in client_request */
    const char *notice; /* likewise */

    /* The body: options that become members, the member that the second operand
     * becomes, and a function that checks options and writes members. False:
     * the error has been printed. All NULL: no body. */
    const char *options, *second;
    bool (*put)(struct cli *c, struct json_out *o, enum exit_status *status);

    /* The answer: a sentence, fields, a function; or, without an answer, a
     * sentence and the member for --json: {"ID": id, "removed": true}. */
    const char *say; /* as in cli_say, with the id as {} */
    const struct field *fields;
    void (*show)(struct cli *c, const struct json *answer);
    const char *gone;

    /* Report a refusal; NULL: client_fail. */
    enum exit_status (*fail)(struct cli *c, struct client *cl);
};

enum exit_status cli_one(struct cli *c, const struct one *one, struct str id);

/* The same with a client that is there already. */
enum exit_status cli_one_by(struct cli *c, struct client *cl,
                            const struct one *one, struct str id);

/* Add the given options to a body under their own names; blanks separate them.
 * Values are checked as those of filters. False: the error has been printed. */
MUST_USE bool cli_put_options(struct cli *c, struct json_out *o,
                              const char *options, enum exit_status *status);

#endif
