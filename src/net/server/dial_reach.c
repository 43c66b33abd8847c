/* From a name to a connected socket.
 *
 * A lookup cannot be cancelled and a poll is closed a turn late; both hold the
 * dial, and find no connection in it when that has gone.
 *
 * The guard checks the very address that is then connected to, one by one, for
 * any name. A name with an internal and an external address leads outside or
 * nowhere. An address that does not answer gets its share of the remaining
 * time, so that a second one has some too. */
#include "net/server/dial_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

/* A socket that connects to an address. */
struct attempt {
    uv_poll_t poll;
    struct dial *dial;
    int fd; /* -1: passed on */
    char text[ADDR_TEXT_BYTES];
};

void dial_let_go(struct dial *d)
{
    if (--d->n_holders)
        return;
    buf_fini(&d->ask);
    free(d);
}

/* libuv holds it as well. */
static void dial_hold(struct dial *d)
{
    d->n_holders++;
    d->net->n_errands++;
}

static void reach_release_lookup(struct dial *d)
{
    struct net *n = d->net;

    dial_let_go(d);
    n->n_errands--;
    net_check_stopped(n);
}

static void on_attempt_closed(uv_handle_t *h)
{
    struct attempt *a = LIST_OF(h, struct attempt, poll);

    reach_release_lookup(a->dial);
    free(a);
}

static void attempt_close(struct dial *d)
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
    attempt_close(d);
    if (d->step == DIAL_NAME)
        uv_cancel((uv_req_t *)&d->lookup);
}

const char *reach_address(const struct dial *d)
{
    return d->attempt->text;
}

static void reach_try_next(struct conn *c);

static void reach_note_failure(struct dial *d, const char *address, int error)
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
        attempt_close(d);
        dial_connected(c, fd, address);
        return;
    }
    reach_note_failure(d, address, error);
    attempt_close(d);
    reach_try_next(c);
}

/* Takes fd, also on failure. */
static bool attempt_watch(struct dial *d, int fd, const char *text)
{
    struct attempt *a = mem_new(sizeof(*a));

    if (FAULT("net.attempt") ||
        uv_poll_init(&d->net->loop->uv, &a->poll, fd) != 0) {
        free(a);
        close(fd);
        return false;
    }
    a->dial = d;
    a->fd = fd;
    memcpy(a->text, text, sizeof(a->text));
    dial_hold(d);
    d->attempt = a;
    if (FAULT("net.watch") ||
        uv_poll_start(&a->poll, UV_WRITABLE, on_attempt) != 0) {
        attempt_close(d);
        return false;
    }
    return true;
}

/* Whether this address is allowed and is being connected to. */
static bool reach_try_address(struct dial *d, const struct addr *a)
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
        reach_note_failure(d, text, errno);
        return false;
    }
    if (connect(fd, &a->sa.any, a->len) != 0 && errno != EINPROGRESS) {
        reach_note_failure(d, text, errno);
        close(fd);
        return false;
    }
    if (attempt_watch(d, fd, text))
        return true;
    d->e = why_err(&d->why, ERR_NOMEM, "out of memory");
    return false;
}

static void reach_try_next(struct conn *c)
{
    struct dial *d = c->ws.dial;

    d->step = DIAL_CONNECT;
    while (d->next < d->n_addresses) {
        size_t n_left = d->n_addresses - d->next;

        if (reach_try_address(d, &d->addresses[d->next++])) {
            dial_set_deadline(c, n_left);
            return;
        }
    }
    dial_fail(c, d->e, "%s", d->why.text);
}

/* Names. */

static void on_name_found(uv_getaddrinfo_t *rq, int status,
                          struct addrinfo *found)
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
        c = NULL; /* and freed at the end of this turn */
    if (c && (status < 0 || d->n_addresses == 0))
        dial_fail(c, ERR_UNREACHABLE, "the name %s was not found: %s", d->host,
                  status < 0 ? uv_strerror(status) : "it has no address");
    else if (c)
        reach_try_next(c);
    reach_release_lookup(d);
}

static void reach_find_name(struct conn *c)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                          .ai_socktype = SOCK_STREAM};
    struct dial *d = c->ws.dial;
    struct net *n = c->net;
    char port[8];

    snprintf(port, sizeof(port), "%u", d->port);
    d->step = DIAL_NAME;
    if (FAULT("net.lookup") ||
        n->getaddrinfo(&n->loop->uv, &d->lookup, on_name_found, d->host, port,
                       &hints) != 0) {
        d->step = DIAL_START; /* there is nothing to cancel */
        dial_fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    dial_hold(d);
}

/* A numeric address needs no lookup. */
static bool reach_is_numeric(struct dial *d)
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
    if (reach_is_numeric(c->ws.dial))
        reach_try_next(c);
    else
        reach_find_name(c);
}

void reach_next(struct conn *c)
{
    struct dial *d = c->ws.dial;

    reach_note_failure(d, d->attempt->text, ETIMEDOUT);
    attempt_close(d);
    reach_try_next(c);
}
