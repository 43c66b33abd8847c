/* One struct holds the house; server_run builds it bottom-up, turns the loop,
 * and takes down what was built, in the opposite order, from wherever it got.
 *
 * A reload loads the configuration whole and only then takes it over, so a bad
 * file changes nothing. The file's folder is watched rather than the file:
 * editors and Kubernetes replace files instead of writing to them. Whatever
 * moves in that folder only makes us look whether our file is another one. */
#include "server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access.h"
#include "base/log.h"
#include "base/loop.h"
#include "calls/calls.h"
#include "certs.h"
#include "net/net.h"
#include "outward.h"
#include "registry/registry.h"
#include "roster.h"
#include "speak/speak.h"
#include "store/store.h"
#include "task/task.h"
#include "walk.h"
#include "watch/watch.h"

enum {
    RELOAD_SETTLE_MS = 200, /* writers are done with the file by then */
    STORE_WAITING_MAX = 16384,
    DAY_MS = 24 * 3600 * 1000,
    FAILED_GRACE_MS = 1000, /* to tell who waits that the store has failed */
};

const struct schema *const server_schemas[] = {
    &task_schema, &watch_schema, &access_schema, &registry_schema};
const size_t server_n_schemas =
    sizeof(server_schemas) / sizeof(server_schemas[0]);

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
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct roster roster;
    struct walk *walk;
    struct net *net;
    struct certs certs;
    struct calls calls;
    bool has_first_admin;            /* its tx was given back */
    struct access_token first_token; /* made and to be shown; else empty */
    struct why failed;               /* why the store has; else empty */

    uv_signal_t on_int, on_term, on_hup;
    uv_fs_event_t folder_watch;
    struct timer reload_soon;
    struct stat file_seen; /* the configuration file when it was last read */
    bool is_running;       /* all rooms are there, and calls may come */
    bool is_unwanted;      /* a signal came before that */
    bool is_stopping;
    bool is_over; /* and nobody is connected any more */
};

/* Words on standard error, as JSON where scripts listen. */
static void complain(const struct server_opts *opts, enum err e,
                     struct str message)
{
    struct buf line;

    while (message.n && message.p[message.n - 1] == '\n')
        message.n--;
    if (!opts->json) {
        fprintf(stderr, "signalbox: %.*s\n", STR_ARG(message));
        return;
    }
    buf_init(&line, 16384);
    speak_error(&line, e, message, STR(""));
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&line)));
    buf_fini(&line);
}

/* Fewer connections than configured where there are fewer descriptors: one
 * too many is then told so, instead of waiting for somebody to leave. */
static struct net_opts net_opts_of(const struct server *s,
                                   const struct config *c)
{
    int64_t most = s->file_limit - SERVER_SPARE_FILES;

    if (c->http.max_connections < most)
        most = c->http.max_connections;
    return (struct net_opts){
        .max_connections = (size_t)most,
        .max_connections_per_address =
            (size_t)c->http.max_connections_per_address,
        .exempt = c->rate.exempt.list,
        .n_exempt = c->rate.exempt.n,
        .max_request_line_bytes = (size_t)c->http.max_request_line_bytes,
        .max_header_bytes = (size_t)c->http.max_header_bytes,
        .max_headers = (size_t)c->http.max_headers,
        .max_body_bytes = (size_t)c->http.max_body_bytes,
        .max_unsent_bytes = (size_t)c->http.max_unsent_bytes,
        .max_buffered_bytes = (size_t)c->http.max_buffered_bytes,
        .header_timeout_ms = c->http.header_timeout_ms,
        .body_timeout_ms = c->http.body_timeout_ms,
        .idle_timeout_ms = c->http.idle_timeout_ms,
        .reply_timeout_ms = c->http.reply_timeout_ms,
        .write_timeout_ms = c->http.write_timeout_ms,
        .seed = {s->seed[0], s->seed[1]},
        .ws_max_frame_bytes = (size_t)c->ws.max_frame_bytes,
        .ws_max_message_bytes = (size_t)c->ws.max_message_bytes,
        .ws_timeout_ms = c->ws.timeout_ms,
        .ws_close_timeout_ms = c->ws.close_timeout_ms,
    };
}

