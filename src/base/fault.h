#ifndef BASE_FAULT_H
#define BASE_FAULT_H

/* fault: every step that the outside world can break asks FAULT("room.step")
 * first.
 *
 * In test builds (WITH_FAULTS) a test picks the Nth such step to fail, or one
 * by its name; elsewhere the question costs nothing. This is the one place
 * with state of its own outside a struct: handing a fault plan through every
 * function would change the code it is meant to test.
 * Threads: one, that of the test. */

#include <stdbool.h>

#ifdef WITH_FAULTS
bool fault_hit(const char *where);

/* Fail the nth step from now on, once. Zero disarms. */
void fault_arm(long nth);

/* Fail the nth step called `where`, once. Borrows the name. */
void fault_arm_at(const char *where, long nth);

/* Whether the armed step was reached, and which it was (NULL if not). */
bool fault_fired(void);
const char *fault_name(void);
#define FAULT(where) fault_hit(where)

/* A mistake made on purpose, every time as long as it is armed by its name; no
 * sweep meets it. It shows that a test would notice such a mistake. */
bool fault_is_planted(const char *where);
#define PLANTED(where) fault_is_planted(where)
#elif defined(WITHOUT_FAULTS)
/* Compiled once, for tests and for the program that is shipped. */
bool fault_first(const char *where)
    __attribute__((error("the first fault point of a file: meson setup "
                         "--reconfigure, which builds it with and without")));
#define FAULT(where)   fault_first(where)
#define PLANTED(where) fault_first(where)
#else
#define FAULT(where)   false
#define PLANTED(where) false
#endif

#endif
