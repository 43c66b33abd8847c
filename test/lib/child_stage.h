#ifndef TEST_LIB_CHILD_STAGE_H
#define TEST_LIB_CHILD_STAGE_H

/* The stage on which children are tested: a loop under a fake clock, real
 * programs, and an owner that writes down what it is told. What a process does
 * is waited for by its events; what the loop decides by the clock happens when
 * the clock is turned.
 *
 * At the end no descriptor and no process may be left. Orphans come to us
 * (PR_SET_CHILD_SUBREAPER), as they do to a server that is process 1 of a
 * container, and the room has to wait for them: no one does it here. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "net/child/internal.h"
#include "test/t.h"

enum { SAID_BYTES = 8192, GRACE_MS = 5000 };

struct stage {
    struct clock_fake time;
    struct loop loop;
    struct log log;
    struct children *all;
    int n_done, n_fds;
};

/* One child as its owner sees it. */
struct kid {
    struct stage *s;
    uint64_t id;
    int n_lines, n_room, n_starts, n_ends;
    char said[SAID_BYTES]; /* its lines, each with '|' behind it */
    size_t n_said;
    size_t n_bytes; /* of all lines */
    struct child_end end;
    char tail[SAID_BYTES];
    size_t n_tail;
    struct why why; /* end.words */
    /* May be set: called in on_line and on_end after they are noted. */
    void (*act)(struct kid *k, struct str line);
    void (*act_at_end)(struct kid *k);
    struct kid *other;
};

static inline int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = -1; /* the folder itself */

    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static inline void kid_line(void *ctx, uint64_t id, struct str line)
{
    struct kid *k = ctx;

    CHECK(id == k->id && k->n_ends == 0);
    k->n_lines++;
    k->n_bytes += line.n;
    if (line.n < SAID_BYTES - 1 - k->n_said) {
        if (line.n)
            memcpy(k->said + k->n_said, line.p, line.n);
        k->said[k->n_said + line.n] = '|';
        k->n_said += line.n + 1;
    }
    if (k->act)
        k->act(k, line);
}

static inline void kid_room(void *ctx, uint64_t id)
{
    struct kid *k = ctx;

    CHECK(id == k->id && k->n_ends == 0);
    k->n_room++;
}

static inline void kid_end(void *ctx, uint64_t id, const struct child_end *end)
{
    struct kid *k = ctx;

    CHECK(id == k->id && k->n_ends == 0);
    CHECK(child_send(k->s->all, id, STR("x")) == ERR_GONE);
    CHECK(child_pid(k->s->all, id) == 0);
    k->n_ends++;
    k->end = *end;
    k->n_tail = end->stderr_tail.n < SAID_BYTES ? end->stderr_tail.n : 0;
    if (k->n_tail)
        memcpy(k->tail, end->stderr_tail.p, k->n_tail);
    k->end.stderr_tail = (struct str){k->tail, k->n_tail};
    why_err(&k->why, OK, "%.*s", STR_ARG(end->words));
    if (k->act_at_end)
        k->act_at_end(k);
}

static inline void kid_start(void *ctx, uint64_t id)
{
    struct kid *k = ctx;

    CHECK(id == k->id && k->n_ends == 0 && k->n_lines == 0);
    CHECK(!child_is_launching(k->s->all, id));
    k->n_starts++;
}

static const struct child_handler kid_handler = {kid_line, kid_room, kid_end,
                                                 kid_start};

static inline struct str kid_said(const struct kid *k)
{
    return (struct str){k->said, k->n_said};
}

static inline void stage_done(void *ctx)
{
    ((struct stage *)ctx)->n_done++;
}

/* False: a fault hit. */
static inline bool stage_try_init(struct stage *s, size_t max_children)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    *s = (struct stage){.time = {.wall_ms = 784111777000, .mono_ms = 1000}};
    if (loop_init(&s->loop, clock_fake(&s->time)) != OK)
        return false;
    log_init(&s->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_JSON, s->loop.clock);
    s->n_fds = count_fds();
    s->all = children_new(&s->loop, &s->log, max_children);
    return true;
}

