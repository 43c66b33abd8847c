#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

/* ledger: beside task in the walk. Keeps the price of each message and charges
 * its payer.
 *
 * Micro-units in 64 bits, double entry. Money moves between accounts in
 * postings; each posting is two or more entries whose sum is zero:
 *
 *     outside        source and sink of all money: below zero
 *     user:NAME      spendable balance of a user: never below zero
 *     reserved       promised to work in progress
 *     creator:NAME   earnings of an agent's creator; below zero, the debt
 *                    that a refund left
 *     platform       fees, and the price of agents without a creator
 *
 *     accepted    user -> reserved                     reserve
 *     completed   reserved -> creator, platform        capture
 *     otherwise   reserved -> user                     release
 *     by an admin outside -> user                      topup
 *                 user -> outside                      refund
 *                 creator, platform -> user            refund (of a charge)
 *                 creator -> outside                   payout
 *
 * Each of the first three happens once per task and turn: a row of
 * `reservation` goes from reserved to captured or released and nowhere else, in
 * the tx of the task's own change. The others happen once per id that the
 * requester chooses, by a row of `posting`. The balance is checked by a guard
 * in that tx, not by reading first: two requests cannot both spend the last
 * unit. The root user pays at any depth, at the price that was reserved. A free
 * turn leaves no trace here.
 *
 * The same tx counts budgets: a user's spending per day (UTC), per conversation
 * and per root. A release is subtracted from the day on which the amount was
 * reserved; a later refund is not. Spending is counted whether a limit is set
 * or not, so a new limit counts from the beginning.
 *
 * Admins also set daily or monthly budgets for users, orgs and agents, and
 * users set one for themselves (period.c). Such a budget warns once per period,
 * when 80 % are used, and is a guard in the accepting tx like the others.
 *
 * A captured turn is a charge. Its refund is paid at once, even if the creator
 * was paid out before: the platform covers what the creator's account lacks,
 * the account goes below zero, and later earnings fill it before the next
 * payout.
 *
 * Every message has a ceiling: the most that it and all delegations below it
 * may cost together. The sender sets it; the default is the price plus the
 * allowance for delegations. One row counts all reservations of the tree, and
 * the guard on that row in the tx of each reservation enforces the ceiling, for
 * any number of concurrent delegations, after price changes, and after a kill
 * of the server at any point. The rows of the tree's tasks store the ceiling
 * (ceiling.c).
 *
 * A removed user keeps the account, and no other user inherits it: a name is
 * never given again (access.h).
 *
 * Pure: appends operations, makes queries, reads rows that others fetched.
 * Threads: any, one at a time. */

#include "model/agent.h"
#include "model/msg.h"
#include "model/query.h"
#include "model/task.h"
#include "model/tx.h"

struct ledger;

extern const struct schema ledger_schema;
extern const struct table account_table, reservation_table, entry_table,
    spent_table, posting_table, budget_table;

#define ACCOUNT_COLUMNS(C)                       \
    C(ACCOUNT_NAME, "name", 1, COLUMN_TEXT)      \
    C(ACCOUNT_BALANCE, "balance", 1, COLUMN_INT) \
    C(ACCOUNT_UPDATED_MS, "updated_ms", 1, COLUMN_INT)

enum account_column { ACCOUNT_COLUMNS(COLUMN_NUMBER) N_ACCOUNT_COLUMNS };

#define RESERVATION_COLUMNS(C)                                        \
    C(RESERVATION_OF, "of", 1, COLUMN_TEXT) /* "task_…:TURN" */     \
    C(RESERVATION_TASK_ID, "task_id", 1, COLUMN_TEXT)                 \
    C(RESERVATION_TURN, "turn", 1, COLUMN_INT)                        \
    C(RESERVATION_PRICE, "price", 1, COLUMN_INT)                      \
    C(RESERVATION_PAYER, "payer", 1, COLUMN_TEXT) /* a user's name */ \
    /* enum reservation_state */                                      \
    C(RESERVATION_STATE, "state", 1, COLUMN_INT)                      \
    C(RESERVATION_CREATED_MS, "created_ms", 1, COLUMN_INT)            \
    /* NULL while it is reserved */                                   \
    C(RESERVATION_CLOSED_MS, "closed_ms", 1, COLUMN_INT)

