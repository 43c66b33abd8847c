#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/* client: the commands' way to a running server, over the HTTP API.
 *
 * The server is named by --url or SIGNALBOX_URL, the token by --token-file or
 * SIGNALBOX_TOKEN; there is no option for the token itself, since everybody on
 * the machine can read the command lines of others. Over https, --ca or
 * SIGNALBOX_CA names a file of the authorities to trust instead of those of
 * the system. No proxy is used, no
 * redirect followed, every wait has an end and every answer a limit.
 * Threads: the main one. */

#include "base/json.h"
#include "base/sse.h"
#include "cli/cli.h"

struct client;

/* The options that client_new reads. */
#define CLIENT_OPTIONS                                                         \
    {"url", "URL", "the server; else $SIGNALBOX_URL, else on this machine",    \
     false},                                                                   \
        {"ca", "FILE",                                                         \
         "trust the authorities in this PEM file; else $SIGNALBOX_CA", false}, \
    {                                                                          \
        "token-file", "FILE", "read the token here; else $SIGNALBOX_TOKEN",    \
            false                                                              \
    }

enum {
    CLIENT_TIMEOUT_MS = 30 * 1000,
    CLIENT_CONNECT_MS = 5 * 1000,
    CLIENT_SILENCE_MS = 60 * 1000,  /* a stream that says nothing is dead */
    CLIENT_PATIENCE_MS = 30 * 1000, /* with a server that asks to come later */
    CLIENT_BODY_MAX = 256 * 1024 * 1024,
    CLIENT_EVENT_MAX = 32 * 1024 * 1024,
    CLIENT_TOKEN_MAX = 512,
    CLIENT_URL_MAX = 1024,
    CLIENT_PAGE = 50, /* of a list; an item can be of some megabytes */
};

/* NULL: it has been said what is missing, and *status is what to end with. */
MUST_USE struct client *client_new(struct cli *c, enum exit_status *status);
void client_free(struct client *cl);

struct client_request {
    const char *method;
    struct str path;    /* "/api/tasks?limit=5" */
    struct str body;    /* JSON; empty: none */
    int64_t timeout_ms; /* for each try; zero: CLIENT_TIMEOUT_MS */
    int64_t until_ms;   /* monotonic: none begins later; zero: no matter */
    sse_fn *on_event;   /* ask for a stream, without limit of time; else NULL */
    bool answers_inputs; /* of it: somebody looks on, and answers agents */
    void *ctx;
    bool is_array;      /* the answer is one; else it is an object */
    bool must_be_new;   /* If-None-Match: * */
    bool wants_text;    /* the answer is no JSON document: reply.text */
    bool resumes;       /* go on behind the last event that was heard */
    const char *notice; /* what is waited for, for people; may be NULL */
};

/* What came of it. Lives until the next call. */
struct client_reply {
    enum err err;
    struct why why;        /* in words, when err is not OK */
    int status;            /* HTTP; zero: there was no answer */
    bool was_sent;         /* the server may have got the request */
    int64_t retry_after_s; /* what it says of that; zero: nothing */
    struct json *json;     /* the answer or the server's error; NULL for none */
    struct str text;       /* the answer, where that was wanted */
};

/* Ask, and wait for the answer. OK: any 2xx; of a stream, that it ended, or
 * that on_event wanted no more. ERR_UNREACHABLE: nobody there, or nobody who
 * speaks as a server does. Otherwise what the server's code stands for.
 *
 * A server that says when to come back (Retry-After) is asked again then, up to
 * CLIENT_PATIENCE_MS in all and until r->until_ms: after a 429, with which
 * nothing was done, and after a 503 to a GET. So is one that hangs up in the
 * handshake of TLS, where it cannot say so. */
MUST_USE enum err client_call(struct client *cl,
                              const struct client_request *r);
const struct client_reply *client_reply(const struct client *cl);

/* Say what went wrong in the last call, and return the status that belongs to
 * it. With --json the server's own words, whole. */
enum exit_status client_fail(struct client *cl);

/* The same, for commands that have --to: words that tell how a message names
 * its agent tell of that. */
enum exit_status client_fail_to(struct client *cl);

/* A server's message with the names of the API replaced by those of the command
 * line. Allocated in c->arena. */
struct str client_own_words(struct cli *c, struct str words);

/* The id of the last event that was heard; empty before the first. */
struct str client_last_id(const struct client *cl);

/* Show or take away a line for people who wait; nothing in a pipe. */
void client_notice(struct client *cl, const char *fmt, ...) PRINTF_LIKE(2, 3);
void client_notice_off(struct client *cl);

/* No more of them, while there is half a line of an answer where they would
 * be. */
void client_quiet(struct client *cl, bool is_quiet);

/* From here on SIGINT does not end us but the call that is going on, and those
 * after it go on as usual; a second one ends us. */
void client_heed_interrupt(struct client *cl);
bool client_was_interrupted(const struct client *cl);

/* Wait, and take the line away. */
void client_pause(struct client *cl, int64_t ms);

/* Add a part of a path, and a part of its query, escaped as needed. */
void client_add_part(struct buf *path, struct str part);
void client_add_query(struct buf *path, const char *name, struct str value);

/* Go through a list, page by page, up to `limit` items. False from `each`
 * ends it. *more: there are more than were asked for. */
typedef bool client_item_fn(void *ctx, const struct json *item);
MUST_USE enum err client_list(struct client *cl, struct str path, int64_t limit,
                              client_item_fn *each, void *ctx, bool *more);

/* A member that is text, or a whole number; empty, or zero, when there is
 * none. */
struct str cli_field(const struct json *v, struct str key);
int64_t cli_field_int(const struct json *v, struct str key);

#endif
