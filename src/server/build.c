/* Opens the modules from the providers up to the hub, and closes them in the
 * opposite order, however far opening got. Also the callbacks by which lower
 * modules reach higher ones. */
#include "server/build.h"

#include "server/admin_config.h"
#include "server/internal.h"
#include "server/settings.h"
#include "speak/speak.h"
#include "task/task.h"

enum {
    STORE_WAITING_MAX = 16384,
    CHILDREN_MAX = 4096,    /* programs of all agents together */
    FAILED_GRACE_MS = 1000, /* to answer open requests after the store failed */
};

/* Callbacks of net. */

static void on_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct server *s = ctx;

    api_take(&s->api, id, rq);
}

/* Health checks are answered even above the connection limit. */
static bool is_vital(void *ctx, const struct http_request *rq)
{
    (void)ctx;
    return str_eq(rq->path, STR("/healthz")) ||
           str_eq(rq->path, STR("/readyz"));
}

static enum net_memory memory_state(void *ctx)
{
    struct server *s = ctx;
    int64_t left = watch_memory_left(&s->memory, loop_mono_ms(&s->loop));
    int64_t reserve = s->memory.reserve_bytes;

    /* Once short, memory must rise well above the reserve. Otherwise requests
     * would be accepted and rejected in turn. */
    s->memory.is_short =
        left < (s->memory.is_short ? reserve + reserve / 4 : reserve);
    return !s->memory.is_short  ? NET_MEMORY_OK
           : left < reserve / 2 ? NET_MEMORY_OUT
                                : NET_MEMORY_SHORT;
}

static void on_exchange_gone(void *ctx, uint64_t id)
{
    struct server *s = ctx;

    api_on_gone(&s->api, id);
}

static void on_exchange_writable(void *ctx, uint64_t id)
{
    struct server *s = ctx;

    api_on_room(&s->api, id);
}

static struct str word_error(void *ctx, enum err e, struct str what,
                             struct buf *body)
{
    (void)ctx;
    speak_refusal(body, e, what);
    return SPEAK_JSON;
}

/* Stopping. */

static void on_connections_closed(void *ctx)
{
    struct server *s = ctx;

    s->is_over = true;
    loop_stop(&s->loop);
}

void server_stop(struct server *s, int64_t grace_ms)
{
    s->is_stopping = true;
    if (s->walk)
        walk_stopping(s->walk);
    api_stop(&s->api);
    if (s->hub)
        hub_stop(s->hub);
    net_stop(s->net, grace_ms, on_connections_closed, s);
}

/* Callbacks of the other modules. */

static void on_committed(void *ctx, const struct tx *tx)
{
    struct server *s = ctx;

    if (s->feed)
        feed_committed(s->feed, tx);
    if (s->learning)
        learning_committed(s->learning, tx);
}

/* Without the store nothing is durable: answer open requests, and stop. */
static void on_store_failed(void *ctx, const struct why *why)
{
    struct server *s = ctx;

    s->failed = *why;
    log_error(&s->log, "store.failed", LOG_C("because", why->text));
    if (s->is_running)
        server_stop(s, FAILED_GRACE_MS);
}

static void on_revoked(void *ctx, const struct id *token_id)
{
    struct server *s = ctx;

    api_on_revoked(&s->api, token_id);
    if (s->hub)
        hub_on_revoked(s->hub, token_id);
}

/* Shared agents of a user are shared with the user's current org. */
static void on_user_moved(void *ctx, struct str user)
{
    struct server *s = ctx;

    if (s->registry)
        registry_user_moved(s->registry, user);
}

static struct str user_current_org(void *ctx, struct str user)
{
    struct server *s = ctx;

    return access_org_of(s->access, user);
}

static struct name_user name_user_of(const struct server *s, struct str name)
{
    struct access_user known;
    struct name_user u = {.name = name};

    if (name.n && access_user_find(s->access, name, &known)) {
        u.role = known.role;
        u.has_owner = known.owner[0] != '\0';
    }
    return u;
}

static struct names server_names(const struct server *s)
{
    return (struct names){s->config, rules_file_rules(&s->rules_file)};
}

/* A name that rules or settings mention is reserved: they would otherwise mean
 * this user's agent. */