enum reservation_column {
    RESERVATION_COLUMNS(COLUMN_NUMBER) N_RESERVATION_COLUMNS
};

enum reservation_state {
    RESERVATION_RESERVED = 1,
    RESERVATION_CAPTURED = 2,
    RESERVATION_RELEASED = 3,
};

#define ENTRY_COLUMNS(C)                                                   \
    C(ENTRY_SEQ, "seq", 1, READ(seq))                                      \
    /* id shared by its entries: "task_…:1:capture", or the id that the  \
     * admin chose */                                                      \
    C(ENTRY_POSTING, "posting", 1, READ(posting))                          \
    C(ENTRY_AT_MS, "at_ms", 1, READ(at_ms))                                \
    C(ENTRY_KIND, "kind", 1, READ(kind)) /* enum entry_kind */             \
    C(ENTRY_ACCOUNT, "account", 1, READ(account))                          \
    C(ENTRY_AMOUNT, "amount", 1, READ(amount)) /* change of the balance */ \
    C(ENTRY_TASK_ID, "task_id", 1, READ(task_id))                          \
    C(ENTRY_TURN, "turn", 1, READ(turn))                                   \
    C(ENTRY_AGENT, "agent", 1, READ(agent))                                \
    C(ENTRY_SKILL, "skill", 1, READ(skill))                                \
    /* who ordered a top-up, refund or payout */                           \
    C(ENTRY_BY, "by", 1, READ(by))                                         \
    C(ENTRY_NOTE, "note", 1, READ(note)) /* their note */                  \
    /* of a reserve: its present enum reservation_state; NULL: an entry    \
     * older than this column */                                           \
    C(ENTRY_BECAME, "became", 2, READ(became))

enum entry_column { ENTRY_COLUMNS(COLUMN_NUMBER) N_ENTRY_COLUMNS };

enum entry_kind {
    ENTRY_TOPUP = 1,
    ENTRY_REFUND = 2,
    ENTRY_RESERVE = 3,
    ENTRY_CAPTURE = 4,
    ENTRY_RELEASE = 5,
    ENTRY_PAYOUT = 6,
};

/* An admin's order, by the id that its sender chose. */
#define POSTING_COLUMNS(C)                                       \
    C(POSTING_ID, "id", 1, COLUMN_TEXT)                          \
    C(POSTING_KIND, "kind", 1, COLUMN_INT) /* enum entry_kind */ \
    /* as account_table; for a charge, "task_…:TURN" */        \
    C(POSTING_ACCOUNT, "account", 1, COLUMN_TEXT)                \
    C(POSTING_AMOUNT, "amount", 1, COLUMN_INT)                   \
    C(POSTING_BY, "by", 1, COLUMN_TEXT)                          \
    C(POSTING_AT_MS, "at_ms", 1, COLUMN_INT)                     \
    C(POSTING_NOTE, "note", 1, COLUMN_TEXT) /* NULL: none */

enum posting_column { POSTING_COLUMNS(COLUMN_NUMBER) N_POSTING_COLUMNS };

/* The amount of a budget that is spent or reserved. */
#define SPENT_COLUMNS(C)                                              \
    /* "day:USER:20261116", "conversation:OWNER/ID", "root:task_…", \
     * "below:OWNER/ID", "tree:msg_…" */                            \
    C(SPENT_OF, "of", 1, COLUMN_TEXT)                                 \
    C(SPENT_AMOUNT, "amount", 1, COLUMN_INT)                          \
    C(SPENT_UPDATED_MS, "updated_ms", 1, COLUMN_INT)

enum spent_column { SPENT_COLUMNS(COLUMN_NUMBER) N_SPENT_COLUMNS };

/* A budget that an admin or a user set. */
#define BUDGET_COLUMNS(C)                                               \
    C(BUDGET_KEY, "key", 1, COLUMN_TEXT)   /* "user:anna:day" */        \
    C(BUDGET_KIND, "kind", 1, BOTH(kind))  /* enum budget_kind */       \
    C(BUDGET_NAME, "name", 1, COLUMN_TEXT) /* with its original case */ \
    C(BUDGET_PERIOD, "period", 1, BOTH(period))                         \
    C(BUDGET_LIMIT, "limit", 1, BOTH(limit)) /* micro-units */          \
    C(BUDGET_BY, "by", 1, COLUMN_TEXT)                                  \
    C(BUDGET_UPDATED_MS, "updated_ms", 1, BOTH(updated_ms))             \
    /* period of the last warning, "2026-11"; NULL: none */             \
    C(BUDGET_WARNED, "warned", 1, COLUMN_TEXT)

