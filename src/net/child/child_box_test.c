/* Programs with a box: they live and end as others do. What they are kept from
 * is in test/e2e/sandbox_test.py. This file's own binary is the launcher. */
#include "test/lib/child_stage.h"

static const struct str nothing[] = {STR("")};

__attribute__((constructor)) static void be_the_launcher(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], CHILD_LAUNCHER) == 0)
        child_launch();
}

static void stage_init_boxed(struct stage *s)
{
    stage_init(s, 8);
    children_set_launcher(s->all, child_find_launcher());
    s->n_fds++;
}

static struct child_opts boxed(const struct child_box *box)
{
    struct child_opts o = opts_of(NULL, 0);

    o.box = box;
    return o;
}

TEST(lines_go_both_ways_and_the_status_comes_back)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k, "read x; echo \"$x too\"; exit 3", boxed(&box));
    CHECK(child_is_launching(s.all, k.id) && child_held(s.all, k.id) == 0);
    UNTIL(&s, k.n_starts == 1);
    CHECK(child_held(s.all, k.id) != 0);
    CHECK(child_send(s.all, k.id, STR("you")) == OK);
    await_end(&k);
    CHECK_STR(kid_said(&k), "you too|");
    CHECK_INT(k.n_starts, 1);
    CHECK(k.end.why == CHILD_EXITED && k.end.exit_status == 3);
    start_sh_opts(&s, &k, "kill -USR1 $$", boxed(&box));
    await_end(&k);
    CHECK(k.end.why == CHILD_EXITED && k.end.signal == SIGUSR1);
    start_sh_opts(&s, &k, "kill -KILL $$", boxed(&box));
    await_end(&k);
    CHECK(k.end.why == CHILD_EXITED && k.end.signal == SIGKILL);
    stage_fini(&s);
}

TEST(its_environment_and_arguments_are_what_they_were_said_to_be)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(
        &s, &k,
        "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=", boxed(&box));
    await_end(&k);
    CHECK_STR(kid_said(&k), "PATH=/usr/bin:/bin|");
    stage_fini(&s);
}

/* Neither of the launcher's processes holds one of its pipes. */
TEST(a_program_that_closes_its_output_is_seen_to)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k, "exec >&-; exec 2>&-; read x; read x", boxed(&box));
    UNTIL(&s, k.n_starts && timer_is_set(&s.all->slots[0]->timer));
    later(&s, CLOSED_MS);
    await_end(&k);
    CHECK(k.end.why == CHILD_CLOSED);
    stage_fini(&s);
}

TEST(it_has_no_descriptor_but_its_own)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k,
                  "for i in 0 1 2 3 4 5 6 7 8 9; do "
                  "if [ -e /proc/self/fd/$i ]; then echo $i; fi; done",
                  boxed(&box));
    await_end(&k);
    CHECK_STR(kid_said(&k), "0|1|2|");
    stage_fini(&s);
}

TEST(asked_to_end_it_does_and_what_it_started_with_it)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k,
                  "trap 'echo asked; exit 5' TERM; setsid sleep 1000 & "
                  "echo up; while :; do read x || wait; done",
                  boxed(&box));
    UNTIL(&s, k.n_lines == 1);
    child_stop(s.all, k.id);
    await_end(&k);
    CHECK_STR(kid_said(&k), "up|asked|");
    CHECK(k.end.why == CHILD_STOPPED && k.end.exit_status == 5);
    CHECK_INT(children_stats(s.all).killed_total, 0);
    stage_fini(&s);
}

TEST(one_that_does_not_listen_is_killed_after_its_grace)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k,
                  "trap '' TERM; echo up; exec 0<&-; while :; do sleep 1; done",
                  boxed(&box));
    UNTIL(&s, k.n_lines == 1);
    child_stop(s.all, k.id);
    turn(&s, 3);
    CHECK_INT(k.n_ends, 0);
    later(&s, GRACE_MS);
    await_end(&k);
    CHECK(k.end.signal == SIGKILL);
    CHECK_INT(children_stats(s.all).killed_total, 1);
    stage_fini(&s);
}

TEST(its_limits_are_its_own_and_not_the_launchers)
{
    const struct child_box box = {.closed = nothing};
    struct child_opts o = boxed(&box);
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    o.limits = (struct child_limits){
        .memory_bytes = 64 << 20, .cpu_s = 7, .files = 50};
    start_sh_opts(&s, &k, "ulimit -v; ulimit -t; ulimit -n; ulimit -c", o);
    await_end(&k);
    CHECK_STR(kid_said(&k), "65536|7|50|0|");
    stage_fini(&s);
}

