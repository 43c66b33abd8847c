#ifndef SPEAK_TREE_H
#define SPEAK_TREE_H

/* The tree of a task: who gave work to whom, how long it took and what it cost.
 * Pure: from tasks that were read one by one, in whatever order, to one nested
 * JSON object. Borrows everything it is given. Threads: any. */

#include "base/json.h"
#include "model/delegation.h"
#include "model/task.h"

enum {
    TREE_TASKS_MAX =
        1 + DELEGATION_PER_ROOT, /* the root and what hangs on it */
    TREE_TEXT_CHARS = 200,
    /* So deep it is nested: each task is an object in a list, and JSON deeper
     * than JSON_DEPTH_MAX is nothing that we would read ourselves. What is
     * deeper stands beside its parent. */
    TREE_NESTED_MAX = 28,
};

struct tree_task {
    struct task t;             /* its text may be cut already (tree_text) */
    enum delegation_mode mode; /* zero: a person sent it */
    int64_t captured_micros;   /* of all its turns */
    bool is_asked_for;         /* it may be seen by who asks */

    /* tree_link's: places in the array; -1: none. */
    int parent, first_kid, next;
    int level; /* 0: it stands at the top */
    int64_t n_below;
    int64_t branch_price_micros, branch_captured_micros; /* with itself */
};

/* The first characters of a text. */
struct str tree_text(struct str text);

/* Find each one's parent, put children into the order in which they were
 * accepted, and sum the branches up. What it hung on is not among them: it
 * hangs on the root, or where that is missing too, stands at the top. n is at
 * most TREE_TASKS_MAX. */
void tree_link(struct tree_task *list, size_t n);

/* Where to begin for somebody who asks about list[at], which they may see: as
 * far up as they may see every task on the way. */
size_t tree_top(const struct tree_task *list, size_t n, size_t at);

struct speak_tree {
    const struct tree_task *list; /* linked */
    size_t n, top;
    struct str task_id; /* that was asked about */
    struct str root_id;
    bool is_whole; /* list[top] is the root */
    bool is_cut;   /* there are more of them than were read */
    int64_t now_ms;
};

/* {"root_task_id":…,"tree":{…,"children":[…]}} */
void speak_tree(struct json_out *o, const struct speak_tree *tree);

/* One of a list of trees: its root, and the sums; whole. */
void speak_tree_item(struct json_out *o, const struct speak_tree *tree);

#endif
