/* One decision after the other, each with two or three queries: the job is in
 * no hurry and stays out of the way. It does not wait for the txs of decisions,
 * but for all of a page before the next one.
 *
 * Rejected: one tx for a page. A user's verdict that comes in between would
 * undo the verdicts of all the others. */
#include "learn/judge.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
    PAGE = 50,                    /* decisions */
    DECISION_BYTES = 1024 * 1024, /* of one decoded decision */
};

/* A pending tx of one decision. */
struct judge_tx {
    struct judge *judge;
    bool is_verdict; /* else only facts */
    struct tx tx;
};

static void judge_next(struct judge *j);

/* Judging. */

enum verdict judge_verdict(const struct judge_rules *rules,
                           const struct judge_facts *f)
{
    if (!f->is_known)
        return VERDICT_NEUTRAL;
    if (f->status == TASK_FAILED || f->status == TASK_EXPIRED || f->is_switched)
        return VERDICT_NEGATIVE;
    if (f->status != TASK_COMPLETED)
        return VERDICT_NEUTRAL; /* cancelled or the like */
    if (f->chars < rules->uselessly_short)
        return VERDICT_NEGATIVE;
    return f->chars >= rules->substantial && f->is_followed ? VERDICT_POSITIVE
                                                            : VERDICT_NEUTRAL;
}

struct str judge_scope(struct str org, struct str user,
                       char out[JUDGE_SCOPE_BYTES])
{
    struct str name = org.n ? org : user;
    int n;

    if (PLANTED("lessons.one_scope"))
        org = name = STR("all");
    n = snprintf(out, JUDGE_SCOPE_BYTES, "%s:%.*s", org.n ? "org" : "user",
                 STR_ARG(name));
    assert(n > 0 && n < JUDGE_SCOPE_BYTES);
    return (struct str){out, (size_t)n};
}

struct str learning_text(const struct decision *d)
{
    return d->layer == LAYER_PREFIX ? choose_behind_prefix(d->text) : d->text;
}

struct outcome judge_outcome(const struct decision *d,
                             char scope[JUDGE_SCOPE_BYTES])
{
    return (struct outcome){
        .decision_id = d->id,
        .layer = d->layer,
        .agent = d->agent,
        .scope = judge_scope(d->org, d->requester, scope),
        .requester = d->requester,
        .text = learning_text(d),
        .text_hash =
            d->text_hash ? d->text_hash : decision_text_hash(learning_text(d)),
        .vector = d->vector,
        .model_hash = d->model_hash,
    };
}

void judge_stand(struct outcome *o, enum learning_standing standing)
{
    if (standing == STANDS_ALONE)
        o->agent = STR("");
    else if (standing == STANDS_INSIDE)
        o->counts = COUNTS_INSIDE;
}

/* The end of a run, or of a page. */

static void on_decision_page(struct query *q, void *ctx);

static void judge_read_page(struct judge *j)
{
    query_init(&j->page, &decision_table, PAGE);
    query_if(&j->page, DECISION_FOLLOWED, IS, value_null());
    query_if(&j->page, DECISION_SEQ, IS_MORE, value_int(j->last_seq));
    query_order(&j->page, DECISION_SEQ, false);
    store_read(j->store, &j->page, on_decision_page, j);
}

/* The decisions of a page are all judged and written. After a page of decisions
 * that are all too young there are only younger ones. */
static void end_page(struct judge *j)
{
    bool has_more = j->page.has_more && j->has_old;

    if (j->n_out)
        return;
    query_fini(&j->page);
    if (j->is_stopping && !j->err)
        j->err = ERR_STOPPING;
    if (has_more && !j->err) {
        judge_read_page(j);
        return;
    }
    j->is_running = false;
    arena_reset(&j->arena);
    j->on_over(j->ctx, j->err, j->n_judged);
}

static void judge_skip(struct judge *j)
{
    j->at = j->at->next;
    judge_next(j);
}

static void judge_fail(struct judge *j, enum err e)
{
    if (!j->err)
        j->err = e;
    j->at = NULL;
    end_page(j);
}

/* Writing. */

static void on_judge_tx(struct tx *tx, void *ctx)
{
    struct judge_tx *s = ctx;
    struct judge *j = s->judge;

    if (tx->result == TX_COMMITTED)
        j->n_judged += s->is_verdict;
    else if (tx->result != TX_GUARD_FAILED && !j->err)
        j->err = tx->err;
    j->n_out--;
    tx_fini(tx);
    free(s);
    if (!j->at)
        end_page(j);
}

