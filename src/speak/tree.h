#ifndef SPEAK_TREE_H
#define SPEAK_TREE_H

/* The tree of a task: its delegations, their duration and their cost.
 *
 * Pure: turns tasks that were read in any order into one nested JSON object.
 * Borrows everything it is given. Threads: any. */

#include "base/json.h"
#include "model/delegation.h"
#include "model/task.h"

enum {
    TREE_TASKS_MAX = 1 + DELEGATION_PER_ROOT, /* the root and its delegations */
    TREE_TEXT_CHARS = 200,
    /* Maximal nesting: each task is an object in a list, and our own parser
     * reads at most JSON_DEPTH_MAX. A deeper task is listed next to its
     * parent. */
    TREE_NESTED_MAX = 28,
};

struct tree_task {
    struct task t;             /* text may already be cut (tree_text) */
    enum delegation_mode mode; /* zero: sent by a person */
    int64_t captured_micros;   /* sum of all its turns */
    bool is_asked_for;         /* the caller may see it */

    /* Set by tree_link: indexes in the array; -1: none. */
    int parent, first_kid, next;
    int level; /* 0: at the top */
    int64_t n_below;
    int64_t branch_price_micros, branch_captured_micros; /* including itself */
};

/* The first TREE_TEXT_CHARS characters of a text. */
struct str tree_text(struct str text);

/* Find the parent of each task, sort children by acceptance, and sum up the
 * branches. A task whose parent is missing becomes a child of the root, or
 * stands at the top if that is missing too. n is at most TREE_TASKS_MAX. */
void tree_link(struct tree_task *list, size_t n);

/* The start of the tree for a caller who asks about list[at] and may see it:
 * the highest ancestor with no hidden task in between. */
size_t tree_top(const struct tree_task *list, size_t n, size_t at);

struct speak_tree {
    const struct tree_task *list; /* linked */
    size_t n, top;
    struct str task_id; /* the task in the request */
    struct str root_id;
    bool is_whole; /* list[top] is the root */
    bool is_cut;   /* more tasks exist than were read */
    int64_t now_ms;
};

/* {"root_task_id":…,"tree":{…,"children":[…]}} */
void speak_tree(struct json_out *o, const struct speak_tree *tree);

/* One item of a list of trees: the root and the sums; always a whole tree. */
void speak_tree_item(struct json_out *o, const struct speak_tree *tree);

#endif
