#ifndef CLI_REMOVE_H
#define CLI_REMOVE_H

/* remove: something of the server's goes, and it is said that it did. */

#include "cli/client.h"

struct removal {
    const char *folder;  /* "/api/grants/" */
    const char *key;     /* what it is named by: "id" or "name" */
    const char *did;     /* "removed" */
    const char *besides; /* ", and all of its"; NULL: nothing */
};

enum exit_status cli_remove(struct cli *c, const struct removal *r,
                            struct str name);

/* Say that it did. */
void cli_show_removed(struct cli *c, const struct removal *r, struct str name);

#endif
