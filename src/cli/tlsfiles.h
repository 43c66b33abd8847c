#ifndef CLI_TLSFILES_H
#define CLI_TLSFILES_H

/* tlsfiles: what check and doctor have to say of the files of certificates and
 * keys that the configuration names, beyond whether a server would take them:
 * which setting is to blame, whether two were swapped, who else can read a
 * key, and which names there are. Threads: any. */

#include "base/buf.h"
#include "config/config.h"

/* One problem, with the setting it is of: "tls.more[1].keyFile". */
typedef void tlsfiles_say(void *ctx, const char *setting, bool is_warning,
                          const char *what);

/* Look at all of them. Returns when the first one ends, in seconds since 1970;
 * zero: there is none, or an error was said. */
int64_t tlsfiles_check(const struct config *c, int64_t now_ms,
                       tlsfiles_say *say, void *ctx);

/* Add the names that the certificate is made out to, "a.example, 192.0.2.1".
 * Adds nothing when there is none to be read. */
void tlsfiles_add_names(const char *cert_file, struct buf *out);

/* Why a file of certificates to trust is of no use, in words; empty when it is
 * of use. */
void tlsfiles_check_trust(const char *ca_file, struct why *why);

#endif
