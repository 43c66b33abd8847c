/* Asks the gate again about a waiting task because something has changed. The
 * task is released, waits on, or is shown to a person. One durable change, to
 * whose tx the gatekeeper adds its records.
 *
 *     walk_resume -> gatekeeper_ask_again -> task_pass_new -> (commit)
 *                 -> on_resumed */
#include "walk/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { RESUMED_BYTES = 4 * 1024 * 1024 };

/* Fill in what the gate needs to know of an agent. */
void walk_see_agent(void *ctx, struct str name, struct gate_agent *out)
{
    struct walk *w = ctx;
    const struct agent *a = registry_agent(w->opts.registry, name);
    struct str owner;

    if (!a)
        return;
    out->name = a->name;
    out->is_known = true;
    out->state = deliver_state(w->deliver, a);
    out->may_try =
        out->state == AGENT_ERROR && deliver_may_try(w->deliver, a->name);
    out->queue = (int64_t)tasks_of_agent(w->tasks, a->name);
    out->queue_max = a->limits.queue ? a->limits.queue : w->opts.deliver.queue;
    out->data_at_ms = deliver_data_at(w->deliver, a->name);
    out->backup = a->backup;
    out->is_for_all = a->is_configured;
    out->version = a->revision + (int64_t)a->n_grants;
    out->is_foreign =
        gate_rules_name(gatekeeper_rules(w->gatekeeper), a->name, &owner) &&
        !registry_is_meant(w->opts.registry, a);
}

/* A change of state that is not an end, on its way to the disk. */
struct resumed {
    struct walk *walk;
    struct task_change *change;
    struct gate_result gate_result; /* its strings are in the arena */
    struct arena arena;
};

static void resumed_free(struct resumed *r)
{
    if (r->change)
        task_change_free(r->change);
    arena_fini(&r->arena);
    free(r);
}

static void on_resumed(struct tx *tx, void *ctx)
{
    struct resumed *r = ctx;
    struct walk *w = r->walk;
    struct task_change *c = r->change;
    struct str id = str_of(c->task_id.text);
    struct task gone = {.id = c->task_id, .turn = c->turn};
    const struct task *t;
    bool is_committed = tx->result == TX_COMMITTED;

    retry_commit_note(w, tx);
    task_changed(w->tasks, c);
    if (is_committed) { /* its agent does not have it any more */
        deliver_cancel(w->deliver, id);
        if (!PLANTED("walk.first_agents_notes"))
            walk_recall_over(w, id);
        delegation_attempt_over(w->delegations, id);
    } else {
        log_info(w->opts.log, "walk.not_moved", LOG_S("task_id", id),
                 LOG_S("wanted", task_status_name(c->result.status)),
                 LOG_C("because", err_row(c->err)->wording));
    }
    t = task_find(w->tasks, id);
    STAGES_EACH(s, w)
    {
        if (s->settle_pass)
            s->settle_pass(s->module, t ? t : &gone, &r->gate_result,
                           is_committed);
    }
    resumed_free(r);
}

enum err walk_resume(struct walk *w, struct str task_id)
{
    const struct task *t = task_find(w->tasks, task_id);
    struct resumed *r;
    enum err e;

    if (!t)
        return ERR_NOT_FOUND;
    if (task_is_over(t->status))
        return ERR_TASK_IS_OVER;
    r = mem_new(sizeof(*r));
    r->walk = w;
    arena_init(&r->arena, RESUMED_BYTES);
    if (PLANTED("walk.lets_go")) {
        r->gate_result.answer = GATE_ROUTE;
        r->gate_result.priority = t->priority;
    } else if (!gatekeeper_ask_again(w->gatekeeper, t, &r->arena,
                                     &r->gate_result)) {
        resumed_free(r);
        return OK;
    }
    r->change =
        task_pass_new(w->tasks, task_id,
                      &(struct task_release){
                          .status = gate_result_status(r->gate_result.answer),
                          .agent = r->gate_result.agent,
                          .priority = r->gate_result.priority},
                      &e);
    if (e) {
        resumed_free(r);
        return e;
    }
    r->change->walk = w;
    STAGES_EACH(s, w)
    {
        if (s->record_pass)
            s->record_pass(s->module, t, &r->gate_result, &r->change->tx);
    }
    store_submit(w->opts.store, &r->change->tx, on_resumed, r);
    return OK;
}

/* A task that cannot be resumed now is tried again like any other that
 * waits. */
void walk_on_ripe(void *ctx, struct str task_id)
{
    struct walk *w = ctx;
    enum err e = walk_resume(w, task_id);

    if (e)
        log_warn(w->opts.log, "walk.not_resumed", LOG_S("task_id", task_id),
                 LOG_C("because", err_row(e)->wording));
}

/* Callbacks of the gatekeeper. It may send several waiting messages as one
 * message of their requester. */

void walk_send(void *ctx, struct msg *m, void (*done)(struct msg *m, void *ctx),
               void *done_ctx)
{
    walk_message(ctx, m, done, done_ctx);
}

/* done may be called before this returns, if nothing is started. */
void walk_restart_agent(void *ctx, struct str name,
                        void (*done)(void *ctx, enum err e,
                                     const struct why *why),
                        void *done_ctx)
{
    struct walk *w = ctx;
    const struct agent *a = registry_agent(w->opts.registry, name);
    struct why why;
    enum err e =
        a ? deliver_restart(w->deliver, a, done, done_ctx, &why)
          : why_err(&why, ERR_NOT_FOUND, "there is no agent of that name");

    if (e)
        done(done_ctx, e, &why);
}

enum err walk_pause_agent(void *ctx, struct str agent, bool is_paused,
                          struct str by, int64_t at_ms)
{
    struct walk *w = ctx;

    if (is_paused)
        return deliver_pause(w->deliver, agent, by, at_ms);
    deliver_resume(w->deliver, agent);
    return OK;
}
