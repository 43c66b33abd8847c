/* What people say to escalations.
 *
 *     approve    the task is asked about again as one that a person let go, and
 *                goes on exactly as it was: its text was never touched
 *     reject     the task is cancelled, error_code "rejected"
 *     redirect   the same task and text for another agent
 *
 * Words for one escalation are taken one after the other. The first is in hand
 * until the tx that carries it out is back; if it was committed the others hear
 * who was first, else the next has its turn. Whether one is still open is
 * nevertheless for the row to say: a tx whose guard fails is looked up there,
 * and so is what is not in memory.
 *
 * Of one that is late the work goes on: to approve is to have seen it, to
 * reject cancels the task, to redirect takes it to another agent. */
#include "broker/people.h"

#include <stdio.h>
#include <stdlib.h>

struct said *said_in_hand(const struct asked *x)
{
    struct list_node *n = x->is_in_hand ? list_first(&x->words) : NULL;

    return n ? LIST_OF(n, struct said, node) : NULL;
}

static void unlink_word(struct said *w)
{
    struct asked *x = w->asked;

    if (!x)
        return;
    if (said_in_hand(x) == w)
        x->is_in_hand = false;
    list_remove(&w->node);
    x->n_words--;
    w->asked = NULL;
}

void said_finish(struct said *w, enum err e, const struct why *why)
{
    struct why none = {""};

    unlink_word(w);
    if (w->done && !w->broker->people->is_ending)
        w->done(w->ctx, e, why ? why : &none);
    else if (e && e != ERR_EXISTS)
        log_warn(w->broker->opts.log, "broker.not_decided",
                 LOG_C("escalation_id", w->id.text),
                 LOG_C("because", err_row(e)->wording));
    if (w->is_own)
        tx_fini(&w->tx);
    free(w);
}

/* Who was first. */

static void on_row(struct query *q, void *ctx)
{
    struct said *w = ctx;
    const struct row *r = q->rows;
    struct asked *x = w->asked;
    enum err e = q->err;
    struct why why = {""};
    int64_t status = r ? row_int(r, ESCALATION_STATUS) : 0;

    if (!e && !r)
        e = why_err(&why, ERR_NOT_FOUND, "there is no such escalation");
    else if (!e && status == ESCALATION_OPEN)
        e = why_err(&why, ERR_BUSY, "the task is changing; ask again");
    else if (!e)
        e = why_err(
            &why, ERR_EXISTS, "%.*s has decided it already: %.*s",
            STR_ARG(row_str(r, ESCALATION_BY)),
            STR_ARG(escalation_status_name((enum escalation_status)status)));
    query_fini(q);
    w->is_out = false;
    if (w->is_late && e != ERR_EXISTS)
        e = why_err(&why, ERR_EXISTS, "somebody has decided it already");
    if (x && e == ERR_EXISTS) { /* memory did not know */
        unlink_word(w);
        asked_close(x, NULL);
        x = NULL;
    }
    said_finish(w, e, &why);
    if (x)
        said_next(x);
}

static void look_up(struct said *w)
{
    w->is_out = true;
    query_init(&w->query, &escalation_table, 1);
    query_if(&w->query, ESCALATION_ID, IS, value_text(str_of(w->id.text)));
    w->query.is_quick = true;
    store_read(w->broker->opts.store, &w->query, on_row, w);
}

void said_too_late(struct said *w)
{
    w->is_late = true;
    if (w->broker->people->is_ending)
        said_finish(w, ERR_STOPPING, NULL);
    else
        look_up(w);
}

void said_failed(struct asked *x)
{
    struct said *w = said_in_hand(x);

    if (w && !w->is_out)
        look_up(w);
}

/* What follows. */

/* The words of a rejection are the task's error. */
static void on_ended(void *ctx, struct str task_id, enum err e)
{
    struct said *w = ctx;
    struct asked *x = w->asked;
    struct why why = {""};

    (void)task_id;
    w->is_out = false;
    if (!e) { /* people_settle_end has closed it */
        said_finish(w, OK, NULL);
    } else if (e == ERR_TASK_IS_OVER || e == ERR_BUSY || !x) {
        look_up(w);
    } else {
        why_err(&why, e, "%s", err_row(e)->wording);
        said_finish(w, e, &why);
        said_next(x);
    }
}

static void reject(struct asked *x, struct said *w)
{
    struct broker *b = x->broker;
    struct why words;
    enum err e;

    if (w->is_expiry)
        why_err(&words, OK, "%.*s", STR_ARG(w->comment));
    else
        why_err(&words, OK, "%.*s has rejected it%s%.*s", STR_ARG(w->by),
                w->comment.n ? ": " : "", STR_ARG(str_head(w->comment, 400)));
    w->is_out = true;
    e = b->opts.end(b->opts.ctx, str_of(x->about.task_id.text),
                    &(struct task_result){.status = TASK_CANCELLED,
                                          .error_code = STR("rejected"),
                                          .error = str_of(words.text),
                                          .by = w->by},
                    on_ended, w);
    if (e)
        on_ended(w, str_of(x->about.task_id.text), e);
}

