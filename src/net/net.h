#ifndef NET_NET_H
#define NET_NET_H

/* net: sockets, HTTP/1.1 and WebSocket, below everything that speaks.
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
#include "net/ws.h"

struct net;

struct net_opts {
    size_t max_connections;
    size_t max_connections_per_address; /* of v6 per /64; zero: no limit */
    const struct guard_range *exempt;   /* from that; borrowed until the next
                                         * options; without ports */
    size_t n_exempt;
    size_t max_request_line_bytes;
    size_t max_header_bytes; /* all header lines of a request together */
    size_t max_headers;
    size_t max_body_bytes;
    size_t max_unsent_bytes;   /* high-water mark per connection */
    size_t max_buffered_bytes; /* of all buffers together; see below */

    int64_t header_timeout_ms; /* first byte to end of headers; also for
                                * the TLS handshake */
    int64_t body_timeout_ms;   /* end of headers to end of body */
    int64_t idle_timeout_ms;   /* between requests */
    int64_t reply_timeout_ms;  /* request handed over to reply begun */
    int64_t write_timeout_ms;  /* without the peer taking a single byte */

    size_t ws_max_frame_bytes;
    size_t ws_max_message_bytes;
    int64_t ws_timeout_ms;       /* without a single byte of the peer's */
    int64_t ws_close_timeout_ms; /* our goodbye to the peer's */

    uint64_t seed[2]; /* of tables; those of net_new count */
};

/* Where as many connections are open as may be, one that is silent makes room,
 * else the one that is idle for longest (evict.c). Whoever comes when all are
 * at work, or as many as may be are open from that address, is told so with 503
 * and Retry-After, and turned away.
 * In a rush most of them are told in one breath: what they send is not waited
 * for, and somebody may see a closed connection instead. */

/* The buffers of all connections together hold max_buffered_bytes. Over that
 * a request that is only half here is refused (503, and closed) when more of
 * it comes; what is pipelined behind an open request is forgotten, and its
 * connection closed after the reply; no request is begun, and no more of a
 * stream taken, for a connection that has unsent bytes. A request that came
 * whole from somebody who reads is served as ever. A WebSocket of which
 * something would have to be kept is closed (1013). What remains beyond the
 * limit is one reply, message or piece of a stream for each connection; lest
 * that grow, new connections are turned away from a quarter beyond the limit
 * on, until it is kept again. */

/* Everything net tells its owner; called from the loop only. */
struct net_handler {
    void *ctx;

    /* Answer, now or later, with net_reply or net_stream_open. */
    void (*on_request)(void *ctx, uint64_t id, const struct http_request *rq);

