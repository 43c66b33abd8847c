/* The audit of the books.
 *
 *     the last entry's number, A
 *     accounts, reservations, budget counts, tasks, earlier turns
 *     the last entry's number again, B
 *     entries from the first to B
 *
 * Rows are kept by account and turn, and entries are only streamed past, so
 * memory grows with the accounts and with the turns that retention has left,
 * but not with the entries, which stay for ever. A turn without rows is kept
 * only while it is reserved.
 *
 * The server may run meanwhile. A row was read at some moment between A and B,
 * so its value must be the sum of the entries at one of the moments from A to
 * B. If nothing changes, there is one such moment, and the check is exact. The
 * entries of one posting are written in one tx, so they are adjacent and never
 * cut by B. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
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
    bool is_there; /* has a row */
    bool is_right; /* the balance was the sum at one of the moments */
    bool was_below;
    __int128 sum;
};

/* The states that a turn had at the moments from A to B are a set of bits. */
enum { NOT_RESERVED = 0 }; /* and enum reservation_state */

struct turn {
    char key[LEDGER_TURN_KEY_MAX];
    int64_t price;      /* as reserved, by the entries */
    bool is_refunded;   /* by the entries */
    int state;          /* after the entries so far */
    unsigned seen;      /* states since A */
    int64_t row_price;  /* of the reservation */
    int row_state;      /* of the reservation; zero: no row */
    int64_t task_price; /* of the task or turn */
    int task_state;     /* that its status requires; zero: no task */
    bool is_kept;       /* has rows */
};

/* A task whose earlier turns must be read. */
struct earlier_turns {
    struct list_node node;
    int64_t seq, after;
    char task_id[ID_BYTES];
};

struct open_posting {
    char id[LEDGER_POSTING_MAX + LEDGER_ID_MAX];
    char turn[LEDGER_TURN_KEY_MAX]; /* empty: none */
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
    struct list earlier; /* struct earlier_turns */
    struct open_posting posting;
    bool is_in_window;
    struct ledger_report report;
    struct why beyond; /* problems that exceed the report */
    bool is_reported;
};

struct ledger_check *ledger_check_new(const struct ledger_turns *turns,
                                      const uint64_t seed[2])
{
    struct ledger_check *c = mem_new(sizeof(*c));

    c->turns = *turns;
    map_init(&c->accounts, TURNS_MAX, seed);
    map_init(&c->by_turn, TURNS_MAX, seed);
    list_init(&c->earlier);
    return c;
}

static void check_free_values(struct map *m)
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
    check_free_values(&c->accounts);
    check_free_values(&c->by_turn);
    while ((n = list_pop(&c->earlier)))
        free(LIST_OF(n, struct earlier_turns, node));
    free(c);
}

/* A slot for one more problem, which may be beyond the report. */
static struct why *check_problem(struct ledger_check *c)
{
    int64_t n = c->report.n_problems++;

    return n < LEDGER_PROBLEMS ? &c->report.problems[n] : &c->beyond;
}

static void check_stop(struct ledger_check *c, enum err e)
{
    if (!c->report.err)
        c->report.err = e;
    c->step = OVER;
}

/* Rows grow with the data: if memory runs out, the audit ends and the server
 * goes on. */
static void *check_row_new(struct ledger_check *c, size_t bytes)
{
    void *p = FAULT("ledger.check.row") ? NULL : calloc(1, bytes);

    if (!p)
        check_stop(c, ERR_NOMEM);
    return p;
}

static struct account *check_account(struct ledger_check *c, struct str name)
{
    struct account *a = map_get(&c->accounts, name);

    if (a)
        return a;
    a = check_row_new(c, sizeof(*a));
    if (!a)
        return NULL;
    ledger_copy(a->name, sizeof(a->name), name);
    if (map_put(&c->accounts, str_of(a->name), a) == OK)
        return a;
    free(a);
    check_stop(c, ERR_NOMEM);
    return NULL;
}

static struct turn *check_turn(struct ledger_check *c, struct str key)
{
    struct turn *t = map_get(&c->by_turn, key);

    if (t)
        return t;
    t = check_row_new(c, sizeof(*t));
    if (!t)
        return NULL;
    ledger_copy(t->key, sizeof(t->key), key);
    t->seen = 1u << NOT_RESERVED;
    if (map_put(&c->by_turn, str_of(t->key), t) == OK)
        return t;
    free(t);
    check_stop(c, ERR_NOMEM);
    return NULL;
}

/* Rows. */

