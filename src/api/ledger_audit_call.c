/* GET /api/ledger/check: audits the whole ledger, page by page, while the
 * server runs. */
#include "api/ledger_calls.h"
#include "walk/ledger_audit.h"

static void ledger_audit_answer(struct request *o,
                                const struct ledger_report *r)
{
    struct json_out out = request_json(o);
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
    request_answer(o, 200);
}

static void ledger_audit_go_on(struct request *o);

static void on_ledger_audit_page(struct request *o)
{
    ledger_check_take(books_of(o)->check, &o->query);
    request_drop_queries(o);
    ledger_audit_go_on(o);
}

static void ledger_audit_go_on(struct request *o)
{
    const struct ledger_report *r;

    if (ledger_check_next(books_of(o)->check, &o->query)) {
        request_read_list(o, &o->query, on_ledger_audit_page);
        return;
    }
    r = ledger_check_report(books_of(o)->check);
    if (r->err)
        request_fail(o, r->err);
    else
        ledger_audit_answer(o, r);
}

void call_ledger_check(struct call *c)
{
    struct request *o = books_request_begin(c);

    if (!o)
        return;
    books_of(o)->check = ledger_audit_new(c->api->by_id.seed);
    if (request_analytics(o))
        ledger_audit_go_on(o);
}
