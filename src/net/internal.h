#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

/* What the files of net share.
 *
 *     listen.c   addresses, listening sockets, taking connections
 *     crowd.c    how many connections each address has
 *     evict.c    who makes room when all connections are taken
 *     conn.c     one connection as bytes: read, gather, write, wait, close;
 *                conn_bufs.c for what it holds
 *     tls.c      the same bytes through TLS, in either direction; tls_dial.c
 *                for whom we trust, tls_hello.c for what may be announced
 *     cert.c     the certificates that TLS serves with
 *     serve.c    one connection as HTTP: requests out of bytes, replies back
 *     ws_conn.c  one connection as WebSocket: messages out of bytes, and back
 *     dial.c     the other direction: from a URL to an open WebSocket, with
 *                dial_reach.c for names and addresses
 *     net.c      the room: options, ids, stopping, counting
 *
 * conn.c knows nothing of HTTP but the names of the states, and serve.c and
 * ws_conn.c nothing of sockets. struct speech is the seam between them. */

#include "base/addr.h"
#include "base/loop.h"
#include "base/map.h"
#include "net/net.h"

enum {
    READ_BYTES = 64 * 1024,         /* one buffer for all connections */
    PIPELINE_BYTES = 16 * 1024,     /* waiting behind an open request */
    UNREAD_BYTES = 16 * 1024,       /* of replies, and still one more */
    REQUESTS_PER_TURN = 32,         /* of one connection; then others come */
    FRAMES_PER_TURN = 256,          /* the same; messages, pings, pongs */
    FRAMES_WHEN_FULL = 1024,        /* the same; the rest has no place */
    SPARE_BUFS = 64,                /* kept for the next who needs one */
    SPARE_BUF_BYTES = 16 * 1024,    /* larger ones are given back */
    FRESH_BUF_BYTES = 512,          /* what a small reply fits in */
    AWAY_MAX = 64,                  /* being turned away at the same time, */
    GUESTS_MAX = 32,                /* of them guests (evict.c) */
    LINGER_MS = 2000,               /* for a peer to read our last words */
    LINGER_BYTES = 8 * 1024 * 1024, /* of theirs that we listen to meanwhile */
    SLOT_BITS = 24,
    MASK_POOL_BYTES = 1024, /* randomness for the masks of our frames */

    /* What one peer may make TLS do. A hello of a browser has 2 KB, and of a
     * server's certificates 64 KB are many. */
    TLS_SHAKES_MAX = 1024,           /* of clients, at the same time */
    TLS_HELLO_BYTES = 16 * 1024,     /* that one may announce */
    TLS_SHAKE_RAW_BYTES = 64 * 1024, /* of a client, before it is done */
    TLS_CHAIN_BYTES = 64 * 1024,     /* of certificates of whom we dial */
    TLS_DIAL_RAW_BYTES = 128 * 1024, /* of whom we dial, before it is done */
    TLS_RECORDS_PER_TURN = 256,      /* then others come */
    TLS_BARE_RECORDS = 64,           /* a minute, that carry nothing */
    TLS_BARE_MS = 60 * 1000,         /* the minute */
    TLS_CAS_MAX = 16,                /* files of authorities, kept read */

    /* What OpenSSL holds for a connection besides the 14 KB that each one
     * costs (tls_memory_test.c measures all of it). A handshake of a client
     * has a bound of its own, TLS_SHAKES_MAX, and is not counted otherwise;
     * one of ours is, with as much as whom we dial can make it hold. Later: a
     * record that is not here whole, or not out whole. */
    TLS_SHAKE_BYTES = 80 * 1024,
    TLS_DIAL_BYTES = 128 * 1024,
    TLS_RECORD_BYTES = 17 * 1024,
};

