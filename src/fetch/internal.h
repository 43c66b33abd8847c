#ifndef FETCH_INTERNAL_H
#define FETCH_INTERNAL_H

/* What the files of fetch/ share.
 *
 *     fetch.c     the room: options, ids, what its callers may ask for
 *     request.c   the life of one request: begun, deadlines, the end
 *     place.c     how many there are to one host and port
 *     handle.c    a request as libcurl wants it told; the guard
 *     answer.c    head and body as they come in, with their limits
 *     redirect.c  where an answer sends us, and what goes along
 *     pool.c      libcurl's multi handle on the loop: sockets, timer
 *
 * libcurl may not be called from inside its callbacks, and the callbacks of
 * our owners run inside those. So whatever an owner asks for is written down
 * and done at the end of the turn (fetch_kick), when libcurl is at rest. */

#include <curl/curl.h>
#include <openssl/x509.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/url.h"
#include "fetch/fetch.h"

enum {
    SLOT_BITS = 24,
    HEADERS_MAX = 256,              /* of a request, and of an answer */
    REDIRECT_BODY_BYTES = 64 << 10, /* read for the sake of the connection */
    LONGEST_LOOKUP_MS = 10 * 60 * 1000,
};

/*     fetch_start                   answered, failed, cancelled
 *    ------------> NEW ---> ASKING -----------------------------> freed
 *                   ^          |  | over while its name is looked up
 *                   '----------'  '----> LINGERING -------------> freed
 *                    redirect                      found, or not
 */
enum request_state {
    REQUEST_NEW,       /* libcurl has not heard of it */
    REQUEST_ASKING,    /* in its pool's multi handle */
    REQUEST_LINGERING, /* there too, but its owner is done with it */
};

struct pool;
struct place;

struct request {
    struct fetch *fetch;
    struct pool *pool;     /* none while NEW */
    struct place *place;   /* where it counts; none: nowhere any more */
    struct list_node node; /* in the list of its state */
    struct list_node todo; /* in fetch->todo, if something is */
    struct timer timer;    /* the first of its deadlines */
    uint64_t id;           /* zero: its owner is done with it */
    uint32_t slot;
    uint8_t state; /* enum request_state; request_move changes it */
    struct fetch_handler on;
    void *ctx;

    /* What is asked. */
    struct arena arena;
    const char *method, *body;
    size_t body_bytes;
    struct fetch_header *headers;
    size_t n_headers;
    struct buf url_text; /* NUL-terminated behind its bytes */
    struct url url;      /* in it */
    bool is_trusted;     /* still at the origin that its owner vouched for */
    bool is_abroad;      /* was sent to another origin: few headers */
    int n_redirects, max_redirects;
    size_t max_body_bytes, max_event_bytes;

    /* When it is over. */
    int64_t timeout_ms, silence_ms;
    int64_t deadline_ms;   /* of all of it */
    int64_t connecting_ms; /* since when; INT64_MAX: not */
    int64_t heard_ms;      /* the latest byte; INT64_MAX: none is due yet */

    /* With libcurl. */
    CURL *easy;
    struct curl_slist *list;
    bool is_resolving; /* on a thread of libcurl's */
    bool is_asked;     /* on a connection: the rest is the answer */
    bool is_refused;   /* an address, by the guard */
    bool is_permitted; /* another one */
    bool is_stuck;     /* perhaps: see request_nudge */
    bool is_paused;
    char peer[ADDR_TEXT_BYTES], tls[16]; /* of the connection it has */
    char refused[ADDR_TEXT_BYTES];       /* by the guard; for operators */

    /* How it ends. If we end it ourselves, cut says so, and why has the words
     * for it; the first such reason stands. Else it is what libcurl says, in
     * said, and judge() writes why. */
    enum err cut;
    struct why why;
    char said[CURL_ERROR_SIZE];

    /* What came. */
    int status;
    size_t head_bytes; /* all that were header lines, 1xx and trailers too */
    size_t got_bytes;  /* of the body */
    size_t skip_bytes; /* of what libcurl will bring once more */
    bool is_headed, is_redirect, is_stream;
    bool is_whole;   /* all of it; its owner has paused and does not know */
    struct buf head; /* lines, each with LF */
    struct fetch_header *came;
    size_t n_came;
    struct buf body_in;
    struct sse sse;
};

