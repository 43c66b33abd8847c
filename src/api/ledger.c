/* GET /api/ledger/balance, accounts and statement. Callers see their own
 * accounts; the scope ledger opens those of all users. The name of a removed
 * user is never used again, so the account is still found by it. */
#include "api/ledger_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    RESERVED_ROWS = 500, /* reservations of one page */
};

#define CSV STR("text/csv; charset=utf-8")

static void books_fini(void *own)
{
    struct books *b = own;

    if (b->has_tx)
        tx_fini(&b->tx);
    ledger_check_free(b->check);
    free(b->listed);
}

struct request *books_request_begin(struct call *c)
{
    static const struct request_state state = {.bytes = sizeof(struct books),
                                               .fini = books_fini};
    struct request *o = request_of_call(c, &state);

    if (o)
        snprintf(books_of(o)->user, sizeof(books_of(o)->user), "%s",
                 c->caller.principal);
    return o;
}

void books_refuse_user(struct request *o)
{
    struct why why;

    why_err(&why, ERR_NOT_FOUND,
            "there is no user \"%s\", and no account of that name",
            books_of(o)->user);
    request_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
}

static bool ledger_refuse_others(struct call *c)
{
    api_refuse(c->api, c->id, ERR_NOT_ALLOWED,
               STR("accounts of others need a token with the scope ledger"),
               STR("{\"scope\":\"ledger\"}"));
    return false;
}

/* ?user=, or the caller. */
static bool ledger_read_user(struct call *c, struct access_user *out,
                             bool *is_there)
{
    struct str user = call_arg(c, "user");

    if (!user.p)
        user = caller_name(&c->caller);
    else if (!str_eq_nocase(user, caller_name(&c->caller)) &&
             !may_see_all_books(&c->caller))
        return ledger_refuse_others(c);
    *is_there = access_user_find(c->api->access, user, out);
    if (*is_there)
        return true;
    if (!principal_name_is_valid(user))
        return call_bad_request(
            c, "user must be the name of a user: up to 128 letters, "
               "digits and ._@-");
    snprintf(out->name, sizeof(out->name), "%.*s", STR_ARG(user));
    return true;
}

/* NULL: an error was answered. */
static struct request *ledger_open_for(struct call *c)
{
    struct access_user user;
    bool is_there;
    struct request *o;

    if (!ledger_read_user(c, &user, &is_there) || !(o = books_request_begin(c)))
        return NULL;
    snprintf(books_of(o)->user, sizeof(books_of(o)->user), "%s", user.name);
    books_of(o)->is_unknown = !is_there;
    return o;
}

/* A balance: four reads, one after the other, and then the used amount of each
 * budget. Budgets of agents are left out: they belong to no user, and are for
 * admins. */

static void ledger_answer_balance(struct request *o)
{
    const struct ledger_settings *s =
        ledger_settings(walk_ledger(o->api->walk));
    struct json_out out = request_json(o);
    const struct books *b = o->own;
    int64_t left = s->per_day > b->spent ? s->per_day - b->spent : 0;

    json_open(&out, '{');
    json_member_text(&out, "user", str_of(b->user));
    json_member_int(&out, "balance_micros", b->balance);
    json_member_int(&out, "reserved_micros", b->reserved);
    json_member_int(&out, "earned_micros", b->earned > 0 ? b->earned : 0);
    json_member_int(&out, "owed_micros", b->earned < 0 ? -b->earned : 0);
    json_key(&out, STR("budgets"));
    json_open(&out, '{');
    json_member_int(&out, "spent_today_micros", b->spent);
    json_member_known(&out, "left_today_micros", s->per_day != 0, left);
    json_member_known(&out, "per_day_micros", s->per_day != 0, s->per_day);
    json_member_known(&out, "per_conversation_micros", s->per_conversation != 0,
                      s->per_conversation);
    json_member_known(&out, "per_root_micros", s->per_root != 0, s->per_root);
    json_key(&out, STR("items"));
    json_open(&out, '[');
    budgets_put_listed(o, &out);
    json_close(&out, ']');
    json_close(&out, '}');
    json_close(&out, '}');
    request_answer(o, 200);
}

static void on_ledger_spent_today(struct request *o)
{
    if (!request_query_ok(o))
        return;
    if (o->query.rows)
        books_of(o)->spent = row_int(o->query.rows, SPENT_AMOUNT);
    request_drop_queries(o);
    budgets_read_of(o, str_of(books_of(o)->user), ledger_answer_balance);
}

