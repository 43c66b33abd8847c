/* TLS between the socket and conn.c: the same bytes, in both directions.
 *
 * OpenSSL reads and writes the socket through a BIO of ours. Its own would do
 * so by read() and write(), and the latter raises SIGPIPE. Records are written
 * one at a time, and what the kernel does not take of one stays in OpenSSL; to
 * conn.c its bytes are unsent until the whole record is out, so that the
 * limits on a slow reader hold as they do without TLS.
 *
 * Reading takes as much from the socket as fits a record, which saves half of
 * the calls, and means that OpenSSL may hold bytes of which the socket tells
 * nobody: has_left says so, and conn.c comes back for them.
 *
 * Until a client has sent its first byte it costs nothing but its struct conn.
 * From then on and until its handshake is over it is counted with all that it
 * could make OpenSSL hold; where that is too much for http.maxBufferedBytes,
 * it is cut.
 *
 * Turned down: TLS through a pair of memory BIOs, which would gather several
 * records into one send and copies every byte once more to do so. */
#include "net/internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "base/fault.h"

/* The socket as OpenSSL sees it. */

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

static int bio_read(BIO *b, char *p, int n)
{
    struct conn *c = BIO_get_data(b);
    ssize_t got = recv(c->fd, p, (size_t)n, MSG_DONTWAIT);

    if (FAULT("tls.recv")) {
        got = -1;
        errno = ECONNRESET;
    }
    BIO_clear_retry_flags(b);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    if (got > 0) {
        c->net->stats.bytes_in_total += got;
        if (!c->tls_first)
            c->tls_first = (uint8_t)p[0];
    }
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

/* Put TLS upon c. */
static bool begin(struct conn *c, SSL_CTX *ctx)
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
    c->tls = ssl;
    return true;
}

/* What OpenSSL holds for us now, after the handshake. */
static void count_held(struct conn *c)
{
    c->tls_held_bytes = (SSL_has_pending(c->tls) ? TLS_RECORD_BYTES : 0) +
                        (c->has_unwritten ? TLS_RECORD_BYTES : 0);
    conn_count(c);
}

static void count_shaking(struct conn *c)
{
    c->tls_held_bytes = TLS_SHAKE_BYTES;
    conn_count(c);
}

void tls_free(struct conn *c)
{
    SSL_free(c->tls);
    c->tls = NULL;
    c->tls_held_bytes = 0;
    c->has_left = c->must_write = c->has_unwritten = false;
}

void tls_fini(struct net *n)
{
    SSL_CTX_free(n->dial_ctx);
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

/* The first byte of a client has come. */
static bool begin_serving(struct conn *c)
{
    struct net *n = c->net;

    if (n->held_bytes > n->opts.max_buffered_bytes) {
        n->stats.overloaded_total++;
        why_err(&n->tls_why, ERR_OVERLOADED,
                "the buffers hold more than http.maxBufferedBytes");
        return false;
    }
    if (!begin(c, cert_ctx(n))) {
        why_err(&n->tls_why, ERR_NOMEM, "out of memory");
        return false;
    }
    SSL_set_accept_state(c->tls);
    count_shaking(c);
    return true;
}

/* Certificates of others, in words. %s is the host. */
static const struct {
    long code;
    const char *words;
} verdicts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "the certificate of %s has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "the certificate of %s is not valid yet"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
     "the certificate of %s is signed by itself alone and not one of those "
     "that are trusted"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
     "the certificate of %s is from an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
     "the certificate of %s is from an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     "the certificate of %s is from an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
     "the certificate of %s is from an authority that is not trusted"},
    {X509_V_ERR_HOSTNAME_MISMATCH,
     "the certificate that came is not made out to %s"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH,
     "the certificate that came is not made out to %s"},
};

static void say_verdict(struct why *why, SSL *ssl, long code)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    const char *host = X509_VERIFY_PARAM_get0_host(param, 0);
    char *ip = host ? NULL : X509_VERIFY_PARAM_get1_ip_asc(param);
    const char *whom = host ? host : ip ? ip : "the server";
    size_t i = 0;

    while (i < sizeof(verdicts) / sizeof(*verdicts) && verdicts[i].code != code)
        i++;
    if (i < sizeof(verdicts) / sizeof(*verdicts)) {
        const char *words = verdicts[i].words, *mark = strstr(words, "%s");

        why_err(why, ERR_UNREACHABLE, "%.*s%s%s", (int)(mark - words), words,
                whom, mark + 2);
    } else {
        why_err(why, ERR_UNREACHABLE, "the certificate of %s is refused: %s",
                whom, X509_verify_cert_error_string(code));
    }
    OPENSSL_free(ip);
}