/* It was seen. */
static void on_seen(struct tx *tx, void *ctx)
{
    struct said *w = ctx;
    struct asked *x = w->asked;
    struct why why = {""};

    w->is_out = false;
    if (tx->result == TX_COMMITTED) {
        if (x)
            asked_close(x, w);
        else
            said_finish(w, OK, NULL);
    } else if (tx->result == TX_GUARD_FAILED) {
        look_up(w);
    } else {
        why_err(&why, tx->err, "%s", err_row(tx->err)->wording);
        said_finish(w, tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err,
                    &why);
        if (x)
            said_next(x);
    }
}

static void see(struct asked *x, struct said *w)
{
    tx_init(&w->tx);
    w->is_own = true;
    w->is_out = true;
    asked_decide(x, w->is_expiry ? ESCALATION_RAN_OUT : w->status, w->by,
                 w->comment, STR(""), &w->tx);
    store_submit(x->broker->opts.store, &w->tx, on_seen, w);
}

/* On to where it was meant to go, or to somebody else: people_let_go tells. */
static void let_go(struct asked *x, struct said *w)
{
    struct broker *b = x->broker;
    struct id id = x->id;

    x->is_recorded = false;
    b->opts.on_ripe(b->opts.ctx, str_of(x->about.task_id.text));
    x = asked_by_id(b, str_of(id.text));
    if (x && said_in_hand(x) == w && !x->is_recorded)
        look_up(w);
}

void said_next(struct asked *x)
{
    struct list_node *n = list_first(&x->words);
    struct said *w;

    if (x->is_in_hand || !n)
        return;
    w = LIST_OF(n, struct said, node);
    x->is_in_hand = true;
    if (w->status == ESCALATION_REJECTED)
        reject(x, w);
    else if (w->status == ESCALATION_RESOLVED ||
             (x->kind == ESCALATION_LATE && w->status != ESCALATION_REDIRECTED))
        see(x, w);
    else
        let_go(x, w);
}

/* Saying. */

static struct said *said_new(struct broker *b,
                             const struct escalation_word *word)
{
    size_t n = word->agent.n + word->comment.n + word->by.n;
    struct said *w = FAULT("broker.said") ? NULL : calloc(1, sizeof(*w) + n);
    char *at;

    if (!w)
        return NULL;
    at = w->strings;
    w->broker = b;
    w->id = id_from(word->id);
    w->status = word->status;
    w->agent = str_pack(&at, word->agent);
    w->comment = str_pack(&at, word->comment);
    w->by = str_pack(&at, word->by);
    return w;
}

/* Another agent, that the requester may see, and not who sent it. */
static enum err may_have(struct asked *x, struct str agent, struct why *why)
{
    struct broker *b = x->broker;
    const struct about *a = &x->about;
    struct gate_agent g = {.name = agent};

    b->opts.agent(b->opts.ctx, agent, &g);
    if (!g.is_known ||
        (b->opts.sees && !b->opts.sees(b->opts.ctx, a->requester, agent)))
        return why_err(why, ERR_AGENT_NOT_FOUND,
                       "there is no agent \"%.*s\" that %.*s may see",
                       STR_ARG(str_head(agent, AGENT_NAME_MAX)),
                       STR_ARG(a->requester));
    if (str_eq_nocase(agent, a->from))
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s has sent it: it cannot be the one to get it",
                       STR_ARG(a->from));
    if (b->opts.is_above &&
        b->opts.is_above(b->opts.ctx, str_of(a->task_id.text), agent))
        return why_err(why, ERR_BAD_REQUEST,
                       "it is done for %.*s: nobody works twice in one chain",
                       STR_ARG(agent));
    if (str_eq_nocase(agent, a->agent))
        return why_err(why, ERR_BAD_REQUEST,
                       "it is for %.*s already; approve it instead",
                       STR_ARG(a->agent));
    return OK;
}

static void say(struct asked *x, struct said *w)
{
    w->asked = x;
    list_append(&x->words, &w->node);
    x->n_words++;
    said_next(x);
}

void broker_say(struct broker *b, const struct escalation_word *word,
                void (*done)(void *ctx, enum err e, const struct why *why),
                void *ctx)
{
    struct asked *x = asked_by_id(b, word->id);
    struct why why = {""};
    struct said *w;
    enum err e = OK;

    if (!id_is_valid(word->id, "esc"))
        e = why_err(&why, ERR_NOT_FOUND, "there is no such escalation");
    else if (b->people->is_stopped)
        e = why_err(&why, ERR_STOPPING, "the server stops");
    else if (x && x->n_words >= PEOPLE_WORDS_MAX)
        e = why_err(&why, ERR_BUSY, "others are deciding it; ask again");
    else if (x && word->status == ESCALATION_REDIRECTED)
        e = may_have(x, word->agent, &why);
    w = e ? NULL : said_new(b, word);
    if (!w) {
        done(ctx, e ? e : why_err(&why, ERR_NOMEM, "out of memory"), &why);
        return;
    }
    w->done = done;
    w->ctx = ctx;
    if (x && !x->is_coming)
        say(x, w);
    else
        look_up(w);
}

bool say_self(struct asked *x, enum escalation_status status, struct str agent,
              struct str comment, bool is_expiry)
{
    struct said *w;

    if (x->n_words >= PEOPLE_WORDS_MAX)
        return false;
    w = said_new(x->broker, &(struct escalation_word){.id = str_of(x->id.text),
                                                      .status = status,
                                                      .agent = agent,
                                                      .comment = comment,
                                                      .by = PEOPLE_SELF});
    if (!w)
        return false;
    w->is_expiry = is_expiry;
    say(x, w);
    return true;
}
