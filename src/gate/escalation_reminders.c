/* An escalation without a reply: people are reminded, a backup is offered, and
 * it finally expires if the rules say so. */
#include "gate/escalations.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct reminder {
    struct tx tx;
    struct gatekeeper *gatekeeper;
    struct id id;
    int64_t remind_ms, remind_mono_ms, reminded;
    char offer[AGENT_NAME_MAX + 1];
};

/* Whether the task is gone, or has a later turn. This happens when the task was
 * reported late while its answer was being committed, and the server then
 * ended. */
static bool is_abandoned(const struct escalation *x)
{
    const struct tasks *tasks = x->gatekeeper->opts.tasks;
    const struct task *t =
        tasks ? task_find(tasks, str_of(x->subject.task_id.text)) : NULL;

    return tasks && (!t || t->turn > x->subject.turn);
}

static void set_escalation_timer(struct escalation *x, int64_t ms)
{
    struct gatekeeper *b = x->gatekeeper;

    if (!b->escalations->is_stopped)
        loop_timer_set(b->opts.loop, &x->timer, ms > 0 ? ms : 0);
}

static void arm_escalation(struct escalation *x)
{
    int64_t at = x->remind_ms ? x->remind_mono_ms : 0;

    if (x->expires_ms && (!x->remind_ms || x->expires_mono_ms < at))
        at = x->expires_mono_ms;
    if (x->remind_ms || x->expires_ms)
        set_escalation_timer(x, at - loop_mono_ms(x->gatekeeper->opts.loop));
}

/* By the wall clock, the only one that survives a restart, but no longer than
 * the full time in case that clock was set back. */
static int64_t deadline_mono_ms(const struct escalation *x, int64_t at_ms,
                                int64_t most_ms)
{
    struct loop *loop = x->gatekeeper->opts.loop;
    int64_t left_ms = at_ms - loop_wall_ms(loop);

    if (left_ms > most_ms)
        left_ms = most_ms;
    return loop_mono_ms(loop) + (left_ms > 0 ? left_ms : 0);
}

void escalation_start(struct escalation *x)
{
    int64_t pause_ms = escalation_rules(x->gatekeeper)->remind_ms;

    if (pause_ms <= 0)
        pause_ms = x->remind_ms - x->at_ms;
    x->remind_mono_ms = deadline_mono_ms(x, x->remind_ms, pause_ms);
    x->expires_mono_ms =
        deadline_mono_ms(x, x->expires_ms, x->expires_ms - x->at_ms);
    if (is_abandoned(x))
        set_escalation_timer(x, 0);
    else
        arm_escalation(x);
}

static void retry_escalation(struct escalation *x)
{
    set_escalation_timer(x, ESCALATION_RETRY_MS);
}

static void on_noted(struct tx *tx, void *ctx)
{
    struct reminder *r = ctx;
    struct escalation *x = escalation_by_id(r->gatekeeper, str_of(r->id.text));

    r->gatekeeper->escalations->n_noting--;
    if (x) {
        x->is_noting = false;
        if (tx->result == TX_COMMITTED && r->offer[0]) {
            memcpy(x->offer, r->offer, sizeof(x->offer));
        } else if (tx->result == TX_COMMITTED) {
            x->remind_ms = r->remind_ms;
            x->remind_mono_ms = r->remind_mono_ms;
            x->reminded = r->reminded;
            arm_escalation(x);
        } else {
            retry_escalation(x);
        }
    }
    tx_fini(&r->tx);
    free(r);
}

static struct reminder *reminder_new(struct escalation *x)
{
    struct reminder *r = mem_new(sizeof(*r));

    tx_init(&r->tx);
    r->gatekeeper = x->gatekeeper;
    r->id = x->id;
    return r;
}

static void submit_reminder(struct escalation *x, struct reminder *r)
{
    x->is_noting = true;
    x->gatekeeper->escalations->n_noting++;
    store_submit(x->gatekeeper->opts.store, &r->tx, on_noted, r);
}

static void remind_people(struct escalation *x)
{
    const struct gate_people *rules = escalation_rules(x->gatekeeper);
    int64_t now_ms = loop_wall_ms(x->gatekeeper->opts.loop);
    struct reminder *r;
    struct note_data n;
    struct tx_op *op;

    if (x->is_noting) {
        retry_escalation(x);
        return;
    }
    r = reminder_new(x);
    r->reminded = x->reminded + 1;
    if (rules->remind_ms > 0 && r->reminded < rules->reminders)
        r->remind_ms = now_ms + rules->remind_ms;
    r->remind_mono_ms =
        loop_mono_ms(x->gatekeeper->opts.loop) + rules->remind_ms;
    op = escalation_update(x, &r->tx);
    tx_set(op, ESCALATION_REMINDED, value_int(r->reminded));
    tx_set(op, ESCALATION_REMIND_MS,
           r->remind_ms ? value_int(r->remind_ms) : value_null());
    note_open(&n);
    note_escalation(&n, x);
    note_int(&n, "reminder", r->reminded);
    note_int(&n, "open_ms", now_ms - x->at_ms);
    note_close(&n, x->gatekeeper, STR("escalation.reminded"), &x->subject,
               &r->tx);
    submit_reminder(x, r);
}

void escalation_offer(struct escalation *x, struct str backup)
{
    struct reminder *r;
    struct tx_op *op;

    if (x->is_noting || str_eq_nocase(str_of(x->offer), backup))
        return;
    r = reminder_new(x);
    snprintf(r->offer, sizeof(r->offer), "%.*s", STR_ARG(backup));
    op = escalation_update(x, &r->tx);
    tx_set(op, ESCALATION_OFFER, value_text(backup));
    submit_reminder(x, r);
}

/* No reply in time. For an escalation of kind late nothing follows; it is only
 * closed. */
static void expire_escalation(struct escalation *x)
{
    enum people_expiry how = escalation_rules(x->gatekeeper)->on_expiry;
    enum escalation_status status = ESCALATION_REJECTED;
    bool is_auto;
    struct str backup =
        revive_backup(x->gatekeeper, x->subject.agent, &is_auto);

    if (how == PEOPLE_APPROVE || x->kind == ESCALATION_LATE)
        status = ESCALATION_APPROVED;
    else if (how == PEOPLE_REDIRECT && backup.n && revive_may_have(x, backup))
        status = ESCALATION_REDIRECTED;
    retry_escalation(x); /* in case it stays open */
    if (!x->n_replies)
        reply_self(x, status,
                   status == ESCALATION_REDIRECTED ? backup : STR(""),
                   STR("no reply in time"), true);
}

void escalation_abandon(struct escalation *x)
{
    struct gatekeeper *b = x->gatekeeper;
    struct id id = x->id;

    if (!x->n_replies)
        reply_self(x, ESCALATION_RESOLVED, STR(""),
                   STR("the task is over; no decision is needed"), false);
    x = escalation_by_id(b, str_of(id.text));
    if (x)
        retry_escalation(x); /* in case it stays open */
}

void escalation_on_timer(struct timer *t)
{
    struct escalation *x = LIST_OF(t, struct escalation, timer);
    int64_t now_ms = loop_mono_ms(x->gatekeeper->opts.loop);

    if (is_abandoned(x))
        escalation_abandon(x);
    else if (x->expires_ms && now_ms >= x->expires_mono_ms)
        expire_escalation(x);
    else if (x->remind_ms && now_ms >= x->remind_mono_ms)
        remind_people(x);
    else
        arm_escalation(x);
}
