/* The kernel's limits on a child: each is met, and without it is not. */
#include "test/lib/child_stage.h"

static void run_limited(struct kid *k, const char *script,
                        struct child_limits limits)
{
    struct child_opts o = opts_of(NULL, 0);

    o.limits = limits;
    start_python(k->s, k, script, o);
    await_end(k);
}

TEST(memory_has_a_limit)
{
    static const char *const script =
        "try:\n x = bytearray(1 << 30); print('got it')\n"
        "except MemoryError: print('refused')";
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_limited(&k, script, (struct child_limits){.memory_bytes = 256 << 20});
    CHECK_STR(kid_said(&k), "refused|");
    run_limited(&k, script, (struct child_limits){0});
    CHECK_STR(kid_said(&k), "got it|");
    stage_fini(&s);
}

/* Too little to begin with: that it ended is told like any other end. */
TEST(memory_may_be_too_little_for_the_program_itself)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_limited(&k, "print(1)", (struct child_limits){.memory_bytes = 4096});
    CHECK(k.end.why == CHILD_EXITED);
    CHECK(k.end.signal || k.end.exit_status > 0);
    check_alive(&s);
    stage_fini(&s);
}

TEST(processor_time_has_a_limit)
{
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid polite = {.s = &s}, deaf = {.s = &s};

    stage_init(&s, 4);
    o.limits.cpu_s = 1;
    start_sh_opts(&s, &polite, "while :; do :; done", o);
    start_sh_opts(&s, &deaf, "trap '' XCPU; while :; do :; done", o);
    await_end(&polite);
    await_end(&deaf);
    CHECK(polite.end.why == CHILD_EXITED && polite.end.signal == SIGXCPU);
    CHECK(deaf.end.why == CHILD_EXITED && deaf.end.signal == SIGKILL);
    CHECK_INT(children_stats(s.all).killed_total, 0); /* not by us */
    stage_fini(&s);
}

TEST(open_files_have_a_limit)
{
    static const char *const script =
        "import os\nn = 3\ntry:\n"
        " while n < 100: os.open('/dev/null', 0); n += 1\n"
        "except OSError: pass\nprint(n)";
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_limited(&k, script, (struct child_limits){.files = 16});
    CHECK_STR(kid_said(&k), "16|");
    run_limited(&k, script, (struct child_limits){0});
    CHECK_STR(kid_said(&k), "100|");
    stage_fini(&s);
}

/* The kernel lets root have more, so it becomes another user. */
TEST(processes_have_a_limit)
{
    static const char *const script =
        "import os\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try:\n"
        " if os.fork() == 0: os._exit(0)\n"
        " os.wait(); print('forked')\n"
        "except BlockingIOError: print('refused')";
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_limited(&k, script, (struct child_limits){.processes = 1});
    CHECK_STR(kid_said(&k), "refused|");
    run_limited(&k, script, (struct child_limits){0});
    CHECK_STR(kid_said(&k), "forked|");
    stage_fini(&s);
}

TEST(a_file_has_a_largest_size)
{
    static const char *const script =
        "import os, signal, tempfile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "f = tempfile.TemporaryFile(buffering=0)\n"
        "print(f.write(bytes(100000)))";
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    run_limited(&k, script, (struct child_limits){.file_bytes = 5000});
    CHECK_STR(kid_said(&k), "5000|");
    run_limited(&k, script, (struct child_limits){0});
    CHECK_STR(kid_said(&k), "100000|");
    stage_fini(&s);
}

static const char *const show_files =
    "import resource as r\n"
    "print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE))";

/* A server raises its own limit; select() breaks with numbers over 1023. */
TEST(open_files_are_those_that_every_program_can_deal_with)
{
    static const struct {
        rlim_t soft, hard; /* ours */
        int64_t asked;
        const char *has;
    } cases[] = {
        {4096, 4096, 0, "(1024, 4096) (0, 0)|"}, /* it may raise it, as we */
        {1024, 4096, 0, "(1024, 4096) (0, 0)|"},
        {100, 4096, 0, "(100, 4096) (0, 0)|"},
        {4096, 4096, 2000, "(2000, 2000) (0, 0)|"},
        {100, 4096, 2000, "(2000, 2000) (0, 0)|"},
        {100, 4096, 5000, "(4096, 4096) (0, 0)|"},
        {1023, 1023, 0, "(1023, 1023) (0, 0)|"},
    };
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rlimit ours = {cases[i].soft, cases[i].hard};

        CHECK(setrlimit(RLIMIT_NOFILE, &ours) == 0);
        run_limited(&k, show_files,
                    (struct child_limits){.files = cases[i].asked});
        CHECK_STR(kid_said(&k), cases[i].has);
    }
    stage_fini(&s);
}

TEST(limits_are_never_more_than_our_hard_ones_and_no_core_is_left)
{
    struct rlimit few = {200, 200}, core = {RLIM_INFINITY, RLIM_INFINITY};
    struct stage s;
    struct kid k = {.s = &s};

    setrlimit(RLIMIT_CORE, &core);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    stage_init(&s, 4);
    run_limited(&k, show_files, (struct child_limits){.files = 100000});
    CHECK_STR(kid_said(&k), "(200, 200) (0, 0)|");
    run_limited(&k, show_files, (struct child_limits){.files = -5});
    CHECK_STR(kid_said(&k), "(200, 200) (0, 0)|");
    stage_fini(&s);
}
