/* Which of several tasks an agent asks for, where it does not say. They all
 * have the same payer, so nobody pays for another; it is the one whose tree has
 * the least left, so that saying nothing is no way around a limit.
 *
 * What a tree has left is what was not spent of ledger.perRoot, or without that
 * budget, what delegation.maxPerRoot leaves of tasks. Either limit is the same
 * for all, so what is compared is how much each has used. Where that is the
 * same it is the one with the nearer deadline, which stands first. */
#include "base/fault.h"
#include "walk_internal.h"

static void look_at_next(struct msg *m);

static bool is_same_tree(const struct msg *m, size_t a, size_t b)
{
    return strcmp(m->hire.parents[a].root_id.text,
                  m->hire.parents[b].root_id.text) == 0;
}

static bool was_looked_at(const struct msg *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_same_tree(m, k, i))
            return true;
    return false;
}

/* All of one tree: nothing tells them apart but their time. */
static bool is_one_tree(const struct msg *m)
{
    for (size_t i = 1; i < m->hire.n_parents; i++)
        if (!is_same_tree(m, 0, i))
            return false;
    return true;
}

/* The first of those that have used the most. */
static const struct hire_possible *least_left(const struct msg *m)
{
    const struct hire_possible *best = m->hire.parents;

    for (size_t i = 1; i < m->hire.n_parents; i++)
        if (m->hire.parents[i].used > best->used &&
            !PLANTED("walk.first_parent"))
            best = &m->hire.parents[i];
    return best;
}

/* It may end before it counts: then hire_ask takes the next. */
static void go_on(struct msg *m)
{
    const struct hire_possible *p = least_left(m);
    const struct task *t = task_find(m->way.walk->tasks, str_of(p->id.text));

    m->hire.parent_id = str_of(p->id.text);
    if (t && m->hire.wish.mode != DELEGATION_MESSAGE) /* which said its own */
        m->call.priority = t->priority;
    walk_begin(m);
}

static void on_used(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query row = *q; /* the message needs another */
    int64_t used = 0;

    if (row.rows)
        used = row_int(row.rows,
                       row.table == &spent_table ? SPENT_AMOUNT : TREE_N_TASKS);
    if (row.err) {
        query_fini(&row);
        walk_refuse(m, row.err == ERR_BUSY ? ERR_OVERLOADED : row.err);
        return;
    }
    query_fini(&row);
    for (size_t i = m->hire.at; i < m->hire.n_parents; i++)
        if (is_same_tree(m, i, m->hire.at))
            m->hire.parents[i].used = used;
    m->hire.at++;
    look_at_next(m);
}

static void look_at_next(struct msg *m)
{
    struct walk *w = m->way.walk;
    struct query *q = &m->way.query;
    struct str root;

    while (m->hire.at < m->hire.n_parents && was_looked_at(m, m->hire.at))
        m->hire.at++;
    if (m->hire.at == m->hire.n_parents) {
        go_on(m);
        return;
    }
    root = str_of(m->hire.parents[m->hire.at].root_id.text);
    if (ledger_settings(w->ledger)->per_root)
        ledger_root_query(q, root);
    else
        hire_tree_query(q, root);
    store_read(w->opts.store, q, on_used, m);
}

bool walk_keep_parents(struct msg *m, const struct hire_parents *p)
{
    struct hire_possible *list = arena_alloc(&m->arena, p->n * sizeof(*list));

    if (!list)
        return false;
    for (size_t i = 0; i < p->n; i++)
        list[i] = (struct hire_possible){p->list[i]->id,
                                         id_from(task_root(p->list[i])), 0};
    m->hire.parents = list;
    m->hire.n_parents = p->n;
    return true;
}

void walk_choose_parent(struct msg *m)
{
    m->hire.at = 0;
    if (is_one_tree(m))
        go_on(m);
    else
        look_at_next(m);
}

/* Whose session it is. */

static void on_other(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    bool is_others = q->rows && !PLANTED("walk.any_session");
    enum err e = q->err;

    query_fini(q);
    if (e) {
        walk_refuse(m, e == ERR_BUSY ? ERR_OVERLOADED : e);
        return;
    }
    if (!is_others) {
        m->hire.session.n = 0;
        walk_begin(m);
        return;
    }
    walk_ask_for_key(m,
                     why_err(&m->why, ERR_BAD_REQUEST,
                             "\"%.*s\" is a session of another user than "
                             "%.*s works for now: say parent_task_id, or "
                             "call a conversation of your own otherwise",
                             STR_ARG(m->hire.session), STR_ARG(m->hire.agent)));
}

/* Those that are over too: an agent may be late to speak of one. */
void walk_check_session(struct msg *m)
{
    const struct agent *a = walk_agent_of(m->way.walk, m->hire.agent);
    struct query *q = &m->way.query;

    query_init(q, &task_table, 1);
    query_if(q, TASK_SESSION, IS, value_text(m->hire.session));
    query_if(q, TASK_AGENT, IS, value_text(a ? a->name : m->hire.agent));
    query_if(q, TASK_ROOT_USER, IS_NOT, value_text(m->hire.payer));
    store_read(m->way.walk->opts.store, q, on_other, m);
}
