#ifndef CLI_OUTSIDE_H
#define CLI_OUTSIDE_H

/* outside: one request to somebody else's server, by fetch/, which knows the
 * operator's proxy and authorities, limits and deadlines; the loop runs for
 * this one request. Redirects are not followed: what is sent holds a secret.
 * Threads: the main one. */

#include "cli/cli.h"
#include "fetch/fetch.h"

enum { OUTSIDE_TIMEOUT_MS = 30 * 1000, OUTSIDE_BODY_MAX = 4 * 1024 * 1024 };

struct outside_request {
    struct str method, url, body;
    const struct fetch_header *headers;
    size_t n_headers;
};

struct outside_answer {
    int status;
    int64_t retry_after_ms; /* what its header says; zero: nothing */
    struct buf body;        /* initialised by who asks */
};

/* OK: there is an answer, whatever its status. Errors are fetch's, with its
 * words, which hold no secret. */
MUST_USE enum err outside_call(const struct config *config,
                               const struct outside_request *rq,
                               struct outside_answer *out, struct why *why);

#endif
