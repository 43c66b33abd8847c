/* GET, PUT and DELETE /api/budgets: what users, orgs and agents may cost in a
 * day or a month. Whoever has the scope ledger sees and sets all of them;
 * others see their own and their org's, and set one for themselves. */
#include "calls/books.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    TOLD_MAX = 2048,
    OWN_MAX = 6, /* that are a user's own, or their org's */
};

static struct ledger *books_of(const struct open *o)
{
    return walk_ledger(o->calls->walk);
}

static void put_one(struct open *o, struct json_out *out,
                    const struct ledger_budget *b, int64_t used)
{
    int64_t now_ms = loop_wall_ms(o->calls->loop);

    speak_budget(out, &(struct speak_budget){
                          .kind = budget_kind_name(b->kind),
                          .name = str_of(b->name),
                          .period = budget_period_name(b->period),
                          .limit_micros = b->limit,
                          .used_micros = used,
                          .is_warned = budget_was_warned(b, now_ms),
                          .resets_ms = budget_period_end(b->period, now_ms),
                          .by = str_of(b->by),
                          .updated_ms = b->updated_ms});
}

/* Which one is meant. */

static bool refuse_others(struct call *c)
{
    calls_refuse(c->calls, c->id, ERR_NOT_ALLOWED,
                 STR("other budgets than one's own need a token with the scope "
                     "ledger"),
                 STR("{\"scope\":\"ledger\"}"));
    return false;
}

/* An admin's for a user, or the user's own. */
static bool read_user(struct call *c, struct str user, bool is_new,
                      struct ledger_budget *b)
{
    struct access_user known;
    struct why why;

    if (!user.n)
        user = caller_name(&c->caller);
    b->kind = books_are_open(&c->caller) ? BUDGET_USER : BUDGET_SELF;
    if (b->kind == BUDGET_SELF && !str_eq_nocase(user, caller_name(&c->caller)))
        return refuse_others(c);
    if (access_user_find(c->calls->access, user, &known)) {
        snprintf(b->name, sizeof(b->name), "%s", known.name);
        return true;
    }
    snprintf(b->name, sizeof(b->name), "%.*s", STR_ARG(user));
    if (!is_new)
        return true;
    why_err(&why, ERR_NOT_FOUND,
            "there is no user \"%s\"; signalbox users list shows them",
            b->name);
    call_refuse(c, ERR_NOT_FOUND, str_of(why.text));
    return false;
}

static bool read_whose(struct call *c, const struct speak_budget_call *said,
                       bool is_new, struct ledger_budget *b)
{
    struct str name = said->org.n ? said->org : said->agent;

    b->period = budget_period_of(said->period);
    if (!name.n)
        return read_user(c, said->user, is_new, b);
    if (!books_are_open(&c->caller))
        return refuse_others(c);
    b->kind = said->org.n ? BUDGET_ORG : BUDGET_AGENT;
    snprintf(b->name, sizeof(b->name), "%.*s", STR_ARG(name));
    return true;
}

/* Changes. */

/* For whose it is, who set it and admins. */
static void tell(struct books *b, const char *type, int64_t at_ms)
{
    const struct ledger_budget *x = &b->budget;
    bool is_users = x->kind == BUDGET_USER || x->kind == BUDGET_SELF;
    struct json_out out;
    struct buf data;

    buf_init(&data, TOLD_MAX);
    out = json_out(&data);
    json_open(&out, '{');
    json_member_text(&out, "kind", budget_kind_name(x->kind));
    json_member_text(&out, "name", str_of(x->name));
    json_member_text(&out, "period", budget_period_name(x->period));
    json_member_int(&out, "limit_micros", x->limit);
    json_member_text(&out, "by", str_of(x->by));
    json_close(&out, '}');
    if (data.over || FAULT("calls.budget_told"))
        b->tx.build_error = ERR_NOMEM;
    else
        feed_append(&b->tx,
                    &(struct feed_entry){.at_ms = at_ms,
                                         .type = str_of(type),
                                         .requester = str_of(x->by),
                                         .root_user = is_users ? str_of(x->name)
                                                               : STR(""),
                                         .data = buf_str(&data)});
    buf_fini(&data);
}

static void on_used(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);

    if (!books_read(o))
        return;
    put_one(o, &out, &o->books->budget,
            o->query.rows ? row_int(o->query.rows, SPENT_AMOUNT) : 0);
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static enum err refused_by(const struct tx *tx)
{
    if (tx->result == TX_COMMITTED)
        return OK;
    if (tx->result == TX_GUARD_FAILED)
        return ERR_NOT_FOUND;
    return tx->err ? tx->err : ERR_OUTCOME_UNKNOWN;
}

static void on_put(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    enum err e = refused_by(tx);

    ledger_budget_settle(books_of(o), &o->books->budget, e == OK);
    if (!open_back(o))
        return;
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    budget_spent_query(&o->query, &o->books->budget,
                       loop_wall_ms(o->calls->loop));
    o->has_query = true;
    open_read(o, &o->query, on_used);
}

