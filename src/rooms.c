/* The rooms, from the store up to the hub: opened one upon the other, closed in
 * the opposite order from wherever it got, and what those below tell those
 * above. */
#include "rooms.h"

#include "house.h"
#include "running.h"
#include "settings.h"
#include "speak/speak.h"
#include "task/task.h"

enum {
    STORE_WAITING_MAX = 16384,
    CHILDREN_MAX = 4096,    /* programs of all agents together */
    FAILED_GRACE_MS = 1000, /* to tell who waits that the store has failed */
};

/* What net tells us. */

static void on_request(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct server *s = ctx;

    calls_take(&s->calls, id, rq);
}

/* Health checks have an answer however many connections there are. */
static bool is_vital(void *ctx, const struct http_request *rq)
{
    (void)ctx;
    return str_eq(rq->path, STR("/healthz")) ||
           str_eq(rq->path, STR("/readyz"));
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

void rooms_stop(struct server *s, int64_t grace_ms)
{
    s->is_stopping = true;
    if (s->walk)
        walk_stopping(s->walk);
    calls_stop(&s->calls);
    if (s->hub)
        hub_stop(s->hub);
    net_stop(s->net, grace_ms, on_all_gone, s);
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
        rooms_stop(s, FAILED_GRACE_MS);
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

static struct name_user user_of(const struct server *s, struct str name)
{
    struct access_user known;
    struct name_user u = {.name = name};

    if (name.n && access_user_find(s->access, name, &known)) {
        u.role = known.role;
        u.has_owner = known.owner[0] != '\0';
    }
    return u;
}

static struct names names_of(const struct server *s)
{
    return (struct names){s->config, rulebook_rules(&s->rulebook)};
}

/* Whoever holds the name now keeps the rules and settings from meaning theirs.
 */
static bool is_kept_from(void *ctx, struct str name, struct str user)
{
    const struct server *s = ctx;
    struct names n = names_of(s);
    struct name_user u = user_of(s, user);

    return names_keep(&n, name, &u);
}

struct taking {
    const struct server *s;
    void (*each)(void *ctx, const struct name_taken *t);
    void *ctx;
};

static void take_name(void *ctx, struct str name)
{
    const struct taking *k = ctx;
    struct names n = names_of(k->s);
    struct agents all = registry_agents(k->s->registry);
    const struct agent *a = agent_find(&all, name);
    struct name_user holder;
    struct name_taken t;

    if (!a || a->is_configured)
        return;
    holder = user_of(k->s, a->creator);
    if (names_taken_by(&n, a->name, &holder, &t))
        k->each(k->ctx, &t);
}

void rooms_names_taken(const struct server *s,
                       void (*each)(void *ctx, const struct name_taken *t),
                       void *ctx)
{
    struct names n = names_of(s);
    struct taking k = {s, each, ctx};

    names_each(&n, take_name, &k);
}

static void log_taken(void *ctx, const struct name_taken *t)
{
    struct server *s = ctx;
    struct why why;

    if (t->place == NAME_LISTED)
        return;
    names_say(t, &why);
    log_error(&s->log, "names.taken", LOG_S("agent", t->name),
              LOG_S("by", t->holder), LOG_C("why", why.text));
}

void rooms_log_names(struct server *s)
{
    if (s->is_open && !s->is_reloading)
        rooms_names_taken(s, log_taken, s);
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
    broker_agent_gone(tx, name);
}

static void on_removed(void *ctx, struct str name)
{
    struct server *s = ctx;

    if (s->walk)
        walk_agent_gone(s->walk, name);
}

/* An entry is of the agent that has the name now, or of one that had it before:
 * that one is nobody's business but whose it was, unless it is the one that
 * was seen by all, and nobody else has the name. */
static bool sees(void *ctx, const struct feed_entry *e, const struct caller *c)
{
    struct server *s = ctx;
    struct eyes eyes = eyes_of(c, loop_wall_ms(&s->loop));
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, e->agent);

    if (!a)
        return str_eq(e->type, STR("agent.removed"));
    return a->created_ms <= e->at_ms && agent_is_visible(a, &eyes);
}

static enum agent_state state_of(void *ctx, const struct agent *a)
{
    struct server *s = ctx;

    return walk_state(s->walk, a);
}

/* Opening. */

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

static enum err open_keyring(struct server *s, struct why *why)
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

static enum err open_registry(struct server *s, struct why *why)
{
    struct registry_opts opts = {
        .loop = &s->loop,
        .log = &s->log,
        .store = s->store,
        .embed = s->outward.embeds[0],
        .reference = {s->reference, embed_reference(s->reference)},
        .ids = &s->ids,
        .folder = s->folder.path,
        .seed = {s->seed[0], s->seed[1]},
        .limits = roster_limits(s->config),
        .org_of = org_of,
        .seal = s->keyring.has_key ? &s->keyring.key : NULL,
        .seal_from = s->keyring.from,
        .ignores_wrong_key = s->config->secrets.ignores_wrong_key,
        .is_kept_from = is_kept_from,
        .on_new = on_new_agent,
        .on_change = on_agents_changed,
        .on_removal = on_removal,
        .on_removed = on_removed,
        .ctx = s};
    enum err e;

    s->registry = registry_new(&opts);
    if (!s->registry)
        return why_err(why, ERR_NOMEM, "out of memory");
    feed_set_sees(s->feed, sees, s);
    registry_set_currency(s->registry, s->config->ledger.currency);
    settings_rank(s, s->config);
    e = registry_load(s->registry, why);
    /* Credentials that another key has sealed: the new key is of no use. */
    if (e && s->keyring.is_new)
        (void)unlink(s->keyring.from);
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

static struct str owner_of(void *ctx, struct str agent)
{
    struct server *s = ctx;
    struct agents all = registry_agents(s->registry);
    const struct agent *a = agent_find(&all, agent);

    return a && a->kind != AGENT_PLATFORM ? a->creator : STR("");
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
                                .owner_of = owner_of,
                                .ctx = s,
                                .seed = {s->seed[0], s->seed[1]},
                                .settings = settings_lessons(s->config)};

    if (embed)
        stamp = embed_stamp(embed);
    opts.model_hash = str_of(stamp.hash);
    opts.quick_dims = stamp.quick_dims;
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

static void on_rules(void *ctx)
{
    struct server *s = ctx;

    if (s->walk)
        walk_set_rules(s->walk, rulebook_rules(&s->rulebook));
    posting_set(&s->posting, rulebook_rules(&s->rulebook));
    rooms_log_names(s);
}

static enum err open_rules(struct server *s, struct why *why)
{
    s->rulebook = (struct rulebook){.loop = &s->loop,
                                    .log = &s->log,
                                    .data = s->folder.path,
                                    .on_change = on_rules,
                                    .ctx = s};
    return rulebook_open(&s->rulebook, s->config, why);
}

static enum err open_walk(struct server *s, struct why *why)
{
    struct walk_opts opts;

    s->children = children_new(&s->loop, &s->log, CHILDREN_MAX);
    if (!s->children)
        return why_err(why, ERR_NOMEM, "out of memory");
    children_set_launcher(s->children, child_find_launcher());
    s->traces = traces_new(
        &(struct traces_opts){.loop = &s->loop,
                              .log = &s->log,
                              .fetch = s->outward.fetch,
                              .rand = rand_system(),
                              .settings = settings_traces(s->config)});
    if (!s->traces)
        return why_err(why, ERR_NOMEM, "out of memory");
    opts = settings_walk(s, s->config);
    s->walk = walk_new(&opts, why);
    if (!s->walk)
        return ERR_IO;
    registry_set_state_of(s->registry, state_of, s);
    return OK;
}

static enum err open_posting(struct server *s, struct why *why)
{
    struct walk_opts walk = settings_walk(s, s->config);
    struct posting_opts opts = {.log = &s->log,
                                .feed = s->feed,
                                .fetch = s->outward.fetch,
                                .folder = s->folder.path,
                                .seed = {s->seed[0], s->seed[1]},
                                .tasks = walk_tasks(s->walk),
                                .broker = walk_broker(s->walk),
                                .retention_ms = walk.retention_ms,
                                .retention_rows = walk.retention_rows};
    enum err e;

    s->posting = (struct posting){.loop = &s->loop, .store = s->store};
    e = posting_open(&s->posting, &opts, why);
    if (!e)
        posting_set(&s->posting, rulebook_rules(&s->rulebook));
    return e;
}

/* One of two addresses may have been taken before the other could not be. */
static void give_up_net(struct server *s)
{
    rooms_stop(s, 0);
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
    walk_set_hub(s->walk,
                 &(struct walk_hub){.on_recorded = on_recorded,
                                    .on_call = on_child_call,
                                    .on_delegated = on_delegated,
                                    .on_delegated_chunk = on_delegated_chunk,
                                    .ctx = s});
    return OK;
}

static enum err open_net(struct server *s, struct why *why)
{
    struct net_opts opts = settings_net(s, s->config);
    struct net_handler handler = {.ctx = s,
                                  .on_request = on_request,
                                  .is_vital = is_vital,
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
                                  .posting = &s->posting,
                                  .traces = s->traces,
                                  .rulebook = &s->rulebook,
                                  .fetch = s->outward.fetch,
                                  .embeds = s->outward.embeds,
                                  .n_embeds = OUTWARD_EMBEDS,
                                  .hub = {take_for_hub, write_hub_metrics, s},
                                  .house = {running_write, running_reload, s},
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
    if (!e && s->config->metrics.listen.n)
        e = net_listen_side(s->net, s->config->metrics.listen, "metrics.listen",
                            why);
    if (e)
        give_up_net(s);
    return e;
}

/* First of all: what is wrong with a model is said before anything is touched.
 */
static enum err open_outward(struct server *s, struct why *why)
{
    s->outward = (struct outward){
        .loop = &s->loop, .log = &s->log, .seed = {s->seed[0], s->seed[1]}};
    return outward_open(&s->outward, s->config, s->folder.path, why);
}

enum err rooms_open(struct server *s, struct why *why)
{
    enum err e = open_outward(s, why);

    if (!e)
        e = open_rules(s, why);
    if (!e)
        e = open_store(s, why);
    if (!e)
        e = open_access(s, why);
    if (!e)
        e = open_keyring(s, why);
    if (!e)
        e = open_registry(s, why);
    if (!e)
        e = open_lessons(s, why);
    if (!e)
        e = open_router(s, why);
    if (!e)
        e = open_walk(s, why);
    if (!e)
        e = open_posting(s, why);
    if (!e)
        e = open_net(s, why);
    s->is_open = !e;
    rooms_log_names(s);
    return e;
}

/* Closing. */

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
        broker_stop(walk_broker(s->walk));
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

/* What was done while it was ending is told too. */
static void stop_traces(struct server *s)
{
    if (!s->traces)
        return;
    s->has_stopped = false;
    traces_stop(s->traces, on_stopped, s);
    while (!s->has_stopped)
        loop_run(&s->loop);
}

/* What is asked of others ends first, and then the store gives back what it
 * still has to those who are still there. The loop turns meanwhile, so signals
 * still come: to rooms that are gone, or were never opened. They are not closed
 * before the last thread is gone, which would be killed by them. */
void rooms_close(struct server *s)
{
    s->is_stopping = s->is_over = true;
    if (s->walk)
        walk_stopping(s->walk);
    rulebook_stop(&s->rulebook);
    roster_stop(&s->roster);
    if (s->registry)
        registry_stop(s->registry);
    if (s->router)
        router_stop(s->router);
    if (s->lessons)
        lessons_stop(s->lessons);
    stop_delivery(s);
    posting_stop(&s->posting);
    stop_traces(s);
    outward_close(&s->outward);
    store_close(s->store);
    if (s->net)
        calls_fini(&s->calls);
    if (s->registry)
        registry_set_state_of(s->registry, NULL, NULL);
    if (s->hub)
        walk_set_hub(s->walk, NULL);
    hub_free(s->hub);
    posting_close(&s->posting);
    walk_free(s->walk);
    traces_free(s->traces);
    rulebook_close(&s->rulebook);
    router_free(s->router);
    lessons_free(s->lessons);
    children_free(s->children);
    roster_close(&s->roster);
    if (s->feed)
        feed_set_sees(s->feed, NULL, NULL);
    registry_free(s->registry);
    access_free(s->access);
    feed_free(s->feed);
}
