#ifndef NET_SERVER_DIAL_INTERNAL_H
#define NET_SERVER_DIAL_INTERNAL_H

/* Internals that the two halves of dialling share: dial_reach.c gets from a
 * name to a connected socket, dial.c from there to an open WebSocket. */

#include "base/url.h"
#include "net/server/internal.h"

enum { ADDRESSES_MAX = 16 }; /* of one name; further ones are not tried */

enum dial_step { DIAL_START, DIAL_NAME, DIAL_CONNECT, DIAL_TLS, DIAL_ASK };

struct dial {
    struct net *net;
    struct conn *conn; /* NULL: the connection has gone */
    int n_holders;     /* the connection, a lookup, an attempt */
    enum dial_step step;
    enum err e;      /* the result of the latest address, then of all, */
    struct why why;  /* and its message */
    bool has_failed; /* e and why are final */
    int64_t timeout_ms, deadline_ms;

    uv_getaddrinfo_t lookup;
    struct addr addresses[ADDRESSES_MAX];
    size_t n_addresses, next;
    struct attempt *attempt;
    const struct guard *guard;

    struct buf ask;
    char host[URL_HOST_MAX + 1];
    uint16_t port;
    bool is_tls;
    char key[WS_KEY_BYTES + 1];
    const char *ca_file; /* NULL, or behind protocol */
    char protocol[];     /* the requested one */
};

/* Release one holder; the last one frees it. */
void dial_let_go(struct dial *d);

/* dial.c */

/* The dial has failed: close, and tell the owner. */
void dial_fail(struct conn *c, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Takes fd. */
void dial_connected(struct conn *c, int fd, const char *address);

/* The rest of the time, or a share of it if further addresses need some too. */
void dial_set_deadline(struct conn *c, size_t n_shares);

/* dial_reach.c */

/* Look the name up and connect; calls dial_connected or dial_fail, perhaps
 * from inside. */
void reach_start(struct conn *c);

/* The current address took its time: try the next one. */
void reach_next(struct conn *c);

/* The current address as text. */
const char *reach_address(const struct dial *d);

/* The connection has gone. */
void reach_stop(struct dial *d);

#endif
