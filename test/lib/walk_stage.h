#ifndef TEST_LIB_WALK_STAGE_H
#define TEST_LIB_WALK_STAGE_H

/* The whole walk on a real store, inline, with a clock that is turned by hand:
 * registry, choosing, tasks, delivery, feed and access, all but the sockets. A
 * stage can be taken down and opened again on the same folder. */

#include <fcntl.h>

#include "base/fault.h"
#include "store/internal.h"
#include "test/lib/agents_stage.h"
#include "test/lib/folder.h"
#include "test/t.h"
#include "walk/walk.h"

enum { STAGE_REFERENCE = 24 }; /* texts, where there is a model */

static struct {
    char root[64];
    struct store_folder folder;
    struct clock_fake now;
    struct loop loop;
    struct log log;
    struct store *store;
    struct feed *feed;
    struct access *access;
    struct registry *registry;
    struct learning *learning;
    struct router *router;
    struct walk *walk;
    struct id_maker ids;
    struct rand_seeded seed;
    struct route_settings routing;
    const struct embed_opts *model; /* NULL: none */
    struct embed *embed;
    struct str reference[STAGE_REFERENCE];
    const struct gate_rules *rules; /* NULL: none */
    struct agent agents[8];
    size_t n_agents;
    int n_fatal;
} stage;

static inline void stage_remove(void)
{
    folder_remove(stage.root);
}

static void stage_on_committed(void *ctx, const struct tx *tx)
{
    (void)ctx;
    if (stage.feed)
        feed_committed(stage.feed, tx);
    if (stage.learning)
        learning_committed(stage.learning, tx);
}

static void stage_on_fatal(void *ctx, const struct why *why)
{
    (void)ctx;
    (void)why;
    stage.n_fatal++;
}

static inline struct walk_opts stage_walk_opts(void)
{
    return (struct walk_opts){.loop = &stage.loop,
                              .log = &stage.log,
                              .store = stage.store,
                              .feed = stage.feed,
                              .access = stage.access,
                              .registry = stage.registry,
                              .router = stage.router,
                              .ids = &stage.ids,
                              .seed = {1, 2},
                              .node = STR("here"),
                              .deliver = {.max_in_flight = 1000,
                                          .in_flight = 1000,
                                          .queue = 1000,
                                          .max_attempts = 5,
                                          .retry_ms = 1000,
                                          .retry_max_ms = 1000,
                                          .breaker_failures = 100,
                                          .breaker_pause_ms = 1000,
                                          .wake_ms = 1000,
                                          .max_gathered_bytes = 64 << 20},
                              .limits = {.max_unfinished = 1000,
                                         .max_unfinished_bytes = 64 << 20,
                                         .timeout_ms = 60000},
                              .rules = stage.rules,
                              .delegation = {.timeout_ms = 180000,
                                             .max_depth = 5,
                                             .max_concurrent = 16,
                                             .max_per_root = 256,
                                             .max_open = 1000,
                                             .max_unacked = 1000,
                                             .keep_ms = 86400000},
                              .retention_ms = 30LL * 24 * 3600 * 1000,
                              .retention_rows = 1000000};
}

static inline enum err stage_open_store(struct why *why)
{
    static const struct schema *const schemas[] = {
        &task_schema,       &watch_schema,      &access_schema,
        &registry_schema,   &choose_schema,     &learn_schema,
        &gatekeeper_schema, &delegation_schema, &ledger_schema};
    struct store_opts opts = {.folder = stage.root,
                              .schemas = schemas,
                              .n_schemas = 9,
                              .max_waiting = 1000,
                              .is_inline = true,
                              .loop = &stage.loop,
                              .on_committed = stage_on_committed,
                              .on_fatal = stage_on_fatal};

    return store_open(&stage.store, &opts, why);
}

static void stage_agent_came(void *ctx)
{
    (void)ctx;
    if (stage.walk)
        walk_agent_came(stage.walk);
}