    /* Whether it is to be answered although there is no room for the
     * connection it comes on: by the next call of on_request, which answers
     * at once. May be NULL: none is. */
    bool (*is_vital)(void *ctx, const struct http_request *rq);

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

/* TLS. Files in PEM: the certificate with what leads to its authority behind
 * it, and its private key. Who comes with a name (SNI) gets the first
 * certificate that is made out to it, everybody else the first of all. */
struct net_cert {
    const char *cert_file, *key_file;
};

/* Read the files and use them for every connection from now on; those that are
 * open keep theirs. On error (a file that is not there, a key that is not the
 * certificate's, one that is not valid now) the one that was read from that
 * file before stays, and why says which file and what to do; the others are
 * used all the same. Where there was none before, all stay as they are. */
MUST_USE enum err net_set_certs(struct net *n, const struct net_cert *certs,
                                size_t n_certs, struct why *why);

/* The same in two steps, of which the second cannot fail: read and check, then
 * use (takes them), or forget about it. After an error *out may be there and
 * can be used, or is NULL. */
struct net_certs;
MUST_USE enum err net_certs_new(struct net *n, const struct net_cert *certs,
                                size_t n_certs, struct net_certs **out,
                                struct why *why);
void net_certs_use(struct net *n, struct net_certs *certs);
void net_certs_free(struct net_certs *certs);

/* Whether net_set_certs would take it at now_ms, and when it ends, in seconds
 * since 1970. */
MUST_USE enum err net_check_cert(const struct net_cert *cert, int64_t now_ms,
                                 int64_t *ends_s, struct why *why);

/* Bind and listen on "HOST:PORT" or "[V6]:PORT" as base/addr.h reads it, with
 * port 0 for a free one. is_tls: net_set_certs came before. On error why says
 * what to do. */
MUST_USE enum err net_listen(struct net *n, struct str address, bool is_tls,
                             struct why *why);

/* The same without TLS, for requests of another kind: each of them says that it
 * came this way. `setting` is what chooses the address. */
MUST_USE enum err net_listen_side(struct net *n, struct str address,
                                  const char *setting, struct why *why);

/* "http://127.0.0.1:PORT" with the port really taken, the same with "https",
 * and for net_listen_side; empty where we do not listen. */
const char *net_url(const struct net *n);
const char *net_tls_url(const struct net *n);
const char *net_side_url(const struct net *n);

/* Headers for whatever answers an open request, also where net itself does (a
 * time-out). Bytes are copied, up to NET_ALSO_BYTES of lines; without memory
 * for them they are left out. A second call takes the place of the first. */
enum { NET_ALSO_BYTES = 1024 };
void net_reply_also(struct net *n, uint64_t id, const struct http_header *h,
                    size_t n_headers);

/* Answer a request whole. A HEAD request gets the same headers and no body.
 * Bytes are copied. An id that is nobody is ignored. */
void net_reply(struct net *n, uint64_t id, const struct http_reply *r);

/* Whether no more will come from the client of an open request: it left, or
 * only shut its sending side. For long work, which the latter may be refused
 * for the sake of all the former. False for an id that is nobody. */
bool net_is_shut(const struct net *n, uint64_t id);

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

/* WebSocket. A connection that became one keeps the id of the request it came
 * with for as long as it lives, and has a handler of its own.
 *
 * Net answers pings, checks what comes (net/ws.h), closes as the protocol
 * wants it, pings whoever is silent for a third of ws_timeout_ms and ends it
 * when nothing came for all of that. Who does not read what is sent to it is
 * not read from either. */

struct net_ws_end {
    uint16_t code;     /* what the peer said, or we to it; WS_NO_CLOSE when the
                        * two did not part as they should */
    struct str reason; /* in UTF-8; of the peer's close, or why we ended it */
    bool is_ours;      /* we ended it: the owner, a limit, a time-out, a bad
                        * frame */
    enum err e;        /* of a dial that came to nothing: ERR_ADDRESS by the
                        * guard; ERR_UNREACHABLE: no name, no connection, no
                        * trust in its certificate; ERR_TIMEOUT; ERR_LIMIT;
                        * ERR_BAD_REQUEST: it does not speak WebSocket there,
                        * or not as it should; ERR_GONE: the owner gave up;
                        * ERR_NOMEM. Else OK */
};

/* Called from the loop only, never from inside a call of the owner's. */
struct net_ws_handler {
    /* A dialled one is open. May be NULL where nothing is dialled. */
    void (*on_open)(void *ctx, uint64_t id, struct str protocol);

    /* A message, whole. Its bytes live for the call. */
    void (*on_message)(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes);