void call_budgets_put(struct call *c)
{
    struct ledger_budget b = {.updated_ms = c->now_ms};
    struct speak_budget_call said;
    struct why why = {""};
    struct open *o;
    enum err e = speak_budget_put(&c->calls->scratch, c->rq->body, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!read_whose(c, &said, true, &b) || !(o = books_begin(c)))
        return;
    b.limit = said.limit_micros;
    snprintf(b.by, sizeof(b.by), "%s", o->caller.principal);
    o->books->budget = b;
    tx_init(&o->books->tx);
    o->books->has_tx = true;
    e = ledger_budget_put(books_of(o), &b, &o->books->tx, &why);
    if (e) {
        open_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    tell(o->books, "budget.set", c->now_ms);
    open_out(o);
    store_submit(o->calls->store, &o->books->tx, on_put, o);
}

static void on_dropped(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    enum err e = refused_by(tx);

    if (!e)
        ledger_budget_forget(books_of(o), &o->books->budget);
    if (!open_back(o))
        return;
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    calls_answer(o->calls, o->id, 204, STR(""));
    open_end(o);
}

void call_budgets_delete(struct call *c)
{
    struct speak_budget_call said = {.user = call_arg(c, "user"),
                                     .org = call_arg(c, "org"),
                                     .agent = call_arg(c, "agent"),
                                     .period = call_arg(c, "period")};
    const struct ledger_budget *there;
    struct ledger_budget b = {.limit = 0};
    struct why why = {""};
    struct open *o;
    enum err e = speak_budget_check(&said, &why);

    if (!e &&
        (said.user.n > PRINCIPAL_NAME_MAX || said.org.n > PRINCIPAL_NAME_MAX ||
         said.agent.n > AGENT_NAME_MAX))
        e = why_err(&why, ERR_BAD_REQUEST, "a name has at most %d bytes",
                    PRINCIPAL_NAME_MAX);
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!read_whose(c, &said, false, &b))
        return;
    there = ledger_budget_find(walk_ledger(c->calls->walk), b.kind,
                               str_of(b.name), b.period);
    if (!there) {
        call_refuse(c, ERR_NOT_FOUND, STR("there is no such budget"));
        return;
    }
    b = *there;
    if (!(o = books_begin(c)))
        return;
    o->books->budget = b;
    snprintf(o->books->budget.by, sizeof(b.by), "%s", o->caller.principal);
    tx_init(&o->books->tx);
    o->books->has_tx = true;
    ledger_budget_drop(&b, &o->books->tx);
    tell(o->books, "budget.removed", c->now_ms);
    open_out(o);
    store_submit(o->calls->store, &o->books->tx, on_dropped, o);
}

/* The list: a page of those that the caller may see, then what is used of each,
 * one after the other. */

static void answer_list(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct books *b = o->books;
    struct ledger_budget_key last = {""};

    speak_list_open(&out);
    for (size_t i = 0; i < b->n_listed; i++)
        put_one(o, &out, &b->listed[i].budget, b->listed[i].used);
    if (b->n_listed)
        last = ledger_budget_key(b->listed[b->n_listed - 1].budget.kind,
                                 str_of(b->listed[b->n_listed - 1].budget.name),
                                 b->listed[b->n_listed - 1].budget.period);
    speak_list_close(&out, b->has_more ? str_of(last.text) : STR(""));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void read_next(struct open *o);

static void on_one(struct open *o)
{
    struct books *b = o->books;

    if (!books_read(o))
        return;
    b->listed[b->at++].used =
        o->query.rows ? row_int(o->query.rows, SPENT_AMOUNT) : 0;
    open_drop_queries(o);
    read_next(o);
}

static void read_next(struct open *o)
{
    struct books *b = o->books;

    if (b->at == b->n_listed) {
        answer_list(o);
        return;
    }
    budget_spent_query(&o->query, &b->listed[b->at].budget,
                       loop_wall_ms(o->calls->loop));
    o->has_query = true;
    open_read(o, &o->query, on_one);
}

static void list_all(struct open *o, struct str after, size_t limit)
{
    const struct ledger *l = books_of(o);
    size_t i = ledger_budgets_behind(l, after);
    struct books *b = o->books;

    for (; i < ledger_n_budgets(l) && b->n_listed < limit; i++)
        b->listed[b->n_listed++].budget = *ledger_budget_at(l, i);
    b->has_more = i < ledger_n_budgets(l);
}

/* One's own and one's org's: a few, and one page. */
static void list_own(struct open *o)
{
    const struct {
        enum budget_kind kind;
        struct str name;
    } of[] = {{BUDGET_ORG, str_of(o->caller.org)},
              {BUDGET_SELF, caller_name(&o->caller)},
              {BUDGET_USER, caller_name(&o->caller)}};
    struct books *b = o->books;

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        for (enum budget_period p = BUDGET_DAY; p <= BUDGET_MONTH; p++) {
            const struct ledger_budget *x =
                of[i].name.n
                    ? ledger_budget_find(books_of(o), of[i].kind, of[i].name, p)
                    : NULL;

            if (x)
                b->listed[b->n_listed++].budget = *x;
        }
}

void call_budgets_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    struct open *o;
    struct books *b;
    size_t limit;

    if (!call_limit(c, &limit) || !(o = books_begin(c)))
        return;
    b = o->books;
    b->listed = FAULT("calls.budgets")
                    ? NULL
                    : calloc(limit + OWN_MAX, sizeof(*b->listed));
    if (!b->listed) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    if (books_are_open(&o->caller))
        list_all(o, cursor, limit);
    else if (!cursor.n)
        list_own(o);
    read_next(o);
}
