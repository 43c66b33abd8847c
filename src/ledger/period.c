/* Budgets that people set, by user, org and agent, for a day or a month (UTC).
 *
 * Rows of `budget` hold the limits, with a copy in memory that is sorted by
 * key and limited to BUDGETS_MAX. Rows of `spent` count the spending of each
 * user, org and agent in each period, with or without a budget, so a budget
 * that is set in the middle of a month includes the month so far. Every priced
 * turn adds to these rows in the tx that accepts it, and the limits are guards
 * after the additions in the same tx: of many turns that arrive at once, only
 * as many are accepted as fit together.
 *
 * The period is that of the message which began the turn, by the time in its
 * id, as for ledger.perDay (budget.c). The task's row keeps the org and the
 * agent that were counted, since the user may change orgs and another agent may
 * take the task before a release. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/rfc3339.h"
#include "ledger/internal.h"

enum {
    DAY_CHARS = 10,  /* "2026-11-16" */
    MONTH_CHARS = 7, /* "2026-11" */
    NEAR_PERCENT = 80,
};

#define DAY_MS INT64_C(86400000)

static const struct str kind_names[] = {[BUDGET_USER] = STR("user"),
                                        [BUDGET_SELF] = STR("self"),
                                        [BUDGET_ORG] = STR("org"),
                                        [BUDGET_AGENT] = STR("agent")};
static const struct str period_names[] = {
    [BUDGET_DAY] = STR("day"), [BUDGET_MONTH] = STR("month")};

struct str budget_kind_name(enum budget_kind k)
{
    return kind_names[k];
}

struct str budget_period_name(enum budget_period p)
{
    return period_names[p];
}

enum budget_period budget_period_of(struct str name)
{
    for (enum budget_period p = BUDGET_DAY; p <= BUDGET_MONTH; p++)
        if (str_eq(name, period_names[p]))
            return p;
    return 0;
}

/* Periods. */

/* "2026-11-16", or "2026-11". */
static struct str period_label(enum budget_period p, int64_t at_ms,
                               char out[RFC3339_BYTES])
{
    rfc3339_write(at_ms, out);
    return (struct str){out, p == BUDGET_DAY ? DAY_CHARS : MONTH_CHARS};
}

/* A month has at most 31 days, so the 1st plus 32 days is in the next month. */
int64_t budget_period_end(enum budget_period p, int64_t at_ms)
{
    char text[RFC3339_BYTES], next[RFC3339_BYTES];
    int64_t first = 0, end = 0;

    if (p == BUDGET_DAY)
        return (at_ms / DAY_MS + 1) * DAY_MS;
    period_label(p, at_ms, text);
    snprintf(next, sizeof(next), "%.7s-01T00:00:00Z", text);
    if (!rfc3339_read(str_of(next), &first))
        return at_ms;
    period_label(p, first + 32 * DAY_MS, text);
    snprintf(next, sizeof(next), "%.7s-01T00:00:00Z", text);
    return rfc3339_read(str_of(next), &end) ? end : at_ms;
}

/* Counting. */

/* "month:anna:2026-11". A user's own budget and an admin's for that user share
 * a row; the row of a day is that of ledger.perDay. */
static struct str spent_name(enum budget_kind kind, enum budget_period period,
                             struct str name, int64_t at_ms,
                             char out[LEDGER_BUDGET_MAX])
{
    static const char *const prefixes[][3] = {
        [BUDGET_USER] = {[BUDGET_DAY] = "day", [BUDGET_MONTH] = "month"},
        [BUDGET_SELF] = {[BUDGET_DAY] = "day", [BUDGET_MONTH] = "month"},
        [BUDGET_ORG] = {[BUDGET_DAY] = "org-day", [BUDGET_MONTH] = "org-month"},
        [BUDGET_AGENT] = {
            [BUDGET_DAY] = "agent-day", [BUDGET_MONTH] = "agent-month"}};
    char lower[BUDGET_NAME_MAX], label[RFC3339_BYTES];
    struct str of = kind == BUDGET_AGENT
                        ? str_lowered(name, lower, sizeof(lower))
                        : name; /* names of orgs are case-sensitive */
    int n =
        snprintf(out, LEDGER_BUDGET_MAX, "%s:%.*s:%.*s", prefixes[kind][period],
                 STR_ARG(of), STR_ARG(period_label(period, at_ms, label)));

    assert(n > 0 && n < LEDGER_BUDGET_MAX);
    return (struct str){out, (size_t)n};
}

