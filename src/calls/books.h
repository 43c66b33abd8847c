#ifndef CALLS_BOOKS_H
#define CALLS_BOOKS_H

/* books: what the calls about the ledger share: looking (ledger.c), moving
 * money (ledger_move.c), budgets (budgets.c), and whether all is right
 * (ledger_check.c). */

#include "calls/internal.h"
#include "ledger/ledger.h"

/* What is known so far of what was asked; owned by the open request. */
struct books {
    char user[PRINCIPAL_NAME_MAX + 1];
    bool is_unknown; /* no user goes by it now: there may be an account */
    struct ledger_account account;

    /* A balance. */
    int64_t balance, reserved, spent;
    int64_t earned; /* below zero: owed */
    bool has_account;
    char after[LEDGER_RESERVATION_MAX]; /* reservations are read behind it */

    /* A statement. */
    struct ledger_span span;
    bool is_csv;

    /* A move of money. */
    struct ledger_order order; /* its strings are those below */
    char id[LEDGER_ID_MAX + 32], note[SPEAK_NOTE_MAX + 1];
    bool has_key, is_repeat;
    struct id task_id;  /* of which it is the refund; empty: of none */
    int64_t turn, part; /* no part: all that it cost */
    struct ledger_refunded refunded;
    char of[ID_BYTES + 24]; /* "task_…:TURN" */
    struct tx tx;
    bool has_tx;

    struct ledger_check *check;

    /* Budgets: one that is changed, and a page of them. */
    struct ledger_budget budget;
    struct {
        struct ledger_budget budget;
        int64_t used;
    } * listed;
    size_t n_listed, at; /* of which `used` is known up to `at` */
    bool has_more;
};

/* A request with its books, for the caller's own account as yet. NULL: it was
 * refused. */
MUST_USE struct open *books_begin(struct call *c);

/* The query is back: false, it failed and that was said. */
MUST_USE bool books_read(struct open *o);

/* Whether the caller may see and change what is not their own. */
static inline bool books_are_open(const struct caller *c)
{
    return c->scopes & SCOPE_LEDGER;
}

/* There is neither a user nor an account of that name. */
void books_refuse_user(struct open *o);

#endif
