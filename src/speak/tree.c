/* Parents are found by comparing every pair of ids: for 257 tasks at most 66
 * 000 string comparisons, less than reading one row. Contradictory rows (a task
 * above itself) cause no loop: tasks not reachable from the top are left
 * out. */
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

static int tree_find_task(const struct tree_task *list, size_t n, struct str id)
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

/* Distance from the top along `parent`; -1 for a cycle. */
static int tree_level(const struct tree_task *list, size_t n, int at)
{
    int level = 0;

    for (; list[at].parent >= 0; at = list[at].parent)
        if (++level > (int)n)
            return -1;
    return level;
}

void tree_link(struct tree_task *list, size_t n)
{
    int root = -1;

    assert(n <= TREE_TASKS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct tree_task *node = &list[i];

        node->first_kid = node->next = -1;
        node->n_below = node->branch_price_micros =
            node->branch_captured_micros = 0;
        node->parent = tree_find_task(list, n, node->t.parent_id);
        if (!node->t.parent_id.n)
            root = (int)i;
    }
    for (size_t i = 0; i < n; i++) /* its parent is gone, or was not read */
        if (list[i].parent < 0 && (int)i != root)
            list[i].parent = root;
    for (size_t i = 0; i < n; i++)
        list[i].level = tree_level(list, n, (int)i);
    for (size_t i = 0; i < n; i++) {
        int parent = list[i].parent;

        if (list[i].level < 0)
            continue;
        for (int at = (int)i; at >= 0; at = list[at].parent) {
            list[at].n_below += at != (int)i;
            list[at].branch_price_micros += list[i].t.price_micros;
            list[at].branch_captured_micros += list[i].captured_micros;
        }
        while (parent >= 0 && list[parent].level >= TREE_NESTED_MAX)
            parent = list[parent].parent;
        if (parent >= 0) {
            int *at = &list[parent].first_kid;

            while (*at >= 0 && is_earlier(&list[*at].t, &list[i].t))
                at = &list[*at].next;
            list[i].next = *at;
            *at = (int)i;
        }
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

static int64_t tree_span_ms(int64_t from_ms, int64_t to_ms)
{
    return to_ms > from_ms ? to_ms - from_ms : 0;
}

/* Times of the current or last turn: it waits until an agent gets it, and then
 * it is worked on. */
static void tree_put_times(struct json_out *o, const struct task *t,
                           int64_t now_ms)
{
    bool is_over = task_is_over(t->status);
    int64_t began = t->turn > 1 ? t->deadline_ms - t->budget_ms : t->created_ms;
    int64_t end = is_over ? t->finished_ms : now_ms;

    json_member_int(o, "created_ms", t->created_ms);
    json_member_int(o, "began_ms", began);
    json_member_ms(o, "started_ms", t->started_ms);
    json_member_ms(o, "finished_ms", is_over ? t->finished_ms : 0);
    json_member_int(o, "waited_ms",
                    tree_span_ms(began, t->started_ms ? t->started_ms : end));
    json_member_known(o, "worked_ms", t->started_ms,
                      tree_span_ms(t->started_ms, end));
    json_member_int(o, "duration_ms", tree_span_ms(began, end));
}

static void tree_put_task(struct json_out *o, const struct tree_task *node,
                          int64_t now_ms)
{
    const struct task *t = &node->t;

    json_member_text(o, "task_id", str_of(t->id.text));
    json_member_str(o, "parent_task_id", t->parent_id);
    json_member_text(o, "agent", t->agent);
    json_member_str(o, "by_agent", t->by_agent);
    json_member_str(o, "skill", t->skill);
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_str(o, "mode", delegation_mode_name(node->mode));
    json_member_int(o, "depth", t->depth);
    json_member_int(o, "turn", t->turn);
    json_member_int(o, "attempt", t->attempt);
    json_member_text(o, "text", tree_text(t->text));
    tree_put_times(o, t, now_ms);
    json_member_int(o, "price_micros", t->price_micros);
    json_member_int(o, "captured_micros", node->captured_micros);
    json_key(o, STR("branch"));
    json_open(o, '{');
    json_member_int(o, "tasks", 1 + node->n_below);
    json_member_int(o, "price_micros", node->branch_price_micros);
    json_member_int(o, "captured_micros", node->branch_captured_micros);
    json_close(o, '}');
    put_task_error(o, task_is_over(t->status) ? t->result.error_code : STR(""),
                   tree_text(t->result.error));
}

/* Without recursion: down to the first child, else on to the next sibling,
 * closing finished tasks. */
static void tree_put_branch(struct json_out *o, const struct speak_tree *tree)
{
    int path[TREE_NESTED_MAX + 1], depth = 0;
    int at = (int)tree->top;

    for (;;) {
        json_open(o, '{');
        tree_put_task(o, &tree->list[at], tree->now_ms);
        json_key(o, STR("children"));
        json_open(o, '[');
        path[depth] = at;
        at = tree->list[at].first_kid;
        if (at >= 0) {
            depth++;
            assert(depth <= TREE_NESTED_MAX);
            continue;
        }
        for (;;) { /* this task is written, and perhaps its parents with it */
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

static int64_t tree_count_open(const struct speak_tree *tree)
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

static void tree_put_sums(struct json_out *o, const struct speak_tree *tree)
{
    const struct tree_task *top = &tree->list[tree->top];

    json_member_text(o, "root_user", top->t.root_user);
    json_member_bool(o, "is_whole", tree->is_whole && !tree->is_cut);
    json_member_int(o, "tasks", 1 + top->n_below);
    json_member_int(o, "open", tree_count_open(tree));
    json_member_int(o, "price_micros", top->branch_price_micros);
    json_member_int(o, "captured_micros", top->branch_captured_micros);
}

void speak_tree_item(struct json_out *o, const struct speak_tree *tree)
{
    const struct task *t = &tree->list[tree->top].t;

    json_open(o, '{');
    json_member_text(o, "root_task_id", tree->root_id);
    tree_put_sums(o, tree);
    json_member_text(o, "agent", t->agent);
    json_member_str(o, "by_agent", t->by_agent);
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_text(o, "text", tree_text(t->text));
    tree_put_times(o, t, tree->now_ms);
    json_close(o, '}');
}

void speak_tree(struct json_out *o, const struct speak_tree *tree)
{
    json_open(o, '{');
    json_member_text(o, "task_id", tree->task_id);
    /* A caller who sees only a part need not know the root. */
    json_member_str(o, "root_task_id",
                    tree->is_whole ? tree->root_id : STR(""));
    tree_put_sums(o, tree);
    json_key(o, STR("tree"));
    tree_put_branch(o, tree);
    json_close(o, '}');
}
