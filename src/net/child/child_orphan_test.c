/* Orphans that children leave behind, where they come to us: no other process
 * waits for them, and without a wait they stay zombies. */
#include <sched.h>

#include "test/lib/child_stage.h"

enum { N = 20 };

/* Two each, which it does not wait for. They hold its pipes. */
static void leave_orphans(struct stage *s)
{
    static struct kid kids[N];

    for (int i = 0; i < N; i++)
        start_sh(s, &kids[i], "sleep 1000 & sleep 1000 & exit 0");
    for (int i = 0; i < N; i++)
        await_end(&kids[i]); /* the clock stands still */
}

TEST(orphans_are_waited_for)
{
    struct stage s;

    stage_init(&s, N);
    leave_orphans(&s);
    check_no_process(&s);
    CHECK_INT(s.all->n_groups, 0);
    leave_orphans(&s); /* and again, after a rest */
    check_no_process(&s);
    stage_fini(&s);
}

TEST(a_day_without_orphans_passes)
{
    struct stage s;

    stage_init(&s, N);
    later(&s, (int64_t)24 * 3600 * 1000);
    later(&s, (int64_t)24 * 3600 * 1000);
    leave_orphans(&s);
    stage_fini(&s);
}

/* As in a container without an init. Needs a kernel that lets us. */

static void be_process_1(void)
{
    struct stage s;

    CHECK_INT(getpid(), 1);
    stage_init(&s, N);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    leave_orphans(&s);
    stage_fini(&s);
    _exit(0);
}

static int status_of(pid_t pid)
{
    int status = -1;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

/* In one more process: who has made such a space can start nothing more once
 * its process 1 has ended, and the sanitizers want to. */
TEST(orphans_are_waited_for_by_process_1)
{
    int flags = CLONE_NEWPID | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    pid_t pid = fork();

    if (pid == 0) {
        if (unshare(flags) != 0)
            _exit(0);
        pid = fork();
        if (pid == 0)
            be_process_1();
        _exit(status_of(pid) != 0);
    }
    CHECK_INT(status_of(pid), 0);
}

/* The limit of groups, played by one that does not end, many times over. */
static pid_t start_endless(void)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    CHECK(setpgid(pid, pid) == 0);
    return pid;
}

/* Without its timer, the room leaves a zombie, and that is seen. */
TEST(who_does_not_look_again_leaves_zombies)
{
    struct stage s;
    pid_t pid = start_endless();

    stage_init(&s, N);
    orphans_add(s.all, pid);
    loop_timer_cancel(&s.loop, &s.all->orphan_timer);
    kill(pid, SIGKILL);
    CHECK_INT(next_zombie(P_PID, pid, 0), pid);
    later(&s, ORPHANS_AGAIN_MS);
    CHECK_INT(next_zombie(P_PID, pid, WNOHANG), pid);
    CHECK_INT(orphan_signal(pid), SIGKILL);
    stage_fini(&s);
}

TEST(groups_that_do_not_end_are_many_but_not_more)
{
    struct stage s;
    pid_t pid = start_endless();

    stage_init(&s, N);
    for (int i = 0; i < MAX_ORPHAN_GROUPS - 1; i++)
        orphans_add(s.all, pid);
    CHECK_INT(s.all->n_groups, MAX_ORPHAN_GROUPS - 1);
    orphans_add(s.all, pid);
    CHECK_INT(s.all->n_groups, MAX_ORPHAN_GROUPS);
    orphans_add(s.all, pid); /* one too many */
    CHECK_INT(s.all->n_groups, MAX_ORPHAN_GROUPS);
    later(&s, ORPHANS_AGAIN_MS);
    CHECK_INT(s.all->n_groups, MAX_ORPHAN_GROUPS);
    kill(pid, SIGKILL);
    check_no_process(&s);
    CHECK_INT(s.all->n_groups, 0);
    leave_orphans(&s); /* there is room again */
    stage_fini(&s);
}

/* Full of those that have ended is not full. */
TEST(room_is_made_when_there_is_none)
{
    struct stage s;
    pid_t first = start_endless(), second = start_endless();

    stage_init(&s, N);
    for (int i = 0; i < MAX_ORPHAN_GROUPS; i++)
        orphans_add(s.all, first);
    kill(first, SIGKILL);
    CHECK_INT(next_zombie(P_PID, first, 0), first);
    orphans_add(s.all, second);
    CHECK_INT(s.all->n_groups, 1);
    kill(second, SIGKILL);
    stage_fini(&s);
}

/* Others have children too: none is taken from them. */
TEST(whom_others_wait_for_is_left_to_them)
{
    struct stage s;
    int status = 0;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        _exit(7);
    CHECK_INT(next_zombie(P_PID, pid, 0), pid);
    stage_init(&s, N);
    leave_orphans(&s);
    later(&s, ORPHANS_AGAIN_MS);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    stage_fini(&s);
}

/* What this stage itself does when a test has failed. */

TEST(a_test_that_fails_leaves_nobody_behind)
{
    int to_us[2], status;
    pid_t pid = 0, runner;

    CHECK(pipe2(to_us, O_CLOEXEC) == 0);
    runner = fork();
    CHECK(runner >= 0);
    if (runner == 0) {
        strays_come_to_us();
        if (fork() == 0) {
            struct stage s;
            struct kid k = {.s = &s};

            stage_init(&s, 1);
            start_sh(&s, &k, "setsid sleep 1000 & echo $!; read x");
            UNTIL(&s, k.n_lines == 1);
            pid = kid_pid_line(&k);
            _exit(write(to_us[1], &pid, sizeof(pid)) != sizeof(pid));
        }
        CHECK(wait(NULL) > 0);
        end_strays();
        _exit(0);
    }
    CHECK(read(to_us[0], &pid, sizeof(pid)) == sizeof(pid) && pid > 1);
    CHECK(waitpid(runner, &status, 0) == runner);
    CHECK(kill(pid, 0) != 0 && errno == ESRCH);
    close(to_us[0]);
    close(to_us[1]);
}
