#ifndef NET_SERVER_INTERNAL_H
#define NET_SERVER_INTERNAL_H

/* Internals that the files of net share.
 *
 *     listen.c   addresses, listening sockets, accepting connections
 *     evict.c    the connection to close when all are taken
 *     conn.c     one connection as bytes: read, gather, write, wait, close;
 *                conn_bufs.c for its buffers
 *     tls.c      the same bytes through TLS, in either direction; tls_dial.c
 *                for trust as a client, tls_hello.c for announced lengths
 *     cert.c     the certificates that TLS serves
 *     serve.c    one connection as HTTP: bytes to requests, replies to bytes
 *     ws_conn.c  one connection as WebSocket: bytes to messages, and back
 *     dial.c     the client side: from a URL to an open WebSocket, with
 *                dial_reach.c for names and addresses
 *     net.c      options, ids, stopping, counting
 *
 * conn.c knows nothing of HTTP except the names of the states, and serve.c and
 * ws_conn.c nothing of sockets. struct speech is the interface between them. */

#include "base/addr.h"
#include "base/loop.h"
#include "base/share.h"
#include "net/server/net.h"

enum {
    READ_BYTES = 64 * 1024,         /* one buffer for all connections */
    PIPELINE_BYTES = 16 * 1024,     /* behind an open request */
    MEMORY_STEP_BYTES = 4 << 20,    /* of input, between two measurements */
    MEMORY_OUT_CONNS = 64,          /* no more than these while memory is out */
    UNREAD_BYTES = 16 * 1024,       /* of replies, before the next request is
                                     * read */
    REQUESTS_PER_TURN = 32,         /* of one connection; then others get their
                                     * turn */
    FRAMES_PER_TURN = 256,          /* the same; messages, pings, pongs */
    FRAMES_WHEN_FULL = 1024,        /* the same; the rest cannot be kept */
    SPARE_BUFS = 64,                /* kept for reuse */
    SPARE_BUF_BYTES = 16 * 1024,    /* larger ones are freed */
    FRESH_BUF_BYTES = 512,          /* enough for a small reply */
    AWAY_MAX = 64,                  /* turned away at the same time, */
    GUESTS_MAX = 32,                /* of these, guests (evict.c) */
    LINGER_MS = 2000,               /* for a peer to read our last bytes */
    LINGER_BYTES = 8 * 1024 * 1024, /* of the peer's, read and dropped
                                     * meanwhile */
    SLOT_BITS = 24,
    MASK_POOL_BYTES = 1024, /* randomness for masks of our frames */

    /* Limits of one peer's use of TLS. A browser's hello has 2 KB, and 64 KB
     * of certificates are many for a server. */
    TLS_SHAKES_MAX = 1024,           /* of clients, at the same time */
    TLS_HELLO_BYTES = 16 * 1024,     /* announced by a hello */
    TLS_SHAKE_RAW_BYTES = 64 * 1024, /* of a client, before it is done */
    TLS_CHAIN_BYTES = 64 * 1024,     /* of certificates of a dialled server */
    TLS_DIAL_RAW_BYTES = 128 * 1024, /* of a dialled server, before it is
                                      * done */
    TLS_RECORDS_PER_TURN = 256,      /* then others get their turn */
    TLS_BARE_RECORDS = 64,           /* a minute, without payload */
    TLS_BARE_MS = 60 * 1000,         /* the minute */
    TLS_CAS_MAX = 16,                /* files of authorities kept in memory */

    /* OpenSSL's memory for a connection beyond the 14 KB of each one
     * (tls_memory_test.c measures all of it). Handshakes of clients have a
     * limit of their own, TLS_SHAKES_MAX, and are not counted otherwise. Our
     * own handshakes are counted, with as much as a dialled server can make
     * them hold. After the handshake: a partly read or partly written
     * record. */
    TLS_SHAKE_BYTES = 80 * 1024,
    TLS_DIAL_BYTES = 128 * 1024,
    TLS_RECORD_BYTES = 17 * 1024,
};

