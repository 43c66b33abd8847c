#ifndef API_CALLS_H
#define API_CALLS_H

#include "base/buf.h"
#include "speak/fields.h"

/* The table of calls (calls.c): all of the HTTP API, a row per call. api.c
 * checks and reads requests by it; GET /, GET /openapi.json and the table in
 * docs/protocol.md are generated from it. */

struct call;

/* Access, besides the scopes. Health checks are answered for any Host header
 * and however often they come, because load balancers send them. All other
 * calls need one of our own host names, so that no web page reads them through
 * a name that was made to resolve to this server. */
enum {
    PUBLIC = 1 << 30,
    ANY_TOKEN = 1 << 29,
    HEALTH = 1 << 28,  /* with PUBLIC */
    FIGURES = 1 << 27, /* with PUBLIC, unless metrics.public says no */
};

/* Headers that a call reads, and forms that its answer may have. */
enum call_extra {
    KEYED = 1 << 0,   /* Idempotency-Key */
    MATCHED = 1 << 1, /* If-Match and If-None-Match; answers an ETag */
    EVENTS = 1 << 2,  /* Accept: text/event-stream */
    ONLY_EVENTS = 1 << 3,
    CSV = 1 << 4,   /* text/csv, too */
    PLAIN = 1 << 5, /* text/plain, too */
    BARE = 1 << 6,  /* the body may be left out */
};

struct call_row {
    struct str method,
        path; /* ":x" matches one part of the path, "*" at the end the rest */
    void (*take)(struct call *c);
    const char *name; /* of the function, without "call_" */
    unsigned who;
    const char *answer; /* "201 Task": the status (default 200), and the type in
                         * the notation of speak/shapes.h, or a content type */
    const char *about;  /* for docs/protocol.md, in Markdown */
    const struct field *args;            /* of the query; NULL: none */
    const struct fields *body, *or_body; /* NULL: none */
    const char *raw_body; /* the type of a body that has no such table */
    const char *hub;      /* the method of /hub that does the same */
    unsigned extra;
};

/* Row i; NULL past the end. */
const struct call_row *call_row(size_t i);

/* Its path ends in "*". */
bool call_row_has_rest(const struct call_row *row);

/* "/api/tasks/:id" as "/api/tasks/{id}", or as "/api/tasks/ID". */
void call_row_add_path(struct buf *out, const struct call_row *row,
                       bool is_braced);

/* The methods of /hub, which child processes have too. */
struct hub_call;

enum method_flag {
    FOR_AGENTS = 1 << 0,   /* only after agent.register */
    LATER = 1 << 1,        /* answered in a later turn */
    FOR_CHILDREN = 1 << 2, /* also for child processes */
    NEW_WORK = 1 << 3,  /* not while the server stops or is short of memory */
    UNCOUNTED = 1 << 4, /* not counted for rate.perUser */
};

struct method_row {
    struct str name;
    void (*take)(struct hub_call *c);
    unsigned scope; /* zero: any token */
    unsigned flags;
    const char *about;
    const struct field *params; /* those that are read one by one; NULL: none */
    const struct fields *body;  /* of the call that takes the same; or NULL */
};

/* Row i; NULL past the end. */
const struct method_row *method_row(size_t i);

#endif
