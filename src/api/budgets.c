/* GET, PUT and DELETE /api/budgets: limits on the cost of users, orgs and
 * agents in a day or a month. The scope ledger sees and sets all of them; other
 * callers see their own and their org's, and set one for themselves. */
#include "api/ledger_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/near.h"

enum {
    TOLD_MAX = 2048,
    OWN_MAX = 6, /* budgets of one user and their org */
};

static struct ledger *request_ledger(const struct request *o)
{
    return walk_ledger(o->api->walk);
}

static void budget_put(struct request *o, struct json_out *out,
                       const struct ledger_budget *b, int64_t used)
{
    int64_t now_ms = loop_wall_ms(o->api->loop);

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

/* Finding the budget. */

static bool budget_refuse_others(struct call *c)
{
    api_refuse(c->api, c->id, ERR_NOT_ALLOWED,
               STR("budgets of others need a token with the scope ledger"),
               STR("{\"scope\":\"ledger\"}"));
    return false;
}

/* Search the known users or orgs for a name, and for similar names. */
struct name_hunt {
    struct near_hunt near;
    bool is_of_orgs, is_found;
};

static void name_hunt_look_at(void *ctx, struct str name, struct str org)
{
    struct name_hunt *h = ctx;
    struct str one = h->is_of_orgs ? org : name;

    if (!one.n)
        return;
    h->is_found = h->is_found || str_eq(one, h->near.written);
    near_offer(&h->near, one);
}

static bool budget_refuse_unknown(struct call *c, const struct name_hunt *h)
{
    struct why why = {""};
    struct buf details;
    struct json_out out;
    enum err e;

    buf_init(&details, 4096);
    out = json_out(&details);
    speak_nearest(&out, &h->near.near);
    e = near_say_other(&h->near.near, h->is_of_orgs ? "org" : "user",
                       h->near.written, &why);
    api_refuse(c->api, c->id, e, str_of(why.text),
               details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
    return false;
}

/* The budget that an admin set for a user, or that the user set. */
static bool budget_read_user(struct call *c, struct str user, bool is_new,
                             struct ledger_budget *b)
{
    struct name_hunt h = {.is_of_orgs = false};
    struct access_user known;

    if (!user.n)
        user = caller_name(&c->caller);
    b->kind = may_see_all_books(&c->caller) ? BUDGET_USER : BUDGET_SELF;
    if (b->kind == BUDGET_SELF && !str_eq_nocase(user, caller_name(&c->caller)))
        return budget_refuse_others(c);
    if (access_user_find(c->api->access, user, &known)) {
        snprintf(b->name, sizeof(b->name), "%s", known.name);
        return true;
    }
    snprintf(b->name, sizeof(b->name), "%.*s", STR_ARG(user));
    if (!is_new)
        return true;
    near_begin(&h.near, user);
    access_each_user(c->api->access, name_hunt_look_at, &h);
    return budget_refuse_unknown(c, &h);
}

/* An org exists while a user or an agent has it. */
static bool budget_read_org(struct call *c, struct str org, bool is_new,
                            struct ledger_budget *b)
{
    struct agents all = registry_agents(c->api->registry);
    struct name_hunt h = {.is_of_orgs = true};

    b->kind = BUDGET_ORG;
    snprintf(b->name, sizeof(b->name), "%.*s", STR_ARG(org));
    if (!is_new)
        return true;
    near_begin(&h.near, org);
    access_each_user(c->api->access, name_hunt_look_at, &h);
    for (size_t i = 0; i < all.n; i++)
        name_hunt_look_at(&h, all.list[i]->name, all.list[i]->org);
    return h.is_found || budget_refuse_unknown(c, &h);
}

static bool budget_read_agent(struct call *c, struct str agent, bool is_new,
                              struct ledger_budget *b)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->api->registry, agent, &eyes);
    struct str name = a ? a->name : agent;

    b->kind = BUDGET_AGENT;
    snprintf(b->name, sizeof(b->name), "%.*s", STR_ARG(name));
    if (a || !is_new)
        return true;
    call_refuse_agent(c, agent);
    return false;
}

static bool call_read_budget_owner(struct call *c,
                                   const struct speak_budget_call *said,
                                   bool is_new, struct ledger_budget *b)
{
    b->period = budget_period_of(said->period);
    if (!said->org.n && !said->agent.n)
        return budget_read_user(c, said->user, is_new, b);
    if (!may_see_all_books(&c->caller))
        return budget_refuse_others(c);
    return said->org.n ? budget_read_org(c, said->org, is_new, b)
                       : budget_read_agent(c, said->agent, is_new, b);
}

