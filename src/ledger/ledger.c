/* A task's money: reserved when the task is accepted, captured or released when
 * it ends, in the tx of that change. */
#include "ledger/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "ledger/internal.h"

struct ledger *ledger_new(const struct ledger_settings *s)
{
    struct ledger *l = mem_new(sizeof(*l));

    l->s = *s;
    l->quotes = ledger_quotes_new();
    if (l->quotes)
        return l;
    free(l);
    return NULL;
}

void ledger_free(struct ledger *l)
{
    if (l) {
        free(l->budgets);
        ledger_quotes_free(l->quotes);
    }
    free(l);
}

void ledger_set(struct ledger *l, const struct ledger_settings *s)
{
    l->s = *s;
}

const struct ledger_settings *ledger_settings(const struct ledger *l)
{
    return &l->s;
}

bool ledger_has_spending(const struct ledger *l)
{
    return l->has_spending;
}

void ledger_note_spending(struct ledger *l)
{
    l->has_spending = true;
}

int64_t ledger_price(const struct agent *a, struct str skill)
{
    for (size_t i = 0; skill.n && i < a->n_skills; i++)
        if (str_eq(a->skills[i].id, skill) && a->skills[i].price.is_given)
            return a->skills[i].price.micros;
    return a->price.is_given ? a->price.micros : 0;
}

/* The skill. */

static bool has_priced_skills(const struct agent *a)
{
    for (size_t i = 0; i < a->n_skills; i++)
        if (a->skills[i].price.is_given)
            return true;
    return false;
}

/* The nearest skill of `a`, if it was a candidate for this message. */
static struct str nearest_skill(const struct msg *m, const struct agent *a)
{
    for (size_t i = 0; i < m->choice.n_candidates; i++)
        if (str_eq_nocase(m->choice.candidates[i].agent, a->name))
            return m->choice.candidates[i].skill;
    return (struct str){NULL, 0};
}

static struct str dearest_skill(const struct agent *a)
{
    const struct skill *best = NULL;

    for (size_t i = 0; i < a->n_skills; i++) {
        const struct skill *s = &a->skills[i];

        if (s->price.is_given &&
            (!best || s->price.micros > best->price.micros))
            best = s;
    }
    return best->id;
}

struct str ledger_skill(const struct msg *m, const struct agent *a,
                        const struct task *before)
{
    struct str near;

    if (m->call.skill.n)
        return m->call.skill;
    if (before && before->skill.n &&
        (!a->n_skills || agent_skill(a, before->skill)))
        return before->skill;
    if (m->choice.skill.n || !has_priced_skills(a))
        return m->choice.skill;
    if (a->n_skills == 1)
        return a->skills[0].id;
    near = nearest_skill(m, a);
    if (near.n && agent_skill(a, near))
        return near;
    return a->price.is_given ? (struct str){NULL, 0} : dearest_skill(a);
}

/* Acceptance. */

/* Copy to the arena: the message may outlive agents and tasks. */
static enum err ledger_keep_text(struct msg *m, struct str s, struct str *out)
{
    return arena_keep(&m->arena, s, out) ? OK : ERR_NOMEM;
}

/* A batch is free, and so is a dropped message. */
static bool is_free_msg(const struct msg *m)
{
    return m->gate.batch ||
           (m->gate.gate_result.answer &&
            gate_result_status(m->gate.gate_result.answer) == TASK_DROPPED);
}

enum err ledger_appraise(struct ledger *l, struct msg *m,
                         const struct agent *chosen, const struct task *before)
{
    enum err e =
        ledger_keep_text(m, ledger_skill(m, chosen, before), &m->ledger.skill);

    if (e)
        return e;
    m->ledger.price_micros =
        is_free_msg(m) ? 0 : ledger_price(chosen, m->ledger.skill);
    e = ledger_keep_quote(m, chosen);
    ledger_set_ceiling(&l->s, m);
    return e;
}

int64_t ledger_quote(struct ledger *l, const struct msg *m,
                     const struct agent *chosen)
{
    return ledger_quotes_add(l->quotes, m, chosen);
}

enum err ledger_take_quote(struct ledger *l, struct msg *m)
{
    return m->call.quote.n ? ledger_quotes_take(l->quotes, m) : OK;
}

