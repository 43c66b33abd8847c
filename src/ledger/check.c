/* The books, read whole.
 *
 *     the last entry's number, A
 *     accounts, reservations, what budgets count, tasks, earlier turns
 *     the last entry's number again, B
 *     entries from the first to B
 *
 * Rows are kept by what they are about, and the entries stream past: so memory
 * goes with the accounts and with the turns that retention has left, and not
 * with the entries, which stay for ever. A turn that only the entries know is
 * kept while it is reserved.
 *
 * Nothing stands still meanwhile. A row was read at some moment between A and
 * B; so what it says must be what the entries come to at one of the moments
 * from A to B. Where nothing moves that is one moment, and exact. The entries
 * of one posting come in one tx, and so one after the other, and never half
 * before B. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "ledger/internal.h"

enum { PAGE = 1000, TURNS_MAX = 64 * 1024 * 1024 };

enum step {
    FIRST_SEQ,
    ACCOUNTS,
    RESERVATIONS,
    SPENT,
    TASKS,
    EARLIER_TURNS,
    LAST_SEQ,
    ENTRIES,
    OVER,
};

struct account {
    char name[LEDGER_ACCOUNT_MAX];
    int64_t balance;
    bool is_there; /* as a row */
    bool is_right; /* the balance was the sum at one of the moments */
    bool was_below;
    __int128 sum;
};

/* What a turn can have been at the moments from A to B: bits of these. */
enum { NOT_RESERVED = 0 }; /* and enum reservation_state */

struct turn {
    char of[LEDGER_OF_MAX];
    int64_t price;      /* as it was reserved, by the entries */
    bool is_refunded;   /* likewise */
    int state;          /* by the entries so far */
    unsigned seen;      /* states from A on */
    int64_t row_price;  /* of the reservation */
    int row_state;      /* likewise; zero: there is no row */
    int64_t task_price; /* of the task or turn */
    int task_state;     /* what its status asks for; zero: it is not there */
    bool is_kept;       /* there are rows */
};

/* A task whose earlier turns are to be read. */
struct later {
    struct list_node node;
    int64_t seq, after;
    char task_id[ID_BYTES];
};

struct posting {
    char id[LEDGER_POSTING_MAX + LEDGER_ID_MAX];
    char of[LEDGER_OF_MAX]; /* the turn; empty: none */
    enum entry_kind kind;
    __int128 sum, reserved, users;
};

struct ledger_check {
    struct ledger_turns turns;
    enum step step;
    int64_t from, until; /* A, B */
    int64_t cursor;
    char after[LEDGER_BUDGET_MAX];
    struct map accounts, by_turn;
    struct list later; /* struct later */
    struct posting posting;
    bool is_in_window;
    struct ledger_report report;
    struct why beyond; /* what the report has no room for */
    bool is_reported;
};

struct ledger_check *ledger_check_new(const struct ledger_turns *turns,
                                      const uint64_t seed[2])
{
    struct ledger_check *c =
        FAULT("ledger.check") ? NULL : calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->turns = *turns;
    map_init(&c->accounts, TURNS_MAX, seed);
    map_init(&c->by_turn, TURNS_MAX, seed);
    list_init(&c->later);
    return c;
}

static void free_values(struct map *m)
{
    const struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(m, &at)))
        free(s->value);
    map_fini(m);
}

void ledger_check_free(struct ledger_check *c)
{
    struct list_node *n;

    if (!c)
        return;
    free_values(&c->accounts);
    free_values(&c->by_turn);
    while ((n = list_pop(&c->later)))
        free(LIST_OF(n, struct later, node));
    free(c);
}

/* A place for one more problem, if there is one. */
static struct why *problem(struct ledger_check *c)
{
    int64_t n = c->report.n_problems++;

    return n < LEDGER_PROBLEMS ? &c->report.problems[n] : &c->beyond;
}

static void give_up(struct ledger_check *c, enum err e)
{
    if (!c->report.err)
        c->report.err = e;
    c->step = OVER;
}

static void copy(char *to, size_t size, struct str s)
{
    snprintf(to, size, "%.*s", STR_ARG(s));
}

static struct account *account_at(struct ledger_check *c, struct str name)
{
    struct account *a = map_get(&c->accounts, name);

