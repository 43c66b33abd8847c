/* Four walks, one after the other, each a page at a time:
 *
 *   rows     tasks that are not over       -> is each looked after?
 *   holds    rows of holds                 -> has each a task that is held, and
 *                                             time left?
 *   asked    escalations that are open     -> has each a task?
 *   feed     entries that say "accepted"   -> is each a row?
 *
 * What seems wrong goes to a list of suspects. After each page the suspects
 * are read again, one by one: only a row of the same version that still is
 * nobody's counts.
 *
 * A reader sees a commit before the loop is told of it, and memory changes when
 * it is told: in between, for as long as a sync takes, a task that was just
 * accepted is a row that nobody looks after. So a suspect is read twice, and
 * between the two a write of ours is reported: txs are reported in their order,
 * so memory then has all that the first look can have seen. An audit in the
 * middle of a storm finds nothing, and one of a store that lost something finds
 * it. */
#include "broker/audit.h"

#include <stdlib.h>

#include "broker/internal.h"

enum { PAGE = 100, AGAIN_MS = 1000 };

enum audit_walk { WALK_ROWS, WALK_HOLDS, WALK_ASKED, WALK_FEED, N_WALKS };

struct suspect {
    struct id task_id;
    int64_t version;  /* of the row; -1: it had none */
    struct id asked;  /* the escalation that it is about; or empty */
    bool is_overdue;  /* held for longer than it may be */
    bool is_accepted; /* the feed says so: the row must be there */
    bool wants_asked; /* escalated: there must be an open escalation */
    bool was_wrong;   /* at the first look */
};

struct audit {
    struct audit_opts opts;
    struct audit_report report, last;
    bool is_running, is_reading, is_stopped;
    enum audit_walk walk;
    int64_t after, upto; /* seqs of tasks, or of the feed */
    struct id after_id;  /* of holds */
    struct suspect suspects[PAGE];
    size_t n_suspects;
    bool asks_people;   /* the query is for an escalation */
    bool must_catch_up; /* memory may be behind what was read */
    bool has_more;
    struct query q;
    struct tx tx;
    struct loop_job step;
    struct timer timer;
};

static void again_in(struct audit *a, int64_t ms)
{
    if (loop_timer_set(a->opts.loop, &a->timer, ms) != OK)
        log_warn(a->opts.log, "audit.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

static void finish(struct audit *a, enum err e)
{
    struct audit_report *r = &a->report;

    a->is_running = false;
    r->err = e;
    r->ended_ms = loop_wall_ms(a->opts.loop);
    a->last = *r;
    if (e && e != ERR_STOPPING)
        log_warn(a->opts.log, "audit.not_finished",
                 LOG_C("because", err_row(e)->wording));
    for (int64_t i = 0; i < r->lost && i < AUDIT_NAMES; i++)
        log_error(a->opts.log, "audit.lost",
                  LOG_C("task_id", r->losses[i].task_id.text),
                  LOG_C("because", r->losses[i].what));
    for (int64_t i = 0; i < r->stray && i < AUDIT_NAMES; i++)
        log_warn(a->opts.log, "audit.stray",
                 LOG_C("task_id", r->strays[i].task_id.text),
                 LOG_C("because", r->strays[i].what));
    if (!a->is_stopped)
        again_in(a, AUDIT_MS);
}

/* It stays a suspect, and is looked at once more when memory has caught up. */
static bool is_in_doubt(struct audit *a, const struct suspect *s)
{
    if (s->was_wrong || PLANTED("audit.one_look"))
        return false;
    a->suspects[a->n_suspects] = *s;
    a->suspects[a->n_suspects++].was_wrong = true;
    a->must_catch_up = true;
    return true;
}

static void lose(struct audit *a, const struct suspect *s, const char *what)
{
    struct audit_report *r = &a->report;

    if (is_in_doubt(a, s))
        return;
    if (r->lost < AUDIT_NAMES)
        r->losses[r->lost] = (struct audit_loss){s->task_id, what};
    r->lost++;
}

static void stray(struct audit *a, const struct suspect *s, const char *what)
{
    struct audit_report *r = &a->report;

    if (is_in_doubt(a, s))
        return;
    if (r->stray < AUDIT_NAMES)
        r->strays[r->stray] = (struct audit_loss){s->task_id, what};
    r->stray++;
}

/* What is wrong with a row that is not over; NULL: it is looked after. An
 * escalated one must be asked for in the store. */
static const char *whats_wrong(const struct audit *a, struct str id,
                               int64_t status)
{
    const struct task *t = task_find(a->opts.tasks, id);

    if (!t)
        return "it is not over, and nobody looks after it";
    if (status == TASK_HELD && !hold_find(a->opts.broker, id))
        return "it is held, and no hold waits for it";
    return NULL;
}

static void suspect(struct audit *a, struct suspect s)
{
    if (a->n_suspects < PAGE)
        a->suspects[a->n_suspects++] = s;
}

/* Pages. */

static void look_at_row(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, TASK_ID);
    int64_t status = row_int(r, TASK_STATUS);
    const struct task *t = task_find(a->opts.tasks, id);

    a->after = row_int(r, TASK_SEQ);
    a->report.held += status == TASK_HELD && !(t && t->carried);
    a->report.escalated += status == TASK_ESCALATED;
    if (whats_wrong(a, id, status) || status == TASK_ESCALATED)
        suspect(a, (struct suspect){.task_id = id_from(id),
                                    .version = row_int(r, TASK_VERSION),
                                    .wants_asked = status == TASK_ESCALATED});
}

static void look_at_hold(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, HOLD_TASK_ID);
    const struct task *t = task_find(a->opts.tasks, id);
    int64_t until_ms = row_int(r, HOLD_UNTIL_MS);
    bool is_overdue = until_ms && row_is_null(r, HOLD_BATCH) &&
                      until_ms + AUDIT_OVERDUE_MS < a->report.began_ms;

    a->after_id = id_from(id);
    if (!t || t->status != TASK_HELD || !hold_find(a->opts.broker, id) ||
        is_overdue)
        suspect(a, (struct suspect){.task_id = id_from(id),
                                    .version = -1,
                                    .is_overdue = is_overdue});
}

