/* How children end: asked, killed, by themselves, with and without those they
 * have started; and how all of them do. */
#include "test/lib/child_stage.h"

#include <signal.h>

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 && next_zombie(P_PID, pid, WNOHANG) == 0;
}

TEST(who_is_asked_to_stop_stops)
{
    static const char *const scripts[] = {
        "exec cat", "exec sleep 1000",
        "trap 'exit 9' TERM; echo; while :; do read x; done",
        "trap '' TERM; exec cat", /* sees its input closed */
    };
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        start_sh(&s, &k, scripts[i]);
        child_stop(s.all, k.id);
        CHECK(k.n_ends == 0); /* never from inside our own call */
        child_stop(s.all, k.id);
        CHECK(child_send(s.all, k.id, STR("x")) == ERR_GONE);
        await_end(&k);
        CHECK(k.end.why == CHILD_STOPPED);
        child_stop(s.all, k.id); /* invalid */
        child_pause(s.all, k.id, true);
        child_close_input(s.all, k.id);
    }
    CHECK_INT(children_stats(s.all).killed_total, 0);
    stage_fini(&s);
}

TEST(what_was_sent_before_stopping_is_written)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "trap '' TERM; echo ready; exec cat");
    UNTIL(&s, k.n_lines == 1);
    send_line(&k, "the last");
    child_stop(s.all, k.id);
    await_end(&k);
    CHECK_STR(kid_said(&k), "ready|the last|"); /* and what it answers */
    CHECK(k.end.exit_status == 0);
    stage_fini(&s);
}

static void start_deaf(struct stage *s, struct kid *k)
{
    start_sh(s, k, "trap '' TERM HUP INT; echo ready; exec sleep 1000");
    UNTIL(s, k->n_lines == 1);
}

TEST(who_ignores_it_is_killed_after_the_grace_and_not_before)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_deaf(&s, &k);
    child_stop(s.all, k.id);
    later(&s, GRACE_MS - 1);
    CHECK_INT(children_stats(s.all).killed_total, 0);
    CHECK(is_alive(child_pid(s.all, k.id)));
    later(&s, 1);
    CHECK_INT(children_stats(s.all).killed_total, 1);
    await_end(&k);
    CHECK(k.end.why == CHILD_STOPPED && k.end.signal == SIGKILL);
    CHECK_INT(k.end.exit_status, -1);
    stage_fini(&s);
}

TEST(without_a_grace_it_is_killed_in_the_same_turn)
{
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid k = {.s = &s};

    o.stop_grace_ms = 0;
    stage_init(&s, 4);
    start_sh_opts(&s, &k, "trap '' TERM; echo ready; exec sleep 1000", o);
    UNTIL(&s, k.n_lines == 1);
    child_stop(s.all, k.id);
    await_end(&k);
    CHECK_INT(k.end.signal, SIGKILL);
    stage_fini(&s);
}

TEST(who_was_suspended_hears_it_too)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "kill -STOP $$; exec sleep 1000");
    CHECK(waitid(P_PID, (id_t)child_pid(s.all, k.id), &(siginfo_t){0},
                 WSTOPPED) == 0);
    child_stop(s.all, k.id);
    await_end(&k); /* the clock stands still */
    CHECK_INT(k.end.signal, SIGTERM);
    stage_fini(&s);
}

/* Those it has started. */

TEST(its_own_children_are_stopped_with_it)
{
    struct stage s;
    struct kid k = {.s = &s};
    pid_t pid;

    stage_init(&s, 4);
    start_sh(&s, &k, "sleep 1000 & echo $!; exec sleep 1000");
    UNTIL(&s, k.n_lines == 1);
    pid = kid_pid_line(&k);
    child_stop(s.all, k.id);
    await_end(&k);
    CHECK_INT(k.end.signal, SIGTERM);
    await_gone(&s, pid);
    stage_fini(&s);
}

