/* Budgets of users, orgs and agents: loaded at a start; the payer's org is
 * found for each message that costs something; and a warning is sent when a
 * budget is nearly used up.
 *
 * The used amount is read after the commit that used it, one read per budget at
 * a time. A turn that comes during a read has it repeated. The warning is a tx
 * of its own with a guard on the budget's row, so there is one per period, also
 * across restarts. If the server stops before it, the next paid turn sends
 * it. */
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "walk/internal.h"
#include "watch/watch.h"

enum {
    LOOKS_MAX = 256, /* at a time; later turns look at the rest */
    LOAD_PAGE = 500,
    TOLD_MAX = 2048,
};

/* One read of one budget. */
struct budget_look {
    struct list_node node; /* in walk.budget_looks */
    struct walk *walk;
    struct ledger_budget budget;
    char payer[PRINCIPAL_NAME_MAX + 1];
    int64_t at_ms, spent;
    bool is_again; /* more was spent since the read began */
    struct query query;
    struct tx tx;
};

enum err walk_load_budgets(struct walk *w, struct why *why)
{
    char after[BUDGET_KEY_MAX] = "";
    bool has_more = true;
    struct query q;
    enum err e = OK;

    while (!e && has_more) {
        ledger_budgets_query(&q, str_of(after), LOAD_PAGE);
        e = store_look(w->opts.store, &q);
        if (!e)
            e = ledger_budgets_take(w->ledger, &q);
        QUERY_EACH(r, &q)
        {
            snprintf(after, sizeof(after), "%.*s",
                     STR_ARG(row_str(r, BUDGET_KEY)));
        }
        has_more = q.has_more;
        query_fini(&q);
    }
    if (!e) { /* if nothing was ever paid, budgets need not be read */
        query_init(&q, &spent_table, 1);
        e = store_look(w->opts.store, &q);
        if (!e && q.rows)
            ledger_note_spending(w->ledger);
        query_fini(&q);
    }
    if (e)
        why_err(why, e, "the budgets cannot be read: %s", err_row(e)->wording);
    return e;
}

enum err walk_find_org(struct walk *w, struct msg *m)
{
    m->ledger.org = (struct str){NULL, 0};
    if (!m->ledger.price_micros)
        return OK;
    return arena_keep(&m->arena, access_org_of(w->opts.access, m->ledger.payer),
                      &m->ledger.org)
               ? OK
               : ERR_NOMEM;
}

/* The warning. */

/* A user's budget is reported to the user, an org's to the user whose turn it
 * was, an agent's only to admins: its cost is paid by many users. */
static struct str budget_warning_user(const struct budget_look *l)
{
    switch (l->budget.kind) {
    case BUDGET_USER:
    case BUDGET_SELF: return str_of(l->budget.name);
    case BUDGET_ORG: return str_of(l->payer);
    case BUDGET_AGENT: break;
    }
    return (struct str){NULL, 0};
}

static void budget_warn(struct budget_look *l)
{
    const struct ledger_budget *b = &l->budget;
    struct json_out o;
    struct buf data;

    buf_init(&data, TOLD_MAX);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_text(&o, "kind", budget_kind_name(b->kind));
    json_member_text(&o, "name", str_of(b->name));
    json_member_text(&o, "period", budget_period_name(b->period));
    json_member_int(&o, "limit_micros", b->limit);
    json_member_int(&o, "used_micros", l->spent);
    json_member_int(&o, "resets_ms", budget_period_end(b->period, l->at_ms));
    json_close(&o, '}');
    feed_append_data(&l->tx, &data,
                     &(struct feed_entry){.at_ms = l->at_ms,
                                          .type = STR("budget.warning"),
                                          .agent = b->kind == BUDGET_AGENT
                                                       ? str_of(b->name)
                                                       : STR(""),
                                          .root_user = budget_warning_user(l)});
}

static void budget_look_end(struct budget_look *l)
{
    list_remove(&l->node);
    l->walk->n_budget_looks--;
    free(l);
}

static void on_warned(struct tx *tx, void *ctx)
{
    struct budget_look *l = ctx;

    /* A failed guard: it was sent before, or the budget was changed. */
    if (tx->result == TX_COMMITTED || tx->result == TX_GUARD_FAILED)
        ledger_budget_was_warned(l->walk->ledger, &l->budget);
    if (tx->result == TX_COMMITTED)
        log_warn(l->walk->opts.log, "ledger.budget_nearly_used",
                 LOG_S("kind", budget_kind_name(l->budget.kind)),
                 LOG_C("name", l->budget.name),
                 LOG_S("period", budget_period_name(l->budget.period)),
                 LOG_I("limit_micros", l->budget.limit),
                 LOG_I("used_micros", l->spent));
    tx_fini(tx);
    budget_look_end(l);
}

static void on_budget_spent(struct query *q, void *ctx);

static void budget_look_read(struct budget_look *l)
{
    l->is_again = false;
    budget_spent_query(&l->query, &l->budget, l->at_ms);
    store_read(l->walk->opts.store, &l->query, on_budget_spent, l);
}

static void on_budget_spent(struct query *q, void *ctx)
{
    struct budget_look *l = ctx;
    enum err e = q->err;

    l->spent = !e && q->rows ? row_int(q->rows, SPENT_AMOUNT) : 0;
    query_fini(&l->query);
    if (!e && budget_is_near(&l->budget, l->spent)) {
        tx_init(&l->tx);
        ledger_budget_warn(&l->budget, l->at_ms, &l->tx);
        budget_warn(l);
        store_submit(l->walk->opts.store, &l->tx, on_warned, l);
    } else if (!e && l->is_again) {
        budget_look_read(l);
    } else {
        budget_look_end(l);
    }
}

static void budget_look_begin(struct walk *w, const struct msg *m,
                              const struct ledger_budget *b)
{
    struct budget_look *l;

    for (struct list_node *n = list_first(&w->budget_looks); n;
         n = list_next(&w->budget_looks, n)) {
        l = LIST_OF(n, struct budget_look, node);
        if (l->budget.kind == b->kind && l->budget.period == b->period &&
            strcmp(l->budget.name, b->name) == 0) {
            l->is_again = true;
            return;
        }
    }
    if (w->n_budget_looks == LOOKS_MAX)
        return;
    l = mem_new(sizeof(*l));
    l->walk = w;
    l->budget = *b;
    l->at_ms = m->in.at_ms;
    snprintf(l->payer, sizeof(l->payer), "%.*s", STR_ARG(m->ledger.payer));
    list_append(&w->budget_looks, &l->node);
    w->n_budget_looks++;
    budget_look_read(l);
}

void walk_look_at_budgets(struct walk *w, const struct msg *m)
{
    struct ledger_budget of[BUDGETS_OF_MAX];
    size_t n;

    if (!m->ledger.price_micros || m->task.is_repeat)
        return;
    n = ledger_budgets_of(w->ledger, m->ledger.payer, m->ledger.org,
                          m->choice.agent, of);
    for (size_t i = 0; i < n; i++)
        if (!budget_was_warned(&of[i], m->in.at_ms))
            budget_look_begin(w, m, &of[i]);
}
