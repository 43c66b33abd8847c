#ifndef BASE_FAULT_H
#define BASE_FAULT_H

/* fault: every step that can fail for an external reason calls
 * FAULT("module.step") first.
 *
 * In test builds (WITH_FAULTS) a test makes the Nth such step fail, or one by
 * name; elsewhere the call compiles to nothing. This is the only global state:
 * passing a fault plan through every function would change the code under test.
 * Threads: one, the test's. */

#include <stdbool.h>

#ifdef WITH_FAULTS
bool fault_hit(const char *where);

/* Fail the nth step from now on, once. Zero disarms. */
void fault_arm(long nth);

/* Fail the nth call of the step named `where`, once. Borrows the name. */
void fault_arm_at(const char *where, long nth);

/* Whether the armed step was reached, and its name (NULL if not). */
bool fault_fired(void);
const char *fault_name(void);
#define FAULT(where) fault_hit(where)

/* A step that fails only for a test that arms it by name; a sweep over all
 * faults skips it. */
bool fault_hit_named(const char *where);
#define FAULT_NAMED(where) fault_hit_named(where)

/* A deliberate bug, present as long as a test has armed it by name; sweeps skip
 * it. It proves that a test would notice such a bug. */
bool fault_is_planted(const char *where);
#define PLANTED(where) fault_is_planted(where)
#elif defined(WITHOUT_FAULTS)
/* Compiled once, for the tests and for the shipped program. */
bool fault_first(const char *where)
    __attribute__((error("the first fault point of a file: meson setup "
                         "--reconfigure, which builds it with and without")));
#define FAULT(where)       fault_first(where)
#define FAULT_NAMED(where) fault_first(where)
#define PLANTED(where)     fault_first(where)
#else
#define FAULT(where)       false
#define FAULT_NAMED(where) false
#define PLANTED(where)     false
#endif

#endif