enum budget_column { BUDGET_COLUMNS(COLUMN_NUMBER) N_BUDGET_COLUMNS };

/* The store keeps these numbers. */
enum budget_kind {
    BUDGET_USER = 1, /* by an admin */
    BUDGET_SELF = 2, /* by the user, for themselves */
    BUDGET_ORG = 3,
    BUDGET_AGENT = 4,
};
enum budget_period { BUDGET_DAY = 1, BUDGET_MONTH = 2 }; /* of UTC */

struct str entry_kind_name(enum entry_kind k); /* "topup" */

/* The state of a reservation for people: "reserved", "charged", "released".
 * Empty: unknown. */
struct str reservation_state_name(int64_t state);

#define LEDGER_AMOUNT_MAX INT64_C(1000000000000000000) /* of one posting */

enum {
    LEDGER_ID_MAX = 64,    /* of a posting: letters, digits, '.', '_', '-' */
    LEDGER_NOTE_MAX = 256, /* bytes */
    LEDGER_ACCOUNT_MAX = PRINCIPAL_NAME_MAX + 16,
    LEDGER_RESERVATION_MAX = ID_BYTES + 24, /* "task_…:TURN" */
};

struct ledger_settings {
    int64_t fee_ppm; /* of each price, for the platform: parts in a million,
                      * rounded down */
    /* Micro-units; zero: no budget. */
    int64_t per_day, per_conversation, per_root;
    int64_t delegation_allowance; /* micro-units beyond its price that a message
                                   * without max_cost_micros may cost */
};

/* NULL: out of memory for the quotes. */
MUST_USE struct ledger *ledger_new(const struct ledger_settings *s);
void ledger_free(struct ledger *l);
void ledger_set(struct ledger *l, const struct ledger_settings *s);
const struct ledger_settings *ledger_settings(const struct ledger *l);

/* In the walk of a message. */

/* The price of the agent's skill, else of the agent, else zero. */
int64_t ledger_price(const struct agent *a, struct str skill);

/* The skill that `a` runs for m, so that the skill sent to the agent is the
 * skill that is paid for: the given one; on a further turn, the task's; the
 * nearest one, if `a` was chosen semantically. If none of these applies and `a`
 * has skills with their own prices: its only skill; the nearest one, if `a` was
 * a candidate for this message; none, if `a` has its own price; its most
 * expensive skill. Borrowed from m, a or before. */
struct str ledger_skill(const struct msg *m, const struct agent *a,
                        const struct task *before);

/* Quotes (quote.c). A price shown by POST /api/route holds for LEDGER_QUOTE_MS:
 * a message that names the quote goes to that agent for that price, or for less
 * if it has become cheaper. Quotes live in memory only, limited per user and in
 * total. A message that names a lost quote is rejected, never charged more. */
enum {
    LEDGER_QUOTE_MS = 10 * 60 * 1000,
    LEDGER_QUOTES_OF_USER = 32, /* above, the user's oldest is evicted */
    LEDGER_QUOTES_MAX = 4096,
};

/* Promise the sender of m the price that ledger_appraise found, under
 * m->choice.id. Returns the time at which the quote expires; zero: no quote. */
int64_t ledger_quote(struct ledger *l, const struct msg *m,
                     const struct agent *chosen);

/* If m names a quote, copy its agent and skill to m->call and its price to
 * m->ledger. ERR_QUOTE, ERR_BAD_REQUEST, with a message; ERR_NOMEM. */
MUST_USE enum err ledger_take_quote(struct ledger *l, struct msg *m);

/* Write the skill, the price and the ceiling of m for that agent to m->ledger.
 * ERR_NOMEM; ERR_QUOTE: the quoted agent's name now belongs to another. */
MUST_USE enum err ledger_appraise(struct ledger *l, struct msg *m,
                                  const struct agent *chosen,
                                  const struct task *before);

/* ERR_CEILING, with a message: the price alone exceeds the sender's limit. For
 * an m that was appraised. */
MUST_USE enum err ledger_check_ceiling(struct msg *m);

