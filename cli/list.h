#ifndef CLI_LIST_H
#define CLI_LIST_H

/* list: a list from the server, as a table for people or as one line of JSON
 * per item. Threads: the main one. */

#include "cli/client.h"
#include "cli/grid.h"

struct listing {
    struct cli *c;
    struct grid grid;
    int64_t now_ms;
};

/* Pass up to `limit` items to `each`, until it returns false; *more: there are
 * others. Prints its own errors. */
typedef enum exit_status list_source(struct cli *c, int64_t limit,
                                     bool (*each)(void *ctx,
                                                  const struct json *item),
                                     void *ctx, bool *more);

struct list_kind {
    struct str path; /* of the API, perhaps with a query */
    const struct grid_head *heads;
    size_t n_heads;
    /* Add the row of an item to l->grid. */
    void (*add)(struct listing *l, const struct json *item);
    int64_t most, preset;  /* of --limit */
    list_source *offline;  /* the source with --offline; may be NULL */
    const char *none;      /* printed instead of an empty table; may be NULL */
    bool tells_of_further; /* print a hint on a terminal if there are more */
    bool cuts_first;       /* see grid */
    unsigned points;       /* likewise */
};

enum exit_status cli_list(struct cli *c, const struct list_kind *kind);

#endif
