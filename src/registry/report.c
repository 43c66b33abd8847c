/* Reports: complaints of users, for admins. They are few and rarely read, so
 * they are in one list, and an agent only has their number.
 *
 * A report is in the list as soon as it is taken, so that the limits count
 * pending ones; it is shown once it is committed. Its agent need not be
 * claimed: a report does not change the card, and its row is deleted with the
 * agent's. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"
#include "watch/watch.h"

#define BOTH(field) MEMBER(struct report, field), .part = 1

static const struct column report_columns[] = {REPORT_COLUMNS(COLUMN_ROW)};

static const struct table_index report_indexes[] = {
    {.name = "report_by_agent", INDEX_ON(REPORT_AGENT, REPORT_USER)},
};

const struct table report_table = {
    .name = "agent_reports",
    .columns = report_columns,
    .n_columns = N_REPORT_COLUMNS,
    .n_key = 1,
    .indexes = report_indexes,
    .n_indexes = sizeof(report_indexes) / sizeof(report_indexes[0]),
    .since = 4,
};

static struct report *report_from_node(struct list_node *n)
{
    return n ? LIST_OF(n, struct report, node) : NULL;
}

static struct report *first_report(const struct registry *r)
{
    return report_from_node(list_first(&r->reports));
}

static struct report *next_report(const struct registry *r,
                                  const struct report *one)
{
    return report_from_node(list_next(&r->reports, &one->node));
}

static struct str report_put_text(char **to, struct str text)
{
    struct str put = {*to, text.n};

    if (text.n)
        memcpy(*to, text.p, text.n);
    *to += text.n;
    return put;
}

static struct report *report_new(struct registry *r, struct str key,
                                 struct str user, struct str reason)
{
    struct report *one =
        FAULT("registry.report")
            ? NULL
            : calloc(1, sizeof(*one) + key.n + user.n + reason.n);
    char *p;

    if (!one)
        return NULL;
    p = one->bytes;
    one->key = report_put_text(&p, key);
    one->user = report_put_text(&p, user);
    one->reason = report_put_text(&p, reason);
    list_append(&r->reports, &one->node);
    r->n_reports++;
    return one;
}

void report_drop(struct registry *r, struct report *one)
{
    struct entry *e = entry_find(r, one->key); /* NULL: it is gone too */

    if (!one->is_coming) {
        r->stats.reports--;
        if (e)
            e->n_reports--;
    }
    list_remove(&one->node);
    r->n_reports--;
    free(one);
}

void reports_close(struct registry *r)
{
    for (struct report *one; (one = first_report(r));) {
        list_remove(&one->node);
        free(one);
    }
}

/* The agent may be gone meanwhile, and the row with it. */
void report_settle(struct registry *r, struct report *one)
{
    struct entry *e = entry_find(r, one->key);

    for (struct report *old = first_report(r), *next; old; old = next) {
        next = next_report(r, old);
        if (old != one && !old->is_coming && str_eq(old->key, one->key) &&
            str_eq_nocase(old->user, one->user))
            report_drop(r, old);
    }
    if (!e) {
        report_drop(r, one);
        return;
    }
    one->is_coming = false;
    e->n_reports++;
    r->stats.reports++;
}

void reports_forget(struct registry *r, struct str key)
{
    for (struct report *one = first_report(r), *next; one; one = next) {
        next = next_report(r, one);
        if (!one->is_coming && str_eq(one->key, key))
            report_drop(r, one);
    }
}

void reports_prune(struct tx *tx, struct str key)
{
    struct tx_op *op = tx_prune(tx, &report_table, REPORTS_MAX);

    tx_if(op, REPORT_AGENT, IS, value_text(key));
}

size_t registry_n_reports(const struct registry *r, const struct agent *a)
{
    (void)r;
    return agent_entry(a)->n_reports;
}

size_t registry_reports(const struct registry *r, const struct agent *a,
                        struct registry_report *out, size_t max)
{
    size_t n = 0;

    for (const struct report *one = first_report(r); one;
         one = next_report(r, one))
        if (n < max && !one->is_coming && str_eq(one->key, agent_entry(a)->key))
            out[n++] = (struct registry_report){.agent = a->name,
                                                .user = one->user,
                                                .reason = one->reason,
                                                .at_ms = one->at_ms};
    return n;
}

/* The committed report of that user on that agent. */
static const struct report *report_find(const struct registry *r,
                                        struct str key, struct str user)
{
    for (const struct report *one = first_report(r); one;
         one = next_report(r, one))
        if (!one->is_coming && str_eq(one->key, key) &&
            str_eq_nocase(one->user, user))
            return one;
    return NULL;
}

static enum err report_check(const struct registry *r, const struct entry *e,
                             struct str reason, const struct registry_by *by,
                             struct why *why)
{
    struct eyes eyes = by_eyes(by);
    size_t n_user = 0, n_agent = 0;

