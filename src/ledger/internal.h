#ifndef LEDGER_INTERNAL_H
#define LEDGER_INTERNAL_H

/* What the files of the room share. */

#include "base/amount.h"
#include "ledger/ledger.h"

enum {
    LEDGER_OF_MAX = ID_BYTES + 24,           /* "task_…:TURN" */
    LEDGER_POSTING_MAX = LEDGER_OF_MAX + 16, /* and ":capture" */
    /* "conversation:USER/AGENT@USER/SESSION" */
    LEDGER_BUDGET_MAX = 5 * PRINCIPAL_NAME_MAX,
};

#define LEDGER_NO_FLOOR INT64_MIN

struct ledger {
    struct ledger_settings s;
    struct ledger_budget *budgets; /* by their keys */
    size_t n_budgets, cap_budgets;
    size_t n_new_budgets; /* on their way to the store */
    bool has_spending;    /* something has cost something, perhaps */
    struct ledger_quotes *quotes;
};

/* "task_…:TURN": a turn in the tables. */
struct ledger_of {
    char text[LEDGER_OF_MAX];
};
struct ledger_of ledger_of(struct str task_id, int64_t turn);

/* What the entries of one posting have in common. */
struct ledger_posting {
    struct tx *tx;
    enum entry_kind kind;
    int64_t at_ms;
    struct str id;
    struct str task_id, agent, skill; /* of a task's */
    int64_t turn;
    struct str by, note; /* of an order */
};

/* More or less in an account, if that leaves it at its floor; and the entry
 * that says so. */
void ledger_post(const struct ledger_posting *p, struct str account,
                 int64_t amount, int64_t floor);

/* Budgets: budget.c. */

/* What a turn counts for. */
struct ledger_use {
    struct str user, conversation, root;
    struct str message_id; /* of the turn: says on which day */
    int64_t price, at_ms;
};
void ledger_use_budgets(const struct ledger_settings *s,
                        const struct ledger_use *u, struct tx *tx);
void ledger_give_back(const struct ledger_use *u, struct tx *tx);

/* Words for a budget that was not enough; `spent` of it, if that is known. */
enum err ledger_budget_words(const struct ledger_settings *s,
                             const struct msg *m, struct str of, int64_t spent,
                             bool is_known, struct why *why);

/* Budgets of users, orgs and agents: period.c. */

/* What a turn counts for in its day and its month. */
struct ledger_period_use {
    struct str user, org, agent; /* empty: none */
    struct str message_id;       /* of the turn: says in which */
    int64_t price, at_ms;
};
void ledger_use_periods(const struct ledger *l,
                        const struct ledger_period_use *u, struct tx *tx);
void ledger_give_back_periods(const struct ledger_period_use *u, struct tx *tx);

/* Whether that is the guard of such a budget; and words for it, with what is
 * used, if that is known. */
bool ledger_is_period(const struct tx_op *op);
enum err ledger_period_words(const struct ledger *l, struct msg *m,
                             const struct tx_op *op, int64_t spent,
                             bool is_known);

/* The ceiling: ceiling.c. */

/* What a turn counts for in its tree. */
struct ledger_tree {
    struct str id; /* empty: the turn is from before trees had ceilings */
    int64_t ceiling, price, at_ms;
};
/* m's tree and what it may cost, into m->ledger; the price is known. */
void ledger_set_ceiling(const struct ledger_settings *s, struct msg *m);
void ledger_use_tree(const struct ledger_tree *t, struct tx *tx);
void ledger_give_back_tree(const struct ledger_tree *t, struct tx *tx);

/* Whether that is the guard of a ceiling; and the words for it, with what the
 * tree has used, if that is known. */
bool ledger_is_ceiling(const struct tx_op *op);
enum err ledger_ceiling_words(struct msg *m, int64_t used, bool is_known);

/* Quotes: quote.c. */
struct ledger_quotes;
MUST_USE struct ledger_quotes *ledger_quotes_new(void); /* NULL: no memory */
void ledger_quotes_free(struct ledger_quotes *q);
int64_t ledger_quotes_add(struct ledger_quotes *q, const struct msg *m,
                          const struct agent *chosen);
enum err ledger_quotes_take(struct ledger_quotes *q, struct msg *m);

/* No more than was promised, if something was. ERR_QUOTE: to another agent. */
enum err ledger_keep_quote(struct msg *m, const struct agent *chosen);

/* The text that an operation's guard or a query names in that column. */
struct str ledger_guard_text(const struct tx_op *op, uint8_t column);

#endif
