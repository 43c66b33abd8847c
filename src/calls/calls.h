#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

/* calls: what may be asked for. One table says which path and method leads to
 * which function and which scope it takes; one file per noun holds the
 * functions; live.c holds whoever must wait, and all streams.
 *
 * Across turns a request is an id, and so is a task: the thing may be gone.
 *
 * Owns the buffer that answers are written in, and what is open. Borrows the
 * rooms it asks. Threads: the loop's. */

#include "access/access.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "calls/throttle.h"
#include "embed/embed.h"
#include "fetch/fetch.h"
#include "lessons/lessons.h"
#include "net/net.h"
#include "registry/registry.h"
#include "store/store.h"
#include "walk.h"
#include "watch/watch.h"

/* What a reload may change. */
struct calls_settings {
    struct access_names names; /* borrowed until the next ones */
    int64_t heartbeat_ms;      /* of streams */
    int64_t reply_timeout_ms;  /* nobody waits longer than nine tenths of it */
    size_t max_open;           /* requests that wait, and streams; one for each
                                * connection is enough */
    int64_t vector_timeout_ms; /* of a verdict's text; zero: as long as the
                                * model takes */
    struct throttle_limits limits;
    bool figures_need_token; /* /metrics does, all but from the side */
    struct {
        bool is_on;        /* browsers get the dashboard at / */
        struct str folder; /* ends in NUL; borrowed until the next ones; empty:
                            * the files in the binary */
    } web;
};

/* Who takes over a request for /hub that came with a good token: hub_take. An
 * error: it was not answered. A NULL function: there is no hub. */
struct calls_hub {
    enum err (*take)(void *ctx, uint64_t id, const struct http_request *rq,
                     const struct caller *caller, struct why *why);
    /* Its figures, to be added to the others. */
    void (*write_metrics)(void *ctx, struct buf *out);
    void *ctx;
};

/* Who knows the configuration: running_write and running_reload. A NULL
 * function: nobody. */
struct calls_house {
    /* What it is, as members of an open object. */
    void (*write)(void *ctx, struct json_out *o);
    /* Read it again and take it over: what came of it, as members; or
     * ERR_BAD_CONFIG, with what is wrong as members, and nothing has changed.
     */
    enum err (*reload)(void *ctx, struct json_out *o, struct why *why);
    void *ctx;
};

struct calls_opts {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct walk *walk;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct lessons *lessons;
    struct posting *posting;
    struct traces *traces;
    const struct rulebook *rulebook;
    /* For their figures; any of them may be NULL. */
    struct fetch *fetch;
    struct embed *const *embeds;
    size_t n_embeds;
    struct calls_hub hub;
    struct calls_house house;
    uint64_t seed[2];
    struct calls_settings settings;
};

struct calls {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct walk *walk;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct lessons *lessons;
    struct posting *posting;
    struct traces *traces;
    const struct rulebook *rulebook;
    struct fetch *fetch;
    struct embed *const *embeds;
    size_t n_embeds;
    struct throttle *throttle;
    struct calls_hub hub;
    struct calls_house house;
    struct calls_settings settings;
    int64_t started_mono_ms;
    bool is_ready;                /* false from calls_stop on */
    int64_t reloads_total;        /* configurations taken over while running */
    int64_t reloads_failed_total; /* and turned down */
    struct watch_files files;     /* for call_metrics */
    struct buf body;              /* of the answer being written */
    struct arena scratch;         /* of the call being taken */

    /* live.c: what is open. */
    struct map by_id;     /* request id -> struct open */
    struct list open;     /* all of them; the first is looked at next */
    struct list gone;     /* nobody is there, but something of theirs is out */
    struct list dead;     /* to be freed at the end of the turn */
    struct list listings; /* those that the store reads a list for */
    struct list studies;  /* and those that read very many records */
    struct list commissions;
    size_t n_sweep; /* still to be looked at in this sweep */
    struct timer sweep_timer;
    struct loop_job sweep_job, reap_job;
    /* events.c: the result that was written last, as an event. */
    struct calls_result {
        struct buf text;
        struct id message_id;
        int64_t number;
        bool has_decision;
    } result;
    int64_t n_by_kind[4]; /* by enum open_kind */
    int64_t revoked_total;
};

/* ERR_NOMEM; calls_fini must follow all the same. */
MUST_USE enum err calls_init(struct calls *c, const struct calls_opts *opts);

/* After calls_stop, and after the store has given everything back; net, walk,
 * feed and access are still there. */
void calls_fini(struct calls *c);

/* New settings, from now on. */
void calls_set(struct calls *c, const struct calls_settings *s);

/* For net_handler. calls_take answers by the table, now or later; what is not
 * in it is answered with a word of help. */
void calls_take(struct calls *c, uint64_t id, const struct http_request *rq);
void calls_on_gone(struct calls *c, uint64_t id);
void calls_on_room(struct calls *c, uint64_t id);

/* For access_opts: what the token has open ends at the end of the turn.
 * Streams end, and those who wait get 401; or 403, where the token is still
 * good and only allows something else by now. */
void calls_on_revoked(struct calls *c, const struct id *token_id);

/* The server stops: streams end, whoever waits for a task is told 202 with
 * its status (it is kept), and new work is refused. Before net_stop; twice is
 * harmless. */
void calls_stop(struct calls *c);

/* One request on its way through a call. Borrowed for the call. */
enum { CALL_ARGS_MAX = 16, CALL_PARAM_MAX = 128 };

struct call {
    struct calls *calls;
    uint64_t id;
    const struct http_request *rq;
    struct buf *body;     /* empty, to be written into */
    struct caller caller; /* nobody where no token is needed */
    bool is_cross;        /* a page of http.allowedOrigins asks */
    int64_t now_ms;       /* Unix time */
    struct str param;     /* what stands for :name in the path, decoded */
    const char *const *arg_names;
    struct str args[CALL_ARGS_MAX]; /* of the query, decoded; a NULL pointer
                                     * where it was not given */
};

/* Answer with what is in the body. One that did not fit becomes ERR_INTERNAL:
 * half an answer is none. */
void call_answer(struct call *c, int status, struct str type);

/* Answer with an error, whatever is in the body. */
void call_refuse(struct call *c, enum err e, struct str message);

/* The table, for the test that walks it; false past the end. */
struct call_info {
    struct str method, path;
    bool is_public;  /* nobody needs a token */
    bool is_for_any; /* any token will do */
    unsigned scope;  /* else this one is needed */
};

bool calls_row(size_t i, struct call_info *out);

#endif