static bool name_is_reserved(void *ctx, struct str name, struct str user)
{
    const struct server *s = ctx;
    struct names n = server_names(s);
    struct name_user u = name_user_of(s, user);

    return names_keep(&n, name, &u);
}

struct names_walk {
    const struct server *s;
    void (*each)(void *ctx, const struct name_taken *t);
    void *ctx;
};

static void check_name_taken(void *ctx, struct str name)
{
    const struct names_walk *k = ctx;
    struct names n = server_names(k->s);
    struct agents all = registry_agents(k->s->registry);
    const struct agent *a = agent_find(&all, name);
    struct name_user holder;
    struct name_taken t;

    if (!a || a->is_configured)
        return;
    holder = name_user_of(k->s, a->creator);
    if (names_taken_by(&n, a->name, &holder, &t))
        k->each(k->ctx, &t);
}

void server_names_taken(const struct server *s,
                        void (*each)(void *ctx, const struct name_taken *t),
                        void *ctx)
{
    struct names n = server_names(s);
    struct names_walk k = {s, each, ctx};

    names_each(&n, check_name_taken, &k);
}

static void log_name_taken(void *ctx, const struct name_taken *t)
{
    struct server *s = ctx;
    struct why why;

    if (t->place == NAME_LISTED)
        return;
    names_say(t, &why);
    log_error(&s->log, "names.taken", LOG_S("agent", t->name),
              LOG_S("by", t->holder), LOG_C("why", why.text));
}

void server_log_names(struct server *s)
{
    if (s->is_open && !s->is_reloading)
        server_names_taken(s, log_name_taken, s);
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

/* The next agent of this name must not inherit anything. */
static void on_agent_removal(void *ctx, struct tx *tx, struct str name,
                             int64_t at_ms)
{
    (void)ctx;
    learning_agent_gone(tx, name, at_ms);
    gatekeeper_agent_gone(tx, name);
}

static void on_agent_removed(void *ctx, struct str name)
{
    struct server *s = ctx;

    if (s->walk)
        walk_agent_gone(s->walk, name);
}

/* An entry may be about an earlier agent of the same name. Other users may not
 * see that one, except for its removal while no new agent has the name. */
static bool feed_entry_is_visible(void *ctx, const struct feed_entry *e,
                                  const struct caller *c)
{
    struct server *s = ctx;
    struct eyes eyes = eyes_of(c, loop_wall_ms(&s->loop));
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, e->agent);

    if (!a)
        return str_eq(e->type, STR("agent.removed"));
    return a->created_ms <= e->at_ms && agent_is_visible(a, &eyes);
}

static enum agent_state agent_current_state(void *ctx, const struct agent *a)
{
    struct server *s = ctx;

    return walk_state(s->walk, a);
}

/* Opening. */

static enum err server_open_store(struct server *s, struct why *why)
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

static enum err server_open_access(struct server *s, struct why *why)
{
    struct access_opts opts = {.log = &s->log,
                               .store = s->store,
                               .rand = rand_system(),
                               .ids = &s->ids,
                               .seed = {s->seed[0], s->seed[1]},
                               .on_revoked = on_revoked,
                               .on_moved = on_user_moved,
                               .ctx = s};

    s->access = access_new(&opts);
    if (!s->access)
        return why_err(why, ERR_NOMEM, "out of memory");
    return access_load(s->access, why);
}

static enum err server_open_keyring(struct server *s, struct why *why)
{
    struct keyring *k = &s->keyring;
    enum err e = keyring_open(k, s->config, true, why);

    if (!e && !k->has_key)
        log_warn(&s->log, "seal.not_sealed", LOG_C("because", k->why_not.text),
                 LOG_C("do", "credentials of cards are readable in the "
                             "database; set seal.keyFile"));
    else if (!e && k->is_new)
        log_info(&s->log, "seal.key_made", LOG_C("file", k->from),
                 LOG_C("do", "keep a copy of it apart from the data"));
    return e;
}

