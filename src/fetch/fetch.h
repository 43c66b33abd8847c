#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

/* fetch: outgoing HTTP and HTTPS, by libcurl's multi interface on the loop.
 *
 * One call makes one request; its connection is kept for the next to the same
 * place. The answer comes whole, or as it arrives, or as server-sent events
 * taken apart. Every request has a deadline, every answer a limit. Nothing is
 * ever asked twice by itself: whether to retry is for whoever knows what the
 * request does.
 *
 * The guard (base/guard.h) is asked with the socket's address, before it is
 * connected and again before each request on a connection that was kept: for
 * the first address, for every redirect, for every address of a name with
 * several. Redirects are followed here and not by libcurl, as new requests. To
 * another origin goes no header but Accept, Accept-Language, Content-Language,
 * Content-Type, User-Agent, traceparent and tracestate, and no body at all: a
 * redirect that would take the body there (307, 308, or any of a PUT) is not
 * followed. No proxy
 * unless one is configured, whatever the environment says; with one, it is the
 * proxy that connects: the guard then judges hosts that are written as
 * addresses, and the proxy's own address is the operator's.
 *
 * Owns: requests and their connections. Others hold an id; an id that is over
 * is nobody. Threads: the loop's; names are looked up on libcurl's own. */

#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/sse.h"
#include "base/str.h"

struct fetch;

struct fetch_opts {
    struct guard guard;  /* ranges borrowed until fetch_set or fetch_free */
    const char *proxy;   /* "http://host:port"; NULL or empty: none */
    const char *ca_file; /* beside those of the system; NULL: none */
    size_t max_open;     /* requests at the same time; more: ERR_BUSY. A
                          * quarter of it to one host and port, and half of it
                          * may have their names looked up */
    size_t max_per_host; /* connections; more requests wait for one */
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
    bool is_trusted;        /* the URL is the operator's own: its origin is
                             * not guarded; redirects to others are, and
                             * those back from there */
    int max_redirects;      /* 0: an answer 3xx is an answer like another */
    int64_t timeout_ms;     /* from start to the last byte */
    int64_t silence_ms;     /* without a byte of the answer; 0: timeout_ms */
    size_t max_body_bytes;  /* of the answer; of a stream, all of it */
    size_t max_event_bytes; /* of one server-sent event */
};

struct fetch_answer {
    int status;
    struct str url; /* that answered: another after a redirect */
    const struct fetch_header *headers;
    size_t n_headers;
    struct str body;    /* whole, where nobody took it as it came */
    struct str peer;    /* who was connected to, "192.0.2.1:443": with a proxy
                         * that one; empty: nobody */
    struct str tls;     /* "TLSv1.3"; empty: in plain text */
    struct str refused; /* the address that the guard refused last; empty:
                         * none. For the operator: whoever named the host must
                         * not learn from us what it means within */
};

struct fetch_handler {
    /* The head is here. May be NULL. */
    void (*on_head)(void *ctx, uint64_t id, const struct fetch_answer *a);

    /* Bytes of the body as they come; NULL: gathered until on_done. */
    void (*on_bytes)(void *ctx, uint64_t id, struct str bytes);

    /* One event of an answer whose type is text/event-stream; NULL: those are
     * answers like any other. */
    void (*on_event)(void *ctx, uint64_t id, const struct sse_event *e);

    /* The end, once, never from inside fetch_start. e: OK (whatever the
     * status); ERR_ADDRESS: the guard, or a redirect that is not
     * followed: from https to http, or with a body to another origin;
     * ERR_UNREACHABLE: no name, no connection, no trust in its certificate;
     * ERR_TIMEOUT; ERR_LIMIT: too much, also of redirects; ERR_BAD_REQUEST:
     * what came is not HTTP, ended early, or redirects to what is no place;
     * ERR_BUSY: too many names are being looked up, or it was redirected to
     * where as many are as may be; ERR_NOMEM; ERR_STOPPING. `why` says it in
     * words, without secrets, and without an address that a name within has:
     * it may be shown to whoever named the host. */
    void (*on_done)(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why);
};

MUST_USE struct fetch *fetch_new(struct loop *loop, struct log *log,
                                 const struct fetch_opts *opts,
                                 struct why *why);

/* From the next request on, kept connections included. */
MUST_USE enum err fetch_set(struct fetch *f, const struct fetch_opts *opts,
                            struct why *why);

/* The same in two steps, for who has more to do that may fail: prepare, and
 * then commit, which cannot fail, or forget. */
MUST_USE enum err fetch_prepare(struct fetch *f, const struct fetch_opts *opts,
                                struct why *why);
void fetch_commit(struct fetch *f);
void fetch_forget(struct fetch *f);

/* ERR_BUSY, with words: max_open are under way, or as many as may be to one
 * host and port (a quarter of max_open, but never less than max_per_host).
 * Both count those that wait for a connection, and those that are over but
 * whose names are still looked up: nobody can hurry that. ERR_SYNTAX: the URL,
 * the method or a header, with words; what frames a request (Host,
 * Content-Length and the like) is not for callers to say. On an error nothing
 * was begun and on_done is not called. */
MUST_USE enum err fetch_start(struct fetch *f, const struct fetch_request *rq,
                              const struct fetch_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Take no more of the answer for now, not even what is in the same piece; its
 * deadline goes on, its silence does not count. The head still comes, and an
 * end that is an error; one that is OK waits. */
void fetch_pause(struct fetch *f, uint64_t id, bool is_paused);

/* No more callbacks for it. */
void fetch_cancel(struct fetch *f, uint64_t id);

/* End everything that is under way with ERR_STOPPING; done is called once,
 * from the loop, when nothing is left. Then fetch_free. */
void fetch_stop(struct fetch *f, void (*done)(void *ctx), void *ctx);
void fetch_free(struct fetch *f);

/* What an answer that is an error says is wrong, in the shapes that are about:
 * one line that fits `size` with its NUL, with the secrets in it blotted out.
 * Empty: it says nothing that we understand. */
void fetch_complaint(struct str body, const struct str *secrets,
                     size_t n_secrets, char *out, size_t size);

/* "Retry-After: 30", or a date: how long that is from now, in milliseconds, up
 * to FETCH_RETRY_MAX_MS; zero: it does not say, or at once. */
enum { FETCH_RETRY_MAX_MS = 3600 * 1000 };
int64_t fetch_retry_after_ms(const struct fetch_answer *a, int64_t now_ms);

struct fetch_stats {
    int64_t open;      /* requests under way */
    int64_t lingering; /* over, but their names are still looked up */
    int64_t started_total, refused_by_guard_total, failed_total;
    int64_t connections_total; /* made; the rest were kept ones */
    int64_t bytes_in_total;
};
struct fetch_stats fetch_stats(const struct fetch *f);

#endif