enum err ledger_ask(struct ledger *l, struct msg *m, const struct agent *chosen,
                    const struct task *before)
{
    enum err e = ledger_appraise(l, m, chosen, before);

    m->ledger.payee = (struct str){NULL, 0};
    m->ledger.payer = m->delegation.root_user.n ? m->delegation.root_user
                                                : caller_name(&m->in.caller);
    if (e || is_free_msg(m))
        return e;
    e = ledger_check_ceiling(m);
    if (!e)
        e = ledger_check_consent(m, chosen, before);
    if (e)
        return e;
    m->ledger.payee = chosen->creator;
    if (before && m->ledger.price_micros &&
        !str_eq(before->root_user, m->ledger.payer))
        return why_err(&m->why, ERR_NOT_ALLOWED,
                       "another user pays for this task, and only they can "
                       "continue it");
    /* The budget of the work that the turn is part of now is charged. The
     * task's own row will have the same root, so a release finds it. */
    return ledger_keep_text(m,
                            before && !m->delegation.agent.n
                                ? before->root_id
                                : m->delegation.root_id,
                            &m->ledger.root);
}

static struct str posting_id(const struct ledger_turn_key *key,
                             enum entry_kind kind, char out[LEDGER_POSTING_MAX])
{
    int n = snprintf(out, LEDGER_POSTING_MAX, "%s:%s", key->text,
                     entry_kind_name(kind).p);

    return (struct str){out, (size_t)n};
}

static void reservation_insert(const struct msg *m, struct str of,
                               struct tx *tx)
{
    struct tx_op *op = tx_insert(tx, &reservation_table);

    tx_set(op, RESERVATION_OF, value_text(of));
    tx_set(op, RESERVATION_TASK_ID, value_text(str_of(m->task.id.text)));
    tx_set(op, RESERVATION_TURN, value_int(m->task.turn));
    tx_set(op, RESERVATION_PRICE, value_int(m->ledger.price_micros));
    tx_set(op, RESERVATION_PAYER, value_text(m->ledger.payer));
    tx_set(op, RESERVATION_STATE, value_int(RESERVATION_RESERVED));
    tx_set(op, RESERVATION_CREATED_MS, value_int(m->in.at_ms));
}

void ledger_record(void *ledger, struct msg *m)
{
    struct ledger *l = ledger;
    struct str task_id = str_of(m->task.id.text);
    int64_t price = m->ledger.price_micros;
    struct ledger_posting p = {.tx = &m->tx,
                               .kind = ENTRY_RESERVE,
                               .at_ms = m->in.at_ms,
                               .task_id = task_id,
                               .turn = m->task.turn,
                               .agent = m->choice.agent,
                               .skill = m->ledger.skill};
    struct ledger_use use = {
        .user = m->ledger.payer,
        .org = m->ledger.org,
        .agent = m->choice.agent,
        .conversation = m->task.conversation_id,
        .root = m->ledger.root.n ? m->ledger.root : task_id,
        .talk = m->delegation.talk,
        .tree = str_of(m->ledger.tree.text[0] ? m->ledger.tree.text
                                              : m->task.message_id.text),
        .message_id = str_of(m->task.message_id.text),
        .price = price,
        .ceiling = m->ledger.ceiling_micros,
        .at_ms = m->in.at_ms};
    struct ledger_account account;
    char id[LEDGER_POSTING_MAX];
    struct ledger_turn_key key;

    if (!price)
        return;
    ledger_note_spending(l);
    key = ledger_turn_key(task_id, m->task.turn);
    account = ledger_user(m->ledger.payer);
    p.id = posting_id(&key, p.kind, id);
    reservation_insert(m, str_of(key.text), &m->tx);
    ledger_use_tree(&use, &m->tx);
    ledger_use_budgets(&l->s, &use, &m->tx);
    ledger_use_periods(l, &use, &m->tx);
    ledger_post(&p, str_of(account.text), -price,
                PLANTED("ledger.no_floor") ? LEDGER_NO_FLOOR : 0);
    ledger_post(&p, STR("reserved"), price, 0);
}

