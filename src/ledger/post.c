/* Postings, and those that an admin orders. */
#include <assert.h>
#include <stdio.h>

#include "base/fault.h"
#include "base/utf8.h"
#include "ledger/internal.h"

static const struct str kinds[] = {
    [ENTRY_TOPUP] = STR("topup"),     [ENTRY_REFUND] = STR("refund"),
    [ENTRY_RESERVE] = STR("reserve"), [ENTRY_CAPTURE] = STR("capture"),
    [ENTRY_RELEASE] = STR("release"), [ENTRY_PAYOUT] = STR("payout")};

struct str entry_kind_name(enum entry_kind k)
{
    return kinds[k];
}

struct str reservation_state_name(int64_t state)
{
    static const struct str names[] = {[RESERVATION_RESERVED] = STR("reserved"),
                                       [RESERVATION_CAPTURED] = STR("charged"),
                                       [RESERVATION_RELEASED] =
                                           STR("released")};

    return state >= RESERVATION_RESERVED && state <= RESERVATION_RELEASED
               ? names[state]
               : (struct str){NULL, 0};
}

struct ledger_turn_key ledger_turn_key(struct str task_id, int64_t turn)
{
    struct ledger_turn_key key;
    int n = snprintf(key.text, sizeof(key.text), "%.*s:%lld", STR_ARG(task_id),
                     (long long)turn);

    assert(n > 0 && n < (int)sizeof(key.text));
    return key;
}

void ledger_copy(char *to, size_t size, struct str s)
{
    snprintf(to, size, "%.*s", STR_ARG(s));
}

static struct ledger_account account_of(const char *kind, struct str name)
{
    struct ledger_account a;
    int n = snprintf(a.text, sizeof(a.text), "%s:%.*s", kind, STR_ARG(name));

    assert(n > 0 && n < (int)sizeof(a.text));
    return a;
}

struct ledger_account ledger_user(struct str name)
{
    return account_of("user", name);
}

struct ledger_account ledger_creator(struct str name)
{
    return account_of("creator", name);
}

void ledger_post(const struct ledger_posting *p, struct str account,
                 int64_t amount, int64_t floor)
{
    struct tx_op *op = tx_put(p->tx, &account_table);

    tx_set(op, ACCOUNT_NAME, value_text(account));
    tx_set_new(op, ACCOUNT_BALANCE, value_int(0));
    op = tx_add(p->tx, &account_table, ACCOUNT_BALANCE, amount, floor);
    tx_if(op, ACCOUNT_NAME, IS, value_text(account));
    tx_set(op, ACCOUNT_UPDATED_MS, value_int(p->at_ms));
    op = tx_insert(p->tx, &entry_table);
    tx_set(op, ENTRY_POSTING, value_text(p->id));
    tx_set(op, ENTRY_AT_MS, value_int(p->at_ms));
    tx_set(op, ENTRY_KIND, value_int(p->kind));
    tx_set(op, ENTRY_ACCOUNT, value_text(account));
    tx_set(op, ENTRY_AMOUNT, value_int(amount));
    tx_set(op, ENTRY_TASK_ID, value_text_or_null(p->task_id));
    if (p->task_id.n)
        tx_set(op, ENTRY_TURN, value_int(p->turn));
    tx_set(op, ENTRY_AGENT, value_text_or_null(p->agent));
    tx_set(op, ENTRY_SKILL, value_text_or_null(p->skill));
    tx_set(op, ENTRY_BY, value_text_or_null(p->by));
    tx_set(op, ENTRY_NOTE, value_text_or_null(p->note));
    if (p->kind == ENTRY_RESERVE)
        tx_set(op, ENTRY_BECAME, value_int(RESERVATION_RESERVED));
}

/* Orders. */

static bool is_posting_id(struct str s)
{
    if (!s.n || s.n > LEDGER_ID_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                    "0123456789._-",
                    s.p[i]) ||
            !s.p[i])
            return false;
    return true;
}

enum err ledger_order_check(const struct ledger_order *o, struct why *why)
{
    if (o->amount <= 0 || o->amount > LEDGER_AMOUNT_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "an amount is a whole number of micro-units from 1 to "
                       "%lld",
                       (long long)LEDGER_AMOUNT_MAX);
    if (!is_posting_id(o->id))
        return why_err(why, ERR_BAD_REQUEST,
                       "the id of a posting has 1 to %d letters, digits, '.', "
                       "'_' and '-'",
                       LEDGER_ID_MAX);
    if (!o->name.n || o->name.n > PRINCIPAL_NAME_MAX)
        return why_err(why, ERR_BAD_REQUEST, "name the user of the account");
    if (o->note.n > LEDGER_NOTE_MAX || !utf8_is_valid(o->note))
        return why_err(why, ERR_BAD_REQUEST,
                       "a note has at most %d bytes, in UTF-8",
                       LEDGER_NOTE_MAX);
    return OK;
}

