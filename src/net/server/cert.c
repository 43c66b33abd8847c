/* The certificates that TLS serves.
 *
 * Each becomes an OpenSSL context. All are read before one is used, so that a
 * bad one changes nothing. A connection keeps the context it began with over a
 * reload. The certificate for a name is looked up among the current ones, so a
 * handshake during a reload may get a new one.
 *
 * Rejected: OpenSSL's own file readers. They wait on a pipe, ask a terminal
 * for a passphrase, and have one error for everything. */
#include "net/server/tls_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    PEM_MAX_BYTES = 1024 * 1024,
    CHAIN_MAX = 16,
    TICKET_KEY_BYTES = 80,             /* as OpenSSL requires */
    TICKET_KEYS_MS = 12 * 3600 * 1000, /* then new ones are made */
    DAY_S = 24 * 3600,
    SOON_DAYS = 14,
};

struct tls_cert {
    SSL_CTX *ctx;
    int64_t ends_s;
    char *file; /* owned; for messages */
};

struct net_certs {
    size_t n;
    struct tls_cert list[];
};

/* Reading files. */

static enum err cert_read_all(int fd, struct buf *out)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return ERR_IO;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return ERR_IO;
    }
    for (;;) {
        char *to = buf_reserve(out, 4096);
        ssize_t n = to ? read(fd, to, 4096) : -1;

        if (!to)
            errno = EFBIG;
        if (n <= 0)
            return n == 0 ? OK : ERR_IO;
        buf_commit(out, (size_t)n);
    }
}

enum err cert_read_file(const char *path, struct buf *out, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum err e = fd < 0 ? ERR_IO : cert_read_all(fd, out);

    if (FAULT("cert.read")) {
        e = ERR_IO;
        errno = EIO;
    }
    if (e)
        e = why_err(why, ERR_IO, "cannot read %s: %s%s", path, strerror(errno),
                    errno == EACCES ? "; let the server's user read it" : "");
    if (fd >= 0)
        close(fd);
    return e;
}

/* Certificates. */

/* The first certificate is the server's, the others are its chain. */
static enum err cert_use_chain(SSL_CTX *ctx, BIO *b, const char *path,
                               struct why *why)
{
    X509 *x = PEM_read_bio_X509_AUX(b, NULL, NULL, NULL);
    const char *reason;
    int ok;

    if (!x)
        return why_err(why, ERR_BAD_CONFIG,
                       "%s has no certificate: it must be in PEM, beginning "
                       "with -----BEGIN CERTIFICATE-----",
                       path);
    ERR_clear_error();
    ok = SSL_CTX_use_certificate(ctx, x);
    X509_free(x);
    if (ok != 1) {
        reason = ERR_reason_error_string(ERR_peek_error());
        return why_err(why, ERR_BAD_CONFIG,
                       "the certificate in %s is of no use: %s. Make one with "
                       "a key of RSA, 2048 bits, or on the curve P-256",
                       path, reason ? reason : "unknown reason");
    }
    for (int i = 0; (x = PEM_read_bio_X509(b, NULL, NULL, NULL)); i++) {
        if (i < CHAIN_MAX && SSL_CTX_add0_chain_cert(ctx, x) == 1)
            continue;
        X509_free(x);
        return why_err(why, ERR_BAD_CONFIG,
                       "%s has more than %d certificates, or one that is of "
                       "no use: leave those that lead from the server's to "
                       "its authority",
                       path, CHAIN_MAX);
    }
    return OK;
}

/* Called for a key with a passphrase, which cannot be asked for here. */
static int no_passphrase(char *to, int size, int is_writing, void *was_asked)
{
    (void)to;
    (void)size;
    (void)is_writing;
    *(bool *)was_asked = true;
    return -1;
}

