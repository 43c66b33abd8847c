#ifndef SERVER_TLS_FILES_H
#define SERVER_TLS_FILES_H

/* tls_files: passes the configured certificates to net, again whenever their
 * files change.
 *
 * The files are checked every ten seconds. Rejected: watching them. They may be
 * links into folders of links (certbot, Kubernetes), so many folders would have
 * to be watched. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "net/server/net.h"
#include "server/config/config.h"

enum { TLS_FILES_MAX = 1 + CONFIG_MORE_CERTS_MAX, TLS_FILES_SOON_DAYS = 14 };

/* The state of a file when it was last checked. */
struct tls_files_seen {
    uint64_t device, inode;
    int64_t bytes, changed_ns;
};

/* For each certificate its file, then the file of its key. */
struct tls_file_set {
    size_t n; /* certificates */
    char *paths[2 * TLS_FILES_MAX];
    struct tls_files_seen seen[2 * TLS_FILES_MAX];
};

struct tls_files {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct tls_file_set files;  /* checked every ten seconds */
    struct tls_file_set next;   /* set by tls_files_prepare */
    struct net_certs *prepared; /* read from them; NULL: none */
    struct why next_problem;
    struct timer look_again;
    int64_t warned_at_ms;
    struct why problem; /* of the files; empty: none */
};

/* List the files of c. Returns the number of certificates, zero when TLS is
 * off. Borrows from c. */
size_t tls_files_of(const struct config *c, struct net_cert out[TLS_FILES_MAX]);

/* Whether a server with this configuration would accept them. On error, setting
 * (unless NULL) names the certificate: "tls.more[1]". */
MUST_USE enum err tls_files_check(const struct config *c, int64_t now_ms,
                                  int64_t *first_ends_s, char setting[32],
                                  struct why *why);

/* Read and use the certificates of config, and check their files from now on.
 * Without TLS in config nothing is read; but as long as net listens with TLS,
 * which only a restart changes, the earlier files are still checked. On error
 * nothing changes. For callers with further steps that may fail: prepare, then
 * commit, which cannot fail, or forget.
 *
 * A file in use that has become invalid is not an error: it is logged, its
 * earlier content stays in use, and every check tries again. */
MUST_USE enum err tls_files_start(struct tls_files *c,
                                  const struct config *config, struct why *why);
MUST_USE enum err tls_files_prepare(struct tls_files *c,
                                    const struct config *config,
                                    struct why *why);
void tls_files_commit(struct tls_files *c);
void tls_files_forget(struct tls_files *c);
void tls_files_stop(struct tls_files *c);

#endif
