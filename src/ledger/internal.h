#ifndef LEDGER_INTERNAL_H
#define LEDGER_INTERNAL_H

/* Shared by the files of the ledger. */

#include "base/amount.h"
#include "ledger/ledger.h"
#include "model/record.h"

enum {
    LEDGER_TURN_KEY_MAX = ID_BYTES + 24,           /* "task_…:TURN" */
    LEDGER_POSTING_MAX = LEDGER_TURN_KEY_MAX + 16, /* and ":capture" */
    /* "conversation:USER/AGENT@USER/SESSION" */
    LEDGER_BUDGET_MAX = 5 * PRINCIPAL_NAME_MAX,
};

#define LEDGER_NO_FLOOR INT64_MIN

struct ledger {
    struct ledger_settings s;
    struct ledger_budget *budgets; /* sorted by key */
    size_t n_budgets, cap_budgets;
    size_t n_new_budgets; /* in txs that are not settled */
    bool has_spending;    /* a priced turn was accepted, or may have been */
    struct ledger_quotes *quotes;
};

/* "task_…:TURN": names a turn in the tables. */
struct ledger_turn_key {
    char text[LEDGER_TURN_KEY_MAX];
};
struct ledger_turn_key ledger_turn_key(struct str task_id, int64_t turn);

/* The fields that all entries of one posting share. */
struct ledger_posting {
    struct tx *tx;
    enum entry_kind kind;
    int64_t at_ms;
    struct str id;
    struct str task_id, agent, skill; /* empty: not about a task */
    int64_t turn;
    struct str by, note; /* of an admin's order */
};

/* Change the balance of an account, guarded by its floor, and append the
 * entry. */
void ledger_post(const struct ledger_posting *p, struct str account,
                 int64_t amount, int64_t floor);

/* Copy s, cut to size. */
void ledger_copy(char *to, size_t size, struct str s);

/* Change one row of spent_table by delta; a new row starts at `first`. Returns
 * the operation, for a guard. */
struct tx_op *ledger_count_spent(struct str of, int64_t first, int64_t delta,
                                 int64_t updated_ms, struct tx *tx);
void ledger_spent_query(struct query *q, struct str of);

/* Budgets: budget.c. */

/* The budgets and the tree that a turn counts against. */
struct ledger_use {
    struct str user, conversation, root;
    struct str org, agent; /* empty: none */
    struct str talk; /* the conversation in which its tree began; empty: the
                      * turn is no delegation */
    struct str tree; /* empty: the turn is older than ceilings */
    struct str message_id; /* of the turn: determines the day and month */
    int64_t price, ceiling, at_ms;
};
void ledger_use_budgets(const struct ledger_settings *s,
                        const struct ledger_use *u, struct tx *tx);
void ledger_give_back(const struct ledger_use *u, struct tx *tx);

/* Explain the budget that had too little left; `spent` of it, if is_known. */
enum err ledger_explain_budget(const struct ledger_settings *s,
                               const struct msg *m, struct str of,
                               int64_t spent, bool is_known, struct why *why);

/* Budgets of users, orgs and agents: period.c. */

void ledger_use_periods(const struct ledger *l, const struct ledger_use *u,
                        struct tx *tx);
void ledger_give_back_periods(const struct ledger_use *u, struct tx *tx);

/* Whether op is the guard of such a budget; the explanation, with the amount
 * used, if is_known. */
bool ledger_is_period(const struct tx_op *op);
enum err ledger_explain_period(const struct ledger *l, struct msg *m,
                               const struct tx_op *op, int64_t spent,
                               bool is_known);

/* The ceiling: ceiling.c. */

/* Write m's tree and its ceiling to m->ledger, which has the price. */
void ledger_set_ceiling(const struct ledger_settings *s, struct msg *m);
void ledger_use_tree(const struct ledger_use *u, struct tx *tx);
void ledger_give_back_tree(const struct ledger_use *u, struct tx *tx);

/* Whether op is the guard of a ceiling; the explanation, with the amount used
 * by the tree, if is_known. */
bool ledger_is_ceiling(const struct tx_op *op);
enum err ledger_explain_ceiling(struct msg *m, int64_t used, bool is_known);

/* Quotes: quote.c. */
struct ledger_quotes;
MUST_USE struct ledger_quotes *ledger_quotes_new(void); /* NULL: no memory */
void ledger_quotes_free(struct ledger_quotes *q);
int64_t ledger_quotes_add(struct ledger_quotes *q, const struct msg *m,
                          const struct agent *chosen);
enum err ledger_quotes_take(struct ledger_quotes *q, struct msg *m);

/* Lower the price to the quoted one, if m names a quote. ERR_QUOTE: the quote
 * is for another agent. */
enum err ledger_keep_quote(struct msg *m, const struct agent *chosen);

/* The text that a condition of an operation compares with that column. */
struct str ledger_guard_text(const struct tx_op *op, uint8_t column);

#endif