/* One multi handle. Connections are kept within it alone, so that new options
 * mean a new pool, and the old one goes with its last request. */
struct pool {
    struct fetch *fetch;
    struct list_node node;
    CURLM *multi;
    X509_STORE *trust; /* see pool_trust */
    bool has_system_trust;
    char *proxy; /* NULL: none */
    bool is_proxy_address;
    struct timer timer;
    bool is_late; /* there was no memory for the timer: look every turn */
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
    struct pool *pool; /* for new requests; the others are on their way out */
    struct pool *next_pool; /* prepared, with these; NULL: none */
    struct fetch_opts next_opts;
    struct list pools;
    struct list by_state[3];
    struct list todo; /* requests to be ended, or to go on after a pause */
    size_t n_open, n_lingering;
    size_t n_resolving; /* those that linger among them */
    struct map places;  /* never more than requests */

    struct slot *slots;
    uint32_t n_slots, first_free;
    uint64_t n_ids;

    size_t n_watches; /* until libuv has given them back */
    struct loop_job job;
    bool is_stopping;
    void (*done)(void *ctx);
    void *done_ctx;
    struct fetch_stats stats;
};

/* fetch.c */

/* Do what was written down, at the end of this turn. */
void fetch_kick(struct fetch *f);
void fetch_give_slot(struct fetch *f, struct request *r);

/* request.c */

/* A copy of rq, with its first deadline set; not in any list yet. */
MUST_USE enum err request_new(struct fetch *f, const struct fetch_request *rq,
                              struct request **out, struct why *why);
void request_free(struct request *r);
void request_move(struct request *r, enum request_state to);

/* Hand it to libcurl. */
void request_begin(struct request *r);

/* libcurl is done with it. */
void request_ended(struct request *r, CURLcode code);

/* Its owner is told how it ended, if it is still there, and it goes. */
void request_finish(struct request *r, enum err e);

/* Its owner wants no more of it. */
void request_forget(struct request *r);

/* To be ended when libcurl is at rest: sets cut and the words for it. */
void request_cut(struct request *r, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Something to do for it at the end of the turn. */
void request_todo(struct request *r);

/* An address was tried, or given up. libcurl 7.88 goes on to the next, or says
 * that there is none, the next time it looks; and has nothing to wait for
 * meanwhile but a timer of its own, which is late or has fired already. So it
 * is made to look at the end of the turn. */
void request_nudge(struct request *r);

/* Set the timer for the first deadline there is. */
void request_arm(struct request *r);

/* Whether its name is being looked up. */
void request_set_resolving(struct request *r, bool is_resolving);

/* place.c */

/* Count r there, and no longer where it was. ERR_BUSY: there are as many as
 * may be; r stays where it was. */
MUST_USE enum err place_enter(struct request *r, const struct url *url,
                              struct why *why);
void place_leave(struct request *r);

/* handle.c */
MUST_USE enum err handle_set_up(struct request *r, struct pool *p);

/* Whether it needs no looking up. */
bool handle_is_address(struct str host);

/* answer.c */
size_t answer_header(char *p, size_t size, size_t n, void *ctx);
size_t answer_body(char *p, size_t size, size_t n, void *ctx);
void answer_init(struct request *r);
void answer_fini(struct request *r);
struct fetch_answer answer_of(const struct request *r);

/* redirect.c */

/* Whether the head that came sends us somewhere, and we go. */
bool redirect_is(const struct request *r);

/* Make r the next request. An error is how it ends, with words in r->why. */
MUST_USE enum err redirect_take(struct request *r);

/* pool.c */
MUST_USE enum err pool_new(struct fetch *f, const struct fetch_opts *opts,
                           struct pool **out, struct why *why);
void pool_free(struct pool *p);
MUST_USE enum err pool_add(struct pool *p, struct request *r);
void pool_remove(struct request *r);

/* Borrowed. Whom to believe, the system's certificates included. */
X509_STORE *pool_trust(struct pool *p);

/* Let libcurl do what it can, and hear which requests have ended. */
void pool_drive(struct pool *p);

#endif
