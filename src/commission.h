#ifndef COMMISSION_H
#define COMMISSION_H

/* commission: one request by which an agent has others do something: one piece
 * of work, or up to DELEGATION_AT_ONCE_MAX of them, whichever road it came by.
 *
 *     commission_new -> commission_read -> commission_go -> each: walk_delegate
 * -> accepted
 *         -> (sync) hire_wait -> over                           -> done, once
 *
 * What one of several comes to is no matter of the others'. Who asked and has
 * gone leaves it: what was accepted stays what it is, and hire keeps its
 * result.
 *
 * Owned by who made it, through its list. Borrows the walk. Threads: the
 * loop's. */

#include "registry/registry.h"
#include "speak/speak.h"
#include "walk.h"

struct commission;

struct commission_opts {
    struct loop *loop;
    struct log *log;
    struct walk *walk;
    struct store *store;
    struct registry *registry;
    struct list *list;           /* of its owner; it is in it while it lives */
    struct str by;               /* the agent that asks; empty: a person does,
                                  * for an agent of theirs where they say
                                  * parent_task_id, and else for themselves */
    const struct caller *caller; /* that person, or who the line is of; NULL: a
                                  * child has none. Copied */
    struct str parent_id;        /* the work it is part of, whatever they say;
                                  * empty: as they say */
    struct str original_id;      /* of what is asked for in two phases */
    struct str idempotency_key;  /* that came beside it; with commission_read */
    bool waits_for_nothing;      /* done as soon as it is accepted */
    /* From the loop, never before commission_go has returned; not after
     * commission_leave. */
    void (*done)(void *ctx);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct commission *commission_new(const struct commission_opts *opts);

/* What is asked for: agent.send_task's params, or agent.delegate's. As
 * speak_delegate; and ERR_BAD_REQUEST where a person asks for what only an
 * agent can. */
MUST_USE enum err commission_read(struct commission *c, struct str body,
                                  bool is_two_phase, struct why *why);
void commission_go(struct commission *c);

/* Nobody waits any more: what is not over is answered as what has begun, and
 * goes on. */
void commission_hurry(struct commission *c);

/* When it is done. */

/* The only piece was refused: how. OK: it was not, or it is one of several. */
enum err commission_refused(const struct commission *c, struct str *words,
                            struct str *details);
/* Whether it was asked for in two phases, where a refusal is an error and no
 * answer. */
bool commission_is_two_phase(const struct commission *c);
/* The answer, an object; of what was refused too. */
void commission_write(const struct commission *c, struct json_out *o);
/* Whether all that was to be waited for is over. */
bool commission_is_over(const struct commission *c);
/* Whether there is a piece of that number; and it, as it was accepted. False:
 * it was not. */
struct commission_piece {
    struct id key, task_id, message_id; /* an empty key: a person's */
    bool is_open;                       /* what came of it is not said yet */
};
bool commission_is_piece(const struct commission *c, size_t i);
MUST_USE bool commission_piece(const struct commission *c, size_t i,
                               struct commission_piece *out);

/* Nobody wants to hear of it any more, done or not: it goes once nothing of it
 * is out. */
void commission_leave(struct commission *c);

/* All of a list, whatever is out: when nothing will come back any more. */
void commissions_free(struct list *list);

#endif