    if (!e || !agent_is_visible(&e->agent, &eyes))
        return why_err(why, ERR_NOT_FOUND, "there is no agent of that name");
    if (!eyes.user.n || str_eq_nocase(e->agent.creator, eyes.user))
        return why_err(why, ERR_BAD_REQUEST,
                       "\"%.*s\" is your own: change it or remove it",
                       STR_ARG(e->agent.name));
    if (str_trim_space(reason).n == 0 || reason.n > REVIEW_REASON_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "reason must say in 1 to %d bytes what is wrong",
                       REVIEW_REASON_MAX);
    if (report_find(r, e->key, eyes.user))
        return OK; /* it replaces that one */
    for (const struct report *one = first_report(r); one;
         one = next_report(r, one)) {
        n_user += str_eq_nocase(one->user, eyes.user);
        n_agent += str_eq(one->key, e->key);
    }
    if (n_agent >= REPORTS_PER_AGENT || r->n_reports >= REPORTS_MAX)
        return why_err(why, ERR_LIMIT,
                       "too many reports wait for an admin; this one is "
                       "rejected");
    if (n_user >= REPORTS_PER_USER)
        return why_err(why, ERR_LIMIT,
                       "%d of your reports wait for an admin, the maximum",
                       REPORTS_PER_USER);
    return OK;
}

static void report_append(struct tx *tx, const struct report *one)
{
    struct tx_op *op = tx_prune(tx, &report_table, REPORTS_PER_USER);

    tx_if(op, REPORT_AGENT, IS, value_text(one->key));
    tx_if(op, REPORT_USER, IS, value_text(one->user));
    op = tx_insert(tx, &report_table);
    record_to_tx(op, one, 1);
}

enum err registry_report(struct registry *r, struct registry_change *c,
                         struct str name, struct str reason,
                         const struct registry_by *by, struct why *why)
{
    const struct entry *e = entry_find(r, name);
    struct registry_step *s = NULL;
    struct id id = id_make(r->opts.ids, "report", by->now_ms);
    char claim[ID_BYTES + 1];
    const struct report *was;
    enum err err = report_check(r, e, reason, by, why);

    assert(!c->is_open);
    was = err ? NULL : report_find(r, e->key, by_eyes(by).user);
    if (was && str_eq(was->reason, reason)) {
        c->is_same = true;
        return change_open(c, e->agent.name, e->agent.revision);
    }
    snprintf(claim, sizeof(claim), "/%s", id.text);
    if (!err)
        err = step_add(r, c, STEP_REPORT, str_of(claim), &s, why);
    if (!err) {
        s->report = report_new(r, e->key, by_eyes(by).user, reason);
        err = s->report ? OK : ERR_NOMEM;
    }
    if (err)
        return change_refuse(r, c, err, why);
    s->report->id = id;
    s->report->is_coming = true;
    s->report->at_ms = by->now_ms;
    report_append(&c->tx, s->report);
    if (!was) /* or the feed and its channels could be flooded */
        registry_tell_feed(&c->tx,
                           &(struct feed_event){.type = "agent.reported",
                                                .entry = e,
                                                .reason = reason,
                                                .by = by_name(by),
                                                .at_ms = by->now_ms,
                                                .is_for_admins = true});
    seq_append(r, &c->tx);
    return change_open(c, e->agent.name, e->agent.revision);
}

enum err registry_dismiss_reports(struct registry *r, struct registry_change *c,
                                  struct str name, const struct registry_by *by,
                                  struct why *why)
{
    struct eyes eyes = by_eyes(by);
    struct entry *e = NULL;
    struct registry_step *s;
    enum err err = OK;

    assert(!c->is_open);
    if (!eyes.sees_all)
        err = why_err(why, ERR_NOT_ALLOWED, "reports are for admins");
    if (!err)
        err = find_to_change(r, CHANGE_GRANTS, name, by, &e, why);
    entry_keep_for_admins(r, name, err, by->now_ms);
    if (!err && !e->n_reports)
        err = why_err(why, ERR_PRECONDITION, "\"%.*s\" has no reports",
                      STR_ARG(e->agent.name));
    if (!err)
        err = step_add(r, c, STEP_DISMISS, e->key, &s, why);
    if (err)
        return change_refuse(r, c, err, why);
    reports_prune(&c->tx, e->key);
    registry_tell_feed(&c->tx,
                       &(struct feed_event){.type = "agent.reports_dismissed",
                                            .entry = e,
                                            .by = by_name(by),
                                            .at_ms = by->now_ms,
                                            .is_for_admins = true});
    seq_append(r, &c->tx);
    return change_open(c, e->agent.name, e->agent.revision);
}

static enum err report_load(struct registry *r, const struct row *row,
                            void *ctx, struct why *why)
{
    struct str id = row_str(row, REPORT_ID);
    struct entry *e = entry_find(r, row_str(row, REPORT_AGENT));
    struct report *one;

    (void)ctx;
    if (!e || !id_is_valid(id, "report"))
        return why_err(why, ERR_BAD_CONFIG,
                       "the database has a report that this version cannot "
                       "read (\"%.*s\"); was it used by a newer one?",
                       STR_ARG(str_head(id, AGENT_NAME_MAX)));
    one = report_new(r, e->key, row_str(row, REPORT_USER),
                     row_str(row, REPORT_REASON));
    if (!one)
        return why_err(why, ERR_NOMEM, "no memory for the reports");
    memcpy(one->id.text, id.p, id.n);
    one->at_ms = row_int(row, REPORT_AT_MS);
    e->n_reports++;
    r->stats.reports++;
    return OK;
}

enum err reports_load(struct registry *r, struct why *why)
{
    return rows_each(r, &report_table, report_load, NULL, why);
}
