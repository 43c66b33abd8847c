#ifndef COMMISSION_INTERNAL_H
#define COMMISSION_INTERNAL_H

/* What the files of a commission share: commission.c sends each piece on its
 * way, commission_end.c waits for it and writes the answer. */

#include "commission.h"

enum {
    COMMISSION_TEXT_BYTES = 128 * 1024 * 1024, /* of all pieces, read */
    COMMISSION_ANSWER_BYTES = 8 * 1024 * 1024, /* of one: its text, escaped */
};

enum piece_state {
    PIECE_NEW,
    PIECE_LOOKING,
    PIECE_OUT,
    PIECE_WAITING,
    PIECE_OVER
};

struct piece {
    struct commission *commission;
    enum piece_state state;
    bool is_accepted, is_waiter, is_listening, has_query;
    bool ends_late; /* a person's, when nobody waits any more */
    bool is_begun;  /* no more was waited for */
    struct commission_piece ids;
    char by[AGENT_NAME_MAX + 1]; /* empty: a person */
    bool ends_with_line;
    int64_t wait_ms;
    struct hire_waiter waiter;
    struct task_listener listener; /* of a person's */
    struct timer timer;
    struct query query;
    enum err err;
    struct why why;
    struct buf answer, details;
};

struct commission {
    struct commission_opts opts;
    struct list_node node;
    struct caller caller;
    char by[AGENT_NAME_MAX + 1];
    char original_id[DELEGATION_ID_MAX + 1];
    char parent_id[ID_BYTES];
    struct arena arena;
    struct speak_orders *orders; /* in the arena; NULL: all are sent */
    struct piece *pieces;
    size_t n, n_open, n_out; /* n_out: of those that cannot be called back */
    bool is_many, is_beginning, is_left;
    struct loop_job done_job;
};

/* commission_end.c */

/* Its part of the answer is there. */
void piece_refuse(struct piece *p, enum err e, const struct why *why);
void piece_accepted(struct piece *p);
/* It is, or will be when what it waits for is over. */
void piece_wait(struct piece *p);
/* A person's, by the gate: it is over. */
void piece_dropped(struct piece *p, const struct msg *m);
/* Harmless where it does not wait. */
void piece_stop_waiting(struct piece *p);
/* If that was the last. */
void commission_check(struct commission *c);

#endif
