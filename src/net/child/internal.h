#ifndef NET_CHILD_INTERNAL_H
#define NET_CHILD_INTERNAL_H

/* Internals that the files of child share.
 *
 *     plan.c      options -> the needs of the new process
 *     box.c       its restrictions, written down for the launcher
 *     launch*.c   the launcher (launch.h)
 *     spawn.c     the new process, up to its exec
 *     await.c     the launcher's report
 *     pipes.c     lines to it, lines from it, its last output
 *     tail.c      the last bytes of a stream
 *     child.c     its life: start, stop, end
 *     cgroup.c    a cgroup for each, if we may make one
 *     orphans.c   processes that it leaves behind
 *     children.c  the table, ids, stopping all
 */

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/loop.h"
#include "net/child/child.h"

enum {
    READ_BYTES = 64 * 1024, /* at a time, the size of a pipe */
    LINES_PER_TURN = 64,    /* of one child; then others get their turn */
    KEEP_BYTES = 16 * 1024, /* larger buffers are given back when empty */
    LAST_WORDS_MS = 1000,   /* for output after the process has ended */
    CLOSED_MS = 1000,       /* for the process to end, once it has closed a
                             * pipe */
    KILL_AGAIN_MS = 1000,
    KILLS = 10, /* after that it is stuck */
    ORPHANS_AGAIN_MS = 1000,
    MAX_ORPHAN_GROUPS = 1024,
    OLD_CGROUPS = 256,
    STRAYS_MAX = 64, /* processes of one child that left its group */
    ARGS_BYTES = 4 * 1024 * 1024,
    CHILD_SLOT_BITS = 16,
};

/* spawn.c and plan.c */

enum { N_LIMITS = 6 };

struct spawn_limit {
    int resource;
    struct rlimit value;
};

/* Everything that the new process needs, prepared before it exists: between
 * vfork and exec nothing may be allocated. */
struct spawn {
    struct arena arena; /* of the following pointers */
    char **argv, **env;
    char **programs; /* tried in turn */
    char *folder;    /* NULL: ours */
    struct spawn_limit limits[N_LIMITS];
    size_t n_limits;
    char oom_score[8];
    int in, out, err; /* the child's ends; -1: none */
    int file;         /* for CHILD_FILE, a copy of our own; -1: none */
    int report, report_to;
    char cgroup[PATH_MAX]; /* its cgroup.procs; empty: none */
    int plan, launcher;    /* -1: the program is executed directly */
    unsigned held;         /* enum child_hold, from the launcher */
    pid_t undone;          /* the process of a failed start; 0: none */
    pid_t parent;
    int failing, skipped; /* steps, for tests; -1: none */
    bool keeps_fds;       /* for tests */
};

/* Reports what is wrong with opts. */
MUST_USE enum err spawn_plan(struct spawn *s, const struct child_opts *opts,
                             int oom_score, struct why *why);

/* For a program with a box: use that launcher. */
MUST_USE enum err spawn_by(struct spawn *s, const struct child_opts *opts,
                           int launcher, struct why *why);
void spawn_fini(struct spawn *s);

/* Make the pipes. ours gets our ends of in, out and err, in this order. */
MUST_USE enum err spawn_pipes(struct spawn *s, const struct child_opts *opts,
                              int ours[3], struct why *why);

/* Make the process; it reports through s->report. */
MUST_USE enum err spawn_begin(struct spawn *s, const struct child_opts *opts,
                              pid_t *pid, struct why *why);

/* Make the process and wait for the report, for a launcher up to
 * CHILD_LAUNCH_MS. *pid then runs the program. */
MUST_USE enum err spawn_run(struct spawn *s, const struct child_opts *opts,
                            pid_t *pid, struct why *why);

/* Move *fd above the descriptors that a child gets. */
MUST_USE bool spawn_raise_fd(int *fd);

/* Kill a process that was not reported to the owner, and wait for it. */
void spawn_undo(pid_t pid);

/* The message for a step that failed. */
MUST_USE enum err spawn_why(const struct child_opts *opts, int step, int error,
                            struct why *why);

const char *spawn_step_name(int step);

/* The report of a new process. */
struct spawn_report {
    int step, error; /* STEP_HELD: the restrictions */
};

