/* Budgets of settings. A row counts the spent and reserved amount of one
 * budget, and the guard on it is the present limit: a row above a lowered limit
 * accepts nothing more and loses nothing.
 *
 * The day is that of the message which began the turn, by the time in its id.
 * The task's row keeps that id as long as the turn lasts, so a release finds
 * the row that was charged without a lookup. */
#include <assert.h>
#include <stdio.h>

#include "base/rfc3339.h"
#include "ledger/internal.h"

enum { DAY_CHARS = 10 }; /* "2026-11-16" */

/* BELOW has no limit: it counts the delegations because of a conversation's
 * messages, beside the cost of the messages themselves, for cost queries. */
enum budget { PER_DAY, PER_CONVERSATION, PER_ROOT, BELOW, N_BUDGETS };

static const struct str prefixes[N_BUDGETS] = {
    [PER_DAY] = STR("day:"),
    [PER_CONVERSATION] = STR("conversation:"),
    [PER_ROOT] = STR("root:"),
    [BELOW] = STR("below:"),
};

static int64_t settings_limit(const struct ledger_settings *s, enum budget b)
{
    switch (b) {
    case PER_DAY: return s->per_day;
    case PER_CONVERSATION: return s->per_conversation;
    case PER_ROOT: return s->per_root;
    case BELOW:
    case N_BUDGETS: break;
    }
    return 0;
}

static int day_of(struct str user, int64_t at_ms, char out[LEDGER_BUDGET_MAX])
{
    char day[RFC3339_BYTES];

    rfc3339_write(at_ms, day);
    return snprintf(out, LEDGER_BUDGET_MAX, "day:%.*s:%.*s", STR_ARG(user),
                    DAY_CHARS, day);
}

void ledger_spent_query(struct query *q, struct str of)
{
    query_init(q, &spent_table, 1);
    query_if(q, SPENT_OF, IS, value_text(of));
}

void ledger_day_query(struct query *q, struct str user, int64_t at_ms)
{
    char of[LEDGER_BUDGET_MAX];

    day_of(user, at_ms, of);
    ledger_spent_query(q, str_of(of));
}

void ledger_root_query(struct query *q, struct str root)
{
    char of[LEDGER_BUDGET_MAX];

    snprintf(of, sizeof(of), "root:%.*s", STR_ARG(root));
    ledger_spent_query(q, str_of(of));
}

void ledger_conversation_query(struct query *q, struct str user,
                               struct str conversation)
{
    char of[LEDGER_BUDGET_MAX];

    snprintf(of, sizeof(of), "conversation:%.*s/%.*s", STR_ARG(user),
             STR_ARG(conversation));
    ledger_spent_query(q, str_of(of));
}

void ledger_below_query(struct query *q, const struct query *conversation)
{
    struct str of = conversation->conditions ? conversation->conditions->value.s
                                             : (struct str){NULL, 0};
    char below[LEDGER_BUDGET_MAX];

    snprintf(below, sizeof(below), "below:%.*s",
             STR_ARG(str_sub(of, prefixes[PER_CONVERSATION].n, of.n)));
    ledger_spent_query(q, str_of(below));
}

static struct str budget_row_name(enum budget b, const struct ledger_use *u,
                                  char out[LEDGER_BUDGET_MAX])
{
    struct id id = id_from(u->message_id);
    int n = 0;

    switch (b) {
    case PER_DAY: n = day_of(u->user, id_time_ms(&id), out); break;
    case PER_CONVERSATION:
        n = snprintf(out, LEDGER_BUDGET_MAX, "conversation:%.*s/%.*s",
                     STR_ARG(u->user), STR_ARG(u->conversation));
        break;
    case PER_ROOT:
        n = snprintf(out, LEDGER_BUDGET_MAX, "root:%.*s", STR_ARG(u->root));
        break;
    case BELOW:
        n = snprintf(out, LEDGER_BUDGET_MAX, "below:%.*s/%.*s",
                     STR_ARG(u->user), STR_ARG(u->talk));
        break;
    case N_BUDGETS: break;
    }
    assert(n > 0 && n < LEDGER_BUDGET_MAX);
    return (struct str){out, (size_t)n};
}