/*    TLS, with TLS only: the handshake
 *     |      bytes        head          body
 *    IDLE ---------> HEAD ------> BODY ------.
 *     ^ '--------------'------------'--------+--> OPEN ---> STREAM
 *     |                                              |         |
 *     '---------------- keep-alive ------------------+---------'
 *                                                    | last reply, or refused
 *                                                    v
 *                       CLOSED <--- LINGER <--- DRAIN
 *                                                    ^ both said goodbye, or
 *     OPEN --- accept --.                            | the peer broke a rule
 *                        >---> WS ------> WS_BYE ----+
 *     DIAL --- open ----'   we said goodbye
 *
 * DRAIN: the last bytes are on their way out. LINGER: they are out and our
 * side is shut; we read and throw away, because closing over unread bytes
 * would reset the connection before the peer has read the reply. Every state
 * may go to CLOSED at once: the client left, or a wait was too long. */
enum conn_state {
    CONN_TLS,    /* header_timeout; who dials says how long */
    CONN_IDLE,   /* idle_timeout */
    CONN_HEAD,   /* header_timeout */
    CONN_BODY,   /* body_timeout */
    CONN_OPEN,   /* reply_timeout */
    CONN_STREAM, /* no deadline but that of writing */
    CONN_WS,     /* a third of ws_timeout: ping; then the rest of it */
    CONN_WS_BYE, /* ws_close_timeout */
    CONN_DIAL,   /* the time-out of the dial */
    CONN_DRAIN,  /* no deadline but that of writing */
    CONN_LINGER, /* LINGER_MS */
    CONN_CLOSED, /* libuv will give it back; nobody touches it */
};

struct conn;

/* What a connection speaks, as conn.c knows it. open: TLS is, and the state
 * to go to is for it to say; before that none of the others but gone is
 * called, in which tls_why says what was wrong. bytes and eof: what came;
 * turn: at its end, before what gathered is written; sent: after that;
 * timeout: the deadline of the state has passed; gone: the connection was cut
 * off, id says what was open on it (zero: nothing) and cut why. max_input: how
 * much conn_keep_input may keep. Once it is lost only gone is called. */
enum conn_cut {
    CUT_GONE,     /* the peer's doing */
    CUT_SLOW,     /* it took nothing for write_timeout_ms */
    CUT_STOP,     /* the server stops, or its grace is over */
    CUT_GIVEN_UP, /* by its owner, while it was being dialled */
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

/* A connection as WebSocket, or about to become one. */
struct ws_side {
    struct ws_parse parse;
    const struct net_ws_handler *handler;
    void *ctx;
    struct dial *dial; /* until it is open; NULL on our own side */
    /* In the output: an answer that a later ping of the same turn takes the
     * place of, as long as n_writes is what it was; pong_bytes zero: none. */
    uint32_t pong_at, pong_write;
    uint8_t pong_bytes;
    bool has_said_bye;
    bool is_pinged; /* nothing came since */
    bool has_rest;  /* the input holds what was not looked at yet */
    uint16_t n_pauses;
};

/* How far a client's handshake was followed; see tls_hello.c. */
struct tls_hello {
    uint8_t n_record_head, n_message_head; /* bytes that came of it */
    uint8_t type;                          /* of the record */
    uint16_t record_left;
    uint32_t message_left;
};

/* What TLS took from the socket. */
struct tls_taken {
    uint64_t turn;       /* that turn_bytes is of */
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
    struct buf in;  /* of requests not yet whole or not yet due */
    struct buf out; /* what was not sent yet, from out_at on */
    size_t out_at;
    struct buf also; /* header lines of the open request's answer */
    union {
        struct http_parse parse;
        struct ws_side ws; /* CONN_WS, CONN_WS_BYE, CONN_DIAL and after them */
    };
    uint64_t id;        /* of the open request or WebSocket, or zero */
    uint64_t turn;      /* n_taken is of this one */
    uint64_t room_turn; /* the last one in which on_room was called */
    uint32_t n_taken;
    uint32_t n_writes; /* tried; between two, nothing in out moves */
    /* What net's counters have of us; see conn_count. */
    size_t counted_held_bytes, counted_unsent_bytes;
    size_t discarded_bytes;
    struct ssl_st *tls; /* NULL: plain, or nothing came yet */
    size_t tls_held_bytes;
    struct tls_taken taken;
    struct list_node shake; /* in net's list while a client's is under way */
    struct list_node waits; /* in *queue */
    struct list *queue;     /* evict.c: net's silent, idle or guests, or NULL */
    uint64_t placed_turn;   /* when it came there */
    uint64_t left_turn;     /* the last one in which what was left was read */
    uint32_t slot;
    int fd;        /* -1: dialled, and not connected yet */
    int watched;   /* what poll was asked to tell */
    uint8_t state; /* enum conn_state; conn_move changes it */
    bool is_reading;
    bool is_blocked;  /* the kernel took no more; write_deadline_ms counts */
    bool is_away;     /* over a limit and being told so */
    uint8_t away;     /* enum net_room: over which */
    bool is_guest;    /* is_away, and may ask one thing */
    bool has_asked;   /* a request came whole, at some time */
    bool is_evicted;  /* counted in n_evicted */
    bool is_dialled;  /* we are the client */
    bool is_side;     /* it came by net_listen_side */
    bool is_lost;     /* to be cut at the end of the turn, and deaf till then */
    uint8_t lost_for; /* enum conn_cut */
    bool has_eof;
    bool wants_room;
    uint8_t tls_first;  /* byte that came; zero: none yet */
    bool has_left;      /* TLS has more of what came than we have read */
    bool has_unwritten; /* TLS has a record that is not out */
    bool must_write;    /* TLS, before it reads on */
    bool is_tls_broken; /* and nothing more may be said through it */
    bool is_plain;      /* it speaks HTTP without TLS to a port of TLS */
    /* Of the open request: */
    bool keeps_alive, is_head, is_http_10;
    bool asks_upgrade; /* for a WebSocket: no other answer is followed by a
                        * request */
    char peer[ADDR_TEXT_BYTES];
    uint8_t peer_addr[ADDR_BYTES];
    struct crowd *crowd; /* that it is counted in; NULL: none */
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
    size_t n_listeners; /* until libuv has given them back */
    char url[80], tls_url[80], side_url[80];