void budget_spent_query(struct query *q, const struct ledger_budget *b,
                        int64_t at_ms)
{
    char of[LEDGER_BUDGET_MAX];

    ledger_spent_query(
        q, spent_name(b->kind, b->period, str_of(b->name), at_ms, of));
}

/* One row that a turn counts in. */
struct slot {
    enum budget_kind kind;
    enum budget_period period;
    struct str name;
};

enum { N_SLOTS = 6 };

static void period_slots(const struct ledger_use *u, struct slot out[N_SLOTS])
{
    const struct slot all[N_SLOTS] = {{BUDGET_USER, BUDGET_DAY, u->user},
                                      {BUDGET_USER, BUDGET_MONTH, u->user},
                                      {BUDGET_ORG, BUDGET_DAY, u->org},
                                      {BUDGET_ORG, BUDGET_MONTH, u->org},
                                      {BUDGET_AGENT, BUDGET_DAY, u->agent},
                                      {BUDGET_AGENT, BUDGET_MONTH, u->agent}};

    memcpy(out, all, sizeof(all));
}

/* Retention must not remove a month's row before the month is over. */
static void period_count(const struct slot *s, const struct ledger_use *u,
                         int64_t first, int64_t delta, struct tx *tx)
{
    struct id id = id_from(u->message_id);
    int64_t at_ms = id_time_ms(&id);
    char text[LEDGER_BUDGET_MAX];

    ledger_count_spent(
        spent_name(s->kind, s->period, s->name, at_ms, text), first, delta,
        s->period == BUDGET_DAY ? u->at_ms
                                : budget_period_end(s->period, at_ms),
        tx);
}

/* ledger.perDay counts the day of a user. */
static bool is_period_counted(const struct slot *s)
{
    return s->name.n && !(s->kind == BUDGET_USER && s->period == BUDGET_DAY);
}

/* The lower one of an admin's budget for a user and the user's own. */
static const struct ledger_budget *lowest_budget(const struct ledger *l,
                                                 const struct slot *s)
{
    const struct ledger_budget *b =
        ledger_budget_find(l, s->kind, s->name, s->period);
    const struct ledger_budget *own =
        s->kind == BUDGET_USER
            ? ledger_budget_find(l, BUDGET_SELF, s->name, s->period)
            : NULL;

    return !b || (own && own->limit < b->limit) ? own : b;
}

void ledger_use_periods(const struct ledger *l, const struct ledger_use *u,
                        struct tx *tx)
{
    struct id id = id_from(u->message_id);
    struct slot slots[N_SLOTS];

    period_slots(u, slots);
    for (size_t i = 0; i < N_SLOTS; i++)
        if (is_period_counted(&slots[i]))
            period_count(&slots[i], u, 0, u->price, tx);
    for (size_t i = 0; i < N_SLOTS; i++) {
        const struct slot *s = &slots[i];
        const struct ledger_budget *b = s->name.n ? lowest_budget(l, s) : NULL;
        char of[LEDGER_BUDGET_MAX];
        struct tx_op *op;

        if (!b || PLANTED("ledger.no_budgets"))
            continue;
        op = tx_expect(tx, &spent_table);
        tx_if(op, SPENT_OF, IS,
              value_text(spent_name(s->kind, s->period, s->name,
                                    id_time_ms(&id), of)));
        tx_if(op, SPENT_AMOUNT, IS_AT_MOST, value_int(b->limit));
    }
}

/* A turn older than these rows names no agent and was not counted. */
void ledger_give_back_periods(const struct ledger_use *u, struct tx *tx)
{
    struct slot slots[N_SLOTS];

    if (!u->agent.n || PLANTED("ledger.keep_periods"))
        return;
    period_slots(u, slots);
    for (size_t i = 0; i < N_SLOTS; i++)
        if (is_period_counted(&slots[i]))
            period_count(&slots[i], u, u->price, -u->price, tx);
}

/* Rejections. */

