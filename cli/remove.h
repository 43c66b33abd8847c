#ifndef CLI_REMOVE_H
#define CLI_REMOVE_H

/* remove: remove an object from the server, and report it. */

#include "cli/client.h"

struct removal {
    const char *folder;  /* "/api/grants/" */
    const char *key;     /* "id" or "name" */
    const char *did;     /* "removed" */
    const char *besides; /* ", with all of its"; NULL: nothing */
};

enum exit_status cli_remove(struct cli *c, const struct removal *r,
                            struct str name);

/* Report a removal. */
void cli_show_removed(struct cli *c, const struct removal *r, struct str name);

#endif
