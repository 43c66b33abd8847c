#ifndef WALK_DELEGATION_REQUEST_H
#define WALK_DELEGATION_REQUEST_H

/* delegation_request: one request of an agent to delegate, from any transport:
 * one item, or up to DELEGATION_AT_ONCE_MAX.
 *
 *     delegation_request_new -> delegation_request_go
 *       -> each item: walk_delegate -> accepted
 *          -> (sync) delegation_wait -> over
 *       -> done, once
 *
 * Items succeed or fail independently. If the requester goes away, accepted
 * items go on, and delegation/ keeps their results.
 *
 * In a list of the walk, which it borrows. Threads: loop thread only. */

#include "speak/speak.h"
#include "walk/walk.h"

struct delegation_request;

struct delegation_request_opts {
    struct walk *walk;
    struct str
        by; /* the requesting agent; empty: a person, who acts for an agent of
               theirs if parent_task_id is given, else for themselves */
    const struct caller *caller; /* that person, or the owner of the connection;
                                    NULL for a child process. Copied */
    struct str parent_id; /* the parent task, whatever the request says; empty:
                             as the request says */
    struct str original_id;     /* of a two-phase request; empty: of another */
    struct str idempotency_key; /* beside the body */
    bool waits_for_nothing;     /* done as soon as all items are accepted */
    /* Called from the loop, never before delegation_request_go has returned and
     * not after delegation_request_leave. */
    void (*done)(void *ctx);
    void *ctx;
};

/* opts are copied, the idempotency key and the body only read. The body has the
 * params of agent.send_task (two-phase) or agent.delegate. Errors as
 * speak_delegate, with NULL in *out; and ERR_BAD_REQUEST if a person asks for
 * an option that only an agent has. */
MUST_USE enum err
delegation_request_new(const struct delegation_request_opts *opts,
                       struct str body, struct delegation_request **out,
                       struct why *why);
void delegation_request_go(struct delegation_request *c);

/* Stop waiting: unfinished items are answered as started, and go on. */
void delegation_request_hurry(struct delegation_request *c);

/* After done. */

/* The error of the only item, with words and details. OK: it was not rejected,
 * or there are several. */
enum err delegation_request_refused(const struct delegation_request *c,
                                    struct str *words, struct str *details);
/* In two-phase mode a rejection is an error and not an answer. */
bool delegation_request_is_two_phase(const struct delegation_request *c);
/* Write the answer, an object, also for rejected items. */
void delegation_request_write(const struct delegation_request *c,
                              struct json_out *o);
/* No item was answered as merely started. */
bool delegation_request_is_over(const struct delegation_request *c);
/* The number of items; and item i as it was accepted; false: it was not. */
struct delegation_request_piece {
    struct id key, task_id, message_id; /* empty key: a person's item */
    bool is_open;                       /* the answer has no result for it */
};
size_t delegation_request_n(const struct delegation_request *c);
MUST_USE bool delegation_request_piece(const struct delegation_request *c,
                                       size_t i,
                                       struct delegation_request_piece *out);

/* The caller is not interested any more, before or after done. Freed when none
 * of its items is under way. */
void delegation_request_leave(struct delegation_request *c);

#endif