    /* One that answered ERR_BUSY can take more. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);

    /* The last word, once, whoever ended it: the id is nobody from here on. */
    void (*on_end)(void *ctx, uint64_t id, const struct net_ws_end *end);
};

/* Answer a request by becoming a WebSocket. Borrows handler for as long as it
 * lives. protocol is one of those the client named, or empty. ERR_GONE: the id
 * is nobody, perhaps only since now (memory is gone, or what came behind the
 * request was not kept); there is no on_end then, nor on_gone. */
MUST_USE enum err net_ws_accept(struct net *n, uint64_t id,
                                const struct ws_hello *hello,
                                struct str protocol,
                                const struct net_ws_handler *handler,
                                void *ctx);

/* One message in one frame; a text is in UTF-8, which is not checked. ERR_BUSY
 * as net_stream_send. ERR_GONE: it takes no more, because a close was said or
 * memory is gone; on_end comes, or was there already. */
MUST_USE enum err net_ws_send(struct net *n, uint64_t id, enum ws_kind kind,
                              struct str bytes);

/* Read no more of it for now: the owner is behind. No message comes while it
 * is paused, nor is its silence held against it. Counted: as often as it was
 * paused it is to be let go on. */
void net_ws_pause(struct net *n, uint64_t id, bool is_paused);

/* Say goodbye and wait for the peer's (ws_close_timeout_ms at the most); no
 * more messages come. on_end comes in a later turn. A reason that is too long
 * is cut. Of one that is still being dialled: give up. */
void net_ws_close(struct net *n, uint64_t id, uint16_t code, struct str reason);

/* The other direction: be the client. */
struct net_dial {
    struct str url;                    /* ws:// or wss:// */
    const struct http_header *headers; /* "Authorization" and the like */
    size_t n_headers;
    struct str protocol;       /* empty: none */
    const struct guard *guard; /* borrowed until on_open or on_end; NULL: the
                                * URL is the operator's own */
    const char *ca_file;       /* NULL: those of the system */
    int64_t timeout_ms;        /* name to handshake done */
};

/* The id is that of the WebSocket to be; on_open or on_end says what came of
 * it, in a later turn. Copies d. Every address the name has is tried in turn,
 * those that the guard refuses left out; redirects are not followed. An error:
 * nothing was begun (ERR_SYNTAX, ERR_USAGE, ERR_LIMIT, ERR_NOMEM,
 * ERR_STOPPING). */
MUST_USE enum err net_ws_dial(struct net *n, const struct net_dial *d,
                              const struct net_ws_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Take no new connections, let open requests finish, close what is idle, say
 * goodbye to WebSockets (1001) and give up what is being dialled. When the
 * last connection has gone, or after grace_ms, done is called once from the
 * loop; only a name that is being looked up has to come back first, which
 * takes what the system's resolver allows. Asked again, only the grace is
 * new. */
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

/* Who ended a WebSocket, and why. */
enum net_ws_cause {
    NET_WS_PEER,       /* the peer said goodbye */
    NET_WS_OWNER,      /* we did, by net_ws_close or net_stop */
    NET_WS_LOST,       /* it was gone without a word */
    NET_WS_BAD,        /* it broke the protocol */
    NET_WS_LIMIT,      /* a frame or message beyond a limit */
    NET_WS_SILENT,     /* nothing came for ws_timeout_ms */
    NET_WS_SLOW,       /* it took nothing for write_timeout_ms */
    NET_WS_OVERLOADED, /* all buffers were full, or memory gone */
    N_NET_WS_CAUSES
};

struct net_stats {
    int64_t connections;                   /* open now */
    int64_t connections_total;             /* ever taken */
    int64_t refused_total;                 /* turned away, for whatever limit */
    int64_t refused_by_total[N_NET_ROOMS]; /* by what there was too little of */
    int64_t evicted_total; /* silent or idle ones that made room for others */
    int64_t requests_total;
    int64_t replies_total[6]; /* by first digit of the status; 1: go on, or
                               * become a WebSocket */
    int64_t bad_requests_total;
    int64_t overloaded_total;  /* refused over max_buffered_bytes */
    int64_t timeouts_total;    /* a request, a reply or a reader too slow */
    int64_t idle_closed_total; /* nothing came for idle_timeout_ms */
    int64_t bytes_in_total, bytes_out_total;
    int64_t tls_handshakes_total; /* that were finished */
    int64_t tls_failed_total;     /* that were not */
    int64_t tls_cut_total;        /* of those, cut because others came: the
                                   * oldest of too many */
    int64_t tls_cert_ends_s;      /* when the first of the certificates does,
                                   * since 1970; zero: there is none */
    int64_t unsent_bytes;         /* waiting to be written, all connections */
    int64_t buffered_bytes;       /* memory of the buffers of all connections */

    int64_t websockets;       /* open now, in and out */
    int64_t websockets_total; /* ever open */
    int64_t ws_messages_in_total, ws_messages_out_total;
    int64_t ws_pings_total; /* sent to who was silent */
    int64_t ws_ends_total[N_NET_WS_CAUSES];
    int64_t dialling; /* under way now */
    int64_t dials_total, dials_failed_total;
};

struct net_stats net_stats(const struct net *n);

#endif
