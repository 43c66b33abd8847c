/* Listening sockets, and accepting connections.
 *
 * The sockets are our own under a uv_poll rather than libuv's uv_listen. That
 * gives the peer's address without another system call, control when file
 * descriptors run out (libuv accepts such connections and drops them; we leave
 * them in the kernel's queue until there is room), and a limit on accepts in
 * one turn. */
#include "net/server/internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    BACKLOG = 1024,
    ACCEPTS_PER_TURN = 64,
    BACK_OFF_MS = 100, /* until accept is tried again */
    AWAY_BYTES = 4096, /* of a refusal */
};

struct listener {
    uv_poll_t poll;
    struct net *net;
    struct list_node node;
    struct timer again; /* set while accepting is paused */
    bool is_tls;
    bool is_side; /* from net_listen_side */
    bool rests;
    bool is_short; /* no descriptors or memory; logged when it began */
    int fd;
};

/* Accepting. */

static void on_acceptable(uv_poll_t *h, int status, int events);

static void listener_resume(struct listener *l)
{
    loop_timer_cancel(l->net->loop, &l->again);
    l->rests = false;
    uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
}

static void on_listener_timer(struct timer *t)
{
    listener_resume(LIST_OF(t, struct listener, again));
}

/* The kernel's queue stays readable, so going on at once would spin. A
 * connection that closes ends the pause before the timer does. */
static void listener_pause(struct listener *l, int error)
{
    struct net *n = l->net;

    if (!l->is_short)
        log_warn(n->log, "net.accept_rests", LOG_C("error", strerror(error)),
                 LOG_I("connections", (int64_t)n->n_conns));
    l->is_short = true;
    loop_timer_set(n->loop, &l->again, BACK_OFF_MS);
    l->rests = true;
    uv_poll_stop(&l->poll);
}

/* Accept reported no shortage. */
static void listener_note_accept(struct listener *l)
{
    if (l->is_short)
        log_info(l->net->log, "net.accept_goes_on",
                 LOG_I("connections", (int64_t)l->net->n_conns));
    l->is_short = false;
}

void listen_resume_all(struct net *n)
{
    struct list_node *i;

    for (i = list_first(&n->listeners); i; i = list_next(&n->listeners, i)) {
        struct listener *l = LIST_OF(i, struct listener, node);

        if (l->rests)
            listener_resume(l);
    }
}

/* Whether to turn away all newcomers because of full buffers. At the limit
 * itself slow readers must wait, and a few of them must not keep everybody
 * out; a quarter beyond it, the number of connections is the cost. Once begun
 * it lasts down to the limit, so that it does not alternate. */
static bool is_shedding(struct net *n)
{
    size_t most = n->opts.max_buffered_bytes;
    bool was_shedding = n->is_shedding;

    n->is_shedding = n->held_bytes > (was_shedding ? most : most + most / 4) ||
                     (net_is_short(n) && n->memory == NET_MEMORY_OUT &&
                      n->n_conns > MEMORY_OUT_CONNS);
    if (n->is_shedding && !was_shedding)
        log_warn(n->log, "net.sheds",
                 LOG_C("because", "the buffers of all connections hold a "
                                  "quarter more than "
                                  "http.maxBufferedBytes, or memory is out; "
                                  "new connections are turned away"),
                 LOG_I("bytes", (int64_t)n->held_bytes));
    else if (!n->is_shedding && was_shedding)
        log_info(n->log, "net.sheds_no_more",
                 LOG_I("bytes", (int64_t)n->held_bytes));
    return n->is_shedding;
}

/* The key of an address's share of the connections. */
static struct str network_of(const uint8_t addr[ADDR_BYTES],
                             uint8_t network[ADDR_BYTES])
{
    addr_network(addr, network);
    return (struct str){(const char *)network,
                        PLANTED("net.one_crowd") ? 0 : ADDR_BYTES};
}

