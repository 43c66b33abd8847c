/* The other direction: from a URL to an open WebSocket.
 *
 *     START --> NAME --> CONNECT --> TLS --> ASK --> open
 *
 * The connection (struct conn) is there from the start, without a socket: it
 * has the id, the one timer and the handler, so that cancelling, time-outs and
 * stopping are what they are for any other. Beside it stands struct dial with
 * what is needed only on the way. A lookup cannot be called back and a poll is
 * closed a turn late; both hold on to the dial, and find no connection in it
 * when that has gone meanwhile.
 *
 * The guard is asked about the very address that is then connected to, one by
 * one, whatever the name was. A name with an address inside and one outside
 * leads outside or nowhere.
 *
 * An address that does not answer gets its share of the time that is left, so
 * that a second one has some too. Only connecting is tried again: what goes
 * wrong after that would go wrong there as well. */
#include "net/internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/url.h"

enum {
    ASK_BYTES = 64 * 1024, /* our request: a URL and headers */
    ADDRESSES_MAX = 16,    /* of one name; more are not tried */
    KEY_RAW_BYTES = 16,
};

enum stage { START, NAME, CONNECT, TLS, ASK };

struct dial {
    struct net *net;
    struct conn *conn; /* NULL: nobody wants to know any more */
    int n_holders;     /* the connection, a lookup, an attempt */
    enum stage stage;
    enum err given_up; /* the owner did; else OK */
    enum err e;        /* what came of the latest address, */
    struct why why;    /* and in words */
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

/* One socket on its way to one address. */
struct attempt {
    uv_poll_t poll;
    struct dial *dial;
    int fd; /* -1: somebody else's by now */
    char text[ADDR_TEXT_BYTES];
};

static void let_go(struct dial *d)
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

    let_go(d);
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

/* The connection goes on without it, or not at all. */
static void part(struct conn *c)
{
    struct dial *d = c->ws.dial;

    c->ws.dial = NULL;
    d->conn = NULL;
    d->net->stats.dialling--;
    close_attempt(d);
    if (d->stage == NAME)
        uv_cancel((uv_req_t *)&d->lookup);
    let_go(d);
}

static void tell_failed(struct conn *c, uint64_t id, enum err e,
                        struct str words)
{
    const struct net_ws_end end = {
        .code = WS_NO_CLOSE,
        .reason = words,
        .is_ours = e == ERR_GONE || e == ERR_STOPPING,
        .e = e,
    };