static void ledger_read_reserved(struct request *o);

static void on_ledger_reserved(struct request *o)
{
    struct books *b = o->own;
    bool has_more = o->query.has_more;

    if (!request_query_ok(o))
        return;
    QUERY_EACH(r, &o->query)
    {
        b->reserved += row_int(r, RESERVATION_PRICE);
        snprintf(b->after, sizeof(b->after), "%.*s",
                 STR_ARG(row_str(r, RESERVATION_OF)));
    }
    request_drop_queries(o);
    if (has_more) {
        ledger_read_reserved(o);
        return;
    }
    ledger_day_query(&o->query, str_of(b->user), loop_wall_ms(o->api->loop));
    request_read(o, &o->query, on_ledger_spent_today);
}

static void ledger_read_reserved(struct request *o)
{
    ledger_reserved_query(&o->query, str_of(books_of(o)->user),
                          str_of(books_of(o)->after), RESERVED_ROWS);
    request_read(o, &o->query, on_ledger_reserved);
}

static void on_ledger_earned(struct request *o)
{
    struct books *b = o->own;

    if (!request_query_ok(o))
        return;
    if (o->query.rows)
        b->earned = row_int(o->query.rows, ACCOUNT_BALANCE);
    if (b->is_unknown && !b->has_account && !o->query.rows) {
        books_refuse_user(o);
        return;
    }
    request_drop_queries(o);
    ledger_read_reserved(o);
}

static void on_ledger_balance(struct request *o)
{
    struct books *b = o->own;

    if (!request_query_ok(o))
        return;
    b->has_account = o->query.rows != NULL;
    if (b->has_account)
        b->balance = row_int(o->query.rows, ACCOUNT_BALANCE);
    request_drop_queries(o);
    b->account = ledger_creator(str_of(b->user));
    ledger_balance_query(&o->query, str_of(b->account.text));
    request_read(o, &o->query, on_ledger_earned);
}

void call_ledger_balance(struct call *c)
{
    struct request *o = ledger_open_for(c);

    if (!o)
        return;
    books_of(o)->account = ledger_user(str_of(books_of(o)->user));
    ledger_balance_query(&o->query, str_of(books_of(o)->account.text));
    request_read(o, &o->query, on_ledger_balance);
}

/* All accounts. */

static void on_ledger_accounts(struct request *o)
{
    struct json_out out = request_json(o);
    struct str last = {NULL, 0};

    if (!request_query_ok(o))
        return;
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        last = row_str(r, ACCOUNT_NAME);
        json_open(&out, '{');
        json_member_text(&out, "account", last);
        json_member_int(&out, "balance_micros", row_int(r, ACCOUNT_BALANCE));
        json_member_int(&out, "updated_ms", row_int(r, ACCOUNT_UPDATED_MS));
        json_close(&out, '}');
    }
    speak_list_close(&out, o->query.has_more ? last : STR(""));
    request_answer(o, 200);
}

void call_ledger_accounts(struct call *c)
{
    struct request *o = request_of_call(c, NULL);

    if (!o)
        return;
    ledger_balances_query(&o->query, call_arg(c, "cursor"), call_limit(c));
    request_read_list(o, &o->query, on_ledger_accounts);
}

/* A statement. */

static void statement_write_lines(struct request *o, struct sheet *s)
{
    sheet_open(s, &o->api->body, s->is_csv, speak_line_columns(s->is_csv));
    QUERY_EACH(r, &o->query)
    {
        struct ledger_entry e;

        ledger_entry_from(&e, r);
        books_of(o)->span.cursor = e.seq;
        speak_line(
            s, &(struct speak_line){.seq = e.seq,
                                    .at_ms = e.at_ms,
                                    .posting = e.posting,
                                    .kind = entry_kind_name(e.kind),
                                    .account = e.account,
                                    .amount_micros = e.amount,
                                    .task_id = e.task_id,
                                    .turn = e.turn,
                                    .agent = e.agent,
                                    .skill = e.skill,
                                    .by = e.by,
                                    .note = e.note,
                                    .state = reservation_state_name(e.became)});
    }
    sheet_close(s);
}

/* A CSV file has no place for a cursor, so it is in a header. */
static void statement_answer_csv(struct request *o)
{
    struct sheet s = {.is_csv = true};
    struct http_header next = {STR("Next-Cursor"), {NULL, 0}};
    char cursor[32];

    statement_write_lines(o, &s);
    next.value.n = (size_t)snprintf(cursor, sizeof(cursor), "%lld",
                                    (long long)books_of(o)->span.cursor);
    next.value.p = cursor;
    api_answer_with(o->api, o->id, 200, CSV, &next, o->query.has_more);
    request_end(o);
}