/*     TLS, with TLS only: the handshake
 *     |      bytes        head          body
 *    IDLE ---------> HEAD ------> BODY ------.
 *     ^ '--------------'------------'--------+--> OPEN ---> STREAM
 *     |                                              |         |
 *     '---------------- keep-alive ------------------+---------'
 *                                                    | last reply, or refused
 *                                                    v
 *                       CLOSED <--- LINGER <--- DRAIN
 *                                                    ^ closed by both sides, or
 *     OPEN --- accept --.                            | the peer broke a rule
 *                        >---> WS ------> WS_BYE ----+
 *     DIAL --- open ----'   our close frame
 *
 * DRAIN: the last bytes are being sent. LINGER: they are sent and our side is
 * shut; input is read and dropped, because closing with unread bytes would
 * reset the connection before the peer has read the reply. Every state may go
 * to CLOSED at once: the client left, or a wait was too long. */
enum conn_state {
    CONN_TLS,    /* header_timeout; a dial has its own */
    CONN_IDLE,   /* idle_timeout */
    CONN_HEAD,   /* header_timeout */
    CONN_BODY,   /* body_timeout */
    CONN_OPEN,   /* reply_timeout */
    CONN_STREAM, /* only the write deadline */
    CONN_WS,     /* a third of ws_timeout: ping; then the rest of it */
    CONN_WS_BYE, /* ws_close_timeout */
    CONN_DIAL,   /* the timeout of the dial */
    CONN_DRAIN,  /* only the write deadline */
    CONN_LINGER, /* LINGER_MS */
    CONN_CLOSED, /* waits for libuv to return its handles */
};

struct conn;

/* The protocol of a connection, as conn.c sees it. open: TLS is up, and the
 * callee chooses the first state; before that only gone may be called, while
 * tls_why has the reason. bytes and eof: input; turn: at the end of a turn,
 * before output is written; sent: after that; timeout: the deadline of the
 * state has passed; gone: the connection was cut off, id is the open request
 * (zero: none) and cut the reason. max_input: the limit of conn_keep_input.
 * Once a connection is lost only gone is called. */
enum conn_cut {
    CUT_GONE,     /* by the peer */
    CUT_SLOW,     /* it read nothing for write_timeout_ms */
    CUT_STOP,     /* the server stops, or its grace is over */
    CUT_GIVEN_UP, /* by its owner, during the dial */
    CUT_NOMEM,
};

struct speech {
    void (*open)(struct conn *c);
    void (*bytes)(struct conn *c, char *p, size_t n);
    void (*eof)(struct conn *c);
    void (*turn)(struct conn *c);
    void (*sent)(struct conn *c);
    void (*timeout)(struct conn *c);
    void (*gone)(struct conn *c, uint64_t id, enum conn_cut why);
    size_t (*max_input)(const struct conn *c);
};

/* A connection that is, or will be, a WebSocket. */
struct ws_side {
    struct ws_parse parse;
    const struct net_ws_handler *handler;
    void *ctx;
    struct dial *dial; /* until it is open; NULL on the server's side */
    /* In the output: a pong that a later ping of the same turn replaces, as
     * long as n_writes is unchanged; pong_bytes zero: none. */
    uint32_t pong_at, pong_write;
    uint8_t pong_bytes;
    bool has_said_bye;
    bool is_pinged; /* no byte came since the ping */
    bool has_rest;  /* the input holds unparsed bytes */
    uint16_t n_pauses;
};

/* The position in a client's handshake; see tls_hello.c. */
struct tls_hello {
    uint8_t n_record_head, n_message_head; /* bytes read of it */
    uint8_t type;                          /* of the record */
    uint16_t record_left;
    uint32_t message_left;
};

/* Bytes that TLS read from the socket. */
struct tls_taken {
    uint64_t turn;       /* the turn of turn_bytes */
    uint32_t turn_bytes; /* at most READ_BYTES */
    uint32_t shake_bytes;
    uint32_t n_bare; /* records without payload, since bare_since_ms */
    int64_t bare_since_ms;
    struct tls_hello hello;
};