TEST(those_that_ignore_it_are_killed_as_soon_as_it_has_ended)
{
    struct stage s;
    struct kid k = {.s = &s};
    pid_t pid;

    stage_init(&s, 4);
    start_sh(&s, &k,
             "(trap '' TERM; echo $(exec sh -c 'echo $PPID'); "
             "exec sleep 1000) & read x");
    UNTIL(&s, k.n_lines == 1);
    pid = kid_pid_line(&k);
    child_stop(s.all, k.id);
    await_end(&k); /* the clock stands still */
    await_gone(&s, pid);
    stage_fini(&s);
}

/* By itself; forked, and forked twice. They hold its pipes. */
TEST(those_it_leaves_behind_are_killed)
{
    static const char *const scripts[] = {
        "sleep 1000 & echo $!; exit 3",
        "(sleep 1000 & echo $!) & wait; exit 3",
        "(trap '' TERM HUP; (sleep 1000 & echo $!)); exit 3",
    };
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        start_sh(&s, &k, scripts[i]);
        await_end(&k); /* the clock stands still */
        CHECK(k.end.why == CHILD_EXITED && k.end.exit_status == 3);
        await_gone(&s, kid_pid_line(&k));
    }
    CHECK_INT(children_stats(s.all).killed_total, 0); /* it went by itself */
    stage_fini(&s);
}

TEST(many_that_fork_without_end_are_all_killed)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_python(&s, &k,
                 "import os, signal, time\n"
                 "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                 "for i in range(5): os.fork()\n" /* 32 of them */
                 "print(os.getpid(), flush=True)\n"
                 "while True:\n"
                 " if os.fork() == 0: os._exit(0)\n"
                 " os.wait()\n",
                 opts_of(NULL, 0));
    UNTIL(&s, k.n_lines == 32);
    child_stop(s.all, k.id);
    later(&s, GRACE_MS);
    await_end(&k);
    CHECK_INT(k.end.signal, SIGKILL);
    stage_fini(&s); /* which looks for every orphan */
}

/* Who leaves the group with setsid() escapes when the child ends by itself: it
 * lives on, but it does not keep the child from being over. */
static pid_t start_escape(struct stage *s, struct kid *k, const char *then)
{
    char script[200];

    snprintf(script, sizeof(script),
             "setsid sh -c 'echo $$; exec %s' & read x; echo end; exit 2",
             then);
    start_sh(s, k, script);
    UNTIL(s, k->n_lines >= 1);
    return kid_pid_line(k);
}

TEST(who_left_the_group_does_not_hold_it_up)
{
    struct stage s;
    struct kid k = {.s = &s};
    pid_t pid;

    stage_init(&s, 4);
    pid = start_escape(&s, &k, "sleep 1000");
    send_line(&k, "go");
    UNTIL(&s, child_pid(s.all, k.id) == 0 && k.n_lines == 2);
    later(&s, LAST_WORDS_MS - 1);
    CHECK(k.n_ends == 0);
    later(&s, 1);
    CHECK(k.n_ends == 1 && k.end.exit_status == 2);
    CHECK(is_alive(pid));
    end_orphan(pid);
    stage_fini(&s);
}

/* A stop reaches those too, as long as their parent is known. */
TEST(who_left_the_group_is_stopped_with_it)
{
    static const char *const wholes[] = {
        /* One that goes when it is asked, and one that does not. */
        "setsid sh -c 'echo $$; exec sleep 1000' & read x; wait",
        "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &"
        "trap '' TERM; while :; do sleep 1; done",
    };

    for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
        struct stage s;
        struct kid k = {.s = &s};
        pid_t pid;

        stage_init(&s, 4);
        start_sh(&s, &k, wholes[i]);
        UNTIL(&s, k.n_lines == 1);
        pid = kid_pid_line(&k);
        CHECK(is_alive(pid));
        child_stop(s.all, k.id);
        if (i == 1)
            later(&s, GRACE_MS);
        await_end(&k);
        await_gone(&s, pid);
        stage_fini(&s);
    }
}

TEST(who_left_the_group_is_found_below_others)
{
    struct stage s;
    struct kid k = {.s = &s};
    struct child *c;
    pid_t pid;

    stage_init(&s, 4);
    start_sh(&s, &k,
             "sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 1000\" & wait' & "
             "wait");
    UNTIL(&s, k.n_lines == 1);
    pid = kid_pid_line(&k);
    c = children_find(s.all, k.id);
    strays_gather(c);
    strays_gather(c);
    CHECK(c->n_strays == 1 && c->strays[0].pid == pid);
    kill(pid, SIGKILL); /* and those who wait for it end */
    await_end(&k);
    stage_fini(&s);
}

