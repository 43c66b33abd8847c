/* Escalations: what a person must see. A row is written in the tx that says so
 * of its task, and decided in the tx of what follows; reminders and expiry are
 * moments in the row, so that a restart goes on with them. A moment that
 * passed while the server was away has come when it is back, once.
 *
 * Only those that are open are in memory, and no more than PEOPLE_OPEN_MAX:
 * people have not read the first hundred when there are ten thousand, and what
 * comes beyond is refused as any overload is. */
#include "broker/people.h"

#include <stdio.h>
#include <stdlib.h>

/* The hooks. */

static enum escalation_kind kind_of(enum pass_cause c)
{
    if (c == PASS_TARGET_DEAD)
        return ESCALATION_DEAD;
    return c == PASS_EXPIRED ? ESCALATION_EXPIRED : ESCALATION_RULE;
}

void people_record(struct broker *b, struct msg *m)
{
    const struct envelope *e = &m->gate.envelope;
    const struct pass *p = &m->gate.pass;
    struct asked *x;

    m->gate.escalation_id = (struct id){""};
    if (p->answer != GATE_ESCALATE)
        return;
    x = asked_new(b,
                  &(struct about){.task_id = m->task.id,
                                  .turn = m->task.turn,
                                  .priority = p->priority,
                                  .agent = m->choice.agent,
                                  .requester = caller_name(&m->in.caller),
                                  .root_user = caller_name(&m->in.caller),
                                  .from = e->from,
                                  .type = e->type,
                                  .reference = e->reference},
                  kind_of(p->cause), p->rule, str_of(p->reason), &m->tx);
    if (x)
        m->gate.escalation_id = x->id;
}

void people_settle(struct broker *b, struct msg *m, bool is_committed)
{
    struct asked *x = m->gate.escalation_id.text[0]
                          ? asked_by_id(b, str_of(m->gate.escalation_id.text))
                          : NULL;

    if (!x)
        return;
    if (is_committed)
        asked_open(x);
    else
        asked_undo(x);
}

static const char *why_gone(const struct asked *x)
{
    return x->kind == ESCALATION_DEAD ? "the agent is back"
                                      : "nothing stands in its way any more";
}

static enum escalation_status status_of(const struct said *w)
{
    return w->is_expiry ? ESCALATION_RAN_OUT : w->status;
}

/* What was asked for t: by its word, or because it need not be asked. */
static void record_answer(struct asked *x, struct tx *tx)
{
    const struct said *w = said_in_hand(x);

    x->is_recorded = true;
    if (w)
        asked_decide(x, status_of(w), w->by, w->comment, w->agent, tx);
    else
        asked_decide(x, ESCALATION_RESOLVED, PEOPLE_SELF, str_of(why_gone(x)),
                     STR(""), tx);
}

void people_record_pass(struct broker *b, const struct task *t,
                        const struct envelope *e, const struct pass *p,
                        struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct asked *x = asked_of(b, id), *late = asked_late(b, id);

    if (late && said_in_hand(late))
        record_answer(late, tx);
    if (p->answer != GATE_ESCALATE) {
        if (x)
            record_answer(x, tx);
        return;
    }
    if (x) { /* it must be seen all the same, for another reason perhaps */
        if (!said_in_hand(x))
            asked_rewrite(x, kind_of(p->cause), p->rule, str_of(p->reason), tx);
        return;
    }
    asked_new(b,
              &(struct about){.task_id = t->id,
                              .turn = t->turn,
                              .priority = p->priority,
                              .agent = t->agent,
                              .requester = t->requester,
                              .root_user = t->root_user,
                              .from = e ? e->from : t->requester,
                              .type = e ? e->type : ENVELOPE_MESSAGE,
                              .reference = e ? e->reference : STR("")},
              kind_of(p->cause), p->rule, str_of(p->reason), tx);
}

