/* One struct holds the house (house.h); server_run builds it bottom-up, turns
 * the loop, and takes down what was built, in the opposite order, from wherever
 * it got. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "house.h"
#include "reload.h"
#include "settings.h"
#include "speak/speak.h"
#include "task/task.h"

enum {
    STORE_WAITING_MAX = 16384,
    CHILDREN_MAX = 4096,    /* programs of all agents together */
    FAILED_GRACE_MS = 1000, /* to tell who waits that the store has failed */
};

const struct schema *const server_schemas[] = {
    &task_schema,     &watch_schema,  &access_schema,
    &registry_schema, &choose_schema, &learn_schema,
};
const size_t server_n_schemas =
    sizeof(server_schemas) / sizeof(server_schemas[0]);

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
    if (s->hub)
        hub_stop(s->hub);
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
    if (s->lessons)
        lessons_committed(s->lessons, tx);
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
    if (s->hub)
        hub_on_revoked(s->hub, token_id);
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

/* Whoever takes the name next begins with nothing. */
static void on_removal(void *ctx, struct tx *tx, struct str name, int64_t at_ms)
{
    (void)ctx;
    lessons_agent_gone(tx, name, at_ms);
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
        reload_now(s);
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
                                 .on_removal = on_removal,
                                 .ctx = s};
    enum err e;

    s->registry = registry_new(&opts);
    if (!s->registry)
        return why_err(why, ERR_NOMEM, "out of memory");
    settings_rank(s, s->config);
    e = registry_load(s->registry, why);
    if (e)
        return e;
    s->roster = (struct roster){.loop = &s->loop,
                                .log = &s->log,
                                .store = s->store,
                                .registry = s->registry};
    return roster_open(&s->roster, s->config, why);
}

static bool is_going_on(void *ctx, struct str task_id)
{
    struct server *s = ctx;
    const struct task *t = task_find(walk_tasks(s->walk), task_id);

    return t && !task_is_over(t->status);
}

/* An agent that was made after the decision only has the name of the one that
 * was chosen. */
static enum lessons_standing stands(void *ctx, const struct decision *d)
{
    struct server *s = ctx;
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, d->agent);
    struct eyes eyes = {.user = d->requester, .org = d->org};

    if (!a || a->created_ms > d->at_ms)
        return STANDS_ALONE;
    return agent_is_outsider(a, &eyes) ? STANDS_OUTSIDE : STANDS_INSIDE;
}

static enum err open_lessons(struct server *s, struct why *why)
{
    struct embed *embed = s->outward.embeds[0];
    struct embed_stamp stamp = {.dims = 0};
    struct lessons_opts opts = {.loop = &s->loop,
                                .log = &s->log,
                                .store = s->store,
                                .is_going_on = is_going_on,
                                .stands = stands,
                                .ctx = s,
                                .seed = {s->seed[0], s->seed[1]},
                                .settings = settings_lessons(s->config)};

    if (embed)
        stamp = embed_stamp(embed);
    opts.model_hash = str_of(stamp.hash);
    s->lessons = lessons_new(&opts);
    if (!s->lessons)
        return why_err(why, ERR_NOMEM, "out of memory");
    return lessons_load(s->lessons, why);
}

static enum err open_router(struct server *s, struct why *why)
{
    struct router_opts opts = {.loop = &s->loop,
                               .log = &s->log,
                               .store = s->store,
                               .registry = s->registry,
                               .embed = s->outward.embeds[0],
                               .fetch = s->outward.fetch,
                               .lessons = s->lessons,
                               .ids = &s->ids,
                               .seed = {s->seed[0], s->seed[1]},
                               .settings = settings_route(s->config)};

    s->router = router_new(&opts);
    return s->router ? OK : why_err(why, ERR_NOMEM, "out of memory");
}

static enum err open_walk(struct server *s, struct why *why)
{
    struct walk_opts opts;

