#ifndef NET_CLIENT_INTERNAL_H
#define NET_CLIENT_INTERNAL_H

/* Internals that the files of client share.
 *
 *     fetch.c          options, ids, calls of the owners
 *     fetch_request.c  the life of one request: start, deadlines, end
 *     host_share.c     the number of requests to one host and port
 *     handle.c         a request in libcurl's options; the guard
 *     fetch_answer.c   head and body as they arrive, with their limits
 *     redirect.c       the target of a redirect, and the headers for it
 *     fetch_pool.c     libcurl's multi handle on the loop: sockets, timer
 *
 * libcurl may not be called from inside its callbacks, and the callbacks of
 * our owners run inside those. So calls of owners are only noted, and carried
 * out at the end of the turn (fetch_kick), when libcurl is idle. */

#include <curl/curl.h>
#include <openssl/x509.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/share.h"
#include "base/url.h"
#include "net/client/fetch.h"

enum {
    SLOT_BITS = 24,
    HEADERS_MAX = 256,              /* of a request, and of an answer */
    REDIRECT_BODY_BYTES = 64 << 10, /* read so that the connection can be
                                     * kept */
    LONGEST_LOOKUP_MS = 10 * 60 * 1000,
};

/*          fetch_start                   answered, failed, cancelled
 *    ------------> NEW ---> ASKING -----------------------------> freed
 *                   ^          |  | over during its name lookup
 *                   '----------'  '----> LINGERING -------------> freed
 *                    redirect                      lookup ended
 */
enum request_state {
    REQUEST_NEW,       /* libcurl does not know it yet */
    REQUEST_ASKING,    /* in its pool's multi handle */
    REQUEST_LINGERING, /* there too, but without an owner */
};

struct curl_pool;

struct request {
    struct fetch *fetch;
    struct curl_pool *pool;   /* NULL while NEW */
    struct share *host_share; /* counts it; NULL: it counts nowhere */
    struct list_node node;    /* in the list of its state */
    struct list_node todo;    /* in fetch->todo, or in no list */
    struct timer timer;       /* its earliest deadline */
    uint64_t id;              /* zero: it has no owner any more */
    uint32_t slot;
    uint8_t state; /* enum request_state; request_move changes it */
    struct fetch_handler on;
    void *ctx;

    /* The request. */
    struct arena arena;
    const char *method, *body;
    size_t body_bytes;
    struct fetch_header *headers;
    size_t n_headers;
    struct buf url_text; /* NUL-terminated behind its bytes */
    struct url url;      /* points into url_text */
    bool is_trusted;     /* still at the origin that its owner trusts */
    bool is_abroad;      /* redirected to another origin: few headers */
    int n_redirects, max_redirects;
    size_t max_body_bytes, max_event_bytes;

    /* Deadlines. */
    int64_t timeout_ms, silence_ms;
    int64_t deadline_ms;   /* of the whole request */
    int64_t connecting_ms; /* since when; INT64_MAX: it does not connect */
    int64_t heard_ms;      /* the latest byte; INT64_MAX: none is due yet */

    /* libcurl. */
    CURL *easy;
    struct curl_slist *list;
    bool is_resolving; /* on a thread of libcurl's */
    bool is_asked;     /* connected: the answer comes next */
    bool is_refused;   /* the guard rejected an address */
    bool is_permitted; /* the guard allowed another address */
    bool is_stuck;     /* perhaps: see request_nudge */
    bool is_paused;
    char peer[ADDR_TEXT_BYTES], tls[16]; /* of its connection */
    char refused[ADDR_TEXT_BYTES];       /* rejected by the guard; for
                                          * operators */

    /* The end. If we end it, cut is the reason and why has the message; the
     * first reason stays. Else libcurl ends it with its message in said, and
     * request_result writes why. */
    enum err cut;
    struct why why;
    char said[CURL_ERROR_SIZE];

    /* The answer. */
    int status;
    size_t head_bytes; /* all header lines, including 1xx and trailers */
    size_t got_bytes;  /* of the body */
    size_t skip_bytes; /* bytes that libcurl will repeat */
    bool is_headed, is_redirect, is_stream;
    bool is_whole;   /* complete; its owner has paused and was not told */
    struct buf head; /* lines, each with LF */
    struct fetch_header *came;
    size_t n_came;
    struct buf body_in;
    struct sse sse;
};