/* The guard that failed, if it was about money. */
static const struct tx_op *failed_money_guard(const struct msg *m)
{
    const struct tx_op *op =
        m->tx.result == TX_GUARD_FAILED ? m->tx.failed_op : NULL;

    return op && (op->table == &account_table || op->table == &spent_table)
               ? op
               : NULL;
}

/* Only the payer and admins see amounts. An agent that delegates sees none,
 * even one of the payer: otherwise its creator could have it request something
 * too expensive and read the payer's balance in the answer. */
static bool may_see_amounts(const struct msg *m)
{
    const struct caller *c = &m->in.caller;

    return !m->delegation.agent.n &&
           (caller_is_admin(c) ||
            str_eq_nocase(caller_name(c), m->ledger.payer));
}

enum err ledger_refused(void *ledger, struct msg *m)
{
    struct ledger *l = ledger;
    const struct tx_op *op = failed_money_guard(m);

    if (!op)
        return OK;
    if (ledger_is_ceiling(op))
        return ledger_explain_ceiling(m, 0, false);
    if (!may_see_amounts(m))
        return why_err(
            &m->why, op->table == &spent_table ? ERR_BUDGET : ERR_FUNDS,
            "%.*s costs %s, and its payer has too little%s",
            STR_ARG(m->choice.agent), amount_write(m->ledger.price_micros).text,
            op->table == &spent_table ? " left of a budget" : "");
    if (ledger_is_period(op))
        return ledger_explain_period(l, m, op, 0, false);
    if (op->table == &spent_table)
        return ledger_explain_budget(&l->s, m, ledger_guard_text(op, SPENT_OF),
                                     0, false, &m->why);
    return why_err(&m->why, ERR_FUNDS,
                   "%.*s costs %s, and the account %.*s has less; an admin "
                   "can top it up (signalbox ledger topup)",
                   STR_ARG(m->choice.agent),
                   amount_write(m->ledger.price_micros).text,
                   STR_ARG(ledger_guard_text(op, ACCOUNT_NAME)));
}

void ledger_left_query(const struct msg *m, struct query *q)
{
    const struct tx_op *op = failed_money_guard(m);

    query_init(q, op->table, 1);
    query_if(q, 0, IS, value_text(ledger_guard_text(op, 0)));
}

/* A release may have made the balance sufficient meanwhile. The message then
 * omits the amount, so that it stays true. */
void ledger_tell(struct ledger *l, struct msg *m, const struct query *q)
{
    const struct tx_op *op = failed_money_guard(m);
    int64_t price = m->ledger.price_micros, there = 0;

    if (q->rows && !q->err)
        there = row_int(q->rows, 1); /* ACCOUNT_BALANCE, SPENT_AMOUNT */
    if (!q->err && ledger_is_ceiling(op))
        (void)!ledger_explain_ceiling(m, there, true);
    if (q->err || ledger_is_ceiling(op) || !may_see_amounts(m))
        return;
    if (ledger_is_period(op)) {
        (void)!ledger_explain_period(l, m, op, there, true);
    } else if (op->table == &spent_table) {
        (void)!ledger_explain_budget(&l->s, m, ledger_guard_text(op, SPENT_OF),
                                     there, true, &m->why);
    } else if (there < price) {
        why_err(&m->why, ERR_FUNDS,
                "%.*s costs %s, and the account %.*s has %s; an admin can top "
                "it up (signalbox ledger topup)",
                STR_ARG(m->choice.agent), amount_write(price).text,
                STR_ARG(ledger_guard_text(op, ACCOUNT_NAME)),
                amount_write(there).text);
    }
}

/* The end of a turn. */

static void reservation_close(struct str of, enum reservation_state to,
                              int64_t at_ms, struct tx *tx)
{
    struct tx_op *op = tx_update(tx, &reservation_table);

    tx_if(op, RESERVATION_OF, IS, value_text(of));
    tx_if(op, RESERVATION_STATE, IS, value_int(RESERVATION_RESERVED));
    tx_set(op, RESERVATION_STATE, value_int(to));
    tx_set(op, RESERVATION_CLOSED_MS, value_int(at_ms));
}

/* For readers of a statement: a captured reserve is a charge. */
static void reserve_entry_mark(const struct ledger_posting *p,
                               enum reservation_state to)
{
    struct tx_op *op = tx_amend(p->tx, &entry_table);