/* The first n_agents of them are the configuration's now. */
static inline enum err stage_configure(struct why *why)
{
    return agents_stage_set(stage.registry, &stage.loop, stage.store,
                            stage.agents, stage.n_agents, why);
}

static inline enum err stage_open_model(struct why *why)
{
    struct str all[EMBED_REFERENCE_MAX];

    CHECK(embed_reference(all) >= STAGE_REFERENCE);
    memcpy(stage.reference, all, sizeof(stage.reference));
    return embed_new(&stage.embed, &stage.loop, &stage.log, NULL, stage.model,
                     why);
}

static inline enum err stage_open_registry(struct why *why)
{
    struct registry_opts opts = {
        .loop = &stage.loop,
        .log = &stage.log,
        .store = stage.store,
        .ids = &stage.ids,
        .seed = {1, 2},
        .limits = {.max_agents = 100, .max_skills = 100},
        .on_new = stage_agent_came,
    };
    enum err e;

    if (stage.model) {
        e = stage_open_model(why);
        if (e)
            return e;
        opts.embed = stage.embed;
        opts.reference = (struct strs){stage.reference, STAGE_REFERENCE};
    }
    stage.registry = registry_new(&opts);
    e = stage.registry ? registry_load(stage.registry, why) : ERR_NOMEM;
    if (!e && stage.model)
        registry_begin(stage.registry);
    return e ? e : stage_configure(why);
}

static bool stage_is_going_on(void *ctx, struct str task_id)
{
    (void)ctx;
    return task_find(walk_tasks(stage.walk), task_id) != NULL;
}

static inline enum err stage_open_walk(struct why *why)
{
    struct embed_stamp stamp = {.dims = 0};
    struct walk_opts opts;
    enum err e;

    if (stage.embed)
        stamp = embed_stamp(stage.embed);
    stage.learning = learning_new(
        &(struct learning_opts){.loop = &stage.loop,
                                .log = &stage.log,
                                .store = stage.store,
                                .is_going_on = stage_is_going_on,
                                .model_hash = str_of(stamp.hash),
                                .quick_dims = stamp.quick_dims,
                                .seed = {1, 2},
                                .settings = {.learn = learn_defaults()}});
    e = stage.learning ? learning_load(stage.learning, why) : ERR_NOMEM;
    if (e)
        return e;
    stage.router = router_new(&(struct router_opts){.loop = &stage.loop,
                                                    .log = &stage.log,
                                                    .store = stage.store,
                                                    .registry = stage.registry,
                                                    .embed = stage.embed,
                                                    .learning = stage.learning,
                                                    .ids = &stage.ids,
                                                    .seed = {1, 2},
                                                    .settings = stage.routing});
    if (!stage.router)
        return ERR_NOMEM;
    opts = stage_walk_opts();

    stage.walk = walk_new(&opts, why);
    return stage.walk ? OK : ERR_IO;
}

/* A start of the server; what cannot be opened is taken down again. */
static inline enum err stage_try_start(struct why *why)
{
    enum err e = stage_open_store(why);

    if (!e) {
        stage.feed = feed_new(&stage.loop, &stage.log, stage.store, why);
        e = stage.feed ? OK : ERR_IO;
    }
    if (!e) {
        stage.access =
            access_new(&(struct access_opts){.log = &stage.log,
                                             .store = stage.store,
                                             .rand = rand_seeded(&stage.seed),
                                             .ids = &stage.ids,
                                             .seed = {1, 2}});
        e = stage.access ? access_load(stage.access, why) : ERR_NOMEM;
    }
    if (!e)
        e = stage_open_registry(why);
    return e ? e : stage_open_walk(why);
}

static inline void stage_stop(void)
{
    if (stage.router)
        router_stop(stage.router);
    if (stage.learning)
        learning_stop(stage.learning);
    if (stage.embed)
        registry_stop(stage.registry);
    store_close(stage.store);
    stage.store = NULL;
    walk_free(stage.walk);
    stage.walk = NULL;
    router_free(stage.router);
    stage.router = NULL;
    learning_free(stage.learning);
    stage.learning = NULL;
    registry_free(stage.registry);
    stage.registry = NULL;
    embed_free(stage.embed);
    stage.embed = NULL;
    access_free(stage.access);
    stage.access = NULL;
    feed_free(stage.feed);
    stage.feed = NULL;
}

