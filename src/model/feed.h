#ifndef MODEL_FEED_H
#define MODEL_FEED_H

/* feed: an event, as in the store, in memory and for clients. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Optional strings are empty. */
struct feed_entry {
    int64_t seq; /* assigned by the store */
    int64_t at_ms;
    struct str type; /* "task.completed" */
    struct str task_id, conversation_id, agent;
    struct str requester, root_user; /* may see it, besides admins */
    struct str data;                 /* a small JSON object; {} when empty */
    bool is_for_seers; /* users who see its agent see that it happened */
};

#endif