static void check_take_status(struct ledger_check *c, struct str task_id,
                              int64_t number, enum task_status status,
                              int64_t price)
{
    struct ledger_turn_key key;
    struct turn *t;

    if (!price || task_id.n >= ID_BYTES)
        return;
    key = ledger_turn_key(task_id, number);
    t = check_turn(c, str_of(key.text));
    if (!t)
        return;
    t->task_price = price;
    t->task_state = status == TASK_COMPLETED ? RESERVATION_CAPTURED
                    : task_is_over(status)   ? RESERVATION_RELEASED
                                             : RESERVATION_RESERVED;
    t->is_kept = true;
    c->report.n_turns++;
}

static void check_take_task(struct ledger_check *c, const struct row *r)
{
    const struct ledger_turns *w = &c->turns;
    struct str id = row_str(r, w->task_id);
    struct earlier_turns *l;

    check_take_status(c, id, row_int(r, w->task_turn),
                      (enum task_status)row_int(r, w->task_status),
                      row_int(r, w->task_price));
    if (row_int(r, w->task_turn) == 1)
        return;
    l = check_row_new(c, sizeof(*l));
    if (!l)
        return;
    l->seq = row_int(r, w->task_seq);
    l->after = INT64_MIN;
    ledger_copy(l->task_id, sizeof(l->task_id), id);
    list_append(&c->earlier, &l->node);
}

static void check_take_earlier(struct ledger_check *c, const struct row *r)
{
    const struct ledger_turns *w = &c->turns;
    struct earlier_turns *l =
        LIST_OF(list_first(&c->earlier), struct earlier_turns, node);

    check_take_status(c, str_of(l->task_id), row_int(r, w->turn_number),
                      (enum task_status)row_int(r, w->turn_status),
                      row_int(r, w->turn_price));
    l->after = row_int(r, w->turn_number);
}

/* Entries. */

static bool is_creator_account(const struct account *a)
{
    return str_starts(str_of(a->name), STR("creator:"));
}

/* A refund may take a creator below zero, and the next earnings may not suffice
 * to fill the debt. No other entry may leave the account below zero. */
static bool may_be_below(const struct account *a, enum entry_kind by)
{
    return strcmp(a->name, "outside") == 0 ||
           (is_creator_account(a) &&
            (by == ENTRY_REFUND || by == ENTRY_CAPTURE));
}

static int entry_kind_state(enum entry_kind k)
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

/* Apply a whole posting to its turn. */
static void check_move_turn(struct ledger_check *c,
                            const struct open_posting *p)
{
    struct turn *t = check_turn(c, str_of(p->turn));
    int to = entry_kind_state(p->kind);
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
        why_err(check_problem(c), OK, "%s: a turn that was %s already", p->id,
                t->state == NOT_RESERVED           ? "not reserved"
                : t->state == RESERVATION_RESERVED ? "reserved"
                : t->state == RESERVATION_CAPTURED ? "captured"
                                                   : "released");
    else if (p->reserved != reserved || p->users != users || t->price <= 0)
        why_err(check_problem(c), OK, "%s: it does not move the price, %lld",
                p->id, (long long)t->price);
    t->state = to;
    t->seen = (c->is_in_window ? t->seen : 0) | 1u << to;
    if (!t->is_kept && to != RESERVATION_RESERVED && !c->is_in_window) {
        map_take(&c->by_turn, str_of(t->key));
        free(t);
    }
}

/* A refund is of a charge, happens once, and is at most the charge. The audit
 * has forgotten a turn without rows; the unique id of the posting then ensures
 * that there is only one. */
static void check_judge_refund(struct ledger_check *c,
                               const struct open_posting *p)
{
    struct turn *t = map_get(&c->by_turn, str_of(p->turn));

    if (!t)
        return;
    if (t->state != RESERVATION_CAPTURED)
        why_err(check_problem(c), OK, "%s: a refund of what was not paid",
                p->id);
    else if (t->is_refunded)
        why_err(check_problem(c), OK, "%s: a second refund of the same charge",
                p->id);
    else if (p->users <= 0 || p->users > t->price)
        why_err(check_problem(c), OK,
                "%s: it gives back %lld of a charge of %lld", p->id,
                (long long)p->users, (long long)t->price);
    t->is_refunded = true;
}

static void check_end_posting(struct ledger_check *c)
{
    struct open_posting *p = &c->posting;

    if (!p->id[0])
        return;
    c->report.n_postings++;
    if (p->sum != 0)
        why_err(check_problem(c), OK,
                "%s: its entries come to %lld, not to zero", p->id,
                (long long)p->sum);
    if (p->turn[0] && entry_kind_state(p->kind))
        check_move_turn(c, p);
    else if (p->turn[0] && p->kind == ENTRY_REFUND)
        check_judge_refund(c, p);
    p->id[0] = '\0';
}

