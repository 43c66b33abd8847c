/* TLS between the socket and conn.c: the same bytes, in both directions.
 *
 * OpenSSL reads and writes the socket through a BIO of ours. Its own BIO would
 * use read() and write(), and the latter raises SIGPIPE. Records are written
 * one at a time, and OpenSSL keeps the part that the kernel does not take. For
 * conn.c those bytes are unsent until the whole record is sent, so that the
 * limits on a slow reader hold as without TLS.
 *
 * One read takes as many bytes from the socket as fit a record, which saves
 * half of the calls. So OpenSSL may hold bytes that the socket no longer
 * reports: has_left says so, and conn.c comes back for them.
 *
 * One peer must not keep the loop from others. A connection may read a limited
 * number of bytes from its socket in a turn, with or without payload: OpenSSL
 * goes on inside one call as long as the socket has bytes. Beyond the limit
 * the socket seems empty, and the next turn gets the rest. Key changes cost
 * much and mean nothing: a peer that sends more than a few records a minute
 * without payload is cut.
 *
 * Until a client has sent its first byte it costs only its struct conn. From
 * then until the end of its handshake it is one of at most TLS_SHAKES_MAX, and
 * OpenSSL can hold little for it, because announced lengths are limited. One
 * more client, and the oldest handshake is cut: a handshake takes
 * milliseconds, so the oldest of a thousand is stuck. That makes room for
 * newcomers and affects no honest client.
 *
 * Rejected: TLS through a pair of memory BIOs, which would gather several
 * records into one send and copies every byte once more. */
#include "net/server/tls_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "base/fault.h"

/* The socket as a BIO. */

static int bio_write(BIO *b, const char *p, int n)
{
    struct conn *c = BIO_get_data(b);
    ssize_t sent = -1;

    errno = EPIPE;
    if (FAULT("tls.full"))
        errno = EAGAIN;
    else if (!FAULT("tls.send"))
        sent = send(c->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    BIO_clear_retry_flags(b);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    if (sent > 0)
        c->net->stats.bytes_out_total += sent;
    return (int)sent;
}

/* The bytes that may still be read in this turn. */
static size_t turn_left(struct conn *c)
{
    uint64_t turn = loop_turn_number(c->net->loop);

    if (c->taken.turn != turn) {
        c->taken.turn = turn;
        c->taken.turn_bytes = 0;
    }
    return READ_BYTES - c->taken.turn_bytes;
}

/* Whether a handshake keeps its limits. In TLS 1.2 nothing long can be
 * announced once the version is known, and later messages are encrypted. */
static bool tls_shakes_well(struct conn *c, const char *p, size_t n)
{
    c->taken.shake_bytes += (uint32_t)n;
    if (!SSL_is_server(c->tls))
        return c->taken.shake_bytes <= TLS_DIAL_RAW_BYTES;
    return c->taken.shake_bytes <= TLS_SHAKE_RAW_BYTES &&
           (SSL_version(c->tls) == TLS1_2_VERSION ||
            tls_hello_is_short(&c->taken.hello, p, n));
}

static void note_taken(struct conn *c, const char *p, size_t n)
{
    c->net->stats.bytes_in_total += (int64_t)n;
    c->taken.turn_bytes += (uint32_t)n;
    if (!c->tls_first)
        c->tls_first = (uint8_t)p[0];
    if (c->state == CONN_TLS && !tls_shakes_well(c, p, n))
        c->is_tls_broken = true;
}

static int bio_read(BIO *b, char *p, int n)
{
    struct conn *c = BIO_get_data(b);
    size_t most = turn_left(c);
    ssize_t got = -1;

    BIO_clear_retry_flags(b);
    errno = c->is_tls_broken || FAULT("tls.recv") ? ECONNRESET : EAGAIN;
    if (errno == EAGAIN && most > 0)
        got = recv(c->fd, p, (size_t)n < most ? (size_t)n : most, MSG_DONTWAIT);
    if (got > 0)
        note_taken(c, p, (size_t)got);
    if (c->is_tls_broken)
        return -1;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)got;
}

static long bio_ctrl(BIO *b, int what, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(struct net *n)
{
    BIO_METHOD *m = n->tls_bio;

    if (m || FAULT("tls.bio"))
        return m;
    m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "conn");
    if (!m)
        return NULL;
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_ctrl);
    n->tls_bio = m;
    return m;
}

/* Called for every record and message, in both directions: input counts as
 * bare until tls_read_record finds payload in it. Nothing can be rejected
 * here; the next read will be. */