bool ledger_is_period(const struct tx_op *op)
{
    return op->table == &spent_table && op->kind == TX_EXPECT;
}

/* An agent's total includes other users' money: only admins see it. */
static bool may_see_budget(const struct msg *m, enum budget_kind kind)
{
    return kind != BUDGET_AGENT || caller_is_admin(&m->in.caller);
}

enum err ledger_explain_period(const struct ledger *l, struct msg *m,
                               const struct tx_op *op, int64_t spent,
                               bool is_known)
{
    struct str of = ledger_guard_text(op, SPENT_OF);
    struct ledger_use u = {.user = m->ledger.payer,
                           .org = m->ledger.org,
                           .agent = m->choice.agent};
    struct id id = m->task.message_id;
    char text[LEDGER_BUDGET_MAX], end[RFC3339_BYTES];
    const struct ledger_budget *b = NULL;
    struct slot slots[N_SLOTS];
    struct why numbers = {""}, budget;

    period_slots(&u, slots);
    for (size_t i = 0; i < N_SLOTS && !b; i++)
        if (slots[i].name.n &&
            str_eq(of, spent_name(slots[i].kind, slots[i].period, slots[i].name,
                                  id_time_ms(&id), text)))
            b = lowest_budget(l, &slots[i]);
    if (!b) /* removed meanwhile */
        return why_err(&m->why, ERR_BUDGET,
                       "%.*s costs %s, and a budget left less; the budget was "
                       "removed meanwhile: send it again",
                       STR_ARG(m->choice.agent),
                       amount_write(m->ledger.price_micros).text);
    rfc3339_write(budget_period_end(b->period, id_time_ms(&id)), end);
    if (may_see_budget(m, b->kind) && is_known)
        why_err(&numbers, OK, ", which is %s, %s is used",
                amount_write(b->limit).text, amount_write(spent).text);
    else if (may_see_budget(m, b->kind))
        why_err(&numbers, OK, ", which is %s, too little is left",
                amount_write(b->limit).text);
    else
        why_err(&numbers, OK, " too little is left");
    if (b->kind == BUDGET_SELF)
        why_err(&budget, OK, "that %s set for themselves", b->name);
    else
        why_err(&budget, OK, "of the %s %s", kind_names[b->kind].p, b->name);
    return why_err(&m->why, ERR_BUDGET,
                   "%.*s costs %s, and of the %s's budget %s%s; it resets at "
                   "%s",
                   STR_ARG(m->choice.agent),
                   amount_write(m->ledger.price_micros).text,
                   period_names[b->period].p, budget.text, numbers.text, end);
}

/* Budgets in memory. */

/* Names of users and agents are case-insensitive, those of orgs are not. */
struct ledger_budget_key ledger_budget_key(enum budget_kind kind,
                                           struct str name,
                                           enum budget_period period)
{
    char lower[BUDGET_NAME_MAX];
    struct str of =
        kind == BUDGET_ORG ? name : str_lowered(name, lower, sizeof(lower));
    struct ledger_budget_key k;
    int n = snprintf(k.text, sizeof(k.text), "%s:%.*s:%s", kind_names[kind].p,
                     STR_ARG(of), period_names[period].p);

    assert(n > 0 && n < (int)sizeof(k.text));
    return k;
}

static struct ledger_budget_key budget_key_of(const struct ledger_budget *b)
{
    return ledger_budget_key(b->kind, str_of(b->name), b->period);
}

