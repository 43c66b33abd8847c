#ifndef NET_CHILD_CHILD_H
#define NET_CHILD_CHILD_H

/* child: starts programs and exchanges lines with them.
 *
 * A child gets its own session and process group, three pipes, a folder,
 * exactly the environment it is given, limits, no way to gain privileges, and
 * no descriptor of ours except a file that is passed to it. Its standard
 * output is read as lines. The end of its standard error is kept, to explain a
 * failure. Stopping a child closes its input, sends SIGTERM to its whole
 * group, and kills the group after a grace period; so a child that ignores the
 * signal, or has children of its own, ends too. When a child ends by itself,
 * the rest of its group is killed as well. A child is over when its process
 * has ended and its output was read to the end, or a moment after the process
 * ended: a grandchild outside the group could hold the pipes forever. Output
 * that was in the pipe when the process ended is always read.
 *
 *     event                                  result
 *     -----                                  ------
 *     it ignores SIGTERM                     killed after stop_grace_ms
 *     it closes its output and lives on, or  stopped after a moment: no further
 *     its input while lines wait for it      result is possible
 *     it has children in its group           killed with it, or when it ends,
 *                                            and waited for if they are ours
 *     one of them made a group of its own    stopped and killed with it; when
 *     (setsid, a shell with job control)     the child ends by itself, that
 *                                            process lives on without our
 *                                            pipes, and an init must wait for
 *                                            it; likewise if its parent has
 *                                            ended
 *     our process is killed                  it too (PR_SET_PDEATHSIG); those
 *                                            it started see their pipes closed
 *     SIGKILL does not end it (a dead disk)  given up after ten seconds: it
 *                                            counts until the kernel lets go
 *
 * A child runs as our user, unless its box names another. A box restricts its
 * access to the server, to the server's files and to other children, as far as
 * the kernel allows (launch.c). Rejected: libuv's uv_spawn, which has no place
 * between fork and exec for limits and no_new_privs.
 *
 * Owns: processes and pipes. Callers hold an id. Threads: the loop's. It must
 * be a thread that ends with the process: children are killed when the thread
 * that started them ends. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"

struct children; /* all children; one per loop */

/* The child's descriptor of the file that is passed to it. */
#define CHILD_FILE      4
#define CHILD_FILE_PATH "/proc/self/fd/4"

struct child_limits {
    /* For each but files: 0 means our own limit; else it becomes the soft and
     * the hard limit, at most our hard limit. */
    int64_t memory_bytes; /* of address space */
    int64_t cpu_s;        /* of processor time; SIGXCPU, SIGKILL a second
                           * later */
    int64_t files;      /* open at once; 0: 1024 or fewer if we have fewer; the
                         * child may raise it up to our hard limit */
    int64_t processes;  /* of this user in all, including threads; not for
                         * root */
    int64_t file_bytes; /* of one file it writes */
};

/* Restrictions of a program. All paths are closed to it except those of the
 * system, of its command, its folder and the lists. */
struct child_box {
    const struct str *read, *write;
    size_t n_read, n_write;
    const struct str *own; /* for writing too; created if missing; closed paths
                            * inside stay closed */
    size_t n_own;
    /* Never open, and hidden if the kernel can do that. The first is the data
     * folder: a listed path that contains it, or lies in it, is rejected. */
    const struct str *closed;
    size_t n_closed;
    const struct str *others; /* workspaces of other agents: closed unless
                               * listed */
    size_t n_others;
    struct str user; /* to run as; empty: ours */
};

/* Restrictions in effect, as the launcher reports them. The version of
 * Landlock is in the bits from CHILD_HOLDS_ABI_SHIFT on. */
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

/* An attack that a program of the same user could try. */
struct child_threat {
    const char *what; /* "read the server's memory" */
    const char *by;   /* the protection against it; NULL: none */
};

enum { CHILD_THREATS = 8 };

/* For each threat, the protection given by `held`. */
void child_threats(unsigned held, struct child_threat out[CHILD_THREATS]);

struct child_opts {
    /* The first is a path, relative to folder, or a name in path. */
    const struct str *argv;
    size_t n_argv;
    const struct str *env; /* "NAME=value"; the whole environment */
    size_t n_env;
    /* Folders to search for a name, separated by ':'. Only absolute ones are
     * searched. */
    struct str path;
    struct str install; /* how to install it, for error messages; may be
                         * empty */
    struct str folder;  /* working folder; empty: ours */
    int file;           /* a descriptor that becomes CHILD_FILE; 0: none */
    const struct child_box *box; /* NULL: no restrictions */
    struct child_limits limits;
    size_t max_line_bytes;   /* of its output; a longer line ends the child */
    size_t max_unsent_bytes; /* input it has not read; then ERR_BUSY */
    size_t stderr_bytes;     /* of its standard error, kept from the end */
    int64_t stop_grace_ms;   /* between SIGTERM and SIGKILL */
};

enum child_end_why {
    CHILD_EXITED,    /* by itself */
    CHILD_STOPPED,   /* on our request */
    CHILD_LONG_LINE, /* it exceeded max_line_bytes */
    CHILD_CLOSED,    /* it closed its output or its input, and lived on */
    CHILD_BROKEN,    /* its output could not be read: no memory, bad pipe */
    CHILD_UNSTARTED, /* with a box: it could not be started */
};

