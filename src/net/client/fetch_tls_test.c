/* HTTPS: trust, and protocols. The server is OpenSSL's on the socket of a
 * guest; it runs between the turns of the loop. */
#include "net/client/internal.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "test/lib/fetch_stage.h"

enum { DAY_S = 24 * 3600 };

struct tls {
    SSL_CTX *ctx;
    SSL *ssl;
    X509 *cert;
    EVP_PKEY *key;
    char ca_file[64];
    bool is_up;
    char alpn[64];
    char heard[4096];
    size_t n_heard;
};

static X509 *make_cert(EVP_PKEY *key, const char *san, int64_t ends_s)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    X509_EXTENSION *ext;
    X509V3_CTX ctx;

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    ASN1_TIME_set(X509_getm_notBefore(x), time(NULL) - 2 * DAY_S);
    ASN1_TIME_set(X509_getm_notAfter(x), time(NULL) + ends_s);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, key);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, san);
    CHECK(ext && X509_add_ext(x, ext, -1) == 1);
    X509_EXTENSION_free(ext);
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static int choose_protocol(SSL *ssl, const unsigned char **out,
                           unsigned char *n_out, const unsigned char *in,
                           unsigned n, void *ctx)
{
    struct tls *t = ctx;

    (void)ssl;
    snprintf(t->alpn, sizeof(t->alpn), "%.*s", (int)n, (const char *)in);
    *out = in + 1;
    *n_out = in[0];
    return SSL_TLSEXT_ERR_OK;
}

static void tls_init(struct tls *t, const char *san, int64_t ends_s)
{
    FILE *f;
    int fd;

    *t = (struct tls){.ca_file = "/tmp/fetch-test-XXXXXX"};
    t->key = EVP_EC_gen("P-256");
    t->cert = make_cert(t->key, san, ends_s);
    fd = mkstemp(t->ca_file);
    f = fdopen(fd, "w");
    CHECK(f && PEM_write_X509(f, t->cert) == 1 && fclose(f) == 0);
    t->ctx = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_use_certificate(t->ctx, t->cert) == 1);
    CHECK(SSL_CTX_use_PrivateKey(t->ctx, t->key) == 1);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose_protocol, t);
}

static void tls_fini(struct tls *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    X509_free(t->cert);
    EVP_PKEY_free(t->key);
    unlink(t->ca_file);
}

/* One step of the server; always true, for use in conditions. */
static bool tls_step(struct tls *t, struct peer *p)
{
    int n;

    if (!p->n_guests)
        return true;
    if (!t->ssl) {
        t->ssl = SSL_new(t->ctx);
        SSL_set_fd(t->ssl, last_guest(p)->fd);
    }
    if (!t->is_up)
        t->is_up = SSL_accept(t->ssl) == 1;
    if (!t->is_up)
        return true;
    n = SSL_read(t->ssl, t->heard + t->n_heard,
                 (int)(sizeof(t->heard) - 1 - t->n_heard));
    if (n > 0)
        t->n_heard += (size_t)n;
    return true;
}

static bool tls_heard(struct tls *t, const char *text)
{
    return strstr(t->heard, text) != NULL;
}

static void tls_say(struct tls *t, const char *text)
{
    CHECK(SSL_write(t->ssl, text, (int)strlen(text)) == (int)strlen(text));
}

static struct peer *tls_open(struct stage *s)
{
    struct peer *p = peer_open(s, NULL);

    p->is_deaf = true; /* OpenSSL reads */
    return p;
}

static struct fetch_request request_over_tls(const struct peer *p)
{
    static char url[64];

    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", p->port);
    return request_to(url);
}

static struct stage *stage_trusting(const char *ca_file)
{
    struct fetch_opts opts = test_opts();

    opts.ca_file = ca_file;
    return stage_new(opts);
}

static int n_trusted(const struct stage *s)
{
    X509_STORE *trust = curl_pool_trust(s->fetch->pool);

    return sk_X509_OBJECT_num(X509_STORE_get0_objects(trust));
}

TEST(a_certificate_of_the_operators_own_is_trusted_beside_the_systems)
{
    struct tls tls;
    struct stage *s, *without;
    struct peer *p;
    struct told *t;

    tls_init(&tls, "IP:127.0.0.1", DAY_S);
    s = stage_trusting(tls.ca_file);
    p = tls_open(s);
    t = start(s, request_over_tls(p), &whole);
    UNTIL(s, tls_step(&tls, p) && tls_heard(&tls, "\r\n\r\n"));
    CHECK(strcmp(tls.alpn, "\x08http/1.1") == 0); /* and nothing else */
    CHECK(SSL_version(tls.ssl) == TLS1_3_VERSION);
    tls_say(&tls, FINE);
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && t->status == 200);
    told_free(t);
    /* Kept, as any other. */
    tls.n_heard = 0;
    memset(tls.heard, 0, sizeof(tls.heard));
    t = start(s, request_over_tls(p), &whole);
    UNTIL(s, tls_step(&tls, p) && tls_heard(&tls, "\r\n\r\n"));
    tls_say(&tls, FINE);
    UNTIL(s, t->n_done);
    CHECK(t->e == OK && p->n_guests == 1);
    told_free(t);

    without = stage_trusting(NULL);
    CHECK_INT(n_trusted(s), n_trusted(without) + 1);
    stage_free(without);
    stage_free(s);
    tls_fini(&tls);
}

