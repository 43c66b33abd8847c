#ifndef MODEL_NEAR_H
#define MODEL_NEAR_H

/* near: the agents that were probably meant, when a name is nobody's. Only
 * those that whoever asks may see are looked at: to them the others are not
 * there, and nothing in what is said depends on them. Pure. Threads: any. */

#include "model/agent.h"

enum {
    NEAR_MAX = 3,
    NEAR_SHOWN_MAX = 64, /* of a name that nobody has, this much is shown */
    NEAR_WORK_MAX = 2 * 1000 * 1000, /* letters that are compared */
};

/* Borrowed from the agents. */
struct near {
    struct str names[NEAR_MAX]; /* the nearest first, of equals the one whose
                                 * name sorts first */
    unsigned distances[NEAR_MAX];
    size_t n;
    bool sees_any; /* whether there is any agent at all, for them */
    size_t work;   /* letters that were compared to find them */
};

/* Past NEAR_WORK_MAX the names that sort later are not looked at any more. */
struct near near_find(const struct agents *all, const struct eyes *eyes,
                      struct str written);

/* "there is no agent "x"; did you mean …?" Always ERR_AGENT_NOT_FOUND. */
enum err near_say(const struct near *near, struct str written, struct why *why);

#endif