    struct net_certs *certs;       /* NULL: none */
    int64_t ticket_keys_at_ms;     /* when they were made */
    struct ssl_ctx_st *dial_ctx;   /* NULL until somebody dials */
    struct list cas;               /* tls_dial.c; the latest used last */
    size_t n_cas;                  /* at most TLS_CAS_MAX */
    struct list shakes;            /* handshakes of clients, the oldest first */
    size_t n_shakes;               /* at most max_shakes */
    size_t max_shakes;             /* TLS_SHAKES_MAX; tests have fewer */
    struct bio_method_st *tls_bio; /* the socket, as OpenSSL sees one */
    struct why tls_why;            /* see tls_why */

    struct slot *slots;
    uint32_t n_slots, first_free;
    size_t n_conns; /* until libuv has given them back */
    size_t n_away;
    struct list silent; /* no request of theirs is whole, the oldest first */
    struct list idle;   /* between two requests, the longest first */
    struct list guests; /* is_guest and nothing asked yet, the oldest first */
    size_t n_guests;
    size_t n_evicted; /* of n_conns: closed to make room, and not freed yet */
    bool is_shedding; /* since the buffers of all were full */
    struct map crowds;

    size_t n_dialled; /* of n_conns */
    size_t n_errands; /* of dials, until libuv has given them back */
    uint64_t n_ids;