static void settle_one(struct asked *x, bool is_committed)
{
    struct said *w = said_in_hand(x);

    x->is_moving = false;
    if (x->becomes && is_committed)
        x->kind = x->becomes;
    x->becomes = 0;
    if (!x->is_recorded)
        return;
    x->is_recorded = false;
    if (is_committed)
        asked_close(x, w);
    else
        said_failed(x);
}

void people_settle_pass(struct broker *b, const struct task *t,
                        const struct pass *p, bool is_committed)
{
    struct str id = str_of(t->id.text);
    struct asked *x = asked_of(b, id), *late = asked_late(b, id);

    (void)p;
    if (late)
        settle_one(late, is_committed);
    if (!x)
        return;
    if (!x->is_coming)
        settle_one(x, is_committed);
    else if (is_committed)
        asked_open(x);
    else
        asked_undo(x);
}

static void word_end(const struct broker *b, const struct asked *x,
                     const struct task_result *r, struct why *out)
{
    int64_t ms = late_ms(b, str_of(x->about.task_id.text));
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

static void record_end(struct asked *x, const struct task_result *r,
                       struct tx *tx)
{
    const struct said *w = said_in_hand(x);
    struct why why;

    x->is_ending = true;
    word_end(x->broker, x, r, &why);
    /* Its own end, and not another that is on its way too. */
    if (w && w->status == ESCALATION_REJECTED &&
        str_eq(r->error_code, STR("rejected"))) {
        asked_decide(x, status_of(w), w->by, w->comment, w->agent, tx);
        return;
    }
    asked_decide(x, ESCALATION_RESOLVED, r->by.n ? r->by : PEOPLE_SELF,
                 str_of(why.text), STR(""), tx);
}

void people_record_end(struct broker *b, const struct task *t,
                       const struct task_result *r, struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct asked *x = asked_of(b, id), *late = asked_late(b, id);

    if (x && !x->is_coming)
        record_end(x, r, tx);
    if (late && !late->is_coming)
        record_end(late, r, tx);
}

void people_settle_end(struct broker *b, const struct task *t,
                       const struct task_result *r)
{
    struct str id = str_of(t->id.text);
    struct asked *x = asked_of(b, id), *late = asked_late(b, id);

    (void)r;
    if (x && !x->is_coming)
        asked_close(x, NULL);
    if (!late || late->is_coming)
        return;
    if (late->is_ending)
        asked_close(late, NULL);
    else /* it was written while the end was on its way */
        asked_forsake(late);
}

bool people_let_go(const struct broker *b, const struct task *t,
                   struct str *redirected_to)
{
    struct asked *x = asked_of(b, str_of(t->id.text));
    const struct said *w = x ? said_in_hand(x) : NULL;

    if (!w) {
        x = asked_late(b, str_of(t->id.text));
        w = x ? said_in_hand(x) : NULL;
    }
    *redirected_to = w ? w->agent : STR("");
    return w != NULL;
}

/* Life. */

static void about_of_row(const struct row *r, struct about *out)
{
    *out = (struct about){
        .task_id = id_from(row_str(r, ESCALATION_TASK_ID)),
        .turn = row_int(r, ESCALATION_TURN),
        .priority = (enum task_priority)row_int(r, ESCALATION_PRIORITY),
        .agent = row_str(r, ESCALATION_AGENT),
        .requester = row_str(r, ESCALATION_REQUESTER),
        .root_user = row_str(r, ESCALATION_ROOT_USER),
        .from = row_str(r, ESCALATION_FROM),
        .type = row_str(r, ESCALATION_TYPE),
        .reference = row_str(r, ESCALATION_REFERENCE)};
}

static enum err load_row(struct broker *b, const struct row *r)
{
    struct about about;
    struct asked *x;

    about_of_row(r, &about);
    x = asked_make(b, &about);
    if (!x)
        return ERR_NOMEM;
    x->id = id_from(row_str(r, ESCALATION_ID));
    x->kind = (enum escalation_kind)row_int(r, ESCALATION_KIND);
    x->at_ms = row_int(r, ESCALATION_AT_MS);
    x->remind_ms = row_int(r, ESCALATION_REMIND_MS);
    x->expires_ms = row_int(r, ESCALATION_EXPIRES_MS);
    x->reminded = row_int(r, ESCALATION_REMINDED);
    snprintf(x->offer, sizeof(x->offer), "%.*s",
             STR_ARG(row_str(r, ESCALATION_OFFER)));
    if (asked_enter(x) != OK) {
        free(x);
        return ERR_NOMEM;
    }
    b->stats.escalations_open++;
    asked_start(x);
    return OK;
}

enum err people_load(struct broker *b, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &escalation_table, PEOPLE_OPEN_MAX);
    query_if(&q, ESCALATION_DECIDED_MS, IS, value_null());
    query_order(&q, ESCALATION_SEQ, false);
    e = store_look(b->opts.store, &q);
    if (!e)
        QUERY_EACH(r, &q)
    if (!e)
        e = load_row(b, r);
    query_fini(&q);
    return e ? why_err(why, e, "escalations cannot be read: %s",
                       err_row(e)->wording)
             : OK;
}

