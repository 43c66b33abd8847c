/* The tree that a task belongs to: its root, and everything that was delegated
 * under it. Who may see the root sees all of it; who may see only a part, from
 * there down.
 *
 *     the task -> the delegations of its root (one look along an index)
 *              -> each of their tasks: in memory, or else one look-up
 *              -> what was paid for those that cost something: likewise
 *
 * Bounded: TREE_TASKS_MAX tasks, two look-ups for each, one after the other so
 * that a large tree keeps nobody waiting; a text is cut when it is read. The
 * tasks are seen one after the other, not all at the same moment. */
#include "calls/tree_look.h"

#include "calls/share.h"

#include <stdlib.h>

#include "base/fault.h"
#include "hire/hire.h"
#include "ledger/ledger.h"

enum { KEPT_BYTES = 4 * 1024 * 1024 };

void tree_look_free(struct tree_look *l)
{
    if (l) {
        arena_fini(&l->arena);
        tree_page_free(l->page);
    }
    free(l);
}

bool tree_look_begin(struct open *o)
{
    o->tree = FAULT("calls.tree") ? NULL : calloc(1, sizeof(*o->tree));
    if (!o->tree) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return false;
    }
    arena_init(&o->tree->arena, KEPT_BYTES);
    return true;
}

static bool keep(struct tree_look *l, struct str *s)
{
    return arena_keep(&l->arena, *s, s);
}

/* A copy of what is said of it, and of nothing else. */
static bool keep_task(struct open *o, const struct task *t)
{
    struct tree_look *l = o->tree;
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
    if (!keep(l, &x->t.root_user) || !keep(l, &x->t.agent) ||
        !keep(l, &x->t.skill) || !keep(l, &x->t.text) ||
        !keep(l, &x->t.by_agent) || !keep(l, &x->t.parent_id) ||
        !keep(l, &x->t.result.error_code) || !keep(l, &x->t.result.error))
        return false;
    l->n++;
    return true;
}

/* All are here. */

int tree_place_of(const struct tree_look *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->list[i].t.id.text, id) == 0)
            return (int)i;
    return -1;
}

static void answer(struct open *o)
{
    struct tree_look *l = o->tree;
    struct json_out out = json_out(&o->calls->body);
    int asked = tree_place_of(l, o->task_id.text);
    struct speak_tree tree = {.list = l->list,
                              .n = l->n,
                              .task_id = str_of(o->task_id.text),
                              .root_id = str_of(l->root.text),
                              .is_cut = l->is_cut,
                              .now_ms = loop_wall_ms(o->calls->loop)};

    /* Retention may have been there since, or it is somebody else's now. */
    if (asked < 0 || !l->list[asked].is_asked_for) {
        open_refuse(o, ERR_NOT_FOUND, STR(""), STR(""));
        return;
    }
    tree_link(l->list, l->n);
    tree.top = tree_top(l->list, l->n, (size_t)asked);
    tree.is_whole = strcmp(l->list[tree.top].t.id.text, l->root.text) == 0;
    speak_tree(&out, &tree);
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* One after the other. */

static void go_on(struct open *o);

static void begin_query(struct open *o, const struct table *t, size_t limit)
{
    if (o->has_query)
        query_fini(&o->query);
    query_init(&o->query, t, limit);
    o->has_query = o->query.is_quick = true;
}

static void on_paid(struct open *o)
{
    struct tree_look *l = o->tree;

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    l->list[l->n - 1].captured_micros = ledger_paid(&o->query);
    l->is_cut = l->is_cut || o->query.has_more;
    go_on(o);
}

/* What cost nothing, in its only turn, has no row there. False: it has to be
 * asked for. */
static bool is_free(struct open *o, const struct task *t)
{
    if (!t->price_micros && t->turn <= 1)
        return true;
    if (o->has_query)
        query_fini(&o->query);
    ledger_paid_query(&o->query, str_of(t->id.text));
    o->has_query = o->query.is_quick = true;
    open_read(o, &o->query, on_paid);
    return false;
}

/* False: go_on is called again when something has come back, or it is over. */
static bool take(struct open *o, const struct task *t)
{
    struct tree_look *l = o->tree;

    if (!keep_task(o, t)) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return false;
    }
    l->at++;
    o->n_looks = 0;
    return is_free(o, &l->list[l->n - 1].t);
}

static void on_row(struct open *o)
{
    struct tree_look *l = o->tree;
    struct task row;
    const struct task *t;
    enum err e =
        share_look_row(walk_tasks(o->calls->walk), &o->query,
                       str_of(l->ids[l->at].text), &o->n_looks, &row, &t);

    if (e == ERR_NOT_FOUND) { /* retention was there */
        l->at++;
        o->n_looks = 0;
        go_on(o);
    } else if (e) {
        open_refuse(o, e, STR(""), STR(""));
    } else if (!t || take(o, t)) {
        go_on(o); /* without t it is moving: once more */
    }
}

static void go_on(struct open *o)
{
    struct tree_look *l = o->tree;

    for (; l->at < l->n_ids;) {
        struct str id = str_of(l->ids[l->at].text);
        const struct task *t = task_find(walk_tasks(o->calls->walk), id);

        if (!t) {
            share_look_ask(&o->query, &o->has_query, id);
            open_read(o, &o->query, on_row);
            return;
        }
        if (!take(o, t))
            return;
    }
    l->then(o);
}

/* Whom to look at. */

static size_t want(struct tree_look *l, struct str id)
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

/* A task that was gone on with has a row for each of its turns: the first is
 * where it hangs. */
static void on_delegations(struct open *o)
{
    struct tree_look *l = o->tree;

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    l->is_cut = o->query.has_more;
    QUERY_EACH(r, &o->query)
    {
        size_t i = want(l, row_str(r, DELEGATION_TASK_ID));

        if (i == TREE_TASKS_MAX || l->modes[i])
            continue;
        l->modes[i] = (enum delegation_mode)row_int(r, DELEGATION_MODE);
        l->parents[i] = row_str(r, DELEGATION_PARENT_ID);
        if (!keep(l, &l->parents[i])) {
            open_refuse(o, ERR_NOMEM, STR(""), STR(""));
            return;
        }
    }
    o->n_looks = 0;
    go_on(o);
}

void tree_read(struct open *o, struct str root, struct str task,
               void (*then)(struct open *o))
{
    struct tree_look *l = o->tree;

    arena_reset(&l->arena);
    memset(l->modes, 0, sizeof(l->modes));
    memset(l->parents, 0, sizeof(l->parents));
    memset(l->list, 0, sizeof(l->list));
    l->n_ids = l->at = l->n = 0;
    l->is_cut = false;
    l->then = then;
    l->root = id_from(root);
    want(l, root);
    if (task.n)
        want(l, task);
    begin_query(o, &delegation_table, DELEGATION_PER_ROOT);
    query_if(&o->query, DELEGATION_ROOT_ID, IS,
             value_text(str_of(l->root.text)));
    open_list(o, &o->query, on_delegations);
}

static void on_task(struct open *o, enum err e, const struct task *t)
{
    struct id root, task = o->task_id;

    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    root = id_from(task_root(t));
    tree_read(o, str_of(root.text), str_of(task.text), answer);
}

void call_tasks_tree(struct call *c)
{
    struct open *o;
    struct id id;

    if (!call_task_id(c, &id) || !(o = open_new(c)) || !tree_look_begin(o))
        return;
    o->task_id = id;
    look_task(o, on_task);
}