/* The limit that one more connection would exceed. No connection is evicted
 * for a newcomer that is turned away anyway. */
static enum net_room net_room_for(struct net *n, const uint8_t addr[ADDR_BYTES],
                                  bool is_counted)
{
    size_t n_taken = n->n_conns - n->n_away - n->n_dialled - n->n_evicted;
    uint8_t network[ADDR_BYTES];
    const struct share *crowd;

    if (is_shedding(n))
        return NET_NO_BUFFERS;
    crowd = share_find(&n->crowds, network_of(addr, network));
    if (is_counted && crowd && crowd->n >= n->opts.max_connections_per_address)
        return NET_NO_ADDRESS;
    if (n_taken >= n->opts.max_connections && !evict_one(n))
        return NET_NO_CONNECTION;
    return NET_ROOM;
}

/* In a rush newcomers cannot be turned away one by one. Input that has arrived
 * is read, or closing would lose our answer; input that comes later may still
 * do that. */
static void turn_away_at_once(struct net *n, int fd, enum net_room why)
{
    struct buf text;

    buf_init(&text, AWAY_BYTES);
    serve_write_turned_away(n, why, &text);
    if (!text.over && !FAULT("net.away")) {
        (void)recv(fd, n->read_buf, READ_BYTES, MSG_DONTWAIT);
        (void)send(fd, text.p, text.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
    }
    buf_fini(&text);
    close(fd);
}

static void listener_begin(struct listener *l, struct conn *c)
{
    if (l->is_tls)
        tls_accept(c);
    else
        c->speech->open(c);
}

/* A client with TLS is told after its handshake, which needs a connection. */
static void turn_away(struct listener *l, int fd, const char *peer,
                      enum net_room why)
{
    struct net *n = l->net;
    struct conn *c;

    n->stats.refused_total++;
    n->stats.refused_by_total[why]++;
    if (n->n_away - n->n_guests >=
        (n->on.is_vital ? AWAY_MAX - GUESTS_MAX : AWAY_MAX)) {
        if (l->is_tls)
            close(fd);
        else
            turn_away_at_once(n, fd, why);
        return;
    }
    c = conn_new(n, fd, peer, true);
    if (!c) {
        log_warn(n->log, "net.no_memory", LOG_C("peer", peer));
        return;
    }
    c->away = (uint8_t)why;
    listener_begin(l, c);
}

/* A guest may send a request that must always be answered. */
static bool take_guest(struct listener *l, int fd, const char *peer)
{
    struct net *n = l->net;
    struct conn *c;

    if (!n->on.is_vital)
        return false;
    if (n->n_guests >= GUESTS_MAX)
        evict_guest(n);
    c = conn_new(n, fd, peer, true);
    if (!c) {
        log_warn(n->log, "net.no_memory", LOG_C("peer", peer));
        return true;
    }
    c->away = NET_NO_CONNECTION;
    c->is_guest = true;
    conn_move(c, CONN_IDLE, n->opts.header_timeout_ms);
    if (c->state != CONN_CLOSED)
        listener_begin(l, c);
    return true;
}

static void listener_take(struct listener *l, int fd,
                          const struct sockaddr *peer)
{
    struct net *n = l->net;
    uint8_t addr[ADDR_BYTES], network[ADDR_BYTES];
    char text[ADDR_TEXT_BYTES];
    enum net_room room;
    struct conn *c;
    bool is_counted;

    addr_bytes(peer, addr);
    addr_write(peer, text);
    is_counted = n->opts.max_connections_per_address &&
                 !guard_ranges_have(n->opts.exempt, n->opts.n_exempt, addr, 0);
    room = net_room_for(n, addr, is_counted);
    if (room == NET_NO_CONNECTION && take_guest(l, fd, text))
        return;
    if (room != NET_ROOM) {
        turn_away(l, fd, text, room);
        return;
    }
    c = conn_new(n, fd, text, false);
    if (c && is_counted)
        c->crowd = share_take(&n->crowds, network_of(addr, network));
    if (!c || (is_counted && !c->crowd)) {
        log_warn(n->log, "net.no_memory", LOG_C("peer", text));
        if (c)
            conn_cut(c);
        return;
    }
    memcpy(c->peer_addr, addr, sizeof(addr));
    c->is_side = l->is_side;
    n->stats.connections_total++;
    listener_begin(l, c);
}

static int accept_one(int fd, struct sockaddr_storage *peer)
{
    socklen_t len = sizeof(*peer);

    if (FAULT("net.accept")) {
        errno = EMFILE;
        return -1;
    }
    return accept4(fd, (struct sockaddr *)peer, &len,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Errors of accept that concern one connection and not the listener. */
static bool is_of_one_client(int error)
{
    return error == EINTR || error == ECONNABORTED || error == EPROTO ||
           error == ENETDOWN || error == ENOPROTOOPT || error == EHOSTDOWN ||
           error == ENONET || error == EHOSTUNREACH || error == EOPNOTSUPP ||
           error == ENETUNREACH || error == EPERM;
}

static void on_acceptable(uv_poll_t *h, int status, int events)
{
    struct listener *l = LIST_OF(h, struct listener, poll);

    (void)events;
    if (status < 0) {
        listener_pause(l, -status);
        return;
    }
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
        int fd = accept_one(l->fd, &peer);

        if (fd >= 0 || errno == EAGAIN)
            listener_note_accept(l);
        if (fd >= 0) {
            listener_take(l, fd, (struct sockaddr *)&peer);
        } else if (errno == EAGAIN) {
            return;
        } else if (!is_of_one_client(errno)) {
            listener_pause(l, errno);
            return;
        }
    }
}

/* Opening and closing. */

static enum err say_why(struct why *why, const char *address, const char *how,
                        int error)
{
    switch (error) {
    case EADDRINUSE:
        return why_err(why, ERR_BUSY,
                       "address %s is in use: stop the other program or "
                       "choose another port with %s",
                       address, how);
    case EACCES:
        return why_err(why, ERR_NOT_ALLOWED,
                       "address %s is not allowed to this user: choose a port "
                       "above 1023 with %s",
                       address, how);
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return why_err(why, ERR_IO,
                       "this machine has no address %s: choose one it has, or "
                       "127.0.0.1, with %s",
                       address, how);
    default:
        return why_err(why, ERR_IO, "cannot listen on %s: %s", address,
                       strerror(error));
    }
}

/* A bound and listening socket, or -1 with errno set. */
static int listener_open_socket(const struct addr *a)
{
    int fd, one = 1, error;

    if (FAULT("net.listen")) {
        errno = ENOBUFS;
        return -1;
    }
    fd = socket(a->sa.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        (a->sa.any.sa_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0) &&
        bind(fd, &a->sa.any, a->len) == 0 && !FAULT("net.listen") &&
        listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void on_listener_closed(uv_handle_t *h)
{
    struct listener *l = LIST_OF(h, struct listener, poll);
    struct net *n = l->net;

    close(l->fd);
    free(l);
    n->n_listeners--;
    net_check_stopped(n);
}

void listen_close_all(struct net *n)
{
    struct list_node *i;

    while ((i = list_pop(&n->listeners))) {
        struct listener *l = LIST_OF(i, struct listener, node);

        loop_timer_cancel(n->loop, &l->again);
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    }
}

/* The kind of a listener. */
struct way {
    bool is_tls, is_side;
    const char *setting; /* the setting with the address */
};

/* Takes fd, also on failure. */
static enum err listener_add(struct net *n, int fd, const struct way *way)
{
    struct listener *l = mem_new(sizeof(*l));

    if (FAULT("net.listener") ||
        uv_poll_init(&n->loop->uv, &l->poll, fd) != 0) {
        free(l);
        close(fd);
        return ERR_NOMEM;
    }
    l->net = n;
    l->fd = fd;
    l->is_tls = way->is_tls;
    l->is_side = way->is_side;
    l->again.fire = on_listener_timer;
    list_append(&n->listeners, &l->node);
    n->n_listeners++;
    uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
    return OK;
}

/* The actual port, also stored in *a for a second family. */
static void listener_note_url(struct net *n, int fd, struct addr *a,
                              const struct way *way)
{
    char text[ADDR_TEXT_BYTES];
    char *url = way->is_side ? n->side_url : way->is_tls ? n->tls_url : n->url;

    getsockname(fd, &a->sa.any, &a->len);
    addr_write(&a->sa.any, text);
    if (!url[0])
        snprintf(url, sizeof(n->url), "http%s://%s", way->is_tls ? "s" : "",
                 text);
    log_info(n->log, "net.listening", LOG_C("address", text),
             LOG_C("speaks", way->is_tls ? "https" : "http"));
}

/* Some addresses mean two: "localhost" is ::1 to many programs, and "[::]"
 * means everywhere, which is 0.0.0.0 in the other family. Failure of the
 * second, on machines without it or with a used port, is ignored. */
static bool other_family(const struct addr *a, struct addr *other)
{
    if (a->is_localhost) {
        *other = (struct addr){.len = sizeof(other->sa.v6)};
        other->sa.v6.sin6_family = AF_INET6;
        other->sa.v6.sin6_port = a->sa.v4.sin_port;
        other->sa.v6.sin6_addr = in6addr_loopback;
        return true;
    }
    if (a->sa.any.sa_family != AF_INET6 ||
        !IN6_IS_ADDR_UNSPECIFIED(&a->sa.v6.sin6_addr))
        return false;
    *other = (struct addr){.len = sizeof(other->sa.v4)};
    other->sa.v4.sin_family = AF_INET;
    other->sa.v4.sin_port = a->sa.v6.sin6_port;
    return true;
}

static void listen_there_too(struct net *n, struct addr *a,
                             const struct way *way)
{
    char text[ADDR_TEXT_BYTES];
    int fd = listener_open_socket(a);

    if (fd >= 0 && listener_add(n, fd, way) == OK) {
        listener_note_url(n, fd, a, way);
        return;
    }
    addr_write(&a->sa.any, text);
    log_warn(n->log, "net.one_family", LOG_C("without", text));
}

static enum err listen_on(struct net *n, struct str address,
                          const struct way *way, struct why *why)
{
    char text[ADDR_TEXT_BYTES];
    struct addr a, other;
    enum err e;
    int fd;

    assert(!n->is_stopping && (!way->is_tls || n->tls_files));
    if (addr_parse(address, &a) != OK)
        return why_err(why, ERR_USAGE,
                       "'%.*s' is not an address to listen on: write "
                       "127.0.0.1:8787, [::1]:8787 or localhost:8787, with "
                       "port 0 for any free one",
                       STR_ARG(str_sub(address, 0, 100)));
    fd = listener_open_socket(&a);
    if (fd < 0) {
        int error = errno;

        addr_write(&a.sa.any, text);
        return say_why(why, text, way->setting, error);
    }
    e = listener_add(n, fd, way);
    if (e)
        return why_err(why, e, "cannot listen: out of memory");
    listener_note_url(n, fd, &a, way);
    if (other_family(&a, &other))
        listen_there_too(n, &other, way);
    return OK;
}

enum err net_listen(struct net *n, struct str address, bool is_tls,
                    struct why *why)
{
    const struct way way = {.is_tls = is_tls,
                            .setting = is_tls ? "tls.listen" : "--listen"};

    return listen_on(n, address, &way, why);
}

enum err net_listen_side(struct net *n, struct str address, const char *setting,
                         struct why *why)
{
    const struct way way = {.is_side = true, .setting = setting};

    return listen_on(n, address, &way, why);
}
