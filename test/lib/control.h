#ifndef TEST_LIB_CONTROL_H
#define TEST_LIB_CONTROL_H

/* The control of a test: its body, run where a mistake is planted, must fail,
 * or it would not notice. */

#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "test/t.h"

static inline void check_control(const char *planted, void (*body)(void))
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(freopen("/dev/null", "w", stderr));
        fault_arm_at(planted, 1);
        body();
        _exit(fault_fired() ? 0 : 2);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        T_FAIL("with %s the test ends with status %x, not red", planted,
               status);
}

#endif