/* box.c: write the plan for the launcher. */
MUST_USE enum err box_plan(struct spawn *s, const struct child_opts *opts,
                           struct why *why);

enum spawn_step {
    STEP_SESSION,
    STEP_SIGNALS,
    STEP_PARENT,
    STEP_PRIVILEGES,
    STEP_PIPES,
    STEP_FOLDER,
    STEP_LIMITS,
    STEP_MASK,
    STEP_EXEC,
    N_STEPS, /* steps of the new process; the following are ours */
    STEP_FORK = N_STEPS,
    STEP_MAKE_PIPES,
    STEP_WATCH,
    STEP_LAUNCH, /* of the launcher */
    STEP_PATHS,
    STEP_USER,
    STEP_HELD,
    STEP_LATE, /* the launcher exceeded its deadline */
};

/* tail.c */

struct tail {
    char *p; /* NULL: no bytes came yet */
    size_t cap;
    size_t n, at; /* n bytes, the next one is stored at `at` */
    bool is_cut;  /* earlier ones were overwritten */
};

void tail_init(struct tail *t, size_t cap);
void tail_fini(struct tail *t);
void tail_add(struct tail *t, const char *p, size_t n);

/* Add its bytes to out as UTF-8. */
void tail_text(const struct tail *t, struct buf *out);

/* pipes.c, child.c */

/*                     process has ended, group killed, reaped
 *    RUNNING --------------------------------------------------> ENDED -> OVER
 *       | stop: input closed, SIGTERM         ^         ^      output read to
 *       v                                     |         |      its end, or
 *     ASKED ----------------------------------'         |      LAST_WORDS_MS
 *       | grace over: SIGKILL                           |
 *       v                                               |
 *     KILLED -------------------------------------------'
 *       | alive after KILLS tries: the owner is told that it is over
 *       v
 *     STUCK ------> OVER when it has ended after all, or all are stopped
 */
enum child_state {
    CHILD_IS_RUNNING,
    CHILD_IS_ASKED,
    CHILD_IS_KILLED,
    CHILD_IS_ENDED,
    CHILD_IS_STUCK,
    CHILD_IS_OVER, /* waits for libuv to return its handles */
};

/* A descriptor of ours under a poll. */
struct end {
    uv_poll_t poll;
    struct child *c;
    int fd; /* -1: closed, or never opened */
    int watched;
    int owed_bytes; /* in it when the process ended */
};

/* A process that left its child's group. */
struct stray {
    pid_t pid, group;
    uint64_t began;
};

struct child {
    struct children *all;
    struct end in, out, err, pid;
    struct launching *launching; /* await.c; NULL: it runs, or has no
                                  * launcher */
    size_t n_handles;            /* that libuv has not returned */
    struct loop_job job;
    struct timer timer; /* closed, grace, next kill, or last output */
    struct child_handler on;
    void *ctx;
    uint64_t id;
    pid_t process;   /* 0: reaped */
    unsigned held;   /* enum child_hold */
    uint64_t cgroup; /* its number; 0: none */
    enum child_state state;
    enum child_end_why why;
    int exit_status, signal, n_kills;
    struct stray strays[STRAYS_MAX];
    size_t n_strays;

    struct buf unsent; /* from unsent_at on */
    size_t unsent_at;
    struct buf heard; /* from heard_at on; no line ends before scanned */
    size_t heard_at, scanned;
    struct tail tail;

    uint64_t turn; /* the turn of n_lines */
    int n_lines;
    size_t max_line_bytes, max_unsent_bytes;
    int64_t stop_grace_ms;
    bool is_blocked; /* the pipe is full */
    bool closes_input;
    bool wants_room, has_room;
    bool has_read;   /* in this turn */
    bool is_stopped; /* by the owner, at any time */
    bool is_paused;
    bool is_muted;    /* its output is discarded */
    bool has_closed;  /* child_closed was called */
    bool tells_start; /* on_start is still due */
    bool is_time_up;  /* for its last output */
};

