/* The rooms of the walk are built, in the order in which one needs another, and
 * told of new settings. */
#include "walk_internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { RECALLS_MAX = 10 * 1000 * 1000 }; /* tasks are bounded long before */

static struct tasks *open_tasks(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct tasks_opts opts = walk_calls_of_tasks;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.store = o->store;
    opts.ids = o->ids;
    opts.node = o->node;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.limits = o->limits;
    opts.ctx = w;
    return tasks_new(&opts);
}

static void on_stir(void *ctx, struct str agent)
{
    struct walk *w = ctx;

    pulse_stir(w->pulse, agent);
}

static bool sees_details(void *ctx, struct str user, const struct agent *a)
{
    struct walk *w = ctx;
    struct eyes eyes = {.user = user};
    struct access_user known;

    eyes.sees_all = w->opts.access &&
                    access_user_find(w->opts.access, user, &known) &&
                    known.role == ROLE_ADMIN;
    return agent_is_owned(a, &eyes);
}

static struct deliver *open_deliver(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct deliver_opts opts = walk_calls_of_deliver;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.fetch = o->fetch;
    opts.children = o->children;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.settings = o->deliver;
    opts.on_stir = on_stir;
    opts.sees_details = sees_details;
    opts.ctx = w;
    return deliver_new(&opts);
}

static struct broker *open_broker(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct broker_opts opts = walk_calls_of_broker;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.store = o->store;
    opts.registry = o->registry;
    opts.ids = o->ids;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.rules = o->rules ? o->rules : gate_rules_none();
    opts.max_age_ms = o->max_age_ms;
    opts.ctx = w;
    return broker_new(&opts);
}

static struct hires *open_hires(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct hire_opts opts = walk_calls_of_hire;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.store = o->store;
    opts.registry = o->registry;
    opts.tasks = w->tasks;
    opts.ids = o->ids;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.settings = o->hire;
    opts.ctx = w;
    return hire_new(&opts);
}

static struct strays *open_strays(struct walk *w)
{
    struct strays_opts opts = walk_calls_of_strays;

    opts.loop = w->opts.loop;
    opts.log = w->opts.log;
    opts.store = w->opts.store;
    opts.ctx = w;
    return strays_new(&opts);
}

static enum agent_state state_of(void *ctx, struct str name,
                                 struct str *written)
{
    const struct walk *w = ctx;
    struct agents all = registry_agents(w->opts.registry);
    const struct agent *a = agent_find(&all, name);

    if (a)
        *written = a->name;
    return a ? deliver_state(w->deliver, a) : 0;
}

static struct pulse *open_pulse(struct walk *w)
{
    struct pulse_opts opts = {.loop = w->opts.loop,
                              .log = w->opts.log,
                              .store = w->opts.store,
                              .state_of = state_of,
                              .ctx = w};

    memcpy(opts.seed, w->opts.seed, sizeof(opts.seed));
    return pulse_new(&opts);
}

static void on_tidy(void *ctx)
{
    struct walk *w = ctx;

    unwritten_look(&w->unwritten);
}

static void start_tidying(struct walk *w)
{
    const struct walk_opts *o = &w->opts;

    tidy_init(&w->tidy, &(struct tidy_opts){
                            .loop = o->loop,
                            .log = o->log,
                            .store = o->store,
                            .feed = o->feed,
                            .access = o->access,
                            .registry = o->registry,
                            .lessons = o->lessons,
                            .tasks = w->tasks,
                            .broker = w->broker,
                            .hires = w->hires,
                            .retention_ms = o->retention_ms,
                            .retention_rows = o->retention_rows,
                            .on_tidy = on_tidy,
                            .ctx = w,
                        });
}

struct walk *walk_new(const struct walk_opts *opts, struct why *why)
{
    struct walk *w = FAULT("walk.new") ? NULL : calloc(1, sizeof(*w));

