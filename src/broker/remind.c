/* What becomes of an escalation that nobody answers: people are reminded, a
 * backup is offered, and in the end it runs out, if the rules say so. */
#include "broker/people.h"

#include <stdio.h>
#include <stdlib.h>

struct reminder {
    struct tx tx;
    struct broker *broker;
    struct id id;
    int64_t remind_ms, remind_mono_ms, reminded;
    char offer[AGENT_NAME_MAX + 1];
};

/* Whose task is not there any more, or has a later turn: one that was told as
 * late while its answer was on its way, before the server ended. */
static bool is_forsaken(const struct asked *x)
{
    const struct broker_opts *o = &x->broker->opts;
    const struct task *t =
        o->task ? o->task(o->ctx, str_of(x->about.task_id.text)) : NULL;

    return o->task && (!t || t->turn > x->about.turn);
}

static void set_timer(struct asked *x, int64_t ms)
{
    struct broker *b = x->broker;

    if (!b->people->is_stopped &&
        loop_timer_set(b->opts.loop, &x->timer, ms > 0 ? ms : 0) != OK)
        log_error(b->opts.log, "broker.no_timer",
                  LOG_C("escalation_id", x->id.text));
}

static void arm(struct asked *x)
{
    int64_t at = x->remind_ms ? x->remind_mono_ms : 0;

    if (x->expires_ms && (!x->remind_ms || x->expires_mono_ms < at))
        at = x->expires_mono_ms;
    if (x->remind_ms || x->expires_ms)
        set_timer(x, at - loop_mono_ms(x->broker->opts.loop));
}

/* By the wall clock, which is all that a restart leaves; but no longer than it
 * may be at all, should the clock have been set back. */
static int64_t mono_of(const struct asked *x, int64_t at_ms, int64_t most_ms)
{
    struct loop *loop = x->broker->opts.loop;
    int64_t left_ms = at_ms - loop_wall_ms(loop);

    if (left_ms > most_ms)
        left_ms = most_ms;
    return loop_mono_ms(loop) + (left_ms > 0 ? left_ms : 0);
}

void asked_start(struct asked *x)
{
    int64_t pause_ms = people_rules_of(x->broker)->remind_ms;

    if (pause_ms <= 0)
        pause_ms = x->remind_ms - x->at_ms;
    x->remind_mono_ms = mono_of(x, x->remind_ms, pause_ms);
    x->expires_mono_ms = mono_of(x, x->expires_ms, x->expires_ms - x->at_ms);
    if (is_forsaken(x))
        set_timer(x, 0);
    else
        arm(x);
}

static void try_later(struct asked *x)
{
    set_timer(x, PEOPLE_RETRY_MS);
}

static void on_noted(struct tx *tx, void *ctx)
{
    struct reminder *r = ctx;
    struct asked *x = asked_by_id(r->broker, str_of(r->id.text));

    r->broker->people->n_noting--;
    if (x) {
        x->is_noting = false;
        if (tx->result == TX_COMMITTED && r->offer[0]) {
            memcpy(x->offer, r->offer, sizeof(x->offer));
        } else if (tx->result == TX_COMMITTED) {
            x->remind_ms = r->remind_ms;
            x->remind_mono_ms = r->remind_mono_ms;
            x->reminded = r->reminded;
            arm(x);
        } else {
            try_later(x);
        }
    }
    tx_fini(&r->tx);
    free(r);
}

static struct reminder *reminder_new(struct asked *x)
{
    struct reminder *r =
        FAULT("broker.reminder") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    tx_init(&r->tx);
    r->broker = x->broker;
    r->id = x->id;
    return r;
}

static void submit(struct asked *x, struct reminder *r)
{
    x->is_noting = true;
    x->broker->people->n_noting++;
    store_submit(x->broker->opts.store, &r->tx, on_noted, r);
}

static void remind(struct asked *x)
{
    const struct gate_people *rules = people_rules_of(x->broker);
    struct reminder *r = x->is_noting ? NULL : reminder_new(x);
    int64_t now_ms = loop_wall_ms(x->broker->opts.loop);
    struct note_data n;
    struct tx_op *op;

    if (!r) {
        try_later(x);
        return;
    }
    r->reminded = x->reminded + 1;
    if (rules->remind_ms > 0 && r->reminded < rules->reminders)
        r->remind_ms = now_ms + rules->remind_ms;
    r->remind_mono_ms = loop_mono_ms(x->broker->opts.loop) + rules->remind_ms;
    op = asked_update(x, &r->tx);
    tx_set(op, ESCALATION_REMINDED, value_int(r->reminded));
    tx_set(op, ESCALATION_REMIND_MS,
           r->remind_ms ? value_int(r->remind_ms) : value_null());
    note_open(&n);
    note_about(&n, x);
    note_int(&n, "reminder", r->reminded);
    note_int(&n, "open_ms", now_ms - x->at_ms);
    note_close(&n, x->broker, STR("escalation.reminded"), &x->about, &r->tx);
    submit(x, r);
}

void asked_offer(struct asked *x, struct str backup)
{
    struct reminder *r;
    struct tx_op *op;

    if (x->is_noting || str_eq_nocase(str_of(x->offer), backup))
        return;
    r = reminder_new(x);
    if (!r)
        return; /* offered with the next look */
    snprintf(r->offer, sizeof(r->offer), "%.*s", STR_ARG(backup));
    op = asked_update(x, &r->tx);
    tx_set(op, ESCALATION_OFFER, value_text(backup));
    submit(x, r);
}

/* Nobody has answered. Of one that is late nothing follows: it is only no
 * longer asked. */
static void expire(struct asked *x)
{
    enum people_expiry how = people_rules_of(x->broker)->on_expiry;
    struct broker *b = x->broker;
    enum escalation_status status = ESCALATION_REJECTED;
    bool is_auto;
    struct str backup = revive_backup(b, x->about.agent, &is_auto);

    if (how == PEOPLE_APPROVE || x->kind == ESCALATION_LATE)
        status = ESCALATION_APPROVED;
    else if (how == PEOPLE_REDIRECT && backup.n && revive_may_have(x, backup))
        status = ESCALATION_REDIRECTED;
    try_later(x); /* unless it is not open any more by then */
    if (!x->n_words &&
        !say_self(x, status, status == ESCALATION_REDIRECTED ? backup : STR(""),
                  STR("nobody has answered in time"), true))
        log_error(b->opts.log, "broker.not_expired",
                  LOG_C("escalation_id", x->id.text));
}

void asked_forsake(struct asked *x)
{
    struct broker *b = x->broker;
    struct id id = x->id;

    if (!x->n_words &&
        !say_self(x, ESCALATION_RESOLVED, STR(""),
                  STR("the task is over, and nobody need be asked"), false))
        log_error(b->opts.log, "broker.not_resolved",
                  LOG_C("escalation_id", id.text));
    x = asked_by_id(b, str_of(id.text));
    if (x)
        try_later(x); /* unless it is not open any more by then */
}

void asked_on_timer(struct timer *t)
{
    struct asked *x = LIST_OF(t, struct asked, timer);
    int64_t now_ms = loop_mono_ms(x->broker->opts.loop);

    if (is_forsaken(x))
        asked_forsake(x);
    else if (x->expires_ms && now_ms >= x->expires_mono_ms)
        expire(x);
    else if (x->remind_ms && now_ms >= x->remind_mono_ms)
        remind(x);
    else
        arm(x);
}
