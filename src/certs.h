#ifndef CERTS_H
#define CERTS_H

/* certs: the certificates that the configuration names, from the files to net,
 * again whenever the files have changed.
 *
 * The files are looked at every ten seconds rather than watched: they may be
 * links into folders of links (certbot, Kubernetes), and what would have to be
 * watched then is many folders. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "net/net.h"

enum { CERTS_MAX = 1 + CONFIG_MORE_CERTS_MAX, CERTS_SOON_DAYS = 14 };

/* A file as it was when it was last read. */
struct certs_seen {
    uint64_t device, inode;
    int64_t bytes, changed_ns;
};

/* Of each certificate its file, then that of its key. */
struct certs_files {
    size_t n; /* certificates */
    char *paths[2 * CERTS_MAX];
    struct certs_seen seen[2 * CERTS_MAX];
};

struct certs {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct certs_files files;   /* that are looked at */
    struct certs_files next;    /* of certs_prepare; and what was read of */
    struct net_certs *prepared; /* them, NULL: nothing */
    struct why next_problem;
    struct timer look_again;
    int64_t warned_at_ms;
    struct why problem; /* with the files as they are; empty: none */
};

/* The files of c, all in one list; returns how many certificates there are,
 * zero when TLS is off. Borrows from c. */
size_t certs_of(const struct config *c, struct net_cert out[CERTS_MAX]);

/* Whether a server with this configuration would take them. why says what is
 * wrong, setting (when not NULL) which of them: "tls.more[1]". */
MUST_USE enum err certs_check(const struct config *c, int64_t now_ms,
                              int64_t *first_ends_s, char setting[32],
                              struct why *why);

/* Read and use those of config, and look at their files from now on. Without
 * TLS in config there is nothing to do; but as long as net listens with TLS,
 * which only a restart changes, the ones before go on being looked at. On error
 * nothing changes. In two steps for who has more to do that may fail: prepare,
 * then commit, which cannot fail, or forget.
 *
 * A file that is in use already and has become bad is no error: it is logged,
 * what was read from it stays in use, and it is tried again with every look. */
MUST_USE enum err certs_start(struct certs *c, const struct config *config,
                              struct why *why);
MUST_USE enum err certs_prepare(struct certs *c, const struct config *config,
                                struct why *why);
void certs_commit(struct certs *c);
void certs_forget(struct certs *c);
void certs_stop(struct certs *c);

#endif
