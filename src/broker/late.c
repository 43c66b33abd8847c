/* Answers that are due. The clock of an SLA begins when the message is let go:
 * the row is written in that tx, and goes in the tx that ends the task. What
 * then waits until who gave it has less going is not its agent's yet: its clock
 * stands, and begins anew with its turn, also in the row. When
 * its moment has come without an answer, one tx says so: an escalation of kind
 * late, an entry of the feed, and the mark in the row that it was said, so that
 * it is said once for each turn whatever happens in between. The work goes on.
 *
 * At the limit of escalations it is told in the feed alone. */
#include "broker/people.h"

#include <stdlib.h>

struct due {
    struct broker *broker;
    struct about about;
    int64_t since_ms, due_ms; /* Unix time */
    int64_t due_mono_ms;      /* the same, whatever the clock is set to */
    bool is_coming;           /* not on the disk yet */
    bool is_late;             /* and it was told */
    bool is_telling;
    bool is_put_off;    /* its clock stands */
    struct due *before; /* while it is coming: what counts if it does not */
    struct timer timer;
    struct str rule;
    char strings[];
};

struct late {
    struct map by_task; /* struct due */
    bool is_stopped;
};

static struct due *due_of(const struct broker *b, struct str task_id)
{
    return map_get(&b->late->by_task, task_id);
}

static void due_free(struct due *d)
{
    loop_timer_cancel(d->broker->opts.loop, &d->timer);
    map_take(&d->broker->late->by_task, str_of(d->about.task_id.text));
    free(d->before);
    free(d);
}

/* No longer than it was from the beginning, should the clock have been set back
 * while the server was away. */
static void set_due(struct due *d)
{
    struct loop *l = d->broker->opts.loop;
    int64_t left_ms = d->due_ms - loop_wall_ms(l);

    if (left_ms > d->due_ms - d->since_ms)
        left_ms = d->due_ms - d->since_ms;
    d->due_mono_ms = loop_mono_ms(l) + left_ms;
}

static int64_t left_ms_of(const struct due *d)
{
    return d->due_mono_ms - loop_mono_ms(d->broker->opts.loop);
}

/* Its moment. */

struct telling {
    struct tx tx;
    struct broker *broker;
    struct id task_id, escalation_id;
    int64_t turn;
};

static void arm(struct due *d, int64_t delay_ms)
{
    struct loop *loop = d->broker->opts.loop;

    if (!d->broker->late->is_stopped &&
        loop_timer_set(loop, &d->timer, delay_ms > 0 ? delay_ms : 0) != OK)
        log_error(d->broker->opts.log, "broker.no_timer",
                  LOG_C("task_id", d->about.task_id.text));
}

static void on_told(struct tx *tx, void *ctx)
{
    struct telling *t = ctx;
    struct broker *b = t->broker;
    struct due *d = due_of(b, str_of(t->task_id.text));
    struct asked *x = t->escalation_id.text[0]
                          ? asked_by_id(b, str_of(t->escalation_id.text))
                          : NULL;
    bool is_committed = tx->result == TX_COMMITTED;

    if (x && is_committed)
        asked_open(x);
    else if (x)
        asked_undo(x);
    if (is_committed)
        b->stats.late_total++;
    if (d && d->about.turn == t->turn) {
        d->is_telling = false;
        if (is_committed)
            d->is_late = true;
        else
            arm(d, PEOPLE_RETRY_MS);
    }
    tx_fini(&t->tx);
    free(t);
}

static void word(const struct due *d, struct buf *out)
{
    buf_addf(out, "%.*s has not answered within ", STR_ARG(d->about.agent));
    gate_word_duration(out, d->due_ms - d->since_ms);
}

static void build(struct due *d, struct telling *t)
{
    struct broker *b = d->broker;
    struct str id = str_of(d->about.task_id.text);
    struct asked *x = NULL;
    struct note_data n;
    struct tx_op *op;
    struct buf words;

    buf_init(&words, 1024);
    word(d, &words);
    op = tx_update(&t->tx, &expected_table);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(id));
    tx_if(op, EXPECTED_TURN, IS, value_int(d->about.turn));
    tx_if(op, EXPECTED_IS_LATE, IS, value_int(0));
    tx_set(op, EXPECTED_IS_LATE, value_int(1));
    if (!asked_late(b, id) && b->people->by_id.n < PEOPLE_OPEN_MAX)
        x = asked_new(b, &d->about, ESCALATION_LATE, d->rule, buf_str(&words),
                      &t->tx);
    if (x)
        t->escalation_id = x->id;
    note_open(&n);
    note_str(&n, "escalation_id", str_of(t->escalation_id.text));
    note_str(&n, "from", d->about.from);
    note_str(&n, "to", d->about.agent);
    note_str(&n, "type", d->about.type);
    note_str(&n, "reference", d->about.reference);
    note_str(&n, "rule", d->rule);
    note_str(&n, "reason", buf_str(&words));
    note_int(&n, "due_ms", d->due_ms);
    note_close(&n, b, STR("task.late"), &d->about, &t->tx);
    buf_fini(&words);
}