/* The entries have reached A: rows were read at this moment or later. */
static void check_enter_window(struct ledger_check *c)
{
    const struct map_slot *s;
    size_t at = 0;

    check_end_posting(c);
    while ((s = map_next(&c->accounts, &at))) {
        struct account *a = s->value;

        a->is_right = a->sum == a->balance;
    }
    c->is_in_window = true;
}

static void check_take_entry(struct ledger_check *c, const struct row *r)
{
    struct open_posting *p = &c->posting;
    struct ledger_entry e;
    struct account *a;

    ledger_entry_from(&e, r);
    c->cursor = e.seq;
    if (e.seq > c->from && !c->is_in_window)
        check_enter_window(c);
    if (!str_eq(e.posting, str_of(p->id))) {
        check_end_posting(c);
        *p = (struct open_posting){.kind = e.kind};
        ledger_copy(p->id, sizeof(p->id), e.posting);
        if (e.task_id.n && e.task_id.n < ID_BYTES) {
            struct ledger_turn_key key = ledger_turn_key(e.task_id, e.turn);

            ledger_copy(p->turn, sizeof(p->turn), str_of(key.text));
        }
    }
    a = check_account(c, e.account);
    if (!a)
        return;
    c->report.n_entries++;
    a->sum += e.amount;
    a->is_right |= c->is_in_window && a->sum == a->balance;
    p->sum += e.amount;
    if (str_eq(e.account, STR("reserved")))
        p->reserved += e.amount;
    else if (str_starts(e.account, STR("user:")))
        p->users += e.amount;
    if (a->sum < 0 && !may_be_below(a, e.kind) && !a->was_below) {
        a->was_below = true;
        why_err(check_problem(c), OK,
                "%s is below zero after entry %lld (%lld)", a->name,
                (long long)e.seq, (long long)a->sum);
    }
}

/* Pages. */

bool ledger_check_next(struct ledger_check *c, struct query *q)
{
    const struct ledger_turns *w = &c->turns;
    const struct earlier_turns *l;

    if (c->step == EARLIER_TURNS && list_is_empty(&c->earlier))
        c->step = LAST_SEQ;
    switch (c->step) {
    case ACCOUNTS: ledger_balances_query(q, str_of(c->after), PAGE); break;
    case RESERVATIONS:
        query_init(q, &reservation_table, PAGE);
        query_if(q, RESERVATION_OF, IS_MORE, value_text(str_of(c->after)));
        query_order(q, RESERVATION_OF, false);
        break;
    case SPENT:
        query_init(q, &spent_table, PAGE);
        query_if(q, SPENT_OF, IS_MORE, value_text(str_of(c->after)));
        query_order(q, SPENT_OF, false);
        break;
    case TASKS:
        query_init(q, w->task, PAGE);
        query_if(q, w->task_seq, IS_MORE, value_int(c->cursor));
        query_order(q, w->task_seq, false);
        break;
    case EARLIER_TURNS:
        l = LIST_OF(list_first(&c->earlier), struct earlier_turns, node);
        query_init(q, w->turn, PAGE);
        query_if(q, w->turn_task_seq, IS, value_int(l->seq));
        query_if(q, w->turn_number, IS_MORE, value_int(l->after));
        query_order(q, w->turn_number, false);
        break;
    case FIRST_SEQ:
    case LAST_SEQ:
        query_init(q, &entry_table, 1);
        query_order(q, ENTRY_SEQ, true);
        break;
    case ENTRIES:
        query_init(q, &entry_table, PAGE);
        query_if(q, ENTRY_SEQ, IS_MORE, value_int(c->cursor));
        query_if(q, ENTRY_SEQ, IS_AT_MOST, value_int(c->until));
        query_order(q, ENTRY_SEQ, false);
        break;
    case OVER: return false;
    }
    return true;
}