static inline void stage_init(struct stage *s, size_t max_children)
{
    CHECK(stage_try_init(s, max_children));
}

static inline void turn(struct stage *s, int n)
{
    while (n-- > 0)
        loop_turn(&s->loop);
}

/* A turn, and if it left nothing to do a look for what comes next. Only a
 * look: what libuv was asked to watch in this turn it watches in the next. */
static inline void wait_turn(struct stage *s)
{
    struct pollfd p = {.fd = uv_backend_fd(&s->loop.uv), .events = POLLIN};

    loop_turn(&s->loop);
    if (uv_backend_timeout(&s->loop.uv) != 0)
        poll(&p, 1, 2);
}

#define UNTIL(s, condition)  \
    do {                     \
        while (!(condition)) \
            wait_turn(s);    \
    } while (0)

static inline void later(struct stage *s, int64_t ms)
{
    s->time.mono_ms += ms;
    s->time.wall_ms += ms;
    turn(s, 3);
}

/* The next process of ours that has ended and was not waited for; none when
 * there are no others. It stays as it is. */
static inline pid_t next_zombie(idtype_t type, pid_t pid, int flags)
{
    siginfo_t info = {.si_pid = 0};
    int r;

    do
        r = waitid(type, (id_t)pid, &info, WEXITED | WNOWAIT | flags);
    while (r != 0 && errno == EINTR);
    CHECK(r == 0 || errno == ECHILD);
    return info.si_pid;
}

/* Anyone who is left is a leak. Those that were killed end at once; the room
 * then has the time until it looks again. */
static inline void check_no_process(struct stage *s)
{
    pid_t pid;

    while ((pid = next_zombie(P_ALL, 0, 0)) != 0) {
        later(s, ORPHANS_AGAIN_MS);
        if (next_zombie(P_PID, pid, WNOHANG) != 0)
            T_FAIL("no one has waited for process %d", (int)pid);
    }
}

static inline void stage_free(struct stage *s)
{
    CHECK_INT(children_stats(s->all).running, 0);
    check_no_process(s);
    CHECK_INT(count_fds(), s->n_fds);
    children_free(s->all);
    loop_fini(&s->loop);
    close(s->log.fd);
}

/* Who was killed is about to end. If the clock ran ahead of it, it would be
 * given up. */
static inline bool somebody_is_killed(const struct stage *s)
{
    for (size_t i = 0; i < s->all->max_children; i++)
        if (s->all->slots[i] && s->all->slots[i]->state == CHILD_IS_KILLED)
            return true;
    return false;
}

static inline void stage_stop(struct stage *s)
{
    children_stop(s->all, stage_done, s);
    while (s->n_done == 0) {
        wait_turn(s);
        if (!somebody_is_killed(s))
            s->time.mono_ms += 200;
    }
    CHECK_INT(s->n_done, 1);
}

/* Stop all and look that nothing is left. */
static inline void stage_fini(struct stage *s)
{
    stage_stop(s);
    stage_free(s);
}

/* A test that fails ends at once. Its children die with it; what they have
 * started comes to the process that runs the tests and ends with that. */

static inline pid_t parent_of(pid_t pid)
{
    char path[32], text[512] = "";
    const char *name_end;
    long parent = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = 0;
    close(fd);
    name_end = strrchr(text, ')');
    if (name_end && sscanf(name_end, ") %*c %ld", &parent) != 1)
        parent = 0;
    return (pid_t)parent;
}

