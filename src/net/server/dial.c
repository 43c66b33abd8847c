/* The client side: from a URL to an open WebSocket.
 *
 *     START --> NAME --> CONNECT --> TLS --> ASK --> open
 *              (dial_reach.c)     (tls.c)
 *
 * The connection (struct conn) exists from the start, without a socket: it has
 * the id, the one timer and the handler, so cancelling, timeouts and stopping
 * work as for any other. struct dial holds the data that is needed only until
 * it is open. Only connecting is tried again, with the next address: later
 * failures would be the same there. */
#include "net/server/dial_internal.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

enum {
    ASK_BYTES = 64 * 1024, /* our request: a URL and headers */
    KEY_RAW_BYTES = 16,
};

/* The connection goes on without d, or ends. */
static void dial_part(struct dial *d)
{
    d->conn->ws.dial = NULL;
    d->conn = NULL;
    d->net->stats.dialling--;
    reach_stop(d);
    dial_let_go(d);
}

/* dial_gone reports it, at every end. */
void dial_fail(struct conn *c, enum err e, const char *fmt, ...)
{
    struct dial *d = c->ws.dial;
    struct why why; /* the arguments may point into d->why */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why.text, sizeof(why.text), fmt, ap);
    va_end(ap);
    d->why = why;
    d->e = e;
    d->has_failed = true;
    conn_cut(c);
}

void dial_set_deadline(struct conn *c, size_t n_shares)
{
    struct dial *d = c->ws.dial;
    int64_t left_ms = d->deadline_ms - loop_mono_ms(c->net->loop);

    if (left_ms < 0)
        left_ms = 0;
    conn_move(c, CONN_DIAL, left_ms / (int64_t)n_shares);
}