struct tx_op *ledger_count_spent(struct str of, int64_t first, int64_t delta,
                                 int64_t updated_ms, struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &spent_table);

    tx_set(op, SPENT_OF, value_text(of));
    tx_set_new(op, SPENT_AMOUNT, value_int(first));
    op = tx_add(tx, &spent_table, SPENT_AMOUNT, delta, LEDGER_NO_FLOOR);
    tx_if(op, SPENT_OF, IS, value_text(of));
    tx_set(op, SPENT_UPDATED_MS, value_int(updated_ms));
    return op;
}

static struct tx_op *budget_count(const struct ledger_use *u, enum budget b,
                                  int64_t first, int64_t delta, struct tx *tx)
{
    char text[LEDGER_BUDGET_MAX];

    return ledger_count_spent(budget_row_name(b, u, text), first, delta,
                              u->at_ms, tx);
}

static bool is_counted(const struct ledger_use *u, enum budget b)
{
    return b != BELOW || u->talk.n;
}

void ledger_use_budgets(const struct ledger_settings *s,
                        const struct ledger_use *u, struct tx *tx)
{
    for (enum budget b = 0; b < N_BUDGETS; b++) {
        struct tx_op *op =
            is_counted(u, b) ? budget_count(u, b, 0, u->price, tx) : NULL;
        int64_t limit = settings_limit(s, b);

        if (op && limit)
            tx_if(op, SPENT_AMOUNT, IS_AT_MOST, value_int(limit - u->price));
    }
}

/* A row that retention has removed meanwhile comes back with zero: the end of a
 * turn never fails because of a budget. */
void ledger_give_back(const struct ledger_use *u, struct tx *tx)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        if (is_counted(u, b))
            budget_count(u, b, u->price, -u->price, tx);
}

static void budget_describe(enum budget b, const struct msg *m, struct str of,
                            struct why *out)
{
    switch (b) {
    case PER_DAY:
        why_err(out, OK, "the budget of %.*s for the day %.*s (UTC)",
                STR_ARG(m->ledger.payer), DAY_CHARS, of.p + of.n - DAY_CHARS);
        return;
    case PER_CONVERSATION:
        why_err(out, OK, "the budget of the conversation %.*s",
                STR_ARG(m->task.conversation_id));
        return;
    case PER_ROOT:
    case BELOW:
    case N_BUDGETS: break;
    }
    why_err(out, OK, "the budget of all that %.*s leads to",
            STR_ARG(str_sub(of, prefixes[PER_ROOT].n, of.n)));
}

enum err ledger_explain_budget(const struct ledger_settings *s,
                               const struct msg *m, struct str of,
                               int64_t spent, bool is_known, struct why *why)
{
    enum budget b = PER_DAY;
    struct why budget;
    int64_t limit, left;

    while (!str_starts(of, prefixes[b])) {
        b++;
        assert(b < N_BUDGETS);
    }
    limit = settings_limit(s, b);
    left = limit > spent ? limit - spent : 0;
    budget_describe(b, m, of, &budget);
    if (!is_known || left >= m->ledger.price_micros) /* enough by now */
        return why_err(why, ERR_BUDGET,
                       "%.*s costs %s, and of %s, which is %s, less is left",
                       STR_ARG(m->choice.agent),
                       amount_write(m->ledger.price_micros).text, budget.text,
                       amount_write(limit).text);
    return why_err(
        why, ERR_BUDGET, "%.*s costs %s, and of %s, which is %s, %s is left",
        STR_ARG(m->choice.agent), amount_write(m->ledger.price_micros).text,
        budget.text, amount_write(limit).text, amount_write(left).text);
}
