/* The tree of a task: its root, and everything delegated below it. A viewer of
 * the root sees the whole tree; a viewer of a part sees the tree from there
 * down.
 *
 *     the task -> the delegations of its root (one indexed read)
 *              -> each of their tasks: in memory, or one read
 *              -> the payments for those with a price: one read
 *
 * Bounded: TREE_TASKS_MAX tasks, two reads for each, one after the other so
 * that a large tree blocks nothing; texts are cut when they are read. The tasks
 * are not all seen at the same moment. */
#include "api/tree_read.h"

#include "delegation/delegation.h"
#include "ledger/ledger.h"

enum { KEPT_BYTES = 4 * 1024 * 1024 };

static void tree_look_fini(void *own)
{
    struct tree_look *l = own;

    arena_fini(&l->arena);
    tree_page_free(l->page);
}

struct request *tree_request_of_call(struct call *c)
{
    static const struct request_state state = {
        .bytes = sizeof(struct tree_look), .fini = tree_look_fini};
    struct request *o = request_of_call(c, &state);

    if (o)
        arena_init(&tree_of(o)->arena, KEPT_BYTES);
    return o;
}

static bool tree_keep_str(struct tree_look *l, struct str *s)
{
    return arena_keep(&l->arena, *s, s);
}

/* Copy only what the answer contains. */
static bool tree_keep_task(struct request *o, const struct task *t)
{
    struct tree_look *l = o->own;
    struct tree_task *x = &l->list[l->n];

    x->is_asked_for = task_is_for(t, &o->caller);
    x->mode = l->modes[l->at];
    x->t = (struct task){.id = t->id,
                         .root_user = t->root_user,
                         .agent = t->agent,
                         .skill = t->skill,
                         .status = task_shown(t),
                         .turn = t->turn,
                         .attempt = t->attempt,
                         .text = tree_text(t->text),
                         .created_ms = t->created_ms,
                         .deadline_ms = t->deadline_ms,
                         .budget_ms = t->budget_ms,
                         .started_ms = t->started_ms,
                         .finished_ms = t->finished_ms,
                         .by_agent = t->by_agent,
                         .parent_id = l->parents[l->at].n ? l->parents[l->at]
                                                          : t->parent_id,
                         .depth = t->depth,
                         .price_micros = t->price_micros,
                         .result = {.error_code = t->result.error_code,
                                    .error = tree_text(t->result.error)}};
    if (!tree_keep_str(l, &x->t.root_user) || !tree_keep_str(l, &x->t.agent) ||
        !tree_keep_str(l, &x->t.skill) || !tree_keep_str(l, &x->t.text) ||
        !tree_keep_str(l, &x->t.by_agent) ||
        !tree_keep_str(l, &x->t.parent_id) ||
        !tree_keep_str(l, &x->t.result.error_code) ||
        !tree_keep_str(l, &x->t.result.error))
        return false;
    l->n++;
    return true;
}

/* The answer. */

int tree_place_of(const struct tree_look *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->list[i].t.id.text, id) == 0)
            return (int)i;
    return -1;
}

static void tree_answer(struct request *o)
{
    struct tree_look *l = o->own;
    struct json_out out = request_json(o);
    int asked = tree_place_of(l, o->task_id.text);
    struct speak_tree tree = {.list = l->list,
                              .n = l->n,
                              .task_id = str_of(o->task_id.text),
                              .root_id = str_of(l->root.text),
                              .is_cut = l->is_cut,
                              .now_ms = loop_wall_ms(o->api->loop)};

    /* Retention may have removed it, or it belongs to another user now. */
    if (asked < 0 || !l->list[asked].is_asked_for) {
        request_fail(o, ERR_NOT_FOUND);
        return;
    }
    tree_link(l->list, l->n);
    tree.top = tree_top(l->list, l->n, (size_t)asked);
    tree.is_whole = strcmp(l->list[tree.top].t.id.text, l->root.text) == 0;
    speak_tree(&out, &tree);
    request_answer(o, 200);
}

/* Reading. */

static void tree_go_on(struct request *o);

static void on_tree_paid(struct request *o)
{
    struct tree_look *l = o->own;

    if (!request_query_ok(o))
        return;
    l->list[l->n - 1].captured_micros = ledger_paid(&o->query);
    l->is_cut = l->is_cut || o->query.has_more;
    tree_go_on(o);
}

/* A task without a price in its only turn has no payments. False: they are
 * being read. */