    if (!w) {
        why_err(why, ERR_NOMEM, "out of memory");
        return NULL;
    }
    w->opts = *opts;
    w->unwritten = (struct unwritten){
        .loop = opts->loop, .log = opts->log, .again = walk_on_again, .ctx = w};
    unwritten_init(&w->unwritten);
    list_init(&w->refused);
    list_init(&w->budget_looks);
    list_init(&w->tool_uses);
    list_init(&w->tool_commissions);
    map_init(&w->recalls, RECALLS_MAX, opts->seed);
    w->refuse_job.run = walk_on_refused;
    w->tasks = open_tasks(w);
    w->pulse = open_pulse(w);
    w->deliver = open_deliver(w);
    w->strays = open_strays(w);
    w->broker = open_broker(w);
    w->ledger = ledger_new(&opts->ledger);
    w->hires = w->tasks ? open_hires(w) : NULL;
    if (!w->tasks || !w->pulse || !w->deliver || !w->strays || !w->broker ||
        !w->ledger || !w->hires)
        why_err(why, ERR_NOMEM, "out of memory");
    else if (tasks_load(w->tasks, loop_wall_ms(opts->loop), why) == OK &&
             broker_load(w->broker, why) == OK &&
             hire_load(w->hires, why) == OK &&
             walk_load_budgets(w, why) == OK) {
        start_tidying(w);
        return w;
    }
    walk_free(w);
    return NULL;
}

void walk_free(struct walk *w)
{
    if (!w)
        return;
    tidy_fini(&w->tidy);
    if (w->pulse)
        pulse_stop(w->pulse);
    loop_not_at_end(&w->refuse_job);
    unwritten_fini(&w->unwritten);
    deliver_free(w->deliver);
    walk_tools_free(w);
    walk_notes_free(w);
    pulse_free(w->pulse);
    strays_free(w->strays);
    broker_free(w->broker);
    hire_free(w->hires);
    ledger_free(w->ledger);
    tasks_free(w->tasks);
    free(w);
}

void walk_set(struct walk *w, const struct walk_opts *opts)
{
    w->opts.limits = opts->limits;
    w->opts.retention_ms = opts->retention_ms;
    w->opts.retention_rows = opts->retention_rows;
    w->opts.deliver = opts->deliver;
    w->opts.hire = opts->hire;
    tidy_set(&w->tidy, opts->retention_ms, opts->retention_rows);
    tasks_set_limits(w->tasks, &opts->limits);
    deliver_set(w->deliver, &opts->deliver);
    hire_set(w->hires, &opts->hire);
    ledger_set(w->ledger, &opts->ledger);
    broker_set_max_age(w->broker, opts->max_age_ms);
    if (opts->rules && opts->rules != w->opts.rules)
        walk_set_rules(w, opts->rules);
}

void walk_agent_came(struct walk *w)
{
    tasks_offer_again(w->tasks);
    broker_agent_changed(w->broker, STR(""));
}

void walk_agents_changed(struct walk *w)
{
    deliver_agents_changed(w->deliver);
    hire_look_at_turns(w->hires);
}

void walk_stopping(struct walk *w)
{
    pulse_stop(w->pulse);
}

void walk_agent_gone(struct walk *w, struct str name)
{
    deliver_resume(w->deliver, name);
}

enum agent_state walk_state(const struct walk *w, const struct agent *a)
{
    return deliver_state(w->deliver, a);
}

void walk_set_rules(struct walk *w, const struct gate_rules *rules)
{
    w->opts.rules = rules;
    broker_set_rules(w->broker, rules);
}

void walk_set_hub(struct walk *w, const struct walk_hub *hub)
{
    w->hub = hub ? *hub : (struct walk_hub){0};
}

struct deliver *walk_deliver(struct walk *w)
{
    return w->deliver;
}

struct router *walk_router(struct walk *w)
{
    return w->opts.router;
}

struct broker *walk_broker(struct walk *w)
{
    return w->broker;
}

struct hires *walk_hires(struct walk *w)
{
    return w->hires;
}

struct ledger *walk_ledger(struct walk *w)
{
    return w->ledger;
}

struct tasks *walk_tasks(struct walk *w)
{
    return w->tasks;
}

struct walk_stats walk_stats(const struct walk *w)
{
    return (struct walk_stats){.tasks = tasks_stats(w->tasks),
                               .deliver = deliver_stats(w->deliver),
                               .results_waiting = w->unwritten.n};
}