enum err people_init(struct broker *b)
{
    struct people *p = FAULT("broker.people") ? NULL : calloc(1, sizeof(*p));

    b->people = p;
    if (!p)
        return ERR_NOMEM;
    list_init(&p->open);
    map_init(&p->by_id, PEOPLE_OPEN_MAX, b->opts.seed);
    map_init(&p->by_task, PEOPLE_OPEN_MAX, b->opts.seed);
    map_init(&p->late_by_task, PEOPLE_OPEN_MAX, b->opts.seed);
    return OK;
}

void people_stop(struct broker *b)
{
    struct people *p = b->people;

    p->is_stopped = true;
    for (struct list_node *n = list_first(&p->open); n;
         n = list_next(&p->open, n))
        loop_timer_cancel(b->opts.loop, &LIST_OF(n, struct asked, node)->timer);
}

void people_fini(struct broker *b)
{
    struct people *p = b->people;
    struct list_node *n;

    if (!p)
        return;
    p->is_ending = true;
    while ((n = list_first(&p->open)))
        asked_close(LIST_OF(n, struct asked, node), NULL);
    map_fini(&p->by_id);
    map_fini(&p->by_task);
    map_fini(&p->late_by_task);
    free(p);
    b->people = NULL;
}

void people_rules(struct broker *b)
{
    (void)b; /* those that are open keep their moments */
}

void people_agent_changed(struct broker *b, struct str agent)
{
    (void)b, (void)agent;
}

void people_prune(struct broker *b, struct tx *tx, int64_t before_ms,
                  int64_t rows, size_t limit)
{
    struct tx_op *op;

    (void)b, (void)rows;
    if (!before_ms)
        return;
    op = tx_prune(tx, &escalation_table, limit);
    tx_if(op, ESCALATION_DECIDED_MS, IS_LESS, value_int(before_ms));
}

bool people_check(const struct broker *b)
{
    const struct people *p = b->people;
    size_t n = 0;
    int64_t n_open = 0;

    for (struct list_node *at = list_first(&p->open); at;
         at = list_next(&p->open, at)) {
        const struct asked *x = LIST_OF(at, struct asked, node);
        size_t n_words = 0;

        if (asked_by_id(b, str_of(x->id.text)) != x ||
            map_get(asked_map(x), str_of(x->about.task_id.text)) != x)
            return false;
        for (struct list_node *w = list_first(&x->words); w;
             w = list_next(&x->words, w))
            n_words++;
        if (n_words != x->n_words || (x->is_in_hand && !n_words))
            return false;
        n_open += !x->is_coming;
        n++;
    }
    return n == p->by_id.n && n == p->by_task.n + p->late_by_task.n &&
           n_open == b->stats.escalations_open && map_check(&p->by_id);
}
