#ifndef TEST_PEERS_WS_PEER_H
#define TEST_PEERS_WS_PEER_H

/* ws_peer: net's WebSockets as a program, for tests that come from outside.
 *
 *     ws_peer serve [--listen HOST:PORT] [limits]
 *         prints "listening ws://HOST:PORT", then takes connections:
 *         /echo     every message back; held while its sender does not read
 *         /push     binary messages as fast as they are read
 *         /forward  two with the same ?pair=NAME get each other's messages
 *         /sink     swallows
 *         /close    ?code=N&reason=WORD: says goodbye at the first message
 *         /stats    (plain HTTP) net's figures as JSON
 *     ws_peer dial URL [options]
 *         each line of stdin is a text message; events come out as JSON lines;
 *         at its end, and after --expect N messages, it says goodbye
 *     ws_peer dial-echo URL [options]
 *         echoes until the end
 *
 * SIGTERM and SIGINT stop it gently. */

#include "cli/args.h"
#include "net/server/net.h"

struct peer {
    struct loop loop;
    struct log log;
    struct net *net;
    uv_signal_t on_term, on_int;
    int status; /* to exit with */
    bool has_stopped;
};

/* A message that could not be passed on yet. */
struct held {
    struct buf bytes;
    enum ws_kind kind;
    bool is_held;
};

/* Pass on or hold; a held one makes `from` pause. */
void held_send(struct peer *p, struct held *h, uint64_t from, uint64_t to,
               enum ws_kind kind, struct str bytes);

/* There is room: pass on what is held and let `from` go on. */
void held_go_on(struct peer *p, struct held *h, uint64_t from, uint64_t to);

/* What is said for a number, or what it is by default. */
int64_t peer_number(const struct args *a, const char *name, int64_t preset);

/* Stop once everything has gone. */
void peer_stop(struct peer *p);

/* The handler of HTTP requests; ws_peer_serve.c. */
extern const struct net_handler serve_handler;

MUST_USE int peer_serve(struct peer *p, const struct args *a);

/* ws_peer_dial.c */
MUST_USE int peer_dial(struct peer *p, const struct args *a, bool echoes);

#endif
