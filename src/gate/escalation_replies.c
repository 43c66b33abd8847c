/* People's replies to escalations:
 *
 *     approve    the task is decided again as approved by a person, and goes on
 *                exactly as it was: its text was never touched
 *     reject     the task is cancelled, error_code "rejected"
 *     redirect   the same task and text for another agent
 *
 * Replies to one escalation are handled one at a time. The first is current
 * until its tx returns. If that was committed the others learn which reply won;
 * otherwise the next becomes current. The row decides whether the escalation is
 * still open: it is read after a failed guard, and for an escalation that is
 * not in memory.
 *
 * An escalation of kind late does not stop the work: approve acknowledges it,
 * reject cancels the task, redirect moves it to another agent. */
#include "gate/escalations.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct reply *reply_current(const struct escalation *x)
{
    struct list_node *n = x->has_current_reply ? list_first(&x->replies) : NULL;

    return n ? LIST_OF(n, struct reply, node) : NULL;
}

const struct reply *reply_for_task(const struct gatekeeper *b,
                                   struct str task_id,
                                   const struct escalation **x)
{
    const struct reply *w;

    *x = escalation_of(b, task_id);
    w = *x ? reply_current(*x) : NULL;
    if (w)
        return w;
    *x = escalation_late_of(b, task_id);
    return *x ? reply_current(*x) : NULL;
}

static void reply_unlink(struct reply *w)
{
    struct escalation *x = w->escalation;

    if (!x)
        return;
    if (reply_current(x) == w)
        x->has_current_reply = false;
    list_remove(&w->node);
    x->n_replies--;
    w->escalation = NULL;
}

void reply_finish(struct reply *w, enum err e, const struct why *why)
{
    struct why none = {""};

    reply_unlink(w);
    if (w->done && !w->gatekeeper->escalations->is_ending)
        w->done(w->ctx, e, why ? why : &none);
    else if (e && e != ERR_EXISTS)
        log_warn(w->gatekeeper->opts.log, "broker.not_decided",
                 LOG_C("escalation_id", w->id.text),
                 LOG_C("because", err_row(e)->wording));
    if (w->is_own)
        tx_fini(&w->tx);
    free(w);
}

/* Report which reply won. */

static void on_winner_row(struct query *q, void *ctx)
{
    struct reply *w = ctx;
    const struct row *r = q->rows;
    struct escalation *x = w->escalation;
    enum err e = q->err;
    struct why why = {""};
    int64_t status = r ? row_int(r, ESCALATION_STATUS) : 0;

    if (!e && !r)
        e = why_err(&why, ERR_NOT_FOUND, "there is no such escalation");
    else if (!e && status == ESCALATION_OPEN)
        e = why_err(&why, ERR_BUSY, "the task is changing; try again");
    else if (!e)
        e = why_err(
            &why, ERR_EXISTS, "%.*s has already decided it: %.*s",
            STR_ARG(row_str(r, ESCALATION_BY)),
            STR_ARG(escalation_status_name((enum escalation_status)status)));
    query_fini(q);
    w->is_out = false;
    if (w->is_late && e != ERR_EXISTS)
        e = why_err(&why, ERR_EXISTS, "it is already decided");
    if (x && e == ERR_EXISTS) { /* memory did not know */
        reply_unlink(w);
        escalation_close(x, NULL);
        x = NULL;
    }
    reply_finish(w, e, &why);
    if (x)
        reply_next(x);
}

static void read_winner(struct reply *w)
{
    w->is_out = true;
    query_init(&w->query, &escalation_table, 1);
    query_if(&w->query, ESCALATION_ID, IS, value_text(str_of(w->id.text)));
    w->query.is_quick = true;
    store_read(w->gatekeeper->opts.store, &w->query, on_winner_row, w);
}

void reply_too_late(struct reply *w)
{
    w->is_late = true;
    if (w->gatekeeper->escalations->is_ending)
        reply_finish(w, ERR_STOPPING, NULL);
    else
        read_winner(w);
}

void reply_failed(struct escalation *x)
{
    struct reply *w = reply_current(x);

    if (w && !w->is_out)
        read_winner(w);
}

static void on_task_rejected(void *ctx, struct str task_id, enum err e)
{
    struct reply *w = ctx;
    struct escalation *x = w->escalation;
    struct why why = {""};

    (void)task_id;
    w->is_out = false;
    if (!e) { /* escalations_settle_end has closed it */
        reply_finish(w, OK, NULL);
    } else if (e == ERR_TASK_IS_OVER || e == ERR_BUSY || !x) {
        read_winner(w);
    } else {
        why_err(&why, e, "%s", err_row(e)->wording);
        reply_finish(w, e, &why);
        reply_next(x);
    }
}

static void reject_task(struct escalation *x, struct reply *w)
{
    struct gatekeeper *b = x->gatekeeper;
    struct why words;
    enum err e;

    if (w->is_expiry)
        why_err(&words, OK, "%.*s", STR_ARG(w->comment));
    else
        why_err(&words, OK, "%.*s has rejected it%s%.*s", STR_ARG(w->by),
                w->comment.n ? ": " : "", STR_ARG(str_head(w->comment, 400)));
    w->is_out = true;
    e = b->opts.end(b->opts.ctx, str_of(x->subject.task_id.text),
                    &(struct task_result){.status = TASK_CANCELLED,
                                          .error_code = STR("rejected"),
                                          .error = str_of(words.text),
                                          .by = w->by},
                    on_task_rejected, w);
    if (e)
        on_task_rejected(w, str_of(x->subject.task_id.text), e);
}

