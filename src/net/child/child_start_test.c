/* What a child finds when it begins, and what is said when it cannot. Where a
 * child is to be kept from something, the step that does so is left out once,
 * to see that the test would notice. */
#include "test/lib/child_stage.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

/* A child of these arguments runs to its end. */
static void run_words(struct kid *k, const struct str *argv, size_t n)
{
    struct child_opts o = opts_of(argv, n);
    struct stage *s = k->s;

    start_opts(s, k, &o);
    await_end(k);
}

static void run_sh(struct kid *k, const char *script)
{
    start_sh(k->s, k, script);
    await_end(k);
}

TEST(a_program_runs_and_its_status_is_told)
{
    static const struct {
        const char *script;
        int exit_status, signal;
    } cases[] = {{"exit 0", 0, 0},
                 {"exit 7", 7, 0},
                 {"exit 255", 255, 0},
                 {"kill -9 $$", -1, SIGKILL},
                 {"kill -SEGV $$", -1, SIGSEGV}};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_sh(&k, cases[i].script);
        CHECK(k.end.why == CHILD_EXITED && k.n_lines == 0);
        CHECK_INT(k.end.exit_status, cases[i].exit_status);
        CHECK_INT(k.end.signal, cases[i].signal);
    }
    CHECK_INT(children_stats(s.all).started_total, 5);
    CHECK_INT(children_stats(s.all).killed_total, 0);
    stage_fini(&s);
}

TEST(the_environment_is_what_was_given_and_nothing_else)
{
    struct str argv[] = {STR("/usr/bin/env")};
    struct str env[] = {STR("A=1"), STR("EMPTY="), STR("B=x=y z"), STR("A=2")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s};

    setenv("SECRET", "do not tell", 1);
    stage_init(&s, 4);
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "");
    o.env = env;
    o.n_env = 4;
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "A=1|EMPTY=|B=x=y z|A=2|");
    stage_fini(&s);
}

TEST(arguments_come_as_they_are)
{
    struct str argv[] = {
        STR("/usr/bin/printf"), STR("%s\\n"),   STR(""), STR("a b"),
        STR("$HOME;*"),         STR("\xff\x01")};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_words(&k, argv, 6);
    CHECK_STR(kid_said(&k), "|a b|$HOME;*|\xff\x01|");
    stage_fini(&s);
}

TEST(it_is_in_the_folder_it_was_given_or_in_ours)
{
    struct str argv[] = {STR("/bin/pwd"), STR("-P")};
    struct child_opts o = opts_of(argv, 2);
    struct stage s;
    struct kid k = {.s = &s};

    CHECK(chdir("/usr") == 0);
    stage_init(&s, 4);
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "/usr|");
    o.folder = STR("/proc");
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "/proc|");
    stage_fini(&s);
}

TEST(a_path_is_seen_from_its_folder)
{
    struct str argv[] = {STR("bin/pwd")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s};

    CHECK(chdir("/proc") == 0);
    stage_init(&s, 4);
    o.folder = STR("/usr");
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "/usr|");
    stage_fini(&s);
}

TEST(a_name_is_looked_for_in_path_alone)
{
    struct str argv[] = {STR("pwd")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why;
    static const struct {
        struct str path;
        enum err e;
    } cases[] = {
        {STR("/usr/bin"), OK},
        {STR("/nowhere:/etc/passwd:/usr/bin"), OK},
        {STR(""), ERR_NOT_FOUND},
        {STR("/nowhere"), ERR_NOT_FOUND},
        {STR(":.:bin:"), ERR_NOT_FOUND}, /* though it is in the folder */
        {STR(":/usr/bin:"), OK},
    };

    setenv("PATH", "/usr/bin:/bin", 1);
    CHECK(chdir("/usr/bin") == 0);
    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        o.path = cases[i].path;
        CHECK_INT(try_start(&s, &k, &o, &why), cases[i].e);
        if (cases[i].e == OK)
            await_end(&k);
        else
            CHECK(strstr(why.text, "no such program in"));
    }
    stage_fini(&s);
}

/* Descriptors. */

static void list_fds(struct kid *k)
{
    struct str argv[] = {STR("/bin/ls"), STR("/proc/self/fd")};

    run_words(k, argv, 2);
}

TEST(it_has_none_of_our_descriptors)
{
    struct stage s;
    struct kid k = {.s = &s}, cat = {.s = &s};
    int fds[3] = {open("/dev/null", O_RDONLY), 0, 0};

    fds[1] = fcntl(fds[0], F_DUPFD, 100);
    fds[2] = fcntl(fds[0], F_DUPFD, 1000); /* none closes itself at exec */
    CHECK(fds[1] == 100 && fds[2] == 1000);
    stage_init(&s, 4);
    start_sh(&s, &cat, "exec cat"); /* whose pipes are not for others */
    list_fds(&k);
    CHECK_STR(kid_said(&k), "0|1|2|3|"); /* 3 is the folder it reads */
    fault_arm_at("child.keep_fds", 1);
    list_fds(&k);
    CHECK(k.n_lines > 6); /* it would have been noticed */
    fault_arm(0);
    stage_fini(&s);
    close(fds[0]);
    close(fds[1]);
    close(fds[2]);
}