static enum err cert_use_key(SSL_CTX *ctx, BIO *b, const struct net_cert *files,
                             struct why *why)
{
    bool was_asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, &was_asked);
    enum err e = OK;

    if (was_asked)
        e = why_err(why, ERR_BAD_CONFIG,
                    "the key in %s has a passphrase, which cannot be typed "
                    "here: write it without one, openssl pkey -in %s -out "
                    "NEWFILE, and let only the server's user read that",
                    files->key_file, files->key_file);
    else if (!key)
        e = why_err(why, ERR_BAD_CONFIG,
                    "%s has no private key: it must be in PEM, beginning with "
                    "-----BEGIN PRIVATE KEY-----",
                    files->key_file);
    else if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1)
        e = why_err(why, ERR_BAD_CONFIG,
                    "the key in %s is not that of the certificate in %s: name "
                    "the two that were made together",
                    files->key_file, files->cert_file);
    else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
        e = why_err(why, ERR_BAD_CONFIG, "the key in %s cannot be used",
                    files->key_file);
    EVP_PKEY_free(key);
    return e;
}

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm tm;

    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static enum err check_dates(struct tls_cert *c, int64_t now_ms,
                            const char *path, struct why *why)
{
    X509 *x = SSL_CTX_get0_certificate(c->ctx);
    int64_t begins_s = seconds_of(X509_get0_notBefore(x));
    time_t then_s;
    char date[32] = "";
    struct tm tm;

    c->ends_s = seconds_of(X509_get0_notAfter(x));
    if (now_ms / 1000 >= begins_s && now_ms / 1000 < c->ends_s)
        return OK;
    then_s = (time_t)(now_ms / 1000 < begins_s ? begins_s : c->ends_s);
    if (gmtime_r(&then_s, &tm))
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
    if (now_ms / 1000 < begins_s)
        return why_err(why, ERR_BAD_CONFIG,
                       "the certificate in %s is not valid before %s: wait, or "
                       "set the clock",
                       path, date);
    return why_err(why, ERR_BAD_CONFIG,
                   "the certificate in %s has expired, %s: have it renewed",
                   path, date);
}

/* Contexts. */

