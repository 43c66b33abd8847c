#ifndef MODEL_DELEGATION_H
#define MODEL_DELEGATION_H

/* delegation: one agent gives work to another and gets the result. The work is
 * a task like any other; this is the record next to it: the requester, the
 * mode, and whether the requester has the result. */

#include "base/id.h"
#include "base/str.h"

/* The store keeps the numbers of all of these. */
enum delegation_mode {
    DELEGATION_TWO_PHASE = 1, /* agent.send_task: acknowledged at once, and
                               * the result is pushed */
    DELEGATION_SYNC = 2,      /* the requester waits for the answer */
    DELEGATION_ASYNC = 3,     /* a key at once, result pushed later */
    DELEGATION_MESSAGE = 4,   /* message.send: the result goes to listeners and
                               * is not kept */
};

enum delegation_state {
    DELEGATION_OPEN = 1,  /* in progress */
    DELEGATION_READY = 2, /* ended; the requester does not have the result
                           * yet */
    DELEGATION_HAD = 3,   /* the requester has it, or it is no longer wanted */
};

enum {
    DELEGATION_AT_ONCE_MAX = 16, /* tasks of one agent.delegate */
    DELEGATION_ID_MAX = 128,     /* bytes of an original_id */
    DELEGATION_CHAIN_MAX = 32,   /* agents above one task */
    DELEGATION_PER_ROOT = 256,   /* tasks, by default */
    DELEGATION_TIMEOUT_MS = 180000,
    DELEGATION_SYNC_MS = 60000, /* the timeoutMs of seed 003 if none is given */
};

/* The options of a delegation besides the work itself. Borrowed strings. */
struct delegation_wish {
    enum delegation_mode mode; /* zero: not a delegation */
    struct str original_id;    /* two-phase: from the request, as a string */
    bool is_stream;            /* partial output is passed on to the user */
    bool ends_with_line;       /* onDisconnect "cancel" */
    bool goes_on;              /* onTimeout "continue" */
    int64_t wait_ms;           /* sync: how long the requester waits */
};

struct str delegation_mode_name(enum delegation_mode m); /* "sync" */

#endif