/* Connected, with TLS if needed: send the request for the upgrade. */
static void dial_send_request(struct conn *c)
{
    struct dial *d = c->ws.dial;

    d->step = DIAL_ASK;
    dial_set_deadline(c, 1);
    if (c->state == CONN_CLOSED)
        return;
    if (!conn_reserve(c, d->ask.n)) {
        dial_fail(c, ERR_NOMEM, "out of memory");
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

    d->step = DIAL_TLS;
    e = tls_connect(c, d->host, d->ca_file, left_ms > 0 ? left_ms : 0, &why);
    if (e)
        dial_fail(c, e, "%s", why.text);
}

void dial_connected(struct conn *c, int fd, const char *address)
{
    if (!conn_connected(c, fd, address))
        dial_fail(c, ERR_NOMEM, "out of memory");
    else if (c->state != CONN_CLOSED && c->ws.dial->is_tls)
        begin_tls(c);
    else if (c->state != CONN_CLOSED)
        dial_send_request(c);
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

static size_t dial_max_input(const struct conn *c)
{
    return max_answer(&c->net->opts) + READ_BYTES;
}

static void fail_answered(struct conn *c, const struct ws_answer *a)
{
    const char *host = c->ws.dial->host;

    if (a->status / 100 == 3)
        dial_fail(c, ERR_BAD_REQUEST,
                  "%s answered %d, which leads elsewhere; redirects are not "
                  "followed",
                  host, a->status);
    else if (a->status)
        dial_fail(c, ERR_BAD_REQUEST, "%s answered %d instead of a WebSocket",
                  host, a->status);
    else
        dial_fail(c, ERR_BAD_REQUEST,
                  "%s does not speak WebSocket as it should: %s", host,
                  a->what);
}

static void open_up(struct conn *c, const struct ws_answer *a)
{
    const struct net_ws_handler *handler = c->ws.handler;
    struct dial *d = c->ws.dial;
    void *ctx = c->ws.ctx;

    if (!ws_begin(c, handler, ctx))
        return;
    dial_part(d);
    handler->on_open(ctx, c->id, a->protocol);
    conn_drop_input(c, a->used); /* a->protocol was in it */
}

static void dial_bytes(struct conn *c, char *p, size_t n)
{
    struct dial *d = c->ws.dial;
    struct ws_answer a;
    enum ws_step step;

    if (!conn_keep_input(c, p, n)) {
        dial_fail(c, ERR_NOMEM, "out of memory");
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
    dial_fail(c, ERR_BAD_REQUEST, "%s hung up before it had answered",
              c->ws.dial->host);
}

static void dial_turn(struct conn *c)
{
    if (c->ws.dial->step == DIAL_START)
        reach_start(c);
}

static void dial_sent(struct conn *c)
{
    (void)c;
}

static void dial_timeout(struct conn *c)
{
    struct dial *d = c->ws.dial;
    long long ms = d->timeout_ms;

    if (d->step == DIAL_CONNECT &&
        loop_mono_ms(c->net->loop) < d->deadline_ms) {
        reach_next(c);
    } else if (d->step == DIAL_CONNECT) {
        dial_fail(c, ERR_TIMEOUT, "%s (%s) was not connected within %lld ms",
                  d->host, reach_address(d), ms);
    } else if (d->step == DIAL_ASK) {
        dial_fail(c, ERR_TIMEOUT, "%s did not answer within %lld ms", d->host,
                  ms);
    } else {
        dial_fail(c, ERR_TIMEOUT, "the name %s was not found within %lld ms",
                  d->host, ms);
    }
}

/* Other code than dial_fail cut it. */
static void dial_note_cut(const struct conn *c, enum conn_cut why)
{
    static const struct {
        enum err e;
        const char *words;
    } of[] = {
        [CUT_GONE] = {ERR_UNREACHABLE, "the connection was lost"},
        [CUT_SLOW] = {ERR_TIMEOUT, "it took nothing for http.writeTimeoutMs"},
        [CUT_STOP] = {ERR_STOPPING, "the server is stopping"},
        [CUT_GIVEN_UP] = {ERR_GONE, "it was given up"},
        [CUT_NOMEM] = {ERR_NOMEM, "out of memory"},
    };
    struct dial *d = c->ws.dial;

    d->e = why_err(&d->why, of[why].e, "%s", of[why].words);
    if (d->step != DIAL_TLS || why != CUT_GONE)
        return;
    /* Other connections shake hands too: only our own handshake's message
     * counts. */
    if (c->is_tls_broken)
        d->e = why_err(&d->why, ERR_UNREACHABLE, "%s", tls_why(c->net));
    else if (loop_mono_ms(c->net->loop) >= d->deadline_ms)
        d->e = why_err(&d->why, ERR_TIMEOUT,
                       "the TLS handshake with %s took longer than %lld ms",
                       d->host, (long long)d->timeout_ms);
}

static void tell_failed(struct conn *c, uint64_t id, const struct dial *d)
{
    const struct net_ws_end end = {
        .code = WS_NO_CLOSE,
        .reason = str_of(d->why.text),
        .is_ours = d->e == ERR_GONE || d->e == ERR_STOPPING,
        .e = d->e,
    };

    c->net->stats.dials_failed_total++;
    log_debug(c->net->log, "net.dial_failed",
              LOG_C("code", err_row(d->e)->code), LOG_S("what", end.reason));
    c->ws.handler->on_end(c->ws.ctx, id, &end);
}

static void dial_gone(struct conn *c, uint64_t id, enum conn_cut why)
{
    struct dial *d = c->ws.dial;

    if (!d || !id)
        return; /* net_ws_dial reports it */
    if (c->is_lost || !d->has_failed)
        dial_note_cut(c, why);
    d->n_holders++;
    dial_part(d);
    tell_failed(c, id, d);
    dial_let_go(d);
}

static const struct speech dial_speech = {
    .open = dial_send_request,
    .bytes = dial_bytes,
    .eof = dial_eof,
    .turn = dial_turn,
    .sent = dial_sent,
    .timeout = dial_timeout,
    .gone = dial_gone,
    .max_input = dial_max_input,
};

/* Start. */

static void dial_make_key(char key[WS_KEY_BYTES + 1])
{
    struct rand r = rand_system();
    unsigned char raw[KEY_RAW_BYTES];

    r.fill(r.ctx, raw, sizeof(raw));
    EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
}

static enum err dial_write_request(struct dial *d, const struct net_dial *what,
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
    dial_make_key(d->key);
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
    struct dial *d = mem_new(sizeof(*d) + n_protocol + n_ca);

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

static enum err dial_check(const struct net *n, const struct net_dial *what,
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
    enum err e = dial_check(n, what, &u, why);
    struct dial *d;
    struct conn *c;

    if (e)
        return e;
    assert(handler->on_open && u.host.n <= URL_HOST_MAX);
    d = dial_alloc(n, what, &u);
    e = dial_write_request(d, what, &u, why);
    c = e ? NULL : conn_new_dialled(n, &dial_speech, what->timeout_ms);
    if (!c) {
        dial_let_go(d);
        return e ? e : why_err(why, ERR_NOMEM, "out of memory");
    }
    d->conn = c;
    c->ws.handler = handler;
    c->ws.ctx = ctx;
    c->ws.dial = d;
    c->id = *id = net_next_id(n, c);
    n->stats.dialling++;
    n->stats.dials_total++;
    conn_kick(c); /* dial_turn starts */
    return OK;
}
