#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

/* ledger: beside task, what a message costs and who pays.
 *
 * Micro-units in 64 bits, double entry. Money moves between accounts in
 * postings; each posting is two or more entries whose sum is zero:
 *
 *     outside        where money comes from, and goes to: below zero
 *     user:NAME      what a user can spend: never below zero
 *     reserved       what is promised to work that is going on
 *     creator:NAME   what an agent's creator has earned; below zero, what the
 *                    creator owes after a refund
 *     platform       fees, and the price of the house's own agents
 *
 *     accepted    user -> reserved                     reserve
 *     completed   reserved -> creator, platform        capture
 *     otherwise   reserved -> user                     release
 *     by an admin outside -> user                      topup
 *                 user -> outside                      refund
 *                 creator, platform -> user            refund (of a charge)
 *                 creator -> outside                   payout
 *
 * The first three once for a task and turn, by a row of `reservation` that
 * goes from reserved to captured or released and nowhere else, in the tx of
 * the task's own move; the others once for an id that whoever asks gives
 * them, by a row of `posting`. Whether there is enough is a guard in that tx,
 * not a look before: two who want the last unit cannot both have it. The root
 * user pays, however deep; the price is the one there was when it was
 * reserved. What costs nothing leaves no trace here.
 *
 * Budgets are counted in the same tx: what a user may spend in a day (UTC), in
 * a conversation, and under one root. What is released is given back to them,
 * of the day on which it was reserved; what is refunded later is not. They are
 * counted whether there is a limit or not, so one that is set counts from the
 * beginning.
 *
 * Admins set budgets for users, orgs and agents too, for a day or a month, and
 * users one for themselves (period.c). They warn once in a period, when
 * four fifths are used, and are guards in the accepting tx like the others.
 *
 * A turn that was captured is a charge. Its refund comes at once, also where
 * the creator was paid out before: the platform covers what the creator's
 * account lacks, the account goes below zero, and later earnings fill it
 * before anything can be paid out again.
 *
 * Every message has a ceiling: what it and all that is delegated because of it,
 * at any depth, may cost together. Whoever sends it says how much, or it is the
 * price and the allowance for delegations. All reservations of the tree are
 * counted in one row, and the guard on that row in each one's own tx is the
 * ceiling: however many agents delegate at once, whatever prices become
 * meanwhile, and wherever the server is killed. The ceiling is in the rows of
 * the tree's tasks (ceiling.c).
 *
 * Who was removed keeps the account, and nobody inherits it: a name is never
 * given again (access.h).
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

enum account_column {
    ACCOUNT_NAME,
    ACCOUNT_BALANCE,
    ACCOUNT_UPDATED_MS,
    N_ACCOUNT_COLUMNS,
};

enum reservation_column {
    RESERVATION_OF, /* "task_…:TURN" */
    RESERVATION_TASK_ID,
    RESERVATION_TURN,
    RESERVATION_PRICE,
    RESERVATION_PAYER, /* a user's name */
    RESERVATION_STATE, /* enum reservation_state */
    RESERVATION_CREATED_MS,
    RESERVATION_CLOSED_MS, /* NULL while it is reserved */
    N_RESERVATION_COLUMNS,
};

enum reservation_state {
    RESERVATION_RESERVED = 1,
    RESERVATION_CAPTURED = 2,
    RESERVATION_RELEASED = 3,
};

enum entry_column {
    ENTRY_SEQ,
    ENTRY_POSTING, /* what belongs together: "task_…:1:capture", or the id that
                    * was given for it */
    ENTRY_AT_MS,
    ENTRY_KIND, /* enum entry_kind */
    ENTRY_ACCOUNT,
    ENTRY_AMOUNT, /* more of it, or less */
    ENTRY_TASK_ID,
    ENTRY_TURN,
    ENTRY_AGENT,
    ENTRY_SKILL,
    ENTRY_BY,     /* who did it, of a top-up or a refund */
    ENTRY_NOTE,   /* their words */
    ENTRY_BECAME, /* of a reserve: enum reservation_state, as it is by now;
                   * NULL: of an entry from before it was kept */
    N_ENTRY_COLUMNS,
};

