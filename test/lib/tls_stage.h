#ifndef TEST_LIB_TLS_STAGE_H
#define TEST_LIB_TLS_STAGE_H

/* The stage of net with TLS: certificates made on the spot, in a folder that
 * goes with the test, and clients that are OpenSSL's over plain sockets of the
 * same process, which never wait: the loop is turned between their steps. */

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "test/lib/folder.h"
#include "test/lib/net_stage.h"

enum { DAY_S = 24 * 3600 };

struct tls_folder {
    char path[64];
    char cert[8][96], key[8][96];
    int n;
    struct net_cert files[8];
};

static inline void folder_init(struct tls_folder *f)
{
    *f = (struct tls_folder){.path = "/tmp/tls-test-XXXXXX"};
    CHECK(mkdtemp(f->path));
}

static inline void folder_fini(struct tls_folder *f)
{
    folder_remove(f->path);
}

struct cert_wish {
    const char *san;          /* "DNS:a.example,IP:127.0.0.1" */
    const char *cn;           /* NULL: the same */
    int64_t begins_s, ends_s; /* from the stage's time */
    const char *passphrase;
    bool has_other_key;
};

static inline EVP_PKEY *key_new(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    CHECK(key);
    return key;
}

static inline X509 *x509_new(EVP_PKEY *key, const struct cert_wish *w,
                             int64_t now_s)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    const struct {
        int nid;
        const char *value;
    } ext[] = {{NID_subject_alt_name, w->san},
               {NID_basic_constraints, "CA:TRUE"}};
    X509V3_CTX ctx;

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    ASN1_TIME_set(X509_getm_notBefore(x), now_s + w->begins_s);
    ASN1_TIME_set(X509_getm_notAfter(x), now_s + w->ends_s);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               (const unsigned char *)(w->cn ? w->cn : w->san),
                               -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, key);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    for (size_t i = 0; i < sizeof(ext) / sizeof(*ext); i++) {
        X509_EXTENSION *e =
            X509V3_EXT_conf_nid(NULL, &ctx, ext[i].nid, ext[i].value);

        CHECK(e && X509_add_ext(x, e, -1) == 1);
        X509_EXTENSION_free(e);
    }
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

