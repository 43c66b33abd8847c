#ifndef NET_TLS_INTERNAL_H
#define NET_TLS_INTERNAL_H

/* What the files of TLS share: tls.c, tls_dial.c, and cert.c for its reader. */

#include <openssl/ssl.h>

#include "net/internal.h"

/* Put TLS upon c. False: memory is gone. */
MUST_USE bool tls_begin(struct conn *c, SSL_CTX *ctx);

/* What both sides want of their contexts. */
void tls_set_up(SSL_CTX *ctx);

/* Say why the certificate of the server that ssl has dialled is refused. */
void tls_say_verdict(struct why *why, SSL *ssl, long code);

/* The whole of a regular file, out to be initialised with a limit. Never
 * waits: a pipe is refused. */
MUST_USE enum err cert_read_file(const char *path, struct buf *out,
                                 struct why *why);

#endif