static void on_timer(struct timer *timer)
{
    struct due *d = LIST_OF(timer, struct due, timer);
    struct broker *b = d->broker;
    struct telling *t;

    t = FAULT("broker.telling") ? NULL : calloc(1, sizeof(*t));
    if (!t) {
        arm(d, PEOPLE_RETRY_MS);
        return;
    }
    t->broker = b;
    t->task_id = d->about.task_id;
    t->turn = d->about.turn;
    tx_init(&t->tx);
    build(d, t);
    d->is_telling = true;
    store_submit(b->opts.store, &t->tx, on_told, t);
}

/* Its clock. */

struct beginning {
    struct tx tx;
    struct broker *broker;
    struct id task_id;
};

/* Refused: a start has the moment before it, and tells too early. */
static void on_begun(struct tx *tx, void *ctx)
{
    struct beginning *w = ctx;

    if (tx->result == TX_REFUSED)
        log_warn(w->broker->opts.log, "broker.due_not_written",
                 LOG_C("task_id", w->task_id.text),
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(&w->tx);
    free(w);
}

static void write_beginning(const struct due *d)
{
    struct broker *b = d->broker;
    struct beginning *w =
        FAULT("broker.beginning") ? NULL : calloc(1, sizeof(*w));
    struct tx_op *op;

    if (!w) {
        log_warn(b->opts.log, "broker.due_not_written",
                 LOG_C("task_id", d->about.task_id.text),
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
        return;
    }
    w->broker = b;
    w->task_id = d->about.task_id;
    tx_init(&w->tx);
    op = tx_update(&w->tx, &expected_table);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(str_of(w->task_id.text)));
    tx_if(op, EXPECTED_TURN, IS, value_int(d->about.turn));
    tx_set(op, EXPECTED_SINCE_MS, value_int(d->since_ms));
    tx_set(op, EXPECTED_DUE_MS, value_int(d->due_ms));
    store_submit(b->opts.store, &w->tx, on_begun, w);
}

void late_put_off(struct broker *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);

    if (!d || d->is_coming || d->is_late || d->is_telling)
        return;
    d->is_put_off = true;
    loop_timer_cancel(b->opts.loop, &d->timer);
}

void late_turn(struct broker *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);
    int64_t within_ms = d ? d->due_ms - d->since_ms : 0;

    if (!d || !d->is_put_off)
        return;
    d->is_put_off = false;
    d->since_ms = loop_wall_ms(b->opts.loop);
    d->due_ms = d->since_ms + within_ms;
    set_due(d);
    arm(d, left_ms_of(d));
    write_beginning(d);
}

/* Rows. */

/* Instead of one that is there for the same task. */
static struct due *due_new(struct broker *b, const struct about *a,
                           struct str rule)
{
    size_t n = about_bytes(a) + rule.n;
    struct due *d = FAULT("broker.due") ? NULL : calloc(1, sizeof(*d) + n);
    struct due *before = due_of(b, str_of(a->task_id.text));
    char *at;

    if (!d)
        return NULL;
    at = d->strings;
    d->broker = b;
    d->timer.fire = on_timer;
    d->about = about_pack(&at, a);
    d->rule = str_pack(&at, rule);
    if (before) /* its place is there for the next */
        map_take(&b->late->by_task, str_of(a->task_id.text));
    if (map_put(&b->late->by_task, str_of(d->about.task_id.text), d) == OK) {
        if (before)
            loop_timer_cancel(b->opts.loop, &before->timer);
        d->before = before;
        return d;
    }
    if (before && map_put(&b->late->by_task, str_of(before->about.task_id.text),
                          before) != OK) {
        loop_timer_cancel(b->opts.loop, &before->timer);
        free(before); /* the row is there: the next start finds it */
    }
    free(d);
    return NULL;
}

