#ifndef API_TREE_READ_H
#define API_TREE_READ_H

/* A tree while it is read: by tree.c for one tree, and by trees.c for a list of
 * them. */

#include "api/internal.h"

struct tree_page; /* trees.c */

struct tree_look {
    struct arena arena;
    struct id root, ids[TREE_TASKS_MAX]; /* to be read */
    struct str parents[TREE_TASKS_MAX];
    enum delegation_mode modes[TREE_TASKS_MAX];
    size_t n_ids, at;
    bool is_cut;
    struct tree_task list[TREE_TASKS_MAX];
    size_t n;
    void (*then)(struct request *o); /* called when all are read */
    struct tree_page *page;          /* NULL: a single tree */
};

/* A request that keeps a struct tree_look. NULL: an error was answered. */
MUST_USE struct request *tree_request_of_call(struct call *c);

static inline struct tree_look *tree_of(const struct request *o)
{
    return o->own;
}

/* Read all tasks under a root into tree_of(o); also `task`, which may be a task
 * that the rows do not know (empty: none). Then call then(), unless an error
 * was answered or the client has gone. */
void tree_read(struct request *o, struct str root, struct str task,
               void (*then)(struct request *o));

/* The index of the task in the list; -1: it is gone. */
int tree_place_of(const struct tree_look *l, const char *id);

/* NULL is fine. */
void tree_page_free(struct tree_page *p);

#endif