    if (a)
        return a;
    a = FAULT("ledger.check.account") ? NULL : calloc(1, sizeof(*a));
    if (a)
        copy(a->name, sizeof(a->name), name);
    if (!a || map_put(&c->accounts, str_of(a->name), a)) {
        free(a);
        give_up(c, ERR_NOMEM);
        return NULL;
    }
    return a;
}

static struct turn *turn_at(struct ledger_check *c, struct str of)
{
    struct turn *t = map_get(&c->by_turn, of);

    if (t)
        return t;
    t = FAULT("ledger.check.turn") ? NULL : calloc(1, sizeof(*t));
    if (t) {
        copy(t->of, sizeof(t->of), of);
        t->seen = 1u << NOT_RESERVED;
    }
    if (!t || map_put(&c->by_turn, str_of(t->of), t)) {
        free(t);
        give_up(c, ERR_NOMEM);
        return NULL;
    }
    return t;
}

/* Rows. */

static void take_account(struct ledger_check *c, const struct row *r)
{
    struct account *a = account_at(c, row_str(r, ACCOUNT_NAME));

    if (!a)
        return;
    a->balance = row_int(r, ACCOUNT_BALANCE);
    a->is_there = true;
    c->report.n_accounts++;
}

static void take_reservation(struct ledger_check *c, const struct row *r)
{
    struct turn *t = turn_at(c, row_str(r, RESERVATION_OF));

    if (!t)
        return;
    t->row_state = (int)row_int(r, RESERVATION_STATE);
    t->row_price = row_int(r, RESERVATION_PRICE);
    t->is_kept = true;
}

/* What was given back was counted before. */
static void take_spent(struct ledger_check *c, const struct row *r)
{
    if (row_int(r, SPENT_AMOUNT) < 0)
        why_err(problem(c), OK, "the budget %.*s counts %lld, below zero",
                STR_ARG(str_head(row_str(r, SPENT_OF), 128)),
                (long long)row_int(r, SPENT_AMOUNT));
}

static void take_status(struct ledger_check *c, struct str task_id,
                        int64_t number, enum task_status status, int64_t price)
{
    struct ledger_of of;
    struct turn *t;

    if (!price || task_id.n >= ID_BYTES)
        return;
    of = ledger_of(task_id, number);
    t = turn_at(c, str_of(of.text));
    if (!t)
        return;
    t->task_price = price;
    t->task_state = status == TASK_COMPLETED ? RESERVATION_CAPTURED
                    : task_is_over(status)   ? RESERVATION_RELEASED
                                             : RESERVATION_RESERVED;
    t->is_kept = true;
    c->report.n_turns++;
}

static void take_task(struct ledger_check *c, const struct row *r)
{
    const struct ledger_turns *w = &c->turns;
    struct str id = row_str(r, w->task_id);
    struct later *l;

    take_status(c, id, row_int(r, w->task_turn),
                (enum task_status)row_int(r, w->task_status),
                row_int(r, w->task_price));
    if (row_int(r, w->task_turn) == 1)
        return;
    l = FAULT("ledger.check.later") ? NULL : calloc(1, sizeof(*l));
    if (!l) {
        give_up(c, ERR_NOMEM);
        return;
    }
    l->seq = row_int(r, w->task_seq);
    l->after = INT64_MIN;
    copy(l->task_id, sizeof(l->task_id), id);
    list_append(&c->later, &l->node);
}

static void take_earlier(struct ledger_check *c, const struct row *r)
{
    const struct ledger_turns *w = &c->turns;
    struct later *l = LIST_OF(list_first(&c->later), struct later, node);

    take_status(c, str_of(l->task_id), row_int(r, w->turn_number),
                (enum task_status)row_int(r, w->turn_status),
                row_int(r, w->turn_price));
    l->after = row_int(r, w->turn_number);
}

/* Entries. */

static bool is_creators(const struct account *a)
{
    return str_starts(str_of(a->name), STR("creator:"));
}

/* What a creator owes after a refund, their next earnings fill: so those two
 * may leave it below zero, and nothing else may. */
static bool may_be_below(const struct account *a, enum entry_kind by)
{
    return strcmp(a->name, "outside") == 0 ||
           (is_creators(a) && (by == ENTRY_REFUND || by == ENTRY_CAPTURE));
}

