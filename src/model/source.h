#ifndef MODEL_SOURCE_H
#define MODEL_SOURCE_H

/* source: where a message came from, and the bindings that say which agent
 * answers there. The names are those of the configuration and of the message's
 * `source`; empty strings are not given. Borrowed strings all over. */

#include "model/agent.h"

/* "group" and "channel" are one kind, and "dm" is "direct"; whoever reads them
 * leaves them as they were said. */
struct source_peer {
    struct str kind, id;
};

struct source {
    struct str channel;        /* "telegram"; whatever the case */
    struct str account_id;     /* likewise */
    struct source_peer peer;   /* who or where it was said, case and all */
    struct source_peer parent; /* parentPeer: what that is a thread of */
    struct str guild_id, team_id;
    struct strs roles; /* of who said it */
};

enum {
    SOURCE_STRING_MAX = 256, /* bytes of one */
    SOURCE_ROLES_MAX = 256,
    BINDINGS_MAX = 10 * 1000,
};

/* All that is given must match. */
struct binding {
    struct str agent;
    struct str channel;      /* needed */
    struct str account_id;   /* empty or "*": any */
    struct source_peer peer; /* an id of "*": any peer of that kind */
    struct str guild_id, team_id;
    struct strs roles; /* any one of them */
};

struct bindings {
    const struct binding *list; /* in the order of the file */
    size_t n;
};

#endif
