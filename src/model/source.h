#ifndef MODEL_SOURCE_H
#define MODEL_SOURCE_H

/* source: where a message came from, and the bindings that assign agents to
 * such places. The names are those of the configuration and of the message's
 * `source`; empty strings are not given. All strings are borrowed. */

#include "model/agent.h"

/* "group" equals "channel", and "dm" equals "direct"; readers keep the original
 * spelling. */
struct source_peer {
    struct str kind, id;
};

struct source {
    struct str channel;        /* "telegram"; case is ignored */
    struct str account_id;     /* likewise */
    struct source_peer peer;   /* the person or place, with case */
    struct source_peer parent; /* parentPeer: the parent of the thread */
    struct str guild_id, team_id;
    struct strs roles; /* of the author */
};

enum {
    SOURCE_STRING_MAX = 256, /* bytes of one */
    SOURCE_ROLES_MAX = 256,
    BINDINGS_MAX = 10 * 1000,
};

/* All given members must match. */
struct binding {
    struct str agent;
    struct str channel;      /* required */
    struct str account_id;   /* empty or "*": any */
    struct source_peer peer; /* id "*": any peer of that kind */
    struct str guild_id, team_id;
    struct strs roles; /* any of them */
};

struct bindings {
    const struct binding *list; /* in file order */
    size_t n;
};

#endif