    s->children = children_new(&s->loop, &s->log, CHILDREN_MAX);
    if (!s->children)
        return why_err(why, ERR_NOMEM, "out of memory");
    opts = settings_walk(s, s->config);
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

/* What the hub is told and asked. */

static enum err take_for_hub(void *ctx, uint64_t id,
                             const struct http_request *rq,
                             const struct caller *caller, struct why *why)
{
    struct server *s = ctx;

    return hub_take(s->hub, id, rq, caller, why);
}

static void write_hub_metrics(void *ctx, struct buf *out)
{
    struct server *s = ctx;

    hub_metrics(s->hub, out);
}

static void on_recorded(void *ctx, uint64_t receipt, enum err e)
{
    struct server *s = ctx;

    hub_on_recorded(s->hub, receipt, e);
}

static void on_child_call(void *ctx, uint64_t line, struct str agent,
                          const struct wire_message *m)
{
    struct server *s = ctx;

    hub_on_call(s->hub, line, agent, m);
}

static enum err open_hub(struct server *s)
{
    s->hub = hub_new(&(struct hub_opts){
        .loop = &s->loop,
        .log = &s->log,
        .net = s->net,
        .walk = s->walk,
        .store = s->store,
        .access = s->access,
        .registry = s->registry,
        .throttle = s->calls.throttle,
        .seed = {s->seed[0], s->seed[1]},
        .settings = settings_hub(s->config),
    });
    if (!s->hub)
        return ERR_NOMEM;
    walk_set_hub(s->walk, &(struct walk_hub){.on_recorded = on_recorded,
                                             .on_call = on_child_call,
                                             .ctx = s});
    return OK;
}

static enum err open_net(struct server *s, struct why *why)
{
    struct net_opts opts = settings_net(s, s->config);
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
                                  .lessons = s->lessons,
                                  .fetch = s->outward.fetch,
                                  .embeds = s->outward.embeds,
                                  .n_embeds = OUTWARD_EMBEDS,
                                  .hub = {take_for_hub, write_hub_metrics, s},
                                  .seed = {s->seed[0], s->seed[1]},
                                  .settings = settings_calls(s, s->config),
                              });
    s->certs = (struct certs){.loop = &s->loop, .log = &s->log, .net = s->net};
    if (!e)
        e = open_hub(s);
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
    struct server_listening l = {.url = net_url(s->net),
                                 .tls_url = net_tls_url(s->net),
                                 .folder = s->folder.path,
                                 .first_token = s->first_token.text};

    if (s->opts->on_listening)
        s->opts->on_listening(s->opts->ctx, &l);
    else if (s->opts->json)
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
        e = open_lessons(s, why);
    if (!e)
        e = open_router(s, why);
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
    reload_watch(s);
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

static void on_stopped(void *ctx)
{
    struct server *s = ctx;

    s->has_stopped = true;
    loop_stop(&s->loop);
}

/* Agents' programs end, and what is asked of agents elsewhere. A program that
 * does not want to is killed when its grace is over. */
static void stop_delivery(struct server *s)
{
    if (s->walk) {
        deliver_stop(walk_deliver(s->walk), on_stopped, s);
        while (!s->has_stopped)
            loop_run(&s->loop);
    }
    if (!s->children)
        return;
    s->has_stopped = false;
    children_stop(s->children, on_stopped, s);
    while (!s->has_stopped)
        loop_run(&s->loop);
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
    if (s->router)
        router_stop(s->router);
    if (s->lessons)
        lessons_stop(s->lessons);
    stop_delivery(s);
    outward_close(&s->outward);
    store_close(s->store);
    if (s->net)
        calls_fini(&s->calls);
    if (s->registry)
        registry_set_state_of(s->registry, NULL, NULL);
    if (s->hub)
        walk_set_hub(s->walk, NULL);
    hub_free(s->hub);
    walk_free(s->walk);
    router_free(s->router);
    lessons_free(s->lessons);
    children_free(s->children);
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
    reload_stop(s);
    certs_stop(&s->certs);
    close_signals(s);
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
    reload_log_report(&s, LOG_WARN, &report);
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
