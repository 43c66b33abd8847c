/* A task's money: reserved when it is accepted, captured or released when it is
 * over, in the tx of that move. */
#include "ledger/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum { POSTING_MAX = ID_BYTES + 40, ACCOUNT_MAX = PRINCIPAL_NAME_MAX + 16 };

#define NO_FLOOR INT64_MIN

struct ledger {
    struct ledger_settings s;
};

struct ledger *ledger_new(const struct ledger_settings *s)
{
    struct ledger *l = FAULT("ledger.new") ? NULL : calloc(1, sizeof(*l));

    if (l)
        l->s = *s;
    return l;
}

void ledger_free(struct ledger *l)
{
    free(l);
}

void ledger_set(struct ledger *l, const struct ledger_settings *s)
{
    l->s = *s;
}

static const struct str kinds[] = {
    [ENTRY_TOPUP] = STR("topup"),     [ENTRY_REFUND] = STR("refund"),
    [ENTRY_RESERVE] = STR("reserve"), [ENTRY_CAPTURE] = STR("capture"),
    [ENTRY_RELEASE] = STR("release"), [ENTRY_PAYOUT] = STR("payout")};

struct str entry_kind_name(enum entry_kind k)
{
    return kinds[k];
}

int64_t ledger_price(const struct agent *a, struct str skill)
{
    for (size_t i = 0; skill.n && i < a->n_skills; i++)
        if (str_eq(a->skills[i].id, skill) && a->skills[i].price.is_given)
            return a->skills[i].price.micros;
    return a->price.is_given ? a->price.micros : 0;
}

/* Postings. */

struct posting {
    struct tx *tx;
    enum entry_kind kind;
    int64_t at_ms;
    struct str task_id, agent, skill;
    int64_t turn;
};

/* More or less in an account, and the entry that says so. */
static void post(const struct posting *p, struct str account, int64_t amount,
                 int64_t floor)
{
    struct str kind = kinds[p->kind];
    char name[POSTING_MAX];
    struct tx_op *op;
    int n;

    op = tx_put(p->tx, &account_table);
    tx_set(op, ACCOUNT_NAME, value_text(account));
    tx_set_new(op, ACCOUNT_BALANCE, value_int(0));
    op = tx_add(p->tx, &account_table, ACCOUNT_BALANCE, amount, floor);
    tx_if(op, ACCOUNT_NAME, IS, value_text(account));
    tx_set(op, ACCOUNT_UPDATED_MS, value_int(p->at_ms));
    n = snprintf(name, sizeof(name), "%.*s:%lld:%.*s", STR_ARG(p->task_id),
                 (long long)p->turn, STR_ARG(kind));
    op = tx_insert(p->tx, &entry_table);
    tx_set(op, ENTRY_POSTING, value_text((struct str){name, (size_t)n}));
    tx_set(op, ENTRY_AT_MS, value_int(p->at_ms));
    tx_set(op, ENTRY_KIND, value_int(p->kind));
    tx_set(op, ENTRY_ACCOUNT, value_text(account));
    tx_set(op, ENTRY_AMOUNT, value_int(amount));
    tx_set(op, ENTRY_TASK_ID, value_text(p->task_id));
    tx_set(op, ENTRY_TURN, value_int(p->turn));
    tx_set(op, ENTRY_AGENT, value_text_or_null(p->agent));
    tx_set(op, ENTRY_SKILL, value_text_or_null(p->skill));
}

static struct str account_of(const char *kind, struct str name,
                             char out[ACCOUNT_MAX])
{
    int n = snprintf(out, ACCOUNT_MAX, "%s:%.*s", kind, STR_ARG(name));

    assert(n > 0 && n < ACCOUNT_MAX);
    return (struct str){out, (size_t)n};
}

/* Accepted. */

void ledger_ask(struct ledger *l, struct msg *m, const struct agent *chosen)
{
    (void)l;
    m->ledger.price_micros = 0;
    m->ledger.payee = (struct str){NULL, 0};
    if (m->gate.batch || pass_status(m->gate.pass.answer) == TASK_DROPPED)
        return;
    m->ledger.price_micros =
        ledger_price(chosen, m->call.skill.n ? m->call.skill : m->choice.skill);
    m->ledger.payee = chosen->creator;
}

