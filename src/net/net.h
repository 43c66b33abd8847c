#ifndef NET_NET_H
#define NET_NET_H

/* net: sockets and HTTP/1.1, below everything that speaks.
 *
 * Takes connections, reads requests strictly, hands each one over whole (its
 * body included), and writes replies and streams. One request per connection
 * is open at a time: what was pipelined behind it waits in the input buffer,
 * so replies leave in order by construction. Whatever gathered for a
 * connection during a turn of the loop leaves in one write at its end.
 *
 * Owns: listeners, connections and their buffers. Others hold a request's id
 * and never a pointer: an id whose connection has gone is simply nobody.
 * Threads: the loop's. */

#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "net/http.h"

struct net;

struct net_opts {
    size_t max_connections;
    size_t max_connections_per_address; /* of v6 per /64; zero: no limit */
    const struct guard_range *exempt;   /* from that; borrowed until the next
                                         * options. Ports do not count */
    size_t n_exempt;
    size_t max_request_line_bytes;
    size_t max_header_bytes; /* all header lines of a request together */
    size_t max_headers;
    size_t max_body_bytes;
    size_t max_unsent_bytes;   /* high-water mark per connection */
    size_t max_buffered_bytes; /* of all buffers together; see below */

    int64_t header_timeout_ms; /* first byte to end of headers */
    int64_t body_timeout_ms;   /* end of headers to end of body */
    int64_t idle_timeout_ms;   /* between requests */
    int64_t reply_timeout_ms;  /* request handed over to reply begun */
    int64_t write_timeout_ms;  /* without the peer taking a single byte */

    uint64_t seed[2]; /* of tables; those of net_new count */
};

/* Whoever comes when there is no room (as many connections as may be, in all
 * or from that address) is told so with 503 and Retry-After, and turned away.
 * In a rush most of them are told in one breath: what they send is not waited
 * for, and somebody may see a closed connection instead. */

/* The buffers of all connections together hold max_buffered_bytes. Over that
 * a request that is only half here is refused (503, and closed) when more of
 * it comes; what is pipelined behind an open request is forgotten, and its
 * connection closed after the reply; no request is begun, and no more of a
 * stream taken, for a connection that has unsent bytes. A request that came
 * whole from somebody who reads is served as ever. What remains beyond the
 * limit is one reply or piece of a stream for each connection; lest that grow,
 * new connections are turned away meanwhile, until an eighth is free again. */

/* Everything net tells its owner; called from the loop only. */
struct net_handler {
    void *ctx;

    /* Answer, now or later, with net_reply or net_stream_open. */
    void (*on_request)(void *ctx, uint64_t id, const struct http_request *rq);

    /* The client left, or was cut off, before its request was finished. The
     * id is nobody from here on. A client that only shut its sending side
     * still gets its reply, and cannot be told from one that closed: of the
     * latter we learn at the first write after it. */
    void (*on_gone)(void *ctx, uint64_t id);

    /* A stream that answered ERR_BUSY can take more. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);

    /* Word an error that net itself answers (bad request, time-out, limit):
     * fill body and return its content type. `what` says it more closely than
     * e can, in words without a full stop and without a byte of the client's;
     * it may be empty. */
    struct str (*word_error)(void *ctx, enum err e, struct str what,
                             struct buf *body);
};

/* Borrows loop and log; copies opts and handler. NULL: memory is gone. */
struct net *net_new(struct loop *loop, struct log *log,
                    const struct net_opts *opts,
                    const struct net_handler *handler);

/* Limits and time-outs may change while running. A wait that has begun keeps
 * its time-out; a limit holds from the next bytes on, also for a request that
 * is half here, all but its head if that was whole. */
void net_set_opts(struct net *n, const struct net_opts *opts);

/* Bind and listen on "HOST:PORT" or "[V6]:PORT" as base/addr.h reads it, with
 * port 0 for a free one. On error why says what to do. */
MUST_USE enum err net_listen(struct net *n, struct str address,
                             struct why *why);

/* "http://127.0.0.1:PORT" with the port really taken; empty before listening.
 */
const char *net_url(const struct net *n);

/* Answer a request whole. A HEAD request gets the same headers and no body.
 * Bytes are copied. An id that is nobody is ignored. */
void net_reply(struct net *n, uint64_t id, const struct http_reply *r);

/* Answer with a stream: chunked, sent as it comes (on HTTP/1.0: until the
 * connection closes). For server-sent events say content type
 * text/event-stream. The reply's body, if any, is its beginning. ERR_GONE: the
 * id is nobody, or was a HEAD request, which now has its headers. */
MUST_USE enum err net_stream_open(struct net *n, uint64_t id,
                                  const struct http_reply *r);

/* ERR_BUSY: more than max_unsent_bytes wait already, or anything at all while
 * the buffers of all are over their limit; nothing was taken, and on_room says
 * when to go on. ERR_GONE: the id is nobody, perhaps only since
 * now, because memory is gone; there is no on_gone in addition. */
MUST_USE enum err net_stream_send(struct net *n, uint64_t id, struct str bytes);
void net_stream_end(struct net *n, uint64_t id);

/* Take no new connections, let open requests finish, close what is idle. When
 * the last connection has gone, or after grace_ms, done is called once from
 * the loop. Asked again, only the grace is new. */
void net_stop(struct net *n, int64_t grace_ms, void (*done)(void *ctx),
              void *ctx);

/* Only in or after net_stop's done, or before net_listen. */
void net_free(struct net *n);

/* What there may be too little of for another connection. */
enum net_room {
    NET_ROOM, /* nothing: there is room */
    NET_NO_CONNECTION,
    NET_NO_ADDRESS, /* for one more of that address */
    NET_NO_BUFFERS,
    N_NET_ROOMS,
};

struct net_stats {
    int64_t connections;                   /* open now */
    int64_t connections_total;             /* ever taken */
    int64_t refused_total;                 /* turned away, for whatever limit */
    int64_t refused_by_total[N_NET_ROOMS]; /* by what there was too little of */
    int64_t requests_total;
    int64_t replies_total[6]; /* by first digit of the status; 1: go on */
    int64_t bad_requests_total;
    int64_t overloaded_total;  /* refused over max_buffered_bytes */
    int64_t timeouts_total;    /* a request, a reply or a reader too slow */
    int64_t idle_closed_total; /* nothing came for idle_timeout_ms */
    int64_t bytes_in_total, bytes_out_total;
    int64_t unsent_bytes;   /* waiting to be written, all connections */
    int64_t buffered_bytes; /* memory of the buffers of all connections */
};

struct net_stats net_stats(const struct net *n);

#endif
