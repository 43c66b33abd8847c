#ifndef BASE_LIST_H
#define BASE_LIST_H

/* list: a ring of nodes embedded in the linked objects.
 *
 * A node is in at most one list; a zeroed or removed node is in none. Nothing
 * is allocated. Threads: one at a time. */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *prev, *next;
};

struct list {
    struct list_node head;
};

/* The object that contains a node: LIST_OF(n, struct worker, node). */
#define LIST_OF(ptr, type, member) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->head.prev = l->head.next = &l->head;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->head.next == &l->head;
}

static inline bool list_has(const struct list_node *n)
{
    return n->next != NULL;
}

/* `at` is a node in a list, or the head of one: then n becomes the last. */
static inline void list_insert_before(struct list_node *at, struct list_node *n)
{
    assert(!list_has(n));
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}

static inline void list_append(struct list *l, struct list_node *n)
{
    list_insert_before(&l->head, n);
}

/* Removing a node that is in no list is harmless. */
static inline void list_remove(struct list_node *n)
{
    if (!list_has(n))
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->prev = n->next = NULL;
}

/* NULL when empty. */
static inline struct list_node *list_first(const struct list *l)
{
    return list_is_empty(l) ? NULL : l->head.next;
}

/* NULL after the last. */
static inline struct list_node *list_next(const struct list *l,
                                          const struct list_node *n)
{
    return n->next == &l->head ? NULL : n->next;
}

/* Counts the nodes one by one. */
static inline size_t list_length(const struct list *l)
{
    size_t n = 0;

    for (struct list_node *at = list_first(l); at; at = list_next(l, at))
        n++;
    return n;
}

/* Move all nodes of `from`, in order, to the end of `l`. */
static inline void list_append_all(struct list *l, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->head.next->prev = l->head.prev;
    l->head.prev->next = from->head.next;
    from->head.prev->next = &l->head;
    l->head.prev = from->head.prev;
    list_init(from);
}

static inline struct list_node *list_pop(struct list *l)
{
    struct list_node *n = list_first(l);

    if (n)
        list_remove(n);
    return n;
}

/* Every node of l in turn. The current one must stay in the list. */
#define LIST_EACH(node, l)                             \
    for (struct list_node *node = list_first(l); node; \
         node = list_next(l, node))

#endif