/* The one of a user's two budgets to remove: by default an admin's, or the
 * user's own for other callers. */
static bool budget_read_kind(struct call *c,
                             const struct speak_budget_call *said,
                             struct ledger_budget *b)
{
    if (!said->kind.n)
        return true;
    b->kind = str_eq(said->kind, budget_kind_name(BUDGET_SELF)) ? BUDGET_SELF
                                                                : BUDGET_USER;
    return b->kind == BUDGET_SELF || may_see_all_books(&c->caller) ||
           budget_refuse_others(c);
}

/* Often the user's own budget is meant, but it is only removed on request. */
static void budget_refuse_missing(struct call *c, const struct ledger_budget *b)
{
    bool has_own = b->kind == BUDGET_USER &&
                   ledger_budget_find(walk_ledger(c->api->walk), BUDGET_SELF,
                                      str_of(b->name), b->period);

    call_refuse(c, ERR_NOT_FOUND,
                has_own
                    ? STR("there is no such budget; kind=self removes the one "
                          "that the user set (signalbox budgets remove "
                          "--own)")
                    : STR("there is no such budget"));
}

/* Changes. */

/* Reported to its user, its author and admins. */
static void budget_report_change(struct books *b, const char *type,
                                 int64_t at_ms)
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
    feed_append_data(&b->tx, &data,
                     &(struct feed_entry){
                         .at_ms = at_ms,
                         .type = str_of(type),
                         .requester = str_of(x->by),
                         .root_user = is_users ? str_of(x->name) : STR("")});
}

static void on_budget_used(struct request *o)
{
    struct json_out out = request_json(o);

    if (!request_query_ok(o))
        return;
    budget_put(o, &out, &books_of(o)->budget,
               o->query.rows ? row_int(o->query.rows, SPENT_AMOUNT) : 0);
    request_answer(o, 200);
}

static enum err budget_tx_error(const struct tx *tx)
{
    if (tx->result == TX_COMMITTED)
        return OK;
    if (tx->result == TX_GUARD_FAILED)
        return ERR_NOT_FOUND;
    return tx->err ? tx->err : ERR_OUTCOME_UNKNOWN;
}

static void on_budget_put(struct tx *tx, void *ctx)
{
    struct request *o = ctx;
    enum err e = budget_tx_error(tx);

    ledger_budget_settle(request_ledger(o), &books_of(o)->budget, e == OK);
    if (!request_back(o))
        return;
    if (e) {
        request_fail(o, e);
        return;
    }
    budget_spent_query(&o->query, &books_of(o)->budget,
                       loop_wall_ms(o->api->loop));
    request_read(o, &o->query, on_budget_used);
}