/* What net tells us. */

static void on_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct server *s = ctx;

    calls_take(&s->calls, id, rq);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct server *s = ctx;

    calls_on_gone(&s->calls, id);
}

static void on_room(void *ctx, uint64_t id)
{
    struct server *s = ctx;

    calls_on_room(&s->calls, id);
}

static struct str word_error(void *ctx, enum err e, struct str what,
                             struct buf *body)
{
    (void)ctx;
    speak_refusal(body, e, what);
    return SPEAK_JSON;
}

/* Reload. */

/* Whether the file is another one than the last time we looked. One that is
 * not there (any more, or in the middle of being replaced) is no news: the
 * settings stay until there is something to read. */
static bool file_has_changed(struct server *s)
{
    struct stat now = {.st_ino = 0}, was = s->file_seen;
    bool is_there = stat(s->config->path.p, &now) == 0;

    s->file_seen = now;
    return is_there &&
           (now.st_ino != was.st_ino || now.st_size != was.st_size ||
            now.st_mtim.tv_sec != was.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != was.st_mtim.tv_nsec);
}

static void log_report(struct server *s, enum log_level level,
                       const struct config_report *report)
{
    struct str rest = str_of(report->text);

    while (rest.n)
        LOG_AT(&s->log, level, "config.problem",
               LOG_S("problem", str_cut(&rest, '\n')));
}

static struct tasks_limits tasks_limits_of(const struct config *c)
{
    return (struct tasks_limits){
        .max_unfinished = (size_t)c->tasks.max_unfinished,
        .max_unfinished_bytes = (size_t)c->tasks.max_unfinished_bytes,
        .max_per_user = (size_t)c->tasks.max_unfinished_per_user,
        .max_bytes_per_user = (size_t)c->tasks.max_unfinished_bytes_per_user,
        .timeout_ms = c->tasks.timeout_ms,
    };
}

static struct deliver_settings deliver_settings_of(const struct config *c)
{
    (void)c;
    return (struct deliver_settings){
        .max_in_flight = 100 * 1000,
        .in_flight = 64,
        .queue = 10 * 1000,
        .max_attempts = 8,
        .retry_ms = 500,
        .retry_max_ms = 30 * 1000,
        .breaker_failures = 5,
        .breaker_pause_ms = 10 * 1000,
        .wake_ms = 30 * 1000,
        .silence_ms = 60 * 1000,
        .max_gathered_bytes = 256 * 1024 * 1024,
    };
}

static struct walk_opts walk_opts_of(struct server *s, const struct config *c)
{
    return (struct walk_opts){
        .loop = &s->loop,
        .log = &s->log,
        .store = s->store,
        .feed = s->feed,
        .access = s->access,
        .registry = s->registry,
        .ids = &s->ids,
        .seed = {s->seed[0], s->seed[1]},
        .node = c->node,
        .fetch = s->outward.fetch,
        .deliver = deliver_settings_of(c),
        .limits = tasks_limits_of(c),
        .retention_ms = c->retention.days * DAY_MS,
        .retention_rows = c->retention.rows,
    };
}

static void set_ranking(struct server *s, const struct config *c)
{
    struct registry_ranking ranking = {
        .semantic_weight = c->search.semantic_weight,
        .text_weight = c->search.text_weight,
        .fusion =
            c->search.fusion == CONFIG_FUSION_RRF ? INDEX_RRF : INDEX_WEIGHTED,
    };

    registry_set_ranking(s->registry, &ranking);
}

static struct rate_limit per_second(int64_t n, int64_t burst)
{
    return (struct rate_limit){.per_minute = n * 60, .burst = burst};
}

static struct throttle_limits throttle_limits_of(const struct config *c)
{
    return (struct throttle_limits){
        .user = per_second(c->rate.per_user, c->rate.user_burst),
        .address = per_second(c->rate.per_address, c->rate.address_burst),
        .failures = {.per_minute = c->rate.failures_per_minute,
                     .burst = c->rate.failure_burst},
        .exempt = c->rate.exempt.list,
        .n_exempt = c->rate.exempt.n,
    };
}

