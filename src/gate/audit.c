/* Four walks, one after the other, each a page at a time:
 *
 *   rows         tasks that are not over       -> is each in memory?
 *   holds        rows of holds                 -> has each a held task, and
 *                                                 time left?
 *   escalations  open escalations              -> has each a task?
 *   feed         entries that say "accepted"   -> has each a row?
 *
 * Anything that seems wrong becomes a suspect. After each page the suspects are
 * read again, one by one; only a row that is still wrong in the same version
 * counts.
 *
 * A reader sees a commit before the loop is notified, and memory changes on
 * that notification. In between, for the time of a sync, the row of a task that
 * was just accepted has nothing in memory. So a suspect is read twice, and
 * between the two reads a write of ours returns: txs return in order, so memory
 * then has everything that the first read can have seen. An audit in the middle
 * of a storm finds nothing, and one of a store that lost something finds it. */
#include "gate/audit.h"

#include <stdlib.h>

#include "base/mem.h"
#include "gate/internal.h"

enum { PAGE = 100, AGAIN_MS = 1000 };

enum audit_walk { WALK_ROWS, WALK_HOLDS, WALK_ESCALATIONS, WALK_FEED, N_WALKS };

struct suspect {
    struct id task_id;
    int64_t version;         /* of the row; -1: no row */
    struct id escalation_id; /* the escalation in question; empty: none */
    bool is_overdue;         /* held beyond its time */
    bool is_accepted;        /* the feed says so: a row must exist */
    bool needs_escalation;   /* escalated: an open escalation must exist */
    bool was_wrong;          /* in the first read */
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
    bool asks_escalation; /* the query is for an escalation */
    bool must_catch_up;   /* memory may be behind what was read */
    bool has_more;
    struct query q;
    struct tx tx;
    struct loop_job step;
    struct timer timer;
};

static void set_audit_timer(struct audit *a, int64_t ms)
{
    loop_timer_set(a->opts.loop, &a->timer, ms);
}

static void audit_finish(struct audit *a, enum err e)
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
    for (int64_t i = 0; i < r->n_leftovers && i < AUDIT_NAMES; i++)
        log_warn(a->opts.log, "audit.stray",
                 LOG_C("task_id", r->leftovers[i].task_id.text),
                 LOG_C("because", r->leftovers[i].what));
    if (!a->is_stopped)
        set_audit_timer(a, AUDIT_MS);
}

/* It stays a suspect, to be read again once memory has caught up. */
static bool is_in_doubt(struct audit *a, const struct suspect *s)
{
    if (s->was_wrong || PLANTED("audit.one_look"))
        return false;
    a->suspects[a->n_suspects] = *s;
    a->suspects[a->n_suspects++].was_wrong = true;
    a->must_catch_up = true;
    return true;
}

static void report_loss(struct audit *a, const struct suspect *s,
                        const char *what)
{
    struct audit_report *r = &a->report;

    if (is_in_doubt(a, s))
        return;
    if (r->lost < AUDIT_NAMES)
        r->losses[r->lost] = (struct audit_loss){s->task_id, what};
    r->lost++;
}

static void add_leftover(struct audit *a, const struct suspect *s,
                         const char *what)
{
    struct audit_report *r = &a->report;

    if (is_in_doubt(a, s))
        return;
    if (r->n_leftovers < AUDIT_NAMES)
        r->leftovers[r->n_leftovers] = (struct audit_loss){s->task_id, what};
    r->n_leftovers++;
}

/* The problem of a row that is not over; NULL: none. An escalated row must be
 * looked up in the store as well. */
static const char *row_problem(const struct audit *a, struct str id,
                               int64_t status)
{
    const struct task *t = task_find(a->opts.tasks, id);

    if (!t)
        return "it is not over, but not in memory";
    if (status == TASK_HELD && !hold_find(a->opts.gatekeeper, id))
        return "it is held, but has no hold in memory";
    return NULL;
}

static void add_suspect(struct audit *a, struct suspect s)
{
    if (a->n_suspects < PAGE)
        a->suspects[a->n_suspects++] = s;
}

static void check_task_row(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, TASK_ID);
    int64_t status = row_int(r, TASK_STATUS);
    const struct task *t = task_find(a->opts.tasks, id);

    a->after = row_int(r, TASK_SEQ);
    a->report.held += status == TASK_HELD && !(t && t->carried);
    a->report.escalated += status == TASK_ESCALATED;
    if (row_problem(a, id, status) || status == TASK_ESCALATED)
        add_suspect(
            a, (struct suspect){.task_id = id_from(id),
                                .version = row_int(r, TASK_VERSION),
                                .needs_escalation = status == TASK_ESCALATED});
}

