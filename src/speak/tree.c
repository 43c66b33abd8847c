/* Parents are found by comparing ids, each with each: 257 of them are 66 000
 * comparisons of strings at most, less than reading a single row. Rows that
 * contradict each other (a task above itself) make no loop here: what is not
 * reached from the top is not said. */
#include "speak/tree.h"

#include <assert.h>

#include "base/utf8.h"
#include "speak/internal.h"

struct str tree_text(struct str text)
{
    const char *at = text.p, *end = text.p + text.n;

    for (int i = 0; i < TREE_TEXT_CHARS && at < end; i++) {
        size_t n = utf8_one(at, end);

        at += n ? n : 1;
    }
    return (struct str){text.p, (size_t)(at - text.p)};
}

/* Linking. */

static int find(const struct tree_task *list, size_t n, struct str id)
{
    for (size_t i = 0; i < n; i++)
        if (id.n && str_eq(str_of(list[i].t.id.text), id))
            return (int)i;
    return -1;
}

static bool is_earlier(const struct task *a, const struct task *b)
{
    return a->created_ms != b->created_ms ? a->created_ms < b->created_ms
                                          : strcmp(a->id.text, b->id.text) < 0;
}

static void adopt(struct tree_task *list, int parent, int kid)
{
    int *at = &list[parent].first_kid;

    while (*at >= 0 && is_earlier(&list[*at].t, &list[kid].t))
        at = &list[*at].next;
    list[kid].next = *at;
    *at = kid;
}

/* How far from the top, following `parent`; -1: round in a circle. */
static int level_of(const struct tree_task *list, size_t n, int at)
{
    int level = 0;

    for (; list[at].parent >= 0; at = list[at].parent)
        if (++level > (int)n)
            return -1;
    return level;
}

static int where_it_is_said(const struct tree_task *list, int parent)
{
    while (list[parent].level >= TREE_NESTED_MAX)
        parent = list[parent].parent;
    return parent;
}

static void add_up(struct tree_task *list, int at)
{
    const struct tree_task *x = &list[at];

    for (int i = at; i >= 0; i = list[i].parent) {
        list[i].n_below += i != at;
        list[i].branch_price_micros += x->t.price_micros;
        list[i].branch_captured_micros += x->captured_micros;
    }
}

void tree_link(struct tree_task *list, size_t n)
{
    int root = -1;

    assert(n <= TREE_TASKS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct tree_task *x = &list[i];

        x->first_kid = x->next = -1;
        x->n_below = x->branch_price_micros = x->branch_captured_micros = 0;
        x->parent = find(list, n, x->t.parent_id);
        if (!x->t.parent_id.n)
            root = (int)i;
    }
    for (size_t i = 0; i < n; i++) /* what it hung on is gone, or not read */
        if (list[i].parent < 0 && (int)i != root)
            list[i].parent = root;
    for (size_t i = 0; i < n; i++)
        list[i].level = level_of(list, n, (int)i);
    for (size_t i = 0; i < n; i++) {
        if (list[i].level < 0)
            continue;
        add_up(list, (int)i);
        if (list[i].parent >= 0)
            adopt(list, where_it_is_said(list, list[i].parent), (int)i);
    }
}

size_t tree_top(const struct tree_task *list, size_t n, size_t at)
{
    for (size_t i = 0; i < n && list[at].parent >= 0; i++) {
        size_t above = (size_t)list[at].parent;

        if (!list[above].is_asked_for)
            break;
        at = above;
    }
    return at;
}

/* Saying. */

static int64_t span(int64_t from_ms, int64_t to_ms)
{
    return to_ms > from_ms ? to_ms - from_ms : 0;
}

/* Of the turn that is going on or was the last: until an agent was given it it
 * waited, and then it was worked on. */
static void put_times(struct json_out *o, const struct task *t, int64_t now_ms)
{
    bool is_over = task_is_over(t->status);
    int64_t began = t->turn > 1 ? t->deadline_ms - t->budget_ms : t->created_ms;
    int64_t end = is_over ? t->finished_ms : now_ms;

    json_member_int(o, "created_ms", t->created_ms);
    json_member_int(o, "began_ms", began);
    json_member_ms(o, "started_ms", t->started_ms);
    json_member_ms(o, "finished_ms", is_over ? t->finished_ms : 0);
    json_member_int(o, "waited_ms",
                    span(began, t->started_ms ? t->started_ms : end));
    json_member_known(o, "worked_ms", t->started_ms, span(t->started_ms, end));
    json_member_int(o, "duration_ms", span(began, end));
}

