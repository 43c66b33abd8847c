/* GET /api/ledger/check: the books read whole, page by page, while the server
 * goes on. */
#include "calls/books.h"
#include "reckon.h"

static void answer(struct open *o, const struct ledger_report *r)
{
    struct json_out out = json_out(&o->calls->body);
    struct speak_books b = {
        .n_accounts = r->n_accounts,
        .n_entries = r->n_entries,
        .n_postings = r->n_postings,
        .n_turns = r->n_turns,
        .n_reserved = r->n_reserved,
        .reserved_micros = r->reserved,
        .owed_micros = r->owed,
        .n_problems = r->n_problems,
        .problems = r->problems,
        .n_shown = r->n_problems < LEDGER_PROBLEMS ? (size_t)r->n_problems
                                                   : LEDGER_PROBLEMS,
    };

    if (r->n_problems)
        log_error(o->calls->log, "ledger.not_right",
                  LOG_I("problems", r->n_problems),
                  LOG_S("first", str_of(r->problems[0].text)));
    speak_books(&out, &b);
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void go_on(struct open *o);

static void on_page(struct open *o)
{
    ledger_check_take(o->books->check, &o->query);
    open_drop_queries(o);
    go_on(o);
}

static void go_on(struct open *o)
{
    const struct ledger_report *r;

    if (ledger_check_next(o->books->check, &o->query)) {
        o->has_query = true;
        open_list(o, &o->query, on_page);
        return;
    }
    r = ledger_check_report(o->books->check);
    if (r->err)
        open_refuse(o, r->err, STR(""), STR(""));
    else
        answer(o, r);
}

void call_ledger_check(struct call *c)
{
    struct open *o = books_begin(c);

    if (!o)
        return;
    o->books->check = reckon_new(c->calls->by_id.seed);
    if (!o->books->check)
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    else if (open_study(o))
        go_on(o);
}
