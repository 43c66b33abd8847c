#ifndef API_API_H
#define API_API_H

/* api: the HTTP API. One table maps path and method to a function and the scope
 * it needs; one file per noun has the functions. request.h has what is not
 * answered at once, and request_http.c its HTTP side.
 *
 * Across turns a request and a task are referred to by id: either may be gone.
 *
 * Owns the buffer for answers, and the open requests. Borrows the modules in
 * its options. Threads: loop thread only. */

#include "access/access.h"
#include "api/throttle.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "embed/embed.h"
#include "learn/learning.h"
#include "net/client/fetch.h"
#include "net/server/net.h"
#include "registry/registry.h"
#include "store/store.h"
#include "walk/walk.h"
#include "watch/watch.h"

/* Settings that a reload may change. */
struct api_settings {
    struct access_names names; /* borrowed until the next ones */
    int64_t heartbeat_ms;      /* of event streams */
    int64_t
        reply_timeout_ms; /* no request waits longer than nine tenths of it */
    size_t max_open;      /* waiting requests and streams; one per connection is
                             enough */
    int64_t vector_timeout_ms; /* for the text of a verdict; zero: no limit */
    struct throttle_limits limits;
    bool figures_need_token; /* /metrics needs a token, except at metrics.listen
                              */
    struct {
        bool is_on;        /* browsers get the dashboard at / */
        struct str folder; /* ends in NUL; borrowed until the next ones; empty:
                            * the files in the binary */
    } web;
};

/* Takes over an authenticated request for /hub: hub_take. On an error the
 * caller answers. NULL: there is no hub. */
struct api_hub {
    enum err (*take)(void *ctx, uint64_t id, const struct http_request *rq,
                     const struct caller *caller, struct why *why);
    struct hub_stats (*stats)(void *ctx); /* for /metrics */
    void *ctx;
};

/* The configuration: admin_config_write and admin_config_reload. Functions may
 * be NULL. */
struct api_config {
    /* Write it as members of an open object. */
    void (*write)(void *ctx, struct json_out *o);
    /* Read it again and apply it: writes the outcome as members; or
     * ERR_BAD_CONFIG, with the problems as members and nothing changed. */
    enum err (*reload)(void *ctx, struct json_out *o, struct why *why);
    void *ctx;
};

struct api_opts {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct walk *walk;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct learning *learning;
    struct notifiers *notifiers;
    struct traces *traces;
    const struct rules_file *rules_file;
    /* For their metrics; each may be NULL. */
    struct fetch *fetch;
    struct embed *const *embeds;
    size_t n_embeds;
    struct api_hub hub;
    struct api_config config;
    struct watch_memory *memory; /* NULL: lists are read whatever is left */
    uint64_t seed[2];
    struct api_settings settings;
};

struct api {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct walk *walk;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct learning *learning;
    struct notifiers *notifiers;
    struct traces *traces;
    const struct rules_file *rules_file;
    struct fetch *fetch;
    struct embed *const *embeds;
    size_t n_embeds;
    struct throttle *throttle;
    struct api_hub hub;
    struct api_config config;
    struct watch_memory *memory;
    struct api_settings settings;
    int64_t started_mono_ms;
    bool is_ready;                /* false from api_stop on */
    int64_t reloads_total;        /* configurations applied while running */
    int64_t reloads_failed_total; /* and rejected */
    struct watch_files files;     /* for call_metrics */
    struct buf body;              /* the answer being written */
    struct buf openapi;           /* of call_openapi; empty: not yet made */
    struct arena scratch;         /* for the call being handled */

    /* request_http.c: its open requests. */
    struct map by_id; /* id of net -> struct request */
    struct list open; /* all of them; the first is checked next */
    /* request.c: requests of all front ends that have ended: the store or the
     * walk has something of them; or freed at the end of the turn. */
    struct list gone, dead;
    struct list listings; /* those that read a list */
    struct list studies;  /* those that read very many records */
    size_t n_sweep;       /* still to be checked in this sweep */
    struct timer sweep_timer;
    struct loop_job sweep_job, reap_job;
    /* events.c: the last result that was written, as an event. */
    struct api_result {
        struct buf text;
        struct id message_id;
        int64_t number;
        bool has_decision;
    } result;
    int64_t n_by_kind[4]; /* by enum request_kind */
    int64_t revoked_total;
};

/* opts are copied. */
void api_init(struct api *c, const struct api_opts *opts);

/* Call after api_stop, and after the store has given everything back; net,
 * walk, feed and access still exist. */
void api_fini(struct api *c);

/* Apply new settings. */
void api_set(struct api *c, const struct api_settings *s);

/* For net_handler. api_take answers now or later; an unknown path gets an error
 * that helps. */
void api_take(struct api *c, uint64_t id, const struct http_request *rq);
void api_on_gone(struct api *c, uint64_t id);
void api_on_room(struct api *c, uint64_t id);

/* For access_opts: the open requests of the token end at the end of the turn.
 * Streams end, and waiting requests get 401; or 403 if the token is still valid
 * but its role has changed. */
void api_on_revoked(struct api *c, const struct id *token_id);

/* The server stops: streams end, requests that wait for a task get 202 with its
 * status (the task is kept), and new work is rejected. Call before net_stop;
 * calling twice is harmless. */
void api_stop(struct api *c);

/* One request to a function of the table. Borrowed for the call. */
enum { CALL_ARGS_MAX = 16, CALL_PARAM_MAX = 128 };

struct call {
    struct api *api;
    uint64_t id;
    const struct http_request *rq;
    struct buf *body;     /* empty; the answer goes here */
    struct caller caller; /* zeroed where no token is needed */
    bool is_cross;        /* it comes from a page of http.allowedOrigins */
    int64_t now_ms;       /* Unix time */
    struct str param;     /* the part of the path for :name, decoded */
    const struct field *arg_rows;   /* of the query; NULL: none */
    struct str args[CALL_ARGS_MAX]; /* decoded and checked; NULL: not given */
};

/* Answer with the body. A body that exceeds its limit becomes an error: half an
 * answer is none. call_answer_json adds a newline. */
void call_answer(struct call *c, int status, struct str type);
void call_answer_json(struct call *c, int status);

/* Answer with an error instead of the body. call_bad_request returns false. */
void call_refuse(struct call *c, enum err e, struct str message);
bool call_bad_request(struct call *c, const char *message);

/* The tables of calls in docs/protocol.md, in Markdown. */
void api_write_reference(struct buf *out);

#endif
