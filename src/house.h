#ifndef HOUSE_H
#define HOUSE_H

/* house: the one struct that holds all rooms, for the files that build them
 * (server.c, rooms.c), tell them what the configuration says (settings.c) and
 * change that (reload.c). Nobody else sees it. Threads: the loop's. */

#include <sys/stat.h>

#include "access/access.h"
#include "base/log.h"
#include "base/loop.h"
#include "calls/calls.h"
#include "certs.h"
#include "child/child.h"
#include "hub/hub.h"
#include "keyring.h"
#include "lessons/lessons.h"
#include "names.h"
#include "net/net.h"
#include "outward.h"
#include "posting.h"
#include "registry/registry.h"
#include "roster.h"
#include "rulebook.h"
#include "server.h"
#include "store/store.h"
#include "walk.h"
#include "watch/watch.h"

struct server {
    const struct server_opts *opts;
    struct config *built_from; /* what the rooms were opened with */
    struct config *config;     /* what counts now: the same, or a later one */
    struct log log;
    int64_t file_limit; /* descriptors that we may have open */
    struct loop loop;
    struct store_folder folder;
    uint64_t seed[2];
    struct id_maker ids;
    struct outward outward;
    struct children *children;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct keyring keyring;
    struct registry *registry;
    struct str reference[EMBED_REFERENCE_MAX]; /* its reference texts */
    struct roster roster;
    struct rulebook rulebook;
    struct lessons *lessons;
    struct router *router;
    struct traces *traces;
    struct walk *walk;
    struct posting posting;
    struct net *net;
    struct certs certs;
    struct calls calls;
    struct hub *hub;
    bool has_first_admin;            /* its tx was given back */
    struct access_token first_token; /* made and to be shown; else empty */
    struct why failed;               /* why the store has; else empty */

    uv_signal_t on_int, on_term, on_hup;
    uv_fs_event_t folder_watch;
    struct timer reload_soon;
    struct stat file_seen; /* the configuration file when it was last read */
    int64_t read_at_ms;    /* when what counts now was */
    struct {
        int64_t at_ms;               /* zero: there was none */
        bool is_refused;             /* what was there before stays */
        struct config_report report; /* what was wrong; not to be moved */
    } reload;                        /* the last one */
    bool is_open;                    /* all rooms are there */
    bool is_reloading; /* what counts is not all of one configuration */
    bool is_running;   /* all rooms are there, and calls may come */
    bool is_unwanted;  /* a signal came before that */
    bool is_stopping;
    bool is_over;     /* and nobody is connected any more */
    bool has_stopped; /* what was asked to last: deliveries, children */
};

#endif