/* One that is late may be written while its task ends: it is looked for once
 * more, like all of them. */
static void look_at_asked(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, ESCALATION_TASK_ID);

    a->after = row_int(r, ESCALATION_SEQ);
    if (!task_find(a->opts.tasks, id))
        suspect(a, (struct suspect){.task_id = id_from(id),
                                    .asked = id_from(row_str(r, ESCALATION_ID)),
                                    .version = -1});
}

static void look_at_entry(struct audit *a, const struct row *r)
{
    struct feed_entry e;

    feed_from_row(&e, r);
    a->after = e.seq;
    if (!str_eq(e.type, STR("task.accepted")) || !e.task_id.n)
        return;
    a->report.accepted++;
    if (task_find(a->opts.tasks, e.task_id))
        a->report.unfinished++;
    else
        suspect(a, (struct suspect){.task_id = id_from(e.task_id),
                                    .version = -1,
                                    .is_accepted = true});
}

static void go_on(struct audit *a)
{
    loop_next_turn(a->opts.loop, &a->step);
}

static void on_page(struct query *q, void *ctx)
{
    struct audit *a = ctx;
    enum err e = q->err;

    a->is_reading = false;
    if (!e && !a->is_stopped) {
        QUERY_EACH(r, q)
        {
            if (a->walk == WALK_ROWS)
                look_at_row(a, r);
            else if (a->walk == WALK_HOLDS)
                look_at_hold(a, r);
            else if (a->walk == WALK_ASKED)
                look_at_asked(a, r);
            else
                look_at_entry(a, r);
        }
        a->has_more = q->n_rows == PAGE || q->has_more;
    }
    query_fini(q);
    if (e || a->is_stopped)
        finish(a, e ? e : ERR_STOPPING);
    else
        go_on(a);
}