enum entry_kind {
    ENTRY_TOPUP = 1,
    ENTRY_REFUND = 2,
    ENTRY_RESERVE = 3,
    ENTRY_CAPTURE = 4,
    ENTRY_RELEASE = 5,
    ENTRY_PAYOUT = 6,
};

/* What somebody asked for, by the id they gave it. */
enum posting_column {
    POSTING_ID,
    POSTING_KIND,    /* enum entry_kind */
    POSTING_ACCOUNT, /* whose, as account_table; or the task's turn */
    POSTING_AMOUNT,
    POSTING_BY,
    POSTING_AT_MS,
    POSTING_NOTE, /* NULL: none */
    N_POSTING_COLUMNS,
};

/* What was spent, or is reserved, of a budget. */
enum spent_column {
    SPENT_OF, /* "day:USER:20261116", "conversation:OWNER/ID", "root:task_…",
               * "tree:msg_…" */
    SPENT_AMOUNT,
    SPENT_UPDATED_MS,
    N_SPENT_COLUMNS,
};

/* A budget that somebody set. */
enum budget_column {
    BUDGET_KEY,  /* "user:anna:day" */
    BUDGET_KIND, /* enum budget_kind */
    BUDGET_NAME, /* as it is written */
    BUDGET_PERIOD,
    BUDGET_LIMIT, /* micro-units */
    BUDGET_BY,
    BUDGET_UPDATED_MS,
    BUDGET_WARNED, /* the period that it was warned of, "2026-11"; NULL: none */
    N_BUDGET_COLUMNS,
};

/* The numbers are kept in the store. */
enum budget_kind {
    BUDGET_USER = 1, /* by an admin */
    BUDGET_SELF = 2, /* by the user, for themselves */
    BUDGET_ORG = 3,
    BUDGET_AGENT = 4,
};
enum budget_period { BUDGET_DAY = 1, BUDGET_MONTH = 2 }; /* of UTC */

struct str entry_kind_name(enum entry_kind k); /* "topup" */

/* What became of a reservation, for people: "reserved", "charged", "released".
 * Empty: not known. */
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

/* NULL: memory is gone. */
MUST_USE struct ledger *ledger_new(const struct ledger_settings *s);
void ledger_free(struct ledger *l);
void ledger_set(struct ledger *l, const struct ledger_settings *s);
const struct ledger_settings *ledger_settings(const struct ledger *l);

/* The walk of a message. */

/* The price of that skill of a, else of a itself, else nothing. */
int64_t ledger_price(const struct agent *a, struct str skill);

/* The skill that a runs for m, so that what it is told is what is paid for: the
 * given one; of a further turn that of the task; the nearest, where a was
 * chosen by its meaning. Where none of these is and a has skills with prices of
 * their own: its only one; the nearest, if a was weighed for this message; none
 * at all, if a has a price of its own; its dearest. Borrowed from all three. */
struct str ledger_skill(const struct msg *m, const struct agent *a,
                        const struct task *before);

/* Quotes (quote.c). What POST /api/route showed holds for LEDGER_QUOTE_MS: a
 * message that names the quote goes to that agent for that price, or for less
 * where it has become cheaper. Kept in memory alone, so many of each user and
 * so many in all: one that is lost is refused, and never replaced by a higher
 * price. */
enum {
    LEDGER_QUOTE_MS = 10 * 60 * 1000,
    LEDGER_QUOTES_OF_USER = 32, /* beyond, the oldest of the user's goes */
    LEDGER_QUOTES_MAX = 4096,
};

/* What m was appraised at is promised to its sender, under m->choice.id, until
 * the time that this returns. */
int64_t ledger_quote(struct ledger *l, const struct msg *m,
                     const struct agent *chosen);

/* The quote that m names, if it names one: its agent and its skill into
 * m->call, its price into m->ledger. ERR_QUOTE, ERR_BAD_REQUEST, ERR_NOMEM with
 * words. */
