/* POST /api/ledger/topup, refund, payout: an admin moves money.
 *
 * Whoever gives a key can ask again and have the same posting: the posting's id
 * is made of who asks and of the key, and the ledger takes an id once, for
 * ever. Whether there is enough is the ledger's guard; what is read before or
 * after is for the answer alone. The refund of a task's turn needs no key to be
 * done once, and still its key stands for it and nothing else. */
#include "calls/books.h"

#include <openssl/sha.h>
#include <stdio.h>

#include "base/amount.h"
#include "base/fault.h"

enum {
    KEY_BYTES = 20, /* of a hash: 160 bits */
    TOLD_MAX = 2048,
};

/* "post_…": of a key the same for ever, else a new one. */
static enum err make_id(struct call *c, struct books *b, struct str key)
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

static void on_balance(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct books *b = o->books;

    if (!books_read(o))
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
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, b->is_repeat ? 200 : 201);
}

static void read_balance(struct open *o)
{
    open_drop_queries(o);
    ledger_balance_query(&o->query, str_of(o->books->account.text));
    o->has_query = true;
    open_read(o, &o->query, on_balance);
}

/* Whether what was posted then is what is wished now. A turn's own posting is
 * the same whoever asks for it and in what words, if they do not want another
 * amount; a key's row is not. */
static bool is_same(const struct books *b, const struct row *r)
{
    if (!b->task_id.text[0])
        return ledger_is_same(&b->order, r);
    return row_int(r, POSTING_KIND) == ENTRY_REFUND &&
           (!b->part || b->part == row_int(r, POSTING_AMOUNT)) &&
           str_eq(row_str(r, POSTING_ACCOUNT), str_of(b->of)) &&
           (str_eq(row_str(r, POSTING_ID), str_of(b->id)) ||
            str_eq(row_str(r, POSTING_NOTE), b->order.note));
}

/* A charge is refunded once, also a part of it. */
static void refuse_second(struct open *o, const struct row *r)
{
    struct why why;

    why_err(&why, ERR_EXISTS,
            "%s of this charge was refunded already, and a charge is refunded "
            "once",
            amount_write(row_int(r, POSTING_AMOUNT)).text);
    open_refuse(o, ERR_EXISTS, str_of(why.text), STR(""));
}

/* It was done before, or the id stands for something else. */
static void on_posting(struct open *o)
{
    struct books *b = o->books;
    const struct row *r = o->query.rows;

    if (!books_read(o))
        return;
    if (r && b->part && b->part != row_int(r, POSTING_AMOUNT) &&
        str_eq(row_str(r, POSTING_ID), str_of(b->id))) {
        refuse_second(o, r);
        return;
    }
    if (!r || !is_same(b, r)) {
        open_refuse(o, r ? ERR_IDEMPOTENCY_MISMATCH : ERR_INTERNAL, STR(""),
                    STR(""));
        return;
    }
    b->is_repeat = true;
    b->order.at_ms = row_int(r, POSTING_AT_MS);
    b->order.amount = row_int(r, POSTING_AMOUNT);
    read_balance(o);
}

static void read_posting(struct open *o, struct str id)
{
    open_drop_queries(o);
    ledger_posting_query(&o->query, id);
    o->has_query = true;
    open_read(o, &o->query, on_posting);
}

/* Writing. */

static void note_done(const struct open *o)
{
    const struct books *b = o->books;

    log_info(o->calls->log, "ledger.moved",
             LOG_S("kind", entry_kind_name(b->order.kind)),
             LOG_S("account", str_of(b->account.text)),
             LOG_I("amount_micros", b->order.amount), LOG_S("by", b->order.by),
             LOG_S("posting", str_of(b->id)));
}

static void on_written(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    struct why why = {""};
    enum err e = ledger_order_refused(tx, &why);

    if (!e)
        note_done(o);
    if (!open_back(o))
        return;
    if (!e)
        read_balance(o);
    else if (e == ERR_EXISTS)
        read_posting(o, tx_value(tx->failed_op, POSTING_ID).s);
    else
        open_refuse(o, e, str_of(why.text), STR(""));
}

/* For whose money it is, who moved it and admins. What turns cost is told with
 * the turns. */
static void tell(struct books *b, struct str user, struct str account,
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
    if (data.over || FAULT("calls.money_told"))
        b->tx.build_error = ERR_NOMEM;
    else
        feed_append(&b->tx,
                    &(struct feed_entry){.at_ms = b->order.at_ms,
                                         .type = str_of(type),
                                         .task_id = str_of(b->task_id.text),
                                         .requester = b->order.by,
                                         .root_user = user,
                                         .data = buf_str(&data)});
    buf_fini(&data);
}

/* Of a charge's refund two are told: its payer, and the creator who gives it
 * back, or owes it. */
static void submit(struct open *o)
{
    struct books *b = o->books;
    struct str creator = str_of(b->refunded.creator.text), name = creator;

    tell(b, str_of(b->user), str_of(b->account.text), b->order.amount);
    str_cut(&name, ':');
    if (creator.n)
        tell(b, name, creator, -b->refunded.from_creator);
    open_out(o);
    store_submit(o->calls->store, &o->books->tx, on_written, o);
}

