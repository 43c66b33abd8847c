/* Budgets. A row counts what was spent or is reserved of one, and the guard on
 * it is the limit as it is now: a row that is too full already takes nothing
 * more and loses nothing.
 *
 * The day is that of the message which began the turn, by the time in its id.
 * The task's row has that id as long as the turn goes on, so that what is given
 * back comes to the same row it was taken from, and there is nothing to look
 * up. */
#include <assert.h>
#include <stdio.h>

#include "base/rfc3339.h"
#include "ledger/internal.h"

enum { DAY_CHARS = 10 }; /* "2026-11-16" */

enum budget { PER_DAY, PER_CONVERSATION, PER_ROOT, N_BUDGETS };

static const struct str prefixes[N_BUDGETS] = {
    [PER_DAY] = STR("day:"),
    [PER_CONVERSATION] = STR("conversation:"),
    [PER_ROOT] = STR("root:"),
};

static int64_t limit_of(const struct ledger_settings *s, enum budget b)
{
    switch (b) {
    case PER_DAY: return s->per_day;
    case PER_CONVERSATION: return s->per_conversation;
    case PER_ROOT: return s->per_root;
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

void ledger_day_query(struct query *q, struct str user, int64_t at_ms)
{
    char of[LEDGER_BUDGET_MAX];
    int n = day_of(user, at_ms, of);

    query_init(q, &spent_table, 1);
    query_if(q, SPENT_OF, IS, value_text((struct str){of, (size_t)n}));
}

void ledger_root_query(struct query *q, struct str root)
{
    char of[LEDGER_BUDGET_MAX];
    int n = snprintf(of, sizeof(of), "root:%.*s", STR_ARG(root));

    query_init(q, &spent_table, 1);
    query_if(q, SPENT_OF, IS, value_text((struct str){of, (size_t)n}));
}

void ledger_conversation_query(struct query *q, struct str user,
                               struct str conversation)
{
    char of[LEDGER_BUDGET_MAX];
    int n = snprintf(of, sizeof(of), "conversation:%.*s/%.*s", STR_ARG(user),
                     STR_ARG(conversation));

    query_init(q, &spent_table, 1);
    query_if(q, SPENT_OF, IS, value_text((struct str){of, (size_t)n}));
}

static struct str name_of(enum budget b, const struct ledger_use *u,
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
    case N_BUDGETS: break;
    }
    assert(n > 0 && n < LEDGER_BUDGET_MAX);
    return (struct str){out, (size_t)n};
}

static struct tx_op *count(const struct ledger_use *u, enum budget b,
                           int64_t first, int64_t delta, struct tx *tx)
{
    char text[LEDGER_BUDGET_MAX];
    struct str of = name_of(b, u, text);
    struct tx_op *op = tx_put(tx, &spent_table);

    tx_set(op, SPENT_OF, value_text(of));
    tx_set_new(op, SPENT_AMOUNT, value_int(first));
    op = tx_add(tx, &spent_table, SPENT_AMOUNT, delta, LEDGER_NO_FLOOR);
    tx_if(op, SPENT_OF, IS, value_text(of));
    tx_set(op, SPENT_UPDATED_MS, value_int(u->at_ms));
    return op;
}

void ledger_use_budgets(const struct ledger_settings *s,
                        const struct ledger_use *u, struct tx *tx)
{
    for (enum budget b = 0; b < N_BUDGETS; b++) {
        struct tx_op *op = count(u, b, 0, u->price, tx);
        int64_t limit = limit_of(s, b);

        if (limit)
            tx_if(op, SPENT_AMOUNT, IS_AT_MOST, value_int(limit - u->price));
    }
}

/* A row that retention has taken meanwhile comes back with nothing in it: an
 * end is never refused for a budget's sake. */
void ledger_give_back(const struct ledger_use *u, struct tx *tx)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        count(u, b, u->price, -u->price, tx);
}

static enum budget which(struct str of)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        if (str_starts(of, prefixes[b]))
            return b;
    assert(false);
    return PER_ROOT;
}

static void say_whose(enum budget b, const struct msg *m, struct str of,
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
    case N_BUDGETS: break;
    }
    why_err(out, OK, "the budget of all that %.*s leads to",
            STR_ARG(str_sub(of, prefixes[PER_ROOT].n, of.n)));
}

enum err ledger_budget_words(const struct ledger_settings *s,
                             const struct msg *m, struct str of, int64_t spent,
                             bool is_known, struct why *why)
{
    enum budget b = which(of);
    int64_t limit = limit_of(s, b), left = limit > spent ? limit - spent : 0;
    struct why whose;

    say_whose(b, m, of, &whose);
    if (!is_known || left >= m->ledger.price_micros) /* enough by now */
        return why_err(why, ERR_BUDGET,
                       "%.*s costs %s, and of %s, which is %s, less is left",
                       STR_ARG(m->choice.agent),
                       amount_write(m->ledger.price_micros).text, whose.text,
                       amount_write(limit).text);
    return why_err(
        why, ERR_BUDGET, "%.*s costs %s, and of %s, which is %s, %s is left",
        STR_ARG(m->choice.agent), amount_write(m->ledger.price_micros).text,
        whose.text, amount_write(limit).text, amount_write(left).text);
}
