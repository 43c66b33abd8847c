#ifndef CHOOSE_CONVERSATION_ORDER_H
#define CHOOSE_CONVERSATION_ORDER_H

/* inorder: messages of one conversation are routed one after the other.
 *
 * The choice for a message may depend on the one before it: the conversation
 * has an agent once that is committed. And routing takes longer for some
 * messages than for others. So a message waits until all before it in its
 * conversation have left.
 *
 * Owns: the lines. The places belong to the messages. Threads: the loop's. */

#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/str.h"

struct inorder;

/* Inside the struct of the waiting message. */
struct inorder_place {
    struct list_node node;
    struct inorder_line *line; /* NULL: not in a line */
    void (*turn)(struct inorder_place *p);
};

/* `max`: lines at a time. */
MUST_USE struct inorder *inorder_new(struct loop *loop, size_t max,
                                     const uint64_t seed[2]);

/* All places must have left. */
void inorder_free(struct inorder *o);

/* Join a line. *is_first: it was empty, go on; else p->turn is called from the
 * loop once those before have left. A line is named by two strings, the first
 * without '/'. ERR_OVERLOADED: too many lines; ERR_NOMEM. */
MUST_USE enum err inorder_enter(struct inorder *o, struct inorder_place *p,
                                struct str owner, struct str name,
                                bool *is_first);

/* Leave the line. Harmless for a place in none. */
void inorder_leave(struct inorder *o, struct inorder_place *p);

size_t inorder_lines(const struct inorder *o);

#endif