static void say_failed(struct conn *c, int error)
{
    struct why *why = &c->net->tls_why;
    long verdict = SSL_get_verify_result(c->tls);
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    if (!SSL_is_server(c->tls) && verdict != X509_V_OK)
        say_verdict(why, c->tls, verdict);
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
    /* Who connects only to see whether it can is not worth a word. */
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

static enum tls_step shaken(struct conn *c)
{
    c->net->stats.tls_handshakes_total++;
    c->is_blocked = false;
    c->has_left = SSL_has_pending(c->tls);
    count_held(c);
    return TLS_DONE;
}

enum tls_step tls_shake(struct conn *c)
{
    int done, error;

    if (!c->tls && !begin_serving(c))
        return TLS_FAILED;
    ERR_clear_error();
    done = SSL_do_handshake(c->tls);
    error = SSL_get_error(c->tls, done);
    if (FAULT("tls.shake"))
        error = SSL_ERROR_SSL;
    if (error == SSL_ERROR_NONE)
        return shaken(c);
    c->is_blocked = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return TLS_MORE;
    say_failed(c, error);
    return shake_failed(c);
}

void tls_shake_timeout(struct conn *c)
{
    struct net *n = c->net;

    n->stats.timeouts_total++;
    n->stats.tls_failed_total += c->tls != NULL;
    why_err(&n->tls_why, ERR_TIMEOUT, "the TLS handshake took too long");
}

/* Afterwards. */

/* Without renegotiation, which is off, TLS never has to read before it can
 * write: only the other way round, to answer a change of keys. */
static ssize_t failed(struct conn *c, int error)
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
static ssize_t read_record(struct conn *c, char *p, size_t n)
{
    size_t got = 0;
    int ok, error;

    if (c->is_tls_broken) {
        errno = ECONNRESET;
        return -1;
    }
    ERR_clear_error();
    ok = SSL_read_ex(c->tls, p, n, &got);
    if (ok)
        return (ssize_t)got;
    error = SSL_get_error(c->tls, ok);
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    return failed(c, error);
}

ssize_t tls_recv(struct conn *c, char *p, size_t n)
{
    ssize_t got = read_record(c, p, n), more = got;
    size_t sum = got > 0 ? (size_t)got : 0;

    while (more > 0 && sum < n && SSL_has_pending(c->tls)) {
        more = read_record(c, p + sum, n - sum);
        sum += more > 0 ? (size_t)more : 0;
    }
    /* Full, or at an end that is to be told by itself; when TLS waits for the
     * rest of a record, the socket tells. */
    c->has_left = got > 0 && (more == 0 || c->is_tls_broken ||
                              (more > 0 && SSL_has_pending(c->tls)));
    ERR_clear_error();
    count_held(c);
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
    count_held(c);
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
    return r == SSL_ERROR_WANT_WRITE ? TLS_MORE : TLS_FAILED;
}

/* The client's side. */

static enum err no_memory(struct why *why)
{
    ERR_clear_error();
    return why_err(why, ERR_NOMEM, "out of memory");
}

static SSL_CTX *new_dial_ctx(void)
{
    SSL_CTX *ctx =
        FAULT("tls.context") ? NULL : SSL_CTX_new(TLS_client_method());

    if (!ctx)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
                              SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return ctx;
}

/* The system's authorities are looked up as they are needed; a file of one's
 * own is read for each who dials, so that a new one counts at once. */
static enum err dial_ctx(struct net *n, const char *ca_file, SSL_CTX **out,
                         struct why *why)
{
    SSL_CTX *ctx = ca_file ? NULL : n->dial_ctx;

    if (!ctx)
        ctx = new_dial_ctx();
    else
        SSL_CTX_up_ref(ctx);
    *out = ctx;
    if (!ctx)
        return no_memory(why);
    if (ca_file && SSL_CTX_load_verify_file(ctx, ca_file) != 1) {
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return why_err(why, ERR_IO,
                       "cannot read certificates of authorities from %s: it "
                       "must be a file in PEM",
                       ca_file);
    }
    if (ca_file || n->dial_ctx)
        return OK;
    SSL_CTX_set_default_verify_paths(ctx);
    SSL_CTX_up_ref(ctx);
    n->dial_ctx = ctx;
    return OK;
}

/* Only who is called host may answer. */
static bool expect(struct conn *c, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(c->tls);
    char binary[sizeof(struct in6_addr)];

    X509_VERIFY_PARAM_set_time(param, loop_wall_ms(c->net->loop) / 1000);
    if (inet_pton(AF_INET, host, binary) == 1 ||
        inet_pton(AF_INET6, host, binary) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    SSL_set_hostflags(c->tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(c->tls, host) == 1 &&
           SSL_set_tlsext_host_name(c->tls, host) == 1;
}

enum err tls_connect(struct conn *c, const char *host, const char *ca_file,
                     int64_t timeout_ms, struct why *why)
{
    SSL_CTX *ctx;
    enum err e = dial_ctx(c->net, ca_file, &ctx, why);
    bool is_begun;

    assert(!c->tls && *host);
    if (e)
        return e;
    is_begun = begin(c, ctx);
    SSL_CTX_free(ctx);
    if (!is_begun || !expect(c, host)) {
        tls_free(c);
        return no_memory(why);
    }
    SSL_set_connect_state(c->tls);
    conn_move(c, CONN_TLS, timeout_ms);
    if (c->state == CONN_CLOSED)
        return OK; /* gone has said so */
    count_shaking(c);
    conn_kick(c);
    return OK;
}
