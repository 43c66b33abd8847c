#ifndef MODEL_DELEGATION_H
#define MODEL_DELEGATION_H

/* delegation: one agent has another do something, and hears what came of it.
 * What is done is a task like any other; this is what is kept beside it: who
 * asked, in which way, and whether they have the result. */

#include "base/id.h"
#include "base/str.h"

/* The numbers of all of these are kept in the store. */
enum delegation_mode {
    DELEGATION_TWO_PHASE =
        1,                  /* agent.send_task: acknowledged, and told later */
    DELEGATION_SYNC = 2,    /* who asks waits for the answer */
    DELEGATION_ASYNC = 3,   /* a key at once, and told later */
    DELEGATION_MESSAGE = 4, /* message.send: who listens hears, and nothing is
                             * kept */
};

enum delegation_state {
    DELEGATION_OPEN = 1,  /* it is being done */
    DELEGATION_READY = 2, /* it is over, and who asked does not have it yet */
    DELEGATION_HAD = 3,   /* they have it, or nobody wants it any more */
};

enum {
    DELEGATION_AT_ONCE_MAX = 16, /* tasks of one agent.delegate */
    DELEGATION_ID_MAX = 128,     /* bytes of an original_id */
    DELEGATION_CHAIN_MAX = 32,   /* agents above one task */
    DELEGATION_PER_ROOT = 256,   /* tasks, by default */
    DELEGATION_TIMEOUT_MS = 180000,
    DELEGATION_SYNC_MS = 60000, /* seed 003's timeoutMs, if none is given */
};

/* What was asked for beside the work itself. Borrowed strings. */
struct delegation_wish {
    enum delegation_mode mode; /* zero: nobody delegates */
    struct str original_id;    /* two-phase: the request's, as a string */
    bool is_stream;            /* words go on to the user as they come */
    bool ends_with_line;       /* onDisconnect "cancel" */
    bool goes_on;              /* onTimeout "continue" */
    int64_t wait_ms;           /* sync: how long who asks waits */
};

struct str delegation_mode_name(enum delegation_mode m);   /* "sync" */
enum delegation_mode delegation_mode_of(struct str name);  /* zero: none */
struct str delegation_state_name(enum delegation_state s); /* "open" */

#endif
