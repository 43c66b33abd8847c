#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/* client: calls to a running server, over the HTTP API.
 *
 * --url or SIGNALBOX_URL names the server, --token-file or SIGNALBOX_TOKEN has
 * the token. There is no option for the token itself, because everybody on a
 * machine can read its command lines. Over https, --ca or SIGNALBOX_CA names a
 * file of authorities to trust instead of the system's. No proxy is used and no
 * redirect followed; every wait has a deadline and every answer a limit.
 * Threads: the main one. */

#include "base/json.h"
#include "base/sse.h"
#include "cli/cli.h"

struct client;

/* The options that client_new reads. */
#define CLIENT_OPTIONS                                                         \
    {"url", "URL", "the server (default: $SIGNALBOX_URL, or this machine)",    \
     false},                                                                   \
        {"ca", "FILE",                                                         \
         "trust the authorities in this PEM file (default: $SIGNALBOX_CA)",    \
         false},                                                               \
    {                                                                          \
        "token-file", "FILE",                                                  \
            "read the token from this file (default: $SIGNALBOX_TOKEN)", false \
    }

enum {
    CLIENT_TIMEOUT_MS = 30 * 1000,
    CLIENT_CONNECT_MS = 5 * 1000,
    CLIENT_SILENCE_MS = 60 * 1000,  /* a silent stream is dead */
    CLIENT_PATIENCE_MS = 30 * 1000, /* the longest Retry-After to wait for */
    CLIENT_BODY_MAX = 256 * 1024 * 1024,
    CLIENT_EVENT_MAX = 32 * 1024 * 1024,
    CLIENT_TOKEN_MAX = 512,
    CLIENT_URL_MAX = 1024,
    CLIENT_PAGE = 50, /* of a list; an item can have some megabytes */
};

/* NULL: the error has been printed, and *status is the exit status. */
MUST_USE struct client *client_new(struct cli *c, enum exit_status *status);
void client_free(struct client *cl);

struct client_request {
    const char *method;
    struct str path;     /* "/api/tasks?limit=5" */
    struct str body;     /* JSON; empty: none */
    int64_t timeout_ms;  /* for each try; zero: CLIENT_TIMEOUT_MS */
    int64_t until_ms;    /* monotonic: no try begins later; zero: no limit */
    sse_fn *on_event;    /* request a stream, without a time limit; or NULL */
    bool answers_inputs; /* stream: the user can answer questions of agents */
    void *ctx;
    bool is_array;      /* the answer is an array; else an object */
    bool must_be_new;   /* If-None-Match: * */
    bool wants_text;    /* the answer is not JSON: reply.text */
    bool resumes;       /* continue after the last event */
    const char *notice; /* shown to waiting users; may be NULL */
};

/* The result of a call. Lives until the next call. */
struct client_reply {
    enum err err;
    struct why why;        /* the message, if err is not OK */
    int status;            /* HTTP; zero: no answer */
    bool was_sent;         /* the server may have received the request */
    int64_t retry_after_s; /* Retry-After; zero: none */
    struct json *json;     /* the answer or the server's error; NULL: none */
    struct str text;       /* the answer, with wants_text */
};

/* Send a request and wait for the answer. OK: any 2xx; a stream has ended, or
 * on_event returned false. ERR_UNREACHABLE: no response, or not from a
 * Signalbox. Otherwise the error for the server's code.
 *
 * After a Retry-After the request is repeated, for CLIENT_PATIENCE_MS in total
 * and until r->until_ms: after a 429, which had no effect, and after a 503 to a
 * GET. It is also repeated if the server hangs up in the TLS handshake. */
MUST_USE enum err client_call(struct client *cl,
                              const struct client_request *r);
const struct client_reply *client_reply(const struct client *cl);

/* Print the error of the last call and return its exit status. With --json the
 * server's error is printed unchanged. */
enum exit_status client_fail(struct client *cl);

/* The same for commands with --to: the message names --to instead of
 * executor.name. */
enum exit_status client_fail_to(struct client *cl);

/* A server's message with the names of the API replaced by those of the command
 * line. Allocated in c->arena. */
struct str client_own_words(struct cli *c, struct str words);

/* The id of the last event; empty before the first. */
struct str client_last_id(const struct client *cl);

/* Show or erase a line for waiting users; nothing in a pipe. */
void client_notice(struct client *cl, const char *fmt, ...) PRINTF_LIKE(2, 3);
void client_notice_off(struct client *cl);

/* Suppress notices while the line has a part of an answer. */
void client_quiet(struct client *cl, bool is_quiet);

/* From here on the first SIGINT ends only the current call, and later calls
 * work as usual; a second SIGINT ends the process. */
void client_heed_interrupt(struct client *cl);
bool client_was_interrupted(const struct client *cl);

/* Wait, then erase the line. */
void client_pause(struct client *cl, int64_t ms);

/* Add a part of a path, and a part of its query, escaped as needed. */
void client_add_part(struct buf *path, struct str part);
void client_add_query(struct buf *path, const char *name, struct str value);

/* Add the time of an option, a span like "7d" or Unix time in ms, as Unix ms;
 * nothing if it is not given. False: the error has been printed. */
MUST_USE bool client_add_time(struct cli *c, struct buf *path,
                              const char *option, const char *name,
                              enum exit_status *status);

/* Read a list page by page, up to `limit` items or until `each` returns
 * false. *more: there are more than `limit`. */
typedef bool client_item_fn(void *ctx, const struct json *item);
MUST_USE enum err client_list(struct client *cl, struct str path, int64_t limit,
                              client_item_fn *each, void *ctx, bool *more);

/* A member that is text or a whole number; empty or zero if it is missing. */
struct str cli_field(const struct json *v, struct str key);
int64_t cli_field_int(const struct json *v, struct str key);

#endif