    struct http_header *headers; /* of the request being read; never shrinks */
    size_t headers_cap;
    struct spare spares[SPARE_BUFS];
    size_t n_spares;
    /* uv_getaddrinfo; tests put another in its place. */
    int (*getaddrinfo)(uv_loop_t *loop, uv_getaddrinfo_t *rq,
                       uv_getaddrinfo_cb done, const char *node,
                       const char *service, const struct addrinfo *hints);
    uint8_t masks[MASK_POOL_BYTES]; /* from masks_at on not used yet */
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

/* A place in the table for c; ERR_NOMEM, or ERR_LIMIT when ids run out. */
MUST_USE enum err net_slot_take(struct net *n, struct conn *c);
void net_slot_give(struct net *n, struct conn *c);
uint64_t net_next_id(struct net *n, const struct conn *c);

/* The connection whose open request that is; NULL when it is nobody. */
struct conn *net_find(const struct net *n, uint64_t id);

/* Whether the counters over all connections are what a walk over all of them
 * comes to. For tests. */
bool net_check(const struct net *n);

/* Call after something was given back: perhaps that was the last. */
void net_check_stopped(struct net *n);

/* cert.c */

/* The context for a client that comes now; net_set_certs has been called. */
struct ssl_ctx_st *cert_ctx(struct net *n);

/* Of the certificate that ends first, in seconds since 1970; zero: none. */
int64_t cert_ends_s(const struct net *n);
void cert_free_all(struct net *n);

/* tls.c */

enum tls_step { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_FAILED };

/* c is a client on a port that speaks TLS: wait for its handshake. */
void tls_accept(struct conn *c);

/* Speak TLS on c, a connected socket, as the client. host is who must be in
 * the certificate: a name, or an address without brackets. ca_file has the
 * authorities to trust (NULL: those of the system). Later, from the loop, open
 * of its speech is called, or gone, and tls_why has the words. An error:
 * nothing was begun. */
MUST_USE enum err tls_connect(struct conn *c, const char *host,
                              const char *ca_file, int64_t timeout_ms,
                              struct why *why);

/* Why the last handshake failed; for the call of gone that follows it. */
const char *tls_why(const struct net *n);

/* The handshake goes on. */
enum tls_step tls_shake(struct conn *c);

/* It has not come to an end in time. */
void tls_shake_timeout(struct conn *c);

/* As recv and send, with errno. A stream that ends without the word for it is
 * an error, ECONNRESET: somebody may have cut it. After tls_recv has_left and
 * must_write are of now. */
ssize_t tls_recv(struct conn *c, char *p, size_t n);
ssize_t tls_send(struct conn *c, const char *p, size_t n);

/* Say that nothing more comes. TLS_WANT_WRITE: try again when there is room. */
enum tls_step tls_end(struct conn *c);

/* From here on c is plain. */
void tls_free(struct conn *c);
void tls_fini(struct net *n);

/* tls_hello.c */

/* Bytes of a client's handshake, as they come. False: a message of it is to be
 * longer than TLS_HELLO_BYTES. */
MUST_USE bool tls_hello_is_short(struct tls_hello *h, const char *bytes,
                                 size_t n);

/* tls_dial.c */
void tls_forget_authorities(struct net *n);

/* listen.c */
void listen_close_all(struct net *n);
void listen_resume_all(struct net *n);

/* crowd.c */

/* How many connections the network of an address has. */
size_t crowd_size(const struct net *n, const uint8_t addr[ADDR_BYTES]);

/* One more. NULL: memory is gone. */
MUST_USE struct crowd *crowd_join(struct net *n,
                                  const uint8_t addr[ADDR_BYTES]);

/* One less. NULL is harmless. */
void crowd_leave(struct net *n, struct crowd *c);

/* Whether all crowds together are so many. For tests. */
bool crowd_check(const struct net *n, size_t n_conns);

/* evict.c */

/* c has another state: it waits in the list that it belongs to. */
void evict_place(struct conn *c);

/* Make room for one more connection. False: all of them are at work. */
MUST_USE bool evict_one(struct net *n);

/* The oldest guest goes, with words. */
void evict_guest(struct net *n);

/* Whether the lists have whom they should. For tests. */
bool evict_check(const struct net *n);

/* conn.c */

/* Takes fd, also on failure. NULL when it could not be taken up. */
MUST_USE struct conn *conn_new(struct net *n, int fd, const char *peer,
                               bool is_away);

/* One that is to be connected; it has no socket before conn_connected, which
 * takes fd, also on failure, and may find it closed afterwards. */
MUST_USE struct conn *conn_new_dialled(struct net *n,
                                       const struct speech *speech,
                                       int64_t timeout_ms);
MUST_USE bool conn_connected(struct conn *c, int fd, const char *peer);

/* Enter a state and its deadline (INT64_MAX: none). */
void conn_move(struct conn *c, enum conn_state to, int64_t timeout_ms);

/* Make room for n more bytes of output, in one step. On false memory is gone,
 * and the connection should be too. */
MUST_USE bool conn_reserve(struct conn *c, size_t n);

/* Keep bytes for later. False: memory is gone or the limit reached. */
MUST_USE bool conn_keep_input(struct conn *c, const char *p, size_t n);

/* Drop bytes from the front of the input; empty, it gives its memory back. */
void conn_drop_input(struct conn *c, size_t n);

/* Run its turn and write what gathered, at the end of this turn. To be
 * called after something was added to the output: it is counted here. */
void conn_kick(struct conn *c);

/* The same at the end of the next turn, after others had theirs. */
void conn_kick_next_turn(struct conn *c);

/* Bytes handed to us that the kernel has not taken. */
size_t conn_unsent_bytes(const struct conn *c);

/* So much of the output has left; or all of both buffers goes. */
void conn_drop_output(struct conn *c, size_t n);
void conn_drop_buffers(struct conn *c);

/* Memory of its buffers, used or not. */
size_t conn_held_bytes(const struct conn *c);

/* Call after a buffer of c has changed: keeps the counters over all. */
void conn_count(struct conn *c);

/* Write what gathered now instead of at the end of the turn. */
void conn_flush(struct conn *c);

void conn_set_reading(struct conn *c, bool on);

/* Nothing of it is on its way, in or out: closing it loses nothing, where
 * closing over unread bytes would reset it and lose what was sent. */
bool conn_is_quiet(const struct conn *c);

/* Close once everything gathered has been sent. */
void conn_drain(struct conn *c);

/* Close now: for what begins in the loop (an event, a timer, the end of the
 * turn). It tells the owner when something was open, so inside a call of the
 * owner's it is only for who has taken the id off before. conn_cut: the peer's
 * doing. */
void conn_cut(struct conn *c);
void conn_cut_for(struct conn *c, enum conn_cut why);

/* The same at the end of the turn: for who is inside a call of the owner's,
 * which must not tell it anything. What happens to the connection until then
 * is not looked at, and the first reason is the one that counts. */
void conn_lose(struct conn *c, enum conn_cut why);

/* Whether the buffers of all connections hold more than they may. */
static inline bool net_is_full(const struct net *n)
{
    return n->held_bytes > n->opts.max_buffered_bytes;
}

/* Whether more output for c is to wait until it has taken what there is. */
bool conn_must_read_first(const struct conn *c);

/* Whether on_room is to be called now; if so the call is noted. Once in a
 * turn: a reader faster than the owner must not keep the others waiting. */
MUST_USE bool conn_gives_room(struct conn *c);

/* How many were taken of c in this turn, the one that is taken now included. */
void conn_note_taken(struct conn *c);
bool conn_has_taken(const struct conn *c, uint32_t n);

/* serve.c */
extern const struct speech serve_speech;

/* A refusal of our own, after which the connection ends. */
void serve_refuse(struct conn *c, enum err e, struct str what);

/* Tell who is_away so, and why. */
void serve_turn_away(struct conn *c);

/* The same, whole, for somebody who has no connection here. */
void serve_write_turned_away(struct net *n, enum net_room why, struct buf *out);

/* ws_conn.c */
extern const struct speech ws_speech;

/* The handshake is done, on either side: speak WebSocket from here on. False:
 * memory is gone and the connection closed, as what it was before. */
MUST_USE bool ws_begin(struct conn *c, const struct net_ws_handler *handler,
                       void *ctx);

/* Say goodbye, from inside a call of the owner's. */
void ws_say_close(struct conn *c, uint16_t code, struct str reason);

#endif