static void check_hold_row(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, HOLD_TASK_ID);
    const struct task *t = task_find(a->opts.tasks, id);
    int64_t until_ms = row_int(r, HOLD_UNTIL_MS);
    bool is_overdue = until_ms && row_is_null(r, HOLD_BATCH) &&
                      until_ms + AUDIT_OVERDUE_MS < a->report.began_ms;

    a->after_id = id_from(id);
    if (!t || t->status != TASK_HELD || !hold_find(a->opts.gatekeeper, id) ||
        is_overdue)
        add_suspect(a, (struct suspect){.task_id = id_from(id),
                                        .version = -1,
                                        .is_overdue = is_overdue});
}

/* An escalation of kind late may be written while its task ends; the second
 * read settles that, as for every suspect. */
static void check_escalation_row(struct audit *a, const struct row *r)
{
    struct str id = row_str(r, ESCALATION_TASK_ID);

    a->after = row_int(r, ESCALATION_SEQ);
    if (!task_find(a->opts.tasks, id))
        add_suspect(a, (struct suspect){.task_id = id_from(id),
                                        .escalation_id =
                                            id_from(row_str(r, ESCALATION_ID)),
                                        .version = -1});
}

static void check_feed_entry(struct audit *a, const struct row *r)
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
        add_suspect(a, (struct suspect){.task_id = id_from(e.task_id),
                                        .version = -1,
                                        .is_accepted = true});
}

static void audit_continue(struct audit *a)
{
    loop_next_turn(a->opts.loop, &a->step);
}

static void on_audit_page(struct query *q, void *ctx)
{
    struct audit *a = ctx;
    enum err e = q->err;

    a->is_reading = false;
    if (!e && !a->is_stopped) {
        QUERY_EACH(r, q)
        {
            if (a->walk == WALK_ROWS)
                check_task_row(a, r);
            else if (a->walk == WALK_HOLDS)
                check_hold_row(a, r);
            else if (a->walk == WALK_ESCALATIONS)
                check_escalation_row(a, r);
            else
                check_feed_entry(a, r);
        }
        a->has_more = q->n_rows == PAGE || q->has_more;
    }
    query_fini(q);
    if (e || a->is_stopped)
        audit_finish(a, e ? e : ERR_STOPPING);
    else
        audit_continue(a);
}

static void read_audit_page(struct audit *a)
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
    } else if (a->walk == WALK_ESCALATIONS) {
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
    store_read(a->opts.store, q, on_audit_page, a);
}

static void recheck_escalated_task(struct audit *a, const struct suspect *s,
                                   bool is_there)
{
    const struct task *t = task_find(a->opts.tasks, str_of(s->task_id.text));

    a->n_suspects--;
    if (!is_there && t && t->status == TASK_ESCALATED)
        report_loss(a, s, "it is escalated, but no escalation is open for it");
}

/* Check the row of a hold again, and its task. */
static void recheck_hold(struct audit *a, const struct suspect *s,
                         bool is_there)
{
    struct str id = str_of(s->task_id.text);
    const struct task *t = task_find(a->opts.tasks, id);

    a->n_suspects--;
    if (!is_there)
        return;
    if (!t || t->status != TASK_HELD)
        add_leftover(a, s, "it is not held, but the row of a hold is left");
    else if (!hold_find(a->opts.gatekeeper, id))
        add_leftover(a, s, "it is held, but its hold is not in memory");
    else if (s->is_overdue)
        add_leftover(a, s, "it is held beyond its time");
}

static void recheck_escalation(struct audit *a, const struct suspect *s,
                               bool is_there)
{
    a->n_suspects--;
    if (is_there && !task_find(a->opts.tasks, str_of(s->task_id.text)))
        add_leftover(a, s, "it is over, but an escalation of it is open");
}

static void recheck_task(struct audit *a, const struct suspect *s,
                         const struct row *r)
{
    struct str id = str_of(s->task_id.text);
    int64_t status = r ? row_int(r, TASK_STATUS) : 0;
    const char *wrong;

    if (s->needs_escalation && r && row_is_null(r, TASK_FINISHED_MS) &&
        row_int(r, TASK_VERSION) == s->version && !row_problem(a, id, status)) {
        a->asks_escalation = true;
        return;
    }
    a->n_suspects--;
    if (!r) {
        if (s->is_accepted)
            report_loss(a, s, "it was accepted, but has no row");
        return;
    }
    if (!row_is_null(r, TASK_FINISHED_MS)) {
        a->report.over += s->is_accepted && a->walk == WALK_FEED;
        return;
    }
    a->report.unfinished += a->walk == WALK_FEED;
    wrong = row_problem(a, id, status);
    if (wrong && a->walk == WALK_ROWS && row_int(r, TASK_VERSION) == s->version)
        report_loss(a, s, wrong);
}