static void check_unstarted(struct stage *s, const struct child_opts *o,
                            enum err e, const char *words)
{
    struct kid k = {.s = s};
    struct why why = {""};

    if (try_start(s, &k, o, &why) != OK)
        T_FAIL("%s", why.text);
    await_end(&k);
    CHECK(k.end.why == CHILD_UNSTARTED && k.n_starts == 0);
    CHECK_INT(k.end.err, e);
    if (!strstr(k.why.text, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, k.why.text);
}

TEST(what_cannot_be_started_is_told_as_it_would_be_without_a_box)
{
    const struct child_box box = {.closed = nothing},
                           other = {.closed = nothing,
                                    .user = STR("nobody-of-that-name")};
    const struct str missing[] = {STR("not-there")}, there[] = {STR("sh")};
    struct child_opts o = boxed(&box);
    struct stage s;

    stage_init_boxed(&s);
    o.argv = missing;
    o.n_argv = 1;
    o.path = STR("/usr/bin:/bin");
    check_unstarted(&s, &o, ERR_NOT_FOUND, "no such program");
    o.argv = there;
    o.folder = STR("/not/there");
    check_unstarted(&s, &o, ERR_NOT_FOUND, "its folder /not/there");
    o.folder = STR("");
    o.box = &other;
    check_unstarted(&s, &o, ERR_NOT_FOUND, "no user nobody-of-that-name");
    CHECK_INT(children_stats(s.all).started_total, 0);
    CHECK_INT(children_stats(s.all).killed_total, 0);
    stage_fini(&s);
}

/* The loop goes on meanwhile, and other programs are started. */
TEST(a_launcher_that_hangs_is_ended_at_its_limit)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    fault_arm_at("child.launcher_hangs", 1);
    start_sh_opts(&s, &k, "echo up; cat", boxed(&box));
    check_alive(&s);
    CHECK(child_send(s.all, k.id, STR("you")) == OK);
    later(&s, CHILD_LAUNCH_MS - 1);
    CHECK(child_is_launching(s.all, k.id) && k.n_ends == 0);
    later(&s, 1);
    await_end(&k);
    fault_arm(0);
    CHECK(k.end.why == CHILD_UNSTARTED && k.end.err == ERR_TIMEOUT);
    CHECK(strstr(k.why.text, "cannot start /bin/sh"));
    CHECK(strstr(k.why.text, "not set up within 10 s"));
    CHECK(k.n_starts == 0 && k.n_lines == 0);
    CHECK_INT(children_stats(s.all).started_total, 1);
    stage_fini(&s);
}

TEST(one_that_is_being_launched_can_be_stopped)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s}, other = {.s = &s};

    stage_init_boxed(&s);
    fault_arm_at("child.launcher_hangs", 1);
    start_sh_opts(&s, &k, "echo up; cat", boxed(&box));
    start_sh_opts(&s, &other, "echo up; cat", boxed(&box));
    turn(&s, 2);
    child_stop(s.all, k.id);
    await_end(&k);
    CHECK(k.end.why == CHILD_STOPPED && k.end.words.n == 0);
    CHECK(k.n_starts == 0 && other.n_ends == 0);
    stage_fini(&s); /* and so are all */
    CHECK(other.end.why == CHILD_STOPPED);
    fault_arm(0);
}

TEST(what_is_said_to_it_before_it_runs_is_heard)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k, "exec cat", boxed(&box));
    send_line(&k, "early");
    child_close_input(s.all, k.id);
    await_end(&k);
    CHECK_STR(kid_said(&k), "early|");
    CHECK(k.n_starts == 1 && k.end.why == CHILD_EXITED);
    stage_fini(&s);
}

/* Over before the loop looks at either end of it. */
TEST(one_that_ends_at_once_has_started_all_the_same)
{
    const struct child_box box = {.closed = nothing};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init_boxed(&s);
    start_sh_opts(&s, &k, "echo gone; exit 7", boxed(&box));
    next_zombie(P_PID, child_pid(s.all, k.id), 0);
    await_end(&k);
    CHECK_STR(kid_said(&k), "gone|");
    CHECK(k.n_starts == 1 && k.end.why == CHILD_EXITED);
    CHECK_INT(k.end.exit_status, 7);
    stage_fini(&s);
}