struct children {
    struct loop *loop;
    struct log *log;
    struct child **slots;
    size_t max_children;
    size_t n_children; /* that libuv has not returned */
    size_t n_stuck;
    uint64_t n_ids;
    int oom_score;
    int launcher; /* a descriptor; -1: none, programs with a box are rejected */
    bool has_launcher; /* children_set_launcher was called */
    bool is_stopping;
    struct loop_job done_job;
    void (*done)(void *ctx);
    void *done_ctx;
    struct child_stats stats;
    char cgroup[PATH_MAX]; /* ours, the parent of the others; empty: none */
    bool has_cgroup_limits;
    uint64_t n_cgroups;
    uint64_t old_cgroups[OLD_CGROUPS]; /* killed, to be removed */
    size_t n_old_cgroups;
    pid_t groups[MAX_ORPHAN_GROUPS]; /* of children that were reaped */
    size_t n_groups;
    struct timer orphan_timer;
    char read_buf[READ_BYTES]; /* shared, since a read is processed at once */
};

/* child.c */

/* End it for that reason; only the first reason counts. */
void child_end(struct child *c, enum child_end_why why);

/* It has closed a pipe that it needs. A child that is about to end does so
 * too, so it gets a moment for that. */
void child_closed(struct child *c);

/* Something changed: check it at the end of the turn. */
void child_kick(struct child *c);

/* libuv has returned one of its handles. */
void child_gave_back(struct child *c);

/* Close a stuck child without waiting for it. */
void child_abandon(struct child *c);

/* Its launcher is done: the program runs, or the rest of it is killed.
 * Messages are in c->launching by then. */
void child_launched(struct child *c);
void child_not_launched(struct child *c, bool was_late);

/* await.c */

/* A copy of the parts of opts that messages need. */
MUST_USE struct launching *launching_new(const struct child_opts *opts);

/* Wait for the report, with a deadline. Takes fd, also on failure. */
MUST_USE bool launching_watch(struct child *c, int fd);

/* Read the available part of the report. is_over: its process has ended, so no
 * more will come. */
void launching_look(struct child *c, bool is_over);
void launching_late(struct child *c);
bool launching_is_under_way(const struct child *c);

/* The error and the message of a failed launch; else OK. */
enum err launching_why(const struct child *c, struct str *words);

/* The owner has stopped it: nothing of it is reported any more. */
void launching_drop(struct child *c);
void launching_close(struct child *c);

/* After libuv has returned everything. NULL is fine. */
void launching_free(struct launching *l);

/* pipes.c */

/* Takes fd, also on failure. */
MUST_USE bool end_open(struct child *c, struct end *e, int fd);
void end_close(struct end *e);
MUST_USE bool end_watch(struct end *e, int events, uv_poll_cb cb);

/* Discards unsent lines. */
void pipes_close_input(struct child *c);

/* Write all unsent lines in one write. */
void pipes_flush(struct child *c);

/* At the end of a turn: write, hand over lines, report room, and update the
 * polls. Returns whether there is more to do in the next turn. */
MUST_USE bool pipes_turn(struct child *c);

/* The process has ended: note how much is left in the pipes. */
void pipes_note_end(struct child *c);

/* Whether all its output was read and handed over. */
bool pipes_are_done(const struct child *c);

/* strays.c: processes that left c's group. Call it before c's process is
 * reaped. */

void strays_gather(struct child *c);
void strays_signal(const struct child *c, int signal);

/* It is reaped: wait for those that become our children, and forget all. */
void strays_reaped(struct child *c);

/* orphans.c */

void orphans_init(struct children *all);
void orphans_fini(struct children *all);

/* Wait for the rest of a group that was killed and whose leader was just
 * reaped. */
void orphans_add(struct children *all, pid_t group);

/* cgroup.c */

/* Find a cgroup in which others can be made, and move into one of them. */
void cgroups_init(struct children *all);
void cgroups_fini(struct children *all);

/* A cgroup for c. If none can be made, c has none. */
void cgroup_make(struct children *all, struct child *c,
                 const struct child_limits *limits);

/* The file through which a process joins it; false: there is none. */
bool cgroup_procs(const struct child *c, char out[PATH_MAX]);

/* Kill all processes in it, and remove it now or later. */
void cgroup_end(struct child *c);

/* children.c */

struct child *children_find(const struct children *all, uint64_t id);
MUST_USE enum err children_has_slot(const struct children *all,
                                    struct why *why);
void children_take_slot(struct children *all, struct child *c);
void children_give_slot(struct children *all, struct child *c);
void children_check_stopped(struct children *all);

#endif