static void drop(struct ledger_check *c, struct turn *t)
{
    map_take(&c->by_turn, str_of(t->of));
    free(t);
}

static int state_of(enum entry_kind k)
{
    switch (k) {
    case ENTRY_RESERVE: return RESERVATION_RESERVED;
    case ENTRY_CAPTURE: return RESERVATION_CAPTURED;
    case ENTRY_RELEASE: return RESERVATION_RELEASED;
    case ENTRY_TOPUP:
    case ENTRY_REFUND:
    case ENTRY_PAYOUT: break;
    }
    return 0;
}

/* What a whole posting did to its turn. */
static void move_turn(struct ledger_check *c, const struct posting *p)
{
    struct turn *t = turn_at(c, str_of(p->of));
    int to = state_of(p->kind);
    __int128 users = 0, reserved;

    if (!t)
        return;
    if (to == RESERVATION_RESERVED)
        t->price = (int64_t)p->reserved;
    reserved = to == RESERVATION_RESERVED ? t->price : -(__int128)t->price;
    if (to != RESERVATION_CAPTURED)
        users = -reserved;
    if (t->state !=
        (to == RESERVATION_RESERVED ? NOT_RESERVED : RESERVATION_RESERVED))
        why_err(problem(c), OK, "%s: a turn that was %s already", p->id,
                t->state == NOT_RESERVED           ? "not reserved"
                : t->state == RESERVATION_RESERVED ? "reserved"
                : t->state == RESERVATION_CAPTURED ? "captured"
                                                   : "released");
    else if (p->reserved != reserved || p->users != users || t->price <= 0)
        why_err(problem(c), OK, "%s: it does not move the price, %lld", p->id,
                (long long)t->price);
    t->state = to;
    t->seen = (c->is_in_window ? t->seen : 0) | 1u << to;
    if (!t->is_kept && to != RESERVATION_RESERVED && !c->is_in_window)
        drop(c, t);
}

/* Of a charge, once, and no more than it was. A turn that only the entries know
 * is forgotten by now; the id of the posting is what makes that one once. */
static void judge_refund(struct ledger_check *c, const struct posting *p)
{
    struct turn *t = map_get(&c->by_turn, str_of(p->of));

    if (!t)
        return;
    if (t->state != RESERVATION_CAPTURED)
        why_err(problem(c), OK, "%s: a refund of what was not paid", p->id);
    else if (t->is_refunded)
        why_err(problem(c), OK, "%s: a second refund of the same charge",
                p->id);
    else if (p->users <= 0 || p->users > t->price)
        why_err(problem(c), OK, "%s: it gives back %lld of a charge of %lld",
                p->id, (long long)p->users, (long long)t->price);
    t->is_refunded = true;
}

static void end_posting(struct ledger_check *c)
{
    struct posting *p = &c->posting;

    if (!p->id[0])
        return;
    c->report.n_postings++;
    if (p->sum != 0)
        why_err(problem(c), OK, "%s: its entries come to %lld, not to zero",
                p->id, (long long)p->sum);
    if (p->of[0] && state_of(p->kind))
        move_turn(c, p);
    else if (p->of[0] && p->kind == ENTRY_REFUND)
        judge_refund(c, p);
    p->id[0] = '\0';
}

static void begin_posting(struct ledger_check *c, const struct ledger_entry *e)
{
    struct posting *p = &c->posting;

    *p = (struct posting){.kind = e->kind};
    copy(p->id, sizeof(p->id), e->posting);
    if (e->task_id.n && e->task_id.n < ID_BYTES) {
        struct ledger_of of = ledger_of(e->task_id, e->turn);

        copy(p->of, sizeof(p->of), str_of(of.text));
    }
}

/* From here on what rows say may be true. */
static void enter_window(struct ledger_check *c)
{
    const struct map_slot *s;
    size_t at = 0;

    end_posting(c);
    while ((s = map_next(&c->accounts, &at))) {
        struct account *a = s->value;

        a->is_right = a->sum == a->balance;
    }
    c->is_in_window = true;
}