static bool launch_with_a_fault(void)
{
    const struct child_box box = {.closed = nothing};
    const struct str argv[] = {STR("/bin/cat")};
    struct child_opts o = boxed(&box);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why = {""};
    bool fired;
    enum err e;

    o.argv = argv;
    o.n_argv = 1;
    if (!stage_try_init(&s, 4))
        return true;
    children_set_launcher(s.all, child_find_launcher());
    s.n_fds++;
    e = try_start(&s, &k, &o, &why);
    CHECK(e == OK || (fault_fired() && why.text[0]));
    if (!e)
        child_close_input(s.all, k.id);
    while (!e && !k.n_ends)
        wait_turn(&s);
    fired = fault_fired();
    fault_arm(0);
    CHECK(e || fired || (k.end.why == CHILD_EXITED && k.end.exit_status == 0));
    CHECK(k.end.why != CHILD_UNSTARTED || (k.end.err && k.why.text[0]));
    stage_fini(&s);
    return fired;
}

TEST(a_launch_survives_every_fault)
{
    for (long nth = 1;; nth++) {
        fault_arm(nth);
        if (!launch_with_a_fault())
            break;
    }
}

TEST(a_folder_that_holds_the_data_is_refused)
{
    const struct str data[] = {STR("/tmp/not-there/data")},
                     above[] = {STR("/tmp")}, inside[] = {STR("/")};
    struct child_box box = {.closed = data, .n_closed = 1};
    struct why why;

    CHECK(child_box_check(&box, STR("/usr"), &why) == OK);
    CHECK(child_box_check(&box, STR(""), &why) == OK);
    CHECK(child_box_check(&box, STR("/tmp/not-there"), &why) ==
          ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "holds the server's data folder"));
    CHECK(child_box_check(&box, STR("/tmp/not-there/data/ws"), &why) ==
          ERR_NOT_ALLOWED);
    box.read = above;
    box.n_read = 1;
    CHECK(child_box_check(&box, STR("/usr"), &why) == ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "the path in read, /tmp"));
    box.n_read = 0;
    box.write = inside;
    box.n_write = 1;
    CHECK(child_box_check(&box, STR("/usr"), &why) == ERR_NOT_ALLOWED);
}

TEST(without_a_launcher_a_program_with_a_box_is_refused)
{
    const struct child_box box = {.closed = nothing};
    const struct str argv[] = {STR("/bin/true")};
    struct child_opts o = boxed(&box);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why;

    stage_init(&s, 8);
    children_set_launcher(s.all, -1);
    o.argv = argv;
    o.n_argv = 1;
    CHECK(try_start(&s, &k, &o, &why) == ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "cannot find its own binary"));
    stage_fini(&s);
}

TEST(a_plan_that_does_not_fit_into_memory_starts_nothing)
{
    const struct child_box box = {.closed = nothing};
    const struct str argv[] = {STR("/bin/true")};
    struct child_opts o = boxed(&box);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why;

    stage_init_boxed(&s);
    o.argv = argv;
    o.n_argv = 1;
    fault_arm_at("child.plan", 1);
    CHECK(try_start(&s, &k, &o, &why) == ERR_NOMEM);
    fault_arm(0);
    stage_fini(&s);
}

TEST(what_holds_can_be_asked_without_a_program)
{
    const struct child_box box = {.closed = nothing};
    const struct str argv[] = {STR("/bin/true")};
    struct child_threat threats[CHILD_THREATS];
    struct child_opts o = boxed(&box);
    int launcher = child_find_launcher();
    struct why why;
    unsigned held;

    o.argv = argv;
    o.n_argv = 1;
    if (child_probe(launcher, &o, &held, &why) != OK)
        T_FAIL("%s", why.text);
    CHECK(held & CHILD_HOLDS_CAPS);
    close(launcher);
    child_threats(0, threats);
    for (size_t i = 0; i < CHILD_THREATS; i++)
        CHECK(!threats[i].by);
    child_threats(CHILD_HOLDS_PATHS | CHILD_HOLDS_CALLS | CHILD_HOLDS_PIDS |
                      CHILD_HOLDS_RUN | 2U << CHILD_HOLDS_ABI_SHIFT,
                  threats);
    for (size_t i = 0; i < CHILD_THREATS; i++)
        CHECK(threats[i].by);
}
