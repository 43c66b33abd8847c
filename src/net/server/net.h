#ifndef NET_SERVER_NET_H
#define NET_SERVER_NET_H

/* net: sockets, HTTP/1.1 and WebSocket, below every protocol of ours.
 *
 * Accepts connections, reads requests strictly, hands each one over whole
 * (including its body), and writes replies and streams. Each connection has at
 * most one open request: pipelined ones wait in the input buffer, so replies
 * leave in order by construction. Output of a connection gathers during a turn
 * of the loop and leaves in one write at its end.
 *
 * Owns: listeners, connections and their buffers. Callers hold a request's id
 * and never a pointer: an id is invalid once its connection has gone. Threads:
 * the loop's. */

#include "base/guard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "net/server/http.h"
#include "net/server/ws.h"

struct net;

struct net_opts {
    size_t max_connections;
    size_t max_connections_per_address; /* IPv6: per /64; zero: no limit */
    const struct guard_range *exempt;   /* exempt from that; borrowed until the
                                         * next options; without ports */
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
    int64_t reply_timeout_ms;  /* from on_request to the beginning of the
                                * reply */
    int64_t write_timeout_ms;  /* without the peer reading a single byte */

    size_t ws_max_frame_bytes;
    size_t ws_max_message_bytes;
    int64_t ws_timeout_ms;       /* without a single byte from the peer */
    int64_t ws_close_timeout_ms; /* from our close frame to the peer's */

    uint64_t seed[2]; /* of tables; those of net_new count */
};

/* When all connections are taken, a new one replaces a silent one, else the
 * one idle longest (evict.c). If all are busy, or the limit of that address is
 * reached, the newcomer gets 503 and Retry-After, and is closed. In a rush
 * most newcomers are closed right after the answer, without waiting for their
 * request, and some may see only a closed connection. */

/* The buffers of all connections together hold max_buffered_bytes. Beyond
 * that, when more of a partial request arrives, it gets 503 and its connection
 * is closed; requests pipelined behind an open one are dropped, and the
 * connection is closed after the reply; a connection with unsent bytes gets no
 * new request and no more of its stream. A whole request from a client that
 * reads is served as usual. A WebSocket whose input would have to be kept is
 * closed (1013). Beyond the limit there can be one reply, message or piece of
 * a stream for each connection. To bound that, new connections are turned away
 * from a quarter beyond the limit until the buffers are below the limit
 * again. */

/* While memory is short the server takes no new work: in addition to the rules
 * for full buffers, a request with a body gets 503. While it is out, new
 * connections beyond a few are turned away as well. */
enum net_memory { NET_MEMORY_OK, NET_MEMORY_SHORT, NET_MEMORY_OUT };

/* Calls from net to its owner, from the loop only. */
struct net_handler {
    void *ctx;

    /* Answer, now or later, with net_reply or net_stream_open. */
    void (*on_request)(void *ctx, uint64_t id, const struct http_request *rq);

    /* Whether a request must be answered even if there is no room for its
     * connection: by the next call of on_request, which answers at once. May
     * be NULL: none must. */
    bool (*is_vital)(void *ctx, const struct http_request *rq);

    /* The state of the process's memory. May be NULL: there is enough. */
    enum net_memory (*memory)(void *ctx);

    /* The client left, or was cut off, before its request was finished. The id
     * is invalid from here on. A client that only shut its sending side still
     * gets its reply. It looks like a client that closed, which shows only at
     * the first write. */
    void (*on_gone)(void *ctx, uint64_t id);

    /* A stream that got ERR_BUSY can take more. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);

    /* Write the body of an error that net itself answers (bad request,
     * timeout, limit), and return its content type. `what` is more specific
     * than e, without a full stop and without bytes from the client; it may be
     * empty. */
    struct str (*word_error)(void *ctx, enum err e, struct str what,
                             struct buf *body);
};

/* Borrows loop and log; copies opts and handler. */
struct net *net_new(struct loop *loop, struct log *log,
                    const struct net_opts *opts,
                    const struct net_handler *handler);

/* Limits and timeouts may change at run time. A wait in progress keeps its
 * timeout; a limit applies to the next bytes, also of a partial request,
 * except to a head that was complete. */
void net_set_opts(struct net *n, const struct net_opts *opts);

/* Whether new work must be refused for lack of memory. */
bool net_is_short(struct net *n);

/* TLS. PEM files: the certificate with its chain, and its private key. A
 * client that names a host (SNI) gets the first certificate for it, any other
 * client the first of all. */
struct net_cert {
    const char *cert_file, *key_file;
};

/* Read the files and use them for every new connection; open ones keep theirs.
 * On error (a missing file, a key that does not match, a certificate that is
 * not valid now) the certificate that was read from that file before stays,
 * and why names the file and what to do; the others are used anyway. If there
 * was none before, nothing changes. */
MUST_USE enum err net_set_certs(struct net *n, const struct net_cert *tls_files,
                                size_t n_certs, struct why *why);