/* How a request to a server with such a certificate ends. */
static void check_untrusted(struct tls *tls, bool has_ca, const char *word)
{
    struct stage *s = stage_trusting(has_ca ? tls->ca_file : NULL);
    struct peer *p = tls_open(s);
    struct fetch_request rq = request_over_tls(p);
    struct fetch_header h = {STR("Authorization"), STR("Bearer abc")};
    struct told *t;

    rq.headers = &h;
    rq.n_headers = 1;
    rq.is_trusted = true; /* that is about its address */
    t = start(s, rq, &whole);
    UNTIL(s, tls_step(tls, p) && t->n_done);
    if (t->e != ERR_UNREACHABLE || !strstr(t->why, word))
        T_FAIL("%s: error %d, %s", word, t->e, t->why);
    CHECK(!tls->n_heard && t->n_heads == 0);
    told_free(t);
    stage_free(s);
    tls_fini(tls);
}

TEST(certificates_of_nobody_known_are_refused)
{
    struct tls tls;

    tls_init(&tls, "IP:127.0.0.1", DAY_S);
    check_untrusted(&tls, false, "self-signed");
}

TEST(certificates_of_others_are_refused)
{
    struct tls tls;

    tls_init(&tls, "IP:127.0.0.2,DNS:other.example", DAY_S);
    check_untrusted(&tls, true, "127.0.0.1");
}

TEST(certificates_of_yesterday_are_refused)
{
    struct tls tls;

    tls_init(&tls, "IP:127.0.0.1", -DAY_S);
    check_untrusted(&tls, true, "expired");
}

TEST(old_versions_are_refused)
{
    struct tls tls;

    tls_init(&tls, "IP:127.0.0.1", DAY_S);
    SSL_CTX_set_security_level(tls.ctx, 0);
    SSL_CTX_set_min_proto_version(tls.ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(tls.ctx, TLS1_1_VERSION);
    check_untrusted(&tls, true, "");
}

TEST(plain_words_where_tls_is_expected_are_refused)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_over_tls(p), &whole);

    UNTIL(s, p->n_guests == 1);
    peer_say(p, FINE);
    UNTIL(s, t->n_done);
    CHECK_INT(t->e, ERR_UNREACHABLE);
    told_free(t);
    stage_free(s);
}

TEST(a_handshake_that_does_not_go_on_is_no_connection)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    struct told *t = start(s, request_over_tls(p), &whole);

    UNTIL(s, p->n_guests == 1);
    turn(s, 10);
    later(s, 100 * 1000);
    CHECK(t->n_done && t->e == ERR_TIMEOUT && strstr(t->why, "no connection"));
    told_free(t);
    stage_free(s);
}

TEST(from_https_nothing_leads_to_http)
{
    struct tls tls;
    struct stage *s;
    struct peer *p, *plain;
    struct fetch_request rq;
    struct told *t;
    char text[256];

    tls_init(&tls, "IP:127.0.0.1", DAY_S);
    s = stage_trusting(tls.ca_file);
    p = tls_open(s);
    plain = peer_open(s, FINE);
    rq = request_over_tls(p);
    rq.max_redirects = 3;
    t = start(s, rq, &whole);
    UNTIL(s, tls_step(&tls, p) && tls_heard(&tls, "\r\n\r\n"));
    snprintf(text, sizeof(text),
             "HTTP/1.1 302 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_at(plain, "/"));
    tls_say(&tls, text);
    UNTIL(s, t->n_done);
    CHECK(t->e == ERR_ADDRESS && plain->n_guests == 0);
    told_free(t);
    stage_free(s);
    tls_fini(&tls);
}

/* With a length or chunks. A body that ends with the connection is taken for
 * whole wherever it is cut: libcurl does not look for the end that TLS signs.
 */
TEST(a_connection_that_is_cut_is_no_end)
{
    static const char *const halves[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    };

    for (int i = 0; i < 2; i++) {
        struct tls tls;
        struct stage *s;
        struct peer *p;
        struct told *t;

        tls_init(&tls, "IP:127.0.0.1", DAY_S);
        s = stage_trusting(tls.ca_file);
        p = tls_open(s);
        t = start(s, request_over_tls(p), &whole);
        UNTIL(s, tls_step(&tls, p) && tls_heard(&tls, "\r\n\r\n"));
        tls_say(&tls, halves[i]);
        shutdown(last_guest(p)->fd, SHUT_WR);
        UNTIL(s, t->n_done);
        CHECK_INT(t->e, ERR_BAD_REQUEST);
        told_free(t);
        stage_free(s);
        tls_fini(&tls);
    }
}

TEST(new_certificates_hold_for_kept_connections_too)
{
    struct tls tls;
    struct stage *s;
    struct fetch_opts opts;
    struct peer *p;
    struct told *t;

    tls_init(&tls, "IP:127.0.0.1", DAY_S);
    s = stage_trusting(tls.ca_file);
    p = tls_open(s);
    t = start(s, request_over_tls(p), &whole);
    UNTIL(s, tls_step(&tls, p) && tls_heard(&tls, "\r\n\r\n"));
    tls_say(&tls, FINE);
    UNTIL(s, t->n_done);
    told_free(t);
    opts = s->opts;
    opts.ca_file = NULL;
    CHECK(fetch_set(s->fetch, &opts, NULL) == OK);
    t = start(s, request_over_tls(p), &whole);
    UNTIL(s, p->n_guests == 2);
    SSL_free(tls.ssl);
    tls.ssl = NULL;
    tls.is_up = false;
    UNTIL(s, tls_step(&tls, p) && t->n_done);
    CHECK_INT(t->e, ERR_UNREACHABLE);
    told_free(t);
    stage_free(s);
    tls_fini(&tls);
}
