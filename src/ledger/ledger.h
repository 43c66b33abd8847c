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
 *     creator:NAME   what an agent's creator has earned
 *     platform       fees, and the price of the house's own agents
 *
 *     accepted    user -> reserved                     reserve
 *     completed   reserved -> creator, platform        capture
 *     otherwise   reserved -> user                     release
 *
 * Each once for a task and turn, by a row of `reservation` that goes from
 * reserved to captured or released and nowhere else, in the tx of the task's
 * own move. Whether there is enough is a guard in that tx, not a look before:
 * two who want the last unit cannot both have it. The root user pays, however
 * deep; the price is the one there was when it was reserved. What costs
 * nothing leaves no trace here.
 *
 * Pure: appends operations, reads rows that others fetched. Threads: any, one
 * at a time. */

#include "model/agent.h"
#include "model/msg.h"
#include "model/query.h"
#include "model/task.h"
#include "model/tx.h"

struct ledger;

extern const struct schema ledger_schema;
extern const struct table account_table, reservation_table, entry_table,
    spent_table;

enum account_column {
    ACCOUNT_NAME,
    ACCOUNT_BALANCE,
    ACCOUNT_UPDATED_MS,
    N_ACCOUNT_COLUMNS,
};

enum reservation_column {
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
    ENTRY_POSTING, /* what belongs together: "task_…:1:capture", "post_…" */
    ENTRY_AT_MS,
    ENTRY_KIND, /* enum entry_kind */
    ENTRY_ACCOUNT,
    ENTRY_AMOUNT, /* more of it, or less */
    ENTRY_TASK_ID,
    ENTRY_TURN,
    ENTRY_AGENT,
    ENTRY_SKILL,
    ENTRY_BY,   /* who did it, of a top-up or a refund */
    ENTRY_NOTE, /* their words */
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

/* What was spent, or is reserved, of a budget. */
enum spent_column {
    SPENT_OF, /* "day:USER:20261116", "conversation:OWNER/ID", "root:task_…" */
    SPENT_AMOUNT,
    SPENT_UPDATED_MS,
    N_SPENT_COLUMNS,
};

struct str entry_kind_name(enum entry_kind k); /* "topup" */

#define LEDGER_AMOUNT_MAX INT64_C(1000000000000000000) /* of one posting */

struct ledger_settings {
    int64_t fee_ppm; /* of each price, for the platform: parts in a million,
                      * rounded down */
    /* Micro-units; zero: no budget. */
    int64_t per_day, per_conversation, per_root;
};

/* NULL: memory is gone. */
MUST_USE struct ledger *ledger_new(const struct ledger_settings *s);
void ledger_free(struct ledger *l);
void ledger_set(struct ledger *l, const struct ledger_settings *s);

/* The price of that skill of a, else of a itself, else nothing. */
int64_t ledger_price(const struct agent *a, struct str skill);

/* What m will cost, into m->ledger: before task_create. A batch costs nothing:
 * what it is made of was paid for; nor does what is dropped. */
void ledger_ask(struct ledger *l, struct msg *m, const struct agent *chosen);

/* The reservation, into m->tx: after task_create. */
void ledger_record(struct ledger *l, struct msg *m);

/* Why a tx was not committed: OK, it was not for want of money; ERR_FUNDS or
 * ERR_BUDGET with words in m->why. */
MUST_USE enum err ledger_refused(struct ledger *l, struct msg *m);

/* The end of a turn, into its tx: captured when it was completed, else
 * released. `payee` has earned it; empty: the platform. */
void ledger_record_end(struct ledger *l, const struct task *t, struct str payee,
                       const struct task_result *r, int64_t at_ms,
                       struct tx *tx);

#endif
