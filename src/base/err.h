#ifndef BASE_ERR_H
#define BASE_ERR_H

/* err: all errors, in one table.
 *
 * Every fallible function returns an enum err, zero for success. The table
 * gives each error its code for clients, its HTTP status, its JSON-RPC code,
 * the exit status of the command line, and a default message. Threads: any; the
 * table is constant. */

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Exit statuses of the command line. */
enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_REFUSED = 3,
    EXIT_UNREACHABLE = 4,
    EXIT_NOT_ALLOWED = 5,
};

#define ERR_TABLE(X)                                                           \
    /* name, code, HTTP status, JSON-RPC code, exit status, wording */         \
    X(NOMEM, "out_of_memory", 503, -32000, EXIT_FAILED,                        \
      "the server is out of memory; try again in a moment")                    \
    X(INTERNAL, "internal", 500, -32603, EXIT_FAILED,                          \
      "internal error; the server's log has the details")                      \
    X(IO, "io_error", 500, -32000, EXIT_FAILED, "reading or writing failed")   \
    X(NO_SPACE, "no_space", 507, -32000, EXIT_REFUSED,                         \
      "the disk is full; free some space and try again")                       \
    X(SYNTAX, "invalid_json", 400, -32700, EXIT_USAGE,                         \
      "this is not valid JSON")                                                \
    X(BAD_REQUEST, "bad_request", 400, -32600, EXIT_USAGE,                     \
      "the request is malformed")                                              \
    X(BAD_CONFIG, "bad_config", 422, -32602, EXIT_USAGE,                       \
      "the configuration is not valid")                                        \
    X(USAGE, "usage", 400, -32602, EXIT_USAGE, "wrong usage; try --help")      \
    X(UNAUTHENTICATED, "unauthenticated", 401, -32000, EXIT_NOT_ALLOWED,       \
      "a token is needed: Authorization: Bearer TOKEN")                        \
    X(NOT_ALLOWED, "not_allowed", 403, -32000, EXIT_NOT_ALLOWED,               \
      "you may not do that")                                                   \
    X(FOREIGN_ORIGIN, "foreign_origin", 403, -32000, EXIT_NOT_ALLOWED,         \
      "pages of this origin may not call; http.allowedOrigins lists those "    \
      "that may")                                                              \
    X(FOREIGN_HOST, "foreign_host", 421, -32000, EXIT_NOT_ALLOWED,             \
      "unknown Host header; http.allowedHosts lists the accepted names")       \
    X(NOT_FOUND, "not_found", 404, -32000, EXIT_REFUSED,                       \
      "there is no such thing here, or it is not yours to see")                \
    X(METHOD, "method_not_allowed", 405, -32601, EXIT_REFUSED,                 \
      "this path does not support that method")                                \
    X(TIMEOUT, "timeout", 408, -32000, EXIT_FAILED, "it took too long")        \
    X(PRECONDITION, "precondition_failed", 412, -32000, EXIT_REFUSED,          \
      "it has changed; read it again before you decide")                       \
    X(LIMIT, "too_large", 413, -32000, EXIT_REFUSED,                           \
      "this is larger than the limit")                                         \
    X(URI_TOO_LONG, "uri_too_long", 414, -32000, EXIT_REFUSED,                 \
      "the request line is longer than the limit")                             \
    X(EXPECTATION, "expectation_failed", 417, -32000, EXIT_REFUSED,            \
      "the only expectation understood is 100-continue")                       \
    X(UPGRADE, "upgrade_required", 426, -32000, EXIT_REFUSED,                  \
      "this path requires WebSocket, version 13")                              \
    X(RATE_LIMITED, "rate_limited", 429, -32000, EXIT_REFUSED,                 \
      "too many requests; slow down and try again after a moment")             \
    X(TOO_MANY_TASKS, "too_many_tasks", 429, -32000, EXIT_REFUSED,             \
      "you have too many unfinished tasks; wait until some end")               \
    X(ADDRESS, "address_not_allowed", 422, -32000, EXIT_REFUSED,               \
      "connections to that address are not allowed; outgoing.allow lists "     \
      "private addresses that are")                                            \
    X(HEADERS_TOO_LARGE, "headers_too_large", 431, -32000, EXIT_REFUSED,       \
      "the request headers are larger than the limit")                         \
    X(NOT_IMPLEMENTED, "not_implemented", 501, -32000, EXIT_REFUSED,           \
      "this server does not support that")                                     \
    X(OVERLOADED, "overloaded", 503, -32000, EXIT_UNREACHABLE,                 \
      "the server is at its limit; try again in a moment")                     \
    X(TOO_SLOW, "query_too_slow", 503, -32000, EXIT_REFUSED,                   \
      "this query takes too long; narrow it, or request fewer results")        \
    X(STOPPING, "stopping", 503, -32000, EXIT_UNREACHABLE,                     \
      "the server is shutting down; try again in a moment")                    \
    X(HTTP_VERSION, "http_version", 505, -32000, EXIT_REFUSED,                 \
      "only HTTP/1.0 and HTTP/1.1 are supported")                              \
    X(NO_REPLY, "no_reply", 504, -32000, EXIT_FAILED,                          \
      "the server did not answer in time; try again in a moment")              \
    X(AGENT_NOT_FOUND, "agent_not_found", 404, -32000, EXIT_REFUSED,           \
      "there is no agent with that name")                                      \
    X(AGENT_OFFLINE, "agent_offline", 503, -32000, EXIT_REFUSED,               \
      "that agent is not connected; it must be running to be given work")      \
    X(NOT_AWAKE, "agent_did_not_wake", 504, -32000, EXIT_REFUSED,              \
      "that agent was woken and did not connect in time")                      \
    X(AGENT_BUSY, "agent_busy", 503, -32000, EXIT_REFUSED,                     \
      "that agent's queue is full; try again later")                           \
    X(NO_ROUTE, "no_route", 422, -32000, EXIT_REFUSED,                         \
      "no agent was found for this message; name one as executor.name")        \
    X(FROM, "from_mismatch", 403, -32000, EXIT_NOT_ALLOWED,                    \
      "from is not the sender; leave it out, and it is filled in")             \
    X(NAME_RESERVED, "name_reserved", 403, -32000, EXIT_NOT_ALLOWED,           \
      "that name is reserved: rules or settings mention it; choose "           \
      "another, or ask an admin")                                              \
    X(FUNDS, "insufficient_funds", 402, -32000, EXIT_REFUSED,                  \
      "the balance is less than the price; an admin can top it up")            \
    X(BUDGET, "budget_exceeded", 402, -32000, EXIT_REFUSED,                    \
      "this would cost more than the budget allows")                           \
    X(CEILING, "cost_ceiling", 402, -32000, EXIT_REFUSED,                      \
      "this would cost more than the message allows; set max_cost_micros")     \
    X(QUOTE, "quote_expired", 409, -32000, EXIT_REFUSED,                       \
      "that quote is unknown or has expired; call POST /api/route again")      \
    X(DELEGATION, "delegation_not_allowed", 403, -32000, EXIT_NOT_ALLOWED,     \
      "the requester may not delegate to that agent")                          \
    X(DELEGATIONS, "too_many_delegations", 429, -32000, EXIT_REFUSED,          \
      "too many delegations are open; wait until some are done")               \
    X(ID_IN_USE, "id_in_use", 409, -32000, EXIT_REFUSED,                       \
      "a delegation with this id is still open; use another id")               \
    X(IDEMPOTENCY_MISMATCH, "idempotency_mismatch", 422, -32000, EXIT_REFUSED, \
      "this idempotency key (an envelope's message_id) was used for "          \
      "another request; use a new one")                                        \
    X(TASK_IS_OVER, "task_is_over", 409, -32000, EXIT_REFUSED,                 \
      "the task has already ended")                                            \
    X(TASK_NOT_OVER, "task_not_over", 409, -32000, EXIT_REFUSED,               \
      "the task has not ended yet")                                            \
    X(INPUT_IS_OVER, "input_is_over", 409, -32000, EXIT_REFUSED,               \
      "this was already answered, or is no longer needed")                     \
    X(EXISTS, "exists", 409, -32000, EXIT_REFUSED, "that name already exists") \
    X(OUTCOME_UNKNOWN, "outcome_unknown", 500, -32000, EXIT_FAILED,            \
      "the store failed: it is unknown whether this was saved. Repeat it "     \
      "with the same idempotency key")                                         \
    X(BUSY, "busy", 409, -32000, EXIT_REFUSED, "it is in use")                 \
    X(UNREACHABLE, "unreachable", 503, -32000, EXIT_UNREACHABLE,               \
      "no answer from there")                                                  \
    X(GONE, "gone", 410, -32000, EXIT_REFUSED, "it is no longer there")

enum err {
    OK = 0,
#define ERR_NAME(name, ...) ERR_##name,
    ERR_TABLE(ERR_NAME)
#undef ERR_NAME
        N_ERR
};

struct err_row {
    const char *code;
    int http_status;
    int rpc_code;
    enum exit_status exit_status;
    const char *wording;
};

/* The row of e; for OK and unknown numbers, the row of ERR_INTERNAL. */
const struct err_row *err_row(enum err e);

/* A message for a person, next to the code: the problem and its remedy. A text
 * that does not fit is truncated. */
struct why {
    char text[512];
};

/* Write the message into w (NULL: none wanted) and return e:
 *
 *     return why_err(why, ERR_IO, "cannot read %s: %s", path, reason); */
enum err why_err(struct why *w, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
