#ifndef NET_CLIENT_FETCH_H
#define NET_CLIENT_FETCH_H

/* fetch: outgoing HTTP and HTTPS, with libcurl's multi interface on the loop.
 *
 * One call makes one request; its connection is kept for the next request to
 * the same host and port. The answer comes whole, or in pieces, or as parsed
 * server-sent events. Every request has a deadline, every answer a limit.
 * Nothing is ever repeated here: only the caller knows whether a request may
 * be retried.
 *
 * The guard (base/guard.h) checks the socket's address before it is connected,
 * and again before each request on a kept connection: for the first address,
 * for every redirect, for every address of a name with several. Redirects are
 * followed here and not by libcurl, as new requests. Another origin gets no
 * header except Accept, Accept-Language, Content-Language, Content-Type,
 * User-Agent, traceparent and tracestate, and no body: a redirect that would
 * send the body there (307, 308, or any of a PUT) is not followed. There is no
 * proxy unless one is configured, whatever the environment says. With a proxy,
 * the proxy connects: the guard then checks hosts that are written as
 * addresses, and the proxy's own address is the operator's choice.
 *
 * Owns: requests and their connections. Callers hold an id, which is invalid
 * once the request is over. Threads: the loop's; names are looked up on
 * libcurl's own. */

#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/sse.h"
#include "base/str.h"

struct fetch;

struct fetch_opts {
    struct guard guard;  /* ranges borrowed until fetch_set or fetch_free */
    const char *proxy;   /* "http://host:port"; NULL or empty: none */
    const char *ca_file; /* in addition to those of the system; NULL: none */
    size_t max_open;     /* requests at once; more: ERR_BUSY. At most a quarter
                          * of it, but at least max_per_host, to one host and
                          * port, and half of it in name lookups */
    size_t max_per_host; /* connections; further requests wait for one */
    size_t max_kept;     /* connections kept when idle */
    int64_t connect_timeout_ms;
    size_t max_header_bytes; /* of an answer */
    uint64_t seed[2];        /* of tables; those of fetch_new count */
};

/* Borrowed until the next fetch_set. */
struct guard fetch_guard(const struct fetch *f);

struct fetch_header {
    struct str name, value;
};

/* Copied by fetch_start. */
struct fetch_request {
    struct str method; /* "GET", "POST", ... */
    struct str url;
    const struct fetch_header *headers;
    size_t n_headers;
    struct str body;
    bool is_trusted;        /* the URL is the operator's own: its origin is not
                             * guarded; redirects to other origins are, and
                             * those back from there */
    int max_redirects;      /* 0: 3xx is an ordinary answer */
    int64_t timeout_ms;     /* from start to the last byte */
    int64_t silence_ms;     /* without a byte of the answer; 0: timeout_ms */
    size_t max_body_bytes;  /* of the answer; of a stream, all of it */
    size_t max_event_bytes; /* of one server-sent event */
};

struct fetch_answer {
    int status;
    struct str url; /* the URL that answered, after redirects */
    const struct fetch_header *headers;
    size_t n_headers;
    struct str body;    /* the whole body, unless it was passed on in pieces */
    struct str peer;    /* the connected address, "192.0.2.1:443", or the
                         * proxy's; empty: none */
    struct str tls;     /* "TLSv1.3"; empty: plain text */
    struct str refused; /* the address that the guard rejected last; empty:
                         * none. For the operator only: callers who name a host
                         * must not learn its internal address */
};

struct fetch_handler {
    /* The head has arrived. May be NULL. */
    void (*on_head)(void *ctx, uint64_t id, const struct fetch_answer *a);

    /* A piece of the body. NULL: the body is collected for on_done. */
    void (*on_bytes)(void *ctx, uint64_t id, struct str bytes);

    /* One event of an answer of type text/event-stream. NULL: those are
     * ordinary answers. */
    void (*on_event)(void *ctx, uint64_t id, const struct sse_event *e);

    /* The end, once, never from inside fetch_start. e: OK (whatever the
     * status); ERR_ADDRESS: rejected by the guard, or a redirect that is not
     * followed: from https to http, or with a body to another origin;
     * ERR_UNREACHABLE: no name, no connection, or an untrusted certificate;
     * ERR_TIMEOUT; ERR_LIMIT: too much data, or too many redirects;
     * ERR_BAD_REQUEST: the answer is not HTTP, ended early, or redirects to an
     * invalid URL; ERR_BUSY: too many name lookups, or it was redirected to a
     * host and port that is at its limit; ERR_NOMEM; ERR_STOPPING. `why` says
     * it without secrets, and without the internal address of a name: it may
     * be shown to the user who named the host. */
    void (*on_done)(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why);
};

MUST_USE struct fetch *fetch_new(struct loop *loop, struct log *log,
                                 const struct fetch_opts *opts,
                                 struct why *why);

/* For all requests from now on, including those on kept connections. */
MUST_USE enum err fetch_set(struct fetch *f, const struct fetch_opts *opts,
                            struct why *why);

/* The same in two steps, for callers with other steps that may fail: prepare,
 * and then commit, which cannot fail, or forget. */
MUST_USE enum err fetch_prepare(struct fetch *f, const struct fetch_opts *opts,
                                struct why *why);
void fetch_commit(struct fetch *f);
void fetch_forget(struct fetch *f);

/* ERR_BUSY, with a message: max_open are in flight, or the limit for one host
 * and port is reached (a quarter of max_open, but at least max_per_host). Both
 * count requests that wait for a connection, and those that are over but still
 * in a name lookup, which cannot be hurried. ERR_SYNTAX: the URL, the method
 * or a header, with a message; callers may not set headers that frame a
 * request (Host, Content-Length and the like). On an error nothing was started
 * and on_done is not called. */
MUST_USE enum err fetch_start(struct fetch *f, const struct fetch_request *rq,
                              const struct fetch_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Stop reading the answer for now, including the rest of the current piece.
 * Its deadline continues, its silence does not count. The head and an error
 * are still reported; a good end waits. */
void fetch_pause(struct fetch *f, uint64_t id, bool is_paused);

/* No more callbacks for this request. */
void fetch_cancel(struct fetch *f, uint64_t id);

/* End all requests with ERR_STOPPING; done is called once, from the loop, when
 * nothing is left. Then fetch_free. */
void fetch_stop(struct fetch *f, void (*done)(void *ctx), void *ctx);
void fetch_free(struct fetch *f);

/* The error message in the body of an answer, in the common formats: one line
 * that fits `size` with its NUL, with the secrets blotted out. Empty: no
 * format was recognized. */
void fetch_complaint(struct str body, const struct str *secrets,
                     size_t n_secrets, char *out, size_t size);

/* The wait until "Retry-After: 30", or a date, in milliseconds, up to
 * FETCH_RETRY_MAX_MS. Zero: there is no such header, or no wait. */
enum { FETCH_RETRY_MAX_MS = 3600 * 1000 };
int64_t fetch_retry_after_ms(const struct fetch_answer *a, int64_t now_ms);

struct fetch_stats {
    int64_t open;      /* requests in flight */
    int64_t lingering; /* over, but still in a name lookup */
    int64_t started_total, refused_by_guard_total, failed_total;
    int64_t connections_total; /* new ones, not kept ones */
    int64_t bytes_in_total;
};
struct fetch_stats fetch_stats(const struct fetch *f);

#endif