/* ERR_CEILING, with a message: m names no agent, or continues at a higher price
 * than before, and its sender has not agreed to pay an outsider that much. */
MUST_USE enum err ledger_check_consent(struct msg *m,
                                       const struct agent *chosen,
                                       const struct task *before);

/* Write the cost of m and its payer to m->ledger, before task_create. Errors as
 * for the three above. A batch is free, since its messages were paid for; so is
 * a dropped message. `before` is the task that m continues: only the user who
 * paid for it can continue it (ERR_NOT_ALLOWED, with a message). */
MUST_USE enum err ledger_ask(struct ledger *l, struct msg *m,
                             const struct agent *chosen,
                             const struct task *before);

/* Add the reservation to m->tx, after task_create. */
void ledger_record(void *ledger, struct msg *m);

/* Why a tx was not committed. OK: for another reason than money. Else
 * ERR_FUNDS, ERR_BUDGET or ERR_CEILING with a message in m->why. To add the
 * amounts, run the query of ledger_left_query and call ledger_tell, also after
 * a failed query. Only the payer and admins see amounts; others, and agents
 * that delegate, read that it is too little. */
MUST_USE enum err ledger_refused(void *ledger, struct msg *m);
void ledger_left_query(const struct msg *m, struct query *q);
void ledger_tell(struct ledger *l, struct msg *m, const struct query *q);

/* Append the end of a turn to its tx: captured if it was completed, else
 * released. */
void ledger_record_end(void *ledger, const struct turn_end *end, struct tx *tx);

/* Whether that tx, an end, failed because the books are wrong: the reservation
 * is missing, or `reserved` holds less than it should. The task then ends
 * without them; ledger_check reports the difference. */
bool ledger_is_broken(const struct tx *tx);

/* By an admin. */

/* An order of an admin. Borrowed strings. */
struct ledger_order {
    enum entry_kind kind; /* topup, refund or payout */
    struct str id;        /* unique */
    struct str name;      /* user of the account; of a payout, the creator */
    int64_t amount;       /* 1 to LEDGER_AMOUNT_MAX */
    struct str by, note;  /* the admin and a note, which may be empty */
    int64_t at_ms;
};

/* ERR_BAD_REQUEST, with a message: the amount, id, name or note is not as
 * described above. */
MUST_USE enum err ledger_order_check(const struct ledger_order *o,
                                     struct why *why);

struct ledger_account {
    char text[LEDGER_ACCOUNT_MAX];
};

/* The amounts that the refund of a charge moves. */
struct ledger_refunded {
    int64_t amount;                /* to the payer */
    int64_t from_creator;          /* part of it; the rest is the fee */
    struct ledger_account creator; /* empty: all went to the platform */
};

/* Append o, which was checked, to tx. A refund takes money from the user back
 * outside, a payout takes a creator's earnings; neither goes below zero. */
void ledger_order(const struct ledger_order *o, struct tx *tx);

/* Why a tx with an order was not committed, with a message: ERR_EXISTS: the id
 * was used before (ledger_posting_query and ledger_is_same show whether for the
 * same order); ERR_FUNDS: too little money; ERR_LIMIT: the balance would be too
 * large; else the tx's own error. OK: it was committed. */
MUST_USE enum err ledger_order_refused(const struct tx *tx, struct why *why);
void ledger_posting_query(struct query *q, struct str id);
/* Whether a row of posting_table has the same order. */
bool ledger_is_same(const struct ledger_order *o, const struct row *r);

/* Refund the charge of a turn to its payer, from those who received it. Once,
 * whatever the id: the posting is "task_…:TURN:refund". o->amount is the part
 * to refund, zero for all; the platform returns its fee in proportion, rounded
 * down, and the creator the rest. o->kind, name and id do not matter. A creator
 * who was paid out goes below zero: the platform covers the refund, and the
 * creator owes it. `entries` is the result of ledger_turn_query. ERR_NOT_FOUND:
 * the turn has no charge; ERR_BAD_REQUEST: more than the charge; ERR_LIMIT: the
 * result is incomplete. With a message. */
void ledger_turn_query(struct query *q, struct str task_id, int64_t turn);
MUST_USE enum err ledger_refund_turn(const struct ledger_order *o,
                                     const struct query *entries, struct tx *tx,
                                     struct ledger_refunded *out,
                                     struct why *why);

/* Balances and statements. */