/* The curves and the suites of TLS 1.3 are OpenSSL's defaults. */
static const char suites[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

static int choose_cert(SSL *ssl, int *alert, void *net)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    struct net *n = net;

    (void)alert;
    for (size_t i = 0; name && i < n->tls_files->n; i++) {
        SSL_CTX *ctx = n->tls_files->list[i].ctx;
        X509 *x = SSL_CTX_get0_certificate(ctx);

        if (X509_check_host(x, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                            NULL) != 1)
            continue;
        SSL_set_SSL_CTX(ssl, ctx);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static int choose_protocol(SSL *ssl, const unsigned char **out,
                           unsigned char *n_out, const unsigned char *offered,
                           unsigned n_offered, void *ctx)
{
    static const unsigned char ours[] = "\x08http/1.1\x08http/1.0";
    unsigned char *chosen;

    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto(&chosen, n_out, ours, sizeof(ours) - 1, offered,
                              n_offered) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_ctx(void)
{
    SSL_CTX *ctx =
        FAULT("cert.context") ? NULL : SSL_CTX_new(TLS_server_method());

    if (!ctx)
        return NULL;
    tls_set_up(ctx);
    SSL_CTX_set_cipher_list(ctx, suites);
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE |
                                 SSL_OP_PRIORITIZE_CHACHA);
    /* Clients keep sessions, in tickets; one is enough. */
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    return ctx;
}

static enum err cert_read(struct tls_cert *c, const struct net_cert *files,
                          struct why *why)
{
    struct buf chain, key;
    BIO *chain_bio = NULL, *key_bio = NULL;
    enum err e;

    *c = (struct tls_cert){.ctx = new_ctx()};
    buf_init(&chain, PEM_MAX_BYTES);
    buf_init(&key, PEM_MAX_BYTES);
    e = c->ctx ? cert_read_file(files->cert_file, &chain, why)
               : why_err(why, ERR_NOMEM, "out of memory");
    if (!e)
        e = cert_read_file(files->key_file, &key, why);
    if (!e) {
        chain_bio = BIO_new_mem_buf(chain.p, (int)chain.n);
        key_bio = BIO_new_mem_buf(key.p, (int)key.n);
        if (!chain_bio || !key_bio)
            e = why_err(why, ERR_NOMEM, "out of memory");
    }
    if (!e)
        e = cert_use_chain(c->ctx, chain_bio, files->cert_file, why);
    if (!e)
        e = cert_use_key(c->ctx, key_bio, files, why);
    BIO_free(chain_bio);
    BIO_free(key_bio);
    if (key.n)
        explicit_bzero(key.p, key.n);
    buf_fini(&chain);
    buf_fini(&key);
    ERR_clear_error();
    return e;
}

enum err net_check_cert(const struct net_cert *cert, int64_t now_ms,
                        int64_t *ends_s, struct why *why)
{
    struct tls_cert c;
    enum err e = cert_read(&c, cert, why);

    if (!e)
        e = check_dates(&c, now_ms, cert->cert_file, why);
    *ends_s = c.ends_s;
    SSL_CTX_free(c.ctx);
    return e;
}

/* All of them. */

void net_certs_free(struct net_certs *tls_files)
{
    if (!tls_files)
        return;
    for (size_t i = 0; i < tls_files->n; i++) {
        SSL_CTX_free(tls_files->list[i].ctx);
        free(tls_files->list[i].file);
    }
    free(tls_files);
}

void cert_free_all(struct net *n)
{
    net_certs_free(n->tls_files);
    n->tls_files = NULL;
}

static void warn_if_soon(struct net *n, const struct tls_cert *c)
{
    int64_t left_s = c->ends_s - loop_wall_ms(n->loop) / 1000;

    if (left_s > 0 && left_s < SOON_DAYS * DAY_S)
        log_warn(n->log, "net.certificate_ends_soon", LOG_C("file", c->file),
                 LOG_I("days", left_s / DAY_S),
                 LOG_C("do", "have it renewed; the new one is taken up by "
                             "itself"));
}

/* A certificate that is not valid now replaces none. But if there is none yet,
 * the server starts with it, since not starting would be worse. */
static enum err cert_check_dates(struct net *n, struct tls_cert *c,
                                 const struct net_cert *files, struct why *why)
{
    enum err e = check_dates(c, loop_wall_ms(n->loop), files->cert_file, why);

    if (!e || n->tls_files)
        return e;
    log_error(n->log, "tls.certificate_not_valid", LOG_C("because", why->text),
              LOG_C("so", "clients will refuse it"));
    return OK;
}

static enum err cert_add(struct net *n, struct net_certs *to,
                         const struct net_cert *files, struct why *why)
{
    struct tls_cert *c = &to->list[to->n++];
    enum err e = cert_read(c, files, why);

    if (!e)
        e = cert_check_dates(n, c, files, why);
    if (e)
        return e;
    c->file = mem_copy(files->cert_file, strlen(files->cert_file));
    SSL_CTX_set_tlsext_servername_callback(c->ctx, choose_cert);
    SSL_CTX_set_tlsext_servername_arg(c->ctx, n);
    return OK;
}

/* The certificate added last is unusable: replace it by the one in use from
 * the same file, so that it does not block the others. False: there is none. */
static bool cert_keep(const struct net *n, struct net_certs *to,
                      const struct net_cert *files)
{
    struct tls_cert *c = &to->list[to->n - 1];
    size_t i = 0;

    while (n->tls_files && i < n->tls_files->n &&
           strcmp(n->tls_files->list[i].file, files->cert_file) != 0)
        i++;
    if (!n->tls_files || i == n->tls_files->n)
        return false;
    SSL_CTX_free(c->ctx);
    free(c->file);
    *c = n->tls_files->list[i];
    SSL_CTX_up_ref(c->ctx);
    c->file = mem_copy(files->cert_file, strlen(files->cert_file));
    return true;
}

enum err net_certs_new(struct net *n, const struct net_cert *tls_files,
                       size_t n_certs, struct net_certs **out, struct why *why)
{
    struct net_certs *fresh =
        mem_new(sizeof(*fresh) + n_certs * sizeof(fresh->list[0]));
    enum err first = OK;

    *out = NULL;
    for (size_t i = 0; i < n_certs; i++) {
        struct why words;
        enum err e = cert_add(n, fresh, &tls_files[i], &words);

        if (e && !first) {
            first = e;
            *why = words;
        }
        if (e && !cert_keep(n, fresh, &tls_files[i])) {
            *why = words;
            net_certs_free(fresh);
            return e;
        }
    }
    *out = fresh;
    return first;
}

void net_certs_use(struct net *n, struct net_certs *tls_files)
{
    cert_free_all(n);
    n->tls_files = tls_files;
    n->ticket_keys_at_ms = loop_mono_ms(n->loop);
    for (size_t i = 0; i < tls_files->n; i++)
        warn_if_soon(n, &tls_files->list[i]);
}

enum err net_set_certs(struct net *n, const struct net_cert *tls_files,
                       size_t n_certs, struct why *why)
{
    struct net_certs *fresh;
    enum err e = net_certs_new(n, tls_files, n_certs, &fresh, why);

    if (fresh)
        net_certs_use(n, fresh);
    return e;
}

int64_t cert_ends_s(const struct net *n)
{
    int64_t first = 0;

    for (size_t i = 0; n->tls_files && i < n->tls_files->n; i++)
        if (!first || n->tls_files->list[i].ends_s < first)
            first = n->tls_files->list[i].ends_s;
    return first;
}

/* An attacker with a ticket key can decrypt TLS 1.2 connections that used it,
 * so keys do not live long. An older ticket only means a full handshake. */
static void renew_ticket_keys(struct net *n)
{
    unsigned char keys[TICKET_KEY_BYTES];

    if (RAND_bytes(keys, sizeof(keys)) == 1)
        SSL_CTX_set_tlsext_ticket_keys(n->tls_files->list[0].ctx, keys,
                                       sizeof(keys));
    OPENSSL_cleanse(keys, sizeof(keys));
    n->ticket_keys_at_ms = loop_mono_ms(n->loop);
}

SSL_CTX *cert_ctx(struct net *n)
{
    if (loop_mono_ms(n->loop) - n->ticket_keys_at_ms >= TICKET_KEYS_MS)
        renew_ticket_keys(n);
    return n->tls_files->list[0].ctx;
}