static int64_t n_chars(struct str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += !utf8_is_tail((unsigned char)text.p[i]);
    return n;
}

static void set_end(struct tx_op *op, int64_t chars, int64_t latency_ms,
                    struct str error_code)
{
    tx_set(op, DECISION_ANSWER_CHARS, value_int(chars));
    tx_set(op, DECISION_LATENCY_MS, value_int(latency_ms));
    tx_set(op, DECISION_ERROR_CODE, value_text_or_null(error_code));
}

/* An id has the time of its decision; the clock may have been set back
 * since. */
void learning_record_end(void *learning, const struct turn_end *end,
                         struct tx *tx)
{
    const struct id *decision = &end->task->decision_id;
    const struct task_result *r = end->result;
    int64_t latency_ms = end->at_ms - id_time_ms(decision);
    struct tx_op *op;

    (void)learning; /* memory follows when the decision is judged */
    if (!decision->text[0])
        return;
    op = tx_amend(tx, &decision_table);
    tx_if(op, DECISION_ID, IS, value_text(str_of(decision->text)));
    set_end(op, n_chars(r->text), latency_ms > 0 ? latency_ms : 0,
            r->error_code);
}

static void write_verdict(struct judge *j, struct tx *tx, enum verdict v)
{
    struct tx_op *op = tx_update(tx, &decision_table);
    const struct judge_facts *f = &j->facts;
    char scope[JUDGE_SCOPE_BYTES];
    struct outcome o;

    tx_if(op, DECISION_ID, IS, value_text(str_of(j->d.id.text)));
    tx_set(op, DECISION_FOLLOWED, value_int(f->is_followed));
    if (f->is_known)
        set_end(op, f->chars, f->finished_ms - j->d.at_ms, f->error_code);
    if (j->d.verdict)
        return; /* a user was first: only facts */
    tx_if(op, DECISION_VERDICT, IS, value_null());
    tx_set(op, DECISION_VERDICT, value_int(v));
    tx_set(op, DECISION_VERDICT_MS, value_int(j->now_ms));
    /* Choices that the router did not make say nothing about routing. */
    if (j->d.layer != LAYER_SEMANTIC && j->d.layer != LAYER_INTENT)
        return;
    o = judge_outcome(&j->d, scope);
    judge_stand(&o, j->stands(j->ctx, &j->d));
    o.owner = j->owner_of(j->ctx, o.agent);
    o.kind = OUTCOME_VERDICT;
    o.verdict = v;
    o.at_ms = j->now_ms;
    outcome_append(tx, &o);
}

static void judge_write(struct judge *j, enum verdict v)
{
    struct judge_tx *s = mem_new(sizeof(*s));

    s->judge = j;
    s->is_verdict = !j->d.verdict;
    tx_init(&s->tx);
    write_verdict(j, &s->tx, v);
    j->n_out++;
    store_submit(j->store, &s->tx, on_judge_tx, s);
    judge_skip(j);
}

/* Reading. */

static void on_next_message(struct query *q, void *ctx)
{
    struct judge *j = ctx;
    const struct row *r = q->rows;
    int64_t layer = r ? row_int(r, DECISION_LAYER) : 0;
    enum err e = q->err;

    if (!e && r &&
        row_int(r, DECISION_AT_MS) <=
            j->facts.finished_ms + j->rules.follow_up_ms) {
        j->facts.is_followed =
            str_eq_nocase(row_str(r, DECISION_AGENT), j->d.agent);
        j->facts.is_switched =
            !j->facts.is_followed &&
            (layer == LAYER_EXPLICIT || layer == LAYER_PREFIX);
    }
    query_fini(q);
    if (e)
        judge_fail(j, e);
    else
        judge_write(j, judge_verdict(&j->rules, &j->facts));
}

static void read_next_message(struct judge *j)
{
    query_init(&j->look, &decision_table, 1);
    query_if(&j->look, DECISION_REQUESTER, IS, value_text(j->d.requester));
    query_if(&j->look, DECISION_CONVERSATION_ID, IS,
             value_text(j->d.conversation_id));
    query_if(&j->look, DECISION_SEQ, IS_MORE, value_int(j->d.seq));
    query_if(&j->look, DECISION_LAYER, IS_NOT, value_int(LAYER_NONE));
    query_order(&j->look, DECISION_SEQ, false);
    j->look.is_quick = true;
    store_read(j->store, &j->look, on_next_message, j);
}

static enum err take_facts(struct judge *j, const struct task *t)
{
    struct str code = t->result.error_code;
    char *kept = arena_strdup(&j->arena, code);