/* Descriptors 0 to 3 of the server may be anything, also closed. */
TEST(it_does_not_matter_which_descriptors_are_free)
{
    for (int mask = 0; mask < 16; mask++) {
        pid_t pid = fork();
        int status = 1;

        if (pid == 0) {
            struct stage s;
            struct kid k = {.s = &s};

            while (open("/dev/null", O_RDONLY) < 4)
                ; /* so that those of the loop lie above */
            stage_init(&s, 4);
            for (int fd = 0; fd < 4; fd++)
                if (mask & 1 << fd)
                    close(fd);
            list_fds(&k);
            if (k.n_said != 8 || memcmp(k.said, "0|1|2|3|", 8) != 0)
                _exit(3);
            start_sh(&s, &k, "read x; echo $x; echo e >&2");
            send_line(&k, "hello");
            await_end(&k);
            _exit(k.n_said == 6 && k.n_tail == 2 && k.tail[0] == 'e' ? 0 : 4);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
    }
}

/* Read from its beginning each time, whatever was read of it before. */
TEST(it_has_the_file_that_it_is_handed_and_no_other)
{
    struct str argv[] = {STR("/bin/sh"), STR("-c"),
                         STR("cat " CHILD_FILE_PATH "; cat " CHILD_FILE_PATH
                             "; ls /proc/self/fd")};
    struct child_opts o = opts_of(argv, 3);
    struct stage s;
    struct kid k = {.s = &s};
    int file = memfd_create("file", MFD_CLOEXEC);

    CHECK(file > 0 && write(file, "words\n", 6) == 6);
    o.file = file;
    stage_init(&s, 4);
    start_opts(&s, &k, &o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "words|words|0|1|2|3|4|"); /* 3: what ls reads */
    stage_fini(&s);
    close(file);
}

TEST(a_file_that_is_none_is_told)
{
    struct str argv[] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why;

    o.file = 999;
    stage_init(&s, 4);
    CHECK_INT(try_start(&s, &k, &o, &why), ERR_IO);
    CHECK(strstr(why.text, "Bad file descriptor"));
    stage_fini(&s);
}

/* Signals, session, privileges. */

static void on_usr1(int sig)
{
    (void)sig;
}

/* Two signals are the C library's own (32, 33). It neither tells nor changes
 * them, but our own parent may have ignored them, which exec keeps. */
static void ignore_by_kernel(int sig)
{
    uintptr_t action[8] = {(uintptr_t)SIG_IGN};

    CHECK(syscall(SYS_rt_sigaction, sig, action, NULL, 8) == 0);
}

TEST(signals_are_as_nobody_had_touched_them)
{
    struct stage s;
    struct kid k = {.s = &s};
    struct sigaction own = {.sa_handler = on_usr1};
    const uint64_t touched = 0x8000001180001001;
    sigset_t all, now;

    stage_init(&s, 4); /* which ignores SIGPIPE */
    signal(SIGHUP, SIG_IGN);
    signal(SIGRTMIN + 3, SIG_IGN);
    ignore_by_kernel(32);
    ignore_by_kernel(33);
    ignore_by_kernel(64);
    sigaction(SIGUSR1, &own, NULL);
    sigemptyset(&all);
    sigaddset(&all, SIGUSR2);
    sigaddset(&all, SIGTERM);
    sigprocmask(SIG_SETMASK, &all, NULL);
    run_sh(&k, "sed -n '/^Sig[BIC]/p' /proc/self/status");
    CHECK_STR(kid_said(&k), "SigBlk:\t0000000000000000|"
                            "SigIgn:\t0000000000000000|"
                            "SigCgt:\t0000000000000000|");
    /* And ours are as they were. */
    sigprocmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1));
    sigaction(SIGUSR1, NULL, &own);
    CHECK(own.sa_handler == on_usr1);
    fault_arm_at(spawn_step_name(STEP_SIGNALS), 1);
    run_sh(&k, "grep SigIgn /proc/self/status");
    CHECK((strtoull(k.said + strlen("SigIgn:"), NULL, 16) & touched) ==
          touched);
    fault_arm(0);
    stage_fini(&s);
}

