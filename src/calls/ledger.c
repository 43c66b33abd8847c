/* GET /api/ledger/balance, accounts and statement. Whoever may read sees their
 * own; the scope ledger opens everybody's. A user who was removed has a name
 * that nobody gets again, and so the account is found by it as before. */
#include "calls/books.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    RESERVED_ROWS = 500,  /* of one page */
    CSV_LINES_MAX = 5000, /* of one answer */
};

#define CSV STR("text/csv; charset=utf-8")

void books_free(struct books *b)
{
    if (!b)
        return;
    if (b->has_tx)
        tx_fini(&b->tx);
    ledger_check_free(b->check);
    free(b->listed);
    free(b);
}

struct open *books_begin(struct call *c)
{
    struct open *o = open_new(c);

    if (!o)
        return NULL;
    o->books = FAULT("calls.books") ? NULL : calloc(1, sizeof(*o->books));
    if (!o->books) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return NULL;
    }
    snprintf(o->books->user, sizeof(o->books->user), "%s", c->caller.principal);
    return o;
}

bool books_read(struct open *o)
{
    if (!o->query.err)
        return true;
    open_refuse(o, o->query.err, STR(""), STR(""));
    return false;
}

void books_refuse_user(struct open *o)
{
    struct why why;

    why_err(&why, ERR_NOT_FOUND,
            "there is no user \"%s\", and no account of that name",
            o->books->user);
    open_refuse(o, ERR_NOT_FOUND, str_of(why.text), STR(""));
}

static bool refuse(struct call *c, const char *words)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(words));
    return false;
}

static bool refuse_others(struct call *c)
{
    calls_refuse(c->calls, c->id, ERR_NOT_ALLOWED,
                 STR("other accounts than one's own need a token with the "
                     "scope ledger"),
                 STR("{\"scope\":\"ledger\"}"));
    return false;
}

/* ?user=, or who asks. */
static bool read_user(struct call *c, struct access_user *out, bool *is_there)
{
    struct str user = call_arg(c, "user");

    if (!user.p)
        user = caller_name(&c->caller);
    else if (!str_eq_nocase(user, caller_name(&c->caller)) &&
             !books_are_open(&c->caller))
        return refuse_others(c);
    *is_there = access_user_find(c->calls->access, user, out);
    if (*is_there)
        return true;
    if (!principal_name_is_valid(user))
        return refuse(c, "user must be a user's name: letters, digits and "
                         "._@-, up to 128 of them");
    snprintf(out->name, sizeof(out->name), "%.*s", STR_ARG(user));
    return true;
}

/* NULL: refused. */
static struct open *begin_for(struct call *c)
{
    struct access_user user;
    bool is_there;
    struct open *o;

    if (!read_user(c, &user, &is_there) || !(o = books_begin(c)))
        return NULL;
    snprintf(o->books->user, sizeof(o->books->user), "%s", user.name);
    o->books->is_unknown = !is_there;
    return o;
}

/* A balance: four things are read, one after the other. */