MUST_USE enum err ledger_take_quote(struct ledger *l, struct msg *m);

/* The skill, the price and the ceiling of m for that agent, into m->ledger.
 * ERR_NOMEM; ERR_QUOTE: the agent that was quoted is another's by now. */
MUST_USE enum err ledger_appraise(struct ledger *l, struct msg *m,
                                  const struct agent *chosen,
                                  const struct task *before);

/* ERR_CEILING, with words: the price alone is more than whoever sends m said
 * that it may cost. For m that was appraised. */
MUST_USE enum err ledger_check_ceiling(struct msg *m);

/* ERR_CEILING, with words: m names no agent, or goes on with what was cheaper
 * before, and its sender has not agreed to pay an outsider that much. */
MUST_USE enum err ledger_check_consent(struct msg *m,
                                       const struct agent *chosen,
                                       const struct task *before);

/* What m will cost and who pays, into m->ledger: before task_create.
 * ERR_CEILING as above. A batch costs nothing: what it is made of was paid for;
 * nor does what is dropped. `before` is the task that it is a further turn of:
 * who paid for that pays on, and nobody else can have them do so
 * (ERR_NOT_ALLOWED, with words). */
MUST_USE enum err ledger_ask(struct ledger *l, struct msg *m,
                             const struct agent *chosen,
                             const struct task *before);

/* The reservation, into m->tx: after task_create. */
void ledger_record(struct ledger *l, struct msg *m);

/* Why a tx was not committed: OK, it was not for want of money; ERR_FUNDS or
 * ERR_BUDGET or ERR_CEILING with words in m->why. These say more once it is
 * known how much there is: the query finds it, and ledger_tell says it
 * (whatever came of the query), to who pays and to admins. Others, and agents
 * that delegate, hear that it is too little. */
MUST_USE enum err ledger_refused(struct ledger *l, struct msg *m);
void ledger_left_query(const struct msg *m, struct query *q);
void ledger_tell(struct ledger *l, struct msg *m, const struct query *q);

/* The end of a turn, into its tx: captured when it was completed, else
 * released. `payee` has earned it; empty: the platform. */
void ledger_record_end(struct ledger *l, const struct task *t, struct str payee,
                       const struct task_result *r, int64_t at_ms,
                       struct tx *tx);

/* Whether that tx, an end, was not committed because the books are not as they
 * must be: a reservation that is not there, or less reserved than it says. The
 * task then ends without; ledger_check finds what is left. */
bool ledger_is_broken(const struct tx *tx);

/* By an admin. */

/* What somebody asks for. Borrowed strings. */
struct ledger_order {
    enum entry_kind kind; /* topup, refund or payout */
    struct str id;        /* once for each */
    struct str name;      /* the user's, of a payout the creator's, as they are
                           * written: a principal */
    int64_t amount;       /* 1 to LEDGER_AMOUNT_MAX */
    struct str by, note;  /* who, and their words; note may be empty */
    int64_t at_ms;
};

/* ERR_BAD_REQUEST with words: the amount, the id, the name or the note is not
 * as above. */
MUST_USE enum err ledger_order_check(const struct ledger_order *o,
                                     struct why *why);

struct ledger_account {
    char text[LEDGER_ACCOUNT_MAX];
};

/* What a charge's refund moves. */
struct ledger_refunded {
    int64_t amount;                /* to the payer */
    int64_t from_creator;          /* of it; the rest is the platform's fee */
    struct ledger_account creator; /* empty: all was the platform's */
};

/* Into tx; o was checked. A refund takes what the user has back outside, a
 * payout what a creator has earned; neither below zero. */
void ledger_order(const struct ledger_order *o, struct tx *tx);

static inline void ledger_topup(struct ledger_order o, struct tx *tx)
{
    o.kind = ENTRY_TOPUP;
    ledger_order(&o, tx);
}

static inline void ledger_refund(struct ledger_order o, struct tx *tx)
{
    o.kind = ENTRY_REFUND;
    ledger_order(&o, tx);
}

static inline void ledger_payout(struct ledger_order o, struct tx *tx)
{
    o.kind = ENTRY_PAYOUT;
    ledger_order(&o, tx);
}

