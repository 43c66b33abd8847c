#ifndef CLI_OUTSIDE_H
#define CLI_OUTSIDE_H

/* outside: one request to a foreign server. It uses fetch, which knows the
 * operator's proxy, authorities, limits and deadlines; the loop runs for this
 * one request. Redirects are not followed, because the request contains a
 * secret. Threads: the main one. */

#include "cli/cli.h"
#include "net/client/fetch.h"

enum { OUTSIDE_TIMEOUT_MS = 30 * 1000, OUTSIDE_BODY_MAX = 4 * 1024 * 1024 };

struct outside_request {
    struct str method, url, body;
    const struct fetch_header *headers;
    size_t n_headers;
};

struct outside_answer {
    int status;
    int64_t retry_after_ms; /* from its header; zero: none */
    struct buf body;        /* initialised by the caller */
};

/* OK: there is an answer, with any status. Errors and messages are fetch's; the
 * messages contain no secret. */
MUST_USE enum err outside_call(const struct config *config,
                               const struct outside_request *rq,
                               struct outside_answer *out, struct why *why);

#endif