static struct calls_settings calls_settings_of(const struct server *s,
                                               const struct config *c)
{
    return (struct calls_settings){
        .names = {.hosts = c->http.allowed_hosts.list,
                  .n_hosts = c->http.allowed_hosts.n,
                  .origins = c->http.allowed_origins.list,
                  .n_origins = c->http.allowed_origins.n},
        .heartbeat_ms = c->http.heartbeat_ms,
        .reply_timeout_ms = c->http.reply_timeout_ms,
        .max_open = net_opts_of(s, c).max_connections,
        .limits = throttle_limits_of(c),
    };
}

/* Certificates, what goes outward and the agents can turn a configuration down:
 * they come first, and none is changed when another does. */
static enum err apply(struct server *s, struct config *fresh, struct why *why)
{
    struct net_opts opts = net_opts_of(s, fresh);
    struct walk_opts walk_opts = walk_opts_of(s, fresh);
    struct calls_settings settings = calls_settings_of(s, fresh);
    struct registry_limits limits = roster_limits(fresh);
    struct buf names;
    enum err e = certs_prepare(&s->certs, fresh, why);

    if (!e)
        e = outward_prepare(&s->outward, fresh, why);
    if (!e)
        e = roster_prepare(&s->roster, fresh, why);
    if (e) {
        outward_forget(&s->outward);
        certs_forget(&s->certs);
        return e;
    }
    certs_commit(&s->certs);
    outward_commit(&s->outward, fresh);
    registry_set_limits(s->registry, &limits);
    set_ranking(s, fresh);
    roster_commit(&s->roster, fresh);
    walk_set(s->walk, &walk_opts);
    buf_init(&names, 1024);
    config_restart_needed(s->built_from, fresh, &names);
    if (names.n)
        log_warn(&s->log, "config.restart_needed",
                 LOG_S("settings", buf_str(&names)));
    buf_fini(&names);
    log_set(&s->log, (enum log_level)fresh->log.level,
            (enum log_format)fresh->log.format);
    net_set_opts(s->net, &opts);
    calls_set(&s->calls, &settings);
    if (s->config != s->built_from)
        config_free(s->config);
    s->config = fresh;
    s->calls.reloads_total++;
    log_info(&s->log, "config.reloaded",
             LOG_S("from", fresh->has_file ? fresh->path : STR("no file")));
    return OK;
}

static void reload(struct server *s)
{
    struct config_report report;
    struct config *fresh;
    struct why why;

    if (s->is_stopping)
        return;                /* for rooms that are about to go */
    (void)file_has_changed(s); /* seen, before it is read */
    fresh = config_load(&s->opts->source, &report);
    log_report(s, fresh ? LOG_WARN : LOG_ERROR, &report);
    if (fresh && apply(s, fresh, &why) == OK)
        return;
    if (fresh) {
        log_error(&s->log, "config.problem", LOG_C("problem", why.text));
        config_free(fresh);
    }
    s->calls.reloads_failed_total++;
    log_error(&s->log, "config.not_reloaded",
              LOG_C("because", "it has problems; the one before stays"));
}

static void on_reload_soon(struct timer *t)
{
    struct server *s = LIST_OF(t, struct server, reload_soon);

    if (file_has_changed(s))
        reload(s);
}

static void on_folder_change(uv_fs_event_t *h, const char *name, int events,
                             int status)
{
    struct server *s = h->data;

    (void)name;
    (void)events;
    /* Not later because of more to come: a folder may never be quiet. */
    if (status == 0 && !timer_is_set(&s->reload_soon) &&
        loop_timer_set(&s->loop, &s->reload_soon, RELOAD_SETTLE_MS) != OK)
        log_warn(&s->log, "config.not_watched",
                 LOG_C("because", "out of memory; SIGHUP still works"));
}

static void watch_file(struct server *s)
{
    char folder[PATH_MAX];
    struct str parent = str_parent(s->config->path);

    s->reload_soon.fire = on_reload_soon;
    s->folder_watch.data = s;
    snprintf(folder, sizeof(folder), "%.*s", STR_ARG(parent));
    (void)file_has_changed(s);
    if (uv_fs_event_start(&s->folder_watch, on_folder_change, folder, 0) != 0)
        log_warn(&s->log, "config.not_watched", LOG_C("folder", folder),
                 LOG_C("because", "it cannot be; SIGHUP still works"));
}

