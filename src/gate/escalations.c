/* Escalations: messages that a person must see. The row is written in the tx
 * that escalates the task, and decided in the tx of the effect. Reminders and
 * expiry are times in the row, so they survive a restart. One that passed while
 * the server was down takes effect once, after the start.
 *
 * Only open escalations are in memory, at most ESCALATIONS_OPEN_MAX. People
 * will not have read the first hundred when there are ten thousand; more are
 * rejected as overload. */
#include "gate/escalations.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static enum escalation_kind escalation_kind_for(enum gate_cause c)
{
    if (c == PASS_TARGET_DEAD)
        return ESCALATION_DEAD;
    return c == PASS_EXPIRED ? ESCALATION_EXPIRED : ESCALATION_RULE;
}

void escalations_record(struct gatekeeper *b, struct msg *m)
{
    const struct gate_result *p = &m->gate.gate_result;
    struct subject subject = subject_of_msg(m);
    struct escalation *x;

    m->gate.escalation_id = (struct id){""};
    if (p->answer != GATE_ESCALATE)
        return;
    x = escalation_new(b, &subject, escalation_kind_for(p->cause), p->rule,
                       str_of(p->reason), &m->tx);
    if (x)
        m->gate.escalation_id = x->id;
}

void escalations_settle(struct gatekeeper *b, struct msg *m, bool is_committed)
{
    struct escalation *x =
        m->gate.escalation_id.text[0]
            ? escalation_by_id(b, str_of(m->gate.escalation_id.text))
            : NULL;

    if (!x)
        return;
    if (is_committed)
        escalation_open(x);
    else
        escalation_undo(x);
}

static enum escalation_status reply_status(const struct reply *w)
{
    return w->is_expiry ? ESCALATION_RAN_OUT : w->status;
}

/* Decide the escalation of a task that moves: by its current reply, or because
 * it is no longer needed. */
static void record_reply(struct escalation *x, struct tx *tx)
{
    const struct reply *w = reply_current(x);
    const char *reason = x->kind == ESCALATION_DEAD
                             ? "the agent is back"
                             : "nothing holds it any more";

    x->is_recorded = true;
    if (w)
        escalation_decide(x, reply_status(w), w->by, w->comment, w->agent, tx);
    else
        escalation_decide(x, ESCALATION_RESOLVED, ESCALATION_SELF,
                          str_of(reason), STR(""), tx);
}

void escalations_record_pass(struct gatekeeper *b, const struct task *t,
                             const struct envelope *e,
                             const struct gate_result *p, struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct escalation *x = escalation_of(b, id),
                      *late = escalation_late_of(b, id);
    struct subject subject;

    if (late && reply_current(late))
        record_reply(late, tx);
    if (p->answer != GATE_ESCALATE) {
        if (x)
            record_reply(x, tx);
        return;
    }
    if (x) { /* still escalated, perhaps for another reason */
        if (!reply_current(x))
            escalation_rewrite(x, escalation_kind_for(p->cause), p->rule,
                               str_of(p->reason), tx);
        return;
    }
    subject = subject_of_task(t, e, p);
    escalation_new(b, &subject, escalation_kind_for(p->cause), p->rule,
                   str_of(p->reason), tx);
}

static void settle_escalation(struct escalation *x, bool is_committed)
{
    struct reply *w = reply_current(x);

    x->is_moving = false;
    if (x->becomes && is_committed)
        x->kind = x->becomes;
    x->becomes = 0;
    if (!x->is_recorded)
        return;
    x->is_recorded = false;
    if (is_committed)
        escalation_close(x, w);
    else
        reply_failed(x);
}

void escalations_settle_pass(struct gatekeeper *b, const struct task *t,
                             const struct gate_result *p, bool is_committed)
{
    struct str id = str_of(t->id.text);
    struct escalation *x = escalation_of(b, id),
                      *late = escalation_late_of(b, id);

    (void)p;
    if (late)
        settle_escalation(late, is_committed);
    if (!x)
        return;
    if (!x->is_coming)
        settle_escalation(x, is_committed);
    else if (is_committed)
        escalation_open(x);
    else
        escalation_undo(x);
}

static void write_end_reason(const struct gatekeeper *b,
                             const struct escalation *x,
                             const struct task_result *r, struct why *out)
{
    int64_t ms = sla_late_ms(b, str_of(x->subject.task_id.text));
    struct buf words;

    if (x->kind != ESCALATION_LATE || r->status == TASK_CANCELLED ||
        r->status == TASK_EXPIRED || !ms) {
        why_err(out, OK, "the task is %.*s",
                STR_ARG(task_status_name(r->status)));
        return;
    }
    buf_init(&words, 64);
    gate_word_duration(&words, ms);
    why_err(out, OK, "it was answered after all, %.*s late",
            STR_ARG(buf_str(&words)));
    buf_fini(&words);
}

