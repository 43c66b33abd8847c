/* At most one change is in the store. A configuration that arrives meanwhile is
 * marked as due, and compared with the registry when that change is done.
 *
 *     prepare -> (forget)
 *             -> commit -> store -> settle -> due? -> prepare ...
 *
 * ERR_BUSY does not reject a configuration: one of its agents is being changed.
 * While a change is in the store the limits cannot be checked, since the number
 * of agents is not known yet. If the agents exceed a limit then, that is logged
 * and retried until there is room or another configuration. */
#include "server/configured_agents.h"

#include <assert.h>

enum { RETRY_MS = 500, RETRY_MAX_MS = 60 * 1000 };

static void agents_change_try(struct configured_agents *r);

static void agents_change_retry(struct configured_agents *r)
{
    int64_t wait_ms = r->again_ms ? r->again_ms : RETRY_MS;

    if (r->is_stopped)
        return;
    r->is_due = true;
    r->again_ms = wait_ms * 2 < RETRY_MAX_MS ? wait_ms * 2 : RETRY_MAX_MS;
    loop_timer_set(r->loop, &r->again, wait_ms);
}

static void log_agents_failure(struct configured_agents *r, enum err e,
                               const struct why *why)
{
    const char *words = why->text[0] ? why->text : err_row(e)->wording;

    if (!r->has_failed)
        log_error(r->log, "config.agents_not_taken", LOG_C("because", words),
                  LOG_C("do", "it is retried until it succeeds"));
    r->has_failed = true;
}

static void agents_change_settle(struct configured_agents *r)
{
    struct why why = {""};
    enum err e = registry_settle(r->registry, &r->change, &why);

    registry_change_fini(&r->change);
    r->is_out = r->is_prepared = false;
    if (e == ERR_OUTCOME_UNKNOWN || e == ERR_STOPPING)
        return; /* the store is gone: the next start reads the truth */
    if (e) {
        if (e != ERR_BUSY)
            log_agents_failure(r, e, &why);
        agents_change_retry(r);
    } else {
        r->has_failed = false;
        r->again_ms = 0;
        if (r->is_due && !r->is_stopped)
            agents_change_try(r);
    }
}

static void on_agents_committed(struct tx *tx, void *ctx)
{
    struct configured_agents *r = ctx;

    (void)tx;
    agents_change_settle(r);
    if (r->is_opening)
        loop_stop(r->loop);
}

static void agents_change_submit(struct configured_agents *r)
{
    r->is_prepared = false;
    r->is_out = true;
    if (r->change.is_same)
        agents_change_settle(r);
    else
        store_submit(r->store, &r->change.tx, on_agents_committed, r);
}

struct registry_limits configured_agents_limits(const struct config *c)
{
    return (struct registry_limits){
        .max_agents = (size_t)c->registry.max_agents,
        .max_skills = (size_t)c->registry.max_skills,
        .max_agents_per_user = (size_t)c->registry.max_agents_per_user,
        .max_bytes_per_user = (size_t)c->registry.max_card_bytes_per_user,
        .max_skills_per_user = (size_t)c->registry.max_skills_per_user,
        .max_index_bytes_per_user =
            (size_t)c->registry.max_index_bytes_per_user,
        .max_agents_per_org = (size_t)c->registry.max_agents_per_org,
        .max_skills_per_org = (size_t)c->registry.max_skills_per_org,
        .max_bytes_per_org = (size_t)c->registry.max_card_bytes_per_org,
        .max_index_bytes_per_org = (size_t)c->registry.max_index_bytes_per_org,
        .skills_per_minute = (size_t)c->registry.skills_per_minute,
        .max_searched = (size_t)c->registry.max_searched,
    };
}

static enum err agents_change_prepare(struct configured_agents *r,
                                      const struct config *c, struct why *why)
{
    struct registry_limits limits = configured_agents_limits(c);
    enum err e;

    registry_change_init(&r->change);
    e = registry_configure(r->registry, &r->change, c->agents.list, c->agents.n,
                           &limits, loop_wall_ms(r->loop), why);
    if (e)
        registry_change_fini(&r->change);
    else
        r->is_prepared = true;
    return e;
}

static void agents_change_try(struct configured_agents *r)
{
    struct why why = {""};
    enum err e;

    r->is_due = false;
    e = agents_change_prepare(r, r->config, &why);
    if (!e) {
        agents_change_submit(r);
    } else {
        if (e != ERR_BUSY)
            log_agents_failure(r, e, &why);
        agents_change_retry(r);
    }
}

static void on_agents_retry(struct timer *t)
{
    struct configured_agents *r = LIST_OF(t, struct configured_agents, again);

    if (!r->is_out && !r->is_stopped)
        agents_change_try(r);
}

enum err configured_agents_open(struct configured_agents *r,
                                const struct config *c, struct why *why)
{
    enum err e;

    r->again.fire = on_agents_retry;
    r->config = c;
    e = agents_change_prepare(r, c, why);
    if (e)
        return e;
    r->is_opening = true;
    agents_change_submit(r);
    while (r->is_out)
        loop_run(r->loop);
    r->is_opening = false;
    return OK;
}

enum err configured_agents_prepare(struct configured_agents *r,
                                   const struct config *c, struct why *why)
{
    enum err e = r->is_out ? ERR_BUSY : agents_change_prepare(r, c, why);

    return e == ERR_BUSY ? OK : e;
}

void configured_agents_commit(struct configured_agents *r,
                              const struct config *c)
{
    r->config = c;
    r->again_ms = 0;
    if (r->is_prepared)
        agents_change_submit(r);
    else if (r->is_out)
        r->is_due = true;
    else
        agents_change_retry(r);
}

void configured_agents_forget(struct configured_agents *r)
{
    struct why why;

    if (!r->is_prepared)
        return;
    /* The change was never submitted, so settling it fails unless it is empty.
     */
    if (registry_settle(r->registry, &r->change, &why) == OK)
        assert(r->change.is_same);
    registry_change_fini(&r->change);
    r->is_prepared = false;
}

void configured_agents_stop(struct configured_agents *r)
{
    if (!r->registry)
        return;
    r->is_stopped = true;
    loop_timer_cancel(r->loop, &r->again);
}

void configured_agents_close(struct configured_agents *r)
{
    if (!r->registry)
        return;
    configured_agents_stop(r);
    configured_agents_forget(r);
}