struct conn {
    uv_poll_t poll;
    struct net *net;
    const struct speech *speech;
    struct loop_job job; /* at the end of the turn: write */
    struct timer timer;  /* the only one; see conn_arm */
    int64_t deadline_ms; /* of the state; INT64_MAX: none */
    int64_t write_deadline_ms;
    struct buf in;  /* of incomplete or waiting requests */
    struct buf out; /* unsent output, from out_at on */
    size_t out_at;
    struct buf also; /* header lines for the answer to the open request */
    union {
        struct http_parse parse;
        struct ws_side ws; /* CONN_WS, CONN_WS_BYE, CONN_DIAL and after them */
    };
    uint64_t id;        /* of the open request or WebSocket, or zero */
    uint64_t turn;      /* the turn of n_taken */
    uint64_t room_turn; /* the last turn in which on_room was called */
    uint32_t n_taken;
    uint32_t n_writes; /* attempts; bytes of out move only between two of
                        * them */
    /* Our part of net's counters; see conn_count. */
    size_t counted_held_bytes, counted_unsent_bytes;
    size_t discarded_bytes;
    struct ssl_st *tls; /* NULL: plain, or no byte came yet */
    size_t tls_held_bytes;
    struct tls_taken taken;
    struct list_node shake; /* in net's list during a client's handshake */
    struct list_node waits; /* in *queue */
    struct list *queue;     /* evict.c: net's silent, idle or guests, or NULL */
    uint64_t placed_turn;   /* when it was put there */
    uint64_t left_turn;     /* the last turn in which leftover input was read */
    uint32_t slot;
    int fd;        /* -1: dialled, and not connected yet */
    int watched;   /* events that poll watches */
    uint8_t state; /* enum conn_state; conn_move changes it */
    bool is_reading;
    bool is_blocked;  /* the kernel is full; write_deadline_ms counts */
    bool is_away;     /* over a limit, and being turned away */
    uint8_t away;     /* enum net_room: the limit */
    bool is_guest;    /* is_away, and may send one request */
    bool has_asked;   /* a whole request came, at some time */
    bool is_evicted;  /* counted in n_evicted */
    bool is_dialled;  /* we are the client */
    bool is_side;     /* it came by net_listen_side */
    bool is_lost;     /* cut at the end of the turn; ignored until then */
    uint8_t lost_for; /* enum conn_cut */
    bool has_eof;
    bool wants_room;
    uint8_t tls_first;  /* the first byte; zero: none yet */
    bool has_left;      /* TLS holds input that was not read */
    bool has_unwritten; /* TLS holds a record that was not sent */
    bool must_write;    /* TLS must write before it reads on */
    bool is_tls_broken; /* nothing more may be sent through it */
    bool is_plain;      /* it speaks HTTP without TLS to a TLS port */
    /* The open request: */
    bool keeps_alive, is_head, is_http_10;
    bool asks_upgrade; /* for a WebSocket: after any other answer the
                        * connection is closed */
    char peer[ADDR_TEXT_BYTES];
    uint8_t peer_addr[ADDR_BYTES];
    struct share *crowd; /* counts it; NULL: none */
};

struct slot {
    struct conn *c; /* NULL: free */
    uint32_t next_free;
};

struct spare {
    char *p;
    size_t cap;
};

struct net {
    struct loop *loop;
    struct log *log;
    struct net_opts opts;
    struct net_handler on;

    struct list listeners;
    size_t n_listeners; /* until libuv has returned them */
    char url[80], tls_url[80], side_url[80];

    struct net_certs *tls_files;   /* NULL: none */
    int64_t ticket_keys_at_ms;     /* when they were made */
    struct ssl_ctx_st *dial_ctx;   /* NULL until the first dial */
    struct list cas;               /* tls_dial.c; the last used one is last */
    size_t n_cas;                  /* at most TLS_CAS_MAX */
    struct list shakes;            /* handshakes of clients, the oldest first */
    size_t n_shakes;               /* at most max_shakes */
    size_t max_shakes;             /* TLS_SHAKES_MAX; fewer in tests */
    struct bio_method_st *tls_bio; /* the socket as a BIO */
    struct why tls_why;            /* see tls_why */

    struct slot *slots;
    uint32_t n_slots, first_free;
    size_t n_conns; /* until libuv has returned them */
    size_t n_away;
    struct list silent; /* without a whole request, the oldest first */
    struct list idle;   /* between two requests, the longest first */
    struct list guests; /* is_guest without a request, the oldest first */
    size_t n_guests;
    size_t n_evicted; /* of n_conns: closed for others, and not freed yet */
    bool is_shedding; /* the buffers are full, or memory is out */
    enum net_memory memory;
    uint64_t memory_turn;   /* when memory was measured, plus one */
    size_t unchecked_bytes; /* input since then */
    struct shares crowds; /* connections by network (addr_network): walking all
                           * of them at each accept is slow exactly when there
                           * are many */

