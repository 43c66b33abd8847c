#ifndef TEST_WEEK_KILL_H
#define TEST_WEEK_KILL_H

#include "test/week/world.h"

/* From now on system calls of the store are counted, and the one that brings
 * w->api_left to zero is the last. Borrows w. */
void kill_arm(struct world *w);

/* Here and now. */
void kill_now(void);

#endif