/* The first index whose key is not below `key`. */
static size_t budget_index(const struct ledger *l, const char *key)
{
    size_t from = 0, to = l->n_budgets;

    while (from < to) {
        size_t mid = (from + to) / 2;
        struct ledger_budget_key k = budget_key_of(&l->budgets[mid]);

        if (strcmp(k.text, key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static struct ledger_budget *budget_with_key(const struct ledger *l,
                                             const char *key)
{
    size_t i = budget_index(l, key);
    struct ledger_budget_key k;

    if (i == l->n_budgets)
        return NULL;
    k = budget_key_of(&l->budgets[i]);
    return strcmp(k.text, key) == 0 ? &l->budgets[i] : NULL;
}

const struct ledger_budget *ledger_budget_find(const struct ledger *l,
                                               enum budget_kind kind,
                                               struct str name,
                                               enum budget_period period)
{
    struct ledger_budget_key k;

    if (!l->n_budgets || name.n > BUDGET_NAME_MAX)
        return NULL;
    k = ledger_budget_key(kind, name, period);
    return budget_with_key(l, k.text);
}

size_t ledger_budgets_behind(const struct ledger *l, struct str key)
{
    char text[BUDGET_KEY_MAX];
    size_t i;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(key));
    i = budget_index(l, text);
    return i + (budget_with_key(l, text) != NULL);
}

const struct ledger_budget *ledger_budget_at(const struct ledger *l, size_t i)
{
    return &l->budgets[i];
}

size_t ledger_n_budgets(const struct ledger *l)
{
    return l->n_budgets;
}

/* Reserve a slot before the commit, so that a committed budget always fits. */
static enum err budgets_grow(struct ledger *l)
{
    size_t cap = l->cap_budgets ? 2 * l->cap_budgets : 16;
    struct ledger_budget *more;

    if (l->n_budgets + l->n_new_budgets < l->cap_budgets)
        return OK;
    more = FAULT("ledger.budgets")
               ? NULL
               : realloc(l->budgets, cap * sizeof(*l->budgets));
    if (!more)
        return ERR_NOMEM;
    l->budgets = more;
    l->cap_budgets = cap;
    return OK;
}

static void budgets_keep(struct ledger *l, const struct ledger_budget *b)
{
    struct ledger_budget_key k = budget_key_of(b);
    struct ledger_budget *there = budget_with_key(l, k.text);
    size_t i = budget_index(l, k.text);

    if (there) {
        *there = *b;
        return;
    }
    assert(l->n_budgets < l->cap_budgets);
    memmove(&l->budgets[i + 1], &l->budgets[i],
            (l->n_budgets - i) * sizeof(*l->budgets));
    l->budgets[i] = *b;
    l->n_budgets++;
}

static enum err budget_check(const struct ledger_budget *b, struct why *why)
{
    if (!b->name[0])
        return why_err(why, ERR_BAD_REQUEST,
                       "name the user, org or agent of the budget");
    if (b->limit < 0 || b->limit > LEDGER_AMOUNT_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "a limit is a whole number of micro-units from 0 to "
                       "%lld",
                       (long long)LEDGER_AMOUNT_MAX);
    return OK;
}

/* A user's own budget is at most an admin's. */
static enum err budget_check_self(const struct ledger *l,
                                  const struct ledger_budget *b,
                                  struct why *why)
{
    const struct ledger_budget *most =
        b->kind == BUDGET_SELF
            ? ledger_budget_find(l, BUDGET_USER, str_of(b->name), b->period)
            : NULL;

    if (!most || b->limit <= most->limit)
        return OK;
    return why_err(why, ERR_NOT_ALLOWED,
                   "an admin has set %s for a %s, and one's own budget is at "
                   "most that",
                   amount_write(most->limit).text, period_names[b->period].p);
}

enum err ledger_budget_put(struct ledger *l, const struct ledger_budget *b,
                           struct tx *tx, struct why *why)
{
    struct ledger_budget_key k;
    enum err e = budget_check(b, why);
    struct tx_op *op;

    if (!e)
        e = budget_check_self(l, b, why);
    if (e)
        return e;
    k = budget_key_of(b);
    if (!budget_with_key(l, k.text) &&
        l->n_budgets + l->n_new_budgets >= BUDGETS_MAX)
        return why_err(why, ERR_LIMIT,
                       "there are %d budgets, and no more are allowed: "
                       "remove some (signalbox budgets remove)",
                       BUDGETS_MAX);
    e = budgets_grow(l);
    if (e)
        return e;
    l->n_new_budgets++;
    op = tx_put(tx, &budget_table);
    tx_set(op, BUDGET_KEY, value_text(str_of(k.text)));
    record_to_tx(op, b, 1);
    tx_set(op, BUDGET_NAME, value_text(str_of(b->name)));
    tx_set(op, BUDGET_BY, value_text(str_of(b->by)));
    tx_set(op, BUDGET_WARNED, value_null());
    return OK;
}

void ledger_budget_settle(struct ledger *l, const struct ledger_budget *b,
                          bool is_committed)
{
    assert(l->n_new_budgets > 0);
    l->n_new_budgets--;
    if (is_committed)
        budgets_keep(l, b);
}

void ledger_budget_drop(const struct ledger_budget *b, struct tx *tx)
{
    struct ledger_budget_key k = budget_key_of(b);
    struct tx_op *op = tx_delete(tx, &budget_table);

    tx_if(op, BUDGET_KEY, IS, value_text(str_of(k.text)));
}

void ledger_budget_forget(struct ledger *l, const struct ledger_budget *b)
{
    struct ledger_budget_key k = budget_key_of(b);
    struct ledger_budget *there = budget_with_key(l, k.text);
    size_t i;

    if (!there)
        return;
    i = (size_t)(there - l->budgets);
    memmove(there, there + 1, (l->n_budgets - i - 1) * sizeof(*l->budgets));
    l->n_budgets--;
}

/* Start. */

void ledger_budgets_query(struct query *q, struct str after, size_t limit)
{
    query_init(q, &budget_table, limit);
    if (after.n)
        query_if(q, BUDGET_KEY, IS_MORE, value_text(after));
    query_order(q, BUDGET_KEY, false);
}

enum err ledger_budgets_take(struct ledger *l, const struct query *q)
{
    QUERY_EACH(r, q)
    {
        struct ledger_budget b = {.limit = 0};

        record_from_row(&b, &budget_table, r);
        ledger_copy(b.name, sizeof(b.name), row_str(r, BUDGET_NAME));
        ledger_copy(b.by, sizeof(b.by), row_str(r, BUDGET_BY));
        ledger_copy(b.warned, sizeof(b.warned), row_str(r, BUDGET_WARNED));
        if (budgets_grow(l))
            return ERR_NOMEM;
        budgets_keep(l, &b);
    }
    return OK;
}

/* Warnings. */

bool budget_is_near(const struct ledger_budget *b, int64_t spent)
{
    return b->limit &&
           (__int128)spent * 100 >= (__int128)b->limit * NEAR_PERCENT;
}

bool budget_was_warned(const struct ledger_budget *b, int64_t at_ms)
{
    char label[RFC3339_BYTES];

    return str_eq(str_of(b->warned), period_label(b->period, at_ms, label));
}

size_t ledger_budgets_of(const struct ledger *l, struct str user,
                         struct str org, struct str agent,
                         struct ledger_budget out[BUDGETS_OF_MAX])
{
    struct ledger_use u = {.user = user, .org = org, .agent = agent};
    struct slot slots[N_SLOTS];
    size_t n = 0;

    period_slots(&u, slots);
    for (size_t i = 0; l->n_budgets && i < N_SLOTS; i++) {
        const struct slot *s = &slots[i];
        const struct ledger_budget *b =
            s->name.n ? ledger_budget_find(l, s->kind, s->name, s->period)
                      : NULL;
        const struct ledger_budget *own =
            s->kind == BUDGET_USER && s->name.n
                ? ledger_budget_find(l, BUDGET_SELF, s->name, s->period)
                : NULL;

        if (b)
            out[n++] = *b;
        if (own)
            out[n++] = *own;
    }
    return n;
}

void ledger_budget_warn(struct ledger_budget *b, int64_t at_ms, struct tx *tx)
{
    struct ledger_budget_key k = budget_key_of(b);
    struct tx_op *op = tx_update(tx, &budget_table);
    char label[RFC3339_BYTES];
    struct str l = period_label(b->period, at_ms, label);

    ledger_copy(b->warned, sizeof(b->warned), l);
    tx_if(op, BUDGET_KEY, IS, value_text(str_of(k.text)));
    tx_if(op, BUDGET_LIMIT, IS, value_int(b->limit));
    tx_if(op, BUDGET_WARNED, IS_NOT, value_text(l));
    tx_set(op, BUDGET_WARNED, value_text(l));
}

void ledger_budget_was_warned(struct ledger *l, const struct ledger_budget *b)
{
    struct ledger_budget_key k = budget_key_of(b);
    struct ledger_budget *there = budget_with_key(l, k.text);

    if (there && there->limit == b->limit)
        ledger_copy(there->warned, sizeof(there->warned), str_of(b->warned));
}