/* The same in two steps: read and check, then use (takes them; cannot fail) or
 * free. After an error *out is NULL, or holds certificates that can be used. */
struct net_certs;
MUST_USE enum err net_certs_new(struct net *n, const struct net_cert *tls_files,
                                size_t n_certs, struct net_certs **out,
                                struct why *why);
void net_certs_use(struct net *n, struct net_certs *tls_files);
void net_certs_free(struct net_certs *tls_files);

/* Whether net_set_certs would accept it at now_ms, and when it expires, in
 * seconds since 1970. */
MUST_USE enum err net_check_cert(const struct net_cert *cert, int64_t now_ms,
                                 int64_t *ends_s, struct why *why);

/* Bind and listen on "HOST:PORT" or "[V6]:PORT" as base/addr.h reads it, with
 * port 0 for a free one. is_tls: net_set_certs must have been called. On error
 * why says what to do. */
MUST_USE enum err net_listen(struct net *n, struct str address, bool is_tls,
                             struct why *why);

/* The same without TLS, for requests of another kind: each is marked with
 * is_side. `setting` is the setting with the address. */
MUST_USE enum err net_listen_side(struct net *n, struct str address,
                                  const char *setting, struct why *why);

/* "http://127.0.0.1:PORT" with the actual port, the same with "https", and for
 * net_listen_side; empty: no such listener. */
const char *net_url(const struct net *n);
const char *net_tls_url(const struct net *n);
const char *net_side_url(const struct net *n);

/* Headers for any answer to an open request, including net's own (a timeout).
 * Bytes are copied, up to NET_ALSO_BYTES of lines; beyond that they are left
 * out. A second call replaces the first. */
enum { NET_ALSO_BYTES = 1024 };
void net_reply_also(struct net *n, uint64_t id, const struct http_header *h,
                    size_t n_headers);

/* Answer a request completely. A HEAD request gets the same headers and no
 * body. Bytes are copied. An invalid id is ignored. */
void net_reply(struct net *n, uint64_t id, const struct http_reply *r);

/* Whether the client of an open request sends no more: it left, or only shut
 * its sending side. Long work may be refused to the latter, because of the
 * former. False for an invalid id. */
bool net_is_shut(const struct net *n, uint64_t id);

/* Answer with a stream: chunked, sent as it comes (on HTTP/1.0: until the
 * connection closes). For server-sent events set content type
 * text/event-stream. The reply's body, if any, is its beginning. ERR_GONE: the
 * id is invalid, or was a HEAD request, which now has its headers. */
MUST_USE enum err net_stream_open(struct net *n, uint64_t id,
                                  const struct http_reply *r);

/* ERR_BUSY: more than max_unsent_bytes wait already, or any bytes while the
 * buffers of all are over their limit; nothing was taken, and on_room follows.
 * ERR_GONE: the id is invalid, perhaps only since now, because memory is gone;
 * there is no on_gone in addition. */
MUST_USE enum err net_stream_send(struct net *n, uint64_t id, struct str bytes);
void net_stream_end(struct net *n, uint64_t id);

/* WebSocket. The connection keeps the id of the request that it came with, and
 * has a handler of its own.
 *
 * Net answers pings, checks frames (net/server/ws.h), closes as the protocol
 * requires, pings a peer after a third of ws_timeout_ms of silence, and ends
 * the connection after all of it. A peer that does not read is not read from
 * either. */

struct net_ws_end {
    uint16_t code;     /* the peer's, or ours; WS_NO_CLOSE after an unclean
                        * end */
    struct str reason; /* in UTF-8; of the peer's close, or our reason to end
                        * it */
    bool is_ours;      /* we ended it: the owner, a limit, a timeout, a bad
                        * frame */
    enum err e;        /* of a failed dial: ERR_ADDRESS: rejected by the guard;
                        * ERR_UNREACHABLE: no name, no connection, an untrusted
                        * certificate; ERR_TIMEOUT; ERR_LIMIT; ERR_BAD_REQUEST:
                        * the server speaks no WebSocket, or not correctly;
                        * ERR_GONE: the owner gave up; ERR_NOMEM. Else OK */
};

/* Called from the loop only, never from inside a call of the owner's. */
struct net_ws_handler {
    /* A dialled one is open. May be NULL if nothing is dialled. */
    void (*on_open)(void *ctx, uint64_t id, struct str protocol);

    /* A whole message. Its bytes live for the call. */
    void (*on_message)(void *ctx, uint64_t id, enum ws_kind kind,
                       struct str bytes);

    /* One that got ERR_BUSY can take more. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);

    /* Called last and once, whichever side ended it: the id is invalid from
     * here on. */
    void (*on_end)(void *ctx, uint64_t id, const struct net_ws_end *end);
};

/* Answer a request by becoming a WebSocket. Borrows handler until on_end.
 * protocol is one that the client offered, or empty. ERR_GONE: the id is
 * invalid, perhaps only since now (memory is gone, or bytes behind the request
 * were dropped); neither on_end nor on_gone follows. */