static void answer_balance(struct open *o)
{
    const struct ledger_settings *s =
        ledger_settings(walk_ledger(o->calls->walk));
    struct json_out out = json_out(&o->calls->body);
    const struct books *b = o->books;
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
    json_close(&out, '}');
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_spent(struct open *o)
{
    if (!books_read(o))
        return;
    if (o->query.rows)
        o->books->spent = row_int(o->query.rows, SPENT_AMOUNT);
    answer_balance(o);
}

static void ask_reserved(struct open *o);

static void on_reserved(struct open *o)
{
    struct books *b = o->books;
    bool has_more = o->query.has_more;

    if (!books_read(o))
        return;
    QUERY_EACH(r, &o->query)
    {
        b->reserved += row_int(r, RESERVATION_PRICE);
        snprintf(b->after, sizeof(b->after), "%.*s",
                 STR_ARG(row_str(r, RESERVATION_OF)));
    }
    open_drop_queries(o);
    if (has_more) {
        ask_reserved(o);
        return;
    }
    ledger_day_query(&o->query, str_of(b->user), loop_wall_ms(o->calls->loop));
    o->has_query = true;
    open_read(o, &o->query, on_spent);
}

static void ask_reserved(struct open *o)
{
    ledger_reserved_query(&o->query, str_of(o->books->user),
                          str_of(o->books->after), RESERVED_ROWS);
    o->has_query = true;
    open_read(o, &o->query, on_reserved);
}

static void on_earned(struct open *o)
{
    struct books *b = o->books;

    if (!books_read(o))
        return;
    if (o->query.rows)
        b->earned = row_int(o->query.rows, ACCOUNT_BALANCE);
    if (b->is_unknown && !b->has_account && !o->query.rows) {
        books_refuse_user(o);
        return;
    }
    open_drop_queries(o);
    ask_reserved(o);
}

static void on_balance(struct open *o)
{
    struct books *b = o->books;

    if (!books_read(o))
        return;
    b->has_account = o->query.rows != NULL;
    if (b->has_account)
        b->balance = row_int(o->query.rows, ACCOUNT_BALANCE);
    open_drop_queries(o);
    b->account = ledger_creator(str_of(b->user));
    ledger_balance_query(&o->query, str_of(b->account.text));
    o->has_query = true;
    open_read(o, &o->query, on_earned);
}

void call_ledger_balance(struct call *c)
{
    struct open *o = begin_for(c);

    if (!o)
        return;
    o->books->account = ledger_user(str_of(o->books->user));
    ledger_balance_query(&o->query, str_of(o->books->account.text));
    o->has_query = true;
    open_read(o, &o->query, on_balance);
}

/* All accounts. */

static void on_accounts(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    struct str last = {NULL, 0};

    if (!books_read(o))
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
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

void call_ledger_accounts(struct call *c)
{
    struct open *o;
    size_t limit;

    if (!call_limit(c, &limit) || !(o = open_new(c)))
        return;
    ledger_balances_query(&o->query, call_arg(c, "cursor"), limit);
    o->has_query = true;
    open_list(o, &o->query, on_accounts);
}

/* A statement. */

static void write_lines(struct open *o, struct sheet *s)
{
    sheet_open(s, &o->calls->body, s->is_csv, speak_line_columns(s->is_csv));
    QUERY_EACH(r, &o->query)
    {
        struct ledger_entry e;

        ledger_entry_from(&e, r);
        o->books->span.cursor = e.seq;
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

/* A spreadsheet has no place for a cursor, so it is in a header. */
static void answer_csv(struct open *o)
{
    struct sheet s = {.is_csv = true};
    struct http_header next = {STR("Next-Cursor"), {NULL, 0}};
    char cursor[32];

    write_lines(o, &s);
    next.value.n = (size_t)snprintf(cursor, sizeof(cursor), "%lld",
                                    (long long)o->books->span.cursor);
    next.value.p = cursor;
    calls_answer_with(o->calls, o->id, 200, CSV, &next, o->query.has_more);
    open_end(o);
}

static void on_lines(struct open *o)
{
    struct buf *body = &o->calls->body;
    struct sheet s = {.is_csv = false};

    if (!books_read(o))
        return;
    if (o->books->is_csv) {
        answer_csv(o);
        return;
    }
    buf_add_str(body, STR("{\"items\":"));
    write_lines(o, &s);
    if (o->query.has_more)
        buf_addf(body, ",\"next_cursor\":\"%lld\"}\n",
                 (long long)o->books->span.cursor);
    else
        buf_add_str(body, STR(",\"next_cursor\":null}\n"));
    open_answer(o, 200);
}

static void ask_lines(struct open *o)
{
    struct ledger_span span = o->books->span;

    span.account = str_of(o->books->account.text);
    ledger_statement_query(&o->query, &span);
    o->has_query = true;
    open_list(o, &o->query, on_lines);
}

static void on_account(struct open *o)
{
    if (!books_read(o))
        return;
    if (!o->query.rows) {
        books_refuse_user(o);
        return;
    }
    open_drop_queries(o);
    ask_lines(o);
}

static bool read_number(struct call *c, const char *name, int64_t least,
                        int64_t most, int64_t *out)
{
    struct str arg = call_arg(c, name);
    struct why why;

    if (!arg.p || (str_to_i64(arg, out) == OK && *out >= least && *out <= most))
        return true;
    why_err(&why, ERR_BAD_REQUEST,
            "%s must be a whole number from %lld to %lld", name,
            (long long)least, (long long)most);
    return refuse(c, why.text);
}

static bool read_format(struct call *c, bool *is_csv)
{
    struct str arg = call_arg(c, "format");

    *is_csv = arg.p ? str_eq(arg, STR("csv"))
                    : speak_accepts(http_header(c->rq, STR("Accept")),
                                    STR("text/csv"));
    return !arg.p || *is_csv || str_eq(arg, STR("json")) ||
           refuse(c, "format must be json or csv");
}

static bool read_span(struct call *c, struct ledger_span *out, bool *is_csv)
{
    int64_t lines = CSV_LINES_MAX;

    *out = (struct ledger_span){.limit = 0};
    if (!read_format(c, is_csv) ||
        !read_number(c, "after_ms", 0, INT64_MAX, &out->since_ms) ||
        !read_number(c, "before_ms", 1, INT64_MAX, &out->until_ms) ||
        !read_number(c, "cursor", 1, INT64_MAX, &out->cursor))
        return false;
    if (!*is_csv)
        return call_limit(c, &out->limit);
    if (!read_number(c, "limit", 1, CSV_LINES_MAX, &lines))
        return false;
    out->limit = (size_t)lines;
    return true;
}

/* One that is no user's own: by its full name, or all. */
static bool is_account(struct str name)
{
    struct str rest = name, kind = str_cut(&rest, ':');

    if (str_eq(name, STR("all")) || str_eq(name, STR("platform")) ||
        str_eq(name, STR("reserved")) || str_eq(name, STR("outside")))
        return true;
    return (str_eq(kind, STR("user")) || str_eq(kind, STR("creator"))) &&
           principal_name_is_valid(rest);
}

/* False: refused. An empty *whole: it is the user's, or what they earned. */
static bool read_account(struct call *c, bool *is_earned, struct str *whole)
{
    struct str arg = call_arg(c, "account");

    *whole = (struct str){NULL, 0};
    *is_earned = str_eq(arg, STR("creator"));
    if (!arg.p || *is_earned || str_eq(arg, STR("user")))
        return true;
    if (!is_account(arg))
        return refuse(c, "account must be user or creator, for the scope "
                         "ledger also platform, reserved, outside, all, "
                         "user:NAME or creator:NAME");
    if (call_arg(c, "user").p)
        return refuse(c, "give user with account=user or account=creator, or "
                         "another account alone");
    if (!books_are_open(&c->caller))
        return refuse_others(c);
    *whole = arg;
    return true;
}

static struct ledger_account account_named(struct str name)
{
    struct ledger_account a = {""};

    if (!str_eq(name, STR("all")))
        snprintf(a.text, sizeof(a.text), "%.*s", STR_ARG(name));
    return a;
}

void call_ledger_statement(struct call *c)
{
    struct ledger_span span;
    bool is_csv, is_earned;
    struct str whole;
    struct open *o;

    if (!read_span(c, &span, &is_csv) || !read_account(c, &is_earned, &whole) ||
        !(o = begin_for(c)))
        return;
    o->books->span = span;
    o->books->is_csv = is_csv;
    o->books->account = whole.n     ? account_named(whole)
                        : is_earned ? ledger_creator(str_of(o->books->user))
                                    : ledger_user(str_of(o->books->user));
    if (whole.n || !o->books->is_unknown) {
        ask_lines(o);
        return;
    }
    ledger_balance_query(&o->query, str_of(o->books->account.text));
    o->has_query = true;
    open_read(o, &o->query, on_account);
}
