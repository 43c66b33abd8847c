#ifndef CALLS_TREE_LOOK_H
#define CALLS_TREE_LOOK_H

/* One tree, as it is being read: tree.c reads it for the call about one, and
 * trees.c one after the other for the list of them. */

#include "calls/internal.h"

struct tree_page; /* trees.c */

struct tree_look {
    struct arena arena;
    struct id root, ids[TREE_TASKS_MAX]; /* to be looked at */
    struct str parents[TREE_TASKS_MAX];
    enum delegation_mode modes[TREE_TASKS_MAX];
    size_t n_ids, at;
    bool is_cut;
    struct tree_task list[TREE_TASKS_MAX];
    size_t n;
    void (*then)(struct open *o); /* all are here */
    struct tree_page *page;       /* NULL: one tree alone */
};

/* o->tree, with nothing in it. False: o was refused. */
MUST_USE bool tree_look_begin(struct open *o);

/* Read everything under a root into o->tree; `task` too, which may be a task of
 * it that the rows do not know (empty: none). Then `then`, unless o was refused
 * or nobody is there any more. */
void tree_read(struct open *o, struct str root, struct str task,
               void (*then)(struct open *o));

/* Where in the list the task is; -1: it is gone. */
int tree_place_of(const struct tree_look *l, const char *id);

/* NULL is fine. */
void tree_page_free(struct tree_page *p);

#endif
