/* Builds the stages of the walk, each after those it needs, and passes new
 * settings on. */
#include "walk/internal.h"

#include <stdlib.h>

#include "base/mem.h"

enum { RECALLS_MAX = 10 * 1000 * 1000 }; /* tasks have a lower limit */

static enum agent_state walk_agent_state(void *ctx, struct str name,
                                         struct str *written)
{
    const struct walk *w = ctx;
    const struct agent *a = registry_agent(w->opts.registry, name);

    if (a)
        *written = a->name;
    return a ? deliver_state(w->deliver, a) : 0;
}

/* A module gets the modules below it. walk_results has its callbacks. */
static void walk_build(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct tasks_opts tasks = walk_results.tasks;
    struct presence_opts presence = {.loop = o->loop,
                                     .log = o->log,
                                     .store = o->store,
                                     .state_of = walk_agent_state,
                                     .ctx = w};
    struct deliver_opts deliver = walk_results.deliver;
    struct gatekeeper_opts gatekeeper = walk_results.gatekeeper;
    struct delegation_opts delegation = walk_results.delegation;

    tasks.loop = o->loop;
    tasks.log = o->log;
    tasks.store = o->store;
    tasks.access = o->access;
    tasks.ids = o->ids;
    tasks.node = o->node;
    memcpy(tasks.seed, o->seed, sizeof(tasks.seed));
    tasks.limits = o->limits;
    tasks.ctx = w;
    w->tasks = tasks_new(&tasks);

    memcpy(presence.seed, o->seed, sizeof(presence.seed));
    w->presence = presence_new(&presence);

    deliver.loop = o->loop;
    deliver.log = o->log;
    deliver.fetch = o->fetch;
    deliver.children = o->children;
    deliver.access = o->access;
    memcpy(deliver.seed, o->seed, sizeof(deliver.seed));
    deliver.settings = o->deliver;
    deliver.ctx = w;
    w->deliver = deliver_new(&deliver);

    w->late_results = late_results_new(w);

    gatekeeper.loop = o->loop;
    gatekeeper.log = o->log;
    gatekeeper.store = o->store;
    gatekeeper.tasks = w->tasks;
    gatekeeper.access = o->access;
    gatekeeper.registry = o->registry;
    gatekeeper.ids = o->ids;
    memcpy(gatekeeper.seed, o->seed, sizeof(gatekeeper.seed));
    gatekeeper.rules = o->rules ? o->rules : gate_rules_none();
    gatekeeper.max_age_ms = o->max_age_ms;
    gatekeeper.ctx = w;
    w->gatekeeper = gatekeeper_new(&gatekeeper);

    w->ledger = ledger_new(&o->ledger);

    delegation.loop = o->loop;
    delegation.log = o->log;
    delegation.store = o->store;
    delegation.registry = o->registry;
    delegation.tasks = w->tasks;
    delegation.gatekeeper = w->gatekeeper;
    delegation.ids = o->ids;
    memcpy(delegation.seed, o->seed, sizeof(delegation.seed));
    delegation.settings = o->delegation;
    delegation.ctx = w;
    w->delegations = delegation_new(&delegation);
    walk_line_up(w);
}

struct walk *walk_new(const struct walk_opts *opts, struct why *why)
{
    struct walk *w = mem_new(sizeof(*w));

    w->opts = *opts;
    list_init(&w->retry_commit.held);
    w->retry_commit.timer.fire = retry_commit_on_timer;
    list_init(&w->refused);
    list_init(&w->budget_looks);
    list_init(&w->tool_uses);
    list_init(&w->delegation_requests);
    map_init(&w->recalls, RECALLS_MAX, opts->seed);
    w->refuse_job.run = walk_on_refused;
    walk_build(w);
    if (!w->ledger)
        why_err(why, ERR_NOMEM, "out of memory");
    else if (tasks_load(w->tasks, loop_wall_ms(opts->loop), why) == OK &&
             gatekeeper_load(w->gatekeeper, why) == OK &&
             delegation_load(w->delegations, why) == OK &&
             walk_load_budgets(w, why) == OK) {
        tidy_start(w);
        return w;
    }
    walk_free(w);
    return NULL;
}

void walk_free(struct walk *w)
{
    if (!w)
        return;
    loop_timer_cancel(w->opts.loop, &w->tidy.timer);
    presence_stop(w->presence);
    loop_not_at_end(&w->refuse_job);
    retry_commit_fini(w);
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
