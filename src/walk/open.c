/* Builds the stages of the walk, each after those it needs, and passes new
 * settings on. */
#include "walk/internal.h"

#include <stdlib.h>

#include "base/mem.h"

enum { RECALLS_MAX = 10 * 1000 * 1000 }; /* tasks have a lower limit */

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

static void on_agent_stirs(void *ctx, struct str agent)
{
    struct walk *w = ctx;

    presence_stir(w->presence, agent);
}

static bool user_sees_details(void *ctx, struct str user, const struct agent *a)
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
    opts.on_stir = on_agent_stirs;
    opts.sees_details = user_sees_details;
    opts.ctx = w;
    return deliver_new(&opts);
}

static struct gatekeeper *open_gatekeeper(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct gatekeeper_opts opts = walk_calls_of_gatekeeper;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.store = o->store;
    opts.ids = o->ids;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.rules = o->rules ? o->rules : gate_rules_none();
    opts.max_age_ms = o->max_age_ms;
    opts.ctx = w;
    return gatekeeper_new(&opts);
}

static struct delegations *open_delegations(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct delegation_opts opts = walk_calls_of_delegation;

    opts.loop = o->loop;
    opts.log = o->log;
    opts.store = o->store;
    opts.registry = o->registry;
    opts.tasks = w->tasks;
    opts.ids = o->ids;
    memcpy(opts.seed, o->seed, sizeof(opts.seed));
    opts.settings = o->delegation;
    opts.ctx = w;
    return delegation_new(&opts);
}

static struct late_results *open_late_results(struct walk *w)
{
    struct late_results_opts opts = walk_calls_of_late_results;

    opts.loop = w->opts.loop;
    opts.log = w->opts.log;
    opts.store = w->opts.store;
    opts.ctx = w;
    return late_results_new(&opts);
}

static enum agent_state walk_agent_state(void *ctx, struct str name,
                                         struct str *written)
{
    const struct walk *w = ctx;
    struct agents all = registry_agents(w->opts.registry);
    const struct agent *a = agent_find(&all, name);

    if (a)
        *written = a->name;
    return a ? deliver_state(w->deliver, a) : 0;
}

static struct presence *open_presence(struct walk *w)
{
    struct presence_opts opts = {.loop = w->opts.loop,
                                 .log = w->opts.log,
                                 .store = w->opts.store,
                                 .state_of = walk_agent_state,
                                 .ctx = w};

    memcpy(opts.seed, w->opts.seed, sizeof(opts.seed));
    return presence_new(&opts);
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
                            .learning = o->learning,
                            .tasks = w->tasks,
                            .gatekeeper = w->gatekeeper,
                            .delegations = w->delegations,
                            .retention_ms = o->retention_ms,
                            .retention_rows = o->retention_rows,
                        });
}

struct walk *walk_new(const struct walk_opts *opts, struct why *why)
{
    struct walk *w = mem_new(sizeof(*w));

    w->opts = *opts;
    w->retry_commit = (struct retry_commit){
        .loop = opts->loop, .log = opts->log, .again = walk_on_again, .ctx = w};
    retry_commit_init(&w->retry_commit);
    list_init(&w->refused);
    list_init(&w->budget_looks);
    list_init(&w->tool_uses);
    list_init(&w->tool_delegations);
    map_init(&w->recalls, RECALLS_MAX, opts->seed);
    w->refuse_job.run = walk_on_refused;
    w->tasks = open_tasks(w);
    w->presence = open_presence(w);
    w->deliver = open_deliver(w);
    w->late_results = open_late_results(w);
    w->gatekeeper = open_gatekeeper(w);
    w->ledger = ledger_new(&opts->ledger);
    w->delegations = open_delegations(w);
    if (!w->ledger)
        why_err(why, ERR_NOMEM, "out of memory");
    else if (tasks_load(w->tasks, loop_wall_ms(opts->loop), why) == OK &&
             gatekeeper_load(w->gatekeeper, why) == OK &&
             delegation_load(w->delegations, why) == OK &&
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
    if (w->presence)
        presence_stop(w->presence);
    loop_not_at_end(&w->refuse_job);
    retry_commit_fini(&w->retry_commit);
    deliver_free(w->deliver);
    walk_tools_free(w);
    walk_notes_free(w);
    presence_free(w->presence);
    late_results_free(w->late_results);
    gatekeeper_free(w->gatekeeper);
    delegation_free(w->delegations);
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
    w->opts.delegation = opts->delegation;
    tidy_set(&w->tidy, opts->retention_ms, opts->retention_rows);
    tasks_set_limits(w->tasks, &opts->limits);
    deliver_set(w->deliver, &opts->deliver);
    delegation_set(w->delegations, &opts->delegation);
    ledger_set(w->ledger, &opts->ledger);
    gatekeeper_set_max_age(w->gatekeeper, opts->max_age_ms);
    if (opts->rules && opts->rules != w->opts.rules)
        walk_set_rules(w, opts->rules);
}

void walk_agent_came(struct walk *w)
{
    tasks_offer_again(w->tasks);
    gatekeeper_agent_changed(w->gatekeeper, STR(""));
}

void walk_agents_changed(struct walk *w)
{
    deliver_agents_changed(w->deliver);
    delegation_look_at_turns(w->delegations);
}

void walk_stopping(struct walk *w)
{
    presence_stop(w->presence);
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
    gatekeeper_set_rules(w->gatekeeper, rules);
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

struct gatekeeper *walk_gatekeeper(struct walk *w)
{
    return w->gatekeeper;
}

struct delegations *walk_delegations(struct walk *w)
{
    return w->delegations;
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
                               .results_waiting = w->retry_commit.n};
}
