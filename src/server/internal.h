#ifndef SERVER_INTERNAL_H
#define SERVER_INTERNAL_H

/* The struct of all modules, for the files of server only: server.c and build.c
 * open and close them, settings.c derives their settings, reload.c replaces
 * them. Threads: the loop's. */

#include <sys/stat.h>

#include "access/access.h"
#include "api/api.h"
#include "api/hub/hub.h"
#include "base/log.h"
#include "base/loop.h"
#include "gate/notifiers.h"
#include "gate/rules_file.h"
#include "learn/learning.h"
#include "net/child/child.h"
#include "net/server/net.h"
#include "registry/registry.h"
#include "server/configured_agents.h"
#include "server/keyring.h"
#include "server/providers.h"
#include "server/reserved_names.h"
#include "server/server.h"
#include "server/tls_files.h"
#include "store/store.h"
#include "walk/walk.h"
#include "watch/watch.h"

struct server {
    const struct server_opts *opts;
    struct config *built_from; /* the modules were opened with it */
    struct config *config;     /* in force: the same, or a later one */
    struct log log;
    int64_t file_limit; /* descriptors that may be open */
    struct watch_memory memory;
    struct loop loop;
    struct store_folder folder;
    uint64_t seed[2];
    struct id_maker ids;
    struct providers providers;
    struct children *children;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct keyring keyring;
    struct registry *registry;
    struct str reference[EMBED_REFERENCE_MAX]; /* texts, for the registry */
    struct configured_agents configured_agents;
    struct rules_file rules_file;
    struct learning *learning;
    struct router *router;
    struct traces *traces;
    struct walk *walk;
    struct notifiers notifiers;
    struct net *net;
    struct tls_files tls_files;
    struct api api;
    struct hub *hub;
    bool has_first_admin;            /* its transaction is done */
    struct access_token first_token; /* to be shown; empty: none was made */
    struct why failed;               /* why the store failed; else empty */

    uv_signal_t on_int, on_term, on_hup;
    uv_fs_event_t folder_watch;
    struct timer reload_soon;
    struct stat file_seen; /* the configuration file when it was last read */
    int64_t read_at_ms;    /* when `config` was read */
    struct {
        int64_t at_ms;               /* zero: there was none */
        bool is_refused;             /* the earlier configuration stays */
        struct config_report report; /* must not be moved */
    } reload;                        /* the last one */
    bool is_open;                    /* all modules are */
    bool is_reloading; /* modules have settings of two configurations */
    bool is_running;   /* all modules are open, and requests may arrive */
    bool is_unwanted;  /* a signal to stop came before is_running */
    bool is_stopping;
    bool is_over;     /* all connections are closed */
    bool has_stopped; /* the module that server_close waits for */
};

#endif