static enum err server_open_registry(struct server *s, struct why *why)
{
    struct registry_opts opts = {
        .loop = &s->loop,
        .log = &s->log,
        .store = s->store,
        .embed = s->providers.embeds[0],
        .reference = {s->reference, embed_reference(s->reference)},
        .ids = &s->ids,
        .folder = s->folder.path,
        .seed = {s->seed[0], s->seed[1]},
        .limits = configured_agents_limits(s->config),
        .org_of = user_current_org,
        .seal = s->keyring.has_key ? &s->keyring.key : NULL,
        .seal_from = s->keyring.from,
        .ignores_wrong_key = s->config->secrets.ignores_wrong_key,
        .is_kept_from = name_is_reserved,
        .on_new = on_new_agent,
        .on_change = on_agents_changed,
        .on_removal = on_agent_removal,
        .on_removed = on_agent_removed,
        .ctx = s};
    enum err e;

    s->registry = registry_new(&opts);
    if (!s->registry)
        return why_err(why, ERR_NOMEM, "out of memory");
    feed_set_sees(s->feed, feed_entry_is_visible, s);
    registry_set_currency(s->registry, s->config->ledger.currency);
    registry_set_review(s->registry, s->config->registry.is_reviewed);
    settings_rank(s, s->config);
    e = registry_load(s->registry, why);
    /* Credentials are sealed with another key, so the new key is useless. */
    if (e && s->keyring.is_new)
        (void)unlink(s->keyring.from);
    if (e)
        return e;
    s->configured_agents = (struct configured_agents){.loop = &s->loop,
                                                      .log = &s->log,
                                                      .store = s->store,
                                                      .registry = s->registry};
    return configured_agents_open(&s->configured_agents, s->config, why);
}

static bool task_is_unfinished(void *ctx, struct str task_id)
{
    struct server *s = ctx;
    const struct task *t = task_find(walk_tasks(s->walk), task_id);

    return t && !task_is_over(t->status);
}

/* An agent that was created after the decision only shares the name of the
 * chosen one. */
static enum learning_standing decision_standing(void *ctx,
                                                const struct decision *d)
{
    struct server *s = ctx;
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, d->agent);
    struct eyes eyes = {.user = d->requester, .org = d->org};

    if (!a || a->created_ms > d->at_ms)
        return STANDS_ALONE;
    return agent_is_outsider(a, &eyes) ? STANDS_OUTSIDE : STANDS_INSIDE;
}

static struct str agent_owner(void *ctx, struct str agent)
{
    struct server *s = ctx;
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, agent);

    return a && a->kind != AGENT_PLATFORM ? a->creator : STR("");
}

static enum err server_open_learning(struct server *s, struct why *why)
{
    struct embed *embed = s->providers.embeds[0];
    struct embed_stamp stamp = {.dims = 0};
    struct learning_opts opts = {.loop = &s->loop,
                                 .log = &s->log,
                                 .store = s->store,
                                 .is_going_on = task_is_unfinished,
                                 .stands = decision_standing,
                                 .owner_of = agent_owner,
                                 .ctx = s,
                                 .seed = {s->seed[0], s->seed[1]},
                                 .settings = settings_learning(s->config)};

    if (embed)
        stamp = embed_stamp(embed);
    opts.model_hash = str_of(stamp.hash);
    opts.quick_dims = stamp.quick_dims;
    s->learning = learning_new(&opts);
    return learning_load(s->learning, why);
}

static enum err server_open_router(struct server *s, struct why *why)
{
    struct router_opts opts = {.loop = &s->loop,
                               .log = &s->log,
                               .store = s->store,
                               .registry = s->registry,
                               .embed = s->providers.embeds[0],
                               .fetch = s->providers.fetch,
                               .learning = s->learning,
                               .ids = &s->ids,
                               .seed = {s->seed[0], s->seed[1]},
                               .settings = settings_route(s->config)};

    s->router = router_new(&opts);
    return s->router ? OK : why_err(why, ERR_NOMEM, "out of memory");
}

static void on_rules_changed(void *ctx)
{
    struct server *s = ctx;

    if (s->walk)
        walk_set_rules(s->walk, rules_file_rules(&s->rules_file));
    notifiers_set(&s->notifiers, rules_file_rules(&s->rules_file));
    server_log_names(s);
}