static void on_acknowledge_written(struct tx *tx, void *ctx)
{
    struct reply *w = ctx;
    struct escalation *x = w->escalation;
    struct why why = {""};

    w->is_out = false;
    if (tx->result == TX_COMMITTED) {
        if (x)
            escalation_close(x, w);
        else
            reply_finish(w, OK, NULL);
    } else if (tx->result == TX_GUARD_FAILED) {
        read_winner(w);
    } else {
        why_err(&why, tx->err, "%s", err_row(tx->err)->wording);
        reply_finish(w, tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err,
                     &why);
        if (x)
            reply_next(x);
    }
}

static void acknowledge_escalation(struct escalation *x, struct reply *w)
{
    tx_init(&w->tx);
    w->is_own = true;
    w->is_out = true;
    escalation_decide(x, w->is_expiry ? ESCALATION_RAN_OUT : w->status, w->by,
                      w->comment, STR(""), &w->tx);
    store_submit(x->gatekeeper->opts.store, &w->tx, on_acknowledge_written, w);
}

/* Let the task go on, or to another agent: escalation_approves gives the
 * answer. */
static void let_task_go(struct escalation *x, struct reply *w)
{
    struct gatekeeper *b = x->gatekeeper;
    struct id id = x->id;

    x->is_recorded = false;
    b->opts.on_ripe(b->opts.ctx, str_of(x->subject.task_id.text));
    x = escalation_by_id(b, str_of(id.text));
    if (x && reply_current(x) == w && !x->is_recorded)
        read_winner(w);
}

void reply_next(struct escalation *x)
{
    struct list_node *n = list_first(&x->replies);
    struct reply *w;

    if (x->has_current_reply || !n)
        return;
    w = LIST_OF(n, struct reply, node);
    x->has_current_reply = true;
    if (w->status == ESCALATION_REJECTED)
        reject_task(x, w);
    else if (w->status == ESCALATION_RESOLVED ||
             (x->kind == ESCALATION_LATE && w->status != ESCALATION_REDIRECTED))
        acknowledge_escalation(x, w);
    else
        let_task_go(x, w);
}

static struct reply *reply_new(struct gatekeeper *b,
                               const struct escalation_reply *word)
{
    size_t n = word->agent.n + word->comment.n + word->by.n;
    struct reply *w = mem_new(sizeof(*w) + n);
    char *at = w->strings;

    w->gatekeeper = b;
    w->id = id_from(word->id);
    w->status = word->status;
    w->agent = str_pack(&at, word->agent);
    w->comment = str_pack(&at, word->comment);
    w->by = str_pack(&at, word->by);
    return w;
}

/* Whether the requester may see the agent, and it is another one than the
 * sender and the current one. */
static enum err check_redirect(struct escalation *x, struct str agent,
                               struct why *why)
{
    struct gatekeeper *b = x->gatekeeper;
    const struct subject *a = &x->subject;
    struct gate_agent g = {.name = agent};

    b->opts.agent(b->opts.ctx, agent, &g);
    if (!g.is_known || !requester_sees(b, a->requester, agent))
        return why_err(why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%.*s\" that %.*s may see",
                       STR_ARG(str_head(agent, AGENT_NAME_MAX)),
                       STR_ARG(a->requester));
    if (str_eq_nocase(agent, a->from))
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s sent it and cannot receive it", STR_ARG(a->from));
    if (is_above_task(b, str_of(a->task_id.text), agent))
        return why_err(
            why, ERR_BAD_REQUEST,
            "it is done for %.*s: an agent occurs only once in a chain",
            STR_ARG(agent));
    if (str_eq_nocase(agent, a->agent))
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s already has it; approve it instead",
                       STR_ARG(a->agent));
    return OK;
}

static void reply_enqueue(struct escalation *x, struct reply *w)
{
    w->escalation = x;
    list_append(&x->replies, &w->node);
    x->n_replies++;
    reply_next(x);
}

void gatekeeper_reply(struct gatekeeper *b, const struct escalation_reply *word,
                      void (*done)(void *ctx, enum err e,
                                   const struct why *why),
                      void *ctx)
{
    struct escalation *x = escalation_by_id(b, word->id);
    struct why why = {""};
    struct reply *w;
    enum err e = OK;

    if (!id_is_valid(word->id, "esc"))
        e = why_err(&why, ERR_NOT_FOUND, "there is no such escalation");
    else if (b->escalations->is_stopped)
        e = why_err(&why, ERR_STOPPING, "the server is stopping");
    else if (x && x->n_replies >= ESCALATION_REPLIES_MAX)
        e = why_err(&why, ERR_BUSY, "others are deciding it; try again");
    else if (x && word->status == ESCALATION_REDIRECTED)
        e = check_redirect(x, word->agent, &why);
    if (e) {
        done(ctx, e, &why);
        return;
    }
    w = reply_new(b, word);
    w->done = done;
    w->ctx = ctx;
    if (x && !x->is_coming)
        reply_enqueue(x, w);
    else
        read_winner(w);
}

void reply_self(struct escalation *x, enum escalation_status status,
                struct str agent, struct str comment, bool is_expiry)
{
    struct reply *w = reply_new(
        x->gatekeeper, &(struct escalation_reply){.id = str_of(x->id.text),
                                                  .status = status,
                                                  .agent = agent,
                                                  .comment = comment,
                                                  .by = ESCALATION_SELF});

    w->is_expiry = is_expiry;
    reply_enqueue(x, w);
}