static inline void stage_start(void)
{
    struct why why = {""};

    if (stage_try_start(&why) != OK)
        T_FAIL("%s", why.text);
}

static inline void stage_restart(void)
{
    stage_stop();
    stage_start();
}

static inline void stage_ground(void)
{
    struct why why;

    /* In memory where that can be: a sweep syncs thousands of times. */
    snprintf(stage.root, sizeof(stage.root), "%s/signalbox-test-XXXXXX",
             t_above());
    CHECK(mkdtemp(stage.root));
    atexit(stage_remove);
    stage.now = (struct clock_fake){.wall_ms = 1000000, .mono_ms = 5000};
    CHECK(loop_init(&stage.loop, clock_fake(&stage.now)) == OK);
    /* What goes wrong here does so on purpose. */
    log_init(&stage.log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_TEXT, clock_fake(&stage.now));
    stage.seed.state = 7;
    stage.routing.choose = choose_defaults();
    stage.routing.choose.is_auto = stage.routing.choose.is_centred =
        false; /* there are no levels here */
    id_maker_init(&stage.ids, rand_seeded(&stage.seed));
    stage.agents[0] = (struct agent){.name = STR("echo"), .url = STR("echo:")};
    stage.agents[1] =
        (struct agent){.name = STR("slow"), .url = STR("echo:1000")};
    stage.n_agents = 2;
    if (store_folder_open(&stage.folder, str_of(stage.root), &why) != OK)
        T_FAIL("%s", why.text);
}

static inline void stage_open(void)
{
    stage_ground();
    stage_start();
}

static inline void stage_close(void)
{
    stage_stop();
    loop_fini(&stage.loop);
    store_folder_close(&stage.folder);
}

/* Time goes on, on both clocks, and everything that follows from it happens. */
static inline void pass_ms(int64_t ms)
{
    stage.now.wall_ms += ms;
    stage.now.mono_ms += ms;
    for (int i = 0; i < 20; i++)
        loop_turn(&stage.loop);
}

static inline struct caller caller_named(const char *name)
{
    struct caller c = {.role = ROLE_USER, .scopes = SCOPE_SEND | SCOPE_READ};

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    if (strcmp(name, "admin") == 0) {
        c.role = ROLE_ADMIN;
        c.scopes = SCOPE_ALL;
    }
    return c;
}

/* What came of a message. */
struct told {
    bool is_back;
    enum err err;
    struct id task_id, decision_id;
    bool is_repeat;
    struct why why;
    int64_t price, ceiling, needed; /* micro-units */
};

static void stage_on_done(struct msg *m, void *ctx)
{
    struct told *t = ctx;

    CHECK(!t->is_back);
    *t = (struct told){.is_back = true,
                       .err = m->err,
                       .task_id = m->task.id,
                       .decision_id = m->choice.id,
                       .is_repeat = m->task.is_repeat,
                       .why = m->why,
                       .price = m->ledger.price_micros,
                       .ceiling = m->ledger.ceiling_micros,
                       .needed = m->ledger.needed_micros};
    msg_free(m);
}

/* What a test wants to send; empty: left out. */
struct letter {
    const char *from, *to, *text, *conversation, *key, *task_id, *skill;
    bool is_plain;    /* no executor is named */
    bool is_by_agent; /* that is what `from` is */
    int64_t timeout_ms;
    bool has_max_cost;
    int64_t max_cost;
};

static inline struct str or_empty(const char *s)
{
    return str_of(s ? s : "");
}