static void write_row(const struct due *d, struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &expected_table);
    const struct about *a = &d->about;

    tx_set(op, EXPECTED_TASK_ID, value_text(str_of(a->task_id.text)));
    tx_set(op, EXPECTED_TURN, value_int(a->turn));
    tx_set(op, EXPECTED_AGENT, value_text(a->agent));
    tx_set(op, EXPECTED_SINCE_MS, value_int(d->since_ms));
    tx_set(op, EXPECTED_DUE_MS, value_int(d->due_ms));
    tx_set(op, EXPECTED_RULE, value_text_or_null(d->rule));
    tx_set(op, EXPECTED_IS_LATE, value_int(0));
    tx_set(op, EXPECTED_FROM, value_text_or_null(a->from));
    tx_set(op, EXPECTED_TYPE, value_text_or_null(a->type));
    tx_set(op, EXPECTED_REFERENCE, value_text_or_null(a->reference));
    tx_set(op, EXPECTED_PRIORITY, value_int(a->priority));
    tx_set(op, EXPECTED_REQUESTER, value_text(a->requester));
    tx_set(op, EXPECTED_ROOT_USER, value_text_or_null(a->root_user));
}

static void expect(struct broker *b, const struct about *about,
                   const struct pass *p, struct tx *tx)
{
    struct due *d = due_new(b, about, p->sla_rule);

    if (!d) {
        tx->build_error = ERR_NOMEM;
        return;
    }
    d->is_coming = true;
    d->since_ms = loop_wall_ms(b->opts.loop);
    d->due_ms = d->since_ms + p->sla_ms;
    set_due(d);
    write_row(d, tx);
}

/* It did not come to be: what was expected before still is. */
static void go_back(struct due *d)
{
    struct broker *b = d->broker;
    struct due *before = d->before;

    d->before = NULL;
    due_free(d);
    if (!before)
        return;
    if (map_put(&b->late->by_task, str_of(before->about.task_id.text),
                before) != OK)
        free(before);
    else if (!before->is_late && !before->is_put_off)
        arm(before, left_ms_of(before));
}

static void settle(struct broker *b, struct str task_id, bool is_committed)
{
    struct due *d = due_of(b, task_id);

    if (!d || !d->is_coming)
        return;
    if (!is_committed) {
        go_back(d);
        return;
    }
    free(d->before);
    d->before = NULL;
    d->is_coming = false;
    arm(d, left_ms_of(d));
}

/* The hooks. */

static bool is_expected(const struct pass *p)
{
    return p->answer == GATE_ROUTE && p->sla_ms > 0;
}

void late_record(struct broker *b, struct msg *m)
{
    const struct envelope *e = &m->gate.envelope;

    if (is_expected(&m->gate.pass))
        expect(b,
               &(struct about){.task_id = m->task.id,
                               .turn = m->task.turn,
                               .priority = m->gate.pass.priority,
                               .agent = m->choice.agent,
                               .requester = caller_name(&m->in.caller),
                               .root_user = caller_name(&m->in.caller),
                               .from = e->from,
                               .type = e->type,
                               .reference = e->reference},
               &m->gate.pass, &m->tx);
}

void late_settle(struct broker *b, struct msg *m, bool is_committed)
{
    settle(b, str_of(m->task.id.text), is_committed);
}

void late_record_pass(struct broker *b, const struct task *t,
                      const struct envelope *e, const struct pass *p,
                      struct tx *tx)
{
    struct str to;

    if (!is_expected(p))
        return;
    if (!people_let_go(b, t, &to) || !to.n)
        to = t->agent;
    expect(b,
           &(struct about){.task_id = t->id,
                           .turn = t->turn,
                           .priority = p->priority,
                           .agent = to,
                           .requester = t->requester,
                           .root_user = t->root_user,
                           .from = e ? e->from : t->requester,
                           .type = e ? e->type : ENVELOPE_MESSAGE,
                           .reference = e ? e->reference : STR("")},
           p, tx);
}

void late_settle_pass(struct broker *b, const struct task *t,
                      const struct pass *p, bool is_committed)
{
    if (is_expected(p))
        settle(b, str_of(t->id.text), is_committed);
}

void late_record_end(struct broker *b, const struct task *t,
                     const struct task_result *r, struct tx *tx)
{
    struct str id = str_of(t->id.text);
    struct tx_op *op;

    (void)r;
    if (!due_of(b, id))
        return;
    op = tx_prune(tx, &expected_table, 1);
    tx_if(op, EXPECTED_TASK_ID, IS, value_text(id));
}