struct ledger_account ledger_user(struct str name);    /* "user:anna" */
struct ledger_account ledger_creator(struct str name); /* "creator:anna" */

struct ledger_entry {
    int64_t seq, at_ms, amount, turn;
    enum entry_kind kind;
    int64_t became; /* enum reservation_state; zero: unknown, or no reserve */
    struct str posting, account, task_id, agent, skill, by, note; /* lent */
};
void ledger_entry_from(struct ledger_entry *e, const struct row *r);

/* The row of one account, which exists once something was posted; or all rows
 * in the order of names, after `after`. */
void ledger_balance_query(struct query *q, struct str account);
void ledger_balances_query(struct query *q, struct str after, size_t limit);

/* A user's open reservations after `after`, by RESERVATION_OF. The user's
 * spending on the day (UTC) of at_ms: one row, or none. */
void ledger_reserved_query(struct query *q, struct str user, struct str after,
                           size_t limit);
void ledger_day_query(struct query *q, struct str user, int64_t at_ms);
void ledger_root_query(struct query *q, struct str root); /* below that root */
void ledger_conversation_query(struct query *q, struct str user,
                               struct str conversation); /* of that user */
/* The cost of delegations below the messages of that query's conversation, at
 * any depth. The conversation's own cost does not include it. */
void ledger_below_query(struct query *q, const struct query *conversation);

/* False: no turn with a price was ever accepted: there is nothing to query. At
 * start the caller notes it if spent_table has a row. */
bool ledger_has_spending(const struct ledger *l);
void ledger_note_spending(struct ledger *l);
/* The entry that paid for a task's last turn, if any. */
void ledger_last_turn_query(struct query *q, struct str task_id);

/* The net amount paid for a task, over all its turns and after refunds.
 * ledger_paid sums the result of the query, which covers the first thousand
 * turns or so (has_more). */
void ledger_paid_query(struct query *q, struct str task_id);
int64_t ledger_paid(const struct query *q);

/* The entries of an account (empty: of all), from since_ms (inclusive) to
 * until_ms (exclusive; zero: no end): newest first and before `cursor`, or
 * oldest first and after it. */
struct ledger_span {
    struct str account;
    int64_t since_ms, until_ms;
    int64_t cursor; /* an ENTRY_SEQ; zero: from the start of the span */
    bool is_oldest_first;
    size_t limit;
};
void ledger_statement_query(struct query *q, const struct ledger_span *s);

/* Budgets of users, orgs and agents. */

enum {
    BUDGETS_MAX = 10000,   /* in total */
    BUDGETS_OF_MAX = 8,    /* that one turn can count against */
    BUDGET_NAME_MAX = 128, /* of a user, an org or an agent */
    BUDGET_KEY_MAX = BUDGET_NAME_MAX + 16,
};

struct ledger_budget {
    enum budget_kind kind;
    enum budget_period period;
    char name[BUDGET_NAME_MAX + 1], by[PRINCIPAL_NAME_MAX + 1];
    int64_t limit, updated_ms;
    char warned[12]; /* BUDGET_WARNED */
};

struct str budget_kind_name(enum budget_kind k);      /* "user" */
struct str budget_period_name(enum budget_period p);  /* "day" */
enum budget_period budget_period_of(struct str name); /* zero: unknown */

/* The end of the period that contains at_ms, which begins the next one. */
int64_t budget_period_end(enum budget_period p, int64_t at_ms);

/* The amount used in the period that contains at_ms: one row of spent_table, or
 * none. */
void budget_spent_query(struct query *q, const struct ledger_budget *b,
                        int64_t at_ms);

/* Budgets by key, or by index in the order of keys; ledger_budgets_behind is
 * the index of the first one after a key. Borrowed until the next change. */
struct ledger_budget_key {
    char text[BUDGET_KEY_MAX];
};
struct ledger_budget_key ledger_budget_key(enum budget_kind kind,
                                           struct str name,
                                           enum budget_period period);
const struct ledger_budget *ledger_budget_find(const struct ledger *l,
                                               enum budget_kind kind,
                                               struct str name,
                                               enum budget_period period);
size_t ledger_budgets_behind(const struct ledger *l, struct str key);
const struct ledger_budget *ledger_budget_at(const struct ledger *l, size_t i);
size_t ledger_n_budgets(const struct ledger *l);

