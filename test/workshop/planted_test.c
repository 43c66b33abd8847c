/* Tests that go wrong in every way the harness must notice, and one that goes
 * well. harness_test.py runs them one at a time and reads what is said. */
#include "base/str.h"
#include "test/t.h"

TEST(passes)
{
    CHECK(1 + 1 == 2);
    CHECK_INT(1 + 1, 2);
    CHECK_STR(STR("abc"), "abc");
}

TEST(check_fails)
{
    CHECK(1 + 1 == 3);
}

TEST(check_int_fails)
{
    CHECK_INT(1 + 1, 3);
}

TEST(check_str_fails)
{
    CHECK_STR(STR("abc"), "abd");
}

TEST(crashes)
{
    raise(SIGSEGV);
}

TEST(hangs)
{
    for (;;)
        pause();
}

TEST(hangs_deaf)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        pause();
}

/* What it leaves running holds the pipes that the harness's caller reads. */
TEST(leaves_a_child)
{
    if (fork() == 0)
        for (;;)
            pause();
}

TEST(exits_early)
{
    exit(0);
}

TEST(leaks)
{
    void *volatile p = malloc(100);
    CHECK(p);
    p = NULL;
}

/* A write past the end, the length hidden from the compiler. */
TEST(overruns)
{
    volatile size_t n = 8;
    volatile char *p = malloc(n);
    CHECK(p);
    p[n] = 1;
    free((void *)p);
}

TEST(overflows)
{
    volatile int big = 0x7fffffff;
    big = big + 1;
}