TEST(it_leads_a_session_without_a_terminal)
{
    struct stage s;
    struct kid k = {.s = &s};
    int64_t id;

    stage_init(&s, 4);
    start_sh(&s, &k, "set -- $(cat /proc/$$/stat); echo $5 $6 $7; read x");
    UNTIL(&s, k.n_lines == 1);
    id = child_pid(s.all, k.id);
    CHECK(getsid((pid_t)id) == id && getpgid((pid_t)id) == id);
    CHECK(getsid(0) != id);
    CHECK(strstr(k.said, " 0|")); /* tty_nr */
    stage_fini(&s);
}

TEST(no_new_privileges_is_set)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_sh(&k, "grep NoNewPrivs /proc/self/status");
    CHECK_STR(kid_said(&k), "NoNewPrivs:\t1|");
    fault_arm_at(spawn_step_name(STEP_PRIVILEGES), 1);
    run_sh(&k, "grep NoNewPrivs /proc/self/status");
    CHECK_STR(kid_said(&k), "NoNewPrivs:\t0|");
    fault_arm(0);
    CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0); /* ours is not */
    stage_fini(&s);
}

static const char *const run_setuid_id =
    "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534);"
    "os.execv('./id', ['id', '-u'])";

static void make_setuid_id(char *folder)
{
    struct stage s;
    struct kid k = {.s = &s};
    struct child_opts o = opts_of(NULL, 0);

    CHECK(mkdtemp(folder));
    o.folder = str_of(folder);
    stage_init(&s, 1);
    start_sh_opts(&s, &k, "cp /usr/bin/id . && chmod 4755 id . && echo ok", o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "ok|");
    stage_fini(&s);
}

static void remove_folder(const char *folder)
{
    struct stage s;
    struct kid k = {.s = &s};
    struct str argv[] = {STR("/bin/rm"), STR("-r"), str_of(folder)};

    stage_init(&s, 1);
    run_words(&k, argv, 3);
    CHECK(k.end.exit_status == 0);
    stage_fini(&s);
}

/* A program like sudo, for one who is not root. Only root can make one. */
TEST(a_setuid_program_gains_nothing)
{
    char folder[] = "/tmp/signalbox-child-XXXXXX";
    struct child_opts o = opts_of(NULL, 0);
    struct statvfs fs;
    struct stage s;
    struct kid k = {.s = &s};

    if (getuid() != 0 || statvfs("/tmp", &fs) != 0 || fs.f_flag & ST_NOSUID)
        return;
    make_setuid_id(folder);
    stage_init(&s, 4);
    o.folder = str_of(folder);
    start_python(&s, &k, run_setuid_id, o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "65534|");
    fault_arm_at(spawn_step_name(STEP_PRIVILEGES), 1);
    start_python(&s, &k, run_setuid_id, o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "0|");
    fault_arm(0);
    stage_fini(&s);
    remove_folder(folder);
}

TEST(memory_that_runs_out_takes_it_before_us)
{
    struct stage s;
    struct kid k = {.s = &s};
    int64_t score;

    stage_init(&s, 4);
    run_sh(&k, "cat /proc/self/oom_score_adj");
    CHECK(str_to_i64((struct str){k.said, k.n_said - 1}, &score) == OK);
    CHECK_INT(score, s.all->oom_score);
    CHECK(score >= 300);
    stage_fini(&s);
}

/* A server that is killed. Its child does not look at its pipes. */
static pid_t orphan_of_killed_server(void)
{
    int to_us[2], status;
    pid_t server, kid = 0;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHECK(pipe2(to_us, O_CLOEXEC) == 0);
    server = fork();
    if (server == 0) {
        struct stage s;
        struct kid k = {.s = &s};

        stage_init(&s, 4);
        start_sh(&s, &k, "trap '' TERM HUP INT; exec sleep 1000");
        kid = child_pid(s.all, k.id);
        if (write(to_us[1], &kid, sizeof(kid)) != sizeof(kid))
            _exit(1);
        for (;;)
            wait_turn(&s);
    }
    CHECK(read(to_us[0], &kid, sizeof(kid)) == sizeof(kid));
    kill(server, SIGKILL);
    CHECK(waitpid(server, &status, 0) == server);
    close(to_us[0]);
    close(to_us[1]);
    return kid;
}

TEST(it_dies_with_a_server_that_is_killed)
{
    pid_t pid = orphan_of_killed_server();

    CHECK_INT(orphan_signal(pid), SIGKILL);
    fault_arm_at(spawn_step_name(STEP_PARENT), 1);
    pid = orphan_of_killed_server();
    fault_arm(0);
    CHECK_INT(waitpid(pid, NULL, WNOHANG), 0); /* lives on without that */
    end_orphan(pid);
}

TEST(an_ignored_sigchld_does_not_hide_its_end)
{
    struct stage s;
    struct kid k = {.s = &s};

    signal(SIGCHLD, SIG_IGN); /* as a careless parent may have left it */
    stage_init(&s, 4);
    run_sh(&k, "exit 5");
    CHECK_INT(k.end.exit_status, 5);
    stage_fini(&s);
}
