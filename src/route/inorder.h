#ifndef INORDER_H
#define INORDER_H

/* inorder: messages of one conversation go one after the other.
 *
 * Who gets a message may hang on the one before it: the conversation has an
 * agent once that is committed. And finding out takes longer for some than for
 * others. So whoever comes to a conversation that has somebody in it waits
 * behind them, until they leave.
 *
 * Owns: the lines. The places in them are their owners'. Threads: the loop's.
 */

#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/str.h"

struct inorder;

/* Inside the struct of whoever waits. */
struct inorder_place {
    struct list_node node;
    struct inorder_line *line; /* NULL: in none */
    void (*turn)(struct inorder_place *p);
};

/* NULL: memory is gone. `max` conversations at a time. */
MUST_USE struct inorder *inorder_new(struct loop *loop, size_t max,
                                     const uint64_t seed[2]);

/* All have left. */
void inorder_free(struct inorder *o);

/* Stand behind whoever is there. *is_first: nobody is, go on; else p->turn is
 * called, from the loop, once those before have left. Two strings are the
 * name of a line, and the first has no '/' in it. ERR_OVERLOADED: too many
 * lines; ERR_NOMEM. */
MUST_USE enum err inorder_enter(struct inorder *o, struct inorder_place *p,
                                struct str owner, struct str name,
                                bool *is_first);

/* Harmless where it is in none. */
void inorder_leave(struct inorder *o, struct inorder_place *p);

size_t inorder_lines(const struct inorder *o);

#endif