static inline void strays_come_to_us(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Anyone who is killed leaves its own children to us, so again until none is
 * left. */
static inline void end_strays(void)
{
    do {
        DIR *d = opendir("/proc");
        pid_t pid;

        for (struct dirent *e; d && (e = readdir(d));) {
            pid = (pid_t)strtol(e->d_name, NULL, 10);
            if (pid > 0 && parent_of(pid) == getpid())
                kill(pid, SIGKILL);
        }
        if (d)
            closedir(d);
    } while (waitpid(-1, NULL, 0) > 0);
}

static pid_t stage_runner; /* of the tests */

__attribute__((constructor)) static inline void before_tests(void)
{
    stage_runner = getpid();
    strays_come_to_us();
}

__attribute__((destructor)) static inline void after_tests(void)
{
    if (getpid() == stage_runner)
        end_strays();
}

/* Starting. */

static inline struct child_opts opts_of(const struct str *argv, size_t n_argv)
{
    return (struct child_opts){
        .argv = argv,
        .n_argv = n_argv,
        .max_line_bytes = 4096,
        .max_unsent_bytes = 256 * 1024,
        .stderr_bytes = 1000,
        .stop_grace_ms = GRACE_MS,
    };
}

static inline enum err try_start(struct stage *s, struct kid *k,
                                 const struct child_opts *o, struct why *why)
{
    *k = (struct kid){.s = s, .other = k->other};
    return child_start(s->all, o, &kid_handler, k, &k->id, why);
}

static inline void start_opts(struct stage *s, struct kid *k,
                              const struct child_opts *o)
{
    struct why why;

    if (try_start(s, k, o, &why) != OK)
        T_FAIL("%s", why.text);
    CHECK(k->id != 0 && child_pid(s->all, k->id) > 0);
}

#define PATH_ENV STR("PATH=/usr/bin:/bin")

static const struct str path_env[] = {STR("PATH=/usr/bin:/bin")};

static inline void start_sh_opts(struct stage *s, struct kid *k,
                                 const char *script, struct child_opts o)
{
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_of(script)};

    o.argv = argv;
    o.n_argv = 3;
    o.env = path_env;
    o.n_env = 1;
    start_opts(s, k, &o);
}

static inline void start_sh(struct stage *s, struct kid *k, const char *script)
{
    start_sh_opts(s, k, script, opts_of(NULL, 0));
}

static inline void start_python(struct stage *s, struct kid *k,
                                const char *script, struct child_opts o)
{
    struct str argv[] = {STR("/usr/bin/python3"), STR("-Sc"), str_of(script)};

    o.argv = argv;
    o.n_argv = 3;
    start_opts(s, k, &o);
}

static inline void send_line(struct kid *k, const char *line)
{
    CHECK_INT(child_send(k->s->all, k->id, str_of(line)), OK);
}

static inline void await_end(struct kid *k)
{
    UNTIL(k->s, k->n_ends);
}

/* Whatever happened before: a line goes to a fresh child and comes back. */
static inline void check_alive(struct stage *s)
{
    struct str argv[] = {STR("/bin/cat")};
    struct child_opts o = opts_of(argv, 1);
    struct kid k = {.s = s};

    start_opts(s, &k, &o);
    send_line(&k, "alive");
    child_close_input(s->all, k.id);
    await_end(&k);
    CHECK_STR(kid_said(&k), "alive|");
    CHECK(k.end.why == CHILD_EXITED && k.end.exit_status == 0);
}

/* The number that a child wrote as its line. */
static inline pid_t kid_pid_line(const struct kid *k)
{
    int64_t pid;

    CHECK(str_to_i64(str_sub(kid_said(k), 0, k->n_said - 1), &pid) == OK);
    return (pid_t)pid;
}

/* A member of a child's group: it ends, and the room waits for it. */
static inline void await_gone(struct stage *s, pid_t pid)
{
    while (next_zombie(P_PID, pid, WNOHANG) == 0 && kill(pid, 0) == 0)
        wait_turn(s);
    later(s, ORPHANS_AGAIN_MS);
    CHECK(kill(pid, 0) != 0 && errno == ESRCH);
}

/* One that has left its group is no one's but ours. How it ended: its signal.
 */
static inline int orphan_signal(pid_t pid)
{
    int status = 0;

    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static inline void end_orphan(pid_t pid)
{
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK_INT(orphan_signal(pid), SIGKILL);
}

#endif