/* Stopping. */

static void on_all_gone(void *ctx)
{
    struct server *s = ctx;

    s->is_over = true;
    loop_stop(&s->loop);
}

static void stop_within(struct server *s, int64_t grace_ms)
{
    s->is_stopping = true;
    calls_stop(&s->calls);
    net_stop(s->net, grace_ms, on_all_gone, s);
}

/* Asked a second time, nobody is waited for any more. */
static void begin_to_stop(struct server *s)
{
    stop_within(s, s->is_stopping ? 0 : s->config->stop_grace_ms);
}

/* What the rooms below tell us. */

static void on_committed(void *ctx, const struct tx *tx)
{
    struct server *s = ctx;

    if (s->feed)
        feed_committed(s->feed, tx);
}

/* Nothing can be promised any more: tell who waits, and end. */
static void on_store_failed(void *ctx, const struct why *why)
{
    struct server *s = ctx;

    s->failed = *why;
    log_error(&s->log, "store.failed", LOG_C("because", why->text));
    if (s->is_running)
        stop_within(s, FAILED_GRACE_MS);
}

static void on_revoked(void *ctx, const struct id *token_id)
{
    struct server *s = ctx;

    calls_on_revoked(&s->calls, token_id);
}

/* What a user shares is shared with the org they are in. */
static void on_moved(void *ctx, struct str user)
{
    struct server *s = ctx;

    if (s->registry)
        registry_user_moved(s->registry, user);
}

static struct str org_of(void *ctx, struct str user)
{
    struct server *s = ctx;

    return access_org_of(s->access, user);
}

static void on_new_agent(void *ctx)
{
    struct server *s = ctx;

    if (s->walk)
        walk_agent_came(s->walk);
}

static void on_agents_changed(void *ctx)
{
    struct server *s = ctx;

    if (s->walk)
        walk_agents_changed(s->walk);
}

static enum agent_state state_of(void *ctx, const struct agent *a)
{
    struct server *s = ctx;

    return walk_state(s->walk, a);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct server *s = h->data;

    if (s->is_over)
        return; /* it ends already */
    if (!s->is_running) {
        /* Half a house can neither stop nor reload. */
        s->is_unwanted = s->is_unwanted || signum != SIGHUP;
        return;
    }
    if (signum == SIGHUP) {
        reload(s);
        return;
    }
    log_info(&s->log, "server.stopping", LOG_I("signal", signum));
    begin_to_stop(s);
}

/* Building. */

/* As many descriptors as we may have. */
static enum err raise_file_limit(struct server *s, struct why *why)
{
    int64_t wanted = s->config->http.max_connections + SERVER_SPARE_FILES;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return why_err(why, ERR_IO, "cannot read the limit of open files: %s",
                       strerror(errno));
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        getrlimit(RLIMIT_NOFILE, &files);
    s->file_limit =
        files.rlim_cur < INT32_MAX ? (int64_t)files.rlim_cur : INT32_MAX;
    if (s->file_limit <= SERVER_SPARE_FILES)
        return why_err(why, ERR_NOT_ALLOWED,
                       "only %lld files may be open, and at least %d are "
                       "needed: raise the limit (ulimit -n)",
                       (long long)s->file_limit, SERVER_SPARE_FILES + 1);
    if (s->file_limit < wanted)
        log_warn(&s->log, "server.few_files", LOG_I("limit", s->file_limit),
                 LOG_I("wanted", wanted),
                 LOG_C("do", "raise the limit (ulimit -n) or lower "
                             "http.maxConnections"));
    return OK;
}

/* What grows with what others send. Rather say so now than be ended in
 * the middle of a busy day. */
static void warn_of_memory(struct server *s)
{
    int64_t most = watch_memory_bytes("");
    int64_t wanted =
        s->config->http.max_buffered_bytes +
        s->config->tasks.max_unfinished_bytes +
        s->config->embed.max_waiting_bytes * (s->config->embed.second ? 2 : 1);

    if (wanted > most)
        log_warn(&s->log, "server.little_memory", LOG_I("bytes", most),
                 LOG_I("wanted", wanted),
                 LOG_C("do", "lower http.maxBufferedBytes, "
                             "tasks.maxUnfinishedBytes or "
                             "embed.maxWaitingBytes, or allow it more"));
}