static struct ledger_account order_account(const struct ledger_order *o)
{
    return o->kind == ENTRY_PAYOUT ? ledger_creator(o->name)
                                   : ledger_user(o->name);
}

/* Once per id. First in the tx, so that a repeated order is recognized even if
 * the balance is too low by now. */
static void claim_id(struct tx *tx, struct str id, enum entry_kind kind,
                     struct str account, int64_t amount,
                     const struct ledger_order *o)
{
    struct tx_op *op = tx_insert(tx, &posting_table);

    tx_set(op, POSTING_ID, value_text(id));
    tx_set(op, POSTING_KIND, value_int(kind));
    tx_set(op, POSTING_ACCOUNT, value_text(account));
    tx_set(op, POSTING_AMOUNT, value_int(amount));
    tx_set(op, POSTING_BY, value_text_or_null(o->by));
    tx_set(op, POSTING_AT_MS, value_int(o->at_ms));
    tx_set(op, POSTING_NOTE, value_text_or_null(o->note));
}

void ledger_order(const struct ledger_order *o, struct tx *tx)
{
    struct ledger_account account = order_account(o);
    struct ledger_posting p = {.tx = tx,
                               .kind = o->kind,
                               .at_ms = o->at_ms,
                               .id = o->id,
                               .by = o->by,
                               .note = o->note};
    int64_t in = o->kind == ENTRY_TOPUP ? o->amount : -o->amount;

    claim_id(tx, o->id, o->kind, str_of(account.text), o->amount, o);
    ledger_post(&p, str_of(account.text), in, 0);
    ledger_post(&p, STR("outside"), -in, LEDGER_NO_FLOOR);
}

struct str ledger_guard_text(const struct tx_op *op, uint8_t column)
{
    for (const struct condition *c = op->conditions; c; c = c->next)
        if (c->columns[0] == column && c->value.type == VALUE_TEXT)
            return c->value.s;
    return (struct str){NULL, 0};
}

enum err ledger_order_refused(const struct tx *tx, struct why *why)
{
    const struct tx_op *op = tx->failed_op;

    if (tx->result == TX_COMMITTED)
        return OK;
    if (tx->result != TX_GUARD_FAILED)
        return tx->err ? tx->err : ERR_OUTCOME_UNKNOWN;
    if (op->table == &posting_table)
        return why_err(why, ERR_EXISTS, "the posting %.*s already exists",
                       STR_ARG(tx_value(op, POSTING_ID).s));
    if (op->delta > 0 || op->floor == LEDGER_NO_FLOOR)
        return why_err(why, ERR_LIMIT, "the balance would be too large");
    return why_err(why, ERR_FUNDS, "%.*s has less than %s",
                   STR_ARG(ledger_guard_text(op, ACCOUNT_NAME)),
                   amount_write(-op->delta).text);
}

void ledger_posting_query(struct query *q, struct str id)
{
    query_init(q, &posting_table, 1);
    query_if(q, POSTING_ID, IS, value_text(id));
}

bool ledger_is_same(const struct ledger_order *o, const struct row *r)
{
    struct ledger_account account = order_account(o);

    return row_int(r, POSTING_KIND) == o->kind &&
           row_int(r, POSTING_AMOUNT) == o->amount &&
           str_eq(row_str(r, POSTING_NOTE), o->note) &&
           str_eq(row_str(r, POSTING_ACCOUNT), str_of(account.text));
}

/* Refund of a turn. */

enum {
    TURN_ENTRIES_MAX = 16,   /* reserve 2, capture 3, refund 3 */
    TASK_ENTRIES_MAX = 4000, /* with a negative amount: 4 per turn */
};

void ledger_turn_query(struct query *q, struct str task_id, int64_t turn)
{
    query_init(q, &entry_table, TURN_ENTRIES_MAX);
    query_if(q, ENTRY_TASK_ID, IS, value_text(task_id));
    query_if(q, ENTRY_TURN, IS, value_int(turn));
    query_order(q, ENTRY_SEQ, false);
}

/* The payer of a turn's charge, and the shares of those who received it. */
struct charge {
    struct str payer, creator; /* accounts; creator may be empty */
    int64_t earned, fee;
};

static struct charge charge_of(const struct query *entries)
{
    struct charge c = {.earned = 0};

    QUERY_EACH(r, entries)
    {
        int64_t amount = row_int(r, ENTRY_AMOUNT);
        struct str account = row_str(r, ENTRY_ACCOUNT);

        if (row_int(r, ENTRY_KIND) == ENTRY_RESERVE && amount < 0)
            c.payer = account;
        if (row_int(r, ENTRY_KIND) != ENTRY_CAPTURE || amount <= 0)
            continue;
        if (str_eq(account, STR("platform"))) {
            c.fee = amount;
        } else {
            c.creator = account;
            c.earned = amount;
        }
    }
    return c;
}