/* Why a tx with an order in it was not committed: ERR_EXISTS, the id was used
 * before (ledger_posting_query, ledger_is_same say whether for the same);
 * ERR_FUNDS, there is not that much; ERR_LIMIT, the balance would be too large;
 * else the tx's own error. With words. OK: it was committed. */
MUST_USE enum err ledger_order_refused(const struct tx *tx, struct why *why);
void ledger_posting_query(struct query *q, struct str id);
/* A row of posting_table: the same was asked for then. */
bool ledger_is_same(const struct ledger_order *o, const struct row *r);

/* The charge for a turn goes back to its payer, from those who got it; once,
 * whatever the id: the posting is "task_…:TURN:refund". o->amount is how much
 * of it, zero for all; the platform gives back its fee in proportion, rounded
 * down, and the creator the rest. o->kind, name and id do not matter. A creator
 * who was paid out goes below zero: the platform covers the refund, and the
 * creator owes it. `entries` is what ledger_turn_query found. ERR_NOT_FOUND:
 * nothing was charged for it; ERR_BAD_REQUEST: it is more than the charge;
 * ERR_LIMIT: not all of it was read. With words. */
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
    int64_t became; /* enum reservation_state; zero: not known, or no reserve */
    struct str posting, account, task_id, agent, skill, by, note; /* lent */
};
void ledger_entry_from(struct ledger_entry *e, const struct row *r);

/* One account's row, which is not there as long as nothing was posted; or all
 * of them by their names, behind `after`. */
void ledger_balance_query(struct query *q, struct str account);
void ledger_balances_query(struct query *q, struct str after, size_t limit);

/* What is reserved of a user's: open reservations behind `after`, by their
 * RESERVATION_OF. What was spent on the day (UTC) of at_ms: one row, or none.
 * The entry that a task's last turn was paid by, if one was. */
void ledger_reserved_query(struct query *q, struct str user, struct str after,
                           size_t limit);
void ledger_day_query(struct query *q, struct str user, int64_t at_ms);
void ledger_root_query(struct query *q, struct str root); /* under that one */
void ledger_conversation_query(struct query *q, struct str user,
                               struct str conversation); /* that user's */

/* False: nothing has ever cost anything, and there is nothing to look for. At
 * start it is noted where there is a row of spent_table. */
bool ledger_has_spending(const struct ledger *l);
void ledger_note_spending(struct ledger *l);
void ledger_last_turn_query(struct query *q, struct str task_id);

/* What was paid for a task, all its turns together and less what was refunded:
 * ledger_paid adds up what the query found, of some hundred turns at most
 * (has_more). */
void ledger_paid_query(struct query *q, struct str task_id);
int64_t ledger_paid(const struct query *q);

/* The entries of an account (empty: of all), from since_ms (inclusive) to
 * until_ms (exclusive; zero: no end), the newest first and those before
 * `before` (zero: from the end); or the oldest first and those after it. */
struct ledger_span {
    struct str account;
    int64_t since_ms, until_ms;
    int64_t cursor; /* an ENTRY_SEQ; zero: from where it begins */
    bool is_oldest_first;
    size_t limit;
};
void ledger_statement_query(struct query *q, const struct ledger_span *s);

/* Budgets of users, orgs and agents. */