static enum err open_store(struct server *s, struct why *why)
{
    struct store_opts opts = {.folder = s->folder.path,
                              .schemas = server_schemas,
                              .n_schemas = server_n_schemas,
                              .max_waiting = STORE_WAITING_MAX,
                              .loop = &s->loop,
                              .on_committed = on_committed,
                              .on_fatal = on_store_failed,
                              .ctx = s};
    enum err e = store_open(&s->store, &opts, why);

    if (e)
        return e;
    s->feed = feed_new(&s->loop, &s->log, s->store, why);
    return s->feed ? OK : ERR_IO;
}

static enum err open_access(struct server *s, struct why *why)
{
    struct access_opts opts = {.log = &s->log,
                               .store = s->store,
                               .rand = rand_system(),
                               .ids = &s->ids,
                               .seed = {s->seed[0], s->seed[1]},
                               .on_revoked = on_revoked,
                               .on_moved = on_moved,
                               .ctx = s};

    s->access = access_new(&opts);
    if (!s->access)
        return why_err(why, ERR_NOMEM, "out of memory");
    return access_load(s->access, why);
}

static enum err open_registry(struct server *s, struct why *why)
{
    struct registry_opts opts = {.loop = &s->loop,
                                 .log = &s->log,
                                 .store = s->store,
                                 .embed = s->outward.embeds[0],
                                 .ids = &s->ids,
                                 .folder = s->folder.path,
                                 .seed = {s->seed[0], s->seed[1]},
                                 .limits = roster_limits(s->config),
                                 .org_of = org_of,
                                 .on_new = on_new_agent,
                                 .on_change = on_agents_changed,
                                 .ctx = s};
    enum err e;

    s->registry = registry_new(&opts);
    if (!s->registry)
        return why_err(why, ERR_NOMEM, "out of memory");
    set_ranking(s, s->config);
    e = registry_load(s->registry, why);
    if (e)
        return e;
    s->roster = (struct roster){.loop = &s->loop,
                                .log = &s->log,
                                .store = s->store,
                                .registry = s->registry};
    return roster_open(&s->roster, s->config, why);
}

static enum err open_walk(struct server *s, struct why *why)
{
    struct walk_opts opts = walk_opts_of(s, s->config);

    s->walk = walk_new(&opts, why);
    if (!s->walk)
        return ERR_IO;
    registry_set_state_of(s->registry, state_of, s);
    return OK;
}

/* One of two addresses may have been taken before the other could not be. */
static void give_up_net(struct server *s)
{
    stop_within(s, 0);
    while (!s->is_over)
        loop_run(&s->loop);
}

static enum err open_net(struct server *s, struct why *why)
{
    struct net_opts opts = net_opts_of(s, s->config);
    struct net_handler handler = {.ctx = s,
                                  .on_request = on_request,
                                  .on_gone = on_gone,
                                  .on_room = on_room,
                                  .word_error = word_error};
    enum err e;

    s->net = net_new(&s->loop, &s->log, &opts, &handler);
    if (!s->net)
        return why_err(why, ERR_NOMEM, "out of memory");
    e = calls_init(&s->calls, &(struct calls_opts){
                                  .loop = &s->loop,
                                  .log = &s->log,
                                  .net = s->net,
                                  .walk = s->walk,
                                  .store = s->store,
                                  .feed = s->feed,
                                  .access = s->access,
                                  .registry = s->registry,
                                  .fetch = s->outward.fetch,
                                  .embeds = s->outward.embeds,
                                  .n_embeds = OUTWARD_EMBEDS,
                                  .seed = {s->seed[0], s->seed[1]},
                                  .settings = calls_settings_of(s, s->config),
                              });
    s->certs = (struct certs){.loop = &s->loop, .log = &s->log, .net = s->net};
    if (e)
        why_err(why, e, "out of memory");
    else
        e = certs_start(&s->certs, s->config, why);
    if (!e && s->config->listen.n)
        e = net_listen(s->net, s->config->listen, false, why);
    if (!e && s->config->tls.listen.n)
        e = net_listen(s->net, s->config->tls.listen, true, why);
    if (e)
        give_up_net(s);
    return e;
}