static void record_escalation_end(struct escalation *x,
                                  const struct task_result *r, struct tx *tx)
{
    const struct reply *w = reply_current(x);
    struct why why;

    x->is_ending = true;
    write_end_reason(x->gatekeeper, x, r, &why);
    /* This reply's own end, not another one that is being written. */
    if (w && w->status == ESCALATION_REJECTED &&
        str_eq(r->error_code, STR("rejected"))) {
        escalation_decide(x, reply_status(w), w->by, w->comment, w->agent, tx);
        return;
    }
    escalation_decide(x, ESCALATION_RESOLVED, r->by.n ? r->by : ESCALATION_SELF,
                      str_of(why.text), STR(""), tx);
}

void escalations_record_end(struct gatekeeper *b, const struct task *t,
                            const struct task_result *r, struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct escalation *x = escalation_of(b, id),
                      *late = escalation_late_of(b, id);

    if (x && !x->is_coming)
        record_escalation_end(x, r, tx);
    if (late && !late->is_coming)
        record_escalation_end(late, r, tx);
}

void escalations_settle_end(struct gatekeeper *b, const struct task *t)
{
    struct str id = str_of(t->id.text);
    struct escalation *x = escalation_of(b, id),
                      *late = escalation_late_of(b, id);

    if (x && !x->is_coming)
        escalation_close(x, NULL);
    if (!late || late->is_coming)
        return;
    if (late->is_ending)
        escalation_close(late, NULL);
    else /* its row was written while the end was being committed */
        escalation_abandon(late);
}

bool escalation_approves(const struct gatekeeper *b, const struct task *t,
                         struct str *redirected_to)
{
    const struct escalation *x;
    const struct reply *w = reply_for_task(b, str_of(t->id.text), &x);

    *redirected_to = w ? w->agent : STR("");
    return w != NULL;
}

static void load_escalation(struct gatekeeper *b, const struct row *r)
{
    struct escalation row = {.at_ms = 0}, *x;

    record_from_row(&row, &escalation_table, r);
    x = escalation_make(b, &row.subject);
    x->id = row.id;
    x->kind = row.kind;
    x->at_ms = row.at_ms;
    x->remind_ms = row.remind_ms;
    x->expires_ms = row.expires_ms;
    x->reminded = row.reminded;
    snprintf(x->offer, sizeof(x->offer), "%.*s",
             STR_ARG(row_str(r, ESCALATION_OFFER)));
    escalation_enter(x);
    b->stats.escalations_open++;
    escalation_start(x);
}

enum err escalations_load(struct gatekeeper *b, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &escalation_table, ESCALATIONS_OPEN_MAX);
    query_if(&q, ESCALATION_DECIDED_MS, IS, value_null());
    query_order(&q, ESCALATION_SEQ, false);
    e = store_look(b->opts.store, &q);
    if (!e)
        QUERY_EACH(r, &q)
    load_escalation(b, r);
    query_fini(&q);
    return e ? why_err(why, e, "escalations cannot be read: %s",
                       err_row(e)->wording)
             : OK;
}

void escalations_init(struct gatekeeper *b)
{
    struct escalations *p = mem_new(sizeof(*p));

    b->escalations = p;
    list_init(&p->open);
    map_init(&p->by_id, ESCALATIONS_OPEN_MAX, b->opts.seed);
    map_init(&p->by_task, ESCALATIONS_OPEN_MAX, b->opts.seed);
    map_init(&p->late_by_task, ESCALATIONS_OPEN_MAX, b->opts.seed);
}

void escalations_stop(struct gatekeeper *b)
{
    struct escalations *p = b->escalations;

    p->is_stopped = true;
    for (struct list_node *n = list_first(&p->open); n;
         n = list_next(&p->open, n))
        loop_timer_cancel(b->opts.loop,
                          &LIST_OF(n, struct escalation, node)->timer);
}

void escalations_fini(struct gatekeeper *b)
{
    struct escalations *p = b->escalations;
    struct list_node *n;

    p->is_ending = true;
    while ((n = list_first(&p->open)))
        escalation_close(LIST_OF(n, struct escalation, node), NULL);
    map_fini(&p->by_id);
    map_fini(&p->by_task);
    map_fini(&p->late_by_task);
    free(p);
}

void escalations_prune(struct tx *tx, int64_t before_ms, size_t limit)
{
    struct tx_op *op;

    if (!before_ms)
        return;
    op = tx_prune(tx, &escalation_table, limit);
    tx_if(op, ESCALATION_DECIDED_MS, IS_LESS, value_int(before_ms));
}

bool escalations_check(const struct gatekeeper *b)
{
    const struct escalations *p = b->escalations;
    size_t n = 0;
    int64_t n_open = 0;

    for (struct list_node *at = list_first(&p->open); at;
         at = list_next(&p->open, at)) {
        const struct escalation *x = LIST_OF(at, struct escalation, node);
        size_t n_replies = 0;

        if (escalation_by_id(b, str_of(x->id.text)) != x ||
            map_get(escalation_map(x), str_of(x->subject.task_id.text)) != x)
            return false;
        for (struct list_node *w = list_first(&x->replies); w;
             w = list_next(&x->replies, w))
            n_replies++;
        if (n_replies != x->n_replies || (x->has_current_reply && !n_replies))
            return false;
        n_open += !x->is_coming;
        n++;
    }
    return n == p->by_id.n && n == p->by_task.n + p->late_by_task.n &&
           n_open == b->stats.escalations_open && map_check(&p->by_id);
}