    size_t n_dialled; /* of n_conns */
    size_t n_errands; /* of dials, until libuv has returned them */
    uint64_t n_ids;

    struct http_header *headers; /* of the request being read; never shrinks */
    size_t headers_cap;
    struct spare spares[SPARE_BUFS];
    size_t n_spares;
    /* uv_getaddrinfo; replaced in tests. */
    int (*getaddrinfo)(uv_loop_t *loop, uv_getaddrinfo_t *rq,
                       uv_getaddrinfo_cb done, const char *node,
                       const char *service, const struct addrinfo *hints);
    uint8_t masks[MASK_POOL_BYTES]; /* unused from masks_at on */
    size_t masks_at;

    int64_t date_s;
    char date[HTTP_DATE_BYTES];
    char keep_alive[80]; /* header lines */

    bool is_stopping;
    struct timer grace;
    struct loop_job done_job;
    void (*done)(void *ctx);
    void *done_ctx;

    /* All connections together, kept by conn_count. */
    size_t held_bytes, unsent_bytes;

    struct net_stats stats;
    char read_buf[READ_BYTES];
};

/* net.c */

/* A slot for c. ERR_NOMEM; ERR_LIMIT: all slots are taken. */
MUST_USE enum err net_slot_take(struct net *n, struct conn *c);
void net_slot_give(struct net *n, struct conn *c);
uint64_t net_next_id(struct net *n, const struct conn *c);

/* The connection with that open request; NULL: the id is invalid. */
struct conn *net_find(const struct net *n, uint64_t id);

/* Whether the counters match a walk over all connections. For tests. */
bool net_check(const struct net *n);

/* Call it after something was returned: it may have been the last. */
void net_check_stopped(struct net *n);

/* cert.c */

/* The context for a new client; net_set_certs has been called. */
struct ssl_ctx_st *cert_ctx(struct net *n);

/* The earliest expiry of a certificate, in seconds since 1970; zero: there is
 * none. */
int64_t cert_ends_s(const struct net *n);
void cert_free_all(struct net *n);

/* tls.c */

enum tls_step { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_FAILED };

/* c is a client on a TLS port: wait for its handshake. */
void tls_accept(struct conn *c);

/* Start TLS on c, a connected socket, as the client. The certificate must be
 * for host: a name, or an address without brackets. ca_file has the trusted
 * authorities (NULL: the system's). Later, from the loop, open of its speech
 * is called, or gone, with the message in tls_why. An error: nothing was
 * started. */
MUST_USE enum err tls_connect(struct conn *c, const char *host,
                              const char *ca_file, int64_t timeout_ms,
                              struct why *why);

/* The message of the last failed handshake, during the call of gone. */
const char *tls_why(const struct net *n);

/* Continue the handshake. */
enum tls_step tls_shake(struct conn *c);

/* The handshake took too long. */
void tls_shake_timeout(struct conn *c);

/* As recv and send, with errno. A stream without TLS's end mark is an error,
 * ECONNRESET: an attacker may have cut it. After tls_recv, has_left and
 * must_write are up to date. */
ssize_t tls_recv(struct conn *c, char *p, size_t n);
ssize_t tls_send(struct conn *c, const char *p, size_t n);

/* Send TLS's end mark. TLS_WANT_WRITE: try again when there is room. */
enum tls_step tls_end(struct conn *c);

/* From here on c is plain. */
void tls_free(struct conn *c);
void tls_fini(struct net *n);

/* tls_hello.c */

/* Follow bytes of a client's handshake. False: it announces a message longer
 * than TLS_HELLO_BYTES. */
MUST_USE bool tls_hello_is_short(struct tls_hello *h, const char *bytes,
                                 size_t n);

/* tls_dial.c */
void tls_forget_authorities(struct net *n);

/* listen.c */
void listen_close_all(struct net *n);
void listen_resume_all(struct net *n);

/* evict.c */

/* Put c into the list of its new state. */
void evict_place(struct conn *c);

/* Close one connection to make room. False: all of them are busy. */
MUST_USE bool evict_one(struct net *n);

/* Turn the oldest guest away. */
void evict_guest(struct net *n);