static struct tx *begin_tx(struct books *b)
{
    tx_init(&b->tx);
    b->has_tx = true;
    return &b->tx;
}

/* The refund of a turn: its posting has a name of its own, and the key a row
 * that says what it was used for. */

static void claim_key(struct books *b)
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

/* Who had paid, by the entries. */
static bool find_payer(struct books *b, const struct query *entries)
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

static void on_entries(struct open *o)
{
    struct books *b = o->books;
    struct why why = {""};
    enum err e;

    if (!books_read(o))
        return;
    if (!find_payer(b, &o->query))
        e = why_err(&why, ERR_NOT_FOUND, "nothing was paid for turn %lld of %s",
                    (long long)b->turn, b->task_id.text);
    else
        e = ledger_refund_turn(&b->order, &o->query, begin_tx(b), &b->refunded,
                               &why);
    if (e) {
        open_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    b->order.amount = b->refunded.amount;
    snprintf(b->of, sizeof(b->of), "%s:%lld", b->task_id.text,
             (long long)b->turn);
    claim_key(b);
    snprintf(b->id, sizeof(b->id), "%s:refund", b->of);
    open_drop_queries(o);
    submit(o);
}

static void read_entries(struct open *o)
{
    open_drop_queries(o);
    ledger_turn_query(&o->query, str_of(o->books->task_id.text),
                      o->books->turn);
    o->has_query = true;
    open_read(o, &o->query, on_entries);
}

static void on_last_turn(struct open *o)
{
    struct why why;

    if (!books_read(o))
        return;
    if (!o->query.rows) {
        why_err(&why, ERR_NOT_FOUND,
                "nothing was paid for %s: there is no such task, it cost "
                "nothing, or it is not completed",
                o->books->task_id.text);
        open_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
        return;
    }
    o->books->turn = row_int(o->query.rows, ENTRY_TURN);
    read_entries(o);
}

static void refund_turn(struct open *o)
{
    struct books *b = o->books;

    if (b->turn) {
        read_entries(o);
        return;
    }
    ledger_last_turn_query(&o->query, str_of(b->task_id.text));
    o->has_query = true;
    open_read(o, &o->query, on_last_turn);
}

/* What is asked for. */

/* As the user writes their name. Who gets money must be there; of who was
 * removed, what they left can still be paid. */
static bool find_user(struct call *c, struct books *b, struct str name,
                      struct why *why)
{
    struct access_user u;

    if (access_user_find(c->calls->access, name, &u)) {
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

static void fill(struct call *c, struct books *b, enum entry_kind kind,
                 const struct speak_money_call *said)
{
    snprintf(b->note, sizeof(b->note), "%.*s", STR_ARG(said->note));
    b->order = (struct ledger_order){.kind = kind,
                                     .amount = said->amount_micros,
                                     .note = str_of(b->note),
                                     .at_ms = c->now_ms};
}

static void order(struct call *c, struct open *o, struct str user)
{
    struct books *b = o->books;
    struct why why = {""};
    enum err e;

    if (!find_user(c, b, user, &why)) {
        open_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
        return;
    }
    b->order.name = str_of(b->user);
    b->account = b->order.kind == ENTRY_PAYOUT ? ledger_creator(b->order.name)
                                               : ledger_user(b->order.name);
    e = ledger_order_check(&b->order, &why);
    if (e) {
        open_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    ledger_order(&b->order, begin_tx(b));
    submit(o);
}

static void take(struct call *c, enum speak_money what, enum entry_kind kind)
{
    struct speak_money_call said;
    struct why why = {""};
    struct buf meaning;
    struct open *o;
    enum err e;

    buf_init(&meaning, 4096);
    e = speak_money_post(&c->calls->scratch, what, c->rq->body,
                         http_header(c->rq, STR("Idempotency-Key")), &said,
                         &meaning, &why);
    buf_fini(&meaning);
    if (!e && said.task_id.n && !id_is_valid(said.task_id, "task"))
        e = why_err(&why, ERR_NOT_FOUND, "there is no such task");
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!(o = books_begin(c)))
        return;
    fill(c, o->books, kind, &said);
    o->books->order.by = caller_name(&o->caller);
    e = make_id(c, o->books, said.key);
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    o->books->order.id = str_of(o->books->id);
    o->books->turn = said.turn;
    o->books->part = said.task_id.n ? said.amount_micros : 0;
    if (said.task_id.n) {
        o->books->task_id = id_from(said.task_id);
        refund_turn(o);
    } else {
        order(c, o, said.user);
    }
}

void call_ledger_topup(struct call *c)
{
    take(c, SPEAK_TOPUP, ENTRY_TOPUP);
}

void call_ledger_refund(struct call *c)
{
    take(c, SPEAK_REFUND, ENTRY_REFUND);
}

void call_ledger_payout(struct call *c)
{
    take(c, SPEAK_PAYOUT, ENTRY_PAYOUT);
}
