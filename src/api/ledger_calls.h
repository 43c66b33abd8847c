#ifndef API_LEDGER_CALLS_H
#define API_LEDGER_CALLS_H

/* Declarations shared by the calls about the ledger: reading (ledger.c), moving
 * money (ledger_move.c), budgets (budgets.c) and the audit
 * (ledger_audit_call.c). */

#include "api/internal.h"
#include "ledger/ledger.h"

/* The state of a ledger request; owned by the request. */
struct books {
    char user[PRINCIPAL_NAME_MAX + 1];
    bool is_unknown; /* no such user now, but there may be an account */
    struct ledger_account account;

    /* A balance. */
    int64_t balance, reserved, spent;
    int64_t earned; /* below zero: owed */
    bool has_account;
    char after[LEDGER_RESERVATION_MAX]; /* the next page of reservations is
                                           after it */

    /* A statement. */
    struct ledger_span span;
    bool is_csv;

    /* A move of money. */
    struct ledger_order order; /* its strings are the members below */
    char id[LEDGER_ID_MAX + 32], note[SPEAK_NOTE_MAX + 1];
    bool has_key, is_repeat;
    struct id task_id;  /* task to refund; empty: none */
    int64_t turn, part; /* part of the cost to refund; zero: all */
    struct ledger_refunded refunded;
    char of[ID_BYTES + 24]; /* "task_…:TURN" */
    struct tx tx;
    bool has_tx;

    struct ledger_check *check;

    /* Budgets: one to change, and a page of them. */
    struct ledger_budget budget;
    struct {
        struct ledger_budget budget;
        int64_t used;
    } * listed;
    size_t n_listed, at; /* `used` is known up to `at` */
    bool has_more;
    void (*listed_then)(struct request *o); /* called when all are known */
};

static inline struct books *books_of(const struct request *o)
{
    return o->own;
}

/* A request with its books, at first for the caller's own account. NULL: an
 * error was answered. */
MUST_USE struct request *books_request_begin(struct call *c);

/* The caller may see and change the accounts and budgets of others. */
static inline bool may_see_all_books(const struct caller *c)
{
    return c->scopes & SCOPE_LEDGER;
}

/* Read the budgets that apply to a user's messages and that the user may see,
 * with their used amounts, into books.listed; then call then(), or answer with
 * an error. budgets_put_listed writes them into an array. */
void budgets_read_of(struct request *o, struct str user,
                     void (*then)(struct request *o));
void budgets_put_listed(struct request *o, struct json_out *out);

/* Answer that there is no user and no account of that name. */
void books_refuse_user(struct request *o);

#endif