struct child_end {
    enum child_end_why why;
    enum err err;           /* of CHILD_UNSTARTED, as returned by child_start */
    struct str words;       /* and its message; else empty */
    int exit_status;        /* -1: ended by a signal, or unknown */
    int signal;             /* 0: none */
    struct str stderr_tail; /* valid UTF-8: other bytes become U+FFFD */
};

/* All are called from the loop, never from inside a call of the owner's. They
 * may call any function here except children_free. */
struct child_handler {
    /* One line without its end. Output after the last line end is a line too.
     * A '\r' before '\n' stays, and other bytes are unchanged. Lines may
     * follow child_stop, until on_end. */
    void (*on_line)(void *ctx, uint64_t id, struct str line);
    /* After ERR_BUSY: there is room, or its input is closed. May be NULL. */
    void (*on_room)(void *ctx, uint64_t id);
    /* Called last and once; the id is invalid from then on. */
    void (*on_end)(void *ctx, uint64_t id, const struct child_end *end);
    /* A program with a box runs now: called once, before its lines, and not
     * for one that was stopped before. May be NULL. */
    void (*on_start)(void *ctx, uint64_t id);
};

/* The deadline of the launcher of a program with a box. */
enum { CHILD_LAUNCH_MS = 10 * 1000 };

/* max_children is at most 65535. From here on the process ignores SIGPIPE, and
 * does not ignore SIGCHLD, without which children could not be waited for. */
MUST_USE struct children *children_new(struct loop *loop, struct log *log,
                                       size_t max_children);

/* Set the file that starts programs with a box. It is our own binary: its main
 * calls child_launch when it is started as CHILD_LAUNCHER. Below zero,
 * programs with a box are rejected. Without this call they run without a box,
 * as in tests. Takes fd. */
void children_set_launcher(struct children *all, int fd);
#define CHILD_LAUNCHER "signalbox-launch"

/* Open our own binary, for that. Below zero: it cannot be opened. */
int child_find_launcher(void);

/* In that process: becomes the program of its plan. Never returns. */
_Noreturn int child_launch(void);

/* Find out, by trying, which restrictions hold here for a program with that
 * box. Blocks for up to CHILD_LAUNCH_MS. */
MUST_USE enum err child_probe(int launcher, const struct child_opts *opts,
                              unsigned *held, struct why *why);

/* Check that no path of the box, nor the folder, contains the data folder or
 * lies in it. Else ERR_NOT_ALLOWED, and why names the path. */
MUST_USE enum err child_box_check(const struct child_box *box,
                                  struct str folder, struct why *why);

/* The restrictions of a child in effect; zero while it is being launched. */
unsigned child_held(const struct children *all, uint64_t id);

/* Start a program. When this returns, the program runs or was rejected. With a
 * box, only its launcher runs, and the loop does not wait for it: on_start
 * reports that the program runs; on_end with CHILD_UNSTARTED reports that it
 * could not be started, or not within CHILD_LAUNCH_MS. Lines may be sent
 * meanwhile. Borrows opts. ERR_LIMIT: max_children run. ERR_STOPPING: after
 * children_stop. ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_BAD_REQUEST, ERR_NOMEM,
 * ERR_IO: it cannot be started, and why says what is wrong and what to do. The
 * loop waits while the kernel finds the folder and opens the program, no
 * longer. */
MUST_USE enum err child_start(struct children *all,
                              const struct child_opts *opts,
                              const struct child_handler *handler, void *ctx,
                              uint64_t *id, struct why *why);

/* Check that the folder and the program exist now, without starting it.
 * ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_BAD_REQUEST, ERR_NOMEM, with the
 * messages of child_start. */
MUST_USE enum err child_seek(const struct child_opts *opts, struct why *why);

/* Send a line; '\n' is added, and the line must not contain one
 * (ERR_BAD_REQUEST). ERR_BUSY: rejected for now; on_room follows. ERR_LIMIT:
 * it is longer than max_unsent_bytes, so it can never be sent. ERR_GONE: the
 * id is invalid, or its input is closed. ERR_NOMEM. All lines of a turn leave
 * in one write. */
MUST_USE enum err child_send(struct children *all, uint64_t id,
                             struct str line);

/* Close its input after everything that was sent has been written. */
void child_close_input(struct children *all, uint64_t id);

/* Stop reading its output for now. A child that has ended meanwhile is not
 * over until it is resumed or stopped. */
void child_pause(struct children *all, uint64_t id, bool is_paused);

/* End it: SIGTERM first, SIGKILL after the grace period. Lines that were sent
 * are written first, as far as the pipe takes them at once. */
void child_stop(struct children *all, uint64_t id);

/* Whether its launcher still runs. */
bool child_is_launching(const struct children *all, uint64_t id);

/* 0: the id is invalid, or only its output is still being read. */
int child_pid(const struct children *all, uint64_t id);

/* Stop all children; done is called once, from the loop, when none is left.
 * Harmless the second time. children_free comes after that. */
void children_stop(struct children *all, void (*done)(void *ctx), void *ctx);
void children_free(struct children *all);

struct child_stats {
    int64_t running;       /* not over yet, including stuck ones */
    int64_t started_total; /* without those that could not be started */
    int64_t killed_total;  /* that did not end on SIGTERM */
};
struct child_stats children_stats(const struct children *all);

#endif