    if (!kept)
        return ERR_NOMEM;
    j->facts = (struct judge_facts){
        .is_known = true,
        .status = t->status,
        .chars = n_chars(t->result.text),
        .finished_ms = t->finished_ms,
        .error_code = {kept, code.n},
    };
    return OK;
}

/* The turn is over. Check whether its window is over too. */
static void judge_check_window(struct judge *j, enum err e)
{
    if (e)
        judge_fail(j, e);
    else if (!j->facts.is_known)
        judge_write(j, judge_verdict(&j->rules, &j->facts));
    else if (j->facts.finished_ms > j->now_ms - j->rules.follow_up_ms)
        judge_skip(j);
    else
        read_next_message(j);
}

static void judge_on_turn(struct query *q, void *ctx)
{
    struct judge *j = ctx;
    enum err e = q->err;
    struct task t = {0};

    if (!e && q->rows) {
        task_of_turn(&t, q->rows);
        e = take_facts(j, &t);
    }
    query_fini(q);
    judge_check_window(j, e);
}

/* For a moment, memory may be behind the row or the row behind memory: a task
 * in progress waits for the next run. */
static void judge_on_task(struct query *q, void *ctx)
{
    struct judge *j = ctx;
    enum err e = q->err;
    struct task t = {0};
    int64_t seq = 0;
    bool is_over = true;

    if (!e && q->rows) {
        task_from_row(&t, q->rows);
        seq = t.turn > j->d.turn ? t.seq : 0;
        is_over = seq || task_is_over(t.status);
        if (!seq && is_over)
            e = take_facts(j, &t);
    }
    query_fini(q);
    if (seq) {
        query_init(&j->look, &turn_table, 1);
        query_if(&j->look, TURN_TASK_SEQ, IS, value_int(seq));
        query_if(&j->look, TURN_NUMBER, IS, value_int(j->d.turn));
        store_read(j->store, &j->look, judge_on_turn, j);
    } else if (!e && !is_over) {
        judge_skip(j);
    } else {
        judge_check_window(j, e);
    }
}

/* Decode the decision of the row. ERR_BUSY: it is too early to judge it. An
 * unreadable one is judged as well, but teaches nothing. */
static enum err take_decision(struct judge *j)
{
    enum err e;

    if (row_int(j->at, DECISION_AT_MS) > j->now_ms - j->rules.follow_up_ms)
        return ERR_BUSY;
    j->has_old = true;
    if (j->is_going_on(j->ctx, row_str(j->at, DECISION_TASK_ID)))
        return ERR_BUSY;
    arena_reset(&j->arena);
    j->facts = (struct judge_facts){0};
    e = FAULT("judge.decision") ? ERR_NOMEM
                                : decision_from_row(&j->arena, j->at, &j->d);
    if (e != ERR_SYNTAX)
        return e;
    log_warn(j->log, "learning.unreadable",
             LOG_S("decision", row_str(j->at, DECISION_ID)));
    j->d.layer = LAYER_EXPLICIT;
    return OK;
}

static void judge_next(struct judge *j)
{
    enum err e = ERR_BUSY;

    while (j->at && !j->is_stopping && (e = take_decision(j)) == ERR_BUSY)
        j->at = j->at->next;
    if (j->is_stopping)
        j->at = NULL;
    if (!j->at) {
        end_page(j);
        return;
    }
    if (e) {
        judge_fail(j, e);
        return;
    }
    query_init(&j->look, &task_table, 1);
    query_if(&j->look, TASK_ID, IS, value_text(str_of(j->d.task_id.text)));
    store_read(j->store, &j->look, judge_on_task, j);
}

static void on_decision_page(struct query *q, void *ctx)
{
    struct judge *j = ctx;

    j->has_old = false;
    QUERY_EACH(r, q)
    j->last_seq = row_int(r, DECISION_SEQ);
    j->at = q->rows;
    if (q->err)
        judge_fail(j, q->err);
    else
        judge_next(j);
}

/* Start and stop. */

void judge_init(struct judge *j)
{
    arena_init(&j->arena, DECISION_BYTES);
}

void judge_fini(struct judge *j)
{
    assert(!j->is_running);
    arena_fini(&j->arena);
}

void judge_run(struct judge *j)
{
    assert(!j->is_running);
    j->is_running = true;
    j->now_ms = loop_wall_ms(j->loop);
    j->last_seq = 0;
    j->n_judged = 0;
    j->err = OK;
    judge_read_page(j);
}

void judge_stop(struct judge *j)
{
    j->is_stopping = true;
}