static void on_tls_message(int is_ours, int version, int type, const void *p,
                           size_t n, SSL *ssl, void *conn)
{
    struct conn *c = conn;
    struct tls_taken *taken = &c->taken;
    int64_t now_ms = loop_mono_ms(c->net->loop);

    (void)version;
    (void)p;
    (void)n;
    (void)ssl;
    if (is_ours || type != SSL3_RT_HEADER || c->state == CONN_TLS)
        return;
    if (now_ms - taken->bare_since_ms >= TLS_BARE_MS) {
        taken->bare_since_ms = now_ms;
        taken->n_bare = 0;
    }
    if (taken->n_bare > TLS_BARE_RECORDS && !c->is_tls_broken) {
        c->is_tls_broken = true;
        log_debug(c->net->log, "net.tls_cut", LOG_C("peer", c->peer),
                  LOG_C("because", "many records that carry nothing"));
    }
    taken->n_bare++;
}

void tls_set_up(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
                              SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

bool tls_begin(struct conn *c, SSL_CTX *ctx)
{
    BIO_METHOD *m = bio_method(c->net);
    SSL *ssl = !m || FAULT("tls.new") ? NULL : SSL_new(ctx);
    BIO *b = !ssl || FAULT("tls.new") ? NULL : BIO_new(m);

    if (!b) {
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    BIO_set_data(b, c);
    BIO_set_init(b, 1);
    SSL_set_bio(ssl, b, b);
    SSL_set_msg_callback(ssl, on_tls_message);
    SSL_set_msg_callback_arg(ssl, c);
    c->tls = ssl;
    return true;
}

/* OpenSSL's memory for c after the handshake. */
static void tls_count_held(struct conn *c)
{
    c->tls_held_bytes = (SSL_has_pending(c->tls) ? TLS_RECORD_BYTES : 0) +
                        (c->has_unwritten ? TLS_RECORD_BYTES : 0);
    conn_count(c);
}

static void leave_shakes(struct conn *c)
{
    if (!list_has(&c->shake))
        return;
    list_remove(&c->shake);
    c->net->n_shakes--;
}

void tls_free(struct conn *c)
{
    leave_shakes(c);
    SSL_free(c->tls);
    c->tls = NULL;
    c->tls_held_bytes = 0;
    c->has_left = c->must_write = c->has_unwritten = false;
}

void tls_fini(struct net *n)
{
    tls_forget_authorities(n);
    BIO_meth_free(n->tls_bio);
}

/* The handshake. */

const char *tls_why(const struct net *n)
{
    return n->tls_why.text;
}

void tls_accept(struct conn *c)
{
    conn_move(c, CONN_TLS, c->net->opts.header_timeout_ms);
}

static void cut_oldest(struct net *n)
{
    struct conn *c = LIST_OF(list_first(&n->shakes), struct conn, shake);

    n->stats.tls_failed_total++;
    n->stats.tls_cut_total++;
    log_debug(n->log, "net.tls_cut", LOG_C("peer", c->peer),
              LOG_C("because", "it is the oldest of too many handshakes"));
    conn_cut(c);
}

/* The first byte of a client has come. */
static bool tls_begin_serving(struct conn *c)
{
    struct net *n = c->net;

    if (!tls_begin(c, cert_ctx(n))) {
        why_err(&n->tls_why, ERR_NOMEM, "out of memory");
        return false;
    }
    SSL_set_accept_state(c->tls);
    list_append(&n->shakes, &c->shake);
    if (++n->n_shakes > n->max_shakes)
        cut_oldest(n);
    return true;
}

static void tls_log_failed(struct conn *c, int error)
{
    struct why *why = &c->net->tls_why;
    long verdict = SSL_get_verify_result(c->tls);
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    if (!SSL_is_server(c->tls) && verdict != X509_V_OK)
        tls_say_verdict(why, c->tls, verdict);
    else if (c->is_tls_broken)
        why_err(why, ERR_UNREACHABLE,
                "the other side says more than a TLS handshake takes");
    else if (error == SSL_ERROR_SYSCALL || !reason)
        why_err(why, ERR_UNREACHABLE,
                "the other side hung up during the TLS handshake");
    else
        why_err(why, ERR_UNREACHABLE, "the TLS handshake failed: %s", reason);
}

static enum tls_step shake_failed(struct conn *c)
{
    struct net *n = c->net;

    c->is_tls_broken = true;
    ERR_clear_error();
    /* A connection test without any data is not logged. */
    if (c->tls_first || !SSL_is_server(c->tls)) {
        n->stats.tls_failed_total++;
        log_debug(n->log, "net.tls_failed", LOG_C("peer", c->peer),
                  LOG_C("because", n->tls_why.text));
    }
    if (!SSL_is_server(c->tls) || c->tls_first < 'A' || c->tls_first > 'Z')
        return TLS_FAILED;
    tls_free(c);
    conn_count(c);
    c->is_plain = true;
    return TLS_DONE;
}

enum tls_step tls_shake(struct conn *c)
{
    int done, error;

    if (!c->tls && !tls_begin_serving(c))
        return TLS_FAILED;
    ERR_clear_error();
    done = SSL_do_handshake(c->tls);
    error = SSL_get_error(c->tls, done);
    if (FAULT("tls.shake"))
        error = SSL_ERROR_SSL;
    if (error == SSL_ERROR_NONE) {
        c->net->stats.tls_handshakes_total++;
        leave_shakes(c);
        c->has_left = SSL_has_pending(c->tls);
        tls_count_held(c);
        return TLS_DONE;
    }
    if (error == SSL_ERROR_WANT_READ)
        return TLS_WANT_READ;
    if (error == SSL_ERROR_WANT_WRITE)
        return TLS_WANT_WRITE;
    tls_log_failed(c, error);
    return shake_failed(c);
}

void tls_shake_timeout(struct conn *c)
{
    struct net *n = c->net;

    n->stats.timeouts_total++;
    n->stats.tls_failed_total += c->tls != NULL;
    why_err(&n->tls_why, ERR_TIMEOUT, "the TLS handshake took too long");
}

/* After the handshake. */

/* Without renegotiation, which is off, TLS never has to read before it can
 * write, only to write before it can read, to answer a key change. */
static ssize_t tls_fail(struct conn *c, int error)
{
    c->must_write = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    c->is_tls_broken = true;
    errno = ECONNRESET;
    return -1;
}

/* Bytes, zero at the end, -1 with errno. */
static ssize_t tls_read_record(struct conn *c, char *p, size_t n)
{
    size_t got = 0;
    int ok, error;

    if (c->is_tls_broken) {
        errno = ECONNRESET;
        return -1;
    }
    ERR_clear_error();
    ok = SSL_read_ex(c->tls, p, n, &got);
    if (ok && !c->is_tls_broken) {
        c->taken.n_bare -= c->taken.n_bare > 0;
        return (ssize_t)got;
    }
    error = ok ? SSL_ERROR_SSL : SSL_get_error(c->tls, ok);
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    return tls_fail(c, error);
}

ssize_t tls_recv(struct conn *c, char *p, size_t n)
{
    ssize_t got = tls_read_record(c, p, n), more = got;
    size_t sum = got > 0 ? (size_t)got : 0;

    for (int i = 1; more > 0 && sum < n && i < TLS_RECORDS_PER_TURN &&
                    SSL_has_pending(c->tls);
         i++) {
        more = tls_read_record(c, p + sum, n - sum);
        sum += more > 0 ? (size_t)more : 0;
    }
    /* The buffer is full, the turn's limit is reached, or an error follows. If
     * TLS waits for the rest of a record, the socket reports it. */
    c->has_left = got > 0 && (more == 0 || c->is_tls_broken ||
                              (more > 0 && SSL_has_pending(c->tls)));
    ERR_clear_error();
    tls_count_held(c);
    return sum ? (ssize_t)sum : got;
}

ssize_t tls_send(struct conn *c, const char *p, size_t n)
{
    size_t sum = 0, sent = 0;
    int ok = 1;

    if (c->is_tls_broken) {
        errno = EPIPE;
        return -1;
    }
    while (ok && sum < n) {
        ERR_clear_error();
        ok = SSL_write_ex(c->tls, p + sum, n - sum, &sent);
        sum += ok ? sent : 0;
    }
    c->has_unwritten = !ok && SSL_get_error(c->tls, ok) == SSL_ERROR_WANT_WRITE;
    c->is_tls_broken = !ok && !c->has_unwritten;
    errno = c->is_tls_broken ? EPIPE : EAGAIN;
    ERR_clear_error();
    tls_count_held(c);
    return ok || sum ? (ssize_t)sum : -1;
}

enum tls_step tls_end(struct conn *c)
{
    int r;

    if (c->is_tls_broken || FAULT("tls.end"))
        return TLS_FAILED;
    ERR_clear_error();
    r = SSL_shutdown(c->tls);
    if (r >= 0)
        return TLS_DONE;
    r = SSL_get_error(c->tls, r);
    ERR_clear_error();
    return r == SSL_ERROR_WANT_WRITE ? TLS_WANT_WRITE : TLS_FAILED;
}