MUST_USE enum err net_ws_accept(struct net *n, uint64_t id,
                                const struct ws_hello *hello,
                                struct str protocol,
                                const struct net_ws_handler *handler,
                                void *ctx);

/* Send one message in one frame; text must be UTF-8, which is not checked.
 * ERR_BUSY as net_stream_send. ERR_GONE: it is closing or memory is gone;
 * on_end follows, or was called already. */
MUST_USE enum err net_ws_send(struct net *n, uint64_t id, enum ws_kind kind,
                              struct str bytes);

/* Stop reading for now: the owner is behind. While it is paused no message
 * comes and its silence does not count. Pauses are counted: it resumes after
 * as many calls with false. */
void net_ws_pause(struct net *n, uint64_t id, bool is_paused);

/* Send a close frame and wait for the peer's (at most ws_close_timeout_ms); no
 * more messages come. on_end follows in a later turn. A long reason is cut. A
 * dial is given up. */
void net_ws_close(struct net *n, uint64_t id, uint16_t code, struct str reason);

/* The client side. */
struct net_dial {
    struct str url;                    /* ws:// or wss:// */
    const struct http_header *headers; /* "Authorization" and the like */
    size_t n_headers;
    struct str protocol;       /* empty: none */
    const struct guard *guard; /* borrowed until on_open or on_end; NULL: the
                                * URL is the operator's own */
    const char *ca_file;       /* NULL: the system's */
    int64_t timeout_ms;        /* from the name to the end of the handshake */
};

/* The id is that of the future WebSocket; on_open or on_end follows in a later
 * turn. Copies d. All addresses of the name that the guard allows are tried in
 * turn; redirects are not followed. An error: nothing was started (ERR_SYNTAX,
 * ERR_USAGE, ERR_LIMIT, ERR_NOMEM, ERR_STOPPING). */
MUST_USE enum err net_ws_dial(struct net *n, const struct net_dial *d,
                              const struct net_ws_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Accept no more connections, let open requests finish, close idle
 * connections, close WebSockets (1001) and give up dials. When the last
 * connection has gone, or after grace_ms, done is called once from the loop.
 * Only a name lookup in progress must end first, which the system's resolver
 * decides. A second call only changes the grace. */
void net_stop(struct net *n, int64_t grace_ms, void (*done)(void *ctx),
              void *ctx);

/* Only in or after net_stop's done, or before net_listen. */
void net_free(struct net *n);

/* The limit that a new connection would exceed. */
enum net_room {
    NET_ROOM, /* none: there is room */
    NET_NO_CONNECTION,
    NET_NO_ADDRESS, /* the address's limit */
    NET_NO_BUFFERS,
    N_NET_ROOMS,
};

/* Why, and by which side, a WebSocket was ended. */
enum net_ws_cause {
    NET_WS_PEER,       /* the peer sent a close frame */
    NET_WS_OWNER,      /* we did, by net_ws_close or net_stop */
    NET_WS_LOST,       /* the connection broke without a close frame */
    NET_WS_BAD,        /* it broke the protocol */
    NET_WS_LIMIT,      /* a frame or message beyond a limit */
    NET_WS_SILENT,     /* the peer sent nothing for ws_timeout_ms */
    NET_WS_SLOW,       /* the peer read nothing for write_timeout_ms */
    NET_WS_OVERLOADED, /* all buffers were full, or memory was gone */
    N_NET_WS_CAUSES
};

struct net_stats {
    int64_t connections;                   /* open now */
    int64_t connections_total;             /* ever accepted */
    int64_t refused_total;                 /* turned away, for any limit */
    int64_t refused_by_total[N_NET_ROOMS]; /* by the exceeded limit */
    int64_t evicted_total; /* silent or idle ones, closed for others */
    int64_t requests_total;
    int64_t replies_total[6]; /* by first digit of the status; 1: continue, or
                               * a WebSocket */
    int64_t bad_requests_total;
    int64_t overloaded_total;  /* refused over max_buffered_bytes, or without
                                * memory */
    int64_t timeouts_total;    /* a slow request, reply or reader */
    int64_t idle_closed_total; /* nothing came for idle_timeout_ms */
    int64_t bytes_in_total, bytes_out_total;
    int64_t tls_handshakes_total; /* that were finished */
    int64_t tls_failed_total;     /* that failed */
    int64_t tls_cut_total;        /* of those, the oldest of too many, cut for
                                   * others */
    int64_t tls_cert_ends_s;      /* the earliest expiry of a certificate,
                                   * since 1970; zero: there is none */
    int64_t unsent_bytes;         /* waiting to be written, all connections */
    int64_t buffered_bytes;       /* memory of the buffers of all connections */

    int64_t websockets;       /* open now, of both sides */
    int64_t websockets_total; /* ever open */
    int64_t ws_messages_in_total, ws_messages_out_total;
    int64_t ws_pings_total; /* sent to silent peers */
    int64_t ws_ends_total[N_NET_WS_CAUSES];
    int64_t dialling; /* in progress */
    int64_t dials_total, dials_failed_total;
};

struct net_stats net_stats(const struct net *n);

#endif