static void put_error(struct json_out *o, const struct task *t)
{
    json_key(o, STR("error"));
    if (!task_is_over(t->status) || !t->result.error_code.n) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    json_member_text(o, "code", t->result.error_code);
    json_member_text(o, "message", tree_text(t->result.error));
    json_close(o, '}');
}

static void put_task(struct json_out *o, const struct tree_task *x,
                     int64_t now_ms)
{
    const struct task *t = &x->t;

    json_member_text(o, "task_id", str_of(t->id.text));
    json_member_str(o, "parent_task_id", t->parent_id);
    json_member_text(o, "agent", t->agent);
    json_member_str(o, "by_agent", t->by_agent);
    json_member_str(o, "skill", t->skill);
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_str(o, "mode", delegation_mode_name(x->mode));
    json_member_int(o, "depth", t->depth);
    json_member_int(o, "turn", t->turn);
    json_member_int(o, "attempt", t->attempt);
    json_member_text(o, "text", tree_text(t->text));
    put_times(o, t, now_ms);
    json_member_int(o, "price_micros", t->price_micros);
    json_member_int(o, "captured_micros", x->captured_micros);
    json_key(o, STR("branch"));
    json_open(o, '{');
    json_member_int(o, "tasks", 1 + x->n_below);
    json_member_int(o, "price_micros", x->branch_price_micros);
    json_member_int(o, "captured_micros", x->branch_captured_micros);
    json_close(o, '}');
    put_error(o, t);
}

/* Without recursion: down to the first child, else on to the next, closing
 * what is done. */
static void put_branch(struct json_out *o, const struct speak_tree *tree)
{
    int path[TREE_NESTED_MAX + 1], depth = 0;
    int at = (int)tree->top;

    for (;;) {
        json_open(o, '{');
        put_task(o, &tree->list[at], tree->now_ms);
        json_key(o, STR("children"));
        json_open(o, '[');
        path[depth] = at;
        at = tree->list[at].first_kid;
        if (at >= 0) {
            depth++;
            assert(depth <= TREE_NESTED_MAX);
            continue;
        }
        for (;;) { /* it is said, and perhaps whose last child it is */
            json_close(o, ']');
            json_close(o, '}');
            if (depth == 0)
                return;
            at = tree->list[path[depth]].next;
            if (at >= 0)
                break;
            depth--;
        }
    }
}

static int64_t count_open(const struct speak_tree *tree)
{
    int64_t n = 0;

    for (size_t i = 0; i < tree->n; i++) {
        int at = (int)i;

        if (tree->list[i].level < 0 || task_is_over(tree->list[i].t.status))
            continue;
        while (at >= 0 && at != (int)tree->top)
            at = tree->list[at].parent;
        n += at >= 0;
    }
    return n;
}

static void put_sums(struct json_out *o, const struct speak_tree *tree)
{
    const struct tree_task *top = &tree->list[tree->top];

    json_member_text(o, "root_user", top->t.root_user);
    json_member_bool(o, "is_whole", tree->is_whole && !tree->is_cut);
    json_member_int(o, "tasks", 1 + top->n_below);
    json_member_int(o, "open", count_open(tree));
    json_member_int(o, "price_micros", top->branch_price_micros);
    json_member_int(o, "captured_micros", top->branch_captured_micros);
}

void speak_tree_item(struct json_out *o, const struct speak_tree *tree)
{
    const struct task *t = &tree->list[tree->top].t;

    json_open(o, '{');
    json_member_text(o, "root_task_id", tree->root_id);
    put_sums(o, tree);
    json_member_text(o, "agent", t->agent);
    json_member_str(o, "by_agent", t->by_agent);
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_text(o, "text", tree_text(t->text));
    put_times(o, t, tree->now_ms);
    json_close(o, '}');
}

void speak_tree(struct json_out *o, const struct speak_tree *tree)
{
    json_open(o, '{');
    json_member_text(o, "task_id", tree->task_id);
    /* Who sees only a part need not know of what. */
    json_member_str(o, "root_task_id",
                    tree->is_whole ? tree->root_id : STR(""));
    put_sums(o, tree);
    json_key(o, STR("tree"));
    put_branch(o, tree);
    json_close(o, '}');
}
