#ifndef TEST_LIB_HIRE_STAGE_H
#define TEST_LIB_HIRE_STAGE_H

/* Agents that give work to each other, on the stage of the walk: a to f have
 * lines to us and do nothing by themselves; "prog" is a program that would not
 * come back. What the hub is told is kept. */

#include "delegation/internal.h"
#include "test/lib/walk_stage.h"

enum { DELEGATION_LINES = 6, DELEGATION_HEARD_MAX = 512 };

struct delegation_heard {
    struct id key;
    enum task_status status;
    int64_t turn;
    char text[64];
};

static struct {
    int max_attempts; /* of deliver; zero: the default */
    struct delegation_settings settings;
    uint64_t line[DELEGATION_LINES];
    struct delegation_heard heard[DELEGATION_HEARD_MAX];
    size_t n_heard;
} firm;

static enum err firm_on_send(void *ctx, struct str message)
{
    (void)ctx;
    (void)message;
    return OK;
}

static void firm_on_taken_over(void *ctx)
{
    (void)ctx;
}

static void firm_on_delegated(void *ctx, const struct delegation *d,
                              const struct task *t)
{
    struct delegation_heard *h = &firm.heard[firm.n_heard++];

    CHECK(ctx == &firm && firm.n_heard < DELEGATION_HEARD_MAX);
    CHECK(task_is_over(t->status) && d->state == DELEGATION_READY);
    CHECK_STR(str_of(t->id.text), d->task_id.text);
    h->key = d->key;
    h->status = t->status;
    h->turn = d->turn;
    snprintf(h->text, sizeof(h->text), "%.*s", STR_ARG(t->result.text));
}

static inline struct delegations *firm_hires(void)
{
    return walk_delegations(stage.walk);
}

static inline void firm_set(void)
{
    struct walk_opts opts = stage_walk_opts();

    opts.delegation = firm.settings;
    if (firm.max_attempts)
        opts.deliver.max_attempts = firm.max_attempts;
    walk_set(stage.walk, &opts);
}

static inline void firm_attach(int i)
{
    static const struct line_ops ops = {.send = firm_on_send,
                                        .taken_over = firm_on_taken_over};
    char name[2] = {(char)('a' + i), '\0'};
    struct agents all = registry_agents(stage.registry);

    CHECK(deliver_attach(walk_deliver(stage.walk),
                         agent_find(&all, str_of(name)), &ops, NULL,
                         &firm.line[i]) == OK);
}

/* After a start: the lines are there, and we hear what is told. */
static inline void firm_come(void)
{
    walk_set_hub(
        stage.walk,
        &(struct walk_hub){.on_delegated = firm_on_delegated, .ctx = &firm});
    firm_set();
    for (int i = 0; i < DELEGATION_LINES; i++)
        firm_attach(i);
}

static inline void firm_ground(void)
{
    static char names[DELEGATION_LINES][2], urls[DELEGATION_LINES][32];

    memset(&firm, 0, sizeof(firm));
    stage_ground();
    firm.settings = stage_walk_opts().delegation;
    for (int i = 0; i < DELEGATION_LINES; i++) {
        names[i][0] = (char)('a' + i);
        snprintf(urls[i], sizeof(urls[i]), "ws-agent://%s", names[i]);
        stage.agents[i] =
            (struct agent){.name = str_of(names[i]), .url = str_of(urls[i])};
    }
    stage.agents[DELEGATION_LINES] =
        (struct agent){.name = STR("prog"), .url = STR("echo:3600000")};
    stage.n_agents = DELEGATION_LINES + 1;
    for (size_t i = 0; i < stage.n_agents; i++)
        stage.agents[i].delegation.max_concurrent =
            stage.agents[i].delegation.max_depth = -1;
}

static inline void firm_open(void)
{
    firm_ground();
    stage_start();
    firm_come();
}

static inline void firm_restart(void)
{
    stage_restart();
    firm_come();
}

static inline void firm_close(void)
{
    CHECK(delegation_check(firm_hires()) &&
          tasks_check(walk_tasks(stage.walk)));
    stage_close();
}

/* What an agent wants of another; NULL: not said. */
struct wanted {
    const char *by, *to, *id, *text, *task_id, *metadata, *session, *user,
        *skill;
    const struct id *parent;
    enum delegation_mode mode; /* zero: asynchronous, or two-phase with an id */
    bool ends_with_line, goes_on;
    int64_t timeout_ms;
    bool has_max_cost;
    int64_t max_cost;
};

