#ifndef NET_SERVER_TLS_INTERNAL_H
#define NET_SERVER_TLS_INTERNAL_H

/* Internals that the files of TLS share: tls.c, tls_dial.c, and cert.c for its
 * reader. */

#include <openssl/ssl.h>

#include "net/server/internal.h"

/* Start TLS on c. False: memory is gone. */
MUST_USE bool tls_begin(struct conn *c, SSL_CTX *ctx);

/* Set the options of contexts of both sides. */
void tls_set_up(SSL_CTX *ctx);

/* Write why the certificate of the server that ssl has dialled is rejected. */
void tls_say_verdict(struct why *why, SSL *ssl, long code);

/* Read a whole regular file into out, which has a limit. Never waits: a pipe
 * is rejected. */
MUST_USE enum err cert_read_file(const char *path, struct buf *out,
                                 struct why *why);

#endif
