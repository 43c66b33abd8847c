/* At most one change is on its way. A configuration that comes meanwhile is
 * due: what the registry lacks of it is found out when the change is back.
 *
 *     prepare -> (forget)
 *             -> commit -> store -> settle -> due? -> prepare ...
 *
 * ERR_BUSY is no reason to turn a configuration down: somebody else is just
 * changing one of its agents. Nor can one be judged while a change is out: how
 * many agents there are is not known before it is back. What turns out to be
 * too many then is said, and tried again until there is room or another
 * configuration. */
#include "roster.h"

#include <assert.h>

enum { AGAIN_MS = 500, AGAIN_MAX_MS = 60 * 1000 };

static void try_now(struct roster *r);

static void try_later(struct roster *r)
{
    int64_t wait_ms = r->again_ms ? r->again_ms : AGAIN_MS;

    if (r->is_stopped)
        return;
    r->is_due = true;
    r->again_ms = wait_ms * 2 < AGAIN_MAX_MS ? wait_ms * 2 : AGAIN_MAX_MS;
    if (loop_timer_set(r->loop, &r->again, wait_ms) != OK)
        log_error(r->log, "config.agents_not_taken",
                  LOG_C("because", "out of memory; SIGHUP tries again"));
}

static void say_failed(struct roster *r, enum err e, const struct why *why)
{
    const char *words = why->text[0] ? why->text : err_row(e)->wording;

    if (!r->has_failed)
        log_error(r->log, "config.agents_not_taken", LOG_C("because", words),
                  LOG_C("do", "it is tried again until it can be done"));
    r->has_failed = true;
}

static void settle(struct roster *r)
{
    struct why why = {""};
    enum err e = registry_settle(r->registry, &r->change, &why);

    registry_change_fini(&r->change);
    r->is_out = r->is_prepared = false;
    if (e == ERR_OUTCOME_UNKNOWN || e == ERR_STOPPING)
        return; /* the store is gone: the next start sees what is true */
    if (e) {
        if (e != ERR_BUSY)
            say_failed(r, e, &why);
        try_later(r);
    } else {
        r->has_failed = false;
        r->again_ms = 0;
        if (r->is_due && !r->is_stopped)
            try_now(r);
    }
}

static void on_written(struct tx *tx, void *ctx)
{
    struct roster *r = ctx;

    (void)tx;
    settle(r);
    if (r->is_opening)
        loop_stop(r->loop);
}

static void submit(struct roster *r)
{
    r->is_prepared = false;
    r->is_out = true;
    if (r->change.is_same)
        settle(r);
    else
        store_submit(r->store, &r->change.tx, on_written, r);
}

struct registry_limits roster_limits(const struct config *c)
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
    };
}

static enum err prepare(struct roster *r, const struct config *c,
                        struct why *why)
{
    struct registry_limits limits = roster_limits(c);
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

static void try_now(struct roster *r)
{
    struct why why = {""};
    enum err e;

    r->is_due = false;
    e = prepare(r, r->config, &why);
    if (!e) {
        submit(r);
    } else {
        if (e != ERR_BUSY)
            say_failed(r, e, &why);
        try_later(r);
    }
}

static void on_again(struct timer *t)
{
    struct roster *r = LIST_OF(t, struct roster, again);

    if (!r->is_out && !r->is_stopped)
        try_now(r);
}

enum err roster_open(struct roster *r, const struct config *c, struct why *why)
{
    enum err e;

    r->again.fire = on_again;
    r->config = c;
    e = prepare(r, c, why);
    if (e)
        return e;
    r->is_opening = true;
    submit(r);
    while (r->is_out)
        loop_run(r->loop);
    r->is_opening = false;
    return OK;
}

enum err roster_prepare(struct roster *r, const struct config *c,
                        struct why *why)
{
    enum err e = r->is_out ? ERR_BUSY : prepare(r, c, why);

    return e == ERR_BUSY ? OK : e;
}

void roster_commit(struct roster *r, const struct config *c)
{
    r->config = c;
    r->again_ms = 0;
    if (r->is_prepared)
        submit(r);
    else if (r->is_out)
        r->is_due = true;
    else
        try_later(r);
}

void roster_forget(struct roster *r)
{
    struct why why;

    if (!r->is_prepared)
        return;
    /* Never submitted: there is nothing to be said but that it is not so. */
    if (registry_settle(r->registry, &r->change, &why) == OK)
        assert(r->change.is_same);
    registry_change_fini(&r->change);
    r->is_prepared = false;
}

void roster_stop(struct roster *r)
{
    if (!r->registry)
        return;
    r->is_stopped = true;
    loop_timer_cancel(r->loop, &r->again);
}

void roster_close(struct roster *r)
{
    if (!r->registry)
        return;
    roster_stop(r);
    roster_forget(r);
}