/* On its way; *t hears of it. */
static inline bool post(struct letter l, struct told *t)
{
    struct caller c = caller_named(l.from ? l.from : "anna");
    struct msg *m;

    if (l.is_by_agent)
        c.role = ROLE_AGENT;
    m = msg_new(&c, loop_wall_ms(&stage.loop));
    *t = (struct told){0};
    if (!m)
        return false;
    m->call.text = str_of(l.text ? l.text : "hello");
    m->call.conversation_id = or_empty(l.conversation);
    m->call.executor = l.is_plain ? STR("") : str_of(l.to ? l.to : "echo");
    m->call.idempotency_key = or_empty(l.key);
    m->call.skill = or_empty(l.skill);
    m->call.task_id = or_empty(l.task_id);
    m->call.priority = PRIORITY_NORMAL;
    m->call.timeout_ms = l.timeout_ms;
    m->call.has_max_cost = l.has_max_cost;
    m->call.max_cost_micros = l.max_cost;
    memcpy(m->call.body_hash, m->call.text.p,
           m->call.text.n < 32 ? m->call.text.n : 32);
    walk_message(stage.walk, m, stage_on_done, t);
    CHECK(!t->is_back); /* never before it has returned */
    return true;
}

/* Sent and answered. */
static inline struct told sent(struct letter l)
{
    struct told t;

    CHECK(post(l, &t));
    pass_ms(0);
    CHECK(t.is_back);
    return t;
}

/* The task as the store has it; status 0: it has none. */
static inline enum task_status stored(const struct id *id, char text[64],
                                      int64_t *attempt)
{
    enum task_status status = 0;
    struct query q;

    query_init(&q, &task_table, 2);
    query_if(&q, TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK(q.n_rows <= 1);
    if (q.rows) {
        status = (enum task_status)row_int(q.rows, TASK_STATUS);
        if (text)
            snprintf(text, 64, "%.*s",
                     STR_ARG(row_str(q.rows, TASK_RESULT_TEXT)));
        if (attempt)
            *attempt = row_int(q.rows, TASK_ATTEMPT);
    }
    query_fini(&q);
    return status;
}

/* What the decision knows of its end: "done in 12 ms, 5 chars" or the
 * error's code instead; "open" while it is not over, "gone" without a row. */
static inline const char *end_known(const struct id *decision, char out[64])
{
    struct query q;
    struct str code;

    query_init(&q, &decision_table, 2);
    query_if(&q, DECISION_ID, IS, value_text(str_of(decision->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK(q.n_rows <= 1);
    if (!q.rows || row_is_null(q.rows, DECISION_LATENCY_MS)) {
        snprintf(out, 64, "%s", q.rows ? "open" : "gone");
    } else {
        code = row_str(q.rows, DECISION_ERROR_CODE);
        snprintf(out, 64, "%.*s in %lld ms, %lld chars",
                 STR_ARG(code.n ? code : STR("done")),
                 (long long)row_int(q.rows, DECISION_LATENCY_MS),
                 (long long)row_int(q.rows, DECISION_ANSWER_CHARS));
    }
    query_fini(&q);
    return out;
}

/* How many entries of that type the feed has about the task; all tasks with
 * NULL. */
static inline size_t told_in_feed(const char *type, const struct id *id)
{
    struct query q;
    size_t n;

    query_init(&q, &feed_table, 1000);
    query_if(&q, FEED_TYPE, IS, value_text(str_of(type)));
    if (id)
        query_if(&q, FEED_TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static inline void stage_on_user(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* A user that agents work for. */
static inline void stage_make_anna(void)
{
    struct access_wish wish = {ROLE_USER, STR(""), STR("")};
    struct access_change c;
    struct why why;
    bool is_back = false;

    access_change_init(&c);
    CHECK(access_user_create(stage.access, &c, STR("anna"), &wish, STR("admin"),
                             1, &why) == OK);
    store_submit(stage.store, &c.tx, stage_on_user, &is_back);
    pass_ms(0);
    CHECK(is_back && access_settle(stage.access, &c, NULL) == OK);
    access_change_fini(&c);
}

#endif
