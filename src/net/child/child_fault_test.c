/* Everything that can fail fails once, each in a run of its own. Whatever it
 * was: who could be started ends and is told of once, and no descriptor, no
 * process and no memory (the sanitizers look) is left. */
#include "test/lib/child_stage.h"

static const char *const scripts[] = {
    "echo begin; echo oops >&2; cat",             /* echoes, then ends */
    "sleep 1000 & echo $!; exec cat",             /* has a grandchild */
    "trap '' TERM; echo; exec sleep 1000",        /* has to be killed */
    "printf '%05000d\\n' 0; exec cat",            /* a line too long */
    "head -c 300000 >/dev/null; exec sleep 1000", /* reads late */
};

enum { KIDS = sizeof(scripts) / sizeof(scripts[0]) };

struct scene {
    struct stage s;
    struct kid kids[KIDS];
    bool has_started[KIDS];
    int n_started;
};

static void start_all(struct scene *sc)
{
    for (int i = 0; i < KIDS; i++) {
        struct str argv[] = {STR("sh"), STR("-c"), str_of(scripts[i])};
        struct child_opts o = opts_of(argv, 3);
        struct why why = {""};
        enum err e;

        o.path = STR("/usr/bin:/bin");
        o.folder = STR("/");
        o.env = path_env;
        o.n_env = 1;
        o.limits = (struct child_limits){.files = 64, .cpu_s = 60};
        e = try_start(&sc->s, &sc->kids[i], &o, &why);
        sc->has_started[i] = e == OK;
        sc->n_started += e == OK;
        CHECK(e == OK || (fault_fired() && why.text[0] != 0));
    }
}

static void send_all(struct scene *sc)
{
    static char big[100000];

    memset(big, 'b', sizeof(big));
    for (int i = 0; i < KIDS; i++) {
        enum err e;

        if (!sc->has_started[i])
            continue;
        e = child_send(sc->s.all, sc->kids[i].id, STR("hello"));
        CHECK(e == OK || fault_fired());
    }
    for (int i = 0; i < 4 && sc->has_started[4]; i++) {
        enum err e = child_send(sc->s.all, sc->kids[4].id,
                                (struct str){big, sizeof(big)});

        CHECK(e == OK || e == ERR_BUSY || fault_fired());
    }
}

/* Each comes as far as it can, and then is stopped. */
static void play(struct scene *sc)
{
    struct stage *s = &sc->s;
    struct kid *k = sc->kids;

    start_all(sc);
    turn(s, 1);
    send_all(sc);
    if (sc->has_started[0])
        UNTIL(s, k[0].n_lines == 2 || k[0].n_ends || fault_fired());
    if (sc->has_started[2])
        UNTIL(s, k[2].n_lines == 1 || k[2].n_ends || fault_fired());
    if (sc->has_started[3])
        UNTIL(s, k[3].n_ends || fault_fired());
    if (sc->has_started[4])
        UNTIL(s, k[4].n_room || k[4].n_ends || fault_fired());
    child_close_input(s->all, k[0].id);
    child_stop(s->all, k[1].id);
    child_stop(s->all, k[2].id);
    turn(s, 3);
}

static void check_scene(struct scene *sc, bool fired)
{
    struct kid *k = sc->kids;

    for (int i = 0; i < KIDS; i++)
        CHECK_INT(k[i].n_ends, sc->has_started[i]);
    CHECK(fired || sc->n_started == KIDS);
    if (fired)
        return;
    CHECK_STR(kid_said(&k[0]), "begin|hello|");
    CHECK_STR(k[0].end.stderr_tail, "oops\n");
    CHECK(k[2].end.signal == SIGKILL && k[3].end.why == CHILD_LONG_LINE);
    CHECK(k[4].end.why == CHILD_STOPPED && k[4].n_room == 1);
}

/* One run with whatever fault is armed. Returns whether it was met. */
static bool run_scene(void)
{
    static struct scene sc;
    bool fired;

    sc = (struct scene){.n_started = 0};
    if (!stage_try_init(&sc.s, KIDS)) {
        CHECK(fault_fired());
        return true;
    }
    play(&sc);
    stage_stop(&sc.s);
    fired = fault_fired();
    fault_arm(0);
    check_scene(&sc, fired);
    stage_free(&sc.s);
    return fired;
}

TEST(every_step_may_fail_once)
{
    long nth = 0;

    do
        fault_arm(nth += T_SWEEP_STEP);
    while (run_scene());
    CHECK(nth > 100); /* it really went through many */
}

/* By name, so that a step that the scene above stopped reaching is missed. */
TEST(every_named_step_is_reached_and_may_fail)
{
    static const char *names[] = {
        "child.args", "child.pipe",  "child.fork", "child.step",  "child.pidfd",
        "child.poll", "child.watch", "child.read", "child.write", "child.wait",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long nth = 0;

        do
            fault_arm_at(names[i], ++nth);
        while (run_scene() && nth < 60);
        if (nth == 1)
            T_FAIL("never reached: %s", names[i]);
    }
}

/* Each step in the new process is told by its name. */
TEST(a_step_that_fails_before_the_program_runs_is_named)
{
    struct str argv[] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;
    struct kid k = {.s = &s};
    struct why why;

    stage_init(&s, 4);
    for (int i = 0; i < N_STEPS; i++) {
        fault_arm_at("child.step", i + 1);
        CHECK_INT(try_start(&s, &k, &o, &why), ERR_IO);
        CHECK(fault_fired());
        CHECK(strstr(why.text, "cannot start /bin/true: "));
        CHECK(i >= STEP_FOLDER || strstr(why.text, spawn_step_name(i)));
    }
    fault_arm(0);
    check_alive(&s);
    stage_fini(&s);
}

TEST(who_cannot_be_heard_any_more_is_broken)
{
    static const char *const names[] = {"child.read", "child.watch"};
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (int i = 0; i < 2; i++) {
        start_sh(&s, &k, "read x; echo $x; exec sleep 1000");
        turn(&s, i == 1 ? 0 : 2);
        if (i != 1)
            send_line(&k, "hello");
        turn(&s, i == 1 ? 0 : 1);
        fault_arm_at(names[i], 1);
        await_end(&k);
        CHECK(fault_fired());
        fault_arm(0);
        CHECK(k.end.why == CHILD_BROKEN && k.n_lines == 0);
    }
    stage_fini(&s);
}