static enum err server_open_rules(struct server *s, struct why *why)
{
    s->rules_file = (struct rules_file){.loop = &s->loop,
                                        .log = &s->log,
                                        .data = s->folder.path,
                                        .on_change = on_rules_changed,
                                        .ctx = s};
    return rules_file_open(&s->rules_file, s->config, why);
}

static void server_open_notifiers(struct server *s)
{
    struct walk_opts walk = settings_walk(s, s->config);
    struct notifiers_opts opts = {.log = &s->log,
                                  .feed = s->feed,
                                  .fetch = s->providers.fetch,
                                  .folder = s->folder.path,
                                  .seed = {s->seed[0], s->seed[1]},
                                  .tasks = walk_tasks(s->walk),
                                  .gatekeeper = walk_gatekeeper(s->walk),
                                  .retention_ms = walk.retention_ms,
                                  .retention_rows = walk.retention_rows};

    s->notifiers = (struct notifiers){.loop = &s->loop, .store = s->store};
    notifiers_open(&s->notifiers, &opts);
    notifiers_set(&s->notifiers, rules_file_rules(&s->rules_file));
}

static enum err server_open_walk(struct server *s, struct why *why)
{
    struct walk_opts opts;

    s->children = children_new(&s->loop, &s->log, CHILDREN_MAX);
    children_set_launcher(s->children, child_find_launcher());
    s->traces = traces_new(
        &(struct traces_opts){.loop = &s->loop,
                              .log = &s->log,
                              .fetch = s->providers.fetch,
                              .rand = rand_system(),
                              .settings = settings_traces(s->config)});
    opts = settings_walk(s, s->config);
    s->walk = walk_new(&opts, why);
    if (!s->walk)
        return ERR_IO;
    registry_set_state_of(s->registry, agent_current_state, s);
    server_open_notifiers(s);
    return OK;
}

/* Callbacks of the hub's users. */

static enum err hub_accept(void *ctx, uint64_t id,
                           const struct http_request *rq,
                           const struct caller *caller, struct why *why)
{
    struct server *s = ctx;

    return hub_take(s->hub, id, rq, caller, why);
}

static struct hub_stats hub_stats_now(void *ctx)
{
    struct server *s = ctx;

    return hub_stats(s->hub);
}

static void on_hub_recorded(void *ctx, uint64_t receipt, enum err e)
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

static void on_delegated(void *ctx, const struct delegation *d,
                         const struct task *t)
{
    struct server *s = ctx;

    hub_on_delegated(s->hub, d, t);
}

static void on_delegated_chunk(void *ctx, const struct delegation *d,
                               struct str agent, struct str text)
{
    struct server *s = ctx;

    hub_on_delegated_chunk(s->hub, d, agent, text);
}

static void server_open_hub(struct server *s)
{
    struct hub_settings settings = settings_hub(s->config);

    s->hub = hub_new(&s->api, &settings);
    walk_set_hub(s->walk,
                 &(struct walk_hub){.on_recorded = on_hub_recorded,
                                    .on_call = on_child_call,
                                    .on_delegated = on_delegated,
                                    .on_delegated_chunk = on_delegated_chunk,
                                    .ctx = s});
}

static enum err server_open_net(struct server *s, struct why *why)
{
    struct net_opts opts = settings_net(s, s->config);
    struct net_handler handler = {.ctx = s,
                                  .on_request = on_request,
                                  .is_vital = is_vital,
                                  .memory = memory_state,
                                  .on_gone = on_exchange_gone,
                                  .on_room = on_exchange_writable,
                                  .word_error = word_error};
    enum err e;

