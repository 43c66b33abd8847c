#ifndef NET_CHILD_LAUNCH_H
#define NET_CHILD_LAUNCH_H

/* Internals that the files of the launcher share.
 *
 *     launch.c       the plan, the order of the steps, the program
 *     launch_init.c  process 1 of the namespace, and the process outside it
 *     launch_ns.c    namespaces and their mounts
 *     launch_fs.c    Landlock: open paths
 *     launch_calls.c seccomp: closed system calls
 *     launch_user.c  another user, and capabilities
 *
 * The launcher is a process with one thread. It never frees: its memory ends
 * with the exec of the program.
 *
 * The plan is a list of records in a file that the server passes on: a tag of
 * one byte, a text, a zero byte. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "net/child/child.h"

/* Descriptors of the launcher, besides 0, 1 and 2. CHILD_FILE is 4. */
enum { LAUNCH_REPORT = 3, LAUNCH_PLAN = 5 };

enum launch_tag {
    TAG_ARG = 'a',
    TAG_CLOSED = 'x', /* a path that stays closed; the first is the data
                       * folder */
    TAG_CGROUP = 'g', /* cgroup.procs of the child's own cgroup */
    TAG_ENV = 'e',
    TAG_FOLDER = 'd',
    TAG_HANG = 'H',          /* for tests */
    TAG_LIMIT = 'l',         /* "RESOURCE SOFT HARD" */
    TAG_MAX_ABI = 'A',       /* of Landlock, for tests */
    TAG_NO_NAMESPACES = 'N', /* for tests */
    TAG_OOM_SCORE = 'o',
    TAG_OTHER = 'y', /* another agent's workspace: closed unless it is listed */
    TAG_OWN = 's',   /* open for writing except for closed paths inside */
    TAG_PARENT = 'P',
    TAG_PROGRAM = 'p', /* tried in turn; none: only report */
    TAG_READ = 'r',
    TAG_USER = 'u',
    TAG_WRITE = 'w',
};

enum { LAUNCH_TAGS = 128, LAUNCH_PATHS_MAX = 4096, LAUNCH_TMP_PATHS = 3 };

struct launch_list {
    char **list; /* NULL at its end */
    size_t n;
};

struct launch {
    struct launch_list said[LAUNCH_TAGS]; /* by tag */
    struct launch_list programs_at; /* folders and files of the command, for
                                     * reading */
    char *home, *tmp;               /* from its environment; NULL: none */
    unsigned held;                  /* enum child_hold */
    int abi;                        /* of Landlock, in use */
    bool is_tmp_covered[LAUNCH_TMP_PATHS]; /* has a mount of its own */
    bool shares_tmp;        /* no: they are separate, or soon will be */
    bool has_own_terminals; /* /dev/pts is its own */
    bool has_user;
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    int n_groups;
};

/* launch.c */

/* Report the step that failed, and end. */
_Noreturn void launch_fail(int step, int error);
const char *launch_first(const struct launch *l, enum launch_tag tag);
void launch_add(struct launch_list *l, const char *text);

/* The path without links; false: it does not exist, or is too long. */
bool launch_real(const char *path, char *out);

/* The server's own folder, readable for a program that has no other. False for
 * the root, where services are started, and for a home. */
bool launch_here(const struct launch *l, char *out);

/* /tmp and the like. */
extern const char *const launch_tmp_paths[LAUNCH_TMP_PATHS];

/* Fill programs_at again. */
void launch_find_programs(struct launch *l);

/* launch_ns.c: whether the next process will be process 1 of a namespace. */
bool launch_enter(struct launch *l);

/* In that process: mount its own /proc, /tmp and /run, and hide the closed
 * paths. */
void launch_mount(struct launch *l);

/* launch_init.c: split into the process outside, process 1 and the program's.
 * Returns in the last of these. */
void launch_divide(struct launch *l);

/* launch_fs.c */
void launch_restrict_paths(struct launch *l);

/* launch_calls.c */
void launch_restrict_calls(struct launch *l);

/* launch_user.c */
void launch_find_user(struct launch *l);
void launch_become_user(struct launch *l);

#endif
