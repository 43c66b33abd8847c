/* Budgets of users, orgs and agents beside the walk: they are loaded at start,
 * the payer's org is found for each message that costs something, and whoever
 * must know is warned when a budget is nearly used up.
 *
 * What is used is read after the commit that used it, once for each budget at a
 * time: a turn that comes while one is read has it read again. The warning is a
 * tx of its own with a guard on the budget's row, so there is one in a period,
 * also over restarts; where the server ends before it, the next turn that costs
 * something tells it. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "walk_internal.h"
#include "watch/watch.h"

enum {
    LOOKS_MAX = 256, /* at a time; the next turn looks at the others */
    LOAD_PAGE = 500,
    TOLD_MAX = 2048,
};

/* One look at one budget. */
struct budget_look {
    struct list_node node; /* in walk.budget_looks */
    struct walk *walk;
    struct ledger_budget budget;
    char payer[PRINCIPAL_NAME_MAX + 1];
    int64_t at_ms, spent;
    bool is_again; /* there is news since it was asked for */
    struct query query;
    struct tx tx;
};

/* Where nothing was ever paid, nobody need look how much. */
static enum err look_for_spending(struct walk *w)
{
    struct query q;
    enum err e;

    query_init(&q, &spent_table, 1);
    e = store_look(w->opts.store, &q);
    if (!e && q.rows)
        ledger_note_spending(w->ledger);
    query_fini(&q);
    return e;
}

enum err walk_load_budgets(struct walk *w, struct why *why)
{
    char after[BUDGET_KEY_MAX] = "";
    bool has_more = true;
    enum err e = OK;

    while (!e && has_more) {
        struct query q;

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
    if (!e)
        e = look_for_spending(w);
    if (e)
        why_err(why, e, "the budgets cannot be read: %s", err_row(e)->wording);
    return e;
}

enum err walk_find_org(struct walk *w, struct msg *m)
{
    m->ledger.org = (struct str){NULL, 0};
    if (!m->ledger.price_micros)
        return OK;
    return arena_keep(&m->arena, walk_org_of(w, m->ledger.payer),
                      &m->ledger.org)
               ? OK
               : ERR_NOMEM;
}

/* The warning. */

/* A user's is told to them, an org's to whose turn it was, an agent's to
 * admins alone: what it has cost is the money of many. */
static struct str told_to(const struct budget_look *l)
{
    switch (l->budget.kind) {
    case BUDGET_USER:
    case BUDGET_SELF: return str_of(l->budget.name);
    case BUDGET_ORG: return str_of(l->payer);
    case BUDGET_AGENT: break;
    }
    return (struct str){NULL, 0};
}

static void tell(struct budget_look *l)
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
    if (data.over || FAULT("walk.budget_told"))
        l->tx.build_error = ERR_NOMEM;
    else
        feed_append(&l->tx,
                    &(struct feed_entry){.at_ms = l->at_ms,
                                         .type = STR("budget.warning"),
                                         .agent = b->kind == BUDGET_AGENT
                                                      ? str_of(b->name)
                                                      : STR(""),
                                         .root_user = told_to(l),
                                         .data = buf_str(&data)});
    buf_fini(&data);
}

static void look_over(struct budget_look *l)
{
    list_remove(&l->node);
    l->walk->n_budget_looks--;
    free(l);
}

static void on_warned(struct tx *tx, void *ctx)
{
    struct budget_look *l = ctx;

    /* A guard that did not hold: it was told before, or is another one now. */
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
    look_over(l);
}

static void on_spent(struct query *q, void *ctx);

static void look(struct budget_look *l)
{
    l->is_again = false;
    budget_spent_query(&l->query, &l->budget, l->at_ms);
    store_read(l->walk->opts.store, &l->query, on_spent, l);
}

static void on_spent(struct query *q, void *ctx)
{
    struct budget_look *l = ctx;
    enum err e = q->err;

    l->spent = !e && q->rows ? row_int(q->rows, SPENT_AMOUNT) : 0;
    query_fini(&l->query);
    if (!e && budget_is_near(&l->budget, l->spent)) {
        tx_init(&l->tx);
        ledger_budget_warn(&l->budget, l->at_ms, &l->tx);
        tell(l);
        store_submit(l->walk->opts.store, &l->tx, on_warned, l);
    } else if (!e && l->is_again) {
        look(l);
    } else {
        look_over(l);
    }
}

static struct budget_look *find_look(struct walk *w,
                                     const struct ledger_budget *b)
{
    for (struct list_node *n = list_first(&w->budget_looks); n;
         n = list_next(&w->budget_looks, n)) {
        struct budget_look *l = LIST_OF(n, struct budget_look, node);

        if (l->budget.kind == b->kind && l->budget.period == b->period &&
            strcmp(l->budget.name, b->name) == 0)
            return l;
    }
    return NULL;
}

static void begin_look(struct walk *w, const struct msg *m,
                       const struct ledger_budget *b)
{
    struct budget_look *l = find_look(w, b);

    if (l) {
        l->is_again = true;
        return;
    }
    l = w->n_budget_looks < LOOKS_MAX && !FAULT("walk.budget_look")
            ? calloc(1, sizeof(*l))
            : NULL;
    if (!l)
        return;
    l->walk = w;
    l->budget = *b;
    l->at_ms = m->in.at_ms;
    snprintf(l->payer, sizeof(l->payer), "%.*s", STR_ARG(m->ledger.payer));
    list_append(&w->budget_looks, &l->node);
    w->n_budget_looks++;
    look(l);
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
            begin_look(w, m, &of[i]);
}
