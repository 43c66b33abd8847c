#ifndef CHILD_CHILD_H
#define CHILD_CHILD_H

/* child: programs we start, one line at a time to and from them.
 *
 * A child gets a session and process group of its own, three pipes, a folder,
 * exactly the environment it is given, limits, no way to gain privileges, and
 * none of our descriptors but a file that it is handed. Its standard output
 * comes as lines; its standard error is kept, the last part of it, for whoever
 * wants to know why it failed. Stopping it closes its input, asks the whole
 * group to end, and after a grace kills the group: a child that ignores the
 * signal, or has made children of its own, goes too. Once it has ended by
 * itself the rest of its group is killed as well. It is over when the process
 * has ended and its output was read to its end, or a moment after the former: a
 * grandchild that left the group could hold the pipes for ever. What was in the
 * pipe when the process ended is always read.
 *
 *     what happens                           what becomes of it
 *     ------------                           ------------------
 *     it ignores SIGTERM                     killed after stop_grace_ms
 *     it closes its output and lives on, or  stopped after a moment: nothing
 *     its input, and something was for it    more can come of it
 *     it has children in its group           killed with it, or when it ends,
 *                                            and waited for if they are ours
 *     one of them made a group of its own    asked and killed with it when it
 *     (setsid, a shell with job control)     is stopped; when it ends by itself
 *                                            lives on, without our pipes, and
 *                                            needs an init to wait for it; so
 *                                            does one whose parent has ended
 *     our process is killed                  it too (PR_SET_PDEATHSIG); what it
 *                                            started sees its pipes closed
 *     SIGKILL does not end it (a dead disk)  given up after ten seconds: it
 *                                            counts until the kernel lets go
 *
 * A child runs as our user, unless its box names another. With a box it is kept
 * from us, from our files and from other children, as far as the kernel can do
 * that (launch.c). Not libuv's uv_spawn: between fork and exec there is no
 * place in it for limits and no_new_privs.
 *
 * Owns: processes and pipes. Others hold an id. Threads: the loop's, which must
 * be one that ends with the process: children are killed when the thread that
 * started them ends. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"

struct children; /* all of them: one per loop */

/* Where a child has the file that it was handed. */
#define CHILD_FILE      4
#define CHILD_FILE_PATH "/proc/self/fd/4"

struct child_limits {
    /* Each: 0, as ours; else soft and hard alike, but never more than our hard
     * one. */
    int64_t memory_bytes; /* of address space */
    int64_t cpu_s;        /* of processor time; SIGXCPU, a second later death */
    int64_t files; /* open at once; 0: 1024 unless we have fewer, up to our hard
                      one if it asks for more itself */
    int64_t processes;  /* of this user in all, threads counted; not for root */
    int64_t file_bytes; /* of one file it writes */
};

/* What a program is kept from. Every path is closed to it but those of the
 * system, of its command, its folder and the lists. */
struct child_box {
    const struct str *read, *write;
    size_t n_read, n_write;
    const struct str *own; /* for writing as well; made where it is missing, and
                            * without what is closed in it */
    size_t n_own;
    /* Never open, and hidden where the kernel can do that. The first is the
     * data folder: a path of the lists that holds it, or lies in it, is
     * refused. */
    const struct str *closed;
    size_t n_closed;
    const struct str *others; /* workspaces of others: closed unless listed */
    size_t n_others;
    struct str user; /* to run as; empty: ours */
};

/* What holds of that, as the launcher has found. The version of Landlock in
 * use is in the bits from CHILD_HOLDS_ABI_SHIFT on. */
enum child_hold {
    CHILD_HOLDS_PATHS = 1 << 0,  /* Landlock: paths, tracing */
    CHILD_HOLDS_CALLS = 1 << 1,  /* seccomp */
    CHILD_HOLDS_PIDS = 1 << 2,   /* a PID namespace */
    CHILD_HOLDS_MOUNTS = 1 << 3, /* the closed paths are hidden */
    CHILD_HOLDS_PROC = 1 << 4,   /* a /proc of its own */
    CHILD_HOLDS_TMP = 1 << 5,    /* a /tmp of its own */
    CHILD_HOLDS_RUN = 1 << 6,    /* sockets in /run are hidden */
    CHILD_HOLDS_USER = 1 << 7,   /* another user than the server's */
    CHILD_HOLDS_CAPS = 1 << 8,   /* no capabilities beyond files */
    CHILD_HOLDS_CGROUP = 1 << 9,
    CHILD_HOLDS_ABI_SHIFT = 16,
};

enum { LANDLOCK_TRUNCATE = 3, LANDLOCK_SIGNALS = 6 }; /* versions */

static inline int child_held_abi(unsigned held)
{
    return (int)(held >> CHILD_HOLDS_ABI_SHIFT);
}

/* One thing that a program of the same user could do to the server. */
struct child_threat {
    const char *what; /* "read the server's memory" */
    const char *by;   /* what closes it; NULL: nothing does */
};

enum { CHILD_THREATS = 8 };

/* What is closed by what holds, one by one. */
void child_threats(unsigned held, struct child_threat out[CHILD_THREATS]);

