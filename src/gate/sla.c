/* Answers that are due. The clock of an SLA starts when its message is let go:
 * the row is written in that tx, and removed in the tx that ends the task. If
 * the task then waits until its requester has fewer tasks running, its agent
 * does not have it yet: the clock stops, and starts afresh with the task's
 * turn, also in the row. When the answer is overdue one tx reports it: an
 * escalation of kind late, a feed entry, and a mark in the row, so that each
 * turn is reported once whatever happens in between. The work goes on.
 *
 * At the limit of escalations only the feed entry is written. */
#include "gate/escalations.h"

#include <stdlib.h>

#include "base/mem.h"

struct due {
    struct gatekeeper *gatekeeper;
    struct subject subject;
    int64_t since_ms, due_ms; /* Unix time */
    int64_t due_mono_ms;      /* the same on the monotonic clock */
    bool is_coming;           /* not committed yet */
    bool is_late;             /* and reported */
    bool is_telling;
    bool is_put_off; /* the clock is stopped */
    struct due *
        before; /* the previous one, which stays if this one is not committed */
    struct timer timer;
    struct str rule;
    char strings[];
};

#define DUE(field) MEMBER(struct due, field), .part = 1

static const struct column expected_columns[] = {EXPECTED_COLUMNS(COLUMN_ROW)};

const struct table expected_table = {
    .name = "expected",
    .columns = expected_columns,
    .n_columns = N_EXPECTED_COLUMNS,
    .n_key = 1,
};

struct sla {
    struct map by_task; /* struct due */
    bool is_stopped;
};

static struct due *due_of(const struct gatekeeper *b, struct str task_id)
{
    return map_get(&b->sla->by_task, task_id);
}

static void due_free(struct due *d)
{
    loop_timer_cancel(d->gatekeeper->opts.loop, &d->timer);
    map_take(&d->gatekeeper->sla->by_task, str_of(d->subject.task_id.text));
    free(d->before);
    free(d);
}

/* At most the original time, in case the clock was set back while the server
 * was down. */
static void set_due_deadline(struct due *d)
{
    struct loop *l = d->gatekeeper->opts.loop;
    int64_t left_ms = d->due_ms - loop_wall_ms(l);

    if (left_ms > d->due_ms - d->since_ms)
        left_ms = d->due_ms - d->since_ms;
    d->due_mono_ms = loop_mono_ms(l) + left_ms;
}

static int64_t left_ms_of(const struct due *d)
{
    return d->due_mono_ms - loop_mono_ms(d->gatekeeper->opts.loop);
}

struct late_report {
    struct tx tx;
    struct gatekeeper *gatekeeper;
    struct id task_id, escalation_id;
    int64_t turn;
};

static void arm_due(struct due *d, int64_t delay_ms)
{
    if (!d->gatekeeper->sla->is_stopped)
        loop_timer_set(d->gatekeeper->opts.loop, &d->timer,
                       delay_ms > 0 ? delay_ms : 0);
}

static void on_late_reported(struct tx *tx, void *ctx)
{
    struct late_report *t = ctx;
    struct gatekeeper *b = t->gatekeeper;
    struct due *d = due_of(b, str_of(t->task_id.text));
    struct escalation *x =
        t->escalation_id.text[0]
            ? escalation_by_id(b, str_of(t->escalation_id.text))
            : NULL;
    bool is_committed = tx->result == TX_COMMITTED;

    if (x && is_committed)
        escalation_open(x);
    else if (x)
        escalation_undo(x);
    if (is_committed)
        b->stats.late_total++;
    if (d && d->subject.turn == t->turn) {
        d->is_telling = false;
        if (is_committed)
            d->is_late = true;
        else
            arm_due(d, ESCALATION_RETRY_MS);
    }
    tx_fini(&t->tx);
    free(t);
}

static void write_late_reason(const struct due *d, struct buf *out)
{
    buf_addf(out, "%.*s has not answered within ", STR_ARG(d->subject.agent));
    gate_word_duration(out, d->due_ms - d->since_ms);
}

static void build_late_report(struct due *d, struct late_report *t)
{
    struct gatekeeper *b = d->gatekeeper;
    struct str id = str_of(d->subject.task_id.text);
    struct escalation *x = NULL;
    struct note_data n;
    struct tx_op *op;
    struct buf words;

    buf_init(&words, 1024);
    write_late_reason(d, &words);
    op = tx_update(&t->tx, &expected_table);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(id));
    tx_if(op, EXPECTED_TURN, IS, value_int(d->subject.turn));
    tx_if(op, EXPECTED_IS_LATE, IS, value_int(0));
    tx_set(op, EXPECTED_IS_LATE, value_int(1));
    if (!escalation_late_of(b, id) &&
        b->escalations->by_id.n < ESCALATIONS_OPEN_MAX)
        x = escalation_new(b, &d->subject, ESCALATION_LATE, d->rule,
                           buf_str(&words), &t->tx);
    if (x)
        t->escalation_id = x->id;
    note_open(&n);
    note_str(&n, "escalation_id", str_of(t->escalation_id.text));
    note_str(&n, "from", d->subject.from);
    note_str(&n, "to", d->subject.agent);
    note_str(&n, "type", d->subject.type);
    note_str(&n, "reference", d->subject.reference);
    note_str(&n, "rule", d->rule);
    note_str(&n, "reason", buf_str(&words));
    note_int(&n, "due_ms", d->due_ms);
    note_close(&n, b, STR("task.late"), &d->subject, &t->tx);
    buf_fini(&words);
}