    s->net = net_new(&s->loop, &s->log, &opts, &handler);
    api_init(&s->api,
             &(struct api_opts){
                 .loop = &s->loop,
                 .log = &s->log,
                 .net = s->net,
                 .walk = s->walk,
                 .store = s->store,
                 .feed = s->feed,
                 .access = s->access,
                 .registry = s->registry,
                 .learning = s->learning,
                 .notifiers = &s->notifiers,
                 .traces = s->traces,
                 .rules_file = &s->rules_file,
                 .fetch = s->providers.fetch,
                 .embeds = s->providers.embeds,
                 .n_embeds = PROVIDERS_EMBEDS,
                 .hub = {hub_accept, hub_stats_now, s},
                 .config = {admin_config_write, admin_config_reload, s},
                 .memory = &s->memory,
                 .seed = {s->seed[0], s->seed[1]},
                 .settings = settings_api(s, s->config),
             });
    s->tls_files =
        (struct tls_files){.loop = &s->loop, .log = &s->log, .net = s->net};
    server_open_hub(s);
    e = tls_files_start(&s->tls_files, s->config, why);
    if (!e && s->config->listen.n)
        e = net_listen(s->net, s->config->listen, false, why);
    if (!e && s->config->tls.listen.n)
        e = net_listen(s->net, s->config->tls.listen, true, why);
    if (!e && s->config->metrics.listen.n)
        e = net_listen_side(s->net, s->config->metrics.listen, "metrics.listen",
                            why);
    if (e) { /* the first address may be open already */
        server_stop(s, 0);
        while (!s->is_over)
            loop_run(&s->loop);
    }
    return e;
}

static enum err server_open_providers(struct server *s, struct why *why)
{
    s->providers = (struct providers){
        .loop = &s->loop, .log = &s->log, .seed = {s->seed[0], s->seed[1]}};
    return providers_open(&s->providers, s->config, s->folder.path, why);
}

enum err server_build(struct server *s, struct why *why)
{
    /* The providers come first: a bad model is reported before anything is
     * changed. The last one listens. */
    static enum err (*const steps[])(struct server *, struct why *) = {
        server_open_providers, server_open_rules,   server_open_store,
        server_open_access,    server_open_keyring, server_open_registry,
        server_open_learning,  server_open_router,  server_open_walk,
        server_open_net,
    };
    enum err e = OK;

    for (size_t i = 0; !e && i < sizeof(steps) / sizeof(steps[0]); i++)
        e = steps[i](s, why);
    s->is_open = !e;
    server_log_names(s);
    return e;
}

/* Closing. */

static void on_module_stopped(void *ctx)
{
    struct server *s = ctx;

    s->has_stopped = true;
    loop_stop(&s->loop);
}

static void await_module_stop(struct server *s)
{
    while (!s->has_stopped)
        loop_run(&s->loop);
    s->has_stopped = false;
}

/* Requests to others end first, and then the store gives back its transactions
 * to modules that still exist. The loop runs meanwhile, so signals still arrive
 * while modules are gone or were never opened. The signal handlers are closed
 * only after the last thread, which a signal would kill. */
void server_close(struct server *s)
{
    s->is_stopping = s->is_over = true;
    if (s->walk)
        walk_stopping(s->walk);
    rules_file_stop(&s->rules_file);
    configured_agents_stop(&s->configured_agents);
    if (s->registry)
        registry_stop(s->registry);
    if (s->router)
        router_stop(s->router);
    if (s->learning)
        learning_stop(s->learning);
    if (s->walk) {
        gatekeeper_stop(walk_gatekeeper(s->walk));
        deliver_stop(walk_deliver(s->walk), on_module_stopped, s);
        await_module_stop(s);
    }
    /* A program that does not end within its grace is killed. */
    if (s->children) {
        children_stop(s->children, on_module_stopped, s);
        await_module_stop(s);
    }
    notifiers_stop(&s->notifiers);
    if (s->traces) { /* after the deliveries, which end spans */
        traces_stop(s->traces, on_module_stopped, s);
        await_module_stop(s);
    }
    providers_close(&s->providers);
    if (s->is_open)
        store_note_stop(s->store);
    store_close(s->store);
    if (s->hub)
        walk_set_hub(s->walk, NULL);
    hub_free(s->hub); /* its requests go with those of the API */
    if (s->net)
        api_fini(&s->api);
    if (s->registry)
        registry_set_state_of(s->registry, NULL, NULL);
    notifiers_close(&s->notifiers);
    walk_free(s->walk);
    traces_free(s->traces);
    rules_file_close(&s->rules_file);
    router_free(s->router);
    learning_free(s->learning);
    children_free(s->children);
    configured_agents_close(&s->configured_agents);
    if (s->feed)
        feed_set_sees(s->feed, NULL, NULL);
    registry_free(s->registry);
    access_free(s->access);
    feed_free(s->feed);
}