enum {
    BUDGETS_MAX = 10000,   /* of all of them */
    BUDGETS_OF_MAX = 8,    /* that count for one turn */
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
enum budget_period budget_period_of(struct str name); /* zero: it is none */

/* When the period of that moment is over, and the next one begins. */
int64_t budget_period_end(enum budget_period p, int64_t at_ms);

/* What is used of it in the period of that moment: one row of spent_table, or
 * none. */
void budget_spent_query(struct query *q, const struct ledger_budget *b,
                        int64_t at_ms);

/* By its key, or by its place among all, in the order of the keys; and the
 * place of the first behind a key. Borrowed until the next change. */
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

/* Set it, in place of the one with the same key. ERR_BAD_REQUEST;
 * ERR_NOT_ALLOWED: one's own is more than an admin allows; ERR_LIMIT: there are
 * BUDGETS_MAX; with words. After OK it must be settled, whatever came of the
 * tx. */
MUST_USE enum err ledger_budget_put(struct ledger *l,
                                    const struct ledger_budget *b,
                                    struct tx *tx, struct why *why);
void ledger_budget_settle(struct ledger *l, const struct ledger_budget *b,
                          bool is_committed);

/* Remove it: guarded, it is there. Once that is committed memory forgets it. */
void ledger_budget_drop(const struct ledger_budget *b, struct tx *tx);
void ledger_budget_forget(struct ledger *l, const struct ledger_budget *b);

/* At start: all of them, in pages. ERR_NOMEM. */
void ledger_budgets_query(struct query *q, struct str after, size_t limit);
MUST_USE enum err ledger_budgets_take(struct ledger *l, const struct query *q);

/* A warning. Copies of those that count for a turn; whether so much is near the
 * limit, at 80 % of it; whether it was told in the period of that moment. The
 * tx is guarded: once in a period, and of this limit. When it came back without
 * an error of its own, memory follows. */
size_t ledger_budgets_of(const struct ledger *l, struct str user,
                         struct str org, struct str agent,
                         struct ledger_budget out[BUDGETS_OF_MAX]);
bool budget_is_near(const struct ledger_budget *b, int64_t spent);
bool budget_was_warned(const struct ledger_budget *b, int64_t at_ms);
void ledger_budget_warn(struct ledger_budget *b, int64_t at_ms, struct tx *tx);
void ledger_budget_was_warned(struct ledger *l, const struct ledger_budget *b);

/* Retention: closed reservations and budgets that nobody has used since
 * before_ms, up to `limit` of each; entries, accounts and postings stay. */
void ledger_prune(struct tx *tx, int64_t before_ms, size_t limit);

/* Whether the books are right: a fold over rows, in pages, beside a server that
 * goes on or without one. Every balance is the sum of its entries and, but
 * outside's, not below zero at any time, except a creator's, which a refund may
 * take below zero and a payout may not; every posting sums to zero, and so do
 * all; `reserved` is what is reserved; every turn was reserved once, closed at
 * most once, captured exactly when it was completed, and refunded at most once,
 * by at most its price.
 *
 *     while (ledger_check_next(c, &q)) {
 *         store_look(store, &q);    (or store_read, and on when it is there)
 *         ledger_check_take(c, &q);
 *         query_fini(&q);
 *     }
 *     r = ledger_check_report(c);
 *
 * What is read while things move is judged by what could be true then: each
 * balance must have been so at some moment while it was read. */
struct ledger_check;

/* Where turns are: the tables belong to another room. */
struct ledger_turns {
    const struct table *task;
    uint8_t task_seq, task_id, task_turn, task_status, task_price;
    const struct table *turn; /* those before a task's last one */
    uint8_t turn_task_seq, turn_number, turn_status, turn_price;
};

enum { LEDGER_PROBLEMS = 16 };

struct ledger_report {
    enum err err; /* it came to no end: a query's, or ERR_NOMEM */
    int64_t n_accounts, n_entries, n_postings, n_turns;
    int64_t n_reserved, reserved; /* open reservations, and their sum */
    int64_t owed; /* by creators, after refunds: what the platform covers */
    int64_t n_problems;                   /* zero: the books are right */
    struct why problems[LEDGER_PROBLEMS]; /* the first of them */
};

/* NULL: memory is gone. */
MUST_USE struct ledger_check *ledger_check_new(const struct ledger_turns *turns,
                                               const uint64_t seed[2]);
void ledger_check_free(struct ledger_check *c);
/* The next page to read, into a query that is then the caller's; false: all was
 * read. */
MUST_USE bool ledger_check_next(struct ledger_check *c, struct query *q);
void ledger_check_take(struct ledger_check *c, const struct query *q);
/* Once, after the last. Lent. */
const struct ledger_report *ledger_check_report(struct ledger_check *c);

#endif
