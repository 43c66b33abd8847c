#ifndef CHILD_INTERNAL_H
#define CHILD_INTERNAL_H

/* What the files of child share.
 *
 *     plan.c      what was asked for -> what the new process will need
 *     box.c       what it is kept from, written down for the launcher
 *     launch*.c   the launcher (launch.h)
 *     spawn.c     the new process, up to its exec
 *     pipes.c     lines to it, lines from it, its last words
 *     tail.c      the last bytes of a stream
 *     child.c     its life: start, stop, end
 *     cgroup.c    one cgroup for each, where that is ours to make
 *     orphans.c   those that it leaves behind
 *     children.c  the room: the table, ids, stopping all */

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/loop.h"
#include "child/child.h"

enum {
    READ_BYTES = 64 * 1024, /* at a time, which is what a pipe holds */
    LINES_PER_TURN = 64,    /* of one child; then others come */
    KEEP_BYTES = 16 * 1024, /* larger buffers are given back when empty */
    LAST_WORDS_MS = 1000,   /* for output after the process has ended */
    CLOSED_MS = 1000,       /* for the end, once it has closed a pipe */
    KILL_AGAIN_MS = 1000,
    KILLS = 10, /* after which it is stuck */
    ORPHANS_AGAIN_MS = 1000,
    MAX_ORPHAN_GROUPS = 1024,
    OLD_CGROUPS = 256,
    STRAYS_MAX = 64, /* of one child, that left its group */
    ARGS_BYTES = 4 * 1024 * 1024,
    CHILD_SLOT_BITS = 16,
};

/* spawn.c and plan.c */

enum { N_LIMITS = 6 };

struct spawn_limit {
    int resource;
    struct rlimit value;
};

/* All that the new process needs, made ready before it exists: between vfork
 * and exec nothing may be allocated. */
struct spawn {
    struct arena arena; /* of what follows */
    char **argv, **env;
    char **programs; /* to be tried in turn */
    char *folder;    /* NULL: ours */
    struct spawn_limit limits[N_LIMITS];
    size_t n_limits;
    char oom_score[8];
    int in, out, err; /* the child's ends; -1: none */
    int file;         /* for CHILD_FILE, a copy of our own; -1: none */
    int report, report_to;
    char cgroup[PATH_MAX]; /* its cgroup.procs; empty: none */
    int plan, launcher;    /* -1: the program is executed at once */
    unsigned held;         /* enum child_hold, from the launcher */
    pid_t undone;          /* one that did not get there; 0: none */
    pid_t parent;
    int failing, skipped; /* steps, in tests; -1: none */
    bool keeps_fds;       /* in tests */
};

/* Says in words what is wrong with opts. */
MUST_USE enum err spawn_plan(struct spawn *s, const struct child_opts *opts,
                             int oom_score, struct why *why);

/* For a program with a box, by that launcher. */
MUST_USE enum err spawn_by(struct spawn *s, const struct child_opts *opts,
                           int launcher, struct why *why);
void spawn_fini(struct spawn *s);

/* Make the pipes. ours gets our ends of in, out and err, in this order. */
MUST_USE enum err spawn_pipes(struct spawn *s, const struct child_opts *opts,
                              int ours[3], struct why *why);

/* Make the process. *pid is then one that runs the program. */
MUST_USE enum err spawn_run(struct spawn *s, const struct child_opts *opts,
                            pid_t *pid, struct why *why);

/* Out of the way of the descriptors that a child gets. */
MUST_USE bool spawn_raise_fd(int *fd);

/* Kill a process that nobody has heard of yet, and wait for it. */
void spawn_undo(pid_t pid);

/* The words for a step that failed. */
MUST_USE enum err spawn_why(const struct child_opts *opts, int step, int error,
                            struct why *why);

const char *spawn_step_name(int step);

/* What a new process has to say. */
struct spawn_report {
    int step, error; /* STEP_HELD: what holds */
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
    N_STEPS, /* of the new process; what follows is ours */
    STEP_FORK = N_STEPS,
    STEP_MAKE_PIPES,
    STEP_WATCH,
    STEP_LAUNCH, /* of the launcher */
    STEP_PATHS,
    STEP_USER,
    STEP_HELD,
};

/* tail.c */

struct tail {
    char *p; /* NULL: nothing came yet */
    size_t cap;
    size_t n, at; /* n bytes, the next goes to at */
    bool is_cut;  /* earlier ones were overwritten */
};

void tail_init(struct tail *t, size_t cap);
void tail_fini(struct tail *t);
void tail_add(struct tail *t, const char *p, size_t n);

/* Its bytes as UTF-8, added to out; nothing if memory is gone. */
void tail_text(const struct tail *t, struct buf *out);

/* pipes.c, child.c */

/*                      process has ended, group killed, reaped
 *    RUNNING --------------------------------------------------> ENDED -> OVER
 *       | stop: input closed, SIGTERM         ^         ^      output read to
 *       v                                     |         |      its end, or
 *     ASKED ----------------------------------'         |      LAST_WORDS_MS
 *       | grace over: SIGKILL                           |
 *       v                                               |
 *     KILLED -------------------------------------------'
 *       | KILLS times and it is still there: the owner is told that it is over
 *       v
 *     STUCK ------> OVER when it has ended after all, or all are stopped */