enum err ledger_refund_turn(const struct ledger_order *o,
                            const struct query *entries, struct tx *tx,
                            struct ledger_refunded *out, struct why *why)
{
    struct charge c = charge_of(entries);
    int64_t whole = c.earned + c.fee, back = o->amount ? o->amount : whole, fee;
    char id[LEDGER_POSTING_MAX];
    struct ledger_posting p = {.tx = tx,
                               .kind = ENTRY_REFUND,
                               .at_ms = o->at_ms,
                               .by = o->by,
                               .note = o->note};
    struct ledger_turn_key key;

    *out = (struct ledger_refunded){.amount = 0};
    if (entries->has_more)
        return ERR_LIMIT;
    if (!whole || !c.payer.n)
        return why_err(why, ERR_NOT_FOUND,
                       "nothing was paid for that turn, or it is not over");
    if (back > whole && !PLANTED("ledger.refund_above"))
        return why_err(why, ERR_BAD_REQUEST,
                       "the charge is %s, and no more than that can be "
                       "refunded",
                       amount_write(whole).text);
    fee = (int64_t)((__int128)c.fee * back / whole);
    out->amount = back;
    out->from_creator = back - fee;
    ledger_copy(out->creator.text, sizeof(out->creator.text), c.creator);
    p.task_id = row_str(entries->rows, ENTRY_TASK_ID);
    p.turn = row_int(entries->rows, ENTRY_TURN);
    p.agent = row_str(entries->rows, ENTRY_AGENT);
    p.skill = row_str(entries->rows, ENTRY_SKILL);
    key = ledger_turn_key(p.task_id, p.turn);
    snprintf(id, sizeof(id), "%s:refund", key.text);
    p.id = str_of(id);
    if (!PLANTED("ledger.refund_twice"))
        claim_id(tx, p.id, ENTRY_REFUND, str_of(key.text), back, o);
    if (back > fee)
        ledger_post(&p, c.creator, fee - back, LEDGER_NO_FLOOR);
    if (fee)
        ledger_post(&p, STR("platform"), -fee, 0);
    ledger_post(&p, c.payer, back, 0);
    return OK;
}

/* Balances and statements. */

void ledger_entry_from(struct ledger_entry *e, const struct row *r)
{
    *e = (struct ledger_entry){.seq = 0};
    record_from_row(e, &entry_table, r);
}

void ledger_balance_query(struct query *q, struct str account)
{
    query_init(q, &account_table, 1);
    query_if(q, ACCOUNT_NAME, IS, value_text(account));
}

void ledger_balances_query(struct query *q, struct str after, size_t limit)
{
    query_init(q, &account_table, limit);
    if (after.n)
        query_if(q, ACCOUNT_NAME, IS_MORE, value_text(after));
    query_order(q, ACCOUNT_NAME, false);
}

void ledger_statement_query(struct query *q, const struct ledger_span *s)
{
    query_init(q, &entry_table, s->limit);
    if (s->account.n)
        query_if(q, ENTRY_ACCOUNT, IS, value_text(s->account));
    if (s->since_ms)
        query_if(q, ENTRY_AT_MS, IS_AT_LEAST, value_int(s->since_ms));
    if (s->until_ms)
        query_if(q, ENTRY_AT_MS, IS_LESS, value_int(s->until_ms));
    if (s->cursor)
        query_if(q, ENTRY_SEQ, s->is_oldest_first ? IS_MORE : IS_LESS,
                 value_int(s->cursor));
    query_order(q, ENTRY_SEQ, !s->is_oldest_first);
}

void ledger_reserved_query(struct query *q, struct str user, struct str after,
                           size_t limit)
{
    query_init(q, &reservation_table, limit);
    query_if(q, RESERVATION_PAYER, IS, value_text(user));
    query_if(q, RESERVATION_STATE, IS, value_int(RESERVATION_RESERVED));
    if (after.n)
        query_if(q, RESERVATION_OF, IS_MORE, value_text(after));
    query_order(q, RESERVATION_OF, false);
}

void ledger_last_turn_query(struct query *q, struct str task_id)
{
    query_init(q, &entry_table, 1);
    query_if(q, ENTRY_TASK_ID, IS, value_text(task_id));
    query_if(q, ENTRY_KIND, IS, value_int(ENTRY_CAPTURE));
    query_order(q, ENTRY_SEQ, true);
}

/* Only entries that take from an account: a capture takes from `reserved`, a
 * refund from those who received the charge. */
void ledger_paid_query(struct query *q, struct str task_id)
{
    query_init(q, &entry_table, TASK_ENTRIES_MAX);
    query_if(q, ENTRY_TASK_ID, IS, value_text(task_id));
    query_if(q, ENTRY_AMOUNT, IS_LESS, value_int(0));
}

int64_t ledger_paid(const struct query *q)
{
    int64_t paid = 0;

    QUERY_EACH(r, q)
    {
        if (row_int(r, ENTRY_KIND) == ENTRY_CAPTURE)
            paid -= row_int(r, ENTRY_AMOUNT);
        else if (row_int(r, ENTRY_KIND) == ENTRY_REFUND)
            paid += row_int(r, ENTRY_AMOUNT);
    }
    return paid;
}
