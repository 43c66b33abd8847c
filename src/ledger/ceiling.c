/* The ceiling of a message's tree.
 *
 *     POST /api/messages   price 2, allowance 3    ceiling 5    used 2
 *       delegates to       price 2                              used 4
 *         which delegates  price 2                 rejected: 6 would be needed
 *       the first fails                                         used 2
 *
 * A tree begins with a message that is no delegation (this includes a further
 * turn) and has the id of that message. Each task below takes the tree and the
 * ceiling from the task that delegates it, so nothing has to be looked up. A
 * delegation may have a limit of its own, which covers its own price only.
 *
 * Trees older than ceilings are identified by their root and have the
 * allowance as their ceiling. */
#include <stdio.h>

#include "base/fault.h"
#include "ledger/internal.h"

static const struct str tree_prefix = STR("tree:");

static int64_t add_capped(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void ledger_set_ceiling(const struct ledger_settings *s, struct msg *m)
{
    int64_t price = m->ledger.price_micros;
    bool is_below = m->delegation.agent.n && m->delegation.parent_id.n;

    m->ledger.needed_micros = 0;
    m->ledger.tree = (struct id){""};
    if (is_below && m->delegation.tree.text[0]) {
        m->ledger.tree = m->delegation.tree;
        m->ledger.ceiling_micros = m->delegation.ceiling_micros;
    } else if (is_below) {
        m->ledger.tree = id_from(m->delegation.root_id);
        m->ledger.ceiling_micros = s->delegation_allowance;
    } else {
        m->ledger.ceiling_micros =
            m->call.has_max_cost ? m->call.max_cost_micros
                                 : add_capped(price, s->delegation_allowance);
    }
}

enum err ledger_check_ceiling(struct msg *m)
{
    int64_t price = m->ledger.price_micros;

    if (!m->call.has_max_cost || price <= m->call.max_cost_micros)
        return OK;
    m->ledger.needed_micros = price;
    return why_err(&m->why, ERR_CEILING,
                   "%.*s costs %s, and max_cost_micros allows %s: give %lld or "
                   "more, or name another agent",
                   STR_ARG(m->choice.agent), amount_write(price).text,
                   amount_write(m->call.max_cost_micros).text,
                   (long long)price);
}

/* The price for an outsider's agent that the sender has agreed to. A sender who
 * names an agent, or another skill for a further turn, agrees to its price.
 * Otherwise a conversation or task continues at its previous price or less;
 * this also holds if the message repeats its skill, and for an agent without a
 * task. The ceiling of the tree bounds delegations within it. */
static int64_t agreed_price(const struct msg *m, const struct task *before)
{
    bool is_named =
        m->choice.layer == LAYER_EXPLICIT || m->choice.layer == LAYER_PREFIX;
    bool is_bounded =
        m->delegation.agent.n && (m->delegation.parent_id.n || !before);
    bool is_other_skill =
        before && m->call.skill.n && !str_eq(m->call.skill, before->skill);

    if (is_bounded || (is_named && !before) || is_other_skill ||
        m->call.has_max_cost)
        return INT64_MAX; /* ledger_check_ceiling has checked it */
    if (before)
        return before->price_micros;
    return m->choice.layer == LAYER_STICKY && m->known.has_had_price
               ? m->known.had_price
               : 0;
}

enum err ledger_check_consent(struct msg *m, const struct agent *chosen,
                              const struct task *before)
{
    struct eyes eyes = eyes_of(&m->in.caller, m->in.at_ms);
    int64_t price = m->ledger.price_micros, most = agreed_price(m, before);

    if (price <= most || !agent_is_outsider(chosen, &eyes) ||
        PLANTED("ledger.no_consent"))
        return OK;
    /* Report the agreed price, which is less than needed, and not the ceiling
     * that an accepted message would have. */
    m->ledger.ceiling_micros = most;
    m->ledger.needed_micros = price;
    if (most > 0)
        return why_err(&m->why, ERR_CEILING,
                       "%.*s costs %s now, and %s before: give max_cost_micros "
                       "of %lld or more to go on with it",
                       STR_ARG(chosen->name), amount_write(price).text,
                       amount_write(most).text, (long long)price);
    return why_err(&m->why, ERR_CEILING,
                   "%.*s costs %s and is another user's, and the message does "
                   "not name it: name it as executor.name, or give "
                   "max_cost_micros of %lld or more",
                   STR_ARG(chosen->name), amount_write(price).text,
                   (long long)price);
}

static struct tx_op *ledger_count_tree(const struct ledger_use *u,
                                       int64_t first, int64_t delta,
                                       struct tx *tx)
{
    char of[LEDGER_BUDGET_MAX];

    snprintf(of, sizeof(of), "%s%.*s", tree_prefix.p, STR_ARG(u->tree));
    return ledger_count_spent(str_of(of), first, delta, u->at_ms, tx);
}

void ledger_use_tree(const struct ledger_use *u, struct tx *tx)
{
    struct tx_op *op = ledger_count_tree(u, 0, u->price, tx);

    if (!PLANTED("ledger.no_ceiling"))
        tx_if(op, SPENT_AMOUNT, IS_AT_MOST, value_int(u->ceiling - u->price));
}

void ledger_give_back_tree(const struct ledger_use *u, struct tx *tx)
{
    if (u->tree.n)
        ledger_count_tree(u, u->price, -u->price, tx);
}

bool ledger_is_ceiling(const struct tx_op *op)
{
    return op && op->table == &spent_table &&
           str_starts(ledger_guard_text(op, SPENT_OF), tree_prefix);
}

/* A release may have made room meanwhile. The message then omits the amount, so
 * that it stays true. */
enum err ledger_explain_ceiling(struct msg *m, int64_t used, bool is_known)
{
    int64_t price = m->ledger.price_micros, ceiling = m->ledger.ceiling_micros;
    int64_t needed = add_capped(used, price);

    m->ledger.needed_micros = is_known && needed > ceiling ? needed : 0;
    if (!m->ledger.needed_micros)
        return why_err(&m->why, ERR_CEILING,
                       "%.*s costs %s, and less is left of the %s that the "
                       "message this is part of may cost; its sender can allow "
                       "more with max_cost_micros",
                       STR_ARG(m->choice.agent), amount_write(price).text,
                       amount_write(ceiling).text);
    return why_err(&m->why, ERR_CEILING,
                   "%.*s costs %s, and of the %s that the message this is part "
                   "of may cost %s is used; its sender can allow more with "
                   "max_cost_micros, here %lld",
                   STR_ARG(m->choice.agent), amount_write(price).text,
                   amount_write(ceiling).text, amount_write(used).text,
                   (long long)needed);
}
