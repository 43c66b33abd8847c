/* Costs and budget warnings in the answer to a message. */
#include "api/share.h"

#include "base/fault.h"

/* Budgets of the payer are for the payer and admins; those of an agent, which
 * many users pay, only for admins. */
static bool may_hear(const struct caller *c, const struct task *t,
                     const struct ledger_budget *b)
{
    if (caller_is_admin(c))
        return true;
    return b->kind != BUDGET_AGENT &&
           str_eq_nocase(caller_name(c), t->root_user);
}

void share_budget_warnings(struct json_out *o, const struct ledger *l,
                           const struct task *t, const struct caller *c,
                           int64_t now_ms)
{
    struct ledger_budget of[BUDGETS_OF_MAX];
    size_t n = t->price_micros
                   ? ledger_budgets_of(l, t->root_user, t->payer_org,
                                       t->priced_agent, of)
                   : 0;
    bool has_any = false;

    for (size_t i = 0; i < n; i++) {
        const struct ledger_budget *b = &of[i];

        if (!budget_was_warned(b, now_ms) || !may_hear(c, t, b))
            continue;
        if (!has_any) {
            json_key(o, STR("budget_warnings"));
            json_open(o, '[');
        }
        has_any = true;
        json_open(o, '{');
        json_member_text(o, "kind", budget_kind_name(b->kind));
        json_member_text(o, "name", str_of(b->name));
        json_member_text(o, "period", budget_period_name(b->period));
        json_member_int(o, "limit_micros", b->limit);
        json_member_int(o, "resets_ms", budget_period_end(b->period, now_ms));
        json_close(o, '}');
    }
    if (has_any)
        json_close(o, ']');
}

/* Costs. */

bool share_cost_is_for(const struct ledger *l, const struct task *t,
                       const struct caller *c)
{
    return ledger_has_spending(l) &&
           (caller_is_admin(c) || str_eq_nocase(caller_name(c), t->root_user) ||
            PLANTED("calls.cost_for_all"));
}

void share_cost_ask(const struct task *t, struct query *tree,
                    struct query *conversation)
{
    ledger_root_query(tree, task_root(t));
    ledger_conversation_query(conversation, t->root_user, t->conversation_id);
}

static int64_t spent_in(const struct query *q)
{
    return !q->err && q->rows ? row_int(q->rows, SPENT_AMOUNT) : 0;
}

struct share_cost share_cost(const struct query *tree,
                             const struct query *conversation)
{
    return (struct share_cost){.tree = spent_in(tree),
                               .conversation = spent_in(conversation)};
}

void share_cost_below(struct query *tree, const struct query *conversation)
{
    query_fini(tree);
    ledger_below_query(tree, conversation);
}

void share_cost_add(struct share_cost *cost, const struct query *below)
{
    cost->conversation += spent_in(below);
}

void share_cost_say(struct json_out *o, const struct share_cost *cost,
                    const struct task *t)
{
    bool is_back = task_is_over(t->status) && t->status != TASK_COMPLETED;

    if (!cost->tree && !cost->conversation)
        return;
    json_key(o, STR("cost"));
    json_open(o, '{');
    json_member_int(o, "task_micros", is_back ? 0 : t->price_micros);
    json_member_int(o, "tree_micros", cost->tree);
    json_member_int(o, "conversation_micros", cost->conversation);
    json_close(o, '}');
}
