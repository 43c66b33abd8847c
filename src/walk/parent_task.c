/* Chooses the parent task if an agent is working on several and does not name
 * one. They all have the same payer, so no user pays for another. The parent is
 * the task whose tree has the least left, so that naming none cannot evade a
 * limit.
 *
 * A tree has left what is not spent of ledger.perRoot or, without that budget,
 * what delegation.maxPerRoot leaves of tasks. Either limit is the same for all
 * trees, so their usage is compared. If it is equal, the nearer deadline wins,
 * which is first in the list. */
#include "base/fault.h"
#include "walk/internal.h"

static void parent_look_at_next(struct msg *m);

static bool is_same_tree(const struct msg *m, size_t a, size_t b)
{
    return strcmp(m->delegation.parents[a].root_id.text,
                  m->delegation.parents[b].root_id.text) == 0;
}

static bool was_looked_at(const struct msg *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_same_tree(m, k, i))
            return true;
    return false;
}

/* All are of one tree, so only the deadline decides. */
static bool is_one_tree(const struct msg *m)
{
    for (size_t i = 1; i < m->delegation.n_parents; i++)
        if (!is_same_tree(m, 0, i))
            return false;
    return true;
}

/* The first of those with the highest usage. */
static const struct delegation_possible *
parent_with_least_left(const struct msg *m)
{
    const struct delegation_possible *best = m->delegation.parents;

    for (size_t i = 1; i < m->delegation.n_parents; i++)
        if (m->delegation.parents[i].used > best->used &&
            !PLANTED("walk.first_parent"))
            best = &m->delegation.parents[i];
    return best;
}

/* The parent may end before delegation_ask, which then takes the next. */
static void parent_chosen(struct msg *m)
{
    const struct delegation_possible *p = parent_with_least_left(m);
    const struct task *t = task_find(m->way.walk->tasks, str_of(p->id.text));

    m->delegation.parent_id = str_of(p->id.text);
    if (t &&
        m->delegation.wish.mode != DELEGATION_MESSAGE) /* which has its own */
        m->call.priority = t->priority;
    walk_begin(m);
}

static void on_parent_usage(struct query *q, void *ctx)
{
    struct msg *m = ctx;
    struct query row = *q; /* the message may reuse it */
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
    for (size_t i = m->delegation.at; i < m->delegation.n_parents; i++)
        if (is_same_tree(m, i, m->delegation.at))
            m->delegation.parents[i].used = used;
    m->delegation.at++;
    parent_look_at_next(m);
}

static void parent_look_at_next(struct msg *m)
{
    struct walk *w = m->way.walk;
    struct query *q = &m->way.query;
    struct str root;

    while (m->delegation.at < m->delegation.n_parents &&
           was_looked_at(m, m->delegation.at))
        m->delegation.at++;
    if (m->delegation.at == m->delegation.n_parents) {
        parent_chosen(m);
        return;
    }
    root = str_of(m->delegation.parents[m->delegation.at].root_id.text);
    if (ledger_settings(w->ledger)->per_root)
        ledger_root_query(q, root);
    else
        delegation_tree_query(q, root);
    store_read(w->opts.store, q, on_parent_usage, m);
}

bool walk_keep_parents(struct msg *m, const struct delegation_parents *p)
{
    struct delegation_possible *list =
        arena_alloc(&m->arena, p->n * sizeof(*list));

    if (!list)
        return false;
    for (size_t i = 0; i < p->n; i++)
        list[i] = (struct delegation_possible){
            p->list[i]->id, id_from(task_root(p->list[i])), 0};
    m->delegation.parents = list;
    m->delegation.n_parents = p->n;
    return true;
}

void walk_choose_parent(struct msg *m)
{
    m->delegation.at = 0;
    if (is_one_tree(m))
        parent_chosen(m);
    else
        parent_look_at_next(m);
}

/* Sessions. */

static void on_session_of_others(struct query *q, void *ctx)
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
        m->delegation.session.n = 0;
        walk_begin(m);
        return;
    }
    walk_ask_for_key(m, why_err(&m->why, ERR_BAD_REQUEST,
                                "\"%.*s\" is a session of a user that %.*s is "
                                "not working for now: give parent_task_id, or "
                                "use another name for a new conversation",
                                STR_ARG(m->delegation.session),
                                STR_ARG(m->delegation.agent)));
}

/* Finished tasks count too: an agent may refer to one late. */
void walk_check_session(struct msg *m)
{
    const struct agent *a =
        registry_agent(m->way.walk->opts.registry, m->delegation.agent);
    struct query *q = &m->way.query;

    query_init(q, &task_table, 1);
    query_if(q, TASK_SESSION, IS, value_text(m->delegation.session));
    query_if(q, TASK_AGENT, IS, value_text(a ? a->name : m->delegation.agent));
    query_if(q, TASK_ROOT_USER, IS_NOT, value_text(m->delegation.payer));
    store_read(m->way.walk->opts.store, q, on_session_of_others, m);
}