static bool tree_task_is_free(struct request *o, const struct task *t)
{
    if (!t->price_micros && t->turn <= 1)
        return true;
    if (o->has_query)
        query_fini(&o->query);
    ledger_paid_query(&o->query, str_of(t->id.text));
    o->query.is_quick = true;
    request_read(o, &o->query, on_tree_paid);
    return false;
}

/* False: tree_go_on is called again later, or an error was answered. */
static bool tree_take_task(struct request *o, const struct task *t)
{
    struct tree_look *l = o->own;

    if (!tree_keep_task(o, t)) {
        request_fail(o, ERR_NOMEM);
        return false;
    }
    l->at++;
    o->n_looks = 0;
    return tree_task_is_free(o, &l->list[l->n - 1].t);
}

static void on_tree_task_row(struct request *o)
{
    struct tree_look *l = o->own;
    struct task row;
    const struct task *t;
    enum err e = look_take_row(o, str_of(l->ids[l->at].text), &row, &t);

    if (e == ERR_NOT_FOUND) { /* removed by retention */
        l->at++;
        o->n_looks = 0;
        tree_go_on(o);
    } else if (e) {
        request_fail(o, e);
    } else if (!t || tree_take_task(o, t)) {
        tree_go_on(o); /* without t it is moving: look again */
    }
}

static void tree_go_on(struct request *o)
{
    struct tree_look *l = o->own;

    for (; l->at < l->n_ids;) {
        struct str id = str_of(l->ids[l->at].text);
        const struct task *t = task_find(walk_tasks(o->api->walk), id);

        if (!t) {
            look_read_row(o, id, on_tree_task_row);
            return;
        }
        if (!tree_take_task(o, t))
            return;
    }
    l->then(o);
}

/* The tasks to read. */

static size_t tree_add_id(struct tree_look *l, struct str id)
{
    for (size_t i = 0; i < l->n_ids; i++)
        if (str_eq(str_of(l->ids[i].text), id))
            return i;
    if (l->n_ids == TREE_TASKS_MAX) {
        l->is_cut = true;
        return TREE_TASKS_MAX;
    }
    l->ids[l->n_ids] = id_from(id);
    return l->n_ids++;
}

/* A continued task has a row for each of its turns: the first one has its
 * parent. */
static void on_tree_delegations(struct request *o)
{
    struct tree_look *l = o->own;

    if (!request_query_ok(o))
        return;
    l->is_cut = o->query.has_more;
    QUERY_EACH(r, &o->query)
    {
        size_t i = tree_add_id(l, row_str(r, DELEGATION_TASK_ID));

        if (i == TREE_TASKS_MAX || l->modes[i])
            continue;
        l->modes[i] = (enum delegation_mode)row_int(r, DELEGATION_MODE);
        l->parents[i] = row_str(r, DELEGATION_PARENT_ID);
        if (!tree_keep_str(l, &l->parents[i])) {
            request_fail(o, ERR_NOMEM);
            return;
        }
    }
    o->n_looks = 0;
    tree_go_on(o);
}

void tree_read(struct request *o, struct str root, struct str task,
               void (*then)(struct request *o))
{
    struct tree_look *l = o->own;

    arena_reset(&l->arena);
    memset(l->modes, 0, sizeof(l->modes));
    memset(l->parents, 0, sizeof(l->parents));
    memset(l->list, 0, sizeof(l->list));
    l->n_ids = l->at = l->n = 0;
    l->is_cut = false;
    l->then = then;
    l->root = id_from(root);
    tree_add_id(l, root);
    if (task.n)
        tree_add_id(l, task);
    request_query(o, &delegation_table, DELEGATION_PER_ROOT)->is_quick = true;
    query_if(&o->query, DELEGATION_ROOT_ID, IS,
             value_text(str_of(l->root.text)));
    request_read_list(o, &o->query, on_tree_delegations);
}

static void on_tree_task(struct request *o, enum err e, const struct task *t)
{
    struct id root, task = o->task_id;

    if (e) {
        request_fail(o, e);
        return;
    }
    root = id_from(task_root(t));
    tree_read(o, str_of(root.text), str_of(task.text), tree_answer);
}

void call_tasks_tree(struct call *c)
{
    struct request *o;
    struct id id;

    if (!call_task_id(c, &id) || !(o = tree_request_of_call(c)))
        return;
    o->task_id = id;
    look_task(o, on_tree_task);
}
