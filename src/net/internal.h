#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

/* What the files of net share.
 *
 *     listen.c   addresses, listening sockets, taking connections
 *     crowd.c    how many connections each address has
 *     conn.c     one connection as bytes: read, gather, write, wait, close
 *     serve.c    one connection as HTTP: requests out of bytes, replies back
 *     net.c      the room: options, ids, stopping, counting
 *
 * conn.c knows nothing of HTTP but the names of the states, and serve.c
 * nothing of sockets: what is to go between the two (TLS) or beside serve.c
 * (WebSocket) finds its place there. struct speech is the seam. */

#include "base/addr.h"
#include "base/loop.h"
#include "base/map.h"
#include "net/net.h"

enum {
    READ_BYTES = 64 * 1024,         /* one buffer for all connections */
    PIPELINE_BYTES = 16 * 1024,     /* waiting behind an open request */
    REQUESTS_PER_TURN = 32,         /* of one connection; then others come */
    SPARE_BUFS = 64,                /* kept for the next who needs one */
    SPARE_BUF_BYTES = 16 * 1024,    /* larger ones are given back */
    FRESH_BUF_BYTES = 512,          /* what a small reply fits in */
    AWAY_MAX = 64,                  /* being turned away at the same time */
    LINGER_MS = 2000,               /* for a peer to read our last words */
    LINGER_BYTES = 8 * 1024 * 1024, /* of theirs that we listen to meanwhile */
    SLOT_BITS = 24,
};

/*            bytes        head          body
 *    IDLE ---------> HEAD ------> BODY ------.
 *     ^ '--------------'------------'--------+--> OPEN ---> STREAM
 *     |                                              |         |
 *     '---------------- keep-alive ------------------+---------'
 *                                                    | last reply, or refused
 *                                                    v
 *                       CLOSED <--- LINGER <--- DRAIN
 *
 * DRAIN: the last bytes are on their way out. LINGER: they are out and our
 * side is shut; we read and throw away, because closing over unread bytes
 * would reset the connection before the peer has read the reply. Every state
 * may go to CLOSED at once: the client left, or a wait was too long. */
enum conn_state {
    CONN_IDLE,   /* idle_timeout */
    CONN_HEAD,   /* header_timeout */
    CONN_BODY,   /* body_timeout */
    CONN_OPEN,   /* reply_timeout */
    CONN_STREAM, /* no deadline but that of writing */
    CONN_DRAIN,  /* the same */
    CONN_LINGER, /* LINGER_MS */
    CONN_CLOSED, /* libuv will give it back; nobody touches it */
};

struct conn;

/* What a connection speaks, as conn.c knows it. bytes and eof: what came;
 * turn: at its end, before what gathered is written; sent: after that;
 * timeout: the deadline of the state has passed; gone: the connection was cut
 * off, id says what was open on it (zero: nothing). */
struct speech {
    void (*bytes)(struct conn *c, char *p, size_t n);
    void (*eof)(struct conn *c);
    void (*turn)(struct conn *c);
    void (*sent)(struct conn *c);
    void (*timeout)(struct conn *c);
    void (*gone)(struct conn *c, uint64_t id);
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
    struct http_parse parse;
    uint64_t id;        /* of the open request, or zero */
    uint64_t turn;      /* n_taken is of this one */
    uint64_t room_turn; /* the last one in which on_room was called */
    uint32_t n_taken;
    /* What net's counters have of us; see conn_count. */
    size_t counted_held_bytes, counted_unsent_bytes;
    size_t discarded_bytes;
    uint32_t slot;
    int fd;
    int watched;   /* what poll was asked to tell */
    uint8_t state; /* enum conn_state; conn_move changes it */
    bool is_reading;
    bool is_blocked; /* the kernel took no more; write_deadline_ms counts */
    bool is_away;    /* over a limit and being told so */
    uint8_t away;    /* enum net_room: over which */
    bool has_eof;
    bool wants_room;
    /* Of the open request: */
    bool keeps_alive, is_head, is_http_10;
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
    char url[80];

    struct slot *slots;
    uint32_t n_slots, first_free;
    size_t n_conns; /* until libuv has given them back */
    size_t n_away;
    bool is_shedding; /* since the buffers of all were full */
    struct map crowds;
    uint64_t n_ids;

    struct http_header *headers; /* of the request being read; never shrinks */
    size_t headers_cap;
    struct spare spares[SPARE_BUFS];
    size_t n_spares;

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

/* Whether connections of that address are not counted. */
bool crowd_is_exempt(const struct net *n, const uint8_t addr[ADDR_BYTES]);

/* conn.c */

/* Takes fd, also on failure. NULL when it could not be taken up. */
MUST_USE struct conn *conn_new(struct net *n, int fd, const char *peer,
                               bool is_away);

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

/* Memory of its buffers, used or not. */
size_t conn_held_bytes(const struct conn *c);

/* Write what gathered now instead of at the end of the turn. */
void conn_flush(struct conn *c);

void conn_set_reading(struct conn *c, bool on);

/* Nothing of it is on its way, in or out: closing it loses nothing, where
 * closing over unread bytes would reset it and lose what was sent. */
bool conn_is_quiet(const struct conn *c);

/* Close once everything gathered has been sent. */
void conn_drain(struct conn *c);

/* Close now. Tells the owner when a request was open. */
void conn_cut(struct conn *c);

/* serve.c */
extern const struct speech serve_speech;

/* A refusal of our own, after which the connection ends. */
void serve_refuse(struct conn *c, enum err e, struct str what);

/* Tell who is_away so, and why. */
void serve_turn_away(struct conn *c);

/* The same, whole, for somebody who has no connection here. */
void serve_write_turned_away(struct net *n, enum net_room why, struct buf *out);

#endif