static void take_entry(struct ledger_check *c, const struct row *r)
{
    struct ledger_entry e;
    struct account *a;

    ledger_entry_from(&e, r);
    c->cursor = e.seq;
    if (e.seq > c->from && !c->is_in_window)
        enter_window(c);
    if (!str_eq(e.posting, str_of(c->posting.id)))
        end_posting(c);
    if (!c->posting.id[0])
        begin_posting(c, &e);
    a = account_at(c, e.account);
    if (!a)
        return;
    c->report.n_entries++;
    a->sum += e.amount;
    a->is_right |= c->is_in_window && a->sum == a->balance;
    c->posting.sum += e.amount;
    if (str_eq(e.account, STR("reserved")))
        c->posting.reserved += e.amount;
    else if (str_starts(e.account, STR("user:")))
        c->posting.users += e.amount;
    if (a->sum < 0 && !may_be_below(a, e.kind) && !a->was_below) {
        a->was_below = true;
        why_err(problem(c), OK, "%s is below zero after entry %lld (%lld)",
                a->name, (long long)e.seq, (long long)a->sum);
    }
}

/* Page by page. */

static void ask_accounts(struct ledger_check *c, struct query *q)
{
    ledger_balances_query(q, str_of(c->after), PAGE);
}

static void ask_reservations(struct ledger_check *c, struct query *q)
{
    query_init(q, &reservation_table, PAGE);
    query_if(q, RESERVATION_OF, IS_MORE, value_text(str_of(c->after)));
    query_order(q, RESERVATION_OF, false);
}

static void ask_spent(struct ledger_check *c, struct query *q)
{
    query_init(q, &spent_table, PAGE);
    query_if(q, SPENT_OF, IS_MORE, value_text(str_of(c->after)));
    query_order(q, SPENT_OF, false);
}

static void ask_tasks(struct ledger_check *c, struct query *q)
{
    query_init(q, c->turns.task, PAGE);
    query_if(q, c->turns.task_seq, IS_MORE, value_int(c->cursor));
    query_order(q, c->turns.task_seq, false);
}

static void ask_earlier(struct ledger_check *c, struct query *q)
{
    const struct later *l = LIST_OF(list_first(&c->later), struct later, node);

    query_init(q, c->turns.turn, PAGE);
    query_if(q, c->turns.turn_task_seq, IS, value_int(l->seq));
    query_if(q, c->turns.turn_number, IS_MORE, value_int(l->after));
    query_order(q, c->turns.turn_number, false);
}

static void ask_last(struct query *q)
{
    query_init(q, &entry_table, 1);
    query_order(q, ENTRY_SEQ, true);
}

static void ask_entries(struct ledger_check *c, struct query *q)
{
    query_init(q, &entry_table, PAGE);
    query_if(q, ENTRY_SEQ, IS_MORE, value_int(c->cursor));
    query_if(q, ENTRY_SEQ, IS_AT_MOST, value_int(c->until));
    query_order(q, ENTRY_SEQ, false);
}

bool ledger_check_next(struct ledger_check *c, struct query *q)
{
    if (c->step == EARLIER_TURNS && list_is_empty(&c->later))
        c->step = LAST_SEQ;
    switch (c->step) {
    case ACCOUNTS: ask_accounts(c, q); break;
    case RESERVATIONS: ask_reservations(c, q); break;
    case SPENT: ask_spent(c, q); break;
    case TASKS: ask_tasks(c, q); break;
    case EARLIER_TURNS: ask_earlier(c, q); break;
    case FIRST_SEQ:
    case LAST_SEQ: ask_last(q); break;
    case ENTRIES: ask_entries(c, q); break;
    case OVER: return false;
    }
    return true;
}

static void take_row(struct ledger_check *c, const struct row *r)
{
    switch (c->step) {
    case FIRST_SEQ: c->from = row_int(r, ENTRY_SEQ); break;
    case LAST_SEQ: c->until = row_int(r, ENTRY_SEQ); break;
    case ACCOUNTS:
        take_account(c, r);
        copy(c->after, sizeof(c->after), row_str(r, ACCOUNT_NAME));
        break;
    case RESERVATIONS:
        take_reservation(c, r);
        copy(c->after, sizeof(c->after), row_str(r, RESERVATION_OF));
        break;
    case SPENT:
        take_spent(c, r);
        copy(c->after, sizeof(c->after), row_str(r, SPENT_OF));
        break;
    case TASKS:
        c->cursor = row_int(r, c->turns.task_seq);
        take_task(c, r);
        break;
    case EARLIER_TURNS: take_earlier(c, r); break;
    case ENTRIES: take_entry(c, r); break;
    case OVER: break;
    }
}

