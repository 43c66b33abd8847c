#ifndef CLI_TLSFILES_H
#define CLI_TLSFILES_H

/* tlsfiles: checks of the configured certificates and keys for check and
 * doctor. Beyond the server's own check they find the setting with the problem,
 * swapped files, keys that other users can read, and the names of a
 * certificate. Threads: any. */

#include "base/buf.h"
#include "server/config/config.h"

/* One problem, with its setting: "tls.more[1].keyFile". */
typedef void tlsfiles_say(void *ctx, const char *setting, bool is_warning,
                          const char *what);

/* Check all of them. Returns the earliest expiry in seconds since 1970; zero:
 * there is none, or an error was reported. */
int64_t tlsfiles_check(const struct config *c, int64_t now_ms,
                       tlsfiles_say *say, void *ctx);

/* Add the names in the certificate, "a.example, 192.0.2.1". Adds nothing if it
 * cannot be read. */
void tlsfiles_add_names(const char *cert_file, struct buf *out);

/* Set *why to the problem with a file of trusted certificates; empty: none. */
void tlsfiles_check_trust(const char *ca_file, struct why *why);

#endif