struct gotten {
    bool is_back;
    enum err err;
    struct id task, key;
    int64_t turn;
    bool is_repeat;
    struct why why;
    int64_t needed;
};

static void firm_on_done(struct msg *m, void *ctx)
{
    struct gotten *g = ctx;

    CHECK(!g->is_back);
    *g = (struct gotten){.is_back = true,
                         .err = m->err,
                         .task = m->task.id,
                         .key = m->delegation.key,
                         .turn = m->task.turn,
                         .is_repeat = m->delegation.is_repeat,
                         .why = m->why,
                         .needed = m->ledger.needed_micros};
    msg_free(m);
}

/* On its way; *g hears of it. */
static inline bool firm_post(struct wanted w, struct gotten *g)
{
    struct caller c = caller_named(w.user ? w.user : "anna");
    struct msg *m = msg_new(&c, loop_wall_ms(&stage.loop));

    *g = (struct gotten){0};
    if (!m)
        return false;
    m->call.text = str_of(w.text ? w.text : "do it");
    m->call.executor = str_of(w.to);
    m->call.task_id = or_empty(w.task_id);
    m->call.metadata = or_empty(w.metadata);
    m->call.skill = or_empty(w.skill);
    m->call.conversation_id = or_empty(w.session);
    m->call.priority = PRIORITY_NORMAL;
    m->call.timeout_ms = w.timeout_ms;
    m->call.has_max_cost = w.has_max_cost;
    m->call.max_cost_micros = w.max_cost;
    memcpy(m->call.body_hash, m->call.text.p,
           m->call.text.n < 32 ? m->call.text.n : 32);
    m->delegation.agent = str_of(w.by);
    if (w.parent)
        m->delegation.parent_id = str_of(w.parent->text);
    m->delegation.wish =
        (struct delegation_wish){.mode = w.mode ? w.mode
                                         : w.id ? DELEGATION_TWO_PHASE
                                                : DELEGATION_ASYNC,
                                 .original_id = or_empty(w.id),
                                 .ends_with_line = w.ends_with_line,
                                 .goes_on = w.goes_on};
    walk_message(stage.walk, m, firm_on_done, g);
    CHECK(!g->is_back);
    return true;
}

static inline struct gotten asked(struct wanted w)
{
    struct gotten g;

    CHECK(firm_post(w, &g));
    pass_ms(0);
    CHECK(g.is_back && delegation_check(firm_hires()));
    return g;
}

/* Asked, and accepted. */
static inline struct gotten hired(struct wanted w)
{
    struct gotten g = asked(w);

    if (g.err)
        T_FAIL("%s: %s", err_row(g.err)->wording, g.why.text);
    return g;
}

/* What a person sends to that agent. */
static inline struct id root_of(const char *agent)
{
    struct told t = sent((struct letter){.to = agent});

    CHECK_INT(t.err, OK);
    return t.task_id;
}

/* The task ends so, whichever side reports it. */
static inline enum err firm_end(const struct id *task, enum task_status status,
                                const char *text)
{
    struct task_result r = {.status = status, .text = or_empty(text)};
    enum err e;

    if (status != TASK_COMPLETED)
        r.error_code = r.error = STR("so");
    e = walk_end(stage.walk, str_of(task->text), &r, NULL, NULL);
    pass_ms(0);
    CHECK(delegation_check(firm_hires()));
    return e;
}

/* Zero: there is no such row. */
static inline enum delegation_state firm_row(const struct id *key)
{
    enum delegation_state state = 0;
    struct query q;

    query_init(&q, &delegation_table, 2);
    query_if(&q, DELEGATION_KEY, IS, value_text(str_of(key->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    if (q.rows)
        state = (enum delegation_state)row_int(q.rows, DELEGATION_STATE);
    query_fini(&q);
    return state;
}

static inline size_t firm_rows(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 10000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static inline enum err firm_had(const char *agent, const char *which)
{
    enum err e =
        delegation_had(firm_hires(), str_of(agent), str_of(which), NULL, NULL);

    pass_ms(0);
    CHECK(delegation_check(firm_hires()));
    return e;
}

/* How often the hub was told of it, since it was last forgotten. */
static inline size_t firm_told(const struct id *key)
{
    size_t n = 0;

    for (size_t i = 0; i < firm.n_heard; i++)
        n += strcmp(firm.heard[i].key.text, key->text) == 0;
    return n;
}

#endif