static void on_due_timer(struct timer *timer)
{
    struct due *d = LIST_OF(timer, struct due, timer);
    struct gatekeeper *b = d->gatekeeper;
    struct late_report *t = mem_new(sizeof(*t));

    t->gatekeeper = b;
    t->task_id = d->subject.task_id;
    t->turn = d->subject.turn;
    tx_init(&t->tx);
    build_late_report(d, t);
    d->is_telling = true;
    store_submit(b->opts.store, &t->tx, on_late_reported, t);
}

struct due_write {
    struct tx tx;
    struct gatekeeper *gatekeeper;
    struct id task_id;
};

/* If refused, a start finds the earlier time and reports too early. */
static void on_clock_written(struct tx *tx, void *ctx)
{
    struct due_write *w = ctx;

    if (tx->result == TX_REFUSED)
        log_warn(w->gatekeeper->opts.log, "broker.due_not_written",
                 LOG_C("task_id", w->task_id.text),
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(&w->tx);
    free(w);
}

static void write_new_clock(const struct due *d)
{
    struct gatekeeper *b = d->gatekeeper;
    struct due_write *w = mem_new(sizeof(*w));
    struct tx_op *op;

    w->gatekeeper = b;
    w->task_id = d->subject.task_id;
    tx_init(&w->tx);
    op = tx_update(&w->tx, &expected_table);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(str_of(w->task_id.text)));
    tx_if(op, EXPECTED_TURN, IS, value_int(d->subject.turn));
    tx_set(op, EXPECTED_SINCE_MS, value_int(d->since_ms));
    tx_set(op, EXPECTED_DUE_MS, value_int(d->due_ms));
    store_submit(b->opts.store, &w->tx, on_clock_written, w);
}

void sla_put_off(struct gatekeeper *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);

    if (!d || d->is_coming || d->is_late || d->is_telling)
        return;
    d->is_put_off = true;
    loop_timer_cancel(b->opts.loop, &d->timer);
}

void sla_turn_came(struct gatekeeper *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);
    int64_t within_ms = d ? d->due_ms - d->since_ms : 0;

    if (!d || !d->is_put_off)
        return;
    d->is_put_off = false;
    d->since_ms = loop_wall_ms(b->opts.loop);
    d->due_ms = d->since_ms + within_ms;
    set_due_deadline(d);
    arm_due(d, left_ms_of(d));
    write_new_clock(d);
}

/* Replaces a previous one for the same task. NULL: too many. */
static struct due *due_new(struct gatekeeper *b, const struct subject *a,
                           struct str rule)
{
    struct due *d = mem_new(sizeof(*d) + subject_bytes(a) + rule.n);
    char *at = d->strings;

    d->gatekeeper = b;
    d->timer.fire = on_due_timer;
    d->subject = subject_pack(&at, a);
    d->rule = str_pack(&at, rule);
    d->before = due_of(b, str_of(a->task_id.text));
    if (map_put(&b->sla->by_task, str_of(d->subject.task_id.text), d) != OK) {
        free(d);
        return NULL;
    }
    if (d->before)
        loop_timer_cancel(b->opts.loop, &d->before->timer);
    return d;
}

static void due_write_row(const struct due *d, struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &expected_table);

    record_to_tx(op, d, 1);
}

static void expect_answer(struct gatekeeper *b, const struct subject *subject,
                          const struct gate_result *p, struct tx *tx)
{
    struct due *d = due_new(b, subject, p->sla_rule);

    if (!d) {
        tx->build_error = ERR_NOMEM;
        return;
    }
    d->is_coming = true;
    d->since_ms = loop_wall_ms(b->opts.loop);
    d->due_ms = d->since_ms + p->sla_ms;
    set_due_deadline(d);
    due_write_row(d, tx);
}

/* Not committed: the previous one is valid again. */
static void restore_previous(struct due *d)
{
    struct gatekeeper *b = d->gatekeeper;
    struct due *before = d->before;

    if (!before) {
        due_free(d);
        return;
    }
    if (map_put(&b->sla->by_task, str_of(before->subject.task_id.text),
                before) != OK)
        abort(); /* its key is in the map */
    loop_timer_cancel(b->opts.loop, &d->timer);
    free(d);
    if (!before->is_late && !before->is_put_off)
        arm_due(before, left_ms_of(before));
}

static void settle_due(struct gatekeeper *b, struct str task_id,
                       bool is_committed)
{
    struct due *d = due_of(b, task_id);

    if (!d || !d->is_coming)
        return;
    if (!is_committed) {
        restore_previous(d);
        return;
    }
    free(d->before);
    d->before = NULL;
    d->is_coming = false;
    arm_due(d, left_ms_of(d));
}