void call_budgets_put(struct call *c)
{
    struct ledger_budget b = {.updated_ms = c->now_ms};
    struct speak_budget_call said;
    struct why why = {""};
    struct request *o;
    enum err e = speak_budget_put(&c->api->scratch, c->rq->body, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!call_read_budget_owner(c, &said, true, &b) ||
        !(o = books_request_begin(c)))
        return;
    b.limit = said.limit_micros;
    snprintf(b.by, sizeof(b.by), "%s", o->caller.principal);
    books_of(o)->budget = b;
    tx_init(&books_of(o)->tx);
    books_of(o)->has_tx = true;
    e = ledger_budget_put(request_ledger(o), &b, &books_of(o)->tx, &why);
    if (e) {
        request_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    budget_report_change(books_of(o), "budget.set", c->now_ms);
    request_out(o);
    store_submit(o->api->store, &books_of(o)->tx, on_budget_put, o);
}

static void on_budget_removed(struct tx *tx, void *ctx)
{
    struct request *o = ctx;
    enum err e = budget_tx_error(tx);

    if (!e)
        ledger_budget_forget(request_ledger(o), &books_of(o)->budget);
    if (!request_back(o))
        return;
    if (e) {
        request_fail(o, e);
        return;
    }
    request_answer_nothing(o);
}

void call_budgets_delete(struct call *c)
{
    struct speak_budget_call said = {.user = call_arg(c, "user"),
                                     .org = call_arg(c, "org"),
                                     .agent = call_arg(c, "agent"),
                                     .kind = call_arg(c, "kind"),
                                     .period = call_arg(c, "period")};
    const struct ledger_budget *there;
    struct ledger_budget b = {.limit = 0};
    struct why why = {""};
    struct request *o;
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
    if (!call_read_budget_owner(c, &said, false, &b) ||
        !budget_read_kind(c, &said, &b))
        return;
    there = ledger_budget_find(walk_ledger(c->api->walk), b.kind,
                               str_of(b.name), b.period);
    if (!there) {
        budget_refuse_missing(c, &b);
        return;
    }
    b = *there;
    if (!(o = books_request_begin(c)))
        return;
    books_of(o)->budget = b;
    snprintf(books_of(o)->budget.by, sizeof(b.by), "%s", o->caller.principal);
    tx_init(&books_of(o)->tx);
    books_of(o)->has_tx = true;
    ledger_budget_drop(&b, &books_of(o)->tx);
    budget_report_change(books_of(o), "budget.removed", c->now_ms);
    request_out(o);
    store_submit(o->api->store, &books_of(o)->tx, on_budget_removed, o);
}

/* The list: a page of the budgets that the caller may see, then the used amount
 * of each, one after the other. A balance lists those of one user too. */

void budgets_put_listed(struct request *o, struct json_out *out)
{
    const struct books *b = o->own;

    for (size_t i = 0; i < b->n_listed; i++)
        budget_put(o, out, &b->listed[i].budget, b->listed[i].used);
}

static void budgets_answer_list(struct request *o)
{
    struct json_out out = request_json(o);
    const struct books *b = o->own;
    struct ledger_budget_key last = {""};

    speak_list_open(&out);
    budgets_put_listed(o, &out);
    if (b->n_listed)
        last = ledger_budget_key(b->listed[b->n_listed - 1].budget.kind,
                                 str_of(b->listed[b->n_listed - 1].budget.name),
                                 b->listed[b->n_listed - 1].budget.period);
    speak_list_close(&out, b->has_more ? str_of(last.text) : STR(""));
    request_answer(o, 200);
}

static void budgets_read_next(struct request *o);

static void on_budget_listed(struct request *o)
{
    struct books *b = o->own;

    if (!request_query_ok(o))
        return;
    b->listed[b->at++].used =
        o->query.rows ? row_int(o->query.rows, SPENT_AMOUNT) : 0;
    request_drop_queries(o);
    budgets_read_next(o);
}

static void budgets_read_next(struct request *o)
{
    struct books *b = o->own;

    if (b->at == b->n_listed) {
        b->listed_then(o);
        return;
    }
    budget_spent_query(&o->query, &b->listed[b->at].budget,
                       loop_wall_ms(o->api->loop));
    request_read(o, &o->query, on_budget_listed);
}

static void budgets_list_all(struct request *o, struct str after, size_t limit)
{
    const struct ledger *l = request_ledger(o);
    size_t i = ledger_budgets_behind(l, after);
    struct books *b = o->own;

    for (; i < ledger_n_budgets(l) && b->n_listed < limit; i++)
        b->listed[b->n_listed++].budget = *ledger_budget_at(l, i);
    b->has_more = i < ledger_n_budgets(l);
}

/* The budgets of a user and their org: a few, on one page. */
static void budgets_list_of(struct request *o, struct str user, struct str org)
{
    const struct {
        enum budget_kind kind;
        struct str name;
    } of[] = {{BUDGET_ORG, org}, {BUDGET_SELF, user}, {BUDGET_USER, user}};
    struct books *b = o->own;

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        for (enum budget_period p = BUDGET_DAY; p <= BUDGET_MONTH; p++) {
            const struct ledger_budget *x =
                of[i].name.n ? ledger_budget_find(request_ledger(o), of[i].kind,
                                                  of[i].name, p)
                             : NULL;

            if (x)
                b->listed[b->n_listed++].budget = *x;
        }
}

static void budgets_list_new(struct request *o, size_t most,
                             void (*then)(struct request *o))
{
    books_of(o)->listed_then = then;
    books_of(o)->listed = mem_array(most, sizeof(*books_of(o)->listed));
}

void budgets_read_of(struct request *o, struct str user,
                     void (*then)(struct request *o))
{
    budgets_list_new(o, OWN_MAX, then);
    budgets_list_of(o, user, access_org_of(o->api->access, user));
    budgets_read_next(o);
}

void call_budgets_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    size_t limit = call_limit(c);
    struct request *o = books_request_begin(c);

    if (!o)
        return;
    budgets_list_new(o, limit + OWN_MAX, budgets_answer_list);
    if (may_see_all_books(&o->caller))
        budgets_list_all(o, cursor, limit);
    else if (!cursor.n)
        budgets_list_of(o, caller_name(&o->caller), str_of(o->caller.org));
    budgets_read_next(o);
}