/* Nothing is sent to a number that is another's by now. */
TEST(a_number_that_is_anothers_is_left_alone)
{
    struct child c = {.process = 0};
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    c.strays[0] = (struct stray){.pid = pid, .group = pid, .began = 1};
    c.n_strays = 1;
    strays_signal(&c, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* Less than setsid() is enough: shells with job control do it. */
TEST(who_made_a_group_of_its_own_is_stopped_too)
{
    struct stage s;
    struct kid k = {.s = &s};
    pid_t pid;

    stage_init(&s, 4);
    start_python(&s, &k,
                 "import os, time\n"
                 "if os.fork() == 0:\n"
                 " os.setpgid(0, 0); print(os.getpid(), flush=True)\n"
                 " time.sleep(1000)\n"
                 "input()",
                 opts_of(NULL, 0));
    UNTIL(&s, k.n_lines == 1);
    pid = kid_pid_line(&k);
    child_stop(s.all, k.id);
    UNTIL(&s, child_pid(s.all, k.id) == 0);
    await_end(&k);
    await_gone(&s, pid);
    stage_fini(&s);
}

/* A last line without an end, and a writer that never ends. */
TEST(whoever_goes_on_writing_does_not_hold_it_up_either)
{
    struct stage s;
    struct kid k = {.s = &s}, quiet = {.s = &s};
    pid_t pid, pid_quiet;

    stage_init(&s, 4);
    start_sh(&s, &k, "setsid sh -c 'echo $$ >&2; exec yes' & read x");
    start_sh(&s, &quiet,
             "setsid sh -c 'echo $$ >&2; printf half; exec sleep 1000' & "
             "read x");
    UNTIL(&s, k.n_lines > 100);
    UNTIL(&s, children_find(s.all, quiet.id)->heard.n == 4);
    send_line(&k, "go");
    send_line(&quiet, "go");
    UNTIL(&s, child_pid(s.all, k.id) == 0 && child_pid(s.all, quiet.id) == 0);
    turn(&s, 100);
    CHECK(k.n_ends == 0 && quiet.n_ends == 0);
    later(&s, LAST_WORDS_MS);
    await_end(&k);
    await_end(&quiet);
    CHECK_STR(kid_said(&quiet), "half|");
    pid = (pid_t)strtol(k.tail, NULL, 10);
    pid_quiet = (pid_t)strtol(quiet.tail, NULL, 10);
    CHECK_INT(orphan_signal(pid), SIGPIPE); /* its pipe is closed */
    CHECK(is_alive(pid_quiet));
    end_orphan(pid_quiet);
    stage_fini(&s);
}

/* libuv's own children are watched by SIGCHLD, ours are not. */

static void on_uv_exit(uv_process_t *p, int64_t exit_status, int signal)
{
    (void)signal;
    *(int64_t *)p->data = exit_status;
    uv_close((uv_handle_t *)p, NULL);
}

TEST(children_of_libuv_and_ours_do_not_disturb_each_other)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t) "exit 5", NULL};
    int64_t exit_status = -1;
    uv_process_t p = {.data = &exit_status};
    uv_process_options_t o = {
        .file = argv[0], .args = argv, .exit_cb = on_uv_exit};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "read x; exit 6");
    CHECK(uv_spawn(&s.loop.uv, &p, &o) == 0);
    UNTIL(&s, exit_status == 5);
    send_line(&k, "now");
    await_end(&k);
    CHECK_INT(k.end.exit_status, 6);
    stage_fini(&s);
}

/* Misuse, and a kernel that does not let go. */

TEST(who_was_reaped_by_somebody_else_is_over_all_the_same)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exit 3");
    CHECK(waitpid(child_pid(s.all, k.id), NULL, 0) > 0);
    await_end(&k);
    CHECK(k.end.why == CHILD_EXITED);
    CHECK(k.end.exit_status == -1 && k.end.signal == 0);
    stage_fini(&s);
}