static bool is_expected(const struct gate_result *p)
{
    return p->answer == GATE_ROUTE && p->sla_ms > 0;
}

void sla_record(struct gatekeeper *b, struct msg *m)
{
    struct subject subject = subject_of_msg(m);

    if (is_expected(&m->gate.gate_result))
        expect_answer(b, &subject, &m->gate.gate_result, &m->tx);
}

void sla_settle(struct gatekeeper *b, struct msg *m, bool is_committed)
{
    settle_due(b, str_of(m->task.id.text), is_committed);
}

void sla_record_pass(struct gatekeeper *b, const struct task *t,
                     const struct envelope *e, const struct gate_result *p,
                     struct tx *tx)
{
    struct subject subject = subject_of_task(t, e, p);
    struct str to;

    if (!is_expected(p))
        return;
    if (escalation_approves(b, t, &to) && to.n)
        subject.agent = to;
    expect_answer(b, &subject, p, tx);
}

void sla_settle_pass(struct gatekeeper *b, const struct task *t,
                     const struct gate_result *p, bool is_committed)
{
    if (is_expected(p))
        settle_due(b, str_of(t->id.text), is_committed);
}

void sla_record_end(struct gatekeeper *b, const struct task *t, struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct tx_op *op;

    if (!due_of(b, id))
        return;
    op = tx_prune(tx, &expected_table, 1);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(id));
}

void sla_settle_end(struct gatekeeper *b, const struct task *t)
{
    struct due *d = due_of(b, str_of(t->id.text));

    if (d && !d->is_coming) {
        due_free(d);
    } else if (d) { /* the previous one is over as well, and must not come back
                     */
        free(d->before);
        d->before = NULL;
    }
}

int64_t sla_late_ms(const struct gatekeeper *b, struct str task_id)
{
    const struct due *d = due_of(b, task_id);
    int64_t ms = d && !d->is_coming && !d->is_put_off ? -left_ms_of(d) : 0;

    return ms > 0 ? ms : 0;
}

struct timer *sla_timer(const struct gatekeeper *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);

    return d ? &d->timer : NULL;
}

/* The metadata is a JSON object; the member goes before its last brace. */
bool gatekeeper_late(const struct gatekeeper *b, const struct task *t,
                     struct str metadata, struct buf *out)
{
    int64_t ms = sla_late_ms(b, str_of(t->id.text));
    size_t end = metadata.n;

    if (!ms)
        return false;
    while (end && metadata.p[end - 1] != '}')
        end--;
    if (metadata.n && !end)
        return false;
    if (end)
        end--;
    while (end && strchr(" \t\r\n", metadata.p[end - 1]))
        end--;
    if (!end)
        buf_add_char(out, '{');
    else
        buf_add_str(out, str_sub(metadata, 0, end));
    if (end && metadata.p[end - 1] != '{')
        buf_add_char(out, ',');
    buf_addf(out, "\"late_ms\":%lld}", (long long)ms);
    if (!out->over && out->n <= MSG_METADATA_MAX)
        return true;
    buf_clear(out);
    return false;
}

static enum err load_due(struct gatekeeper *b, const struct row *r)
{
    struct due row = {.is_late = false}, *d;

    record_from_row(&row, &expected_table, r);
    d = due_new(b, &row.subject, row.rule);
    if (!d)
        return ERR_NOMEM;
    d->since_ms = row.since_ms;
    d->due_ms = row.due_ms;
    d->is_late = row.is_late;
    set_due_deadline(d);
    if (!d->is_late)
        arm_due(d, left_ms_of(d));
    return OK;
}

enum err sla_load(struct gatekeeper *b, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &expected_table, DUE_MAX);
    e = store_look(b->opts.store, &q);
    for (const struct row *r = e ? NULL : q.rows; r && !e; r = r->next)
        e = load_due(b, r);
    query_fini(&q);
    return e ? why_err(why, e, "expected answers cannot be read: %s",
                       err_row(e)->wording)
             : OK;
}

void sla_init(struct gatekeeper *b)
{
    b->sla = mem_new(sizeof(*b->sla));
    map_init(&b->sla->by_task, DUE_MAX, b->opts.seed);
}

void sla_stop(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    b->sla->is_stopped = true;
    while ((slot = map_next(&b->sla->by_task, &at)))
        loop_timer_cancel(b->opts.loop, &((struct due *)slot->value)->timer);
}

void sla_fini(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at;

    while ((at = 0, slot = map_next(&b->sla->by_task, &at)))
        due_free(slot->value);
    map_fini(&b->sla->by_task);
    free(b->sla);
}

bool sla_check(const struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->sla->by_task, &at))) {
        const struct due *d = slot->value;

        if (d->gatekeeper != b ||
            due_of(b, str_of(d->subject.task_id.text)) != d ||
            (!d->is_late && !d->is_coming && !d->is_telling &&
             !b->sla->is_stopped && timer_is_set(&d->timer) == d->is_put_off))
            return false;
    }
    return map_check(&b->sla->by_task);
}