static void on_first_admin(struct tx *tx, void *ctx)
{
    struct server *s = ctx;

    (void)tx;
    s->has_first_admin = true;
    loop_stop(&s->loop);
}

/* The first start: somebody must be able to call. Not before we listen: a
 * token that nobody was shown would be of no use. */
static enum err make_first_admin(struct server *s, struct why *why)
{
    struct access_change c;
    enum err e;

    if (!access_is_new(s->access))
        return OK;
    access_change_init(&c);
    e = access_first_admin(s->access, &c, loop_wall_ms(&s->loop),
                           &s->first_token, why);
    if (!e) {
        store_submit(s->store, &c.tx, on_first_admin, s);
        while (!s->has_first_admin)
            loop_run(&s->loop);
        e = access_settle(s->access, &c, why);
    }
    access_change_fini(&c);
    return e;
}

static void open_signals(struct server *s)
{
    const struct {
        uv_signal_t *handle;
        int signum;
    } all[] = {
        {&s->on_int, SIGINT}, {&s->on_term, SIGTERM}, {&s->on_hup, SIGHUP}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        uv_signal_init(&s->loop.uv, all[i].handle);
        all[i].handle->data = s;
        uv_signal_start(all[i].handle, on_signal, all[i].signum);
    }
    uv_fs_event_init(&s->loop.uv, &s->folder_watch);
}

static void say_listening_to_people(const struct server *s)
{
    const char *plain = net_url(s->net), *tls = net_tls_url(s->net);

    printf("Signalbox " SIGNALBOX_VERSION " is listening on %s%s%s\n"
           "Data is in %s. Stop it with Ctrl-C.\n",
           plain, *plain && *tls ? " and " : "", tls, s->folder.path);
    if (s->first_token.text[0])
        printf("\nThis is the first start here. The token of the user admin, "
               "shown this once:\n\n"
               "    export SIGNALBOX_TOKEN=%s\n\n",
               s->first_token.text);
}

static void say_listening_to_programs(const struct server *s)
{
    const char *plain = net_url(s->net), *tls = net_tls_url(s->net);

    printf("{\"event\":\"listening\",\"url\":\"%s\"", *plain ? plain : tls);
    if (*tls)
        printf(",\"tls_url\":\"%s\"", tls);
    if (s->first_token.text[0])
        printf(",\"token\":\"%s\"", s->first_token.text);
    printf("}\n");
}

/* Somebody may wait for this line: not being able to say it is a failure. */
static enum err say_listening(const struct server *s, struct why *why)
{
    if (s->opts->json)
        say_listening_to_programs(s);
    else
        say_listening_to_people(s);
    if (fflush(stdout) == 0)
        return OK;
    return why_err(why, ERR_IO,
                   "cannot say on standard output where it listens: %s",
                   strerror(errno));
}

/* First of all: what is wrong with a model is said before anything is touched.
 */
static enum err open_outward(struct server *s, struct why *why)
{
    s->outward = (struct outward){
        .loop = &s->loop, .log = &s->log, .seed = {s->seed[0], s->seed[1]}};
    return outward_open(&s->outward, s->config, s->folder.path, why);
}

static enum err open_rooms(struct server *s, struct why *why)
{
    enum err e = open_outward(s, why);

    if (!e)
        e = open_store(s, why);
    if (!e)
        e = open_access(s, why);
    if (!e)
        e = open_registry(s, why);
    if (!e)
        e = open_walk(s, why);
    if (!e)
        e = open_net(s, why);
    return e;
}

/* Users never all go: where there are none, nothing was ever promised, or the
 * database that it was written in is not there any more. */
static void warn_of_loss(struct server *s)
{
    if (s->folder.was_used && access_is_new(s->access))
        log_warn(&s->log, "store.began_anew", LOG_C("folder", s->folder.path),
                 LOG_C("because", "the database was empty or missing, though "
                                  "this folder has been used before"),
                 LOG_C("do", "if that was not meant, stop the server and go "
                             "back to a backup: signalbox restore FILE"));
}

