#ifndef DELIVER_LINE_H
#define DELIVER_LINE_H

/* What line.c, heard.c, line_read.c and wake.c share.
 *
 * A seat is where an agent is looked for: its routing id and its creator, both
 * in lower case. So a routing id serves the agents of one creator and nobody
 * else's. On a seat is a line, or nobody; beside it wait the desks that would
 * like to have it (sleepers, wake.c). It is there as long as one of them is. */

#include "base/arena.h"
#include "deliver/internal.h"

enum {
    LINES_MAX = 1000 * 1000,
    LINE_UNSAID_MAX = 4 * 1024 * 1024, /* bytes that wait for room, beyond the
                                        * one that found none */
    LINE_ASKED_MAX = 64, /* results of a child whose receipts are open */
    SEAT_KEY_MAX = AGENT_URL_MAX + 1 + PRINCIPAL_NAME_MAX,
    LINE_MESSAGE_MAX = 8 * 1024 * 1024, /* a text in which every byte had to be
                                         * escaped, and what is around it */
    RETRY_AFTER_MAX_MS = 600 * 1000,
};

struct seat {
    struct line *line;
    struct list sleepers;
    size_t n;
    char key[];
};

struct line {
    struct deliver *deliver;
    uint64_t id;
    struct seat *seat; /* NULL: a child's, or gone */
    struct line_ops ops;
    void *ctx;
    struct list deliveries;
    size_t n_deliveries;
    struct delivery *last; /* of them, that was spoken of; NULL: none */
    struct list unsaid;    /* in order, while there is no room */
    size_t unsaid_bytes;
    struct list asked; /* line_read.c */
    size_t n_asked;
    bool is_gone;
    struct list_node node; /* of those that are gone */
    size_t n_agent;
    char agent[AGENT_NAME_MAX + 1];
};

/* A message that waits for room. */
struct unsaid {
    struct list_node node;
    struct line *line;
    struct delivery *delivery; /* whose task.execute it is; NULL: no such */
    size_t n;
    char text[];
};

struct lines {
    struct map by_id; /* the eight bytes of an id -> struct line */
    struct map seats;
    uint64_t last_id;
    struct list gone; /* freed at the end of the turn */
    struct loop_job reaper;
    struct arena scratch; /* of one message */
    struct map asked;     /* line_read.c: receipt -> who is to be answered */
    uint64_t last_receipt;
};

/* line.c */
MUST_USE struct str seat_key(const struct agent *a, const struct agent_url *url,
                             char out[SEAT_KEY_MAX]);
struct seat *seat_find(const struct deliver *d, struct str key);
MUST_USE struct seat *seat_of(struct deliver *d, struct str key);
void seat_leave(struct deliver *d, struct seat *s); /* freed if nobody's */

/* Say it, or keep it until there is room. ERR_BUSY: too much waits already. */
MUST_USE enum err line_say(struct line *l, struct str text);

/* line_read.c: nobody is to be answered on l any more. */
void asked_drop(struct line *l);

/* wake.c: somebody sits there now, and has room: desks that wait for it are
 * told, and nobody is woken. */
void seat_taken(struct deliver *d, struct seat *s);

/* Something waits for a, whose seat is empty or full. */
void sleeper_call(struct deliver *d, struct desk *k, const struct agent *a,
                  const struct agent_url *url);

#endif
