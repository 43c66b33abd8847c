#ifndef DELIVER_TRANSPORTS_LINE_H
#define DELIVER_TRANSPORTS_LINE_H

/* Declarations shared by line.c, line_tasks.c, line_read.c and wake.c.
 *
 * A seat is the place of a line under a routing id and a creator, both in lower
 * case. So a routing id serves only the agents of one creator. A seat has at
 * most one line, and a list of sleepers (wake.c): agents that wait for one. It
 * exists while it has either. */

#include "base/arena.h"
#include "deliver/internal.h"

enum {
    LINES_MAX = 1000 * 1000,
    LINE_UNSAID_MAX = 4 * 1024 * 1024, /* pending bytes, besides the first
                                        * message that found no room */
    LINE_CALLS_MAX = 64,               /* unanswered calls of a child */
    SEAT_KEY_MAX = AGENT_URL_MAX + 1 + PRINCIPAL_NAME_MAX,
    LINE_MESSAGE_MAX = 8 * 1024 * 1024, /* a text with every byte escaped, and
                                         * its envelope */
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
    struct seat *seat; /* NULL: the line of a child, or gone */
    struct line_ops ops;
    void *ctx;
    struct list deliveries;
    struct delivery *last; /* the one of the last message; NULL: none */
    struct list unsaid;    /* pending messages, in order */
    size_t unsaid_bytes;
    struct list calls; /* line_read.c */
    size_t n_calls;
    bool is_gone;
    struct list_node node; /* lines->gone */
    size_t n_agent;
    char agent[AGENT_NAME_MAX + 1];
};

/* A message that waits for room. */
struct unsaid {
    struct list_node node;
    struct line *line;
    struct delivery *delivery; /* if it is its task.execute; NULL: other */
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
    struct map calls;     /* line_read.c: receipt -> struct line_call */
    uint64_t last_receipt;
};

/* line.c */
MUST_USE struct str seat_key(const struct agent *a, const struct agent_url *url,
                             char out[SEAT_KEY_MAX]);
struct seat *seat_find(const struct deliver *d, struct str key);
MUST_USE struct seat *seat_of(struct deliver *d, struct str key);
void seat_leave(struct deliver *d, struct seat *s); /* freed if unused */

/* Send text, or keep it until there is room. ERR_BUSY: too much is pending. */
MUST_USE enum err line_say(struct line *l, struct str text);

/* line_read.c: forget the unanswered calls of l. */
void line_calls_drop(struct line *l);

/* wake.c: the seat has a line with room: wake the queues that wait for it and
 * end the wakes of its agents. */
void seat_taken(struct deliver *d, struct seat *s);

/* Jobs wait for a, whose seat is empty or full. */
void sleeper_call(struct deliver *d, struct agent_queue *k,
                  const struct agent *a, const struct agent_url *url);

#endif
