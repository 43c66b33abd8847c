/* The ceiling of a message's tree.
 *
 *     POST /api/messages   price 2, allowance 3    ceiling 5    used 2
 *       delegates to       price 2                              used 4
 *         which delegates  price 2                 refused: 6 would be needed
 *       the first fails                                         used 2
 *
 * A tree begins with a message that is no delegation, a further turn included,
 * and is called by the id of that message. The tasks below it take its name and
 * its ceiling from the task that they are delegated from, so there is nothing
 * to look up. A delegation may have a limit of its own: it is of that one price
 * alone.
 *
 * Trees from before there were ceilings go by their root, and have the
 * allowance. */
#include <assert.h>
#include <stdio.h>

#include "base/fault.h"
#include "ledger/internal.h"

static const struct str prefix = STR("tree:");

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void ledger_set_ceiling(const struct ledger_settings *s, struct msg *m)
{
    int64_t price = m->ledger.price_micros;
    bool is_below = m->hire.agent.n && m->hire.parent_id.n;

    m->ledger.needed_micros = 0;
    m->ledger.tree = (struct id){""};
    if (is_below && m->hire.tree.text[0]) {
        m->ledger.tree = m->hire.tree;
        m->ledger.ceiling_micros = m->hire.ceiling_micros;
    } else if (is_below) {
        m->ledger.tree = id_from(m->hire.root_id);
        m->ledger.ceiling_micros = s->delegation_allowance;
    } else {
        m->ledger.ceiling_micros = m->call.has_max_cost
                                       ? m->call.max_cost_micros
                                       : sum(price, s->delegation_allowance);
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

/* The price that the sender has agreed to for an outsider's agent. A sender who
 * names an agent, or another skill for a further turn, agrees to its price.
 * Otherwise a conversation or a task goes on at its price or for less, also
 * where the message names its skill again, and also for an agent that works on
 * nothing. Delegations within a tree are bounded by its ceiling. */
static int64_t agreed(const struct msg *m, const struct task *before)
{
    bool is_named =
        m->choice.layer == LAYER_EXPLICIT || m->choice.layer == LAYER_PREFIX;
    bool is_bounded = m->hire.agent.n && (m->hire.parent_id.n || !before);
    bool is_other_skill =
        before && m->call.skill.n && !str_eq(m->call.skill, before->skill);

    if (is_bounded || (is_named && !before) || is_other_skill ||
        m->call.has_max_cost)
        return INT64_MAX; /* or ledger_check_ceiling has said no */
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
    int64_t price = m->ledger.price_micros, most = agreed(m, before);

    if (price <= most || !agent_is_outsider(chosen, &eyes) ||
        PLANTED("ledger.no_consent"))
        return OK;
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

static struct tx_op *count(const struct ledger_tree *t, int64_t first,
                           int64_t delta, struct tx *tx)
{
    char text[LEDGER_BUDGET_MAX];
    int n = snprintf(text, sizeof(text), "%s%.*s", prefix.p, STR_ARG(t->id));
    struct str of = {text, (size_t)n};
    struct tx_op *op = tx_put(tx, &spent_table);

    assert(n > 0 && n < (int)sizeof(text));
    tx_set(op, SPENT_OF, value_text(of));
    tx_set_new(op, SPENT_AMOUNT, value_int(first));
    op = tx_add(tx, &spent_table, SPENT_AMOUNT, delta, LEDGER_NO_FLOOR);
    tx_if(op, SPENT_OF, IS, value_text(of));
    tx_set(op, SPENT_UPDATED_MS, value_int(t->at_ms));
    return op;
}

void ledger_use_tree(const struct ledger_tree *t, struct tx *tx)
{
    struct tx_op *op = count(t, 0, t->price, tx);

    if (!PLANTED("ledger.no_ceiling"))
        tx_if(op, SPENT_AMOUNT, IS_AT_MOST, value_int(t->ceiling - t->price));
}

void ledger_give_back_tree(const struct ledger_tree *t, struct tx *tx)
{
    if (t->id.n)
        count(t, t->price, -t->price, tx);
}

bool ledger_is_ceiling(const struct tx_op *op)
{
    return op && op->table == &spent_table &&
           str_starts(ledger_guard_text(op, SPENT_OF), prefix);
}

/* It may be enough by now, where something was given back meanwhile: then the
 * amount is left out, so that the sentence stays true. */
enum err ledger_ceiling_words(struct msg *m, int64_t used, bool is_known)
{
    int64_t price = m->ledger.price_micros, ceiling = m->ledger.ceiling_micros;
    int64_t needed = sum(used, price);

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