static void check_take_row(struct ledger_check *c, const struct row *r)
{
    struct account *a;
    struct turn *t;

    switch (c->step) {
    case FIRST_SEQ: c->from = row_int(r, ENTRY_SEQ); break;
    case LAST_SEQ: c->until = row_int(r, ENTRY_SEQ); break;
    case ACCOUNTS:
        a = check_account(c, row_str(r, ACCOUNT_NAME));
        if (!a)
            return;
        a->balance = row_int(r, ACCOUNT_BALANCE);
        a->is_there = true;
        c->report.n_accounts++;
        ledger_copy(c->after, sizeof(c->after), row_str(r, ACCOUNT_NAME));
        break;
    case RESERVATIONS:
        t = check_turn(c, row_str(r, RESERVATION_OF));
        if (!t)
            return;
        t->row_state = (int)row_int(r, RESERVATION_STATE);
        t->row_price = row_int(r, RESERVATION_PRICE);
        t->is_kept = true;
        ledger_copy(c->after, sizeof(c->after), row_str(r, RESERVATION_OF));
        break;
    case SPENT:
        /* Releases give back only counted amounts. */
        if (row_int(r, SPENT_AMOUNT) < 0)
            why_err(check_problem(c), OK,
                    "the budget %.*s counts %lld, below zero",
                    STR_ARG(str_head(row_str(r, SPENT_OF), 128)),
                    (long long)row_int(r, SPENT_AMOUNT));
        ledger_copy(c->after, sizeof(c->after), row_str(r, SPENT_OF));
        break;
    case TASKS:
        c->cursor = row_int(r, c->turns.task_seq);
        check_take_task(c, r);
        break;
    case EARLIER_TURNS: check_take_earlier(c, r); break;
    case ENTRIES: check_take_entry(c, r); break;
    case OVER: break;
    }
}

void ledger_check_take(struct ledger_check *c, const struct query *q)
{
    if (q->err) {
        check_stop(c, q->err);
        return;
    }
    QUERY_EACH(r, q)
    {
        check_take_row(c, r);
    }
    if (c->step == FIRST_SEQ || c->step == LAST_SEQ || !q->has_more) {
        if (c->step == EARLIER_TURNS)
            free(LIST_OF(list_pop(&c->earlier), struct earlier_turns, node));
        else if (c->step < OVER)
            c->step++;
        c->after[0] = '\0';
        if (c->step != EARLIER_TURNS)
            c->cursor = 0;
    }
}

/* The result. */

static void check_judge_account(struct ledger_check *c, const struct account *a)
{
    if (!a->is_right)
        why_err(check_problem(c), OK,
                "%s has %lld%s, and its entries come to %lld", a->name,
                (long long)a->balance, a->is_there ? "" : " (there is no row)",
                (long long)a->sum);
    if (a->balance < 0 && !may_be_below(a, ENTRY_REFUND) && !a->was_below)
        why_err(check_problem(c), OK, "%s is below zero (%lld)", a->name,
                (long long)a->balance);
    if (is_creator_account(a) && a->sum < 0)
        c->report.owed -= (int64_t)a->sum;
}

static bool turn_was(const struct turn *t, int state)
{
    return t->seen & 1u << state;
}

static void check_judge_row(struct ledger_check *c, const struct turn *t)
{
    bool is_closed = turn_was(t, RESERVATION_CAPTURED) ||
                     turn_was(t, RESERVATION_RELEASED) ||
                     turn_was(t, NOT_RESERVED);

    if (!t->row_state && !is_closed)
        why_err(check_problem(c), OK,
                "%s is reserved, and there is no reservation", t->key);
    else if (t->row_state && !turn_was(t, t->row_state))
        why_err(check_problem(c), OK,
                "the reservation of %s is in state %d, by the entries %d",
                t->key, t->row_state, t->state);
    else if (t->row_state && t->price != t->row_price)
        why_err(check_problem(c), OK,
                "the reservation of %s is of %lld, by the entries %lld", t->key,
                (long long)t->row_price, (long long)t->price);
}

static void check_judge_task(struct ledger_check *c, const struct turn *t)
{
    static const char *const words[] = {"not charged", "reserved", "captured",
                                        "released"};

    if (!t->task_state && t->seen == 1u << RESERVATION_RESERVED)
        why_err(check_problem(c), OK,
                "%s is reserved, and there is no such task", t->key);
    else if (t->task_state && !turn_was(t, t->task_state))
        why_err(check_problem(c), OK, "the turn %s must be %s, and it is %s",
                t->key, words[t->task_state], words[t->state]);
    else if (t->task_state && t->price != t->task_price)
        why_err(check_problem(c), OK,
                "the turn %s costs %lld, by the entries %lld", t->key,
                (long long)t->task_price, (long long)t->price);
}

static void check_judge_turns(struct ledger_check *c)
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
        check_judge_row(c, t);
        check_judge_task(c, t);
    }
    c->report.reserved = (int64_t)open;
    if (open != (reserved ? reserved->sum : 0))
        why_err(check_problem(c), OK,
                "%lld are reserved, and the turns come to %lld",
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
        check_enter_window(c);
    check_end_posting(c);
    while ((s = map_next(&c->accounts, &at))) {
        check_judge_account(c, s->value);
        sum += ((struct account *)s->value)->sum;
    }
    if (sum != 0)
        why_err(check_problem(c), OK, "all entries come to %lld, not to zero",
                (long long)sum);
    check_judge_turns(c);
    return &c->report;
}
