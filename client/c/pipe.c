/* Bytes to and from a socket that never blocks. With TLS, OpenSSL works on
 * memory and the socket is ours: so a broken connection is an error of send()
 * and never a signal, and both kinds are read and written alike. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { PIECE = 16 * 1024, CIPHER_MAX = SBC_OUT_MAX + SBC_OUT_MAX / 8 };

void sbc_pipe_init(struct sbc_pipe *p)
{
    *p = (struct sbc_pipe){.fd = -1};
    buf_init(&p->in, SBC_MESSAGE_MAX + (size_t)4 * PIECE);
    buf_init(&p->out, SBC_OUT_MAX);
    buf_init(&p->cipher, CIPHER_MAX);
}

void sbc_pipe_fini(struct sbc_pipe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    SSL_free(p->ssl);
    buf_fini(&p->in);
    buf_fini(&p->out);
    buf_fini(&p->cipher);
    sbc_pipe_init(p);
}

bool sbc_pipe_secure(struct sbc_pipe *p, SSL_CTX *tls, const char *host,
                     bool is_address)
{
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    bool ok;

    p->ssl = FAULT("sbc.tls") ? NULL : SSL_new(tls);
    if (!in || !out || !p->ssl) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    SSL_set_bio(p->ssl, in, out); /* takes them */
    SSL_set_connect_state(p->ssl);
    if (is_address)
        ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(p->ssl), host) == 1;
    else
        ok = SSL_set1_host(p->ssl, host) == 1 &&
             SSL_set_tlsext_host_name(p->ssl, host) == 1;
    return ok;
}

/* Why TLS gave up, in OpenSSL's words or those about the certificate. */
static const char *tls_why(SSL *ssl)
{
    long verdict = SSL_get_verify_result(ssl);
    unsigned long e = ERR_peek_last_error();
    const char *words = e ? ERR_reason_error_string(e) : NULL;

    if (verdict != X509_V_OK)
        words = X509_verify_cert_error_string(verdict);
    ERR_clear_error();
    return words ? words : "the secure connection broke";
}

/* Move what OpenSSL has to send to where the socket takes it from. */
static bool drain(struct sbc_pipe *p)
{
    BIO *from = SSL_get_wbio(p->ssl);
    size_t n = BIO_ctrl_pending(from);
    char *to;
    int got;

    if (n == 0)
        return true;
    to = buf_reserve(&p->cipher, n);
    got = to ? BIO_read(from, to, (int)n) : -1;
    if (got <= 0)
        return false;
    buf_commit(&p->cipher, (size_t)got);
    return true;
}

static bool tls_retries(struct sbc_pipe *p, int r)
{
    int e = SSL_get_error(p->ssl, r);

    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
}

/* Shake hands, then decrypt into `in`. */
static bool tls_take(struct sbc_pipe *p, const char **why)
{
    int r = 1;

    ERR_clear_error();
    if (!p->is_ready) {
        r = SSL_do_handshake(p->ssl);
        p->is_ready = r == 1;
    }
    while (p->is_ready && r > 0) {
        char *to = buf_reserve(&p->in, PIECE);
        r = to ? SSL_read(p->ssl, to, PIECE) : -1;
        if (!to) {
            *why = "no memory";
            return false;
        }
        if (r > 0)
            buf_commit(&p->in, (size_t)r);
    }
    if (!tls_retries(p, r)) {
        *why = r == 0 ? "the hub has hung up" : tls_why(p->ssl);
        (void)drain(p); /* an alert, perhaps */
        return false;
    }
    return drain(p);
}

/* One recv. False: over; *n zero: nothing there. */
static bool take(struct sbc_pipe *p, char *to, size_t room, size_t *n,
                 const char **why)
{
    ssize_t got =
        FAULT("sbc.recv") ? (errno = ECONNRESET, -1) : recv(p->fd, to, room, 0);

    *n = got > 0 ? (size_t)got : 0;
    if (got > 0)
        return true;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    *why = got == 0 ? "the hub has hung up" : strerror(errno);
    return false;
}

bool sbc_pipe_read(struct sbc_pipe *p, size_t most, const char **why)
{
    for (size_t all = 0, n; all < most; all += n) {
        char piece[PIECE], *to = piece;

        if (!p->ssl && !(to = buf_reserve(&p->in, PIECE))) {
            *why = "no memory";
            return false;
        }
        if (!take(p, to, PIECE, &n, why))
            return false;
        if (n == 0)
            return true;
        if (!p->ssl) {
            buf_commit(&p->in, n);
        } else if (BIO_write(SSL_get_rbio(p->ssl), to, (int)n) != (int)n) {
            *why = "no memory";
            return false;
        } else if (!tls_take(p, why)) {
            return false;
        }
    }
    return true;
}

/* Encrypt what is in `out`. */
static bool tls_give(struct sbc_pipe *p, const char **why)
{
    ERR_clear_error();
    if (!p->is_ready) {
        int r = SSL_do_handshake(p->ssl);
        p->is_ready = r == 1;
        if (r != 1 && !tls_retries(p, r)) {
            *why = tls_why(p->ssl);
            return false;
        }
    }
    while (p->is_ready && p->out.n > 0) {
        size_t n = p->out.n < PIECE ? p->out.n : PIECE;
        int r = SSL_write(p->ssl, p->out.p, (int)n);
        if (r <= 0) {
            *why = tls_why(p->ssl);
            return false;
        }
        buf_drop(&p->out, (size_t)r);
    }
    *why = "no memory";
    return drain(p);
}

bool sbc_pipe_write(struct sbc_pipe *p, const char **why)
{
    struct buf *from = p->ssl ? &p->cipher : &p->out;
    size_t at = 0;

    if (p->ssl && !tls_give(p, why))
        return false;
    while (at < from->n) {
        ssize_t n = FAULT("sbc.send")
                        ? (errno = EPIPE, -1)
                        : send(p->fd, from->p + at, from->n - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            *why = strerror(errno);
            return false;
        }
        if (n < 0 && errno == EAGAIN)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    buf_drop(from, at);
    return true;
}

bool sbc_pipe_wants_write(const struct sbc_pipe *p)
{
    return p->ssl ? p->cipher.n > 0 || (p->is_ready && p->out.n > 0)
                  : p->out.n > 0;
}
