#ifndef CHILD_CHILD_H
#define CHILD_CHILD_H

/* child: programs we start, one line at a time to and from them.
 *
 * A child gets a process group of its own, three pipes, a folder, exactly the
 * environment it is given, limits, no way to gain privileges, and none of our
 * descriptors. Its standard output comes as lines; its standard error is kept,
 * the last part of it, for whoever wants to know why it failed. Stopping it
 * closes its input, asks the whole group to end, and after a grace kills the
 * group: a child that ignores the signal, or has made children of its own,
 * goes too. It is over when the process has ended and its output was read to
 * its end, or a moment after the former: a grandchild that left the group
 * could hold the pipes for ever.
 *
 * Not libuv's uv_spawn: between fork and exec there is no place in it for
 * limits and no_new_privs.
 *
 * Owns: processes and pipes. Others hold an id. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"

struct children; /* all of them: one per loop */

struct child_limits {
    int64_t memory_bytes; /* of address space; 0: as ours */
    int64_t cpu_s;        /* of processor time */
    int64_t files;        /* open at once */
    int64_t processes;    /* of this user; 0: as ours */
    int64_t file_bytes;   /* of one file it writes */
};

struct child_opts {
    const struct str *argv; /* the first is a path, or a name in path */
    size_t n_argv;
    const struct str *env; /* "NAME=value"; all it gets */
    size_t n_env;
    struct str path;   /* folders to look for a name in, with ':' between */
    struct str folder; /* to be in; empty: ours */
    struct child_limits limits;
    size_t max_line_bytes;   /* of its output; a longer one ends it */
    size_t max_unsent_bytes; /* to it that it has not read; then ERR_BUSY */
    size_t stderr_bytes;     /* kept of its standard error, the last ones */
    int64_t stop_grace_ms;   /* between asking it to end and killing it */
};

enum child_end_why {
    CHILD_EXITED,    /* by itself */
    CHILD_STOPPED,   /* we asked */
    CHILD_LONG_LINE, /* it wrote a line over its limit */
};

struct child_end {
    enum child_end_why why;
    int exit_status;        /* -1: by a signal */
    int signal;             /* 0: none */
    struct str stderr_tail; /* valid UTF-8: other bytes become U+FFFD */
};

struct child_handler {
    /* One line without its end. A '\r' before '\n' stays. */
    void (*on_line)(void *ctx, uint64_t id, struct str line);
    void (*on_room)(void *ctx, uint64_t id); /* after ERR_BUSY; may be NULL */
    /* The last word, once, never from inside a call of the owner's. */
    void (*on_end)(void *ctx, uint64_t id, const struct child_end *end);
};

MUST_USE struct children *children_new(struct loop *loop, struct log *log,
                                       size_t max_children);

/* ERR_LIMIT: max_children run. ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_IO: it
 * cannot be started, and why says which of it and what to do. */
MUST_USE enum err child_start(struct children *all,
                              const struct child_opts *opts,
                              const struct child_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Send a line; '\n' is added, and none may be in it. ERR_BUSY: nothing was
 * taken, on_room says when. ERR_GONE: the id is nobody, or its input is
 * closed. What gathers in a turn leaves in one write. */
MUST_USE enum err child_send(struct children *all, uint64_t id,
                             struct str line);

void child_close_input(struct children *all, uint64_t id);

/* Take no more of its output for now. */
void child_pause(struct children *all, uint64_t id, bool is_paused);

/* Ask it to end, and see to it that it does. */
void child_stop(struct children *all, uint64_t id);

int child_pid(const struct children *all, uint64_t id); /* 0: nobody */

/* Stop all; done is called once, from the loop, when none is left. */
void children_stop(struct children *all, void (*done)(void *ctx), void *ctx);
void children_free(struct children *all);

struct child_stats {
    int64_t running, started_total, killed_total;
};
struct child_stats children_stats(const struct children *all);

#endif
