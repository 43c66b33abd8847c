/* POST /api/ledger/topup, refund, payout: an admin moves money.
 *
 * A repeated request with the same key gives the same posting: its id is
 * derived from the caller and the key, and the ledger accepts an id only once,
 * for ever. The ledger's guard checks that there is enough money; reads before
 * and after are for the answer alone. The refund of a turn happens once even
 * without a key, and a key still identifies only that refund. */
#include "api/ledger_calls.h"

#include <openssl/sha.h>
#include <stdio.h>

#include "base/amount.h"
#include "base/fault.h"

enum {
    KEY_BYTES = 20, /* of the hash: 160 bits */
    TOLD_MAX = 2048,
};

/* "post_…": derived from the key, or a new one. */
static enum err money_make_id(struct call *c, struct books *b, struct str key)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct id_maker ids;
    struct buf meaning;
    enum err e;

    b->has_key = key.n > 0 && !PLANTED("calls.key_forgotten");
    if (!b->has_key) {
        id_maker_init(&ids, rand_system());
        snprintf(b->id, sizeof(b->id), "%s",
                 id_make(&ids, "post", c->now_ms).text);
        return OK;
    }
    buf_init(&meaning, 4096);
    buf_addf(&meaning, "%s\n%.*s", c->caller.principal, STR_ARG(key));
    e = !meaning.over &&
                SHA256((const unsigned char *)meaning.p, meaning.n, hash)
            ? OK
            : ERR_NOMEM;
    buf_fini(&meaning);
    snprintf(b->id, sizeof(b->id), "post_");
    for (int i = 0; !e && i < KEY_BYTES; i++)
        snprintf(b->id + 5 + 2 * i, 3, "%02x", hash[i]);
    return e;
}

/* The answer. */

static void on_money_balance(struct request *o)
{
    struct json_out out = request_json(o);
    const struct books *b = o->own;

    if (!request_query_ok(o))
        return;
    json_open(&out, '{');
    json_member_str(&out, "posting", str_of(b->id));
    json_member_str(&out, "kind", entry_kind_name(b->order.kind));
    json_member_str(&out, "user", str_of(b->user));
    json_member_str(&out, "account", str_of(b->account.text));
    json_member_int(&out, "amount_micros", b->order.amount);
    json_member_int(&out, "balance_micros",
                    o->query.rows ? row_int(o->query.rows, ACCOUNT_BALANCE)
                                  : 0);
    json_member_int(&out, "at_ms", b->order.at_ms);
    json_member_str(&out, "by", b->order.by);
    json_member_str(&out, "note", b->order.note);
    json_member_str(&out, "task_id", str_of(b->task_id.text));
    json_member_known(&out, "turn", b->task_id.text[0], b->turn);
    json_member_bool(&out, "is_repeat", b->is_repeat);
    json_close(&out, '}');
    request_answer(o, b->is_repeat ? 200 : 201);
}

static void money_read_balance(struct request *o)
{
    request_drop_queries(o);
    ledger_balance_query(&o->query, str_of(books_of(o)->account.text));
    request_read(o, &o->query, on_money_balance);
}

/* The earlier posting is what is requested now. The posting of a turn's refund
 * is the same for all callers and notes, unless they request another amount;
 * the row of a key is not. */
static bool money_is_same(const struct books *b, const struct row *r)
{
    if (!b->task_id.text[0])
        return ledger_is_same(&b->order, r);
    return row_int(r, POSTING_KIND) == ENTRY_REFUND &&
           (!b->part || b->part == row_int(r, POSTING_AMOUNT)) &&
           str_eq(row_str(r, POSTING_ACCOUNT), str_of(b->of)) &&
           (str_eq(row_str(r, POSTING_ID), str_of(b->id)) ||
            str_eq(row_str(r, POSTING_NOTE), b->order.note));
}

/* The posting exists, or the id belongs to another one. */
static void on_money_posting(struct request *o)
{
    struct books *b = o->own;
    const struct row *r = o->query.rows;
    struct why why;

    if (!request_query_ok(o))
        return;
    if (r && b->part && b->part != row_int(r, POSTING_AMOUNT) &&
        str_eq(row_str(r, POSTING_ID), str_of(b->id))) {
        why_err(&why, ERR_EXISTS,
                "%s of this charge was already refunded, and a charge is "
                "refunded once",
                amount_write(row_int(r, POSTING_AMOUNT)).text);
        request_refuse(o, ERR_EXISTS, str_of(why.text), STR(""));
        return;
    }
    if (!r || !money_is_same(b, r)) {
        request_fail(o, r ? ERR_IDEMPOTENCY_MISMATCH : ERR_INTERNAL);
        return;
    }
    b->is_repeat = true;
    b->order.at_ms = row_int(r, POSTING_AT_MS);
    b->order.amount = row_int(r, POSTING_AMOUNT);
    money_read_balance(o);
}