/* Set a budget, in place of the one with the same key. With a message:
 * ERR_BAD_REQUEST; ERR_NOT_ALLOWED: more than an admin allows that user;
 * ERR_LIMIT: BUDGETS_MAX exist. ERR_NOMEM. After OK the caller must settle it
 * whatever became of the tx. */
MUST_USE enum err ledger_budget_put(struct ledger *l,
                                    const struct ledger_budget *b,
                                    struct tx *tx, struct why *why);
void ledger_budget_settle(struct ledger *l, const struct ledger_budget *b,
                          bool is_committed);

/* Remove a budget; a guard checks that it exists. Once the tx is committed,
 * call ledger_budget_forget. */
void ledger_budget_drop(const struct ledger_budget *b, struct tx *tx);
void ledger_budget_forget(struct ledger *l, const struct ledger_budget *b);

/* At start: read all budgets, in pages. ERR_NOMEM. */
void ledger_budgets_query(struct query *q, struct str after, size_t limit);
MUST_USE enum err ledger_budgets_take(struct ledger *l, const struct query *q);

/* Warnings. ledger_budgets_of copies the budgets that count for a turn;
 * budget_is_near: at least 80 % are used; budget_was_warned: there was a
 * warning in the period that contains at_ms. The guards of ledger_budget_warn
 * hold once per period and limit. If the tx failed in no other way than by a
 * guard, call ledger_budget_was_warned. */
size_t ledger_budgets_of(const struct ledger *l, struct str user,
                         struct str org, struct str agent,
                         struct ledger_budget out[BUDGETS_OF_MAX]);
bool budget_is_near(const struct ledger_budget *b, int64_t spent);
bool budget_was_warned(const struct ledger_budget *b, int64_t at_ms);
void ledger_budget_warn(struct ledger_budget *b, int64_t at_ms, struct tx *tx);
void ledger_budget_was_warned(struct ledger *l, const struct ledger_budget *b);

/* Retention: remove closed reservations and budget counts that have not
 * changed since before_ms, up to `limit` of each. Entries, accounts and
 * postings stay. */
void ledger_prune(struct tx *tx, int64_t before_ms, size_t limit);

/* The audit: fold all rows, in pages, beside a running server or offline. It
 * checks that every balance is the sum of its entries and, except for outside,
 * was never below zero, although a refund may leave a creator below zero (a
 * payout may not); that every posting sums to zero, and so do all together;
 * that `reserved` is the sum of open reservations; that every turn was reserved
 * once, closed at most once, captured exactly if it was completed, and refunded
 * at most once and by at most its price.
 *
 *     while (ledger_check_next(c, &q)) {
 *         store_look(store, &q);    (or store_read, and continue in done)
 *         ledger_check_take(c, &q);
 *         query_fini(&q);
 *     }
 *     r = ledger_check_report(c);
 *
 * Rows that change during the audit are compared with all states that were
 * possible meanwhile: each balance must have been right at some moment. */
struct ledger_check;

/* Where to find turns: the ledger does not know the tables of the tasks. */
struct ledger_turns {
    const struct table *task;
    uint8_t task_seq, task_id, task_turn, task_status, task_price;
    const struct table *turn; /* turns before a task's last one */
    uint8_t turn_task_seq, turn_number, turn_status, turn_price;
};

enum { LEDGER_PROBLEMS = 16 };

struct ledger_report {
    enum err err; /* the audit stopped: a query failed, or ERR_NOMEM */
    int64_t n_accounts, n_entries, n_postings, n_turns;
    int64_t n_reserved, reserved; /* open reservations, and their sum */
    int64_t owed;       /* by creators after refunds; the platform covers it */
    int64_t n_problems; /* zero: the books are right */
    struct why problems[LEDGER_PROBLEMS]; /* the first of them */
};

MUST_USE struct ledger_check *ledger_check_new(const struct ledger_turns *turns,
                                               const uint64_t seed[2]);
void ledger_check_free(struct ledger_check *c);
/* The next page to read, into a query that the caller frees; false: all rows
 * were read. */
MUST_USE bool ledger_check_next(struct ledger_check *c, struct query *q);
void ledger_check_take(struct ledger_check *c, const struct query *q);
/* Call once, after the last page. Borrowed. */
const struct ledger_report *ledger_check_report(struct ledger_check *c);

#endif