    tx_if(op, ENTRY_TASK_ID, IS, value_text(p->task_id));
    tx_if(op, ENTRY_TURN, IS, value_int(p->turn));
    tx_if(op, ENTRY_KIND, IS, value_int(ENTRY_RESERVE));
    tx_set(op, ENTRY_BECAME, value_int(to));
}

static void reservation_capture(const struct ledger *l,
                                const struct ledger_posting *p,
                                struct str payee, int64_t price)
{
    int64_t fee =
        payee.n ? (int64_t)((__int128)price * l->s.fee_ppm / 1000000) : price;
    struct ledger_account account;

    ledger_post(p, STR("reserved"), -price,
                PLANTED("ledger.capture_twice") ? LEDGER_NO_FLOOR : 0);
    if (price > fee) {
        /* Earnings of a creator who is below zero reduce the debt. */
        account = ledger_creator(payee);
        ledger_post(p, str_of(account.text), price - fee, LEDGER_NO_FLOOR);
    }
    if (fee)
        ledger_post(p, STR("platform"), fee, 0);
}

static void reservation_release(const struct ledger_posting *p,
                                const struct task *t)
{
    struct ledger_account account = ledger_user(t->root_user);
    struct ledger_use use = {.user = t->root_user,
                             .org = t->payer_org,
                             .agent = t->priced_agent,
                             .conversation = t->conversation_id,
                             .root = task_root(t),
                             .talk = t->talk,
                             .tree = str_of(t->tree.text),
                             .message_id = str_of(t->message_id.text),
                             .price = t->price_micros,
                             .at_ms = p->at_ms};

    ledger_post(p, STR("reserved"), -t->price_micros,
                PLANTED("ledger.release_after_capture") ? LEDGER_NO_FLOOR : 0);
    ledger_post(p, str_of(account.text), t->price_micros, 0);
    ledger_give_back(&use, p->tx);
    ledger_give_back_periods(&use, p->tx);
    ledger_give_back_tree(&use, p->tx);
}

void ledger_record_end(void *ledger, const struct turn_end *end, struct tx *tx)
{
    struct ledger *l = ledger;
    const struct task *t = end->task;
    bool is_earned = end->result->status == TASK_COMPLETED;
    struct ledger_posting p = {.tx = tx,
                               .kind =
                                   is_earned ? ENTRY_CAPTURE : ENTRY_RELEASE,
                               .at_ms = end->at_ms,
                               .task_id = str_of(t->id.text),
                               .turn = t->turn,
                               .agent = t->agent,
                               .skill = t->skill};
    char id[LEDGER_POSTING_MAX];
    enum reservation_state to;
    struct ledger_turn_key key;

    if (!t->price_micros || end->is_unpaid)
        return;
    key = ledger_turn_key(p.task_id, t->turn);
    p.id = posting_id(&key, p.kind, id);
    to = is_earned ? RESERVATION_CAPTURED : RESERVATION_RELEASED;
    reservation_close(str_of(key.text), to, end->at_ms, tx);
    reserve_entry_mark(&p, to);
    if (is_earned)
        reservation_capture(l, &p, end->payee, t->price_micros);
    else
        reservation_release(&p, t);
    if (is_earned && PLANTED("ledger.capture_twice"))
        reservation_capture(l, &p, end->payee, t->price_micros);
    if (is_earned && PLANTED("ledger.release_after_capture")) {
        p.kind = ENTRY_RELEASE;
        p.id = posting_id(&key, p.kind, id);
        reservation_release(&p, t);
    }
}

bool ledger_is_broken(const struct tx *tx)
{
    const struct table *t =
        tx->result == TX_GUARD_FAILED ? tx->failed_op->table : NULL;

    return t == &reservation_table || t == &account_table || t == &spent_table;
}

/* Retention. */

void ledger_prune(struct tx *tx, int64_t before_ms, size_t limit)
{
    struct tx_op *op = tx_prune(tx, &reservation_table, limit);

    tx_if(op, RESERVATION_CLOSED_MS, IS_LESS, value_int(before_ms));
    op = tx_prune(tx, &spent_table, limit);
    tx_if(op, SPENT_UPDATED_MS, IS_LESS, value_int(before_ms));
}