/* Writing. */

static void on_money_moved(struct tx *tx, void *ctx)
{
    struct request *o = ctx;
    const struct books *b = o->own;
    struct why why = {""};
    enum err e = ledger_order_refused(tx, &why);

    if (!e)
        log_info(o->api->log, "ledger.moved",
                 LOG_S("kind", entry_kind_name(b->order.kind)),
                 LOG_S("account", str_of(b->account.text)),
                 LOG_I("amount_micros", b->order.amount),
                 LOG_S("by", b->order.by), LOG_S("posting", str_of(b->id)));
    if (!request_back(o))
        return;
    if (!e)
        money_read_balance(o);
    else if (e == ERR_EXISTS) {
        request_drop_queries(o);
        ledger_posting_query(&o->query, tx_value(tx->failed_op, POSTING_ID).s);
        request_read(o, &o->query, on_money_posting);
    } else
        request_refuse(o, e, str_of(why.text), STR(""));
}

/* Reported to the owner of the account, the author and admins. The cost of a
 * turn is reported with the turn. */
static void money_report(struct books *b, struct str user, struct str account,
                         int64_t amount)
{
    struct json_out out;
    struct buf data;
    char type[32];

    snprintf(type, sizeof(type), "ledger.%.*s",
             STR_ARG(entry_kind_name(b->order.kind)));
    buf_init(&data, TOLD_MAX);
    out = json_out(&data);
    json_open(&out, '{');
    json_member_text(&out, "user", user);
    json_member_text(&out, "account", account);
    json_member_int(&out, "amount_micros", amount);
    json_member_text(&out, "posting", str_of(b->id));
    json_member_text(&out, "by", b->order.by);
    json_close(&out, '}');
    feed_append_data(&b->tx, &data,
                     &(struct feed_entry){.at_ms = b->order.at_ms,
                                          .type = str_of(type),
                                          .task_id = str_of(b->task_id.text),
                                          .requester = b->order.by,
                                          .root_user = user});
}

/* A refund of a charge is reported to its payer, and to the creator who gives
 * it back or owes it. */
static void money_submit(struct request *o)
{
    struct books *b = o->own;
    struct str creator = str_of(b->refunded.creator.text), name = creator;

    money_report(b, str_of(b->user), str_of(b->account.text), b->order.amount);
    str_cut(&name, ':');
    if (creator.n)
        money_report(b, name, creator, -b->refunded.from_creator);
    request_out(o);
    store_submit(o->api->store, &books_of(o)->tx, on_money_moved, o);
}

static struct tx *money_begin_tx(struct books *b)
{
    tx_init(&b->tx);
    b->has_tx = true;
    return &b->tx;
}

/* The refund of a turn: its posting has its own id, and the key has a row that
 * says what it was used for. */

static void refund_claim_key(struct books *b)
{
    struct tx_op *op;

    if (!b->has_key)
        return;
    op = tx_insert(&b->tx, &posting_table);
    tx_set(op, POSTING_ID, value_text(str_of(b->id)));
    tx_set(op, POSTING_KIND, value_int(ENTRY_REFUND));
    tx_set(op, POSTING_ACCOUNT, value_text(str_of(b->of)));
    tx_set(op, POSTING_AMOUNT, value_int(b->order.amount));
    tx_set(op, POSTING_BY, value_text(b->order.by));
    tx_set(op, POSTING_AT_MS, value_int(b->order.at_ms));
    tx_set(op, POSTING_NOTE, value_text_or_null(b->order.note));
}

/* Find the payer in the entries. */
static bool refund_find_payer(struct books *b, const struct query *entries)
{
    QUERY_EACH(r, entries)
    {
        struct str account = row_str(r, ENTRY_ACCOUNT), name = account;

        if (row_int(r, ENTRY_KIND) != ENTRY_RESERVE ||
            row_int(r, ENTRY_AMOUNT) >= 0)
            continue;
        str_cut(&name, ':');
        snprintf(b->user, sizeof(b->user), "%.*s", STR_ARG(name));
        snprintf(b->account.text, sizeof(b->account.text), "%.*s",
                 STR_ARG(account));
        return true;
    }
    return false;
}