struct child_opts {
    /* The first is a path, seen from folder, or a name in path. */
    const struct str *argv;
    size_t n_argv;
    const struct str *env; /* "NAME=value"; all it gets */
    size_t n_env;
    /* Folders to look for a name in, with ':' between. Only those that begin
     * with '/' are looked into. */
    struct str path;
    struct str install; /* how to, for the words where it is not there; may be
                         * empty */
    struct str folder;  /* to be in; empty: ours */
    int file; /* a descriptor of ours that it gets as CHILD_FILE; 0: none */
    const struct child_box *box; /* NULL: it may do whatever we may */
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
    CHILD_CLOSED,    /* it closed its output, or its input, and lived on */
    CHILD_BROKEN,    /* we could not hear it any more: no memory, bad pipe */
};

struct child_end {
    enum child_end_why why;
    int exit_status;        /* -1: by a signal, or nobody knows */
    int signal;             /* 0: none */
    struct str stderr_tail; /* valid UTF-8: other bytes become U+FFFD */
};

/* All are called from the loop, never from inside a call of the owner's, and
 * may call anything here but children_free. */
struct child_handler {
    /* One line without its end; a last one that has none comes too. A '\r'
     * before '\n' stays, and any other byte is as it was written. Lines may
     * come after child_stop, until on_end. */
    void (*on_line)(void *ctx, uint64_t id, struct str line);
    /* After ERR_BUSY: there is room, or its input is closed. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);
    /* The last word, once; the id is nobody from then on. */
    void (*on_end)(void *ctx, uint64_t id, const struct child_end *end);
};

/* NULL: no memory. max_children is at most 65535. From here on the process
 * ignores SIGPIPE and does not ignore SIGCHLD, or there would be nothing to
 * wait for. */
MUST_USE struct children *children_new(struct loop *loop, struct log *log,
                                       size_t max_children);

/* Programs with a box are started by this file, which is our own binary: its
 * main calls child_launch when it is started as CHILD_LAUNCHER. Without it,
 * programs with a box are refused; before it is said, they run without one,
 * as in tests. Takes fd; below zero: there is none. */
void children_set_launcher(struct children *all, int fd);
#define CHILD_LAUNCHER "signalbox-launch"

/* Our own binary, for that. Below zero: it is not to be had. */
int child_find_launcher(void);

/* In that process: becomes the program of its plan. Returns never. */
_Noreturn int child_launch(void);

/* What holds here for a program with that box, by trying. Waits for it. */
MUST_USE enum err child_probe(int launcher, const struct child_opts *opts,
                              unsigned *held, struct why *why);

/* Whether a path of the box, or the folder, holds the data folder or lies in
 * it: ERR_NOT_ALLOWED, and why says which. */
MUST_USE enum err child_box_check(const struct child_box *box,
                                  struct str folder, struct why *why);

/* What held for it when it was started. */
unsigned child_held(const struct children *all, uint64_t id);

/* Start a program; when this returns it runs, or it does not. Borrows opts.
 * ERR_LIMIT: max_children run. ERR_STOPPING: after children_stop.
 * ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_BAD_REQUEST, ERR_NOMEM, ERR_IO: it cannot
 * be started, and why says which of it and what to do. The loop waits for the
 * kernel to find the folder and open the program, no longer. */
MUST_USE enum err child_start(struct children *all,
                              const struct child_opts *opts,
                              const struct child_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Whether the folder and the program are there now, without starting it: for
 * who has to tell. ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_BAD_REQUEST, ERR_NOMEM,
 * with the words that child_start would have. */
MUST_USE enum err child_seek(const struct child_opts *opts, struct why *why);

/* Send a line; '\n' is added, and none may be in it (ERR_BAD_REQUEST).
 * ERR_BUSY: nothing was taken, on_room says when. ERR_LIMIT: it is longer than
 * max_unsent_bytes and never will be. ERR_GONE: the id is nobody, or its input
 * is closed. ERR_NOMEM. What gathers in a turn leaves in one write. */
MUST_USE enum err child_send(struct children *all, uint64_t id,
                             struct str line);

/* Once what was sent has been written. */
void child_close_input(struct children *all, uint64_t id);

/* Take no more of its output for now. One that has ended meanwhile is not over
 * before it was taken up again, or stopped. */
void child_pause(struct children *all, uint64_t id, bool is_paused);

/* Ask it to end, and see to it that it does. What was sent is written first, as
 * far as the pipe takes it at once. */
void child_stop(struct children *all, uint64_t id);

/* 0: nobody, or it has ended and only its output is still being read. */
int child_pid(const struct children *all, uint64_t id);

/* Stop all; done is called once, from the loop, when none is left. Harmless
 * the second time. children_free comes after that. */
void children_stop(struct children *all, void (*done)(void *ctx), void *ctx);
void children_free(struct children *all);

struct child_stats {
    int64_t running;       /* not over yet, stuck ones included */
    int64_t started_total; /* really: those that could not be are not in it */
    int64_t killed_total;  /* that did not end when they were asked to */
};
struct child_stats children_stats(const struct children *all);

#endif