void ledger_check_take(struct ledger_check *c, const struct query *q)
{
    if (q->err) {
        give_up(c, q->err);
        return;
    }
    QUERY_EACH(r, q)
    {
        take_row(c, r);
    }
    if (c->step == FIRST_SEQ || c->step == LAST_SEQ || !q->has_more) {
        if (c->step == EARLIER_TURNS)
            free(LIST_OF(list_pop(&c->later), struct later, node));
        else if (c->step < OVER)
            c->step++;
        c->after[0] = '\0';
        if (c->step != EARLIER_TURNS)
            c->cursor = 0;
    }
}

/* What it comes to. */

static void judge_account(struct ledger_check *c, const struct account *a)
{
    if (!a->is_right)
        why_err(problem(c), OK, "%s has %lld%s, and its entries come to %lld",
                a->name, (long long)a->balance,
                a->is_there ? "" : " (there is no row)", (long long)a->sum);
    if (a->balance < 0 && !may_be_below(a, ENTRY_REFUND) && !a->was_below)
        why_err(problem(c), OK, "%s is below zero (%lld)", a->name,
                (long long)a->balance);
    if (is_creators(a) && a->sum < 0)
        c->report.owed -= (int64_t)a->sum;
}

static bool was(const struct turn *t, int state)
{
    return t->seen & 1u << state;
}

static void judge_row(struct ledger_check *c, const struct turn *t)
{
    bool is_closed = was(t, RESERVATION_CAPTURED) ||
                     was(t, RESERVATION_RELEASED) || was(t, NOT_RESERVED);

    if (!t->row_state && !is_closed)
        why_err(problem(c), OK, "%s is reserved, and there is no reservation",
                t->of);
    else if (t->row_state && !was(t, t->row_state))
        why_err(problem(c), OK,
                "the reservation of %s is in state %d, by the entries %d",
                t->of, t->row_state, t->state);
    else if (t->row_state && t->price != t->row_price)
        why_err(problem(c), OK,
                "the reservation of %s is of %lld, by the entries %lld", t->of,
                (long long)t->row_price, (long long)t->price);
}

static void judge_task(struct ledger_check *c, const struct turn *t)
{
    static const char *const words[] = {"not charged", "reserved", "captured",
                                        "released"};

    if (!t->task_state && t->seen == 1u << RESERVATION_RESERVED)
        why_err(problem(c), OK, "%s is reserved, and there is no such task",
                t->of);
    else if (t->task_state && !was(t, t->task_state))
        why_err(problem(c), OK, "the turn %s must be %s, and it is %s", t->of,
                words[t->task_state], words[t->state]);
    else if (t->task_state && t->price != t->task_price)
        why_err(problem(c), OK, "the turn %s costs %lld, by the entries %lld",
                t->of, (long long)t->task_price, (long long)t->price);
}

static void judge_turns(struct ledger_check *c)
{
    struct account *reserved = map_get(&c->accounts, STR("reserved"));
    __int128 open = 0;
    const struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(&c->by_turn, &at))) {
        struct turn *t = s->value;

        if (t->state == RESERVATION_RESERVED) {
            open += t->price;
            c->report.n_reserved++;
        }
        judge_row(c, t);
        judge_task(c, t);
    }
    c->report.reserved = (int64_t)open;
    if (open != (reserved ? reserved->sum : 0))
        why_err(problem(c), OK, "%lld are reserved, and the turns come to %lld",
                (long long)(reserved ? reserved->sum : 0), (long long)open);
}

const struct ledger_report *ledger_check_report(struct ledger_check *c)
{
    const struct map_slot *s;
    __int128 sum = 0;
    size_t at = 0;

    if (c->report.err || c->is_reported)
        return &c->report;
    c->is_reported = true;
    if (!c->is_in_window)
        enter_window(c);
    end_posting(c);
    while ((s = map_next(&c->accounts, &at))) {
        judge_account(c, s->value);
        sum += ((struct account *)s->value)->sum;
    }
    if (sum != 0)
        why_err(problem(c), OK, "all entries come to %lld, not to zero",
                (long long)sum);
    judge_turns(c);
    return &c->report;
}