static void on_suspect(struct query *q, void *ctx)
{
    struct audit *a = ctx;
    const struct suspect s = a->suspects[a->n_suspects - 1];
    enum err e = q->err;
    bool asked_escalation = a->asks_escalation;

    a->is_reading = a->asks_escalation = false;
    if (!e && asked_escalation)
        recheck_escalated_task(a, &s, q->rows != NULL);
    else if (!e && a->walk == WALK_HOLDS)
        recheck_hold(a, &s, q->rows != NULL);
    else if (!e && a->walk == WALK_ESCALATIONS)
        recheck_escalation(a, &s, q->rows != NULL);
    else if (!e)
        recheck_task(a, &s, q->rows);
    query_fini(q);
    if (e || a->is_stopped)
        audit_finish(a, e ? e : ERR_STOPPING);
    else
        audit_continue(a);
}

static void read_suspect(struct audit *a)
{
    struct str id = str_of(a->suspects[a->n_suspects - 1].task_id.text);
    struct query *q = &a->q;

    if (a->asks_escalation) {
        query_init(q, &escalation_table, 1);
        query_if(q, ESCALATION_TASK_ID, IS, value_text(id));
        query_if(q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    } else if (a->walk == WALK_HOLDS) {
        query_init(q, &hold_table, 1);
        query_if(q, HOLD_TASK_ID, IS, value_text(id));
    } else if (a->walk == WALK_ESCALATIONS) {
        query_init(q, &escalation_table, 1);
        query_if(q, ESCALATION_ID, IS,
                 value_text(str_of(
                     a->suspects[a->n_suspects - 1].escalation_id.text)));
        query_if(q, ESCALATION_STATUS, IS, value_int(ESCALATION_OPEN));
    } else {
        query_init(q, &task_table, 1);
        query_if(q, TASK_ID, IS, value_text(id));
    }
    a->is_reading = true;
    store_read(a->opts.store, q, on_suspect, a);
}

/* If the store is overloaded, try again later. */
static void on_memory_current(struct tx *tx, void *ctx)
{
    struct audit *a = ctx;
    enum err e = tx->result == TX_COMMITTED ? OK : tx->err;

    a->is_reading = false;
    tx_fini(tx);
    if (a->is_stopped || (e && e != ERR_OVERLOADED)) {
        audit_finish(a, a->is_stopped ? ERR_STOPPING : e);
        return;
    }
    a->must_catch_up = e != OK;
    if (e)
        set_audit_timer(a, AGAIN_MS);
    else
        audit_continue(a);
}

/* A write that changes nothing: no task has this id. */
static void wait_for_memory(struct audit *a)
{
    struct tx_op *op;

    tx_init(&a->tx);
    op = tx_prune(&a->tx, &task_table, 1);
    tx_if(op, TASK_ID, IS, value_text(STR("")));
    a->is_reading = true;
    store_submit(a->opts.store, &a->tx, on_memory_current, a);
}

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

static void on_audit_step(struct loop_job *job)
{
    struct audit *a = LIST_OF(job, struct audit, step);

    if (a->is_stopped)
        audit_finish(a, ERR_STOPPING);
    else if (a->must_catch_up)
        wait_for_memory(a);
    else if (a->n_suspects)
        read_suspect(a);
    else if (a->has_more)
        read_audit_page(a);
    else if (a->walk + 1 < N_WALKS) {
        begin_walk(a, a->walk + 1);
        audit_continue(a);
    } else
        audit_finish(a, OK);
}

void audit_run(struct audit *a)
{
    if (a->is_running || a->is_stopped)
        return;
    loop_timer_cancel(a->opts.loop, &a->timer);
    a->is_running = true;
    a->asks_escalation = a->must_catch_up = false;
    a->n_suspects = 0;
    a->report = (struct audit_report){.began_ms = loop_wall_ms(a->opts.loop)};
    begin_walk(a, WALK_ROWS);
    audit_continue(a);
}

/* For the next audit, or to continue the current one. */
static void on_audit_timer(struct timer *t)
{
    struct audit *a = LIST_OF(t, struct audit, timer);

    if (a->is_running)
        audit_continue(a);
    else
        audit_run(a);
}

struct audit *audit_new(const struct audit_opts *opts)
{
    struct audit *a = mem_new(sizeof(*a));

    a->opts = *opts;
    a->step.run = on_audit_step;
    a->timer.fire = on_audit_timer;
    set_audit_timer(a, AUDIT_FIRST_MS);
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
