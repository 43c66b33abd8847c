#ifndef NET_DIAL_INTERNAL_H
#define NET_DIAL_INTERNAL_H

/* What the two halves of dialling share: dial_reach.c gets from a name to a
 * connected socket, dial.c from there to an open WebSocket. */

#include "base/url.h"
#include "net/internal.h"

enum { ADDRESSES_MAX = 16 }; /* of one name; more are not tried */

enum dial_step { DIAL_START, DIAL_NAME, DIAL_CONNECT, DIAL_TLS, DIAL_ASK };

struct dial {
    struct net *net;
    struct conn *conn; /* NULL: nobody wants to know any more */
    int n_holders;     /* the connection, a lookup, an attempt */
    enum dial_step step;
    enum err e;      /* what came of the latest address, then of all, */
    struct why why;  /* and in words */
    bool has_failed; /* and they are what is to be told */
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
    char protocol[];     /* that was asked for */
};

/* Let one holder go; the last one frees it. */
void dial_let_go(struct dial *d);

/* dial.c */

/* It comes to nothing: close, and tell the owner. */
void dial_fail(struct conn *c, enum err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Takes fd. */
void dial_connected(struct conn *c, int fd, const char *address);

/* What is left of the time, or its share where others have one too. */
void dial_set_deadline(struct conn *c, size_t n_shares);

/* dial_reach.c */

/* Look the name up and connect; dial_connected or dial_fail is called, perhaps
 * from inside. */
void reach_start(struct conn *c);

/* The address that is being tried had its time: the next one. */
void reach_next(struct conn *c);

/* Where it is connecting to, as text. */
const char *reach_address(const struct dial *d);

/* Nobody wants to know any more. */
void reach_stop(struct dial *d);

#endif