static struct str payer_of(const struct msg *m)
{
    return m->hire.root_user.n ? m->hire.root_user : caller_name(&m->in.caller);
}

void ledger_record(struct ledger *l, struct msg *m)
{
    struct str task_id = str_of(m->task.id.text);
    int64_t price = m->ledger.price_micros;
    struct posting p = {.tx = &m->tx,
                        .kind = ENTRY_RESERVE,
                        .at_ms = m->in.at_ms,
                        .task_id = task_id,
                        .turn = m->task.turn,
                        .agent = m->choice.agent};
    char account[ACCOUNT_MAX];
    struct tx_op *op;

    (void)l;
    if (!price)
        return;
    p.skill = m->call.skill.n ? m->call.skill : m->choice.skill;
    op = tx_insert(&m->tx, &reservation_table);
    tx_set(op, RESERVATION_TASK_ID, value_text(task_id));
    tx_set(op, RESERVATION_TURN, value_int(m->task.turn));
    tx_set(op, RESERVATION_PRICE, value_int(price));
    tx_set(op, RESERVATION_PAYER, value_text(payer_of(m)));
    tx_set(op, RESERVATION_STATE, value_int(RESERVATION_RESERVED));
    tx_set(op, RESERVATION_CREATED_MS, value_int(m->in.at_ms));
    post(&p, account_of("user", payer_of(m), account), -price,
         PLANTED("ledger.no_floor") ? NO_FLOOR : 0);
    post(&p, STR("reserved"), price, 0);
}

enum err ledger_refused(struct ledger *l, struct msg *m)
{
    const struct tx_op *op = m->tx.failed_op;

    (void)l;
    if (m->tx.result != TX_GUARD_FAILED || op->table != &account_table)
        return OK;
    return why_err(&m->why, ERR_FUNDS,
                   "%.*s costs %lld micro-units, and the balance of %.*s is "
                   "less; an admin can top it up (signalbox ledger topup)",
                   STR_ARG(m->choice.agent), (long long)m->ledger.price_micros,
                   STR_ARG(payer_of(m)));
}

/* Over. */

static void close_reservation(const struct task *t, enum reservation_state to,
                              int64_t at_ms, struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &reservation_table);

    tx_if(op, RESERVATION_TASK_ID, IS, value_text(str_of(t->id.text)));
    tx_if(op, RESERVATION_TURN, IS, value_int(t->turn));
    tx_if(op, RESERVATION_STATE, IS, value_int(RESERVATION_RESERVED));
    tx_set(op, RESERVATION_STATE, value_int(to));
    tx_set(op, RESERVATION_CLOSED_MS, value_int(at_ms));
}

static int64_t fee_of(const struct ledger *l, int64_t price)
{
    return (int64_t)((__int128)price * l->s.fee_ppm / 1000000);
}

void ledger_record_end(struct ledger *l, const struct task *t, struct str payee,
                       const struct task_result *r, int64_t at_ms,
                       struct tx *tx)
{
    bool is_earned = r->status == TASK_COMPLETED;
    int64_t price = t->price_micros;
    int64_t fee = is_earned && payee.n ? fee_of(l, price) : price;
    struct posting p = {.tx = tx,
                        .kind = is_earned ? ENTRY_CAPTURE : ENTRY_RELEASE,
                        .at_ms = at_ms,
                        .task_id = str_of(t->id.text),
                        .turn = t->turn,
                        .agent = t->agent,
                        .skill = t->skill};
    char account[ACCOUNT_MAX];

    if (!price)
        return;
    close_reservation(
        t, is_earned ? RESERVATION_CAPTURED : RESERVATION_RELEASED, at_ms, tx);
    post(&p, STR("reserved"), -price, 0);
    if (!is_earned) {
        post(&p, account_of("user", t->root_user, account), price, 0);
        return;
    }
    if (payee.n && price > fee)
        post(&p, account_of("creator", payee, account), price - fee, 0);
    if (fee)
        post(&p, STR("platform"), fee, 0);
}
