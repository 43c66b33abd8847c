/* net_check_cert decides whether a certificate and its key can be used. Here
 * the files are read again only for better messages: if the certificate file
 * has a certificate, the problem is the key, unless the key fits. */
#include "cli/tlsfiles.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/tls_files.h"

enum { NAMES_MAX = 8, SETTING_BYTES = 64 };

/* Only regular files: opening a pipe would block. */
static BIO *open_plain(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    return BIO_new_file(path, "r");
}

static X509 *read_cert(const char *path)
{
    BIO *b = open_plain(path);
    X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;

    BIO_free(b);
    ERR_clear_error();
    return x;
}

/* Never prompt for a passphrase. */
static int tlsfiles_no_passphrase(char *to, int size, int is_writing, void *ctx)
{
    (void)to, (void)size, (void)is_writing, (void)ctx;
    return -1;
}

/* Names. */

static void cert_add_name(struct buf *out, size_t n_before, struct str name)
{
    if (n_before)
        buf_add_str(out, STR(", "));
    buf_add_str(out, name);
}

void tlsfiles_add_names(const char *cert_file, struct buf *out)
{
    X509 *x = read_cert(cert_file);
    GENERAL_NAMES *all =
        x ? X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL) : NULL;
    size_t n = 0, n_left_out = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        char text[INET6_ADDRSTRLEN] = "?";
        int bytes;

        if (name->type != GEN_DNS && name->type != GEN_IPADD)
            continue;
        if (n == NAMES_MAX) {
            n_left_out++;
            continue;
        }
        if (name->type == GEN_IPADD) {
            bytes = ASN1_STRING_length(name->d.iPAddress);
            if (bytes == 4 || bytes == 16)
                inet_ntop(bytes == 4 ? AF_INET : AF_INET6,
                          ASN1_STRING_get0_data(name->d.iPAddress), text,
                          sizeof(text));
            cert_add_name(out, n, str_of(text));
        } else
            cert_add_name(
                out, n,
                (struct str){
                    (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                    (size_t)ASN1_STRING_length(name->d.dNSName)});
        n++;
    }
    if (n_left_out)
        buf_addf(out, " and %zu more", n_left_out);
    GENERAL_NAMES_free(all);
    X509_free(x);
}

/* Problems. */

struct pair {
    struct net_cert files;
    char cert[SETTING_BYTES], key[SETTING_BYTES]; /* their settings */
};

enum fit { FIT, NO_CERT, NO_KEY, NOT_TOGETHER };

static enum fit key_fits_cert(const char *cert_file, const char *key_file)
{
    X509 *x = read_cert(cert_file);
    BIO *b = open_plain(key_file);
    EVP_PKEY *key =
        b ? PEM_read_bio_PrivateKey(b, NULL, tlsfiles_no_passphrase, NULL)
          : NULL;
    enum fit f = !x                                    ? NO_CERT
                 : !key                                ? NO_KEY
                 : X509_check_private_key(x, key) == 1 ? FIT
                                                       : NOT_TOGETHER;

    BIO_free(b);
    ERR_clear_error();
    X509_free(x);
    EVP_PKEY_free(key);
    return f;
}

static void tlsfiles_report(const struct pair *p, const char *what,
                            tlsfiles_say *say, void *ctx)
{
    const char *cert_file = p->files.cert_file, *key_file = p->files.key_file;
    enum fit f = key_fits_cert(cert_file, key_file);
    struct why why;

    if (f == NO_CERT && key_fits_cert(key_file, cert_file) == FIT) {
        why_err(&why, ERR_BAD_CONFIG,
                "the certificate is in %.180s and its key in %.180s: the "
                "files seem to be swapped",
                key_file, cert_file);
        what = why.text;
    }
    say(ctx, f == NO_KEY || f == NOT_TOGETHER ? p->key : p->cert, false, what);
}

int64_t tlsfiles_check(const struct config *c, int64_t now_ms,
                       tlsfiles_say *say, void *ctx)
{
    struct net_cert files[TLS_FILES_MAX];
    size_t n = tls_files_of(c, files);
    int64_t first_s = 0, ends_s;
    bool is_good = true;

    for (size_t i = 0; i < n; i++) {
        struct pair p = {.files = files[i]};
        struct why why = {""};
        char inside[32] = "";
        struct stat st;

        if (i)
            snprintf(inside, sizeof(inside), "more[%zu].", i - 1);
        snprintf(p.cert, sizeof(p.cert), "tls.%scertFile", inside);
        snprintf(p.key, sizeof(p.key), "tls.%skeyFile", inside);
        if (net_check_cert(&p.files, now_ms, &ends_s, &why) != OK) {
            tlsfiles_report(&p, why.text, say, ctx);
            is_good = false;
            continue;
        }
        /* Only the server's user should have access to the key. */
        if (stat(p.files.key_file, &st) == 0 && st.st_mode & 077) {
            why_err(&why, ERR_BAD_CONFIG,
                    "other users have access to the key in %.180s (mode "
                    "%04o): chmod 600 %.180s",
                    p.files.key_file, (unsigned)st.st_mode & 07777,
                    p.files.key_file);
            say(ctx, p.key, true, why.text);
        }
        if (!first_s || ends_s < first_s)
            first_s = ends_s;
    }
    return is_good ? first_s : 0;
}

void tlsfiles_check_trust(const char *ca_file, struct why *why)
{
    struct stat st;
    X509 *x;

    why->text[0] = '\0';
    if (stat(ca_file, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        why_err(why, ERR_BAD_CONFIG, "there is no file %.200s", ca_file);
    } else if (access(ca_file, R_OK) != 0) {
        why_err(why, ERR_BAD_CONFIG, "cannot read %.200s: %s", ca_file,
                strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        why_err(why, ERR_BAD_CONFIG, "%.200s is %s; name a file", ca_file,
                S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    } else {
        x = read_cert(ca_file);
        if (!x)
            why_err(why, ERR_BAD_CONFIG,
                    "%.200s has no certificates: it must be in PEM, beginning "
                    "with -----BEGIN CERTIFICATE-----",
                    ca_file);
        X509_free(x);
    }
}
