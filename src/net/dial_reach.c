/* From a name to a connected socket.
 *
 * A lookup cannot be called back and a poll is closed a turn late; both hold
 * on to the dial, and find no connection in it when that has gone meanwhile.
 *
 * The guard is asked about the very address that is then connected to, one by
 * one, whatever the name was. A name with an address inside and one outside
 * leads outside or nowhere. An address that does not answer gets its share of
 * the time that is left, so that a second one has some too. */
#include "net/dial_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"

/* One socket on its way to one address. */
struct attempt {
    uv_poll_t poll;
    struct dial *dial;
    int fd; /* -1: somebody else's by now */
    char text[ADDR_TEXT_BYTES];
};

void dial_let_go(struct dial *d)
{
    if (--d->n_holders)
        return;
    buf_fini(&d->ask);
    free(d);
}

/* Libuv holds on to it as well. */
static void hold(struct dial *d)
{
    d->n_holders++;
    d->net->n_errands++;
}

static void let_go_errand(struct dial *d)
{
    struct net *n = d->net;

    dial_let_go(d);
    n->n_errands--;
    net_check_stopped(n);
}

static void on_attempt_closed(uv_handle_t *h)
{
    struct attempt *a = LIST_OF(h, struct attempt, poll);

    let_go_errand(a->dial);
    free(a);
}

static void close_attempt(struct dial *d)
{
    struct attempt *a = d->attempt;

    if (!a)
        return;
    d->attempt = NULL;
    uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
    if (a->fd >= 0)
        close(a->fd);
}

void reach_stop(struct dial *d)
{
    close_attempt(d);
    if (d->step == DIAL_NAME)
        uv_cancel((uv_req_t *)&d->lookup);
}

const char *reach_address(const struct dial *d)
{
    return d->attempt->text;
}

static void try_next(struct conn *c);

static void note_failure(struct dial *d, const char *address, int error)
{
    d->e = why_err(&d->why, ERR_UNREACHABLE, "cannot connect to %s (%s): %s",
                   d->host, address, strerror(error));
}

static void on_attempt(uv_poll_t *h, int status, int events)
{
    struct attempt *a = LIST_OF(h, struct attempt, poll);
    struct dial *d = a->dial;
    struct conn *c = d->conn;
    int fd = a->fd, error = 0;
    socklen_t len = sizeof(error);
    char address[ADDR_TEXT_BYTES];

    (void)events;
    if (c->is_lost)
        return;
    memcpy(address, a->text, sizeof(address));
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    else if (!error && status < 0)
        error = -status;
    if (!error) {
        a->fd = -1;
        close_attempt(d);
        dial_connected(c, fd, address);
        return;
    }
    note_failure(d, address, error);
    close_attempt(d);
    try_next(c);
}

/* Takes fd, also on failure. */
static bool watch_attempt(struct dial *d, int fd, const char *text)
{
    struct attempt *a = FAULT("net.attempt") ? NULL : calloc(1, sizeof(*a));

    if (!a || uv_poll_init(&d->net->loop->uv, &a->poll, fd) != 0) {
        free(a);
        close(fd);
        return false;
    }
    a->dial = d;
    a->fd = fd;
    memcpy(a->text, text, sizeof(a->text));
    hold(d);
    d->attempt = a;
    if (FAULT("net.watch") ||
        uv_poll_start(&a->poll, UV_WRITABLE, on_attempt) != 0) {
        close_attempt(d);
        return false;
    }
    return true;
}

/* Whether this one may be and is being connected to. */
static bool try_one(struct dial *d, const struct addr *a)
{
    const char *kind = NULL;
    char text[ADDR_TEXT_BYTES];
    int fd;

    addr_write(&a->sa.any, text);
    if (d->guard && guard_judge(d->guard, &a->sa.any, &kind) != OK) {
        d->e = why_err(&d->why, ERR_ADDRESS,
                       "%s is %s (%s), which is not to be connected to; "
                       "outgoing.allow lists those that may be",
                       d->host, text, kind);
        return false;
    }
    errno = EMFILE;
    fd = FAULT("net.socket")
             ? -1
             : socket(a->sa.any.sa_family,
                      SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        note_failure(d, text, errno);
        return false;
    }
    if (connect(fd, &a->sa.any, a->len) != 0 && errno != EINPROGRESS) {
        note_failure(d, text, errno);
        close(fd);
        return false;
    }
    if (watch_attempt(d, fd, text))
        return true;
    d->e = why_err(&d->why, ERR_NOMEM, "out of memory");
    return false;
}

static void try_next(struct conn *c)
{
    struct dial *d = c->ws.dial;

    d->step = DIAL_CONNECT;
    while (d->next < d->n_addresses) {
        size_t n_left = d->n_addresses - d->next;

        if (try_one(d, &d->addresses[d->next++])) {
            dial_set_deadline(c, n_left);
            return;
        }
    }
    dial_fail(c, d->e, "%s", d->why.text);
}

/* Names. */

static void on_found(uv_getaddrinfo_t *rq, int status, struct addrinfo *found)
{
    struct dial *d = LIST_OF(rq, struct dial, lookup);
    struct conn *c = d->conn;

    d->step = DIAL_CONNECT;
    for (struct addrinfo *i = found; i && d->n_addresses < ADDRESSES_MAX;
         i = i->ai_next) {
        struct addr *a = &d->addresses[d->n_addresses];

        if (i->ai_addrlen > sizeof(a->sa))
            continue;
        memcpy(&a->sa, i->ai_addr, i->ai_addrlen);
        a->len = i->ai_addrlen;
        d->n_addresses++;
    }
    uv_freeaddrinfo(found);
    if (c && c->is_lost)
        c = NULL; /* and gone at the end of this turn */
    if (c && (status < 0 || d->n_addresses == 0))
        dial_fail(c, ERR_UNREACHABLE, "the name %s was not found: %s", d->host,
                  status < 0 ? uv_strerror(status) : "it has no address");
    else if (c)
        try_next(c);
    let_go_errand(d);
}

static void look_up(struct conn *c)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                          .ai_socktype = SOCK_STREAM};
    struct dial *d = c->ws.dial;
    struct net *n = c->net;
    char port[8];

    snprintf(port, sizeof(port), "%u", d->port);
    d->step = DIAL_NAME;
    if (FAULT("net.lookup") ||
        n->getaddrinfo(&n->loop->uv, &d->lookup, on_found, d->host, port,
                       &hints) != 0) {
        d->step = DIAL_START; /* there is nothing to cancel */
        dial_fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    hold(d);
}

/* An address in digits is known as it stands. */
static bool is_in_digits(struct dial *d)
{
    struct addr *a = &d->addresses[0];

    if (inet_pton(AF_INET, d->host, &a->sa.v4.sin_addr) == 1) {
        a->sa.v4.sin_family = AF_INET;
        a->sa.v4.sin_port = htons(d->port);
        a->len = sizeof(a->sa.v4);
    } else if (inet_pton(AF_INET6, d->host, &a->sa.v6.sin6_addr) == 1) {
        a->sa.v6.sin6_family = AF_INET6;
        a->sa.v6.sin6_port = htons(d->port);
        a->len = sizeof(a->sa.v6);
    } else {
        return false;
    }
    d->n_addresses = 1;
    return true;
}

void reach_start(struct conn *c)
{
    if (is_in_digits(c->ws.dial))
        try_next(c);
    else
        look_up(c);
}

void reach_next(struct conn *c)
{
    struct dial *d = c->ws.dial;

    note_failure(d, d->attempt->text, ETIMEDOUT);
    close_attempt(d);
    try_next(c);
}