/* One multi handle. It has its own connections, so new options mean a new
 * pool, and the old one is freed with its last request. */
struct curl_pool {
    struct fetch *fetch;
    struct list_node node;
    CURLM *multi;
    X509_STORE *trust; /* see curl_pool_trust */
    bool has_system_trust;
    char *proxy; /* NULL: none */
    bool is_proxy_address;
    struct timer timer;
    size_t n_requests;
};

struct slot {
    struct request *r; /* NULL: free */
    uint32_t next_free;
};

struct fetch {
    struct loop *loop;
    struct log *log;
    struct fetch_opts opts;
    struct curl_pool *pool;      /* for new requests; other pools are closing */
    struct curl_pool *next_pool; /* prepared, with next_opts; NULL: none */
    struct fetch_opts next_opts;
    struct list pools;
    struct list by_state[3];
    struct list todo; /* requests to end, or to resume after a pause */
    size_t n_open, n_lingering;
    size_t n_resolving;        /* including those that linger */
    struct shares host_shares; /* at most one per request */

    struct slot *slots;
    uint32_t n_slots, first_free;
    uint64_t n_ids;

    size_t n_watches; /* until libuv has returned them */
    struct loop_job job;
    bool is_stopping;
    void (*done)(void *ctx);
    void *done_ctx;
    struct fetch_stats stats;
};

/* fetch.c */

/* Carry out what was noted, at the end of this turn. */
void fetch_kick(struct fetch *f);
void fetch_give_slot(struct fetch *f, struct request *r);

/* fetch_request.c */

/* A copy of rq, with its first deadline set; not in any list yet. */
MUST_USE enum err request_new(struct fetch *f, const struct fetch_request *rq,
                              struct request **out, struct why *why);
void request_free(struct request *r);
void request_move(struct request *r, enum request_state to);

/* Give it to libcurl. */
void request_begin(struct request *r);

/* libcurl is done with it. */
void request_ended(struct request *r, CURLcode code);

/* Report its end to its owner, if it has one, and free it. */
void request_finish(struct request *r, enum err e);

/* Its owner has cancelled it. */
void request_forget(struct request *r);

/* Note that it must end once libcurl is idle: sets cut and its message. */
void request_cut(struct request *r, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Put it on the list for the end of the turn. */
void request_todo(struct request *r);

/* An address was tried, or given up. libcurl 7.88 goes on to the next, or
 * reports that there is none, only the next time it runs; and meanwhile it
 * waits only for a timer of its own, which is late or has already fired. So it
 * is run at the end of the turn. */
void request_nudge(struct request *r);

/* Set the timer for the earliest deadline. */
void request_arm(struct request *r);

/* Note whether its name is being looked up. */
void request_set_resolving(struct request *r, bool is_resolving);

/* place.c */

/* Count r for that host and port, and no longer for its previous one.
 * ERR_BUSY: the limit is reached; r stays where it was. */
MUST_USE enum err host_share_enter(struct request *r, const struct url *url,
                                   struct why *why);
void host_share_leave(struct request *r);

/* handle.c */
MUST_USE enum err handle_set_up(struct request *r, struct curl_pool *p);

/* Whether it needs no name lookup. */
bool handle_is_address(struct str host);

/* fetch_answer.c */
size_t answer_header(char *p, size_t size, size_t n, void *ctx);
size_t answer_body(char *p, size_t size, size_t n, void *ctx);
void answer_init(struct request *r);
void answer_fini(struct request *r);
struct fetch_answer answer_of(const struct request *r);

/* redirect.c */

/* Whether the head is a redirect that is followed. */
bool redirect_is(const struct request *r);

/* Make r the next request. After an error r ends with it, with the message in
 * r->why. */
MUST_USE enum err redirect_take(struct request *r);

/* fetch_pool.c */
MUST_USE enum err curl_pool_new(struct fetch *f, const struct fetch_opts *opts,
                                struct curl_pool **out, struct why *why);
void curl_pool_free(struct curl_pool *p);
MUST_USE enum err curl_pool_add(struct curl_pool *p, struct request *r);
void curl_pool_remove(struct request *r);

/* Borrowed. Trusted certificates, including the system's. */
X509_STORE *curl_pool_trust(struct curl_pool *p);

/* Let libcurl work, and collect the requests that have ended. */
void curl_pool_drive(struct curl_pool *p);

#endif