static void read_page(struct audit *a)
{
    static const struct table *const tables[N_WALKS] = {
        &task_table, &hold_table, &escalation_table, &feed_table};
    struct query *q = &a->q;

    query_init(q, tables[a->walk], PAGE);
    if (a->walk == WALK_ROWS) {
        query_if(q, TASK_FINISHED_MS, IS, value_null());
        query_if(q, TASK_SEQ, IS_MORE, value_int(a->after));
        query_order(q, TASK_SEQ, false);
    } else if (a->walk == WALK_HOLDS) {
        query_if(q, HOLD_TASK_ID, IS_MORE,
                 value_text(str_of(a->after_id.text)));
        query_order(q, HOLD_TASK_ID, false);
    } else if (a->walk == WALK_ASKED) {
        query_if(q, ESCALATION_DECIDED_MS, IS, value_null());
        query_if(q, ESCALATION_SEQ, IS_MORE, value_int(a->after));
        query_order(q, ESCALATION_SEQ, false);
    } else {
        query_if(q, FEED_SEQ, IS_MORE, value_int(a->after));
        query_if(q, FEED_SEQ, IS_AT_MOST, value_int(a->upto));
        if (a->opts.retention_ms)
            query_if(q, FEED_AT_MS, IS_MORE,
                     value_int(a->report.began_ms - a->opts.retention_ms));
        query_order(q, FEED_SEQ, false);
    }
    a->is_reading = true;
    store_read(a->opts.store, q, on_page, a);
}

/* Suspects. */

static void on_escalation(struct audit *a, const struct suspect *s,
                          bool is_there)
{
    const struct task *t = task_find(a->opts.tasks, str_of(s->task_id.text));

    a->n_suspects--;
    if (!is_there && t && t->status == TASK_ESCALATED)
        lose(a, s, "it is escalated, and no escalation is open for it");
}

/* The row of a hold, once more: it is still there, and its task? */
static void on_hold(struct audit *a, const struct suspect *s, bool is_there)
{
    struct str id = str_of(s->task_id.text);
    const struct task *t = task_find(a->opts.tasks, id);

    a->n_suspects--;
    if (!is_there)
        return;
    if (!t || t->status != TASK_HELD)
        stray(a, s, "it is not held, and the row of a hold is left of it");
    else if (!hold_find(a->opts.broker, id))
        stray(a, s, "it is held, and its hold is in nobody's hands");
    else if (s->is_overdue)
        stray(a, s, "it is held for longer than it may be");
}

static void on_asked(struct audit *a, const struct suspect *s, bool is_there)
{
    a->n_suspects--;
    if (is_there && !task_find(a->opts.tasks, str_of(s->task_id.text)))
        stray(a, s, "it is over, and an escalation of it is open");
}

static void on_row(struct audit *a, const struct suspect *s,
                   const struct row *r)
{
    struct str id = str_of(s->task_id.text);
    int64_t status = r ? row_int(r, TASK_STATUS) : 0;
    const char *wrong;

    if (s->wants_asked && r && row_is_null(r, TASK_FINISHED_MS) &&
        row_int(r, TASK_VERSION) == s->version && !whats_wrong(a, id, status)) {
        a->asks_people = true;
        return;
    }
    a->n_suspects--;
    if (!r) {
        if (s->is_accepted)
            lose(a, s, "it was accepted, and it is not there");
        return;
    }
    if (!row_is_null(r, TASK_FINISHED_MS)) {
        a->report.over += s->is_accepted && a->walk == WALK_FEED;
        return;
    }
    a->report.unfinished += a->walk == WALK_FEED;
    wrong = whats_wrong(a, id, status);
    if (wrong && a->walk == WALK_ROWS && row_int(r, TASK_VERSION) == s->version)
        lose(a, s, wrong);
}

static void on_suspect(struct query *q, void *ctx)
{
    struct audit *a = ctx;
    const struct suspect s = a->suspects[a->n_suspects - 1];
    enum err e = q->err;
    bool asked_people = a->asks_people;

    a->is_reading = a->asks_people = false;
    if (!e && asked_people)
        on_escalation(a, &s, q->rows != NULL);
    else if (!e && a->walk == WALK_HOLDS)
        on_hold(a, &s, q->rows != NULL);
    else if (!e && a->walk == WALK_ASKED)
        on_asked(a, &s, q->rows != NULL);
    else if (!e)
        on_row(a, &s, q->rows);
    query_fini(q);
    if (e || a->is_stopped)
        finish(a, e ? e : ERR_STOPPING);
    else
        go_on(a);
}

