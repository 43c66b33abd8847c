/* Trust as a client, and the messages when it fails.
 *
 * Reading a system's file of authorities takes long, so results are kept: a
 * context for each of a few files, as long as the file is unchanged. The
 * system's own are read once, with the first dial that needs them. */
#include "net/server/tls_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/url.h"

enum { CAS_MAX_BYTES = 4 * 1024 * 1024 };

struct tls_ca {
    struct list_node node;
    char *path;
    struct stat seen;
    SSL_CTX *ctx;
};

/* Errors of certificates as messages. %s is the host. */
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

void tls_say_verdict(struct why *why, SSL *ssl, long code)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    const char *host = X509_VERIFY_PARAM_get0_host(param, 0);
    char *ip = host ? NULL : X509_VERIFY_PARAM_get1_ip_asc(param);
    const char *server = host ? host : ip ? ip : "the server";
    size_t i = 0;

    while (i < sizeof(verdicts) / sizeof(*verdicts) && verdicts[i].code != code)
        i++;
    if (i < sizeof(verdicts) / sizeof(*verdicts)) {
        const char *words = verdicts[i].words, *mark = strstr(words, "%s");

        why_err(why, ERR_UNREACHABLE, "%.*s%s%s", (int)(mark - words), words,
                server, mark + 2);
    } else {
        why_err(why, ERR_UNREACHABLE, "the certificate of %s is refused: %s",
                server, X509_verify_cert_error_string(code));
    }
    OPENSSL_free(ip);
}

/* Authorities. */

static enum err tls_no_memory(struct why *why)
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
    tls_set_up(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_max_cert_list(ctx, TLS_CHAIN_BYTES);
    return ctx;
}

/* Every certificate in a PEM text. */
static enum err ca_trust_all(SSL_CTX *ctx, struct str text, const char *path,
                             struct why *why)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    BIO *b =
        FAULT("tls.authorities") ? NULL : BIO_new_mem_buf(text.p, (int)text.n);
    bool is_good = true;
    size_t n = 0;
    X509 *x;

    if (!b)
        return tls_no_memory(why);
    ERR_clear_error();
    while (is_good && (x = PEM_read_bio_X509_AUX(b, NULL, NULL, NULL))) {
        is_good = X509_STORE_add_cert(store, x) == 1;
        X509_free(x);
        n++;
    }
    is_good = is_good && n &&
              ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(b);
    ERR_clear_error();
    if (is_good)
        return OK;
    return why_err(why, ERR_IO,
                   "%s has no certificates of authorities, or one that is of "
                   "no use: it must be a file in PEM",
                   path);
}

static enum err ca_read(struct tls_ca *ca, struct why *why)
{
    struct buf text;
    enum err e;

    buf_init(&text, CAS_MAX_BYTES);
    e = cert_read_file(ca->path, &text, why);
    if (!e) {
        ca->ctx = new_dial_ctx();
        e = ca->ctx ? ca_trust_all(ca->ctx, buf_str(&text), ca->path, why)
                    : tls_no_memory(why);
    }
    buf_fini(&text);
    return e;
}

static void ca_free(struct tls_ca *ca)
{
    if (!ca)
        return;
    SSL_CTX_free(ca->ctx);
    free(ca->path);
    free(ca);
}

static void ca_forget(struct net *n, struct tls_ca *ca)
{
    list_remove(&ca->node);
    n->n_cas--;
    ca_free(ca);
}

void tls_forget_authorities(struct net *n)
{
    struct list_node *i;

    while ((i = list_first(&n->cas)))
        ca_forget(n, LIST_OF(i, struct tls_ca, node));
    SSL_CTX_free(n->dial_ctx);
}

static struct tls_ca *ca_find(struct net *n, const char *path)
{
    struct list_node *i;

    for (i = list_first(&n->cas); i; i = list_next(&n->cas, i)) {
        struct tls_ca *ca = LIST_OF(i, struct tls_ca, node);

        if (strcmp(ca->path, path) == 0)
            return ca;
    }
    return NULL;
}

static bool ca_is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The file is examined before it is read, so that a change in between is
 * noticed later. */
static enum err ca_new(const char *path, const struct stat *now,
                       struct tls_ca **out, struct why *why)
{
    struct tls_ca *ca = mem_new(sizeof(*ca));
    enum err e;

    ca->seen = *now;
    ca->path = mem_copy(path, strlen(path));
    e = ca_read(ca, why);
    if (e) {
        ca_free(ca);
        ca = NULL;
    }
    *out = ca;
    return e;
}

/* The authorities of a file, borrowed. */
static enum err ca_get(struct net *n, const char *path, SSL_CTX **out,
                       struct why *why)
{
    struct tls_ca *ca = ca_find(n, path);
    struct stat now = {.st_ino = 0};
    bool is_there = stat(path, &now) == 0;

    if (ca && (!is_there || !ca_is_same_file(&ca->seen, &now))) {
        ca_forget(n, ca);
        ca = NULL;
    }
    if (ca) {
        list_remove(&ca->node);
    } else {
        enum err e = ca_new(path, &now, &ca, why);

        if (e)
            return e;
        if (n->n_cas == TLS_CAS_MAX)
            ca_forget(n, LIST_OF(list_first(&n->cas), struct tls_ca, node));
        n->n_cas++;
    }
    list_append(&n->cas, &ca->node);
    *out = ca->ctx;
    return OK;
}

/* The system's authorities, borrowed. */
static enum err ca_get_system(struct net *n, SSL_CTX **out, struct why *why)
{
    if (!n->dial_ctx) {
        n->dial_ctx = new_dial_ctx();
        if (!n->dial_ctx)
            return tls_no_memory(why);
        SSL_CTX_set_default_verify_paths(n->dial_ctx);
    }
    *out = n->dial_ctx;
    return OK;
}

/* Dialling. */

/* A fully qualified name ends with a dot in DNS; in certificates and SNI (RFC
 * 6066) it does not. */
static bool dial_expect_name(struct conn *c, const char *host)
{
    char name[URL_HOST_MAX + 1];
    size_t n = strlen(host);

    if (n > 1 && host[n - 1] == '.')
        n--;
    if (n > URL_HOST_MAX)
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    SSL_set_hostflags(c->tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(c->tls, name) == 1 &&
           SSL_set_tlsext_host_name(c->tls, name) == 1;
}

/* Require a certificate for host. */
static bool dial_expect_host(struct conn *c, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(c->tls);
    char binary[sizeof(struct in6_addr)];

    X509_VERIFY_PARAM_set_time(param, loop_wall_ms(c->net->loop) / 1000);
    if (inet_pton(AF_INET, host, binary) == 1 ||
        inet_pton(AF_INET6, host, binary) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    return dial_expect_name(c, host);
}

enum err tls_connect(struct conn *c, const char *host, const char *ca_file,
                     int64_t timeout_ms, struct why *why)
{
    SSL_CTX *ctx = NULL;
    enum err e = ca_file ? ca_get(c->net, ca_file, &ctx, why)
                         : ca_get_system(c->net, &ctx, why);

    assert(!c->tls && *host);
    if (e)
        return e;
    if (!tls_begin(c, ctx) || !dial_expect_host(c, host)) {
        tls_free(c);
        return tls_no_memory(why);
    }
    SSL_set_connect_state(c->tls);
    conn_move(c, CONN_TLS, timeout_ms);
    if (c->state == CONN_CLOSED)
        return OK; /* gone reports it */
    c->tls_held_bytes = TLS_DIAL_BYTES;
    conn_kick(c);
    return OK;
}