void late_settle_end(struct broker *b, const struct task *t,
                     const struct task_result *r)
{
    struct due *d = due_of(b, str_of(t->id.text));

    (void)r;
    if (d && !d->is_coming) {
        due_free(d);
    } else if (d) { /* what was before it is over, and does not come back */
        free(d->before);
        d->before = NULL;
    }
}

int64_t late_ms(const struct broker *b, struct str task_id)
{
    const struct due *d = due_of(b, task_id);
    int64_t ms = d && !d->is_coming && !d->is_put_off ? -left_ms_of(d) : 0;

    return ms > 0 ? ms : 0;
}

struct timer *late_timer(const struct broker *b, struct str task_id)
{
    struct due *d = due_of(b, task_id);

    return d ? &d->timer : NULL;
}

/* An object of JSON, compact: the member goes before its last brace. */
bool broker_late(const struct broker *b, const struct task *t,
                 struct str metadata, struct buf *out)
{
    int64_t ms = late_ms(b, str_of(t->id.text));
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

/* Life. */

static enum err load_row(struct broker *b, const struct row *r)
{
    struct due *d = due_new(
        b,
        &(struct about){.task_id = id_from(row_str(r, EXPECTED_TASK_ID)),
                        .turn = row_int(r, EXPECTED_TURN),
                        .priority =
                            (enum task_priority)row_int(r, EXPECTED_PRIORITY),
                        .agent = row_str(r, EXPECTED_AGENT),
                        .requester = row_str(r, EXPECTED_REQUESTER),
                        .root_user = row_str(r, EXPECTED_ROOT_USER),
                        .from = row_str(r, EXPECTED_FROM),
                        .type = row_str(r, EXPECTED_TYPE),
                        .reference = row_str(r, EXPECTED_REFERENCE)},
        row_str(r, EXPECTED_RULE));

    if (!d)
        return ERR_NOMEM;
    d->since_ms = row_int(r, EXPECTED_SINCE_MS);
    d->due_ms = row_int(r, EXPECTED_DUE_MS);
    d->is_late = row_int(r, EXPECTED_IS_LATE);
    set_due(d);
    if (!d->is_late)
        arm(d, left_ms_of(d));
    return OK;
}

enum err late_load(struct broker *b, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &expected_table, DUE_MAX);
    e = store_look(b->opts.store, &q);
    for (const struct row *r = e ? NULL : q.rows; r && !e; r = r->next)
        e = load_row(b, r);
    query_fini(&q);
    return e ? why_err(why, e, "expected answers cannot be read: %s",
                       err_row(e)->wording)
             : OK;
}

enum err late_init(struct broker *b)
{
    b->late = FAULT("broker.late") ? NULL : calloc(1, sizeof(*b->late));
    if (!b->late)
        return ERR_NOMEM;
    map_init(&b->late->by_task, DUE_MAX, b->opts.seed);
    return OK;
}

void late_stop(struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    b->late->is_stopped = true;
    while ((slot = map_next(&b->late->by_task, &at)))
        loop_timer_cancel(b->opts.loop, &((struct due *)slot->value)->timer);
}

void late_fini(struct broker *b)
{
    const struct map_slot *slot;
    size_t at;

    if (!b->late)
        return;
    while ((at = 0, slot = map_next(&b->late->by_task, &at)))
        due_free(slot->value);
    map_fini(&b->late->by_task);
    free(b->late);
    b->late = NULL;
}

void late_rules(struct broker *b)
{
    (void)b; /* what was promised stays so */
}

void late_agent_changed(struct broker *b, struct str agent)
{
    (void)b, (void)agent;
}

void late_prune(struct broker *b, struct tx *tx, int64_t before_ms,
                int64_t rows, size_t limit)
{
    (void)b, (void)tx, (void)before_ms, (void)rows, (void)limit;
}

bool late_check(const struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->late->by_task, &at))) {
        const struct due *d = slot->value;

        if (d->broker != b || due_of(b, str_of(d->about.task_id.text)) != d ||
            (!d->is_late && !d->is_coming && !d->is_telling &&
             !b->late->is_stopped && timer_is_set(&d->timer) == d->is_put_off))
            return false;
    }
    return map_check(&b->late->by_task);
}