static void on_statement_lines(struct request *o)
{
    struct buf *body = &o->api->body;
    struct sheet s = {.is_csv = false};

    if (!request_query_ok(o))
        return;
    if (books_of(o)->is_csv) {
        statement_answer_csv(o);
        return;
    }
    buf_add_str(body, STR("{\"items\":"));
    statement_write_lines(o, &s);
    if (o->query.has_more)
        buf_addf(body, ",\"next_cursor\":\"%lld\"}",
                 (long long)books_of(o)->span.cursor);
    else
        buf_add_str(body, STR(",\"next_cursor\":null}"));
    request_answer(o, 200);
}

static void statement_read_lines(struct request *o)
{
    struct ledger_span span = books_of(o)->span;

    span.account = str_of(books_of(o)->account.text);
    ledger_statement_query(&o->query, &span);
    request_read_list(o, &o->query, on_statement_lines);
}

static void on_statement_account(struct request *o)
{
    if (!request_query_ok(o))
        return;
    if (!o->query.rows) {
        books_refuse_user(o);
        return;
    }
    request_drop_queries(o);
    statement_read_lines(o);
}

static bool statement_read_span(struct call *c, struct ledger_span *out,
                                bool *is_csv)
{
    struct str format = call_arg(c, "format");

    *is_csv = format.p ? str_eq(format, STR("csv"))
                       : speak_accepts(http_header(c->rq, STR("Accept")),
                                       STR("text/csv"));
    *out = (struct ledger_span){
        .since_ms = call_int(c, "after_ms", 0),
        .until_ms = call_int(c, "before_ms", 0),
        .cursor = call_int(c, "cursor", 0),
        .limit = (size_t)call_int(c, "limit",
                                  *is_csv ? STATEMENT_CSV_LINES : LIST_LIMIT)};
    return *is_csv || out->limit <= LIST_MAX ||
           call_bad_request(c, "limit must be a whole number from 1 to 500, or "
                               "to 5000 as CSV");
}

/* An account by its full name, or all. */
static bool account_name_is_valid(struct str name)
{
    struct str rest = name, kind = str_cut(&rest, ':');

    if (str_eq(name, STR("all")) || str_eq(name, STR("platform")) ||
        str_eq(name, STR("reserved")) || str_eq(name, STR("outside")))
        return true;
    return (str_eq(kind, STR("user")) || str_eq(kind, STR("creator"))) &&
           principal_name_is_valid(rest);
}

/* False: an error was answered. An empty *whole: an account of the user. */
static bool statement_read_account(struct call *c, bool *is_earned,
                                   struct str *whole)
{
    struct str arg = call_arg(c, "account");

    *whole = (struct str){NULL, 0};
    *is_earned = str_eq(arg, STR("creator"));
    if (!arg.p || *is_earned || str_eq(arg, STR("user")))
        return true;
    if (!account_name_is_valid(arg))
        return call_bad_request(
            c, "account must be user or creator, for the scope "
               "ledger also platform, reserved, outside, all, "
               "user:NAME or creator:NAME");
    if (call_arg(c, "user").p)
        return call_bad_request(
            c, "user is only for account=user and account=creator");
    if (!may_see_all_books(&c->caller))
        return ledger_refuse_others(c);
    *whole = arg;
    return true;
}

void call_ledger_statement(struct call *c)
{
    struct ledger_span span;
    bool is_csv, is_earned;
    struct str whole;
    struct request *o;

    if (!statement_read_span(c, &span, &is_csv) ||
        !statement_read_account(c, &is_earned, &whole) ||
        !(o = ledger_open_for(c)))
        return;
    books_of(o)->span = span;
    books_of(o)->is_csv = is_csv;
    if (!whole.n)
        books_of(o)->account = is_earned
                                   ? ledger_creator(str_of(books_of(o)->user))
                                   : ledger_user(str_of(books_of(o)->user));
    else if (!str_eq(whole, STR("all"))) /* an empty name is all */
        snprintf(books_of(o)->account.text, sizeof(books_of(o)->account.text),
                 "%.*s", STR_ARG(whole));
    if (whole.n || !books_of(o)->is_unknown) {
        statement_read_lines(o);
        return;
    }
    ledger_balance_query(&o->query, str_of(books_of(o)->account.text));
    request_read(o, &o->query, on_statement_account);
}
