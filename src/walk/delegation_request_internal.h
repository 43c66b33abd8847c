#ifndef WALK_DELEGATION_REQUEST_INTERNAL_H
#define WALK_DELEGATION_REQUEST_INTERNAL_H

/* Declarations shared by the files of delegation_request: delegation_request.c
 * sends each item on its way, delegation_request_end.c waits for it and writes
 * the answer. */

#include "walk/delegation_request.h"
#include "walk/internal.h"

enum {
    DELEGATION_REQUEST_TEXT_BYTES =
        128 * 1024 * 1024, /* of all items together */
    DELEGATION_REQUEST_ANSWER_BYTES =
        8 * 1024 * 1024, /* of one answer, escaped */
};

enum piece_state {
    PIECE_NEW,
    PIECE_LOOKING,
    PIECE_OUT,
    PIECE_WAITING,
    PIECE_OVER
};

struct piece {
    struct delegation_request *delegation_request;
    enum piece_state state;
    bool is_accepted, is_waiter, is_listening, has_query;
    bool ends_late; /* end a person's task when the wait is over */
    bool is_begun;  /* answered as started */
    bool is_repeat; /* repeat of an earlier idempotency key */
    struct delegation_request_piece ids;
    char by[AGENT_NAME_MAX + 1]; /* empty: a person */
    bool ends_with_line;
    int64_t wait_ms;
    struct delegation_waiter waiter;
    struct task_listener listener; /* of a person's item */
    struct timer timer;
    struct query query;
    enum err err;
    struct why why;
    struct buf answer, details;
};

struct delegation_request {
    struct delegation_request_opts opts;
    struct list_node node;
    struct caller caller;
    char by[AGENT_NAME_MAX + 1];
    char original_id[DELEGATION_ID_MAX + 1];
    char parent_id[ID_BYTES];
    struct arena arena;
    struct speak_orders *orders; /* in the arena; NULL: all were sent */
    struct piece *pieces;
    size_t n, n_open, n_out; /* n_out: items that the walk or the store has */
    bool is_many, is_beginning, is_left;
    struct loop_job done_job;
};

/* delegation_request_end.c */

/* The answer of an item is known. */
void piece_refuse(struct piece *p, enum err e, const struct why *why);
void piece_accepted(struct piece *p);
/* Wait for the result of an item. */
void piece_wait(struct piece *p);
/* The gate dropped an item of a person: it is over. */
void piece_dropped(struct piece *p, const struct msg *m);
/* A repeat by idempotency key: answer the state of the earlier item. */
void piece_repeat(struct piece *p);
/* Harmless if it is not waiting. */
void piece_stop_waiting(struct piece *p);
/* Finish the request if that was the last item. */
void delegation_request_check(struct delegation_request *c);

#endif