    c->net->stats.dials_failed_total++;
    log_debug(c->net->log, "net.dial_failed", LOG_C("code", err_row(e)->code),
              LOG_S("what", words));
    c->ws.handler->on_end(c->ws.ctx, id, &end);
}

PRINTF_LIKE(3, 4)
static void fail(struct conn *c, enum err e, const char *fmt, ...)
{
    uint64_t id = c->id;
    char words[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    c->id = 0;
    part(c);
    conn_cut(c);
    tell_failed(c, id, e, str_of(words));
}

/* Connecting. */

static void try_next(struct conn *c);

/* Every address has its share of the time; what comes after has the rest. */
static void set_deadline(struct conn *c, size_t n_shares)
{
    struct dial *d = c->ws.dial;
    int64_t left_ms = d->deadline_ms - loop_mono_ms(c->net->loop);

    if (left_ms < 0)
        left_ms = 0;
    conn_move(c, CONN_DIAL, left_ms / (int64_t)n_shares);
}

/* Connected, and TLS is open where there is any: ask for the upgrade. */
static void ask(struct conn *c)
{
    struct dial *d = c->ws.dial;

    d->stage = ASK;
    set_deadline(c, 1);
    if (c->state == CONN_CLOSED)
        return;
    if (!conn_reserve(c, d->ask.n)) {
        fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    buf_add_str(&c->out, buf_str(&d->ask));
    conn_kick(c);
}

static void begin_tls(struct conn *c)
{
    struct dial *d = c->ws.dial;
    int64_t left_ms = d->deadline_ms - loop_mono_ms(c->net->loop);
    struct why why;
    enum err e;

    d->stage = TLS;
    e = tls_connect(c, d->host, d->ca_file, left_ms > 0 ? left_ms : 0, &why);
    if (e)
        fail(c, e, "%s", why.text);
}

static void on_connected(struct conn *c, int fd, const char *address)
{
    if (!conn_connected(c, fd, address))
        fail(c, ERR_NOMEM, "out of memory");
    else if (c->state != CONN_CLOSED && c->ws.dial->is_tls)
        begin_tls(c);
    else if (c->state != CONN_CLOSED)
        ask(c);
}

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
    memcpy(address, a->text, sizeof(address));
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    else if (!error && status < 0)
        error = -status;
    if (!error) {
        a->fd = -1;
        close_attempt(d);
        on_connected(c, fd, address);
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

    d->stage = CONNECT;
    while (d->next < d->n_addresses) {
        size_t n_left = d->n_addresses - d->next;

        if (try_one(d, &d->addresses[d->next++])) {
            set_deadline(c, n_left);
            return;
        }
    }
    fail(c, d->e, "%s", d->why.text);
}

/* Names. */

static void on_found(uv_getaddrinfo_t *rq, int status, struct addrinfo *found)
{
    struct dial *d = LIST_OF(rq, struct dial, lookup);
    struct conn *c = d->conn;

    d->stage = CONNECT;
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
    if (c && (status < 0 || d->n_addresses == 0))
        fail(c, ERR_UNREACHABLE, "the name %s was not found: %s", d->host,
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
    d->stage = NAME;
    if (FAULT("net.lookup") ||
        n->getaddrinfo(&n->loop->uv, &d->lookup, on_found, d->host, port,
                       &hints) != 0) {
        d->stage = START; /* there is nothing to cancel */
        fail(c, ERR_NOMEM, "out of memory");
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

/* The answer. */

static size_t max_answer(const struct net_opts *o)
{
    size_t limit;

    if (__builtin_add_overflow(o->max_request_line_bytes, o->max_header_bytes,
                               &limit))
        limit = SIZE_MAX / 4;
    return limit;
}

static size_t dial_max_input(const struct net_opts *o)
{
    return max_answer(o) + READ_BYTES;
}

static void fail_answered(struct conn *c, const struct ws_answer *a)
{
    const char *host = c->ws.dial->host;

    if (a->status / 100 == 3)
        fail(c, ERR_BAD_REQUEST,
             "%s answered %d, which leads elsewhere; redirects are not "
             "followed",
             host, a->status);
    else if (a->status)
        fail(c, ERR_BAD_REQUEST, "%s answered %d instead of a WebSocket", host,
             a->status);
    else
        fail(c, ERR_BAD_REQUEST, "%s does not speak WebSocket as it should: %s",
             host, a->what);
}

static void open_up(struct conn *c, const struct ws_answer *a)
{
    const struct net_ws_handler *handler = c->ws.handler;
    void *ctx = c->ws.ctx;

    part(c);
    ws_begin(c, handler, ctx);
    if (c->state == CONN_CLOSED)
        return;
    handler->on_open(ctx, c->id, a->protocol);
    conn_drop_input(c, a->used); /* a->protocol lay there */
}

static void dial_bytes(struct conn *c, char *p, size_t n)
{
    struct dial *d = c->ws.dial;
    struct ws_answer a;
    enum ws_step step;

    if (!conn_keep_input(c, p, n)) {
        fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    step = ws_answer_read(buf_str(&c->in), str_of(d->key), str_of(d->protocol),
                          max_answer(&c->net->opts), &a);
    if (step == WS_MESSAGE)
        open_up(c, &a);
    else if (step != WS_MORE)
        fail_answered(c, &a);
}

static void dial_eof(struct conn *c)
{
    fail(c, ERR_BAD_REQUEST, "%s hung up before it had answered",
         c->ws.dial->host);
}

static void dial_turn(struct conn *c)
{
    struct dial *d = c->ws.dial;

    if (d->stage == START && is_in_digits(d))
        try_next(c);
    else if (d->stage == START)
        look_up(c);
}

static void dial_sent(struct conn *c)
{
    (void)c;
}

static void dial_timeout(struct conn *c)
{
    struct dial *d = c->ws.dial;
    long long ms = d->timeout_ms;

    if (d->stage == CONNECT && loop_mono_ms(c->net->loop) < d->deadline_ms) {
        note_failure(d, d->attempt->text, ETIMEDOUT);
        close_attempt(d);
        try_next(c);
    } else if (d->stage == CONNECT) {
        fail(c, ERR_TIMEOUT, "%s (%s) was not connected within %lld ms",
             d->host, d->attempt->text, ms);
    } else if (d->stage == ASK) {
        fail(c, ERR_TIMEOUT, "%s did not answer within %lld ms", d->host, ms);
    } else {
        fail(c, ERR_TIMEOUT, "the name %s was not found within %lld ms",
             d->host, ms);
    }
}

/* Why it was cut by others than us. */
static enum err gone_why(const struct conn *c, enum conn_cut why,
                         const char **words)
{
    static const enum err errors[] = {
        [CUT_GONE] = ERR_UNREACHABLE,
        [CUT_SLOW] = ERR_TIMEOUT,
        [CUT_STOP] = ERR_STOPPING,
        [CUT_NOMEM] = ERR_NOMEM,
    };
    const struct dial *d = c->ws.dial;

    *words = why == CUT_GONE ? "the connection was lost"
                             : err_row(errors[why])->wording;
    if (d->given_up) {
        *words = d->given_up == ERR_STOPPING ? "the server is stopping"
                                             : "it was given up";
        return d->given_up;
    }
    if (d->stage == TLS && why == CUT_GONE) {
        *words = tls_why(c->net);
        return loop_mono_ms(c->net->loop) < d->deadline_ms ? ERR_UNREACHABLE
                                                           : ERR_TIMEOUT;
    }
    return errors[why];
}

static void dial_gone(struct conn *c, uint64_t id, enum conn_cut why)
{
    struct dial *d = c->ws.dial;
    const char *words;
    enum err e;

    if (!d || !id)
        return; /* fail tells it, or net_ws_dial */
    e = gone_why(c, why, &words);
    d->n_holders++;
    part(c);
    tell_failed(c, id, e, str_of(words));
    let_go(d);
}

static const struct speech dial_speech = {
    .open = ask,
    .bytes = dial_bytes,
    .eof = dial_eof,
    .turn = dial_turn,
    .sent = dial_sent,
    .timeout = dial_timeout,
    .gone = dial_gone,
    .max_input = dial_max_input,
};

/* The beginning. */

void dial_give_up(struct conn *c, enum err e)
{
    c->ws.dial->given_up = e;
    conn_lose(c);
}

static void make_key(char key[WS_KEY_BYTES + 1])
{
    struct rand r = rand_system();
    unsigned char raw[KEY_RAW_BYTES];

    r.fill(r.ctx, raw, sizeof(raw));
    EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
}

static enum err write_ask(struct dial *d, const struct net_dial *what,
                          const struct url *u, struct why *why)
{
    const struct ws_ask a = {
        .host = u->authority,
        .target = u->target,
        .key = {d->key, WS_KEY_BYTES},
        .protocol = what->protocol,
        .headers = what->headers,
        .n_headers = what->n_headers,
    };
    enum err e;

    buf_init(&d->ask, ASK_BYTES);
    make_key(d->key);
    e = ws_ask_write(&d->ask, &a);
    if (e)
        return why_err(why, e,
                       "the headers, the protocol or the path cannot be sent "
                       "as they are: something in them would break the "
                       "request, or they are too long");
    return OK;
}

static struct dial *dial_alloc(struct net *n, const struct net_dial *what,
                               const struct url *u)
{
    size_t n_protocol = what->protocol.n + 1;
    size_t n_ca = what->ca_file ? strlen(what->ca_file) + 1 : 0;
    struct dial *d =
        FAULT("net.dial") ? NULL : calloc(1, sizeof(*d) + n_protocol + n_ca);

    if (!d)
        return NULL;
    d->net = n;
    d->n_holders = 1;
    d->guard = what->guard;
    d->port = u->port;
    d->is_tls = u->is_tls;
    d->timeout_ms = what->timeout_ms;
    if (__builtin_add_overflow(loop_mono_ms(n->loop), what->timeout_ms,
                               &d->deadline_ms))
        d->deadline_ms = INT64_MAX;
    memcpy(d->host, u->host.p, u->host.n);
    if (what->protocol.n)
        memcpy(d->protocol, what->protocol.p, what->protocol.n);
    if (n_ca)
        d->ca_file = memcpy(d->protocol + n_protocol, what->ca_file, n_ca);
    return d;
}

static enum err check_dial(const struct net *n, const struct net_dial *what,
                           struct url *u, struct why *why)
{
    enum err e = url_read(what->url, u, why);

    if (e)
        return e;
    if (!u->is_ws)
        return why_err(why, ERR_SYNTAX,
                       "a WebSocket's URL begins with ws:// or wss://");
    if (n->is_stopping)
        return why_err(why, ERR_STOPPING, "the server is stopping");
    if (n->n_dialled >= n->opts.max_connections)
        return why_err(why, ERR_LIMIT,
                       "as many connections are dialled as may be "
                       "(http.maxConnections)");
    return OK;
}

enum err net_ws_dial(struct net *n, const struct net_dial *what,
                     const struct net_ws_handler *handler, void *ctx,
                     uint64_t *id, struct why *why)
{
    struct url u;
    enum err e = check_dial(n, what, &u, why);
    struct dial *d;
    struct conn *c;

    if (e)
        return e;
    assert(handler->on_open && u.host.n <= URL_HOST_MAX);
    d = dial_alloc(n, what, &u);
    if (!d)
        return why_err(why, ERR_NOMEM, "out of memory");
    e = write_ask(d, what, &u, why);
    c = e ? NULL : conn_new_dialled(n, &dial_speech, what->timeout_ms);
    if (!c) {
        let_go(d);
        return e ? e : why_err(why, ERR_NOMEM, "out of memory");
    }
    d->conn = c;
    c->ws.handler = handler;
    c->ws.ctx = ctx;
    c->ws.dial = d;
    c->id = *id = net_next_id(n, c);
    n->stats.dialling++;
    n->stats.dials_total++;
    conn_kick(c); /* dial_turn begins */
    return OK;
}