/* Whether the lists have the right members. For tests. */
bool evict_check(const struct net *n);

/* conn.c */

/* Takes fd, also on failure. NULL: it could not be accepted. */
MUST_USE struct conn *conn_new(struct net *n, int fd, const char *peer,
                               bool is_away);

/* A connection without a socket before conn_connected, which takes fd, also on
 * failure, and may find it closed afterwards. */
MUST_USE struct conn *conn_new_dialled(struct net *n,
                                       const struct speech *speech,
                                       int64_t timeout_ms);
MUST_USE bool conn_connected(struct conn *c, int fd, const char *peer);

/* Enter a state and its deadline (INT64_MAX: none). */
void conn_move(struct conn *c, enum conn_state to, int64_t timeout_ms);

/* Make room for n more bytes of output, in one step. False: memory is gone,
 * and the caller must close the connection. */
MUST_USE bool conn_reserve(struct conn *c, size_t n);

/* Keep bytes for later. False: memory is gone or the limit is reached. */
MUST_USE bool conn_keep_input(struct conn *c, const char *p, size_t n);

/* Drop bytes from the front of the input; an empty buffer is freed. */
void conn_drop_input(struct conn *c, size_t n);

/* Run its turn and write its output at the end of this turn. Call it after
 * adding output: it is counted here. */
void conn_kick(struct conn *c);

/* The same at the end of the next turn, after others had theirs. */
void conn_kick_next_turn(struct conn *c);

/* Output that the kernel has not taken. */
size_t conn_unsent_bytes(const struct conn *c);

/* Drop sent output; or both buffers. */
void conn_drop_output(struct conn *c, size_t n);
void conn_drop_buffers(struct conn *c);

/* Memory of its buffers, used or not. */
size_t conn_held_bytes(const struct conn *c);

/* Call it after a buffer of c has changed: updates the counters over all. */
void conn_count(struct conn *c);

/* Write the output now instead of at the end of the turn. */
void conn_flush(struct conn *c);

void conn_set_reading(struct conn *c, bool on);

/* Whether nothing is in transit, in or out. Then closing loses nothing;
 * closing over unread bytes would reset the connection and lose sent bytes. */
bool conn_is_quiet(const struct conn *c);

/* Close after all output was sent. */
void conn_drain(struct conn *c);

/* Close now. For code that starts in the loop (an event, a timer, the end of
 * the turn): it calls the owner if something is open. Inside an owner's call
 * it is allowed only after the id was removed. conn_cut: by the peer. */
void conn_cut(struct conn *c);
void conn_cut_for(struct conn *c, enum conn_cut why);

/* The same at the end of the turn, for code inside an owner's call, which must
 * not lead back to the owner. Until then events of the connection are ignored,
 * and the first reason stays. */
void conn_lose(struct conn *c, enum conn_cut why);

/* Whether the buffers of all connections hold more than they may, or memory is
 * short. */
static inline bool net_is_full(struct net *n)
{
    return n->held_bytes > n->opts.max_buffered_bytes || net_is_short(n);
}

/* Whether further output for c must wait until the peer has read. */
bool conn_must_read_first(const struct conn *c);

/* Whether on_room must be called now; if so the call is noted. Once in a turn:
 * a reader faster than the owner must not delay the others. */
MUST_USE bool conn_gives_room(struct conn *c);

/* Requests or frames taken of c in this turn, including the current one. */
void conn_note_taken(struct conn *c);
bool conn_has_taken(const struct conn *c, uint32_t n);

/* serve.c */
extern const struct speech serve_speech;

/* Answer with an error of net's, after which the connection ends. */
void serve_refuse(struct conn *c, enum err e, struct str what);

/* Tell a connection that is_away the reason. */
void serve_turn_away(struct conn *c);

/* The same as bytes, for a client without a connection. */
void serve_write_turned_away(struct net *n, enum net_room why, struct buf *out);

/* ws_conn.c */
extern const struct speech ws_speech;

/* The handshake is done, on either side: speak WebSocket from here on. False:
 * memory is gone and the connection closed, as HTTP. */
MUST_USE bool ws_begin(struct conn *c, const struct net_ws_handler *handler,
                       void *ctx);

/* Send a close frame, from inside an owner's call. */
void ws_say_close(struct conn *c, uint16_t code, struct str reason);

#endif