static void read_suspect(struct audit *a)
{
    struct str id = str_of(a->suspects[a->n_suspects - 1].task_id.text);
    struct query *q = &a->q;

    if (a->asks_people) {
        query_init(q, &escalation_table, 1);
        query_if(q, ESCALATION_TASK_ID, IS, value_text(id));
        query_if(q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    } else if (a->walk == WALK_HOLDS) {
        query_init(q, &hold_table, 1);
        query_if(q, HOLD_TASK_ID, IS, value_text(id));
    } else if (a->walk == WALK_ASKED) {
        query_init(q, &escalation_table, 1);
        query_if(q, ESCALATION_ID, IS,
                 value_text(str_of(a->suspects[a->n_suspects - 1].asked.text)));
        query_if(q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    } else {
        query_init(q, &task_table, 1);
        query_if(q, TASK_ID, IS, value_text(id));
    }
    a->is_reading = true;
    store_read(a->opts.store, q, on_suspect, a);
}

/* Too many wait: in a while. */
static void on_caught_up(struct tx *tx, void *ctx)
{
    struct audit *a = ctx;
    enum err e = tx->result == TX_COMMITTED ? OK : tx->err;

    a->is_reading = false;
    tx_fini(tx);
    if (a->is_stopped || (e && e != ERR_OVERLOADED)) {
        finish(a, a->is_stopped ? ERR_STOPPING : e);
        return;
    }
    a->must_catch_up = e != OK;
    if (e)
        again_in(a, AGAIN_MS);
    else
        go_on(a);
}

/* A write that changes nothing: no task has this id. */
static void catch_up(struct audit *a)
{
    struct tx_op *op;

    tx_init(&a->tx);
    op = tx_prune(&a->tx, &task_table, 1);
    tx_if(op, TASK_ID, IS, value_text(STR("")));
    a->is_reading = true;
    store_submit(a->opts.store, &a->tx, on_caught_up, a);
}

/* The walks. */

static void begin_walk(struct audit *a, enum audit_walk walk)
{
    int64_t newest = feed_newest(a->opts.feed);

    a->walk = walk;
    a->after = 0;
    a->has_more = true;
    a->after_id = (struct id){.text = ""};
    if (walk != WALK_FEED)
        return;
    a->upto = newest;
    if (a->opts.retention_rows && newest > a->opts.retention_rows)
        a->after = newest - a->opts.retention_rows;
}

static void next_walk(struct audit *a)
{
    begin_walk(a, a->walk + 1);
    go_on(a);
}

static void on_step(struct loop_job *job)
{
    struct audit *a = LIST_OF(job, struct audit, step);

    if (a->is_stopped)
        finish(a, ERR_STOPPING);
    else if (a->must_catch_up)
        catch_up(a);
    else if (a->n_suspects)
        read_suspect(a);
    else if (a->has_more)
        read_page(a);
    else if (a->walk + 1 < N_WALKS)
        next_walk(a);
    else
        finish(a, OK);
}

void audit_run(struct audit *a)
{
    if (a->is_running || a->is_stopped)
        return;
    loop_timer_cancel(a->opts.loop, &a->timer);
    a->is_running = true;
    a->asks_people = a->must_catch_up = false;
    a->n_suspects = 0;
    a->report = (struct audit_report){.began_ms = loop_wall_ms(a->opts.loop)};
    begin_walk(a, WALK_ROWS);
    go_on(a);
}

/* For the next audit, or for the one under way to go on. */
static void on_timer(struct timer *t)
{
    struct audit *a = LIST_OF(t, struct audit, timer);

    if (a->is_running)
        go_on(a);
    else
        audit_run(a);
}

struct audit *audit_new(const struct audit_opts *opts)
{
    struct audit *a = FAULT("audit.new") ? NULL : calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->opts = *opts;
    a->step.run = on_step;
    a->timer.fire = on_timer;
    again_in(a, AUDIT_FIRST_MS);
    return a;
}

void audit_stop(struct audit *a)
{
    if (!a)
        return;
    a->is_stopped = true;
    loop_timer_cancel(a->opts.loop, &a->timer);
    loop_not_at_end(&a->step);
}

void audit_free(struct audit *a)
{
    free(a);
}

bool audit_is_running(const struct audit *a)
{
    return a->is_running;
}

const struct audit_report *audit_report(const struct audit *a)
{
    return &a->last;
}