static void on_refund_entries(struct request *o)
{
    struct books *b = o->own;
    struct why why = {""};
    enum err e;

    if (!request_query_ok(o))
        return;
    if (!refund_find_payer(b, &o->query))
        e = why_err(&why, ERR_NOT_FOUND, "nothing was paid for turn %lld of %s",
                    (long long)b->turn, b->task_id.text);
    else
        e = ledger_refund_turn(&b->order, &o->query, money_begin_tx(b),
                               &b->refunded, &why);
    if (e) {
        request_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    b->order.amount = b->refunded.amount;
    snprintf(b->of, sizeof(b->of), "%s:%lld", b->task_id.text,
             (long long)b->turn);
    refund_claim_key(b);
    snprintf(b->id, sizeof(b->id), "%s:refund", b->of);
    request_drop_queries(o);
    money_submit(o);
}

static void refund_read_entries(struct request *o)
{
    request_drop_queries(o);
    ledger_turn_query(&o->query, str_of(books_of(o)->task_id.text),
                      books_of(o)->turn);
    request_read(o, &o->query, on_refund_entries);
}

static void on_refund_last_turn(struct request *o)
{
    struct why why;

    if (!request_query_ok(o))
        return;
    if (!o->query.rows) {
        why_err(&why, ERR_NOT_FOUND,
                "nothing was paid for %s: there is no such task, it cost "
                "nothing, or it is not completed",
                books_of(o)->task_id.text);
        request_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
        return;
    }
    books_of(o)->turn = row_int(o->query.rows, ENTRY_TURN);
    refund_read_entries(o);
}

static void refund_begin(struct request *o)
{
    struct books *b = o->own;

    if (b->turn) {
        refund_read_entries(o);
        return;
    }
    ledger_last_turn_query(&o->query, str_of(b->task_id.text));
    request_read(o, &o->query, on_refund_last_turn);
}

/* The request. */

/* Find the spelling of the user name. A top-up needs an existing user; the
 * money of a removed user can still be paid out. */
static bool money_find_user(struct call *c, struct books *b, struct str name,
                            struct why *why)
{
    struct access_user u;

    if (access_user_find(c->api->access, name, &u)) {
        snprintf(b->user, sizeof(b->user), "%s", u.name);
        return true;
    }
    snprintf(b->user, sizeof(b->user), "%.*s", STR_ARG(name));
    if (b->order.kind != ENTRY_TOPUP && principal_name_is_valid(name))
        return true;
    str_tame(b->user, strlen(b->user));
    why_err(why, ERR_NOT_FOUND,
            "there is no user \"%s\"; signalbox users list shows them",
            b->user);
    return false;
}

static void money_fill_order(struct call *c, struct books *b,
                             enum entry_kind kind,
                             const struct speak_money_call *said)
{
    snprintf(b->note, sizeof(b->note), "%.*s", STR_ARG(said->note));
    b->order = (struct ledger_order){.kind = kind,
                                     .amount = said->amount_micros,
                                     .note = str_of(b->note),
                                     .at_ms = c->now_ms};
}

static void money_order(struct call *c, struct request *o, struct str user)
{
    struct books *b = o->own;
    struct why why = {""};
    enum err e;

    if (!money_find_user(c, b, user, &why)) {
        request_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
        return;
    }
    b->order.name = str_of(b->user);
    b->account = b->order.kind == ENTRY_PAYOUT ? ledger_creator(b->order.name)
                                               : ledger_user(b->order.name);
    e = ledger_order_check(&b->order, &why);
    if (e) {
        request_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    ledger_order(&b->order, money_begin_tx(b));
    money_submit(o);
}

static void money_take_call(struct call *c, enum speak_money what,
                            enum entry_kind kind)
{
    struct speak_money_call said;
    struct why why = {""};
    struct buf meaning;
    struct request *o;
    enum err e;

    buf_init(&meaning, 4096);
    e = speak_money_post(&c->api->scratch, what, c->rq->body,
                         http_header(c->rq, STR("Idempotency-Key")), &said,
                         &meaning, &why);
    buf_fini(&meaning);
    if (!e && said.task_id.n && !id_is_valid(said.task_id, "task"))
        e = why_err(&why, ERR_NOT_FOUND, "there is no such task");
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!(o = books_request_begin(c)))
        return;
    money_fill_order(c, books_of(o), kind, &said);
    books_of(o)->order.by = caller_name(&o->caller);
    e = money_make_id(c, books_of(o), said.key);
    if (e) {
        request_fail(o, e);
        return;
    }
    books_of(o)->order.id = str_of(books_of(o)->id);
    books_of(o)->turn = said.turn;
    books_of(o)->part = said.task_id.n ? said.amount_micros : 0;
    if (said.task_id.n) {
        books_of(o)->task_id = id_from(said.task_id);
        refund_begin(o);
    } else {
        money_order(c, o, said.user);
    }
}

void call_ledger_topup(struct call *c)
{
    money_take_call(c, SPEAK_TOPUP, ENTRY_TOPUP);
}

void call_ledger_refund(struct call *c)
{
    money_take_call(c, SPEAK_REFUND, ENTRY_REFUND);
}

void call_ledger_payout(struct call *c)
{
    money_take_call(c, SPEAK_PAYOUT, ENTRY_PAYOUT);
}