/* A kernel that does not let go, played by a SIGKILL that is not sent. */
static pid_t make_stuck(struct stage *s, struct kid *k)
{
    pid_t pid;

    start_deaf(s, k);
    pid = child_pid(s->all, k->id);
    fault_arm_at("child.no_kill", 1);
    child_stop(s->all, k->id);
    later(s, GRACE_MS);
    for (int i = 1; i < KILLS; i++)
        later(s, KILL_AGAIN_MS);
    CHECK(k->n_ends == 0);
    later(s, KILL_AGAIN_MS);
    CHECK(k->n_ends == 1 && k->end.why == CHILD_STOPPED);
    CHECK(k->end.exit_status == -1 && k->end.signal == 0);
    fault_arm(0);
    return pid;
}

TEST(who_cannot_be_killed_is_given_up_and_keeps_its_place)
{
    struct str argv[] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s}, next = {.s = &s};
    struct why why;
    pid_t pid;

    stage_init(&s, 1);
    pid = make_stuck(&s, &k);
    CHECK_INT(children_stats(s.all).running, 1);
    CHECK_INT(children_stats(s.all).killed_total, 1);
    CHECK(child_pid(s.all, k.id) == 0);
    CHECK(try_start(&s, &next, &o, &why) == ERR_LIMIT);
    kill(pid, SIGKILL); /* it lets go at last */
    UNTIL(&s, children_stats(s.all).running == 0);
    CHECK_INT(k.n_ends, 1);
    check_alive(&s);
    stage_fini(&s);
}

TEST(who_cannot_be_killed_does_not_keep_the_house_from_closing)
{
    struct stage s;
    struct kid k = {.s = &s};
    pid_t pid;

    stage_init(&s, 2);
    pid = make_stuck(&s, &k);
    children_stop(s.all, stage_done, &s);
    UNTIL(&s, s.n_done == 1);
    end_orphan(pid);
    stage_free(&s);
}

/* All of them. */

TEST(two_hundred_live_at_once_and_one_more_is_refused)
{
    enum { N = 200 };
    static struct kid kids[N];
    struct str argv[] = {STR("/bin/cat")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid extra = {.s = &s};
    struct why why;
    char line[16];

    stage_init(&s, N);
    for (int i = 0; i < N; i++)
        start_opts(&s, &kids[i], &o);
    CHECK_INT(try_start(&s, &extra, &o, &why), ERR_LIMIT);
    CHECK(strstr(why.text, "200 programs"));
    for (int i = 0; i < N; i++) {
        snprintf(line, sizeof(line), "%d", i);
        send_line(&kids[i], line);
    }
    for (int i = 0; i < N; i++) {
        UNTIL(&s, kids[i].n_lines == 1);
        CHECK_INT(kid_pid_line(&kids[i]), i);
    }
    CHECK_INT(children_stats(s.all).running, N);
    child_stop(s.all, kids[77].id);
    await_end(&kids[77]);
    check_alive(&s); /* one place is free again */
    stage_fini(&s);
    for (int i = 0; i < N; i++)
        CHECK(kids[i].n_ends == 1);
}

TEST(all_are_stopped_and_nobody_comes_after)
{
    struct str argv[] = {STR("/bin/cat")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid polite = {.s = &s}, deaf = {.s = &s}, late = {.s = &s};
    struct why why;

    stage_init(&s, 8);
    start_opts(&s, &polite, &o);
    start_deaf(&s, &deaf);
    children_stop(s.all, stage_done, &s);
    children_stop(s.all, stage_done, NULL);
    CHECK(try_start(&s, &late, &o, &why) == ERR_STOPPING);
    await_end(&polite);
    turn(&s, 5);
    CHECK(s.n_done == 0 && deaf.n_ends == 0);
    later(&s, GRACE_MS);
    UNTIL(&s, s.n_done == 1);
    CHECK(deaf.n_ends == 1);
    stage_free(&s);
}

TEST(where_nobody_is_stopping_is_done_by_the_loop)
{
    struct stage s;

    children_free(NULL);
    stage_init(&s, 8);
    children_stop(s.all, stage_done, &s);
    CHECK(s.n_done == 0);
    turn(&s, 1);
    CHECK(s.n_done == 1);
    stage_free(&s);
}

TEST(old_ids_and_made_up_ones_are_nobody)
{
    struct stage s;
    struct kid k = {.s = &s};
    uint64_t ids[] = {0, 1, 65535, 65536, UINT64_MAX, 0};

    stage_init(&s, 2);
    start_sh(&s, &k, "exit 0");
    ids[5] = k.id;
    await_end(&k);
    start_sh(&s, &k, "exec cat"); /* in the same place */
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        CHECK(child_send(s.all, ids[i], STR("x")) == ERR_GONE);
        CHECK(child_pid(s.all, ids[i]) == 0);
        child_stop(s.all, ids[i]);
        child_close_input(s.all, ids[i]);
        child_pause(s.all, ids[i], true);
    }
    send_line(&k, "y");
    UNTIL(&s, k.n_lines == 1);
    stage_fini(&s);
}

/* Owners that act on what they hear. */

static void stop_self(struct kid *k, struct str line)
{
    (void)line;
    child_stop(k->s->all, k->id);
}

TEST(a_child_may_be_stopped_by_its_own_line)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exec yes");
    k.act = stop_self;
    await_end(&k);
    CHECK(k.end.why == CHILD_STOPPED && k.n_lines >= 1);
    stage_fini(&s);
}