/* Write certificate and key number `at` of the folder. */
static inline void folder_put(struct tls_folder *f, int at,
                              const struct stage *s, struct cert_wish w)
{
    EVP_PKEY *key = key_new(), *other = w.has_other_key ? key_new() : NULL;
    char folder[sizeof(f->path)];
    X509 *x;
    FILE *out;

    if (!w.san)
        w.san = "DNS:localhost,IP:127.0.0.1";
    if (!w.ends_s)
        w.ends_s = 90 * DAY_S;
    x = x509_new(key, &w, s->time.wall_ms / 1000);
    memcpy(folder, f->path, sizeof(folder));
    snprintf(f->cert[at], sizeof(f->cert[at]), "%s/cert%d.pem", folder, at);
    snprintf(f->key[at], sizeof(f->key[at]), "%s/key%d.pem", folder, at);
    f->files[at] = (struct net_cert){f->cert[at], f->key[at]};
    if (at >= f->n)
        f->n = at + 1;
    CHECK((out = fopen(f->cert[at], "w")) && PEM_write_X509(out, x) == 1);
    fclose(out);
    CHECK((out = fopen(f->key[at], "w")) &&
          PEM_write_PrivateKey(
              out, other ? other : key, w.passphrase ? EVP_aes_128_cbc() : NULL,
              (const unsigned char *)w.passphrase,
              w.passphrase ? (int)strlen(w.passphrase) : 0, NULL, NULL) == 1);
    fclose(out);
    X509_free(x);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

/* A server that speaks TLS, with the one certificate. */
static inline void tls_stage_init(struct stage *s, struct tls_folder *f,
                                  struct net_opts opts)
{
    struct why why = {""};
    int64_t port;

    CHECK(stage_try_init(s, opts));
    folder_init(f);
    folder_put(f, 0, s, (struct cert_wish){.san = NULL});
    CHECK(net_set_certs(s->net, f->files, 1, &why) == OK);
    CHECK(net_listen(s->net, STR("127.0.0.1:0"), true, &why) == OK);
    CHECK(str_starts(str_of(net_tls_url(s->net)), STR("https://127.0.0.1:")));
    CHECK(str_to_i64(str_of(strrchr(net_tls_url(s->net), ':') + 1), &port) ==
          OK);
    s->port = (uint16_t)port;
}

static inline void tls_stage_fini(struct stage *s, struct tls_folder *f)
{
    stage_fini(s);
    folder_fini(f);
}

/* Clients. */

struct guest {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    bool is_broken; /* the handshake failed */
};

/* Connected, its handshake not begun. */
static inline struct guest guest_new(const struct stage *s, int rcvbuf_bytes)
{
    struct guest g = {.ctx = SSL_CTX_new(TLS_client_method())};

    g.fd = dial_small(s, rcvbuf_bytes);
    g.ssl = SSL_new(g.ctx);
    SSL_set_fd(g.ssl, g.fd);
    SSL_set_mode(g.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_connect_state(g.ssl);
    return g;
}

static inline void guest_free(struct guest *g)
{
    SSL_free(g->ssl);
    SSL_CTX_free(g->ctx);
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
}

/* One step; true once the handshake is over, well or not. */
static inline bool guest_shake(struct guest *g)
{
    int r, error;

    ERR_clear_error();
    r = SSL_do_handshake(g->ssl);
    error = SSL_get_error(g->ssl, r);
    g->is_broken =
        r != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
    return r == 1 || g->is_broken;
}

/* Shake hands, until it has worked or not. */
static inline bool guest_meet(struct stage *s, struct guest *g)
{
    bool is_over = guest_shake(g);

    for (int t_left = TURNS; !is_over && t_left > 0; t_left--) {
        turn_once(s);
        wait_for_some(s, g->fd, t_left);
        is_over = guest_shake(g);
    }
    CHECK(is_over);
    return !g->is_broken;
}

static inline struct guest guest_in(struct stage *s)
{
    struct guest g = guest_new(s, 0);

    CHECK(guest_meet(s, &g));
    return g;
}

static inline void guest_say(struct guest *g, const char *text)
{
    CHECK(SSL_write(g->ssl, text, (int)strlen(text)) == (int)strlen(text));
}

/* is_eof: the word for it came; is_reset: it ended without. */
static inline void guest_hear(struct guest *g, struct heard *h)
{
    while (h->n < sizeof(h->text) - 1) {
        size_t n = 0;
        int r, error;

        ERR_clear_error();
        r = SSL_read_ex(g->ssl, h->text + h->n, sizeof(h->text) - 1 - h->n, &n);
        if (r != 1) {
            error = SSL_get_error(g->ssl, r);
            h->is_eof = h->is_eof || error == SSL_ERROR_ZERO_RETURN;
            h->is_reset = h->is_reset || (error != SSL_ERROR_ZERO_RETURN &&
                                          error != SSL_ERROR_WANT_READ &&
                                          error != SSL_ERROR_WANT_WRITE);
            break;
        }
        h->n += n;
    }
    h->text[h->n] = 0;
}

static inline void guest_listen(struct stage *s, struct guest *g,
                                struct heard *h)
{
    turn_once(s);
    guest_hear(g, h);
}

#define GUEST_UNTIL(s, g, h, condition)        \
    do {                                       \
        int t_left = TURNS;                    \
        while (!(condition) && t_left-- > 0) { \
            guest_listen(s, g, h);             \
            wait_for_some(s, (g)->fd, t_left); \
        }                                      \
        CHECK(condition);                      \
    } while (0)

/* Come, say, hear until the server ends it, leave. */
static inline void guest_ask(struct stage *s, const char *text, struct heard *h)
{
    struct guest g = guest_in(s);

    *h = (struct heard){.n = 0};
    guest_say(&g, text);
    GUEST_UNTIL(s, &g, h, h->is_eof || h->is_reset);
    guest_free(&g);
    turn(s, 3);
}

static inline void check_tls_alive(struct stage *s)
{
    struct heard h;

    s->mode = ANSWER;
    guest_ask(s, GET_CLOSE("/alive"), &h);
    CHECK(has(&h, "HTTP/1.1 200 OK\r\n") && has(&h, "\r\n\r\n/alive"));
    CHECK(h.is_eof);
}

#endif
