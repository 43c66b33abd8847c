#ifndef CRASH_CHECK_H
#define CRASH_CHECK_H

/* check: what must be true of a folder after a power cut, given all that the
 * program had said until then. */

#include "base/str.h"

enum finding {
    FOUND_NOTHING, /* all is well */
    FOUND_LOST,    /* something that was acknowledged is not there */
    FOUND_HALF,    /* part of a change is there and part is not */
    FOUND_DAMAGED, /* the database is not in order */
    FOUND_CLOSED,  /* the store does not even open it */
    N_FINDING,
};

struct check {
    const char *name;
    /* What was said so far: begins empty. */
    void *(*new)(void);
    void (*free)(void *claims);
    /* The program said this; whether it acknowledged something. */
    bool (*hear)(void *claims, struct str said);
    /* Open the folder with the store's own code and look. Words in why. */
    enum finding (*look)(const void *claims, const char *folder,
                         struct why *why);
};

extern const struct check check_driver, check_server;

/* SQLite's own opinion: FOUND_NOTHING or FOUND_DAMAGED. */
enum finding check_integrity(const char *folder, struct why *why);

/* Words for a finding, which is returned. */
PRINTF_LIKE(3, 4)
enum finding found(enum finding f, struct why *why, const char *fmt, ...);

#endif
