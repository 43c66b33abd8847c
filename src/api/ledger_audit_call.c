/* GET /api/ledger/check: audits the whole ledger, page by page, while the
 * server runs. */
#include "api/ledger_calls.h"
#include "walk/ledger_audit.h"

static void ledger_audit_answer(struct open *o, const struct ledger_report *r)
{
    struct json_out out = json_out(&o->api->body);
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
        log_error(o->api->log, "ledger.not_right",
                  LOG_I("problems", r->n_problems),
                  LOG_S("first", str_of(r->problems[0].text)));
    speak_books(&out, &b);
    open_answer(o, 200);
}

static void ledger_audit_go_on(struct open *o);

static void on_ledger_audit_page(struct open *o)
{
    ledger_check_take(o->books->check, &o->query);
    open_drop_queries(o);
    ledger_audit_go_on(o);
}

static void ledger_audit_go_on(struct open *o)
{
    const struct ledger_report *r;

    if (ledger_check_next(o->books->check, &o->query)) {
        o->has_query = true;
        open_read_list(o, &o->query, on_ledger_audit_page);
        return;
    }
    r = ledger_check_report(o->books->check);
    if (r->err)
        open_fail(o, r->err);
    else
        ledger_audit_answer(o, r);
}

void call_ledger_check(struct call *c)
{
    struct open *o = open_books_new(c);

    if (!o)
        return;
    o->books->check = ledger_audit_new(c->api->by_id.seed);
    if (open_analytics(o))
        ledger_audit_go_on(o);
}