enum child_state {
    CHILD_IS_RUNNING,
    CHILD_IS_ASKED,
    CHILD_IS_KILLED,
    CHILD_IS_ENDED,
    CHILD_IS_STUCK,
    CHILD_IS_OVER, /* libuv will give it back; nobody touches it */
};

/* A descriptor of ours under a poll. */
struct end {
    uv_poll_t poll;
    struct child *c;
    int fd; /* -1: closed, or never opened */
    int watched;
    int owed_bytes; /* that were in it when the process ended */
};

/* One that left its child's group. */
struct stray {
    pid_t pid, group;
    uint64_t began;
};

struct child {
    struct children *all;
    struct end in, out, err, pid;
    size_t n_handles; /* that libuv has not given back */
    struct loop_job job;
    struct timer timer; /* closed, grace, next kill, or last words */
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

    uint64_t turn; /* n_lines is of this one */
    int n_lines;
    size_t max_line_bytes, max_unsent_bytes;
    int64_t stop_grace_ms;
    bool is_blocked; /* the pipe took no more */
    bool closes_input;
    bool wants_room, has_room;
    bool has_read;   /* in this turn */
    bool is_stopped; /* by the owner, at whatever time */
    bool is_paused;
    bool is_muted;   /* its output is thrown away */
    bool is_time_up; /* for its last words */
};

struct children {
    struct loop *loop;
    struct log *log;
    struct child **slots;
    size_t max_children;
    size_t n_children; /* until libuv has given them back */
    size_t n_stuck;
    uint64_t n_ids;
    int oom_score;
    int launcher; /* a descriptor; -1: none, programs with a box are refused */
    bool has_launcher; /* it was said whether there is one */
    bool is_stopping;
    struct loop_job done_job;
    void (*done)(void *ctx);
    void *done_ctx;
    struct child_stats stats;
    char cgroup[PATH_MAX]; /* ours, that others are made in; empty: none */
    bool has_cgroup_limits;
    uint64_t n_cgroups;
    uint64_t old_cgroups[OLD_CGROUPS]; /* killed, to be removed */
    size_t n_old_cgroups;
    pid_t groups[MAX_ORPHAN_GROUPS]; /* of children that were reaped */
    size_t n_groups;
    struct timer orphan_timer;
    char
        read_buf[READ_BYTES]; /* of all, because a read is dealt with at once */
};

/* child.c */

/* It is to end, for that reason; the first reason counts. */
void child_end(struct child *c, enum child_end_why why);

/* It has closed its end of a pipe without which nothing comes of it. Whoever
 * is about to end does so too: it is given a moment for that. */
void child_closed(struct child *c);

/* Something changed: at the end of the turn, look what is to be done. */
void child_kick(struct child *c);

/* libuv has given back one of its handles. */
void child_gave_back(struct child *c);

/* Close what is stuck, without waiting for it. */
void child_abandon(struct child *c);

/* pipes.c */

/* Takes fd, also on failure. */
MUST_USE bool end_open(struct child *c, struct end *e, int fd);
void end_close(struct end *e);
MUST_USE bool end_watch(struct end *e, int events, uv_poll_cb cb);

/* Without regard to what was not sent. */
void pipes_close_input(struct child *c);

/* Write what gathered, in one write. */
void pipes_flush(struct child *c);

/* At the end of a turn: write, hand lines over, tell of room, and watch what is
 * to be watched. Returns whether there is more to do in the next turn. */
MUST_USE bool pipes_turn(struct child *c);

/* The process has ended: remember what it left in the pipes. */
void pipes_note_end(struct child *c);

/* Whether everything of its output was read and handed over. */
bool pipes_are_done(const struct child *c);

/* strays.c: who left c's group, while c's process is not reaped. */

void strays_gather(struct child *c);
void strays_signal(const struct child *c, int signal);

/* It is now: wait for those that come to us, and forget all. */
void strays_reaped(struct child *c);

/* orphans.c */

MUST_USE enum err orphans_init(struct children *all);
void orphans_fini(struct children *all);

/* Wait for what is left of a group that was killed and whose leader was reaped
 * just now. */
void orphans_add(struct children *all, pid_t group);

/* cgroup.c */

/* Find out whether there is one to make others in, and go to one of them. */
void cgroups_init(struct children *all);
void cgroups_fini(struct children *all);

/* One for c. Where there is none to be had, c has none. */
void cgroup_make(struct children *all, struct child *c,
                 const struct child_limits *limits);

/* The file by which a process joins it; false: there is none. */
bool cgroup_procs(const struct child *c, char out[PATH_MAX]);

/* Kill what is in it, and remove it, now or later. */
void cgroup_end(struct child *c);

/* children.c */

struct child *children_find(const struct children *all, uint64_t id);
MUST_USE enum err children_has_slot(const struct children *all,
                                    struct why *why);
void children_take_slot(struct children *all, struct child *c);
void children_give_slot(struct children *all, struct child *c);
void children_check_stopped(struct children *all);

#endif