static enum err run(struct server *s, struct why *why)
{
    enum err e;

    s->is_running = true;
    watch_file(s);
    warn_of_loss(s);
    e = make_first_admin(s, why);
    if (!e)
        store_folder_set_used(&s->folder);
    if (!e)
        e = say_listening(s, why);
    if (e || s->is_unwanted || s->failed.text[0])
        begin_to_stop(s);
    if (!s->is_stopping) {
        outward_greet(&s->outward);
        registry_begin(s->registry);
    }
    while (!s->is_over)
        loop_run(&s->loop);
    if (!e && s->failed.text[0])
        e = why_err(why, ERR_IO, "%s", s->failed.text);
    log_info(&s->log, "server.stopped");
    return e;
}

/* What is asked of others ends first, and then the store gives back what it
 * still has to those who are still there. The loop turns meanwhile, so signals
 * still come: to rooms that are gone, or were never opened. They are not closed
 * before the last thread is gone, which would be killed by them. */
static void close_rooms(struct server *s)
{
    s->is_stopping = s->is_over = true;
    roster_stop(&s->roster);
    if (s->registry)
        registry_stop(s->registry);
    outward_close(&s->outward);
    store_close(s->store);
    if (s->net)
        calls_fini(&s->calls);
    if (s->registry)
        registry_set_state_of(s->registry, NULL, NULL);
    walk_free(s->walk);
    roster_close(&s->roster);
    registry_free(s->registry);
    access_free(s->access);
    feed_free(s->feed);
}

/* From here on a further signal would meet nobody, and its default is to
 * kill; we are about to end anyway, and well. */
static void close_signals(struct server *s)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    uv_close((uv_handle_t *)&s->on_int, NULL);
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_hup, NULL);
}

static void take_down_loop(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->reload_soon);
    certs_stop(&s->certs);
    close_signals(s);
    uv_close((uv_handle_t *)&s->folder_watch, NULL);
    net_free(s->net);
    loop_turn(&s->loop);
    loop_fini(&s->loop);
}

/* The house on its ground: configuration, log, folder, loop, then the rest. */
static enum err build_and_run(struct server *s, struct why *why)
{
    enum err e = raise_file_limit(s, why);

    warn_of_memory(s);
    if (!e)
        e = store_folder_open(&s->folder, s->config->data, why);
    if (e)
        return e;
    if (s->folder.is_shared)
        log_warn(&s->log, "store.folder_is_shared",
                 LOG_C("folder", s->folder.path),
                 LOG_C("do", "let nobody else write to it: chmod 700"));
    e = loop_init(&s->loop, clock_system());
    if (e) {
        why_err(why, e, "cannot make an event loop");
    } else {
        open_signals(s);
        e = open_rooms(s, why);
        if (!e)
            e = run(s, why);
        close_rooms(s);
        take_down_loop(s);
    }
    store_folder_close(&s->folder);
    return e;
}

enum exit_status server_run(const struct server_opts *opts)
{
    struct server s = {.opts = opts};
    struct config_report report;
    struct why why = {""};
    enum err e;

    /* Both would kill us; as errors of the write they can be dealt with. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    s.config = s.built_from = config_load(&opts->source, &report);
    if (!s.config) {
        complain(opts, ERR_BAD_CONFIG, str_of(report.text));
        return err_row(ERR_BAD_CONFIG)->exit_status;
    }
    log_init(&s.log, STDERR_FILENO, (enum log_level)s.config->log.level,
             (enum log_format)s.config->log.format, clock_system());
    log_report(&s, LOG_WARN, &report);
    s.seed[0] = rand_u64(rand_system());
    s.seed[1] = rand_u64(rand_system());
    id_maker_init(&s.ids, rand_system());
    e = build_and_run(&s, &why);
    if (e)
        complain(opts, e, str_of(why.text));
    if (s.config != s.built_from)
        config_free(s.config);
    config_free(s.built_from);
    return e ? err_row(e)->exit_status : EXIT_DONE;
}