static void start_other(struct kid *k, struct str line)
{
    if (k->n_lines > 50)
        return; /* it had said more before it was stopped */
    if (k->other->id == 0)
        start_sh(k->s, k->other, "echo other; exec cat");
    CHECK(child_send(k->s->all, k->other->id, line) == OK);
    CHECK(child_send(k->s->all, k->id, line) == OK);
    child_pause(k->s->all, k->other->id, k->n_lines % 2);
    if (k->n_lines == 50) {
        child_close_input(k->s->all, k->other->id);
        child_pause(k->s->all, k->other->id, false);
        child_stop(k->s->all, k->id);
    }
}

TEST(a_line_may_start_others_and_speak_to_everybody)
{
    struct stage s;
    struct kid k = {.s = &s}, other = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "echo 1; exec cat");
    k.act = start_other;
    k.other = &other;
    await_end(&k);
    await_end(&other);
    CHECK(other.n_lines == 51 && other.end.exit_status == 0);
    CHECK(k.n_lines >= 50);
    stage_fini(&s);
}

static void stop_everybody(struct kid *k, struct str line)
{
    (void)line;
    children_stop(k->s->all, stage_done, k->s);
}

TEST(a_line_may_stop_everybody)
{
    struct stage s;
    struct kid k = {.s = &s}, other = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &other, "exec cat");
    start_sh(&s, &k, "echo 1; exec cat");
    k.act = stop_everybody;
    UNTIL(&s, s.n_done == 1);
    CHECK(k.n_ends == 1 && other.n_ends == 1);
    stage_free(&s);
}

static void restart(struct kid *k)
{
    struct kid *again = k->other;

    if (again)
        start_sh(k->s, again, "echo again");
}

TEST(who_hears_of_an_end_may_start_another_in_its_place)
{
    struct stage s;
    struct kid again = {.s = &s}, k = {.s = &s, .other = &again};

    stage_init(&s, 1);
    start_sh(&s, &k, "exit 1");
    k.act_at_end = restart;
    await_end(&k);
    await_end(&again);
    CHECK_STR(kid_said(&again), "again|");
    stage_fini(&s);
}

static void stop_everybody_at_end(struct kid *k)
{
    children_stop(k->s->all, stage_done, k->s);
}

TEST(who_hears_of_an_end_may_stop_everybody)
{
    struct stage s;
    struct kid k = {.s = &s}, other = {.s = &s};

    stage_init(&s, 2);
    start_sh(&s, &other, "exec cat");
    start_sh(&s, &k, "exit 1");
    k.act_at_end = stop_everybody_at_end;
    UNTIL(&s, s.n_done == 1);
    CHECK(other.n_ends == 1);
    stage_free(&s);
}
